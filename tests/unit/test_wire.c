/*
 * Documents of a remote HyperFleet of every generation, hostile ones too, and what answers
 * mean.
 */
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/pass.h"
#include "store/rows_report.h"
#include "tests/lib/contains.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S HFD_SLICE

struct fixture {
    struct hfd_arena mem;
    json_t *doc;
};

static int setup(void **state)
{
    static struct fixture fx;

    fx.doc = NULL;
    hfd_arena_init(&fx.mem, 16u << 20);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    json_decref(fx->doc);
    hfd_arena_fini(&fx->mem);
    return 0;
}

static json_t *parse(struct fixture *fx, const char *text)
{
    json_decref(fx->doc);
    assert_int_equal(hfd_json_parse(hfd_slice_of(text), &fx->doc, NULL), HFD_OK);
    return fx->doc;
}

static void assert_slice(hfd_slice is, const char *wanted)
{
    if (!hfd_slice_is(is, wanted))
        fail_msg("got  %.*s\nwant %s", HFD_SLICE_FMT(is), wanted);
}

/* Ids that may stand in a path. */
static void ids(void **state)
{
    static const char long_id[] =
        "2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    (void)state;
    assert_int_equal(sizeof(long_id) - 1, 64);
    assert_true(hfd_wire_id_ok(S("2HnEUBgxzxQBpY2Xa6FrkmX0mZa")));
    assert_true(hfd_wire_id_ok(S("019a0000-0000-7000-8000-000000000001")));
    assert_true(hfd_wire_id_ok(hfd_slice_of(long_id)));
    assert_false(hfd_wire_id_ok(
        HFD_SLICE("2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
    assert_false(hfd_wire_id_ok(S("")));
    assert_false(hfd_wire_id_ok(S("..")));
    assert_false(hfd_wire_id_ok(S("a/b")));
    assert_false(hfd_wire_id_ok(S("new.1")));
    assert_false(hfd_backend_id_is_given(S("new.1")));
    assert_true(hfd_backend_id_is_given(S("newer")));
}

/* The first generation's cluster, without optional fields and with unknown ones. */
static void cluster_of_the_first(void **state)
{
    struct fixture *fx = *state;
    struct hfd_wire_resource r;
    struct hfd_err err;

    assert_int_equal(
        hfd_wire_resource_read(
            parse(
                fx,
                "{\"kind\":\"Cluster\",\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":3,"
                "\"spec\":{\"b\":1,"
                "\"a\":{}},"
                "\"labels\":{\"humanitec_owner\":\"me\",\"humanitec_guresid\":\"g-1\",\"x\":\"y\"},"
                "\"created_by\":\"anybody at all\","
                "\"created_time\":\"2025-01-01T00:00:00.123456789+02:00\",\"updated_time\":"
                "\"nonsense\","
                "\"x-new\":[{}],"
                "\"status\":{\"phase\":\"?\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
                "\"True\","
                "\"observed_generation\":3,\"reason\":"
                "\"ResourceReady\"},{\"type\":\"Weird\",\"status\":\"Perhaps\"},{\"type\":\"\","
                "\"status\":\"True\"},7]}}"),
            HFD_KIND_CLUSTER, &fx->mem, &r, &err),
        HFD_OK);
    assert_slice(r.id, "2abc");
    assert_int_equal(r.generation, 3);
    assert_slice(r.spec, "{\"a\":{},\"b\":1}");
    assert_slice(r.labels, "{\"humanitec_guresid\":\"g-1\",\"x\":\"y\"}");
    assert_slice(r.guresid, "g-1");
    assert_slice(r.made_by, "me");
    assert_slice(r.created_by, "anybody at all");
    assert_int_equal(r.created_us, INT64_C(1735682400123456));
    assert_int_equal(r.updated_us, 0);
    assert_true(r.ready);
    assert_false(r.later_names);
    assert_false(r.deleting);
    assert_contains(r.conditions, "\"type\":\"Ready\"");
    assert_lacks(r.conditions, "Weird");
}

/*
 * The later generation's names and reasons are kept as the first one's; of both, each is kept once.
 */
static void later_names_are_restored(void **state)
{
    static const char *const docs[] = {
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":2,\"status\":{\"conditions\":[{"
        "\"type\":\"Reconciled\","
        "\"status\":\"False\",\"reason\":\"ReconciledMissingAdapters\","
        "\"observed_generation\":2},{\"type\":\"LastKnownReconciled\",\"status\":\"True\","
        "\"reason\":\"AllAdaptersReconciled\"}]}}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":2,\"status\":{\"conditions\":[{"
        "\"type\":\"Ready\",\"status\":\"False\","
        "\"reason\":\"AwaitingAdapters\","
        "\"observed_generation\":2},{\"type\":\"Available\",\"status\":\"True\","
        "\"reason\":\"ResourceAvailable\"},{\"type\":\"Reconciled\",\"status\":\"True\"},"
        "{\"type\":\"LastKnownReconciled\",\"status\":\"False\"}]}}",
    };

    for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
        struct fixture *fx = *state;
        struct hfd_wire_resource r;
        struct hfd_conditions cs;

        assert_int_equal(
            hfd_wire_resource_read(parse(fx, docs[i]), HFD_KIND_CLUSTER, &fx->mem, &r, NULL),
            HFD_OK);
        assert_true(r.later_names);
        assert_false(r.ready);
        assert_int_equal(hfd_conditions_parse(r.conditions, &fx->mem, &cs, NULL), HFD_OK);
        assert_int_equal(cs.count, 2);
        assert_slice(cs.items[0].type, "Ready");
        assert_slice(cs.items[0].reason, "AwaitingAdapters");
        assert_slice(cs.items[1].type, "Available");
        assert_slice(cs.items[1].reason, "ResourceAvailable");
        assert_int_equal(cs.items[1].status, HFD_STATUS_TRUE);
    }
}

/*
 * Ready at an earlier generation is not ready; a time of deletion that cannot be read is one; a
 * nodepool knows its cluster.
 */
static void corners(void **state)
{
    struct fixture *fx = *state;
    struct hfd_wire_resource r;

    assert_int_equal(
        hfd_wire_resource_read(
            parse(fx,
                  "{\"id\":\"2abc\",\"name\":\"np-a\",\"generation\":2,\"deleted_time\":\"soon\","
                  "\"owner_references\":{\"id\":\"2own\"},"
                  "\"labels\":null,\"spec\":null,\"status\":{\"conditions\":[{\"type\":\"Ready\","
                  "\"status\":\"True\","
                  "\"observed_generation\":1}]}}"),
            HFD_KIND_NODEPOOL, &fx->mem, &r, NULL),
        HFD_OK);
    assert_false(r.ready);
    assert_true(r.deleting && r.deleted_us != 0);
    assert_slice(r.owner_id, "2own");
    assert_slice(r.spec, "{}");
    assert_slice(r.labels, "{}");
}

/* A document that is no resource is refused, and never quoted. */
static void no_resources(void **state)
{
    static const char *const docs[] = {
        "[]",
        "\"text\"",
        "{}",
        "{\"id\":\"../x\",\"name\":\"c-one\",\"generation\":1}",
        "{\"id\":7,\"name\":\"c-one\",\"generation\":1}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":0}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":-1}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1.5}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1e300}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":\"1\"}",
        "{\"id\":\"2abc\",\"name\":\"C One\",\"generation\":1}",
        "{\"id\":\"2abc\",\"generation\":1}",
        "{\"kind\":\"NodePool\",\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1,\"spec\":[]}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1,\"labels\":\"x\"}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1,\"status\":3}",
        "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1,\"owner_references\":[]}",
    };
    struct fixture *fx = *state;
    struct hfd_wire_resource r;
    struct hfd_err err;

    for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
        const hfd_rc rc =
            hfd_wire_resource_read(parse(fx, docs[i]), HFD_KIND_CLUSTER, &fx->mem, &r, &err);

        if (rc != HFD_MALFORMED)
            fail_msg("%s: %s", docs[i], hfd_rc_name(rc));
        assert_true(err.msg[0] != '\0');
    }
}

