/*
 * The rules of EMCO's status query as tables: statuses, parameters and filters, the state history,
 * the order and the form of the document.
 */
#include "driver/status/status.h"

#include "driver/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MEM_MAX ((size_t)4 << 20)
#define T HFD_STATUS_TRUE
#define F HFD_STATUS_FALSE
#define U HFD_STATUS_UNKNOWN
#define S(text)                                                                                    \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

/* ---- objects of a report ---- */

static struct hfd_object_counts counts_of(const char *data)
{
    struct hfd_object_counts counts = {.other = 0};
    json_t *json;

    assert_int_equal(hfd_json_parse(hfd_slice_of(data), &json, NULL), HFD_OK);
    hfd_objects_count(json, &counts);
    json_decref(json);
    return counts;
}

/* The members of an entry. An entry without a name counts nowhere. */
static void test_objects_are_read(void **state)
{
    static const struct {
        const char *entry, *group, *version, *kind, *provider, *cluster;
        int rsync; /* -1 = none */
        enum hfd_presence presence;
        bool ok, observed_only;
    } rows[] = {
        /* clang-format off */
        {"{\"name\":\"a\",\"GVK\":{\"Group\":\"apps\",\"Version\":\"v1\",\"Kind\":\"Deployment\"}}",
         "apps", "v1", "Deployment", "", "", -1, HFD_PRESENCE_UNKNOWN, true, false},
        {"{\"name\":\"a\",\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"present\":true}",
         "apps", "v1", "Deployment", "", "", -1, HFD_PRESENCE_PRESENT, true, false},
        {"{\"name\":\"a\",\"detail\":{\"apiVersion\":\"v1\",\"kind\":\"Secret\"},\"present\":false}",
         "", "v1", "Secret", "", "", -1, HFD_PRESENCE_NOT_PRESENT, true, false},
        {"{\"name\":\"a\",\"cluster-provider\":\"p\",\"cluster\":\"c\",\"rsync-status\":\"Retrying\"}",
         "", "", "", "p", "c", HFD_RSYNC_RETRYING, HFD_PRESENCE_UNKNOWN, true, false},
        {"{\"name\":\"a\",\"rsync-status\":\"Deleted\",\"present\":\"yes\",\"GVK\":7}",
         "", "", "", "", "", HFD_RSYNC_TERMINATED, HFD_PRESENCE_UNKNOWN, true, false},
        {"{\"name\":\"a\",\"rsync-status\":\"Instantiated\"}",
         "", "", "", "", "", HFD_RSYNC_APPLIED, HFD_PRESENCE_UNKNOWN, true, false},
        {"{\"name\":\"a\",\"rsync-status\":\"deleted\"}",
         "", "", "", "", "", -1, HFD_PRESENCE_UNKNOWN, true, false},
        {"{\"name\":\"a\",\"observed-only\":true,\"present\":true}",
         "", "", "", "", "", -1, HFD_PRESENCE_PRESENT, true, true},
        {"{\"name\":\"\"}", "", "", "", "", "", -1, HFD_PRESENCE_UNKNOWN, false, false},
        {"{\"GVK\":{}}", "", "", "", "", "", -1, HFD_PRESENCE_UNKNOWN, false, false},
        {"\"a\"", "", "", "", "", "", -1, HFD_PRESENCE_UNKNOWN, false, false},
        /* clang-format on */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_object o;
        json_t *json;

        assert_int_equal(hfd_json_parse(hfd_slice_of(rows[i].entry), &json, NULL), HFD_OK);
        assert_int_equal(hfd_object_read(json, &o), rows[i].ok);
        if (rows[i].ok) {
            assert_true(hfd_slice_is(o.group, rows[i].group));
            assert_true(hfd_slice_is(o.version, rows[i].version));
            assert_true(hfd_slice_is(o.kind, rows[i].kind));
            assert_true(hfd_slice_is(o.provider, rows[i].provider));
            assert_true(hfd_slice_is(o.cluster, rows[i].cluster));
            assert_int_equal(o.has_rsync ? (int)o.rsync : -1, rows[i].rsync);
            assert_int_equal(o.presence, rows[i].presence);
            assert_int_equal(o.observed_only, rows[i].observed_only);
        }
        json_decref(json);
    }
}

