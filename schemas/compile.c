/*
 * Compiles schema documents into nodes. A table has all keywords; any other keyword is refused. See
 * validate.h.
 */
#include "schemas/compile_int.h"

#include "driver/base/jsonx.h"

#include <stdint.h>

#define MEM_MAX (16u << 20)
#define NODES_MAX 5000
#define DEPTH_MAX 128
#define PATTERN_MAX 2000
#define SIZE_ASKED_MAX 1e9

/*
 * Enough for every reasonable pattern on a text of a megabyte. A hostile pattern and text end here.
 */
#define MATCH_LIMIT 1000000
#define MATCH_DEPTH_LIMIT 5000
#define MATCH_HEAP_LIMIT_KIB 4096

/* A schema that is being or has been compiled, so that a recursive $ref ends where it began. */
struct seen {
    const json_t *source;
    struct hfd_schema_node *node;
};

struct compiler {
    struct hfd_schema *schema;
    struct seen *seen;
    size_t seen_count;
    int depth;
    struct hfd_err *err;
};

typedef hfd_rc read_fn(struct compiler *c, const char *keyword, const json_t *value,
                       const json_t *whole, void *slot);

static hfd_rc compile_node(struct compiler *c, const json_t *source, struct hfd_schema_node **out);

static hfd_rc fail_keyword(struct compiler *c, const char *keyword, const char *expected)
{
    return hfd_fail_field(c->err, HFD_INVALID, keyword, "schema keyword \"%s\": expected %s",
                          keyword, expected);
}

static hfd_rc read_nothing(struct compiler *c, const char *keyword, const json_t *value,
                           const json_t *whole, void *slot)
{
    (void)c, (void)keyword, (void)value, (void)whole, (void)slot;
    return HFD_OK;
}

static hfd_rc read_size(struct compiler *c, const char *keyword, const json_t *value,
                        const json_t *whole, void *slot)
{
    double n = json_number_value(value);

    (void)whole;
    if (!json_is_number(value) || n < 0 || n > SIZE_ASKED_MAX || n != (double)(size_t)n)
        return fail_keyword(c, keyword, "an integer from 0 to 1000000000");
    *(size_t *)slot = (size_t)n;
    return HFD_OK;
}

static hfd_rc read_bool(struct compiler *c, const char *keyword, const json_t *value,
                        const json_t *whole, void *slot)
{
    (void)whole;
    if (!json_is_boolean(value))
        return fail_keyword(c, keyword, "a boolean");
    *(bool *)slot = json_is_true(value);
    return HFD_OK;
}

static hfd_rc read_number(struct compiler *c, const char *keyword, const json_t *value,
                          const json_t *whole, void *slot)
{
    (void)whole;
    if (!json_is_number(value))
        return fail_keyword(c, keyword, "a number");
    *(const json_t **)slot = value;
    return HFD_OK;
}

static hfd_rc read_positive(struct compiler *c, const char *keyword, const json_t *value,
                            const json_t *whole, void *slot)
{
    if (json_number_value(value) <= 0)
        return fail_keyword(c, keyword, "a number above 0");
    return read_number(c, keyword, value, whole, slot);
}

/* Reads a number, or a boolean that makes the bound beside it exclusive, as in OpenAPI 3.0. */
static hfd_rc read_exclusive(struct compiler *c, const char *keyword, const json_t *value,
                             const json_t *whole, void *slot)
{
    const json_t *bound =
        json_object_get(whole, strcmp(keyword, "exclusiveMinimum") == 0 ? "minimum" : "maximum");

    if (!json_is_boolean(value))
        return read_number(c, keyword, value, whole, slot);
    return json_is_true(value) && bound != NULL ? read_number(c, keyword, bound, whole, slot)
                                                : HFD_OK;
}

static hfd_rc read_value(struct compiler *c, const char *keyword, const json_t *value,
                         const json_t *whole, void *slot)
{
    (void)c, (void)keyword, (void)whole;
    *(const json_t **)slot = value;
    return HFD_OK;
}

