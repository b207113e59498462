"""The driver contract as scenarios that know no backend: the same inputs everywhere, and a
transcript of the answers.

A transcript has no ids, times and cookies in it, but tokens for them, by first appearance: what was
equal stays equal. A remote may need a few polls more than the embedded HyperFleet, which must have
its answer at the first; that is the only difference.
"""
import contextlib
import re
import time

import lib
from lib import CELLS, OPS, STATES, changed, cluster_input, nodepool_input

ID = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b2[0-9a-v]{31}\b"
    r"|\b2[0-9A-Za-z]{26}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
# by then a remote has been observed, which is invisible from outside
SETTLE_S = 1.5 * lib.TIME_FACTOR
OUTPUTS = """
driver:
  outputs:
    values:
      api_url: hypershift:/api/url
      whole: hypershift:/api
      second_zone: hypershift:/zones/1
      not_there: hypershift:/nowhere/at/all
    secrets:
      kubeconfig: hypershift:/secrets/kubeconfig
"""
# The groups of scenarios, and the flags of the program that plays a group. Each deadline has a
# program of its own, so that its scenario can restart it with another one. The deadline of a
# creation is long enough for a busy machine to make the cluster.
GROUPS = {"main": (), "creation": ("--driver-deadline-create", "4s"), "update": (), "deletion": ()}
SHORT = "2s"
SCENARIOS = {group: [] for group in GROUPS}


def scenario(group="main", deletes=True, same=lambda backend: True):
    """Registers a scenario. deletes: it needs a HyperFleet that can DELETE; same: whether its
    transcript is the embedded one's.
    """
    def add(fn):
        fn.deletes, fn.same = deletes, same
        SCENARIOS[group].append(fn)
        return fn
    return add


def pools(*names, **spec):
    return [{"name": n, "spec": dict({"replicas": 1}, **spec)} for n in names]


