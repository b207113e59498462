"""A crowd against a server with 1 GiB of memory: 4,000 slow clients, 6,000 connections, and 1,200
unfinished bodies at the same time. Probes are answered, and the server goes on afterwards.
"""
import errno
import resource
import socket
import threading
import time
import unittest

from lib import Client, Server, TIME_FACTOR, cluster_input, eventually, guresid
from test_hostile import peak_mib

GIB = 1 << 30
SLOW, IDLE, BODIES = 4000, 6000, 1200
PROBE_S = 5 * TIME_FACTOR
SECONDS = 20
BODY = b"{" + b" " * 1048574  # a byte less than the length that the head gives


class Crowd:
    """Connections of one kind, without blocking."""

    def __init__(self, port, count, head, drip=b""):
        self.port, self.left, self.head, self.drip = port, count, head, drip
        self.socks, self.refused = [], 0

    def open_some(self, count):
        for _ in range(min(count, self.left)):
            s = socket.socket()
            s.setblocking(False)
            if s.connect_ex(("127.0.0.1", self.port)) not in (0, errno.EINPROGRESS):
                s.close()
                return
            self.left -= 1
            self.socks.append([s, self.head])

    def step(self):
        """Each connection sends what the kernel takes of its head, or one more byte."""
        for entry in self.socks:
            s, rest = entry
            if s is None:
                continue
            try:
                if rest:
                    entry[1] = rest[s.send(rest):]
                elif self.drip:
                    s.send(self.drip)
            except BlockingIOError:
                continue
            except OSError as e:
                if e.errno == errno.ENOTCONN:
                    continue
                self.refused += 1
                s.close()
                entry[0] = None

    def close(self):
        for s, _ in self.socks:
            if s is not None:
                s.close()


class Prober(threading.Thread):
    """Asks /livez over and over, on a new connection each time."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.end, self.times, self.failed = server, threading.Event(), [], None

    def run(self):
        while not self.end.wait(0.1) and self.failed is None:
            began = time.monotonic()
            client = Client(self.server, ops=True, timeout_s=PROBE_S)
            try:
                answer = client.send_once("GET", "/livez")
                if answer.status != 200:
                    self.failed = repr(answer)
            except OSError as e:
                self.failed = "no answer after %.1f s: %r" % (time.monotonic() - began, e)
            client.close()
            self.times.append(time.monotonic() - began)


@unittest.skipIf(TIME_FACTOR > 1, "a sanitizer needs the whole address space")
class Scale(unittest.TestCase):
    def setUp(self):
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = SLOW + IDLE + BODIES + 1000
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, files[1])))
        except (OSError, ValueError):
            self.skipTest("the system allows fewer than %d files" % wanted)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, files)
        self.server = Server()
        self.addCleanup(self.server.close)
        self.server.start()
        resource.prlimit(self.server.proc.pid, resource.RLIMIT_AS, (GIB, GIB))

    def test_a_crowd(self):
        """All three kinds at once for 20 seconds."""
        port = self.server.port
        head = b"PUT /crowd HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"
        crowds = [Crowd(port, BODIES, head + BODY), Crowd(port, IDLE, b""),
                  Crowd(port, SLOW, b"GET /slow HTTP/1.1\r\n", b"X")]
        prober = Prober(self.server)
        prober.start()
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end or any(c.left for c in crowds):
                for crowd in crowds:
                    crowd.open_some(400)
                    crowd.step()
                self.assertTrue(self.server.alive(), "the server lives")
                self.assertIsNone(prober.failed)
                if time.monotonic() > end + 60:
                    break
        finally:
            prober.end.set()
            prober.join()
            for crowd in crowds:
                crowd.close()
        self.assertIsNone(prober.failed)
        client = Client(self.server)
        self.addCleanup(client.close)
        eventually(lambda: client.put("/" + guresid("after"),
                                      cluster_input("after")).status == 202, "orders are taken")
        times = sorted(prober.times)
        print("crowd: %d of %d opened, %d closed by the server; %d probes, slowest %.0f ms, "
              "median %.1f ms; peak %d MiB"
              % (sum(len(c.socks) for c in crowds), SLOW + IDLE + BODIES,
                 sum(c.refused for c in crowds), len(times), times[-1] * 1000,
                 times[len(times) // 2] * 1000, peak_mib(self.server.proc.pid)))


if __name__ == "__main__":
    unittest.main()
