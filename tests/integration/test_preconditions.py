"""Version checks (RFC 9110): tags of clusters, nodepools and ready resources, 304, If-Match and
If-None-Match, and that of two writers one wins.
"""
import concurrent.futures
import copy
import threading
import unittest

from lib import BASE, Case, Client, changed, cluster_input, guresid, nodepool_input

STRONG = r'^"[0-9a-f]{32}"$'
OTHER = '"0123456789abcdef0123456789abcdef"'
MALFORMED = ("abc", '"a', 'a"', '"a" "b"', '*, "a"', '"a", *', "W/", '"a"x', ",", '"a b"', "W/*",
             'w/"a"')


class Preconditions(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def tag_of(self, path):
        answer = self.client.get(path)
        self.assertEqual(answer.status, 200, answer)
        self.assertRegex(answer.header("ETag"), STRONG)
        return answer.header("ETag")

    def ready(self, **more):
        gid, body, _ = self.brought_ready(cluster_input(nodepools=[{"name": "np-0"}], **more))
        return gid, body, self.tag_of("/" + gid)

    def send(self, method, gid, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, "/" + gid, body, named)

    def is_412(self, answer, name="If-Match"):
        self.assertEqual(answer.status, 412, answer)
        self.assertEqual(answer.json["error"], "RES-101")
        self.assertTrue(answer.json["message"].startswith(name + ": "), answer)
        self.assertIsNone(answer.header("Set-Humanitec-Driver-Cookie"))

    # ---- tags ----

    def test_tag_of_a_resource(self):
        """A 200 has a tag, which moves with the document; a 202, 400 and 404 have none."""
        gid, body, _ = self.created(cluster_input(nodepools=[{"name": "np-0"}]))
        self.assertIsNone(self.get(gid).header("ETag"))
        self.assertIsNone(self.client.get("/" + guresid()).header("ETag"))
        self.fleet.ready(gid)
        tag, document = self.tag_of("/" + gid), self.get(gid).body
        self.assertEqual(self.put(gid, body).header("ETag"), tag)
        self.restart()
        self.assertEqual((self.tag_of("/" + gid), self.get(gid).body), (tag, document))
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "validation", available=False, reason="Melted", message="hot")
        self.assertNotEqual(self.tag_of("/" + gid), tag, "the health is in the document")
        self.fleet.make_ready(cluster)
        self.assertEqual((self.tag_of("/" + gid), self.get(gid).body), (tag, document))
        self.expect(self.put(gid, changed(body)), 202)
        self.fleet.ready(gid)
        self.assertNotEqual(self.tag_of("/" + gid), tag)
        self.expect(self.put(gid, cluster_input(spec={"n": 1}, nodepools=[])), 202)
        self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False,
                            reason="QuotaExceeded", message="full")
        self.assertIsNone(self.expect(self.get(gid), 400).header("ETag"))

    def test_tag_of_a_cluster(self):
        """Each change of the document moves it: labels, reports, deletion. So for a nodepool."""
        gid, _, _ = self.created(cluster_input(nodepools=[{"name": "np-0"}]))
        for part in (self.fleet.cluster_of(gid), self.fleet.of(gid)[1][0]):
            path = part["href"]
            seen = [self.tag_of(path)]
            self.assertEqual(self.tag_of(path), seen[0])
            self.assertEqual(self.tag_of(path + "?fields=name"), seen[0])
            answer = self.client.get(path + "?fields=name", {"If-None-Match": seen[0]})
            self.assertEqual((answer.status, answer.body), (304, b""))
            self.fleet.make_ready(part)
            seen.append(self.tag_of(path))
            answer = self.client.patch(path, {"spec": {"n": 1}})
            self.assertEqual(answer.header("ETag"), self.tag_of(path))
            seen.append(answer.header("ETag"))
            self.assertEqual(self.client.patch(path, {"spec": {"n": 1}}).header("ETag"), seen[-1])
            self.restart()
            self.assertEqual(self.tag_of(path), seen[-1])
            self.assertEqual(len(set(seen)), 3)
        flat = BASE + "/nodepools/" + part["id"]
        self.assertEqual(self.tag_of(flat), seen[-1])
        answer = self.client.delete(path)
        self.assertEqual((answer.status, answer.header("ETag")), (202, self.tag_of(path)))
        self.assertNotIn(answer.header("ETag"), seen)

    def test_not_modified(self):
        """If-None-Match gives 304 without a body, on both APIs."""
        gid, body, tag = self.ready()
        cluster = self.fleet.cluster_of(gid)
        for path in ("/" + gid, "/clusters/" + gid, cluster["href"],
                     self.fleet.of(gid)[1][0]["href"]):
            tag = self.tag_of(path)
            for value, status in ((tag, 304), ("*", 304), ("W/" + tag, 304),
                                  ('"x", ' + tag, 304), (tag + "," + OTHER, 304), (OTHER, 200),
                                  (tag.strip('"'), 200), ('"generation-1"', 200)):
                with self.subTest(path=path, value=value):
                    for method in ("GET", "HEAD"):
                        answer = self.client.request(method, path, None, {"If-None-Match": value})
                        self.assertEqual((answer.status, answer.header("ETag")), (status, tag))
                        self.assertEqual(answer.body == b"", status == 304 or method == "HEAD")
        self.assertEqual(self.send("PUT", gid, body).status, 200)
        self.expect(self.put(gid, changed(body)), 202)
        for value in (tag, "*"):
            self.assertEqual(self.send("GET", gid, If_None_Match=value).status, 202)

    # ---- driver resources ----

    def test_put(self):
        """The table of driver/core/README.md: PUT with each precondition in each state."""
        gid, body, tag = self.ready()
        other = changed(body)
        for value in (OTHER, "W/" + tag, '"generation-1"', '"x", "y"'):
            self.is_412(self.send("PUT", gid, other, If_Match=value))
            self.is_412(self.send("PUT", gid, body, If_Match=value))
        for wish in (body, other):
            self.is_412(self.send("PUT", gid, wish, If_None_Match="*"), "If-None-Match")
        self.is_412(self.send("PUT", gid, other, If_None_Match="W/" + tag), "If-None-Match")
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)
        self.assertEqual(self.tag_of("/" + gid), tag)
        for value in (tag, "*", '"x" , ' + tag):
            self.assertEqual(self.send("PUT", gid, body, If_Match=value).status, 200)
        self.assertEqual(self.send("PUT", gid, other, If_Match=tag).status, 202)
        # updating: no tag
        self.is_412(self.send("PUT", gid, changed(other), If_Match=tag))
        self.is_412(self.send("PUT", gid, other, If_Match=OTHER))
        self.is_412(self.send("PUT", gid, other, If_None_Match="*"), "If-None-Match")
        self.assertEqual(self.send("PUT", gid, changed(other), If_Match="*").status, 202)

    def test_put_of_what_is_not_there(self):
        """No If-Match holds there, and If-None-Match: * creates, once."""
        gid, body = guresid(), cluster_input()
        for value in ("*", OTHER):
            self.is_412(self.send("PUT", gid, body, If_Match=value))
        self.expect(self.get(gid), 404)
        self.assertEqual(self.send("PUT", gid, body, If_None_Match="*").status, 202)
        self.is_412(self.send("PUT", gid, changed(body), If_None_Match="*"), "If-None-Match")
        self.is_412(self.send("PUT", gid, body, If_Match=OTHER))

    def test_repeated_put_polls(self):
        """A PUT that is repeated with its precondition polls: creating, updating, ready, failed,
        and over a restart.
        """
        gid, body = guresid(), cluster_input(nodepools=[])
        new = {"If_None_Match": "*"}
        self.assertEqual(self.send("PUT", gid, body, **new).status, 202)
        self.assertEqual(self.send("PUT", gid, body, **new).status, 202)
        self.restart()
        spaced = copy.deepcopy(body)
        spaced["resource"] = dict(body["resource"])
        for same in (body, dict(reversed(list(spaced.items())))):
            self.assertEqual(self.send("PUT", gid, same, **new).status, 202)
        self.fleet.ready(gid)
        self.assertEqual(self.send("PUT", gid, body, **new).status, 200)
        tag = self.tag_of("/" + gid)
        old = {"If_Match": tag}
        self.assertEqual(self.send("PUT", gid, changed(body), **old).status, 202)
        self.is_412(self.send("PUT", gid, body, **new), "If-None-Match")
        self.assertEqual(self.send("PUT", gid, changed(body), **old).status, 202)
        self.fleet.ready(gid)
        answer = self.send("PUT", gid, changed(body), **old)
        self.assertEqual(answer.status, 200)
        self.assertNotEqual(answer.header("ETag"), tag)
        self.is_412(self.send("PUT", gid, body, **old))
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 2)
        last = changed(changed(body))
        old = {"If_Match": answer.header("ETag")}
        self.assertEqual(self.send("PUT", gid, last, **old).status, 202)
        self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False,
                            reason="QuotaExceeded", message="full")
        for _ in range(2):
            answer = self.send("PUT", gid, last, **old)
            self.assertEqual((answer.status, answer.json["error"]), (400, "RES-104"))
        self.is_412(self.send("PUT", gid, last, If_Match=OTHER))
        self.expect(self.get(gid), 400, "RES-104")
        self.assertEqual(self.send("PUT", gid, last, If_Match="*").status, 202)

    def test_delete(self):
        """Another tag deletes nothing; what is being deleted is polled; what is gone is 204."""
        gid, body, tag = self.ready()
        for value in (OTHER, "W/" + tag, '"generation-1"'):
            self.is_412(self.send("DELETE", gid, If_Match=value))
        self.expect(self.get(gid), 200)
        self.assertEqual(self.send("DELETE", gid, If_Match=tag).status, 202)
        for value in (tag, OTHER, "*"):
            self.assertEqual(self.send("DELETE", gid, If_Match=value).status, 202)
        for headers in ({"If_Match": tag}, {"If_None_Match": "*"}, {}):
            self.assertEqual(self.send("PUT", gid, body, **headers).status, 409)
        self.fleet.finish_delete(gid)
        for value in (tag, OTHER, "*"):
            self.assertEqual(self.send("DELETE", gid, If_Match=value).status, 204)
        gid, body, _ = self.created()
        self.is_412(self.send("DELETE", gid, If_Match=tag))
        self.assertEqual(self.send("DELETE", gid, If_Match="*").status, 202)

    def test_malformed(self):
        """400 that names the header, and nothing is done."""
        gid, body, _ = self.ready()
        cluster = self.fleet.cluster_of(gid)
        for value in MALFORMED:
            with self.subTest(value=value):
                for method, wish in (("PUT", changed(body)), ("DELETE", None)):
                    answer = self.send(method, gid, wish, If_Match=value)
                    self.expect(answer, 400, "RES-101")
                    self.assertTrue(answer.json["message"].startswith("If-Match: "))
                answer = self.send("PUT", guresid(), body, If_None_Match=value)
                self.expect(answer, 400, "RES-101")
                self.assertTrue(answer.json["message"].startswith("If-None-Match: "))
                for answer in (self.client.patch(cluster["href"], {"spec": {}},
                                                 {"If-Match": value}),
                               self.client.delete(cluster["href"], {"If-Match": value})):
                    doc = self.problem(answer, 400, "HYPERFLEET-VAL-005")
                    self.assertTrue(doc["detail"].startswith("If-Match: "))
        self.assertEqual(self.client.get(cluster["href"]).json["generation"], 1)

    def test_two_writers(self):
        """Of writers with one tag, or with If-None-Match: *, one wins."""
        gid, body, tag = self.ready()
        fresh = guresid()
        for where, header in ((gid, {"If-Match": tag}), (fresh, {"If-None-Match": "*"})):
            wishes = [cluster_input(spec={"writer": n}, nodepools=[]) for n in range(8)]
            start = threading.Barrier(len(wishes))

            def write(wish):
                client = Client(self.server)
                start.wait()
                answer = client.put("/" + where, wish, header)
                client.close()
                return answer.status

            with concurrent.futures.ThreadPoolExecutor(len(wishes)) as pool:
                told = list(pool.map(write, wishes))
            self.assertEqual(sorted(told), [202] + [412] * 7)
            self.assertEqual(self.fleet.cluster_of(where)["spec"],
                             wishes[told.index(202)]["driver"]["values"]["cluster"]["spec"])

    # ---- HyperFleet ----

    def test_fleet(self):
        """PATCH and DELETE of a cluster and a nodepool, by tag and by generation."""
        gid, _, _ = self.created(cluster_input(nodepools=[{"name": "np-0"}]))
        for part in (self.fleet.of(gid)[1][0], self.fleet.cluster_of(gid)):
            path, n = part["href"], [0]

            def patch(**headers):
                n[0] += 1
                return self.client.patch(path, {"spec": {"n": n[0]}}, {
                    name.replace("_", "-"): value for name, value in headers.items()})

            old = self.tag_of(path)
            self.fleet.make_ready(part)
            for value in (old, OTHER, "W/" + self.tag_of(path), '"generation-2"',
                          'W/"generation-1"', "\"generation-1 \""[:-2] + 'x"'):
                self.problem(patch(If_Match=value), 412, "HYPERFLEET-CNF-003")
            self.problem(patch(If_None_Match="*"), 412, "HYPERFLEET-CNF-003")
            self.assertEqual(self.client.get(path).json["generation"], 1)
            answer = patch(If_Match='"x", "generation-1"')
            self.assertEqual(answer.status, 200, "reports do not move the generation")
            answer = patch(If_Match=answer.header("ETag"))
            self.assertEqual((answer.status, answer.json["generation"]), (200, 3))
            self.assertEqual(patch(If_Match="*").status, 200)
            tag = self.tag_of(path)
            for value in (answer.header("ETag"), '"generation-3"'):
                self.problem(self.client.delete(path, {"If-Match": value}), 412,
                             "HYPERFLEET-CNF-003")
            for value in (tag, tag, '"generation-4"', OTHER):
                self.assertEqual(self.client.delete(path, {"If-Match": value}).status, 202)
            self.problem(patch(If_Match="*"), 409, "HYPERFLEET-CNF-003")
        self.fleet.finish_delete(gid)
        for answer in (self.client.delete(path, {"If-Match": "*"}), patch(If_Match="*")):
            self.problem(answer, 404, "HYPERFLEET-NTF-001")

    def test_fleet_writers(self):
        """Of PATCHes with one tag one wins."""
        gid, _, _ = self.created(cluster_input(nodepools=[]))
        path = self.fleet.cluster_of(gid)["href"]
        for tag in (self.tag_of(path), '"generation-2"'):
            start = threading.Barrier(8)

            def write(n):
                client = Client(self.server)
                start.wait()
                answer = client.patch(path, {"spec": {"writer": n, "of": tag}}, {"If-Match": tag})
                client.close()
                return answer.status

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                self.assertEqual(sorted(pool.map(write, range(8))), [200] + [412] * 7)

    def test_nodepool_resource(self):
        """The tag of a nodepool resource guards it likewise."""
        owner, _, _ = self.ready()
        gid = guresid()
        body = nodepool_input(cluster_guresid=owner, name="gpu")
        self.expect(self.put(gid, body), 202)
        self.fleet.make_ready(self.fleet.of(gid)[1][0])
        tag = self.tag_of("/nodepools/" + gid)
        self.is_412(self.send("DELETE", gid, If_Match=OTHER))
        self.assertEqual(self.send("DELETE", gid, If_Match=tag).status, 202)

    def test_protected(self):
        """RES-109 comes before 412. A PUT that lifts the protection alone keeps the tag."""
        gid, body, tag = self.ready(protect=True)
        for value in (tag, OTHER):
            self.expect(self.send("DELETE", gid, If_Match=value), 400, "RES-109")
        lifted = copy.deepcopy(body)
        del lifted["driver"]["values"]["protect"]
        self.is_412(self.send("PUT", gid, lifted, If_Match=OTHER))
        self.expect(self.delete(gid), 400, "RES-109")
        self.assertEqual(self.send("PUT", gid, lifted, If_Match=tag).status, 200)
        self.assertEqual(self.tag_of("/" + gid), tag)
        self.assertEqual(self.send("DELETE", gid, If_Match=tag).status, 202)


if __name__ == "__main__":
    unittest.main()
