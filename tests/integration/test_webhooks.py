"""Webhooks: events are delivered, signed, in order, at least once, whatever receivers do."""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import tempfile
import threading
import time
import unittest

from lib import BASE, Case, Client, Server, cluster_input, eventually, guresid, run

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 64).decode()


def verify(secret, headers, body):
    """As manuals of Standard Webhooks say."""
    key = base64.b64decode(secret[len("whsec_"):])
    signed = b".".join((headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(),
                        body))
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == wanted


class Receiver:
    """A server that keeps what it has taken. `answers` gives the status for an event, or "hang"."""

    def __init__(self, answers=lambda event: 204, port=0):
        self.events, self.asked, self.lock = [], [], threading.Lock()
        self.answers, self.released = answers, threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                event = json.loads(body)
                status = receiver.answers(event)
                with receiver.lock:
                    receiver.asked.append((self.path, event, status))
                if status == "hang":
                    receiver.released.wait(60)
                    self.close_connection = True
                    return
                with receiver.lock:
                    if status // 100 == 2:
                        receiver.events.append((event, dict(self.headers), body))
                self.send_response(status)
                if status // 100 == 3:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def url(self):
        return "http://user:pw@127.0.0.1:%d/in?token=t0ken" % self.port

    def taken(self, subject):
        """The events of a cluster, nodepool or driver resource, in the order in which they came."""
        with self.lock:
            return [e for e, _, _ in self.events if subject in (e.get("subject"),
                                                                e["data"].get("id"))]

    def close(self):
        self.released.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


class WebhookCase(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    HOOKS = ("main",)
    MORE = ()
    REPEATS = ("--events-repeats-per-second", "0")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="hfd-hooks-")
        cls.secret = os.path.join(cls.folder, "secret")
        cls.write(SECRET)
        cls.receivers = {name: Receiver() for name in cls.HOOKS}
        flags = []
        for name, receiver in cls.receivers.items():
            flags += cls.hook(name, receiver.url())
        cls.FLAGS = tuple(flags) + cls.MORE + cls.REPEATS
        super().setUpClass()

    @classmethod
    def hook(cls, name, url):
        return ["--events-webhooks-%s-url" % name, url,
                "--events-webhooks-%s-secret-file" % name, cls.secret]

    @classmethod
    def write(cls, secret):
        with open(cls.secret, "w", encoding="utf-8") as f:
            f.write(secret + "\n")
        os.chmod(cls.secret, 0o600)

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            for receiver in cls.receivers.values():
                receiver.close()
            shutil.rmtree(cls.folder)

    def setUp(self):
        super().setUp()
        for receiver in self.receivers.values():
            receiver.answers = lambda event: 204
        self.main = self.receivers[self.HOOKS[0]]

    def cluster(self):
        answer = self.client.post(BASE + "/clusters", {"kind": "Cluster", "name": guresid("c"),
                                                       "spec": {}})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def arrived(self, receiver, subject, generation=1):
        """Waits for the reconcile event of a cluster."""
        return eventually(lambda: [e for e in receiver.taken(subject)
                                   if e["data"].get("generation", 0) >= generation],
                          "the event of %s" % subject)

    def metric(self, name):
        with contextlib.closing(Client(self.server, ops=True)) as ops:
            text = ops.get("/metrics").body.decode()
        return int(re.search("^%s ([0-9]+)$" % re.escape(name), text, re.M)[1])


