"""Webhooks with two replicas on one PostgreSQL. One sends; after its kill the other goes on."""
import contextlib
import os
import tempfile
import unittest

import postgres
import real
from lib import BASE, Client, eventually, guresid
from test_replicas import Replicas
from test_webhooks import SECRET, Receiver

SENT = 'hfd_events_sent_total{target="main",stream="reconcile"}'


class Webhooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.receiver = Receiver()
        cls.addClassCleanup(cls.receiver.close)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "secret")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SECRET)
        os.chmod(path, 0o600)
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()
        cls.replicas = Replicas(cls.database.url("postgres"), 2, flags=(
            "--adapters-required-cluster", "validation", "--adapters-required-nodepool",
            "validation", "--events-webhooks-main-url", cls.receiver.url(),
            "--events-webhooks-main-secret-file", path))
        cls.addClassCleanup(cls.replicas.close)
        cls.replicas.start()

    @staticmethod
    def make(server):
        with contextlib.closing(Client(server)) as client:
            answer = client.post(BASE + "/clusters",
                                 {"kind": "Cluster", "name": guresid("c"), "spec": {}})
        assert answer.status == 201, answer
        return answer.json

    @staticmethod
    def sent(server):
        """How many events a replica has sent."""
        with contextlib.closing(Client(server, ops=True)) as ops:
            lines = ops.get("/metrics").body.decode().splitlines()
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(SENT))

    def arrived(self, clusters, generation):
        for cluster in clusters:
            eventually(lambda c=cluster: [
                e for e in self.receiver.taken(c["id"]) if e["data"]["generation"] >= generation],
                "the event of each cluster")

    def test_one_sends_and_the_other_goes_on(self):
        servers = self.replicas.servers
        clusters = [self.make(servers[n % 2]) for n in range(20)]
        self.arrived(clusters, 1)
        with self.receiver.lock:
            ids = [e["id"] for e, _, _ in self.receiver.events]
        self.assertEqual(len(ids), len(set(ids)), "one alone sends")
        leader, = [s for s in servers if self.sent(s)]
        other, = [s for s in servers if s is not leader]
        leader.kill9()
        self.addCleanup(leader.start)
        with contextlib.closing(Client(other)) as client:
            for cluster in clusters:
                self.assertEqual(client.patch(cluster["href"], {"spec": {"a": 1}}).status, 200)
        self.arrived(clusters, 2)
        self.assertGreaterEqual(self.sent(other), len(clusters))
        for cluster in clusters:
            generations = [e["data"]["generation"] for e in self.receiver.taken(cluster["id"])]
            self.assertEqual(generations, sorted(generations))


if __name__ == "__main__":
    real.main()
