"""The Helm chart's values as they stand in its files: the table of its README is made of them."""
import json
import re

import pages
import yaml

CHART = "docker/helm/hyperfleet-driver/"
README, VALUES = CHART + "README.md", CHART + "values.yaml"


def comments():
    """{(key, ...): text} of the lines "# -- text" in front of a key."""
    found, path, text = {}, [], None
    for line in pages.read(VALUES).splitlines():
        comment = re.match(r"^ *# -- (.*)$", line)
        key = re.match(r"^( *)([A-Za-z]\w*):", line)
        if comment:
            text = comment.group(1)
        elif key:
            path = path[:len(key.group(1)) // 2] + [key.group(2)]
            if text:
                found[tuple(path)] = text
            text = None
    return found


def values():
    return yaml.safe_load(pages.read(VALUES))


def value_of(path):
    at = values()
    for key in path:
        at = at[key]
    return at


def table():
    """The table of values."""
    rows = ["| Value | Default | Meaning |\n", "|---|---|---|\n"]
    for path, text in comments().items():
        rows.append("| `%s` | `%s` | %s |\n" % (".".join(path), json.dumps(value_of(path)), text))
    return "".join(rows)
