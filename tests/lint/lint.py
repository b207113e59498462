#!/usr/bin/env python3
"""The guards of the tree, one command each: lint.py [--build DIR] CHECK... (no CHECK: --list).

Our own rules are in rules.py, shape.py and words.py; selftest.py sees each of them fail. The other
checks call a tool of Debian. Standard library only.

The checks "rules" and "words" run every rule of shape.py and of words.py. --findings PATH... prints
their findings below some paths.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import rules
import shape
import words
from kept import Kept

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = {".git", "build", "data", "corpora", "vectors", "__pycache__"}
LAYOUT_AT_ONCE = 16  # processes of clang-format in all


class Tree:
    """The files of the repository, by path from its root."""

    def __init__(self, root):
        self.root = root
        self.paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            self.paths += [os.path.relpath(os.path.join(folder, name), root)
                           for name in sorted(names)]

    def files(self, *endings):
        """Paths that end so; an ending without a dot is a whole file name."""
        suffixes = tuple(e for e in endings if e.startswith("."))
        return [p for p in self.paths if p.endswith(suffixes) or os.path.basename(p) in endings]

    def exists(self, path):
        return os.path.isfile(os.path.join(self.root, path))

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()


def own_rule(rule):
    def check(tree, _build):
        found = 0
        for path, line, message in rule(tree):
            print(f"{path}:{line}: {message}")
            found += 1
        return found == 0
    return check


def family(found_by):
    """One check of several rules."""
    def check(tree, _build):
        return show(tree, found_by, []) == 0
    return check


def show(tree, found_by, paths):
    """Prints the findings below some paths, or all. Returns how many there are."""
    count = 0
    for name, rule in found_by.items():
        for path, line, message in sorted(rule(tree)):
            if not paths or any(path == p or path.startswith(p.rstrip("/") + "/") for p in paths):
                print(f"{path}:{line}: {name}: {message}")
                count += 1
    return count


def tool(name):
    path = shutil.which(name)
    if path is None:
        sys.exit(f"{name} is not installed: ./dev lint installs it")
    return path


def run_each(commands, root, counts=lambda line: True, on_clean=lambda command: None):
    """Runs commands side by side and prints what the failing ones say, if any line of it counts.
    Calls on_clean with each of the others.
    """
    ok = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def one(command):
            return subprocess.run(command, cwd=root, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        for command, done in zip(commands, pool.map(one, commands)):
            if done.returncode != 0 and any(counts(line) for line in done.stdout.splitlines()):
                ok = False
                print(done.stdout.rstrip())
            else:
                on_clean(command)
    return ok


def layout(tree, _build):
    # The start of the tool takes longer than a file: each process has many.
    paths = tree.files(".c", ".h")
    return run_each([[tool("clang-format"), "--dry-run", "-Werror", *paths[i::LAYOUT_AT_ONCE]]
                     for i in range(LAYOUT_AT_ONCE) if paths[i::LAYOUT_AT_ONCE]], tree.root)


def compiled(tree, build):
    """Our sources in the compilation database."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        known = {os.path.relpath(entry["file"], tree.root) for entry in json.load(file)}
    ours = [path for path in tree.files(".c") if path in known]
    if not ours:
        sys.exit(f"{build}: its compilation database knows no source of this tree")
    return ours


