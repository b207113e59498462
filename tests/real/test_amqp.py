#!/usr/bin/env python3
"""The sender for RabbitMQ against RabbitMQ. The bytes on the wire; events without a queue; a killed
broker; cuts in the middle of batches; users, vhosts and TLS.
"""
import contextlib
import json
import os
import random
import select
import shutil
import socket
import tempfile
import threading
import unittest

import amqp
import box
import rabbitmq
import real
from amqp import Sender, event
from lib import BASE, Client, Server, eventually

real.with_module("pika")
try:
    import pika
    import pika.exceptions
except ImportError:
    pika = None

CUTS = int(os.environ.get("HFD_AMQP_CUTS", "200"))
SUBJECTS = 20
# Of test_kills. The whole run has 1000, 1000 and 20.
KILLS, CUTS_OF_KILLS, BROKER_KILLS = (int(os.environ.get("HFD_AMQP_" + name, few))
                                      for name, few in (("KILLS", 8), ("KILL_CUTS", 20),
                                                        ("BROKER_KILLS", 1)))
PASSWORD = "geheim"
CONF = """
default_user = hfd
default_pass = %s
listeners.ssl.default = 5671
ssl_options.cacertfile = %s/ca.crt
ssl_options.certfile = %s/server.crt
ssl_options.keyfile = %s/server.key
"""


