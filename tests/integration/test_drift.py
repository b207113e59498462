"""Drift: a resource that is not as it was ordered any more is told, mended by the same PUT, and
mended by itself with driver.drift=repair.
"""
import copy
import random
import re
import unittest

import lib
from lib import BASE, Case, cluster_input, eventually, guresid

ORDER = {"region": "eu", "size": 3, "taints": [{"key": "a", "value": "b"}],
         "net": {"cidr": "10.0.0.0/8", "zones": ["a", "b"]}}
POOLS = [{"name": "workers", "spec": {"replicas": 2}, "labels": {"tier": "low"}},
         {"name": "big", "spec": {"replicas": 1}}]
FEED = "/api/driver/v1/events"


class DriftCase(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def ready_one(self, spec=None, pools=POOLS, labels=None):
        self.body = cluster_input(name=guresid("c"), spec=spec or ORDER, nodepools=pools,
                                  labels=labels or {"team": "shop"})
        self.gid, _, self.cookie = self.brought_ready(self.body)
        return self.fleet.cluster_of(self.gid)

    def pool(self, name):
        return next(p for p in self.fleet.of(self.gid)[1]
                    if p["name"] == name and "deleted_time" not in p)

    def change(self, part, spec=None, labels=None, by="mallory"):
        """Changes fields of a part behind the driver's back: None removes one."""
        part = self.fleet.get(part)
        body = {}
        for name, fields in (("spec", spec), ("labels", labels)):
            if fields is not None:
                body[name] = {k: v for k, v in {**part[name], **fields}.items() if v is not None}
        answer = self.client.patch(part["href"], body)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def values(self):
        answer = self.expect(self.get(self.gid, self.cookie), 200)
        self.check_output(answer.json, self.gid)
        return answer.json["resource"]["values"]

    def told(self):
        """{field: (ordered, found)} as GET tells it; None = a side that is not told."""
        values = self.values()
        items = values.get("drift", [])
        self.assertEqual("drift" in values, "drift_count" in values)
        self.assertEqual(min(values.get("drift_count", 0), 20), len(items))
        for item in items:
            self.assertIn("by", item)
            lib.parse_time(item["since"])
        return {i["field"]: (i.get("ordered"), i.get("found")) for i in items}

    def words(self):
        """The words of its history."""
        doc = self.client.get("/api/driver/v1/resources/" + self.gid).json
        return [e["event"] for e in doc["history"]]

    def item(self):
        return self.client.get("/api/driver/v1/resources?search=" + self.gid).json["items"][0]

    def drifted(self):
        """The GUResIDs of the list of those that drifted."""
        page = self.client.get("/api/driver/v1/resources?drift=true").json
        return [i["id"] for i in page["items"]]

    def metric(self):
        client = lib.Client(self.server, ops=True)
        self.addCleanup(client.close)
        text = client.get("/metrics").body.decode()
        return int(re.search("^hfd_resources_drifted ([0-9]+)$", text, re.M)[1])

    def validated(self):
        return self.client.post("/validate?id=" + self.gid, self.body).json


class Told(DriftCase):
    def test_each_kind_of_field(self):
        cluster = self.ready_one()
        self.assertEqual(self.told(), {})
        before = self.get(self.gid).header("ETag")
        self.change(cluster, {"region": "us", "size": None, "taints": [{"key": "z", "value": "b"}],
                              "net": {"cidr": "10.0.0.0/8", "zones": ["a"]}}, {"team": "crew"})
        self.change(self.pool("workers"), {"replicas": 99}, {"tier": None})
        want = {"cluster.spec.region": ("eu", "us"), "cluster.spec.size": (3, None),
                "cluster.spec.taints[0].key": ("a", "z"),
                "cluster.spec.net.zones": (["a", "b"], ["a"]),
                "cluster.labels.team": ("shop", "crew"),
                "nodepools[workers].spec.replicas": (2, 99),
                "nodepools[workers].labels.tier": ("low", None)}
        self.assertEqual(self.told(), want)
        self.assertEqual(self.item()["drift_count"], len(want))
        self.assertIn(self.gid, self.drifted())
        self.assertEqual(self.metric(), len(self.drifted()))
        self.assertEqual(self.words()[-2:], ["drifted", "drifted"])
        self.assertEqual(self.values()["drift"][0]["by"], "system@hyperfleet.local")
        etag = self.get(self.gid).header("ETag")
        self.assertNotEqual(etag, before)
        held = {"If-None-Match": etag}
        self.assertEqual(self.client.get("/" + self.gid, headers=held).status, 304)

        fields = {f: v for p in self.validated()["changes"] for f, v in
                  ((p["kind"] + "." + f, 1) for f in p["fields"])}
        self.assertEqual(self.validated()["action"], "update")
        self.assertIn("cluster.spec.region", fields)
        answer = self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.check_hint(answer.json, "updating")
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        answer = self.expect(self.put(self.gid, self.body, self.cookie), 200)
        self.assertEqual(answer.cookie, self.cookie, "the cookie does not move")
        self.assertEqual(self.told(), {})
        self.assertEqual(self.words()[-1], "mended")
        self.assertEqual(self.fleet.get(cluster)["spec"], ORDER)
        self.assertNotIn(self.gid, self.drifted())
        self.assertEqual(self.validated()["action"], "none")

    def test_what_is_no_drift(self):
        """Fields that the order does not name, numbers in another form, the driver's labels."""
        cluster = self.ready_one()
        self.change(cluster, {"more": 1, "size": 3.0, "net": {"cidr": "10.0.0.0/8",
                                                             "zones": ["a", "b"], "dns": "x"},
                              "taints": [{"key": "a", "value": "b", "effect": "x"}]}, {"own": "y"})
        self.assertEqual(self.told(), {})
        self.assertEqual(self.words()[-1], "ready")
        self.expect(self.put(self.gid, self.body, self.cookie), 200)
        self.assertEqual(self.fleet.get(cluster)["generation"], 2, "nothing was written")

    def test_mended_by_hand(self):
        cluster = self.ready_one()
        self.change(cluster, {"region": "us"})
        since = self.values()["drift"][0]["since"]
        self.change(cluster, {"size": 4})
        self.assertEqual(set(self.told()), {"cluster.spec.region", "cluster.spec.size"})
        self.assertEqual(self.values()["drift"][0]["since"], since)
        self.change(cluster, {"region": "asia"})
        self.assertEqual(self.told()["cluster.spec.region"], ("eu", "asia"))
        self.change(cluster, {"size": 3})
        self.change(cluster, {"region": "eu"})
        self.assertEqual(self.told(), {})
        self.assertEqual(self.words()[-4:], ["drifted", "drifted", "drifted", "mended"])

    def test_during_an_operation(self):
        """Changes by others meanwhile are found at its end; a stranger too."""
        cluster = self.ready_one()
        self.body = lib.changed(self.body)
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.change(cluster, {"region": "us"})
        self.make_stranger(cluster)
        self.expect(self.get(self.gid), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {"cluster.spec.region": ("eu", "us"),
                                       "nodepools[extra]": (None, {"replicas": 7})})

    def make_stranger(self, cluster):
        answer = self.client.post(cluster["href"] + "/nodepools",
                                  {"name": "extra", "kind": "NodePool", "spec": {"replicas": 7}})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def test_a_nodepool_that_no_order_has(self):
        """It is told and never deleted; the same PUT has nothing to mend."""
        cluster = self.ready_one()
        extra = self.make_stranger(cluster)
        self.assertEqual(self.told(), {"nodepools[extra]": (None, {"replicas": 7})})
        self.expect(self.put(self.gid, self.body, self.cookie), 200)
        self.change(cluster, {"region": "us"})
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {"nodepools[extra]": (None, {"replicas": 7})})
        self.change(extra, {"replicas": 8})
        self.assertEqual(self.told(), {"nodepools[extra]": (None, {"replicas": 8})})
        self.assertEqual(self.client.delete(extra["href"]).status, 202)
        self.fleet.finalize(extra)
        self.assertEqual(self.told(), {})
        self.assertEqual(self.words()[-1], "mended")

    def test_a_nodepool_resource(self):
        cluster = self.ready_one()
        gid, _, _ = self.brought_ready(lib.nodepool_input(cluster_id=cluster["id"], name="npx"))
        self.assertEqual(self.told(), {}, "a nodepool of another resource is no stranger")
        np = next(p for p in self.fleet.of(gid)[1])
        self.change(np, {"replicas": 5})
        self.assertEqual(self.told(), {})
        self.gid, self.cookie = gid, None
        self.assertEqual(self.told(), {"nodepool.spec.replicas": (2, 5)})

    def test_it_outlives_restarts(self):
        cluster = self.ready_one()
        self.change(cluster, {"region": "us"})
        before = self.values()
        self.server.kill9()
        self.server.start()
        self.assertEqual(self.values(), before)
        self.change(cluster, {"size": 5})
        self.assertEqual(set(self.told()), {"cluster.spec.region", "cluster.spec.size"})

    def test_more_than_is_shown(self):
        cluster = self.ready_one(spec={"f%02d" % i: i for i in range(30)})
        self.change(cluster, {"f%02d" % i: -1 - i for i in range(30)})
        self.assertEqual(self.values()["drift_count"], 30)
        self.assertEqual(len(self.told()), 20)
        self.change(cluster, {"f00": "x" * 5000, "f01": "hfd_" + "A" * 43})
        told = self.told()
        self.assertEqual(told["cluster.spec.f00"][1], "(5002 bytes)")
        self.assertNotIn("AAAA", told["cluster.spec.f01"][1], "no secret is told")

    def test_a_failed_one(self):
        """A removed nodepool is RES-104, and the next PUT makes all of the order."""
        cluster = self.ready_one()
        self.change(cluster, {"region": "us"})
        pool = self.pool("big")
        self.assertEqual(self.client.delete(pool["href"]).status, 202)
        answer = self.expect(self.get(self.gid), 400)
        self.assertIn("big", answer.json["message"])
        self.assertNotIn(self.gid, self.drifted())
        self.fleet.finalize(pool)
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {})
        self.assertEqual(self.fleet.get(cluster)["spec"], ORDER)

    def test_many(self):
        """100 changes of all kinds, some undone, with kills: none is silent, and none false."""
        rng = random.Random(33)
        cluster = self.ready_one()
        parts = {"cluster": cluster, "workers": self.pool("workers"), "big": self.pool("big")}
        ordered = {n: (copy.deepcopy(self.fleet.get(p)["spec"]), self.fleet.get(p)["labels"])
                   for n, p in parts.items()}
        for n in range(100):
            name = rng.choice(list(parts))
            spec = ordered[name][0]
            field = rng.choice(list(spec))
            value = rng.choice([None, n, "v%d" % n, spec[field], [n], {"x": n}])
            if name == "cluster" and rng.random() < 0.3:
                self.change(parts[name], {field: value}, {"team": rng.choice(["shop", "t%d" % n])})
            else:
                self.change(parts[name], {field: value})
            if n % 25 == 24:
                self.server.kill9()
                self.server.start()
            if n % 10 == 9:
                status = 202 if self.told() else 200
                self.expect(self.put(self.gid, self.body, self.cookie), status)
                self.fleet.ready(self.gid)
                self.assertEqual(self.told(), {})
            want = set()
            for key, part in parts.items():
                now = self.fleet.get(part)
                at = "cluster" if key == "cluster" else "nodepools[%s]" % key
                want |= {"%s.spec.%s" % (at, f) for f, v in ordered[key][0].items()
                         if now["spec"].get(f) != v}
                want |= {"%s.labels.%s" % (at, f) for f, v in ordered[key][1].items()
                         if now["labels"].get(f) != v}
            self.assertEqual(set(re.match(r"(?:[a-z]+|nodepools\[[a-z]+\])\.[a-z]+\.[a-z]+", f)[0]
                                 for f in self.told()), want, n)


