#!/usr/bin/env python3
"""Writes the man pages (scdoc) and the shell completion from what the program's help says, and so
from the tables of commands, flags and settings.

usage: manual.py PROGRAM CHECK FOLDER [SCDOC]

CHECK is the Python program that is installed as hyperfleet-driver-check: it has a man page.

Without scdoc the pages stay sources: FOLDER/man/NAME.1.scd. With it they are FOLDER/man/man1/*.gz.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys

NAME = "hyperfleet-driver"
SYSTEM_CONFIG = "/etc/hyperfleet-driver/hyperfleet-driver.yaml"
# Values of these are files.
FILES = {"FILE", "DIR", "FILE|-"}
# Settings whose values are files, though their form is TEXT.
FILE_SETTINGS = re.compile(r"^--(.*-file|data|keys|hypershift-kubeconfig|auth-issuers|"
                           r"fleet-spec-schema)$")
CHOICE = re.compile(r"(?:^|: )((?:[a-z-]+, )*[a-z-]+,? or [a-z-]+)(?=$|[:;(]| \()")


class Flag:
    """A flag: its name, the name of its value or None, and its text."""

    def __init__(self, name, value, text, notes=""):
        self.name, self.value, self.text, self.notes = name, value, text, notes
        self.optional = bool(value) and value.startswith("[=")
        self.value = value.strip("[=]") if value else None

    def typed(self):
        """The part of the name that can be completed: all but the NAME at its end."""
        return re.sub(r"NAME$", "", self.name)

    def choices(self):
        """The words that the text names as values."""
        found = CHOICE.search(self.text)
        if not self.value or not found:
            return []
        return re.split(r", or |, | or ", found.group(1))

    def is_file(self):
        return self.value in FILES or bool(FILE_SETTINGS.match(self.name))

    def head(self):
        if not self.value:
            return self.name
        return "%s[=%s]" % (self.name, self.value) if self.optional else \
            "%s %s" % (self.name, self.value)


class Command:
    """A command as its help describes it."""

    def __init__(self, name, text, help_text):
        self.name, self.text = name, text
        parts = sections(help_text)
        usage = parts[0][1]
        self.usage = re.sub(r"^[Uu]sage: \S+ ?", "", usage[0])
        self.settings = "SETTINGS]" in usage[0]
        self.about = [line for line in usage[1:] if line.strip()]
        self.flags, self.more, self.exits = [], [], []
        for title, lines in parts[1:]:
            if title == "Flags":
                self.flags = [flag for flag in map(flag_of, lines) if flag]
            elif title == "Exit status":
                self.exits = exits_of(lines)
            elif title != "Settings":
                self.more.append((title, lines))

    def words(self):
        """The words that may follow the name, as in `token create | list | revoke`."""
        parts = self.usage[len(self.name):].strip().split(" | ")
        words = [part.split(" ")[0] for part in parts]
        return words if len(words) > 1 and all(re.match(r"^[a-z]+$", w) for w in words) else []

    def takes_file(self):
        return any(word in FILES for word in self.usage.split(" ")[1:2])


def exits_of(lines):
    return [re.match(r"^ +(\d+)  (.*)$", line).groups() for line in lines if line.strip()]


def flag_of(line):
    """The flag of a line of help; None for another line."""
    found = re.match(r"^  (-[-a-z0-9]+)( [^ ]\S*)?(?:  +| )(\S.*)$", line)
    if not found:
        return None
    name, value, text = found.groups()
    if value and not re.match(r"^ [A-Z][A-Z|,.\[\]-]+$", value):
        return Flag(name, None, (value + " " + text).strip())
    return Flag(name, value.strip() if value else None, text)


def sections(text):
    """[(title, lines)]: the first has no title. A title begins a line and ends with a colon."""
    parts = [("", [])]
    for line in text.splitlines():
        found = re.match(r"^([A-Z][A-Za-z ]*):(?: (.*))?$", line)
        if found and not line.startswith("Usage:"):
            parts.append((found.group(1), [found.group(2)] if found.group(2) else []))
        else:
            parts[-1][1].append(line)
    return parts


def settings_of(lines):
    """The settings of a help text: their names, forms, texts, and defaults."""
    found = []
    for line in lines:
        head = re.match(r"^  (--[a-zA-Z0-9-]+)(\[=[A-Z]+\])?((?: |\.)[A-Z].*)?$", line)
        if head:
            found.append(Flag(head.group(1), (head.group(2) or head.group(3) or "").strip(), ""))
        elif found and line.startswith("      "):
            last = found[-1]
            if last.text:
                last.notes = (last.notes + " " + line.strip()).strip()
            else:
                last.text = line.strip()
    return found


class Program:
    """All that the help says."""

    def __init__(self, path):
        self.path = path
        self.version = self.ask("version").split()[-1]
        parts = dict((title, lines) for title, lines in sections(self.ask("help")))
        self.intro = [line for line in parts[""][1:] if line.strip()]
        self.commands = []
        for line in parts["Commands"]:
            found = re.match(r"^  ([a-z]+) +(.+)$", line)
            if found:
                self.commands.append(Command(found.group(1), found.group(2),
                                             self.ask("help", found.group(1))))
        forms, _, listed = self.ask("help", "settings").partition("\n\n")
        self.forms = forms.split("\n")
        self.settings = settings_of(listed.splitlines())
        self.exits = exits_of(parts["Exit status"])

    def ask(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HFD_")}
        return subprocess.run([self.path, *args], stdout=subprocess.PIPE, check=True, text=True,
                              env=env).stdout

    def flags_of(self, command):
        own = [Flag("--config", "FILE", "the file of settings")] + self.settings \
            if command.settings else []
        return command.flags + own


# ---- man pages ----

def plain(text):
    """A text as scdoc prints it: nothing in it is markup."""
    text = re.sub(r"([\\*_`~])", r"\\\1", text)
    return re.sub(r"^([#\-|\[!<])", r"\\\1", text)


def definition(term, text):
    return "*%s*\n\t%s\n\n" % (plain(term), plain(text))


def literal(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return "```\n%s\n```\n\n" % "\n".join(line.strip() for line in lines)


def head_of(title, section, text):
    return '%s(%d) "" "%s manual"\n\n# NAME\n\n%s - %s\n\n' % (title, section, NAME, title,
                                                            plain(text))


def page_of_program(program):
    page = head_of("hyperfleet-driver", 1, "Humanitec driver for HyperFleet clusters and nodepools")
    page += "# SYNOPSIS\n\n*%s* _COMMAND_ [_ARGUMENTS_]\n\n# DESCRIPTION\n\n" % NAME
    page += "\n\n".join(plain(line) for line in program.intro) + "\n\n# COMMANDS\n\n"
    for command in program.commands:
        page += definition("%s-%s(1)" % (NAME, command.name) if command.name != "help"
                           else "help", command.text)
    page += "# SETTINGS\n\n%s\n\nAll settings are in *%s-settings*(5).\n\n" % (
        "\n\n".join(plain(line) for line in program.forms), NAME)
    page += "# EXIT STATUS\n\n" + "".join(definition(*pair) for pair in program.exits)
    page += "# ENVIRONMENT\n\n" + definition("HFD_CONFIG", "the file of settings, as --config")
    page += definition("HFD_...", "a setting, as HFD_LOG_LEVEL for --log-level")
    page += definition("NOTIFY_SOCKET, WATCHDOG_USEC", "serve: systemd's, see sd_notify(3)")
    page += "# FILES\n\n" + definition(
        SYSTEM_CONFIG, "the settings, unless --config or HFD_CONFIG names another file")
    page += definition("/var/lib/hyperfleet-driver", "its database, key ring and tokens")
    page += definition("/usr/share/doc/hyperfleet-driver/handlers/docs", "the manual")
    return page + "# SEE ALSO\n\n" + ", ".join(
        ["*%s-settings*(5)" % NAME, "*%s-check*(1)" % NAME]
        + ["*%s-%s*(1)" % (NAME, c.name) for c in program.commands if c.name != "help"]) + "\n"


def page_of_command(program, command):
    page = head_of("%s-%s" % (NAME, command.name), 1, command.text)
    name = "%s-check" % NAME if command.name == "check" else NAME
    page += "# SYNOPSIS\n\n"
    parts = command.usage.split(" | ") if command.words() else [command.usage]
    for i, part in enumerate(parts):
        text = part if i == 0 else "%s %s" % (command.name, part)
        page += "*%s* %s%s\n" % (name, plain(text), "++" if i + 1 < len(parts) else "")
    about = command.about or [command.text]
    page += "\n# DESCRIPTION\n\n%s\n\n" % "\n\n".join(
        plain(line[0].upper() + line[1:].rstrip(".") + ".") for line in about)
    if command.flags:
        page += "# FLAGS\n\n" + "".join(definition(f.head(), f.text) for f in command.flags)
    if command.settings:
        page += "# SETTINGS\n\n%s\n\n" % plain(
            "Every setting is a flag, too: --log-level warn. See %s-settings(5)." % NAME)
        page += definition("--config FILE", "the file of settings; HFD_CONFIG names it, too")
    for title, lines in command.more:
        page += "# %s\n\n%s" % (title.upper(), literal(lines))
    page += "# EXIT STATUS\n\n"
    for status, text in command.exits or program.exits:
        parts = text.split("; ")
        mine = [p for p in parts if ":" not in p or command.name in
                re.split(r", ", p.split(":")[0])]
        if mine:
            page += definition(status, "; ".join(mine))
    return page + "# SEE ALSO\n\n*%s*(1)\n" % NAME


def page_of_settings(program):
    page = head_of(NAME + "-settings", 5, "settings of hyperfleet-driver")
    page += "# DESCRIPTION\n\n" + "\n\n".join(plain(line) for line in program.forms)
    page += "\n\n# SETTINGS\n\n"
    for flag in program.settings:
        page += "*%s*\n\t%s" % (plain(flag.head()), plain(flag.text))
        page += ("\n\n\t" + plain(flag.notes) if flag.notes else "") + "\n\n"
    return page + "# SEE ALSO\n\n*%s*(1)\n" % NAME


def man_pages(program, check):
    """{file name: source}"""
    pages = {"%s.1" % NAME: page_of_program(program),
             "%s-settings.5" % NAME: page_of_settings(program)}
    for command in program.commands + [check]:
        if command.name != "help":
            pages["%s-%s.1" % (NAME, command.name)] = page_of_command(program, command)
    return pages


# ---- completion ----

BASH = """# bash completion of hyperfleet-driver; made from its help
_hyperfleet_driver()
{
    local cur prev command words flags files values
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ $COMP_CWORD == 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W '%(commands)s --help --version' -- "$cur")
        return
    fi
    command=${COMP_WORDS[1]}
    words='' flags='' files=''
    case $command in
