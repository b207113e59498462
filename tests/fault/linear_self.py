"""The checker against histories made by hand: it accepts good ones, and objects to each kind of bad
one.
"""
import unittest

from linear_check import check, explain
from linear_model import FALSE, FINALIZED, Op, TERMINAL, TRUE


def hint(status, phase, cookie=None):
    return {"status": status, "hint": phase, "cookie": cookie}


def output(gen, cid="c1", cookie=None):
    return {"status": 200, "gen": gen, "cid": cid, "cookie": cookie}


FAILED = {"status": 400, "code": "RES-104"}
ABSENT = {"status": 404}
GONE = {"status": 204}


def after(*rows):
    """Operations one after the other: (kind, arg, result)."""
    return [Op(kind, arg, result, 2 * i, 2 * i + 1) for i, (kind, arg, result) in enumerate(rows)]


def at(call, ret, kind, arg, result):
    return Op(kind, arg, result, call, ret)


CREATED = ("PUT", 1, hint(202, "creating", "k1"))
READY = ("REPORT", ("c1", 1, TRUE, 1), 201)

GOOD = {
    "a whole life": after(
        ("GET", None, ABSENT), CREATED, ("PUT", 1, hint(202, "creating", "k1")),
        ("PUT", 2, hint(409, "creating", "k1")),
        ("LIST", None, (("c1", 1, False, 1),)), READY, ("GET", None, output(1)),
        ("PUT", 1, output(1, cookie="k1")),
        ("PUT", 2, hint(202, "updating", "k2")), ("PUT", 3, hint(202, "updating", "k3")),
        ("REPORT", ("c1", 3, TRUE, 2), 201),
        ("GET", None, output(3)), ("DELETE", None, hint(202, "deleting")),
        ("PUT", 3, hint(409, "deleting", "k3")),
        ("DELETE", None, hint(202, "deleting")), ("REPORT", ("c1", 4, FINALIZED, 3), 201),
        ("DELETE", None, GONE),
        ("PUT", 3, hint(202, "creating", "k4")), ("REPORT", ("c1", 1, TRUE, 4), 404),
        ("LIST", None, (("c2", 1, False, 3),))),
    "failed, tried again, failed, changed": after(
        CREATED, ("REPORT", ("c1", 1, TERMINAL, 1), 201), ("GET", None, FAILED),
        ("PUT", 1, hint(202, "creating", "k1")),
        ("GET", None, hint(202, "creating")), ("REPORT", ("c1", 1, TERMINAL, 2), 201),
        ("PUT", 2, hint(202, "creating", "k2")),
        ("REPORT", ("c1", 1, TRUE, 3), 201), ("GET", None, hint(202, "creating")),
        ("REPORT", ("c1", 2, TRUE, 3), 201),
        ("PUT", 2, output(2, cookie="k2"))),
    "two PUTs at once, one wins": [
        at(0, 10, "PUT", 1, hint(202, "creating", "k1")),
        at(0, 9, "PUT", 2, hint(409, "creating", "k1"))],
    "a GET beside a PUT sees either": [
        at(0, 10, "PUT", 1, hint(202, "creating", "k1")), at(1, 2, "GET", None, ABSENT),
        at(3, 4, "GET", None, hint(202, "creating"))],
    "a lost PUT that happened late": [
        at(0, None, "PUT", 1, None), at(1, 2, "GET", None, ABSENT),
        at(3, 4, "GET", None, hint(202, "creating"))],
    "a lost PUT that never happened": [
        at(0, None, "PUT", 1, None), at(1, 2, "GET", None, ABSENT),
        at(5, 6, "PUT", 2, hint(202, "creating", "k1"))],
    "a lost DELETE and a lost report of its end": [
        *after(CREATED), at(10, None, "DELETE", None, None),
        at(11, None, "REPORT", ("c1", 2, FINALIZED, 1), None),
        at(20, 21, "GET", None, ABSENT)],
    "reports discarded: too new, too old, overtaken": after(
        CREATED, ("REPORT", ("c1", 2, TRUE, 1), 204), ("REPORT", ("c1", 1, FALSE, 5), 201),
        ("REPORT", ("c1", 1, TRUE, 4), 204),
        ("GET", None, hint(202, "creating")), ("REPORT", ("c1", 1, TRUE, 6), 201),
        ("PUT", 2, hint(202, "updating", "k2")),
        ("REPORT", ("c1", 2, FALSE, 7), 201), ("REPORT", ("c1", 1, TRUE, 8), 204)),
    "degraded stays 200": after(CREATED, READY, ("REPORT", ("c1", 1, TERMINAL, 2), 201),
                                ("GET", None, output(1))),
    "a late DELETE with the cookie of an ended life": after(
        CREATED, ("DELETE", "k1", hint(202, "deleting")), ("REPORT", ("c1", 2, FINALIZED, 1), 201),
        ("PUT", 1, hint(202, "creating", "k2")), ("DELETE", "k1", GONE),
        ("GET", None, hint(202, "creating")), ("DELETE", "k2", hint(202, "deleting")),
        ("DELETE", "k1", GONE), ("GET", None, hint(202, "deleting"))),
    "a late report of success does not revive what failed, a PUT does": after(
        CREATED, ("REPORT", ("c1", 1, TERMINAL, 1), 201), ("REPORT", ("c1", 1, TRUE, 2), 201),
        ("GET", None, FAILED),
        ("PUT", 1, output(1, cookie="k1"))),
}

