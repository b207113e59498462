"""The pages of the repository, by path from its root, and their generated blocks.

A block stands between <!-- NAME:begin --> and <!-- NAME:end -->.
"""
import os
import re

from lib import ROOT

SOURCE = os.environ.get("HFD_SOURCE_DIR") or ROOT
RENEW = "a generated text is out of date: run ./dev docs"


def path_of(name):
    return os.path.join(SOURCE, name)


def read(name):
    with open(path_of(name), encoding="utf-8") as f:
        return f.read()


def write(name, text):
    with open(path_of(name), "w", encoding="utf-8") as f:
        f.write(text)


def below(top, ending):
    """The files below a folder whose name ends so."""
    return sorted(os.path.relpath(os.path.join(folder, name), SOURCE)
                  for folder, _, names in os.walk(path_of(top))
                  for name in names if name.endswith(ending))


def markdown():
    """Every page of the repository."""
    found = sorted(name for name in os.listdir(SOURCE) if name.endswith(".md"))
    for top in ("docker", "driver", "handlers", "schemas", "store", "tests"):
        found += below(top, ".md")
    return found


def prose(text):
    """A page without its code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def _marks(text, name):
    begin, end = "<!-- %s:begin -->\n" % name, "<!-- %s:end -->" % name
    if text.count(begin) != 1 or text.count(end) != 1:
        raise AssertionError("the page needs %r and %r once each" % (begin, end))
    return text.index(begin) + len(begin), text.index(end)


def block(text, name):
    """The generated text of that name."""
    begin, end = _marks(text, name)
    return text[begin:end]


def put(text, name, new):
    """The page with another generated text of that name."""
    begin, end = _marks(text, name)
    return text[:begin] + new + text[end:]
