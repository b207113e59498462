"""An OpenAPI document as HTML pages. They know the keywords that schemas/openapi.yaml uses."""

import json

from page import frame, links, text

METHODS = ("get", "put", "post", "patch", "delete")
SCHEMAS = "#/components/schemas/"
DEPTH_MAX = 12  # of schemas in schemas
BOUNDS = (("format", "format "), ("enum", "one of "), ("pattern", "pattern "),
          ("minimum", "at least "), ("maximum", "at most "), ("minLength", "length at least "),
          ("maxLength", "length at most "), ("minItems", "items at least "),
          ("maxItems", "items at most "), ("default", "default "), ("nullable", "or null: "))


def element(before, value, after):
    """HTML around a text; nothing if there is no text."""
    return before + text(value) + after if value else ""


def value_text(value, indent=None):
    return text(json.dumps(value, ensure_ascii=False, indent=indent))


class OpenapiPage:
    def __init__(self, doc):
        self.doc = doc

    def resolve(self, obj):
        """The object that "$ref": "#/..." names, or the object itself."""
        found = self.doc
        if "$ref" not in obj:
            return obj
        for part in obj["$ref"][2:].split("/"):
            found = found[part]
        return found

    # ---- schemas ----

    def type_of(self, schema, depth=0):
        """ "array of <a>Cluster</a>", "string", with bounds and description. """
        ref = schema.get("$ref", "")
        if ref.startswith(SCHEMAS):
            name = text(ref[len(SCHEMAS):])
            return f'<a href="schemas.html#schema-{name}">{name}</a>'
        if "not" in schema:
            return "not allowed"
        html = text(schema.get("type"))
        if "items" in schema and depth < DEPTH_MAX:
            html += " of " + self.type_of(schema["items"], depth + 1)
        html += "".join(f' <span class="note">{words}<code>{value_text(schema[key])}</code></span>'
                        for key, words in BOUNDS if key in schema)
        html += element("<br>", schema.get("description"), "")
        return html + self.properties(schema, depth)

    def properties(self, schema, depth):
        more, properties, html = schema.get("additionalProperties"), schema.get("properties"), ""
        if isinstance(more, dict) and depth < DEPTH_MAX:
            html += '<br><span class="note">other members: </span>' + self.type_of(more, depth + 1)
        if not properties or depth >= DEPTH_MAX:
            return html
        required = schema.get("required", [])
        note = '<br><span class="note">required</span>'
        rows = (f"<tr><td><code>{text(name)}</code>{note if name in required else ''}</td>"
                f"<td>{self.type_of(below, depth + 1)}</td></tr>"
                for name, below in properties.items())
        return html + "<table>" + "".join(rows) + "</table>"

    def content(self, holder):
        html = ""
        for kind, media in holder.get("content", {}).items():
            html += f"<br><code>{text(kind)}</code> " + self.type_of(media.get("schema", {}))
            if "example" in media:
                html += f"<pre>{value_text(media['example'], 2)}</pre>"
        return html

    # ---- operations ----

    def operations(self, tag):
        """(path, method, operation) of a tag."""
        for path, item in self.doc["paths"].items():
            for method in METHODS:
                if tag in item.get(method, {}).get("tags", [])[:1]:
                    yield path, method, item[method]

    def parameter(self, param):
        example = ""
        if "example" in param:
            example = ('<br><span class="note">example </span>'
                       f'<code>{value_text(param["example"])}</code>')
        return (f'<tr><td><code>{text(param["name"])}' +
                element('</code><br><span class="note">', param["in"], "</span></td><td>") +
                f'{text(param.get("description"))}<br>{self.type_of(param.get("schema", {}))}'
                f"{example}</td></tr>")

    def parameters(self, operation):
        rows = [self.parameter(self.resolve(param)) for param in operation.get("parameters", [])]
        return "<h3>Parameters</h3><table>" + "".join(rows) + "</table>" if rows else ""

    def response(self, code, response):
        headers = ""
        for name, header in response.get("headers", {}).items():
            note = text(self.resolve(header).get("description"))
            headers += f'<br><code>{text(name)}</code> <span class="note">{note}</span>'
        return (f'<tr><td><code>{text(code)}</code></td><td>{text(response.get("description"))}'
                f"{headers}{self.content(response)}</td></tr>")

    def address(self, path, item, operation):
        """The address of an example: path parameters have their examples, or their names."""
        server = (item.get("servers") or self.doc.get("servers") or [{}])[0].get("url", "")
        for param in operation.get("parameters", []):
            param = self.resolve(param)
            if param.get("in") == "path":
                path = path.replace("{%s}" % param["name"], str(param.get("example", "ID")))
        return server + path

    def body_example(self, operation):
        for media in self.resolve(operation.get("requestBody", {})).get("content", {}).values():
            if "example" in media:
                return json.dumps(media["example"], ensure_ascii=False)
        return None

    def curl(self, path, method, operation):
        """A command to paste into a shell."""
        command = "curl -s"
        body = self.body_example(operation)
        if method != "get":
            command += " -X " + method.upper()
        command += " " + self.address(path, self.doc["paths"][path], operation)
        if body is not None:
            command += " -d '" + body.replace("'", "'\\''") + "'"
        return f"<h3>curl</h3><pre>{text(command)}</pre>"

    def operation(self, path, method, operation):
        body = operation.get("requestBody")
        responses = "".join(self.response(code, self.resolve(response))
                            for code, response in operation.get("responses", {}).items())
        return (element('<article id="', operation["operationId"], '">') +
                f'<h2><span class="m">{method}</span><code>{text(path)}</code></h2>' +
                element("<p><strong>", operation.get("summary"), "</strong></p>") +
                element("<p>", operation.get("description"), "</p>") +
                self.curl(path, method, operation) +
                self.parameters(operation) +
                ("<h3>Body</h3>" + self.content(self.resolve(body)) if body else "") +
                f"<h3>Responses</h3><table>{responses}</table></article>")

    # ---- pages ----

    @staticmethod
    def file(tag):
        return text(tag["name"].lower()) + ".html"

    def contents(self, tag, page):
        """The operations of a tag, as links to their places on a page."""
        rows = [(f"{page}#{operation['operationId']}",
                 f'<span class="m">{method}</span><code>{text(path)}</code>')
                for path, method, operation in self.operations(tag["name"])]
        label = text("Operations: " + tag["name"])
        return f'<nav class="toc" aria-label="{label}"><ul>{links(rows, None)}</ul></nav>'

    def section(self, tag):
        return (f"<h1>{text(tag['name'])}</h1>" + element("<p>", tag.get("description"), "</p>") +
                self.contents(tag, "") +
                "".join(self.operation(*o) for o in self.operations(tag["name"])))

    def schemas(self):
        return "<h1>Schemas</h1>" + "".join(
            f'<article id="schema-{text(name)}"><h2><code>{text(name)}</code></h2>'
            f"<div>{self.type_of(schema)}</div></article>"
            for name, schema in self.doc["components"]["schemas"].items())

    def start(self):
        return (f'<h1>{text(self.doc["info"]["title"])}' +
                element(' <span class="note">', self.doc["info"]["version"], "</span>") + "</h1>" +
                element("<p>", self.doc["info"].get("description"), "</p>") + "".join(
                    f'<h2><a href="openapi/{self.file(tag)}">{text(tag["name"])}</a></h2>' +
                    element("<p>", tag.get("description"), "</p>") +
                    self.contents(tag, "openapi/" + self.file(tag)) for tag in self.doc["tags"]))

    def pages(self):
        """{name: HTML}: the start as "", a page of each tag, and one of the schemas.

        The start is beside the folder of the other pages, and links are relative.
        """
        made = {self.file(tag): (tag["name"], self.section(tag)) for tag in self.doc["tags"]}
        made["schemas.html"] = ("Schemas", self.schemas())
        rows = [(name, text(title)) for name, (title, _) in made.items()]
        title = self.doc["info"]["title"]
        head = '<a href="%s">' + text(title) + '</a> <a href="%s">The same as OpenAPI in JSON</a>'
        pages = {name: frame(f"{name_of}: {title}", head % ("../openapi.html", "../openapi"),
                             links(rows, name), main) for name, (name_of, main) in made.items()}
        pages[""] = frame(title, head % ("openapi.html", "openapi"),
                          links([("openapi/" + to, label) for to, label in rows], None),
                          self.start())
        return pages
