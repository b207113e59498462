"""The OpenAPI document against the running program: it is well made, it is served, and real answers
are as it says, field by field.
"""
import base64
import hashlib
import json
import math
import re
import unittest
import urllib.parse

from html_page import Page
from lib import (BASE, COOKIE, Case, Client, cluster_input, guresid, lose_rows, nodepool_input,
                 parse_time, report_body)
from pacemaker import document, lost_fencing

METHODS = ("get", "put", "post", "patch", "delete")
# Statuses that need a broken store, or more load than a test makes.
UNSEEN = ("500", "503")
# test_backup.py sees these.
UNSEEN_PAIRS = {("getBackup", "409"), ("getBackup", "507")}
SCHEMA = """\
components:
  schemas:
    ClusterSpec: {type: object, properties: {nodes: {type: integer, maximum: 100}}}
    NodePoolSpec: {type: object, properties: {replicas: {type: integer, maximum: 100}}}
"""


class Schemas:
    """The part of OpenAPI's schema objects that the document uses; another keyword is an error of
    the document.
    """

    ANNOTATIONS = {"title", "description", "example", "default"}
    TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}

    def __init__(self, doc):
        self.doc = doc
        self.seen = set()  # (name of the schema, name of the member)

    def resolve(self, obj):
        """(object, its name when it is a component)."""
        name = None
        while "$ref" in obj:
            ref = obj["$ref"]
            assert ref.startswith("#/"), "a reference to elsewhere: " + ref
            obj = self.doc
            for part in ref[2:].split("/"):
                assert part in obj, "nothing at " + ref
                obj = obj[part]
            name = ref.rsplit("/", 1)[1]
        return obj, name

    def check(self, schema, value, at="", name=None):
        schema, own = self.resolve(schema)
        name = own or name
        if value is None and schema.get("nullable"):
            return
        for key, arg in schema.items():
            if key in self.ANNOTATIONS or key == "nullable" or key.startswith("x-"):
                continue
            rule = getattr(self, "rule_" + key, None)
            assert rule is not None, "%s: keyword %s is not known" % (at, key)
            rule(schema, arg, value, at, name)

    def rule_type(self, _, arg, value, at, __):
        if arg == "integer":
            good = isinstance(value, int) and not isinstance(value, bool)
        elif arg == "number":
            good = (isinstance(value, (int, float)) and not isinstance(value, bool)
                    and math.isfinite(value))
        else:
            good = isinstance(value, self.TYPES[arg])
        assert good, "%s: %r is not of type %s" % (at, value, arg)

    def rule_enum(self, _, arg, value, at, __):
        assert value in arg, "%s: %r is not one of %r" % (at, value, arg)

    def rule_not(self, _, arg, value, at, name):
        try:
            self.check(arg, value, at, name)
        except AssertionError:
            return
        raise AssertionError("%s: is not allowed" % at)

    def rule_properties(self, _, arg, value, at, name):
        for key, schema in arg.items():
            if isinstance(value, dict) and key in value:
                self.seen.add((name, key))
                self.check(schema, value[key], "%s.%s" % (at, key), "%s.%s" % (name, key))

    def rule_additionalProperties(self, schema, arg, value, at, name):
        for key in value if isinstance(value, dict) else ():
            if key in schema.get("properties", {}):
                continue
            assert arg is not False, "%s: member %s is not in the document" % (at, key)
            self.check(arg, value[key], "%s.%s" % (at, key), name)

    def rule_required(self, _, arg, value, at, __):
        for key in arg:
            present = not isinstance(value, dict) or key in value
            assert present, "%s: member %s is missing" % (at, key)

    def rule_items(self, _, arg, value, at, name):
        for i, item in enumerate(value):
            self.check(arg, item, "%s[%d]" % (at, i), name)

    def rule_pattern(self, _, arg, value, at, __):
        assert re.search(arg, value), "%s: %r does not match %s" % (at, value, arg)

    def rule_format(self, _, arg, value, at, __):
        known = ("date-time", "int32", "int64", "binary")
        assert arg in known, "%s: format %s is not known" % (at, arg)
        if arg == "date-time":
            parse_time(value)
        elif arg == "int32":
            assert -2**31 <= value < 2**31, at

    def rule_minimum(self, _, arg, value, at, __):
        assert value >= arg, "%s: %r" % (at, value)

    def rule_maximum(self, _, arg, value, at, __):
        assert value <= arg, "%s: %r" % (at, value)

    def rule_minLength(self, _, arg, value, at, __):
        assert len(value) >= arg, "%s: %r" % (at, value)

    def rule_maxLength(self, _, arg, value, at, __):
        assert len(value) <= arg, "%s: %r" % (at, value)

    def rule_minItems(self, _, arg, value, at, __):
        assert len(value) >= arg, "%s: %r" % (at, value)

    def rule_maxItems(self, _, arg, value, at, __):
        assert len(value) <= arg, "%s: %r" % (at, value)

    def rule_minProperties(self, _, arg, value, at, __):
        assert len(value) >= arg, "%s: %r" % (at, value)

    def rule_maxProperties(self, _, arg, value, at, __):
        assert len(value) <= arg, "%s: %r" % (at, value)

    def rule_allOf(self, _, arg, value, at, name):
        for schema in arg:
            self.check(schema, value, at, name)


