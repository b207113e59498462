"""The TCP proxy, by which other tests cut COMMITs, against a server that is played. It finds the
COMMIT that it is to cut in each way of sending it. All other bytes it passes on.
"""
import os
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from tcp_proxy import Proxy # noqa: E402

WAIT_S = 60


def message(kind, *texts):
    """A message of protocol 3: its type, and texts that end with a zero byte."""
    body = b"".join(t.encode() + b"\0" for t in texts)
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def request(code):
    return struct.pack("!II", 8, code)


SSL, PLAIN = request(80877103), struct.pack("!II", 8, 196608)
SYNC = message("S")
# Each is one transaction that ends with COMMIT, sent in one piece.
WAYS = {
    "simple": message("Q", "INSERT INTO t VALUES (1)") + message("Q", "COMMIT"),
    "one text": message("Q", "BEGIN; INSERT INTO hfd_commit VALUES (1); commit;"),
    "unnamed": (message("P", "", "INSERT INTO hfd_commit VALUES ($1)") + message("B", "", "")
                + message("P", "", "COMMIT") + message("B", "", "") + SYNC),
}


class Server(threading.Thread):
    """Plays PostgreSQL: answers each COMMIT that it reads, and keeps what came."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = []
        self.start()

    def run(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.got.append(bytearray())
            threading.Thread(target=self.serve, args=(conn, self.got[-1]), daemon=True).start()

    def serve(self, conn, got):
        with conn:
            seen = 0
            while True:
                try:
                    data = conn.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                got += data
                if len(got) == len(data) and data.startswith(SSL):
                    conn.sendall(b"N")
                while got.lower().count(b"commit\0", seen) + got.count(b"commit;\0", seen):
                    at = min(i for i in (got.lower().find(b"commit\0", seen),
                                         got.find(b"commit;\0", seen)) if i >= 0)
                    seen = at + 7
                    conn.sendall(message("1") + message("C", "COMMIT") + message("Z", "I"))


ANSWER = message("1") + message("C", "COMMIT") + message("Z", "I")


class Proxies(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.listener.close)
        self.proxy = Proxy(self.server.port)
        self.addCleanup(self.proxy.close)

    def connect(self, first=PLAIN):
        s = socket.create_connection(("127.0.0.1", self.proxy.port), WAIT_S)
        self.addCleanup(s.close)
        s.sendall(first)
        if first == SSL:
            self.assertEqual(s.recv(1), b"N")
            s.sendall(PLAIN)
        return s

    def read(self, s, n):
        data = b""
        while len(data) < n:
            piece = s.recv(n - len(data))
            if not piece:
                break
            data += piece
        return data

    def ended(self, s):
        """The bytes until the connection ends."""
        return self.read(s, 1 << 20)

    def until(self, probe):
        end = time.monotonic() + WAIT_S
        while not probe():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_passes(self):
        """Without a fault every byte arrives, however it is cut into pieces."""
        for first in (PLAIN, SSL):
            s = self.connect(first)
            sent = b"".join(WAYS.values())
            for i in range(0, len(sent), 7):
                s.sendall(sent[i:i + 7])
            self.assertEqual(self.read(s, 3 * len(ANSWER)), 3 * ANSWER)
            self.assertTrue(bytes(self.server.got[-1]).endswith(sent))
        self.assertEqual(self.proxy.tell("count"), (6, 6, False))

    def test_cut(self):
        """The second COMMIT is cut before it is passed on: the server never sees it. Cut after: the
        server answered, and the client never hears. The next connection is served.
        """
        for way, sent in WAYS.items():
            for when in ("before", "after"):
                with self.subTest(way=way, when=when):
                    self.proxy.cut(2, when)
                    s = self.connect(SSL)
                    s.sendall(sent)
                    self.assertEqual(self.read(s, len(ANSWER)), ANSWER)
                    self.assertFalse(self.proxy.fired())
                    s.sendall(sent)
                    self.assertNotIn(b"COMMIT", self.ended(s))
                    self.assertTrue(self.proxy.fired())
                    whole = bytes(self.server.got[-1]).count(sent)
                    self.assertEqual(whole, 2 if when == "after" else 1)
                    s = self.connect()
                    s.sendall(sent)
                    self.assertEqual(self.read(s, len(ANSWER)), ANSWER)

    def test_named(self):
        """A COMMIT that was prepared by name is found where it is bound."""
        s = self.connect()
        s.sendall(message("P", "c", "COMMIT") + message("P", "i", "INSERT") + SYNC)
        self.read(s, len(ANSWER)) # of the played server, which looks at the text alone
        self.proxy.cut(1, "before")
        s.sendall(message("B", "", "i") + SYNC)
        self.until(lambda: self.server.got[-1].endswith(message("B", "", "i") + SYNC))
        s.sendall(message("B", "", "c") + SYNC)
        self.assertEqual(self.ended(s), b"")
        self.assertFalse(bytes(self.server.got[-1]).endswith(message("B", "", "c") + SYNC))

    def test_match(self):
        """With a text to match, COMMITs of other connections are not counted."""
        self.proxy.tell("match hfd_commit")
        self.proxy.cut(1, "after")
        other, ours = self.connect(), self.connect()
        other.sendall(WAYS["simple"])
        self.assertEqual(self.read(other, len(ANSWER)), ANSWER)
        ours.sendall(WAYS["unnamed"])
        self.assertNotIn(b"COMMIT", self.ended(ours))
        other.sendall(WAYS["simple"])
        self.assertEqual(self.read(other, len(ANSWER)), ANSWER)

    def test_hold(self):
        """A held connection neither answers nor ends; others go on; `drop` ends it."""
        self.proxy.hold(1, "after")
        s = self.connect()
        s.sendall(WAYS["simple"])
        self.until(self.proxy.fired)
        other = self.connect()
        other.sendall(WAYS["simple"])
        self.assertEqual(self.read(other, len(ANSWER)), ANSWER)
        self.assertEqual(self.read(s, len(message("1"))), message("1")) # came before the COMMIT
        s.settimeout(0.05)
        with self.assertRaises(TimeoutError):
            s.recv(1)
        self.proxy.tell("drop")
        s.settimeout(WAIT_S)
        self.assertEqual(self.ended(s), b"")

    def test_stall_and_refuse(self):
        """Stalled, nothing moves until `go`; refused, a new connection ends at once."""
        s = self.connect()
        s.sendall(WAYS["simple"])
        self.assertEqual(self.read(s, len(ANSWER)), ANSWER)
        self.proxy.tell("stall")
        s.sendall(WAYS["simple"])
        s.settimeout(0.05)
        with self.assertRaises(TimeoutError):
            s.recv(1)
        self.proxy.tell("go")
        s.settimeout(WAIT_S)
        self.assertEqual(self.read(s, len(ANSWER)), ANSWER)
        self.proxy.tell("refuse")
        with socket.create_connection(("127.0.0.1", self.proxy.port), WAIT_S) as refused:
            self.assertEqual(self.ended(refused), b"")
        s.sendall(WAYS["simple"])
        self.assertEqual(self.read(s, len(ANSWER)), ANSWER)
        self.proxy.tell("accept")
        self.connect().sendall(WAYS["simple"])

    def test_delay(self):
        """A delayed answer comes later by both ways, and whole."""
        s = self.connect()
        self.proxy.tell("delay 30")
        began = time.monotonic()
        s.sendall(WAYS["simple"])
        self.assertEqual(self.read(s, len(ANSWER)), ANSWER)
        self.assertGreaterEqual(time.monotonic() - began, 0.059)


if __name__ == "__main__":
    unittest.main()
