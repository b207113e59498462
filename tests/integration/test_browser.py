"""A web page in a browser on this machine can do nothing to the server.

It can use neither a foreign host name (DNS rebinding) nor a foreign origin (cross-site request
forgery).
"""
import json
import unittest

from lib import BASE, Case, Client, cluster_input, eventually, guresid
from test_wire import Wire

REBOUND = {"Host": "evil.example"}
FORGED = ({"Origin": "https://evil.example"}, {"Origin": "null"},
          {"Origin": "http://localhost:3000"}, {"Sec-Fetch-Site": "cross-site"},
          {"Sec-Fetch-Site": "same-site"})
METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")


class Browser(Case):
    FLAGS = ("--http-hosts", "driver.example")

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def refused(self, client, status, method, path, headers, body=None):
        """The request is refused, with an id that the log has, and a count."""
        answer = client.request(method, path, body, headers)
        self.assertEqual(answer.status, status, answer)
        rid = answer.header("X-Request-ID")
        self.assertTrue(rid, answer)
        lines = eventually(lambda: [r for r in self.server.records()
                                         if r.get("request_id") == rid], "its line in the log")
        reason = "foreign_host" if status == 421 else "foreign_origin"
        self.assertEqual((lines[0]["status"], lines[0]["reason"]), (status, reason))
        return answer

    def count(self, reason):
        text = self.ops.get("/metrics").body.decode()
        for line in text.splitlines():
            if line.startswith('hfd_http_refused_total{reason="%s"}' % reason):
                return int(float(line.rsplit(" ", 1)[1]))
        return 0

    def test_every_listener_and_method(self):
        """Both refusals hold on both listeners, for every method, and are counted."""
        hosts, origins = self.count("foreign_host"), self.count("foreign_origin")
        for client, path in ((self.client, "/" + guresid("b")), (self.ops, "/livez")):
            for method in METHODS:
                with self.subTest((path, method)):
                    self.refused(client, 421, method, path, REBOUND)
                    self.refused(client, 403, method, path, FORGED[0])
        self.assertEqual(self.count("foreign_host") - hosts, 2 * len(METHODS))
        self.assertEqual(self.count("foreign_origin") - origins, 2 * len(METHODS))

    def test_nothing_is_planted(self):
        """The requests that a page can send without a preflight make no cluster and no report."""
        body = json.dumps({"kind": "Cluster", "name": "planted", "spec": {}})
        for headers in FORGED + (REBOUND,):
            with self.subTest(headers):
                status = 421 if headers is REBOUND else 403
                answer = self.refused(self.client, status, "POST", BASE + "/clusters",
                                      dict(headers, **{"Content-Type": "text/plain"}), body)
                self.assertEqual(answer.header("Content-Type"), "application/problem+json")
                self.assertEqual(answer.json["status"], status)
        self.assertEqual(self.client.get(BASE + "/clusters").json["total"], 0)
        gid = guresid("kept")
        self.client.put("/" + gid, cluster_input())
        self.refused(self.client, 421, "DELETE", "/" + gid, REBOUND)
        self.refused(self.client, 403, "DELETE", "/" + gid, FORGED[0])
        self.assertEqual(self.client.get("/" + gid).status, 202)

    def test_the_own_names_pass(self):
        """Loopback names, http.hosts, and pages of the server itself are served."""
        port = self.server.ops_port
        for headers in ({"Host": "localhost"}, {"Host": "LOCALHOST:%d" % port},
                        {"Host": "127.0.0.1"}, {"Host": "127.9.9.9:1"}, {"Host": "[::1]:%d" % port},
                        {"Host": "driver.example"}, {"Host": "driver.example:443"},
                        {"Host": "localhost:1", "Origin": "http://localhost:1"},
                        {"Host": "localhost", "Origin": "https://driver.example"},
                        {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
            with self.subTest(headers):
                self.assertEqual(self.ops.get("/livez", headers).status, 200)

    def test_the_url_of_the_request_line(self):
        """The authority of an absolute target is checked like Host."""
        for target, host, status in ((b"http://localhost/abc", b"a", 421),
                                     (b"http://a/abc", b"localhost", 421),
                                     (b"http://localhost/abc", b"localhost", 404)):
            with self.subTest((target, host)):
                w = Wire(self.server.port)
                w.send(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
                self.assertEqual(w.response().status, status)
                w.close()

    def test_http_1_0_without_host(self):
        """HTTP/1.0 needs no Host: no browser speaks it."""
        w = Wire(self.server.ops_port)
        w.send(b"GET /livez HTTP/1.0\r\n\r\n")
        self.assertEqual(w.response().status, 200)
        w.close()


if __name__ == "__main__":
    unittest.main()