/* A page needs its items alone; what it says of sizes is not believed. */
static void pages(void **state)
{
    struct fixture *fx = *state;
    struct hfd_wire_page page;

    assert_int_equal(
        hfd_wire_page_read(parse(fx, "{\"items\":[1,2],\"total\":9,\"size\":-4}"), &page, NULL),
        HFD_OK);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.total, 9);
    assert_int_equal(hfd_wire_page_read(parse(fx, "{\"items\":null,\"total\":-9}"), &page, NULL),
                     HFD_OK);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.total, -1);
    assert_int_equal(hfd_wire_page_read(parse(fx, "{\"items\":[],\"total\":1e18}"), &page, NULL),
                     HFD_OK);
    assert_int_equal(page.total, -1);
    assert_int_equal(hfd_wire_page_read(parse(fx, "{\"items\":{}}"), &page, NULL), HFD_MALFORMED);
    assert_int_equal(hfd_wire_page_read(parse(fx, "{}"), &page, NULL), HFD_MALFORMED);
    assert_int_equal(hfd_wire_page_read(parse(fx, "[]"), &page, NULL), HFD_MALFORMED);
}

/*
 * A report's secrets are taken out of its data; what the remote has taken out itself is no secret.
 */
static void reports(void **state)
{
    struct fixture *fx = *state;
    struct hfd_report_row row;
    hfd_slice secrets;

    assert_int_equal(
        hfd_wire_report_read(
            parse(fx, "{\"adapter\":\"dns\",\"observed_generation\":4,"
                      "\"last_report_time\":\"2025-01-01T00:00:00Z\",\"conditions\":[{\"type\":"
                      "\"Available\",\"status\":\"Unknown\"}],\"data\":{\"a\":1,"
                      "\"secrets\":{\"kubeconfig\":\"k\",\"old\":\"[redacted]\"}}}"),
            &fx->mem, &row, &secrets, NULL),
        HFD_OK);
    assert_slice(row.adapter, "dns");
    assert_int_equal(row.observed_generation, 4);
    assert_int_equal(row.observed_us, INT64_C(1735689600) * HFD_US_PER_S);
    assert_slice(row.data, "{\"a\":1,\"secrets\":{\"kubeconfig\":\"[redacted]\"}}");
    assert_slice(secrets, "{\"kubeconfig\":\"k\"}");
    assert_int_equal(
        hfd_wire_report_read(parse(fx, "{\"adapter\":\"dns\"}"), &fx->mem, &row, &secrets, NULL),
        HFD_OK);
    assert_slice(row.data, "{}");
    assert_int_equal(secrets.len, 0);
    assert_int_equal(
        hfd_wire_report_read(parse(fx, "{\"adapter\":\"\"}"), &fx->mem, &row, &secrets, NULL),
        HFD_MALFORMED);
    assert_int_equal(hfd_wire_report_read(parse(fx, "{\"adapter\":\"dns\",\"data\":[]}"), &fx->mem,
                                          &row, &secrets, NULL),
                     HFD_MALFORMED);
    assert_int_equal(hfd_wire_report_read(parse(fx, "7"), &fx->mem, &row, &secrets, NULL),
                     HFD_MALFORMED);
}

