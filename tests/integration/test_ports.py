"""The ports that tests give to programs (tests/lib/ports.py)."""
import socket
import subprocess
import sys
import unittest

import lib
import ports

MANY = 200


class Ports(unittest.TestCase):
    def test_no_connection_gets_them(self):
        """They are bindable, and not of the range that outgoing connections get their ports of."""
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            first, last = (int(word) for word in f.read().split())
        for _ in range(20):
            port = lib.free_port()
            self.assertFalse(first <= port <= last, port)
            with socket.create_server(("127.0.0.1", port)):
                pass

    def test_no_two_get_one(self):
        """No port is given twice, in one process or in two."""
        code = ("import sys; sys.path.append(%r)\nimport ports\n"
                "print(*[ports.free_port() for _ in range(%d)], flush=True)\nsys.stdin.read()"
                % (ports.__file__.rsplit("/", 1)[0], MANY))
        other = subprocess.Popen([sys.executable, "-B", "-c", code], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        theirs = {int(word) for word in other.stdout.readline().split()}
        try:
            ours = [lib.free_port() for _ in range(MANY)]
            row = ports.free_ports(5)
            ours += range(row, row + 5)
            self.assertEqual((len(theirs), len(set(ours))), (MANY, MANY + 5))
            self.assertEqual(theirs & set(ours), set())
            for port in theirs:
                self.assertFalse(ports.keep(port), "it is the other's")
        finally:
            other.communicate()

    def test_a_port_in_use_is_not_given(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.assertFalse(ports.keep(s.getsockname()[1]))


if __name__ == "__main__":
    unittest.main()
