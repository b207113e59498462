"""Sizes, places and references. A rule takes a tree and yields (path, line, message)."""

import collections
import fnmatch
import os
import re

import ctext
import prose
import words

PARAMETERS_MAX = 6
FOLDER_FILES_MAX = 12
FILE_LINES_MAX = 1000
COLUMNS_MAX = 100

PRODUCT = ("driver", "store", "schemas", "handlers")


def _is_product(path):
    return path.split("/")[0] in PRODUCT


# ---- parameters -----------------------------------------------------------------------------

# Functions whose parameters are laid down by a library: a name pattern, and the library.
FOREIGN = (
    (r"__wrap_\w+", "libc"),
    (r"on_openssl_\w+", "OpenSSL"),
)


def parameters(tree):
    """A function has six parameters at most; more are a struct."""
    for path in tree.files(".c", ".h"):
        for function in ctext.functions(tree.read(path)):
            if any(re.fullmatch(pattern, function.name) for pattern, _ in FOREIGN):
                continue
            if function.parameters > PARAMETERS_MAX:
                yield path, function.line, (
                    f"{function.name} has {function.parameters} parameters; "
                    f"{PARAMETERS_MAX} is the limit")


# ---- files ----------------------------------------------------------------------------------

# Sources without a header of their own name, and the reason.
NO_HEADER = (
    ("handlers/cli/main.c", "holds main alone"),
    ("handlers/cli/cmd_*.c", "one or two commands, declared together in handlers/cli/cli.h"),
    ("handlers/settings/settings_*.c", "one module, declared together in settings_int.h"),
    ("handlers/http/dispatch.c", "its one function is in exchange_int.h"),
    ("driver/adapters/hypershift/steps.c", "the steps of work.h"),
)


def folders(tree):
    """A folder of more than a dozen files says in a README.md what it is for."""
    count = collections.Counter(os.path.dirname(path) for path in tree.paths)
    for folder, files in sorted(count.items()):
        readme = os.path.join(folder, "README.md")
        if files > FOLDER_FILES_MAX and not tree.exists(readme):
            yield readme, 1, f"is missing: {folder or 'the root'} holds {files} files"


def sizes(tree):
    """A product file has a length that one can read."""
    for path in tree.files(".c", ".h"):
        lines = tree.read(path).count("\n")
        if _is_product(path) and lines > FILE_LINES_MAX:
            yield path, 1, f"{lines} lines; {FILE_LINES_MAX} is the limit"


def headers(tree):
    """Each product source has its header."""
    for path in tree.files(".c"):
        if not _is_product(path) or any(fnmatch.fnmatch(path, known) for known, _ in NO_HEADER):
            continue
        if not tree.exists(path[:-2] + ".h") and not tree.exists(path[:-2] + "_int.h"):
            yield path, 1, f"has no header {path[:-2]}.h"


# ---- users ----------------------------------------------------------------------------------

PROTOTYPE = re.compile(r"^(?!typedef\b|static\b)[A-Za-z_][\w *]*?\b(hfd_\w+)\([^;{}]*;", re.M)
NAME = re.compile(r"\bhfd_\w+")


def users(tree):
    """A function that a header declares has a user beside the source that defines it."""
    where, defined = collections.defaultdict(set), collections.defaultdict(set)
    for path in tree.files(".c", ".h", ".py", ".cmake", ".in"):
        text = tree.read(path)
        for name in set(NAME.findall(ctext.without_comments(text) if path[-2:] in (".c", ".h")
                                     else text)):
            where[name].add(path)
        for function in ctext.functions(text) if path.endswith(".c") else ():
            defined[function.name].add(path)
    for path in filter(_is_product, tree.files(".h")):
        text = tree.read(path)
        for found in PROTOTYPE.finditer(ctext.code(text)):
            name = found.group(1)
            in_macro = len(re.findall(rf"\b{name}\b", ctext.without_comments(text))) > 1
            if not in_macro and not where[name] - defined[name] - {path}:
                yield path, text.count("\n", 0, found.start(1)) + 1, (
                    f"{name} has no user: make it static, or remove it")


# ---- columns --------------------------------------------------------------------------------

CODE_FILES = (".py", ".sh", ".cmake", ".sql", "CMakeLists.txt", "CMakePresets.json", "dev", "run")