class Ignored(DriftCase):
    FLAGS = ("--driver-drift", "ignore")

    def test_it_is_as_before(self):
        cluster = self.ready_one()
        self.change(cluster, {"region": "us"})
        self.assertEqual(self.told(), {})
        self.expect(self.put(self.gid, self.body, self.cookie), 200)
        self.assertEqual(self.words()[-1], "ready")


class IgnoredFields(DriftCase):
    FLAGS = ("--driver-drift-ignore", "nodepool.spec.replicas,cluster.labels.team")

    def test_an_autoscaler(self):
        """Its field is not told, not mended, and kept by an order that does not change it."""
        cluster = self.ready_one()
        self.change(self.pool("workers"), {"replicas": 9})
        self.change(cluster, labels={"team": "crew"})
        self.assertEqual(self.told(), {})
        self.expect(self.put(self.gid, self.body, self.cookie), 200)
        self.change(cluster, {"region": "us"})
        self.assertEqual(set(self.told()), {"cluster.spec.region"})
        self.assertEqual([p["fields"] for p in self.validated()["changes"]], [["spec.region"]])
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {})
        for _ in range(2):
            self.body = lib.changed(self.body)
            self.expect(self.put(self.gid, self.body, self.cookie), 202)
            self.fleet.ready(self.gid)
            self.assertEqual(self.pool("workers")["spec"]["replicas"], 9)
            self.assertEqual(self.fleet.get(cluster)["labels"]["team"], "crew")
            self.assertEqual(self.told(), {})
        self.body["driver"]["values"]["nodepools"][0]["spec"] = {"replicas": 4}
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.pool("workers")["spec"]["replicas"], 4)


