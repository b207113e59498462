#!/usr/bin/env python3
"""The build that needs no README: `cmake -S . -B build`, with both generators, with one job and
with several, then `cmake --install` into a folder. The installed program runs.
"""
import os
import shutil
import tempfile
import unittest

import real

SOURCE = os.environ["HFD_SOURCE_DIR"]
# The order of the steps is what may be wrong, and no optimisation changes it.
QUICKLY = "-DCMAKE_C_FLAGS_RELEASE=-O0"
INSTALLED = ("bin/hyperfleet-driver", "lib/systemd/system/hyperfleet-driver.service",
             "share/hyperfleet-driver/schemas/openapi.json",
             "share/hyperfleet-driver/hyperfleet-driver.yaml",
             "share/bash-completion/completions/hyperfleet-driver")
BUILD_S = 1800


class PlainBuild(unittest.TestCase):
    def build(self, options, jobs):
        """Builds a clean copy of the sources and installs it; returns the folder."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, build, prefix = (os.path.join(folder.name, name)
                                 for name in ("source", "source/build", "prefix"))
        shutil.copytree(SOURCE, source, symlinks=True,
                        ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        real.run(["cmake", "-S", source, "-B", build, QUICKLY] + options, BUILD_S)
        real.run(["cmake", "--build", build] + jobs, BUILD_S)
        real.run(["cmake", "--install", build, "--prefix", prefix])
        for path in INSTALLED:
            self.assertTrue(os.path.isfile(os.path.join(prefix, path)), path)
        self.assertIn("hyperfleet-driver",
                      real.run([os.path.join(prefix, "bin/hyperfleet-driver"), "version"]))

    def test_makefiles(self):
        """Makefiles: one step after the other."""
        real.debian("make")
        self.build(["-G", "Unix Makefiles"], [])

    def test_makefiles_beside_each_other(self):
        """Makefiles: several steps at a time."""
        real.debian("make")
        self.build(["-G", "Unix Makefiles", "-DBUILD_TESTING=OFF"], ["-j", "4"])

    def test_ninja(self):
        """Ninja: one step after the other. `./dev test` runs several at a time."""
        self.build(["-G", "Ninja", "-DBUILD_TESTING=OFF"], ["-j", "1"])


if __name__ == "__main__":
    real.main()
