"""That the soak runs, and that its judgement objects to what grows. Times of the machine are not
judged here.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import soak

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 1000


def looks(**grows):
    """A look a second, of a program that holds the same all the time but for what grows by so much
    a second.
    """
    flat = {"rss_kib": 20000, "fds": 60, "threads": 6, "wal_kib": 4000, "db_kib": 400}
    return [(t, {k: int(v + grows.get(k, 0) * t) for k, v in flat.items()}) for t in range(SECONDS)]


def times(slower=0.0, yardstick=0.0):
    """Ten requests a second, and the yardstick, that take longer by so much a second."""
    return [row for t in range(10 * SECONDS) for row in ((t / 10, "get", 0.001 + slower * t / 10),
                                                        (t / 10, "livez",
                                                         0.001 + yardstick * t / 10))]


class Soak(unittest.TestCase):
    def test_flat_is_flat(self):
        """A program that grows while it warms up only is not objected to."""
        rows = looks()
        for t in range(100):
            rows[t][1]["rss_kib"] = 500000 - t
        self.assertEqual(soak.judge(soak.figures(rows, times(), SECONDS)), [])

    def test_growth_is_seen(self):
        """Slow growth is seen for each thing alone: one descriptor in 200 s, 20 KiB of memory a
        second, files, threads.
        """
        for name, by in (("rss_kib", 20), ("fds", 0.005), ("threads", 0.005), ("wal_kib", 5),
                         ("db_kib", 2)):
            with self.subTest(name):
                wrong = soak.judge(soak.figures(looks(**{name: by}), times(), SECONDS))
                self.assertEqual([w.split(" ")[0] for w in wrong], [name])

    def test_slowing_down_is_seen(self):
        """Answers that take four times as long in the end."""
        wrong = soak.judge(soak.figures(looks(), times(slower=4e-6), SECONDS))
        self.assertTrue(any(w.startswith("get p50_ms") for w in wrong), wrong)

    def test_slowing_down_with_the_machine_is_not(self):
        """The same, when the fixed reply takes four times as long too; the yardstick itself is not
        judged.
        """
        self.assertEqual(soak.judge(soak.figures(looks(), times(slower=4e-6, yardstick=4e-6),
                                                 SECONDS)), [])

    def test_a_few_seconds(self):
        """All kinds of requests are answered as the contract says, and the figures are there."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figures.json")
            ran = subprocess.run([sys.executable, "-B", os.path.join(HERE, "soak.py"), "--seconds",
                                  "4", "--rate", "200",
                                  "--workers", "4", "--json", path],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wrong = [line for line in ran.stdout.splitlines() if line.startswith("FAILED")
                     and "is not flat" not in line]
            self.assertEqual(wrong, [], ran.stdout)
            with open(path, encoding="utf-8") as f:
                values = json.load(f)
        for name in ("rss_kib", "fds", "wal_kib", "db_kib", "put new p50_ms", "get p99_ms",
                     "put repeat p50_ms", "report p50_ms"):
            self.assertEqual(len(values[name]), 4, name)
            self.assertGreater(sum(values[name]), 0, name)


if __name__ == "__main__":
    unittest.main()
