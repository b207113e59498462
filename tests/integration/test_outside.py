"""`doctor` and `token list` ask a server elsewhere over HTTP. They say what a client sees, and name
what only the machine of the server can check.
"""
import http.server
import json
import os
import threading
import unittest

import test_access
import test_remote
import test_tls
from lib import BASE, Client, Server, run
from test_access import Guarded, SCOPES, bearer

# Scope -> the other scopes whose work it may do, by the table of scopes.
ALSO = {"adapter": ["fleet-read"], "fleet-write": ["fleet-read"],
        "admin": [scope for scope in SCOPES if scope != "admin"]}


def url(port, scheme="http"):
    return "%s://127.0.0.1:%d/" % (scheme, port)


class Late:
    """A server with the right document and a clock that is off."""

    def __init__(self, document, date):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(document)))
                self.end_headers()
                self.wfile.write(document)

            def date_time_string(self, timestamp=None):
                return date

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = url(self.httpd.server_address[1])
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


class Outside(Guarded):
    def setUp(self):
        super().setUp()
        self.url, self.ops_url = url(self.server.port), url(self.server.ops_port)

    def before_start(self):
        test_access.token_create(self.server.data, "short", "view", "--expires", "30d")

    def token_file(self, scope, text=None):
        path = os.path.join(self.server.data, scope + ".token")
        with open(path, "w", encoding="ascii") as f:
            f.write((text or self.tokens[scope]) + "\n")
        return path

    def doctor(self, *flags, status=0, env=None):
        """{about: [(good, text)]} of `doctor --json`; its text has the same lines."""
        done = run("doctor", *flags, "--json", env=env)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        doc = json.loads(done.stdout)
        bad = [line for line in doc["lines"] if not line["ok"]]
        self.assertEqual(doc["findings"], len(bad) + len(doc["orphans"]))
        found = {}
        for line in doc["lines"]:
            found.setdefault(line["about"], []).append((line["ok"], line["text"]))
        return found

    def test_all_is_seen(self):
        """Both listeners with a token for all: life, readiness, version, schemas, clock, scopes and
        orphans. It has changed nothing.
        """
        flags = ("--url", self.url, "--ops-url", self.ops_url, "--token-file",
                 self.token_file("admin"))
        found = self.doctor(*flags)
        said = [text for _, text in found["server"]]
        version = run("version").stdout.split()[1]
        self.assertEqual(said, [self.url + " has version " + version,
                                self.ops_url + " has version " + version, "it lives",
                                "it is ready"])
        self.assertEqual(found["schemas"], 2 * [(True, "the same as this program's")])
        self.assertEqual(found["clock"], 2 * [(True, "differs by 0 s")])
        self.assertEqual(found["orphans"], [(True, "0")])
        self.assertEqual(len(found["unseen"]), 1, "only what the machine itself can check")
        for word in ("settings", "key ring", "each row", "hyperfleet-driver doctor"):
            self.assertIn(word, found["unseen"][0][1])
        shown = run("doctor", *flags).stdout
        for about, lines in found.items():
            for _, text in lines:
                self.assertIn("%-9s %s\n" % (about, text), shown)
        clusters = self.main.get(BASE + "/clusters", bearer(self.tokens["admin"])).json
        self.assertEqual(clusters["total"], 0)

    def test_scopes(self):
        """It names exactly what the token may do; a wrong one and none are findings."""
        for scope in SCOPES:
            with self.subTest(scope):
                found = self.doctor("--url", self.url, "--token-file", self.token_file(scope))
                good, text = found["token"][0]
                self.assertTrue(good)
                self.assertEqual(set(text.rsplit(": ", 1)[1].split(", ")),
                                 {scope, *ALSO.get(scope, ())})
        wrong = self.token_file("wrong", "hfd_" + "A" * 43)
        for flags, words in (((), "needs one: --token-file"),
                             (("--token-file", wrong), "unknown, expired or revoked")):
            good, text = self.doctor("--url", self.url, *flags, status=3)["token"][0]
            self.assertFalse(good)
            self.assertIn(words, text)

    def test_one_listener(self):
        """It says what the address that is missing would show. The wrong one of the two is named.
        Without the scope admin orphans are not seen, and that is no finding.
        """
        found = self.doctor("--url", self.url, "--token-file", self.token_file("view"))
        self.assertIn("--ops-url", found["unseen"][0][1])
        found = self.doctor("--ops-url", self.ops_url, "--token-file", self.token_file("view"))
        self.assertIn("scope admin", found["unseen"][0][1])
        self.assertIn("--url", found["unseen"][1][1])
        self.assertNotIn("token", found)
        found = self.doctor("--url", self.ops_url, status=3)
        self.assertIn("the main listener of a hyperfleet-driver?", found["server"][0][1])
        found = self.doctor("--ops-url", self.url, status=3)
        self.assertIn("the ops listener of a hyperfleet-driver?", found["server"][0][1])
        self.server.sigterm()
        found = self.doctor("--url", self.url, "--ops-url", self.ops_url, status=3)
        self.assertEqual([good for good, _ in found["server"]], [False, False])
        self.assertIn("cannot be reached", found["server"][0][1])

    def test_the_environment(self):
        """HFD_URL, HFD_OPS_URL and HFD_TOKEN_FILE stand for flags. With settings they do not
        count: those mean this machine.
        """
        env = {"HFD_URL": self.url, "HFD_OPS_URL": self.ops_url,
               "HFD_TOKEN_FILE": self.token_file("admin")}
        self.assertEqual(len(self.doctor(env=env)["server"]), 4)
        found = self.doctor(*self.server.place.flags(), status=3 if self.server.place.base else 0,
                            env=dict(env, HFD_URL="http://127.0.0.1:1"))
        self.assertIn("key ring", found)
        done = run("token", "list", env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("view.t", done.stdout)

    def test_clock_and_schemas(self):
        """A clock that is off by more than a minute is a finding, and other schemas are named."""
        document = json.dumps({"info": {"version": "9.8.7"}}).encode()
        for date, good, words in (("Sun, 06 Nov 1994 08:49:37 GMT", False, "behind"),
                                  ("Wed, 06 Nov 2069 08:49:37 GMT", False, "ahead of"),
                                  ("no date", False, "unknown")):
            late = Late(document, date)
            self.addCleanup(late.close)
            found = self.doctor("--url", late.url, status=3)
            self.assertEqual(found["clock"][0][0], good)
            self.assertIn(words, found["clock"][0][1])
            self.assertIn("9.8.7", found["server"][0][1])
            self.assertIn("others than this program's", found["schemas"][0][1])

    def test_wrong_use(self):
        """2 for wrong arguments, of both commands."""
        for words, args in (("--data: not with --url", ("--url", self.url, "--data", "x")),
                            ("--data: not with --ops-url", ("--ops-url", self.url, "--data", "x")),
                            ("unknown flag", ("--bogus",)),
                            ("unexpected argument", ("--url", self.url, "more")),
                            ("http", ("--ops-url", "nonsense")),
                            ("token file", ("--ops-url", self.ops_url, "--token-file", "/none"))):
            for command in (("doctor",), ("token", "list")):
                if command[0] == "token" and words.endswith("--url"):
                    continue
                with self.subTest(args=args, command=command):
                    done = run(*command, *args)
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertIn(words, done.stderr)
        for command in (("token", "list"), ("backup", os.path.join(self.server.data, "b"))):
            done = run(*command, "--url", self.url)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("give --ops-url", done.stderr)

    def test_token_list(self):
        """The list of a server elsewhere is that of its own machine. 1 = refused, 69 = away."""
        self.status_of(self.tokens["driver"])
        flags = ("--ops-url", self.ops_url, "--token-file", self.token_file("admin"))
        done = run("token", "list", *flags)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, run("token", "list", "--data", self.server.data).stdout)
        self.assertEqual(len(done.stdout.splitlines()), 2 + len(SCOPES))
        line = next(l.split() for l in done.stdout.splitlines() if l.startswith("driver.t"))
        self.assertEqual((line[1], line[3], line[5]), ("driver", "-", "127.0.0.1"))
        self.assertNotIn(self.tokens["driver"], done.stdout)
        for status, words, args in (
                (1, "scope admin", ("--ops-url", self.ops_url, "--token-file",
                                    self.token_file("view"))),
                (1, "401: give --token-file FILE", ("--ops-url", self.ops_url)),
                (1, "404", ("--ops-url", self.url, "--token-file", self.token_file("admin"))),
                (69, "connect", ("--ops-url", "http://127.0.0.1:1"))):
            done = run("token", "list", *args)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(words, done.stderr)
        self.assertEqual(run("token", "revoke", "view.t", *flags).returncode, 2)

    def test_the_same_flags(self):
        """Each command of the client takes the four flags, and the variables. The help names those
        that it uses.
        """
        flags = ("--url", self.url, "--ops-url", self.ops_url, "--token-file",
                 self.token_file("admin"), "--ca-file", "/none")
        for status, command in ((4, ("get", "none")), (4, ("wait", "none")),
                                (0, ("delete", "none")), (0, ("list",)), (0, ("status",)),
                                (0, ("token", "list")),
                                (0, ("doctor",)),
                                (0, ("backup", os.path.join(self.server.data, "b")))):
            with self.subTest(command):
                done = run(*command, *flags)
                self.assertEqual(done.returncode, status, done.stderr)
        help_of = {name: run("help", name).stdout for name in (
            "apply", "get", "wait", "delete", "list", "status", "backup", "token", "doctor")}
        for name, text in help_of.items():
            for flag in ("--url", "--ops-url", "--token-file", "--ca-file"):
                used = name == "doctor" or flag[-4:] == "file" or \
                    (flag == "--ops-url") == (name in ("backup", "token"))
                self.assertEqual("\n  %s " % flag in text, used, (name, flag))


