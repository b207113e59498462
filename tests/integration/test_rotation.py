#!/usr/bin/env python3
"""Rotation of keys: under load without a failed request, with kill -9 in between, and until the
retired key can be taken away. Changed and missing keys, and copies of keys that are left behind.
"""
import os
import re
import signal
import subprocess
import threading
import time
import unittest

from lib import Case, Client, clean_env, cluster_input, eventually, guresid, program

SECRET = "kube-SECRET-%d"


def run(*args):
    return subprocess.run([program(), *args], env=clean_env(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=60)


class Ring(Case):
    ADAPTERS = ("dns",)
    POOL_ADAPTERS = ("dns",)
    CONFIG = "driver: {outputs: {secrets: {kubeconfig: 'dns:/secrets/kubeconfig'}}}\n"

    def keys(self):
        return os.path.join(self.server.data, "keys")

    def lines(self):
        """The keys of the ring: id, key, state."""
        with open(self.keys(), encoding="utf-8") as f:
            return [line.strip().split(":") for line in f if not line.startswith("#")]

    def write(self, lines):
        with open(self.keys(), "w", encoding="utf-8") as f:
            f.write("".join(":".join(line) + "\n" for line in lines))

    def records_of(self, msg):
        return [r for r in self.server.records() if r["msg"] == msg]

    def hangup(self, msg):
        """SIGHUP, and waits for what the server says of it."""
        before = len(self.records_of(msg))
        os.kill(self.server.proc.pid, signal.SIGHUP)
        eventually(lambda: len(self.records_of(msg)) > before, msg)
        return self.records_of(msg)[-1]

    def rotate(self):
        done = run("keygen", "--rotate", "--data", self.server.data)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.hangup("key ring reloaded")
        return self.lines()[-1][0]

    def uses(self):
        """Counts of rows that still need each key."""
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        text = ops.get("/metrics").body.decode()
        return {m[1]: int(m[3]) for m in re.finditer(
            r'^hfd_key_rows\{key="(\w+)",state="(\w+)"\} (\d+)$', text, re.M)}

    def make(self, count, hint):
        made = {}
        for i in range(count):
            gid = guresid(hint)
            body = cluster_input(nodepools=[{"name": "one"}])
            self.put(gid, body)
            cluster = self.fleet.cluster_of(gid)
            self.fleet.accepted(cluster, "dns", data={"secrets": {"kubeconfig": SECRET % i}})
            for pool in self.fleet.of(gid)[1]:
                self.fleet.accepted(pool, "dns")
            made[gid] = (body, self.expect(self.put(gid, body), 200).cookie, SECRET % i)
        return made

    def secret_of(self, gid):
        return self.expect(self.get(gid), 200).json["resource"]["secrets"]["kubeconfig"]


class OldKey(Ring):
    def test_until_the_old_key_can_go(self):
        """The next PUT hands the new cookie out, once. The old one works on. The old key cannot be
        taken away before, neither at SIGHUP nor at a start. Then it can, and all secrets are read.
        """
        made = self.make(5, "rot")
        old = self.lines()[-1][0]
        new = self.rotate()
        eventually(lambda: self.uses().get(old) == len(made) and
                   self.uses().get(new) == 2 * len(made), "secrets are sealed again")
        ring = self.lines()
        without = [line for line in ring if line[0] != old]
        first = next(iter(made))
        for gid, (body, cookie, secret) in made.items():
            self.write(without)
            refused = self.hangup("key ring not reloaded; the current one stays in use")
            self.assertRegex(refused["error"], "lacks key %s, which [0-9]+ rows need" % old)
            self.write(ring)
            self.assertEqual(self.secret_of(gid), secret)
            self.expect(self.get(gid, cookie), 200)
            fresh = self.expect(self.put(gid, body, cookie), 200).cookie
            self.assertNotEqual(fresh, cookie)
            for sent in (fresh, cookie, None):
                self.assertEqual(self.expect(self.put(gid, body, sent), 200).cookie, fresh)
            if gid == first:
                self.server.sigterm()
                self.write(without)
                start = run("serve", "--data", self.server.data, "--listen", "127.0.0.1:0",
                            "--ops-listen", "127.0.0.1:0")
                self.assertEqual(start.returncode, 78, start.stdout)
                self.assertIn("lacks key " + old, start.stdout)
                self.assertIn("lacks key " + old, run("doctor", "--data", self.server.data).stdout)
                self.write(ring)
                self.server.start()
        self.write(without)
        self.hangup("key ring reloaded")
        self.restart()
        for gid, (body, cookie, secret) in made.items():
            self.assertEqual(self.secret_of(gid), secret)
            self.expect(self.get(gid, cookie), 400, "RES-102")
            self.expect(self.put(gid, body), 200)
            self.expect(self.delete(gid), 202)
            self.fleet.finish_delete(gid)
            self.expect(self.delete(gid), 204)
        self.server.sigterm()
        self.assertEqual(run("doctor", "--data", self.server.data).returncode, 0)


class DamagedRow(Ring):
    def problems(self):
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        return {p["kind"]: p["message"] for p in ops.get("/healthz").json.get("problems", [])}

    def test_a_row_that_is_left(self):
        """/healthz tells of a damaged row that keeps the old key, until it is whole again."""
        self.make(2, "left")
        self.server.sigterm()
        spoil = "UPDATE report SET metadata = '%s' WHERE metadata = '%s' AND fleet_id = " \
                "(SELECT max(fleet_id) FROM report WHERE secrets IS NOT NULL)"
        self.server.place.write(spoil % ('{"spoilt":1}', ""))
        self.assertEqual(run("keygen", "--rotate", "--data", self.server.data).returncode, 0)
        self.server.start()
        told = eventually(lambda: self.problems().get("sealing"), "it is told")
        self.assertIn("1 row cannot be read or opened", told)
        self.server.sigterm()
        self.server.place.write(spoil % ("", '{"spoilt":1}'))
        self.server.start()
        eventually(lambda: self.uses().get(self.lines()[-1][0]) == 4, "all rows have the new key")
        self.assertNotIn("sealing", self.problems())


class TwoSteps(Ring):
    def test_prepare_and_activate(self):
        """A prepared key seals nothing before it is activated; then it seals, as after --rotate."""
        made = self.make(1, "two")
        old = self.lines()[-1][0]
        nothing = run("keygen", "--activate", "--data", self.server.data)
        self.assertEqual(nothing.returncode, 73, nothing.stdout)
        self.assertIn("no key is prepared", nothing.stdout)
        for step, states in (("--prepare", ["active", "prepared"]),
                             ("--activate", ["retired", "active"])):
            done = run("keygen", step, "--data", self.server.data)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual([line[2] for line in self.lines()], states)
            self.hangup("key ring reloaded")
            for gid, (body, cookie, secret) in made.items():
                self.assertEqual(self.secret_of(gid), secret)
                fresh = self.expect(self.put(gid, body, cookie), 200).cookie
                self.assertEqual(fresh == cookie, step == "--prepare")
        self.assertNotEqual(self.lines()[-1][0], old)
        both = run("keygen", "--prepare", "--rotate", "--data", self.server.data)
        self.assertEqual(both.returncode, 2, both.stdout)
        there = run("keygen", "--rotate", "--keys", self.keys(), "--store", "postgres://h/db")
        self.assertEqual(there.returncode, 2, there.stdout)
        self.assertIn("keygen --prepare", there.stdout)
        self.assertIn("keygen --activate", there.stdout)


class UnderLoad(Ring):
    def test_under_load(self):
        """Six rotations while clients poll by GET and PUT, change orders and report: no request
        fails. Then three more, each with kill -9 at another moment.
        """
        made = self.make(6, "load")
        stop = threading.Event()
        failed, count = [], [0]

        def work(gid, body, secret):
            client = Client(self.server)
            while not stop.is_set():
                for answer, good in ((client.get("/" + gid), (200,)),
                                     (client.put("/" + gid, body), (200,)),
                                     (client.put("/other-" + gid, body), (202,))):
                    count[0] += 1
                    if answer.status not in good or (
                            answer.status == 200 and
                            answer.json["resource"]["secrets"]["kubeconfig"] != secret):
                        failed.append(repr(answer)[:600])
            client.close()

        threads = [threading.Thread(target=work, args=(gid, body, secret))
                   for gid, (body, _, secret) in made.items()]
        for thread in threads:
            thread.start()
        try:
            for _ in range(6):
                before = count[0]
                self.rotate()
                eventually(lambda: count[0] > before + 30 or failed, "requests go on")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failed[:1], [])
        for pause in (0, 0.01, 0.05):
            run("keygen", "--rotate", "--data", self.server.data)
            os.kill(self.server.proc.pid, signal.SIGHUP)
            time.sleep(pause)
            self.server.kill9()
            self.server.start()
            for gid, (body, _, secret) in made.items():
                self.assertEqual(self.secret_of(gid), secret)
                self.expect(self.put(gid, body), 200)
        active = self.lines()[-1]
        for gid in made:
            self.put("other-" + gid, made[gid][0])
        self.hangup("key ring unchanged")
        eventually(lambda: all(n == 0 for key, n in self.uses().items() if key != active[0]),
                   "old keys are not needed")
        self.server.sigterm()
        self.write([active])
        self.server.start()
        for gid, (_, _, secret) in made.items():
            self.assertEqual(self.secret_of(gid), secret)