class Run(lib.Case):
    """One scenario on one backend."""

    def __init__(self, backend, name):
        super().__init__()
        self.backend, self.name = backend, name
        self.server, self.flags = backend.server, list(backend.server.flags)
        self.client = lib.Client(backend.server)
        self.fleet = backend.player()
        self.transcript, self.tokens, self.count, self.quiet = [], {}, 0, False

    def close(self):
        self.client.close()
        self.fleet.client.close()

    def gid(self, hint="r"):
        """The same name on every backend."""
        self.count += 1
        return "%s-%s-%d" % (self.name.replace("_", "-"), hint.replace(" ", "-"), self.count)

    def restart(self, *flags):
        """Restarts the program on its data, with these flags and those it was opened with."""
        self.server.flags = self.flags + list(flags)
        self.server.restart()

    # The transcript -------------------------------------------------------------------------------

    def token(self, kind, value):
        return self.tokens.setdefault((kind, value), "<%s %d>"
                                      % (kind, sum(k == kind for k, _ in self.tokens) + 1))

    def plain(self, doc):
        if isinstance(doc, dict):
            # A remote takes an order up later: until then a hint has other words than embedded.
            return {k: "<waits>" if k == "message" and "timeout_deadline" in doc
                    else self.plain(v) for k, v in doc.items()}
        if isinstance(doc, list):
            return [self.plain(v) for v in doc]
        if isinstance(doc, str):
            return TIME.sub("<time>", ID.sub(lambda m: self.token("id", m.group(0)), doc))
        return doc

    def note(self, answer):
        if not self.quiet:
            cookie = answer.cookie
            self.transcript.append([answer.method, answer.path, answer.status,
                                    self.plain(answer.json) if answer.body else None,
                                    self.token("cookie", cookie) if cookie else cookie])
        return answer

    def put(self, *a, **kw):
        return self.note(super().put(*a, **kw))

    def get(self, *a, **kw):
        return self.note(super().get(*a, **kw))

    def delete(self, *a, **kw):
        return self.note(super().delete(*a, **kw))

    def operate(self, op, gid, body=None, cookie=None):
        if op == "PUT different":
            body = changed(body)
        if op.startswith("PUT"):
            return self.put(gid, body, cookie)
        return self.get(gid, cookie) if op == "GET" else self.delete(gid, cookie)

    # Waiting --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def quietly(self):
        """Keeps the answers of its body out of the transcript."""
        before, self.quiet = self.quiet, True
        try:
            yield
        finally:
            self.quiet = before

    def until(self, status, op, gid, body=None, cookie=None, code=None, through=(202,), late=False):
        """
        Polls until this status; only the last answer goes into the transcript. On the way only
        `through` is to be seen. late: time has to pass, on every backend.
        """
        polls = 0

        def arrived():
            nonlocal polls
            polls += 1
            answer = self.operate(op, gid, body, cookie)
            if answer.status == status:
                return answer
            self.assertIn(answer.status, through, "%s on the way to %d" % (op, status))
            self.assertTrue(late or polls < self.backend.polls,
                            "%s is answered %d at once, not %d" % (op, status, answer.status))
            return None
        with self.quietly():
            answer = lib.eventually(arrived, "%s of %s is answered %d" % (op, gid, status),
                                    every_s=0.1)
        self.note(answer)
        if code is not None:
            self.assertEqual(answer.json.get("error"), code)
        return answer

    def hold(self, status, op, gid, body=None, cookie=None, code=None):
        """Expects this answer until every report has been observed, and then once more."""
        if self.backend.remote:
            end = time.monotonic() + SETTLE_S
            with self.quietly():
                while time.monotonic() < end:
                    self.expect(self.operate(op, gid, body, cookie), status, code)
                    time.sleep(0.1)
        return self.expect(self.operate(op, gid, body, cookie), status, code)

    def gone_or(self, status, gid, cookie):
        with self.quietly():
            self.assertIn(self.get(gid, cookie).status, (404, status))

    # Walks ----------------------------------------------------------------------------------------

    def created(self, body=None, gid=None):
        """A resource in state creating that HyperFleet has."""
        gid = gid or self.gid()
        body = body or cluster_input(nodepools=pools("np-0"))
        cookie = self.expect(self.put(gid, body), 202).cookie
        self.fleet.wanted(gid, body)
        return gid, body, cookie

    def brought_ready(self, body=None, gid=None):
        gid, body, cookie = self.created(body, gid)
        self.fleet.ready(gid)
        self.until(200, "GET", gid, cookie=cookie)
        return gid, body, cookie

    def updated(self, gid, body, cookie):
        """A change that HyperFleet has."""
        cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        self.fleet.wanted(gid, body)
        return cookie

    def removed(self, gid, cookie=None):
        self.expect(self.delete(gid, cookie), 202)
        self.finish_delete(gid)
        self.until(204, "DELETE", gid, cookie=cookie)

    def finish_delete(self, gid):
        self.fleet.deleting(gid)
        self.fleet.finish_delete(gid)

    def fail_for_good(self, gid, reason="QuotaExceeded", message="no more than 3 clusters here",
                      **kw):
        return self.fleet.accepted(self.fleet.cluster_of(gid), "validation", available=False,
                                   reason=reason, message=message, **kw)

    def in_state(self, state, settled=True):
        """A new resource in a state. settled: HyperFleet has what was asked for last; else it may
        only be on its way.
        """
        gid, body = self.gid(state), cluster_input(nodepools=pools("np-0"))
        if state == "absent":
            return gid, body, None
        if state == "creating" and not settled:
            return gid, body, self.expect(self.put(gid, body), 202).cookie
        if state in ("creating", "failed"):
            gid, body, cookie = self.created(body, gid)
            if state == "failed":
                self.fail_for_good(gid)
                self.until(400, "GET", gid, cookie=cookie, code="RES-104")
            return gid, body, cookie
        gid, body, cookie = self.brought_ready(body, gid)
        if state == "updating":
            body = changed(body)
            if settled:
                cookie = self.updated(gid, body, cookie)
            else:
                cookie = self.expect(self.put(gid, body, cookie), 202).cookie
        elif state == "deleting":
            self.expect(self.delete(gid, cookie), 202)
            if settled:
                self.fleet.deleting(gid)
        return gid, body, cookie


# The tables ---------------------------------------------------------------------------------------

def cell(r, state, op, settled, with_cookie):
    gid, body, cookie = r.in_state(state, settled)
    status, hint, afterwards = CELLS[state, op]
    answer = r.expect(r.operate(op, gid, body, cookie if with_cookie else None), status)
    if hint is not None:
        r.check_hint(answer.json, hint)
    unchanged = op == "PUT same" and state in ("creating", "updating", "ready")
    if unchanged or (status == 409 and state == "creating"):
        r.assertEqual(answer.cookie, cookie, "the cookie stays byte for byte while nothing changes")
    wanted = changed(body) if op == "PUT different" and status != 409 else body
    if afterwards == "deleting" and not settled and state == "creating" and r.backend.remote:
        r.gone_or(202, gid, cookie)  # what was never made is gone at once
        return
    seen = r.get(gid, answer.cookie or (cookie if with_cookie else None))
    r.expect(seen, {"absent": 404, "ready": 200, "failed": 400}.get(afterwards, 202),
             "RES-104" if afterwards == "failed" else None)
    if seen.status == 202:
        r.check_hint(seen.json, afterwards)
    if afterwards in ("creating", "updating", "ready"):
        r.fleet.wanted(gid, wanted)
        r.assertEqual([len(parts) for parts in r.fleet.of(gid)], [1, 1],
                      "one cluster with its one nodepool")
    elif afterwards == "deleting" and r.backend.deletes:
        r.fleet.deleting(gid)
    elif afterwards == "absent":
        r.assertEqual(r.fleet.of(gid), ([], []))


