/*
 * The document is YAML for those who write it. What it says of InputData is schemas/input.json, a
 * JSON Schema of draft 7, which is turned into the schema object of OpenAPI 3.0 here: null as
 * `nullable`, one example, `not: {}` for false.
 */
#include "schemas/openapi.h"

#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/base/yamlx.h"
#include "schemas/documents.h"
#include "schemas/documents_int.h"

static hfd_rc to_openapi(json_t *schema, struct hfd_err *err);

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory for the OpenAPI document");
}

/* ["object", "null"] becomes object, nullable. */
static hfd_rc convert_type(json_t *schema, struct hfd_err *err)
{
    const json_t *types = json_object_get(schema, "type");
    json_t *type = NULL;

    if (!json_is_array(types))
        return HFD_OK;
    for (size_t i = 0; i < json_array_size(types); i++)
        if (strcmp(json_string_value(json_array_get(types, i)), "null") != 0)
            type = json_array_get(types, i);
    HFD_ASSERT(type != NULL && json_array_size(types) == 2); /* the document is our own */
    json_incref(type);
    if (json_object_set_new(schema, "nullable", json_true()) != 0) {
        json_decref(type);
        return no_memory(err);
    }
    return json_object_set_new(schema, "type", type) == 0 ? HFD_OK : no_memory(err);
}

static hfd_rc convert_examples(json_t *schema, struct hfd_err *err)
{
    json_t *first = json_array_get(json_object_get(schema, "examples"), 0);

    if (first != NULL && json_object_set(schema, "example", first) != 0)
        return no_memory(err);
    (void)json_object_del(schema, "examples");
    return HFD_OK;
}

static hfd_rc convert_properties(json_t *properties, struct hfd_err *err)
{
    const char *key;
    json_t *value;
    void *next;
    hfd_rc rc = HFD_OK;

    json_object_foreach_safe (properties, next, key, value) {
        if (rc != HFD_OK)
            return rc;
        if (json_is_object(value))
            rc = to_openapi(value, err);
        else if (json_object_set_new(properties, key, json_pack("{s:{}}", "not")) != 0)
            rc = no_memory(err);
    }
    return rc;
}

/* In place. Its depth is that of our own document. */
static hfd_rc to_openapi(json_t *schema, struct hfd_err *err)
{
    static const char *const below[] = {"items", "additionalProperties"};
    hfd_rc rc;

    (void)json_object_del(schema, "$schema");
    rc = convert_type(schema, err);
    if (rc == HFD_OK)
        rc = convert_examples(schema, err);
    if (rc == HFD_OK)
        rc = convert_properties(json_object_get(schema, "properties"), err);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(below) / sizeof(below[0]); i++)
        if (json_is_object(json_object_get(schema, below[i])))
            rc = to_openapi(json_object_get(schema, below[i]), err);
    return rc;
}

static hfd_rc put_input(json_t *doc, struct hfd_err *err)
{
    json_t *schemas = hfd_json_pointer(doc, HFD_SLICE("/components/schemas"));
    json_t *input;
    hfd_rc rc = hfd_json_parse(hfd_schema_input_text(), &input, err);

    if (rc == HFD_OK)
        rc = to_openapi(input, err);
    if (rc == HFD_OK && json_object_set(schemas, "InputData", input) != 0)
        rc = no_memory(err);
    json_decref(input);
    return rc;
}

hfd_rc hfd_openapi_document(json_t **out, struct hfd_err *err)
{
    const hfd_slice text = {(const char *)hfd_openapi_yaml, hfd_openapi_yaml_len};
    struct hfd_err why;
    json_t *doc;
    hfd_rc rc;

    *out = NULL;
    rc = hfd_yaml_parse(text, "openapi.yaml", &doc, &why);
    if (rc == HFD_OK)
        rc = put_input(doc, &why);
    if (rc == HFD_OK &&
        json_object_set_new(json_object_get(doc, "info"), "version", json_string(HFD_VERSION)) != 0)
        rc = no_memory(&why);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM); /* the document is our own */
    if (rc != HFD_OK) {
        json_decref(doc);
        return no_memory(err);
    }
    *out = doc;
    return HFD_OK;
}