def tidy(tree, build):
    # The database is gcc's: clang 14 does not know all of its options. It analyses better without
    # zeroed variables. ! ! # -Werror is for the warnings of gcc: those of clang are not checked
    # here.
    options = ["--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
               "--extra-arg=-Wno-ignored-optimization-argument",
               "--extra-arg=-ftrivial-auto-var-init=uninitialized", "--extra-arg=-Wno-error"]
    # Nearly all of the time is the walk of the analyser through paths. README.md has the figures.
    for word in ("-analyzer-config", "max-nodes=75000"):
        options += ["--extra-arg=-Xclang", "--extra-arg=" + word]

    def counts(line):
        # Findings in a library's inline functions are not ours to mend; a file that does not
        # compile always is.
        return ": error:" in line and not line.startswith("/usr/") or line.startswith("error:")

    about = [subprocess.run([tool("clang-tidy"), "--version"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout, *options]
    for path in tree.files(".clang-tidy"):
        with open(os.path.join(tree.root, path), encoding="utf-8") as file:
            about.append(file.read())
    kept = Kept(tree.root, build, "\n".join(about))
    paths = [path for path in compiled(tree, build) if not kept.has(path)]
    clean = run_each([[tool("clang-tidy"), *options, path] for path in paths], tree.root, counts,
                     lambda command: kept.add(command[-1]))
    if clean:
        kept.forget_others()
    return clean


def cppcheck(tree, build):
    os.makedirs(os.path.join(build, "cppcheck"), exist_ok=True)
    command = [tool("cppcheck"), "--quiet", "--error-exitcode=1", "--std=c11", "--inline-suppr",
               "--enable=warning,performance,portability", "--force", "--max-configs=2",
               f"--suppressions-list={os.path.join(tree.root, 'tests/lint/cppcheck.supp')}",
               f"--cppcheck-build-dir={os.path.join(build, 'cppcheck')}", f"-j{os.cpu_count()}",
               "-I.", "-D_GNU_SOURCE", "-D__GNUC__=12"]
    return run_each([[*command, *compiled(tree, build)]], tree.root)


def spelling(tree, _build):
    files = [p for p in tree.files(*rules.TEXT_FILES) if os.path.basename(p) != "codespell.txt"]
    words_file = os.path.join(tree.root, "tests/lint/codespell.txt")
    return run_each([[tool("codespell"), "--ignore-words", words_file, *files]], tree.root)


def shell(tree, _build):
    scripts = [p for p in tree.paths
               if p.endswith(".sh") or ("." not in os.path.basename(p) and _is_shell(tree, p))]
    return run_each([[tool("shellcheck"), *scripts]], tree.root) if scripts else True


def _is_shell(tree, path):
    with open(os.path.join(tree.root, path), "rb") as file:
        return re.match(rb"#!\s*(/usr/bin/env )?(/bin/)?(ba|da)?sh\b", file.readline()) is not None


def hardening(_tree, build):
    """Reads back from the program what the release flags promise."""
    program = os.path.join(build, "hyperfleet-driver")

    def readelf(*options):
        return subprocess.run([tool("readelf"), "--wide", *options, program], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    dynamic, segments, symbols = readelf("--dynamic"), readelf("--segments"), readelf("--dyn-syms")
    promises = (
        ("position independent (PIE)",
         "Elf file type is DYN (Position-Independent Executable" in segments),
        ("RELRO segment", "GNU_RELRO" in segments),
        ("immediate binding (BIND_NOW)",
         re.search(r"\(FLAGS(_1)?\).*\b(BIND_NOW|NOW)\b", dynamic) is not None),
        ("no executable stack", re.search(r"GNU_STACK.* RW ", segments) is not None),
        ("stack protector", "__stack_chk_fail" in symbols),
        ("fortified libc calls",
         re.search(r"__(memcpy|memmove|vsnprintf|snprintf|read|fprintf|vfprintf|printf)_chk",
                   symbols) is not None),
        ("no run path", "RUNPATH" not in dynamic and "RPATH" not in dynamic),
    )
    missing = [what for what, holds in promises if not holds]
    for what in missing:
        print(f"{program}: missing: {what}")
    return not missing


FAMILIES = {**shape.RULES, **words.RULES}
CHECKS = {name: own_rule(rule) for name, rule in rules.RULES.items()}
CHECKS.update({"rules": family(shape.RULES), "words": family(words.RULES)})
CHECKS.update({
    "layout": layout, "tidy": tidy, "cppcheck": cppcheck, "spelling": spelling, "shell": shell,
    "hardening": hardening
})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="build folder, with its compilation database and program")
    parser.add_argument("--list", action="store_true", help="names the checks")
    parser.add_argument("--findings", action="store_true",
                        help="the arguments are paths: prints what rules and words find below them")
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    given = parser.parse_args()
    tree = Tree(ROOT)
    if given.findings:
        return 0 if show(tree, FAMILIES, given.checks) == 0 else 1
    if given.list or not given.checks:
        print("\n".join(CHECKS))
        return 0
    unknown = [name for name in given.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}")
    return 0 if all([CHECKS[name](tree, given.build) for name in given.checks]) else 1


if __name__ == "__main__":
    sys.exit(main())
