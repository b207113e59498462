/* See hcl.h. */
#include "handlers/register/hcl.h"

#include <stdlib.h>

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* Adds JSON text as HCL: the two differ in templates alone. */
static void add_escaped(struct hfd_buf *b, const char *json)
{
    for (const char *p = json; *p != '\0'; p++) {
        if ((*p == '$' || *p == '%') && p[1] == '{')
            hfd_buf_addc(b, *p);
        hfd_buf_addc(b, *p);
    }
}

static void add_json(struct hfd_buf *b, const json_t *doc, size_t flags)
{
    char *json = json_dumps(doc, flags | JSON_ENCODE_ANY);

    if (json == NULL) {
        b->rc = b->rc == HFD_OK ? HFD_NOMEM : b->rc;
        return;
    }
    add_escaped(b, json);
    free(json);
}

void hfd_hcl_text(struct hfd_buf *b, const char *text)
{
    json_t *doc = json_string(text);

    add_json(b, doc, 0);
    json_decref(doc);
}

void hfd_hcl_json(struct hfd_buf *b, const char *name, const json_t *doc)
{
    hfd_buf_addf(b, "  %s = jsonencode(", name);
    add_json(b, doc, JSON_INDENT(2));
    hfd_buf_lit(b, ")\n");
}

void hfd_hcl_line(struct hfd_buf *b, const char *name, const char *text)
{
    if (text == NULL)
        return;
    hfd_buf_addf(b, "  %s = ", name);
    hfd_hcl_text(b, text);
    hfd_buf_addc(b, '\n');
}

/* ---- terraform ---- */

/* The name of a resource in the file: hyphens become underscores. */
static void add_name(struct hfd_buf *b, const char *id)
{
    for (const char *p = id; *p != '\0'; p++)
        hfd_buf_addc(b, *p == '-' ? '_' : *p);
}

static void begin(struct hfd_buf *b, const char *kind, const char *id)
{
    hfd_buf_addf(b, "\nresource \"%s\" \"", kind);
    add_name(b, id);
    hfd_buf_lit(b, "\" {\n");
}

/* The id behind "org/" of a type. */
static const char *bare(const char *type)
{
    const char *slash = strchr(type, '/');

    return slash != NULL ? slash + 1 : type;
}

static void add_type(struct hfd_buf *b, const json_t *type)
{
    begin(b, "humanitec_resource_type", bare(member(type, "type")));
    hfd_hcl_line(b, "id", member(type, "type"));
    hfd_hcl_line(b, "name", member(type, "name"));
    hfd_hcl_line(b, "category", member(type, "category"));
    hfd_hcl_line(b, "use", member(type, "use"));
    hfd_hcl_json(b, "inputs_schema", json_object_get(type, "inputs_schema"));
    hfd_hcl_json(b, "outputs_schema", json_object_get(type, "outputs_schema"));
    hfd_buf_lit(b, "}\n");
}

/* Adds a reference, so that what it names is made first. */
static void add_reference(struct hfd_buf *b, const char *name, const char *kind, const char *id)
{
    hfd_buf_addf(b, "  %s = %s.", name, kind);
    add_name(b, id);
    hfd_buf_lit(b, ".id\n");
}

static void add_driver(struct hfd_buf *b, const json_t *driver)
{
    begin(b, "humanitec_resource_driver", member(driver, "id"));
    hfd_hcl_line(b, "id", member(driver, "id"));
    add_reference(b, "type", "humanitec_resource_type", bare(member(driver, "type")));
    hfd_buf_lit(b, "  account_types = []\n");
    hfd_hcl_json(b, "inputs_schema", json_object_get(driver, "inputs_schema"));
    hfd_hcl_line(b, "target", member(driver, "target"));
    hfd_buf_lit(b, "}\n");
}

static void add_criteria(struct hfd_buf *b, const char *id, const json_t *criteria)
{
    for (size_t i = 0; i < json_array_size(criteria); i++) {
        const json_t *one = json_array_get(criteria, i);

        begin(b, "humanitec_resource_definition_criteria", id);
        add_reference(b, "resource_definition_id", "humanitec_resource_definition", id);
        hfd_hcl_line(b, "class", member(one, "class"));
        hfd_hcl_line(b, "env_type", member(one, "env_type"));
        hfd_hcl_line(b, "app_id", member(one, "app_id"));
        hfd_buf_lit(b, "}\n");
    }
}

