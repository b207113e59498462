"""PacemakerCluster documents over the wire: both ways in, the verdict's way to Ready and to the
driver's answer, staleness, events, restarts.
"""
import copy
import time
import unittest

import pacemaker
from lib import (BASE, Case, Client, Server, cluster_input, conditions_of, eventually, guresid,
                 in_time, report_body, RESOURCE_ID)
from pacemaker import (HEALTHY, condition_of, conditions, document, earlier, lost_fencing,
                       time_at)

ROOT = "data.pacemakerCluster."
NO_FENCING = "master-0 node is unhealthy: fencing unavailable (no agents running)"
_names = iter(range(1, 10**9))


class PacemakerCase(Case):
    FLAGS = ("--adapters-pacemaker", "pacemaker,second")
    ADAPTERS = ("dns",)
    POOL_ADAPTERS = ("np",)

    def cluster(self, ready=True):
        answer = self.client.post(BASE + "/clusters", {
            "kind": "Cluster", "name": "pace%d" % (next(_names) + 100), "spec": {}})
        self.assertEqual(answer.status, 201)
        if ready:
            self.fleet.make_ready(answer.json)
        return answer.json

    def send(self, cluster, doc, adapter="pacemaker", generation=1, **kw):
        data = dict(kw.pop("data", {}), pacemakerCluster=doc)
        return self.client.post(cluster["href"] + "/statuses",
                                report_body(adapter, generation, data=data, **kw))

    def sent(self, cluster, doc, **kw):
        answer = self.send(cluster, doc, **kw)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json

    def put_status(self, cluster, doc, want=200):
        answer = self.client.put(cluster["href"] + "/pacemaker/status", doc)
        self.assertEqual(answer.status, want, answer.body)
        return answer.json

    def nearly_stale(self, offset_s):
        """A cluster that is ready, with a document of that age: it counts for 300 s."""
        cluster, updated = self.cluster(), time_at(offset_s)
        self.sent(cluster, document(updated=updated))
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        return cluster

    def document_of(self, cluster):
        """The stored document without the verdict on it."""
        answer = self.client.get(cluster["href"] + "/pacemaker")
        self.assertEqual(answer.status, 200)
        return {k: v for k, v in answer.json.items() if k != "health"}

    def health(self, cluster):
        return self.client.get(cluster["href"] + "/pacemaker").json["health"]

    def seen(self, cluster):
        """{condition type: (status, reason)} of a cluster."""
        return {t: (c["status"], c.get("reason"))
                for t, c in conditions_of(self.fleet.get(cluster)).items()}

    def events(self, cluster):
        answer = self.client.get(cluster["href"] + "/events?pageSize=500")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json["total"], len(answer.json["items"]))
        return answer.json["items"]

    def reasons(self, cluster):
        return [(e["reason"], e["count"]) for e in self.events(cluster)]


# Edits that break a rule: rule, field, edit. Every row goes through both doors.
def _set(path, value):
    def edit(doc):
        *way, last = path
        for key in way:
            doc = doc[key]
        if value is None:
            del doc[last]
        else:
            doc[last] = value
    return edit


