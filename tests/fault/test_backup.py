"""Backups of the real program under load, with a ledger of what it acknowledged.

A backup restores to a state that was once true. All that was acknowledged before its request is in
it, and nothing that was sent after its end. When it has an operation, it has each operation that
was acknowledged before that one was sent. And the program loses nothing by a kill -9 while a backup
is made.

HFD_IT_CYCLES sets the number of backups (3 here).
"""
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

from lib import (BASE, LABEL, Client, Server, clean_env, cluster_input, eventually, guresid,
                 program, run)

CYCLES = int(os.environ.get("HFD_IT_CYCLES", "3"))
WORKERS = 4
FILLER = "x" * 30000  # a backup takes several steps of 2 MiB
LOST = (OSError, http.client.HTTPException)


class Order:
    """The PUT of a new resource, by the clock of this test."""

    def __init__(self, gid):
        self.gid = gid
        self.sent, self.acked = time.monotonic(), None


class UnderLoad(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="hfd-it-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.server = Server("--adapters-required-cluster", "none-yet")
        self.addCleanup(self.server.close)
        self.server.start()
        self.ledger, self.failures, self.stop = [], [], threading.Event()

    def fill(self):
        client = Client(self.server)
        for i in range(150):
            gid = "fill-%d" % i
            self.assertEqual(client.put("/" + gid, cluster_input(spec={"big": FILLER})).status, 202)
        client.close()

    def send(self, client, gid):
        op = Order(gid)
        self.ledger.append(op)
        body = cluster_input(spec={"v": 1}, nodepools=[{"name": "pool", "spec": {"v": 1}}])
        answer = client.send_once("PUT", "/" + gid, json.dumps(body))
        if answer.status != 202:
            raise AssertionError("PUT %s: %r" % (gid, answer))
        op.acked = time.monotonic()

    def worker(self, number):
        """Orders a resource, then the next one, until the connection breaks."""
        client = Client(self.server)
        try:
            while not self.stop.is_set():
                self.send(client, guresid("w%d" % number))
        except LOST:
            pass
        except BaseException as e:
            self.failures.append(repr(e))
        finally:
            client.close()

    def load(self):
        self.stop.clear()
        threads = [threading.Thread(target=self.worker, args=(i,)) for i in range(WORKERS)]
        for t in threads:
            t.start()
        return threads

    def grown(self, by):
        goal = len(self.ledger) + by
        eventually(lambda: len(self.ledger) >= goal or self.failures, "load goes on",
                   every_s=0.002)

    def end_load(self, threads):
        self.stop.set()
        for t in threads:
            t.join()
        self.assertEqual(self.failures, [], self.server.tail())

    def backup(self, number):
        """Gives the file, and when it was asked for and whole."""
        path = os.path.join(self.scratch, "b%d" % number)
        began = time.monotonic()
        done = run("backup", path, "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path, began, time.monotonic()

    def restored(self, path):
        """Restores a backup. The GUResIDs of all clusters, and those of all nodepools."""
        data = path + ".data"
        os.mkdir(data, 0o700)
        shutil.copy(os.path.join(self.server.data, "keys"), data)
        done = run("restore", path, "--data", data)
        self.assertEqual(done.returncode, 0, done.stderr)
        with Server(*self.server.flags, data=data) as server:
            client = Client(server)
            kinds = [self.ordered(client, kind) for kind in ("clusters", "nodepools")]
            for gid in sorted(kinds[0])[:20]:
                self.assertEqual(client.get("/" + gid).status, 202, gid)
            client.close()
        return kinds

    @staticmethod
    def ordered(client, kind):
        found, page = set(), 1
        while True:
            items = client.get("%s/%s?pageSize=500&page=%d&fields=spec,labels"
                               % (BASE, kind, page)).json["items"]
            found.update(i["labels"][LABEL] for i in items if "v" in i["spec"])
            if len(items) < 500:
                return found
            page += 1

    def check(self, ledger, have, began, ended):
        inside = [op for op in ledger if op.gid in have]
        outside = [op for op in ledger if op.gid not in have]
        self.assertEqual(have - {op.gid for op in ledger}, set(), "nobody ordered these")
        for op in outside:
            self.assertFalse(op.acked is not None and op.acked < began,
                             "%s was acknowledged before the backup" % op.gid)
        for op in inside:
            self.assertLessEqual(op.sent, ended, "%s was sent after the backup" % op.gid)
        first_missing = min((op.acked for op in outside if op.acked is not None), default=None)
        last_sent = max(op.sent for op in inside)
        if first_missing is not None:
            self.assertLess(last_sent, first_missing,
                            "the backup has an operation that was sent after the answer to one "
                            "that it has not")

    def test_once_true(self):
        """Backups while four callers order: each restores to a state that was once true."""
        self.fill()
        threads = self.load()
        self.grown(40)
        made = []
        for i in range(CYCLES):
            made.append(self.backup(i))
            self.grown(20)
        self.end_load(threads)
        ledger = list(self.ledger)
        for path, began, ended in made:
            clusters, pools = self.restored(path)
            self.assertEqual(clusters, pools, "a PUT is whole, or not there")
            self.check(ledger, clusters, began, ended)
            self.assertLess(len(clusters), len(ledger), "there was load behind the backup")

    def test_kill_meanwhile(self):
        """kill -9 while a backup is made and load runs. The file is whole or not there, and the
        server has all that it acknowledged.
        """
        self.fill()
        path = os.path.join(self.scratch, "never")
        for cycle in range(CYCLES):
            threads = self.load()
            self.grown(10)
            command = subprocess.Popen(
                [program(), "backup", path, "--data", self.server.data],
                env=clean_env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            part = (os.path.join(self.server.data, "backup.tmp"), path + ".part")[cycle % 2]
            # the copy is under way, or just over: each is a moment to be killed at
            eventually(lambda: os.path.exists(part) or command.poll() is not None,
                       "a backup is made", every_s=0)
            self.server.kill9()
            self.end_load(threads)
            self.assertEqual(command.wait(60) == 0, os.path.exists(path))
            self.assertFalse(os.path.exists(path + ".part"))
            if command.returncode == 0:
                os.unlink(path)
            self.server.start()
            self.assertNotIn("backup.tmp", os.listdir(self.server.data))
            client = Client(self.server)
            have = self.ordered(client, "clusters")
            client.close()
            lost = {op.gid for op in self.ledger if op.acked is not None} - have
            self.assertEqual(lost, set())


if __name__ == "__main__":
    unittest.main()
