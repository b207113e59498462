"""schemathesis asks for what the served OpenAPI document describes: each answer is as described,
and none is a fault of the server.
"""
import json
import os
import re
import tempfile

import real
from lib import Case

SCHEMATHESIS = ("schemathesis==4.32.5",)
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance")
FIELDS = "#/components/parameters/Fields"


def takes_fields(operation):
    return any(p.get("$ref") == FIELDS for p in operation.get("parameters", ()))


def without_required(doc, schema):
    """The schema with all members optional, and all references followed."""
    while "$ref" in schema:
        schema = at(doc, schema["$ref"])
    optional = {k: v for k, v in schema.items() if k != "required"}
    if "properties" in optional:
        optional["properties"] = {k: without_required(doc, v)
                                  for k, v in optional["properties"].items()}
    for word in ("allOf", "anyOf", "oneOf"):
        if word in optional:
            optional[word] = [without_required(doc, v) for v in optional[word]]
    if isinstance(optional.get("items"), dict):
        optional["items"] = without_required(doc, optional["items"])
    return optional


def at(doc, ref):
    for key in ref[2:].split("/"):
        doc = doc[key]
    return doc


class Schemathesis(Case):
    def document(self):
        """The document without paths that name their server: the other listener's."""
        doc = self.client.get("/api/hyperfleet/v1/openapi").json
        # Answers may be held for as long as a request says; short ones are enough.
        doc["components"]["parameters"]["WatchWait"]["schema"]["pattern"] = "^[0-9]{1,3}ms$"
        doc["paths"] = {path: item for path, item in doc["paths"].items() if "servers" not in item}
        return doc

    def plain(self):
        """The document without `fields`."""
        doc = self.document()
        for item in doc["paths"].values():
            for operation in item.values():
                if isinstance(operation, dict) and "parameters" in operation:
                    operation["parameters"] = [p for p in operation["parameters"]
                                               if p.get("$ref") != FIELDS]
        return doc

    def with_fields(self):
        """The operations that take `fields`. Each member of their answers is optional then, as the
        parameter says, which OpenAPI 3.0 cannot.
        """
        doc = self.document()
        paths = {}
        for path, item in doc["paths"].items():
            get = item.get("get")
            if not get or not takes_fields(get):
                continue
            paths[path] = {k: v for k, v in item.items() if k in ("get", "parameters")}
            answer = at(doc, get["responses"]["200"]["$ref"])
            content = {"application/json": {"schema": without_required(
                doc, answer["content"]["application/json"]["schema"])}}
            get["responses"]["200"] = {**answer, "content": content}
        self.assertEqual(len(paths), 6)
        doc["paths"] = paths
        return doc

    def asked(self, doc):
        """Examples of the document and random requests of a fixed seed."""
        tool = real.python_package(SCHEMATHESIS, "bin/schemathesis")
        with tempfile.TemporaryDirectory(prefix="hfd-schemathesis-") as folder:
            path = os.path.join(folder, "openapi.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(doc, f)
            text = real.run([tool, "run", path, "--url", "http://127.0.0.1:%d" % self.server.port,
                             "--seed", "1", "--max-examples", "10", "--phases", "examples,fuzzing",
                             "--checks", ",".join(CHECKS), "--request-timeout", "30"],
                            deadline_s=600, cwd=folder)
        return int(re.search(r"Test cases:\n +([0-9,]+) generated", text).group(1))

    # Every operation.
    def test_answers(self):
        self.assertGreater(self.asked(self.plain()), 100, "it asked too little")

    # Answers with some members alone.
    def test_fields(self):
        self.created()
        self.assertGreater(self.asked(self.with_fields()), 20, "it asked too little")


if __name__ == "__main__":
    real.main()
