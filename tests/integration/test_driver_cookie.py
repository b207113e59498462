"""The driver cookie: stable, small, bound to its resource, refused when forged, and good across
restarts and key rotation.
"""
import base64
import os
import re
import stat
import unittest

from lib import COOKIE, Case, Client, Server, cluster_input, guresid, nodepool_input, run

OPS = ("PUT", "GET", "DELETE")


def other_char(c):
    return "A" if c != "A" else "B"


class Cookie(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def operate(self, op, gid, cookie, body=None):
        if op == "PUT":
            return self.put(gid, body or cluster_input(), cookie)
        return self.get(gid, cookie) if op == "GET" else self.delete(gid, cookie)

    def refused(self, gid, cookie, body=None):
        """RES-102 on every method, and nothing has changed."""
        before = self.get(gid)
        parts = self.fleet.of(gid)
        for op in OPS:
            answer = self.expect(self.operate(op, gid, cookie, body), 400, "RES-102")
            self.assertNotIn(cookie[:40] or "?", answer.json["message"])
        after = self.get(gid)
        self.assertEqual(after.status, before.status)
        self.assertEqual(self.fleet.of(gid), parts)

    def test_stable(self):
        """Byte-stable through polls, repeated PUTs, other people's changes and restarts; it is new
        only with a new operation.
        """
        gid, body, cookie = self.created()
        seen = {cookie}
        for _ in range(3):
            self.get(gid, cookie)
            seen.add(self.put(gid, body, cookie).cookie)
            seen.add(self.put(gid, body).cookie)
            self.expect(self.put(gid, cluster_input(spec={"other": 1}), cookie), 409)
        self.restart()
        seen.add(self.put(gid, body, cookie).cookie)
        self.fleet.ready(gid)
        for _ in range(3):
            seen.add(self.expect(self.put(gid, body, cookie), 200).cookie)
        self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False)
        seen.add(self.expect(self.put(gid, body, cookie), 200).cookie)
        self.restart()
        seen.add(self.expect(self.put(gid, body, cookie), 200).cookie)
        self.assertEqual(seen, {cookie})
        newer = self.expect(self.put(gid, cluster_input(spec={"v": 2}), cookie), 202).cookie
        self.assertNotEqual(newer, cookie)
        self.assertEqual(self.expect(self.put(gid, cluster_input(spec={"v": 2}), newer),
                                     202).cookie, newer)

    def test_small(self):
        """In practice below 1 kB; with 100 nodepools and large credentials always below 10,240
        bytes.
        """
        _, _, cookie = self.created()
        self.assertLess(len(cookie), 1024)
        gid, body, cookie = self.created(
            cluster_input(nodepools=[{"name": "np-%d" % i} for i in range(100)],
                                                       secrets={"account": {"key": "k" * 20000}}))
        self.assertLess(len(cookie), 10240)
        self.assertEqual(len(self.fleet.of(gid)[1]), 100)
        self.expect(self.get(gid, cookie), 202)
        self.assertEqual(self.expect(self.put(gid, body, cookie), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.assertEqual(len(self.expect(self.get(gid, cookie),
                                         200).json["resource"]["values"]["nodepools"]), 100)
        self.removed(gid, cookie)

    def test_opaque(self):
        """Nothing readable is inside: not the GUResID, the cluster's id, the credentials."""
        gid, _, cookie = self.created(cluster_input(name="a-readable-name",
                                                    secrets={"account": {"key": "AKIAREADABLE"},
                                                             "other": "READABLE2"}))
        raw = base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
        for word in (gid, self.fleet.cluster_of(gid)["id"], "AKIAREADABLE", "READABLE2",
                     "a-readable-name", "hyperfleet"):
            self.assertNotIn(word.encode(), raw)

    def test_not_in_the_log(self):
        """The log shows neither the cookie that was given nor the ones that were sent."""
        gid, body, cookie = self.created()
        self.get(gid, cookie)
        self.get(gid, "forged-and-logged-nowhere")
        self.put(gid, body, cookie)
        self.expect(self.delete(gid, cookie), 202)
        text = "\n".join(self.server.lines)
        self.assertNotIn(cookie[:60], text)
        self.assertNotIn("forged-and-logged-nowhere", text)

    def test_forged(self):
        """Any changed byte, a byte more or less, and plain nonsense: RES-102."""
        gid, body, cookie = self.brought_ready()
        forged = {"nonsense": "nonsense", "one character": "A", "no base64": "!!!not-base64!!!",
                  "padded": cookie + "==",
                  "longer": cookie + "A",
                  "much longer": cookie + "A" * 4, "twice": cookie + cookie, "prefix": "A" + cookie,
                  "base64 of JSON": base64.b64encode(b'{"id":1}').decode(),
                  "10,240 bytes": "A" * 10240, "20,000 bytes": "A" * 20000,
                  "quoted": '"%s"' % cookie, "upper case": cookie.upper(),
                  "zeros": "A" * len(cookie)}
        for at in sorted({0, 1, 5, 8, 20, 40, len(cookie) // 2, len(cookie) - 20, len(cookie) - 2,
                          len(cookie) - 1}):
            forged["byte %d" % at] = cookie[:at] + other_char(cookie[at]) + cookie[at + 1:]
        for size in (1, 2, 4, 20, 40, len(cookie) // 2, len(cookie) - 1):
            forged["cut to %d" % size] = cookie[:size]
        for name, value in forged.items():
            with self.subTest(name):
                self.refused(gid, value, body)
        self.assertEqual(self.expect(self.put(gid, body, cookie), 200).cookie, cookie)

    def test_forged_in_every_state(self):
        """Absent, creating and deleting refuse a forged cookie as well; nothing is made or removed.
        """
        gid = guresid("absent")
        self.refused(gid, "forged")
        self.expect(self.get(gid), 404)
        gid, body, cookie = self.created()
        self.refused(gid, cookie[:-3], body)
        self.expect(self.delete(gid), 202)
        self.refused(gid, cookie[:-3], body)

    def test_of_another_resource(self):
        """Another resource's cookie, of the same or another type: RES-102 and both stay as they
        are.
        """
        one, body, cookie_one = self.brought_ready()
        two, _, cookie_two = self.brought_ready()
        np, pool_body, cookie_np = self.created(nodepool_input(cluster_guresid=one, name="extra"))
        self.refused(one, cookie_two, body)
        self.refused(two, cookie_one, body)
        self.refused(np, cookie_one, pool_body)
        self.refused(one, cookie_np, body)
        absent = guresid("absent")
        self.refused(absent, cookie_one)
        self.expect(self.get(one, cookie_one), 200)
        self.expect(self.get(two, cookie_two), 200)

    def test_of_a_foreign_key(self):
        """A cookie for the same GUResID and body, sealed by another server's key: RES-102."""
        gid, body, cookie = self.created()
        with Server("--adapters-required-cluster", "validation", "--adapters-required-nodepool",
                    "validation") as other:
            client = Client(other)
            foreign = client.put("/" + gid, body).cookie
            client.close()
        self.assertIsNotNone(foreign)
        self.assertNotEqual(foreign, cookie)
        self.refused(gid, foreign, body)

    def test_empty_is_none(self):
        """An empty cookie header is no cookie, on a known and an unknown GUResID."""
        gid = guresid("empty")
        self.expect(self.get(gid, ""), 404)
        self.expect(self.delete(gid, ""), 204)
        body = cluster_input()
        cookie = self.expect(self.put(gid, body, ""), 202).cookie
        self.expect(self.get(gid, ""), 202)
        self.assertEqual(self.expect(self.put(gid, body, ""), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.expect(self.get(gid, ""), 200)
        self.expect(self.delete(gid, ""), 202)

    def test_header_name_in_any_case(self):
        """Header names have no case."""
        gid, _, cookie = self.created()
        for name in (COOKIE.lower(), COOKIE.upper()):
            answer = self.client.get("/" + gid, {name: "forged"})
            self.expect(self.checked("GET", gid, answer), 400, "RES-102")
            answer = self.client.get("/" + gid, {name: cookie})
            self.expect(self.checked("GET", gid, answer), 202)

    def test_given_twice(self):
        """Two different cookies on one request are refused, in either order; twice the same, or one
        beside an empty one, is one.
        """
        gid, body, cookie = self.created()
        foreign = self.created()[2]
        lower, upper = COOKIE.lower(), COOKIE.upper()
        for one, other in ((cookie, foreign), (foreign, cookie), (cookie, "forged"),
                           ("forged", cookie)):
            for op in OPS:
                answer = self.client.request(op, "/" + gid, body if op == "PUT" else None,
                                             {lower: one, upper: other})
                message = self.expect(self.checked(op, gid, answer), 400, "RES-102").json["message"]
                self.assertIn("more than once", message)
                self.assertIn(gid, message)
        for one, other in ((cookie, cookie), (cookie, ""), ("", cookie), ("", "")):
            self.expect(self.checked("GET", gid,
                                     self.client.get("/" + gid, {lower: one, upper: other})), 202)
        self.expect(self.checked("PUT", gid,
                                 self.client.put("/" + gid, body, {lower: cookie, upper: cookie})),
                                 202)

    def test_of_an_earlier_incarnation(self):
        """After a complete DELETE the old cookie counts as none: 404, 204. A PUT makes a new
        resource, which the old cookie does not disturb.
        """
        gid, body, old = self.brought_ready()
        self.removed(gid, old)
        self.expect(self.get(gid, old), 404)
        self.expect(self.delete(gid, old), 204)
        cookie = self.expect(self.put(gid, body, old), 202).cookie
        self.assertNotEqual(cookie, old)
        self.check_hint(self.expect(self.get(gid, old), 202).json, "creating")
        self.assertEqual(self.expect(self.put(gid, body, old), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.expect(self.get(gid, old), 200)
        self.assertEqual(self.expect(self.put(gid, body, old), 200).cookie, cookie)

    def test_a_late_delete(self):
        """A DELETE with a cookie of before a complete DELETE is 204. The new resource stays as it
        is, also while it is created or deleted. Without a cookie, and with its own, it is deleted.
        """
        gid, body, old = self.brought_ready()
        self.removed(gid, old)
        cookie = self.expect(self.put(gid, body), 202).cookie
        for _ in range(2):
            self.assertEqual(self.expect(self.delete(gid, old), 204).body, b"")
            self.check_hint(self.expect(self.get(gid), 202).json, "creating")
        self.fleet.ready(gid)
        self.restart()
        self.expect(self.delete(gid, old), 204)
        self.expect(self.get(gid, cookie), 200)
        self.assertEqual(self.fleet.cluster_of(gid)["generation"], 1)
        self.expect(self.delete(gid, cookie), 202)
        self.expect(self.delete(gid, old), 204)
        self.check_hint(self.expect(self.get(gid), 202).json, "deleting")
        self.fleet.finish_delete(gid)
        third = self.expect(self.put(gid, body), 202).cookie
        for ended in (old, cookie):
            self.expect(self.delete(gid, ended), 204)
        self.expect(self.get(gid, third), 202)
        self.expect(self.delete(gid), 202)

    def test_older_cookie_of_the_same_life(self):
        """The cookie of before an update is behind what is stored; what is stored wins."""
        gid, body, old = self.brought_ready()
        body = cluster_input(spec={"v": 2})
        cookie = self.expect(self.put(gid, body, old), 202).cookie
        self.expect(self.get(gid, old), 202)
        self.assertEqual(self.expect(self.put(gid, body, old), 202).cookie, cookie)
        self.fleet.ready(gid)
        self.fleet.finish_pool_deletes(gid)
        self.expect(self.get(gid, old), 200)
        self.expect(self.delete(gid, old), 202)


class KeyRing(Case):
    ADAPTERS = ("validation",)
    POOL_ADAPTERS = ("validation",)

    def test_first_start_makes_a_key_ring(self):
        """The first start makes DATA/keys with mode 0600 and says so."""
        path = os.path.join(self.server.data, "keys")
        self.assertTrue(os.path.isfile(path), os.listdir(self.server.data))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertTrue(any("key" in str(r.get("msg", "")) for r in self.server.records()),
                        self.server.tail(40))

    def test_rotation(self):
        """After keygen --rotate old cookies open. The next PUT hands out one that is sealed anew,
        once; the file mode stays.
        """
        gid, body, cookie = self.brought_ready(cluster_input(secrets={"token": "s"}))
        gid2, body2, cookie2 = self.created()
        self.assertEqual(self.server.sigterm(), 0)
        done = run("keygen", "--rotate", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.server.data, "keys")).st_mode),
                         0o600)
        self.server.start()
        self.expect(self.get(gid, cookie), 200)
        self.expect(self.get(gid2, cookie2), 202)
        for known, content, before, status in ((gid, body, cookie, 200),
                                               (gid2, body2, cookie2, 202)):
            anew = self.expect(self.put(known, content, before), status).cookie
            self.assertNotEqual(anew, before)
            self.assertEqual(self.expect(self.put(known, content, before), status).cookie, anew)
            self.assertEqual(self.expect(self.put(known, content, anew), status).cookie, anew)
        self.expect(self.put(gid2, cluster_input(spec={"other": 1}), cookie2), 409)
        newer = self.expect(self.put(gid, cluster_input(spec={"v": 2}, secrets={"token": "s"}),
                                     cookie), 202).cookie
        self.expect(self.get(gid, newer), 202)
        self.expect(self.get(gid, cookie), 202)
        self.expect(self.delete(gid2, cookie2), 202)
        self.expect(self.get(gid, cookie[:-1] + other_char(cookie[-1])), 400, "RES-102")

    def test_keygen(self):
        """keygen makes a ring, and never writes over one."""
        folder = os.path.join(self.server.scratch, "fresh")
        os.mkdir(folder)
        done = run("keygen", "--new", "--data", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = os.path.join(folder, "keys")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, "rb") as f:
            before = f.read()
        again = run("keygen", "--new", "--data", folder)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("keys", again.stderr)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), before)
        secrets = [p for p in re.split(r"[:\s]", before.decode()) if len(p) > 20]
        self.assertTrue(secrets)
        for secret in secrets:
            self.assertNotIn(secret, done.stdout + done.stderr + again.stdout + again.stderr)

    def test_open_ring_is_refused(self):
        """A key ring that others may read is refused at start, by name."""
        folder = os.path.join(self.server.scratch, "open")
        os.mkdir(folder)
        self.assertEqual(run("keygen", "--new", "--data", folder).returncode, 0)
        path = os.path.join(folder, "keys")
        os.chmod(path, 0o644)
        done = run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data",
                   folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("keys", done.stderr)
        self.assertIn("0600", done.stderr)

    def test_no_key_material_in_the_log(self):
        """The log never shows a key."""
        with open(os.path.join(self.server.data, "keys"), encoding="utf-8") as f:
            parts = [p for p in re.split(r"[:\s]", f.read()) if len(p) > 20]
        self.assertTrue(parts)
        text = "\n".join(self.server.lines)
        for part in parts:
            self.assertNotIn(part, text)


if __name__ == "__main__":
    unittest.main()
