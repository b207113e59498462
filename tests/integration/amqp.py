"""The sender for RabbitMQ as a program (amqp_send.c), and a broker that is played byte by byte."""
import contextlib
import json
import os
import socket
import struct
import subprocess
import threading

PROGRAM = os.environ.get("HFD_AMQP_SEND", "")
CLUSTERS, NODEPOOLS = "hyperfleet-clusters", "hyperfleet-nodepools"
SEND_MAX_S = 10.0


def event(n, kind="Cluster", body=None):
    return {"id": "01a20278-c6bf-7d03-9e19-%012x" % n, "subject": "s%d" % n, "kind": kind,
            "body": body if body is not None else json.dumps({"n": n})}


class Sender:
    """A running amqp_send."""

    def __init__(self, url, *more, exchanges=(CLUSTERS, NODEPOOLS)):
        self.proc = subprocess.Popen([PROGRAM, url, *exchanges, *more], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def send(self, events):
        self.proc.stdin.write(json.dumps(events) + "\n")
        self.proc.stdin.flush()
        line = self.proc.stdout.readline()
        if not line:
            raise AssertionError("amqp_send ended with status %s" % self.proc.wait(10))
        return json.loads(line)

    def peak_kib(self):
        """The most memory that it had."""
        with open("/proc/%d/status" % self.proc.pid, encoding="ascii") as f:
            return int(next(line for line in f if line.startswith("VmHWM")).split()[1])

    def close(self):
        """Ends it; returns its status."""
        self.proc.stdin.close()
        status = self.proc.wait(60)
        self.proc.stdout.close()
        return status


# ---- frames ----

def frame(kind, channel, payload, end=b"\xce"):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


def method(channel, class_id, method_id, args=b""):
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + args)


def short(text):
    return bytes([len(text)]) + text


def closing(text, channel=0, length=None):
    """connection.close, or channel.close on channel 1."""
    ids = (10, 50) if channel == 0 else (20, 40)
    words = short(text) if length is None else bytes([length]) + text
    return method(channel, *ids, struct.pack(">H", 403) + words + b"\0\0\0\0")


START = method(0, 10, 10, b"\0\x09" + struct.pack(">I", 0) + struct.pack(">I", 5) + b"PLAIN" +
               struct.pack(">I", 5) + b"en_US")
TUNE = method(0, 10, 30, struct.pack(">HIH", 2047, 131072, 60))
OPEN_OK, CHANNEL_OK = method(0, 10, 41, b"\0"), method(1, 20, 11, b"\0\0\0\0")
DECLARED, SELECTED = method(1, 40, 11), method(1, 85, 11)
HEARTBEAT = frame(8, 0, b"")


def ack(tag, multiple=False):
    return method(1, 60, 80, struct.pack(">QB", tag, multiple))


def nack(tag, multiple=False):
    return method(1, 60, 120, struct.pack(">QB", tag, multiple))


def returned(exchange):
    head = struct.pack(">HHQH", 60, 0, 2, 0)
    return method(1, 60, 50, struct.pack(">H", 312) + short(b"NO_ROUTE") +
                  short(exchange.encode()) + short(b"")) + frame(2, 1, head) + frame(3, 1, b"{}")


# The broker's part of a talk, and the method that it waits for before: class and method.
TALK = [(None, START), ((10, 11), TUNE), ((10, 40), OPEN_OK), ((20, 10), CHANNEL_OK),
        ((40, 10), DECLARED), ((40, 10), DECLARED), ((85, 10), SELECTED)]


class Peer:
    """A connection, on the broker's side."""

    def __init__(self, sock):
        self.sock = sock
        self.stream = sock.makefile("rb")
        self.published = []  # of (exchange, mandatory, properties, body)

    def say(self, data):
        self.sock.sendall(data)

    def frame(self):
        head = self.stream.read(7)
        if len(head) < 7:
            raise ConnectionError("the client has gone")
        kind, channel, size = struct.unpack(">BHI", head)
        payload = self.stream.read(size)
        if self.stream.read(1) != b"\xce":
            raise ConnectionError("broken frame")
        return kind, channel, payload

    def method(self):
        while True:
            kind, _, payload = self.frame()
            if kind == 1:
                return struct.unpack(">HH", payload[:4]), payload[4:]

    def greet(self, talk=None, until=None):
        """Plays the broker up to the step `until` of the talk, which it leaves out."""
        assert self.stream.read(8) == b"AMQP\0\0\x09\x01"
        for wanted, answer in (talk or TALK)[:until]:
            while wanted is not None and self.method()[0] != wanted:
                pass  # tune-ok has no answer
            self.say(answer)
        return self

    def take(self):
        """Reads one event."""
        ids, args = self.method()
        assert ids == (60, 40), ids
        size = args[2]
        exchange, rest = args[3:3 + size].decode(), args[3 + size:]
        kind, _, header = self.frame()
        assert kind == 2
        wanted, body = struct.unpack(">Q", header[4:12])[0], b""
        while len(body) < wanted:
            kind, _, part = self.frame()
            assert kind == 3
            body += part
        self.published.append((exchange, rest, header[12:], body))


class Broker:
    """Plays a script for each connection: the first one first, the last one for all others."""

    def __init__(self, *scripts, linger_s=30.0):
        self.scripts, self.linger_s = list(scripts), linger_s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = "amqp://127.0.0.1:%d" % self.port
        self.peers, self.done = [], threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            threading.Thread(target=self.play, args=(sock, script), daemon=True).start()

    def play(self, sock, script):
        with sock:
            sock.settimeout(self.linger_s)
            peer = Peer(sock)
            self.peers.append(peer)
            try:
                script(peer)
            except (OSError, AssertionError, struct.error):
                pass
            finally:
                peer.stream.close()

    def wait(self):
        """For scripts that say nothing more until the test ends."""
        self.done.wait(60)

    def close(self):
        self.done.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # close alone leaves one that accepts
        self.listener.close()
