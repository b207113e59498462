"""`cmake --install` installs the program, its licence, documents and schemas. Source:
CMakeLists.txt.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from lib import clean_env, eventually, free_port

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
        wanted = {"bin/hyperfleet-driver", "bin/hyperfleet-driver-check"} | {docs + name
                                              for name in ["README.md", "CHANGELOG.md",
                                                           "SECURITY.md", "LICENSE"] + pages}
        wanted |= {"share/hyperfleet-driver/schemas/" + name
                   for name in ("openapi.yaml", "openapi.json", "input.json")}
        wanted |= {"share/hyperfleet-driver/hyperfleet-driver.yaml",
                   "lib/systemd/system/hyperfleet-driver.service"}
        wanted |= {os.path.relpath(p, ROOT).replace("docker", "share/hyperfleet-driver", 1)
                   for folder in ("helm", "grafana", "terraform")
                   for p in glob.glob(ROOT + "/docker/%s/**" % folder, recursive=True)
                   if os.path.isfile(p)} | {"share/hyperfleet-driver/prometheus/alerts.yaml"}
        wanted |= {"share/bash-completion/completions/hyperfleet-driver",
                   "share/zsh/site-functions/_hyperfleet-driver",
                   "share/fish/vendor_completions.d/hyperfleet-driver.fish"}
        if self.has_scdoc():
            wanted |= {"share/man/man%s/%s.gz" % (name[-1], name) for name in
                       ["hyperfleet-driver.1", "hyperfleet-driver-settings.5"]
                       + ["hyperfleet-driver-%s.1" % command
                          for command in self.commands() | {"check"}]}
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

    # Links of the documents lead to files that are installed, in Debian's package too.
    def test_links(self):
        count = 0
        for page in self.files:
            for to in re.findall(r"\]\(([^)#:]+)[)#]", self.read(page) if page.endswith(".md")
                                 else ""):
                count += 1
                path = os.path.normpath(os.path.join(os.path.dirname(page), to))
                self.assertIn(path, self.files, page)
                self.assertNotIn("LICENSE", path)
        self.assertGreater(count, 100)


class Own(unittest.TestCase):
    """An installed program reads the settings of /etc, and its commands find its server by them."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = folder.name
        subprocess.run(["cmake", "--install", os.path.dirname(PROGRAM), "--prefix", "/usr"],
                       check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, DESTDIR=cls.root))
        cls.program = cls.root + "/usr/bin/hyperfleet-driver"
        cls.config = cls.root + "/etc/hyperfleet-driver/hyperfleet-driver.yaml"
        cls.data = os.path.join(cls.root, "data")
        cls.port = free_port()
        os.makedirs(os.path.dirname(cls.config))
        with open(cls.config, "w", encoding="utf-8") as file:
            file.write("data: %s\nlisten: 127.0.0.1:%d\nops_listen: 127.0.0.1:%d\ndemo: 1s\n"
                       % (cls.data, cls.port, free_port()))

    def run_(self, *args, program=None, env=None):
        return subprocess.run([program or self.program, *args], capture_output=True, text=True,
                              env=clean_env(env), timeout=120, check=False, cwd=self.root)

    def good(self, *args):
        done = self.run_(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_which_file(self):
        """The file is read by the installed program alone; --config and HFD_CONFIG come first."""
        other = os.path.join(self.root, "other.yaml")
        with open(other, "w", encoding="utf-8") as file:
            file.write("log.level: warn\n")
        os.makedirs(self.root + "/usr/local/bin", exist_ok=True)
        local = shutil.copy(PROGRAM, self.root + "/usr/local/bin")
        for wanted, args, program, env in ((self.config, (), None, None),
                                           (self.config, (), local, None),
                                           (other, ("--config", other), None, None),
                                           (other, (), None, {"HFD_CONFIG": other}),
                                           ("none", (), PROGRAM, None)):
            done = self.run_("config", "show", "--origin", *args, program=program, env=env)
            self.assertEqual(done.stdout.split("\n")[0], "# settings file: " + wanted, done.stderr)
            self.assertEqual('data: "%s" # %s:1' % (self.data, self.config) in done.stdout,
                             wanted == self.config)

    def test_commands(self):
        """With a token made, the commands of this machine need neither an address nor a token."""
        with open(self.root + "/order.json", "w", encoding="utf-8") as file:
            json.dump({"type": "hyperfleet-cluster",
                       "driver": {"values": {"cluster": {"name": "shop"}}}}, file)
        server = subprocess.Popen([self.program, "serve"], cwd=self.root, env=clean_env(),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: self.run_("health", "--ready").returncode == 0, "it is ready")
            self.good("token", "create", "--name", "one", "--scope", "view")
            self.assertTrue(os.path.exists(self.data + "/tokens"))
            elsewhere = "http://127.0.0.1:%d/" % self.port

            def refused():
                return self.run_("list", "--url", elsewhere).returncode == 1

            eventually(refused, "the server has taken the token up")
            for args, scope in ((("list",), "view"), (("status",), "view"),
                                (("get", "x"), "driver")):
                done = self.run_(*args, "--url", elsewhere)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"401.*: give --token-file FILE \(hyperfleet-driver "
                                 r"token create --name me --scope %s\)" % scope)
            self.good("apply", "order.json", "--id", "r1", "--wait")
            self.assertIn("r1", self.good("list"))
            self.assertIn("ready 1", self.good("status"))
            for args in (("status", "r1"), ("get", "r1"), ("wait", "r1"), ("doctor",),
                         ("backup", "file"), ("token", "list"), ("delete", "r1", "--wait")):
                self.good(*args)
            # A server with other addresses than those of the settings is found by its data.
            self.assertIn("ready 0", self.run_("status", "--data", self.data,
                                               program=PROGRAM).stdout)
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    unittest.main()
