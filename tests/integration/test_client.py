"""The commands apply, get, wait and delete: on our server, and on other drivers."""
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import yaml

from lib import (BASE, TIME_FACTOR, Client as HttpClient, Fleet, Server, clean_env, eventually,
                 program, report_body)
from scripted_driver import Served

ORDER = {"type": "hyperfleet-cluster", "driver": {"values": {
    "cluster": {"name": "mine", "spec": {"region": "a"}},
    "nodepools": [{"name": "np-1", "spec": {"n": 1}}]}}}


class Terminal:
    """A command whose stderr is a terminal of 80 columns."""

    def __init__(self, args, env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.ran = subprocess.Popen([program(), *args], stdout=subprocess.DEVNULL, stderr=slave,
                                    env=env)
        os.close(slave)
        self.seen = ""

    def read(self):
        """@return False at the end"""
        try:
            ready, _, _ = select.select([self.master], [], [], 60)
            self.seen += os.read(self.master, 65536).decode() if ready else ""
            return bool(ready)
        except OSError:
            return False

    def see(self, pattern):
        while not re.search(pattern, self.seen):
            if not self.read():
                raise AssertionError("%s is not in %r" % (pattern, self.seen))

    def stop(self):
        """Ctrl-C. @return the exit status"""
        self.ran.send_signal(2)
        while self.read():
            pass
        return self.ran.wait(60)

    def close(self):
        self.ran.kill()
        self.ran.wait()
        os.close(self.master)


class Base(unittest.TestCase):
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


class Client(Base):
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

    def test_a_wait_is_no_poll(self):
        """The driver holds its answers. So few requests tell of the end at once, and it can be cut
        short, by a signal and by a deadline.
        """
        with Server("--adapters-required-cluster", "validation",
                    "--adapters-required-nodepool", "validation") as server:
            self.env["HFD_URL"] = "http://127.0.0.1:%d" % server.port
            with contextlib.closing(HttpClient(server)) as client:
                fleet = Fleet(client, ("validation",), ("validation",))
                for command, finish, method in (
                        (("apply", self.order, "--wait", "--id", "held"), fleet.ready, "GET"),
                        (("delete", "held", "--wait"), fleet.finish_delete, "DELETE")):
                    ran = subprocess.Popen([program(), *command], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, env=clean_env(self.env))
                    self.addCleanup(ran.kill)
                    with ran:
                        eventually(lambda: self.waits(server) == 1, "it waits")
                        time.sleep(3)
                        began = time.monotonic()
                        finish("held")
                        self.assertEqual(ran.wait(), 0, ran.stderr.read())
                        self.assertLess(time.monotonic() - began, 2 * TIME_FACTOR)
                        ran.communicate()
                    self.assertLessEqual(self.requests(server, method), 5)
                self.run_it("apply", self.order, "--id", "long")
                ran = self.run_it("wait", "long", "--timeout", "3s", want=75)
                self.assertIn("is still under way. Resume: ", ran.stderr)
                ran = subprocess.Popen([program(), "wait", "long"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=clean_env(self.env), text=True)
                self.addCleanup(ran.kill)
                eventually(lambda: self.waits(server) == 1, "it waits")
                ran.send_signal(signal.SIGINT)
                self.assertIn("is still under way. Resume: ", ran.communicate(timeout=30)[1])
                self.assertEqual(ran.returncode, 75)
                self.assertLessEqual(self.requests(server, "GET"), 14)

    @staticmethod
    def metrics(server):
        with contextlib.closing(HttpClient(server, ops=True)) as ops:
            return ops.get("/metrics").body.decode()

    def waits(self, server):
        return int(re.search("^hfd_event_watchers ([0-9]+)$", self.metrics(server), re.M)[1])

    def requests(self, server, method):
        found = re.findall('^hfd_http_requests_total{method="%s",route="resource",code="[0-9]+"} '
                           "([0-9]+)$" % method, self.metrics(server), re.M)
        return sum(int(n) for n in found)

    def test_another_order_is_in_the_way(self):
        """409 says in which field the order differs; --wait waits for the end, and orders again."""
        other = self.file("other.json", json.loads(json.dumps(ORDER).replace('"a"', '"b"')))
        with Server("--adapters-required-cluster", "validation",
                    "--adapters-required-nodepool", "validation") as server, \
                contextlib.closing(HttpClient(server)) as client:
            self.env["HFD_URL"] = "http://127.0.0.1:%d" % server.port
            gid = self.run_it("apply", self.order, "-o", "name").stdout.strip()
            differs = r"409: another order is being created since ..:..Z; this one differs in " \
                      r"cluster\.spec\.region: repeat it when that is done"
            for flag in ((), ("--dry-run",)):
                self.assertRegex(self.run_it("apply", other, *flag, want=1).stderr, differs)
            ran = self.run_it("apply", other, "--wait", "--timeout=100ms", want=75)
            self.assertIn("is still under way", ran.stderr)
            ran = subprocess.Popen([program(), "apply", other, "--wait"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_env(self.env), text=True)
            self.addCleanup(ran.kill)
            eventually(lambda: self.waits(server) == 1, "it waits")

            def ended():
                Fleet(client, ("validation",), ("validation",)).ready(gid)
                return ran.poll() is not None
            eventually(ended, "it ends")
            out, err = ran.communicate()
            self.assertEqual(ran.returncode, 0, err)
            self.assertRegex(err, differs)
            self.assertIn("waits for that, and orders again", err)
            self.assertEqual(json.loads(out)["id"], gid)
            self.assertEqual(json.loads(self.run_it("apply", other, "--dry-run").stdout)["action"],
                             "none")

    def test_a_plan(self):
        """--plan-out keeps what would be done, --plan does just that; then it is 412."""
        plan = os.path.join(self.folder.name, "plan")
        with Server("--demo=1") as server:
            self.env["HFD_URL"] = "http://127.0.0.1:%d" % server.port
            said = self.run_it("apply", self.order, "--plan-out", plan)
            with open(plan, encoding="utf-8") as f:
                self.assertEqual(json.load(f), json.loads(said.stdout))
            self.run_it("apply", self.order, "--plan", plan, "--wait")
            other = self.file("other.json", json.loads(json.dumps(ORDER).replace('"a"', '"b"')))
            done = self.run_it("apply", other, "--plan", plan, want=1)
            self.assertIn("this plan does not hold any more", done.stderr)
            self.assertIn("without", self.run_it("apply", other, "--plan", plan, "--dry-run",
                                                 want=2).stderr)
            done = self.run_it("apply", other, "--plan", self.order, want=2)
            self.assertIn("expected a file that apply --plan-out wrote", done.stderr)
            done = self.run_it("apply", other, "--plan-out", plan + "/x", want=73)
            self.assertIn("plan", done.stderr)

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

    def on_terminal(self, *args):
        terminal = Terminal(args, clean_env(self.env))
        self.addCleanup(terminal.close)
        return terminal

    def test_terminal(self):
        """On a terminal there is one line with a bar, cut to its width; Ctrl-C says what to do.
        When the driver is away the line says so, and Ctrl-C does not say that it goes on."""
        with Server("--demo=30") as server:
            url = "http://127.0.0.1:%d" % server.port
            first = self.on_terminal("apply", self.order, "--wait", "--url", url)
            first.see(r"\[.*%")
            self.assertEqual(first.stop(), 75)
            gid = first.seen.split()[0]
            second = self.on_terminal("wait", gid, "--url", url)
            second.see(r"\[.*%")
            server.kill9()
            second.see(gid + r"  cannot be reached for \d+ s, tries on: http://127.0")
            self.assertEqual(second.stop(), 75)
        lines = [part.split("\x1b")[0] for part in first.seen.split("\r") if "%" in part]
        self.assertRegex(lines[0], r"creating  \[[=>]* *\] \d+ %  \d+:\d\d of ~\d+:\d\d")
        self.assertTrue(all(len(line) < 80 for line in lines), lines)
        self.assertIn(" is still under way. Resume: hyperfleet-driver wait ", first.seen)
        self.assertNotIn("is still under way", second.seen)
        self.assertIn("was under way until the driver gave no answer, ", second.seen)

    def test_secrets_on_a_terminal(self):
        """A terminal gets no secret unless it asks for it; a pipe gets all."""
        order = json.loads(json.dumps(ORDER))
        del order["driver"]["values"]["nodepools"]
        server = Server("--adapters-required-cluster", "a",
                        "--driver-outputs-secrets-kubeconfig=a:/secrets/kubeconfig")
        with server:
            client = HttpClient(server)
            self.addCleanup(client.close)
            self.env["HFD_URL"] = "http://127.0.0.1:%d" % server.port
            gid = self.run_it("apply", self.file("one.json", order), "-o", "name").stdout.strip()
            cluster = client.get(BASE + "/clusters").json["items"][0]
            body = report_body("a", cluster["generation"])
            body["data"] = {"secrets": {"kubeconfig": "very-secret"}}
            self.assertEqual(client.post(cluster["href"] + "/statuses", body).status, 201)
            self.assertIn("very-secret", self.run_it("wait", gid, "--timeout", "60s").stdout)
            for flags, shown in (((), "[redacted]"), (("--show-secrets",), "very-secret")):
                master, slave = pty.openpty()
                subprocess.run([program(), "get", gid, *flags], stdout=slave, timeout=60,
                               check=True, env=clean_env(self.env))
                os.close(slave)
                self.assertIn('"kubeconfig": "%s"' % shown, os.read(master, 65536).decode())
                os.close(master)

    def test_nothing_answers(self):
        """A driver that never answers: all commands that wait say so at once, and end with 69."""
        away = "cannot be reached, tries on: http://127.0.0.1:1: "
        url = ("--url", "http://127.0.0.1:1")
        for command in (("wait", "x"), ("get", "x", "--wait"), ("delete", "x", "--wait")):
            with self.subTest(command=command), subprocess.Popen(
                    [program(), *command, *url], stderr=subprocess.PIPE, text=True,
                    env=clean_env(self.env)) as ran:
                self.assertIn("x " + away, ran.stderr.readline())
                ran.send_signal(2)
                end = ran.stderr.read()
                self.assertEqual(ran.wait(60), 69, end)
                self.assertNotIn("under way", end)
        self.assertIn(away, self.run_it("wait", "x", *url, want=69).stderr)
        self.run_it("delete", "x", "--wait", "--timeout", "1s", *url, want=69)
        with Served("always 503") as served:
            ran = self.run_it("wait", "x", "--timeout", "1500ms", "--url", served.url, want=1)
            self.assertIn("x answers 503, tries on: " + served.url, ran.stderr)

    def test_delete_says_what_it_finds(self):
        """It says that there is no such resource, and ends with 0; --dry-run deletes nothing."""
        with Server("--demo=1") as server:
            self.env["HFD_URL"] = "http://127.0.0.1:%d" % server.port
            for flags in ((), ("--wait",)):
                ran = self.run_it("delete", "never", *flags)
                self.assertIn("never: there is no such resource", ran.stderr)
            ran = self.run_it("delete", "never", "--dry-run")
            self.assertEqual(json.loads(ran.stdout), {"id": "never", "action": "none"})
            gid = self.run_it("apply", self.order, "--wait", "-o", "name").stdout.strip()
            ran = self.run_it("delete", gid, "--dry-run")
            self.assertEqual(json.loads(ran.stdout), {"id": gid, "action": "delete"})
            self.run_it("get", gid)
            self.assertNotIn("no such", self.run_it("delete", gid, "--wait").stderr)
        self.run_it("delete", gid, "--dry-run", want=69)
        with Served("no GET") as served:
            self.run_it("delete", "abc", "--url", served.url)
            ran = self.run_it("delete", "abc", "--dry-run", "--url", served.url, want=1)
            self.assertIn("405", ran.stderr)


class Purge(Base):
    """The removal of a cluster or nodepool whose adapters never let it go."""

    def setUp(self):
        super().setUp()
        self.server = Server().start()
        self.addCleanup(self.server.close)
        self.env["HFD_URL"] = "http://127.0.0.1:%d" % self.server.port

    def purge(self, *args, want=0):
        ran = self.run_it("purge", *args, want=want)
        return json.loads(ran.stdout) if "json" in args and ran.stdout else ran

    def test_in_two_steps(self):
        """Without --yes it says what it would remove; with it, the cluster and its nodepools go."""
        gid = self.run_it("apply", self.order, "-o", "name").stdout.strip()
        self.assertIn("first: hyperfleet-driver delete " + gid, self.purge(gid, want=1).stderr)
        self.run_it("delete", gid)
        ran = self.purge(gid, want=2)
        self.assertRegex(ran.stdout, "^would remove cluster mine 2[0-9a-z]{26}\n$")
        self.assertIn("purge %s --yes --reason TEXT" % gid, ran.stderr)
        would = self.purge(gid, "-o", "json", want=2)
        self.assertIs(would["removed"], False)
        self.assertIn("--reason: expected", self.purge(gid, "--yes", want=2).stderr)
        self.run_it("wait", gid, "--timeout", "100ms", want=75)
        done = self.purge(gid, "--yes", "--reason", "dns is gone", "-o", "json")
        self.assertEqual(done, {**would, "removed": True})
        self.run_it("get", gid, want=4)
        eventually(lambda: any('"reason":"dns is gone"' in line for line in self.server.lines),
                   "the audit line")
        self.purge(gid, want=4)

    def test_by_id(self):
        """A cluster and a nodepool of HyperFleet that no GUResID has are named by their own ids."""
        fleet = HttpClient(self.server)
        cluster = fleet.post(BASE + "/clusters", {"kind": "Cluster", "name": "own",
                                                         "spec": {}}).json
        pool = fleet.post(cluster["href"] + "/nodepools", {
            "kind": "NodePool", "name": "workers", "spec": {}}).json
        self.assertEqual(fleet.delete(pool["href"]).status, 202)
        self.assertIn("first", self.purge(cluster["id"], want=1).stderr)
        ran = self.purge(pool["id"], "--yes", "--reason", "x")
        self.assertEqual(ran.stdout, "removed nodepool workers %s\n" % pool["id"])
        self.assertEqual(fleet.get(pool["href"]).status, 404)
        self.assertEqual(fleet.get(cluster["href"]).status, 200)
        fleet.close()

    def test_refused(self):
        """A server that is away is 69; wrong use is 2."""
        for args, want, word in (((), 2, "expected a GUResID"), (("a", "b"), 2, "unexpected"),
                                 (("a", "--watch"), 2, "--watch"),
                                 (("a", "--url", "http://127.0.0.1:1"), 69, "cannot be reached"),
                                 (("never",), 4, "there is no such resource")):
            self.assertIn(word, self.purge(*args, want=want).stderr)


if __name__ == "__main__":
    unittest.main()
