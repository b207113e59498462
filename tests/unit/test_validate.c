#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "schemas/validate.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/seams.h"
#include "tests/lib/vectors.h"

#define S(lit) HFD_SLICE(lit)
#define MEM_MAX (1u << 20)

static json_t *parse(const char *text)
{
    struct hfd_err err;
    json_t *v;

    if (hfd_json_parse(hfd_slice_of(text), &v, &err) != HFD_OK)
        fail_msg("%s: %s", text, err.msg);
    return v;
}

static struct hfd_schema *compiled(const char *text)
{
    struct hfd_schema *schema;
    json_t *doc = parse(text);
    struct hfd_err err;

    if (hfd_schema_compile(doc, HFD_SLICE_NONE, &schema, &err) != HFD_OK)
        fail_msg("%s: %s", text, err.msg);
    json_decref(doc); /* a compiled schema stands alone */
    return schema;
}

/* All violations as "field|message|constraint", one a line. */
static void validate(const struct hfd_schema *schema, const json_t *doc, bool lenient, char *out,
                     size_t cap)
{
    struct hfd_schema_use use = {.root = "", .lenient_numbers = lenient};
    struct hfd_violations found;
    struct hfd_arena mem;
    struct hfd_err err;
    size_t len = 0;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX);
    use.schema = schema;
    rc = hfd_schema_validate(&use, doc, &mem, &found, &err);
    assert_true(rc == HFD_OK || rc == HFD_INVALID);
    assert_int_equal(rc == HFD_OK, found.count == 0);
    out[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        len += (size_t)snprintf(out + len, cap - len, "%.*s|%.*s|%s\n",
                                HFD_SLICE_FMT(found.items[i].field),
                                HFD_SLICE_FMT(found.items[i].message), found.items[i].constraint);
    hfd_arena_fini(&mem);
}

