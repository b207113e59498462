#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/seams.h"
#include "tests/lib/vectors.h"

#define S(lit) HFD_SLICE(lit)

static json_t *parse(const char *text)
{
    json_t *v;

    assert_int_equal(hfd_json_parse(hfd_slice_of(text), &v, NULL), HFD_OK);
    return v;
}

/* Every other text than the JSON that we accept is refused with its place, and nothing is given. */
static void json_parse_refuses(void **state)
{
    static const hfd_slice rows[] = {
        S(""),
        S(" "),
        S("{"),
        S("[1,]"),
        S("{\"a\":1,\"a\":2}"),
        S("nul"),
        S("1 2"),
        S("\"\\u0000\""),
        S("\"a\0b\""),
        S("{\"\\u0000\":1}"),
        S("[1]\0"),
        S("1\0"),
        S("\0"),
        S("'a'"),
        S("[NaN]"),
        S("9223372036854775808"),
        S("-9223372036854775809"),
        S("1e999"),
        S("01"),
        S("\"\xff\""),
        S("\"\xed\xa0\x80\""),
        S("\"\\ud800\""),
        S("\xef\xbb\xbf{}"),
        S("\"\n\""),
        S("{\"a\" 1}"),
        S("{1:2}"),
        S("[}"),
        S("/* */1"),
        S("]"),
        HFD_SLICE_NONE,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_err err = {.msg = ""};
        json_t *v = (json_t *)&err;

        assert_int_equal(hfd_json_parse(rows[i], &v, &err), HFD_MALFORMED);
        assert_null(v);
        assert_true(strlen(err.msg) > 10);
    }
}

/*
 * An error message has line and column. It has no text of the parser's own flags, and no piece of
 * the document, which may be a secret.
 */
static void json_parse_message_is_discreet(void **state)
{
    struct hfd_err err;
    json_t *v;

    (void)state;
    assert_int_equal(hfd_json_parse(S("{\n \"password\": \"hunter2\" \"x\"}"), &v, &err),
                     HFD_MALFORMED);
    assert_non_null(strstr(err.msg, "line 2, column "));
    assert_null(strstr(err.msg, "hunter2"));
    assert_null(strstr(err.msg, "near '"));
    assert_int_equal(hfd_json_parse(S("{\"hunter2\":1,\"hunter2\":1}"), &v, &err), HFD_MALFORMED);
    assert_non_null(strstr(err.msg, "duplicate"));
    assert_null(strstr(err.msg, "hunter2"));
    assert_int_equal(hfd_json_parse(S("{\"a\":\n\"b\\u0000\"}"), &v, &err), HFD_MALFORMED);
    assert_non_null(strstr(err.msg, "line 2, column "));
    assert_non_null(strstr(err.msg, "\\u0000 is not allowed in a text"));
    assert_int_equal(hfd_json_parse(S("{\"b\":[{},{\"c\":{\"d\":\"x\\u0000\"}}]}"), &v, &err),
                     HFD_MALFORMED);
    assert_non_null(strstr(err.msg, ": b[1].c.d: \\u0000 is not allowed in a text"));
    assert_int_equal(hfd_json_parse(S("{\"a\\u0000\":1}"), &v, &err), HFD_MALFORMED);
    assert_non_null(strstr(err.msg, "\\u0000 is not allowed in a text"));
}

/* Depth is bounded exactly, whatever brackets stand in strings, before the parser sees the text. */
static void json_parse_depth(void **state)
{
    static char text[400001];
    struct hfd_err err;
    json_t *v;

    (void)state;
    for (int depth = HFD_JSON_DEPTH_MAX - 1; depth <= HFD_JSON_DEPTH_MAX + 1; depth++) {
        hfd_rc rc = depth <= HFD_JSON_DEPTH_MAX ? HFD_OK : HFD_MALFORMED;
        int at = 0;

        for (int i = 0; i < depth; i++)
            at += snprintf(text + at, 100, i % 2 == 0 ? "[\"]\\\"[[{\"," : "{\"}}\\\\\":");
        at += snprintf(text + at, 100, "1");
        for (int i = depth - 1; i >= 0; i--)
            text[at++] = i % 2 == 0 ? ']' : '}';
        assert_int_equal(hfd_json_parse((hfd_slice){text, (size_t)at}, &v, &err), rc);
        json_decref(v);
    }
    assert_string_equal(strchr(err.msg, ':'), ": nested deeper than 32 levels");
    memset(text, '[', sizeof(text));
    assert_int_equal(hfd_json_parse((hfd_slice){text, sizeof(text)}, &v, &err), HFD_MALFORMED);
    for (size_t i = 0; i + 4 < sizeof(text); i += 5)
        memcpy(text + i, "{\"a\":", 5);
    assert_int_equal(hfd_json_parse((hfd_slice){text, sizeof(text) - 1}, &v, &err), HFD_MALFORMED);
}

