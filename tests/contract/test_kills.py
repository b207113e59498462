"""kill -9 of the driver between any two requests, and of the remote; two drivers on one remote; a
store that is lost.
"""
import concurrent.futures
import os
import shutil
import time
import unittest

import backends
import lib
from fleet_fake import Fake
from lives import Life, Pair, body_of, run_all

SOAK = os.environ.get("HFD_SOAK") == "1"
FLAGS = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool", "validation")


class Driver(lib.Case):
    """The checks of lib.Case for a server of one's own."""

    def __init__(self, server):
        super().__init__()
        self.server, self.client = server, lib.Client(server)

    def until(self, status, method, gid, body=None, cookie=None, through=(202,)):
        def arrived():
            if method == "PUT":
                answer = self.put(gid, body, cookie)
            else:
                answer = (self.get if method == "GET" else self.delete)(gid, cookie)
            if answer.status == status:
                return answer
            self.assertIn(answer.status, through, repr(answer))
            return None
        return lib.eventually(arrived, "%s of %s is %d; the log:\n%s"
                              % (method, gid, status, self.server.tail(6)), every_s=0.1)


class Kills(unittest.TestCase):
    """After the restart exactly one cluster for each GUResID, and the operation ends as if nothing
    had happened.
    """

    def phase(self, phase):
        """Kills at the nth request of this phase, for n = 1, 2, ... until the phase has no nth
        request.

        The kill comes before the request or after it is done (the soak tier: both).
        """
        kills, missed = [], 0
        with Pair() as pair:
            for n in range(1, 60):
                reached = False
                for done_first in (False, True) if SOAK else (n % 2 == 0,):
                    gid = "kill-%s-%d-%s" % (phase, n, "after" if done_first else "before")
                    pair.fake.gids[gid] = gid
                    before = Life(gid, Life.PHASES[:Life.PHASES.index(phase)])
                    if before.phases:
                        self.assertEqual(run_all(self, [before], pair.server, pair.fake, 0.05), {})
                    if self.kill_at(pair, gid, phase, n, done_first, before.cookie):
                        reached = True
                        kills.append(gid)
                missed = 0 if reached else missed + 1
                if missed == 3:  # some may have ended early
                    return kills
        self.fail("no end of requests")
        return None

    def kill_at(self, pair, gid, phase, n, done_first, cookie):
        gate = pair.fake.block(n, done_first, gid)
        life = Life(gid, (phase,))
        life.cookie = cookie
        client = lib.Client(pair.server)
        end = time.monotonic() + lib.WAIT_S
        while not gate.reached.is_set() and not life.over and time.monotonic() < end:
            life.step(self, client, pair.fake)
            gate.reached.wait(0.1)
        client.close()
        if gate.reached.is_set():
            pair.server.kill9()
            pair.fake.unblock()
            pair.server.start()
        pair.fake.unblock()
        rest = Life(gid, Life.PHASES[Life.PHASES.index(phase):])
        rest.cookie = life.cookie
        if not life.over or phase != "delete":
            self.assertEqual(run_all(self, [rest], pair.server, pair.fake, 0.05), {},
                             pair.server.tail(10))
        return gate.reached.is_set()

    def test_driver(self):
        """Between any two requests of a creation, an update and a deletion."""
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for phase, kills in zip(Life.PHASES, pool.map(self.phase, Life.PHASES)):
                print("%s: %d kills" % (phase, len(kills)))
                # a deletion: GET, DELETE, and the GET that finds it gone already
                self.assertGreaterEqual(len(kills), 3)

    def test_many_at_once(self):
        """20 resources at different points of their lives, the driver killed five times meanwhile.
        """
        with Pair() as pair:
            lives = [Life("crowd-%d" % i) for i in range(20)]
            for life in lives:
                pair.fake.gids[life.gid] = life.gid
            client = lib.Client(pair.server)
            for turn in range(5):
                for i, life in enumerate(lives):
                    if not life.over and i <= turn * 5:
                        life.step(self, client, pair.fake)
                time.sleep(0.3)
                pair.server.restart()
            client.close()
            self.assertEqual(run_all(self, [x for x in lives if not x.over], pair.server,
                                     pair.fake), {})

    def test_remote(self):
        """kill -9 of the remote, another instance of the program with its own data, while 12
        resources are made, changed and deleted.
        """
        port = lib.free_port()

        class Remote(lib.Server):
            def command(self):
                return [c if c != "127.0.0.1:0" or i != 3 else "127.0.0.1:%d" % port for i,
                        c in enumerate(super().command())]

        with Remote(*FLAGS) as remote, lib.Server(*FLAGS, "--backend", "http://127.0.0.1:%d/"
                                                  % port, *backends.REMOTE_FLAGS) as server:
            player = backends.Player(lib.Client(remote), backends.ONE_ADAPTER)
            driver = Driver(server)
            gids = ["remote-%d" % i for i in range(12)]
            for version in ("1", "2"):
                for i, gid in enumerate(gids):
                    self.assertEqual(driver.put(gid, body_of(gid, version, Life.FIRST)).status, 202)
                    if i % 4 == 1:
                        remote.restart()
                for gid in gids:
                    player.wanted(gid, body_of(gid, version, Life.FIRST))
                    player.ready(gid)
                remote.restart()
                for gid in gids:
                    driver.until(200, "GET", gid)
                    self.assertEqual([len(x) for x in player.of(gid)], [1, 2], gid)
            for i, gid in enumerate(gids):
                self.assertEqual(driver.delete(gid).status, 202)
                if i % 4 == 1:
                    remote.restart()
            for gid in gids:
                player.deleting(gid)
                player.finish_delete(gid)
            for gid in gids:
                driver.until(204, "DELETE", gid)
                self.assertEqual(player.of(gid), ([], []))
            driver.client.close()
            player.client.close()