static hfd_rc read_enum(struct compiler *c, const char *keyword, const json_t *value,
                        const json_t *whole, void *slot)
{
    if (!json_is_array(value))
        return fail_keyword(c, keyword, "an array");
    return read_value(c, keyword, value, whole, slot);
}

static hfd_rc read_names(struct compiler *c, const char *keyword, const json_t *value,
                         const json_t *whole, void *slot)
{
    if (!json_is_array(value))
        return fail_keyword(c, keyword, "an array of strings");
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_string(json_array_get(value, i)))
            return fail_keyword(c, keyword, "an array of strings");
    return read_value(c, keyword, value, whole, slot);
}

static hfd_rc add_type(struct compiler *c, const char *keyword, const json_t *value,
                       unsigned *types)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {
        {"object", HFD_TYPE_OBJECT},   {"array", HFD_TYPE_ARRAY},   {"string", HFD_TYPE_STRING},
        {"integer", HFD_TYPE_INTEGER}, {"number", HFD_TYPE_NUMBER}, {"boolean", HFD_TYPE_BOOLEAN},
        {"null", HFD_TYPE_NULL},
    };
    const char *text = json_string_value(value);

    for (size_t i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *types |= names[i].bit;
            return HFD_OK;
        }
    }
    return fail_keyword(c, keyword,
                        "object, array, string, integer, number, boolean, null, or a list of them");
}

static hfd_rc read_types(struct compiler *c, const char *keyword, const json_t *value,
                         const json_t *whole, void *slot)
{
    hfd_rc rc = HFD_OK;

    (void)whole;
    if (!json_is_array(value))
        return add_type(c, keyword, value, slot);
    if (json_array_size(value) == 0)
        return fail_keyword(c, keyword, "at least one type");
    for (size_t i = 0; rc == HFD_OK && i < json_array_size(value); i++)
        rc = add_type(c, keyword, json_array_get(value, i), slot);
    return rc;
}

/* Reads a format. Formats other than date-time are annotations. */
static hfd_rc read_format(struct compiler *c, const char *keyword, const json_t *value,
                          const json_t *whole, void *slot)
{
    (void)whole;
    if (!json_is_string(value))
        return fail_keyword(c, keyword, "a string");
    *(bool *)slot = strcmp(json_string_value(value), "date-time") == 0;
    return HFD_OK;
}

static hfd_rc compile_regex(struct compiler *c, const char *keyword, const char *text,
                            const struct hfd_schema_regex **out)
{
    struct hfd_schema_regex *r = hfd_arena_alloc(&c->schema->mem, sizeof(*r));
    PCRE2_SIZE at = 0;
    int code = 0;

    if (r == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    r->text = text;
    if (strlen(text) > PATTERN_MAX)
        return fail_keyword(c, keyword, "a pattern of at most 2000 bytes");
    /* The options of ECMA 262: $ is the end only, \uXXXX is a character, [] and [^] are classes. */
    r->code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS |
                          PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C,
                      &code, &at, NULL);
    if (r->code == NULL) {
        PCRE2_UCHAR why[80] = "";

        (void)pcre2_get_error_message(code, why, sizeof(why));
        return hfd_fail_field(c->err, HFD_INVALID, keyword,
                              "schema keyword \"%s\": pattern \"%.40s\", at %zu: %s", keyword, text,
                              (size_t)at, (const char *)why);
    }
    r->next = c->schema->regexes;
    c->schema->regexes = r;
    *out = r;
    return HFD_OK;
}

static hfd_rc read_pattern(struct compiler *c, const char *keyword, const json_t *value,
                           const json_t *whole, void *slot)
{
    (void)whole;
    if (!json_is_string(value))
        return fail_keyword(c, keyword, "a string");
    return compile_regex(c, keyword, json_string_value(value), slot);
}

static hfd_rc read_schema(struct compiler *c, const char *keyword, const json_t *value,
                          const json_t *whole, void *slot)
{
    (void)whole;
    if (!json_is_object(value) && !json_is_boolean(value))
        return fail_keyword(c, keyword, "a schema");
    return compile_node(c, value, slot);
}

