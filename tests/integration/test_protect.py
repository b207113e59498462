"""Deletion protection: what is protected survives every route, method and scope; it is lifted by an
order alone; it is not lost with a store.
"""
import copy
import json
import unittest

import lib
from lib import (BASE, LABEL, Case, Client, Server, changed, cluster_input, eventually, guresid,
                 lose_rows, nodepool_input)
from test_access import SCOPES, bearer, token_create

POOLS = [{"name": "np-0", "spec": {"replicas": 1}}, {"name": "np-1", "spec": {"replicas": 1}}]
PRODUCTION = {"environment": "production"}


def protected(body=None, yes=True):
    """The same order with another protection."""
    body = copy.deepcopy(body or cluster_input(nodepools=POOLS))
    body["driver"]["values"]["protect"] = yes
    return body


class Protect(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--driver-protect-labels", "environment=production,tier=gold")

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def generations(self, gid):
        return [(p["id"], p["generation"], p.get("deleted_time")) for ps in self.fleet.of(gid)
                for p in ps]

    def refused(self, gid, cookie=None, by=None):
        """A DELETE is RES-109 that names what to do, and changes nothing."""
        before = self.generations(gid)
        answer = self.expect(self.delete(gid, cookie), 400, "RES-109")
        self.assertIn("'%s'" % (by or gid), answer.json["message"])
        self.assertRegex(answer.json["message"], "protect: false|protect_labels")
        self.assertEqual(self.generations(gid), before)
        return answer.json["message"]

    def in_state(self, state):
        """(GUResID, its order, cookie): an order without protection in a state."""
        gid, body, cookie = self.created(cluster_input(nodepools=POOLS))
        if state == "failed":
            self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False,
                                reason="QuotaExceeded", message="full")
        if state in ("ready", "updating", "deleting"):
            self.fleet.ready(gid)
        if state == "updating":
            body = changed(body)
            cookie = self.expect(self.put(gid, body), 202).cookie
        if state == "deleting":
            self.expect(self.delete(gid), 202)
        return gid, body, cookie

    def test_alone_in_every_state(self):
        """A PUT that changes protect alone takes effect, begins nothing, and moves the cookie."""
        for state, status in (("creating", 202), ("updating", 202), ("ready", 200),
                              ("failed", 400)):
            with self.subTest(state):
                gid, body, cookie = self.in_state(state)
                before = self.generations(gid), self.get(gid).json.get("timeout")
                answer = self.expect(self.put(gid, protected(body)), status)
                self.assertEqual((self.generations(gid), self.get(gid).json.get("timeout")), before)
                if status != 400:
                    self.assertNotEqual(answer.cookie, cookie, "its bytes move")
                    self.assertEqual(self.put(gid, protected(body)).cookie, answer.cookie)
                self.refused(gid, answer.cookie)
                self.refused(gid, cookie)
                self.restart()
                self.refused(gid)
                for lifted in (body, protected(body, False), protected(body, None)):
                    if state != "failed":
                        self.expect(self.put(gid, protected(body)), status)
                        self.refused(gid)
                    self.expect(self.put(gid, lifted), status)
                    if state == "failed":
                        break
                self.assertEqual((self.generations(gid), self.get(gid).json.get("timeout")), before)
                self.expect(self.delete(gid), 202)

    def test_failed_is_tried_again(self):
        """After the PUT that changed protect, the same PUT is a new attempt, protected too."""
        gid, body, _ = self.in_state("failed")
        self.expect(self.put(gid, protected(body)), 400, "RES-104")
        self.expect(self.put(gid, protected(body)), 202)
        self.refused(gid)

    def test_deleting(self):
        """In state deleting a PUT is 409, and the deletion goes on."""
        gid, body, _ = self.in_state("deleting")
        self.expect(self.put(gid, protected(body)), 409)
        self.expect(self.delete(gid), 202)
        self.fleet.finish_delete(gid)
        self.expect(self.delete(gid), 204)

    def test_with_other_changes(self):
        """An order that changes more than protect is an ordinary one."""
        gid, body, cookie = self.brought_ready(cluster_input(nodepools=POOLS))
        answer = self.expect(self.put(gid, protected(changed(body))), 202)
        self.assertNotEqual(answer.cookie, cookie)
        self.refused(gid)

    def test_what_is_no_boolean(self):
        for wrong in ("true", 1, {}, []):
            answer = self.expect(self.put(guresid(), protected(yes=wrong)), 400, "RES-101")
            self.assertIn("driver.values.protect", answer.json["message"])

    def test_labels(self):
        """Labels count as ordered, of the cluster and its nodepools, not as HyperFleet has them."""
        for labels, pool in ((PRODUCTION, {}), ({"tier": "gold"}, {}), ({}, PRODUCTION)):
            body = cluster_input(labels=labels, nodepools=[{"name": "np-0", "labels": pool}])
            gid, body, _ = self.brought_ready(body)
            cluster = self.fleet.cluster_of(gid)
            given = {LABEL: gid, "environment": "test"}
            self.assertEqual(self.client.patch(cluster["href"], {"labels": given}).status, 200)
            self.assertIn("its label", self.refused(gid))
        body["driver"]["values"]["nodepools"][0]["labels"] = {"environment": "Production"}
        self.expect(self.put(gid, body), 202)
        self.expect(self.delete(gid), 202)

    def test_older_rows(self):
        """A row from before protection has the labels that HyperFleet has."""
        made = [self.brought_ready(cluster_input(labels=labels))[0]
                for labels in (PRODUCTION, {"environment": "test"})]
        self.server.sigterm()
        self.server.place.write("UPDATE resource SET protect = '' WHERE guresid IN ('%s', '%s');"
                                % tuple(made))
        self.server.start()
        self.refused(made[0])
        self.expect(self.delete(made[1]), 202)

    def test_other_kind_of_path(self):
        """The path of the other kind stays RES-101."""
        gid, _, _ = self.created(protected())
        self.expect(self.delete(gid, prefix="/nodepools/"), 400, "RES-101")
        self.expect(self.delete(gid, prefix="/clusters/"), 400, "RES-109")

    def test_nodepool_resource(self):
        """A protected nodepool resource keeps itself and its cluster."""
        owner, _, _ = self.brought_ready(cluster_input(nodepools=[]))
        cluster = self.fleet.cluster_of(owner)
        gid = guresid()
        body = protected(nodepool_input(cluster_guresid=owner, name="gpu"))
        self.expect(self.put(gid, body), 202)
        (pool,) = self.fleet.of(gid)[1]
        self.refused(gid)
        self.refused(owner, by=gid)
        self.problem(self.client.delete(pool["href"]), 409, "HYPERFLEET-CNF-003")
        self.problem(self.client.delete(cluster["href"]), 409, "HYPERFLEET-CNF-003")
        self.fleet.make_ready(pool)
        self.expect(self.put(gid, protected(body, False)), 200)
        self.expect(self.delete(owner), 202)

    def test_dropped_nodepool(self):
        """A PUT without a nodepool of a protected cluster is RES-109; so says /validate. That the
        same PUT lifts the protection does not help: lifting and deleting are two calls.
        """
        gid, body, _ = self.brought_ready(protected())
        before = self.generations(gid)
        less = copy.deepcopy(body)
        del less["driver"]["values"]["nodepools"][1]
        for wish in (less, protected(less, False)):
            answer = self.expect(self.put(gid, wish), 400, "RES-109")
            self.assertIn("nodepool 'np-1'", answer.json["message"])
            checked = self.client.post("/validate?id=" + gid, wish)
            self.assertEqual((checked.status, checked.json["error"]), (400, "RES-109"))
        self.assertEqual(self.generations(gid), before)
        more = copy.deepcopy(body)
        more["driver"]["values"]["nodepools"].append({"name": "np-2"})
        self.expect(self.put(gid, more), 202)
        self.fleet.ready(gid)
        self.expect(self.put(gid, protected(more, False)), 200)
        self.expect(self.put(gid, protected(less, False)), 202)

    def test_lost_rows(self):
        """A row that is made again from the cookie is protected, at its first DELETE already."""
        for labels, flag in ((None, True), (PRODUCTION, False)):
            with self.subTest(labels=labels):
                gid, body, old = self.brought_ready(
                    protected(cluster_input(labels=labels, nodepools=POOLS), flag))
                cookie = self.expect(self.put(gid, body), 200).cookie
                self.assertEqual(cookie, old)
                lose_rows(self.server, gid)
                self.refused(gid, cookie)
                self.refused(gid, cookie)
                self.expect(self.get(gid, cookie), 200)
                self.refused(gid)

    def test_cookies_of_other_lives(self):
        """The cookie of an ended life is 204 and touches nothing; that of none is refused."""
        gid, body, old = self.brought_ready(cluster_input(nodepools=POOLS))
        self.removed(gid)
        _, body, cookie = self.brought_ready(protected(body), gid)
        before = self.generations(gid)
        self.expect(self.delete(gid, old), 204)
        self.assertEqual(self.generations(gid), before)
        self.refused(gid, cookie)
        self.expect(self.delete(gid, "bm90IGEgY29va2ll"), 400, "RES-102")

    def test_removed_everywhere(self):
        """A valid cookie of a resource that neither the store nor HyperFleet has is 204."""
        gid, _, cookie = self.created(protected())
        with Server() as other:
            client = Client(other)
            self.addCleanup(client.close)
            self.assertEqual(client.delete("/" + gid, self.cookie_header(cookie)).status, 400,
                             "another key ring")
        self.refused(gid, cookie)

    def test_forced(self):
        """HyperFleet's DELETE with force=true deletes, and is logged; so is force-delete."""
        gid, _, _ = self.brought_ready(protected())
        cluster = self.fleet.cluster_of(gid)
        reason = {"reason": "test"}
        for wrong in ("1", "yes", "TRUE"):
            self.problem(self.client.delete(cluster["href"] + "?force=" + wrong), 400,
                         "HYPERFLEET-VAL-005")
        for no in ("", "?force=false", "?force="):
            self.problem(self.client.delete(cluster["href"] + no), 409, "HYPERFLEET-CNF-003")
            self.problem(self.client.post(cluster["href"] + "/force-delete" + no, reason), 409,
                         "HYPERFLEET-CNF-003")
        self.assertEqual(self.client.delete(cluster["href"] + "?force=true").status, 202)
        self.problem(self.client.delete(cluster["href"]), 409, "HYPERFLEET-CNF-003")
        self.assertEqual(self.client.post(cluster["href"] + "/force-delete?force=true",
                                          reason).status, 204)
        lines = eventually(lambda: [r for r in self.server.records()
                                    if r.get("msg") == "audit: protection overridden"
                                    and r.get("id") == cluster["id"]][1:], "both are logged")
        self.assertEqual(lines[0]["level"], "warn")
        self.expect(self.get(gid), 400, "RES-104")
        self.refused(gid)

    def test_unprotected_is_as_ever(self):
        gid, _, _ = self.brought_ready(protected(yes=False))
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual(self.client.delete(cluster["href"] + "?force=true").status, 202)
        self.assertEqual([r for r in self.server.records()
                          if r.get("msg") == "audit: protection overridden"
                          and r.get("id") == cluster["id"]], [])

    def test_it_is_shown(self):
        """In the resource's document with its order, on its page, and by /validate."""
        gid, body, _ = self.brought_ready(protected())
        doc = self.client.get("/api/driver/v1/resources/" + gid).json
        self.assertIs(doc["protected"], True)
        self.assertIs(doc["input"]["driver"]["values"]["protect"], True)
        self.assertIn(b"Protected by", self.ops.get("/r/" + gid).body)
        for wish, yes in ((body, True), (protected(body, False), False),
                          (cluster_input(labels=PRODUCTION), True), (cluster_input(), False)):
            self.assertIs(self.client.post("/validate", wish).json["protected"], yes)
        self.assertEqual(self.client.post("/validate?id=" + gid,
                                          protected(body, False)).json["action"], "none")
        env = {"HFD_URL": "http://127.0.0.1:%d" % self.server.port}
        done = lib.run("delete", gid, env=env)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("400 RES-109: resource '%s' is protected" % gid, done.stderr)
        self.expect(self.put(gid, protected(body, False)), 200)
        doc = self.client.get("/api/driver/v1/resources/" + gid).json
        self.assertIs(doc["protected"], False)
        self.assertNotIn("protect", doc["input"]["driver"]["values"])
        self.assertNotIn(b"Protected by", self.ops.get("/r/" + gid).body)
        done = lib.run("delete", gid, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)


