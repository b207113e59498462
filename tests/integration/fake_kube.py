"""A fast fake of a Kubernetes API server, for the HyperShift adapter and its tests.
test_hypershift.py compares it with transcripts of a real one.

It has server-side apply with owners of fields, lists with selectors and pages, watches, deletion
with finalizers, dry runs, and the status subresource. It has no schemas but for what SCHEMA says.
Faults can be switched on by the first part of a path.
"""
import bisect
import copy
import http.server
import itertools
import json
import re
import threading
import time
import urllib.parse
import uuid

from lib import free_port

KINDS = {"namespaces": "Namespace", "secrets": "Secret", "hostedclusters": "HostedCluster",
         "nodepools": "NodePool"}
# Those that HyperShift's operator makes. A server has them if `parts` is on.
PARTS = {"hostedcontrolplanes": "HostedControlPlane", "clusters": "Cluster",
         "machinedeployments": "MachineDeployment", "machinesets": "MachineSet",
         "machines": "Machine"}
# Members of spec; an apply with another one is answered as a real server does: 500.
SPEC = {
    "hostedclusters": {
        "release", "pullSecret", "sshKey", "dns", "networking", "etcd", "platform", "services",
        "controllerAvailabilityPolicy", "infrastructureAvailabilityPolicy", "fips", "infraID",
        "clusterID", "issuerURL", "pausedUntil", "capabilities", "olmCatalogPlacement"},
    "nodepools": {
        "clusterName", "replicas", "autoScaling", "release", "management", "platform", "arch",
        "nodeLabels", "taints"}}
REQUIRED = {"hostedclusters": ("release", "pullSecret", "platform", "services"),
            "nodepools": ("clusterName", "release", "management", "platform")}
IMMUTABLE = {
    "hostedclusters": (("services", "Services is immutable"),
                       ("platform.type", "Type is immutable"),
                       ("networking.clusterNetwork", "clusterNetwork is immutable"),
                       ("networking.serviceNetwork", "serviceNetwork is immutable"),
                       ("controllerAvailabilityPolicy",
                        "ControllerAvailabilityPolicy is immutable")),
    "nodepools": (("platform.type", "Type is immutable"), ("clusterName", "Value is immutable"),
                  ("arch", "Arch is immutable"))}


EDITED = "/Update"  # behind the name of a manager that changed a field, and did not apply it


class Refused(Exception):
    """A Status other than success."""

    def __init__(self, code, reason, message, details=None):
        super().__init__(message)
        self.code = code
        self.doc = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": message, "code": code}
        if reason:
            self.doc["reason"] = reason
        if details:
            self.doc["details"] = details


def causes(*found):
    return {"causes": [{"reason": r, "message": m, "field": f} for r, m, f in found]}


def at(doc, path):
    for key in path.split("."):
        doc = doc.get(key) if isinstance(doc, dict) else None
    return doc


def leaves(doc, path=()):
    """{path: value}: what a manager owns. Lists are one value."""
    if isinstance(doc, dict) and doc:
        out = {}
        for key, value in doc.items():
            out.update(leaves(value, path + (key,)))
        return out
    return {path: doc}


def drop(doc, path):
    """Removes a value, and objects that become empty."""
    if len(path) == 1:
        doc.pop(path[0], None)
    elif isinstance(doc.get(path[0]), dict):
        drop(doc[path[0]], path[1:])
        if not doc[path[0]]:
            del doc[path[0]]


def set_at(doc, path, value):
    for key in path[:-1]:
        doc = doc.setdefault(key, {})
    doc[path[-1]] = value


