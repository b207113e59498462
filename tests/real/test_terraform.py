"""The modules of docker/terraform, applied by OpenTofu with the provider magodo/restful.

The files of `register --print`, checked by OpenTofu with the providers of the orchestrators.

HFD_TOFU names the program, and HFD_TERRAFORM_PROVIDERS a folder with terraform-provider-NAME;
without them they are built from their Go modules.
"""
import json
import os
import subprocess
import tempfile
import unittest

import real
from lib import Client, Fleet, Server, eventually, run

TOFU = ("github.com/opentofu/opentofu", "v1.10.6")
PROVIDERS = {
    "restful": ("github.com/magodo/terraform-provider-restful", "v0.25.2"),
    "humanitec": ("github.com/humanitec/terraform-provider-humanitec", "v1.9.1"),
    "platform-orchestrator": ("github.com/stellwerk-labs/terraform-provider-platform-orchestrator",
                              "v1.0.1"),
}
MODULES = os.path.join(real.ROOT, "docker", "terraform")
SOON = ("--driver-estimate-create=1s", "--driver-estimate-update=1s", "--driver-estimate-delete=1s")
OUTPUTS = ("--driver-outputs-values-endpoint=hypershift:/endpoint",
           "--driver-outputs-secrets-kubeconfig=hypershift:/secrets/kubeconfig")
CLUSTER, POOL = "7f3a194814284345", "7f3a194814284346"
MAIN = """
terraform {
  required_providers { restful = { source = "magodo/restful" } }
}
variable "region" { default = "eu-1" }
variable "name" { default = "from-tofu" }
variable "with_pool" { default = false }
variable "pool_owner" { default = null }
provider "restful" { base_url = "http://127.0.0.1:%(port)d" }
module "cluster" {
  source    = "%(modules)s/hyperfleet-cluster"
  id        = "%(cluster)s"
  name      = var.name
  spec      = { region = var.region }
  labels    = { app = "shop", env = "dev" }
  nodepools = [
    { name = "workers", spec = { replicas = 3 } },
    { name = "gpu", spec = { kinds = ["a"] } },
  ]
}
module "pool" {
  source          = "%(modules)s/hyperfleet-nodepool"
  count           = var.with_pool ? 1 : 0
  id              = "%(pool)s"
  cluster_guresid = module.cluster.id
  cluster_id      = var.pool_owner
  name            = "extra"
  spec            = { replicas = 2 }
}
output "values" { value = module.cluster.values }
output "endpoint" { value = module.cluster.endpoint }
output "kubeconfig" {
  value     = module.cluster.kubeconfig
  sensitive = true
}
output "pool" { value = one(module.pool[*].nodepool_id) }
"""