class Repaired(DriftCase):
    FLAGS = ("--driver-drift", "repair")

    def test_it_is_mended(self):
        cluster = self.ready_one()
        self.change(cluster, {"region": "us"}, {"team": "x"})
        self.change(self.pool("workers"), {"replicas": 5})
        eventually(lambda: self.get(self.gid).status == 202, "it is being mended")
        self.check_hint(self.get(self.gid).json, "updating")
        eventually(lambda: self.pool("workers")["spec"]["replicas"] == 2, "the nodepool too")
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {})
        self.assertEqual(self.fleet.get(cluster)["spec"], ORDER)
        self.assertEqual(self.words()[-1], "mended")
        self.expect(self.put(self.gid, self.body, self.cookie), 200)

    def test_a_removed_nodepool(self):
        """It is made again; a removed cluster is not."""
        cluster = self.ready_one()
        pool = self.pool("big")
        self.assertEqual(self.client.delete(pool["href"]).status, 202)
        self.expect(self.get(self.gid), 400)
        eventually(lambda: self.get(self.gid).status == 202, "it is being mended")
        self.assertNotEqual(self.pool("big")["id"], pool["id"])
        self.fleet.finalize(pool)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {})
        self.assertEqual(self.pool("big")["spec"], {"replicas": 1})
        self.assertEqual(self.client.delete(cluster["href"]).status, 202)
        self.expect(self.get(self.gid), 400)
        self.fleet.finish_delete(self.gid)
        self.expect(self.get(self.gid), 400)


