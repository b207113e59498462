#!/usr/bin/env python3
"""The Helm chart with the real helm. A real Kubernetes API server takes what it renders.

The API server is that of test_kubernetes.py, with the CRDs of HyperShift and of the Prometheus
operator. It checks each object strictly without storing it, and pods by the Pod Security Standard
`restricted`.
"""
import copy
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import hypershift
import real
import test_kubernetes
import yaml
from lib import ROOT, cluster_input, clean_env, eventually, free_port, guresid, program

HELM = ("helm.sh/helm/v3/cmd/helm", "v3.22.0")
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
CHART = os.path.join(ROOT, "docker/helm/hyperfleet-driver")
NAMESPACE = "hyperfleet"
GROUP = 65532  # of the pod, and its user
MONITORING = ("servicemonitors", "prometheusrules")
# Name -> values. Each is rendered, linted, checked by the program, and offered to the API server.
SETS = {
    "default": {},
    "smallest": {"auth": {"tokensSecret": "tokens"}},
    "all": {
        "auth": {"tokensSecret": "tokens", "operatorKeysSecret": "operator",
                 "issuersSecret": "issuers"},
        "keys": {"secret": "keys"}, "tls": {"secret": "tls", "clientCaSecret": "clients"},
        "hypershift": {"enabled": True, "releaseImage": "quay.io/x:1", "baseDomain": "example.com",
                       "pullSecret": "pull", "managementSecrets": {"west-1": "kubeconfig-west"}},
        "events": {"webhooks": {"portal-1": {"url": "https://portal.example/x", "secret": "hook",
                                             "types": "states", "caConfigMap": "hook-ca"}},
                   "rabbitmq": {"url": "amqps://driver@rabbitmq.example/", "passwordSecret":
                                "rabbit", "caConfigMap": "rabbit-ca"}},
        "config": {"log.level": "debug", "http": {"body_max": "2MiB"}, "adapters.required.cluster":
                   ["validation", "hypershift"]},
        "image": {"repository": "registry.example/driver", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": [{"name": "registry"}],
        "persistence": {"storageClassName": "fast", "size": "20Gi", "annotations": {"a": "b"}},
        "ingress": {"enabled": True, "className": "nginx", "host": "driver.example",
                    "tlsSecret": "edge", "annotations": {"a": "b"}},
        "networkPolicy": {
            "clients": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
            "ops": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}],
            "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "runbookUrl": "https://ops.example/docs/runbook.html"},
        "dashboard": {"enabled": True}, "podLabels": {"team": "platform"},
        "podAnnotations": {"a": "b"}, "priorityClassName": "high",
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}}, "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "tmp", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]},
    "remote": {"auth": {"tokensSecret": "tokens"},
               "backend": {"url": "https://hyperfleet.example/", "tokenSecret": "remote",
                           "caConfigMap": "remote-ca"},
               "service": {"type": "LoadBalancer"}, "persistence": {"existingClaim": "data-1"}},
    "elsewhere": {"auth": {"tokensSecret": "tokens"},
                  "hypershift": {"enabled": True, "kubeconfigSecret": "management"},
                  "networkPolicy": {"enabled": False}, "serviceAccount": {"create": False}},
    "test": {"auth": {"insecureNoAuth": True}, "persistence": {"enabled": False}},
}
with open(os.path.join(ROOT, "handlers/docs/operate.md"), encoding="utf-8") as opened:
    PAGE = opened.read()
# The values of the manual.
SETS["manual"] = yaml.safe_load(re.search(r"^```text\n(image:.*?)^```$", PAGE, re.M | re.S)[1])
# The smallest set with PostgreSQL, one with all that belongs to it, and that of the manual.
REPLICAS = {"auth": {"tokensSecret": "tokens"}, "keys": {"secret": "keys"}, "store": "postgres",
            "postgres": {"url": "postgres://hfd@db/hfd", "passwordSecret": "postgres"}}
