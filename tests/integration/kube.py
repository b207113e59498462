"""A small Kubernetes client, and an operator that plays HyperShift's part against any API server.

The operator writes as HyperShift's own operator does, and in its order. Its status comes before the
finalizer, its ids raise the generation, and it annotates the pull secret. Then come conditions, the
kubeconfig Secret and versions. Tests say how far it goes. Standard library only.
"""
import base64
import http.client
import json
import ssl
import threading
import time
import urllib.parse

HYPERSHIFT = "/apis/hypershift.openshift.io/v1beta1"
FINALIZER = "hypershift.openshift.io/finalizer"
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: cluster
  cluster: {server: "https://api.%(name)s.example.com:6443", certificate-authority-data: "Q0E="}
users:
- name: admin
  user: {client-certificate-data: "Q0VSVA==", client-key-data: "S0VZ"}
contexts:
- name: admin
  context: {cluster: cluster, user: admin}
"""


class Kube:
    """One kept connection to an API server; one thread each."""

    def __init__(self, url, token="", ca=None):
        self.url, self.token, self.ca = url, token, ca
        self.conn = None

    def _connect(self):
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca)
            return http.client.HTTPSConnection(parts.hostname, parts.port, context=context,
                                               timeout=30)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)

    def request(self, method, path, body=None, kind="application/json"):
        """(status, document or text)"""
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        data = None
        if body is not None:
            headers["Content-Type"] = kind
            data = json.dumps(body).encode()
        for attempt in (1, 2):
            try:
                if self.conn is None:
                    self.conn = self._connect()
                self.conn.request(method, path, data, headers)
                resp = self.conn.getresponse()
                raw = resp.read()
                break
            except (OSError, http.client.HTTPException):
                self.conn = None
                if attempt == 2:
                    raise
        try:
            return resp.status, json.loads(raw)
        except ValueError:
            return resp.status, raw.decode("utf-8", "replace")

    def close(self):
        if self.conn is not None:
            self.conn.close()
        self.conn = None

    def get(self, path):
        status, doc = self.request("GET", path)
        return doc if status == 200 else None

    def items(self, path):
        doc = self.get(path)
        return doc["items"] if doc else []

    def apply(self, path, body, manager="tester"):
        return self.request("PATCH", path + "?fieldManager=" + manager, body,
                            "application/apply-patch+yaml")

    def merge(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def finalizers(self, path, change):
        """Writes change(finalizers) of an object. False when another writer was first."""
        meta = self.get(path)["metadata"]
        status, answer = self.merge(path, {"metadata": {
            "finalizers": change(meta.get("finalizers", [])) or None,
            "resourceVersion": meta["resourceVersion"]}})
        if status not in (200, 409):
            raise AssertionError("%s: %d %r" % (path, status, answer))
        return status == 200


def condition(kind, status, reason="AsExpected", message="", generation=None):
    c = {"type": kind, "status": status, "reason": reason, "message": message,
         "lastTransitionTime": "2026-01-01T00:00:00Z"}
    if generation is not None:
        c["observedGeneration"] = generation
    return c


# Conditions become True in this order. The operator stops where a test says.
STAGES = ("Accepted", "ValidConfiguration", "InfrastructureReady", "EtcdAvailable",
          "KubeAPIServerAvailable", "Available", "Nodes")


class Operator:
    """Plays HyperShift until it is closed."""

    def __init__(self, kube, namespace="clusters"):
        self.kube, self.namespace = kube, namespace
        self.stop_at = {}  # cluster name -> the stage that is not passed

        self.broken = {}  # object name -> conditions that replace others

        self.partial = set()  # names of clusters whose rollout stays Partial

        self.keep = set()    # names of objects whose finalizer stays
        self.asleep = False  # writes nothing
        self.frozen = set()  # names of objects whose status stays as it is
        self.errors = []
        self.deletions = []  # names in the order in which they went away
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def close(self):
        self.stopped.set()
        self.thread.join(20)
        self.kube.close()

    def is_quiet(self, name):
        """True if the operator has nothing left to write on a cluster."""
        kube = Kube(self.kube.url, self.kube.token, self.kube.ca)
        obj = kube.get(self.path("hostedclusters", name))
        kube.close()
        return (bool(obj) and "clusterID" in obj["spec"] and
                obj.get("status") == self._status(obj))

    def path(self, plural, name=""):
        return "%s/namespaces/%s/%s%s" % (HYPERSHIFT, self.namespace, plural,
                                          "/" + name if name else "")

    def _run(self):
        while not self.stopped.wait(0.05):
            if self.asleep:
                continue
            try:
                for cluster in self.kube.items(self.path("hostedclusters")):
                    self._cluster(cluster)
                for pool in self.kube.items(self.path("nodepools")):
                    self._pool(pool)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)  # the server is away: tests do that
            except Exception as e:  # a test looks at it
                self.errors.append(repr(e))

    def _let_go(self, plural, obj):
        """The end of a deletion: the last finalizer goes."""
        name = obj["metadata"]["name"]
        if name in self.keep:
            return
        left = [f for f in obj["metadata"].get("finalizers", []) if f != FINALIZER]
        status, _ = self.kube.merge(self.path(plural, name), {
            "metadata": {"finalizers": left or None,
                         "resourceVersion": obj["metadata"]["resourceVersion"]}})
        if status == 200:
            self.deletions.append(plural + "/" + name)

    def _write_status(self, plural, obj, status):
        name = obj["metadata"]["name"]
        if name in self.frozen:
            return
        replaced = self.broken.get(name, {})
        have = {c["type"]: c for c in status["conditions"]}
        have.update({k: dict(v, observedGeneration=obj["metadata"]["generation"])
                     for k, v in replaced.items()})
        status["conditions"] = list(have.values())
        if obj.get("status") == status:
            return
        answer = self.kube.request("PUT", self.path(plural, name) + "/status",
                                   dict(obj, status=status))
        if answer[0] not in (200, 404, 409):
            self.errors.append("status of %s: %r" % (name, answer))

    # ---- clusters ----

    def _passed(self, name, stage):
        stop = self.stop_at.get(name)
        return stop is None or STAGES.index(stage) < STAGES.index(stop)

    def _cluster(self, obj):
        meta, spec, name = obj["metadata"], obj["spec"], obj["metadata"]["name"]
        if meta.get("deletionTimestamp"):
            pools = [p for p in self.kube.items(self.path("nodepools"))
                     if p["spec"]["clusterName"] == name]
            for pool in pools:
                self.kube.request("DELETE", self.path("nodepools", pool["metadata"]["name"]))
            if not pools:
                self._let_go("hostedclusters", obj)
            return
        if not self._passed(name, "Accepted"):
            return
        if not obj.get("status"):
            self._write_status("hostedclusters", obj, self._status(obj))
        elif FINALIZER not in meta.get("finalizers", []):
            self.kube.merge(self.path("hostedclusters", name), {"metadata": {
                "finalizers": meta.get("finalizers", []) + [FINALIZER],
                "resourceVersion": meta["resourceVersion"]}})
        elif "clusterID" not in spec:
            self.kube.merge(self.path("hostedclusters", name), {"spec": {
                "clusterID": "5ae6ef0e-8b1b-4b0a-8f3c-000000000001", "infraID": name + "-x7x7x"}})
        else:
            self._annotate(spec, name)
            self._publish(name)
            self._write_status("hostedclusters", obj, self._status(obj))

    def _annotate(self, spec, name):
        path = "/api/v1/namespaces/%s/secrets/%s" % (self.namespace, spec["pullSecret"]["name"])
        key = "referenced-resource.hypershift.openshift.io/" + name
        secret = self.kube.get(path)
        if secret and key not in (secret["metadata"].get("annotations") or {}):
            self.kube.merge(path, {"metadata": {"annotations": {key: "true"}}})

    def _publish(self, name):
        if not self._passed(name, "KubeAPIServerAvailable"):
            return
        base = "/api/v1/namespaces/%s/secrets" % self.namespace
        for suffix, key, text in (("admin-kubeconfig", "kubeconfig", KUBECONFIG % {"name": name}),
                                  ("kubeadmin-password", "password", "secret-of-" + name)):
            if not self.kube.get("%s/%s-%s" % (base, name, suffix)):
                self.kube.request("POST", base, {
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "%s-%s" % (name, suffix)},
                    "data": {key: base64.b64encode(text.encode()).decode()}})

    def _status(self, obj):
        name, generation = obj["metadata"]["name"], obj["metadata"]["generation"]
        image = obj["spec"]["release"]["image"]
        paused = obj["spec"].get("pausedUntil") in ("true", "True")
        reached = [s for s in STAGES if self._passed(name, s)]
        nodes = "Nodes" in reached
        whole = nodes and name not in self.partial
        done = "2026-01-01T00:00:00Z" if whole else None
        conditions = [
            condition("ReconciliationActive", "False" if paused else "True",
                      "ReconciliationPaused" if paused else "AsExpected", generation=generation),
            condition("ValidReleaseImage", "True", generation=generation),
            condition("SupportedHostedCluster", "True", generation=generation),
            condition("Progressing", "False" if nodes else "True", "Progressing",
                      generation=generation),
            condition("Degraded", "True", "NotYet", "some components are missing",
                      generation=generation),
            condition("SomethingNew", "False", "Whatever", "a type that nobody knows"),
            condition("ClusterVersionSucceeding", "True" if whole else "Unknown", "FromVersion",
                      generation=generation),
        ]
        for stage in STAGES[1:-1]:
            is_on = stage in reached
            conditions.append(condition(
                stage, "True" if is_on else "False",
                "AsExpected" if is_on else "WaitingFor" + stage,
                "" if is_on else "Waiting for %s of the control plane" % stage,
                generation=generation))
        status = {"conditions": conditions,
                  "version": {"desired": {"image": image, "version": "4.20.0"},
                              "observedGeneration": generation,
                              "availableUpdates": None,
                              "history": [{"state": "Completed" if whole else "Partial",
                                           "image": image, "version": "4.20.0", "verified": False,
                                           "startedTime": "2026-01-01T00:00:00Z",
                                           "completionTime": done}]}}
        if "KubeAPIServerAvailable" in reached:
            status["kubeconfig"] = {"name": name + "-admin-kubeconfig"}
            status["kubeadminPassword"] = {"name": name + "-kubeadmin-password"}
            status["controlPlaneEndpoint"] = {"host": "api.%s.example.com" % name, "port": 6443}
        return status

    # ---- nodepools ----

    def _pool(self, obj):
        meta, name = obj["metadata"], obj["metadata"]["name"]
        if meta.get("deletionTimestamp"):
            self._let_go("nodepools", obj)
            return
        cluster = self.kube.get(self.path("hostedclusters", obj["spec"]["clusterName"]))
        if cluster is None:
            return  # HyperShift does nothing at all then
        if FINALIZER not in meta.get("finalizers", []):
            self.kube.merge(self.path("nodepools", name), {"metadata": {
                "finalizers": meta.get("finalizers", []) + [FINALIZER],
                "resourceVersion": meta["resourceVersion"]}})
            return
        self._write_status("nodepools", obj, self._pool_status(obj))

    def _pool_status(self, obj):
        generation, spec = obj["metadata"]["generation"], obj["spec"]
        nodes = self._passed(spec["clusterName"], "Nodes")
        automated = spec["platform"]["type"] != "None"
        replicas = spec.get("replicas", spec.get("autoScaling", {}).get("min", 0))
        conditions = [condition("ValidReleaseImage", "True", generation=generation),
                      condition("ValidGeneratedPayload", "True", generation=generation),
                      condition("UpdatingVersion", "False", generation=generation)]
        status = {"conditions": conditions, "version": "4.20.0"}
        if not automated:
            for kind in ("AllMachinesReady", "AllNodesHealthy"):
                conditions.append(condition(kind, "False", "NotFound", "No Machines are created",
                                            generation=generation))
            return status
        is_on = "True" if nodes and replicas > 0 else "False"
        reason = ("NotFound", "No Machines are created") if spec.get("autoScaling") and not nodes \
            else ("AsExpected", "NodePool set to no replicas") if replicas == 0 else \
            ("AsExpected", "") if nodes else ("Provisioning", "machines are being made")
        for kind in ("AllMachinesReady", "AllNodesHealthy"):
            conditions.append(condition(kind, is_on, *reason, generation=generation))
        conditions.append(condition("Ready", "True" if nodes else "False", generation=generation))
        status["replicas"] = replicas if nodes else 0
        return status
