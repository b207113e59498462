"""Lives of driver resources against the scripted HyperFleet, whatever happens to them: what every
one of them must come to.
"""
import json
import time

import backends
import lib
from fleet_fake import Fake

LOST = (OSError, lib.http.client.HTTPException)
END_S = 60.0 * lib.TIME_FACTOR


class Pair:
    """The program in front of a scripted HyperFleet whose adapters report by themselves.

    away: the scripted one is down before the program starts.
    """

    def __init__(self, generation="G3", flags=(), auto_s=0.02, folder=None, url=None, away=False,
                 **kw):
        self.fake = Fake(generation, backends.ONE_ADAPTER, auto_s=auto_s, **kw)
        self.server = lib.Server("--adapters-required-cluster", "validation",
                                 "--adapters-required-nodepool", "validation",
                                 "--backend", url or self.fake.url, *backends.REMOTE_FLAGS, *flags,
                                 data=folder)
        try:
            if away:
                self.fake.down()
            self.server.start()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.fake.close()
        self.server.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def body_of(gid, version, pools):
    return lib.cluster_input(name=gid, spec={"version": version},
                             nodepools=[{"name": n, "spec": {"replicas": r}} for n, r in pools])


class Life:
    """The life of one resource: create with two nodepools; change the cluster and one nodepool,
    remove one and add one; delete. Each is polled to its end.

    step() makes one request of the orchestrator and may be called at any pace. An answer on the way
    that is no success is a failure.
    """

    PHASES = ("create", "update", "delete")
    FIRST, SECOND = [("np-0", 1), ("np-1", 1)], [("np-0", 2), ("np-2", 1)]
    MADE = {"create": 2, "update": 3, "delete": 3}

    def __init__(self, gid, phases=PHASES, faults=(), on_phase=None):
        self.gid, self.phases, self.on_phase = gid, list(phases), on_phase
        self.phase = self.cookie = None
        self.polling, self.over = False, False
        self.seen = []
        self.began = time.monotonic()

    def body(self):
        if self.phase == "create":
            return body_of(self.gid, "1", self.FIRST)
        return body_of(self.gid, "2", self.SECOND)

    def step(self, case, client, fake):
        if self.phase is None:
            self.phase = self.phases.pop(0)
            if self.on_phase is not None:
                self.on_phase(self, "begin")
        headers = {lib.COOKIE: self.cookie} if self.cookie else {}
        if self.phase == "delete":
            answer = client.delete("/" + self.gid, headers)
            wanted, final = (202, 204), 204
        else:
            answer = client.put("/" + self.gid, self.body(), headers)
            wanted, final = (200, 202), 200
        case.assertIn(answer.status, wanted, "%s of %s: %r" % (self.phase, self.gid, answer))
        self.cookie = answer.cookie or self.cookie
        if answer.status == final:
            self.settled(case, fake)
            if self.on_phase is not None:
                self.on_phase(self, "end")
            self.phase = None
            self.over = not self.phases
        elif time.monotonic() - self.began > END_S:
            case.fail("%s of %s does not end; its requests:\n%s" % (self.phase, self.gid, "\n".join(
                repr(r) for r in fake.requests() if r.gid == self.gid)))

    def settled(self, case, fake):
        """Exactly one cluster, with its nodepools as wanted; nothing was made twice, nothing
        patched twice; or nothing is left.
        """
        clusters, pools = fake.live("Cluster", self.gid), fake.live("NodePool", self.gid)
        made = [m for m in fake.made if m[2] == self.gid]
        counts = sum(m[0] == "Cluster" for m in made), sum(m[0] == "NodePool" for m in made)
        words = "%s of %s; its requests:\n%s" % (self.phase, self.gid,
                                                 "\n".join(repr(r) for r in fake.requests()
                                                           if r.gid == self.gid))
        case.assertEqual(counts, (1, self.MADE[self.phase]), "made in " + words)
        if self.phase == "delete":
            left = [r for r in list(fake.rows.values())
                    if r.labels.get("humanitec_guresid") == self.gid]
            case.assertEqual(left, [], "left by " + words)
            return
        case.assertEqual(len(clusters), 1, words)
        values = self.body()["driver"]["values"]
        case.assertEqual(clusters[0].spec, values["cluster"]["spec"], words)
        case.assertEqual(sorted((p.name, json.dumps(p.spec)) for p in pools),
                         sorted((p["name"], json.dumps(p["spec"])) for p in values["nodepools"]),
                         words)
        case.assertEqual(clusters[0].generation, 1 if self.phase == "create" else 2,
                         "generation after " + words)


def run_all(case, lives, server, fake, pace_s=0.2):
    """Steps all lives in turn until all are over. Collects what failed, by GUResID."""
    client = lib.Client(server)
    failed = {}
    open_ = list(lives)
    while open_:
        began = time.monotonic()
        for life in list(open_):
            try:
                life.step(case, client, fake)
            except AssertionError as e:
                failed[life.gid] = e
            if life.over or life.gid in failed:
                open_.remove(life)
        time.sleep(max(0.0, pace_s - (time.monotonic() - began)))
    client.close()
    return failed