/* An array of numbers: itself, and each of them. */
static void many_numbers(struct hfd_buf *b, int nodes)
{
    for (int i = 0; i < nodes - 1; i++)
        hfd_buf_addf(b, "%c %d", i == 0 ? '[' : ',', i);
    hfd_buf_addc(b, ']');
}

/*
 * An object with an array in it: itself, the keys, their values, and the elements of the array.
 * nodes is even.
 */
static void many_members(struct hfd_buf *b, int nodes)
{
    for (int i = 0; i < nodes / 2 - 1; i++)
        hfd_buf_addf(b, "%c\"%d,:\":%s", i == 0 ? '{' : ',', i,
                     i == 7       ? "[ 1 ]"
                     : i % 2 == 0 ? "[ ]"
                                  : "{\n}");
    hfd_buf_addc(b, '}');
}

/*
 * Values and keys are counted exactly at the bound: in arrays, in objects, and in empty containers.
 */
static void json_parse_node_count(void **state)
{
    static void (*const make[])(struct hfd_buf *, int) = {many_numbers, many_members};
    struct hfd_err err;
    struct hfd_buf b;
    json_t *v;

    (void)state;
    hfd_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < 2; i++) {
        hfd_buf_reset(&b);
        make[i](&b, HFD_JSON_NODES_MAX);
        assert_int_equal(hfd_json_parse(hfd_buf_slice(&b), &v, &err), HFD_OK);
        json_decref(v);
        b.len--; /* one more in front of the last bracket */
        hfd_buf_add(&b, i == 0 ? S(",[]]") : S(",\"x\":{}}"));
        assert_int_equal(hfd_json_parse(hfd_buf_slice(&b), &v, &err), HFD_MALFORMED);
        assert_non_null(strstr(err.msg, "more than 20000 values and keys"));
    }
    hfd_buf_fini(&b);
}

static void fail_each_allocation(hfd_slice text, bool for_ever)
{
    json_t *v;

    for (int nth = 1;; nth++) {
        hfd_rc rc;

        faultmem_arm((unsigned)nth, for_ever);
        rc = hfd_json_parse(text, &v, NULL);
        if (faultmem_disarm() == 0) {
            assert_int_equal(rc, HFD_OK);
            json_decref(v);
            break;
        }
        assert_int_equal(rc, HFD_NOMEM);
        assert_null(v);
        assert_true(nth < 500);
    }
}

/*
 * Each allocation of the parser fails in turn, once and from then on. The result is HFD_NOMEM,
 * nothing is given, and nothing is lost. Text, keys and numbers that outgrow the parser's buffer
 * are not read with bytes missing, nor beyond their end, as jansson alone would.
 */
static void json_parse_out_of_memory(void **state)
{
    static const char *const texts[] = {
        "{\"a\":[1,2.5,\"three\",null,true,{}],\"longer key\":{\"b\":\"\\u00e9\"}}",
        ("[\"a text of more than sixteen bytes, and of more than thirty-two as well\", \"another "
         "one \\u00e9\\n\"]"),
        "{\"a key of more than sixteen bytes, and of more than thirty-two as well\":1}",
        "[0.1000000000000000000000000000000000000000000000001, 123456789012345678, [true]]",
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(texts[0]); i++)
        fail_each_allocation(hfd_slice_of(texts[i / 2]), i % 2 == 1);
}

/*
 * The same with texts of every length near a doubling of the buffer, and with texts of the buffer's
 * own sizes.
 */
static void json_parse_out_of_memory_at_every_length(void **state)
{
    struct hfd_buf b;

    (void)state;
    for (size_t len = 1; len < 10000; len = len < 140 ? len + 1 : len * 3) {
        hfd_buf_init(&b, 32768);
        hfd_buf_lit(&b, "[\"");
        for (size_t i = 0; i < len; i++)
            hfd_buf_addc(&b, 'x');
        hfd_buf_lit(&b, "\",\"");
        for (size_t i = 0; i < len; i++)
            hfd_buf_addc(&b, 'y');
        hfd_buf_lit(&b, "\"]");
        fail_each_allocation(hfd_buf_slice(&b), true);
        fail_each_allocation(hfd_buf_slice(&b), false);
        hfd_buf_fini(&b);
    }
}

