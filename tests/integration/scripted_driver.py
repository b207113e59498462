"""A small Humanitec driver in memory, right or wrong in one way: what `check` is tried on."""
import base64
import datetime
import http.server
import json
import threading
import time

POLLS = 3  # requests until an operation has ended
COOKIE, SET_COOKIE = "Humanitec-Driver-Cookie", "Set-Humanitec-Driver-Cookie"


def time_text(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def busy_hint():
    return {"status": "creating", "current_time": time_text(0)}


class Answer(Exception):
    """An answer, from wherever it is made."""

    def __init__(self, status, doc=None, cookie=None, raw=None, content_type="application/json"):
        super().__init__(status)
        self.status, self.doc, self.cookie = status, doc, cookie
        self.raw, self.content_type = raw, content_type


class Driver:
    """Each `wrong` changes one thing; "" changes nothing."""

    def __init__(self, wrong="", pause_s=0.1):
        self.wrong, self.pause_s = wrong, pause_s
        self.lock = threading.Lock()
        self.resources = {}
        self.deleted = set()
        self.putting = 0
        self.count = 0
        self.instances = {}  # cookie -> a resource of its own, of a driver that makes two

    def is_wrong(self, *names):
        return self.wrong in names

    # Documents ------------------------------------------------------------------------------------

    def hint(self, r):
        if self.is_wrong("empty hint"):
            return {}
        if self.is_wrong("output hint"):
            return self.output("", r) | {"id": r["gid"]}
        estimate, timeout = 5, "2099-01-01T00:00:00Z"
        doc = {"status": r["op"], "timeout": timeout, "current_time": time_text(0)}
        if self.is_wrong("past"):
            estimate = -60
        doc["estimated_completion_time"] = time_text(estimate)
        if self.is_wrong("beyond"):
            doc["estimated_completion_time"] = "2100-01-01T00:00:00Z"
        if self.is_wrong("moving"):
            self.count += 1
            doc["timeout"] = time_text(1000 + 10 * self.count)
        if self.is_wrong("status word"):
            doc["status"] = "pending"
        if self.is_wrong("other word"):
            doc["status"] = "creating"
        if self.is_wrong("times"):
            doc["timeout"] = "tomorrow"
        if self.is_wrong("no clock"):
            del doc["current_time"]
        if self.is_wrong("clock"):
            doc["current_time"] = time_text(-3600)
        return [doc] if self.is_wrong("array") else doc

    def output(self, gid, r):
        doc = {"id": gid, "type": r["body"]["type"], "manifests": [],
               "resource": {"values": {"n": r["body"]["n"], "instance": r["instance"]},
                            "secrets": {"key": "ssh-secret"}}}
        if self.is_wrong("values"):
            doc["resource"]["values"] = []
        if self.is_wrong("id"):
            doc["id"] = "other"
        if self.is_wrong("type"):
            doc["type"] = "other"
        if self.is_wrong("manifest"):
            doc["manifests"] = [{"location": "pod", "data": {}}]
        if self.is_wrong("no id"):
            del doc["id"]
        if self.is_wrong("unstable"):
            self.count += 1
            doc["resource"]["values"]["count"] = self.count
        return doc

    def error(self, message, status=400):
        if self.is_wrong("refgo"):
            return Answer(422 if status == 400 else status, raw=json.dumps(message))
        if self.is_wrong("refpy"):
            return Answer(422 if status == 400 else status, raw=message, content_type="text/plain")
        doc = {"error": "RES-101", "message": message}
        if self.is_wrong("code"):
            doc["error"] = "E-5"
        if self.is_wrong("no message"):
            del doc["message"]
        return Answer(status, doc)

    def cookie(self, gid):
        if self.wrong.startswith("two"):
            return self.resources[gid]["cookie"]
        if self.is_wrong("long cookie"):
            return "A" * 10240
        if self.is_wrong("odd cookie"):
            return json.dumps({"id": gid})
        if self.is_wrong("new cookies"):
            self.count += 1
            return base64.b64encode(b"%s %d" % (gid.encode(), self.count)).decode()
        return base64.b64encode(gid.encode()).decode()

    # Requests -------------------------------------------------------------------------------------

    def check_cookie(self, gid, headers):
        """As the driver reads it: some need it, some read it under another name."""
        name = SET_COOKIE if self.is_wrong("cookie name") else COOKIE
        value = headers.get(name)
        if self.is_wrong("cookie name", "needs cookie", "refgo", "refpy") and value is None:
            raise Answer(404)
        if value is None or self.is_wrong("any cookie", "new cookies", "long cookie"):
            return
        if self.wrong.startswith("two"):
            if value not in self.instances:
                raise self.error("the cookie is not ours")
        elif value != self.cookie(gid):
            raise self.error("the cookie is not ours")

    def advance(self, gid, r):
        """One more request has come; an operation ends after some."""
        if r["op"] is None:
            return
        r["polls"] += 1
        if r["polls"] < POLLS:
            return
        if r["op"] == "deleting":
            del self.instances[r["cookie"]]
            if self.resources.get(gid) is r:
                del self.resources[gid]
            self.deleted.add(gid)
        elif r["op"] == "creating" and self.is_wrong("never made"):
            r["failed"] = True
        r["op"] = None

    def make(self, gid, body, op):
        """Makes an instance, or changes the one that there is."""
        r = self.resources.get(gid)
        if r is None or op == "creating":
            self.count += 1
            r = {"instance": self.count, "gid": gid,
                 "cookie": base64.b64encode(b"%d" % self.count).decode()}
        self.resources[gid] = self.instances[r["cookie"]] = r
        r.update({"body": body, "op": op, "polls": 0})

    def begin(self, gid, body, op):
        self.make(gid, body, op)
        raise Answer(202, self.hint(self.resources[gid]), self.cookie(gid))

    def find(self, gid, headers):
        """The resource that is meant: by its id, or by the cookie in a driver that makes two."""
        r = self.instances.get(headers.get(COOKIE)) if self.wrong.startswith("two") else None
        return r if r is not None and r["gid"] == gid else self.resources.get(gid)

    def read_order(self, gid, raw):
        try:
            body = json.loads(raw)
        except ValueError:
            raise self.error("not JSON", 422 if self.is_wrong("422") else 400) from None
        if not isinstance(body, dict):
            raise self.error("not an object", 422 if self.is_wrong("422 array") else 400)
        if not isinstance(body.get("type"), str):
            if self.is_wrong("keeps"):
                self.make(gid, {"type": "x", "n": 0}, "creating")
            raise self.error("type is no string", 422 if self.is_wrong("422 type") else 400)
        return body

    def put(self, gid, raw, headers):
        if not raw and self.is_wrong("422 none"):
            raise self.error("no body", 422)
        body = self.read_order(gid, raw or b"")
        r = self.find(gid, headers)
        if r is None:
            self.create(gid, body)
        self.make_two(gid, r, body, headers)
        if COOKIE in headers and not self.is_wrong("cookie name"):
            self.check_cookie(gid, headers)
        same = r["body"] == body
        if r["op"] == "deleting":
            raise Answer(409, self.hint(r), self.cookie(gid))
        if r["op"] is not None:
            self.put_in_progress(gid, r, same)
        if r.get("failed"):
            raise self.error("it failed")
        if same and (self.is_wrong("starts over") or
                     self.is_wrong("updates again") and body["n"] == 2):
            self.begin(gid, body, "updating")
        if same:
            raise Answer(200, self.output(gid, r), self.cookie(gid))
        if self.is_wrong("no update"):
            raise self.error("it cannot change")
        if self.is_wrong("refuses updates"):
            raise Answer(400, {"error": "RES-106", "message": "it cannot change"})
        self.begin(gid, body, "updating")

    def make_two(self, gid, r, body, headers):
        """Another instance, where there should be one."""
        same, making = r["body"] == body, r["op"] == "creating"
        if same and (self.is_wrong("two by a PUT again") and making or
                     self.is_wrong("two without cookie") and COOKIE not in headers):
            self.begin(gid, body, "creating")
        if same and r["op"] is None and self.is_wrong("two when ready"):
            self.make(gid, body, "creating")
            self.resources[gid]["op"] = None
            raise Answer(200, self.output(gid, self.resources[gid]), self.cookie(gid))

    def create(self, gid, body):
        if self.is_wrong("refpy"):
            self.make(gid, body, None)
            raise Answer(200, self.output(gid, self.resources[gid]), self.cookie(gid))
        if self.is_wrong("201"):
            raise Answer(201, {}, self.cookie(gid))
        if self.is_wrong("409 first"):
            raise Answer(409, busy_hint(), self.cookie(gid))
        if self.is_wrong("no new update") and body["n"] == 2:
            raise self.error("there is nothing to update")
        if self.is_wrong("taken"):
            raise self.error("the name 'shop' is taken by a cluster: choose another name")
        if self.is_wrong("once") and gid in self.deleted:
            raise self.error("it was deleted")
        if self.is_wrong("refgo"):
            self.make(gid, body, "creating")
            raise Answer(202, self.output(gid, self.resources[gid]), self.cookie(gid))
        self.begin(gid, body, "creating")

    def put_in_progress(self, gid, r, same):
        if same and self.is_wrong("409 same"):
            raise Answer(409, self.hint(r), self.cookie(gid))
        if same:
            self.advance(gid, r)
            doc = self.hint(r) if r["op"] else self.output(gid, r)
            raise Answer(202 if r["op"] else 200, doc, self.cookie(gid))
        if self.is_wrong("400 other"):
            raise self.error("not now")
        if self.is_wrong("refuses updates"):
            raise Answer(400, {"error": "RES-106", "message": "it cannot change"})
        raise Answer(409, self.hint(r), self.cookie(gid))

    def get(self, gid, headers):
        if self.is_wrong("no GET", "refgo", "refpy"):
            raise Answer(405)
        r = self.find(gid, headers)
        if r is None:
            if self.is_wrong("500"):
                raise Answer(500, {})
            if self.is_wrong("invents") and gid not in self.deleted:
                raise Answer(200, {"id": gid, "type": "x"})
            if self.is_wrong("haunts") and gid in self.deleted:
                raise Answer(200, {"id": gid, "type": "thing"})
            raise Answer(404)
        self.check_cookie(gid, headers)
        if r["op"] == "creating" and self.is_wrong("hides") and r["polls"] < POLLS - 1:
            r["polls"] += 1
            raise Answer(404)
        self.advance(gid, r)
        self.get_after(gid, r)

    def get_after(self, gid, r):
        if self.is_gone(r):
            raise Answer(404)
        if r.get("failed"):
            raise self.error("it failed")
        if r["op"] == "deleting" and self.is_wrong("400 deleting"):
            raise self.error("it is being deleted")
        if r["op"]:
            raise Answer(202, self.hint(r))
        r["seen"] = r.get("seen", 0) + 1
        if self.is_wrong("forgets") and r["seen"] > 1 and r["body"]["n"] == 1:
            raise Answer(404)
        raise Answer(200, self.output(gid, r))

    def delete(self, gid, headers):
        r = self.find(gid, headers)
        if COOKIE not in headers and (self.is_wrong("refpy") or
                                      self.is_wrong("500 without cookie") and r is not None):
            raise Answer(500, {})
        if r is None:
            if self.is_wrong("404", "refgo", "refpy") and gid not in self.deleted:
                raise Answer(404)
            if self.is_wrong("400 twice", "refgo") and gid in self.deleted:
                raise self.error("it was deleted")
            raise self.gone()
        if r["op"] in ("creating", "updating") and self.is_wrong("busy"):
            doc = self.hint(r)
            self.advance(gid, r)
            raise Answer(409, doc)
        if r["op"] == "deleting":
            if self.is_wrong("400 again"):
                r["polls"] = POLLS
                self.advance(gid, r)
                raise self.error("it is being deleted")
            self.advance(gid, r)
            if self.is_wrong("not deleted") and self.is_gone(r):
                self.wrong = ""
                raise self.error("it could not be deleted")
            raise self.gone() if self.is_gone(r) else Answer(202, self.hint(r))
        r["op"], r["polls"], r["failed"] = "deleting", 0, False
        raise Answer(202, self.hint(r))

    def is_gone(self, r):
        return r["cookie"] not in self.instances

    def gone(self):
        if self.is_wrong("204 body"):
            return Answer(204, {"gone": True})
        return Answer(204, None, "left" if self.is_wrong("204 cookie") else "")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    driver = None

    def log_message(self, *args):
        pass

    def serve(self):
        length = self.headers.get("Content-Length")
        raw = self.rfile.read(int(length)) if length else None
        gid = self.path.lstrip("/")
        d = self.driver
        if d.is_wrong("hangs up") and raw and raw[-1:] not in b"]}":
            self.close_connection = True
            return
        try:
            if d.is_wrong("always 503"):
                raise Answer(503)
            if self.command == "PUT" and d.is_wrong("one at a time", "500 together"):
                self.count_puts()
            if self.command == "PUT" and d.is_wrong("two together"):
                self.make_together(gid, raw)
            with d.lock:
                if self.command == "PUT":
                    d.put(gid, raw, self.headers)
                elif self.command == "GET":
                    d.get(gid, self.headers)
                d.delete(gid, self.headers)
        except Answer as a:
            self.answer(a)

    def count_puts(self):
        """Two PUTs at the same time: the second one is refused."""
        d = self.driver
        with d.lock:
            d.putting += 1
            busy = d.putting > 1
        time.sleep(d.pause_s)
        with d.lock:
            d.putting -= 1
        if busy:
            raise Answer(409, busy_hint()) if d.wrong == "one at a time" else Answer(500, {})

    def make_together(self, gid, raw):
        """PUTs at the same time find nothing, and each makes what it orders."""
        d = self.driver
        with d.lock:
            absent = gid not in d.resources
        time.sleep(d.pause_s if absent else 0)
        if absent and b'"n"' in (raw or b""):
            with d.lock:
                d.begin(gid, json.loads(raw), "creating")

    do_GET = do_PUT = do_DELETE = serve

    def answer(self, a):
        body = b"" if a.doc is None else json.dumps(a.doc).encode()
        if a.raw is not None:
            body = a.raw.encode()
        self.send_response(a.status)
        if body:
            self.send_header("Content-Type",
                             "text/plain" if self.driver.is_wrong("text") else a.content_type)
        if a.cookie is not None:
            self.send_header(SET_COOKIE, a.cookie)
        if a.status != 204 or body:
            self.send_header("Content-Length", str(len(body)))
        if a.status == 204 and body:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


class Served:
    """A driver on a port of its own."""

    def __init__(self, wrong="", pause_s=0.1):
        self.driver = Driver(wrong, pause_s)
        handler = type("H", (Handler,), {"driver": self.driver})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
