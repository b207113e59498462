"""The prose of the tree, as sentences: comments of C, Python, shell and CMake, and Markdown.

Standard library only. Line numbers are those of the file.
"""

import ast
import io
import os
import re
import tokenize

_C_COMMENT = re.compile(r"""(?P<comment>/\*.*?\*/)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
_FENCE = re.compile(r"/\* clang-format off \*/.*?/\* clang-format on \*/", re.S)
_NEW_PARAGRAPH = re.compile(r"\s*(@\w+|[-*+] |\d+[.)] |#+ )")
_DRAWN = re.compile(r"\S {3,}\S|[|+]--|--[|+>]|<--|^\s*\|")
_ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`*_]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No|St)\.$")


class Sentence:
    def __init__(self, line, text):
        self.line = line
        self.text = text

    def words(self):
        return len(re.findall(r"[^\s]*[A-Za-z0-9][^\s]*", self.text))


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def _c_blocks(text):
    """(first line, lines) of each comment that is no table."""
    text = _FENCE.sub(_blank, text)
    for match in _C_COMMENT.finditer(text):
        if match.group("comment") is None:
            continue
        body = match.group("comment")[2:-2].lstrip("*!<")
        lines = [re.sub(r"^\s*\*(?!\w)", "", line) for line in body.split("\n")]
        if not lines[0].strip().startswith("clang-format"):
            yield text.count("\n", 0, match.start()) + 1, lines


def _joined(comments):
    """Joins (line, column, text) of neighbours that begin in one column."""
    block, last = [], None
    for line, column, text in comments:
        if last is not None and (line, column) == (last[0] + 1, last[1]):
            block.append(text)
        else:
            if block:
                yield start, block
            start, block = line, [text]
        last = (line, column)
    if block:
        yield start, block


def _python_blocks(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [(t.start[0], t.start[1], t.string.lstrip("#!")) for t in tokens
             if t.type == tokenize.COMMENT and not t.string.startswith("#!")]
    yield from _joined(found)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                yield first.lineno, first.value.value.split("\n")


def _hash_blocks(text):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"""((?:[^"'#]|"[^"]*"|'[^']*')*?)(?:^|(?<=\s))#(?!!)(.*)$""", line)
        if match:
            found.append((number, len(match.group(1)), match.group(2)))
    yield from _joined(found)


def _markdown_blocks(text):
    """Paragraphs without code, tables, headings and addresses."""
    lines, code = [], False
    for line in text.split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            code = not code
            line = ""
        elif code or re.match(r"\s*(\||#|<!--)| {4,}(?![-*\d])", line):
            line = ""
        lines.append(re.sub(r"\]\([^)]*\)", "]", line))
    yield 1, lines


def blocks(path, text):
    """(first line, lines) of each comment or page."""
    name = os.path.basename(path)
    if path.endswith((".c", ".h")):
        return _c_blocks(text)
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        return _python_blocks(text)
    if path.endswith(".md"):
        return _markdown_blocks(text)
    if path.endswith((".sh", ".cmake")) or name in ("CMakeLists.txt", "dev", "run"):
        return _hash_blocks(text)
    return ()


def _paragraphs(first, lines):
    """Lists of (line, text); blank lines, list items, tags and drawings part them."""
    paragraph = []
    for number, line in enumerate(lines, first):
        drawn = _DRAWN.search(line.strip()) is not None
        if paragraph and (drawn or not line.strip() or _NEW_PARAGRAPH.match(line)):
            yield paragraph
            paragraph = []
        if line.strip() and not drawn:
            paragraph.append((number, _NEW_PARAGRAPH.sub("", line, count=1).strip()))
    if paragraph:
        yield paragraph


def _split(paragraph):
    text = " ".join(piece for _, piece in paragraph)
    starts, at = [], 0
    for line, piece in paragraph:
        starts.append((at, line))
        at += len(piece) + 1
    begin = 0
    for end in [m.start() for m in _ENDS.finditer(text)] + [len(text)]:
        piece = text[begin:end]
        if end < len(text) and _ABBREVIATION.search(piece):
            continue
        line = max(line for at, line in starts if at <= begin)
        if piece.strip():
            yield Sentence(line, piece.strip())
        begin = end + len(text[end:]) - len(text[end:].lstrip("\"')] "))


def split(line, text):
    """The sentences of a text that stands on one line."""
    yield from _split([(line, text)])


def sentences(path, text):
    """Every sentence of a file's prose, in the order of its comments."""
    for first, lines in blocks(path, text):
        for paragraph in _paragraphs(first, lines):
            yield from _split(paragraph)
