"""Three replicas on one PostgreSQL, and a remote HyperFleet behind them: the embedded one of
another server. Clusters are ordered, changed, and deleted. Meanwhile replicas are killed in turn,
and one is stopped for longer than its leases.

Each creation reaches the remote once, each history is linearizable, the tables are consistent, and
the remote has what the replicas say. REPLICAS_SEED and REPLICAS_OPS as in test_replicas.py.
"""
import re
import threading
import unittest

import real
import consistent
import postgres
from lib import LABEL, Client, Fleet, Server, eventually
from test_replicas import LEASE_S, OPS, REPLICAS, SEED, ReplicaRound, Replicas

from linear_check import check, explain # test_replicas.py makes tests/fault known
import linear_model as model

ADAPTERS = ("--adapters-required-cluster", "validation")
FLAGS = ADAPTERS + ("--http-threads", "2", "--remote-watch", "1s", "--remote-fresh", "1s",
                    "--remote-retry-max", "1s")
KEYS = 12
WAIT_S = 90

# State.rep keeps three facts on the generation at the remote. They are the least that an answer
# may name, the last one named, and if the next answer must name that one again.
# Two changes that follow each other quickly may reach the remote as one, or as none.
FIRST = (1, 1, False)


def closure(s):
    """The state, and those that it comes to by itself: adapters report at the remote."""
    yield s
    if s.phase in ("creating", "updating"):
        yield s._replace(phase="ready", out=True)
    elif s.phase == "deleting":
        yield model.absent(s)


def told(s, op):
    """The state and the operation with the generation that the table of answers expects; None when
    this one cannot be.
    """
    least, last, exact = s.rep or FIRST
    gen = op.result["gen"]
    if gen < least or (exact and gen != last):
        return None
    result = dict(op.result, gen=s.gen)
    return s._replace(rep=(gen, gen, True)), op._replace(result=result)


def step(s, op):
    """The answers that a GUResID may give, as in tests/fault/linear_model.py, with a remote."""
    found = []
    for now in closure(s):
        what = op
        if op.result is not None and op.result.get("status") == 200:
            pair = told(now, op)
            if pair is None:
                continue
            now, what = pair
        for after in model.step(now, what):
            if after.phase == "absent":
                after = after._replace(rep=None)
            elif after.phase == "updating" and now.gen != after.gen:
                least, last, exact = now.rep or FIRST
                after = after._replace(rep=(last + 1 if exact else last, last, False))
            found.append(after)
    return found


class RemoteRound(ReplicaRound):
    """Clients of the driver alone: HyperFleet's API is at the remote."""

    SIZE = (KEYS, 2, OPS)

    def choose(self, client):
        rnd, key = client.random, client.key
        kind = rnd.choices(("PUT", "GET", "DELETE"), (40, 40, 12))[0]
        if kind == "PUT":
            return kind, rnd.choice((1, 1, 1, 2, 3))
        if kind == "DELETE" and key.cookies and rnd.random() < 0.5:
            return kind, rnd.choice(key.cookies)
        return kind, None

    def look(self):
        """Reads each key at each replica, alone."""
        for client in self.clients[::self.SIZE[1]]:
            for server in self.replicas.servers:
                self.lose(client)
                self.port = lambda _, port=server.port: port
                self.ask(client, "GET")


class Adapter:
    """The adapter of the remote, and a watch: no cluster goes before it has seen it."""

    def __init__(self, server):
        self.client = Client(server)
        self.fleet = Fleet(self.client, ["validation"], [])
        self.seen = {} # id: GUResID
        self.twice = [] # GUResIDs with two clusters at once
        self.done = {} # id: generation reported
        self.over = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.over.wait(0.1):
                self.look()
        except Exception as e: # the test fails with it
            self.failure = e

    def look(self):
        living = set()
        for cluster in self.fleet.list("/clusters"):
            gid, gone = cluster["labels"].get(LABEL), "deleted_time" in cluster
            self.seen[cluster["id"]] = gid
            if not gone:
                if gid in living:
                    self.twice.append(gid)
                living.add(gid)
            if self.done.get(cluster["id"]) != cluster["generation"]:
                self.fleet.report(cluster, "validation", available=not gone, applied=not gone,
                                  finalized=gone)
                self.done[cluster["id"]] = cluster["generation"]

    def close(self):
        self.over.set()
        if self.thread.ident is not None:
            self.thread.join()
        self.client.close()


