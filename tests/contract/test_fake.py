"""Compares the scripted HyperFleet with the embedded one: the same calls, the same answers, in each
generation that agrees with ours.

Reasons, messages and their times are left out: HyperFleet is free to choose them. No call is made
where the decisions of driver/README.md depart from HyperFleet on purpose.
"""
import json
import re
import shutil
import ssl
import tempfile
import time
import unittest
import urllib.parse

import lib
from fleet_fake import BASE, FAULTS, Fake, make_certificates, tls_context
from fleet_tsl import Refused, compile_search

ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\b2[0-9A-Za-z]{26}\b"
    r"|\b2[0-9a-v]{31}\b")
REQUIRED = {"Cluster": ("validation", "dns"), "NodePool": ("validation",)}


class Ports:
    """The ports of a fake, in the form that lib.Client expects."""

    def __init__(self, port):
        self.port = self.ops_port = port


class Player:
    """Sends calls to one HyperFleet and writes down what a client can rely on."""

    def __init__(self, client, report_method):
        self.client, self.method = client, report_method
        self.names, self.seen = {}, []

    def token(self, m):
        return self.names.setdefault(m.group(0), "<id %d>" % (len(self.names) + 1))

    def plain(self, doc):
        if isinstance(doc, dict):
            conditions = doc.get("conditions")
            listed = isinstance(conditions, list) and conditions
            if listed and "observed_generation" in conditions[0]:
                return {"conditions": {c["type"]: [c["status"], c["observed_generation"]]
                                       for c in conditions}}
            words = ("timestamp", "trace_id", "title", "errors", "metadata")
            if doc.get("code") in ("HYPERFLEET-VAL-005", "HYPERFLEET-VAL-006"):
                words += ("detail",)
            return {k: "<time>" if k.endswith("_time") else self.plain(v)
                    for k, v in doc.items() if k not in words}
        if isinstance(doc, list):
            return [self.plain(v) for v in doc]
        return ID.sub(self.token, doc) if isinstance(doc, str) else doc

    def call(self, method, path, body=None, keep=True):
        answer = self.client.request(method, path if path.startswith(BASE) else BASE + path, body)
        kind = (answer.header("Content-Type") or "").split(";")[0] if answer.body else None
        doc = answer.json if answer.body and kind != "text/html" else None
        if keep:
            self.seen.append([method, ID.sub(self.token, urllib.parse.unquote(path)), answer.status,
                              kind, self.plain(doc)])
        return doc if doc is not None else {}

    def search(self, path, text, **more):
        return self.call("GET", "%s?%s" % (path, urllib.parse.urlencode(dict(search=text, **more))))

    def report(self, row, adapter, available="True", generation=None, at=None, more=(),
               leave_out=()):
        conditions = [{"type": t, "status": s, "reason": "R", "message": "m"} for t, s in
                      (("Available", available), ("Applied", "True"), ("Health", "True"))
                      + tuple(more) if t not in leave_out]
        return self.call(self.method, row["href"] + "/statuses", {
            "adapter": adapter,
            "observed_generation": row["generation"] if generation is None else generation,
            "observed_time": at or lib.now_text(), "conditions": conditions})


