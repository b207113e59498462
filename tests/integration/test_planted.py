"""Files in a folder that another user may write: links, pipes and files that were planted there
under each name that the program writes. A command of root writes nothing through them, and does not
wait for a pipe.
"""
import contextlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

from lib import Client, Server, clean_env, cluster_input, guresid, program, run

SERVICE, OTHER = 65533, 65534 # the owner of the folder, and of a planted file
TEXT = b"theirs\n"
STORE = ("lock", "store.db", "store.db-wal", "store.db-shm", "store.db-journal")
# The names that each command writes, in its folder.
NAMES = {
    "serve": STORE + ("clock", "clock.new", "addresses", "addresses.new", "local-token", "keys",
                      "keys.new", "tokens", "backup.tmp"),
    "restore": ("store.db", "store.db-wal", "store.db-journal", "clock", "clock.new",
                "restore.tmp"),
    "doctor": STORE,
    "migrate": STORE,
    "backup": ("file", "file.part"),
    "keygen": ("keys",),
    "rotate": ("keys", "keys.new"),
    "token create": ("tokens", "tokens.new"),
    "token revoke": ("tokens", "tokens.new"),
    "apply": ("state", "state.new", "state.lock"),
    "list": ("addresses", "local-token"),
}


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="hfd-it-")
        cls.addClassCleanup(shutil.rmtree, cls.base, True)
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        with contextlib.closing(Client(cls.server)) as client:
            assert client.put("/" + guresid("planted"), cluster_input()).status == 202
        cls.file = os.path.join(cls.base, "hfd.backup")
        assert run("backup", cls.file, "--data", cls.server.data).returncode == 0
        cls.full = os.path.join(cls.base, "full")
        assert run("restore", cls.file, "--data", cls.full, "--keys",
                   os.path.join(cls.server.data, "keys")).returncode == 0
        shutil.copy(os.path.join(cls.server.data, "keys"), cls.full)
        assert run("token", "create", "--name", "one", "--scope", "view", "--data",
                   cls.full).returncode == 0
        cls.input = os.path.join(cls.base, "input.json")
        with open(cls.input, "w", encoding="utf-8") as f:
            json.dump(cluster_input(), f)

    def arguments(self, command, folder):
        """The command, as root gives it."""
        main, ops = ("http://127.0.0.1:%d" % port for port in (self.server.port,
                                                                self.server.ops_port))
        within = os.path.join(folder, "")
        return {
            "serve": ("serve", "--data", folder, "--listen", "127.0.0.1:0", "--ops-listen",
                      "127.0.0.1:0"),
            "restore": ("restore", self.file, "--data", folder, "--keys", self.full + "/keys"),
            "doctor": ("doctor", "--data", folder),
            "migrate": ("migrate", "--from", "sqlite:" + self.full, "--to", "sqlite:" + folder),
            "backup": ("backup", within + "file", "--ops-url", ops),
            "keygen": ("keygen", "--new", "--data", folder),
            "rotate": ("keygen", "--rotate", "--data", folder),
            "token create": ("token", "create", "--new", "--name", "two", "--scope", "view",
                             "--data",
                             folder),
            "token revoke": ("token", "revoke", "one", "--data", folder),
            "apply": ("apply", self.input, "--id", guresid("apply"), "--url", main, "--state",
                      within + "state"),
            "list": ("list", "--data", folder),
        }[command]

    def make_folder(self, command, name):
        """A folder of the service's user, with what the command needs but for that name."""
        folder = tempfile.mkdtemp(dir=self.base)
        if command in ("serve", "doctor", "rotate", "token create", "token revoke"):
            for there in ("store.db", "keys", "tokens"):
                if there != name:
                    shutil.copy(os.path.join(self.full, there), folder)
        if command == "doctor" and name == "store.db":
            os.unlink(os.path.join(folder, "keys"))
        for there in os.listdir(folder):
            os.chown(os.path.join(folder, there), SERVICE, SERVICE)
        os.chown(folder, SERVICE, SERVICE)
        return folder

    def plant(self, kind, path):
        """Puts something under a name; returns the file that must not change."""
        target = os.path.join(tempfile.mkdtemp(dir=self.base), "target")
        with open(target, "wb") as f:
            f.write(TEXT)
        os.chmod(target, 0o644)
        if kind == "link":
            os.symlink(target, path)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            os.chown(target, OTHER, OTHER)
            os.link(target, path)
        return target

    def play(self, command, folder):
        """Runs the command to its end; a server that starts is stopped."""
        proc = subprocess.Popen([program(), *self.arguments(command, folder)], env=clean_env(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        self.addCleanup(proc.kill)
        lines = []
        if command == "serve":
            for line in proc.stdout:
                lines.append(line)
                if '"msg":"ready"' in line:
                    proc.terminate()
        out, _ = proc.communicate(timeout=60)
        return proc.returncode, "".join(lines) + out

    def try_name(self, command, name, kind):
        folder = self.make_folder(command, name)
        path = os.path.join(folder, name)
        target = self.plant(kind, path)
        before = os.stat(target)
        status, out = self.play(command, folder)
        with open(target, "rb") as f:
            self.assertEqual(f.read(), TEXT, out)
        after = os.stat(target)
        self.assertEqual((after.st_uid, after.st_mode), (before.st_uid, before.st_mode), out)
        self.assertGreaterEqual(status, 0, out)
        if name.endswith((".new", ".part", ".tmp", "local-token")) and command != "list" and \
                name != "restore.tmp":
            self.assertEqual(status, 0, out)
        if status == 0 and os.path.lexists(path) and command not in ("list", "serve"):
            found = os.lstat(path)
            self.assertTrue(stat.S_ISREG(found.st_mode) and found.st_uid != OTHER, out)

    @unittest.skipIf(os.geteuid() != 0, "needs root: another user's files are planted")
    def test_each_name(self):
        for command, names in NAMES.items():
            for name in names:
                for kind in ("link", "file", "pipe"):
                    with self.subTest(command=command, name=name, kind=kind):
                        self.try_name(command, name, kind)


if __name__ == "__main__":
    unittest.main()
