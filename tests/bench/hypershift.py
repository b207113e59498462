"""`./dev bench hypershift`: clusters under one reconciler of the HyperShift adapter.

The API server is the tests' fake, in this process. HyperShift is played by its store: an object has
its last status as soon as it is written. So the figures are the program's own. Standard library
only.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import fake_kube  # noqa: E402
import kube  # noqa: E402

FEW, MANY = 100, 1000
QUICK = (10, 30)
WAIT_S = 600
RESYNC = "30s"  # of clusters that are ready; a twentieth of the default
NAMESPACE = "clusters"
CONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "x",
          "users": [{"name": "u", "user": {"token": "a-token"}}],
          "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}


class Stops(dict):
    """The stage at which all clusters stop; None: at none."""

    stage = None

    def get(self, key, default=None):
        return self.stage


class Status(kube.Operator):
    """The statuses of the tests' operator, without its thread."""

    def __init__(self):
        self.namespace, self.stop_at, self.partial = NAMESPACE, Stops(), set()


class Store(fake_kube.Store):
    """Objects get their last status when they are written."""

    def __init__(self):
        super().__init__()
        self.status = Status()

    def put(self, key, doc, was=None):
        done = super().put(key, doc, was)
        if key in self.objects and key[0] in ("hostedclusters", "nodepools"):
            done = self.finish(key, done)
        return done

    def finish(self, key, doc):
        """Writes the status that belongs to an object."""
        cluster = key[0] == "hostedclusters"
        status = (self.status._status if cluster else self.status._pool_status)(doc)
        if cluster and "kubeconfig" in status:
            self.publish(key)
        return super().put(key, dict(doc, metadata=dict(doc["metadata"]), status=status), doc)

    def publish(self, key):
        for suffix, member in (("admin-kubeconfig", "kubeconfig"),
                               ("kubeadmin-password", "password")):
            secret = ("secrets", key[1], "%s-%s" % (key[2], suffix))
            if secret not in self.objects:
                super().put(secret, self.create(secret, {
                    "apiVersion": "v1", "kind": "Secret", "metadata": {},
                    "data": {member: "Y29uZmln"}}))

    def go_on(self):
        """All objects pass all stages."""
        self.status.stop_at.stage = None
        with self.lock:
            for key, doc in list(self.objects.items()):
                if key[0] in ("hostedclusters", "nodepools"):
                    self.finish(key, doc)


class Api(fake_kube.FakeKube):
    def __init__(self, folder):
        super().__init__()
        self.store = Store()
        self.kubeconfig = os.path.join(folder, "kubeconfig-%d" % self.port)
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            json.dump(dict(CONFIG, clusters=[{"name": "c", "cluster": {"server": self.url}}]), f)


