"""POST /validate checks an order by the rules of the PUT, and stores nothing."""
import unittest

from lib import (BASE, COOKIE, Case, SET_COOKIE, changed, cluster_input, guresid, lose_rows,
                 nodepool_input)


class Validate(Case):
    def check(self, body, gid=None, prefix="/"):
        """The answer to a check, which has no cookie and leaves all as it was."""
        query = "?id=" + gid if gid is not None else ""
        before = self.client.get(BASE + "/clusters?size=1").json["total"]
        answer = self.client.post(prefix + "validate" + query, body)
        self.assertEqual(self.client.get(BASE + "/clusters?size=1").json["total"], before)
        self.assertIsNone(answer.header(SET_COOKIE))
        return answer

    def says(self, action, body, gid=None, prefix="/"):
        answer = self.check(body, gid, prefix)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json["action"], action, answer)
        self.assertEqual(answer.json["type"], body["type"])
        return answer.json

    def same_refusal(self, body, gid, prefix="/"):
        """The check and the PUT refuse with the same bytes but for the resource, which a check
        without id does not know.
        """
        checked, put = self.check(body, gid, prefix), self.client.put(prefix + gid, body)
        self.assertEqual((checked.status, put.status), (400, 400), (checked, put))
        self.assertEqual(checked.json["error"], put.json["error"])
        self.assertEqual(checked.json.get("details"), put.json.get("details"))
        self.assertTrue(put.json["message"].startswith(checked.json["message"][:300]))
        return checked.json

    def plan(self, body, gid=None):
        plan = self.check(body, gid).json["plan"]
        self.assertRegex(plan, "^plan-[0-9a-f]{32}$")
        return {"If-Match": '"%s"' % plan}

    def test_plans(self):
        """A plan is done as it was said, or not at all, with what would be done now."""
        gid, body = guresid(), cluster_input(name=guresid("plan"), nodepools=[{"name": "workers"}])
        new = self.plan(body)
        self.assertEqual(self.plan(body, gid), new, "a new resource, whatever its id is")
        other = self.plan(changed(body))
        self.assertNotEqual(other, new)
        answer = self.client.put("/" + gid, body, other)
        self.assertEqual(answer.status, 412)
        self.assertIn("would now be create: create cluster", answer.json["message"])
        self.assertEqual(self.get(gid).status, 404, "nothing was done")
        self.assertEqual(self.client.put("/" + gid, body, new).status, 202)
        self.assertEqual(self.client.put("/" + gid, body, new).status, 202, "it polls")
        self.fleet.ready(gid)
        self.assertEqual(self.client.put("/" + gid, body, new).status, 200)

        update = self.plan(changed(body), gid)
        cluster = self.fleet.cluster_of(gid)
        self.fleet.make_ready(cluster)
        self.assertEqual(self.plan(changed(body), gid), update, "reports do not move it")
        self.client.patch(cluster["href"], {"spec": {"region": "us"}})
        answer = self.client.put("/" + gid, changed(body), update)
        self.assertEqual(answer.status, 412)
        self.assertIn("would now be update: update cluster", answer.json["message"])
        self.assertEqual(self.fleet.get(cluster)["spec"], {"region": "us"})
        mend = self.plan(body, gid)
        self.assertEqual(self.client.put("/" + gid, body, mend).status, 202)
        self.fleet.ready(gid)
        self.assertEqual(self.client.put("/" + gid, body, mend).status, 200)
        same = self.plan(body, gid)
        self.assertEqual(self.client.put("/" + gid, body, same).status, 200, "nothing is a plan")
        lifted = dict(body, driver={"values": dict(body["driver"]["values"], protect=True)})
        self.assertNotEqual(self.plan(lifted, gid), same)
        self.assertEqual(self.client.put("/" + gid, lifted, same).status, 412)
        self.assertEqual(self.client.put("/" + gid, lifted, self.plan(lifted, gid)).status, 200)
        self.assertEqual(self.client.delete("/" + gid, {"If-Match": '"plan-0"'}).status, 400)

    # A new order: nothing is stored, and the PUT then does what was said.
    def test_create(self):
        name, gid = guresid("check"), guresid()
        body = cluster_input(name=name, nodepools=[{"name": "workers"}, {"name": "gpu"}])
        doc = self.says("create", body)
        self.assertEqual(doc, {
            "action": "create", "name": name, "type": "hyperfleet-cluster",
            "nodepools": ["workers", "gpu"], "protected": False, "plan": doc["plan"],
            "changes": [{"kind": "cluster", "action": "create", "name": name, "fields": []},
                        {"kind": "nodepool", "action": "create", "name": "workers", "fields": []},
                        {"kind": "nodepool", "action": "create", "name": "gpu", "fields": []}]})
        self.assertEqual(self.says("create", body, gid), doc)
        self.assertEqual(self.get(gid).status, 404)
        self.created(body, gid)
        self.assertEqual(self.fleet.cluster_of(gid)["name"], name)

    # A name that follows from the GUResID is known with the GUResID only.
    def test_names(self):
        gid = guresid()
        doc = self.says("create", cluster_input())
        self.assertEqual((doc["name"], doc["changes"][0]["name"]), (None, None))
        named = self.says("create", cluster_input(), gid)["name"]
        self.created(cluster_input(), gid)
        self.assertEqual(self.fleet.cluster_of(gid)["name"], named)
        self.assertEqual(self.says("none", cluster_input(), gid)["name"], named)
        pool = self.says("create", nodepool_input(cluster_guresid=gid))
        self.assertEqual((pool["name"], pool["nodepools"]), (None, []))
        pool = self.says("create", nodepool_input(cluster_guresid=gid, name="own"))
        self.assertEqual((pool["name"], pool["nodepools"]), ("own", ["own"]))

    # The same input changes nothing. Another one changes the parts that differ, by field.
    def test_update(self):
        spec = {"region": "eu-1", "net": {"a": 1, "b": 2}}
        pools = [{"name": "stay", "spec": {"n": 1}}, {"name": "grow", "spec": {"n": 1}},
                 {"name": "leave"}]
        gid, body, _ = self.brought_ready(cluster_input(spec=spec, nodepools=pools))
        self.assertEqual(self.says("none", body, gid)["changes"], [])
        other = cluster_input(spec={"region": "eu-2", "net": {"a": 1.0, "c": 3}},
                              labels={"example.org/team": "blue"},
                              nodepools=[{"name": "stay", "spec": {"n": 1.0}},
                                         {"name": "grow", "spec": {"n": 2}}, {"name": "add"}])
        doc = self.says("update", other, gid)
        self.assertEqual(doc["nodepools"], ["stay", "grow", "add"])
        by_name = {c["name"]: c for c in doc["changes"]}
        self.assertEqual(len(by_name), len(doc["changes"]))
        cluster = by_name.pop(doc["name"])
        self.assertEqual((cluster["kind"], cluster["action"]), ("cluster", "update"))
        self.assertEqual(set(cluster["fields"]), {"spec.region", "spec.net.b", "spec.net.c",
                                                  "labels.example.org/team"})
        self.assertEqual({n: (c["kind"], c["action"], c["fields"]) for n, c in by_name.items()},
                         {"grow": ("nodepool", "update", ["spec.n"]),
                          "leave": ("nodepool", "delete", []), "add": ("nodepool", "create", [])})
        self.expect(self.get(gid), 200)
        self.expect(self.put(gid, other), 202)

    # An input that only the driver keeps begins an update that changes no part.
    def test_secrets_alone(self):
        gid, body, _ = self.brought_ready(cluster_input(secrets={"key": "one"}))
        body["driver"]["secrets"] = {"key": "two"}
        answer = self.check(body, gid)
        self.assertEqual((answer.json["action"], answer.json["changes"]), ("update", []))
        self.assertNotIn(b"two", answer.body)

    # While an operation is in the way the PUT is 409, and so is the check, with the same hint.
    def test_in_the_way(self):
        gid, body, _ = self.created()
        self.assertEqual(self.says("none", body, gid)["changes"], [])
        for state in ("creating", "deleting"):
            checked = self.check(changed(body), gid)
            self.assertEqual(checked.status, 409, checked)
            self.assertEqual(checked.json["status"], state)
            self.assertTrue(1 <= int(checked.header("Retry-After")) <= 600)
            answer = self.put(gid, changed(body))
            self.assertEqual((answer.status, answer.json["message"]),
                             (409, checked.json["message"]))
            self.assertRegex(answer.json["message"], {
                "creating": r"^another order is being created since .*; this one differs in ",
                "deleting": r"^the resource is being deleted since .*Z: repeat the order when "
            }[state])
            if state == "creating":
                self.expect(self.delete(gid), 202)
        self.assertEqual(self.check(body, gid).status, 409)
        # the order itself is checked first, as by a PUT
        self.assertEqual(self.check({"type": "none"}, gid).status, 400)

    # A failed resource gets a new attempt: an update if it was ready before.
    def test_new_attempt(self):
        with_deadline, body, _ = self.brought_ready()
        cluster = self.fleet.cluster_of(with_deadline)
        self.client.delete(cluster["href"])
        self.fleet.finalize(cluster)
        self.expect(self.get(with_deadline), 400)
        doc = self.says("create", body, with_deadline)
        self.assertEqual([c["action"] for c in doc["changes"]], ["create", "create"])

    # Each refusal is that of the PUT.
    def test_refusals(self):
        owner, body, _ = self.brought_ready(cluster_input(name=guresid("own"), nodepools=[
            {"name": "workers"}]))
        name = body["driver"]["values"]["cluster"]["name"]
        taken = self.same_refusal(cluster_input(name=name), guresid())
        self.assertIn("of resource " + owner, taken["message"])
        self.assertEqual(self.check(cluster_input(name=name)).status, 400)
        self.assertIn("workers", self.same_refusal(
            nodepool_input(cluster_guresid=owner, name="workers"), guresid())["message"])
        self.assertEqual(self.same_refusal(cluster_input(name="another-name"), owner)["error"],
                         "RES-106")
        self.assertEqual(self.same_refusal(cluster_input(type_="org/hyperfleet-cluster"),
                                           owner)["error"], "RES-106")
        self.same_refusal(nodepool_input(cluster_guresid="nobody"), guresid())
        self.same_refusal(cluster_input(), guresid(), prefix="/nodepools/")
        self.same_refusal(nodepool_input(cluster_guresid=owner), guresid(), prefix="/clusters/")
        wrong = {"type": "hyperfleet-cluster", "driver": {"values": {
            "clustr": {}, "nodepools": [{"name": "UP"}, {"name": "UP"}]}}}
        self.assertGreater(len(self.same_refusal(wrong, guresid())["details"]["errors"]), 1)
        for bad in (b"", b"{", b"[]", b"null"):
            self.assertEqual(self.check(bad).status, 400)
        for bad in ("-a", "a%20b", "a" * 64):
            answer = self.check(cluster_input(), bad)
            self.assertEqual((answer.status, answer.json["error"]), (400, "RES-101"))

    # The name that an orphan of this resource has is not taken: the PUT adopts it.
    def test_orphan(self):
        gid, name = guresid(), guresid("orphan")
        self.expect(self.put(gid, cluster_input(name=name, spec={"a": 1}, nodepools=[])), 202)
        lose_rows(self.server, gid)
        body = cluster_input(name=name, spec={"a": 2})
        doc = self.says("create", body, gid)
        self.assertEqual(doc["changes"], [{"kind": "cluster", "action": "update", "name": name,
                                           "fields": ["spec.a"]}])
        self.assertEqual(self.check(body).status, 400)
        self.assertEqual(self.check(body, guresid()).status, 400)

    # A resource may be called validate.
    def test_a_resource_of_that_name(self):
        for prefix in ("/", "/clusters/"):
            self.assertEqual(self.get("validate", prefix=prefix).status, 404)
            self.expect(self.put("validate", cluster_input(), prefix=prefix), 202)
            self.expect(self.get("validate", prefix=prefix), 202)
            self.says("create", cluster_input(), prefix=prefix)
            self.says("none", cluster_input(), "validate", prefix=prefix)
            self.expect(self.delete("validate", prefix=prefix), 202)
            self.fleet.finish_delete("validate")
            self.expect(self.delete("validate", prefix=prefix), 204)
        answer = self.client.patch("/validate", {})
        self.assertEqual((answer.status, answer.header("Allow")),
                         (405, "GET, HEAD, PUT, POST, DELETE"))

    # A cookie in a check means nothing.
    def test_no_cookie(self):
        answer = self.client.post("/validate", cluster_input(), headers={COOKIE: "forged"})
        self.assertEqual(answer.status, 200, answer)


if __name__ == "__main__":
    unittest.main()