/* Every keyword has its own text for where and why a document does not fit. */
static void validate_tells_what_is_wrong(void **state)
{
    /* clang-format off */
    static const struct {
        const char *schema, *doc, *want;
    } rows[] = {
        {"true", "1", ""},
        {"false", "1", "|is not allowed|\n"},
        {"{}", "null", ""},
        {"{\"type\":\"string\"}", "1", "|expected a string, got an integer|\n"},
        {"{\"type\":[\"string\",\"null\"]}", "[]", "|expected a string, got an array|\n"},
        {"{\"type\":[\"string\",\"integer\"]}", "[]", "|expected a string or an integer, got an array|\n"},
        {"{\"type\":\"null\"}", "[]", "|expected null, got an array|\n"},
        {"{\"type\":\"integer\"}", "1.5", "|expected an integer, got a number|\n"},
        {"{\"type\":\"integer\"}", "1.0", ""},
        {"{\"type\":\"number\"}", "1", ""},
        {"{\"type\":\"number\"}", "\"1\"", "|expected a number, got a string|\n"},
        {"{\"type\":\"string\",\"nullable\":true}", "null", ""},
        {"{\"nullable\":true,\"allOf\":[{\"type\":\"string\"}]}", "null", ""},
        {"{\"type\":\"string\",\"nullable\":false}", "null", "|expected a string, got null|\n"},
        {"{\"enum\":[\"a\",1,null]}", "\"b\"", "|must be one of \"a\", 1, null|enum\n"},
        {"{\"enum\":[1]}", "1.0", ""},
        {"{\"enum\":[]}", "1", "|must be one of |enum\n"},
        {"{\"const\":{\"a\":[1]}}", "{\"a\":[1.0]}", ""},
        {"{\"const\":{\"a\":1}}", "2", "|must be {\"a\":1}|enum\n"},
        {"{\"const\":null}", "0", "|must be null|enum\n"},
        {"{\"minLength\":3}", "\"ab\"", "|must be at least 3 characters|min_length\n"},
        {"{\"minLength\":1}", "\"\"", "|must be at least 1 character|min_length\n"},
        {"{\"maxLength\":2}", "\"\xc3\xa9\xf0\x9f\x98\x80\"", ""},
        {"{\"maxLength\":2}", "\"abc\"", "|must be at most 2 characters|max_length\n"},
        {"{\"maxLength\":2}", "12345", ""},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"a1\"", "|must match the pattern ^[a-z]+$|pattern\n"},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"a\\n\"", "|must match the pattern ^[a-z]+$|pattern\n"},
        {"{\"pattern\":\"^.{2}$\"}", "\"\xc3\xa9\xe2\x82\xac\"", ""},
        {"{\"pattern\":\"^\\\\d(?:\\\\w|\\\\s)\\\\u0041$\"}", "\"1 A\"", ""},
        {"{\"pattern\":\"^\\\\d$\"}", "\"\xd9\xa3\"", "|must match the pattern ^\\d$|pattern\n"},
        {"{\"format\":\"date-time\"}", "\"2025-01-01T00:00:00Z\"", ""},
        {"{\"format\":\"date-time\"}", "\"yesterday\"", "|must be a date and time like 2025-01-01T00:00:00Z|format\n"},
        {"{\"format\":\"email\"}", "\"no\"", ""},
        {"{\"minimum\":1.5}", "1", "|must be at least 1.5|min\n"},
        {"{\"maximum\":9007199254740993}", "9007199254740994", "|must be at most 9007199254740993|max\n"},
        {"{\"maximum\":9007199254740992.0}", "9007199254740993", "|must be at most 9007199254740992.0|max\n"},
        {"{\"exclusiveMinimum\":1}", "1.0", "|must be greater than 1|min\n"},
        {"{\"exclusiveMaximum\":1}", "1", "|must be less than 1|max\n"},
        {"{\"minimum\":1,\"exclusiveMinimum\":true}", "1", "|must be greater than 1|min\n"},
        {"{\"maximum\":1,\"exclusiveMaximum\":true}", "1", "|must be less than 1|max\n"},
        {"{\"maximum\":1,\"exclusiveMaximum\":false}", "1", ""},
        {"{\"exclusiveMaximum\":true}", "1", ""},
        {"{\"multipleOf\":2}", "3", "|must be a multiple of 2|\n"},
        {"{\"multipleOf\":0.01}", "4.35", ""},
        {"{\"multipleOf\":0.01}", "4.351", "|must be a multiple of 0.01|\n"},
        {"{\"required\":[\"a\",\"b\"]}", "{\"a\":null}", "|\"b\" is required|required\n"},
        {"{\"properties\":{\"a\":{\"properties\":{\"b\":{\"type\":\"string\"}},\"required\":[\"c\"]}}}", "{\"a\":{\"b\":1}}",
         "a|\"c\" is required|required\na.b|expected a string, got an integer|\n"},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1,\"b\":2}", "b|is not allowed|\n"},
        {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":1}", "a|expected a string, got an integer|\n"},
        {"{\"patternProperties\":{\"^x\":{\"type\":\"string\"}},\"additionalProperties\":false}", "{\"xa\":1,\"xb\":\"\",\"y\":1}",
         "xa|expected a string, got an integer|\ny|is not allowed|\n"},
        {"{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "ab|is not an allowed name|\n"},
        {"{\"minProperties\":1}", "{}", "|must have at least 1 member|min\n"},
        {"{\"maxProperties\":0}", "{\"a\":1}", "|must have at most 0 members|max\n"},
        {"{\"items\":{\"type\":\"string\"}}", "[\"a\",1,2]",
         "[1]|expected a string, got an integer|\n[2]|expected a string, got an integer|\n"},
        {"{\"properties\":{\"a\":{\"items\":{\"items\":{\"required\":[\"x\"]}}}}}", "{\"a\":[[],[1,{}]]}",
         "a[1][1]|\"x\" is required|required\n"},
        {"{\"items\":[{\"type\":\"string\"},true],\"additionalItems\":false}", "[1,2,3]",
         "[0]|expected a string, got an integer|\n[2]|is not allowed|\n"},
        {"{\"minItems\":2}", "[1]", "|must have at least 2 elements|min\n"},
        {"{\"maxItems\":1}", "[1,2]", "|must have at most 1 element|max\n"},
        {"{\"uniqueItems\":true}", "[1,{\"a\":1,\"b\":[]},2,{\"b\":[],\"a\":1.0}]", "|elements 1 and 3 are equal|unique\n"},
        {"{\"uniqueItems\":true}", "[0,false,\"0\",[0],{\"0\":0},null,\"\",[],{}]", ""},
        {"{\"contains\":{\"const\":1}}", "[2,3]", "|no element is of the required form|\n"},
        {"{\"allOf\":[{\"minimum\":5},{\"maximum\":3}]}", "4", "|must be at least 5|min\n|must be at most 3|max\n"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "4", "|fits none of the 2 allowed forms|\n"},
        {"{\"anyOf\":[{\"type\":\"string\"}]}", "4", "|expected a string, got an integer|\n"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "4", "|fits more than one of 2 forms that exclude each other|\n"},
        {"{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "4", "|fits none of the 2 allowed forms|\n"},
        {"{\"not\":{\"type\":\"integer\"}}", "4", "|is of a form that is not allowed|\n"},
        {"{\"if\":{\"minimum\":5},\"then\":{\"maximum\":7},\"else\":{\"maximum\":3}}", "4", "|must be at most 3|max\n"},
        {"{\"if\":{\"minimum\":5},\"then\":{\"maximum\":7},\"else\":{\"maximum\":3}}", "8", "|must be at most 7|max\n"},
        {"{\"definitions\":{\"n\":{\"type\":\"integer\"}},\"properties\":{\"a\":{\"$ref\":\"#/definitions/n\"}}}", "{\"a\":\"x\"}",
         "a|expected an integer, got a string|\n"},
        {"{\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":{\"type\":\"integer\"}}}", "{\"next\":{\"next\":{\"v\":\"x\"}}}",
         "next.next.v|expected an integer, got a string|\n"},
        {"{\"x-kubernetes-anything\":1,\"title\":\"t\",\"$id\":\"urn:x\",\"default\":3,\"example\":{}}", "1", ""},
    };
    /* clang-format on */
    char got[2000];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_schema *schema = compiled(rows[i].schema);
        json_t *doc = parse(rows[i].doc);

        validate(schema, doc, false, got, sizeof(got));
        assert_string_equal(got, rows[i].want);
        json_decref(doc);
        hfd_schema_free(schema);
    }
}

