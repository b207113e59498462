"""The part of TSL that clients of HyperFleet use, in both versions: v0 (G2, G3) and v6 (G3.1).
Source: HyperFleet API, search.

compile_search(text, version, columns) gives a function of a row (a HyperFleet document), or raises
Refused.
"""
import datetime
import re


class Refused(Exception):
    """A search that is answered 400, or 500 where the version does so."""

    def __init__(self, detail, status=400):
        super().__init__(detail)
        self.status = status


class Moment(str):
    """A v6 literal that looks like a date: no text equals it."""


TOKENS = {
    0: re.compile(
        r"\s*(?:('(?:[^']|'')*')|([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
        r"|([-+]?[0-9]+)|(<=|>=|!=|<>|[()=<>,]))"),
    6: re.compile(
        r"\s*(?:('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
        r"|([A-Za-z_][A-Za-z0-9_/-]*(?:\.[A-Za-z_][A-Za-z0-9_/-]*)*)|([-+]?[0-9]+)|"
                  r"(<=|>=|!=|<>|[][()=<>,]))"),
}
WORDS = {"and", "or", "not", "in", "like", "ilike", "is", "between", "null"}
DATE = re.compile(r"^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d.*)?$")
TIMES = ("last_updated_time", "last_transition_time")


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Parser:
    def __init__(self, text, version, columns, conditions_apart):
        self.text, self.version, self.columns, self.apart = text, version, columns, conditions_apart
        self.tokens, self.at, self.pulled, self.inside_not = [], 0, [], 0
        pos = 0
        while text[pos:].strip():
            m = TOKENS[version].match(text, pos)
            if not m:
                self.fail()
            pos = m.end()
            string, word, number, op = m.groups()
            if string is not None:
                self.tokens.append(("str", self.unquote(string)))
            elif word is not None:
                low = word.lower()
                self.tokens.append((low, low) if low in WORDS else ("name", word))
            elif number is not None:
                self.tokens.append(("num", int(number)))
            else:
                self.tokens.append((op, op))

    def fail(self):
        raise Refused("Failed to parse search query: %s" % self.text)

    def unquote(self, s):
        if self.version == 0:
            return s[1:-1].replace("''", "'")
        value = re.sub(r"\\(.)", r"\1", s[1:-1])
        return Moment(value) if DATE.match(value) else value

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def take(self, *kinds):
        if self.peek() not in kinds:
            self.fail()
        self.at += 1
        return self.tokens[self.at - 1][1]

    def parse(self):
        test = self.any_of()
        if self.peek() is not None:
            self.fail()
        if self.pulled:
            rest = self.pulled
            return lambda row: all(t(row) for t in rest) and test(row) is True
        return lambda row: test(row) is True

    def any_of(self):
        tests = [self.all_of()]
        while self.peek() == "or":
            self.at += 1
            tests.append(self.all_of())
        if len(tests) == 1:
            return tests[0]

        def either(row):
            found = [t(row) for t in tests]
            return True if True in found else (None if None in found else False)
        return either

    def all_of(self):
        tests = [self.one()]
        while self.peek() == "and":
            self.at += 1
            tests.append(self.one())
        if len(tests) == 1:
            return tests[0]

        def both(row):
            found = [t(row) for t in tests]
            return False if False in found else (None if None in found else True)
        return both

    def one(self):
        if self.peek() == "not":
            self.at += 1
            self.inside_not += 1
            inner = self.one()
            self.inside_not -= 1
            return lambda row: {True: False, False: True, None: None}[inner(row)]
        if self.peek() == "(":
            self.at += 1
            inner = self.any_of()
            self.take(")")
            return inner
        return self.comparison()

    def comparison(self):
        name = self.take("name")
        op = self.take("=", "!=", "<>", "<", "<=", ">", ">=", "in", "like")
        op = "!=" if op == "<>" else op
        if op == "in":
            brackets = "()" if self.version == 0 else "[]"
            self.take(brackets[0])
            value = [self.take("str", "num")]
            while self.peek() == ",":
                self.at += 1
                value.append(self.take("str", "num"))
            self.take(brackets[1])
        else:
            value = self.take("str", "num")
        if name.startswith("status.conditions."):
            return self.condition(name.split(".")[2:], op, value)
        return self.column(name, op, value)

    def condition(self, path, op, value):
        if self.inside_not:
            raise Refused(
                "NOT operator is not supported with condition queries; use the inverse condition "
                "instead (e.g., Ready='False')")
        if not re.match(r"^[A-Z][a-zA-Z0-9]*$", path[0]):
            raise Refused(
                "condition type '%s' is invalid: must be PascalCase (e.g., Ready, Available)"
                % path[0])

        def found(row):
            return next((c for c in row["status"]["conditions"] if c["type"] == path[0]), None)

        if len(path) == 1:
            if value not in ("True", "False", "Unknown"):
                raise Refused("condition status '%s' is invalid: must be True, False, or Unknown"
                              % value)
            if op != "=":
                raise Refused(
                    "only equality operator (=) is supported for condition status queries")
            test = lambda row: found(row) is not None and found(row)["status"] == value
        elif path[1] == "observed_generation" and isinstance(value, int):
            test = lambda row: found(row) is not None and compare(
                found(row)["observed_generation"], op, value)
        elif path[1] in TIMES and isinstance(value, str):
            test = lambda row: found(row) is not None and compare(
                instant(found(row)[path[1]]), op, instant(value))
        else:
            raise Refused(
                "condition subfield '%s' is not supported; use last_updated_time, "
                "last_transition_time, or observed_generation"
                          % path[1])
        if not self.apart:
            return test
        # The seed's walker pulls every condition out of the tree and ANDs it: an OR with one does
        # not do what it says.
        self.pulled.append(test)
        return lambda row: True

    def column(self, name, op, value):
        if name.startswith("labels."):
            key = name[len("labels."):]
            if self.version == 0 and not re.match(r"^[a-z0-9_]+$", key):
                raise Refused(
                    "label key '%s' is invalid: must contain only lowercase letters, digits, and "
                    "underscores" % key)
            get = lambda row: row["labels"].get(key)
        elif name in self.columns:
            get = lambda row: row.get(name) if name != "owner_id" else row["owner_references"]["id"]
        else:
            raise Refused("%s is not a valid field name" % name,
                          500 if self.version == 0 and "." not in name else 400)
        if op == "in":
            return lambda row: (
                None if get(row) is None else any(compare(get(row), "=", v) for v in value))
        return lambda row: None if get(row) is None else compare(get(row), op, value)


def compare(left, op, right):
    if op == "like":
        return re.fullmatch("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in right),
                            left, re.S) is not None
    if isinstance(right, Moment):
        return False if op != "!=" else True
    if isinstance(left, int) != isinstance(right, int):
        raise Refused("a value of another type")
    return {"=": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
            ">": left > right, ">=": left >= right}[op]


def compile_search(text, version, columns, conditions_apart=False):
    text = text.strip()
    if not text:
        return lambda row: True
    if len(text.encode()) > 4096:
        raise Refused("search query exceeds maximum length of 4096 characters")
    return Parser(text, version, columns, conditions_apart).parse()
