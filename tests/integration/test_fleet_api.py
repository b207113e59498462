"""HyperFleet's API: resources, generations, reports, aggregation row by row over the wire,
deletion, and problem documents.
"""
import datetime
import re
import threading
import time
import unittest

from lib import (BASE, Case, Client, Fleet, RESOURCE_ID, Server, condition, conditions_of, now_text,
                 parse_time, report_body, time_text,
                 utc_now)

AWAITING = ("AwaitingAdapters", "Waiting for adapters to report status")
NAME_RULE = ("name must start and end with lowercase letter or number, "
             "and contain only lowercase letters, numbers, and hyphens")
_names = iter(range(1, 10**9))


def name(prefix="c"):
    return "%s%d" % (prefix, next(_names) + 100)


class FleetCase(Case):
    ADAPTERS = ("a-one", "b")
    POOL_ADAPTERS = ("np",)

    def cluster(self, **kw):
        body = {"kind": "Cluster", "name": name(), "spec": {}}
        body.update(kw)
        answer = self.client.post(BASE + "/clusters", body)
        self.assertEqual(answer.status, 201)
        return answer.json

    def pool(self, cluster, **kw):
        body = {"kind": "NodePool", "name": name("np"), "spec": {}}
        body.update(kw)
        answer = self.client.post(cluster["href"] + "/nodepools", body)
        self.assertEqual(answer.status, 201)
        return answer.json

    def conditions(self, resource):
        return conditions_of(self.fleet.get(resource))

    def same_time(self, text, wanted, msg=None):
        self.assertEqual(parse_time(text), parse_time(wanted), msg)

    def recent(self, text, msg=None):
        """A time that the server took now."""
        self.assertLess(abs((parse_time(text) - utc_now()).total_seconds()), 60, msg)


