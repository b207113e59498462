"""Answers that are held: Prefer: wait on a driver resource, and wait of the driver's event feed."""
import contextlib
import http.client
import re
import threading
import time
import unittest

from lib import TIME_FACTOR, Case, Client, changed, cluster_input, eventually, guresid, run

FEED = "/api/driver/v1/events"
LONG = "wait=40"  # longer than any test takes
SOON_S = 10 * TIME_FACTOR  # far below LONG


class Asked:
    """A request on its way, in a thread of its own."""

    def __init__(self, server, method, path, body=None, headers=None):
        self.answer = self.took = None
        self.thread = threading.Thread(target=self.send, args=(server, method, path, body, headers))
        self.thread.start()

    def send(self, server, method, path, body, headers):
        began = time.monotonic()
        with contextlib.closing(Client(server)) as client:
            self.answer = client.request(method, path, body, headers)
        self.took = time.monotonic() - began

    def get(self):
        self.thread.join()
        return self.answer


class PreferCase(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def setUp(self):
        super().setUp()
        self.waiting = []

    def metric(self, name):
        with contextlib.closing(Client(self.server, ops=True)) as ops:
            text = ops.get("/metrics").body.decode()
        return float(re.search("^%s ([0-9.e+-]+)$" % re.escape(name), text, re.M)[1])

    def wait_for(self, count):
        eventually(lambda: self.metric("hfd_event_watchers") == count, "%d wait" % count)

    def ask(self, gid, method="GET", body=None, prefer=LONG, waits=True, **headers):
        """Ask, and see that it waits. An answered one may still have its place for a moment."""
        asked = Asked(self.server, method, "/" + gid, body, dict(headers, Prefer=prefer))
        self.addCleanup(asked.thread.join)
        if waits:
            self.waiting = [each for each in self.waiting if each.thread.is_alive()] + [asked]
            eventually(lambda: self.metric("hfd_event_watchers") == len(self.waiting)
                       or not asked.thread.is_alive(), "it waits")
        return asked

    def check(self, asked, status, hint=None, message=None, applied=LONG):
        answer = asked.get()
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.header("Preference-Applied"), applied)
        if hint is not None:
            self.check_hint(answer.json, hint)
        if message is not None:
            self.assertIn(message, answer.json["message"])
        self.assertLess(asked.took, SOON_S)
        return answer

    def making(self):
        """A resource that is being created, and its cluster."""
        gid, body, cookie = self.created(cluster_input(name=guresid("c")))
        return gid, body, cookie, self.fleet.cluster_of(gid)