def cells(state, op, settled, with_cookie):
    def run(r):
        cell(r, state, op, settled, with_cookie)
    # A deletion where HyperFleet cannot delete is a scenario of its own.
    same = lambda backend: not (backend.remote and state == "creating" and op == "DELETE"
                                and not settled)
    run.__name__ = "%s_%s%s%s" % (state, op.replace(" ", "_"), "" if settled else "_at_once",
                                  "" if with_cookie else "_without_cookie")
    scenario(deletes=state == "deleting" or op == "DELETE" and state != "absent", same=same)(run)


for _state in STATES:
    for _op in OPS:
        cells(_state, _op, True, True)
        cells(_state, _op, True, False)
        if _state in ("creating", "updating", "deleting"):
            cells(_state, _op, False, True)


@scenario()
def life(r):
    """One life, polled by GET, to the end; then again under the same GUResID, with another cookie
    and another cluster.
    """
    gid, body, cookie = r.brought_ready()
    first = r.fleet.cluster_of(gid)["id"]
    r.expect(r.put(gid, body, cookie), 200)
    body = changed(body)
    cookie = r.updated(gid, body, cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid, cookie=cookie)
    r.expect(r.delete(gid, cookie), 202)
    r.finish_delete(gid)
    r.until(404, "GET", gid, cookie=cookie)
    r.expect(r.delete(gid, cookie), 204)
    r.expect(r.get(gid, cookie), 404)
    again = r.expect(r.put(gid, body, cookie), 202).cookie
    r.assertNotEqual(again, cookie)
    r.fleet.wanted(gid, body)
    r.assertNotEqual(r.fleet.cluster_of(gid)["id"], first)
    r.fleet.ready(gid)
    r.until(200, "GET", gid, cookie=cookie)
    r.assertEqual(r.expect(r.put(gid, body, cookie), 200).cookie, again)


@scenario(deletes=False)
def polled_by_put(r):
    """A repeated PUT is a poll; every part and every adapter is needed."""
    gid, body, cookie = r.created()
    clusters, nodepools = r.fleet.of(gid)
    parts = [(part, a) for part in clusters + nodepools for a in r.fleet.required[part["kind"]]]
    for part, adapter in parts[:-1]:
        r.fleet.accepted(part, adapter)
    r.hold(202, "PUT same", gid, body, cookie)
    r.fleet.accepted(*parts[-1])
    for _ in range(2):
        r.assertEqual(r.until(200, "PUT same", gid, body, cookie).cookie, cookie)


@scenario()
def polled_by_delete(r):
    """A repeated DELETE is a poll, and changes nothing in HyperFleet."""
    gid, _, cookie = r.brought_ready()
    timeout = r.expect(r.delete(gid, cookie), 202).json["timeout"]
    r.fleet.deleting(gid)
    before = [(p["id"], p["generation"]) for parts in r.fleet.of(gid) for p in parts]
    r.assertEqual(r.hold(202, "DELETE", gid, cookie=cookie).json["timeout"], timeout)
    r.assertEqual([(p["id"], p["generation"]) for parts in r.fleet.of(gid) for p in parts], before)
    r.fleet.finish_delete(gid)
    for _ in range(2):
        r.until(204, "DELETE", gid, cookie=cookie)


@scenario(deletes=False)
def cookies(r):
    """Byte-stable while nothing changes; given again when it was lost; forged, cut, of another
    resource: RES-102 and nothing changes.
    """
    gid, body, cookie = r.created()
    other, _, others = r.created()
    for given in (cookie, None, ""):
        r.assertEqual(r.expect(r.put(gid, body, given), 202).cookie, cookie)
    r.assertEqual(r.expect(r.put(gid, changed(body), cookie), 409).cookie, cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)
    r.assertEqual(r.expect(r.put(gid, body), 200).cookie, cookie)
    for forged in ("forged", cookie[:-1], cookie + "A",
                   cookie[:40] + ("A" if cookie[40] != "A" else "B") + cookie[41:], others):
        for op in ("PUT same", "GET", "DELETE"):
            r.expect(r.operate(op, gid, body, forged), 400, "RES-102")
    r.assertEqual(r.expect(r.put(gid, body, cookie), 200).cookie, cookie)
    newer = r.updated(gid, changed(body), cookie)
    r.assertNotEqual(newer, cookie)
    r.assertEqual(r.expect(r.put(gid, changed(body), cookie), 202).cookie, newer,
                  "an older cookie is behind what is stored")


@scenario()
def cookie_of_an_earlier_life(r):
    """It counts as none."""
    gid, body, old = r.brought_ready()
    r.removed(gid, old)
    r.expect(r.get(gid, old), 404)
    r.expect(r.delete(gid, old), 204)
    cookie = r.expect(r.put(gid, body, old), 202).cookie
    r.assertNotEqual(cookie, old)
    r.expect(r.get(gid, old), 202)
    r.assertEqual(r.expect(r.put(gid, body, old), 202).cookie, cookie)


@scenario(deletes=False)
def hints(r):
    """The deadline is fixed per operation; a re-target begins another."""
    gid, body, cookie = r.created()
    first = r.expect(r.get(gid, cookie), 202).json["timeout"]
    r.assertEqual(r.hold(202, "PUT same", gid, body, cookie).json["timeout"], first)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)
    cookie = r.updated(gid, changed(body), cookie)
    second = r.check_hint(r.expect(r.get(gid, cookie), 202).json, "updating")
    r.assertIsNone(second)


