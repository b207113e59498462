"""EMCO's status query over the wire. The numbers of tests are those of a list of 48 cases. The
golden documents in status/ are the examples of the EMCO status query. They are in the order of this
program, and say Terminated for Deleted.
"""
import datetime
import json
import re
import unittest

import pacemaker
import vfw
from lib import (BASE, Case, Client, Fleet, Server, changed, cluster_input, eventually, guresid,
                 nodepool_input, parse_time)
from vfw import APPS, PROVIDER, golden, objects, plain, report, text

EDGE01 = "cluster=%s%%2Bedge01" % PROVIDER
EDGE02 = "cluster=%s%%2Bedge02" % PROVIDER


class StatusCase(Case):
    ADAPTERS = tuple(APPS)
    POOL_ADAPTERS = ()

    def order(self, gid=None, **kw):
        gid = gid or guresid("vfw")
        self.assertEqual(self.put(gid, cluster_input(**kw)).status, 202)
        return gid

    def feed(self, gid, apps=APPS, generation=None, edit=None, **kw):
        """The adapters report their objects."""
        cluster = self.fleet.of(gid)[0][-1]
        for app in apps:
            listed = objects(app, **kw.get("more", {"present": True}))
            if edit is not None:
                edit(app, listed)
            how = {k: v for k, v in kw.items() if k != "more"}
            answer = self.client.post(cluster["href"] + "/statuses",
                                      report(app, generation or cluster["generation"], listed,
                                             **how))
            self.assertEqual(answer.status, 201, answer)

    def fed(self, **kw):
        gid = self.order()
        self.feed(gid, **kw)
        return gid

    def remove(self, gid):
        self.assertEqual(self.delete(gid).status, 202)
        self.feed(gid, finalized=True)
        self.assertEqual(self.get(gid).status, 404)

    def ask(self, gid, query="", prefix="/"):
        return self.client.get("%s%s/status%s" % (prefix, gid, "?" + query if query else ""))

    def status(self, gid, query="", prefix="/"):
        answer = self.ask(gid, query, prefix)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def refused(self, gid, query, message):
        answer = self.ask(gid, query)
        self.assertEqual((answer.status, answer.json["error"]), (400, "RES-101"), answer)
        self.assertTrue(answer.json["message"].startswith(message), answer)

    def states(self, gid):
        return [a["State"] for a in self.status(gid, "output=summary")["state"]["Actions"]]

    def contexts(self, gid):
        return [a["ContextId"] for a in self.status(gid, "output=summary")["state"]["Actions"]]


def names(doc):
    return [(app["name"], c["cluster"], r["name"]) for app in doc["apps"]
            for c in app["clusters"] for r in c["resources"]]


class Examples(StatusCase):
    # The examples of the document itself: 12, 6, 2 and 4 objects, byte for byte.
    def test_golden(self):
        gid = self.order("vfw", name="vfw")
        self.feed(gid)
        self.assertEqual(text(plain(self.ask(gid, EDGE02).body)), golden("cluster"))
        self.remove(gid)
        self.order(gid, name="vfw")
        details = {c["cluster"]: c["resources"][0]["detail"]
                   for c in json.loads(golden("detail"))["apps"][0]["clusters"]}

        def edit(app, listed):
            for o in listed:
                if o["name"] == "sink-configmap":
                    o["detail"] = details[o["cluster"]]
        self.feed(gid, edit=edit)
        self.assertEqual(text(plain(self.ask(gid).body)), golden("default"))
        self.assertEqual(text(plain(self.ask(gid, "output=summary").body)), golden("summary"))
        doc = plain(self.ask(gid, "output=detail&type=cluster&app=sink&resource=sink-configmap")
                    .body)
        for member in ("progress", "conditions"):
            del doc[member]
        for place in doc["apps"][0]["clusters"]:
            del place["resources"][0]["conditions"]
        self.assertEqual(text(doc), golden("detail"))
        first = self.contexts(gid)[2]
        self.assertEqual(
            text(plain(self.ask(gid, "output=all&type=rsync&resource=fw0-packetgen&"
                                "resource=sink-configmap&instance=" + first).body)),
            golden("instance"))


