"""fleet.spec_schema: an operator's OpenAPI document says what a spec must look like; and several
errors of one body told at once.
"""
import os
import tempfile
import unittest

from lib import BASE, Case, Server, cluster_input, guresid, nodepool_input, report_body, run

SCHEMA = """\
openapi: 3.0.0
info: {title: specs, version: "1"}
paths: {}
components:
  schemas:
    ClusterSpec:
      type: object
      additionalProperties: false
      required: [region]
      properties:
        region: {type: string, enum: [eu-1, us-1]}
        nodes: {type: integer, minimum: 1, maximum: 100}
        network: {$ref: '#/components/schemas/Network'}
    Network:
      type: object
      properties:
        mtu: {type: integer}
        cidrs: {type: array, items: {type: string, pattern: '^[0-9.]+/[0-9]+$'}}
    NodePoolSpec:
      type: object
      properties:
        replicas: {type: integer, minimum: 0}
"""


class WithSchema(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    SPEC_SCHEMA = SCHEMA

    def fields(self, answer):
        return [e["field"] for e in answer.json["errors"]]

    def create(self, spec, name="spec", **more):
        return self.client.post(BASE + "/clusters",
                                dict({"kind": "Cluster", "name": name, "spec": spec}, **more))

    # A spec that the schema allows is taken as it is.
    def test_valid_specs_are_taken(self):
        spec = {"region": "eu-1", "nodes": 3,
                "network": {"mtu": 1500, "cidrs": ["10.0.0.0/8"], "more": True}}
        made = self.create(spec, "valid")
        self.assertEqual(made.status, 201)
        self.assertEqual(made.json["spec"], spec)
        self.assertEqual(self.client.patch(made.json["href"], {"spec": {"region": "us-1"}}).status,
                         200)
        pool = self.client.post(made.json["href"] + "/nodepools",
                                {"kind": "NodePool", "name": "pool", "spec": {"replicas": 0}})
        self.assertEqual(pool.status, 201)

    # All violations are told, each by its field, the detail being the rule's.
    def test_all_violations_are_told(self):
        spec = {"region": "mars", "nodes": 0,
                "network": {"mtu": "x", "cidrs": ["10.0.0.0/8", "y"]}, "typo": 1}
        answer = self.create(spec)
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "Invalid ClusterSpec")
        self.assertEqual(sorted(self.fields(answer)),
                         ["spec.network.cidrs[1]", "spec.network.mtu", "spec.nodes", "spec.region",
                          "spec.typo"])
        by_field = {e["field"]: e for e in answer.json["errors"]}
        self.assertEqual(by_field["spec.region"]["constraint"], "enum")
        self.assertEqual(by_field["spec.nodes"]["constraint"], "min")
        self.assertEqual({f: e.get("value") for f, e in by_field.items()},
                         {"spec.region": "mars", "spec.nodes": 0, "spec.network.mtu": "x",
                          "spec.network.cidrs[1]": "y", "spec.typo": 1})
        long = self.create({"region": "m" * 81, "nodes": 1}).json["errors"][0]
        self.assertEqual((long["field"], "value" in long), ("spec.region", False))
        self.assertIn("eu-1", by_field["spec.region"]["message"])

    # HyperFleet's own door takes no string for a number.
    def test_numbers_are_numbers_at_hyperfleets_door(self):
        self.assertEqual(self.fields(self.create({"region": "eu-1", "nodes": "3"})), ["spec.nodes"])

    # The error about a missing member names the spec that lacks it.
    def test_missing_member(self):
        answer = self.create({})
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "Invalid ClusterSpec", errors="spec")
        self.assertIn("region", answer.json["errors"][0]["message"])

    # A change is checked like a creation, and a refused one changes nothing.
    def test_patches_are_checked(self):
        made = self.create({"region": "eu-1"}, "patched").json
        pool = self.client.post(made["href"] + "/nodepools",
                                {"kind": "NodePool", "name": "pool", "spec": {}}).json
        answer = self.client.patch(made["href"], {"spec": {"region": "mars"}})
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "Invalid ClusterSpec", errors="spec.region")
        answer = self.client.patch(pool["href"], {"spec": {"replicas": -1}})
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "Invalid NodePoolSpec",
                     errors="spec.replicas")
        self.assertEqual(self.fleet.get(made), made)
        self.assertEqual(self.client.patch(made["href"], {"labels": {"a": "b"}}).status, 200,
                         "labels alone need no spec")

    # A report has no spec to be checked.
    def test_reports_are_not_checked(self):
        made = self.create({"region": "eu-1"}, "reported").json
        self.assertEqual(self.client.post(made["href"] + "/statuses",
                                          dict(report_body("validation", 1), spec={"x": 1})).status,
                                          201)

    # The driver's input is checked too, and names the field as the sender wrote it.
    def test_driver_input_is_checked(self):
        for body, field in ((cluster_input(spec={"region": "mars"}),
                             "driver.values.cluster.spec.region"),
                            (cluster_input(spec={"region": "eu-1"},
                                           nodepools=[{"name": "aaa", "spec": {}},
                                                                   {"spec": {"replicas": "many"}}]),
                             "driver.values.nodepools[1].spec.replicas"),
                            (nodepool_input(cluster_id="2abc", spec={"replicas": -1}),
                             "driver.values.nodepool.spec.replicas"),
                            ({"type": "hyperfleet-cluster", "resource": {},
                              "driver": {"values": {}}}, "driver.values.cluster.spec")):
            answer = self.expect(self.put(guresid(), body), 400, "RES-101")
            self.assertIn(field, answer.json["message"])

    # A number in a string is taken where a number is wanted, and stored as the number.
    def test_driver_numbers_may_be_strings(self):
        gid = guresid()
        workers = {"name": "workers", "spec": {"replicas": "2", "size": "2"}}
        self.expect(self.put(gid, cluster_input(spec={"region": "eu-1", "nodes": "3"},
                                                nodepools=[workers])), 202)
        clusters, pools = self.fleet.of(gid)
        self.assertEqual(clusters[0]["spec"], {"region": "eu-1", "nodes": 3})
        self.assertEqual(pools[0]["spec"], {"replicas": 2, "size": "2"})

    # The errors of all fields come at once, the detail being the first in HyperFleet's order.
    def test_all_errors_of_a_body(self):
        answer = self.client.post(BASE + "/clusters",
                                  {"id": "x", "kind": "Pod", "name": "UPPER",
                                   "spec": {"region": "mars"}})
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "Invalid ClusterSpec")
        self.assertEqual(self.fields(answer), ["spec.region", "id", "name", "kind"])
        answer = self.client.post(BASE + "/clusters", {"name": 3, "labels": {"a": 1}})
        self.problem(answer, 400, "HYPERFLEET-VAL-006")
        self.assertEqual(self.fields(answer), ["name", "labels.a", "kind", "spec"])
        answer = self.client.post(BASE + "/clusters", {})
        self.problem(answer, 400, "HYPERFLEET-VAL-000", "name is required")
        self.assertEqual(self.fields(answer), ["name", "kind", "spec"])

    # So do those of a report.
    def test_all_errors_of_a_report(self):
        made = self.create({"region": "eu-1"}, "errors").json
        answer = self.client.post(made["href"] + "/statuses",
                                  {"observed_generation": 2**31, "conditions": [
            {"type": "", "status": "True"}, {"type": "A", "status": "True"},
            {"type": "A", "status": "True"},
            {"type": "B", "status": "maybe"}]})
        self.problem(answer, 400, "HYPERFLEET-VAL-006")
        self.assertEqual(self.fields(answer),
                         ["observed_generation", "adapter", "conditions[0].type",
                          "conditions[2].type",
                                               "conditions[3].status", "observed_time"])