class Open(unittest.TestCase):
    def test_without_authentication(self):
        """A server without authentication says so. On loopback that is no finding."""
        with Server() as server:
            done = run("doctor", "--url", url(server.port), "--ops-url", url(server.ops_port))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("token     authentication is off: everyone on that machine", done.stdout)
            self.assertIn("orphans   0\n", done.stdout)

    def test_a_remote(self):
        """The health of a remote is what the server finds; one that is ill is a finding."""
        with test_remote.Scripted(lambda path, headers: (500, "text/plain", "no")) as remote:
            with Server("--backend", remote.url, *test_remote.FAST) as server:
                client = Client(server, ops=True)
                test_remote.lib.eventually(
                    lambda: client.get("/healthz").json["remote"]["health"] != "well", "it is ill")
                told = client.get("/healthz").json
                self.assertEqual((told["status"], [p["kind"] for p in told["problems"]]),
                                 ("degraded", ["remote"]))
                page = client.get("/").body.decode()
                client.close()
                self.assertIn("REMOTE HYPERFLEET DOWN</span> GET was answered with status 500",
                              page)
                self.assertIn("REMOTE for ", run("status", "--url", url(server.port)).stdout)
                done = run("doctor", "--json", "--ops-url", url(server.ops_port))
        self.assertEqual(done.returncode, 3, done.stdout)
        found = {line["about"]: line for line in json.loads(done.stdout)["lines"]}
        self.assertFalse(found["remote"]["ok"])
        self.assertIn("the server finds its remote HyperFleet ill: ", found["remote"]["text"])
        self.assertIn("unknown", found["orphans"]["text"])


class Certificate(test_tls.Secure):
    def doctor(self, *flags):
        done = run("doctor", "--url", "https://localhost:%d/" % self.server.port, *flags)
        return done.returncode, done.stdout

    def test_the_certificate(self):
        """It says when the certificate ends. One that nothing vouches for is a finding."""
        self.start()
        status, out = self.doctor("--ca-file", self.path("server.pem"))
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"tls       the certificate at \S+ is valid until 20\d\d-\S+Z, "
                              r"for (89|90) days\n")
        test_tls.self_signed(self.folder, "other")  # a bare system has no file of trusted ones
        status, out = self.doctor("--ca-file", self.path("other.pem"))
        self.assertEqual(status, 3)
        self.assertRegex(out, r"server    \S+ cannot be reached: .*certificate")

    def test_the_end_is_near(self):
        """An end within 14 days is a finding."""
        test_tls.self_signed(self.folder, "short", days=5)
        self.start(cert="short")
        status, out = self.doctor("--ca-file", self.path("short.pem"))
        self.assertEqual(status, 3)
        self.assertRegex(out, r"for [45] days\n")


# The tests of the fixtures run in their own files.
del Guarded

if __name__ == "__main__":
    unittest.main()
