"""The HyperShift adapter against a real Kubernetes API server with HyperShift's own CRDs.

The server is the Go program in `kubernetes/harness` of the folder with test data (CMake variable
HFD_SHARED). It is built once, in about 5 minutes, and kept.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import real
import yaml
from fake_kube import PARTS
from hypershift import Cases, HyperShiftCase
from kube import Kube
from lib import ROOT, eventually, guresid
from ports import free_ports

START_S = 60
STARTS = 3


def harness():
    """The program, and the folder of the CRDs."""
    shared = os.environ.get("HFD_SHARED", "")
    source = os.path.join(shared, "kubernetes", "harness")
    if not os.path.isdir(source):
        real.skip("there is no folder kubernetes/harness in HFD_SHARED")
    folder = os.path.join(os.environ.get("HFD_REAL_CACHE", tempfile.gettempdir()), "kubeharness")
    program = os.path.join(folder, "kubeharness")
    if not os.access(program, os.X_OK):
        if shutil.which("go") is None:
            real.skip("there is no Go tool chain (1.26 or later) to build the API server")
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for name in os.listdir(folder):
            os.chmod(os.path.join(folder, name), 0o755)
        built = subprocess.run(["sh", "./build.sh"], cwd=folder, capture_output=True, text=True,
                               timeout=1400, check=False)
        if built.returncode != 0:
            real.skip("the API server cannot be built: " + built.stderr[-300:])
    return program, os.path.join(shared, "kubernetes", "crds")


class Api:
    """A real API server. crds: a folder, in place of that of the harness"""

    def __init__(self, crds=None):
        program, own = harness()
        self.dir = tempfile.mkdtemp(prefix="hfd-kube-real-")
        self.state = os.path.join(self.dir, "state")
        for left in reversed(range(STARTS)):
            if self._start(program, crds or own):
                break
            with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as f:
                said = "the API server does not start: " + f.read()[-2000:]
            self._stop()
            if left == 0:
                shutil.rmtree(self.dir, ignore_errors=True)
                raise AssertionError(said)
            print(said, file=sys.stderr)
        with open(os.path.join(self.state, "env"), encoding="utf-8") as f:
            self.env = dict(line.strip().split("=", 1) for line in f if "=" in line)
        self.kubeconfig = self.env["KUBECONFIG"]

    def _start(self, program, crds):
        """True when it is ready. On a busy machine it was seen once to wait without an end."""
        with open(os.path.join(self.dir, "log"), "wb") as log:
            self.proc = subprocess.Popen(
                [program, "-port", str(free_ports(3)), "-dir", self.state, "-crds", crds],
                stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while not os.path.exists(os.path.join(self.state, "env")):
            if self.proc.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def client(self):
        return Kube(self.env["KUBE_URL"], self.env["KUBE_TOKEN"], self.env["KUBE_CA"])

    def add_parts(self):
        """Installs CRDs of the kinds that HyperShift's operator makes, and waits until the server
        has them. They take any content."""
        kube = self.client()
        for plural, kind in PARTS.items():
            group = "hypershift.openshift.io" if kind == "HostedControlPlane" else \
                "cluster.x-k8s.io"
            free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            kube.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s.%s"
                       % (plural, group), {
                           "apiVersion": "apiextensions.k8s.io/v1",
                           "kind": "CustomResourceDefinition",
                           "metadata": {"name": "%s.%s" % (plural, group)},
                           "spec": {"group": group, "scope": "Namespaced",
                                    "names": {"plural": plural, "kind": kind,
                                              "singular": kind.lower()},
                                    "versions": [{"name": "v1beta1", "served": True,
                                                  "storage": True,
                                                  "schema": {"openAPIV3Schema": free}}]}})
        for plural, kind in PARTS.items():
            group = "hypershift.openshift.io" if kind == "HostedControlPlane" else \
                "cluster.x-k8s.io"
            eventually(lambda g=group, p=plural: kube.request(
                "GET", "/apis/%s/v1beta1/%s" % (g, p))[0] == 200, "kind " + kind, START_S)
        kube.close()

    def _stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(30)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()

    def close(self):
        self._stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class Real(Cases, HyperShiftCase):
    make_api = Api


class Rights(HyperShiftCase):
    """An account with exactly the rights of the manual's page."""

    make_api = Api
    USER = "nobody"  # of the harness: a token without any rights

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api.kubeconfig = os.path.join(cls.api.dir, "narrow")
        with open(cls.api.kubeconfig, "w", encoding="utf-8") as f:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "clusters": [{"name": "c", "cluster": {
                    "server": cls.api.env["KUBE_URL"],
                    "certificate-authority": cls.api.env["KUBE_CA"]}}],
                "users": [{"name": "u", "user": {"token": cls.api.env["KUBE_TOKEN_NOBODY"]}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}, f)

    @staticmethod
    def role():
        """The ClusterRole of handlers/docs/hypershift.md."""
        page = os.path.join(os.environ.get("HFD_SOURCE_DIR", ROOT), "handlers/docs/hypershift.md")
        with open(page, encoding="utf-8") as f:
            text = re.search(r"^```text\n(apiVersion: rbac.*?)^```$", f.read(), re.M | re.S)[1]
        return yaml.safe_load(text)

    def give(self, rules):
        base = "/apis/rbac.authorization.k8s.io/v1/"
        role = dict(self.role(), rules=rules)
        status, answer = self.kube.apply(base + "clusterroles/hyperfleet-driver", role)
        self.assertIn(status, (200, 201), answer)
        status, answer = self.kube.apply(base + "clusterrolebindings/hyperfleet-driver", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "hyperfleet-driver"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "hyperfleet-driver"},
            "subjects": [{"kind": "User", "name": self.USER,
                          "apiGroup": "rbac.authorization.k8s.io"}]})
        self.assertIn(status, (200, 201), answer)

    def live(self, name):
        """A whole life: made, changed, deleted."""
        id_, _ = self.ready(name, pools={"worker": {"replicas": 0}})
        self.put(id_, self.order(name, {"fips": True}))
        self.until(id_, 200, "changed")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")

    def tree(self, name):
        """The tree of a cluster, by a server that has asked for no kind yet."""
        self.start()
        id_, _ = self.ready(name)
        return self.entries(id_)[name]["detail"]["tree"]

    def test_tree_without_rights(self):
        """Without the rules for the tree all else works, and the tree says what it lacks."""
        self.api.add_parts()
        self.give([r for r in self.role()["rules"] if r["verbs"] != ["list"]])
        tree = self.tree("narrow3")
        self.assertEqual({(n["kind"], n["reason"]) for n in tree["not_shown"]},
                         {(kind, "Forbidden") for kind in PARTS.values()})
        self.assertIn("cannot list resource", tree["not_shown"][0]["message"])

    def test_rights_of_the_manual(self):
        """Without rights nothing is made, and the answer says so; with those of the manual a whole
        life works."""
        self.api.add_parts()
        self.give([])
        self.start()
        id_ = guresid("hs")
        self.put(id_, self.order("narrow0"))
        self.until_says(id_, "Forbidden")
        self.give(self.role()["rules"])
        self.until(id_, 200, "ready")
        self.live("narrow1")
        self.assertNotIn("not_shown", self.tree("narrow2"))
        self.assertFalse([r for r in self.server.records()
                          if "cannot watch" in r["msg"] and "forbidden" not in r["reason"]])


if __name__ == "__main__":
    real.main()
