"""Programs of others for tests: found on this machine, or installed once below build/real.

Each function returns a path, or skips the test with a sentence that says what is missing. An
installation has a time limit, and one that failed is not tried again by the same run.
"""
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import unittest
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import lib  # noqa: E402  (the fixtures of the integration tests)

CACHE = os.environ.get("HFD_REAL_CACHE") or os.path.join(ROOT, "build", "real")
INSTALL_S = 600
RETRY_S = 3600  # an installation that failed is not repeated for so long
SKIPPED = 77


def skip(reason):
    raise unittest.SkipTest(reason)


def find(program, hint, variable=None):
    """The path of a program: from the environment variable, or by its name from PATH."""
    named = os.environ.get(variable) if variable else None
    if named and not os.access(named, os.X_OK):
        raise AssertionError("%s: %s is not a program" % (variable, named))
    path = named or shutil.which(program)
    return path or skip("%s is not installed: %s" % (program, hint))


def debian(program, package=None):
    """A program of a Debian package. `./dev test --real` installs the packages of its list."""
    return find(program, "apt-get install %s" % (package or program))


def install(name, commands, made, env=None):
    """Installs into a folder of the cache, unless it is there; returns the path of the result.
    Tests that run side by side wait for each other.

    commands -- called with the folder, which does not exist; gives a list of commands
    made     -- the result, below that folder
    """
    folder = os.path.join(CACHE, name)
    result, done, bad = os.path.join(folder, made), folder + ".done", folder + ".failed"
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(done) and os.path.exists(result):
            return result
        if os.path.exists(bad) and time.time() - os.path.getmtime(bad) < RETRY_S:
            skip("%s could not be installed a short time ago: see %s" % (name, bad))
        shutil.rmtree(folder, ignore_errors=True)
        with open(bad, "w", encoding="utf-8") as log:
            for argv in commands(folder):
                reason = attempt(argv, log, env, INSTALL_S)
                if reason:
                    skip("%s cannot be installed: %s; see %s" % (name, reason, bad))
        if not os.path.exists(result):
            skip("%s was installed, but %s is missing; see %s" % (name, made, bad))
        os.replace(bad, done)
    return result


def attempt(argv, log, env, deadline_s):
    """Runs one command in a group of its own; returns what was wrong with it, or None."""
    log.write("$ %s\n" % " ".join(argv))
    log.flush()
    try:
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=dict(os.environ, **(env or {})), start_new_session=True)
    except OSError as e:
        return str(e)
    try:
        status = proc.wait(deadline_s)
    except subprocess.TimeoutExpired:
        os.killpg(proc.pid, 9)
        proc.wait()
        return "%s took longer than %d s" % (argv[0], deadline_s)
    return None if status == 0 else "%s ended with status %d" % (argv[0], status)


def folder_of(requirements):
    """The name of a folder: the first requirement, and a sum of all."""
    return "%s-%08x" % (requirements[0].replace("/", "+"),
                        zlib.crc32(" ".join(requirements).encode()))


def python_package(requirements, made):
    """A program or file of Python packages, in a virtual environment of its own.

    requirements -- "name==version", ...
    made         -- "bin/PROGRAM", below the environment
    """
    def commands(folder):
        return [[sys.executable, "-m", "venv", folder],
                [os.path.join(folder, "bin", "pip"), "install", "-q", "--retries", "1",
                 "--timeout", "20", "--disable-pip-version-check"] + list(requirements)]
    return install(folder_of(requirements), commands, made)


def go_program(package, version):
    """A program that is a published Go module."""
    go = find("go", "install Go 1.24 or later")
    name = package.rsplit("/", 1)[1]
    return install("%s@%s" % (name, version),
                   lambda folder: [[go, "install", "%s@%s" % (package, version)]],
                   name, {"GOBIN": os.path.join(CACHE, "%s@%s" % (name, version)),
                          "GOFLAGS": "-mod=mod"})


# $1: the module, $2: the commit, $3: the folder.
GO_SOURCE = r"""
dir=$(cd / && go mod download -json "$1@$2" |
    sed -n 's/^[[:space:]]*"Dir": "\(.*\)".*/\1/p') || dir=
if [ -n "$dir" ]; then
    cp -r "$dir" "$3"
    chmod -R u+w "$3"
else
    git init -q "$3"
    git -C "$3" -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 \
        fetch -q --depth 1 "https://$1" "$2"
    git -C "$3" checkout -q FETCH_HEAD
fi
"""


def go_source(module, commit, folder):
    """Commands for `install` that bring the source of a Go module to the folder. It comes from the
    module proxy, or by git where the proxy does not have it.
    """
    return [["sh", "-euc", GO_SOURCE, "sh", module, commit, folder]]


def npm_package(requirements, made):
    """A file or program of npm packages.

    requirements -- "name@version", ...
    made         -- for example "node_modules/axe-core/axe.min.js"
    """
    npm = find("npm", "install Node.js with npm")

    def commands(folder):
        return [["mkdir", "-p", folder],
                [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts",
                 "--prefix", folder] + list(requirements)]
    return install(folder_of(requirements), commands, made)


def with_module(name):
    """Goes on in Debian's Python when that one has a module which this one lacks."""
    debian_python = "/usr/bin/python3"
    if importlib.util.find_spec(name) is not None or sys.executable == debian_python:
        return
    if subprocess.run([debian_python, "-c", "import " + name], check=False,
                      stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        os.execv(debian_python, [debian_python, "-B"] + sys.argv)


def run(argv, deadline_s=300, **kw):
    """Runs a command to its end; fails with what it wrote when its status is not 0."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=deadline_s, check=False, **kw)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise AssertionError("%s ended with status %d:\n%s"
                             % (" ".join(argv), done.returncode, text[-6000:]))
    return text


def main():
    """Runs the cases of the calling file. Prints each skipped one with its reason; the status is 77
    when all were skipped.
    """
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    for case, reason in result.skipped:
        name = case.id().split(".", 1)[1] if "." in case.id() else case.id()
        print("skipped: %s: %s" % (name, reason), flush=True)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and len(result.skipped) >= max(result.testsRun, 1) else 0)
