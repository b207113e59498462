"""JSON Web Tokens: those of the Humanitec Operator, and those of issuers with keys in a file or at
a URL.
"""
import hashlib
import hmac
import http.server
import json
import os
import shutil
import ssl
import tempfile
import threading
import unittest

from jwt import Key, b64, soon
from lib import BASE, Client, Server, eventually
from test_tls import self_signed
from test_access import SCOPES, bearer, may, run, token_create

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

        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        issuer = self.issuer([], jwk_cert_url="http://127.0.0.1:%d/jwks" % site.server_port)
        del issuer["jwk_cert_file"]
        self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}))
        token = self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims())
        self.assertEqual(self.answer(token).status, 403)
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
                self.refused(token, "not trusted")
            self.client.close()
            self.server.close()

    def test_a_url_that_fails(self):
        """Without its keys an issuer lets no caller in; the log says why, and tokens work."""
        issuer = self.issuer([], jwk_cert_url="http://127.0.0.1:1/jwks")
        del issuer["jwk_cert_file"]
        tokens = ("--auth-tokens-file", os.path.join(self.rsa.folder, "tokens"))
        self.start("--auth-issuers", self.write("issuers", {"issuers": [issuer]}), *tokens)
        self.refused(self.rsa.token({"alg": "RS256", "kid": "one"}, self.claims()), "not trusted")
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
