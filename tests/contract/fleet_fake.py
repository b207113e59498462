#!/usr/bin/env python3
"""A small scripted HyperFleet. It speaks each wire generation, fails where the test wants it to,
and remembers each request.

Written from the documents of the HyperFleet API and its releases. test_fake.py compares it with the
embedded API of the program. It has two listeners. The driver uses `port` (counted, logged, faulty);
the test uses `player_port`, which never fails.

By hand: fleet_fake.py --generation G3 --port 8001 --auto 5
"""
import argparse
import datetime
import heapq
import http.server
import itertools
import json
import os
import re
import secrets
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from ports import free_port  # noqa: E402
from fleet_tsl import Refused, compile_search

BASE = "/api/hyperfleet/v1"
ERRORS = "https://api.hyperfleet.io/errors/"
NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
LABEL_KEY = re.compile(
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
LENGTHS = {"Cluster": (3, 53), "NodePool": (3, 15)}
PLURAL = {"Cluster": "clusters", "NodePool": "nodepools"}
COLUMNS = ("id", "kind", "name", "href", "generation", "created_time", "updated_time", "created_by",
           "updated_by")
TITLES = {400: ("bad-request", "Bad Request"),
          401: ("authentication-error", "Authentication Required"), 403: ("forbidden", "Forbidden"),
          404: ("not-found", "Resource Not Found"), 409: ("conflict", "Resource Conflict"),
          429: ("limit", "Too Many Requests"),
          500: ("internal-error", "Internal Server Error"),
          501: ("not-implemented", "Not Implemented"),
          503: ("service-unavailable", "Service Unavailable")}


class Wire:
    """The differences between the generations on the wire."""

    def __init__(self, name, **kw):
        self.name = name
        self.ready, self.last_known = "Reconciled", "LastKnownReconciled"
        self.report_method = "PUT"
        self.deletes = self.patches_pools = self.patches_labels = True
        # a PATCH with the spec that is already there raises the generation
        self.same_spec_counts = False
        self.labels_count = False       # a PATCH of labels raises the generation
        self.strict = False             # paging, PATCH fields, labels, observed_time
        self.page_size = 100
        self.list_kind = True
        self.tsl = 0
        self.or_is_broken = False
        self.unknown_route = "HYPERFLEET-NTF-001"
        self.ids = "uuid7"
        # a kind without required adapters is removed by DELETE itself
        self.gone_at_once = False
        self.__dict__.update(kw)


WIRES = {w.name: w for w in (
    Wire("G2", ready="Ready", last_known="Available", report_method="POST", deletes=False,
         patches_pools=False, patches_labels=False,
         same_spec_counts=True, or_is_broken=True, ids="ksuid"),
    Wire("G3", or_is_broken=True),
    Wire("G3.1", labels_count=True, strict=True, page_size=20, list_kind=False, tsl=6,
         unknown_route="HYPERFLEET-NTF-000",
         gone_at_once=True),
)}

# name -> (whether the request is carried out first, what comes back). The suite runs through all of
# them.
FAULTS = {
    "lost before it is done": (False, "close"),
    "lost after it is done": (True, "close"),
    "reset after it is done": (True, "reset"),
    "cut in mid-body": (True, "cut"),
    "408": (False, 408),
    "429 with Retry-After": (False, 429),
    "500": (False, 500),
    "502 with HTML": (False, 502),
    "503": (False, 503),
    "504 after it is done": (True, 504),
    "garbage JSON": (True, "garbage"),
    "JSON of the wrong shape": (True, "shape"),
    "empty body": (True, "empty"),
    "wrong content type": (True, "html"),
    "401": (False, 401),
    "403": (False, 403),
    "slow, not done": (False, "slow"),
    "slow, done": (True, "slow"),
    "redirect": (False, 302),
    "huge answer": (True, "huge"),
    "NTF-000": (False, 404),
}
# Answers of proxies and gateways in the place of a HyperFleet.
PAGE, OTHERS = ("text/html", b"<html><h1>nginx</h1></html>"), \
    ("application/json", b'{"message": "no Route matched"}')
FAULTS.update({"%d of a proxy" % status: (False, (status, *PAGE))
               for status in (400, 401, 403, 404, 405, 408, 409, 413, 422)})
FAULTS.update({"%d in JSON of others" % status: (False, (status, *OTHERS))
               for status in (400, 404, 409, 413)})

# Behaviour that no HyperFleet with lists is known to have: for one test alone.
RARE = {"cannot search": (False, 400)}

# For arm(gid=...): requests that are on behalf of no single GUResID.
NOBODY = "-"


class Record:
    """One request of the driver."""

    def __init__(self, n, at, method, path, query, step, gid, headers, body):
        self.n, self.at, self.method, self.path, self.query = n, at, method, path, query
        self.step, self.gid = step, gid
        self.headers, self.body = headers, body
        self.status = self.fault = None

    def __repr__(self):
        query = "?" + urllib.parse.unquote_plus(self.query) if self.query else ""
        return "%d %s %s%s -> %s%s" % (self.n, self.method, self.path, query, self.status,
                                       " [%s]" % self.fault if self.fault else "")


class Reply:
    def __init__(self, status, doc=None, kind="application/json", headers=(), raw=None):
        self.status, self.kind, self.headers = status, kind, list(headers)
        self.body = raw if raw is not None else b"" if doc is None else json.dumps(
            doc, separators=(",", ":")).encode()


class Problem(Exception):
    def __init__(self, status, code, detail, errors=None, headers=()):
        super().__init__(detail)
        self.status, self.code = status, "HYPERFLEET-" + code
        self.errors, self.headers = errors, headers


class Fault:
    def __init__(self, name, nth, step, gid, times, kw):
        self.name, self.nth, self.step = name, nth, step
        self.gid, self.times, self.kw = gid, times, kw
        self.do_first, self.action = {**FAULTS, **RARE}[name]
        self.seen = self.fired = 0

    def takes(self, step, gid):
        if self.step not in (None, step) or self.gid not in (None, gid or NOBODY):
            return False
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.fired >= self.times):
            return False
        self.fired += 1
        return True


