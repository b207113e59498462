#!/usr/bin/env python3
"""Two servers on one PostgreSQL with one key ring: its keys in two steps, and another ring. Starts
without a database, and `doctor` with one.
"""
import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import real
import postgres

lib = real.lib
WAIT_S = 60


class Replica(lib.Server):
    """A server on the database."""

    def __init__(self, url, ring, *flags, env=None):
        super().__init__(*flags, env=env)
        self.url, self.ring = url, ring
        self.ops_listen = "127.0.0.1:0"

    def command(self):
        return [lib.program(), "serve", "--listen", "127.0.0.1:0", "--ops-listen", self.ops_listen,
                "--store", self.url, "--keys", self.ring, *self.flags]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.db = postgres.Postgres()
        cls.addClassCleanup(cls.db.close)
        cls.db.start()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hfd-real-ring-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.url = self.db.create("t%d" % abs(hash(self.id())))
        self.ring = self.make_ring("ring")

    def make_ring(self, name):
        path = os.path.join(self.dir, name)
        done = lib.run("keygen", "--keys", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def replica(self, ring=None, url=None, **kw):
        server = Replica(url or self.url, ring or self.ring, **kw)
        self.addCleanup(server.close)
        return server

    def client(self, server, ops=False):
        client = lib.Client(server, ops=ops)
        self.addCleanup(client.close)
        return client

    def keygen(self, step, status):
        done = lib.run("keygen", step, "--keys", self.ring, "--store", self.url)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def doctor(self, *flags, url=None):
        done = lib.run("doctor", "--json", "--store", url or self.url, "--keys", self.ring, *flags)
        self.assertNotIn(":hfd@", done.stdout + done.stderr)
        lines = {}
        for line in json.loads(done.stdout)["lines"]:
            lines.setdefault(line["about"], []).append(line)
        return done.returncode, lines


def put(client, gid, cookie=None):
    return client.put("/" + gid, lib.cluster_input(),
                      {"Humanitec-Driver-Cookie": cookie} if cookie else None)


class Keys(Case):
    def test_two_steps(self):
        """A new key is activated when both servers have it, under load and without SIGHUP. Each
        opens the other's cookies.
        """
        other = os.path.join(self.dir, "other")
        shutil.copy2(self.ring, other)
        servers = [self.replica().start(), self.replica(ring=other).start()]
        clients = [self.client(s) for s in servers]
        cookie = put(clients[0], "a-ring").cookie
        self.assertTrue(cookie)
        self.assertIn(put(clients[1], "a-ring", cookie).status, (200, 202))
        stop, bad = threading.Event(), []

        def load(server):
            client = lib.Client(server)
            held = cookie
            while not stop.is_set():
                answer = put(client, "a-ring", held)
                held = answer.cookie or held
                if answer.status not in (200, 202):
                    bad.append(answer)
            client.close()

        threads = [threading.Thread(target=load, args=(s,)) for s in servers]
        for t in threads:
            t.start()
        try:
            refused = self.keygen("--rotate", 2)
            for word in ("--rotate", "PostgreSQL", "--prepare", "--activate"):
                self.assertIn(word, refused)
            self.keygen("--prepare", 0)
            self.reloaded(servers[0], 1)
            said = lib.eventually(lambda: self.lacking(1), "one server has it", WAIT_S)
            self.assertIn("1 of 2 live replicas lack the key", said)
            shutil.copy2(self.ring, other)
            self.reloaded(servers[1], 1)
            lib.eventually(lambda: self.lacking(0) is None, "both servers have it", WAIT_S)
            shutil.copy2(self.ring, other)
            for server, times in zip(servers, (2, 2)):
                self.reloaded(server, times)
            fresh = lib.eventually(lambda: self.changed(clients[0], cookie), "new cookie", WAIT_S)
            self.assertIn(put(clients[1], "a-ring", fresh).status, (200, 202))
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertEqual(bad, [])
        for server in servers:
            self.assertEqual(server.sigterm(), 0)

    def lacking(self, count):
        """The words of keygen --activate while `count` servers lack the key; None when done."""
        done = lib.run("keygen", "--activate", "--keys", self.ring, "--store", self.url)
        if done.returncode == 0:
            self.assertEqual(count, 0)
            return None
        self.assertEqual(done.returncode, 3, done.stderr)
        return done.stderr if "%d of 2" % count in done.stderr or count == 0 else ""

    @staticmethod
    def changed(client, cookie):
        fresh = put(client, "a-ring", cookie).cookie
        return fresh if fresh != cookie else None

    @staticmethod
    def reloaded(server, times):
        lib.eventually(lambda: sum(r["msg"] == "key ring reloaded" for r in server.records())
                       >= times, "the ring is read again", WAIT_S)

    def test_another_ring(self):
        """A server with the ring of another database does not start, and changes nothing."""
        self.replica().start()
        done = lib.run(*self.replica(ring=self.make_ring("stranger")).command()[1:])
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("is not that of the database", done.stderr)
        self.assertEqual(self.replica().start().sigterm(), 0)


class Listed(Case):
    def test_listed(self):
        """Each replica lists both, in the API and on its page. One that was killed is gone."""
        first, second = self.replica().start(), self.replica().start()
        ops = [self.client(server, ops=True) for server in (first, second)]
        for client in ops:
            lib.eventually(lambda c=client: sorted(r["leads"] for r in self.listed(c)
                                                   if r["started_time"] < r["last_seen_time"])
                           == [False, True], "one leads, and both gave signs of life", WAIT_S)
        one, other = self.listed(ops[0])
        self.assertEqual(one["name"], other["name"])
        self.assertNotEqual(one["id"], other["id"])
        for replica in (one, other):
            self.assertIs(replica["live"], True)
            self.assertIs(replica["outdated"], False)
            self.assertEqual(replica["settings_epoch"], one["settings_epoch"])
            self.assertLess(replica["started_time"], replica["last_seen_time"])
        page = ops[1].get("/").body.decode()
        self.assertEqual(page.count(">live</span>"), 2)
        self.assertEqual(page.count('data-h="Leads">yes<'), 1)
        self.assertEqual(page.count('data-h="Leads">no<'), 1)
        second.kill9()
        lib.eventually(lambda: sorted((r["live"], r["leads"]) for r in self.listed(ops[0]))
                       == [(False, False), (True, True)], "the killed one is gone", WAIT_S)
        self.assertIn(">GONE</span>", ops[0].get("/").body.decode())
        lib.eventually(lambda: "replica" in [p["kind"] for p in ops[0].get("/healthz").json.get(
            "problems", [])], "it is told as wrong", WAIT_S)

    @staticmethod
    def listed(client):
        answer = client.get("/admin/replicas")
        assert answer.status == 200, answer.body
        return answer.json["items"]


class Starts(Case):
    def test_waits(self):
        """A start without the database tries on until it is there; SIGTERM ends the wait."""
        waiting = "waiting for the database: not ready until it can be reached"
        self.db.stop()
        try:
            server = self.replica().spawn()
            self.says(server, waiting)
            self.assertEqual(server.sigterm(), 0)
            server = self.replica()
            server.ops_listen = "127.0.0.1:%d" % lib.free_port()
            server.spawn()
            self.says(server, waiting)
            self.probed(server.ops_listen)
        finally:
            self.db.start()
        self.assertTrue(server.ready.wait(WAIT_S), server.tail())
        self.assertNotIn(":hfd@", "\n".join(server.lines))
        ops = self.client(server, ops=True)
        self.db.kill9()
        try:
            lib.eventually(lambda: ops.get("/readyz").status == 503, "not ready", WAIT_S)
            self.assertEqual(ops.get("/livez").status, 200)
            answer = self.client(server).get("/absent")
            self.assertEqual((answer.status, answer.header("Retry-After")), (503, "2"))
        finally:
            lib.eventually(self.restarted, "PostgreSQL starts again", WAIT_S)
        lib.eventually(lambda: ops.get("/readyz").status == 200, "ready again", WAIT_S)
        self.assertEqual(server.sigterm(), 0)

    def probed(self, address):
        """It lives while it waits, so nothing restarts it. It is not ready, and says why."""
        with urllib.request.urlopen("http://%s/livez" % address, timeout=WAIT_S) as answer:
            self.assertEqual(answer.status, 200)
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen("http://%s/readyz" % address, timeout=WAIT_S)
        self.assertEqual(caught.exception.code, 503)
        self.assertEqual(json.load(caught.exception)["reason"], "waiting for the database")

    def restarted(self):
        with contextlib.suppress(AssertionError):
            return self.db.start()
        return None

    @staticmethod
    def says(server, msg):
        lib.eventually(lambda: any(r["msg"] == msg for r in server.records()), msg, WAIT_S)

    def test_ends(self):
        """The start ends with words. The password is wrong, or the database has another collation
        or no schema for the user, or the session was another one's.
        """
        postgres.query(self.db.url("postgres"), "CREATE DATABASE other TEMPLATE template0"
                       " LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'")
        self.addCleanup(self.db.drop, "other")
        locked = self.db.create("locked")
        self.addCleanup(self.db.drop, "locked")
        postgres.query(locked, "ALTER DATABASE locked SET search_path = nowhere")
        kept = self.db.create("kept")
        self.addCleanup(self.db.drop, "kept")
        postgres.query(kept, "ALTER DATABASE kept SET hyperfleet_driver.session = 'set'")
        wrong = os.path.join(self.dir, "password")
        with open(wrong, "w", encoding="utf-8") as f:
            f.write("not-it\n")
        bare = self.url.replace(":hfd@", "@")
        for url, flags, word in ((bare, ["--store-password-file", wrong], "password"),
                                 (self.db.url("other"), [], "C"),
                                 (locked, [], "GRANT USAGE"),
                                 (kept, [], "transaction mode")):
            done = lib.run("serve", "--store", url, "--keys", self.ring, *flags)
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn(word, done.stderr)
            self.assertNotIn("not-it", done.stderr)


class Doctor(Case):
    def sessions(self):
        """How many connections the server has."""
        return postgres.query(self.db.url(), "SELECT count(*) FROM pg_stat_activity WHERE"
                              " application_name = 'hyperfleet-driver'")[0][0]

    def test_says(self):
        """It names what can lose writes, the replicas, and an old Patroni; it makes no tables."""
        status, lines = self.doctor()
        self.assertEqual(status, 3)
        self.assertRegex(lines["database"][0]["text"],
                         r"PostgreSQL \d+\..*, collation C, encoding UTF8, schema 0")
        self.assertTrue(lines["database"][0]["ok"])
        self.assertIn("no tables yet", lines["database"][1]["text"])
        self.assertEqual(self.db.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
                                       self.url.rsplit("/", 1)[1]), [["0"]])
        self.assertFalse(lines["durable"][0]["ok"])
        self.assertIn("fsync is off", lines["durable"][0]["text"])
        self.assertFalse(lines["standby"][0]["ok"])
        self.assertNotIn("patroni", lines)
        for version, good in (("3.0.2", False), ("4.1.5", True)):
            with patroni(version) as url:
                line = self.doctor("--store-patroni", url)[1]["patroni"][0]
            self.assertEqual(line["ok"], good, line)
            self.assertIn(version, line["text"])
        server = self.replica().start()
        found = self.doctor()[1]
        self.assertIn("1 live", found["replicas"][0]["text"])
        self.assertIn("leads", found["replica"][0]["text"])
        self.assertTrue(found["sessions"][0]["ok"])
        needs = re.search(r"a server with these settings needs (\d+),",
                          found["sessions"][0]["text"]).group(1)
        lib.eventually(lambda: self.sessions() == needs, "it has %s sessions" % needs, WAIT_S)
        self.assertTrue(found["data"][0]["ok"], found["data"])
        self.assertEqual(found["orphans"][0]["text"][0], "0")
        self.assertEqual(server.sigterm(), 0)

    def test_durable(self):
        """It names what keeps an acknowledged write: the disk, and a synchronous standby."""
        with postgres.Postgres(fsync=True) as db:
            url = db.url()
            found = self.doctor(url=url)[1]
            self.assertTrue(found["durable"][0]["ok"])
            self.assertEqual(found["durable"][0]["text"],
                             "synchronous_commit is on, fsync and full_page_writes are on")
            self.assertIn("no synchronous standby (0 connected)", found["standby"][0]["text"])
            with witness(db, os.path.join(self.dir, "witness")):
                standby = lib.eventually(lambda: self.standby(url), "it is synchronous", WAIT_S)
                self.assertEqual(standby["text"], "witness is synchronous, of 1 connected")
                self.assertEqual(self.durable(url, "on"), found["durable"])
                self.assertEqual(self.durable(url, "remote_apply")[0]["ok"], True)
                for value, word in (("local", "does not wait for the synchronous standby"),
                                    ("remote_write", "has not flushed")):
                    line, = self.durable(url, value)
                    self.assertFalse(line["ok"], line)
                    self.assertIn("synchronous_commit is %s: " % value, line["text"])
                    self.assertIn(word, line["text"])
            none = "SELECT current_setting('synchronous_standby_names') = ''"
            lib.eventually(lambda: db.query(none) == [["t"]], "none is synchronous", WAIT_S)
            for value in ("local", "remote_write"): # no standby: the primary's disk is all there is
                self.assertEqual([line["ok"] for line in self.durable(url, value)], [True])
            self.assertEqual(self.durable(url, "off"), found["durable"]) # not in ours

    def durable(self, url, value):
        """Its line about the disk, when the user's synchronous_commit has this value."""
        postgres.query(url + "?options=-csynchronous_commit%3Dlocal", # no wait for the witness
                       "ALTER ROLE hfd SET synchronous_commit = '%s'" % value)
        return self.doctor(url=url)[1]["durable"]

    def standby(self, url):
        """The line of a standby that is well; None when there is none."""
        line = self.doctor(url=url)[1]["standby"][0]
        return line if line["ok"] else None


@contextlib.contextmanager
def witness(db, folder):
    """A synchronous standby that keeps the log alone. No write waits for it here."""
    os.mkdir(folder)
    receiver = subprocess.Popen(
        [os.path.join(db.bin, "pg_receivewal"), "--synchronous", "--no-loop", "-D", folder, "-d",
         db.url("postgres", application_name="witness")],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        db.query("ALTER SYSTEM SET synchronous_standby_names = 'witness'")
        db.query("SELECT pg_reload_conf()")
        yield
    finally:
        db.query("ALTER SYSTEM RESET synchronous_standby_names")
        db.query("SELECT pg_reload_conf()")
        receiver.kill()
        receiver.wait()


@contextlib.contextmanager
def patroni(version):
    """Patroni's REST API, as far as doctor asks it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"state": "running", "patroni": {"version": version}}).encode()
            self.send_response(200 if self.path == "/patroni" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield "http://127.0.0.1:%d/" % server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    real.main()
