"""Shared by all HTML pages of the program: one style, one frame, and escaping.

The pages work without JavaScript. Those of the manual have one file of it, for their search.
"""

import base64
import hashlib

STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;color:#1d2329;background:#fff;margin:0 auto;\
max-width:84rem;padding:1rem 1.5rem 4rem}h1,h2,h3{line-height:1.25}h2{margin-top:3rem;\
border-bottom:1px solid #d5dbe1;padding-bottom:.3rem}article{border:1px solid #d5dbe1;\
border-radius:6px;margin:1rem 0;padding:.2rem 1rem 1rem}\
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f6f8;border-radius:6px;\
overflow-x:auto;padding:.7rem}table{border-collapse:collapse;width:100%}\
th,td{border-top:1px solid #e4e8ec;padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top}\
th{font-weight:600}article h2{margin-top:1rem;border:0}\
article h3{margin:1rem 0 .2rem;font-size:1rem}a{color:#0b57a4}.m{display:inline-block;\
min-width:4.2rem;font-weight:700;text-transform:uppercase}.note{color:#57606a}\
.toc ul{columns:20rem;padding-left:1.2rem}li{break-inside:avoid}.toc .l3{margin-left:1.2rem}\
header,.turn{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:baseline}\
.turn{justify-content:space-between;margin-top:3rem}[hidden]{display:none}\
input{font:inherit;color:inherit;background:inherit;border:1px solid #768390;border-radius:4px;\
padding:.15rem .4rem;max-width:100%}#found{flex-basis:100%;margin:0;overflow-wrap:anywhere}\
#found p{margin:0}main:only-child{grid-column:1/3}\
.sheet{display:grid;grid-template-columns:13rem minmax(0,1fr);gap:2rem}\
.beside{position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto}\
.beside ul{list-style:none;margin:1.3rem 0;padding:0}.beside li{margin:.3rem 0}\
[aria-current]{font-weight:700;color:inherit;text-decoration:none}\
:focus-visible{outline:3px solid #0b57a4}\
@media(max-width:60rem){.sheet{display:block}.beside{position:static;max-height:none}\
.beside ul{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.6rem 0}.beside li{margin:0}}\
code,td{overflow-wrap:break-word}article td:first-child,.n{white-space:nowrap}\
table{display:block;overflow-x:auto}article{overflow-x:auto}\
@media(prefers-color-scheme:dark){body{background:#15191e;color:#dfe5ea}\
article,h2,th,td{border-color:#38414b}pre{background:#20262d}\
a{color:#7db8f5}:focus-visible{outline-color:#7db8f5}.note{color:#9aa5b1}}"""

# The header Content-Security-Policy of a page: its own style, and nothing else. A page with a
# search may run a file of the server and read its index.
DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
POLICY = (f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'")
SEARCH_POLICY = POLICY + "; script-src 'self'; connect-src 'self'"

ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def text(value):
    """A text for use between tags and in attributes; nothing for None."""
    return "" if value is None else str(value).translate(ESCAPES)


def links(rows, current):
    """A list of links from (address, HTML); the one of the page itself is marked."""
    return "".join(f'<li><a href="{text(to)}"' + (' aria-current="page"' if to == current else "") +
                   f">{label}</a></li>" for to, label in rows)


def frame(title, head, beside, main, script=""):
    """A whole page: the line at its top, the list of pages beside it, if any, and its content.

    The title is text; what else is given is HTML. Code that scrolls takes the keyboard.
    """
    main = main.replace("<pre>", '<pre tabindex="0">')
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{text(title)}</title><style>{STYLE}</style>{script}</head>"
            "<body>" + (f"<header>{head}</header>" if head else "") + '<div class="sheet">' +
            (f'<nav class="beside" aria-label="Pages"><ul>{beside}</ul></nav>' if beside else "") +
            f"<main>{main}</main></div></body></html>\n")
