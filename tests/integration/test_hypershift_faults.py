"""The HyperShift adapter where something goes wrong: crashes after each request, refusals, an API
server that is slow, deadlines; and the order of its requests.
"""
import http.client
import itertools
import json
import os
import re
import signal
import threading
import time
import unittest

from fake_kube import Refused, causes
from hypershift import KUBEVIRT_POOL, SECONDS, HyperShiftCase
from kube import HYPERSHIFT
from lib import Client, eventually, guresid, in_time
from test_hypershift import Api

KUBEVIRT = {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}


class Crash:
    """Ends the server (kill -9) after each request of a life that was not there before. The request
    has been carried out, and its answer is lost.
    """

    def __init__(self, case):
        self.case, self.phase = case, ""
        self.seen, self.lock, self.now = set(), threading.Lock(), threading.Event()
        case.api.on_done = self.on_done

    def on_done(self, method, path):
        """Called by the API server. True: no answer."""
        key = (self.phase, method, path.replace("&dryRun", "?dryRun").split("&")[0])
        with self.lock:
            if self.now.is_set():
                return True  # the program that sent it is gone
            if key in self.seen:
                return False
            self.seen.add(key)
            os.kill(self.case.server.proc.pid, signal.SIGKILL)
            self.now.set()
        return True

    def steady(self, call):
        """Calls until the server is there and gives an answer."""
        def answered():
            if self.now.is_set():
                self.case.server.kill9()
                self.case.server.place.forget_servers()
                self.case.server.start()
                self.case.client.close()
                type(self.case).client = Client(self.case.server)
                self.now.clear()
            try:
                return call()
            except (OSError, http.client.HTTPException):
                return None
        return eventually(answered, "an answer", SECONDS)

    def until(self, id_, status):
        def reached():
            answer = self.case.get(id_)
            return answer if answer.status == status else None
        try:
            return self.steady(reached)
        except AssertionError as e:
            raise AssertionError("%s; %r; %r" % (e, self.case.client.last, sorted(self.seen)))


class Crashes(HyperShiftCase):
    make_api = Api

    def order_of(self, name, replicas=1):
        pools = {"gpu": {"replicas": 0, "platform": KUBEVIRT_POOL},
                 "workers": {"replicas": replicas, "platform": KUBEVIRT_POOL}}
        secrets = {"pull_secret": '{"auths":{}}', "ssh_key": "ssh-ed25519 AAAA"}
        return self.order(name, KUBEVIRT, pools, secrets)

    def made(self, name):
        """The objects of a cluster as the adapter wants them, without names and ids."""
        found = {}
        for plural in ("hostedclusters", "nodepools", "secrets"):
            for o in self.kube.items(self.path(plural)):
                if not o["metadata"]["name"].startswith(name) or "labels" not in o["metadata"]:
                    continue
                text = json.dumps({
                    "spec": o.get("spec"), "data": o.get("data"),
                    "labels": sorted(o["metadata"]["labels"]),
                    "generation": o["metadata"]["annotations"]["hyperfleet.io/generation"]})
                found["%s/%s" % (plural, o["metadata"]["name"].replace(name, "NAME"))] = \
                    json.loads(text.replace(name, "NAME"))
        return found

    def events(self, name, kind):
        """The names of objects of a cluster for which there was such an event, sorted."""
        with self.api.store.lock:
            return sorted("%s/%s" % (plural, doc["metadata"]["name"].replace(name, "NAME"))
                          for _, plural, what, doc in self.api.store.events
                          if what == kind and doc["metadata"]["name"].startswith(name)
                          and "labels" in doc["metadata"])

    def live(self, name, crash=None):
        """A life: made, changed, deleted. Returns the objects and values after each step."""
        id_, seen = guresid("hs"), []
        steady = crash.steady if crash else lambda call: call()
        until = crash.until if crash else lambda id_, status: self.until(id_, status, "done")
        for replicas in (1, 3):
            if crash:
                crash.phase = "replicas %d" % replicas
            answer = steady(lambda n=replicas: self.client.put("/clusters/" + id_,
                                                               self.order_of(name, n)))
            self.assertIn(answer.status, (200, 202), answer)
            values = until(id_, 200).json["resource"]["values"]
            seen.append((self.made(name), {k: v for k, v in values.items() if k == "version"}))
        if crash:
            crash.phase = "delete"
        answer = steady(lambda: self.client.delete("/clusters/" + id_))
        self.assertIn(answer.status, (202, 204), answer)
        until(id_, 404)
        return seen

    def test_after_each_request(self):
        """The end of each step is that of a life without crashes, and no object is made twice."""
        calm = self.live("calm1")
        made, gone = self.events("calm1", "ADDED"), self.events("calm1", "DELETED")
        self.assertEqual((len(made), made), (5, gone))
        crash = Crash(self)
        try:
            self.assertEqual(self.live("wild1", crash), calm)
        finally:
            self.api.on_done = None
        self.assertEqual(self.events("wild1", "ADDED"), made)
        self.assertEqual(self.events("wild1", "DELETED"), gone)
        self.assertEqual(self.made("wild1"), {})
        crashed = [(phase, method) for phase, method, _ in crash.seen]
        for phase, method, least in (("replicas 1", "GET", 10), ("replicas 1", "PATCH", 8),
                                     ("replicas 3", "PATCH", 1), ("delete", "DELETE", 5)):
            self.assertGreaterEqual(crashed.count((phase, method)), least, sorted(crash.seen))


