"""Every cell of both decision tables of driver/core/README.md from outside, with adapters played by
hand. The same after kill -9 and restart.
"""
import json
import unittest

from lib import CELLS, OPS, STATES, Case, Client
from lib import changed, cluster_input, conditions_of, eventually, guresid, in_time, nodepool_input


class Tables(Case):
    ADAPTERS = ("validation", "hypershift")
    POOL_ADAPTERS = ("validation",)

    def in_state(self, state, pools=1):
        """A new resource in a state: (GUResID, the body that is "same", its cookie or None)."""
        gid = guresid(state)
        body = cluster_input(nodepools=[{"name": "np-%d" % i, "spec": {"replicas": 1}}
                                        for i in range(pools)])
        if state == "absent":
            return gid, body, None
        cookie = self.expect(self.put(gid, body), 202).cookie
        if state == "creating":
            return gid, body, cookie
        if state == "failed":
            self.fail_for_good(gid)
            self.expect(self.get(gid, cookie), 400, "RES-104")
            return gid, body, cookie
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)
        if state == "updating":
            body = changed(body)
            cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        elif state == "deleting":
            self.expect(self.delete(gid, cookie), 202)
        return gid, body, cookie

    def fail_for_good(self, gid, **kw):
        cluster = self.fleet.cluster_of(gid)
        return self.fleet.accepted(cluster, "validation", available=False, reason="QuotaExceeded",
                                   message="no more than 3 clusters here",
                                   **kw)

    def operate(self, op, gid, body, cookie):
        if op == "PUT same":
            return self.put(gid, body, cookie)
        if op == "PUT different":
            return self.put(gid, changed(body), cookie)
        return self.get(gid, cookie) if op == "GET" else self.delete(gid, cookie)

    def snapshot(self, gid):
        """The HyperFleet resources of a GUResID, without the fields that a mere read may change."""
        parts = self.fleet.of(gid)
        return json.dumps(sorted([p["id"], p["generation"], p["spec"], p.get("deleted_time", "")]
                                 for ps in parts for p in ps))

    def check_cell(self, state, op, made, after_restart=False):
        gid, body, cookie = made
        status, hint, afterwards = CELLS[state, op]
        before = self.snapshot(gid)
        answer = self.expect(self.operate(op, gid, body, cookie), status)
        if hint is not None:
            self.check_hint(answer.json, hint)
        if status == 400:
            self.check_error(answer.json, "RES-104")
        unchanged = op == "PUT same" and state in ("creating", "updating", "ready")
        if unchanged or (status == 409 and state == "creating"):
            self.assertEqual(answer.cookie, cookie,
                             "the cookie stays byte for byte while nothing changes")
        if afterwards == state and not (state, op) == ("updating", "PUT different"):
            self.assertEqual(self.snapshot(gid), before,
                             "%s in state %s changes nothing in HyperFleet" % (op, state))
        # The state afterwards, by the two operations that change nothing.
        seen = self.get(gid, answer.cookie or cookie)
        if afterwards == "absent":
            self.expect(seen, 404)
        elif afterwards == "ready":
            self.expect(seen, 200)
        elif afterwards == "failed":
            self.expect(seen, 400, "RES-104")
        else:
            self.expect(seen, 202)
            self.check_hint(seen.json, afterwards)
        if afterwards in ("creating", "updating", "ready"):
            clusters, pools = self.fleet.of(gid)
            self.assertEqual((len(clusters), len(pools)), (1, 1),
                             "one cluster with its one nodepool")
            wanted = changed(body) if op == "PUT different" and status != 409 else body
            self.assertEqual(clusters[0]["spec"], wanted["driver"]["values"]["cluster"]["spec"],
                             "HyperFleet holds the desired spec")
        elif afterwards == "deleting":
            self.assertTrue(all("deleted_time" in p for ps in self.fleet.of(gid) for p in ps),
                            "everything is being deleted")

    def test_every_cell(self):
        """Both tables, each cell on a resource of its own, with the cookie sent as the orchestrator
        does.
        """
        for state in STATES:
            for op in OPS:
                with self.subTest(state=state, op=op):
                    self.check_cell(state, op, self.in_state(state))

    def test_every_cell_without_cookie(self):
        """The same when the answer that carried the cookie was lost: the GUResID is known, no
        cookie is normal.
        """
        for state in STATES:
            for op in OPS:
                with self.subTest(state=state, op=op):
                    gid, body, cookie = self.in_state(state)
                    status, hint, _ = CELLS[state, op]
                    answer = self.expect(self.operate(op, gid, body, None), status)
                    if hint is not None:
                        self.check_hint(answer.json, hint)
                    if op == "PUT same" and state in ("creating", "updating", "ready"):
                        self.assertEqual(answer.cookie, cookie, "the lost cookie is given again")

    def test_every_cell_after_kill(self):
        """kill -9 with a resource in each state, then every cell with the identical cookie."""
        made = {(state, op): self.in_state(state) for state in STATES for op in OPS}
        self.restart()
        for state, op in CELLS:
            with self.subTest(state=state, op=op):
                self.check_cell(state, op, made[state, op])

    def test_one_life_with_a_kill_at_every_step(self):
        """One resource from PUT to 204, the server killed between any two steps; the cookie stays
        what it was.
        """
        gid, body = guresid("life"), cluster_input(nodepools=[{"name": "np-0", "spec": {}}])
        cookie = self.expect(self.put(gid, body), 202).cookie
        self.restart()
        deadline = self.expect(self.get(gid, cookie), 202).json["timeout"]
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.restart()
        self.expect(self.get(gid, cookie), 200)
        self.assertEqual(self.expect(self.put(gid, body, cookie), 200).cookie, cookie)
        body = changed(body)
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.restart()
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "updating")
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.restart()
        self.expect(self.get(gid, cookie), 200)
        self.expect(self.delete(gid, cookie), 202)
        self.restart()
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "deleting")
        self.fleet.finish_delete(gid)
        self.restart()
        self.expect(self.get(gid, cookie), 404)
        self.expect(self.delete(gid, cookie), 204)
        self.assertEqual(self.fleet.of(gid), ([], []))
        self.assertTrue(deadline)

    # Polling --------------------------------------------------------------------------------------

    def test_poll_by_put(self):
        """A repeated PUT is a poll: 202 until everything is Ready, then 200, then 200 again."""
        gid, body, cookie = self.created()
        for part in [p for ps in self.fleet.of(gid) for p in ps]:
            for adapter in self.fleet.required[part["kind"]]:
                self.expect(self.put(gid, body, cookie), 202)
                self.fleet.accepted(part, adapter)
        for _ in range(2):
            self.assertEqual(self.expect(self.put(gid, body, cookie), 200).cookie, cookie)

    def test_poll_by_get(self):
        """GET is 202 until the last nodepool's last adapter has reported."""
        gid, _, cookie = self.created()
        cluster, pool = self.fleet.of(gid)[0][0], self.fleet.of(gid)[1][0]
        self.fleet.make_ready(cluster)
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "creating")
        self.fleet.make_ready(pool)
        doc = self.expect(self.get(gid, cookie), 200).json
        self.assertEqual(doc["type"], "hyperfleet-cluster")
        values = doc["resource"]["values"]
        self.assertEqual((values["cluster_id"], values["name"], values["href"]),
                         (cluster["id"], cluster["name"], cluster["href"]))
        self.assertEqual(values["generation"], 1)
        self.assertEqual(values["health"], "Healthy")
        self.assertEqual(values["nodepools"],
                         [{"name": pool["name"], "id": pool["id"], "href": pool["href"],
                           "generation": 1}])
        self.assertEqual(doc["manifests"], [])

    def test_poll_by_delete(self):
        """A repeated DELETE is a poll: 202 until all is finalized, then 204, then 204 again."""
        gid, _, cookie = self.brought_ready()
        self.expect(self.delete(gid, cookie), 202)
        self.expect(self.delete(gid, cookie), 202)
        for part in self.fleet.of(gid)[1] + self.fleet.of(gid)[0]:
            self.expect(self.delete(gid, cookie), 202)
            self.fleet.finalize(part)
        for _ in range(2):
            self.expect(self.delete(gid, cookie), 204)
        self.expect(self.get(gid), 404)

    def test_delete_polled_by_get(self):
        """GET during a deletion is 202, afterwards 404."""
        gid, _, cookie = self.brought_ready()
        self.expect(self.delete(gid, cookie), 202)
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "deleting")
        self.fleet.finish_delete(gid)
        self.expect(self.get(gid, cookie), 404)

    def test_made_again_after_delete(self):
        """A GUResID can be used again: another cluster, and a cookie of its own."""
        gid, body, cookie = self.brought_ready()
        first = self.fleet.cluster_of(gid)["id"]
        self.removed(gid, cookie)
        again = self.expect(self.put(gid, body), 202).cookie
        self.assertNotEqual(again, cookie)
        self.assertNotEqual(self.fleet.cluster_of(gid)["id"], first)

    # Ready ----------------------------------------------------------------------------------------

    def test_available_alone_is_not_ready(self):
        """After a change Available stays True at the old generation (it is sticky); the answer
        stays 202.
        """
        gid, body, cookie = self.brought_ready()
        body = changed(body)
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual(cluster["generation"], 2)
        self.assertEqual(conditions_of(cluster)["Available"]["status"], "True")
        self.expect(self.get(gid, cookie), 202)
        self.fleet.accepted(cluster, "validation", 1)
        self.fleet.accepted(cluster, "hypershift", 1)
        self.expect(self.get(gid, cookie), 202)
        self.fleet.make_ready(cluster)
        doc = self.expect(self.get(gid, cookie), 200).json
        self.assertEqual(doc["resource"]["values"]["generation"], 2)

    def test_fault_after_ready_keeps_200(self):
        """A fault after Ready does not take the 200 away: health says Degraded and why, and Healthy
        again once it is over.
        """
        gid, body, cookie = self.brought_ready()
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "hypershift", available=False, reason="NodesNotReady",
                            message="2 of 3 nodes are gone")
        for answer in (self.get(gid, cookie), self.put(gid, body, cookie)):
            values = self.expect(answer, 200).json["resource"]["values"]
            self.assertEqual(values["health"], "Degraded")
            self.assertIn("NodesNotReady", values["health_reason"] + values["health_message"])
            self.assertIn("2 of 3 nodes are gone", values["health_message"])
        self.restart()
        self.assertEqual(self.expect(self.get(gid, cookie),
                                     200).json["resource"]["values"]["health"], "Degraded")
        self.fleet.accepted(cluster, "hypershift")
        self.assertEqual(self.expect(self.get(gid, cookie),
                                     200).json["resource"]["values"]["health"], "Healthy")

    def test_terminal_reason_after_ready_keeps_200(self):
        """Not even a terminal reason takes the 200 of a ready resource away."""
        gid, _, cookie = self.brought_ready()
        self.fail_for_good(gid)
        self.assertEqual(self.expect(self.get(gid, cookie),
                                     200).json["resource"]["values"]["health"], "Degraded")

    def test_change_from_behind_is_not_ready_again(self):
        """A PATCH behind the driver's back raises the generation beyond what the driver wrote:
        still ready, not below what it wrote.
        """
        gid, _, cookie = self.brought_ready()
        cluster = self.fleet.cluster_of(gid)
        answer = self.client.patch(cluster["href"], {"spec": {"region": "elsewhere"}})
        self.assertEqual(answer.status, 200)
        self.expect(self.get(gid, cookie), 200)

    def test_ready_at_a_later_generation_counts(self):
        """Ready at a generation above the one that the driver wrote is ready ("at, not below")."""
        gid, _, cookie = self.created()
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual(self.client.patch(cluster["href"],
                                           {"labels": dict(cluster["labels"], team="x")}).status,
                                           200)
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)

    # Failed ---------------------------------------------------------------------------------------

    def test_terminal_report_fails(self):
        """The 400 names the adapter, its reason and message, the GUResID and the HyperFleet id;
        nothing is rolled back.
        """
        for update in (False, True):
            for applied in (False, True):
                with self.subTest(update=update, applied=applied):
                    gid, body, cookie = self.brought_ready() if update else self.created()
                    if update:
                        cookie = self.expect(self.put(gid, changed(body), cookie), 202).cookie
                    cluster = self.fleet.cluster_of(gid)
                    if applied:
                        self.fleet.accepted(cluster, "hypershift", available=False,
                                            reason="QuotaExceeded", message="no cores left")
                    else:
                        self.fleet.accepted(cluster, "hypershift", available=False, applied=False,
                                            reason="NotYet",
                                            applied_reason="InvalidSpec", message="no cores left")
                    doc = self.expect(self.get(gid, cookie), 400, "RES-104").json
                    for word in ("hypershift", "QuotaExceeded" if applied else "InvalidSpec", gid,
                                 cluster["id"]):
                        self.assertIn(word, doc["message"])
                    if applied:
                        self.assertIn("no cores left", doc["message"])
                    self.assertEqual(self.fleet.cluster_of(gid)["id"], cluster["id"])

    def test_terminal_report_of_a_nodepool_fails(self):
        """A nodepool's adapter can fail the whole resource; the message names the nodepool."""
        gid, _, cookie = self.created()
        pool = self.fleet.of(gid)[1][0]
        self.fleet.accepted(pool, "validation", available=False, reason="UnsupportedPlatform",
                            message="no such machine type")
        message = self.expect(self.get(gid, cookie), 400, "RES-104").json["message"]
        for word in ("validation", "UnsupportedPlatform", "no such machine type", gid, pool["id"]):
            self.assertIn(word, message)

    def test_not_terminal(self):
        """An adapter that does not work itself, a reason that is not terminal, and an old
        generation do not fail the operation.
        """
        cases = {
            "health false": dict(available=False, reason="QuotaExceeded", health=False),
            "health unknown": dict(available=False, reason="QuotaExceeded", health="Unknown"),
            "other reason": dict(available=False, reason="StillWorking"),
            "available for a terminal reason": dict(available=True, reason="QuotaExceeded"),
        }
        for name, report in cases.items():
            with self.subTest(name):
                gid, _, cookie = self.created()
                self.fleet.accepted(self.fleet.cluster_of(gid), "hypershift", **report)
                self.expect(self.get(gid, cookie), 202)
        gid, body, cookie = self.brought_ready()
        cookie = self.expect(self.put(gid, changed(body), cookie), 202).cookie
        self.fleet.accepted(self.fleet.cluster_of(gid), "hypershift", 1, available=False,
                            reason="QuotaExceeded")
        self.expect(self.get(gid, cookie), 202)

    def test_failed_stays_failed(self):
        """A failed operation stays failed though the adapters succeed later; then the same PUT
        answers 200 at once.
        """
        gid, body, cookie = self.in_state("failed")
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 400, "RES-104")
        self.restart()
        self.expect(self.get(gid, cookie), 400, "RES-104")
        cookie = self.expect(self.put(gid, body, cookie), 200).cookie
        self.expect(self.get(gid, cookie), 200)

    def test_new_attempt_ignores_old_reports(self):
        """A new attempt does not fail from what was reported before it, but from the next terminal
        report; success ends it.
        """
        gid, body, cookie = self.in_state("failed")
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "creating")
        self.expect(self.put(gid, body, cookie), 202)
        self.fail_for_good(gid)
        self.expect(self.get(gid, cookie), 400, "RES-104")
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)

    def test_new_attempt_with_another_input(self):
        """PUT of something else on a failed resource: the same cluster, at its next generation."""
        gid, body, cookie = self.in_state("failed")
        before = self.fleet.cluster_of(gid)
        cookie = self.expect(self.put(gid, changed(body), cookie), 202).cookie
        after = self.fleet.cluster_of(gid)
        self.assertEqual((after["id"], after["generation"]), (before["id"], 2))
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)

    def test_failed_update_is_retried_as_update(self):
        """A new attempt after a failed update says "updating"."""
        gid, body, cookie = self.brought_ready()
        body = changed(body)
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.fail_for_good(gid)
        self.expect(self.get(gid, cookie), 400, "RES-104")
        answer = self.expect(self.put(gid, body, cookie), 202)
        self.check_hint(answer.json, "updating")

    # Update ---------------------------------------------------------------------------------------

    def test_retarget(self):
        """A different PUT while updating re-targets: the generation moves on, and 200 comes only at
        the last one.
        """
        gid, body, cookie = self.in_state("updating")
        again = changed(body)
        cookie2 = self.expect(self.put(gid, again, cookie), 202).cookie
        self.assertNotEqual(cookie2, cookie, "another input is another operation")
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual((cluster["generation"], cluster["spec"]),
                         (3, again["driver"]["values"]["cluster"]["spec"]))
        for adapter in self.fleet.required["Cluster"]:
            self.fleet.accepted(cluster, adapter, 2)
        self.expect(self.get(gid, cookie2), 202)
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie2), 200)
        self.expect(self.put(gid, again, cookie2), 200)

    def test_back_to_the_first_input(self):
        """While updating, the input from before is "different" again and re-targets to it."""
        gid, body, cookie = self.brought_ready()
        self.expect(self.put(gid, changed(body), cookie), 202)
        self.expect(self.put(gid, body, cookie), 202)
        self.assertEqual(self.fleet.cluster_of(gid)["spec"],
                         body["driver"]["values"]["cluster"]["spec"])
        self.fleet.ready(gid)
        self.expect(self.put(gid, body), 200)

    def test_a_change_that_changes_nothing(self):
        """A different `resource` that overrides nothing leaves all parts Ready: 200 at once, no new
        generation.
        """
        gid, body, cookie = self.brought_ready()
        other = dict(body, resource={"note": "a remark"})
        self.expect(self.put(gid, other, cookie), 200)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)

    def test_operation_keeps_its_deadline(self):
        """The deadline is fixed per operation; a re-target starts a new one."""
        gid, body, cookie = self.in_state("updating")
        first = self.expect(self.get(gid, cookie), 202).json["timeout"]
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).json["timeout"], first)
        self.restart()
        self.assertEqual(self.expect(self.get(gid, cookie), 202).json["timeout"], first)

        def retargeted():
            nonlocal body
            body = changed(body)
            return self.expect(self.put(gid, body), 202).json["timeout"] > first

        eventually(retargeted, "a re-target's deadline counts from the re-target", every_s=0.2)

    # Deletion -------------------------------------------------------------------------------------

    def test_deletion_wins(self):
        """DELETE while creating, updating or failed: the deletion runs to its end, reports of
        success change nothing about it.
        """
        for state in ("creating", "updating", "failed"):
            with self.subTest(state):
                gid, body, cookie = self.in_state(state)
                self.expect(self.delete(gid, cookie), 202)
                clusters, pools = self.fleet.of(gid)
                for part in clusters + pools:
                    for adapter in self.fleet.required[part["kind"]]:
                        self.fleet.accepted(part, adapter)
                self.check_hint(self.expect(self.get(gid, cookie), 202).json, "deleting")
                self.expect(self.put(gid, body, cookie), 409)
                self.fleet.finish_delete(gid)
                self.expect(self.get(gid, cookie), 404)

    def test_repeated_delete_changes_nothing(self):
        """A repeated DELETE does not raise generations again and keeps the deadline."""
        gid, _, cookie = self.in_state("deleting")
        before, first = self.snapshot(gid), self.expect(self.get(gid, cookie), 202).json["timeout"]
        self.assertEqual(self.expect(self.delete(gid, cookie), 202).json["timeout"], first)
        self.assertEqual(self.snapshot(gid), before)

    def test_busy_cookie_is_stable(self):
        """The 409s during a deletion carry one and the same cookie: the one of before. Each new
        value would be a new version in the orchestrator's store.
        """
        gid, body, cookie = self.in_state("deleting")
        values = {self.expect(self.put(gid, b, cookie), 409).cookie
                  for b in (body, changed(body), body)}
        self.assertEqual(values, {cookie})

    def test_removed_behind_our_back(self):
        """A cluster deleted in HyperFleet directly: GET 400 RES-104, DELETE 204, PUT makes a new
        one.
        """
        for op in ("GET", "PUT", "DELETE"):
            with self.subTest(op):
                gid, body, cookie = self.brought_ready()
                cluster = self.fleet.cluster_of(gid)
                self.assertEqual(self.client.delete(cluster["href"]).status, 202)
                self.fleet.finish_delete(gid)
                self.assertEqual(self.client.get(cluster["href"]).status, 404)
                if op == "GET":
                    message = self.expect(self.get(gid, cookie), 400, "RES-104").json["message"]
                    self.assertIn(cluster["id"], message)
                elif op == "DELETE":
                    self.expect(self.delete(gid, cookie), 204)
                    self.expect(self.get(gid), 404)
                else:
                    self.expect(self.put(gid, body, cookie), 202)
                    self.assertNotEqual(self.fleet.cluster_of(gid)["id"], cluster["id"])
                    self.fleet.ready(gid)
                    self.expect(self.get(gid), 200)

    # Nodepool resources ---------------------------------------------------------------------------

    def test_nodepool_resource_life(self):
        """A nodepool as a resource of its own: PUT 202, ready 200, change 202, ready 200, DELETE
        202, 204; its cluster stays.
        """
        gid, _, _ = self.brought_ready(cluster_input())
        cluster = self.fleet.cluster_of(gid)
        for form in ({"cluster_id": cluster["id"]}, {"cluster_guresid": gid}):
            with self.subTest(form):
                np = guresid("pool")
                body = nodepool_input(name="extra", **form)
                cookie = self.expect(self.put(np, body), 202).cookie
                self.expect(self.put(np, changed(body), cookie), 409)
                clusters, pools = self.fleet.of(np)
                self.assertEqual((len(clusters), len(pools)), (0, 1))
                self.assertEqual(pools[0]["owner_references"]["id"], cluster["id"])
                self.fleet.ready(np)
                doc = self.expect(self.get(np, cookie), 200).json
                values = doc["resource"]["values"]
                self.assertEqual((values["nodepool_id"], values["cluster_id"], values["name"]),
                                 (pools[0]["id"], cluster["id"], "extra"))
                self.assertEqual(doc["type"], "hyperfleet-nodepool")
                body = changed(body)
                self.check_hint(self.expect(self.put(np, body, cookie), 202).json, "updating")
                self.fleet.ready(np)
                cookie = self.expect(self.put(np, body), 200).cookie
                self.expect(self.delete(np, cookie), 202)
                self.fleet.finish_delete(np)
                self.expect(self.delete(np, cookie), 204)
                self.expect(self.get(gid), 200)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)

    def test_cluster_deletion_takes_foreign_nodepools(self):
        """Deleting a cluster takes the nodepools of other resources with it; their DELETE
        afterwards is 204.
        """
        gid, _, cookie = self.brought_ready(cluster_input())
        np = guresid("pool")
        self.expect(self.put(np, nodepool_input(cluster_guresid=gid, name="extra")), 202)
        pool = self.fleet.of(np)[1][0]
        self.expect(self.delete(gid, cookie), 202)
        self.fleet.finalize(pool)
        self.fleet.finish_delete(gid)
        self.expect(self.delete(gid, cookie), 204)
        self.expect(self.delete(np), 204)
        self.expect(self.get(np), 404)

    # Paths ----------------------------------------------------------------------------------------

    def test_path_forms(self):
        """/{GUResID} and /clusters/{GUResID} are one resource; a doubled slash and a query string
        are tolerated.
        """
        forms = ("/", "/clusters/", "//", "/clusters//", "//clusters/")
        for form in forms:
            with self.subTest(form):
                gid, body = guresid("path"), cluster_input()
                cookie = self.expect(self.put(gid, body, prefix=form), 202).cookie
                for other in forms:
                    self.expect(self.get(gid, cookie, prefix=other), 202)
                    self.assertEqual(self.expect(self.put(gid, body, cookie, prefix=other),
                                                 202).cookie, cookie)
                    answer = self.client.get(other + gid + "?a=b&c", self.cookie_header(cookie))
                    self.expect(self.checked("GET", gid, answer), 202)
                self.assertEqual(len(self.fleet.of(gid)[0]), 1)
                self.expect(self.delete(gid, cookie, prefix=form), 202)

    def test_path_fixes_the_kind(self):
        """/nodepools/X where X is a cluster is 404, and so is the other way round. A PUT of the
        wrong type and a DELETE are RES-101. With 204 the orchestrator would forget a resource that
        is still there.
        """
        gid, body, cookie = self.brought_ready(cluster_input())
        np = guresid("pool")
        pool_body = nodepool_input(cluster_guresid=gid)
        self.expect(self.put(np, pool_body, prefix="/nodepools/"), 202)
        self.expect(self.get(np, prefix="/nodepools/"), 202)
        self.expect(self.get(np), 202)
        self.expect(self.get(np, prefix="/clusters/"), 404)
        self.expect(self.get(gid, prefix="/nodepools/"), 404)
        self.expect(self.put(guresid(), body, prefix="/nodepools/"), 400, "RES-101")
        self.expect(self.put(guresid(), pool_body, prefix="/clusters/"), 400, "RES-101")
        for given in (None, cookie):
            self.expect(self.delete(gid, given, prefix="/nodepools/"), 400, "RES-101")
        self.expect(self.delete(np, prefix="/clusters/"), 400, "RES-101")
        self.expect(self.delete(guresid(), prefix="/nodepools/"), 204)
        self.expect(self.get(gid), 200)
        self.expect(self.get(np), 202)
        self.assertEqual(len(self.fleet.of(np)[1]), 1)

    def test_unknown_driver_and_methods(self):
        """Another prefix is 404; a method that the contract does not have is 405 with Allow;
        neither is an error document of a resource.
        """
        self.assertEqual(self.client.get("/databases/abc").status, 404)
        self.assertEqual(self.client.get("/a/b/c/d").status, 404)
        for method in ("POST", "PATCH"):
            for path in ("/abc", "/clusters/abc"):
                answer = self.client.request(method, path, {})
                self.assertEqual(answer.status, 405, method)
                allow = {m.strip() for m in (answer.header("Allow") or "").split(",")}
                self.assertTrue({"GET", "PUT", "DELETE"} <= allow, allow)

    def test_polls_are_not_logged(self):
        """A PUT or DELETE that changes nothing is a poll, and has no line of its own at `info`."""
        gid, body, cookie = self.in_state("creating")
        self.expect(self.put(gid, body, cookie), 202)
        self.expect(self.delete(guresid("absent")), 204)
        self.expect(self.put(gid, {}, cookie), 400)
        lines = lambda: [(r["method"], r["status"]) for r in self.server.records()
                         if r["msg"] == "request" and r["path"] == "/" + gid]
        eventually(lambda: ("PUT", 400) in lines(), "the refusal is logged")
        self.assertEqual(lines(), [("PUT", 202), ("PUT", 400)])


