"""The integration suite on PostgreSQL: the same files as on SQLite. HFD_TEST_STORE gives each
server a database of its own.

    test_suite.py --run FILE    the cases of one file, without those that are left out
"""
import concurrent.futures
import importlib
import os
import subprocess
import sys
import unittest

import real
import postgres

FOLDER = os.path.join(real.ROOT, "tests", "integration")
DEADLINE_S = 600
FILES = ("test_status", "test_demo", "test_list", "test_pacemaker", "test_http",
         "test_driver_tables", "test_fleet_api", "test_search", "test_driver_input",
         "test_fleet_doors", "test_driver_cookie", "test_outcome", "test_overview",
         "test_spec_schema", "test_manifests", "test_openapi", "test_validate", "test_hostile",
         "test_jwt", "test_gzip", "test_pages", "test_client", "test_status_page")
# Cases about a data folder: with PostgreSQL there is none.
LEFT_OUT = {
    "test_driver_cookie": ("test_first_start_makes_a_key_ring", "test_rotation",
                           "test_no_key_material_in_the_log"),
    "test_list": ("test_token",), # starts a server on a data folder by itself
    "test_status_page": ("test_no_replicas",), # of SQLite; test_shared_ring has the list
    "test_openapi": ("test_every_answer_is_as_described",), # the backup route
}


def cases(suite):
    """All cases of a suite, one by one."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def run_file(name):
    """Runs a file's cases but those that are left out; returns the exit status."""
    sys.path.insert(0, FOLDER)
    os.chdir(FOLDER)
    found = list(cases(unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module(name))))
    out = LEFT_OUT.get(name, ())
    unknown = set(out) - {case._testMethodName for case in found}
    assert not unknown, "no such cases: %s" % unknown
    result = unittest.TextTestRunner().run(
        unittest.TestSuite(case for case in found if case._testMethodName not in out))
    return 0 if result.wasSuccessful() else 1


class Suite(unittest.TestCase):
    def run_one(self, name):
        done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "--run", name],
                              env=dict(os.environ, HFD_TEST_STORE=self.database.url("postgres")),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def test_files(self):
        """Each file passes as it does on SQLite."""
        self.database = postgres.Postgres(settings=["max_connections = 400"])
        self.addCleanup(self.database.close)
        self.database.start()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, (status, text) in zip(FILES, pool.map(self.run_one, FILES)):
                with self.subTest(name):
                    self.assertEqual(status, 0, text[-12000:])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--run":
        sys.exit(run_file(sys.argv[2]))
    real.main()