class Queries(StatusCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.gid = None

    def setUp(self):
        super().setUp()
        if self.gid is None:
            type(self).gid = self.fed(more={"present": True, "detail": {
                "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"},
                "spec": {"a": 1}, "status": {"b": 2}}})

    def summary(self, query):
        doc = self.status(self.gid, "output=summary&" + query)
        self.assertNotIn("apps", doc)
        self.assertEqual(doc["status"], "Instantiated")
        return doc.get("rsync-status")

    # 1 to 4
    def test_defaults(self):
        whole = self.ask(self.gid)
        self.assertEqual(whole.json["rsync-status"], {"Applied": 12})
        self.assertEqual(len(names(whole.json)), 12)
        self.assertEqual(names(whole.json), sorted(names(whole.json)))
        for same in ("type=rsync", "output=all", "foo=1", "type=rsync&type=nonsense"):
            self.assertEqual(self.ask(self.gid, same).body, whole.body)
        self.assertEqual(self.summary("x"), {"Applied": 12})

    # 5 to 11
    def test_filters(self):
        for query, count in (("app=sink", 6), (EDGE02, 6), ("app=sink&" + EDGE02, 3),
                             ("resource=sink-configmap", 2),
                             ("resource=fw0-packetgen&resource=sink-configmap", 4),
                             ("app=sink&app=firewall", 8), (EDGE01 + "&" + EDGE02, 12)):
            self.assertEqual(self.summary(query), {"Applied": count}, query)
            self.assertEqual(len(names(self.status(self.gid, query))), count)
        self.assertEqual({n[0] for n in names(self.status(self.gid, "resource=sink-configmap"))},
                         {"sink"})
        self.assertEqual(len(self.status(self.gid, "resource=fw0-packetgen&resource="
                                         "sink-configmap")["apps"]), 2)

    # 15 to 18
    def test_outputs(self):
        def details(query):
            return [r.get("detail") for app in self.status(self.gid, query)["apps"]
                    for c in app["clusters"] for r in c["resources"]]
        self.assertTrue(all("spec" in d and "status" not in d for d in details("output=detail")))
        self.assertTrue(all("status" in d for d in details("output=detail&type=cluster")))
        self.assertEqual(set(details("")), {None})
        self.assertNotIn("apps", self.status(self.gid, "output=summary&output=detail"))

    # 19 to 27, 29, 33
    def test_wrong_parameters(self):
        for query, message in (
                ("type=all", "Invalid query type"), ("type=", "Invalid query type"),
                ("type", "Invalid query type"),
                ("output=rsync", "Invalid query output"), ("output=", "Invalid query output"),
                ("cluster=edge02", "Invalid cluster query"),
                ("cluster=a+b", "Invalid cluster query"),
                ("cluster=a%2Bb%2Bc", "Invalid cluster query"),
                ("cluster=%2Bedge02", "Invalid cluster query"),
                ("app=UPPER_case!", "Invalid app query"),
                ("resource=../x", "Invalid resources query"),
                ("resource=", "Invalid resources query"),
                ("instance=", "Invalid query instance"),
                ("%zz", "the query has a '%'"), ("app=%zz", "the query has a '%'")):
            self.refused(self.gid, query, message)
            href = self.fleet.cluster_of(self.gid)["href"]
            answer = self.client.get(href + "/status?" + query)
            self.assertEqual((answer.status, answer.header("Content-Type")),
                             (400, "application/problem+json"))

    # 28
    def test_a_filter_that_matches_nothing(self):
        for query in ("app=nosuch", "cluster=a%2Bb", "resource=x",
                      "app=sink&resource=fw0-firewall"):
            doc = self.status(self.gid, query)
            self.assertEqual((doc["apps"], doc["status"], doc["rsync-status"]),
                             ([], "Instantiated", {}))

    # 30, 35
    def test_what_is_not_there(self):
        for path in ("/%s/status?instance=999" % self.gid, "/%s/status?instance=x" % self.gid,
                     "/never-seen/status", "/%s/status" % ("x" * 64),
                     "/nodepools/%s/status" % self.gid):
            answer = self.client.get(path)
            self.assertEqual((answer.status, answer.json["error"]), (404, "RES-108"), answer)
        answer = self.client.get(BASE + "/clusters/nosuch/status")
        self.assertEqual((answer.status, answer.json["code"]), (404, "HYPERFLEET-NTF-001"))

    # Paths, methods and entity tags.
    def test_http(self):
        plain_one = self.ask(self.gid)
        typed = self.ask(self.gid, prefix="/clusters/")
        self.assertEqual(plain_one.body, typed.body)
        head = self.client.request("HEAD", "/%s/status" % self.gid)
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(head.header("ETag"), plain_one.header("ETag"))
        self.assertEqual(head.header("Content-Length"), str(len(plain_one.body)))
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            answer = self.client.request(method, "/%s/status" % self.gid, {})
            self.assertEqual((answer.status, answer.header("Allow")), (405, "GET, HEAD"))
        tag = plain_one.header("ETag")
        for value in (tag, "W/" + tag, '"x", %s' % tag, "*"):
            answer = self.client.get("/%s/status" % self.gid, {"If-None-Match": value})
            self.assertEqual((answer.status, answer.body, answer.header("ETag")), (304, b"", tag))
        for value in ('"x"', tag[:-1], tag.strip('"')):
            answer = self.client.get("/%s/status" % self.gid, {"If-None-Match": value})
            self.assertEqual(answer.status, 200)
        other = self.ask(self.gid, "output=summary").header("ETag")
        self.assertNotEqual(other, tag)

    # A first segment that is a path of the driver is one: /clusters/status is a resource.
    def test_the_resource_called_status(self):
        self.assertEqual(self.client.get("/clusters/status").json["error"], "RES-108")
        self.assertEqual(self.put("status", cluster_input(name="called-status"),
                                  prefix="/clusters/").status, 202)
        self.assertEqual(self.client.get("/clusters/status").status, 202)
        self.assertEqual(self.status("status")["name"], "status")
        self.assertEqual(self.status("status", prefix="/clusters/")["name"], "status")