class Prefer(PreferCase):
    def test_each_change_ends_the_wait(self):
        gid, body, cookie, cluster = self.making()
        asked = self.ask(gid)
        self.fleet.accepted(cluster, "validation", available=False, reason="Slow",
                            message="the disks are slow")
        self.check(asked, 202, "creating", "the disks are slow")
        asked = self.ask(gid)
        self.fleet.make_ready(cluster)
        self.checked("GET", gid, self.check(asked, 200))

        self.expect(self.put(gid, changed(body), cookie), 202)
        asked = self.ask(gid)
        self.expect(self.delete(gid, cookie), 202)
        self.check(asked, 202, "deleting")
        asked = self.ask(gid)
        self.fleet.finish_delete(gid)
        self.check(asked, 404)

    def test_a_failure_ends_the_wait(self):
        gid, _, _, cluster = self.making()
        asked = self.ask(gid)
        self.fleet.accepted(cluster, "validation", available=False, reason="InvalidSpec")
        self.checked("GET", gid, self.check(asked, 400))

    def test_a_change_by_others(self):
        """Another order is a change, and so is what HyperFleet's own API does to the cluster."""
        gid, body, cookie, cluster = self.making()
        self.fleet.make_ready(cluster)
        self.expect(self.put(gid, changed(body), cookie), 202)
        asked = self.ask(gid)
        self.expect(self.put(gid, changed(changed(body)), cookie), 202)
        self.check(asked, 202, "updating")
        asked = self.ask(gid)
        self.assertEqual(self.client.delete(cluster["href"]).status, 202)
        self.checked("GET", gid, self.check(asked, 400))

    def test_what_only_moves_is_no_change(self):
        """A report that says the same holds the answer, and so does a change of another."""
        gid, _, _, cluster = self.making()
        self.fleet.accepted(cluster, "validation", available=False, reason="Slow", message="same")
        asked = self.ask(gid, prefer="wait=2")
        began = time.monotonic()
        while time.monotonic() - began < 1:
            self.fleet.accepted(cluster, "validation", available=False, reason="Slow",
                                message="same")
            self.making()
        answer = self.check(asked, 202, "creating", "same", applied="wait=2")
        self.assertGreaterEqual(asked.took, 2)
        self.assertGreaterEqual(int(answer.header("Retry-After")), 1)

    def test_what_is_settled_is_answered_at_once(self):
        gid, body, cookie, cluster = self.making()
        self.fleet.make_ready(cluster)
        other = self.created(cluster_input(name=guresid("o")))
        for method, id_, sent, status in (
                ("GET", gid, None, 200), ("PUT", gid, body, 200), ("GET", guresid(), None, 404),
                ("DELETE", guresid(), None, 204), ("PUT", other[0], changed(other[1]), 409),
                ("GET", "-", None, 404), ("PUT", guresid(), {}, 400)):
            asked = self.ask(id_, method, sent, waits=False)
            self.check(asked, status, applied=None)
        began = time.monotonic()
        self.assertEqual(self.client.request("HEAD", "/" + other[0], None,
                                             {"Prefer": LONG}).status, 202)
        self.assertLess(time.monotonic() - began, SOON_S)

    def test_put_and_delete(self):
        """The first and the repeated ones wait for the end of the operation."""
        gid, body = guresid(), cluster_input(name=guresid("c"))
        asked = self.ask(gid, "PUT", body)
        again = self.ask(gid, "PUT", body)
        self.fleet.make_ready(self.fleet.cluster_of(gid))
        for each in asked, again:
            self.checked("PUT", gid, self.check(each, 200))
        asked = self.ask(gid, "DELETE")
        again = self.ask(gid, "DELETE")
        self.fleet.finish_delete(gid)
        for each in asked, again:
            self.checked("DELETE", gid, self.check(each, 204))
        self.assertEqual(self.get(gid).status, 404)

    def test_a_held_order_orders_nothing(self):
        """A held order undoes nothing that others decided meanwhile: it is asked anew."""
        gid, body, cookie, cluster = self.making()
        self.fleet.make_ready(cluster)
        first, second = changed(body), changed(changed(body))
        asked = self.ask(gid, "PUT", first)
        self.expect(self.put(gid, second, cookie), 202)
        answer = self.check(asked, 202, "updating")
        self.assertEqual(answer.header("Retry-After"), "1")
        self.fleet.make_ready(cluster)
        self.assertEqual(self.put(gid, second, cookie).status, 200, "the second one is in force")

        asked = self.ask(gid, "DELETE")
        self.fleet.finish_delete(gid)
        self.check(asked, 204)
        asked = self.ask(gid, "PUT", first)
        self.expect(self.delete(gid), 202)
        self.check(asked, 409)
        self.fleet.finish_delete(gid)
        self.assertEqual(self.get(gid).status, 404, "the order did not make it again")

    def test_two_wait_for_one(self):
        gid, _, _, cluster = self.making()
        both = [self.ask(gid), self.ask(gid)]
        self.fleet.make_ready(cluster)
        for asked in both:
            self.check(asked, 200)
        self.wait_for(0)
        self.assertEqual(self.metric("hfd_http_requests_in_flight"), 0)

    def test_the_header(self):
        """Malformed ones are ignored, more than 50 is lowered. An answer shows which it was."""
        gid, _, _, cluster = self.making()
        for prefer in ("wait", "wait=x", "wait=-1", "wait=1s", "wait=0", "waits=9", "", "wait=1.5",
                       "respond-async", 'foo="wait=9"', "wait=x, wait=9"):
            asked = self.ask(gid, prefer=prefer, waits=False)
            self.check(asked, 202, applied=None)
        wanted = {"wait=99": "wait=50", 'respond-async, WAIT = "7";a=b': "wait=7",
                  "wait=10, wait=20": "wait=10", "wait=99999999999999999999": "wait=50"}
        all_ = {prefer: self.ask(gid, prefer=prefer) for prefer in wanted}
        conn = http.client.HTTPConnection("127.0.0.1", self.server.port)
        self.addCleanup(conn.close)
        conn.putrequest("GET", "/" + gid)
        for value in ("handling=strict", "wait=33", "wait=44"):
            conn.putheader("Prefer", value)
        conn.endheaders()
        self.wait_for(len(wanted) + 1)
        self.fleet.make_ready(cluster)
        for prefer, asked in all_.items():
            self.check(asked, 200, applied=wanted[prefer])
        self.assertEqual(conn.getresponse().headers["Preference-Applied"], "wait=33")

    def test_a_large_order_is_not_held(self):
        body = cluster_input(name=guresid("c"), spec={"x": "y" * 70000})
        asked = self.ask(guresid(), "PUT", body, waits=False)
        self.check(asked, 202, applied=None)

    def test_a_client_that_goes_frees_its_place(self):
        gid, _, _, _ = self.making()
        conn = http.client.HTTPConnection("127.0.0.1", self.server.port)
        conn.request("GET", "/" + gid, headers={"Prefer": LONG})
        self.wait_for(1)
        conn.close()
        began = time.monotonic()
        self.wait_for(0)
        self.assertLess(time.monotonic() - began, SOON_S)

    def test_the_log_and_the_metrics(self):
        """The line has the whole time; the seconds of requests have none of the wait."""
        gid, _, _, cluster = self.making()
        name = 'hfd_http_request_duration_seconds_sum{method="GET",route="resource"}'
        self.get(gid)
        before = self.metric(name)
        asked = self.ask(gid, prefer="wait=2")
        self.assertEqual(self.metric("hfd_http_requests_in_flight"), 0)
        self.check(asked, 202, applied="wait=2")
        self.assertLess(self.metric(name) - before, 1)

    def test_a_drain_answers(self):
        gid, _, _, _ = self.making()
        asked = self.ask(gid)
        feed = Asked(self.server, "GET", FEED + "?wait=40s&after=" + self.newest())
        self.wait_for(2)
        self.server.sigterm()
        self.check(asked, 202, "creating")
        self.assertEqual((feed.get().status, feed.get().json["items"]), (200, []))
        self.server.start()

    def newest(self):
        """The cursor behind all of the feed."""
        at = "0"
        while True:
            doc = self.client.get(FEED + "?size=500&after=" + at).json
            if not doc["items"]:
                return str(doc["next"])
            at = str(doc["next"])

    def test_the_feed(self):
        gid, _, _, cluster = self.making()
        after = self.newest()
        both = [Asked(self.server, "GET", FEED + "?wait=40s&after=" + after) for _ in range(2)]
        self.wait_for(2)
        self.fleet.accepted(cluster, "validation", available=False, reason="Slow")
        self.making()
        self.fleet.make_ready(cluster)
        for asked in both:
            items = asked.get().json["items"]
            self.assertGreaterEqual(len(items), 1)
            self.assertLess(asked.took, SOON_S)
            self.assertIsNone(asked.get().header("Preference-Applied"))
        after = self.newest()
        asked = Asked(self.server, "GET", FEED + "?wait=500ms&after=" + after)
        self.assertEqual((asked.get().json["items"], str(asked.answer.json["next"])), ([], after))
        self.assertGreaterEqual(asked.took, 0.5)
        for wrong in ("51s", "5", "", "x"):
            answer = self.client.get(FEED + "?after=1&wait=" + wrong)
            self.assertEqual((answer.status, answer.json["errors"][0]["field"]), (400, "wait"))
        self.assertEqual(self.client.request("HEAD", FEED + "?wait=50s&after=" + after).status, 200)


