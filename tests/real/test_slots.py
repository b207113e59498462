"""Two replicas on one PostgreSQL: each adds to totals in rows of its own, so none waits for the
COMMIT of the other one. A total is the sum of all rows, at any time.
"""
import concurrent.futures
import os
import shutil
import subprocess
import tempfile

import real
import consistent
import postgres
from lib import BASE, Client, Place, Server, cluster_input, eventually, guresid

LIMIT_S = 60
SOON_S = 1 # a PUT that nothing holds up takes some milliseconds
TRIES = 8
OTHER_SLOTS = "SELECT count(*) FROM fleet_count WHERE kind >= 16"


class Slots(real.unittest.TestCase):
    def setUp(self):
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.database.start()
        self.place = Place(tempfile.mkdtemp(prefix="hfd-slots-"),
                           base=self.database.url("postgres"))
        self.addCleanup(shutil.rmtree, self.place.folder, True)
        self.place.make()
        self.servers = [self.start(), self.start()] # the first one has slot 0

    def start(self):
        server = Server(place=self.place)
        self.addCleanup(server.close)
        server.start()
        return server

    def query(self, sql):
        return postgres.query(self.place.url, sql)

    def put(self, server):
        client = Client(server)
        try:
            return client.put("/" + guresid("slot"), cluster_input()).status
        finally:
            client.close()

    def total(self, server):
        client = Client(server)
        try:
            return client.get(BASE + "/clusters?pageSize=1").json["total"]
        finally:
            client.close()

    def folded(self):
        """A sign of life has brought all totals to slot 0."""
        eventually(lambda: self.query(OTHER_SLOTS) == [["0"]], "the slots are folded", LIMIT_S)
        self.assertEqual(consistent.faults(self.place.url), [])
        self.assertEqual(self.query("SELECT count(*) FROM fleet_count WHERE n = 0"), [["0"]])

    def psql(self):
        return subprocess.Popen([os.path.join(postgres.programs(), "psql"), "-X", "-q", "-A", "-t",
                                 "-v", "ON_ERROR_STOP=1", self.place.url],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def test_sum_of_all(self):
        """The total is right at both replicas after each order, and when one was killed."""
        made, seen = 0, 0
        for _ in range(12):
            for server in self.servers:
                self.assertEqual(self.put(server), 202)
                made += 1
                seen += self.query(OTHER_SLOTS) != [["0"]]
                self.assertEqual([self.total(s) for s in self.servers], [made, made])
        self.assertGreater(seen, 0, "the second replica has rows of its own")
        self.assertEqual(consistent.faults(self.place.url), [])
        self.servers[1].kill9()
        self.assertEqual(self.total(self.servers[0]), made)
        self.folded()
        self.assertEqual(self.total(self.servers[0]), made)

    def held(self):
        """PUTs at both replicas while another program holds the rows of slot 0: the statuses that
        come soon, and whether all came in the end."""
        holder = self.psql()
        with holder, concurrent.futures.ThreadPoolExecutor(2) as pool:
            holder.stdin.write("BEGIN; SELECT count(*) FROM (SELECT 1 FROM fleet_count"
                               " WHERE kind < 16 FOR UPDATE) AS held;\n")
            holder.stdin.flush()
            self.assertGreater(int(holder.stdout.readline()), 0)
            puts = [pool.submit(self.put, server) for server in self.servers]
            concurrent.futures.wait(puts, SOON_S)
            soon = [p.done() for p in puts]
            holder.stdin.write("COMMIT;\n")
            holder.stdin.close()
            self.assertEqual([p.result(LIMIT_S) for p in puts], [202, 202])
        return soon

    def test_none_waits(self):
        """The second replica goes on while rows of slot 0 are locked. (Its sign of life, each 3 s,
        brings its totals there, and then waits, too.)"""
        self.assertEqual(self.put(self.servers[0]), 202)
        for _ in range(TRIES):
            soon = self.held()
            self.assertFalse(soon[0], "the first replica waits for its rows")
            if soon[1]:
                break
        self.assertTrue(soon[1], "the second replica waited each time")
        self.folded()

    def test_given_back(self):
        """A replica that ends gives its slot back, and leaves nothing in it."""
        self.assertEqual(self.put(self.servers[1]), 202)
        self.servers[1].sigterm()
        self.assertEqual(self.query(OTHER_SLOTS), [["0"]])
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1212564531"
        self.assertEqual(self.query(locks), [["1"]])
        self.start()
        self.assertEqual(self.query(locks), [["2"]])


if __name__ == "__main__":
    real.main()
