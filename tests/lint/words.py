"""Plain English, as far as a machine can see it. A rule takes a tree and yields (path, line,
message).
"""

import re

import ctext
import prose

SENTENCE_WORDS_MAX = 25

PROSE_FILES = (".c", ".h", ".py", ".sh", ".md", ".cmake", "CMakeLists.txt", "dev", "run")

# A clause as subject is read twice. A question is none.
OPENERS = re.compile(
    r"[\"'(*_`]*(What|Of an?|Of the|Of its|Of all|So many|So much|So long|Whose|Who|Whom|Whoever"
    r"|Whatever|Whether)\b"
)
# People may be "who" if a noun says so.
PEOPLE = (
    r"(?:people|persons?|users?|operators?|readers?|developers?|maintainers?|authors?|engineers?"
    r"|administrators?|"
    r"owners?|attackers?|contributors?|newcomers?|those|anyone|one),? ")
PERSONS = re.compile(
    r"\b([Hh]e|[Hh]im|[Hh]is|[Ss]he|[Ss]omebody|[Nn]obody|[Ee]verybody|[Aa]nybody|[Ww]ho[e]ver"
    r"|[Ww]hom?)\b"
)


# Calls and tables whose literals a person reads: log lines, errors, settings and metrics. Functions
# that format as printf does are found by their declaration.
TEXT_CALLS = {"HFD_LOG", "hfd_log_write", "hfd_fail_nomem"}
FORMATTING = re.compile(r"(\w+)\)?\([^;{}]*?\)\s*__attribute__\(\(format\(printf")
TEXT_TABLES = re.compile(r"#define HFD_(?:METRIC|SETTING)_LIST\(X\)(?:[^\n\\]|\\.|\\\n)*", re.S)
PRODUCT = ("driver/", "handlers/", "schemas/", "store/")


def _texts(tree):
    """(path, sentence) of each text that the program writes."""
    sources = {path: ctext.without_comments(tree.read(path))
               for path in tree.files(".c", ".h") if path.startswith(PRODUCT)}
    calls = set(TEXT_CALLS)
    for source in sources.values():
        calls.update(FORMATTING.findall(source))
    call = re.compile(r"\b(?:" + "|".join(sorted(calls)) + r")\s*\(")
    for path, source in sources.items():
        spans = [ctext.arguments(source, match.end()) for match in call.finditer(source)]
        spans += [match.span() for match in TEXT_TABLES.finditer(source)]
        for begin, end in spans:
            for at, text in ctext.literals(source, begin, end):
                # Errors begin in lower case. Pieces of a sentence are shorter.
                if text.count(" ") > 3:
                    text = text[:1].upper() + text[1:]
                for sentence in prose.split(source.count("\n", 0, at) + 1, text):
                    yield path, sentence


def _sentences(tree):
    for path in tree.files(*PROSE_FILES):
        for sentence in prose.sentences(path, tree.read(path)):
            yield path, sentence
    yield from _texts(tree)


def _without_quotes(text):
    return re.sub(r"`[^`]*`|\"[^\"]*\"", "", text)


def openers(tree):
    """No sentence begins with a clause as its subject."""
    for path, sentence in _sentences(tree):
        match = OPENERS.match(sentence.text)
        if match and not sentence.text.rstrip("\"')*_").endswith("?"):
            yield path, sentence.line, f"begins with \"{match.group(1)}\": {sentence.text[:60]}"


def persons(tree):
    """Programs and threads are it."""
    for path, sentence in _sentences(tree):
        text = re.sub(PEOPLE + r"who\b", "", _without_quotes(sentence.text))
        match = PERSONS.search(text)
        if match:
            yield path, sentence.line, (f"\"{match.group(0)}\": a program is \"it\": "
                                        f"{sentence.text[:60]}")


def sentences(tree):
    """Sentences are short."""
    for path, sentence in _sentences(tree):
        words = sentence.words()
        if words > SENTENCE_WORDS_MAX:
            yield path, sentence.line, (f"{words} words; {SENTENCE_WORDS_MAX} is the limit: "
                                        f"{sentence.text[:60]}")


RULES = {"openers": openers, "persons": persons, "sentences": sentences}