NODE0 = ("status", "nodes", 0)
ADDRESS = NODE0 + ("addresses", 0, "address")
FAULTS = [
    ("R1", "metadata.name", _set(("metadata", "name"), "wrong-name")),
    ("R22", "kind", _set(("kind",), "Pacemaker")),
    ("R22", "apiVersion", _set(("apiVersion",), None)),
    ("R5", "status.conditions", _set(("status", "conditions"),
                                     conditions(pacemaker.CLUSTER + list("abcdef")))),
    ("R5", "status.conditions[3]", _set(("status", "conditions"),
                                        conditions(pacemaker.CLUSTER + ["Healthy"]))),
    ("R6", "status.conditions", _set(("status", "conditions", 0, "type"), "Extra")),
    ("R7", "status.lastUpdated", _set(("status", "lastUpdated"), None)),
    ("R7", "status.lastUpdated", _set(("status", "lastUpdated"), "yesterday")),
    ("R7", "status.lastUpdated", _set(("status", "lastUpdated"), 17)),
    ("R8", "status.nodes", _set(("status", "nodes"), None)),
    ("R8", "status.nodes", _set(("status", "nodes"), [pacemaker.node(i) for i in range(6)])),
    ("R8", "status.nodes[1]", _set(("status", "nodes", 1, "nodeName"), "master-0")),
    ("R9", "status.nodes[0].nodeName", _set(NODE0 + ("nodeName",), "Master-0")),
    ("R10", "status.nodes[0].addresses", _set(NODE0 + ("addresses",), [])),
    ("R11", "status.nodes[0].addresses[0].type", _set(NODE0 + ("addresses", 0, "type"),
                                                      "ExternalIP")),
    ("R12", "status.nodes[0].addresses[0].address", _set(ADDRESS, "127.0.0.1")),
    ("R12", "status.nodes[0].addresses[0].address", _set(ADDRESS, "2001:0db8::1")),
    ("R12", "status.nodes[0].addresses[0].address", _set(ADDRESS, "::1.2.3.4")),
    ("R12", "status.nodes[0].addresses[0].address", _set(ADDRESS, "::ffff:10.0.0.1")),
    ("R13", "status.nodes[0].conditions", _set(NODE0 + ("conditions", 7, "type"), "Extra")),
    ("R14", "status.nodes[0].resources[2]", _set(NODE0 + ("resources",), [
        {"name": n, "conditions": conditions(pacemaker.UNIT)}
        for n in ("Kubelet", "Etcd", "Kubelet")])),
    ("R15", "status.nodes[0].resources[2].name", _set(NODE0 + ("resources",), [
        {"name": n, "conditions": conditions(pacemaker.UNIT)}
        for n in ("Kubelet", "Etcd", "FencingAgent")])),
    ("R16", "status.nodes[0].resources[0].conditions",
     _set(NODE0 + ("resources", 0, "conditions", 3, "type"), "Extra")),
    ("R17", "status.nodes[0].fencingAgents", _set(NODE0 + ("fencingAgents",), [])),
    ("R17", "status.nodes[0].fencingAgents[1]", _set(NODE0 + ("fencingAgents",),
                                                     [pacemaker.agent("a")] * 2)),
    ("R18", "status.nodes[0].fencingAgents[0].name", _set(NODE0 + ("fencingAgents", 0, "name"),
                                                          "\u00e9")),
    ("R19", "status.nodes[0].fencingAgents[0].method",
     _set(NODE0 + ("fencingAgents", 0, "method"), "SBD")),
    ("R20", "status.nodes[0].fencingAgents[0].conditions",
     _set(NODE0 + ("fencingAgents", 0, "conditions", 3, "type"), "Extra")),
    ("R21", "status.nodes[0].conditions[2].status", _set(NODE0 + ("conditions", 2, "status"),
                                                         "Maybe")),
    ("R21", "status.nodes[0].conditions[2].reason", _set(NODE0 + ("conditions", 2, "reason"), "")),
]
ACCEPTED = [
    _set(("apiVersion",), "etcd.openshift.io/v1"),
    _set(("status", "nodes"), []),
    _set(("status", "nodes"), [pacemaker.node(i) for i in range(5)]),
    _set(ADDRESS, "2001:db8::1"),
    _set(ADDRESS, "::102:304"),
    _set(NODE0 + ("nodeName",), "10.0.0.1"),
    _set(NODE0 + ("fencingAgents", 0, "method"), "IPMI"),
    _set(NODE0 + ("conditions", 2, "reason"), "SomethingNew"),
    _set(NODE0 + ("conditions", 2, "status"), "Unknown"),
]


