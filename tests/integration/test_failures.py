"""The messages that an app developer reads when something fails, in a real run: the page errors.md
has them as its examples.

With --write, the examples are made again (./dev docs).
"""
import re
import sys
import time
import unittest

import pages
from lib import (BASE, COOKIE, Client, Fleet, Server, cluster_input, eventually, lose_rows,
                 nodepool_input)

PAGE = "handlers/docs/errors.md"
CANARY = "canary-7f3a-never-shown"
ADAPTERS = ["validation", "dns", "hypershift"]


def order(name="payments", **more):
    return cluster_input(name=name, spec={"region": "eu-1"},
                         nodepools=[{"name": "workers", "spec": {"replicas": 3}}],
                         secrets={"token": CANARY}, **more)


class TooSlow(Exception):
    """The deadline of a scene passed before its adapters had reported."""


class Scene:
    """One server, and the failures that are played on it."""

    def __init__(self, seconds=None):
        """seconds: the deadline of creations and deletions"""
        self.seconds = seconds
        flags = () if seconds is None else ("--driver-deadline-create", "%ds" % seconds,
                                            "--driver-deadline-delete", "%ds" % seconds)
        self.server = Server("--adapters-required-cluster", ",".join(ADAPTERS),
                             "--adapters-required-nodepool", "validation,hypershift",
                             "--driver-types-cluster", "hyperfleet-cluster,k8s-cluster",
                             "--driver-protect-labels", "environment=live", *flags)
        self.server.start()
        self.client = Client(self.server)
        self.fleet = Fleet(self.client, ADAPTERS, ["validation", "hypershift"])

    def close(self):
        self.client.close()
        self.server.close()

    def put(self, gid, body, **kw):
        return self.client.put("/" + gid, body, **kw)

    def made(self, gid, body):
        answer = self.put(gid, body)
        assert answer.status == 202, answer
        return self.fleet.of(gid)

    def late(self, gid, began):
        """Polls until the deadline has passed. All must have been reported before it."""
        if time.monotonic() - began > self.seconds:
            raise TooSlow
        return eventually(lambda: (lambda a: a if a.status == 400
                                   else None)(self.client.get("/" + gid)), "a deadline passes")

    # Each gives an answer with status 400, or 404.

    def a_field_is_wrong(self):
        return self.put("3c0a194814284345", order(name="My Cluster"))

    def the_name_is_taken(self):
        answer = self.client.post(BASE + "/clusters",
                                  {"kind": "Cluster", "name": "billing", "spec": {}})
        assert answer.status == 201, answer
        return self.put("3c0a194814284346", order(name="billing"))

    def a_resource_has_the_name(self):
        self.made("3c0a194814284353", cluster_input(name="shop", spec={}))
        return self.put("3c0a194814284354", cluster_input(name="shop", spec={}))

    def there_is_no_such_cluster(self):
        return self.put("7bd3966c9ff8eaa6",
                        nodepool_input(cluster_guresid="3c0a194814280000", name="gpu"))

    def the_cookie_is_not_ours(self):
        return self.put("3c0a194814284347", order(), headers={COOKIE: "bm90IGEgY29va2ll"})

    def an_adapter_gives_up(self):
        (cluster,), _ = self.made("3c0a194814284348", order(name="quota"))
        self.fleet.accepted(cluster, "hypershift", available=False, reason="QuotaExceeded",
                            message="12 of 24 cores are left in eu-1, 16 are needed",
                            data={"secrets": {"kubeconfig": CANARY}})
        return self.client.get("/3c0a194814284348")

    def a_nodepool_gives_up(self):
        (cluster,), (pool,) = self.made("3c0a194814284349", order(name="machines"))
        self.fleet.make_ready(cluster)
        self.fleet.accepted(pool, "validation", available=False, applied=False, reason="NotApplied",
                            applied_reason="UnsupportedPlatform",
                            message="there is no machine type 'm9.huge' in eu-1")
        return self.client.get("/3c0a194814284349")

    def it_was_removed_in_hyperfleet(self):
        (cluster,), _ = self.made("3c0a19481428434a", order(name="removed"))
        self.fleet.ready("3c0a19481428434a")
        assert self.client.delete(cluster["href"]).status == 202
        assert self.client.post(cluster["href"] + "/force-delete",
                                {"reason": "cleaning up"}).status == 204
        return self.client.get("/3c0a19481428434a")

    def the_name_cannot_change(self):
        self.made("3c0a19481428434b", order(name="first"))
        self.fleet.ready("3c0a19481428434b")
        return self.put("3c0a19481428434b", order(name="second"))

    def it_is_misspelt(self):
        return self.put("3c0a194814284350",
                        {"type": "hyperfleet-cluster",
                         "driver": {"values": {"clustr": {"name": "payments"},
                                               "nodepools": [{"name": "My Workers"}]}}})

    def outputs_are_missing(self):
        return self.put("3c0a194814284351", cluster_input(type_="k8s-cluster"))

    def there_is_no_resource(self):
        return self.client.get("/3c0a194814284352")

    def it_is_too_much(self):
        return self.put("3c0a19481428434c",
                        cluster_input(name="crowd",
                                      nodepools=[{"name": "np-%d" % i} for i in range(101)]))

    def it_is_protected(self):
        self.made("3c0a194814284355", order(name="precious", protect=True))
        return self.client.delete("/3c0a194814284355")

    def its_label_protects_it(self):
        self.made("3c0a194814284356", cluster_input(name="live", labels={"environment": "live"}))
        return self.client.delete("/3c0a194814284356")

    def it_has_another_name(self):
        assert self.put("3c0a19481428434d", order(name="old-payments")).status == 202
        lose_rows(self.server, "3c0a19481428434d")
        return self.put("3c0a19481428434d", order(name="new-payments"))

    def a_creation_is_late(self):
        began = time.monotonic()
        (cluster,), (pool,) = self.made("3c0a19481428434e", order(name="slow"))
        self.fleet.accepted(cluster, "validation")
        self.fleet.accepted(cluster, "dns", available=False, reason="WaitingForDelegation",
                            message="zone slow.example.com is not delegated yet")
        self.fleet.make_ready(pool)
        return self.late("3c0a19481428434e", began)

    def a_deletion_is_late(self):
        self.made("3c0a19481428434f", cluster_input(name="leaving", spec={}))
        began = time.monotonic()
        assert self.client.delete("/3c0a19481428434f").status == 202
        (cluster,), _ = self.fleet.of("3c0a19481428434f")
        for adapter in ("validation", "dns"):
            self.fleet.accepted(cluster, adapter, available=False, finalized=True)
        self.fleet.accepted(cluster, "hypershift", available=False, finalized=False,
                            reason="Deleting", message="2 of 3 machines are left")
        return self.late("3c0a19481428434f", began)


