"""What the doors of HyperFleet's API add to a request or an answer: the caller's name, the vocabulary of conditions, bounds on reports."""
import unittest

from lib import (BASE, Case, cluster_input, conditions_of, condition, guresid, report_body)

SYSTEM = "system@hyperfleet.local"


def create_body(name, kind="Cluster", **more):
    return dict({"kind": kind, "name": name, "spec": {}}, **more)


class Identity(Case):
    FLAGS = ("--fleet-identity-header", "X-HyperFleet-Identity")

    def as_(self, who):
        return {} if who is None else {"x-hyperfleet-identity": who}

    # Creating, changing and deleting each name their own caller.
    def test_each_write_names_its_caller(self):
        made = self.client.post(BASE + "/clusters", create_body("id-writes"), self.as_("jane@example.com")).json
        self.assertEqual((made["created_by"], made["updated_by"]), ("jane@example.com", "jane@example.com"))
        changed = self.client.patch(made["href"], {"spec": {"a": 1}}, self.as_("bob")).json
        self.assertEqual((changed["created_by"], changed["updated_by"]), ("jane@example.com", "bob@hyperfleet.local"))
        gone = self.client.delete(made["href"], self.as_("eve@example.com")).json
        self.assertEqual(gone["deleted_by"], "eve@example.com")

    # What is no name is written as the system's, and refuses nothing.
    def test_no_name_is_the_system(self):
        for n, who in enumerate((None, "", "a b", "x@", "@", "a" * 255)):
            made = self.client.post(BASE + "/clusters", create_body("id-none-%d" % n), self.as_(who))
            self.assertEqual(made.status, 201)
            self.assertEqual(made.json["created_by"], SYSTEM, "for %r" % who)

    # A PUT of the driver contract names its caller in what it makes, nodepools included.
    def test_driver_writes_name_their_caller(self):
        gid = guresid("who")
        answer = self.client.put("/" + gid, cluster_input(nodepools=[{"name": "workers"}]), self.as_("deployer@example.com"))
        self.assertEqual(answer.status, 202)
        clusters, pools = self.fleet.of(gid)
        self.assertEqual([r["created_by"] for r in clusters + pools], ["deployer@example.com"] * 2)


class NoIdentity(Case):
    # Without the setting no header is believed.
    def test_no_header_is_believed(self):
        made = self.client.post(BASE + "/clusters", create_body("id-off"), {"X-HyperFleet-Identity": "jane@example.com"})
        self.assertEqual(made.json["created_by"], SYSTEM)

    # A member of a condition may be as long as Kubernetes lets it be, and not longer.
    def test_bounds_of_a_report(self):
        made = self.client.post(BASE + "/clusters", create_body("bounds")).json
        for member, longest in (("type", 316), ("reason", 1024), ("message", 32768)):
            for extra, status in ((0, 201), (1, 400)):
                cond = condition("Extra", True, "R", "m")
                cond[member] = "x" * (longest + extra)
                answer = self.client.post(made["href"] + "/statuses", report_body("validation", 1, extra=[cond]))
                self.assertEqual(answer.status, status, "%s of %d bytes" % (member, longest + extra))
                if status == 400:
                    self.problem(answer, 400, "HYPERFLEET-VAL-000", errors="conditions[3].%s" % member)
        for length, status in ((128, 201), (129, 400)):
            answer = self.client.post(made["href"] + "/statuses", report_body("a" * length, 1))
            self.assertEqual(answer.status, status)
        self.problem(answer, 400, "HYPERFLEET-VAL-000", errors="adapter")


class Vocabulary(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    TYPES = ("Ready", "Available")

    def seen(self, doc):
        found = conditions_of(doc)
        aggregated = {t for t in found if not t.endswith("Successful")}
        self.assertEqual(aggregated, set(self.TYPES))
        return found

    # Every answer that shows a cluster or nodepool shows the same names: create, get, list, patch, delete.
    def test_every_document_has_the_names(self):
        made = self.client.post(BASE + "/clusters", create_body("names")).json
        pool = self.client.post(made["href"] + "/nodepools", create_body("pool", "NodePool")).json
        self.fleet.make_ready(made)
        docs = [made, pool, self.client.get(made["href"]).json, self.client.get(pool["href"]).json,
                self.client.patch(made["href"], {"spec": {"a": 1}}).json, self.client.patch(pool["href"], {"spec": {"a": 1}}).json]
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
    FLAGS = ("--fleet-conditions", "both")
    TYPES = ("Ready", "Available", "Reconciled", "LastKnownReconciled")


if __name__ == "__main__":
    unittest.main()
