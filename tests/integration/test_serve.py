"""The program around the server: its first and last lines, its exit statuses, signals, and what it
makes on disk.
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import stat
import tempfile
import unittest

from lib import Client, Place, Server, cluster_input, eventually, guresid, parse_time, run

NOWHERE = ("--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def messages(server):
    return [r.get("msg", "") for r in server.records()]


def hang(server):
    """A connection with a request that stays open: a drain waits for it."""
    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    s.sendall(b"PUT /hang HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\n"
              b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 100"), "the head has been read"
    s.sendall(b"{")
    return s


class Serve(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hfd-it-serve-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.data = os.path.join(self.dir, "data")
        self.place = Place(self.data)
        self.addCleanup(self.place.remove)

    def start(self, *flags, **kw):
        server = Server(*flags, data=self.data, **kw)
        self.addCleanup(server.close)
        return server.start()

    def refused(self, status, words, *flags):
        done = run("serve", *NOWHERE, *Place(self.data).flags(), *flags)
        self.assertEqual(done.returncode, status, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def test_ready_line(self):
        """The line `ready` has both addresses, the ports as numbers, the data folder, the version,
        and says that this is no demo.
        """
        server = self.start()
        ready = [r for r in server.records() if r["msg"] == "ready"]
        self.assertEqual(len(ready), 1)
        line = ready[0]
        self.assertEqual(line["url"], "http://127.0.0.1:%d" % server.port)
        self.assertEqual(line["ops_url"], "http://127.0.0.1:%d" % server.ops_port)
        self.assertGreater(server.port, 0)
        self.assertGreater(server.ops_port, 0)
        if self.place.base:
            self.assertTrue(self.place.url.endswith(line["store"].split("@")[-1]), line)
        else:
            self.assertEqual(line["data"], os.path.realpath(self.data))
        self.assertIn(line["version"], run("version").stdout)
        self.assertEqual(line["demo"], "off")
        self.assertEqual([m for m in messages(server) if "demo" in m], [])

    def test_a_new_store_is_one_line(self):
        """The first start says that the store was made; it lists no migrations."""
        records = self.start().records()
        self.assertEqual([type(r["schema"]) for r in records if r["msg"] == "store made"], [int])
        self.assertNotIn("store schema migrated", [r["msg"] for r in records])

    def test_private_files(self):
        """With any umask, the files that it makes are readable for its user alone."""
        before = os.umask(0)
        try:
            server = self.start()
        finally:
            os.umask(before)
        self.assertEqual(mode(self.data), 0o700)
        for folder, _, names in os.walk(self.data):
            for name in names:
                self.assertEqual(mode(os.path.join(folder, name)) & 0o077, 0, name)
        self.assertEqual(server.sigterm(), 0)
        self.assertEqual(messages(server)[-1], "stopped")

    def test_access_of_others(self):
        """A data folder or database that others can read or write is used, with a warning."""
        server = self.start()
        self.assertEqual([m for m in messages(server) if m.startswith("others may")], [])
        self.assertEqual(server.sigterm(), 0)
        os.chmod(self.data, 0o755)
        os.chmod(os.path.join(self.data, "store.db"), 0o606)
        server = self.start()
        said = [r["file"] for r in server.records() if r["msg"].startswith("others may")]
        self.assertEqual(said, [".", "store.db"])

    def test_no_core_dumps(self):
        """The process leaves no core file behind: it would have the keys."""
        server = self.start()
        with open("/proc/%d/limits" % server.proc.pid, encoding="ascii") as f:
            core = [line.split() for line in f if line.startswith("Max core file size")][0]
        self.assertEqual(core[4:6], ["0", "0"])
        if os.geteuid() != 0:  # the files of a process that cannot be traced are not its user's
            self.assertNotEqual(os.stat("/proc/%d/environ" % server.proc.pid).st_uid,
                                os.geteuid())

    def test_key_ring_is_made_once(self):
        """The first start says that it made a key ring and that it is to be backed up; the next one
        takes it.
        """
        server = self.start()
        made = [r for r in server.records() if "key ring" in r["msg"]]
        self.assertEqual(len(made), 1)
        self.assertIn("back it up", made[0]["msg"])
        self.assertEqual(made[0]["path"], os.path.join(self.data, "keys"))
        self.assertEqual(server.sigterm(), 0)
        again = self.start()
        self.assertEqual([m for m in messages(again) if "key ring" in m], [])

    def test_key_ring_elsewhere(self):
        """keys names another file; the data folder has none then."""
        path = os.path.join(self.dir, "ring")
        self.assertEqual(run("keygen", "--keys", path).returncode, 0)
        server = self.start("--keys", path)
        self.assertEqual([m for m in messages(server) if "key ring" in m], [])
        self.assertFalse(os.path.exists(os.path.join(self.data, "keys")))

    def test_lost_key_ring(self):
        """A key ring that is missing beside data is not made anew: 78, and the way out is named."""
        server = self.start()
        self.assertEqual(server.sigterm(), 0)
        path = os.path.join(self.data, "keys")
        os.rename(path, path + ".lost")
        self.refused(78, [path, "keygen"] + ([] if self.place.base else ["backup"]))
        self.assertFalse(os.path.exists(path))
        os.rename(path + ".lost", path)
        self.start()

    def test_unreadable_key_ring(self):
        """A key ring that is damaged or open to others: 78."""
        path = os.path.join(self.data, "keys")
        self.place.make()
        if not self.place.base:
            os.mkdir(self.data, 0o700)
            self.assertEqual(run("keygen", "--keys", path).returncode, 0)
        os.chmod(path, 0o640)
        self.refused(78, [path, "0640"])
        os.chmod(path, 0o600)
        with open(path, "w", encoding="ascii") as f:
            f.write("nonsense\n")
        self.refused(78, ["key ring " + path, "line 1"])
        self.assertEqual(self.place.tables(), [])
        self.assertFalse(os.path.exists(os.path.join(self.data, "store.db")),
                         "nothing is stored before the keys are known")

    def test_data_folders(self):
        """A data folder that cannot be used is 73, and is named."""
        server = self.start()
        self.refused(73, [self.data, "in use"])
        self.assertEqual(server.sigterm(), 0)
        with open(os.path.join(self.data, "store.db"), "wb") as f:
            f.write(b"no database" * 1000)
        self.refused(73, [os.path.join(self.data, "store.db"), "not a database", "backup"])
        self.data = os.path.join(self.dir, "no", "parent")
        self.refused(73, [self.data])
        self.data = os.path.join(self.dir, "file")
        with open(self.data, "w", encoding="ascii"):
            pass
        self.refused(73, [self.data, "not a folder"])

    def test_addresses(self):
        """An address that cannot be had has its status, is named, and nothing is made before."""
        self.start().sigterm()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            taken = "127.0.0.1:%d" % s.getsockname()[1]
            self.refused(69, ["--listen: cannot listen on " + taken, "Port 0"], "--listen", taken)
        self.data = os.path.join(self.dir, "none")
        self.refused(2, ["--listen: 0.0.0.0:0", "loopback"], "--listen", "0.0.0.0:0")
        self.refused(2, ["--listen: ", "IP address"], "--listen", "example.com:0")
        for flag in ("--listen", "--ops-listen"):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                s.listen()
                taken = "127.0.0.1:%d" % s.getsockname()[1]
                self.refused(69, [flag + ": cannot listen on " + taken], flag, taken)
        self.assertFalse(os.path.exists(self.data), "nothing is made before settings and addresses "
                         "are known")

    def test_a_refused_start_writes_nothing(self):
        """A second server that is refused leaves the folder of a running one as it is; without a
        usable key ring nothing is made.
        """
        server = self.start()

        def files():
            return {e.name: (e.inode(), e.stat().st_mtime_ns) for e in os.scandir(self.data)}

        def is_left_alone():
            """False also if the running server wrote meanwhile."""
            with contextlib.suppress(FileNotFoundError):
                before = files()
                self.refused(73, ["in use"])
                return files() == before
            return False

        self.assertTrue(any(is_left_alone() for _ in range(5)))
        self.assertEqual(server.sigterm(), 0)
        self.data = os.path.join(self.dir, "other")
        os.mkdir(self.data, 0o700)
        with open(os.path.join(self.data, "keys"), "w", encoding="ascii") as f:
            f.write("nonsense\n")
        self.refused(78, [])
        self.assertEqual(os.listdir(self.data), ["keys"])

    def test_help_lists_the_statuses(self):
        """Every status that is seen here stands in the help."""
        text = run("help").stdout
        for status in (0, 1, 2, 69, 70, 73, 78):
            self.assertRegex(text, r"\n +%d  [a-z]" % status)

    def test_drain_timeout(self):
        """A request that does not come to its end is cut off after http.drain_timeout, and that is
        said.
        """
        server = self.start("--http-drain-timeout", "1s")
        with hang(server):
            self.assertEqual(server.sigterm(), 0)
        late = [r for r in server.records() if "http.drain_timeout" in r["msg"]]
        self.assertEqual([(r["level"], r["connections"]) for r in late], [("warn", 1)])

    def test_second_signal(self):
        """SIGTERM waits for an open request; a second one ends it at once with 1."""
        server = self.start("--http-drain-timeout=60s", "--http-read-timeout=60s")
        with hang(server):
            server.proc.send_signal(signal.SIGTERM)
            eventually(lambda: any(m.startswith("stopping") for m in messages(server)),
                       "it says that it stops")
            self.assertTrue(server.alive())
            server.proc.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 1)
        self.start()

    def test_sighup_takes_up_new_keys(self):
        """After keygen --rotate and SIGHUP new cookies are sealed with the new key, old ones open,
        and so it is after a restart.
        """
        server = self.start()
        client = Client(server)
        old, new = guresid("old"), guresid("new")
        first = client.put("/" + old, cluster_input()).cookie
        done = run("keygen", "--rotate", "--data", self.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("SIGHUP", done.stdout)
        self.assertRegex(done.stdout, r"\b[0-9a-f]{8}\b")
        server.proc.send_signal(signal.SIGHUP)
        eventually(lambda: "key ring reloaded" in messages(server),
                   "the key ring is reloaded")
        second = client.put("/" + new, cluster_input()).cookie
        for gid, cookie in ((old, first), (new, second)):
            self.assertEqual(client.get("/" + gid,
                                        headers={"Humanitec-Driver-Cookie": cookie}).status, 202)
        server.proc.send_signal(signal.SIGHUP)
        eventually(lambda: "key ring unchanged" in messages(server),
                   "the second SIGHUP finds nothing new")
        client.close()
        server.restart()
        client = Client(server)
        for gid, cookie in ((old, first), (new, second)):
            self.assertEqual(client.get("/" + gid,
                                        headers={"Humanitec-Driver-Cookie": cookie}).status, 202)
        client.close()

    def test_sighup_refuses_a_foreign_ring(self):
        """A ring without the key in use, or a damaged one, is not taken up; the present one stays
        in use.
        """
        server = self.start()
        path = os.path.join(self.data, "keys")
        client = Client(server)
        gid = guresid("kept")
        cookie = client.put("/" + gid, cluster_input()).cookie
        other = os.path.join(self.dir, "other")
        self.assertEqual(run("keygen", "--keys", other).returncode, 0)
        shutil.copy(path, other + ".kept")
        for count, put in enumerate((lambda: os.rename(other, path), lambda: os.chmod(path, 0o644),
                                     lambda: os.unlink(path)), 1):
            put()
            there = path if os.path.exists(path) else os.devnull
            with open(there, "a", encoding="ascii") as f:
                f.write("# changed\n")
            server.proc.send_signal(signal.SIGHUP)
            eventually(lambda n=count: sum("not reloaded" in m for m in messages(server)) == n,
                       "reload %d is refused" % count)
            self.assertEqual(client.get("/" + gid,
                                        headers={"Humanitec-Driver-Cookie": cookie}).status, 202)
        client.close()
        os.rename(other + ".kept", path)
        os.chmod(path, 0o600)
        server.restart()
        client = Client(server)
        self.assertEqual(client.get("/" + gid, headers={"Humanitec-Driver-Cookie": cookie}).status,
                         202)
        client.close()

    def test_broken_store(self):
        """When the disk takes no more, nothing more is acknowledged, the process ends with 70, and
        a restart has what was acknowledged.
        """
        server = Server(data=self.data)
        self.addCleanup(server.close)
        whole = server.command()
        # Files may grow to 2 MiB: SQLite's log meets that as a failing disk.
        server.command = lambda: ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 4096; exec "$@"',
                                  "sh"] + whole
        server.start()
        client = Client(server)
        acked = []
        for _ in range(5000):
            gid = guresid("full")
            try:
                answer = client.put("/" + gid, cluster_input(spec={"filler": "x" * 5000}))
            except OSError:
                break
            if answer.status != 202:
                self.assertEqual(answer.status, 503, answer)
                break
            acked.append(gid)
        client.close()
        self.assertEqual(server.wait(), 70)
        self.assertTrue(any("the store failed" in m for m in messages(server)), server.tail(40))
        self.assertGreater(len(acked), 10)
        server.command = lambda: whole
        server.start()
        client = Client(server)
        for gid in acked:
            self.assertEqual(client.get("/" + gid).status, 202)
        client.close()

    def test_demo_estimate(self):
        """With the demo on, the estimate is the demo's time, unless the user chose one."""
        for flags, low, high in ((("--demo=100s",), 90, 110),
                                 (("--demo=100s", "--driver-estimate-create=500s"), 490, 510)):
            server = self.start(*flags)
            eventually(lambda: any(re.search("demo.*no cluster is made", m)
                                   for m in messages(server)), "the log says so")
            self.assertEqual([r["level"] for r in server.records()
                              if "no cluster is made" in r["msg"]], ["warn"])
            client = Client(server)
            hint = client.put("/" + guresid("demo"), cluster_input()).json
            client.close()
            ahead = (
                parse_time(hint["estimated_completion_time"]) - parse_time(
                    hint["current_time"])).total_seconds()
            self.assertTrue(low <= ahead <= high, hint)
            self.assertEqual(server.sigterm(), 0)


if __name__ == "__main__":
    unittest.main()