SETS["postgres"] = REPLICAS
SETS["postgres all"] = dict(
    REPLICAS, replicaCount=3, postgres={
        "url": "postgresql://hfd@db-0:6432,db-1:6432,db-2/hfd?sslmode=verify-full",
        "passwordSecret": "postgres", "caConfigMap": "postgres-ca", "stopDelaySeconds": 10},
    networkPolicy={"egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}],
                   "database": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]},
    serviceMonitor={"enabled": True}, prometheusRule={"enabled": True},
    topologySpreadConstraints=[{"maxSkew": 2, "topologyKey": "rack",
                                "whenUnsatisfiable": "DoNotSchedule"}],
    affinity={"nodeAffinity": {}}, service={"type": "LoadBalancer"})
with open(os.path.join(ROOT, "handlers/docs/scale.md"), encoding="utf-8") as opened:
    SETS["postgres manual"] = yaml.safe_load(re.search(r"^```text\n(store:.*?)^```$", opened.read(),
                                                       re.M | re.S)[1])
# Wrong values, and what helm says.
REFUSED = [
    ({"replicaCount": 2}, "replicaCount is 2: state is one SQLite database"),
    ({"replicaCount": -1}, "replicaCount"),
    ({"replicaCount": "1"}, "replicaCount"),
    ({"auth": {"tokensSecret": ""}}, "nothing to log in with"),
    ({"auth": {"insecureNoAuth": True, "issuersSecret": "x"}}, "auth.insecureNoAuth has no effect"),
    ({"hypershift": {"enabled": True}, "backend": {"url": "https://x"}}, "leave backend.url empty"),
    ({"tls": {"clientCaSecret": "x"}}, "tls.clientCaSecret needs tls.secret"),
    ({"backend": {"tokenSecret": "x"}}, "need backend.url"),
    ({"ingress": {"enabled": True}}, "ingress.enabled needs ingress.host"),
    ({"auth": {"tokenSecret": "x"}}, "tokenSecret"),
    ({"image": {"digest": "latest"}}, "digest"),
    ({"persistence": {"accessModes": ["ReadWriteMany"]}}, "accessModes"),
    ({"postgres": REPLICAS["postgres"]}, "need store: postgres"),
    ({"store": "mysql"}, "store"),
    (dict(REPLICAS, store="sqlite"), "need store: postgres"),
    (dict(REPLICAS, keys={"secret": ""}), "needs keys.secret"),
    (dict(REPLICAS, auth={"tokensSecret": ""}), "nothing to log in with"),
    (dict(REPLICAS, persistence={"existingClaim": "data"}), "is a volume of SQLite"),
    (dict(REPLICAS, replicaCount=-1), "replicaCount"),
] + [(dict(REPLICAS, postgres=dict(REPLICAS["postgres"], **wrong)), words) for wrong, words in (
    ({"url": ""}, "needs postgres.url"),
    ({"url": "mysql://hfd@db/hfd"}, "url"),
    ({"url": "postgres://hfd:x@db/hfd"}, "postgres.url has a password"),
    ({"url": "postgres://hfd@db/hfd?sslmode=prefer&password=x"}, "postgres.url has a password"),
    ({"url": "postgres://hfd@db/hfd?sslmode=verify-full"}, "the authorities that it trusts"),
    ({"passwordSecret": ""}, "needs postgres.passwordSecret"))]


def plural(doc):
    """The collection of a document, below its API group."""
    kind = doc["kind"].lower()
    many = kind[:-1] + "ies" if kind.endswith("y") else kind + "es" if kind.endswith("s") else \
        kind + "s"
    group = "/api/v1" if doc["apiVersion"] == "v1" else "/apis/" + doc["apiVersion"]
    middle = "" if kind.startswith("clusterrole") else "/namespaces/" + NAMESPACE
    return "%s%s/%s" % (group, middle, many)