class Others(unittest.TestCase):
    """Another server on the same remote, and a store that was lost."""

    def setUp(self):
        self.fake = Fake("G3", backends.ONE_ADAPTER, auto_s=0.02)
        self.addCleanup(self.fake.close)

    def driver(self, keys=None):
        flags = ("--keys", keys) if keys else ()
        server = lib.Server(*FLAGS, "--backend", self.fake.url, *backends.REMOTE_FLAGS, *flags)
        self.addCleanup(server.close)
        server.start()
        driver = Driver(server)
        self.addCleanup(driver.client.close)
        return driver

    def keys_of(self, driver):
        """A copy of its key ring."""
        folder = backends.Folder()
        path = os.path.join(folder.__enter__(), "keys")
        self.addCleanup(folder.__exit__)
        shutil.copy(os.path.join(driver.server.data, "keys"), path)
        return path

    def quiet(self, gid, seconds=4.0):
        """Expects that no request writes any more: neither generations nor rows change."""
        state = lambda: sorted((r.id, r.generation, str(r.labels))
                               for r in list(self.fake.rows.values()))
        writes = lambda: [r for r in self.fake.requests() if r.method != "GET"]
        before, count, end = state(), len(writes()), time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(state(), before, "%s is fought over" % gid)
        self.assertEqual([repr(r) for r in writes()[count:]], [])

    def test_two_stores_one_key_ring(self):
        """A standby with the same keys and another store: it adopts what is there, and the two do
        not fight.
        """
        one = self.driver()
        body = body_of("shared", "1", Life.FIRST)
        cookie = one.put("shared", body).cookie
        one.until(200, "GET", "shared")
        two = self.driver(self.keys_of(one))
        self.assertIn(two.put("shared", body).status, (200, 202))
        two.until(200, "PUT", "shared", body, cookie)
        self.assertEqual(len(self.fake.made), 3)
        body2 = body_of("shared", "2", Life.SECOND)
        self.assertEqual(two.put("shared", body2, cookie).status, 202)
        two.until(200, "PUT", "shared", body2)
        self.quiet("shared")
        row = self.fake.live("Cluster", "shared")[0]
        self.assertEqual((row.spec, row.generation), ({"version": "2"}, 2))
        self.assertIn(one.get("shared").status, (200, 400))
        self.assertEqual(two.get("shared").status, 200)
        self.assertEqual(len([m for m in self.fake.made if m[0] == "Cluster"]), 1)

    def test_both_make_it_at_once(self):
        """Two with the same keys are told to make the same at the same moment: one cluster."""
        one = self.driver()
        two = self.driver(self.keys_of(one))
        gids = ["race-%d" % i for i in range(8)]
        for gid in gids:
            for d in (one, two):
                self.assertEqual(d.put(gid, body_of(gid, "1", Life.FIRST)).status, 202)
        for gid in gids:
            for d in (one, two):
                d.until(200, "GET", gid)
            self.assertEqual((len(self.fake.live("Cluster", gid)),
                              len(self.fake.live("NodePool", gid))), (1, 2), gid)
        self.quiet("race", 2.5)

    def test_two_key_rings(self):
        """A stranger's server: RES-101 that says whose it is; it neither changes nor removes what
        is not its own.
        """
        one, two = self.driver(), self.driver()
        body = body_of("mine", "1", Life.FIRST)
        cookie = one.put("mine", body).cookie
        one.until(200, "GET", "mine")
        self.assertEqual(two.put("mine", body_of("mine", "9", Life.SECOND)).status, 202)
        answer = two.until(400, "GET", "mine")
        self.assertEqual(answer.json["error"], "RES-101")
        self.assertRegex(answer.json["message"], r"(?i)another|other|owner|belongs")
        two.until(204, "DELETE", "mine")
        self.quiet("mine")
        self.assertEqual((len(self.fake.made), self.fake.live("Cluster", "mine")[0].spec),
                         (3, {"version": "1"}))
        self.assertEqual(one.put("mine", body, cookie).status, 200)
        self.assertEqual(two.put("mine", body, cookie).json["error"], "RES-102")

    def test_lost_store(self):
        """An empty store, the same keys, and the orchestrator's cookie: GET, PUT and DELETE answer
        as before; nothing is made anew.
        """
        for state in ("ready", "creating"):
            for op in ("GET", "PUT", "DELETE"):
                with self.subTest(state=state, op=op):
                    self.fake.auto_s = 0.02 if state == "ready" else None
                    one = self.driver()
                    gid = "lost-%s-%s" % (state, op.lower())
                    body = body_of(gid, "1", Life.FIRST)
                    cookie = one.put(gid, body).cookie
                    lib.eventually(lambda: len(self.fake.live("NodePool", gid)) == 2, "made")
                    if state == "ready":
                        one.until(200, "GET", gid)
                    keys, made = self.keys_of(one), len(self.fake.made)
                    one.server.kill9()
                    two = self.driver(keys)
                    if op == "GET":
                        self.assertIn(two.get(gid, cookie).status, (200, 202))
                    elif op == "PUT":
                        self.assertIn(two.put(gid, body, cookie).status, (200, 202))
                    if op != "DELETE" and state == "ready":
                        two.until(200, op, gid, body, cookie)
                    if op == "PUT" and state == "ready":
                        self.assertEqual(two.put(gid, body, cookie).status, 200)
                    self.assertEqual(len(self.fake.made), made, "nothing is made anew")
                    self.fake.auto_s = 0.02
                    self.assertIn(two.delete(gid, cookie).status, (202,))
                    two.until(204, "DELETE", gid, cookie=cookie)
                    self.assertEqual([r for r in self.fake.rows.values()
                                      if r.labels.get("humanitec_guresid") == gid], [])

    def test_lost_store_nodepool(self):
        """The same for a nodepool of its own."""
        one = self.driver()
        one.put("home", lib.cluster_input(name="home"))
        one.until(200, "GET", "home")
        body = lib.nodepool_input(cluster_id=self.fake.live("Cluster", "home")[0].id, name="guest")
        cookie = one.put("guest", body).cookie
        one.until(200, "GET", "guest")
        keys = self.keys_of(one)
        one.server.kill9()
        two = self.driver(keys)
        two.until(200, "GET", "guest", cookie=cookie)
        self.assertEqual(two.put("guest", body, cookie).status, 200)
        self.assertEqual(two.delete("guest", cookie).status, 202)
        two.until(204, "DELETE", "guest", cookie=cookie)
        self.assertEqual(len(self.fake.live("Cluster", "home")), 1)


if __name__ == "__main__":
    unittest.main(defaultTest=os.environ.get("HFD_TEST") or None)
