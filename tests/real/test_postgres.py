"""A PostgreSQL of a test's own, and the proxy in front of it: other tests stand on them."""
import os
import unittest

import real
import postgres
import tcp_proxy


class Fixtures(unittest.TestCase):
    def setUp(self):
        self.server = postgres.Postgres()
        self.addCleanup(self.server.close)
        self.server.start()

    def test_life(self):
        """It runs as no root, sorts by bytes, comes back after a crash, and leaves nothing."""
        s = self.server
        self.assertNotIn(0, [os.stat("/proc/%d" % pid).st_uid for pid in s.processes()])
        self.assertEqual(s.query("SELECT datcollate, 'Z' < 'a' FROM pg_database"
                                 " WHERE datname = 'hfd'"), [["C", "t"]])
        s.query("CREATE TABLE t (a BIGINT)")
        s.query("INSERT INTO t VALUES (1)")
        s.kill9()
        s.start()
        self.assertEqual(s.query("SELECT a FROM t"), [["1"]])
        s.pause()
        self.assertFalse(s.answers())
        s.resume()
        eventually(s.answers)
        pids = s.processes()
        s.close()
        eventually(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in pids))
        self.assertFalse(os.path.exists(s.dir))

    def test_cut_commit(self):
        """A COMMIT that is cut before the server has it leaves nothing. Cut after, its row is
        there. The client sees a failure both times.
        """
        self.server.query("CREATE TABLE hfd_commit (a TEXT)")
        with tcp_proxy.Proxy(self.server.port) as proxy:
            for when, there in (("before", []), ("after", [["after"]])):
                proxy.tell("match hfd_commit")
                proxy.cut(1, when)
                with self.assertRaises(AssertionError):
                    postgres.query(postgres.url(proxy.port), "BEGIN; INSERT INTO hfd_commit VALUES"
                                   " ('%s'); COMMIT;" % when)
                self.assertTrue(proxy.fired())
                self.assertEqual(self.server.query("SELECT a FROM hfd_commit"), there)


def eventually(probe):
    real.lib.eventually(probe, "the server follows", 60)


if __name__ == "__main__":
    real.main()