def there(api, command, values, *flags):
    """Runs helm against an API server."""
    path = os.path.join(api.dir, "values.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(values, f)
    return real.run([real.go_program(*HELM), *command, "-n", NAMESPACE, "--kubeconfig",
                     api.env["KUBECONFIG"], *([CHART, "-f", path] if values else []), *flags],
                    env=dict(clean_env(), HELM_CACHE_HOME=api.dir, HELM_CONFIG_HOME=api.dir,
                             HELM_DATA_HOME=api.dir))


class HelmCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helm = real.go_program(*HELM)
        cls.dir = tempfile.mkdtemp(prefix="hfd-helm-")
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)

    def run_helm(self, command, values, *flags):
        path = os.path.join(self.dir, "values.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(values, f)
        home = {name: self.dir for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME",
                                            "HELM_DATA_HOME")}
        done = subprocess.run([self.helm, *command, CHART, "-f", path, "--kube-version", "1.33.0",
                               "-n", NAMESPACE, *flags], stdout=subprocess.PIPE, timeout=60,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              env=dict(clean_env(), **home))
        return done.returncode, done.stdout

    def render(self, values):
        status, text = self.run_helm(["template", "shop"], values)
        self.assertEqual(status, 0, text)
        return [doc for doc in yaml.safe_load_all(text) if doc]

    @staticmethod
    def one(docs, kind):
        found = [doc for doc in docs if doc["kind"] == kind]
        assert len(found) == 1, (kind, len(found))
        return found[0]

    def pods(self, docs):
        """The spec of what runs the pods: a StatefulSet with SQLite, or a Deployment."""
        found = [doc for doc in docs if doc["kind"] in ("StatefulSet", "Deployment")]
        assert len(found) == 1, len(found)
        return found[0]["spec"]