class Gate:
    """Holds the nth request, before or after it is done, until it is opened or the client is gone.
    """

    def __init__(self, nth, done_first, gid):
        self.nth, self.done_first, self.gid = nth, done_first, gid
        self.seen = 0
        self.reached, self.opened = threading.Event(), threading.Event()


class Row:
    """A cluster or nodepool."""

    def __init__(self, kind, id_, owner, name, labels, spec, now):
        self.kind, self.id, self.owner, self.name = kind, id_, owner, name
        self.labels, self.spec = labels, spec
        self.generation = 1
        self.created = self.updated = now
        self.created_by = self.updated_by = "system@hyperfleet.local"
        self.deleted = self.deleted_by = None
        self.conditions = []
        self.reports = {}


def stamp(us):
    t = datetime.datetime.fromtimestamp(us // 1000000, datetime.timezone.utc)
    return t.strftime("%Y-%m-%dT%H:%M:%S") + ".%06dZ" % (us % 1000000)


def micros(text):
    t = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(t.timestamp()) * 1000000 + t.microsecond


def adapter_condition(adapter):
    return "".join(p[:1].upper() + p[1:] for p in adapter.split("-")) + "Successful"


def required_reports(row, required):
    """adapter -> (Available is True, generation, time, its Available condition), of the reports
    that count.
    """
    found = {}
    for a in required:
        report = row.reports.get(a)
        cond = report and next((c for c in report["conditions"] if c["type"] == "Available"), None)
        if cond and report["observed_generation"] <= row.generation and cond["status"] in (
            "True", "False"):
            found[a] = (cond["status"] == "True", report["observed_generation"],
                        micros(report["last_report_time"]), cond)
    return found


def finalized(row, adapter):
    report = row.reports.get(adapter)
    return bool(report) and report["observed_generation"] == row.generation and any(
        c["type"] == "Finalized" and c["status"] == "True" for c in report["conditions"])


def available_of(row, required, snap, prev):
    """(status, observed generation, last updated) of Available / LastKnownReconciled. Source:
    HyperFleet API, aggregation.
    """
    was, was_gen = (prev["status"] == "True", prev["observed_generation"]) if prev else (False, 1)
    was_updated = micros(prev["last_updated_time"]) if prev else row.updated
    if not required:
        return False, 1, row.updated
    all_true = all(a in snap and snap[a][0] for a in required)
    gens = {s[1] for s in snap.values()}
    if all_true and len(gens) == 1:
        return True, gens.pop(), min(s[2] for s in snap.values())
    if all_true and was:
        return True, was_gen, was_updated
    falses = [s for s in snap.values() if not s[0]]
    if was and len(snap) == len(required) and not any(s[1] == was_gen for s in falses):
        return True, was_gen, was_updated
    gen = max(gens) if gens else was_gen
    at_gen = [s for s in snap.values() if s[1] == gen]
    return False, gen, min(s[2] for s in at_gen) if any(not s[0] for s in at_gen) else was_updated


def aggregate(row, required, wire, has_children):
    """Writes row.conditions anew. Source: HyperFleet API, aggregation and conditions of each
    release.
    """
    old = {c["type"]: c for c in row.conditions}
    snap = required_reports(row, required)
    at_g = [s for s in snap.values() if s[1] == row.generation]
    if row.deleted is None:
        missing = sorted(a for a in required if a not in snap or not snap[a][0]
                         or snap[a][1] != row.generation)
        ready, word = bool(required) and not missing, "Available"
    else:
        missing = sorted(a for a in required if not finalized(row, a))
        ready, word = not missing and not has_children, "Finalized"
    new_words = wire.ready == "Reconciled"
    if ready:
        reason = ("ReconciledAll" if new_words else
                  "All required adapters reported Available=True at the current generation")
        message = "All required adapters reported %s=True at the current generation" % word
    elif not missing and row.deleted is not None:
        reason = "ReconciledWaitingForChildren"
        message = "Waiting for child resources to be removed"
    else:
        reason = "ReconciledMissingAdapters" if new_words else "MissingRequiredAdapters"
        message = "Required adapters not reporting %s=True: [%s]. Currently reporting: [%s]" % (
            word, ", ".join(missing), ", ".join(sorted(snap)))
    updated = min(s[2] for s in at_g) if at_g else row.updated
    out = [condition(old.get(wire.ready), wire.ready, ready, row.generation, updated, row, reason,
                     message)]
    known, gen, updated = available_of(row, required, snap, old.get(wire.last_known))
    if new_words:
        reason = "AdaptersMissingReports" if len(snap) < len(
            required) else "AdapterReportedNotAvailable"
        reason = "AllAdaptersReconciled" if known else reason
    else:
        reason = ("All required adapters report Available=True for the tracked generation"
                  if known else "AdaptersNotAtSameGeneration")
    out.append(condition(old.get(wire.last_known), wire.last_known, known, gen, updated, row,
                         reason, reason))
    for a in required:
        if a in snap:
            ok, gen, at, cond = snap[a]
            type_ = adapter_condition(a)
            out.append(condition(old.get(type_), type_, ok, gen, at, row, cond.get("reason"),
                                 cond.get("message")))
    row.conditions = out


def condition(prev, type_, status, generation, updated, row, reason, message):
    status = "True" if status else "False"
    transition = updated
    if prev is not None and prev["status"] == status:
        transition = micros(prev["last_transition_time"])
    elif prev is not None and status == "False" and generation > prev["observed_generation"]:
        transition = row.updated
    cond = {"type": type_, "status": status, "reason": reason, "message": message,
            "observed_generation": generation,
            "created_time": prev["created_time"] if prev else stamp(row.updated),
            "last_updated_time": stamp(updated),
            "last_transition_time": stamp(transition)}
    return {k: v for k, v in cond.items() if v is not None}


def step_of(method, path):
    """A name for what a request is about, for faults and counts: "POST clusters", "GET cluster",
    "GET nodepool statuses".
    """
    parts = path[len(BASE):].strip("/").split("/")
    names = ["cluster", "nodepool"]
    what = {1: parts[0], 2: parts[0][:-1], 3: "%s %s" % (names[0], parts[2]) if len(parts) > 2
            and parts[2] != "nodepools" else "nodepools",
            4: names[1], 5: "%s %s" % (names[1], parts[-1])}.get(len(parts), path)
    return "%s %s" % (method, what)


class Fake:
    """State, rules and script; Listener serves it."""

    def __init__(self, generation="G3", required=None, auto_s=None, skew_s=0.0, tokens=None,
                 tls=None, port=0, identity_header=None):
        self.wire = WIRES[generation]
        self.required = required or {"Cluster": ("validation",), "NodePool": ("validation",)}
        self.auto_s, self.skew_s = auto_s, skew_s
        self.tokens, self.identity_header = tokens, identity_header
        self.lock = threading.RLock()
        self.rows = {}
        self.log = []
        self.made = []           # (kind, id, guresid label, name) of every create
        self.gids = {}           # id or name -> guresid label, for what has gone too
        self.faults = []
        self.gate = None
        self.due = []
        self.deadline_s = 5.0    # how long a slow answer takes
        self.followed = 0        # requests to where a redirect pointed
        self.closing = threading.Event()
        self.counter = itertools.count(1)
        self.driver = Listener(self, False, port or free_port(), tls)  # down() and up() keep it
        self.player = Listener(self, True, 0, None)
        self.port, self.player_port = self.driver.server_address[1], self.player.server_address[1]
        self.url = "%s://127.0.0.1:%d/" % ("https" if tls else "http", self.port)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.closing.set()
        if self.gate is not None:
            self.gate.opened.set()
        for listener in (self.driver, self.player):
            if listener is not None:
                listener.stop()

    def down(self):
        """Stops answering the driver; up() goes on with the same state at the same port."""
        self.driver.stop()
        self.driver = None

    def up(self, tls=None):
        self.driver = Listener(self, False, self.port, tls)

    def now(self):
        return time.time_ns() // 1000 + int(self.skew_s * 1e6)

    # The script -----------------------------------------------------------------------------------

    def arm(self, name, nth=1, step=None, gid=None, times=1, **kw):
        """The nth request from now on (of that step, on behalf of that GUResID) fails, and `times -
        1` after it; None: all after it.
        """
        with self.lock:
            self.faults.append(Fault(name, nth, step, gid, times, kw))
            return self.faults[-1]

    def disarm(self, fault=None):
        """Takes one fault away, or all; returns how often they fired."""
        with self.lock:
            gone = [f for f in self.faults if fault in (None, f)]
            self.faults = [f for f in self.faults if f not in gone]
            return sum(f.fired for f in gone)

    def block(self, nth, done_first, gid=None):
        """Holds the nth request from now on, on behalf of that GUResID or any."""
        with self.lock:
            self.gate = Gate(nth, done_first, gid)
            return self.gate

    def unblock(self):
        with self.lock:
            gate, self.gate = self.gate, None
        if gate is not None:
            gate.opened.set()

    def requests(self, step=None, since=0):
        """Requests of the driver so far, of one step or all."""
        with self.lock:
            return [r for r in self.log[since:] if step is None or r.step == step]

    def behalf(self, path, query, body):
        """The GUResID that a request is about: from the search, from an id in the path, or from the
        posted labels. None: the request names none.
        """
        search = urllib.parse.parse_qs(query).get("search", [""])[-1]
        found = re.findall(r"labels\.humanitec_guresid ?= ?'([^']*)'", search)
        names = re.findall(r"\bname ?= ?'([^']*)'", search) + path.split("/")
        if len(set(found)) == 1:
            return found[0]
        if found:
            return None
        for name in names:
            if name in self.gids:
                return self.gids[name]
        try:
            return json.loads(body)["labels"]["humanitec_guresid"]
        except (ValueError, KeyError, TypeError):
            return None

    def live(self, kind, gid):
        with self.lock:
            return [r for r in self.rows.values() if r.kind == kind and r.deleted is None
                    and r.labels.get("humanitec_guresid") == gid]

    def remove(self, id_):
        """Removes the row and its children without a request."""
        with self.lock:
            for row in [r for r in self.rows.values() if id_ in (r.id, r.owner)]:
                del self.rows[row.id]

    def add(self, kind, name, labels, spec, owner=None, deleted=False):
        """A row that another client made."""
        with self.lock:
            row = self.create(kind, owner,
                              {"kind": kind, "name": name, "labels": labels, "spec": spec},
                              "stranger@example.com")
            if deleted:
                self.delete(row, "stranger@example.com")
            return row

    # Adapters -------------------------------------------------------------------------------------

    def schedule(self, row):
        if self.auto_s is not None:
            heapq.heappush(self.due,
                           (time.monotonic() + self.auto_s, next(self.counter), row.id,
                            row.generation))

    def play(self):
        """Does what the fake's own adapters have had the time to do."""
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, id_, generation = heapq.heappop(self.due)
            row = self.rows.get(id_)
            if row is None or row.generation != generation:
                continue
            for adapter in self.required[row.kind]:
                self.report(row,
                            {"adapter": adapter, "observed_generation": generation,
                             "observed_time": stamp(self.now()), "conditions": [
                    {"type": "Available", "status": "False" if row.deleted else "True",
                     "reason": "Played", "message": "by the fake"},
                    {"type": "Applied", "status": "True"}, {"type": "Health", "status": "True"},
                    {"type": "Finalized", "status": "True" if row.deleted else "False"}]})
            if row.id in self.rows and row.deleted:
                self.due.append((time.monotonic() + 0.05, next(self.counter), id_, generation))
                heapq.heapify(self.due)

    # Rules ----------------------------------------------------------------------------------------

    def new_id(self, now):
        if self.wire.ids == "ksuid":
            seconds, n = now // 1000000 - 1400000000, int.from_bytes(secrets.token_bytes(16), "big")
            n, text = (seconds << 128) | n, ""
            for _ in range(32):
                n, digit = divmod(n, 32)
                text = "0123456789abcdefghijklmnopqrstuv"[digit] + text
            return text
        raw = bytearray((now // 1000).to_bytes(6, "big") + secrets.token_bytes(10))
        raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
        h = raw.hex()
        return "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))

    def aggregate(self, row):
        aggregate(row, self.required[row.kind], self.wire,
                  any(r.owner == row.id for r in self.rows.values()) if row.deleted else False)

    def create(self, kind, owner, body, by):
        now = self.now()
        if any(r.kind == kind and r.owner == owner and r.name == body["name"] and r.deleted is None
               for r in self.rows.values()):
            raise Problem(409, "CNF-001", "This %s already exists" % kind)
        row = Row(kind, self.new_id(now), owner, body["name"], dict(body.get("labels") or {}),
                  body["spec"], now)
        row.created_by = row.updated_by = by
        self.rows[row.id] = row
        gid = row.labels.get("humanitec_guresid")
        self.made.append((kind, row.id, gid, row.name))
        self.gids[row.id] = gid
        if kind == "Cluster":
            self.gids[row.name] = gid
        self.aggregate(row)
        self.schedule(row)
        return row

    def patch(self, row, spec, labels, by):
        changed = spec is not None and (spec != row.spec or self.wire.same_spec_counts
                                        and spec != {})
        changed = changed or labels is not None and labels != row.labels and self.wire.labels_count
        row.spec = row.spec if spec is None else spec
        row.labels = row.labels if labels is None else labels
        if changed:
            row.generation, row.updated, row.updated_by = row.generation + 1, self.now(), by
            self.aggregate(row)
            self.schedule(row)

    def delete(self, row, by, at=None):
        if row.deleted is not None:
            return
        children = [r for r in self.rows.values() if r.owner == row.id]
        row.deleted = row.updated = at or self.now()
        row.deleted_by, row.generation = by, row.generation + 1
        for child in children:
            self.delete(child, by, row.deleted)
        self.aggregate(row)
        self.schedule(row)
        self.reap(row)

    def reap(self, row):
        """Removal once all required adapters have finalized and no child is left. A parent waits
        for its own next report, as upstream's.
        """
        required = self.required[row.kind]
        if row.deleted is None or any(r.owner == row.id for r in self.rows.values()):
            return
        done = all(finalized(row, a) for a in required)
        if done if required else self.wire.gone_at_once:
            self.rows.pop(row.id, None)

    def report(self, row, body):
        """The stored report, or None for one that is discarded. Source: HyperFleet API, reports."""
        generation, at = body["observed_generation"], micros(body["observed_time"])
        old = row.reports.get(body["adapter"])
        if generation > row.generation or old and (old["observed_generation"] > generation or (
                old["observed_generation"] == generation and micros(old["last_report_time"]) > at)):
            return None
        types = {c["type"]: c for c in body["conditions"]}
        for t in ("Available", "Applied", "Health"):
            if t not in types:
                raise Problem(400, "VAL-000",
                              "missing mandatory condition '%s': all adapters must report "
                              "Available, Applied, and Health" % t)
        if types["Available"]["status"] == "Unknown" and old:
            return None
        if old and old["observed_generation"] == generation and micros(
            old["last_report_time"]) == at:
            return old
        before = {c["type"]: c for c in old["conditions"]} if old else {}
        conditions = []
        for c in body["conditions"]:
            was = before.get(c["type"])
            kept = was["last_transition_time"] if was and was["status"] == c["status"] else stamp(
                at)
            conditions.append(dict({k: c[k] for k in ("type", "status", "reason", "message")
                                    if c.get(k) is not None},
                                   last_transition_time=kept))
        report = {"adapter": body["adapter"], "observed_generation": generation,
                  "conditions": conditions, "data": body.get("data") or {},
                  "created_time": old["created_time"] if old else stamp(at),
                  "last_report_time": stamp(at)}
        row.reports[body["adapter"]] = report
        if types["Available"]["status"] != "Unknown":
            self.aggregate(row)
            self.reap(row)
        return report

    # Documents ------------------------------------------------------------------------------------

    def href(self, row):
        if row.kind == "Cluster":
            return "%s/clusters/%s" % (BASE, row.id)
        return "%s/clusters/%s/nodepools/%s" % (BASE, row.owner, row.id)

    def document(self, row):
        doc = {"id": row.id, "kind": row.kind, "href": self.href(row), "name": row.name,
               "labels": row.labels, "spec": row.spec,
               "generation": row.generation, "created_time": stamp(row.created),
               "updated_time": stamp(row.updated),
               "created_by": row.created_by, "updated_by": row.updated_by,
               "status": {"conditions": row.conditions}}
        if row.kind == "NodePool":
            doc["owner_references"] = {"id": row.owner, "kind": "Cluster",
                                       "href": "%s/clusters/%s" % (BASE, row.owner)}
        if row.deleted is not None:
            doc["deleted_time"], doc["deleted_by"] = stamp(row.deleted), row.deleted_by
        return doc

    # Requests -------------------------------------------------------------------------------------

    def serve(self, listener, method, target, headers, body):
        """A Reply, or a tuple that tells the listener how to break."""
        path, _, query = target.partition("?")
        if listener.player:
            with self.lock:
                return self.answer(method, path, query, headers, body)
        step = step_of(method, path)
        with self.lock:
            gid = self.behalf(path, query, body)
            rec = Record(len(self.log) + 1, time.monotonic(), method, path, query, step, gid,
                         headers, body)
            self.log.append(rec)
            gate, fault = self.gate, next((f for f in self.faults if f.takes(step, gid)), None)
            if gate is not None and gate.gid not in (None, gid):
                gate = None
            if gate is not None:
                gate.seen += 1
                gate = gate if gate.seen == gate.nth else None
            if gate is not None and not gate.done_first:
                reply = None
            elif fault is None or fault.do_first:
                reply = self.answer(method, path, query, headers, body)
                rec.status = reply.status
            else:
                reply = None
        if gate is not None:
            gate.reached.set()
            gate.opened.wait()
            if not gate.done_first or self.closing.is_set():
                return "close", b""
        if fault is None:
            return reply
        rec.fault = fault.name
        return self.spoil(fault, reply, path)

    def spoil(self, fault, reply, path):
        action = fault.action
        if action in ("close", "reset"):
            return action, b""
        if isinstance(action, tuple):
            return Reply(action[0], kind=action[1], raw=action[2])
        if action == "cut":
            return action, reply
        if action == "slow":
            self.closing.wait(fault.kw.get("seconds", self.deadline_s))
            return ("close", b"") if reply is None else reply
        if action == "garbage":
            return Reply(reply.status, raw=reply.body[:len(reply.body) // 2] + b"\x00}{,")
        if action == "shape":
            return Reply(reply.status,
                         raw=fault.kw.get("raw",
                                          b'{"kind": 7, "id": {"not": "text"}, "items": "none", '
                                          b'"generation": "one"}'))
        if action == "empty":
            return Reply(200 if reply.status == 204 else reply.status, raw=b"")
        if action == "html":
            return Reply(reply.status, kind="text/html",
                         raw=b"<html><body>Welcome to the portal</body></html>")
        if action == "huge":
            return Reply(reply.status, raw=b'{"items": [], "filler": "'
                         + b"x" * fault.kw.get("size", 20000000) + b'"}')
        if action == 502:
            return Reply(502, kind="text/html", raw=b"<html><h1>502 Bad Gateway</h1></html>")
        if action == 504:
            return Reply(504, kind="text/plain", raw=b"upstream request timeout")
        if action == 302:
            return Reply(302,
                         headers=[("Location",
                                   "http://127.0.0.1:%d/elsewhere%s" % (self.port, path))], raw=b"")
        codes = {400: "VAL-005", 401: "AUTH-001", 403: "AUZ-001", 404: "NTF-000", 408: "INT-002",
                 429: "LMT-001", 500: "INT-001",
                 503: "SVC-001"}
        extra = [("Retry-After", str(fault.kw.get("retry_after", 1)))] if action == 429 else []
        return self.problem(Problem(action, codes[action], "a fault of the script", headers=extra),
                            path)

    def problem(self, p, path):
        kind, title = TITLES.get(p.status, ("error", "Error"))
        if p.code.endswith("VAL-000"):
            kind, title = "validation-error", "Validation Failed"
        elif p.code.endswith("VAL-006"):
            kind, title = "malformed-request", "Malformed Request"
        doc = {"type": ERRORS + kind, "title": title, "status": p.status, "detail": str(p),
               "instance": path, "code": p.code,
               "timestamp": stamp(self.now()), "trace_id": secrets.token_hex(8)}
        if p.errors:
            doc["errors"] = p.errors
        return Reply(p.status, doc, "application/problem+json", p.headers)

    def answer(self, method, path, query, headers, body):
        self.play()
        try:
            if "/elsewhere" in path:
                self.followed += 1
            if not path.startswith(BASE + "/"):
                raise Problem(404, self.wire.unknown_route[11:],
                              "The requested resource '%s' doesn't exist" % path)
            if self.tokens is not None and headers.get("authorization") not in [
                "Bearer " + t for t in self.tokens]:
                raise Problem(401, "AUTH-001", "a valid bearer token is required")
            by = "system@hyperfleet.local"
            if self.identity_header:
                by = headers.get(self.identity_header.lower()) or ""
                if not by and method != "GET":
                    raise Problem(401, "AUTH-001", "no caller identity")
            return self.route(method, path, urllib.parse.parse_qs(query, keep_blank_values=True),
                              body, by)
        except Problem as p:
            return self.problem(p, path)
        except Refused as e:
            return self.problem(Problem(e.status, "VAL-005" if e.status == 400 else "INT-001",
                                        str(e)), path)

    def route(self, method, path, query, body, by):
        parts = path[len(BASE):].strip("/").split("/")
        shape = [p if i % 2 == 0 else "-" for i, p in enumerate(parts)]
        flat = self.wire.name == "G3.1" and shape[:2] == ["nodepools", "-"]
        routes = {
            "clusters": ("list", "Cluster"), "nodepools": ("list", "NodePool"),
            "clusters/-": ("one", "Cluster"),
            "clusters/-/nodepools": ("list", "NodePool"),
            "clusters/-/nodepools/-": ("one", "NodePool"),
            "clusters/-/statuses": ("statuses", "Cluster"),
            "clusters/-/nodepools/-/statuses": ("statuses", "NodePool"),
            "clusters/-/force-delete": ("force", "Cluster"),
            "clusters/-/nodepools/-/force-delete": ("force", "NodePool"),
        }
        if flat:
            routes.update({"nodepools/-": ("one", "NodePool"),
                           "nodepools/-/statuses": ("statuses", "NodePool")})
        what, kind = routes.get("/".join(shape), (None, None))
        if what is None or what == "force" and not self.wire.deletes:
            raise Problem(404, self.wire.unknown_route[11:],
                          "The requested resource '%s' doesn't exist" % path)
        of_cluster = kind == "NodePool" and not flat and len(parts) > 2
        owner = self.find("Cluster", parts[1]) if of_cluster else None
        if what == "list":
            if method == "GET":
                return self.list(kind, owner, query)
            if method == "POST" and (kind == "Cluster" or owner):
                return Reply(201, self.document(self.posted(kind, owner, self.parsed(body), by)))
            return Reply(405)
        row = self.find(kind, parts[1] if flat else parts[3] if kind == "NodePool" else parts[1],
                        owner)
        if what == "statuses":
            return self.statuses(method, row, query, body)
        if what == "force":
            return self.forced(method, row)
        if method == "GET":
            return Reply(200, self.document(row))
        if method == "PATCH" and (kind == "Cluster" or self.wire.patches_pools):
            return self.patched(row, self.parsed(body), by)
        if method == "DELETE" and self.wire.deletes:
            self.delete(row, by)
            return Reply(202, self.document(row))
        if method == "DELETE" and kind == "Cluster":
            raise Problem(501, "INT-003", "delete")
        return Reply(405)

    def find(self, kind, id_, owner=None):
        row = self.rows.get(id_)
        if row is None or row.kind != kind:
            raise Problem(404, "NTF-001", "%s with id='%s' not found" % (kind, id_))
        if owner is not None and row.owner != owner.id:
            raise Problem(404, "NTF-001",
                          "NodePool '%s' not found for cluster '%s'" % (id_, owner.id))
        return row

    def parsed(self, body):
        try:
            doc = json.loads(body.decode("utf-8"))
        except ValueError:
            raise Problem(400, "VAL-006", "Invalid JSON in request body")
        if not isinstance(doc, dict):
            raise Problem(400, "VAL-006", "Invalid JSON in request body")
        if "spec" in doc and not isinstance(doc["spec"], dict):
            raise Problem(400, "VAL-000", "spec field must be an object")
        labels = doc.get("labels")
        if labels is not None and not (isinstance(labels, dict)
                                       and all(isinstance(v, str) for v in labels.values())):
            raise Problem(400, "VAL-006", "Invalid request format: labels")
        for key, value in (labels or {}).items() if self.wire.strict else ():
            if not LABEL_KEY.match(key) or not LABEL_VALUE.match(value):
                raise Problem(400, "VAL-000", "Invalid labels",
                              [{"field": "labels." + key, "message": "is not a valid label"}])
        return doc

    def posted(self, kind, owner, doc, by):
        low, high = LENGTHS[kind]
        name = doc.get("name")
        checks = ((not doc.get("id"), "id must be empty"), (name, "name is required"),
                  (len(name or "") >= low, "name must be at least %d characters" % low),
                  (len(name or "") <= high, "name must be at most %d characters" % high),
                  (NAME.match(name or ""),
                   "name must start and end with lowercase letter or number, and contain only "
                   "lowercase letters, "
                                           "numbers, and hyphens"),
                  (doc.get("kind"), "kind is required"),
                  (doc.get("kind") == kind, "kind must be '%s'" % kind),
                  ("spec" in doc, "spec is required"))
        for ok, detail in checks:
            if not ok:
                raise Problem(400, "VAL-000", detail)
        if owner is not None and owner.deleted is not None:
            raise Problem(409, "CNF-003", "Cluster '%s' is marked for deletion" % owner.id)
        return self.create(kind, owner.id if owner else None, doc, by)

    def patched(self, row, doc, by):
        if self.wire.strict and set(doc) - {"spec", "labels"}:
            raise Problem(400, "VAL-006",
                          "unknown field %s" % sorted(set(doc) - {"spec", "labels"}))
        if self.wire.name != "G2" and "spec" not in doc and "labels" not in doc:
            raise Problem(400, "VAL-005", "at least one field must be provided for update")
        if row.deleted is not None:
            raise Problem(409, "CNF-003", "%s '%s' is marked for deletion" % (row.kind, row.id))
        self.patch(row, doc.get("spec"), doc.get("labels") if self.wire.patches_labels else None,
                   by)
        return Reply(200, self.document(row))

    def forced(self, method, row):
        if method != "POST":
            return Reply(405)
        if row.deleted is None:
            raise Problem(409, "CNF-003", "%s '%s' is not in Finalizing state" % (row.kind, row.id))
        self.remove(row.id)
        return Reply(204)

    def statuses(self, method, row, query, body):
        if method == "GET":
            return self.page(list(row.reports.values()), "AdapterStatusList", query)
        if method != self.wire.report_method:
            return Reply(405)
        doc = self.parsed(body)
        seen = set()
        if not doc.get("adapter"):
            raise Problem(400, "VAL-000", "adapter is required")
        for i, c in enumerate(doc.get("conditions") or []):
            if not c.get("type"):
                raise Problem(400, "VAL-000", "condition type cannot be empty at index %d" % i)
            if c["type"] in seen:
                raise Problem(400, "VAL-000",
                              "duplicate condition type '%s' at index %d" % (c["type"], i))
            if c.get("status") not in ("True", "False", "Unknown"):
                raise Problem(400, "VAL-000",
                              "invalid status value '%s' for condition at index %d (type: %s): "
                              "must be 'True', 'False', or "
                                              "'Unknown'" % (c.get("status"), i, c["type"]))
            seen.add(c["type"])
        doc.setdefault("conditions", [])
        doc.setdefault("observed_generation", 0)
        doc.setdefault("observed_time", stamp(self.now()))
        if self.wire.strict and not -1800e6 <= micros(doc["observed_time"]) - self.now() <= 300e6:
            raise Problem(400, "VAL-000", "observed_time is out of its window")
        report = self.report(row, doc)
        return Reply(204) if report is None else Reply(201, report)

    def number(self, query, name, default):
        value = query.get(name, [""])[-1]
        if not value:
            return default
        try:
            return int(value)
        except ValueError:
            if self.wire.strict:
                raise Problem(400, "VAL-005", "%s must be an integer" % name,
                              [{"field": name, "message": "must be an integer"}])
            return default

    def page(self, items, kind, query):
        page = self.number(query, "page", 1)
        if self.wire.strict:
            size = self.number(query, "size", self.wire.page_size)
            for name, value, high in (("page", page, 100000), ("size", size, 100)):
                if not 1 <= value <= high:
                    raise Problem(400, "VAL-005", "%s is out of range" % name,
                                  [{"field": name, "message": "must be 1 to %d" % high}])
        else:
            size = self.number(query, "pageSize", self.number(query, "size", self.wire.page_size))
            size = 65500 if size < 0 or size > 65500 else size
        start = (max(page, 1) - 1) * size
        part = items[start:start + size]
        doc = {"kind": kind} if self.wire.list_kind else {}
        doc.update(page=page, size=len(part), total=len(items), items=part)
        return Reply(200, doc)

    def list(self, kind, owner, query):
        columns = COLUMNS + (("owner_id",) if kind == "NodePool" else ())
        text = query.get("search", [""])[-1].strip()
        if owner is not None and self.wire.tsl == 0 and text:
            # The seed appends without parentheses.
            text = "%s and owner_id='%s'" % (text, owner.id)
        test = compile_search(text, self.wire.tsl, columns, self.wire.or_is_broken)
        rows = [r for r in self.rows.values() if r.kind == kind]
        label = re.search(r"labels\.humanitec_guresid='([^']*)'", text)
        if label and not re.search(r"(?i)\b(or|not)\b", text):
            # Rows that cannot match need not become documents.
            rows = [r for r in rows if r.labels.get("humanitec_guresid") == label.group(1)]
        if owner is not None and (self.wire.tsl != 0 or not text):
            rows = [r for r in rows if r.owner == owner.id]
        key, direction = self.order(query, columns)
        found = [(r, d) for r in rows for d in (self.document(r),) if test(d)]
        found.sort(key=lambda rd: rd[1].get(key) if key != "owner_id" else rd[0].owner,
                   reverse=direction == "desc")
        return self.page([d for _, d in found], kind + "List", query)

    def order(self, query, columns):
        text = query.get("order" if self.wire.strict else "orderBy", [""])[-1].split(",")[0].strip()
        if not text:
            return "created_time", "desc"
        words = text.split()
        if len(words) > 2 or len(words) == 2 and words[1] not in ("asc", "desc"):
            raise Problem(400, "VAL-005", "bad order value '%s'" % text)
        if words[0] not in columns:
            raise Problem(400 if self.wire.strict else 500, "VAL-005" if self.wire.strict
                          else "INT-001", "unknown order '%s'" % words[0])
        return words[0], words[1] if len(words) == 2 else "asc"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        headers = {k.lower(): v for k, v in self.headers.items()}
        reply = self.server.fake.serve(self.server, self.command, self.path, headers, body)
        if isinstance(reply, tuple):
            self.broken(*reply)
            return
        self.head(reply, len(reply.body))
        if reply.status != 204:
            self.wfile.write(reply.body)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

    def head(self, reply, size):
        self.send_response(reply.status)
        if reply.status != 204:
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(size))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()

    def broken(self, how, reply):
        self.close_connection = True
        if how == "cut":
            self.head(reply, max(len(reply.body), 2))
            self.wfile.write(reply.body[:len(reply.body) // 2])
            self.wfile.flush()
        elif how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.server.no_farewell.add(self.connection)

    def log_message(self, *args):
        pass


class Listener(http.server.ThreadingHTTPServer):
    """One port of the fake, with a thread for each connection."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, fake, player, port, tls):
        self.fake, self.player, self.tls = fake, player, tls
        self.open, self.no_farewell, self.lock = set(), set(), threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05},
                                       daemon=True)
        self.thread.start()

    def finish_request(self, request, client_address):
        if self.tls is not None:
            request.settimeout(10)
            request = self.tls.wrap_socket(request, server_side=True)
            request.settimeout(None)
        with self.lock:
            self.open.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            with self.lock:
                self.open.discard(request)
            if self.tls is not None:
                request.close()

    def shutdown_request(self, request):
        if request in self.no_farewell:
            self.no_farewell.discard(request)
            self.close_request(request)
        else:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """A client that hung up, or a handshake that failed: both are what tests are about."""

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def make_certificates(folder):
    """ca.pem, server.pem/.key for 127.0.0.1, client.pem/.key, and other-ca.pem that signed nothing,
    by the openssl program.
    """
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    for name in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "2", "-subj", "/CN=" + name,
                "-keyout", name + ".key", "-out", name + ".pem")
    for name, san in (("server", "IP:127.0.0.1,DNS:localhost"), ("client", "DNS:driver"),
                      ("wrong", "DNS:elsewhere.example.com")):
        with open(os.path.join(folder, name + ".ext"), "w", encoding="utf-8") as f:
            f.write("subjectAltName=%s\n" % san)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", "/CN=" + name, "-keyout",
                name + ".key", "-out", name + ".csr")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-extfile",
                name + ".ext", "-out", name + ".pem")


def tls_context(folder, name="server", client_ca=None):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key"))
    if client_ca is not None:
        ctx.load_verify_locations(os.path.join(folder, client_ca))
        ctx.verify_mode = ssl.CERT_REQUIRED
    return ctx


def main():
    parser = argparse.ArgumentParser(description="a scripted HyperFleet")
    parser.add_argument("--generation", choices=sorted(WIRES), default="G3")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--auto", type=float, default=None, metavar="SECONDS",
                        help="adapters report success after that time")
    args = parser.parse_args()
    with Fake(args.generation, auto_s=args.auto, port=args.port) as fake:
        print("%s for the driver, http://127.0.0.1:%d%s for players"
              % (fake.url, fake.player_port, BASE), flush=True)
        seen = 0
        while True:
            time.sleep(0.2)
            for rec in fake.requests()[seen:]:
                print(rec, flush=True)
                seen += 1


if __name__ == "__main__":
    main()
