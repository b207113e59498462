#!/usr/bin/env python3
"""The status page in Chromium: it renews itself, takes the keyboard, fits each width, and axe-core
finds nothing. HFD_PAGE_PICTURES names a folder for screenshots.
"""
import json
import os
import unittest

import real
from lib import Case, cluster_input, eventually, guresid

WIDTHS = (420, 1600)
SCHEMES = ("light", "dark")


class InChromium(Case):
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
        self.gid = guresid()
        self.name = "page-" + self.gid.rsplit("-", 1)[1]
        self.expect(self.put(self.gid, cluster_input(self.name, nodepools=[{"name": "workers"}])),
                    202)

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
        self.browser.get(self.url + path)

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

    def test_axe(self):
        """axe-core finds no violation."""
        path = real.npm_package(("axe-core@4.10.2",), "node_modules/axe-core/axe.min.js")
        with open(path, encoding="utf-8") as f:
            axe = f.read()
        for page in ("/", "/r/" + self.gid, "/?list=all"):
            for scheme in SCHEMES:
                self.look(page, 1300, scheme)
                self.browser.execute_script(axe)
                found = self.browser.execute_async_script(
                    "var done = arguments[0]; axe.run().then(done, function (e) {"
                    "done({violations: [{id: String(e), nodes: []}]}); });")
                self.assertEqual([(v["id"], [n["html"] for n in v["nodes"]])
                                  for v in found["violations"]], [], json.dumps((page, scheme)))
                self.assertGreater(len(found["passes"]), 10)


if __name__ == "__main__":
    real.with_module("selenium")
    real.main()
