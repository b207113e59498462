"""Texts of servers, drivers and callers: on a terminal, in a pipe, in a document, in the log.
Nothing in them moves a cursor, forges a line, or shows a token.
"""
import http.server
import json
import os
import pty
import re
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

import yaml

from lib import CHECK, Server, clean_env, guresid, program
from test_backup import with_note

EVIL = ("\x1b]0;title\x07\x1b[2J\nFORGED\r\t\x7f\x9b2J\u202e\u2066\u2069\u200e\u200f\u061c\u2028"
        "\u2029\ufeff\u200b end")
WIDE = "\u00e9\u20ac\U0001f600" * 4000  # a cut by bytes leaves half a character
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
                       "\ufeff]")
TOKEN = "hfd_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"
JWT = ("eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0.eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlIiwic3ViIjoieCJ9"
       ".MEUCIQDx7n1Vt5sZ2Jq3yP8wA4bC6dE9fG0hI1jK2lM3nO4pQ5rS6tU7vW8xY9zA0bC1")


def evil(*more):
    """A text that does all of it, and one that is long."""
    return EVIL + "".join(more)


RESOURCE = {
    "id": evil("id"), "type": evil(), "name": evil(), "state": "creating", "health": evil(),
    "code": evil(), "cluster_id": evil(), "message": evil(WIDE), "deadline": evil(),
    "since": "2026-01-01T00:00:00Z", "started_time": "2026-01-01T00:00:00Z",
    "first_estimate": "2026-01-01T00:10:00Z", "labels": {evil("key"): evil("value")},
    "parts": [{"kind": evil(), "name": evil(), "exists": True}],
    "adapters": [{"kind": evil(), "part": evil(), "adapter": evil(), "reason": evil(),
                  "message": evil(WIDE), "usual_seconds": 4, "required": False,
                  "last_report_time": "2026-01-01T00:00:00Z"}],
    "history": [{"time": "2026-01-01T00:00:00Z", "event": evil()}],
    "ordered_by": {"time": evil(), "identity": evil()},
    "manifests": [], "resource": {"values": {evil(): evil(WIDE)}, "secrets": {}},
}
LIST = {"items": [RESOURCE, dict(RESOURCE, state="failed"), dict(RESOURCE, state=evil())],
        "counts": {"ready": 1, evil(): 2}, "next": None}