# Change -------------------------------------------------------------------------------------------

@scenario()
def nodepools_change(r):
    """Nodepools added, removed, changed and left alone in one update; ready when the new ones are
    and the old one has gone.
    """
    gid, body, cookie = r.brought_ready(cluster_input(nodepools=pools("keep", "change", "drop")))
    before = {p["name"]: p["id"] for p in r.fleet.live(gid)[1]}
    body = cluster_input(nodepools=pools("fresh") + pools("change", machine="large")
                         + pools("keep"))
    cookie = r.updated(gid, body, cookie)
    r.assertEqual(r.fleet.cluster_of(gid)["generation"], 1)
    after = {p["name"]: (p["id"], p["generation"]) for p in r.fleet.live(gid)[1]}
    r.assertEqual(after["keep"], (before["keep"], 1))
    r.assertEqual(after["change"], (before["change"], 2))
    r.fleet.ready(gid)
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.finish_pools(gid, ["drop"])
    r.until(200, "GET", gid, cookie=cookie)
    r.assertEqual(r.expect(r.put(gid, body, cookie), 200).cookie, cookie)


@scenario()
def all_nodepools_away_and_back(r):
    """Without any, then with one of the same name again: another nodepool."""
    gid, body, cookie = r.brought_ready(cluster_input(nodepools=pools("one")))
    first = r.fleet.live(gid)[1][0]["id"]
    cookie = r.updated(gid, cluster_input(nodepools=[]), cookie)
    r.fleet.finish_pools(gid, ["one"])
    r.until(200, "GET", gid)
    cookie = r.updated(gid, body, cookie)
    r.assertNotEqual(r.fleet.live(gid)[1][0]["id"], first)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)


@scenario(deletes=False)
def only_nodepools_are_added(r):
    """An update that a HyperFleet without DELETE and without PATCH of nodepools can do; the
    cluster's generation stays.
    """
    gid, body, cookie = r.brought_ready(cluster_input(nodepools=pools("one")))
    body = cluster_input(nodepools=pools("one", "two", "three"))
    cookie = r.updated(gid, body, cookie)
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid, cookie=cookie)
    r.assertEqual(r.fleet.cluster_of(gid)["generation"], 1)


@scenario(deletes=False)
def retarget(r):
    """While updating another PUT re-targets; the last one counts; back to the first input is a
    re-target too.
    """
    gid, body, cookie = r.in_state("updating")
    again = changed(body)
    newer = r.updated(gid, again, cookie)
    r.assertNotEqual(newer, cookie)
    cluster = r.fleet.cluster_of(gid)
    for adapter in r.fleet.required["Cluster"]:
        r.fleet.accepted(cluster, adapter, cluster["generation"] - 1)
    r.hold(202, "GET", gid, cookie=newer)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)
    r.updated(gid, body, newer)
    r.updated(gid, again, newer)
    r.fleet.ready(gid)
    r.until(200, "PUT same", gid, again)


@scenario(deletes=False)
def available_alone_is_not_ready(r):
    """After a change Available stays True (it is sticky); the answer is 202 until all have reported
    on the new generation.
    """
    gid, body, cookie = r.brought_ready()
    cookie = r.updated(gid, changed(body), cookie)
    cluster = r.fleet.cluster_of(gid)
    for adapter in r.fleet.required["Cluster"]:
        r.fleet.accepted(cluster, adapter, 1)
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.accepted(cluster, "validation")
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.accepted(cluster, "hypershift")
    r.until(200, "GET", gid, cookie=cookie)


@scenario(deletes=False)
def change_that_changes_nothing(r):
    """Another `resource` leaves all as it is: 200 at once; the same input in another order is the
    same.
    """
    gid, body, cookie = r.brought_ready()
    r.expect(r.put(gid, dict(body, resource={"note": "a remark"}), cookie), 200)
    r.expect(r.put(gid, dict(reversed(list(dict(body, resource={"note": "a remark"}).items())))),
             200)
    r.assertEqual(r.fleet.cluster_of(gid)["generation"], 1)


@scenario(deletes=False, same=lambda backend: backend.labels_count)
def labels_change(r):
    """A change of labels reaches HyperFleet where it has them changed."""
    gid, body, cookie = r.brought_ready(cluster_input(labels={"team": "blue"}))
    body = cluster_input(labels={"team": "green"})
    r.put(gid, body, cookie)
    if r.backend.labels_count:
        lib.eventually(lambda: r.fleet.cluster_of(gid)["labels"]["team"] == "green",
                       "the label is changed")
        r.fleet.ready(gid)
    r.until(200, "GET", gid)