def order(name):
    return {"type": "hyperfleet-cluster", "driver": {
        "secrets": {"pull_secret": '{"auths":{}}'},
        "values": {"cluster": {"name": name, "spec": {
            "platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}},
            "nodepools": [{"name": "workers", "spec": {
                "replicas": 2, "platform": {"kubevirt": {"compute": {"cores": 2}}}}}]}}}


class Run:
    """A number of clusters with one nodepool each: made, left alone, deleted."""

    def __init__(self, bench, server, count):
        self.bench, self.count = bench, count
        self.api = Api(bench.dir)
        server.flags = ["--hypershift-kubeconfig", self.api.kubeconfig,
                        "--hypershift-namespace", NAMESPACE,
                        "--hypershift-release-image", "quay.io/ocp-release:4.20.0-x86_64"]
        self.server = server
        server.start()

    def close(self):
        self.server.stop()
        self.api.close()

    def took(self, act, wait):
        """(processor seconds, requests to the API server, seconds) of what is done and awaited."""
        cpu, requests, began = self.server.cpu_s(), len(self.api.requests), time.monotonic()
        act()
        wait()
        return (self.server.cpu_s() - cpu, len(self.api.requests) - requests,
                time.monotonic() - began)

    def until(self, what, reached):
        end = time.monotonic() + WAIT_S
        while not reached():
            if time.monotonic() > end:
                raise RuntimeError("hypershift: not within %d s: %s" % (WAIT_S, what))
            time.sleep(0.1)

    def resources(self, state):
        return self.server.counter(r'hfd_resources\{[^}]*state="%s"\}' % state)

    def put_all(self):
        for i in range(self.count):
            self.server.send("PUT", "/bench-%d" % i, order("bench-%d" % i))

    def delete_all(self):
        for i in range(self.count):
            self.server.send("DELETE", "/bench-%d" % i, {})

    def waits(self):
        """All HostedClusters and NodePools are there, and the adapter has looked at them."""
        self.until("all objects", lambda: sum(
            1 for k in list(self.api.store.objects) if k[0] in ("hostedclusters", "nodepools"))
            == 2 * self.count)
        self.calm()

    def calm(self):
        """Waits for two seconds with few requests; quickly, for less."""
        def quiet():
            before = len(self.api.requests)
            time.sleep(0.3 if self.bench.o.quick else 2)
            return len(self.api.requests) - before <= self.count / 2
        self.until("quiet", quiet)

    def restart(self, *flags):
        """Starts the server with more flags. It looks at all objects once."""
        self.server.stop()
        self.server.flags += flags
        self.server.start()
        self.until("all ready", lambda: self.resources("ready") == self.count)
        self.calm()

    def measure(self, seconds):
        out = {}
        self.api.store.status.stop_at.stage = "Available"
        out["apply"] = self.took(self.put_all, self.waits)
        out["waiting"] = self.took(lambda: time.sleep(seconds), lambda: None)
        out["finish"] = self.took(self.api.store.go_on, lambda: self.until(
            "all ready", lambda: self.resources("ready") == self.count))
        self.restart("--hypershift-resync", RESYNC)
        out["ready"] = self.took(lambda: time.sleep(seconds), lambda: None)
        out["rss"] = self.server.rss_mib()
        out["delete"] = self.took(self.delete_all, lambda: self.until(
            "all gone", lambda: not self.resources("deleting") and not self.resources("ready")))
        out["left"] = sum(1 for k in list(self.api.store.objects)
                          if k[0] in ("hostedclusters", "nodepools"))
        return out


def run_of(bench, make, count, seconds):
    run = Run(bench, make("hypershift-%d" % count), count)
    try:
        out = run.measure(seconds)
    finally:
        run.close()
    if out["left"]:
        raise RuntimeError("hypershift: %d objects are left" % out["left"])
    return out


def measure(bench, make):
    """Adds the rows. `make` gives a server that is not started, with an empty store of a name."""
    few_count, many_count = QUICK if bench.o.quick else (FEW, MANY)
    seconds = 0.5 if bench.o.quick else 60
    few = run_of(bench, make, few_count, seconds)
    many = run_of(bench, make, many_count, seconds)
    first = len(bench.rows)
    total = lambda out, at: sum(out[part][at] for part in ("apply", "finish"))
    named = "with %d" % few_count
    bench.row("hypershift", "processor time to make a cluster with a nodepool, among %d"
              % many_count, "ms", [1e3 * total(many, 0) / many_count], named,
              [1e3 * total(few, 0) / few_count], 2, "<",
              note="%.1f requests to the API server for each; all within %.1f s"
              % (total(many, 1) / many_count, total(many, 2)))
    for part, what in (("waiting", "that wait for a gate"),
                       ("ready", "that are ready, with hypershift.resync %s" % RESYNC)):
        cpu, requests, took = many[part]
        cpu_few, _, took_few = few[part]
        bench.row("hypershift/" + part, "processor time for %d clusters %s, of a core"
                  % (many_count, what), "%", [100 * cpu / took], named,
                  [100 * cpu_few / took_few],
                  note="%.1f requests/s to the API server" % (requests / took))
    bench.row("hypershift/delete", "processor time to delete one", "ms",
              [1e3 * many["delete"][0] / many_count], named,
              [1e3 * few["delete"][0] / few_count],
              note="%.1f requests to the API server for each; all within %.1f s"
              % (many["delete"][1] / many_count, many["delete"][2]))
    bench.row("hypershift/memory", "resident with %d clusters" % many_count, "MiB", [many["rss"]],
              named, [few["rss"]])
    for row in bench.rows[first:]:
        row["resources"] = many_count
