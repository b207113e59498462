#!/usr/bin/env python3
"""The pages in Chromium. The status page renews itself and takes the keyboard. Status page, manual
and OpenAPI pages fit each width, and axe-core finds nothing.

HFD_PAGE_PICTURES names a folder for screenshots.
"""
import hashlib
import json
import os
import re
import unittest

import real
from lib import BASE, Case, changed, cluster_input, eventually, guresid, run
from pacemaker import document, lost_fencing, time_at

WIDTHS = (420, 1440)
SCHEMES = ("light", "dark")
# The cells without a blank or an element of a line of its own, whose text stands on several lines.
CUT_WORDS = """
return [...document.querySelectorAll("td,th")].filter(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const lines = [...range.getClientRects()].filter(r => r.width > 1).map(r => r.top);
    return !/\\s/.test(cell.textContent.trim()) && !cell.querySelector("br,p,div,span") &&
        Math.max(...lines) - Math.min(...lines) > 12;
}).map(cell => cell.textContent)"""


class Browsed(Case):
    """A server and Chromium."""
    ADAPTERS = ("validation", "dns")
    POOL_ADAPTERS = ("validation",)

    @classmethod
    def setUpClass(cls):
        chromium = real.debian("chromium")
        driver = real.debian("chromedriver", "chromium-driver")
        try:
            from selenium import webdriver
            from selenium.webdriver.chrome.service import Service
        except ImportError:
            real.skip("selenium is not installed: apt-get install python3-selenium")
        super().setUpClass()
        cls.addClassCleanup(cls.server.close)
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service(driver), options=options)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def tearDownClass(cls):
        pass  # by cleanups, as a skipped class has no server

    def setUp(self):
        super().setUp()
        self.url = "http://127.0.0.1:%d" % self.server.ops_port

    def main(self):
        """The text of the page; empty while a new page is on its way."""
        return self.browser.execute_script(
            "var m = document.querySelector('main'); return m ? m.innerText : ''")

    def look(self, path, width, scheme):
        cdp = self.browser.execute_cdp_cmd
        cdp("Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
        cdp("Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.browser.get(self.url + path if path.startswith("/") else path)


class InChromium(Browsed):
    def setUp(self):
        super().setUp()
        self.gid = guresid()
        self.name = "page-" + self.gid.rsplit("-", 1)[1]
        self.expect(self.put(self.gid, cluster_input(self.name, nodepools=[{"name": "workers"}])),
                    202)
        done = guresid()
        self.expect(self.put(done, cluster_input()), 202)
        self.fleet.ready(done)  # for the plots

    def test_renews_itself(self):
        """The page shows a change without a reload; the button pauses it; no error is logged."""
        self.look("/", 1300, "light")
        self.browser.execute_script("window.mark = 1")
        self.assertIn(self.name, self.main())
        self.fleet.accepted(self.fleet.cluster_of(self.gid), "validation")
        eventually(lambda: "validation \u2713 done" in self.main(), "a renewed page")
        self.browser.find_element("id", "pause").click()
        self.assertEqual(self.browser.find_element("id", "pause").text, "Go on")
        self.assertEqual(self.browser.execute_script("return window.mark"), 1)
        self.assertEqual([e for e in self.browser.get_log("browser") if e["level"] == "SEVERE"],
                         [])

    def test_clicks_and_keys(self):
        """Tab reaches the links in order; Enter opens a resource; its page leads back."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
        self.look("/", 1300, "light")
        body = self.browser.find_element(By.TAG_NAME, "body")
        for _ in range(40):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            href = self.browser.switch_to.active_element.get_attribute("href") or ""
            if href.endswith("/r/" + self.gid):
                break
        else:
            self.fail("Tab does not reach the resource from %r" % body)
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        eventually(lambda: self.browser.current_url.endswith("/r/" + self.gid), "the resource")
        eventually(lambda: "has not reported" in self.main(), "its text")
        self.browser.find_element(By.LINK_TEXT, "hyperfleet-driver").click()
        self.browser.find_element(By.ID, "search").send_keys(self.name, Keys.ENTER)
        eventually(lambda: "search=" + self.name in self.browser.current_url, "a search")
        eventually(lambda: self.gid in self.main(), "what was found")

    def test_fits(self):
        """Nothing is wider than the window, in both colour schemes."""
        folder = os.environ.get("HFD_PAGE_PICTURES")
        for path in ("/", "/r/" + self.gid):
            for width in WIDTHS:
                for scheme in SCHEMES:
                    self.look(path, width, scheme)
                    wide = self.browser.execute_script(
                        "return document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, (path, width, scheme))
                    if folder:
                        self.browser.save_screenshot(os.path.join(folder, "%s-%d-%s.png" % (
                            "resource" if len(path) > 1 else "home", width, scheme)))

    def pages(self):
        """The addresses of all pages, with one resource."""
        api = "http://127.0.0.1:%d/api/hyperfleet/v1/openapi.html" % self.server.port
        found = ["/", "/r/" + self.gid, "/?order=trouble", api, api[:api.index("/api")]]
        for start in ("/docs/", api):
            self.look(start, 1440, "light")
            found += self.browser.execute_script(
                "return [...document.querySelectorAll('.beside a')].map(a => a.href)")
        return found

    def test_whole_words(self):
        """No cell of one word stands on two lines. No page is wider than the window, and none is
        without end.
        """
        for path in self.pages():
            for width in WIDTHS:
                with self.subTest(path=path, width=width):
                    self.look(path, width, "light")
                    self.assertEqual(self.browser.execute_script(CUT_WORDS), [])
                    self.assertLessEqual(self.browser.execute_script(
                        "return document.documentElement.scrollWidth"), width)
                    self.assertLess(self.browser.execute_script(
                        "return document.documentElement.scrollHeight"), 50000)

    def test_search_of_the_manual(self):
        """The search lists sections, headings first; its links lead there. The
        browser logs no error. The list of pages is beside the text, or above it.
        """
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.keys import Keys
        self.look("/docs/operate.html", 1440, "light")
        box = self.browser.find_element(By.ID, "words")
        box.send_keys("rotate keys")
        eventually(lambda: "found" in self.browser.find_element(By.ID, "count").text, "hits")
        links = self.browser.find_elements(By.CSS_SELECTOR, "#found a")
        self.assertIn("keys", links[0].text.lower())
        box.send_keys(" nowordlikethis")
        eventually(lambda: self.browser.find_element(By.ID, "count").text == "0 found", "none")
        box.clear()
        box.send_keys("prometheus", Keys.ENTER)
        eventually(lambda: self.browser.find_elements(By.CSS_SELECTOR, "#found a"), "hits")
        to = self.browser.find_element(By.CSS_SELECTOR, "#found a")
        href = to.get_attribute("href")
        to.click()
        eventually(lambda: self.browser.current_url == href, "the section")
        self.assertEqual([e for e in self.browser.get_log("browser") if e["level"] == "SEVERE"],
                         [])
        where = ("var a = document.querySelector('.beside').getBoundingClientRect(), "
                 "b = document.querySelector('main').getBoundingClientRect();"
                 "return [a.right <= b.left, a.bottom <= b.top]")
        for width, places in ((1440, [True, False]), (420, [False, True])):
            self.look("/docs/operate.html", width, "light")
            self.assertEqual(self.browser.execute_script(where), places)

    def test_axe(self):
        """axe-core finds no violation."""
        path = real.npm_package(("axe-core@4.10.2",), "node_modules/axe-core/axe.min.js")
        with open(path, encoding="utf-8") as f:
            axe = f.read()
        api = "http://127.0.0.1:%d/api/hyperfleet/v1/openapi" % self.server.port
        for page in ("/", "/r/" + self.gid, "/?order=trouble", "/docs/", "/docs/operate.html",
                     "/docs/settings.html", api + ".html", api + "/driver.html",
                     api[:api.index("/api")]):
            for scheme in SCHEMES:
                self.look(page, 1300, scheme)
                self.browser.execute_script(axe)
                found = self.browser.execute_async_script(
                    "var done = arguments[0]; axe.run().then(done, function (e) {"
                    "done({violations: [{id: String(e), nodes: []}]}); });")
                self.assertEqual([(v["id"], [n["html"] for n in v["nodes"]])
                                  for v in found["violations"]], [], json.dumps((page, scheme)))
                self.assertGreater(len(found["passes"]), 10)


class Crowded(Browsed):
    """300 resources in trouble, of every kind."""
    ADAPTERS = ("validation", "dns", "hypershift")
    FLAGS = ("--driver-estimate-create", "10s", "--driver-estimate-delete", "10s",
             "--driver-deadline-update", "10m", "--adapters-pacemaker", "pacemaker")
    # Number, the word of the group, its cause.
    GROUPS = ((75, "FAILED", "dns DeadlineExceeded"), (16, "FAILED", "hypershift QuotaExceeded"),
              (14, "FAILED", "validation InvalidConfiguration"), (65, "STUCK", "dns NotReported"),
              (60, "STUCK", "hypershift OldGeneration"),
              (38, "STUCK", "hypershift EtcdWaitingForQuorum"), (20, "DEGRADED", "dns ZoneLost"),
              (12, "DEGRADED", "pacemaker PacemakerUnhealthy"))

    def later(self, by_s):
        """Starts the server again with a clock that is ahead: driver/base/steady.h."""
        self.assertEqual(self.server.sigterm(), 0)
        path = os.path.join(self.server.data, "clock")
        with open(path, encoding="ascii") as f:
            boot, offset, check = f.read().split()
        line = "%s %d" % (boot, int(offset) + by_s * 1000000)
        made = hashlib.blake2b(line.encode(), digest_size=16).hexdigest()[:len(check)]
        with open(path, "w", encoding="ascii") as f:
            f.write("%s %s\n" % (line, made))
        self.server.start()
        self.url = "http://127.0.0.1:%d" % self.server.ops_port

    def order(self):
        """Orders a resource; returns its GUResID, its cluster and its order."""
        gid = guresid("crowd")
        order = cluster_input("search-staging-" + gid.rsplit("-", 1)[1], nodepools=[])
        self.expect(self.put(gid, order), 202)
        return gid, self.cluster(gid), order

    def cluster(self, gid):
        detail = self.client.get("/api/driver/v1/resources/" + gid).json
        return self.fleet.get({"href": BASE + "/clusters/" + detail["cluster_id"]})

    def make(self, cause, done):
        """Makes a resource that will be in trouble by a cause."""
        gid, cluster, order = self.order()
        adapter, reason = cause.split()
        for name in self.ADAPTERS if done else self.ADAPTERS[:self.ADAPTERS.index(adapter)]:
            self.fleet.accepted(cluster, name)
        if reason == "DeadlineExceeded":
            self.expect(self.put(gid, changed(order)), 202)
            self.fleet.accepted(self.cluster(gid), "validation")
        elif reason == "OldGeneration":
            self.expect(self.delete(gid), 202)
            for name in ("validation", "dns"):
                self.fleet.report(self.fleet.get(cluster), name, finalized=True)
        elif reason != "NotReported":
            self.fleet.accepted(cluster, adapter, available=False, reason=reason,
                                message="12 of 24 cores are left, and 16 are needed")

    def test_trouble_is_one_screen(self):
        """Equal troubles are one line, and no kind takes the place of another. A line opens to ten
        rows, and leads to all.
        """
        from selenium.webdriver.common.by import By
        ready = ("dns DeadlineExceeded", "hypershift OldGeneration", "dns ZoneLost")
        for count, _, cause in self.GROUPS[:-1]:
            for _ in range(count):
                self.make(cause, cause in ready)
        self.later(1200)
        for _ in range(self.GROUPS[-1][0]):  # a document must be new
            gid, cluster, _ = self.order()
            self.fleet.make_ready(cluster)
            self.fleet.accepted(cluster, "pacemaker", data={
                "pacemakerCluster": lost_fencing(document(updated=time_at(1200)))})
        self.look("/", 1440, "light")
        eventually(lambda: "75 dns DeadlineExceeded" in self.main(), "the deadlines have passed")
        groups = self.browser.find_elements(By.CSS_SELECTOR, "details")
        lines = [g.find_element(By.TAG_NAME, "summary") for g in groups]
        self.assertEqual([" ".join(line.text.split()[:4]) for line in lines],
                         ["%s %d %s" % (word, count, cause) for count, word, cause in self.GROUPS])
        self.assertEqual([bool(g.get_attribute("open")) for g in groups],
                         [True] + [False] * (len(groups) - 1))
        bottom = self.browser.execute_script(
            "return document.getElementById('needs').parentNode.getBoundingClientRect().bottom")
        self.assertLessEqual(bottom, 1000)
        folder = os.environ.get("HFD_PAGE_PICTURES")
        for width in WIDTHS if folder else ():
            self.look("/", width, "light")
            self.browser.save_screenshot(os.path.join(folder, "crowd-%d.png" % width))
        self.look("/", 1440, "light")
        groups = self.browser.find_elements(By.CSS_SELECTOR, "details")
        groups[3].find_element(By.TAG_NAME, "summary").click()
        rows = groups[3].find_elements(By.CSS_SELECTOR, "tbody tr")
        self.assertEqual(len(rows), 10)
        self.assertRegex(rows[0].text, r"STUCK create search-staging-\d+ .*dns NotReported "
                                       r"for 20 m.*, usually \d+ s; has not reported")
        self.browser.execute_script("window.mark = document.querySelector('main')")
        eventually(lambda: self.browser.execute_script(
            "return window.mark !== document.querySelector('main')"), "a renewed page")
        groups = self.browser.find_elements(By.CSS_SELECTOR, "details")
        self.assertTrue(groups[3].get_attribute("open"), "it stays open")
        groups[3].find_element(By.PARTIAL_LINK_TEXT, "and 55 more").click()
        eventually(lambda: "who=dns" in self.browser.current_url, "the list")
        rows = self.browser.find_elements(By.CSS_SELECTOR, "tbody tr")
        self.assertEqual(len(rows), 65)
        text = run("status", "--url", "http://127.0.0.1:%d/" % self.server.port).stdout
        for count, word, cause in self.GROUPS:
            self.assertTrue(re.search(r"(?m)^%d +%s +%s +\d+ .+$" % (count, word, cause), text),
                            (cause, text))


if __name__ == "__main__":
    real.with_module("selenium")
    real.main()