%(cases)s    esac
    values=''
    case $command:$prev in
%(values)s    esac
    if [[ $values == FILE ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    elif [[ -n $values ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
    elif [[ $COMP_CWORD == 2 && -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    elif [[ -n $files ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -o filenames -F _hyperfleet_driver hyperfleet-driver
"""


def bash(program):
    cases = values = ""
    for command in program.commands:
        flags = program.flags_of(command)
        words = words_of(program, command)
        cases += "    %s)\n        words='%s'\n        flags='%s'\n        files='%s'\n" \
                 "        ;;\n" % (command.name, " ".join(words),
                                   " ".join([f.typed() for f in flags] + ["--help"]
                                            if all(f.typed() != "--help" for f in flags)
                                            else [f.typed() for f in flags]),
                                   "yes" if command.takes_file() else "")
        files = [f.typed() for f in flags if f.is_file()]
        for names, value in [(files, "FILE")] + [([f.typed()], " ".join(f.choices()))
                                                 for f in flags if f.choices()
                                                 and not f.is_file()]:
            if names:
                values += "    %s) values='%s' ;;\n" % (
                    " | ".join("%s:%s" % (command.name, n) for n in names), value)
    return BASH % {"commands": " ".join(c.name for c in program.commands), "cases": cases,
                   "values": values}


def quoted(text):
    return text.replace("'", "'\\''")


def zsh_flag(flag):
    text = quoted(re.sub(r"([\[\]:\\])", r"\\\1", flag.text))
    if not flag.value:
        return "'%s[%s]'" % (flag.typed(), text)
    action = "_files" if flag.is_file() else "(%s)" % " ".join(flag.choices()) \
        if flag.choices() else " "
    value = re.sub(r"[^A-Za-z]", " ", flag.value).strip()
    return "'%s[%s]%s:%s:%s'" % (flag.typed() + ("=-" if flag.optional else ""), text,
                                 ":" if flag.optional else "", value, action)


def zsh(program):
    out = "#compdef hyperfleet-driver\n# zsh completion of hyperfleet-driver; made from its help\n"
    out += "_hyperfleet_driver() {\n  local -a commands\n  commands=(\n"
    out += "".join("    '%s:%s'\n" % (c.name, quoted(c.text.replace(":", "\\:")))
                   for c in program.commands)
    out += "  )\n  if (( CURRENT == 2 )); then\n    _describe -t commands command commands\n" \
           "    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n" \
           "  case $command in\n"
    for command in program.commands:
        words = words_of(program, command)
        args = [zsh_flag(f) for f in program.flags_of(command) if f.typed() != "--help"]
        args.append("'--help[print the help]'")
        if words:
            args.append("'1:word:(%s)'" % " ".join(words))
        if command.takes_file():
            args.append("'*:file:_files'")
        out += "    %s)\n      _arguments \\\n        %s\n      ;;\n" % (
            command.name, " \\\n        ".join(args))
    return out + "  esac\n}\n\n_hyperfleet_driver \"$@\"\n"


def fish(program):
    """One line a flag. `serve` and its like share the settings."""
    none = "not __fish_seen_subcommand_from %s" % " ".join(c.name for c in program.commands)
    start = "complete -c %s" % NAME
    out = "# fish completion of hyperfleet-driver; made from its help\n%s -f\n" % start
    for command in program.commands:
        out += "%s -n '%s' -a %s -d '%s'\n" % (start, none, command.name,
                                               fish_text(command.text))
    for command in program.commands:
        seen = "__fish_seen_subcommand_from " + command.name
        if command.name == "help":
            seen = "test (commandline -opc)[2] = help 2>/dev/null"
        words = words_of(program, command)
        if words:
            out += "%s -n '%s' -a '%s'\n" % (start, seen, " ".join(words))
        if command.takes_file():
            out += "%s -n '%s' -F\n" % (start, seen)
        out += "".join(fish_flag(start, seen, f) for f in command.flags if f.typed() != "--help")
        out += "%s -n '%s' -l help -d 'print the help'\n" % (start, seen)
    with_settings = "__fish_seen_subcommand_from %s" % " ".join(
        c.name for c in program.commands if c.settings)
    for flag in [Flag("--config", "FILE", "the file of settings")] + program.settings:
        out += fish_flag(start, with_settings, flag)
    return out


def words_of(program, command):
    """The words that may follow a command."""
    return [c.name for c in program.commands] + ["settings"] if command.name == "help" \
        else command.words()


def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish_flag(start, seen, flag):
    name = "-l " + flag.typed()[2:] if flag.typed().startswith("--") else "-s " + flag.typed()[1:]
    value = ""
    if flag.is_file():
        value = " -r -F"
    elif flag.choices():
        value = " -x -a '%s'" % " ".join(flag.choices())
    elif flag.value and not flag.optional:
        value = " -x"
    return "%s -n '%s' %s%s -d '%s'\n" % (start, seen, name, value, fish_text(flag.text))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def main():
    program, folder, scdoc = Program(sys.argv[1]), sys.argv[3], sys.argv[4:5]
    text = subprocess.run([sys.executable, "-B", sys.argv[2], "--help"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    check = Command("check", "try any Humanitec driver against the Driver API 0.9.3", text)
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in man_pages(program, check).items():
        if scdoc:
            page = subprocess.run(scdoc, input=text.encode(), stdout=subprocess.PIPE,
                                  check=True).stdout
            write(os.path.join(folder, "man", "man" + name[-1], name + ".gz"),
                  gzip.compress(page, 9, mtime=0))
        else:
            write(os.path.join(folder, "man", name + ".scd"), text.encode())
    for path, text in (("bash/" + NAME, bash(program)), ("zsh/_" + NAME, zsh(program)),
                       ("fish/%s.fish" % NAME, fish(program))):
        write(os.path.join(folder, "completion", path), text.encode())


if __name__ == "__main__":
    main()
