"""The command register: what it prints for each orchestrator, and how it compares."""
import copy
import http.server
import json
import os
import re
import stat
import subprocess
import tempfile
import threading
import unittest

import pages
from lib import Client, Server, run

FLAGS = ("--org", "acme", "--target", "https://driver.example/t/hfd_secret//")
OWNER = "resources['acme/hyperfleet-cluster.default#shared.hyperfleet-cluster'].outputs."
# JSON Schema keywords that say nothing about a value.
WORDS = {"title", "description", "examples"}

CLUSTER, POOL = "hyperfleet-cluster", "hyperfleet-nodepool"
# Inputs that the schema and the server judge alike: type, driver, whether it is good.
TABLE = [
    (CLUSTER, {}, True),
    (CLUSTER, None, True),
    (CLUSTER, {"values": None}, True),
    (CLUSTER, {"values": {}}, True),
    (CLUSTER, {"values": {"cluster": {"name": "shop-eu", "spec": {"a": [1]}}}}, True),
    (CLUSTER, {"values": {"cluster": {"labels": {"app": "shop"}}, "nodepools": []}}, True),
    (CLUSTER, {"values": {"nodepools": [{"name": "workers"}, {"name": "gpu", "spec": {}}]}}, True),
    (CLUSTER, {"values": {"nodepools": None}, "secrets": {"account": {"a": 1}}}, True),
    (CLUSTER, {"more": 1}, True),
    (POOL, {"values": {"cluster_id": "abc-1", "nodepool": {"name": "gpu"}}}, True),
    (POOL, {"values": {"cluster_id": "abc-1", "nodepool": None}}, True),
    (CLUSTER, [], False),
    (CLUSTER, "x", False),
    (CLUSTER, {"values": []}, False),
    (CLUSTER, {"secrets": "x"}, False),
    (CLUSTER, {"values": {"clustr": {}}}, False),
    (CLUSTER, {"values": {"cluster": []}}, False),
    (CLUSTER, {"values": {"cluster": {"label": "x"}}}, False),
    (CLUSTER, {"values": {"cluster": {"name": 3}}}, False),
    (CLUSTER, {"values": {"cluster": {"spec": "x"}}}, False),
    (CLUSTER, {"values": {"cluster": {"labels": {"a": 1}}}}, False),
    (CLUSTER, {"values": {"cluster": {"labels": {"humanitec_guresid": "x"}}}}, False),
    (CLUSTER, {"values": {"nodepools": {}}}, False),
    (CLUSTER, {"values": {"nodepools": [1]}}, False),
    (CLUSTER, {"values": {"nodepools": [{"size": 1}]}}, False),
    (CLUSTER, {"values": {"nodepools": [{"labels": {"humanitec_owner": "x"}}]}}, False),
    (POOL, {"values": {"cluster_id": "a/b", "nodepool": {}}}, False),
    (POOL, {"values": {"cluster_guresid": "-x", "nodepool": {}}}, False),
    (POOL, {"values": {"cluster_id": "abc", "nodepool": {"name": []}}}, False),
]
# The server refuses these for what a schema of both kinds does not say.
BEYOND = [
    (CLUSTER, {"values": {"cluster": {"name": "A"}}}),
    (CLUSTER, {"values": {"cluster_id": "abc"}}),
    (CLUSTER, {"values": {"nodepools": [{"name": "same"}, {"name": "same"}]}}),
    (POOL, {"values": {"nodepool": {}}}),
    (POOL, {"values": {"cluster_id": "a1", "cluster_guresid": "a1", "nodepool": {}}}),
]


