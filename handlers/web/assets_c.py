#!/usr/bin/env python3
"""Makes the files that the status page loads, as C: assets_c.py OUT FILE..."""
import os
import sys


def main():
    out, *paths = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as file:
        file.write("/* Made by handlers/web/assets_c.py. */\n"
                   '#include "handlers/web/assets.h"\n')
        for path in paths:
            with open(path, "rb") as source:
                content = source.read()
            name = os.path.basename(path).replace(".", "_")
            file.write("static const unsigned char bytes_%s[] = {%s};\n"
                       "const hfd_slice hfd_web_%s = {(const char *)bytes_%s, sizeof(bytes_%s)};\n"
                       % (name, ",".join(map(str, content)), name, name, name))


if __name__ == "__main__":
    main()