class Deadlines(Case):
    """Deadlines that pass in real time: 1 s for a creation and an update, 2 s for a deletion."""

    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--driver-deadline-create", "1s", "--driver-deadline-update", "1s",
             "--driver-deadline-delete", "2s")

    def in_an_hour(self, *operations):
        """Restarts the server: new operations of these kinds have an hour, all others as above."""
        flags = [w for o in operations for w in ("--driver-deadline-" + o, "1h")]
        self.server.flags = self.short + flags
        self.restart()

    def setUp(self):
        super().setUp()
        self.short = list(self.server.flags)
        self.addCleanup(setattr, self.server, "flags", self.short)

    def wait_failed(self, gid, code):
        return eventually(lambda: (lambda a: a if a.status == 400 else None)(self.get(gid)),
                          "%s fails by its deadline" % gid).json

    def test_creation_past_its_deadline(self):
        """RES-105 names what is unfinished; it stays failed; PUT same and different are new
        attempts with a new deadline; DELETE works.
        """
        names = ("same", "again", "different", "delete", "late")
        made = {n: self.created() for n in names}
        for name, (gid, body, cookie) in made.items():
            doc = self.wait_failed(gid, "RES-105")
            self.check_error(doc, "RES-105")
            self.assertIn("validation", doc["message"])
            self.assertIn(gid, doc["message"])
            self.assertIn(self.fleet.cluster_of(gid)["id"], doc["message"])
        self.restart()
        for gid, _, cookie in made.values():
            self.expect(self.get(gid, cookie), 400, "RES-105")
        gid, body, cookie = made["same"]
        self.check_hint(self.expect(self.put(gid, body, cookie), 202).json, "creating")
        self.in_an_hour("create")
        gid, body, cookie = made["again"]
        self.check_hint(self.expect(self.put(gid, body, cookie), 202).json, "creating")
        self.fleet.ready(gid)
        self.expect(self.get(gid), 200)
        self.in_an_hour()
        gid, body, cookie = made["different"]
        self.expect(self.put(gid, changed(body), cookie), 202)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 2)
        self.check_error(self.wait_failed(gid, "RES-105"), "RES-105")
        gid, _, cookie = made["delete"]
        self.expect(self.delete(gid, cookie), 202)
        self.fleet.finish_delete(gid)
        self.expect(self.delete(gid, cookie), 204)
        gid, body, cookie = made["late"]
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 400, "RES-105")
        self.expect(self.put(gid, body, cookie), 200)

    def test_update_past_its_deadline(self):
        """The same for an update; the old cluster is left as it is."""
        self.in_an_hour("create")
        gid, body, cookie = self.created()
        self.fleet.ready(gid)
        self.expect(self.get(gid), 200)
        self.in_an_hour()
        cookie = self.expect(self.put(gid, changed(body), cookie), 202).cookie
        self.check_error(self.wait_failed(gid, "RES-105"), "RES-105")
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual(cluster["generation"], 2)

    def test_deletion_past_its_deadline(self):
        """RES-105 while it goes on; PUT is 409 still; a new DELETE gives a new deadline; the end of
        it is the end.
        """
        gid, body, cookie = self.created()
        self.fleet.ready(gid)
        first = self.expect(self.delete(gid, cookie), 202).json["timeout"]
        doc = self.wait_failed(gid, "RES-105")
        self.check_error(doc, "RES-105")
        self.assertIn("validation", doc["message"])
        self.expect(self.put(gid, body, cookie), 409)
        again = self.expect(self.delete(gid, cookie), 202).json
        self.assertGreater(again["timeout"], first)
        self.wait_failed(gid, "RES-105")

        def deleting():
            self.expect(self.delete(gid, cookie), 202)
            self.expect(self.get(gid, cookie), 202)
        in_time(2, deleting)
        self.wait_failed(gid, "RES-105")
        self.fleet.finish_delete(gid)
        self.expect(self.get(gid, cookie), 404)
        self.expect(self.delete(gid, cookie), 204)