static hfd_rc read_list(struct compiler *c, const char *keyword, const json_t *value,
                        const json_t *whole, void *slot)
{
    struct hfd_schema_list *list = slot;
    size_t n = json_array_size(value);
    hfd_rc rc = HFD_OK;

    if (!json_is_array(value) || n == 0)
        return fail_keyword(c, keyword, "a list of at least one schema");
    list->items = hfd_arena_array(&c->schema->mem, n, sizeof(*list->items));
    if (list->items == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    for (; rc == HFD_OK && list->count < n; list->count++)
        rc = read_schema(c, keyword, json_array_get(value, list->count), whole,
                         &list->items[list->count]);
    return rc;
}

/* Here and below slot is the whole node, because these keywords fill several members of it. */
static hfd_rc read_items(struct compiler *c, const char *keyword, const json_t *value,
                         const json_t *whole, void *slot)
{
    struct hfd_schema_node *node = slot;

    if (!json_is_array(value))
        return read_schema(c, keyword, value, whole, &node->items);
    return json_array_size(value) == 0 ? HFD_OK : read_list(c, keyword, value, whole, &node->tuple);
}

static hfd_rc read_properties(struct compiler *c, const char *keyword, const json_t *value,
                              const json_t *whole, void *slot)
{
    struct hfd_schema_node *node = slot;
    const char *key;
    json_t *sub;
    hfd_rc rc;

    if (!json_is_object(value))
        return fail_keyword(c, keyword, "an object of schemas");
    node->properties = value;
    node->members =
        hfd_arena_array(&c->schema->mem, json_object_size(value), sizeof(*node->members));
    if (node->members == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    json_object_foreach ((json_t *)(uintptr_t)value, key, sub) {
        struct hfd_schema_member *m = &node->members[node->member_count++];

        m->key = key;
        rc = read_schema(c, keyword, sub, whole, &m->node);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

static hfd_rc read_patterns(struct compiler *c, const char *keyword, const json_t *value,
                            const json_t *whole, void *slot)
{
    struct hfd_schema_node *node = slot;
    const char *key;
    json_t *sub;
    hfd_rc rc;

    if (!json_is_object(value))
        return fail_keyword(c, keyword, "an object of schemas");
    node->patterns =
        hfd_arena_array(&c->schema->mem, json_object_size(value), sizeof(*node->patterns));
    if (node->patterns == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    json_object_foreach ((json_t *)(uintptr_t)value, key, sub) {
        struct hfd_schema_pattern *p = &node->patterns[node->pattern_count++];

        rc = compile_regex(c, keyword, key, &p->regex);
        if (rc == HFD_OK)
            rc = read_schema(c, keyword, sub, whole, &p->node);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

static hfd_rc read_id(struct compiler *c, const char *keyword, const json_t *value,
                      const json_t *whole, void *slot)
{
    (void)value, (void)slot;
    return whole == c->schema->doc ? HFD_OK
                                   : fail_keyword(c, keyword, "none below the top of the document");
}

#define AT(member) offsetof(struct hfd_schema_node, member)

/* clang-format off */
static const struct {
    const char *name;
    read_fn *read;
    size_t offset;
} keywords[] = {
    {"$comment", read_nothing, 0},
    {"$defs", read_nothing, 0},
    {"$id", read_id, 0},
    {"$schema", read_nothing, 0},
    {"additionalItems", read_schema, AT(additional_items)},
    {"additionalProperties", read_schema, AT(additional_properties)},
    {"allOf", read_list, AT(all_of)},
    {"anyOf", read_list, AT(any_of)},
    {"components", read_nothing, 0},
    {"const", read_value, AT(constant)},
    {"contains", read_schema, AT(contains)},
    {"contentEncoding", read_nothing, 0},
    {"contentMediaType", read_nothing, 0},
    {"default", read_nothing, 0},
    {"definitions", read_nothing, 0},
    {"deprecated", read_nothing, 0},
    {"description", read_nothing, 0},
    {"discriminator", read_nothing, 0},
    {"else", read_schema, AT(alternative)},
    {"enum", read_enum, AT(enumeration)},
    {"example", read_nothing, 0},
    {"examples", read_nothing, 0},
    {"exclusiveMaximum", read_exclusive, AT(exclusive_maximum)},
    {"exclusiveMinimum", read_exclusive, AT(exclusive_minimum)},
    {"externalDocs", read_nothing, 0},
    {"format", read_format, AT(date_time)},
    {"if", read_schema, AT(condition)},
    {"items", read_items, 0},
    {"maxItems", read_size, AT(max_items)},
    {"maxLength", read_size, AT(max_length)},
    {"maxProperties", read_size, AT(max_properties)},
    {"maximum", read_number, AT(maximum)},
    {"minItems", read_size, AT(min_items)},
    {"minLength", read_size, AT(min_length)},
    {"minProperties", read_size, AT(min_properties)},
    {"minimum", read_number, AT(minimum)},
    {"multipleOf", read_positive, AT(multiple_of)},
    {"not", read_schema, AT(negated)},
    {"nullable", read_bool, AT(nullable)},
    {"oneOf", read_list, AT(one_of)},
    {"pattern", read_pattern, AT(pattern)},
    {"patternProperties", read_patterns, 0},
    {"properties", read_properties, 0},
    {"propertyNames", read_schema, AT(property_names)},
    {"readOnly", read_nothing, 0},
    {"required", read_names, AT(required)},
    {"then", read_schema, AT(consequence)},
    {"title", read_nothing, 0},
    {"type", read_types, AT(types)},
    {"uniqueItems", read_bool, AT(unique)},
    {"writeOnly", read_nothing, 0},
    {"xml", read_nothing, 0},
};
/* clang-format on */
/* Decodes a $ref, which is a URI fragment: %25 is '%'. */
static hfd_slice percent_decode(hfd_slice text, struct hfd_arena *mem)
{
    char *out = hfd_arena_alloc(mem, text.len + 1);
    size_t n = 0;

    for (size_t i = 0; out != NULL && i < text.len; i++) {
        bool escaped = text.p[i] == '%' && i + 2 < text.len && hfd_hex_value(text.p[i + 1]) >= 0 &&
                       hfd_hex_value(text.p[i + 2]) >= 0;

        out[n++] = escaped
                       ? (char)(hfd_hex_value(text.p[i + 1]) * 16 + hfd_hex_value(text.p[i + 2]))
                       : text.p[i];
        i += escaped ? 2 : 0;
    }
    return (hfd_slice){out, n};
}

static hfd_rc compile_ref(struct compiler *c, const json_t *ref, struct hfd_schema_node **out)
{
    const char *text = json_string_value(ref);
    const json_t *target;
    hfd_slice pointer;

    if (text == NULL || text[0] != '#')
        return fail_keyword(c, "$ref", "a pointer within the document: #/...");
    pointer = percent_decode(hfd_slice_of(text + 1), &c->schema->mem);
    if (pointer.p == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    target = hfd_json_pointer(c->schema->doc, pointer);
    if (target == NULL)
        return hfd_fail_field(c->err, HFD_INVALID, "$ref",
                              "schema keyword \"$ref\": nothing at \"%.60s\"", text);
    return read_schema(c, "$ref", target, NULL, out);
}

static hfd_rc compile_keyword(struct compiler *c, const char *key, const json_t *value,
                              const json_t *whole, struct hfd_schema_node *node)
{
    if (strncmp(key, "x-", 2) == 0)
        return HFD_OK;
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (strcmp(key, keywords[i].name) == 0)
            return keywords[i].read(c, key, value, whole, (char *)node + keywords[i].offset);
    return hfd_fail_field(c->err, HFD_INVALID, key, "schema keyword \"%.60s\" is not supported",
                          key);
}

static hfd_rc compile_body(struct compiler *c, const json_t *source, struct hfd_schema_node *node)
{
    const json_t *ref = json_object_get(source, "$ref");
    const char *key;
    json_t *value;
    hfd_rc rc;

    if (ref != NULL)
        return compile_ref(c, ref, &node->ref);
    json_object_foreach ((json_t *)(uintptr_t)source, key, value) {
        rc = compile_keyword(c, key, value, source, node);
        if (rc != HFD_OK)
            return rc;
    }
    /* OpenAPI's boolean has turned the bound beside it into an exclusive one. */
    if (json_is_true(json_object_get(source, "exclusiveMinimum")))
        node->minimum = NULL;
    if (json_is_true(json_object_get(source, "exclusiveMaximum")))
        node->maximum = NULL;
    return HFD_OK;
}

static hfd_rc compile_node(struct compiler *c, const json_t *source, struct hfd_schema_node **out)
{
    struct hfd_schema_node *node;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; json_is_object(source) && i < c->seen_count; i++) {
        if (c->seen[i].source == source) {
            *out = c->seen[i].node;
            return HFD_OK;
        }
    }
    if (c->depth >= DEPTH_MAX || c->seen_count >= NODES_MAX)
        return hfd_fail(c->err, HFD_LIMIT, "a schema has more than %d parts or %d levels",
                        NODES_MAX, DEPTH_MAX);
    node = hfd_arena_alloc(&c->schema->mem, sizeof(*node));
    if (node == NULL)
        return hfd_fail_nomem(c->err, "compile a schema");
    node->max_length = node->max_items = node->max_properties = SIZE_MAX;
    node->never = json_is_false(source);
    *out = node;
    c->seen[c->seen_count++] = (struct seen){source, node};
    c->depth++;
    if (json_is_object(source))
        rc = compile_body(c, source, node);
    c->depth--;
    return rc;
}

static pcre2_match_context *match_limits(void)
{
    pcre2_match_context *m = pcre2_match_context_create(NULL);

    if (m == NULL)
        return NULL;
    pcre2_set_match_limit(m, MATCH_LIMIT);
    pcre2_set_depth_limit(m, MATCH_DEPTH_LIMIT);
    pcre2_set_heap_limit(m, MATCH_HEAP_LIMIT_KIB);
    return m;
}

hfd_rc hfd_schema_compile(const json_t *doc, hfd_slice at, struct hfd_schema **out,
                          struct hfd_err *err)
{
    struct compiler c = {.err = err};
    struct hfd_schema *schema = calloc(1, sizeof(*schema));
    const json_t *start;
    hfd_rc rc = HFD_NOMEM;

    *out = NULL;
    if (schema == NULL)
        return hfd_fail_nomem(err, "compile a schema");
    c.schema = schema;
    hfd_arena_init(&schema->mem, MEM_MAX);
    schema->doc = hfd_json_deep_copy(doc);
    schema->match = match_limits();
    c.seen = calloc(NODES_MAX, sizeof(*c.seen));
    if (schema->doc == NULL || schema->match == NULL || c.seen == NULL) {
        rc = hfd_fail_nomem(err, "compile a schema");
        goto out;
    }
    start = hfd_json_pointer(schema->doc, at);
    if (!json_is_object(start) && !json_is_boolean(start)) {
        rc = hfd_fail(err, HFD_INVALID, "no schema at \"%.*s\"", HFD_SLICE_FMT(at));
        goto out;
    }
    rc = compile_node(&c, start, &schema->root);
    if (rc != HFD_OK)
        goto out;
    *out = schema;
    schema = NULL; /* the caller owns it now */
out:
    free(c.seen);
    hfd_schema_free(schema);
    return rc;
}

void hfd_schema_free(struct hfd_schema *schema)
{
    if (schema == NULL)
        return;
    for (struct hfd_schema_regex *r = schema->regexes; r != NULL; r = r->next)
        pcre2_code_free(r->code);
    pcre2_match_context_free(schema->match);
    json_decref(schema->doc);
    hfd_arena_fini(&schema->mem);
    free(schema);
}