class Order(HyperShiftCase):
    """The order of requests."""

    make_api = Api

    def sent(self, method, since=0):
        """The paths of requests of a method, below the namespace of the test."""
        base = "namespaces/" + self.namespace
        return [p.split(base, 1)[1].split("?")[0].lstrip("/") for m, p in self.api.requests[since:]
                if m == method and base in p and "dryRun" not in p]

    def test_creation(self):
        """Namespace, Secrets, HostedCluster, NodePool."""
        since = len(self.api.requests)
        id_ = guresid("hs")
        self.put(id_, self.order("first1", {}, {"worker": {"replicas": 0}}, {
            "pull_secret": '{"auths":{}}', "ssh_key": "ssh-ed25519 AAAA"}))
        self.until(id_, 200, "ready")
        sent = self.sent("PATCH", since)
        self.assertEqual(list(dict.fromkeys(sent)), [
            "", "secrets/first1-pull-secret", "secrets/first1-ssh-key", "hostedclusters/first1",
            "nodepools/first1-worker"])

    def test_nothing_after_a_deletion(self):
        """A DELETE while the pull secret is looked for: neither it nor what follows is applied."""
        held = self.api.hold("/api/v1/namespaces/%s/secrets" % self.namespace)
        try:
            id_ = guresid("hs")
            self.put(id_, self.order("late1", {}, {"worker": {"replicas": 0}}))
            eventually(lambda: held.waiting, "the Secret is looked for", SECONDS)
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            since = len(self.api.requests)
        finally:
            held.end()
        self.until(id_, 404, "deleted")
        self.assertEqual(self.sent("PATCH", since), [])
        self.assertIsNone(self.object("hostedclusters", "late1"))
        self.assertIsNone(self.object("nodepools", "late1-worker"))
        self.assertIsNone(self.object("secrets", "late1-pull-secret"))

    def test_nothing_of_an_old_order(self):
        """A PUT while an update is on its way: the old generation is not applied afterwards."""
        id_, _ = self.ready("newer1")
        held = self.api.hold("%s/namespaces/%s/hostedclusters/newer1?" % (HYPERSHIFT,
                                                                        self.namespace))
        try:
            self.put(id_, self.order("newer1", {"release": {"image": "quay.io/ocp:2"}}))
            eventually(lambda: held.waiting, "the dry run", SECONDS)
            self.put(id_, self.order("newer1", {"release": {"image": "quay.io/ocp:3"}}))
        finally:
            held.end()
        self.until(id_, 200, "updated")
        images = [doc["spec"]["release"]["image"] for _, plural, _, doc in self.api.store.events
                  if plural == "hostedclusters" and doc["metadata"]["name"] == "newer1"]
        self.assertEqual(list(dict.fromkeys(images)),
                         ["quay.io/ocp-release:4.20.0-x86_64", "quay.io/ocp:3"])

    def test_same_pool_names(self):
        """Two clusters with a nodepool of one name each: two NodePools."""
        ids = [self.ready(name, pools={"worker": {"replicas": 0}})[0] for name in ("two1", "two2")]
        owners = {name: self.object("nodepools", name)["spec"]["clusterName"]
                  for name in ("two1-worker", "two2-worker")}
        self.assertEqual(owners, {"two1-worker": "two1", "two2-worker": "two2"})
        self.assertEqual(self.client.delete("/clusters/" + ids[0]).status, 202)
        self.until(ids[0], 404, "deleted")
        self.assertIsNone(self.object("nodepools", "two1-worker"))
        self.assertNotIn("deletionTimestamp", self.object("nodepools", "two2-worker")["metadata"])


