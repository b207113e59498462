/*
 * HTML from an OpenAPI document. It knows the keywords that schemas/openapi.yaml uses. See
 * openapi_page.h.
 */
#include "handlers/http/openapi_page.h"

#include "driver/base/jsonx.h"

#define DEPTH_MAX 12
#define SCHEMA_PREFIX "#/components/schemas/"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#1d2329;background:#fff;margin:0 "
    "auto;max-width:68rem;padding:1rem 1.5rem 4rem}"
    "h1,h2,h3{line-height:1.25}h2{margin-top:3rem;border-bottom:1px solid "
    "#d5dbe1;padding-bottom:.3rem}"
    "article{border:1px solid #d5dbe1;border-radius:6px;margin:1rem 0;padding:.2rem 1rem 1rem}"
    "code,pre{font:13px/1.45 "
    "ui-monospace,monospace}pre{background:#f4f6f8;border-radius:6px;overflow-x:auto;padding:.7rem}"
    "table{border-collapse:collapse;width:100%}th,td{border-top:1px solid #e4e8ec;padding:.3rem "
    ".8rem .3rem 0;text-align:left;"
    "vertical-align:top}th{font-weight:600}h4{margin:1rem 0 "
    ".2rem}a{color:#0b57a4}.m{display:inline-block;min-width:4.2rem;"
    "font-weight:700;text-transform:uppercase}.note{color:#57606a}nav "
    "ul{columns:22rem;padding-left:1.2rem}"
    "@media(prefers-color-scheme:dark){body{background:#15191e;color:#dfe5ea}article,h2,th,td{"
    "border-color:#38414b}"
    "pre{background:#20262d}a{color:#7db8f5}.note{color:#9aa5b1}}";

static const char *const methods[] = {"get", "put", "post", "patch", "delete"};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

struct page {
    struct hfd_buf *b;
    const json_t *doc;
};

hfd_slice hfd_openapi_page_style(void)
{
    return HFD_SLICE(style);
}

static void add_text(struct hfd_buf *b, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        switch (*text) {
        case '&':
            hfd_buf_lit(b, "&amp;");
            break;
        case '<':
            hfd_buf_lit(b, "&lt;");
            break;
        case '>':
            hfd_buf_lit(b, "&gt;");
            break;
        case '"':
            hfd_buf_lit(b, "&quot;");
            break;
        case '\'':
            hfd_buf_lit(b, "&#39;");
            break;
        default:
            hfd_buf_addc(b, *text);
        }
    }
}

static const char *text_of(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

/* An element around a text; nothing where there is no text. */
static void add_element(struct hfd_buf *b, const char *open, const char *text, const char *close)
{
    if (text == NULL || *text == '\0')
        return;
    hfd_buf_add(b, hfd_slice_of(open));
    add_text(b, text);
    hfd_buf_add(b, hfd_slice_of(close));
}

/* A value as JSON, over several lines where it has several. */
static void add_json(struct hfd_buf *b, const json_t *v, size_t indent)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_INDENT(indent));

    if (text == NULL && b->rc == HFD_OK)
        b->rc = HFD_NOMEM;
    add_text(b, text);
    free(text);
}

/* What stands behind "$ref": "#/...", or the object itself. */
static const json_t *resolve(const struct page *p, const json_t *obj)
{
    const char *ref = text_of(obj, "$ref");

    return ref != NULL && ref[0] == '#' ? hfd_json_pointer(p->doc, hfd_slice_of(ref + 1)) : obj;
}

static void add_properties(const struct page *p, const json_t *schema, int depth);

static void add_bounds(struct hfd_buf *b, const json_t *schema)
{
    static const struct {
        const char *key, *words;
    } bounds[] = {
        {"format", "format "},
        {"enum", "one of "},
        {"pattern", "pattern "},
        {"minimum", "at least "},
        {"maximum", "at most "},
        {"minLength", "length at least "},
        {"maxLength", "length at most "},
        {"minItems", "items at least "},
        {"maxItems", "items at most "},
        {"default", "default "},
        {"nullable", "or null: "},
    };

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const json_t *v = json_object_get(schema, bounds[i].key);

        if (v == NULL)
            continue;
        hfd_buf_addf(b, " <span class=\"note\">%s<code>", bounds[i].words);
        add_json(b, v, 0);
        hfd_buf_lit(b, "</code></span>");
    }
}

