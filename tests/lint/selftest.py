#!/usr/bin/env python3
"""Each of our own rules, seen failing on the smallest tree that breaks it, and silent on one that
does not.
"""

import contextlib
import io
import json
import os
import tempfile
import unittest
import unittest.mock

import ctext
import kept
import lint
import prose
import rules
import shape
from lint import CHECKS, Tree

# rule, file, text, what the finding says (None: there must be none)
CASES = (
    # Arrows point down only.
    ("includes", "driver/base/a.c", '#include "store/a.h"\n', "points up or sideways"),
    ("includes", "store/a.c", '#include "driver/core/a.h"\n', "points up or sideways"),
    ("includes", "schemas/a.c", '#include "store/a.h"\n', "points up or sideways"),
    ("includes", "driver/fleet/a.c", '#include "driver/core/a.h"\n', "points up or sideways"),
    ("includes", "driver/core/a.c", '#include "handlers/http/a.h"\n', "points up or sideways"),
    ("includes", "handlers/http/a.c", '#include "handlers/cli/a.h"\n', "points up or sideways"),
    ("includes", "driver/core/a.c", '#include "tests/lib/a.h"\n', "points up or sideways"),
    ("includes", "driver/core/a.c", '#include "driver/fleet/a.h"\n#include "store/a.h"\n', None),
    ("includes", "handlers/http/a.c", '#include "driver/core/a.h"\n#include "store/a.h"\n', None),
    # The core sees one header of the backend.
    ("includes", "driver/core/a.c", '#include "driver/backend/a.h"\n', "is behind it"),
    ("includes", "driver/core/a.c", '#include "driver/backend/backend.h"\n', None),
    # Every include shows its layer, and names something that is there.
    ("includes", "store/b.c", '#include "a.h"\n', "does not show its layer"),
    ("includes", "store/b.c", '#include "store/missing.h"\n', "does not exist"),
    ("includes", "elsewhere/b.c", '#include "store/a.h"\n', "no row in the include table"),
    ("includes", "store/b.c", '#include "elsewhere/a.h"\n', "in no folder of ours"),
    ("includes", "tests/unit/b.c", '#include "store/a.c"\n', "includes the source"),
    ("includes", "driver/core/b.c", '#include "store/a_int.h"\n', "is internal to store"),
    ("includes", "tests/unit/b.c", '#include "store/a_int.h"\n', None),
    # Libraries are seen where they belong.
    ("includes", "driver/core/a.c", "#include <h2o.h>\n", "is seen in handlers/http only"),
    ("includes", "store/a.c", "#include <sqlite3.h>\n", "is seen in store/sqlite, tests only"),
    ("includes", "store/sqlite/a.c", "#include <sqlite3.h>\n", None),
    ("includes", "handlers/http/a.c", "#include <curl/curl.h>\n", "is seen in"),
    ("includes", "driver/core/a.c", "#include <sys/socket.h>\n", "is seen in"),
    ("includes", "store/a.c", "#include <json-c/json.h>\n", "no row in the library table"),
    ("includes", "store/a.c", "/* #include <h2o.h> */\n#include <jansson.h>\n", None),
    # Names that have no place here.
    ("names", "store/a.c", "void f(char *a) { strcpy(a, a); }\n", "strcpy has no safe use"),
    ("names", "store/a.c", "long f(char *a) { return strtol(a, 0, 10); }\n", "hfd_parse_i64"),
    ("names", "store/a.c", "void f(void) { clock_gettime(0, 0); }\n", "driver/base/clock.h"),
    ("names", "driver/base/clock.c", "void f(void) { clock_gettime(0, 0); }\n", None),
    ("names", "tests/unit/a.c", "void f(void) { usleep(1); }\n", "nobody sleeps"),
    ("names", "store/a.c", "void f(void) { randombytes_buf(0, 0); }\n", "driver/base/rng.h"),
    ("names", "store/a.c", "void f(void) { json_auto_t *x; }\n", "one release idiom"),
    ("names", "store/a.c", "void f(void) { char *p __attribute__((cleanup(g))) = 0; }\n",
     "one release idiom"),
    ("names", "store/a.c", "void f(void) { goto fail; fail:; }\n", "goto fail"),
    ("names", "store/a.c", "void f(void) { goto out; out:; }\n", None),
    ("names", "store/a.c", "typedef struct row { int x; } row;\n", "typedef of a struct"),
    ("names", "store/a.c", "struct row_t { int x; };\n", "belongs to POSIX"),
    ("names", "store/a.c", "void f(int x) { assert(x); }\n", "HFD_ASSERT"),
    ("names", "store/a.c", '/* strcpy(a, b) */\nstatic const char t[] = "sleep(1) now";\n', None),
    ("names", "store/a.c", "int f(int x) { return x == 1 && HFD_NEVER(true); }\n",
     "the condition itself"),
    ("names", "store/a.c", "int f(int x) { return HFD_NEVER(x == 1); }\n", None),
    # The loops never wait for the database.
    ("names", "handlers/http/a.c", "int f(void) { return hfd_store_read(0, 0, 0, 0); }\n",
     "waits for the database"),
    ("names", "handlers/web/a.c", "int f(void) { return hfd_store_update_wait(0, 0, 0, 0); }\n",
     "waits for the database"),
    ("names", "handlers/http/exchange.c", "int f(void) { return hfd_store_job_wait(0, 0, 0); }\n",
     "waits for the database"),
    ("names", "handlers/http/exchange.c", "int f(void) { return hfd_store_read(0, 0, 0, 0); }\n",
     None),
    ("names", "handlers/cli/a.c", "int f(void) { return hfd_store_read(0, 0, 0, 0); }\n", None),
    # Size and complexity.
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    x++;\n" * 100 + "    return x;\n}\n",
     "f has 104 lines"),
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    x++;\n" * 96 + "    return x;\n}\n",
     None),
    ("functions", "store/a.c",
     "int f(int x)\n{\n" + "    if (x)\n        x++;\n" * 15 + "    return x;\n}\n",
     "f has complexity 16"),
    ("functions", "store/a.c",
     "int f(int x)\n{\n" + "    if (x)\n        x++;\n" * 14 + "    return x;\n}\n", None),
    ("functions", "store/a.c",
     "int f(int x)\n{\n    return x" + " && x || x ? x : x" * 5 + ";\n}\n", "f has complexity 16"),
    ("functions", "store/a.c", "int f(int x)\n{\n    switch (x) {\n" +
     "    case 1:\n        return 1;\n" * 40 + "    }\n    return 0;\n}\n", None),
    ("functions", "store/a.c",
     "int f(int x)\n{\n    if (x && x || x)\n        x++;\n    switch (x) {\n" +
     "    case 1:\n        return 1;\n" * 14 + "    }\n    return 0;\n}\n", "f has complexity 18"),
    ("functions", "store/a.c",
     '#define M(x) if (x) {\nstatic const int t[] = {1, 2};\nint f(void)\n{\n    return 0; /* } '
     '*/\n}\n',
     None),
    # One function moves the state of a resource.
    ("states", "driver/core/a.c", "void f(struct row *row) { row->state = 1; }\n",
     "writes a state"),
    ("states", "driver/core/a.c", "void f(struct f *f) { f->row.state=1; }\n", "writes a state"),
    ("states", "driver/core/a.c",
     "void f(void)\n{\n    struct hfd_resource_row row = {.kind = 1, .state = 2};\n}\n",
     "writes a state"),
    ("states", "driver/core/a.c", "int f(struct row *row) { return row->state == 1; }\n", None),
    ("states", "driver/core/a.c", "struct in f(void) { return (struct in){\n .state = 1}; }\n",
     None),
    ("states", "driver/core/transition.c", "void f(struct row *row) { row->state = 1; }\n", None),
    ("states", "driver/backend/a.c", "void f(struct row *row) { row->state = 1; }\n", None),
    # Public functions say what they do.
    ("docs", "store/b.h", "#define X\n\nint hfd_a(void);\n", "hfd_a has no comment"),
    ("docs", "store/b.h", "#define X\n\nstatic inline int hfd_a(void)\n{\n    return 0;\n}\n",
     "hfd_a has no comment"),
    ("docs", "store/b.h",
     "/** Says a. */\nint hfd_a(void);\nint hfd_b(void);\n\nint hfd_c(void);\n",
     "hfd_c has no comment"),
    ("docs", "store/b.h", "/** Says a. */\nint hfd_a(int x,\n          int y);\nint hfd_b(void);\n",
     None),
    ("docs", "store/b.h",
     "struct hfd_x {\n    int (*read)(void *ctx);\n};\n\ntypedef int hfd_fn(void);\n", None),
    ("docs", "store/b_int.h", "\nint hfd_a(void);\n", None),
    # Plain text.
    ("text", "store/a.c", "/* TODO */\n", "unfinished: TODO"),
    ("text", "README.md", "FIXME\n", "unfinished: FIXME"),
    ("text", "store/a.c", 'static const char t[] = "hfd-XXXXXX";\n', None),
    ("text", "store/a.c", "\tint x;\n", "a tab"),
    ("text", "store/a.c", "int x; \n", "blanks at the end"),
    ("text", "store/a.c", "int x; // one\n", "a // comment"),
    ("text", "store/a.c", 'static const char t[] = "http://host"; /* http://host */\n', None),
    ("text", "store/a.c", "int x;", "no newline at the end"),
    ("text", "dev", "cd /home/somebody\n", "a path of somebody's machine"),
    ("text", "dev", "cd /home\n", None),
    ("text", "store/a.c", "/* " + "x" * 140 + " */\n", "146 columns"),
    ("text", "store/a.c",
     "/* clang-format off */\n/* " + "x" * 140 + " */\n/* clang-format on */\n", None),
)