# Failures in the page's words, and their scenes. Behind None the deadlines are short.
FAILURES = [
    ("an input field is wrong", "a_field_is_wrong"),
    ("inputs are misspelt, two mistakes", "it_is_misspelt"),
    ("`k8s-cluster` is served, but not its outputs", "outputs_are_missing"),
    ("another cluster has the name", "the_name_is_taken"),
    ("another resource has the name", "a_resource_has_the_name"),
    ("a nodepool for a cluster that is not there", "there_is_no_such_cluster"),
    ("a cookie that is not the driver's", "the_cookie_is_not_ours"),
    ("an adapter gives up", "an_adapter_gives_up"),
    ("an adapter gives up on a nodepool", "a_nodepool_gives_up"),
    ("the cluster was removed in HyperFleet", "it_was_removed_in_hyperfleet"),
    ("a change that cannot be made in place", "the_name_cannot_change"),
    ("a cluster made before has another name", "it_has_another_name"),
    ("too much", "it_is_too_much"),
    ("a resource that is not there", "there_is_no_resource"),
    ("a protected resource is deleted", "it_is_protected"),
    ("a resource with a protected label is deleted", "its_label_protects_it"),
    None,
    ("a creation is not finished in time", "a_creation_is_late"),
    ("a deletion is not finished in time", "a_deletion_is_late"),
]


