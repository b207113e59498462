#!/usr/bin/env python3
"""The Debian package on a bare Debian: lintian, install, upgrade, remove, purge. On a machine of
its own, started by systemd, a cluster is ordered and deleted by the commands of the manual.
"""
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

import real
import roots

NAME = "hyperfleet-driver"
CONFIG = "/etc/hyperfleet-driver/hyperfleet-driver.yaml"
DATA = "/var/lib/hyperfleet-driver"
UNIT = "/lib/systemd/system/hyperfleet-driver.service"
WAIT_S = 120
ORDER = {"type": "hyperfleet-cluster",
         "driver": {"values": {"cluster": {"name": "shop", "spec": {"region": "eu-1"}},
                               "nodepools": [{"name": "workers", "spec": {"replicas": 3}}]}}}
RESOURCE = "3c0a194814284345"


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        real.debian("dpkg-shlibdeps", "dpkg-dev")
        real.debian("scdoc")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        build = os.path.dirname(os.environ["HFD_PROGRAM"])
        real.run(["cmake", "--build", build, "--target", "hyperfleet-driver", "manual"], 1200)
        real.run(["cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-B", cls.folder])
        cls.deb = os.path.join(cls.folder, [name for name in os.listdir(cls.folder)
                                            if name.endswith(".deb")][0])

    def root(self):
        root = roots.Root()
        self.addCleanup(root.close)
        root.update()
        return root

    def put(self, root, deb):
        real.shutil.copy(deb, root.inside("/srv"))
        return "/srv/" + os.path.basename(deb)

    def newer(self):
        """The same package with a later version."""
        tree, deb = os.path.join(self.folder, "tree"), os.path.join(self.folder, "newer.deb")
        real.run(["dpkg-deb", "-R", self.deb, tree])
        control = os.path.join(tree, "DEBIAN/control")
        with open(control, encoding="utf-8") as f:
            text = f.read()
        with open(control, "w", encoding="utf-8") as f:
            f.write(re.sub(r"(?m)^Version: .*$", "Version: 99.0-1", text))
        real.run(["dpkg-deb", "--root-owner-group", "-b", tree, deb])
        real.shutil.rmtree(tree)
        return deb

    def status(self, root):
        """As dpkg says it, `ii  0.1.0-1`; nothing for a package that it does not know."""
        return root.run("sh", "-c", "dpkg-query -W -f '${db:Status-Abbrev} ${Version}' %s "
                        "2>/dev/null || :" % NAME).strip()

    def test_lintian(self):
        """No error and no warning."""
        lintian = real.debian("lintian")
        text = real.run([lintian, "--allow-root", "--fail-on", "error,warning", "-i", self.deb])
        self.assertNotRegex(text, r"(?m)^[EW]: ")
        listed = real.run([lintian, "--allow-root", "--show-overrides", self.deb])
        with open(os.path.join(real.ROOT, "docker/deb/lintian-overrides"), encoding="utf-8") as f:
            lines = [line for line in f.read().splitlines() if line]
        # Each override stands below its reason, and is used.
        overrides = [line for line in lines if not line.startswith("#")]
        self.assertEqual(len(lines), 2 * len(overrides))
        self.assertEqual(len(re.findall(r"(?m)^O: ", listed)), len(overrides), listed)

    def test_life(self):
        """Install, upgrade, remove, purge, without systemd as process 1."""
        root = self.root()
        before = root.run("find", "/", "-xdev", "-iname", "*hyperfleet*")
        root.run("apt-get", "-q", "install", "-y", self.put(root, self.deb))
        self.assertIn("hyperfleet-driver", root.run("hyperfleet-driver", "version"))
        self.assertIn("# settings file: %s\n" % CONFIG, root.run(
            "hyperfleet-driver", "config", "show", "--origin"))
        root.run("hyperfleet-driver", "config", "check")
        for name in ("prometheus/alerts.yaml", "grafana/hyperfleet-driver.json",
                     "helm/hyperfleet-driver/Chart.yaml", "terraform/hyperfleet-cluster/main.tf"):
            root.run("test", "-s", "/usr/share/hyperfleet-driver/" + name)
        self.assertEqual(root.run("stat", "-c", "%U:%G %a", DATA).strip(),
                         "hyperfleet-driver:hyperfleet-driver 700")
        self.assertIn(":/nonexistent:/usr/sbin/nologin",
                      root.run("getent", "passwd", "hyperfleet-driver"))
        self.assertTrue(root.exists(
            "/etc/systemd/system/multi-user.target.wants/%s.service" % NAME))
        # Root makes a token; the server's user can read it.
        root.run("hyperfleet-driver", "token", "create", "--name", "x", "--scope", "driver",
                 "--new")
        self.assertEqual(root.run("stat", "-c", "%U %a", DATA + "/tokens").strip(),
                         "hyperfleet-driver 600")

        root.write(CONFIG, root.read(CONFIG) + "log:\n  level: warn\n")
        root.run("apt-get", "-q", "install", "-y", self.put(root, self.newer()))
        self.assertEqual(self.status(root), "ii  99.0-1")
        self.assertIn("level: warn", root.read(CONFIG))
        self.assertTrue(root.exists(DATA + "/tokens"))

        root.run("apt-get", "-q", "remove", "-y", NAME)
        self.assertFalse(root.exists("/usr/bin/hyperfleet-driver"))
        self.assertFalse(root.exists(UNIT))
        self.assertTrue(root.exists(CONFIG))
        self.assertTrue(root.exists(DATA + "/tokens"))
        root.run("apt-get", "-q", "install", "-y", self.put(root, self.deb))
        self.assertIn("level: warn", root.read(CONFIG))

        root.run("apt-get", "-q", "purge", "-y", "--auto-remove", NAME)
        self.assertFalse(root.exists(DATA))
        self.assertFalse(root.exists("/etc/hyperfleet-driver"))
        self.assertIn(self.status(root), ("", "un"))
        left = root.run("find", "/", "-xdev", "-iname", "*hyperfleet*", "-not", "-path", "/srv/*")
        self.assertEqual(left, before)

    def test_first_use(self):
        """systemd starts it; the commands of the manual order, look at, check and delete."""
        root = self.root()
        root.run("apt-get", "-q", "install", "-y", "systemd-sysv", "dbus", "python3")
        deb = self.put(root, self.deb)
        root.run("apt-get", "-q", "install", "-y", "--download-only", deb)
        self.put(root, self.newer())
        root.write("/srv/order.json", json.dumps(ORDER))
        root.write("/srv/check.json", json.dumps(ORDER).replace('"shop"', '"check-${id}"'))
        machine = roots.Machine(root)
        self.addCleanup(machine.close)
        say = Transcript(self, machine)
        try:
            self.first_use(say, root, deb)
        except AssertionError:
            print(machine.run("journalctl", "--no-pager", "-u", NAME, "-n", "40")[1])
            raise
        finally:
            print(say.text, flush=True)

    def first_use(self, say, root, deb):
        say("apt-get", "-q", "install", "-y", deb)
        self.assertEqual(say("systemctl", "is-active", NAME), "active\n")
        exposure = say("sh", "-c", "systemd-analyze security --no-pager %s | tail -1" % NAME)
        self.assertLessEqual(float(re.search(r": ([\d.]+)", exposure).group(1)), 1.5)
        # Demo adapters and a short watchdog, as an administrator sets them.
        say("sh", "-c", "echo 'demo: 1s' >>" + CONFIG)
        say("sh", "-c", "mkdir -p {0} && printf '[Service]\\nWatchdogSec=6s\\n' >{0}/local.conf"
            .format("/etc/systemd/system/%s.service.d" % NAME))
        token = say("sh", "-c", "umask 077; hyperfleet-driver token create --name orchestrator "
                    "--scope driver,view,admin >/srv/token && wc -c </srv/token")
        self.assertEqual(token.strip(), "48")
        say("systemctl", "daemon-reload")
        say("systemctl", "restart", NAME)
        say("hyperfleet-driver", "health", "--ready")
        # Here commands log in with the token of the server; elsewhere they need one.
        self.assertEqual(say.try_("hyperfleet-driver", "get", RESOURCE)[0], 4)
        status, text = say.try_("hyperfleet-driver", "get", RESOURCE, "--url",
                                "http://127.0.0.1:8000/")
        self.assertEqual(status, 1, text)
        self.assertIn("give --token-file", text)
        self.commands(say)
        if "  restore " in say.machine.run("hyperfleet-driver", "help")[1]:
            self.restore(say)
        self.reload_and_restart(say)
        self.credentials(say)
        self.upgrade(say)
        say("apt-get", "-q", "purge", "-y", NAME)
        self.assertFalse(root.exists(DATA))

    def commands(self, say):
        known = say("hyperfleet-driver", "help")
        flags = ["--token-file", "/srv/token"]

        def has(command):
            return re.search(r"(?m)^  %s " % command, known)

        if has("register"):
            say("hyperfleet-driver", "register", "--print", "--format", "humctl", "--org", "acme",
                "--target", "https://driver.example/")
        say("hyperfleet-driver", "apply", "/srv/order.json", "--id", RESOURCE, "--wait", *flags)
        ready = json.loads(say("hyperfleet-driver", "get", RESOURCE, "-o", "json", *flags))
        self.assertEqual(ready["resource"]["values"]["name"], "shop")
        if has("status"):
            self.assertIn(RESOURCE, say("hyperfleet-driver", "status", RESOURCE, *flags))
        if has("list"):
            self.assertIn(RESOURCE, say("hyperfleet-driver", "list"))
        report = say("hyperfleet-driver-check", "http://127.0.0.1:8000/", "--input",
                     "/srv/check.json", "--interval", "1s", *flags)
        self.assertIn("0 failed", report)
        if has("backup"):
            say("hyperfleet-driver", "backup", "/srv/backup.db")
        say("hyperfleet-driver", "doctor")
        say("hyperfleet-driver", "delete", RESOURCE, "--wait", *flags)
        self.assertEqual(say.try_("hyperfleet-driver", "get", RESOURCE, *flags)[0], 4)

    def reload_and_restart(self, say):
        first = say("systemctl", "show", "-P", "MainPID", NAME)
        say("systemctl", "reload", NAME)
        self.assertEqual(say("systemctl", "show", "-P", "MainPID", NAME), first)
        # A process that hangs is replaced by the watchdog.
        say("sh", "-c", "kill -STOP " + first.strip())

        def replaced():
            status, now = say.machine.run("systemctl", "show", "-P", "MainPID", NAME)
            state = say.machine.run("systemctl", "is-active", NAME)[1]
            return status == 0 and now.strip() not in ("0", first.strip()) and state == "active\n"

        end = time.monotonic() + WAIT_S
        while not replaced():
            self.assertLess(time.monotonic(), end, "the watchdog has not restarted the service")
            time.sleep(0.2)
        self.assertIn("watchdog", say("sh", "-c", "journalctl --sync; journalctl --no-pager -u %s |"
                                      " grep -i watchdog" % NAME).lower())
        say("hyperfleet-driver", "health", "--ready")


    def restore(self, say):
        """Root restores a backup for the service: the resource that was deleted is back."""
        say("systemctl", "stop", NAME)
        say("sh", "-c", "cd %s && rm store.db* clock" % DATA)
        say("hyperfleet-driver", "restore", "/srv/backup.db")
        say("systemctl", "start", NAME)
        say("hyperfleet-driver", "get", RESOURCE, "--token-file", "/srv/token")
        say("hyperfleet-driver", "delete", RESOURCE, "--wait", "--token-file", "/srv/token")

    def credentials(self, say):
        """A key in /etc/credstore, which root alone can read, serves TLS."""
        say("sh", "-c", "mkdir -p -m 0700 /etc/credstore && cd /etc/credstore && "
            "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=localhost -addext "
            "subjectAltName=DNS:localhost -keyout hyperfleet-driver.tls.key "
            "-out hyperfleet-driver.tls.crt 2>/dev/null")
        say("sh", "-c", "sed -i 's/^# tls:/tls:/; s/^#   cert_file/  cert_file/; "
            "s/^#   key_file/  key_file/' " + CONFIG)
        say("systemctl", "restart", NAME)
        status, text = say.try_("hyperfleet-driver", "get", RESOURCE, "--url",
                                "https://localhost:8000/", "--token-file", "/srv/token",
                                "--ca-file", "/etc/credstore/hyperfleet-driver.tls.crt")
        self.assertEqual(status, 4, text)
        say("hyperfleet-driver", "health", "--ready")

    def upgrade(self, say):
        """An upgrade restarts the service on its data."""
        first = say("systemctl", "show", "-P", "MainPID", NAME)
        say("apt-get", "-q", "install", "-y", "/srv/newer.deb")
        self.assertNotEqual(say("systemctl", "show", "-P", "MainPID", NAME), first)
        self.assertEqual(say("systemctl", "is-active", NAME), "active\n")
        self.assertIn("orchestrator", say("hyperfleet-driver", "token", "list", "--config",
                                          CONFIG))


class Transcript:
    """Commands in a machine, and the text of all of them."""

    def __init__(self, case, machine):
        self.case, self.machine, self.text = case, machine, ""

    def try_(self, *argv):
        status, text = self.machine.run(*argv)
        shown = argv[2] if argv[:2] == ("sh", "-c") else " ".join(argv)
        self.text += "# %s\n%s" % (shown, text)
        return status, text

    def __call__(self, *argv):
        status, text = self.try_(*argv)
        self.case.assertEqual(status, 0, "%s: status %d\n%s" % (" ".join(argv), status, text))
        return text


if __name__ == "__main__":
    real.main()
