#!/usr/bin/env python3
"""The metrics that count what is stored, and the reports that decide nothing. Sources: HyperFleet
API, "Reconciliation Observability Metrics"; handlers/docs/metrics.md.
"""
import re
import time
import unittest

from lib import (BASE, Case, Client, Server, changed, cluster_input, eventually, guresid,
                 nodepool_input)

API = "hyperfleet_api_resource_pending_reconciliation"


class Metrics(Case):
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def sample(self, name, **labels):
        """The value of a sample; None if there is none."""
        for line in self.ops.get("/metrics").body.decode().splitlines():
            found = re.match(r"^(\w+)(?:\{(.*)\})? (\S+)$", line)
            if found and found.group(1) == name:
                has = dict(re.findall(r'(\w+)="([^"]*)"', found.group(2) or ""))
                if all(has.get(k) == v for k, v in labels.items()):
                    return float(found.group(3))
        return None

    def resources(self, state, type_="hyperfleet-cluster"):
        return self.sample("hfd_resources", type=type_, state=state)

    def hyperfleet(self, name, kind="cluster", deleting="false"):
        return self.sample(name, component="api", resource_type=kind, is_delete=deleting)


class Life(Metrics):
    FLAGS = ("--metrics-reconciliation-stuck-threshold", "1s")

    def test_a_life(self):
        """Each state has its number, at each step of a life; a restart changes none; what is gone
        is not counted.
        """
        gid, body = guresid(), cluster_input(nodepools=[{"name": "workers"}],
                                             type_="org/hyperfleet-cluster")
        started = "hyperfleet_api_reconciliation_started_total"

        def is_all(creating=0, updating=0, ready=0, deleting=0):
            self.assertEqual([self.resources(s) for s in ("creating", "updating", "ready",
                                                          "failed", "deleting")],
                             [creating, updating, ready, 0, deleting])
            self.assertEqual([self.hyperfleet(API, k, d) for k in ("cluster", "nodepool")
                              for d in ("false", "true")],
                             2 * [creating + updating, deleting])

        is_all()
        failed = [self.sample("hfd_resource_transitions_total", **{"from": s, "to": "failed"})
                  for s in ("creating", "updating", "deleting")]
        self.assertEqual(failed, [0, 0, 0], "an alert needs them")
        self.expect(self.put(gid, body), 202)
        is_all(creating=1)
        self.assertEqual([self.sample("hfd_resources_stuck", operation=o)
                          for o in ("create", "update", "delete")], [0, 0, 0])
        self.restart()
        is_all(creating=1)
        self.fleet.ready(gid)
        is_all(ready=1)
        self.assertEqual(self.hyperfleet(API + "_stuck"), 0)
        self.assertIsNone(self.hyperfleet(started), "nothing started since the restart")
        update = changed(body)
        update["driver"]["values"]["nodepools"][0]["spec"] = {"replicas": 7}
        self.expect(self.put(gid, update), 202)
        is_all(updating=1)
        self.assertEqual([self.hyperfleet(started, k) for k in ("cluster", "nodepool")], [1, 1])
        self.fleet.ready(gid)
        self.expect(self.delete(gid), 202)
        is_all(deleting=1)
        self.assertEqual(self.hyperfleet(started, deleting="true"), 1)
        self.fleet.finish_delete(gid)
        self.expect(self.get(gid), 404)
        is_all()
        self.assertEqual(self.hyperfleet(started), 1)

    def test_creations_start_too(self):
        """A new cluster counts as started; one that is deleted before it was ready does not count
        again.
        """
        def counts():
            return [self.hyperfleet("hyperfleet_api_reconciliation_started_total",
                                    deleting=d) or 0 for d in ("false", "true")]
        before, gid = counts(), guresid()
        self.expect(self.put(gid, cluster_input()), 202)
        self.expect(self.delete(gid), 202)
        self.assertEqual(counts(), [before[0] + 1, before[1]])
        self.fleet.finish_delete(gid)

    def test_stuck(self):
        """A cluster that is pending for longer than the threshold is stuck; the longest time is
        counted."""
        gid = guresid()
        self.expect(self.put(gid, cluster_input()), 202)
        eventually(lambda: self.hyperfleet(API + "_stuck") == 1, "stuck after 1 s")
        eventually(lambda: self.hyperfleet(API + "_stuck_duration_seconds") >= 2, "stuck for 2 s")
        self.assertGreaterEqual(self.sample("hfd_oldest_operation_seconds", operation="create"), 1)
        self.assertEqual(self.sample("hfd_oldest_operation_seconds", operation="update"), 0)
        self.fleet.ready(gid)
        self.assertEqual(self.hyperfleet(API + "_stuck"), 0)
        self.assertEqual(self.hyperfleet(API + "_stuck_duration_seconds"), 0)
        self.assertEqual(self.sample("hfd_oldest_operation_seconds", operation="create"), 0)
        self.expect(self.delete(gid), 202)
        self.fleet.finish_delete(gid)

    def test_types(self):
        """Types have their own numbers, also those of nodepools. A type that the settings do not
        name any more counts as other.
        """
        gid, pool = guresid(), guresid("p")
        self.expect(self.put(gid, cluster_input()), 202)
        self.expect(self.put(pool, nodepool_input(cluster_guresid=gid)), 202)
        self.assertEqual(self.resources("creating", "hyperfleet-nodepool"), 1)
        self.server.kill9()
        flags = self.server.flags
        self.server.flags = flags + ["--driver-types-nodepool", "pools"]
        self.addCleanup(setattr, self.server, "flags", flags)
        self.server.start()
        self.assertEqual(self.resources("creating", "other"), 1)
        self.assertEqual(self.resources("creating", "pools"), 0)
        self.assertIsNone(self.resources("creating", "hyperfleet-nodepool"))
        self.assertEqual(self.resources("creating"), 1)


