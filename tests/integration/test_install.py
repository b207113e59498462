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
        self.assertEqual(self.files, wanted)

    def test_the_program_runs(self):
        program = os.path.join(self.prefix, "bin/hyperfleet-driver")
        done = subprocess.run([program, "version"], stdout=subprocess.PIPE, text=True, check=True)
        document = json.loads(self.read("share/hyperfleet-driver/schemas/openapi.json"))
        self.assertIn(document["info"]["version"], done.stdout)

    # Links from the README to the manual lead somewhere.
    def test_links_of_the_readme(self):
        for to in re.findall(r"\]\((handlers/docs/[^)#]+)",
                             self.read("share/doc/hyperfleet-driver/README.md")):
            self.assertIn("share/doc/hyperfleet-driver/" + to, self.files)


if __name__ == "__main__":
    unittest.main()