/* Numbers in strings count with lenient_numbers, and only where a string is not wanted. */
static void validate_lenient_numbers(void **state)
{
    static const struct {
        const char *schema, *doc;
        bool strict, lenient;
    } rows[] = {
        {"{\"type\":\"integer\"}", "\"3\"", false, true},
        {"{\"type\":\"integer\"}", "\"-3\"", false, true},
        {"{\"type\":\"integer\"}", "\"3.5\"", false, false},
        {"{\"type\":\"number\"}", "\"3.5e1\"", false, true},
        {"{\"type\":\"integer\",\"maximum\":2}", "\"3\"", false, false},
        {"{\"type\":[\"integer\",\"string\"],\"maxLength\":1}", "\"33\"", false, false},
        {"{\"type\":\"integer\"}", "\" 3\"", false, false},
        {"{\"type\":\"integer\"}", "\"3 \"", false, false},
        {"{\"type\":\"integer\"}", "\"\"", false, false},
        {"{\"type\":\"integer\"}", "\"03\"", false, false},
        {"{\"type\":\"integer\"}", "\"0x3\"", false, false},
        {"{\"type\":\"integer\"}", "\"99999999999999999999\"", false, false},
        {"{\"type\":\"boolean\"}", "\"1\"", false, false},
        {"{\"type\":\"string\"}", "3", false, false},
    };
    char got[500];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_schema *schema = compiled(rows[i].schema);
        json_t *doc = parse(rows[i].doc);

        validate(schema, doc, false, got, sizeof(got));
        assert_int_equal(got[0] == '\0', rows[i].strict);
        validate(schema, doc, true, got, sizeof(got));
        assert_int_equal(got[0] == '\0', rows[i].lenient);
        json_decref(doc);
        hfd_schema_free(schema);
    }
}

/*
 * Strings that were taken for numbers are numbers afterwards, in every place; other strings stay.
 */
