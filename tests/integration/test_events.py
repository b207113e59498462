"""The watch: /api/hyperfleet/v1/events, as a long poll and as Server-Sent Events."""
import contextlib
import http.client
import json
import random
import re
import socket
import struct
import threading
import time
import unittest

from lib import (BASE, TIME_FACTOR, Case, Client, cluster_input, eventually, guresid, report_body,
                 run)

EVENTS = BASE + "/events"
UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
HREF = "/api/hyperfleet/v1/clusters/"


class Stream:
    """Server-Sent Events of one request, read as they come."""

    def __init__(self, port, query="", **headers):
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.conn.request("GET", EVENTS + query, headers=dict(headers,
                                                              Accept="text/event-stream"))
        self.answer = self.conn.getresponse()

    def block(self):
        """The members of the next block; None at the end."""
        found = {}
        while True:
            line = self.answer.readline()
            if not line:
                return found or None
            line = line.decode().rstrip("\n")
            if not line:
                if found:
                    return found
                continue
            field, _, value = line.partition(":")
            found[field] = value.lstrip(" ")

    def event(self):
        """(cursor, event) of the next block that has one."""
        while True:
            block = self.block()
            if block is None:
                return None
            if "data" in block:
                return block.get("id"), json.loads(block["data"])

    def close(self):
        self.conn.close()