/* The stored form gives the same counts again. Damaged forms count nothing. */
static void test_counts_are_stored(void **state)
{
    static const char *const damaged[] = {"",
                                          "1",
                                          "1 2 3 4 5 6 7 8",
                                          "1 2 3 4 5 6 7 8 9 ",
                                          "1 2 3 4 5 6 7 8 9 10",
                                          "1 2 3 4 5 6 7 8 x",
                                          "1 2 3 4 5 6 7 8 -9"};
    struct hfd_object_counts counts, again;
    struct hfd_arena mem;
    hfd_slice text;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    counts =
        counts_of("{\"objects\":[{\"name\":\"a\",\"rsync-status\":\"Failed\",\"present\":true},"
                  "{\"name\":\"b\"},{\"no\":1},{\"name\":\"c\",\"observed-only\":true}]}");
    assert_int_equal(hfd_object_counts_format(&counts, &mem, &text), HFD_OK);
    assert_true(hfd_slice_is(text, "0 0 1 0 0 1 2 0 1"));
    hfd_object_counts_parse(text, &again);
    assert_memory_equal(&counts, &again, sizeof(counts));
    counts = counts_of("{\"objects\":{}}");
    assert_true(hfd_object_counts_none(&counts));
    assert_int_equal(hfd_object_counts_format(&counts, &mem, &text), HFD_OK);
    assert_int_equal(text.len, 0);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        hfd_object_counts_parse(hfd_slice_of(damaged[i]), &again);
        assert_true(hfd_object_counts_none(&again) && again.other == 0);
    }
    hfd_arena_fini(&mem);
}

/* Objects and verdicts come back from their kept form; damage ends the reading. */
static void test_kept_objects(void **state)
{
    static const struct hfd_object objects[] = {
        {.name = S("a"), .has_rsync = true, .rsync = HFD_RSYNC_TERMINATED},
        {.provider = S("p:1"),
         .cluster = S("c;"),
         .group = S("apps"),
         .version = S("v1"),
         .kind = S("Deployment"),
         .name = S("7:x"),
         .node = S("n"),
         .presence = HFD_PRESENCE_PRESENT,
         .observed_only = true},
    };
    struct hfd_status_verdict v = {.own = true,
                                   .seen = true,
                                   .rsync = HFD_RSYNC_RETRYING,
                                   .presence = HFD_PRESENCE_PRESENT},
                              again;
    struct hfd_object o;
    struct hfd_buf b;
    hfd_slice rest;

    (void)state;
    hfd_buf_init(&b, 4096);
    for (size_t i = 0; i < 2; i++)
        hfd_kept_add(&b, &objects[i]);
    rest = hfd_buf_slice(&b);
    for (size_t i = 0; i < 2; i++) {
        assert_true(hfd_kept_next(&rest, &o));
        assert_true(hfd_slice_eq(o.name, objects[i].name));
        assert_true(hfd_slice_eq(o.provider, objects[i].provider));
        assert_true(hfd_slice_eq(o.cluster, objects[i].cluster));
        assert_true(hfd_slice_eq(o.kind, objects[i].kind));
        assert_true(hfd_slice_eq(o.node, objects[i].node));
        assert_int_equal(o.has_rsync, objects[i].has_rsync);
        assert_int_equal(o.rsync, objects[i].rsync);
        assert_int_equal(o.presence, objects[i].presence);
        assert_int_equal(o.observed_only, objects[i].observed_only);
    }
    assert_false(hfd_kept_next(&rest, &o));
    for (size_t cut = 1; cut < 20; cut++) {
        rest = (hfd_slice){b.p, cut};
        (void)hfd_kept_next(&rest, &o);
    }
    rest = HFD_SLICE("9999:a");
    assert_false(hfd_kept_next(&rest, &o));
    rest = (hfd_slice){"2:a0:0:0:0:0:0:0;", 3};
    assert_false(hfd_kept_next(&rest, &o));
    assert_int_equal(rest.len, 1);
    rest = HFD_SLICE("0:0:0:0:0:0:0:999;");
    assert_false(hfd_kept_next(&rest, &o));
    hfd_buf_fini(&b);
    for (v.removed = false;; v.removed = true) {
        hfd_kept_verdict_parse(hfd_kept_verdict_format(&v), &again);
        assert_memory_equal(&v, &again, sizeof(v));
        v.spent = v.removed;
        if (v.removed)
            break;
    }
}

/* ---- statuses of objects ---- */

