"""Hostile load: a few hundred bytes of requests neither take the memory nor stop the server."""
import json
import resource
import unittest

from lib import BASE, Case, TIME_FACTOR

FILLER = "x" * 1000000


def plant(client, count):
    """Makes clusters with a specification of nearly 1 MiB."""
    for i in range(count):
        body = json.dumps({"kind": "Cluster", "name": "big-%02d" % i, "spec": {"filler": FILLER}})
        answer = client.post(BASE + "/clusters", body)
        assert answer.status == 201, answer


def address_space(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


@unittest.skipIf(TIME_FACTOR > 1, "a sanitizer needs the whole address space")
class ShortMemory(Case):
    def test_a_list_without_memory_may_be_repeated(self):
        """A list that does not fit into memory is 503, never the 400 of a page too large."""
        plant(self.client, 24)
        pid = self.server.proc.pid
        path = BASE + "/clusters?pageSize=500"
        seen = []
        for spare in (1, 2, 4, 8, 16, 24, 32):
            used = address_space(pid)
            whole = resource.prlimit(pid, resource.RLIMIT_AS,
                                     (used + (spare << 20), resource.RLIM_INFINITY))
            try:
                seen.append(self.client.get(path).status)
            finally:
                resource.prlimit(pid, resource.RLIMIT_AS, whole)
        self.assertIn(503, seen)
        self.assertTrue(set(seen) <= {200, 503}, seen)
        self.assertEqual(self.client.get(path).status, 200)


class FullPage(Case):
    def test_a_page_that_is_too_large_is_not_repeated(self):
        """The ceiling of a page is still 400, with the advice to ask for less."""
        plant(self.client, 40)
        answer = self.client.get(BASE + "/clusters?pageSize=500")
        self.assertEqual(answer.status, 400)
        self.assertIn("pageSize", answer.json["detail"])


if __name__ == "__main__":
    unittest.main()
