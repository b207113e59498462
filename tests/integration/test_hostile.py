"""Hostile load: a few hundred bytes of requests neither take the memory nor stop the server."""
import json
import os
import resource
import select
import shutil
import socket
import ssl
import struct
import tempfile
import time
import unittest

from lib import BASE, Case, Client, Server, TIME_FACTOR, cluster_input, eventually, guresid
from test_access import token_create
from test_tls import self_signed
from test_wire import Wire

FILLER = "x" * 1000000


def plant(client, count):
    """Makes clusters with a specification of nearly 1 MiB."""
    for i in range(count):
        body = json.dumps({"kind": "Cluster", "name": "big-%02d" % i, "spec": {"filler": FILLER}})
        answer = client.post(BASE + "/clusters", body)
        assert answer.status == 201, answer


def address_space(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


@unittest.skipIf(TIME_FACTOR > 1, "a sanitizer needs the whole address space")
class ShortMemory(Case):
    def test_a_list_without_memory_may_be_repeated(self):
        """A list that does not fit into memory is 503, never the 400 of a page too large."""
        plant(self.client, 24)
        pid = self.server.proc.pid
        path = BASE + "/clusters?pageSize=500"
        seen = []
        for spare in (1, 2, 4, 8, 16, 24, 32):
            used = address_space(pid)
            whole = resource.prlimit(pid, resource.RLIMIT_AS,
                                     (used + (spare << 20), resource.RLIM_INFINITY))
            try:
                seen.append(self.client.get(path).status)
            finally:
                resource.prlimit(pid, resource.RLIMIT_AS, whole)
        self.assertIn(503, seen)
        self.assertTrue(set(seen) <= {200, 503}, seen)
        if self.server.place.url: # a connection to PostgreSQL that had no memory is made again
            eventually(lambda: self.client.get(path).status == 200, "the list is whole again")
        self.assertEqual(self.client.get(path).status, 200)


@unittest.skipIf(TIME_FACTOR > 1, "a sanitizer needs the whole address space")
class LibraryMemory(Case):
    """The library ends the process when it is out of memory. http.memory_max keeps it from that."""

    FLAGS = ("--http-memory-max", "64MiB")
    CONNECTIONS = 400

    def test_unfinished_bodies(self):
        """400 connections that send 1 MiB less a byte, with 192 MiB of address space to spare. Each
        has an answer, is closed, or waits; probes are answered, and orders are taken afterwards.
        """
        pid = self.server.proc.pid
        limit = address_space(pid) + (192 << 20)
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
        head = b"PUT /%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n{"
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        held, refused = [], 0
        for i in range(self.CONNECTIONS):
            s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60 * TIME_FACTOR)
            held.append(s)
            try:
                s.sendall(head % i + b" " * 1048574)
            except OSError:
                refused += 1
            if i % 50 == 0:
                self.assertEqual(ops.get("/livez").status, 200)
        # The last ones may still be on their way to the server.
        eventually(lambda: refused + len(select.select(held, [], [], 0)[0]) > self.CONNECTIONS // 2,
                   "half of them are answered or closed")
        self.assertTrue(self.server.alive())
        for s in held:
            s.close()
        gid = guresid("after")
        eventually(lambda: self.client.put("/" + gid, cluster_input("after")).status == 202,
                   "an order is taken")


class FullPage(Case):
    def test_a_page_that_is_too_large_is_not_repeated(self):
        """The ceiling of a page is still 400, with the advice to ask for less."""
        plant(self.client, 40)
        answer = self.client.get(BASE + "/clusters?pageSize=500")
        self.assertEqual(answer.status, 400)
        self.assertIn("pageSize", answer.json["detail"])


def peak_mib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


def send(port, raw):
    s = socket.create_connection(("127.0.0.1", port), timeout=60 * TIME_FACTOR)
    s.sendall(raw)
    return s


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


