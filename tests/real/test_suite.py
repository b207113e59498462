"""The integration suite on PostgreSQL: the same files as on SQLite. HFD_TEST_STORE gives each
server a database of its own.

    test_suite.py --run FILE    the cases of one file, without those that are left out
"""
import concurrent.futures
import glob
import importlib
import os
import subprocess
import sys
import unittest

import real
import postgres

FOLDER = os.path.join(real.ROOT, "tests", "integration")
DEADLINE_S = 600
# Files that run on SQLite alone, each with its reason.
NOT_RUN = {
    "test_backup": "the route is SQLite's; test_move has backup and restore of PostgreSQL",
    "test_chart": "starts no server",
    "test_docs": "starts no server",
    "test_install": "starts no server",
    "test_manual": "starts no server",
    "test_planted": "files of the data folder",
    "test_ports": "starts no server",
    "test_scale": "needs minutes of a quiet machine",
}
FOLDER_ONLY = "a file of the data folder: there is none"
ROTATE = "keygen --rotate, which PostgreSQL has in two steps"
SQLITE_FILE = "changes bytes of SQLite's files"
# Cases that run on SQLite alone.
LEFT_OUT = {
    "test_access": {"test_list": FOLDER_ONLY, "test_the_local_token": FOLDER_ONLY,
                    "test_rows_of_others_go": "it writes rows to SQLite's file"},
    "test_damage": {"test_every_byte": SQLITE_FILE, "test_a_flipped_log": SQLITE_FILE,
                    "test_the_last_commit": SQLITE_FILE,
                    "test_rows_without_checksums": "PostgreSQL came after rows had them"},
    "test_driver_cookie": {"test_first_start_makes_a_key_ring": FOLDER_ONLY,
                           "test_rotation": ROTATE, "test_no_key_material_in_the_log": FOLDER_ONLY},
    "test_foreign": {"test_backup": "the route is SQLite's"},
    "test_list": {"test_token": FOLDER_ONLY},
    "test_openapi": {"test_every_answer_is_as_described": "the backup route is SQLite's"},
    "test_orphans": {"test_doctor_elsewhere": FOLDER_ONLY},
    "test_outside": {"test_token_list": FOLDER_ONLY,
                     "test_the_same_flags": "the backup route is SQLite's"},
    "test_played": {"test_each_page": "the commands of the pages are about a data folder"},
    "test_recovery": {"test_second_server": "several servers may share PostgreSQL"},
    "test_rotation": {"test_changed_key": FOLDER_ONLY, "test_until_the_old_key_can_go": ROTATE,
                      "test_no_copies": ROTATE, "test_under_load": ROTATE},
    "test_serve": {"test_private_files": FOLDER_ONLY, "test_access_of_others": FOLDER_ONLY,
                   "test_key_ring_is_made_once": "no server makes a ring for PostgreSQL",
                   "test_data_folders": FOLDER_ONLY,
                   "test_a_refused_start_writes_nothing": FOLDER_ONLY,
                   "test_sighup_takes_up_new_keys": ROTATE,
                   "test_broken_store": "a full disk of SQLite's; test_limits has PostgreSQL's"},
    "test_status_page": {"test_no_replicas": "of SQLite; test_shared_ring has the list"},
    "test_tls": {"test_doctor": "doctor asks no server: it reads PostgreSQL beside them"},
}
# The longest first.
LONG = ("test_access", "test_remote", "test_hypershift", "test_rotation", "test_tls",
        "test_hypershift_api", "test_hypershift_faults", "test_recovery")


def files():
    """All files of the suite but those that are not run."""
    found = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(FOLDER, "test_*.py"))}
    unknown = (set(NOT_RUN) | set(LEFT_OUT) | set(LONG)) - found
    assert not unknown, "no such files: %s" % unknown
    return LONG + tuple(sorted(found - set(NOT_RUN) - set(LONG)))


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
        names = files()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for name, (status, text) in zip(names, pool.map(self.run_one, names)):
                with self.subTest(name):
                    self.assertEqual(status, 0, text[-12000:])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--run":
        sys.exit(run_file(sys.argv[2]))
    real.main()
