"""GETs on PostgreSQL are read together, by a thread of their own. A silent database holds no event
loop up.
"""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import tempfile
import time
import unittest
import urllib.request

import real
import postgres
from pacemaker import document

lib = real.lib
GETS = 64
ANSWER_S = 5  # store.answer_timeout
LIMIT_S = 60
CUT_OFF = "http.drain_timeout is over: open connections are cut off"
PAGES = ["/", "/r/points", "/admin/replicas"]
LISTS = ["/api/driver/v1/resources", "/api/driver/v1/resources/points", "/api/driver/v1/events"]
BODY = {"type": "hyperfleet-cluster", "driver": {"values": {"cluster": {"spec": {}}}}}


class OneLoop(lib.Server):
    """`serve` with one event loop."""

    def __init__(self, url, keys):
        super().__init__("--store", url, "--keys", keys, "--http-threads", "1",
                         "--adapters-pacemaker", "pacemaker", "--http-drain-timeout", "1s")

    def command(self):
        argv = super().command()
        at = argv.index("--data")
        return argv[:at] + argv[at + 2:]


class Points(unittest.TestCase):
    def setUp(self):
        self.db = postgres.Postgres()
        self.addCleanup(self.db.close)
        self.db.start()
        folder = tempfile.mkdtemp(prefix="hfd-points-")
        self.addCleanup(shutil.rmtree, folder, True)
        keys = os.path.join(folder, "keys")
        self.assertEqual(lib.run("keygen", "--keys", keys).returncode, 0)
        self.server = OneLoop(self.db.url(), keys)
        self.addCleanup(self.server.close)
        self.server.start()
        self.order("PUT", "/points", BODY, 202)
        cluster = self.order("POST", lib.BASE + "/clusters",
                             {"kind": "Cluster", "name": "points", "spec": {}}, 201)["href"]
        self.order("POST", cluster + "/pacemaker", document(), 201)
        self.paths = {"/points": 202, cluster: 200, cluster + "/pacemaker": 200}

    def order(self, method, path, body, status):
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (self.server.port, path), method=method,
            data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            self.assertEqual(answer.status, status)
            return json.load(answer)

    def ops(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.server.ops_port, path),
                                    timeout=LIMIT_S) as answer:
            return answer.read().decode()

    def counted(self, series):
        found = re.search("^" + re.escape(series) + r" (\d+)", self.ops("/metrics"), re.M)
        return int(found.group(1)) if found else 0

    def reads(self):
        return self.counted('hfd_store_round_trips_total{for="read"}')

    def send(self, port, path):
        """A request that is out; its answer is not read."""
        s = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self.addCleanup(s.close)
        s.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" %
                   path).encode())
        return s

    def send_gets(self):
        """GETs of a driver resource, of a cluster and of its health, in turn."""
        paths = list(self.paths)
        return [self.send(self.server.port, paths[i % len(paths)]) for i in range(GETS)]

    def answers(self, sockets):
        """Status and head of each."""
        found = []
        for s in sockets:
            text = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                text += piece
            head = text.split(b"\r\n\r\n")[0].decode().lower()
            found.append((int(head.split()[1]), head))
        return found

    def test_read_together(self):
        """GETs that wait are one group, with one read."""
        self.answers(self.send_gets())
        before = self.reads()
        self.db.pause()
        sockets = self.send_gets()
        self.assertEqual(self.ops("/livez"), self.ops("/livez"))  # the loop has seen them all
        self.db.resume()
        wanted = list(self.paths.values())
        self.assertEqual([status for status, _ in self.answers(sockets)],
                         [wanted[i % len(wanted)] for i in range(GETS)])
        self.assertLessEqual(self.reads() - before, GETS // 4)

    def test_clients_leave(self):
        """Clients go while their reads wait: their requests end, and others have answers."""
        self.answers(self.send_gets())
        self.db.pause()
        sockets = self.send_gets()
        self.assertEqual(self.ops("/livez"), self.ops("/livez"))
        for s in sockets[1:]:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.assertEqual(self.ops("/livez"), self.ops("/livez"))  # the loop has seen it
        self.db.resume()
        self.assertEqual(self.answers(sockets[:1])[0][0], 202)
        lib.eventually(lambda: self.counted("hfd_http_requests_in_flight") == 0, "none is left",
                       LIMIT_S)
        self.assertEqual(self.answers(self.send_gets())[0][0], 202)

    def test_stops(self):
        """A server that stops cuts off clients whose reads wait. The reads end without them. The
        drain waits for no other thread whose read waits.
        """
        self.db.pause()
        time.sleep(1.2)  # the timer looks each second: it waits too
        sockets = self.send_gets()
        self.assertEqual(self.ops("/livez"), self.ops("/livez"))
        os.kill(self.server.proc.pid, signal.SIGTERM)
        began = time.monotonic()
        for s in sockets:
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(s.recv(1), b"")
        self.assertLess(time.monotonic() - began, ANSWER_S - 2)
        self.db.resume()
        self.assertEqual(self.server.wait(), 0, self.server.tail())
        cut = [r["connections"] for r in self.server.records() if r["msg"] == CUT_OFF]
        self.assertEqual(cut, [GETS])

    def test_silent_database(self):
        """Nothing answers: /livez and /metrics do, all that needs the database is 503 within the
        documented time, and it goes on by itself.
        """
        counted = 'hfd_resources{type="hyperfleet-cluster",state="creating"} 1\n'
        self.assertIn(counted, self.ops("/metrics"))
        self.db.pause()
        sockets = self.send_gets()
        sockets += [self.send(self.server.ops_port, path) for path in PAGES]
        sockets += [self.send(self.server.port, path) for path in LISTS]
        slowest, until = {"/livez": 0, "/metrics": 0}, time.monotonic() + 2 * ANSWER_S
        while time.monotonic() < until:
            for path in slowest:
                began = time.monotonic()
                text = self.ops(path)
                slowest[path] = max(slowest[path], time.monotonic() - began)
                if path == "/metrics":
                    self.assertIn(counted, text) # the last counts
        waiting = select.select(sockets, [], [], 0)[0]
        self.assertEqual(len(waiting), len(sockets), "some had no answer in time")
        for status, head in self.answers(sockets):
            self.assertEqual(status, 503, head)
            self.assertIn("retry-after:", head)
        self.assertLess(max(slowest.values()), 0.9 * ANSWER_S,
                        "%r waited for the database" % slowest)
        self.db.resume()
        lib.eventually(lambda: self.answers(self.send_gets())[0][0] == 202, "goes on", LIMIT_S)


if __name__ == "__main__":
    real.main()
