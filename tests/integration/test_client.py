"""The commands apply, get, wait and delete: on our server, and on other drivers."""
import concurrent.futures
import fcntl
import json
import os
import pty
import struct
import subprocess
import tempfile
import termios
import threading
import unittest

import yaml

from lib import Server, clean_env, program
from scripted_driver import Served

ORDER = {"type": "hyperfleet-cluster", "driver": {"values": {
    "cluster": {"name": "mine", "spec": {"region": "a"}},
    "nodepools": [{"name": "np-1", "spec": {"n": 1}}]}}}


class Client(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hfd-client-")
        self.addCleanup(self.folder.cleanup)
        self.env = {"XDG_STATE_HOME": os.path.join(self.folder.name, "state")}
        self.order = self.file("order.json", ORDER)

    def file(self, name, doc):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(doc))
        return path

    def run_it(self, *args, want=0, stdin=""):
        ran = subprocess.run([program(), *args], input=stdin, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=clean_env(self.env),
                             timeout=120, check=False)
        self.assertEqual(ran.returncode, want, (args, ran.stdout, ran.stderr))
        return ran

    def cookies(self):
        path = os.path.join(self.folder.name, "state/hyperfleet-driver/cookies.json")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def test_a_life(self):
        """Order, wait, read, change, delete. The same order is the same resource."""
        with Server("--demo=1") as server:
            url = "http://127.0.0.1:%d" % server.port
            self.env["HFD_URL"] = url
            plan = json.loads(self.run_it("apply", self.order, "--dry-run").stdout)
            self.assertEqual((plan["action"], plan["name"]), ("create", "mine"))
            ran = self.run_it("apply", self.order, "-o", "name")
            gid = ran.stdout.strip()
            self.assertRegex(gid, "^[0-9a-f]{20}$")
            self.assertEqual(list(self.cookies()[url]), [gid])
            ran = self.run_it("apply", "-", "--wait", stdin=json.dumps(ORDER))
            self.assertEqual(json.loads(ran.stdout)["id"], gid)
            # Its first answer is 202, however slow the commands are.
            ran = self.run_it("apply", "-", "--wait", "--id", "other", stdin=json.dumps(
                ORDER).replace('"mine"', '"other"'))
            self.assertIn("creating: ", ran.stderr)
            self.run_it("delete", "other")
            out = yaml.safe_load(self.run_it("get", gid, "-o", "yaml").stdout)
            self.assertEqual(out, json.loads(self.run_it("get", gid).stdout))
            self.assertEqual(self.run_it("apply", self.order, "--wait", "-o", "name").stdout,
                             gid + "\n")
            self.run_it("delete", gid, "--wait", "--timeout=100ms", want=75)
            ran = self.run_it("delete", gid, "--wait")
            self.assertEqual(list(self.cookies().get(url, {})), ["other"])
            ran = self.run_it("get", gid, want=4)
            self.assertIn("404 RES-108", ran.stderr)
            self.run_it("wait", gid, want=4)
            self.run_it("delete", gid)

    def test_mistakes(self):
        """All mistakes of an order are printed; a driver that is away is 69; wrong use is 2."""
        bad = json.loads(json.dumps(ORDER))
        bad["driver"]["values"]["clustr"] = 1
        bad["driver"]["values"]["cluster"]["name"] = "X"
        with Server() as server:
            url = "http://127.0.0.1:%d" % server.port
            ran = self.run_it("apply", self.file("bad.json", bad), "--url", url, want=1)
            self.assertIn("400 RES-101", ran.stderr)
            self.assertIn("did you mean cluster?", ran.stderr)
            self.assertGreaterEqual(len(ran.stderr.splitlines()), 4)
        url = "http://127.0.0.1:1"
        self.assertIn("cannot be reached", self.run_it("get", "x", "--url", url, want=69).stderr)
        for args, want in ((("get",), "expected one argument"), (("get", "a", "b"), "one argument"),
                           (("get", "a", "-o", "xml"), "json, yaml or name"),
                           (("get", "a", "--url", "x"), "http"),
                           (("apply", "/nowhere"), "/nowhere"),
                           (("apply", self.file("none.json", {})), "expected --id GURESID"),
                           (("wait", "a", "--timeout", "x"), "--timeout")):
            self.assertIn(want, self.run_it(*args, want=2).stderr)
        state = self.file("broken.json", [])
        self.assertIn("expected an object",
                      self.run_it("get", "a", "--url", url, "--state", state, want=2).stderr)
        self.assertIn("--state FILE", self.run_it("help", "get").stdout)

    def test_other_drivers(self):
        """A driver without GET is polled by PUT; one that needs its cookie gets it."""
        order = self.file("thing.json", {"type": "thing", "n": 1})

        def life(wrong):
            with Served(wrong) as served:
                ran = self.run_it("apply", order, "--id", "abc", "--wait", "--url", served.url)
                self.assertEqual(json.loads(ran.stdout)["id"], "abc")
                self.run_it("delete", "abc", "--wait", "--url", served.url)

        def failure(wrong):
            with Served(wrong) as served:
                ran = self.run_it("apply", order, "--id", "abc", "--wait", "--url", served.url,
                                  want=1)
                self.assertIn("400 RES-101: it failed", ran.stderr)

        # They wait for the next poll nearly all of the time.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            ends = {"no GET": pool.submit(life, "no GET"),
                    "needs cookie": pool.submit(life, "needs cookie"),
                    "never made": pool.submit(failure, "never made")}
        for wrong, end in ends.items():
            with self.subTest(wrong=wrong):
                end.result()

    def test_terminal(self):
        """On a terminal there is one line with a bar, cut to its width; Ctrl-C says what to do."""
        with Server("--demo=30") as server:
            url = "http://127.0.0.1:%d" % server.port
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            ran = subprocess.Popen([program(), "apply", self.order, "--wait", "--url", url],
                                   stdout=subprocess.PIPE, stderr=slave, env=clean_env(self.env))
            os.close(slave)
            seen = []
            drawn = threading.Event()

            def read():
                try:
                    while True:
                        seen.append(os.read(master, 65536).decode())
                        if "[" in "".join(seen) and "%" in "".join(seen):
                            drawn.set()
                except OSError:
                    drawn.set()
            reader = threading.Thread(target=read)
            reader.start()
            self.assertTrue(drawn.wait(60))
            ran.send_signal(2)
            self.assertEqual(ran.wait(60), 75)
            reader.join(60)
            os.close(master)
            ran.stdout.close()
        text = "".join(seen)
        lines = [part.split("\x1b")[0] for part in text.split("\r") if "%" in part]
        self.assertRegex(lines[0], r"creating  \[[=>]* *\] \d+ %  \d+:\d\d of ~\d+:\d\d")
        self.assertTrue(all(len(line) < 80 for line in lines), lines)
        self.assertIn("Resume: hyperfleet-driver wait ", text)


if __name__ == "__main__":
    unittest.main()
