#!/usr/bin/env python3
"""Mixed load for a long time. The program's memory, files and answer times must be at the end what
they were at the beginning.

  soak.py [--seconds 1800] [--rate 400] [--workers 32] [--json FILE]

Each worker leads one resource after the other through its life. It is ordered, reported ready,
polled by GET and by repeated PUT, changed, reported ready again, deleted, finalized, gone. So the
number of resources stays the same, and anything that grows is kept by mistake.

Requests begin at a fixed rate, with or without answers. Memory, descriptors and files are read once
a second. The first 15 % of the time warm up. The rest is cut into quarters, and the last is
compared with the first. An answer with another status than the contract's ends it.

Other programs use the machine too, so two yardsticks are measured all the time. For reads it is the
program's fixed reply (/livez). For writes it is writing and syncing 4 KiB in the same folder. A
request may become slower by as much as its yardstick did, and there is much room. HFD_PROGRAM is
the program. Standard library only.
"""
import argparse
import json
import os
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BASE = "/api/hyperfleet/v1"
FLAGS = ("--adapters-required-cluster", "validation,dns", "--adapters-required-nodepool",
         "validation")
REQUIRED = {"clusters": ("validation", "dns"), "nodepools": ("validation",)}
WARM = 0.15
QUARTERS = 4
LOG_KEPT_S = 10
NAMES = 8 # of a worker's resources: they come back, so that what is remembered of them is bounded
SYNC_EVERY_S = 0.1

# Limits by name: (how much more the last quarter's peak may be: a share, and in its unit).
HELD = {"rss_kib": (0.10, 4096), "fds": (0.0, 2), "threads": (0.0, 0), "wal_kib": (0.25, 1024),
        "db_kib": (0.25, 512)}
# Latency: (share, milliseconds) for the middle and for the slowest in a hundred. Each quarter
# counts with the best of its slices. Other programs make only some slices slower; growth in this
# one makes all of them slower.
LATENCY = {"p50_ms": (0.5, 0.5), "p99_ms": (2.0, 10.0)}
SLICES = 8
YARDSTICKS = {"get": "livez", "list": "livez", "put repeat": "livez",
              "delete": "sync", "put new": "sync", "put change": "sync", "report": "sync"}


class Failed(Exception):
    """The text says what."""


class Server:
    """`serve` on free ports; its log goes to a file that is emptied now and then."""

    def __init__(self, folder):
        program = os.environ.get("HFD_PROGRAM") or os.path.join(ROOT, "build", "hyperfleet-driver")
        self.data, self.log = os.path.join(folder, "data"), os.path.join(folder, "log")
        env = {k: v for k, v in os.environ.items() if not k.startswith("HFD_")}
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0",
                                          "--ops-listen", "127.0.0.1:0", "--data", self.data,
                                          *FLAGS], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=env)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.proc.poll() is None:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                found = re.search(r'"msg":"ready".*', f.read())
            if found:
                self.port = int(re.search(r'"port":(\d+)', found.group(0)).group(1))
                self.ops_port = int(re.search(r'"ops_port":(\d+)', found.group(0)).group(1))
                return
            time.sleep(0.02)
        raise Failed("the program does not start: " + self.tail())

    def tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def kib(self, name):
        try:
            return os.stat(os.path.join(self.data, name)).st_size // 1024
        except FileNotFoundError:
            return 0

    def look(self):
        """The present values of HELD."""
        with open("/proc/%d/status" % self.proc.pid, encoding="ascii") as f:
            status = f.read()
        files = os.listdir(self.data)
        return {"rss_kib": int(re.search(r"VmRSS:\s+(\d+)", status).group(1)),
                "threads": int(re.search(r"Threads:\s+(\d+)", status).group(1)),
                "fds": len(os.listdir("/proc/%d/fd" % self.proc.pid)),
                "wal_kib": sum(self.kib(n) for n in files if n.endswith("-wal")),
                "db_kib": sum(self.kib(n) for n in files if n.endswith(".db")
                              or n.endswith(".sqlite"))}

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            return self.proc.wait(60)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            return None


# ---- what a worker does ----