class Store:
    """The objects and what happened to them."""

    def __init__(self):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects = {}  # (plural, namespace, name) -> document
        self.owners = {}   # the same key -> {path: manager}
        self.events = []   # (version, plural, type, document)
        self.version = itertools.count(100)
        self.last = 100
        self.oldest = 0    # a watch from before is 410

    def note(self, kind, key, doc):
        self.last = next(self.version)
        doc["metadata"]["resourceVersion"] = str(self.last)
        self.events.append((self.last, key[0], kind, copy.deepcopy(doc)))
        self.changed.notify_all()

    def put(self, key, doc, was=None):
        """Stores a document; the generation follows its spec."""
        if was is not None:
            same = {k: v for k, v in doc.items() if k != "metadata"} == \
                {k: v for k, v in was.items() if k != "metadata"}
            bare = [{k: v for k, v in d["metadata"].items() if k != "resourceVersion"}
                    for d in (doc, was)]
            if same and bare[0] == bare[1]:
                return was
            if doc.get("spec") != was.get("spec"):
                doc["metadata"]["generation"] = was["metadata"].get("generation", 1) + 1
        if doc["metadata"].get("deletionTimestamp") and not doc["metadata"].get("finalizers"):
            self.objects.pop(key, None)
            self.owners.pop(key, None)
            self.note("DELETED", key, doc)
        else:
            self.objects[key] = doc
            self.note("ADDED" if was is None else "MODIFIED", key, doc)
        return doc

    def missing(self, key):
        return Refused(404, "NotFound", '%s "%s" not found' % (key[0], key[2]),
                       {"name": key[2], "kind": key[0]})

    def check_place(self, key):
        if key[0] == "namespaces":
            return
        place = self.objects.get(("namespaces", "", key[1]))
        if place is None:
            raise Refused(404, "NotFound", 'namespaces "%s" not found' % key[1],
                          {"name": key[1], "kind": "namespaces"})

    def create(self, key, doc):
        self.check_place(key)
        meta = doc["metadata"]
        meta.update({"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z",
                     "generation": 1, "name": key[2]})
        if key[1]:
            meta["namespace"] = key[1]
        return doc


def check_spec(key, doc, was):
    """Refuses objects as a real server does."""
    plural, spec = key[0], doc.get("spec", {})
    if plural not in SPEC:
        return
    for name in spec:
        if name not in SPEC[plural]:
            raise Refused(500, "", "failed to create typed patch object (%s/%s; hypershift."
                          "openshift.io/v1beta1, Kind=%s): .spec.%s: field not declared in schema"
                          % (key[1], key[2], KINDS[plural], name))
    found = [("FieldValueRequired", "Required value", "spec." + name)
             for name in REQUIRED[plural] if name not in spec]
    if isinstance(spec.get("replicas"), int) and spec["replicas"] < 0:
        found.append(("FieldValueInvalid", "Invalid value: %d: should be a non-negative integer"
                      % spec["replicas"], ".spec.replicas"))
    if was is not None:
        for path, message in IMMUTABLE[plural]:
            if at(was["spec"], path) is not None and at(was["spec"], path) != at(spec, path):
                found.append(("FieldValueInvalid", "Invalid value: %s" % message, "spec." + path))
    if found:
        details = dict(causes(*found), name=key[2], kind=KINDS[plural])
        raise Refused(422, "Invalid", '%s "%s" is invalid: %s' % (
            KINDS[plural], key[2], "; ".join("%s: %s" % (f, m) for _, m, f in found)), details)