class Rules(PacemakerCase):
    def problem(self, answer):
        self.assertEqual(answer.status, 400, answer.body)
        self.assertEqual(answer.header("Content-Type"), "application/problem+json")
        return [(e["rule"], e["field"]) for e in answer.json["errors"]]

    # A document that breaks a rule is refused with it through both doors, and nothing is stored.
    def test_every_rule_refuses(self):
        cluster = self.cluster()
        self.sent(cluster, document())
        stored = self.document_of(cluster)
        statuses = self.client.get(cluster["href"] + "/statuses").body
        for rule, field, edit in FAULTS:
            doc = document()
            edit(doc)
            self.assertEqual(self.problem(self.send(cluster, doc)), [(rule, ROOT + field)])
            answer = self.client.put(cluster["href"] + "/pacemaker/status", doc)
            self.assertEqual(self.problem(answer), [(rule, field)])
            self.assertEqual(self.document_of(cluster), stored)
        self.assertEqual(self.client.get(cluster["href"] + "/statuses").body, statuses)

    # All violations are listed, in the order of the document; more than any other list has.
    def test_every_violation_is_listed(self):
        cluster = self.cluster()
        doc = document(5)
        want = []
        for i, node in enumerate(doc["status"]["nodes"]):
            for k in range(9):
                node["conditions"][k]["reason"] = "9x"
                want.append(("R21", "%sstatus.nodes[%d].conditions[%d].reason" % (ROOT, i, k)))
        answer = self.send(cluster, doc)
        self.assertEqual(self.problem(answer), want)
        self.assertIn("(and 44 more)", answer.json["detail"])
        self.assertEqual(self.client.get(cluster["href"] + "/pacemaker").status, 404)

    def test_what_is_accepted(self):
        for edit in ACCEPTED:
            cluster = self.cluster()
            doc = document()
            edit(doc)
            self.sent(cluster, doc)
            self.assertEqual(self.document_of(cluster), doc)

    # Fields that the rules do not know are dropped.
    def test_unknown_fields_are_dropped(self):
        cluster = self.cluster()
        doc = document()
        more = copy.deepcopy(doc)
        more["status"]["alertAgents"] = [{"name": 7}]
        more["status"]["nodes"][0]["lastFenceEvent"] = {"at": "x"}
        more["metadata"]["resourceVersion"] = "17"
        self.sent(cluster, more, data={"mine": 1})
        self.assertEqual(self.document_of(cluster), doc)
        data = self.client.get(cluster["href"] + "/statuses").json["items"][1]["data"]
        self.assertEqual(data, {"mine": 1, "pacemakerCluster": doc})

    # The largest document that the rules allow fits; one with too much text is refused as such.
    def test_the_largest_document(self):
        cluster = self.cluster()
        doc = document(5)
        extra = ["Extra%d" % i for i in range(16)]
        for node in doc["status"]["nodes"]:
            node["conditions"] = conditions((pacemaker.NODE + extra)[:16])
            node["fencingAgents"] = [pacemaker.agent("a%d" % i) for i in range(8)]
            for unit in node["resources"] + node["fencingAgents"]:
                unit["conditions"] = conditions((pacemaker.UNIT + extra)[:16])
        self.sent(cluster, doc)
        self.assertEqual(self.document_of(cluster), doc)
        doc["status"]["lastUpdated"] = pacemaker.time_at()
        for c in doc["status"]["nodes"][0]["conditions"]:
            c["message"] = "x" * 32768
        answer = self.send(cluster, doc)
        self.assertEqual(answer.status, 413, answer.body)

    def test_a_nodepool_has_no_document(self):
        cluster = self.cluster()
        pool = self.client.post(cluster["href"] + "/nodepools",
                                {"kind": "NodePool", "name": "pool-a", "spec": {}}).json
        answer = self.send(pool, document())
        self.assertEqual(answer.status, 400)
        self.assertIn("not to a nodepool", answer.json["detail"])
        self.assertEqual(self.fleet.report(pool, "pacemaker").status, 201)

    # An adapter that the setting does not name may have anything in its data.
    def test_another_adapter_is_not_looked_at(self):
        cluster = self.cluster()
        self.assertEqual(self.send(cluster, {"kind": 7}, adapter="dns").status, 201)
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertNotIn("PacemakerHealthCheckDegraded", self.seen(cluster))


