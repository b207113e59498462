"""./dev bench --store postgres runs and says what it promises. Times are never judged here."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import real
import postgres

NUMBER = (int, float)
ROWS = {"cpu/put": 150, "cpu/report": 90, "get": 0.35, "replicas": 1.6, "standby": 0.7, "put": 0.6}


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
        self.assertEqual({name: row["budget"] for name, row in rows.items()}, ROWS)
        for name, row in rows.items():
            self.assertGreater(row["value"], 0, name)
            self.assertIsInstance(row["ok"], bool, name)
            self.assertIn("--store postgres", row["command"])
        for name in ("get", "replicas", "standby", "put"):
            self.assertGreater(rows[name]["ratio"], 0, name)


if __name__ == "__main__":
    real.main()
