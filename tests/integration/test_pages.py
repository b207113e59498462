"""The pages that the build makes, and the manual that the ops listener serves. Sources:
handlers/http/*.py, handlers/docs.
"""
import glob
import html
import os
import re
import shlex
import sys
import tempfile
import unittest

from html_page import Page
from lib import BASE, Case, Client

ROOT = os.environ["HFD_SOURCE_DIR"]
sys.path.insert(0, os.path.join(ROOT, "handlers", "http"))

from manual import ManualError, ManualPage, manual  # noqa: E402
from openapi_page import OpenapiPage  # noqa: E402

ATTACK = "<script>x</script>&\"onload='y'"


class OpenapiScript(unittest.TestCase):
    # Every text of a document is text on the page, never markup.
    def test_texts_are_escaped(self):
        evil = {"type": ATTACK, "description": ATTACK, "properties": {ATTACK: {"type": ATTACK}},
                "items": {"type": ATTACK},
                "additionalProperties": {"type": ATTACK}}
        param = {"name": ATTACK, "in": ATTACK, "description": ATTACK, "example": ATTACK,
                 "schema": {"type": ATTACK, "enum": [ATTACK], "pattern": ATTACK, "default": ATTACK}}
        content = {ATTACK: {"schema": {"$ref": "#/components/schemas/" + ATTACK},
                            "example": {ATTACK: ATTACK}}}
        operation = {"operationId": ATTACK, "tags": [ATTACK], "summary": ATTACK,
                     "description": ATTACK, "parameters": [param],
                     "requestBody": {"content": content},
                     "responses": {ATTACK: {"description": ATTACK,
                                            "headers": {ATTACK: {"description": ATTACK}}}}}
        page = OpenapiPage({"info": {"title": ATTACK, "version": ATTACK, "description": ATTACK},
                            "tags": [{"name": ATTACK, "description": ATTACK}],
                            "paths": {ATTACK: {"get": operation}},
                            "components": {"schemas": {ATTACK: evil}}})
        page = "".join(page.pages().values())
        self.assertIn("&lt;script&gt;x&lt;/script&gt;&amp;&quot;onload=&#39;y&#39;", page)
        for markup in ("<script", '"onload', "onload='"):
            self.assertNotIn(markup, page)

    # A schema that contains itself is shown to a depth.
    def test_commands(self):
        """Each operation has a command that a shell takes: method, address, and the example."""
        page = OpenapiPage({
            "info": {"title": "t", "version": "1"}, "tags": [{"name": "a"}],
            "servers": [{"url": "http://h:1"}],
            "paths": {"/{id}/x": {
                "get": {"operationId": "g", "tags": ["a"], "parameters": [
                    {"name": "id", "in": "path", "example": "7"}]},
                "put": {"operationId": "p", "tags": ["a"], "parameters": [
                    {"name": "id", "in": "path"}], "requestBody": {"content": {"j": {
                        "schema": {}, "example": {"a": "it's"}}}}}}},
            "components": {"schemas": {}}}).pages()["a.html"]
        commands = [html.unescape(c) for c in re.findall(
            r'<h3>curl</h3><pre tabindex="0">(.*?)</pre>', page)]
        self.assertEqual([shlex.split(c) for c in commands],
                         [["curl", "-s", "http://h:1/7/x"],
                          ["curl", "-s", "-X", "PUT", "http://h:1/ID/x", "-d", '{"a": "it\'s"}']])

    def test_a_deep_schema_ends(self):
        deep = {}
        for _ in range(200):
            deep = {"properties": {"x": deep}}
        page = OpenapiPage({"info": {"title": "t", "version": "1"}, "tags": [], "paths": {},
                            "components": {"schemas": {"Deep": deep}}})
        self.assertLess(len(page.pages()["schemas.html"]), 20000)