LIST = b"GET " + BASE.encode() + b"/clusters?pageSize=500 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@unittest.skipIf(TIME_FACTOR > 1, "a sanitizer takes more memory")
class Memory(Case):
    """http.memory_max holds for all connections together."""

    FLAGS = ("--http-memory-max", "64MiB")
    # Beside the bound: the program, SQLite's caches, fragments, and parsed bodies.
    SLACK_MIB = 160

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        client = Client(cls.server)
        plant(client, 24)
        client.close()

    def served_again(self):
        path = BASE + "/clusters?pageSize=1"
        eventually(lambda: self.client.get(path).status == 200, "lists are served again")

    def bounded(self):
        self.assertLess(peak_mib(self.server.proc.pid), 64 + self.SLACK_MIB)

    def test_lists_that_nobody_waits_for(self):
        """Lists whose clients have gone take no memory beyond the bound, and others go on."""
        for _ in range(100):
            reset(send(self.server.port, LIST))
        self.served_again()
        self.bounded()

    def test_lists_of_slow_readers(self):
        """Answers that are not read count; further lists are 503 with Retry-After."""
        held = [send(self.server.port, LIST) for _ in range(20)]
        self.addCleanup(lambda: [s.close() for s in held])
        answer = eventually(lambda: self.refused_list(held), "a list is refused")
        self.assertEqual(answer.header("Retry-After"), "2")
        self.assertTrue(answer.json["detail"].startswith("the service cannot do this"), answer)
        self.bounded()
        for s in held:
            s.close()
        self.served_again()

    def refused_list(self, held):
        """The answer to a list, if it is refused. Else one more waits: a loaded database may have
        refused some of the others, and those hold nothing.
        """
        answer = self.client.get(BASE + "/clusters?pageSize=500")
        if answer.status != 503 and len(held) < 100:
            held.append(send(self.server.port, LIST))
        return answer if answer.status == 503 else None

    def test_bodies_in_flight(self):
        """Bodies count by their Content-Length, before they arrive; further ones are 503."""
        head = b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n{"
        wires = []
        for i in range(100):
            w = Wire(self.server.port)
            self.addCleanup(w.close)
            w.send(head % guresid("body").encode())
            wires.append(w)
        refused = eventually(lambda: self.refused_body(wires), "a body is refused")
        self.assertEqual(refused.header("Retry-After"), "2")
        self.assertEqual(refused.header("Connection"), "close")
        self.assertTrue(refused.header("X-Request-ID"))
        ops = Client(self.server, ops=True)
        self.assertEqual(ops.get("/livez").status, 200)
        self.assertIn('hfd_http_refused_total{reason="memory"}', ops.get("/metrics").body.decode())
        ops.close()
        self.bounded()
        for w in wires:
            w.close()
        gid = guresid("after")
        eventually(lambda: self.client.put("/" + gid, cluster_input("after")).status == 202,
                   "an order is taken again")

    def refused_body(self, held):
        """The answer to a body, if it is refused. Else one more waits: the loops refuse beside each
        other, and an answer takes room for a moment.
        """
        w = Wire(self.server.port)
        self.addCleanup(w.close)
        w.send(b"PUT /abc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n")
        w.sock.settimeout(0.2)
        try:
            r = w.response()
        except socket.timeout:
            r = None
            if len(held) < 200:
                held.append(w)
        return r


def thread_ticks(pid, name):
    """The processor time of the threads with this name."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task), encoding="ascii") as f:
            text = f.read()
        if text[text.index("(") + 1:text.rindex(")")] == name:
            fields = text.rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
    return total


class Loops(Case):
    """A loop thread does no work that depends on the size of documents."""

    def test_fields(self):
        """Members of large documents are selected by a reader, for a list and for one resource."""
        plant(self.client, 20)
        pid = self.server.proc.pid
        paths = [BASE + "/clusters?fields=name&pageSize=20"]
        item = self.client.get(paths[0]).json["items"][0]
        paths += [BASE + "/clusters/%s?fields=name" % item["id"]] * 20
        for path in paths[:1], paths[1:]:
            loops, readers = (thread_ticks(pid, name) for name in ("hfd-loop", "hfd-reader"))
            while thread_ticks(pid, "hfd-reader") - readers < 20 and \
                    thread_ticks(pid, "hfd-loop") - loops < 20:
                for each in path:
                    answer = self.client.get(each)
                    self.assertEqual(answer.status, 200)
                    self.assertLess(len(answer.body), 4096)
            self.assertLess(thread_ticks(pid, "hfd-loop") - loops, 10, path[0])


def writer_ns(pid):
    """The processor time of the writer, in nanoseconds."""
    for task in os.listdir("/proc/%d/task" % pid):
        folder = "/proc/%d/task/%s" % (pid, task)
        with open(folder + "/comm", encoding="ascii") as f:
            if f.read().strip() != "hfd-writer":
                continue
        with open(folder + "/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0])
    raise AssertionError("no thread hfd-writer")


class Reports(Case):
    """The cost of a report depends on the report, not on what others wrote on the same cluster."""

    ADAPTERS = tuple("adapter-%d" % i for i in range(11))
    TIMES = 40

    def cost(self, href):
        began = writer_ns(self.server.proc.pid)
        for i in range(self.TIMES):
            self.fleet.accepted(href, self.ADAPTERS[0], 1, message="news %d" % i)
        return writer_ns(self.server.proc.pid) - began

    def clusters(self, messages):
        """A cluster for each message, on which the other adapters have it."""
        hrefs = []
        for i, message in enumerate(messages):
            answer = self.client.post(BASE + "/clusters",
                                      {"kind": "Cluster", "name": "cost-%d" % i, "spec": {}})
            hrefs.append(answer.json["href"])
            for adapter in self.ADAPTERS[1:]:
                self.fleet.accepted(hrefs[-1], adapter, 1, message=message)
        return hrefs

    def test_long_messages_of_others(self):
        """Ten messages of 128 KiB, or of as much in escapes, leave a small report cheap."""
        thin, *fat = self.clusters(["thin", "\U0001F600" * 32768, "\\" * 32768])
        self.cost(thin)
        limit = 20 * self.cost(thin)  # it was 170 times as much
        for href in fat:
            self.cost(href)  # the first report after the others shortens the row
            self.assertLess(min(self.cost(href) for _ in range(2)), limit)


class SlowSearch(unittest.TestCase):
    """A search ends when it takes too long, when its client has gone, and when the server ends."""

    SLOW = BASE + "/clusters?search=" + "spec.filler%20like%20%27%25" + "x" * 1000 + "y%27"

    def start(self, *flags):
        server = Server(*flags)
        self.addCleanup(server.close)
        server.start()
        client = Client(server)
        self.addCleanup(client.close)
        plant(client, 24)
        return server, client

    def test_it_is_interrupted(self):
        """After store.read_timeout it is 503, and says what to do."""
        _, client = self.start("--store-read-timeout", "1s")
        answer = client.get(self.SLOW)
        self.assertEqual(answer.status, 503)
        self.assertIn("store.read_timeout", answer.json["detail"])
        self.assertEqual(answer.header("Retry-After"), "2")
        self.assertEqual(client.get(BASE + "/clusters?pageSize=1").status, 200)

    def test_nobody_waits(self):
        """Searches whose clients have gone do not hold up a list."""
        server, client = self.start("--store-read-timeout", "1h")
        request = b"GET " + self.SLOW.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(20):
            reset(send(server.port, request))
        self.assertEqual(client.get(BASE + "/clusters?pageSize=1").status, 200)

    def test_short_lists(self):
        """Short requests have a lane of their own: searches on all readers do not hold them up."""
        server, client = self.start("--store-read-timeout", "1h")
        gid = guresid("short")
        self.assertEqual(client.put("/" + gid, cluster_input("short")).status, 202)
        cluster = client.get(BASE + "/clusters?pageSize=1").json["items"][0]["href"]
        request = b"GET " + self.SLOW.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        searches = [send(server.port, request) for _ in range(6)]
        for path in (BASE + "/clusters?pageSize=1", BASE + "/clusters?size=2&page=3",
                     BASE + "/clusters?pageSize=1&fields=name", cluster + "?fields=name",
                     cluster, cluster + "/statuses", cluster + "/nodepools", "/" + gid,
                     "/" + gid + "/status", "/api/driver/v1/resources?size=1",
                     "/api/driver/v1/resources", "/api/driver/v1/resources/" + gid,
                     "/api/driver/v1/events?size=1"):
            expected = 202 if path == "/" + gid else 200
            self.assertEqual(client.get(path).status, expected, path)
        self.assertEqual(client.post("/validate", cluster_input("other")).status, 200)
        ops = Client(server, ops=True)
        self.addCleanup(ops.close)
        for path in "/metrics", "/", "/r/" + gid:
            self.assertEqual(ops.get(path).status, 200, path)
        self.assertEqual(select.select(searches, [], [], 0)[0], [], "the searches still run")
        for s in searches:
            s.close()

    def test_a_large_page(self):
        """A first page that turns out large is read among the others, whole."""
        _, client = self.start()
        for size in 1, 2, 3, 24:
            items = client.get(BASE + "/clusters?pageSize=%d" % size).json["items"]
            self.assertEqual([len(c["spec"]["filler"]) for c in items], [len(FILLER)] * size)

    def test_sigterm(self):
        """The end does not wait for a search beyond http.drain_timeout."""
        server, _ = self.start("--store-read-timeout", "1h", "--http-drain-timeout", "1s")
        request = b"GET " + self.SLOW.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        waiting = [send(server.port, request) for _ in range(4)]
        time.sleep(0.5)
        self.assertEqual(server.sigterm(), 0)
        for s in waiting:
            s.close()


class FullOps(Case):
    """The ops listener always has room for the next probe."""

    FLAGS = ("--http-read-timeout", "1h", "--http-write-timeout", "1h")

    def probe(self):
        ops = Client(self.server, ops=True)
        try:
            self.assertEqual(ops.get("/livez").status, 200)
        finally:
            ops.close()

    def test_slow_heads(self):
        """Unfinished heads make room, the slowest first."""
        held = [send(self.server.ops_port, b"GET /livez HTTP/1.1\r\nHost: loc") for _ in range(300)]
        for _ in range(5):
            self.probe()
        for s in held:
            s.close()

    def test_answers_that_nobody_reads(self):
        """So do answers in progress, the oldest first."""
        held = []
        for _ in range(200):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.ops_port))
            s.sendall(b"GET /docs/settings HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            held.append(s)
        for _ in range(5):
            self.probe()
        for s in held:
            s.close()

    def test_idle_connections(self):
        """So do connections that have been served and are kept open."""
        held = []
        for _ in range(300):
            w = Wire(self.server.ops_port)
            self.addCleanup(w.close)
            w.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(w.response().status, 200)
            held.append(w)
        self.probe()


class WrongLogins(unittest.TestCase):
    """300 wrong logins a second, whose connections stay open, take no place from others."""
    SECONDS, RATE = 3, 300
    tls = None
    WRONG = b"Host: localhost\r\nAuthorization: Bearer hfd_" + b"G" * 43 + b"\r\n"
    WHOLE = b"GET /none HTTP/1.1\r\n" + WRONG + b"\r\n"
    KINDS = {"whole": WHOLE, "slow": WHOLE[:-1],
             "part of a body": b"PUT /none HTTP/1.1\r\n" + WRONG + b"Content-Length: 9\r\n\r\n{",
             "many": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50 + WHOLE}

    def start(self, *flags):
        self.server = Server(*flags)
        self.addCleanup(self.server.close)
        self.token = token_create(self.server.data, "caller", "admin").encode()
        self.server.start()

    def connect(self, port):
        s = socket.create_connection(("127.0.0.1", port), timeout=10 * TIME_FACTOR)
        return self.tls.wrap_socket(s, server_hostname="localhost") if self.tls else s

    def ask(self, ops):
        """Asks as an ordinary caller, on a new connection. Returns what went wrong, or None."""
        port, path, status = (self.server.ops_port, b"/livez", b"200") if ops else \
            (self.server.port, b"/none", b"404")
        try:
            with self.connect(port) as s:
                s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                          % (path, self.token))
                line = s.recv(4096)[:12]
            return None if line == b"HTTP/1.1 " + status else line
        except OSError as e:
            return repr(e)

    def flood(self, port, request):
        """Opens RATE connections a second for SECONDS, and asks meanwhile."""
        held, failures, asked, began = [], [], 0, time.monotonic()
        while time.monotonic() < began + self.SECONDS * TIME_FACTOR:
            for _ in range(self.RATE // 20):
                try:
                    held.append(self.connect(port))
                    held[-1].sendall(request)
                except OSError:
                    pass  # it has made room
            for ops in (True, False):
                failures.append(self.ask(ops))
            asked += 1
            time.sleep(max(0.0, began + asked * 0.05 - time.monotonic()))
        for s in held:
            s.close()
        return [f for f in failures if f], len(failures)

    def flooded(self, kinds=KINDS):
        for name in kinds:
            for port in (self.server.ops_port, self.server.port):
                if name == "slow" and port == self.server.port:
                    continue  # no login yet: it fills the main listener as any other would
                with self.subTest(kind=name, ops=port == self.server.ops_port):
                    failures, asked = self.flood(port, self.KINDS[name])
                    self.assertEqual(failures, [], "%d of %d failed" % (len(failures), asked))

    def test_they_take_no_place(self):
        """Neither on the ops listener nor on a small main one, whatever the client sends."""
        self.start("--http-connections-max", "200")
        self.flooded()

    def test_with_tls(self):
        folder = tempfile.mkdtemp(prefix="hfd-it-logins-")
        self.addCleanup(shutil.rmtree, folder)
        self_signed(folder, "server")
        self.tls = ssl.create_default_context(cafile=os.path.join(folder, "server.pem"))
        self.start("--tls-cert-file", os.path.join(folder, "server.pem"),
                   "--tls-key-file", os.path.join(folder, "server.key"),
                   "--http-connections-max", "200")
        self.flooded(["whole", "part of a body"])


if __name__ == "__main__":
    unittest.main()
