"""The alerts, the dashboard and the runbook fit the program. Each metric and label that they name
is exported. The runbook names each alert, and each log line of level warn or error.
"""
import json
import os
import re
import subprocess
import unittest

import pages
import yaml
from lib import Client, Server, clean_env, program

RUNBOOK, METRICS = "handlers/docs/runbook.md", "handlers/docs/metrics.md"
# Rows about lines of level info.
INFORMS = {"credentials are valid again", "resource mended", "kubeconfig read again",
           "HyperShift adapter: the management cluster is watched again"}
ALERTS, DASHBOARD = "docker/prometheus/alerts.yaml", "docker/grafana/hyperfleet-driver.json"
CASES = "docker/prometheus/tests.yaml"
# Labels that Prometheus adds at a scrape, and that of histograms.
ADDED = {"job", "instance", "le"}
WORDS = set("""absent and avg by changes count group_left histogram_quantile increase max
    max_over_time min min_over_time offset on or rate sum time unless without""".split())
# Lines whose text does not stand beside their level: file -> texts, as they stand in the source.
ELSEWHERE = {
    "driver/backend/remote/remote.c": [
        "remote HyperFleet does not answer well; will ask less often until it does",
        "remote HyperFleet refuses the credentials; check remote.token_file and remote.cert_file",
        "the remote is not a HyperFleet; check the URL in backend"],
    "driver/base/check.c": ["assertion failed", "internal invariant broken"],
    "driver/core/transition.c": ["resource drifted", "drift is not mended any more"],
    "driver/fleet/aggregate.c": ["adapter %s reports and is not required"],
    "handlers/http/exchange.c": ["request"],
    "store/sqlite/db_sqlite.c": ["sqlite"],
}
LITERAL = r'"(?:[^"\\]|\\.)*"'
FIELD = re.compile(r"HFD_LOG_(?:STR|CSTR|INT)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
# Not a line of the log: the names of levels, and the choice of the lowest.
NO_LINE = re.compile(r"\[HFD_LOG_(?:WARN|ERROR)\]|hfd_log_\w+\(HFD_LOG_(?:WARN|ERROR)\)")


def source_of(path):
    """A source without comments; texts on several lines are one."""
    text = re.sub(r"/\*.*?\*/", "", pages.read(path), flags=re.S)
    return re.sub(r'"\s*\n?\s*"', "", text)


def log_lines():
    """{text: file} of all lines of level warn and error, and the files whose texts stand elsewhere.
    """
    found, silent = {}, set()
    for path in sorted(sum((pages.below(top, end) for end in (".c", ".h")
                            for top in ("driver", "handlers", "schemas", "store")), [])):
        if path == "driver/base/log.h":
            continue
        source = NO_LINE.sub("", source_of(path))
        for match in re.finditer(r"HFD_LOG_(?:WARN|ERROR)\b", source):
            rest = source[match.end():]
            rest = FIELD.sub("", rest[:re.search(r"[;}]", re.sub(
                LITERAL, lambda m: "x" * len(m[0]), rest)).start()])
            rest = re.sub(r"\.(?!message\b)\w+ = " + LITERAL, "", rest)  # other members
            texts = [text[1:-1] for text in re.findall(LITERAL, rest)]
            found.update({text: path for text in texts})
            if not texts:
                silent.add(path)
    return found, silent


def exported():
    """{metric: its labels}, from the page that is made of the program's table."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", pages.read(METRICS), re.M)
    known = {}
    for name, kind, labels in rows:
        names = [name + end for end in ("_bucket", "_sum", "_count")] if kind == "histogram" \
            else [name]
        known.update({n: set(re.findall(r"`(\w+)`", labels)) for n in names})
    return known


def expressions():
    """[(place, expression)] of the alerts and the dashboard."""
    rules = [(r["alert"], r["expr"]) for g in yaml.safe_load(pages.read(ALERTS))["groups"]
             for r in g["rules"]]
    board = json.loads(pages.read(DASHBOARD))
    panels = [(p["title"], t["expr"]) for p in board["panels"] for t in p.get("targets", [])]
    return rules + panels + [(a["name"], a["expr"]) for a in board["annotations"]["list"]] + \
        [(v["name"], v["definition"]) for v in board["templating"]["list"] if "definition" in v]


def metrics_of(expr):
    """[(metric, labels that its selector names)]"""
    bare = re.sub(r"\b(?:by|on|without)\s*\([^)]*\)", "", expr)
    bare = re.sub(r"label_values\((\w+), \w+\)", r"\1", bare)
    return [(m[1], set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", m[2] or "")))
            for m in re.finditer(r"\b([a-z]\w*)\b(?:\{([^}]*)\})?",
                                 re.sub(r"\[[^]]*\]", "", bare))
            if m[1] not in WORDS and not m[1].isdigit()]


class Alerts(unittest.TestCase):
    def test_metrics_are_exported(self):
        """Each metric of an alert or a panel is exported, with the labels of its selector."""
        known, seen = dict(exported(), up=set()), set()  # Prometheus itself makes `up`
        for place, expr in expressions():
            found = metrics_of(expr)
            self.assertTrue(found, place)
            for name, labels in found:
                with self.subTest(place=place, metric=name):
                    self.assertIn(name, known)
                    self.assertLessEqual(labels, known[name] | ADDED)
                    seen.add(name)
            grouped = set(sum((re.split(r"[,\s]+", g.strip()) for g in re.findall(
                r"\bby\s*\(([^)]*)\)", expr)), []))
            with self.subTest(place=place, by=grouped):
                self.assertLessEqual(grouped, ADDED.union(*(known[n] for n, _ in found)))
        self.assertGreater(len(seen), 30)

    def test_the_table_is_the_scrape(self):
        """The page of metrics, by which these tests judge, has what a scrape has."""
        with Server() as server:
            ops = Client(server, ops=True)
            self.addCleanup(ops.close)
            text = ops.get("/metrics").body.decode()
        names = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
        self.assertLessEqual(names, set(re.findall(r"^\| `(\w+)` ", pages.read(METRICS), re.M)))
        samples = set(re.findall(r"^(\w+)(?:\{[^}]*\})? ", text, re.M)) - {"#"}
        self.assertLessEqual(samples, set(exported()))
        self.assertIn("hfd_resources_stuck", samples)

    def test_each_alert_is_tried(self):
        """promtool tries each alert: when it fires, and when it does not (tests/real)."""
        cases = yaml.safe_load(pages.read(CASES))["tests"]
        tried = {(c["alertname"], bool(c["exp_alerts"])) for t in cases
                 for c in t["alert_rule_test"]}
        alerts = [r["alert"] for g in yaml.safe_load(pages.read(ALERTS))["groups"]
                  for r in g["rules"]]
        self.assertEqual(tried, {(a, fires) for a in alerts for fires in (True, False)})

    def test_one_file(self):
        """The Helm chart and the folders of Prometheus and Grafana have the same files."""
        for here, there in ((ALERTS, "alerts.yaml"), (DASHBOARD, "dashboard.json")):
            self.assertEqual(os.path.realpath(pages.path_of(here)), os.path.realpath(
                pages.path_of("docker/helm/hyperfleet-driver/files/" + there)))


class Runbook(unittest.TestCase):
    def test_each_alert_has_its_section(self):
        """Each alert links to its section, and no section is of an alert that is gone."""
        alerts = {r["alert"]: r for g in yaml.safe_load(pages.read(ALERTS))["groups"]
                  for r in g["rules"]}
        home = re.search(r"HOMEPAGE_URL (\S+)\)", pages.read("CMakeLists.txt")).group(1)
        self.assertIn("\nhome: %s\n" % home,
                      pages.read("docker/helm/hyperfleet-driver/Chart.yaml"))
        self.assertIn('"%sdocs/runbook.html"' % home, pages.read(
            "docker/helm/hyperfleet-driver/templates/prometheusrule.yaml"))
        sections = re.findall(r"^### (HyperFleetDriver\w+)$", pages.read(RUNBOOK), re.M)
        self.assertEqual(sorted(sections), sorted(alerts))
        for name, rule in alerts.items():
            with self.subTest(name):
                self.assertEqual(rule["annotations"]["runbook_url"],
                                 "%sdocs/runbook.html#%s" % (home, name.lower()))
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                self.assertLess({"summary", "description"}, set(rule["annotations"]))

    def test_each_log_line_has_its_row(self):
        """The runbook names each line of level warn or error, and no line that is gone."""
        found, silent = log_lines()
        self.assertEqual(silent, set(ELSEWHERE),
                         "a warning whose text stands elsewhere: add it to ELSEWHERE of this test")
        for path, texts in ELSEWHERE.items():
            for text in texts:
                self.assertIn('"%s' % text, source_of(path))
                found[text] = path
        self.assertGreater(len(found), 60)
        rows = set(re.findall(r"^\| `([^`]+)` \|", pages.read(RUNBOOK), re.M))
        lines = {text.replace("%s", "...") for text in found}
        self.assertEqual(sorted(lines - rows), [],
                         "%s: add a row to a table of log lines" % RUNBOOK)
        self.assertEqual(sorted(rows - lines - INFORMS), [],
                         "%s: no source logs these lines" % RUNBOOK)


class Program(unittest.TestCase):
    def test_a_warning_is_in_the_runbook(self):
        """The warnings of a real start are in the runbook."""
        done = subprocess.run([program(), "serve", "--data", "/nonexistent/x", "--log-format",
                               "json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=clean_env(), text=True, timeout=60, check=False)
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        said = [line["msg"] for line in lines if line["level"] in ("warn", "error")]
        self.assertTrue(said, done.stderr)
        for msg in said:
            self.assertIn("| `%s` |" % msg, pages.read(RUNBOOK))


if __name__ == "__main__":
    unittest.main()
