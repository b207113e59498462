"""Parallel callers, kill -9 under load with a ledger of acknowledged writes, a second server on the
same data, hang-ups, and SIGTERM.
"""
import http.client
import json
import os
import random
import socket
import threading
import time
import unittest

from lib import BASE, Case, Client, Fleet, LABEL, Server
from lib import cluster_input, eventually, guresid, parse_time

DRAIN_S = 20  # the default of http.drain_timeout
ONE_ADAPTER = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool",
               "validation")
CYCLES = int(os.environ.get("HFD_IT_CYCLES", "20"))
LOST = (OSError, http.client.HTTPException)


def together(n, fn):
    """Runs fn(0..n-1) in n threads that start at once; returns their results, and raises the first
    error.
    """
    barrier, results = threading.Barrier(n), [None] * n

    def work(i):
        try:
            barrier.wait(60)
            results[i] = fn(i)
        except BaseException as e:
            results[i] = e

    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


class Parallel(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def puts(self, gid, body_of, n=16):
        clients = [Client(self.server) for _ in range(n)]
        for c in clients:
            c.get("/" + gid)
        answers = together(n, lambda i: clients[i].put("/" + gid, body_of(i)))
        for c in clients:
            c.close()
        for a in answers:
            self.client.last = a
            self.checked("PUT", gid, a)
        return answers

    def test_identical_puts(self):
        """16 parallel identical PUTs of a new GUResID: every one 202 with the same cookie, one
        cluster, one set of nodepools.
        """
        for _ in range(5):
            gid = guresid("same")
            answers = self.puts(gid, lambda i: cluster_input(
                nodepools=[{"name": "one"}, {"name": "two"}]))
            self.assertEqual({a.status for a in answers}, {202})
            self.assertEqual(len({a.cookie for a in answers}), 1)
            clusters, pools = self.fleet.of(gid)
            self.assertEqual((len(clusters), len(pools)), (1, 2))

    def test_different_puts(self):
        """16 parallel different PUTs: one wins with 202, the rest get 409; HyperFleet holds the
        winner's input alone.
        """
        for _ in range(5):
            gid = guresid("diff")
            answers = self.puts(gid,
                                lambda i: cluster_input(spec={"n": i},
                                                        nodepools=[{"name": "np-%d" % i}]))
            self.assertEqual(sorted(a.status for a in answers), [202] + [409] * 15)
            winner = [a.status for a in answers].index(202)
            clusters, pools = self.fleet.of(gid)
            self.assertEqual([c["spec"] for c in clusters], [{"n": winner}])
            self.assertEqual([p["name"] for p in pools], ["np-%d" % winner])
            self.assertEqual({a.cookie for a in answers}, {answers[winner].cookie},
                             "the losers are told the cookie of what is under way")

    def test_same_name_different_resources(self):
        """16 GUResIDs that want one cluster name: one gets it, the others RES-101, and nothing of
        them is left.
        """
        ids = [guresid("name") for _ in range(16)]
        clients = [Client(self.server) for _ in ids]
        body = cluster_input(name="wanted-by-all", nodepools=[{"name": "one"}])
        answers = together(16, lambda i: clients[i].put("/" + ids[i], body))
        for c in clients:
            c.close()
        self.assertEqual(sorted(a.status for a in answers), [202] + [400] * 15)
        for gid, a in zip(ids, answers):
            clusters, pools = self.fleet.of(gid)
            self.assertEqual((len(clusters), len(pools)), (1, 1) if a.status == 202 else (0, 0))
            if a.status == 400:
                self.assertEqual(a.json["error"], "RES-101")

    def test_parallel_updates(self):
        """16 parallel updates of a ready resource: all are taken (they re-target), one after the
        other, none half.
        """
        gid, _, _ = self.brought_ready()
        answers = self.puts(gid, lambda i: cluster_input(
            spec={"n": i}, nodepools=[{"name": "workers", "spec": {"n": i}}]))
        self.assertEqual({a.status for a in answers}, {202})
        clusters, pools = self.fleet.of(gid)
        self.assertEqual((clusters[0]["generation"], pools[0]["generation"]), (17, 17))
        self.assertEqual(clusters[0]["spec"], pools[0]["spec"],
                         "cluster and nodepool are of one and the same PUT")

    def test_parallel_deletes_and_puts(self):
        """DELETEs beside PUTs: once a DELETE is answered, no PUT is taken any more."""
        gid, body, _ = self.brought_ready()
        clients = [Client(self.server) for _ in range(16)]
        answers = together(16, lambda i: clients[i].delete("/" + gid) if i % 2
                           else clients[i].put("/" + gid, body))
        for c in clients:
            c.close()
        self.assertEqual({a.status for a in answers[1::2]}, {202})
        self.assertTrue({a.status for a in answers[::2]} <= {200, 409})
        self.expect(self.put(gid, body), 409)
        self.assertEqual({c["generation"] for cs in self.fleet.of(gid) for c in cs}, {2})


class Entry:
    """The known facts of one GUResID: the acknowledged ones, and the one operation that was not
    acknowledged.
    """

    def __init__(self, gid, pools):
        self.gid, self.pools = gid, pools
        self.version = 0        # of the last acknowledged PUT; 0 = none
        self.deleting = False
        self.ready = False      # a GET answered 200 since the last acknowledged change
        self.finalizing = False
        self.pending = None     # "put", "change", "delete", "finalize"

    def body(self, version):
        return cluster_input(spec={"v": version},
                             nodepools=[{"name": "np-%d" % i, "spec": {"v": version}}
                                        for i in range(self.pools)])


class KillUnderLoad(unittest.TestCase):
    WORKERS = 4

    def setUp(self):
        self.server = Server(*ONE_ADAPTER)
        self.addCleanup(self.server.close)
        self.server.start()
        self.entries, self.reports = {}, {}
        self.random = random.Random(20)
        self.acked = 0

    def explain(self, text, entry=None):
        return "%s %s\nend of the log:\n%s" % (text, vars(entry) if entry else "",
                                               self.server.tail())

    def worker(self, number, stop, failures):
        """Orders, reports, changes and deletes until the connection breaks; an operation is in the
        ledger only once its answer was read.
        """
        client = Client(self.server)
        fleet = Fleet(client, ("validation",), ("validation",))
        rnd = random.Random(self.random.random())
        try:
            while not stop.is_set():
                mine = [Entry(guresid("k%d" % number), rnd.randrange(3)) for _ in range(4)]
                for e in mine:
                    self.entries[e.gid] = e
                    self.operate(e, "put",
                                 lambda: client.send_once("PUT", "/" + e.gid,
                                                          json.dumps(e.body(1))), 202)
                    e.version = 1
                parts = {}
                for kind in ("/clusters", "/nodepools"):
                    for item in self.send(client, "GET",
                                          BASE + kind + "?pageSize=100").json["items"]:
                        parts.setdefault(item["labels"].get(LABEL), []).append(item)
                for e in mine[1:]:
                    self.report(client, fleet, parts.get(e.gid, []))
                for e in mine[2:]:
                    answer = self.send(client, "GET", "/" + e.gid)
                    # The first pages of a busy list need not hold all parts.
                    if len(parts.get(e.gid, [])) == 1 + e.pools:
                        self.note(failures, answer.status == 200,
                                  "GET after all reports: %r" % answer)
                    e.ready = answer.status == 200
                e = mine[2]
                if e.ready:
                    self.operate(e, "change",
                                 lambda: client.send_once("PUT", "/" + e.gid,
                                                          json.dumps(e.body(2))), 202)
                    e.version, e.ready = 2, False
                e = mine[rnd.choice((0, 1, 3))]
                self.operate(e, "delete", lambda: client.send_once("DELETE", "/" + e.gid), 202)
                e.deleting = True
                if rnd.random() < 0.5:
                    e.finalizing = True
                    for item in parts.get(e.gid, [])[::-1]:
                        self.report(client, fleet, [dict(item, generation=2)], finalized=True)
        except LOST:
            pass
        except BaseException as e:
            failures.append("worker: %r" % e)
        finally:
            client.close()

    @staticmethod
    def note(failures, ok, text):
        if not ok:
            failures.append(text)

    @staticmethod
    def send(client, method, path, body=None):
        answer = client.send_once(method, path, body,
                                  {"Content-Type": "application/json"} if body else None)
        if answer.status >= 500:
            raise AssertionError(repr(answer))
        return answer

    def operate(self, entry, what, call, status):
        entry.pending = what
        answer = call()
        if answer.status != status:
            raise AssertionError("%s of %s: %r" % (what, entry.gid, answer))
        entry.pending = None
        self.acked += 1

    def report(self, client, fleet, items, **kw):
        for item in items:
            answer = fleet.report(item, "validation", **kw)
            if answer.status == 201:
                self.reports[item["href"]] = (item["labels"][LABEL],
                                              parse_time(answer.json["last_report_time"]))
                self.acked += 1
            elif answer.status != 404:
                raise AssertionError(repr(answer))

    def check_entry(self, client, e):
        answer = client.get("/" + e.gid)
        allowed = {200, 202}
        if e.version == 0 and e.pending == "put":
            allowed = {202, 404}
        if e.ready and not e.deleting and e.pending is None:
            allowed = {200}
        if e.deleting or e.pending == "delete":
            allowed = {202} if e.pending is None else {200, 202}
            if e.finalizing:
                allowed.add(404)
        self.assertIn(answer.status, allowed,
                      self.explain("%r is not in %s:" % (answer, allowed), e))
        if e.deleting and answer.status == 202:
            self.assertEqual(answer.json["status"], "deleting",
                             self.explain("a deletion was lost:", e))
        return answer.status

    def check_all(self, client):
        """Every driver resource has its cluster and nodepools, every labelled cluster and nodepool
        its driver resource; nothing twice.
        """
        fleet = Fleet(client)
        clusters, pools = {}, {}
        for c in fleet.list("/clusters"):
            self.assertNotIn(c["labels"][LABEL], clusters,
                             self.explain("two clusters for one GUResID"))
            clusters[c["labels"][LABEL]] = c
        for p in fleet.list("/nodepools"):
            pools.setdefault(p["labels"][LABEL], []).append(p)
        self.assertLessEqual(set(clusters), set(self.entries))
        self.assertLessEqual(set(pools), set(clusters), "nodepools without their cluster")
        for gid, e in self.entries.items():
            status = self.check_entry(client, e)
            cluster, own = clusters.get(gid), pools.get(gid, [])
            if status == 404:
                self.assertIsNone(cluster,
                                  self.explain("a cluster without its driver resource:", e))
                self.assertEqual(own, [])
                continue
            self.assertIsNotNone(cluster, self.explain("a driver resource without its cluster:", e))
            versions = {e.version}
            if e.pending in ("put", "change"):
                versions.add(e.version + 1)
            self.assertIn(cluster["spec"]["v"], versions,
                          self.explain("a lost or invented change:", e))
            self.assertEqual({p["owner_references"]["id"] for p in own} - {cluster["id"]}, set())
            if "deleted_time" in cluster:
                self.assertTrue(e.deleting or e.pending == "delete",
                                self.explain("an invented deletion:", e))
                self.assertTrue(all("deleted_time" in p for p in own),
                                self.explain("half a deletion:", e))
                self.assertLessEqual(len(own), e.pools)
            else:
                self.assertEqual(len(own), e.pools, self.explain("half a resource:", e))
                self.assertEqual({p["spec"]["v"] for p in own} - {cluster["spec"]["v"]}, set(),
                                 self.explain("half a change:", e))

    def check_reports(self, client):
        """Every acknowledged report is stored, or its resource is gone for good."""
        for href, (gid, at) in self.reports.items():
            answer = client.get(href + "/statuses")
            if answer.status == 404:
                self.assertTrue(self.entries[gid].finalizing,
                                self.explain("a report and its resource were lost:",
                                             self.entries[gid]))
                continue
            items = {i["adapter"]: i for i in answer.json["items"]}
            self.assertIn("validation", items,
                          self.explain("an acknowledged report was lost: " + href))
            self.assertGreaterEqual(parse_time(items["validation"]["last_report_time"]), at,
                                    self.explain("an older report came back: " + href))

    def test_twenty_kills(self):
        """kill -9 under load, 20 times: no acknowledged write is lost, no half-made resource."""
        for cycle in range(CYCLES):
            stop, failures = threading.Event(), []
            known, goal = len(self.entries), self.acked + self.random.randrange(5, 250)
            self.reports.clear()
            threads = [threading.Thread(target=self.worker, args=(i, stop, failures))
                       for i in range(self.WORKERS)]
            for t in threads:
                t.start()
            eventually(lambda: self.acked >= goal or failures, "%d writes are acknowledged" % goal,
                       every_s=0.002)
            self.server.kill9()
            stop.set()
            for t in threads:
                t.join()
            self.assertEqual(failures, [], self.explain("cycle %d" % cycle))
            self.server.start()
            client = Client(self.server)
            for gid in list(self.entries)[known:]:
                self.check_entry(client, self.entries[gid])
            self.check_reports(client)
            if cycle % 5 == 4 or cycle == CYCLES - 1:
                self.check_all(client)
            client.close()
        self.assertGreater(self.acked, CYCLES * 20)


class StartAndStop(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_kill_at_start(self):
        """kill -9 at any moment of the first start: the next start works."""
        for tick in (0.0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.04, 0.08):
            with self.subTest(tick):
                server = Server(*ONE_ADAPTER)
                try:
                    server.spawn()
                    server.ready.wait(tick)
                    server.kill9()
                    server.start()
                    client = Client(server)
                    self.assertEqual(client.put("/abc", cluster_input()).status, 202)
                    client.close()
                finally:
                    server.close()

    def test_second_server(self):
        """A second server on the same data is refused with a message that says why; the first does
        not notice.
        """
        gid, body, cookie = self.created()
        second = Server(*self.server.flags, data=self.server.data)
        try:
            with self.assertRaises(AssertionError) as refused:
                second.start()
            self.assertIn("at start", str(refused.exception))
            text = "\n".join(second.lines)
            self.assertIn(self.server.data, text)
            self.assertRegex(text, "lock|in use|another|already")
        finally:
            second.close()
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).cookie, cookie)
        self.restart()
        self.expect(self.get(gid, cookie), 202)

    def test_sigterm_is_clean(self):
        """SIGTERM with idle keep-alive connections: exit 0 soon, a checkpointed database,
        everything there afterwards.
        """
        gid, body, cookie = self.created()
        idle = [Client(self.server) for _ in range(5)]
        for c in idle:
            c.get("/abc")
        start = time.monotonic()
        self.assertEqual(self.server.sigterm(), 0)
        self.assertLess(time.monotonic() - start, DRAIN_S, "idle connections do not hold it up")
        for folder, _, names in os.walk(self.server.data):
            for name in names:
                if name.endswith("-wal"):
                    self.assertEqual(os.path.getsize(os.path.join(folder, name)), 0,
                                     "the write-ahead log is checkpointed")
        self.server.start()
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).cookie, cookie)
        for c in idle:
            c.close()

    def test_sigint(self):
        """Ctrl-C ends it like SIGTERM."""
        self.server.proc.send_signal(2)
        self.assertEqual(self.server.wait(), 0)

    def test_sigterm_answers_what_is_in_flight(self):
        """A request whose body is still on its way when SIGTERM comes is answered; new connections
        are not taken.
        """
        gid = guresid("drain")
        body = json.dumps(cluster_input()).encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
            head = ("PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (gid, len(body)))
            s.sendall(head.encode())
            self.assertTrue(s.recv(4096).endswith(b"\r\n\r\n"), "the head has been read")
            s.sendall(body[:10])
            port = self.server.port
            self.server.proc.send_signal(15)

            def closed():
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    return False
                except ConnectionRefusedError:
                    return True

            eventually(closed, "the listener is closed")
            s.sendall(body[10:])
            resp = http.client.HTTPResponse(s, method="PUT")
            resp.begin()
            answered = resp.read()
            self.assertEqual(resp.status, 202, answered)
            self.check_hint(json.loads(answered))
        self.assertEqual(self.server.wait(), 0)
        self.server.start()
        self.expect(self.get(gid), 202)

    def test_sigterm_under_load(self):
        """SIGTERM under load: every answer is whole, every acknowledged write is there afterwards,
        exit 0.
        """
        acked, broken = [], []

        def work(i):
            client = Client(self.server)
            try:
                for j in range(100000):
                    gid = guresid("t%d" % i)
                    answer = client.send_once("PUT", "/" + gid,
                                              json.dumps(
                                                  cluster_input(nodepools=[{"name": "one"}])))
                    if answer.status == 202:
                        self.check_hint(answer.json)
                        acked.append(gid)
                    elif answer.status != 503:
                        broken.append(repr(answer))
            except http.client.IncompleteRead as e:
                broken.append(repr(e))
            except LOST:
                pass
            finally:
                client.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        eventually(lambda: len(acked) > 100, "100 writes")
        self.assertEqual(self.server.sigterm(), 0)
        for t in threads:
            t.join()
        self.assertEqual(broken, [])
        self.server.start()
        for gid in acked:
            self.expect(self.get(gid), 202)

    def test_hang_ups(self):
        """Clients that hang up at any point of a request do no harm. A PUT that arrived in part
        makes nothing.
        """
        body = json.dumps(cluster_input(nodepools=[{"name": "one"}])).encode()
        whole, part = [], []
        for i in range(60):
            gid = guresid("hang")
            raw = b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (
                gid.encode(), len(body)) + body
            cut = len(raw) if i % 3 == 0 else 1 + (i * 37) % (len(raw) - 1)
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
                s.sendall(raw[:cut])
                if i % 2:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                else:
                    s.shutdown(socket.SHUT_WR)
            (whole if cut == len(raw) and i % 2 == 0 else part).append((gid, cut == len(raw)))
        for gid, complete in part:
            answer = self.get(gid)
            self.assertIn(answer.status, (202, 404) if complete else (404,))
        # The server may drop the request of a client that has gone; half of it is what must not be.
        for gid, _ in whole:
            def consistent():
                status = self.get(gid).status
                clusters, pools = self.fleet.of(gid)
                return (status, len(clusters), len(pools)) in ((202, 1, 1), (404, 0, 0))
            eventually(consistent, "%s is there or not" % gid)

    def test_pipelining(self):
        """Requests sent ahead are carried out and answered in order, or neither."""
        ids = [guresid("pipe") for _ in range(10)]
        body = json.dumps(cluster_input()).encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
            s.sendall(b"".join(
                b"PUT /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                % (gid.encode(), len(body)) + body for gid in ids))
            data = b""
            while True:
                chunk = s.recv(65536)
                if not chunk:
                    break
                data += chunk
        answers = data.split(b"HTTP/1.1 ")[1:]
        self.assertEqual([int(part[:3]) for part in answers], [202] * len(answers))
        self.assertGreater(len(answers), 0)
        self.assertEqual([b"\r\nConnection: close\r\n" in part for part in answers],
                         [False] * (len(answers) - 1) + [True])
        self.assertEqual([self.get(gid).status for gid in ids],
                         [202] * len(answers) + [404] * (len(ids) - len(answers)))


if __name__ == "__main__":
    unittest.main()
