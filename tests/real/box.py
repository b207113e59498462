"""A program in namespaces of its own: its ports are free whatever they are, and nothing that it
starts outlives it.

In the box there is one network interface, lo, and no way out but the given doors. A door joins a
TCP port with a Unix socket, which both sides see. All of the box ends with its first process, which
ends when its standard input is closed: so with the test, too.

As a program: box.py [--in PORT=SOCKET | --out SOCKET=PORT]... -- COMMAND
"""
import argparse
import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading

UNSHARE = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
AS_USER = ["--user", "--map-root-user"]


def how():
    """The words that make a box here, or None when this machine makes none."""
    for words in (UNSHARE, UNSHARE + AS_USER):
        try:
            done = subprocess.run(words + ["true"], stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        if done.returncode == 0:
            return words
    return None


class Box:
    """A program that runs; what it writes goes to a file."""

    def __init__(self, words, log, command, doors=(), env=None):
        self.log = log
        argv = words + [sys.executable, "-B", os.path.abspath(__file__)]
        for way, door in doors:
            argv += [way, door]
        with open(log, "wb") as out:
            self.proc = subprocess.Popen(argv + ["--"] + command, stdin=subprocess.PIPE, stdout=out,
                                         stderr=out, env=dict(os.environ, **(env or {})))

    def text(self):
        with open(self.log, "r", encoding="utf-8", errors="replace") as f:
            return f.read()

    def close(self):
        """Ends all that is in the box."""
        self.proc.stdin.close()
        try:
            self.proc.wait(10)
        except subprocess.TimeoutExpired:
            self.proc.kill()  # --kill-child ends the rest
            self.proc.wait()


# ---- doors ----

def copy(source, sink):
    """Copies until one end is closed; the other one ends, too."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def join(one, connect):
    with one, contextlib.suppress(OSError), connect() as other:
        back = threading.Thread(target=copy, args=(other, one), daemon=True)
        back.start()
        copy(one, other)
        back.join()


def serve(listener, connect):
    """Joins each connection of a listener with one that `connect` makes."""
    def run():
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=join, args=(one, connect), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()


def to_port(port):
    return lambda: socket.create_connection(("127.0.0.1", port))


def to_path(path):
    def connect():
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(path)
        except OSError:
            end.close()
            raise
        return end
    return connect


def at_path(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    return listener


def door_out(path, port):
    """A Unix socket that leads to a port of 127.0.0.1 on this side."""
    listener = at_path(path)
    serve(listener, to_port(port))
    return listener


# ---- inside ----

def bring_up_lo():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(s, 0x8913, request))[1]  # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--in", dest="ins", action="append", default=[])
    parser.add_argument("--out", dest="outs", action="append", default=[])
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    bring_up_lo()
    for door in args.ins:
        port, path = door.split("=", 1)
        serve(socket.create_server(("127.0.0.1", int(port))), to_path(path))
    for door in args.outs:
        path, port = door.rsplit("=", 1)
        door_out(path, int(port))

    def end_with_the_test():
        while sys.stdin.buffer.read(1):
            pass
        os._exit(1)
    threading.Thread(target=end_with_the_test, daemon=True).start()
    status = subprocess.run(args.command, stdin=subprocess.DEVNULL, check=False).returncode
    sys.stdout.flush()
    os._exit(status & 0xff)


if __name__ == "__main__":
    main()
