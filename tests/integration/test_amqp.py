#!/usr/bin/env python3
"""The sender for RabbitMQ against brokers that are played: those that hang, speak rubbish, flood or
refuse. It answers in time with words, crashes never, and serves the next broker as if nothing had
been. `tests/real/test_amqp.py` has the real one.
"""
import os
import random
import struct
import threading
import time
import unittest

import amqp
from amqp import Broker, Sender, event
from lib import TIME_FACTOR

EVENTS = [event(1), event(2, "NodePool"), event(3)]
MEMORY_KIB = 64 << 10


def good(peer):
    """A broker that confirms each event."""
    peer.greet()
    while True:
        peer.take()
        peer.say(amqp.ack(len(peer.published)))


def says(data, until=0):
    """A broker that says this in place of a step, and then nothing."""
    def script(peer):
        peer.greet(until=until)
        peer.say(data)
        peer.stream.read(1 << 20)
    return script


def then(*data):
    """A broker that says this when it has all events. The next byte ends the connection."""
    def script(peer):
        peer.greet()
        for _ in EVENTS:
            peer.take()
        for piece in data:
            peer.say(piece)
        peer.stream.read(1)
    return script


def floods(data, until=0):
    def script(peer):
        peer.greet(until=until)
        while True:
            peer.say(data)
    return script


