"""HTTP/1.1 on the wire of the real program: keep-alive, pipelining, methods and paths, refusals in
the right dialect, clients that leave, the end."""
import json
import signal
import socket
import time
import unittest

from lib import BASE, Case, Client, SET_COOKIE, TIME_FACTOR, cluster_input, eventually, guresid

BODY_MAX = 1048576


class Response:
    """One response as it came."""

    def __init__(self, head, body):
        lines = head.split(b"\r\n")
        self.status = int(lines[0].split(b" ")[1])
        self.headers = [(k.decode().lower(), v.strip().decode()) for k,
                        v in (line.split(b":", 1) for line in lines[1:])]
        self.body = body

    def header(self, name):
        values = [v for k, v in self.headers if k == name.lower()]
        assert len(values) < 2, self.headers
        return values[0] if values else None


class Wire:
    """A connection that reads responses by their framing, so that what is one byte off is seen."""

    def __init__(self, port, timeout_s=60.0 * TIME_FACTOR):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.data = b""

    def send(self, raw):
        self.sock.sendall(raw)

    def fill(self):
        chunk = self.sock.recv(65536)
        self.data += chunk
        return bool(chunk)

    def response(self, head_only=False):
        while b"\r\n\r\n" not in self.data:
            assert self.fill(), "closed behind %r" % self.data
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        r = Response(head, b"")
        length = 0 if head_only or r.status < 200 or r.status == 204 else int(
            r.header("Content-Length"))
        while len(self.data) < length:
            assert self.fill(), "closed in a body"
        r.body, self.data = self.data[:length], self.data[length:]
        return r

    def closed(self):
        """Tells if the server ends the connection without more bytes."""
        try:
            return self.data == b"" and self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.sock.close()


def get(path, extra=b"", version=b"1.1", method=b"GET"):
    return method + b" " + path + b" HTTP/" + version + b"\r\nHost: localhost\r\n" + extra + b"\r\n"