class Defaults(Case):
    """The default required adapters, the first steps of a newcomer, and the operations listener."""

    def test_all_default_adapters_are_needed(self):
        """202 until validation, dns, pullsecret and hypershift, and the nodepool's validation and
        hypershift have reported.
        """
        gid, body, cookie = self.created()
        cluster, pool = self.fleet.of(gid)[0][0], self.fleet.of(gid)[1][0]
        for part, adapters in ((cluster, ("validation", "dns", "pullsecret", "hypershift")),
                               (pool, ("validation", "hypershift"))):
            for adapter in adapters:
                self.expect(self.get(gid, cookie), 202)
                self.fleet.accepted(part, adapter)
        self.expect(self.get(gid, cookie), 200)

    def test_ops_listener(self):
        """/livez /readyz /healthz /alive /health and /metrics answer 200 on the operations
        listener, not as resources on the other.
        """
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        for path in ("/livez", "/readyz", "/healthz", "/alive", "/health"):
            self.assertEqual(ops.get(path).status, 200, path)
        self.expect(self.put(guresid(), cluster_input()), 202)
        metrics = ops.get("/metrics")
        self.assertEqual(metrics.status, 200)
        self.assertRegex(metrics.header("Content-Type"), r"^text/plain")
        text = metrics.body.decode()
        self.assertIn("# TYPE ", text)
        for line in text.splitlines():
            if line and not line.startswith("#"):
                self.assertRegex(line, r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? '
                                       r'[-+0-9.eEInfNa]+( [0-9]+)?$')
        self.assertEqual(ops.get("/nothing-here").status, 404)

    def test_request_id_in_log(self):
        """Each request has an id in the log."""
        gid = guresid("logged")
        self.expect(self.put(gid, cluster_input()), 202)
        def logged():
            return [r for r in self.server.records() if gid in json.dumps(r)]
        for rec in eventually(logged, "the PUT is in the log"):
            self.assertTrue(any("id" in key and isinstance(value, str) for key,
                                value in rec.items()), rec)


if __name__ == "__main__":
    unittest.main()
