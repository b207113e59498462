"""The TCP proxy of tests/lib/proxy as an object: see tcp_proxy.c for what it does."""
import os
import subprocess
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program():
    """The path of the proxy: from HFD_TCP_PROXY, or in the release build."""
    return (os.environ.get("HFD_TCP_PROXY")
            or os.path.join(ROOT, "build", "tests", "lib", "proxy", "tcp_proxy"))


class Proxy:
    """A proxy in front of a port of 127.0.0.1. Any thread may call it."""

    def __init__(self, target):
        self.proc = subprocess.Popen([program(), str(target)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.port = int(self.proc.stdout.readline().split()[1])

    def tell(self, line):
        """Sends a command; returns (COMMITs sent, COMMITs answered, the fault was done)."""
        with self.lock:
            self.proc.stdin.write(line + "\n")
            self.proc.stdin.flush()
            answer = self.proc.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise AssertionError("the proxy said %r to %r" % (answer, line))
        return int(answer[1]), int(answer[2]), answer[3] == "1"

    def cut(self, nth, when):
        """Cuts the connection of the nth COMMIT: `before` it is passed on, or `after`."""
        self.tell("cut %d %s" % (nth, when))

    def hold(self, nth, when):
        """The same, but the connection stays, and nothing moves in it."""
        self.tell("hold %d %s" % (nth, when))

    def fired(self):
        return self.tell("count")[2]

    def close(self):
        self.proc.stdin.close()
        self.proc.wait(30)
        self.proc.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