/* The tables of driver/status/README.md. */
static void test_statuses_of_a_report(void **state)
{
    static const struct {
        const char *what;
        struct hfd_status_report r;
        enum hfd_rsync rsync;
        enum hfd_presence presence;
        enum hfd_rsync own_applied, own_failed; /* of objects that say so themselves */
        enum hfd_presence own_present;
    } rows[] = {
    /* clang-format off */
#define AT .reported = true, .at_generation = true, .in_operation = true
        {"has not reported", {.reported = false},
         HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN, HFD_RSYNC_PENDING, HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN},
        {"Applied", {AT, .applied = T, .available = F, .health = T, .finalized = U},
         HFD_RSYNC_APPLIED, HFD_PRESENCE_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"Applied, health unknown", {AT, .applied = T, .available = F, .health = U, .finalized = U},
         HFD_RSYNC_APPLIED, HFD_PRESENCE_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"refused", {AT, .applied = F, .available = F, .health = T, .finalized = U},
         HFD_RSYNC_FAILED, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"refused, health unknown", {AT, .applied = F, .available = F, .health = U, .finalized = U},
         HFD_RSYNC_RETRYING, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"cannot reach it", {AT, .applied = T, .available = T, .health = F, .finalized = U},
         HFD_RSYNC_RETRYING, HFD_PRESENCE_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"does not know", {AT, .applied = U, .available = F, .health = T, .finalized = U},
         HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"of an older generation", {.reported = true, .applied = T, .available = T, .health = T, .finalized = U},
         HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN, HFD_RSYNC_PENDING, HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN},
        {"of an older generation, new", {.reported = true, .in_operation = true, .applied = T, .available = T, .health = T, .finalized = U},
         HFD_RSYNC_PENDING, HFD_PRESENCE_UNKNOWN, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"before the attempt: applied", {.reported = true, .at_generation = true, .applied = T, .available = T, .health = T, .finalized = U},
         HFD_RSYNC_APPLIED, HFD_PRESENCE_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_PENDING, HFD_PRESENCE_PRESENT},
        {"before the attempt: refused", {.reported = true, .at_generation = true, .applied = F, .available = F, .health = T, .finalized = U},
         HFD_RSYNC_PENDING, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_PENDING, HFD_PRESENCE_PRESENT},
        {"finalized", {AT, .deleting = true, .applied = F, .available = F, .health = T, .finalized = T},
         HFD_RSYNC_TERMINATED, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"finalized, and nobody asked", {AT, .applied = T, .available = T, .health = T, .finalized = T},
         HFD_RSYNC_APPLIED, HFD_PRESENCE_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"deletion refused", {AT, .deleting = true, .applied = F, .available = F, .health = T, .finalized = F},
         HFD_RSYNC_FAILED, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_PRESENT},
        {"stale document", {AT, .stale = true, .applied = T, .available = F, .health = T, .finalized = U},
         HFD_RSYNC_APPLIED, HFD_PRESENCE_UNKNOWN, HFD_RSYNC_APPLIED, HFD_RSYNC_FAILED, HFD_PRESENCE_UNKNOWN},
        {"removed", {AT, .removed = true, .applied = T, .available = T, .health = T, .finalized = U},
         HFD_RSYNC_TERMINATED, HFD_PRESENCE_NOT_PRESENT, HFD_RSYNC_TERMINATED, HFD_RSYNC_TERMINATED, HFD_PRESENCE_NOT_PRESENT},
#undef AT
        /* clang-format on */
    };
    const struct hfd_object applied = {
        .has_rsync = true, .rsync = HFD_RSYNC_APPLIED, .presence = HFD_PRESENCE_PRESENT};
    const struct hfd_object failed = {.has_rsync = true, .rsync = HFD_RSYNC_FAILED};
    const struct hfd_object plain = {.has_rsync = false};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_status_verdict v;

        hfd_status_judge(&rows[i].r, &v);
        if (v.rsync != rows[i].rsync || v.presence != rows[i].presence ||
            hfd_status_rsync(&v, &plain) != rows[i].rsync ||
            hfd_status_rsync(&v, &applied) != rows[i].own_applied ||
            hfd_status_rsync(&v, &failed) != rows[i].own_failed ||
            hfd_status_presence(&v, &applied) != rows[i].own_present)
            fail_msg("%s: %s %s, own %s %s %s", rows[i].what, hfd_rsync_name(v.rsync),
                     hfd_presence_name(v.presence), hfd_rsync_name(hfd_status_rsync(&v, &applied)),
                     hfd_rsync_name(hfd_status_rsync(&v, &failed)),
                     hfd_presence_name(hfd_status_presence(&v, &applied)));
    }
}