class ManualScript(unittest.TestCase):
    MARKDOWN = (
        ("# T\n\none\ntwo", '<h1 id="t">T</h1><p>one two</p>'),
        ("# T\n## A `b` (c)\n## A `b` (c)",
         '<h1 id="t">T</h1><h2 id="a-b-c">A <code>b</code> (c)</h2><h2 id="a-b-c-1">A '
         '<code>b</code> (c)</h2>'),
        ("# T\n**a `*` b** *c* d_e_f \\*g\\*",
         '<h1 id="t">T</h1><p><strong>a <code>*</code> b</strong> <em>c</em> d_e_f *g*</p>'),
        ("# T\n```sh\n<a> # no heading\n\n- x\n```\nend",
         '<h1 id="t">T</h1><pre>&lt;a&gt; # no heading\n\n- x</pre><p>end</p>'),
        ("# T\n- a\n  more\n- b\n  - c\n\n- d",
         '<h1 id="t">T</h1><ul><li>a more</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>'),
        ("# T\n1. a\n\n   ```\n   x\n     y\n   ```\n2. b",
         '<h1 id="t">T</h1><ol><li>a<pre>x\n  y</pre></li><li>b</li></ol>'),
        ("# T\n| a | b |\n|---|:-:|\n| `x\\|y` | <z> |",
         '<h1 id="t">T</h1><table><tr><th class="n">a</th><th class="n">b</th></tr>'
         '<tr><td class="n"><code>x|y</code></td><td class="n">&lt;z&gt;</td></tr></table>'),
        ("# T\n> a\n> b\n\n<!-- c\n  x -->\ne",
         '<h1 id="t">T</h1><blockquote><p>a b</p></blockquote><p>e</p>'),
        ("# T\n[l](other.md) [m](other.md#h) [n](#t) <https://a/b> [`o`](https://c)",
         '<h1 id="t">T</h1><p><a href="/docs/other.html">l</a> <a href="/docs/other.html#h">m</a> '
         '<a href="#t">n</a> '
         '<a href="https://a/b">https://a/b</a> <a href="https://c"><code>o</code></a></p>'),
        ("# T\n[the build](../../CMakeLists.txt) [`dev`](../../dev)",
         '<h1 id="t">T</h1><p>the build (<code>CMakeLists.txt</code>) <code>dev</code></p>'),
        ("# T\n" + ATTACK,
         '<h1 id="t">T</h1><p>&lt;script&gt;x&lt;/script&gt;&amp;&quot;onload=&#39;y&#39;</p>'),
    )

    def test_markdown(self):
        for source, html in self.MARKDOWN:
            self.assertEqual(ManualPage(os.path.join(ROOT, "handlers/docs/page.md"), source,
                                        ["page", "other"]).body, html, source)

    # A page that would mislead its reader ends the build.
    def test_what_ends_the_build(self):
        for source, reason in (("no heading", "begins with a heading"),
                               ("# T\n```\nx", "has no end"), ("# T\n[a](no.md)", "leads nowhere"),
                               ("# T\n[a](page.md#no)", "no heading #no"),
                               ("# T\n[a](#no)", "no heading #no")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "page.md")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
                with self.assertRaisesRegex(ManualError, reason):
                    manual([path])