def operations(doc):
    for path, item in doc["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method], "servers" in item


def references(node):
    """All $ref values of a document."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for v in node.values():
            yield from references(v)
    elif isinstance(node, list):
        for v in node:
            yield from references(v)


class OpenApi(Case):
    FLAGS = ("--adapters-pacemaker", "pacemaker")
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    SPEC_SCHEMA = SCHEMA

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)
        self.doc = self.client.get(BASE + "/openapi").json
        self.schemas = Schemas(self.doc)
        self.operations = {op["operationId"]: (path, method, op, ops) for path, method, op,
                           ops in operations(self.doc)}
        self.answers = set()  # (operationId, status)

    # ---- the document ----------------------------------------------------------------------------

    # The document keeps the rules that its readers, people and generators, rely on.
    def test_lint(self):
        doc = self.doc
        self.assertRegex(doc["openapi"], r"^3\.0\.[0-9]+$")
        ids = [op["operationId"] for _, _, op, _ in operations(doc)]
        self.assertEqual(len(ids), len(set(ids)), "operationIds are unique")
        tags = {t["name"] for t in doc["tags"]}
        for path, method, op, _ in operations(doc):
            where = "%s %s" % (method, path)
            self.assertTrue(op.get("summary"), where)
            self.assertTrue(op["tags"] and set(op["tags"]) <= tags, where)
            self.assertIn("default", op["responses"], where)
            self.assertTrue(any(s.startswith("2") for s in op["responses"])
                            or op["operationId"] == "refuseNodePool", where)
            params = [self.schemas.resolve(p)[0] for p in op.get("parameters", [])]
            self.assertEqual(sorted(re.findall(r"\{([^}]+)\}", path)),
                             sorted(p["name"] for p in params if p["in"] == "path"), where)
            self.assertEqual(len({(p["name"], p["in"]) for p in params}), len(params), where)
            self.assertTrue(all(p["required"] for p in params if p["in"] == "path"), where)
            self.assertEqual("requestBody" in op, method in ("put", "post", "patch"), where)
            for status, ref in op["responses"].items():
                response = self.schemas.resolve(ref)[0]
                self.assertTrue(response["description"], where)
                self.assertIn("X-Request-ID", response["headers"], where)

    # Generators of clients make a type of each component and of each inner title. No two have one
    # name.
    def test_names_for_generators(self):
        components = self.doc["components"]
        names = [n.lower() for kind in components for n in components[kind]]
        titles = []

        def walk(at, top):
            for value in at if isinstance(at, list) else at.values():
                if isinstance(value, (dict, list)):
                    walk(value, False)
            if isinstance(at, dict) and isinstance(at.get("title"), str) and "type" in at:
                titles.extend([] if top else [re.sub(r"\W", "", at["title"]).lower()])

        for schema in components["schemas"].values():
            walk(schema, True)
        self.assertEqual(sorted(names + titles), sorted(set(names + titles)))

    # Every reference leads somewhere, and every component is used.
    def test_references(self):
        used = set(references(self.doc))
        for ref in used:
            self.schemas.resolve({"$ref": ref})
        operations = [op for item in self.doc["paths"].values() for op in item.values()
                      if isinstance(op, dict)]
        for at in [self.doc] + operations:
            for schemes in at.get("security", []):
                used |= {"#/components/securitySchemes/" + name for name in schemes}
        for ref in used:
            self.assertIn(ref.rsplit("/", 1)[1],
                          self.doc["components"][ref.rsplit("/", 2)[1]])
        for section, items in self.doc["components"].items():
            for name in items:
                self.assertIn("#/components/%s/%s" % (section, name), used,
                              "a component that nothing uses")

    # Names that clients made from HyperFleet's own document know.
    def test_names_are_hyperfleets(self):
        names = """
            Cluster ClusterSpec ClusterStatus ClusterList ClusterCreateRequest
            NodePool NodePoolSpec NodePoolStatus NodePoolList NodePoolCreateRequest
            AdapterStatus AdapterStatusList AdapterStatusCreateRequest AdapterCondition
            ConditionRequest ResourceCondition ResourceConditionStatus AdapterConditionStatus
            OrderDirection Error InputData OutputData AsyncProgressHint"""
        for name in names.split():
            self.assertIn(name, self.doc["components"]["schemas"])

    # Examples are as their schemas say.
    def test_examples_are_valid(self):
        components = self.doc["components"]
        holders = [(n, c) for s in ("requestBodies", "responses") for n,
                   r in components[s].items() for c in r.get("content", {}).values()]
        self.assertGreater(sum("example" in c for _, c in holders), 10)
        for name, content in holders:
            if "example" in content:
                self.schemas.check(content["schema"], content["example"], name)
        for name, param in components["parameters"].items():
            if "example" in param:
                self.schemas.check(param["schema"], param["example"], name)

    # One document, wherever it is served.
    def test_it_is_served_on_both_listeners(self):
        answer = self.ops.get("/docs/spec.json")
        self.assertEqual((answer.status, answer.header("Content-Type")), (200, "application/json"))
        self.assertEqual(answer.json, self.doc)
        self.assertEqual(self.client.request("HEAD", BASE + "/openapi").status, 200)

    # The pages need nothing from elsewhere, run nothing, and show every operation; each of their
    # links leads to a place.
    def test_the_pages(self):
        start, answers, shown = BASE + "/openapi.html", {}, set()
        todo = [start]
        while todo:
            path = todo.pop()
            if path in answers:
                continue
            answers[path] = answer = self.client.get(path)
            self.assertEqual(answer.status, 200, path)
            if path != BASE + "/openapi":
                todo += [urllib.parse.urljoin(path, h).partition("#")[0]
                         for h in Page(answer.body.decode("utf-8")).hrefs]
        self.assertEqual(answers.pop(BASE + "/openapi").json, self.doc)
        pages = {path: Page(answer.body.decode("utf-8")) for path, answer in answers.items()}
        self.assertEqual(len(pages), 2 + len(self.doc["tags"]))
        for path, page in pages.items():
            self.assertEqual(answers[path].header("Content-Type"), "text/html; charset=utf-8")
            self.assertEqual(page.open, [])
            self.assertEqual(len(page.ids), len(set(page.ids)))
            for href in page.hrefs:
                to, _, anchor = urllib.parse.urljoin(path, href).partition("#")
                if anchor:
                    self.assertIn(anchor, pages[to].ids, (path, href))
            self.assertEqual(page.tags & {"script", "img", "link", "iframe", "object", "form",
                                          "base"}, set())
            self.assertEqual({a for a in page.attributes if a.startswith("on")
                              or a in ("style", "src")}, set())
            shown.update(page.ids)
            policy = dict(d.strip().split(" ", 1) for d in
                          answers[path].header("Content-Security-Policy").split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertNotIn("script-src", policy)
            digest = base64.b64encode(
                hashlib.sha256("".join(page.styles).encode("utf-8")).digest()).decode("ascii")
            self.assertEqual(policy["style-src"], "'sha256-%s'" % digest)
            self.assertEqual(answers[path].header("X-Content-Type-Options"), "nosniff")
        self.assertEqual([i for i in self.operations if i not in shown], [])

    # ---- the answers -----------------------------------------------------------------------------

    def call(self, oid, want, body=None, headers=None, query=None, **params):
        """Calls an operation as the document describes it, and holds the answer against the
        document.
        """
        path, method, op, ops = self.operations[oid]
        target = re.sub(r"\{([^}]+)\}", lambda m: urllib.parse.quote(params[m.group(1)], safe=""),
                        path)
        if query:
            known = {self.schemas.resolve(p)[0]["name"] for p in op.get("parameters", [])}
            self.assertLessEqual(set(query), known,
                                 "%s: a parameter that is not in the document" % oid)
            target += "?" + urllib.parse.urlencode(query)
        answer = (self.ops if ops else self.client).request(method.upper(), target, body, headers)
        self.assertEqual(answer.status, want, oid)
        self.assertIn(str(want), op["responses"], "%s: a status that is not in the document" % oid)
        self.answers.add((oid, str(want)))
        self.check_answer(oid, self.schemas.resolve(op["responses"][str(want)])[0], answer)
        if want < 300 and body is not None:
            content = self.schemas.resolve(op["requestBody"])[0]["content"]
            self.schemas.check(content["application/json"]["schema"], body, oid + " body")
        if want == 413:
            self.call(oid, 415, b"{}", {"Content-Encoding": "gzip"}, **params)
        return answer

    def check_answer(self, oid, response, answer):
        where = "%s %d" % (oid, answer.status)
        for name, ref in response["headers"].items():
            value = answer.header(name)
            if value is None and name == "Preference-Applied":
                continue  # of an answer that was held alone
            self.assertIsNotNone(value, "%s: header %s" % (where, name))
            schema = self.schemas.resolve(self.schemas.resolve(ref)[0]["schema"])[0]
            self.schemas.check(schema, int(value) if schema["type"] == "integer" else value,
                               "%s %s" % (where, name))
        for name in ("Set-Humanitec-Driver-Cookie", "Retry-After", "Allow", "Accept-Encoding"):
            self.assertEqual(answer.header(name) is not None, name in response["headers"],
                             "%s: header %s" % (where, name))
        if "content" not in response:
            self.assertEqual(answer.body, b"", where)
            return
        ctype = answer.header("Content-Type").split(";")[0]
        self.assertIn(ctype, response["content"], where)
        content = response["content"][ctype]
        value = (answer.json if ctype.endswith("json") else
                 answer.body.decode("latin-1" if ctype.endswith("octet-stream") else "utf-8"))
        self.schemas.check(content["schema"], value, where)

    def driver_walk(self, suffix, prefix, make):
        """All answers of the driver contract on one form of the path."""
        get, put, delete = ("%sResource%s" % (m, suffix) for m in ("get", "put", "delete"))
        gid, body = guresid(), make({"region": "eu"})
        at = dict(prefix, GUResID=gid)
        self.call(get, 404, **at)
        self.call(delete, 204, **at)
        cookie = self.call(put, 202, body, **at).cookie
        self.call(put, 409, make({"region": "us"}), **at)
        self.call(get, 202, headers={COOKIE: cookie}, **at)
        self.fleet.ready(gid)
        self.call(put, 200, body, **at)
        self.call(get, 200, **at)
        self.call(get, 304, headers={"If-None-Match": "*"}, **at)
        self.call(put, 412, body, headers={"If-None-Match": "*"}, **at)
        self.call(delete, 412, headers={"If-Match": '"other"'}, **at)
        self.call(put, 413, "x" * 1100000, **at)
        self.call(put, 400, dict(body, driver={"values": {"clustr": {}}}), **at)
        for oid, given in ((get, None), (put, body), (delete, None)):
            self.call(oid, 400, given, headers={COOKIE: "forged"}, **at)
        return gid, body, at, (get, put, delete)

    def driver_end(self, gid, at, calls):
        self.call(calls[2], 202, **at)
        self.call(calls[0], 202, **at)
        self.fleet.finish_delete(gid)
        self.call(calls[2], 204, **at)

    def walk_driver(self):
        cluster = lambda spec: cluster_input(spec=spec,
                                             nodepools=[{"name": "workers",
                                                         "spec": {"replicas": 2}}])
        for suffix, prefix in (("", {}), ("OfType", {"driver": "clusters"})):
            gid, _, at, calls = self.driver_walk(suffix, prefix, cluster)
            # A fault after it was ready shows in the output.
            (resource,), _ = self.fleet.of(gid)
            self.fleet.accepted(resource, "validation", available=False, reason="NodesLost",
                                message="two of three nodes are gone")
            self.call(calls[0], 200, **at)
            self.driver_end(gid, at, calls)
        owner, _, _ = self.brought_ready()
        pool = lambda spec: nodepool_input(cluster_guresid=owner, spec=spec)
        gid, _, at, calls = self.driver_walk("OfType", {"driver": "nodepools"}, pool)
        self.driver_end(gid, at, calls)

    def walk_validate(self):
        """All answers of both forms of the path that checks an order."""
        order = cluster_input(name="walk-validate", nodepools=[{"name": "workers"}])
        gid, _, _ = self.brought_ready(order)
        creating, _, _ = self.created(cluster_input(spec={"region": "eu"}))
        other = cluster_input(spec={"region": "elsewhere"}, nodepools=[{"name": "gpu"}])
        for suffix, prefix in (("", {}), ("OfType", {"driver": "clusters"})):
            oid = "validateInput" + suffix
            self.call(oid, 200, cluster_input(), **prefix)
            self.call(oid, 200, order, query={"id": gid}, **prefix)
            self.call(oid, 200, other, query={"id": gid}, **prefix)
            self.call(oid, 400, {"type": "none"}, **prefix)
            self.call(oid, 409, other, query={"id": creating}, **prefix)
            self.call(oid, 413, "x" * 1100000, **prefix)

    def kept(self, at):
        """The path of what a driver resource protects, in place of another path."""
        gid, _, _ = self.created(cluster_input(nodepools=[{"name": "kept"}], protect=True))
        (cluster,), (pool,) = self.fleet.of(gid)
        ids = {"cluster_id": cluster["id"], "nodepool_id": pool["id"]}
        return {name: ids[name] for name in at}

    def walk_resource(self, kind, suffix, made, at, missing):
        """All answers about one resource that was just made, up to its forced removal."""
        one = "ById" + suffix
        oid = lambda verb: "%s%s%s" % (verb, kind, one)
        statuses = lambda verb: "%s%sStatuses%s" % (verb, kind, suffix)
        force = "forceDelete%s%s" % (kind, suffix)
        huge = {"labels": {"x": "y" * 1100000}}
        good = report_body("validation", 1, data={"a": 1})
        good["metadata"] = {"job_name": "j"}

        self.call(oid("get"), 200, **at)
        self.call(oid("get"), 304, headers={"If-None-Match": "*"}, **at)
        self.call(oid("get"), 400, query={"fields": "no_such_member"}, **at)
        self.call(oid("patch"), 412, {"spec": {}}, headers={"If-Match": '"generation-2"'}, **at)
        self.call(oid("delete"), 412, headers={"If-Match": '"generation-2"'}, **at)
        self.call(oid("delete"), 400, query={"force": "perhaps"}, **at)
        self.call(oid("delete"), 409, **self.kept(at))
        self.call(force, 409, {"reason": "no"}, query={"force": "false"}, **self.kept(at))
        self.call(oid("patch"), 200, {"labels": {"a": "b"}}, **at)
        self.call(oid("patch"), 400, {"spec": {"nodes": 101, "replicas": 101}}, **at)
        self.call(oid("patch"), 413, huge, **at)
        for verb in ("post", "put"):
            self.call(statuses(verb), 201,
                      dict(good, observed_time=report_body("x", 1)["observed_time"]), **at)
            self.call(statuses(verb), 204, report_body("validation", 99), **at)
            self.call(statuses(verb), 400, {}, **at)
            self.call(statuses(verb), 413, huge, **at)
            self.call(statuses(verb), 404, good, **missing)
        self.call(statuses("get"), 200,
                  query={"page": 1, "pageSize": 10, "size": 10, "search": "adapter='validation'",
                         "orderBy": "adapter", "order": "desc"}, **at)
        self.call(statuses("get"), 400, query={"page": 0}, **at)
        self.call(statuses("get"), 404, **missing)
        for verb, body in (("get", None), ("patch", {"spec": {}}), ("delete", None)):
            self.call(oid(verb), 404, body, **missing)
        self.call(force, 404, {"reason": "gone"}, **missing)
        self.call(force, 409, {"reason": "not yet"}, **at)
        self.call(oid("delete"), 202, **at)
        self.call(oid("get"), 200, **at)
        self.call(oid("patch"), 409, {"spec": {}}, **at)
        self.call(force, 400, {}, **at)
        self.call(force, 413, huge, **at)
        self.call(force, 204, {"reason": "its adapter is no more"}, **at)
        self.call(oid("get"), 404, **at)

    def walk_fleet(self):
        make = lambda name: self.call("postCluster", 201,
                                      {"kind": "Cluster", "name": name, "spec": {},
                                       "labels": {"a": "b"}}).json
        cluster = make("walk-one")
        self.call("postCluster", 409, {"kind": "Cluster", "name": "walk-one", "spec": {}})
        self.call("postCluster", 400, {"kind": "Pod", "spec": {"nodes": 101}})
        self.call("postCluster", 413, {"labels": {"x": "y" * 1100000}})
        lists = {"page": 1, "pageSize": 10, "size": 10, "orderBy": "name desc", "order": "asc",
                 "search": "name='walk-one'"}
        of_cluster = {"cluster_id": cluster["id"]}
        make_pool = lambda name: self.call("createNodePool", 201,
                                           {"kind": "NodePool", "name": name, "spec": {}},
                                           **of_cluster).json
        pools = [make_pool("pool-a"), make_pool("pool-b")]
        self.call("createNodePool", 409, {"kind": "NodePool", "name": "pool-a", "spec": {}},
                  **of_cluster)
        self.call("createNodePool", 400, {}, **of_cluster)
        self.call("createNodePool", 413, {"labels": {"x": "y" * 1100000}}, **of_cluster)
        self.call("createNodePool", 404, {"kind": "NodePool", "name": "pool-a", "spec": {}},
                  cluster_id="2none")
        for oid, at in (("getClusters", {}), ("getNodePools", {}),
                        ("getNodePoolsByClusterId", of_cluster)):
            self.call(oid, 200, query=lists, **at)
            self.call(oid, 200, **at)
            self.call(oid, 400, query={"search": "name="}, **at)
        self.call("refuseNodePool", 422, {"kind": "NodePool", "name": "x", "spec": {}})
        reduced = self.call("getClusters", 400, query={"fields": "no_such_member"})
        self.assertIn("no_such_member", reduced.json["detail"])
        self.call("getNodePoolsByClusterId", 404, cluster_id="2none")
        self.walk_resource("NodePool", "", pools[0], dict(of_cluster, nodepool_id=pools[0]["id"]),
                           dict(of_cluster, nodepool_id="2none"))
        self.walk_resource("NodePool", "Flat", pools[1], {"nodepool_id": pools[1]["id"]},
                           {"nodepool_id": "2none"})
        self.walk_resource("Cluster", "", cluster, of_cluster, {"cluster_id": "2none"})

    def walk_events(self):
        cursor = self.call("watchEvents", 200).json["next"]
        cluster = self.call("postCluster", 201, {"kind": "Cluster", "name": "watched", "spec": {},
                                                 "labels": {"a": "b"}}).json
        self.call("createNodePool", 201, {"kind": "NodePool", "name": "pool", "spec": {},
                                          "labels": {"a": "b"}}, cluster_id=cluster["id"])
        self.call("watchEvents", 200, query={"after": cursor, "wait": "1s", "label": "a=b",
                                             "size": 5})
        self.call("watchEvents", 200, query={"after": cursor, "wait": "1ms", "kind": "Cluster"})
        self.call("watchEvents", 400, query={"after": "x"})
        self.call("watchEvents", 410, query={"after": 10 ** 15})

    def walk_pacemaker(self):
        cluster = self.call("postCluster", 201, {"kind": "Cluster", "name": "two-nodes",
                                                 "spec": {}}).json
        at, missing = {"cluster_id": cluster["id"]}, {"cluster_id": "2none"}
        huge, old = {"labels": {"x": "y" * 1100000}}, "2025-01-01T00:00:00Z"
        bare = {k: v for k, v in document().items() if k != "status"}
        bare["metadata"] = {"name": "cluster", "labels": {"a": "b"}, "annotations": {"c": "d"}}
        for oid in ("getPacemaker", "getPacemakerStatus", "deletePacemaker"):
            self.call(oid, 404, **at)
        self.call("createPacemaker", 201, bare, **at)
        self.call("createPacemaker", 409, bare, **at)
        self.call("putPacemaker", 200, bare, **at)
        doc = lost_fencing(document())
        doc["status"]["conditions"][0]["observedGeneration"] = 3
        self.call("putPacemakerStatus", 200, doc, **at)
        self.call("getPacemakerStatus", 200, **at)
        self.call("putPacemakerStatus", 409, document(updated=old), **at)
        for verb in ("post", "put"):
            self.call(verb + "ClusterStatuses", 409, report_body(
                "pacemaker", 1, data={"pacemakerCluster": document(updated=old)}), **at)
        for oid in ("createPacemaker", "putPacemaker", "putPacemakerStatus"):
            self.call(oid, 400, {}, **at)
            self.call(oid, 413, huge, **at)
            self.call(oid, 404, document(), **missing)
        self.call("getPacemaker", 200, **at)
        self.call("getClusterEvents", 200, query={"page": 1, "pageSize": 10, "size": 10}, **at)
        self.call("getClusterEvents", 400, query={"page": 0}, **at)
        self.call("getClusterEvents", 404, **missing)
        self.call("deletePacemaker", 204, **at)

    def walk_rest(self):
        for oid in (
            "getMetadata getOpenapi getOpenapiPage getLivez getAlive getHealthz getReadyz "
            "getHealth getMetrics getSpec getManual").split():
            self.call(oid, 200)
        self.call("getNoIcon", 204)
        pages = re.findall(r'href="/docs/([a-z]+\.html)"',
                           self.ops.get("/docs/").body.decode("utf-8"))
        for page in (pages[0], "search.js", "search.json"):
            self.call("getManualPage", 200, page=page)
        self.call("getManualPage", 404, page="none.html")
        self.call("getOpenapiTagPage", 200, page="clusters.html")
        self.call("getOpenapiTagPage", 404, page="none.html")
        gid = guresid("page")
        self.put(gid, cluster_input())
        listed = self.call("getStatusPage", 200, query={"search": gid, "state": "creating",
                                                        "order": "trouble"})
        self.assertIn(gid, listed.body.decode())
        self.call("getStatusPage", 200)
        self.call("getResourcePage", 200, guresid=gid)
        self.call("getResourcePage", 404, guresid="none")
        self.call("getPageStyle", 200)
        self.call("getPageScript", 200)

    def walk_status(self):
        gid = guresid("status")
        self.put(gid, cluster_input(labels={"project": "shop"}))
        cluster = self.fleet.cluster_of(gid)
        objects = [{"name": "a", "progress": 30, "present": True, "detail": {"spec": {}}}]
        self.fleet.accepted(cluster, "validation", available=False, data={"objects": objects})
        self.fleet.accepted(cluster, "pacemaker", data={"pacemakerCluster": document()})
        for oid, at, wrong in (("getResourceStatus", {"GUResID": gid}, {"GUResID": "none"}),
                               ("getTypedResourceStatus", {"driver": "clusters", "GUResID": gid},
                                {"driver": "nodepools", "GUResID": gid}),
                               ("getClusterStatus", {"cluster_id": cluster["id"]},
                                {"cluster_id": "2none"})):
            tag = self.call(oid, 200, **at).header("ETag")
            self.call(oid, 304, headers={"If-None-Match": tag}, **at)
            for kind in ("rsync", "cluster"):
                self.call(oid, 200, query={"type": kind, "output": "detail"}, **at)
            self.call(oid, 200, query={"app": "validation", "cluster": "a+b", "resource": "a"},
                      **at)
            self.call(oid, 400, query={"type": "all"}, **at)
            self.call(oid, 404, query={"instance": "77777"}, **at)
            self.call(oid, 404, **wrong)

    def walk_overview(self):
        gid = guresid("seen")
        self.put(gid, cluster_input(labels={"app": "shop", "env": "dev"}))
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "validation", available=False, reason="Waiting")
        self.fleet.accepted(cluster, "pacemaker", data={"pacemakerCluster": document()})
        page = self.call("listResources", 200, query={
            "state": "creating", "type": "hyperfleet-cluster", "search": "shop",
            "label": "env=dev", "stuck": "false", "degraded": "false", "who": "validation",
            "reason": "Waiting", "order": "name", "size": 1}).json
        self.assertEqual([i["id"] for i in page["items"]], [gid])
        self.fleet.accepted(cluster, "validation", available=False,
                            reason="InvalidConfiguration")
        causes = self.call("listResources", 200, query={"search": gid}).json["causes"]
        self.assertEqual([c["who"] for c in causes], ["validation"])
        page = self.call("listResources", 200, query={"size": 1}).json
        self.call("listResources", 200, query={"size": 1, "after": page["next"]})
        drifted = guresid("drift")
        self.put(drifted, cluster_input(spec={"a": 1, "b": 2}))
        cluster = self.fleet.cluster_of(drifted)
        self.fleet.make_ready(cluster)
        self.client.patch(cluster["href"], {"spec": {"a": 3}})
        self.call("getResource", 200, GUResID=drifted)
        self.assertEqual(len(self.call("getResourceDetail", 200, GUResID=drifted).json["drift"]), 2)
        self.call("listResources", 200, query={"drift": "true"})
        self.call("listResources", 400, query={"order": "odd"})
        self.call("getResourceDetail", 200, GUResID=gid)
        self.call("getResourceDetail", 404, GUResID="none")
        answer = self.client.get("/api/driver/v1/resources/%s?x=1" % gid)
        self.assertEqual(answer.status, 400)
        self.answers.add(("getResourceDetail", "400"))
        events = self.call("listResourceEvents", 200, query={"after": 0, "size": 2})
        self.call("listResourceEvents", 304, query={"after": 0, "size": 2},
                  headers={"If-None-Match": events.header("ETag")})
        self.call("listResourceEvents", 400, query={"after": "x"})
        self.call("listProblems", 200)

    def walk_orphans(self):
        self.put("x9y", cluster_input(name="nobodys", nodepools=[]))
        made = self.fleet.cluster_of("x9y")
        lose_rows(self.server, "x9y")
        plain = self.client.post(BASE + "/clusters",
                                 {"kind": "Cluster", "name": "plain", "spec": {}})
        self.assertEqual([i["id"] for i in self.call("listOrphans", 200).json["items"]],
                         [made["id"]])
        self.assertEqual(self.call("listOrphans", 200, query={"owner": "b"}).json["items"], [])
        self.call("deleteOrphan", 409, id=made["id"], query={"owner": "b"})
        self.call("deleteOrphan", 202, id=made["id"])
        self.assertIn("deleted_time", self.call("listOrphans", 200).json["items"][0])
        self.assertEqual(self.call("listTokens", 200).json, {"items": []})
        self.assertEqual(self.call("listReplicas", 200).json, {"items": []})
        self.call("getBackup", 200)
        self.call("deleteOrphan", 404, id="2none")
        self.call("deleteOrphan", 409, id=plain.json["id"])

    def members_of_answers(self):
        """(schema, member) of every closed schema that an answer can contain."""
        todo = [r["$ref"] for name, resp in self.doc["components"]["responses"].items()
                for c in resp.get("content", {}).values()
                for r in [c["schema"]] if "$ref" in r]
        done = set()
        while todo:
            ref = todo.pop()
            if ref in done:
                continue
            done.add(ref)
            schema, name = self.schemas.resolve({"$ref": ref})
            todo += list(references(schema))
            for member in schema.get("properties", {}):
                yield name, member

    # Every operation is called to every status that it declares; each answer is as declared, and no
    # declared member stays unseen.
    def test_every_answer_is_as_described(self):
        self.walk_driver()
        self.walk_validate()
        self.walk_fleet()
        self.walk_events()
        self.walk_pacemaker()
        self.walk_rest()
        self.walk_status()
        self.walk_overview()
        self.walk_orphans()
        for oid, (_, _, op, _) in self.operations.items():
            for status in op["responses"]:
                if status == "default" or status in UNSEEN or (oid, status) in UNSEEN_PAIRS:
                    continue
                self.assertIn((oid, status), self.answers,
                              "the document declares what no answer showed")
        never = {("Health", "reason"), ("OutputValues", "demo")}  # test_demo sees it
        # test_remote sees those of a remote HyperFleet
        never |= {("Health", "remote")} | {pair for pair in self.members_of_answers()
                                           if pair[0] == "RemoteHealth"}
        # tests/contract/test_orphans.py does
        never |= {("DriftedField", "repair")}  # test_drift does
        never |= {("Manifest", "location"), ("Manifest", "data")}  # test_manifests sees them
        never |= {("OrphanList", "checked_time"), ("OrphanList", "message")}
        unseen = set(self.members_of_answers()) - self.schemas.seen - never
        self.assertEqual(unseen, set(), "members that no answer had")

    # A request that is refused before any operation has the form that `default` promises.
    def test_default_answers(self):
        schemas = self.doc["components"]["schemas"]
        for client, method, path, name, status in ((self.client, "PATCH", "/x", "Error", 405),
                                                   (self.client, "GET", "/a/b/c", "Error", 404),
                                                   (self.client, "PUT", BASE + "/clusters",
                                                    "Problem", 405),
                                                   (self.client, "GET", BASE + "/nothing",
                                                    "Problem", 404),
                                                   (self.ops, "POST", "/livez", "OpsError", 405),
                                                   (self.ops, "GET", "/nothing", "OpsError", 404)):
            answer = client.request(method, path)
            self.assertEqual(answer.status, status)
            self.schemas.check(schemas[name], answer.json, path, name)

    # The validator of this test can fail: what is not in the document is found.
    def test_the_validator_finds_faults(self):
        good = self.client.post(BASE + "/clusters",
                                {"kind": "Cluster", "name": "faults", "spec": {}}).json
        ref = {"$ref": "#/components/schemas/Cluster"}
        self.schemas.check(ref, good)
        cond = good["status"]["conditions"][0]
        for wrong in (dict(good, more=1), {k: v for k, v in good.items() if k != "href"},
                      dict(good, kind="Pod"),
                      dict(good, generation="1"), dict(good, generation=0),
                      dict(good, created_time="yesterday"),
                      dict(good, labels={"a": 1}),
                      dict(good, status={"conditions": [dict(cond, status="Unknown")]}),
                      dict(good, status={"conditions": [dict(cond, x=1)]})):
            with self.assertRaises((AssertionError, ValueError), msg=json.dumps(wrong)):
                self.schemas.check(ref, wrong)


if __name__ == "__main__":
    unittest.main()
