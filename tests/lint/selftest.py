#!/usr/bin/env python3
"""Each of our own rules, seen failing on the smallest tree that breaks it, and silent on one that does not."""

import contextlib
import io
import os
import tempfile
import unittest

import ctext
import rules
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
    ("names", "store/a.c", "void f(void) { char *p __attribute__((cleanup(g))) = 0; }\n", "one release idiom"),
    ("names", "store/a.c", "void f(void) { goto fail; fail:; }\n", "goto fail"),
    ("names", "store/a.c", "void f(void) { goto out; out:; }\n", None),
    ("names", "store/a.c", "typedef struct row { int x; } row;\n", "typedef of a struct"),
    ("names", "store/a.c", "struct row_t { int x; };\n", "belongs to POSIX"),
    ("names", "store/a.c", "void f(int x) { assert(x); }\n", "HFD_ASSERT"),
    ("names", "store/a.c", '/* strcpy(a, b) */\nstatic const char t[] = "sleep(1) now";\n', None),
    ("names", "store/a.c", "int f(int x) { return x == 1 && HFD_NEVER(true); }\n", "the condition itself"),
    ("names", "store/a.c", "int f(int x) { return HFD_NEVER(x == 1); }\n", None),
    # Size and complexity.
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    x++;\n" * 120 + "    return x;\n}\n", "f has 124 lines"),
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    x++;\n" * 115 + "    return x;\n}\n", None),
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    if (x)\n        x++;\n" * 15 + "    return x;\n}\n", "f has complexity 16"),
    ("functions", "store/a.c", "int f(int x)\n{\n" + "    if (x)\n        x++;\n" * 14 + "    return x;\n}\n", None),
    ("functions", "store/a.c", "int f(int x)\n{\n    return x" + " && x || x ? x : x" * 5 + ";\n}\n", "f has complexity 16"),
    ("functions", "store/a.c", "int f(int x)\n{\n    switch (x) {\n" + "    case 1:\n        return 1;\n" * 40 + "    }\n    return 0;\n}\n",
     None),
    ("functions", "store/a.c", "int f(int x)\n{\n    if (x && x || x)\n        x++;\n    switch (x) {\n"
     + "    case 1:\n        return 1;\n" * 14 + "    }\n    return 0;\n}\n", "f has complexity 18"),
    ("functions", "store/a.c", '#define M(x) if (x) {\nstatic const int t[] = {1, 2};\nint f(void)\n{\n    return 0; /* } */\n}\n', None),
    # Public functions say what they do.
    ("docs", "store/b.h", "#define X\n\nint hfd_a(void);\n", "hfd_a has no comment"),
    ("docs", "store/b.h", "#define X\n\nstatic inline int hfd_a(void)\n{\n    return 0;\n}\n", "hfd_a has no comment"),
    ("docs", "store/b.h", "/** Says a. */\nint hfd_a(void);\nint hfd_b(void);\n\nint hfd_c(void);\n", "hfd_c has no comment"),
    ("docs", "store/b.h", "/** Says a. */\nint hfd_a(int x,\n          int y);\nint hfd_b(void);\n", None),
    ("docs", "store/b.h", "struct hfd_x {\n    int (*read)(void *ctx);\n};\n\ntypedef int hfd_fn(void);\n", None),
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
    ("text", "store/a.c", "/* clang-format off */\n/* " + "x" * 140 + " */\n/* clang-format on */\n", None),
)

# What the includes of the cases may point at.
SURROUNDINGS = ("store/a.h", "store/a_int.h", "store/a.c", "driver/core/a.h", "driver/fleet/a.h", "handlers/http/a.h", "handlers/cli/a.h",
                "tests/lib/a.h")


def findings(rule, path, text):
    with tempfile.TemporaryDirectory() as root:
        for name, content in [(name, "\n") for name in SURROUNDINGS] + [(path, text)]:
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(content)
        return [message for where, _, message in rules.RULES[rule](Tree(root)) if where == path]


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
        self.assertEqual({case[0] for case in CASES if case[3] is not None}, set(rules.RULES))

    def test_lines_are_counted_from_one(self):
        function = ctext.functions("\n\nint f(void)\n{\n}\n")[0]
        self.assertEqual((function.name, function.line, function.end), ("f", 3, 5))

    def test_hardening_sees_a_soft_program(self):
        with tempfile.TemporaryDirectory() as build:
            source, program = os.path.join(build, "a.c"), os.path.join(build, "hyperfleet-driver")
            with open(source, "w", encoding="utf-8") as file:
                file.write("int main(void) { return 0; }\n")
            self.assertEqual(os.spawnlp(os.P_WAIT, "cc", "cc", "-no-pie", "-Wl,-z,norelro", "-Wl,-z,lazy", "-o", program, source), 0)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertFalse(CHECKS["hardening"](None, build))
            for promise in ("PIE", "RELRO", "BIND_NOW", "stack protector", "fortified"):
                self.assertIn(promise, said.getvalue())


if __name__ == "__main__":
    unittest.main()
