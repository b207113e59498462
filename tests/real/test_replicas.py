"""Three replicas on one PostgreSQL: clients on 20 GUResIDs, kill -9 of replicas in turn, and one
that is stopped for longer than a lease. Each history is linearizable by the contract's tables, and
the tables are consistent afterwards.

REPLICAS_SEED chooses another order, REPLICAS_OPS the length. tests/fault/TRACK-RECORD.md lists the
breakages that were tried.
"""
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

import real
import consistent
import postgres
from lib import Place, Server, program

sys.path.insert(0, os.path.join(real.ROOT, "tests", "fault"))

from linear_check import check, explain # noqa: E402
from linear_server import FLAGS, Round, choose # noqa: E402

SEED = int(os.environ.get("REPLICAS_SEED", "1"))
OPS = int(os.environ.get("REPLICAS_OPS", "36"))
REPLICAS = 3
LEASE_S = 9
CACHED = os.environ.get("HFD_CACHED") or os.path.join(os.path.dirname(program()),
                                                      "tests/real/cached_driver")
PATIENCE_S = 4 # a client hangs up after so long
THINK_S = 1.6 # and waits at most so long between two operations


class Replicas:
    """Several servers on one database, with one key ring."""

    def __init__(self, database, count, flags=FLAGS, url=None, make=Server):
        self.place = Place(tempfile.mkdtemp(prefix="hfd-rep-"), base=database)
        self.place.make()
        if url:
            self.place.url = url
        self.servers = [make(*flags, place=self.place) for _ in range(count)]
        self.stopped = {} # server: when it goes on

    def start(self):
        for server in self.servers:
            server.start()

    def close(self):
        for server in self.servers:
            if server in self.stopped:
                server.proc.send_signal(signal.SIGCONT)
        with contextlib.ExitStack() as all_of_them:  # one that fails does not keep the others
            all_of_them.callback(shutil.rmtree, self.place.folder, True)
            for server in self.servers:
                all_of_them.callback(server.close)

    def alive(self):
        return [s for s in self.servers if s.alive() and s not in self.stopped]

    def stop(self, server, seconds):
        server.proc.send_signal(signal.SIGSTOP)
        self.stopped[server] = time.monotonic() + seconds

    def resume(self, at=float("inf")):
        """Lets those go on whose time has come."""
        for server in [s for s, end in self.stopped.items() if end <= at]:
            del self.stopped[server]
            server.proc.send_signal(signal.SIGCONT)


class CachedServer(Server):
    """The program whose row cache stays on, though other replicas write."""

    def command(self):
        return [CACHED] + super().command()[1:]