/* A copy is whole, or there is none. */
static void json_copy_out_of_memory(void **state)
{
    static json_t *(*const copies[])(const json_t *) = {hfd_json_copy, hfd_json_deep_copy};
    json_t *doc =
        parse("{\"a\":[1,2.5,{\"x\":null}],\"b\":{\"c\":true,\"d\":\"e\"},\"f\":[[],{}]}");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (int nth = 1;; nth++) {
            json_t *copy;
            bool fired;

            faultmem_arm((unsigned)nth, false);
            copy = copies[i](doc);
            fired = faultmem_disarm() != 0;
            assert_int_equal(fired, copy == NULL);
            assert_true(copy == NULL || json_equal(copy, doc));
            json_decref(copy);
            if (!fired)
                break;
            assert_true(nth < 500);
        }
    }
    assert_null(hfd_json_copy(NULL));
    assert_null(hfd_json_deep_copy(NULL));
    json_decref(doc);
}

/*
 * Text to compare: equal numbers are written alike, as far as integers reach. The rest is as in the
 * text to store.
 */
static void json_equal_text(void **state)
{
    static const struct {
        const char *in, *text;
    } rows[] = {
        {"{\"b\":[1.0,-0.0,1e2],\"a\":\"1.0\"}", "{\"a\":\"1.0\",\"b\":[1,0,100]}"},
        {"-9223372036854775808.0", "-9223372036854775808"},
        {"9223372036854775808.0", "9.223372036854776e+18"},
        {"9007199254740993.0", "9007199254740992"}, /* the part of it that a double holds */
        {"1e300", "1e+300"},
        {"0.5", "0.5"},
    };
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *v = parse(rows[i].in);

        hfd_buf_reset(&b);
        hfd_json_dump_for_compare(&b, v);
        assert_int_equal(b.rc, HFD_OK);
        if (!hfd_slice_is(hfd_buf_slice(&b), rows[i].text))
            fail_msg("%s: %.*s", rows[i].in, HFD_SLICE_FMT(hfd_buf_slice(&b)));
        json_decref(v);
    }
    hfd_buf_fini(&b);
}

/* Text to store: order and white space do not matter, numbers are short and keep their kind. */
static void json_canonical_and_dump(void **state)
{
    static const struct {
        const char *in, *canonical, *dump;
    } rows[] = {
        {" { \"b\" : 1 , \"a\" : [ true , false , null ] } ", "{\"a\":[true,false,null],\"b\":1}",
         "{\"b\":1,\"a\":[true,false,null]}"},
        {"{\"b\":{\"d\":1,\"c\":2},\"\":0,\"B\":3}", "{\"\":0,\"B\":3,\"b\":{\"c\":2,\"d\":1}}",
         "{\"b\":{\"d\":1,\"c\":2},\"\":0,\"B\":3}"},
        {"{}", "{}", "{}"},
        {"[]", "[]", "[]"},
        {"0.1", "0.1", "0.1"},
        {"1.0", "1.0", "1.0"},
        {"1", "1", "1"},
        {"-0.0", "-0.0", "-0.0"},
        {"1e2", "100.0", "100.0"},
        {"1E300", "1e+300", "1e+300"},
        {"0.30000000000000004", "0.30000000000000004", "0.30000000000000004"},
        {"123456789012345.678", "123456789012345.67", "123456789012345.67"},
        {"-9223372036854775808", "-9223372036854775808", "-9223372036854775808"},
        {"\"\\u00e9\\u000a/\"", "\"\xc3\xa9\\n/\"", "\"\xc3\xa9\\n/\""},
        {"null", "null", "null"},
    };
    struct hfd_arena a;
    struct hfd_buf b;

    (void)state;
    hfd_arena_init(&a, 10000);
    hfd_buf_init(&b, 1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *v = parse(rows[i].in);
        hfd_slice s = hfd_json_dump_arena(&a, v);

        assert_string_equal(s.p, rows[i].dump);
        hfd_buf_reset(&b);
        hfd_json_dump_for_store(&b, v);
        assert_int_equal(b.rc, HFD_OK);
        assert_true(hfd_slice_is(hfd_buf_slice(&b), rows[i].canonical));
        json_decref(v);
    }
    hfd_buf_fini(&b);
    hfd_arena_fini(&a);
}

