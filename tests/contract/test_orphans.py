"""Orphans in a remote HyperFleet: listed, deleted when a command asks for it, and otherwise left
alone.

Against the scripted HyperFleet in each wire generation, and a second instance of the program.
"""
import concurrent.futures
import glob
import os
import unittest

import backends
import lib
import test_openapi

OWNER = "humanitec_owner"


class Remote:
    """The program in front of one HyperFleet, and what an operator does about orphans."""

    def __init__(self, case, name):
        self.case, self.backend = case, backends.ALL[name]()
        self.backend.open(adapters=backends.ONE_ADAPTER)
        self.server = self.backend.server
        self.fake = getattr(self.backend, "fake", None)
        self.client, self.ops = lib.Client(self.server), lib.Client(self.server, ops=True)
        self.fleet = self.backend.player()
        self.schemas = test_openapi.Schemas(self.ops.get("/docs/spec.json").json)

    def close(self):
        for client in (self.client, self.ops, self.fleet.client):
            client.close()
        self.backend.close()

    def order(self, gid, *pools):
        """A resource that HyperFleet has, and whose row knows it."""
        body = lib.cluster_input(name=gid, nodepools=[{"name": n, "spec": {}} for n in pools])
        self.case.assertEqual(self.client.put("/" + gid, body).status, 202)
        self.fleet.wanted(gid, body)
        self.fleet.ready(gid)
        lib.eventually(lambda: self.client.get("/" + gid).status == 200, "%s is ready" % gid,
                       every_s=0.05)
        return body

    def list(self):
        answer = self.ops.get("/admin/orphans")
        self.case.assertEqual(answer.status, 200, answer)
        self.schemas.check({"$ref": "#/components/schemas/OrphanList"}, answer.json)
        return answer.json

    def fresh(self):
        """A list of HyperFleet as it is now, or later."""
        since = lib.utc_now()

        def arrived():
            doc = self.list()
            return doc if "checked_time" in doc and lib.parse_time(
                doc["checked_time"]) >= since else None
        return lib.eventually(arrived, "HyperFleet was asked for orphans", every_s=0.05)

    def names(self, doc=None):
        return sorted("%s %s" % (i["kind"], i["name"]) for i in (doc or self.fresh())["items"])

    def item(self, name):
        return next((i for i in self.list()["items"] if i["name"] == name), None)

    def lose_store(self):
        """All but the key ring."""
        self.server.sigterm()
        for path in glob.glob(os.path.join(self.server.data, "*")):
            if os.path.basename(path) != "keys":
                os.unlink(path)
        self.server.start()

    def make(self, kind, name, labels, owner=None):
        """A row that another client made there."""
        path = "/clusters" if owner is None else "/clusters/%s/nodepools" % owner["id"]
        answer = self.fleet.client.post(lib.BASE + path,
                                        {"kind": kind, "name": name, "spec": {}, "labels": labels})
        self.case.assertEqual(answer.status, 201, answer)
        return answer.json

    def delete(self, id_, status):
        answer = self.ops.delete("/admin/orphans/" + id_)
        self.case.assertEqual(answer.status, status, answer)
        return answer.json

    def doctor(self):
        done = lib.run("doctor", "--data", self.server.data, "--ops-listen",
                       "127.0.0.1:%d" % self.server.ops_port,
                       *self.server.flags)
        self.case.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        return done.stdout


