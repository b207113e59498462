"""serve --demo: the whole story without any adapter, and plainly labelled as a demo."""
import json
import time
import unittest

from lib import Case, cluster_input, eventually, guresid, nodepool_input, parse_time


class Demo(Case):
    FLAGS = ("--demo=1s",)

    def poll(self, method, gid, cookie, statuses):
        """Polls until the first status that is not 202; every one on the way is allowed."""
        def probe():
            answer = self.get(gid, cookie) if method == "GET" else self.delete(gid, cookie)
            self.assertIn(answer.status, statuses)
            return answer if answer.status != 202 else None
        return eventually(probe, "%s %s ends" % (method, gid), every_s=0.05)

    def test_whole_story(self):
        """PUT 202 ... 200, change 202 ... 200, DELETE 202 ... 204, all by the demo adapters."""
        gid = guresid("demo")
        body = cluster_input(nodepools=[{"name": "workers", "spec": {"replicas": 3}}])
        start = time.monotonic()
        cookie = self.expect(self.put(gid, body), 202).cookie
        self.assertEqual(self.poll("GET", gid, cookie, (200, 202)).status, 200)
        self.assertGreater(time.monotonic() - start, 0.5,
                           "the demo takes the time that was asked for")
        self.expect(self.put(gid, body, cookie), 200)
        body = cluster_input(spec={"region": "eu-2"},
                             nodepools=[{"name": "workers", "spec": {"replicas": 3}},
                                        {"name": "more"}])
        answer = self.expect(self.put(gid, body, cookie), 202)
        cookie = answer.cookie
        self.check_hint(answer.json, "updating")
        values = self.expect(self.poll("GET", gid, cookie, (200, 202)),
                             200).json["resource"]["values"]
        self.assertEqual(values["generation"], 2)
        self.assertIs(values["demo"], True)
        self.assertEqual(len(values["nodepools"]), 2)
        body = cluster_input(spec={"region": "eu-2"}, nodepools=[{"name": "more"}])
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        values = self.expect(self.poll("GET", gid, cookie, (200, 202)),
                             200).json["resource"]["values"]
        self.assertEqual([p["name"] for p in values["nodepools"]], ["more"])
        self.check_hint(self.expect(self.delete(gid, cookie), 202).json, "deleting")
        self.assertEqual(self.poll("DELETE", gid, cookie, (202, 204)).status, 204)
        self.expect(self.get(gid), 404)
        self.assertEqual(self.fleet.of(gid), ([], []))

    def test_ordinary_report_path(self):
        """The demo's reports are ordinary ones: every required adapter has a status, and the
        conditions follow.
        """
        gid = guresid("demo")
        cookie = self.expect(self.put(gid, cluster_input(nodepools=[{"name": "workers"}])),
                             202).cookie
        self.poll("GET", gid, cookie, (200, 202))
        clusters, pools = self.fleet.of(gid)
        for part in clusters + pools:
            items = {i["adapter"]: i
                     for i in self.client.get(part["href"] + "/statuses").json["items"]}
            self.assertEqual(set(items), set(self.fleet.required[part["kind"]]))
            for item in items.values():
                self.assertIn("demo", json.dumps(item).lower(),
                              "each report says that it is a demo")

    def test_labelled(self):
        """The log and what the platform sees say that it is a demo."""
        self.assertIn("demo", "\n".join(self.server.lines).lower())
        gid = guresid("demo")
        cookie = self.expect(self.put(gid, cluster_input()), 202).cookie
        answer = self.poll("GET", gid, cookie, (200, 202))
        statuses = self.client.get(self.fleet.cluster_of(gid)["href"]
                                   + "/statuses").body.decode().lower()
        self.assertIn("demo", answer.body.decode().lower() + statuses)

    def test_survives_a_kill(self):
        """A kill -9 in the middle: the demo goes on where it was, for a creation and for a
        deletion.
        """
        gid = guresid("demo")
        cookie = self.expect(self.put(gid, cluster_input(nodepools=[{"name": "workers"}])),
                             202).cookie
        self.restart()
        self.assertEqual(self.poll("GET", gid, cookie, (200, 202)).status, 200)
        self.expect(self.delete(gid, cookie), 202)
        self.restart()
        self.assertEqual(self.poll("DELETE", gid, cookie, (202, 204)).status, 204)

    def test_nodepool_of_its_own(self):
        """Nodepool resources are served too; deleting the cluster takes them along."""
        gid, np = guresid("demo"), guresid("demo-np")
        self.expect(self.put(gid, cluster_input()), 202)
        self.expect(self.put(np, nodepool_input(cluster_guresid=gid)), 202)
        self.assertEqual(self.poll("GET", np, None, (200, 202)).status, 200)
        self.expect(self.delete(gid), 202)
        self.assertEqual(self.poll("DELETE", gid, None, (202, 204)).status, 204)
        self.expect(self.delete(np), 204)

    def test_many_at_once(self):
        """Fifty resources come up together."""
        ids = [guresid("many") for _ in range(50)]
        for gid in ids:
            self.expect(self.put(gid, cluster_input(nodepools=[{"name": "workers"}])), 202)
        for gid in ids:
            self.assertEqual(self.poll("GET", gid, None, (200, 202)).status, 200)
        for gid in ids:
            self.expect(self.delete(gid), 202)
        for gid in ids:
            self.assertEqual(self.poll("DELETE", gid, None, (202, 204)).status, 204)


class NoDemo(Case):
    def test_off_by_default(self):
        """Without --demo there are no reports."""
        gid, _, _ = self.created()
        self.assertEqual(self.client.get(self.fleet.cluster_of(gid)["href"]
                                         + "/statuses").json["items"], [])
        self.assertFalse(any("demo" in str(r.get("msg", "")).lower()
                             for r in self.server.records()))


class Learning(Case):
    FLAGS = ("--demo=1s", "--driver-estimate-create=10m")

    def create(self):
        """Makes a resource and waits for it; answers what the first hint said of its duration, and
        when to ask.
        """
        gid = guresid("demo")
        answer = self.expect(self.put(gid, cluster_input()), 202)
        hint = answer.json
        eventually(lambda: self.get(gid).status == 200, "GET %s ends" % gid, every_s=0.05)
        expected = parse_time(hint["estimated_completion_time"]) - parse_time(hint["current_time"])
        return expected.total_seconds(), int(answer.header("Retry-After"))

    def test_one_operation_teaches_the_next(self):
        """The first creation is expected when the settings say; the next ones when the first ended,
        after a kill -9 too.
        """
        expected_s, retry_s = self.create()
        self.assertIn(int(expected_s), (600, 601))
        self.assertGreater(retry_s, 60)
        self.restart()
        for _ in range(2):
            expected_s, retry_s = self.create()
            self.assertLess(expected_s, 30)
            self.assertLess(retry_s, 10)


if __name__ == "__main__":
    unittest.main()
