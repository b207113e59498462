"""GETs on PostgreSQL are read together, by a thread of their own. A silent database holds no event
loop up.
"""
import json
import os
import re
import select
import shutil
import socket
import tempfile
import time
import unittest
import urllib.request

import real
import postgres

lib = real.lib
GETS = 64
ANSWER_S = 5  # store.answer_timeout
LIMIT_S = 60
PAGES = ["/", "/r/points", "/admin/replicas"]
LISTS = ["/api/driver/v1/resources", "/api/driver/v1/resources/points", "/api/driver/v1/events"]
BODY = {"type": "hyperfleet-cluster", "driver": {"values": {"cluster": {"spec": {}}}}}


class OneLoop(lib.Server):
    """`serve` with one event loop."""

    def __init__(self, url, keys):
        super().__init__("--store", url, "--keys", keys, "--http-threads", "1")

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
        request = urllib.request.Request(
            "http://127.0.0.1:%d/points" % self.server.port, method="PUT",
            data=json.dumps(BODY).encode(), headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            self.assertEqual(answer.status, 202)

    def ops(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.server.ops_port, path),
                                    timeout=LIMIT_S) as answer:
            return answer.read().decode()

    def reads(self):
        found = re.search(r'^hfd_store_round_trips_total\{for="read"\} (\d+)',
                          self.ops("/metrics"), re.M)
        return int(found.group(1)) if found else 0

    def send(self, port, path):
        """A request that is out; its answer is not read."""
        s = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self.addCleanup(s.close)
        s.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" %
                   path).encode())
        return s

    def send_gets(self):
        return [self.send(self.server.port, "/points") for _ in range(GETS)]

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
        self.assertEqual({status for status, _ in self.answers(sockets)}, {202})
        self.assertLessEqual(self.reads() - before, GETS // 4)

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
