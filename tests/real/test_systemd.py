#!/usr/bin/env python3
"""systemd's own tool reads the unit."""
import os
import re
import subprocess
import tempfile
import unittest

import real

UNIT = os.path.join(real.ROOT, "docker", "systemd", "hyperfleet-driver.service")
EXPOSURE_MAX = 1.5


class Systemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = real.debian("systemd-analyze", "systemd")

    def test_exposure(self):
        """The exposure of the service, on a scale from 0 to 10."""
        text = real.run([self.tool, "security", "--offline=true", "--no-pager", UNIT])
        found = re.search(r"Overall exposure level for hyperfleet-driver\.service: ([\d.]+)", text)
        self.assertTrue(found, text)
        self.assertLessEqual(float(found.group(1)), EXPOSURE_MAX, text)

    def test_form(self):
        """Every line of the unit is understood: systemd-analyze says nothing about it."""
        with open(UNIT, encoding="utf-8") as f:
            unit = f.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hyperfleet-driver.service")
            with open(path, "w", encoding="utf-8") as f:
                f.write(unit.replace("=/usr/bin/hyperfleet-driver ",
                                     "=%s " % os.environ["HFD_PROGRAM"]))
            done = subprocess.run([self.tool, "verify", "--man=no", path], timeout=60, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    real.main()