static void validate_stores_the_numbers(void **state)
{
#define N "{\"type\":\"integer\"}"
    static const struct {
        const char *schema, *doc, *after; /* after NULL: invalid */
    } rows[] = {
        {"{\"properties\":{\"n\":" N ",\"s\":{\"type\":\"string\"}}}", "{\"n\":\"3\",\"s\":\"3\"}",
         "{\"n\":3,\"s\":\"3\"}"},
        {"{\"items\":" N "}", "[\"1\",2,\"3\"]", "[1,2,3]"},
        {"{\"additionalProperties\":{\"type\":\"number\"}}", "{\"a\":\"1.5\",\"b\":\"2\"}",
         "{\"a\":1.5,\"b\":2}"},
        {"{\"properties\":{\"a\":{\"$ref\":\"#/definitions/n\"}},\"definitions\":{\"n\":" N "}}",
         "{\"a\":\"7\"}", "{\"a\":7}"},
        {"{\"properties\":{\"a\":{\"oneOf\":[{\"type\":\"boolean\"}," N "]}}}", "{\"a\":\"7\"}",
         "{\"a\":7}"},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"}," N "]}}}", "{\"a\":\"7\"}",
         "{\"a\":\"7\"}"},
        /*
         * A branch that does not hold leaves no number behind; nor does a schema that is only a
         * question.
         */
        {"{\"anyOf\":[{\"properties\":{\"a\":" N
         ",\"b\":{\"type\":\"boolean\"}}},{\"properties\":{\"a\":{\"type\":\"string\"}}}]}",
         "{\"a\":\"7\",\"b\":1}", "{\"a\":\"7\",\"b\":1}"},
        {"{\"if\":{\"properties\":{\"a\":" N "}},\"then\":{}}", "{\"a\":\"7\"}", "{\"a\":\"7\"}"},
        {"{\"propertyNames\":" N "}", "{\"7\":\"8\"}", "{\"7\":\"8\"}"},
        /* Another part of the schema applies to the number as well. */
        {"{\"properties\":{\"a\":{\"allOf\":[" N ",{\"minimum\":3}]}}}", "{\"a\":\"2\"}", NULL},
        {"{\"properties\":{\"a\":{\"allOf\":[" N "," N "]}}}", "{\"a\":\"2\"}", "{\"a\":2}"},
        {"{\"properties\":{\"a\":" N "},\"required\":[\"b\"]}", "{\"a\":\"2\"}", NULL},
    };
#undef N

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_schema_use use = {.root = "spec"};
        struct hfd_schema *schema = compiled(rows[i].schema);
        json_t *doc = parse(rows[i].doc);
        struct hfd_violations found;
        struct hfd_arena mem;
        struct hfd_err err;
        struct hfd_buf b;
        hfd_rc rc;

        hfd_arena_init(&mem, MEM_MAX);
        use.schema = schema;
        rc = hfd_schema_validate_numbers(&use, doc, &mem, &found, &err);
        assert_int_equal(rc, rows[i].after != NULL ? HFD_OK : HFD_INVALID);
        if (rc == HFD_OK) {
            hfd_buf_init(&b, 1000);
            hfd_json_dump_for_store(&b, doc);
            hfd_buf_addc(&b, '\0');
            assert_string_equal(b.p, rows[i].after);
            hfd_buf_fini(&b);
        }
        hfd_arena_fini(&mem);
        json_decref(doc);
        hfd_schema_free(schema);
    }
}

/*
 * A keyword that cannot be enforced is refused by name when the schema is compiled; so is nonsense.
 */