def common(p):
    """Calls that every generation answers as ours does."""
    make = lambda **kw: p.call("POST", "/clusters",
                               dict({"kind": "Cluster", "name": "one-cluster",
                                     "spec": {"region": "eu-1"},
                                     "labels": {"team": "blue", "order_id": "abc"}}, **kw))
    one = make()
    make()
    two = make(name="two-cluster", labels={"team": "blue"})
    for wrong in ({"name": "ab"}, {"name": "A-b-c"}, {"name": "x" * 54}, {"kind": "NodePool"},
                  {"spec": 5}, {"spec": None}, {"id": "x"},
                  {"labels": {"a": 1}}):
        make(**wrong)
    p.call("POST", "/clusters", {"name": "no-kind", "spec": {}})
    p.call("POST", "/clusters", {"kind": "Cluster", "spec": {}})
    p.call("POST", "/clusters", {"kind": "Cluster", "name": "no-spec"})
    p.call("GET", one["href"])
    p.call("GET", "/clusters/nosuch")
    pools = one["href"] + "/nodepools"
    pool = p.call("POST", pools,
                  {"kind": "NodePool", "name": "workers", "spec": {"replicas": 2},
                   "labels": {"order_id": "abc"}})
    p.call("POST", pools, {"kind": "NodePool", "name": "workers", "spec": {}})
    p.call("POST", two["href"] + "/nodepools", {"kind": "NodePool", "name": "workers", "spec": {}})
    p.call("POST", pools, {"kind": "NodePool", "name": "x" * 16, "spec": {}})
    p.call("POST", "/clusters/nosuch/nodepools",
           {"kind": "NodePool", "name": "workers", "spec": {}})
    p.call("GET", pool["href"])
    p.call("GET", "%s/nodepools/%s" % (two["href"], pool["id"]))
    for path in ("/clusters?size=100&pageSize=100", pools, "/nodepools", "/clusters?page=9"):
        p.call("GET", path)
    for text in ("labels.order_id='abc'",
                 "labels.order_id='abc' and labels.team='blue'", "name='two-cluster'",
                 "labels.team!='red'", "labels.nosuch!='red'", "not labels.team='red'",
                 "name='nosuch'", "labels.team='blue' or name='x'",
                 "(name='one-cluster' or name='two-cluster') and labels.team='blue'",
                 "generation>1", "name=", "name='x' and",
                 "status.conditions.Foo='True'", "status.conditions.Ready='Maybe'",
                 "not status.conditions.Ready='True'"):
        p.search("/clusters", text)
    p.search(pools, "labels.order_id='abc'")
    p.search("/nodepools", "owner_id='%s'" % one["id"])
    p.report(one, "validation")
    p.report(one, "validation", generation=7)
    p.report(one, "validation", at="2020-01-01T00:00:00Z") if p.lenient_times else None
    p.report(one, "dns", leave_out=("Health",))
    p.report({"href": BASE + "/clusters/nosuch", "generation": 1}, "dns")
    p.report(one, "dns", available="False")
    p.call("GET", one["href"])
    p.report(one, "dns")
    p.report(pool, "validation")
    p.report(one, "other")
    p.call("GET", one["href"] + "/statuses")
    p.call("GET", pool["href"])
    one = p.call("PATCH", one["href"], {"spec": {"region": "eu-2"}})
    p.call("PATCH", one["href"], {"spec": 7})
    p.call("PATCH", "/clusters/nosuch", {"spec": {}})
    p.report(one, "validation", generation=1)
    p.call("GET", one["href"])
    p.report(one, "validation")
    p.report(one, "validation", generation=1)
    p.report(one, "dns")
    p.call("GET", one["href"])
    p.report(one, "dns", available="False")
    p.call("GET", one["href"])
    p.report(one, "dns")
    return one, two, pool


def deleting(p):
    """Life beyond G2: PATCH of nodepools, DELETE, what is still told of what is being deleted, and
    its end.
    """
    one, two, pool = common(p)
    pool = p.call("PATCH", pool["href"], {"spec": {"replicas": 3}})
    p.call("PATCH", pool["href"], {"spec": {"replicas": 3}})
    p.call("PATCH", pool["href"], {})
    p.report(pool, "validation")
    p.call("DELETE", "/clusters/nosuch")
    p.call("DELETE", "%s/nodepools/%s" % (two["href"], pool["id"]))
    one = p.call("DELETE", one["href"])
    p.call("DELETE", one["href"])
    pool = p.call("GET", pool["href"])
    p.call("POST", one["href"] + "/nodepools", {"kind": "NodePool", "name": "more", "spec": {}})
    p.call("PATCH", one["href"], {"spec": {}})
    p.call("PATCH", pool["href"], {"spec": {}})
    p.search("/clusters", "name='one-cluster'")
    p.call("POST", "/clusters", {"kind": "Cluster", "name": "one-cluster", "spec": {}})
    p.search("/clusters", "name='one-cluster'")
    p.report(pool, "validation", "False", more=(("Finalized", "True"),))
    p.call("GET", pool["href"])
    p.report(one, "validation", "False", more=(("Finalized", "True"),))
    p.call("GET", one["href"])
    p.report(one, "dns", "False", more=(("Finalized", "True"),))
    p.call("GET", one["href"])
    p.call("DELETE", one["href"])
    p.call("POST", two["href"] + "/force-delete", {"reason": "stuck"})
    p.call("DELETE", two["href"])
    p.call("POST", two["href"] + "/force-delete", {"reason": "stuck"})
    p.call("GET", two["href"])
    p.call("GET", "/nodepools")


