"""GET /api/driver/v1: the list of driver resources, one in full, and the event feed."""
import unittest

import pacemaker
from lib import Case, cluster_input, eventually, guresid, nodepool_input, parse_time

API = "/api/driver/v1"


class Overview(Case):
    FLAGS = ("--adapters-pacemaker", "pacemaker")
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    def order(self, name, labels=None, **kw):
        gid = guresid(name)
        self.assertEqual(self.put(gid, cluster_input(name=gid, labels=labels or {}, **kw)).status,
                         202)
        return gid

    def ask(self, path, status=200, **headers):
        answer = self.client.get(API + path, headers=headers)
        self.assertEqual(answer.status, status, answer)
        return answer

    def ids(self, query=""):
        page = self.ask("/resources?search=%s%s" % (self.mark, query)).json
        return [i["id"] for i in page["items"]]

    def setUp(self):
        super().setUp()
        self.mark = guresid("mark")

    # Members as documented; null where there is nothing.
    def test_an_item(self):
        gid = self.order("item", {"team": self.mark, "app": "shop"})
        item, = self.ask("/resources?search=" + self.mark).json["items"]
        self.assertEqual(set(item), {"id", "type", "name", "state", "operation", "since",
                                     "estimated_completion_time", "deadline", "message", "who",
                                     "reason", "words", "code", "stuck", "health", "drift_count",
                                     "labels", "cluster_id"})
        self.assertEqual((item["id"], item["name"], item["state"], item["operation"]),
                         (gid, gid, "creating", "create"))
        self.assertEqual(item["labels"], {"team": self.mark, "app": "shop"})
        self.assertEqual(item["cluster_id"], self.fleet.cluster_of(gid)["id"])
        self.assertLess(parse_time(item["since"]), parse_time(item["deadline"]))
        self.assertIn("waits for", item["message"])
        self.assertEqual((item["who"], item["reason"], item["words"]),
                         ("validation", "NotReported", "has not reported"))
        self.assertIsNone(item["health"])
        self.fleet.ready(gid)
        item, = self.ask("/resources?search=" + self.mark).json["items"]
        self.assertEqual((item["state"], item["health"]), ("ready", "Healthy"))
        for name in ("operation", "deadline", "estimated_completion_time", "message"):
            self.assertIsNone(item[name])

    # Each resource that failed, or is degraded, is found by its cause; the causes are counted.
    def test_causes(self):
        one, two, ill, _ = (self.order("cause", {"team": self.mark}) for _ in range(4))
        for gid in (one, two):
            self.fleet.accepted(self.fleet.cluster_of(gid), "dns", available=False,
                                reason="QuotaExceeded", message="no cores are left.")
        self.fleet.ready(ill)
        self.fleet.accepted(self.fleet.cluster_of(ill), "dns", available=False, reason="ZoneLost")
        page = self.ask("/resources?search=" + self.mark).json
        self.assertEqual([(c["trouble"], c["who"], c["reason"], c["count"])
                          for c in page["causes"]],
                         [("failed", "dns", "QuotaExceeded", 2),
                          ("degraded", "dns", "ZoneLost", 1)])
        self.assertEqual((page["items"][0]["code"], page["items"][0]["words"]),
                         ("RES-104", "no cores are left"))
        self.assertEqual(self.ids("&who=dns"), [one, two, ill])
        self.assertEqual(self.ids("&who=dns&reason=QuotaExceeded"), [one, two])
        self.assertEqual(self.ids("&degraded=true"), [ill])
        for query in ("who=dns&who=x", "degraded=1"):
            self.ask("/resources?" + query, 400)

    def test_filters_and_pages(self):
        made = [self.order("page", {"team": self.mark, "n": str(i % 2)}) for i in range(5)]
        self.fleet.ready(made[0])
        self.assertEqual(self.ids("&order=created"), made[::-1])
        self.assertEqual(self.ids("&state=ready"), made[:1])
        self.assertEqual(self.ids("&state=ready&state=creating&order=name"), sorted(made))
        self.assertEqual(self.ids("&label=n%3D1"), [made[1], made[3]])
        self.assertEqual(self.ids("&label=n=1&label=team=" + self.mark), [made[1], made[3]])
        self.assertEqual(self.ids("&label=n=2"), [])
        self.assertEqual(self.ids("&stuck=true"), [])
        self.assertEqual(self.ids(), made[1:] + made[:1])
        seen, query = [], "/resources?size=2&search=" + self.mark
        page = self.ask(query).json
        self.assertEqual(page["counts"], {"creating": 4, "updating": 0, "ready": 1, "failed": 0,
                                          "deleting": 0})
        while True:
            seen += [i["id"] for i in page["items"]]
            if page["next"] is None:
                break
            page = self.ask(query + "&after=" + page["next"]).json
        self.assertEqual(seen, made[1:] + made[:1])

    def test_bad_parameters_are_named(self):
        for query, field in (("foo=1", "foo"), ("state=odd", "state"), ("state=", "state"),
                             ("size=0", "size"), ("size=501", "size"), ("size=x", "size"),
                             ("label=x", "label"), ("label==x", "label"), ("stuck=1", "stuck"),
                             ("order=x", "order"), ("after=x", "after"), ("after=", "after"),
                             ("size=1&size=2", "size"), ("%zz=1", "")):
            problem = self.ask("/resources?" + query, 400).json
            self.assertIn(field, problem["detail"], query)
        for query, field in (("after=x", "after"), ("state=ready", "state"), ("after=-1", "after")):
            self.assertIn(field, self.ask("/events?" + query, 400).json["detail"], query)

    def test_a_resource(self):
        gid = self.order("whole", {"app": "shop", "env": "dev"})
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "validation")
        self.fleet.accepted(cluster, "dns", available=False)
        doc = self.ask("/resources/" + gid).json
        self.assertEqual((doc["state"], doc["operation"], doc["stuck"]),
                         ("creating", "create", False))
        self.assertEqual((doc["ordered_by"]["app"], doc["ordered_by"]["env"]), ("shop", "dev"))
        self.assertTrue(doc["ordered_by"]["identity"])
        self.assertEqual(doc["parts"][0]["id"], cluster["id"])
        self.assertEqual([(a["adapter"], a["done"]) for a in doc["adapters"]
                          if a["kind"] == "cluster"], [("validation", True), ("dns", False)])
        self.assertEqual([e["event"] for e in doc["history"]], ["create"])
        self.fleet.ready(gid)
        self.assertEqual(self.put(gid, doc["input"]).status, 200, "the input is the order")
        self.fleet.accepted(cluster, "pacemaker",
                            data={"pacemakerCluster": pacemaker.lost_fencing(pacemaker.document())})
        doc = self.ask("/resources/" + gid).json
        self.assertEqual(doc["health"], "Degraded")
        nodes = doc["pacemaker"][0]["document"]["health"]
        self.assertEqual(nodes["overall"], "Error", nodes)
        self.ask("/resources/none", 404)

    def test_no_secrets(self):
        gid = guresid("secret")
        body = cluster_input(name=gid)
        body["driver"]["secrets"] = {"account": "hush-hush"}
        self.assertEqual(self.put(gid, body).status, 202)
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "dns", data={"secrets": {"kubeconfig": "hush-hush"}})
        self.assertNotIn("hush", repr(self.ask("/resources/" + gid).body))

    def test_a_nodepool_resource(self):
        owner = self.order("owner")
        gid = guresid("pool")
        body = nodepool_input(self.fleet.cluster_of(owner)["id"])
        self.assertEqual(self.put(gid, body).status, 202)
        doc = self.ask("/resources/" + gid).json
        self.assertEqual(doc["parts"][0]["kind"], "nodepool")
        self.assertEqual(doc["input"]["driver"]["values"]["cluster_id"],
                         self.fleet.cluster_of(owner)["id"])

    # The history outlives the resource, and a new life goes on with it.
    def test_removed(self):
        gid = self.order("gone")
        self.fleet.ready(gid)
        self.delete(gid)
        self.fleet.finish_delete(gid)
        self.assertEqual(self.get(gid).status, 404)
        doc = self.ask("/resources/" + gid).json
        self.assertEqual((doc["state"], doc["input"]), ("absent", None))
        events = ["create", "ready", "delete", "removed"]
        self.assertEqual([e["event"] for e in doc["history"]], events)
        self.server.restart()
        self.assertEqual(self.ask("/resources/" + gid).json, doc)
        self.put(gid, cluster_input(name=gid))
        doc = self.ask("/resources/" + gid).json
        self.assertEqual([e["event"] for e in doc["history"]], events + ["create"])
        self.assertEqual(len({e["instance"] for e in doc["history"]}), 2)

    def test_the_feed(self):
        start = self.ask("/events?size=500").json
        while start["items"]:
            start = self.ask("/events?size=500&after=" + start["next"]).json
        query = "/events?after=" + start["next"]
        answer = self.ask(query)
        tag = answer.header("ETag")
        self.assertEqual(answer.json["items"], [])
        self.ask(query, 304, **{"If-None-Match": tag})
        one, two = self.order("feed"), self.order("feed")
        self.fleet.ready(one)
        answer = self.feed(query, 3, **{"If-None-Match": tag})
        self.assertEqual([(e["resource"], e["event"], e["to"]) for e in answer.json["items"]],
                         [(one, "create", "creating"), (two, "create", "creating"),
                          (one, "ready", "ready")])
        self.assertTrue(answer.json["complete"])
        first = self.feed(query + "&size=1", 1).json
        rest = self.feed("/events?after=" + first["next"], 2)
        self.assertEqual(rest.json["items"], answer.json["items"][1:])

    def feed(self, query, count, **headers):
        """The feed, when it has so many entries. On PostgreSQL it may end early for a moment, even
        before entries that it had: while a transaction ends.
        """
        def whole():
            answer = self.client.get(API + query, headers=headers)
            self.assertIn(answer.status, (200, 304), answer)
            return answer if answer.status == 200 and len(answer.json["items"]) == count else None
        return eventually(whole, "the feed has %d entries" % count)

    def test_methods(self):
        for path in ("/resources", "/resources/x", "/events"):
            answer = self.client.request("POST", API + path, {})
            self.assertEqual(answer.status, 405)
            self.assertEqual(answer.header("Allow"), "GET, HEAD")
            self.assertEqual(self.client.request("HEAD", API + path).status,
                             404 if path.endswith("x") else 200)
        self.assertEqual(self.client.get(API).status, 404)


if __name__ == "__main__":
    unittest.main()
