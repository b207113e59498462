"""Callers and the network: Unix sockets, source networks, trusted proxies, idle connections."""
import http.client
import itertools
import json
import os
import select
import shutil
import socket
import stat
import tempfile
import time
import unittest

from lib import BASE, Server, TIME_FACTOR, eventually, run
from test_tls import exchange, get


def cluster(name):
    return '{"kind":"Cluster","name":"%s","spec":{}}' % name


class Local(unittest.TestCase):
    """A server whose listeners may be sockets in a folder of the test."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hfd-it-net-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *flags):
        server = Server(*flags)
        self.addCleanup(server.close)
        return server.start()

    def unix(self, name="main"):
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.settimeout(60 * TIME_FACTOR)
        sock.connect(self.path(name))
        return sock

    def tcp(self, server, ops=False):
        sock = socket.create_connection(("127.0.0.1", server.ops_port if ops else server.port),
                                        timeout=60 * TIME_FACTOR)
        self.addCleanup(sock.close)
        return sock

    def create(self, sock, name, *headers):
        """Makes a cluster; the answer."""
        body = cluster(name)
        lines = "".join(h + "\r\n" for h in headers)
        return exchange(sock, ("POST %s/clusters HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: "
                               "%d\r\n\r\n%s" % (BASE, lines, len(body), body)).encode())

    def last(self, server, msg, **fields):
        """The last line with this text, and with these fields, once it is there."""
        found = eventually(lambda: [r for r in server.records() if r["msg"] == msg and
                                    all(r.get(k) == v for k, v in fields.items())],
                           "a line %r with %r" % (msg, fields))
        return found[-1]


class Sockets(Local):
    def test_both_listeners(self):
        """Both listeners may be Unix sockets, with the mode of the setting; they go at the end."""
        server = self.start("--listen", "unix:" + self.path("main"), "--ops-listen",
                            "unix:" + self.path("ops"), "--http-socket-mode", "0600")
        for name, path in (("main", BASE + "/clusters"), ("ops", "/livez")):
            mode = os.stat(self.path(name)).st_mode
            self.assertTrue(stat.S_ISSOCK(mode))
            self.assertEqual(stat.S_IMODE(mode), 0o600)
            self.assertEqual(exchange(self.unix(name), get(path)).status, 200)
        ready = self.last(server, "ready")
        self.assertEqual((ready["url"], ready["ops_url"]),
                         ("unix:" + self.path("main"), "unix:" + self.path("ops")))
        settings = ["--ops-listen", "unix:" + self.path("ops")]
        self.assertEqual(run("health", "--ready", *settings).returncode, 0)
        if not server.place.base:  # on PostgreSQL doctor asks no server
            self.assertEqual(run("doctor", "--data", server.data, *settings).returncode, 0)
        self.assertEqual(self.create(self.unix(), "one").status, 201)
        self.last(server, "request", **{"from": "unix"})
        self.assertEqual(server.sigterm(), 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_socket_that_was_left(self):
        """A socket that a killed server left is replaced; a live one, or another file, is not."""
        flags = ["--listen", "unix:" + self.path("main")]
        server = self.start(*flags)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("main")).st_mode), 0o660)
        done = run("serve", *flags, "--ops-listen", "127.0.0.1:0", "--data", self.path("data"))
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("Address already in use", done.stderr)
        self.assertEqual(exchange(self.unix(), get(BASE + "/clusters")).status, 200)
        server.kill9()
        self.assertTrue(os.path.exists(self.path("main")))
        server.start()
        self.assertEqual(exchange(self.unix(), get(BASE + "/clusters")).status, 200)
        server.sigterm()
        with open(self.path("main"), "w", encoding="ascii") as f:
            f.write("precious")
        done = run("serve", *flags, "--ops-listen", "127.0.0.1:0", "--data", self.path("data"))
        self.assertEqual(done.returncode, 69)
        with open(self.path("main"), encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")

    def test_what_is_refused(self):
        """Paths and modes that cannot be used are errors of the settings."""
        for flag, value in (("--listen", "unix:relative"), ("--listen", "unix:"),
                            ("--ops-listen", "unix:/" + 110 * "x"), ("--http-socket-mode", "0777"),
                            ("--http-socket-mode", "rw"), ("--auth-networks", "[10.0.0.0/40]"),
                            ("--http-trusted-proxies", "[proxy.example]")):
            done = run("config", "check", flag, value)
            self.assertEqual(done.returncode, 2, (flag, value))
            self.assertIn("expected", done.stderr)
        done = run("config", "check", "--listen", "unix:/a", "--ops-listen", "unix:/a")
        self.assertIn("expected one address for listen and another", done.stderr)

    def test_a_slow_reader(self):
        """A reader of a socket that goes on is served; one that stands still is cut off."""
        server = self.start("--listen", "unix:" + self.path("main"), "--http-write-timeout", "1s")
        for i in range(6):
            body = '{"kind":"Cluster","name":"big-%d","spec":{"f":"%s"}}' % (i, "x" * 900000)
            r = exchange(self.unix(), ("POST %s/clusters HTTP/1.1\r\nHost: localhost\r\nContent-"
                                       "Length: %d\r\n\r\n%s" % (BASE, len(body), body)).encode())
            self.assertEqual(r.status, 201)
        still = self.unix()
        still.sendall(get(BASE + "/clusters"))
        for _ in range(10):
            got, longest = self.read_steadily()
            if longest < 0.5:  # else this test stood still itself
                break
        self.assertGreaterEqual(got, 5400000, "the steady reader was cut off")
        eventually(lambda: [r for r in server.records() if r["msg"] == "slow reader cut off"],
                   "the reader that stands still is cut off")

    def test_a_slow_watcher(self):
        """A stream of events that is not read is cut off."""
        server = self.start("--listen", "unix:" + self.path("main"), "--http-write-timeout", "1s")
        watcher, sock = self.unix(), self.unix()
        watcher.sendall(b"GET %s/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream"
                        b"\r\n\r\n" % BASE.encode())
        watcher.recv(1)
        href = json.loads(self.create(sock, "watched").body)["href"]
        for i in itertools.count():
            body = '{"spec":{"f":%d}}' % i
            r = exchange(sock, ("PATCH %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                                "%s" % (href, len(body), body)).encode())
            self.assertEqual(r.status, 200)
            if i % 100 == 99 and [r for r in server.records() if r["msg"] == "slow reader cut off"]:
                break
            self.assertLess(i, 50000)

    def read_steadily(self):
        """Reads a large answer for 4 s, four times the limit without progress, and its rest. Tells
        how much came, and the longest time between two reads.
        """
        sock, got, longest = self.unix(), 0, 0
        sock.sendall(get(BASE + "/clusters"))
        last = time.monotonic()
        for i in itertools.count():
            chunk = sock.recv(32768 if i < 40 else 1 << 20)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
            got += len(chunk)
            if not chunk or got >= 5400000:
                return got, longest
            if i < 40:
                pause(0.1)


def pause(seconds):
    """The time that a slow client takes."""
    select.select([], [], [], seconds)


class Networks(Local):
    def test_only_they_may_call(self):
        """A caller from elsewhere is 403, with a line and a count; probes are open to all."""
        server = self.start("--auth-networks", "192.0.2.0/24,2001:db8::/32")
        for ops, path, status in ((False, BASE + "/clusters", 403), (False, "/none", 403),
                                  (True, "/admin/orphans", 403), (True, "/livez", 200),
                                  (True, "/metrics", 200)):
            r = exchange(self.tcp(server, ops), get(path, "X-Forwarded-For: 192.0.2.1"))
            self.assertEqual(r.status, status, path)
            self.assertTrue(r.header("X-Request-ID"))
        self.last(server, "caller refused", reason="network", **{"from": "127.0.0.1"})
        text = exchange(self.tcp(server, True), get("/metrics")).body.decode()
        self.assertIn('hfd_auth_refused_total{reason="network"} 3\n', text)

    def test_behind_a_proxy(self):
        """Behind a trusted proxy its client counts, and not what the client claims."""
        server = self.start("--auth-networks", "192.0.2.0/24", "--http-trusted-proxies",
                            "127.0.0.1,198.51.100.0/24")
        for value, status in (("192.0.2.7", 200), ("192.0.2.7:4711", 200),
                              ("203.0.113.1", 403), ("192.0.2.7, 203.0.113.1", 403),
                              ("203.0.113.1, 192.0.2.7", 200),
                              ("203.0.113.1, 192.0.2.7, 198.51.100.3", 200),
                              ("192.0.2.7, unknown", 403), ("", 403), ("192.0.2.7, ", 403)):
            r = exchange(self.tcp(server), get(BASE + "/clusters", "X-Forwarded-For: " + value))
            self.assertEqual(r.status, status, value)
        r = exchange(self.tcp(server), get(BASE + "/clusters", "X-Forwarded-For: 203.0.113.1",
                                           "X-Forwarded-For: 192.0.2.7"))
        self.assertEqual(r.status, 200, "lines are one list")
        self.assertEqual(exchange(self.tcp(server), get(BASE + "/clusters")).status, 403)
        self.assertEqual(self.create(self.tcp(server), "two", "X-Forwarded-For: 192.0.2.9").status,
                         201)
        self.last(server, "request", **{"from": "192.0.2.9"})

    def test_hops_that_are_no_address(self):
        """They are in no network, be it that of the proxy, or all networks; the log says unknown.
        """
        server = self.start("--auth-networks", "0.0.0.0/0,::/0,unix", "--http-trusted-proxies",
                            "127.0.0.1")
        for value in ("unknown", "unix", "_hidden", "", " ", ",", "6.6.6.6,", "6.6.6.6, garbage",
                      "garbage, 127.0.0.1", '"6.6.6.6"', '"127.0.0.1"', "for=127.0.0.1",
                      "127.0.0.1%lo", "[fe80::1%25lo]:80", "fe80::1%eth0", "127.1", "127.0.0.0/8",
                      "127.0.0.1:", "6.6.6.6 127.0.0.1", "localhost"):
            for ops, path in ((False, BASE + "/clusters"), (True, "/admin/tokens")):
                r = exchange(self.tcp(server, ops), get(path, "X-Forwarded-For: " + value))
                self.assertEqual(r.status, 403, value)
        self.last(server, "caller refused", reason="network", **{"from": "unknown"})
        for value in "6.6.6.6", "[2001:db8::1]:443", "6.6.6.6:80", "garbage, 6.6.6.6", "127.0.0.9":
            r = exchange(self.tcp(server), get(BASE + "/clusters", "X-Forwarded-For: " + value))
            self.assertEqual(r.status, 200, value)
        self.assertEqual(exchange(self.tcp(server), get(BASE + "/clusters")).status, 200)

    def test_clients_of_a_socket(self):
        """The clients of a Unix socket have the name `unix`."""
        self.start("--listen", "unix:" + self.path("main"), "--auth-networks", "192.0.2.0/24",
                   "--http-trusted-proxies", "unix")
        self.assertEqual(exchange(self.unix(), get(BASE + "/clusters")).status, 403)
        self.assertEqual(exchange(self.unix(), get(BASE + "/clusters",
                                                   "X-Forwarded-For: 192.0.2.1")).status, 200)
        self.start("--listen", "unix:" + self.path("other"), "--auth-networks", "unix")
        self.assertEqual(exchange(self.unix("other"), get(BASE + "/clusters")).status, 200)

    def test_identity(self):
        """The identity header counts from a trusted proxy only."""
        for proxies, name in (("[]", "system@hyperfleet.local"),
                              ("198.51.100.1", "system@hyperfleet.local"),
                              ("127.0.0.0/8", "ann@example.com")):
            server = self.start("--fleet-identity-header", "X-User", "--http-trusted-proxies",
                                proxies)
            r = self.create(self.tcp(server), "three", "X-User: ann@example.com")
            self.assertEqual(r.status, 201)
            self.assertIn('"created_by":"%s"' % name, r.body.decode())


class Idle(Local):
    def test_idle_time(self):
        """A connection that had an answer stays for the idle time; one without a request does not.
        """
        server = self.start("--http-read-timeout", "1s", "--http-idle-timeout", "1h")
        kept, mute, slow = self.tcp(server), self.tcp(server), self.tcp(server)
        exchange(kept, get(BASE + "/clusters"))
        exchange(slow, get(BASE + "/clusters"))
        slow.sendall(b"GET /")
        self.assertEqual(mute.recv(1), b"")
        self.assertIn(b"408", slow.recv(65536))
        self.assertEqual(exchange(kept, get(BASE + "/clusters")).status, 200)
        server = self.start("--http-read-timeout", "1h", "--http-idle-timeout", "1s")
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60 * TIME_FACTOR)
        self.addCleanup(kept.close)
        kept.request("GET", BASE + "/clusters")
        kept.getresponse().read()
        self.assertEqual(kept.sock.recv(1), b"")


if __name__ == "__main__":
    unittest.main()