class NotRequired(Metrics):
    def lines(self):
        return [r for r in self.server.records() if "is not required" in r["msg"]]

    def test_counted_and_logged_once(self):
        """Reports of an adapter that is not required are counted, and one line names those that
        are. Required adapters have neither.
        """
        gid = guresid()
        self.expect(self.put(gid, cluster_input(nodepools=[{"name": "workers"}])), 202)
        cluster, (pool,) = self.fleet.cluster_of(gid), self.fleet.of(gid)[1]
        for adapter in ("dns", "dsn", "dsn", "validation"):
            self.fleet.accepted(cluster, adapter)
        eventually(self.lines, "the line")
        self.fleet.accepted(pool, "dns")
        eventually(lambda: len(self.lines()) == 2, "the second line")
        self.assertEqual([(r["level"], r["msg"], r["adapter"]) for r in self.lines()], [
            ("warn", "adapter dsn reports and is not required; required: validation, dns; "
             "did you mean dns?", "dsn"),
            ("warn", "adapter dns reports and is not required; required: validation", "dns")])
        name = "hfd_reports_not_required_total"
        self.assertEqual(self.sample(name, adapter="dsn"), 2)
        self.assertEqual(self.sample(name, adapter="dns"), 1)
        self.assertIsNone(self.sample(name, adapter="validation"))

    def test_labels_are_bounded(self):
        """However many names report, there are at most 512 series; the rest counts as other."""
        gid = guresid()
        for n in range(3):
            self.expect(self.put(gid + str(n), cluster_input()), 202)
            cluster = self.fleet.cluster_of(gid + str(n))
            for i in range(200):
                self.fleet.accepted(cluster, "stranger-%d-%d" % (n, i))
        text = self.ops.get("/metrics").body.decode()
        found = re.findall(r"^hfd_reports_not_required_total\{(.*)\} ", text, re.M)
        self.assertEqual(len(found), 512)
        self.assertGreater(self.sample("hfd_reports_not_required_total", adapter="other"), 80)


class Remote(unittest.TestCase):
    def test_hyperfleets_own_are_absent(self):
        """With a remote HyperFleet, its own server has its metrics; ours counts resources."""
        with Server("--backend", "http://127.0.0.1:9") as server:
            ops = Client(server, ops=True)
            self.addCleanup(ops.close)
            Client(server).put("/" + guresid(), cluster_input())
            text = ops.get("/metrics").body.decode()
            self.assertIn('\nhfd_resources{type="hyperfleet-cluster",state="creating"} 1\n', text)
            self.assertNotRegex(text, "(?m)^" + API)


if __name__ == "__main__":
    unittest.main()
