"""Every COMMIT of a resource's life is cut, before PostgreSQL gets it and after. The caller is
answered, or hears 503 and repeats. Nothing is lost, and nothing happens twice.

The proxy of tests/lib stands between the program and PostgreSQL. A life is a cluster made by the
HyperFleet API, then PUT, reports, another PUT, reports, DELETE and Finalized. One without a fault
is the reference.
"""
import http.client
import shutil
import tempfile
import time
import unittest

import real
import consistent
import postgres
import tcp_proxy
from lib import (BASE, COOKIE, Client, Place, Server, changed, cluster_input, guresid,
                 report_body)

FLAGS = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool", "validation",
         "--store-answer-timeout", "2s")
PATIENCE_S = 60
MOST = 40 # COMMITs of a life
HISTORY = ("SELECT what, from_state, to_state, generation FROM history WHERE id = '%s'"
           " ORDER BY seq")


class Commits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()
        cls.proxy = tcp_proxy.Proxy(cls.database.port)
        cls.addClassCleanup(cls.proxy.close)
        cls.proxy.tell("match hfd_commit")
        cls.place = Place(tempfile.mkdtemp(prefix="hfd-com-"), base=cls.database.url("postgres"))
        cls.addClassCleanup(shutil.rmtree, cls.place.folder, True)
        cls.place.make()
        cls.direct = cls.place.url
        cls.place.url = cls.direct.replace(":%d/" % cls.database.port, ":%d/" % cls.proxy.port)
        cls.server = Server(*FLAGS, place=cls.place)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def setUp(self):
        self.client = Client(self.server)
        self.addCleanup(self.client.close)
        self.refused = 0

    def insist(self, method, path, body=None, headers=None):
        """One call, repeated while it hears 503 or nothing: as orchestrators and adapters do."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self.client.request(method, path, body, headers)
                if answer.status != 503:
                    return answer
                self.assertRegex(answer.header("Retry-After") or "", "^[1-9][0-9]*$")
            except (OSError, http.client.HTTPException) as e:
                answer = e
            self.refused += 1
            self.assertLess(time.monotonic(), end, "%s %s: %r\n%s"
                            % (method, path, answer, self.server.tail()))
            time.sleep(0.05)

    def expect(self, status, *call):
        answer = self.insist(*call)
        self.assertEqual(answer.status, status, "%r\n%s" % (answer, self.server.tail()))
        return answer

    def report(self, part, generation, **kw):
        body = report_body("validation", generation, **kw)
        answer = self.insist("POST", part + "/statuses", body)
        self.assertIn(answer.status, (201, 204) if not kw.get("finalized") else (201, 204, 404),
                      "%r\n%s" % (answer, self.server.tail()))

    def cluster(self):
        """A cluster made by HyperFleet's API. A creation that was carried out twice would
        find its own name taken.
        """
        refused = self.refused
        answer = self.insist("POST", BASE + "/clusters",
                             {"kind": "Cluster", "name": guresid("once"), "spec": {}})
        taken = [409] if self.refused > refused else []
        self.assertIn(answer.status, [201] + taken, "%r\n%s" % (answer, self.server.tail()))

    def parts(self, gid):
        """The hrefs of its cluster and its nodepool."""
        found = []
        for path in ("/clusters", "/nodepools"):
            items = self.expect(200, "GET", "%s%s?search=labels.humanitec_guresid='%s'"
                                % (BASE, path, gid)).json["items"]
            self.assertEqual(len(items), 1, "%s of %s: %s" % (path, gid, items))
            found.append(items[0]["href"])
        return found

    def life(self):
        """From nothing to nothing; returns its GUResID."""
        gid = guresid("life")
        self.cluster()
        body = cluster_input(nodepools=[{"name": "workers", "spec": {"replicas": 2}}])
        self.expect(202, "PUT", "/" + gid, body)
        self.expect(202, "GET", "/" + gid)
        cluster, pool = self.parts(gid)
        self.report(cluster, 1)
        self.report(pool, 1)
        self.expect(200, "GET", "/" + gid)
        cookie = self.expect(202, "PUT", "/" + gid, changed(body)).cookie
        self.report(cluster, 2)
        values = self.expect(200, "GET", "/" + gid).json["resource"]["values"]
        self.assertEqual(values["generation"], 2)
        self.expect(202, "DELETE", "/" + gid, None, {COOKIE: cookie})
        for part in (pool, cluster):
            generation = self.insist("GET", part).json["generation"]
            self.report(part, generation, available=False, finalized=True)
        self.expect(204, "DELETE", "/" + gid, None, {COOKIE: cookie})
        self.expect(404, "GET", "/" + gid)
        return gid

    def history(self, gid):
        return postgres.query(self.direct, HISTORY % gid)

    def check(self, what, when):
        """Lives with a fault at each of their COMMITs in turn."""
        reference = self.history(self.life())
        self.assertGreater(len(reference), 4)
        seen = 0
        for nth in range(1, MOST):
            with self.subTest(nth=nth):
                self.proxy.tell("%s %d %s" % (what, nth, when))
                gid = self.life()
                if not self.proxy.fired():
                    break
                seen += 1
                self.assertEqual(self.history(gid), reference, "nothing is there twice")
                self.assertEqual(consistent.faults(self.direct), [])
        self.proxy.tell("cut 0 after")
        self.proxy.tell("drop")
        self.assertGreaterEqual(seen, 8, "each call that changes something has a COMMIT")
        print("%s %s: %d COMMITs, %d calls repeated" % (what, when, seen, self.refused))

    def test_cut_before(self):
        """PostgreSQL never gets the COMMIT: the work is done again, or refused."""
        self.check("cut", "before")

    def test_cut_after(self):
        """PostgreSQL has committed, and the answer is lost: the program finds out."""
        self.check("cut", "after")

    def test_held_after(self):
        """The answer never comes, and the connection stays open: a deadline ends the wait."""
        self.check("hold", "after")

    def test_held_before(self):
        """The COMMIT never arrives, and the connection stays open: so does the transaction, until
        PostgreSQL ends it as idle.
        """
        self.check("hold", "before")


if __name__ == "__main__":
    real.main()
