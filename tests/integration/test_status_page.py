#!/usr/bin/env python3
"""The status page on the ops listener, as a client without a script sees it."""
import re
import time
import unittest

from html_page import Page
from lib import Case, Client, changed, cluster_input, eventually, guresid, run, time_text

HOSTILE = "<script>alert('1')</script> \"&\u00e4\u0007</td>"


class StatusPage(Case):
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)
    FLAGS = ("--driver-deadline-update", "1s")

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def page(self, path="/", status=200):
        """A page, checked for what holds of each; returns its text."""
        answer = self.ops.get(path)
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.header("Content-Type"), "text/html; charset=utf-8")
        policy = dict(part.strip().split(" ", 1)
                      for part in answer.header("Content-Security-Policy").split(";"))
        self.assertEqual(policy["default-src"], "'none'")
        self.assertNotIn("unsafe", answer.header("Content-Security-Policy"))
        self.assertEqual((policy["script-src"], policy["style-src"]), ("'self'", "'self'"))
        text = answer.body.decode()
        self.assertNotIn("<style", text)
        self.assertNotRegex(text, r"<script(?! src=\"/page/page\.js\" defer></script>)")
        self.assertNotRegex(text, r" (style|on\w+)=")
        self.assertIn("<main>", text)
        return text

    def rows(self, text):
        """The texts of the table rows of a page."""
        return [re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row)).strip()
                for row in re.findall(r"<tr>(.*?)</tr>", text, re.S)]

    def section(self, text, name):
        found = re.search(r'<section aria-labelledby="%s">(.*?)</section>' % name, text, re.S)
        self.assertIsNotNone(found, name)
        return found.group(1)

    def ordered(self, name=None, **kw):
        gid = guresid()
        self.expect(self.put(gid, cluster_input(name=name, nodepools=[{"name": "workers"}], **kw)),
                    202)
        return gid

    def test_no_replicas(self):
        """The only server of its data lists no replicas, and its page has no place for them."""
        self.assertEqual(self.ops.get("/admin/replicas").json, {"items": []})
        self.assertNotIn("replicas", self.page().lower())

    def test_home(self):
        """Trouble comes first, by its causes; then what is under way with its adapters,
        the adapters, and the last day.
        """
        failed, degraded, working = self.ordered(), self.ordered(), self.ordered("page-one")
        self.fleet.ready(failed)
        self.fleet.ready(degraded)
        self.expect(self.put(failed, changed(cluster_input(nodepools=[{"name": "workers"}]))), 202)
        self.fleet.accepted(self.fleet.cluster_of(degraded), "dns", available=False,
                            reason="ZoneLost", message="the zone is gone")
        self.fleet.accepted(self.fleet.cluster_of(working), "validation")
        text = eventually(lambda: (lambda t: t if "FAILED" in t and "RES-105" in t else None)(
            self.page()), "the update has failed")
        needs = self.rows(self.section(text, "needs"))
        self.assertTrue(any(r.startswith("FAILED update hf-%s %s " % (failed, failed)) and
                            "validation DeadlineExceeded RES-105" in r
                            for r in needs), needs)
        self.assertTrue(any(r.startswith("DEGRADED hf-" + degraded) and "the zone is gone" in r
                            for r in needs), needs)
        self.assertFalse(any(working in r for r in needs), needs)
        lines = [re.sub(r"<[^>]*>", "", line)
                 for line in re.findall(r"<summary>(.*?)</summary>", text)]
        self.assertRegex(lines[0], r"^FAILED 1 validation DeadlineExceeded the oldest \d+ s ago: "
                                   r"has reported on generation 1 of 2$")
        self.assertIn("DEGRADED 1 dns ZoneLost", lines[1])
        way = self.section(text, "way")
        row = next(r for r in self.rows(way) if working in r)
        for word in ("creating", "page-one", "of about", "validation \u2713 done",
                     "dns - has not reported", "workers/validation"):
            self.assertIn(word, row)
        self.assertIn("<progress ", way)
        adapters = self.rows(self.section(text, "adapters"))
        self.assertTrue(any(r.startswith("dns clusters") and "1 not" in r for r in adapters),
                        adapters)
        self.assertIn("<svg ", self.section(text, "adapters"))
        day = self.section(text, "day")
        self.assertIn("ordered", day)
        self.assertIn(">hf-%s</a> <code class=\"dim\">%s</code>" % (failed, failed), day)
        order = [text.index('id="%s"' % i) for i in ("adapters", "needs", "way", "day")]
        self.assertEqual(order, sorted(order))
        self.assertIn('href="/docs"', text)
        self.assertIn('href="/metrics"', text)

    def test_last_day(self):
        """Orders of the last day, and how long half and nearly all of them took."""
        counts = lambda: re.sub(r"<[^>]*>", " ", re.search(
            r'<ul class="counts" aria-label="The last 24 hours">(.*?)</ul>', self.page(),
            re.S).group(1)).split()
        was = counts()
        self.assertEqual(was[:4], ["orders", "in", "24", "h"])
        gid = self.ordered()
        self.assertEqual(int(counts()[4]), int(was[4]) + 1)
        self.fleet.ready(gid)
        now = " ".join(counts())
        self.assertRegex(now, r"^orders in 24 h \d+ an hour \d\.\d until ready, p50 .+ p95 .+$")

    def test_plots(self):
        """Orders, failures and times until ready stand as plots with their numbers, each over a day
        and a week. A plot without data is a sentence.
        """
        gid = self.ordered()
        self.fleet.ready(gid)
        self.changed_until_failed(gid)
        plots = self.section(self.page(), "plots")
        for what in ("Orders", "Failures", "Until ready"):
            for times, bar in (("24 hours", "hour"), ("7 days", "6 hours")):
                picture = re.search(
                    "<figcaption>%s, last %s: ([^<]+)</figcaption><svg class=\"plot\" role=\"img\""
                    "[^>]*><title>%s, last %s</title><desc>One bar for each %s, [^<]+</desc>"
                    "(.*?)</svg>" % ((what, times) * 2 + (bar,)), plots)
                self.assertIsNotNone(picture, (what, times, plots))
                self.assertRegex(picture.group(1), r"^p50 .+ \(bar\), p95 .+ \(line\)$"
                                 if what[0] == "U" else r"^[1-9]\d*$")
                self.assertIn('<rect class="bar', picture.group(2))
                self.assertIn(">%s ago</text>" % times, picture.group(2))
                for x, y, width, height in re.findall(
                        r'x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/>', picture.group(2)):
                    self.assertLessEqual(int(x) + int(width), 360)
                    self.assertLessEqual(18, int(y))
                    self.assertLessEqual(int(y) + int(height), 108)
        self.assertRegex(plots, "The data begins <time [^>]*>[^<]+ ago</time>")

    def changed_until_failed(self, gid):
        """A change that passes its deadline."""
        self.expect(self.put(gid, changed(cluster_input(nodepools=[{"name": "workers"}]))), 202)
        eventually(lambda: self.get(gid).status == 400, "its deadline has passed")

    def test_times(self):
        """A relative time has the absolute one as its title."""
        self.ordered()
        text = self.page()
        found = re.search(r'<time datetime="([^"]+)" title="([^"]+)">[^<]+ ago</time>', text)
        self.assertIsNotNone(found)
        self.assertEqual(found.group(1), found.group(2))
        days = {time_text(time.time_ns() // 1000 - s * 1000000)[:11] for s in (0, 600)}
        self.assertIn(found.group(1)[:11], days)

    def test_resource(self):
        """A resource has its state, adapters, life, conditions, nodepools, order and commands."""
        gid = self.ordered("page-two", labels={"app": "shop"}, secrets={"token": "c4nary"})
        self.fleet.ready(gid)
        text = self.page("/r/" + gid)
        for word in ("page-two", gid, "ready", "shop", "nodepool workers", "Reconciled",
                     "DnsSuccessful", "&quot;region&quot;", "curl -s http://"):
            self.assertIn(word, text)
        life = self.section(text, "life")
        self.assertLess(life.index("ordered"), life.index("ready"))
        self.assertNotIn("c4nary", text)
        self.expect(self.delete(gid), 202)
        self.fleet.finish_delete(gid)
        self.assertIn("removed", self.page("/r/" + gid), "it was removed lately")

    def test_hostile_texts(self):
        """Names, messages and searches are escaped everywhere."""
        gid = self.ordered(labels={"note": HOSTILE.replace("\u0007", "")},
                           spec={"x": HOSTILE})
        self.fleet.ready(gid)
        self.fleet.accepted(self.fleet.cluster_of(gid), "dns", available=False,
                            reason="ZoneLost", message=HOSTILE)
        for path in ("/", "/r/" + gid, "/?search=%3Cscript%3Ealert(1)%3C/script%3E"):
            text = self.page(path)
            self.assertNotIn("<script>alert", text)
            self.assertIn("&lt;script&gt;alert", text)
            page = Page(re.sub(r"<(input|link|progress|rect)[^>]*>(</progress>)?", "", text))
            self.assertEqual(page.open, [])

    def test_lists(self):
        """A search and a state give a list; a token goes on; a wrong state is 400."""
        gids = [self.ordered("list-%d" % i) for i in range(3)]
        text = self.page("/?search=list-1")
        self.assertIn(gids[1], text)
        self.assertNotIn(gids[0], text)
        self.assertIn(gids[2], self.page("/?state=creating"))
        self.assertIn(gids[2], self.page("/?who=validation&reason=NotReported"))
        self.assertNotIn(gids[2], self.page("/?who=dns"))
        self.assertNotIn(gids[2], self.page("/?degraded=true"))
        self.assertIn("No resource matches.", self.page("/?search=nothing-like-it"))
        self.assertEqual(self.ops.get("/?state=lost").status, 400)
        self.assertEqual(self.ops.get("/?after=nonsense").status, 400)

    def test_files_and_absent_pages(self):
        """The page loads a style and a script of at most 60 lines; others are 404."""
        script = self.ops.get("/page/page.js")
        self.assertEqual(script.header("Content-Type"), "text/javascript; charset=utf-8")
        self.assertLessEqual(len(script.body.splitlines()), 60)
        self.assertEqual(self.ops.get("/page/style.css").header("Content-Type"),
                         "text/css; charset=utf-8")
        self.assertEqual(self.ops.get("/page/other.css").status, 404)
        for gid in ("none", "a%3Cb", "x" * 300):
            self.assertIn("There is no such resource", self.page("/r/" + gid, 404))
        self.assertEqual(self.client.get("/page/page.js").status, 404, "not on the main listener")


class Unused(Case):
    def test_no_plots(self):
        """Before the first order one sentence stands in the place of the plots."""
        ops = Client(self.server, ops=True)
        self.addCleanup(ops.close)
        text = ops.get("/").body.decode()
        self.assertIn("Nothing was ordered in the last 7 days.", text)
        self.assertNotIn("<svg", text)


class Problems(Case):
    """One list of what is wrong now: the page, /healthz, the API, `status` and the metric."""

    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    def setUp(self):
        super().setUp()
        self.ops = Client(self.server, ops=True)
        self.addCleanup(self.ops.close)

    def health(self):
        return self.ops.get("/healthz").json

    def until(self, names, what, status):
        """Waits for problems by (kind, name); returns their list."""
        def seen():
            doc = self.health()
            found = [(p["kind"], p["name"]) for p in doc.get("problems", [])]
            return (doc["status"], sorted(found)) == (status, sorted(names)) and doc
        return eventually(seen, what).get("problems", [])

    def test_adapters(self):
        """An adapter that never reported is told from the start, and degrades the server while an
        order waits. One that is not required is told with the name that it may mean.
        """
        silent = [("adapter_silent", "validation"), ("adapter_silent", "dns")]
        self.until(silent, "both are silent", "ok")
        line = "problem   adapter_silent dns: is required, and has never reported; since "
        if not self.server.place.base:  # on PostgreSQL doctor reads the database alone
            done = run("doctor", "--data", self.server.data)
            self.assertIn(line, done.stdout)
            self.assertTrue(done.stdout.endswith("\n2 problems, and no order waits\n"),
                            done.stdout)
            self.assertEqual(done.returncode, 0)
        gid = guresid()
        self.expect(self.put(gid, cluster_input()), 202)
        listed = self.until(silent, "an order waits", "degraded")
        self.assertEqual([p["waiting"] for p in listed], [1, 1])
        self.assertEqual(self.client.get("/api/driver/v1/problems").json,
                         {"status": "degraded", "items": listed})
        text = self.ops.get("/").body.decode()
        needs = text[text.index('id="needs"'):text.index('id="way"')]
        self.assertIn("ADAPTER SILENT</span> <b>dns</b> is required, and has never reported", needs)
        self.assertIn("1 waits", needs)
        self.assertIn('href="/docs/runbook.html#hyperfleetdriveradaptersilent"', needs)
        self.assertIn('id="hyperfleetdriveradaptersilent"',
                      self.ops.get("/docs/runbook.html").body.decode())
        self.assertIn('hfd_problem{kind="adapter_silent",name="dns"} 1\n',
                      self.ops.get("/metrics").body.decode())
        shown = run("status", "--url", "http://127.0.0.1:%d/" % self.server.port).stdout
        self.assertRegex(shown, r"ADAPTER SILENT dns for .*: is required, and has never reported; "
                                r"1 waits\n")
        if not self.server.place.base:
            done = run("doctor", "--data", self.server.data)
            self.assertIn(line, done.stdout)
            self.assertEqual(done.returncode, 3)
        cluster = self.fleet.cluster_of(gid)
        self.fleet.accepted(cluster, "dsn")
        self.fleet.accepted(cluster, "validation")
        listed = self.until([("adapter_silent", "dns"), ("adapter_not_required", "dsn")],
                            "validation has reported", "degraded")
        self.assertIn("did you mean dns?", listed[1]["message"])
        self.fleet.accepted(cluster, "dns")
        self.until([("adapter_not_required", "dsn")], "dns has reported", "ok")
        self.assertIn('hfd_problem{kind="adapter_silent",name="dns"} 0\n',
                      self.ops.get("/metrics").body.decode())


if __name__ == "__main__":
    unittest.main()