MANY = "int f(int a, int b, int c, int d, int e, int f, int g)\n{\n    return a;\n}\n"
LONG = " ".join(["word"] * 26)

# Likewise for the rules of shape.py and words.py.
CASES += (
    ("parameters", "store/a.c", MANY, "f has 7 parameters"),
    ("parameters", "tests/unit/a.c", MANY, "f has 7 parameters"),
    ("parameters", "tests/fault/a.c", MANY.replace(" f(", " __wrap_mmap("), None),
    ("parameters", "store/a.c", MANY.replace(", int g", ""), None),
    ("parameters", "store/a.c",
     "int f(int (*g)(int a, int b, int c), int b, int c, int d, int e)\n{\n}\n", None),
    ("parameters", "store/a.c", "int f(struct x *x)\n{\n    return g(1, 2, 3, 4, 5, 6, 7);\n}\n",
     None),
    ("sizes", "store/a.c", "\n" * 1001, "1001 lines"),
    ("sizes", "store/a.c", "\n" * 1000, None),
    ("sizes", "tests/unit/a.c", "\n" * 1001, None),
    ("headers", "store/b.c", "\n", "has no header store/b.h"),
    ("headers", "store/a.c", "\n", None),
    ("headers", "handlers/cli/main.c", "\n", None),
    ("headers", "handlers/cli/cmd_x.c", "\n", None),
    ("headers", "tests/unit/b.c", "\n", None),
    ("columns", "README.md", "word " * 21 + "\n", "105 columns"),
    ("columns", "README.md", "| " + "word " * 21 + "|\n", None),
    ("columns", "README.md", "```\n" + "word " * 21 + "\n```\n", None),
    ("columns", "README.md", "[page](" + "x" * 100 + ")\n", None),
    ("columns", "tests/unit/a.py", "x = 1" + "0" * 100 + "\n", "105 columns"),
    ("columns", "dev", "x" * 101 + "\n", "101 columns"),
    ("references", "store/b.c", "/* See DESIGN 4. */\n", "DESIGN is not in the repository"),
    ("references", "store/b.c", "/* See STYLE.md. */\n", "STYLE.md is not in the repository"),
    ("references", "store/b.c", "/* See spec/hyperfleet-api.md. */\n",
     "spec/hyperfleet-api.md is not"),
    ("references", "store/b.c", "/* 002_4aedec23c83d0384.txt says so. */\n",
     "002_4aedec23c83d0384.txt is not"),
    ("references", "store/b.c", "/* See store/gone.h. */\n",
     "store/gone.h is not in the repository"),
    ("references", "store/b.c", "/* See gone.c. */\n", "gone.c is not in the repository"),
    ("references", "store/b.c", "/* See store/a.h, a_int.h and core/a.h. */\n",
     "core/a.h is not in the repository"),
    ("references", "store/b.c", "/* See store/a.h, a_int.h and https://host/b/c.md. */\n", None),
    ("references", "store/b.c", "#include <zlib.h>\n/* As zlib.h has it. */\n", None),
    ("references", "store/README.md", "In [a](../driver/core/a.h) and `a.h`.\n", None),
    ("references", "store/README.md", "In `store/gone.h`.\n", "store/gone.h is not"),
    ("references", "tests/unit/a.py", '"""See DESIGN."""\n', "DESIGN is not"),
    ("references", "tests/unit/CMakeLists.txt", "set(X ../shared/vectors)\n",
     "../shared is HFD_SHARED"),
    ("references", "CMakeLists.txt", "set(HFD_SHARED ../shared CACHE PATH \"\")\n", None),
    ("openers", "store/b.c", "/* What is late was so before. */\n", 'begins with "What"'),
    ("openers", "store/b.c", "/*\n * Fine. Of a row: the first.\n */\n", 'begins with "Of a"'),
    ("openers", "store/b.h", "int x; /**< So long a row may wait. */\n", 'begins with "So long"'),
    ("openers", "store/b.c", "/* Whose turn it was goes. */\n", 'begins with "Whose"'),
    ("openers", "tests/unit/a.py", "x = 1  # Whoever reads it waits.\n", 'begins with "Whoever"'),
    ("openers", "tests/unit/a.py", 'def f():\n    """Who reads waits."""\n', 'begins with "Who"'),
    ("users", "store/b.h", "void hfd_b(void);\n", "hfd_b has no user"),
    ("users", "store/b.h", "void hfd_b(void);\n#define HFD_B() hfd_b()\n", None),
    ("users", "store/b.h", "typedef void hfd_b(void);\n", None),
    ("openers", "README.md", "# What it is\n\nWhat is this? A driver.\n", None),
    ("openers", "README.md", "- Whether it runs is told.\n", 'begins with "Whether"'),
    ("openers", "store/b.c", 'const char *a = "/* What is late */";\n/* Says what is late. */\n',
     None),
    ("persons", "store/b.c", "/* The writer waits until somebody asks. */\n", '"somebody"'),
    ("persons", "store/b.c", "/* A thread who waits. */\n", '"who"'),
    ("persons", "store/b.c", "/* The reader thread: he waits. */\n", '"he"'),
    ("persons", "store/b.c", "/* For operators who read logs; the header has \"who\". */\n", None),
    ("persons", "dev", "#!/bin/sh\n# For whoever waits.\n", '"whoever"'),
    ("sentences", "store/b.c", f"/* {LONG}. */\n", "26 words"),
    ("sentences", "store/b.c", f"/* {LONG[:-5]}. {LONG[:-5]}. */\n", "word"),
    ("sentences", "store/b.c", f"/* {LONG[:-5]}. Word {LONG[:-10]}. */\n", None),
    # Texts that the program writes are read like comments.
    ("openers", "store/b.c",
     'int f(void) { return hfd_fail_nomem(err, "what a row is made of"); }\n',
     'begins with "What"'),
    ("openers", "store/b.c", 'void f(void) { HFD_LOG(HFD_LOG_INFO, "what a row is"); }\n', None),
    ("persons", "store/b.c", 'void f(void) { HFD_LOG(HFD_LOG_INFO, "nobody listens"); }\n',
     '"nobody"'),
    ("persons", "store/b.h",
     '#define HFD_SETTING_LIST(X) \\\n X("a", STR, "key; " \\\n  "he waits")\n', '"he"'),
    ("persons", "store/b.h", '#define HFD_METRIC_LIST(X) \\\n X(A, "", "Rows, by who waits.")\n',
     '"who"'),
    ("persons", "store/b.c", 'void f(void) { puts("nobody"); }\n', None),
    ("sentences", "store/b.c",
     "void told(const char *f, ...) __attribute__((format(printf, 1, 2)));\n"
     f'void f(void) {{ told("a: (" "{LONG[:60]}"\n "{LONG[60:]}", g("x")); }}\n', "words"),
    ("sentences", "store/b.c", f'void f(void) {{ puts("{LONG}"); }}\n', None),
    ("sentences", "README.md", f"{LONG[:60]}\n{LONG[60:]}\n", "26 words"),
    ("sentences", "README.md", f"| {LONG} |\n\n```\n{LONG}\n```\n\n    {LONG}\n", None),
    ("sentences", "store/b.c", f"/* clang-format off */\n/* {LONG} */\n/* clang-format on */\n",
     None),
)

