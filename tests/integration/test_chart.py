"""The Helm chart fits the program and the manual, as far as its files show it. The test with the
real helm is tests/real/test_helm.py.
"""
import json
import re
import subprocess
import unittest

import chart
import pages
import yaml
from lib import clean_env, program

TEMPLATES = [name for name in pages.below(chart.CHART + "templates", "") if "/." not in name]


def leaves(at, path=()):
    """[path] of every value that is no map with keys of its own."""
    if not isinstance(at, dict) or not at or path in chart.comments():
        return [path]
    return [leaf for key, value in at.items() for leaf in leaves(value, path + (key,))]


class Chart(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.schema = json.loads(pages.read(chart.CHART + "values.schema.json"))

    def schema_of(self, path):
        at = self.schema
        for key in path:
            self.assertFalse(at["additionalProperties"], path)
            at = at["properties"][key]
        return at

    def test_each_value_is_described(self):
        """Each value has its comment, from which the README's table is made, and its schema."""
        described = chart.comments()
        for path in leaves(chart.values()):
            with self.subTest(path):
                self.assertIn(path, described)
                self.assertTrue(self.schema_of(path))

    def test_the_schema_has_no_other_values(self):
        """Helm gives every chart the value `global`; else the schema has the values of the file."""
        def keys(at, path=()):
            for key, inner in at.get("properties", {}).items():
                yield path + (key,)
                yield from keys(inner, path + (key,))
        for path in keys(self.schema):
            if path != ("global",):
                with self.subTest(path):
                    chart.value_of(path)

    def test_each_value_is_used(self):
        """A template reads each value."""
        text = "".join(pages.read(name) for name in TEMPLATES)
        for path in leaves(chart.values()):
            with self.subTest(path):
                self.assertRegex(text, r"\.%s\b" % path[-1])

    def test_variables_are_settings(self):
        """Each variable that the chart sets is one of the program."""
        rows = subprocess.run([program(), "config", "docs"], stdout=subprocess.PIPE, text=True,
                              check=True, env=clean_env()).stdout
        known = {"HFD_" + key.upper().replace(".", "_")
                 for key in re.findall(r"^\| `([\w.]+)`", rows, re.M)} | {"HFD_CONFIG"}
        used = set(re.findall(r'"(HFD_\w+)"', pages.read(chart.CHART + "templates/_helpers.tpl")))
        self.assertGreater(len(used), 15)
        self.assertLessEqual(used, known)

    def test_rights_are_those_of_the_manual(self):
        """The ClusterRole of the chart is that of handlers/docs/hypershift.md."""
        role = re.search(r"^```text\n(apiVersion: rbac.*?)^```$",
                         pages.read("handlers/docs/hypershift.md"), re.M | re.S)[1]
        rules = yaml.safe_load(pages.read(chart.CHART + "files/hypershift-rules.yaml"))
        self.assertEqual(rules, yaml.safe_load(role)["rules"],
                         "files/hypershift-rules.yaml of the chart and the manual differ")

    def test_versions(self):
        """The chart installs the version of this repository."""
        version = re.search(r"project\(hyperfleet-driver VERSION ([\d.]+)",
                            pages.read("CMakeLists.txt"))[1]
        self.assertEqual(yaml.safe_load(pages.read(chart.CHART + "Chart.yaml"))["appVersion"],
                         version)


if __name__ == "__main__":
    unittest.main()
