"""The commands list and status: what goes on in a server, for people and scripts."""
import contextlib
import http.server
import json
import os
import pty
import re
import subprocess
import tempfile
import threading
import time
import unittest
from urllib.parse import parse_qs, urlsplit

import yaml

from lib import (Case, Client, Server, clean_env, cluster_input, eventually, guresid, program,
                 run)

TOKEN = "hfd_" + "t" * 43


class Pages(http.server.BaseHTTPRequestHandler):
    """A server whose list has three pages, and some stuck resources."""

    def log_message(self, *_):
        pass

    def do_GET(self):  # noqa: N802
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        query = parse_qs(urlsplit(self.path).query)
        at = int(query.get("after", ["0"])[0])
        hint = "stuck" if "stuck" in query else "failed" if "failed" in query.get("state", []) \
            else "r"
        items = [{"id": "%s-%d" % (hint, i), "type": "t", "name": "n\x1b[2Jx", "state": "failed",
                  "operation": None, "since": "2026-01-01T00:00:00Z", "deadline": None,
                  "estimated_completion_time": None, "message": "w" * 200, "health": None,
                  "labels": {}, "cluster_id": None} for i in range(at, at + 2)]
        doc = {"items": items, "counts": {"failed": 6}, "next": str(at + 2) if at < 4 else None}
        body = json.dumps(doc).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Scripted:
    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.server.asked = self.asked = []
        self.url = "http://127.0.0.1:%d/t/x/" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def asked(server, route, code):
    """How many GETs of a route had this answer."""
    with contextlib.closing(Client(server, ops=True)) as ops:
        text = ops.get("/metrics").body.decode()
    found = re.search('^hfd_http_requests_total{method="GET",route="%s",code="%d"} ([0-9]+)$'
                      % (route, code), text, re.M)
    return int(found[1]) if found else 0


def command(*args, want=0, env=None):
    ran = run(*args, env=env)
    assert ran.returncode == want, (args, ran.returncode, ran.stdout, ran.stderr)
    return ran


