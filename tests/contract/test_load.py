"""How much a remote is asked: 1,000 resources in progress, with and without orchestrators that poll
them all the time.
"""
import threading
import time
import unittest

import backends
import lib
from fleet_fake import Fake

COUNT = 1000
POLLERS = 8
WINDOW_S = 10.0
# The default of remote.per_second_max; the load stays below it in any case. A poll asks for fresher
# observations (remote.fresh) than the watch does (remote.watch). So polled resources cost more, but
# not more with more polls.
BOUND = 50.0


class Load(unittest.TestCase):
    FLAGS = ("--adapters-required-cluster", "validation", "--adapters-required-nodepool",
             "validation")

    def setUp(self):
        self.fake = Fake("G3.1", backends.ONE_ADAPTER)
        self.addCleanup(self.fake.close)

    def rate(self, since, seconds):
        return len(self.fake.requests(since=since)) / seconds

    def put_all(self, server):
        """All of them, over 8 connections."""
        def work(i):
            client = lib.Client(server)
            for n in range(i, COUNT, POLLERS):
                gid = "load-%d" % n
                self.assertEqual(client.put("/" + gid, lib.cluster_input(name=gid)).status, 202)
            client.close()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(POLLERS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def measured(self, server, pollers):
        """(requests a second to the remote, polls a second) over the window."""
        stop, polls = threading.Event(), []

        def poll(i):
            client, count, n = lib.Client(server), 0, i
            while not stop.is_set():
                self.assertEqual(client.get("/load-%d" % (n % COUNT)).status, 202)
                n, count = n + pollers, count + 1
                stop.wait(0.002)
            polls.append(count)
            client.close()
        threads = [threading.Thread(target=poll, args=(i,)) for i in range(pollers)]
        for t in threads:
            t.start()
        since, began = len(self.fake.requests()), time.monotonic()
        time.sleep(WINDOW_S)
        seconds = time.monotonic() - began
        rate = self.rate(since, seconds)
        most = max([0] + [sum(1 for r in self.fake.requests(since=since) if int(r.at) == s)
                          for s in {int(r.at) for r in self.fake.requests(since=since)}])
        stop.set()
        for t in threads:
            t.join()
        return rate, most, sum(polls) / seconds

    def test_requests_do_not_grow_with_pollers(self):
        """A few lists do for all, and 8 clients that poll as fast as they can stay within the
        bound.
        """
        flags = ("--backend", self.fake.url, "--remote-per-second-max", "1000", "--remote-watch",
                 "5s", "--remote-fresh", "2s")
        with lib.Server(*self.FLAGS, *flags) as server:
            began = time.monotonic()
            self.put_all(server)
            lib.eventually(lambda: len(self.fake.rows) == COUNT, "all are made", 4 * lib.WAIT_S)
            print("%d clusters made in %.1f s with %d requests"
                  % (COUNT, time.monotonic() - began, len(self.fake.requests())))
            time.sleep(2)
            rates = []
            for pollers in (0, 1, POLLERS, 0):
                rate, most, polls = self.measured(server, pollers)
                rates.append(rate)
                print(
                    "%d resources in progress, %d pollers (%.0f polls/s): %.1f requests/s to the "
                    "remote, at most %d in a second" % (
                    COUNT, pollers, polls, rate, most))
                self.assertLess(rate, BOUND)
            self.assertLess(max(rates[0], rates[3]), 0.6 * BOUND, "a few lists do for all of them")
            self.assertLess(rates[2], 1.5 * rates[1] + 5,
                            "more clients have it ask no more than one does")
            self.assertEqual(len(self.fake.made), COUNT)

    def test_bound(self):
        """remote.per_second_max holds whatever there is to do."""
        with lib.Server(*self.FLAGS, "--backend", self.fake.url, "--remote-per-second-max",
                        "20") as server:
            client = lib.Client(server)
            for n in range(100):
                self.assertEqual(client.put("/bound-%d" % n,
                                            lib.cluster_input(name="bound-%d" % n)).status, 202)
            client.close()
            since, began = len(self.fake.requests()), time.monotonic()
            time.sleep(5)
            rate = self.rate(since, time.monotonic() - began)
            print("remote.per_second_max 20: %.1f requests/s" % rate)
            self.assertLessEqual(rate, 24)
            self.assertGreater(rate, 5)


if __name__ == "__main__":
    unittest.main()
