"""The answers that a GUResID may give. They are the two tables of driver/core/README.md as a
specification that allows several answers, written from the contract alone.

One resource of type cluster without nodepools, one required adapter, no deadline that passes. A
state is what is true at one instant. step() gives the states in which an operation with a given
result may leave it. An empty set means that this result is impossible there. A result of None was
never seen (a lost connection, a killed server). Such an operation may have happened with any
result.

The server chooses ids of clusters and values of cookies freely. Each is unknown in a state until an
answer names it. From then on it must stay, and one of an earlier life or an earlier input must
never come back.
"""
from collections import namedtuple

# phase     absent, creating, updating, ready, failed, deleting
# spec      the number in the spec that was taken last
# gen       generation of its cluster
# rep       (generation, kind, observed) of the adapter's stored report, or None
# out       whether it was ready in this life
# cid       id of its cluster, None until an answer names it; gone: ids that it cannot have
# cookie    likewise; old: cookies that it cannot have any more; ended: those of them that are from
#           lives that ended
State = namedtuple("State", "phase spec gen rep out cid gone cookie old ended")
START = State("absent", None, 0, None, False, None, frozenset(), None, frozenset(), frozenset())

# kind      PUT (arg: spec), GET, DELETE (arg: the cookie that it brings, or None), LIST,
#           REPORT (arg: (cluster id, generation, kind, observed))
# result    PUT, GET, DELETE: a dict with status and what the answer said
#           REPORT: its status
#           LIST: tuples (id, gen, deleting, spec)
# call, ret times; ret is None where the end was not seen
Op = namedtuple("Op", "kind arg result call ret")

TRUE, FALSE, TERMINAL, FINALIZED = "True", "False", "Terminal", "Finalized"


def told_cid(s, cid):
    """The state in which the cluster has this id, or None."""
    if s.cid is None and cid not in s.gone:
        return s._replace(cid=cid)
    return s if s.cid == cid else None


def told_cookie(s, cookie):
    if s.cookie is None and cookie not in s.old:
        return s._replace(cookie=cookie)
    return s if s.cookie == cookie else None


def new_cookie(s):
    return s._replace(cookie=None, old=s.old | {s.cookie} if s.cookie is not None else s.old)


def absent(s):
    """After the end of a life: its id and cookie never come back."""
    gone = s.gone | {s.cid} if s.cid is not None else s.gone
    old = new_cookie(s).old
    return START._replace(gone=gone, old=old, ended=old)


def shows(s, result):
    """The state in which an answer says this, by the row for GET; None where it cannot."""
    status = result["status"]
    if s.phase == "ready":
        if status != 200 or result.get("gen") != s.gen:
            return None
        return told_cid(s, result["cid"])
    if s.phase == "failed":
        return s if status == 400 and result.get("code") == "RES-104" else None
    if s.phase == "absent":
        return s if status == 404 else None
    return s if status == 202 and result.get("hint") == s.phase else None


def takes(s, spec):
    """(state behind a PUT, whether it is refused with 409): the PUT table."""
    same = s.spec == spec
    if s.phase == "absent":
        return s._replace(phase="creating", spec=spec, gen=1), False
    if s.phase == "deleting" or (s.phase == "creating" and not same):
        return s, True
    if same and s.phase != "failed":
        return s, False
    if same:
        if s.rep is not None and s.rep[:2] == (s.gen, TRUE):
            return s._replace(phase="ready", out=True), False
        return s._replace(phase="updating" if s.out else "creating"), False
    return new_cookie(s)._replace(phase="updating" if s.out else "creating", spec=spec,
                                  gen=s.gen + 1), False


def put(s, spec, result):
    after, refused = takes(s, spec)
    if result is None:
        return [after]
    if refused:
        if result["status"] != 409 or result.get("hint") != after.phase:
            return []
    else:
        after = shows(after, result)
        if after is None:
            return []
    after = told_cookie(after, result.get("cookie"))
    return [after] if after is not None else []


def delete(s, cookie, result):
    status = result["status"] if result is not None else None
    if s.phase == "absent" or cookie in s.ended: # a late one leaves the next life alone
        return [s] if status in (None, 204) else []
    after = s if s.phase == "deleting" else s._replace(phase="deleting", gen=s.gen + 1)
    if status is None:
        return [after]
    return [after] if status == 202 and result.get("hint") == "deleting" else []


def stored(s, gen, kind, observed):
    """The state behind a report that counts."""
    after = s._replace(rep=(gen, kind, observed))
    if s.phase == "deleting" and kind == FINALIZED and gen == s.gen:
        return absent(after)
    if s.phase in ("creating", "updating") and gen == s.gen:
        if kind == TRUE:
            return after._replace(phase="ready", out=True)
        if kind == TERMINAL:
            return after._replace(phase="failed")
    return after


def report(s, arg, status):
    cid, gen, kind, observed = arg
    found = []
    if status in (None, 404) and s.cid != cid: # of no cluster that is there
        found.append(s if s.phase == "absent" or cid in s.gone else s._replace(gone=s.gone | {cid}))
    there = told_cid(s, cid) if s.phase != "absent" else None
    if there is None:
        return found
    discarded = gen > s.gen or (s.rep is not None
                                and (gen < s.rep[0] or (gen == s.rep[0] and observed < s.rep[2])))
    if discarded and status in (None, 204):
        found.append(there)
    if not discarded and status in (None, 201):
        found.append(stored(there, gen, kind, observed))
    return found


def listed(s, items):
    if items is None:
        return [s]
    if s.phase == "absent":
        return [s] if not items else []
    if len(items) != 1:
        return []
    cid, gen, deleting, spec = items[0]
    if (gen, deleting, spec) != (s.gen, s.phase == "deleting", s.spec):
        return []
    s = told_cid(s, cid)
    return [s] if s is not None else []


def step(s, op):
    """The states behind an operation on a state; empty when its result cannot be."""
    if op.kind == "PUT":
        return put(s, op.arg, op.result)
    if op.kind == "GET":
        after = s if op.result is None else shows(s, op.result)
        return [after] if after is not None else []
    if op.kind == "DELETE":
        return delete(s, op.arg, op.result)
    if op.kind == "REPORT":
        return report(s, op.arg, op.result)
    return listed(s, op.result)
