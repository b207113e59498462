/*
 * The query of a request: parameters decoded, and the projection of items by `fields`. Source:
 * HyperFleet API, field selection.
 */
#include "driver/base/clock.h"
#include "handlers/http/query.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/lib/faultmem.h"

#define S(text) hfd_slice_of(text)

/*
 * Percent and plus are decoded, the last of a name counts, names match whole; "name" alone is there
 * and blank.
 */
static void parameters_are_decoded(void **state)
{
    static const struct {
        const char *query, *value; /* NULL: absent */
    } cases[] = {
        {"", NULL},
        {"search", ""},
        {"search=", ""},
        {"search=x", "x"},
        {"a=1&search=x&b=2", "x"},
        {"search=x&search=y", "x"},
        {"search=&search=y", ""},
        {"searches=x", NULL},
        {"xsearch=x", NULL},
        {"Search=x", NULL},
        {"search=a+b%20c%2Bd", "a b c+d"},
        {"search=name%3D%27x%27", "name='x'"},
        {"search=a=b", "a=b"},
        {"search=%C3%a9", "\xc3\xa9"},
        {"&&search=x&&", "x"},
        {"search=%26", "&"},
    };
    static const char *const wrong[] = {"search=%", "search=%4", "search=%4g", "search=%%41",
                                        "search=a%g1"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_arena mem;
        hfd_slice v;

        hfd_arena_init(&mem, 4096);
        assert_int_equal(hfd_query_get(S(cases[i].query), "search", &mem, &v, NULL), HFD_OK);
        if (cases[i].value == NULL || v.p == NULL)
            assert_true(cases[i].value == NULL && v.p == NULL);
        else if (!hfd_slice_is(v, cases[i].value))
            fail_msg("%s: %.*s", cases[i].query, HFD_SLICE_FMT(v));
        hfd_arena_fini(&mem);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hfd_arena mem;
        struct hfd_err err;
        hfd_slice v;

        hfd_arena_init(&mem, 4096);
        assert_int_equal(hfd_query_get(S(wrong[i]), "search", &mem, &v, &err), HFD_BAD_REQUEST);
        assert_string_equal(err.field, "search");
        assert_null(v.p);
        hfd_arena_fini(&mem);
    }
    {
        struct hfd_arena none;
        hfd_slice v;

        hfd_arena_init(&none, 0);
        assert_int_equal(hfd_query_get(S("search=x"), "search", &none, &v, NULL), HFD_NOMEM);
    }
}

