"""The doors of HyperFleet's API add to a request or an answer: the caller's name, the vocabulary of
conditions, bounds on reports.
"""
import re
import unittest

from lib import (BASE, Case, Client, cluster_input, conditions_of, condition, guresid, report_body)

SYSTEM = "system@hyperfleet.local"


def create_body(name, kind="Cluster", **more):
    return dict({"kind": kind, "name": name, "spec": {}}, **more)


class Identity(Case):
    FLAGS = ("--fleet-identity-header", "X-HyperFleet-Identity", "--http-trusted-proxies",
             "127.0.0.1")

    def as_(self, who):
        return {} if who is None else {"x-hyperfleet-identity": who}

    # Creating, changing and deleting each name their own caller.
    def test_each_write_names_its_caller(self):
        made = self.client.post(BASE + "/clusters", create_body("id-writes"),
                                self.as_("jane@example.com")).json
        self.assertEqual((made["created_by"], made["updated_by"]),
                         ("jane@example.com", "jane@example.com"))
        changed = self.client.patch(made["href"], {"spec": {"a": 1}}, self.as_("bob")).json
        self.assertEqual((changed["created_by"], changed["updated_by"]),
                         ("jane@example.com", "bob@hyperfleet.local"))
        gone = self.client.delete(made["href"], self.as_("eve@example.com")).json
        self.assertEqual(gone["deleted_by"], "eve@example.com")

    # A text that is no name is written as the system's name, and refuses nothing.
    def test_no_name_is_the_system(self):
        for n, who in enumerate((None, "", "a b", "x@", "@", "a" * 255)):
            made = self.client.post(BASE + "/clusters", create_body("id-none-%d" % n),
                                    self.as_(who))
            self.assertEqual(made.status, 201)
            self.assertEqual(made.json["created_by"], SYSTEM, "for %r" % who)

    # A header names no caller of this server's own: of hyperfleet.local, or of one of its tokens.
    def test_names_of_our_own_are_refused(self):
        for n, who in enumerate((SYSTEM, "local@HyperFleet.local", "any@hyperfleet.local.",
                                 "operator", "System", " local ")):
            made = self.client.post(BASE + "/clusters", create_body("id-own-%d" % n),
                                    self.as_(who))
            self.problem(made, 403, "HYPERFLEET-AUZ-001")
            self.assertIn("this server's own", made.json["detail"])
            answer = self.client.put("/" + guresid(), cluster_input(), self.as_(who))
            self.assertEqual((answer.status, answer.json["error"]), (403, "RES-101"))
        self.assertTrue(any(r.get("reason") == "reserved" and "this server's own" in r["error"]
                            for r in self.server.records()))

    # Two callers on one request are refused: one of them is a client's own, past a proxy that does
    # not remove it.
    def test_two_callers_are_refused(self):
        both = {"x-hyperfleet-identity": "jane@example.com",
                "X-HyperFleet-Identity": "eve@example.com"}
        answer = self.client.post(BASE + "/clusters", create_body("id-two"), both)
        self.problem(answer, 400, "HYPERFLEET-VAL-005")
        self.assertIn("more than once", answer.json["detail"])
        self.assertEqual(self.client.put("/" + guresid("two"), cluster_input(), both).status, 400)
        both["X-HyperFleet-Identity"] = "jane@example.com"
        self.assertEqual(self.client.post(BASE + "/clusters", create_body("id-two"),
                                          both).json["created_by"], "jane@example.com")

    # A PUT of the driver contract names its caller in what it makes, nodepools included.
    def test_driver_writes_name_their_caller(self):
        gid = guresid("who")
        answer = self.client.put("/" + gid, cluster_input(nodepools=[{"name": "workers"}]),
                                 self.as_("deployer@example.com"))
        self.assertEqual(answer.status, 202)
        clusters, pools = self.fleet.of(gid)
        self.assertEqual([r["created_by"] for r in clusters + pools], ["deployer@example.com"] * 2)


class NoIdentity(Case):
    # Without the setting no header is believed.
    def test_no_header_is_believed(self):
        made = self.client.post(BASE + "/clusters", create_body("id-off"),
                                {"X-HyperFleet-Identity": "jane@example.com"})
        self.assertEqual(made.json["created_by"], SYSTEM)

    # A member of a condition may be as long as Kubernetes lets it be, and not longer.
    def test_bounds_of_a_report(self):
        made = self.client.post(BASE + "/clusters", create_body("bounds")).json
        for member, longest in (("type", 316), ("reason", 1024), ("message", 32768)):
            for letter, extra, status in (("x", 0, 201), ("x", 1, 400), ("\u00fc", 0, 201),
                                          ("\u00fc", 1, 400)):
                cond = condition("Extra", True, "R", "m")
                cond[member] = letter * (longest + extra)
                answer = self.client.post(made["href"] + "/statuses",
                                          report_body("validation", 1, extra=[cond]))
                self.assertEqual(answer.status, status,
                                 "%s of %d characters" % (member, longest + extra))
                if status == 400:
                    self.problem(answer, 400, "HYPERFLEET-VAL-000",
                                 errors="conditions[3].%s" % member)
        for letter, length, status in (("a", 128, 201), ("\u00fc", 128, 201), ("a", 129, 400)):
            answer = self.client.post(made["href"] + "/statuses", report_body(letter * length, 1))
            self.assertEqual(answer.status, status)
        self.problem(answer, 400, "HYPERFLEET-VAL-000", errors="adapter")

    # The reason of a forced deletion is as long as the API document says, in characters.
    def test_bounds_of_a_reason(self):
        made = self.client.post(BASE + "/clusters", create_body("forced")).json
        self.assertEqual(self.client.delete(made["href"]).status, 202)
        for reason in ("", "\u00fc" * 1025):
            self.problem(self.client.post(made["href"] + "/force-delete", {"reason": reason}), 400,
                         "HYPERFLEET-VAL-000", errors="reason")
        self.assertEqual(self.client.post(made["href"] + "/force-delete",
                                          {"reason": "\u00fc" * 1024}).status, 204)