class Time(PacemakerCase):
    # Earlier is 409, and the stored document stays. Equal with other content is stored.
    def test_last_updated_never_goes_back(self):
        cluster = self.cluster()
        doc = document()
        self.sent(cluster, doc)
        for door in (lambda d: self.send(cluster, d),
                     lambda d: self.client.put(cluster["href"] + "/pacemaker/status", d)):
            old = lost_fencing(doc)
            old["status"]["lastUpdated"] = earlier(doc["status"]["lastUpdated"], 1)
            answer = door(old)
            self.assertEqual(answer.status, 409, answer.body)
            self.assertIn("earlier timestamp", answer.json["detail"])
            self.assertEqual(self.document_of(cluster), doc)
            same = lost_fencing(doc)
            self.assertIn(door(same).status, (200, 201))
            self.assertEqual(self.document_of(cluster), same)
            self.assertEqual(self.seen(cluster)["Ready"][0], "False")
            self.assertIn(door(doc).status, (200, 201))
            self.assertEqual(self.seen(cluster)["Ready"][0], "True")

    # A time more than 5 minutes ahead is 400 and stores nothing; a true one is taken afterwards.
    def test_last_updated_in_the_future(self):
        cluster = self.cluster()
        self.assertEqual(self.client.post(cluster["href"] + "/pacemaker", document(
            updated=time_at(86400))).status, 201)
        for field, door in (
            (ROOT, lambda d: self.send(cluster, d)),
            ("", lambda d: self.client.put(cluster["href"] + "/pacemaker/status", d)),
        ):
            answer = door(document(updated=time_at(310)))
            self.assertEqual(answer.status, 400, answer.body)
            self.assertEqual([e["field"] for e in answer.json["errors"]],
                             [field + "status.lastUpdated"])
            self.assertIn("5 minutes ahead", answer.json["detail"])
        self.assertNotIn("status", self.client.get(cluster["href"] + "/pacemaker").json)
        self.put_status(cluster, document(updated=time_at(280)))
        self.assertEqual(self.health(cluster)["overall"], "Healthy")

    # A report that repeats a document repeats no event.
    def test_a_repeated_document_is_no_news(self):
        cluster = self.cluster()
        doc = lost_fencing(document())
        for _ in range(3):
            self.sent(cluster, doc)
        self.fleet.accepted(cluster, "pacemaker")
        self.assertEqual(self.reasons(cluster), [("PacemakerNodeUnhealthy", 1)])

    # Instants are compared, not texts.
    def test_offsets(self):
        cluster = self.cluster()
        self.sent(cluster, document(updated="2025-01-01T08:30:00Z"))
        self.assertEqual(self.send(cluster, document(updated="2025-01-01T10:00:00+02:00")).status,
                         409)
        self.sent(cluster, document(updated="2025-01-01T10:30:00+02:00"))
        self.assertEqual(self.document_of(cluster)["status"]["lastUpdated"],
                         "2025-01-01T10:30:00+02:00")
        self.sent(cluster, document(updated="2025-01-01T10:30:01+02:00"))

    # A document that is not renewed takes Ready and Available down; the next one brings them back.
    def test_staleness(self):
        cluster = in_time(5, lambda: self.nearly_stale(-295))
        time.sleep(5.0)  # the document ages; a read sees it at once
        self.assertEqual((self.health(cluster)["overall"], self.health(cluster)["stale"]),
                         ("Unknown", True))
        eventually(lambda: self.seen(cluster)["Ready"][0] == "False", "the stale document counts")
        seen = self.seen(cluster)
        self.assertEqual(seen["Available"], ("False", "AdapterReportedNotAvailable"))
        self.assertEqual(seen["PacemakerSuccessful"], ("False", "PacemakerStatusStale"))
        self.assertEqual(seen["PacemakerHealthCheckDegraded"], ("True", "PacemakerStatusStale"))
        self.assertEqual(self.reasons(cluster), [("PacemakerHealthy", 1),
                                                 ("PacemakerStatusStale", 1)])
        self.put_status(cluster, document())
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertEqual(self.reasons(cluster), [("PacemakerHealthy", 2),
                                                 ("PacemakerStatusStale", 1)])

    # Before a first verdict a stale document decides nothing.
    def test_stale_from_the_beginning(self):
        cluster = self.cluster()
        before = conditions_of(self.fleet.get(cluster))["LastKnownReconciled"]
        self.sent(cluster, document(updated=time_at(-3600)))
        self.assertEqual(conditions_of(self.fleet.get(cluster))["LastKnownReconciled"], before)
        self.assertEqual(self.health(cluster)["overall"], "Unknown")
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertNotIn("PacemakerSuccessful", self.seen(cluster))
        self.assertEqual(self.reasons(cluster), [("PacemakerStatusStale", 1)])