REFUSAL = {"error": evil("code"), "message": evil(WIDE), "detail": evil(WIDE), "code": evil(),
           "details": {"errors": [{"message": evil(WIDE)}, {"message": evil()}]}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # one packet for head and body
    script = None  # of the test: (method, path) -> status, document or bytes, cookie

    def log_message(self, *args):
        pass

    def serve(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, doc, *cookie = self.script(self.command, self.path)
        body = doc if isinstance(doc, bytes) else json.dumps(doc, ensure_ascii=False).encode()
        self.send_response(status, "x")
        self.send_header("Content-Type", "application/json")
        self.send_header("Retry-After", "1")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers_with(cookie)
        if status != 204:
            self.wfile.write(body)

    def end_headers_with(self, cookie):
        for value in cookie:
            self._headers_buffer.append(b"Set-Humanitec-Driver-Cookie: " + value + b"\r\n")
        self.end_headers()

    do_GET = do_PUT = do_DELETE = do_POST = do_PATCH = serve


class Foreign(unittest.TestCase):
    whole = True  # no text has broken bytes

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hfd-foreign-")
        self.addCleanup(self.folder.cleanup)
        self.env = {"XDG_STATE_HOME": self.path("state")}
        with open(self.path("order.json"), "w", encoding="utf-8") as f:
            json.dump({"type": "t", "driver": {"values": {"cluster": {"name": "mine"}}}}, f)
        with open(self.path("token"), "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def serve(self, script):
        handler = type("H", (Handler,), {"script": staticmethod(script)})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "http://127.0.0.1:%d" % server.server_address[1]

    def run_it(self, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        of_check = args[:1] == ("check",)
        start = [sys.executable, "-B", CHECK] if of_check else [program()]
        return subprocess.run([*start, *args[of_check:]], stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=stderr, env=clean_env(self.env), timeout=120, check=False)

    def on_terminal(self, *args):
        """The text on a terminal, without the moves that the line of progress makes itself."""
        master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        seen = []

        def read():
            try:
                while True:
                    seen.append(os.read(master, 65536))
            except OSError:
                pass
        reader = threading.Thread(target=read)
        reader.start()
        ran = self.run_it(*args, stdout=slave, stderr=slave)
        os.close(slave)
        reader.join(60)
        os.close(master)
        text = b"".join(seen)
        return ran.returncode, text.replace(b"\r", b"").replace(b"\x1b[K", b"")

    def assert_clean(self, raw, about):
        text = raw.decode("utf-8")
        if self.whole:
            self.assertNotIn("\ufffd", text, about)
        found = FORBIDDEN.search(text)
        self.assertIsNone(found, (about, found and text[max(0, found.start() - 60):][:80]))
        for line in text.split("\n"):
            self.assertFalse(line.startswith("FORGED"), (about, text[:500]))
            self.assertNotIn(TOKEN[:24], line, about)
        return text

    def try_all(self, commands):
        """Runs commands with pipes and on a terminal. @return the outputs of the pipes"""
        out = []
        for command in commands:
            with self.subTest(command=command):
                ran = self.run_it(*command)
                out.append((self.assert_clean(ran.stdout, command),
                            self.assert_clean(ran.stderr, command)))
                status, text = self.on_terminal(*command)
                self.assert_clean(text, command)
                self.assertEqual(status, ran.returncode, command)
                self.assertTrue(text, command)
        return out

    def test_refusals(self):
        """Errors, whatever the command; with a body that is text, or that is none."""
        order, token = self.path("order.json"), self.path("token")
        for status in (400, 404, 409, 500):
            for body in (REFUSAL, evil("raw").encode() + b"\xff\xc3\x9b"):
                self.whole = body is REFUSAL
                url = self.serve(lambda method, path, a=(status, body): a)
                self.try_all([
                    ("apply", order, "--url", url), ("apply", order, "--url", url, "--dry-run"),
                    ("get", "x", "--url", url), ("delete", "x", "--url", url),
                    ("status", "--url", url), ("status", "x", "--url", url),
                    ("list", "--url", url),
                    ("token", "list", "--ops-url", url, "--token-file", token),
                    ("backup", self.path("b"), "--ops-url", url, "--token-file", token),
                    ("doctor", "--url", url, "--ops-url", url, "--token-file", token),
                    ("doctor", "--json", "--url", url, "--ops-url", url),
                    ("health", "--ops-listen", url[7:]),
                    ("register", "--check", "--org", "o", "--target", "http://x", "--api-url", url,
                     "--token-file", token)])
        url = self.serve(lambda method, path: (400, REFUSAL))
        ran = self.run_it("wait", "x", "--url", url)
        self.assertIn(r"\u001b]0;title\u0007\u001b[2J\nFORGED\r\t\u007f\u009b2J\u202e\u2066",
                      self.assert_clean(ran.stderr, "wait"))

    def test_progress(self):
        """The hints of a 202, and the document at the end."""
        order = self.path("order.json")
        hint = {"status": evil("status"), "message": evil(WIDE), "current_time": evil()}
        polls = {}

        def script(method, path):
            polls[path] = polls.get(path, 0) + (method == "GET")
            if method != "GET":
                return 202, hint
            return (202, hint) if polls[path] % 2 else (200, RESOURCE)
        url = self.serve(script)
        self.try_all([("apply", order, "--url", url), ("apply", order, "--url", url, "--wait"),
                      ("wait", "x", "--url", url), ("delete", "y", "--url", url)])
        out = self.try_all([("apply", order, "--wait", "--url", url, "-o", form)
                            for form in ("json", "yaml", "name")])
        self.assertEqual(json.loads(out[0][0]), RESOURCE)
        self.assertEqual(yaml.safe_load(out[1][0]), RESOURCE)

    def test_views(self):
        """Tables keep their columns, documents their values."""
        def script(_method, path):
            if path.startswith("/admin/tokens"):
                return 200, {"items": [{"name": evil(), "scopes": [evil(), evil()],
                                        "last_used_from": evil(), "created_time": evil()}]}
            if path.startswith("/admin/orphans"):
                return 200, {"items": [{"kind": evil(), "id": evil(), "name": evil(),
                                        "guresid": evil(), "message": evil(WIDE)}],
                             "checked_time": evil(), "message": evil(WIDE), "more": True}
            if path.startswith("/api/driver/v1/resources?"):
                return 200, LIST
            if path.startswith(("/docs/", "/api/hyperfleet/v1/openapi")):
                return 200, {"info": {"version": evil()}}
            if path == "/healthz":
                return 200, {"remote": {"health": evil(), "last_failure": evil(WIDE)}}
            if path in ("/livez", "/readyz"):
                return 503, {"reason": evil(), "message": evil()}
            return 200, RESOURCE
        url, token = self.serve(script), self.path("token")
        self.try_all([("status", "--url", url), ("status", "x", "--url", url),
                      ("list", "--url", url), ("list", "--url", url, "-o", "wide"),
                      ("list", "--url", url, "-o", "name"), ("status", "--url", url, "-o", "name"),
                      ("token", "list", "--ops-url", url, "--token-file", token),
                      ("doctor", "--url", url, "--ops-url", url, "--token-file", token),
                      ("register", "--check", "--org", "o", "--target", "http://x",
                       "--api-url", url, "--token-file", token)])
        for command, doc in (("status", None), ("list", LIST)):
            out = self.try_all([(command, "--url", url, "-o", form) for form in ("json", "yaml")])
            got = json.loads(out[0][0])
            self.assertEqual(got, yaml.safe_load(out[1][0]))
            self.assertEqual(got["items"], LIST["items"], doc)
        out = self.try_all([("status", "x", "--url", url, "-o", form) for form in ("json", "yaml")])
        self.assertEqual(json.loads(out[0][0]), RESOURCE)
        self.assertEqual(yaml.safe_load(out[1][0]), RESOURCE)
        out = self.try_all([("doctor", "--json", "--url", url, "--ops-url", url,
                             "--token-file", token)])
        self.assertEqual(json.loads(out[0][0])["orphans"][0]["message"], evil(WIDE))

    def test_check(self):
        """The report of `check` in all its forms, whatever the answers are."""
        order = self.path("order.json")
        for body in (REFUSAL, WIDE.encode(), {"m": WIDE}, b"\xff" + evil().encode()):
            self.whole = body[:1] != b"\xff" if isinstance(body, bytes) else True
            url = self.serve(lambda method, path, b=body: (400 if method != "PUT" else 500, b))
            self.try_all([("check", url, "--input", order),
                          ("check", url, "--input", order, "--json"),
                          ("check", url, "--input", order, "--junit", self.path("junit"))])
            with open(self.path("junit"), "rb") as f:
                self.assert_clean(f.read(), "junit")

    def test_backup(self):
        """Key ids in the note of a backup."""
        with Server("--demo=1") as server:
            self.run_it("backup", self.path("b"), "--ops-url",
                        "http://127.0.0.1:%d" % server.ops_port)
        with_note(self.path("b"), keys=[evil()])
        out = self.try_all([("restore", self.path("b"), "--data", self.path("data"))])
        self.assertIn("hyperfleet-driver restore: ", out[0][1])

    def test_arguments(self):
        """Arguments, which a script may have taken from elsewhere."""
        self.try_all([("get", evil(WIDE), "--url", evil()), (evil(WIDE),), ("help", evil(WIDE)),
                      ("list", "--" + evil(WIDE)), ("list", evil(WIDE)), ("version", evil(WIDE)),
                      ("config", evil(WIDE)), ("serve", "--" + evil(WIDE)),
                      ("keygen", "--new", "--data", evil(WIDE))])

    def test_endless_list(self):
        """A list that names the same page again, or ever new ones, ends."""
        count = []

        def same(_method, _path):
            count.append(1)
            return 200, dict(LIST, next="again")

        def two(_method, path):
            return 200, dict(LIST, next="a" if "after=b" in path else "b")

        def new(_method, _path):
            count.append(1)
            return 200, {"items": [], "counts": {}, "next": "n%d" % len(count)}
        for script, words in ((same, "names a page again"), (two, "names a page again"),
                              (new, "the list is too long"),
                              (lambda m, p: (200, dict(LIST, next="x" * 5000)), "too long")):
            with self.subTest(words=words):
                del count[:]
                ran = self.run_it("list", "--url", self.serve(script))
                self.assertEqual((ran.returncode, ran.stdout), (1, b""), ran.stderr)
                self.assertIn(words, ran.stderr.decode())
        self.assertLessEqual(len(count), 2000)

    def cookies(self):
        with open(self.path("state/hyperfleet-driver/cookies.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_odd_cookies(self):
        """A cookie that cannot be kept is told once; the order is made, and the file has it."""
        order = self.path("order.json")
        for cookie, words in ((b"\xff\xfe", "it is no text"), (b"a\x01b", "it is no text"),
                              (b"a" * 10241, "expected at most 10240"),
                              (b"a" * 90000, "expected at most 10240")):
            with self.subTest(cookie=cookie[:9]):
                url = self.serve(lambda m, p, c=cookie: (202 if m == "PUT" else 200, RESOURCE, c))
                ran = self.run_it("apply", order, "--url", url, "--id", "x")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(json.loads(ran.stdout), RESOURCE)
                self.assertIn("the driver has taken the request, but its cookie is not kept: ",
                              ran.stderr.decode())
                self.assertIn(words, ran.stderr.decode())
                self.assertEqual(self.cookies()[url], {"x": None})
                ran = self.run_it("apply", order, "--url", url, "--id", "x", "--wait")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(ran.stderr.decode().count("is not kept"), 1)
        url = self.serve(lambda m, p: (200, RESOURCE, b"a" * 10240))
        ran = self.run_it("apply", order, "--url", url, "--id", "x")
        self.assertNotIn(b"warning", ran.stderr)
        self.assertEqual(self.cookies()[url], {"x": "a" * 10240})

    def test_full_state(self):
        """One driver has its share of the file; others have room."""
        order, state = self.path("order.json"), self.path("full.json")
        url, other = [self.serve(lambda m, p: (200, RESOURCE, b"a" * 9000)) for _ in range(2)]
        full = {"r%d" % i: "a" * 10000 for i in range(837)}
        with open(state, "w", encoding="utf-8") as f:
            json.dump({url: full}, f)
        ran = self.run_it("apply", order, "--url", url, "--id", "x", "--state", state)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("8 MiB of cookies of this driver already", ran.stderr.decode())
        ran = self.run_it("apply", order, "--url", other, "--id", "x", "--state", state)
        self.assertNotIn(b"warning", ran.stderr)
        with open(state, encoding="utf-8") as f:
            doc = json.load(f)
        self.assertIsNone(doc[url]["x"])
        self.assertEqual(doc[other]["x"], "a" * 9000)



PLACES = ("/hyperfleet/t/%s/abc", "/t%%2F%s/abc", "/t%%252F%s/abc", "/T/%s/abc", "/./t/%s/abc",
          "/x/../t/%s/abc", "/api/t/%s/", "/%s", "/clusters/%s", "/t/hfd_x/t/%s/abc", "//t//%s",
          "/abc?token=%s", "/api/hyperfleet/v1/clusters?search=%s",
          "/api/hyperfleet/v1/clusters?search=name%%3D'%s'",
          "/api/hyperfleet/v1/clusters?pageSize=%s",
          "/api/hyperfleet/v1/clusters?orderBy=%s", "/api/hyperfleet/v1/clusters?fields=%s",
          "/api/hyperfleet/v1/clusters/%s/nodepools/x", "/api/hyperfleet/v1/nothing/%s?x=%s",
          "/api/driver/v1/resources?state=%s", "/api/driver/v1/resources?after=%s",
          "/api/driver/v1/resources/%s", "/api/driver/v1/%s", "/page?search=%s", "/page/%s",
          "/admin/%s", "/validate?id=%s", "/%s%s")


class Secrets(unittest.TestCase):
    """A token is known by its form, wherever it stands."""

    def ask(self, port, method, path, headers=(), body=b""):
        head = ["%s %s HTTP/1.1" % (method, path), "Host: localhost", "Connection: close",
                "Content-Length: %d" % len(body), *headers]
        with socket.create_connection(("127.0.0.1", port), 30) as s:
            s.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            got = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    return got.decode("utf-8")
                got += piece

    def forms(self, secret):
        """A secret as it is, and as encoders write it."""
        return (secret, secret.replace("_", "%5F").replace(".", "%2e"),
                secret.replace("_", "%255F").replace(".", "%252E"),
                "%%%02x" % ord(secret[0]) + secret[1:], secret[:-3])

    def test_paths(self):
        """No path, query or header brings a token into the log, an answer or a page."""
        with Server("--log-level=debug") as server:
            for secret in (TOKEN, JWT):
                for form in self.forms(secret):
                    self.try_places(server, form, secret)
            shown = "".join(server.lines)
            self.assertIn("[redacted]", shown)
            for secret in (TOKEN, JWT):
                self.assertNotIn(secret[-20:-4], shown)
                self.assertNotIn(secret[8:40], shown)

    def try_places(self, server, form, secret):
        for place in PLACES:
            path = place % ((form,) * place.count("%s"))
            for port in (server.port, server.ops_port):
                with self.subTest(path=path, port=port):
                    got = self.ask(port, "GET", path)
                    self.assertNotIn(secret[8:40], got)
                    self.assertNotIn(secret[-20:-4], got)
        for method, path, headers, body in (
                ("PUT", "/x", (), {"type": form}),
                ("PUT", "/x", (), {"type": "hyperfleet-cluster", form: 1}),
                ("PUT", "/x", (), {"type": "hyperfleet-cluster", "driver": {"values": {form: {}}}}),
                ("PUT", "/x", (), {"type": "hyperfleet-cluster", "driver": {"values": {
                    "cluster": {"name": form, "spec": {}}}}}),
                ("POST", "/api/hyperfleet/v1/clusters", (), {form: form}),
                ("POST", "/api/hyperfleet/v1/clusters", (), {"kind": form, "name": form}),
                (form, "/x", (), {}), ("GET", "/x", ("Humanitec-Driver-Cookie: " + form,), {}),
                ("GET", "/x", ("X-Request-ID: " + form, "Traceparent: " + form), {}),
                ("GET", "/x", ("Authorization: " + form,), {}),
                ("GET", "/x", ("Authorization: Bearer " + form,), {}),
                ("GET", "/x", ("Host: " + form,), {}),
                ("GET", "/x", ("Origin: http://" + form,), {}),
                ("PUT", "/x", ("Transfer-Encoding: " + form,), {}),
                ("GET", "/x", (form + ": x",), {}), ("GET", "/x\t" + form, (), {})):
            with self.subTest(method=method, path=path, headers=headers, body=body):
                got = self.ask(server.port, method, path, headers, json.dumps(body).encode())
                self.assertNotIn(secret[8:40], got)
                self.assertNotIn(secret[-20:-4], got)


if __name__ == "__main__":
    unittest.main()
