"""Access: every route with every scope and every way of logging in; tokens and their file; the
start off loopback. Written from the table of scopes, not from the program's table of routes.
"""
import base64
import concurrent.futures
import contextlib
import itertools
import os
import re
import socket
import sqlite3
import threading
import time
import unittest

from lib import (BASE, Client, Server, cluster_input, eventually, guresid, report_body,
                 run as run_program)
from pacemaker import document, time_at

SCOPES = ("driver", "fleet-read", "adapter", "fleet-write", "view", "admin")
OPEN = re.compile(r"^/(livez|alive|readyz|health|healthz|metrics|docs(/.*)?|favicon\.ico)$"
                  r"|^/api/hyperfleet/v1/openapi(\.html|/.*)?$")
READERS = {"fleet-read", "adapter", "fleet-write", "admin"}


def may(method, path):
    """The scopes that the issue's table gives; None = open."""
    if OPEN.match(path):
        return None
    if path.startswith("/api/hyperfleet"):
        if method == "GET":
            return READERS
        if path.endswith("/force-delete"):
            return {"admin"}
        if path.endswith("/statuses") or path.endswith("/pacemaker/status"):
            return {"adapter", "admin"}
        if path.endswith("/pacemaker"):
            return {"adapter", "admin"} if method in ("POST", "DELETE") else {"admin"}
        return {"fleet-write", "admin"}
    if path.startswith("/api/driver/v1"):
        return {"view", "admin"} if method == "GET" else {"admin"}
    if path.startswith("/admin"):
        return {"admin"}
    if path == "/" or path.startswith(("/r/", "/page/")):
        return {"view", "admin"}
    if path.endswith("/status"):
        return {"driver", "view", "admin"}
    return {"driver", "admin"}


def run(*args):
    """Runs the program to its end: (status, stdout, stderr)."""
    done = run_program(*args)
    return done.returncode, done.stdout, done.stderr


def token_create(data, name, scope, *more):
    status, out, err = run("token", "create", "--new", "--name", name, "--scope", scope, "--data",
                           data, *more)
    assert status == 0, (status, out, err)
    return out.strip()


def bearer(token):
    return {"Authorization": "Bearer " + token}


def basic(token, user="me"):
    text = base64.b64encode(("%s:%s" % (user, token)).encode()).decode()
    return {"Authorization": "Basic " + text}


class Guarded(unittest.TestCase):
    """A server with one token of each scope."""
    FLAGS = ()

    def setUp(self):
        self.server = Server(*self.FLAGS)
        self.addCleanup(self.server.close)
        self.tokens = {scope: token_create(self.server.data, scope + ".t", scope)
                       for scope in SCOPES}
        self.before_start()
        self.server.start()
        self.main, self.ops = Client(self.server), Client(self.server, ops=True)
        self.addCleanup(self.main.close)
        self.addCleanup(self.ops.close)

    def before_start(self):
        pass

    def status_of(self, token, path="/" + "nothing"):
        return self.main.get(path, bearer(token)).status