class Lists(Case):
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    def setUp(self):
        super().setUp()
        self.mark = guresid("mark")
        self.env = {"HFD_URL": "http://127.0.0.1:%d" % self.server.port}

    def order(self, name, **labels):
        gid = guresid(name)
        self.assertEqual(self.put(gid, cluster_input(
            name=gid, labels=dict(labels, team=self.mark))).status, 202)
        return gid

    def ask(self, *args, want=0):
        return command(*args, want=want, env=self.env)

    def test_list(self):
        """Filters are those of the server; each form has the same resources."""
        one, two = self.order("one", app="shop"), self.order("two", app="pay")
        self.fleet.ready(one)
        team = "--label=team=" + self.mark
        rows = [line.split() for line in self.ask("list", team).stdout.splitlines()]
        self.assertEqual(rows[0], ["STATE", "NAME", "GURESID", "FOR", "CAUSE", "MESSAGE"])
        self.assertEqual([row[:3] for row in rows[1:]],
                         [["creating", two, two], ["ready", one, one]])
        self.assertRegex(self.ask("list", team).stdout, r" s +validation NotReported  has not rep")
        wide = self.ask("list", team, "-o", "wide").stdout
        self.assertIn("waits for validation", wide)
        self.assertIn("Healthy", wide)
        self.assertIn("app=pay", wide)
        self.assertIn(self.fleet.cluster_of(two)["id"], wide)
        for args, found in ((("--label", "app=shop"), [one]), (("--state", "creating"), [two]),
                            (("--state=creating", "--state=ready", "--order=created"), [two, one]),
                            (("--failed",), []), (("--stuck",), []), (("--search", two), [two]),
                            (("--failed", "--stuck"), []), (("--degraded",), []),
                            (("--who=validation", "--reason=NotReported"), [two]),
                            (("--who=dns",), []),
                            (("--type", "hyperfleet-nodepool"), [])):
            got = self.ask("list", team, "-o", "name", *args).stdout.split()
            self.assertEqual(got, found, args)
        both = lambda: (json.loads(self.ask("list", team, "-o", "json").stdout),
                        yaml.safe_load(self.ask("list", team, "-o", "yaml").stdout))
        # An estimate moves on with the time.
        doc, _ = eventually(lambda: (lambda b: b if b[0] == b[1] else None)(both()),
                            "both forms have the same")
        self.assertEqual([i["id"] for i in doc["items"]], [two, one])
        self.assertEqual((doc["counts"]["creating"], doc["counts"]["ready"]), (1, 1))
        none = self.ask("list", team, "--failed")
        self.assertEqual((none.stdout, none.stderr), ("", "there are no such resources\n"))

    def drawn(self, *args, columns=80):
        """The lines of a command on a terminal of so many columns."""
        master, slave = pty.openpty()
        subprocess.run(["stty", "cols", str(columns)], stdin=slave, check=True)
        ran = subprocess.Popen([program(), *args], stdout=slave, env=clean_env(self.env))
        os.close(slave)
        seen = b""
        try:
            while piece := os.read(master, 65536):
                seen += piece
        except OSError:  # the other end is closed
            pass
        os.close(master)
        self.assertEqual(ran.wait(60), 0)
        return seen.decode().splitlines()

    def test_the_cause_comes_first(self):
        """At 80 columns a row has the name, the cause and its words; what is equal is counted."""
        long = "a-name-that-is-long-" + "x" * 25
        gids = [guresid("cause") for _ in range(12)]
        for i, gid in enumerate(gids):
            self.put(gid, cluster_input(name=long if i == 0 else gid, labels={"team": self.mark}))
            self.fleet.accepted(self.fleet.cluster_of(gid), "dns", available=False,
                                reason="QuotaExceeded",
                                message="12 of 24 cores are left, and 16 are needed for it.")
        lines = self.drawn("list", "--label=team=" + self.mark)
        self.assertEqual(lines[0].split(), ["STATE", "NAME", "FOR", "CAUSE", "MESSAGE"])
        self.assertEqual(len(lines), 13)
        for line, gid in zip(lines[1:], ["a-name-that-is-long-xxx..."] + gids[1:]):
            self.assertRegex(line, r"^FAILED  %s +\d+ s +dns QuotaExceeded  12 of" % re.escape(gid))
            self.assertLessEqual(len(line), 80)
        self.assertIn(gids[0], self.drawn("list", "--search", gids[0], columns=160)[1])
        lines = self.drawn("status")
        self.assertTrue(any(re.match(r"12 +FAILED +dns QuotaExceeded +\d+ s$", line)
                            for line in lines), lines)
        rows = [line for line in lines if re.match("FAILED .* dns QuotaExceeded +12 of", line)]
        self.assertEqual(len(rows), 10, "of one cause")
        self.assertIn("There are more: hyperfleet-driver list --who ADAPTER --reason REASON", lines)

    def test_status_of_one(self):
        """Each adapter has its state and its words; what failed says why; what is gone is 4."""
        gid = self.order("whole", app="shop")
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "validation")
        self.fleet.accepted(cluster, "dns", available=False, reason="Waiting", message="zone \x1bx")
        text = self.ask("status", gid).stdout
        self.assertRegex(text, r"%s  creating for \d+ s of about .*, deadline 20" % gid)
        self.assertRegex(text, r"(?m)^    validation +done")
        self.assertRegex(text, r"(?m)^    dns +waiting +\d+ s +(usually \d+ s +(<-- slow +)?)?"
                               r"Waiting: zone \\u001bx$")
        self.assertRegex(text, r"last change \d+ s ago: create\n")
        self.assertRegex(text, r"ordered 20\S+ by \S+ .*app=shop")
        self.assertEqual(json.loads(self.ask("status", gid, "-o", "json").stdout)["id"], gid)
        self.assertEqual(yaml.safe_load(self.ask("status", gid, "-o", "yaml").stdout)["id"], gid)
        self.assertEqual(self.ask("status", gid, "-o", "name").stdout, gid + "\n")
        self.fleet.accepted(cluster, "dns", available=False, reason="QuotaExceeded",
                            message="no cores left")
        text = self.ask("status", gid).stdout
        self.assertRegex(text, r"  failed for ")
        self.assertRegex(text, r"RES-104: .*no cores left")
        self.assertIn("FAILED", self.ask("status").stdout)
        self.assertIn(gid, self.ask("status", "-o", "name").stdout.split())
        self.delete(gid)
        self.assertRegex(self.ask("status", gid).stdout, r"  deleting for ")
        self.fleet.finish_delete(gid)
        self.assertRegex(self.ask("status", gid, want=4).stdout, r"  absent for .*\n(.*\n)*.*remov")
        self.assertIn("no resource 'none'", self.ask("status", "none", want=4).stderr)

    def test_status_of_all(self):
        """Without a GUResID: what is wrong, the counts, and each resource that is not ready and
        healthy.
        """
        ready, waits = self.order("fine"), self.order("waits")
        self.fleet.ready(ready)
        text = self.ask("status").stdout
        self.assertRegex(text, r"(?m)^ready \d+  creating \d+  updating \d+  deleting \d+  "
                               r"failed \d+$")
        self.assertRegex(text, r"(?m)^creating +%s +%s +\d+ s +validation NotReported  "
                               "has not reported$" % (waits, waits))
        self.assertNotIn(ready, text)
        doc = json.loads(self.ask("status", "-o", "json").stdout)
        self.assertEqual(set(doc), {"items", "counts", "causes", "next", "problems"})

    def test_watch(self):
        """In a pipe each news is printed, until Ctrl-C."""
        gid = self.order("seen")
        ran = subprocess.Popen([program(), "status", gid, "-w"], stdout=subprocess.PIPE, text=True,
                               env=clean_env(self.env))
        self.addCleanup(ran.stdout.close)
        self.assertIn("creating", ran.stdout.readline())
        self.fleet.ready(gid)
        while "  ready for " not in ran.stdout.readline():
            self.assertIsNone(ran.poll())
        ran.send_signal(2)
        self.assertEqual(ran.wait(60), 0)

    def test_a_watch_of_an_operation_is_no_poll(self):
        """The driver holds its answer, and the picture follows at once."""
        gid = self.order("held")
        ran = subprocess.Popen([program(), "status", gid, "-w"], stdout=subprocess.PIPE, text=True,
                               env=clean_env(self.env))
        self.addCleanup(ran.stdout.close)
        self.assertIn("creating", ran.stdout.readline())
        before = asked(self.server, "driver_resource", 200)
        time.sleep(4)
        self.assertLessEqual(asked(self.server, "driver_resource", 200) - before, 2)
        self.fleet.ready(gid)
        while "  ready for " not in ran.stdout.readline():
            self.assertIsNone(ran.poll())
        ran.send_signal(2)
        self.assertEqual(ran.wait(60), 0)

    def test_watch_on_a_terminal(self):
        """A terminal is cleared before each picture, and no line is wider than it."""
        gid = self.order("drawn")
        master, slave = pty.openpty()
        subprocess.run(["stty", "cols", "60"], stdin=slave, check=True)
        ran = subprocess.Popen([program(), "list", "--watch", "--search", gid], stdout=slave,
                               env=clean_env(self.env))
        os.close(slave)
        seen = []
        try:
            eventually(lambda: seen.append(os.read(master, 65536)) or
                       b"".join(seen).count(b"\x1b[H\x1b[2J") >= 2, "two pictures", every_s=0)
        finally:
            ran.send_signal(15)
            self.assertEqual(ran.wait(60), 0)
            os.close(master)
        lines = re.sub(r"\x1b\[[0-9]*[A-Z]", "",
                       b"".join(seen).decode("utf-8", "replace")).splitlines()
        self.assertEqual(max(len(line) for line in lines), 60)

    def test_wrong_use(self):
        for args, words in ((("list", "x"), "unexpected argument x"),
                            (("status", "a", "b"), "unexpected argument b"),
                            (("list", "-o", "xml"), "json, yaml, name or wide"),
                            (("status", "-o", "wide"), "json, yaml or name"),
                            (("list", "--state", "odd"), "state must be"),
                            (("list", "--label", "x"), "label"),
                            (("list", "--failed", "--state", "ready"), "--state: expected"),
                            (("list", "--odd"), "unknown flag --odd"),
                            (("status", ""), "expected a GUResID"),
                            (("list", "--url", "x"), "http")):
            self.assertIn(words, self.ask(*args, want=2).stderr, args)
        for name in ("list", "status"):
            text = self.ask(name, "--help").stdout
            self.assertIn("HFD_TOKEN_FILE", text)
            self.assertIn("Examples:\n  hyperfleet-driver %s" % name, text)

    def test_what_is_not_there(self):
        """A server that is away is 69; a URL with the path of a driver is said to be wrong."""
        with Server() as other:
            url = "http://127.0.0.1:%d" % other.port
            self.assertIn("without the path of a driver",
                          command("list", "--url", url + "/clusters/", want=1).stderr)
        self.assertIn("cannot be reached",
                      command("list", "--url", "http://127.0.0.1:1", want=69).stderr)