/*
 * A problem's words come without control characters, cut, with its first field errors; both words
 * of a wrong path are known.
 */
static void problems(void **state)
{
    struct fixture *fx = *state;
    struct hfd_wire_problem p;
    char longer[800];

    assert_int_equal(hfd_wire_problem_read(S("{\"code\":\"HYPERFLEET-VAL-000\",\"detail\":"
                                             "\"no\\ngood\",\"errors\":[{\"field\":\"spec.x\","
                                             "\"message\":\"too big\"},{\"field\":\"y\"}]}"),
                                           &fx->mem, &p, NULL),
                     HFD_OK);
    assert_slice(p.words, "no good; spec.x: too big; y");
    assert_false(p.no_route);
    assert_int_equal(hfd_wire_problem_read(S("{\"code\":\"HYPERFLEET-NTF-000\",\"title\":\"t\"}"),
                                           &fx->mem, &p, NULL),
                     HFD_OK);
    assert_true(p.no_route);
    assert_slice(p.words, "t");
    assert_int_equal(hfd_wire_problem_read(S("{\"code\":\"HYPERFLEET-NTF-001\",\"detail\":\"The "
                                             "requested resource '/x' doesn't exist\"}"),
                                           &fx->mem, &p, NULL),
                     HFD_OK);
    assert_true(p.no_route);
    assert_int_equal(hfd_wire_problem_read(S("<html>"), &fx->mem, &p, NULL), HFD_OK);
    assert_int_equal(p.words.len, 0);
    assert_int_equal(hfd_wire_problem_read(S("[]"), &fx->mem, &p, NULL), HFD_OK);
    assert_int_equal(p.words.len, 0);
    (void)snprintf(longer, sizeof(longer), "{\"detail\":\"%0*d\"}", 700, 0);
    assert_int_equal(hfd_wire_problem_read(hfd_slice_of(longer), &fx->mem, &p, NULL), HFD_OK);
    assert_true(p.words.len <= 240);
    assert_int_equal(
        hfd_wire_problem_read(S("{\"detail\":\"a\\u001b\\u202eb\"}"), &fx->mem, &p, NULL), HFD_OK);
    assert_slice(p.words, "a  b");
}

