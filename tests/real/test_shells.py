#!/usr/bin/env python3
"""Shells complete our commands by themselves; groff sets the man pages without a warning."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import real


class Shells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.make(cls.folder)

    @staticmethod
    def make(folder, *scdoc):
        real.run([sys.executable, "-B", os.path.join(real.ROOT, "handlers/cli/manual.py"),
                  os.environ["HFD_PROGRAM"],
                  os.path.join(real.ROOT, "tests/contract/check.py"), folder, *scdoc])

    def test_fish(self):
        fish = real.debian("fish")
        path = os.path.join(self.folder, "completion/fish/hyperfleet-driver.fish")

        def complete(line):
            text = real.run([fish, "-N", "-c", "source %s; complete -C '%s'" % (path, line)],
                            env=dict(os.environ, HOME=self.folder))
            return {row.split("\t")[0] for row in text.splitlines()}

        self.assertLessEqual({"serve", "apply", "token"}, complete("hyperfleet-driver "))
        self.assertLessEqual({"--url", "--wait", "--dry-run"},
                             complete("hyperfleet-driver apply -"))
        self.assertEqual(complete("hyperfleet-driver token create --scope fleet"),
                         {"fleet-read", "fleet-write"})
        self.assertLessEqual({"--config", "--tls-cert-file"},
                             complete("hyperfleet-driver serve --"))

    def test_zsh(self):
        """A zsh in a terminal of its own completes what is typed."""
        zsh = real.debian("zsh")
        script = r"""
zmodload zsh/zpty
zpty z %s -f -i
zpty -w z "fpath=(%s \$fpath); autoload -U compinit; compinit -u -D; PS1=@''@"
zpty -r z out '*@@*'
zpty -w -n z 'hyperfleet-driver apply --dry'$'\t'
zpty -r z out '*--dry-run*'
print -r -- $out
zpty -d z
""" % (zsh, os.path.join(self.folder, "completion/zsh"))
        text = real.run([zsh, "-f", "-c", script], deadline_s=120,
                        env=dict(os.environ, HOME=self.folder, TERM="dumb",
                                 PATH="/nonexistent:/usr/bin:/bin"))
        self.assertIn("hyperfleet-driver apply --dry-run", text)

    def test_man(self):
        scdoc, groff = real.debian("scdoc"), real.debian("groff", "groff-base")
        folder = os.path.join(self.folder, "pages")
        self.make(folder, scdoc)
        pages = glob.glob(folder + "/man/man*/*.gz")
        self.assertGreater(len(pages), 10)
        for page in pages:
            text = subprocess.run(["gzip", "-dc", page], stdout=subprocess.PIPE, check=True).stdout
            done = subprocess.run([groff, "-ww", "-man", "-Tutf8", "-rLL=100n", "-K", "utf8"],
                                  input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=True, timeout=60)
            self.assertEqual(done.stderr, b"", page)


if __name__ == "__main__":
    real.main()
