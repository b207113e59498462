#!/usr/bin/env python3
"""Makes the HTML pages that the program carries, as C: pages_c.py OPENAPI_JSON OUT MANUAL_MD..."""

import json
import sys

from manual import ManualError, manual
from openapi_page import OpenapiPage
from page import POLICY

HEAD = """\
/* Made from schemas/openapi.yaml and handlers/docs by handlers/http/pages_c.py. */
#include "handlers/http/pages.h"

"""


def array(name, content):
    rows = (",".join(map(str, content[at:at + 32])) for at in range(0, len(content), 32))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def main():
    openapi_json, out, *documents = sys.argv[1:]
    with open(openapi_json, encoding="utf-8") as file:
        openapi = OpenapiPage(json.load(file)).html()
    try:
        pages = manual(documents)
    except ManualError as error:
        sys.exit(f"pages_c.py: {error}")
    contents = [openapi.encode("utf-8")] + [html.encode("utf-8") for html in pages.values()]
    slices = [f"{{(const char *)page_{n}, sizeof(page_{n})}}" for n in range(len(contents))]
    rows = ",\n".join(f"    {{{json.dumps(name)}, {piece}}}"
                      for name, piece in zip(pages, slices[1:]))
    arrays = "".join(array(f"page_{n}", content) for n, content in enumerate(contents))
    with open(out, "w", encoding="utf-8") as file:
        file.write(HEAD + arrays +
                   f"\nconst char hfd_page_policy[] = {json.dumps(POLICY)};\n"
                   f"const hfd_slice hfd_openapi_page = {slices[0]};\n"
                   f"const struct hfd_manual_page hfd_manual[] = {{\n{rows},\n}};\n"
                   f"const size_t hfd_manual_count = {len(pages)};\n")


if __name__ == "__main__":
    main()
