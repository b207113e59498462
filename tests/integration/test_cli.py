"""The command line: help, settings from file, environment and flags, what is refused at start,
version.
"""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from lib import TIME_FACTOR, Client, Server, clean_env, program, run

KEYS = ("listen", "ops_listen", "data", "demo", "adapters.required.cluster",
        "adapters.required.nodepool", "driver.terminal_reasons",
        "driver.deadline.create", "driver.deadline.update", "driver.deadline.delete",
        "driver.estimate.create", "driver.outputs.values",
        "driver.outputs.secrets", "driver.outputs.manifests",
        "driver.types.cluster", "driver.types.nodepool", "log.level")


class Cli(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hfd-it-cli-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def file(self, text):
        path = os.path.join(self.dir, "config.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def refused(self, args, words, env=None):
        """Ends with a status other than 0, and stderr has the words."""
        done = run(*args, env=env)
        self.assertNotEqual(done.returncode, 0, "%s was accepted" % (args,))
        self.assertGreater(done.returncode, 0, "ended by a signal: %s" % done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def serve(self, *more):
        return ["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data",
                os.path.join(self.dir, "data"), *more]

    def test_version(self):
        """version prints a version number."""
        for args in (["version"], ["--version"]):
            done = run(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"[0-9]+\.[0-9]+\.[0-9]+")

    def test_help(self):
        """`help` names the commands, `help settings` every setting with its flag. The help of a
        command has what is its own, and examples, in a screen.
        """
        for args in (["--help"], ["help"]):
            done = run(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in ("serve", "keygen", "config", "version"):
                self.assertIn(word, done.stdout)
        commands = re.findall(r"(?m)^  ([a-z]+) ", run("help").stdout)
        self.assertGreater(len(commands), 18)
        done = run("help", "settings")
        self.assertEqual(done.returncode, 0, done.stderr)
        usual, advanced = done.stdout.split("\nAdvanced settings")
        for key in KEYS:
            self.assertIn("--" + re.sub(r"[._]", "-", key), done.stdout)
        self.assertEqual(len(re.findall(r"(?m)^  --", usual)), 18)
        self.assertNotIn("--listen ", advanced)
        for command in set(commands) - {"help", "version"}:
            text = run(command, "--help").stdout
            self.assertLess(len(text.splitlines()), 28, command)
            self.assertIn("\nExample", text)
            self.assertNotIn("Commands:", text)
            self.assertNotIn("not used", text)
            if "SETTINGS]" in text:
                self.assertIn("hyperfleet-driver help settings", text)

    def test_did_you_mean(self):
        """A command or flag that is nearly right is told with the right one."""
        for args, meant in ((["serv"], "serve"), (["list", "--stat"], "--state"),
                            (["doctor", "--jsn"], "--json"), (["keygen", "--rotat"], "--rotate"),
                            (["backup", "x", "--ops-ulr", "y"], "--ops-url"),
                            (["token", "list", "--tokn-file", "y"], "--token-file"),
                            (["config", "show", "--orign"], "--origin"),
                            (["apply", "x", "--wiat"], "--wait"),
                            (["register", "--targte", "y"], "--target"),
                            (["adapter", "hypershift", "--aip", "y"], "--api"),
                            (["migrate", "--form", "y"], "--from"),
                            (["serve", "--listn", "y"], "--listen")):
            self.assertEqual(self.refused(args, ["did you mean %s?" % meant]).returncode, 2)
        self.refused(["xyzzy"], ["hyperfleet-driver help"])

    def test_flags(self):
        """All commands read flags alike: what is wrong is said first, by the name of its flag."""
        for args, said in (
                (("keygen", "--new=1"), "keygen: --new takes no value"),
                (("health", "--ready=1"), "health: --ready takes no value"),
                (("get", "x", "--wait=1"), "get: --wait takes no value"),
                (("keygen", "x"), 'keygen: unexpected argument "x"'),
                (("serve", "--demo", "5"), 'unexpected argument "5"; write --demo=SECONDS'),
                (("keygen", "--rotate", "--prepare"), "one of --rotate, --prepare and --activate"),
                (("keygen", "--keys", "--rotate"), 'flag "--keys": expected a value'),
                (("keygen", "--config", "a", "--config=b"), "flag --config: expected one file"),
                (("config", "show", "x"), "config show: unexpected argument x"),
                (("config", "check", "x"), 'config check: unexpected argument "x"'),
                (("config", "check", "--origin"), "unknown flag --origin"),
                (("config", "show", "--http-threads=65"), "--http-threads: expected a number"),
                (("doctor", "--url"), "doctor: --url: expected URL behind it"),
                (("doctor", "x"), "doctor: unexpected argument x"),
                (("doctor", "--url=http://x/", "--data", "d"), "doctor: --data: not with --url"),
                (("token", "create", "--name"), "token: --name: expected a value"),
                (("token", "create", "--name", "a", "--scope=wheel"), "token: --scope: "),
                (("token", "create", "--expires=0s"), "--expires: expected a duration above 0"),
                (("token", "list", "--name=x"), "token: --name, --scope, --expires and --new "),
                (("token", "list", "--ca-file"), "token list: --ca-file: expected FILE behind it"),
                (("token", "list", "--url=http://x/"), "token list: --url: the ops listener has"),
                (("token", "revoke", "--new"), "token revoke: expected the name of a token"),
                (("backup", "a", "b"), "backup: expected the name of one file"),
                (("restore", "a", "b", "c"), "restore: unexpected argument c"),
                (("migrate", "--from", "x", "--data=y"), "migrate: unexpected argument --data=y"),
                (("adapter", "hypershift", "--api"), 'flag "--backend": expected a value'),
                (("adapter", "hypershift", "--api=x"), "backend: expected"),
                (("apply", "x", "--timeout=x"), "apply: --timeout: expected"),
                (("apply", "x", "y"), "apply: expected one argument beside the flags"),
                (("list", "-o"), "list: -o: expected FORM behind it"),
                (("list", "x"), "list: unexpected argument x"),
                (("list", *("--label", "a=b") * 17), "list: --label: expected at most 16 of them"),
                (("register", "--print", "x"), "register: expected flags only"),
                (("version", "--x"), "version: unexpected argument --x")):
            with self.subTest(args=args):
                self.assertEqual(self.refused(args, [said]).returncode, 2)

    def test_no_or_unknown_command(self):
        """Nothing, or something unknown, is an error that says where commands are listed."""
        self.refused([], ["serve"])
        self.refused(["sevre"], ["sevre"])
        self.refused(["check", "http://x"], ["hyperfleet-driver-check is a program of its own"])

    def test_nobody_reads_the_output(self):
        """Output that goes nowhere gives the status 1: a full disk, a closed pipe, no stdout
        at all.
        """
        for where in (">/dev/full", ">&-"):
            for args in ("version", "help", "config docs", "config show", "config check"):
                with self.subTest(where=where, args=args):
                    done = subprocess.run(["sh", "-c", '"$0" %s %s' % (args, where), program()],
                                          env=clean_env(), capture_output=True,
                                          text=True, timeout=90, check=False)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn("write the output", done.stderr)

    def test_doctor_prints_as_it_goes(self):
        """A line is printed when it is known: before the remote, which is silent, is given up."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(30 * TIME_FACTOR)
            url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            with subprocess.Popen(
                    [program(), "doctor", "--new", "--backend", url, "--data",
                     os.path.join(self.dir, "none")], stdout=subprocess.PIPE, text=True,
                    env=clean_env()) as doctor:
                first, _ = silent.accept()
                self.assertIn("no server has used the data folder", doctor.stdout.readline())
                first.recv(65536)  # the request
                first.settimeout(0)
                with self.assertRaises(BlockingIOError):
                    first.recv(1)  # it still waits
                first.close()
                silent.close()
                self.assertIn("remote", doctor.stdout.read())
                self.assertEqual(doctor.wait(60), 3)

    def test_config_show(self):
        """config show prints a YAML file that reads back to the same, with what file, environment
        and flags say; later wins.
        """
        path = self.file("driver:\n  deadline:\n    create: 90s\n    update: 2h\n"
                         "driver.deadline.delete: 5m\nadapters.required.cluster: [a, b]\n")
        env = {"HFD_DRIVER_DEADLINE_UPDATE": "3h", "HFD_ADAPTERS_REQUIRED_NODEPOOL": "x,y"}
        done = run("config", "show", "--config", path, "--driver-deadline-delete", "7m", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = run("config", "show", "--config", self.file(done.stdout))
        self.assertEqual(again.stdout, done.stdout)
        shown = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line
                     and not line.startswith("#"))
        def seconds(key):
            m = re.search(r"([0-9]+)(s|m|h)", shown[key])
            return int(m.group(1)) * {"s": 1, "m": 60, "h": 3600}[m.group(2)]
        self.assertEqual((seconds("driver.deadline.create"), seconds("driver.deadline.update"),
                          seconds("driver.deadline.delete")),
                         (90, 10800, 420))
        self.assertRegex(shown["adapters.required.cluster"], r"a.*b")
        self.assertRegex(shown["adapters.required.nodepool"], r"x.*y")

    def test_config_show_changed(self):
        """--changed leaves out what has its default; --origin names the file."""
        path = self.file("log.level: info\nlisten: 127.0.0.1:9\ndriver.outputs.values.a: b:/c\n")
        done = run("config", "show", "--changed", "--origin", "--config", path)
        self.assertEqual(done.stdout, '# settings file: %s\nlisten: "127.0.0.1:9" # %s:2\n'
                         'driver.outputs.values.a: "b:/c" # %s:3\n' % (path, path, path))

    def test_config_check(self):
        """config check is silent success or an error with the place."""
        self.assertEqual(run("config", "check", "--config",
                             self.file("log:\n  level: debug\n")).returncode, 0)
        self.refused(["config", "check", "--config", self.file("a: 1\n\nlog:\n  levels: debug\n")],
                     ["config.yaml"])
        self.refused(["config", "check", "--config", os.path.join(self.dir, "missing.yaml")],
                     ["missing.yaml"])

    def test_what_has_no_effect(self):
        """config check warns of settings without an effect, and refuses a file that is not there.
        """
        for text, words in (
                ("hypershift.release_image: x", "hypershift.release_image: has no effect without "
                 "hypershift.kubeconfig"),
                ("remote.timeout: 9s", "remote.timeout: has no effect without the URL of a "
                 "HyperFleet in backend"),
                ("http.socket_mode: '0600'", "http.socket_mode: has no effect without unix:/path"),
                ("events.amqp.exchange.cluster: x", "events.amqp.exchange.cluster: has no effect "
                 "without events.amqp.url and backend: embedded"),
                ("store.patroni: http://h/", "store.patroni: has no effect without store: "),
                ("fleet.identity_header: X-User", "has no effect without http.trusted_proxies")):
            path = self.file(text + "\n")
            done = run("config", "check", "--config", path)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
            self.assertIn("warning: %s:1: %s" % (path, words if ": has" in words
                                                 else "fleet.identity_header: " + words),
                          done.stderr)
        for key in ("remote.token_file", "remote.ca_file", "hypershift.pull_secret_file",
                    "events.amqp.ca_file"):
            path = self.file(key + ": /nonexistent\n")
            done = self.refused(["config", "check", "--config", path],
                                ["%s:1: %s: /nonexistent: No such file" % (path, key)])
            self.assertEqual(done.returncode, 2)
        for key, why in (("ca_file", "/nonexistent: No such file"),
                         ("password_file", "read /nonexistent: No such file")):
            path = self.file("events.amqp: {url: 'amqps://u@h/', %s: /nonexistent}\n" % key)
            self.refused(["config", "check", "--config", path],
                         ["%s:1: events.amqp.%s: %s" % (path, key, why)])
        self.refused(["config", "check", "--config", self.file(
            "driver:\n  deadline.create: 5m\n  estimate.create: 15m\n")],
            ["expected driver.estimate.create to be no more than driver.deadline.create"])

    def test_the_wrong_folder(self):
        """Where no server was, the commands on its data name the folder. --new begins one."""
        empty = os.path.join(self.dir, "empty")
        for args in (("token", "create", "--name", "a", "--scope", "view"), ("keygen",),
                     ("doctor",), ("token", "list")):
            for flags, words in (((), "%s/data (the default); " % self.dir),
                                 (("--data", empty), "%s (--data); " % empty)):
                done = subprocess.run([program(), *args, *flags], cwd=self.dir, env=clean_env(),
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("no server has used the data folder " + words, done.stderr)
                self.assertEqual("--new" in done.stderr, args[-1] != "list", done.stderr)
        self.assertEqual(os.listdir(self.dir), [])
        for args in (("doctor",), ("token", "create", "--name", "a", "--scope", "view"),
                     ("keygen",)):
            self.assertEqual(run(*args, "--new", "--data", empty).returncode, 0)
        self.assertEqual(set(os.listdir(empty)), {"keys", "tokens"})
        self.assertIn("\na ", run("token", "list", "--data", empty).stdout)
        done = run("token", "create", "--name", "b", "--scope", "view", "--data", empty)
        self.assertEqual(done.returncode, 0, "--new is for the first token: " + done.stderr)

    def test_required_adapters_may_be_none(self):
        """No required adapter is allowed, as in HyperFleet, and nothing is ever ready then: config
        check, doctor and serve warn of it.
        """
        path = self.file("adapters:\n  required:\n    nodepool: []\n")
        done = run("config", "check", "--config", path)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"))
        self.assertIn("warning: %s:3: adapters.required.nodepool: no adapters: no nodepool "
                      "becomes ready" % path,
                      done.stderr)
        self.assertNotIn("adapters.required.cluster", done.stderr)
        self.assertEqual(run("config", "check").stderr, "")
        self.assertEqual(run("config", "check", "--config", path, "--backend",
                             "http://127.0.0.1:1/").stderr.count("has no effect"), 1)
        done = run("doctor", "--new", "--config", path, "--data",
                   os.path.join(self.dir, "none"))
        self.assertEqual(done.returncode, 3)
        self.assertIn(
            "settings  adapters.required.nodepool: no adapters: no nodepool becomes ready",
            done.stdout)
        with Server(config="adapters.required.cluster: []\n") as server:
            told = [r for r in server.records() if r.get("setting") == "adapters.required.cluster"]
            self.assertEqual([r["level"] for r in told], ["warn"])
            self.assertIn("no cluster becomes ready", told[0]["reason"])

    def test_config_docs(self):
        """config docs prints the settings as a Markdown table."""
        done = run("config", "docs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("|", done.stdout)
        for key in KEYS:
            self.assertIn(key, done.stdout)

    def test_unknown_key(self):
        """An unknown key is named, wherever it stands, and the server does not start."""
        self.refused(self.serve("--no-such-thing", "1"), ["no-such-thing"])
        self.refused(self.serve(), ["HFD_NO_SUCH_THING"], env={"HFD_NO_SUCH_THING": "1"})
        for text, word in (("no_such_thing: 1\n", "no_such_thing"),
                           ("driver:\n  deadline:\n    begin: 1h\n", "driver.deadline.begin"),
                           ("driver: 7\n", "driver"), ("listen:\n  host: x\n", "listen")):
            done = self.refused(self.serve("--config", self.file(text)), [word, "config.yaml"])
            self.assertNotIn("ready", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "data", "keys")),
                         "nothing is made before the settings are right")

    def test_bad_values(self):
        """A bad value is named with its key, and with what was expected."""
        cases = [("driver.deadline.create", "soon"), ("driver.deadline.create", "10"),
                 ("driver.deadline.create", "-5s"),
                 ("driver.deadline.create", "0s"),
                 ("driver.deadline.create", "99999999h"), ("driver.deadline.create", ""),
                 ("http.body_max", "lots"),
                 ("http.body_max", "1"),
                 ("http.threads", "x"), ("http.threads", "-1"), ("http.threads", "1000"),
                 ("log.level", "loud"),
                 ("log.format", "xml"),
                 ("http.connections_max", "1.5"),
                 ("listen", "here"), ("listen", "127.0.0.1:99999"), ("listen", "127.0.0.1"),
                 ("store", "oracle"), ("backend", "somewhere")]
        for key, value in cases:
            with self.subTest(key=key, value=value):
                flag = "--" + re.sub(r"[._]", "-", key)
                done = self.refused(["serve", "--data", os.path.join(self.dir, "data"),
                                     "--ops-listen", "127.0.0.1:0"]
                                    + ([] if key == "listen" else ["--listen", "127.0.0.1:0"])
                                    + [flag + "=" + value], [])
                self.assertTrue(key in done.stderr or flag in done.stderr, done.stderr)

    def test_postgres_settings(self):
        """A PostgreSQL store needs no folder, makes no key ring, and its password is not shown."""
        url = {"HFD_STORE": "postgres://u:geheim@127.0.0.1:1/db"}
        ring = os.path.join(self.dir, "ring")
        cases = [(["serve", "--data", self.dir], ["--data: ", "no data folder"]),
                 (["serve"], ["keys: ", "keygen --keys FILE"]),
                 (["config", "check"], ["keys: ", "keygen --keys FILE"]),
                 (["keygen"], ["keys: "]),
                 (["serve", "--keys", ring], [ring, "missing", "keygen --keys FILE"]),
                 (["token", "list"], ["auth.tokens_file: "]),
                 (["token", "create", "--name", "a", "--scope", "view"], ["auth.tokens_file: "]),
                 (["restore", ring], ["keys: ", "keygen --keys FILE"]),
                 (["migrate", "--from", "sqlite:" + self.dir], ["--to PLACE"]),
                 (["migrate", "--from", self.dir, "--to", "sqlite:x"], ["--from: ", "sqlite:"]),
                 (["serve", "--store", "postgres://u:ge/heim@h/db"], ["--store: ", "%2F"])]
        for args, words in cases:
            with self.subTest(args):
                done = self.refused(args, words, env=url)
                self.assertNotIn("heim", done.stdout + done.stderr)
        self.assertEqual(os.listdir(self.dir), [], "nothing is made")
        done = run("config", "show", env=url)
        self.assertIn('store: "postgres://u:***@127.0.0.1:1/db"', done.stdout)
        self.assertIn('data: ""', done.stdout)

    def test_named_secrets(self):
        """config check tries the key ring and the password that the settings name. A server with
        such a password does not start.
        """
        ring, password, tokens = (os.path.join(self.dir, name)
                                  for name in ("ring", "password", "tokens"))
        url = {"HFD_STORE": "postgres://u@127.0.0.1:1/db", "HFD_AUTH_TOKENS_FILE": tokens,
               "HFD_STORE_PASSWORD_FILE": password}
        self.assertEqual(run("keygen", "--keys", ring, "--data", self.dir).returncode, 0)
        check = ["config", "check", "--keys", ring]
        for text, word in ((None, "No such file"), ("", "holds no password"),
                           ("geheim\nsecond\n", "expected one password on one line")):
            with self.subTest(text):
                if text is not None:
                    with open(password, "w", encoding="utf-8") as f:
                        f.write(text)
                for args in (check, ["serve", *check[2:]]):
                    done = self.refused(args, ["store.password_file: ", password, word], env=url)
                    self.assertNotIn("geheim", done.stdout + done.stderr)
        with open(password, "w", encoding="utf-8") as f:
            f.write("geheim\n")
        os.chmod(password, 0o644)
        done = run(*check, env=url)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"))
        self.assertIn("store.password_file: %s: mode 0644" % password, done.stderr)
        os.chmod(password, 0o600)
        self.assertEqual(run(*check, env=url).stderr, "")
        self.refused(check[:-1] + [ring + "x"], [ring + "x", "No such file"], env=url)
        self.assertEqual(run("config", "check", "--keys", ring + "x").stdout, "ok\n",
                         "the first start makes it")
        with open(ring, "w", encoding="utf-8") as f:
            f.write("rubbish\n")
        self.refused(check, ["key ring " + ring, "line 1"], env=url)

    def test_bad_files(self):
        """Files that are no map of settings are refused with their name."""
        for text in ("- a\n- b\n", "just text\n", "a: [\n", "driver: &x {}\nlog: *x\n",
                     "log:\n  level: debug\n  level: info\n", "\x00",
                     "log.level: !!int debug\n"):
            with self.subTest(text):
                self.refused(["config", "check", "--config", self.file(text)], ["config.yaml"])
        self.assertEqual(run("config", "check", "--config", self.file("")).returncode, 0)

    def test_bad_output_rules(self):
        """An output needs ADAPTER:/json/pointer."""
        for rule in ("nonsense", ":/x", "hypershift:no-slash"):
            with self.subTest(rule):
                self.refused(self.serve("--config",
                                        self.file(
                                            "driver:\n  outputs:\n    values:\n      url: '%s'\n"
                                            % rule)),
                             ["driver.outputs.values"])

    def test_service_links(self):
        """Variables that Kubernetes makes for a Service warn and do not stop; others still do."""
        links = {"HFD_PORT": "tcp://10.0.0.1:80", "HFD_PORT_80_TCP_ADDR": "10.0.0.1",
                 "HFD_SERVICE_HOST": "10.0.0.1", "HFD_UI_SERVICE_PORT": "80",
                 "HFD_UI_PORT": "tcp://10.0.0.1:80"}
        done = run("config", "check", env=links)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"))
        for name in links:
            self.assertIn(name, done.stderr)
        self.assertIn("enableServiceLinks", done.stderr)
        with Server(env=links) as server:
            told = [r for r in server.records() if r.get("setting") == "environment"]
            self.assertEqual([r["level"] for r in told], ["warn"])
        for name in ("HFD_LISTENN", "HFD_UI_PORT", "HFD_X"):
            self.refused(["config", "check"], [name], env={name: "80"})

    def test_environment_and_flags(self):
        """The same setting by environment and by both forms of a flag reaches the server."""
        for flags, env in ((("--adapters-required-cluster", "only-one"), None),
                           (("--adapters-required-cluster=only-one",), None),
                           ((), {"HFD_ADAPTERS_REQUIRED_CLUSTER": "only-one"})):
            with self.subTest(flags=flags, env=env), Server(*flags, env=env) as server:
                client = Client(server)
                cluster = client.post("/api/hyperfleet/v1/clusters",
                                      {"kind": "Cluster", "name": "abc", "spec": {}}).json
                client.post(cluster["href"] + "/statuses",
                            {"adapter": "only-one", "observed_generation": 1,
                    "observed_time": "2026-01-01T00:00:00Z",
                            "conditions": [{"type": t, "status": "True"}
                                           for t in ("Available", "Applied", "Health")]})
                conditions = {c["type"]: c["status"]
                              for c in client.get(cluster["href"]).json["status"]["conditions"]}
                client.close()
                self.assertEqual(conditions,
                                 {"Ready": "True", "Available": "True",
                                  "Reconciled": "True", "LastKnownReconciled": "True",
                                  "OnlyOneSuccessful": "True"})

    def test_not_loopback(self):
        """Without authentication configured only loopback is served."""
        for listen in ("0.0.0.0:0", "[::]:0"):
            for command in (["serve"], ["config", "check"]):
                with self.subTest(listen, command=command):
                    self.refused(command + ["--listen", listen, "--ops-listen", "127.0.0.1:0",
                                            "--data", os.path.join(self.dir, "data")],
                                 ["listen", listen, "loopback"])

    def test_port_in_use(self):
        """A port in use is an error that names it."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            self.refused(["serve", "--listen", "127.0.0.1:%d" % port, "--ops-listen", "127.0.0.1:0",
                          "--data",
                          os.path.join(self.dir, "data")], [str(port)])

    def test_data_folder(self):
        """A data folder that cannot be made, or is a file, is named."""
        path = self.file("")
        for data in (path, "/proc/no-such-place/data"):
            with self.subTest(data):
                self.refused(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0",
                              "--data", data], [data])

    def test_log_is_json_lines(self):
        """Everything on stderr is one JSON object a line, with time, level and msg."""
        with Server() as server:
            Client(server).get("/abc")
            self.assertEqual(server.sigterm(), 0)
            self.assertTrue(server.lines)
            self.assertEqual(len(server.records()), len([x for x in server.lines if x.strip()]),
                             server.tail(40))
            for rec in server.records():
                self.assertIn("msg", rec)
                self.assertIn("level", rec)


if __name__ == "__main__":
    unittest.main()