class Render(HelmCase):
    def test_lint(self):
        for name, values in SETS.items():
            with self.subTest(name):
                status, text = self.run_helm(["lint", "--strict"], values)
                self.assertEqual(status, 0, text)

    def test_refusals(self):
        """Values that cannot work are refused, in words."""
        for values, words in REFUSED:
            with self.subTest(values):
                status, text = self.run_helm(["template", "shop"],
                                             dict(SETS["smallest"], **{
                                                 k: dict(SETS["smallest"].get(k, {}), **v)
                                                 if isinstance(v, dict) else v
                                                 for k, v in values.items()}))
                self.assertNotEqual(status, 0)
                self.assertIn(words, text)

    def test_zero_replicas_stop_it(self):
        docs = self.render(dict(SETS["smallest"], replicaCount=0))
        self.assertEqual(self.one(docs, "StatefulSet")["spec"]["replicas"], 0)

    def test_the_pod(self):
        """One replica, no links of services, a token only where it is needed, probes by scheme."""
        for name, values in SETS.items():
            docs = self.render(values)
            sets = self.pods(docs)
            pod = sets["template"]["spec"]
            with self.subTest(name):
                self.assertEqual(sets["replicas"], values.get("replicaCount", 1))
                self.assertIs(pod["enableServiceLinks"], False)
                self.assertIs(pod["automountServiceAccountToken"], name in ("all", "manual"))
                self.assertEqual("ClusterRole" in [d["kind"] for d in docs],
                                 name in ("all", "manual"))
                driver = pod["containers"][0]
                scheme = "HTTPS" if name in ("all", "manual") else "HTTP"
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    self.assertEqual(driver[probe]["httpGet"]["scheme"], scheme)
                self.assertFalse([e for e in driver["env"] if "SECRET" in e.get("value", "")])
                mounted = {m["name"] for m in driver["volumeMounts"]}
                volumes = {v["name"] for v in pod["volumes"]} | {
                    c["metadata"]["name"] for c in sets.get("volumeClaimTemplates", [])}
                self.assertEqual(mounted | {"keys-secret"} if values.get("keys") else mounted,
                                 volumes)

    def test_replicas(self):
        """With PostgreSQL: no volume for data, and the ring, the tokens and the password from
        Secrets. A new pod is ready before an old one ends. Pods avoid each other.
        """
        for name in ("postgres", "postgres all", "postgres manual"):
            docs = self.render(SETS[name])
            spec = self.one(docs, "Deployment")["spec"]
            pod = spec["template"]["spec"]
            with self.subTest(name):
                self.assertFalse([d for d in docs if d["kind"] == "StatefulSet"])
                self.assertEqual(spec["strategy"]["rollingUpdate"],
                                 {"maxUnavailable": 0, "maxSurge": 1})
                self.assertFalse([v for v in pod["volumes"] if "persistentVolumeClaim" in v])
                env = {e["name"]: e["value"] for e in pod["containers"][0]["env"]}
                self.assertNotIn("HFD_DATA", env, "the program does not use that of the image")
                self.assertEqual(env["HFD_STORE"], SETS[name]["postgres"]["url"])
                for key in ("HFD_STORE_PASSWORD_FILE", "HFD_KEYS", "HFD_AUTH_TOKENS_FILE"):
                    self.assertIn(key, env)
                budget = self.one(docs, "PodDisruptionBudget")["spec"]
                self.assertEqual(budget["maxUnavailable"], 1)
                self.assertEqual(budget["selector"], spec["selector"])
                delay = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
                self.assertLess(delay + 20, pod["terminationGracePeriodSeconds"])
        first, whole = (self.render(SETS[name]) for name in ("postgres", "postgres all"))
        pod = self.pods(first)["template"]["spec"]
        near = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(near[0]["podAffinityTerm"]["topologyKey"], "kubernetes.io/hostname")
        self.assertEqual(near[0]["podAffinityTerm"]["labelSelector"], self.pods(first)["selector"])
        spread = pod["topologySpreadConstraints"]
        self.assertEqual([c["topologyKey"] for c in spread], ["topology.kubernetes.io/zone"])
        pod = self.pods(whole)["template"]["spec"]
        self.assertEqual(pod["affinity"], {"nodeAffinity": {}})
        self.assertEqual(pod["topologySpreadConstraints"][0]["topologyKey"], "rack")
        policy = self.one(whole, "NetworkPolicy")["spec"]
        self.assertEqual(policy["egress"][1], {
            "ports": [{"port": 6432, "protocol": "TCP"}, {"port": 5432, "protocol": "TCP"}],
            "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]})
        self.assertNotIn("egress", self.one(first, "NetworkPolicy")["spec"])

    def test_the_alerts_are_the_file(self):
        docs = self.render(dict(SETS["smallest"], prometheusRule={"enabled": True}))
        with open(os.path.join(ROOT, "docker/prometheus/alerts.yaml"), encoding="utf-8") as f:
            self.assertEqual(self.one(docs, "PrometheusRule")["spec"], yaml.safe_load(f))
        rule = self.one(self.render(SETS["all"]), "PrometheusRule")["spec"]["groups"][0]["rules"][0]
        self.assertEqual(rule["annotations"]["runbook_url"],
                         "https://ops.example/docs/runbook.html#hyperfleetdriverdown")

    def test_the_dashboard_is_the_file(self):
        data = [d for d in self.render(SETS["all"]) if d["metadata"]["name"].endswith("dashboard")]
        with open(os.path.join(ROOT, "docker/grafana/hyperfleet-driver.json"),
                  encoding="utf-8") as f:
            self.assertEqual(json.loads(data[0]["data"]["hyperfleet-driver.json"]), json.load(f))


class Started(HelmCase):
    """The program with the variables and files that the chart gives it."""

    @staticmethod
    def mount(folder, files):
        """Makes a volume as the kubelet does: links to files of a folder with a time. The group of
        the pod may read them.
        """
        os.makedirs(folder, exist_ok=True)
        there = tempfile.mkdtemp(prefix="..", dir=folder)
        os.chmod(there, 0o755)
        for name, text in files.items():
            path = os.path.join(there, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o440)
            if os.geteuid() == 0:
                os.chown(path, 0, GROUP)
            if not os.path.islink(os.path.join(folder, name)):
                os.symlink("..data/" + name, os.path.join(folder, name))
        os.symlink(os.path.basename(there), os.path.join(folder, "..new"))
        os.replace(os.path.join(folder, "..new"), os.path.join(folder, "..data"))

    def place(self, docs, files):
        """Makes the pod's file system below a folder; gives the variables and the flags."""
        root = tempfile.mkdtemp(dir=self.dir)
        for folder in (self.dir, root):
            os.chmod(folder, 0o755)
        pod = self.pods(docs)["template"]["spec"]
        driver = pod["containers"][0]
        config = [d for d in docs if d["kind"] == "ConfigMap"
                  and not d["metadata"]["name"].endswith("dashboard")][0]["data"]
        mounts = driver["volumeMounts"] + [m for c in pod.get("initContainers", [])
                                           for m in c["volumeMounts"]]
        for name, path in {(m["name"], m["mountPath"]) for m in mounts}:
            if name in ("data", "keys"):
                os.makedirs(root + path)
                if os.geteuid() == 0:
                    os.chown(root + path, 0, GROUP)
                    os.chmod(root + path, 0o2775)
            else:
                self.mount(root + path, config if name == "config" else files.get(name, {}))
        for container in pod.get("initContainers", []):
            real.run([re.sub("^/", root + "/", word) for word in container["command"]],
                     **self.account())
        env = {e["name"]: re.sub(r"(^|,)/", r"\1%s/" % root, e["value"]) for e in driver["env"]
               if e["name"].startswith("HFD_")}
        flags = [re.sub("=/", "=%s/" % root, flag) for flag in driver["command"][2:]]
        return clean_env(env), flags

    @staticmethod
    def account():
        """The user and the group of the pod, if this test may become another user."""
        return {"user": GROUP, "group": GROUP, "extra_groups": []} if os.geteuid() == 0 else {}

    def files(self):
        """The token, and the content of the Secrets: made by the program and openssl."""
        at = tempfile.mkdtemp(dir=self.dir)
        token = real.run([program(), "token", "create", "--name", "o", "--scope", "driver",
                          "--auth-tokens-file", at + "/tokens"], env=clean_env()).strip()
        real.run([program(), "keygen", "--keys", at + "/keys", "--data", at], env=clean_env())
        real.run([real.debian("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                  "-subj", "/CN=x", "-days", "30", "-keyout", at + "/key", "-out", at + "/crt"])
        kubeconfig = json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]})
        public = real.run(["openssl", "x509", "-in", at + "/crt", "-pubkey", "-noout"])

        def text(name):
            with open(os.path.join(at, name), encoding="utf-8") as f:
                return f.read()
        return token, {
            "tokens": {"tokens": text("tokens")}, "keys-secret": {"keys": text("keys")},
            "operator": {"operator.pem": public}, "remote": {"token": "x"},
            "issuers": {"issuers.yaml": "issuers: []\n"},
            "tls": {"tls.crt": text("crt"), "tls.key": text("key")},
            "client-ca": {"ca.crt": text("crt")}, "remote-ca": {"ca.crt": text("crt")},
            "postgres": {"password": "x"}, "postgres-ca": {"ca.crt": text("crt")},
            "pull-secret": {".dockerconfigjson": "{\"auths\": {}}"},
            "management": {"kubeconfig": kubeconfig},
            "management-west-1": {"kubeconfig": kubeconfig},
            "rabbitmq": {"password": "x"}, "rabbitmq-ca": {"ca.crt": text("crt")},
            "webhook-portal-1": {"secret": "whsec_" + 32 * "A"},
            "webhook-portal-1-ca": {"ca.crt": text("crt")}}

    def test_the_program_takes_its_settings(self):
        """`config check` takes what each set of values makes."""
        _, files = self.files()
        for name, values in SETS.items():
            values = copy.deepcopy(values)
            if name in ("all", "manual"):  # this is no pod
                values["hypershift"]["kubeconfigSecret"] = "management"
                values.get("auth", {}).pop("issuersSecret", None)
            with self.subTest(name):
                env, flags = self.place(self.render(values), files)
                self.assertEqual(len(flags), 8 if name == "all" else 0)
                done = subprocess.run([program(), "config", "check", *flags], env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                      check=False, **self.account())
                self.assertEqual(done.returncode, 0, done.stdout)

    def serve(self, values, files):
        """Starts the server as the pod would, with ports of its own. Gives its root, its variables
        and a connection.
        """
        env, _ = self.place(self.render(values), files)
        self.assertEqual((env["HFD_LISTEN"], env["HFD_OPS_LISTEN"]),
                         ("0.0.0.0:8000", "0.0.0.0:8080"))
        ports = [free_port(), free_port()]
        env["HFD_LISTEN"], env["HFD_OPS_LISTEN"] = ("127.0.0.1:%d" % p for p in ports)
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.proc = subprocess.Popen([program(), "serve"], env=env, stderr=log, stdout=log,
                                         **self.account())
        self.addCleanup(self.proc.wait)
        self.addCleanup(self.proc.terminate)
        ready = [program(), "health", "--ready"]
        eventually(lambda: subprocess.run(ready, env=env, check=False, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL).returncode == 0, "ready")
        conn = http.client.HTTPConnection("127.0.0.1", ports[0], timeout=30)
        self.addCleanup(conn.close)
        return env["HFD_CONFIG"].split("/etc/")[0], env, conn

    @staticmethod
    def order(conn, token):
        """The status of a new order."""
        conn.request("PUT", "/" + guresid(), json.dumps(cluster_input()),
                     {"Authorization": "Bearer " + token} if token else {})
        answer = conn.getresponse()
        answer.read()
        return answer.status

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
            return f.read()

    def test_it_serves(self):
        """The smallest set serves: probes answer, and the token orders a cluster. The commands of
        the manual for the running pod work there. A changed Secret is taken up.
        """
        token, files = self.files()
        root, env, conn = self.serve(SETS["smallest"], files)
        self.assertEqual((self.order(conn, None), self.order(conn, token)), (401, 202))
        for command in (["keygen", "--rotate"], ["doctor"], ["token", "list"]):
            real.run([program(), *command], env=env, **self.account())
        self.proc.send_signal(signal.SIGHUP)
        eventually(lambda: "key ring reloaded" in self.log(), "the new key is in use")
        other, files = self.files()
        self.assertEqual(self.order(conn, other), 401)
        self.mount(os.path.join(root, "etc/hyperfleet-driver/tokens"), files["tokens"])
        eventually(lambda: self.order(conn, other) == 202, "the new token is taken up")
        self.assertEqual(self.order(conn, token), 401)

    def test_backup_and_restore(self):
        """The commands of the manual, in the pod and in the one for a restore."""
        token, files = self.files()
        root, env, conn = self.serve(SETS["smallest"], files)
        self.assertEqual(self.order(conn, token), 202)
        data = root + "/data"
        real.run([program(), "backup", data + "/hfd.backup"], env=env, **self.account())
        real.run(["cp", data + "/driver/keys", data + "/hfd.keys"], **self.account())
        self.proc.terminate()
        self.assertEqual(self.proc.wait(60), 0)
        script = re.search(r"exec restore -- sh -ec '([^']*)'", PAGE)[1].replace("/data", data)
        path = {"PATH": "%s:%s" % (os.path.dirname(program()), os.environ["PATH"])}
        said = real.run(["sh", "-ec", script], env=dict(clean_env(), **path), **self.account())
        self.assertIn("restored 1 resource", said)
        self.assertEqual(sorted(os.listdir(data)), ["driver", "driver.old"])
        done = subprocess.run([program(), "doctor"], env=env, stdout=subprocess.PIPE, text=True,
                              check=False, **self.account())
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_key_ring_of_a_secret(self):
        """The pod copies the key ring of a Secret to memory: the program wants a file of its own.
        Without the copy it does not start.
        """
        token, files = self.files()
        values = dict(SETS["smallest"], keys={"secret": "keys"})
        root, env, conn = self.serve(values, files)
        self.assertEqual(self.order(conn, token), 202)
        self.assertNotIn("made a new key ring", self.log())
        with open(root + "/run/hyperfleet-driver/keys/keys", encoding="utf-8") as ring:
            self.assertEqual(ring.read(), files["keys-secret"]["keys"])
        done = subprocess.run([program(), "doctor"], env=dict(env, HFD_KEYS=root + "/secret/keys"),
                              stdout=subprocess.PIPE, check=False, text=True, **self.account())
        self.assertIn("symbolic link", done.stdout)
        driver = self.one(self.render(values), "StatefulSet")["spec"]["template"]["spec"][
            "containers"][0]
        self.assertEqual([m["readOnly"] for m in driver["volumeMounts"] if m["name"] == "keys"],
                         [True], "a rotation in the pod would be lost")


class Server(HelmCase):
    """A real API server, strict and without storing."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        crds = os.path.join(cls.dir, "crds")
        os.mkdir(crds)
        for folder, names in ((test_kubernetes.harness()[1], ("",)),
                              (cls.operator_crds(), MONITORING)):
            for name in os.listdir(folder):
                if any(part in name for part in names):
                    shutil.copy(os.path.join(folder, name), crds)
        cls.api = test_kubernetes.Api(crds)
        cls.addClassCleanup(cls.api.close)
        cls.kube = cls.api.client()
        cls.addClassCleanup(cls.kube.close)
        status, answer = cls.kube.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": NAMESPACE, "labels": {
                    "pod-security.kubernetes.io/" + mode: "restricted"
                    for mode in ("enforce", "warn")}}})
        assert status == 201, answer

    @staticmethod
    def operator_crds():
        go = real.find("go", "install Go 1.24 or later")
        done = subprocess.run([go, "mod", "download", "-json", OPERATOR], stdout=subprocess.PIPE,
                              cwd=tempfile.gettempdir(), timeout=300, check=False)
        try:
            folder = json.loads(done.stdout)["Dir"]
        except (ValueError, KeyError):
            real.skip("the module %s cannot be downloaded" % OPERATOR)
        return os.path.join(folder, "example/prometheus-operator-crd")

    def offer(self, doc):
        """Offers a document to the API server, which checks it as if it were stored."""
        return self.kube.request("POST", plural(doc) + "?dryRun=All&fieldValidation=Strict", doc)

    def test_each_object_is_valid(self):
        kinds = set()
        for name, values in SETS.items():
            for doc in self.render(values):
                with self.subTest(name, kind=doc["kind"], object=doc["metadata"]["name"]):
                    status, answer = self.offer(doc)
                    self.assertEqual(status, 201, answer)
                    kinds.add(doc["kind"])
        self.assertLessEqual({"StatefulSet", "Deployment", "PodDisruptionBudget", "Service",
                              "ConfigMap", "ServiceAccount", "ClusterRole",
                              "ClusterRoleBinding", "NetworkPolicy", "Ingress",
                              "ServiceMonitor", "PrometheusRule"}, kinds)

    def test_a_life(self):
        """Helm installs, upgrades and removes it. The notes name the Service; the claim of the
        StatefulSet is none of Helm's, so the data stays.
        """
        at = "/apis/apps/v1/namespaces/%s/statefulsets/shop-hyperfleet-driver" % NAMESPACE
        notes = there(self.api, ["install", "shop"], SETS["manual"])
        self.assertIn("https://shop-hyperfleet-driver.hyperfleet.svc:8000/", notes)
        self.assertIn("exec shop-hyperfleet-driver-0 --", notes)
        before = self.kube.get(at)
        there(self.api, ["upgrade", "shop"], SETS["manual"], "--set", "image.tag=9.9")
        after = self.kube.get(at)
        for doc, tag in ((before, "0.1.0"), (after, "9.9")):
            image = doc["spec"]["template"]["spec"]["containers"][0]["image"]
            self.assertEqual(image, "registry.example/hyperfleet-driver:" + tag)
        self.assertEqual(before["metadata"]["uid"], after["metadata"]["uid"])
        there(self.api, ["upgrade", "shop"], SETS["manual"], "--set", "config.log\\.level=debug")
        other = self.kube.get(at)["spec"]["template"]["metadata"]["annotations"]
        self.assertNotEqual(other["checksum/config"], after["spec"]["template"]["metadata"][
            "annotations"]["checksum/config"], "other settings start the pod again")
        there(self.api, ["uninstall", "shop"], None)
        self.assertIsNone(self.kube.get(at))

    def test_the_check_is_strict(self):
        """A misspelt field would be noticed."""
        doc = self.one(self.render(SETS["smallest"]), "StatefulSet")
        doc["spec"]["template"]["spec"]["enableServiceLink"] = False
        status, answer = self.offer(doc)
        self.assertEqual(status, 400, answer)
        rule = self.one(self.render(SETS["all"]), "PrometheusRule")
        rule["spec"]["groups"][0]["rules"][0]["exp"] = "x"
        self.assertEqual(self.offer(rule)[0], 400)

    def test_the_pod_of_a_restore(self):
        """The pod of the manual is taken where the standard `restricted` is enforced."""
        pod = yaml.safe_load(re.search(r"^```text\n(apiVersion: v1\nkind: Pod.*?)^```$", PAGE,
                                       re.M | re.S)[1])
        status, answer = self.offer(pod)
        self.assertEqual(status, 201, answer)
        docs = self.render(SETS["manual"])
        sets = self.one(docs, "StatefulSet")["spec"]
        self.assertEqual(pod["spec"]["securityContext"],
                         sets["template"]["spec"]["securityContext"])
        self.assertEqual(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"],
                         "%s-hyperfleet-driver-0" % sets["volumeClaimTemplates"][0]["metadata"][
                             "name"])

    def test_pod_security(self):
        """The namespace enforces the standard `restricted`, and takes the pod of each set."""
        for name, values in SETS.items():
            spec = self.pods(self.render(values))
            pod = {"apiVersion": "v1", "kind": "Pod",
                   "metadata": {"name": "shop-0", "labels": spec["template"]["metadata"]["labels"]},
                   "spec": spec["template"]["spec"]}
            pod["spec"].pop("priorityClassName", None)  # there is no such class
            pod["spec"]["volumes"] += [
                {"name": c["metadata"]["name"], "persistentVolumeClaim": {"claimName": "data-0"}}
                for c in spec.get("volumeClaimTemplates", [])]
            with self.subTest(name):
                status, answer = self.offer(pod)
                self.assertEqual(status, 201, answer)
            for container in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
                soft = copy.deepcopy(container)
                container["securityContext"].pop("capabilities")
                with self.subTest(name, soft=container["name"]):
                    status, answer = self.offer(pod)
                    self.assertEqual(status, 403, answer)
                    self.assertIn("restricted", answer["message"])
                container.update(soft)


class Rights(hypershift.HyperShiftCase):
    """The service account that the chart makes can do all that the HyperShift adapter does."""
    make_api = test_kubernetes.Api

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        there(cls.api, ["install", "hyperfleet-driver", "--create-namespace"],
              {"hypershift": {"enabled": True}})
        status, answer = cls.kube.request(
            "POST", "/api/v1/namespaces/%s/serviceaccounts/hyperfleet-driver/token" % NAMESPACE,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        assert status == 201, answer
        cls.api.kubeconfig = os.path.join(cls.api.dir, "account")
        with open(cls.api.kubeconfig, "w", encoding="utf-8") as f:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "clusters": [{"name": "c", "cluster": {
                    "server": cls.api.env["KUBE_URL"],
                    "certificate-authority": cls.api.env["KUBE_CA"]}}],
                "users": [{"name": "u", "user": {"token": answer["status"]["token"]}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}, f)

    def test_a_cluster(self):
        """A whole life: made, changed, deleted. Without the chart's rights the next one waits."""
        id_, _ = self.ready("chart1", pools={"worker": {"replicas": 0}})
        self.put(id_, self.order("chart1", {"fips": True}))
        self.until(id_, 200, "changed")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")
        there(self.api, ["upgrade", "hyperfleet-driver"],
              {"hypershift": {"enabled": True, "rbac": {"create": False}}})
        other = guresid("hs")
        self.put(other, self.order("chart2"))
        self.until_says(other, "Forbidden")


if __name__ == "__main__":
    real.main()
