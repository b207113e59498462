"""`cmake --install` installs the program, its licence, documents and schemas. Source:
CMakeLists.txt.
"""
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["HFD_PROGRAM"]
ROOT = os.environ["HFD_SOURCE_DIR"]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = folder.name
        subprocess.run(["cmake", "--install", os.path.dirname(PROGRAM), "--prefix", cls.prefix],
                       check=True, stdout=subprocess.DEVNULL)
        cls.files = {os.path.relpath(p, cls.prefix)
                     for p in glob.glob(cls.prefix + "/**", recursive=True) if os.path.isfile(p)}

    def read(self, path):
        with open(os.path.join(self.prefix, path), encoding="utf-8") as file:
            return file.read()

    # Each file is there, and nothing else is.
    def test_files(self):
        docs = "share/doc/hyperfleet-driver/"
        pages = [os.path.relpath(p, ROOT) for p in glob.glob(ROOT + "/handlers/docs/*.md")]
        wanted = {"bin/hyperfleet-driver"} | {docs + name
                                              for name in ["README.md", "CHANGELOG.md",
                                                           "SECURITY.md", "LICENSE"] + pages}
        wanted |= {"share/hyperfleet-driver/schemas/" + name
                   for name in ("openapi.yaml", "openapi.json", "input.json")}
        wanted |= {"share/hyperfleet-driver/hyperfleet-driver.yaml",
                   "lib/systemd/system/hyperfleet-driver.service"}
        wanted |= {"share/bash-completion/completions/hyperfleet-driver",
                   "share/zsh/site-functions/_hyperfleet-driver",
                   "share/fish/vendor_completions.d/hyperfleet-driver.fish"}
        if self.has_scdoc():
            wanted |= {"share/man/man%s/%s.gz" % (name[-1], name) for name in
                       ["hyperfleet-driver.1", "hyperfleet-driver-settings.5"]
                       + ["hyperfleet-driver-%s.1" % command for command in self.commands()]}
        self.assertEqual(self.files, wanted)

    # The build that is installed found scdoc, which makes the man pages.
    @staticmethod
    def has_scdoc():
        with open(os.path.join(os.path.dirname(PROGRAM), "CMakeCache.txt"),
                  encoding="utf-8") as file:
            return re.search(r"^SCDOC:FILEPATH=/", file.read(), re.M) is not None

    @staticmethod
    def commands():
        done = subprocess.run([PROGRAM, "help"], stdout=subprocess.PIPE, text=True, check=True)
        listed = done.stdout.split("Commands:\n")[1].split("\n\n")[0]
        return set(re.findall(r"^  (\w+) ", listed, re.M)) - {"help"}

    # The unit starts the installed program; the rest of it is the one of the repository.
    def test_the_unit(self):
        with open(os.path.join(ROOT, "docker/systemd/hyperfleet-driver.service"),
                  encoding="utf-8") as file:
            unit = file.read()
        self.assertIn("\nExecStart=/usr/bin/hyperfleet-driver serve ", unit)
        self.assertEqual(self.read("lib/systemd/system/hyperfleet-driver.service"),
                         unit.replace("=/usr/bin/", "=%s/bin/" % self.prefix))

    # The settings to begin with are valid, and the unit starts with them.
    def test_the_settings(self):
        path = os.path.join(self.prefix, "share/hyperfleet-driver/hyperfleet-driver.yaml")
        done = subprocess.run([PROGRAM, "config", "show", "--config", path],
                              stdout=subprocess.PIPE, text=True, check=True,
                              env={"PATH": os.environ["PATH"]})
        self.assertIn('data: "/var/lib/hyperfleet-driver"', done.stdout)

    # Links from the README to the manual lead somewhere.
    def test_links_of_the_readme(self):
        for to in re.findall(r"\]\((handlers/docs/[^)#]+)",
                             self.read("share/doc/hyperfleet-driver/README.md")):
            self.assertIn("share/doc/hyperfleet-driver/" + to, self.files)


if __name__ == "__main__":
    unittest.main()
