"""The rules that are ours alone. Each takes a tree (tree.files(...), tree.read(path)) and yields
(path, line, message).
"""

import os
import re

import ctext

LINE_MAX = 140  # of what shape.columns does not look at
C_LINE_MAX = 100
FUNCTION_LINES_MAX = 100
COMPLEXITY_MAX = 15

# ---- includes ------------------------------------------------------------------------------------

# A folder, and the folders that it may include. Arrows point down only. A folder sees itself; a row
# holds for what lies below the folder as well. The first row that fits counts.
BASE = ("driver/base",)
DOMAIN_LOW = BASE + ("store", "schemas")
LAYERS = (
    ("driver/base", ()),
    ("schemas", BASE),
    ("store", BASE),
    ("driver/fleet", DOMAIN_LOW),
    ("driver/health", DOMAIN_LOW + ("driver/fleet",)),
    ("driver/status", DOMAIN_LOW + ("driver/fleet",)),
    ("driver/estimate", BASE),
    ("driver/replica", BASE + ("store",)),
    ("driver/core",
     DOMAIN_LOW + ("driver/fleet", "driver/health", "driver/status", "driver/backend",
                   "driver/estimate")),
    ("driver/backend", DOMAIN_LOW + ("driver/fleet", "driver/replica")),
    ("driver/events", DOMAIN_LOW + ("driver/fleet", "driver/core", "driver/replica")),
    ("driver/kube", BASE),
    ("driver/adapters",
     DOMAIN_LOW + ("driver/fleet", "driver/health", "driver/core", "driver/backend",
                   "driver/kube", "driver/replica")),
    ("handlers/settings", BASE),
    ("handlers/auth", BASE + ("store", "driver/core")),
    ("handlers/http", DOMAIN_LOW + ("driver", "handlers/settings", "handlers/auth")),
    ("handlers/web", DOMAIN_LOW + ("driver", "handlers/http", "handlers/settings")),
    ("handlers/client", BASE),
    ("handlers/register", BASE),
    ("handlers/cli",
     DOMAIN_LOW + ("driver", "handlers/http", "handlers/web", "handlers/settings", "handlers/auth",
                   "handlers/client", "handlers/register")),
    ("tests", ("driver", "store", "schemas", "handlers", "tests")),
)

# Folders that see one header of another folder, the seam, and nothing else of it.
SEAMS = (("driver/core", "driver/backend", "driver/backend/backend.h"),)

