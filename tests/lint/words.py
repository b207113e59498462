"""Plain English, as far as a machine can see it. A rule takes a tree and yields (path, line,
message).
"""

import re

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
    r"\b([Hh]e|[Hh]im|[Hh]is|[Ss]he|[Ss]omebody|[Nn]obody|[Ee]verybody|[Aa]nybody|[Ww]hoever"
    r"|[Ww]hom?)\b"
)


def _sentences(tree):
    for path in tree.files(*PROSE_FILES):
        for sentence in prose.sentences(path, tree.read(path)):
            yield path, sentence


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