/* "array of <a>Cluster</a>", "string", with its bounds and description. */
static void add_type(const struct page *p, const json_t *schema, int depth)
{
    const char *ref = text_of(schema, "$ref");
    const json_t *items = json_object_get(schema, "items");

    if (ref != NULL && strncmp(ref, SCHEMA_PREFIX, strlen(SCHEMA_PREFIX)) == 0) {
        hfd_buf_lit(p->b, "<a href=\"#schema-");
        add_text(p->b, ref + strlen(SCHEMA_PREFIX));
        hfd_buf_lit(p->b, "\">");
        add_text(p->b, ref + strlen(SCHEMA_PREFIX));
        hfd_buf_lit(p->b, "</a>");
        return;
    }
    if (json_object_get(schema, "not") != NULL) {
        hfd_buf_lit(p->b, "not allowed");
        return;
    }
    add_text(p->b, text_of(schema, "type"));
    if (items != NULL && depth < DEPTH_MAX) {
        hfd_buf_lit(p->b, " of ");
        add_type(p, items, depth + 1);
    }
    add_bounds(p->b, schema);
    add_element(p->b, "<br>", text_of(schema, "description"), "");
    add_properties(p, schema, depth);
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), name) == 0)
            return true;
    return false;
}

static void add_properties(const struct page *p, const json_t *schema, int depth)
{
    json_t *properties = json_object_get(schema, "properties"), *v;
    const json_t *more = json_object_get(schema, "additionalProperties");
    const char *name;

    if (json_is_object(more) && depth < DEPTH_MAX) {
        hfd_buf_lit(p->b, "<br><span class=\"note\">other members: </span>");
        add_type(p, more, depth + 1);
    }
    if (json_object_size(properties) == 0 || depth >= DEPTH_MAX)
        return;
    hfd_buf_lit(p->b, "<table>");
    json_object_foreach (properties, name, v) {
        hfd_buf_lit(p->b, "<tr><td><code>");
        add_text(p->b, name);
        hfd_buf_lit(p->b, "</code>");
        if (is_required(schema, name))
            hfd_buf_lit(p->b, "<br><span class=\"note\">required</span>");
        hfd_buf_lit(p->b, "</td><td>");
        add_type(p, v, depth + 1);
        hfd_buf_lit(p->b, "</td></tr>");
    }
    hfd_buf_lit(p->b, "</table>");
}

static void add_example(struct hfd_buf *b, const json_t *example)
{
    if (example == NULL)
        return;
    hfd_buf_lit(b, "<pre>");
    add_json(b, example, 2);
    hfd_buf_lit(b, "</pre>");
}

static void add_content(const struct page *p, const json_t *holder)
{
    json_t *content = json_object_get(holder, "content"), *v;
    const char *type;

    json_object_foreach (content, type, v) {
        hfd_buf_lit(p->b, "<br><code>");
        add_text(p->b, type);
        hfd_buf_lit(p->b, "</code> ");
        add_type(p, json_object_get(v, "schema"), 0);
        add_example(p->b, json_object_get(v, "example"));
    }
}

static void add_parameters(const struct page *p, const json_t *op)
{
    const json_t *list = json_object_get(op, "parameters");

    if (json_array_size(list) == 0)
        return;
    hfd_buf_lit(p->b, "<h4>Parameters</h4><table>");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *param = resolve(p, json_array_get(list, i));
        const json_t *example = json_object_get(param, "example");

        hfd_buf_lit(p->b, "<tr><td><code>");
        add_text(p->b, text_of(param, "name"));
        add_element(p->b, "</code><br><span class=\"note\">", text_of(param, "in"),
                    "</span></td><td>");
        add_text(p->b, text_of(param, "description"));
        hfd_buf_lit(p->b, "<br>");
        add_type(p, json_object_get(param, "schema"), 0);
        if (example != NULL) {
            hfd_buf_lit(p->b, "<br><span class=\"note\">example </span><code>");
            add_json(p->b, example, 0);
            hfd_buf_lit(p->b, "</code>");
        }
        hfd_buf_lit(p->b, "</td></tr>");
    }
    hfd_buf_lit(p->b, "</table>");
}

static void add_responses(const struct page *p, const json_t *op)
{
    json_t *responses = json_object_get(op, "responses"), *v, *header;
    const char *code, *name;

    hfd_buf_lit(p->b, "<h4>Responses</h4><table>");
    json_object_foreach (responses, code, v) {
        const json_t *response = resolve(p, v);

        hfd_buf_lit(p->b, "<tr><td><code>");
        add_text(p->b, code);
        hfd_buf_lit(p->b, "</code></td><td>");
        add_text(p->b, text_of(response, "description"));
        json_object_foreach (json_object_get(response, "headers"), name, header) {
            hfd_buf_lit(p->b, "<br><code>");
            add_text(p->b, name);
            hfd_buf_lit(p->b, "</code> <span class=\"note\">");
            add_text(p->b, text_of(resolve(p, header), "description"));
            hfd_buf_lit(p->b, "</span>");
        }
        add_content(p, response);
        hfd_buf_lit(p->b, "</td></tr>");
    }
    hfd_buf_lit(p->b, "</table>");
}

