"""JSON Web Tokens: those of the Humanitec Operator, and those of issuers with keys in a file or at
a URL.
"""
import hashlib
import hmac
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import tempfile
import threading
import unittest

from jwt import Key, b64, soon
from lib import BASE, Client, Server, eventually, report_body
from test_tls import self_signed
from test_access import SCOPES, basic, bearer, may, run, token_create

ISSUER = "https://issuer.example/realms/hyperfleet"


class Signed(unittest.TestCase):
    """One RSA and one EC key for all tests; a server that each test configures."""

    @classmethod
    def setUpClass(cls):
        cls.rsa, cls.other, cls.ec = Key(), Key(), Key("ec")
        for key in (cls.rsa, cls.other, cls.ec):
            cls.addClassCleanup(key.close)

    def start(self, *flags, config=None):
        self.server = Server(*flags, config=config)
        self.addCleanup(self.server.close)
        self.server.start()
        self.client = Client(self.server)
        self.addCleanup(self.client.close)

    def write(self, name, value):
        path = os.path.join(self.rsa.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        os.rename(path + ".new", path)
        return path

    def answer(self, token, path="/nothing"):
        return self.client.get(path, bearer(token))

    def assert_callers(self, names):
        eventually(lambda: {r["caller"] for r in self.server.records()
                            if r["msg"] == "request" and "caller" in r} == names,
                   "the log names the callers")

    def refused(self, token, words):
        answer = self.answer(token)
        self.assertEqual(answer.status, 401, answer)
        self.assertIn(words, answer.json["message"])


class Operator(Signed):
    def setUp(self):
        self.kid = self.rsa.fingerprint
        self.start(config="auth:\n  operator_keys: [%s, %s]\n" % (self.rsa.public,
                                                                 self.other.public))

    def test_the_published_sample(self):
        """The Operator's token has a kid, an orgID, neither exp nor alg, and the scope driver."""
        sample = self.rsa.token({"type": "JWT", "typ": "RS256", "kid": self.kid}, {"orgID": "acme"})
        normal = self.rsa.token({"alg": "RS256", "typ": "JWT", "kid": self.kid},
                                {"orgID": "acme", "exp": soon()})
        for token in (sample, normal, sample):
            self.assertEqual(self.answer(token).status, 404)
            self.assertEqual(self.answer(token, BASE + "/clusters").status, 403)
        self.assert_callers({"acme@hyperfleet.local"})
        self.assertEqual(self.client.get("/nothing").status, 401)
        self.assertEqual(self.client.get("/t/%s/nothing" % sample).status, 404)
        nameless = self.rsa.token({"kid": self.kid}, {})
        self.assertEqual(self.answer(nameless).status, 404)

    def test_forgeries(self):
        """The key fixes the algorithm; every other signature, key and form is refused."""
        head = {"alg": "RS256", "kid": self.kid}
        good = self.rsa.token(head, {"orgID": "acme"})
        first, claims, signature = good.split(".")
        with open(self.rsa.public, "rb") as f:
            pem = f.read()
        text = "%s.%s" % (b64(dict(head, alg="HS256")), claims)
        confused = "%s.%s" % (text, b64(hmac.new(pem, text.encode(), hashlib.sha256).digest()))
        for token, words in (
                (confused, "algorithm"),
                ("%s.%s." % (b64(dict(head, alg="none")), claims), "well-formed"),
                ("%s.%s.%s" % (b64(dict(head, alg="none")), claims, signature), "algorithm"),
                ("%s.%s.%s" % (b64(dict(head, alg="RS512")), claims, signature), "algorithm"),
                ("%s.%s.%s" % (first, b64({"orgID": "evil"}), signature), "signature"),
                ("%s.%s.%s" % (first, claims, b64(b"\0" * 256)), "signature"),
                ("%s.%s.%s" % (first, claims, b64(b"x")), "signature"),
                (self.other.token(head, {"orgID": "acme"}), "signature"),
                (self.ec.token(head, {"orgID": "acme"}), "signature"),
                (self.rsa.token({"alg": "RS256"}, {}), "not trusted"),
                (self.rsa.token(dict(head, kid="../../etc/passwd"), {}), "not trusted"),
                (self.rsa.token(dict(head, kid=self.kid.upper()), {}), "not trusted"),
                (self.rsa.token(dict(head, kid=7), {}), "well-formed"),
                (self.rsa.token(dict(head, crit=["exp"]), {}), "well-formed"),
                (self.rsa.token(head, {"exp": "soon"}), "well-formed"),
                (self.rsa.token(head, [1]), "well-formed"),
                (self.rsa.token(head, {"exp": soon(-5)}), "expired"),
                (self.rsa.token(head, {"exp": -1e300}), "expired"),
                (self.rsa.token(head, {"nbf": soon(3600)}), "not valid yet"),
                ("%s=.%s.%s" % (first, claims, signature), "well-formed"),
                ("..", "well-formed"), ("a.b.c", "well-formed"),
                (b64(b'{"alg":"RS256","alg":"none","kid":"%s"}' % self.kid.encode())
                 + ".%s.%s" % (claims, signature), "well-formed"),
                (good + "A" * 9000, "well-formed"), (good + ".x", "not valid")):
            with self.subTest(token[:200]):
                self.refused(token, words)
        self.assertEqual(self.answer(good).status, 404)
        for secret in (signature[:40], signature[-40:]):
            self.assertEqual([line for line in self.server.lines if secret in line], [])

    def test_expiry_is_seen_later(self):
        """A token that was good once is not good for ever."""
        for seconds in (2, 8, 32):
            token = self.rsa.token({"kid": self.kid}, {"exp": soon(seconds)})
            answer = self.answer(token)
            if answer.status == 404:  # else it had expired when it was sent
                break
            self.assertIn("expired", answer.json["message"])
        self.assertEqual(answer.status, 404)
        eventually(lambda: self.answer(token).status == 401, "the token expires")
        self.refused(token, "expired")

    def test_a_key_goes(self):
        """A key file that is gone is trusted no more; one that comes back is."""
        token = self.other.token({"kid": self.other.fingerprint}, {})
        self.assertEqual(self.answer(token).status, 404)
        away = self.other.public + ".away"
        os.rename(self.other.public, away)
        eventually(lambda: self.answer(token).status == 401, "the key is gone")
        eventually(lambda: any("key file cannot be used" in r["msg"]
                               for r in self.server.records()), "the log says so")
        os.rename(away, self.other.public)
        eventually(lambda: self.answer(token).status == 404, "the key is back")

    def test_all_keys_of_a_file(self):
        """Old and new key stand in one file; what cannot be used stops the start, with words."""
        self.server.close()
        with open(self.rsa.public, encoding="ascii") as f:
            first = f.read()
        with open(self.other.public, encoding="ascii") as f:
            second = f.read()
        with open(self.rsa.private, encoding="ascii") as f:
            private = f.read()
        path = self.write("both", "old\n" + first + "\nnew\n" + second + "\n")
        self.start("--auth-operator-keys", path)
        for key in self.rsa, self.other:
            self.assertEqual(self.answer(key.token({"kid": key.fingerprint}, {})).status, 404)
        token = self.rsa.token({"kid": self.rsa.fingerprint}, {})
        self.write("both", first + private)
        eventually(lambda: self.answer(token).status == 401, "the file is refused as a whole")
        self.write("both", first)
        eventually(lambda: self.answer(token).status == 404, "it is taken up")
        for text, words in ((first + private, "block 2 is no PEM public key"),
                            (first + second[:-30], "damaged or cut off"), ("", "no PEM public key"),
                            (first + second.replace("BEGIN", "BEGUN"), "damaged or cut off")):
            status, _, err = run("config", "check", "--auth-operator-keys",
                                 self.write("flawed", text))
            self.assertEqual(status, 2)
            self.assertIn(words, err)

    def test_what_is_no_file(self):
        """A folder, an empty file or a dead link in place of a file of keys stops the start."""
        folder = os.path.join(self.rsa.folder, "folder")
        os.mkdir(folder)
        link = os.path.join(self.rsa.folder, "link")
        os.symlink("nowhere", link)
        for flag in "--auth-operator-keys", "--auth-issuers":
            for path in folder, link, self.write("empty", ""):
                status, _, err = run("serve", "--listen", "127.0.0.1:0", "--ops-listen",
                                     "127.0.0.1:0", flag, path)
                self.assertEqual(status, 2)
                self.assertIn(flag[2:].replace("-", ".", 1).replace("-", "_"), err)

    def test_flawed_settings(self):
        """A key file that cannot be used stops the start, and is named."""
        small = Key(bits=1024)
        self.addCleanup(small.close)
        for path, words in ((small.public, "2048"), (self.ec.public, "RSA"),
                            (self.rsa.private, "no PEM public key"), ("/none", "No such file")):
            status, _, err = run("config", "check", "--auth-operator-keys", path)
            self.assertEqual(status, 2)
            for text in ("--auth-operator-keys: auth.operator_keys: ", path, words):
                self.assertIn(text, err)
        status, out, _ = run("config", "check", "--auth-operator-keys", self.rsa.public, "--listen",
                             "0.0.0.0:0")
        self.assertEqual((status, out), (0, "ok\n"))


class Issuers(Signed):
    def issuer(self, keys, **more):
        return dict({"issuer_url": ISSUER, "jwk_cert_file": self.write("jwks", {"keys": keys}),
                     "audience": "hyperfleet", "identity_claim": "sub", "scopes": ["adapter"]},
                    **more)

    def start_with_site(self, handler):
        """Starts a site, and a server that fetches the keys of an issuer there."""
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        issuer = self.issuer([], jwk_cert_url="http://127.0.0.1:%d/jwks" % site.server_port)
        del issuer["jwk_cert_file"]
        self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}))

    def claims(self, **more):
        return dict({"iss": ISSUER, "aud": "hyperfleet", "sub": "dns", "exp": soon()}, **more)

    def test_both_algorithms(self):
        """RS256 and ES256; the identity claim names the caller; the scopes are the issuer's."""
        keys = [self.rsa.jwk("one"), self.ec.jwk("two"),
                {"kty": "oct", "kid": "three", "k": "AAAA"},
                self.other.jwk("four", use="enc"), self.other.jwk("five", alg="PS256")]
        path = self.write("issuers", {"issuers": [self.issuer(keys)]})
        self.start("--auth-issuers", path)
        rs = {"alg": "RS256", "kid": "one"}
        es = {"alg": "ES256", "kid": "two"}
        for token in (self.rsa.token(rs, self.claims()), self.ec.token(es, self.claims()),
                      self.rsa.token(rs, self.claims(aud=["x", "hyperfleet"])),
                      self.rsa.token(rs, self.claims(sub="jane@example.com"))):
            self.assertEqual(self.answer(token, BASE + "/clusters").status, 200)
            self.assertEqual(self.answer(token).status, 403)
        self.assert_callers({"dns@hyperfleet.local", "jane@example.com"})
        for token, words in (
                (self.rsa.token(rs, self.claims(aud="other")), "audience"),
                (self.rsa.token(rs, self.claims(aud=7)), "audience"),
                (self.rsa.token(rs, self.claims(iss="https://evil.example")), "not trusted"),
                (self.rsa.token(rs, self.claims(exp=soon(-1))), "expired"),
                (self.rsa.token(rs, self.claims(sub="")), "does not name"),
                (self.rsa.token(rs, self.claims(sub=None)), "does not name"),
                (self.rsa.token({"kid": "one"}, self.claims()), "algorithm"),
                (self.rsa.token(es, self.claims()), "signature"),
                (self.ec.token(rs, self.claims()), "signature"),
                (self.ec.token(dict(es, alg="RS256"), self.claims()), "algorithm"),
                (self.other.token({"alg": "RS256", "kid": "four"}, self.claims()), "not trusted"),
                (self.other.token({"alg": "RS256", "kid": "five"}, self.claims()), "not trusted"),
                (self.rsa.token({"alg": "RS256"}, self.claims()), "not trusted")):
            with self.subTest(words):
                self.refused(token, words)

    def test_every_scope(self):
        """Every route x scope with a JWT, as with a token."""
        issuers = [dict(self.issuer([self.ec.jwk("k")]), issuer_url=scope, scopes=[scope])
                   for scope in SCOPES]
        self.start("--auth-issuers", self.write("issuers", {"issuers": issuers}))
        tokens = {scope: self.ec.token({"alg": "ES256", "kid": "k"}, self.claims(iss=scope))
                  for scope in SCOPES}
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        for path, item in ops.get("/docs/spec.json").json["paths"].items():
            client = ops if "servers" in item else self.client
            for method in item:
                allowed = may(method.upper(), path)
                for scope in SCOPES if method != "servers" else ():
                    target = path.replace("{driver}", "clusters").replace("{", "").replace("}", "")
                    answer = client.request(method.upper(), target, b"{}", bearer(tokens[scope]))
                    with self.subTest(method=method, path=path, scope=scope):
                        self.assertNotEqual(answer.status, 401, answer)
                        self.assertEqual(answer.status == 403,
                                         allowed is not None and scope not in allowed, answer)

    def test_new_keys_in_the_file(self):
        """A changed file of keys is taken up: an old key is trusted no more."""
        path = self.write("issuers", "issuers:\n- issuer_url: %s\n  jwk_cert_file: %s\n  scopes: "
                                     "[driver]\n" % (ISSUER, self.write(
                                         "jwks", {"keys": [self.rsa.jwk("one")]})))
        self.start("--auth-issuers", path)
        old = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims(email="a@b"))
        new = self.ec.token({"alg": "ES256", "kid": "two"}, self.claims(email="a@b"))
        self.assertEqual((self.answer(old).status, self.answer(new).status), (404, 401))
        self.write("jwks", {"keys": [self.ec.jwk("two")]})
        eventually(lambda: self.answer(new).status == 404, "the new key is taken up")
        self.assertEqual(self.answer(old).status, 401)

    def test_keys_at_a_url(self):
        """Keys come from a URL; while it fails the last ones stay in use."""
        served = {"status": 200, "body": json.dumps({"keys": [self.rsa.jwk("one")]}), "count": 0}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                served["count"] += 1
                body = served["body"].encode()
                self.send_response(served["status"])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.start_with_site(Handler)
        token = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims())
        eventually(lambda: self.answer(token).status == 403, "the keys are fetched")
        served["status"] = 500
        for _ in range(20):
            self.refused(self.rsa.token({"alg": "RS256", "kid": "new"}, self.claims()),
                         "not trusted")
        self.assertEqual(self.answer(token).status, 403)
        self.assertEqual(served["count"], 1, "an unknown key asks at most once a minute")

    def test_a_private_authority(self):
        """`ca_file` names the authorities of a URL, and no others then count."""
        folder = tempfile.mkdtemp(prefix="hfd-it-ca-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name in "site", "other":
            self_signed(folder, name)
        body = json.dumps({"keys": [self.rsa.jwk("one")]}).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(folder, "site.pem"), os.path.join(folder, "site.key"))
        site.socket = context.wrap_socket(site.socket, server_side=True,
                                          do_handshake_on_connect=False)
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        token = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims())
        site.handle_error = lambda *args: None  # clients that refuse the certificate
        for ca, good in ("site", True), ("other", False), (None, False), ("none", False):
            issuer = self.issuer([], jwk_cert_url="https://localhost:%d/" % site.server_port)
            del issuer["jwk_cert_file"]
            if ca is not None:
                issuer["ca_file"] = os.path.join(folder, ca + ".pem")
            self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}))
            if good:
                eventually(lambda: self.answer(token).status == 403, "the keys are fetched")
            else:
                eventually(lambda: any("cannot be fetched" in r["msg"]
                                       for r in self.server.records()), "the log says so")
                self.assertEqual(self.answer(token).status, 503)
            self.client.close()
            self.server.close()

    def silent(self, count, *more):
        """Starts a server with issuers that take a connection and say nothing, and others."""
        site = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.addCleanup(site.close)
        issuers = [{"issuer_url": "silent-%d" % n, "scopes": ["adapter"],
                    "jwk_cert_url": "http://127.0.0.1:%d/%d" % (site.getsockname()[1], n)}
                   for n in range(count)]
        self.start("--auth-issuers", self.write("issuers", {"issuers": issuers + list(more)}),
                   "--http-drain-timeout", "1s")
        return site

    def test_silent_issuers(self):
        """Silent issuers delay neither the start, nor tokens, nor the keys of others, nor the end.
        Each step has a limit for what hangs, and 32 issuers one by one would be beyond it.
        """
        other = self.issuer([self.rsa.jwk("one")], issuer_url="good")
        self.silent(31, other)
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        self.assertEqual(ops.get("/readyz").status, 200)
        good = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims(iss="good"))
        self.assertEqual(self.answer(good).status, 403)
        token = token_create(self.server.data, "t", "driver")
        eventually(lambda: self.answer(token).status == 404, "the token is taken up", 9)
        self.assertEqual(run("token", "revoke", "t", "--data", self.server.data)[0], 0)
        eventually(lambda: self.answer(token).status == 401, "it is revoked", 9)
        token = token_create(self.server.data, "u", "driver")
        self.server.proc.send_signal(signal.SIGHUP)
        eventually(lambda: self.answer(token).status == 404, "SIGHUP is heeded", 9)
        self.assertEqual(self.server.sigterm(9), 0)

    def test_all_are_asked_at_once(self):
        """A silent issuer holds up no other one."""
        site = self.silent(32)
        site.settimeout(60)
        held = [site.accept()[0] for _ in range(32)]
        for one in held:
            self.addCleanup(one.close)

    def test_keys_that_never_came(self):
        """A caller of an issuer whose keys never came is told to try again, in each API's form."""
        self.silent(1)
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        token = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims(iss="silent-0"))
        for client, method, path, code in (
                (self.client, "GET", "/x", "RES-199"), (self.client, "PUT", "/x", "RES-199"),
                (self.client, "GET", "/t/%s/x" % token, "RES-199"),
                (self.client, "POST", BASE + "/clusters", "HYPERFLEET-SVC-001"),
                (self.client, "GET", "/api/driver/v1/resources", "HYPERFLEET-SVC-001"),
                (ops, "GET", "/admin/tokens", None)):
            with self.subTest(method=method, path=path):
                answer = client.request(method, path, {} if method in ("PUT", "POST") else None,
                                        {} if token in path else bearer(token))
                self.assertEqual(answer.status, 503, answer)
                self.assertTrue(answer.header("Retry-After").isdigit())
                self.assertIsNone(answer.header("WWW-Authenticate"))
                self.assertIn("were not fetched yet", answer.body.decode())
                if code is not None:
                    self.assertEqual(answer.json.get("error", answer.json.get("code")), code)
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.settimeout(60)
            s.sendall(b"PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                      b"Authorization: Bearer " + token.encode() + b"\r\n\r\n")
            head = s.recv(4096)  # before the body
            self.assertIn(b" 503 ", head)
            self.assertIn(b"Retry-After: ", head)
        refused = [r for r in self.server.records() if r["msg"] == "caller refused"]
        self.assertEqual({r["reason"] for r in refused}, {"no_keys"})
        self.assertFalse(any(r["msg"] == "request failed" for r in self.server.records()))

    def test_a_redirect_is_not_followed(self):
        """The keys of a URL come from that URL."""
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.start_with_site(Handler)
        eventually(lambda: any("got 302" in r.get("error", "") for r in self.server.records()),
                   "the log says so")
        self.assertEqual(asked, ["/jwks"])

    def test_large_tokens(self):
        """16 KiB are taken on each way; a larger token is told the number, and so is the log."""
        self.start("--auth-issuers", self.write("issuers", {"issuers": [dict(
            self.issuer([self.ec.jwk("k")]), scopes=["driver", "admin"])]}))
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)

        def sized(size):
            """A token of exactly that size, or the next that base64 can give."""
            groups = size * 3 // 4 - 300
            while True:
                token = self.ec.token({"alg": "ES256", "kid": "k"},
                                      self.claims(groups="g" * groups))
                if len(token) >= size:
                    return token
                groups += max((size - len(token)) * 3 // 4, 1)

        for token, good in ((sized(11256), True), (sized(16380), True), (sized(16385), False),
                            (sized(22000), False)):
            self.assertTrue(good == (len(token) <= 16384), len(token))
            for client, path, headers, status in (
                    (self.client, "/x", bearer(token), 404),
                    (self.client, "/t/%s/x" % token, {}, 404),
                    (ops, "/admin/tokens", bearer(token), 200),
                    (ops, "/admin/tokens", basic(token), 200),
                    (ops, "/t/%s/admin/tokens" % token, {}, 200)):
                with self.subTest(size=len(token), path=path[:20]):
                    answer = client.get(path, headers)
                    self.assertEqual(answer.status, status if good else 401, answer.body)
                    if not good:
                        self.assertIn("larger than 16384 bytes", answer.body.decode())
        refused = [r for r in self.server.records() if r["msg"] == "caller refused"]
        self.assertEqual({(r["reason"], "16384" in r["error"]) for r in refused},
                         {("too_long", True)})

    def test_names_of_our_own(self):
        """No claim makes a caller one of this server's own: its tokens, its commands, the Operator.
        """
        keys = [self.rsa.jwk("one")]
        self.start("--auth-issuers", self.write("issuers", {"issuers": [self.issuer(keys)]}),
                   config="auth:\n  operator_keys: [%s]\n" % self.other.public)
        head = {"alg": "RS256", "kid": "one"}
        token = token_create(self.server.data, "orchestrator", "driver")
        eventually(lambda: self.answer(token).status == 404, "the token is taken up")
        for name in ("orchestrator", "Orchestrator", " orchestrator ", "local@hyperfleet.local",
                     "orchestrator@hyperfleet.local", "any@HYPERFLEET.local",
                     "any@hyperfleet.local.", " any@hyperfleet.local\t", "any@ hyperfleet.local",
                     "system", "LOCAL", "operator", "operator@hyperfleet.local"):
            with self.subTest(name):
                self.refused(self.rsa.token(head, self.claims(sub=name)), "this server's own")
        for name in ("orchestrators", "any@hyperfleet.local.example"):
            self.assertEqual(self.answer(self.rsa.token(head, self.claims(sub=name))).status, 403)
        for org in ("orchestrator", "local", "local@hyperfleet.local"):
            self.assertEqual(self.answer(self.other.token({"kid": self.other.fingerprint},
                                                          {"orgID": org})).status, 404)
        self.assert_callers({"orchestrator@hyperfleet.local",  # of its own token
                             "orchestrators@hyperfleet.local", "any@hyperfleet.local.example",
                             "operator@hyperfleet.local"})
        self.assertTrue(any(r.get("reason") == "reserved" and "this server's own" in r["error"]
                            for r in self.server.records()))

    def test_bound_adapters(self):
        """The scope adapter of an issuer may have names, as that of a token."""
        issuer = self.issuer([self.ec.jwk("k")], scopes=["view", "adapter=dns"])
        self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}))
        token = self.ec.token({"alg": "ES256", "kid": "k"}, self.claims())
        for name, status in (("dns", 404), ("validation", 403)):
            answer = self.client.post(BASE + "/clusters/none/statuses", report_body(name, 1),
                                      bearer(token))
            self.assertEqual(answer.status, status, answer)
        for scopes in (["adapter", "adapter=dns"], ["adapter="], ["adapter=a b"]):
            path = self.write("flawed", {"issuers": [dict(issuer, scopes=scopes)]})
            status, _, err = run("config", "check", "--auth-issuers", path)
            self.assertEqual(status, 2)
            self.assertIn("issuers[0].scopes: expected", err)

    def test_many_keys(self):
        """All keys of a set are used."""
        keys = [self.ec.jwk("k%d" % n) for n in range(100)] + [self.rsa.jwk("last" * 100)]
        self.start("--auth-issuers", self.write("issuers", {"issuers": [self.issuer(keys)]}))
        for token in (self.ec.token({"alg": "ES256", "kid": "k99"}, self.claims()),
                      self.rsa.token({"alg": "RS256", "kid": "last" * 100}, self.claims())):
            self.assertEqual(self.answer(token).status, 403)

    def test_a_url_that_fails(self):
        """Without its keys an issuer's callers are to try again; the log says why, and tokens work.
        """
        issuer = self.issuer([], jwk_cert_url="http://127.0.0.1:1/jwks")
        del issuer["jwk_cert_file"]
        tokens = ("--auth-tokens-file", os.path.join(self.rsa.folder, "tokens"))
        self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}), *tokens)
        answer = self.answer(self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims()))
        self.assertEqual(answer.status, 503)
        self.refused(self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims(iss="other")),
                     "not trusted")
        eventually(lambda: any("cannot be fetched" in r["msg"] for r in self.server.records()),
                   "the log says so")
        token = token_create(self.server.data, "t", "driver", *tokens)
        eventually(lambda: self.answer(token).status == 404, "the token is taken up")

    def test_flawed_settings(self):
        """A file of issuers that cannot be used stops the start; entry and member are named."""
        good = self.issuer([self.ec.jwk("k")])
        for entry, words in (({"issuer_url": None}, "issuer_url: expected a text"),
                             ({"jwk_cert_url": "https://a.example/"}, "expected either this or"),
                             ({"scopes": []}, "scopes: expected"),
                             ({"ca_file": "/x.pem"}, "ca_file: expected together with"),
                             ({"scopes": ["root"]}, "scopes: expected"),
                             ({"colour": "red"}, "unknown member colour"),
                             ({"jwk_cert_file": "/none"}, "No such file")):
            path = self.write("flawed", {"issuers": [dict(good, **entry)]})
            status, _, err = run("config", "check", "--auth-issuers", path)
            self.assertEqual(status, 2, entry)
            self.assertIn("--auth-issuers: auth.issuers: ", err)
            self.assertIn(words, err)
        for text in ("{", "issuers: []", "[]", "issuers: {}", "x: 1", ""):
            status, _, err = run("config", "check", "--auth-issuers", self.write("flawed", text))
            self.assertEqual(status, 2, text)
            self.assertIn("--auth-issuers: auth.issuers: ", err)


if __name__ == "__main__":
    unittest.main()