class Honest(unittest.TestCase):
    maxDiff = None

    def ours(self, vocabulary, method, script):
        with lib.Server("--adapters-required-cluster", "validation,dns",
                        "--adapters-required-nodepool", "validation",
                        "--fleet-conditions", vocabulary) as server:
            player = Player(lib.Client(server), method)
            player.lenient_times = method == "POST"
            script(player)
            player.client.close()
        return player.seen

    def fakes(self, generation, method, script):
        with Fake(generation, REQUIRED) as fake:
            player = Player(lib.Client(Ports(fake.player_port)), method)
            player.lenient_times = method == "POST"
            script(player)
            player.client.close()
        return player.seen

    def compare(self, ours, fakes):
        for o, f in zip(ours, fakes):
            self.assertEqual(json.dumps(f, indent=1, sort_keys=True),
                             json.dumps(o, indent=1, sort_keys=True), "%s %s" % (o[0], o[1]))
        self.assertEqual(len(ours), len(fakes))

    def test_g2_is_the_seed(self):
        """Generation G2 answers as our API with `fleet.conditions: ready` does."""
        self.compare(self.ours("ready", "POST", common), self.fakes("G2", "POST", common))

    def test_g3_with_its_life_cycle(self):
        """Generation G3 answers as our API with `fleet.conditions: reconciled`, deletion and all.
        """
        self.compare(self.ours("reconciled", "PUT", deleting), self.fakes("G3", "PUT", deleting))

    def test_what_g2_cannot(self):
        """501 for DELETE of a cluster, 405 for PATCH and DELETE of a nodepool and for PUT of a
        status, labels of a PATCH ignored.
        """
        with Fake("G2", REQUIRED) as fake:
            p = Player(lib.Client(Ports(fake.player_port)), "POST")
            one = p.call("POST", "/clusters",
                         {"kind": "Cluster", "name": "one", "spec": {"a": 1}, "labels": {"x": "1"}})
            pool = p.call("POST", one["href"] + "/nodepools",
                          {"kind": "NodePool", "name": "one", "spec": {}})
            self.assertRegex(one["id"], r"^2[0-9a-v]{31}$")
            for method, href in (("DELETE", one["href"]), ("DELETE", pool["href"]),
                                 ("PATCH", pool["href"]),
                                 ("PUT", one["href"] + "/statuses")):
                p.call(method, href, {"spec": {}})
            self.assertEqual([s[2] for s in p.seen[-4:]], [501, 405, 405, 405])
            self.assertEqual(p.seen[-4][4]["code"], "HYPERFLEET-INT-003")
            self.assertEqual(p.call("PATCH", one["href"], {"labels": {"x": "2"}})["labels"],
                             {"x": "1"})
            self.assertEqual(p.call("PATCH", one["href"], {"spec": {"a": 1}})["generation"], 2,
                             "an identical spec counts at the seed")
            p.client.close()

    def test_what_g31_refuses(self):
        """Paging out of range, labels that are no labels, unknown fields in a PATCH, old lists;
        NTF-000 for unknown routes; no kind.
        """
        with Fake("G3.1", REQUIRED) as fake:
            p = Player(lib.Client(Ports(fake.player_port)), "PUT")
            one = p.call("POST", "/clusters",
                         {"kind": "Cluster", "name": "one", "spec": {}, "labels": {"x": "1"}})
            wrong = [("GET", "/clusters?size=101", None), ("GET", "/clusters?size=0", None),
                     ("GET", "/clusters?page=0", None),
                     ("GET", "/clusters?size=x", None),
                     ("PATCH", one["href"], {"spec": {}, "kind": "Cluster"}),
                     ("POST", "/clusters",
                      {"kind": "Cluster", "name": "two", "spec": {},
                       "labels": {"x": "not a label!"}}),
                     ("GET", "/clusters?search=" + urllib.parse.quote("name in ('a')"), None),
                     ("GET", "/clusters?order=asc", None)]
            for method, path, body in wrong:
                p.call(method, path, body)
                self.assertEqual(p.seen[-1][2], 400, p.seen[-1])
            self.assertNotIn("kind", p.call("GET", "/clusters?pageSize=500&orderBy=nosuch"))
            self.assertEqual(p.call("GET", "/nowhere")["code"], "HYPERFLEET-NTF-000")
            self.assertEqual(p.call("GET", "/clusters/nosuch")["code"], "HYPERFLEET-NTF-001")
            p.client.close()

    def test_a_parent_waits_for_its_own_report(self):
        """As upstream: a cluster whose adapters finalized first goes with its next report, not with
        its last nodepool.
        """
        with Fake("G3", {"Cluster": ("validation",), "NodePool": ("validation",)}) as fake:
            p = Player(lib.Client(Ports(fake.player_port)), "PUT")
            one = p.call("POST", "/clusters", {"kind": "Cluster", "name": "one", "spec": {}})
            pool = p.call("POST", one["href"] + "/nodepools",
                          {"kind": "NodePool", "name": "one", "spec": {}})
            one = p.call("DELETE", one["href"])
            p.report(one, "validation", "False", more=(("Finalized", "True"),))
            p.report(dict(pool, generation=2), "validation", "False", more=(("Finalized", "True"),))
            self.assertEqual(p.call("GET", one["href"])["id"], one["id"])
            p.report(one, "validation", "False", more=(("Finalized", "True"),))
            self.assertEqual(p.call("GET", one["href"])["code"], "HYPERFLEET-NTF-001")
            p.client.close()


