"""Pages show what happens: the ```sh blocks of README.md, and of adapters.md and portal.md of the
manual, are run.

They run in a shell, in their order, exactly as printed but for the ports. Each must print the
```text block behind it, but for ids and times. A block that begins with `./dev run` or
`hyperfleet-driver serve` starts a server with the flags it shows.
"""
import json
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import pages
from lib import TIME_FACTOR, Case, Server, clean_env, eventually

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.M | re.S)
STARTS = re.compile(r"^(?:\./dev run|hyperfleet-driver serve)([^#\n]*)")
END_MARK = "<end of a block>"
# Ids, and times of any precision, differ from run to run.
CHANGES = [(re.compile(r"\b2[0-9A-Za-z]{26}\b"), "ID"),
           (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME")]
BLOCK_S = 60 * TIME_FACTOR


def constant(text):
    for pattern, word in CHANGES:
        text = pattern.sub(word, text)
    return text


def steps(text):
    """[(commands, what they print)] of a page's text."""
    found = []
    for kind, body in BLOCK.findall(text):
        if kind == "sh":
            found.append((body, ""))
        elif found:
            assert found[-1][1] == "", "two text blocks behind one sh block"
            found[-1] = (found[-1][0], body)
    return found


def at_ports(text, server):
    """The text with the server's ports in the place of the usual ones."""
    return text.replace("127.0.0.1:8000", "127.0.0.1:%d" % server.port).replace(
        "127.0.0.1:8080", "127.0.0.1:%d" % server.ops_port)


class Shell:
    """A bash that keeps its variables and functions from block to block, in an empty folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="hfd-it-played-")
        self.proc = subprocess.Popen(["bash"], cwd=self.folder, stdin=subprocess.PIPE, text=True,
                                     env=clean_env({"LC_ALL": "C.UTF-8", "HOME": self.folder,
                                                "XDG_STATE_HOME": self.folder}),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, commands):
        """The text that the commands print, on both outputs."""
        self.proc.stdin.write("%s\necho '%s'\n" % (commands, END_MARK))
        self.proc.stdin.flush()
        timer = threading.Timer(BLOCK_S, self.proc.kill)
        timer.start()
        printed = ""
        for line in self.proc.stdout:
            if line.rstrip("\n").endswith(END_MARK):
                timer.cancel()
                return printed + line[:line.index(END_MARK)]
            printed += line
        timer.cancel()
        raise AssertionError("the shell ended, or took longer than %d s:\n%s\nprinted:\n%s"
                             % (BLOCK_S, commands, printed))

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()
        self.proc.stdout.close()
        shutil.rmtree(self.folder)


class Played(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        for tool in ("bash", "curl", "jq"):
            if shutil.which(tool) is None:
                raise unittest.SkipTest("%s is not installed" % tool)

    def play(self, text, *flags):
        """Runs the blocks; how many there were beside the start of the server."""
        shell, server, count = Shell(), None, 0
        try:
            for commands, wanted in steps(text):
                start = STARTS.match(commands)
                if start:
                    self.assertIsNone(server, "one server at a time")
                    server = Server(*flags, *start.group(1).split())
                    server.start()
                    continue
                self.assertIsNotNone(server, "no server is started yet: %s" % commands)
                printed = shell.run(at_ports(commands, server))
                self.assertEqual(constant(printed), constant(at_ports(wanted, server)),
                                 "printed by:\n" + commands)
                count += 1
        finally:
            shell.close()
            if server is not None:
                server.close()
        return count

    def test_first_order(self):
        """README.md: the first order, from its file to its deletion.

        The demo adapters of `./dev run` take ten seconds; here they are faster.
        """
        text = pages.read("README.md")
        end = text.index("\n## ", text.index("## The first order"))
        self.assertGreaterEqual(self.play(text[text.index("## Start\n"):end], "--demo=2s"), 4)

    def test_life_with_two_adapters(self):
        """adapters.md: the life of a cluster with two required adapters."""
        self.assertGreaterEqual(self.play(pages.read("handlers/docs/adapters.md")), 8)

    def test_portal(self):
        """portal.md: the list, one resource, and the feed."""
        self.assertGreaterEqual(self.play(pages.read("handlers/docs/portal.md")), 6)


class Orders(Case):
    FLAGS = ("--demo=1s",)

    def test_orders_of_the_contract(self):
        """contract.md: its orders are taken, the second for the cluster of the first."""
        text = pages.read("handlers/docs/contract.md")
        cluster, nodepool = re.findall(r"^```json\n(\{\"type\".*?)^```$", text, re.M | re.S)
        gid = json.loads(nodepool)["driver"]["values"]["cluster_guresid"]
        for gid, order in ((gid, cluster), (gid + "-gpu", nodepool)):
            self.expect(self.put(gid, order), 202)
            eventually(lambda: self.get(gid).status == 200, "%s is ready" % gid)


if __name__ == "__main__":
    unittest.main()
