#!/usr/bin/env python3
"""Checks any Humanitec driver from outside against the Driver API 0.9.3.

The check makes resources under GUResIDs of its own, watches every answer, and deletes them again.
This file is all of it: it needs Python 3.11 and nothing else. `RULES` is also the table of the
manual. The contract tests judge every answer of our own server by `judgements`, too.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import re
import secrets
import signal
import ssl
import stat
import sys
import threading
import time
import typing
import urllib.error
import urllib.parse
import urllib.request
from xml.sax.saxutils import quoteattr

NAME = "hyperfleet-driver-check"
API = "Humanitec Driver API 0.9.3"
COOKIE, SET_COOKIE = "Humanitec-Driver-Cookie", "Set-Humanitec-Driver-Cookie"
COOKIE_BYTES_LIMIT = 10240
COOKIES_KEPT_MAX = 8  # of one order
DOCUMENT_BYTES_MAX = 1024 * 1024
ANSWER_BYTES_MAX = 16 * 1024 * 1024
TOKEN_BYTES_MAX = 16384
QUOTE_MAX, SEEN_MAX = 180, 310  # characters
TOGETHER = 4  # requests at the same time
BUSY_TRIES, BUSY_WAIT_MAX_S = 3, 30
CLEAN_TRIES = 5  # for a DELETE that is refused
REQUEST_TIMEOUT_S = 60
WAIT_FIRST_S, WAIT_MAX_S = 1, 10
CLOCK_TOLERANCE_S = 300
OK, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 69  # exit statuses
LEVELS = ("must", "should", "may")
NO_GET, NO_UPDATE = "the driver does not serve GET", "needs --update FILE"


class Rule(typing.NamedTuple):
    """A statement of the API that can be seen from outside, in our words, and where it stands."""
    id: str
    level: str
    text: str
    source: str


RULES = [Rule(*line.split("|")) for line in """
A-01|must|each status is one that the API has for the method|responses
A-02|must|no request ends with a status of 500 or above|responses
A-03|must|a body is application/json|responses, content
A-04|must|the body of 200, 202, 400 and 409 is a JSON object|responses, content
A-05|must|each request is answered|responses
O-01|must|the members of a 200 have the types of OutputData|OutputData
O-02|must|`id` of a 200 is the GUResID|OutputData, id
O-03|must|`type` of a 200 is the type that was ordered|OutputData, type
O-04|must|each manifest has a known location and an object as data|OutputData, manifests
O-05|should|a 200 has `id` and `type`|OutputData
H-01|must|`status` of a hint is creating, updating or deleting|AsyncProgressHint, status
H-02|must|the times of a hint are ISO 8601|AsyncProgressHint
H-03|may|a hint has `current_time`|AsyncProgressHint, current_time
H-04|should|the estimated completion is not in the past|AsyncProgressHint, estimated_completion_time
H-05|should|the estimated completion is not after the timeout|AsyncProgressHint, timeout
H-06|should|the timeout stays the same while an operation lasts|AsyncProgressHint, timeout
H-07|should|`status` names the operation that is under way|AsyncProgressHint, status
H-08|may|`current_time` is within 5 minutes of this machine's clock|AsyncProgressHint, current_time
E-01|must|`error` of a 400 is RES-1 and two digits|Error, error
E-02|must|`message` of a 400 is a text that is not empty|Error, message
C-01|must|a cookie has fewer than 10,240 bytes|SetHumanitecDriverCookie
C-02|should|a cookie has the characters of base64 only|SetHumanitecDriverCookie
C-03|must|the cookie is read from the header Humanitec-Driver-Cookie|HumanitecDriverCookie
C-04|should|the cookie stays the same while nothing changes|HumanitecDriverCookie
C-05|may|a resource is found without its cookie, too|HumanitecDriverCookie
C-06|may|an altered cookie is answered by 400|HumanitecDriverCookie
I-01|must|the same PUT again makes no second instance|PUT
I-02|must|a PUT again without its cookie makes no second instance|PUT
I-03|must|equal first PUTs at the same time make one instance|PUT
P-01|must|the first PUT is answered by 200 or 202|PUT
P-02|must|the same PUT again, while creating, is answered by 200 or 202|PUT 409
P-03|must|a creation ends in 200|PUT 202, GET 200
P-04|must|the same PUT again, when ready, is answered by 200|PUT 200
P-05|must|another PUT while creating is answered by 409, 202 or 200|PUT 409
P-06|must|an update ends in 200|PUT 200, PUT 202
P-07|must|a PUT of an update creates what does not exist|PUT
P-08|must|a PUT after the deletion creates the resource again|PUT, DELETE 204
P-09|should|four equal PUTs at the same time are answered by 200 or 202|PUT
P-10|must|the PUT of an update again, when it is done, is answered by 200|PUT 200
G-01|may|GET is served|GET
G-02|must|GET of a resource that was never made is 404|GET 404
G-03|must|GET behind the first PUT is 200 or 202|GET 200, GET 202
G-04|must|GET of a resource that is ready is 200|GET 200
G-05|should|two GETs of a resource that is ready are equal|GET
G-06|must|GET behind the end of the deletion is 404|GET 404
G-07|should|GET during a deletion is 202 or 404|GET 202
D-01|must|DELETE of a resource that was never made is 204|DELETE 204
D-02|must|a repeated DELETE is 202 or 204|DELETE 202
D-03|must|a deletion ends in 204|DELETE 202
D-04|must|DELETE of what was deleted is 204|DELETE 204
D-05|must|a 204 has no body|DELETE 204
D-06|must|DELETE while creating is 202 or 204|DELETE
D-07|should|a DELETE 204 sets no cookie|HumanitecDriverCookie
D-08|must|DELETE without the cookie is 202, 204 or 400|HumanitecDriverCookie
X-01|must|a PUT that is not JSON is 400|PUT 400
X-02|must|a PUT without a body is 400|PUT, requestBody
X-03|must|a PUT that is no object is 400|InputData
X-04|must|a PUT with a number as `type` is 400|InputData, type
X-05|must|a PUT that was refused makes nothing|PUT 400, GET 404
""".split("\n")[1:-1]]

# ---- what holds for every answer -----------------------------------------------------------------

# A GET may be 405: the driver is polled by PUT and DELETE then.
DOCUMENTED = {"GET": (200, 202, 400, 404, 405), "PUT": (200, 202, 400, 409),
              "DELETE": (202, 204, 400)}
# The API has the singular, Humanitec's own drivers and examples the plural.
LOCATIONS = ("container", "containers", "volume", "volumes", "namespace", "namespaces", "cluster",
             "clusters")
TIMES = ("estimated_completion_time", "timeout", "timeout_deadline", "current_time")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
                  r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?")


class Asked(typing.NamedTuple):
    """A request, as far as rules need it. None: not known."""
    method: str
    gid: str
    type: str | None = None  # that was ordered
    operation: str | None = None  # that is under way: "creating"
    timeout: str | None = None  # that the last hint of the operation had


def parse_json(body):
    """The value of a JSON text in bytes; None for another text."""
    def refuse(name):
        raise ValueError(name)
    try:
        return json.loads(body.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def parse_time(doc, key):
    """A time of a hint with its zone; None without one."""
    try:
        at = datetime.datetime.fromisoformat(doc.get(key))
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo is not None else None


def judgements(asked, answer):
    """Pairs of a rule and whether an answer meets it.

    answer: any object with status, body in bytes, and header(name)
    """
    status, doc = answer.status, parse_json(answer.body)
    yield "A-02", status < 500
    if status < 500:
        yield "A-01", status in DOCUMENTED[asked.method]
    if status == 204:
        yield "D-05", not answer.body and answer.header("Content-Length") in (None, "0")
    if status in (200, 202, 400, 409):
        if answer.body:
            yield "A-03", (answer.header("Content-Type") or "").startswith("application/json")
        yield "A-04", isinstance(doc, dict)
        if isinstance(doc, dict):
            judge = {200: output_judgements, 400: error_judgements}.get(status, hint_judgements)
            yield from judge(asked, doc)
    yield from cookie_judgements(asked, answer)


def broken(judged):
    """The rules of judgements that are not met."""
    return [rule for rule, met in judged if not met]


def output_judgements(asked, doc):
    """OutputData."""
    resource, manifests = doc.get("resource", {}), doc.get("manifests", [])
    inner = resource if isinstance(resource, dict) else {}
    yield "O-01", (isinstance(doc.get("id", ""), str) and isinstance(doc.get("type", ""), str)
                   and isinstance(resource, dict) and isinstance(manifests, list)
                   and isinstance(inner.get("values", {}), dict)
                   and isinstance(inner.get("secrets", {}), dict))
    yield "O-05", "id" in doc and "type" in doc
    if isinstance(doc.get("id"), str):
        yield "O-02", doc["id"] == asked.gid
    if isinstance(doc.get("type"), str) and asked.type is not None:
        yield "O-03", doc["type"] == asked.type
    yield "O-04", all(isinstance(m, dict) and m.get("location") in LOCATIONS
                      and isinstance(m.get("data"), dict)
                      for m in (manifests if isinstance(manifests, list) else []))


def hint_judgements(asked, doc):
    """AsyncProgressHint. All its members are optional, and others are allowed."""
    status = doc.get("status")
    yield "H-01", "status" not in doc or status in ("creating", "updating", "deleting")
    if isinstance(status, str) and asked.operation is not None:
        yield "H-07", status == asked.operation
    yield "H-02", all(isinstance(doc[key], str) and TIME.fullmatch(doc[key])
                      for key in TIMES if key in doc)
    yield "H-03", "current_time" in doc
    now, estimate, timeout = (parse_time(doc, key) for key in (
        "current_time", "estimated_completion_time", "timeout"))
    if now is not None:
        ours = datetime.datetime.now(datetime.timezone.utc)
        yield "H-08", abs((now - ours).total_seconds()) < CLOCK_TOLERANCE_S
        if estimate is not None:
            yield "H-04", estimate >= now
    # From the timeout on, no estimate is right.
    if estimate is not None and timeout is not None and (now is None or now < timeout):
        yield "H-05", estimate <= timeout
    if isinstance(doc.get("timeout"), str) and asked.timeout is not None:
        yield "H-06", doc["timeout"] == asked.timeout


def error_judgements(_asked, doc):
    """Error. The pattern of the API has its anchors the wrong way round."""
    code, message = doc.get("error"), doc.get("message")
    yield "E-01", isinstance(code, str) and re.fullmatch(r"RES-1[0-9][0-9]", code) is not None
    yield "E-02", isinstance(message, str) and message != ""


def cookie_judgements(asked, answer):
    """The header Set-Humanitec-Driver-Cookie."""
    cookie = answer.header(SET_COOKIE)
    if cookie is None:
        return
    yield "C-01", len(cookie) < COOKIE_BYTES_LIMIT
    yield "C-02", re.fullmatch(r"[A-Za-z0-9+/=._-]*", cookie) is not None
    if asked.method == "DELETE" and answer.status == 204:
        yield "D-07", cookie == ""


# ---- texts of drivers ----------------------------------------------------------------------------

SECRET = re.compile(r"hfd_[A-Za-z0-9_-]{40,}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


def quote(text, limit=QUOTE_MAX):
    """A text of a driver as one line: nothing in it moves a cursor, or shows a token."""
    text = SECRET.sub("[redacted]", text)
    line = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return line if len(line) <= limit else line[:limit - 3] + "..."


def describe(method, answer):
    """An answer as one line, without the secrets of outputs."""
    if answer.status == 0:
        return "%s got no answer: %s" % (method, quote(answer.why))
    text = answer.body.decode(errors="replace").rstrip()
    resource = answer.doc.get("resource") if isinstance(answer.doc, dict) else None
    if isinstance(resource, dict) and resource.get("secrets"):
        text = json.dumps({**answer.doc, "resource": {**resource, "secrets": "[redacted]"}})
    return "%s answered %d%s" % (method, answer.status, ": " + quote(text) if text else "")


# ---- requests ------------------------------------------------------------------------------------

class Answer:
    """An answer of the driver. status 0: none came; lost: and none will come."""

    def __init__(self, status=0, headers=None, body=b"", why="", lost=False):
        self.status, self.headers, self.body, self.why = status, headers or {}, body, why
        self.lost = lost
        self.doc = parse_json(body)

    def header(self, name):
        value = self.headers.get(name)
        return value.strip() if value is not None else None

    def whole_header(self, name):
        """The number in a header; None without one."""
        value = self.header(name) or ""
        return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else None

    def values(self):
        """The values of an output; None for another answer."""
        resource = self.doc.get("resource") if isinstance(self.doc, dict) else None
        values = resource.get("values") if isinstance(resource, dict) else None
        return values if self.status == 200 and isinstance(values, dict) else None


class EveryStatus(urllib.request.HTTPErrorProcessor):
    """Gives each answer as it is: no redirect is followed."""

    def http_response(self, request, response):
        return response

    https_response = http_response


class Driver:
    """Requests to one base URL. Thread: any."""

    def __init__(self, url, token=None, context=None):
        self.base = url.rstrip("/")
        self.opener = urllib.request.build_opener(
            EveryStatus, urllib.request.HTTPSHandler(context=context))
        self.opener.addheaders = [("User-Agent", NAME), ("Accept", "application/json")]
        if token is not None:
            self.opener.addheaders.append(("Authorization", "Bearer " + token))

    def send(self, method, gid, headers, body=None, gate=None):
        """One request. gate: a barrier before it is sent."""
        request = urllib.request.Request("%s/%s" % (self.base, gid), method=method, data=body)
        request.headers.update(headers)
        if body is not None:
            request.headers["Content-Type"] = "application/json"
        if gate is not None:
            with contextlib.suppress(threading.BrokenBarrierError):
                gate.wait(REQUEST_TIMEOUT_S)
        try:
            with self.opener.open(request, timeout=REQUEST_TIMEOUT_S) as response:
                return Answer(response.status, response.headers, read_body(response))
        except urllib.error.URLError as e:
            return Answer(why=getattr(e.reason, "strerror", None) or str(e.reason), lost=True)
        except TimeoutError:
            return Answer(why="%d s are over" % REQUEST_TIMEOUT_S, lost=True)
        except (OSError, http.client.HTTPException, ValueError) as e:
            return Answer(why=str(e) or type(e).__name__)


def read_body(response):
    """The body of an answer, with limits for its length and time."""
    end = time.monotonic() + REQUEST_TIMEOUT_S
    body = bytearray()
    while piece := response.read1(65536):
        body += piece
        if len(body) > ANSWER_BYTES_MAX:
            raise ValueError("the answer has more than %d bytes" % ANSWER_BYTES_MAX)
        if time.monotonic() > end:
            raise TimeoutError
    if response.length:
        raise ValueError("the answer is cut short")
    return bytes(body)


# ---- the report ----------------------------------------------------------------------------------

class Report:
    """The result of each chosen rule: "skip", "pass" or "fail", and the reason."""

    def __init__(self, target, chosen):
        self.target, self.chosen = target, chosen
        self.results = {rule.id: ("skip", "") for rule in RULES}
        self.left = []  # GUResIDs that could not be deleted

    def judge(self, rule, met, seen):
        """Fails a rule, or passes one that has not failed."""
        if self.results[rule][0] != "fail":
            self.results[rule] = ("pass", "") if met else ("fail", seen[:SEEN_MAX])

    def skip(self, why, *rules):
        """Says why rules were not judged, unless they were, or the reason is known."""
        for rule in rules:
            if self.results[rule] == ("skip", ""):
                self.results[rule] = ("skip", why)

    def rows(self):
        return [(rule, *self.results[rule.id]) for rule in self.chosen]

    def counts(self):
        """Passed, failed, skipped. A broken rule of level may counts nowhere."""
        rows = self.rows()
        return (sum(result == "pass" for _, result, _ in rows),
                sum(result == "fail" and rule.level != "may" for rule, result, _ in rows),
                sum(result == "skip" for _, result, _ in rows))

    def table(self):
        lines = []
        for rule, result, seen in self.rows():
            lines.append("%s  %s  %-6s  %s" % (result if result != "fail" else "FAIL", rule.id,
                                               rule.level, rule.text))
            if result != "pass":
                lines.append("      " + seen)
            if result == "fail":
                lines.append("      (%s, %s)" % (API, rule.source))
        lines += ["left: %s could not be deleted" % gid for gid in self.left]
        lines.append("%d passed, %d failed, %d skipped" % self.counts())
        return "\n".join(lines) + "\n"

    def json(self):
        rules = [{"id": rule.id, "level": rule.level, "result": result, "text": rule.text,
                  "source": "%s, %s" % (API, rule.source), "seen": seen}
                 for rule, result, seen in self.rows()]
        passed, failed, skipped = self.counts()
        return json.dumps({"target": self.target, "rules": rules, "passed": passed,
                           "failed": failed, "skipped": skipped, "left": self.left},
                          indent=1) + "\n"

    def junit(self):
        passed, failed, _ = self.counts()
        lines = ['<?xml version="1.0" encoding="UTF-8"?>',
                 '<testsuite name="%s" tests="%d" failures="%d" skipped="%d">' % (
                     API, len(self.chosen), failed, len(self.chosen) - passed - failed)]
        for rule, result, seen in self.rows():
            kind = "failure" if result == "fail" and rule.level != "may" else "skipped"
            inner = "" if result == "pass" else "<%s message=%s/>" % (kind, quoteattr(seen))
            lines.append('  <testcase classname="%s" name=%s>%s</testcase>' % (
                rule.level, quoteattr("%s %s" % (rule.id, rule.text)), inner))
        return "\n".join(lines + ["</testsuite>", ""])


# ---- the steps -----------------------------------------------------------------------------------

class Order:
    """A resource that the check may have made."""

    def __init__(self, gid):
        self.gid, self.cookie, self.may_exist = gid, None, False
        self.cookies = []  # (cookie, rule): each that it had, and the rule that its PUT is about
        self.remains = []  # cookies that find something behind the end of the deletion
        self.operation = self.timeout = None

    def begin(self, operation):
        """operation: the word that a hint should have; None: not known"""
        self.operation, self.timeout = operation, None


class Check:
    """The run of all steps on one driver. Thread: main."""

    def __init__(self, driver, report, options, stop):
        self.driver, self.report, self.options, self.stop = driver, report, options, stop
        self.orders, self.has_get, self.lost = [], True, False
        self.why = ""  # nothing can be made
        self.type = json.loads(options.input).get("type")

    # One exchange ---------------------------------------------------------------------------------

    def new_order(self, about=""):
        gid = secrets.token_hex(16) if self.options.id is None else \
            "%s-%s" % (self.options.id, secrets.token_hex(4))
        self.orders.append(Order(gid))
        if about:
            self.say(about, self.orders[-1])
        return self.orders[-1]

    def stopped(self):
        return self.lost or self.stop.is_set()

    def say(self, text, order):
        print("check: %s %s" % (text, order.gid), file=sys.stderr, flush=True)

    def request(self, order, method, body, headers, gate=None):
        """Sends a request, some times to a driver that says it is busy."""
        if body is not None:
            body = body.replace("${id}", order.gid).encode()
        for i in range(BUSY_TRIES):
            answer = self.driver.send(method, order.gid, headers, body, gate)
            wait_s = answer.whole_header("Retry-After")
            if answer.status not in (429, 503) or wait_s is None or i + 1 == BUSY_TRIES:
                break
            self.stop.wait(min(max(wait_s, 1), BUSY_WAIT_MAX_S))
            gate = None
        return answer

    def send(self, order, method, body=None, headers=None, rule="G-06"):
        """Sends a request, keeps its cookie, and judges what holds for every answer.

        headers: None = the cookie of the order
        rule: that a second instance behind a new cookie breaks
        """
        if headers is None:
            headers = {COOKIE: order.cookie} if order.cookie else {}
        return self.take(order, method, headers, rule,
                         self.request(order, method, body, headers))

    def send_together(self, order, body):
        """The answers to some equal first PUTs at the same time."""
        gate = threading.Barrier(TOGETHER)
        with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
            answers = list(pool.map(
                lambda _: self.request(order, "PUT", body, {}, gate), range(TOGETHER)))
        return [self.take(order, "PUT", {}, "I-03", answer) for answer in answers]

    def take(self, order, method, headers, rule, answer):
        answer.text = describe(method, answer)
        self.report.judge("A-05", answer.status != 0, answer.text)
        if answer.status == 0:
            self.lost = self.lost or answer.lost
            order.may_exist = order.may_exist or method == "PUT"
            return answer
        asked = Asked(method, order.gid, self.type, order.operation, order.timeout)
        for name, met in judgements(asked, answer):
            self.report.judge(name, met, answer.text)
        if answer.status in (202, 409) and isinstance(answer.doc, dict) and order.operation:
            order.timeout = answer.doc.get("timeout") or order.timeout
        if method == "PUT" and answer.status < 400:
            order.may_exist = True
        cookie = answer.header(SET_COOKIE)
        if cookie is not None:
            order.cookie = cookie or None
        if cookie and method == "PUT" and len(order.cookies) < COOKIES_KEPT_MAX and \
                all(cookie != known for known, _ in order.cookies):
            order.cookies.append((cookie, rule))
        # A driver that needs the cookie deletes nothing without it.
        if method == "DELETE" and answer.status == 204 and (headers or order.cookie is None):
            order.cookie, order.may_exist = None, False
        return answer

    def poll(self, order, method, body=None, headers=None):
        """Sends a request until its answer is not 202. Returns the last answer."""
        end = time.monotonic() + self.options.timeout
        wait_s = WAIT_FIRST_S / 2
        while True:
            answer = self.send(order, method, body, headers)
            # A deletion goes on when the check is stopped.
            stops = self.lost or (self.stop.is_set() and method != "DELETE")
            if answer.status != 202 or stops or time.monotonic() >= end:
                return answer
            asked_s = answer.whole_header("Retry-After")
            wait_s = min(wait_s * 2 if asked_s is None else max(asked_s, WAIT_FIRST_S), WAIT_MAX_S)
            self.pause(wait_s, method == "DELETE")

    def pause(self, otherwise_s, whole=False):
        """Waits. whole: also when the check is stopped"""
        (threading.Event() if whole else self.stop).wait(self.options.interval or otherwise_s)

    # Steps ----------------------------------------------------------------------------------------

    def ask(self, name, wanted, order, method, body=None, **kw):
        """Sends a request and judges its status. Returns the answer."""
        if self.stopped():
            return Answer()
        answer = self.send(order, method, body, **kw)
        if not self.lost:
            self.report.judge(name, answer.status in wanted, answer.text)
        return answer

    def step(self, *args, **kw):
        return self.ask(*args, **kw).status

    def step_get(self, rule, wanted, order):
        if self.has_get:
            return self.step(rule, wanted, order, "GET")
        self.report.skip(NO_GET, rule)
        return 0

    def poll_operation(self, order, body):
        """Polls a deletion by DELETE; a creation or an update by GET, or by the PUT again."""
        return self.poll(order, "DELETE" if body is None else "GET" if self.has_get else "PUT",
                         None if self.has_get else body)

    def finish(self, rule, wanted, order, body=None):
        """Polls an operation to its end and judges that. Returns whether it ended as wanted."""
        if self.stopped():
            return False
        answer = self.poll_operation(order, body)
        if not self.stopped() and not self.refused(answer, rule):
            self.report.judge(rule, answer.status == wanted, answer.text)
        return answer.status == wanted

    def refused(self, answer, *rules):
        """Tells if a driver refuses updates, which it may. Then rules about them are skipped."""
        refused = answer.status == 400 and isinstance(answer.doc, dict) and \
            answer.doc.get("error") == "RES-106" and rules[0] in ("P-05", "P-06")
        if refused:
            self.report.skip("the driver refuses updates (RES-106)", *rules)
        return refused

    def settle(self, order):
        """A driver that began an operation, rightly or not, ends it."""
        if self.has_get and not self.stopped():
            self.poll(order, "GET")

    def absent(self):
        """A resource that does not exist."""
        order = self.new_order("asks for what does not exist:")
        self.step_get("G-02", (404,), order)
        for _ in range(2):
            self.step("D-01", (204,), order, "DELETE")

    def garbage(self):
        """Orders that are not valid."""
        order = self.new_order("orders what is not valid:")
        for rule, body in (("X-01", '{"type": '), ("X-02", None), ("X-03", "[]"),
                           ("X-04", '{"type": 5, "driver": {"values": {}}}')):
            self.step(rule, (400,), order, "PUT", body)
        self.step_get("X-05", (404,), order)

    def put_same(self, name, wanted, order, body, status):
        """A PUT that changes nothing: with this status the cookie stays. Returns the answer."""
        before = order.cookie
        answer = self.ask(name, wanted, order, "PUT", body, rule="I-01")
        if before and answer.status == status:
            self.report.judge("C-04", before == order.cookie,
                              "the same PUT again set another cookie")
        return answer

    # One instance ---------------------------------------------------------------------------------

    def judge_values(self, rule, stable, answer, what):
        """An instance is known by the values that two equal requests showed."""
        values = answer.values()
        if values is None:
            return
        other = [key for key, value in stable.items() if values.get(key) != value]
        self.report.judge(rule, not other, "" if not other else quote(
            "%s shows another instance: `%s` is %s, and was %s" % (
                what, other[0], json.dumps(values.get(other[0])), json.dumps(stable[other[0]])),
            SEEN_MAX))

    def stable_values(self, order, body):
        """The values of a resource that is ready, without those that change by themselves."""
        first, second = (self.poll_operation(order, body).values() or {} for _ in range(2))
        return {key: first[key] for key in first if key in second and first[key] == second[key]}

    @staticmethod
    def rule_of(order, i):
        """The rule that is broken when a cookie of an order has an instance of its own."""
        return order.cookies[max(i, 1)][1] if len(order.cookies) > 1 else "G-06"

    def judge_cookies(self, order, stable):
        """Each cookie that was set before shows the same instance, or none."""
        for i, (cookie, _) in enumerate(order.cookies):
            rule = self.rule_of(order, i)
            if self.has_get and cookie != order.cookie and rule[0] == "I" and not self.stopped():
                self.judge_values(rule, stable, self.poll(order, "GET", headers={COOKIE: cookie}),
                                  "GET with an earlier cookie")

    def judge_remains(self, order):
        """Behind the end of the deletion no cookie finds anything."""
        order.remains = []
        for i, (cookie, _) in enumerate(order.cookies):
            if not self.has_get or self.lost:
                return
            answer = self.send(order, "GET", headers={COOKIE: cookie})
            if answer.status in (200, 202):
                order.remains.append(cookie)
                self.report.judge(self.rule_of(order, i), False,
                                  "after the deletion, with an earlier cookie: " + answer.text)

    # The cookie -----------------------------------------------------------------------------------

    def judge_cookie_use(self, order):
        if not order.cookie or not self.has_get or self.stopped():
            self.report.skip("the driver sets no cookie" if self.has_get else NO_GET, "C-03")
            return
        half = len(order.cookie) // 2
        altered = order.cookie[:half] + "AB"[order.cookie[half] == "A"] + order.cookie[half + 1:]
        right, none, wrong, bad = (self.send(order, "GET", headers=headers).status for headers in (
            {COOKIE: order.cookie}, {}, {SET_COOKIE: order.cookie}, {COOKIE: altered}))
        found = (200, 202)
        if self.lost or (right not in found and wrong not in found):
            return
        seen = "GET with the cookie answered %d, without it %d, and with it under %s %d" % (
            right, none, SET_COOKIE, wrong)
        if all(status in found for status in (right, none, bad)):
            self.report.skip("the driver answers the same with any cookie", "C-03")
        else:
            self.report.judge("C-03", right in found, seen)
        self.report.judge("C-05", none in found, seen)
        self.report.judge("C-06", bad == 400, "GET with an altered cookie answered %d" % bad)

    # A life ---------------------------------------------------------------------------------------

    def create(self, order):
        """Returns the document that the resource is made of now, or None."""
        body, update = self.options.input, self.options.update
        order.begin("creating")
        answer = self.send(order, "PUT", body)
        if answer.status not in (200, 202):
            text = answer.text
            if re.search(r"(?i)\b(taken|exists?|already|in use|duplicate)\b", text):
                text += "; use ${id} in the names: see --help"
            self.report.judge("P-01", self.lost, text)
            self.why = "the first PUT was refused"
            return None
        self.report.judge("P-01", True, "")
        status = self.put_same("P-02", (200, 202), order, body, 202).status
        if self.step_get("G-03", (200, 202), order) == 404:
            self.judge_cookie_use(order)
        if update is None:
            self.report.skip(NO_UPDATE, "P-05", "P-06", "P-07", "P-10")
        elif status == 202 and not self.stopped():
            order.begin(None)
            answer = self.send(order, "PUT", update)
            if not self.lost and not self.refused(answer, "P-05"):
                self.report.judge("P-05", answer.status in (409, 202, 200), answer.text)
            if answer.status == 409:
                order.begin("creating")
            elif answer.status in (200, 202):
                body = update
        return body if self.finish("P-03", 200, order, body) else None

    def use(self, order, body):
        """Judges a resource that is ready, and updates it."""
        order.begin(None)
        stable = self.stable_values(order, body)
        self.judge_cookies(order, stable)
        answer = self.put_same("P-04", (200,), order, body, 200)
        self.judge_values("I-01", stable, answer, "the same PUT again")
        self.settle(order)
        self.put_without_cookie(order, body, stable)
        self.settle(order)
        if not self.has_get:
            self.report.skip(NO_GET, "G-04", "G-05")
        elif not self.stopped():
            first, second = self.send(order, "GET"), self.send(order, "GET")
            self.report.judge("G-04", first.status == 200, first.text)
            if first.status == 200:
                self.report.judge("G-05", first.doc == second.doc, second.text)
        self.judge_cookie_use(order)
        if self.options.update is not None and not self.stopped():
            self.update(order, self.options.input if body == self.options.update
                        else self.options.update)

    def put_without_cookie(self, order, body, stable):
        if self.stopped():
            return
        answer = self.send(order, "PUT", body, headers={}, rule="I-02")
        if answer.status == 202:
            answer = self.poll_operation(order, body)
        self.judge_values("I-02", stable, answer, "a PUT without the cookie")
        self.judge_cookies(order, stable)
        if 200 <= answer.status < 500:
            self.report.judge("I-02", True, "")

    def update(self, order, body):
        self.say("updates", order)
        order.begin("updating")
        answer = self.send(order, "PUT", body)
        if not self.lost and not self.refused(answer, "P-06", "P-10"):
            self.report.judge("P-06", answer.status in (200, 202), answer.text)
        if answer.status == 200 or answer.status == 202 and self.finish("P-06", 200, order, body):
            order.begin(None)
            self.step("P-10", (200,), order, "PUT", body)
            self.settle(order)

    def destroy(self, order):
        """Deletes a resource. Returns whether it is gone."""
        self.say("deletes", order)
        order.begin("deleting")
        if self.step("D-02", (202, 204), order, "DELETE") == 202:
            self.step_get("G-07", (202, 404), order)
            self.step("D-02", (202, 204), order, "DELETE")
        if not self.finish("D-03", 204, order):
            return False
        order.begin(None)
        self.step("D-04", (204,), order, "DELETE")
        self.step_get("G-06", (404,), order)
        self.judge_remains(order)
        return not self.stopped()

    def live_again(self, order):
        """The same GUResID once more, deleted before it is ready."""
        self.say("creates again, and deletes at once:", order)
        order.begin("creating")
        if self.step("P-08", (200, 202), order, "PUT", self.options.input) not in (200, 202):
            return
        order.begin(None)
        if self.step("D-06", (202, 204), order, "DELETE") == 202:
            order.begin("deleting")
            self.finish("D-03", 204, order)

    def life(self):
        order = self.new_order("creates")
        body = self.create(order)
        if body is not None:
            self.use(order, body)
        if order.may_exist and not self.stopped() and self.destroy(order):
            self.live_again(order)

    def by_update(self):
        """The update is the first PUT of a resource."""
        order = self.new_order("creates by an update")
        order.begin("creating")
        self.step("P-07", (200, 202), order, "PUT", self.options.update)

    def together(self):
        """Some equal PUTs at the same time are the first of a resource; then a DELETE without
        cookie.
        """
        if self.why:
            return
        order = self.new_order("creates by %d PUTs at the same time" % TOGETHER)
        body = self.options.input
        order.begin("creating")
        answers = self.send_together(order, body)
        for answer in answers:
            self.report.judge("P-09", answer.status in (200, 202), answer.text)
        if not order.may_exist:
            return
        stable = None
        if self.has_get and len(order.cookies) > 1:
            stable = self.stable_values(order, body)
            self.judge_cookies(order, stable)
        for answer in answers:
            if answer.values() is not None:
                stable = stable or answer.values()
                self.judge_values("I-03", stable, answer, "one of the PUTs")
        self.report.judge("I-03", True, "")
        order.begin(None)
        self.step("D-08", (202, 204, 400), order, "DELETE", headers={})

    # The run --------------------------------------------------------------------------------------

    def knock(self):
        """Asks for a resource that does not exist. Returns why the driver cannot be checked."""
        answer = self.driver.send("GET", self.new_order().gid, {})
        if answer.status == 0:
            return "%s cannot be reached: %s" % (self.report.target, quote(answer.why))
        if answer.status in (401, 403):
            return "%s answers %d: expected a token that may call it: --token-file" % (
                self.report.target, answer.status)
        self.has_get = answer.status != 405
        self.report.judge("G-01", self.has_get, "GET answered 405")
        return None

    def delete(self, order):
        """Deletes an order, also when a DELETE is refused for a while. Returns if it is gone."""
        end = time.monotonic() + self.options.timeout
        refusals = 0
        while refusals < CLEAN_TRIES:
            status = self.poll(order, "DELETE").status
            if status == 204 or time.monotonic() >= end:
                return status == 204
            refusals += status != 409  # then another operation has to end first
            self.lost = False
            self.pause(WAIT_FIRST_S, True)
        return False

    def clean(self, order):
        """Deletes what an order may have made, and what other cookies of it find."""
        order.begin(None)
        lost, self.lost = self.lost, False
        gone = not order.may_exist or self.delete(order)
        self.lost = self.lost or lost
        if order.may_exist or order.cookies:
            self.judge_remains(order)
        remains = order.remains if self.has_get else [c for c, _ in order.cookies]
        for cookie in remains:
            order.cookie = cookie
            gone = self.delete(order) and gone or not self.has_get
        order.cookies, order.remains = [], []
        if not gone:
            self.report.left.append(order.gid)

    def run(self):
        """Plays all steps and cleans up. Returns why the driver could not be checked, or None."""
        why = self.knock()
        steps = (self.absent, self.garbage, self.life, self.by_update, self.together)
        for step in steps if self.options.update else (*steps[:3], self.together):
            if why is None and not self.stopped():
                step()
                for order in self.orders:
                    self.clean(order)
                self.orders = []
        for order in self.orders:
            self.clean(order)
        self.report.skip("stopped before" if self.stop.is_set() else
                         "no answer came before" if self.lost else
                         self.why or "no answer was of this kind", *self.report.results)
        return why


# ---- the command ---------------------------------------------------------------------------------

# The types of flags: each raises ArgumentTypeError for a bad value.

def read_file(path, limit):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(limit + 1)
    except (OSError, ValueError) as e:
        raise argparse.ArgumentTypeError("%s: %s" % (path, getattr(e, "strerror", 0) or e))
    if len(text) > limit:
        raise argparse.ArgumentTypeError("%s: expected at most %d characters" % (path, limit))
    return text


def document(path):
    """The text of a document that the check orders."""
    text = read_file(path, DOCUMENT_BYTES_MAX)
    if not isinstance(parse_json(text.encode()), dict):
        raise argparse.ArgumentTypeError("%s: expected a JSON object" % path)
    return text


def token_of(path):
    token = read_file(path, TOKEN_BYTES_MAX).strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise argparse.ArgumentTypeError("%s: expected one line with a token" % path)
    return token


def trust(path):
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as e:
        raise argparse.ArgumentTypeError("%s: %s" % (path, e.strerror or e))


def driver_url(text):
    try:
        url = urllib.parse.urlsplit(text)
        good = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        good = False
    if not good or re.search(r"[^!-~]|[?#]", text) or "@" in url.netloc:
        raise argparse.ArgumentTypeError("%s: expected http://HOST/PATH or https://HOST/PATH"
                                         % quote(text))
    return text


def gid_start(text):
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,50}", text):
        raise argparse.ArgumentTypeError("expected at most 51 of a-z, 0-9 and hyphens")
    return text


def duration(text):
    """Seconds of "90s", "1h30m" or "500ms"."""
    match = re.fullmatch(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?"
                         r"(?:([0-9]{1,6})ms)?", text)
    seconds = sum(int(n or 0) * unit for n, unit in zip(
        match.groups(), (3600, 60, 1, 0.001))) if match else 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError("expected a duration as 90s, 45m or 1h30m")
    return seconds


class Parser(argparse.ArgumentParser):
    """Arguments may come from elsewhere, too: a message is one line."""

    def error(self, message):
        super().error(quote(message, 1000))


def parser():
    made = Parser(
        prog=NAME, add_help=False, allow_abbrev=False,
        usage="%(prog)s URL --input FILE [--update FILE] [FLAGS]",
        description="Check any Humanitec driver against the Driver API 0.9.3.",
        epilog="Example: %s https://driver.example.com/s3/ --input s3.json\n"
        "${id} in FILE stands for the GUResID of each order: use it in names, so that none is "
        "taken.\n\nExit status:\n"
        "   0  all rules of level must and should hold\n   1  a rule is broken, or cut short\n"
        "   2  unknown flag, or a bad value\n  69  the driver cannot be reached, or refuses the "
        "caller" % NAME,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=120))
    made.add_argument("place", nargs="?", metavar="URL", type=driver_url, help=argparse.SUPPRESS)
    add = made.add_argument_group("Flags").add_argument
    add("--input", metavar="FILE", type=document, help="the document that is ordered")
    add("--update", metavar="FILE", type=document, help="a change of it")
    add("--only", metavar="RULE,...", help="judge these rules alone")
    add("--level", choices=LEVELS, metavar="LEVEL", help="must, should or may: and stronger")
    add("--id", metavar="TEXT", type=gid_start, help="GUResIDs begin with it")
    add("--timeout", metavar="DURATION", type=duration, default=1800,
        help="for one operation: 30m by default")
    add("--interval", metavar="DURATION", type=duration, help="between polls; else as the driver "
        "asks")
    add("--json", action="store_true", help="print JSON")
    add("--junit", metavar="FILE", help="write JUnit's XML as well")
    add("--list", action="store_true", help="print the rules")
    add("--url", metavar="URL", type=driver_url, default=os.environ.get("HFD_URL"),
        help="the driver, in place of the argument (HFD_URL)")
    add("--token-file", metavar="FILE", type=token_of, default=os.environ.get("HFD_TOKEN_FILE"),
        help="a bearer token (HFD_TOKEN_FILE)")
    add("--ca-file", metavar="FILE", type=trust, help="certificates to trust")
    add("--help", action="help", help="print this text")
    return made


def choose(only, level):
    """The chosen rules."""
    ids = [text.strip() for text in only.split(",")] if only else [rule.id for rule in RULES]
    for text in ids:
        if text not in {rule.id for rule in RULES}:
            raise ValueError("--only: there is no rule '%s': expected ids as A-01"
                             % quote(text, 20))
    chosen = [rule for rule in RULES if rule.id in ids
              and LEVELS.index(rule.level) <= LEVELS.index(level or "may")]
    if not chosen:
        raise ValueError("--only and --level leave no rule to check")
    return chosen


def write_own(path, text):
    """Writes a file of this user. A link, a pipe and a file of another user stay as they are."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(0, "expected a regular file of this user")
        file.truncate()
        file.write(text)


