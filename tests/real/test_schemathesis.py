"""schemathesis asks for what the served OpenAPI document describes: each answer is as described,
and none is a fault of the server.
"""
import json
import os
import tempfile

import real
from lib import Case

SCHEMATHESIS = ("schemathesis==4.32.5",)
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance")
FIELDS = "#/components/parameters/Fields"


class Schemathesis(Case):
    def document(self):
        """The document without paths that name their server (the other listener's), and without
        `fields`. OpenAPI 3.0 cannot say that an answer to it has these members alone.
        """
        doc = self.client.get("/api/hyperfleet/v1/openapi").json
        doc["paths"] = {path: item for path, item in doc["paths"].items() if "servers" not in item}
        for item in doc["paths"].values():
            for operation in item.values():
                if isinstance(operation, dict) and "parameters" in operation:
                    operation["parameters"] = [p for p in operation["parameters"]
                                               if p.get("$ref") != FIELDS]
        return doc

    # Examples of the document and random requests of a fixed seed.
    def test_answers(self):
        tool = real.python_package(SCHEMATHESIS, "bin/schemathesis")
        with tempfile.TemporaryDirectory(prefix="hfd-schemathesis-") as folder:
            path = os.path.join(folder, "openapi.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self.document(), f)
            text = real.run([tool, "run", path, "--url", "http://127.0.0.1:%d" % self.server.port,
                             "--seed", "1", "--max-examples", "10", "--phases", "examples,fuzzing",
                             "--checks", ",".join(CHECKS),
                             "--request-timeout", "30"], deadline_s=600, cwd=folder)
        self.assertRegex(text, r"Test cases:\n +[0-9]{3,} generated", "it asked nothing")


if __name__ == "__main__":
    real.main()
