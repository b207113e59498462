"""The server reports to systemd, whose socket is the test's here. Source: sd_notify(3)."""
import os
import queue
import signal
import socket
import tempfile
import threading
import time
import unittest

from lib import Client, Server, WAIT_S, eventually


class Notify(unittest.TestCase):
    def receiver(self, name):
        """A queue of the messages. A thread reads them at once: the server drops what finds the
        socket full of signs to the watchdog.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(name.replace("@", "\0", 1))
        messages = queue.Queue()

        def read():
            while message := sock.recv(4096):
                messages.put(message)

        def end():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.sendto(b"", sock.getsockname())
            reader.join()
            sock.close()
        reader = threading.Thread(target=read)
        reader.start()
        self.addCleanup(end)
        return messages

    def start(self, name, **env):
        server = Server(env=dict(env, NOTIFY_SOCKET=name))
        self.addCleanup(server.close)
        return server.start()

    def await_message(self, messages, first):
        """The next message that is no sign to the watchdog: its lines as a dictionary."""
        while True:
            text = messages.get(timeout=WAIT_S).decode()
            if text != "WATCHDOG=1\n":
                self.assertTrue(text.startswith(first), text)
                return dict(line.split("=", 1) for line in text.splitlines())

    def test_a_life(self):
        """Ready, signs to the watchdog, a reload, and the end. The name is an abstract one."""
        name = "@hfd-notify-%d" % os.getpid()
        messages = self.receiver(name)
        server = self.start(name, WATCHDOG_USEC="200000")
        self.await_message(messages, "READY=1\n")
        client = Client(server, ops=True)
        self.addCleanup(client.close)
        self.assertEqual(client.get("/readyz").status, 200)
        for _ in range(3):
            self.assertEqual(messages.get(timeout=WAIT_S), b"WATCHDOG=1\n")
        before = time.monotonic_ns() // 1000
        server.proc.send_signal(signal.SIGHUP)
        told = self.await_message(messages, "RELOADING=1\n")
        self.assertGreaterEqual(int(told["MONOTONIC_USEC"]), before)
        self.assertLessEqual(int(told["MONOTONIC_USEC"]), time.monotonic_ns() // 1000)
        self.await_message(messages, "READY=1\n")
        server.proc.send_signal(signal.SIGTERM)
        self.await_message(messages, "STOPPING=1\n")
        self.assertEqual(server.wait(), 0)

    def test_a_stopped_process_gives_no_sign(self):
        """A process that hangs sends nothing to the watchdog."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        name = os.path.join(folder.name, "notify")
        messages = self.receiver(name)
        server = self.start(name, WATCHDOG_USEC="200000")
        self.await_message(messages, "READY=1\n")
        self.assertEqual(messages.get(timeout=WAIT_S), b"WATCHDOG=1\n")
        server.proc.send_signal(signal.SIGSTOP)
        self.addCleanup(server.proc.send_signal, signal.SIGCONT)
        with self.assertRaises(queue.Empty):
            while True:
                messages.get(timeout=0.5)

    def test_a_socket_that_is_away_or_wrong(self):
        """The server runs all the same."""
        for name in ("/nonexistent/notify", "@hfd-nothing-listens"):
            self.assertEqual(self.start(name).sigterm(), 0)
        server = self.start("vsock:2:1")
        eventually(lambda: any("NOTIFY_SOCKET=vsock:2:1: expected a path, or @name"
                               in record.get("error", "") for record in server.records()),
                   "a warning")

    def test_without_systemd(self):
        server = self.start("")
        self.assertFalse([r for r in server.records() if "systemd" in r["msg"]])


if __name__ == "__main__":
    unittest.main()
