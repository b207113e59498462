#!/usr/bin/env python3
"""HyperFleet's own sentinel and adapter against our API, over RabbitMQ. They bring a cluster with a
nodepool from the order through a change to its end, and are quiet in between.

Without the sentinel our server sends the events, and lives are short.

Both are built from their published source. Their ports are constants, so each runs in a box.
"""
import json
import os
import re
import shutil
import socket
import statistics
import tempfile
import time

import box
import rabbitmq
import real
from lib import Case, changed, cluster_input, eventually, guresid

SENTINEL = ("github.com/openshift-hyperfleet/hyperfleet-sentinel",
            "445ecb0a84a7db0b3271b2f544a7310f35c5bc02")
ADAPTER = ("github.com/openshift-hyperfleet/hyperfleet-adapter",
           "3f746a57cb42ffa295bbc0d1181c1257ed270a65")
LIFE_S = 180
LIVES = int(os.environ.get("LIVES", "5"))
API, METRICS = 8000, 9090

# As the sentinel's example for development, with shorter times.
SENTINEL_YAML = """
sentinel: {name: %(plural)s}
log: {level: debug, format: json}
tracing_enabled: false
clients:
  hyperfleet_api: {base_url: "http://127.0.0.1:8000", version: v1, timeout: 10s}
  broker: {topic: %(plural)s}
resource_type: %(plural)s
poll_interval: 500ms
message_decision:
  params:
    - {name: ref_time, expr: 'condition("Reconciled").last_updated_time'}
    - {name: is_reconciled, expr: 'condition("Reconciled").status == "True"'}
    - {name: has_ref_time, expr: 'ref_time != ""'}
    - {name: is_new_resource, expr: 'resource.generation == 1 && !has_ref_time'}
    - name: generation_mismatch
      expr: 'resource.generation > condition("Reconciled").observed_generation'
    - name: reconciled_and_stale
      expr: 'is_reconciled && has_ref_time && now - timestamp(ref_time) > duration("30m")'
    - name: not_reconciled_and_debounced
      expr: '!is_reconciled && has_ref_time && now - timestamp(ref_time) > duration("1s")'
  result: >-
    is_new_resource || generation_mismatch || reconciled_and_stale || not_reconciled_and_debounced
message_data:
  id: "resource.id"
  kind: "resource.kind"
  href: "resource.href"
  generation: "resource.generation"
"""
OWNER_YAML = """  owner_references:
    id: "resource.owner_references.id"
    href: "resource.owner_references.href"
    kind: "resource.owner_references.kind"
"""
ADAPTER_YAML = """
adapter: {name: %(name)s, version: "%(version)s"}
log: {level: info}
clients:
  hyperfleet_api:
    {base_url: "http://127.0.0.1:8000", version: v1, timeout: 10s, retry_attempts: 3,
     retry_backoff: exponential}
  broker: {subscription_id: %(name)s, topic: %(plural)s}
  kubernetes: {api_version: v1, kube_config_path: %(kubeconfig)s}
"""
TASK_YAML = """
params:
  - {name: id, source: event.id, type: string, required: true}
%(owner)s
  - name: seen
    source:
      api_call: {method: GET, url: "%(url)s", timeout: 10s}
  - {name: generation, source: seen.generation}
  - name: is_deleting
    source: {expression: "seen.?deleted_time.hasValue()"}
post:
  payloads:
    - name: status
      build:
        adapter: "{{ .adapter.name }}"
        conditions:
          - {type: Applied, status: "True", reason: Nothing, message: "there is nothing to apply"}
          - type: Available
            status: {expression: 'is_deleting ? "False" : "True"'}
            reason: Said
            message: "by the real adapter"
          - {type: Health, status: "True", reason: Healthy, message: ""}
          - type: Finalized
            status: {expression: 'is_deleting ? "True" : "False"'}
            reason: ""
            message: ""
        observed_generation: {expression: generation}
        observed_time: '{{ now | date "2006-01-02T15:04:05Z07:00" }}'
  post_actions:
    - name: report
      api_call:
        method: PUT
        url: "%(url)s/statuses"
        headers: [{name: Content-Type, value: application/json}]
        body: "{{ .status }}"
"""
OWNER_PARAM = "  - {name: owner, source: event.owner_references.id, type: string, required: true}"
# The client is made before anything is applied, and nothing is.
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
"""
BROKER_YAML = """
broker:
  type: rabbitmq
  rabbitmq: {url: "amqp://guest:guest@127.0.0.1:5672/", exchange_type: topic}
