"""manifests of the output: objects that an adapter reports, without malformed ones."""
import unittest

from lib import Case, cluster_input, eventually, guresid


def manifest(name="settings", location="namespace", **data):
    return {"location": location, "data": dict({"apiVersion": "v1", "kind": "ConfigMap",
                                                "metadata": {"name": name}}, **data)}


class Manifests(Case):
    FLAGS = ("--driver-outputs-manifests", "hypershift:/deploy/manifests")

    def ready_with(self, data):
        """The output of a new resource whose adapter reported this data."""
        gid, body, _ = self.created(cluster_input())
        cluster = self.fleet.cluster_of(gid)
        for adapter in ("validation", "dns", "pullsecret"):
            self.fleet.accepted(cluster, adapter)
        self.fleet.accepted(cluster, "hypershift", data=data)
        return gid, self.expect(self.get(gid), 200).json["manifests"]

    def left_out(self, gid):
        """(index, reason) of each log line about a resource."""
        return [(r["index"], r["reason"]) for r in self.server.records()
                if r.get("msg") == "manifest left out" and r["guresid"] == gid]

    # All places in the singular and the plural are taken as they are, in their order; numbers too.
    def test_places(self):
        places = [p + s for p in ("container", "volume", "namespace", "cluster") for s in ("", "s")]
        given = [manifest("m%d" % i, p, spec={"n": 1.5}) for i, p in enumerate(places)]
        gid, manifests = self.ready_with({"deploy": {"manifests": given}})
        self.assertEqual(manifests, given)
        self.assertEqual(self.left_out(gid), [])
        self.restart()
        self.assertEqual(self.expect(self.get(gid), 200).json["manifests"], given)

    # A malformed entry is left out with a line in the log, and the others stay.
    def test_malformed(self):
        good = manifest()
        bad = [("x", "expected an object"), ({"data": good["data"]}, "location: "),
               (manifest(location="pod"), "location: "),
               (manifest(location="clusterss"), "location: "),
               ({"location": "cluster", "data": []}, "data: expected"),
               (manifest(apiVersion=""), "data.apiVersion: "), (manifest(kind=5), "data.kind: "),
               (manifest(metadata={}), "data.metadata.name: "),
               (manifest(metadata="x"), "data.metadata.name: ")]
        gid, manifests = self.ready_with(
            {"deploy": {"manifests": [b for b, _ in bad] + [dict(good, more=1)]}})
        self.assertEqual(manifests, [good])
        eventually(lambda: len(self.left_out(gid)) >= len(bad), "lines in the log")
        lines = self.left_out(gid)
        self.assertEqual([i for i, _ in lines], list(range(len(bad))))
        for (_, reason), (_, begins) in zip(lines, bad):
            self.assertTrue(reason.startswith(begins), (reason, begins))
        # A report with the same data is no news.
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "dns")
        self.assertEqual(self.expect(self.get(gid), 200).json["manifests"], [good])
        self.assertEqual(len(self.left_out(gid)), len(bad))

    # Without an array there are none: no report with it, nothing at the pointer, something else.
    def test_none(self):
        for data, logged in ((None, 0), ({"deploy": {}}, 0), ({"deploy": {"manifests": []}}, 0),
                             ({"deploy": {"manifests": {"a": 1}}}, 1)):
            with self.subTest(data=data):
                gid, manifests = self.ready_with(data)
                self.assertEqual(manifests, [])
                if logged:
                    eventually(lambda: self.left_out(gid), "a line in the log")
                self.assertEqual(len(self.left_out(gid)), logged)

    # They follow later reports, as the other outputs do.
    def test_they_follow_reports(self):
        gid, _ = self.ready_with({"deploy": {"manifests": [manifest("one")]}})
        cluster = self.fleet.cluster_of(gid)
        two = [manifest("one"), manifest("two", "cluster")]
        self.fleet.accepted(cluster, "hypershift", data={"deploy": {"manifests": two}})
        self.assertEqual(self.expect(self.get(gid), 200).json["manifests"], two)

    # Many are taken, too; line breaks in them do no harm.
    def test_many(self):
        many = [manifest("m%d" % i, text="x\n" * 200) for i in range(800)]
        _, manifests = self.ready_with({"deploy": {"manifests": many}})
        self.assertEqual(manifests, many)


class Secret(Case):
    FLAGS = ("--driver-outputs-manifests", "hypershift:/secrets/manifests")

    # A secret that an adapter reports does not become a manifest.
    def test_secrets(self):
        gid, _, _ = self.created(cluster_input())
        cluster = self.fleet.cluster_of(gid)
        for adapter in ("validation", "dns", "pullsecret"):
            self.fleet.accepted(cluster, adapter)
        self.fleet.accepted(cluster, "hypershift",
                            data={"secrets": {"manifests": [manifest("hidden")]}})
        answer = self.expect(self.get(gid), 200)
        self.assertEqual(answer.json["manifests"], [])
        self.assertNotIn(b"hidden", answer.body)


if __name__ == "__main__":
    unittest.main()
