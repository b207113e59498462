#!/usr/bin/env python3
"""Runs test programs of this folder side by side, as most of their time is waiting: together.py
FILE:VARIABLE=VALUE... Prints what each said, one after the other; fails when one failed."""
import os
import subprocess
import sys
import tempfile

AT_ONCE = 6


def main():
    waiting, running, failed = list(sys.argv[1:]), [], []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            what = waiting.pop(0)
            file, _, setting = what.partition(":")
            name, _, value = setting.partition("=")
            out = tempfile.TemporaryFile()
            running.append((what, out,
                            subprocess.Popen([sys.executable, "-B", file],
                                             env=dict(os.environ, **{name: value}), stdout=out,
                                                        stderr=subprocess.STDOUT)))
        what, out, proc = running.pop(0)
        status = proc.wait()
        out.seek(0)
        print("==== %s: %s" % (what, "ok" if status == 0 else "FAILED"))
        print(out.read().decode("utf-8", "replace"), flush=True)
        if status != 0:
            failed.append(what)
    sys.exit("failed: " + ", ".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