/* Whole numbers from 1; blank and absent leave what was there. */
static void numbers_are_bounded(void **state)
{
    static const struct {
        const char *query;
        hfd_rc rc;
        int64_t value;
    } cases[] = {
        {"", HFD_OK, 7},
        {"page=", HFD_OK, 7},
        {"page=1", HFD_OK, 1},
        {"page=500", HFD_OK, 500},
        {"page=%31", HFD_OK, 1},
        {"page=0", HFD_INVALID, 7},
        {"page=-1", HFD_INVALID, 7},
        {"page=501", HFD_INVALID, 7},
        {"page=1.0", HFD_INVALID, 7},
        {"page=x", HFD_INVALID, 7},
        {"page=+1", HFD_INVALID, 7},
        {"page=1+", HFD_INVALID, 7},
        {"page=99999999999999999999", HFD_INVALID, 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_arena mem;
        struct hfd_err err = {0};
        int64_t v = 7;

        hfd_arena_init(&mem, 4096);
        if (hfd_query_i64(S(cases[i].query), &(struct hfd_query_number){"page", 500}, &mem, &v,
                          &err) != cases[i].rc ||
            v != cases[i].value)
            fail_msg("%s: %lld", cases[i].query, (long long)v);
        if (cases[i].rc != HFD_OK) {
            assert_string_equal(err.field, "page");
            assert_string_equal(err.msg, "page must be an integer between 1 and 500");
        }
        hfd_arena_fini(&mem);
    }
}

static const char document[] = "{\"kind\":\"Cluster\",\"id\":\"2a\",\"name\":\"n\",\"spec\":{\"a\":"
                               "{\"b\":1,\"c\":[{\"d\":2,\"e\":3},4]},\"x\":null},\"labels\":{"
                               "\"k\":\"v\"},"
                               "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":"
                               "\"True\"},{\"type\":\"Available\",\"status\":\"False\"}]}}";

/* The fields asked for, in the item's own order, and always the id. */
static void fields_project_items(void **state)
{
    static const struct {
        const char *fields, *item; /* NULL: the whole item */
    } cases[] = {
        {"", NULL},
        {" , ,", NULL},
        {"id", "{\"id\":\"2a\"}"},
        {"name", "{\"id\":\"2a\",\"name\":\"n\"}"},
        {" name , kind ,name", "{\"kind\":\"Cluster\",\"id\":\"2a\",\"name\":\"n\"}"},
        {"deleted_time", "{\"id\":\"2a\"}"},
        {"labels", "{\"id\":\"2a\",\"labels\":{\"k\":\"v\"}}"},
        {"labels.k", "{\"id\":\"2a\",\"labels\":{\"k\":\"v\"}}"},
        {"labels.absent", "{\"id\":\"2a\",\"labels\":{}}"},
        {"spec.a.b", "{\"id\":\"2a\",\"spec\":{\"a\":{\"b\":1}}}"},
        {"spec.a.b,spec.x", "{\"id\":\"2a\",\"spec\":{\"a\":{\"b\":1},\"x\":null}}"},
        {"spec.a.c.d", "{\"id\":\"2a\",\"spec\":{\"a\":{\"c\":[{\"d\":2}]}}}"},
        {"spec.a,spec.a.b",
         "{\"id\":\"2a\",\"spec\":{\"a\":{\"b\":1,\"c\":[{\"d\":2,\"e\":3},4]}}}"},
        {"spec.x.deeper", "{\"id\":\"2a\",\"spec\":{}}"},
        {"status.conditions.type", "{\"id\":\"2a\",\"status\":{\"conditions\":[{\"type\":\"Ready\"}"
                                   ",{\"type\":\"Available\"}]}}"},
        {"status.*", "{\"id\":\"2a\",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":"
                     "\"True\"},{\"type\":\"Available\","
                     "\"status\":\"False\"}]}}"},
        {"status.conditions.*,name", "{\"id\":\"2a\",\"name\":\"n\",\"status\":{\"conditions\":[{"
                                     "\"type\":\"Ready\",\"status\":\"True\"},{"
                                     "\"type\":\"Available\",\"status\":\"False\"}]}}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_fields *fields;
        struct hfd_arena mem;
        struct hfd_err err;
        struct hfd_buf b;

        hfd_arena_init(&mem, 1 << 20);
        hfd_buf_init(&b, 1 << 16);
        if (hfd_fields_parse(HFD_KIND_CLUSTER, S(cases[i].fields), &mem, &fields, &err) != HFD_OK)
            fail_msg("%s: %s", cases[i].fields, err.msg);
        assert_int_equal(fields == NULL, cases[i].item == NULL);
        if (fields != NULL) {
            hfd_fields_add(&b, fields, HFD_SLICE(document));
            hfd_buf_addc(&b, '\0');
            assert_int_equal(b.rc, HFD_OK);
            assert_string_equal(b.p, cases[i].item);
        }
        hfd_buf_fini(&b);
        hfd_arena_fini(&mem);
    }
}

/* An item is never shown with less than what is wanted because memory was short. */
static void fields_are_whole_or_fail(void **state)
{
    const struct hfd_fields *fields;
    struct hfd_arena mem;
    struct hfd_err err;
    struct hfd_buf whole, b;
    unsigned nth = 0;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    hfd_buf_init(&whole, 1 << 16);
    hfd_buf_init(&b, 1 << 16);
    assert_int_equal(hfd_fields_parse(HFD_KIND_CLUSTER, S("spec.a.c.d,status.conditions.type"),
                                      &mem, &fields, &err),
                     HFD_OK);
    hfd_fields_add(&whole, fields, HFD_SLICE(document));
    assert_int_equal(whole.rc, HFD_OK);
    do {
        hfd_buf_reset(&b);
        faultmem_arm(++nth, false);
        hfd_fields_add(&b, fields, HFD_SLICE(document));
        assert_true(b.rc == HFD_NOMEM ||
                    (b.rc == HFD_OK && hfd_slice_eq(hfd_buf_slice(&b), hfd_buf_slice(&whole))));
    } while (faultmem_disarm() != 0);
    assert_true(nth > 10);
    hfd_buf_fini(&b);
    hfd_buf_fini(&whole);
    hfd_arena_fini(&mem);
}

/* Unknown fields are all named, in HyperFleet's words. */
static void unknown_fields_are_named(void **state)
{
    static const struct {
        enum hfd_kind kind;
        const char *fields, *message;
    } cases[] = {
        {HFD_KIND_CLUSTER, "x", "The following field(s) doesn't exist in `Cluster`: x"},
        {HFD_KIND_CLUSTER, "name,x, y.z ,id",
         "The following field(s) doesn't exist in `Cluster`: x, y.z"},
        {HFD_KIND_CLUSTER, "name.x", "The following field(s) doesn't exist in `Cluster`: name.x"},
        {HFD_KIND_CLUSTER, "status.phase",
         "The following field(s) doesn't exist in `Cluster`: status.phase"},
        {HFD_KIND_CLUSTER, "status.conditions.type.x",
         "The following field(s) doesn't exist in `Cluster`: status.conditions.type.x"},
        {HFD_KIND_CLUSTER, "status.conditions.phase",
         "The following field(s) doesn't exist in `Cluster`: status.conditions.phase"},
        {HFD_KIND_CLUSTER, "owner_references",
         "The following field(s) doesn't exist in `Cluster`: owner_references"},
        {HFD_KIND_NODEPOOL, "owner_references.id,owner_references.name",
         "The following field(s) doesn't exist in `NodePool`: owner_references.name"},
        {HFD_KIND_CLUSTER, "spec.", "The following field(s) doesn't exist in `Cluster`: spec."},
        {HFD_KIND_CLUSTER, ".", "The following field(s) doesn't exist in `Cluster`: ."},
        {HFD_KIND_CLUSTER, "spec.1.2.3.4.5.6.7.8.9.10.11.12",
         "The following field(s) doesn't exist in `Cluster`: spec.1.2.3.4.5.6.7.8.9.10.11.12"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_fields *fields;
        struct hfd_arena mem;
        struct hfd_err err;

        hfd_arena_init(&mem, 1 << 20);
        assert_int_equal(hfd_fields_parse(cases[i].kind, S(cases[i].fields), &mem, &fields, &err),
                         HFD_INVALID);
        assert_string_equal(err.msg, cases[i].message);
        assert_string_equal(err.field, "fields");
        assert_null(fields);
        hfd_arena_fini(&mem);
    }
}

/* The number of fields is bounded, and so is what an error repeats of them. */
static void many_fields_are_refused(void **state)
{
    const struct hfd_fields *fields;
    struct hfd_arena mem;
    struct hfd_err err;
    struct hfd_buf b;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    hfd_buf_init(&b, 1 << 16);
    for (int i = 0; i < 64; i++)
        hfd_buf_lit(&b, "spec.a,");
    assert_int_equal(hfd_fields_parse(HFD_KIND_CLUSTER, hfd_buf_slice(&b), &mem, &fields, &err),
                     HFD_OK);
    hfd_buf_lit(&b, "name");
    assert_int_equal(hfd_fields_parse(HFD_KIND_CLUSTER, hfd_buf_slice(&b), &mem, &fields, &err),
                     HFD_INVALID);
    hfd_buf_reset(&b);
    for (int i = 0; i < 1000; i++)
        hfd_buf_lit(&b, "unknown,");
    assert_int_equal(hfd_fields_parse(HFD_KIND_CLUSTER, hfd_buf_slice(&b), &mem, &fields, &err),
                     HFD_INVALID);
    hfd_buf_fini(&b);
    hfd_arena_fini(&mem);
}

/* Every parameter is taken in its order, decoded; empty ones are skipped. */
static void parameters_are_taken_in_order(void **state)
{
    static const char *const want[][2] = {{"a", "1"},   {"b c", "x&y"}, {"a", ""},
                                          {"flag", ""}, {"", "v"},      {"d", "=="}};
    hfd_slice rest = HFD_SLICE("a=1&&b+c=x%26y&a=&flag&=v&=&d===&");
    struct hfd_query_param param;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 1 << 16);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(hfd_query_next(&rest, &mem, &param, NULL), HFD_OK);
        assert_true(hfd_slice_is(param.name, want[i][0]) && hfd_slice_is(param.value, want[i][1]));
    }
    assert_int_equal(hfd_query_next(&rest, &mem, &param, NULL), HFD_NOT_FOUND);
    rest = HFD_SLICE("%zz");
    assert_int_equal(hfd_query_next(&rest, &mem, &param, NULL), HFD_BAD_REQUEST);
    rest = HFD_SLICE("a=%2");
    assert_int_equal(hfd_query_next(&rest, &mem, &param, NULL), HFD_BAD_REQUEST);
    hfd_arena_fini(&mem);
}

/* RFC 7240, 2: names in any case, the first of a name, parameters, quotes; 50 seconds at most. */
static void preferences_are_found(void **state)
{
    static const struct {
        const char *value;
        bool there;
        int wait_s;
    } rows[] = {
        {"wait=5", true, 5},
        {"wait=50", true, 50},
        {"wait=51", true, 50},
        {"wait=99999999999999999999999", true, 50},
        {"wait=007", true, 7},
        {"wait=0", true, 0},
        {"WAIT=5", true, 5},
        {" \twait\t = 5 ", true, 5},
        {"wait=\"5\"", true, 5},
        {"wait=5;x=y", true, 5},
        {"wait=5 ; x", true, 5},
        {"respond-async, wait=5", true, 5},
        {"respond-async,wait=5, handling=lenient", true, 5},
        {"wait=5, wait=9", true, 5},
        {"wait=x, wait=9", true, 0},
        {", ,wait=5", true, 5},
        {"a=\"b,wait=1\", wait=5", true, 5},
        {"a=\"b\\\",wait=1\", wait=5", true, 5},
        {"a;wait=1, wait=5", true, 5},
        {"wait", true, 0},
        {"wait=", true, 0},
        {"wait=\"\"", true, 0},
        {"wait=\"", true, 0},
        {"wait=\"5", true, 0},
        {"wait=-1", true, 0},
        {"wait=+1", true, 0},
        {"wait=1.5", true, 0},
        {"wait=5s", true, 0},
        {"wait=9x9", true, 0},
        {"wait=5 5", true, 0},
        {"wait=5=6", true, 0},
        {"", false, 0},
        {",", false, 0},
        {"=5", false, 0},
        {"waits=5", false, 0},
        {"await=5", false, 0},
        {"respond-async; wait=5", false, 0},
        {"a=\"wait=5", false, 0},
        {"a=\"\\", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int wait_s = -1;

        if (hfd_prefer_wait(hfd_slice_of(rows[i].value), &wait_s) != rows[i].there ||
            wait_s != rows[i].wait_s)
            fail_msg("%s: %d", rows[i].value, wait_s);
    }
}

/* `wait` of a feed is a duration. */
static void waits_are_bounded(void **state)
{
    static const char *const wrong[] = {"", "5", "51s", "50001ms", "-1s", "x", "1h"};
    struct hfd_err err;
    int64_t us;

    (void)state;
    assert_int_equal(hfd_query_wait(HFD_SLICE("50s"), &us, &err), HFD_OK);
    assert_int_equal(us, 50 * HFD_US_PER_S);
    assert_int_equal(hfd_query_wait(HFD_SLICE("500ms"), &us, &err), HFD_OK);
    assert_int_equal(us, HFD_US_PER_S / 2);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(hfd_query_wait(hfd_slice_of(wrong[i]), &us, &err), HFD_INVALID);
        assert_string_equal(err.field, "wait");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(preferences_are_found),         cmocka_unit_test(waits_are_bounded),
        cmocka_unit_test(parameters_are_decoded),        cmocka_unit_test(numbers_are_bounded),
        cmocka_unit_test(fields_project_items),          cmocka_unit_test(fields_are_whole_or_fail),
        cmocka_unit_test(unknown_fields_are_named),      cmocka_unit_test(many_fields_are_refused),
        cmocka_unit_test(parameters_are_taken_in_order),
    };

    return cmocka_run_group_tests_name("query", tests, faultmem_setup_json, NULL);
}