class Orphans(unittest.TestCase):
    """All scenarios begin at once, each with a remote of its own: most of their time is waiting."""

    PLAYED_BY = {"life": ("fake-g2", "fake-g3", "fake-g31", "second-both"),
                 "being_made": ("fake-g2", "fake-g3", "fake-g31"),
                 "relabelled": ("fake-g3",), "down": ("fake-g31",), "never_asked": ("fake-g3",),
                 "unable": ("fake-g2",)}

    @classmethod
    def setUpClass(cls):
        only = os.environ.get("HFD_TEST", "").split() or list(cls.PLAYED_BY)
        pairs = [(scenario, name) for scenario in only for name in cls.PLAYED_BY[scenario]]
        cls.pool = concurrent.futures.ThreadPoolExecutor(len(pairs))
        cls.played = {pair: cls.pool.submit(cls(pair[0]).play, pair[1]) for pair in pairs}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def play(self, name):
        remote = Remote(self, name)
        try:
            getattr(self, self._testMethodName)(remote)
        except Exception as e:
            raise AssertionError("%s with %s: %s\n%s"
                                 % (self._testMethodName, name, e, remote.server.tail(20))) from e
        finally:
            remote.close()

    def check(self, scenario):
        for (played, name), future in self.played.items():
            if played == scenario:
                with self.subTest(remote=name):
                    future.result()

    def test_life(self):
        """The store is lost. The clusters that the driver made are listed, and no others. A PUT
        adopts one; the other is deleted, and nothing besides.
        """
        self.check("life")

    def life(self, r):
        kept, _ = r.order("kept", "kept-np"), r.order("lost", "lost-np")
        self.assertEqual(r.names(), [])
        lost = r.fleet.cluster_of("lost")
        owner = lost["labels"][OWNER]
        r.make("Cluster", "others", {lib.LABEL: "lost", OWNER: "0" * len(owner)})
        r.make("Cluster", "plain", {})
        r.lose_store()
        self.assertEqual(r.names(),
                         ["Cluster kept", "Cluster lost", "NodePool kept-np", "NodePool lost-np"])
        item = r.item("lost")
        self.assertEqual((item["id"], item["guresid"], item["href"], item["generation"],
                          item["ready"]),
                         (lost["id"], "lost", lost["href"], lost["generation"], True))
        self.assertNotIn("message", r.list())
        self.assertIn(r.client.put("/kept", kept).status, (200, 202))
        self.assertEqual(r.names(r.list()), ["Cluster lost", "NodePool lost-np"],
                         "a resource that is being made is not listed")
        lib.eventually(lambda: r.client.get("/kept").status == 200, "kept is found again",
                       every_s=0.05)
        cluster = r.fleet.cluster_of("kept")
        r.make("NodePool", "kept-copy", {lib.LABEL: "kept", OWNER: owner}, cluster)
        self.assertEqual(r.names(), ["Cluster lost", "NodePool kept-copy", "NodePool lost-np"])
        self.assertIn("kept", r.delete(cluster["id"], 409)["message"])
        r.delete("2nothing", 404)
        self.assertIn(", as of 2", r.doctor())
        self.assertIs(r.delete(lost["id"], 202)["removed"], False)
        if r.backend.deletes:
            self.deleted(r, lost)
        else:
            self.not_deleted(r, lost)
        self.assertNotIn("deleted_time", r.fleet.get(cluster))
        self.assertEqual(r.client.get("/kept").status, 200)
        self.assertEqual(sorted(c["name"] for c in r.fleet.list("/clusters")
                                if "deleted_time" not in c and c["name"] != "lost"),
                         ["kept", "others", "plain"], "nothing was made, or deleted, besides")

    def deleted(self, r, lost):
        item = r.item("lost")
        self.assertTrue("delete_asked_time" in item, item)
        lib.eventually(lambda: "deleted_time" in (r.item("lost") or {}),
                       "it is listed as being deleted", every_s=0.05)
        r.delete(lost["id"], 202)  # a repeat
        self.assertNotIn("NodePool kept-copy",
                         [i["name"] for i in r.list()["items"] if "deleted_time" in i])
        for part in reversed([p for parts in r.fleet.of("lost") for p in parts
                              if "deleted_time" in p]):
            r.fleet.finalize(part)
        if r.fake is not None:  # a parent waits for its own next report
            r.fake.remove(lost["id"])
        lib.eventually(lambda: r.names() == ["NodePool kept-copy"], "it is listed no more",
                       every_s=0.1)
        r.delete(lost["id"], 404)
        told = lambda: {x["msg"] for x in r.server.records() if x.get("id") == lost["id"]}
        lib.eventually(lambda: len(told()) >= 2, "the log has its deletion and its end")
        self.assertEqual(told(), {"audit: orphan deleted", "deleted orphan is gone"})

    def not_deleted(self, r, lost):
        words = ("this HyperFleet cannot delete clusters (it answered 501 to DELETE): "
                 "its version is too old for that")
        item = lib.eventually(lambda: r.item("lost") if "message" in r.item("lost") else None,
                              "why it cannot be deleted", every_s=0.05)
        self.assertIn(words, item["message"])
        self.assertNotIn("delete_asked_time", item)
        self.assertIn(words, r.doctor())
        r.fake.remove(lost["id"])
        lib.eventually(lambda: r.names() == ["NodePool kept-copy"],
                       "what somebody removed there is listed no more", every_s=0.1)

    def test_being_made(self):
        """A creation that HyperFleet has carried out, and not answered yet, is no orphan, however
        often it is asked.
        """
        self.check("being_made")

    def being_made(self, r):
        r.fresh()
        r.fake.gids["making"] = "making"
        gate = r.fake.block(2, True, "making")  # it is looked for, and then made
        body = lib.cluster_input(name="making", nodepools=[])
        self.assertEqual(r.client.put("/making", body).status, 202)
        self.assertTrue(gate.reached.wait(lib.WAIT_S), "HyperFleet has made it")
        row = r.fake.live("Cluster", "making")[0]
        self.assertEqual(r.fresh()["items"], [])
        self.assertIn(r.ops.delete("/admin/orphans/" + row.id).status, (404, 409))
        r.fake.unblock()
        r.fleet.ready("making")
        lib.eventually(lambda: r.client.get("/making").status == 200, "it is made", every_s=0.05)
        self.assertEqual(r.list()["items"], [])
        self.assertEqual(len(r.fake.made), 1)

    def test_relabelled(self):
        """Between the list and the deletion another owner takes the orphan: it is left alone."""
        self.check("relabelled")

    def relabelled(self, r):
        r.order("theirs")
        r.lose_store()
        self.assertEqual(r.names(), ["Cluster theirs"])
        row = r.fake.live("Cluster", "theirs")[0]
        row.labels[OWNER] = "somebody-else"
        r.delete(row.id, 202)
        lib.eventually(lambda: r.list()["items"] == [], "it is not listed any more", every_s=0.05)
        self.assertIsNone(row.deleted)
        self.assertEqual(r.fake.requests("DELETE cluster"), [])

    def test_down(self):
        """A remote that does not answer: the list says so and of when it is; doctor does, of a
        running server and a stopped one.
        """
        self.check("down")

    def down(self, r):
        r.order("down")
        r.lose_store()
        before = r.fresh()
        r.fake.down()
        r.delete(before["items"][0]["id"], 202)
        lib.eventually(lambda: "gave no answer" in r.list().get("message", ""),
                       "the list says why there is no later one", every_s=0.05)
        after = lib.eventually(lambda: r.list() if "message" in r.item("down") else None,
                               "and why it is not deleted", every_s=0.05)
        self.assertEqual([i["name"] for i in after["items"]], ["down"])
        for stopped in (False, True):
            if stopped:
                r.server.sigterm()
            said = r.doctor()
            for words in ("orphans   1, as of 2",
                          "to be deleted: HyperFleet gave no answer",
                          "the list cannot be renewed: HyperFleet gave no answer"):
                self.assertIn(words, said)
        r.server.start()
        r.fake.up()
        lib.eventually(lambda: r.fake.live("Cluster", "down") == [],
                       "it is deleted once HyperFleet is back", every_s=0.1)

    def test_never_asked(self):
        """A remote that was down from the start: nothing is known, and the list and doctor say
        that, and not that there is nothing.
        """
        self.check("never_asked")

    def never_asked(self, r):
        r.fake.down()
        r.lose_store()
        doc = lib.eventually(lambda: r.list() if "gave no answer" in r.list()["message"] else None,
                             "the list says why", every_s=0.05)
        self.assertNotIn("checked_time", doc)
        self.assertEqual(doc["items"], [])
        self.assertIn("orphans   unknown: HyperFleet gave no answer", r.doctor())

    def test_unable(self):
        """A remote that refuses to list by label: the list says so in an operator's words."""
        self.check("unable")

    def unable(self, r):
        r.fresh()
        r.fake.arm("cannot search", step="GET nodepools", times=None)
        words = ("this HyperFleet cannot list nodepools by label: look for orphans there, "
                 "by their label humanitec_guresid")
        lib.eventually(lambda: words in r.list().get("message", ""), "the list says so",
                       every_s=0.05)


if __name__ == "__main__":
    unittest.main()
