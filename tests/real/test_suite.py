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
    "test_damage": "changes bytes of SQLite's files",
    "test_docs": "starts no server",
    "test_install": "starts no server",
    "test_manual": "starts no server",
    "test_ports": "starts no server",
    "test_scale": "needs minutes of a quiet machine",
    "test_serve": "a start on a data folder, and the key ring that a server makes there",
}
FOLDER_ONLY = "a file of the data folder: there is none"
NO_STANDBY = "doctor has a finding: this PostgreSQL has no standby"
ROTATE = "keygen --rotate, which PostgreSQL has in two steps"
DOCTOR = "doctor finds the server by its data folder"
# Cases that run on SQLite alone.
LEFT_OUT = {
    "test_access": {"test_list": FOLDER_ONLY, "test_the_local_token": FOLDER_ONLY},
    "test_driver_cookie": {"test_first_start_makes_a_key_ring": FOLDER_ONLY,
                           "test_rotation": ROTATE, "test_no_key_material_in_the_log": FOLDER_ONLY},
    "test_hypershift": {"test_listed_and_left_alone": DOCTOR},
    "test_hypershift_faults": {
        "test_after_each_request": "each crash waits for the lease of the replica that ended"},
    "test_list": {"test_token": FOLDER_ONLY},
    "test_openapi": {"test_every_answer_is_as_described": "the backup route is SQLite's"},
    "test_orphans": {"test_rows_lost": "removes rows from SQLite's file", "test_doctor": DOCTOR,
                     "test_doctor_elsewhere": FOLDER_ONLY, "test_doctor_finds_the_server": DOCTOR},
    "test_outside": {"test_the_environment": NO_STANDBY, "test_token_list": FOLDER_ONLY,
                     "test_the_same_flags": "the backup route is SQLite's"},
    "test_recovery": {"test_second_server": "several servers may share PostgreSQL"},
    "test_rotation": {"test_changed_key": FOLDER_ONLY, "test_until_the_old_key_can_go": ROTATE,
                      "test_no_copies": ROTATE, "test_under_load": ROTATE},
    "test_status_page": {"test_no_replicas": "of SQLite; test_shared_ring has the list"},
    "test_tls": {"test_health": NO_STANDBY},
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
