"""Client generators take the served OpenAPI document: each client compiles or imports, orders a
cluster by a typed call, and reads a typed list.
"""
import json
import os
import shutil
import tempfile

import real
from lib import Case

OAPI_CODEGEN = ("github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen", "v2.8.2")
GO_RUNTIME = "v1.8.0"
PYTHON_CLIENT = ("openapi-python-client==0.29.1", "ruff==0.14.5")
PYTHON_GENERATOR = ("openapi-generator-cli==7.26.0", "urllib3>=2.7,<3", "python_dateutil",
                    "pydantic>=2.11", "typing-extensions")

# The driver's part of an order is given as JSON: its nested types have no names in Go.
GO_MAIN = """package main

import (
    "context"
    "encoding/json"
    "fmt"
    "os"
)

func must(err error) {
    if err != nil {
        panic(err)
    }
}

func main() {
    var order InputData

    client, err := NewClientWithResponses(os.Args[1])
    must(err)
    must(json.Unmarshal([]byte(os.Args[3]), &order))
    put, err := client.PutResourceWithResponse(context.Background(), os.Args[2], nil, order)
    must(err)
    list, err := client.GetClustersWithResponse(context.Background(), nil)
    must(err)
    fmt.Println(put.JSON202.Status, list.JSON200.Items[0].Name)
}
"""

PYTHON_CLIENT_MAIN = """
import json, sys
from hyperfleet_driver_client import Client
from hyperfleet_driver_client.api.clusters import get_clusters
from hyperfleet_driver_client.api.driver import put_resource
from hyperfleet_driver_client.models import InputOfAHyperFleetClusterOrNodepool as Order

client = Client(base_url=sys.argv[1])
hint = put_resource.sync(sys.argv[2], client=client, body=Order.from_dict(json.loads(sys.argv[3])))
print(hint.status.value, get_clusters.sync(client=client).items[0].name)
"""

PYTHON_GENERATOR_MAIN = """
import sys
import openapi_client as api

client = api.ApiClient(api.Configuration(host=sys.argv[1]))
order = api.InputData.from_json(sys.argv[3])
hint = api.DriverApi(client).put_resource(sys.argv[2], order)
print(hint.status, api.ClustersApi(client).get_clusters().items[0].name)
"""


class Generators(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="hfd-generated-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.document = self.write("openapi.json",
                                   self.client.get("/api/hyperfleet/v1/openapi").body.decode())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def ordered(self, argv, name, **kw):
        """Runs a program of a generated client: it orders a cluster and reads the list."""
        order = {"type": "hyperfleet-cluster",
                 "driver": {"values": {"cluster": {"name": name, "spec": {"region": "eu-1"}}}}}
        text = real.run(argv + ["http://127.0.0.1:%d" % self.server.port, name,
                                json.dumps(order)], **kw)
        self.assertEqual(text.split(), ["creating", name])
        self.assertEqual(self.client.get("/" + name).status, 202)

    # Go: oapi-codegen, the generator that HyperFleet's own programs use.
    def test_oapi_codegen(self):
        tool = real.go_program(*OAPI_CODEGEN)
        self.write("go.mod", "module client\n\ngo 1.24\n\nrequire "
                   "github.com/oapi-codegen/runtime %s\n" % GO_RUNTIME)
        self.write("main.go", GO_MAIN)
        real.run([tool, "-generate", "types,client", "-package", "main", "-o",
                  os.path.join(self.folder, "client.gen.go"), self.document])
        env = dict(os.environ, GOFLAGS="-mod=mod")
        program = os.path.join(self.folder, "client")
        real.run(["go", "build", "-o", program, "."], cwd=self.folder, env=env)
        self.ordered([program], "made-by-go")

    # Python: openapi-python-client leaves out what it does not understand, with a warning.
    def test_openapi_python_client(self):
        tool = real.python_package(PYTHON_CLIENT, "bin/openapi-python-client")
        bin_folder = os.path.dirname(tool)
        text = real.run([tool, "generate", "--path", self.document, "--output-path",
                         os.path.join(self.folder, "client")],
                        env=dict(os.environ, PATH=bin_folder + ":" + os.environ["PATH"]))
        self.assertNotIn("arning", text)
        self.ordered([os.path.join(bin_folder, "python3"), "-B", "-c", PYTHON_CLIENT_MAIN],
                     "made-by-python", cwd=os.path.join(self.folder, "client"))

    # Python: openapi-generator, a Java program.
    def test_openapi_generator(self):
        real.debian("java", "default-jre-headless")
        tool = real.python_package(PYTHON_GENERATOR, "bin/openapi-generator-cli")
        real.run([tool, "generate", "-g", "python", "-i", self.document, "-o",
                  os.path.join(self.folder, "client")])
        self.ordered([os.path.join(os.path.dirname(tool), "python3"), "-B", "-c",
                      PYTHON_GENERATOR_MAIN], "made-by-java",
                     cwd=os.path.join(self.folder, "client"))


if __name__ == "__main__":
    real.main()