class Resources(FleetCase):
    def check_resource(self, doc, kind):
        self.assertEqual(doc["kind"], kind)
        self.assertRegex(doc["id"], RESOURCE_ID)
        for key in ("created_time", "updated_time"):
            self.recent(doc[key], key)
        for key in ("created_by", "updated_by"):
            self.assertRegex(doc[key], r"^[^@\s]+@[^@\s]+$", "%s is e-mail shaped" % key)
        self.assertNotIn("deleted_time", doc)
        self.assertNotIn("deleted_by", doc)

    def check_initial(self, doc):
        conds = conditions_of(doc)
        self.assertEqual(set(conds), {"Ready", "Available", "Reconciled", "LastKnownReconciled"})
        words = {"Ready": AWAITING, "Available": AWAITING,
                 "LastKnownReconciled": ("AdaptersMissingReports",
                                         "Required adapters have not yet reported status"),
                 "Reconciled": ("ReconciledMissingAdapters", "Required adapters not reporting "
                                "Available=True: [%s]. Currently reporting: []"
                                % ", ".join(sorted(self.ADAPTERS if doc["kind"] == "Cluster"
                                                   else self.POOL_ADAPTERS)))}
        for type_, cond in conds.items():
            self.assertEqual((cond["status"], cond["reason"], cond["message"],
                              cond["observed_generation"]), ("False", *words[type_], 1))
            for key in ("created_time", "last_updated_time", "last_transition_time"):
                self.recent(cond[key], key)
            self.same_time(cond["last_updated_time"], cond["last_transition_time"])

    def test_create_and_get_cluster(self):
        """201 with the whole resource; GET gives the same."""
        body = {"kind": "Cluster", "name": name(), "spec": {"a": {"b": [1, None, "\u00e9"]}},
                "labels": {"environment": "production"}}
        answer = self.client.post(BASE + "/clusters", body)
        self.assertEqual(answer.status, 201)
        self.assertEqual(answer.header("Content-Type").split(";")[0], "application/json")
        doc = answer.json
        self.check_resource(doc, "Cluster")
        self.check_initial(doc)
        self.assertEqual(doc["href"], BASE + "/clusters/" + doc["id"])
        self.assertEqual((doc["name"], doc["spec"], doc["labels"], doc["generation"]),
                         (body["name"], body["spec"], body["labels"], 1))
        self.assertEqual(doc["created_by"], "system@hyperfleet.local")
        got = self.client.get(doc["href"])
        self.assertEqual((got.status, got.json), (200, doc))
        self.restart()
        self.assertEqual(self.client.get(doc["href"]).json, doc)

    def test_create_and_get_nodepool(self):
        """The same for nodepools, nested under the cluster; the flat path answers too."""
        cluster = self.cluster()
        answer = self.client.post(cluster["href"] + "/nodepools",
                                  {"kind": "NodePool", "name": "worker-pool", "spec": {"n": 1},
                                   "labels": {"role": "worker"}})
        self.assertEqual(answer.status, 201)
        doc = answer.json
        self.check_resource(doc, "NodePool")
        self.check_initial(doc)
        self.assertEqual(doc["href"], "%s/nodepools/%s" % (cluster["href"], doc["id"]))
        self.assertEqual(doc["owner_references"]["id"], cluster["id"])
        self.assertEqual(doc["owner_references"]["kind"], "Cluster")
        self.assertEqual(doc["owner_references"].get("href", cluster["href"]), cluster["href"])
        for path in (doc["href"], BASE + "/nodepools/" + doc["id"]):
            got = self.client.get(path)
            self.assertEqual((got.status, got.json), (200, doc))

    def test_labels_default(self):
        """labels default to {} and are always there."""
        self.assertEqual(self.cluster()["labels"], {})
        self.assertEqual(self.cluster(labels=None)["labels"], {})

    def test_ids_are_unique_and_ordered(self):
        """Ids sort by time, never come twice, and can name a Kubernetes object."""
        ids = [self.cluster()["id"] for _ in range(20)]
        self.assertEqual(len(set(ids)), 20)
        self.assertEqual(sorted(ids), ids)
        for name in ids:
            self.assertRegex(name + "-k8s", r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")

    def test_create_rejects(self):
        """Each rule of creation with its code and detail; nothing is made."""
        before = self.client.get(BASE + "/clusters?pageSize=1").json["total"]
        cluster = self.cluster()
        for kind, path, size in (("Cluster", BASE + "/clusters", 53),
                                 ("NodePool", cluster["href"] + "/nodepools", 15)):
            good = {"kind": kind, "name": "good-name", "spec": {}}
            val, mal = "HYPERFLEET-VAL-000", "HYPERFLEET-VAL-006"
            cases = [
                (dict(good, name=""), val, "name is required"),
                ({"kind": kind, "spec": {}}, val, "name is required"),
                (dict(good, name="ab"), val, "name must be at least 3 characters"),
                (dict(good, name="x" * (size + 1)), val,
                 "name must be at most %d characters" % size),
                (dict(good, name="Upper"), val, NAME_RULE),
                (dict(good, name="-abc"), val, NAME_RULE),
                (dict(good, name="abc-"), val, NAME_RULE),
                (dict(good, name="a_bc"), val, NAME_RULE),
                (dict(good, name="a.bc"), val, NAME_RULE),
                ({"name": "good-name", "spec": {}}, val, "kind is required"),
                (dict(good, kind=""), val, "kind is required"),
                (dict(good, kind=kind.lower()), val, "kind must be '%s'" % kind),
                (dict(good, kind="Pod"), val, "kind must be '%s'" % kind),
                ({"kind": kind, "name": "good-name"}, val, "spec is required"),
                (dict(good, spec=None), val, None),
                (dict(good, spec=[]), val, "spec field must be an object"),
                (dict(good, spec="x"), val, "spec field must be an object"),
                (dict(good, id="2abc"), val, "id must be empty"),
                (dict(good, name=7), mal, None), (dict(good, labels={"a": 1}), mal, None),
                (dict(good, labels="x"), mal, None),
                (dict(good, kind=1), mal, None),
            ]
            for body, code, detail in cases:
                with self.subTest(kind=kind, body=body):
                    self.problem(self.client.post(path, body), 400, code, detail)
            for raw in (b"", b"{", b"nonsense", b'{"a":1}{"b":2}', b"\xff"):
                with self.subTest(kind=kind, raw=raw):
                    self.problem(self.client.post(path, raw), 400, mal)
            for raw in (b"[]", b"1", b"null", b'"x"'):
                with self.subTest(kind=kind, raw=raw):
                    self.problem(self.client.post(path, raw), 400, mal)
        self.assertEqual(self.client.get(BASE + "/clusters?pageSize=1").json["total"], before + 1)
        self.assertEqual(self.client.get(cluster["href"] + "/nodepools").json["total"], 0)

    def test_names_at_the_limits(self):
        """3 and 53 characters for clusters, 3 and 15 for nodepools."""
        for n in ("abc", "9" * 53, "a" + "-" * 51 + "z"):
            cluster = self.cluster(name=n)
        for n in ("abc", "9" * 15):
            self.pool(cluster, name=n)

    def test_duplicates(self):
        """A name is unique among clusters, and within a cluster among its nodepools: 409."""
        one, two = self.cluster(), self.cluster()
        self.problem(self.client.post(BASE + "/clusters",
                                      {"kind": "Cluster", "name": one["name"], "spec": {}}), 409,
                                      "HYPERFLEET-CNF-001",
                     "This Cluster already exists")
        self.pool(one, name="same")
        self.problem(self.client.post(one["href"] + "/nodepools",
                                      {"kind": "NodePool", "name": "same", "spec": {}}), 409,
                     "HYPERFLEET-CNF-001",
                     "This NodePool already exists")
        self.pool(two, name="same")

    def test_not_found(self):
        """404 problems with their three details; an invalid body on an unknown cluster is 400
        first.
        """
        cluster, other = self.cluster(), self.cluster()
        pool = self.pool(cluster)
        none = "2" + "x" * 26
        ntf = "HYPERFLEET-NTF-001"
        for method in ("GET", "DELETE"):
            self.problem(self.client.request(method, BASE + "/clusters/" + none), 404, ntf,
                         "Cluster with id='%s' not found" % none)
            self.problem(self.client.request(method, cluster["href"] + "/nodepools/" + none), 404,
                         ntf,
                         "NodePool with id='%s' not found" % none)
            self.problem(self.client.request(method, "%s/clusters/%s/nodepools/%s"
                                             % (BASE, none, pool["id"])), 404, ntf)
            self.problem(self.client.request(method, other["href"] + "/nodepools/" + pool["id"]),
                         404, ntf,
                         "NodePool '%s' not found for cluster '%s'" % (pool["id"], other["id"]))
        self.problem(self.client.get(BASE + "/clusters/" + none + "/nodepools"), 404, ntf)
        self.problem(self.client.patch(BASE + "/clusters/" + none, {"spec": {}}), 404, ntf)
        self.problem(self.client.post(BASE + "/clusters/" + none + "/nodepools",
                                      {"kind": "NodePool", "name": "abc", "spec": {}}), 404,
                     ntf,
                     "Cluster with id='%s' not found" % none)
        self.problem(self.client.post(BASE + "/clusters/" + none + "/nodepools",
                                      {"kind": "NodePool", "spec": {}}), 400,
                     "HYPERFLEET-VAL-000")
        for path in ("/clusters/" + none, "/clusters/%s/nodepools/%s" % (other["id"], pool["id"]),
                     "/clusters/%s/nodepools/%s" % (cluster["id"], none)):
            with self.subTest(path):
                self.problem(self.client.get(BASE + path + "/statuses"), 404, ntf)
                self.problem(self.client.post(BASE + path + "/statuses", report_body("b", 1)), 404,
                             ntf)
                self.problem(self.client.put(BASE + path + "/statuses", report_body("b", 1)), 404,
                             ntf)
                self.problem(self.client.post(BASE + path + "/statuses", report_body("", 1)), 400,
                             "HYPERFLEET-VAL-000")
        for odd in ("x", "%20", "a'b", "%00", "x" * 300, "..%2f"):
            self.assertIn(self.client.get(BASE + "/clusters/" + odd).status, (400, 404), odd)

    def test_unknown_routes(self):
        """An unknown route is 404 HYPERFLEET-NTF-000, and says which."""
        for path in ("/api/hyperfleet/v1/nothing", "/api/hyperfleet/v2/clusters",
                     "/api/hyperfleet/v1/clusters/x/y",
                     "/api/hyperfleet/v1/clusters/x/nodepools/y/z"):
            for method in ("GET", "POST"):
                with self.subTest(path=path, method=method):
                    doc = self.problem(self.client.request(method, path, {} if method == "POST"
                                                           else None), 404, "HYPERFLEET-NTF-000")
                    self.assertIn(path, doc["detail"])

    def test_nodepool_without_cluster(self):
        """A nodepool is created below its cluster: POST to the flat list is 422 that says so."""
        answer = self.client.post(BASE + "/nodepools", {"kind": "NodePool", "name": "x"})
        self.problem(answer, 422, "HYPERFLEET-VAL-000",
                     'kind "NodePool" is a child kind; create it via /clusters/{id}/nodepools')

    def test_titles(self):
        """Titles of what is no resource and of what is being deleted are HyperFleet's later ones.
        """
        cluster = self.cluster()
        self.client.delete(cluster["href"])
        for answer, title in ((self.client.get(BASE + "/nowhere"), "Endpoint Not Found"),
                              (self.client.get(BASE + "/clusters/2none"), "Resource Not Found"),
                              (self.client.patch(cluster["href"], {"spec": {}}), "State Conflict")):
            self.assertEqual(answer.json["title"], title)

    def test_wrong_methods(self):
        """A known path with another method is 405 with Allow."""
        cluster = self.cluster()
        pool = self.pool(cluster)
        cases = {BASE + "/clusters": ("PUT", "PATCH", "DELETE"), cluster["href"]: ("PUT", "POST"),
                 cluster["href"] + "/statuses": ("PATCH", "DELETE"),
                 BASE + "/nodepools": ("PUT", "PATCH", "DELETE"), pool["href"]: ("PUT", "POST"),
                 pool["href"] + "/statuses": ("PATCH", "DELETE"),
                 cluster["href"] + "/nodepools": ("PUT", "PATCH", "DELETE")}
        for path, methods in cases.items():
            for method in methods:
                with self.subTest(path=path, method=method):
                    answer = self.client.request(method, path, {} if method != "DELETE" else None)
                    self.assertEqual(answer.status, 405)
                    self.assertIn("GET", answer.header("Allow") or "")
        self.assertEqual(self.client.get(cluster["href"]).json, cluster)

    def test_trailing_slash(self):
        """One trailing slash is trimmed."""
        cluster = self.cluster()
        self.assertEqual(self.client.get(BASE + "/clusters/").status, 200)
        self.assertEqual(self.client.get(cluster["href"] + "/").json, cluster)

    def test_metadata_route(self):
        """GET /api/hyperfleet describes the API."""
        answer = self.client.get("/api/hyperfleet")
        self.assertEqual(answer.status, 200)
        doc = answer.json
        self.assertEqual((doc["id"], doc["href"], doc["kind"]),
                         ("hyperfleet", "/api/hyperfleet", "API"))
        self.assertRegex(doc["build_time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_request_ids(self):
        """Every routed request has its own X-Request-ID; a problem carries it as trace_id; the
        client's is not taken over.
        """
        one = self.client.get(BASE + "/clusters", {"X-Request-ID": "mine"}).header("X-Request-ID")
        answer = self.client.get(BASE + "/clusters/none")
        self.assertRegex(one or "", r"^[0-9A-Za-z-]{16,64}$")
        self.assertNotEqual(one, answer.header("X-Request-ID"))
        self.assertEqual(answer.json["trace_id"], answer.header("X-Request-ID"))

    def test_list(self):
        """Lists: kind, page, size (items on this page), total, items; newest first; nested nodepool
        lists show one cluster's only.
        """
        clusters = [self.cluster() for _ in range(3)]
        pools = [self.pool(clusters[0]) for _ in range(2)] + [self.pool(clusters[1])]
        doc = self.client.get(BASE + "/clusters").json
        self.assertEqual((doc["kind"], doc["page"]), ("ClusterList", 1))
        self.assertEqual(doc["size"], len(doc["items"]))
        self.assertGreaterEqual(doc["total"], 3)
        everything = {c["id"]: c for c in self.fleet.list("/clusters")}
        for c in clusters:
            self.assertEqual(everything[c["id"]], self.client.get(c["href"]).json)
        doc = self.client.get(clusters[0]["href"] + "/nodepools").json
        self.assertEqual((doc["kind"], doc["page"], doc["size"], doc["total"]),
                         ("NodePoolList", 1, 2, 2))
        self.assertEqual({p["id"] for p in doc["items"]}, {p["id"] for p in pools[:2]})
        self.assertTrue({p["id"]
                         for p in pools} <= {p["id"] for p in self.fleet.list("/nodepools")})
        doc = self.client.get(clusters[2]["href"] + "/nodepools").json
        self.assertEqual((doc["size"], doc["total"], doc["items"]), (0, 0, []))

    def test_list_pages(self):
        """page and pageSize; beyond the end an empty page with the real total; each item exactly
        once.
        """
        cluster = self.cluster()
        made = {self.pool(cluster)["id"] for _ in range(7)}
        seen = []
        for page, size in ((1, 3), (2, 3), (3, 1), (4, 0)):
            doc = self.client.get("%s/nodepools?page=%d&pageSize=3" % (cluster["href"], page)).json
            self.assertEqual((doc["page"], doc["size"], doc["total"]), (page, size, 7))
            seen += [i["id"] for i in doc["items"]]
        self.assertEqual(sorted(seen), sorted(made))

    def test_body_too_large(self):
        """Over 1 MiB is 413 here too, as a problem."""
        answer = self.client.post(BASE + "/clusters",
                                  {"kind": "Cluster", "name": "big",
                                   "spec": {"x": "y" * (1024 * 1024)}})
        self.assertEqual(answer.status, 413)
        self.assertEqual(answer.header("Content-Type").split(";")[0], "application/problem+json")
        self.client.close()

    def test_duplicate_keys(self):
        """Duplicate keys are refused."""
        self.problem(self.client.post(BASE + "/clusters",
                                      b'{"kind":"Cluster","name":"dup","name":"dup","spec":{}}'),
                                      400,
                     "HYPERFLEET-VAL-006")


class Changes(FleetCase):
    def test_patch(self):
        """PATCH replaces spec and labels each as a whole, and raises the generation on every real
        change.
        """
        for kind in ("Cluster", "NodePool"):
            with self.subTest(kind):
                doc = self.cluster(spec={"a": 1, "b": {"c": 2}}, labels={"x": "1"})
                if kind == "NodePool":
                    doc = self.pool(doc, spec={"a": 1, "b": {"c": 2}}, labels={"x": "1"})

                def patch(body, generation, spec, labels):
                    answer = self.client.patch(doc["href"], body)
                    self.assertEqual(answer.status, 200)
                    got = answer.json
                    self.assertEqual((got["generation"], got["spec"], got["labels"]),
                                     (generation, spec, labels))
                    self.assertEqual(self.client.get(doc["href"]).json, got)
                    self.assertEqual((got["id"], got["created_time"]),
                                     (doc["id"], doc["created_time"]))
                    return got

                spec = {"b": {"c": 2}, "a": 1}
                got = patch({"spec": spec}, 1, spec, {"x": "1"})
                self.assertEqual(got["updated_time"], doc["updated_time"], "nothing changed")
                patch({"spec": {"a": 2}}, 2, {"a": 2}, {"x": "1"})
                patch({"spec": {"a": 2.0}}, 2, {"a": 2}, {"x": "1"})
                patch({"labels": {"y": "2"}}, 3, {"a": 2}, {"y": "2"})
                patch({"labels": {"y": "2"}}, 3, {"a": 2}, {"y": "2"})
                patch({"spec": {"a": 3}, "labels": {}}, 4, {"a": 3}, {})
                patch({"spec": {}}, 5, {}, {})
                self.restart()
                self.assertEqual(self.client.get(doc["href"]).json["generation"], 5)

    def test_patch_flat_nodepool(self):
        """PATCH and DELETE on the flat nodepool path."""
        pool = self.pool(self.cluster())
        flat = BASE + "/nodepools/" + pool["id"]
        self.assertEqual(self.client.patch(flat, {"spec": {"n": 1}}).json["generation"], 2)
        self.assertEqual(self.client.delete(flat).status, 202)
        self.assertIn("deleted_time", self.client.get(flat).json)

    def test_patch_rejects(self):
        """Empty patches, unknown fields, wrong types: 400 and no change."""
        doc = self.cluster()
        for body in ({}, {"spec": None}, {"spec": []}, {"spec": "x"}, {"labels": {"a": 1}},
                     {"labels": []}, {"name": "other-name"},
                     {"generation": 5},
                     {"spec": {"a": 1}, "unknown": 1}, {"status": {}}):
            with self.subTest(body):
                answer = self.client.patch(doc["href"], body)
                self.assertEqual(answer.status, 400)
                self.assertTrue(answer.json["code"].startswith("HYPERFLEET-VAL-"))
        answer = self.client.patch(doc["href"],
                                   {"name": "other-name", "spec": 1, "kind": "Cluster"})
        self.assertEqual(sorted(e["field"] for e in answer.json["errors"]),
                         ["kind", "name", "spec"], "all of them at once")
        self.problem(self.client.patch(doc["href"], b"{"), 400, "HYPERFLEET-VAL-006")
        self.problem(self.client.patch(doc["href"], {}), 400, "HYPERFLEET-VAL-005",
                     "at least one field must be provided for update")
        self.assertEqual(self.client.get(doc["href"]).json, doc)

    def test_generations_of_owner_and_child_are_their_own(self):
        """A nodepool's change does not touch its cluster."""
        cluster = self.cluster()
        pool = self.pool(cluster)
        self.client.patch(pool["href"], {"spec": {"n": 2}})
        self.assertEqual(self.client.get(cluster["href"]).json["generation"], 1)

    def test_parallel_patches(self):
        """Every real change counts exactly once, also when they come together."""
        doc = self.cluster()
        def work(i):
            client = Client(self.server)
            for j in range(10):
                assert client.patch(doc["href"], {"spec": {"i": i, "j": j}}).status == 200
            client.close()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(self.client.get(doc["href"]).json["generation"], 41)

    def test_parallel_creates(self):
        """The same name from eight callers: one 201, the others 409."""
        statuses = []
        def work():
            client = Client(self.server)
            statuses.append(client.post(BASE + "/clusters",
                                        {"kind": "Cluster", "name": "race", "spec": {}}).status)
            client.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(sorted(statuses), [201] + [409] * 7)


class Deletion(FleetCase):
    def test_delete(self):
        """DELETE is 202 with deleted_time and deleted_by and one more generation; a repeat changes
        nothing; GET and lists show it still.
        """
        doc = self.cluster()
        answer = self.client.delete(doc["href"])
        self.assertEqual(answer.status, 202)
        got = answer.json
        self.recent(got["deleted_time"])
        self.assertRegex(got["deleted_by"], "@")
        self.assertEqual(got["generation"], 2)
        self.assertEqual(conditions_of(got)["Ready"]["status"], "False")
        again = self.client.delete(doc["href"])
        self.assertEqual((again.status, again.json), (202, got))
        self.assertEqual(self.client.get(doc["href"]).json, got)
        self.assertIn(doc["id"], [c["id"] for c in self.fleet.list("/clusters")])

    def test_marked_for_deletion(self):
        """PATCH and a new nodepool on it are 409 HYPERFLEET-CNF-003, "State Conflict"."""
        doc = self.cluster()
        pool = self.pool(doc)
        self.client.delete(doc["href"])
        self.problem(self.client.patch(doc["href"], {"spec": {"a": 1}}), 409, "HYPERFLEET-CNF-003",
                     "Cluster '%s' is marked for deletion" % doc["id"])
        self.problem(self.client.patch(pool["href"], {"spec": {"a": 1}}), 409, "HYPERFLEET-CNF-003")
        self.problem(self.client.post(doc["href"] + "/nodepools",
                                      {"kind": "NodePool", "name": "late", "spec": {}}), 409,
                     "HYPERFLEET-CNF-003")

    def test_name_is_free_again(self):
        """A name is free as soon as its holder is being deleted."""
        doc = self.cluster()
        self.client.delete(doc["href"])
        other = self.cluster(name=doc["name"])
        self.assertNotEqual(other["id"], doc["id"])
        self.assertEqual(other["generation"], 1)

    def test_finalized_removes(self):
        """The report that completes Finalized removes the resource with its reports: 201, then 404.
        """
        doc = self.cluster()
        self.fleet.make_ready(doc)
        doc = self.client.delete(doc["href"]).json
        self.fleet.accepted(doc, "a-one", finalized=True)
        self.assertEqual(self.client.get(doc["href"]).status, 200)
        self.fleet.accepted(doc, "b", available=False, finalized=False)
        self.fleet.accepted(doc, "other", finalized=True)
        self.assertEqual(self.client.get(doc["href"]).status, 200)
        answer = self.fleet.accepted(doc, "b", available=False, finalized=True)
        self.assertEqual(answer.json["adapter"], "b")
        self.problem(self.client.get(doc["href"]), 404, "HYPERFLEET-NTF-001")
        self.problem(self.client.get(doc["href"] + "/statuses"), 404, "HYPERFLEET-NTF-001")
        self.problem(self.fleet.report(doc, "b"), 404, "HYPERFLEET-NTF-001")
        self.assertNotIn(doc["id"], [c["id"] for c in self.fleet.list("/clusters")])

    def test_finalized_counts_whatever_available_says(self):
        """While deleting, Finalized=True counts with Available True, False or Unknown; before the
        deletion it removes nothing.
        """
        for available in (True, False, "Unknown"):
            with self.subTest(available=available):
                doc = self.cluster()
                for adapter in self.ADAPTERS:
                    self.fleet.report(doc, adapter, available=True, finalized=True)
                self.assertEqual(self.client.get(doc["href"]).status, 200)
                doc = self.client.delete(doc["href"]).json
                self.assertEqual(self.client.get(doc["href"]).status, 200,
                                 "Finalized of an older generation does not count")
                for adapter in self.ADAPTERS:
                    self.fleet.accepted(doc, adapter, available=available, finalized=True)
                self.assertEqual(self.client.get(doc["href"]).status, 404)

    def test_finalized_at_the_old_generation(self):
        """Finalized at the generation of before the deletion does not count."""
        doc = self.cluster()
        doc = self.client.delete(doc["href"]).json
        for adapter in self.ADAPTERS:
            self.fleet.report(doc, adapter, doc["generation"] - 1, finalized=True)
        self.assertEqual(self.client.get(doc["href"]).status, 200)

    def test_cascade(self):
        """DELETE of a cluster deletes its nodepools with it; the cluster goes only after its last
        nodepool, and then at once.
        """
        cluster = self.cluster()
        pools = [self.pool(cluster), self.pool(cluster)]
        early = self.client.delete(pools[0]["href"]).json
        cluster = self.client.delete(cluster["href"]).json
        docs = [self.client.get(p["href"]).json for p in pools]
        self.assertEqual([d["generation"] for d in docs], [2, 2])
        self.assertEqual(docs[0]["deleted_time"], early["deleted_time"])
        self.same_time(docs[1]["deleted_time"], cluster["deleted_time"])
        self.fleet.finalize(cluster)
        self.assertEqual(self.client.get(cluster["href"]).status, 200)
        self.fleet.finalize(docs[0])
        self.assertEqual(self.client.get(pools[0]["href"]).status, 404)
        self.assertEqual(self.client.get(cluster["href"]).status, 200)
        self.fleet.finalize(docs[1])
        self.assertEqual(self.client.get(pools[1]["href"]).status, 404)
        self.assertEqual(self.client.get(cluster["href"]).status, 404,
                         "the parent is checked again as its last child goes")

    def test_nodepool_first(self):
        """A nodepool alone: gone when finalized; its cluster is left alone."""
        cluster = self.cluster()
        pool = self.pool(cluster)
        self.assertEqual(self.client.delete(pool["href"]).status, 202)
        self.fleet.finalize(pool)
        self.assertEqual(self.client.get(pool["href"]).status, 404)
        self.assertEqual(self.client.get(cluster["href"]).json["generation"], 1)

    def test_parallel_deletes(self):
        """Eight DELETEs together raise the generation once."""
        doc = self.cluster()
        statuses = []
        def work():
            client = Client(self.server)
            statuses.append(client.delete(doc["href"]).status)
            client.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(statuses, [202] * 8)
        self.assertEqual(self.client.get(doc["href"]).json["generation"], 2)

    def test_survives_a_kill(self):
        """A deletion under way goes on after kill -9."""
        cluster = self.cluster()
        pool = self.pool(cluster)
        self.client.delete(cluster["href"])
        self.restart()
        self.assertIn("deleted_time", self.client.get(cluster["href"]).json)
        self.fleet.finalize(pool)
        self.restart()
        self.fleet.finalize(cluster)
        self.assertEqual(self.client.get(cluster["href"]).status, 404)


class FewerAdapters(FleetCase):
    def test_repeated_delete_follows_the_settings(self):
        """When an adapter is waited for no more, a repeated DELETE removes what waited for it
        alone: the nodepools, then the cluster.
        """
        doc = self.cluster()
        pool = self.pool(doc)
        waits = self.cluster()
        for c in (doc, waits):
            self.assertEqual(self.client.delete(c["href"]).status, 202)
        self.fleet.accepted(self.fleet.get(doc), "b", available=False, finalized=True)
        self.server.flags = ["--adapters-required-cluster", "b", "--adapters-required-nodepool",
                             "[]"]
        self.restart()
        for c in (doc, waits):
            self.assertEqual(self.client.delete(c["href"]).status, 202)
        self.problem(self.client.get(doc["href"]), 404, "HYPERFLEET-NTF-001")
        self.problem(self.client.get(pool["href"]), 404, "HYPERFLEET-NTF-001")
        self.assertEqual(self.client.get(waits["href"]).status, 200, "b has not finalized this one")


class OtherAdapters(FleetCase):
    def test_repeated_delete_looks_at_nodepools_again(self):
        """The same after a restart with another required adapter, which has already finalized the
        nodepool.
        """
        doc = self.cluster()
        pool = self.pool(doc)
        self.assertEqual(self.client.delete(doc["href"]).status, 202)
        self.fleet.accepted(self.fleet.get(pool), "z", available=False, finalized=True)
        self.assertEqual(self.client.get(pool["href"]).status, 200)
        self.server.flags = ["--adapters-required-nodepool", "z"]
        self.restart()
        self.assertEqual(self.client.get(pool["href"]).status, 200)
        self.assertEqual(self.client.delete(doc["href"]).status, 202)
        self.problem(self.client.get(pool["href"]), 404, "HYPERFLEET-NTF-001")


class Reports(FleetCase):
    def statuses(self, doc):
        answer = self.client.get(doc["href"] + "/statuses")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json["kind"], "AdapterStatusList")
        self.assertEqual((answer.json["size"], answer.json["total"]),
                         (len(answer.json["items"]),) * 2)
        return {i["adapter"]: i for i in answer.json["items"]}

    def test_report(self):
        """201 with the stored report: the example of the document, by POST and by PUT, on a cluster
        and on both paths of a nodepool.
        """
        cluster = self.cluster()
        pool = self.pool(cluster)
        for href in (cluster["href"], pool["href"], BASE + "/nodepools/" + pool["id"]):
            for method in ("POST", "PUT"):
                with self.subTest(href=href, method=method):
                    body = {"adapter": name("adapter-"), "observed_generation": 1,
                            "observed_time": now_text(),
                            "conditions": [condition("Available", "True", "AllValidationsPassed",
                                                     "All validations passed"),
                                           condition("Applied", "True", "ValidationJobApplied",
                                                     "Validation job applied successfully"),
                                           condition("Health", "True")],
                            "data": {"job_name": "validator-job-abc123", "attempt": 1,
                                     "deep": {"a": [1, None]}},
                            "metadata": {"job_name": "j", "attempt": 2}}
                    answer = self.client.request(method, href + "/statuses", body)
                    self.assertEqual(answer.status, 201)
                    doc = answer.json
                    self.assertEqual((doc["adapter"], doc["observed_generation"], doc["data"]),
                                     (body["adapter"], 1, body["data"]))
                    self.assertEqual(doc["metadata"], body["metadata"])
                    self.assertEqual([c["type"] for c in doc["conditions"]],
                                     ["Available", "Applied", "Health"])
                    for got, sent in zip(doc["conditions"], body["conditions"]):
                        self.assertEqual({k: v for k, v in got.items() if k in sent}, sent)
                        self.same_time(got["last_transition_time"], body["observed_time"])
                    self.same_time(doc["last_report_time"], body["observed_time"])
                    self.assertIn("created_time", doc)
                    items = {i["adapter"]: i
                             for i in self.client.get(href + "/statuses").json["items"]}
                    self.assertEqual(items[body["adapter"]], doc)

    def test_update(self):
        """A later report replaces conditions and data; created_time stays, last_transition_time
        moves only with the status.
        """
        doc = self.cluster()
        first = self.fleet.accepted(doc, "b", data={"x": 1},
                                    extra=[condition("Custom", "True")]).json
        second = self.fleet.accepted(doc, "b", available=False, observed_time=now_text()).json
        self.assertEqual(second["created_time"], first["created_time"])
        self.assertGreater(parse_time(second["last_report_time"]),
                           parse_time(first["last_report_time"]))
        conds = {c["type"]: c for c in second["conditions"]}
        self.assertEqual(set(conds), {"Available", "Applied", "Health"})
        old = {c["type"]: c for c in first["conditions"]}
        self.same_time(conds["Applied"]["last_transition_time"],
                       old["Applied"]["last_transition_time"])
        self.same_time(conds["Available"]["last_transition_time"], second["last_report_time"])
        self.assertEqual(second["data"], {})
        self.assertEqual(self.statuses(doc), {"b": second})

    def test_rejected(self):
        """400 with code and detail, and no trace is left."""
        doc = self.cluster()
        self.fleet.accepted(doc, "b")
        before, conditions = self.statuses(doc), self.client.get(doc["href"]).json
        good = report_body("b", 1, available=False)
        def without(type_):
            return dict(good, conditions=[c for c in good["conditions"] if c["type"] != type_])
        val, mal = "HYPERFLEET-VAL-000", "HYPERFLEET-VAL-006"
        missing = ("missing mandatory condition '%s': "
                   "all adapters must report Available, Applied, and Health")
        cases = [
            (dict(good, adapter=""), val, "adapter is required"),
            ({k: v for k, v in good.items() if k != "adapter"}, val, "adapter is required"),
            (without("Available"), val, missing % "Available"),
            (without("Applied"), val, missing % "Applied"),
            (without("Health"), val, missing % "Health"),
            (dict(good, conditions=[]), val, missing % "Available"),
            (dict(good, conditions=good["conditions"] + [condition("", "True")]), val,
             "condition type cannot be empty at index 3"),
            (dict(good, conditions=good["conditions"] + [condition("Applied", "True")]), val,
             "duplicate condition type 'Applied' at index 3"),
            (dict(good, conditions=[condition("Available", "true")] + good["conditions"][1:]), val,
             "invalid status value 'true' for condition at index 0 (type: Available): must be "
             "'True', 'False', or 'Unknown'"),
            (dict(good, conditions=[condition("Available", "")] + good["conditions"][1:]), val,
             None),
            (dict(good, conditions=good["conditions"] + [condition("Custom", "Maybe")]), val, None),
            (dict(good, observed_generation="1"), mal, None),
            (dict(good, observed_generation=1.5), mal, None),
            (dict(good, observed_generation=2**31), mal, None),
            (dict(good, observed_time="yesterday"), mal, None),
            (dict(good, observed_time="0001-01-01T00:00:00Z"), mal,
             "Invalid request format: observed_time: expected an RFC 3339 date-time of the years "
             "1970 to 9999"),
            (dict(good, observed_time=7), mal, None),
            (dict(good, conditions="x"), mal, None),
            (dict(good, conditions=good["conditions"] + [{"type": "Custom", "status": True}]), mal,
             "Invalid request format: conditions[3].status: expected a string, got a boolean"),
            (dict(good, conditions=[7]), mal, None), (dict(good, data="x"), mal, None),
            (dict(good, data=[1]), mal, None),
            (dict(good, adapter=5), mal, None),
        ]
        for body, code, detail in cases:
            for method in ("POST", "PUT"):
                with self.subTest(method=method, body=body):
                    self.problem(self.client.request(method, doc["href"] + "/statuses", body), 400,
                                 code, detail)
        for raw in (b"", b"{", b"[]", b"null"):
            with self.subTest(raw):
                self.problem(self.client.post(doc["href"] + "/statuses", raw), 400, mal)
        self.assertEqual(self.statuses(doc), before)
        self.assertEqual(self.client.get(doc["href"]).json, conditions)

    def test_clock_ahead(self):
        """A report whose clock is 5 minutes ahead counts. One further ahead is refused with the
        name of the field, and does not keep later reports out.
        """
        doc = self.cluster()
        ahead = time.time_ns() // 1000 + 330 * 1000000
        refused = self.fleet.report(doc, "a", observed_time=time_text(ahead))
        self.problem(refused, 400, "HYPERFLEET-VAL-000",
                     "observed_time must not be more than 5 minutes ahead of the server's clock")
        self.assertEqual([e["field"] for e in refused.json["errors"]], ["observed_time"])
        self.assertEqual(self.statuses(doc), {})
        self.fleet.accepted(doc, "a")
        self.fleet.accepted(doc, "a", observed_time=time_text(ahead - 60 * 1000000))

    def test_discarded(self):
        """204 with an empty body and no state change: generation too high, stale, older, Available
        Unknown (also an adapter's first).
        """
        doc = self.cluster()
        self.client.patch(doc["href"], {"spec": {"v": 2}})
        doc = self.client.get(doc["href"]).json
        t = time.time_ns() // 10000 * 10 + 2  # no zero at the end
        self.fleet.accepted(doc, "b", 2, observed_time=time_text(t))
        before, resource = self.statuses(doc), self.client.get(doc["href"]).json
        unknown = "Available is Unknown"
        cases = {
            "observed_generation 3 is above 2": [
                dict(adapter="b", generation=3), dict(adapter="new", generation=3)],
            "observed_generation 1 is below 2 of the last report": [
                dict(adapter="b", generation=1)],
            "observed_time %s is before %s of the last report" % (time_text(t - 1), time_text(t)): [
                dict(adapter="b", generation=2, observed_time=time_text(t - 1))],
            unknown: [dict(adapter="b", generation=2, available="Unknown"),
                      dict(adapter="a-one", generation=2, available="Unknown"),
                      dict(adapter="not-required", generation=2, available="Unknown")],
        }
        counted = self.discarded("Cluster")
        for why, reports in cases.items():
            for kw in reports:
                for method in ("POST", "PUT"):
                    with self.subTest(kw, method=method):
                        answer = self.fleet.report(doc, method=method, **kw)
                        self.assertEqual((answer.status, answer.body), (204, b""))
                        self.assertEqual(answer.header("Discarded"), why)
        self.assertEqual(self.statuses(doc), before)
        self.assertEqual(self.client.get(doc["href"]).json, resource)
        self.assertEqual({cause: count - counted.get(cause, 0)
                          for cause, count in self.discarded("Cluster").items()},
                         {"ahead": 4, "behind": 2, "older": 2, "unknown": 6})
        pool = self.pool(doc)
        for path in (pool["href"], BASE + "/nodepools/" + pool["id"]):
            answer = self.client.post(path + "/statuses", report_body("b", 9))
            self.assertEqual((answer.status, answer.header("Discarded")),
                             (204, "observed_generation 9 is above 1"))
        self.assertIsNone(self.fleet.accepted(doc, "b", 2).header("Discarded"))

    def discarded(self, kind):
        """@return discarded reports by cause, as the metric counts them"""
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        text = ops.get("/metrics").body.decode()
        return {cause: int(count) for cause, count in re.findall(
            r'hfd_fleet_reports_total\{kind="%s",outcome="discarded",cause="(\w+)"\} (\d+)' % kind,
            text)}

    def test_equal_time(self):
        """The same generation and time: with the same content nothing changes, with other content
        it is written.
        """
        doc = self.cluster()
        t = now_text()
        body = report_body("b", 1, observed_time=t)
        one = self.client.post(doc["href"] + "/statuses", body)
        two = self.client.post(doc["href"] + "/statuses", body)
        self.assertEqual((one.status, two.status), (201, 201))
        self.assertEqual(one.json, two.json)
        self.assertEqual(self.fleet.report(doc, "b", available=False, observed_time=t).status, 201)
        self.assertEqual({c["type"]: c["status"]
                          for c in self.statuses(doc)["b"]["conditions"]}["Available"], "False")

    def test_applied_and_health_may_be_unknown(self):
        """Only Available=Unknown is discarded."""
        self.fleet.accepted(self.cluster(), "b", applied="Unknown", health="Unknown")

    def test_times_with_offsets(self):
        """observed_time in another zone is the same instant."""
        doc = self.cluster()
        got = self.fleet.accepted(doc, "b", observed_time="2026-01-01T12:00:00+02:00").json
        self.assertEqual(parse_time(got["last_report_time"]),
                         datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.timezone.utc))
        self.assertEqual(self.fleet.report(doc, "b",
                                           observed_time="2026-01-01T09:59:59.999Z").status, 204)
        self.fleet.accepted(doc, "b", observed_time="2026-01-01T10:00:00.001Z")

    def test_not_required_adapters(self):
        """Their reports are stored and listed, and influence no condition."""
        doc = self.cluster()
        before = self.client.get(doc["href"]).json
        self.fleet.accepted(doc, "stranger", available=False)
        self.assertIn("stranger", self.statuses(doc))
        self.assertEqual(self.client.get(doc["href"]).json["status"], before["status"])
        self.fleet.make_ready(doc)
        self.assertEqual(self.conditions(doc)["Ready"]["status"], "True")
        self.assertNotIn("StrangerSuccessful", self.conditions(doc))

    def test_strangers_keep_nobody_out(self):
        """Reports of adapters that are not required have a limit. The required ones are still taken
        after it.
        """
        doc = self.cluster()
        stored, answer = 0, self.fleet.report(doc, "stranger-0")
        while answer.status == 201 and stored < 1000:
            stored += 1
            answer = self.fleet.report(doc, "stranger-%d" % stored)
        self.assertGreaterEqual(stored, 100)
        self.assertIn("not required can report",
                      self.problem(answer, 400, "HYPERFLEET-VAL-000", errors="adapter")["detail"])
        self.fleet.accepted(doc, "stranger-0")
        self.fleet.make_ready(doc)
        self.assertEqual(self.conditions(doc)["Ready"]["status"], "True")

    def test_large_documents(self):
        """A body that the configured size lets in can be read again."""
        with Server("--http-body-max", "16MiB") as server:
            client = Client(server)
            answer = client.post(BASE + "/clusters",
                                 {"kind": "Cluster", "name": "large",
                                  "spec": {"fill": "x" * 5000000}})
            self.assertEqual(answer.status, 201)
            self.assertEqual(client.get(answer.json["href"]).json, answer.json)
            client.close()

    def test_reports_larger_than_any_answer(self):
        """Reports come by the page however large they are together; a page that is too large is
        refused with advice that helps.
        """
        doc = self.cluster()
        for i in range(35):
            self.fleet.accepted(doc, "large-%02d" % i, data={"fill": "x" * 1000000})
        self.problem(self.client.get(doc["href"] + "/statuses"), 400, "HYPERFLEET-VAL-000",
                     errors="pageSize")
        seen = []
        for page, size in ((1, 20), (2, 15), (3, 0)):
            got = self.client.get("%s/statuses?page=%d&pageSize=20" % (doc["href"], page)).json
            self.assertEqual((got["page"], got["size"], got["total"]), (page, size, 35))
            seen += [item["adapter"] for item in got["items"]]
        self.assertEqual(seen, ["large-%02d" % i for i in range(35)])

    def test_delete_of_more_than_any_request(self):
        """A cluster is deleted, and removed by force, whatever its nodepools hold together."""
        for force in (False, True):
            cluster = self.cluster()
            for _ in range(12):
                self.pool(cluster, spec={"fill": "x" * 900000})
            self.assertEqual(self.client.delete(cluster["href"]).status, 202)
            if force:
                self.assertEqual(self.client.post(cluster["href"] + "/force-delete",
                                                  {"reason": "test"}).status, 204)
                self.assertEqual(self.client.get(cluster["href"]).status, 404)

    def test_many_long_messages(self):
        """Every required adapter may send the longest message. Its report has the whole one, the
        status of the cluster the first 2,048 bytes.
        """
        adapters = ["adapter-%d" % i for i in range(12)]
        with Server("--adapters-required-cluster", ",".join(adapters)) as server:
            client = Client(server)
            fleet = Fleet(client, adapters)
            answer = client.post(BASE + "/clusters",
                                 {"kind": "Cluster", "name": "talkative", "spec": {}})
            fleet.make_ready(answer.json, message="\u0001" * 32768)
            conds = conditions_of(fleet.get(answer.json))
            self.assertEqual(conds["Ready"]["status"], "True")
            shown = conds["Adapter11Successful"]["message"]
            self.assertEqual(len(shown), 2048)
            self.assertTrue(
                shown.endswith("\u0001... (the adapter's report has the whole message)"), shown)
            for report in client.get(answer.json["href"] + "/statuses").json["items"]:
                whole = conditions_of({"status": report})["Available"]["message"]
                self.assertEqual(whole, "\u0001" * 32768)
            client.close()

    def test_reports_survive_a_kill(self):
        """An accepted report is there after kill -9."""
        doc = self.cluster()
        self.fleet.make_ready(doc)
        before, resource = self.statuses(doc), self.client.get(doc["href"]).json
        self.restart()
        self.assertEqual((self.statuses(doc), self.client.get(doc["href"]).json),
                         (before, resource))


class Aggregation(FleetCase):
    """The tables of the document, with two required adapters (a-one, b). Times are those of the
    reports, unless the table says now.
    """

    def setUp(self):
        super().setUp()
        self.start = time.time_ns() // 1000 - 3600 * 1000000
        self.doc = self.cluster()

    def at(self, seconds):
        """A time after the start of this test's story, an hour ago: never taken for now."""
        return time_text(self.start + seconds * 1000000)

    def tell(self, adapter, available, seconds, generation=None):
        self.fleet.accepted(self.doc, adapter, generation or self.fleet.get(self.doc)["generation"],
                            available=available,
                            observed_time=self.at(seconds))
        return self.conditions(self.doc)

    def check(self, cond, status, generation=None, updated=None, transition=None):
        self.assertEqual(cond["status"], status)
        if generation is not None:
            self.assertEqual(cond["observed_generation"], generation)
        for key, wanted in (("last_updated_time", updated), ("last_transition_time", transition)):
            if wanted == "now":
                self.recent(cond[key], key)
            elif wanted is not None:
                self.same_time(cond[key], wanted, "%s of %s" % (key, cond["type"]))

    def test_adapter_conditions(self):
        """Each required adapter's Available appears as <Adapter>Successful with its own reason,
        message, generation and times.
        """
        self.fleet.accepted(self.doc, "a-one", available=False, reason="Why", message="because",
                            observed_time=self.at(1))
        conds = self.conditions(self.doc)
        self.assertEqual(set(conds), {"Ready", "Available", "Reconciled", "LastKnownReconciled",
                                      "AOneSuccessful"})
        got = conds["AOneSuccessful"]
        self.assertEqual((got["status"], got["reason"], got["message"], got["observed_generation"]),
                         ("False", "Why", "because", 1))
        self.check(got, "False", 1, self.at(1), self.at(1))
        got = self.tell("a-one", False, 2)["AOneSuccessful"]
        self.check(got, "False", 1, self.at(2), self.at(1))
        got = self.tell("a-one", True, 3)["AOneSuccessful"]
        self.check(got, "True", 1, self.at(3), self.at(3))
        self.assertIn("BSuccessful", self.tell("b", True, 4))

    def test_ready_false_while_adapters_are_missing(self):
        """Report True, Ready False, a required adapter has no report: last_updated_time is now, the
        rest unchanged; Available untouched.
        """
        before = self.conditions(self.doc)
        after = self.tell("a-one", True, 1)
        self.check(after["Ready"], "False", 1, "now", before["Ready"]["last_transition_time"])
        self.check(after["Available"], "False", 1, before["Available"]["last_updated_time"],
                   before["Available"]["last_transition_time"])

    def test_false_to_true(self):
        """The last True makes both True: updated at the oldest report, transition at the report
        that came last.
        """
        self.tell("a-one", True, 1)
        after = self.tell("b", True, 5)
        self.check(after["Ready"], "True", 1, self.at(1), self.at(5))
        self.check(after["Available"], "True", 1, self.at(1), self.at(5))
        self.assertEqual(after["Ready"]["reason"] != "AwaitingAdapters", True)

    def test_true_stays_true(self):
        """Further True reports: updated at the oldest of the latest, transition unchanged."""
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        after = self.tell("a-one", True, 9)
        self.check(after["Ready"], "True", 1, self.at(5), self.at(5))
        self.check(after["Available"], "True", 1, self.at(5), self.at(5))
        after = self.tell("b", True, 12)
        self.check(after["Ready"], "True", 1, self.at(9), self.at(5))

    def test_true_to_false(self):
        """A False at the current generation, all at it: both False, updated and transition at that
        report.
        """
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        after = self.tell("a-one", False, 20)
        self.check(after["Ready"], "False", 1, self.at(20), self.at(20))
        self.check(after["Available"], "False", 1, self.at(20), self.at(20))

    def test_false_stays_false(self):
        """Further False reports: updated at the oldest of the latest, transition unchanged."""
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.tell("a-one", False, 20)
        after = self.tell("b", False, 30)
        self.check(after["Ready"], "False", 1, self.at(20), self.at(20))
        self.check(after["Available"], "False", 1, self.at(20), self.at(20))
        after = self.tell("a-one", False, 40)
        self.check(after["Ready"], "False", 1, self.at(30), self.at(20))
        self.check(after["Available"], "False", 1, self.at(30), self.at(20))

    def test_a_true_beside_a_false(self):
        """Turning True asks for all required adapters True at one generation: a True beside a False
        changes no status.
        """
        self.tell("a-one", False, 1)
        after = self.tell("b", True, 2)
        self.check(after["Ready"], "False")
        self.check(after["Available"], "False")

    def test_change_while_ready(self):
        """A change: Ready False at the new generation, updated and transition now; Available
        entirely unchanged.
        """
        self.tell("a-one", True, 1)
        before = self.tell("b", True, 5)
        self.assertEqual(self.client.patch(self.doc["href"], {"spec": {"v": 2}}).status, 200)
        after = self.conditions(self.doc)
        self.check(after["Ready"], "False", 2, "now", "now")
        self.assertEqual(after["Available"], before["Available"])
        self.assertEqual(after["Available"]["status"], "True")

    def test_change_while_not_ready(self):
        """A change while not ready: updated now, transition unchanged."""
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.tell("b", False, 9)
        self.assertEqual(self.client.patch(self.doc["href"], {"spec": {"v": 2}}).status, 200)
        after = self.conditions(self.doc)
        self.check(after["Ready"], "False", 2, "now", self.at(9))
        self.check(after["Available"], "False", 1, self.at(9), self.at(9))

    def test_next_generation(self):
        """Adapters move to the next generation one by one: Available stays True at the old one
        until all are at the new one.
        """
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.client.patch(self.doc["href"], {"spec": {"v": 2}})
        after = self.tell("a-one", True, 10)
        self.check(after["Ready"], "False", 2)
        self.check(after["Available"], "True", 1, self.at(1), self.at(5))
        self.check(after["AOneSuccessful"], "True", 2)
        self.check(after["BSuccessful"], "True", 1)
        after = self.tell("b", True, 11)
        self.check(after["Ready"], "True", 2, self.at(10), self.at(11))
        self.check(after["Available"], "True", 2, self.at(10), self.at(5))

    def test_available_is_sticky(self):
        """The document's example. Available=True at 1; a False at 2 while the other is at 1 keeps
        it True. A False at 1, with all at 1, ends it.
        """
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.client.patch(self.doc["href"], {"spec": {"v": 2}})
        after = self.tell("a-one", False, 10, 2)
        self.check(after["Available"], "True", 1, self.at(1), self.at(5))
        self.check(after["Ready"], "False", 2)
        other = self.doc
        self.doc = self.cluster()
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.client.patch(self.doc["href"], {"spec": {"v": 2}})
        after = self.tell("a-one", False, 10, 1)
        self.check(after["Available"], "False", 1, self.at(10), self.at(10))
        self.check(after["Ready"], "False", 2)
        self.assertNotEqual(other["id"], self.doc["id"])

    def test_order_of_reports(self):
        """One True and one False at the next generation, in any order: Available is False there.
        From False it follows to that generation.
        """
        for said, last in ((("a-one", False), ("b", True)), (("b", True), ("a-one", False))):
            for before in (True, False):
                with self.subTest(last=last[0], before=before):
                    self.doc = self.cluster()
                    self.tell("a-one", before, 1)
                    self.tell("b", True, 5)
                    self.client.patch(self.doc["href"], {"spec": {"v": 2}})
                    self.tell(*said, 10)
                    after = self.tell(*last, 11)
                    self.check(after["Available"], "False", 2, self.at(11 if before else 10))

    def test_reports_of_an_old_generation(self):
        """True reports at the old generation never make a resource Ready."""
        self.client.patch(self.doc["href"], {"spec": {"v": 2}})
        self.tell("a-one", True, 1, 1)
        after = self.tell("b", True, 2, 1)
        self.check(after["Ready"], "False", 2)
        self.check(after["Available"], "True", 1, self.at(1), self.at(2))

    def test_created_time_of_conditions(self):
        """created_time of a condition never moves."""
        first = self.conditions(self.doc)
        self.tell("a-one", True, 1)
        self.tell("b", True, 5)
        self.client.patch(self.doc["href"], {"spec": {"v": 2}})
        after = self.tell("b", False, 9)
        for type_ in ("Ready", "Available"):
            self.assertEqual(after[type_]["created_time"], first[type_]["created_time"])

    def test_updated_time(self):
        """updated_time moves on a change of spec or labels, not on reports."""
        before = self.fleet.get(self.doc)["updated_time"]
        self.tell("a-one", True, 1)
        self.assertEqual(self.fleet.get(self.doc)["updated_time"], before)
        self.client.patch(self.doc["href"], {"labels": {"a": "b"}})
        self.assertGreater(parse_time(self.fleet.get(self.doc)["updated_time"]), parse_time(before))

    def test_ready_false_has_no_unknown(self):
        """Aggregated conditions are True or False only."""
        self.tell("a-one", True, 1)
        self.fleet.report(self.doc, "b", available="Unknown")
        for cond in self.conditions(self.doc).values():
            self.assertIn(cond["status"], ("True", "False"))


class Overload(FleetCase):
    FLAGS = ("--store-queue-max", "1")

    def test_full_queue(self):
        """A full queue is 503 with Retry-After and a problem, before any work: what was answered
        201 exists, what was 503 does not.
        """
        made, refused, other = [], [], []
        def work(i):
            client = Client(self.server)
            for j in range(15):
                n = "load-%d-%d" % (i, j)
                answer = client.post(BASE + "/clusters", {"kind": "Cluster", "name": n, "spec": {}})
                (made if answer.status == 201 else refused if answer.status == 503
                 else other).append((n, answer))
            client.close()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(other, [])
        for _, answer in refused:
            self.assertRegex(answer.header("Retry-After") or "", r"^[1-9][0-9]*$")
            self.problem(answer, 503, "HYPERFLEET-SVC-001")
        self.assertEqual({c["name"] for c in self.fleet.list("/clusters")}, {n for n, _ in made})


if __name__ == "__main__":
    unittest.main()