class EventsCase(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--events-repeats-per-second", "0")

    def metric(self, name):
        with contextlib.closing(Client(self.server, ops=True)) as ops:
            text = ops.get("/metrics").body.decode()
        return int(re.search("^%s ([0-9]+)$" % name, text, re.M)[1])

    def ask(self, query="", status=200, **headers):
        answer = self.client.get(EVENTS + query, headers=headers)
        self.assertEqual(answer.status, status, answer)
        return answer

    def now(self):
        """The cursor of this moment."""
        answer = self.ask().json
        self.assertEqual(answer["items"], [])
        return answer["next"]

    def behind(self, cursor, query=""):
        """[(kind, generation, id)] of what is due behind a cursor."""
        return [(e["data"]["kind"], e["data"]["generation"], e["data"]["id"])
                for e in self.ask("?after=%s%s" % (cursor, query)).json["items"]]

    def cluster(self, name=None, **kw):
        answer = self.client.post(BASE + "/clusters", dict(
            {"kind": "Cluster", "name": name or guresid("c"), "spec": {}}, **kw))
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def pool(self, cluster):
        answer = self.client.post(cluster["href"] + "/nodepools", {
            "kind": "NodePool", "name": guresid("p")[:15].rstrip("-"), "spec": {}})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def stream(self, query="", **headers):
        stream = Stream(self.server.port, query, **headers)
        self.addCleanup(stream.close)
        return stream


class Events(EventsCase):
    def test_the_bytes(self):
        """A cluster's and a nodepool's event, member for member in upstream's order."""
        cursor = self.now()
        cluster = self.cluster()
        pool = self.pool(cluster)
        answer = self.ask("?after=" + cursor)
        raw = answer.body.decode()
        ids = re.findall(r'"specversion":"1.0","id":"([^"]*)"', raw)
        self.assertEqual(len(ids), 2)
        for id_ in ids:
            self.assertRegex(id_, UUID7)
        self.assertLess(abs(int(ids[0].replace("-", "")[:12], 16) / 1000 - time.time()), 60)
        head = ('{"specversion":"1.0","id":"%s","source":"hyperfleet-sentinel","type":'
                '"com.redhat.hyperfleet.%s.reconcile","datacontenttype":"application/json","data":')
        own = '"href":"%s%s","id":"%s","kind":"Cluster"' % (HREF, cluster["id"], cluster["id"])
        self.assertEqual(raw, '{"items":[%s{"generation":1,%s}},%s{"generation":1,"href":'
                         '"%s%s/nodepools/%s","id":"%s","kind":"NodePool","owner_references":{%s}}}'
                         '],"next":"%s"}' % (
                             head % (ids[0], "cluster"), own, head % (ids[1], "nodepool"), HREF,
                             cluster["id"], pool["id"], pool["id"], own, answer.json["next"]))
        self.assertGreater(int(answer.json["next"]), int(cursor))
        self.assertEqual(raw, self.ask("?after=" + cursor).body.decode(), "the same event again")

    def test_traces(self):
        """A request's traceparent goes into its event, and into all lines that it brings about."""
        cursor = self.now()
        first, second = ("00-%032x-00f067aa0ba902b7-01" % random.getrandbits(127)
                         for _ in range(2))
        gid = guresid()
        answer = self.client.put("/" + gid, cluster_input(), {"traceparent": first})
        self.assertEqual(answer.status, 202, answer)

        def traces():
            return [e.get("traceparent") for e in self.ask("?after=" + cursor).json["items"]]
        self.assertEqual(set(traces()), {first})
        made = [e["data"] for e in self.ask("?after=" + cursor).json["items"]]
        for part in made:
            for adapter in self.fleet.required[part["kind"]]:
                answer = self.client.post(part["href"] + "/statuses", report_body(adapter, 1),
                                          {"traceparent": second})
                self.assertEqual(answer.status, 201, answer)
        eventually(lambda: [r for r in self.server.records()
                            if r.get("trace") == first[3:35] and r["msg"] == "request"],
                   "the line of the request")

        def ready():
            return [r for r in self.server.records() if r["msg"] == "resource ready"
                    and r["guresid"] == gid]
        eventually(ready, "its line in the log")
        self.assertEqual([r.get("trace") for r in ready()], [second[3:35]])
        cluster = [m for m in made if m["kind"] == "Cluster"][0]
        cursor = self.now()
        for trace in (None, "00-xyz", first.upper()):
            answer = self.client.patch(cluster["href"], {"spec": {"a": str(trace)}},
                                       {} if trace is None else {"traceparent": trace})
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(traces(), [None])

    def test_each_change_is_due(self):
        """Each resource once, at its last change; a report is no change."""
        cursor = self.now()
        cluster = self.cluster()
        pool = self.pool(cluster)
        c, p = cluster["id"], pool["id"]
        self.assertEqual(self.behind(cursor), [("Cluster", 1, c), ("NodePool", 1, p)])
        self.assertEqual(self.client.patch(cluster["href"], {"spec": {"a": 1}}).status, 200)
        self.assertEqual(self.behind(cursor), [("NodePool", 1, p), ("Cluster", 2, c)])
        self.assertEqual(self.client.patch(cluster["href"], {"spec": {"a": 1}}).status, 200)
        self.fleet.make_ready(cluster)
        self.fleet.make_ready(pool)
        self.assertEqual(self.behind(cursor), [("NodePool", 1, p), ("Cluster", 2, c)])
        middle = self.ask("?after=" + cursor).json["next"]
        self.assertEqual(self.client.delete(cluster["href"]).status, 202)
        self.assertEqual(self.behind(middle), [("Cluster", 3, c), ("NodePool", 2, p)])
        self.fleet.finalize(pool)
        self.fleet.finalize(cluster)
        self.assertEqual(self.client.get(cluster["href"]).status, 404)
        self.assertEqual(self.behind(middle), [("Cluster", 3, c), ("NodePool", 2, p)],
                         "events of what was removed stay")

    def test_force_delete(self):
        cluster = self.cluster()
        pool = self.pool(cluster)
        self.client.delete(cluster["href"])
        cursor = self.now()
        self.assertEqual(self.client.post(cluster["href"] + "/force-delete",
                                          {"reason": "x"}).status, 204)
        self.assertEqual(self.behind(cursor), [("NodePool", 2, pool["id"]),
                                               ("Cluster", 2, cluster["id"])])

    def test_a_new_attempt_is_due(self):
        """A PUT of a failed resource has all its parts looked at again, with the same spec."""
        gid = guresid("again")
        body = cluster_input(name=gid, nodepools=[{"name": "wk1", "spec": {}}])
        self.assertEqual(self.put(gid, body).status, 202)
        cluster, pool = self.fleet.of(gid)[0][0], self.fleet.of(gid)[1][0]
        self.fleet.accepted(cluster, "validation", available=False, reason="InvalidSpec")
        self.assertEqual(self.get(gid).status, 400)
        cursor = self.now()
        self.assertEqual(self.put(gid, body).status, 202)
        self.assertEqual(self.behind(cursor), [("Cluster", 1, cluster["id"]),
                                               ("NodePool", 1, pool["id"])])
        cursor = self.now()
        self.assertEqual(self.put(gid, body).status, 202)
        self.assertEqual(self.behind(cursor), [], "a poll is no attempt")

    def test_filters_and_pages(self):
        mark = guresid("mark")
        cursor = self.now()
        made = [self.cluster(labels={"mark": mark, "n": str(i % 2)}) for i in range(5)]
        pool = self.pool(made[0])
        ids = [c["id"] for c in made]
        for query, wanted in (
                ("&kind=Cluster", ids), ("&kind=NodePool", [pool["id"]]),
                ("&label=mark=" + mark, ids), ("&label=n=1", ids[1::2]),
                ("&label=n=1&label=mark=" + mark, ids[1::2]), ("&label=n=2", []),
                ("&label=n=0&kind=NodePool", []), ("&size=2", ids[:2])):
            self.assertEqual([i for _, _, i in self.behind(cursor, query)], wanted, query)
        read, at = [], cursor
        while True:
            answer = self.ask("?size=2&after=" + at).json
            if not answer["items"]:
                break
            read += [e["data"]["id"] for e in answer["items"]]
            at = answer["next"]
        self.assertEqual(read, ids + [pool["id"]])
        nothing = self.ask("?label=n=2&after=" + cursor).json
        self.assertEqual(nothing["next"], at, "the cursor passes what is not wanted")

    def test_wrong_questions(self):
        for query, field in (("?after=x", "after"), ("?after=-1", "after"), ("?wait=51s", "wait"),
                             ("?wait=5", "wait"), ("?kind=cluster", "kind"), ("?label=x", "label"),
                             ("?label==x", "label"), ("?size=0", "size"), ("?size=501", "size"),
                             ("?since=1", "since"), ("?label=" + "&label=".join(["a=b"] * 11),
                                                     "label")):
            doc = self.ask(query, 400).json
            self.assertEqual(doc["errors"][0]["field"], field, query)
        doc = self.ask("", 400, **{"Last-Event-ID": "x", "Accept": "text/event-stream"}).json
        self.assertEqual(doc["errors"][0]["field"], "Last-Event-ID")
        doc = self.ask("?after=%d" % (10 ** 12), 410).json
        self.assertIn("Events-Cursor", doc["detail"])
        self.assertEqual(self.client.post(EVENTS, {}).status, 405)
        self.assertEqual(self.client.request("HEAD", EVENTS + "?wait=50s").status, 200)

    def test_a_list_then_its_cursor(self):
        before = self.cluster()
        answer = self.client.get(BASE + "/clusters?pageSize=1")
        cursor = answer.header("Events-Cursor")
        after = self.cluster()
        self.assertEqual(answer.json["items"][0]["id"], before["id"])
        self.assertEqual(self.behind(cursor), [("Cluster", 1, after["id"])])
        for path in ("/nodepools", "/clusters/%s/nodepools" % before["id"],
                     "/clusters?search=name='x'"):
            self.assertEqual(self.client.get(BASE + path).header("Events-Cursor"),
                             self.now(), path)
        self.assertIsNone(self.client.get(before["href"]).header("Events-Cursor"))

    def test_a_wait(self):
        """An empty answer is held until there is an event that passes, or the time is over."""
        cursor = self.now()
        got = []

        def ask(query):
            with contextlib.closing(Client(self.server)) as client:
                began = time.monotonic()
                got.append((client.get(EVENTS + query).json, time.monotonic() - began))

        for query, wanted in (("?wait=20s", 1), ("?wait=20s&after=%s", 1),
                              ("?wait=500ms&kind=NodePool", 0)):
            query = query.replace("%s", cursor)
            del got[:]
            threads = [threading.Thread(target=ask, args=(query,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            if "after" not in query:
                eventually(lambda: self.metric("hfd_event_watchers") >= 3, "they wait")
            cluster = self.cluster()
            for thread in threads:
                thread.join()
            for doc, took in got:
                self.assertEqual(len(doc["items"]), wanted, query)
                if wanted:
                    self.assertLess(took, 10 * TIME_FACTOR)
                    self.assertEqual(doc["items"][0]["data"]["id"], cluster["id"])
                else:
                    self.assertGreaterEqual(took, 0.5)
                    self.assertGreater(int(doc["next"]), int(cursor))
                    self.assertLessEqual(int(doc["next"]), int(self.now()))
            cursor = self.now()
        eventually(lambda: self.metric("hfd_event_watchers") == 0, "none waits")
        self.assertEqual(self.metric("hfd_http_requests_in_flight"), 0)

    def test_a_stream(self):
        stream = self.stream()
        self.assertEqual(stream.answer.status, 200)
        self.assertEqual(stream.answer.headers["Content-Type"], "text/event-stream")
        self.assertEqual(stream.answer.headers["Cache-Control"], "no-store")
        first = stream.block()
        self.assertEqual(first["retry"], "2000")
        made = [self.cluster() for _ in range(3)]
        events = [stream.event() for _ in made]
        self.assertEqual([e["data"]["id"] for _, e in events], [c["id"] for c in made])
        self.assertEqual([c for c, _ in events], sorted((c for c, _ in events), key=int))
        again = self.stream("?after=0", **{"Last-Event-ID": events[0][0]})
        self.assertEqual([again.event() for _ in range(2)], events[1:])
        named = self.stream("?after=%s&label=name=x" % events[0][0])
        other = self.cluster(labels={"name": "x"})
        self.assertEqual(named.event()[1]["data"]["id"], other["id"])
        gone = self.stream("?after=%d" % 10 ** 12)
        self.assertEqual((gone.answer.status, gone.answer.reason), (410, "Gone"))

    def test_a_caller_that_has_gone(self):
        stream = self.stream()
        poll = http.client.HTTPConnection("127.0.0.1", self.server.port)
        poll.request("GET", EVENTS + "?wait=50s")
        eventually(lambda: self.metric("hfd_event_watchers") == 2, "both wait")
        stream.answer.close()
        stream.close()
        poll.close()
        eventually(lambda: self.metric("hfd_event_watchers") == 0, "both are gone")

    def raw(self, behind=b"", **options):
        """A socket that has asked for a stream."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        for option, value in options.items():
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)
        sock.connect(("127.0.0.1", self.server.port))
        sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n%s"
                     % (EVENTS.encode(), behind))
        return sock

    def test_callers_that_reset(self):
        """At any moment: while the request is read, its head is written, or it waits."""
        for i in range(60):
            sock = self.raw(SO_LINGER=struct.pack("ii", 1, 0))
            if i % 3 == 0:
                sock.recv(1)
            elif i % 3 == 1:
                time.sleep(random.random() / 1000)
            sock.close()
        eventually(lambda: self.metric("hfd_event_watchers") == 0, "all are gone")

    def test_bytes_behind_the_request(self):
        """They are dropped, and the last event arrives all the same."""
        sock = self.raw(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        seen = sock.recv(4096)
        self.cluster()
        while b"\ndata: " not in seen:
            seen += sock.recv(4096)
        self.assertEqual(seen.count(b"HTTP/1.1 "), 1, seen)
        sock.sendall(b"x" * 100)
        self.server.sigterm()
        self.server.start()
        while not seen.endswith(b"event: end\ndata: {}\n\n"):
            more = sock.recv(4096)
            self.assertTrue(more, seen)
            seen += more

    def test_many_writers(self):
        """Eight writers, one reader by cursor and one stream: nothing is missed, in order."""
        stream = self.stream()
        stream.block()
        cursor, made, lock = self.now(), [], threading.Lock()

        def write():
            with contextlib.closing(Client(self.server)) as client:
                for _ in range(20):
                    answer = client.post(BASE + "/clusters", {
                        "kind": "Cluster", "name": guresid("w"), "spec": {}})
                    with lock:
                        made.append(answer.json["id"])

        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        read, seen = [], []
        while len(read) < 160:
            answer = self.ask("?wait=10s&size=7&after=" + cursor).json
            self.assertTrue(answer["items"])
            read += [e["data"]["id"] for e in answer["items"]]
            cursor = answer["next"]
        for thread in threads:
            thread.join()
        for _ in range(160):
            seen.append(stream.event()[1]["data"]["id"])
        self.assertEqual(sorted(read), sorted(made))
        self.assertEqual(seen, read)


class Ends(EventsCase):
    """How answers that wait end."""

    def test_a_drain(self):
        stream = self.stream()
        stream.block()
        got = []
        poll = threading.Thread(target=lambda: got.append(
            Client(self.server).get(EVENTS + "?wait=50s")))
        poll.start()
        eventually(lambda: self.metric("hfd_event_watchers") == 2, "both wait")
        began = time.monotonic()
        self.server.sigterm()
        self.assertLess(time.monotonic() - began, 10 * TIME_FACTOR)
        poll.join()
        self.assertEqual((got[0].status, got[0].json["items"]), (200, []))
        last = stream.block()
        while set(last) == {"id"}:
            last = stream.block()
        self.assertEqual((last["event"], last["data"]), ("end", "{}"))
        self.assertIsNone(stream.block())
        self.server.start()

    def test_events_outlive_a_kill(self):
        cursor = self.now()
        clusters = [self.cluster() for _ in range(3)]
        self.server.restart()
        self.assertEqual([i for _, _, i in self.behind(cursor)], [c["id"] for c in clusters])


class Repeats(EventsCase):
    FLAGS = ()

    def test_repeats(self):
        """While the adapters stay silent the event comes again; cursors stay where they are."""
        cluster = self.cluster()
        cursor = self.now()
        stream = self.stream("?after=" + cursor)
        first = self.ask("?after=0").json["items"]
        first = [e for e in first if e["data"]["id"] == cluster["id"]]
        self.assertEqual(len(first), 1)
        deadline = time.monotonic() + 40 * TIME_FACTOR
        polled, streamed = None, None
        while polled is None and time.monotonic() < deadline:
            doc = self.ask("?wait=5s&after=" + cursor).json
            self.assertEqual(doc["next"], cursor)
            polled = ([e for e in doc["items"] if e["data"]["id"] == cluster["id"]] or [None])[0]
        while streamed is None and time.monotonic() < deadline:
            block = stream.block()
            event = json.loads(block["data"]) if "data" in block else None
            if event is not None and event["data"]["id"] == cluster["id"]:
                streamed = event
                self.assertEqual(block.get("id", cursor), cursor)
        for event in (polled, streamed):
            self.assertIsNotNone(event, "no event came again")
            self.assertNotEqual(event["id"], first[0]["id"], "receivers would drop it")
            self.assertEqual(event["data"], first[0]["data"])


class Places(EventsCase):
    FLAGS = EventsCase.FLAGS + ("--events-watchers-max", "8", "--http-connections-max", "4")

    def token(self, name):
        done = run("token", "create", "--new", "--name", name, "--scope",
                   "fleet-read,fleet-write", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {"Authorization": "Bearer " + done.stdout.strip()}

    def test_places(self):
        """A quarter of all for one token, and then all; ordinary callers never notice."""
        tokens = [self.token(name) for name in ("a", "b", "c", "d", "e")]
        for token in tokens:
            eventually(lambda t=token: self.client.get(BASE + "/clusters", headers=t).status == 200
                       and self.client.get(EVENTS).status == 401, "tokens count")
        streams = []
        for i, token in enumerate(tokens):
            for wanted in (200, 200, 503) if i < 4 else (503,):
                stream = self.stream(**token)
                self.assertEqual(stream.answer.status, wanted, i)
                if wanted == 503:
                    self.assertIsNotNone(stream.answer.headers["Retry-After"])
                    stream.close()
                else:
                    streams.append(stream)
        self.assertEqual(self.client.get(BASE + "/clusters", headers=tokens[4]).status, 200)
        done = run("token", "revoke", "a", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        began = time.monotonic()
        for stream in streams[:2]:
            while stream.block() is not None:
                pass
        self.assertLess(time.monotonic() - began, 2.5 * TIME_FACTOR)
        eventually(lambda: self.stream(**tokens[4]).answer.status == 200, "two places are free")


if __name__ == "__main__":
    unittest.main()