static void add_operation(const struct page *p, const char *path, const char *method,
                          const json_t *op)
{
    const json_t *body = json_object_get(op, "requestBody");

    add_element(p->b, "<article id=\"", text_of(op, "operationId"), "\">");
    hfd_buf_addf(p->b, "<h3><span class=\"m\">%s</span><code>", method);
    add_text(p->b, path);
    hfd_buf_lit(p->b, "</code></h3>");
    add_element(p->b, "<p><strong>", text_of(op, "summary"), "</strong></p>");
    add_element(p->b, "<p>", text_of(op, "description"), "</p>");
    add_parameters(p, op);
    if (body != NULL) {
        hfd_buf_lit(p->b, "<h4>Body</h4>");
        add_content(p, resolve(p, body));
    }
    add_responses(p, op);
    hfd_buf_lit(p->b, "</article>");
}

static void add_link(const struct page *p, const char *path, const char *method, const json_t *op)
{
    add_element(p->b, "<li><a href=\"#", text_of(op, "operationId"), "\">");
    hfd_buf_addf(p->b, "<span class=\"m\">%s</span><code>", method);
    add_text(p->b, path);
    hfd_buf_lit(p->b, "</code></a></li>");
}

typedef void each_fn(const struct page *p, const char *path, const char *method, const json_t *op);

static void each_operation(const struct page *p, const char *tag, each_fn *fn)
{
    const char *path;
    json_t *item;

    json_object_foreach (json_object_get(p->doc, "paths"), path, item) {
        for (size_t i = 0; i < METHODS; i++) {
            const json_t *op = json_object_get(item, methods[i]);
            const char *own = json_string_value(json_array_get(json_object_get(op, "tags"), 0));

            if (own != NULL && strcmp(own, tag) == 0)
                fn(p, path, methods[i], op);
        }
    }
}

static void add_head(const struct page *p)
{
    const json_t *info = json_object_get(p->doc, "info");

    hfd_buf_lit(p->b,
                "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    add_text(p->b, text_of(info, "title"));
    hfd_buf_lit(p->b, "</title><style>");
    hfd_buf_add(p->b, hfd_openapi_page_style());
    hfd_buf_lit(p->b, "</style></head><body><header><h1>");
    add_text(p->b, text_of(info, "title"));
    add_element(p->b, " <span class=\"note\">", text_of(info, "version"), "</span>");
    hfd_buf_lit(p->b, "</h1>");
    add_element(p->b, "<p>", text_of(info, "description"), "</p>");
    hfd_buf_lit(p->b, "<p><a href=\"openapi\">The same as OpenAPI in JSON</a></p></header>");
}

static void add_schemas(const struct page *p)
{
    const char *name;
    json_t *schema;

    hfd_buf_lit(p->b, "<h2 id=\"schemas\">Schemas</h2>");
    json_object_foreach (hfd_json_pointer(p->doc, HFD_SLICE("/components/schemas")), name, schema) {
        add_element(p->b, "<article id=\"schema-", name, "\"><h3><code>");
        add_element(p->b, "", name, "</code></h3><div>");
        add_type(p, schema, 0);
        hfd_buf_lit(p->b, "</div></article>");
    }
}

void hfd_openapi_page(struct hfd_buf *b, const json_t *doc)
{
    const struct page p = {b, doc};
    const json_t *tags = json_object_get(doc, "tags");

    add_head(&p);
    hfd_buf_lit(b, "<nav>");
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = text_of(json_array_get(tags, i), "name");

        add_element(b, "<h4>", tag, "</h4><ul>");
        each_operation(&p, tag, add_link);
        hfd_buf_lit(b, "</ul>");
    }
    hfd_buf_lit(b, "<p><a href=\"#schemas\">Schemas</a></p></nav><main>");
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const json_t *tag = json_array_get(tags, i);

        add_element(b, "<h2>", text_of(tag, "name"), "</h2>");
        add_element(b, "<p>", text_of(tag, "description"), "</p>");
        each_operation(&p, text_of(tag, "name"), add_operation);
    }
    add_schemas(&p);
    hfd_buf_lit(b, "</main></body></html>\n");
}