class Refusals(HyperShiftCase):
    """Each class of driver/kube/README.md, as an answer to the apply of a HostedCluster."""

    make_api = Api
    FLAGS = ("--hypershift-timeout", "2s")

    def hosted(self, name):
        return "%s/namespaces/%s/hostedclusters/%s" % (HYPERSHIFT, self.namespace, name)

    def test_definite(self):
        """The order has to be mended: 400 RES-104 InvalidManifest, in the words of the server."""
        for at, (code, reason) in enumerate((
                (400, "BadRequest"), (413, "RequestEntityTooLarge"),
                (415, "UnsupportedMediaType"), (422, "Invalid"))):
            name = "def%d" % at
            with self.subTest(code=code):
                doc = Refused(code, reason, "whole words", causes(
                    ("FieldValueInvalid", "bad value", "spec.etcd"),
                    ("FieldValueInvalid", "some rules were not checked", "<nil>"))).doc
                self.api.faults[self.hosted(name) + "?"] = (-1, code, doc)
                id_ = guresid("hs")
                self.put(id_, self.order(name))
                answer = self.until(id_, 400, "refused").json
                self.assertEqual(answer["error"], "RES-104")
                self.assertIn("InvalidManifest: etcd: spec.etcd: bad value", answer["message"])
                self.assertNotIn("nil", answer["message"])
        self.api.faults.clear()

    def test_transient(self):
        """The answer stays 202 and names the class; the order is carried out when it is over."""
        status = {"kind": "Status", "status": "Failure", "message": "words of the server"}
        ending = causes(("NamespaceTerminating", "it goes away", ""))
        cases = (
            (401, status, "Forbidden"), (403, status, "Forbidden"),
            (403, dict(status, details=ending), "Progressing: words of the server"),
            (404, "404 page not found\n", "CRDMissing"),
            (404, dict(status, details={"kind": "namespaces"}), "Progressing: words of the server"),
            (429, status, "KubernetesUnreachable"), (500, status, "KubernetesUnreachable"),
            (503, "unavailable", "KubernetesUnreachable"))
        for at, (code, body, reason) in enumerate(cases):
            name = "tra%d" % at
            with self.subTest(code=code, reason=reason):
                self.api.faults[self.hosted(name) + "?"] = (-1, code, body)
                id_ = guresid("hs")
                self.put(id_, self.order(name))
                self.until_says(id_, reason)
                self.assertEqual(self.get(id_).status, 202)
                self.api.faults.clear()
                self.until(id_, 200, "ready")

    def test_trouble_is_told(self):
        """A management cluster that does not answer is told on the page and by /healthz until it
        answers again. Reports of the built-in adapter move the gauge of the last report.
        """
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        self.api.faults[self.hosted("told1") + "?"] = (-1, 503, "unavailable")
        id_ = guresid("hs")
        self.put(id_, self.order("told1"))
        kinds = eventually(
            lambda: [p["kind"] for p in ops.get("/healthz").json.get("problems", [])], "it is told")
        self.assertEqual(kinds, ["management_cluster"])
        self.assertIn("MANAGEMENT CLUSTER DOWN</span> <b>default</b>", ops.get("/").body.decode())
        self.api.faults.clear()
        self.until(id_, 200, "ready")
        eventually(lambda: ops.get("/healthz").json == {"status": "ok"}, "nothing is wrong")
        metrics = ops.get("/metrics").body.decode()
        self.assertRegex(
            metrics, r'hfd_adapter_last_report_timestamp_seconds\{adapter="hypershift"\} 1\d{9}')

    def test_another_writer(self):
        """409 without owners of fields: another writer was first, and it is tried again at once."""
        doc = Refused(409, "Conflict", "the object has been modified").doc
        self.api.faults[self.hosted("writer1") + "?"] = (3, 409, doc)
        self.ready("writer1")
        self.assertEqual(self.api.faults.pop(self.hosted("writer1") + "?")[0], 0)

    def test_expired_list(self):
        """410 in the middle of a list: it begins again, and a deletion misses no NodePool."""
        pools = {"pool%d" % i: {"replicas": 0} for i in range(3)}
        id_, _ = self.ready("page1", pools=pools)
        path = "%s/namespaces/%s/nodepools?limit=" % (HYPERSHIFT, self.namespace)
        self.api.faults[path] = (2, 410, Refused(410, "Expired", "too old").doc)
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until(id_, 404, "deleted")
        self.assertEqual(self.kube.items(self.path("nodepools")), [])
        self.api.faults.clear()

    def test_slow(self):
        """A call without an answer ends after hypershift.timeout; the answer says so."""
        held = self.api.hold(self.hosted("slow1"))
        try:
            id_ = guresid("hs")
            self.put(id_, self.order("slow1"))
            self.until_says(id_, "no answer in time")
            self.assertIn("KubernetesUnreachable", self.get(id_).json["message"])
            status = self.client.get("/clusters/%s/status" % id_).json
            self.assertEqual(status["rsync-status"], {"Pending": 1, "Retrying": 1})
        finally:
            held.end()
        self.until(id_, 200, "ready")
        self.assertEqual(len([1 for _, plural, what, doc in self.api.store.events
                              if (plural, what, doc["metadata"]["name"]) ==
                              ("hostedclusters", "ADDED", "slow1")]), 1)


    def test_foreign(self):
        """A load balancer's answer to any call is 202 with what it was. The order is carried out
        when it is over."""
        page, others = "<html><h1>no</h1></html>", {"message": "no Route matched"}
        cases = [(code, body) for code in (400, 401, 403, 404, 405, 408, 409, 413, 422, 502)
                 for body in (page, others)] + [(200, page), (200, others), (302, page),
                                                (422, Refused(413, "x", "of another").doc)]
        for at, (code, body) in enumerate(cases):
            name = "for%d" % at
            # Reads and the dry run too; applies alone; the Secret.
            prefix = (self.hosted(name), self.hosted(name) + "?fieldManager=hyperfleet-driver&",
                      self.path("secrets", name))[at % 3]
            with self.subTest(code=code, body=body, prefix=prefix):
                self.api.faults[prefix] = (-1, code, body)
                id_ = guresid("hs")
                self.put(id_, self.order(name))
                self.until_says(id_, "KubernetesUnreachable: an answer that is not Kubernetes': "
                                "%d, %s" % (code, "text/plain" if body is page
                                            else "application/json"))
                self.assertEqual(self.get(id_).status, 202)
                self.api.faults.clear()
                self.until_object("hostedclusters", name)

    def test_foreign_while_deleting(self):
        """A 404 of others is no proof that something is gone."""
        id_, _ = self.ready("gone1")
        self.api.faults[self.hosted("gone1")] = (-1, 404, "<html>")
        self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
        self.until_says(id_, "an answer that is not Kubernetes': 404, text/plain")
        self.assertIsNotNone(self.object("hostedclusters", "gone1"))
        self.api.faults.clear()
        self.until(id_, 404, "deleted")