class Start(unittest.TestCase):
    def start(self, text):
        with tempfile.TemporaryDirectory(prefix="hfd-it-spec-") as folder:
            path = os.path.join(folder, "spec.yaml")
            if text is not None:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            done = run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data",
                       os.path.join(folder, "data"),
                       "--fleet-spec-schema", path)
            return done.returncode, done.stderr

    # A schema file that is missing or wrong stops the start; the log names file and problem.
    def test_a_bad_file_stops_the_start(self):
        for text, says in ((None, "No such file"), ("a: [", "spec.yaml:"),
                           ("components: {schemas: {ClusterSpec: {}}}", "NodePoolSpec"),
                           (SCHEMA.replace("type: integer", "type: int"), "ClusterSpec")):
            status, log = self.start(text)
            self.assertEqual(status, 2, log)
            self.assertIn("fleet.spec_schema", log)
            self.assertIn("spec.yaml", log)
            self.assertIn(says, log)

    # JSON is read as well.
    def test_json_is_read(self):
        with tempfile.TemporaryDirectory(prefix="hfd-it-spec-") as folder:
            path = os.path.join(folder, "spec.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(
                    '{"openapi": "3.0.0", "components": {"schemas": {"ClusterSpec": {"type": '
                    '"object"},\n'
                        '\t"NodePoolSpec": {"type": "object"}}}}')
            with Server("--fleet-spec-schema", path) as server:
                self.assertTrue(server.alive())


if __name__ == "__main__":
    unittest.main()