class Subresource(PacemakerCase):
    # As the status sub-resource of Kubernetes: each request writes its part.
    def test_create_main_and_status(self):
        cluster = self.cluster()
        path = cluster["href"] + "/pacemaker"
        bare = {k: v for k, v in document().items() if k != "status"}
        self.assertEqual(self.client.get(path).status, 404)
        self.assertEqual(self.client.put(path, bare).status, 404)
        self.assertEqual(self.client.put(path + "/status", document()).status, 404)
        self.assertEqual(self.client.delete(path).status, 404)
        broken = dict(document(), status={"conditions": 7})
        answer = self.client.post(path, broken)
        self.assertEqual((answer.status, answer.json), (201, bare))
        self.assertEqual(self.client.post(path, bare).status, 409)
        seen = self.client.get(path).json
        self.assertEqual(seen["health"]["overall"], "Unknown")
        self.assertNotIn("status", seen)
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertNotIn("PacemakerHealthCheckDegraded", self.seen(cluster))
        self.assertEqual(self.reasons(cluster), [])
        self.assertEqual(self.client.get(path + "/status").json, seen)

        doc = document()
        labelled = copy.deepcopy(doc)
        labelled["metadata"]["labels"] = {"a": "b"}
        self.assertEqual(self.put_status(cluster, labelled), doc)
        self.assertEqual(self.health(cluster)["overall"], "Healthy")
        answer = self.client.put(path, dict(labelled, status={"nodes": 7}))
        self.assertEqual((answer.status, answer.json), (200, labelled))
        self.assertEqual(self.document_of(cluster), labelled)
        answer = self.client.put(path + "/status", bare)
        self.assertEqual(answer.status, 400)
        self.assertIn("status may not be removed once set", answer.json["detail"])
        self.assertEqual(self.send(cluster, bare).status, 400)
        self.assertEqual(self.document_of(cluster), labelled)

    # One record: what one door writes, the other shows.
    def test_one_record(self):
        cluster = self.cluster()
        first = document()
        self.sent(cluster, first, data={"mine": 1})
        self.assertEqual(self.document_of(cluster), first)
        second = document()
        self.put_status(cluster, second)
        reports = {r["adapter"]: r for r in
                   self.client.get(cluster["href"] + "/statuses").json["items"]}
        self.assertEqual(reports["pacemaker"]["data"], {"mine": 1, "pacemakerCluster": second})
        self.assertEqual(self.fleet.report(cluster, "pacemaker", available=False).status, 201)
        self.assertEqual(self.document_of(cluster), second)
        self.assertEqual(self.seen(cluster)["PacemakerSuccessful"][0], "True")

    # Without the document its adapter is no longer waited for.
    def test_removal(self):
        cluster = self.cluster()
        self.sent(cluster, lost_fencing(document()))
        all_ready = ("Ready", "Available", "Reconciled", "LastKnownReconciled", "DnsSuccessful")
        seen = self.seen(cluster)
        self.assertEqual([seen[t][0] for t in all_ready], ["False"] * 4 + ["True"])
        self.assertEqual(self.client.delete(cluster["href"] + "/pacemaker").status, 204)
        seen = self.seen(cluster)
        self.assertEqual({t: s for t, (s, _) in seen.items()}, {t: "True" for t in all_ready})
        self.assertEqual(self.reasons(cluster)[-1], ("PacemakerCRNotFound", 1))
        self.assertEqual(self.client.delete(cluster["href"] + "/pacemaker").status, 404)

    # The first adapter of the list speaks; the others report.
    def test_the_first_of_the_list_speaks(self):
        cluster = self.cluster()
        self.sent(cluster, lost_fencing(document()), adapter="second")
        self.assertEqual(self.client.get(cluster["href"] + "/pacemaker").status, 404)
        self.assertEqual(self.seen(cluster)["SecondSuccessful"], ("False", "PacemakerUnhealthy"))
        self.assertEqual(self.seen(cluster)["Ready"][0], "False")
        self.sent(cluster, document())
        self.assertEqual(self.seen(cluster)["PacemakerHealthCheckDegraded"][0], "True")
        self.assertEqual(self.seen(cluster)["Ready"][0], "False")


