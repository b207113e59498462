"""Every fault at every request of a creation, an update and a deletion; and the answers and probes
while a fault lasts.
"""
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import time
import unittest

import backends
import lib
from fleet_fake import FAULTS, NOBODY, make_certificates, tls_context
from lives import Life, Pair, body_of, run_all

# Requests at which every fault is tried in CI; the soak tier tries each request in turn until no
# fault fires.
STEPS = ("GET clusters", "POST clusters", "GET cluster", "GET nodepools", "POST nodepools",
         "PATCH cluster", "PATCH nodepool",
         "DELETE nodepool", "DELETE cluster", "GET cluster statuses", "GET nodepool statuses")
WRITES = ("POST clusters", "POST nodepools", "PATCH cluster", "PATCH nodepool", "DELETE nodepool",
          "DELETE cluster")
SOAK = os.environ.get("HFD_SOAK") == "1"


def slug(text):
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


class Sweep(unittest.TestCase):
    """In the end exactly one live cluster with the right nodepools, and nothing made twice."""

    def play(self, trials):
        """trials: (GUResID, phase or None, [arguments of arm]). Returns GUResID -> how often its
        faults fired.
        """
        fired = {}
        with Pair() as pair:
            pair.fake.deadline_s = 2.5
            lives = []
            for gid, phase, arms in trials:
                pair.fake.gids[gid] = gid
                armed = []

                def on_phase(life, what, phase=phase, arms=arms, armed=armed):
                    if what == "begin" and phase in (None, life.phase) and not armed:
                        armed.extend(pair.fake.arm(gid=life.gid, **kw) for kw in arms)
                    elif what == "end" and (phase == life.phase or not life.phases):
                        fired[life.gid] = sum(pair.fake.disarm(f) for f in armed)
                        armed.clear()
                lives.append(Life(gid, on_phase=on_phase))
            failed = run_all(self, lives, pair.server, pair.fake)
            for gid, error in failed.items():
                with self.subTest(gid):
                    raise AssertionError("%s\nend of the log:\n%s" % (error, pair.server.tail(10)))
            self.assertEqual(pair.fake.followed, 0, "no redirect is followed")
        return fired

    def test_without_faults(self):
        """A life without faults, to compare with: it ends, and does not need many requests."""
        with Pair() as pair:
            life = Life("no-faults")
            pair.fake.gids[life.gid] = life.gid
            self.assertEqual(run_all(self, [life], pair.server, pair.fake), {})
            steps = [r.step for r in pair.fake.requests() if r.gid == life.gid]
            writes = {s: steps.count(s) for s in WRITES}
            self.assertEqual(writes,
                             {"POST clusters": 1, "POST nodepools": 3, "PATCH cluster": 1,
                              "PATCH nodepool": 1,
                                      "DELETE nodepool": 1, "DELETE cluster": 1})
            print("requests of a life without faults: %d (%s)" % (len(steps), ", ".join(
                "%d %s" % (steps.count(s), s) for s in dict.fromkeys(steps))))

    def test_each_fault_at_the_first_of_each_step(self):
        """One life for each fault: the first request of each step fails in that way."""
        trials = [("all-" + slug(name), None, [dict(name=name, step=step) for step in STEPS])
                  for name in FAULTS]
        fired = self.play(trials)
        for gid, count in fired.items():
            self.assertGreaterEqual(count, len(WRITES), "%s: the faults came" % gid)

    def test_each_fault_at_each_write(self):
        """One life for each fault and each kind of write, everything else being well."""
        trials = [("w-%s-%s" % (slug(step), slug(name)), None, [dict(name=name, step=step)])
                  for name in FAULTS for step in WRITES]
        for i in range(0, len(trials), 64):
            fired = self.play(trials[i:i + 64])
            self.assertEqual({c for c in fired.values()}, {1}, fired)

    def test_each_fault_while_many_are_watched(self):
        """20 resources in progress are looked at by lists: a list that fails in any way costs time
        and nothing else.
        """
        with Pair(auto_s=None, flags=("--remote-idle", "1m")) as pair:
            fake, client = pair.fake, lib.Client(pair.server)
            fake.deadline_s = 2.5
            gids = ["watched-%d" % i for i in range(20)]
            for gid in gids:
                self.assertEqual(client.put("/" + gid, body_of(gid, "1", Life.FIRST)).status, 202)
            lib.eventually(lambda: len(fake.rows) == 60, "all are made")
            for name in FAULTS:
                for step in ("GET clusters", "GET nodepools"):
                    fault = fake.arm(name, step=step, gid=NOBODY)
                    lib.eventually(lambda: fault.fired, "%s at %s" % (name, step), 2 * lib.WAIT_S)
                    fake.disarm(fault)
                self.assertEqual({client.get("/" + gid).status for gid in gids}, {202}, name)
            for gid in gids:
                for row in fake.live("Cluster", gid) + fake.live("NodePool", gid):
                    fake.report(row,
                                {"adapter": "validation", "observed_generation": 1,
                                 "observed_time": lib.now_text(), "conditions": [
                        {"type": t, "status": "True"} for t in ("Available", "Applied", "Health")]})
            for gid in gids:
                lib.eventually(lambda: client.get("/" + gid).status == 200, "%s is ready" % gid)
            client.close()
            self.assertEqual((len(fake.made), fake.followed), (60, 0))

    @unittest.skipUnless(SOAK, "the exhaustive variant: HFD_SOAK=1")
    def test_each_fault_at_each_request(self):
        """Each fault at the nth request of each phase, n = 1, 2, ... until it does not fire any
        more.
        """
        total = 0
        for name in FAULTS:
            for phase in Life.PHASES:
                for start in itertools.count(1, 12):
                    trials = [("n-%s-%s-%d" % (phase, slug(name), n), phase,
                               [dict(name=name, nth=n)]) for n in range(start, start + 12)]
                    fired = self.play(trials)
                    total += sum(fired.values())
                    if not all(fired.values()):
                        break
        print("faults fired: %d" % total)