class Life(StatusCase):
    def phase(self, gid, query="output=summary"):
        doc = self.status(gid, query)
        return doc["status"], doc.get("rsync-status")

    # 12 to 14
    def test_cluster_status(self):
        gid = self.fed(more={})
        doc = self.status(gid, "type=cluster")
        self.assertEqual(doc["cluster-status"], {"Unknown": 12})
        self.assertNotIn("rsync-status", doc)
        self.feed(gid)
        self.assertEqual(self.status(gid, "type=cluster")["cluster-status"], {"Present": 12})

        def gone(app, listed):
            if app == "firewall":
                listed[0]["present"] = False
        self.feed(gid, edit=gone)
        doc = self.status(gid, "type=cluster")
        self.assertEqual(doc["cluster-status"], {"NotPresent": 1, "Present": 11})
        self.assertEqual({r["cluster-status"] for app in doc["apps"] for c in app["clusters"]
                          for r in c["resources"]}, {"NotPresent", "Present"})

    # 38 to 41; without reports there is one object of each adapter.
    def test_instantiating(self):
        gid = self.order()
        self.assertEqual(self.phase(gid), ("Instantiating", {"Pending": 3}))
        self.assertEqual(self.status(gid)["apps"][0]["clusters"][0]["resources"][0]["GVK"],
                         {"Group": "hyperfleet.io", "Version": "v1", "Kind": "Cluster"})

        def say(status, at=0):
            def edit(app, listed):
                if app == "sink":
                    listed[at]["rsync-status"] = status
            return edit
        self.feed(gid, more={"rsync-status": "Pending"})
        self.assertEqual(self.phase(gid), ("Instantiating", {"Pending": 12}))
        self.feed(gid, edit=say("Failed"))
        self.assertEqual(self.phase(gid), ("InstantiateFailed", {"Applied": 11, "Failed": 1}))

        def two(app, listed):
            say("Failed")(app, listed)
            say("Pending", 1)(app, listed)
        self.feed(gid, edit=two)
        self.assertEqual(self.phase(gid),
                         ("Instantiating", {"Pending": 1, "Applied": 10, "Failed": 1}))
        self.feed(gid, edit=say("Retrying"))
        self.assertEqual(self.phase(gid), ("Instantiating", {"Applied": 11, "Retrying": 1}))
        self.feed(gid)
        self.assertEqual(self.phase(gid), ("Instantiated", {"Applied": 12}))
        self.feed(gid, apps=["sink"], applied=False)
        self.assertEqual(self.phase(gid), ("InstantiateFailed", {"Applied": 6, "Failed": 6}))
        self.feed(gid, apps=["sink"], health=False)
        self.assertEqual(self.phase(gid), ("Instantiating", {"Applied": 6, "Retrying": 6}))

    # Filters change counts, never the status.
    def test_status_is_of_the_whole(self):
        gid = self.fed()
        self.feed(gid, apps=["sink"], applied=False)
        self.assertEqual(self.phase(gid, "output=summary&app=firewall"),
                         ("InstantiateFailed", {"Applied": 2}))

    # An adapter that is not required is shown, and decides nothing.
    def test_an_adapter_that_is_not_required(self):
        gid = self.fed()
        cluster = self.fleet.cluster_of(gid)
        self.client.post(cluster["href"] + "/statuses",
                         report("extra", 1, [{"name": "x"}], applied=False))
        self.assertEqual(self.phase(gid), ("Instantiated", {"Applied": 12, "Failed": 1}))
        self.assertEqual(self.status(gid, "app=extra")["apps"][0]["clusters"][0]["cluster"],
                         cluster["name"])

    # 42
    def test_delete_while_instantiating(self):
        gid = self.fed(more={"rsync-status": "Pending"})
        before = self.contexts(gid)[-1]
        self.delete(gid)
        doc = self.status(gid, "output=summary")
        self.assertEqual((doc["status"], doc["rsync-status"]), ("Terminating", {"Pending": 12}))
        self.assertEqual((doc["state"]["Actions"][-1]["State"],
                          doc["state"]["Actions"][-1]["ContextId"]), ("Terminated", before))
        self.delete(gid)
        self.assertEqual(self.states(gid).count("Terminated"), 1)

    # A deletion says nothing about objects until an adapter does: not even its late reports on what
    # was before. It starts at 0 percent.
    def test_what_is_there_when_a_deletion_begins(self):
        gid = self.fed()
        cluster = self.fleet.of(gid)[0][-1]
        self.delete(gid)
        for late in (False, True):
            if late:
                self.feed(gid, generation=cluster["generation"], applied=False)
                self.feed(gid, generation=cluster["generation"])
            self.assertEqual(self.phase(gid), ("Terminating", {"Applied": 12}))
            doc = self.status(gid, "type=cluster&output=detail")
            self.assertEqual((doc["cluster-status"], doc["progress"]), ({"Present": 12}, 0))
        self.feed(gid, apps=["sink"], finalized=True, more={"present": False})
        self.assertEqual(self.phase(gid), ("Terminating", {"Applied": 6, "Terminated": 6}))
        self.assertEqual(self.status(gid, "type=cluster")["cluster-status"],
                         {"NotPresent": 6, "Present": 6})

    # The words of EMCO's table and example are taken; another one is refused with the list.
    def test_words(self):
        gid = self.order()
        for word, want in (("Instantiated", "Applied"), ("Deleted", "Terminated")):
            self.feed(gid, apps=["sink"], more={"rsync-status": word})
            self.assertEqual(self.phase(gid, "app=sink")[1], {want: 6})
        for word in ("applied", "", 5):
            cluster = self.fleet.cluster_of(gid)
            answer = self.client.post(cluster["href"] + "/statuses", report(
                "sink", 1, [{"name": "a"}, {"name": "o", "rsync-status": word}]))
            self.assertEqual(answer.status, 400, answer.body)
            self.assertEqual([e["field"] for e in answer.json["errors"]],
                             ["data.objects[1].rsync-status"])
            self.assertIn("Retrying, Terminated (or Deleted)", answer.json["detail"])

    # 43
    def test_a_deletion_that_is_refused(self):
        gid = self.fed()
        self.delete(gid)
        self.feed(gid, apps=["sink"], applied=False, finalized=False)
        self.feed(gid, apps=["firewall"], applied=False, finalized=True)
        self.assertEqual(self.phase(gid),
                         ("Terminating", {"Applied": 4, "Failed": 6, "Terminated": 2}))
        self.feed(gid, apps=["packetgen"], applied=False, finalized=True)
        self.assertEqual(self.phase(gid), ("TerminateFailed", {"Failed": 6, "Terminated": 6}))

    # 31, 32, 36
    def test_after_the_deletion(self):
        gid = self.fed()
        self.remove(gid)
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["rsync-status"], len(names(doc))),
                         ("Terminated", {"Terminated": 12}, 12))
        self.assertEqual(self.status(gid, "type=cluster&output=summary")["cluster-status"],
                         {"NotPresent": 12})
        self.assertEqual(self.status(gid, "app=sink&" + EDGE02)["rsync-status"],
                         {"Terminated": 3})
        self.assertEqual(self.status(gid, prefix="/clusters/")["status"], "Terminated")
        self.assertEqual(self.ask(gid, prefix="/nodepools/").status, 404)
        self.order(gid)
        self.assertEqual(self.states(gid), ["Created", "Approved", "Instantiated", "Terminated",
                                            "Approved", "Instantiated"])
        first, second = self.contexts(gid)[2], self.contexts(gid)[5]
        self.assertGreater(int(second), int(first))
        self.assertEqual(self.phase(gid), ("Instantiating", {"Pending": 3}))
        self.assertEqual(self.phase(gid, "output=summary&instance=" + second),
                         ("Instantiating", {"Pending": 3}))
        old = self.status(gid, "instance=" + first)
        self.assertEqual((old["status"], old["rsync-status"], len(old["state"]["Actions"])),
                         ("Terminated", {"Terminated": 12}, 6))

    # 44 to 47
    def test_history(self):
        body = cluster_input()
        gid = guresid("h")
        self.put(gid, body)
        self.feed(gid)
        self.assertEqual(self.put(gid, body).status, 200)
        self.assertEqual(self.put(gid, body).status, 200)
        self.assertEqual(self.states(gid), ["Created", "Approved", "Instantiated"])
        self.assertEqual(self.put(gid, dict(body, type="hyperfleet-nodepool")).status, 400)
        self.assertEqual(len(self.states(gid)), 3)
        self.assertEqual(self.put(gid, changed(body)).status, 202)
        self.assertEqual(self.states(gid)[3:], ["Instantiated"])
        contexts = self.contexts(gid)
        self.assertEqual(contexts[:2], ["", ""])
        self.assertGreater(int(contexts[3]), int(contexts[2]))
        self.assertEqual(self.phase(gid), ("Instantiating", {"Pending": 12}))
        self.assertEqual(self.phase(gid, "output=summary&instance=" + contexts[2]),
                         ("Instantiated", {"Applied": 12}))
        stamps = [a["TimeStamp"] for a in self.status(gid)["state"]["Actions"]]
        for stamp in stamps:
            self.assertRegex(stamp, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,2}[1-9])?Z$")
        self.assertEqual(stamps, sorted(stamps, key=parse_time))

    # The objects of the newest ended instances are kept; older ones are said to be gone.
    def test_instances_are_bounded(self):
        body = cluster_input()
        gid = guresid("b")
        self.put(gid, body)
        for _ in range(12):
            self.feed(gid)
            body = changed(body)
            self.assertEqual(self.put(gid, body).status, 202)
        contexts = [c for c in self.contexts(gid) if c]
        self.assertEqual(len(contexts), 13)
        for i, context in enumerate(contexts):
            answer = self.ask(gid, "output=summary&instance=" + context)
            self.assertEqual(answer.status, 404 if i < 2 else 200, answer)
            if i < 2:
                self.assertIn("not kept any more", answer.json["message"])

    # 48
    def test_restart(self):
        live, gone = self.fed(), self.fed()
        self.remove(gone)
        queries = [(g, q) for g in (live, gone)
                   for q in ("", "type=cluster", "output=summary", "output=detail", "app=sink")]
        before = [(self.ask(g, q).body, self.ask(g, q).header("ETag")) for g, q in queries]
        self.restart()
        self.assertEqual([(self.ask(g, q).body, self.ask(g, q).header("ETag"))
                          for g, q in queries], before)


