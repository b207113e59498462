"""That the measurements run and say what they promise. Times are never judged here."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBER = (int, float)


class Bench(unittest.TestCase):
    # Every name gives a row of its own with all the members that readers of the JSON rely on.
    def test_quick_run_writes_every_row(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, "run"), "--quick",
                                  "--markdown", "--json", path], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            with open(path, encoding="utf-8") as f:
                rows = {r["name"]: r for r in json.load(f)}
        table = [line for line in ran.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual(len(table), 1 + len(rows), "--markdown: a head and a line for each row")
        self.assertEqual({line.count(" |") for line in table}, {7})
        self.assertGreater(rows["events/50/p99"]["value"], 0)
        for name in ("get", "put-repeat", "put-new", "report", "list", "start", "memory", "status",
                     "polls", "hypershift"):
            row = rows[name]
            for key in ("value", "yardstick", "ratio", "budget"):
                self.assertIsInstance(row[key], NUMBER, "%s of %s" % (key, name))
            self.assertGreater(row["value"], 0, name)
            self.assertIsInstance(row["ok"], bool, name)
            self.assertEqual(row["command"], "./dev bench " + name)

    # With wrk, its own measurement is there as well.
    @unittest.skipUnless(shutil.which("wrk"), "there is no wrk")
    def test_wrk(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, "run"), "get", "--quick",
                                  "--wrk", "--warm", "--json", path],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            with open(path, encoding="utf-8") as f:
                rows = {r["name"]: r for r in json.load(f)}
        self.assertGreater(rows["get/wrk"]["value"], 0)
        self.assertGreater(rows["get/wrk"]["yardstick"], 0)

    # A name that is not there is refused, and the right ones are told.
    def test_unknown_name(self):
        ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, "run"), "speed"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("put-repeat", ran.stdout)


if __name__ == "__main__":
    unittest.main()
