"""The generated texts of the manual are what the program's tables say; copies are equal to their source; links lead somewhere.

With --write, the generated texts are made again (./dev docs).
"""
import os
import re
import subprocess
import sys
import unittest

import pages
from lib import CELLS, STATES, clean_env, program

# What test_driver_tables.py plays against the program, and the row of the page.
ROWS = {"GET": "GET", "PUT same": "PUT, same input", "PUT different": "PUT, other "
                                                                      "input", "DELETE": "DELETE"}
# Page, name of the block, table of docs_tables.
BLOCKS = [("contract.md", "decisions", "decisions"), ("contract.md", "arrows", "arrows"), ("metrics.md", "metrics", "metrics"),
          ("operate.md", "exits", "exits")]


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=clean_env()).stdout


def table_of(name):
    return output(os.environ.get("HFD_DOCS_TABLES") or os.path.join(os.path.dirname(program()), "tests/integration/docs_tables"), name)


def settings_groups():
    """{first word of the key, or "program" when it has one word: table}"""
    lines = output(program(), "config", "docs").splitlines(keepends=True)
    groups = {}
    for line in lines[2:]:
        key = re.match(r"\| `([a-z_.A-Z]+)`", line).group(1)
        groups.setdefault(key.split(".")[0] if "." in key else "program", []).append(line)
    return {name: "".join(lines[:2] + rows) for name, rows in groups.items()}


def diagram():
    """The life cycle is drawn once, in life.h; the page has a copy."""
    head = pages.read(os.path.join(pages.SOURCE, "driver/core/life.h"))
    lines = [line[3:].rstrip() for line in head[:head.index("*/")].splitlines() if line.startswith(" *   ")]
    assert len(lines) > 8, "driver/core/life.h begins with a drawing"
    return "```\n%s\n```\n" % "\n".join(lines)


def generated():
    """[(page, block, text)] of every block that is made here."""
    return [(page, block, table_of(table)) for page, block, table in BLOCKS] + \
        [("settings.md", "settings-" + group, text) for group, text in settings_groups().items()] + \
        [("contract.md", "diagram", diagram())]


def page(name):
    return pages.read(os.path.join(pages.MANUAL, name))


def anchors(text):
    """The anchors of a page's headings, as code hosts make them."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


def tree(top, ending):
    """The files below a folder whose name ends so."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(pages.SOURCE, top))
                  for name in names if name.endswith(ending))


def markdown():
    """The pages of the repository."""
    found = [os.path.join(pages.SOURCE, name) for name in os.listdir(pages.SOURCE) if name.endswith(".md")]
    return found + [path for top in ("driver", "handlers", "schemas", "store", "tests") for path in tree(top, ".md")]


class Docs(unittest.TestCase):
    maxDiff = None

    def test_blocks_are_fresh(self):
        """Each generated block is what the program's tables give today."""
        for name, block, text in generated():
            with self.subTest(page=name, block=block):
                self.assertEqual(pages.block(page(name), block), text, pages.RENEW)

    def test_every_block_is_generated(self):
        """A page has no markers that nothing fills: a group of settings that is gone, a block that was renamed."""
        known = {(name, block) for name, block, _ in generated()}
        for name in sorted(os.listdir(pages.MANUAL)):
            for block in re.findall(r"<!-- ([\w-]+):begin -->", page(name)):
                if not (name == "errors.md" and block.startswith("RES-")):
                    self.assertIn((name, block), known)

    def test_decisions_are_those_that_are_played(self):
        """Each cell of the table begins with the status that test_driver_tables.py sees from the program."""
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in pages.block(page("contract.md"), "decisions").splitlines()]
        shown = {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}
        for (state, operation), (status, _, _) in CELLS.items():
            with self.subTest(state=state, operation=operation):
                self.assertEqual(shown[ROWS[operation]][state][:3], str(status))
        self.assertEqual(set(rows[0][1:]), set(STATES))

    def test_links_lead_somewhere(self):
        """Links to files and headings of the repository are right."""
        for path in markdown():
            text = pages.read(path)
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
                if re.match(r"[a-z]+:", target):
                    continue
                with self.subTest(page=os.path.relpath(path, pages.SOURCE), link=target):
                    name, _, anchor = target.partition("#")
                    there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                    self.assertTrue(os.path.exists(there))
                    if anchor:
                        self.assertIn(anchor, anchors(pages.read(there)))

    def test_log_lines_are_the_program_s(self):
        """A log line that the page about faults quotes is in the sources."""
        sources = "".join(pages.read(path) for path in tree("driver", ".c") + tree("handlers", ".c"))
        sources = re.sub(r'"\s*\n\s*"', "", sources)  # a text on several lines
        rows = [line.split("|") for line in page("remote.md").splitlines() if line.startswith("|")]
        quoted = [text for row in rows[2:] for text in re.findall("`([^`]+)`", row[2])]
        self.assertGreaterEqual(len(quoted), 6)
        for text in quoted:
            with self.subTest(text):
                self.assertTrue(text in sources, "no source logs this; the page is handlers/docs/remote.md")

    def test_lines_are_short(self):
        """The pages that people read first have at most 100 columns, but for tables, code and addresses."""
        first = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "driver/README.md", "tests/README.md")
        short = [os.path.join(pages.MANUAL, name) for name in os.listdir(pages.MANUAL)] + [os.path.join(pages.SOURCE, n) for n in first]
        for path in short:
            text = re.sub(r"^```.*?^```$", "", pages.read(path), flags=re.M | re.S)
            for line in text.splitlines():
                if len(re.sub(r"\(https?://[^)]*\)", "", line)) > 100 and not line.startswith("|"):
                    self.fail("%s: %d columns: "
                              "%s" % (os.path.relpath(path, pages.SOURCE), len(line), line))

    def test_readme_is_short(self):
        """README.md has at most 150 lines."""
        self.assertLessEqual(len(pages.read(os.path.join(pages.SOURCE, "README.md")).splitlines()), 150)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for name, block, new in generated():
            path = os.path.join(pages.MANUAL, name)
            pages.write(path, pages.put(pages.read(path), block, new))
        sys.exit(0)
    unittest.main()
