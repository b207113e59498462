"""The store on PostgreSQL: the unit tests that know no engine, and two replicas interleaved."""
import os
import subprocess
import unittest

import real
import postgres

BUILD = os.environ.get("HFD_BUILD_DIR", os.path.join(real.ROOT, "build"))
# Programs that read HFD_TEST_STORE; CMakeLists.txt of this folder has them built.
UNIT = ("test_unit", "test_row_cache", "test_store", "test_rows", "test_fleet_search",
        "test_migrate", "test_points", "test_db", "test_scenarios", "test_server", "test_demo",
        "test_ring_check", "test_health_intake", "test_remote_pass", "test_remote_trouble",
        "test_remote_orphans", "test_orphans", "test_overview", "test_aging", "test_past",
        "test_told", "test_shares", "test_resource", "test_steady", "test_serve_reseal")
DEADLINE_S = 600


class Engine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()

    def program(self, *path):
        done = subprocess.run([os.path.join(BUILD, "tests", *path)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env=dict(os.environ, HFD_TEST_STORE=self.database.url(),
                                       HFD_TEST_QUICK="1"),
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout.decode("utf-8", "replace")[-8000:])

    def test_unit(self):
        """The store's unit tests pass on PostgreSQL as they do on SQLite."""
        for name in UNIT:
            with self.subTest(name):
                self.program("unit", name)

    def test_interleave(self):
        """Each rule that a single writer keeps by itself holds with two."""
        self.program("fault", "test_interleave")


if __name__ == "__main__":
    real.main()
