"""TLS of the listeners: versions, ciphers, certificates of both sides, reloads, limits, and the
program's own commands. The openssl program makes the certificates and plays the odd clients."""
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from lib import BASE, Server, TIME_FACTOR, eventually, need_files, run
from test_wire import Response

BIG = "x" * 900000


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


def self_signed(folder, name, days=90, subject="localhost", kind="ec", password=None):
    """NAME.pem and NAME.key: a certificate that signs itself."""
    key = (["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else
           ["-newkey", "rsa:2048"])
    secret = ["-passout", "pass:" + password] if password else ["-nodes"]
    openssl(folder, "req", "-x509", *key, *secret, "-keyout", name + ".key", "-out",
            name + ".pem", "-days", str(max(days, 1)), "-subj", "/CN=" + subject, "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1")
    if days < 0:  # x509 -days takes what req refuses
        openssl(folder, "x509", "-in", name + ".pem", "-signkey", name + ".key", "-out",
                name + ".pem", "-days", str(days))


def signed(folder, name, authority, days=90):
    """NAME.pem and NAME.key: a client certificate that the authority signs."""
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
    openssl(folder, "x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey",
            authority + ".key", "-CAcreateserial", "-out", name + ".pem", "-days", str(days))


def exchange(sock, request):
    """Sends a request and reads one whole response by its length."""
    sock.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(65536)
        assert chunk, "closed behind %r" % data
        data += chunk
    head, body = data.split(b"\r\n\r\n", 1)
    r = Response(head, b"")
    length = int(r.header("Content-Length") or 0)
    while len(body) < length:
        chunk = sock.recv(65536)
        assert chunk, "closed in a body"
        body += chunk
    r.body = body
    return r


def get(path, *headers):
    return ("GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
            % (path, "".join(h + "\r\n" for h in headers))).encode()


class Secure(unittest.TestCase):
    """A server with TLS and the certificates of the test, one for each case."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hfd-it-tls-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self_signed(self.folder, "server")
        self.server = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *flags, cert="server"):
        self.server = Server("--tls-cert-file", self.path(cert + ".pem"), "--tls-key-file",
                             self.path(cert + ".key"), *flags)
        self.addCleanup(self.server.close)
        self.server.start()
        return self.server

    def connect(self, ops=False, ca="server", client=None, version=None):
        """An open TLS connection, whose certificate was checked against the file of ca."""
        context = ssl.create_default_context(cafile=self.path(ca + ".pem"))
        if client:
            context.load_cert_chain(self.path(client + ".pem"), self.path(client + ".key"))
        if version:
            context.maximum_version = version
        raw = socket.create_connection(
            ("127.0.0.1", self.server.ops_port if ops else self.server.port),
            timeout=60 * TIME_FACTOR)
        self.addCleanup(raw.close)
        sock = context.wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False)
        self.addCleanup(sock.close)
        return sock

    def s_client(self, *args, text="", ops=False):
        """The output of `openssl s_client` on the listener."""
        port = self.server.ops_port if ops else self.server.port
        done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, *args],
                              input=text.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60 * TIME_FACTOR, check=False)
        return done.stdout.decode("utf-8", "replace")

    def metric(self, line):
        """The value of a series on the ops listener."""
        text = exchange(self.connect(ops=True), get("/metrics", "Connection: close")).body.decode()
        for each in text.splitlines():
            if each.startswith(line + " "):
                return float(each.rsplit(" ", 1)[1])
        return None

    def logged(self, msg):
        return [r for r in self.server.records() if r["msg"] == msg]


class Protocol(Secure):
    def test_versions_and_ciphers(self):
        """TLS 1.2 and 1.3 with forward-secret AEAD suites; everything older gets an alert."""
        self.start(cert="server")
        low = ["-cipher", "ALL:@SECLEVEL=0"]
        for args, wanted in (
                (["-tls1_3"], "New, TLSv1.3"), (["-tls1_2"], "New, TLSv1.2"),
                (["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], "New, TLSv1.2"),
                (["-tls1_1"] + low, "alert protocol version"),
                (["-tls1"] + low, "alert protocol version"),
                (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], "alert handshake failure"),
                (["-tls1_2", "-cipher", "AES128-GCM-SHA256"], "alert handshake failure"),
                (["-tls1_3", "-curves", "P-521"], "alert handshake failure"),
                (["-alpn", "http/1.1"], "ALPN protocol: http/1.1"),
                (["-alpn", "h2,http/1.1"], "ALPN protocol: http/1.1"),
                (["-alpn", "h2"], "alert no application protocol")):
            for ops in (False, True):
                said = self.s_client(*args, ops=ops)
                self.assertIn(wanted, said, args)
                self.assertIn("Compression: NONE", said)
        said = self.s_client("-tls1_2")
        self.assertNotIn("TLS session ticket:", said)
        self.assertIn("Secure Renegotiation IS supported", said)
        eventually(lambda: [r for r in self.logged("TLS handshake refused")
                            if r["tls_error"] == "unsupported protocol"], "a line in the log")

    def test_no_renegotiation(self):
        """A client that begins a second handshake loses its connection."""
        self.start()
        quiet = subprocess.Popen(
            ["openssl", "s_client", "-connect", "127.0.0.1:%d" % self.server.port, "-tls1_2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(quiet.stdout.close)
        quiet.stdin.write(b"R\n")
        quiet.stdin.flush()
        said = quiet.communicate(timeout=60 * TIME_FACTOR)[0].decode("utf-8", "replace")
        self.assertIn("RENEGOTIATING", said)
        self.assertNotEqual(quiet.returncode, 0)
        eventually(lambda: [r["detail"] for r in self.logged("TLS connection refused")] ==
                   ["ssl renegotiation not supported"], "the refusal is logged")
        self.assertEqual(exchange(self.connect(), get(BASE + "/clusters")).status, 200)

    def test_rsa(self):
        """A server with an RSA key speaks both versions."""
        self_signed(self.folder, "rsa", kind="rsa")
        self.start(cert="rsa")
        self.assertIn("New, TLSv1.2, Cipher is ECDHE-RSA", self.s_client("-tls1_2"))
        self.assertIn("New, TLSv1.3", self.s_client("-tls1_3"))

    def test_plain_http(self):
        """Plain HTTP on the port gets an answer that says what is expected."""
        self.start()
        for port in (self.server.port, self.server.ops_port):
            with socket.create_connection(("127.0.0.1", port), timeout=60 * TIME_FACTOR) as s:
                r = exchange(s, get("/livez"))
            self.assertEqual(r.status, 400)
            self.assertIn("https", json.loads(r.body)["message"])
            request_id = r.header("X-Request-ID")
            refused = eventually(lambda: [x for x in self.logged("request refused")
                                          if x["request_id"] == request_id], "a line in the log")
            self.assertEqual(refused[0]["reason"], "plain_http")
        self.assertEqual(self.metric('hfd_http_refused_total{reason="plain_http"}'), 2)


class Traffic(Secure):
    def test_keep_alive_and_close(self):
        """Requests follow each other on a connection; the last one ends it in order."""
        self.start()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            sock = self.connect(version=version)
            for _ in range(3):
                self.assertEqual(exchange(sock, get(BASE + "/clusters")).status, 200)
            self.assertEqual(exchange(sock, get(BASE + "/clusters", "Connection: close")).status,
                             200)
            self.assertEqual(sock.recv(1), b"", "closed without close_notify")

    def test_pipelined(self):
        """Of pipelined requests the first is answered, and the connection ends."""
        self.start()
        sock = self.connect()
        answer = exchange(sock, get("/livez") * 50 + get(BASE + "/clusters", "Connection: close"))
        self.assertEqual((answer.status, answer.header("Connection")), (404, "close"))
        # Unread requests must not reset it, so the server only stops sending. An end without
        # close_notify is an error to some versions of OpenSSL.
        with contextlib.suppress(ssl.SSLEOFError):
            self.assertEqual(sock.recv(1), b"")

    def early(self, request):
        """A request in one write with the end of the handshake; what comes back."""
        context = ssl.create_default_context(cafile=self.path("server.pem"))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", self.server.port),
                                      timeout=60 * TIME_FACTOR) as raw:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
            tls.write(request)
            raw.sendall(outgoing.read())
            data = b""
            while True:
                try:
                    got = tls.read(65536)
                    if not got:
                        return data
                    data += got
                except ssl.SSLWantReadError:
                    chunk = raw.recv(65536)
                    if not chunk:
                        return data
                    incoming.write(chunk)
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return data

    def test_a_request_with_the_handshake(self):
        """Bytes that come with the end of the handshake pass the door like all others."""
        self.start()
        good = get(BASE + "/clusters", "Connection: close")
        self.assertIn(b"HTTP/1.1 200", self.early(good))
        bad = self.early(b"POST " + BASE.encode() + b"/clusters HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertIn(b"HTTP/1.1 400", bad)
        self.assertIn(b"X-Request-ID", bad)
        eventually(lambda: [r["status"] for r in self.logged("request refused")] == [400],
                   "the door has refused it")

    def test_large_bodies_both_ways(self):
        """Bodies of many records arrive whole, also at a client that reads slowly."""
        self.start()
        sock = self.connect()
        for i in range(5):
            body = json.dumps({"kind": "Cluster", "name": "big-%d" % i, "spec": {"filler": BIG}})
            r = exchange(sock, ("POST %s/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                                "%d\r\n\r\n%s" % (BASE, len(body), body)).encode())
            self.assertEqual(r.status, 201)
        for slow in (False, True):
            sock = self.connect()
            if slow:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            doc = json.loads(exchange(sock, get(BASE + "/clusters")).body)
            self.assertEqual([len(c["spec"]["filler"]) for c in doc["items"]], [len(BIG)] * 5)

    def test_clients_that_leave(self):
        """Clients that go away in every state leave no connection behind."""
        self.start()
        keep = self.connect()
        exchange(keep, get(BASE + "/clusters"))
        for _ in range(20):
            for request in (b"", b"GET /", get(BASE + "/clusters")):
                raw = socket.create_connection(("127.0.0.1", self.server.port))
                sock = ssl.create_default_context(
                    cafile=self.path("server.pem")).wrap_socket(raw, server_hostname="localhost")
                sock.sendall(request or b"G")
                raw = sock.detach()
                os.close(raw)
            socket.create_connection(("127.0.0.1", self.server.port)).close()
        # That of the question, and keep.
        eventually(lambda: self.metric("hfd_http_connections") == 2, "the connections are closed")

    def test_the_end(self):
        """SIGTERM closes idle TLS connections in order, and handshakes too."""
        self.start()
        sock = self.connect()
        exchange(sock, get(BASE + "/clusters"))
        with socket.create_connection(("127.0.0.1", self.server.port)) as silent:
            # One that is not accepted yet would be reset. The third is that of the question.
            eventually(lambda: self.metric("hfd_http_connections") == 3, "it is accepted")
            self.server.proc.send_signal(signal.SIGTERM)
            self.assertEqual(sock.recv(1), b"")
            self.assertEqual(self.server.wait(), 0)
            silent.settimeout(60)
            self.assertEqual(silent.recv(1), b"")


class Clients(Secure):
    def setUp(self):
        super().setUp()
        for authority in ("authority", "foreign"):
            self_signed(self.folder, authority, subject=authority)
        signed(self.folder, "client", "authority")
        signed(self.folder, "stranger", "foreign")
        signed(self.folder, "old", "authority", days=-1)

    def test_the_gate(self):
        """The main listener takes certificates of the authority alone; the ops listener none."""
        self.start("--tls-client-ca-file", self.path("authority.pem"))
        self.assertEqual(exchange(self.connect(client="client"), get(BASE + "/clusters")).status,
                         200)
        self.assertEqual(exchange(self.connect(ops=True), get("/livez")).status, 200)
        wanted = []
        for version in ("-tls1_2", "-tls1_3"):
            for client, alert, detail in (
                    (None, "alert certificate required|alert handshake failure",
                     "peer did not return a certificate"),
                    ("stranger", "alert unknown ca", "unable to get local issuer certificate"),
                    ("old", "alert certificate expired", "certificate has expired")):
                args = [version] + (["-cert", self.path(client + ".pem"), "-key",
                                     self.path(client + ".key")] if client else [])
                said = self.s_client(*args, "-ign_eof",
                                     text="GET / HTTP/1.0\r\nConnection: close\r\n\r\n")
                self.assertRegex(said, alert, (version, client))
                self.assertNotIn("HTTP/1.1", said)
                wanted.append(detail)
                eventually(lambda: len(self.logged("TLS handshake refused")) == len(wanted),
                           "the refusal is logged")
                refused = self.logged("TLS handshake refused")[-1]
                self.assertIn(detail, refused["detail"] + refused["tls_error"])
        eventually(lambda: self.metric('hfd_http_refused_total{reason="tls"}') == 6, "the count")
        self.assertRegex(self.s_client("-tls1_2"),
                         r"Acceptable client certificate CA names\n(/)?CN ?= ?authority")


class Files(Secure):
    def test_a_new_certificate(self):
        """A changed pair is used by itself; open connections go on; a bad pair changes nothing."""
        self.start()
        old = self.connect()
        self_signed(self.folder, "next", days=200)
        os.replace(self.path("next.pem"), self.path("server.pem"))
        os.replace(self.path("next.key"), self.path("server.key"))
        eventually(lambda: self.logged("TLS certificate reloaded"), "the certificate is reloaded")
        self.assertEqual(exchange(self.connect(), get(BASE + "/clusters")).status, 200)
        self.assertEqual(exchange(old, get(BASE + "/clusters")).status, 200)
        self.assertGreater(self.metric("hfd_certificate_expiry_seconds"), 199 * 86400)
        shutil.copy(self.path("server.pem"), self.path("good.pem"))
        self_signed(self.folder, "odd")
        os.replace(self.path("odd.key"), self.path("server.key"))
        eventually(lambda: self.logged("TLS files not reloaded; the current certificate stays in "
                                       "use"), "the bad pair is logged")
        self.assertIn("tls.key_file", self.logged(
            "TLS files not reloaded; the current certificate stays in use")[0]["error"])
        self.assertEqual(exchange(self.connect(ca="good"), get(BASE + "/clusters")).status, 200)
        self.assertEqual(exchange(old, get(BASE + "/clusters")).status, 200)

    def test_sighup(self):
        """SIGHUP loads the files at once and says so."""
        self.start()
        self.server.proc.send_signal(signal.SIGHUP)
        eventually(lambda: self.logged("TLS certificate reloaded"), "the certificate is reloaded")
        with open(self.path("server.pem"), "w", encoding="ascii") as f:
            f.write("nothing")
        self.server.proc.send_signal(signal.SIGHUP)
        eventually(lambda: self.logged("TLS files not reloaded; the current certificate stays in "
                                       "use"), "the bad file is logged")

    def test_an_expired_one_replaces_none(self):
        """An expired certificate does not replace a valid one."""
        self.start()
        self_signed(self.folder, "expired", days=-1)
        for end in (".pem", ".key"):
            shutil.copy(self.path("server" + end), self.path("valid" + end))
            os.replace(self.path("expired" + end), self.path("server" + end))
        eventually(lambda: [r for r in self.logged(
            "TLS files not reloaded; the current certificate stays in use")
            if "expired" in r["error"]], "the expired pair is logged")
        self.assertEqual(exchange(self.connect(ca="valid"), get(BASE + "/clusters")).status, 200)

    def test_warnings(self):
        """The log warns of a certificate that ends soon, by steps of 30, 7 and 1 days."""
        for days, level in ((31, None), (29, "warn"), (6, "warn"), (1, "warn"), (-1, "error")):
            name = "days%d" % days
            self_signed(self.folder, name, days=days)
            self.start(cert=name)
            health = exchange(self.connect_unchecked(), get("/healthz"))
            self.assertEqual(health.status, 200)
            told = [p["message"] for p in json.loads(health.body).get("problems", [])
                    if p["kind"] == "certificate"]
            self.assertEqual(len(told), int(days < 14), name)
            self.assertEqual([("has expired" in m) for m in told], [days < 0] * len(told))
            self.server.sigterm()
            said = [r for r in self.server.records() if "TLS certificate" in r["msg"]]
            self.assertEqual([r["level"] for r in said], [level] if level else [], name)

    def connect_unchecked(self):
        raw = socket.create_connection(("127.0.0.1", self.server.ops_port),
                                       timeout=60 * TIME_FACTOR)
        self.addCleanup(raw.close)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = context.wrap_socket(raw)
        self.addCleanup(sock.close)
        return sock

    def test_what_is_refused(self):
        """Files that cannot be used stop the start and `config check` with setting and reason."""
        self_signed(self.folder, "other")
        self_signed(self.folder, "locked", password="secret")
        with open(self.path("text.pem"), "w", encoding="ascii") as f:
            f.write("no certificate\n")
        cert, key = self.path("server.pem"), self.path("server.key")
        for flags, said in (
                ({"cert": cert}, "--tls-cert-file: expected both or none"),
                ({"key": key}, "--tls-key-file: expected both or none"),
                ({"client-ca": cert}, "--tls-client-ca-file: expected tls.cert_file"),
                ({"cert": self.path("none.pem"), "key": key}, "tls.cert_file: "),
                ({"cert": self.path("text.pem"), "key": key}, "expected a PEM certificate"),
                ({"cert": cert, "key": self.path("other.key")}, "tls.key_file: "),
                ({"cert": cert, "key": self.path("locked.key")}, "not encrypted"),
                ({"cert": cert, "key": cert}, "expected the PEM private key"),
                ({"cert": cert, "key": key, "client-ca": self.path("text.pem")},
                 "tls.client_ca_file: ")):
            args = [a for k, v in flags.items() for a in ("--tls-%s-file" % k, v)]
            data = self.path("data")
            for command in (("config", "check"), ("serve", "--data", data)):
                done = run(*command, *args)
                self.assertEqual(done.returncode, 2, (command, flags, done.stderr))
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists(data), "nothing is created")
        os.chmod(key, 0o644)
        done = run("config", "check", "--tls-cert-file", cert, "--tls-key-file", key)
        self.assertEqual(done.returncode, 0)
        self.assertIn("tls.key_file", done.stderr)
        self.assertIn("every user", done.stderr)


class Limits(Secure):
    def silent(self, count):
        socks = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(count)]
        for s in socks:
            self.addCleanup(s.close)
        return socks

    def test_a_handshake_has_a_time(self):
        """A client that does not finish its handshake is disconnected, counted and logged."""
        self.start("--http-read-timeout", "2s")
        idle = self.silent(1)[0]
        slow = self.silent(1)[0]
        slow.sendall(b"\x16\x03\x01\x02\x00\x01")
        for s in (idle, slow):
            s.settimeout(60 * TIME_FACTOR)
            self.assertEqual(s.recv(1), b"")
        self.assertEqual(self.metric('hfd_http_refused_total{reason="tls_timeout"}'), 2)
        eventually(lambda: [r["reason"] for r in self.logged("TLS handshake refused")] ==
                   ["tls_timeout"] * 2, "both are logged")

    def test_handshakes_have_a_number(self):
        """Handshakes that stand still make room for others, long before their time is over."""
        need_files(2000)
        self.start("--http-threads", "1", "--http-read-timeout", "1h")
        self.silent(1500)
        self.assertEqual(exchange(self.connect(), get(BASE + "/clusters")).status, 200)
        self.assertGreater(self.metric('hfd_http_refused_total{reason="handshakes"}'), 0)
        self.assertGreater(self.metric('hfd_http_refused_total{reason="tls_timeout"}'), 200)

    def test_handshakes_count_as_memory(self):
        """The memory of TLS is a part of http.memory_max, and is given back."""
        self.start("--http-threads", "2", "--http-memory-max", "16MiB")
        first = self.connect()
        socks = self.silent(256)  # with the open one more than 16 MiB: 64 KiB each
        eventually(lambda: (self.metric('hfd_http_refused_total{reason="memory"}') or 0) > 0,
                   "a handshake is refused")
        self.assertEqual(exchange(self.connect(ops=True),
                                  get("/livez", "Connection: close")).status, 200)
        self.assertEqual(exchange(first, get(BASE + "/clusters/none")).status, 404)
        for s in socks:
            s.close()
        eventually(lambda: self.metric("hfd_http_connections") == 2, "they are gone")
        self.assertEqual(exchange(self.connect(), get(BASE + "/clusters")).status, 200)


class Commands(Secure):
    def test_health(self):
        """`health` is 0 while the server lives, with TLS and without, and 1 otherwise."""
        self.start()
        settings = ["--ops-listen", "127.0.0.1:%d" % self.server.ops_port]
        tls = ["--tls-cert-file", self.path("server.pem"), "--tls-key-file",
               self.path("server.key")]
        for flags in ([], ["--ready"]):
            done = run("health", *flags, *settings, *tls)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = run("health", *settings)
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:%d" % self.server.ops_port, done.stderr)
        self.server.sigterm()
        self.assertEqual(run("health", *settings, *tls).returncode, 1)

    def test_doctor(self):
        """`doctor` asks a server with TLS, and trusts its certificate alone."""
        self.start()
        settings = ["--ops-listen", "127.0.0.1:%d" % self.server.ops_port,
                    *self.server.place.flags()]
        tls = ["--tls-cert-file", self.path("server.pem"), "--tls-key-file",
               self.path("server.key")]
        self.assertEqual(run("doctor", *settings, *tls).returncode, 0)
        self_signed(self.folder, "other")
        done = run("doctor", *settings, "--tls-cert-file", self.path("other.pem"),
                   "--tls-key-file", self.path("other.key"))
        self.assertEqual(done.returncode, 3, "doctor trusts no other key")

    def test_health_while_stopping(self):
        """A server that stops lives and is not ready."""
        server = Server("--http-drain-timeout", "60s")
        self.addCleanup(server.close)
        server.start()
        settings = ["--ops-listen", "127.0.0.1:%d" % server.ops_port]
        with socket.create_connection(("127.0.0.1", server.port)) as held:
            held.sendall(b"GET / HTTP/1.1\r\n")
            eventually(lambda: self.count(server) == 2, "the request has begun")
            server.proc.send_signal(signal.SIGTERM)
            eventually(lambda: run("health", "--ready", *settings).returncode == 1,
                       "the server is not ready")
            self.assertEqual(run("health", *settings).returncode, 0)
        server.wait()

    def count(self, server):
        with socket.create_connection(("127.0.0.1", server.ops_port)) as s:
            text = exchange(s, get("/metrics", "Connection: close")).body.decode()
        return [int(line.split()[1]) for line in text.splitlines()
                if line.startswith("hfd_http_connections ")][0]


if __name__ == "__main__":
    unittest.main()
