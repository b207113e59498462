"""The generated texts of the pages are what the program's tables say; links lead somewhere.

With --write, the generated texts are made again (./dev docs).
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import chart
import pages
from lib import CELLS, STATES, clean_env, program

sys.path[:0] = [os.path.join(pages.SOURCE, "tests", name) for name in ("lint", "contract")]
import check  # noqa: E402
import rules  # noqa: E402

# The operations of CELLS, which test_driver_tables.py plays, and the rows of the page.
ROWS = {"GET": "GET", "PUT same": "PUT, same input", "PUT different": "PUT, other input",
        "DELETE": "DELETE"}
ACCESS, CHECK, CONTRACT, METRICS, OPERATE, PACEMAKER, REMOTE, SETTINGS = (
    "handlers/docs/%s.md" % name for name in (
        "access", "check", "contract", "metrics", "operate", "pacemaker", "remote", "settings"))
# Page, name of the block, table of docs_tables.
BLOCKS = [(CONTRACT, "decisions", "decisions"), (CONTRACT, "arrows", "arrows"),
          (METRICS, "metrics", "metrics"), (OPERATE, "exits", "exits"),
          (PACEMAKER, "rules", "pacemaker-rules"), (ACCESS, "scopes", "scopes"),
          (ACCESS, "routes", "routes"),
          (SETTINGS, "setting-files", "files")]
# Blocks of test_failures.py.
ELSEWHERE = re.compile(r"RES-1\d\d")
README_LINES_MAX = 150
COLUMNS_MAX = 100


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=clean_env())
    return done.stdout


def table_of(name):
    beside = os.path.join(os.path.dirname(program()), "tests/integration/docs_tables")
    return output(os.environ.get("HFD_DOCS_TABLES") or beside, name)


def settings_groups():
    """{"usual": table, and of the others: first word of the key, or "program" when it has one
    word: table}
    """
    usual, _, others = output(program(), "config", "docs").partition("\n## Advanced\n")
    lines = others[others.index("| "):].splitlines(keepends=True)
    groups = {}
    for line in lines[2:]:
        key = re.match(r"\| `([a-z_.A-Z]+)`", line).group(1)
        groups.setdefault(key.split(".")[0] if "." in key else "program", []).append(line)
    return {"usual": usual, **{name: "".join(lines[:2] + rows) for name, rows in groups.items()}}


def diagram():
    """The drawing of the life cycle in life.h; the page has a copy."""
    head = pages.read("driver/core/life.h")
    lines = [line[3:].rstrip() for line in head[:head.index("*/")].splitlines()
             if line.startswith(" *   ")]
    assert len(lines) > 8, "driver/core/life.h begins with a drawing"
    return "```\n%s\n```\n" % "\n".join(lines)


def layers():
    """The include table of the lint, of the folders that exist."""
    rows = ["| `%s` | %s |\n" % (folder, ", ".join(
        "`%s`" % name for name in below if os.path.isdir(pages.path_of(name))) or "nothing of ours")
            for folder, below in rules.LAYERS if os.path.isdir(pages.path_of(folder))]
    return "| folder | may include |\n|---|---|\n" + "".join(rows)


def check_rules():
    """The rules of tests/contract/check.py."""
    return "| rule | level | text | source |\n|---|---|---|---|\n" + "".join(
        "| %s | %s | %s | %s |\n" % rule for rule in check.RULES)


def generated():
    """[(page, block, text)] of every block that is made here."""
    return [(page, block, table_of(table)) for page, block, table in BLOCKS] + \
        [(SETTINGS, "settings-" + group, text) for group, text in settings_groups().items()] + \
        [(CONTRACT, "diagram", diagram()), (CHECK, "check-rules", check_rules()),
         ("driver/README.md", "layers", layers()), (chart.README, "values", chart.table())]


def anchors(text):
    """The anchors of a page's headings, as code hosts make them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", pages.prose(text), re.M)}