class Scopes(unittest.TestCase):
    """Protected resources survive each route, method and scope but one: DELETE with force=true."""

    def test_every_door(self):
        server = Server()
        self.addCleanup(server.close)
        tokens = {s: token_create(server.data, s + ".t", s) for s in SCOPES}
        server.start()
        client, ops = Client(server), Client(server, ops=True)
        self.addCleanup(client.close)
        self.addCleanup(ops.close)
        admin = bearer(tokens["admin"])
        own, single = guresid("own"), guresid("pool")
        self.assertEqual(client.put("/" + own, protected(), admin).status, 202)
        self.assertEqual(client.put("/" + single, protected(nodepool_input(
            cluster_guresid=own, name="gpu")), admin).status, 202)

        def list_of(path):
            return client.get(BASE + path, admin).json["items"]

        (cluster,) = list_of("/clusters")
        pools = list_of("/nodepools")
        before = [(r["id"], r["generation"]) for r in [cluster] + pools]
        hrefs = [cluster["href"]] + [p["href"] for p in pools]
        hrefs += [BASE + "/nodepools/" + p["id"] for p in pools]
        reason = json.dumps({"reason": "test"})
        tries = [(client, "DELETE", prefix + gid, None) for gid in (own, single)
                 for prefix in ("/", "/clusters/", "/nodepools/")]
        for href in hrefs:
            tries += [(client, "DELETE", href, None),
                      (client, "POST", href + "/force-delete", reason),
                      (client, "POST", href + "/force-delete?force=true", reason)]
        tries += [(ops, "DELETE", "/admin/orphans/" + p["id"], None) for p in [cluster] + pools]
        tries += [(client, "PUT", "/" + own, protected(cluster_input(nodepools=[]), False))]
        for scope in SCOPES:
            for c, method, path, body in tries:
                with self.subTest(scope=scope, method=method, path=path):
                    status = c.request(method, path, body, bearer(tokens[scope])).status
                    self.assertIn(status, (400, 403, 409))
            for href in hrefs if scope != "admin" else ():
                with self.subTest(scope=scope, force=href):
                    answer = client.delete(href + "?force=true", bearer(tokens[scope]))
                    self.assertEqual(answer.status, 403)
        left = list_of("/clusters") + list_of("/nodepools")
        self.assertEqual([(r["id"], r["generation"]) for r in left], before)
        self.assertFalse([r for r in left if "deleted_time" in r])
        for href in hrefs[1:4]:
            self.assertEqual(client.delete(href + "?force=true", admin).status, 202)
        self.assertEqual(client.delete(hrefs[0] + "?force=true", admin).status, 202)


if __name__ == "__main__":
    unittest.main()