def to_secret(doc):
    """stringData becomes data."""
    import base64
    for key, text in doc.pop("stringData", {}).items():
        doc.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, *args):
        pass

    @property
    def api(self):
        return self.server.api

    def send(self, code, doc, retry_after=None):
        raw = doc.encode() if isinstance(doc, str) else json.dumps(doc).encode()
        self.send_response(code)
        self.send_header("Content-Type",
                         "text/plain" if isinstance(doc, str) else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if retry_after:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(raw)

    def is_ours(self):
        """True for a request of the program under test."""
        return "hyperfleet-driver" in self.headers.get("User-Agent", "")

    def parse(self):
        """(key, subresource) of the path; an empty name is a list."""
        m = re.match(r"^/(?:api/v1|apis/hypershift\.openshift\.io/v1beta1"
                     r"|apis/cluster\.x-k8s\.io/%s)"
                     r"(?:/namespaces/([^/]+)(?=/[a-z]+))?/([a-z]+)(?:/([^/]+))?(?:/(status))?$"
                     % self.api.capi, self.url.path)
        if m is None or not (m.group(2) in KINDS or self.api.parts and m.group(2) in PARTS):
            return None, None
        return (m.group(2), m.group(1) or "", m.group(3) or ""), m.group(4)

    def setup(self):
        super().setup()
        self.era = self.api.era

    def handle_one(self):
        if self.api.cut or self.era != self.api.era:
            self.close_connection = True  # as a server that went away
            return
        self.url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(self.url.query))
        length = int(self.headers.get("Content-Length") or 0)
        self.raw = self.rfile.read(length)
        if self.is_ours():
            self.api.requests.append((self.command, self.path))
            self.api.traces.append((self.path, self.headers.get("traceparent")))
            if self.path.startswith("/api/v1/secrets"):
                self.api.lists.append((self.path, self.headers.get("Accept", "")))
        if self.api.fault(self):
            return
        if self.api.token and self.headers.get("Authorization") != "Bearer " + self.api.token:
            self.send(401, Refused(401, "Unauthorized", "Unauthorized").doc)
            return
        key, sub = self.parse()
        if key is None:
            self.send(404, "404 page not found\n")
            return
        if self.query.get("watch"):
            self.watch(key)
            return
        try:
            with self.api.store.lock:
                code, doc = getattr(self, "do_" + self.command.lower())(key, sub)
        except Refused as e:
            code, doc = e.code, e.doc
        if self.is_ours() and self.api.on_done and self.api.on_done(self.command, self.path):
            self.close_connection = True
            return
        self.send(code, doc)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_one

    # ---- verbs, under the lock ----

    def do_get(self, key, _):
        store = self.api.store
        if key[2]:
            if key not in store.objects:
                raise store.missing(key)
            return 200, store.objects[key]
        found = sorted((k, v) for k, v in store.objects.items()
                       if k[0] == key[0] and key[1] in ("", k[1]) and self.selects(v))
        limit, start = int(self.query.get("limit") or 0), int(self.query.get("continue") or 0)
        meta = {"resourceVersion": str(store.last)}
        if limit and start + limit < len(found):
            meta["continue"] = str(start + limit)
        items = [v for _, v in found[start:start + limit if limit else None]]
        return 200, {"kind": dict(KINDS, **PARTS)[key[0]] + "List", "apiVersion": "v1",
                     "metadata": meta, "items": items}

    def selects(self, doc):
        labels = doc["metadata"].get("labels") or {}
        pairs = [p.split("=") for p in self.query.get("labelSelector", "").split(",") if p]
        return all(labels.get(k) == v for k, v in pairs)

    def do_post(self, key, _):
        store, doc = self.api.store, json.loads(self.raw)
        key = (key[0], key[1], doc["metadata"]["name"])
        if key in store.objects:
            raise Refused(409, "AlreadyExists", '%s "%s" already exists' % (key[0], key[2]),
                          {"name": key[2], "kind": key[0]})
        return 201, store.put(key, store.create(key, doc))

    def do_put(self, key, sub):
        store, doc = self.api.store, json.loads(self.raw)
        was = store.objects.get(key)
        if was is None:
            raise store.missing(key)
        self.check_version(key, doc, was)
        new = copy.deepcopy(was)
        new["status" if sub else "spec"] = doc.get("status" if sub else "spec")
        return 200, store.put(key, new, was)

    def check_version(self, key, doc, was):
        given = doc["metadata"].get("resourceVersion")
        if given and given != was["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", 'Operation cannot be fulfilled on %s "%s": the object '
                          "has been modified; please apply your changes to the latest version and "
                          "try again" % (key[0], key[2]), {"name": key[2], "kind": key[0]})

    def do_patch(self, key, _):
        kind = self.headers.get("Content-Type", "")
        if kind == "application/apply-patch+yaml":
            return self.apply(key)
        if kind != "application/merge-patch+json":
            raise Refused(415, "UnsupportedMediaType", "the body of the request was in an unknown "
                          "format - accepted media types include: application/apply-patch+yaml")
        store = self.api.store
        was, patch = store.objects.get(key), json.loads(self.raw)
        if was is None:
            raise store.missing(key)
        self.check_version(key, {"metadata": patch.get("metadata", {})}, was)
        new = copy.deepcopy(was)
        patch.get("metadata", {}).pop("resourceVersion", None)

        def merge(to, part):
            for k, v in part.items():
                if v is None:
                    to.pop(k, None)
                elif isinstance(v, dict):
                    merge(to.setdefault(k, {}), v)
                else:
                    to[k] = v
        merge(new, patch)
        self.edit(key, leaves({"spec": new.get("spec", {})}), leaves({"spec": was.get("spec", {})}))
        return 200, store.put(key, new, was)

    def edit(self, key, new, was):
        """A manager that changes a field owns it."""
        owners = self.api.store.owners.setdefault(key, {})
        name = self.query.get("fieldManager", "unknown")
        owners.update({p: name + EDITED for p, v in new.items() if was.get(p) != v})

    def apply(self, key):
        store, doc = self.api.store, json.loads(self.raw)
        manager = self.query.get("fieldManager")
        if not manager:
            raise Refused(422, "Invalid", 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: '
                          "Required value: is required for apply patch", dict(causes(
                              ("FieldValueRequired", "Required value: is required for apply patch",
                               "fieldManager")), group="meta.k8s.io", kind="PatchOptions"))
        if doc["metadata"]["name"] != key[2]:
            raise Refused(400, "BadRequest", "metadata.name and URL name differ")
        self.check_place(key)
        was = store.objects.get(key)
        want = {k: v for k, v in doc.items() if k in ("spec", "data", "stringData", "type")}
        for part in ("labels", "annotations"):
            if doc["metadata"].get(part):
                want.setdefault("metadata", {})[part] = doc["metadata"][part]
        if key[0] == "secrets":
            to_secret(want)
        owners = dict(store.owners.get(key, {}))
        new = copy.deepcopy(was) if was else store.create(key, {
            "apiVersion": doc["apiVersion"], "kind": doc["kind"], "metadata": {}})
        self.take(key, manager, leaves(want), (owners, new))
        check_spec(key, dict(new, spec=want.get("spec", {})) if was is None else new, was)
        if self.query.get("dryRun"):
            return (200 if was else 201), new
        store.owners[key] = owners
        done = store.put(key, new, was)
        return (200 if was else 201), done

    def check_place(self, key):
        self.api.store.check_place(key)

    def take(self, key, manager, want, target):
        """Gives the fields to their manager; another owner of another value is a conflict."""
        owners, new = target
        lost = [(owners[p], p) for p, v in want.items() if owners.get(p, manager) != manager
                and leaves(new).get(p) != v]
        if lost and self.query.get("force") != "true":
            found = [("FieldManagerConflict", 'conflict with "%s"%s' % (
                m.replace(EDITED, ""), " using v1" if EDITED in m else ""), "." + ".".join(p))
                     for m, p in lost]
            raise Refused(409, "Conflict", "Apply failed with %d conflict%s" % (
                len(found), "" if len(found) == 1 else "s"), causes(*found))
        for path in [p for p, m in owners.items() if m == manager and p not in want]:
            drop(new, path)
            del owners[path]
        for path, value in want.items():
            if value == {} and at(new, ".".join(path)):
                continue
            set_at(new, path, value)
            owners[path] = manager

    def do_delete(self, key, _):
        store = self.api.store
        was = store.objects.get(key)
        if was is None:
            raise store.missing(key)
        options = json.loads(self.raw) if self.raw else {}
        uid = options.get("preconditions", {}).get("uid")
        if uid and uid != was["metadata"]["uid"]:
            raise Refused(409, "Conflict", "the UID in the precondition (%s) does not match the "
                          "UID in record" % uid, {"name": key[2], "kind": key[0]})
        new = copy.deepcopy(was)
        if not was["metadata"].get("finalizers"):
            new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            store.put(key, new, was)
            return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                         "details": {"name": key[2], "kind": key[0], "uid": was["metadata"]["uid"]}}
        if not was["metadata"].get("deletionTimestamp"):
            new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            new["metadata"]["generation"] = was["metadata"]["generation"] + 1
            store.put(key, new, was)
        return 200, store.objects[key]

    # ---- watches ----

    def watch(self, key):
        if self.api.stream is not None and self.is_ours():
            self.close_connection = True
            self.api.stream(self)
            return
        store, since = self.api.store, int(self.query.get("resourceVersion") or 0)
        end = time.monotonic() + min(int(self.query.get("timeoutSeconds") or 30), 60)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if since < store.oldest:
            self.chunk({"type": "ERROR", "object": Refused(
                410, "Expired", "too old resource version: %d (%d)" % (since, store.last)).doc})
        else:
            self.follow(key, since, end)
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, event):
        raw = (json.dumps(event) + "\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def follow(self, key, since, end):
        store = self.api.store
        while time.monotonic() < end and self.era == self.api.era and not self.api.cut:
            with store.changed:
                news = store.events[bisect.bisect_right(store.events, since, key=lambda e: e[0]):]
                if not news:
                    store.changed.wait(0.2)
                    continue
            for version, plural, kind, doc in news:
                since = version
                place = doc["metadata"].get("namespace", "")
                if plural == key[0] and key[1] in ("", place) and self.selects(doc):
                    self.chunk({"type": kind, "object": doc})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # clients hang up


class Hold:
    """Requests of the program under test that wait, by the first part of their path."""

    def __init__(self, prefix):
        self.prefix, self.waiting, self.ended = prefix, 0, threading.Event()

    def end(self):
        self.ended.set()


class FakeKube:
    """The server: `url`, switches for faults, and the requests that came."""

    def __init__(self, token="a-token"):
        self.token, self.store, self.requests = token, Store(), []
        self.traces = []  # (path, traceparent)
        self.lists = []  # (path, Accept) of lists of Secrets in all namespaces
        # For the program under test only: first part of a path -> (count, code, more). Code 0 ends
        # the answer in its middle. `more` is Retry-After, or the body of the answer.
        self.faults = {}
        self.held = []
        # Called with method and path when a request of the program under test was carried out, and
        # before its answer. True: there is no answer.
        self.on_done = None
        # Called with the handler in place of each watch of the program under test; None = none is.
        self.stream = None
        self.parts, self.capi = False, "v1beta1"  # PARTS, and the version of the Cluster API
        self.cut, self.era = False, 0
        self.port = free_port()  # down() and up() keep it
        self.start()

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.api = self
        self.url = "http://127.0.0.1:%d" % self.port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def down(self):
        """Closes the port, and ends the watches."""
        self.cut = True
        self.era += 1
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def up(self):
        self.cut = False
        self.start()

    def close(self):
        self.down()

    def hold(self, prefix):
        """Lets requests wait until the returned object's end()."""
        self.held.append(Hold(prefix))
        return self.held[-1]

    def wait(self, handler):
        """Waits while a request is held."""
        for held in self.held:
            if handler.path.startswith(held.prefix) and not held.ended.is_set():
                held.waiting += 1
                held.ended.wait(120)

    def fault(self, handler):
        """Answers a request by a fault. Returns whether it did."""
        if not handler.is_ours():
            return False
        self.wait(handler)
        for prefix, (count, code, more) in list(self.faults.items()):
            if not handler.path.startswith(prefix) or count == 0:
                continue
            self.faults[prefix] = (count - 1, code, more)
            if isinstance(more, (dict, str)):
                handler.send(code, more)
            elif code:
                handler.send(code, Refused(code, "Fault", "a fault of the test").doc, more)
            else:
                handler.send_response(200)
                handler.send_header("Content-Type", "application/json")
                handler.send_header("Content-Length", "1000")
                handler.end_headers()
                handler.wfile.write(b'{"kind": "Cut')
                handler.close_connection = True
            return True
        return False