def unanswered(server):
    """How many requests to the remote had no whole answer so far."""
    ops = lib.Client(server, ops=True)
    counts = re.findall(r'^hfd_remote_requests_total\{[^}]*class="none"\} (\d+)$',
                        ops.get("/metrics").body.decode(), re.M)
    ops.close()
    return sum(int(n) for n in counts)


def troubles(server):
    """The log records about trouble with the remote."""
    return [r for r in server.records() if r.get("level") in ("warn", "error") and "failure" in r]


class Lasting(unittest.TestCase):
    """A fault that lasts: what the orchestrator sees, what is logged, what is asked meanwhile; and
    all is well once it is over.
    """

    # fault -> words of which one is in a log line while it lasts
    LOGGED = {
        "lost before it is done": "no whole answer", "lost after it is done": "no whole answer",
        "reset after it is done": "no whole answer", "cut in mid-body": "no whole answer",
        "408": "408", "429 with Retry-After": "429", "500": "500", "502 with HTML": "502",
        "503": "503", "504 after it is done": "504",
        "garbage JSON": "JSON", "JSON of the wrong shape": "list", "empty body": "no body",
        "wrong content type": "else than JSON", "401": "401", "403": "403",
        "slow, not done": "in time", "slow, done": "in time", "redirect": "not a HyperFleet",
        "huge answer": "answer_max",
        "NTF-000": "not a HyperFleet",
        **{name: name[:3] for name in FAULTS if " of a proxy" in name or " of others" in name},
    }

    def one(self, name):
        """(answers seen, log lines, requests in 6 s, after the end: how long until 200)."""
        gid = "lasting-" + slug(name)
        with Pair(flags=("--remote-answer-max", "64KiB"), auto_s=0.02) as pair:
            fake, client = pair.fake, lib.Client(pair.server)
            ops = lib.Client(pair.server, ops=True)
            fake.gids[gid] = gid
            fake.deadline_s = 2.5
            more = {"size": 200000} if name == "huge answer" else {}
            fault = fake.arm(name, times=None, **more)
            seen, began = [], time.monotonic()
            self.assertEqual(client.put("/" + gid, body_of(gid, "1", Life.FIRST)).status, 202)
            asked = None

            def sure():
                """True when all is seen that it has to do; a slow machine takes longer than 6 s."""
                refused = name not in ("401", "403") or (400, "RES-103") in [s[:2] for s in seen]
                return refused and any(self.LOGGED[name] in json.dumps(r)
                                       for r in troubles(pair.server))
            while time.monotonic() - began < 6.0 or (
                    not sure() and time.monotonic() - began < lib.WAIT_S):
                if asked is None and time.monotonic() - began >= 6.0:
                    asked = len(fake.requests())
                answer = client.get("/" + gid)
                seen.append((answer.status, answer.json.get("error"),
                             answer.json.get("message", "")))
                self.assertEqual(ops.get("/readyz").status, 200, "it can accept")
                time.sleep(0.1)
            asked = len(fake.requests()) if asked is None else asked
            logged = troubles(pair.server)
            metrics = ops.get("/metrics").body.decode()
            self.assertGreater(fake.disarm(fault), 0)
            began = time.monotonic()
            life = Life(gid)
            failed = {}
            try:
                failed = run_all(self, [life], pair.server, fake)
            finally:
                client.close()
                ops.close()
            self.assertEqual(failed, {}, pair.server.tail(20))
            return seen, logged, asked, time.monotonic() - began, metrics

    def test_all(self):
        """202 all the time (401 and 403: RES-103 once it is sure), a warning that says why, and no
        storm of requests.
        """
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            results = dict(zip(FAULTS, pool.map(self.guarded, FAULTS)))
        print("fault | orchestrator | log | requests in 6 s | well after")
        for name, result in results.items():
            with self.subTest(name):
                if isinstance(result, Exception):
                    raise result
                seen, logged, asked, well, metrics = result
                statuses = sorted({(s, e) for s, e, _ in seen}, key=str)
                print("%s | %s | %s (%s) | %d | %.1f s"
                      % (name, statuses, logged[0].get("msg") if logged else "-",
                         logged[0].get("failure") if logged else "", asked, well))
                if os.environ.get("HFD_VERBOSE"):
                    print("   ", json.dumps(logged[:2]), seen[-1])
                if name in ("401", "403"):
                    self.assertIn((400, "RES-103"), statuses)
                else:
                    self.assertEqual(statuses, [(202, None)])
                self.assertTrue(any(self.LOGGED[name] in json.dumps(r) for r in logged), logged)
                self.assertLess(asked, 40, "backs off")

    def guarded(self, name):
        try:
            return self.one(name)
        except Exception as e:
            return e


