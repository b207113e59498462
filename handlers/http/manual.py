"""The manual, handlers/docs/*.md, as HTML pages.

It knows the Markdown that these files use: headings, paragraphs, lists in lists, tables, fenced
code, quotes; `code`, **bold**, *emphasis*, [links](to), <https://links>. It leaves out HTML
comments. A link to another page of the manual becomes one to its HTML page. A link to another file
of the repository becomes its path, because the program does not serve it. A link to a page, heading
or file that does not exist ends the build.
"""

import html as entities
import json
import os
import re

from page import frame, links, text

FENCE = re.compile(r"^(`{3,}|~{3,})")
HEADING = re.compile(r"^(#{1,6}) +(.*?)(?: +#+)?$")
ITEM = re.compile(r"^( *)([-*+]|[0-9]+\.) +(.*)$")
RULER = re.compile(r"^\|?[ :|-]*-[ :|-]*$")
BLOCK = re.compile(r"^(#{1,6} |`{3}|~{3}|\||>|<!--| *([-*+]|[0-9]+\.) )")
INLINE = re.compile(r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)(?!`)|"
                    r"\\(?P<escaped>[\\`*_{}\[\]()#+.!|<>~-])|"
                    r"<(?P<url>https?://[^ >]+)>|"
                    r"\[(?P<label>(?:`[^`]*`|[^\]`])*)\]\((?P<to>[^ )]+)\)|"
                    r"\*\*(?P<bold>.+?)\*\*|\*(?P<em>[^ *][^*]*?)\*", re.S)


class ManualError(Exception):
    pass


