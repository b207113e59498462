"""The HyperShift adapter with a fake API server (fake_kube.py): the cases of hypershift.py, faults
of the server, and refusals at the door. The fake itself is compared with transcripts.
"""
import base64
import html
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

import yaml
from fake_kube import KINDS, PARTS, FakeKube
from hypershift import (KUBEVIRT_POOL, PULL_SECRET, SECONDS, Cases, HyperShiftCase,
                        branches)
from kube import HYPERSHIFT, Kube, Operator, condition
from lib import (COOKIE, ROOT, Client, Server, clean_env, eventually, guresid,
                 program)

CONFIG = """apiVersion: v1
kind: Config
current-context: test
clusters: [{name: c, cluster: {server: "%s"}}]
users: [{name: u, user: %s}]
contexts: [{name: test, context: {cluster: c, user: u}}]
"""


AWS = {"platform": {"type": "AWS", "aws": {"region": "x", "rolesRef": {}}}}


class Api(FakeKube):
    """The fake, and a kubeconfig for it."""

    def __init__(self):
        super().__init__()
        self.dir = tempfile.mkdtemp(prefix="hfd-fake-")
        self.kubeconfig = os.path.join(self.dir, "kubeconfig")
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(CONFIG % (self.url, json.dumps({"token": self.token})))

    def client(self):
        return Kube(self.url, self.token)

    def add_parts(self):
        """From now on the server has the kinds that HyperShift's operator makes."""
        self.parts = True

    def close(self):
        super().close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Fake(Cases, HyperShiftCase):
    make_api = Api


class Gates(HyperShiftCase):
    """The gate is the same on each way that shows an operation."""

    make_api = Api

    def page(self, path):
        """The text of a page of the ops listener."""
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.server.ops_port, path)) as f:
            text = f.read().decode()
        return html.unescape(re.sub(r"<[^>]+>", " ", text))

    def shown(self, id_, gate):
        """The 202's message is in the status query and on the pages."""
        def seen():
            """(message, status, pages) of one moment, or None."""
            message = self.until_says(id_, gate).json["message"]
            status = self.client.get("/clusters/%s/status?output=detail" % id_).json
            pages = [self.page("/r/" + id_), self.page("/")]
            if self.client.get("/" + id_).json.get("message") == message:
                return message, status, pages
            return None  # the parts report one after the other: look again
        message, status, pages = eventually(seen, "a message that stays", SECONDS)
        self.assertEqual(status["message"], message)
        for page in pages:
            self.assertIn(message, page)
        return status

    @staticmethod
    def objects(status):
        """{name: object} of the adapter in a status."""
        return {r["name"]: r for a in status["apps"] if a["name"] == "hypershift"
                for c in a["clusters"] for r in c["resources"]}

    def test_shown(self):
        """While a cluster is made, updated and deleted."""
        id_, pools = guresid("hs"), {"worker": {"replicas": 0}}
        self.operator.stop_at["gate1"] = "KubeAPIServerAvailable"
        self.put(id_, self.order("gate1", {}, pools))
        found = self.objects(self.shown(id_, "waits for KubeAPIServerAvailable"))["gate1"]
        self.assertIn("KubeAPIServerAvailable", found["waiting"])
        self.assertEqual(found["progress"], 40)  # that of EtcdAvailable
        self.operator.stop_at.clear()
        self.until(id_, 200, "ready")
        self.operator.stop_at["gate1"] = "Nodes"
        self.put(id_, self.order("gate1", {"release": {"image": "quay.io/ocp:4.21"}}, pools))
        self.shown(id_, "waits for Progressing")
        self.operator.stop_at.clear()
        self.until(id_, 200, "updated")
        self.operator.keep.add("gate1-worker")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.shown(id_, "waits for NodePool gate1-worker to be gone")
        self.operator.keep.clear()
        self.until(id_, 404, "deleted")

    def progress(self, name):
        """(percent, step) of the adapter's report on a cluster."""
        cluster = self.client.get("/api/hyperfleet/v1/clusters?search=name='%s'" % name)
        reports = self.client.get(cluster.json["items"][0]["href"] + "/statuses").json["items"]
        data = [r for r in reports if r["adapter"] == "hypershift"][0]["data"]
        return data["progress"], data["step"]

    def test_progress_never_falls(self):
        """A gate that closes again: the message names it, and the percent stays."""
        id_ = guresid("hs")
        self.operator.stop_at["gate2"] = "Available"
        self.put(id_, self.order("gate2"))
        self.until_says(id_, "waits for Available")
        # The message may be of a visit between two changes by the operator.
        eventually(lambda: self.progress("gate2") == (55, "GATE Available"), "at the gate", SECONDS)
        self.operator.stop_at["gate2"] = "EtcdAvailable"
        self.until_says(id_, "waits for EtcdAvailable")

        def step():
            percent, step = self.progress("gate2")
            self.assertEqual(percent, 55, step)
            return step
        eventually(lambda: step() == "GATE EtcdAvailable", "at EtcdAvailable", SECONDS)


class Faults(HyperShiftCase):
    make_api = Api

    def test_server_away(self):
        """Without the API server the answer stays 202 and says so; then the order is carried
        out."""
        self.api.down()
        id_ = guresid("hs")
        try:
            self.put(id_, self.order("away1"))
            self.until_says(id_, "KubernetesUnreachable")
        finally:
            self.api.up()
        self.until(id_, 200, "ready")

    def test_server_away_while_deleting(self):
        """A deletion is not done because no server answers."""
        id_, _ = self.ready("away2")
        self.api.down()
        try:
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            self.until_says(id_, "KubernetesUnreachable")
            self.assertEqual(self.get(id_).status, 202)
        finally:
            self.api.up()
        self.until(id_, 404, "deleted")

    def test_too_many_requests(self):
        """429 and its Retry-After are obeyed."""
        self.api.faults[HYPERSHIFT + "/namespaces/" + self.namespace] = (1, 429, 1)
        self.ready("many1")

    def test_cut_in_the_middle(self):
        """An answer that ends in the middle is asked for again."""
        self.api.faults[HYPERSHIFT + "/namespaces/" + self.namespace] = (1, 0, None)
        self.ready("cut1")

    def test_expired_watch(self):
        """A watch from too long ago begins anew."""
        self.ready("watch1")
        with self.api.store.lock:
            self.api.store.oldest = self.api.store.last + 1
        lists = len([r for r in self.api.requests if "limit=" in r[1]])
        try:
            self.api.down()
        finally:
            self.api.up()
        eventually(lambda: len([r for r in self.api.requests if "limit=" in r[1]]) >= lists + 2,
                   "listed again", SECONDS)
        self.api.store.oldest = 0
        self.ready("watch2")

    def test_forbidden(self):
        """403 is the adapter's fault, and said so; it heals."""
        self.api.faults[HYPERSHIFT + "/namespaces/" + self.namespace] = (-1, 403, None)
        id_ = guresid("hs")
        self.put(id_, self.order("forbid1"))
        self.until_says(id_, "Forbidden")
        self.api.faults.clear()
        self.until(id_, 200, "ready")

    def test_nothing_is_forced(self):
        """A field that another manager took is a conflict, and stays as it is."""
        id_, _ = self.ready("conf1")
        key = ("hostedclusters", self.namespace, "conf1")
        with self.api.store.lock:
            self.api.store.owners[key][("spec", "release", "image")] = "other"
            self.api.store.objects[key]["spec"]["release"]["image"] = "quay.io/other:1"
        self.put(id_, self.order("conf1", {"fips": True}))
        answer = self.until(id_, 400, "refused").json
        self.assertIn("ApplyConflict", answer["message"])
        self.assertIn("spec.release.image", answer["message"])
        self.assertFalse([r for r in self.api.requests if "force" in r[1]])