@scenario(deletes=False)
def cannot_change(r):
    """RES-106 for another name and another type, 409 before that while creating; nothing has
    changed.
    """
    gid, body, cookie = r.created(cluster_input(name="fixed-name"))
    r.expect(r.put(gid, cluster_input(name="other-name"), cookie), 409)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)
    message = r.expect(r.put(gid, cluster_input(name="other-name"), cookie), 400,
                       "RES-106").json["message"]
    for word in ("fixed-name", "other-name"):
        r.assertIn(word, message)
    retyped = cluster_input(name="fixed-name", type_="org/hyperfleet-cluster")
    r.expect(r.put(gid, retyped, cookie), 400, "RES-106")
    r.assertEqual(r.expect(r.put(gid, body, cookie), 200).cookie, cookie)


@scenario(deletes=False)
def bad_input(r):
    """RES-101 at once, and nothing is made."""
    for body in (cluster_input(type_="database"), cluster_input(name="NO"),
                 {"driver": {"values": {}}}, cluster_input(spec=[]),
                 nodepool_input(name="abc"), cluster_input(nodepools=pools("same", "same"))):
        gid = r.gid()
        r.expect(r.put(gid, body), 400, "RES-101")
        r.expect(r.get(gid), 404)
        r.assertEqual(r.fleet.of(gid), ([], []))


# Failure ------------------------------------------------------------------------------------------

@scenario(deletes=False)
def terminal_failure(r):
    """The 400 names the adapter, its reason and message, the GUResID and the id; it stays; another
    attempt takes up what is there.
    """
    gid, body, cookie = r.created()
    cluster = r.fleet.cluster_of(gid)
    r.fleet.accepted(cluster, "hypershift", available=False, reason="QuotaExceeded",
                     message="no cores left")
    message = r.until(400, "GET", gid, cookie=cookie, code="RES-104").json["message"]
    for word in ("hypershift", "QuotaExceeded", "no cores left", gid, cluster["id"]):
        r.assertIn(word, message)
    r.fleet.ready(gid)
    r.hold(400, "GET", gid, cookie=cookie, code="RES-104")
    r.until(200, "PUT same", gid, body, cookie)
    r.assertEqual(r.fleet.cluster_of(gid)["id"], cluster["id"])


@scenario(deletes=False)
def terminal_failure_of_a_nodepool(r):
    """It fails the whole; Applied=False counts too."""
    gid, _, cookie = r.created()
    pool = r.fleet.live(gid)[1][0]
    r.fleet.accepted(pool, "validation", available=False, applied=False, reason="NotYet",
                     applied_reason="InvalidSpec",
                     message="no such machine")
    message = r.until(400, "GET", gid, cookie=cookie, code="RES-104").json["message"]
    for word in ("validation", "InvalidSpec", gid, pool["id"]):
        r.assertIn(word, message)


@scenario(deletes=False)
def not_terminal(r):
    """An adapter that does not work itself, a reason that is not terminal, an old generation: 202.
    """
    gid, body, cookie = r.created()
    cluster = r.fleet.cluster_of(gid)
    r.fleet.accepted(cluster, "hypershift", available=False, reason="QuotaExceeded", health=False)
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.accepted(cluster, "hypershift", available=False, reason="StillWorking")
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid)


@scenario(deletes=False)
def new_attempt(r):
    """It ignores what was reported before it, fails by the next terminal report, and succeeds in
    the end, in the same cluster.
    """
    gid, body, cookie = r.in_state("failed")
    cluster = r.fleet.cluster_of(gid)
    cookie = r.expect(r.put(gid, body, cookie), 202).cookie
    r.hold(202, "GET", gid, cookie=cookie)
    r.fail_for_good(gid)
    r.until(400, "GET", gid, cookie=cookie, code="RES-104")
    body = changed(body)
    cookie = r.updated(gid, body, cookie)
    r.hold(202, "GET", gid, cookie=cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid, cookie=cookie)
    r.assertEqual(r.fleet.cluster_of(gid)["id"], cluster["id"])


@scenario(deletes=False)
def degraded(r):
    """A fault after ready keeps the 200, says Degraded and why, and is over when it is over; a
    terminal reason is no other.
    """
    gid, body, cookie = r.brought_ready()
    cluster = r.fleet.cluster_of(gid)
    for reason in ("NodesNotReady", "QuotaExceeded"):
        r.fleet.accepted(cluster, "hypershift", available=False, reason=reason,
                         message="2 of 3 nodes are gone")
        seen = wait_health(r, gid, "Degraded", reason)
        r.assertIn("2 of 3 nodes are gone", seen["health_message"])
    r.fleet.accepted(cluster, "hypershift")
    wait_health(r, gid, "Healthy")
    r.assertEqual(r.expect(r.put(gid, body, cookie), 200).cookie, cookie)


def wait_health(r, gid, health, reason=None, generation=None):
    def there():
        values = r.expect(r.get(gid), 200).json["resource"]["values"]
        right = values["health"] == health and reason in (None, values.get("health_reason"))
        return values if right and generation in (None, values["generation"]) else None
    with r.quietly():
        values = lib.eventually(there, "health of %s is %s" % (gid, health), every_s=0.1)
    r.transcript.append(r.plain(values))
    return values


