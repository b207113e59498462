/*
 * The OpenAPI document against the table of routes and its page. Sources: schemas/openapi.yaml,
 * handlers/http/routes.c. The scripts that make page and manual: tests/integration/test_pages.py.
 */
#include "schemas/validate.h"
#include "schemas/documents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "handlers/http/route.h"
#include "handlers/http/routes.h"

static const char *const verbs[] = {"get", "put", "post", "patch", "delete"};

static json_t *document(void)
{
    struct hfd_err err;
    json_t *doc;

    if (hfd_json_parse(hfd_openapi_text(), &doc, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    return doc;
}

/* The document writes {GUResID} as the Driver API does. */
static json_t *path_item(const json_t *doc, const char *pattern)
{
    const char *path;
    json_t *item;

    json_object_foreach (json_object_get(doc, "paths"), path, item)
        if (strcasecmp(path, pattern) == 0)
            return item;
    return NULL;
}

static bool is_ops(const json_t *item)
{
    return json_object_get(item, "servers") != NULL;
}

/* Every row of the table stands in the document, on its listener. */
static void every_route_is_documented(void **state)
{
    json_t *doc = document();

    (void)state;
    for (size_t i = 0; i < hfd_route_count; i++) {
        const struct hfd_route *r = &hfd_routes[i];
        const json_t *item = path_item(doc, r->pattern);
        char method[16] = "";

        for (size_t k = 0; hfd_method_name(r->method)[k] != '\0' && k < sizeof(method) - 1; k++)
            method[k] = (char)(hfd_method_name(r->method)[k] | 0x20);
        if (json_object_get(item, method) == NULL)
            fail_msg("%s %s is not in schemas/openapi.yaml", method, r->pattern);
        if (is_ops(item) != (r->listener == HFD_LISTENER_OPS))
            fail_msg("%s is documented on another listener", r->pattern);
    }
    json_decref(doc);
}

static bool is_routed(const char *path, const char *verb)
{
    for (size_t i = 0; i < hfd_route_count; i++)
        if (strcasecmp(hfd_routes[i].pattern, path) == 0 &&
            strcasecmp(hfd_method_name(hfd_routes[i].method), verb) == 0)
            return true;
    return false;
}

/*
 * Every operation of the document has a row in the table, and no path item has more than operations
 * and servers.
 */
static void every_operation_is_routed(void **state)
{
    json_t *doc = document(), *item, *op;
    const char *path, *key;

    (void)state;
    json_object_foreach (json_object_get(doc, "paths"), path, item) {
        json_object_foreach (item, key, op) {
            bool known = strcmp(key, "servers") == 0;

            for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++)
                known = known || strcmp(key, verbs[v]) == 0;
            if (!known || (strcmp(key, "servers") != 0 && !is_routed(path, key)))
                fail_msg("%s %s is in schemas/openapi.yaml and not in routes.c", key, path);
        }
    }
    json_decref(doc);
}

/* Each component schema compiles: our own validator understands all that the document says. */
static void every_schema_compiles(void **state)
{
    json_t *doc = document(), *v;
    const char *name;

    (void)state;
    json_object_foreach (hfd_json_pointer(doc, HFD_SLICE("/components/schemas")), name, v) {
        struct hfd_schema *schema;
        struct hfd_err err;
        char at[100];

        (void)snprintf(at, sizeof(at), "/components/schemas/%s", name);
        if (hfd_schema_compile(doc, hfd_slice_of(at), &schema, &err) != HFD_OK)
            fail_msg("%s: %s", name, err.msg);
        hfd_schema_free(schema);
    }
    json_decref(doc);
}

/*
 * The input is that of schemas/input.json, in OpenAPI's words: no list of types, no list of
 * examples, no schema that is a boolean.
 */
static void input_is_put_in(void **state)
{
    json_t *doc = document();
    const json_t *input = hfd_json_pointer(doc, HFD_SLICE("/components/schemas/InputData"));
    const json_t *cluster = hfd_json_pointer(
        input, HFD_SLICE("/properties/driver/properties/values/properties/cluster"));
    char *text;

    (void)state;
    assert_string_equal(json_string_value(json_object_get(cluster, "type")), "object");
    assert_true(json_is_true(json_object_get(cluster, "nullable")));
    assert_true(json_is_object(hfd_json_pointer(
        cluster, HFD_SLICE("/properties/labels/properties/humanitec_guresid/not"))));
    text = json_dumps(input, 0);
    assert_non_null(text);
    assert_null(strstr(text, "\"examples\""));
    assert_null(strstr(text, "\"null\""));
    assert_null(strstr(text, "$schema"));
    free(text);
    assert_string_equal(json_string_value(hfd_json_pointer(doc, HFD_SLICE("/info/version"))),
                        HFD_VERSION);
    json_decref(doc);
}

static bool is_shown(const char *html)
{
    for (size_t i = 0; i < hfd_openapi_docs_count; i++)
        if (memmem(hfd_openapi_docs[i].body.p, hfd_openapi_docs[i].body.len, html, strlen(html)))
            return true;
    return false;
}

/* The pages show every path and every schema. */
static void pages_show_everything(void **state)
{
    json_t *doc = document(), *v;
    const char *key;
    char text[200];

    (void)state;
    json_object_foreach (json_object_get(doc, "paths"), key, v) {
        (void)snprintf(text, sizeof(text), "<code>%s</code></h2>", key);
        if (!is_shown(text))
            fail_msg("no page shows %s", key);
    }
    json_object_foreach (hfd_json_pointer(doc, HFD_SLICE("/components/schemas")), key, v) {
        (void)snprintf(text, sizeof(text), "<article id=\"schema-%s\">", key);
        if (!is_shown(text))
            fail_msg("no page shows %s", key);
    }
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_documented), cmocka_unit_test(every_operation_is_routed),
        cmocka_unit_test(every_schema_compiles),     cmocka_unit_test(input_is_put_in),
        cmocka_unit_test(pages_show_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
