"""`./dev bench events`: watchers of clusters and nodepools (watchers.c), and what they cost."""
import json
import os
import subprocess
import urllib.request

MANY = (1000, 10000)
QUICK = (20, 50)
CHANGES = 50
GOAL_P99_MS = 20  # with the first of MANY
GOAL_MIB = 64     # with the last of MANY


def take(bench, server, watchers, changes):
    """Times in ms (p50, p99, of the PATCH), and the server's memory in MiB with the watchers."""
    spec = json.dumps({"kind": "Cluster", "name": "watched-%d" % bench.watched,
                       "spec": {}}).encode()
    bench.watched += 1
    ask = urllib.request.Request("http://127.0.0.1:%d/api/hyperfleet/v1/clusters" % server.port,
                                 method="POST", data=spec,
                                 headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(ask, timeout=60) as answer:
        href = json.load(answer)["href"]
    ran = subprocess.Popen([os.path.join(bench.tools, "watchers"), str(server.port), str(watchers),
                            str(changes), href], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    line = ran.stdout.readline()
    memory = server.rss_mib()
    _, words = ran.communicate("\n")
    if not line:
        raise RuntimeError("watchers: " + words.strip())
    took = json.loads(line)
    return [took[k] / 1000 for k in ("p50_us", "p99_us", "went_us")] + [memory]


def measure(bench, make):
    """The rows. `make(flags)` starts a server."""
    bench.watched = 0
    changes = 5 if bench.o.quick else CHANGES
    many = QUICK if bench.o.quick else MANY
    for count in many:
        flags = ["--events-watchers-max", str(count + 10)]
        server = make("events-%d" % count, flags)
        idle = server.rss_mib()
        few, lots = bench.turns(lambda s=server: take(bench, s, 1, changes),
                                lambda s=server, n=count: take(bench, s, n, changes))
        name = "events/%d" % count
        first, last = count == many[0], count == many[-1]
        for i, what in ((0, "p50"), (1, "p99")):
            bench.row("%s/%s" % (name, what),
                      "%s from a PATCH to its event, %d watchers" % (what, count), "ms",
                      [r[i] for r in lots], "one watcher", [r[i] for r in few],
                      GOAL_P99_MS if first and what == "p99" else None, "<", "value")
        bench.row(name + "/answer", "answer of the PATCH, %d watchers" % count, "ms",
                  [r[2] for r in lots], "one watcher", [r[2] for r in few])
        bench.row(name + "/memory", "more resident with %d watchers" % count, "MiB",
                  [r[3] - idle for r in lots], "without", [idle],
                  GOAL_MIB if last else None, "<", "value")
        server.stop()