static void add_definition(struct hfd_buf *b, const json_t *definition, const char *org)
{
    const char *id = member(definition, "id"), *driver = member(definition, "driver_type");
    const json_t *inputs = json_object_get(definition, "driver_inputs");
    const json_t *refs = json_object_get(inputs, "secret_refs");
    const bool ours = strncmp(driver, org, strlen(org)) == 0 && driver[strlen(org)] == '/';

    begin(b, "humanitec_resource_definition", id);
    hfd_hcl_line(b, "id", id);
    hfd_hcl_line(b, "name", member(definition, "name"));
    if (ours) {
        add_reference(b, "type", "humanitec_resource_type", bare(member(definition, "type")));
        hfd_buf_addf(b, "  driver_type = \"%s/${humanitec_resource_driver.", org);
        add_name(b, bare(driver));
        hfd_buf_lit(b, ".id}\"\n");
    } else {
        hfd_hcl_line(b, "type", member(definition, "type"));
        hfd_hcl_line(b, "driver_type", driver);
    }
    hfd_buf_lit(b, "  driver_inputs = {\n  ");
    hfd_hcl_json(b, "values_string", json_object_get(inputs, "values"));
    if (refs != NULL) {
        hfd_buf_lit(b, "  ");
        hfd_hcl_json(b, "secret_refs", refs);
    }
    hfd_buf_lit(b, "  }\n}\n");
    add_criteria(b, id, json_object_get(definition, "criteria"));
}

void hfd_register_terraform(struct hfd_buf *b, const json_t *plan)
{
    const json_t *types = json_object_get(plan, "resource_types");
    const json_t *drivers = json_object_get(plan, "drivers");
    const json_t *definitions = json_object_get(plan, "resource_definitions");
    const char *org = member(plan, "organization");

    hfd_buf_lit(b, "terraform {\n  required_providers {\n    humanitec = {\n"
                   "      source = \"humanitec/humanitec\"\n    }\n  }\n}\n\n"
                   "# The token is HUMANITEC_TOKEN in the environment.\n"
                   "provider \"humanitec\" {\n");
    hfd_hcl_line(b, "org_id", org);
    hfd_buf_lit(b, "}\n");
    for (size_t i = 0; i < json_array_size(types); i++)
        add_type(b, json_array_get(types, i));
    for (size_t i = 0; i < json_array_size(drivers); i++)
        add_driver(b, json_array_get(drivers, i));
    for (size_t i = 0; i < json_array_size(definitions); i++)
        add_definition(b, json_array_get(definitions, i), org);
}

/* ---- humctl ---- */

/* Adds a text in the single quotes of the shell. */
static void add_quoted(struct hfd_buf *b, const char *text)
{
    hfd_buf_addc(b, '\'');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'')
            hfd_buf_lit(b, "'\\''");
        else
            hfd_buf_addc(b, *p);
    }
    hfd_buf_addc(b, '\'');
}

static void add_posts(struct hfd_buf *b, const json_t *plan, const char *key, const char *path)
{
    const json_t *all = json_object_get(plan, key);

    for (size_t i = 0; i < json_array_size(all); i++) {
        char *json = json_dumps(json_array_get(all, i), JSON_INDENT(2));

        if (json == NULL) {
            b->rc = b->rc == HFD_OK ? HFD_NOMEM : b->rc;
            return;
        }
        hfd_buf_addf(b, "\nhumctl api post /orgs/%s/resources/%s -d ", member(plan, "organization"),
                     path);
        add_quoted(b, json);
        hfd_buf_addc(b, '\n');
        free(json);
    }
}

void hfd_register_humctl(struct hfd_buf *b, const json_t *plan)
{
    hfd_buf_lit(b,
                "#!/bin/sh\n# Registers hyperfleet-driver. Log in first: humctl login\nset -eu\n");
    add_posts(b, plan, "resource_types", "types");
    add_posts(b, plan, "drivers", "drivers");
    add_posts(b, plan, "resource_definitions", "defs");
}
