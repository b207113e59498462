"""The store on PostgreSQL: the unit tests that know no engine, and two replicas interleaved."""
import glob
import os
import re
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
        "test_told", "test_shares", "test_resource", "test_steady", "test_serve_reseal",
        "test_replica", "test_remote_thread", "test_events")
# Those that open a store and run on SQLite alone, each with its reason.
NOT_RUN = {
    "test_backup": "the copy of SQLite's file; test_move.py has backups of PostgreSQL",
    "test_gather": "compares what PostgreSQL's engine decides with SQLite, in this process",
    "test_move": "changes SQLite's files by hand; test_move.py moves to PostgreSQL and back",
    "test_postgres_open": "of PostgreSQL, and needs none",
    "test_store_faults": "calls of SQLite's disk fail; test_limits.py and test_commits.py have "
                         "failures of PostgreSQL",
    "test_wal": "of SQLite's write-ahead log",
}
# A source with one of these opens a store.
OPENS = re.compile(r"_(?:store|db)_open\(|lib/(?:world|scene|remote_world|sqlite_burst)\.h")
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

    def test_all_are_listed(self):
        """Each unit test that opens a store runs here, or stands in NOT_RUN."""
        found = set()
        for path in glob.glob(os.path.join(real.ROOT, "tests", "unit", "test_*.c")):
            with open(path, encoding="utf-8") as f:
                if OPENS.search(f.read()):
                    found.add(os.path.basename(path)[:-2])
        self.assertEqual(found - set(UNIT) - set(NOT_RUN), set())
        self.assertEqual(set(NOT_RUN) - found, set())
        self.assertEqual(set(NOT_RUN) & set(UNIT), set())

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