class Door(HyperShiftCase):
    """Refusals at PUT, before anything is made."""

    make_api = Api

    BAD = (
        ({"platfor": {"type": "None"}}, {}, "cluster.spec.platfor", "did you mean platform?"),
        ({"management": "east"}, {}, "cluster.spec.management",
         "expected the name of a management cluster, one of: default; got 'east'"),
        ({"platform": {"type": "Nonne"}}, {}, "cluster.spec.platform.type", ""),
        ({"platform": {"type": "AWS"}}, {}, "cluster.spec.platform.aws", "AWS"),
        ({"platform": {"type": "Agent"}}, {}, "cluster.spec.platform.agent", "Agent"),
        ({"platform": {"type": "KubeVirt"}}, {}, "cluster.spec.platform.kubevirt", "KubeVirt"),
        ({"platform": {"agent": {"agentNamespace": "a"}}}, {}, "cluster.spec.platform.agent",
         "None"),
        ({"dns": {"base_domain": "-bad-"}}, {}, "cluster.spec.dns.base_domain", ""),
        ({"networking": {"cluster_network": [{"cidr": "10.132.0.0/99"}]}}, {},
         "cluster.spec.networking.cluster_network[0]", "network"),
        ({"networking": {"clusterNetwork": [{"cidr": "10.0.0.0/8"}],
                         "serviceNetwork": [{"cidr": "10.1.0.0/16"}]}}, {},
         "cluster.spec.networking.serviceNetwork[0]", "overlap"),
        ({"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}},
          "dns": {"base_domain": "example.com"}}, {}, "cluster.spec.dns.base_domain",
         "baseDomainPassthrough"),
        ({"raw": {"hosted_cluster": {"metadata": {"name": "other"}}}}, {},
         "cluster.spec.raw.hosted_cluster.metadata.name", ""),
        ({"raw": {"hosted_cluster": {"metadata": {"labels": {"humanitec_guresid": "x"}}}}}, {},
         "cluster.spec.raw.hosted_cluster.metadata.labels.humanitec_guresid", ""),
        ({}, {"worker": {}}, "nodepools[0].spec", "neither"),
        ({}, {"worker": {"replicas": 1, "auto_scaling": {"min": 1, "max": 2}}},
         "nodepools[0].spec", "both"),
        ({}, {"worker": {"auto_scaling": {"min": 3, "max": 2}}},
         "nodepools[0].spec.auto_scaling.max", "min"),
        ({}, {"worker": {"auto_scaling": {"min": 0, "max": 2}}},
         "nodepools[0].spec.auto_scaling.min", "AWS"),
        ({}, {"worker": {"replicas": -1}}, "nodepools[0].spec.replicas", ""),
        ({}, {"worker": {"replicas": 1, "platform": {"type": "AWS"}}},
         "nodepools[0].spec.platform.type", "None"),
        ({"platform": {"type": "KubeVirt", "kubevirt": {}}}, {"worker": {"replicas": 1}},
         "nodepools[0].spec.platform.kubevirt", "KubeVirt"),
        ({"platform": {"type": "Agent", "agent": {"agentNamespace": "a"}}},
         {"worker": {"replicas": 1, "platform": {"type": "Agent"}}},
         "nodepools[0].spec.platform.agent", "Agent"),
        ({}, {"worker": {"replicas": 1, "arch": "s390x"}}, "nodepools[0].spec.arch", "KubeVirt"),
        ({"services": [{"service": "APIServer",
                        "servicePublishingStrategy": {"type": "LoadBalancer"}}] * 5}, {},
         "cluster.spec.services[1].service", "once"),
        ({"services": [{"service": s, "servicePublishingStrategy": {
            "type": "NodePort", "nodePort": {"address": "h", "port": 80}}}
            for s in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")]}, {},
         "cluster.spec.services[0].servicePublishingStrategy.nodePort.port", "30000"),
    )

    def test_bad_specs(self):
        """Each bad spec is 400 RES-101 that names the field as the order has it."""
        for spec, pools, field, words in self.BAD:
            with self.subTest(field=field, words=words):
                answer = self.put(guresid("hs"), self.order("door1", spec, pools), 400).json
                self.assertEqual(answer["error"], "RES-101")
                self.assertIn("driver.values." + field + ":", answer["message"])
                self.assertIn(words, answer["message"])

    def test_long_name(self):
        """<namespace>-<name> over 63 characters."""
        answer = self.put(guresid("hs"), self.order("n" * 53), 400).json
        self.assertIn("driver.values.cluster.name:", answer["message"])
        self.assertIn("63", answer["message"])

    def test_pull_secret(self):
        """The order's secret, as text or object; without one and without the setting, 400."""
        for bad in ({}, {"pull_secret": "no JSON"}, {"pull_secret": "{}"}, {"pull_secret": 7}):
            answer = self.put(guresid("hs"), self.order("ps1", secrets=bad), 400).json
            self.assertIn("driver.secrets.pull_secret:", answer["message"])
        self.put(guresid("hs"), self.order("ps2", secrets={"pull_secret": json.loads(PULL_SECRET),
                                                          "ssh_key": "ssh-rsa AAAA"}))
        self.until_object("secrets", "ps2-ssh-key")
        cluster = self.until_object("hostedclusters", "ps2")
        self.assertEqual(cluster["spec"]["sshKey"], {"name": "ps2-ssh-key"})

    def test_new_pull_secret(self):
        """Another pull secret in the same order reaches the Secret, although no spec changed."""
        id_, _ = self.ready("rotate1")
        other = '{"auths":{"other.example":{"auth":"bmV3"}}}'
        self.put(id_, self.order("rotate1", secrets={"pull_secret": other}), 200)

        def is_there():
            data = self.object("secrets", "rotate1-pull-secret")["data"][".dockerconfigjson"]
            return base64.b64decode(data).decode() == other
        eventually(is_there, "the new secret", SECONDS)

    def test_fixed_fields(self):
        """The platform's type and the namespace cannot change: RES-106."""
        id_, _ = self.ready("fixed1")
        for spec in ({"platform": {"type": "KubeVirt", "kubevirt": {}}}, {"namespace": "other"}):
            self.assertEqual(self.put(id_, self.order("fixed1", spec), 400).json["error"],
                             "RES-106")

    def test_trace(self):
        """The order's traceparent goes to the management cluster; other requests have none."""
        trace = "00-%032x-00f067aa0ba902b7-01" % random.getrandbits(127)
        id_ = guresid("hs")
        answer = self.client.put("/clusters/" + id_, self.order("traced1"), {"traceparent": trace})
        self.assertEqual(answer.status, 202, answer)
        self.until(id_, 200, "ready")
        found = {t for path, t in self.api.traces if path.split("?")[0].endswith("/traced1")}
        self.assertEqual(found, {trace})
        self.assertEqual({path for path, t in self.api.traces if t == trace
                          and "traced1" not in path and "/namespaces/" not in path}, set())

    def test_k8s_cluster_type(self):
        """k8s-cluster needs no configured outputs while the adapter is on."""
        self.start("--driver-types-cluster", "k8s-cluster")
        self.addCleanup(self.stop)
        id_ = guresid("hs")
        self.put(id_, dict(self.order("k8s1"), type="k8s-cluster"))
        answer = self.until(id_, 200, "ready").json["resource"]
        self.assertEqual(answer["values"]["cluster_type"], "k8s")

    def test_start_refuses(self):
        """A kubeconfig that cannot be used as it asks stops the start, with the words why."""
        path = os.path.join(self.api.dir, "bad")
        for user, words in (('{exec: {command: aws, args: [--region, x], env: null}}',
                             ": exec: this driver runs no credential plugins"),
                            ('{username: a, password: b}', "passwords")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(CONFIG % (self.api.url, user))
            server = Server("--hypershift-kubeconfig", path)
            try:
                with self.assertRaises(AssertionError) as raised:
                    server.start()
                self.assertIn(words, str(raised.exception))
                self.assertIn("--hypershift-kubeconfig: ", str(raised.exception))
            finally:
                server.close()


class Files(HyperShiftCase):
    """Files of the settings that are replaced while the server runs."""

    make_api = Api

    def replace(self, path, text):
        """Replaces a file at once, as a mounted Secret is."""
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def kubeconfig(self, user, url=None):
        self.replace(self.api.kubeconfig, CONFIG % (url or self.api.url, json.dumps(user)))

    def logged(self, text):
        return [r for r in self.server.records() if text in r.get("msg", "")]

    def hangup(self):
        self.server.proc.send_signal(signal.SIGHUP)

    def test_token_in_the_kubeconfig(self):
        """A token that is renewed: no restart, no signal."""
        self.start()
        self.ready("file1")
        self.api.token = "token-b"
        self.kube.close()
        type(self).kube = self.api.client()
        self.move(self.namespace + "b")
        id_ = guresid("hs")
        self.put(id_, self.order("file2"))
        self.until_says(id_, "Unauthorized")
        self.kubeconfig({"token": "token-b"})
        self.until(id_, 200, "ready")

    def test_unusable_kubeconfig(self):
        """It is logged once, and what was read before stays in use; SIGHUP says it again."""
        self.start()
        for at, text in enumerate(("clusters: [", "{}", "")):
            self.replace(self.api.kubeconfig, text)
            eventually(lambda n=at + 1: len(self.logged("cannot use a changed file")) == n,
                       "a line in the log", SECONDS)
            self.ready("unus%d" % at)
        os.unlink(self.api.kubeconfig)
        eventually(lambda: len(self.logged("cannot use a changed file")) == 4, "a line", SECONDS)
        self.hangup()
        eventually(lambda: len(self.logged("cannot use a changed file")) == 5, "a line", SECONDS)
        self.ready("unusgone")
        self.assertEqual(len(self.logged("cannot use a changed file")), 5)
        self.kubeconfig({"token": self.api.token})
        eventually(lambda: self.logged("kubeconfig read again"), "read again", SECONDS)

    def test_another_server(self):
        """A new URL in the kubeconfig: calls and watches go there."""
        self.start()
        other = Api()
        try:
            other.token = self.api.token
            self.kubeconfig({"token": other.token}, other.url)
            eventually(lambda: len([r for r in other.requests if "watch=1" in r[1]]) >= 2,
                       "watches", SECONDS)
            self.hangup()
        finally:
            self.kubeconfig({"token": self.api.token})
            other.close()

    def test_pull_secret(self):
        """The default's pull secret."""
        path = os.path.join(self.api.dir, "pull-secret")
        self.replace(path, PULL_SECRET)
        self.start("--hypershift-pull-secret-file", path)
        self.addCleanup(self.stop)
        other = '{"auths":{"other.example":{"auth":"bmV3"}}}'
        for at, (text, want) in enumerate((("{}", PULL_SECRET), ("", PULL_SECRET),
                                           (other, other))):
            logged = len(self.logged("cannot use a changed file"))
            self.replace(path, text)
            if text is not other:
                eventually(lambda n=logged + 1: len(self.logged("cannot use a changed file")) == n,
                           "a line in the log", SECONDS)
            name = "pull%d" % at
            self.put(guresid("hs"), self.order(name, secrets={}))
            data = self.until_object("secrets", name + "-pull-secret")["data"]
            self.assertEqual(base64.b64decode(data[".dockerconfigjson"]).decode(), want)

    def test_files_that_need_a_restart(self):
        """SIGHUP says that they have changed, once for each change."""
        config = os.path.join(self.api.dir, "config.yaml")
        schema = os.path.join(self.api.dir, "schema.yaml")
        text = "components: {schemas: {ClusterSpec: {type: object}, NodePoolSpec: {type: object}}}"
        self.replace(config, "log.level: info\n")
        self.replace(schema, text)
        self.start("--config", config, "--fleet-spec-schema", schema)
        self.addCleanup(self.stop)
        self.replace(schema, text + "\n")
        self.hangup()
        eventually(lambda: self.logged("read at a restart only"), "a line in the log", SECONDS)
        self.replace(config, "log.level: debug\n")
        self.hangup()
        eventually(lambda: len(self.logged("read at a restart only")) == 2, "a line", SECONDS)
        self.assertEqual([r["setting"] for r in self.logged("read at a restart only")],
                         ["fleet.spec_schema", "config"])


class Rights(HyperShiftCase):
    make_api = Api

    def used(self):
        """{(resource, verb)} of all requests of the program."""
        found = set()
        for method, path in self.api.requests:
            url = urllib.parse.urlsplit(path)
            m = re.search(r"/(%s)(?:/([^/]+))?$" % "|".join([*KINDS, *PARTS]), url.path)
            verbs = {"PATCH": ("patch", "create"), "DELETE": ("delete",)}.get(method, (
                "watch" if "watch=1" in url.query else "get" if m[2] else "list",))
            found |= {(m[1], verb) for verb in verbs}
        return found

    def test_rights_of_the_manual_are_all_used(self):
        """A whole life uses each right that the manual asks for, and no other."""
        page = os.path.join(ROOT, "handlers", "docs", "hypershift.md")
        with open(page, encoding="utf-8") as f:
            text = re.search(r"^```text\n(apiVersion: rbac.*?)^```$", f.read(), re.M | re.S)[1]
        listed = {(resource, verb) for rule in yaml.safe_load(text)["rules"]
                  for resource in rule["resources"] for verb in rule["verbs"]}
        self.api.add_parts()
        id_, _ = self.ready("rights1", pools={"worker": {"replicas": 0}})
        eventually(lambda: {u for u in listed if u[1] != "delete"} <= self.used(),
                   "lists and watches", SECONDS)
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")
        self.assertEqual(self.used(), listed)


class Tree(HyperShiftCase):
    """The tree by owner references in the detail: bounded, read only, and nothing depends on it.
    test_tree of hypershift.py has what it shows."""

    make_api = Api

    def setUp(self):
        super().setUp()
        self.api.parts, self.api.capi = True, "v1beta1"
        self.api.faults.clear()
        self.start()  # what cannot be listed is asked for again after minutes

    def tree(self, name, machines=None, is_whole=None):
        """The tree of a cluster that is ready, once it is whole. It is read when the last gate
        opens, and all parts are made before. Without `machines` the operator made nothing."""
        id_ = guresid("hs")
        self.operator.stop_at[name] = "Available"  # the platform None does not wait for nodes
        self.put(id_, self.order(name, pools={"work": {"replicas": 0}}))
        self.until_object("nodepools", name + "-work")
        if machines is not None:
            self.make_parts(name, name + "-work", machines, self.api.capi)
        self.operator.stop_at.clear()
        self.until(id_, 200, "ready")

        def found():
            tree = self.entries(id_)[name]["detail"].get("tree")
            return (tree,) if is_whole is None or tree and is_whole(tree) else None
        return eventually(found, "a whole tree", SECONDS)[0]

    def test_without_rights(self):
        """Kinds that may not be listed are named, with the API server's words; the others are
        shown. They are not asked for with each visit."""
        self.api.faults["/apis/cluster.x-k8s.io/"] = (1000, 403, None)
        del self.api.requests[:]
        tree = self.tree("tree2", 1, lambda tree: len(tree.get("not_shown", ())) == 4 and "tree2" in
                         [n["name"] for n in tree["owned"] if n["GVK"]["Kind"] != "NodePool"])
        self.assertEqual([n["kind"] for n in tree["not_shown"]],
                         ["Cluster", "MachineDeployment", "MachineSet", "Machine"])
        self.assertEqual({(n["reason"], n["message"]) for n in tree["not_shown"]},
                         {("Forbidden", "a fault of the test")})
        self.assertEqual([n["name"] for n in tree["owned"] if n["GVK"]["Kind"] != "NodePool"],
                         ["tree2"])  # the HostedControlPlane
        asked = [p for _, p in self.api.requests if p.startswith("/apis/cluster.x-k8s.io/")]
        self.assertEqual(len(asked), 4)

    def test_without_kinds(self):
        """An API server without these kinds."""
        self.api.parts = False
        tree = self.tree("tree3", None, lambda tree: len(tree.get("not_shown", ())) == 5)
        self.assertEqual([n["kind"] for n in tree["not_shown"]], [
            "Cluster", "HostedControlPlane", "MachineDeployment", "MachineSet", "Machine"])
        self.assertEqual({n["reason"] for n in tree["not_shown"]}, {"CRDMissing"})

    def test_newer_kinds(self):
        """An API server that has the newer version of the Cluster API alone."""
        self.api.capi = "v1beta2"
        tree = self.tree("tree4", 1, lambda tree: "Cluster" in
                         [n["GVK"]["Kind"] for n in tree.get("owned", ())])
        self.assertNotIn("not_shown", tree)
        self.assertIn("Cluster", [n["GVK"]["Kind"] for n in tree["owned"]])

    def test_bounds(self):
        """A tree has at most 50 objects; the others are counted."""
        tree = self.tree("tree5", 60, lambda tree: tree.get("left_off", 0) >= 60 + 6 - 50)
        shown = len(branches({"detail": {"tree": tree}}))
        self.assertEqual(shown, 50)
        self.assertLess(len(json.dumps(tree)), 48 << 10)

    def test_does_not_answer(self):
        """Lists that fail: no tree, and the order ends in 200 all the same."""
        self.api.faults["/apis/cluster.x-k8s.io/"] = (1000, 500, None)
        self.assertIsNone(self.tree("tree6", 1))

    def test_read_only(self):
        """Nothing of it is ever written, and only lists are asked for."""
        del self.api.requests[:]
        self.tree("tree7", 1)
        parts = [(m, p) for m, p in self.api.requests
                 if re.search("/(%s)\\b" % "|".join(PARTS), urllib.parse.urlsplit(p).path)]
        self.assertTrue(parts)
        for method, path in parts:
            self.assertEqual(method, "GET")
            self.assertRegex(path, r"/namespaces/%s-tree7/[a-z]+\?limit=" % self.namespace)


class Conditions(HyperShiftCase):
    make_api = Api

    def test_old_conditions_do_not_count(self):
        """A condition of an earlier generation of the object opens no gate."""
        id_ = guresid("hs")
        self.put(id_, self.order("old1"))
        self.until(id_, 200, "ready")
        self.operator.frozen.add("old1")
        self.put(id_, self.order("old1", {"fips": True}))
        self.until_says(id_, "has not seen the last change")
        self.operator.frozen.clear()
        self.until(id_, 200, "ready again")

    def test_replicas_zero(self):
        """`replicas: 0` on a platform with machines is done without them."""
        spec = {"platform": {"type": "KubeVirt", "kubevirt": {}}}
        self.ready("zero1", spec, {"worker": {"replicas": 0, "platform": KUBEVIRT_POOL}})

    def test_unknown_condition(self):
        """A condition of an unknown type is shown in the report's data, and changes nothing."""
        id_, _ = self.ready("new1")
        cluster = self.get(id_).json["resource"]["values"]["cluster_id"]
        reports = self.client.get("/api/hyperfleet/v1/clusters/%s/statuses" % cluster).json["items"]
        data = [r for r in reports if r["adapter"] == "hypershift"][0]["data"]
        types = [c["type"] for c in data["objects"][0]["detail"]["conditions"]]
        self.assertIn("SomethingNew", types)
        self.assertEqual(data["objects"][0]["GVK"]["Kind"], "HostedCluster")

    def test_cluster_of_the_other_api(self):
        """A cluster that HyperFleet's own API made: its spec is checked by the validation adapter,
        and a good one is made without an order."""
        made = self.client.post("/api/hyperfleet/v1/clusters", {
            "kind": "Cluster", "name": "api1", "spec": {"platfor": {}}})
        self.assertEqual(made.status, 201, made)

        def refused():
            reports = self.client.get(made.json["href"] + "/statuses").json["items"]
            return [c for r in reports if r["adapter"] == "validation" for c in r["conditions"]
                    if c["type"] == "Available" and c["status"] == "False"]
        found = eventually(refused, "refused", SECONDS)[0]
        self.assertEqual(found["reason"], "InvalidSpec")
        self.assertIn("cluster.spec.platfor: no such input; did you mean platform?",
                      found["message"])
        self.assertIsNone(self.object("hostedclusters", "api1"))

    def test_refused_field_as_ordered(self):
        """A refusal of the API server names the field as the order has it."""
        id_, _ = self.ready("field1")
        self.put(id_, self.order("field1", {"availability": "SingleReplica"}))
        self.assertIn("availability: spec.controllerAvailabilityPolicy",
                      self.until(id_, 400, "refused").json["message"])

    def test_update_without_nodes(self):
        """Where no node is wanted the rollout stays Partial: an update is done without."""
        kubevirt = {"platform": {"type": "KubeVirt", "kubevirt": {}}}
        for name, spec, pools in (
                ("part1", {}, {}),
                ("part2", kubevirt, {"work": {"replicas": 0, "platform": KUBEVIRT_POOL}}),
                ("part3", AWS, {"work": {"auto_scaling": {"min": 0, "max": 3}, "platform": {
                    "aws": {"instanceType": "m5.large"}}}})):
            with self.subTest(name=name):
                self.operator.partial.add(name)
                id_, _ = self.ready(name, spec, pools)
                self.put(id_, self.order(name, dict(spec, release={"image": "quay.io/x:2"}), pools))
                self.until(id_, 200, "updated")
                self.assertEqual(self.object("hostedclusters", name)["spec"]["release"]["image"],
                                 "quay.io/x:2")

    def test_invalid_configuration(self):
        """ValidConfiguration=False is refused when it stays so, in HyperShift's words."""
        id_ = guresid("hs")
        self.operator.broken["inv1"] = {"ValidConfiguration": condition(
            "ValidConfiguration", "False", "InvalidConfiguration", "networks overlap")}
        self.put(id_, self.order("inv1"))
        self.assertIn("networks overlap", self.until(id_, 400, "refused").json["message"])


class Grace(HyperShiftCase):
    """Conditions that refuse, and pass."""

    make_api = Api
    GRACE = "1h"
    SPEC = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}
    POOLS = {"work": {"replicas": 1, "platform": KUBEVIRT_POOL}}
    WORDS = "expected 3 core ignition configs, found 0"

    def report(self, name, adapter="hypershift"):
        """The report of an adapter on a cluster."""
        cluster = self.client.get("/api/hyperfleet/v1/clusters?search=name='%s'" % name)
        reports = self.client.get(cluster.json["items"][0]["href"] + "/statuses").json["items"]
        return next((r for r in reports if r["adapter"] == adapter), {"data": {}})

    def since(self, name):
        """{type: time}: the conditions that are given time."""
        return self.report(name)["data"].get("refusals", {}).get("since", {})

    def refuse(self, name, kind):
        self.operator.broken[name] = {kind: condition(kind, "False", "ValidationFailed",
                                                      self.WORDS)}

    def test_creation(self):
        """202 with the words while it is False, then 200."""
        id_ = guresid("hs")
        self.refuse("grace1-work", "ValidMachineConfig")
        self.put(id_, self.order("grace1", self.SPEC, self.POOLS))
        message = self.until_says(id_, self.WORDS).json["message"]
        self.assertIn("waits for ValidMachineConfig, which is given time until ", message)
        self.operator.broken.clear()
        self.until(id_, 200, "ready")

    def test_update(self):
        """An update goes on; what serves is not degraded."""
        id_, _ = self.ready("grace2", self.SPEC, self.POOLS)
        self.refuse("grace2", "ValidReleaseImage")
        self.put(id_, self.order("grace2", dict(self.SPEC, release={"image": "quay.io/x:2"}),
                                 self.POOLS))
        self.until_says(id_, "waits for ValidReleaseImage, which is given time until ")
        self.operator.broken.clear()
        self.until(id_, 200, "updated")

    def test_ready(self):
        """A cluster that is ready stays so, and Healthy."""
        id_, _ = self.ready("grace3", self.SPEC)
        self.refuse("grace3", "PlatformCredentialsFound")
        self.assertEqual(list(eventually(lambda: self.since("grace3"), "it is seen", SECONDS)),
                         ["PlatformCredentialsFound"])
        answer = self.get(id_)
        self.assertEqual((answer.status, answer.json["resource"]["values"]["health"]),
                         (200, "Healthy"))
        found = {c["type"]: c["status"] for c in self.report("grace3", "validation")["conditions"]}
        self.assertEqual(found["Available"], "True")
        self.operator.broken.clear()
        eventually(lambda: not self.since("grace3"), "it has passed", SECONDS)
        self.assertEqual(self.get(id_).status, 200)

    def test_kept(self):
        """The time is kept over kill -9, each condition has its own, and another generation begins
        anew."""
        id_ = guresid("hs")
        self.refuse("grace4", "ValidReleaseImage")
        self.put(id_, self.order("grace4"))
        first = eventually(lambda: self.since("grace4"), "it is seen", SECONDS)
        self.server.restart()
        self.operator.broken["grace4"]["ValidConfiguration"] = condition(
            "ValidConfiguration", "False", "InvalidConfiguration", "networks overlap")
        both = eventually(lambda: len(self.since("grace4")) == 2 and self.since("grace4"),
                          "the second one", SECONDS)
        self.assertEqual(both["ValidReleaseImage"], first["ValidReleaseImage"])
        self.assertGreater(both["ValidConfiguration"], first["ValidReleaseImage"])
        del self.operator.broken["grace4"]["ValidReleaseImage"]
        eventually(lambda: list(self.since("grace4")) == ["ValidConfiguration"], "one", SECONDS)
        self.assertEqual(self.since("grace4")["ValidConfiguration"], both["ValidConfiguration"])
        self.operator.broken.clear()
        self.until(id_, 200, "ready")
        self.refuse("grace4", "ValidReleaseImage")
        third = eventually(lambda: self.since("grace4"), "it is seen again", SECONDS)
        self.assertGreater(third["ValidReleaseImage"], both["ValidConfiguration"])
        self.put(id_, self.order("grace4", {"fips": True}))
        eventually(lambda: self.since("grace4").get("ValidReleaseImage", "")
                   > third["ValidReleaseImage"], "another generation", SECONDS)
        self.operator.broken.clear()
        self.until(id_, 200, "ready")


class Nodepools(HyperShiftCase):
    """A nodepool resource is checked by the platform of its cluster, wherever it is checked."""

    make_api = Api

    def pool(self, cluster, spec):
        return {"type": "hyperfleet-nodepool", "driver": {"values": {
            "cluster_id": cluster, "nodepool": {"name": "work", "spec": spec}}}}

    def test_same_check(self):
        """PUT, /validate and the visit say the same; what is accepted becomes ready."""
        range_ = {"auto_scaling": {"min": 0, "max": 3}}
        aws = dict(range_, platform={"aws": {"instanceType": "m5.large"}})
        kubevirt = dict(range_, platform=KUBEVIRT_POOL)
        for name, cluster_spec, good, bad in (
                ("aws1", AWS, aws, (
                    (dict(aws, arch="s390x"), "spec.arch: "),
                    (kubevirt, "spec.platform.kubevirt: "))),
                ("kv2", {"platform": {"type": "KubeVirt", "kubevirt": {}}},
                 {"replicas": 0, "platform": KUBEVIRT_POOL},
                 ((kubevirt, "spec.auto_scaling.min: "),
                  ({"replicas": 0}, "spec.platform.kubevirt: ")))):
            cluster = self.get(self.ready(name, cluster_spec)[0]).json
            cluster = cluster["resource"]["values"]["cluster_id"]
            for spec, words in bad:
                with self.subTest(name=name, words=words):
                    order = self.pool(cluster, spec)
                    id_ = guresid("hs")
                    refused = self.client.put("/nodepools/" + id_, order)
                    self.assertEqual((refused.status, refused.json["error"]), (400, "RES-101"))
                    self.assertIn("driver.values.nodepool." + words, refused.json["message"])
                    checked = self.client.post("/validate", order)
                    self.assertEqual(checked.status, 400, checked)
                    self.assertIn(refused.json["message"].split(" (resource")[0],
                                  checked.json["message"])
                    made = self.client.post(
                        "/api/hyperfleet/v1/clusters/%s/nodepools" % cluster,
                        {"kind": "NodePool", "name": "other", "spec": spec})
                    self.assertEqual(made.status, 201, made)
                    self.assertIn(words, self.refusal(made.json["href"]))
                    self.client.delete(made.json["href"])
                    eventually(lambda h=made.json["href"]: self.client.get(h).status == 404,
                               "gone", SECONDS)
            id_ = guresid("hs")
            self.assertEqual(self.client.put("/nodepools/" + id_, self.pool(cluster, good)).status,
                             202)
            eventually(lambda i=id_: self.client.get("/nodepools/" + i).status == 200, "ready",
                       SECONDS)

    def refusal(self, href):
        """The message of the validation adapter's report."""
        def refused():
            reports = self.client.get(href + "/statuses").json["items"]
            return [c["message"] for r in reports if r["adapter"] == "validation"
                    for c in r["conditions"]
                    if c["type"] == "Available" and c["status"] == "False"]
        return eventually(refused, "refused", SECONDS)[0]


class Orphans(HyperShiftCase):
    """Objects of ours that no resource has."""

    make_api = Api

    def orphans(self, id_):
        ops = Client(self.server, ops=True)
        try:
            items = ops.get("/admin/orphans").json["items"]
        finally:
            ops.close()
        return [o for o in items if o["guresid"] == id_]

    def test_listed_and_left_alone(self):
        """They are in the list of orphans, on the status page and in `doctor`. Nothing removes
        them by itself. An order of their GUResID takes them over."""
        id_, body = self.ready("orph1", pools={"worker": {"replicas": 0}})
        cluster_id = self.get(id_).json["resource"]["values"]["cluster_id"]
        self.assertEqual(self.orphans(id_), [])
        self.start()
        # Each kind has a list of its own.
        found = eventually(lambda: len(self.orphans(id_)) >= 2 and self.orphans(id_), "orphans",
                           SECONDS)
        self.assertEqual([(o["kind"], o["name"]) for o in found],
                         [("Cluster", "orph1"), ("NodePool", "orph1-worker")])
        self.assertEqual(found[0]["id"], cluster_id)
        self.assertEqual(found[0]["generation"], 1)
        self.assertEqual(found[0]["message"], "HostedCluster %s/orph1 on the management cluster "
                         "default" % self.namespace)
        ops = Client(self.server, ops=True)
        self.assertIn("orphan", ops.get("/", {"Accept": "text/html"}).body.decode())
        self.assertEqual(ops.delete("/admin/orphans/" + cluster_id).status, 404)
        ops.close()
        flags = self.server.place.flags()
        if self.server.place.base:  # doctor reads the rows, and the server alone knows these
            flags = ["--ops-url", "http://127.0.0.1:%d" % self.server.ops_port]
        said = subprocess.run([program(), "doctor", *flags], text=True,
                              env=clean_env(), capture_output=True, check=False)
        self.assertIn("HostedCluster %s/orph1" % self.namespace, said.stdout)
        self.assertIsNotNone(self.object("hostedclusters", "orph1"))
        self.put(id_, body)
        self.until(id_, 200, "taken over")
        eventually(lambda: self.orphans(id_) == [], "no orphans", SECONDS)


class SecretsAlone(Orphans):
    """Secrets of ours whose HostedCluster and NodePools are gone, with hypershift.list_secrets."""

    FLAGS = ("--hypershift-list-secrets",)

    def alone(self, name, *more):
        """Leaves Secrets alone: the database is lost, and the rest was removed by hand. Gives the
        id, the order and the headers with the cookie."""
        self.start(*more)
        id_, body = self.ready(name, pools={"worker": {"replicas": 0}})
        headers = {COOKIE: self.put(id_, body, 200).cookie}
        self.stop()
        for plural, obj in (("nodepools", name + "-worker"), ("hostedclusters", name)):
            self.kube.request("DELETE", self.path(plural, obj))
            self.until_gone(plural, obj)
        self.assertIsNotNone(self.object("secrets", name + "-pull-secret"))
        self.start(*more)
        return id_, body, headers

    def test_secrets_are_orphans(self):
        """They are in the list of orphans, until an order takes them over."""
        id_, body, _ = self.alone("alone1")
        found = eventually(lambda: self.orphans(id_), "orphans", SECONDS)
        self.assertEqual([o["name"] for o in found], ["alone1-pull-secret"])
        self.assertEqual(found[0]["message"], "Secret %s/alone1-pull-secret on the management "
                         "cluster default" % self.namespace)
        self.put(id_, body)
        self.until(id_, 200, "taken over")
        eventually(lambda: self.orphans(id_) == [], "no orphans", SECONDS)

    def test_deletion_with_the_cookie(self):
        """A DELETE with the cookie removes them before its 204."""
        with tempfile.TemporaryDirectory() as folder:
            id_, _, headers = self.alone("alone2", "--keys", os.path.join(folder, "keys"))
            self.assertEqual(self.client.delete("/clusters/" + id_, headers).status, 202)
            self.until(id_, 404, "deleted")
            self.assertIsNone(self.object("secrets", "alone2-pull-secret"))
            self.assertEqual(self.client.delete("/clusters/" + id_, headers).status, 204)
        self.start()

    def test_without_the_right(self):
        """Without the right the others are listed, and a warning says so, once."""
        self.api.faults["/api/v1/secrets"] = (1000, 403, None)
        self.start()
        id_, _ = self.ready("alone3")
        self.start()
        found = eventually(lambda: self.orphans(id_), "orphans", SECONDS)
        self.assertEqual([o["name"] for o in found], ["alone3"])
        said = lambda: [r for r in self.server.records()
                        if r["msg"] == "HyperShift adapter: Secrets cannot be listed"]
        eventually(said, "the warning", SECONDS)
        self.api.faults.clear()
        self.assertEqual(len(said()), 1)

    def test_only_metadata_is_asked_for(self):
        """The list has our label, and no content of a Secret is read by it."""
        del self.api.lists[:]
        self.alone("alone4")
        eventually(lambda: self.api.lists, "a list", SECONDS)
        for path, accept in self.api.lists:
            self.assertIn("managed-by%3Dhypershift", path)
            self.assertIn("PartialObjectMetadata", accept)


class Several(HyperShiftCase):
    """Two management clusters: the default, and east."""

    make_api = Api

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.east = Api()
        cls.east_kube = cls.east.client()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.east_kube.close()
        cls.east.close()

    def setUp(self):
        super().setUp()
        self.east_operator = Operator(self.east.client(), self.namespace)

    def tearDown(self):
        self.east_operator.close()
        super().tearDown()
        self.assertEqual(self.east_operator.errors, [])

    @classmethod
    def flags(cls):
        return super().flags() + ("--hypershift-management-east-kubeconfig", cls.east.kubeconfig)

    def at_east(self, plural, name):
        return self.east_kube.get(self.path(plural, name))

    def test_chosen(self):
        """spec.management chooses; without it, and with `default`, it is hypershift.kubeconfig's.
        The nodepools follow their cluster."""
        pools = {"worker": {"replicas": 0}}
        east, _ = self.ready("ceast", {"management": "east"}, pools)
        home, _ = self.ready("chome", {}, pools)
        named, _ = self.ready("cnamed", {"management": "default"})
        for name, at_east in (("ceast", True), ("chome", False), ("cnamed", False)):
            self.assertEqual(self.at_east("hostedclusters", name) is not None, at_east, name)
            self.assertEqual(self.object("hostedclusters", name) is not None, not at_east, name)
        self.assertIsNotNone(self.at_east("nodepools", "ceast-worker"))
        self.assertIsNotNone(self.at_east("secrets", "ceast-pull-secret"))
        self.assertIsNone(self.object("nodepools", "ceast-worker"))
        self.assertIsNone(self.at_east("nodepools", "chome-worker"))
        self.assertEqual(self.get(east).json["resource"]["values"]["endpoint"],
                         "https://api.ceast.example.com:6443")
        for id_ in (east, home, named):
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            self.until(id_, 404, "deleted")
        self.assertIsNone(self.at_east("hostedclusters", "ceast"))
        self.assertIsNone(self.at_east("nodepools", "ceast-worker"))
        self.assertIsNone(self.at_east("secrets", "ceast-pull-secret"))

    def test_lost_at_east(self):
        """The DELETE of a lost resource looks at all management clusters."""
        keys = ("--keys", os.path.join(self.east.dir, "keys"))
        self.start(*keys)
        id_, body = self.ready("least", {"management": "east"}, {"worker": {"replicas": 0}})
        headers = {COOKIE: self.put(id_, body, 200).cookie}
        self.start(*keys)
        self.assertEqual(self.client.delete("/clusters/" + id_, headers).status, 202)
        self.until(id_, 404, "deleted")
        for plural, name in (("hostedclusters", "least"), ("nodepools", "least-worker"),
                             ("secrets", "least-pull-secret")):
            self.assertIsNone(self.at_east(plural, name))
        self.start()

    def test_unknown(self):
        """A name that the settings do not have is 400 RES-101, with those that they have."""
        for name in ("west", "East", "eas"):
            answer = self.put(guresid("hs"), self.order("unkn", {"management": name}), 400).json
            self.assertEqual(answer["error"], "RES-101")
            self.assertIn("driver.values.cluster.spec.management: expected the name of a "
                          "management cluster, one of: default, east", answer["message"])

    def test_fixed(self):
        """The management cluster of a living cluster cannot change: RES-106."""
        id_, body = self.ready("fixed2", {"management": "east"})
        for spec in ({}, {"management": "default"}):
            answer = self.put(id_, self.order("fixed2", spec), 400).json
            self.assertEqual(answer["error"], "RES-106")
            self.assertIn("driver.values.cluster.spec.management: it cannot change from 'east' to "
                          "'default'", answer["message"])
        self.put(id_, body, 200)
        home, _ = self.ready("fixed3")
        self.put(home, self.order("fixed3", {"management": "default"}))  # the same cluster
        self.until(home, 200, "ready")
        self.assertEqual(self.put(home, self.order("fixed3", {"management": "east"}), 400)
                         .json["error"], "RES-106")

    def test_one_is_down(self):
        """While one management cluster is down, its orders say so, and the others' go on."""
        self.east.down()
        try:
            east = guresid("hs")
            self.put(east, self.order("downe", {"management": "east"}))
            self.until_says(east, "KubernetesUnreachable")
            self.ready("downh")
        finally:
            self.east.up()
        self.until(east, 200, "ready")

    def test_one_does_not_answer(self):
        """A management cluster that takes requests and answers none holds up no other one."""
        held = self.east.hold(HYPERSHIFT + "/namespaces/" + self.namespace)
        try:
            east = guresid("hs")
            self.put(east, self.order("slowe", {"management": "east"}))
            eventually(lambda: held.waiting > 0, "a request is held", SECONDS)
            id_, _ = self.ready("slowh", pools={"worker": {"replicas": 0}})
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            self.until(id_, 404, "deleted")
            self.assertEqual(self.get(east).status, 202)
            self.assertGreater(held.waiting, 0)
        finally:
            held.end()
        self.until(east, 200, "ready")

    def test_removed_from_the_settings(self):
        """A cluster whose management cluster the settings lost says so, and nothing is done with
        it; a deletion is not done either. It heals."""
        id_, _ = self.ready("lostm", {"management": "east"})
        flags = self.server.flags
        at = flags.index("--hypershift-management-east-kubeconfig")
        self.server.flags = flags[:at] + flags[at + 2:]
        self.server.restart()
        self.assertEqual(self.get(id_).status, 200)
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until_says(id_, "ManagementUnknown: the settings have no management cluster 'east'; "
                        "they have: default")
        self.assertIsNotNone(self.at_east("hostedclusters", "lostm"))
        self.server.flags = flags
        self.server.restart()
        self.until(id_, 404, "deleted")
        self.assertIsNone(self.at_east("hostedclusters", "lostm"))


class Transcripts(unittest.TestCase):
    """The fake answers as the real server did, where the tests depend on it."""

    FOLDER = os.path.join(os.environ.get("HFD_SHARED", ""), "vectors", "kube-apiserver-1.36")
    ROWS = ("row 1:", "row 2: apply an absent object\n", "row 6", "row 7", "row 10:", "row 11",
            "row 13", "row 14", "row 23", "row 25")
    THERE = ("row 14", "row 25")  # the object of the path is there
    KEY = ("hostedclusters", "clusters", "row")

    @staticmethod
    def read(text):
        """(title, method, path, headers, body, status, answer) of each exchange."""
        for part in re.split(r"^## ", text, flags=re.M)[1:]:
            for found in re.finditer(
                    r"^\$ curl -i (?P<args>.*?)'(?P<path>/[^']*)'\n(?:body: (?P<body>.*)\n)?"
                    r"HTTP/1\.1 (?P<status>\d+).*\n(?:.+\n)*\n(?P<answer>(?:.*\n)*?)(?=\n*\$ |\Z)",
                    part, flags=re.M):
                method = re.search(r"-X (\w+)", found["args"])
                headers = dict(h.split(": ", 1) for h in re.findall(r"-H '([^']*)'", found["args"]))
                yield (part.split("\n", 1)[0], method[1] if method else "GET", found["path"],
                       headers, found["body"], int(found["status"]), found["answer"])

    def test_same_refusals(self):
        """Status, reason and fields of the causes are those of the transcripts."""
        if not os.path.isdir(self.FOLDER):
            self.skipTest("there are no transcripts in HFD_SHARED")
        compared = 0
        for name in ("02_rows_01_to_12.txt", "03_rows_13_to_25.txt"):
            api = FakeKube(token="")
            kube = Kube(api.url)
            kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": "clusters"}})
            with open(os.path.join(self.FOLDER, name), encoding="utf-8") as f:
                text = f.read()
            for title, method, path, headers, body, status, answer in self.read(text):
                if not any((title + "\n").startswith(r) for r in self.ROWS):
                    continue
                if title.startswith(self.THERE):
                    api.store.objects[self.KEY] = {"metadata": {"name": "row", "uid": "a-uid"}}
                elif title.startswith("row 23"):
                    api.store.objects.pop(self.KEY, None)
                got, doc = kube.request(method, path, json.loads(body) if body else None,
                                        headers.get("Content-Type", "application/json"))
                with self.subTest(title=title, path=path):
                    self.assertEqual(got, status, doc)
                    if status >= 400 and answer.lstrip().startswith("{"):
                        real = json.loads(answer)
                        self.assertEqual(doc.get("reason"), real.get("reason"))
                        self.assertEqual(
                            [c["field"] for c in doc.get("details", {}).get("causes", [])],
                            [c["field"] for c in real.get("details", {}).get("causes", [])])
                compared += 1
            kube.close()
            api.close()
        self.assertGreater(compared, 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
