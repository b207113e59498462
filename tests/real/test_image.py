#!/usr/bin/env python3
"""The container image: the steps of docker/Dockerfile run in a bare Debian; where buildah works it
builds an image of them as well. The result serves as docker/compose.yaml runs it: as user 65532
without capabilities, on a read-only root.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import yaml

import postgres
import real
import roots
from lib import eventually, free_port

DOCKER = os.path.join(real.ROOT, "docker")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BUILD_S = 1200
# A container: a read-only root ($1), a volume ($2) at /data, its own network, no capability. The
# test's commands follow.
CONTAINER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=1777,size=16m tmpfs "$1/tmp"
for n in null urandom; do
    mount --bind "/dev/$n" "$1/dev/$n"
done
ip link set lo up
mount -o remount,bind,ro "$1"
root=$1
shift 2
exec chroot "$root" setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs \\
    --inh-caps=-all --bounding-set=-all env -i "$@"
"""
# The life of a container: refused without a token, ready with one, healthy, stopped.
LIFE = """
set -u
cd /data
if hyperfleet-driver serve 2>refused.log; then exit 10; fi
grep -q 'token create' refused.log || exit 11
hyperfleet-driver token create --name x --scope driver --new >token || exit 12
hyperfleet-driver serve 2>log &
pid=$!
until hyperfleet-driver health --ready 2>/dev/null; do
    kill -0 "$pid" || { cat log; exit 13; }
    sleep 0.1
done
%s || exit 14
if touch /usr/x 2>/dev/null; then exit 15; fi
hyperfleet-driver get 3c0a194814284345 --url http://127.0.0.1:8000/ --state state 2>&1 |
    grep -q 401 || exit 16
hyperfleet-driver get 3c0a194814284345 --token-file token --state state
[ "$?" = 4 ] || exit 17
kill "$pid"
wait "$pid" || exit 18
echo "a whole life"
"""


def steps():
    """The steps of the Dockerfile: [(instruction, rest)]."""
    with open(os.path.join(DOCKER, "Dockerfile"), encoding="utf-8") as f:
        text = "\n".join(line for line in f.read().splitlines() if not line.startswith("#"))
    return [tuple(line.split(None, 1)) for line in text.replace("\\\n", " ").splitlines()
            if line.strip()]


def copy_context(folder):
    """The sources, without what .dockerignore names."""
    with open(os.path.join(real.ROOT, ".dockerignore"), encoding="utf-8") as f:
        left_out = {os.path.join(real.ROOT, line.strip()) for line in f if line[0] != "#"}
    shutil.copytree(real.ROOT, folder, symlinks=True, dirs_exist_ok=True, ignore=lambda at, names: [
        name for name in names if os.path.join(at, name) in left_out])


class Stage:
    """One stage of the build, and the configuration of its image."""

    def __init__(self):
        self.root, self.workdir = roots.Root(), "/"
        self.config = {"ENV": {}}

    def step(self, name, rest, stages):
        if name == "RUN":
            env = ["%s=%s" % pair for pair in self.config["ENV"].items()]
            self.root.run("env", "PATH=" + PATH, *env, "sh", "-c",
                          "cd %s && %s" % (self.workdir, rest), deadline_s=BUILD_S)
        elif name == "WORKDIR":
            self.workdir = rest
            os.makedirs(self.root.inside(rest), exist_ok=True)
        elif name == "COPY" and rest == ". .":
            copy_context(self.root.inside(self.workdir))
        elif name == "COPY":
            source, at, to = re.match(r"^--from=(\w+) (\S+) (\S+)$", rest).groups()
            shutil.copytree(stages[source].root.inside(at), self.root.inside(to))
        elif name == "ENV":
            self.config["ENV"].update(pair.split("=", 1) for pair in shlex.split(rest))
        else:
            self.config[name] = rest


def build(case):
    """Runs the steps; returns the last stage."""
    stages, stage = {}, None
    for name, rest in steps():
        if name == "ARG":
            continue
        if name == "FROM":
            stage = Stage()
            case.addCleanup(stage.root.close)
            stages[rest.split(" AS ")[-1] if " AS " in rest else "image"] = stage
            continue
        stage.step(name, rest, stages)
    return stage