def without_pause(server):
    """The next repairs are due at once."""
    server.sigterm()
    server.place.write("UPDATE resource SET repair_us = 1 WHERE repair_us > 0;")
    server.start()


class Fought(DriftCase):
    FLAGS = ("--driver-drift", "repair")

    def test_another_one_changes_it_back(self):
        """After five times in an hour it is left, and said so, until the next PUT."""
        cluster = self.ready_one(pools=[])
        for n in range(5):
            self.change(cluster, {"region": "us"})
            without_pause(self.server)
            eventually(lambda: self.fleet.get(cluster)["spec"]["region"] == "eu", "repair %d" % n)
            self.fleet.ready(self.gid)
        self.change(cluster, {"region": "us"})
        without_pause(self.server)
        self.assertEqual(self.told(), {"cluster.spec.region": ("eu", "us")})
        self.assertIn("changed back 5 times", self.values()["drift"][0]["repair"])
        self.assertTrue([r for r in self.server.records()
                         if r.get("msg") == "drift is not mended any more"])
        self.change(cluster, {"size": 9})
        eventually(lambda: self.fleet.get(cluster)["spec"]["size"] == 3, "other fields are mended")
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {"cluster.spec.region": ("eu", "us")})
        self.expect(self.put(self.gid, self.body, self.cookie), 202)
        self.fleet.ready(self.gid)
        self.assertEqual(self.told(), {})
        self.change(cluster, {"region": "us"})
        eventually(lambda: self.fleet.get(cluster)["spec"]["region"] == "eu", "it is mended again")


