"""A caller is known before its body is read: refusals come at the head, and take no memory."""
import base64
import itertools
import json
import select
import time
import unittest

from lib import BASE, Client, cluster_input, eventually, guresid, in_time
from test_access import Guarded, bearer, token_create
from test_hostile import peak_mib
from test_wire import Wire

MIB = 1 << 20


class Early(Guarded):
    FLAGS = ("--http-body-max", "16MiB", "--http-memory-max", "64MiB", "--http-trusted-proxies",
             "127.0.0.1")

    def before_start(self):
        self.token = token_create(self.server.data, "orders", "driver")

    def wire(self, ops=False):
        wire = Wire(self.server.ops_port if ops else self.server.port)
        self.addCleanup(wire.close)
        return wire

    def head(self, line, *headers, length=10 * MIB):
        lines = [line + " HTTP/1.1", "Host: localhost", *headers]
        if length is not None:
            lines.append("Content-Length: %d" % length)
        return "".join(text + "\r\n" for text in lines).encode() + b"\r\n"

    def refused(self, raw, ops=False):
        """The 401 that comes at the head; the connection ends behind it."""
        wire = self.wire(ops)
        wire.send(raw)
        answer = wire.response()
        self.assertEqual(answer.status, 401, raw)
        self.assertEqual(answer.header("Connection"), "close")
        self.assertTrue(answer.header("X-Request-ID"))
        self.assertIn(("www-authenticate", "Bearer"), answer.headers)
        self.assertTrue(wire.closed())
        return answer

    def test_no_body_is_awaited(self):
        """Without valid credentials a request is 401 when its head is there."""
        chunked = "Transfer-Encoding: chunked"
        wrong = "Authorization: Bearer hfd_" + "A" * 43
        for line in "PUT /" + guresid("early"), "POST %s/clusters" % BASE, "PUT /no/such/thing":
            for headers in (), ("Expect: 100-continue",):
                self.refused(self.head(line, *headers))
                self.refused(self.head(line, chunked, *headers, length=None))
        self.refused(self.head("PUT /x", wrong))
        self.refused(self.head("PUT /x", "Authorization: Bearer"))
        self.refused(self.head("PUT /t/wrong/x", length=10))
        self.refused(self.head("PUT /x", "Authorization: Bearer " + self.token,
                               "Authorization: Bearer " + self.token + "x"))
        answer = self.refused(self.head("POST %s/clusters" % BASE))
        self.assertIn(b'"HYPERFLEET-AUTH-001"', answer.body)
        self.assertIn(b'"error":"RES-101"', self.refused(self.head("PUT /x")).body)
        huge = self.head("PUT /x", length=10 ** 12)
        self.assertEqual(self.refused(huge).status, 401)
        ops = self.refused(self.head("DELETE /admin/orphans/x"), ops=True)
        self.assertEqual([v[:6] for k, v in ops.headers if k == "www-authenticate"],
                         ["Bearer", "Basic "])

    def test_it_is_counted_and_logged(self):
        """As any refused caller: the log has it without the secret, and the metric counts it."""
        secret = "hfd_" + "B" * 43
        self.refused(self.head("PUT /x", "Authorization: Bearer " + secret))
        self.refused(self.head("PUT /t/%s/x" % secret))
        lines = eventually(lambda: [r for r in self.server.records()
                                    if r["msg"] == "caller refused"], "a line")
        self.assertEqual(lines[0]["from"], "127.0.0.1")
        self.assertEqual([line for line in self.server.lines if secret in line], [])
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        counted = 'hfd_auth_refused_total{reason="unknown"} 2'
        eventually(lambda: counted in ops.get("/metrics").body.decode(), "both are counted")

    def test_behind_a_proxy(self):
        """The client of X-Forwarded-For is logged and counted, not its proxy."""
        wrong, numbers = "Authorization: Bearer hfd_" + "D" * 43, itertools.count(2)

        def fails(number):
            wire = self.wire()
            wire.send(self.head("PUT /x", wrong, "X-Forwarded-For: 192.0.2.%d" % number))
            return wire

        def scene():
            """The 401 to a client with 100 failures waits 2 s, that to another one does not."""
            slow, quick = fails(1), fails(next(numbers))
            self.assertEqual(quick.response().status, 401)
            self.assertEqual(select.select([slow.sock], [], [], 0)[0], [])

        for _ in range(110):
            fails(1)
        line = eventually(lambda: [r for r in self.server.records()
                                   if r["msg"] == "caller refused"], "a line")[0]
        self.assertEqual(line["from"], "192.0.2.1")
        eventually(lambda: 'reason="unknown"} 110' in self.ops.get("/metrics").body.decode(),
                   "all are counted")
        in_time(2, scene)
        token = "Authorization: Bearer " + self.token
        for hop, client in ("192.0.2.3", "192.0.2.3"), ("192.0.2.3, garbage", "unknown"):
            wire = self.wire()
            wire.send(self.head("PUT /x", token, "X-Forwarded-For: " + hop, length=10 ** 12))
            self.assertEqual(wire.response().status, 413)
            eventually(lambda: [r for r in self.server.records() if r["msg"] == "request refused"
                                and r["from"] == client], "a line with " + client)

    def test_wrong_tokens_wait(self):
        """A wrong token waits for its 401 as elsewhere, the longer the more there were."""
        for _ in range(12):
            self.main.get("/x", bearer("hfd_" + "C" * 43))
        began = time.monotonic()
        self.refused(self.head("PUT /x", "Authorization: Bearer hfd_" + "C" * 43))
        self.assertGreater(time.monotonic() - began, 0.2)

    def test_valid_callers(self):
        """With a token the body is read, in pieces, chunks, or after 100 Continue."""
        order = cluster_input("early", spec={"filler": "x" * 100000})
        body = json.dumps(order).encode()
        token = "Authorization: Bearer " + self.token
        for n, headers in enumerate(((token,), (token, "Expect: 100-continue"))):
            wire = self.wire()
            path = "PUT /" + guresid("valid%d" % n)
            body = body.replace(b'"early', b'"again')
            wire.send(self.head(path, *headers, length=len(body)))
            if n == 1:
                self.assertEqual(wire.response().status, 100)
            wire.send(body[:1000])
            wire.send(body[1000:])
            self.assertIn(wire.response().status, (202, 400))
        wire = self.wire()
        wire.send(self.head("PUT /t/%s/%s" % (self.token, guresid("path")), length=len(body)))
        wire.send(body)
        self.assertIn(wire.response().status, (202, 400))
        wire = self.wire()
        wire.send(self.head("PUT /x", token, length=10 ** 12))
        self.assertEqual(wire.response().status, 413)

    def test_open_paths(self):
        """An open path needs no token, with a body or without."""
        wire = self.wire(ops=True)
        wire.send(self.head("GET /livez", length=5))
        time.sleep(0.1)
        wire.send(b"12345")
        self.assertEqual(wire.response().status, 200)
        credentials = base64.b64encode(b"me:" + self.token.encode()).decode()
        wire = self.wire(ops=True)
        wire.send(self.head("GET /", "Authorization: Basic " + credentials, length=5))
        wire.send(b"12345")
        self.assertEqual(wire.response().status, 403)  # a scope that may not

    def test_they_take_no_memory(self):
        """100 callers with 10 MiB each leave http.memory_max to the others."""
        wires = []
        for _ in range(100):
            wire = self.wire()
            wire.send(self.head("PUT /x") + b" " * 100000)
            wires.append(wire)
        answer = self.main.put("/" + guresid("room"), cluster_input("room"), bearer(self.token))
        self.assertEqual(answer.status, 202)
        for wire in wires:
            self.assertEqual(wire.response().status, 401)
        self.assertLess(peak_mib(self.server.proc.pid), 400)


if __name__ == "__main__":
    unittest.main()
