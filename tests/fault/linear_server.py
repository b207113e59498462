"""Linearizability of the real program: several clients at once on few GUResIDs, clients that hang
up, and kill -9 in the middle of it.

Each round has a few keys with some clients each. Every client sends its next operation as soon as
it has read the last answer. An operation that was sent and not answered stays open to the end of
the history. At the end all keys are read once more, alone, so that an acknowledged change that was
lost shows. A round follows from its seed but for the timing: LINEAR_SEED and LINEAR_ROUNDS choose
others. A history that nothing explains is printed whole.

Breakages of the program that were tried, each of them seen within 20 rounds:
- a row cache that outlives a commit;
- a row cached while the commit that changes it is under way;
- one batch in 40 answered and undone;
- a PUT that re-targets a creation;
- ready below the written generation;
- a new attempt failed by reports of an earlier one;
- reports of older generations taken;
- a new cookie with every PUT that writes.
"""
import json
import os
import random
import selectors
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from lib import BASE, COOKIE, Server, cluster_input, guresid, report_body # noqa: E402
from linear_check import check, explain # noqa: E402
from linear_model import FALSE, FINALIZED, Op, TERMINAL, TRUE # noqa: E402

ROUNDS = int(os.environ.get("LINEAR_ROUNDS", "100"))
SEED = int(os.environ.get("LINEAR_SEED", "1"))
KEYS, CLIENTS, OPS = 5, 3, 8 # keys in a round, clients of a key, operations of a client
FLAGS = ("--adapters-required-cluster", "validation", "--http-threads", "2",
         "--driver-terminal-reasons", "[InvalidConfiguration]")


class Key:
    """One GUResID, its history, and what its clients have heard of."""

    def __init__(self):
        self.gid = guresid("lin")
        self.ops = []
        self.cids = [] # told, the newest last
        self.gen = 0
        self.cookies = []

    def learn(self, op):
        result = op.result
        if op.kind == "LIST" and result:
            self.heard(result[-1][0], result[-1][1])
        elif isinstance(result, dict):
            if "cid" in result:
                self.heard(result["cid"], result["gen"])
            if result.get("cookie"):
                self.cookies.append(result["cookie"])

    def heard(self, cid, gen):
        if cid not in self.cids:
            self.cids.append(cid)
            self.gen = 0
        self.gen = max(self.gen, gen)


class Client:
    """One connection that has one operation under way at most."""

    def __init__(self, key, rnd, ops=OPS):
        self.key, self.random = key, rnd
        self.left = ops
        self.sock = None
        self.op = None # (kind, arg, call) under way
        self.data = b""

    def close(self):
        if self.sock is not None:
            self.sock.close()
        self.sock, self.data = None, b""


