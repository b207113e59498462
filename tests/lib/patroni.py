"""Three nodes of PostgreSQL under Patroni 4 and etcd, on loopback, with a synchronous standby. Each
stands behind proxies, so that a test can part it from the others.

Patroni below 4 is not used: it loses acknowledged writes when a paused leader goes on.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

import postgres
from ports import free_port
from tcp_proxy import Proxy

VERSION = "4.1.5"
REQUIREMENTS = ("patroni[etcd3]==" + VERSION, "psycopg2-binary==2.9.10")
TTL_S = 20 # Patroni raises what is smaller
START_S = 180

# Ends what is left when the test ends, however it ends: Patroni alone would wait for etcd.
GUARD = """
read nothing
for file in "$1"/*.pid "$1"/data*/postmaster.pid; do
    [ -e "$file" ] && kill -9 "$(head -n 1 "$file")" 2>/dev/null
done
sleep 0.2
rm -rf "$1"
"""

CONFIG = """
scope: hfd
name: n%(number)d
restapi: {listen: "127.0.0.1:%(rest)d", connect_address: "127.0.0.1:%(rest_proxy)d"}
etcd3: {hosts: "127.0.0.1:%(etcd_proxy)d", use_proxies: true}
bootstrap:
  dcs:
    ttl: %(ttl)d
    loop_wait: 2
    retry_timeout: 3
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    maximum_lag_on_failover: 1048576
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {wal_level: replica, hot_standby: "on", max_wal_senders: 8,
        max_replication_slots: 8, wal_log_hints: "on", max_connections: 100, shared_buffers: 64MB}
  initdb: [{encoding: UTF8}, data-checksums, {locale: C}]
  pg_hba:
    - host replication all 127.0.0.1/32 scram-sha-256
    - host all all 127.0.0.1/32 scram-sha-256
postgresql:
  listen: "127.0.0.1:%(port)d"
  connect_address: "127.0.0.1:%(proxy)d"
  data_dir: %(dir)s/data%(number)d
  bin_dir: %(bin)s
  pgpass: %(dir)s/pgpass%(number)d
  authentication:
    replication: {username: rep, password: rep}
    superuser: {username: %(user)s, password: %(password)s}
    rewind: {username: rewind, password: rewind}
  parameters: {unix_socket_directories: ""}
"""


def package(install, cache):
    """Patroni's Python packages, installed once: the folder. install is `real.install`."""
    python = "/usr/bin/python3" # one that any user may run
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if version != "%d.%d" % sys.version_info[:2]:
        raise unittest.SkipTest("Patroni is installed by Python %s, and /usr/bin/python3 is %s"
                                % (sys.version.split()[0], version))
    made = install("patroni-" + VERSION, lambda folder: [
        [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries",
         "1", "--timeout", "20", "--target", folder] + list(REQUIREMENTS)], "patroni")
    assert made.startswith(cache)
    return os.path.dirname(made)