class Parts(StatusCase):
    POOL_ADAPTERS = ("pool",)

    # A nodepool has objects of its own; one that is removed alone leaves the instance.
    def test_nodepools(self):
        gid = guresid("np")
        body = cluster_input(nodepools=[{"name": "np-a"}, {"name": "np-b"}],
                             spec={"platform": {"type": "KubeVirt"}})
        self.put(gid, body)
        self.feed(gid)
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["rsync-status"]),
                         ("Instantiating", {"Pending": 2, "Applied": 12}))
        pool = [a for a in doc["apps"] if a["name"] == "pool"][0]["clusters"]
        self.assertEqual([(c["cluster-provider"], c["cluster"]) for c in pool],
                         [("kubevirt", self.fleet.cluster_of(gid)["name"])])
        self.assertEqual([(r["GVK"]["Kind"], r["name"]) for r in pool[0]["resources"]],
                         [("NodePool", "np-a"), ("NodePool", "np-b")])
        self.fleet.required = {"Cluster": (), "NodePool": ("pool",)}
        self.fleet.ready(gid)
        self.assertEqual(self.status(gid)["status"], "Instantiated")
        del body["driver"]["values"]["nodepools"][1]
        self.put(gid, body)
        self.assertEqual(self.status(gid)["rsync-status"], {"Applied": 13})
        self.fleet.finish_pool_deletes(gid)
        self.assertEqual(self.status(gid)["rsync-status"], {"Applied": 13})
        self.delete(gid)
        self.fleet.finish_pool_deletes(gid)
        self.assertEqual(self.status(gid)["rsync-status"], {"Applied": 12, "Terminated": 1})
        self.feed(gid, finalized=True)
        self.assertEqual(self.status(gid)["rsync-status"], {"Terminated": 13})

    # A nodepool that is a resource itself.
    def test_a_nodepool_resource(self):
        owner, gid = self.fed(), guresid("pool")
        self.put(gid, nodepool_input(cluster_guresid=owner, name="np-c"), prefix="/nodepools/")
        doc = self.status(gid, prefix="/nodepools/")
        self.assertEqual((doc["status"], doc["type"], names(doc)),
                         ("Instantiating", "hyperfleet-nodepool",
                          [("pool", self.fleet.cluster_of(owner)["name"], "np-c")]))
        self.assertEqual(self.ask(gid, prefix="/clusters/").status, 404)
        self.delete(owner)
        self.feed(owner, finalized=True)
        self.assertIn("waits for nodepool 'np-c' of resource %s: pool (has not reported)" % gid,
                      self.delete(owner).json["message"])

    # A cluster that was removed in HyperFleet has failed.
    def test_removed_behind_our_back(self):
        gid = self.fed()
        href = self.fleet.cluster_of(gid)["href"]
        self.assertEqual(self.client.delete(href).status, 202)
        self.assertEqual(self.client.post(href + "/force-delete", {"reason": "test"}).status, 204)
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["rsync-status"]),
                         ("InstantiateFailed", {"Terminated": 12}))