def tofu():
    """OpenTofu. Its module is built where Go keeps it, as it has `replace` lines."""
    if os.environ.get("HFD_TOFU") or real.shutil.which("tofu"):
        return real.find("tofu", "set HFD_TOFU", "HFD_TOFU")
    go = real.find("go", "install Go 1.24 or later")
    kept = subprocess.run([go, "env", "GOMODCACHE"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()

    def commands(folder):
        return [[go, "mod", "download", "%s@%s" % TOFU],
                [go, "-C", os.path.join(kept, "%s@%s" % TOFU), "build", "-buildvcs=false",
                 "-o", os.path.join(folder, "tofu"), "./cmd/tofu"]]
    return real.install("tofu@" + TOFU[1], commands, "tofu", {"CGO_ENABLED": "0"})


def provider_folder(name):
    """The folder of a provider's program."""
    named = os.environ.get("HFD_TERRAFORM_PROVIDERS")
    if named:
        program = "terraform-provider-" + name
        if not os.access(os.path.join(named, program), os.X_OK):
            real.skip("HFD_TERRAFORM_PROVIDERS: %s has no %s" % (named, program))
        return named
    return os.path.dirname(real.go_program(*PROVIDERS[name]))


class Case(unittest.TestCase):
    """A folder for OpenTofu, and a way to run it."""

    @classmethod
    def setUpClass(cls):
        cls.tofu = tofu()

    def use(self, source):
        """Prepares a folder in which a provider is that of this machine."""
        folder = tempfile.TemporaryDirectory(prefix="hfd-tofu-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "rc"), "w", encoding="utf-8") as f:
            f.write('provider_installation {\n  dev_overrides { "%s" = "%s" }\n  direct {}\n}\n'
                    % (source, provider_folder(source.split("/")[1])))
        self.env = dict(os.environ, TF_CLI_CONFIG_FILE=os.path.join(self.folder, "rc"),
                        TF_IN_AUTOMATION="1", CHECKPOINT_DISABLE="1")

    def write(self, text):
        with open(os.path.join(self.folder, "main.tf"), "w", encoding="utf-8") as f:
            f.write(text)

    def start(self, *args, **env):
        return subprocess.Popen([self.tofu, *args], cwd=self.folder, env=dict(self.env, **env),
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def end(self, ran, want=0):
        text = ran.communicate(timeout=300)[0]
        self.assertEqual(ran.returncode, want, text)
        return text

    def call(self, *args, want=0, **env):
        return self.end(self.start(*args, **env), want)


class Register(Case):
    FLAGS = ("--org", "acme", "--target", "https://driver.example/", "--env-type", "dev",
             "--k8s-cluster")

    def printed(self, form):
        ran = run("register", "--print", "--format", form, *self.FLAGS)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_form(self):
        """`tofu fmt` would change nothing."""
        for form in ("terraform", "stellwerk"):
            ran = subprocess.run([self.tofu, "fmt", "-check", "-diff", "-"], text=True,
                                 input=self.printed(form), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False)
            self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_humanitec(self):
        """The provider of the classic orchestrator takes all resources, and plans them."""
        self.use("humanitec/humanitec")
        self.write(self.printed("terraform"))
        self.call("validate", "-no-color")
        text = self.call("plan", "-no-color", HUMANITEC_TOKEN="none")
        self.assertIn("Plan: 10 to add", text)
        self.assertIn("${resources['acme/hyperfleet-cluster.default#shared.", text)

    def test_stellwerk(self):
        """So does that of Stellwerk."""
        self.use("stellwerk-labs/platform-orchestrator")
        self.write(self.printed("stellwerk"))
        self.call("validate", "-no-color")


class Terraform(Case):
    def setUp(self):
        self.use("magodo/restful")

    def serve(self, *flags):
        server = Server(*SOON, *flags)
        self.addCleanup(server.close)
        server.start()
        self.client = Client(server)
        self.addCleanup(self.client.close)
        self.fleet = Fleet(self.client)
        self.write(MAIN % {"port": server.port, "modules": MODULES, "cluster": CLUSTER,
                           "pool": POOL})
        self.call("get", "-no-color")

    def apply(self, *args, want=0, meanwhile=None):
        ran = self.start("apply", "-auto-approve", "-no-color", *args)
        try:
            if meanwhile:
                meanwhile(ran)
            return " ".join(self.end(ran, want).split())
        finally:
            if ran.poll() is None:
                ran.kill()
                ran.wait()

    def plan(self, *args):
        """The status of a plan: 0 when there is nothing to do, 2 when there is."""
        ran = self.start("plan", "-detailed-exitcode", "-no-color", *args)
        text = ran.communicate(timeout=300)[0]
        self.assertIn(ran.returncode, (0, 2), text)
        return ran.returncode

    def status(self, gid):
        return self.client.get("/" + gid).status

    def make_ready(self, gid=CLUSTER, generation=1):
        """Adapters report, as soon as the order is there."""
        def there():
            return [c for pair in self.fleet.of(gid) for c in pair
                    if c["generation"] >= generation] and self.status(gid) == 202
        eventually(there, "the order")
        clusters, nodepools = self.fleet.of(gid)
        for part in clusters + nodepools:
            self.fleet.make_ready(part, data={"endpoint": "https://api.example:6443",
                                              "secrets": {"kubeconfig": "hush-hush"}})

    def outputs(self):
        return {k: v["value"] for k, v in json.loads(self.call("output", "-json")).items()}

    def test_a_life(self):
        """Applied, planned without a difference, changed, destroyed; secrets are sensitive."""
        self.serve(*OUTPUTS)
        for name in ("hyperfleet-cluster", "hyperfleet-nodepool"):
            self.call("-chdir=" + os.path.join(MODULES, name), "validate", "-no-color")
        text = self.apply(meanwhile=lambda _: self.make_ready())
        self.assertNotIn("hush", text)
        out = self.outputs()
        self.assertEqual((out["values"]["name"], out["values"]["generation"], out["endpoint"],
                          out["kubeconfig"]),
                         ("from-tofu", 1, "https://api.example:6443", "hush-hush"))
        self.assertEqual(sorted(p["name"] for p in out["values"]["nodepools"]), ["gpu", "workers"])
        self.assertEqual(self.fleet.cluster_of(CLUSTER)["labels"]["app"], "shop")
        self.assertEqual(self.plan(), 0)
        self.assertEqual(self.plan("-var", "region=eu-2"), 2)
        self.apply("-var", "region=eu-2", meanwhile=lambda _: self.make_ready(generation=2))
        self.assertEqual(self.outputs()["values"]["generation"], 2)
        pool = ("-var", "region=eu-2", "-var", "with_pool=true")
        self.apply(*pool, meanwhile=lambda _: self.make_ready(POOL))
        self.assertTrue(self.outputs()["pool"])
        self.assertEqual(self.plan(*pool), 0)
        ran = self.start("destroy", "-auto-approve", "-no-color", *pool)
        try:
            for gid in (POOL, CLUSTER):
                eventually(lambda g=gid: self.status(g) == 202 and any(
                    "deleted_time" in p for pair in self.fleet.of(g) for p in pair), "a deletion")
                if gid == POOL:
                    self.assertEqual(self.status(CLUSTER), 200, "the nodepool goes first")
                self.fleet.finish_delete(gid)
        finally:
            self.end(ran)
        self.assertEqual((self.status(POOL), self.status(CLUSTER)), (404, 404))

    def test_failures(self):
        """A failure says why; the next apply tries again; destroy removes what never was ready."""
        self.serve("--driver-terminal-reasons=QuotaExceeded")

        # The adapter reports until the end: what it says before an attempt does not count for it.
        def refuse(ran):
            eventually(lambda: self.status(CLUSTER) == 202 or ran.poll() is not None, "the order")
            cluster = self.fleet.cluster_of(CLUSTER)
            eventually(lambda: self.fleet.report(cluster, "hypershift", available=False,
                                                 reason="QuotaExceeded",
                                                 message="12 of 24 cores left") and
                       ran.poll() is not None, "the end of the order", every_s=0.2)
        text = self.apply(want=1, meanwhile=refuse)
        self.assertIn("RES-104", text)
        self.assertIn("12 of 24 cores left", text)
        self.assertEqual(self.status(CLUSTER), 400)
        self.assertEqual(self.plan(), 2, "there is still something to do")
        text = self.apply(want=1, meanwhile=refuse)
        self.assertEqual(len(self.fleet.of(CLUSTER)[0]), 1, "it is the same cluster")

        def finish():
            eventually(lambda: self.status(CLUSTER) == 202, "the deletion")
            self.fleet.finish_delete(CLUSTER)
        ran = self.start("destroy", "-auto-approve", "-no-color")
        try:
            finish()
        finally:
            self.end(ran)
        self.assertEqual(self.status(CLUSTER), 404)

    def test_deadline(self):
        """The driver's deadline is the time limit, and says what it waited for."""
        self.serve("--driver-deadline-create=2s", "--driver-deadline-delete=1h")
        text = self.apply(want=1)
        self.assertIn("RES-105", text)
        self.assertIn("hypershift", text)

    def test_wrong_inputs(self):
        """The plan fails for what the driver would refuse; the driver's words for the rest."""
        self.serve()
        self.assertIn("expected 3 to 53 lower-case letters",
                      self.apply("-var", "name=A", want=1))
        self.assertIn("Expected one of cluster_guresid and cluster_id",
                      self.apply("-var", "with_pool=true", "-var", "pool_owner=x", want=1))
        self.assertEqual(self.fleet.of(CLUSTER), ([], []))

    def test_deleted_by_others(self):
        """A plan warns of a cluster that is gone, and -replace orders it again."""
        self.serve("--demo=1")
        self.apply()
        eventually(lambda: self.client.delete("/" + CLUSTER).status == 204, "the deletion")
        text = self.call("plan", "-no-color")
        self.assertIn("The cluster was deleted by others", " ".join(text.split()))
        self.apply("-replace=module.cluster.restful_operation.order",
                   "-replace=module.cluster.restful_operation.ready")
        self.assertEqual(self.status(CLUSTER), 200)
        self.assertEqual(self.plan(), 0)


if __name__ == "__main__":
    real.main()