class Verdict(PacemakerCase):
    # PUT, reports, ready; fencing is lost, and the answer says so; it comes back; DELETE.
    def test_the_way_to_the_drivers_answer(self):
        gid = guresid("pm")
        self.assertEqual(self.put(gid, cluster_input()).status, 202)
        self.fleet.ready(gid)
        cluster = self.fleet.cluster_of(gid)
        doc = document()
        self.sent(cluster, doc)
        answer = self.get(gid)
        self.assertEqual((answer.status, answer.json["resource"]["values"]["health"]),
                         (200, "Healthy"))
        self.sent(cluster, lost_fencing(document()))
        seen = self.seen(cluster)
        self.assertEqual((seen["Ready"][0], seen["Available"][0]), ("False", "False"))
        values = self.get(gid).json["resource"]["values"]
        self.assertEqual((values["health"], values["health_reason"]),
                         ("Degraded", "PacemakerUnhealthy"))
        self.assertIn(NO_FENCING, values["health_message"])
        degraded = conditions_of(self.fleet.get(cluster))["PacemakerHealthCheckDegraded"]
        self.assertEqual((degraded["status"], degraded["reason"], degraded["message"]),
                         ("True", "PacemakerUnhealthy", NO_FENCING))
        self.sent(cluster, document())
        values = self.get(gid).json["resource"]["values"]
        self.assertEqual(values["health"], "Healthy")
        self.assertEqual(self.reasons(cluster), [("PacemakerHealthy", 2),
                                                 ("PacemakerNodeUnhealthy", 1)])
        self.assertEqual(self.delete(gid).status, 202)
        self.fleet.finish_delete(gid)
        self.assertEqual(self.delete(gid).status, 204)
        self.assertEqual(self.client.get(cluster["href"] + "/events").status, 404)

    # A warning is an event, and changes nothing else. Its end is an event, too.
    def test_warning(self):
        cluster = self.cluster()
        doc = document()
        node = doc["status"]["nodes"][0]
        node["fencingAgents"].append(pacemaker.agent("master-0_ipmi"))
        for type_ in ("Healthy", "Started"):
            condition_of(node["fencingAgents"][0], type_)["status"] = "False"
        condition_of(node, "FencingHealthy")["status"] = "False"
        for _ in range(3):
            doc["status"]["lastUpdated"] = time_at()
            self.sent(cluster, doc)
        self.assertEqual(self.health(cluster)["overall"], "Warning")
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertEqual(self.reasons(cluster), [("PacemakerWarning", 3), ("PacemakerHealthy", 1)])
        self.sent(cluster, document())
        self.assertEqual(self.reasons(cluster)[2:], [("PacemakerWarningsCleared", 1)])
        first = self.events(cluster)[0]
        self.assertEqual((first["type"], first["message"]), (
            "Warning", "Pacemaker warning: master-0: fencing at risk (agent running but not "
                       "managed for recovery)"))
        self.assertLess(first["first_time"], first["last_time"])
        self.assertEqual(self.events(cluster)[1]["message"], HEALTHY)

    # A reported Healthy counts when it is the worse one: of an agent, of the cluster.
    def test_reported_healthy(self):
        cluster = self.cluster()
        doc = document()
        agent = doc["status"]["nodes"][0]["fencingAgents"][0]
        condition_of(agent, "Healthy")["status"] = "False"
        self.sent(cluster, doc)
        self.assertEqual(self.health(cluster)["errors"], [NO_FENCING])
        self.assertEqual(self.seen(cluster)["Ready"], ("False", "MissingRequiredAdapters"))
        doc = document()
        whole = condition_of(doc["status"], "Healthy")
        whole["status"], whole["message"] = "False", "quorum is at risk"
        self.put_status(cluster, doc)
        health = self.health(cluster)
        self.assertEqual((health["overall"], health["errors"]),
                         ("Error", ["Cluster is unhealthy: quorum is at risk"]))
        self.assertEqual(self.reasons(cluster)[-2], ("PacemakerClusterUnhealthy", 1))

    # Reported aggregates that differ from their parts are an event, and the worse counts.
    def test_mismatch(self):
        cluster = self.cluster()
        doc = document()
        condition_of(doc["status"]["nodes"][1]["resources"][1], "Operational")["status"] = "False"
        self.sent(cluster, doc)
        health = self.health(cluster)
        self.assertEqual((health["overall"], health["errors"]),
                         ("Error", ["master-1 node is unhealthy: Etcd has failed"]))
        self.assertFalse(health["derived"]["nodes"][1]["Healthy"])
        self.assertTrue(health["derived"]["nodes"][0]["Healthy"])
        self.assertEqual([r for r, _ in self.reasons(cluster)],
                         ["PacemakerNodeUnhealthy", "AggregateMismatch"])

    # The adapter is waited for at a new generation, and not while the cluster is being deleted.
    def test_generations(self):
        cluster = self.cluster()
        self.sent(cluster, document())
        patched = self.client.patch(cluster["href"], {"spec": {"a": 1}}).json
        self.assertIn("pacemaker", conditions_of(patched)["Ready"]["message"])
        self.fleet.make_ready(cluster)
        self.assertEqual(self.seen(cluster)["Ready"][0], "False")
        self.put_status(cluster, document())
        self.assertEqual(self.seen(cluster)["Ready"][0], "True")
        self.assertEqual(self.client.delete(cluster["href"]).status, 202)
        self.fleet.finalize(cluster)
        self.assertEqual(self.client.get(cluster["href"]).status, 404)

    # A cluster is searched by the verdict as by any condition.
    def test_search(self):
        cluster = self.cluster()
        self.sent(cluster, lost_fencing(document()))
        found = self.client.get(BASE + "/clusters?search=status.conditions."
                                "PacemakerHealthCheckDegraded%3D%27True%27").json
        self.assertIn(cluster["id"], [c["id"] for c in found["items"]])


