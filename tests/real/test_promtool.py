#!/usr/bin/env python3
"""Prometheus' own tool reads our metrics, and evaluates HyperFleet's alerts and panels on them. It
tries our own alerts, too.

The alert expressions are those of the PrometheusRule in HyperFleet API's Helm chart, the panels
those of its Grafana dashboard. Both are compared with the samples of a real scrape, so a label or
name that differs from HyperFleet's makes them find nothing.
"""
import json
import os
import re
import tempfile
import unittest

import real
from lib import BASE, Client, Fleet, Server, cluster_input, eventually, guresid

STUCK = "hyperfleet_api_resource_pending_reconciliation_stuck"
RULES = """groups:
- name: hyperfleet-api-reconciliation
  rules:
  - alert: HyperFleetResourceReconciliationStuckWarning
    expr: max by (namespace, resource_type, is_delete)(%s) > 0
    for: 5m
    labels: {severity: warning}
  - alert: HyperFleetResourceReconciliationStuckCritical
    expr: max by (namespace, resource_type, is_delete)(%s_duration_seconds) > 1800
    for: 5m
    labels: {severity: critical}
""" % (STUCK, STUCK)

# Panel -> expression, with a fixed span instead of the dashboard's variable.
PANELS = (
    'sum by (code) (rate(hyperfleet_api_requests_total[5m]))',
    'hyperfleet_api_build_info',
    'histogram_quantile(0.95, sum by (le) (rate(hyperfleet_api_request_duration_seconds_bucket'
    '[5m])))',
    'sum by (resource_type, is_delete) (rate(hyperfleet_api_reconciliation_started_total[5m]))',
    'max by (resource_type, is_delete) (hyperfleet_api_resource_pending_reconciliation)',
    'max by (resource_type, is_delete) (%s)' % STUCK,
    'max by (resource_type, is_delete) (%s_duration_seconds)' % STUCK,
    'topk(10, sum by (path) (rate(hyperfleet_api_requests_total[5m])))')


def series(text, values):
    """Every sample of a scrape as a series of promtool: its value for all of 40 minutes, or what
    `values` says of a metric.
    """
    lines = []
    for line in text.splitlines():
        found = re.match(r'^((\w+)(?:\{.*\})?) (\S+)$', line)
        if not found:
            continue
        value = values.get(found.group(2), "%s+0x40")
        lines.append("  - series: '%s'\n    values: '%s'"
                     % (found.group(1), value % found.group(3) if "%s" in value else value))
    return "\n".join(lines)


