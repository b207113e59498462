"""gzip for large answers: which clients get it, which answers do not, and the bytes."""
import gzip
import http.client
import json
import random
import socket
import ssl
import string
import unittest

from lib import BASE, Case, Client, LABEL, TIME_FACTOR, cluster_input, guresid
from test_hostile import send
from test_tls import Secure

GZIP = {"Accept-Encoding": "gzip"}


def plant(client, name, filler):
    answer = client.post(BASE + "/clusters",
                         {"kind": "Cluster", "name": name, "spec": {"filler": filler}})
    assert answer.status == 201, answer
    return answer.json["href"]


def noise(count):
    """Text that hardly shrinks."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=count))


class Gzip(Case):
    FLAGS = ("--driver-outputs-values-note", "validation:/filler")

    def plain_and_packed(self, client, path):
        """The body without gzip; the answer with it."""
        plain = client.get(path, {"Accept-Encoding": "identity"})
        self.assertEqual(plain.status, 200)
        self.assertIsNone(plain.header("Content-Encoding"))
        packed = client.get(path, GZIP)
        self.assertEqual(packed.status, 200)
        return plain, packed

    def same(self, client, path, varies="Accept-Encoding"):
        plain, packed = self.plain_and_packed(client, path)
        self.assertEqual(packed.header("Content-Encoding"), "gzip", path)
        self.assertEqual(gzip.decompress(packed.body), plain.body, path)
        for answer in plain, packed:
            self.assertEqual(answer.header("Vary"), varies, path)
        for header in "Content-Type", "Content-Security-Policy":
            self.assertEqual(packed.header(header), plain.header(header))
        return packed

    def test_documents(self):
        """Documents over 1 KiB are compressed, in one part or several, and are the same bytes."""
        fleet = "Authorization, Accept-Encoding"
        small = plant(self.client, "small", "x" * 1500)
        packed = self.same(self.client, small, fleet)
        self.assertEqual(packed.header("Content-Length"), str(len(packed.body)))
        for filler in "x" * 500000, noise(300000), "x" * 65536, noise(90000):
            packed = self.same(self.client, plant(self.client, guresid("c"), filler), fleet)
            self.assertIsNone(packed.header("Content-Length"))
            self.assertEqual(packed.header("Transfer-Encoding"), "chunked")
        self.same(self.client, BASE + "/clusters", fleet)
        self.same(self.client, BASE + "/openapi", fleet)
        self.same(self.client, BASE + "/openapi.html", fleet)

    def test_ops(self):
        """So are the manual and the metrics; a probe is too small."""
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        self.same(ops, "/docs")
        self.same(ops, "/docs/operate.html")
        metrics = ops.get("/metrics", GZIP)
        self.assertEqual(metrics.header("Content-Encoding"), "gzip")
        self.assertIn(b"hfd_http_requests_total", gzip.decompress(metrics.body))
        probe = ops.get("/livez", GZIP)
        self.assertEqual((probe.header("Content-Encoding"), probe.header("Vary")), (None, None))

    def test_small(self):
        """An answer of up to 1 KiB is not, and does not vary."""
        self.client.post(BASE + "/clusters", {"kind": "Cluster", "name": "tiny", "spec": {}})
        path = BASE + "/clusters?pageSize=1&fields=name"
        for answer in self.plain_and_packed(self.client, path):
            self.assertLess(len(answer.body), 1025)
            self.assertEqual(answer.header("Vary"), "Authorization")
            self.assertIsNone(answer.header("Content-Encoding"))

    def test_accept_encoding(self):
        """gzip, x-gzip or * in any case, without a weight of 0, in HTTP/1.1."""
        path = plant(self.client, guresid("who"), "x" * 5000)
        for value, taken in (("gzip", True), ("GZip", True), ("x-gzip", True), ("*", True),
                             ("br, gzip;q=0.5", True), ("gzip ; q=0.001", True),
                             ("gzip;q=0", False), ("gzip; q=0.000", False), ("*;q=0", False),
                             ("gzip;q=0, *", False), ("*, gzip;q=0", False), ("br", False),
                             ("identity", False), ("", False), ("gzipped", False)):
            answer = self.client.get(path, {"Accept-Encoding": value})
            self.assertEqual(answer.header("Content-Encoding"), "gzip" if taken else None, value)
        with send(self.server.port, b"GET " + path.encode() + b" HTTP/1.0\r\nHost: localhost\r\n"
                  b"Accept-Encoding: gzip\r\n\r\n") as s:
            text = b""
            while chunk := s.recv(65536):
                text += chunk
        self.assertNotIn(b"Content-Encoding", text)
        self.assertIn(b"x" * 5000, text)

    def test_head(self):
        """HEAD has the headers of GET and no body; the connection goes on."""
        for size in 5000, 300000:
            path = plant(self.client, guresid("head"), "x" * size)
            got = self.client.get(path, GZIP)
            for _ in range(3):
                head = self.client.request("HEAD", path, None, GZIP)
                self.assertEqual((head.status, head.body), (200, b""))
                for name in "Content-Encoding", "Vary", "Content-Length", "Connection":
                    self.assertEqual(head.header(name), got.header(name), name)

    def test_secrets(self):
        """The Driver API's resources are never compressed: their answers may have secrets."""
        gid = guresid("secret")
        cluster = self.order(gid)
        answer = self.client.get("/" + gid, GZIP)
        self.assertEqual(answer.status, 200)
        self.assertGreater(len(answer.body), 4000)
        for answer in answer, self.client.put("/" + gid, self.body, GZIP):
            self.assertEqual(answer.status, 200)
            self.assertEqual((answer.header("Content-Encoding"), answer.header("Vary")),
                             (None, None))
        self.assertEqual(self.client.get(cluster["href"] + "/statuses", GZIP)
                         .header("Content-Encoding"), "gzip")

    def order(self, gid):
        """A ready resource whose answer is long."""
        self.body = cluster_input(gid, labels={"k%d" % i: "v" * 60 for i in range(60)})
        self.assertEqual(self.client.put("/" + gid, self.body).status, 202)
        cluster = self.fleet.cluster_of(gid)
        self.fleet.make_ready(cluster, data={"filler": "y" * 4000})
        return cluster

    def test_status(self):
        """The status query is; its ETag is weak then, and still matches."""
        gid = guresid("status")
        self.order(gid)
        path = "/" + gid + "/status?output=detail"
        plain, packed = self.plain_and_packed(self.client, path)
        self.assertEqual(gzip.decompress(packed.body), plain.body)
        tag = plain.header("ETag")
        self.assertEqual(packed.header("ETag"), "W/" + tag)
        for accept in GZIP, {"Accept-Encoding": "identity"}:
            for known in tag, "W/" + tag:
                again = self.client.get(path, dict(accept, **{"If-None-Match": known}))
                self.assertEqual((again.status, again.body), (304, b""))
                self.assertIn("Accept-Encoding", again.header("Vary"))

    def test_a_client_that_goes(self):
        """A client may hang up in the middle of a compressed answer."""
        path = plant(self.client, guresid("gone"), noise(300000))
        request = b"GET " + path.encode() + (b" HTTP/1.1\r\nHost: localhost\r\n"
                                             b"Accept-Encoding: gzip\r\n\r\n")
        for _ in range(10):
            s = socket.create_connection(("127.0.0.1", self.server.port), timeout=30 * TIME_FACTOR)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(request)
            s.recv(1000)
            s.close()
        self.assertEqual(self.client.get(path).status, 200)


class OverTls(Secure):
    def test_parts(self):
        """The parts of a compressed answer go out over TLS as well."""
        server = self.start("--insecure-no-auth")
        context = ssl.create_default_context(cafile=self.path("server.pem"))
        conn = http.client.HTTPSConnection("localhost", server.port, context=context,
                                           timeout=30 * TIME_FACTOR)
        self.addCleanup(conn.close)
        filler = noise(300000)
        conn.request("POST", BASE + "/clusters", json.dumps(
            {"kind": "Cluster", "name": "tls", "spec": {"filler": filler}}),
            {"Content-Type": "application/json"})
        href = json.loads(conn.getresponse().read())["href"]
        conn.request("GET", href, headers=GZIP)
        answer = conn.getresponse()
        self.assertEqual(answer.getheader("Content-Encoding"), "gzip")
        self.assertEqual(json.loads(gzip.decompress(answer.read()))["spec"]["filler"], filler)


if __name__ == "__main__":
    unittest.main()
