#!/usr/bin/env python3
"""Makes the pages that the program carries, as C.

Call: pages_c.py OPENAPI_JSON SEARCH_JS OUT MANUAL_MD...
"""

import json
import sys

from manual import ManualError, manual
from openapi_page import OpenapiPage
from page import POLICY, SEARCH_POLICY, frame

HEAD = """\
/* Made from schemas/openapi.yaml and handlers/docs by handlers/http/pages_c.py. */
#include "handlers/http/routes.h"

"""
TYPES = {"js": "text/javascript; charset=utf-8", "json": "application/json"}

# "/" of the main listener. The program puts the address of the ops listener for the mark.
START = """<h1>hyperfleet-driver</h1><p>This address is for programs: orchestrators send their
orders here, and adapters their reports. People look at another address, the ops listener: @OPS@
(setting <code>ops_listen</code>). Type it; a link from here is refused.</p><ul><li><code>/</code>
there is the status page: what is ordered, what is under way, what needs attention</li><li>
<code>/docs/</code> there is the manual</li><li><a href="/api/hyperfleet/v1/openapi.html">The
API</a> is described here.</li></ul>"""


def array(name, content):
    lines = (",".join(map(str, content[at:at + 32])) for at in range(0, len(content), 32))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def table(name, pages, policy):
    """The bytes of pages and the table of them."""
    arrays = rows = ""
    for n, (page, html) in enumerate(pages.items()):
        kind = TYPES.get(page.rsplit(".", 1)[-1], "text/html; charset=utf-8")
        arrays += array(f"{name}_{n}", html.encode("utf-8"))
        rows += (f"    {{{json.dumps(page)}, {json.dumps(kind)}, {json.dumps(policy)},\n"
                 f"     {{(const char *){name}_{n}, sizeof({name}_{n})}}}},\n")
    return (f"{arrays}const struct hfd_doc {name}[] = {{\n{rows}}};\n"
            f"const size_t {name}_count = {len(pages)};\n")


def main():
    openapi_json, search_js, out, *documents = sys.argv[1:]
    with open(openapi_json, encoding="utf-8") as file:
        openapi = OpenapiPage(json.load(file)).pages()
    try:
        pages = manual(documents)
    except ManualError as error:
        sys.exit(f"pages_c.py: {error}")
    with open(search_js, encoding="utf-8") as file:
        pages["search.js"] = file.read()
    with open(out, "w", encoding="utf-8") as file:
        file.write(HEAD + table("hfd_openapi_docs", openapi, POLICY) +
                   table("hfd_manual", pages, SEARCH_POLICY) +
                   array("start", frame("hyperfleet-driver", "", "", START).encode("utf-8")) +
                   "const hfd_slice hfd_start_page = {(const char *)start, sizeof(start)};\n")


if __name__ == "__main__":
    main()
