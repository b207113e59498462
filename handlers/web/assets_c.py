#!/usr/bin/env python3
"""Makes files that the program carries, as C: assets_c.py OUT HEADER PREFIX FILE..."""
import os
import sys


def main():
    out, header, prefix, *paths = sys.argv[1:]
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write("/* Made by handlers/web/assets_c.py. */\n"
                   '#include "%s"\n' % header)
        for path in paths:
            with open(path, "rb") as source:
                content = source.read()
            name = os.path.basename(path).replace(".", "_")
            file.write("static const unsigned char bytes_%s[] = {%s};\n"
                       "const hfd_slice %s%s = {(const char *)bytes_%s, sizeof(bytes_%s)};\n"
                       % (name, ",".join(map(str, content)), prefix, name, name, name))


if __name__ == "__main__":
    main()