/* Doubles of any bits come back from their text bit for bit. */
static void json_reals_round_trip(void **state)
{
    struct test_rng rng;
    struct hfd_buf b;

    (void)state;
    test_rng_init(&rng, 5);
    hfd_buf_init(&b, 100);
    for (int i = 0; i < 20000; i++) {
        double d;
        json_t *v;
        json_t *back;

        hfd_rng_bytes(&rng.rng, &d, sizeof(d));
        if (i % 2 == 0)
            d = (double)(int64_t)test_rng_below(&rng, 2000000) / 1000.0;
        v = json_real(d);
        if (v == NULL)
            continue; /* not finite */
        hfd_buf_reset(&b);
        hfd_json_dump(&b, v);
        assert_int_equal(hfd_json_parse(hfd_buf_slice(&b), &back, NULL), HFD_OK);
        assert_true(json_is_real(back));
        assert_true(json_real_value(back) == d);
        if (i % 2 == 0)
            assert_true(b.len <= 9);
        json_decref(v);
        json_decref(back);
    }
    hfd_buf_fini(&b);
}

/* A dump that does not fit fails as a whole. A tree that is too deep to be sent is refused. */
static void json_dump_is_bounded(void **state)
{
    json_t *v = parse("{\"a\":[1,2,3]}");
    json_t *deep = json_array();
    struct hfd_arena a;
    struct hfd_buf b;

    (void)state;
    hfd_arena_init(&a, 8);
    assert_null(hfd_json_dump_arena(&a, v).p);
    hfd_arena_fini(&a);
    hfd_buf_init(&b, 1u << 16);
    hfd_json_dump(&b, NULL);
    assert_int_equal(b.rc, HFD_NOMEM);
    for (int i = 0; i < 1000; i++) {
        json_t *outer = json_array();

        json_array_append_new(outer, deep);
        deep = outer;
    }
    hfd_buf_reset(&b);
    hfd_json_dump(&b, deep);
    assert_int_equal(b.rc, HFD_LIMIT);
    hfd_buf_fini(&b);
    json_decref(deep);
    json_decref(v);
}

/*
 * Getters give the value, and nothing for absent and null. For any other value they name path and
 * types.
 */
static void json_getters(void **state)
{
    json_t *doc = parse("{\"s\":\"x\",\"o\":{},\"a\":[],\"n\":null,\"r\":1.5,\"i\":3}");
    struct hfd_err err;
    hfd_slice s;
    json_t *v;

    (void)state;
    assert_int_equal(hfd_json_get_string(HFD_JSON_REQUIRED(doc, "", "s"), &s, &err), HFD_OK);
    assert_true(hfd_slice_is(s, "x"));
    assert_int_equal(hfd_json_get_object(HFD_JSON_REQUIRED(doc, "", "o"), &v, &err), HFD_OK);
    assert_non_null(v);
    assert_int_equal(hfd_json_get_array(HFD_JSON_REQUIRED(doc, "", "a"), &v, &err), HFD_OK);
    assert_non_null(v);
    assert_int_equal(hfd_json_get_string(HFD_JSON_OPTIONAL(doc, "", "n"), &s, &err), HFD_OK);
    assert_null(s.p);
    assert_int_equal(hfd_json_get_object(HFD_JSON_OPTIONAL(doc, "", "absent"), &v, &err), HFD_OK);
    assert_null(v);
    assert_int_equal(hfd_json_get_string(HFD_JSON_OPTIONAL(doc, "driver.values", "i"), &s, &err),
                     HFD_MALFORMED);
    assert_string_equal(err.msg, "driver.values.i: expected a string, got an integer");
    assert_string_equal(err.field, "driver.values.i");
    assert_null(s.p);
    assert_int_equal(hfd_json_get_object(HFD_JSON_OPTIONAL(doc, "", "r"), &v, &err), HFD_MALFORMED);
    assert_string_equal(err.msg, "r: expected an object, got a number");
    assert_int_equal(hfd_json_get_array(HFD_JSON_REQUIRED(doc, "", "absent"), &v, &err),
                     HFD_MALFORMED);
    assert_string_equal(err.msg, "absent: expected an array, got nothing");
    assert_int_equal(hfd_json_get_array(HFD_JSON_REQUIRED(doc, "", "n"), &v, &err), HFD_MALFORMED);
    assert_string_equal(err.msg, "n: expected an array, got null");
    json_decref(doc);
}

