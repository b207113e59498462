"""A remote backend at the program's doors: one instance drives another, and both are killed; what
is served, told, logged; bad remotes.
"""
import http.server
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import lib
import test_openapi

FAST = ("--remote-watch", "1s", "--remote-fresh", "1s", "--remote-retry-max", "2s")
LIFE = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool", "validation")


class Scripted:
    """A server that answers each request with what `answer(path, headers)` gives: status, content
    type, text; None hangs.
    """

    def __init__(self, answer):
        outer = self
        self.requests = []
        self.over = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                made = answer(self.path, self.headers)
                if made is None:
                    outer.over.wait()
                    self.close_connection = True
                    return
                status, kind, text = made
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = "http://127.0.0.1:%d/" % self.httpd.server_address[1]
        self.thread = threading.Thread(target=self.httpd.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.httpd.shutdown()
        self.httpd.server_close()


EMPTY = (200, "application/json", '{"kind":"ClusterList","page":1,"size":0,"total":0,"items":[]}')


def driver_of(url, *flags, data=None):
    return lib.Server("--backend", url, *FAST, *LIFE, *flags, data=data)


def ops_get(server, path):
    client = lib.Client(server, ops=True)
    try:
        return client.get(path)
    finally:
        client.close()


def put(server, gid, body):
    client = lib.Client(server)
    try:
        return client.put("/" + gid, body)
    finally:
        client.close()


def remote_health(server):
    return ops_get(server, "/healthz").json["remote"]


def metric(server, line):
    return ("\n%s\n" % line).encode() in ops_get(server, "/metrics").body


def doctor(url, *flags):
    """Exit status and the part of its line on the remote that is known beforehand."""
    with tempfile.TemporaryDirectory(prefix="hfd-it-") as folder:
        done = subprocess.run([lib.program(), "doctor", "--new", "--backend", url, "--data",
                               folder, *flags],
                              env=lib.clean_env(),
                              capture_output=True, text=True, timeout=60, check=False)
    line = next(text for text in done.stdout.splitlines() if text.startswith("remote "))
    known = ("answers as a HyperFleet without clusters", "with condition Reconciled",
             "refuses our credentials with status 401",
             "is not a HyperFleet API", "answers with an error: status 503", "and no JSON",
             "without a list of clusters", "could not connect",
             "cannot be asked: remote.token_file")
    return done.returncode, next((text for text in known if text in line), line)


class Life(unittest.TestCase):
    """Two instances. `fleet` is the remote HyperFleet, which keeps its port; `driver` drives it."""

    def setUp(self):
        port = lib.free_port()
        self.fleet = lib.Server(*LIFE, "--listen", "127.0.0.1:%d" % port)
        self.addCleanup(self.fleet.close)
        self.fleet.start()
        self.url = "http://127.0.0.1:%d" % port
        self.driver = driver_of(self.url)
        self.addCleanup(self.driver.close)
        self.driver.start()
        self.gid = lib.guresid("remote")
        self.cookie = None
        self.client = lib.Client(self.driver)
        self.addCleanup(self.client.close)
        fleet_client = lib.Client(self.fleet)
        self.addCleanup(fleet_client.close)
        self.api = lib.Fleet(fleet_client, ["validation"], ["validation"])

    def put(self, version):
        pools = [{"name": "np1", "spec": {"v": version}}]
        answer = self.client.put("/" + self.gid,
                                 lib.cluster_input(spec={"v": version}, nodepools=pools))
        self.cookie = answer.cookie or self.cookie
        return answer

    def report_until(self, method, status):
        """Adapters report whatever is wanted until the orchestrator's poll is answered with this
        status.
        """
        def poll():
            for kind in self.api.of(self.gid):
                for resource in kind:
                    gone = "deleted_time" in resource
                    self.api.report(resource, "validation", available=not gone, applied=not gone,
                                    finalized=gone)
            answer = self.client.request(method, "/" + self.gid)
            self.assertIn(answer.status, (202, status), answer)
            return answer if answer.status == status else None
        return lib.eventually(poll, "%s answers %d" % (method, status), every_s=0.1)

    def spec_is(self, version):
        clusters, pools = self.api.of(self.gid)
        return [r["spec"] for r in clusters + pools] == [{"v": version}] * 2

    def test_trace(self):
        """The order's traceparent goes to the remote, and into the lines of all that follows."""
        trace = "00-%032x-00f067aa0ba902b7-01" % random.getrandbits(127)
        answer = self.client.put("/" + self.gid, lib.cluster_input(), {"traceparent": trace})
        self.assertEqual(answer.status, 202, answer)
        lib.eventually(lambda: self.api.of(self.gid)[0], "the cluster is made")
        made = lib.eventually(lambda: [r for r in self.fleet.records()
                                       if r.get("msg") == "request" and r["method"] == "POST"],
                              "its line in the log")
        self.assertEqual({r["trace"] for r in made}, {trace[3:35]})
        events = self.api.client.get("/api/hyperfleet/v1/events?after=0").json["items"]
        self.assertEqual({e["traceparent"] for e in events}, {trace})

    # A whole life: made, reported on, changed, deleted; at the end nothing is left at the remote.
    def test_life(self):
        self.assertEqual(self.put(1).status, 202)
        made = self.report_until("GET", 200)
        self.assertEqual(made.json["resource"]["values"]["cluster_id"],
                         self.api.cluster_of(self.gid)["id"])
        self.assertEqual(self.put(1).status, 200)
        self.assertEqual(self.put(2).status, 202)
        lib.eventually(lambda: self.spec_is(2), "the change is at the remote")
        self.report_until("GET", 200)
        self.assertEqual(self.client.delete("/" + self.gid).status, 202)
        self.report_until("DELETE", 204)
        self.assertEqual(self.api.of(self.gid), ([], []))
        self.assertEqual(self.client.get("/" + self.gid).status, 404)

    # An answer that is held has the remote asked for what it waits for, as polls have.
    def test_a_held_answer(self):
        driver = lib.Server("--backend", self.url, "--remote-watch", "1h", "--remote-fresh", "1s",
                            *LIFE)
        self.addCleanup(driver.close)
        driver.start()
        client = lib.Client(driver)
        self.addCleanup(client.close)
        gid, began = lib.guresid("held"), time.monotonic()
        self.assertEqual(client.put("/" + gid, lib.cluster_input(name=gid)).status, 202)
        lib.eventually(lambda: self.api.of(gid)[0], "it is ordered")
        late = threading.Timer(2, lambda: self.api.make_ready(self.api.cluster_of(gid)))
        late.start()
        answer = client.get("/" + gid, {"Prefer": "wait=50"})
        while answer.status == 202:
            self.assertIsNotNone(answer.header("Preference-Applied"))
            answer = client.get("/" + gid, {"Prefer": "wait=50"})
        late.join()
        self.assertEqual(answer.status, 200, answer)
        self.assertLess(time.monotonic() - began, 20 * lib.TIME_FACTOR)

    # A GET of a ready cluster answers a new condition long before the cluster's next regular
    # observation.
    def test_health_is_asked_for(self):
        def health(available):
            self.api.report(self.api.cluster_of(self.gid), "validation", available=available)

            def poll():
                answer = self.client.get("/" + self.gid)
                self.assertEqual(answer.status, 200, answer)
                return answer.json["resource"]["values"]["health"] == (
                    "Healthy" if available else "Degraded")
            lib.eventually(poll, "the health follows", every_s=0.2)

        self.put(1)
        self.report_until("GET", 200)
        health(False)
        health(True)

    # Orders are taken while the remote is away, carried out when it is back, once, though the
    # driver was killed meanwhile as well.
    def test_both_are_killed(self):
        self.fleet.kill9()
        self.assertEqual(self.put(1).status, 202)
        lib.eventually(lambda: remote_health(self.driver)["health"] == "ill",
                       "the remote is told to be ill")
        # A request that was on its way when the remote was killed may have failed first.
        lib.eventually(lambda: "could not connect" in remote_health(self.driver)["last_failure"],
                       "it cannot be connected to")
        self.assertTrue(metric(self.driver, "hfd_remote_up 0"))
        self.assertEqual(ops_get(self.driver, "/readyz").status, 200)
        self.driver.kill9()
        self.fleet.start()
        self.driver.start()
        lib.eventually(lambda: self.spec_is(1), "the order is at the remote")
        self.driver.kill9()
        self.driver.start()
        self.report_until("GET", 200)
        self.assertTrue(metric(self.driver, "hfd_remote_up 1"))
        for round_ in range(3):
            self.assertEqual(self.put(10 + round_).status, 202)
            (self.driver if round_ % 2 else self.fleet).kill9()
            (self.driver if round_ % 2 else self.fleet).start()
            lib.eventually(lambda: self.spec_is(10 + round_), "the change is at the remote")
            self.report_until("GET", 200)
        self.client.delete("/" + self.gid)
        self.fleet.kill9()
        self.fleet.start()
        self.report_until("DELETE", 204)
        self.assertEqual(self.api.of(self.gid), ([], []))

    # With an empty store the cookie finds the resource at the remote again.
    def test_a_lost_store(self):
        self.put(1)
        self.report_until("GET", 200)
        self.put(1)
        before = self.api.cluster_of(self.gid)
        other = driver_of(self.url, "--keys", os.path.join(self.driver.data, "keys"))
        self.driver.sigterm()
        with other:
            self.client = lib.Client(other)
            self.addCleanup(self.client.close)

            def found():
                answer = self.client.get("/" + self.gid, {lib.COOKIE: self.cookie})
                return answer if answer.status == 200 else None

            answer = lib.eventually(found, "the resource is found again")
            self.assertEqual(answer.json["resource"]["values"]["cluster_id"], before["id"])
        self.assertEqual(self.api.cluster_of(self.gid)["generation"], before["generation"])

    def test_protected(self):
        """A protected resource stays at the remote, with an empty store and a cookie too. A change
        of protect alone asks nothing of the remote. A tag guards what is driven there.
        """
        order = lib.cluster_input(nodepools=[{"name": "np1", "spec": {}}], protect=True)
        path = "/" + self.gid

        def delete(client):
            answer = client.delete(path, {lib.COOKIE: self.cookie})
            return answer.status, answer.body and answer.json.get("error")

        self.cookie = self.client.put(path, order).cookie
        self.assertEqual(delete(self.client), (400, "RES-109"))
        tag = self.report_until("GET", 200).header("ETag")
        before = self.api.of(self.gid)
        other = driver_of(self.url, "--keys", os.path.join(self.driver.data, "keys"))
        with other:
            client = lib.Client(other)
            self.addCleanup(client.close)
            self.assertEqual(delete(client), (400, "RES-109"))
            self.assertEqual(delete(client), (400, "RES-109"))
            lib.eventually(lambda: client.get(path, {lib.COOKIE: self.cookie}).status == 200,
                           "the resource is found again")
            self.assertEqual(delete(client), (400, "RES-109"))
        wrong = {"If-Match": '"x"'}
        order["driver"]["values"]["protect"] = False
        self.assertEqual(self.client.put(path, order, wrong).status, 412)
        self.assertEqual(self.client.put(path, order, {"If-Match": tag}).status, 200)
        self.assertEqual(self.client.delete(path, wrong).status, 412)
        self.assertEqual(self.api.of(self.gid), before)
        self.assertEqual(self.client.delete(path, {"If-Match": tag}).status, 202)


class Adapters(unittest.TestCase):
    """The remote's adapters are its own, and the driver's settings do not name them."""

    def setUp(self):
        port = lib.free_port()
        self.fleet = lib.Server("--adapters-required-cluster", "net-1,disk", "--listen",
                                "127.0.0.1:%d" % port)
        self.addCleanup(self.fleet.close)
        self.fleet.start()
        self.driver = lib.Server("--backend", "http://127.0.0.1:%d" % port, *FAST)
        self.addCleanup(self.driver.close)
        self.driver.start()
        self.client = lib.Client(self.driver)
        self.addCleanup(self.client.close)
        fleet_client = lib.Client(self.fleet)
        self.addCleanup(fleet_client.close)
        self.api = lib.Fleet(fleet_client, ["net-1", "disk"], [])

    def message(self, gid, want):
        def poll():
            message = self.client.get("/" + gid).json["message"]
            for stranger in ("validation", "dns", "pullsecret", "hypershift"):
                self.assertNotIn(stranger, message)
            return want in message
        lib.eventually(poll, "the message has %r" % want, every_s=0.1)

    # The hint, the status query and the detail name the adapters that the remote names; one that
    # reports and is not required decides nothing.
    def test_the_remotes_adapters_decide(self):
        gid = lib.guresid("named")
        self.assertEqual(self.client.put("/" + gid, lib.cluster_input()).status, 202)
        self.message(gid, "waits for HyperFleet (AwaitingAdapters")
        cluster = lib.eventually(lambda: self.api.of(gid)[0], "the cluster is made")[0]
        self.api.report(cluster, "stranger", available=False, reason="InvalidSpec")
        self.api.accepted(cluster, "net-1")
        self.message(gid, "waits for disk (has not reported)")
        self.message(gid, "1 of 2 adapters is done")
        status = self.client.get("/%s/status" % gid).json
        self.assertEqual((status["status"], status["rsync-status"].get("Pending")),
                         ("Instantiating", 1))
        self.api.accepted(cluster, "disk")
        lib.eventually(lambda: self.client.get("/" + gid).status == 200, "it is ready")
        status = self.client.get("/%s/status?output=detail" % gid).json
        self.assertEqual((status["status"], status["progress"]), ("Instantiated", 100))
        self.assertEqual({a["name"] for a in status["apps"]}, {"disk", "net-1", "stranger"})
        seen = self.client.get("/api/driver/v1/resources/" + gid).json["adapters"]
        self.assertEqual({a["adapter"]: a["required"] for a in seen},
                         {"net-1": True, "disk": True, "stranger": False})


class Doors(unittest.TestCase):
    # No HyperFleet API of its own; the others as always. The document's words for the remote's
    # state are those of the answer.
    def test_what_is_served(self):
        with Scripted(lambda path, headers: EMPTY) as remote, driver_of(remote.url) as server:
            client = lib.Client(server)
            self.addCleanup(client.close)
            for path in ("", "/v1", "/v1/clusters", "/v1/clusters/2x", "/v1/nodepools",
                         "/v1/openapi"):
                answer = client.get("/api/hyperfleet" + path)
                self.assertEqual((answer.status, answer.json["code"]), (404, "HYPERFLEET-NTF-000"))
                self.assertIn("remote HyperFleet", answer.json["detail"])
            self.assertEqual(client.post(lib.BASE + "/clusters",
                                         {"kind": "Cluster", "name": "abc", "spec": {}}).status,
                                         404)
            self.assertEqual(client.get("/nobody").status, 404)
            lib.eventually(lambda: "last_answer" in remote_health(server),
                           "the remote was asked at the start")
            doc = ops_get(server, "/docs/spec.json").json
            schemas = test_openapi.Schemas(doc)
            schemas.check({"$ref": "#/components/schemas/Health"}, ops_get(server, "/healthz").json)
            self.assertEqual(remote_health(server)["health"], "well")
            self.assertEqual(ops_get(server, "/livez").json, {"status": "ok"})
            self.assertLessEqual(len(remote.requests), 3, "that, and the search for orphans")

    # Each bad remote has its name, is told once in the log, and does not keep the driver from
    # taking orders.
    def test_bad_remotes_are_named(self):
        ntf = '{"code":"HYPERFLEET-NTF-000","status":404,"title":"Resource Not Found"}'
        for answer, health in (((401, "text/plain", ""), "refuses"),
                               ((403, "application/problem+json", "{}"), "refuses"),
                               ((302, "text/html", ""), "wrong"),
                               ((404, "application/problem+json", ntf), "wrong"),
                               ((503, "text/plain", ""), "ill"),
                               ((200, "text/html", "<html>"), "ill"),
                               ((200, "application/json", '{"items":'), "ill")):
            with self.subTest(answer=answer), Scripted(lambda path,
                                                       headers: answer) as remote, driver_of(
                                                           remote.url) as server:
                lib.eventually(lambda: remote_health(server)["health"] == health,
                               "the remote is told to be " + health)
                self.assertEqual(put(server, lib.guresid(), lib.cluster_input()).status, 202)
                self.assertEqual(ops_get(server, "/readyz").status, 200)
                self.assertTrue(metric(server, "hfd_remote_up 0"))
                lib.eventually(lambda: len(remote.requests) > 2, "it is asked again")
                lib.eventually(lambda: any("health" in r for r in server.records()), "a line")
                told = [r for r in server.records() if r.get("health") is not None]
                self.assertEqual([r["health"] for r in told], [health], told)
                self.assertEqual(told[0]["level"], "error")

    # The token stands in the header and nowhere else; a 401 has the file read again, and SIGHUP
    # too.
    def test_the_token_is_read_again(self):
        def answer(path, headers):
            is_first = headers.get("Authorization") == "Bearer first-geheim"
            return (401, "text/plain", "") if is_first else EMPTY

        with Scripted(answer) as remote:
            server = driver_of(remote.url)
            path = os.path.join(server.scratch, "token")
            with open(path, "w", encoding="utf-8") as f:
                f.write("first-geheim\n")
            server.flags += ["--remote-token-file", path]
            with server:
                lib.eventually(lambda: remote_health(server)["health"] == "refuses",
                               "the token is refused")
                with open(path + ".new", "w", encoding="utf-8") as f:
                    f.write("second-geheim\n")
                os.rename(path + ".new", path)
                put(server, lib.guresid(), lib.cluster_input())
                lib.eventually(lambda: remote_health(server)["health"] == "well",
                               "the new token is taken")
                before = os.stat(path)
                with open(path, "r+", encoding="utf-8") as f:
                    f.write("third--geheim\n")
                # looks the same: only SIGHUP helps
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                server.proc.send_signal(signal.SIGHUP)
                lib.eventually(
                    lambda: remote.requests[-1][1]["Authorization"] == "Bearer third--geheim",
                    "SIGHUP has the file read")
                told = json.dumps(server.records()) + ops_get(server, "/healthz").body.decode()
                self.assertNotIn("geheim", told)
            self.assertEqual({h.get("Authorization") for _, h in remote.requests},
                             {"Bearer first-geheim", "Bearer second-geheim",
                              "Bearer third--geheim"})

    # doctor asks the remote with the same settings, and says what it finds in one line.
    def test_doctor_looks_at_the_remote(self):
        cluster = ('{"items":[{"id":"x","status":{"conditions":'
                   '[{"type":"Reconciled","status":"True"}]}}],"total":1}')
        cases = [(EMPTY, 0, "answers as a HyperFleet without clusters"),
                 ((200, "application/json", cluster), 0, "with condition Reconciled"),
                 ((401, "text/plain", ""), 3, "refuses our credentials with status 401"),
                 ((302, "text/html", ""), 3, "is not a HyperFleet API"),
                 ((503, "text/plain", ""), 3, "answers with an error: status 503"),
                 ((200, "text/html", "hi"), 3, "and no JSON"),
                 ((200, "application/json", "{}"), 3, "without a list of clusters")]
        for answer, status, says in cases:
            with self.subTest(says=says), Scripted(lambda path, headers: answer) as remote:
                self.assertEqual(doctor(remote.url), (status, says))
        self.assertEqual(doctor("http://127.0.0.1:1/"), (3, "could not connect"))
        self.assertEqual(doctor("http://127.0.0.1:1/", "--remote-token-file", "/nonexistent"),
                         (3, "cannot be asked: remote.token_file"))

    # Files that settings name are looked at before anything is made: place, setting, file and
    # reason are told, by `config check` as well.
    def test_missing_files_are_found_first(self):
        with tempfile.TemporaryDirectory(prefix="hfd-it-files-") as scratch:
            config, data, bad = (os.path.join(scratch, name)
                                 for name in ("hfd.yaml", "data", "bad"))
            pair = {"cert": "key", "key": "cert"}
            for kind in ("token", "ca", "cert", "key"):
                for path in (os.path.join(scratch, "missing"), scratch, bad):
                    with self.subTest(kind=kind,
                                      path=path), open(config, "w", encoding="utf-8") as f:
                        open(bad, "w", encoding="utf-8").close()
                        f.write("backend: http://127.0.0.1:1/\nremote:\n  %s_file: %s\n"
                                % (kind, path))
                        f.write("  %s_file: %s\n" % (pair[kind], path) if kind in pair else "")
                        f.flush()
                        for command in (["serve", "--data", data, "--listen", "127.0.0.1:0",
                                         "--ops-listen", "127.0.0.1:0"],
                                        ["config", "check"]):
                            done = lib.run(*command, "--config", config)
                            self.assertEqual(done.returncode, 2, done.stderr)
                            # the first of the two that is looked at
                            of = "cert" if kind == "key" else kind
                            self.assertIn("hfd.yaml:%d: remote.%s_file: %s: "
                                          % (4 if kind == "key" else 3, of, path), done.stderr)
                        self.assertFalse(os.path.exists(data), "nothing was made")
            schema = ["--fleet-spec-schema", os.path.join(scratch, "missing")]
            for command in (["serve", "--data", data, *schema], ["config", "check", *schema]):
                done = lib.run(*command)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("--fleet-spec-schema: fleet.spec_schema: ", done.stderr)
            self.assertFalse(os.path.exists(data), "nothing was made")

    # A secret that every user may read is a warning of serve, `config check` and doctor, and stops
    # none of them. A secret that only some users may read is no warning.
    def test_an_open_token_is_a_warning(self):
        with tempfile.TemporaryDirectory(prefix="hfd-it-open-") as scratch, Scripted(
            lambda path, headers: EMPTY) as remote:
            path = os.path.join(scratch, "token")
            with open(path, "w", encoding="utf-8") as f:
                f.write("geheim")
            for mode, warned in ((0o640, False), (0o644, True)):
                os.chmod(path, mode)
                done = lib.run("config", "check", "--backend", remote.url, "--remote-token-file",
                               path)
                self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
                says = "warning: --remote-token-file: remote.token_file: %s: mode 0644" % path
                self.assertEqual(says in done.stderr, warned, done.stderr)
                done = lib.run("doctor", "--new", "--backend", remote.url, "--remote-token-file",
                               path, "--data", scratch)
                self.assertEqual((done.returncode, "mode 0644" in done.stdout),
                                 (3, True) if warned else (0, False), done.stdout)
                with driver_of(remote.url, "--remote-token-file", path) as server:
                    told = [r for r in server.records() if r.get("path") == path]
                    self.assertEqual([(r["level"], r["setting"], r["mode"]) for r in told],
                                     [("warn", "remote.token_file", "0644")] if warned else [])
                    self.assertNotIn("geheim", json.dumps(server.records()))

    # The end comes at once, though the remote hangs in the middle of a request.
    def test_the_end_does_not_wait_for_the_remote(self):
        with Scripted(lambda path, headers: None) as remote, driver_of(remote.url) as server:
            lib.eventually(lambda: remote.requests, "it is asked")
            began = time.monotonic()
            self.assertEqual(server.sigterm(), 0)
            self.assertLess(time.monotonic() - began, 12.0)  # the request itself would last 15 s

    # Impossible settings are refused at the start, with a message and exit status 2.
    def test_bad_settings_stop_the_start(self):
        for flags, says in ((("--demo",), b"demo adapters would report instead"),
                            (("--remote-token-file", "/nonexistent"), b"remote.token_file"),
                            (("--backend", "https://u:geheim@h/"), b"without user and password"),
                            (("--remote-cert-file", "/nonexistent"), b"both or none")):
            with self.subTest(flags=flags):
                server = driver_of("http://127.0.0.1:1/", *flags)
                self.addCleanup(server.close)
                done = subprocess.run(server.command(), env=lib.clean_env(), capture_output=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertNotIn(b"geheim", done.stderr)


if __name__ == "__main__":
    unittest.main()