def accepts(schema, value):
    """A small JSON Schema: an unknown keyword is an error of the test."""
    if isinstance(schema, bool):
        return schema
    kinds = {"object": dict, "array": list, "string": str, "null": type(None)}
    for word, says in schema.items():
        if word in WORDS or word == "properties":
            continue
        if word == "type":
            names = says if isinstance(says, list) else [says]
            good = any(isinstance(value, kinds[name]) for name in names)
        elif word == "additionalProperties":
            rest = set(value) - set(schema.get("properties", {})) if isinstance(value, dict) else ()
            good = all(accepts(says, value[key]) for key in rest)
        elif word == "items":
            good = not isinstance(value, list) or all(accepts(says, item) for item in value)
        elif word == "pattern":
            good = not isinstance(value, str) or re.search(says, value)
        else:
            raise AssertionError("unknown keyword " + word)
        if not good:
            return False
    return not isinstance(value, dict) or all(
        accepts(below, value[key]) for key, below in schema.get("properties", {}).items()
        if key in value)


# The humctl of the tests: writes its calls to a log, and knows the drivers that were posted.
FAKE_HUMCTL = """#!/usr/bin/env python3
import json, os, sys
folder, call = os.path.dirname(sys.argv[0]), sys.argv[1:]
drivers = os.path.join(folder, "drivers")
known = open(drivers).read().split() if os.path.exists(drivers) else []
if call[0] == "apply":
    entry = call[:2] + [json.load(open(call[2]))]
else:
    assert call[0] == "api" and call[3] == "-d", call
    entry = [call[1], call[2], json.loads(call[4])]
    if call[1] == "post":
        open(drivers, "a").write(entry[2]["id"] + "\\n")
with open(os.path.join(folder, "log"), "a") as log:
    log.write(json.dumps(entry) + "\\n")
sys.exit(call[1] == "put" and entry[2]["id"] not in known)
"""


def brackets(text):
    """How many brackets a piece of HCL opens, less those that it closes."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"|#.*', "", text)
    return sum(bare.count(c) for c in "([{") - sum(bare.count(c) for c in ")]}")


def formatted(text):
    """HCL in the form of `terraform fmt`: its indents and columns, which hclwrite/format.go has."""
    depths, lines, chain = [], [], []

    def close():
        width = max((len(name) for _, name, _ in chain), default=0)
        lines.extend("%s%-*s %s" % (indent, width, name, rest) for indent, name, rest in chain)
        chain.clear()
    for line in map(str.strip, text.rstrip("\n").split("\n")):
        change, left = brackets(line), -brackets(line)
        while left > 0 and depths:
            taken = min(left, depths[-1])
            depths[-1], left = depths[-1] - taken, left - taken
            if depths[-1] == 0:
                depths.pop()
        indent = "  " * len(depths)
        found = re.match(r'([\w.-]+|"[^"]*") *(=(?!=).*)$', line)
        if found and brackets(found.group(2)) == 0:
            chain.append((indent, found.group(1), found.group(2)))
        else:
            close()
            lines.append((indent + re.sub(r'^("[^"]*"):', r"\1 :", line)).rstrip())
        if change > 0:
            depths.append(change)
    close()
    return "\n".join(lines) + "\n"


def register(*args, want=0, env=None):
    ran = run("register", *args, env=env)
    assert ran.returncode == want, (args, ran.returncode, ran.stdout, ran.stderr)
    return ran


def plan(*args):
    """Reads the script for humctl: what is registered, by the API's names of kinds."""
    text = register("--print", "--format", "humctl", *FLAGS, *args).stdout
    found = {"resource_types": [], "drivers": [], "resource_definitions": []}
    for doc in map(json.loads, re.findall(r"<<'END'\n(.*?)\nEND\n", text, re.S)):
        key, name = {"ResourceType": ("resource_types", "type"),
                     "Definition": ("resource_definitions", "id"),
                     None: ("drivers", "id")}[doc.get("kind")]
        found[key].append(dict(doc["entity"], **{name: doc["metadata"]["id"]})
                          if "kind" in doc else doc)
    return found