BAD = {
    "lost update: a change that was taken is not there": after(
        CREATED, READY, ("PUT", 2, hint(202, "updating", "k2")),
        ("LIST", None, (("c1", 1, False, 1),))),
    "lost creation": after(CREATED, ("GET", None, ABSENT)),
    "stale read behind an answered PUT": after(CREATED, READY,
                                               ("PUT", 2, hint(202, "updating", "k2")),
                                               ("GET", None, output(1))),
    "stale read behind an answered DELETE": after(CREATED, READY,
                                                  ("DELETE", None, hint(202, "deleting")),
                                                  ("GET", None, output(1))),
    "two reads that go back": [
        *after(CREATED), at(10, 20, "REPORT", ("c1", 1, TRUE, 1), 201),
        at(11, 12, "GET", None, output(1)),
        at(13, 14, "GET", None, hint(202, "creating"))],
    "two creations answered as new": [
        at(0, 10, "PUT", 1, hint(202, "creating", "k1")),
        at(0, 10, "PUT", 2, hint(202, "creating", "k2"))],
    "two clusters for one": after(CREATED,
                                  ("LIST", None, (("c1", 1, False, 1), ("c2", 1, False, 1)))),
    "another cluster without another life": after(CREATED, READY, ("GET", None, output(1, "c1")),
                                                  ("GET", None, output(1, "c2"))),
    "a deletion that comes undone": after(CREATED, ("DELETE", None, hint(202, "deleting")),
                                          ("GET", None, hint(202, "creating"))),
    "a deleted resource that comes back": after(
        CREATED, READY, ("DELETE", None, hint(202, "deleting")),
        ("REPORT", ("c1", 2, FINALIZED, 2), 201), ("DELETE", None, GONE),
        ("GET", None, hint(202, "deleting"))),
    "its cluster comes back in the next life": after(
        CREATED, READY, ("DELETE", None, hint(202, "deleting")),
        ("REPORT", ("c1", 2, FINALIZED, 2), 201),
        ("PUT", 1, hint(202, "creating", "k2")), ("LIST", None, (("c1", 1, False, 1),))),
    "204 before its adapters are done": after(CREATED, ("DELETE", None, hint(202, "deleting")),
                                              ("DELETE", None, GONE)),
    "200 before it is ready": after(CREATED, ("GET", None, output(1))),
    "200 at an older generation": after(
        CREATED, READY, ("PUT", 2, hint(202, "updating", "k2")),
        ("REPORT", ("c1", 1, TRUE, 2), 201), ("GET", None, output(2))),
    "400 without a reason": after(CREATED, ("GET", None, FAILED)),
    "a new attempt failed by the last one's report": after(
        CREATED, ("REPORT", ("c1", 1, TERMINAL, 1), 201), ("PUT", 1, hint(202, "creating", "k1")),
        ("GET", None, FAILED)),
    "a PUT taken while it is deleted": after(
        CREATED, ("DELETE", None, hint(202, "deleting")), ("PUT", 2, hint(202, "updating", "k2"))),
    "a different PUT taken while it is created": after(CREATED,
                                                       ("PUT", 2, hint(202, "creating", "k2"))),
    "409 where nothing is under way": after(CREATED, READY,
                                            ("PUT", 2, hint(409, "updating", "k1"))),
    "a cookie that changes while nothing does": after(CREATED,
                                                      ("PUT", 1, hint(202, "creating", "k2"))),
    "an old cookie with a new input": after(CREATED, READY,
                                            ("PUT", 2, hint(202, "updating", "k1"))),
    "a generation that stands still": after(
        CREATED, READY, ("PUT", 2, hint(202, "updating", "k2")),
        ("LIST", None, (("c1", 1, False, 2),))),
    "a generation raised twice": after(
        CREATED, READY, ("PUT", 2, hint(202, "updating", "k2")),
        ("LIST", None, (("c1", 3, False, 2),))),
    "a report that was stored and is forgotten": after(
        CREATED, ("REPORT", ("c1", 1, FALSE, 5), 201), ("REPORT", ("c1", 1, TRUE, 4), 201)),
    "a report refused on a cluster that is there": after(CREATED, READY,
                                                         ("REPORT", ("c1", 1, TRUE, 2), 404)),
    "a late DELETE that hits the next life": after(
        CREATED, ("DELETE", "k1", hint(202, "deleting")), ("REPORT", ("c1", 2, FINALIZED, 1), 201),
        ("PUT", 1, hint(202, "creating", "k2")), ("DELETE", "k1", hint(202, "deleting"))),
    "a DELETE with the cookie of an earlier input that does nothing": after(
        CREATED, READY, ("PUT", 2, hint(202, "updating", "k2")), ("DELETE", "k1", GONE)),
    "a lost PUT that happens twice": [
        at(0, None, "PUT", 1, None), at(1, 2, "DELETE", None, hint(202, "deleting")),
        at(3, 4, "REPORT", ("c1", 2, FINALIZED, 1), 201),
        at(5, 6, "GET", None, ABSENT), at(7, 8, "GET", None, hint(202, "creating"))],
}


class Histories(unittest.TestCase):
    def test_good_ones_are_accepted(self):
        """Each good history has an order that explains it."""
        for name, ops in GOOD.items():
            with self.subTest(name):
                failure = check(ops)
                self.assertIsNone(failure, failure and explain(ops, failure))

    def test_bad_ones_are_refused(self):
        """No bad history has one."""
        for name, ops in BAD.items():
            with self.subTest(name):
                self.assertIsNotNone(check(ops))

    def test_prefixes_of_bad_ones_are_accepted(self):
        """Without its last operation each of them makes sense: it is refused for what it is there
        for.
        """
        for name, ops in BAD.items():
            with self.subTest(name):
                failure = check(sorted(ops, key=lambda o: (o.call, o.ret or 1e9))[:-1])
                self.assertIsNone(failure, failure and explain(ops, failure))


if __name__ == "__main__":
    unittest.main()