class Searches(unittest.TestCase):
    ROW = {"name": "n", "generation": 2, "labels": {"a": "1", "d": "2026-01-01"},
           "status": {"conditions": [{"type": "Ready", "status": "True",
                                      "observed_generation": 2}]}}

    def holds(self, text, version, apart=False):
        return compile_search(text, version, ("name", "generation"), apart)(self.ROW)

    def test_versions(self):
        """Lists, escapes, dates and double quotes differ between v0 and v6."""
        self.assertTrue(self.holds("labels.a in ('1', '2')", 0))
        self.assertTrue(self.holds("labels.a in ['1', '2']", 6))
        self.assertTrue(self.holds("labels.a=\"1\"", 6))
        self.assertTrue(self.holds("labels.d='2026-01-01'", 0))
        self.assertFalse(self.holds("labels.d='2026-01-01'", 6))
        for text, version in (("labels.a in ['1']", 0), ("labels.a in ('1')", 6),
                              ("labels.a=\"1\"", 0), ("name", 0), ("labels.A='1'", 0)):
            with self.assertRaises(Refused):
                self.holds(text, version)

    def test_or_with_conditions_is_broken_at_the_seed(self):
        """There a condition under OR is taken out and demanded."""
        text = "name='n' or status.conditions.Ready='False'"
        self.assertTrue(self.holds(text, 6))
        self.assertFalse(self.holds(text, 0, apart=True))