class ManualPage:
    """One page.

    .title, .summary (its first paragraph), .anchors, .links [(page, anchor)], .body (HTML)
    """

    def __init__(self, path, source, names):
        self.path, self.names = path, names
        self.anchors, self.links, self.title, self.summary = [], [], None, ""
        self.body = self.blocks(re.sub(r"<!--.*?-->\n?", "", source, flags=re.S).split("\n"))
        if self.title is None:
            raise ManualError(f"{path}: a page begins with a heading of the first level")

    def sections(self):
        """[(level, anchor, heading, text)] of the page; heading and text without marks."""
        parts = re.split(r'<h([1-6]) id="(.*?)">(.*?)</h[1-6]>', self.body)
        return [(int(level), anchor, plain(heading), plain(body)) for level, anchor, heading, body
                in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4])]

    def html(self):
        """The page, with a list of its headings behind the first one."""
        found = "".join(f'<li class="l{level}"><a href="#{text(anchor)}">{text(heading)}</a></li>'
                        for level, anchor, heading, _ in self.sections() if level in (2, 3))
        toc = f'<nav class="toc" aria-label="Contents"><ul>{found}</ul></nav>' if found else ""
        return self.body.replace("</h1>", "</h1>" + toc, 1)

    # ---- inside a line ----

    def inline(self, source):
        html, at = "", 0
        for match in INLINE.finditer(source):
            html += text(source[at:match.start()]) + self.span(match)
            at = match.end()
        return html + text(source[at:])

    def span(self, match):
        found = match.groupdict()
        if found["code"] is not None:
            return f"<code>{text(found['code'].strip())}</code>"
        if found["escaped"] is not None:
            return text(found["escaped"])
        if found["url"] is not None:
            return f'<a href="{text(found["url"])}">{text(found["url"])}</a>'
        if found["to"] is not None:
            return self.link(self.inline(found["label"]), found["to"])
        if found["bold"] is not None:
            return f"<strong>{self.inline(found['bold'])}</strong>"
        return f"<em>{self.inline(found['em'])}</em>"

    def link(self, label, to):
        if re.match(r"https?://", to):
            return f'<a href="{text(to)}">{label}</a>'
        name, _, anchor = to.partition("#")
        page = os.path.basename(self.path)[:-3] if name == "" else name[:-3]
        if "/" not in name and page in self.names:
            self.links.append((page, anchor))
            to = (address(page) if name else "") + ("#" + anchor if anchor else "")
            return f'<a href="{text(to)}">{label}</a>'
        target = os.path.normpath(os.path.join(os.path.dirname(self.path), name))
        if not os.path.exists(target):
            raise ManualError(f"{self.path}: the link {to} leads nowhere")
        top = os.path.dirname(os.path.dirname(os.path.dirname(self.path)))
        shown = os.path.relpath(target, top)
        if re.sub("<.*?>", "", label) == shown:
            return label
        return f"{label} (<code>{text(shown)}</code>)"

    # ---- lines ----

    def blocks(self, lines):
        html, at = "", 0
        while at < len(lines):
            if lines[at].strip() == "":
                at += 1
                continue
            block, at = self.block(lines, at)
            html += block
        return html

    def block(self, lines, at):
        """The block that begins at a line: (HTML, the line behind it)."""
        heading, line = HEADING.match(lines[at]), lines[at]
        if FENCE.match(line):
            return self.code(lines, at)
        if heading:
            return self.heading(len(heading.group(1)), heading.group(2)), at + 1
        if line.startswith("|") and at + 1 < len(lines) and RULER.match(lines[at + 1]):
            return self.table(lines, at)
        if line.startswith(">"):
            end = next((n for n in range(at, len(lines)) if not lines[n].startswith(">")),
                       len(lines))
            inside = self.blocks([re.sub("^> ?", "", other) for other in lines[at:end]])
            return f"<blockquote>{inside}</blockquote>", end
        if ITEM.match(line):
            return self.list(lines, at)
        return self.paragraph(lines, at)

    def heading(self, level, source):
        html = self.inline(source)
        plain = re.sub("<.*?>|&(quot|#39|lt|gt|amp);", "", html)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        if anchor in self.anchors:
            same = re.compile(re.escape(anchor) + "(-[0-9]+)?")
            anchor += f"-{sum(same.fullmatch(a) is not None for a in self.anchors)}"
        self.anchors.append(anchor)
        if self.title is None and level == 1:
            self.title = html
        return f'<h{level} id="{text(anchor)}">{html}</h{level}>'

    def code(self, lines, at):
        fence = FENCE.match(lines[at]).group(1)
        end = next((n for n in range(at + 1, len(lines)) if lines[n].rstrip() == fence), None)
        if end is None:
            raise ManualError(f"{self.path}: a block of code has no end")
        return f"<pre>{text(chr(10).join(lines[at + 1:end]))}</pre>", end + 1

    def row(self, line, tag):
        cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        cells, name = [self.inline(c.strip().replace("\\|", "|")) for c in cells], ' class="n"'
        # A name is not cut, whatever hyphens and dots it has.
        return "<tr>" + "".join(f'<{tag}{"" if " " in plain(cell) else name}>{cell}</{tag}>'
                                for cell in cells) + "</tr>"

    def table(self, lines, at):
        end = at + 2
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        rows = "".join(self.row(line, "td") for line in lines[at + 2:end])
        return f"<table>{self.row(lines[at], 'th')}{rows}</table>", end

    def list(self, lines, at):
        first = ITEM.match(lines[at])
        indent, tag = len(first.group(1)), "ol" if first.group(2)[-1] == "." else "ul"
        html = ""
        while at < len(lines):
            item = ITEM.match(lines[at])
            if lines[at].strip() == "":
                at += 1
                continue
            if not item or len(item.group(1)) != indent:
                break
            if (item.group(2)[-1] == ".") != (tag == "ol"):
                break
            inside, at = [item.group(3)], at + 1
            while at < len(lines) and self.is_inside(lines, at, indent):
                inside.append(lines[at])
                at += 1
            html += f"<li>{self.item(inside)}</li>"
        return f"<{tag}>{html}</{tag}>", at

    @staticmethod
    def is_inside(lines, at, indent):
        """True for a line that belongs to the item before it.

        Such a line is indented, or blank before an indented one, or goes on with the paragraph.
        """
        if lines[at].strip() == "":
            rest = [line for line in lines[at:] if line.strip() != ""]
            return bool(rest) and len(rest[0]) - len(rest[0].lstrip()) > indent
        return lines[at].startswith(" " * (indent + 1)) or (
            lines[at - 1].strip() != "" and not BLOCK.match(lines[at]))

    def item(self, inside):
        margin = min((len(line) - len(line.lstrip()) for line in inside[1:]
                      if line.startswith(" ")), default=0)
        inside = inside[:1] + [line[margin:] if line.startswith(" ") else line
                               for line in inside[1:]]
        html = self.blocks(inside)
        lone = html.startswith("<p>") and html.count("<p>") == 1
        return html.replace("<p>", "", 1).replace("</p>", "", 1) if lone else html

    def paragraph(self, lines, at):
        end = at + 1
        while end < len(lines) and lines[end].strip() != "" and not BLOCK.match(lines[end]):
            end += 1
        html = self.inline(" ".join(line.strip() for line in lines[at:end]))
        self.summary = self.summary or html
        return f"<p>{html}</p>", end


