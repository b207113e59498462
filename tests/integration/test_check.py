"""tests/contract/check on our own server, and on drivers that are wrong in one way each."""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from lib import CHECK, Server, check, clean_env, eventually
from scripted_driver import Served

# How a driver is wrong, and the rules that it breaks. The first one names the fault.
WRONG = {
    "": [],
    "201": ["A-01", "P-01", "P-07", "P-08"],
    "500": ["A-02", "G-02", "X-05", "G-06"],
    "text": ["A-03"],
    "array": ["A-04"],
    "values": ["O-01"],
    "id": ["O-02"],
    "type": ["O-03"],
    "manifest": ["O-04"],
    "no id": ["O-05"],
    "status word": ["H-01", "H-07"],
    "times": ["H-02"],
    "no clock": ["H-03"],
    "past": ["H-04"],
    "beyond": ["H-05"],
    "moving": ["H-06"],
    "other word": ["H-07"],
    "clock": ["H-08"],
    "code": ["E-01"],
    "no message": ["E-02"],
    "long cookie": ["C-01", "C-06"],
    "odd cookie": ["C-02"],
    "cookie name": ["C-03", "C-05", "C-06", "G-03", "P-03"],
    "new cookies": ["C-04", "C-06"],
    "needs cookie": ["C-05"],
    "any cookie": ["C-06"],
    "409 first": ["P-01", "P-07"],
    "409 same": ["P-02", "P-09"],
    "never made": ["P-03"],
    "starts over": ["P-04", "P-10"],
    "400 other": ["P-05"],
    "no update": ["P-06"],
    "no new update": ["P-07"],
    "once": ["P-08"],
    "one at a time": ["P-09"],
    "no GET": ["G-01"],
    "invents": ["G-02", "X-05", "O-03"],
    "hides": ["G-03"],
    "forgets": ["G-04"],
    "unstable": ["G-05"],
    "haunts": ["G-06"],
    "400 deleting": ["G-07"],
    "404": ["D-01", "A-01"],
    "400 again": ["D-02", "D-03"],
    "not deleted": ["D-03"],
    "400 twice": ["D-04"],
    "204 body": ["D-05"],
    "busy": ["D-06", "A-01"],
    "204 cookie": ["D-07"],
    "422": ["X-01", "X-02", "A-01"],
    "422 none": ["X-02", "A-01"],
    "422 array": ["X-03", "A-01"],
    "422 type": ["X-04", "A-01"],
    "keeps": ["X-05"],
    "hangs up": ["A-05", "X-01"],
    "two by a PUT again": ["I-01", "I-03", "C-04"],
    "two when ready": ["I-01", "I-02", "C-04"],
    "two without cookie": ["I-02", "I-03"],
    "two together": ["I-03"],
    "updates again": ["P-10"],
    "500 without cookie": ["D-08", "A-02"],
    "500 together": ["P-09", "A-02"],
    # Legal, though another driver does more.
    "empty hint": ["H-03"],
    "output hint": ["H-03"],
    "refuses updates": [],
    # As Humanitec's two reference drivers behave.
    "refgo": ["G-01", "D-01", "D-04", "X-01", "X-02", "X-03", "X-04", "A-01", "H-03"],
    "refpy": ["G-01", "D-01", "D-04", "X-01", "X-02", "X-03", "X-04", "A-01", "A-02",
              "D-08"],
}
MAY = {"H-03", "H-08", "G-01", "C-05", "C-06"}
INPUT = {"type": "thing", "n": 1, "name": "n-${id}"}


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hfd-check-")
        cls.input = cls.file("input.json", INPUT)
        cls.update = cls.file("update.json", {**INPUT, "n": 2})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def file(cls, name, doc):
        path = os.path.join(cls.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(doc if isinstance(doc, str) else json.dumps(doc))
        return path

    def check(self, *args, env=None):
        return subprocess.run([sys.executable, "-B", CHECK, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=clean_env(env), timeout=300,
                              check=False)

    def judge(self, wrong):
        """The result of a check of a scripted driver. A busy machine may be too slow for the
        check's times and for two requests at once: then there is more time.
        """
        for more in (1, 4, 16):
            with Served(wrong, pause_s=0.1 * more) as served:
                ran = self.check(served.url, "--input", self.input, "--update", self.update,
                                 "--json", "--interval", "10ms", "--timeout", "%ds" % (5 * more))
            doc = json.loads(ran.stdout)
            failed = {r["id"] for r in doc["rules"] if r["result"] == "fail"}
            if failed == set(WRONG[wrong]) and doc["left"] == []:
                break
        return ran, doc

    def test_wrong_drivers(self):
        """Each fault is found by its rule, and by no rule that it does not break."""
        # Each check waits for two seconds and computes next to nothing.
        with concurrent.futures.ThreadPoolExecutor(14) as pool:
            results = dict(zip(WRONG, pool.map(self.judge, WRONG)))
        for wrong, (ran, doc) in results.items():
            with self.subTest(wrong=wrong):
                failed = {r["id"]: r["seen"] for r in doc["rules"] if r["result"] == "fail"}
                self.assertEqual(set(failed), set(WRONG[wrong]), failed)
                counted = set(failed) - MAY
                self.assertEqual(doc["failed"], len(counted))
                self.assertEqual(ran.returncode, 1 if counted else 0, ran.stderr)
                self.assertEqual(doc["left"], [])
                for seen in failed.values():
                    self.assertTrue(seen)
        named = {rules[0] for rules in WRONG.values() if rules}
        known = {r["id"] for r in results[""][1]["rules"]}
        self.assertEqual(known - named, set(), "rules that no wrong driver breaks")
        skipped = [r["id"] for r in results[""][1]["rules"] if r["result"] == "skip"]
        self.assertEqual(skipped, [])

    def test_own_server(self):
        """Our server meets every rule, as a driver that demo adapters make ready."""
        order = {"type": "hyperfleet-cluster", "driver": {"values": {
            "cluster": {"name": "c-${id}", "spec": {"region": "a"}},
            "nodepools": [{"name": "np-1", "spec": {"n": 1}}]}}}
        first = self.file("order.json", order)
        order["driver"]["values"]["cluster"]["spec"]["region"] = "b"
        second = self.file("change.json", order)
        with Server("--demo=1") as server:
            ran = self.check("http://127.0.0.1:%d/clusters/" % server.port, "--input", first,
                             "--update", second, "--interval", "100ms", "--json")
        doc = json.loads(ran.stdout)
        self.assertEqual([r for r in doc["rules"] if r["result"] != "pass"], [])
        self.assertEqual((ran.returncode, doc["left"]), (0, []), ran.stderr)

    def test_forms(self):
        """A table for people, XML for CI; chosen rules alone."""
        junit = os.path.join(self.folder.name, "junit.xml")
        with Served("404") as served:
            ran = self.check(served.url, "--input", self.input, "--interval", "10ms", "--only",
                             "D-01,G-02,P-06", "--junit=" + junit)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("FAIL  D-01  must ", ran.stdout)
        self.assertIn("DELETE answered 404", ran.stdout)
        self.assertIn("(Humanitec Driver API 0.9.3, DELETE 204)", ran.stdout)
        self.assertIn("needs --update FILE", ran.stdout)
        self.assertTrue(ran.stdout.endswith("1 passed, 1 failed, 1 skipped\n"), ran.stdout)
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual({k: suite.get(k) for k in ("tests", "failures", "skipped")},
                         {"tests": "3", "failures": "1", "skipped": "1"})
        with Served("cookie name") as served:
            ran = self.check("--url=" + served.url, "--input", self.input, "--interval", "10ms",
                             "--level", "should", "--json")
        levels = {r["level"] for r in json.loads(ran.stdout)["rules"]}
        self.assertEqual(levels, {"must", "should"})

    def test_taken_name(self):
        """A name that is taken is the input's fault: the report says how to mend it, once."""
        with Served("taken") as served:
            ran = self.check(served.url, "--input", self.input, "--interval", "10ms", "--json",
                             "--only", "P-01,P-04,P-09")
        seen = {r["id"]: r["seen"] for r in json.loads(ran.stdout)["rules"]}
        self.assertTrue(seen["P-01"].endswith("; use ${id} in the names: see --help"), seen)
        self.assertEqual(seen["P-04"], "the first PUT was refused")
        self.assertEqual(json.loads(ran.stdout)["failed"], 1)
        self.assertIn("${id} in FILE stands for the GUResID", self.check("--help").stdout)

    def test_no_secret(self):
        """The quote of an output has no secrets in it."""
        with Served("id") as served:
            ran = self.check(served.url, "--input", self.input, "--interval", "10ms")
        self.assertIn('"secrets": "[redacted]"', ran.stdout)
        self.assertNotIn("ssh-secret", ran.stdout)

    def test_rules_and_ids(self):
        """--list prints the rules; --id begins the GUResIDs."""
        ran = self.check("--list")
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(len(ran.stdout.splitlines()), len(check.RULES))
        self.assertIn("D-04  must    DELETE of what was deleted is 204 (DELETE 204)\n", ran.stdout)
        with Served() as served:
            ran = self.check(served.url, "--input", self.input, "--interval", "10ms", "--id", "ci")
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertRegex(ran.stderr, "(?m)^check: creates ci-[0-9a-f]{8}$")

    def test_report_file(self):
        """A link or a pipe in the place of the report stays as it is; nothing waits for it."""
        target = self.file("target", "theirs")
        link, pipe = (os.path.join(self.folder.name, name) for name in ("link", "pipe"))
        os.symlink(target, link)
        os.mkfifo(pipe)
        with Served() as served:
            for path in (link, pipe):
                ran = self.check(served.url, "--input", self.input, "--interval", "10ms",
                                 "--only", "G-01", "--junit", path)
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn("cannot write the report", ran.stderr)
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run([sys.executable, "-B", CHECK, "--list"], stdout=full, text=True,
                                 stderr=subprocess.PIPE, env=clean_env(), check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("cannot write the report: No space left on device", ran.stderr)
        with open(target, encoding="utf-8") as f:
            self.assertEqual(f.read(), "theirs")

    def test_stop(self):
        """The first Ctrl-C ends the check after it has deleted what it made."""
        with Served() as served:
            with subprocess.Popen([sys.executable, "-B", CHECK, served.url, "--input", self.input,
                                   "--json", "--interval", "1s"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=clean_env()) as ran:
                for line in ran.stderr:
                    if line.startswith("check: creates"):
                        break
                eventually(lambda: served.driver.resources, "it has made a resource")
                ran.send_signal(signal.SIGINT)
                out, _ = ran.communicate(timeout=100)
            doc = json.loads(out)
            self.assertEqual((ran.returncode, doc["left"]), (1, []))
            self.assertEqual(served.driver.resources, {})
        self.assertIn("stopped before", {r["seen"] for r in doc["rules"]})

    def test_wrong_use(self):
        """Wrong use is 2, a driver that is away 69."""
        with Served() as served:
            url = served.url
            bad = self.file("bad.json", "[1]")
            for args, want in (
                    ((), "expected the URL of a driver and --input FILE"),
                    ((url,), "expected the URL of a driver and --input FILE"),
                    ((url, "--input", "/nowhere"), "/nowhere"),
                    ((url, "--input", bad), "expected a JSON object"),
                    ((url, "--input", self.input, "--only", "Z-99"), "there is no rule 'Z-99'"),
                    ((url, "--input", self.input, "--level", "can"),
                     "invalid choice: 'can'"),
                    ((url, "--input", self.input, "--only", "H-08", "--level", "must"),
                     "leave no rule"),
                    ((url, "--input", self.input, "--inptu", "x"),
                     "unrecognized arguments: --inptu"),
                    ((url, "--input", self.input, "--id", "A/B"), "--id: expected"),
                    (("http://x/?a", "--input", self.input), "expected http://HOST/PATH"),
                    ((url, "--input"), "argument --input: expected one argument"),
                    ((url, "--input", self.input, "--timeout", "5"), "--timeout"),
                    (("ftp://x", "--input", self.input), "http"),
                    ((url, "--input", self.input, "--token-file", "/nowhere"), "/nowhere"),
            ):
                ran = self.check(*args)
                self.assertEqual(ran.returncode, 2, (args, ran.stderr))
                self.assertIn(want, ran.stderr)
        ran = self.check("http://127.0.0.1:1/", "--input", self.input)
        self.assertEqual(ran.returncode, 69, ran.stderr)
        self.assertIn("cannot be reached", ran.stderr)
        ran = self.check("--help")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("--junit FILE", ran.stdout)


if __name__ == "__main__":
    unittest.main()
