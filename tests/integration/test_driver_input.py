"""Inputs that a PUT accepts and refuses, the field that an error names, equal inputs, nodepool
differences, outputs and their secrets.
"""
import copy
import json
import unittest

from lib import BASE, Case, LABEL, cluster_input, condition, guresid, nodepool_input

MIB = 1024 * 1024


def edited(path, value, base=None):
    """A valid cluster input with one member set (value ... removes it)."""
    body = copy.deepcopy(base
                         or cluster_input(name="valid-name",
                                          nodepools=[{"name": "one", "spec": {}},
                                                     {"name": "two", "spec": {}}]))
    at = body
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return body


class Refused(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def refused(self, body, words, gid=None, code="RES-101"):
        """400 with the words in its message, and nothing was made."""
        gid = gid or guresid("bad")
        answer = self.expect(self.put(gid, body), 400)
        self.assertIn(answer.json["error"], (code,) if isinstance(code, str) else code)
        message = answer.json["message"]
        for word in words:
            self.assertIn(word, message)
        self.expect(self.get(gid), 404)
        return message

    def test_not_a_document(self):
        """Bodies that are no JSON object: RES-101, and nothing was made."""
        deep = 2000
        cases = {
            "empty": b"", "blank": b" \n", "not JSON": b"hello",
            "cut short": b'{"type": "hyperfleet-cluster"',
            "trailing": b'{"type":"a"} x',
            "array": b"[]", "string": b'"x"', "number": b"1", "null": b"null", "true": b"true",
            "single quotes": b"{'type': 'hyperfleet-cluster'}",
            "not UTF-8": b'{"type": "\xff\xfe"}',
            "lone surrogate": b'{"type": "\\ud800"}',
            "NaN": b'{"type": NaN}', "NUL": b'{"type": "hyperfleet-cluster"}\x00',
            "duplicate key": b'{"type": "hyperfleet-cluster",'
                             b' "type": "hyperfleet-cluster", "driver": {"values": {"cluster": '
                             b'{"spec": {}}}}}',
            "duplicate key "
            "below": b'{"type": "hyperfleet-cluster", "driver": {"values": {"cluster": {"spec": '
                     b'{"a": 1, "a": 2}}}}}',
            "too deep": b'{"type": "hyperfleet-cluster", "driver": {"values": {"cluster": {"spec": '
                        b'{"a":'
                        + b"[" * deep + b"]" * deep + b"}}}}}",
            "too deep, cut": b'{"a":' * deep,
        }
        for name, body in cases.items():
            with self.subTest(name):
                self.refused(body, [])

    def test_type(self):
        """A type that is not served, or none, is RES-101 and says what is served."""
        for value in (..., "", "postgres", 7, None, {}, ["hyperfleet-cluster"],
                      "Hyperfleet-Cluster", "/hyperfleet-cluster",
                      "org/", "hyperfleet-cluster/", "hyperfleet-cluster "):
            with self.subTest(repr(value)):
                self.refused(edited(["type"], value), ["type"])
        self.assertIn("hyperfleet-cluster",
                      self.refused(edited(["type"], "postgres"), ["postgres"]))

    def test_served_types(self):
        """Types match behind org/ and come back exactly as given."""
        for type_ in ("hyperfleet-cluster", "my-org/hyperfleet-cluster",
                      "humanitec/hyperfleet-cluster"):
            with self.subTest(type_):
                gid, _, _ = self.created(cluster_input(type_=type_))
                self.fleet.ready(gid)
                self.assertEqual(self.expect(self.get(gid), 200).json["type"], type_)

    def test_guresid(self):
        """The syntax of a label value, 1 to 63 characters. Anything else is RES-101 on a PUT, 404
        on a GET and 204 on a DELETE. A path that is wrong is 400.
        """
        for gid in ("a", "Z9", "A.b_c-9", "x" * 63, "3c0a194814284345e330544f88798e83992468e2"):
            with self.subTest(gid):
                self.expect(self.put(gid, cluster_input()), 202)
                self.assertEqual(self.fleet.cluster_of(gid)["labels"][LABEL], gid)
                self.expect(self.get(gid), 202)
                self.expect(self.delete(gid), 202)
        for gid in ("-a", "a-", ".a", "a.", "_a", "a_", "x" * 64, "x" * 500, "a%20b", "a%2Fb",
                    "%C3%A4", "%ff", "%0a", "a+b", "a:b", "a~b", "a%00", "a*"):
            for method in ("PUT", "GET", "DELETE"):
                with self.subTest(gid=gid, method=method):
                    answer = self.client.request(method, "/" + gid,
                                                 cluster_input() if method == "PUT" else None)
                    bad_path = gid in ("a%2Fb", "a%00")
                    self.checked(method, gid, answer)
                    self.assertEqual(answer.status, 400 if method == "PUT" or bad_path
                                     else {"GET": 404, "DELETE": 204}[method])
                    if answer.status == 204:
                        continue
                    self.check_error(answer.json, "RES-108" if answer.status == 404 else "RES-101")
                    self.assertRegex(answer.json["message"], "GUResID|path")

    def test_unknown_inputs(self):
        """Below driver.values a misspelt member is refused with the nearest name; the top level and
        resource are open. All mistakes are told: the first in the message, each in the details.
        """
        values = ["driver", "values"]
        for path, words in (
                (values + ["clustr"], "driver.values.clustr: no such input; did you mean cluster?"),
                (values + ["nodepolls"],
                 "driver.values.nodepolls: no such input; did you mean nodepools?"),
                (values + ["region"],
                 "driver.values.region: no such input; expected one of cluster, "
                 "nodepools, cluster_id, cluster_guresid, nodepool, protect"),
                (values + ["nodepool"],
                 "driver.values.nodepool: no such input of a cluster resource; "
                 "expected cluster and nodepools"),
                (values + ["cluster", "nme"],
                 "driver.values.cluster.nme: no such input; did you mean name?"),
                (values + ["nodepools", 1, "labls"],
                 "driver.values.nodepools[1].labls: no such input; did you mean labels?")):
            with self.subTest(path):
                gid = guresid("typo")
                answer = self.expect(self.put(gid, edited(path, {})), 400, "RES-101")
                self.assertEqual(answer.json["message"], "%s (resource %s)" % (words, gid))
                field, _, message = words.partition(": ")
                self.assertEqual(answer.json["details"],
                                 {"errors": [{"field": field, "message": message}]})
        wrong = edited(values + ["clustr"], {})
        wrong["driver"]["values"]["cluster"]["name"] = "My Cluster"
        wrong["driver"]["values"]["cluster"]["spce"] = {}
        wrong["driver"]["values"]["nodepools"][1]["name"] = "one"
        wrong["driver"]["secrets"] = 7
        gid = guresid("typos")
        doc = self.expect(self.put(gid, wrong), 400, "RES-101").json
        self.assertTrue(doc["message"].endswith("; and 4 more (resource %s)" % gid), doc["message"])
        self.assertEqual({e["field"] for e in doc["details"]["errors"]},
                         {"driver.secrets", "driver.values.clustr", "driver.values.cluster.name",
                          "driver.values.cluster.spce", "driver.values.nodepools[1].name"})
        first = doc["details"]["errors"][0]
        self.assertTrue(doc["message"].startswith("%(field)s: %(message)s; and" % first))
        many = edited(values + ["cluster"], {"x%02d" % i: 1 for i in range(40)})
        doc = self.expect(self.put(gid, many), 400, "RES-101").json
        self.assertEqual(len(doc["details"]["errors"]), 20)
        self.assertIn("; and at least 19 more", doc["message"])
        self.assertLessEqual(len(doc["message"]), 500)
        many = edited(values + ["cluster"], {"\u00e4" * 200 + "%d" % i: 1 for i in range(3)})
        self.assertLessEqual(len(self.expect(self.put(gid, many), 400,
                                             "RES-101").json["message"]), 500)
        self.expect(self.put(gid, dict(cluster_input(resource={"anything": 1}), id="x",
                                       context={"env": "dev"})), 202)

    def test_fields(self):
        """Each wrong field is named."""
        cluster = ["driver", "values", "cluster"]
        pools = ["driver", "values", "nodepools"]
        cases = [
            (["driver"], "x", ["driver"]), (["driver"], [], ["driver"]),
            (["driver", "values"], "x", ["values"]), (["driver", "values"], [1], ["values"]),
            (["driver", "secrets"], "x", ["secrets"]), (["driver", "secrets"], [], ["secrets"]),
            (["resource"], "x", ["resource"]), (["resource"], [], ["resource"]),
            (cluster, "x", ["cluster"]), (cluster, [], ["cluster"]), (cluster, 1, ["cluster"]),
            (cluster + ["spec"], "x", ["cluster", "spec"]),
            (cluster + ["spec"], [], ["cluster", "spec"]),
            (cluster + ["labels"], "x", ["cluster", "labels"]),
            (cluster + ["labels"], {"a": 1}, ["cluster", "labels", "a"]),
            (cluster + ["labels"], {"a": {}}, ["cluster", "labels", "a"]),
            (cluster + ["labels"], {"a": None}, ["cluster", "labels", "a"]),
            (pools, "x", ["nodepools"]), (pools, {}, ["nodepools"]), (pools, ["x"], ["nodepools"]),
            (pools, [[]], ["nodepools"]),
            (pools + [1, "name"], "one", ["nodepools", "one"]),
            (pools + [1, "spec"], 3, ["nodepools", "spec"]),
            (pools + [1, "labels"], {"k": 3}, ["nodepools", "labels", "k"]),
        ]
        for path, value, words in cases:
            with self.subTest(path=".".join(map(str, path)), value=value):
                self.refused(edited(path, value), words)

    def test_names(self):
        """Cluster names have 3 to 53 characters, nodepool names 3 to 15, of a-z 0-9 and inner
        hyphens.
        """
        for size, path in ((53, ["driver", "values", "cluster", "name"]),
                           (15, ["driver", "values", "nodepools", 1, "name"])):
            for name in ("ab", "x" * (size + 1), "UPPER", "a_b_c", "-abc", "abc-", "a.b.c", "a b c",
                         "\u00e4bc", 123, True, {}, ["abc"]):
                with self.subTest(path=path, name=name):
                    self.refused(edited(path, name),
                                 ["name", "cluster" if "cluster" in path else "nodepools"])
        for cluster, pool in (("abc", "abc"), ("x" * 53, "x" * 15), ("0-0", "9--9"),
                              ("a" + "-" * 51 + "b", "a" + "-" * 13 + "b")):
            with self.subTest(cluster=cluster, pool=pool):
                gid, _, _ = self.created(cluster_input(name=cluster, nodepools=[{"name": pool}]))
                clusters, pools = self.fleet.of(gid)
                self.assertEqual((clusters[0]["name"], pools[0]["name"]), (cluster, pool))
                self.removed(gid)

    def test_too_many_nodepools(self):
        """100 nodepools are the limit."""
        pools = [{"name": "np-%d" % i} for i in range(101)]
        self.refused(cluster_input(nodepools=pools), ["nodepools", "100"],
                     code=("RES-101", "RES-107"))

    def test_body_size(self):
        """Over 1 MiB is 413 with an error document; 1 MiB is served. With a length, and chunked."""
        def sized(size):
            body = json.dumps(cluster_input(spec={"fill": ""})).encode()
            return body.replace(b'"fill": ""', b'"fill": "' + b"x" * (size - len(body)) + b'"')
        gid = guresid("big")
        self.assertEqual(len(sized(MIB)), MIB)
        self.expect(self.put(gid, sized(MIB)), 202)
        for name, body in (("one more", sized(MIB + 1)), ("much more", sized(3 * MIB)),
                           ("chunked", iter([sized(2 * MIB)]))):
            with self.subTest(name):
                self.client.close()
                other = guresid("big")
                try:
                    # An iterator has no length: it is sent chunked.
                    answer = self.client.send_once("PUT", "/" + other, body,
                                                   {"Content-Type": "application/json"})
                except (BrokenPipeError, ConnectionResetError):
                    # Too early a close loses the answer; whether it may is not said, but nothing
                    # may be made.
                    answer = None
                if answer is not None or name == "one more":
                    self.assertIsNotNone(answer, "the answer was lost")
                    self.assertEqual(answer.status, 413)
                    self.check_error(answer.json)
                    self.assertRegex(answer.json["message"], "1 ?MiB|1048576|1,048,576",
                                     "the limit is named")
                self.expect(self.get(other), 404)
        self.expect(self.get(gid), 202)

    def test_nodepool_reference(self):
        """A nodepool needs one known cluster, by cluster_id or cluster_guresid; each wrong one is
        named.
        """
        gid, _, _ = self.created(cluster_input())
        np, _, _ = self.created(nodepool_input(cluster_guresid=gid))
        cases = {
            "none": (nodepool_input(), ["cluster_id", "cluster_guresid"]),
            "unknown id": (nodepool_input(cluster_id="2abcdefghijklmnopqrstuvwxyz"),
                           ["cluster_id", "2abcdefghijklmnopqrstuvwxyz"]),
            "unknown guresid": (nodepool_input(cluster_guresid="no-such-thing"),
                                ["cluster_guresid", "no-such-thing"]),
            "a nodepool's guresid": (nodepool_input(cluster_guresid=np), ["cluster_guresid", np]),
            "a nodepool's id": (nodepool_input(cluster_id=self.fleet.of(np)[1][0]["id"]),
                                ["cluster_id"]),
            "number": (nodepool_input(cluster_id=7), ["cluster_id"]),
            "object": (nodepool_input(cluster_guresid={}), ["cluster_guresid"]),
        }
        for name, (body, words) in cases.items():
            with self.subTest(name):
                self.refused(body, words)

    def test_nodepool_fields(self):
        """The same rules for the nodepool's own members."""
        gid, _, _ = self.created(cluster_input())
        good = nodepool_input(cluster_guresid=gid, name="good")
        for path, value in ((["nodepool"], "x"), (["nodepool", "name"], "x" * 16),
                            (["nodepool", "name"], "NO"),
                            (["nodepool", "spec"], [])):
            with self.subTest(path=path, value=value):
                self.refused(edited(["driver", "values"] + path, value, good),
                             ["nodepool", path[-1]])

    def test_name_taken(self):
        """A resource of ours has the name already, or a cluster of HyperFleet's API has it. RES-101
        names it, and the resource if it is ours, and nothing is made.
        """
        holder, _, _ = self.created(cluster_input(name="held-by-us"))
        self.assertEqual(self.client.post(BASE + "/clusters",
                                          {"kind": "Cluster", "name": "held-by-them",
                                           "spec": {}}).status, 201)
        for name in ("held-by-us", "held-by-them"):
            with self.subTest(name):
                gid = guresid("second")
                words = [name, "of resource %s:" % holder if name == "held-by-us"
                         else "not of this resource:"]
                self.refused(cluster_input(name=name, nodepools=[{"name": "abc"}]), words, gid=gid)
                self.assertEqual(self.fleet.of(gid), ([], []))
        owner, _, _ = self.created(cluster_input(nodepools=[{"name": "taken"}]))
        self.refused(nodepool_input(cluster_guresid=owner, name="taken"), ["taken"])


class Accepted(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_default_names(self):
        """Names that are not given are derived from the GUResID, satisfy HyperFleet's rules, and
        stay the same on a repeat.
        """
        ids = (guresid("plain"), "UPPER.and_under-" + guresid("x"), "y" * 63, "9", "a..b__c")
        for gid in ids:
            with self.subTest(gid):
                body = cluster_input(nodepools=[{"spec": {}}, {"spec": {"a": 1}}])
                self.expect(self.put(gid, body), 202)
                clusters, pools = self.fleet.of(gid)
                self.assertRegex(clusters[0]["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
                self.assertTrue(3 <= len(clusters[0]["name"]) <= 53, clusters[0]["name"])
                self.assertEqual(len(pools), 2)
                for pool in pools:
                    self.assertRegex(pool["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
                    self.assertTrue(3 <= len(pool["name"]) <= 15, pool["name"])
                self.expect(self.put(gid, body), 202)
                self.assertEqual(len(self.fleet.of(gid)[0]), 1)
        self.assertEqual(len({self.fleet.cluster_of(g)["name"] for g in ids}), len(ids))

    def test_default_names_do_not_collide(self):
        """GUResIDs that differ only in case, punctuation or their last characters get names of
        their own.
        """
        stem = guresid("q")
        for gid in (stem + "A", stem + "a", stem + ".a", stem + "-a", stem + "_a", ("z" * 62) + "1",
                    ("z" * 62) + "2"):
            with self.subTest(gid):
                self.expect(self.put(gid, cluster_input()), 202)

    def test_default_nodepool_name(self):
        """A nodepool resource without a name gets one too; two of them in one cluster do not
        collide.
        """
        gid, _, _ = self.created(cluster_input())
        names = set()
        for _ in range(2):
            np, _, _ = self.created(nodepool_input(cluster_guresid=gid))
            names.add(self.fleet.of(np)[1][0]["name"])
        self.assertEqual(len(names), 2)

    def test_what_reaches_hyperfleet(self):
        """Spec and labels reach HyperFleet as given, plus the label of the GUResID, on the cluster
        and every nodepool; secrets do not.
        """
        spec = {"a": [1, 2.5, None, True, {"b": "\u00e4\u20ac\U0001f600"}], "port": "5432",
                "empty": {}}
        gid, _, _ = self.created(cluster_input(spec=spec, labels={"team": "blue"},
                                               secrets={"token": "t0p"},
                                               nodepools=[{"name": "one", "spec": {"n": 1},
                                                           "labels": {"role": "x"}}]))
        cluster, pool = self.fleet.of(gid)[0][0], self.fleet.of(gid)[1][0]
        self.assertEqual(cluster["spec"], spec)
        self.assertEqual(cluster["labels"], {"team": "blue", LABEL: gid})
        self.assertEqual(pool["spec"], {"n": 1})
        self.assertEqual(pool["labels"], {"role": "x", LABEL: gid})
        self.assertNotIn("t0p", json.dumps([cluster, pool]))

    def test_label_is_ours(self):
        """The label of the GUResID cannot be set to something else from outside."""
        gid = guresid("label")
        answer = self.put(gid, cluster_input(labels={LABEL: "somebody-else"}))
        if answer.status == 400:
            self.assertIn(LABEL, answer.json["message"])
        else:
            self.assertEqual(self.fleet.cluster_of(gid)["labels"][LABEL], gid)

    def test_same(self):
        """Key order, white space, escapes, unknown members and the account's credentials do not
        make an input another one.
        """
        body = cluster_input(spec={"a": 1, "b": {"c": "x", "d": []}}, labels={"k": "v", "l": "w"},
                             nodepools=[{"name": "one", "spec": {"z": 1, "y": 2}}],
                             secrets={"token": "s", "account": {"key": "first"}},
                             resource={"p": 1, "q": 2})
        gid, _, cookie = self.created(body)

        def reverse(x):
            if isinstance(x, dict):
                return {k: reverse(x[k]) for k in sorted(x, reverse=True)}
            return [reverse(i) for i in x] if isinstance(x, list) else x

        account = copy.deepcopy(body)
        account["driver"]["secrets"]["account"] = {"key": "second", "more": 1}
        no_account = copy.deepcopy(body)
        del no_account["driver"]["secrets"]["account"]
        cases = {
            "identical": json.dumps(body), "indented": json.dumps(body, indent=4),
            "dense": json.dumps(body, separators=(",", ":")),
            "reversed keys": json.dumps(reverse(body)),
            "escapes": json.dumps(body).replace('"x"', '"\\u0078"'),
            "unknown member": json.dumps(dict(body, id="abc", context={"env": "dev"})),
            "another account": json.dumps(account),
            "no account": json.dumps(no_account),
        }
        for name, text in cases.items():
            with self.subTest(name):
                self.assertEqual(self.expect(self.put(gid, text, cookie), 202).cookie, cookie)
        self.fleet.ready(gid)
        for name, text in cases.items():
            with self.subTest(name, ready=True):
                self.assertEqual(self.expect(self.put(gid, text, cookie), 200).cookie, cookie)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)

    def test_different(self):
        """Everything that describes the resource makes it another input: 409 while creating."""
        body = cluster_input(name=None, spec={"a": 1}, labels={"k": "v"},
                             nodepools=[{"name": "one", "spec": {"z": 1}}],
                             secrets={"token": "s"})
        gid, _, cookie = self.created(body)
        values = ["driver", "values"]

        def where(path, value):
            """The field that the message names; secrets and what only the driver keeps are none."""
            if path[:2] != values or path[-1] == "name" and "cluster" in path:
                return ""
            if path[2] == "cluster":
                return " in cluster." + ".".join((path + ["k"])[3:5])
            if value == []:
                return " in nodepools[one]"
            return {"z": " in nodepools[one].spec.z",
                    "name": " in nodepools[one], and in others"}.get(path[-1], " in nodepools[two]")

        cases = [(values + ["cluster", "spec", "a"], 2), (values + ["cluster", "spec", "a"], "1"),
                 (values + ["cluster", "spec", "b"], None),
                 (values + ["cluster", "labels", "k"], "w"), (values + ["cluster", "labels"], ...),
                 (values + ["cluster", "name"], "named-now"),
                 (values + ["nodepools", 0, "spec", "z"], 2),
                 (values + ["nodepools", 0, "name"], "other"), (values + ["nodepools"], []),
                 (values + ["nodepools"], [{"name": "one", "spec": {"z": 1}}, {"name": "two"}]),
                 (["driver", "secrets", "token"], "t"), (["driver", "secrets"], ...),
                 (["resource", "p"], 1)]
        for path, value in cases:
            with self.subTest(path=path, value=value):
                doc = self.expect(self.put(gid, edited(path, value, body), cookie), 409).json
                self.check_hint(doc, "creating")
                self.assertRegex(doc["message"],
                                 r"^another order is being created since \d\d:\d\dZ; this one "
                                 r"differs.*: repeat it when that is done\. Present state: ")
                self.assertEqual(doc["message"].split("differs")[1].split(": ")[0],
                                 where(path, value), doc["message"])

    def test_409_before_106(self):
        """While creating and deleting 409 comes before RES-106; an invalid body is RES-101 in every
        state.
        """
        body = cluster_input(name="first-name")
        gid, _, cookie = self.created(body)
        others = (cluster_input(name="second-name"),
                  cluster_input(name="first-name", type_="org/hyperfleet-cluster"))
        for other in others:
            self.expect(self.put(gid, other, cookie), 409)
        self.expect(self.put(gid, b"{", cookie), 400, "RES-101")
        self.fleet.ready(gid)
        self.expect(self.get(gid), 200)
        for other in others:
            self.expect(self.put(gid, other, cookie), 400, "RES-106")
        self.expect(self.put(gid, b"{", cookie), 400, "RES-101")
        self.expect(self.delete(gid), 202)
        for other in others:
            self.expect(self.put(gid, other, cookie), 409)
        self.expect(self.put(gid, b"{", cookie), 400, "RES-101")

    def test_cannot_change(self):
        """RES-106 for a changed cluster name and another type; it names the field and both values,
        and nothing has changed.
        """
        gid, body, cookie = self.brought_ready(cluster_input(name="fixed-name"))
        before = self.client.get(self.fleet.cluster_of(gid)["href"]).json
        message = self.expect(self.put(gid, cluster_input(name="other-name"), cookie), 400,
                              "RES-106").json["message"]
        for word in ("name", "fixed-name", "other-name"):
            self.assertIn(word, message)
        retyped = cluster_input(name="fixed-name", type_="org/hyperfleet-cluster")
        message = self.expect(self.put(gid, retyped, cookie), 400, "RES-106").json["message"]
        self.assertIn("type", message)
        owner, _, _ = self.created(cluster_input())
        self.expect(self.put(gid, nodepool_input(cluster_guresid=owner), cookie), 400, "RES-106")
        self.expect(self.get(gid, cookie), 200)
        self.assertEqual(self.expect(self.put(gid, body, cookie), 200).cookie, cookie)
        self.assertEqual(self.client.get(before["href"]).json, before)

    def test_cannot_change_in_other_states(self):
        """RES-106 while updating and after a failure too; the operation under way, or the failure,
        stays as it was.
        """
        body = cluster_input(name="fixed-too", spec={"v": 1})
        renamed = cluster_input(name="other-too", spec={"v": 1})
        gid, _, cookie = self.created(body)
        self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False,
                            reason="QuotaExceeded")
        self.expect(self.get(gid, cookie), 400, "RES-104")
        self.expect(self.put(gid, renamed, cookie), 400, "RES-106")
        self.expect(self.get(gid, cookie), 400, "RES-104")
        self.expect(self.put(gid, body, cookie), 202)
        self.fleet.ready(gid)
        update = cluster_input(name="fixed-too", spec={"v": 2})
        cookie = self.expect(self.put(gid, update), 202).cookie
        self.expect(self.put(gid, renamed, cookie), 400, "RES-106")
        self.check_hint(self.expect(self.get(gid, cookie), 202).json, "updating")
        self.assertEqual(self.expect(self.put(gid, update, cookie), 202).cookie, cookie)
        self.assertEqual(self.fleet.cluster_of(gid)["spec"], {"v": 2})

    def test_nodepool_cannot_move(self):
        """A nodepool resource stays in its cluster: RES-106."""
        one, _, _ = self.brought_ready(cluster_input())
        two, _, _ = self.brought_ready(cluster_input())
        np, _, cookie = self.brought_ready(nodepool_input(cluster_guresid=one, name="stays"))
        message = self.expect(self.put(np, nodepool_input(cluster_guresid=two, name="stays"),
                                       cookie), 400, "RES-106").json["message"]
        self.assertIn("cluster", message)
        self.expect(self.get(np), 200)

    def test_same_cluster_by_its_other_name(self):
        """Naming the same cluster by its id instead of its GUResID is a change that changes
        nothing: 200 at once.
        """
        gid, _, _ = self.brought_ready(cluster_input())
        cluster = self.fleet.cluster_of(gid)
        np, _, cookie = self.brought_ready(nodepool_input(cluster_guresid=gid, name="both"))
        self.expect(self.put(np, nodepool_input(cluster_id=cluster["id"], name="both"), cookie),
                    200)
        self.assertEqual(self.fleet.of(np)[1][0]["generation"], 1)

    def test_nodepool_differences(self):
        """An update creates, patches and deletes exactly the pools that differ, and leaves the
        cluster's generation alone.
        """
        pools = [{"name": n, "spec": {"replicas": 1}} for n in ("keep", "patch", "drop")]
        gid, body, cookie = self.brought_ready(cluster_input(nodepools=pools))
        before = {p["name"]: p for p in self.fleet.of(gid)[1]}
        body = copy.deepcopy(body)
        body["driver"]["values"]["nodepools"] = [{"name": "fresh", "spec": {}},
                                                 {"name": "patch", "spec": {"replicas": 5}},
                                                 pools[0]]
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)
        after = {p["name"]: p for p in self.fleet.of(gid)[1]}
        self.assertEqual(set(after), {"keep", "patch", "drop", "fresh"})
        self.assertEqual((after["keep"]["id"], after["keep"]["generation"]),
                         (before["keep"]["id"], 1))
        self.assertEqual((after["patch"]["id"], after["patch"]["generation"]),
                         (before["patch"]["id"], 2))
        self.assertEqual(after["patch"]["spec"], {"replicas": 5})
        self.assertIn("deleted_time", after["drop"])
        self.assertNotIn("deleted_time", after["keep"])
        self.restart()
        self.expect(self.put(gid, body, cookie), 202)
        self.fleet.ready(gid)
        self.fleet.finish_pool_deletes(gid)
        values = self.expect(self.get(gid, cookie), 200).json["resource"]["values"]
        self.assertEqual({p["name"] for p in values["nodepools"]}, {"keep", "patch", "fresh"})
        self.assertEqual({p["name"] for p in self.fleet.of(gid)[1]}, {"keep", "patch", "fresh"})

    def test_large_reports(self):
        """Adapters whose data fill most of the allowed body: the resource is read, changed and
        deleted like any other.
        """
        gid, _, cookie = self.created()
        for part in [p for ps in self.fleet.of(gid) for p in ps]:
            for i in range(6):
                self.fleet.accepted(part, "observer-%d" % i, data={"fill": "x" * 900000})
            self.fleet.accepted(part, "validation", data={"fill": "x" * 900000})
        self.expect(self.get(gid, cookie), 200)
        second = cluster_input(spec={"v": 2}, nodepools=[{"name": "workers", "spec": {"v": 2}}])
        cookie = self.expect(self.put(gid, second, cookie), 202).cookie
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)
        self.removed(gid, cookie)

    def test_large_conditions(self):
        """Long messages, of adapters that are waited for and of others: the resource is read,
        changed and deleted like any other.
        """
        gid, _, cookie = self.created()
        long = [condition("Custom%d" % i, "True", "R", "m" * 32000) for i in range(7)]
        for part in [p for ps in self.fleet.of(gid) for p in ps]:
            for i in range(10):
                answer = self.fleet.report(part, "observer-%d" % i, extra=long)
                self.assertIn(answer.status, (201, 400))
                if answer.status == 400:
                    self.assertIn("not required", self.fleet.client.last.json["detail"])
            for adapter in self.fleet.required[part["kind"]]:
                self.fleet.accepted(part, adapter, message="m" * 32768, extra=long[:4])
        self.expect(self.get(gid, cookie), 200)
        second = cluster_input(spec={"v": 2}, nodepools=[{"name": "workers", "spec": {"v": 2}}])
        cookie = self.expect(self.put(gid, second, cookie), 202).cookie
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)
        self.removed(gid, cookie)

    def test_a_hundred_pools_with_much_to_say(self):
        """The same for long messages on each of a hundred nodepools."""
        gid, _, cookie = self.created(
            cluster_input(nodepools=[{"name": "np-%d" % i} for i in range(100)]))
        for part in [p for ps in self.fleet.of(gid) for p in ps]:
            for adapter in self.fleet.required[part["kind"]]:
                self.fleet.accepted(part, adapter, message="m" * 12000,
                                    extra=[condition("Custom", "True", "R", "m" * 12000)])
        self.expect(self.get(gid, cookie), 200)
        self.removed(gid, cookie)

    def test_a_hundred_pools(self):
        """The largest resource can be made, changed in every part, shrunk and deleted like any
        other.
        """
        def body(version, pools=100):
            return cluster_input(spec={"v": version},
                                 nodepools=[{"name": "np-%d" % i, "spec": {"v": version}}
                                            for i in range(pools)])
        gid, _, cookie = self.brought_ready(body(1))
        cookie = self.expect(self.put(gid, body(2), cookie), 202).cookie
        self.assertEqual([p["generation"] for p in self.fleet.of(gid)[1]], [2] * 100)
        self.fleet.ready(gid)
        self.expect(self.get(gid, cookie), 200)
        self.put(gid, body(2, 10), cookie)
        self.fleet.finish_pool_deletes(gid)
        self.assertEqual(len(self.expect(self.get(gid),
                                         200).json["resource"]["values"]["nodepools"]), 10)
        self.removed(gid)

    def test_all_pools_away_and_back(self):
        """All pools deleted, then one of the same name again: a new nodepool with a new id."""
        gid, body, cookie = self.brought_ready()
        first = self.fleet.of(gid)[1][0]["id"]
        self.expect(self.put(gid, cluster_input(), cookie), 202)
        self.fleet.finish_pool_deletes(gid)
        self.assertEqual(self.expect(self.get(gid), 200).json["resource"]["values"]["nodepools"],
                         [])
        self.expect(self.put(gid, body), 202)
        self.assertNotEqual(self.fleet.of(gid)[1][0]["id"], first)
        self.fleet.ready(gid)
        self.expect(self.get(gid), 200)

    def test_pool_back_while_being_deleted(self):
        """A pool wanted again while its deletion is under way: a new one is made beside it."""
        gid, body, cookie = self.brought_ready()
        self.expect(self.put(gid, cluster_input(), cookie), 202)
        self.expect(self.put(gid, body), 202)
        self.fleet.ready(gid)
        self.fleet.finish_pool_deletes(gid)
        values = self.expect(self.get(gid), 200).json["resource"]["values"]
        live = [p for p in self.fleet.of(gid)[1] if "deleted_time" not in p]
        self.assertEqual([p["id"] for p in values["nodepools"]], [p["id"] for p in live])
        self.assertEqual(len(live), 1)

    def test_order_of_pools(self):
        """The order of nodepools in the list is not a change of any of them."""
        pools = [{"name": "one", "spec": {}}, {"name": "two", "spec": {}}]
        gid, _, cookie = self.brought_ready(cluster_input(nodepools=pools))
        self.expect(self.put(gid, cluster_input(nodepools=pools[::-1]), cookie), 200)
        self.assertEqual({p["generation"] for p in self.fleet.of(gid)[1]}, {1})

    def test_label_change_is_an_update(self):
        """Changed labels alone raise the generation too."""
        gid, body, cookie = self.brought_ready(cluster_input(labels={"a": "1"}))
        self.expect(self.put(gid, cluster_input(labels={"a": "2"}), cookie), 202)
        cluster = self.fleet.cluster_of(gid)
        self.assertEqual((cluster["generation"], cluster["labels"]), (2, {"a": "2", LABEL: gid}))


class Overrides(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)
    CONFIG = "driver:\n  resource_overrides: [cluster.spec.region]\n"

    def test_resource_overrides(self):
        """`resource` overrides the fields that the configuration allows, and no others."""
        gid, _, _ = self.created(cluster_input(spec={"region": "eu", "size": "s"},
                                               resource={
                                                   "cluster": {
                                                       "spec": {"region": "us", "size": "xl"}}}))
        self.assertEqual(self.fleet.cluster_of(gid)["spec"], {"region": "us", "size": "s"})


class Outputs(Case):
    ADAPTERS = ("validation", "hypershift")
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--log-level", "debug")
    CONFIG = """
driver:
  outputs:
    values:
      api_url: hypershift:/api/url
      whole: hypershift:/api
      second_zone: hypershift:/zones/1
      odd: hypershift:/a~1b/c~0d
      not_there: hypershift:/nowhere/at/all
      other_adapter: validation:/version
    secrets:
      kubeconfig: hypershift:/secrets/kubeconfig
      token: hypershift:/secrets/user/token
"""
    CANARY = "cAnArY-kubeconfig-1f3a"
    CANARY2 = "cAnArY-token-77b2"
    CANARY3 = "cAnArY-driver-secret-90c1"
    CANARY4 = "cAnArY-account-5d5e"
    ALL = (CANARY, CANARY2, CANARY3, CANARY4)

    def data(self):
        return {"api": {"url": "https://api.example:6443", "n": 1}, "zones": ["a", "b"],
                "a/b": {"c~d": 7},
                "secrets": {"kubeconfig": self.CANARY, "user": {"token": self.CANARY2}}}

    def reported(self):
        gid, body, cookie = self.created(
            cluster_input(secrets={"api": self.CANARY3, "account": {"key": self.CANARY4}}))
        cluster = self.fleet.cluster_of(gid)
        answer = self.fleet.accepted(cluster, "hypershift", data=self.data())
        self.fleet.accepted(cluster, "validation", data={"version": "4.15"})
        return gid, body, cookie, cluster, answer

    def test_outputs(self):
        """Values and secrets come from the adapters' data by JSON pointer; what is not there is
        left out; a restart changes nothing.
        """
        gid, body, cookie, _, _ = self.reported()
        for _ in range(2):
            for answer in (self.get(gid, cookie), self.put(gid, body, cookie)):
                doc = self.expect(answer, 200).json["resource"]
                values = doc["values"]
                self.assertEqual(values["api_url"], "https://api.example:6443")
                self.assertEqual(values["whole"], {"url": "https://api.example:6443", "n": 1})
                self.assertEqual((values["second_zone"], values["odd"], values["other_adapter"]),
                                 ("b", 7, "4.15"))
                self.assertNotIn("not_there", values)
                self.assertEqual(doc["secrets"], {"kubeconfig": self.CANARY, "token": self.CANARY2})
            self.restart()

    def test_outputs_follow_reports(self):
        """A later report brings later values, rotated secrets included; the 200 stays."""
        gid, _, cookie, cluster, _ = self.reported()
        data = self.data()
        data["api"]["url"], data["secrets"][
            "kubeconfig"] = "https://new.example", self.CANARY + "-new"
        self.fleet.accepted(cluster, "hypershift", data=data)
        doc = self.expect(self.get(gid, cookie), 200).json["resource"]
        self.assertEqual((doc["values"]["api_url"], doc["secrets"]["kubeconfig"]),
                         ("https://new.example", self.CANARY + "-new"))

    def test_secrets_are_write_only(self):
        """data.secrets is redacted in every read of statuses, the answer to the report included;
        nothing else of data is.
        """
        gid, _, _, cluster, answer = self.reported()
        item = {i["adapter"]: i
                for i in self.client.get(cluster["href"] + "/statuses").json["items"]}["hypershift"]
        for doc in (answer.json, item):
            data = doc["data"]
            self.assertEqual(data["api"], {"url": "https://api.example:6443", "n": 1})
            self.assertEqual(set(data["secrets"]), {"kubeconfig", "user"})
            self.assertEqual(data["secrets"]["kubeconfig"], "[redacted]")
        for path in (BASE + "/clusters", BASE + "/clusters?pageSize=5", cluster["href"],
                     cluster["href"] + "/statuses"):
            text = self.client.get(path).body.decode()
            for canary in self.ALL:
                self.assertNotIn(canary, text, path)

    def test_secrets_are_nowhere_in_the_clear(self):
        """No canary in the log, nor in any file of the data folder, nor in the metrics; after kill
        -9 the output has them still.
        """
        gid, body, cookie, _, _ = self.reported()
        self.expect(self.get(gid, cookie), 200)
        self.expect(self.put(gid, b'{"driver": {"secrets": {"api": "' + self.CANARY3.encode()
                             + b'"}}, "type": 1}'), 400)
        for canary in self.ALL:
            self.assertEqual(self.server.files_with(canary.encode()), [], canary)
            self.assertNotIn(canary, "\n".join(self.server.lines))
            self.assertNotIn(canary, cookie)
        self.restart()
        self.assertEqual(self.expect(self.get(gid, cookie),
                                     200).json["resource"]["secrets"]["kubeconfig"], self.CANARY)
        for canary in self.ALL:
            self.assertEqual(self.server.files_with(canary.encode()), [], canary)

    def test_secrets_in_odd_shapes(self):
        """data.secrets that is no object, or holds no strings, is redacted all the same and harms
        nothing.
        """
        for secrets in (self.CANARY, [self.CANARY], 5, None,
                        {"list": [self.CANARY, {"x": self.CANARY}], "n": 12345678}):
            with self.subTest(secrets=secrets):
                gid, _, _ = self.created(cluster_input())
                cluster = self.fleet.cluster_of(gid)
                answer = self.fleet.report(cluster, "hypershift",
                                           data={"secrets": secrets, "ok": 1})
                self.assertIn(answer.status, (201, 400))
                self.fleet.accepted(cluster, "validation")
                text = self.client.get(cluster["href"]
                                       + "/statuses").body.decode() + answer.body.decode()
                self.assertNotIn(self.CANARY, text)
                self.assertNotIn("12345678", text)
                self.assertEqual(self.server.files_with(self.CANARY.encode()), [])
                if answer.status == 201:
                    self.expect(self.get(gid), 200)


if __name__ == "__main__":
    unittest.main()
