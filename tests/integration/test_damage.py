#!/usr/bin/env python3
"""Damage on the disk. A changed byte of a stored row is an error that names the row, and never
another answer. Nothing is written over it, and doctor finds it.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

from lib import BASE, Case, clean_env, cluster_input, guresid, program

ONE_ADAPTER = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool",
               "validation")


def doctor(server):
    return subprocess.run([program(), "doctor", "--data", server.data], env=clean_env(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class DamagedRows(Case):
    FLAGS = ONE_ADAPTER
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def flip(self, old, new):
        """Changes bytes of the stopped server's database where they stand."""
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
        self.assertEqual(doctor(self.server).returncode, 0)
        self.flip(b"eu-WEST-MARKED", b"eu-SEST-MARKED")
        found = doctor(self.server)
        self.assertEqual(found.returncode, 3, found.stdout)
        self.assertIn("'%s' of table 'fleet' is damaged" % cluster["id"], found.stdout)
        self.assertEqual(found.stdout.count("is damaged"), 1, found.stdout)
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
        self.assertEqual(doctor(self.server).returncode, 0)
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
        log = [r for r in self.server.records() if "is damaged" in str(r)]
        self.assertTrue(log and all(r["level"] == "error" for r in log), log[:1])
        self.server.sigterm()
        self.assertIn("'%s' of table 'resource'" % gid, doctor(self.server).stdout)
        self.flip(new, old)

    def test_a_changed_report(self):
        """A byte of a report's data, of its conditions, and bytes that are no UTF-8."""
        gid, _, cluster = self.make("rep", "eu-4")
        self.fleet.accepted(cluster, "dns", data={"zone": "MARKED-zone"})
        path = BASE + "/clusters/%s/statuses" % cluster["id"]
        self.server.sigterm()
        for new in (b"NARKED-zone", b"\xffARKED-zone"):
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
                elif answer.status != 404:  # an index; doctor finds it
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


class OlderDatabase(Case):
    FLAGS = ONE_ADAPTER
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_rows_without_checksums(self):
        """Rows of an older version get their checksums at the start, once."""
        gid = guresid("old")
        self.put(gid, cluster_input(nodepools=[{"name": "one"}]))
        self.fleet.ready(gid)
        self.server.sigterm()
        db = sqlite3.connect(os.path.join(self.server.data, "store.db"))
        version = db.execute("PRAGMA user_version").fetchone()[0]
        names = sorted(f for f in os.listdir(os.path.join(ROOT, "store", "migrations"))
                       if f.endswith("_sums_filled.sql"))
        db.execute("UPDATE fleet SET sum = NULL, doc_sum = NULL")
        db.commit()
        self.assertEqual(doctor(self.server).returncode, 3)
        db.execute("PRAGMA user_version = %d" % (int(names[0][:4]) - 1))
        db.commit()
        db.close()
        self.assertGreaterEqual(version, int(names[0][:4]))
        self.server.start()
        self.assertEqual(self.get(gid).status, 200)
        self.server.sigterm()
        self.assertEqual(doctor(self.server).returncode, 0)


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    unittest.main()
