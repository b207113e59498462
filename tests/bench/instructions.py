#!/usr/bin/env python3
"""Instructions per request, counted by callgrind on the real server: the one measure of speed that
a busy machine does not change. Compares with the committed instructions.json and fails where a
request takes a tenth more than there; --renew writes the file anew.

Each kind of request is sent a few times first. Then the counter is set to zero, N requests are
sent, and the counter is read: start-up and preparation fall out. One event loop and one connection,
so that each commit holds one request. Exit status 77: it cannot be counted here.
"""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BASELINE = os.path.join(HERE, "instructions.json")
ALLOWED = 1.10
COUNTS = {"get": 3000, "put-repeat": 3000, "put-new": 150, "report": 150, "report-news": 150}
WARM = 20
READY = 4


def load_bench():
    """The program next door, for its server and its documents."""
    loader = importlib.machinery.SourceFileLoader("bench_run", os.path.join(HERE, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Counted:
    """One run of the server under callgrind."""

    def __init__(self, bench, program, folder, counts):
        self.bench, self.folder, self.dumps, self.counts = bench, folder, 0, counts
        self.load_tool = os.path.join(os.path.dirname(program), "tests", "bench", "load")
        self.out = os.path.join(folder, "callgrind.out")
        self.server = bench.Server(program, os.path.join(folder, "data"))
        self.server.under = ["valgrind", "--tool=callgrind", "--vgdb-prefix=" + self.gate(),
                             "--callgrind-out-file=" + self.out]
        self.server.flags = ["--http-threads", "1", "--store-readers", "1"]

    def gate(self):
        """Where valgrind listens for its commands."""
        return os.path.join(self.folder, "gate")

    def command(self, word):
        subprocess.run(["vgdb", "--vgdb-prefix=" + self.gate(), "--wait=60", word], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def send(self, status, count, **kw):
        args = {"port": self.server.port, "connections": 1, "count": count, "ms": 600000,
                "warm_ms": 0, **kw}
        line = [v for k, x in args.items() for v in ("--" + k.replace("_", "-"), str(x))]
        ran = subprocess.run([self.load_tool] + line + ["--in-order"], stdout=subprocess.PIPE,
                             text=True, check=True)
        statuses = json.loads(ran.stdout)["statuses"]
        if statuses != {str(status): count}:
            raise self.bench.Failed("%s: answers were %s" % (kw["path"], statuses))

    def prepare(self):
        """Some resources that are ready, one of which is asked for and reported on."""
        report = self.file("report", self.bench.REPORT)
        self.send(202, READY, method="PUT", path="/made-@n@", body=self.body)
        parts = []
        for kind, adapters in (("clusters", self.bench.CLUSTER_ADAPTERS),
                               ("nodepools", self.bench.NODEPOOL_ADAPTERS)):
            found = self.server.document("%s/%s?order=asc" % (self.bench.BASE, kind))["items"]
            parts += ["%s\t\t%s" % (r["href"], a) for r in found for a in adapters]
        self.send(201, len(parts), method="POST", path="@1@/statuses", body=report,
                  items=self.file("parts", "\n".join(parts) + "\n"))
        return self.file("item", parts[0] + "\n"), report

    def run(self):
        """Instructions of a request of each kind."""
        self.body = self.file("put", self.bench.put_body())
        news = self.file("news", self.bench.report_with_news())
        self.server.start()
        try:
            item, report = self.prepare()
            kinds = {
                "get": (200, {"path": "/made-0"}),
                "put-repeat": (200, {"method": "PUT", "path": "/made-0", "body": self.body}),
                "put-new": (202, {"method": "PUT", "path": "/%s-@n@", "body": self.body}),
                "report": (201, {"method": "POST", "path": "@1@/statuses", "body": report,
                                 "items": item}),
                "report-news": (201, {"method": "POST", "path": "@1@/statuses", "body": news,
                                      "items": item}),
            }
            return {kind: self.count(kind, *how) for kind, how in kinds.items()}
        finally:
            self.server.stop()

    def count(self, kind, status, how):
        for name, times in ("warm", WARM), ("new", self.counts[kind]):
            path = how["path"] % name if kind == "put-new" else how["path"]
            self.command("zero")
            self.send(status, times, **{**how, "path": path})
        return round(self.total() / self.counts[kind])

    def total(self):
        """Instructions since the counter was zero."""
        self.dumps += 1
        self.command("dump")
        with open("%s.%d" % (self.out, self.dumps), encoding="utf-8") as f:
            return int(re.search(r"^(?:summary|totals): (\d+)$", f.read(), re.M).group(1))


def count_all(program, load_tool=None, counts=None):
    """Instructions of a request of each kind.

    load_tool -- where it is not beside the program
    counts    -- how many requests of each kind; COUNTS when None
    """
    folder = tempfile.mkdtemp(prefix="instructions-")
    try:
        counted = Counted(load_bench(), program, folder, counts or COUNTS)
        counted.load_tool = load_tool or counted.load_tool
        return counted.run()
    finally:
        shutil.rmtree(folder)


def available():
    return shutil.which("valgrind") is not None and shutil.which("vgdb") is not None


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--renew", action="store_true",
                   help="write what is counted into instructions.json")
    o = p.parse_args()
    if not available():
        print("skipped: valgrind is not installed")
        return 77
    root = os.path.dirname(os.path.dirname(HERE))
    counted = count_all(os.path.abspath(os.environ.get("HFD_PROGRAM")
                                        or os.path.join(root, "build", "hyperfleet-driver")))
    if o.renew:
        with open(BASELINE, "w", encoding="utf-8") as f:
            json.dump(counted, f, indent=1)
            f.write("\n")
    with open(BASELINE, encoding="utf-8") as f:
        baseline = json.load(f)
    worse = [k for k in COUNTS if counted[k] > ALLOWED * baseline[k]]
    for k in COUNTS:
        print("%-12s %9d instructions a request, baseline %9d: %+.1f %%" % (
            k, counted[k], baseline[k], 100.0 * (counted[k] - baseline[k]) / baseline[k]))
    if worse:
        print(
            "a tenth or more above tests/bench/instructions.json: %s. tests/bench/README.md says "
            "how to see where they go. Where the\n"
              "work is worth its price, renew the baseline in the same commit, and say there what "
              "it buys:\n"
              "HFD_PROGRAM=build/hyperfleet-driver tests/bench/instructions.py --renew"
              % ", ".join(worse))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
