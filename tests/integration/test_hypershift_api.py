"""The HyperShift adapter as a program of its own: `adapter hypershift --api URL`. The API is a
server of ours whose own adapter is off; the API server of Kubernetes is a fake.
"""
import http.client
import http.server
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from hypershift import PULL_SECRET, SECONDS, HyperShiftCase
from lib import (BASE, TIME_FACTOR, Client, Server, clean_env, eventually, free_port, guresid,
                 program)
from test_hypershift import Api

OUTPUTS = """adapters: {required: {cluster: [validation, hypershift],
                       nodepool: [validation, hypershift]}}
driver:
  outputs:
    values: {endpoint: "hypershift:/endpoint", kubeconfig_secret: "hypershift:/kubeconfig_secret"}
"""
SECRETS = OUTPUTS + """    secrets: {kubeconfig: "hypershift:/secrets/kubeconfig"}
"""


class Adapter(Server):
    """The program, `adapter hypershift`."""

    def command(self):
        return [program(), "adapter", "hypershift"] + list(self.flags)

    def _read(self, stream, is_log):
        for raw in stream:
            self.lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
            if is_log and '"msg":"ready"' in self.lines[-1]:
                self.ready.set()
        stream.close()


class ApiCase(HyperShiftCase):
    """The server keeps its port when it is restarted. Each test has a program of its own."""

    make_api = Api
    CONFIG = OUTPUTS
    MORE = ()

    @classmethod
    def start(cls, *more):
        super().start("--listen", "127.0.0.1:%d" % free_port(), *more)

    def setUp(self):
        super().setUp()
        self.adapter = Adapter(*self.adapter_flags()).start()

    def tearDown(self):
        try:
            if self.adapter is not None:
                self.adapter.close()
        finally:
            super().tearDown()

    @classmethod
    def flags(cls):
        path = os.path.join(cls.api.dir, "config.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(cls.CONFIG)
        return ("--config", path, "--log-level", "debug") + cls.FLAGS

    @classmethod
    def adapter_flags(cls, *more):
        path = os.path.join(cls.api.dir, "pull-secret.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PULL_SECRET)
        flags = super().flags()
        flags = flags[:len(flags) - len(cls.FLAGS)]
        return (*flags, "--api", "http://127.0.0.1:%d" % cls.server.port,
                "--hypershift-pull-secret-file", path, "--remote-watch", "1s",
                "--log-level", "debug", *cls.MORE, *more)

    def order(self, name, spec=None, pools=None, secrets=None):
        return super().order(name, spec, pools, secrets or {})

    def report(self, id_, adapter="hypershift"):
        cluster = self.client.get(BASE + "/clusters?search=labels.humanitec_guresid='%s'" % id_)
        items = cluster.json["items"]
        reports = self.client.get(items[0]["href"] + "/statuses").json["items"] if items else []
        return next((r for r in reports if r["adapter"] == adapter), None)


class Life(ApiCase):
    def test_life(self):
        """A whole life, with kill -9 of the program and of the server. Pools go before the cluster,
        and SIGTERM ends the program."""
        id_ = guresid("hs")
        pools = {"worker": {"replicas": 0}}
        self.operator.stop_at["api1"] = "InfrastructureReady"
        self.put(id_, self.order("api1", pools=pools))
        self.until_says(id_, "InfrastructureReady")
        uid = self.object("hostedclusters", "api1")["metadata"]["uid"]
        self.adapter.kill9()
        self.operator.stop_at["api1"] = "Available"
        self.adapter.start()
        self.until_says(id_, "waits for Available")
        self.server.restart()
        self.operator.stop_at.clear()
        values = self.until(id_, 200, "ready").json["resource"]["values"]
        self.assertEqual(values["endpoint"], "https://api.api1.example.com:6443")
        self.assertEqual(values["kubeconfig_secret"],
                         {"namespace": self.namespace, "name": "api1-admin-kubeconfig"})
        self.assertNotIn("secrets", self.report(id_)["data"])
        self.assertEqual(self.object("hostedclusters", "api1")["metadata"]["uid"], uid)
        pools["worker"]["labels"] = {"a": "b"}
        self.put(id_, self.order("api1", pools=pools))
        self.until(id_, 200, "changed")
        self.assertEqual(self.object("nodepools", "api1-worker")["spec"]["nodeLabels"], {"a": "b"})
        self.operator.keep.add("api1-worker")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until_says(id_, "api1-worker")
        self.adapter.restart()
        self.operator.keep.clear()
        self.until(id_, 404, "deleted")
        self.assertEqual(self.operator.deletions[-1], "hostedclusters/api1")
        self.assertEqual(self.adapter.sigterm(), 0)
        for text in ("S0VZ", "secret-of-api1", "bWU6bWU="):
            self.assertNotIn(text, "\n".join(self.server.lines + self.adapter.lines))

    def test_refusal_follows_the_list(self):
        """A refused manifest is the validation adapter's report, which the list makes terminal."""
        id_ = guresid("hs")
        spec = {"raw": {"hosted_cluster": {"spec": {"nosuch": True}}}}
        self.put(id_, self.order("api2", spec))
        answer = self.until(id_, 400, "refused").json
        self.assertEqual(answer["error"], "RES-104")
        self.assertIn("nosuch", answer["message"])

    def test_remote_backend(self):
        """A server with a remote backend, this program at the remote: a PUT ends in 200."""
        config = os.path.join(self.api.dir, "front.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(self.CONFIG)
        front = Server("--config", config, "--backend", "http://127.0.0.1:%d" % self.server.port,
                       "--remote-watch", "1s").start()
        client = Client(front)
        try:
            id_ = guresid("hs")
            path = "/clusters/" + id_
            answer = client.put(path, self.order("api3", pools={"worker": {"replicas": 0}}))
            self.assertEqual(answer.status, 202, answer)
            ready = eventually(lambda: client.get(path).status == 200 and client.get(path),
                               "ready", SECONDS)
            values = ready.json["resource"]["values"]
            self.assertEqual(values["endpoint"], "https://api.api3.example.com:6443")
            labels = self.object("hostedclusters", "api3")["metadata"]["labels"]
            self.assertEqual(labels["humanitec_guresid"], id_)
            self.assertEqual(client.delete(path).status, 202)
            eventually(lambda: client.get(path).status == 404, "deleted", SECONDS)
            self.assertIsNone(self.object("hostedclusters", "api3"))
        finally:
            client.close()
            front.close()


class TerminalReasons(ApiCase):
    FLAGS = ("--driver-terminal-reasons", "[SomethingElse]")

    def test_other_list(self):
        """A reason that the list lacks is waited for."""
        id_ = guresid("hs")
        self.put(id_, self.order("list1", {"raw": {"hosted_cluster": {"spec": {"nosuch": True}}}}))
        eventually(lambda: (self.report(id_, "validation") or {"conditions": [{}]})
                   ["conditions"][0].get("reason") == "InvalidManifest", "a report", SECONDS)
        self.assertEqual(self.get(id_).status, 202)


class Secrets(ApiCase):
    CONFIG = SECRETS
    MORE = ("--send-secrets",)

    def test_kubeconfig_is_sent(self):
        """With --send-secrets the kubeconfig is the resource's secret, and readers of the report do
        not see it. A new start without an API server does not lose it."""
        id_ = guresid("hs")
        self.put(id_, self.order("sec1"))
        answer = self.until(id_, 200, "ready").json["resource"]
        self.assertIn("api.sec1.example.com", answer["secrets"]["kubeconfig"])
        self.assertEqual(self.report(id_)["data"]["secrets"]["kubeconfig"], "[redacted]")
        self.api.down()
        try:
            self.adapter.restart()
            eventually(lambda: any("cannot watch" in line for line in self.adapter.lines),
                       "it tries", SECONDS)
            self.assertIn("kubeconfig", self.get(id_).json["resource"]["secrets"])
        finally:
            self.api.up()


class BuiltIn(ApiCase):
    """The server's own adapter is on as well. The program refuses orders without a release."""

    @classmethod
    def flags(cls):
        return super(ApiCase, cls).flags()

    @classmethod
    def adapter_flags(cls, *more):
        return super().adapter_flags("--hypershift-release-image", "", *more)

    def test_built_in_is_on(self):
        """The program's reports are 409, and it says so in the server's words."""
        self.operator.stop_at["both1"] = "Available"
        self.put(guresid("hs"), super().order("both1", secrets={"pull_secret": PULL_SECRET}))
        eventually(lambda: any("answered 409" in line and "hypershift" in line
                               for line in self.adapter.lines), "409", SECONDS)


class Ops(ApiCase):
    """Probes and metrics of the program, on the address of --ops-listen."""

    @classmethod
    def adapter_flags(cls, *more):
        return super().adapter_flags("--ops-listen", "127.0.0.1:0", *more)

    def setUp(self):
        super().setUp()
        found = eventually(lambda: [r for r in self.adapter.records()
                                    if r["msg"] == "probes and metrics are served"], "ops", SECONDS)
        self.ops = "http://127.0.0.1:%d" % found[-1]["port"]

    def ask(self, path):
        """(status, text)"""
        try:
            with urllib.request.urlopen(self.ops + path, timeout=SECONDS) as f:
                return f.status, f.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def until_ready(self, status, text):
        eventually(lambda: self.ask("/readyz")[0] == status and text in self.ask("/readyz")[1],
                   "%d %s" % (status, text), SECONDS)

    def test_probes(self):
        """/readyz follows both sides, in words; /livez does not. SIGTERM ends the program."""
        self.until_ready(200, "ok")
        self.api.down()
        try:
            self.until_ready(503, "management cluster")
            self.assertEqual(self.ask("/livez"), (200, '{"status":"ok"}'))
        finally:
            self.api.up()
        self.until_ready(200, "ok")
        self.server.kill9()
        self.until_ready(503, "HyperFleet cannot be read")
        self.server.start()
        self.until_ready(200, "ok")
        self.assertEqual(self.adapter.sigterm(), 0)

    def test_metrics(self):
        """Requests to both sides, visits, and which side answers."""
        id_ = guresid("hs")
        self.put(id_, self.order("ops1"))
        self.until(id_, 200, "ready")
        self.until_ready(200, "ok")
        status, text = self.ask("/metrics")
        self.assertEqual(status, 200)
        for name in ('hfd_kube_requests_total{method="PATCH",class="2xx"}',
                     'hfd_hypershift_visits_total{management="default",end="waits"}',
                     'hfd_hypershift_visits_total{management="default",end="done"}'):
            value = re.search("^%s ([0-9]+)$" % re.escape(name), text, re.M)
            self.assertGreater(int(value[1]) if value else 0, 0, name)
        for name in ('hfd_hypershift_management_up{management="default"} 1',
                     'hfd_hypershift_fleet_up{management="default"} 1', "hfd_build_info"):
            self.assertIn(name, text)

    def test_nothing_else(self):
        """There is nothing else on it, and no other listener."""
        for path in ("/", "/admin/orphans", "/docs", "/api/hyperfleet/v1/clusters", "/clusters/x"):
            self.assertEqual(self.ask(path)[0], 404, path)
        port = self.ops.rsplit(":", 1)[1]
        with open("/proc/%d/net/tcp" % self.adapter.proc.pid, encoding="ascii") as f:
            listening = {line.split()[9] for line in f if line.split()[3] == "0A"}
        folder = "/proc/%d/fd/" % self.adapter.proc.pid
        own = [os.readlink(folder + n) for n in os.listdir(folder)]
        inodes = {t[8:-1] for t in own if t.startswith("socket:[")} & listening
        self.assertEqual(len(inodes), 1, port)

    def test_address_in_use(self):
        """The program ends with words, and with the code of `serve`."""
        at = self.ops.split("//")[1]
        flags = [f if f != "127.0.0.1:0" else at for f in self.adapter_flags()]
        done = subprocess.run([program(), "adapter", "hypershift", *flags], env=clean_env(),
                              text=True, capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn(at, done.stderr)


class Refusals(ApiCase):
    def run_adapter(self, *flags):
        done = subprocess.run([program(), "adapter", *flags], env=clean_env(), text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        return done.returncode, done.stderr

    def test_flags(self):
        """The program asks by name for all that it needs."""
        flags = list(self.adapter_flags())
        for name, words in (("--api", "--api"), ("--hypershift-kubeconfig",
                                                 "hypershift.kubeconfig"),
                            ("--hypershift-pull-secret-file", "hypershift.pull_secret_file")):
            at = flags.index(name)
            status, said = self.run_adapter("hypershift", *flags[:at], *flags[at + 2:])
            self.assertEqual(status, 2, said)
            self.assertIn("expected " + words, said)
        status, said = self.run_adapter("dns", *flags)
        self.assertEqual(status, 2)
        self.assertIn("hypershift", said)

    def test_secrets_to_others(self):
        """--send-secrets is refused for an API that does not say that it is ours."""
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"info": {"title": "HyperFleet API"}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        thread = threading.Thread(target=other.serve_forever, daemon=True)
        thread.start()
        try:
            flags = list(self.adapter_flags("--send-secrets"))
            flags[flags.index("--api") + 1] = "http://127.0.0.1:%d" % other.server_port
            status, said = self.run_adapter("hypershift", *flags)
        finally:
            other.shutdown()
            other.server_close()
            thread.join()
        self.assertEqual(status, 2, said)
        self.assertIn("--send-secrets", said)


class Login(ApiCase):
    """The API wants a token."""

    @classmethod
    def adapter_flags(cls, *more):
        path = os.path.join(cls.api.dir, "token")
        with open(path, "w", encoding="utf-8") as f:
            f.write("hfd_" + "a" * 43 + "\n")
        return super().adapter_flags("--token-file", path, *more)

    def token(self, name):
        done = subprocess.run(
            [program(), "token", "create", "--name", name, "--scope", "adapter",
             *self.server.place.flags()],
            env=clean_env(), text=True, capture_output=True, check=True)
        return done.stdout

    def test_token(self):
        """401 in words; a token file that is mended is read again."""
        self.token("other")  # from now on the API wants one
        eventually(lambda: any("HyperFleet answered 401 (the token" in line
                               and "remote.token_file" in line for line in self.adapter.lines),
                   "401 in words", SECONDS)
        path = os.path.join(self.api.dir, "token")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(self.token("hs"))
        os.rename(path + ".new", path)
        eventually(lambda: any("works again" in line for line in self.adapter.lines), "mended",
                   SECONDS)


class Proxy(http.server.ThreadingHTTPServer):
    """Stands between the program and the API. `answer(path)` gives (status, document) in place of
    the API's answer, or None. Requests are kept as (time, path)."""
    daemon_threads = True

    def __init__(self, port):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.server.forward(self)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.port, self.requests = port, []
        self.answer, self.hides_cursor = (lambda path: None), False
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def forward(self, handler):
        path = handler.path[len(BASE):]
        self.requests.append((time.monotonic(), path))
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        own, headers = self.answer(path), {"Content-Type": "application/json"}
        if own is not None:
            status, text = own[0], json.dumps(own[1]).encode()
        else:
            conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
            conn.request(handler.command, handler.path, body, dict(handler.headers))
            got = conn.getresponse()
            status, text = got.status, got.read()
            headers = {k: v for k, v in got.getheaders() if k in ("Content-Type", "Events-Cursor")}
            conn.close()
        if self.hides_cursor:
            headers.pop("Events-Cursor", None)
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def handle_error(self, request, client_address):
        pass  # one of the two sides has gone

    def of(self, prefix):
        return [(at, path) for at, path in self.requests if path.startswith(prefix)]

    def lists(self):
        return self.of("/clusters?") + self.of("/nodepools?")

    def polls(self):
        return self.of("/events?")

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Watch(ApiCase):
    """The program waits for events of the API, and lists where there are none."""

    def setUp(self):
        self.adapter = None
        HyperShiftCase.setUp(self)
        self.proxy = Proxy(self.server.port)

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            self.proxy.close()

    def begin(self, watch):
        flags = list(self.adapter_flags("--remote-watch", watch))
        flags[flags.index("--api") + 1] = "http://127.0.0.1:%d" % self.proxy.server_port
        self.adapter = Adapter(*flags).start()

    def said(self, text):
        return [r for r in self.adapter.records() if text in r["msg"]]

    def live(self, name):
        """A cluster is made, changed and deleted."""
        id_ = guresid("hs")
        pools = {"worker": {"replicas": 0}}
        self.put(id_, self.order(name, pools=pools))
        self.until(id_, 200, "ready")
        pools["worker"]["labels"] = {"a": "b"}
        self.put(id_, self.order(name, pools=pools))
        self.until(id_, 200, "changed")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")

    def test_events(self):
        """With an interval of an hour a whole life passes, and no list is asked."""
        self.begin("1h")
        eventually(self.proxy.polls, "a poll", SECONDS)
        lists = self.proxy.lists()
        start = time.monotonic()
        self.operator.stop_at["ev1"] = "Available"
        self.put(guresid("hs"), self.order("ev1"))
        eventually(lambda: self.object("hostedclusters", "ev1"), "made", SECONDS)
        self.assertLess(time.monotonic() - start, 30 * TIME_FACTOR)
        self.live("ev2")
        self.assertEqual(self.proxy.lists(), lists)
        self.assertEqual(len(self.said("sends events")), 1)
        self.assertEqual(self.said("sends no events"), [])

    def test_without_events(self):
        """An API whose lists have no cursor is listed, and never asked for events."""
        self.proxy.hides_cursor = True
        self.begin("1s")
        self.live("no1")
        self.assertEqual(self.proxy.polls(), [])
        self.assertGreater(len(self.proxy.lists()), 3)
        self.assertEqual(len(self.said("sends no events")), 1)

    def test_no_such_path(self):
        """404 for the events: they are asked for once."""
        self.proxy.answer = lambda path: (404, {}) if path.startswith("/events") else None
        self.begin("1s")
        self.live("no2")
        self.assertEqual(len(self.proxy.polls()), 1)
        self.assertGreater(len(self.proxy.lists()), 3)
        self.assertEqual(len(self.said("sends no events")), 1)

    def test_cursor_is_too_old(self):
        """410: all is listed again, and what that list shows is acted on."""
        gone = threading.Event()

        def answer(path):
            if not path.startswith("/events") or gone.is_set():
                return None
            self.put(guresid("hs"), self.order("old1"))
            gone.set()
            return 410, {"detail": "not kept any more"}

        self.operator.stop_at["old1"] = "Available"
        self.proxy.answer = answer
        self.begin("1h")
        eventually(lambda: self.object("hostedclusters", "old1"), "made", SECONDS)
        self.assertEqual(len(self.proxy.of("/clusters?")), 2)
        eventually(lambda: len(self.proxy.polls()) == 2, "a poll again", SECONDS)
        self.live("old2")

    def test_nothing_is_held(self):
        """An API that ends each poll at once is asked again after growing pauses, and is listed."""
        self.proxy.answer = lambda path: ((200, {"items": [], "next": "1"})
                                          if path.startswith("/events") else None)
        self.begin("1s")
        self.live("at1")
        polls = eventually(lambda: len(self.proxy.polls()) >= 4 and self.proxy.polls(), "4 polls",
                           SECONDS)
        self.assertGreater(polls[3][0] - polls[0][0], 5)  # 1, 2 and 4 s, less a quarter
        self.assertGreater(len(self.proxy.lists()), 3)
        self.assertEqual(len(self.said("sends no events")), 1)

    def test_server_restarts(self):
        """A kill -9 of the server ends the poll. Later changes are acted on; events come again."""
        self.begin("1h")
        eventually(self.proxy.polls, "a poll", SECONDS)
        self.server.kill9()
        eventually(lambda: self.said("sends no events"), "it has ended", SECONDS)
        self.server.start()
        self.live("re1")
        eventually(lambda: self.said("sends events"), "events again", SECONDS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