# Which folders see which library: a pattern of headers, and where they may be included. Tests see
# what the code they test sees.
SOCKETS = r"sys/socket\.h|sys/un\.h|netinet/.*|linux/tcp\.h|netdb\.h"
LIBRARIES = (
    (r"jansson\.h", ("",)),
    (r"sodium\.h", ("driver/base", "driver/core", "driver/events", "handlers", "tests")),
    (r"yaml\.h", ("driver/base", "handlers/settings", "tests")),
    (r"sqlite3\.h", ("store/sqlite", "tests")),
    (r"xxhash\.h", ("store",)),
    (r"libpq-fe\.h", ("store/postgres", "tests")),
    (r"h2o\.h|h2o/.*", ("handlers/http",)),
    (r"openssl/.*", ("handlers/http", "handlers/auth", "driver/backend", "tests")),
    (r"curl/curl\.h", ("driver/base", "driver/events", "tests")),
    (r"amqp.*\.h", ("driver/events",)),
    (r"uthash\.h|utlist\.h", ("",)),
    (r"pcre2\.h", ("schemas",)),
    (r"cmocka\.h|sys/ptrace\.h", ("tests",)),
    (r"arpa/inet\.h", ("handlers", "driver/base", "driver/health", "tests")),
    (SOCKETS, ("handlers", "driver/backend", "store/postgres", "tests")),
    (r"(assert|ctype|dirent|dlfcn|endian|errno|fcntl|float|ftw|inttypes|limits|locale|malloc|math|"
     r"poll|pthread|sched|semaphore|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|"
     r"stdio|stdlib|stdnoreturn|string|strings|termios|time|unistd|getopt|wctype)\.h", ("",)),
    (r"sys/(epoll|eventfd|file|ioctl|mman|prctl|random|resource|sendfile|signalfd|stat|statfs|"
     r"statvfs|syscall|sysinfo|time|timerfd|types|uio|utsname|vfs|wait)\.h|"
     r"linux/(magic|limits|fs)\.h", ("",)),
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def _under(path, folder):
    return folder == "" or path == folder or path.startswith(folder + "/")


def _layer_of(path):
    for folder, below in LAYERS:
        if _under(path, folder):
            return folder, below
    return None, ()


def _check_own(path, name, tree):
    folder, below = _layer_of(path)
    here = os.path.dirname(path)
    if folder is None:
        return "this folder has no row in the include table (tests/lint/rules.py)"
    if os.path.basename(name).endswith(".c"):
        return f'includes the source "{name}": reach internals through noun_int.h'
    if "/" not in name:
        return f'"{name}" does not show its layer: include from the root of the repository'
    if name.endswith("_int.h") and os.path.dirname(name) != here and folder != "tests":
        return f'"{name}" is internal to {os.path.dirname(name)}'
    target, _ = _layer_of(name)
    for inside, other, seam in SEAMS:
        if folder == inside and target == other and name != seam:
            return f'{inside} sees {seam} alone of {other}: "{name}" is behind it'
    if target is None:
        return None if name.startswith("gen/") else f'"{name}" is in no folder of ours'
    if target == folder or any(_under(name, allowed) for allowed in below):
        return None if tree.exists(name) else f'"{name}" does not exist'
    return f'{folder} does not see {target}: "{name}" points up or sideways'


def _check_library(path, name):
    for pattern, folders in LIBRARIES:
        if re.fullmatch(pattern, name):
            if any(_under(path, folder) for folder in folders):
                return None
            return f"<{name}> is seen in {', '.join(folders)} only"
    return f"<{name}> has no row in the library table (tests/lint/rules.py)"


def includes(tree):
    for path in tree.files(".c", ".h"):
        text = ctext.without_comments(tree.read(path))
        for match in INCLUDE.finditer(text):
            name = match.group(2)
            is_own = match.group(1) == '"'
            wrong = _check_own(path, name, tree) if is_own else _check_library(path, name)
            if wrong:
                yield path, text.count("\n", 0, match.start()) + 1, wrong


# ---- names ---------------------------------------------------------------------------------------

# Pattern over code without comments and literals, what to say, and the files where it is at home.
NAMES = (
    (r"\b(strcpy|strcat|sprintf|vsprintf|strncpy|strncat|strtok|gmtime|localtime|atoi|atol|atoll|"
     r"alloca|rand|srand|system|gets|popen|mktemp|tmpnam)\s*\(",
     "{} has no safe use", ("driver/base/banned.h",)),
    (r"\b(strtol|strtoll|strtoul|strtoull|sscanf)\s*\(",
     "{}: numbers from outside parse through hfd_parse_i64", ("driver/base", "handlers/settings")),
    (r"\b(clock_gettime|gettimeofday|time|clock)\s*\(",
     "{}: ask driver/base/clock.h for the time", ("driver/base/clock.c",)),
    (r"\b(sleep|usleep|nanosleep|clock_nanosleep)\s*\(",
     "{}: nobody sleeps; wait for the event", ()),
    (r"\b(getrandom|arc4random\w*|random|srandom|drand48|randombytes_\w+)\s*\(",
     "{}: ask driver/base/rng.h for random bytes", ("driver/base/rng.c",)),
    (r"\b(json_auto_t)\b", "{}: one release idiom in the tree", ()),
    (r"\b(cleanup)\s*\(\s*\w+\s*\)\s*\)",
     "__attribute__((cleanup)): one release idiom in the tree", ()),
    (r"\bgoto\s+(?!out\b)(\w+)", "goto {}: goto goes forward, to out", ()),
    (r"\btypedef\s+(struct)\b(?!\s+hfd_slice\b)", "typedef of a {}", ()),
    (r"\b(?:struct|enum|union)\s+(\w+_t)\s*\{", "{}: _t belongs to POSIX", ()),
    (r"\bHFD_NEVER\s*\(\s*(true|1)\s*\)",
     "HFD_NEVER({}): the condition itself stands inside, because it is logged", ()),
    (r"\b(assert)\s*\(", "{}: use HFD_ASSERT", ("tests",)),
)

# Code of the HTTP loops does not wait for the database, which may be silent: hfd_exchange_read,
# hfd_exchange_update and hfd_exchange_view answer later. The calls that may stand there, each with
# its reason.
LOOP_FOLDERS = ("handlers/http", "handlers/web")
WAITS = re.compile(r"\b(hfd_store_read|hfd_store_reader_open|hfd_store_update_wait|"
                   r"hfd_store_job_wait|hfd_store_signal|hfd_db_\w+)\s*\(")
LOOP_WAITS = {
    ("handlers/http/exchange.c", "hfd_store_read"): "a loop has no reader on PostgreSQL",
    ("handlers/http/loop.c", "hfd_store_reader_open"): "not where the store has points.h",
}


def _waits(path, text):
    for match in WAITS.finditer(text):
        if (path, match.group(1)) not in LOOP_WAITS:
            yield (path, text.count("\n", 0, match.start()) + 1,
                   f"{match.group(1)} waits for the database, and the loops must not: "
                   "hfd_exchange_read")


def names(tree):
    for path in tree.files(".c", ".h"):
        text = ctext.code(tree.read(path))
        if any(_under(path, folder) for folder in LOOP_FOLDERS):
            yield from _waits(path, text)
        for pattern, message, homes in NAMES:
            if any(_under(path, home) for home in homes):
                continue
            for match in re.finditer(pattern, text):
                yield path, text.count("\n", 0, match.start()) + 1, message.format(match.group(1))


# ---- functions -----------------------------------------------------------------------------------

def functions(tree):
    for path in tree.files(".c", ".h"):
        for function in ctext.functions(tree.read(path)):
            if function.lines() > FUNCTION_LINES_MAX:
                yield path, function.line, (f"{function.name} has {function.lines()} lines; "
                                            f"{FUNCTION_LINES_MAX} is the limit")
            if function.complexity() > COMPLEXITY_MAX:
                yield path, function.line, (f"{function.name} has complexity "
                                            f"{function.complexity()}; {COMPLEXITY_MAX} is the "
                                            "limit")


# ---- states --------------------------------------------------------------------------------------

# One function moves the state of a driver resource. outcome.c has a state of its own.
STATE_FOLDER = "driver/core"
STATE_HOMES = ("driver/core/transition.c", "driver/core/outcome.c")
STATE_WRITES = (
    r"(?:->|\w\.)state\s*=(?!=)",
    r"struct hfd_resource_row\s*(?:\)|\w+\s*=)\s*\{[^;]*?\.state\s*=(?!=)",
)


def states(tree):
    for path in tree.files(".c", ".h"):
        if not _under(path, STATE_FOLDER) or path in STATE_HOMES:
            continue
        code = ctext.code(tree.read(path))
        for pattern in STATE_WRITES:
            for match in re.finditer(pattern, code):
                yield (path, code.count("\n", 0, match.end()) + 1,
                       "writes a state: hfd_resource_move does (driver/core/transition.h)")


# ---- doc comments --------------------------------------------------------------------------------

def _declarations(text):
    """(offset, name) of each function that a header declares or defines at file level."""
    plain = ctext.code(text)
    depth = start = 0
    for match in re.finditer(r"[{};]", plain):
        if match.group(0) == "}":
            depth -= 1
            start = match.end() if depth == 0 else start
            continue
        if depth == 0:
            piece = plain[start:match.start()]
            named = re.search(r"\b(hfd_\w+)\s*\(", piece)
            if named and not re.match(r"\s*(typedef|struct \w+ \w+\s*=|_Static_assert)", piece):
                yield start + len(piece) - len(piece.lstrip()), named.group(1)
        if match.group(0) == "{":
            depth += 1
        if depth == 0:
            start = match.end()


def docs(tree):
    for path in tree.files(".h"):
        if path.endswith("_int.h") or _under(path, "tests"):
            continue
        text = tree.read(path)
        lines = text.split("\n")
        for offset, name in _declarations(text):
            line = text.count("\n", 0, offset)
            first = line
            while first > 0 and lines[first - 1].strip() != "":
                first -= 1
            if not any("*/" in above for above in lines[first:line]):
                yield path, line + 1, f"{name} has no comment above it or above its group"


# ---- plain text ----------------------------------------------------------------------------------

TEXT_FILES = (".c", ".h", ".py", ".sh", ".sql", ".txt", ".md", ".yml", ".yaml", ".json", ".cmake",
              "dev", "run")
LONG_LINES_MAY = (".json", ".md")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(home|root|work|farm|Users)/\w")


def text(tree):
    for path in tree.files(*TEXT_FILES):
        if _under(path, "tests/lint"):
            continue
        whole = tree.read(path)
        is_c = path.endswith((".c", ".h"))
        measured = (ctext.unfenced(whole) if is_c else whole).split("\n")
        for number, line in enumerate(whole.split("\n"), 1):
            if UNFINISHED.search(line):
                yield path, number, "unfinished: " + UNFINISHED.search(line).group(1)
            if MACHINE_PATH.search(line):
                yield path, number, "a path of somebody's machine"
            if is_c and "\t" in line:
                yield path, number, "a tab"
            if line != line.rstrip() and not path.endswith(".md"):
                yield path, number, "blanks at the end of the line"
            limit = C_LINE_MAX if is_c else LINE_MAX
            if len(measured[number - 1].rstrip()) > limit and not path.endswith(LONG_LINES_MAY):
                yield path, number, f"{len(line)} columns; {limit} is the limit"
        bare = re.sub(r"/\*.*?\*/", "", whole, flags=re.S)
        if is_c and re.search(r"(?<!:)//", re.sub(r'"(?:\\.|[^"\\\n])*"', "", bare)):
            yield path, 1, "a // comment: /* */ only"
        if whole and not whole.endswith("\n"):
            yield path, whole.count("\n") + 1, "no newline at the end of the file"


RULES = {"includes": includes, "names": names, "functions": functions, "states": states,
         "docs": docs, "text": text}
