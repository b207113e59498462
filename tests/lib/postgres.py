"""A PostgreSQL of a test's own: a server on a free port of 127.0.0.1, in a folder of its own.

The server never runs as root: a test that does starts it as the user postgres, which Debian's
package makes. It ends with the test, even when the test is killed. Standard library only; SQL goes
through psql.
"""
import contextlib
import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from ports import free_port

LEAST = 13 # the oldest version that the program takes
START_S = 60
USER = "hfd"
PASSWORD = "hfd"


def programs():
    """The folder of the newest PostgreSQL of this machine; skips the test when there is none."""
    found = []
    for path in glob.glob("/usr/lib/postgresql/*/bin/postgres"):
        version = path.split("/")[4]
        if version.isdigit() and int(version) >= LEAST:
            found.append((int(version), os.path.dirname(path)))
    if not found:
        raise unittest.SkipTest("PostgreSQL is not installed: apt-get install postgresql-15")
    return max(found)[1]


def owner():
    """The user that the server runs as: None for the own one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise unittest.SkipTest("PostgreSQL does not run as root, and there is no user postgres")


def as_owner(*argv, end_with_us=False):
    """A command that runs as that user; with end_with_us it gets SIGINT when this process ends."""
    head = ["setpriv"]
    if owner() is not None:
        head += ["--reuid=%d" % owner().pw_uid, "--regid=%d" % owner().pw_gid, "--clear-groups"]
    if end_with_us:
        head += ["--pdeathsig", "INT"]
    return (head if len(head) > 1 else []) + list(argv)


def folder(prefix="hfd-pg-"):
    """A new folder that the server's user owns."""
    path = tempfile.mkdtemp(prefix=prefix)
    if owner() is not None:
        os.chown(path, owner().pw_uid, owner().pw_gid)
    return path


def url(port, database="hfd", host="127.0.0.1", **more):
    """A libpq URL with the user and the password of the test's server."""
    tail = "&".join("%s=%s" % pair for pair in sorted(more.items()))
    return "postgres://%s:%s@%s:%d/%s%s" % (USER, PASSWORD, host, port, database,
                                            "?" + tail if tail else "")


def query(where, text, deadline_s=60):
    """Runs SQL by psql: a list of rows, each a list of texts. Raises when it fails.

    where -- a libpq URL
    text  -- one statement
    """
    done = subprocess.run([os.path.join(programs(), "psql"), "-X", "-q", "-A", "-t", "-v",
                           "ON_ERROR_STOP=1", "-F", "\x1f", "-R", "\x1e", "-c", text, where],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=deadline_s, check=False)
    if done.returncode != 0:
        raise AssertionError("psql: %s\n%s" % (text, done.stderr.decode("utf-8", "replace")))
    rows = done.stdout.decode("utf-8").rstrip("\n")
    return [row.split("\x1f") for row in rows.split("\x1e")] if rows else []


def documents(where, text):
    """Like query: each row as a dict with the types of JSON."""
    rows = query(where, "SELECT row_to_json(t) FROM (%s) t" % text)
    return [json.loads(row[0]) for row in rows]


def stopped(pid):
    """True if a process of one thread is stopped."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


class Postgres:
    """One server.

    fsync    -- False is faster; True where the test cuts the power of the server
    settings -- lines of postgresql.conf
    """

    def __init__(self, fsync=False, settings=()):
        self.bin = programs()
        self.dir = folder()
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log")
        self.port = free_port()
        self.settings = [
            "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''",
            "fsync = %s" % ("on" if fsync else "off"), "max_connections = 100",
            "shared_buffers = 64MB", "log_line_prefix = '%m [%p] %a '",
        ] + list(settings)
        self.proc = None
        self.made = False

    def make(self):
        """Makes the database cluster: collation C, passwords by SCRAM."""
        password = os.path.join(self.dir, "password")
        with open(password, "w", encoding="utf-8") as f:
            f.write(PASSWORD + "\n")
        os.chmod(password, 0o644)
        subprocess.run(as_owner(os.path.join(self.bin, "initdb"), "-D", self.data, "-U", USER,
                                "--pwfile=" + password, "-A", "scram-sha-256", "--locale=C", "-E",
                                "UTF8", "--no-sync"),
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                       cwd=self.dir)
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in self.settings))
        self.made = True

    def start(self):
        """Starts the server and waits until it answers."""
        assert self.proc is None, "already running"
        fresh = not self.made
        if fresh:
            self.make()
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(
                as_owner(os.path.join(self.bin, "postgres"), "-D", self.data, "-p",
                         str(self.port), end_with_us=True),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir)
        end = time.monotonic() + START_S
        while not self.answers():
            if self.proc.poll() is not None or time.monotonic() > end:
                self.stop("immediate")
                raise AssertionError("PostgreSQL did not start:\n" + self.tail())
            time.sleep(0.05)
        if fresh:
            self.create("hfd")
        return self

    def answers(self):
        return subprocess.run([os.path.join(self.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p",
                               str(self.port)], check=False).returncode == 0

    def stop(self, how="fast"):
        """Ends the server: `fast` rolls back what is under way, `immediate` is a crash of it."""
        if self.proc is None:
            return
        self.proc.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
        try:
            self.proc.wait(START_S)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc = None

    def kill9(self):
        """Ends the server's first process without a goodbye; the others see it and end too."""
        self.proc.kill()
        self.proc.wait()
        self.proc = None

    def processes(self):
        """The server's first process and its children."""
        found = [self.proc.pid]
        for task in glob.glob("/proc/%d/task/*/children" % self.proc.pid):
            with open(task, encoding="utf-8") as f:
                found += [int(pid) for pid in f.read().split()]
        return found

    def pause(self):
        """Stops all its processes: connections stay, and nothing answers. The first one is stopped
        first, and makes no further ones.
        """
        os.kill(self.proc.pid, signal.SIGSTOP)
        end = time.monotonic() + START_S
        while not stopped(self.proc.pid) and time.monotonic() < end:
            time.sleep(0.002)
        self.send(signal.SIGSTOP, self.processes())

    def resume(self):
        self.send(signal.SIGCONT, reversed(self.processes()))

    @staticmethod
    def send(number, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # one of a connection that has ended
                os.kill(pid, number)

    def url(self, database="hfd", **more):
        return url(self.port, database, **more)

    def create(self, database):
        """Makes an empty database; returns its URL."""
        query(self.url("postgres"), "CREATE DATABASE %s" % database)
        return self.url(database)

    def drop(self, database):
        query(self.url("postgres"), "DROP DATABASE IF EXISTS %s WITH (FORCE)" % database)

    def query(self, text, database="hfd"):
        return query(self.url(database), text)

    def tail(self, lines=20):
        with contextlib.suppress(OSError):
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return "".join(f.readlines()[-lines:])
        return ""

    def close(self):
        """Ends the server and removes its folder."""
        if self.proc is not None:
            with contextlib.suppress(ProcessLookupError):
                self.resume()
        self.stop("immediate")
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *exc):
        self.close()