class Webhooks(WebhookCase):
    HOOKS = ("main", "states")
    MORE = ("--events-webhooks-states-types", "states", "--driver-tombstone", "0s")

    def test_delivered_and_signed(self):
        cluster = self.cluster()
        self.arrived(self.main, cluster["id"])
        with self.main.lock:
            (event, headers, body), = [e for e in self.main.events
                                       if e[0]["data"].get("id") == cluster["id"]]
        listed = [e for e in self.client.get(BASE + "/events?after=0").json["items"]
                  if e["data"]["id"] == cluster["id"]]
        self.assertEqual(listed, [event], "the same event as that of the watch")
        self.assertEqual(headers["Content-Type"], "application/cloudevents+json")
        self.assertEqual(headers["webhook-id"], event["id"])
        self.assertLess(abs(int(headers["webhook-timestamp"]) - time.time()), 300)
        self.assertTrue(verify(SECRET, headers, body))
        self.assertFalse(verify(OTHER, headers, body))
        self.assertEqual(headers["Authorization"], "Basic " + base64.b64encode(b"user:pw").decode())
        self.assertEqual(self.receivers["states"].taken(cluster["id"]), [])
        eventually(lambda: self.metric(
            'hfd_events_sent_total{target="main",stream="reconcile"}') > 0, "it counts")

    def test_states(self):
        """A life: each item of the feed is the data of an event, with the same bytes."""
        gid = guresid("life")
        self.assertEqual(self.put(gid, cluster_input(name=gid)).status, 202)
        cluster = self.fleet.cluster_of(gid)
        self.fleet.make_ready(cluster)
        raw = self.client.get("/api/driver/v1/events?size=500").body.decode()
        self.assertEqual(self.delete(gid).status, 202)
        self.fleet.finalize(cluster)
        for receiver in self.receivers.values():
            eventually(lambda: [e for e in receiver.taken(gid) if e["type"].endswith(".absent")],
                       "the removal, of which the history is not kept")
            types = [e["type"].rsplit(".", 1)[1] for e in receiver.taken(gid)]
            self.assertEqual([t for i, t in enumerate(types) if types.index(t) == i],
                             ["creating", "ready", "deleting", "absent"])
            with receiver.lock:
                bodies = [b.decode() for e, h, b in receiver.events
                          if e.get("subject") == gid and verify(SECRET, h, b)]
            for body in bodies[:2]:
                self.assertIn('"subject":"%s"' % gid, body)
                self.assertIn(body[body.index('"data":') + 7:-1], raw)
            self.assertRegex(bodies[0], '^{"specversion":"1.0","id":"[0-9a-f-]{36}",'
                             '"source":"hyperfleet-driver","type":'
                             '"hyperfleet-driver.resource.creating",')

    def test_refused_and_tried_again(self):
        """An event that is refused holds up no other resource, and arrives in the end."""
        first, refused = self.cluster(), []
        self.arrived(self.main, first["id"])

        def answers(event):
            if event["data"].get("id") not in refused:
                return 204
            tries = len([e for _, e, _ in self.main.asked if e["id"] == event["id"]])
            return (500, 302, 410)[tries] if tries < 3 else 201

        self.main.answers = answers
        with self.main.lock:  # it is refused before it is known
            refused.append(first["id"])
        self.assertEqual(self.client.patch(first["href"], {"spec": {"a": 1}}).status, 200)
        other = self.cluster()
        self.arrived(self.main, other["id"])
        self.assertEqual(len(self.main.taken(first["id"])), 1)
        self.arrived(self.main, first["id"], 2)
        with self.main.lock:
            asked = [(path, status) for path, e, status in self.main.asked
                     if e["data"].get("id") == first["id"] and e["data"]["generation"] == 2]
            found = [(h, b) for e, h, b in self.main.events if e["data"].get("id") == first["id"]]
        self.assertEqual(asked, [("/in?token=t0ken", s) for s in (500, 302, 410, 201)],
                         "no redirect is followed")
        self.assertTrue(all(verify(SECRET, h, b) for h, b in found))
        self.assertGreaterEqual(self.metric(
            'hfd_events_failed_total{target="main",stream="reconcile"}'), 3)
        log = "\n".join(self.server.lines)
        self.assertIn("a target refuses events; will try again", log)
        for word in ("t0ken", "user:pw", SECRET[6:]):
            self.assertNotIn(word, log)

    def test_a_newer_change_replaces_one_that_waits(self):
        cluster = self.cluster()
        self.arrived(self.main, cluster["id"])
        self.main.answers = lambda event: 503 if event["data"].get("id") == cluster["id"] else 204
        for i in range(5):
            self.client.patch(cluster["href"], {"spec": {"a": i}})
        eventually(lambda: [e for _, e, s in self.main.asked if s == 503], "it is refused")
        self.main.answers = lambda event: 204
        self.arrived(self.main, cluster["id"], 6)
        generations = [e["data"]["generation"] for e in self.main.taken(cluster["id"])]
        self.assertEqual(generations, sorted(generations))
        self.assertEqual(generations[-1], 6)


