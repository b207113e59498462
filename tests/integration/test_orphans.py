"""Lost and found: rows that are gone from the store, orphans, the admin API, and doctor."""
import os
import unittest

from lib import (BASE, LABEL, Case, Client, Server, cluster_input, doctor, eventually, guresid,
                 lose_rows, run)

OWNER = "humanitec_owner"


class Orphans(Case):
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def orphans(self, gid):
        answer = self.ops.get("/admin/orphans")
        self.assertEqual(answer.status, 200)
        return [i for i in answer.json["items"] if i["guresid"] == gid]

    def make(self, gid, name):
        """A cluster of the driver whose resource is lost."""
        self.expect(self.put(gid, cluster_input(name=name, spec={}, nodepools=[])), 202)
        cluster = self.fleet.cluster_of(gid)
        lose_rows(self.server, gid)
        return cluster

    def test_listed_and_deleted(self):
        """A cluster with the label and no resource is listed; DELETE on the ops listener deletes
        it, with a line in the log.
        """
        gid = guresid()
        cluster = self.make(gid, "nobodys-%s" % gid)
        (orphan,) = self.orphans(gid)
        self.assertEqual((orphan["id"], orphan["kind"], orphan["name"], orphan["href"]),
                         (cluster["id"], "Cluster", cluster["name"], cluster["href"]))
        self.assertEqual(self.ops.delete("/admin/orphans/" + cluster["id"]).status, 202)
        self.assertIn("deleted_time", self.orphans(gid)[0])
        wanted = ("audit: orphan deleted", cluster["id"])
        audit = eventually(lambda: [r for r in self.server.records()
                                    if (r.get("msg"), r.get("id")) == wanted],
                           "the deletion stands in the log")
        self.assertEqual(audit[0]["level"], "warn")
        self.assertIn("@", audit[0]["by"])
        self.fleet.finish_delete(gid)
        self.assertEqual(self.orphans(gid), [])

    def test_only_orphans_are_deleted(self):
        """Three kinds are left alone: a cluster of a resource, one without our label, and an absent
        one. The answer gives the reason.
        """
        gid, _, cookie = self.brought_ready()
        cluster = self.fleet.cluster_of(gid)
        answer = self.ops.delete("/admin/orphans/" + cluster["id"])
        self.assertEqual(answer.status, 409)
        self.assertIn(gid, answer.json["message"])
        plain = self.client.post(BASE + "/clusters",
                                 {"kind": "Cluster", "name": "plain-%s" % gid, "spec": {}}).json
        self.assertEqual(self.ops.delete("/admin/orphans/" + plain["id"]).status, 409)
        self.assertEqual(self.ops.delete("/admin/orphans/2nothing").status, 404)
        self.expect(self.get(gid, cookie), 200)
        self.assertNotIn("deleted_time", self.fleet.get(plain))
        self.assertEqual(self.orphans(gid), [])

    def test_labels_of_the_driver(self):
        """Others cannot set, change or remove its labels, of clusters and nodepools, by either
        path; what stays as it is may be sent. The error names the label.
        """
        gid, _, cookie = self.brought_ready()
        (cluster,), (pool,) = self.fleet.of(gid)
        flat = BASE + "/nodepools/" + pool["id"]
        for path in (cluster["href"], pool["href"], flat):
            labels = self.client.get(path).json["labels"]
            with self.subTest(path=path):
                for wrong, named in (({}, LABEL), ({LABEL: "another"}, LABEL), ({LABEL: ""}, LABEL),
                                     ({"team": "blue"}, LABEL),
                                     ({**labels, OWNER: "another"}, OWNER)):
                    self.refused(self.client.patch(path, {"labels": wrong}), named)
                spec = {"of": path}
                answer = self.client.patch(path, {"labels": {**labels, "team": "x"}, "spec": spec})
                self.assertEqual((answer.status, answer.json["labels"]),
                                 (200, {**labels, "team": "x"}))
        for labels in ({LABEL: gid}, {LABEL: "new", "a": "b"}, {LABEL: "new", OWNER: ""},
                       {LABEL: ""}):
            body = {"name": guresid("planted"), "spec": {}, "labels": labels}
            self.refused(self.client.post(BASE + "/clusters", {"kind": "Cluster", **body}), LABEL)
            self.refused(self.client.post(cluster["href"] + "/nodepools",
                                          {"kind": "NodePool", **body}), LABEL)
        plain = self.client.post(BASE + "/clusters", {"kind": "Cluster", "name": guresid("plain"),
                                                      "spec": {}}).json
        self.refused(self.client.patch(plain["href"], {"labels": {LABEL: "new"}}), LABEL)
        self.assertEqual(self.fleet.get(cluster)["labels"][LABEL], gid)

    def refused(self, answer, label):
        self.assertEqual(answer.status, 400, answer)
        self.assertEqual(answer.json["errors"][0]["field"], "labels." + label, answer)
        self.assertIn("the driver's alone", answer.json["detail"])

    def test_of_another_server(self):
        """A server that has this one for its HyperFleet makes, changes and deletes what has its
        label humanitec_owner. That is no orphan here, no order takes it over or waits for it, and
        it is deleted only with that owner's name.
        """
        gid, other = guresid(), "b" * 32
        labels = {LABEL: gid, OWNER: other}
        theirs = self.client.post(BASE + "/clusters", {"kind": "Cluster", "name": gid + "-b",
                                                       "spec": {}, "labels": labels}).json
        self.assertEqual(self.client.patch(theirs["href"],
                                           {"labels": {**labels, "a": "b"}}).status, 200)
        self.refused(self.client.patch(theirs["href"], {"labels": {LABEL: gid}}), OWNER)
        self.assertEqual(self.orphans(gid), [])
        (item,) = self.ops.get("/admin/orphans?owner=" + other).json["items"]
        self.assertEqual(item["id"], theirs["id"])
        self.expect(self.put(gid, cluster_input(name=gid + "-a", spec={}, nodepools=[])), 202)
        self.assertEqual(sorted(c["name"] for c in self.fleet.of(gid)[0]), [gid + "-a", gid + "-b"])
        for query in ("", "?owner=somebody"):
            answer = self.ops.delete("/admin/orphans/" + theirs["id"] + query)
            self.assertEqual(answer.status, 409)
            self.assertIn("'%s'" % other, answer.json["message"])
        answer = self.ops.delete("/admin/orphans/%s?owner=%s" % (theirs["id"], other))
        self.assertEqual(answer.status, 202, answer)
        self.assertIn("deleted_time", self.fleet.get(theirs))

    def test_put_takes_over(self):
        """A PUT of the GUResID takes the cluster over, and makes no second one; another name is
        RES-106 and names both.
        """
        gid, name = guresid(), "theirs"
        cluster = self.make(gid, name)
        message = self.expect(self.put(gid, cluster_input(name="ours")), 400,
                              "RES-106").json["message"]
        for word in ("theirs", "ours", cluster["id"], gid):
            self.assertIn(word, message)
        self.expect(self.put(gid, cluster_input(spec={"region": "eu-9"})), 202)
        self.assertEqual(self.fleet.cluster_of(gid)["id"], cluster["id"])
        self.assertEqual(self.fleet.get(cluster)["spec"], {"region": "eu-9"})
        self.assertEqual(self.orphans(gid), [])
        self.fleet.ready(gid)
        self.assertEqual(self.expect(self.get(gid), 200).json["resource"]["values"]["name"],
                         "theirs")

    def test_rows_lost(self):
        """With its cookie a resource whose row is gone answers as before on GET, PUT and DELETE;
        without it, PUT finds its parts again.
        """
        kept = [self.brought_ready() for _ in range(3)]
        making, bare = self.created(), self.brought_ready()
        before = [self.get(gid, cookie).json for gid, _, cookie in kept]
        ids = {gid: sorted(p["id"] for part in self.fleet.of(gid) for p in part) for gid, _,
               _ in kept + [making, bare]}
        lose_rows(self.server, *ids)
        self.assertEqual(len(self.orphans(bare[0])), 2)
        self.assertEqual(self.expect(self.get(kept[0][0], kept[0][2]), 200).json, before[0])
        self.assertEqual(self.expect(self.put(*kept[1]), 200).json, before[1])
        self.expect(self.delete(kept[2][0], kept[2][2]), 202)
        self.expect(self.get(making[0], making[2]), 202)
        self.expect(self.get(bare[0]), 404)
        self.expect(self.delete(bare[0]), 204)
        self.expect(self.put(bare[0], bare[1]), 200)
        for gid in ids:
            self.assertEqual(sorted(p["id"] for part in self.fleet.of(gid) for p in part), ids[gid],
                             "nothing was made twice")
            self.assertEqual(self.orphans(gid), [])
        self.fleet.finish_delete(kept[2][0])
        self.expect(self.delete(kept[2][0], kept[2][2]), 204)

    def test_doctor(self):
        """doctor tells of orphans, of a running server and of a stopped one, with status 3, and
        deletes none. On PostgreSQL it reads the rows itself beside servers that run.
        """
        running, stopped = ("server    ready", "no server runs on it")
        if self.server.place.base:
            running, stopped = ("replicas  1 live", "replicas  0 live")
        gid = guresid()
        cluster = self.make(gid, "lost-%s" % gid)
        flags = (*self.server.place.flags(), "--ops-listen",
                 "127.0.0.1:%d" % self.server.ops_port)
        asked = run("doctor", *flags)
        self.assertEqual(asked.returncode, 3, asked.stdout + asked.stderr)
        self.assertIn(running, asked.stdout)
        self.server.sigterm()
        read = run("doctor", *flags)
        self.assertEqual(read.returncode, 3, read.stdout + read.stderr)
        self.assertIn(stopped, read.stdout)
        for done in (asked, read):
            for word in ("key ring", cluster["id"], cluster["name"], gid, "Cluster"):
                self.assertIn(word, done.stdout)
        self.server.start()
        self.assertEqual(len(self.orphans(gid)), 1)

    def test_doctor_finds_the_server(self):
        """doctor asks the server that runs on the data, wherever it listens; --json says the same.
        """
        name = guresid("json")
        with Server(config="ops_listen: 127.0.0.1:0\n") as server:
            doc, found = doctor(server.place)
            self.assertEqual((found, doc["orphans"]), ([], []))
            own, on_sqlite = doc["findings"], not server.place.base
            told = {line["about"]: line["text"] for line in doc["lines"]}
            if on_sqlite:
                self.assertEqual(told["server"], "ready at 127.0.0.1:%d" % server.ops_port)
            else:
                self.assertEqual(told["replicas"], "1 live")
            client = Client(server)
            client.put("/" + name, cluster_input(name=name, nodepools=[]))
            client.close()
            lose_rows(server, name)
            doc, found = doctor(server.place)
            # Beside it the order waits for adapters that never reported.
            silent = [line for line in found if line["about"] == "problem"]
            self.assertEqual((found, doc["findings"]), (silent, own + 1 + len(silent)))
            self.assertEqual([(o["kind"], o["name"], o["guresid"], o["deleting"])
                              for o in doc["orphans"]], [("Cluster", name, name, False)])
            if on_sqlite:
                self.assertEqual({line["about"]: line["ok"] for line in doc["lines"]
                                  if line not in silent},
                                 {"key ring": True, "data": True, "server": True, "orphans": True})
            server.sigterm()
            self.assertFalse(os.path.exists(os.path.join(server.data, "addresses")))
            self.assertEqual(doctor(server.place)[0]["orphans"], doc["orphans"])

    def test_doctor_without_keys(self):
        """A damaged key ring is the one finding."""
        with Server() as server:
            server.sigterm()
            self.assertEqual(doctor(server.place)[1], [])
            with open(os.path.join(server.data, "keys"), "w", encoding="utf-8") as f:
                f.write("nonsense\n")
            self.assertEqual([line["about"] for line in doctor(server.place)[1]], ["key ring"])

    def test_doctor_elsewhere(self):
        """Nothing there, nothing wrong, a damaged database, and a server that cannot be asked."""
        with Server() as server:
            for more, status in ((), 2), (("--new",), 0):
                self.assertEqual(run("doctor", "--data", os.path.join(server.data, "none"),
                                     *more).returncode, status)
            deaf = run("doctor", "--data", server.data, "--ops-listen", "127.0.0.1:1")
            self.assertEqual(deaf.returncode, 3)
            self.assertIn("data      %s is in use by the server (process %d)\n"
                          % (server.data, server.proc.pid), deaf.stdout)
            self.assertTrue(deaf.stdout.endswith("\n2 problems\n"), deaf.stdout)
            self.assertIn("not ready at 127.0.0.1:1", deaf.stdout)
            server.sigterm()
            well = run("doctor", "--data", server.data)
            self.assertTrue(well.stdout.endswith("\nno problems found\n"), well.stdout)
            self.assertEqual((well.returncode, well.stderr), (0, ""), well.stdout)
            self.assertIn("orphans   0", well.stdout)
            with open(os.path.join(server.data, "store.db"), "r+b") as f:
                f.seek(8192)
                f.write(b"\xff" * 4096)
            ill = run("doctor", "--data", server.data)
            self.assertEqual(ill.returncode, 3, ill.stdout)
            self.assertRegex(ill.stdout, "\\ndata      .*(damaged|CORRUPT)")
            self.assertNotIn("can be used; no server", ill.stdout)


if __name__ == "__main__":
    unittest.main()
