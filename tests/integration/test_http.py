"""HTTP/1.1 as a stranger may send it: what is refused with 400, HTTP/2 refused in every form,
limits of size and time.
"""
import socket
import time
import unittest

from lib import Case, Client, Server, TIME_FACTOR, eventually, guresid, need_files

BODY = b'{"type":"hyperfleet-cluster","driver":{"values":{"cluster":{"spec":{}}}}}'
LOCAL = b"Host: localhost\r\n"


class Raw(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def exchange(self, raw, timeout_s=60.0, until=b"HTTP/1."):
        """Sends bytes on a connection of their own, and returns all bytes that come. The end is
        when the server closes, or half a second without bytes behind the text `until`.
        """
        data = b""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=timeout_s) as s:
            s.sendall(raw)
            while True:
                try:
                    chunk = s.recv(65536)
                except ConnectionResetError:
                    break
                except socket.timeout:
                    break
                if not chunk:
                    break
                data += chunk
                if until in data:
                    s.settimeout(0.5 * TIME_FACTOR)
        return data

    def statuses(self, raw):
        """The status codes of the responses to these bytes."""
        return [int(part[:3]) for part in self.exchange(raw).split(b"HTTP/1.1 ")[1:]]

    def test_refused(self):
        """400 and nothing made: no Host or two, both lengths, two different lengths, bad lengths
        and chunk sizes, bare LF in the head.
        """
        length = b"Content-Length: %d\r\n" % len(BODY)
        chunked = b"Transfer-Encoding: chunked\r\n"
        cases = {
            "no Host": (b"", length, BODY),
            "two Hosts": (b"Host: localhost\r\nHost: b\r\n", length, BODY),
            "the same Host twice": (b"Host: localhost\r\nHost: localhost\r\n", length, BODY),
            "both lengths": (LOCAL, length + chunked,
                             b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
            "both lengths, the other way round": (LOCAL, chunked + length,
                                                  b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
            "two different lengths": (LOCAL, length + b"Content-Length: 5\r\n", BODY),
            "a negative length": (LOCAL, b"Content-Length: -1\r\n", BODY),
            "a length that is no number": (LOCAL, b"Content-Length: x\r\n", BODY),
            "a huge length": (LOCAL, b"Content-Length: 99999999999999999999999\r\n", BODY),
            "a bad chunk size": (LOCAL, chunked, b"zz\r\n" + BODY + b"\r\n0\r\n\r\n"),
            "a negative chunk size": (LOCAL, chunked, b"-5\r\n" + BODY + b"\r\n0\r\n\r\n"),
            "an empty chunk size": (LOCAL, chunked, b"\r\n" + BODY + b"\r\n0\r\n\r\n"),
            "a chunk size beyond 64 bits": (LOCAL, chunked,
                                            b"10000000000000001\r\n" + BODY + b"\r\n0\r\n\r\n"),
        }
        for name, (host, lengths, body) in cases.items():
            with self.subTest(name):
                gid = guresid("raw").encode()
                got = self.statuses(b"PUT /" + gid + b" HTTP/1.1\r\n" + host + lengths + b"\r\n"
                                    + body)
                refusals = (400, 413) if "huge" in name or "beyond" in name else (400,)
                self.assertTrue(got and got[0] in refusals, got)
                self.assertTrue(all(status >= 400 for status in got), got)
                self.expect(self.get(gid.decode()), 404)
        for name, raw in {
            "bare LF after the request line": b"PUT /%s HTTP/1.1\nHost: localhost\r\n%s\r\n%s",
            "bare LF after a header":
                          b"PUT /%s HTTP/1.1\r\nHost: localhost\n%s\r\n%s",
                          "bare LF at the end of the "
                          "head": b"PUT /%s HTTP/1.1\r\nHost: localhost\r\n%s\n%s"}.items():
            with self.subTest(name):
                gid = guresid("raw").encode()
                got = self.statuses(raw % (gid, length, BODY))
                self.assertEqual(got[:1], [400])
                self.expect(self.get(gid.decode()), 404)

    def test_no_smuggling(self):
        """A second request hidden behind contradicting lengths is not carried out."""
        hidden = guresid("hidden").encode()
        inner = b"PUT /" + hidden + b" HTTP/1.1\r\n" + LOCAL + b"Content-Length: %d\r\n\r\n" % len(
            BODY) + BODY
        for lengths in (b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % (len(inner) + 5),
                        b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(inner),
                        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                        b"Transfer-Encoding: xchunked\r\n"):
            with self.subTest(lengths):
                self.exchange(b"GET /abc HTTP/1.1\r\n" + LOCAL + lengths + b"\r\n0\r\n\r\n"
                              + inner)
                self.expect(self.get(hidden.decode()), 404)

    def test_no_http2(self):
        """Neither an upgrade to h2c nor prior knowledge is taken."""
        got = self.exchange(
            b"GET /abc HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "
            b"h2c\r\n"
                            b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 404"), got[:80])
        got = self.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                            + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        self.assertFalse(got and not got.startswith(b"HTTP/1."), got[:80])

    def test_large_head(self):
        """A head beyond every limit is refused or cut off; the server goes on."""
        for raw in (b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET /abc HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1000000 + b"\r\n\r\n",
                    b"GET /abc HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100000 + b"\r\n"):
            try:
                got = self.statuses(raw)
            except (BrokenPipeError, ConnectionResetError):
                got = []
            self.assertTrue(all(status >= 400 for status in got), got)
            self.expect(self.get("abc"), 404)

    def test_nonsense(self):
        """Bytes that are no HTTP do no harm."""
        for raw in (b"\x00" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n",
                    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
                    b"\r\n\r\n\r\n", b"PUT /abc HTTP/1.1\r\nHost : a\r\n\r\n"):
            with self.subTest(raw):
                self.exchange(raw, timeout_s=0.5 * TIME_FACTOR)
                self.expect(self.get("abc"), 404)

    def test_continue(self):
        """Expect: 100-continue is served, with or without an interim answer."""
        gid = guresid("expect")
        got = self.exchange(
            b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            b"Content-Length: %d\r\n\r\n"
            % (gid.encode(),
            len(BODY)) + BODY, until=b"HTTP/1.1 202")
        self.assertIn(b"HTTP/1.1 202", got)
        self.expect(self.get(gid), 202)

    def test_head_and_options(self):
        """HEAD has no body; neither is ever a 5xx."""
        for path in ("/abc", "/api/hyperfleet/v1/clusters"):
            for method in ("HEAD", "OPTIONS", "TRACE", "BREW"):
                answer = self.client.request(method, path)
                self.assertLess(answer.status, 502)
                self.assertNotEqual(answer.status, 500)
                if method == "HEAD":
                    self.assertEqual(answer.body, b"")

    def test_no_internals(self):
        """No answer tells what the server is made of beyond its name."""
        for answer in (self.client.get("/abc"), self.client.get("/a/b/c"),
                       self.client.put("/abc", b"{")):
            self.assertNotIn("h2o", (answer.header("Server") or "").lower())
            self.assertNotIn(b".c:", answer.body)


class Limits(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--http-read-timeout", "1s", "--http-write-timeout", "1s")

    def test_slow_senders(self):
        """A head or body that does not arrive in time is cut off; others are served meanwhile."""
        gid = guresid("slow").encode()
        parts = (b"PUT /%s HT" % gid, b"PUT /%s HTTP/1.1\r\nHost: localhost\r\n" % gid,
                 b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{" % gid, b"")
        socks = []
        for part in parts * 10:
            s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60 * TIME_FACTOR)
            self.addCleanup(s.close)
            s.sendall(part)
            socks.append(s)
        self.expect(self.get("abc"), 404)
        for s in socks:
            try:
                while s.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        self.expect(self.get(gid.decode()), 404)

    def test_slow_reader(self):
        """A client that does not read its answer is cut off, and does not hold up others."""
        client = Client(self.server)
        self.addCleanup(client.close)
        for i in range(30):
            client.post("/api/hyperfleet/v1/clusters",
                        {"kind": "Cluster", "name": "wide-%d" % i, "spec": {"x": "y" * 200000}})
        s = socket.socket()
        self.addCleanup(s.close)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(60 * TIME_FACTOR)
        s.connect(("127.0.0.1", self.server.port))
        s.sendall(b"GET /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        theirs, ours = ":%04X" % s.getpeername()[1], ":%04X" % s.getsockname()[1]

        def cut():
            """Tells if the server's end of this connection is gone (or only waits to be forgotten).
            """
            with open("/proc/net/tcp", encoding="ascii") as f:
                rows = [line.split() for line in f][1:]
            return not [r for r in rows if r[1].endswith(theirs) and r[2].endswith(ours)
                        and r[3] == "01"]

        start = time.monotonic()
        eventually(cut, "the slow reader is cut off", every_s=0.1)
        self.assertLess(time.monotonic() - start, 15 * TIME_FACTOR)
        said = lambda: [r["request_id"] for r in self.server.records()
                        if r["msg"] == "slow reader cut off"]
        eventually(said, "the log says so")
        self.assertRegex(said()[0], "^2[0-9a-z]{26}$")
        self.expect(self.get("abc"), 404)

    def test_many_connections(self):
        """A thousand idle connections do not keep others out."""
        need_files(1000)
        socks = [socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
                 for _ in range(900)]
        try:
            self.expect(self.get("abc"), 404)
        finally:
            for s in socks:
                s.close()


class FewConnections(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--http-connections-max", "20", "--http-read-timeout", "2s")

    def test_more_wait_for_a_place(self):
        """Beyond http.connections_max a connection waits for a place, and is served once there is
        one.
        """
        idle = [socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
                for _ in range(60)]
        try:
            self.expect(self.get("abc"), 404)
        finally:
            for s in idle:
                s.close()
        self.expect(self.get("abc"), 404)


class FewFiles(unittest.TestCase):
    class Bounded(Server):
        def command(self):
            return ["sh", "-c", 'ulimit -n 100 && exec "$@"', "sh"] + super().command()

    def test_clients_leave_files_for_the_others(self):
        """Where the system allows fewer files than http.connections_max, clients take their share
        only: the ops listener answers.
        """
        with self.Bounded("--http-threads", "2", "--http-read-timeout", "60s") as server:
            told = [r for r in server.records() if "open file limit too low" in r["msg"]]
            self.assertEqual([(r["level"], r["allowed"], r["connections"]) for r in told],
                             [("warn", 100, 25)])
            ops = Client(server, ops=True)
            self.addCleanup(ops.close)
            idle = [socket.create_connection(("127.0.0.1", server.port), timeout=60)
                    for _ in range(150)]
            try:
                for path in ("/livez", "/readyz", "/metrics"):
                    ops.close()
                    self.assertEqual(ops.get(path).status, 200)
            finally:
                for s in idle:
                    s.close()
            client = Client(server)
            self.addCleanup(client.close)
            self.assertEqual(client.get("/abc").status, 404)
            self.assertEqual([r for r in server.records() if r["msg"] == "accept failed"], [])


if __name__ == "__main__":
    unittest.main()