# Actions of others --------------------------------------------------------------------------------

@scenario()
def removed_behind_our_back(r):
    """GET 400 RES-104 that names it, PUT makes a new one, DELETE 204."""
    for op in ("GET", "PUT", "DELETE"):
        gid, body, cookie = r.brought_ready()
        cluster = r.fleet.cluster_of(gid)
        r.assertEqual(r.fleet.client.delete(cluster["href"]).status, 202)
        with r.quietly():  # of cluster and nodepool the one that is seen first is named
            message = r.until(400, "GET", gid, cookie=cookie, code="RES-104",
                              through=(200,)).json["message"]
            r.assertRegex(message, "is being deleted|was removed")
            r.finish_delete(gid)
            r.assertEqual(r.fleet.client.get(cluster["href"]).status, 404)
            r.hold(400, "GET", gid, cookie=cookie, code="RES-104")
        if op == "DELETE":
            r.until(204, "DELETE", gid, cookie=cookie)
            r.expect(r.get(gid), 404)
        elif op == "PUT":
            r.expect(r.put(gid, body, cookie), 202)
            r.fleet.wanted(gid, body)
            r.assertNotEqual(r.fleet.cluster_of(gid)["id"], cluster["id"])
            r.fleet.ready(gid)
            r.until(200, "GET", gid)


@scenario(deletes=False)
def patched_behind_our_back(r):
    """A generation that another client made: still ready, and not overwritten."""
    gid, body, cookie = r.brought_ready()
    cluster = r.fleet.cluster_of(gid)
    r.assertEqual(r.fleet.client.patch(cluster["href"], {"spec": {"region": "elsewhere"}}).status,
                  200)
    with r.quietly():
        r.hold(200, "GET", gid, cookie=cookie)
    r.assertEqual(r.fleet.cluster_of(gid)["spec"], {"region": "elsewhere"})
    r.fleet.ready(gid)
    wait_health(r, gid, "Healthy", generation=cluster["generation"] + 1)


@scenario(same=lambda backend: not backend.remote)
def name_taken(r):
    """A name that a stranger has: RES-101 that names it; the stranger's is left alone; another name
    then works.
    """
    stranger = r.fleet.client.post(lib.BASE + "/clusters",
                                   {"kind": "Cluster", "name": "held-by-them", "spec": {"a": 1},
                                    "labels": {}}).json
    gid = r.gid()
    body = cluster_input(name="held-by-them", nodepools=pools("np-0"))
    answer = r.put(gid, body)
    if answer.status == 202:
        answer = r.until(400, "GET", gid)
    r.assertEqual((answer.status, answer.json["error"]), (400, "RES-101"))
    r.assertIn("held-by-them", answer.json["message"])
    r.assertEqual(r.fleet.of(gid), ([], []))
    seen = r.fleet.get(stranger)
    r.assertEqual((seen["generation"], seen["spec"], seen["labels"]), (1, {"a": 1}, {}))
    r.assertIn(r.delete(gid).status, (202, 204))
    r.until(204, "DELETE", gid)
    r.assertEqual(r.fleet.get(stranger)["generation"], 1)
    r.brought_ready(cluster_input(name="held-by-us"), gid)


# Nodepools ----------------------------------------------------------------------------------------

@scenario()
def nodepool_resource(r):
    """A nodepool as a resource of its own, by the cluster's GUResID and by its id; the cluster
    stays as it is.
    """
    gid, _, cluster_cookie = r.brought_ready(cluster_input())
    cluster = r.fleet.cluster_of(gid)
    for form in ({"cluster_guresid": gid}, {"cluster_id": cluster["id"]}):
        np = r.gid("pool")
        body = nodepool_input(name="extra", **form)
        _, _, cookie = r.created(body, np)
        r.expect(r.put(np, changed(body), cookie), 409)
        found = r.fleet.of(np)
        r.assertEqual((len(found[0]), len(found[1]), found[1][0]["owner_references"]["id"]),
                      (0, 1, cluster["id"]))
        r.fleet.ready(np)
        values = r.until(200, "GET", np, cookie=cookie).json["resource"]["values"]
        r.assertEqual((values["nodepool_id"], values["cluster_id"]),
                      (found[1][0]["id"], cluster["id"]))
        body = changed(body)
        cookie = r.updated(np, body, cookie)
        r.fleet.ready(np)
        r.until(200, "GET", np, cookie=cookie)
        r.removed(np, cookie)
        r.expect(r.get(np), 404)
    r.expect(r.get(gid, cluster_cookie), 200)
    r.assertEqual(r.fleet.cluster_of(gid)["generation"], 1)


@scenario(deletes=False)
def nodepool_cannot_move(r):
    """RES-106."""
    one, two = (r.brought_ready(cluster_input())[0] for _ in range(2))
    np, _, cookie = r.brought_ready(nodepool_input(cluster_guresid=one, name="stays"))
    r.expect(r.put(np, nodepool_input(cluster_guresid=two, name="stays"), cookie), 400, "RES-106")
    r.expect(r.put(np, nodepool_input(cluster_id=r.fleet.cluster_of(one)["id"], name="stays"),
                   cookie), 200)