class OnTheWire(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def wire(self, ops=False):
        w = Wire(self.server.ops_port if ops else self.server.port)
        self.addCleanup(w.close)
        return w

    def once(self, raw, **kwargs):
        w = self.wire()
        w.send(raw)
        return w.response(**kwargs)

    def test_keep_alive(self):
        """Version and Connection header decide whether the connection stays."""
        for version, extra, stays in ((b"1.1", b"", True),
                                      (b"1.1", b"Connection: close\r\n", False),
                                      (b"1.1", b"Connection: x, Close\r\n", False),
                                      (b"1.0", b"", False),
                                      (b"1.0", b"Connection: keep-alive\r\n", True),
                                      (b"1.1", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", True)):
            with self.subTest((version, extra)):
                w = self.wire()
                w.send(get(b"/abc", extra, version))
                self.assertEqual(w.response().status, 404)
                if stays:
                    w.send(get(b"/abc", b"Connection: close\r\n"))
                    self.assertEqual(w.response().status, 404)
                self.assertTrue(w.closed())

    def test_pipelining(self):
        """Of requests sent in one go the first is answered and the rest is not carried out."""
        body = json.dumps(cluster_input()).encode()
        for chunked in False, True:
            w, gid, other = self.wire(), guresid("pipe").encode(), guresid("pipe").encode()
            first = b"PUT /" + gid + b" HTTP/1.1\r\nHost: localhost\r\n"
            if chunked:
                first += b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body
                first += b"\r\n0\r\n\r\n"
            else:
                first += b"Content-Length: %d\r\n\r\n" % len(body) + body
            w.send(first + first.replace(gid, other) + get(b"/" + gid))
            answer = w.response()
            self.assertEqual((answer.status, answer.header("Connection")), (202, "close"))
            self.assertTrue(w.closed())
            self.assertEqual(self.once(get(b"/" + gid)).status, 202)
            self.assertEqual(self.once(get(b"/" + other)).status, 404)

    def test_empty_line_behind_a_body(self):
        """An empty line behind a body, as some clients send, is no request."""
        w, body = self.wire(), json.dumps(cluster_input()).encode()
        for _ in range(3):
            w.send(b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                   % (guresid("line").encode(), len(body)) + body + b"\r\n")
            answer = w.response()
            self.assertEqual((answer.status, answer.header("Connection")), (202, "keep-alive"))

    def test_many_pipelined(self):
        """Of thousands of requests in one go the first one's answer arrives; nothing is reset."""
        w = self.wire(ops=True)
        w.sock.sendall(get(b"/livez") * 5000)
        self.assertEqual(w.response().body, b'{"status":"ok"}')
        self.assertEqual((w.data, w.sock.recv(1)), (b"", b""))

    def test_byte_by_byte(self):
        """A request in the smallest pieces is a request."""
        w = self.wire()
        gid = guresid("bytes").encode()
        body = json.dumps(cluster_input()).encode()
        w.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b"PUT /" + gid + b" HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
        for byte in head + b"%x;x=y\r\n" % len(body) + body + b"\r\n0\r\nT: x\r\n\r\n":
            w.send(bytes([byte]))
        self.assertEqual(w.response().status, 202)

    def test_every_answer(self):
        """An id of our own making, a date, the bare name of the server, a length, on every answer.
        """
        ids = set()
        for raw in (get(b"/abc"), get(b"/abc", b"X-Request-ID: mine\r\n"), get(b"/a/b/c"),
                    b"nonsense\r\n\r\n",
                    get(BASE.encode() + b"/clusters"), get(b"/abc", method=b"BREW")):
            r = self.once(raw)
            self.assertRegex(r.header("X-Request-ID"), r"^2[0-9a-z]{26}$")
            ids.add(r.header("X-Request-ID"))
            self.assertEqual(r.header("Server"), "hyperfleet-driver")
            self.assertRegex(r.header("Date"),
                             r"^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$")
        self.assertEqual(len(ids), 6)

    def test_no_length_on_204(self):
        """A 204 has an empty cookie header, no length and no body."""
        w = self.wire()
        w.send(get(b"/" + guresid("gone").encode(), method=b"DELETE"))
        r = w.response()
        self.assertEqual(r.status, 204)
        self.assertEqual(r.header(SET_COOKIE), "")
        self.assertIsNone(r.header("Content-Length"))
        w.send(get(b"/abc", b"Connection: close\r\n"))
        self.assertEqual(w.response().status, 404)

    def test_space_around_values(self):
        """White space around a header's value is no part of it."""
        path = b"/" + guresid("space").encode()
        body = json.dumps(cluster_input()).encode()
        made = self.once(b"PUT " + path
                         + b" HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        cookie = made.header(SET_COOKIE).encode()
        for value in (b"\t" + cookie + b" \t ", b" \t ", b""):
            with self.subTest(value):
                self.assertEqual(self.once(get(path, b"Humanitec-Driver-Cookie:" + value
                                               + b"\r\nConnection: close\r\n")).status, 202)

    def test_space_behind_values(self):
        """White space behind a value that frames a request means nothing to both parsers."""
        body = json.dumps(cluster_input()).encode()
        length = b"Content-Length: %d" % len(body)
        chunks = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        for lines, data in ((length + b" ", body), (length + b"\t", body),
                            (length + b" \t \t", body), (length + b" \r\n" + length, body),
                            (b"Transfer-Encoding: chunked ", chunks),
                            (b"Transfer-Encoding:chunked\t", chunks)):
            with self.subTest(lines):
                gid = guresid("ows").encode()
                w = self.wire()
                w.send(b"PUT /" + gid + b" HTTP/1.1\r\nHost: [::1] \r\n" + lines
                       + b"\r\n\r\n" + data)
                r = w.response()
                self.assertEqual(r.status, 202)
                self.assertTrue(r.header("X-Request-ID"))
                w.send(get(b"/" + gid))
                self.assertEqual(w.response().status, 202)

    def test_expect_of_http_1_0(self):
        """A client of HTTP/1.0 does not know 100 Continue, and gets none (RFC 9110, 10.1.1)."""
        body = json.dumps(cluster_input()).encode()
        for value in (b"100-continue", b"100-continue \t"):
            with self.subTest(value):
                w = self.wire()
                w.send(b"PUT /" + guresid("old").encode() + b" HTTP/1.0\r\nExpect: " + value
                       + b"\r\nContent-Length: %d\r\n\r\n" % len(body))
                w.send(body)
                r = w.response()
                self.assertEqual(r.status, 202)
                self.assertTrue(r.header("X-Request-ID"))

    def test_head(self):
        """HEAD has the headers of GET and no body."""
        path = (BASE + "/clusters").encode()
        full = self.once(get(path))
        w = self.wire()
        w.send(get(path, method=b"HEAD"))
        head = w.response(head_only=True)
        self.assertEqual((head.status, head.header("Content-Length"), head.header("Content-Type")),
                         (200, str(len(full.body)), full.header("Content-Type")))
        w.send(get(b"/abc", b"Connection: close\r\n"))
        self.assertEqual(w.response().status, 404)

    def test_accept_encoding(self):
        """No answer is compressed, whatever its client accepts, and none varies with that."""
        base = BASE.encode()
        for path, ops, vary in ((base + b"/openapi", False, "Authorization"),
                                (base + b"/openapi.html", False, "Authorization"),
                                (b"/metrics", True, None), (b"/docs", True, None)):
            plain = None
            for value in b"identity", b"gzip", b"*", b"br, gzip;q=0.5", b"identity;q=0":
                w = self.wire(ops)
                w.send(get(path, b"Accept-Encoding: " + value + b"\r\n"))
                r = w.response()
                self.assertEqual((r.status, r.header("Content-Encoding"), r.header("Vary")),
                                 (200, None, vary), (path, value))
                self.assertEqual(r.header("Content-Length"), str(len(r.body)))
                if path != b"/metrics":
                    plain = plain or r.body
                    self.assertEqual(r.body, plain)

    def test_methods(self):
        """A known path with another method is 405 and says which are allowed."""
        for path, methods in ((b"/abc", "GET, HEAD, PUT, DELETE"),
                              (b"/clusters/abc", "GET, HEAD, PUT, DELETE"),
                              (BASE.encode() + b"/clusters", "GET, HEAD, POST")):
            for method in (b"BREW", b"OPTIONS", b"TRACE", b"get"):
                with self.subTest((path, method)):
                    r = self.once(get(path, method=method))
                    self.assertEqual((r.status, r.header("Allow")), (405, methods))
                    self.assertIsInstance(json.loads(r.body), dict)
        for raw in (get(b"*", method=b"OPTIONS"), get(b"a:80", method=b"CONNECT")):
            self.assertEqual(self.once(raw).status, 400)

    def test_paths(self):
        """Absolute URLs, a slash too many, escapes; broken escapes are refused, unknown paths are
        404 in their dialect.
        """
        gid = guresid("path")
        self.expect(self.put(gid, cluster_input()), 202)
        last = "%%%02X" % ord(gid[-1])
        for path in ("/" + gid, "//" + gid, "/" + gid + "/", "http://localhost/" + gid,
                     "http://localhost:80/clusters/" + gid + "?x=y",
                     "/" + gid[:-1] + last):
            with self.subTest(path):
                self.assertEqual(self.once(get(path.encode())).status, 202)
        for path in (b"/a%2Fb", b"/a%00", b"/a%zz", b"/%"):
            with self.subTest(path):
                self.assertEqual(self.once(get(path)).status, 400)
        for path in (b"/", b"/x/y", b"/api", b"/a/b/c/d/e/f/g/h/i/j"):
            with self.subTest(path):
                r = self.once(get(path))
                self.assertEqual(r.status, 404)
                self.assertEqual(json.loads(r.body)["error"],
                                 "RES-108" if path == b"/api" else "RES-101")
        r = self.once(get(BASE.encode() + b"/nope?x=y"))
        doc = json.loads(r.body)
        self.assertEqual((r.status, r.header("Content-Type"), r.header("Vary")),
                         (404, "application/problem+json", "Authorization"))
        self.assertEqual((doc["code"], doc["detail"]),
                         ("HYPERFLEET-NTF-000",
                          "The requested resource '%s/nope' doesn't exist" % BASE))
        self.assertEqual((doc["instance"], doc["trace_id"]),
                         (BASE + "/nope", r.header("X-Request-ID")))

    def test_too_large(self):
        """A body over the limit is 413 in the dialect of its path, and the client that still sends
        gets to read it.
        """
        for size in (BODY_MAX + 1, 2 * BODY_MAX + 1, 64 * BODY_MAX):
            for head, key in ((b"PUT /abc HTTP/1.1\r\n", "error"),
                              (b"POST " + BASE.encode() + b"/clusters HTTP/1.1\r\n", "code")):
                with self.subTest((size, key)):
                    w = self.wire()
                    w.send(head + b"Host: localhost\r\nContent-Length: %d\r\n\r\n" % size)
                    left = size
                    while left > 0:
                        w.send(b"x" * min(left, 1 << 20))
                        left -= 1 << 20
                    r = w.response()
                    self.assertEqual((r.status, r.header("Connection")), (413, "close"))
                    self.assertIn(key, json.loads(r.body))
        w = self.wire()
        w.send(b"PUT /abc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(17):
            w.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        self.assertEqual(w.response().status, 413)
        w = self.wire()
        w.send(b"PUT /abc HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\n"
               b"Content-Length: %d\r\n\r\n" % (BODY_MAX + 1))
        self.assertEqual(w.response().status, 413)
        w = self.wire()
        w.send(b"PUT /abc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % BODY_MAX
               + b"x" * BODY_MAX)
        self.assertEqual(w.response().status, 400)

    def test_coded_bodies(self):
        """A body with a Content-Encoding is 415, which names the coding; identity is none."""
        body = json.dumps(cluster_input()).encode()
        cluster = b'{"kind":"Cluster","name":"coded","spec":{}}'
        put, post = b"PUT /" + guresid("coded").encode(), b"POST %s/clusters" % BASE.encode()
        for lines, coding in (("Content-Encoding: gzip", "gzip"),
                              ("content-encoding: x-unknown", "x-unknown"),
                              ("Content-Encoding: GZIP", "GZIP"),
                              ("Content-Encoding: identity, br", "br"),
                              ("Content-Encoding: identity\r\nContent-Encoding: zstd", "zstd"),
                              ("Content-Encoding: " + "z" * 200, "z" * 80)):
            for chunked in False, True:
                for start, doc, members in ((put, body, {"error": "RES-101"}),
                                            (post, cluster, {"code": "HYPERFLEET-VAL-005"})):
                    with self.subTest(lines=lines, start=start, chunked=chunked):
                        r = self.once(self.coded(start, lines, doc, chunked))
                        self.assertEqual((r.status, r.header("Accept-Encoding")),
                                         (415, "identity"))
                        answer = json.loads(r.body)
                        self.assertLessEqual(members.items(), answer.items())
                        self.assertIn('got "%s"' % coding, answer.get("message") or
                                      answer["detail"])
        r = self.once(get(put[4:]))
        self.assertEqual((r.status, r.header("Accept-Encoding")), (404, None))
        for lines in "Content-Encoding: Identity", "Content-Encoding:", "Content-Encoding: , ":
            self.assertEqual(self.once(self.coded(put, lines, body, False)).status, 202, lines)
        coded = get(b"/abc", b"Content-Encoding: gzip\r\n")
        self.assertEqual(self.once(coded).status, 404)  # there is no body

    @staticmethod
    def coded(start, lines, body, chunked):
        framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: %d" % len(body)
        head = "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n\r\n" % (start.decode(), lines,
                                                                      framing)
        return head.encode() + (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)

    def test_head_limits(self):
        """Each limit of the head has its own status."""
        for raw, status in ((get(b"/" + b"a" * 16384), 414), (b"GET /" + b"a" * 17000, 414),
                            (get(b"/abc", b"X: y\r\n" * 64), 431),
                            (get(b"/abc", b"X: " + b"y" * 32768 + b"\r\n"), 431),
                            (get(b"/abc", b"X: y\r\n" * 63), 404),
                            (get(b"/abc", b"X: " + b"y" * 30000 + b"\r\n"), 404),
                            (get(b"/abc", b"Expect: x\r\n"), 417)):
            self.assertEqual(self.once(raw).status, status, raw[:40])
        path = BASE + "/" + '"' * 16000
        for extra, status in ((b"", 404), (b"Expect: x\r\n", 417)):
            r = self.once(get(path.encode(), extra))
            self.assertEqual((r.status, json.loads(r.body)["instance"]), (status, path),
                             "the longest path is quoted whole")

    def test_continue(self):
        """The client that waits for 100 gets it before its body is read."""
        w = self.wire()
        body = json.dumps(cluster_input()).encode()
        w.send(b"PUT /" + guresid("wait").encode()
               + b" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body))
        self.assertEqual(w.response().status, 100)
        w.send(body)
        self.assertEqual(w.response().status, 202)

    def test_hang_up(self):
        """Clients that leave at any moment do no harm. The resources of their PUTs exist whole or
        not at all.
        """
        gids = []
        for i in range(60):
            gid = guresid("leave")
            gids.append(gid)
            body = json.dumps(cluster_input(nodepools=[{"name": "p", "spec": {}}])).encode()
            raw = b"PUT /" + gid.encode() + b" HTTP/1.1\r\nHost: localhost\r\n"
            raw += b"Content-Length: %d\r\n\r\n" % len(body) + body
            w = Wire(self.server.port)
            if i % 3 == 0:
                w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            w.send(raw if i % 2 == 0 else raw[:len(raw) * i // 60])
            w.close()
        for gid in gids:
            self.assertIn(self.get(gid).status, (202, 404))
        with self.subTest("nothing is left open"):
            probe = Client(self.server, ops=True)
            self.addCleanup(probe.close)
            eventually(lambda: b"\nhfd_http_requests_in_flight 0\n" in probe.get("/metrics").body,
                       "no request is in flight")


class Drain(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_sigterm(self):
        """SIGTERM: idle connections close, and no new one is accepted. An upload under way is
        answered with Connection: close, then the end.
        """
        idle, busy = Wire(self.server.port), Wire(self.server.port)
        body = json.dumps(cluster_input()).encode()
        try:
            idle.send(get(b"/abc"))
            self.assertEqual(idle.response().status, 404)
            busy.send(b"PUT /" + guresid("last").encode()
                      + b" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(busy.response().status, 100)
            self.server.proc.send_signal(signal.SIGTERM)
            self.assertTrue(idle.closed())

            def refused():
                try:
                    Wire(self.server.port).close()
                except ConnectionRefusedError:
                    return True
                return False

            eventually(refused, "nobody new gets in")
            busy.send(body)
            r = busy.response()
            self.assertEqual((r.status, r.header("Connection")), (202, "close"))
            start = time.monotonic()
            self.assertEqual(self.server.wait(), 0)
            self.assertLess(time.monotonic() - start, 20 * TIME_FACTOR)
        finally:
            idle.close()
            busy.close()


if __name__ == "__main__":
    unittest.main()