#define GET HFD_REMOTE_GET
#define POST HFD_REMOTE_POST
#define PATCH HFD_REMOTE_PATCH
#define DEL HFD_REMOTE_DELETE
#define P "{\"code\":\"HYPERFLEET-VAL-000\"}"

/* clang-format off */
static const struct {
    enum hfd_remote_method method;
    int status;        /* 0 = no answer */
    const char *body;  /* JSON; NULL = another type */
    enum hfd_remote_verdict verdict;
    enum hfd_remote_health health;
} answers[] = {
    {GET,   0,   NULL,                            HFD_ON_LATER,   HFD_REMOTE_ILL},
    {GET,   200, "{}",                            HFD_ON_WELL,    HFD_REMOTE_WELL},
    {GET,   200, " {} \n",                        HFD_ON_WELL,    HFD_REMOTE_WELL},
    {GET,   200, NULL,                            HFD_ON_FOREIGN,   HFD_REMOTE_ILL},
    {GET,   200, "{\"id\":\"x\"",                 HFD_ON_FOREIGN,   HFD_REMOTE_ILL},
    {POST,  201, "{}",                            HFD_ON_WELL,    HFD_REMOTE_WELL},
    {DEL,   202, "{}",                            HFD_ON_WELL,    HFD_REMOTE_WELL},
    {DEL,   204, "",                              HFD_ON_WELL,    HFD_REMOTE_WELL},
    {GET,   204, "",                              HFD_ON_FOREIGN,   HFD_REMOTE_WELL},
    {GET,   301, "{}",                            HFD_ON_WRONG,   HFD_REMOTE_WRONG},
    {POST,  307, "{}",                            HFD_ON_WRONG,   HFD_REMOTE_WRONG},
    {POST,  400, P,                               HFD_ON_INVALID, HFD_REMOTE_WELL},
    {PATCH, 413, P,                            HFD_ON_INVALID, HFD_REMOTE_WELL},
    {POST,  422, P,                               HFD_ON_INVALID, HFD_REMOTE_WELL},
    {GET,   400, P,                               HFD_ON_LATER,   HFD_REMOTE_WELL},
    {GET,   401, P,                               HFD_ON_REFUSED, HFD_REMOTE_REFUSES},
    {DEL,   403, P,                               HFD_ON_REFUSED, HFD_REMOTE_REFUSES},
    {GET,   404, "{\"code\":\"HYPERFLEET-NTF-001\"}", HFD_ON_MISSING, HFD_REMOTE_WELL},
    {GET,   404, "{\"code\":\"HYPERFLEET-NTF-000\"}", HFD_ON_WRONG, HFD_REMOTE_WRONG},
    {GET,   404, "{\"message\":\"no Route\"}",    HFD_ON_FOREIGN, HFD_REMOTE_WRONG},
    {GET,   404, NULL,                            HFD_ON_FOREIGN,  HFD_REMOTE_WRONG},
    {PATCH, 405, "",                              HFD_ON_UNABLE,  HFD_REMOTE_WELL},
    {DEL,   405, "",                              HFD_ON_UNABLE,  HFD_REMOTE_WELL},
    {DEL,   501, "{\"code\":\"HYPERFLEET-INT-003\"}", HFD_ON_UNABLE, HFD_REMOTE_WELL},
    {GET,   405, NULL,                            HFD_ON_FOREIGN,   HFD_REMOTE_WELL},
    {POST,  408, NULL,                            HFD_ON_FOREIGN,   HFD_REMOTE_ILL},
    {POST,  409, "{\"code\":\"HYPERFLEET-CNF-001\"}", HFD_ON_TAKEN, HFD_REMOTE_WELL},
    {POST,  409, "{\"code\":\"HYPERFLEET-CNF-003\"}", HFD_ON_LEAVING, HFD_REMOTE_WELL},
    {PATCH, 409, "{\"code\":\"HYPERFLEET-CNF-003\"}", HFD_ON_LEAVING, HFD_REMOTE_WELL},
    {DEL,   409, P,                               HFD_ON_LATER, HFD_REMOTE_WELL},
    {GET,   410, P,                               HFD_ON_MISSING, HFD_REMOTE_WELL},
    {POST,  429, P,                               HFD_ON_LATER,   HFD_REMOTE_ILL},
    {POST,  500, P,                               HFD_ON_LATER,   HFD_REMOTE_ILL},
    {DEL,   503, NULL,                            HFD_ON_FOREIGN,   HFD_REMOTE_ILL},
    {GET,   101, NULL,                            HFD_ON_FOREIGN,   HFD_REMOTE_ILL},
};
/* clang-format on */

