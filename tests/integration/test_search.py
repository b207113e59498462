"""Lists over HTTP: search in TSL, order, pages, projections, and a sentinel's two queries. Source:
HyperFleet API, lists; the decisions of driver/README.md.
"""
import datetime
import threading
import unittest
import urllib.parse

from lib import BASE, Case, Client, now_text

_names = iter(range(1, 10**9))


def name(prefix="s"):
    return "%s%d" % (prefix, next(_names) + 100)


class ListCase(Case):
    ADAPTERS = ("a-one", "b")
    POOL_ADAPTERS = ("np",)

    def cluster(self, **kw):
        answer = self.client.post(BASE + "/clusters",
                                  {"kind": "Cluster", "name": name(), "spec": {}, **kw})
        self.assertEqual(answer.status, 201)
        return answer.json

    def pool(self, cluster, **kw):
        answer = self.client.post(cluster["href"] + "/nodepools",
                                  {"kind": "NodePool", "name": name("p"), "spec": {}, **kw})
        self.assertEqual(answer.status, 201)
        return answer.json

    def ask(self, path="/clusters", **params):
        if not path.startswith("/api"):
            path = BASE + path
        return self.client.get(path + "?" + urllib.parse.urlencode(params) if params else path)

    def found(self, search, path="/clusters", **params):
        """Names of the whole answer to a search, in its order."""
        answer = self.ask(path, search=search, pageSize=500, **params)
        self.assertEqual(answer.status, 200, search)
        doc = answer.json
        self.assertEqual((doc["page"], doc["size"], doc["total"]),
                         (1, len(doc["items"]), len(doc["items"])), search)
        return [item["name"] for item in doc["items"]]

    def refused(self, code, field, detail=None, path="/clusters", **params):
        answer = self.ask(path, **params)
        doc = self.problem(answer, 400, code, errors=field)
        if detail is not None:
            self.assertEqual(doc["detail"], detail)
        return doc


