"""Servers of two versions of the schema on one PostgreSQL. The newer program is a second build of
this tree with two more migrations (newer/): one expands, one contracts.
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import real
import postgres
from lib import Client, Place, Server, clean_env, cluster_input, eventually, guresid, program

NEWER = os.environ.get("HFD_NEWER") or os.path.join(os.path.dirname(program()),
                                                    "tests/real/newer_driver")


class NewerServer(Server):
    def command(self):
        return [NEWER] + super().command()[1:]


class Versions(real.unittest.TestCase):
    def setUp(self):
        if not os.access(NEWER, os.X_OK):
            real.skip("%s is not built: cmake --build build --target newer_driver" % NEWER)
        self.server = postgres.Postgres()
        self.addCleanup(self.server.close)
        self.server.start()
        folder = tempfile.mkdtemp(prefix="hfd-versions-")
        self.addCleanup(shutil.rmtree, folder, True)
        self.place = Place(folder, base=self.server.url())
        self.old = Server("--demo=1", place=self.place)
        self.new = NewerServer("--demo=1", place=self.place)
        for server in (self.old, self.new):
            self.addCleanup(server.close)

    def schema(self):
        rows = postgres.query(self.place.url, "SELECT key, value FROM hfd_meta"
                              " WHERE key IN ('schema_now', 'schema_min')")
        return {key: int(value) for key, value in rows}

    def tables(self):
        return postgres.query(self.place.url, "SELECT to_regclass('newer') IS NOT NULL")[0][0]

    def contract(self):
        return subprocess.run([NEWER, "migrate", "--contract", "--store", self.place.url],
                              env=clean_env(), capture_output=True, text=True, timeout=60,
                              check=False)

    def order_at(self, one, other):
        """An order at one server becomes ready, as the other sees it."""
        gid = guresid()
        here, there = Client(one), Client(other)
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        answer = here.put("/" + gid, cluster_input())
        self.assertEqual(answer.status, 202, answer)
        headers = real.lib.Case.cookie_header(answer.cookie)
        eventually(lambda: there.get("/" + gid, headers).status == 200, "it is ready", 60)

    def test_window(self):
        self.old.start()
        before = self.schema()
        self.assertEqual(before["schema_min"], before["schema_now"])
        self.new.start()
        both = self.schema()
        self.assertEqual(both["schema_now"], before["schema_now"] + 1)
        self.assertEqual(both["schema_min"], before["schema_min"])
        self.order_at(self.old, self.new)
        self.order_at(self.new, self.old)
        self.old.restart() # an older program starts on the newer schema
        self.order_at(self.old, self.new)
        self.assertEqual(self.schema(), both)
        refused = self.contract()
        self.assertEqual(refused.returncode, 73, refused.stderr)
        self.assertIn(socket.gethostname(), refused.stderr)
        self.assertIn("(schema version %d)" % before["schema_now"], refused.stderr)
        self.assertEqual(self.tables(), "t")
        self.old.sigterm()
        eventually(lambda: self.contract().returncode == 0, "the old servers have gone", 60, 0.5)
        after = self.schema()
        self.assertEqual(after, {"schema_now": before["schema_now"] + 2,
                                 "schema_min": before["schema_now"] + 2})
        self.assertEqual(self.tables(), "f")
        self.order_at(self.new, self.new)
        with self.assertRaises(AssertionError) as refused:
            self.old.start()
        self.assertIn("knows versions up to", str(refused.exception))

    def test_stopped(self):
        """An older server that was stopped while the schema contracted ends when it goes on."""
        self.old.start()
        self.new.start()
        stopped = self.old.proc
        stopped.send_signal(signal.SIGSTOP)
        self.addCleanup(stopped.send_signal, signal.SIGCONT)
        eventually(lambda: self.contract().returncode == 0, "the old server is gone", 60, 0.5)
        stopped.send_signal(signal.SIGCONT)
        self.assertEqual(self.old.wait(), 73, self.old.tail())
        lines = self.old.tail(1000)
        self.assertEqual(lines.count("stopping: the database needs a newer version"), 1, lines)
        self.assertEqual(lines.count("needs programs that know schema version"), 1, lines)
        self.order_at(self.new, self.new)


if __name__ == "__main__":
    real.main()