def order(spec):
    return {"type": "hyperfleet-cluster", "driver": {"values": {
        "cluster": {"spec": {"region": "eu-1", "notes": "x" * 300, "v": spec}},
        "nodepools": [{"name": "workers", "spec": {"replicas": 3, "v": spec}}]}}}


def report(adapter, generation, finalized):
    at = time.time_ns() // 1000
    conditions = [{"type": "Available", "status": "False" if finalized else "True",
                   "reason": "Soaked", "message": "as it should be"},
                  {"type": "Applied", "status": "True"}, {"type": "Health", "status": "True"}]
    if finalized:
        conditions.append({"type": "Finalized", "status": "True"})
    return {"adapter": adapter, "observed_generation": generation, "conditions": conditions,
            "data": {"url": "https://example.com"},
            "observed_time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 1000000))
            + ".%06dZ" % (at % 1000000)}


def lives(worker):
    """Request after request of a worker, for ever: yields (what, method, path, body, status), is
    sent the answer's document.
    """
    life = 0
    while True:
        life += 1
        path = "/soak-%d-%d" % (worker, life % NAMES)
        yield "put new", "PUT", path, order(1), 202
        found = yield "list", "GET", "%s/clusters?search=labels.humanitec_guresid='%s'" % (
            BASE, path[1:]), None, 200
        cluster = found["items"][0]["href"]
        pools = yield "list", "GET", cluster + "/nodepools", None, 200
        parts = [("nodepools", pools["items"][0]["href"]), ("clusters", cluster)]
        for generation in (1, 2):
            if generation == 2:
                yield "put change", "PUT", path, order(2), 202
            for kind, href in parts:
                for adapter in REQUIRED[kind]:
                    yield "get", "GET", path, None, 202
                    yield "report", "POST", href + "/statuses", report(
                        adapter, generation, False), 201
            for _ in range(4):
                yield "get", "GET", path, None, 200
                yield "put repeat", "PUT", path, order(generation), 200
        yield "delete", "DELETE", path, None, 202
        for kind, href in parts:
            for adapter in REQUIRED[kind]:
                yield "report", "POST", href + "/statuses", report(adapter, 3, True), 201
        yield "delete", "DELETE", path, None, 204


def fixed():
    while True:
        yield "livez", "GET", "/livez", None, 200


