"""Groups of jobs on PostgreSQL: two round trips for each, and no read of its own."""
import concurrent.futures
import json
import os
import re
import tempfile
import time
import unittest
import urllib.request

import real
import postgres

BODY = {"type": "hyperfleet-cluster", "driver": {"values": {
    "cluster": {"name": "cluster-%s", "spec": {"region": "eu-1"}},
    "nodepools": [{"name": "workers", "spec": {"replicas": 3}}]}}}
CONDITIONS = [{"type": t, "status": "True"} for t in ("Applied", "Available", "Health")]
TIMES = 4
BASE = "/api/hyperfleet/v1/clusters"


class Store(real.lib.Server):
    """`serve` on a PostgreSQL: it has no data folder."""

    def __init__(self, url, keys):
        super().__init__("--store", url, "--keys", keys)

    def command(self):
        argv = super().command()
        at = argv.index("--data")
        return argv[:at] + argv[at + 2:]


class RoundTrips(unittest.TestCase):
    def setUp(self):
        self.began = time.time() - 60
        self.postgres = postgres.Postgres()
        self.addCleanup(self.postgres.close)
        self.postgres.start()
        keys = os.path.join(tempfile.mkdtemp(prefix="hfd-rt-"), "keys")
        done = real.subprocess.run([real.lib.program(), "keygen", "--keys", keys],
                                   capture_output=True, check=False,
                                   env=real.lib.clean_env(None))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.server = Store(postgres.url(self.postgres.port), keys)
        self.addCleanup(self.server.close)
        self.server.start()
        self.client = real.lib.Client(self.server)
        self.addCleanup(self.client.close)

    def trips(self):
        """Round trips and commits so far."""
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.server.ops_port) as a:
            text = a.read().decode()
        found = dict(re.findall(r'^hfd_store_round_trips_total\{for="(\w+)"\} (\d+)', text, re.M))
        found["commits"] = re.search(r"^hfd_store_commits_total (\d+)", text, re.M).group(1)
        return {k: int(v) for k, v in found.items()}

    def send(self, method, path, body=None, least=200):
        """One request; its document."""
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (self.server.port, path), method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertGreaterEqual(answer.status, least)
            text = answer.read()
        return json.loads(text) if text else None

    def put(self, name):
        return self.send("PUT", "/" + name * 16, json.loads(json.dumps(BODY) % name), 202)

    def report(self, path, adapter, when):
        """when -- seconds after a time in the past"""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began + when))
        return self.send("POST", path + "/statuses", {
            "adapter": adapter, "observed_generation": 1, "observed_time": at,
            "conditions": CONDITIONS}, 201)

    def measure(self, work, times):
        """The cost of `times` requests, each a group of its own."""
        before = self.trips()
        work()
        after = self.trips()
        cost = {k: after[k] - before.get(k, 0) for k in after}
        cost["others"] = cost["commits"] - times  # jobs of the program's own
        return cost

    def check(self, what, cost, times):
        """Two for each group. The program's own few jobs may read once more, and some of them
        commit nothing: less than one more for each of ours."""
        self.assertGreaterEqual(cost["others"], 0, what)
        spare = 4 * cost["others"] + 4
        self.assertLessEqual(cost.get("miss", 0), spare, "%s: %s" % (what, cost))
        self.assertLessEqual(cost.get("write", 0), spare, "%s: %s" % (what, cost))
        self.assertLessEqual(cost["look"], times + spare, "%s: %s" % (what, cost))
        self.assertLessEqual(cost["commit"], times + spare, "%s: %s" % (what, cost))

    def test_sums_in_order(self):
        """Sums are written in the order of their keys, so that groups lock them in one order."""
        self.put("a")
        rows = self.postgres.query("SELECT kind, field, name, value FROM fleet_count ORDER BY ctid")
        self.assertGreater(len(rows), 4, rows)
        self.assertEqual(rows, sorted(rows, key=lambda r: (int(r[0]), int(r[1]), r[2], r[3])))

    def test_two(self):
        self.put("a")  # what groups usually read is known after it
        names = "bcdefg"
        self.check("PUT", self.measure(lambda: [self.put(n) for n in names], 6), 6)
        items = self.send("GET", BASE + "?pageSize=100")["items"]
        paths = [BASE + "/" + i["id"] for i in items]
        self.report(paths[0], "dns", 0)
        for what, when in (("first report", 1), ("confirming report", 2)):
            self.check(what, self.measure(
                lambda w=when: [self.report(p, "validation", w) for p in paths],
                len(paths)), len(paths))
        nodepools = [path + "/nodepools/" + self.send("GET", path + "/nodepools")["items"][0]["id"]
                     for path in paths]
        self.report(nodepools[0], "dns", 0)
        for what, when in (("first report of a nodepool", 3), ("confirming one", 4)):
            self.check(what, self.measure(
                lambda w=when: [self.report(p, "validation", w) for p in nodepools],
                len(nodepools)), len(nodepools))
        self.send("DELETE", "/" + "a" * 16, None, 202)
        self.check("DELETE", self.measure(
            lambda: [self.send("DELETE", "/" + n * 16, None, 202) for n in names], 6), 6)
        self.check("GET", self.measure(
            lambda: [self.send("GET", "/" + n * 16) for n in names], 0), 0)

    def get(self, gid, status):
        """A GET; its status is as expected."""
        answer = self.client.request("GET", "/" + gid)
        self.assertEqual(answer.status, status, gid)

    def check_get(self, what, gid, status):
        """GETs one after the other: one round trip for each, and none behind it."""
        for _ in range(5):  # the program's own jobs may read meanwhile
            cost = self.measure(lambda: [self.get(gid, status) for _ in range(TIMES)], 0)
            if cost.get("read", 0) == TIMES and cost.get("miss", 0) == 0:
                break
        self.assertEqual(cost.get("read", 0), TIMES, "%s: %s" % (what, cost))
        self.assertLessEqual(cost.get("miss", 0), 4 * cost["others"], "%s: %s" % (what, cost))

    def test_get(self):
        """In each state: of a cluster with a nodepool, and of a nodepool of its own."""
        fleet = real.lib.Fleet(self.client)
        pool = real.lib.nodepool_input(cluster_guresid="c" * 16)
        self.put("c")
        self.check_get("creating cluster", "c" * 16, 202)
        fleet.ready("c" * 16)
        self.check_get("ready cluster", "c" * 16, 200)
        self.send("PUT", "/" + "p" * 16, pool, 202)
        self.check_get("creating nodepool", "p" * 16, 202)
        fleet.ready("p" * 16)
        self.check_get("ready nodepool", "p" * 16, 200)
        self.check_get("absent", "n" * 16, 404)
        self.assertEqual(self.server.sigterm(), 0)
        self.server.flags += ["--driver-deadline-create", "1s"]
        self.server.start()
        self.put("d")
        self.send("PUT", "/" + "q" * 16, real.lib.nodepool_input(cluster_guresid="c" * 16), 202)
        for gid in ("d" * 16, "q" * 16):
            real.lib.eventually(
                lambda g=gid: self.client.request("GET", "/" + g).status == 400,
                gid + " fails", 60)
            # Until its failure is stored, a GET reads what it failed on.
            real.lib.eventually(
                lambda g=gid: self.measure(lambda: self.get(g, 400), 0).get("read") == 1,
                gid + " is stored as failed", 60)
            self.check_get("failed " + gid, gid, 400)
        self.send("DELETE", "/" + "p" * 16, None, 202)
        self.check_get("deleting nodepool", "p" * 16, 202)
        self.send("DELETE", "/" + "d" * 16, None, 202)
        self.check_get("deleting cluster", "d" * 16, 202)

    def test_together(self):
        """Reports of several adapters on one cluster and its nodepool, in one group or few."""
        adapters = ("dns", "pullsecret", "hypershift", "validation")
        for name in "abcd":
            self.put(name)
        paths = [BASE + "/" + i["id"] for i in self.send("GET", BASE + "?pageSize=100")["items"]]
        paths += [p + "/nodepools/" + self.send("GET", p + "/nodepools")["items"][0]["id"]
                  for p in paths]
        self.report(paths[0], "dns", 0)
        with concurrent.futures.ThreadPoolExecutor(len(paths) * len(adapters)) as pool:
            costs = [self.measure(lambda w=when: list(pool.map(
                lambda job: self.report(*job, w),
                [(p, a) for p in paths for a in adapters])), 0) for when in range(1, 6)]
        # In the first one resources become ready. In others the program's own jobs may read, too.
        self.assertEqual(min(cost.get("miss", 0) for cost in costs[1:]), 0, costs)
        self.assertLess(min(cost["commits"] for cost in costs[1:]), len(paths) * len(adapters),
                        costs)

    def rows(self):
        """Counts of PostgreSQL, which has all of them when the server has stopped."""
        self.server.sigterm()
        found = self.postgres.query(
            "SELECT sum(n_tup_hot_upd) FILTER (WHERE relname = 'fleet'),"
            " sum(n_tup_upd) FILTER (WHERE relname = 'fleet'),"
            " sum(idx_tup_fetch) FILTER (WHERE relname IN ('part', 'resource'))"
            " FROM pg_stat_user_tables")[0]
        self.server.start()
        return [int(v) for v in found]

    def test_confirming(self):
        """Reports that confirm what a ready resource has: rows stay in their page, and nothing of
        the resource is read."""
        self.put("a")
        cluster = BASE + "/" + self.send("GET", BASE)["items"][0]["id"]
        pool = cluster + "/nodepools/" + self.send("GET", cluster + "/nodepools")["items"][0]["id"]
        pairs = [(path, adapter) for path, adapters in (
            (cluster, ("dns", "pullsecret", "hypershift", "validation")),
            (pool, ("hypershift", "validation"))) for adapter in adapters]
        for when in (1, 2):
            for path, adapter in pairs:
                self.report(path, adapter, when)
        self.send("GET", "/" + "a" * 16)
        self.assertEqual(self.postgres.query("SELECT count(*) FROM fleet WHERE told <> 0"), [["2"]])
        before = self.rows()
        for when in range(3, 13):
            for path, adapter in pairs:
                self.report(path, adapter, when)
        hot, updated, fetched = (b - a for a, b in zip(before, self.rows()))
        self.assertGreaterEqual(updated, 10)
        self.assertGreaterEqual(hot, updated * 5 // 6, "of %d" % updated)
        self.assertLess(fetched, 5 * 10 * len(pairs), "those that find the roots")


if __name__ == "__main__":
    real.main()