# Files that the includes of the cases may name.
SURROUNDINGS = ("store/a.h", "store/a_int.h", "store/a.c", "driver/core/a.h", "driver/fleet/a.h",
                "driver/backend/a.h", "driver/backend/backend.h", "handlers/http/a.h",
                "handlers/cli/a.h", "tests/lib/a.h")

ALL_RULES = {**rules.RULES, **lint.FAMILIES}


def put(root, name, content):
    os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
    with open(os.path.join(root, name), "w", encoding="utf-8") as file:
        file.write(content)


def findings(rule, path, text):
    with tempfile.TemporaryDirectory() as root:
        for name in SURROUNDINGS:
            put(root, name, "\n")
        put(root, path, text)
        return [message for where, _, message in ALL_RULES[rule](Tree(root)) if where == path]


class Rules(unittest.TestCase):
    def test_cases(self):
        for rule, path, text, said in CASES:
            with self.subTest(rule=rule, text=text[:60]):
                found = findings(rule, path, text)
                if said is None:
                    self.assertEqual(found, [])
                else:
                    self.assertTrue(any(said in message for message in found), found)

    def test_every_rule_is_seen_failing(self):
        self.assertEqual({case[0]
                          for case in CASES if case[3] is not None} | {"folders", "promises"},
                         set(ALL_RULES))

    def test_a_full_folder_has_a_readme(self):
        with tempfile.TemporaryDirectory() as root:
            for number in range(shape.FOLDER_FILES_MAX + 1):
                self.assertEqual(list(shape.folders(Tree(root))), [])
                put(root, f"store/{number}.c", "\n")
            self.assertEqual([path for path, _, _ in shape.folders(Tree(root))],
                             ["store/README.md"])
            put(root, "store/README.md", "\n")
            self.assertEqual(list(shape.folders(Tree(root))), [])

    def test_a_promise_has_a_test(self):
        security = ("# Security\n\n## Reporting\n\nSay it.\n\n## Keys\n\nKeys are\nkept.\n\n"
                    "* They are wiped.\n* They are sealed.\n")
        good = ("| Keys are kept | `unit/a.c`: a_case; `b.py`: test_b |\n"
                "| are wiped | advice |\n| are sealed | `b.py` |\n")
        for rows, said in (
                (good, []), (good.replace("| are wiped | advice |\n", ""), ["'* They are wiped.'"]),
                (good.replace("kept", "lost"), ["'Keys are lost' is not", "'Keys are kept.'"]),
                (good.replace("advice", "soon"), ["names no test"]),
                (good.replace("`b.py`: ", "`c.py`: "), ["there is no tests/c.py"]),
                (good.replace("a_case", "another"), ["there is no tests/unit/a.c: another"]),
                (good.replace("test_b ", "test_b, test_c "), ["no tests/b.py: test_c"])):
            with self.subTest(rows=rows), tempfile.TemporaryDirectory() as root:
                put(root, "SECURITY.md", security)
                put(root, "tests/promises.md", "| words | held by |\n|---|---|\n" + rows)
                put(root, "tests/unit/a.c", "static void a_case(void **state)\n")
                put(root, "tests/b.py", "def test_b(self):\n    test_c()\n")
                found = [message for _, _, message in shape.promises(Tree(root))]
                self.assertEqual(len(found), len(said), found)
                for message, words_of in zip(found, said):
                    self.assertIn(words_of, message)

    def test_sentences_know_their_lines(self):
        text = ("int x;\n/*\n * One is\n * here. Two is here (3.7).\n"
                " * @param x  Three\n *\n * Four, e.g. Five\n */\n")
        self.assertEqual([(s.line, s.text) for s in prose.sentences("a.c", text)],
                         [(3, "One is here."), (4, "Two is here (3.7)."), (5, "x  Three"),
                          (7, "Four, e.g. Five")])

    def test_a_family_names_each_finding(self):
        with tempfile.TemporaryDirectory() as root:
            family = {"parameters": shape.parameters}
            check = lint.family(family)
            self.assertTrue(check(Tree(root), None))
            put(root, "store/a.c", MANY)
            put(root, "driver/a.c", MANY)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertFalse(check(Tree(root), None))
                self.assertEqual(lint.show(Tree(root), family, ["store"]), 1)
            self.assertEqual([line.split(":")[0] for line in said.getvalue().splitlines()],
                             ["driver/a.c", "store/a.c", "store/a.c"])

    def test_lines_are_counted_from_one(self):
        function = ctext.functions("\n\nint f(void)\n{\n}\n")[0]
        self.assertEqual((function.name, function.line, function.end), ("f", 3, 5))

    def test_a_result_is_kept_until_something_changes(self):
        """Until the source, a header, the command or the tool is another one."""
        with tempfile.TemporaryDirectory() as root:
            build = os.path.join(root, "build")

            def write(path, text, at):
                put(root, path, text)
                os.utime(os.path.join(root, path), (at, at))

            def one(tool="1", command="cc -o a.o -c a.c"):
                put(root, "build/compile_commands.json", json.dumps(
                    [{"file": os.path.join(root, "a.c"), "directory": build, "output": "a.o",
                      "command": command}]))
                return kept.Kept(root, build, tool)

            for path, text, at in (("a.c", "int a;", 10), ("a.h", "int b;", 10),
                                   ("build/a.o", "", 20)):
                write(path, text, at)
            deps = {"a.o": [os.path.join(root, "a.c"), os.path.join(root, "a.h")]}
            with unittest.mock.patch.object(kept, "dependencies", lambda _: deps):
                first = one()
                self.assertFalse(first.has("a.c"))
                first.add("a.c")
                self.assertTrue(one().has("a.c"))
                self.assertFalse(one(tool="2").has("a.c"))
                self.assertFalse(one(command="cc -DX -o a.o -c a.c").has("a.c"))
                for path, text in (("a.h", "int c;"), ("a.c", "int c;")):
                    write(path, text, 11)
                    self.assertFalse(one().has("a.c"), path)
                    write(path, {"a.h": "int b;", "a.c": "int a;"}[path], 12)
                    self.assertTrue(one().has("a.c"), path)
                write("a.h", "int b;", 21)  # newer than the object: its headers are not known
                self.assertIsNone(one().key("a.c"))
                write("a.h", "int b;", 12)
                one().forget_others()
                self.assertFalse(one().has("a.c"))
            with unittest.mock.patch.object(kept, "dependencies", lambda _: {}):
                self.assertIsNone(one().key("a.c"))

    def test_hardening_sees_a_soft_program(self):
        with tempfile.TemporaryDirectory() as build:
            source, program = os.path.join(build, "a.c"), os.path.join(build, "hyperfleet-driver")
            with open(source, "w", encoding="utf-8") as file:
                file.write("int main(void) { return 0; }\n")
            self.assertEqual(
                os.spawnlp(os.P_WAIT, "cc", "cc", "-no-pie", "-Wl,-z,norelro", "-Wl,-z,lazy", "-o",
                           program, source), 0)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertFalse(CHECKS["hardening"](None, build))
            for promise in ("PIE", "RELRO", "BIND_NOW", "stack protector", "fortified"):
                self.assertIn(promise, said.getvalue())


if __name__ == "__main__":
    unittest.main()