def plain(html):
    """The text of HTML, in one line."""
    return " ".join(entities.unescape(re.sub("<.*?>", " ", html)).split())


def address(name):
    """The path at which a page is served. README is the start."""
    return "/docs/" if name == "README" else f"/docs/{name}.html"


def index(pages):
    """The page at the start, where no README.md is given."""
    rows = "".join(f"| [{page.title}]({name}.md) | {plain(page.summary)} |\n"
                   for name, page in pages.items())
    return f"# Manual\n\n| page | what |\n|---|---|\n{rows}"


HEAD = ('<a href="/">Status page</a> <a href="/docs/">Manual</a> '
        '<form id="search" role="search" hidden><label for="words">Search</label> '
        '<input id="words" type="search"> <span class="note" id="count" role="status"></span>'
        '</form><ol id="found" hidden></ol>')
SCRIPT = '<script src="/docs/search.js" defer></script>'
OPENAPI = '<p><a href="/docs/spec.json">OpenAPI document</a> of all listeners, as JSON.</p>'


def read(paths):
    """{name: page}, in the order in which README.md names them, itself first."""
    names = [os.path.basename(path)[:-3] for path in paths]
    pages = {}
    for name, path in sorted(zip(names, paths)):
        with open(path, encoding="utf-8") as file:
            pages[name] = ManualPage(os.path.abspath(path), file.read(), names)
    for page in pages.values():
        for name, anchor in page.links:
            if anchor and anchor not in pages[name].anchors:
                raise ManualError(f"{page.path}: {name}.md has no heading #{anchor}")
    if "README" not in pages:
        folder = os.path.dirname(os.path.abspath(paths[0]))
        pages["README"] = ManualPage(os.path.join(folder, "README.md"), index(pages), names)
    named = [name for name, _ in pages["README"].links]
    order = {name: at for at, name in reversed(list(enumerate(["README"] + named)))}
    return dict(sorted(pages.items(), key=lambda item: order.get(item[0], len(named) + 1)))


def turn(rows, at):
    """The links to the pages before and behind one."""
    html = "".join(f'<a href="{rows[n][0]}" rel="{rel}">{word}: {rows[n][1]}</a>'
                   for n, rel, word in ((at - 1, "prev", "Previous"), (at + 1, "next", "Next"))
                   if 0 <= n < len(rows))
    return f'<nav class="turn" aria-label="Turn the page">{html}</nav>'


def manual(paths):
    """{name: HTML} of the pages, and the index of their search.

    The start has the name "". The index, JSON, is [[address, page, heading, text]] of all sections.
    """
    pages = read(paths)
    rows = [(address(name), text(plain(page.title))) for name, page in pages.items()]
    made, found = {}, []
    for at, (name, page) in enumerate(pages.items()):
        to, title = rows[at][0], plain(page.title)
        main = page.html() + (OPENAPI if name == "README" else "") + turn(rows, at)
        made[to[len("/docs/"):]] = frame(title, HEAD, links(rows, to), main, SCRIPT)
        found += [[f"{to}#{anchor}", title, heading, body]
                  for _, anchor, heading, body in page.sections()]
    made["search.json"] = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return made
