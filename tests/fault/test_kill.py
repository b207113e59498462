"""The real program is ended, stopped and starved under load, with a ledger of what it acknowledged.

The means are kill -9, SIGSTOP and SIGCONT, a full disk, and a second server on the same data.
Acknowledged changes are there afterwards. A refusal names its reason.

HFD_IT_CYCLES sets the number of cycles (4 here; the full tier runs the 200 kills of
tests/integration/test_recovery.py as well).
"""
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import test_recovery
from lib import Client, Server, clean_env, cluster_input, eventually, guresid

EXIT_INTERNAL, EXIT_DATA = 70, 73  # handlers/cli/cli.h
CYCLES = int(os.environ.get("HFD_IT_CYCLES", "4"))
FULL_BYTES = 3 << 20


def stopped(pid):
    """Tells if all threads of a process are."""
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread), encoding="utf-8") as f:
            if f.read().rsplit(")", 1)[1].split()[0] != "T":
                return False
    return True


class StopUnderLoad(test_recovery.KillUnderLoad):
    test_twenty_kills = None  # it runs by itself

    def pause(self):
        """SIGSTOP, and the wait until it has reached every thread."""
        self.server.proc.send_signal(signal.SIGSTOP)
        eventually(lambda: stopped(self.server.proc.pid), "the process is stopped", every_s=0.002)

    def silent(self):
        """A stopped process does not answer: the kernel takes its connections, but nothing comes
        back.
        """
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
            s.settimeout(0.2)
            s.sendall(b"GET /nobody HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                return s.recv(1) == b""
            except socket.timeout:
                return True

    def load(self):
        """Starts workers that run until stop is set. Returns it with their failures and threads."""
        stop, failures = threading.Event(), []
        threads = [threading.Thread(target=self.worker, args=(i, stop, failures))
                   for i in range(self.WORKERS)]
        for t in threads:
            t.start()
        return stop, failures, threads

    def reach(self, more, failures):
        goal = self.acked + more
        eventually(lambda: self.acked >= goal or failures, "%d writes are acknowledged" % goal,
                   every_s=0.002)

    def test_stop_continue_kill(self):
        """SIGSTOP in the middle of load, SIGCONT, load again, then kill -9, of a stopped process
        every other time: nothing is lost.
        """
        for cycle in range(CYCLES):
            self.reports.clear()
            stop, failures, threads = self.load()
            self.reach(self.random.randrange(5, 100), failures)
            self.pause()
            self.assertTrue(self.silent())
            self.server.proc.send_signal(signal.SIGCONT)
            self.reach(self.random.randrange(5, 100), failures)
            if cycle % 2 == 1:
                self.pause()
            self.server.kill9()
            stop.set()
            for t in threads:
                t.join()
            self.assertEqual(failures, [], self.explain("cycle %d" % cycle))
            self.server.start()
            client = Client(self.server)
            self.check_reports(client)
            self.check_all(client)
            client.close()


class OneServer(unittest.TestCase):
    """One process at a time has the data."""

    def second(self, first):
        second = Server(data=first.data)
        self.addCleanup(second.close)
        done = subprocess.run(second.command(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False,
                              env=clean_env())
        return done.returncode, done.stdout + done.stderr

    def test_second_server_refuses(self):
        """It ends with 73 and names the folder and the process that has it, also while that is
        stopped; after a kill -9 it starts.
        """
        with Server() as first:
            for stopped in (False, True):
                if stopped:
                    first.proc.send_signal(signal.SIGSTOP)
                status, text = self.second(first)
                self.assertEqual(status, EXIT_DATA, text)
                self.assertIn(first.data, text)
                self.assertIn("in use by process %d" % first.proc.pid, text)
            first.kill9()
            with Server(data=first.data) as second:
                client = Client(second)
                self.assertEqual(client.put("/abc", cluster_input()).status, 202)
                client.close()

    def test_many_start_at_once(self):
        """Of eight servers that start at once on new data one runs, seven refuse with 73."""
        data = tempfile.mkdtemp(prefix="hfd-it-")
        self.addCleanup(shutil.rmtree, data, ignore_errors=True)
        servers = [Server(data=data).spawn() for _ in range(8)]
        try:
            eventually(lambda: any(s.ready.is_set() for s in servers), "one is ready")
            eventually(lambda: sum(not s.alive() for s in servers) == 7, "seven have ended")
            self.assertEqual(sorted(s.proc.poll() for s in servers if not s.alive()),
                             [EXIT_DATA] * 7)
        finally:
            for s in servers:
                if s.alive():
                    s.kill9()
                s.proc = None
                s.close()


class FullDisk(unittest.TestCase):
    """The disk is full in the middle of load: the server says so and ends; with room again, all
    that it acknowledged is there.
    """

    def small_disk(self):
        """A file system of FULL_BYTES, and how to give it more room."""
        path = tempfile.mkdtemp(prefix="hfd-it-full-")
        self.addCleanup(os.rmdir, path)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % FULL_BYTES, "hfd-test",
                                  path], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(subprocess.run, ["umount", path], check=True)
        return path, lambda: subprocess.run(["mount", "-o", "remount,size=%d" % (16 * FULL_BYTES),
                                             path], check=True)

    def fill(self, server):
        """Orders until one is refused; the acknowledged ones."""
        acked, client = [], Client(server)
        try:
            while True:
                gid = guresid("full")
                answer = client.send_once("PUT", "/" + gid,
                                          str(cluster_input(spec={"f": "x" * 4000})).replace(
                                              "'", '"'))
                if answer.status != 202:
                    self.assertIn(answer.status, (500, 503), repr(answer))
                    break
                acked.append(gid)
                self.assertLess(len(acked), 20000)
        except test_recovery.LOST:
            pass
        finally:
            client.close()
        self.assertGreater(len(acked), 20)
        return acked

    def check_read(self, server, acked):
        client = Client(server)
        for gid in acked:
            self.assertEqual(client.get("/" + gid).status, 202, gid)
        client.close()

    def check_all(self, server, acked):
        self.check_read(server, acked)
        client = Client(server)
        self.assertEqual(client.put("/" + guresid("after"), cluster_input()).status, 202)
        client.close()

    def ends(self, server):
        self.assertEqual(server.wait(), EXIT_INTERNAL)
        self.assertIn("the store failed", "\n".join(server.lines))

    def test_disk_full(self):
        """A file system without room (ENOSPC): 5xx, exit 70; a start on the full disk refuses with
        73 or finds all; with room all works.
        """
        path, more_room = self.small_disk()
        server = Server(data=os.path.join(path, "data"))
        self.addCleanup(server.close)
        server.start()
        acked = self.fill(server)
        self.ends(server)
        try:
            # what its end may have freed
            with open(os.path.join(path, "filler"), "wb", buffering=0) as f:
                while True:
                    f.write(b"x" * 4096)
        except OSError:
            pass
        server.spawn()
        eventually(lambda: server.ready.is_set() or not server.alive(),
                   "a start on the full disk is ready or over")
        if server.alive():  # its log has room of its own: until that is used up it works
            self.check_read(server, acked)
            server.kill9()
        else:
            self.assertEqual(server.wait(), EXIT_DATA)
        more_room()
        server.start()
        self.check_all(server, acked)
        self.assertEqual(server.sigterm(), 0)

    def test_file_size_limit(self):
        """A limit on the size of files (EFBIG), as a quota or `ulimit -f` gives: 5xx, exit 70;
        without it all is there.
        """
        server = Server()
        self.addCleanup(server.close)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, before[1]))
            server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        acked = self.fill(server)
        self.ends(server)
        server.start()
        self.check_all(server, acked)
        self.assertEqual(server.sigterm(), 0)


if __name__ == "__main__":
    unittest.main()
