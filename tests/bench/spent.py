"""Which processes used the processors during a measurement: for ./dev bench --cpu-by-process.

Linux only: /proc. Standard library only.
"""
import os
import re
import resource

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WRITES = 0.1  # of what the backend writes that writes most
ENDED = "ended processes"


def text_of(path):
    """The content; empty when the process ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def nanoseconds(path):
    return int((text_of(path).split() or ["0"])[0]) / 1e9


def of_driver(pid):
    """Each thread of the program, by the name that the program gives it."""
    folder = "/proc/%d/task" % pid
    return {(pid, int(tid)): ("driver " + re.sub(r"^hfd-|[-\d]*\s*$", "",
                                                 text_of("%s/%s/comm" % (folder, tid))),
                              nanoseconds("%s/%s/schedstat" % (folder, tid)), 0)
            for tid in os.listdir(folder)}


def of_postgres(server, prefix=""):
    """Each process of the server, by its title; and how many bytes it has written to files."""
    found = {}
    for pid in server.processes():
        title = text_of("/proc/%d/cmdline" % pid).strip("\0 ")
        role = "postmaster" if pid == server.proc.pid else ENDED
        if title.startswith("postgres: "):
            role = title[len("postgres: "):]
            role = "backend" if " 127.0.0.1(" in role and not role.startswith("walsender") else \
                re.match(r"[a-z]+(?: (?:writer|launcher|worker|replication launcher))?",
                         role).group()
        wrote = re.search(r"^wchar: (\d+)", text_of("/proc/%d/io" % pid), re.M)
        found[pid, 0] = (prefix + role, nanoseconds("/proc/%d/schedstat" % pid),
                         int(wrote.group(1)) if wrote else 0)
    ended = text_of("/proc/%d/stat" % server.proc.pid).rsplit(")", 1)[-1].split()
    if ended:
        found["ended", server.proc.pid] = (prefix + ENDED,
                                           sum(map(int, ended[13:15])) * TICK_S, 0)
    return found


def of_machine():
    """(busy, idle) seconds of all its processors."""
    ticks = [int(v) * TICK_S for v in text_of("/proc/stat").split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], ticks[3] + ticks[4]


class Spent:
    """The time of each role between the beginning and `end`.

    servers -- of the program
    primary -- the PostgreSQL that they write to; its standby counts too
    """

    def __init__(self, servers, primary):
        self.servers, self.primary = servers, primary
        self.before = self.look()

    def look(self):
        found = {}
        for s in self.servers:
            found.update(of_driver(s.proc.pid))
        found.update(of_postgres(self.primary))
        if self.primary.standby is not None:
            found.update(of_postgres(self.primary.standby, "standby's "))
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        found["load"] = ("load", children.ru_utime + children.ru_stime, 0)
        return found, of_machine()

    def end(self):
        """Seconds by role; "other work" is of the rest of the machine, "idle" of nothing."""
        (was, machine_was), (now, machine) = self.before, self.look()
        gone = ("", 0.0, 0)
        wrote = {key: v[2] - was.get(key, gone)[2] for key, v in now.items() if v[0] == "backend"}
        seconds = {}
        for key, (role, used, _) in now.items():
            if role == "backend":
                role = "backends that write" if wrote[key] > WRITES * max(wrote.values()) else \
                    "backends that read"
            seconds[role] = seconds.get(role, 0) + used - was.get(key, gone)[1]
        # Their time before has moved to their parent as well.
        for key, (role, used, _) in was.items():
            if key not in now and not role.startswith("driver "):
                ended = ("standby's " if role.startswith("standby's ") else "") + ENDED
                seconds[ended] = max(0.0, seconds.get(ended, 0) - used)
        busy, idle = (b - a for a, b in zip(machine_was, machine))
        seconds["other work"] = max(0.0, busy - sum(seconds.values()))
        seconds["idle"] = max(0.0, idle)
        return seconds


def per_unit(samples):
    """Microseconds of each role for one request, of all samples together, the most first.

    samples -- each has .spent, the result of Spent.end, and .done, how many requests it is of
    """
    done = sum(v.done for v in samples)
    roles = {role for v in samples for role in v.spent}
    us = {role: round(1e6 * sum(v.spent.get(role, 0) for v in samples) / done, 1) for role in roles}
    return dict(sorted(((r, v) for r, v in us.items() if v >= 0.1),
                       key=lambda pair: (pair[0] in ("idle", "other work"), -pair[1])))


def show(name, us):
    """One line: a role and its microseconds for one request."""
    return "%s: %s" % (name, ", ".join("%s %.1f" % pair for pair in us.items()))
