"""The pages of the manual, and their generated blocks: between <!-- NAME:begin --> and <!-- NAME:end -->."""
import os

from lib import ROOT

SOURCE = os.environ.get("HFD_SOURCE_DIR") or ROOT
MANUAL = os.path.join(SOURCE, "handlers", "docs")
RENEW = "a generated text is out of date: run ./dev docs"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


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