class Served(Case):
    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def page(self, path):
        answer = self.ops.get(path)
        self.assertEqual((answer.status, answer.header("Content-Type")),
                         (200, "text/html; charset=utf-8"), path)
        return Page(answer.body.decode("utf-8"))

    # Each page is well made. It runs and loads nothing but its search. Each of its links leads to a
    # page and a place on it.
    def test_pages_and_their_links(self):
        policy = self.client.get(BASE + "/openapi.html").header("Content-Security-Policy")
        sources = [os.path.basename(p)[:-3]
                   for p in glob.glob(os.path.join(ROOT, "handlers/docs/*.md"))]
        paths = ["/docs/"] + ["/docs/%s.html" % name for name in sources if name != "README"]
        pages = {path: self.page(path) for path in paths}
        for path, page in pages.items():
            self.assertEqual(self.ops.get(path).header("Content-Security-Policy"),
                             policy + "; script-src 'self'; connect-src 'self'")
            self.assertEqual(page.open, [], path)
            self.assertEqual(len(page.ids), len(set(page.ids)), path)
            self.assertEqual(page.tags & {"img", "link", "iframe", "object", "base"}, set(), path)
            self.assertEqual(page.sources, ["/docs/search.js"], path)
            self.assertEqual({a for a in page.attributes if a.startswith("on")
                              or a in ("style", "action")}, set(), path)
            for href in page.hrefs:
                to, _, anchor = href.partition("#")
                if re.match("https?://", to):
                    continue
                if anchor:
                    self.assertIn(anchor, pages[to or path].ids, "%s: %s" % (path, href))
                else:
                    self.assertEqual(self.ops.get(to).status, 200, "%s: %s" % (path, href))
        for path in paths:
            self.assertIn(path, pages["/docs/"].hrefs + ["/docs/"], "the start links every page")

    def test_ways_between_pages(self):
        """A page lists its headings and all pages; "Next" leads through all of them and back."""
        path, way = "/docs/", []
        while path:
            text = self.ops.get(path).body.decode("utf-8")
            self.assertIn('href="%s" aria-current="page"' % path, text)
            back = re.search(r'<a href="([^"]+)" rel="prev"', text)
            self.assertEqual(back and back.group(1), way[-1] if way else None)
            beside = re.search(r'<nav class="beside".*?</nav>', text).group(0)
            self.assertEqual(len(re.findall("<li>", beside)),
                             len(glob.glob(os.path.join(ROOT, "handlers/docs/*.md"))))
            for level, anchor in re.findall(r'<h([23]) id="([^"]+)"', text):
                self.assertIn('<li class="l%s"><a href="#%s">' % (level, anchor), text)
            self.assertIn('<a href="/">Status page</a>', text)
            way.append(path)
            path = (re.search(r'<a href="([^"]+)" rel="next"', text) or [None, None])[1]
        self.assertEqual(way[1], "/docs/install.html", "in the order of README.md")
        self.assertEqual(len(set(way)), len(glob.glob(os.path.join(ROOT, "handlers/docs/*.md"))))

    def test_start_of_the_main_listener(self):
        """"/" tells a browser where the pages are. For all others it is no path."""
        chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        for accept in (chrome, "text/html, application/json"):
            answer = self.client.request("GET", "/", None, {"Accept": accept})
            self.assertEqual((answer.status, answer.header("Content-Type")),
                             (200, "text/html; charset=utf-8"))
            page = Page(answer.body.decode("utf-8"))
            self.assertEqual((page.open, page.tags & {"script", "img", "link"}), ([], set()))
            self.assertIn("<code>http://127.0.0.1:%d/</code>" % self.server.ops_port,
                          answer.body.decode("utf-8"))
            self.assertNotIn("script-src", answer.header("Content-Security-Policy"))
            for href in page.hrefs:
                self.assertEqual(self.client.get(href).status, 200, href)
        self.assertEqual(self.client.request("HEAD", "/", None, {"Accept": chrome}).status, 200)
        for accept in (None, "*/*", "application/json", "application/json, text/html;q=0.1"):
            answer = self.client.request("GET", "/", None, accept and {"Accept": accept})
            self.assertEqual((answer.status, answer.json["error"]), (404, "RES-101"), accept)
        for method in ("PUT", "POST", "DELETE"):
            answer = self.client.request(method, "/", b"{}", {"Accept": chrome})
            self.assertEqual((answer.status, answer.json["error"]), (404, "RES-101"), method)
        self.assertEqual(self.client.request("GET", "/x/y/z", None, {"Accept": chrome}).status, 404)

    def test_no_icon(self):
        """A browser that asks for the icon of the ops listener leaves no 404 in the log."""
        answer = self.ops.get("/favicon.ico")
        self.assertEqual((answer.status, answer.body), (204, b""))

    def test_search(self):
        """The index has each section of the manual. The script is short, and a file of its own."""
        index = self.ops.get("/docs/search.json")
        self.assertEqual(index.header("Content-Type"), "application/json")
        for to, page, heading, text in index.json:
            path, _, anchor = to.partition("#")
            self.assertNotIn("<", page + heading)
            self.assertIsInstance(text, str)
            self.assertIn(anchor, self.page(path).ids)
        places = {row[0] for row in index.json}
        for path in {place.partition("#")[0] for place in places} | {"/docs/metrics.html"}:
            text = self.ops.get(path).body.decode("utf-8")
            for anchor in re.findall(r'<h[23] id="([^"]+)"', text):
                self.assertIn(path + "#" + anchor, places)
        self.assertEqual(len({place.partition("#")[0] for place in places}),
                         len(glob.glob(os.path.join(ROOT, "handlers/docs/*.md"))))
        script = self.ops.get("/docs/search.js")
        self.assertEqual(script.header("Content-Type"), "text/javascript; charset=utf-8")
        self.assertLessEqual(script.body.count(b"\n"), 60)
        self.assertNotIn(b"innerHTML", script.body)
        self.assertIn('<form id="search" role="search" hidden>',
                      self.ops.get("/docs/").body.decode("utf-8"))

    def test_methods_and_paths(self):
        for path in ("/docs", "/docs/"):
            self.assertEqual(self.ops.get(path).status, 200)
            head = self.ops.request("HEAD", path)
            self.assertEqual((head.status, head.body), (200, b""))
            self.assertEqual(self.ops.request("POST", path).status, 405)
        for path in ("/docs/none.html", "/docs/README.html", "/docs/operate", "/docs/operate.md",
                     "/docs/..", "/docs/../livez",
                     "/docs/%2e%2e", "/docs/./operate.html", "/docs/operate.html/x",
                     "/docs//operate.md", "/docs/..%5coperate.html"):
            answer = self.ops.get(path)
            self.assertEqual((answer.status, answer.header("Content-Type")),
                             (404, "application/json"), path)
        for path in ("/docs/%2e%2e%2fREADME.md", "/docs/operate.html%00"):
            self.assertEqual(self.ops.get(path).status, 400, path)
        self.assertEqual(self.client.get("/docs/operate.html").status, 404)


if __name__ == "__main__":
    unittest.main()
