"""Outcomes that settings decide: deadlines of each kind, terminal reasons of one
adapter; and how health is counted.
"""
import re
import unittest

from lib import Case, Client, cluster_input, guresid, nodepool_input, parse_time

CONFIG = ("driver:\n  terminal_reasons: [InvalidSpec, \"dns:NoZone\"]\n"
          "  deadline: {create: 50m, nodepool: {create: 20m}}\n"
          "  estimate.create: 12m\n")


class Times(Case):
    """Alone on its server, which has not learned anything yet."""

    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)
    CONFIG = CONFIG

    def seconds(self, hint, key):
        return (parse_time(hint[key]) - parse_time(hint["current_time"])).total_seconds()

    def test_times_of_each_kind(self):
        """A nodepool resource has the deadline set for nodepools; a cluster with nodepools has
        the one set for all.
        """
        gid, _, _ = self.created(cluster_input(nodepools=[{"name": "workers"}]))
        hint = self.expect(self.get(gid), 202).json
        self.assertAlmostEqual(self.seconds(hint, "timeout"), 3000, delta=60)
        self.assertAlmostEqual(self.seconds(hint, "estimated_completion_time"), 720, delta=360)
        self.fleet.ready(gid)
        pool = guresid("pool")
        self.expect(self.put(pool, nodepool_input(cluster_guresid=gid, name="gpu")), 202)
        hint = self.expect(self.get(pool), 202).json
        self.assertAlmostEqual(self.seconds(hint, "timeout"), 1200, delta=60)


class Outcome(Case):
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)
    CONFIG = CONFIG

    def test_terminal_in_one_mouth(self):
        """dns:NoZone ends an operation when dns reports it, not when another adapter does. A plain
        reason ends it from any adapter.
        """
        for adapter, reason, status in (("dns", "NoZone", 400), ("validation", "NoZone", 202),
                                        ("validation", "InvalidSpec", 400)):
            with self.subTest(adapter=adapter, reason=reason):
                gid, _, cookie = self.created()
                self.fleet.accepted(self.fleet.cluster_of(gid), adapter, available=False,
                                    reason=reason)
                self.expect(self.get(gid, cookie), status, "RES-104" if status == 400 else None)

    def test_the_hint_says_what_it_waits_for(self):
        """GET, a repeated PUT and DELETE have the same words, and a 409 ends with them. They change
        with the news only, and an adapter that is not required decides nothing.
        """
        body = cluster_input()
        gid, _, cookie = self.created(body)
        cluster = self.fleet.cluster_of(gid)

        def says(*words):
            """The messages of GET, PUT and 409, each asked for twice."""
            said = {self.expect(answer, status).json["message"].split("Present state: ")[-1]
                    for answer, status in
                    2 * [(self.get(gid), 202), (self.put(gid, body, cookie), 202),
                         (self.put(gid, dict(body, resource={"x": 1}), cookie), 409)]}
            self.assertEqual(len(said), 1, said)
            # Another test may have taught the server what is usual.
            said = {re.sub(r", usually \d+ (s|min)", "", min(said))}
            for word in words:
                self.assertIn(word, min(said))
            return min(said)

        self.assertEqual(says(), "waits for validation (has not reported), and dns (has not "
                                 "reported); 0 of 2 adapters are done")
        self.fleet.accepted(cluster, "validation")
        self.fleet.accepted(cluster, "dns", available=False, reason="WaitingForDelegation",
                            message="zone \u00e4 is not\n delegated.",
                            data={"secrets": {"token": "c4nary"}})
        first = says()
        self.assertRegex(first, r"^waits for dns since \d\d:\d\dZ \(WaitingForDelegation: zone "
                                "\u00e4 is not  delegated\\); 1 of 2 adapters is done$")
        self.fleet.accepted(cluster, "dns", available=False, reason="WaitingForDelegation",
                            message="zone \u00e4 is not\n delegated.")
        self.assertEqual(says(), first, "the same report is no news")
        self.fleet.accepted(cluster, "dsn", available=False, reason="InvalidSpec", message="no")
        says("adapter dsn, which is not required, gave up (InvalidSpec: no)")
        self.assertEqual(self.expect(self.delete(gid), 202).json["message"],
                         self.expect(self.get(gid), 202).json["message"])
        (cluster,), _ = self.fleet.of(gid)
        self.fleet.accepted(cluster, "validation", available=False, finalized=True)
        message = self.expect(self.delete(gid), 202).json["message"]
        self.assertIn("1 of 2 adapters is done", message)
        self.assertTrue(message.startswith("waits for dns"), message)

    def changes(self, ops, to):
        text = ops.get("/metrics").body.decode("utf-8")
        found = re.search(r'^hfd_resource_health_changes_total\{to="%s"\} ([0-9]+)$' % to, text,
                          re.M)
        return int(found.group(1)) if found else 0

    def test_degraded_and_well_again_is_counted(self):
        """Degraded counts once, however often it is reported, and so does becoming well again; the
        answer stays 200.
        """
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        gid, _, cookie = self.brought_ready()
        before = self.changes(ops, "degraded"), self.changes(ops, "recovered")
        cluster = self.fleet.cluster_of(gid)
        for message in ("gone", "still gone"):
            self.fleet.accepted(cluster, "dns", available=False, reason="ZoneLost", message=message)
            values = self.expect(self.get(gid, cookie), 200).json["resource"]["values"]
            self.assertEqual((values["health"], values["health_reason"]), ("Degraded", "ZoneLost"))
        self.fleet.accepted(cluster, "dns")
        self.assertEqual(self.expect(self.get(gid, cookie),
                                     200).json["resource"]["values"]["health"], "Healthy")
        self.assertEqual((self.changes(ops, "degraded"), self.changes(ops, "recovered")),
                         (before[0] + 1, before[1] + 1))


if __name__ == "__main__":
    unittest.main()