static void compile_refuses(void **state)
{
    static const struct {
        const char *schema, *field;
    } rows[] = {
        {"{\"dependencies\":{}}", "dependencies"},
        {"{\"minlength\":1}", "minlength"},
        {"{\"properties\":{\"a\":{\"unevaluatedProperties\":false}}}", "unevaluatedProperties"},
        {"{\"$ref\":\"http://example.com/x\"}", "$ref"},
        {"{\"$ref\":\"#foo\"}", "$ref"},
        {"{\"$ref\":\"#/definitions/none\"}", "$ref"},
        {"{\"$ref\":3}", "$ref"},
        {"{\"properties\":{\"a\":{\"$id\":\"b\"}}}", "$id"},
        {"{\"type\":\"text\"}", "type"},
        {"{\"type\":[]}", "type"},
        {"{\"type\":[1]}", "type"},
        {"{\"type\":{}}", "type"},
        {"{\"enum\":1}", "enum"},
        {"{\"required\":true}", "required"},
        {"{\"required\":[1]}", "required"},
        {"{\"minLength\":-1}", "minLength"},
        {"{\"minLength\":1.5}", "minLength"},
        {"{\"minLength\":1e300}", "minLength"},
        {"{\"maxItems\":\"1\"}", "maxItems"},
        {"{\"minimum\":\"1\"}", "minimum"},
        {"{\"multipleOf\":0}", "multipleOf"},
        {"{\"multipleOf\":true}", "multipleOf"},
        {"{\"exclusiveMinimum\":\"1\"}", "exclusiveMinimum"},
        {"{\"pattern\":\"(\"}", "pattern"},
        {"{\"pattern\":1}", "pattern"},
        {"{\"pattern\":\"\\\\C\"}", "pattern"},
        {"{\"patternProperties\":{\"[\":true}}", "patternProperties"},
        {"{\"patternProperties\":[]}", "patternProperties"},
        {"{\"properties\":[]}", "properties"},
        {"{\"properties\":{\"a\":1}}", "properties"},
        {"{\"items\":1}", "items"},
        {"{\"items\":[1]}", "items"},
        {"{\"allOf\":[]}", "allOf"},
        {"{\"anyOf\":{}}", "anyOf"},
        {"{\"not\":null}", "not"},
        {"{\"uniqueItems\":1}", "uniqueItems"},
        {"{\"nullable\":\"yes\"}", "nullable"},
        {"{\"format\":1}", "format"},
        {"[]", ""},
        {"3", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_schema *schema = (struct hfd_schema *)state;
        json_t *doc = parse(rows[i].schema);
        struct hfd_err err;

        if (hfd_schema_compile(doc, HFD_SLICE_NONE, &schema, &err) != HFD_INVALID)
            fail_msg("%s is accepted", rows[i].schema);
        assert_null(schema);
        assert_string_equal(err.field, rows[i].field);
        assert_non_null(strstr(err.msg, rows[i].field));
        json_decref(doc);
    }
}

/* A schema may stand inside another document, and finds its neighbours there. */
static void compile_part_of_a_document(void **state)
{
    json_t *doc = parse("{\"openapi\":\"3.0.0\",\"paths\":{},\"components\":{\"schemas\":{"
                        "\"Spec\":{\"properties\":{\"n\":{\"$ref\":\"#/components/schemas/"
                        "Nodes\"}}},\"Nodes\":{\"type\":\"integer\"}}}}");
    json_t *bad = parse("{\"n\":\"x\"}");
    struct hfd_schema_use use = {.root = "spec"};
    struct hfd_violations found;
    struct hfd_schema *schema;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    assert_int_equal(hfd_schema_compile(doc, S("/components/schemas/Spec"), &schema, NULL), HFD_OK);
    use.schema = schema;
    assert_int_equal(hfd_schema_validate(&use, bad, &mem, &found, &err), HFD_INVALID);
    assert_string_equal(err.field, "spec.n");
    assert_string_equal(err.msg, "spec.n: expected an integer, got a string");
    hfd_schema_free(schema);
    assert_int_equal(hfd_schema_compile(doc, S("/components/schemas/None"), &schema, &err),
                     HFD_INVALID);
    hfd_schema_free(NULL);
    hfd_arena_fini(&mem);
    json_decref(doc);
    json_decref(bad);
}

/* Only the first violations are kept. A lack of memory is not a verdict. */
static void validate_bounds_violations(void **state)
{
    struct hfd_schema *schema = compiled("{\"items\":{\"type\":\"string\"}}");
    struct hfd_schema_use use = {.root = "x"};
    json_t *doc = json_array();
    struct hfd_violations found;
    struct hfd_arena mem;

    (void)state;
    for (int i = 0; i < 100; i++)
        json_array_append_new(doc, json_integer(i));
    hfd_arena_init(&mem, MEM_MAX);
    use.schema = schema;
    assert_int_equal(hfd_schema_validate(&use, doc, &mem, &found, NULL), HFD_INVALID);
    assert_int_equal(found.count, HFD_VIOLATIONS_MAX);
    assert_true(hfd_slice_is(found.items[19].field, "x[19]"));
    hfd_arena_fini(&mem);
    hfd_arena_init(&mem, 100);
    use.schema = schema;
    assert_int_equal(hfd_schema_validate(&use, doc, &mem, &found, NULL), HFD_NOMEM);
    assert_int_equal(found.count, 0);
    hfd_arena_fini(&mem);
    json_decref(doc);
    hfd_schema_free(schema);
}

/* A string that spells a number is not refused as a string because memory is short. */
static void validate_numbers_out_of_memory(void **state)
{
    struct hfd_schema_use use = {.root = "x", .lenient_numbers = true};
    struct hfd_schema *schema = compiled("{\"properties\":{\"n\":{\"type\":\"integer\"}}}");
    json_t *doc = json_loads("{\"n\":\"12\"}", 0, NULL);

    (void)state;
    for (unsigned nth = 1, fired = 1; fired != 0; nth++) {
        struct hfd_violations found;
        struct hfd_arena mem;
        hfd_rc rc;

        hfd_arena_init(&mem, MEM_MAX);
        faultmem_arm(nth, false);
        use.schema = schema;
        rc = hfd_schema_validate(&use, doc, &mem, &found, NULL);
        fired = faultmem_disarm();
        assert_int_equal(rc, fired != 0 ? HFD_NOMEM : HFD_OK);
        hfd_arena_fini(&mem);
    }
    json_decref(doc);
    hfd_schema_free(schema);
}

/*
 * Schemas and documents that take too long are given up: endless references, explosive branches and
 * patterns.
 */
static void validate_bounds_work(void **state)
{
    static const char *const schemas[] = {
        "{\"$ref\":\"#\"}",
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"anyOf\":[{\"items\":{\"$ref\":\"#\"},\"minItems\":3},{\"items\":{\"$ref\":\"#\"},"
        "\"minItems\":4},"
        "{\"items\":{\"$ref\":\"#\"},\"minItems\":5},{\"items\":{\"$ref\":\"#\"},\"minItems\":6}]}",
        "{\"items\":{\"items\":{\"pattern\":\"^(a+)+$\"}}}",
    };
    struct hfd_schema_use use = {.root = ""};
    struct hfd_violations found;
    json_t *doc = json_pack(
        "[[s]]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    json_t *deep = json_array();
    struct hfd_arena mem;

    (void)state;
    for (int i = 0; i < 25; i++)
        deep = json_pack("[o]", deep);
    hfd_arena_init(&mem, MEM_MAX);
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        struct hfd_schema *schema = compiled(schemas[i]);
        use.schema = schema;
        hfd_rc rc = hfd_schema_validate(&use, i == 2 ? deep : doc, &mem, &found, NULL);

        assert_int_equal(rc, HFD_LIMIT);
        assert_int_equal(found.count, 0);
        hfd_schema_free(schema);
    }
    hfd_arena_fini(&mem);
    json_decref(doc);
    json_decref(deep);
}

/* Work that runs out in the very last comparison gives no verdict either. */
static void validate_bounds_comparing(void **state)
{
    struct hfd_schema_use use = {.root = ""};
    json_t *doc = json_array();
    json_t *constant = json_array();
    json_t *branches = json_array();
    json_t *text;
    struct hfd_violations found;
    struct hfd_schema *schema;
    struct hfd_arena mem;

    (void)state;
    for (int i = 0; i < 15000; i++) {
        json_array_append_new(doc, json_integer(i));
        json_array_append_new(constant, json_integer(i < 14999 ? i : -1));
    }
    for (int i = 0; i < 134; i++) /* a little more than 2,000,000 values in all */
        json_array_append_new(branches, json_pack("{s:s}", "$ref", "#/definitions/c"));
    text = json_pack("{s:{s:{s:o}},s:o}", "definitions", "c", "const", constant, "anyOf", branches);
    assert_int_equal(hfd_schema_compile(text, HFD_SLICE_NONE, &schema, NULL), HFD_OK);
    hfd_arena_init(&mem, MEM_MAX);
    use.schema = schema;
    assert_int_equal(hfd_schema_validate(&use, doc, &mem, &found, NULL), HFD_LIMIT);
    json_array_remove(branches, 0);
    hfd_schema_free(schema);
    assert_int_equal(hfd_schema_compile(text, HFD_SLICE_NONE, &schema, NULL), HFD_OK);
    use.schema = schema;
    assert_int_equal(hfd_schema_validate(&use, doc, &mem, &found, NULL), HFD_INVALID);
    hfd_arena_fini(&mem);
    hfd_schema_free(schema);
    json_decref(text);
    json_decref(doc);
}

/* A schema of very many parts is refused before it is walked. */
static void compile_bounds_parts(void **state)
{
    json_t *list = json_array();
    json_t *doc = json_pack("{s:o}", "allOf", list);
    struct hfd_schema *schema;
    json_t *deep = json_object();

    (void)state;
    for (int i = 0; i < 6000; i++)
        json_array_append_new(list, json_object());
    assert_int_equal(hfd_schema_compile(doc, HFD_SLICE_NONE, &schema, NULL), HFD_LIMIT);
    assert_null(schema);
    for (int i = 0; i < 200; i++)
        deep = json_pack("{s:o}", "not", deep);
    assert_int_equal(hfd_schema_compile(deep, HFD_SLICE_NONE, &schema, NULL), HFD_LIMIT);
    json_decref(doc);
    json_decref(deep);
}

/* Large arrays of distinct elements pass in reasonable time. */
static void validate_unique_large(void **state)
{
    struct hfd_schema *schema = compiled("{\"uniqueItems\":true}");
    json_t *doc = json_array();
    char got[200];

    (void)state;
    for (int i = 0; i < 19000; i++)
        json_array_append_new(doc, json_integer(i));
    validate(schema, doc, false, got, sizeof(got));
    assert_string_equal(got, "");
    json_array_append_new(doc, json_real(18000.0));
    validate(schema, doc, false, got, sizeof(got));
    assert_string_equal(got, "|elements 18000 and 19000 are equal|unique\n");
    json_decref(doc);
    hfd_schema_free(schema);
}

struct tally {
    int run;
    int refused;
};

/* The suite's schemas that we refuse, and the keyword that we refuse them for. */
static const struct {
    const char *file, *keyword;
} refused[] = {
    {"definitions.json", "$ref"}, /* to the meta-schema on the network */
    {"dependencies.json", "dependencies"},
    {"ref.json", "$ref"}, /* to an absolute address, or to an $id */
    {"ref.json", "$id"},
    {"refRemote.json", "$ref"},
    {"refRemote.json", "$id"},
};

static bool may_be_refused(const char *file, const char *keyword)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strcmp(file, refused[i].file) == 0 && strcmp(keyword, refused[i].keyword) == 0)
            return true;
    return false;
}

