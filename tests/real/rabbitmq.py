"""RabbitMQ in a box: no service of this machine, and no port on this side."""
import os

import box
import real
from lib import eventually

PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # the one in PATH changes to another user
AMQP, AMQPS = 5672, 5671
START_S = 120


def need():
    """Returns the words that make a box, or skips."""
    words = box.how()
    if words is None:
        real.skip("this machine gives a test no namespaces of its own (unshare --net --pid)")
    if not os.access(PROGRAM, os.X_OK):
        real.skip("%s is missing: apt-get install rabbitmq-server" % PROGRAM)
    return words


class Broker:
    """A broker that can be killed and started again.

    path, tls_path -- the sockets that lead to its ports
    conf           -- lines of rabbitmq.conf
    """

    def __init__(self, folder, words, conf=""):
        self.folder, self.words, self.starts = folder, words, 0
        self.home = os.path.join(folder, "rabbitmq")
        os.mkdir(self.home)
        with open(os.path.join(self.home, "plugins"), "w", encoding="utf-8") as f:
            f.write("[].\n")
        self.configure(conf)

    def configure(self, conf):
        with open(os.path.join(self.home, "rabbitmq.conf"), "w", encoding="utf-8") as f:
            f.write(conf)

    def start(self):
        self.starts += 1
        self.path, self.tls_path = (os.path.join(self.folder, "%s-%d" % (name, self.starts))
                                    for name in ("amqp", "amqps"))
        conf = os.path.join(self.home, "rabbitmq.conf")
        self.box = box.Box(
            self.words, os.path.join(self.folder, "rabbitmq.log"), [PROGRAM],
            [("--out", "%s=%d" % (self.path, AMQP)), ("--out", "%s=%d" % (self.tls_path, AMQPS))],
            {"HOME": self.home, "RABBITMQ_NODENAME": "hfd@localhost",
             "RABBITMQ_MNESIA_BASE": self.home, "RABBITMQ_LOG_BASE": self.home,
             "RABBITMQ_LOGS": "-", "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
             "RABBITMQ_NODE_PORT": str(AMQP), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
             "RABBITMQ_CONFIG_FILE": conf if os.path.getsize(conf) else conf + ".none",
             "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(self.home, "plugins")})

        def is_up():
            if self.box.proc.poll() is not None:
                real.skip("RabbitMQ does not start here: %s" % self.box.text()[-1000:])
            return "Server startup complete" in self.box.text()
        eventually(is_up, "RabbitMQ", START_S, 0.2)

    def kill(self):
        """As kill -9: all of the box ends at once."""
        self.box.close()