def chunks(handler, pieces):
    """Sends a 200 that never says how long it is."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        for piece in pieces:
            handler.wfile.write(piece)
    except OSError:
        pass


def event(kind, doc):
    return json.dumps({"type": kind, "object": doc}).encode() + b"\n"


class Streams(HyperShiftCase):
    """Each way that a watch or a list can end, or not end: few requests, and one line in the log.
    """

    make_api = Api
    MARK = {"kind": "HostedCluster", "metadata": {"resourceVersion": "1"}}
    STREAMS = {
        "empty": lambda h: h.send(200, ""),
        "no body": lambda h: chunks(h, ()),
        "page": lambda h: h.send(200, "<html>busy</html>"),
        "one event": lambda h: chunks(h, [event("MODIFIED", {"metadata": {}})]),
        "one bookmark": lambda h: chunks(h, [event("BOOKMARK", Streams.MARK)]),
        "410": lambda h: h.send(410, Refused(410, "Expired", "too old").doc),
        "410 event": lambda h: chunks(h, [event("ERROR", Refused(410, "Expired", "old").doc)]),
        "500 event": lambda h: chunks(h, [event("ERROR", Refused(500, "Internal", "x").doc)]),
        "204": lambda h: (h.send_response(204), h.end_headers()),
        "redirect": lambda h: h.send(302, ""),
        "not found": lambda h: h.send(404, "<html>"),
        "half a line": lambda h: chunks(h, [b'{"type":']),
        "garbage": lambda h: chunks(h, itertools.repeat(b"garbage\n")),
        "empty lines": lambda h: chunks(h, itertools.repeat(b"\n" * 1000)),
        "bookmarks": lambda h: chunks(h, itertools.repeat(event("BOOKMARK", Streams.MARK))),
        "a line without end": lambda h: chunks(h, itertools.repeat(b"x" * 65536)),
    }

    def count(self, seconds=2):
        """Requests in some seconds, by the API server's own count."""
        before = len(self.api.requests)
        time.sleep(seconds)
        return len(self.api.requests) - before

    def lines(self):
        return [r for r in self.server.records() if "cannot watch" in r.get("msg", "")]

    def test_watches(self):
        for name, stream in self.STREAMS.items():
            with self.subTest(name):
                self.api.stream = stream
                try:
                    self.start()
                    eventually(self.lines, "a line in the log", SECONDS)
                    self.assertLessEqual(self.count(), 24)
                    self.assertEqual(len(self.lines()), 1)
                finally:
                    self.api.stream = None

    def test_events_without_end(self):
        """One object that changes all the time has its cluster visited five times a second."""
        busy = []

        def changes():
            while self.api.stream is not None:
                time.sleep(0.005)
                if busy:
                    yield event("MODIFIED", busy[0])
        self.api.stream = lambda h: chunks(h, changes())
        try:
            self.start()
            id_ = guresid("hs")
            self.put(id_, self.order("busy1"))
            self.until_object("hostedclusters", "busy1")
            busy.append(self.object("hostedclusters", "busy1"))
            self.until(id_, 200, "ready")
            self.assertLessEqual(self.count(), 100)
        finally:
            self.api.stream = None

    def test_watches_are_counted(self):
        """The metric has them while they go on."""
        self.api.requests.clear()
        self.start()
        eventually(lambda: len([r for r in self.api.requests if "watch=1" in r[1]]) >= 2,
                   "watches", SECONDS)
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)

        def counted():
            found = re.findall(r'hfd_kube_requests_total\{method="GET",class="..."\} (\d+)',
                               ops.get("/metrics").body.decode())
            return sum(map(int, found)) == len([r for r in self.api.requests if r[0] == "GET"])
        eventually(counted, "counted", SECONDS)

    def test_lists_without_end(self):
        """A list that gives its own token again, or always a new one."""
        tokens = itertools.count()
        for name, token in (("same", lambda: "again"), ("new", lambda: str(next(tokens)))):
            with self.subTest(name):
                class Endless(dict):
                    """A list whose token is made when it is sent."""
                    def items(self):
                        return dict(kind="HostedClusterList", items=[], metadata={
                            "resourceVersion": "1", "continue": token()}).items()
                self.api.faults[HYPERSHIFT + "/hostedclusters?limit="] = (-1, 200, Endless(x=1))
                try:
                    self.start()
                    eventually(lambda: len(self.api.requests) > 3, "requests", SECONDS)
                    self.assertLessEqual(self.count(), 24)
                    if name == "same":
                        self.assertEqual(len(self.lines()), 1)
                        self.assertIn("gives its own token again", self.lines()[0]["reason"])
                finally:
                    self.api.faults.clear()


