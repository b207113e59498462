"""A host of the URL that accepts connections and never answers, beside one that works. The program
does not wait store.connect_timeout for it: each limit here is far below that time.
"""
import shutil
import socket
import tempfile
import time
import unittest

import real
import postgres
import tcp_proxy
from lib import Client, Place, Server, cluster_input, eventually, guresid

CONNECT_S = 120
LIMIT_S = 40
FLAGS = ("--store-connect-timeout", "%ds" % CONNECT_S, "--store-answer-timeout", "2s")


class SilentHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = postgres.Postgres()
        cls.addClassCleanup(cls.database.close)
        cls.database.start()

    def serve(self, ports):
        """A program with these hosts in its URL, that runs within the limit."""
        place = Place(tempfile.mkdtemp(prefix="hfd-silent-"), base=self.database.url("postgres"))
        self.addCleanup(shutil.rmtree, place.folder, True)
        place.make()
        place.url = place.url.replace("127.0.0.1:%d/" % self.database.port,
                                      ",".join("127.0.0.1:%d" % port for port in ports) + "/")
        place.make = lambda keys: None # psql would wait for the silent host
        server = Server(*FLAGS, place=place)
        self.addCleanup(server.close)
        began = time.monotonic()
        server.start()
        self.assertLess(time.monotonic() - began, LIMIT_S, "it waited for the silent host")
        client = Client(server, timeout_s=LIMIT_S)
        self.addCleanup(client.close)
        return client

    def proxy(self):
        proxy = tcp_proxy.Proxy(self.database.port)
        self.addCleanup(proxy.close)
        return proxy

    def test_start(self):
        """A silent host is the first of the URL, and another one the last."""
        silent = []
        for _ in range(2):
            listener = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(listener.close)
            silent.append(listener.getsockname()[1])
        client = self.serve([silent[0], self.database.port, silent[1]])
        gid = guresid("sil")
        self.assertEqual(client.put("/" + gid, cluster_input(name=gid)).status, 202)
        self.assertEqual(client.get("/" + gid).status, 202)

    def test_failover(self):
        """The host in use becomes silent. Later the other one, which refused until then, takes
        connections, as a standby does that becomes the primary.
        """
        first, second = self.proxy(), self.proxy()
        second.tell("refuse")
        client = self.serve([first.port, second.port])
        gid = guresid("sil")

        def put():
            return client.put("/" + gid, cluster_input(name=gid)).status

        def get():
            return client.get("/" + gid).status

        self.assertEqual(put(), 202)
        first.tell("stall")
        eventually(lambda: put() == 503 and get() == 503, "the silence is seen", LIMIT_S)
        time.sleep(1) # the thread that connects has been refused, and waits for the silent host
        self.assertEqual(put(), 503)
        second.tell("accept")
        eventually(lambda: put() == 202, "writes go on", LIMIT_S)
        eventually(lambda: get() == 202, "reads go on", LIMIT_S)


if __name__ == "__main__":
    real.main()