class Remote(unittest.TestCase):
    """The same where HyperFleet is an API of its own."""
    FLAGS = ("--remote-watch", "1s", "--remote-fresh", "1s", "--remote-idle", "1s",
             "--adapters-required-cluster", "validation",
             "--adapters-required-nodepool", "validation")

    def start(self, *flags):
        self.port = lib.free_port()
        self.fleet = lib.Server("--adapters-required-cluster", "validation",
                                "--adapters-required-nodepool", "validation",
                                "--listen", "127.0.0.1:%d" % self.port)
        self.addCleanup(self.fleet.close)
        self.fleet.start()
        url = "http://127.0.0.1:%d" % self.port
        self.driver = lib.Server("--backend", url, *self.FLAGS, *flags)
        self.addCleanup(self.driver.close)
        self.driver.start()
        self.client = lib.Client(self.driver)
        self.addCleanup(self.client.close)
        api = lib.Client(self.fleet)
        self.addCleanup(api.close)
        self.api = lib.Fleet(api, ["validation"], ["validation"])
        self.gid = guresid()
        self.body = cluster_input(name=guresid("c"), spec=ORDER, nodepools=POOLS)
        self.client.put("/" + self.gid, self.body)
        self.until(200)

    def until(self, status):
        def there():
            self.api.ready(self.gid)
            return self.client.put("/" + self.gid, self.body).status == status
        eventually(there, "%d" % status)

    def told(self):
        values = self.client.get("/" + self.gid).json.get("resource", {}).get("values", {})
        return {i["field"]: (i.get("ordered"), i.get("found")) for i in values.get("drift", [])}

    def change(self, **spec):
        cluster = self.api.cluster_of(self.gid)
        answer = self.api.client.patch(cluster["href"], {"spec": {**cluster["spec"], **spec}})
        self.assertEqual(answer.status, 200)

    def test_told_and_mended(self):
        self.start()
        self.change(region="us", more=1)
        eventually(lambda: self.told() == {"cluster.spec.region": ("eu", "us")}, "it is told")
        self.driver.kill9()
        self.driver.start()
        self.assertEqual(self.told(), {"cluster.spec.region": ("eu", "us")})
        answer = self.client.post("/validate?id=" + self.gid, self.body).json
        self.assertEqual((answer["action"], sorted(answer["changes"][0]["fields"])),
                         ("update", ["spec.more", "spec.region"]))
        self.assertEqual(self.client.put("/" + self.gid, self.body).status, 202)
        self.until(200)
        self.assertEqual(self.told(), {})
        self.assertEqual(self.api.cluster_of(self.gid)["spec"], ORDER)
        self.change(more=1)
        self.change(region="us")
        eventually(self.told, "it is told again")
        self.change(region="eu")
        eventually(lambda: not self.told(), "it was mended by hand")
        self.assertEqual(self.client.put("/" + self.gid, self.body).status, 200)

    def test_repaired(self):
        self.start("--driver-drift", "repair")
        self.change(region="us")
        eventually(lambda: self.api.cluster_of(self.gid)["spec"] == ORDER, "it is mended")
        self.until(200)
        self.assertEqual(self.told(), {})

    def test_a_removed_nodepool(self):
        self.start("--driver-drift", "repair")
        pool = next(p for p in self.api.of(self.gid)[1] if p["name"] == "big")
        self.assertEqual(self.api.client.patch(pool["href"], {"labels": {
            **pool["labels"], "own": "y"}}).status, 200, "the generation is not the driver's")
        self.assertEqual(self.api.client.delete(pool["href"]).status, 202)
        self.api.finish_pool_deletes(self.gid)

        def made():
            self.api.ready(self.gid)
            return [p for p in self.api.of(self.gid)[1]
                    if p["name"] == "big" and p["id"] != pool["id"]]
        again, = eventually(made, "it is made again")
        self.assertEqual(again["spec"], {"replicas": 1})
        eventually(lambda: self.api.ready(self.gid) or self.client.get(
            "/" + self.gid).status == 200, "it is ready")
        self.assertEqual(self.told(), {})

    def test_an_autoscaler(self):
        self.start("--driver-drift-ignore", "cluster.spec.size")
        self.change(size=9)
        self.change(region="us")
        eventually(lambda: self.told() == {"cluster.spec.region": ("eu", "us")}, "it is told")
        for _ in range(2):
            self.body = lib.changed(self.body)
            self.assertEqual(self.client.put("/" + self.gid, self.body).status, 202)
            self.until(200)
            spec = self.api.cluster_of(self.gid)["spec"]
            self.assertEqual((spec["size"], spec["region"]), (9, "eu"))


if __name__ == "__main__":
    unittest.main()