class ReplicaRound(Round):
    """The clients connect to any replica, think between operations, and hang up when it takes long.

    faults -- [(second, function)]: what happens when, in order
    """

    SIZE = (20, 3, OPS)

    def __init__(self, replicas, seed, faults=()):
        super().__init__(None, seed, kill=False)
        self.replicas, self.faults = replicas, list(faults)
        self.answers = {}
        for client in self.clients:
            client.next = time.monotonic() + client.random.random() * THINK_S
            client.patience = None
        self.began = time.monotonic()

    def port(self, client):
        return client.random.choice(self.replicas.alive()).port

    def choose(self, client):
        return choose(client.key, client.random)

    def record(self, client, result, ret):
        kind = client.op[0]
        self.answers[result is not None] = self.answers.get(result is not None, 0) + 1
        if result is None and kind in ("GET", "LIST"): # it changed nothing, and says nothing
            client.op = None
        else:
            super().record(client, result, ret)
        client.next = time.monotonic() + client.random.random() * THINK_S

    def send(self, client, kind, arg):
        try:
            super().send(client, kind, arg)
        except OSError: # that replica has just ended
            client.close()
            client.left += 1
            client.next = time.monotonic() + 0.1
        client.patience = time.monotonic() + PATIENCE_S

    def wait(self, seconds):
        for event, _ in self.selector.select(seconds):
            if event.data.op is not None:
                self.read(event.data)
            else: # the server closed a connection that nothing waits for
                self.lose(event.data)

    def run(self):
        while self.faults or any(c.left > 0 or c.op for c in self.clients):
            now = time.monotonic()
            while self.faults and now - self.began >= self.faults[0][0]:
                self.faults.pop(0)[1]()
            self.replicas.resume(now)
            for client in self.clients:
                if client.op is not None and now > client.patience:
                    self.lose(client)
                elif client.op is None and client.left > 0 and now > client.next:
                    client.left -= 1
                    if client.sock is not None and client.random.random() < 0.3:
                        self.lose(client) # and go to another replica
                    self.send(client, *self.choose(client))
            self.wait(0.01)
        self.replicas.resume()
        self.look()

    def look(self):
        """Reads each key at each replica, alone: what is true in the end."""
        for client in self.clients[::self.SIZE[1]]:
            for server in self.replicas.servers:
                self.lose(client)
                self.port = lambda _, port=server.port: port
                for kind in ("GET", "LIST"):
                    self.ask(client, kind)

    def ask(self, client, kind):
        """One operation, until it is answered with more than 503."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            before = len(client.key.ops)
            self.send(client, kind, None)
            while client.op is not None and time.monotonic() < end:
                self.wait(0.05)
            if len(client.key.ops) > before:
                return
        raise AssertionError("%s of %s was not answered within 60 s" % (kind, client.key.gid))


class CachedRound(ReplicaRound):
    """A short one, without faults."""

    SIZE = (6, 3, 9)


class Cached(unittest.TestCase):
    def test_row_cache_is_seen(self):
        """Three replicas whose row cache stays on: the check of histories fails, as it must."""
        if not os.access(CACHED, os.X_OK):
            real.skip("%s is not built: cmake --build build --target cached_driver" % CACHED)
        database = postgres.Postgres()
        self.addCleanup(database.close)
        database.start()
        replicas = Replicas(database.url("postgres"), REPLICAS, make=CachedServer)
        self.addCleanup(replicas.close)
        replicas.start()
        for seed in range(SEED, SEED + 10):  # a busy machine may do one thing after the other
            done = CachedRound(replicas, seed)
            done.run()
            bad = [key for key in done.keys if check(key.ops) is not None]
            print("%d of %d histories have no explanation" % (len(bad), len(done.keys)))
            if bad:
                return
        self.fail("no stale row of another replica's commit was seen")


class Test(unittest.TestCase):
    def setUp(self):
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.database.start()
        self.replicas = Replicas(self.database.url("postgres"), REPLICAS)
        self.addCleanup(self.replicas.close)
        self.replicas.start()
        self.random = random.Random(SEED)

    def kill(self, number):
        """kill -9 of one replica; it is started again at once."""
        server = self.replicas.servers[number]
        if server.alive():
            self.replicas.resume()
            server.kill9()
            server.start()

    def judge(self, done):
        """Fails when a history has no explanation, or the tables are not consistent."""
        for key in done.keys:
            failure = check(key.ops)
            if failure is not None:
                self.fail("seed %d, %s\n%s\n%s" % (SEED, key.gid, explain(key.ops, failure),
                                                   self.replicas.servers[0].tail()))
        self.assertEqual(consistent.faults(self.replicas.place.url), [])

    def test_kills(self):
        """Kills in turn and a stop beyond a lease: each history is linearizable over all replicas.
        Then rows are taken away behind the program's back, and the same check fails: it sees a lost
        write.
        """
        faults = [(4 + 4 * i, lambda i=i: self.kill(i % REPLICAS)) for i in range(6)]
        faults.append((28, lambda: self.replicas.stop(self.replicas.servers[1], LEASE_S + 4)))
        faults.append((33, lambda: self.kill(2)))
        done = ReplicaRound(self.replicas, SEED, faults)
        done.run()
        self.judge(done)
        operations = sum(len(k.ops) for k in done.keys)
        unknown = sum(op.ret is None for k in done.keys for op in k.ops)
        print("%d operations on %d keys, %d of unknown end" % (operations, len(done.keys), unknown))
        self.assertGreater(operations, 20 * 3 * OPS // 2, "most operations were answered")
        self.lose_a_write(done)

    def lose_a_write(self, done):
        """Takes a resource away that no open call can have removed: both checks see it."""
        url = self.replicas.place.url
        there = {row[0] for row in postgres.query(url, "SELECT guresid FROM resource")}
        key = next(k for k in done.keys if k.gid in there
                   and all(op.ret or op.kind == "PUT" for op in k.ops))
        for sql in ("DELETE FROM part WHERE guresid = '%s'",
                    "DELETE FROM resource WHERE guresid = '%s'",
                    "DELETE FROM fleet WHERE labels::jsonb ->> 'humanitec_guresid' = '%s'"):
            postgres.query(url, sql % key.gid)
        self.assertNotEqual(consistent.faults(url), [])
        done.ask(next(c for c in done.clients if c.key is key), "GET")
        self.assertIsNotNone(check(key.ops), "a lost write is seen")


if __name__ == "__main__":
    real.main()