subscriber: {parallelism: 1}
"""


def built(module, package, *before):
    """A program of a Go module that is built from its source.

    before -- commands of make
    """
    path, commit = module
    name = path.rsplit("/", 1)[1]
    go = real.find("go", "install Go 1.26 or later")
    if before:
        real.debian("make")

    def commands(folder):
        return real.go_source(path, commit, folder) + \
            [["make", "-C", folder, target] for target in before] + \
            [[go, "build", "-C", folder, "-o", "made/" + name, package]]
    return real.install("%s-%s" % (name, commit[:12]), commands, "made/" + name)


class Upstream(Case):
    """Our server and upstream's adapters, over a broker."""

    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("pools",)

    @classmethod
    def setUpClass(cls):
        words = rabbitmq.need()
        cls.programs()
        cls.folder = tempfile.mkdtemp(prefix="hfd-box-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.words, cls.boxes = words, {}
        broker = rabbitmq.Broker(cls.folder, words)
        broker.start()
        cls.addClassCleanup(broker.kill)
        cls.amqp = broker.path
        cls.configure()
        super().setUpClass()
        cls.addClassCleanup(cls.server.close)
        cls.api = os.path.join(cls.folder, "api")
        cls.addClassCleanup(box.door_out(cls.api, cls.server.port).close)
        for name in cls.ADAPTERS:
            cls.adapter(name, "clusters")
        cls.adapter("pools", "nodepools")

    @classmethod
    def programs(cls):
        cls.adapter_program = built(ADAPTER, "./cmd/adapter")

    @classmethod
    def configure(cls):
        """Settings of the server, before it starts."""

    @classmethod
    def tearDownClass(cls):
        pass  # by cleanups, as a skipped class has no server

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    @classmethod
    def start(cls, name, command):
        started = box.Box(cls.words, os.path.join(cls.folder, name + ".log"), command,
                          [("--in", "%d=%s" % (rabbitmq.AMQP, cls.amqp)),
                           ("--in", "%d=%s" % (API, cls.api)),
                           ("--out", "%s=%d" % (cls.metrics_of(name), METRICS))],
                          {"BROKER_CONFIG_FILE": cls.write("broker.yaml", BROKER_YAML)})
        cls.addClassCleanup(started.close)
        cls.boxes[name] = started

    @classmethod
    def metrics_of(cls, name):
        return os.path.join(cls.folder, name + ".metrics")

    @classmethod
    def adapter(cls, name, plural):
        program, pool = cls.adapter_program, plural == "nodepools"
        config = ADAPTER_YAML % {
            "name": name, "plural": plural, "version": cls.version_of(program),
            "kubeconfig": cls.write("kubeconfig", KUBECONFIG)}
        task = TASK_YAML % {
            "owner": OWNER_PARAM if pool else "",
            "url": "/clusters/{{ .owner }}/nodepools/{{ .id }}" if pool else "/clusters/{{ .id }}"}
        cls.start(name, [program, "serve", "--config", cls.write(name + "-config.yaml", config),
                         "--task-config", cls.write(name + "-task.yaml", task)])

    @classmethod
    def version_of(cls, program):
        """Config and program must have the same version."""
        found = re.search(r"Version: +(\S+)", real.run([program, "version"]))
        return found.group(1) if found else "0.0.0"

    def _formatMessage(self, msg, standardMsg):
        return super()._formatMessage(msg, standardMsg) + "".join(
            "\n%s: %s" % (name, b.text()[-1500:]) for name, b in self.boxes.items())

    def settled(self, request, status):
        """Polls as an orchestrator does until the answer is no 202."""
        def probe():
            for name, started in self.boxes.items():
                self.assertIsNone(started.proc.poll(), name + " ended by itself")
            answer = request()
            return answer if answer.status != 202 else None
        try:
            answer = eventually(probe, "the end of the operation", LIFE_S, 0.01)
        except AssertionError as e:
            self.fail(str(e))
        self.expect(answer, status)
        return answer


class Sentinel(Upstream):
    """With the sentinel, as upstream is installed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for plural in ("clusters", "nodepools"):
            cls.sentinel(cls.sentinel_program, plural)

    @classmethod
    def programs(cls):
        super().programs()
        cls.sentinel_program = built(SENTINEL, "./cmd/sentinel", "generate")

    @classmethod
    def sentinel(cls, program, plural):
        text = SENTINEL_YAML % {"plural": plural} + (OWNER_YAML if plural == "nodepools" else "")
        cls.start("sentinel-" + plural,
                  [program, "serve", "--config", cls.write(plural + ".yaml", text)])

    def counted(self, plural, name):
        """The sum of a sentinel's counter."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.metrics_of("sentinel-" + plural))
            s.sendall(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        self.assertIn("hyperfleet_sentinel_", text)
        return sum(float(n) for n in re.findall(r"^%s\{.*\} (\S+)$" % name, text, re.M))

    def quiet(self, plural):
        """The sentinel polls on and has nothing to say."""
        published = "hyperfleet_sentinel_events_published_total"
        skipped = "hyperfleet_sentinel_resources_skipped_total"
        for _ in range(3):  # it may have had something to say of before
            was, polled = self.counted(plural, published), self.counted(plural, skipped)
            self.assertGreater(was, 0)
            eventually(lambda at=polled: self.counted(plural, skipped) >= at + 3,
                       "three more polls", LIFE_S, 0.2)
            if self.counted(plural, published) == was:
                return
        self.fail("the sentinel of %s goes on to publish" % plural)

    def test_life(self):
        """Order, change, deletion: each is finished by what the adapters report. While all is
        reconciled, no event is sent.
        """
        gid = guresid()
        order = cluster_input("life", nodepools=[{"name": "workers", "spec": {"replicas": 1}}])
        self.expect(self.put(gid, order), 202)
        self.settled(lambda: self.get(gid), 200)
        (cluster,), (pool,) = self.fleet.of(gid)
        for path, adapters in (("/clusters/" + cluster["id"], ["dns", "validation"]),
                               ("/nodepools/" + pool["id"], ["pools"])):
            statuses = self.fleet.list(path + "/statuses")
            self.assertEqual(sorted(s["adapter"] for s in statuses), adapters)
            for status in statuses:
                self.assertIn("by the real adapter", json.dumps(status))
        for plural in ("clusters", "nodepools"):
            self.quiet(plural)

        self.expect(self.put(gid, changed(order)), 202)
        self.settled(lambda: self.get(gid), 200)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 2)
        self.expect(self.delete(gid), 202)
        self.settled(lambda: self.delete(gid), 204)
        self.expect(self.get(gid), 404)


class Alone(Upstream):
    """Without a sentinel: our server sends the events to the broker by itself. LIVES=N says how
    many lives there are, 5 by default.
    """

    @classmethod
    def configure(cls):
        listener = socket.create_server(("127.0.0.1", 0))
        cls.addClassCleanup(listener.close)
        box.serve(listener, box.to_path(cls.amqp))
        cls.FLAGS = ("--events-amqp-url", "amqp://127.0.0.1:%d/" % listener.getsockname()[1],
                     "--events-amqp-exchange-cluster", "clusters",
                     "--events-amqp-exchange-nodepool", "nodepools")

    def test_lives(self):
        ready, gone = [], []
        for i in range(LIVES + 1):
            gid = guresid("life")
            order = cluster_input(gid[:20].rstrip("-"), nodepools=[{"name": "workers", "spec": {}}])
            began = time.monotonic()
            self.expect(self.put(gid, order), 202)
            self.settled(lambda g=gid: self.get(g), 200)
            middle = time.monotonic()
            self.expect(self.delete(gid), 202)
            self.settled(lambda g=gid: self.delete(g), 204)
            if i > 0:  # by then the adapters are there
                ready.append(middle - began)
                gone.append(time.monotonic() - middle)
        for name, all_ in (("create to ready", ready), ("delete to gone", gone)):
            all_.sort()
            print("%s, %d lives, three of upstream's adapters over RabbitMQ: p50 %.0f ms, p99 %.0f "
                  "ms, longest %.0f ms" % (name, LIVES, 1000 * statistics.median(all_),
                                           1000 * all_[len(all_) * 99 // 100], 1000 * all_[-1]))


if __name__ == "__main__":
    real.main()
