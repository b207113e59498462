"""./dev bench --store postgres: the program on PostgreSQL, each thing beside its yardstick.

It starts a PostgreSQL of its own on 127.0.0.1, with fsync, below build/. tests/bench/run calls it.
"""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import instructions  # noqa: E402  pylint: disable=wrong-import-position
import postgres  # noqa: E402  pylint: disable=wrong-import-position
import spent  # noqa: E402  pylint: disable=wrong-import-position

# The last one leaves rows that the program does not read.
NAMES = ("sqlite", "put-repeat", "list", "cpu", "get", "replicas", "standby", "put")
# Instructions per request of the last commit without an engine on PostgreSQL.
BEFORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "before.json")
SQLITE_RATIO = 1.03
REPLICAS = 4
# On a fast disk one replica uses all processors, and others have nothing to add. The budget is for
# a disk with 242 flushes a second, as over a network.
FLUSH_US = 4000
GET_RATIO = 0.35
STANDBY_S = 60


def bench_of(run):
    """The class of these measurements. run -- the module tests/bench/run"""

    class Server(run.Server):
        """One replica: a database in place of a data folder."""
        store = keys = None

        def place(self):
            return ["--store", self.store, "--keys", self.keys]

    class Primary(postgres.Postgres):
        """The server whose commits are on disk, below build/."""
        standby = None

        def cpu_s(self):
            """Processor time of all its processes, also of those that have ended."""
            with open("/proc/%d/stat" % self.proc.pid, encoding="ascii") as f:
                ended = sum(map(int, f.read().rsplit(")", 1)[1].split()[13:15]))
            total = ended * 1e9 / os.sysconf("SC_CLK_TCK")
            for pid in self.processes():
                try:
                    with open("/proc/%d/schedstat" % pid, encoding="ascii") as f:
                        total += int(f.read().split()[0])
                except OSError:
                    continue
            return total / 1e9

        def delay_flush(self, us):
            """Each flush of the log takes longer. The delay itself uses no processor."""
            self.query("ALTER SYSTEM SET commit_siblings = 0")
            self.query("ALTER SYSTEM SET commit_delay = %d" % us)
            self.query("SELECT pg_reload_conf()")

        def start_standby(self):
            """A second server that repeats what this one writes."""
            self.standby = postgres.Postgres(fsync=True, settings=["hot_standby = on"])
            subprocess.run(postgres.as_owner(
                os.path.join(self.bin, "pg_basebackup"), "-d", self.url("postgres"), "-D",
                self.standby.data, "-R", "-X", "stream", "-c", "fast"),
                check=True, cwd=self.standby.dir, stdin=subprocess.DEVNULL)
            with open(os.path.join(self.standby.data, "postgresql.conf"), "a",
                      encoding="utf-8") as f:
                f.write("".join(line + "\n" for line in self.standby.settings))
            self.standby.made = True
            self.standby.start()

        def wait_for_standby(self, on):
            """Makes commits wait for the standby, or not."""
            self.query("ALTER SYSTEM SET synchronous_standby_names = '%s'" % ("*" if on else ""))
            self.query("SELECT pg_reload_conf()")
            end = time.monotonic() + STANDBY_S
            want = "sync" if on else "async"
            while self.query("SELECT sync_state FROM pg_stat_replication") != [[want]]:
                if time.monotonic() > end:
                    raise run.Failed("the standby does not become %s" % want)
                time.sleep(0.05)

        def end_standby(self):
            self.wait_for_standby(False)
            self.standby.close()
            self.standby = None

        def close(self):
            if self.standby is not None:
                self.standby.close()
            super().close()

    class OnPostgres(run.Bench):
        def __init__(self, options):
            super().__init__(options)
            self.primary = Primary(fsync=True)
            self.primary.start()
            self.keys = os.path.join(self.dir, "keys")
            subprocess.run([self.program, "keygen", "--keys", self.keys], check=True,
                           stdout=subprocess.DEVNULL, env=self.plain_env())
            self.replicas, self.next_n = [], 0
            self.body = self.file("new.put", run.put_body())

        @staticmethod
        def plain_env():
            return {k: v for k, v in os.environ.items() if not k.startswith("HFD_")}

        def close(self):
            super().close()
            self.primary.close()

        def replica(self, i=0):
            """The i-th server on the database."""
            while len(self.replicas) <= i:
                s = Server(self.program, os.path.join(self.dir, "replica-%d" % len(self.replicas)))
                s.store, s.keys = self.primary.url(), self.keys
                self.servers.append(s)
                s.start()
                self.replicas.append(s)
            return self.replicas[i]

        def put(self, servers=None):
            """PUTs of new GUResIDs at all these servers at once: their rate together."""
            servers = servers or [self.replica()]
            trips, before = self.trips(servers), self.primary.cpu_s()
            used = spent.Spent(servers, self.primary)

            def one(i):
                return self.rate(servers[i], (202,), "/new%d-%d-@n@" % (self.next_n, i),
                                 method="PUT", body=self.body)
            with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
                samples = list(pool.map(one, range(len(servers))))
            self.next_n += 1
            done = sum(n for v in samples for n in v.out["statuses"].values())
            rate = run.Sample(sum(samples))
            rate.database_us = 1e6 * (self.primary.cpu_s() - before) / done
            rate.done, rate.spent = done, used.end()
            rate.trips = [b - a for a, b in zip(trips, self.trips(servers))]
            return rate

        def parts(self):
            """Reports that make resources ready, by adapter: a file with a line for each."""
            found, page = [], 1
            while len(found) < run.FEW:
                items = self.replica().document("%s/clusters?pageSize=100&page=%d"
                                                % (run.BASE, page))["items"]
                if not items:
                    break
                found += [r["href"].rsplit("/", 1)[1] for r in items]
                page += 1
            pools = ["%s/nodepools/%s" % (i, pool["id"]) for i in found for pool in
                     self.replica().document("%s/clusters/%s/nodepools" % (run.BASE, i))["items"]]
            pairs = [(i, a) for a in run.CLUSTER_ADAPTERS for i in found]
            pairs += [(i, a) for a in run.NODEPOOL_ADAPTERS for i in pools]
            return self.file("parts", "".join("%s\t%s\n" % pair for pair in pairs))

        def report(self, items, state):
            """Reports that confirm; the first of each adapter are news."""
            trips, before = self.trips([self.replica()]), self.primary.cpu_s()
            used = spent.Spent([self.replica()], self.primary)
            v = self.rate(self.replica(), (201,), run.BASE + "/clusters/@1@/statuses",
                          method="POST", items=items, in_order=True, first=state.get("next", 0),
                          body=self.file("report.json", dict(run.REPORT, adapter="@2@")))
            state["next"] = v.out["next"]
            v.done, v.spent = sum(v.out["statuses"].values()), used.end()
            v.database_us = 1e6 * (self.primary.cpu_s() - before) / v.done
            v.trips = [b - a for a, b in zip(trips, self.trips([self.replica()]))]
            return v

        @staticmethod
        def trips(servers):
            """Counts for writers: round trips in all, commits, reads alone, early writes."""
            count = lambda name: sum(s.counter(name) for s in servers)
            by = {way: count('hfd_store_round_trips_total{for="%s"}' % way)
                  for way in ("look", "miss", "write", "commit")}
            return (sum(by.values()), count("hfd_store_commits_total"), by["miss"], by["write"])

        def by_process(self, row, samples, yards):
            """Adds to a row where the processors' time went, and shows it when asked for."""
            for name, of in (("measured", samples), ("yardstick", yards)):
                if of and all(getattr(v, "spent", None) for v in of):
                    row.setdefault("cpu_by_process_us", {})[name] = spent.per_unit(of)
            for name, us in row.get("cpu_by_process_us", {}).items():
                if self.o.cpu_by_process:
                    print(" " * 19 + spent.show("us a request, %s" % name, us))
            sys.stdout.flush()

        def row(self, name, what, unit, values, *args, samples=None, **kw):
            super().row(name, what, unit, values, *args, **kw)
            self.by_process(self.rows[-1], samples or values, args[1])

        # ---- the measurements ----

        def run_put(self):
            """A durable PUT beside libpq alone, whose groups are as large as those just before."""
            state = {"first": 1}
            self.put()
            guresid = self.primary.query("SELECT guresid FROM resource ORDER BY seq LIMIT 1")[0][0]

            def put():
                state["put"] = self.put()
                return state["put"]

            def alone(form):
                cpu, used = self.primary.cpu_s(), spent.Spent([self.replica()], self.primary)
                done = state["put"].done
                out = self.tool("setwriter", "--url", self.primary.url(), "--guresid", guresid,
                                "--as", form, "--units", done, "--groups",
                                min(done, max(1, round(state["put"].trips[1]))),
                                "--ms", self.ms, "--first", state["first"])
                state["first"] = out["next"]
                v = run.Sample(out["rate"])
                v.done, v.spent = out["units"], used.end()
                v.database_us = 1e6 * (self.primary.cpu_s() - cpu) / v.done
                v.group = out["units"] / out["groups"]
                return v
            puts, prototypes, servers = self.turns(put, lambda: alone("prototype"),
                                                   lambda: alone("server"))
            for name, what, alones, budget in (
                    ("put", "libpq alone, as the prototype", prototypes, 0.6),
                    ("put/server", "libpq alone, with the server's locks and reads", servers,
                     None)):
                self.row(name, "durable PUT, cluster and nodepool", "1/s", puts, what, alones,
                         budget, note="%d clients; %.1f PUTs a commit, yardstick %.1f; "
                         "PostgreSQL's processor time %s us a PUT, yardstick %s us"
                         % (run.CONNECTIONS, sum(v.done for v in puts)
                            / max(1, sum(v.trips[1] for v in puts)),
                            run.statistics.median(v.group for v in alones), self.us(puts),
                            self.us(alones)))

        @staticmethod
        def us(samples):
            return "%.0f" % run.statistics.median(v.database_us for v in samples)

        def run_cpu(self):
            """PostgreSQL's processor time for a PUT and for a report; round trips of a group."""
            self.put()
            items, state = self.parts(), {}
            with open(items, encoding="utf-8") as f:
                lines = len(f.readlines())
            while state.get("next", 0) < lines and not self.o.quick:
                self.report(items, state)  # news: what all later reports confirm
            puts = [self.put() for _ in range(self.pairs)]
            reports = [self.report(items, state) for _ in range(self.pairs)]
            for kind, what, samples, budget in (("put", "durable PUT", puts, 150),
                                                ("report", "confirming report", reports, 90)):
                self.row("cpu/" + kind, "PostgreSQL's processor time for a " + what, "us",
                         [v.database_us for v in samples], "none", [], budget, bound="<=",
                         of="value", samples=samples,
                         note="%.0f a second" % run.statistics.median(samples))
                trips, groups, misses, writes = map(sum, zip(*(v.trips for v in samples)))
                self.row("trips/" + kind, "round trips of a group, %ss" % what, "each",
                         [round(v.trips[0] / max(1, v.trips[1]), 3) for v in samples], "none", [],
                         of="value",
                         note="%.1f %ss a group; in all %d round trips, %d groups, %d reads "
                         "alone, %d writes before the end"
                         % (sum(v.done for v in samples) / max(1, groups), what, trips, groups,
                            misses, writes))

        def run_sqlite(self):
            """Instructions on SQLite, now and before there was a second engine."""
            if not instructions.available():
                print("%-18s skipped: valgrind is not installed" % "sqlite")
                return
            counts = {k: max(5, n // 30) for k, n in instructions.COUNTS.items()} \
                if self.o.quick else None
            tool = os.path.join(self.tools, "load")
            now = instructions.count_all(self.program, tool, counts)
            if self.o.before:
                before = instructions.count_all(os.path.abspath(self.o.before), tool, counts)
            else:
                with open(BEFORE, encoding="utf-8") as f:
                    before = json.load(f)
            for kind in instructions.COUNTS:
                self.row("sqlite/" + kind, "instructions of %s on SQLite" % kind, "each",
                         [now[kind]], "program before" if self.o.before else
                         "before PostgreSQL", [before[kind]], SQLITE_RATIO, bound="<=")

        def run_put_repeat(self):
            """On SQLite, as the next one: budgets of the same order."""
            self.put_repeat()

        def run_list(self):
            self.list()

        def run_get(self):
            """GET beside the same on SQLite."""
            self.put()
            found = self.primary.query("SELECT guresid FROM resource ORDER BY seq LIMIT %d"
                                       % run.FEW)
            items = self.file("polled", "".join(r[0] + "\n" for r in found))
            s, few = self.getter(self.program, run.FEW)
            gets, others = self.turns(
                lambda: self.rate(self.replica(), (200, 202), "/@1@", items=items), few)
            self.row("get", "GET of %d resources" % run.FEW, "1/s", gets, "on SQLite", others,
                     GET_RATIO)
            self.stopped(s.data)

        def run_replicas(self):
            """Four servers beside one, each with as many clients."""
            every = [self.replica(i) for i in range(REPLICAS)]

            def together():
                for s in every:
                    if s.proc is None:
                        s.start()
                return self.put(every)

            def alone():
                for s in every[1:]:
                    s.stop()
                return self.put()
            note = "%d clients each; all share %d processors with PostgreSQL and the clients" \
                % (run.CONNECTIONS, len(os.sched_getaffinity(0)))
            many, one = self.turns(together, alone)
            self.row("replicas/disk", "durable PUT at %d replicas" % REPLICAS, "1/s", many,
                     "at one alone", one, None, note=note)
            self.primary.delay_flush(FLUSH_US)
            try:
                many, one = self.turns(together, alone)
            finally:
                self.primary.delay_flush(0)
            self.row("replicas", "the same, a flush takes %d ms more" % (FLUSH_US // 1000), "1/s",
                     many, "at one alone", one, 1.6, note=note)

        def put_settled(self):
            """PUTs that begin like those beside them.

            A base backup makes a checkpoint and leaves files to be written. Behind a checkpoint
            each page is logged whole.
            """
            self.primary.query("CHECKPOINT")
            os.sync()
            return self.put()

        def run_standby(self):
            """Commits that wait for a second server."""
            def with_standby():
                self.primary.start_standby()
                self.primary.wait_for_standby(True)
                try:
                    return self.put_settled()
                finally:
                    self.primary.end_standby()
            waits, others = self.turns(with_standby, self.put_settled)
            self.row("standby", "durable PUT with a synchronous standby", "1/s", waits,
                     "without one", others, 0.7)

        def run(self):
            self.say_load()
            for name in NAMES:
                if name in self.o.names or not self.o.names:
                    getattr(self, "run_" + name.replace("-", "_"))()

    return OnPostgres


def available():
    """Why it cannot run; None = it can."""
    try:
        postgres.programs()
        postgres.owner()
    except unittest.SkipTest as e:
        return str(e)
    return None if glob.glob("/proc/self/schedstat") else "the kernel counts no processor time"
