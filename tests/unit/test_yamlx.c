/* YAML as JSON: driver/base/yamlx.h. */
#include "driver/base/yamlx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "tests/lib/faultmem.h"

static const struct {
    const char *yaml, *json; /* keys sorted */
} good[] = {
    {"", "null"},
    {"# nothing", "null"},
    {"---\n...\n", "null"},
    {"a: 1", "{\"a\":1}"},
    {"a: {b: [1, two, 3.5, -4], c: {}}\ne: []",
     "{\"a\":{\"b\":[1,\"two\",3.5,-4],\"c\":{}},\"e\":[]}"},
    {"- a\n- - b\n  - c", "[\"a\",[\"b\",\"c\"]]"},
    /* Plain scalars have a value where JSON has one, and are strings otherwise. */
    {"[true, True, FALSE, null, ~, Null, yes, on, No]",
     "[true,true,false,null,null,null,\"yes\",\"on\",\"No\"]"},
    {"a:\nb: ''", "{\"a\":null,\"b\":\"\"}"},
    {"['1', \"true\", 1e3, 007, 0x10, +1, .5, 1., .inf, 1_000, 12:30, 2025-01-01]",
     "[\"1\",\"true\",1000.0,\"007\",\"0x10\",\"+1\",\".5\",\"1.\",\".inf\",\"1_000\",\"12:30\","
     "\"2025-01-01\"]"},
    {"[-, 9223372036854775807, 92233720368547758080]",
     "[\"-\",9223372036854775807,\"92233720368547758080\"]"},
    /* Keys are strings. */
    {"200: ok\ntrue: x\n'404': y", "{\"200\":\"ok\",\"404\":\"y\",\"true\":\"x\"}"},
    {"a: |\n  x\n   y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\n y\\n\",\"b\":\"x y\"}"},
    {"{\"a\": [1, \"\\u00e4\\/\", null], \"b\": {\"c\": false}}",
     "{\"a\":[1,\"\xc3\xa4/\",null],\"b\":{\"c\":false}}"},
    {"{\n\t\"a\":\t1,\n\t\"b\": [\n\t\t2\n\t]\n}\n", "{\"a\":1,\"b\":[2]}"},
    {"\"a\\0b\"", "\"a\\u0000b\""},
    /* JSON's characters in two halves, which YAML does not have. */
    {"\n {\"a\": \"\\ud83e\\udd8a\", \"b\": [1.0, 1e2]}\n",
     "{\"a\":\"\xf0\x9f\xa6\x8a\",\"b\":[1.0,100.0]}"},
    {"{a: {\"b\": 'c'}}", "{\"a\":{\"b\":\"c\"}}"},
};

/* Each document reads as the JSON beside it. */
static void yaml_reads_as_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct hfd_err err = {0};
        struct hfd_buf b;
        json_t *doc;

        if (hfd_yaml_parse(hfd_slice_of(good[i].yaml), "t.yaml", &doc, &err) != HFD_OK)
            fail_msg("%s: %s", good[i].yaml, err.msg);
        hfd_buf_init(&b, 4096);
        hfd_json_dump_for_store(&b, doc);
        hfd_buf_addc(&b, '\0');
        assert_int_equal(b.rc, HFD_OK);
        assert_string_equal(b.p, good[i].json);
        hfd_buf_fini(&b);
        json_decref(doc);
    }
}

static const struct {
    const char *yaml, *says;
} bad[] = {
    {"a: 1\nb: &x 2", "t.yaml:2: anchors"},
    {"a: &x {}", "anchors"},
    {"- &x []", "anchors"},
    {"a: *x", "t.yaml:1: aliases"},
    {"a: !!str 1", "tags"},
    {"!x\na: b", "tags"},
    {"a: 1\nb: 2\na: 3", "t.yaml:3: the key is given twice"},
    {"? [a]\n: b", "expected a key"},
    {"? {a: b}\n: c", "expected a key"},
    {"\"a\\0b\": 1", "NUL"},
    {"a: 1\n---\nb: 2", "second"},
    {"a: [1", "t.yaml:"},
    {"a: 1\n\tb: 2", "not valid YAML"},
    {"a: \xff", "UTF-8"},
    {"%TAG ! tag:x,2000:\n---\n!a b", "tags"},
};

/* Each refusal names the line. */
static void yaml_refusals_name_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hfd_err err = {0};
        json_t *doc;

        assert_int_equal(hfd_yaml_parse(hfd_slice_of(bad[i].yaml), "t.yaml", &doc, &err),
                         HFD_INVALID);
        assert_null(doc);
        if (strstr(err.msg, bad[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].yaml, err.msg, bad[i].says);
    }
}

static hfd_rc parse_nested(size_t depth)
{
    char *text = malloc(2 * depth + 1);
    struct hfd_err err;
    json_t *doc;
    hfd_rc rc;

    assert_non_null(text);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    rc = hfd_yaml_parse((hfd_slice){text, 2 * depth}, "t.yaml", &doc, &err);
    json_decref(doc);
    free(text);
    return rc;
}

/* Depth and the number of values are bounded. */
static void yaml_is_bounded(void **state)
{
    const size_t many = HFD_YAML_NODES_MAX + 1;
    char *text = malloc(2 * many + 1);
    struct hfd_err err;
    json_t *doc;

    (void)state;
    assert_int_equal(parse_nested(HFD_YAML_DEPTH_MAX), HFD_OK);
    assert_int_equal(parse_nested(HFD_YAML_DEPTH_MAX + 1), HFD_INVALID);
    assert_int_equal(parse_nested(5000), HFD_INVALID);
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < many; i++)
        memcpy(text + 1 + 2 * i, "1,", 2);
    text[2 * many] = ']';
    assert_int_equal(hfd_yaml_parse((hfd_slice){text, 2 * many + 1}, "t.yaml", &doc, &err),
                     HFD_INVALID);
    assert_non_null(strstr(err.msg, "too large"));
    free(text);
}

/*
 * When memory is short, a number is not read as the string that spells it, nor any value as
 * another.
 */
static void yaml_out_of_memory(void **state)
{
    static const char text[] = "a: 12345\nb: [1.5, x, -3]\nc: {d: 'quoted 7'}\n";
    json_t *whole, *doc = NULL;

    (void)state;
    assert_int_equal(hfd_yaml_parse(HFD_SLICE(text), "t.yaml", &whole, NULL), HFD_OK);
    for (unsigned nth = 1, fired = 1; fired != 0; nth++) {
        hfd_rc rc;

        faultmem_arm(nth, false);
        rc = hfd_yaml_parse(HFD_SLICE(text), "t.yaml", &doc, NULL);
        fired = faultmem_disarm();
        assert_int_equal(rc, fired != 0 ? HFD_NOMEM : HFD_OK);
    }
    assert_true(json_equal(doc, whole));
    json_decref(doc);
    json_decref(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_reads_as_json),
        cmocka_unit_test(yaml_refusals_name_the_place),
        cmocka_unit_test(yaml_is_bounded),
        cmocka_unit_test(yaml_out_of_memory),
    };

    return cmocka_run_group_tests(tests, faultmem_setup_json, NULL);
}