def posts(server):
    """Creations of clusters by the remote's own count: {status: how many}."""
    client = Client(server, ops=True)
    text = client.get("/metrics").body.decode()
    client.close()
    pattern = (r'(?m)^hfd_http_requests_total\{method="POST",route="clusters",'
               r'code="(\d+)"\} (\d+)')
    return {int(code): int(n) for code, n in re.findall(pattern, text)}


class Test(unittest.TestCase):
    def setUp(self):
        database = postgres.Postgres()
        self.addCleanup(database.close)
        database.start()
        self.remote = Server(*ADAPTERS)
        self.addCleanup(self.remote.close)
        self.remote.start()
        flags = FLAGS + ("--backend", "http://127.0.0.1:%d" % self.remote.port)
        self.replicas = Replicas(database.url("postgres"), REPLICAS, flags)
        self.addCleanup(self.replicas.close)
        self.replicas.start()
        self.url = self.replicas.place.url
        self.adapter = Adapter(self.remote)
        self.addCleanup(self.adapter.close)
        self.adapter.thread.start()
        client = Client(self.remote)
        self.addCleanup(client.close)
        self.fleet = Fleet(client, ["validation"], []) # the adapter's thread has its own
        self.faults = 0

    def kill(self, number):
        server = self.replicas.servers[number]
        if server.alive():
            self.faults += 1
            self.replicas.resume()
            server.kill9()
            server.start()

    def stop(self, number, seconds):
        server = self.replicas.servers[number]
        if server.alive():
            self.faults += 1
            self.replicas.stop(server, seconds)

    def settled(self):
        """True when the remote has the clusters of the resources, and no others."""
        rows = postgres.query(self.url, "SELECT guresid, fleet_id FROM part WHERE kind = 1")
        there = {c["id"]: c["labels"].get(LABEL) for c in self.fleet.list("/clusters")}
        moving = postgres.query(self.url, "SELECT guresid FROM resource WHERE guresid NOT IN"
                                " (SELECT guresid FROM part WHERE kind = 1)")
        return not moving and there == {fid: gid for gid, fid in rows}

    def creations(self):
        """{GUResID: lives that began}."""
        rows = postgres.query(self.url, "SELECT id, count(DISTINCT incarnation) FROM history"
                              " WHERE about = 0 GROUP BY id")
        return {gid: int(n) for gid, n in rows}

    def judge(self, done):
        for key in done.keys:
            failure = check(key.ops, step=step)
            if failure is not None:
                self.fail("seed %d, %s\n%s\n%s" % (SEED, key.gid, explain(key.ops, failure),
                                                   self.replicas.servers[0].tail()))
        self.assertEqual(consistent.faults(self.url, remote=True), [])

    def judge_remote(self, done):
        """Each life made one cluster at most, none was left over, and none was asked for twice
        without a fault.
        """
        self.assertIsNone(self.adapter.failure)
        self.assertEqual(self.adapter.twice, [], "a GUResID with two clusters at once")
        lives, clusters = self.creations(), list(self.adapter.seen.values())
        for key in done.keys:
            self.assertLessEqual(clusters.count(key.gid), lives.get(key.gid, 0), key.gid)
        made = posts(self.remote)
        print("%d lives, %d clusters, creations by status %s, %d faults"
              % (sum(lives.values()), len(clusters), made, self.faults))
        self.assertEqual(made.pop(201, 0), len(clusters), "a cluster that nothing reported on")
        self.assertLessEqual(sum(made.values()), self.faults,
                             "only what a fault interrupted is asked for again: %s" % made)
        self.assertGreater(len(clusters), KEYS)

    def test_once(self):
        """Kills in turn and a stop beyond a lease: one creation at the remote for each life."""
        faults = [(3 + 4 * i, lambda i=i: self.kill(i % REPLICAS)) for i in range(4)]
        faults.append((19, lambda: self.stop(1, LEASE_S + 4)))
        faults.append((24, lambda: self.kill(2)))
        done = RemoteRound(self.replicas, SEED, faults)
        done.run()
        eventually(self.settled, "the remote has the clusters of the resources", WAIT_S, 0.3)
        done.look()
        self.adapter.close()
        self.judge(done)
        self.judge_remote(done)
        operations = sum(len(k.ops) for k in done.keys)
        print("%d operations, %d of unknown end"
              % (operations, sum(op.ret is None for k in done.keys for op in k.ops)))
        self.assertGreater(operations, KEYS * 2 * OPS // 2, "most operations were answered")


if __name__ == "__main__":
    real.main()