class Image(unittest.TestCase):
    def setUp(self):
        roots.base()
        for program, package in (("setpriv", "util-linux"), ("ip", "iproute2")):
            real.debian(program, package)

    def live(self, root, env, healthcheck):
        """A container with this root lives its life."""
        volume = tempfile.mkdtemp(prefix="hfd-volume-")
        self.addCleanup(shutil.rmtree, volume, ignore_errors=True)
        # A new volume has the owner and mode of the folder in the image.
        st = os.stat(os.path.join(root, "data"))
        os.chown(volume, st.st_uid, st.st_gid)
        os.chmod(volume, st.st_mode & 0o777)
        for name in ("null", "urandom"):
            path = os.path.join(root, "dev", name)
            if not os.path.exists(path):
                with open(path, "w", encoding="ascii"):
                    pass
        text = real.run(["unshare", "-m", "-p", "-n", "-f", "--kill-child", "sh", "-c", CONTAINER,
                         "sh", root, volume, "PATH=" + PATH,
                         *["%s=%s" % pair for pair in env.items()],
                         "sh", "-c", LIFE % shlex.join(healthcheck)], 300)
        self.assertIn("a whole life", text)

    def test_steps(self):
        """The steps, run in a bare Debian."""
        image = build(self)
        config = image.config
        self.assertEqual(config["USER"], "65532:65532")
        self.assertEqual(json.loads(config["ENTRYPOINT"]), ["/usr/bin/hyperfleet-driver"])
        self.assertEqual(json.loads(config["CMD"]), ["serve"])
        self.assertEqual(config["VOLUME"], "/data")
        check = json.loads(config["HEALTHCHECK"].split(" CMD ")[1])
        self.live(image.root.path, config["ENV"], check)

    def test_buildah(self):
        """The image that buildah builds."""
        buildah = real.debian("buildah")
        folder = tempfile.mkdtemp(prefix="hfd-buildah-")
        self.addCleanup(subprocess.run, ["rm", "-rf", folder], check=False)
        tool = [buildah, "--storage-driver", "vfs", "--root", folder + "/root", "--runroot",
                folder + "/run"]
        context = os.path.join(folder, "context")
        copy_context(context)
        try:
            made = real.run(tool + ["from", "scratch"]).split()[-1]
            real.run(tool + ["add", made, roots.base(), "/"])
            real.run(tool + ["commit", "--rm", made, "localhost/base"])
        except AssertionError as e:
            real.skip("buildah does not work here: %s" % str(e)[-300:])
        real.run(tool + ["bud", "--isolation", "chroot", "--build-arg", "BASE=localhost/base",
                         "--format", "docker", "-f", os.path.join(context, "docker/Dockerfile"),
                         "-t", "hyperfleet-driver", context], BUILD_S)
        made = real.run(tool + ["from", "localhost/hyperfleet-driver"]).split()[-1]
        config = json.loads(real.run(tool + ["inspect", made]))["Docker"]["config"]
        self.assertEqual(config["User"], "65532:65532")
        self.assertIn("/data", config["Volumes"])
        env = dict(pair.split("=", 1) for pair in config["Env"])
        env.pop("PATH")
        root = real.run(tool + ["mount", made]).strip()
        self.live(root, env, config["Healthcheck"]["Test"][1:])


