"""Every command, flag and setting is in the man pages and in the completion of each shell. Source:
handlers/cli/manual.py, `hyperfleet-driver help`.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

from lib import clean_env, program

ROOT = os.environ["HFD_SOURCE_DIR"]
FLAG = re.compile(r"^  (-[-a-zA-Z0-9]+)", re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(*args):
    return subprocess.run([program(), *args], stdout=subprocess.PIPE, check=True, text=True,
                          env=clean_env()).stdout


def commands():
    """The names of the table of commands."""
    table = read(os.path.join(ROOT, "handlers/cli/cli.h"))
    table = table[table.index("#define HFD_COMMAND_LIST"):table.index("HFD_SETTINGS_USER_LIST")]
    return re.findall(r"^ +X\((\w+),", table, re.M)


def flags_of(command):
    """The flags in the help of a command."""
    return set(FLAG.findall(run("help", command)))


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.check = os.path.join(ROOT, "tests/contract/check.py")
        subprocess.run([sys.executable, "-B", os.path.join(ROOT, "handlers/cli/manual.py"),
                        program(), cls.check, cls.folder], check=True)
        cls.commands = commands()
        cls.flags = {name: flags_of(name) for name in cls.commands}

    def page(self, name):
        """A page as text, without the marks of scdoc."""
        text = read(os.path.join(self.folder, "man", name + ".scd"))
        return re.sub(r"\\(.)", r"\1", text)

    def complete(self, *words):
        """The words that bash offers for the last one."""
        script = "source %s; COMP_WORDS=(hyperfleet-driver \"$@\"); COMP_CWORD=$#; " \
            "_hyperfleet_driver; printf '%%s\\n' \"${COMPREPLY[@]}\"" \
            % os.path.join(self.folder, "completion/bash/hyperfleet-driver")
        done = subprocess.run(["bash", "-c", script, "bash", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True, cwd=self.folder,
                              env=clean_env({"LC_ALL": "C"}))  # bash warns of an absent locale
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_the_tables(self):
        """The flags of the help are those of the code; none has slipped through."""
        self.assertIn("serve", self.commands)
        self.assertGreater(len(self.flags["apply"]), 5)
        self.assertIn("--scope", self.flags["token"])
        known = set().union(*self.flags.values())
        for path in glob.glob(os.path.join(ROOT, "handlers/cli/*.c")):
            for flag in re.findall(r"\{\"(--?[a-z0-9-]+)\",", read(path)):
                self.assertIn(flag, known, path)

    def test_man_pages(self):
        settings = self.page("hyperfleet-driver-settings.5")
        for name in self.commands:
            if name == "help":
                continue
            self.assertIn("*hyperfleet-driver-%s(1)*" % name, self.page("hyperfleet-driver.1"))
            page = self.page("hyperfleet-driver-%s.1" % name)
            for flag in self.flags[name]:
                self.assertRegex(page + settings, r"\n\*%s[ .\[*]" % re.escape(flag))

    def test_check(self):
        """The program beside the program has a page of its own."""
        text = subprocess.run([sys.executable, "-B", self.check, "--help"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        page = self.page("hyperfleet-driver-check.1")
        self.assertIn("*hyperfleet-driver-check* URL --input FILE", page)
        self.assertGreater(len(FLAG.findall(text)), 10)
        for flag in FLAG.findall(text):
            self.assertRegex(page, r"\n\*%s[ *]" % re.escape(flag))
        for status in ("0", "1", "2", "69"):
            self.assertIn("\n*%s*\n" % status, page)

    def test_settings(self):
        page = self.page("hyperfleet-driver-settings.5")
        keys = re.findall(r"^\| `([a-z_.]+)", run("config", "docs"), re.M)
        self.assertGreater(len(keys), 50)
        for key in keys:
            flag = "--" + key.rstrip(".").replace(".", "-").replace("_", "-")
            self.assertRegex(page, r"\n\*%s[ .\[*-]" % re.escape(flag))

    def test_exit_statuses(self):
        page = self.page("hyperfleet-driver.1")
        for status in re.findall(r"^ +(\d+)  ", run("help").split("Exit status:")[1], re.M):
            self.assertIn("\n*%s*\n" % status, page)

    def test_bash(self):
        self.assertEqual(self.complete(""), set(self.commands) | {"--help", "--version"})
        self.assertEqual(self.complete("tok"), {"token"})
        for name in self.commands:
            wanted = {re.sub("NAME$", "", flag) for flag in self.flags[name]}
            self.assertLessEqual(wanted, self.complete(name, "-"), name)
        self.assertEqual(self.complete("token", ""), {"create", "list", "revoke"})
        self.assertEqual(self.complete("token", "create", "--scope", "fleet"),
                         {"fleet-read", "fleet-write"})
        self.assertEqual(self.complete("get", "x", "-o", ""), {"json", "yaml", "name"})
        self.assertEqual(self.complete("serve", "--log-level", "w"), {"warn"})
        self.assertIn("man", self.complete("serve", "--config", ""))
        self.assertIn("man", self.complete("apply", "m"))
        self.assertEqual(self.complete("get", "m"), set())

    def test_the_other_shells(self):
        for path, form in (("zsh/_hyperfleet-driver", "'%s"),
                           ("fish/hyperfleet-driver.fish", " -l %s")):
            text = read(os.path.join(self.folder, "completion", path))
            for name in self.commands:
                self.assertIn(name, text)
                for flag in self.flags[name]:
                    flag = re.sub("NAME$", "", flag)
                    if flag.startswith("--"):
                        flag = flag if "zsh" in path else flag[2:]
                        self.assertRegex(text, form % re.escape(flag) + r"[\[= ]")


if __name__ == "__main__":
    unittest.main()
