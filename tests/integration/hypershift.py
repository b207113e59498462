"""Cases of the HyperShift adapter, seen from both ends. Orders go in over the Driver API, and
objects are read at the API server. An operator of ours (kube.py) plays HyperShift.

test_hypershift.py runs these cases with a fake API server, tests/real with a real one.
"""
import json
import os
import tempfile
import unittest

from kube import HYPERSHIFT, Operator, condition
from lib import COOKIE, TIME_FACTOR, Client, Server, eventually, guresid

PULL_SECRET = '{"auths":{"quay.io":{"auth":"bWU6bWU="}}}'
KUBEVIRT_POOL = {"kubevirt": {"compute": {"cores": 2, "memory": "4Gi"},
                              "rootVolume": {"type": "Persistent",
                                             "persistent": {"size": "32Gi"}}}}
SECONDS = 120 * TIME_FACTOR


def branches(entry):
    """["Cluster/x", "Cluster/x/Machine/y"]: the tree in the detail of an object of the status."""
    def walk(node, path):
        for child in node.get("owned", []):
            at = path + [child["GVK"]["Kind"], child["name"]]
            yield "/".join(at)
            yield from walk(child, at)
    return list(walk(entry["detail"].get("tree", {}), []))


class HyperShiftCase(unittest.TestCase):
    """The tests of a class share an API server (`make_api`: kubeconfig, client(), close()) and a
    server. Each has a namespace and an operator of its own.
    """

    FLAGS = ()
    GRACE = "2s"  # time for conditions that refuse
    HOME = "home"  # the namespace of orders that name none
    maxDiff = 4000
    server = client = None

    @classmethod
    def setUpClass(cls):
        cls.api = cls.make_api()
        cls.kube = cls.api.client()

    @classmethod
    def tearDownClass(cls):
        cls.stop()
        cls.kube.close()
        cls.api.close()

    @classmethod
    def stop(cls):
        """Ends the server; its data is gone."""
        if cls.server is not None:
            cls.client.close()
            cls.server.close()
        cls.server = cls.client = None

    @classmethod
    def start(cls, *more):
        """Starts a new server, in place of the present one, until a test calls it again."""
        cls.stop()
        cls.server = Server(*cls.flags(), *more)
        cls.client = Client(cls.server)
        cls.server.start()

    def setUp(self):
        self.operator = None
        self.move("ns-" + guresid("t").replace("_", "-"))
        if self.server is None:
            self.start()

    def tearDown(self):
        self.operator.close()
        self.assertEqual(self.operator.errors, [])

    def move(self, namespace):
        """Works in another namespace."""
        if self.operator is not None:
            self.operator.close()
        self.namespace = namespace
        self.operator = Operator(self.api.client(), namespace)

    @classmethod
    def flags(cls):
        return ("--hypershift-kubeconfig", cls.api.kubeconfig,
                "--hypershift-namespace", cls.HOME,
                "--hypershift-release-image", "quay.io/ocp-release:4.20.0-x86_64",
                "--hypershift-base-domain", "example.com",
                "--hypershift-nodeport-address", "203.0.113.9",
                "--hypershift-refusal-grace", cls.GRACE,
                "--hypershift-retry-min", "1s") + cls.FLAGS

    # ---- both ends ----

    def order(self, name, spec=None, pools=None, secrets=None):
        spec = dict(spec or {})
        if self.namespace != self.HOME:
            spec.setdefault("namespace", self.namespace)
        return {"type": "hyperfleet-cluster", "driver": {
            "values": {"cluster": {"name": name, "spec": spec},
                       "nodepools": [{"name": k, "spec": v} for k, v in (pools or {}).items()]},
            "secrets": secrets if secrets is not None else {"pull_secret": PULL_SECRET}}}

    def put(self, id_, body, want=202):
        answer = self.client.put("/clusters/" + id_, body)
        self.assertEqual(answer.status, want, answer)
        return answer

    def get(self, id_):
        return self.client.get("/clusters/" + id_)

    def until(self, id_, status, what):
        def reached():
            answer = self.get(id_)
            return answer if answer.status == status else None
        try:
            return eventually(reached, what, SECONDS)
        except AssertionError as e:
            raise AssertionError("%s; %r" % (e, self.client.last))

    def until_says(self, id_, text):
        def says():
            answer = self.get(id_)
            return answer if text in answer.json.get("message", "") else None
        try:
            return eventually(says, "message with %r" % text, SECONDS)
        except AssertionError as e:
            raise AssertionError("%s; %r" % (e, self.client.last))

    def path(self, plural, name=""):
        base = "/api/v1" if plural == "secrets" else HYPERSHIFT
        return "%s/namespaces/%s/%s%s" % (base, self.namespace, plural, "/" + name if name else "")

    def object(self, plural, name):
        return self.kube.get(self.path(plural, name))

    def until_object(self, plural, name):
        return eventually(lambda: self.object(plural, name), "%s/%s" % (plural, name), SECONDS)

    def until_gone(self, plural, name):
        eventually(lambda: self.object(plural, name) is None, "%s/%s gone" % (plural, name),
                   SECONDS)

    def versions(self):
        """{kind/name: resourceVersion} of all that there is."""
        return {"%s/%s" % (p, o["metadata"]["name"]): o["metadata"]["resourceVersion"]
                for p in ("hostedclusters", "nodepools", "secrets")
                for o in self.kube.items(self.path(p))}

    def until_quiet(self, name):
        """Waits until the operator has nothing left to write."""
        key = "referenced-resource.hypershift.openshift.io/" + name

        def quiet():
            secret = self.object("secrets", name + "-pull-secret")
            return key in secret["metadata"].get("annotations", {}) and self.operator.is_quiet(name)
        eventually(quiet, "the operator is done", SECONDS)

    def entries(self, id_):
        """{name: object} of the adapter in the status query with details."""
        status = self.client.get("/clusters/%s/status?output=detail" % id_).json
        return {r["name"]: r for a in status["apps"] if a["name"] == "hypershift"
                for c in a["clusters"] for r in c["resources"]}

    def make_parts(self, name, pool, machines=2, capi="v1beta1"):
        """Makes the objects that HyperShift's operator makes of a cluster with one NodePool. The
        API server has to have these kinds."""
        place = "%s-%s" % (self.namespace, name)
        self.kube.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})

        def make(kind, obj_name, owner=None, **more):
            group = "hypershift.openshift.io/v1beta1" if kind == "HostedControlPlane" else \
                "cluster.x-k8s.io/" + capi
            meta = {"name": obj_name, "annotations": more.pop("annotations", {})}
            if owner:
                meta["ownerReferences"] = [{
                    "apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True,
                    "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]
            status, doc = self.kube.request(
                "POST", "/apis/%s/namespaces/%s/%ss" % (group, place, kind.lower()),
                dict(more, apiVersion=group, kind=kind, metadata=meta))
            self.assertEqual(status, 201, doc)
            return doc

        of_pool = {"hypershift.openshift.io/nodePool": "%s/%s" % (self.namespace, pool)}
        cluster = make("Cluster", name + "-x7x7x", status={"phase": "Provisioned"}, annotations={
            "hypershift.openshift.io/cluster": "%s/%s" % (self.namespace, name)})
        make("HostedControlPlane", name, cluster, status={"conditions": [
            condition("Available", "True")]})
        deployment = make("MachineDeployment", pool, cluster, annotations=of_pool,
                          spec={"replicas": machines}, status={"readyReplicas": 1})
        machine_set = make("MachineSet", pool + "-abc", deployment, spec={"replicas": machines})
        for i in range(machines):
            make("Machine", "%s-abc-%02d" % (pool, i), machine_set, status={"phase": "Running"})
        stray = make("MachineSet", "of-another-pool", cluster, spec={"replicas": 0})
        make("Machine", "of-another-pool-1", stray)

    def ready(self, name, spec=None, pools=None):
        """A cluster that is ready. (id, order)"""
        id_, body = guresid("hs"), self.order(name, spec, pools)
        self.put(id_, body)
        self.until(id_, 200, "ready")
        return id_, body


class Cases:
    """The cases, for a HyperShiftCase."""

    def test_none_platform(self):
        """An order with platform None: namespace, Secret, HostedCluster and NodePool; outputs."""
        id_ = guresid("hs")
        self.move(self.HOME)  # that of the settings
        self.operator.stop_at["none1"] = "InfrastructureReady"
        self.put(id_, self.order("none1", pools={"worker": {"replicas": 0}}))
        hinted = self.until_says(id_, "InfrastructureReady")
        self.assertIn("Waiting for InfrastructureReady of the control plane",
                      hinted.json["message"])
        cluster = self.object("hostedclusters", "none1")
        labels = cluster["metadata"]["labels"]
        self.assertEqual(labels["hyperfleet.io/managed-by"], "hypershift")
        self.assertEqual(labels["hyperfleet.io/resource-type"], "cluster")
        self.assertEqual(labels["humanitec_guresid"], id_)
        self.assertEqual(cluster["metadata"]["annotations"]["hyperfleet.io/generation"], "1")
        self.assertEqual(cluster["spec"]["platform"], {"type": "None"})
        self.assertEqual(cluster["spec"]["pullSecret"], {"name": "none1-pull-secret"})
        secret = self.object("secrets", "none1-pull-secret")
        self.assertEqual(secret["type"], "kubernetes.io/dockerconfigjson")
        self.operator.stop_at.clear()
        answer = self.until(id_, 200, "ready").json
        values, secrets = answer["resource"]["values"], answer["resource"]["secrets"]
        self.assertEqual(values["endpoint"], "https://api.none1.example.com:6443")
        self.assertEqual(values["version"], "4.20.0")
        self.assertEqual(values["cluster_type"], "k8s")
        self.assertEqual(values["cluster_data"], {
            "server": "https://api.none1.example.com:6443", "certificate-authority-data": "Q0E="})
        self.assertIn("api.none1.example.com", secrets["kubeconfig"])
        self.assertEqual(secrets["kubeadmin_password"], "secret-of-none1")
        self.assertEqual(secrets["credentials"], {"client-certificate-data": "Q0VSVA==",
                                                  "client-key-data": "S0VZ"})
        pool = self.object("nodepools", "none1-worker")
        self.assertEqual(pool["spec"]["clusterName"], "none1")
        self.assertEqual(pool["spec"]["management"]["upgradeType"], "InPlace")

    def test_secrets_stay_secret(self):
        """Kubeconfig and pull secret are in no value, log, report or file."""
        id_, _ = self.ready("secret1")
        values = self.get(id_).json["resource"]["values"]
        cluster = self.client.get("/api/hyperfleet/v1/clusters/%s/statuses" % values["cluster_id"])
        for text in ("S0VZ", "secret-of-secret1", "bWU6bWU="):
            self.assertNotIn(text, json.dumps(values))
            self.assertNotIn(text, cluster.body.decode())
            self.assertNotIn(text, "\n".join(self.server.lines))
            self.assertEqual(self.server.files_with(text.encode()), [])

    def test_repeat_changes_nothing(self):
        """The same order again changes no object."""
        id_, body = self.ready("same1", pools={"worker": {"replicas": 0}})
        self.until_quiet("same1")
        before = self.versions()
        self.put(id_, body, 200)
        self.assertEqual(self.versions(), before)

    def test_kubevirt_scale_and_delete(self):
        """KubeVirt with two pools: the gate is named, a pool is scaled, pools go before the
        cluster, finalizers are honoured."""
        id_ = guresid("hs")
        spec = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}
        pools = {"workers": {"replicas": 2, "platform": KUBEVIRT_POOL},
                 "gpu": {"auto_scaling": {"min": 1, "max": 3}, "platform": KUBEVIRT_POOL}}
        self.operator.stop_at["kv1"] = "KubeAPIServerAvailable"
        self.put(id_, self.order("kv1", spec, pools))
        self.until_says(id_, "KubeAPIServerAvailable")
        self.operator.stop_at["kv1"] = "Nodes"
        self.until_says(id_, "ClusterVersionSucceeding")
        self.operator.stop_at.clear()
        self.until(id_, 200, "ready")
        self.until_quiet("kv1")
        before = self.versions()
        pools["workers"] = dict(pools["workers"], replicas=5)
        self.put(id_, self.order("kv1", spec, pools))
        self.until(id_, 200, "scaled")
        self.assertEqual(self.object("nodepools", "kv1-workers")["status"]["replicas"], 5)
        after = self.versions()
        self.assertEqual({k for k in after if after[k] != before.get(k)}, {"nodepools/kv1-workers"})
        self.operator.keep.add("kv1-gpu")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until_gone("nodepools", "kv1-workers")
        self.assertEqual(self.get(id_).status, 202)
        self.until_says(id_, "kv1-gpu")
        self.assertNotIn("deletionTimestamp", self.object("hostedclusters", "kv1")["metadata"])
        self.operator.keep.clear()
        self.until(id_, 404, "deleted")
        self.assertEqual(self.operator.deletions[-1], "hostedclusters/kv1")
        for suffix in ("pull-secret", "ssh-key"):
            self.assertIsNone(self.object("secrets", "kv1-" + suffix))
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 204)

    def test_tree(self):
        """The detail of the HostedCluster and of its NodePool has what HyperShift's operator made
        of them, as a tree by owner references. A deletion goes on as without."""
        self.api.add_parts()
        self.start()  # a kind that cannot be listed is asked for again after minutes
        id_ = guresid("hs")
        self.operator.stop_at["tree1"] = "Nodes"
        spec = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}
        pools = {"work": {"replicas": 2, "platform": KUBEVIRT_POOL}}
        self.put(id_, self.order("tree1", spec, pools))
        self.until_object("nodepools", "tree1-work")
        self.make_parts("tree1", "tree1-work")
        self.operator.stop_at.clear()
        self.until(id_, 200, "ready")

        def whole():
            """The entries once both trees have all that was made: each kind has its own list."""
            found = self.entries(id_)
            made = [b for b in branches(found["tree1"]) if not b.startswith("NodePool/")]
            return found if len(made) >= 8 and len(branches(found["tree1-work"])) >= 4 else None
        found = eventually(whole, "trees", SECONDS)
        deployment = "MachineDeployment/tree1-work"
        machines = ["%s/MachineSet/tree1-work-abc/Machine/tree1-work-abc-%02d" % (deployment, i)
                    for i in range(2)]
        capi = "Cluster/tree1-x7x7x/"
        self.assertEqual([b for b in branches(found["tree1"]) if not b.startswith("NodePool/")], [
            capi[:-1], capi + "HostedControlPlane/tree1", capi + deployment,
            capi + deployment + "/MachineSet/tree1-work-abc",
            capi + machines[0], capi + machines[1], capi + "MachineSet/of-another-pool",
            capi + "MachineSet/of-another-pool/Machine/of-another-pool-1"])
        self.assertEqual(branches(found["tree1-work"]), [
            deployment, deployment + "/MachineSet/tree1-work-abc", *machines])
        tree = found["tree1"]["detail"]["tree"]
        pool = [n for n in tree["owned"] if n["GVK"]["Kind"] == "NodePool"][0]
        self.assertEqual(pool["name"], "tree1-work")
        if pool["replicas"] != "2/2": # read before its machines count, and then once more
            def renewed():
                owned = self.entries(id_)["tree1"]["detail"]["tree"]["owned"]
                return "2/2" in [n.get("replicas") for n in owned if n["name"] == "tree1-work"]
            eventually(renewed, "the tree has the nodes", SECONDS)
        self.assertNotIn("observed-only", pool)
        node = [n for n in tree["owned"] if n["GVK"]["Kind"] == "Cluster"][0]
        self.assertEqual((node["observed-only"], node["phase"]), (True, "Provisioned"))
        self.assertEqual(node["namespace"], self.namespace + "-tree1")
        self.assertEqual(node["owned"][0]["ready"], True)
        self.assertEqual(node["owned"][0]["owner"], "Cluster/tree1-x7x7x")
        self.assertEqual(node["owned"][1]["replicas"], "1/2")
        self.assertNotIn("not_shown", tree)
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")

    def test_update_keeps_serving(self):
        """An update of a serving cluster: Available stays True at the old generation, and the
        answer is 202 until the new one is reached."""
        id_, _ = self.ready("up1")
        self.operator.stop_at["up1"] = "Nodes"
        spec = {"release": {"image": "quay.io/ocp-release:4.21.0-x86_64"}}
        self.put(id_, self.order("up1", spec))
        eventually(lambda: self.object("hostedclusters", "up1")["spec"]["release"]["image"] ==
                   spec["release"]["image"], "applied", SECONDS)
        self.until_says(id_, "Progressing")
        cluster = self.client.get("/api/hyperfleet/v1/clusters?search=name='up1'").json["items"][0]
        conditions = {c["type"]: c["status"] for c in cluster["status"]["conditions"]}
        self.assertEqual((conditions["Available"], conditions["Ready"]), ("True", "False"))
        reports = self.client.get(cluster["href"] + "/statuses").json["items"]
        report = [r for r in reports if r["adapter"] == "hypershift"][0]
        self.assertEqual(report["observed_generation"], 1)
        self.assertEqual(report["data"]["update"]["generation"], 2)
        self.operator.stop_at.clear()
        self.until(id_, 200, "updated")

    def test_refused_change_of_a_serving_cluster(self):
        """A change that the API server refuses is 400 RES-104 with the field; the cluster
        serves on."""
        id_, _ = self.ready("bad1")
        spec = {"raw": {"hosted_cluster": {"spec": {"networking": {
            "clusterNetwork": [{"cidr": "10.200.0.0/14"}]}}}}}
        self.put(id_, self.order("bad1", spec))
        answer = self.until(id_, 400, "refused").json
        self.assertEqual(answer["error"], "RES-104")
        self.assertIn("validation", answer["message"])
        self.assertIn("raw.hosted_cluster.spec.networking.clusterNetwork", answer["message"])
        cluster = self.client.get("/api/hyperfleet/v1/clusters?search=name='bad1'").json["items"][0]
        conditions = {c["type"]: c["status"] for c in cluster["status"]["conditions"]}
        self.assertEqual(conditions["Available"], "True")
        self.put(id_, self.order("bad1"))
        self.until(id_, 200, "mended")

    def test_unknown_field_of_raw(self):
        """A field that the API server does not know is refused for good, although it says 500."""
        id_ = guresid("hs")
        spec = {"raw": {"hosted_cluster": {"spec": {"nosuch": True}}}}
        self.put(id_, self.order("raw1", spec))
        answer = self.until(id_, 400, "refused").json
        self.assertEqual(answer["error"], "RES-104")
        self.assertIn("InvalidManifest: raw.hosted_cluster.spec.nosuch: ", answer["message"])
        self.assertIsNone(self.object("hostedclusters", "raw1"))

    def test_put_back(self):
        """A field of ours that another manager changed is put back. Its own fields stay."""
        spec = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}
        id_, _ = self.ready("back1", spec, {"work": {"replicas": 2, "platform": KUBEVIRT_POOL}})
        for plural, name, ours, is_ours in (
                ("nodepools", "back1-work", {"replicas": 7},
                 lambda s: s["replicas"] == 2),
                ("hostedclusters", "back1", {"release": {"image": "quay.io/other:1"}},
                 lambda s: s["release"]["image"] == "quay.io/ocp-release:4.20.0-x86_64")):
            status, doc = self.kube.merge(self.path(plural, name) + "?fieldManager=somebody", {
                "metadata": {"annotations": {"theirs": "1"}}, "spec": ours})
            self.assertEqual(status, 200, doc)
            self.assertFalse(is_ours(doc["spec"]))
            eventually(lambda p=plural, n=name, t=is_ours: t(self.object(p, n)["spec"]),
                       name + " as ordered", SECONDS)
            self.assertEqual(self.object(plural, name)["metadata"]["annotations"]["theirs"], "1")
        self.until(id_, 200, "ready")
        self.assertEqual(self.get(id_).json["resource"]["values"]["health"], "Healthy")

    def test_hypershift_refuses(self):
        """HyperShift's fatal condition is the validation adapter's refusal, in its words."""
        id_ = guresid("hs")
        self.operator.broken["img1"] = {"ValidReleaseImage": condition(
            "ValidReleaseImage", "False", "InvalidImage", "no such release image")}
        self.put(id_, self.order("img1"))
        answer = self.until(id_, 400, "refused").json
        self.assertEqual(answer["error"], "RES-104")
        self.assertIn("no such release image", answer["message"])

    def test_strange_object(self):
        """A HostedCluster of our name that is not ours is refused, and never touched."""
        self.kube.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        id_ = guresid("hs")
        self.ready("mine1")
        theirs = dict(self.object("hostedclusters", "mine1"))
        theirs = {"apiVersion": theirs["apiVersion"], "kind": theirs["kind"],
                  "metadata": {"name": "theirs1", "namespace": self.namespace},
                  "spec": {k: v for k, v in theirs["spec"].items()
                           if k not in ("clusterID", "infraID")}}
        status, _ = self.kube.request("POST", self.path("hostedclusters"), theirs)
        self.assertEqual(status, 201)
        self.operator.frozen.add("theirs1")
        self.put(id_, self.order("theirs1"))
        answer = self.until(id_, 400, "refused").json
        self.assertIn("theirs1", answer["message"])
        self.assertIn("not of this resource", answer["message"])
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")
        theirs = self.object("hostedclusters", "theirs1")
        self.assertNotIn("deletionTimestamp", theirs["metadata"])
        self.assertNotIn("labels", theirs["metadata"])

    def test_removed_by_hand(self):
        """A HostedCluster that was deleted by hand is made again."""
        self.ready("hand1")
        first = self.object("hostedclusters", "hand1")["metadata"]["uid"]
        self.kube.request("DELETE", self.path("hostedclusters", "hand1"))

        def again():
            found = self.object("hostedclusters", "hand1")
            return found and found["metadata"]["uid"] != first
        eventually(again, "made again", SECONDS)

    def test_paused(self):
        """paused_until: refused at creation; an update with it is done when HyperShift pauses."""
        id_ = guresid("hs")
        answer = self.put(id_, self.order("pause1", {"paused_until": "true"}), 400)
        self.assertIn("paused_until", answer.json["message"])
        self.put(id_, self.order("pause1"))
        self.until(id_, 200, "ready")
        self.put(id_, self.order("pause1", {"paused_until": "true"}))
        answer = self.until(id_, 200, "paused").json
        self.assertEqual(answer["resource"]["values"]["health"], "Paused")

    def test_kill_at_any_point(self):
        """kill -9 at each stage: the end is the same, and nothing is made twice."""
        id_ = guresid("hs")
        self.operator.stop_at["kill1"] = "Accepted"
        self.put(id_, self.order("kill1", pools={"worker": {"replicas": 0}}))
        self.server.restart()
        self.until_object("hostedclusters", "kill1")
        uid = self.object("hostedclusters", "kill1")["metadata"]["uid"]
        for stage in ("InfrastructureReady", "Available", "Nodes"):
            self.operator.stop_at["kill1"] = stage
            self.until_says(id_, "waits for")
            self.server.restart()
        self.operator.stop_at.clear()
        self.until(id_, 200, "ready")
        self.assertEqual(self.object("hostedclusters", "kill1")["metadata"]["uid"], uid)
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.server.restart()
        self.until(id_, 404, "deleted")

    def test_delete_during_creation(self):
        """A deletion wins: nothing is applied after it."""
        id_ = guresid("hs")
        self.operator.stop_at["early1"] = "Available"
        self.put(id_, self.order("early1", pools={"worker": {"replicas": 0}}))
        self.until_object("nodepools", "early1-worker")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")
        self.assertEqual(self.kube.items(self.path("hostedclusters")), [])
        self.assertEqual(self.kube.items(self.path("nodepools")), [])

    def remain(self, name):
        """Writes what HyperShift says of volumes that are left; False when the object changed."""
        cluster = self.object("hostedclusters", name)
        return self.kube.request("PUT", self.path("hostedclusters", name) + "/status", dict(
            cluster, status=dict(cluster["status"], conditions=[condition(
                "CloudResourcesDestroyed", "False", "Remaining", "2 volumes remain")])))[0] == 200

    def test_held_deletion(self):
        """A deletion that hangs says since when, and whose finalizers are left: of a NodePool, the
        HostedCluster, a Secret. HyperShift's words about it are there too."""
        spec = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}
        id_, _ = self.ready("held1", spec, {"work": {"replicas": 0, "platform": KUBEVIRT_POOL}})
        held = [("nodepools", "held1-work", "NodePool"),
                ("hostedclusters", "held1", "HostedCluster"),
                ("secrets", "held1-pull-secret", "Secret")]
        for plural, name, _ in held:
            eventually(lambda p=plural, n=name: self.kube.finalizers(
                self.path(p, n), lambda have: have + ["example.com/" + p]), "a finalizer added")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        for plural, name, kind in held:
            self.until_says(id_, "waits for %s %s to be gone since 20" % (kind, name))
            said = self.until_says(id_, "example.com/" + plural).json["message"]
            self.assertIn("Z: finalizers ", said)
            if kind == "HostedCluster":
                eventually(lambda: self.remain(name), "the condition written")  # 409: changed
                self.until_says(id_, "; CloudResourcesDestroyed: 2 volumes remain")
            eventually(lambda p=plural, n=name: self.kube.finalizers(
                self.path(p, n), lambda have: [f for f in have if "example.com" not in f]),
                "the finalizer taken away")  # the operator takes its own away meanwhile
        self.until(id_, 404, "deleted")

    def test_one_nodepool_leaves(self):
        """A nodepool that the order no longer has goes; the cluster is not touched."""
        id_, _ = self.ready("leave1", pools={"worker": {"replicas": 0}, "gpu": {"replicas": 0}})
        self.until_quiet("leave1")
        before = self.object("hostedclusters", "leave1")["metadata"]["generation"]
        self.put(id_, self.order("leave1", pools={"worker": {"replicas": 0}}))
        self.until(id_, 200, "ready again")
        self.assertIsNone(self.object("nodepools", "leave1-gpu"))
        self.assertEqual(self.object("hostedclusters", "leave1")["metadata"]["generation"], before)

    def test_names_that_meet(self):
        """Two orders whose NodePools would have one name: the second is refused, and says whose
        the first is."""
        first = guresid("hs")
        self.put(first, self.order("meet", pools={"one-two": {"replicas": 0}}))
        second = self.order("meet-one", pools={"two": {"replicas": 0}})
        answer = self.put(guresid("hs"), second, 400)
        self.assertEqual(answer.json["error"], "RES-101")
        self.assertIn(first, answer.json["message"])

    def test_built_in_names(self):
        """A report from outside under the name of a built-in adapter is 409."""
        id_, _ = self.ready("own1")
        cluster = self.get(id_).json["resource"]["values"]["cluster_id"]
        for adapter in ("hypershift", "validation"):
            answer = self.client.post("/api/hyperfleet/v1/clusters/%s/statuses" % cluster, {
                "adapter": adapter, "observed_generation": 1,
                "observed_time": "2026-01-01T00:00:00Z",
                "conditions": [{"type": t, "status": "True", "reason": "x", "message": ""}
                               for t in ("Available", "Applied", "Health")]})
            self.assertEqual(answer.status, 409, answer)

    def test_adoption_by_label(self):
        """Objects of a GUResID whose rows are lost belong to the next order of that GUResID."""
        id_, body = self.ready("lost1")
        uid = self.object("hostedclusters", "lost1")["metadata"]["uid"]
        self.start()
        self.put(id_, body)
        self.until(id_, 200, "ready")
        cluster = self.object("hostedclusters", "lost1")
        self.assertEqual(cluster["metadata"]["uid"], uid)
        self.assertEqual(cluster["metadata"]["labels"]["hyperfleet.io/cluster-id"],
                         self.get(id_).json["resource"]["values"]["cluster_id"])

    def test_deletion_of_a_lost_resource(self):
        """A DELETE with the cookie on an empty store: pools, cluster and Secrets of the GUResID go
        before its 204, also with kill -9 between. A cookie of a life that ended is 204 at once."""
        with tempfile.TemporaryDirectory() as folder:
            keys = ("--keys", os.path.join(folder, "keys"))
            self.start(*keys)
            id_, body = self.ready("lost2", pools={"worker": {"replicas": 0}})
            headers = {COOKIE: self.put(id_, body, 200).cookie}
            guarded = json.loads(json.dumps(body))
            guarded["driver"]["values"]["protect"] = True
            guarded = {COOKIE: self.put(id_, guarded, 200).cookie}
            other, _ = self.ready("kept2")
            self.operator.keep.add("lost2-worker")
            self.start(*keys)
            path = "/clusters/" + id_
            self.assertEqual(self.client.delete(path, guarded).json["error"], "RES-109")
            self.assertEqual(self.client.get(path, headers).status, 404)
            self.assertEqual(self.client.delete(path, headers).status, 202)
            self.until_says(id_, "lost2-worker")
            self.server.restart()
            self.assertEqual(self.client.delete(path, headers).status, 202)
            self.assertIsNotNone(self.object("hostedclusters", "lost2"))
            self.operator.keep.clear()
            self.until(id_, 404, "deleted")
            self.assertEqual(self.client.delete(path, headers).status, 204)
            for plural, name in (("hostedclusters", "lost2"), ("nodepools", "lost2-worker"),
                                 ("secrets", "lost2-pull-secret")):
                self.assertIsNone(self.object(plural, name))
            self.assertIsNotNone(self.object("hostedclusters", "kept2"))
            self.assertIsNotNone(self.object("secrets", "kept2-pull-secret"))
        self.start()

    def test_deletion_of_nothing(self):
        """A DELETE with the cookie of a resource of which nothing is left ends in 204."""
        with tempfile.TemporaryDirectory() as folder:
            keys = ("--keys", os.path.join(folder, "keys"))
            self.start(*keys)
            id_, body = guresid("hs"), self.order("lost3")
            headers = {COOKIE: self.put(id_, body).cookie}
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            self.until(id_, 404, "deleted")
            self.start(*keys)
            eventually(lambda: self.client.delete("/clusters/" + id_, headers).status == 204,
                       "gone", SECONDS)
        self.start()