def _prose_lines(text):
    """(number, line) of Markdown that is no table, no link alone and no code."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            code = not code
        elif not code and not re.match(r"\s*\|| {4,}(?![-*\d])|\s*\[[^\]]*\]:", line):
            yield number, re.sub(r"\]\([^)]*\)", "]", line)


def columns(tree):
    """Lines fit beside each other on a screen. (Lines of C: clang-format and the rule "text".)"""
    for path in tree.files(".md", *CODE_FILES):
        text = tree.read(path)
        lines = _prose_lines(text) if path.endswith(".md") else enumerate(text.split("\n"), 1)
        for number, line in lines:
            if len(line) > COLUMNS_MAX:
                yield path, number, f"{len(line)} columns; {COLUMNS_MAX} is the limit"


# ---- references -----------------------------------------------------------------------------

# Documents that were never part of the repository.
ABSENT = re.compile(r"\b(DESIGN|STYLE)(\.md)?\b|\bspec/[\w./-]*\.md|\b\d{3}_[0-9a-f]{8,}(\.txt)?")
ENDINGS = r"(?:c|h|py|sh|md|txt|json|ya?ml|sql|cmake|supp|tf|html|service)"
PATH = re.compile(r"(?<![\w./~<$}%*-])((?:[\w.-]+/)*[\w.-]*[\w-]\." + ENDINGS + r")(?![\w/-]|\.\w)")
# Files of others, of a user or of a run; pages that the program serves.
FOREIGN_FILES = re.compile(
    r"order\.json|(hfd|spec|.*config|hyperfleet)\.ya?ml|compile_commands\.json|(.*/)?build/.*"
    r"|.*\.service|openapi\.html|"
    r"(.*/)?NNNN_\w+\.sql|(asm|linux|sys|netinet|arpa|curl|openssl|h2o|libh2o)/.*\.h")
# Data beside the repository is named in one place: the CMake variable HFD_SHARED.
BESIDE = re.compile(r"\.\./shared\b")
BESIDE_HOME = "CMakeLists.txt"


def _libraries(tree):
    """Headers of libraries that the tree includes."""
    found = set()
    for path in tree.files(".c", ".h"):
        found.update(re.findall(r"#\s*include\s*<([^>]+)>", tree.read(path)))
    return found


def _resolves(tree, path, name, known):
    folder = os.path.dirname(path)
    return (name in known or tree.exists(name) or FOREIGN_FILES.fullmatch(name) is not None
            or tree.exists(os.path.normpath(os.path.join(folder, name))))


def references(tree):
    """Comments and pages name only files that the repository has."""
    known = _libraries(tree) | {os.path.basename(path) for path in tree.paths}
    for path in tree.files(*words.PROSE_FILES):
        if path.startswith("tests/lint/"):
            continue
        text = tree.read(path)
        for match in BESIDE.finditer(text if path != BESIDE_HOME else ""):
            yield path, text.count("\n", 0,
                                   match.start()) + 1, "../shared is HFD_SHARED (CMakeLists.txt)"
        for first, lines in prose.blocks(path, text):
            for number, line in enumerate(lines, first):
                line = re.sub(r"\w+://\S+", "", line)
                for match in ABSENT.finditer(line):
                    yield path, number, f"{match.group(0)} is not in the repository"
                line = ABSENT.sub("", line)
                for match in PATH.finditer(line):
                    if not _resolves(tree, path, match.group(1), known):
                        yield path, number, f"{match.group(1)} is not in the repository"


# ---- promises ------------------------------------------------------------------------------------

SECURITY, PROMISES = "SECURITY.md", "tests/promises.md"
NO_PROMISES = ("Security", "Reporting")  # sections
ROW = re.compile(r"\| (.*\S) \| (.*\S) \|")
HELD_BY = re.compile(r"`([^`]+)`(?:: (\w+(?:, \w+)*))?")


def _promises(text):
    """(line, words) of each paragraph and item, but for sections without any."""
    section = ""
    for match in re.finditer(r"(?:^(?!\n).+\n?)+", text, re.M):
        line = text.count("\n", 0, match.start()) + 1
        if match.group(0).startswith("#"):
            section = match.group(0).strip("# \n")
        elif section not in NO_PROMISES:
            for item in re.split(r"^(?=\* )", match.group(0), flags=re.M):
                if item:
                    yield line, " ".join(item.split())
                line += item.count("\n")


def _absent(tree, held_by):
    """Files and cases of a row that the tree does not have."""
    for path, cases in HELD_BY.findall(held_by):
        path = "tests/" + path
        if not tree.exists(path):
            yield path
            continue
        text = tree.read(path)
        for case in filter(None, cases.split(", ")):
            if not re.search(r"\b%s\((?!\))" % case, text):
                yield f"{path}: {case}"


def promises(tree):
    """A test holds each promise of SECURITY.md."""
    if not tree.exists(SECURITY) or not tree.exists(PROMISES):
        return
    made = list(_promises(tree.read(SECURITY)))
    kept = set()
    for number, row in enumerate(tree.read(PROMISES).splitlines(), 1):
        match = ROW.fullmatch(row)
        if match is None or match.group(1) in ("words", "---"):
            continue
        words_of, held_by = match.groups()
        found = [place for place in made if words_of in place[1]]
        kept.update(found)
        if not found:
            yield PROMISES, number, f"'{words_of}' is not in {SECURITY}"
        if held_by != "advice" and not HELD_BY.fullmatch(held_by.split("; ")[0]):
            yield PROMISES, number, "names no test"
        for absent in _absent(tree, held_by):
            yield PROMISES, number, f"there is no {absent}"
    for line, text in made:
        if (line, text) not in kept:
            yield SECURITY, line, f"no row of {PROMISES} quotes '{text[:60]}'"


RULES = {"parameters": parameters, "folders": folders, "sizes": sizes, "headers": headers,
         "users": users, "columns": columns, "references": references, "promises": promises}