def write_out(text, junit=None, report=None):
    """Prints a text, and writes the report as JUnit's XML, too. Returns the exit status."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
        if junit:
            write_own(junit, report.junit())
    except OSError as e:
        print("%s: cannot write the report: %s" % (NAME, e.strerror), file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the end of Python
        return FAILED
    return OK


def watch_signals(stop):
    """The first signal ends the check after a clean-up, the second one ends the program."""
    def on_signal(_number, _frame):
        if stop.is_set():
            os._exit(FAILED)
        stop.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def main(argv):
    """Returns the exit status."""
    flags = parser()
    options = flags.parse_args(argv)
    stop = threading.Event()
    if options.list:
        return write_out("".join("%s  %-6s  %s (%s)\n" % rule for rule in RULES))
    target = options.place or options.url
    if not target or not options.input:
        flags.error("expected the URL of a driver and --input FILE")
    try:
        report = Report(target, choose(options.only, options.level))
    except ValueError as e:
        flags.error(str(e))
    driver = Driver(target, options.token_file, options.ca_file)
    watch_signals(stop)
    why = Check(driver, report, options, stop).run()
    if why is not None:
        print("%s: %s" % (NAME, why), file=sys.stderr)
        return UNREACHABLE
    written = write_out(report.json() if options.json else report.table(), options.junit, report)
    if written != OK:
        return written
    return FAILED if stop.is_set() or report.counts()[1] > 0 else OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