class Restart(PacemakerCase):
    # The answers are the same bytes before and after.
    def test_a_restart_changes_nothing(self):
        clusters = [self.cluster(), self.cluster(), self.cluster()]
        self.sent(clusters[0], document())
        self.sent(clusters[1], lost_fencing(document()))
        self.client.post(clusters[2]["href"] + "/pacemaker", document())
        paths = [c["href"] + p for c in clusters
                 for p in ("", "/statuses", "/pacemaker", "/events")]
        before = [self.client.get(p).body for p in paths]
        self.server.kill9()
        self.server.start()
        self.client.close()
        self.client = Client(self.server)
        self.addCleanup(self.client.close)
        self.assertEqual([self.client.get(p).body for p in paths], before)

    # Staleness that passed while the server was down counts as soon as it is up.
    def test_stale_while_down(self):
        cluster = in_time(1.5, lambda: self.nearly_stale(-298.5))
        self.server.kill9()
        time.sleep(2)  # the document ages while no server runs
        self.server.start()
        self.client.close()
        self.client = Client(self.server)
        self.addCleanup(self.client.close)
        self.fleet.client = self.client
        # On PostgreSQL the killed server's lease ends first.
        eventually(lambda: self.seen(cluster)["Ready"][0] == "False", "the stale document counts")


class Settings(Case):
    # Without the setting there is no document, and data is not looked at.
    def test_an_empty_list(self):
        cluster = self.client.post(BASE + "/clusters", {"kind": "Cluster", "name": "plain",
                                                        "spec": {}}).json
        self.assertRegex(cluster["id"], RESOURCE_ID)
        for method, path, body in (("GET", "", None), ("POST", "", document()),
                                   ("PUT", "", document()), ("DELETE", "", None),
                                   ("PUT", "/status", document())):
            answer = self.client.request(method, cluster["href"] + "/pacemaker" + path, body)
            self.assertEqual(answer.status, 404)
            self.assertIn("adapters.pacemaker is empty", answer.json["detail"])
        self.assertEqual(self.client.post(cluster["href"] + "/statuses", report_body(
            "pacemaker", 1, data={"pacemakerCluster": 7})).status, 201)
        self.assertEqual(self.client.get(cluster["href"] + "/events").json["items"], [])

    # With a remote HyperFleet adapters report there.
    def test_a_remote_refuses_it(self):
        server = Server("--backend", "http://127.0.0.1:1/", "--adapters-pacemaker", "pacemaker")
        try:
            server.spawn()
            self.assertNotEqual(server.wait(), 0)
            self.assertIn("adapters-pacemaker: expected an empty list", server.tail())
        finally:
            server.close()


if __name__ == "__main__":
    unittest.main()