/* Integers: integral reals count, text does not, the range holds. */
static void json_integers(void **state)
{
    static const struct {
        const char *json;
        hfd_rc rc;
        bool present;
        int64_t want;
    } rows[] = {
        {"3", HFD_OK, true, 3},
        {"3.0", HFD_OK, true, 3},
        {"-3e0", HFD_OK, true, -3},
        {"null", HFD_OK, false, 0},
        {"3.5", HFD_MALFORMED, false, 0},
        {"1e30", HFD_MALFORMED, false, 0},
        {"9223372036854775808.0", HFD_MALFORMED, false, 0},
        {"\"3\"", HFD_MALFORMED, false, 0},
        {"\"3.0\"", HFD_MALFORMED, false, 0},
        {"\"\"", HFD_MALFORMED, false, 0},
        {"true", HFD_MALFORMED, false, 0},
        {"[]", HFD_MALFORMED, false, 0},
        {"101", HFD_INVALID, false, 0},
        {"-101", HFD_INVALID, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *doc = json_object();
        struct hfd_err err;
        bool present = true;
        int64_t v = 77;

        json_object_set_new(doc, "n", parse(rows[i].json));
        assert_int_equal(hfd_json_get_i64(HFD_JSON_OPTIONAL(doc, "p", "n"),
                                          (struct hfd_json_range){-100, 100}, &present, &v, &err),
                         rows[i].rc);
        assert_int_equal(present, rows[i].present);
        assert_true(v == rows[i].want);
        if (rows[i].rc == HFD_INVALID)
            assert_non_null(strstr(err.msg, "p.n: expected an integer from -100 to 100"));
        json_decref(doc);
    }
}

/* A required integer that is absent, or null, is an error. */
static void json_integers_required(void **state)
{
    json_t *doc = parse("{\"null\":null}");
    const struct hfd_json_range range = {-100, 100};
    struct hfd_err err;
    bool present = true;
    int64_t v = 77;

    (void)state;
    assert_int_equal(
        hfd_json_get_i64(HFD_JSON_REQUIRED(doc, "", "absent"), range, &present, &v, &err),
        HFD_MALFORMED);
    assert_string_equal(err.msg, "absent: expected an integer, got nothing");
    assert_int_equal(
        hfd_json_get_i64(HFD_JSON_REQUIRED(doc, "", "null"), range, &present, &v, &err),
        HFD_MALFORMED);
    assert_string_equal(err.msg, "null: expected an integer, got null");
    assert_false(present);
    assert_true(v == 0);
    json_decref(doc);
}

/* JSON pointers: the examples of RFC 6901, and pointers to nothing. */
static void json_pointers(void **state)
{
    static const struct {
        hfd_slice pointer;
        const char *want; /* text to store; NULL = nothing there */
    } rows[] = {
        {S("/foo"), "[\"bar\",\"baz\"]"},
        {S("/foo/0"), "\"bar\""},
        {S("/"), "0"},
        {S("/a~1b"), "1"},
        {S("/c%d"), "2"},
        {S("/m~0n"), "8"},
        {S("/ "), "7"},
        {S("/foo/2"), NULL},
        {S("/foo/-"), NULL},
        {S("/foo/00"), NULL},
        {S("/foo/01"), NULL},
        {S("/foo/-1"), NULL},
        {S("/foo/"), NULL},
        {S("/foo/0/x"), NULL},
        {S("foo"), NULL},
        {S("/m~n"), NULL},
        {S("/m~2n"), NULL},
        {S("/m~"), NULL},
        {S("//"), NULL},
        {S("/foo/99999999999999999999"), NULL},
        {S("/f"), NULL},
        {S("/fooo"), NULL},
        {S("/foo\0"), NULL},
    };
    json_t *doc = parse("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\" \":7,\"m~n\":8}");
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 1000);
    assert_ptr_equal(hfd_json_pointer(doc, S("")), doc);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *v = hfd_json_pointer(doc, rows[i].pointer);

        assert_int_equal(v == NULL, rows[i].want == NULL);
        if (v == NULL)
            continue;
        hfd_buf_reset(&b);
        hfd_json_dump_for_store(&b, v);
        assert_true(hfd_slice_is(hfd_buf_slice(&b), rows[i].want));
    }
    hfd_buf_fini(&b);
    json_decref(doc);
}