class Node:
    """One node: Patroni, its PostgreSQL, and proxies in front of both and of etcd."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.name = "n%d" % number
        self.port, self.rest = free_port(), free_port()
        self.proxies = [Proxy(self.port), Proxy(self.rest), Proxy(cluster.etcd_port)]
        self.proxy = self.proxies[0]
        self.config = os.path.join(cluster.dir, self.name + ".yml")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(CONFIG % {
                "number": number, "dir": cluster.dir, "bin": postgres.programs(), "ttl": TTL_S,
                "port": self.port, "rest": self.rest, "proxy": self.proxies[0].port,
                "rest_proxy": self.proxies[1].port, "etcd_proxy": self.proxies[2].port,
                "user": postgres.USER, "password": postgres.PASSWORD})
        os.chmod(self.config, 0o644)
        self.proc = None

    def start(self):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": self.cluster.package, "LC_ALL": "C.UTF-8",
               "HOME": self.cluster.dir}
        with open(os.path.join(self.cluster.dir, self.name + ".log"), "ab") as log:
            self.proc = subprocess.Popen(
                postgres.as_owner("/usr/bin/python3", "-B", "-m", "patroni", self.config,
                                  end_with_us=True),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.cluster.dir, env=env)
        self.cluster.note(self.name, self.proc)

    def postmaster(self):
        """The pid of its PostgreSQL, or None."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            path = os.path.join(self.cluster.dir, "data%d" % self.number, "postmaster.pid")
            with open(path, encoding="utf-8") as f:
                pid = int(f.readline())
            with open("/proc/%d/comm" % pid, encoding="utf-8") as f:
                if f.read().strip() == "postgres":
                    return pid
        return None

    def processes(self, patroni=True):
        """Pids: PostgreSQL's first process and its children, then Patroni's."""
        found = []
        pid = self.postmaster()
        if pid is not None:
            found.append(pid)
            with contextlib.suppress(OSError):
                with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
                    found += [int(child) for child in f.read().split()]
        if patroni and self.proc is not None and self.proc.poll() is None:
            found.append(self.proc.pid)
        return found

    def send(self, number, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_postgres(self):
        """kill -9 of PostgreSQL's first process; Patroni sees it."""
        self.send(signal.SIGKILL, [self.postmaster()])

    def kill(self):
        """The node is gone at once: Patroni, PostgreSQL, and each connection."""
        pids = self.processes()
        self.send(signal.SIGSTOP, pids)
        self.send(signal.SIGKILL, pids)
        self.proc.wait()
        for proxy in self.proxies:
            proxy.tell("drop")

    def pause(self):
        """The node stands still; returns what resume needs."""
        pids = [self.proc.pid] + self.processes(patroni=False)
        self.send(signal.SIGSTOP, pids)
        return pids

    def resume(self, pids):
        self.send(signal.SIGCONT, pids[1:] + pids[:1])

    def part(self, together=False):
        """Nothing reaches it, nor etcd from it; together: it is joined again."""
        for proxy in self.proxies:
            proxy.tell("go" if together else "stall")

    def close(self):
        pids = self.processes()
        self.send(signal.SIGKILL, pids)
        if self.proc is not None:
            self.proc.wait()
        for proxy in self.proxies:
            proxy.close()


class Cluster:
    """etcd and three nodes."""

    def __init__(self, packages):
        self.dir = postgres.folder("hfd-pat-")
        self.package = os.path.join(self.dir, "python") # where the server's user reads it
        shutil.copytree(packages, self.package)
        self.etcd_port, self.peer_port = free_port(), free_port()
        self.etcd = None
        self.nodes = []
        self.guard = subprocess.Popen(["sh", "-c", GUARD, "sh", self.dir], stdin=subprocess.PIPE,
                                      start_new_session=True)

    def note(self, name, proc):
        """Lets the guard know of a process."""
        with open(os.path.join(self.dir, name + ".pid"), "w", encoding="utf-8") as f:
            f.write("%d\n" % proc.pid)

    def start_etcd(self):
        etcd = shutil.which("etcd")
        if etcd is None:
            raise unittest.SkipTest("etcd is not installed: apt-get install etcd-server")
        client = "http://127.0.0.1:%d" % self.etcd_port
        peer = "http://127.0.0.1:%d" % self.peer_port
        with open(os.path.join(self.dir, "etcd.log"), "wb") as log:
            self.etcd = subprocess.Popen(
                postgres.as_owner(etcd, "--name", "e1", "--data-dir", self.dir + "/etcd",
                                  "--listen-client-urls", client, "--advertise-client-urls", client,
                                  "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                  "--initial-cluster", "e1=" + peer, "--heartbeat-interval", "300",
                                  "--election-timeout", "3000", end_with_us=True),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir)
        self.note("etcd", self.etcd)
        end = time.monotonic() + START_S
        while not self.decided(client):
            if self.etcd.poll() is not None or time.monotonic() > end:
                raise AssertionError("etcd did not start: see %s/etcd.log" % self.dir)
            time.sleep(0.1)

    def decided(self, client):
        """etcd leads itself: before, Patroni cannot read its version."""
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(client + "/version", timeout=2) as answer:
                return json.load(answer).get("etcdcluster", "not_decided") != "not_decided"
        return False

    def start(self):
        self.start_etcd()
        self.nodes = [Node(self, number) for number in (1, 2, 3)]
        for node in self.nodes:
            node.start()
        self.wait_whole()
        postgres.query(self.url("postgres"), "CREATE DATABASE hfd")

    def members(self):
        """Patroni's view by the first node that answers: {name: (role, state)}."""
        for node in self.nodes:
            with contextlib.suppress(OSError, ValueError):
                where = "http://127.0.0.1:%d/cluster" % node.rest
                with urllib.request.urlopen(where, timeout=2) as answer:
                    return {m["name"]: (m["role"], m["state"])
                            for m in json.load(answer)["members"]}
        return {}

    def leader(self):
        """The node that leads, or None."""
        for node in self.nodes:
            if self.members().get(node.name, ("",))[0] == "leader":
                return node
        return None

    def whole(self):
        """A leader, a synchronous standby and another one, all at work."""
        roles = sorted(self.members().values())
        return roles in ([("leader", "running"), ("replica", "streaming"),
                          ("sync_standby", "streaming")],)

    def wait_whole(self):
        end = time.monotonic() + START_S
        while not self.whole():
            if time.monotonic() > end:
                raise AssertionError("the nodes of PostgreSQL are not whole: %s\n%s"
                                     % (self.members(), self.tail()))
            time.sleep(0.2)

    def url(self, database="hfd"):
        """A libpq URL of all nodes, through their proxies."""
        hosts = ",".join("127.0.0.1:%d" % node.proxy.port for node in self.nodes)
        return ("postgres://%s:%s@%s/%s?target_session_attrs=read-write&connect_timeout=2"
                % (postgres.USER, postgres.PASSWORD, hosts, database))

    def tail(self, lines=15):
        text = ""
        for node in self.nodes:
            with contextlib.suppress(OSError):
                path = os.path.join(self.dir, node.name + ".log")
                with open(path, encoding="utf-8", errors="replace") as f:
                    text += "%s:\n%s" % (node.name, "".join(f.readlines()[-lines:]))
        return text

    def close(self):
        for node in self.nodes:
            node.close()
        if self.etcd is not None:
            self.etcd.kill()
            self.etcd.wait()
        self.guard.stdin.close()
        self.guard.wait()