class Matrix(Guarded):
    FLAGS = ("--http-trusted-proxies", "127.0.0.0/8")
    numbers = itertools.count(1)

    def elsewhere(self, headers):
        """The headers from another address each time: failed logins of one would be slowed."""
        number = next(Matrix.numbers)
        return dict({"X-Forwarded-For": "10.0.%d.%d" % divmod(number, 250)}, **headers)

    def ways(self, ops):
        """name, function: (token, path) -> (headers, path)"""
        yield "bearer", lambda token, path: (bearer(token), path)
        yield "path", lambda token, path: ({}, "/t/%s%s" % (token, path))
        if ops:
            yield "basic", lambda token, path: (basic(token), path)

    def operations(self):
        for path, item in self.ops.get("/docs/spec.json").json["paths"].items():
            for method in item:
                if method in ("get", "put", "post", "patch", "delete"):
                    yield method.upper(), path, "servers" in item, item[method]

    def judged(self, operation):
        """Tries an operation in each way: [(what was tried, if the answer is right, the answer)]"""
        method, template, is_ops, _ = operation
        path = re.sub(r"\{[^}]*\}", "none-of-these", template.replace("{driver}", "clusters"))
        allowed, found = may(method, template), []
        client = Client(self.server, ops=is_ops)
        for headers in ({}, bearer("hfd_" + "A" * 43), bearer("abc"), {"Authorization": "x"}):
            answer = client.request(method, path, b"{}", self.elsewhere(headers))
            found.append((dict(method=method, path=template, headers=headers),
                          (answer.status == 401) == (allowed is not None), answer))
        for scope in SCOPES:
            for way, make in self.ways(is_ops):
                headers, target = make(self.tokens[scope], path)
                answer = client.request(method, target, b"{}", headers)
                refused = allowed is not None and scope not in allowed
                found.append((dict(method=method, path=template, scope=scope, way=way),
                              answer.status != 401 and (answer.status == 403) == refused, answer))
        client.close()
        return found

    def test_start_page(self):
        """The page at "/" of the main listener needs what its 404 needs: any valid token."""
        html = {"Accept": "text/html"}
        self.assertEqual(self.main.get("/", html).status, 401)
        self.assertEqual(self.main.get("/", dict(html, **bearer(self.tokens["view"]))).status, 200)

    def test_every_route(self):
        """Every route x scope x way of logging in is allowed or refused as the table says."""
        count = 0
        # The 401 to a wrong token waits.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for found in pool.map(self.judged, list(self.operations())):
                for tried, right, answer in found:
                    count += "scope" in tried
                    with self.subTest(**tried):
                        self.assertTrue(right, answer)
        self.assertGreater(count, 500)

    def test_the_document_says_so(self):
        """An operation of the OpenAPI document that is open says so; no other does."""
        for method, path, _, operation in self.operations():
            with self.subTest(method=method, path=path):
                self.assertEqual(operation.get("security") == [], may(method, path) is None)

    def test_refusals(self):
        """401 has a challenge, 403 names the scope; neither depends on what exists."""
        gid = guresid("there")
        self.assertEqual(self.main.put("/" + gid, cluster_input(),
                                       bearer(self.tokens["driver"])).status, 202)
        for path in ("/" + gid, "/" + guresid("absent")):
            answer = self.main.get(path)
            self.assertEqual((answer.status, answer.header("WWW-Authenticate")), (401, "Bearer"))
            answer = self.main.get(path, bearer(self.tokens["view"]))
            self.assertEqual(answer.status, 403)
            self.assertEqual(answer.json["message"], "the caller lacks the scope driver")
        problem = self.main.post(BASE + "/clusters", {}, bearer(self.tokens["adapter"]))
        self.assertEqual((problem.status, problem.json["code"], problem.json["detail"]),
                         (403, "HYPERFLEET-AUZ-001", "the caller lacks the scope fleet-write"))
        problem = self.main.get(BASE + "/clusters")
        self.assertEqual((problem.status, problem.json["code"]), (401, "HYPERFLEET-AUTH-001"))
        answer = self.ops.get("/admin/orphans")
        offered = [v for k, v in answer.headers if k.lower() == "www-authenticate"]
        self.assertEqual([v.split(" ")[0] for v in offered], ["Bearer", "Basic"])
        for path in ("/none/of/these", BASE + "/none", "/%zz"):
            self.assertEqual(self.main.get(path).status, 401)
        self.assertEqual(self.main.get("/none/of/these", bearer(self.tokens["view"])).status, 404)
        self.assertEqual(self.main.post("/" + gid, {}).status, 401)
        self.assertEqual(self.main.post("/" + gid, {}, bearer(self.tokens["view"])).status, 405)

    def test_basic_is_for_the_ops_listener(self):
        """A password is no credential on the main listener."""
        self.assertEqual(self.main.get("/x", basic(self.tokens["admin"])).status, 401)
        self.assertEqual(self.ops.get("/admin/orphans",
                                      basic(self.tokens["admin"], "")).status, 200)
        for text in ("", "!", base64.b64encode(b"no colon").decode(),
                     base64.b64encode(b"a:" + b"x" * 5000).decode()):
            answer = self.ops.get("/admin/orphans", {"Authorization": "Basic " + text})
            self.assertEqual(answer.status, 401, text[:40])

    def test_origin(self):
        """A page of another origin changes nothing, and reads nothing of /admin; any Host will do.
        """
        evil = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        for client, path in ((self.main, "/" + guresid()), (self.ops, "/admin/orphans/x")):
            for headers in (evil, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
                with self.subTest(path=path, headers=headers):
                    answer = client.delete(path, dict(headers, **bearer(self.tokens["admin"])))
                    self.assertEqual(answer.status, 403)
        token = self.tokens["admin"]
        reads = [path for method, path, _, _ in self.operations()
                 if method == "GET" and path.startswith("/admin")]
        self.assertGreaterEqual(len(reads), 4)
        for path in reads + ["//admin/backup/", "/%61dmin/tokens", "/t/%s/admin/tokens" % token]:
            for headers in (evil, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
                for method, auth in itertools.product(("GET", "HEAD"),
                                                      (bearer(token), basic(token), {})):
                    with self.subTest(method=method, path=path, headers=headers):
                        answer = self.ops.request(method, path, None, dict(headers, **auth))
                        self.assertEqual(answer.status, 403)
        self.assertEqual(self.ops.get("/admin/orphans", dict({"Sec-Fetch-Site": "none"},
                                                             **bearer(token))).status, 200)
        self.assertEqual(self.ops.get("/", dict(evil, **bearer(self.tokens["view"]))).status, 200)
        self.assertEqual(self.main.get("/x", dict(bearer(self.tokens["driver"]),
                                                  Host="driver.example")).status, 404)
        own = {"Host": "driver.example:9", "Origin": "https://driver.example:9"}
        answer = self.main.delete("/x", dict(own, **bearer(self.tokens["driver"])))
        self.assertEqual(answer.status, 204)

    def test_the_caller_is_named(self):
        """The token's name is the identity in created_by and in the log."""
        made = self.main.post(BASE + "/clusters", {"kind": "Cluster", "name": "named", "spec": {}},
                              bearer(self.tokens["fleet-write"]))
        self.assertEqual(made.json["created_by"], "fleet-write.t@hyperfleet.local")
        eventually(lambda: any(r.get("caller") == "fleet-write.t@hyperfleet.local"
                               for r in self.server.records() if r["msg"] == "request"),
                   "the log names the caller")

    def test_nothing_has_the_token(self):
        """The token of a path, and refused credentials, are in no log line, answer or metric."""
        token = self.tokens["driver"]
        wrong = "hfd_" + "B" * 43
        seen = []
        for secret in (token, wrong):
            for path in ("/t/%s/clusters/abc", "//t/%s/abc", "/%%74/%s/abc", "/t//%s//abc", "/t/%s",
                         "/t/%s/", "/t/%s/%%zz", "/t/%s" + BASE + "/clusters/x?fields=no",
                         "/t/%s/" + "x" * 17000):
                for headers in ({}, {"Origin": "https://evil.example"}):
                    for method in ("GET", "DELETE", "BREW"):
                        answer = self.main.request(method, path % secret, None,
                                                   self.elsewhere(headers))
                        seen.append(repr(answer.headers) + answer.body.decode())
            seen.append(self.main.get("/x", bearer(secret)).body.decode())
            answer = self.main.request("PUT", "/t/%s/clusters/%s" % (secret, guresid()),
                                       cluster_input())
            seen.append(repr(answer.headers) + answer.body.decode())
        seen.append(self.ops.get("/metrics").body.decode())
        seen += self.server.lines
        for secret in (token[4:], wrong[4:]):
            self.assertEqual([line[:300] for line in seen if secret in line], [])
        self.assertEqual(self.server.files_with(token[4:].encode()), [])

    def test_refusals_are_counted(self):
        self.main.get("/x")
        self.main.get("/x", bearer("hfd_" + "C" * 43))
        self.main.get("/x", bearer(self.tokens["view"]))
        text = self.ops.get("/metrics").body.decode()
        for reason in ("absent", "unknown", "scope"):
            self.assertIn('hfd_auth_refused_total{reason="%s"} 1' % reason, text)
        eventually(lambda: [r["reason"] for r in self.server.records()
                            if r["msg"] == "caller refused"] == ["absent", "unknown", "scope"],
                   "the log has each refusal")


class Failures(Guarded):
    def fail(self, client, times):
        began = time.monotonic()
        for _ in range(times):
            self.assertEqual(client.get("/x", bearer("hfd_" + "D" * 43)).status, 401)
        return time.monotonic() - began

    def test_failures_are_slowed(self):
        """The 401 to failed logins waits: 20 ms for each failure, 2 s at the hundredth. A valid
        token and a request without credentials do not.
        """
        clients = [Client(self.server) for _ in range(20)]
        for client in clients:
            self.addCleanup(client.close)
        first = self.fail(clients[0], 10)
        self.assertGreaterEqual(first, 0.02 * sum(range(1, 11)))

        def work(client):
            self.fail(client, 5)

        threads = [threading.Thread(target=work, args=(c,)) for c in clients]
        for thread in threads:
            thread.start()
        good = []
        while any(t.is_alive() for t in threads):
            began = time.monotonic()
            self.assertEqual(self.status_of(self.tokens["driver"]), 404)
            self.assertEqual(self.main.get("/x").status, 401)
            good.append(time.monotonic() - began)
            time.sleep(0.02)  # spares the machine
        for thread in threads:
            thread.join()
        last = self.fail(clients[0], 1)
        self.assertGreaterEqual(last, 1.8)
        self.assertLess(sorted(good)[len(good) // 2], last / 2)
        eventually(lambda: b"\nhfd_http_requests_in_flight 0\n" in self.ops.get("/metrics").body,
                   "none is in flight")

    def test_what_waits_is_bounded(self):
        """A flood of failures is answered, its log is bounded, and none is lost to the count."""
        raw = []
        for _ in range(400):
            s = socket.create_connection(("127.0.0.1", self.server.port))
            s.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hfd_"
                      + b"E" * 43 + b"\r\n\r\n")
            raw.append(s)
        for s in raw[:50]:
            s.close()  # some do not wait for the answer
        self.assertEqual(self.status_of(self.tokens["driver"]), 404)
        for s in raw[50:]:
            s.settimeout(60)
            self.assertIn(b" 401 ", s.recv(4096))
            s.close()
        counted = 'hfd_auth_refused_total{reason="unknown"} 400'
        eventually(lambda: counted in self.ops.get("/metrics").body.decode(), "all are counted")
        lines = [r for r in self.server.records() if r["msg"] == "caller refused"]
        self.assertLess(len(lines), 200)
        self.assertEqual(len(lines) + sum(r.get("silent", 0) for r in lines) <= 400, True)

    def test_the_end_does_not_wait(self):
        """A stop answers what waits at once."""
        for attempt in range(5):
            if attempt > 0:  # something else held up the machine for a second
                self.server.start()
            delay, took = self.stop_while_one_waits()
            if took < delay / 2:
                return
        self.fail("the answer took %.1f s of %.1f s" % (took, delay))

    def stop_while_one_waits(self):
        """(how long a 401 waits, how long it waited when the server was stopped)"""
        request = b"GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hfd_F\r\n\r\n"

        def login():
            s = socket.create_connection(("127.0.0.1", self.server.port))
            s.settimeout(60)
            s.sendall(request)
            return s

        waiting = [login() for _ in range(100)]
        for s in waiting:
            self.assertIn(b" 401 ", s.recv(4096))
            s.close()
        began = time.monotonic()
        s = login()
        self.assertIn(b" 401 ", s.recv(4096))
        delay = time.monotonic() - began
        s.close()
        s = login()
        counted = 'hfd_auth_refused_total{reason="unknown"} 102'
        eventually(lambda: counted in self.ops.get("/metrics").body.decode(), "it waits")
        began = time.monotonic()
        self.server.proc.terminate()
        self.assertIn(b" 401 ", s.recv(4096))
        took = time.monotonic() - began
        s.close()
        self.assertEqual(self.server.wait(), 0)
        return delay, took


class BoundAdapters(Guarded):
    """Tokens whose scope adapter has names report under these names only."""
    FLAGS = ("--adapters-pacemaker", "pacemaker")

    def before_start(self):
        self.dns = token_create(self.server.data, "dns", "adapter=dns")
        self.two = token_create(self.server.data, "two", "adapter=dns, adapter=pacemaker",
                                "--scope", "view")

    def test_reports(self):
        writer = bearer(self.tokens["fleet-write"])
        made = self.main.post(BASE + "/clusters", {"kind": "Cluster", "name": "bound", "spec": {}},
                              writer).json
        pool = self.main.post(made["href"] + "/nodepools",
                              {"kind": "NodePool", "name": "pool1", "spec": {}}, writer).json
        flat = BASE + "/nodepools/" + pool["id"]
        for token, names in ((self.dns, ("dns",)), (self.two, ("dns", "pacemaker")),
                             (self.tokens["adapter"], ("dns", "pacemaker", "validation"))):
            for href in (made["href"], pool["href"], flat):
                for method in "POST", "PUT":
                    for name in "dns", "validation", "pacemaker", "dns2", "DNS":
                        body = report_body(name, 1, data={"secrets": {"a": "b"}})
                        answer = self.main.request(method, href + "/statuses", body, bearer(token))
                        allowed = name in names or len(names) == 3
                        with self.subTest(method=method, href=href, name=name, names=names):
                            self.assertEqual(answer.status == 403, not allowed, answer)
                            if not allowed:
                                self.assertEqual(answer.json["code"], "HYPERFLEET-AUZ-001")
                                self.assertIn("adapter=dns", answer.json["detail"])
                            elif method == "POST":
                                self.assertIn(answer.status, (201, 204), answer)
        listed = self.main.get(made["href"] + "/statuses", writer).json["items"]
        self.assertTrue({r["adapter"] for r in listed} <= {"dns", "pacemaker", "validation", "dns2",
                                                           "DNS"})
        eventually(lambda: any(r.get("reason") == "adapter" and "adapter=dns" in r["error"]
                               for r in self.server.records()), "the log says so")

    def test_documents(self):
        """The documents of the pacemaker routes are reports of that adapter."""
        writer = bearer(self.tokens["fleet-write"])
        href = self.main.post(BASE + "/clusters",
                              {"kind": "Cluster", "name": "documents", "spec": {}},
                              writer).json["href"] + "/pacemaker"
        doc = document(updated=time_at(-1))
        for token, allowed in ((self.dns, False), (self.two, True), (self.tokens["adapter"], True)):
            for method, path in (("POST", href), ("PUT", href + "/status"), ("DELETE", href)):
                answer = self.main.request(method, path, doc if method != "DELETE" else None,
                                           bearer(token))
                with self.subTest(method=method, allowed=allowed):
                    self.assertEqual(answer.status == 403, not allowed, answer)
            self.assertIn(self.main.get(href, bearer(token)).status, (200, 404))

    def test_the_lists(self):
        flags = ("--data", self.server.data, "--ops-listen", "127.0.0.1:%d" % self.server.ops_port)
        admin = os.path.join(self.server.data, "admin")
        with open(admin, "w", encoding="ascii") as f:
            f.write(self.tokens["admin"])
        os.chmod(admin, 0o600)
        items = self.ops.get("/admin/tokens", bearer(self.tokens["admin"])).json["items"]
        self.assertEqual({i["name"]: i["scopes"] for i in items}["two"],
                         ["adapter=dns", "adapter=pacemaker", "view"])
        for args in (flags, ("--ops-url", "http://127.0.0.1:%d" % self.server.ops_port,
                             "--token-file", admin)):
            status, out, err = run("token", "list", *args)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual({l.split()[0]: l.split()[1] for l in out.splitlines()}["two"],
                             "adapter=dns,adapter=pacemaker,view")
        for scope in "adapter=", "adapter=a b", "view=dns", "adapter,adapter=dns":
            status, _, err = run("token", "create", "--name", "x", "--scope", scope, *flags[:2])
            self.assertEqual(status, 2, scope)
            self.assertIn("--scope: expected", err)


class LastUses(Guarded):
    def before_start(self):
        """Rows of more tokens than a file ever has."""
        self.server.start()
        self.assertEqual(self.server.sigterm(), 0)
        with contextlib.closing(sqlite3.connect(os.path.join(self.server.data, "store.db"))) as db:
            db.executemany("INSERT INTO token_use VALUES (?, 1, 1, 'x')",
                           [("old-%d" % n,) for n in range(2500)] + [("driver.t",)])
            db.commit()

    def test_rows_of_others_go(self):
        """Rows of tokens that are no longer in the file go, those that are in it stay."""
        self.assertEqual(self.status_of(self.tokens["driver"]), 404)
        self.assertEqual(self.server.sigterm(), 0)
        with contextlib.closing(sqlite3.connect(os.path.join(self.server.data, "store.db"))) as db:
            names = [row[0] for row in db.execute("SELECT name FROM token_use")]
        self.assertEqual(names, ["driver.t"])


class Tokens(Guarded):
    def wait_for(self, token, status):
        eventually(lambda: self.status_of(token) == status, "a token is %d" % status)

    def test_changes_are_taken_up(self):
        """A running server takes a new and a revoked token up by itself."""
        token = token_create(self.server.data, "late", "driver")
        self.wait_for(token, 404)
        status, out, _ = run("token", "revoke", "late", "--data", self.server.data)
        self.assertEqual((status, out.strip()), (0, "revoked the token late"))
        self.wait_for(token, 401)
        self.assertEqual(self.status_of(self.tokens["driver"]), 404)

    def taken_up(self, token):
        """The status of a token that the server knows, expired or not; else None."""
        answer = self.main.get("/x", bearer(token))
        expired = answer.status == 401 and "expired" in answer.json["message"]
        return answer.status if expired or answer.status == 404 else None

    def test_expiry(self):
        """An expired token is 401, and the caller learns why."""
        for seconds in (3, 12, 48):
            token = token_create(self.server.data, "short%d" % seconds, "driver", "--expires",
                                 "%ds" % seconds)
            # A slow server takes it up when it has expired.
            if eventually(lambda: self.taken_up(token), "it is taken up") == 404:
                break
        self.wait_for(token, 401)
        self.assertEqual(self.main.get("/x", bearer(token)).json["message"],
                         "the token has expired")

    def test_never_off(self):
        """With the file gone, empty, damaged or open to others every call is 401; the log says why.
        """
        path = os.path.join(self.server.data, "tokens")
        with open(path, "rb") as f:
            text = f.read()
        good = self.tokens["driver"]

        def spoil(what):
            """One step: the server sees the file before or after it."""
            if what is None:
                os.unlink(path)
                return
            with open(path + ".new", "wb") as f:
                f.write(what)
            os.chmod(path + ".new", 0o600)
            os.rename(path + ".new", path)

        def said(member, words):
            return any(words in r.get(member, "") for r in self.server.records()
                       if r["level"] == "error")

        for what, words in ((None, "No such file"), (b"", ""), (b"damaged\n", "line 1")):
            spoil(what)
            self.wait_for(good, 401)
            self.assertEqual(self.main.get("/x").status, 401)
            eventually(lambda w=words: said("error", w), "the log says why")
            spoil(text)
            self.wait_for(good, 404)
        os.chmod(path, 0o622)
        self.wait_for(good, 401)
        eventually(lambda: said("error", "lets others write"), "the log says why")
        eventually(lambda: said("msg", "no credential is valid"), "the log says what follows")

    def test_list(self):
        """The list has names, scopes and last uses, of a running and of a stopped server."""
        self.status_of(self.tokens["driver"])
        flags = ("--data", self.server.data, "--ops-listen", "127.0.0.1:%d" % self.server.ops_port)

        def line():
            status, out, err = run("token", "list", *flags)
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn(self.tokens["driver"], out)
            self.assertEqual(len(out.splitlines()), 1 + len(SCOPES))
            return next(l.split() for l in out.splitlines() if l.startswith("driver.t"))

        fields = line()
        self.assertEqual((fields[1], fields[3], fields[5]), ("driver", "-", "127.0.0.1"))
        self.assertRegex(fields[4], r"^20\d\d-")
        self.assertEqual(self.server.sigterm(), 0)
        self.assertFalse(os.path.exists(os.path.join(self.server.data, "local-token")))
        self.assertEqual(line(), fields)
        self.server.start()

        def used():
            items = self.ops.get("/admin/tokens", bearer(self.tokens["admin"])).json["items"]
            return {item["name"]: item.get("last_used_from") for item in items}["driver.t"]
        # The thread that watches the tokens file reads the last uses, too.
        eventually(lambda: used() == "127.0.0.1", "the last use is known after a restart")

    def test_the_local_token(self):
        """The commands of the server's user log in by themselves."""
        path = os.path.join(self.server.data, "local-token")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        status, out, _ = run("doctor", "--data", self.server.data, "--ops-listen",
                             "127.0.0.1:%d" % self.server.ops_port)
        self.assertEqual(status, 0, out)
        with open(path, encoding="ascii") as f:
            old = f.read().strip()
        self.assertEqual(self.ops.get("/admin/orphans", bearer(old)).status, 200)
        self.server.restart()
        self.assertEqual(self.ops.get("/admin/orphans", bearer(old)).status, 401)

    def test_the_command(self):
        """A token is alone on stdout, its file has mode 0600 and no token; mistakes are named."""
        token = self.tokens["driver"]
        self.assertRegex(token, r"^hfd_[A-Za-z0-9_-]{43}$")
        path = os.path.join(self.server.data, "tokens")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, encoding="ascii") as f:
            self.assertNotIn(token, f.read())
        data = ("--data", self.server.data)
        flawed = ("create", "--name", "x", "--scope", "driver")
        for status, says, args in (
                (73, "already", ("create", "--name", "driver.t", "--scope", "driver")),
                (2, "expected --name", ("create", "--scope", "driver")),
                (2, "expected --name", ("create", "--name", "x")),
                (2, "expected scopes", ("create", "--name", "x", "--scope", "driver,root")),
                (2, "expected a name", ("create", "--name", "a b", "--scope", "driver")),
                (2, "--expires", flawed + ("--expires", "soon")),
                (2, "expected a value", ("create", "--name")),
                (73, "no token named", ("revoke", "nobody")),
                (2, "the name of a token", ("revoke",)),
                (2, "belong to create", ("list", "--name", "x")),
                (2, "expected create, list or revoke", ("make",)),
                (2, "unknown flag", flawed + ("--nope",))):
            with self.subTest(args):
                done = run("token", *args,
                           *(data if len(args) > 1 and args[-1] != "--name" else ()))
                self.assertEqual((done[0], done[1]), (status, ""))
                self.assertIn(says, done[2])
        two = token_create(self.server.data, "two", "driver", "--scope", "view")
        self.wait_for(two, 404)
        self.assertEqual(self.main.get(BASE + "/clusters", bearer(two)).status, 403)


class Start(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)

    def serve(self, *flags):
        return run("serve", "--listen", "0.0.0.0:0", "--ops-listen", "127.0.0.1:0", "--data",
                   self.server.data, *flags)

    def test_turned_on_while_it_runs(self):
        """Without a token everyone may call; the first token turns authentication on for good."""
        self.server.start()
        client = Client(self.server)
        self.addCleanup(client.close)
        self.assertEqual(client.get("/x", bearer("anything")).status, 404)
        self.assertEqual(client.get("/t/anything/x").status, 404)
        self.assertEqual(client.get("/x", {"Host": "evil.example"}).status, 421)
        token = token_create(self.server.data, "first", "driver")
        eventually(lambda: client.get("/x").status == 401, "authentication is on")
        self.assertEqual(client.get("/x", bearer(token)).status, 404)
        self.assertEqual(run("token", "revoke", "first", "--data", self.server.data)[0], 0)
        eventually(lambda: client.get("/x", bearer(token)).status == 401, "the token is revoked")
        self.assertEqual(client.get("/x").status, 401)

    def test_a_file_that_exists(self):
        """A tokens file that exists turns authentication on, whatever is in it; nothing is open."""
        path = os.path.join(self.server.data, "tokens")
        token_create(self.server.data, "only", "driver")
        with open(path, "rb") as f:
            text = f.read()
        self.assertEqual(run("token", "revoke", "only", "--data", self.server.data)[0], 0)
        with open(path, "rb") as f:
            revoked = f.read()
        for what in (revoked, b"", b"\n", b"\0", text[:1], text[:40], text[:-20], b"damaged\n",
                     os.mkdir, lambda p: os.symlink("nowhere", p),
                     lambda p: os.symlink("tokens", p), os.mkfifo):
            if os.path.isdir(path):
                os.rmdir(path)
            else:
                os.unlink(path)
            if callable(what):
                what(path)
            else:
                with open(path, "wb") as f:
                    f.write(what)
                os.chmod(path, 0o600)
            with self.subTest(what):
                self.server.start()
                client = Client(self.server)
                self.addCleanup(client.close)
                self.assertEqual(client.get("/x").status, 401)
                self.assertEqual(client.get("/t/x/x").status, 401)
                eventually(lambda: any("no credential is valid" in r["msg"]
                                       for r in self.server.records()), "the log says so")
                self.assertEqual(self.server.sigterm(), 0)
            status, _, err = self.serve()
            self.assertEqual(status, 2)
            self.assertIn("no caller has a valid token", err)

    def test_a_file_appears(self):
        """While the server runs any file turns authentication on; that it is gone does not help."""
        path = os.path.join(self.server.data, "tokens")
        for what in (lambda: os.close(os.open(path, os.O_CREAT, 0o600)),
                     lambda: os.symlink("nowhere", path)):
            self.server.start()
            client = Client(self.server)
            self.addCleanup(client.close)
            self.assertEqual(client.get("/x").status, 404)
            what()
            eventually(lambda c=client: c.get("/x").status == 401, "authentication is on")
            os.unlink(path)
            eventually(lambda: any("No such file" in r.get("error", "")
                                   for r in self.server.records()), "the log says that it is gone")
            self.assertEqual(client.get("/x").status, 401)
            self.assertEqual(self.server.sigterm(), 0)

    def test_off_loopback(self):
        """Without a usable token the start is refused, and three ways out are named."""
        for command in (("serve", "--ops-listen", "127.0.0.1:0"), ("config", "check")):
            status, out, err = run(*command, "--listen", "0.0.0.0:0", "--data", self.server.data)
            self.assertEqual(status, 2)
            for words in ("--listen: ", "not a loopback", "token create",
                          "auth.operator_keys", "--insecure-no-auth"):
                self.assertIn(words, out + err)
        self.assertEqual(os.listdir(self.server.data), [])
        status, out, err = run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "0.0.0.0:0",
                               "--data", self.server.data)
        self.assertEqual(status, 2)
        self.assertIn("--ops-listen: ", err)
        token_create(self.server.data, "gone", "driver", "--expires", "1s")
        eventually(lambda: run("config", "check", "--listen", "0.0.0.0:0", "--data",
                               self.server.data)[0] == 2, "an expired token is not usable")
        status, _, err = self.serve()
        self.assertEqual(status, 2)

    def test_off_loopback_with_a_token(self):
        """With a token any address is served; with --insecure-no-auth too, open to everyone."""
        for flags, status in ((("--insecure-no-auth",), 404), ((), 401)):
            if status == 401:
                token_create(self.server.data, "t", "driver")
            server = Server("--listen", "0.0.0.0:0", *flags, data=self.server.data)
            with server:
                client = Client(server)
                self.assertEqual(client.get("/x", {"Host": "anything.example"}).status, status)
                client.close()
                self.assertEqual(server.sigterm(), 0)

    def test_a_driver_path_t(self):
        """A driver path `t` would be a secret path."""
        status, _, err = run("config", "check", "--driver-paths-cluster", "t")
        self.assertEqual(status, 2)
        self.assertIn('not "api" or "t"', err)


if __name__ == "__main__":
    unittest.main()