class Details(StatusCase):
    FLAGS = ("--store-read-timeout", "60s")  # test_too_large reads 36 MB

    # Values of a Secret are never shown, and neither is the copy that kubectl keeps of them.
    def test_secrets(self):
        marked = "c2VjcmV0LXZhbHVl"
        gid = self.order()
        secret = {"apiVersion": "v1", "kind": "Secret", "data": {"password": marked},
                  "stringData": {"user": marked},
                  "metadata": {"name": "s", "annotations": {
                      "kubectl.kubernetes.io/last-applied-configuration": marked, "a": "b"}}}
        listed = [{"name": "s", "detail": secret},
                  {"name": "t", "GVK": {"Group": "", "Version": "v1", "Kind": "Secret"},
                   "detail": {"data": {"x": marked}}}]
        cluster = self.fleet.cluster_of(gid)
        body = report("sink", 1, listed)
        body["data"]["secrets"] = {"kubeconfig": marked}
        self.assertEqual(self.client.post(cluster["href"] + "/statuses", body).status, 201)
        for query in ("output=detail", "output=detail&type=cluster"):
            answer = self.ask(gid, query)
            self.assertNotIn(marked.encode(), answer.body)
            shown = {r["name"]: r["detail"] for app in answer.json["apps"]
                     for c in app["clusters"] for r in c["resources"] if app["name"] == "sink"}
            self.assertEqual(shown["s"]["data"], {"password": "[redacted]"})
            self.assertEqual(shown["s"]["metadata"]["annotations"]["a"], "b")
            self.assertEqual(shown["t"]["data"], {"x": "[redacted]"})

    # Progress, conditions and the reason of waiting.
    def test_more(self):
        gid = self.order()
        cluster = self.fleet.cluster_of(gid)
        body = report("sink", 1, [{"name": "a", "progress": 30},
                                  {"name": "b", "conditions": [{"type": "Mine"}]}], applied=False)
        body["data"]["progress"] = 55
        body["conditions"][0].update(reason="NoQuota", message="no room")
        body["conditions"][1].update(message="m" * 6000)  # which has a brief form
        body["conditions"].append(dict(body["conditions"][1], type="Extra", message="e"))
        self.client.post(cluster["href"] + "/statuses", body)
        doc = self.status(gid, "output=detail")
        # The mean of 30, 55 and those of the two adapters that have not reported.
        self.assertEqual(doc["progress"], 21)
        self.assertEqual(self.status(gid, "output=detail&app=firewall")["progress"], 21)
        self.assertIn("no room", doc["message"])
        self.assertIn("Ready", [c["type"] for c in doc["conditions"]])
        found = {(app["name"], r["name"]): r for app in doc["apps"] for c in app["clusters"]
                 for r in c["resources"]}
        self.assertEqual((found["sink", "a"]["progress"], found["sink", "b"]["progress"]), (30, 55))
        self.assertEqual(found["sink", "b"]["conditions"], [{"type": "Mine"}])
        shown = {c["type"]: c for c in found["sink", "a"]["conditions"]}
        self.assertEqual(set(shown), {"Available", "Applied", "Health", "Extra"})
        self.assertEqual(shown["Applied"]["message"], "m" * 6000)
        self.assertEqual(found["sink", "a"]["waiting"], "NoQuota: no room")
        pseudo = found["firewall", cluster["name"]]
        self.assertEqual(pseudo["waiting"], "has not reported")
        self.assertEqual(pseudo["detail"]["metadata"]["uid"], cluster["id"])
        self.assertNotIn("status", pseudo["detail"])

    # Objects that only the other side has are listed with type=cluster alone.
    def test_observed_objects(self):
        gid = self.order()
        cluster = self.fleet.cluster_of(gid)
        listed = [{"name": "a", "present": True},
                  {"name": "made", "present": True, "observed-only": True}]
        self.client.post(cluster["href"] + "/statuses", report("sink", 1, listed))
        self.assertEqual([n[2] for n in names(self.status(gid, "app=sink"))], ["a"])
        doc = self.status(gid, "app=sink&type=cluster")
        self.assertEqual(([n[2] for n in names(doc)], doc["cluster-status"]),
                         (["a", "made"], {"Present": 2}))

    # The label project is EMCO's project.
    def test_project(self):
        gid = self.order(labels={"project": "shop"})
        self.assertEqual(self.status(gid)["project"], "shop")

    # An answer that is too large says how to ask for less.
    def test_too_large(self):
        gid = self.order()
        cluster = self.fleet.cluster_of(gid)
        filler = {"kind": "ConfigMap", "data": {"x": "y" * 900000}}
        for i in range(40):
            self.client.post(cluster["href"] + "/statuses",
                             report("extra%d" % i, 1, [{"name": "big", "detail": filler}]))
        answer = self.ask(gid, "output=detail")
        self.assertEqual((answer.status, answer.json["error"]), (400, "RES-107"), answer)
        self.assertIn("output=summary", answer.json["message"])
        self.assertEqual(self.status(gid, "output=summary")["rsync-status"]["Applied"], 40)
        self.assertEqual(len(names(self.status(gid, "output=detail&app=extra1"))), 1)


