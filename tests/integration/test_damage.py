#!/usr/bin/env python3
"""Damage on the disk. A changed byte of a stored row is an error that names the row, and never
another answer. Nothing is written over it, and doctor finds it.
"""
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import unittest

from lib import BASE, Case, clean_env, cluster_input, doctor, eventually, guresid, program

ONE_ADAPTER = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool",
               "validation")


# Changes bytes in each text of each table.
FLIP = """DO $do$
DECLARE c record; n bigint; changed bigint := 0;
BEGIN
  FOR c IN SELECT table_name AS t, column_name AS k FROM information_schema.columns
           WHERE table_schema = 'public' AND data_type = 'text' LOOP
    EXECUTE format('UPDATE %%I SET %%I = replace(%%I, $1, $2) WHERE strpos(%%I, $1) > 0',
                   c.t, c.k, c.k, c.k) USING '%s', '%s';
    GET DIAGNOSTICS n = ROW_COUNT;
    changed := changed + n;
  END LOOP;
  IF changed = 0 THEN RAISE 'no row has these bytes'; END IF;
END $do$"""


def findings(server):
    """Gives the findings of doctor as one text."""
    return "\n".join(line["text"] for line in doctor(server.place)[1])


class DamagedRows(Case):
    FLAGS = ONE_ADAPTER
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def flip(self, old, new):
        """Changes bytes of the stopped server's database where they stand."""
        if self.server.place.base:
            self.server.place.sql(FLIP % (old.decode(), new.decode()))
            return
        path = os.path.join(self.server.data, "store.db")
        with open(path, "rb") as f:
            data = f.read()
        self.assertGreaterEqual(data.count(old), 1, old)
        self.assertEqual(len(old), len(new))
        with open(path, "wb") as f:
            f.write(data.replace(old, new))

    def damaged(self, answer, table, key):
        """500 with words, in the dialect of the API that was asked."""
        self.assertEqual(answer.status, 500, answer)
        doc = answer.json
        text = doc.get("message") or doc.get("detail")
        self.assertIn("'%s' of table '%s' is damaged" % (key, table), text)
        self.assertEqual(doc.get("error", "RES-199"), "RES-199")
        return text

    def make(self, hint, region):
        gid = guresid(hint)
        body = cluster_input(spec={"region": region}, nodepools=[{"name": "one"}])
        self.put(gid, body)
        self.fleet.ready(gid)
        self.assertEqual(self.put(gid, body).status, 200)
        return gid, body, self.fleet.cluster_of(gid)

    def test_a_changed_spec(self):
        """A bit of a cluster's spec: its GETs, lists, PATCH, DELETE and reports are errors that
        name it, also the list that it stands in. Another resource goes on. Restored, all is well.
        """
        gid, body, cluster = self.make("spec", "eu-WEST-MARKED")
        other, other_body, _ = self.make("other", "eu-north")
        self.server.sigterm()
        self.assertEqual(findings(self.server), "")
        self.flip(b"eu-WEST-MARKED", b"eu-SEST-MARKED")
        found = findings(self.server)
        self.assertIn("'%s' of table 'fleet' is damaged" % cluster["id"], found)
        self.assertEqual(found.count("is damaged"), 1, found)
        self.server.start()
        path = BASE + "/clusters/" + cluster["id"]
        for answer in (self.client.get(path), self.client.patch(path, {"spec": {"a": 1}}),
                       self.client.delete(path), self.client.get(BASE + "/clusters"),
                       self.fleet.report(cluster, "validation")):
            self.damaged(answer, "fleet", cluster["id"])
        changed = cluster_input(spec={"region": "eu-2"}, nodepools=[{"name": "one"}])
        self.damaged(self.client.put("/" + gid, changed), "fleet", cluster["id"])
        self.damaged(self.client.delete("/" + gid), "fleet", cluster["id"])
        self.assertEqual(self.put(other, other_body).status, 200)
        self.assertEqual(self.get(other).status, 200)
        self.server.sigterm()
        self.flip(b"eu-SEST-MARKED", b"eu-WEST-MARKED")
        self.assertEqual(findings(self.server), "")
        self.server.start()
        self.assertEqual(self.client.get(path).json["spec"], {"region": "eu-WEST-MARKED"})
        self.assertEqual(self.put(gid, body).status, 200)

    def test_a_changed_resource(self):
        """A byte of a resource's row: GET, the PUT that was answered 200, and DELETE."""
        gid, body, cluster = self.make("row", "eu-3")
        self.server.sigterm()
        old = b'"href":"/api/hyperfleet/v1/clusters/' + cluster["id"].encode() + b'"'
        new = old.replace(b"clusters", b"clusterz")
        self.flip(old, new)
        self.server.start()
        for _ in range(2):
            self.damaged(self.client.get("/" + gid), "resource", gid)
            self.damaged(self.client.put("/" + gid, body), "resource", gid)
            self.damaged(self.client.put("/" + gid, cluster_input()), "resource", gid)
            self.damaged(self.client.delete("/" + gid), "resource", gid)
        log = eventually(lambda: [r for r in self.server.records() if "is damaged" in str(r)],
                         "the log says so")
        self.assertTrue(all(r["level"] == "error" for r in log), log[:1])
        self.server.sigterm()
        self.assertIn("'%s' of table 'resource'" % gid, findings(self.server))
        self.flip(new, old)

    def test_a_changed_report(self):
        """A byte of a report's data, of its conditions, and bytes that are no UTF-8, which
        PostgreSQL does not take.
        """
        gid, _, cluster = self.make("rep", "eu-4")
        self.fleet.accepted(cluster, "dns", data={"zone": "MARKED-zone"})
        path = BASE + "/clusters/%s/statuses" % cluster["id"]
        self.server.sigterm()
        for new in (b"NARKED-zone", b"\xffARKED-zone")[:1 if self.server.place.base else 2]:
            self.flip(b"MARKED-zone", new)
            self.server.start()
            self.damaged(self.client.get(path), "report", cluster["id"] + "/dns")
            self.damaged(self.fleet.report(cluster, "dns"), "report", cluster["id"] + "/dns")
            self.assertEqual(self.get(gid).status, 200)
            self.server.sigterm()
            self.flip(new, b"MARKED-zone")
        self.server.start()
        self.assertEqual(self.client.get(path).status, 200)

    def test_every_byte(self):
        """Each byte that one resource alone has in the database is flipped in turn, in steps. Every
        answer is the right one, or 500 or 503, or the server does not start.
        """
        gid, body, cluster = self.make("all", "eu-5-MARKED")
        paths = ["/" + gid, BASE + "/clusters/" + cluster["id"],
                 BASE + "/clusters/%s/statuses" % cluster["id"]]
        right = {p: self.stable(self.client.get(p)) for p in paths}
        self.server.sigterm()
        path = os.path.join(self.server.data, "store.db")
        whole = path + ".whole"
        shutil.copy(path, whole)
        with open(whole, "rb") as f:
            data = f.read()
        at = [m.start() for m in re.finditer(b"eu-5-MARKED|" + cluster["id"].encode() + b"|"
                                             + gid.encode(), data)]
        places = sorted({p + d for p in at for d in (-40, -9, 1, 5, 12, 60)})[::7][:24]
        wrong = 0
        for place in places:
            with open(path, "wb") as f:
                f.write(data[:place] + bytes([data[place] ^ 0x04]) + data[place + 1:])
            try:
                self.server.start()
            except AssertionError:
                wrong += 1
                continue
            for p in paths:
                answer = self.client.get(p)
                if answer.status in (500, 503):
                    wrong += 1
                elif answer.status != 404 and b'"total":0' not in answer.body:
                    # 404 and an empty list: a damaged index, which doctor finds
                    self.assertEqual(self.stable(answer), right[p], place)
            self.server.sigterm()
        self.assertGreater(wrong, len(places) // 4)
        shutil.copy(whole, path)
        os.unlink(whole)
        self.server.start()
        self.assertEqual(self.put(gid, body).status, 200)

    @staticmethod
    def stable(answer):
        return answer.status, answer.body


def commit_ends(log):
    """Where the commits of a write-ahead log end."""
    frame = 24 + struct.unpack(">I", log[8:12])[0]
    return [at + frame for at in range(32, len(log) - frame + 1, frame)
            if log[at + 8:at + 16] == log[16:24] and log[at + 4:at + 8] != bytes(4)]


class DamagedLog(Case):
    FLAGS = ONE_ADAPTER
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_a_flipped_log(self):
        """kill -9, and a bit of the write-ahead log: the start stops with 73 and says why, and so
        does doctor. With the log as it was, everything that was answered is there.
        """
        made = [guresid("wal") for _ in range(8)]
        for gid in made:
            self.put(gid, cluster_input(nodepools=[{"name": "one"}]))
        self.server.kill9()
        path = os.path.join(self.server.data, "store.db-wal")
        with open(path, "rb") as f:
            whole = f.read()
        commits = commit_ends(whole)
        for place in (12, 32 + 1000, len(whole) // 2, commits[-3] + 100):
            with open(path, "wb") as f:
                f.write(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
            refused = subprocess.run(
                [program(), "serve", "--data", self.server.data, "--listen", "127.0.0.1:0",
                 "--ops-listen", "127.0.0.1:0"], env=clean_env(), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
            self.assertEqual(refused.returncode, 73, refused.stdout)
            self.assertRegex(refused.stdout, "store.db-wal: damaged at frame [0-9]+ of [0-9]+, "
                                             "with [0-9]+ commits behind it that would be lost")
            self.assertIn("store.db-wal: damaged", findings(self.server))
        with open(path, "wb") as f:
            f.write(whole)
        self.server.start()
        for gid in made:
            self.assertEqual(self.get(gid).status, 202)

    def test_the_last_commit(self):
        """A break in the last commit looks as a power cut leaves it. The start drops this commit
        alone, and warns.
        """
        made = [guresid("last") for _ in range(4)]
        for gid in made:
            self.put(gid, cluster_input(nodepools=[{"name": "one"}]))
        self.server.kill9()
        path = os.path.join(self.server.data, "store.db-wal")
        with open(path, "r+b") as f:
            place = commit_ends(f.read())[-2] + 100
            f.seek(place)
            was = f.read(1)[0]
            f.seek(place)
            f.write(bytes([was ^ 1]))
        self.server.start()
        lines = [r for r in self.server.records() if "write-ahead log" in r["msg"]]
        self.assertEqual([(r["level"], "is dropped" in r["msg"]) for r in lines], [("warn", True)])
        self.assertEqual([self.get(gid).status for gid in made[:-1]], [202] * 3)
        self.assertIn(self.get(made[-1]).status, (202, 404))


class OlderDatabase(Case):
    FLAGS = ONE_ADAPTER
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def older(self, version):
        """The rows of the stopped server in a database of an older schema version."""
        path = os.path.join(self.server.data, "store.db")
        os.rename(path, path + ".new")
        db = sqlite3.connect(path)
        folder = os.path.join(ROOT, "store", "migrations")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".sql") and int(name[:4]) <= version:
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    db.executescript(re.sub(r"/\*sqlite: (.*?)\*/", r"\1", f.read()))
        db.execute("ATTACH ? AS new", (path + ".new",))
        for table in ("fleet", "fleet_label", "fleet_condition", "fleet_count", "report",
                      "resource", "part"):
            columns = [[r[1] for r in db.execute("PRAGMA %s.table_info(%s)" % (schema, table))]
                       for schema in ("main", "new")]
            both = ", ".join(c for c in columns[0] if c in columns[1])
            db.execute("INSERT INTO main.%s (%s) SELECT %s FROM new.%s"
                       % (table, both, both, table))
        db.execute("DELETE FROM main.fleet_count WHERE field > 2")  # later versions count more
        db.execute("PRAGMA main.user_version = %d" % version)
        db.execute("PRAGMA main.application_id = %d" % 0x48464431)
        db.commit()
        db.close()
        os.unlink(path + ".new")

    def test_rows_without_checksums(self):
        """Rows of a version without checksums get theirs at the start, once."""
        gid = guresid("old")
        self.put(gid, cluster_input(nodepools=[{"name": "one"}]))
        self.fleet.ready(gid)
        before = self.get(gid).body
        self.server.sigterm()
        self.older(4)
        self.server.start()
        self.assertEqual(self.get(gid).body, before)
        filled = [r for r in self.server.records()
                  if r["msg"] == "checksums of stored rows computed"]
        self.assertEqual({r["table"] for r in filled}, {"fleet", "report", "resource", "part"})
        self.server.sigterm()
        self.assertEqual(findings(self.server), "")


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    unittest.main()
