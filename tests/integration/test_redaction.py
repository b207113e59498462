#!/usr/bin/env python3
"""Secrets are read where they are meant to be read, and nowhere else. A marked secret goes into
every input that may hold one. Every operation of the served OpenAPI document is called with one,
so a new route is walked too. Then answers, log, metrics, files and memory are searched.
"""
import base64
import contextlib
import json
import os
import re
import unittest

from lib import BASE, COOKIE, Case, Client, cluster_input, eventually, guresid

GIVEN = "MARKgiven7f3a"    # in an order: no answer has it
REPORTED = "MARKsaid9b21"  # of an adapter: resource.secrets alone has it
HEADER = "MARKhead4c55"    # a token, a cookie, a password
METHODS = ("get", "put", "post", "patch", "delete")


def unprintable(mark):
    """The forms in which a text may stand in bytes."""
    raw = mark.encode()
    return (raw, raw.hex().encode(), raw.hex().upper().encode(),
            *(base64.b64encode(b"x" * n + raw)[4:-4] for n in range(3)))


class Redaction(Case):
    ADAPTERS = ("dns",)
    POOL_ADAPTERS = ("dns",)
    CONFIG = "driver: {outputs: {secrets: {kubeconfig: 'dns:/secrets/kubeconfig'}}}\n"

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)
        self.bodies = []

    def keep(self, answer):
        """Notes what was answered, but for the one place that may have a reported secret."""
        text = answer.body.decode("utf-8", "replace")
        text += "".join("%s: %s\n" % (k, v) for k, v in answer.headers)
        try:
            secrets = answer.json["resource"]["secrets"]
            text = text.replace(json.dumps(secrets["kubeconfig"]), '""')
        except (AssertionError, KeyError, TypeError):
            pass
        self.bodies.append(("%s %s" % (answer.method, answer.path), text))
        return answer

    def order(self):
        body = cluster_input(nodepools=[{"name": "one"}])
        body["driver"]["secrets"] = {"account": {"credentials": GIVEN}, "password": GIVEN}
        return body

    def report(self, resource):
        answer = self.fleet.report(resource, "dns", data={
            "zone": "a", "secrets": {"kubeconfig": REPORTED, "other": [{"deep": REPORTED}]}})
        self.assertEqual(answer.status, 201, answer)
        return self.keep(answer)

    def fill(self, path, ids):
        return re.sub(r"\{([^}]+)\}", lambda m: ids.get(m[1].lower(), "absent"), path)

    def walk(self, ids):
        """Calls every operation of the document, with marks in body and headers."""
        document = self.client.get(BASE + "/openapi").json
        called = 0
        for path, item in document["paths"].items():
            for method in METHODS:
                if method not in item or method == "delete":
                    continue
                body = None if method == "get" else {
                    "driver": {"secrets": {"a": GIVEN}}, "data": {"secrets": {"a": GIVEN}},
                    "secrets": {"a": GIVEN}, "type": "hyperfleet-cluster"}
                for client in (self.client, self.ops):
                    for target in (path, BASE + path):
                        headers = {"Authorization": "Bearer hfd_" + HEADER,
                                   "Cookie": "session=" + HEADER, "X-Api-Key": HEADER}
                        if called % 2:
                            headers[COOKIE] = HEADER
                        self.keep(client.request(method.upper(), self.fill(target, ids), body,
                                                 headers))
                        called += 1
        self.assertGreater(called, 60)

    def read_all(self, ids):
        """Reads what there is to read, on both listeners."""
        paths = ["/", "/metrics", "/healthz", "/readyz", "/admin/orphans", "/docs/",
                 "/r/" + ids["guresid"], "/api/driver/v1/events", "/api/driver/v1/resources",
                 "/%s/status" % ids["guresid"], BASE + "/clusters", BASE + "/nodepools",
                 "/" + ids["guresid"]]
        for client in (self.client, self.ops):
            for path in paths:
                self.keep(client.get(path))

    def search(self, places, marks):
        for name, data in places:
            for mark in marks:
                for form in unprintable(mark):
                    self.assertNotIn(form, data, "%s is in %s" % (mark, name))

    def files(self):
        found = []
        for folder, _, names in os.walk(self.server.data):
            for name in names:
                # A file that a running server renames or removes is gone.
                with contextlib.suppress(FileNotFoundError), \
                        open(os.path.join(folder, name), "rb") as f:
                    found.append((name, f.read()))
        found += self.server.place.tables()
        self.assertGreaterEqual({n for n, _ in found},
                                {"keys", "resource" if self.server.place.url else "store.db"})
        return found

    def memory(self):
        """The memory of the server, or nothing where it cannot be read."""
        pid, parts = self.server.proc.pid, []
        try:
            with open("/proc/%d/maps" % pid, encoding="ascii") as maps, \
                    open("/proc/%d/mem" % pid, "rb", 0) as mem:
                for line in maps:
                    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
                    if m is None or "[v" in line:
                        continue
                    start, end = int(m[1], 16), int(m[2], 16)
                    # The shadow memory of a sanitizer: terabytes, and nothing of ours.
                    if end - start > 1 << 32:
                        continue
                    try:
                        mem.seek(start)
                        parts.append(mem.read(end - start))
                    except (OSError, ValueError, OverflowError):
                        continue
        except OSError:
            return None
        return b"".join(parts)

    def test_marks(self):
        """Everything that was answered, logged, counted and stored has no mark. The memory has no
        key of the key ring.
        """
        gid = guresid("red")
        self.keep(self.put(gid, self.order()))
        cluster = self.fleet.cluster_of(gid)
        pool = self.fleet.of(gid)[1][0]
        for part in (cluster, pool):
            self.report(part)
        answer = self.keep(self.get(gid))
        self.assertEqual(answer.json["resource"]["secrets"], {"kubeconfig": REPORTED})
        ids = {"guresid": gid, "id": cluster["id"], "cluster_id": cluster["id"],
               "nodepool_id": pool["id"], "driver": "clusters", "adapter": "dns"}
        self.walk(ids)
        self.read_all(ids)
        self.report(cluster)
        self.keep(self.put(gid, self.order()))
        self.keep(self.get(gid))
        eventually(lambda: any(gid in line for line in self.server.lines), "the order is logged")
        log = "\n".join(self.server.lines).encode()
        self.search([("the log", log)], (GIVEN, REPORTED, HEADER))
        self.search([(n, t.encode()) for n, t in self.bodies], (GIVEN, REPORTED, HEADER))
        self.search(self.files(), (GIVEN, REPORTED, HEADER))
        with open(os.path.join(self.server.data, "keys"), encoding="utf-8") as f:
            keys = [line.split(":")[1] for line in f if not line.startswith("#")]
        memory = self.memory()
        for key in keys if memory is not None else ():
            self.assertNotIn(key.encode(), memory)
            self.assertNotIn(base64.urlsafe_b64decode(key + "="), memory)
        self.server.sigterm()
        self.search(self.files(), (GIVEN, REPORTED, HEADER))


if __name__ == "__main__":
    unittest.main()
