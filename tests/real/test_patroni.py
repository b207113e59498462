"""etcd and three PostgreSQL under Patroni 4 with a synchronous standby. The primary fails in
each way: no acknowledged write is lost, and the driver answers again by itself.

Two replicas of the driver and clients that order resources all the time. PATRONI_ALL=1 (the tier
soak) tries each fault; else the shortest one is tried.
"""
import http.client
import os
import shutil
import tempfile
import threading
import time
import unittest

import real
import consistent
import patroni
import postgres
from lib import Client, Place, Server, cluster_input, eventually, guresid

ALL = os.environ.get("PATRONI_ALL") == "1"
CLIENTS = 4
AWAY_S = 30 # the longest time without an answer but 503
PAUSE_S = 32
FLAGS = ("--store-connect-timeout", "2s", "--store-answer-timeout", "3s")


class Orders(threading.Thread):
    """A client that orders one resource after the other, and keeps those that were acknowledged."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = Client(server, timeout_s=60)
        self.acknowledged, self.ended = [], False
        self.well = time.monotonic() # when the last order was answered
        self.away = 0.0 # the longest time without
        self.refused = self.odd = 0
        self.start()

    def run(self):
        while not self.ended:
            gid = guresid("pat")
            answer = self.order(gid)
            if answer is None:
                continue
            self.away = max(self.away, time.monotonic() - self.well)
            self.well = time.monotonic()
            self.acknowledged.append(gid)

    def order(self, gid):
        """PUT until it is acknowledged; None when this client is to end."""
        while not self.ended:
            try:
                answer = self.client.put("/" + gid, cluster_input(name=gid))
                if answer.status == 202:
                    return answer
                if answer.status != 503 or not answer.header("Retry-After"):
                    self.odd = answer
            except (OSError, http.client.HTTPException) as e:
                self.odd = e
            self.refused += 1
            time.sleep(0.1)
        return None


class Failover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        packages = patroni.package(real.install, real.CACHE)
        cls.cluster = patroni.Cluster(packages)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.place = Place(tempfile.mkdtemp(prefix="hfd-pat-keys-"), base="postgres://none/none")
        cls.addClassCleanup(shutil.rmtree, cls.place.folder, True)
        cls.place.make_ring()
        cls.place.url = cls.cluster.url()
        cls.servers = []
        for _ in range(2):
            server = Server(*FLAGS, place=cls.place)
            cls.addClassCleanup(server.close)
            cls.servers.append(server)
            server.place.make = lambda keys: None # psql knows no Patroni
            server.start()

    def setUp(self):
        self.cluster.wait_whole()
        self.orders = [Orders(self.servers[i % 2]) for i in range(CLIENTS)]
        self.addCleanup(self.end)
        self.flow("before the fault")

    def end(self):
        for order in self.orders:
            order.ended = True
        for order in self.orders:
            order.join(120)

    def flow(self, when):
        """Waits until each client has been acknowledged anew."""
        before = [len(o.acknowledged) for o in self.orders]
        eventually(lambda: all(len(o.acknowledged) > n + 2 for o, n in zip(self.orders, before)),
                   "orders are acknowledged " + when, 120)

    def read(self, query):
        """The result of a query. The primary may change once more meanwhile."""
        def tried():
            try:
                return [query()]
            except AssertionError:
                return None
        return eventually(tried, "the database answers", 120)[0]

    def judge(self, what):
        """Everything that was acknowledged is there; the tables are consistent."""
        self.flow("after the fault")
        self.end()
        self.cluster.wait_whole()
        there = {row[0] for row in self.read(lambda: postgres.query(
            self.cluster.url(), "SELECT guresid FROM resource"))}
        wanted = [gid for o in self.orders for gid in o.acknowledged]
        away = max(o.away for o in self.orders)
        print("%s: %d acknowledged, %d lost, %d refused, at most %.1f s without an answer"
              % (what, len(wanted), len(set(wanted) - there), sum(o.refused for o in self.orders),
                 away), flush=True)
        self.assertEqual(set(wanted) - there, set(), "acknowledged and lost")
        self.assertEqual(self.read(lambda: consistent.faults(self.cluster.url())), [])
        for order in self.orders:
            self.assertFalse(order.odd, "an answer that is neither 202 nor 503: %r" % order.odd)
        self.assertLessEqual(away, AWAY_S)

    def test_kill_primary(self):
        """kill -9 of the primary's PostgreSQL."""
        self.cluster.leader().kill_postgres()
        self.judge("primary killed")

    @unittest.skipUnless(ALL, "PATRONI_ALL=1 tries it")
    def test_kill_node(self):
        """The primary's node is gone: Patroni, PostgreSQL and all connections. It comes back."""
        node = self.cluster.leader()
        node.kill()
        self.flow("without the node")
        node.start()
        self.judge("node killed")

    @unittest.skipUnless(ALL, "PATRONI_ALL=1 tries it")
    def test_pause(self):
        """The primary's node stands still for longer than Patroni's lease, and goes on."""
        node = self.cluster.leader()
        pids = node.pause()
        try:
            time.sleep(PAUSE_S)
        finally:
            node.resume(pids)
        self.judge("node paused")

    @unittest.skipUnless(ALL, "PATRONI_ALL=1 tries it")
    def test_partition(self):
        """Nothing reaches the primary's node, nor etcd from it; later it is joined again."""
        node = self.cluster.leader()
        node.part()
        try:
            time.sleep(PAUSE_S)
        finally:
            node.part(together=True)
        self.judge("node parted")

    @unittest.skipUnless(ALL, "PATRONI_ALL=1 tries it")
    def test_standby(self):
        """The synchronous standby is gone: the other one takes its place."""
        leader = self.cluster.leader()
        standby = next(n for n in self.cluster.nodes
                       if self.cluster.members().get(n.name, ("",))[0] == "sync_standby")
        self.assertIsNot(standby, leader)
        standby.kill()
        self.flow("without the standby")
        standby.start()
        self.judge("standby killed")


if __name__ == "__main__":
    real.main()