class Deaf(WebhookCase):
    """Of three targets one hangs and one cannot be reached."""
    HOOKS = ("main", "hangs", "away")

    def test_others_get_their_events(self):
        hangs, away = self.receivers["hangs"], self.receivers["away"]
        hangs.answers = lambda event: "hang"
        away.close()
        try:
            clusters = [self.cluster() for _ in range(40)]
            for cluster in clusters:
                self.arrived(self.main, cluster["id"])
            eventually(lambda: hangs.asked, "one is asked, and hangs")
            self.assertEqual(hangs.events, [])
            oldest = 'hfd_events_oldest_unsent_seconds{target="%s"}'
            eventually(lambda: self.metric(oldest % "away") > 0, "its oldest waits")
            began = time.monotonic()
            self.assertEqual(self.server.sigterm(), 0, "a stop waits for none")
            self.assertLess(time.monotonic() - began, 20)
        finally:
            self.receivers["away"] = Receiver(port=away.port)
        hangs.answers = lambda event: 204
        hangs.released.set()
        self.server.start()
        for receiver in self.receivers.values():
            for cluster in clusters:
                self.arrived(receiver, cluster["id"])


class Kills(WebhookCase):
    def test_nothing_is_lost(self):
        """Kills while changes are made and events refused: each arrives, in order per resource."""
        count = [0]

        def answers(event):
            count[0] += 1
            return 500 if count[0] % 7 == 0 else 204

        self.main.answers = answers
        clusters, gids = [self.cluster() for _ in range(8)], [guresid("k") for _ in range(4)]
        for gid in gids:
            self.put(gid, cluster_input(name=gid))
        for round_ in range(6):
            for i, cluster in enumerate(clusters):
                self.assertEqual(self.client.patch(cluster["href"],
                                                   {"spec": {"a": 10 * round_ + i}}).status, 200)
            if round_ < len(gids):
                self.fleet.make_ready(self.fleet.cluster_of(gids[round_]))
            self.server.kill9()
            self.server.place.forget_servers()
            self.server.start()
        for cluster in clusters:
            self.arrived(self.main, cluster["id"], 7)
            generations = [e["data"]["generation"] for e in self.main.taken(cluster["id"])]
            self.assertEqual(generations, sorted(generations))
        feed = self.client.get("/api/driver/v1/events?size=500").json["items"]
        for gid in gids:
            wanted = [e["id"] for e in feed if e["resource"] == gid]
            eventually(lambda: set(wanted) <= {e["data"]["id"] for e in self.main.taken(gid)},
                       "all states of %s" % gid)
            got = [e["data"]["id"] for e in self.main.taken(gid)]
            self.assertEqual([id_ for i, id_ in enumerate(got) if got.index(id_) == i], wanted)

    def test_a_refused_event_outlives_a_kill(self):
        """Also when cursors were stored meanwhile, and other resources got theirs."""
        refused, other = [self.cluster() for _ in range(3)], self.cluster()
        ids = [c["id"] for c in refused]
        for cluster in refused + [other]:
            self.arrived(self.main, cluster["id"])
        self.main.answers = lambda event: 503 if event["data"].get("id") in ids else 204
        for cluster in refused:
            self.client.patch(cluster["href"], {"spec": {"a": 1}})
        self.client.patch(other["href"], {"spec": {"a": 1}})
        self.arrived(self.main, other["id"], 2)

        def tries():
            with self.main.lock:
                return [e["data"]["id"] for _, e, s in self.main.asked if s == 503]

        eventually(lambda: all(tries().count(i) >= 4 for i in ids), "some seconds of refusals")
        self.server.kill9()
        self.server.place.forget_servers()
        self.main.answers = lambda event: 204
        self.server.start()
        for id_ in ids:
            self.arrived(self.main, id_, 2)

    def test_a_problem_stays_over_a_restart(self):
        """A target that has failed for over five minutes is a problem, until it takes events."""
        self.main.answers = lambda event: 503
        cluster = self.cluster()
        eventually(lambda: [e for _, e, _ in self.main.asked
                            if e["data"].get("id") == cluster["id"]], "it is refused")
        self.assertEqual(self.server.sigterm(), 0)
        self.server.place.write("UPDATE outbox_target SET failing_us = failing_us - 600000000"
                                " WHERE failing_us > 0;")
        self.server.start()

        def problems():
            return [p for p in self.client.get("/api/driver/v1/problems").json["items"]
                    if p["kind"] == "events_target"]

        problem, = eventually(problems, "it is a problem")
        self.assertEqual((problem["name"], problem["runbook"]),
                         ("main", "/docs/runbook.html#hyperfleetdrivereventsunsent"))
        self.assertEqual(problem["message"],
                         "has refused events for over 5 minutes: it answers 503")
        self.main.answers = lambda event: 204
        self.arrived(self.main, cluster["id"])
        eventually(lambda: not problems(), "it is over")


