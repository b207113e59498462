"""Ports for programs that must be given one before they start.

The kernel gives outgoing connections ports of its own range. A port of that range that a test
chose may be taken before its program binds it, or while the program is restarted. So these ports
lie outside the range, and each belongs to one test process until that process ends.
"""
import random
import socket

LOWEST, HIGHEST = 10240, 65535
TRIES = 2000

_random = random.SystemRandom()
_kept = {}  # port: what keeps it from other test processes of this machine


def _range():
    """(first, last): the longest range of ports that no outgoing connection gets."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first, last = (int(word) for word in f.read().split())
    below, above = (LOWEST, first - 1), (last + 1, HIGHEST)
    return max((below, above, (0, -1)), key=lambda r: r[1] - r[0])


def keep(port):
    """Takes a port for this process; False if it is taken or in use."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind("\0hfd-test-port-%d" % port)
        with socket.socket() as s:
            # A thread that starts a program beside this one keeps a copy of s for a moment.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", port))
    except OSError:
        name.close()
        return False
    _kept[port] = name
    return True


def _give_back(ports):
    for port in ports:
        _kept.pop(port).close()


def free_ports(count):
    """The first of some free ports in a row."""
    first, last = _range()
    if last - first < 100 * count:
        raise AssertionError("outgoing connections have all ports: ip_local_port_range")
    for _ in range(TRIES):
        start = _random.randrange(first, last - count + 2)
        taken = []
        while len(taken) < count and keep(start + len(taken)):
            taken.append(start + len(taken))
        if len(taken) == count:
            return start
        _give_back(taken)
    raise AssertionError("no free ports between %d and %d" % (first, last))


def free_port():
    """A port that nothing listens on, and that no other test process gets."""
    return free_ports(1)