class Docs(unittest.TestCase):
    maxDiff = None

    def test_blocks_are_fresh(self):
        """Each generated block is what the program's tables give today."""
        for name, block, text in generated():
            with self.subTest(page=name, block=block):
                self.assertEqual(pages.block(pages.read(name), block), text, pages.RENEW)

    def test_every_block_is_generated(self):
        """A page has no markers that nothing fills: a group of settings that is gone, for one."""
        known = {(name, block) for name, block, _ in generated()}
        for name in pages.markdown():
            for block in re.findall(r"^<!-- ([\w-]+):begin -->$", pages.read(name), re.M):
                if not ELSEWHERE.fullmatch(block):
                    self.assertIn((name, block), known)

    def test_decisions_are_those_that_are_played(self):
        """Each cell begins with the status that test_driver_tables.py sees from the program."""
        text = pages.block(pages.read(CONTRACT), "decisions")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
        shown = {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}
        for (state, operation), (status, _, _) in CELLS.items():
            with self.subTest(state=state, operation=operation):
                self.assertEqual(shown[ROWS[operation]][state][:3], str(status))
        self.assertEqual(set(rows[0][1:]), set(STATES))

    def test_links_lead_somewhere(self):
        """Links to files and headings of the repository are right."""
        for name in pages.markdown():
            for target in re.findall(r"\]\(([^)\s]+)\)", pages.prose(pages.read(name))):
                if re.match(r"[a-z]+:", target):
                    continue
                with self.subTest(page=name, link=target):
                    to, _, anchor = target.partition("#")
                    there = os.path.join(os.path.dirname(name), to) if to else name
                    self.assertTrue(os.path.exists(pages.path_of(there)))
                    if anchor:
                        self.assertIn(anchor, anchors(pages.read(there)))

    def test_log_lines_are_in_the_sources(self):
        """The log lines that the manual quotes are logged."""
        sources = "".join(pages.read(path) for path in pages.below("driver", ".c") +
                          pages.below("handlers", ".c"))
        sources = re.sub(r'"\s*\n\s*"', "", sources)  # a text on several lines
        rows = [line.split("|") for line in pages.read(REMOTE).splitlines() if line.startswith("|")]
        quoted = [text for row in rows[2:] for text in re.findall("`([^`]+)`", row[2])]
        quoted += re.findall("`(resource [a-z]+)`", " ".join(pages.read(OPERATE).split()))
        self.assertGreaterEqual(len(quoted), 11)
        for text in quoted:
            with self.subTest(text):
                self.assertTrue(text in sources, "no source logs what the manual quotes")

    def test_settings_examples_are_good(self):
        """Each YAML example of the manual is a file of settings that the program takes."""
        found = [text for name in pages.below("handlers/docs", ".md")
                 for text in re.findall(r"^```yaml\n(.*?)^```$", pages.read(name), re.M | re.S)]
        self.assertGreaterEqual(len(found), 1)
        for text in found:
            with self.subTest(text), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, \
                    tempfile.NamedTemporaryFile("w") as secret:
                secret.write("whsec_" + 32 * "A")
                secret.flush()
                file.write(re.sub(r"(secret_file: ).*", r"\1" + secret.name, text))
                file.flush()
                self.assertEqual(output(program(), "config", "check", "--config", file.name),
                                 "ok\n")

    def test_ops_paths_are_listed(self):
        """The page about operation has every path of the ops listener."""
        table = pages.read("handlers/http/routes.c")
        paths = re.findall(r'^    OPS\(\w+, +GET, +"(/[^"{]*)"', table, re.M)
        self.assertGreaterEqual(len(paths), 8)
        text = pages.read(OPERATE)
        for path in paths:
            with self.subTest(path):
                self.assertRegex(text, r"`%s/?`" % re.escape(path))

    def test_lines_are_short(self):
        """The pages have short lines, but for tables, code and addresses."""
        first = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "driver/README.md",
                 "tests/README.md"]
        for name in first + pages.below("handlers/docs", ".md"):
            for line in pages.prose(pages.read(name)).splitlines():
                measured = len(re.sub(r"\(https?://[^)]*\)", "", line))
                if measured > COLUMNS_MAX and not line.startswith("|"):
                    self.fail("%s: %d columns: %s" % (name, measured, line))

    def test_readme_is_short(self):
        self.assertLessEqual(len(pages.read("README.md").splitlines()), README_LINES_MAX)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for page, wanted, new in generated():
            pages.write(page, pages.put(pages.read(page), wanted, new))
        sys.exit(0)
    unittest.main()
