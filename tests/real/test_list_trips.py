"""A page of a list is a few statements on PostgreSQL, however many rows it has. PostgreSQL's log
says how many there were.
"""
import collections
import os
import re
import shutil
import tempfile

import real
import postgres
from lib import BASE, Client, Place, Server, cluster_input, guresid

ROWS = 30
CONDITIONS = [{"type": t, "status": "True", "reason": "R", "message": "m"}
              for t in ("Available", "Applied", "Health")]
POOL = [{"name": "pool", "spec": {"replicas": 1}}]
# A path, and the most statements of a GET. BEGIN and ROLLBACK are two of them.
# {0} is a GUResID, {1} the path of its cluster.
MOST = (
    # The first page also has the cursor of the events.
    (BASE + "/clusters?pageSize=30", 6),
    (BASE + "/clusters?pageSize=15&page=2", 5),
    (BASE + "/clusters?pageSize=30&orderBy=name", 6),
    (BASE + "/clusters?pageSize=30&fields=id", 6),
    (BASE + "/clusters?pageSize=30&search=status.conditions.Ready%3D%27False%27", 6),
    (BASE + "/nodepools?pageSize=30", 6),
    (BASE + "/events?after=0", 6),
    ("{1}", 3),
    ("{1}/nodepools", 7),
    ("{1}/statuses", 5),
    ("/{0}", 3),
    ("/api/driver/v1/resources", 8),
    ("/api/driver/v1/resources/{0}", 10),
    ("/api/driver/v1/events", 10),
    ("/api/driver/v1/problems", 0),
)
PAGES = (("/", 65), ("/r/{0}", 10), ("/admin/replicas", 4), ("/metrics", 9), ("/healthz", 0),
         ("/readyz", 0), ("/livez", 0))


class ListTrips(real.unittest.TestCase):
    def setUp(self):
        self.database = postgres.Postgres(settings=["log_min_duration_statement = 0",
                                                    "log_line_prefix = '%p '"])
        self.addCleanup(self.database.close)
        self.database.start()
        self.place = Place(tempfile.mkdtemp(prefix="hfd-trips-"),
                           base=self.database.url("postgres"))
        self.addCleanup(shutil.rmtree, self.place.folder, True)
        self.place.make()
        server = Server(place=self.place)
        self.addCleanup(server.close)
        server.start()
        self.client, self.ops = Client(server), Client(server, ops=True)
        self.addCleanup(self.client.close)
        self.addCleanup(self.ops.close)

    def statements(self, client, path):
        """The statements of the session that ran most of them during a GET: others are the
        program's own.
        """
        at = os.path.getsize(self.database.log)
        answer = client.get(path)
        self.assertEqual(answer.status, 202 if path.startswith("/trip") else 200, answer)
        with open(self.database.log, encoding="utf-8", errors="replace") as log:
            log.seek(at)
            ran = collections.Counter(
                line.split()[0] for line in log if re.search("execute|statement:", line))
        return max(ran.values(), default=0)

    def check(self, client, path, most):
        """One of a few tries is not disturbed by the program's own work."""
        found = min(self.statements(client, path) for _ in range(4))
        self.assertLessEqual(found, most, path)

    def test_pages(self):
        names = [guresid("trip") for _ in range(ROWS)]
        for name in names:
            self.assertEqual(self.client.put("/" + name, cluster_input(nodepools=POOL)).status, 202)
        clusters = [c["href"] for c in
                    self.client.get(BASE + "/clusters?pageSize=100").json["items"]]
        for href in clusters:
            self.assertEqual(self.client.post(href + "/statuses", {
                "adapter": "dns", "observed_generation": 1, "conditions": CONDITIONS,
                "observed_time": "2026-01-01T00:00:00Z"}).status, 201)
        for path, most in MOST:
            with self.subTest(path):
                self.check(self.client, path.format(names[0], clusters[0]), most)
        for path, most in PAGES:
            with self.subTest(path):
                self.check(self.ops, path.format(names[0]), most)


if __name__ == "__main__":
    real.main()