@scenario(deletes=False, same=lambda backend: not backend.remote)
def nodepool_of_nothing(r):
    """A cluster that does not exist: RES-101 that names it."""
    for form in ({"cluster_guresid": "no-such-guresid"},
                 {"cluster_id": "2abcdefghijklmnopqrstuvwxyz"}):
        np = r.gid()
        answer = r.put(np, nodepool_input(name="extra", **form))
        if answer.status == 202:
            answer = r.until(400, "GET", np)
        r.assertEqual((answer.status, answer.json["error"]), (400, "RES-101"))
        r.assertIn(list(form.values())[0], answer.json["message"])


@scenario(deletes=False)
def nodepool_on_a_strangers_cluster(r):
    """A nodepool resource on a cluster that this driver never made, by its id."""
    stranger = r.fleet.client.post(lib.BASE + "/clusters",
                                   {"kind": "Cluster", "name": "not-of-this-driver", "spec": {},
                                    "labels": {}}).json
    np, body, cookie = r.created(nodepool_input(cluster_id=stranger["id"], name="guest"), r.gid())
    r.fleet.ready(np)
    r.until(200, "GET", np, cookie=cookie)
    r.assertEqual(r.fleet.get(stranger)["generation"], 1)


@scenario()
def cluster_takes_foreign_nodepools(r):
    """Deleting a cluster takes nodepools of other resources with it; their DELETE afterwards is
    204.
    """
    gid, _, cookie = r.brought_ready(cluster_input())
    np, _, _ = r.created(nodepool_input(cluster_guresid=gid, name="extra"), r.gid("pool"))
    r.expect(r.delete(gid, cookie), 202)
    r.fleet.deleting(gid)
    r.fleet.finish_delete(np)
    r.fleet.finish_delete(gid)
    r.until(204, "DELETE", gid, cookie=cookie)
    r.until(204, "DELETE", np)
    r.expect(r.get(np), 404)


# The rest -----------------------------------------------------------------------------------------

@scenario()
def deletion_wins(r):
    """DELETE while creating, updating and failed; reports of success change nothing about it."""
    for state in ("creating", "updating", "failed"):
        gid, body, cookie = r.in_state(state)
        r.expect(r.delete(gid, cookie), 202)
        r.fleet.deleting(gid)
        for part in (p for parts in r.fleet.of(gid) for p in parts):
            for adapter in r.fleet.required[part["kind"]]:
                r.fleet.accepted(part, adapter)
        r.check_hint(r.hold(202, "GET", gid, cookie=cookie).json, "deleting")
        r.expect(r.put(gid, body, cookie), 409)
        r.fleet.finish_delete(gid)
        r.until(404, "GET", gid, cookie=cookie)


@scenario()
def deleted_before_it_was_made(r):
    """PUT and at once DELETE: in the end nothing is left, whether it had come to be or not."""
    gid, body = r.gid(), cluster_input(nodepools=pools("np-0", "np-1"))
    cookie = r.expect(r.put(gid, body), 202).cookie
    r.expect(r.delete(gid, cookie), 202)
    def gone():
        r.fleet.finish_delete(gid)
        return r.delete(gid, cookie).status == 204
    with r.quietly():
        lib.eventually(gone, "%s is gone" % gid)
    r.expect(r.get(gid, cookie), 404)
    r.assertEqual(r.fleet.of(gid), ([], []))


@scenario(deletes=False)
def outputs(r):
    """Values from the adapters' data by JSON pointer; a later report brings later ones, and the 200
    stays.
    """
    gid, body, cookie = r.created(cluster_input())
    cluster = r.fleet.cluster_of(gid)
    data = {"api": {"url": "https://api.example:6443", "n": 1}, "zones": ["a", "b"]}
    r.fleet.accepted(cluster, "hypershift", data=data)
    r.fleet.accepted(cluster, "validation")
    values = r.until(200, "GET", gid, cookie=cookie).json["resource"]["values"]
    r.assertEqual((values["api_url"], values["whole"], values["second_zone"]),
                  (data["api"]["url"], data["api"], "b"))
    r.assertNotIn("not_there", values)
    data["api"]["url"] = "https://new.example"
    r.fleet.accepted(cluster, "hypershift", data=data)
    with r.quietly():
        lib.eventually(lambda: r.expect(r.get(gid),
                                        200).json["resource"]["values"][
                                            "api_url"] == "https://new.example", "the new value")
    r.expect(r.put(gid, body, cookie), 200)