@unittest.skipUnless(amqp.PROGRAM, "HFD_AMQP_SEND is not set")
class Amqp(unittest.TestCase):
    maxDiff = None

    def start(self, *scripts, url=None, more=(), **kw):
        broker = Broker(*scripts, **kw)
        self.addCleanup(broker.close)
        sender = Sender(url or broker.url, *more)
        self.addCleanup(self.end, sender)
        return broker, sender

    def end(self, sender):
        self.assertEqual(sender.close(), 0)

    def refused(self, script, words, rc=None, sent=(False, False, False), **kw):
        """One call fails with the words, in time; the next one goes to a broker that is well."""
        broker, sender = self.start(script, good, **kw)
        answer = sender.send(EVENTS)
        self.assertIn(words, answer["words"])
        self.assertIn("127.0.0.1:%d: " % broker.port, answer["words"])
        self.assertNotEqual(answer["rc"], "OK")
        if rc is not None:
            self.assertEqual(answer["rc"], rc)
        self.assertEqual(answer["sent"], list(sent))
        self.assertLess(answer["ms"], (amqp.SEND_MAX_S + 2 * TIME_FACTOR) * 1000)
        if rc == "TIMEOUT":
            self.assertGreater(answer["ms"], (amqp.SEND_MAX_S - 0.5) * 1000)
        answer = sender.send(EVENTS)
        self.assertEqual((answer["rc"], answer["sent"]), ("OK", [True] * 3), answer)
        return sender

    def beside(self, *cases):
        """Runs cases that take long at the same time."""
        failures = []

        def run(case):
            try:
                case()
            except Exception as e:  # pylint: disable=broad-except
                failures.append(e)
        threads = [threading.Thread(target=run, args=(case,)) for case in cases]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            raise failures[0]

    def test_events(self):
        """The bytes of each event, in order; one connection; a heartbeat keeps it."""
        broker, sender = self.start(good)
        large = event(4, body="x" * 50000)
        for batch in (EVENTS, [], [large]):
            answer = sender.send(batch)
            self.assertEqual((answer["rc"], answer["words"]), ("OK", ""))
            self.assertEqual(answer["sent"], [True] * len(batch))
        self.assertEqual(len(broker.peers), 1)
        for sent, (exchange, rest, properties, body) in zip(EVENTS + [large],
                                                            broker.peers[0].published):
            self.assertEqual(exchange, amqp.NODEPOOLS if sent["kind"] == "NodePool"
                             else amqp.CLUSTERS)
            self.assertEqual(rest, b"\0\1")  # no routing key; mandatory, not immediate
            key, value = b"_watermill_message_uuid", sent["id"].encode()
            table = amqp.short(key) + b"S" + struct.pack(">I", len(value)) + value
            self.assertEqual(properties, struct.pack(">HI", 0x3000, len(table)) + table + b"\2")
            self.assertEqual(body.decode(), sent["body"])

    def test_refusals(self):
        """The broker's words are told, in one line."""
        for until in range(1, 7):
            self.refused(says(amqp.closing(b"NOT_ALLOWED - no"), until),
                         "the broker refuses: NOT_ALLOWED - no", "CONFLICT")
        self.refused(says(amqp.closing(b"PRECONDITION_FAILED - type", 1), 5),
                     "PRECONDITION_FAILED - type", "CONFLICT")
        self.refused(says(amqp.closing(b"\x1b[31m\nred" + b"x" * 200), 1), r"\u001b[31m\nred")
        self.refused(then(amqp.nack(1), amqp.ack(3, True)), "hyperfleet-clusters did not take it",
                     "CONFLICT", (False, True, True))

    def test_unbound(self):
        """A returned event is not sent. It holds up none of another exchange."""
        words = "exchange %s has no queue for it: bind one"
        self.refused(then(amqp.returned(amqp.CLUSTERS), amqp.ack(1), amqp.ack(3, True)),
                     words % amqp.CLUSTERS, "CONFLICT", (False, True, False))
        self.refused(then(amqp.ack(1), amqp.returned(amqp.NODEPOOLS), amqp.ack(3, True)),
                     words % amqp.NODEPOOLS, "CONFLICT", (True, False, True))
        self.refused(then(amqp.returned("else"), amqp.ack(1), amqp.closing(b"bye")), "bye",
                     "CONFLICT", (True, False, False))

    def test_confirms(self):
        """In any order, several at a time, of tags that no event has."""
        for words in ([amqp.ack(3), amqp.ack(2), amqp.ack(1)], [amqp.ack(3, True)],
                      [amqp.ack(0), amqp.ack(99), amqp.nack(4), amqp.ack(1), amqp.ack(1),
                       amqp.HEARTBEAT, amqp.nack(1), amqp.ack(2), amqp.ack(3)]):
            _, sender = self.start(then(*words))
            answer = sender.send(EVENTS)
            self.assertEqual((answer["rc"], answer["sent"]), ("OK", [True] * 3), answer)

    def test_rubbish(self):
        """Bytes that are no AMQP, or none that this step can have."""
        strange, lost = "it does not answer as a RabbitMQ broker", "the connection was lost"
        for data in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\0\0\x09\1", b"\xff" * 64,
                     struct.pack(">BHI", 1, 0, 0xffffffff), struct.pack(">BHI", 1, 0, 0x7fffffff),
                     struct.pack(">BHI", 1, 0, 8192 - 7), amqp.START[:-1] + b"\xcd",
                     amqp.frame(1, 7, b"12345"), amqp.TUNE, amqp.closing(b"abc", length=200),
                     amqp.method(0, 10, 50), amqp.method(0, 4711, 4711)):
            self.refused(says(data), strange, "MALFORMED")
        for until, data in ((1, amqp.method(0, 10, 30, b"\0")), (2, amqp.OPEN_OK[:11] + b"\x2a"),
                            (4, amqp.OPEN_OK), (6, amqp.ack(1))):
            self.refused(says(data, until), "" if until == 2 else strange if until != 1 else "",
                         linger_s=1.0)
        self.refused(says(amqp.method(0, 10, 30, struct.pack(">HIH", 1, 4096, 60)), 1),
                     "frame_max of 8192 or more", "CONFLICT")
        self.refused(then(amqp.returned(amqp.CLUSTERS)[:20] + b"\xff" * 40), strange)
        self.refused(then(amqp.method(1, 60, 80, b"\0")), strange)
        self.refused(then(amqp.method(1, 60, 50, b"\1\1\xff")), strange)
        for until in range(7):
            self.refused(lambda peer, n=until: peer.greet(until=n) and None, lost, "AWAY")

    def test_changed_bytes(self):
        """A talk with a byte that is another: an answer in time, whatever it is."""
        dice = random.Random(5)
        sent = {True: 0, False: 0}
        for _ in range(int(os.environ.get("HFD_AMQP_TALKS", "150"))):
            step = dice.randrange(len(amqp.TALK) + 1)

            def script(peer, step=step):
                def change(data):
                    at = dice.randrange(len(data))
                    return data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]
                peer.greet([(wanted, change(data) if n == step else data)
                            for n, (wanted, data) in enumerate(amqp.TALK)])
                for _ in EVENTS:
                    peer.take()
                last = amqp.returned(amqp.CLUSTERS) + amqp.ack(3, True)
                peer.say(change(last) if step == len(amqp.TALK) else last)
            broker, sender = self.start(script, linger_s=0.3)
            answer = sender.send(EVENTS)
            self.assertLess(answer["ms"], (amqp.SEND_MAX_S + 2 * TIME_FACTOR) * 1000)
            sent[any(answer["sent"])] += 1
            broker.close()
        self.assertGreater(min(sent.values()), 0, sent)

    def test_silence_and_floods(self):
        """A broker that hangs, or never ends to talk, takes 10 s and no memory."""
        huge = [event(1, body="x" * (30 << 20))]

        def hangs(peer):
            peer.greet()
            peer.sock.settimeout(None)
            broker.wait()

        def no_reader():
            sender = Sender(broker.url)
            answer = sender.send(huge)
            self.assertEqual((answer["rc"], answer["sent"]), ("TIMEOUT", [False]), answer)
            self.assertLess(answer["ms"], (amqp.SEND_MAX_S + 2 * TIME_FACTOR) * 1000)
            self.assertEqual(sender.close(), 0)

        def flooded(data, until):
            sender = self.refused(floods(data, until), "no answer in time", "TIMEOUT")
            if TIME_FACTOR == 1:
                self.assertLess(sender.peak_kib(), MEMORY_KIB)
        broker = Broker(hangs)
        self.addCleanup(broker.close)
        self.beside(no_reader,
                    lambda: self.refused(says(b""), "no answer in time", "TIMEOUT"),
                    lambda: self.refused(says(b"", 3), "no answer in time", "TIMEOUT"),
                    lambda: self.refused(says(amqp.START[:9]), "no answer in time", "TIMEOUT"),
                    lambda: self.refused(then(amqp.ack(2)), "no answer in time", "TIMEOUT",
                                         (False, True, False)),
                    lambda: flooded(amqp.HEARTBEAT * 500, 3),
                    lambda: flooded(amqp.frame(9, 1, b"x" * 4000) * 4, 7))

    def test_a_kept_connection(self):
        """One that ended while nothing was sent costs nothing; one that ends twice does."""
        def ends(peer):
            peer.greet()
            for _ in EVENTS:
                peer.take()
            peer.say(amqp.ack(3, True))
            peer.sock.shutdown(2)
        broker, sender = self.start(ends)
        for _ in range(5):
            answer = sender.send(EVENTS)
            self.assertEqual((answer["rc"], answer["sent"]), ("OK", [True] * 3), answer)
        self.assertEqual(len(broker.peers), 5)
        self.assertEqual(sender.send([])["rc"], "OK")  # finds the end
        begun = time.monotonic()
        broker.close()
        answer = sender.send(EVENTS)
        self.assertEqual((answer["rc"], answer["sent"]), ("AWAY", [False] * 3), answer)
        self.assertIn("could not connect", answer["words"])
        self.assertLess(time.monotonic() - begun, amqp.SEND_MAX_S)

    def test_passwords(self):
        """The file is read at each connection. Words never have what it says."""
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "hfd-amqp-%d" % os.getpid())
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        seen = []

        def reads(peer):
            peer.greet(until=1)
            seen.append(peer.method()[1])
            peer.say(amqp.closing(b"ACCESS_REFUSED"))
        broker = Broker(reads)
        self.addCleanup(broker.close)
        sender = Sender("amqp://us%%65r@127.0.0.1:%d/" % broker.port, path)
        self.addCleanup(self.end, sender)
        answer = sender.send(EVENTS)
        self.assertIn("events.amqp.password_file: read %s: No such file" % path, answer["words"])
        for word in ("geheim", "x" * 1023):
            with open(path, "w", encoding="utf-8") as f:
                f.write(word + "\n")
            answer = sender.send(EVENTS)
            self.assertIn("ACCESS_REFUSED", answer["words"])
            self.assertNotIn(word, answer["words"])
            self.assertTrue(seen[-1].endswith(b"\0user\0" + word.encode() + b"\5en_US"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
