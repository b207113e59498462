"""./dev bench --store postgres runs and says what it promises. Times are never judged here."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import real
import postgres

NUMBER = (int, float)
ROWS = {"cpu/put": 150, "cpu/report": 90, "trips/put": None, "trips/report": None, "get": 0.35,
        "replicas": 1.6, "replicas/disk": None, "standby": 0.7, "put": 0.6, "put/server": None,
        "put-repeat": 0.75,
        "list": 4, "list/label": 4, "list/name": 4, "list/condition": 4}
SQLITE = {"sqlite/" + kind: 1.03 for kind in ("get", "put-repeat", "put-new", "report",
                                              "report-news")}
PROCESSES = {"driver writer", "driver loop", "load", "backends that write"}


class BenchOnPostgres(unittest.TestCase):
    def test_quick_run_writes_every_row(self):
        postgres.programs()
        postgres.owner()
        run = os.path.join(os.environ["HFD_SOURCE_DIR"], "tests", "bench", "run")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            ran = subprocess.run([sys.executable, "-B", run, "--store", "postgres", "--quick",
                                  "--json", path], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False,
                                 env=dict(os.environ, HFD_PROGRAM=real.lib.program()))
            self.assertEqual(ran.returncode, 0, ran.stdout)
            with open(path, encoding="utf-8") as f:
                rows = {r["name"]: r for r in json.load(f)}
        counted = SQLITE if shutil.which("valgrind") and shutil.which("vgdb") else {}
        self.assertEqual({name: row["budget"] for name, row in rows.items()}, {**ROWS, **counted})
        for name, row in rows.items():
            self.assertGreater(row["value"], 0, name)
            if row["budget"] is not None:
                self.assertIsInstance(row["ok"], bool, name)
            self.assertIn("--store postgres", row["command"])
        for name in ("get", "replicas", "replicas/disk", "standby", "put", "put/server", *counted):
            self.assertGreater(rows[name]["ratio"], 0, name)
        for name in ("cpu/put", "cpu/report", "replicas", "standby", "put"):
            spent = rows[name]["cpu_by_process_us"]["measured"]
            self.assertLessEqual(PROCESSES, spent.keys(), name)


if __name__ == "__main__":
    real.main()
