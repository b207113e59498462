"""The suite (suite.py) against every HyperFleet that the program can drive, and each transcript
against the embedded one's.
"""
import concurrent.futures
import json
import os
import unittest

import backends
import lib
import suite

WORKERS = 16  # they mostly wait


def open_backend(name, group):
    backend = backends.ALL[name]()
    return backend.open(*suite.GROUPS[group], config=suite.OUTPUTS)


def play(backend, fn):
    """One scenario: its transcript, or what went wrong."""
    run = suite.Run(backend, fn.__name__)
    try:
        fn(run)
        return run.transcript, None
    except (AssertionError, OSError, lib.http.client.HTTPException, KeyError, TypeError,
            IndexError) as e:
        return run.transcript, e
    finally:
        run.close()


def play_all(backend, group):
    """Name -> (transcript, error) of all scenarios of a group, some at a time."""
    only = os.environ.get("HFD_CONTRACT_ONLY", "").split()
    scenarios = [fn for fn in suite.SCENARIOS[group] if (backend.deletes or not fn.deletes)
                 and (not only or fn.__name__ in only)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        played = list(pool.map(lambda fn: (fn, play(backend, fn)), scenarios))
    return {fn.__name__: (fn, transcript, error) for fn, (transcript, error) in played}


class Contract:
    NAME = None
    maxDiff = 6000
    embedded = {}

    @classmethod
    def of_embedded(cls, group):
        """The transcripts to compare with, made once."""
        if group not in Contract.embedded:
            backend = open_backend("embedded", group)
            try:
                Contract.embedded[group] = play_all(backend, group)
            finally:
                backend.close()
        return Contract.embedded[group]

    def check(self, group):
        ours = self.of_embedded(group)
        if self.NAME == "embedded":
            played = ours
        else:
            backend = open_backend(self.NAME, group)
            try:
                played = play_all(backend, group)
                self.log = backend.server.tail(20)
            finally:
                backend.close()
        for name, (fn, transcript, error) in played.items():
            with self.subTest(scenario=name):
                if error is not None:
                    raise error
                if fn.same(backend if self.NAME != "embedded" else backends.Embedded("embedded")):
                    lines = lambda entries: [json.dumps(e, sort_keys=True) for e in entries]
                    self.assertEqual(lines(transcript), lines(ours[name][1]),
                                     "the answers are those of the embedded HyperFleet")
        self.assertTrue(played or group == "deletion" and not backend.deletes)

    def test_main(self):
        """Both decision tables, cookies, hints, changes, failures, nodepools, outputs."""
        self.check("main")

    def test_deadline_of_a_creation(self):
        self.check("creation")

    def test_deadline_of_an_update(self):
        self.check("update")

    def test_deadline_of_a_deletion(self):
        self.check("deletion")


for _name in os.environ.get("HFD_CONTRACT_BACKENDS", "").split() or list(backends.ALL):
    _title = _name.title().replace("-", "")
    globals()[_title] = type(_title, (Contract, unittest.TestCase),
                             {"NAME": _name, "__doc__": "The program driving %s." % _name})


if __name__ == "__main__":
    unittest.main()
