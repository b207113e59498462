"""C source as plain text for the rules: comments and literals blanked out, functions found. No
parser: the house style is regular enough.
"""

import re

_PIECES = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)
_WORDS = re.compile(r"[A-Za-z_]\w*|&&|\|\||[?{}()\[\];:=,]")

KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "case", "defined",
            "_Static_assert", "__attribute__", "__typeof__", "typeof", "_Alignof"}


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    """The code with its literals; line numbers stay."""
    return _PIECES.sub(lambda m: _blank(m) if m.group("comment") else m.group(0), text)


def code(text):
    """The code alone: comments, literals and directives are blank; line numbers stay."""
    def literal(match):
        body = match.group(0)
        if match.group("comment"):
            return _blank(match)
        return body[0] + re.sub(r"[^\n]", " ", body[1:-1]) + body[0]
    return _DIRECTIVE.sub(_blank, _PIECES.sub(literal, text))


def arguments(text, begin):
    """(begin, end) of the arguments of a call; begin stands behind the parenthesis."""
    depth = 1
    for match in re.compile(_PIECES.pattern + r"|[()]", re.S).finditer(text, begin):
        depth += {"(": 1, ")": -1}.get(match.group(0), 0)
        if depth == 0:
            return begin, match.start()
    return begin, len(text)


def literals(text, begin, end):
    """(where, text) of each literal; neighbours are one."""
    literal = r'"((?:\\.|[^"\\\n])*)"'
    for match in re.finditer(rf"{literal}(?:[\s\\]*{literal})*", text[begin:end]):
        pieces = re.findall(literal, match.group(0))
        yield begin + match.start(), re.sub(r"\\n", " ", "".join(pieces)).replace('\\"', '"')


def unfenced(text):
    """Blanks what stands between clang-format off and on: tables and diagrams."""
    return re.sub(r"/\* clang-format off \*/.*?/\* clang-format on \*/", _blank, text, flags=re.S)


class Function:
    def __init__(self, name, line):
        self.name = name
        self.line = line
        self.end = line
        self.words = []
        self.parameters = 0

    def lines(self):
        return self.end - self.line + 1

    def complexity(self):
        """McCabe: 1 and one for each decision. A table written as a switch counts its other
        decisions only.
        """
        cases = self.words.count("case")
        others = sum(self.words.count(w) for w in ("if", "for", "while", "&&", "||", "?"))
        is_table = self.words.count("switch") == 1 and others <= 2
        return 1 + others + (0 if is_table else cases)


def functions(text):
    """Every function body of a file, in order."""
    found, current, name, line = [], None, None, 0
    braces = parens = commas = 0
    previous = ""
    for match in _WORDS.finditer(code(text)):
        word = match.group(0)
        here = text.count("\n", 0, match.start()) + 1
        if current is not None:
            current.words.append(word)
        if word == "(":
            if braces == 0 and parens == 0 and name is None and previous not in KEYWORDS and (
                    re.match(r"[A-Za-z_]", previous)):
                name, line, commas = previous, here, 0
            parens += 1
        elif word == "," and braces == 0 and parens == 1:
            commas += 1
        elif word == ")":
            parens -= 1
        elif word == "{":
            if braces == 0 and parens == 0 and name is not None and previous == ")":
                current = Function(name, line)
                current.parameters = commas + 1
            braces += 1
        elif word == "}":
            braces -= 1
            if braces == 0:
                if current is not None:
                    current.end = here
                    found.append(current)
                current = name = None
        elif word in (";", "=") and braces == 0 and parens == 0:
            name = None
        previous = word
    return found