class Search(ListCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ready_once = False

    def setUp(self):
        super().setUp()
        if type(self).ready_once:
            return
        type(self).ready_once = True
        cls = type(self)
        cls.a = self.cluster(name="alpha",
                             labels={"env": "prod", "region": "us", "quote": "it's",
                                     "example.org/Zone-a": "z1",
                                     "town": "ZÜRICH 🦊 Ⱥ"},
                             spec={"region": "us", "size": 3, "net": {"ratio": 1.5},
                                   "private": True})
        cls.b = self.cluster(name="beta", labels={"env": "prod", "example.org/Zone-a": "z2"},
                             spec={"region": "eu", "size": 10})
        cls.c = self.cluster(name="alpha-2", labels={"env": "dev", "region": "us"}, spec={})
        cls.p = self.pool(cls.a, name="pool-a", labels={"env": "prod"})
        cls.q = self.pool(cls.b, name="pool-b", labels={"env": "prod"})
        self.fleet.make_ready(cls.a)

    def test_operators(self):
        """Each operator on columns, labels and spec finds what it names; newest first."""
        everything = ["alpha-2", "beta", "alpha"]
        for search, names in (
                ("", everything),
                ("name='alpha'", ["alpha"]),
                ("name!='alpha'", ["alpha-2", "beta"]),
                ("name<>'alpha'", ["alpha-2", "beta"]),
                ("name<'alpha-2'", ["alpha"]),
                ("name<='alpha-2'", ["alpha-2", "alpha"]),
                ("name>'alpha-2'", ["beta"]),
                ("name>='alpha-2'", ["alpha-2", "beta"]),
                ("name like 'alpha%'", ["alpha-2", "alpha"]),
                ("name like 'ALPHA%'", []),
                ("name ilike 'ALPHA%'", ["alpha-2", "alpha"]),
                ("name like '_eta'", ["beta"]),
                ("name not like 'alpha%'", ["beta"]),
                ("name in ('alpha','beta')", ["beta", "alpha"]),
                ("name in ['alpha','beta']", ["beta", "alpha"]),
                ("name not in ('alpha','beta')", ["alpha-2"]),
                ("name in ()", []),
                ("name between 'alpha' and 'alpha-2'", ["alpha-2", "alpha"]),
                ("generation = 1", everything),
                ("generation > 1", []),
                ("created_time > '2020-01-01T00:00:00Z'", everything),
                ("created_time > '2120-01-01T00:00:00+02:00'", []),
                ("created_by = 'system@hyperfleet.local'", everything),
                ("kind = 'Cluster'", everything),
                ("href = '%s'" % self.a["href"], ["alpha"]),
                ("id = '%s'" % self.a["id"], ["alpha"]),
                ("id = '%s' or id='%s'" % (self.a["id"], self.c["id"]), ["alpha-2", "alpha"]),
                ("labels.env='prod'", ["beta", "alpha"]),
                ("labels.env='prod' and labels.region='us'", ["alpha"]),
                ("labels.env='dev' or labels.region='us'", ["alpha-2", "alpha"]),
                ("labels.quote='it''s'", ["alpha"]),
                ("labels.quote='it\\'s'", ["alpha"]),
                ("labels.town ilike 'zürich _ ⱥ'", ["alpha"]),
                ("labels.town ilike 'Zürich%'", ["alpha"]),
                ("labels.town like 'Zürich%'", []),
                ("labels.example.org/Zone-a='z1'", ["alpha"]),
                ("labels.example.org/Zone-a in ('z1') and labels.env='prod'", ["alpha"]),
                ("labels.example.org/Zone-a != 'z1'", ["beta"]),
                ("labels.example.org/Zone-a is null", ["alpha-2"]),
                ("not labels.example.org/Zone-a like 'z1%'", ["beta"]),
                ("labels.\"example.org/Zone-a\"='z2'", ["beta"]),
                ("name=\"alpha\" or name=`beta`", ["beta", "alpha"]),
                ("spec.private=true", ["alpha"]),
                ("spec.private=false", []),
                ("spec.private in (true)", ["alpha"]),
                ("created_time > '2020-01-01'", everything),
                ("created_time > 2020-01-01", everything),
                ("created_time < 2020-01-01T00:00:00Z", []),
                ("labels.region is null", ["beta"]),
                ("labels.region is not null", ["alpha-2", "alpha"]),
                ("labels.region != 'us'", []),
                ("not labels.region = 'eu'", ["alpha-2", "alpha"]),
                ("not (labels.env = 'prod' and labels.region = 'us')", ["alpha-2"]),
                ("spec.region='us'", ["alpha"]),
                ("spec.size=3", ["alpha"]),
                ("spec.size>3", ["beta"]),
                ("spec.net.ratio between 1 and 2", ["alpha"]),
                ("spec.private='true'", ["alpha"]),
                ("spec.size in (3, 10)", ["beta", "alpha"]),
                ("spec.none='x'", []),
                ("NAME='alpha'".replace("NAME", "name") + " OR name='beta' AND labels.env='dev'",
                 ["alpha"]),
                ("(name='alpha' OR name='beta') AND labels.env='prod'", ["beta", "alpha"])):
            self.assertEqual(self.found(search), names, search)

    def test_conditions(self):
        """Conditions by status and by what is below them, in both vocabularies, alone and in an OR.
        """
        for search, names in (
                ("status.conditions.Ready='True'", ["alpha"]),
                ("status.conditions.Ready='False'", ["alpha-2", "beta"]),
                ("status.conditions.Ready='Unknown'", []),
                ("status.conditions.Reconciled='True'", ["alpha"]),
                ("status.conditions.Reconciled='False'", ["alpha-2", "beta"]),
                ("status.conditions.Reconciled='False' and labels.env='prod'", ["beta"]),
                ("status.conditions.LastKnownReconciled='False'", ["alpha-2", "beta"]),
                ("status.conditions.AOneSuccessful='True'", ["alpha"]),
                ("status.conditions.Absent='True'", []),
                ("status.conditions.Ready='True' or name='beta'", ["beta", "alpha"]),
                ("status.conditions.Ready='True' and not labels.region='eu'", ["alpha"]),
                ("status.conditions.Ready.observed_generation=1", ["alpha-2", "beta", "alpha"]),
                ("status.conditions.Ready__observed_generation>1", []),
                ("status.conditions.Ready.last_updated_time>'2020-01-01T00:00:00+05:30'",
                 ["alpha-2", "beta", "alpha"]),
                ("status.conditions.Available.last_transition_time<'2020-01-01T00:00:00Z'", [])):
            self.assertEqual(self.found(search), names, search)

    def test_nodepools(self):
        """A nested list is its cluster's own, whatever the search says; the flat one knows owners.
        """
        nested = self.a["href"] + "/nodepools"
        self.assertEqual(self.found("", nested), ["pool-a"])
        self.assertEqual(self.found("name='pool-a' or name='pool-b'", nested), ["pool-a"])
        self.assertEqual(self.found("name='pool-b' or labels.env='prod'", nested), ["pool-a"])
        self.assertEqual(self.found("owner_id='%s'" % self.b["id"], nested), [])
        self.assertEqual(self.found("owner_id='%s'" % self.b["id"], "/nodepools"), ["pool-b"])
        self.assertEqual(self.found("labels.env='prod'", "/nodepools"), ["pool-b", "pool-a"])
        self.problem(self.ask("/clusters/2nosuch/nodepools", search="name='x'"), 404,
                     "HYPERFLEET-NTF-001")

    def test_injections_are_values(self):
        """Values that look like SQL find nothing and break nothing."""
        for value in ("x'' or 1=1 --", "'' OR ''1''=''1", "x''; DROP TABLE fleet; --", "%", "?1",
                      "$.x", "\ud83d\ude00".encode(
                "utf-16", "surrogatepass").decode("utf-16")):
            for field in ("name", "labels.env", "spec.region", "id", "created_by"):
                search = "%s='%s'" % (field, value)
                self.assertEqual(self.found(search), [], (field, value))
        self.assertEqual(len(self.found("")), 3)

    def test_sentinel(self):
        """The two queries of a polling cycle: what is not Ready, and what is Ready but was not
        looked at for long.
        """
        now = datetime.datetime.now(datetime.timezone.utc)
        stale = "status.conditions.Ready='True' and status.conditions.Ready.last_updated_time<='%s'"
        self.assertEqual(self.found("status.conditions.Ready='False' and labels.env='prod'"),
                         ["beta"])
        self.assertEqual(self.found(stale
                                    % (now - datetime.timedelta(minutes=30)).strftime(
                                        "%Y-%m-%dT%H:%M:%SZ")), [])
        self.assertEqual(self.found(stale
                                    % (now
                                       + datetime.timedelta(minutes=1)).strftime(
                                           "%Y-%m-%dT%H:%M:%SZ")), ["alpha"])
        self.assertEqual(self.found(stale.replace("Ready", "Reconciled") % "2120-01-01T00:00:00Z"
                                    + " and labels.env='dev'"), [])
        answer = self.ask(search="labels.non_existing_label='value'", size=1)
        self.assertEqual((answer.status, answer.json["total"], answer.json["items"]), (200, 0, []))

    def test_order(self):
        """orderBy, its directions, order as direction and in the words of later versions."""
        def names(**params):
            return [i["name"] for i in self.ask(**params).json["items"]]

        self.assertEqual(names(orderBy="name"), ["alpha", "alpha-2", "beta"])
        self.assertEqual(names(orderBy="name desc"), ["beta", "alpha-2", "alpha"])
        self.assertEqual(names(orderBy="name", order="desc"), ["beta", "alpha-2", "alpha"])
        self.assertEqual(names(orderBy="name asc", order="desc"), ["alpha", "alpha-2", "beta"])
        self.assertEqual(names(order="asc"), ["alpha", "beta", "alpha-2"])
        self.assertEqual(names(order="desc"), ["alpha-2", "beta", "alpha"])
        self.assertEqual(names(order="name desc,created_time"), ["beta", "alpha-2", "alpha"])
        # both spellings at once
        self.assertEqual(names(orderBy="name", order="created_time desc"),
                         ["alpha", "alpha-2", "beta"])
        self.assertEqual(names(orderBy="generation,created_time asc"), ["alpha", "beta", "alpha-2"])
        self.assertEqual(names(orderBy="labels.region,name"), ["alpha", "alpha-2", "beta"])
        self.assertEqual(names(orderBy="labels.example.org/Zone-a desc"),
                         ["alpha-2", "beta", "alpha"])
        self.refused("HYPERFLEET-VAL-005", "orderBy", "bad order value 'name up'",
                     orderBy="name up")
        self.refused("HYPERFLEET-VAL-005", "orderBy", orderBy="spec")
        self.refused("HYPERFLEET-VAL-005", "orderBy", orderBy="nothing")
        for order, why in (("sideways", "sideways is not a valid field name"),
                           ("name up", "bad order value 'name up'"),
                           ("DESC", "DESC is not a valid field name")):
            words = "order must be 'asc' or 'desc', or fields to sort by: " + why
            self.refused("HYPERFLEET-VAL-005", "order", words, order=order)
            self.refused("HYPERFLEET-VAL-005", "order", words, orderBy="name", order=order)

    def test_search_errors(self):
        """A wrong query is a 400 that repeats it and says where; never a 500."""
        for search, detail in (
                ("garbage", None), ("name=", None), ("name=\"x", None), ("(name='x'", None),
                ("name='x", None), ("name=true", None),
                *((search, "Failed to parse search query: %s: at position %d: a NUL character is "
                   "in no text" % (search[:search.index("\0")], search.index("\0") + 1))
                  for search in ("spec.a='\0'", "name='\u00e9\0'", "id in ('a', '\0')",
                                 "name like '%\0'", "labels.env='\0'", "labels.\"\0\"='a'",
                                 "status.conditions.Ready='\0'")),
                ("spec.foo-bar='x'", None),
                ("spec='x'", "spec is not a valid field name"),
                ("foo='x'", "foo is not a valid field name"),
                ("foo.bar='x'", "foo is not a related resource of Cluster"),
                ("owner_id='x'", "owner_id is not a valid field name"),
                ("labels.upper-='x'",
                 "label key 'upper-' is invalid: must be the key of a Kubernetes label"),
                ("status.conditions.ready='True'",
                 "condition type 'ready' is invalid: must be PascalCase (e.g., Ready, Available)"),
                ("status.conditions.Ready='yes'",
                 "condition status 'yes' is invalid: must be True, False, or Unknown"),
                ("status.conditions.Ready!='True'",
                 "only equality operator (=) is supported for condition status queries"),
                ("not status.conditions.Ready='True'",
                 "NOT operator is not supported with condition queries; use the inverse condition "
                 "instead (e.g., Ready='False')"),
                ("status.conditions.Ready.reason='x'",
                 "condition subfield 'reason' is not supported; use last_updated_time, "
                 "last_transition_time, or observed_generation"),
                ("generation='x'", None), ("created_time='x'", None),
                ("x" * 4097, "search query exceeds maximum length of 4096 characters"),
                ("(" * 2000 + "name='x'" + ")" * 2000, None)):
            doc = self.refused("HYPERFLEET-VAL-005", "search", detail, search=search)
            if detail is None and not search.startswith(("generation", "created_time")):
                self.assertRegex(doc["detail"],
                                 r"^Failed to parse search query: .*at position [0-9]+: ", search)
        self.problem(self.client.get(BASE + "/clusters?search=name%3"), 400, "HYPERFLEET-VAL-005",
                     errors="search")

    def test_decoding(self):
        """Percent and plus; the first of repeated parameters counts; unknown ones are ignored."""
        a = self.client.get(BASE
                            + "/clusters?search=name%3D%27alpha%27+or+name%3D'beta'&whatever=1")
        self.assertEqual([i["name"] for i in a.json["items"]], ["beta", "alpha"])
        a = self.client.get(BASE + "/clusters?search=name='alpha'&search=garbage")
        self.assertEqual([i["name"] for i in a.json["items"]], ["alpha"])
        a = self.client.get(BASE + "/clusters?page=2&page=1&pageSize=1").json
        self.assertEqual((a["page"], a["size"]), (2, 1))

    def test_fields(self):
        """Only what is asked for, and the id; unknown fields are refused with or without items."""
        item = self.ask(search="name='alpha'",
                        fields="name,status.conditions.type,labels.env").json["items"][0]
        self.assertEqual({k for k in item}, {"id", "name", "status", "labels"})
        self.assertEqual(item["labels"], {"env": "prod"})
        self.assertTrue(all(set(c) == {"type"} for c in item["status"]["conditions"]))
        self.assertEqual(self.ask(search="name='alpha'", fields="id").json["items"],
                         [{"id": self.a["id"]}])
        self.assertEqual(self.ask(search="name='nobody'", fields="id").json["items"], [])
        item = self.ask("/nodepools", fields="owner_references.id",
                        search="name='pool-a'").json["items"][0]
        self.assertEqual(item["owner_references"], {"id": self.a["id"]})
        for search in ("", "name='nobody'"):
            self.refused("HYPERFLEET-VAL-000", "fields",
                         "The following field(s) doesn't exist in `Cluster`: x", fields="name,x",
                         search=search)
        self.refused("HYPERFLEET-VAL-000", "fields",
                     "The following field(s) doesn't exist in `NodePool`: x", path="/nodepools",
                     fields="x")

    def test_pages(self):
        """Page and size within their bounds, and the page behind the last one."""
        doc = self.ask(page=2, pageSize=2).json
        self.assertEqual((doc["kind"], doc["page"], doc["size"], doc["total"]),
                         ("ClusterList", 2, 1, 3))
        self.assertEqual([i["name"] for i in doc["items"]], ["alpha"])
        doc = self.ask(page=9, size=2).json
        self.assertEqual((doc["page"], doc["size"], doc["total"], doc["items"]), (9, 0, 3, []))
        self.assertEqual(self.ask(pageSize=1, size=2).json["size"], 1)
        for key in ("page", "pageSize", "size"):
            for value in ("0", "-1", "x", "1.5", "1e3", "99999999999999999999"):
                self.refused("HYPERFLEET-VAL-000", key, **{key: value})
        self.refused("HYPERFLEET-VAL-000", "pageSize", pageSize="501")
        self.assertEqual(self.ask(page=2147483647, pageSize=500).json["page"], 2147483647)
        self.refused("HYPERFLEET-VAL-000", "page", page="2147483648")
        self.assertEqual(self.ask(pageSize="").status, 200)
        statuses = self.a["href"] + "/statuses"
        doc = self.ask(statuses, pageSize=1, page=2).json
        self.assertEqual((doc["kind"], doc["size"], doc["total"]), ("AdapterStatusList", 1, 2))
        self.refused("HYPERFLEET-VAL-000", "page", path=statuses, page="0")


class Statuses(ListCase):
    """The lists of reports take search, orderBy and order as all lists do."""

    def reported(self, make):
        resource = make()
        for adapter, available in (("b", True), ("a-one", False), ("extra", True)):
            self.assertEqual(self.fleet.report(resource, adapter, available=available).status, 201)
        return resource["href"] + "/statuses"

    def adapters(self, path, **params):
        answer = self.ask(path, **params)
        self.assertEqual(answer.status, 200, answer)
        doc = answer.json
        self.assertEqual(doc["kind"], "AdapterStatusList")
        return [i["adapter"] for i in doc["items"]]

    def check(self, path):
        self.assertEqual(self.adapters(path), ["b", "a-one", "extra"])
        for search, found in (
                ("adapter='b'", ["b"]), ("adapter like '%e%'", ["a-one", "extra"]),
                ("adapter in (\"b\", 'x') or adapter='extra'", ["b", "extra"]),
                ("not adapter='b'", ["a-one", "extra"]),
                ("conditions.Available='True'", ["b", "extra"]),
                ("conditions.Available='False' and observed_generation=1", ["a-one"]),
                ("conditions.Other='True'", []), ("observed_generation>1", []),
                ("last_report_time > 2020-01-01 and created_time > '2020-01-01'",
                 ["b", "a-one", "extra"]), ("last_report_time < '2020-01-01'", [])):
            self.assertEqual(self.adapters(path, search=search), found, search)
        for params, found in (
                ({"orderBy": "adapter"}, ["a-one", "b", "extra"]),
                ({"orderBy": "adapter", "order": "desc"}, ["extra", "b", "a-one"]),
                ({"order": "adapter desc"}, ["extra", "b", "a-one"]),
                ({"order": "desc"}, ["extra", "a-one", "b"]),
                ({"order": "asc"}, ["b", "a-one", "extra"]),
                ({"orderBy": "observed_generation desc,last_report_time desc"},
                 ["extra", "a-one", "b"])):
            self.assertEqual(self.adapters(path, **params), found, params)
        doc = self.ask(path, search="conditions.Available='True'", orderBy="adapter desc",
                       pageSize=1, page=2).json
        self.assertEqual((doc["total"], doc["size"], doc["items"][0]["adapter"]), (2, 1, "b"))
        for key, value in (("search", "garbage"), ("search", "name='x'"),
                           ("search", "conditions.Available='yes'"), ("search", "labels.a='b'"),
                           ("orderBy", "name"), ("orderBy", "adapter up"), ("order", "up")):
            self.refused("HYPERFLEET-VAL-005", key, path=path, **{key: value})

    def test_reports(self):
        """On clusters, and on nodepools by both paths."""
        self.check(self.reported(self.cluster))
        pool = self.pool(self.cluster())
        path = self.reported(lambda: pool)
        self.check(path)
        self.check("/nodepools/%s/statuses" % pool["id"])
        self.problem(self.ask("/clusters/2nosuch/statuses", search="adapter='x'"), 404,
                     "HYPERFLEET-NTF-001")


class One(ListCase):
    def test_fields(self):
        """`fields` on one resource gives these members and the id."""
        cluster = self.cluster(labels={"a": "b", "c": "d"})
        pool = self.pool(cluster)
        self.assertEqual(self.ask(cluster["href"], fields="name,labels.a").json,
                         {"id": cluster["id"], "name": cluster["name"], "labels": {"a": "b"}})
        for path in (pool["href"], "/nodepools/" + pool["id"]):
            self.assertEqual(self.ask(path, fields="generation").json,
                             {"id": pool["id"], "generation": 1})
        self.assertEqual(self.ask(cluster["href"], fields="").json, cluster)
        self.assertEqual(self.ask(cluster["href"], other="x").json, cluster)
        self.refused("HYPERFLEET-VAL-000", "fields",
                     "The following field(s) doesn't exist in `Cluster`: x", path=cluster["href"],
                     fields="x")


class Large(ListCase):
    def test_page_that_does_not_fit(self):
        """A page of more than one answer's size is the caller's to cut: 400 names pageSize, and
        smaller pages bring everything.
        """
        spec = {"text": "x" * 900_000}
        ids = {self.cluster(spec=spec)["id"] for _ in range(40)}
        answer = self.client.get(BASE + "/clusters?pageSize=40")
        self.problem(answer, 400, "HYPERFLEET-VAL-000")
        self.assertIn("pageSize", answer.json["detail"])
        seen = set()
        for page in (1, 2, 3, 4):
            seen |= {c["id"]
                     for c in self.client.get(BASE + "/clusters?pageSize=10&page=%d"
                                              % page).json["items"]}
        self.assertEqual(seen, ids)


class Moving(ListCase):
    def test_soft_deleted_are_listed_until_removed(self):
        """A resource that is being deleted is found as before, and no more once it is gone; changes
        move it at once.
        """
        c = self.cluster(labels={"life": "one"})
        answer = self.client.patch(c["href"], {"labels": {"life": "two", "more": "x"}})
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.found("labels.life='one'"), [])
        self.assertEqual(self.found("labels.life='two' and labels.more='x'"), [c["name"]])
        self.assertEqual(self.found("deleted_time is null and id='%s'" % c["id"]), [c["name"]])
        self.assertEqual(self.found("not deleted_time>'2020-01-01T00:00:00Z' and id='%s'"
                                    % c["id"]), [], "no time to compare")
        self.assertEqual(self.client.delete(c["href"]).status, 202)
        self.assertEqual(self.found("deleted_time is null and id='%s'" % c["id"]), [])
        for search in ("deleted_time is not null", "deleted_time>'2020-01-01T00:00:00Z'"):
            self.assertIn(c["name"], self.found(search), search)
        self.assertEqual(self.found("labels.life='two'"), [c["name"]])
        self.assertEqual(self.found("name='%s'" % c["name"]), [c["name"]])
        self.fleet.finalize(self.fleet.get(c))
        for search in ("labels.life='two'", "name='%s'" % c["name"], "id='%s'" % c["id"],
                       "labels.life='two' or id='%s' and status.conditions.Ready='True'" % c["id"]):
            self.assertEqual(self.found(search), [], search)

    def test_pages_under_inserts(self):
        """While others create clusters, walking the pages shows each that was there before exactly
        once.
        """
        mine = {self.cluster(labels={"walk": "yes"})["id"] for _ in range(60)}
        stop = threading.Event()

        def create():
            client = Client(self.server)
            while not stop.is_set():
                client.post(BASE + "/clusters",
                            {"kind": "Cluster", "name": name("w"), "spec": {},
                             "labels": {"walk": "yes"}})
            client.close()

        thread = threading.Thread(target=create)
        thread.start()
        try:
            for order in ("created_time asc", "labels.walk,created_time"):
                seen, page = [], 1
                while True:
                    doc = self.ask(search="labels.walk='yes'", orderBy=order, page=page,
                                   pageSize=7).json
                    seen += [i["id"] for i in doc["items"]]
                    if len(mine & set(seen)) == len(mine) or not doc["items"]:
                        break
                    page += 1
                self.assertEqual(len(seen), len(set(seen)), order)
                self.assertEqual(mine - set(seen), set(), order)
        finally:
            stop.set()
            thread.join()

    def test_conditions_move_with_reports(self):
        """A report that turns Ready moves the cluster from one search to the other in the same
        moment.
        """
        c = self.cluster(labels={"turn": "x"})
        self.assertEqual(self.found("labels.turn='x' and status.conditions.Ready='False'"),
                         [c["name"]])
        self.fleet.make_ready(c)
        self.assertEqual(self.found("labels.turn='x' and status.conditions.Ready='False'"), [])
        self.assertEqual(self.found("labels.turn='x' and status.conditions.Ready='True'"),
                         [c["name"]])
        stale = ("labels.turn='x' and status.conditions.Ready='True' and "
                 "status.conditions.Ready.last_updated_time<='%s'" % now_text())
        self.assertEqual(self.found(stale), [c["name"]])
        self.fleet.make_ready(c)
        self.assertEqual(self.found(stale), [])

    def test_totals_follow_every_change(self):
        """The total of a list by label is right after each create, change of labels, deletion and
        forced deletion, nodepools apart.
        """
        search, other = "labels.total_of='x'", "labels.total_of='y'"
        asked = [(path, s) for path in ("/clusters", "/nodepools") for s in (search, other)]
        totals = lambda: [self.ask(path, search=s, pageSize=1).json["total"] for path, s in asked]
        self.assertEqual(totals(), [0, 0, 0, 0])
        a, b = (self.cluster(labels={"total_of": "x", **of_driver})
                for of_driver in ({"humanitec_guresid": "total-a", "humanitec_owner": "b"}, {}))
        self.pool(a, labels={"total_of": "y"})
        self.assertEqual(totals(), [2, 0, 0, 1])
        self.assertEqual(self.ask(search="labels.total_of in ('x','y','x')").json["total"], 2)
        self.assertEqual(self.ask(search="labels.humanitec_guresid='total-a'").json["total"], 1)
        self.assertEqual(self.client.patch(b["href"], {"labels": {"total_of": "y"}}).status, 200)
        self.assertEqual(totals(), [1, 1, 0, 1])
        self.assertEqual(self.client.patch(b["href"], {"labels": {}}).status, 200)
        self.assertEqual(totals(), [1, 0, 0, 1])
        self.assertEqual(self.client.delete(a["href"]).status, 202)
        self.assertEqual(totals(), [1, 0, 0, 1])  # there until its adapters have finalized it
        self.assertEqual(self.client.post(a["href"] + "/force-delete", {"reason": "test"}).status,
                         204)
        self.assertEqual(totals(), [0, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