class Worker:
    """One connection, and one request under way at most."""

    def __init__(self, requests, port, selector):
        self.requests = requests
        self.next = next(self.requests)
        self.sock = socket.create_connection(("127.0.0.1", port), 30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(self.sock, selectors.EVENT_READ, self)
        self.data, self.sent_at = b"", None

    def send(self):
        _, method, path, body, _ = self.next
        text = json.dumps(body).encode() if body is not None else b""
        head = "%s %s HTTP/1.1\r\nHost: localhost\r\n" % (method, path)
        if body is not None:
            head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(text)
        self.sent_at = time.monotonic()
        self.sock.sendall(head.encode() + b"\r\n" + text)

    def read(self):
        """(what, seconds) once the answer is whole, else None."""
        data = self.sock.recv(1 << 18)
        now = time.monotonic()
        if not data:
            raise Failed("the server closed a connection, instead of answering %s %s"
                         % self.next[1:3])
        self.data += data
        head, sep, body = self.data.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        if not sep or len(body) < int(length.group(1) if length else 0):
            return None
        what, method, path, _, wanted = self.next
        status = int(self.data[9:12])
        if status != wanted:
            raise Failed("%s %s was answered %d, not %d: %s"
                         % (method, path, status, wanted, body[:600].decode("utf-8", "replace")))
        took = now - self.sent_at
        self.data, self.sent_at = b"", None
        self.next = self.requests.send(json.loads(body) if body and method != "DELETE"
                                       and what != "livez" else None)
        return what, took


# ---- the run ----

def sync_all_the_time(path, begin, end, times):
    """The yardstick of the disk."""
    with open(path, "wb") as f:
        while time.monotonic() < end:
            now = time.monotonic()
            f.seek(0)
            f.write(b"x" * 4096)
            f.flush()
            os.fdatasync(f.fileno())
            done = time.monotonic()
            times.append((done - begin, "sync", done - now))
            time.sleep(SYNC_EVERY_S)



def run(server, options):
    """([(second, what is held)], [(second, what, seconds taken)])"""
    selector = selectors.DefaultSelector()
    workers = [Worker(lives(i), server.port, selector) for i in range(options.workers)]
    workers += [Worker(fixed(), server.ops_port, selector)
                for _ in range(1 + options.workers // 16)]
    rnd = random.Random(1)
    rnd.shuffle(workers)
    idle, looks, times = list(workers), [], []
    begin = time.monotonic()
    syncer = threading.Thread(target=sync_all_the_time,
                              args=(server.data + ".sync", begin, begin + options.seconds, times),
                              daemon=True)
    syncer.start()
    due, next_look, next_log = begin, begin + 1, begin + LOG_KEPT_S
    while True:
        now = time.monotonic()
        if now >= begin + options.seconds:
            return looks, times
        if now >= next_look:
            looks.append((now - begin, server.look()))
            next_look += 1
        if now >= next_log:
            os.truncate(server.log, 0)
            next_log += LOG_KEPT_S
        while idle and due <= now:
            idle.pop(0).send()
            due += 1 / options.rate
        due = max(due, now - 0.25) # what a pause of the machine kept back is not all sent at once
        for key, _ in selector.select(max(0.0, min(due, next_look) - time.monotonic()) if idle
                                      else 0.1):
            done = key.data.read()
            if done is not None:
                times.append((time.monotonic() - begin, *done))
                idle.append(key.data)


# ---- what it says ----

def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def best(rows, share):
    """The percentile of the slice where it is least; 0 when there is nothing."""
    size = max(1, len(rows) // SLICES)
    slices = [rows[i:i + size] for i in range(0, len(rows) - size + 1, size)]
    return min((percentile([r[2] for r in s], share) for s in slices), default=0)


def quarters(rows, seconds):
    """The rows of each quarter of what follows the warming up."""
    begin = seconds * WARM
    length = (seconds - begin) / QUARTERS
    return [[r for r in rows if begin + q * length <= r[0] < begin + (q + 1) * length]
            for q in range(QUARTERS)]


def figures(looks, times, seconds):
    """name -> values of the quarters."""
    out = {}
    for name in HELD:
        out[name] = [max((look[name] for _, look in rows), default=0)
                     for rows in quarters(looks, seconds)]
    for what in sorted({t[1] for t in times}):
        rows = quarters([t for t in times if t[1] == what], seconds)
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            out["%s %s" % (what, name)] = [round(1e3 * best(r, share), 3) for r in rows]
    out["requests/s"] = [round(len(r) / (seconds * (1 - WARM) / QUARTERS), 1)
                         for r in quarters(times, seconds)]
    return out


def judge(values):
    """The values that are not flat, as sentences."""
    wrong = []
    for name, quarter in values.items():
        what, _, unit = name.rpartition(" ")
        room = HELD.get(name) or LATENCY.get(unit)
        yard = values.get("%s %s" % (YARDSTICKS.get(what), unit), [1, 1])
        slower = max(1, yard[-1] / yard[0]) if yard[0] else 1
        if room is not None and what not in YARDSTICKS.values() and quarter[-1] > quarter[
            0] * slower * (1 + room[0]) + room[1]:
            wrong.append("%s is not flat: %s" % (name, " -> ".join(str(v) for v in quarter)))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float,
                        default=float(os.environ.get("SOAK_SECONDS", "1800")))
    parser.add_argument("--rate", type=float, default=400, help="requests a second")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--json", help="where the figures go as well")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="hfd-soak-")
    server = None
    try:
        server = Server(folder)
        looks, times = run(server, options)
        values = figures(looks, times, options.seconds)
        for name, quarter in values.items():
            print("%-22s %s" % (name, "  ".join("%10s" % v for v in quarter)))
        if options.json:
            with open(options.json, "w", encoding="utf-8") as f:
                json.dump(values, f)
        wrong = judge(values)
    except Failed as e:
        wrong = [str(e)]
    finally:
        status = server.stop() if server is not None else 0
        shutil.rmtree(folder, ignore_errors=True)
    if status != 0:
        wrong.append("the program ended with status %s" % status)
    for text in wrong:
        print("FAILED: " + text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