@scenario(deletes=False, same=lambda backend: backend.secrets)
def output_secrets(r):
    """Secrets likewise; nowhere in the clear in the driver's files and log."""
    gid, body, cookie = r.created(cluster_input())
    cluster = r.fleet.cluster_of(gid)
    r.fleet.accepted(cluster, "hypershift",
                     data={"secrets": {"kubeconfig": "cAnArY-contract-kubeconfig"}})
    r.fleet.accepted(cluster, "validation")
    doc = r.until(200, "GET", gid, cookie=cookie).json["resource"]
    if r.backend.secrets:
        r.assertEqual(doc["secrets"], {"kubeconfig": "cAnArY-contract-kubeconfig"})
    else:
        r.assertNotIn("[redacted]", str(doc), "what the remote does not tell is no secret")
    r.assertEqual(r.server.files_with(b"cAnArY-contract"), [])
    r.assertNotIn("cAnArY-contract", "\n".join(r.server.lines))


@scenario(deletes=False)
def paths(r):
    """/{GUResID} and /clusters/{GUResID} are one resource."""
    gid, body = r.gid(), cluster_input()
    cookie = r.expect(r.put(gid, body, prefix="/clusters/"), 202).cookie
    r.expect(r.get(gid, cookie), 202)
    r.assertEqual(r.expect(r.put(gid, body, cookie), 202).cookie, cookie)
    r.expect(r.get(gid, prefix="/nodepools/"), 404)
    r.fleet.wanted(gid, body)
    r.assertEqual(len(r.fleet.of(gid)[0]), 1)


# Where HyperFleet cannot delete -------------------------------------------------------------------

@scenario(deletes=False, same=lambda backend: backend.deletes)
def deletion_that_cannot_be(r):
    """G2: 202, then 400 RES-104 with the words an operator needs, not 202 for ever; the cluster is
    as it was. Elsewhere: a deletion.
    """
    gid, _, cookie = r.brought_ready()
    cluster = r.fleet.cluster_of(gid)
    if r.backend.deletes:
        r.removed(gid, cookie)
        return
    r.expect(r.delete(gid, cookie), 202)
    message = r.until(400, "DELETE", gid, cookie=cookie, code="RES-104").json["message"]
    for word in (gid, "delete", "501"):
        r.assertIn(word, message)
    r.expect(r.get(gid, cookie), 400, "RES-104")
    r.assertEqual(r.fleet.get(cluster)["generation"], 1)


@scenario(deletes=False, same=lambda backend: backend.deletes)
def nodepool_change_that_cannot_be(r):
    """G2 has no PATCH of nodepools: 400 RES-104 that says so. Elsewhere: an update."""
    gid, body, cookie = r.brought_ready(cluster_input(nodepools=pools("np-0")))
    body = cluster_input(nodepools=pools("np-0", machine="large"))
    if r.backend.deletes:
        r.updated(gid, body, cookie)
        r.fleet.ready(gid)
        r.until(200, "GET", gid)
        return
    r.expect(r.put(gid, body, cookie), 202)
    message = r.until(400, "GET", gid, cookie=cookie, code="RES-104").json["message"]
    for word in (gid, "np-0", "405"):
        r.assertIn(word, message)


# Deadlines ----------------------------------------------------------------------------------------

@scenario("creation", deletes=False)
def deadline_of_a_creation(r):
    """RES-105 names what is unfinished and which adapter has not reported. The resource stays
    failed. The next PUT is a new attempt.
    """
    gid, body, cookie = r.created()
    cluster = r.fleet.cluster_of(gid)
    message = r.until(400, "GET", gid, cookie=cookie, code="RES-105", late=True).json["message"]
    for word in ("validation", "hypershift", gid, cluster["id"]):
        r.assertIn(word, message)
    r.fleet.ready(gid)
    with r.quietly():  # what is told as unfinished depends on when the reports are seen
        r.hold(400, "GET", gid, cookie=cookie, code="RES-105")
    r.until(200, "PUT same", gid, body, cookie)


@scenario("update", deletes=False)
def deadline_of_an_update(r):
    """The same for an update; another input is another attempt with another deadline."""
    gid, body, cookie = r.brought_ready()
    r.restart("--driver-deadline-update", SHORT)
    body = changed(body)
    cookie = r.updated(gid, body, cookie)
    r.until(400, "GET", gid, cookie=cookie, code="RES-105", late=True)
    r.restart()
    body = changed(body)
    cookie = r.updated(gid, body, cookie)
    r.fleet.ready(gid)
    r.until(200, "GET", gid, cookie=cookie)


@scenario("deletion")
def deadline_of_a_deletion(r):
    """RES-105 while it goes on; PUT stays 409; another DELETE is another deadline; the end is the
    end.
    """
    gid, body, cookie = r.brought_ready()
    r.restart("--driver-deadline-delete", SHORT)
    r.expect(r.delete(gid, cookie), 202)
    r.fleet.deleting(gid)
    message = r.until(400, "GET", gid, cookie=cookie, code="RES-105", late=True).json["message"]
    r.assertIn("validation", message)
    r.expect(r.put(gid, body, cookie), 409)
    r.restart()
    r.expect(r.delete(gid, cookie), 202)
    r.fleet.finish_delete(gid)
    r.until(404, "GET", gid, cookie=cookie)
    r.expect(r.delete(gid, cookie), 204)