class Access(unittest.TestCase):
    def test_token(self):
        """Without a token the server refuses, and says which scope is missing with a wrong one."""
        with Server() as server:
            with contextlib.closing(Client(server)) as client:
                self.assertEqual(client.put("/held", cluster_input(name="held")).status, 202)

            def token(name, scope):
                path = os.path.join(server.data, name)
                made = command("token", "create", "--name", name, "--scope", scope,
                               "--data", server.data)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(made.stdout)
                return path
            view, driver = token("view", "view"), token("driver", "driver")
            url = "http://127.0.0.1:%d" % server.port
            eventually(lambda: server.alive() and run(
                "list", "--url", url).returncode == 1, "a refusal")
            self.assertIn("401", command("list", "--url", url, want=1).stderr)
            eventually(lambda: "scope view" in run("list", "--url", url, "--token-file",
                                                   driver).stderr, "the token counts")
            self.assertEqual(run("list", "--url", url, "--token-file", driver).returncode, 1)
            command("list", "--url", url, "--token-file", view)
            command("status", env={"HFD_URL": url, "HFD_TOKEN_FILE": view})
            command("get", "none", "--url", url, "--token-file", driver, want=4)
            # A watch may not have the driver hold its answers: it is refused once, and looks on.
            with subprocess.Popen([program(), "status", "held", "-w", "--url", url, "--token-file",
                                   view], stdout=subprocess.DEVNULL, env=clean_env()) as ran:
                eventually(lambda: asked(server, "driver_resource", 200) >= 4, "it looks on")
                ran.send_signal(2)
                self.assertEqual(ran.wait(60), 0)
            self.assertEqual(asked(server, "resource", 403), 1)

    def test_all_pages(self):
        """All pages are read, of failed ones and of stuck ones; a table keeps its columns."""
        with Scripted() as served:
            path = os.path.join(os.environ.get("TMPDIR", "/tmp"), guresid("token"))
            with open(path, "w", encoding="utf-8") as f:
                f.write(TOKEN + "\n")
            self.addCleanup(os.unlink, path)
            ran = command("list", "--url", served.url, "-o", "name", "--token-file", path)
            self.assertEqual(ran.stdout.split(), ["r-%d" % i for i in range(6)])
            self.assertEqual([bearer for _, bearer in served.asked], ["Bearer " + TOKEN] * 3)
            self.assertTrue(served.asked[0][0].startswith("/t/x/api/driver/v1/resources?"))
            ran = command("list", "--url", served.url, "--failed", "--stuck", "--label", "app=a&b",
                          "-o", "json")
            doc = json.loads(ran.stdout)
            self.assertEqual([i["id"] for i in doc["items"]],
                             ["%s-%d" % (w, i) for w in ("failed", "stuck") for i in range(6)])
            self.assertEqual(doc["counts"], {"failed": 12})
            self.assertEqual({tuple(parse_qs(urlsplit(path).query)["label"])
                              for path, _ in served.asked[3:]}, {("app=a&b",)})
            text = command("list", "--url", served.url).stdout
            self.assertNotIn("\x1b", text)
            self.assertEqual({line.index("FAILED") for line in text.splitlines()[1:]},
                             {text.splitlines()[0].index("STATE")})
            self.assertIn("w" * 200, text)


if __name__ == "__main__":
    unittest.main()