/* Stored counts give the sums that counting each object gives, whatever the report says. */
static void test_stored_counts_equal_counted_objects(void **state)
{
    struct hfd_object objects[64];
    size_t count = 0;

    (void)state;
    for (unsigned s = 0; s <= HFD_RSYNC_COUNT; s++)
        for (unsigned p = 0; p < HFD_PRESENCE_COUNT; p++)
            for (unsigned o = 0; o < 2; o++)
                objects[count++] = (struct hfd_object){
                    .has_rsync = s < HFD_RSYNC_COUNT,
                    .rsync = (enum hfd_rsync)(s % HFD_RSYNC_COUNT),
                    .presence = (enum hfd_presence)p,
                    .observed_only = o == 1,
                };
    for (unsigned bits = 0; bits < 1u << 6; bits++)
        for (unsigned n = 0; n < 81; n++) {
            const struct hfd_status_report r = {
                .reported = bits & 1u,
                .at_generation = bits & 2u,
                .in_operation = bits & 4u,
                .deleting = bits & 8u,
                .removed = bits & 16u,
                .stale = bits & 32u,
                .applied = (enum hfd_status)(n % 3),
                .available = (enum hfd_status)(n / 3 % 3),
                .health = (enum hfd_status)(n / 9 % 3),
                .finalized = (enum hfd_status)(n / 27),
            };
            struct hfd_object_counts stored = {.other = 0};
            struct hfd_status_counts one = {{0}, {0}}, all = {{0}, {0}};
            struct hfd_status_verdict v;

            hfd_status_judge(&r, &v);
            for (size_t i = 0; i < count; i++) {
                hfd_object_count(&objects[i], &stored);
                hfd_status_count(&one, &v, &objects[i]);
            }
            hfd_status_count_stored(&all, &v, &stored);
            assert_memory_equal(&one, &all, sizeof(one));
        }
}

/* ---- the status of an instance ---- */

