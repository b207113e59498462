#!/usr/bin/env python3
"""Makes the OpenAPI document as JSON at build time: openapi.py VERSION OPENAPI_YAML INPUT_JSON OUT.

InputData becomes schemas/input.json, so the document describes what the program validates. That
JSON Schema of draft 7 becomes a schema object of OpenAPI 3.0. null is `nullable`, there is one
example, and false is `not: {}`. Needs Debian's python3-yaml.
"""

import json
import re
import sys

import yaml


class Loader(yaml.SafeLoader):
    """YAML with the scalars of JSON only: a date or a `yes` stays a text."""

    yaml_implicit_resolvers = {}


for tag, pattern, first in (("null", r"null", "n"), ("bool", r"true|false", "tf"),
                            ("int", r"-?(0|[1-9][0-9]*)", "-0123456789")):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(rf"^(?:{pattern})$"),
                                 list(first))


def untitled(schema):
    """The same for an inner schema. Generators of clients make types of titles, and their names
    would collide.
    """
    return {key: value for key, value in openapi_schema(schema).items() if key != "title"}


def openapi_schema(schema):
    """A schema of draft 7 as a schema object of OpenAPI 3.0."""
    if schema is False:
        return {"not": {}}
    examples = schema.get("examples", [])
    schema = {key: value for key, value in schema.items() if key not in ("$schema", "examples")}
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"]
        if len(types) != 1 or len(schema["type"]) != 2:
            sys.exit(f"openapi.py: OpenAPI 3.0 has no type {schema['type']}")
        schema |= {"type": types[0], "nullable": True}
    if examples:
        schema["example"] = examples[0]
    if "properties" in schema:
        schema["properties"] = {name: untitled(below)
                                for name, below in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = untitled(schema[key])
    return schema


def document(version, openapi_yaml, input_json):
    with open(openapi_yaml, encoding="utf-8") as file:
        doc = yaml.load(file, Loader)
    with open(input_json, encoding="utf-8") as file:
        doc["components"]["schemas"]["InputData"] = openapi_schema(json.load(file))
    doc["info"]["version"] = version
    return doc


def main():
    version, openapi_yaml, input_json, out = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(document(version, openapi_yaml, input_json), file, ensure_ascii=False,
                  separators=(",", ":"))


if __name__ == "__main__":
    main()
