"""The replicas of one PostgreSQL that live tell what is wrong with the others: /healthz, the
metric, `status`.
"""
import shutil
import tempfile

import real
import postgres
from lib import Client, Place, Server, eventually, run

LIMIT_S = 60
KILLED = "has given no sign of life, and did not say good-bye"
OLDER = "has older settings: restart it with the new ones"


class ReplicaProblems(real.unittest.TestCase):
    def setUp(self):
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.database.start()
        self.place = Place(tempfile.mkdtemp(prefix="hfd-problems-"),
                           base=self.database.url("postgres"))
        self.addCleanup(shutil.rmtree, self.place.folder, True)
        self.place.make()

    def start(self, *flags):
        server = Server(*flags, place=self.place)
        self.addCleanup(server.close)
        server.start()
        return server

    def told(self, server):
        """The words about replicas in /healthz."""
        ops = Client(server, ops=True)
        self.addCleanup(ops.close)
        return [p["message"] for p in ops.get("/healthz").json.get("problems", [])
                if p["kind"] == "replica"]

    def test_killed(self):
        """A replica that was killed is told, until its row goes or it is back."""
        first, second = self.start(), self.start()
        self.assertEqual(self.told(first), [])
        second.kill9()
        eventually(lambda: self.told(first) == [KILLED], "it is told", LIMIT_S)
        ops = Client(first, ops=True)
        self.addCleanup(ops.close)
        self.assertIn('hfd_problem{kind="replica"', ops.get("/metrics").body.decode())
        done = run("status", "--url", "http://127.0.0.1:%d" % first.port)
        self.assertIn(KILLED, done.stdout, done)

    def test_clock(self):
        """Signs of life and the lease have the time of the database, whatever this machine's is:
        here the database is an hour ahead."""
        self.place.sql("CREATE SCHEMA ahead")
        self.place.sql("CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql"
                       " AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$")
        self.place.sql("ALTER ROLE CURRENT_USER SET search_path = public, ahead, pg_catalog")
        self.start()
        times = self.place.sql("SELECT beat_us, (SELECT until_us FROM leader),"
                               " (extract(epoch FROM now()) * 1000000)::bigint FROM replica")
        beat_us, until_us, now_us = (int(v) for v in times[0])
        for at_us in (beat_us, until_us):
            self.assertLess(abs(at_us - now_us - 3600 * 10 ** 6), 300 * 10 ** 6, times)

    def test_older_settings(self):
        """A replica with newer settings makes the others old, until they are restarted."""
        first = self.start()
        self.start("--adapters-required-cluster", "dns,network")
        eventually(lambda: self.told(first) == [OLDER], "it is told", LIMIT_S)
        first.sigterm()
        again = self.start("--adapters-required-cluster", "dns,network")
        eventually(lambda: self.told(again) == [], "it is over", LIMIT_S)


if __name__ == "__main__":
    real.main()