class Deadlines(HyperShiftCase):
    make_api = Api
    FLAGS = ("--driver-deadline-delete", "2s")

    def test_retry_after_ends_before_the_deadline(self):
        """A server that asks for an hour is asked once more before the deadline of the operation.
        """
        self.start("--driver-deadline-create", "6s")
        self.addCleanup(self.stop)
        path = "%s/namespaces/%s/hostedclusters/late1" % (HYPERSHIFT, self.namespace)
        self.api.faults[path] = (-1, 503, 3600)
        id_ = guresid("hs")
        self.put(id_, self.order("late1"))
        eventually(lambda: self.get(id_).status == 400, "the deadline", SECONDS)
        self.assertEqual(self.get(id_).json["error"], "RES-105")
        self.assertEqual(len([p for m, p in self.api.requests if p.startswith(path)]), 2)
        self.api.faults.clear()

    def test_a_finalizer_stays(self):
        """A NodePool that does not go: 202, then the deadline; the deletion goes on, and ends when
        the finalizer does."""
        id_, _ = self.ready("stays1", pools={"worker": {"replicas": 0}})
        self.operator.keep.add("stays1-worker")

        def deletion():
            """A DELETE that is past its deadline begins another one."""
            self.assertEqual(self.client.delete("/clusters/" + id_).status, 202)
            status = self.client.get("/clusters/%s/status" % id_).json["status"]
            self.assertEqual(status, "Terminating")
        in_time(2, deletion)
        eventually(lambda: self.get(id_).status == 400, "the deadline", SECONDS)
        if "finalizers" not in self.get(id_).json["message"]:
            in_time(2, deletion)  # the deadline was before the second visit
            eventually(lambda: self.get(id_).status == 400, "the deadline", SECONDS)
        self.assertIn("waits for NodePool stays1-worker to be gone since 2026-01-01T00:00:00Z: "
                      "finalizers hypershift.openshift.io/finalizer",
                      self.get(id_).json["message"])
        status = self.client.get("/clusters/%s/status" % id_).json
        self.assertEqual(status["status"], "TerminateFailed")
        self.assertEqual(status["rsync-status"], {"Applied": 4})
        self.assertNotIn("deletionTimestamp", self.object("hostedclusters", "stays1")["metadata"])
        since = len(self.api.requests)
        eventually(lambda: [1 for m, p in self.api.requests[since:] if "nodepools" in p],
                   "it is looked for again", SECONDS)
        self.operator.keep.clear()
        self.until(id_, 404, "deleted")
        self.assertIsNone(self.object("hostedclusters", "stays1"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