class Promtool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = real.debian("promtool", "prometheus")
        cls.server = Server("--metrics-reconciliation-stuck-threshold", "1s")
        cls.addClassCleanup(cls.server.close)
        cls.server.start()
        client, cls.ops = Client(cls.server), Client(cls.server, ops=True)
        for c in (client, cls.ops):
            cls.addClassCleanup(c.close)
        gid = guresid()
        client.put("/" + gid, cluster_input(nodepools=[{"name": "workers"}]))
        fleet = Fleet(client)
        fleet.accepted(fleet.cluster_of(gid), "dsn")
        client.get(BASE + "/clusters")
        cls.text = eventually(cls.stuck, "a scrape with a stuck cluster")

    @classmethod
    def stuck(cls):
        text = cls.ops.get("/metrics").body.decode()
        found = re.search(r'^%s\{[^}]*resource_type="cluster",is_delete="false"\} 1$' % STUCK, text,
                          re.M)
        return text if found else None

    def promtool(self, *argv, status=0, **kw):
        folder = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
        self.addCleanup(real.shutil.rmtree, folder)
        done = real.subprocess.run([self.tool, *argv], cwd=folder, stdout=real.subprocess.PIPE,
                                   stderr=real.subprocess.STDOUT, timeout=60, check=False, **kw)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, status, text)
        return text

    def rules(self, tests):
        folder = tempfile.mkdtemp()
        self.addCleanup(real.shutil.rmtree, folder)
        for name, content in (("rules.yaml", RULES), ("tests.yaml", tests)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(content)
        return self.promtool("test", "rules", os.path.join(folder, "tests.yaml"))

    def test_the_exposition(self):
        """promtool check metrics finds nothing: neither in form nor in names."""
        self.assertEqual(self.promtool("check", "metrics", input=self.text.encode()), "")

    def test_alerts(self):
        """HyperFleet's two alerts fire for a cluster that is stuck, with its labels, and the
        critical one not before 30 minutes.
        """
        alert = """    - eval_time: %dm
      alertname: HyperFleetResourceReconciliationStuck%s
      exp_alerts:%s
"""
        fires = "".join("\n      - exp_labels: {severity: %s, resource_type: %s, is_delete: "
                        "\"false\"}" % ("%(severity)s", kind) for kind in ("cluster", "nodepool"))
        checks = (alert % (4, "Warning", " []"),
                  alert % (6, "Warning", fires % {"severity": "warning"}),
                  alert % (30, "Critical", " []"),
                  alert % (36, "Critical", fires % {"severity": "critical"}))
        # The time of what is stuck grows as it would; the rest stays as it was scraped.
        grows = "\n".join(
            "  - series: '%s'\n    values: '0+60x40'" % m.group(1) for m in re.finditer(
                r'^(%s_duration_seconds\{.*is_delete="false"\}) ' % STUCK, self.text, re.M))
        still = "\n".join(line for line in self.text.splitlines() if "_stuck_duration" not in line)
        self.rules("rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n"
                   "  input_series:\n%s\n%s\n  alert_rule_test:\n%s"
                   % (series(still, {}), grows, "".join(checks)))

    def test_panels(self):
        """Each panel of HyperFleet's dashboard that is not about its database finds samples."""
        counted = {"hyperfleet_api_requests_total": "0+1x40",
                   "hyperfleet_api_request_duration_seconds_bucket": "0+1x40",
                   "hyperfleet_api_reconciliation_started_total": "0+1x40"}
        checks = "".join("    - expr: 'count(%s) > 0'\n      eval_time: 30m\n      exp_samples:\n"
                         "      - value: %s\n" % (expr, "%d") for expr in PANELS)
        sizes = [len(set(re.findall(r'code="(\d+)"', "\n".join(
            line for line in self.text.splitlines()
            if line.startswith("hyperfleet_api_requests_total"))))), 1, 1, 2, 4, 4, 4,
                 len(set(re.findall(r'^hyperfleet_api_requests_total\{.*path="([^"]+)"', self.text,
                                    re.M)))]
        self.rules("rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n"
                   "  input_series:\n%s\n  promql_expr_test:\n%s"
                   % (series(self.text, counted), checks % tuple(sizes)))


class Ours(unittest.TestCase):
    """Our alerts (docker/prometheus) and dashboard (docker/grafana)."""
    PROMETHEUS = os.path.join(real.ROOT, "docker", "prometheus")

    @classmethod
    def setUpClass(cls):
        cls.tool = real.debian("promtool", "prometheus")

    def test_alerts(self):
        """Each alert fires when it must, and only then; promtool finds no fault in the file."""
        for argv in (["check", "rules", "alerts.yaml"], ["test", "rules", "tests.yaml"]):
            self.assertIn("SUCCESS", real.run([self.tool, *argv], cwd=self.PROMETHEUS))

    def test_each_condition_matters(self):
        """An alert that always fires, or never, is noticed by its cases."""
        with open(os.path.join(self.PROMETHEUS, "alerts.yaml"), encoding="utf-8") as f:
            text = f.read()
        count = len(re.findall(r"^        expr: ", text, re.M))
        self.assertGreaterEqual(count, 15)
        folder = tempfile.mkdtemp()
        self.addCleanup(real.shutil.rmtree, folder)
        real.shutil.copy(os.path.join(self.PROMETHEUS, "tests.yaml"), folder)
        expr = re.compile(r"^        expr: (?:>-\n(?: {10}.*\n)+|.*\n)", re.M)
        for wrong in ("vector(1)", "vector(1) > 1"):
            bad = expr.sub("        expr: %s\n" % wrong, text)
            with open(os.path.join(folder, "alerts.yaml"), "w", encoding="utf-8") as f:
                f.write(bad)
            done = real.subprocess.run([self.tool, "test", "rules", "tests.yaml"], cwd=folder,
                                       stdout=real.subprocess.PIPE, stderr=real.subprocess.STDOUT,
                                       timeout=60, check=False)
            self.assertEqual(done.returncode, 1)
            failed = set(re.findall(r"alertname:? ?(\w+)", done.stdout.decode()))
            self.assertEqual(len(failed), count, failed)

    def test_panels(self):
        """Prometheus understands each expression of the dashboard."""
        with open(os.path.join(real.ROOT, "docker/grafana/hyperfleet-driver.json"),
                  encoding="utf-8") as f:
            panels = json.load(f)["panels"]
        exprs = [t["expr"] for p in panels for t in p.get("targets", [])]
        self.assertGreater(len(exprs), 30)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            rules = [{"record": "panel:%d" % i, "expr": e.replace("$job", "x").replace(
                "$__rate_interval", "5m")} for i, e in enumerate(exprs)]
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            file.flush()
            self.assertIn("SUCCESS: %d rules" % len(exprs),
                          real.run([self.tool, "check", "rules", file.name]))


if __name__ == "__main__":
    real.main()