class Door:
    """A TCP port that leads to a Unix socket. It cuts after `left` more bytes; `then` is called at
    each cut and gives the next number, or None.
    """

    def __init__(self, path):
        self.path, self.left, self.cuts = path, None, 0
        self.then = lambda: None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.join, args=(one,), daemon=True).start()

    def join(self, one):
        with one, contextlib.suppress(OSError), box.to_path(self.path)() as other:
            while True:
                for source in select.select([one, other], [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if self.left is not None:
                        data = data[:self.left]
                        self.left -= len(data)
                    (other if source is one else one).sendall(data)
                    if self.left == 0:
                        self.left = self.then()
                        self.cuts += 1
                        return

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Amqp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        words = rabbitmq.need()
        if pika is None:
            real.skip("python3-pika is not installed: apt-get install python3-pika")
        cls.folder = tempfile.mkdtemp(prefix="hfd-amqp-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.certificates()
        cls.password = cls.write("password", PASSWORD + "\n")
        cls.broker = rabbitmq.Broker(cls.folder, words,
                                     CONF % (PASSWORD, cls.folder, cls.folder, cls.folder))
        cls.broker.start()
        cls.addClassCleanup(lambda: cls.broker.kill())  # pylint: disable=unnecessary-lambda

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    @classmethod
    def certificates(cls):
        """An authority, the broker's certificate, and an authority that signed nothing."""
        openssl, at = real.debian("openssl"), cls.folder
        for name in ("ca", "other"):
            real.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                      "-subj", "/CN=" + name, "-keyout", "%s/%s.key" % (at, name),
                      "-out", "%s/%s.crt" % (at, name)])
        real.run([openssl, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
                  "-keyout", at + "/server.key", "-out", at + "/server.csr"])
        names = cls.write("names", "subjectAltName=DNS:localhost\n")
        real.run([openssl, "x509", "-req", "-in", at + "/server.csr", "-CA", at + "/ca.crt",
                  "-CAkey", at + "/ca.key", "-CAcreateserial", "-days", "2", "-extfile", names,
                  "-out", at + "/server.crt"])

    def setUp(self):
        self.door = self.make_door(self.broker.path)
        # Each case has exchanges of its own.
        name = self.id().rsplit(".", 1)[1]
        self.exchanges = (name + "-clusters", name + "-nodepools")

    def make_door(self, path):
        door = Door(path)
        self.addCleanup(door.close)
        return door

    def sender(self, url=None, password=None, ca="", exchanges=None):
        sender = Sender(url or "amqp://hfd@127.0.0.1:%d/" % self.door.port,
                        password or self.password, *([ca] if ca else []),
                        exchanges=exchanges or self.exchanges)
        self.addCleanup(lambda: self.assertEqual(sender.close(), 0))
        return sender

    def channel(self, broker=None):
        """A channel of a client that is not ours."""
        door = self.make_door((broker or self.broker).path)
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", door.port, credentials=pika.PlainCredentials("hfd", PASSWORD)))
        self.addCleanup(self.leave, connection)
        return connection.channel()

    def leave(self, connection):
        with contextlib.suppress(pika.exceptions.AMQPError):  # its broker may have been killed
            connection.close()

    def bind(self, channel, which):
        """A queue as upstream's adapters make it."""
        exchange = self.exchanges[which]
        queue = exchange + "-test"
        channel.exchange_declare(exchange, "topic", durable=True)  # as the sender does, or it fails
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, exchange, "")
        return queue

    def drain(self, channel, queue):
        """All that is in a queue."""
        messages = []
        while True:
            got, properties, body = channel.basic_get(queue, auto_ack=True)
            if got is None:
                return messages
            messages.append((got, properties, body.decode()))

    def all_sent(self, answer):
        self.assertEqual((answer["rc"], set(answer["sent"])), ("OK", {True}), answer)

    def failed(self, answer, words):
        self.assertNotEqual(answer["rc"], "OK", answer)
        self.assertIn(words, answer["words"])
        self.assertNotIn(PASSWORD, answer["words"])
        self.assertNotIn(True, answer["sent"])
        self.assertLess(answer["ms"], (amqp.SEND_MAX_S + 2) * 1000)

    def test_wire(self):
        """Exchange, bytes, delivery mode, header and order, as upstream's programs have them."""
        sender, channel = self.sender(), self.channel()
        clusters, pools = self.bind(channel, 0), self.bind(channel, 1)
        batch = [event(n, "NodePool" if n % 3 == 0 else "Cluster") for n in range(100)]
        batch[50]["body"] = "x" * 300000
        self.all_sent(sender.send(batch))
        for queue, kind in ((clusters, "Cluster"), (pools, "NodePool")):
            messages = self.drain(channel, queue)
            self.assertEqual([body for _, _, body in messages],
                             [e["body"] for e in batch if e["kind"] == kind])
            for (got, properties, _), e in zip(messages, [e for e in batch if e["kind"] == kind]):
                self.assertEqual(got.routing_key, "")
                self.assertEqual(properties.headers, {"_watermill_message_uuid": e["id"]})
                self.assertEqual(properties.delivery_mode, 2)
                self.assertIsNone(properties.content_type)
                self.assertIsNone(properties.message_id)

    def test_unbound(self):
        """Without a queue an event is not sent, and says so. Others are."""
        sender, channel = self.sender(), self.channel()
        batch = [event(1), event(2, "NodePool"), event(3)]
        self.failed(sender.send(batch),
                    "exchange %s has no queue for it: bind one" % self.exchanges[0])
        pools = self.bind(channel, 1)
        answer = sender.send(batch)
        self.assertEqual(answer["sent"], [False, True, False])
        self.assertIn(self.exchanges[0] + " has no queue", answer["words"])
        clusters = self.bind(channel, 0)
        self.all_sent(sender.send(batch))
        self.assertEqual((len(self.drain(channel, pools)), len(self.drain(channel, clusters))),
                         (2, 2))

    def test_another_exchange(self):
        """One of another type is an error; one that was deleted is made again."""
        sender, channel = self.sender(), self.channel()
        channel.exchange_declare(self.exchanges[1], "fanout", durable=True)
        self.failed(sender.send([event(1)]), "inequivalent arg 'type' for exchange '%s'"
                    % self.exchanges[1])
        channel.exchange_delete(self.exchanges[1])
        queue = self.bind(channel, 0)
        self.all_sent(sender.send([event(1)]))
        channel.exchange_delete(self.exchanges[0])
        self.failed(sender.send([event(2)]), "has no queue for it")  # made again, not bound
        self.bind(channel, 0)
        self.all_sent(sender.send([event(3)]))
        self.assertEqual(len(self.drain(channel, queue)), 2)

    def test_a_killed_broker(self):
        """A broker that is killed loses nothing that was sent; the next batch goes through."""
        sender, channel = self.sender(), self.channel()
        queue = self.bind(channel, 0)
        self.all_sent(sender.send([event(n) for n in range(50)]))
        self.broker.kill()
        self.failed(sender.send([event(50)]), "127.0.0.1:%d: " % self.door.port)
        self.broker.start()
        self.door.path = self.broker.path
        answer = eventually(lambda: (lambda a: a if a["rc"] == "OK" else None)(
            sender.send([event(50)])), "the broker again")
        self.all_sent(answer)
        self.assertEqual([body for _, _, body in self.drain(self.channel(), queue)],
                         [event(n)["body"] for n in range(51)])

    def test_cuts(self):
        """Cuts in the middle of batches: each event that is said to be sent is in the queue, in the
        order of its subject.
        """
        dice = random.Random(7)
        channel = self.channel()
        queue = self.bind(channel, 0)
        sender = self.sender()
        # Some of the connections that follow are cut too, at the login or in the batch.
        self.door.then = lambda: dice.choice((None, None, dice.randrange(1, 3000)))
        sent, generation, failures = set(), 0, 0
        while self.door.cuts < CUTS:
            batch = []
            for subject in range(SUBJECTS):
                e = event(generation * SUBJECTS + subject)
                e["subject"], e["body"] = "s%d" % subject, "%d %d " % (subject, generation)
                e["body"] += "x" * dice.randrange(400)
                batch.append(e)
            generation += 1
            while batch:
                if self.door.left is None:
                    self.door.left = dice.randrange(1, 16000)
                answer = sender.send(batch)
                failures += answer["rc"] != "OK"
                sent.update(e["id"] for e, ok in zip(batch, answer["sent"]) if ok)
                batch = [e for e, ok in zip(batch, answer["sent"]) if not ok]
        self.assertEqual(len(sent), generation * SUBJECTS)
        self.assertGreater(failures, 0)
        messages = self.drain(channel, queue)
        self.assertLessEqual(sent, {p.headers["_watermill_message_uuid"] for _, p, _ in messages})
        newest = {}
        for _, _, body in messages:
            subject, its, _ = body.split(" ")
            seen = newest.setdefault(subject, -1)
            self.assertLessEqual(int(its), seen + 1, "a generation was left out")
            newest[subject] = max(seen, int(its))
        print("%d cuts: %d events, %d messages, %d calls failed"
              % (self.door.cuts, len(sent), len(messages), failures))

    def program(self, *flags):
        """Our server with this broker."""
        server = Server("--events-amqp-url", "amqp://hfd@127.0.0.1:%d/" % self.door.port,
                        "--events-amqp-password-file", self.password,
                        "--events-amqp-exchange-cluster", self.exchanges[0],
                        "--events-amqp-exchange-nodepool", self.exchanges[1],
                        "--adapters-required-cluster", "validation", *flags)
        self.addCleanup(server.close)
        server.start()
        return server

    def test_program(self):
        """The server's events are those of its watch. An adapter that stays silent gets another."""
        channel = self.channel()
        queue, pools = self.bind(channel, 0), self.bind(channel, 1)
        server = self.program()
        client = Client(server)
        self.addCleanup(client.close)
        cluster = client.post(BASE + "/clusters",
                              {"kind": "Cluster", "name": "one", "spec": {}}).json
        pool = client.post(cluster["href"] + "/nodepools",
                           {"kind": "NodePool", "name": "pool", "spec": {}})
        self.assertEqual(pool.status, 201, pool)
        found = []
        eventually(lambda: found.extend(self.drain(channel, queue)) or len(found) >= 2,
                   "the event, and again", 60)
        watched = [json.dumps(e, separators=(",", ":"))
                   for e in client.get(BASE + "/events?after=0").json["items"]]
        self.assertEqual(found[0][2], watched[0])
        self.assertEqual(self.drain(channel, pools)[0][2], watched[1])
        again = json.loads(found[1][2])
        self.assertEqual(again["data"], json.loads(watched[0])["data"])
        self.assertNotEqual(again["id"], json.loads(watched[0])["id"])

    def test_kills(self):
        """Changes while the server is killed, the connection cut, the broker killed. Each is
        followed by its event, and those of a cluster come in order.
        """
        dice = random.Random(11)
        queue = self.bind(self.channel(), 0)
        server = self.program("--events-repeats-per-second", "0")
        clusters, wanted = [], {}

        def ask(method, path, body):
            with contextlib.closing(Client(server)) as client:
                answer = client.request(method, path, body)
            self.assertIn(answer.status, (200, 201), answer)
            wanted[answer.json["id"]] = answer.json["generation"]
            return answer.json

        def change():
            ask("PATCH", dice.choice(clusters)["href"], {"spec": {"n": dice.random()}})
        for i in range(8):
            clusters.append(ask("POST", BASE + "/clusters",
                                {"kind": "Cluster", "name": "kill-%d" % i, "spec": {}}))
        troubles = ["kill"] * KILLS + ["cut"] * CUTS_OF_KILLS + ["broker"] * BROKER_KILLS
        dice.shuffle(troubles)
        for trouble in troubles:
            for _ in range(dice.randrange(1, 4)):
                change()
            if trouble == "kill":
                server.restart()
            elif trouble == "cut":
                self.door.left = dice.randrange(1, 3000)
            else:
                self.broker.kill()
                change()
                self.broker.start()
                self.door.path = self.broker.path
        for cluster in clusters:  # each has one more, whatever was lost
            ask("PATCH", cluster["href"], {"spec": {"n": "last"}})
        newest, messages = {}, []

        def all_are_there():
            self.door.left = None
            for _, _, body in self.drain(channel, queue):
                data = json.loads(body)["data"]
                messages.append(data)
                self.assertGreaterEqual(data["generation"], newest.get(data["id"], 0))
                newest[data["id"]] = data["generation"]
            return newest == wanted
        channel = self.channel()
        eventually(all_are_there, "all events", 400, 0.2)
        print("%d kills of the server, %d cuts, %d kills of the broker: %d changes, %d messages"
              % (KILLS, CUTS_OF_KILLS, BROKER_KILLS, sum(wanted.values()), len(messages)))

    def test_alarm(self):
        """A broker that lacks memory reads no events: an error in time, and later they are sent."""
        folder = os.path.join(self.folder, "alarm")
        os.mkdir(folder)
        login = "default_user = hfd\ndefault_pass = %s\n" % PASSWORD
        broker = rabbitmq.Broker(folder, rabbitmq.need(),
                                 login + "vm_memory_high_watermark.absolute = 1KB\n")
        broker.start()
        self.addCleanup(lambda: broker.kill())  # pylint: disable=unnecessary-lambda
        self.door.path = broker.path
        sender, batch = self.sender(), [event(n, body="x" * 60000) for n in range(400)]
        self.failed(sender.send(batch), "no answer in time")
        broker.kill()
        broker.configure(login)
        broker.start()
        self.door.path = broker.path
        queue = self.bind(self.channel(broker), 0)
        self.all_sent(sender.send(batch))
        self.assertEqual(len(self.drain(self.channel(broker), queue)), len(batch))

    def test_logins(self):
        """A wrong password, user or vhost: the broker's words."""
        wrong = self.write("wrong", "falsch\n")
        url = "amqp://%s@127.0.0.1:" + str(self.door.port) + "/%s"
        for sender, words in ((self.sender(password=wrong), "ACCESS_REFUSED"),
                              (self.sender(url % ("other", "")), "ACCESS_REFUSED"),
                              (self.sender(url % ("hfd", "nix")), "vhost nix not found")):
            answer = sender.send([event(1)])
            self.failed(answer, words)
            self.assertNotIn("falsch", answer["words"])

    def test_tls(self):
        """The certificate must be signed by the authority, for this host."""
        door = self.make_door(self.broker.tls_path)
        queue = self.bind(self.channel(), 0)
        at = self.folder
        url = "amqps://hfd@%s:" + str(door.port) + "/"
        self.all_sent(self.sender(url % "localhost", ca=at + "/ca.crt").send([event(1)]))
        for host, ca, words in (("localhost", at + "/other.crt", "certificate"),
                                ("localhost", "", "certificate"),
                                ("127.0.0.1", at + "/ca.crt", "127.0.0.1"),
                                ("localhost", at + "/nix.crt", "nix.crt")):
            answer = self.sender(url % host, ca=ca).send([event(2)])
            self.failed(answer, words)
            self.assertIn("could not connect: ", answer["words"])
        plain = self.sender("amqps://hfd@localhost:%d/" % self.door.port, ca=at + "/ca.crt")
        self.failed(plain.send([event(3)]), "could not connect: ")
        self.failed(self.sender("amqp://hfd@localhost:%d/" % door.port).send([event(4)]),
                    "localhost:%d: " % door.port)
        self.assertEqual(len(self.drain(self.channel(), queue)), 1)


if __name__ == "__main__":
    real.main()
