"""Lives with the adapter of events.md, as it is printed there: from an order to ready, and from a
deletion to gone. LIVES=N says how many, 40 by default.
"""
import os
import re
import statistics
import subprocess
import tempfile
import time

import real
from lib import Client, Server, clean_env, cluster_input, guresid

LIVES = int(os.environ.get("LIVES", "40"))
DEADLINE_S = 60
SCRIPT = re.compile(r"^```bash\n(#!/bin/sh\n.*?)^```$", re.M | re.S)


class Lives(real.unittest.TestCase):
    def setUp(self):
        self.server = Server("--adapters-required-cluster", "shell",
                             "--adapters-required-nodepool", "shell")
        self.addCleanup(self.server.close)
        self.server.start()
        self.client = Client(self.server)
        self.addCleanup(self.client.close)
        folder = tempfile.TemporaryDirectory(prefix="hfd-lives-")
        self.addCleanup(folder.cleanup)
        with open(os.path.join(real.ROOT, "handlers/docs/events.md"), encoding="utf-8") as f:
            text = SCRIPT.search(f.read()).group(1)
        path = os.path.join(folder.name, "adapter.sh")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.lines = len(text.splitlines())
        adapter = subprocess.Popen(["sh", path, "shell", "http://127.0.0.1:%d" % self.server.port],
                                   env=clean_env(), stdin=subprocess.DEVNULL,
                                   start_new_session=True)

        def end():
            os.killpg(adapter.pid, 9)
            adapter.wait()
        self.addCleanup(end)

    def took(self, method, gid, status):
        """Seconds from the first answer until it is settled."""
        body = cluster_input() if method == "PUT" else None
        began = time.monotonic()
        answer = self.client.request(method, "/" + gid, body)
        self.assertEqual(answer.status, 202, answer)
        while answer.status == 202:
            self.assertLess(time.monotonic() - began, DEADLINE_S, answer)
            time.sleep(0.005)
            answer = self.client.request("GET" if method == "PUT" else method, "/" + gid)
        self.assertEqual(answer.status, status, answer)
        return time.monotonic() - began

    def test_lives(self):
        ready, gone = [], []
        self.took("PUT", guresid("first"), 200) # the adapter is there
        for i in range(LIVES):
            gid = guresid("life-%d" % i)
            ready.append(self.took("PUT", gid, 200))
            gone.append(self.took("DELETE", gid, 204))
        for name, all_ in (("create to ready", ready), ("delete to gone", gone)):
            all_.sort()
            print("%s, %d lives, a cluster with one nodepool, adapter of %d lines: p50 %.0f ms, "
                  "p99 %.0f ms, longest %.0f ms" % (name, LIVES, self.lines,
                                                    1000 * statistics.median(all_),
                                                    1000 * all_[len(all_) * 99 // 100],
                                                    1000 * all_[-1]))


if __name__ == "__main__":
    real.main()
