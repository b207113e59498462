"""Shared by all HTML pages of the program: one style, one frame, and escaping.

The pages need no JavaScript and load nothing.
"""

import base64
import hashlib

STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;color:#1d2329;background:#fff;margin:0 auto;\
max-width:68rem;padding:1rem 1.5rem 4rem}h1,h2,h3{line-height:1.25}h2{margin-top:3rem;\
border-bottom:1px solid #d5dbe1;padding-bottom:.3rem}article{border:1px solid #d5dbe1;\
border-radius:6px;margin:1rem 0;padding:.2rem 1rem 1rem}\
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f6f8;border-radius:6px;\
overflow-x:auto;padding:.7rem}table{border-collapse:collapse;width:100%}\
th,td{border-top:1px solid #e4e8ec;padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top}\
th{font-weight:600}h4{margin:1rem 0 .2rem}a{color:#0b57a4}.m{display:inline-block;\
min-width:4.2rem;font-weight:700;text-transform:uppercase}.note{color:#57606a}\
nav ul{columns:22rem;padding-left:1.2rem}nav li{break-inside:avoid}\
code{overflow-wrap:anywhere}td{overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){body{background:#15191e;color:#dfe5ea}\
article,h2,th,td{border-color:#38414b}pre{background:#20262d}\
a{color:#7db8f5}.note{color:#9aa5b1}}"""

# The header Content-Security-Policy of every page: its own style, and nothing else.
DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
POLICY = (f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'")

ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def text(value):
    """A text for use between tags and in attributes; nothing for None."""
    return "" if value is None else str(value).translate(ESCAPES)


def frame(title, body):
    """A whole page. The title is text, the body HTML."""
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{text(title)}</title><style>{STYLE}</style></head>"
            f"<body>{body}</body></html>\n")
