"""Backup and restore: what a backup holds and needs, what a restore refuses, and how resources that
are younger than the backup are found again.
"""
import calendar
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import tempfile
import time
import unittest

import pages
import test_played
from lib import BASE, Case, Client, Server
from lib import clean_env, cluster_input, eventually, guresid, program, run

NOTE = 4096  # bytes behind the database
ONE = ("validation",)
RESERVE = 64 << 20  # store/backup.h
TAKEN = re.compile(r"as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


def note_of(path):
    with open(path, "rb") as f:
        return json.loads(f.read()[-NOTE:])


def with_note(path, **members):
    """Writes a backup's note anew, with a right checksum."""
    with open(path, "rb") as f:
        data = f.read()
    body, note = data[:-NOTE], json.loads(data[-NOTE:])
    note.update(members)
    del note["blake2b"]
    text = json.dumps(note, separators=(",", ":"))[:-1] + ',"blake2b":"'
    text += hashlib.blake2b(body + text.encode(), digest_size=32).hexdigest() + '"}'
    with open(path, "wb") as f:
        f.write(body + text.ljust(NOTE - 1).encode() + b"\n")


class Folders(Case):
    """A server, a folder for backups, and servers on what was restored."""

    ADAPTERS = POOL_ADAPTERS = ONE

    def setUp(self):
        super().setUp()
        self.scratch = tempfile.mkdtemp(prefix="hfd-it-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.file = os.path.join(self.scratch, "hfd.backup")

    def backup(self, *more, status=0):
        done = run("backup", self.file, "--data", self.server.data, *more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertFalse(os.path.exists(self.file + ".part"))
        return done.stdout if status == 0 else done.stderr

    def folder(self, name, keys=True):
        """An empty data folder, with the key ring or without."""
        path = os.path.join(self.scratch, name)
        os.mkdir(path, 0o700)
        if keys:
            shutil.copy(os.path.join(self.server.data, "keys"), path)
        return path

    def restore(self, data, status=0):
        done = run("restore", self.file, "--data", data)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(data, "restore.tmp")))
        if status != 0:
            self.assertFalse(os.path.exists(os.path.join(data, "store.db")))
        return done.stdout if status == 0 else done.stderr

    def serve(self, data):
        server = Server(*self.server.flags, data=data)
        self.addCleanup(server.close)
        server.start()
        client = Client(server)
        self.addCleanup(client.close)
        return client


class BackUp(Folders):
    def test_all_is_there(self):
        """Resources in each state, their clusters, reports, history and secrets are the same in the
        restored server. The file is mode 0600, the key ring is not in it.
        """
        ready, _, _ = self.brought_ready(cluster_input(
            spec={"region": "eu-1"}, nodepools=[{"name": "one"}], secrets={"pull": "hush-hush"}))
        pending, _, _ = self.created()
        leaving, _, _ = self.brought_ready()
        self.assertEqual(self.delete(leaving).status, 202)
        began = time.time()
        said = self.backup()
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        note = note_of(self.file)
        total = len(self.client.get("/api/driver/v1/resources").json["items"])
        self.assertEqual(note["resources"], total)
        self.assertIn("%s: %d resources as of " % (self.file, total), said)
        taken = time.strptime(TAKEN.search(said).group(1), "%Y-%m-%dT%H:%M:%SZ")
        self.assertLess(abs(calendar.timegm(taken) - began), 600)
        with open(os.path.join(self.server.data, "keys"), encoding="ascii") as f:
            lines = [line.split(":") for line in f if line[:1] not in "#\n"]
        self.assertEqual(note["keys"], [lines[0][0]])
        self.assertIn("It needs key %s of the key ring.\n" % lines[0][0], said)
        with open(self.file, "rb") as f:
            data = f.read()
        self.assertNotIn(lines[0][1].encode(), data)
        self.assertNotIn(b"hush-hush", data)

        paths = ["/" + g for g in (ready, pending, leaving)]
        paths += [BASE + "/clusters?pageSize=500&order=asc", BASE + "/nodepools?order=asc",
                  "/api/driver/v1/events"]
        paths += [BASE + "/clusters/%s/statuses" % self.fleet.cluster_of(ready)["id"]]
        paths += ["/api/driver/v1/resources/" + g for g in (ready, pending, leaving)]
        before = {p: self.client.get(p) for p in paths}
        self.server.sigterm()
        data = self.folder("new")
        said = self.restore(data)
        self.assertIn("%s: restored %d resources as of %s" % (data, total, note["taken_time"][:19]),
                      said)
        self.assertIn("List them: hyperfleet-driver doctor.", said)
        self.assertEqual(sorted(os.listdir(data)), ["clock", "keys", "store.db"])
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(data, "store.db")).st_mode), 0o600)
        client = self.serve(data)
        for path, answer in before.items():
            now = client.get(path)
            self.assertEqual(now.status, answer.status, path)
            self.assertEqual(self.steady(now.json), self.steady(answer.json), path)

    @staticmethod
    def steady(doc):
        """A document without what moves with the time of the request."""
        if isinstance(doc, dict):
            return {k: BackUp.steady(v) for k, v in doc.items() if k not in (
                "current_time", "estimated_completion_time", "hints", "estimate", "message",
                "polls", "stuck")}
        return [BackUp.steady(v) for v in doc] if isinstance(doc, list) else doc

    @unittest.skipUnless(os.geteuid() == 0, "root alone gives files away")
    def test_root_restores_for_the_owner(self):
        """Root restores into the folder of another user, as that of a service is: the files are
        that user's.
        """
        self.backup()
        data = self.folder("of-another")
        for path in (data, os.path.join(data, "keys")):
            os.chown(path, 1, 1)
        self.restore(data)
        for name in os.listdir(data):
            st = os.stat(os.path.join(data, name))
            self.assertEqual((name, st.st_uid, st.st_gid), (name, 1, 1))
        self.assertIn("store.db", os.listdir(data))

    def test_younger_ones(self):
        """After the backup a resource is made, one is changed and one is deleted. In the restored
        server the first comes back with its cookie, the second with its PUT, the third is there.
        """
        changed, body, _ = self.brought_ready()
        deleted, _, _ = self.brought_ready()
        self.backup()
        younger, young_body, first = self.created()
        new = cluster_input(spec={"region": "eu-9"}, nodepools=[])
        cookie = self.expect(self.put(changed, new), 202).cookie
        self.assertEqual(self.delete(deleted).status, 202)
        self.server.sigterm()
        client = self.serve(self.restored())
        self.assertEqual(client.get("/" + younger).status, 404)
        answer = client.put("/" + younger, young_body, self.cookie_header(first))
        self.assertEqual(answer.status, 202, answer)
        self.assertEqual(client.get("/" + deleted).status, 200)
        self.assertEqual(client.get("/" + changed).status, 200)
        answer = client.put("/" + changed, new, self.cookie_header(cookie))
        self.assertEqual(answer.status, 202, answer)
        self.assertEqual(client.delete("/" + changed, self.cookie_header(cookie)).status, 202)
        self.assertEqual(client.delete("/" + deleted).status, 202)
        self.assertTrue(body)

    def restored(self):
        data = self.folder("again")
        self.restore(data)
        return data

    def test_wrong_use(self):
        """2 for wrong arguments, 69 for a server that is away, 1 for one that refuses. 73 for a
        file that cannot be written; an older backup stays then.
        """
        self.backup()
        with open(self.file, "rb") as f:
            before = f.read()
        for status, args in ((2, ()), (2, (self.file, "b")), (2, (self.file, "--bogus")),
                             (2, (self.file, "--ops-url", "nonsense")),
                             (2, (self.file, "--ops-url", "http://127.0.0.1:1", "--data", "x")),
                             (69, (self.file, "--ops-url", "http://127.0.0.1:1")),
                             (1, (self.file, "--ops-url",
                                  "http://127.0.0.1:%d" % self.server.port)),
                             (73, (os.path.join(self.scratch, "no", "folder"), "--data",
                                   self.server.data)),
                             (73, (self.scratch, "--data", self.server.data))):
            done = run("backup", *args)
            self.assertEqual(done.returncode, status, (args, done.stderr))
            self.assertTrue(done.stderr.startswith("hyperfleet-driver backup: "), done.stderr)
        done = run("backup", self.file, "--data", self.folder("nobody"),
                   env={"HFD_OPS_LISTEN": "127.0.0.1:1"})
        self.assertEqual(done.returncode, 69, done.stderr)
        with open(self.file, "rb") as f:
            self.assertEqual(f.read(), before)
        done = run("backup", self.file, "--ops-url", "http://127.0.0.1:%d/" % self.server.ops_port)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("backup", self.file, env={
            "HFD_OPS_URL": "http://127.0.0.1:%d" % self.server.ops_port})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_room(self):
        """A disk without room for a copy is 507 with words, and the server goes on. A disk that is
        full of the file is 73, and no part of it stays.
        """
        small = os.path.join(self.scratch, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % (RESERVE - 4096), "hfd-test",
                           small], capture_output=True, check=False).returncode != 0:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=True)
        client = self.serve(os.path.join(small, "data"))
        self.assertEqual(client.put("/a", cluster_input()).status, 202)
        ops = Client(client.server, ops=True)
        self.addCleanup(ops.close)
        self.assertIn("disk", [p["kind"] for p in eventually(
            lambda: ops.get("/healthz").json.get("problems"), "the first look")])
        answer = ops.get("/admin/backup")
        self.assertEqual((answer.status, set(answer.json)), (507, {"error", "message"}))
        done = run("backup", self.file, "--data", os.path.join(small, "data"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"answers 507: the disk of the data folder has \d+ MiB free, "
                                      r"and a backup needs 65 MiB there for a while")
        self.assertFalse(os.path.exists(self.file))
        self.assertEqual(os.listdir(os.path.join(small, "data")).count("backup.tmp"), 0)
        self.assertEqual(client.put("/b", cluster_input()).status, 202)
        with open(os.path.join(small, "filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass
        self.file = os.path.join(small, "x.backup")
        self.assertIn("No space left", self.backup(status=73))
        self.assertFalse(os.path.exists(self.file))


class Slow(Folders):
    """A backup that is larger than what the sockets hold."""

    def setUp(self):
        super().setUp()
        if self.client.get("/big-0").status == 404:
            for i in range(24):
                body = cluster_input(spec={"n": i, "big": ("%d" % i) * 200000})
                self.expect(self.put("big-%d" % i, body), 202)

    def begin(self):
        """A request for a backup, of which nothing is read. It is 409 for a moment after the
        client of the last one has gone.
        """
        def answered():
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.ops_port))
            self.addCleanup(s.close)
            s.sendall(b"GET /admin/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return s if s.recv(100).startswith(b"HTTP/1.1 200") else None

        return eventually(answered, "a backup begins")

    def free(self):
        """A backup can be made again."""
        eventually(lambda: run("backup", self.file, "--data", self.server.data).returncode == 0,
                   "a backup is made")

    def test_one_at_a_time(self):
        """A second one is 409 with words while the first is sent; probes and orders go on. When
        the first client hangs up, the next one gets a backup.
        """
        slow = self.begin()
        self.assertIn("answers 409: another backup is being made", self.backup(status=1))
        self.assertFalse(os.path.exists(self.file))
        self.assertEqual(self.put(guresid("meanwhile"), cluster_input()).status, 202)
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        self.assertEqual(ops.get("/readyz").status, 200)
        answer = ops.get("/admin/backup")
        self.assertEqual((answer.status, answer.json["error"]), (409, "CONFLICT"))
        self.assertNotIn("backup.tmp", os.listdir(self.server.data))
        slow.close()
        self.free()

    def test_two_in_a_row(self):
        """The next one may begin as soon as one has ended."""
        client = Client(self.server, ops=True)
        self.addCleanup(client.close)
        for _ in range(5):
            answer = client.get("/admin/backup")
            self.assertEqual(answer.status, 200)
            self.assertGreater(len(answer.body), 24 * 200000)
        head = client.request("HEAD", "/admin/backup")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(int(head.header("Content-Length")), len(answer.body))

    def test_ends_with_the_server(self):
        """SIGTERM does not wait for a slow client of a backup; kill -9 leaves nothing behind."""
        slow = self.begin()
        self.assertEqual(self.server.sigterm(), 0)
        slow.close()
        self.server.start()
        self.begin()
        self.server.kill9()
        with open(os.path.join(self.server.data, "backup.tmp"), "wb") as f:
            f.write(b"a copy that was cut short")
        self.server.start()
        self.assertNotIn("backup.tmp", os.listdir(self.server.data))
        self.free()

    def test_client_is_ended(self):
        """Ctrl-C ends the command with 1, and no part of the file stays."""
        slow = self.begin()
        self.server.proc.send_signal(signal.SIGSTOP)
        try:
            p = subprocess.Popen([program(), "backup", self.file, "--data", self.server.data],
                                 env=clean_env(), stderr=subprocess.DEVNULL)
            eventually(lambda: os.path.exists(self.file + ".part"), "the file is begun")
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(60), 1)
        finally:
            self.server.proc.send_signal(signal.SIGCONT)
        self.assertEqual(os.listdir(self.scratch), [])
        slow.close()


class Refusals(Folders):
    def setUp(self):
        super().setUp()
        if not getattr(type(self), "made", None):
            self.brought_ready(cluster_input(spec={"region": "eu-MARKED"}, nodepools=[]))
            type(self).made = True
        self.backup()

    def test_over_data(self):
        """Never over a database, nor over a log without one."""
        for name in ("store.db", "store.db-wal"):
            data = self.folder("has-" + name)
            with open(os.path.join(data, name), "wb") as f:
                f.write(b"mine")
            done = run("restore", self.file, "--data", data)
            self.assertEqual(done.returncode, 73)
            self.assertIn("%s: there is data already" % os.path.join(data, name), done.stderr)
            with open(os.path.join(data, name), "rb") as f:
                self.assertEqual(f.read(), b"mine")
            self.assertEqual(sorted(os.listdir(data)), sorted(["keys", name]))
        done = run("restore", self.file, "--data", self.server.data)
        self.assertEqual(done.returncode, 73, "a server runs on it")

    def test_keys(self):
        """Without the keys it is 78 and names them: no ring, another ring. So is a ring whose key
        has the right id and other bytes. --keys names the ring too.
        """
        wanted = note_of(self.file)["keys"]
        data = self.folder("no-keys", keys=False)
        self.assertIn("there is no key ring. The backup needs these keys: " + wanted[0],
                      self.restore(data, 78))
        self.assertEqual(os.listdir(data), [])
        self.assertEqual(run("keygen", "--new", "--data", data).returncode, 0)
        self.assertIn("the key ring lacks a key. The backup needs these keys: " + wanted[0],
                      self.restore(data, 78))
        path = os.path.join(data, "keys")
        with open(path, encoding="ascii") as f:
            text = re.sub(r"(?m)^[0-9a-f]{8}:", wanted[0] + ":", f.read())
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        self.assertIn("key %s is not the key that the data was sealed with" % wanted[0],
                      self.restore(data, 78))
        os.unlink(path)
        done = run("restore", self.file, "--data", data, "--keys",
                   os.path.join(self.server.data, "keys"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_damaged(self):
        """A flipped bit anywhere, a missing end, another file, a form to come: 73, nothing made."""
        with open(self.file, "rb") as f:
            whole = f.read()
        at_note = len(whole) - NOTE
        data = self.folder("bad")
        for place in (0, 30, 5000, at_note // 2, at_note - 1):
            self.write(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
            self.assertIn("it is damaged: its checksum does not match", self.restore(data, 73))
        self.write(re.sub(b'"resources":[0-9]', b'"resources":9', whole))
        self.assertIn("its checksum does not match", self.restore(data, 73))
        for text, words in ((whole[:-1], "no backup of hyperfleet-driver, or its end is missing"),
                            (whole[:at_note], "or its end is missing"),
                            (whole[4096:], "it is not whole"), (b"", "it is no backup"),
                            (b"x" * 10000, "or its end is missing")):
            self.write(text)
            self.assertIn(words, self.restore(data, 73))
        self.write(whole)
        with_note(self.file, hyperfleet_driver_backup=2)
        self.assertIn("it has form 2", self.restore(data, 73))
        self.file = os.path.join(self.scratch, "absent")
        self.assertIn("No such file", self.restore(data, 73))
        self.file = self.scratch
        self.assertIn("it is no backup", self.restore(data, 73))
        self.assertEqual(os.listdir(data), ["keys"])

    def write(self, data):
        with open(self.file, "wb") as f:
            f.write(data)

    def edit(self, change):
        """Changes the database in the backup and makes its checksum right, as a server with a bad
        disk would send it.
        """
        with open(self.file, "rb") as f:
            data = f.read()
        path = os.path.join(self.scratch, "edit.db")
        with open(path, "wb") as f:
            f.write(change(data[:-NOTE]))
        with open(path, "rb") as f:
            body = f.read()
        os.unlink(path)
        self.write(body + data[-NOTE:])
        with_note(self.file, database_bytes=len(body))

    def test_damaged_on_the_server(self):
        """Damage that the server had already: rows by their checksums, an index by the check of
        SQLite. A newer schema and another program's database are refused too.
        """
        data = self.folder("rows")
        with open(self.file, "rb") as f:
            whole = f.read()
        self.edit(lambda db: db.replace(b"eu-MARKED", b"eu-NARKED"))
        said = self.restore(data, 73)
        self.assertIn("of table 'fleet' is damaged", said)
        self.assertIn("1 damaged rows. Use another backup", said)

        def cut_index(db):
            path = os.path.join(self.scratch, "cut.db")
            with open(path, "wb") as f:
                f.write(db)
            with sqlite3.connect(path) as c:
                page = c.execute("SELECT rootpage FROM sqlite_schema WHERE type = 'index' "
                                 "AND tbl_name = 'resource' LIMIT 1").fetchone()[0]
            at = (page - 1) * 4096
            return db[:at] + b"\x0a" + bytes(4095) + db[at + 4096:]

        self.write(whole)
        self.edit(cut_index)
        self.assertIn("damaged", self.restore(data, 73))
        self.write(whole)
        self.edit(lambda db: db[:60] + (9999).to_bytes(4, "big") + db[64:])
        self.assertIn("newer", self.restore(data, 73))
        self.write(whole)
        self.edit(lambda db: db[:68] + b"XXXX" + db[72:])
        self.assertIn("not a database of hyperfleet-driver", self.restore(data, 73))

    def changed_by(self, *statements):
        """A change of the database in the backup, by a person with a tool of SQLite."""
        path = os.path.join(self.scratch, "changed.db")

        def change(db):
            with open(path, "wb") as f:
                f.write(db)
            c = sqlite3.connect(path, isolation_level=None)
            c.execute("PRAGMA writable_schema = ON")
            for sql in statements:
                c.execute(sql)
            c.close()
            with open(path, "rb") as f:
                return f.read()

        return change

    def test_objects_of_others(self):
        """A trigger, view, index, table or column that the program does not make refuses the
        backup, and no trigger has run. The start and doctor refuse such a folder too. Statistics
        are no reason.
        """
        with open(self.file, "rb") as f:
            whole = f.read()
        data = self.folder("others")
        evil = ("CREATE TRIGGER evil AFTER INSERT ON resource BEGIN DELETE FROM resource "
                "WHERE guresid <> new.guresid; END")
        planted = "INSERT INTO sqlite_master VALUES ('%s', '%s', '%s', 0, '%s')"
        table = ("UPDATE sqlite_master SET sql = replace(sql, '%s', '%s') "
                 "WHERE type = 'table' AND name = 'resource'")
        for words, *sql in (
                ("trigger evil of table resource is not of hyperfleet-driver", evil),
                ("trigger evil", evil, "PRAGMA user_version = 20"),
                ("trigger sqlite_stat1", planted % (
                    "trigger", "sqlite_stat1", "resource",
                    evil.replace("evil", "sqlite_stat1"))),
                ("view history_floor", "DROP TABLE history_floor",
                 "CREATE VIEW history_floor AS SELECT 1 AS one, 2 AS seq"),
                ("index evil", "CREATE INDEX evil ON resource (length(cookie))"),
                ("index evil", "CREATE INDEX evil ON resource (cookie)"),
                ("table evil", "CREATE TABLE evil (x)"),
                ("table resource", "ALTER TABLE resource ADD COLUMN evil TEXT"),
                ("expected \"NOT NULL", table % ("NOT NULL,           -- as received", ",")),
                ("it has \"REFERENCES", table % ("cookie          TEXT   NOT NULL",
                                            "cookie TEXT NOT NULL REFERENCES part (guresid)")),
                ("index fleet_owner is missing", "DROP INDEX fleet_owner")):
            with self.subTest(words):
                self.write(whole)
                self.edit(self.changed_by(*sql))
                self.assertIn(words, self.restore(data, 73))
        self.write(whole)
        self.edit(self.changed_by("ANALYZE"))
        self.restore(data)
        path = os.path.join(data, "store.db")
        with contextlib.closing(sqlite3.connect(path)) as c:
            count = c.execute("SELECT count(*) FROM resource").fetchone()
            c.execute(evil)
        for command in ("serve", "doctor"):
            done = run(command, "--data", data, "--listen", "127.0.0.1:0", "--ops-listen",
                       "127.0.0.1:0")
            self.assertEqual(done.returncode, 73 if command == "serve" else 3, done.stderr)
            self.assertIn("trigger evil of table resource", done.stdout + done.stderr)
        with contextlib.closing(sqlite3.connect(path)) as c:
            self.assertEqual(c.execute("SELECT count(*) FROM resource").fetchone(), count)
            c.execute("DROP TRIGGER evil")
        self.serve(data)

    def test_cut_short(self):
        """A restore clears away the files of one that was killed."""
        data = self.folder("cut")
        draft = os.path.join(data, "restore.tmp")
        os.mkdir(draft)
        for name in ("store.db", "store.db-wal", "lock"):
            with open(os.path.join(draft, name), "wb") as f:
                f.write(b"half")
        self.restore(data)

    def test_clock(self):
        """The times of the rows may be ahead of this machine's clock. The program's clock starts
        there, so that no operation ends before it began.
        """
        ahead = time.time() + 5400
        with_note(self.file, clock_time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ahead)))
        data = self.folder("ahead")
        self.restore(data)
        client = self.serve(data)
        gid = guresid("ahead")
        self.assertEqual(client.put("/" + gid, cluster_input()).status, 202)
        created = client.get(BASE + "/clusters?search=labels.humanitec_guresid='%s'" % gid)
        text = created.json["items"][0]["created_time"][:19]
        self.assertGreaterEqual(text, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ahead - 1)))


class Access(Folders):
    def test_scope(self):
        """It needs the scope admin: 401 without a token, 403 with another scope. The command uses
        the server's own token on its machine, or that of --token-file.
        """
        tokens = {}
        for scope in ("admin", "view"):
            done = run("token", "create", "--name", scope, "--scope", scope, "--data",
                       self.server.data)
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens[scope] = os.path.join(self.scratch, scope)
            with open(tokens[scope], "w", encoding="ascii") as f:
                f.write(done.stdout)
        self.server.restart()
        url = ("--ops-url", "http://127.0.0.1:%d" % self.server.ops_port)
        for status, more, words in ((1, (), "answers 401"),
                                    (1, ("--token-file", tokens["view"]), "answers 403"),
                                    (0, ("--token-file", tokens["admin"]), "")):
            done = run("backup", self.file, *url, *more)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
        self.backup()
        done = run("backup", self.file, *url, env={"HFD_TOKEN_FILE": tokens["admin"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        audit = eventually(lambda: [r for r in self.server.records()
                                    if r["msg"] == "audit: backup made"], "the audit's line")
        self.assertIn("admin", audit[0]["by"])


class Manual(Folders):
    """The commands of operate.md, as printed but for the folders."""

    CHANGES = [(re.compile(r"\b[0-9a-f]{8}\b"), "KEY"), (re.compile(r"\b\d{5,} bytes"), "BYTES")]

    def constant(self, text):
        text = text.replace(self.server.data, "/var/lib/hyperfleet-driver")
        text = test_played.constant(text.replace(self.scratch, "/var/lib"))
        for pattern, word in self.CHANGES:
            text = pattern.sub(word, text)
        return text

    def test_as_printed(self):
        gid, _, _ = self.brought_ready()
        text = pages.read("handlers/docs/operate.md")
        begin = text.index("## Backup and restore")
        steps = test_played.steps(text[begin:text.index("\n## ", begin)])
        self.assertEqual(len(steps), 2)
        shell = test_played.Shell()
        self.addCleanup(shell.close)
        shell.run("hyperfleet-driver() { '%s' \"$@\"; }" % program())
        for commands, wanted in steps:
            commands = commands.replace("/var/lib/hyperfleet-driver", self.server.data)
            commands = commands.replace("/var/lib/", self.scratch + "/")
            self.assertEqual(self.constant(shell.run(commands)), self.constant(wanted), commands)
        client = self.serve(os.path.join(self.scratch, "hyperfleet-new"))
        self.assertEqual(client.get("/" + gid).status, 200)


class OnRemote(unittest.TestCase):
    def test_orphans(self):
        """With a remote HyperFleet, a cluster that is younger than the backup is listed as an
        orphan. The PUT of its orchestrator, with its cookie, finds that very cluster again.
        """
        scratch = tempfile.mkdtemp(prefix="hfd-it-")
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        remote = Server("--adapters-required-cluster", "validation")
        self.addCleanup(remote.close)
        remote.start()
        flags = ("--backend", "http://127.0.0.1:%d" % remote.port)
        first = Server(*flags)
        self.addCleanup(first.close)
        first.start()
        file, gid = os.path.join(scratch, "b"), guresid("young")
        done = run("backup", file, "--data", first.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        client = Client(first)
        cookie = client.put("/" + gid, cluster_input()).cookie
        there = Client(remote)
        search = BASE + "/clusters?search=labels.humanitec_guresid='%s'" % gid
        eventually(lambda: there.get(search).json["total"] == 1, "the remote has the cluster")
        cluster = there.get(search).json["items"][0]["id"]
        client.close()
        first.sigterm()
        data = os.path.join(scratch, "data")
        os.mkdir(data, 0o700)
        shutil.copy(os.path.join(first.data, "keys"), data)
        done = run("restore", file, "--data", data)
        self.assertEqual(done.returncode, 0, done.stderr)
        second = Server(*flags, data=data)
        self.addCleanup(second.close)
        second.start()
        ops, client = Client(second, ops=True), Client(second)

        def orphans():
            return [o["id"] for o in ops.get("/admin/orphans").json["items"]]

        eventually(lambda: cluster in orphans(), "the cluster is listed as an orphan")
        done = subprocess.run([program(), "doctor", "--data", data, *flags], env=clean_env(),
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertIn(cluster, done.stdout)
        answer = client.put("/" + gid, cluster_input(), {"Humanitec-Driver-Cookie": cookie})
        self.assertEqual(answer.status, 202, answer)
        eventually(lambda: cluster not in orphans(), "it is no orphan any more")
        self.assertEqual(there.get(search).json["total"], 1)
        for c in (ops, client, there):
            c.close()


if __name__ == "__main__":
    unittest.main()