def play():
    """[(what happened, document)]"""
    at = FAILURES.index(None)
    told = scenes(FAILURES[:at])
    for seconds in (1, 5, 25):
        try:
            return told + scenes(FAILURES[at + 1:], seconds)
        except TooSlow:
            pass
    raise AssertionError("the adapters' reports took longer than %d s" % seconds)


def scenes(rows, seconds=None):
    """The same, of some rows on one server."""
    scene = Scene(seconds)
    try:
        told = []
        for what, name in rows:
            answer = getattr(scene, name)()
            assert answer.status in (400, 404), answer
            told.append((what, answer.json))
        return told
    finally:
        scene.close()


def tables(told):
    """{code: its examples as a table}"""
    found = {}
    for what, doc in told:
        head = "| what happened | what is read |\n|---|---|\n"
        message = doc["message"].replace("|", "\\|")
        found[doc["error"]] = found.get(doc["error"], head) + "| %s | %s: %s |\n" % (
            what, doc["error"], message)
    return found


def codes_of_the_program():
    """Every RES code that the sources have."""
    sources = pages.below("driver", ".c") + pages.below("handlers", ".c")
    return {code for name in sources for code in re.findall(r'"(RES-1\d\d)"', pages.read(name))}


def without_ids(text):
    return re.sub(r"\b2[0-9A-Za-z]{26}\b", "ID", text)


class Failures(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.told = play()

    def test_page_has_them(self):
        """The page's examples are what was just said, but for the ids that HyperFleet gives."""
        text = pages.read(PAGE)
        for code, table in tables(self.told).items():
            with self.subTest(code):
                self.assertEqual(without_ids(pages.block(text, code)), without_ids(table),
                                 pages.RENEW)
        self.assertEqual(set(re.findall(r"<!-- (RES-1..):begin", text)), set(tables(self.told)))

    def test_page_has_every_code(self):
        """Each code that the program may answer has a section, and no other has."""
        self.assertEqual(set(re.findall(r"^## (RES-1..)$", pages.read(PAGE), re.M)),
                         codes_of_the_program())

    def test_each_is_one_short_message(self):
        """At least ten; at most 500 characters each, one line, no secret; each of another wording.
        """
        self.assertGreaterEqual(len(self.told), 10)
        for what, doc in self.told:
            with self.subTest(what):
                self.assertLessEqual(len(doc["message"]), 500)
                self.assertRegex(doc["error"], r"^RES-1[0-9][0-9]$")
                self.assertNotRegex(doc["message"], r"[\x00-\x1f]")
                self.assertNotIn(CANARY, repr(doc))
        self.assertEqual(len({without_ids(doc["message"]) for _, doc in self.told}), len(self.told))

    def test_provisioning_failures_name_all(self):
        """A failure of provisioning names the GUResID, HyperFleet's id, and what to do."""
        for what, doc in self.told:
            if doc["error"] in ("RES-104", "RES-105"):
                with self.subTest(what):
                    self.assertRegex(doc["message"], r"\b3c0a1948142843[0-9a-f]{2}\b")
                    self.assertRegex(doc["message"], r"\b2[0-9A-Za-z]{26}\b")
                    self.assertRegex(doc["message"], r"(eploy again|delete again)")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        page = pages.read(PAGE)
        for name, new in tables(play()).items():
            if without_ids(pages.block(page, name)) != without_ids(new):
                page = pages.put(page, name, new)
        pages.write(PAGE, page)
        sys.exit(0)
    unittest.main()
