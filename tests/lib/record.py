"""Records what a program says, to compare two programs. `$HFD_RECORD` is a folder. Each test file
leaves a text there: the answers with headers and body, the lines of the log and of commands. Each
stands once, and ids, times, ports and numbers are masked.

    HFD_RECORD=/tmp/before ctest ...; ...; HFD_RECORD=/tmp/after ctest ...
    python3 -B tests/lib/record.py /tmp/before /tmp/after

Two runs of one program differ too, where the course of time decides. Record it twice to see where.
"""
import atexit
import os
import re
import sys
import threading

MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), "<date>"),
    (re.compile(r"/tmp/[\w./-]+"), "<path>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z0-9_-]{16,}={0,2}"), "<id>"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
)
seen = set()
lock = threading.Lock()


def masked(text):
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def note(kind, *texts):
    """Notes one thing that the program said."""
    line = kind + " " + masked(" ".join(texts).replace("\n", "\\n"))
    with lock:
        seen.add(line[:4000])


def answer(method, path, status, headers, body):
    head = " ".join("%s: %s" % pair for pair in sorted(headers))
    text = body[:3000].decode("utf-8", "replace")
    with lock:
        seen.add("answer %d %s" % (status, masked("%s %s %s %s" % (
            method, path[:200], head, text)).replace("\n", "\\n")))


def write(folder):
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(sys.argv[0]).replace(".py", "") or "test"
    with open(os.path.join(folder, "%s.%d" % (name, os.getpid())), "w", encoding="utf-8") as out:
        out.write("".join(line + "\n" for line in sorted(seen)))


def start():
    """Called by lib.py."""
    folder = os.environ.get("HFD_RECORD")
    if folder:
        atexit.register(write, folder)
    return bool(folder)


def read(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as lines:
            found.setdefault(name.split(".")[0], set()).update(lines.read().split("\n"))
    return found


def main():
    before, after = read(sys.argv[1]), read(sys.argv[2])
    equal = 0
    for name in sorted(set(before) & set(after)):
        equal += len(before[name] & after[name])
        for line in sorted(before[name] - after[name]):
            print("%s - %s" % (name, line))
        for line in sorted(after[name] - before[name]):
            print("%s + %s" % (name, line))
    print("%d lines are equal" % equal)


if __name__ == "__main__":
    main()