class Deadline(PreferCase):
    FLAGS = ("--driver-deadline-create", "3s")

    def test_a_deadline_ends_the_wait(self):
        gid, _, _, _ = self.making()
        self.checked("GET", gid, self.check(self.ask(gid), 400))


class Places(PreferCase):
    FLAGS = ("--events-watchers-max", "4", "--http-connections-max", "4")

    def token(self, name):
        done = run("token", "create", "--new", "--name", name, "--scope",
                   "driver,view,fleet-read,fleet-write,adapter", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {"Authorization": "Bearer " + done.stdout.strip()}

    def test_without_a_place_it_is_given_at_once(self):
        gid, _, _, _ = self.making()
        after = str(self.client.get(FEED).json["next"])
        one, two = self.token("one"), self.token("two")
        eventually(lambda: self.client.get("/" + gid, headers=two).status == 202
                   and self.client.get("/" + gid).status == 401, "tokens count")
        held = self.ask(gid, **one)
        asked = self.ask(gid, waits=False, **one)
        self.check(asked, 202, "creating", applied=None)
        answer = self.client.get(FEED + "?wait=40s&after=" + after, headers=one)
        self.assertEqual(answer.status, 503, "a feed says so, as the watch does")
        self.assertIsNotNone(answer.header("Retry-After"))
        done = run("token", "revoke", "one", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        began = time.monotonic()
        self.assertEqual(held.get().status, 401)
        self.assertLess(time.monotonic() - began, 2.5 * TIME_FACTOR)
        held = self.ask(gid, prefer="wait=1", **two)
        self.check(held, 202, applied="wait=1")


if __name__ == "__main__":
    unittest.main()
