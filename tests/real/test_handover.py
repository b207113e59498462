"""A start that waits for PostgreSQL answers probes, and hands its listening socket over to the
server itself: no probe is refused or cut off.
"""
import http.client
import os
import re
import shutil
import tempfile
import threading

import real
import postgres
from lib import Server, eventually, run

LIMIT_S = 60
PROBERS = 4
STARTS = 3


class Waiting(Server):
    """`serve` with fixed addresses."""

    def __init__(self, url, keys, ops):
        super().__init__("--store", url, "--keys", keys, "--ops-listen", ops)

    def command(self):
        argv = super().command()
        for flag in "--data", "--ops-listen": # those of the library; ours is the last one
            at = argv.index(flag)
            argv = argv[:at] + argv[at + 2:]
        return argv


class Prober(threading.Thread):
    """Asks for /livez on a new connection each time; notes what is no answer."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.ends = port, False
        self.answers, self.faults = 0, []

    def run(self):
        while not self.ends:
            try:
                self.ask()
                self.answers += 1
            except (OSError, http.client.HTTPException) as e:
                self.faults.append(repr(e))

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request("GET", "/livez", headers={"Connection": "close"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise OSError("status %d" % answer.status)
        finally:
            connection.close()


class Handover(real.unittest.TestCase):
    def setUp(self):
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.database.start()
        self.folder = tempfile.mkdtemp(prefix="hfd-handover-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.keys = os.path.join(self.folder, "keys")
        self.assertEqual(run("keygen", "--keys", self.keys).returncode, 0)

    def hand_over(self):
        """One start; returns what its probes met."""
        port = postgres.free_port()
        server = Waiting(self.database.url(), self.keys, "127.0.0.1:%d" % port)
        self.addCleanup(server.close)
        probers = [Prober(port) for _ in range(PROBERS)]
        self.database.pause()
        server.spawn()
        eventually(lambda: self.lives(port), "it answers while it waits", LIMIT_S)
        self.waits(port)
        for prober in probers:
            prober.start()
        self.database.resume()
        ready = server.ready.wait(LIMIT_S)
        seen = [prober.answers for prober in probers]
        eventually(lambda: all(p.answers > n for p, n in zip(probers, seen)), "they go on", LIMIT_S)
        for prober in probers:
            prober.ends = True
        for prober in probers:
            prober.join()
        self.assertTrue(ready, server.tail())
        self.assertEqual(server.sigterm(), 0, server.tail())
        return [fault for prober in probers for fault in prober.faults]

    def waits(self, port):
        """Its other pages are there soon."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.addCleanup(connection.close)
        for path in ("/", "/replicas"):
            connection.request("GET", path)
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.getheader("Retry-After")), (503, "2"))
            self.assertIn(b'"error":"AWAY"', answer.read())

    def lives(self, port):
        prober = Prober(port)
        try:
            prober.ask()
            return True
        except OSError:
            return False

    def refused(self, url):
        """A start that ends, as waiting would not help; returns its words."""
        done = run("serve", "--store", url, "--keys", self.keys, "--listen", "127.0.0.1:0",
                   "--ops-listen", "127.0.0.1:0", timeout_s=LIMIT_S)
        self.assertEqual(done.returncode, 73, done.stderr)
        return done.stderr

    def test_nothing_to_wait_for(self):
        """A word of the URL that libpq does not know, and a user who may not make tables."""
        url = self.database.url()
        for name in ("sslmode", "target_session_attrs"):
            self.assertIn('invalid %s value: \\"nonsense\\"' % name,
                          self.refused("%s%s%s=nonsense" % (url, "&" if "?" in url else "?", name)))
        postgres.query(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        postgres.query(url, "CREATE ROLE weak LOGIN PASSWORD 'weak'")
        weak = re.sub("//[^@]*@", "//weak:weak@", url)
        self.assertRegex(self.refused(weak),
                         r"store: CREATE \w+ .*permission denied for schema public")
        for who, told in ((url, False), (weak, True)):
            done = run("doctor", "--store", who, "--keys", self.keys)
            self.assertEqual("this user may not make tables" in done.stdout, told, done.stdout)

    def test_no_probe_is_refused(self):
        for _ in range(STARTS):
            self.assertEqual(self.hand_over(), [])


if __name__ == "__main__":
    real.main()