class Script(unittest.TestCase):
    """Faults, gates, certificates, and the fake's own adapters."""

    BODY = {"kind": "Cluster", "name": "one", "spec": {"a": "b" * 100}}

    def test_faults(self):
        """Each fault breaks the request it was armed for and no other, and is carried out before or
        not, as its table says.
        """
        for name, (done, action) in FAULTS.items():
            with self.subTest(name), Fake("G3") as fake:
                fake.deadline_s = 0.3
                client = lib.Client(Ports(fake.port), timeout_s=0.2 if action == "slow" else 5)
                self.assertEqual(client.get(BASE + "/clusters").status, 200)
                fake.arm(name, step="POST clusters", **({"size": 1000} if action == "huge" else {}))
                try:
                    answer = client.send_once("POST", BASE + "/clusters",
                                              json.dumps(self.BODY).encode())
                    self.assertNotIn(action, ("close", "reset", "cut", "slow"))
                    want = action[0] if isinstance(action, tuple) else action
                    self.assertEqual(answer.status, want if isinstance(want, int) else 201)
                except lib.http.client.HTTPException:
                    self.assertIn(action, ("close", "cut"))
                except OSError:
                    self.assertIn(action, ("reset", "slow"))
                client.close()
                self.assertEqual(len(fake.live("Cluster", None)), 1 if done else 0)
                self.assertEqual([r.fault for r in fake.requests()], [None, name])
                self.assertEqual(fake.disarm(), 1)
                self.assertEqual(client.get(BASE + "/clusters").status, 200)
                client.close()

    def test_nth(self):
        """The nth of a step, so many times."""
        with Fake("G3") as fake:
            client = lib.Client(Ports(fake.port))
            fake.arm("503", nth=2, step="GET clusters", times=2)
            statuses = [client.get(BASE + path).status
                        for path in ("/clusters", "/nodepools", "/clusters", "/clusters",
                                     "/clusters")]
            self.assertEqual(statuses, [200, 200, 503, 503, 200])
            client.close()

    def test_gate(self):
        """A gate holds the nth request until it is opened."""
        with Fake("G3") as fake:
            gate = fake.block(1, done_first=True)
            client = lib.Client(Ports(fake.port))
            client.conn = lib.http.client.HTTPConnection("127.0.0.1", fake.port, timeout=5)
            client.conn_port = fake.port
            client.conn.request("POST", BASE + "/clusters", json.dumps(self.BODY))
            self.assertTrue(gate.reached.wait(5))
            self.assertEqual(len(fake.live("Cluster", None)), 1)
            fake.unblock()
            self.assertEqual(client.conn.getresponse().status, 201)
            client.close()

    def test_tokens(self):
        """Without the right bearer token everything is 401."""
        with Fake("G3", tokens={"right"}) as fake:
            client = lib.Client(Ports(fake.port))
            self.assertEqual(client.get(BASE + "/clusters").status, 401)
            self.assertEqual(client.get(BASE + "/clusters",
                                        {"Authorization": "Bearer right"}).status, 200)
            client.close()

    def test_adapters(self):
        """With `auto_s` resources become ready, and go, by themselves."""
        with Fake("G3", REQUIRED, auto_s=0.05) as fake:
            p = Player(lib.Client(Ports(fake.port)), "PUT")
            one = p.call("POST", "/clusters", self.BODY)
            p.call("POST", one["href"] + "/nodepools",
                   {"kind": "NodePool", "name": "one", "spec": {}})
            ready = lambda: p.call("GET", one["href"],
                                   keep=False)["status"]["conditions"][0]["status"] == "True"
            lib.eventually(ready, "the cluster is ready")
            p.call("DELETE", one["href"])
            lib.eventually(lambda: p.call("GET", one["href"],
                                          keep=False).get("code") == "HYPERFLEET-NTF-001",
                                          "the cluster is gone")
            self.assertEqual(fake.rows, {})
            p.client.close()

    def test_skew(self):
        """Its clock may be wrong."""
        with Fake("G3", skew_s=-3600) as fake:
            client = lib.Client(Ports(fake.port))
            made = lib.parse_time(client.post(BASE + "/clusters", self.BODY).json["created_time"])
            self.assertGreater((lib.utc_now() - made).total_seconds(), 3500)
            client.close()

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl program")
    def test_tls(self):
        """TLS with a certificate of a CA made for the test; a client certificate where it is asked
        for.
        """
        folder = tempfile.mkdtemp(prefix="hfd-contract-tls-")
        try:
            make_certificates(folder)
            with Fake("G3", tls=tls_context(folder, client_ca="ca.pem")) as fake:
                ctx = ssl.create_default_context(cafile=folder + "/ca.pem")
                for cert in (False, True):
                    if cert:
                        ctx.load_cert_chain(folder + "/client.pem", folder + "/client.key")
                    conn = lib.http.client.HTTPSConnection("127.0.0.1", fake.port, timeout=5,
                                                           context=ctx)
                    try:
                        conn.request("GET", BASE + "/clusters")
                        self.assertEqual((conn.getresponse().status, cert), (200, True))
                    except OSError:
                        self.assertFalse(cert)
                    conn.close()
        finally:
            shutil.rmtree(folder)

    def test_down_and_up(self):
        """It can be away for a while and come back with what it knew, at the same port."""
        with Fake("G3") as fake:
            client = lib.Client(Ports(fake.port))
            client.post(BASE + "/clusters", self.BODY)
            fake.down()
            with self.assertRaises(OSError):
                client.request("GET", BASE + "/clusters")
            fake.up()
            self.assertEqual(client.get(BASE + "/clusters").json["total"], 1)
            client.close()


if __name__ == "__main__":
    unittest.main()