class Ways(unittest.TestCase):
    """Faults that are no single answer: away, TLS, tokens, the wrong address, what others did,
    clocks.
    """

    def brought(self, pair, gid, status=200, code=None, wait_s=lib.WAIT_S):
        """Asks for it once, and polls by GET until this answer."""
        client = lib.Client(pair.server)
        try:
            self.assertIn(client.put("/" + gid, body_of(gid, "1", Life.FIRST)).status, (200, 202))

            def there():
                answer = client.get("/" + gid)
                if answer.status != status or (code is not None and answer.json["error"] != code):
                    return None
                return answer
            return lib.eventually(there, "%s is answered %d %s; the log:\n%s"
                                  % (gid, status, code, pair.server.tail(8)), wait_s, 0.1)
        finally:
            client.close()

    def waits(self, pair, gid, why):
        """An order that cannot be carried out: it is tried, the log says why not, and the answer is
        202.
        """
        client = lib.Client(pair.server)
        before = unanswered(pair.server)
        self.assertEqual(client.put("/" + gid, body_of(gid, "1", Life.FIRST)).status, 202)
        lib.eventually(lambda: unanswered(pair.server) > before + 1, "it was tried again and again")
        lib.eventually(lambda: re.search(why, json.dumps(troubles(pair.server))), "it is said")
        self.assertEqual(client.get("/" + gid).status, 202)
        client.close()

    def test_away(self):
        """Down before the start, and down again in between: 202 meanwhile, and all comes to its
        end.
        """
        # Down before the program starts. Otherwise the listener would close on a request that is on
        # its way, and reset it. The log names a trouble once, and would then not name the
        # connecting.
        with Pair(away=True) as pair:
            client = lib.Client(pair.server)
            self.waits(pair, "away", "connect")
            pair.fake.up()
            self.brought(pair, "away")
            self.assertEqual(len(pair.fake.made), 3)
            pair.fake.down()
            self.assertEqual(client.get("/away").status, 200, "what is ready stays ready")
            before = unanswered(pair.server)
            self.assertEqual(client.delete("/away").status, 202)
            lib.eventually(lambda: unanswered(pair.server) > before + 1,
                           "it was tried again and again")
            self.assertEqual(client.get("/away").status, 202)
            pair.fake.up()
            lib.eventually(lambda: client.delete("/away").status == 204, "gone")
            client.close()
            self.assertEqual(pair.fake.rows, {})

    def test_deadline_tells_the_reason(self):
        """A remote that is down until the deadline: RES-105 says so in the operator's words."""
        with Pair(flags=("--driver-deadline-create", "2s")) as pair:
            pair.fake.down()
            message = self.brought(pair, "late", 400, "RES-105").json["message"]
            self.assertRegex(message, r"(?i)connect|reach|answer")
            self.assertIn("late", message)

    def test_wrong_address(self):
        """A base URL that is not HyperFleet's: 202 until the deadline, loud in the log, shown in
        the metrics; readyz stays 200.
        """
        with Pair("G3.1", flags=("--driver-deadline-create", "2s")) as probe:
            wrong = probe.fake.url + "some/proxy"
            with Pair(url=wrong, flags=("--driver-deadline-create", "2s")) as pair:
                self.brought(pair, "astray", 400, "RES-105")
                lib.eventually(lambda: "not a HyperFleet" in json.dumps(troubles(pair.server)),
                               "it is said")
                ops = lib.Client(pair.server, ops=True)
                self.assertEqual(ops.get("/readyz").status, 200)
                ops.close()
            self.assertEqual(probe.fake.made, [])

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl program")
    def test_tls(self):
        """A certificate of an unknown CA or for another name is refused, and said so; the right CA
        works; a client certificate is shown.
        """
        with backends.Folder() as folder:
            make_certificates(folder)
            ca = ("--remote-ca-file", folder + "/ca.pem")
            mine = ("--remote-cert-file", folder + "/client.pem", "--remote-key-file",
                    folder + "/client.key")
            for name, cert, client_ca, flags, works in (
                    ("unknown-ca", "server", None, ("--remote-ca-file", folder + "/other-ca.pem"),
                     False),
                    ("other-name", "wrong", None, ca, False), ("right", "server", None, ca, True),
                    ("no-client-cert", "server", "ca.pem", ca, False),
                    ("client-cert", "server", "ca.pem", ca + mine, True)):
                with self.subTest(name), Pair(flags=flags,
                                              tls=tls_context(folder, cert, client_ca)) as pair:
                    if works:
                        self.brought(pair, name)
                    else:
                        self.waits(pair, name, r"(?i)certificate|tls|ssl|alert")
                        self.assertEqual(pair.fake.made, [])

    def test_token_is_read_again(self):
        """A bearer token that expired (401): after the file has another, all goes on, without a
        restart and without failing.
        """
        with backends.Folder() as folder:
            path = backends.write(folder, "token", "old\n")
            with Pair(flags=("--remote-token-file", path), tokens={"old"}) as pair:
                self.brought(pair, "first")
                pair.fake.tokens = {"new"}
                backends.write(folder, "token", "new\n")
                self.brought(pair, "second")
                self.assertNotIn("old", "\n".join(pair.server.lines))
                sent = {r.headers.get("authorization") for r in pair.fake.requests()}
                self.assertEqual(sent, {"Bearer old", "Bearer new"})

    def test_refused_for_good(self):
        """403 for all: a creation fails with RES-103; a new attempt after it is mended works; a
        deletion goes on until its deadline.
        """
        with Pair(tokens={"t"}, flags=("--driver-deadline-delete", "3s")) as pair:
            self.brought(pair, "refused", 400, "RES-103")
            pair.fake.tokens = None
            self.brought(pair, "refused")
            pair.fake.tokens = {"t"}
            client = lib.Client(pair.server)
            self.assertEqual(client.delete("/refused").status, 202)
            answer = lib.eventually(lambda: (lambda a: a if a.status == 400
                                             else None)(client.get("/refused")), "the deadline")
            self.assertIn(answer.json["error"], ("RES-103", "RES-105"))
            self.assertRegex(answer.json["message"], r"(?i)401|credential|token|refuse")
            pair.fake.tokens = None
            lib.eventually(lambda: client.delete("/refused").status == 204,
                           "gone once it is mended")
            client.close()

    def test_soft_deleted_twin(self):
        """A twin of the same name and label that is being deleted is not adopted: another is made,
        and the twin is left alone.
        """
        with Pair() as pair:
            pair.fake.auto_s = None
            twin = pair.fake.add("Cluster", "twin", {"humanitec_guresid": "twin"}, {"version": "1"},
                                 deleted=True)
            pair.fake.auto_s = 0.02
            self.brought(pair, "twin")
            self.assertEqual([m[0] for m in pair.fake.made],
                             ["Cluster", "Cluster", "NodePool", "NodePool"])
            self.assertEqual((pair.fake.rows[twin.id].generation,
                              len(pair.fake.live("Cluster", "twin"))), (2, 1))

    def test_clock_skew(self):
        """A remote whose clock is an hour off, in both directions."""
        for skew in (-3600, 3600):
            with self.subTest(skew), Pair(skew_s=skew) as pair:
                life = Life("skew")
                self.assertEqual(run_all(self, [life], pair.server, pair.fake), {})

    def test_nodepool_gone_behind_our_back(self):
        """A nodepool that another client removed: the resource fails with that reason, and the next
        PUT makes it again.
        """
        with Pair() as pair:
            self.brought(pair, "holes")
            pair.fake.remove(pair.fake.live("NodePool", "holes")[0].id)
            client = lib.Client(pair.server)

            def noticed():
                answer = client.get("/holes")
                return answer.status == 400 or answer.json["resource"]["values"][
                    "health"] != "Healthy"
            lib.eventually(noticed, "the hole is seen")
            client.close()
            self.brought(pair, "holes")
            self.assertEqual(len(pair.fake.live("NodePool", "holes")), 2)
            self.assertEqual(len([m for m in pair.fake.made if m[0] == "Cluster"]), 1)

    def test_cluster_gone_while_creating(self):
        """A cluster that vanishes between two requests of its creation: 400 RES-104, and the next
        PUT makes another.
        """
        with Pair() as pair:
            gate = pair.fake.block(1, False)
            client = lib.Client(pair.server)
            self.assertEqual(client.put("/vanish", body_of("vanish", "1", Life.FIRST)).status, 202)
            self.assertTrue(gate.reached.wait(lib.WAIT_S))
            pair.fake.auto_s = None
            pair.fake.unblock()
            row = lib.eventually(lambda: pair.fake.live("Cluster", "vanish"), "made")[0]
            pair.fake.remove(row.id)
            pair.fake.auto_s = 0.02
            answer = lib.eventually(lambda: (lambda a: a if a.status != 202
                                             else None)(client.get("/vanish")), "it is noticed")
            self.assertEqual((answer.status, answer.json["error"]), (400, "RES-104"))
            client.close()
            self.brought(pair, "vanish")
            self.assertEqual(len(pair.fake.live("Cluster", "vanish")), 1)


if __name__ == "__main__":
    unittest.main(defaultTest=os.environ.get("HFD_TEST") or None)