class Secrets(WebhookCase):
    def test_a_new_secret_at_sighup(self):
        def signed_with(secret):
            id_ = self.cluster()["id"]
            self.arrived(self.main, id_)
            with self.main.lock:
                return [verify(secret, h, b) for e, h, b in self.main.events
                        if e["data"].get("id") == id_] == [True]

        self.assertTrue(signed_with(SECRET))
        self.write(OTHER)
        self.assertTrue(signed_with(SECRET), "not before SIGHUP")
        self.server.proc.send_signal(1)
        eventually(lambda: signed_with(OTHER), "the new secret")
        self.write("whsec_short")
        self.server.proc.send_signal(1)
        eventually(lambda: "cannot read the secret of a webhook" in "\n".join(self.server.lines),
                   "a bad one is refused")
        self.assertTrue(signed_with(OTHER), "the old one stays in use")

    def test_a_new_target_begins_now(self):
        """And one that was away from the settings begins anew."""
        before = self.cluster()
        self.arrived(self.main, before["id"])
        late = Receiver()
        self.addCleanup(late.close)
        self.write(SECRET)
        flags, own = list(self.server.flags), self.hook("late", late.url())
        for more in (own, [], own):
            self.assertEqual(self.server.sigterm(), 0)
            self.server.flags = flags + more
            self.server.start()
            after = self.cluster()
            self.arrived(self.main, after["id"])
            if more:
                self.arrived(late, after["id"])
        self.assertEqual(self.server.sigterm(), 0)
        self.server.flags = flags
        self.server.start()
        self.assertEqual(len({e["data"]["id"] for e in [e for e, _, _ in late.events]}), 2)


class Refused(unittest.TestCase):
    def test_bad_settings(self):
        folder = tempfile.mkdtemp(prefix="hfd-hooks-")
        self.addCleanup(shutil.rmtree, folder)
        good, bad = os.path.join(folder, "good"), os.path.join(folder, "bad")
        for path, text in ((good, SECRET), (bad, "secret")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o600)
        url = "url: 'http://u:hidden@h/x?hidden'"
        for hook, words in (
                (url, ("events.webhooks.a.url: expected a secret_file with it",)),
                ("secret_file: " + good, ("events.webhooks.a.secret_file: expected a url",)),
                ("types: states", ("events.webhooks.a.types: expected a url",)),
                (url + ", secret_file: /none", ("events.webhooks.a.secret_file: ", "/none")),
                (url + ", secret_file: " + bad,
                 ("events.webhooks.a.secret_file: ", "expected whsec_ and the base64 of 24 to 64")),
                (url + ", ca_file: /none, secret_file: " + good,
                 ("events.webhooks.a.ca_file: ", "/none")),
                ("url: 'hidden://h'", ("events.webhooks.a.url: expected a URL",)),
                (url + ", types: [all]", ("events.webhooks.a.types: expected a list",))):
            config = os.path.join(folder, "c.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write("events: {webhooks: {a: {%s}}}\n" % hook)
            for command in (("config", "check"), ("serve",)):
                done = run(*command, "--config", config, "--data", os.path.join(folder, "d"))
                self.assertEqual(done.returncode, 2, (hook, done))
                text = done.stdout + done.stderr
                for word in ("c.yaml:1",) + words:
                    self.assertIn(word, text, hook)
                self.assertNotIn("hidden@", text)
        self.assertFalse(os.path.exists(os.path.join(folder, "d")), "nothing was made")


class Repeats(WebhookCase):
    REPEATS = ()

    def test_repeats(self):
        """While the adapters stay silent the event comes again, with another id."""
        cluster = self.cluster()
        eventually(lambda: len(self.main.taken(cluster["id"])) >= 2, "it comes again", 60)
        first, second = self.main.taken(cluster["id"])[:2]
        self.assertNotEqual(first["id"], second["id"], "receivers would drop it")
        self.assertEqual(first["data"], second["data"])


if __name__ == "__main__":
    unittest.main()