/*
 * Random edits of a valid text never crash the parser. An accepted text survives a dump and a
 * second parse.
 */
static void json_parse_random_edits(void **state)
{
    static const char seed[] =
        "{\"a\":[1,-2.5e3,\"x\\n\\u00e9\",{\"b\":null,\"c\":[true,false]}],\"d\":{\"e\":\"f\"}}";
    static const char pieces[] = "{}[]\",:\\u0123456789eE+-.tfn \n\xc3\xa9\xff";
    struct test_rng rng;
    struct hfd_buf b;
    struct hfd_buf c;

    (void)state;
    test_rng_init(&rng, 6);
    hfd_buf_init(&b, 10000);
    hfd_buf_init(&c, 10000);
    for (int round = 0; round < 20000; round++) {
        char text[sizeof(seed)];
        size_t len = sizeof(seed) - 1 - (size_t)test_rng_below(&rng, round % 4 == 0 ? 20 : 1);
        json_t *v;
        json_t *again;

        memcpy(text, seed, sizeof(seed));
        for (uint64_t edits = 1 + test_rng_below(&rng, 3); edits > 0; edits--)
            text[test_rng_below(&rng, len)] = pieces[test_rng_below(&rng, sizeof(pieces) - 1)];
        if (hfd_json_parse((hfd_slice){text, len}, &v, NULL) != HFD_OK)
            continue;
        hfd_buf_reset(&b);
        hfd_json_dump_for_store(&b, v);
        assert_int_equal(hfd_json_parse(hfd_buf_slice(&b), &again, NULL), HFD_OK);
        hfd_buf_reset(&c);
        hfd_json_dump_for_store(&c, again);
        assert_true(hfd_slice_eq(hfd_buf_slice(&b), hfd_buf_slice(&c)));
        json_decref(v);
        json_decref(again);
    }
    hfd_buf_fini(&b);
    hfd_buf_fini(&c);
}

/* Texts that a conforming parser accepts and we refuse on purpose. */
static const char *const refused_on_purpose[] = {
    "y_object_duplicated_key.json",           /* duplicate keys */
    "y_object_duplicated_key_and_value.json", /* duplicate keys */
    "y_object_escaped_null_in_key.json",      /* NUL */
    "y_string_null_escape.json",              /* NUL */
};

static void one_vector(const char *name, hfd_slice text, void *arg)
{
    bool refuse = name[0] == 'n';
    struct hfd_err err = {.msg = ""};
    int *count = arg;
    json_t *v;
    hfd_rc rc = hfd_json_parse(text, &v, &err);

    json_decref(v);
    for (size_t i = 0; i < sizeof(refused_on_purpose) / sizeof(refused_on_purpose[0]); i++)
        refuse = refuse || strcmp(name, refused_on_purpose[i]) == 0;
    if (name[0] != 'i' && rc != (refuse ? HFD_MALFORMED : HFD_OK))
        fail_msg("%s: %s %s", name, hfd_rc_name(rc), err.msg);
    ++*count;
}

/*
 * The public parsing vectors: y_ parses but for the exceptions above, n_ is refused, i_ does no
 * harm.
 */
static void json_parsing_vectors(void **state)
{
    int count = 0;

    (void)state;
    if (!test_vectors_each("json-parsing", one_vector, &count)) {
        print_message("no json-parsing vectors here: skipped\n");
        skip();
    }
    assert_true(count > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_parse_refuses),
        cmocka_unit_test(json_parse_message_is_discreet),
        cmocka_unit_test(json_parse_depth),
        cmocka_unit_test(json_parse_node_count),
        cmocka_unit_test(json_parse_out_of_memory),
        cmocka_unit_test(json_parse_out_of_memory_at_every_length),
        cmocka_unit_test(json_copy_out_of_memory),
        cmocka_unit_test(json_equal_text),
        cmocka_unit_test(json_canonical_and_dump),
        cmocka_unit_test(json_reals_round_trip),
        cmocka_unit_test(json_dump_is_bounded),
        cmocka_unit_test(json_getters),
        cmocka_unit_test(json_integers),
        cmocka_unit_test(json_integers_required),
        cmocka_unit_test(json_pointers),
        cmocka_unit_test(json_parse_random_edits),
        cmocka_unit_test(json_parsing_vectors),
    };

    return cmocka_run_group_tests(tests, faultmem_setup_json, NULL);
}