class Clusters(StatusCase):
    ADAPTERS = ("network-intents",)

    def make(self, name, platform):
        answer = self.client.post(BASE + "/clusters", {
            "kind": "Cluster", "name": name, "spec": {"platform": {"type": platform}}})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def shown(self, cluster, query=""):
        answer = self.client.get("%s/status?%s" % (cluster["href"], query))
        self.assertEqual(answer.status, 200, answer)
        return answer

    def tell(self, cluster, generation=1, **kw):
        answer = self.client.post(cluster["href"] + "/statuses",
                                  report("network-intents", generation, vfw.intents(), **kw))
        self.assertEqual(answer.status, 201, answer)

    # HyperFleet's own query: Created and Applied; 3 objects, byte for byte.
    def test_golden(self):
        cluster = self.make("edge01", "VFW-Cluster-Provider")
        self.tell(cluster)
        self.assertEqual(text(plain(self.shown(cluster).body, "ID")), golden("intents"))
        answer = self.client.get(cluster["href"] + "/status",
                                 {"If-None-Match": self.shown(cluster).header("ETag")})
        self.assertEqual(answer.status, 304)

    # Applied again with each change; Terminated is seen after the removal, too.
    def test_life(self):
        cluster = self.make("edge02", "p")
        self.tell(cluster)
        self.assertEqual(self.client.patch(cluster["href"], {"labels": {"a": "b"}}).status, 200)
        doc = self.shown(cluster).json
        self.assertEqual([(a["State"], a["ContextId"]) for a in doc["state"]["Actions"]],
                         [("Created", ""), ("Applied", "1"), ("Applied", "2")])
        self.assertEqual((doc["status"], doc["rsync-status"]), ("Instantiating", {"Pending": 3}))
        old = self.shown(cluster, "instance=1").json
        self.assertEqual((old["status"], old["rsync-status"], len(names(old))),
                         ("Instantiated", {"Applied": 3}, 3))
        self.client.delete(cluster["href"])
        self.assertEqual(self.shown(cluster).json["status"], "Terminating")
        self.tell(cluster, 3, finalized=True)
        self.assertEqual(self.client.get(cluster["href"]).status, 404)
        doc = self.shown(cluster).json
        self.assertEqual((doc["name"], doc["status"], doc["rsync-status"], doc["state"]["Actions"]
                          [-1]["State"]), ("p+edge02", "Terminated", {"Terminated": 3},
                                           "Terminated"))

    # A cluster of a driver resource has the history of that resource.
    def test_of_a_resource(self):
        gid = self.order()
        cluster = self.fleet.cluster_of(gid)
        doc = self.shown(cluster).json
        self.assertEqual(doc["name"], "hyperfleet+" + cluster["name"])
        self.assertEqual([a["State"] for a in doc["state"]["Actions"]], ["Created", "Applied"])
        self.assertEqual(doc["state"]["Actions"][1]["ContextId"], self.contexts(gid)[2])


