"""Pages show what happens: the ```sh blocks of README.md and of the manual are run.

Those of README.md, adapters.md and portal.md run in a shell, in their order, exactly as printed but
for the ports. Each must print the ```text block behind it, but for ids and times. A block that
begins with `./dev run` or `hyperfleet-driver serve` starts a server with the flags it shows.

A block of another page runs beside a demo server. Each of its commands must succeed, and what it
prints is not compared. ELSEWHERE has the blocks that need more, and the tests that run them.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import pages
from lib import TIME_FACTOR, Case, Server, clean_env, eventually, program

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

    def __init__(self, **env):
        self.folder = tempfile.mkdtemp(prefix="hfd-it-played-")
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(program(), os.path.join(self.folder, "bin", "hyperfleet-driver"))
        self.proc = subprocess.Popen(["bash"], cwd=self.folder, stdin=subprocess.PIPE, text=True,
                                     env=clean_env(dict({
                                         "LC_ALL": "C.UTF-8", "HOME": self.folder,
                                         "XDG_STATE_HOME": self.folder,
                                         "PATH": os.path.join(self.folder, "bin") + ":" +
                                                 os.environ["PATH"]}, **env)),
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
        """portal.md: the list, one resource, and the feed. On PostgreSQL the feed may end early for
        a moment (test_overview), so a block that reads it has a second try there.
        """
        text = pages.read("handlers/docs/portal.md")
        try:
            count = self.play(text)
        except AssertionError as failure:
            if "HFD_TEST_STORE" not in os.environ or "/events" not in str(failure):
                raise
            count = self.play(text)
        self.assertGreaterEqual(count, 6)


# A word of a block that is not run here, and where its commands are run. Without a test: why not.
ELSEWHERE = {
    "kubectl": "real/test_helm and test_kubernetes have the chart; no cluster of ours has kubectl",
    "docker": "real/test_image runs the steps of the Dockerfile, and what compose sets",
    "apt-get": "real/test_package installs and removes the package",
    "systemctl": "real/test_package and test_systemd",
    "cmake": "real/test_plain_build",
    "postgres://": "real/test_move and test_replicas",
    "--contract": "real/test_versions",
    "tls-cert-file": "test_tls",
    "--backend https": "test_remote",
    "hyperfleet-driver-check": "test_check",
    "hyperfleet-driver purge": "test_client: the demo's deletions end",
    "register --check": "test_register has the API that it asks",
    "tofu ": "real/test_terraform",
    "text/event-stream": "test_events reads streams, which have no end",
    "/admin/orphans/ID": "test_orphans: the demo makes no orphan",
}
# Made before the first block of a page.
ORDER = """cat >order.json <<'END'
{"type": "hyperfleet-cluster", "driver": {"values": {"cluster": {}}}}
END
"""
BEFORE = {
    "access.md": "TOKEN=$(hyperfleet-driver token create --name first --scope driver)",
    "client.md": ORDER + "hyperfleet-driver apply order.json --id 3c0a194814284345",
    "contract.md": ORDER,
    "events.md": ORDER + "hyperfleet-driver apply order.json --id 3c0a194814284345\n"
                 "API=${HFD_URL}api/hyperfleet/v1 NEXT=0",
    "scale.md": "hyperfleet-driver keygen --keys keys",
    "operate.md": "hyperfleet-driver token create --name doctor --scope admin >token",
}


def sh_blocks(page):
    return re.findall(r"^ *```sh\n(.*?)^ *```$", pages.read(page), re.M | re.S)


class Manual(unittest.TestCase):
    def run_block(self, shell, commands):
        """Each command must succeed. Variables last for the block."""
        printed = shell.run("(set -eo pipefail\n%s\n)\necho status $?" % commands)
        self.assertTrue(printed.endswith("status 0\n"), "%s\nprinted:\n%s" % (commands, printed))

    def play(self, page):
        """How many blocks of a page were run."""
        blocks = [re.sub("^ {3}", "", body, flags=re.M)
                  for body in sh_blocks("handlers/docs/" + page)]
        here = [b for b in blocks
                if not any(word in re.sub("#.*", "", b) for word in ELSEWHERE)]
        if not here:
            return 0
        with Server("--demo=1s") as server:
            shell = Shell(HFD_DATA=server.data, HFD_LISTEN="127.0.0.1:%d" % server.port,
                          HFD_OPS_LISTEN="127.0.0.1:%d" % server.ops_port,
                          HFD_URL="http://127.0.0.1:%d/" % server.port)
            try:
                if page in BEFORE:
                    shell.run(BEFORE[page])
                for block in here:
                    with self.subTest(page=page, block=block):
                        block = at_ports(block, server).replace(" --watch ", " ")
                        block = block.replace("/var/lib/hyperfleet-driver", server.data)
                        block = block.replace("/var/lib/hyperfleet-new", shell.folder + "/new")
                        if "doctor" in block:
                            block = block.replace("https://driver.example:8080/",
                                                  "http://127.0.0.1:%d/" % server.ops_port)
                            block = block.replace("https://driver.example/",
                                                  "http://127.0.0.1:%d/" % server.port)
                        self.run_block(shell, block)
            finally:
                shell.close()
        return len(here)

    def test_each_page(self):
        """The commands of every page succeed as they are printed."""
        played = {os.path.basename(page): self.play(os.path.basename(page))
                  for page in pages.below("handlers/docs", ".md")
                  if os.path.basename(page) not in ("adapters.md", "portal.md")}
        self.assertGreaterEqual(sum(played.values()), 15, played)

    def test_tokens(self):
        """access.md: all its commands are about one file; what was revoked is in it no more."""
        shell = Shell()
        try:
            block = sh_blocks("handlers/docs/access.md")[0]
            self.run_block(shell, "mkdir d && touch d/store.db\nexport HFD_DATA=d\n" + block)
            names = shell.run("hyperfleet-driver token list --data d | cut -d' ' -f1").split()
            self.assertIn("orchestrator", names)
            self.assertNotIn("dns-adapter", names)
            self.assertFalse(os.path.exists(shell.folder + "/data"), "another folder was made")
        finally:
            shell.close()

    def test_every_reason_is_needed(self):
        """A word of ELSEWHERE stands in a block of the manual."""
        text = "".join("".join(sh_blocks(page)) for page in pages.below("handlers/docs", ".md"))
        self.assertEqual([word for word in ELSEWHERE if word not in text], [])


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