# A program with the parser of Docker Compose: it prints what it understood of a file.
COMPOSE_GO = "github.com/compose-spec/compose-go/v2@v2.9.0"
COMPOSE_MAIN = """package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions([]string{os.Args[1]},
		cli.WithProfiles(os.Args[2:]), cli.WithConsistency(true))
	if err == nil {
		project, failed := options.LoadProject(context.Background())
		if err = failed; err == nil {
			text, _ := project.MarshalJSON()
			fmt.Print(string(text))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""


def compose_parser():
    """The path of that program."""
    go = real.find("go", "install Go 1.24 or later")

    def commands(folder):
        os.makedirs(folder)
        with open(os.path.join(folder, "main.go"), "w", encoding="utf-8") as f:
            f.write(COMPOSE_MAIN)
        return [[go, "-C", folder, *words] for words in (
            ["mod", "init", "parser"], ["get", COMPOSE_GO], ["mod", "tidy"],
            ["build", "-o", "parser", "."])]
    return real.install("compose-go@v2.9.0", commands, "parser", {"GOFLAGS": "-mod=mod"})


class Compose(unittest.TestCase):
    FILE = os.path.join(DOCKER, "compose.yaml")
    REPLICAS = ("replica-1", "replica-2")

    def setUp(self):
        with open(self.FILE, encoding="utf-8") as f:
            self.document = yaml.safe_load(f)
        self.services = self.document["services"]

    def test_settings(self):
        """Its variables are settings, and its services give up all that they do not need."""
        used = set()
        for name in ("driver", *self.REPLICAS):
            service = self.services[name]
            self.assertEqual((service["read_only"], service["cap_drop"], service["user"]),
                             (True, ["ALL"], "65532:65532"))
            for secret in service["secrets"]:
                self.assertIn("/run/secrets/" + secret, service["environment"].values())
            used |= set(service["secrets"])
            done = subprocess.run([os.environ["HFD_PROGRAM"], "config", "show"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=service["environment"])
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn('tls.cert_file: "/run/secrets/tls.crt"', done.stdout)
        self.assertEqual(used, set(self.document["secrets"]))

    def test_postgres(self):
        """The profile's database has the collation that a server demands. Its password is that of
        the replicas.
        """
        database = self.services["postgres"]
        env = self.services["replica-1"]["environment"]
        self.assertEqual(env, self.services["replica-2"]["environment"])
        self.assertEqual(env["HFD_STORE"], "postgres://%s@postgres/%s" % (
            database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"]))
        self.assertEqual(env["HFD_STORE_PASSWORD_FILE"],
                         database["environment"]["POSTGRES_PASSWORD_FILE"])
        self.assertNotIn("HFD_DATA", env, "the program does not use that of the image")
        words = shlex.split(database["environment"]["POSTGRES_INITDB_ARGS"])
        self.assertLessEqual({"--locale=C", "--encoding=UTF8"}, set(words))

    def test_parsed(self):
        """The parser of Docker Compose takes it. Without the profile there is one server."""
        parser = compose_parser()
        for profiles, names in (((), {"driver"}),
                                (("postgres",), {"driver", "postgres", *self.REPLICAS})):
            project = json.loads(real.run([parser, self.FILE, *profiles]))
            self.assertEqual(set(project["services"]), names)
        needs = project["services"]["replica-2"]["depends_on"]["postgres"]
        self.assertEqual(needs["condition"], "service_healthy")

    def database(self):
        """The URL of a database that the SQL of the manual makes, and its password."""
        server = postgres.Postgres()
        self.addCleanup(server.close)
        server.start()
        with open(os.path.join(real.ROOT, "handlers/docs/scale.md"), encoding="utf-8") as f:
            sql = re.search(r"^```sql\n(.*?)^```$", f.read(), re.M | re.S)[1]
        for statement in sql.replace("'...'", "'secret'").split(";\n"):
            if statement.strip():
                postgres.query(server.url("postgres"), statement)
        return "127.0.0.1:%d" % server.port, "secret"

    def test_replicas(self):
        """Two replicas run by the services' variables and the commands of the manual. An order of
        one is seen at the other.
        """
        place, password = self.database()
        folder = tempfile.mkdtemp(prefix="hfd-compose-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)

        def at(name):
            return os.path.join(folder, name)
        program = os.environ["HFD_PROGRAM"]
        with open(at("postgres.password"), "w", encoding="ascii") as f:
            f.write(password + "\n")
        real.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
                  "-subj", "/CN=driver.example", "-addext", "subjectAltName=DNS:localhost",
                  "-keyout", at("tls.key"), "-out", at("tls.crt")])
        bare = {"PATH": PATH}
        real.run([program, "keygen", "--keys", at("keys")], env=bare)
        with open(at("token"), "w", encoding="ascii") as f:
            f.write(real.run([program, "token", "create", "--name", "orchestrator", "--scope",
                              "driver", "--auth-tokens-file", at("tokens")], env=bare))
        with open(at("order.json"), "w", encoding="utf-8") as f:
            json.dump({"type": "hyperfleet-cluster", "driver": {"values": {
                "cluster": {"name": "shop", "spec": {"region": "eu-1"}}}}}, f)
        before = set(os.listdir(folder))
        urls = [self.replica(self.services[name]["environment"], folder, place)
                for name in self.REPLICAS]
        flags = ["--token-file", at("token"), "--ca-file", at("tls.crt"), "--state", at("state")]
        real.run([program, "apply", at("order.json"), "--id", "3c0a", "--url", urls[0], *flags],
                 env=bare)
        seen = real.run([program, "get", "3c0a", "--url", urls[1], *flags], env=bare)
        self.assertEqual(json.loads(seen)["status"], "creating")
        self.assertEqual(set(os.listdir(folder)), before | {"state", "state.lock"},
                         "a replica writes no file")

    def replica(self, variables, folder, place):
        """Starts a service as Compose would, on ports of its own, with a data folder as the image
        has one; returns its URL.
        """
        main, ops = free_port(), free_port()
        env = {name: value.replace("/run/secrets", folder).replace("@postgres/", "@%s/" % place)
               for name, value in variables.items()}
        env.setdefault("HFD_DATA", os.path.join(folder, "data"))
        env.update(PATH=PATH, HFD_LISTEN="127.0.0.1:%d" % main, HFD_OPS_LISTEN="127.0.0.1:%d" % ops)
        proc = subprocess.Popen([os.environ["HFD_PROGRAM"], "serve"], env=env, cwd="/",
                                stderr=subprocess.DEVNULL)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.terminate)
        eventually(lambda: subprocess.run(
            [os.environ["HFD_PROGRAM"], "health", "--ready"], env=env, check=False,
            stderr=subprocess.DEVNULL).returncode == 0, "a replica is ready", 120)
        return "https://localhost:%d/" % main


if __name__ == "__main__":
    real.main()