class NoAdapters(StatusCase):
    ADAPTERS = ()

    # Without adapters there is nothing to wait for.
    def test_at_once(self):
        gid = guresid("none")
        self.put(gid, cluster_input())
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["apps"], doc["rsync-status"]),
                         ("Instantiated", [], {}))
        self.delete(gid)
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["apps"]), ("Terminated", []))


class Remote(unittest.TestCase):
    REQUIRED = ("--adapters-required-cluster", "sink", "--adapters-required-nodepool", "")

    def setUp(self):
        self.fleet = Server(*self.REQUIRED)
        self.addCleanup(self.fleet.close)
        self.fleet.start()
        self.driver = Server("--backend", "http://127.0.0.1:%d" % self.fleet.port,
                             "--remote-watch", "1s", "--remote-fresh", "1s", *self.REQUIRED)
        self.addCleanup(self.driver.close)
        self.driver.start()
        self.client, self.there = Client(self.driver), Client(self.fleet)
        self.addCleanup(self.client.close)
        self.addCleanup(self.there.close)

    def until(self, phase, counts):
        def same():
            doc = self.client.get("/far/status").json
            return (doc["status"], doc.get("rsync-status")) == (phase, counts) and doc
        return eventually(same, "the status is %s %s" % (phase, counts))

    # Actions are the driver's own, objects those of reports that were observed.
    def test_life(self):
        api = Fleet(self.there, ("sink",), ())
        self.assertEqual(self.client.put("/far", cluster_input()).status, 202)
        self.until("Instantiating", {"Pending": 1})
        cluster = eventually(lambda: api.of("far")[0], "the cluster is made")[0]
        self.there.post(cluster["href"] + "/statuses",
                        report("sink", 1, objects("sink", present=True)))
        eventually(lambda: self.client.get("/far").status == 200, "it is observed")
        doc = self.until("Instantiated", {"Applied": 6})
        self.assertEqual(len(names(doc)), 6)
        self.assertEqual(self.client.get("/far/status?type=cluster&output=summary").json
                         ["cluster-status"], {"Present": 6})
        self.assertEqual(self.client.get(cluster["href"] + "/status").status, 404)
        self.client.delete("/far")
        self.assertEqual(self.client.get("/far/status").json["status"], "Terminating")
        leaving = eventually(lambda: "deleted_time" in api.of("far")[0][0] and api.of("far")[0][0],
                             "the deletion is there")
        self.there.post(cluster["href"] + "/statuses",
                        report("sink", leaving["generation"], objects("sink"), finalized=True))
        eventually(lambda: self.client.get("/far").status == 404, "it is gone")
        doc = self.until("Terminated", {"Terminated": 6})
        self.assertEqual([a["State"] for a in doc["state"]["Actions"]],
                         ["Created", "Approved", "Instantiated", "Terminated"])


class Tombstones(unittest.TestCase):
    # 37: when its time is over nothing is known of a removed resource.
    def test_expiry(self):
        with Server("--driver-tombstone", "1s", "--adapters-required-cluster", "",
                    "--adapters-required-nodepool", "") as server:
            client = Client(server)
            self.addCleanup(client.close)
            client.put("/gone", cluster_input())
            client.delete("/gone")
            eventually(lambda: client.get("/gone/status").status == 404, "the tombstone ends")
            self.assertEqual(client.get("/gone/status").json["error"], "RES-108")