class Metrics(Case):
    def metrics(self):
        """Sample -> value, of the metrics with HyperFleet's names."""
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        lines = ops.get("/metrics").body.decode("utf-8").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith("hyperfleet_"))

    # Requests are counted under HyperFleet's names, its path being a template; what matches no
    # route of its API is not.
    def test_requests_have_hyperfleets_names(self):
        made = self.client.post(BASE + "/clusters", create_body("counted")).json
        pool = self.client.post(made["href"] + "/nodepools", create_body("pool", "NodePool")).json
        self.fleet.accepted(pool, "validation")
        for path in (made["href"], made["href"], BASE + "/clusters/2none", "/" + guresid(),
                     BASE + "/nothing", "/api/hyperfleet"):
            self.client.get(path)
        found = self.metrics()
        labels = 'component="api",version="%s",' % self.client.get("/api/hyperfleet").json[
            "version"]
        want = {("POST", "/clusters", 201): 1, ("POST", "/clusters/-/nodepools", 201): 1,
                ("GET", "/clusters/-", 200): 2,
                ("GET", "/clusters/-", 404): 1,
                ("POST", "/clusters/-/nodepools/-/statuses", 201): 1}
        for (method, path, code), count in want.items():
            sample = '{%smethod="%s",path="%s",code="%d"}' % (labels, method, BASE + path, code)
            self.assertEqual(found["hyperfleet_api_requests_total" + sample], str(count))
            self.assertEqual(found["hyperfleet_api_request_duration_seconds_count" + sample],
                             str(count))
        self.assertEqual(sum(k.startswith("hyperfleet_api_requests_total") for k in found),
                         len(want))
        bounds = [re.search(r'le="([^"]+)"', k).group(1) for k in found
                  if k.startswith("hyperfleet_api_request_duration_seconds_bucket")
                  and 'method="GET"' in k and 'code="404"' in k]
        self.assertEqual(bounds, "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf".split())
        self.assertEqual(found["hyperfleet_api_build_info{%s}" % labels.rstrip(",")], "1")


class Vocabulary(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--fleet-conditions", "ready")
    TYPES = ("Ready", "Available")

    def seen(self, doc):
        found = conditions_of(doc)
        aggregated = {t for t in found if not t.endswith("Successful")}
        self.assertEqual(aggregated, set(self.TYPES))
        return found

    # Every answer that shows a cluster or nodepool shows the same names: create, get, list, patch,
    # delete.
    def test_every_document_has_the_names(self):
        made = self.client.post(BASE + "/clusters", create_body("names")).json
        pool = self.client.post(made["href"] + "/nodepools", create_body("pool", "NodePool")).json
        self.fleet.make_ready(made)
        docs = [made, pool, self.client.get(made["href"]).json, self.client.get(pool["href"]).json,
                self.client.patch(made["href"], {"spec": {"a": 1}}).json,
                self.client.patch(pool["href"], {"spec": {"a": 1}}).json]
        docs += self.fleet.list("/clusters") + self.fleet.list("/nodepools")
        docs += [self.client.delete(pool["href"]).json, self.client.delete(made["href"]).json]
        for doc in docs:
            self.seen(doc)

    # Both generations tell the same: status, generation and times are those of the other name.
    def test_statuses_agree(self):
        made = self.client.post(BASE + "/clusters", create_body("agree")).json
        self.fleet.make_ready(made)
        found = self.seen(self.fleet.get(made))
        for name in self.TYPES:
            self.assertEqual(found[name]["status"], "True", name)
            self.assertEqual(found[name]["observed_generation"], 1, name)

    # The driver decides by the stored names, whatever is shown.
    def test_the_driver_does_not_care(self):
        gid, _, cookie = self.created(cluster_input())
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)


class Reconciled(Vocabulary):
    FLAGS = ("--fleet-conditions", "reconciled")
    TYPES = ("Reconciled", "LastKnownReconciled")


class Both(Vocabulary):
    FLAGS = ()
    TYPES = ("Ready", "Available", "Reconciled", "LastKnownReconciled")


if __name__ == "__main__":
    unittest.main()
