"""The recipes of handlers/docs/network.md with the real nginx and HAProxy. Orders, large cookies,
addresses of clients, client certificates, and a restart of the driver behind the proxy.
"""
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

import real
from lib import BASE, ROOT, Server, cluster_input, eventually, free_port, guresid
from test_tls import exchange, openssl, self_signed, signed

PAGE = os.path.join(ROOT, "handlers", "docs", "network.md")
NAME = "driver.example"


def recipe(language):
    """The code block of the page in this language."""
    with open(PAGE, encoding="utf-8") as f:
        found = re.findall(r"```%s\n(.*?)```" % language, f.read(), re.S)
    assert len(found) == 1, "the page has one %s block" % language
    return found[0]


class Proxy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hfd-real-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.port = free_port()
        self_signed(self.folder, "server", subject=NAME)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def join(self, name, *parts):
        text = ""
        for part in parts:
            with open(self.path(part), encoding="ascii") as f:
                text += f.read()
        self.write(name, text)

    def driver(self, *flags):
        server = Server(*flags, "--http-hosts", NAME)
        self.addCleanup(server.close)
        return server.start()

    def proxy(self, *command):
        out = open(self.path("proxy.log"), "wb")
        self.addCleanup(out.close)
        proc = subprocess.Popen(command, stdout=out, stderr=out)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.send_signal, signal.SIGTERM)
        eventually(self.listening, "the proxy listens")

    def listening(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def connect(self):
        context = ssl.create_default_context(cafile=self.path("server.pem"))
        context.check_hostname = False  # the test's certificate is for localhost
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(raw.close)
        sock = context.wrap_socket(raw, server_hostname=NAME)
        self.addCleanup(sock.close)
        return sock

    def request(self, sock, method, path, body="", *headers):
        lines = "".join(h + "\r\n" for h in headers)
        return exchange(sock, ("%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s"
                               % (method, path, NAME, lines, len(body), body)).encode())

    def watch(self, change):
        """A stream of events comes through as it is written, and ends."""
        sock = self.connect()
        sock.sendall(("GET %s/events HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n"
                      % (BASE, NAME)).encode())
        seen = b""
        while b"\nid: " not in seen:
            seen += sock.recv(4096)
        self.assertTrue(seen.startswith(b"HTTP/1.1 200 "), seen)
        change()
        while b"\ndata: " not in seen:
            seen += sock.recv(4096)
        return sock

    def walk(self, server):
        """The walk that every recipe must pass."""
        sock = self.connect()
        gid = guresid("proxied")
        order = json.dumps(cluster_input("p-" + gid))
        r = self.request(sock, "PUT", "/" + gid, order, "X-Forwarded-For: 203.0.113.66")
        self.assertEqual(r.status, 202)
        cookie = r.header("Set-Humanitec-Driver-Cookie")
        line = eventually(lambda: [x for x in server.records() if x["msg"] == "request"
                                   and x.get("method") == "PUT"], "the request's line")[0]
        self.assertEqual(line["from"], "127.0.0.1", "the proxy's client, not the client's claim")
        self.assertEqual(self.request(sock, "GET", "/" + gid, "",
                                      "Humanitec-Driver-Cookie: " + cookie).status, 202)
        r = self.request(sock, "GET", "/" + gid, "", "Humanitec-Driver-Cookie: " + "A" * 10239)
        self.assertEqual(json.loads(r.body)["error"], "RES-102", "the cookie reached the driver")
        big = json.dumps({"kind": "Cluster", "name": "big", "spec": {"f": "x" * 1000000}})
        stream = self.watch(lambda: self.assertEqual(
            self.request(sock, "POST", BASE + "/clusters", big).status, 201))
        r = self.request(sock, "GET", BASE + "/clusters")
        self.assertEqual(len(json.loads(r.body)["items"]), 2)
        for _ in range(300):
            self.assertEqual(self.request(sock, "GET", BASE + "/clusters?pageSize=1&fields=name",
                                          ).status, 200)
        self.assertEqual(self.request(sock, "GET", "/a%2Fb").status, 400, "the path is as it was")
        server.restart()
        seen = b"..."
        while seen and not seen.endswith(b"0\r\n\r\n"):  # the proxy may keep its client
            seen = stream.recv(4096)

        def answers():
            try:
                return self.request(self.connect(), "GET", "/" + gid).status == 202
            except (OSError, AssertionError):  # the proxy has closed the connection
                return False
        eventually(answers, "the driver answers again behind the proxy")

    def test_nginx(self):
        """nginx and a Unix socket."""
        program = real.debian("nginx")
        server = self.driver("--listen", "unix:" + self.path("main.sock"),
                             "--http-trusted-proxies", "unix")
        text = recipe("nginx").replace("/run/hyperfleet-driver/main.sock", self.path("main.sock"))
        text = text.replace("/etc/proxy/", self.folder + "/")
        text = text.replace("listen 443 ssl", "listen 127.0.0.1:%d ssl" % self.port)
        user = "user root;" if os.getuid() == 0 else ""
        temp = "".join("%s_temp_path %s;\n" % (kind, self.path("temp-" + kind))
                       for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = self.write("nginx.conf", "daemon off;\n%s\npid %s;\nerror_log stderr;\nevents {}\n"
                          "http {\naccess_log off;\n%s%s}\n"
                          % (user, self.path("nginx.pid"), temp, text))
        self.proxy(program, "-p", self.folder, "-c", conf)
        self.walk(server)

    def test_haproxy(self):
        """HAProxy over TLS, with a client certificate."""
        program = real.debian("haproxy")
        self_signed(self.folder, "authority", subject="authority")
        signed(self.folder, "client", "authority")
        openssl(self.folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", "driver.key", "-out", "driver-ca.pem", "-days", "30", "-subj",
                "/CN=" + NAME, "-addext", "subjectAltName=DNS:" + NAME)
        self.join("server-and-key.pem", "server.pem", "server.key")
        self.join("client-and-key.pem", "client.pem", "client.key")
        port = free_port()
        server = self.driver("--tls-cert-file", self.path("driver-ca.pem"), "--tls-key-file",
                             self.path("driver.key"), "--tls-client-ca-file",
                             self.path("authority.pem"), "--http-trusted-proxies", "127.0.0.1",
                             "--listen", "127.0.0.1:%d" % port)
        text = recipe("haproxy").replace("192.0.2.10:8000", "127.0.0.1:%d" % port)
        text = text.replace("/etc/proxy/", self.folder + "/")
        text = text.replace("bind :443", "bind 127.0.0.1:%d" % self.port)
        conf = self.write("haproxy.cfg", "global\n    log stderr format raw local0 err\n\n" + text)
        self.proxy(program, "-f", conf)
        self.walk(server)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as direct:
                direct.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                direct.recv(1)


if __name__ == "__main__":
    real.main()