class Seeds(StatusCase):
    FLAGS = ("--adapters-pacemaker", "pacemaker")
    ADAPTERS = ("dns",)

    def observe(self, cluster, doc):
        answer = self.fleet.report(cluster, "pacemaker", data={"pacemakerCluster": doc})
        self.assertEqual(answer.status, 201, answer)

    # One life that needs all seeds: order, reports, ready; lost fencing; recovery; deletion.
    def test_one_scenario(self):
        gid = guresid("life")
        self.assertEqual(self.put(gid, cluster_input()).status, 202)
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual(self.status(gid)["status"], "Instantiating")
        self.fleet.accepted(cluster, "dns")
        self.observe(cluster, pacemaker.document())
        answer = self.get(gid)
        self.assertEqual((answer.status, answer.json["resource"]["values"]["health"]),
                         (200, "Healthy"))
        doc = self.status(gid, "type=cluster&app=pacemaker")
        self.assertEqual(doc["status"], "Instantiated")
        kinds = sorted((r["GVK"]["Kind"], r["name"]) for r in
                       doc["apps"][0]["clusters"][0]["resources"])
        self.assertEqual(kinds, [("FencingAgent", "master-0_redfish"),
                                 ("FencingAgent", "master-1_redfish"), ("Node", "master-0"),
                                 ("Node", "master-1"), ("Resource", "Etcd"), ("Resource", "Etcd"),
                                 ("Resource", "Kubelet"), ("Resource", "Kubelet")])
        self.assertEqual(doc["cluster-status"], {"Present": 8})

        self.observe(cluster, pacemaker.lost_fencing(pacemaker.document()))
        self.assertEqual(self.fleet.get(cluster)["status"]["conditions"][0]["status"], "False")
        answer = self.get(gid)
        self.assertEqual((answer.status, answer.json["resource"]["values"]["health"]),
                         (200, "Degraded"))
        doc = self.status(gid, "output=detail&type=cluster&app=pacemaker")
        node = [r for r in doc["apps"][0]["clusters"][0]["resources"] if r["name"] == "master-0"]
        self.assertIn("master-0 node is unhealthy: fencing unavailable", node[0]["waiting"])
        self.assertEqual(node[0]["detail"]["kind"], "Node")
        fencing = [c for c in node[0]["conditions"] if c["type"] == "FencingAvailable"]
        self.assertEqual(fencing[0]["status"], "False")

        self.observe(cluster, pacemaker.document())
        self.assertEqual(self.get(gid).json["resource"]["values"]["health"], "Healthy")
        self.assertEqual(self.delete(gid).status, 202)
        self.assertEqual(self.status(gid)["status"], "Terminating")
        self.fleet.required = {"Cluster": ("dns",), "NodePool": ()}
        self.fleet.finish_delete(gid)
        self.assertEqual(self.get(gid).status, 404)
        doc = self.status(gid)
        self.assertEqual((doc["status"], doc["rsync-status"]), ("Terminated", {"Terminated": 9}))
        self.assertEqual([a["State"] for a in doc["state"]["Actions"]],
                         ["Created", "Approved", "Instantiated", "Terminated"])

    # An offline node is not there, and neither is what ran on it. Its fencing agent is: by its own
    # conditions. A stale document is not known.
    def test_presence_in_a_document(self):
        gid = guresid("seen")
        self.put(gid, cluster_input())
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "dns")
        doc = pacemaker.document()
        pacemaker.condition_of(doc["status"]["nodes"][1], "Online")["status"] = "False"
        self.observe(cluster, doc)
        query = "output=summary&type=cluster&app=pacemaker"
        agent = query + "&resource=master-1_redfish"
        self.assertEqual(self.status(gid, query)["cluster-status"], {"NotPresent": 3, "Present": 5})
        self.assertEqual(self.status(gid, query + "&resource=master-1")["cluster-status"],
                         {"NotPresent": 1})
        self.assertEqual(self.status(gid, agent)["cluster-status"], {"Present": 1})
        for type_ in ("Active", "Started"):
            doc["status"]["lastUpdated"] = pacemaker.time_at()
            unit = doc["status"]["nodes"][1]["fencingAgents"][0]
            pacemaker.condition_of(unit, type_)["status"] = "False"
            self.observe(cluster, doc)
            self.assertEqual(self.status(gid, agent)["cluster-status"], {"NotPresent": 1})
            pacemaker.condition_of(unit, type_)["status"] = "True"
        other = guresid("stale")
        self.put(other, cluster_input())
        cluster = self.fleet.cluster_of(other)
        self.observe(cluster, pacemaker.document(updated=pacemaker.time_at(-3600)))
        self.assertEqual(self.status(other, query)["cluster-status"], {"Unknown": 8})


if __name__ == "__main__":
    unittest.main()