static void one_group(const char *file, const json_t *group, struct tally *tally)
{
    const char *name = json_string_value(json_object_get(group, "description"));
    const json_t *tests = json_object_get(group, "tests");
    struct hfd_schema *schema;
    struct hfd_err err;
    char got[4000];

    if (hfd_schema_compile(json_object_get(group, "schema"), HFD_SLICE_NONE, &schema, &err) !=
        HFD_OK) {
        if (!may_be_refused(file, err.field))
            fail_msg("%s: \"%s\": %s", file, name, err.msg);
        tally->refused++;
        return;
    }
    for (size_t i = 0; i < json_array_size(tests); i++) {
        const json_t *test = json_array_get(tests, i);
        bool valid = json_is_true(json_object_get(test, "valid"));

        validate(schema, json_object_get(test, "data"), false, got, sizeof(got));
        if ((got[0] == '\0') != valid)
            fail_msg("%s: \"%s\": \"%s\": %s", file, name,
                     json_string_value(json_object_get(test, "description")), got);
        tally->run++;
    }
    hfd_schema_free(schema);
}

static void one_file(const char *file, hfd_slice text, void *arg)
{
    json_t *groups =
        json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL); /* the suite has texts that we refuse */

    assert_true(json_is_array(groups));
    for (size_t i = 0; i < json_array_size(groups); i++)
        one_group(file, json_array_get(groups, i), arg);
    json_decref(groups);
}

/* The public suite of draft 7: every group that compiles gives the suite's verdicts. */
static void validate_draft7_suite(void **state)
{
    struct tally tally = {0, 0};

    (void)state;
    if (!test_vectors_each("json-schema-draft7", one_file, &tally)) {
        print_message("no json-schema-draft7 vectors here: skipped\n");
        skip();
    }
    assert_true(tally.run > 800 && tally.refused < 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_tells_what_is_wrong),
        cmocka_unit_test(validate_lenient_numbers),
        cmocka_unit_test(validate_stores_the_numbers),
        cmocka_unit_test(compile_refuses),
        cmocka_unit_test(compile_part_of_a_document),
        cmocka_unit_test(validate_bounds_violations),
        cmocka_unit_test(validate_numbers_out_of_memory),
        cmocka_unit_test(validate_bounds_work),
        cmocka_unit_test(validate_bounds_comparing),
        cmocka_unit_test(compile_bounds_parts),
        cmocka_unit_test(validate_unique_large),
        cmocka_unit_test(validate_draft7_suite),
    };

    return cmocka_run_group_tests(tests, faultmem_setup_json, NULL);
}