class KeyFiles(Ring):
    def test_changed_key(self):
        """One character of the active key: the start stops with 78, and doctor says it."""
        self.make(1, "changed")
        self.server.sigterm()
        ring = self.lines()
        key = ring[-1][1]
        self.write(ring[:-1] + [[ring[-1][0], ("A" if key[0] != "A" else "B") + key[1:],
                                 ring[-1][2]]])
        start = run("serve", "--data", self.server.data, "--listen", "127.0.0.1:0",
                    "--ops-listen", "127.0.0.1:0")
        self.assertEqual(start.returncode, 78, start.stdout)
        text = "key %s is not the key that the data was sealed with" % ring[-1][0]
        self.assertIn(text, start.stdout)
        doctor = run("doctor", "--data", self.server.data)
        self.assertEqual(doctor.returncode, 3)
        self.assertIn(text, doctor.stdout)
        self.write(ring)
        self.server.start()

    def test_no_copies(self):
        """keygen that is killed at any moment leaves one ring, and the next start no other file."""
        for i in range(40):
            keygen = subprocess.Popen([program(), "keygen", "--rotate", "--data",
                                       self.server.data], env=clean_env(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.0005 * (i % 20))
            keygen.kill()
            keygen.wait()
        copy = self.keys() + ".new"
        with open(self.keys(), "rb") as f, open(copy, "wb") as to:
            to.write(f.read())
        self.restart()
        self.assertEqual([n for n in os.listdir(self.server.data) if n.startswith("keys")],
                         ["keys"])


if __name__ == "__main__":
    unittest.main()
