"""The backends that the program can drive, each with the program in front of it and adapters to be
played.

They are its own HyperFleet, a second instance of itself with each condition vocabulary, and the
scripted one in each wire generation.
"""
import json
import os
import shutil
import tempfile
import urllib.parse

import lib
from fleet_fake import Fake, WIRES

ADAPTERS = {"Cluster": ("validation", "hypershift"), "NodePool": ("validation",)}
ONE_ADAPTER = {"Cluster": ("validation",), "NodePool": ("validation",)}
# Short times, so that what a remote needs is waited for and not slept for.
REMOTE_FLAGS = ("--remote-watch", "1s", "--remote-fresh", "1s", "--remote-idle", "2s",
                "--remote-retry-min", "1s",
                "--remote-retry-max", "1s", "--remote-timeout", "2s", "--remote-connect-timeout",
                "1s", "--remote-per-second-max", "10000")


class Port:
    """The attributes that lib.Client follows, for an object that is no lib.Server."""

    def __init__(self, port):
        self.port = self.ops_port = port


class Player(lib.Fleet):
    """Adapters and strangers, through the API of the HyperFleet that is driven, in its own words.
    """

    def __init__(self, client, adapters, report_method="POST"):
        super().__init__(client, adapters["Cluster"], adapters["NodePool"])
        self.report_method = report_method

    def found(self, path, gid):
        search = urllib.parse.quote("%s='%s'" % ("labels." + lib.LABEL, gid))
        answer = self.client.get("%s%s?search=%s&size=100&pageSize=100" % (lib.BASE, path, search))
        if answer.status != 200:
            raise AssertionError("list: %r" % answer)
        return answer.json["items"]

    def of(self, gid):
        return self.found("/clusters", gid), self.found("/nodepools", gid)

    def live(self, gid):
        """(clusters, nodepools) of a GUResID that are not being deleted."""
        return tuple([p for p in parts if "deleted_time" not in p] for parts in self.of(gid))

    def report(self, resource, adapter, generation=None, method=None, **kw):
        return super().report(resource, adapter, generation, method or self.report_method, **kw)

    def holds(self, gid, body):
        """Tells if HyperFleet holds what a PUT wants: one cluster with its spec, and its nodepools
        with theirs.
        """
        clusters, pools = self.live(gid)
        values = body["driver"]["values"]
        if "nodepool" in values:
            return len(pools) == 1 and pools[0]["spec"] == values["nodepool"].get("spec", {})
        spec = lambda doc: json.dumps(doc.get("spec", {}), sort_keys=True)
        return (len(clusters) == 1 and spec(clusters[0]) == spec(values["cluster"])
                and sorted(map(spec, pools)) == sorted(map(spec, values.get("nodepools", []))))

    def wanted(self, gid, body):
        """Waits for that."""
        lib.eventually(lambda: self.holds(gid, body), "HyperFleet has what %s asks for" % gid,
                       every_s=0.1)

    def deleting(self, gid):
        """Waits until nothing of a GUResID is alive."""
        lib.eventually(lambda: self.live(gid) == ([], []),
                       "everything of %s is being deleted" % gid, every_s=0.1)

    def finish_pools(self, gid, names):
        """Waits until these nodepools are being deleted, and finalizes them."""
        def leaving():
            found = [p for p in self.of(gid)[1] if "deleted_time" in p]
            return found if sorted(p["name"] for p in found) == sorted(names) else None
        for part in lib.eventually(leaving, "nodepools %s leave" % names):
            self.finalize(part)


class Backend:
    """The program driving one HyperFleet. Opened by open(), for good."""

    remote = True
    deletes = True           # DELETE, and all else that G2 lacks.
    labels_count = True      # A change of labels is a change of generation.
    secrets = True           # data.secrets of a report can be read.
    polls = 1000             # Polls until an answer; the embedded one takes one.

    def __init__(self, name):
        self.name = name
        self.closers = []

    def open(self, *flags, adapters=None, config=None):
        self.adapters = adapters or ADAPTERS
        common = ("--adapters-required-cluster", ",".join(self.adapters["Cluster"]),
                  "--adapters-required-nodepool",
                  ",".join(self.adapters["NodePool"]))
        try:
            url = self.open_fleet(common)
            self.server = lib.Server(*common, *flags,
                                     *(("--backend", url) + REMOTE_FLAGS if url else ()),
                                     config=config)
            self.closers.append(self.server.close)
            self.server.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        while self.closers:
            self.closers.pop()()

    def player(self, client=None):
        return Player(client or lib.Client(self.fleet_server()), self.adapters,
                      self.report_method())

    def report_method(self):
        return "POST"


class Embedded(Backend):
    remote = False
    polls = 1

    def open_fleet(self, common):
        return None

    def fleet_server(self):
        return self.server


class Second(Backend):
    """Another instance of the program as the remote; what it redacts in statuses stays hidden."""

    secrets = False

    def __init__(self, name, conditions):
        super().__init__(name)
        self.conditions = conditions

    def open_fleet(self, common):
        self.upstream = lib.Server(*common, "--fleet-conditions", self.conditions)
        self.closers.append(self.upstream.close)
        self.upstream.start()
        return "http://127.0.0.1:%d/" % self.upstream.port

    def fleet_server(self):
        return self.upstream

    def report_method(self):
        return "POST" if self.conditions == "ready" else "PUT"


class Scripted(Backend):
    def __init__(self, name, generation):
        super().__init__(name)
        self.generation = generation
        self.deletes = WIRES[generation].deletes
        self.labels_count = WIRES[generation].labels_count

    def open_fleet(self, common):
        self.fake = Fake(self.generation, self.adapters)
        self.closers.append(self.fake.close)
        return self.fake.url

    def fleet_server(self):
        return Port(self.fake.player_port)

    def report_method(self):
        return WIRES[self.generation].report_method


ALL = {
    "embedded": lambda: Embedded("embedded"),
    # a transcript holds nothing that another run would have otherwise
    "embedded-again": lambda: Embedded("embedded-again"),
    "second-ready": lambda: Second("second-ready", "ready"),
    "second-reconciled": lambda: Second("second-reconciled", "reconciled"),
    "second-both": lambda: Second("second-both", "both"),
    "fake-g2": lambda: Scripted("fake-g2", "G2"),
    "fake-g3": lambda: Scripted("fake-g3", "G3"),
    "fake-g31": lambda: Scripted("fake-g31", "G3.1"),
}


class Folder:
    """A folder of its own, removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="hfd-contract-")
        return self.path

    def __exit__(self, *exc):
        shutil.rmtree(self.path, ignore_errors=True)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path