static void test_phases(void **state)
{
    static const struct {
        bool terminating, gone;
        int64_t rsync[HFD_RSYNC_COUNT]; /* Pending, Applied, Failed, Retrying, Terminated */
        enum hfd_status_phase phase;
    } rows[] = {
        {false, false, {0, 0, 0, 0, 0}, HFD_PHASE_INSTANTIATED}, /* no adapters */
        {false, false, {12, 0, 0, 0, 0}, HFD_PHASE_INSTANTIATING},
        {false, false, {0, 12, 0, 0, 0}, HFD_PHASE_INSTANTIATED},
        {false, false, {0, 11, 1, 0, 0}, HFD_PHASE_INSTANTIATE_FAILED},
        {false, false, {1, 10, 1, 0, 0}, HFD_PHASE_INSTANTIATING},
        {false, false, {0, 11, 0, 1, 0}, HFD_PHASE_INSTANTIATING},
        {false, false, {0, 10, 1, 1, 0}, HFD_PHASE_INSTANTIATING},
        {false, false, {0, 11, 0, 0, 1}, HFD_PHASE_INSTANTIATE_FAILED},
        {false, true, {0, 0, 0, 0, 12}, HFD_PHASE_INSTANTIATE_FAILED},
        {false, true, {0, 0, 0, 0, 0}, HFD_PHASE_INSTANTIATE_FAILED},
        {true, false, {12, 0, 0, 0, 0}, HFD_PHASE_TERMINATING},
        {true, false, {0, 12, 0, 0, 0}, HFD_PHASE_TERMINATING},
        {true, false, {0, 0, 0, 0, 0}, HFD_PHASE_TERMINATING},
        {true, false, {0, 0, 0, 0, 12}, HFD_PHASE_TERMINATED},
        {true, false, {0, 0, 1, 0, 11}, HFD_PHASE_TERMINATE_FAILED},
        {true, false, {0, 0, 12, 0, 0}, HFD_PHASE_TERMINATE_FAILED},
        {true, false, {1, 0, 1, 0, 10}, HFD_PHASE_TERMINATING},
        {true, false, {0, 1, 1, 0, 10}, HFD_PHASE_TERMINATING},
        {true, false, {0, 0, 1, 1, 10}, HFD_PHASE_TERMINATING},
        {true, true, {0, 0, 0, 0, 12}, HFD_PHASE_TERMINATED},
        {true, true, {0, 0, 0, 0, 0}, HFD_PHASE_TERMINATED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(
            hfd_status_phase_of((struct hfd_status_life){rows[i].terminating, rows[i].gone},
                                rows[i].rsync),
            rows[i].phase);
}

static void test_progress(void **state)
{
    /* clang-format off */
    static const struct {
        struct hfd_status_share share;
        int64_t want;
    } rows[] = {
        /* rsync                terminating counts done own */
        {{HFD_RSYNC_APPLIED,    false, true,  false, -1},  0},
        {{HFD_RSYNC_APPLIED,    false, true,  false, 10},  10},
        {{HFD_RSYNC_APPLIED,    false, true,  true,  10},  100},
        {{HFD_RSYNC_APPLIED,    false, true,  false, 170}, 100},
        {{HFD_RSYNC_PENDING,    false, false, false, 100}, 0},
        {{HFD_RSYNC_PENDING,    false, true,  false, 40},  40},
        {{HFD_RSYNC_TERMINATED, false, true,  true,  100}, 0},
        {{HFD_RSYNC_TERMINATED, true,  true,  false, -1},  100},
        {{HFD_RSYNC_APPLIED,    true,  true,  false, 100}, 0},
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(hfd_status_percent(&rows[i].share), rows[i].want);
}

/* ---- parameters ---- */

static void test_parameters(void **state)
{
    static const struct {
        const char *name, *value, *error; /* NULL = taken */
    } rows[] = {
        {"type", "rsync", NULL},
        {"type", "cluster", NULL},
        {"type", "all", "Invalid query type"},
        {"type", "", "Invalid query type"},
        {"type", "Rsync", "Invalid query type"},
        {"output", "summary", NULL},
        {"output", "all", NULL},
        {"output", "detail", NULL},
        {"output", "rsync", "Invalid query output"},
        {"output", "", "Invalid query output"},
        {"app", "sink", NULL},
        {"app", "UPPER_case!", "Invalid app query"},
        {"app", "", "Invalid app query"},
        {"app", "-a", "Invalid app query"},
        {"cluster", "vfw-cluster-provider+edge02", NULL},
        {"cluster", "edge02", "Invalid cluster query"},
        {"cluster", "a b", "Invalid cluster query"},
        {"cluster", "a+b+c", "Invalid cluster query"},
        {"cluster", "+edge02", "Invalid cluster query"},
        {"cluster", "a+", "Invalid cluster query"},
        {"cluster", "", "Invalid cluster query"},
        {"resource", "sink-configmap", NULL},
        {"resource", "system:node", NULL},
        {"resource", "../x", "Invalid resources query"},
        {"resource", "", "Invalid resources query"},
        {"instance", "2621114006130701074", NULL},
        {"instance", "", "Invalid query instance"},
        {"foo", "\x01", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_status_query q = {.has_instance = false};
        struct hfd_arena mem;
        struct hfd_err err;
        hfd_rc rc;

        hfd_arena_init(&mem, MEM_MAX);
        rc = hfd_status_query_take(&q, hfd_slice_of(rows[i].name), hfd_slice_of(rows[i].value),
                                   &mem, &err);
        assert_int_equal(rc, rows[i].error == NULL ? HFD_OK : HFD_BAD_REQUEST);
        if (rows[i].error != NULL)
            assert_memory_equal(err.msg, rows[i].error, strlen(rows[i].error));
        hfd_arena_fini(&mem);
    }
}

static struct hfd_status_query query_of(struct hfd_arena *mem, const char *const *pairs)
{
    struct hfd_status_query q = {.has_instance = false};

    for (; *pairs != NULL; pairs += 2)
        assert_int_equal(
            hfd_status_query_take(&q, hfd_slice_of(pairs[0]), hfd_slice_of(pairs[1]), mem, NULL),
            HFD_OK);
    return q;
}

/* The first of type, output and instance counts. */
static void test_first_parameter_counts(void **state)
{
    static const char *const pairs[] = {"output",   "summary", "output", "detail",   "type",
                                        "cluster",  "type",    "rsync",  "instance", "7",
                                        "instance", "8",       NULL};
    struct hfd_status_query q;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    q = query_of(&mem, pairs);
    assert_int_equal(q.output, HFD_STATUS_OUTPUT_SUMMARY);
    assert_int_equal(q.type, HFD_STATUS_TYPE_CLUSTER);
    assert_true(hfd_slice_is(q.instance, "7"));
    /* A wrong one behind a right one is not looked at. */
    assert_int_equal(hfd_status_query_take(&q, HFD_SLICE("type"), HFD_SLICE("x"), &mem, NULL),
                     HFD_OK);
    hfd_arena_fini(&mem);
}

/* A filter takes so many values. */
static void test_filters_are_bounded(void **state)
{
    struct hfd_status_query q = {.has_instance = false};
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    for (size_t i = 0; i <= HFD_STATUS_VALUES_MAX; i++)
        assert_int_equal(hfd_status_query_take(&q, HFD_SLICE("app"), HFD_SLICE("a"), &mem, NULL),
                         i < HFD_STATUS_VALUES_MAX ? HFD_OK : HFD_BAD_REQUEST);
    hfd_arena_fini(&mem);
}

/* Repeats widen, different parameters narrow. */
static void test_filters(void **state)
{
    static const struct hfd_status_place sink = {S("sink"), S("p"), S("edge01"), S("configmap")};
    static const struct {
        const char *pairs[7];
        bool whole, app, has;
    } rows[] = {
        {{NULL}, true, true, true},
        {{"app", "sink", NULL}, false, true, true},
        {{"app", "other", "app", "sink", NULL}, false, true, true},
        {{"app", "other", NULL}, false, false, false},
        {{"cluster", "p+edge01", NULL}, false, true, true},
        {{"cluster", "p+edge02", NULL}, false, true, false},
        {{"cluster", "q+edge01", NULL}, false, true, false},
        {{"cluster", "p+edge011", NULL}, false, true, false},
        {{"resource", "configmap", NULL}, false, true, true},
        {{"resource", "Configmap", NULL}, false, true, false},
        {{"app", "sink", "cluster", "p+edge02", NULL}, false, true, false},
        {{"app", "sink", "cluster", "p+edge02", "cluster", "p+edge01", NULL}, false, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_status_query q;
        struct hfd_arena mem;

        hfd_arena_init(&mem, MEM_MAX);
        q = query_of(&mem, rows[i].pairs);
        assert_int_equal(hfd_status_query_is_whole(&q), rows[i].whole);
        assert_int_equal(hfd_status_query_has_app(&q, sink.app), rows[i].app);
        assert_int_equal(hfd_status_query_has(&q, &sink), rows[i].has);
        hfd_arena_fini(&mem);
    }
}

/* ---- the state history ---- */

static void test_state(void **state)
{
    static const struct {
        enum hfd_status_subject subject;
        struct hfd_status_entry entries[5];
        size_t count;
        const char *text;
    } rows[] = {
        {HFD_SUBJECT_RESOURCE,
         {{HFD_DEED_CREATE, 1600000000120000, 5}},
         1,
         "Created  2020-09-13T12:26:40.12Z, Approved  2020-09-13T12:26:40.12Z, "
         "Instantiated 5 2020-09-13T12:26:40.12Z"},
        /* A repeated deletion is no action; a PUT after it does not create again. */
        {HFD_SUBJECT_RESOURCE,
         {{HFD_DEED_CREATE, 1600000000000000, 5},
          {HFD_DEED_CHANGE, 1600000001000999, 6},
          {HFD_DEED_DELETE, 1600000002001000, 6},
          {HFD_DEED_DELETE, 1600000003000000, 6},
          {HFD_DEED_CREATE, 1600000004000000, 9}},
         5,
         "Created  2020-09-13T12:26:40Z, Approved  2020-09-13T12:26:40Z, "
         "Instantiated 5 2020-09-13T12:26:40Z, Instantiated 6 2020-09-13T12:26:41Z, "
         "Terminated 6 2020-09-13T12:26:42.001Z, Approved  2020-09-13T12:26:44Z, "
         "Instantiated 9 2020-09-13T12:26:44Z"},
        {HFD_SUBJECT_CLUSTER,
         {{HFD_DEED_CREATE, 1600000000000000, 1},
          {HFD_DEED_CHANGE, 1600000001000000, 2},
          {HFD_DEED_DELETE, 1600000002000000, 2}},
         3,
         "Created  2020-09-13T12:26:40Z, Applied 1 2020-09-13T12:26:40Z, "
         "Applied 2 2020-09-13T12:26:41Z, Terminated 2 2020-09-13T12:26:42Z"},
        /* A clock that was set back does not turn the order round. */
        {HFD_SUBJECT_CLUSTER,
         {{HFD_DEED_CREATE, 1600000005000000, 1}, {HFD_DEED_CHANGE, 1600000001000000, 2}},
         2,
         "Created  2020-09-13T12:26:45Z, Applied 1 2020-09-13T12:26:45Z, "
         "Applied 2 2020-09-13T12:26:45Z"},
        /* The oldest entries of a long history are gone. */
        {HFD_SUBJECT_RESOURCE,
         {{HFD_DEED_CHANGE, 1600000000000000, 7}},
         1,
         "Instantiated 7 2020-09-13T12:26:40Z"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct hfd_status_entries entries = {rows[i].entries, rows[i].count};
        struct hfd_status_state s;
        struct hfd_arena mem;
        struct hfd_buf b;

        hfd_arena_init(&mem, MEM_MAX);
        assert_int_equal(hfd_status_state_make(rows[i].subject, &entries, &mem, &s, NULL), HFD_OK);
        hfd_buf_init(&b, 4096);
        for (size_t k = 0; k < s.count; k++) {
            char at[HFD_TIME_TEXT_MAX];

            (void)hfd_time_format(s.actions[k].at_us - s.actions[k].at_us % 1000, at);
            hfd_buf_addf(&b, "%s%s ", k > 0 ? ", " : "", s.actions[k].state);
            if (s.actions[k].context != 0)
                hfd_buf_i64(&b, s.actions[k].context);
            hfd_buf_addf(&b, " %s", at);
        }
        hfd_buf_addc(&b, '\0');
        assert_string_equal(b.p, rows[i].text);
        hfd_buf_fini(&b);
        hfd_arena_fini(&mem);
    }
}

static void test_instances_of_a_state(void **state)
{
    static const struct hfd_status_entry list[] = {
        {HFD_DEED_CREATE, 1, 5}, {HFD_DEED_DELETE, 2, 5}, {HFD_DEED_CREATE, 3, 9}};
    const struct hfd_status_entries entries = {list, 3}, none = {list, 0};
    struct hfd_status_state s;
    struct hfd_arena mem;
    bool terminating;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    assert_int_equal(hfd_status_state_make(HFD_SUBJECT_RESOURCE, &entries, &mem, &s, NULL), HFD_OK);
    assert_int_equal(hfd_status_state_latest(&s), 9);
    assert_true(hfd_status_state_has(&s, 5, &terminating) && terminating);
    assert_true(hfd_status_state_has(&s, 9, &terminating) && !terminating);
    assert_false(hfd_status_state_has(&s, 0, &terminating));
    assert_false(hfd_status_state_has(&s, 6, &terminating));
    assert_int_equal(hfd_status_state_make(HFD_SUBJECT_RESOURCE, &none, &mem, &s, NULL), HFD_OK);
    assert_int_equal(hfd_status_state_latest(&s), 0);
    hfd_arena_fini(&mem);
}

/* ---- the document ---- */

static struct hfd_status_item items[] = {
    {.place = {S("sink"), S("p"), S("edge02"), S("b")}, .kind = S("Service")},
    {.place = {S("sink"), S("p"), S("edge01"), S("b")}, .kind = S("Service")},
    {.place = {S("sink"), S("p"), S("edge01"), S("b")}, .kind = S("ConfigMap")},
    {.place = {S("firewall"), S("p"), S("edge02"), S("z\"")},
     .group = S("apps"),
     .version = S("v1"),
     .kind = S("Deployment"),
     .rsync = HFD_RSYNC_APPLIED,
     .presence = HFD_PRESENCE_PRESENT,
     .detail = S("{\"a\":1}"),
     .conditions = S("[]"),
     .waiting = S("dns"),
     .has_progress = true,
     .progress = 30},
    {.place = {S("sink"), S("o"), S("edge09"), S("a")}, .kind = S("Service"), .node = S("n")},
};

static void expect_document(const char *const *pairs, struct hfd_status_view view, const char *text)
{
    struct hfd_status_query q;
    struct hfd_arena mem;
    struct hfd_buf b;

    hfd_arena_init(&mem, MEM_MAX);
    q = query_of(&mem, pairs);
    assert_int_equal(hfd_status_view_sort(&view, &mem, NULL), HFD_OK);
    hfd_buf_init(&b, 65536);
    hfd_status_view_format(&b, &q, &view);
    hfd_buf_addc(&b, '\0');
    assert_string_equal(b.p, text);
    hfd_buf_fini(&b);
    hfd_arena_fini(&mem);
}

/* Apps, clusters and objects stand in one order, by name and then by kind. */
static void test_document(void **state)
{
    static const char *const none[] = {NULL}, *const cluster[] = {"type", "cluster", NULL},
                             *const summary[] = {"output", "summary", NULL},
                             *const detail[] = {"output", "detail", NULL};
    struct hfd_status_view view = {
        .name = S("res"),
        .id = S("res"),
        .has_phase = true,
        .counts = {{4, 1, 0, 0, 0}, {4, 0, 1}},
        .items = items,
        .item_count = sizeof(items) / sizeof(items[0]),
    };

    (void)state;
    expect_document(summary, view,
                    "{\"name\":\"res\",\"id\":\"res\",\"state\":{\"Actions\":[]},\"status\":"
                    "\"Instantiating\",\"rsync-status\":{\"Pending\":4,\"Applied\":1}}");
    view.has_phase = false;
    expect_document(none, view, "{\"name\":\"res\",\"id\":\"res\",\"state\":{\"Actions\":[]}}");
    view.has_phase = true;
    view.items = &items[1];
    view.item_count = 2;
    view.type = HFD_SLICE("k8s-cluster");
    view.project = HFD_SLICE("shop");
    expect_document(
        cluster, view,
        "{\"name\":\"res\",\"id\":\"res\",\"type\":\"k8s-cluster\",\"project\":\"shop\",\"state\":"
        "{\"Actions\":[]},\"status\":\"Instantiating\",\"cluster-status\":{\"Unknown\":4,"
        "\"Present\":1},\"apps\":[{\"name\":\"sink\",\"clusters\":[{\"cluster-provider\":\"p\","
        "\"cluster\":\"edge01\",\"resources\":[{\"GVK\":{\"Group\":\"\",\"Version\":\"\",\"Kind\":"
        "\"ConfigMap\"},\"name\":\"b\",\"cluster-status\":\"Unknown\"},{\"GVK\":{\"Group\":\"\","
        "\"Version\":\"\",\"Kind\":\"Service\"},\"name\":\"b\",\"cluster-status\":\"Unknown\"}]}]}]"
        "}");
    view.items = &items[3];
    view.item_count = 1;
    view.type = view.project = HFD_SLICE("");
    view.message = HFD_SLICE("waits");
    view.conditions = HFD_SLICE("[1]");
    view.progress = 20;
    expect_document(
        detail, view,
        "{\"name\":\"res\",\"id\":\"res\",\"state\":{\"Actions\":[]},\"status\":\"Instantiating\","
        "\"rsync-status\":{\"Pending\":4,\"Applied\":1},\"progress\":20,\"message\":\"waits\","
        "\"conditions\":[1],\"apps\":[{\"name\":\"firewall\",\"clusters\":[{\"cluster-provider\":"
        "\"p\",\"cluster\":\"edge02\",\"resources\":[{\"GVK\":{\"Group\":\"apps\",\"Version\":"
        "\"v1\",\"Kind\":\"Deployment\"},\"name\":\"z\\\"\",\"rsync-status\":\"Applied\","
        "\"detail\":{\"a\":1},\"conditions\":[],\"waiting\":\"dns\",\"progress\":30}]}]}]}");
}

/* No object is a list without apps; no count is no member. */
static void test_document_of_nothing(void **state)
{
    static const char *const none[] = {NULL};
    const struct hfd_status_view view = {
        .name = S("r"), .has_phase = true, .phase = HFD_PHASE_TERMINATED};

    (void)state;
    expect_document(none, view,
                    "{\"name\":\"r\",\"state\":{\"Actions\":[]},\"status\":\"Terminated\","
                    "\"rsync-status\":{},\"apps\":[]}");
}

/* One app in two places, and two apps. */
static void test_document_nests(void **state)
{
    static const char *const none[] = {NULL};
    struct hfd_status_view view = {.name = S("r"),
                                   .has_phase = true,
                                   .items = items,
                                   .item_count = sizeof(items) / sizeof(items[0])};
    struct hfd_status_query q;
    struct hfd_arena mem;
    struct hfd_buf b;
    json_t *doc, *apps, *places;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    q = query_of(&mem, none);
    assert_int_equal(hfd_status_view_sort(&view, &mem, NULL), HFD_OK);
    hfd_buf_init(&b, 65536);
    hfd_status_view_format(&b, &q, &view);
    assert_int_equal(hfd_json_parse(hfd_buf_slice(&b), &doc, NULL), HFD_OK);
    apps = json_object_get(doc, "apps");
    assert_int_equal(json_array_size(apps), 2);
    places = json_object_get(json_array_get(apps, 1), "clusters");
    assert_int_equal(json_array_size(places), 3);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(places, 0), "cluster-provider")), "o");
    assert_int_equal(json_array_size(json_object_get(json_array_get(places, 1), "resources")), 2);
    json_decref(doc);
    hfd_buf_fini(&b);
    hfd_arena_fini(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_read),
        cmocka_unit_test(test_counts_are_stored),
        cmocka_unit_test(test_kept_objects),
        cmocka_unit_test(test_statuses_of_a_report),
        cmocka_unit_test(test_stored_counts_equal_counted_objects),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_first_parameter_counts),
        cmocka_unit_test(test_filters_are_bounded),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_instances_of_a_state),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_document_of_nothing),
        cmocka_unit_test(test_document_nests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