def choose(key, rnd):
    """The next operation: (kind, arg)."""
    kind = rnd.choices(("PUT", "GET", "DELETE", "REPORT", "LIST"), (30, 20, 8, 34, 8))[0]
    if kind == "PUT":
        return kind, rnd.choice((1, 1, 1, 2, 3))
    if kind == "DELETE" and key.cookies and rnd.random() < 0.5:
        return kind, rnd.choice(key.cookies)
    if kind != "REPORT":
        return kind, None
    if not key.cids:
        return "LIST", None
    cid = key.cids[-1] if rnd.random() < 0.9 else rnd.choice(key.cids)
    gen = max(1, key.gen + rnd.choices((0, 1, -1), (70, 25, 5))[0])
    what = rnd.choices((TRUE, FINALIZED, TERMINAL, FALSE), (55, 25, 10, 10))[0]
    return kind, (cid, gen, what, time.time_ns() // 1000 + rnd.choice((0, 0, 0, -3000)))


def request(key, kind, arg, rnd):
    """The bytes of an operation."""
    method, path, body, head = kind, "/" + key.gid, None, ""
    if kind == "PUT":
        body = cluster_input(name=key.gid, spec={"v": arg})
    elif kind == "LIST":
        method, path = "GET", "%s/clusters?search=name='%s'" % (BASE, key.gid)
    elif kind == "REPORT":
        cid, gen, what, observed = arg
        method, path = "POST", "%s/clusters/%s/statuses" % (BASE, cid)
        at = time.strftime("%Y-%m-%dT%H:%M:%S",
                           time.gmtime(observed // 1000000)) + ".%06dZ" % (observed % 1000000)
        body = report_body("validation", gen, available=what == TRUE, finalized=what == FINALIZED,
                           observed_time=at,
                           reason="InvalidConfiguration" if what == TERMINAL else "Told")
    cookie = arg if kind == "DELETE" else None
    if kind in ("PUT", "GET") and key.cookies and rnd.random() < 0.5:
        cookie = key.cookies[-1]
    if cookie is not None:
        head = "%s: %s\r\n" % (COOKIE, cookie)
    text = json.dumps(body).encode() if body is not None else b""
    if body is not None:
        head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(text)
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (method, path, head)).encode() + text


def whole(data):
    """(status, headers, body) of a whole answer, or None."""
    head, sep, rest = data.partition(b"\r\n\r\n")
    if not sep:
        return None
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", "0"))
    if len(rest) < length:
        return None
    return int(lines[0].split()[1]), headers, rest[:length]


def result_of(kind, status, headers, body):
    """An answer in the model's words; None for one that tells nothing of what happened (503)."""
    if status == 503:
        return None
    if kind == "REPORT":
        return status
    doc = json.loads(body) if body else {}
    if kind == "LIST":
        return tuple((i["id"], i["generation"], "deleted_time" in i, i["spec"]["v"])
                     for i in doc["items"])
    result = {"status": status}
    if kind == "PUT" and status in (200, 202, 409):
        result["cookie"] = headers.get("set-humanitec-driver-cookie")
    if status == 200:
        result.update(gen=doc["resource"]["values"]["generation"],
                      cid=doc["resource"]["values"]["cluster_id"])
    elif status in (202, 409):
        result["hint"] = doc["status"]
    elif status == 400:
        result["code"] = doc["error"]
    return result


class Round:
    """Clients of several keys, driven by one loop."""

    SIZE = (KEYS, CLIENTS, OPS)

    def __init__(self, server, seed, kill):
        self.server, self.random = server, random.Random(seed)
        keys, clients, ops = self.SIZE
        self.keys = [Key() for _ in range(keys)]
        self.clients = [Client(k, random.Random(self.random.random()), ops) for k in self.keys
                        for _ in range(clients)]
        self.selector = selectors.DefaultSelector()
        self.kill_at = self.random.randrange(10, keys * clients * ops) if kill else None
        self.answered = 0
        self.hung_up = 0

    def record(self, client, result, ret):
        kind, arg, call = client.op
        op = Op(kind, arg, result, call, ret)
        client.key.ops.append(op)
        client.key.learn(op)
        client.op = None

    def lose(self, client):
        """The connection goes, and with it whatever was under way."""
        if client.sock is not None:
            self.selector.unregister(client.sock)
        client.close()
        if client.op is not None:
            self.record(client, None, None)

    def port(self, client):
        """Where a client connects to."""
        return self.server.port

    def send(self, client, kind, arg):
        if client.sock is None:
            client.sock = socket.create_connection(("127.0.0.1", self.port(client)), 30)
            client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(client.sock, selectors.EVENT_READ, client)
        data = request(client.key, kind, arg, client.random)
        client.op = (kind, arg, time.monotonic())
        try:
            client.sock.sendall(data)
        except OSError:
            self.lose(client)

    def read(self, client):
        try:
            data = client.sock.recv(65536)
        except OSError:
            data = b""
        client.data += data
        answer = whole(client.data)
        if answer is not None:
            result = result_of(client.op[0], *answer)
            client.data = b""
            self.answered += 1
            self.record(client, result, time.monotonic() if result is not None else None)
            if answer[1].get("connection", "").lower() == "close":
                self.lose(client)
        elif not data:
            self.lose(client)

    def kill(self):
        self.kill_at = None
        self.server.kill9()
        for client in self.clients:
            self.lose(client)
        self.server.start()

    def run(self):
        while any(c.left > 0 or c.op for c in self.clients):
            for client in self.clients:
                if client.op is None and client.left > 0:
                    client.left -= 1
                    self.send(client, *choose(client.key, client.random))
                    if client.op is not None and client.random.random() < 0.04: # it waits no longer
                        self.hung_up += 1
                        self.lose(client)
            if not any(c.op for c in self.clients): # nothing to wait for: all have hung up
                continue
            for event, _ in self.selector.select(30):
                self.read(event.data)
            if self.kill_at is not None and self.answered >= self.kill_at:
                self.kill()
        self.look()
        for client in self.clients:
            self.lose(client)
        self.selector.close()

    def look(self):
        """Reads what is true in the end: each key once more, alone."""
        for client in self.clients[::self.SIZE[1]]:
            for kind in ("GET", "LIST"):
                self.send(client, kind, None)
                while client.op is not None and client.sock is not None:
                    for event, _ in self.selector.select(30):
                        self.read(event.data)


class Linearizable(unittest.TestCase):
    def test_histories(self):
        """Every history of the real program has an order that explains it, over kills and hang-ups.
        """
        server = Server(*FLAGS)
        self.addCleanup(server.close)
        server.start()
        histories = operations = unknown = kills = 0
        phases = set()
        for n in range(ROUNDS):
            r = Round(server, "%d/%d" % (SEED, n), kill=n % 4 == 3)
            kills += r.kill_at is not None
            r.run()
            for key in r.keys:
                failure = check(key.ops)
                if failure is not None:
                    self.fail("round %d of seed %d, %s\n%s\nend of the log:\n%s"
                              % (n, SEED, key.gid, explain(key.ops, failure),
                                                                                   server.tail()))
                histories += 1
                operations += len(key.ops)
                unknown += sum(op.ret is None for op in key.ops)
                phases |= {(op.kind, op.result["status"]) if isinstance(op.result, dict)
                           else (op.kind, op.result)
                           for op in key.ops if op.kind != "LIST" and op.result is not None}
        print("%d histories, %d operations, %d of unknown end, %d kills"
              % (histories, operations, unknown, kills))
        if histories >= 200: # what was never met was not tested
            for met in (("PUT", 200), ("PUT", 202), ("PUT", 409), ("GET", 200), ("GET", 202),
                        ("GET", 400), ("GET", 404), ("DELETE", 202),
                        ("DELETE", 204), ("REPORT", 201), ("REPORT", 204), ("REPORT", 404)):
                self.assertIn(met, phases)


if __name__ == "__main__":
    unittest.main()