/* The table of answers, row by row. */
static void verdicts(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct hfd_remote_answer a = {
            .arrived = answers[i].status != 0,
            .status = answers[i].status,
            .is_json = answers[i].body != NULL,
            .body = answers[i].body != NULL ? hfd_slice_of(answers[i].body) : S("<html>")};
        struct hfd_wire_problem p = {.no_route = false};

        if (a.is_json)
            assert_int_equal(hfd_wire_problem_read(a.body, &fx->mem, &p, NULL), HFD_OK);
        if (hfd_remote_verdict_of(answers[i].method, &a, &p) != answers[i].verdict ||
            hfd_remote_health_of(&a) != answers[i].health)
            fail_msg("row %zu: verdict %d, health %d", i,
                     (int)hfd_remote_verdict_of(answers[i].method, &a, &p),
                     (int)hfd_remote_health_of(&a));
    }
}

/*
 * Without a problem of the same status an answer is no word of HyperFleet, for any call. Only a
 * DELETE may have a good answer without a body.
 */
static void foreign_answers(void **state)
{
    static const char *const bodies[] = {
        "",
        "<html>",
        "{}",
        "[]",
        "\"x\"",
        "{\"message\":\"no Route matched\"}",
        "{\"code\":\"HYPERFLEET-VAL-000\"",
        "{\"code\":\"VAL-000\"}",
        "{\"code\":7}",
        "{\"type\":\"about:blank\",\"title\":\"Payload Too Large\"}",
        "{\"code\":\"HYPERFLEET-VAL-000\",\"status\":299}",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"m\"}",
        P, /* of another type */
    };
    static const enum hfd_remote_method methods[] = {GET, POST, PATCH, DEL};
    const size_t count = sizeof(bodies) / sizeof(bodies[0]);
    struct fixture *fx = *state;

    for (int status = 400; status <= 599; status++)
        for (size_t b = 0; b < count; b++)
            for (size_t m = 0; m < 4; m++) {
                const struct hfd_remote_answer a = {.arrived = true,
                                                    .status = status,
                                                    .is_json = b > 1 && b < count - 1,
                                                    .body = hfd_slice_of(bodies[b])};
                const bool old = status == 405 && b == 0 && m > 1;
                struct hfd_wire_problem p = {.no_route = false};

                if (a.is_json)
                    assert_int_equal(hfd_wire_problem_read(a.body, &fx->mem, &p, NULL), HFD_OK);
                if (hfd_remote_verdict_of(methods[m], &a, &p) !=
                    (old ? HFD_ON_UNABLE : HFD_ON_FOREIGN))
                    fail_msg("%d, %s, method %zu: %d", status, bodies[b], m,
                             (int)hfd_remote_verdict_of(methods[m], &a, &p));
            }
}