class Print(unittest.TestCase):
    maxDiff = None

    def test_documents(self):
        """Types, drivers and definitions, as the bodies of the API's requests."""
        doc = plan()
        self.assertEqual([(t["type"], t["use"]) for t in doc["resource_types"]],
                         [("acme/hyperfleet-cluster", "direct"),
                          ("acme/hyperfleet-nodepool", "direct")])
        for kind, driver in zip(("cluster", "nodepool"), doc["drivers"]):
            self.assertEqual(set(driver), {"id", "type", "account_types", "inputs_schema",
                                           "target"})
            self.assertEqual((driver["id"], driver["type"], driver["account_types"],
                              driver["target"]),
                             ("hyperfleet-" + kind, "acme/hyperfleet-" + kind, [],
                              "https://driver.example/t/hfd_secret/%ss/" % kind))
        for driver, definition in zip(doc["drivers"], doc["resource_definitions"]):
            self.assertEqual((definition["type"], definition["driver_type"]),
                             (driver["type"], "acme/" + driver["id"]))
            self.assertEqual(definition["criteria"], [{"class": "default"}])
            self.assertTrue(accepts(driver["inputs_schema"],
                                    {"values": {k: v for k, v in definition["driver_inputs"]
                                                ["values"].items() if k != "cluster_id"}}))
        cluster, pool = [d["driver_inputs"]["values"] for d in doc["resource_definitions"]]
        labels = {"app": "${context.app.id}", "env": "${context.env.id}",
                  "resource": "${context.res.id}"}
        self.assertEqual((cluster["cluster"]["labels"], pool["nodepool"]["labels"]),
                         (labels, labels))
        self.assertEqual(pool["cluster_id"], "${%scluster_id}" % OWNER)

    def test_choices(self):
        """The criteria of definitions, the owner of nodepools, and the recipe for k8s-cluster."""
        doc = plan("--class", "big", "--env-type", "dev", "--app", "shop", "--cluster-id",
                   "shared.main", "--k8s-cluster")
        wanted = [{"class": "big", "env_type": "dev", "app_id": "shop"}]
        self.assertEqual([d["criteria"] for d in doc["resource_definitions"]], [wanted] * 3)
        pool, k8s = doc["resource_definitions"][1:]
        self.assertIn("acme/hyperfleet-cluster.big#shared.main'",
                      pool["driver_inputs"]["values"]["cluster_id"])
        self.assertEqual((k8s["type"], k8s["driver_type"]),
                         ("k8s-cluster", "humanitec/k8s-cluster"))
        self.assertIn("outputs.cluster_data", k8s["driver_inputs"]["values"]["cluster_data"])
        self.assertIn("outputs.credentials",
                      k8s["driver_inputs"]["secret_refs"]["credentials"]["value"])
        self.assertEqual(plan("--k8s-cluster")["resource_definitions"][2]["criteria"], [],
                         "nothing waits for a cluster that was not chosen")

    def test_settings(self):
        """Types and paths are those of the server; variables of the client are no settings."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("driver:\n  types:\n    cluster: [k8s-cluster, big-cluster]\n"
                       "  paths: {nodepool: pools}\n  outputs:\n    values:\n"
                       "      cluster_type: hypershift:/a\n      cluster_data: hypershift:/b\n"
                       "    secrets: {credentials: hypershift:/secrets/c}\n")
            file.flush()
            doc = plan("--config", file.name)
        self.assertEqual([d["id"] for d in doc["drivers"]], ["big-cluster", "hyperfleet-nodepool"])
        self.assertTrue(doc["drivers"][1]["target"].endswith("/pools/"))
        register("--print", "--format", "stellwerk", *FLAGS, env={
            "HFD_URL": "http://x/", "HFD_TOKEN_FILE": "/none", "HFD_OPS_URL": "http://x/"})

    def test_schema_is_the_servers(self):
        """The inputs_schema is that of schemas/input.json, and judges as the server does."""
        schemas = [d["inputs_schema"] for d in plan()["drivers"]]
        self.assertEqual(schemas[0], schemas[1])
        own = json.loads(pages.read("schemas/input.json"))["properties"]["driver"]
        self.assertEqual(schemas[0], own)
        with Server() as server:
            client = Client(server)

            def judged(kind, driver):
                answer = client.post("/validate?id=abc", {"type": kind, "driver": driver})
                self.assertIn(answer.status, (200, 400), answer)
                # A cluster that does not exist is no fault of the input's form.
                return answer.status == 200 or "there is no cluster" in answer.json["message"]
            for kind, driver, good in TABLE:
                with self.subTest(kind=kind, driver=driver):
                    self.assertEqual(bool(accepts(own, driver)), good, "the schema")
                    self.assertEqual(judged(kind, driver), good, "the server")
            for kind, driver in BEYOND:
                with self.subTest(kind=kind, driver=driver):
                    self.assertTrue(accepts(own, driver), "the schema")
                    self.assertFalse(judged(kind, driver), "the server")
            client.close()

    def test_humctl(self):
        """The script registers the whole plan. Run again, it creates nothing and updates all."""
        text = register("--print", *FLAGS, "--k8s-cluster", "--format", "humctl").stdout
        doc = plan("--k8s-cluster")
        base = "/orgs/acme/resources/drivers"
        entities = [("apply", "-f", {"apiVersion": "entity.humanitec.io/v1b1", "kind": kind,
                                     "metadata": {"id": one[key]},
                                     "entity": {k: v for k, v in one.items() if k != key}})
                    for kind, key, all_ in (("ResourceType", "type", doc["resource_types"]),
                                            ("Definition", "id", doc["resource_definitions"]))
                    for one in all_]
        with tempfile.TemporaryDirectory() as folder:
            fake = os.path.join(folder, "humctl")
            with open(fake, "w", encoding="utf-8") as f:
                f.write(FAKE_HUMCTL)
            os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
            for verbs in (("put", "post"), ("put",)):
                subprocess.run(["sh", "-c", text], check=True, env={
                    "PATH": folder + ":" + os.environ["PATH"], "TMPDIR": folder})
                self.assertEqual(sorted(os.listdir(folder)), ["drivers", "humctl", "log"])
                with open(os.path.join(folder, "log"), encoding="utf-8") as f:
                    calls = [tuple(call) for call in map(json.loads, f)]
                os.unlink(os.path.join(folder, "log"))
                drivers = [(verb, base if verb == "post" else base + "/" + one["id"], one)
                           for one in doc["drivers"] for verb in verbs]
                self.assertEqual(calls, entities[:2] + drivers + entities[2:])

    def test_form_of_terraform(self):
        """The files have the form of `terraform fmt`, and name the versions of their providers."""
        for args in (("terraform",), ("terraform", "--k8s-cluster", "--app", "shop"),
                     ("stellwerk",), ("stellwerk", "--class", "big", "--env-type", "dev")):
            text = register("--print", *FLAGS, "--format", *args).stdout
            self.assertEqual(formatted(text), text, args)
            self.assertRegex(text, r'version = "~> \d+\.\d+"')
        self.assertEqual(formatted('a {\nbb = 1 \n c = f({\n d = "x: =" # {\n})\n}\n'),
                         'a {\n  bb = 1\n  c = f({\n    d = "x: =" # {\n  })\n}\n')

    def test_terraform(self):
        """Placeholders of the orchestrator are escaped; the rest refers to other resources."""
        text = register("--print", *FLAGS, "--format", "terraform", "--env-type", "dev").stdout
        self.assertEqual(set(re.findall(r"(?<!\$)\$\{(\w+)", text)), {"humanitec_resource_driver"})
        self.assertEqual(set(re.findall(r"\$\$\{(\w+)", text)), {"context", "resources"})
        bodies = [json.loads(body.replace("$${", "${")) for body in
                  re.findall(r"jsonencode\((\{.*?\n *\})\)$", text, re.S | re.M)]
        doc = plan("--env-type", "dev")
        for wanted in [d["inputs_schema"] for d in doc["drivers"]] + \
                [t["outputs_schema"] for t in doc["resource_types"]] + \
                [d["driver_inputs"]["values"] for d in doc["resource_definitions"]]:
            self.assertIn(wanted, bodies)
        self.assertEqual(len(re.findall(r'env_type +=  *"dev"', text)), 2)

    def test_stellwerk(self):
        """The modules have the variables that are given to them."""
        text = register("--print", *FLAGS, "--format", "stellwerk", "--app", "shop").stdout
        self.assertIn('{ base_url = "https://driver.example/t/hfd_secret" }', text)
        for kind, module in zip(("cluster", "nodepool"), re.findall(
                r'resource "platform-orchestrator_module" .*?\n\}\n', text, re.S)):
            source = "docker/terraform/hyperfleet-%s" % kind
            self.assertIn("/hyperfleet-%s?ref=" % kind, module)
            variables = set(re.findall(r'^variable "(\w+)"',
                                       pages.read(source + "/variables.tf"), re.M))
            inputs = re.search(r"module_inputs = jsonencode\(\{\n(.*?)\n  \}\)", module, re.S)
            params = re.search(r"module_params = \{\n(.*?)\n  \}", module, re.S)
            given = set(re.findall(r"^    (\w+) +=", inputs.group(1), re.M)) | \
                set(re.findall(r"^    (\w+) +=", params.group(1), re.M))
            self.assertGreaterEqual(given, {"scope", "labels", "type", "path", "name", "spec"})
            self.assertLessEqual(given, variables)
            outputs = re.search(r'type" "%s" \{.*?properties = \{\n(.*?)\n    \}' % kind, text,
                                re.S)
            self.assertEqual(set(re.findall(r"^      (\w+) +=", outputs.group(1), re.M)),
                             set(re.findall(r'^output "(\w+)"', pages.read(source + "/outputs.tf"),
                                            re.M)))
        self.assertEqual(len(re.findall(r'^  project_id +=  *"shop"', text, re.M)), 2)

    def test_wrong_use(self):
        for args, words in (((), "--print or --check"), (("--print", "--check"), "or --check"),
                            (("--print",), "--org ORG"), (("--print", "--org", "acme"), "--target"),
                            (("--print", "--org", "A", "--target", "https://x"), "--org: expected"),
                            (("--print", "--org", "acme", "--target", "x"), "--target: expected"),
                            (("--print", *FLAGS), "--format: expected humctl"),
                            (("--print", *FLAGS, "--format", "humanitec"), "--format: expected"),
                            (("--check", *FLAGS, "--format", "humctl"), "expected no --format"),
                            (("--print", *FLAGS, "--cluster-id", "a'b"), "--cluster-id: expected"),
                            (("--print", *FLAGS, "--class", "B"), "--class: expected"),
                            (("--print", *FLAGS, "x"), "flags only"),
                            (("--check", *FLAGS), "--token-file FILE"),
                            (("--print", *FLAGS, "--config", "/none"), "/none")):
            self.assertIn(words, register(*args, want=2).stderr, args)
        ran = register("--print", "--format", "humctl", "--org", "acme", "--target",
                       "http://driver/")
        self.assertIn("no TLS", ran.stderr)
        self.assertIn("Examples:\n  hyperfleet-driver register", register("--help").stdout)


class Orchestrator(http.server.BaseHTTPRequestHandler):
    """The read-only part of the orchestrator's API, scripted."""

    def log_message(self, *_):
        pass

    def do_GET(self):  # noqa: N802
        server = self.server
        server.asked.append((self.path, self.headers.get("Authorization")))
        found = server.documents.get(self.path)
        body = json.dumps(found if found is not None else {"error": "API-404"}).encode()
        self.send_response(server.status or (200 if found is not None else 404))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Check(unittest.TestCase):
    def setUp(self):
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Orchestrator)
        self.api.asked, self.api.documents, self.api.status = [], {}, None
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)
        token = tempfile.NamedTemporaryFile("w", suffix=".token")
        self.addCleanup(token.close)
        token.write("the-token\n")
        token.flush()
        self.args = ("--check", *FLAGS, "--token-file", token.name, "--api-url",
                     "http://127.0.0.1:%d" % self.api.server_port)

    def have(self, doc):
        """The organisation has what a plan says, with what its API adds."""
        base = "/orgs/acme/resources/"
        self.api.documents = {base + "types": [{"type": "s3", "use": "direct"}] +
                              doc["resource_types"]}
        for driver in doc["drivers"]:
            self.api.documents[base + "drivers/" + driver["id"]] = dict(driver, org_id="acme")
        for definition in doc["resource_definitions"]:
            for one in definition["criteria"]:
                one["id"] = "1234"
            self.api.documents[base + "defs/" + definition["id"]] = dict(
                definition, created_by="x", is_default=False)

    def lines(self, want):
        return register(*self.args, want=want).stdout.splitlines()

    def test_the_same(self):
        """All is there: ok. It reads only, with the token that was given."""
        doc = plan()
        doc["resource_definitions"][0]["driver_inputs"]["values"]["cluster"]["spec"] = {"region": 1}
        doc["resource_definitions"][0]["driver_inputs"]["values"]["nodepools"] = [{"name": "w"}]
        self.have(doc)
        lines = self.lines(0)
        self.assertEqual([line.split()[0] for line in lines], ["ok"] * 6)
        self.assertIn("ok       resource type acme/hyperfleet-cluster", lines)
        self.assertEqual({bearer for _, bearer in self.api.asked}, {"Bearer the-token"})

    def test_missing_and_different(self):
        """Each difference is named by its path, and never with the target, which may have a token.
        """
        self.assertEqual({line.split()[0] for line in self.lines(3)}, {"missing"})
        good = plan()

        def changed(change):
            doc = copy.deepcopy(good)
            change(doc)
            self.have(doc)
            bad = [line for line in self.lines(3) if not line.startswith("ok ")]
            self.assertEqual(len(bad), 1, bad)
            self.assertNotIn("hfd_secret", bad[0])
            return bad[0]
        for change, words in (
                (lambda d: d["resource_types"][0].update(use="indirect"),
                 "differs  resource type acme/hyperfleet-cluster: use"),
                (lambda d: d["drivers"][1].update(target="https://other/"),
                 "differs  driver hyperfleet-nodepool: target"),
                (lambda d: d["drivers"][0].update(account_types=["aws"]), ": account_types"),
                (lambda d: d["drivers"][0]["inputs_schema"]["properties"]["values"]["properties"]
                 .pop("nodepools"), ": inputs_schema.properties.values.properties.nodepools"),
                (lambda d: d["drivers"][0]["inputs_schema"]["properties"].update(x={}),
                 ": inputs_schema.properties.x"),
                (lambda d: d["resource_definitions"][1].update(driver_type="acme/other"),
                 "differs  resource definition hyperfleet-nodepool: driver_type"),
                (lambda d: d["resource_definitions"][0]["driver_inputs"]["values"]["cluster"]
                 ["labels"].pop("env"), ": driver_inputs.values.cluster.labels.env"),
                (lambda d: d["resource_definitions"][0].update(criteria=[]), ": criteria"),
                (lambda d: d["resource_definitions"][0]["criteria"][0].update({"class": "big"}),
                 "differs  resource definition hyperfleet-cluster: criteria")):
            self.assertIn(words, changed(change))

    def test_refused(self):
        """A bad token, another answer, an API that is away."""
        for status, words in ((401, "expected --token-file"), (403, "may read organisation acme")):
            self.api.status = status
            self.assertIn(words, register(*self.args, want=1).stderr)
        self.api.status = 500
        self.assertIn("answers 500", register(*self.args, want=1).stderr)
        away = ("--check", *FLAGS, "--token-file", self.args[-3], "--api-url", "http://127.0.0.1:9")
        self.assertIn("cannot be reached", register(*away, want=69).stderr)


if __name__ == "__main__":
    unittest.main()