/* The verdict on a problem of HyperFleet. */
static enum hfd_remote_verdict wanted(enum hfd_remote_method method, int status)
{
    static const struct {
        int status;
        enum hfd_remote_verdict of[4]; /* GET, POST, PATCH, DELETE */
    } rows[] = {
        {401, {HFD_ON_REFUSED, HFD_ON_REFUSED, HFD_ON_REFUSED, HFD_ON_REFUSED}},
        {403, {HFD_ON_REFUSED, HFD_ON_REFUSED, HFD_ON_REFUSED, HFD_ON_REFUSED}},
        {404, {HFD_ON_MISSING, HFD_ON_MISSING, HFD_ON_MISSING, HFD_ON_MISSING}},
        {410, {HFD_ON_MISSING, HFD_ON_MISSING, HFD_ON_MISSING, HFD_ON_MISSING}},
        {405, {HFD_ON_LATER, HFD_ON_INVALID, HFD_ON_UNABLE, HFD_ON_UNABLE}},
        {501, {HFD_ON_LATER, HFD_ON_LATER, HFD_ON_UNABLE, HFD_ON_UNABLE}},
        {409, {HFD_ON_LATER, HFD_ON_TAKEN, HFD_ON_LATER, HFD_ON_LATER}},
        {408, {HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER}},
        {425, {HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER}},
        {429, {HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER, HFD_ON_LATER}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == status)
            return rows[i].of[method];
    return status < 500 && (method == POST || method == PATCH) ? HFD_ON_INVALID : HFD_ON_LATER;
}

/* A problem of HyperFleet decides by the answer's status; what is busy is tried again. */
static void words_of_hyperfleet(void **state)
{
    static const enum hfd_remote_method methods[] = {GET, POST, PATCH, DEL};
    struct fixture *fx = *state;

    for (int status = 400; status <= 599; status++)
        for (size_t m = 0; m < 4; m++) {
            struct hfd_remote_answer a = {.arrived = true, .status = status, .is_json = true};
            struct hfd_wire_problem p;
            char body[80];

            (void)snprintf(body, sizeof(body), "{\"code\":\"HYPERFLEET-VAL-000\",\"status\":%d}",
                           status);
            a.body = hfd_slice_of(body);
            assert_int_equal(hfd_wire_problem_read(a.body, &fx->mem, &p, NULL), HFD_OK);
            if (hfd_remote_verdict_of(methods[m], &a, &p) != wanted(methods[m], status))
                fail_msg("%d, method %zu: %d", status, m,
                         (int)hfd_remote_verdict_of(methods[m], &a, &p));
        }
}

/* Reading tells of short memory, and of nothing else. */
static void short_memory(void **state)
{
    struct fixture *fx = *state;
    json_t *doc =
        parse(fx, "{\"id\":\"2abc\",\"name\":\"c-one\",\"generation\":1,\"spec\":{\"a\":1},"
                  "\"labels\":{\"humanitec_owner\":\"me\"},\"status\":{\"conditions\":"
                  "[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    bool done = false;

    for (size_t max = 0; !done; max += 16) {
        struct hfd_wire_resource r;
        struct hfd_arena mem;
        hfd_rc rc;

        hfd_arena_init(&mem, max);
        rc = hfd_wire_resource_read(doc, HFD_KIND_CLUSTER, &mem, &r, NULL);
        assert_true(rc == HFD_OK || rc == HFD_NOMEM);
        done = rc == HFD_OK;
        hfd_arena_fini(&mem);
        assert_true(max < 65536);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ids),
        TEST(cluster_of_the_first),
        TEST(later_names_are_restored),
        TEST(corners),
        TEST(no_resources),
        TEST(pages),
        TEST(reports),
        TEST(problems),
        TEST(verdicts),
        TEST(foreign_answers),
        TEST(words_of_hyperfleet),
        TEST(short_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
