/*
 * Each allocation fails in turn, once and from then on: ours in driver/, store/ and schemas/,
 * jansson's and SQLite's. First they fail while the domain starts, works and stops; the rules are
 * in domain.h. Then they fail in the code beside the domain's work, one scenario after the other.
 * The answer is HFD_NOMEM or right, nothing is left half-made, and the same call then succeeds. The
 * address sanitizer finds leaks.
 *
 *   test_memory                        a share of the allocations, another one with each --seed
 *   test_memory --stride N             one allocation in N, on average; 1 = every one
 *   test_memory --again NAME:WHICH:N   the N-th allocation in NAME, once or ever, as printed
 */
#include "driver/core/cookie.h"
#include "schemas/validate.h"
#include "tests/fault/domain.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/keyring.h"
#include "driver/fleet/search.h"
#include "handlers/settings/settings.h"
#include "handlers/settings/settings_show.h"
#include "schemas/documents.h"
#include "store/rows_fleet.h"
#include "store/search.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/fault/memory.h"
#include "tests/fault/wrap_memory.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/scene.h"

#define STRIDE 8
#define DOMAIN_WIDER 24 /* so many times the stride there: a run has some 40,000 allocations */
#define BATCHES 16
#define TOGETHER                                                                                   \
    1 /* of several calls to a commit, the one that memory is short for would be undone alone */
#define CHECKPOINT_FRAMES 20

static struct fault_options options;
static char folder[TMPDIR_MAX];

static void arm_memory(const struct fault *f, unsigned nth, bool ever)
{
    (void)f;
    faultmem_arm(nth, ever);
}

/* The whole domain, from start to stop. */
static void domain_runs_out_of_memory(void **state)
{
    const struct fault memory = {"domain", arm_memory, faultmem_disarm, 0, 0, 2000, true};
    struct fault_options wider = options;

    (void)state;
    if (wider.stride != 1)
        wider.stride *= DOMAIN_WIDER;
    fault_domain_begin(BATCHES, TOGETHER);
    fault_domain_walk(&memory, &wider);
    fault_domain_end();
}

/* ---- scenarios ---- */

static const char *in_folder(const char *name)
{
    static char path[TMPDIR_MAX + 32];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

static hfd_rc settings(struct world *w)
{
    static char flag_value[TMPDIR_MAX + 32];
    const char *const argv[] = {"--config",    flag_value,  "--listen",
                                "127.0.0.1:0", "--demo=3s", NULL};
    const char *const env[] = {"PATH=/bin", "HFD_LOG_LEVEL=warn",
                               "HFD_ADAPTERS_REQUIRED_CLUSTER=[a, b, c]", NULL};
    struct hfd_settings *s;
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    (void)snprintf(flag_value, sizeof(flag_value), "%s", in_folder("config.yaml"));
    rc = hfd_settings_load(5, argv, env, &s, &w->err);
    if (rc != HFD_OK)
        return rc;
    hfd_buf_init(&b, (size_t)1 << 20);
    hfd_settings_show(s, &(struct hfd_settings_form){.origins = true}, &b);
    hfd_settings_help(&b, true);
    rc = hfd_buf_finish(&b, &text, &w->err);
    hfd_buf_fini(&b);
    hfd_settings_free(s);
    return rc;
}

static void settings_prepare(struct world *w)
{
    (void)w;
    write_file("config.yaml",
               "data: /tmp\nfleet:\n  conditions: both\n"
               "driver:\n  terminal_reasons: [Broken, Worse]\n  deadline:\n    create: 90s\n"
               "  outputs:\n    values:\n      endpoint: dns:/data/endpoint\n"
               "    secrets:\n      token: dns:/secrets/token\n");
}

static hfd_rc key_ring(struct world *w)
{
    struct hfd_keyring *ring = NULL;
    struct hfd_arena mem;
    hfd_slice sealed, plain;
    char id[9];
    hfd_rc rc = hfd_keyring_create(in_folder("keys"), &w->rng.rng, &w->err);

    if (rc == HFD_CONFLICT) /* made by an earlier run, which failed behind it */
        rc = HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_keyring_change(in_folder("keys"), HFD_KEY_ROTATE, &w->rng.rng, id, &w->err);
    if (rc == HFD_OK)
        rc = hfd_keyring_load(in_folder("keys"), &ring, &w->err);
    if (rc != HFD_OK)
        return rc;
    hfd_arena_init(&mem, (size_t)1 << 16);
    sealed = hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")},
                              &w->rng.rng, HFD_SLICE("a secret"), &mem);
    rc = sealed.p != NULL
             ? hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_AT_REST, HFD_SLICE("aad")}, sealed,
                                &mem, &plain, &w->err)
             : HFD_NOMEM;
    if (rc == HFD_OK)
        assert_true(hfd_slice_is(plain, "a secret"));
    hfd_arena_fini(&mem);
    hfd_keyring_free(ring);
    return rc;
}

static void key_ring_prepare(struct world *w)
{
    (void)w;
    (void)unlink(in_folder("keys"));
}

static hfd_rc openapi(struct world *w)
{
    json_t *doc;
    struct hfd_schema *schema = NULL;
    hfd_rc rc = hfd_json_parse(hfd_openapi_text(), &doc, &w->err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_schema_compile(doc, HFD_SLICE("/components/schemas/ClusterCreateRequest"), &schema,
                            &w->err);
    hfd_schema_free(schema);
    json_decref(doc);
    return rc;
}

static void spec_prepare(struct world *w)
{
    (void)w;
    write_file(
        "spec.yaml",
        "openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {}\ncomponents:\n  schemas:\n"
        "    ClusterSpec:\n      type: object\n      required: [region]\n      "
        "additionalProperties: false\n"
        "      properties:\n        region: {type: string, pattern: '^[a-z]+$'}\n"
        "        size: {type: integer, minimum: 3}\n        any: {oneOf: [{type: string}, {type: "
        "boolean}]}\n"
        "        zones: {type: array, uniqueItems: true, items: {type: object}}\n"
        "        share: {type: number, multipleOf: 0.5, minimum: 0, exclusiveMinimum: true}\n"
        "        at: {type: string, format: date-time}\n"
        "    NodePoolSpec:\n      type: object\n");
}

/* A document that the operator's schema refuses in several places, and one that it takes. */
static hfd_rc spec_validate(struct world *w, const struct hfd_spec_schemas *s)
{
    static const char *const docs[] = {
        "{\"region\":\"EU\",\"size\":\"1\",\"more\":[1,2],\"any\":null,\"zones\":[{\"a\":1},{\"a\":"
        "1.0}],\"share\":0.3,\"at\":\"now\"}",
        "{\"region\":\"eu\",\"size\":7,\"any\":true,\"zones\":[{\"a\":1},{\"a\":2}],\"share\":1.5,"
        "\"at\":\"2026-11-21T08:00:00Z\"}",
    };
    struct hfd_schema_use use = {.root = "spec", .lenient_numbers = true};
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < 2; i++) {
        struct hfd_violations found;
        struct hfd_arena mem;
        json_t *doc;

        rc = hfd_json_parse(hfd_slice_of(docs[i]), &doc, &w->err);
        if (rc != HFD_OK)
            return rc;
        hfd_arena_init(&mem, (size_t)1 << 20);
        use.schema = s->cluster;
        rc = hfd_schema_validate(&use, doc, &mem, &found, &w->err);
        if (rc == HFD_INVALID && i == 0 && found.count >= 6)
            rc = HFD_OK;
        hfd_arena_fini(&mem);
        json_decref(doc);
    }
    return rc;
}

static hfd_rc spec(struct world *w)
{
    struct hfd_spec_schemas s;
    hfd_rc rc = hfd_spec_schemas_load(in_folder("spec.yaml"), &s, &w->err);

    if (rc == HFD_OK)
        rc = spec_validate(w, &s);
    hfd_spec_schemas_free(&s);
    return rc;
}

static hfd_rc metrics(struct world *w)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, (size_t)1 << 20);
    hfd_metrics_render(&b);
    rc = hfd_buf_finish(&b, &text, &w->err);
    hfd_buf_fini(&b);
    return rc;
}

/* ---- scenarios of resources ---- */

#define CLUSTER(values)                                                                            \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":" values "}}}"
#define BODY                                                                                       \
    CLUSTER("{\"name\":\"one\",\"spec\":{\"v\":1,\"deep\":{\"list\":[1,\"a\",null]}},\"labels\":{" \
            "\"team\":\"blue\"}},"                                                                 \
            "\"nodepools\":[{\"name\":\"np-1\",\"spec\":{}},{\"name\":\"np-2\",\"spec\":{}}]},"    \
            "\"secrets\":{\"account\":{\"token\":\"t\"}")
#define BODY_LESS                                                                                  \
    CLUSTER("{\"name\":\"one\",\"spec\":{\"v\":2}},\"nodepools\":[{\"name\":\"np-2\",\"spec\":{"   \
            "\"n\":1}}]")
#define BODY_POOL                                                                                  \
    "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"res\","       \
    "\"nodepool\":{\"name\":\"np-9\",\"spec\":{}}}}}"

static char cookie[HFD_COOKIE_MAX + 1];

static void put(struct world *w, const char *guresid, const char *body)
{
    struct hfd_answer_doc doc;

    assert_int_equal(world_put(w, guresid, body, NULL, &doc), HFD_OK);
    (void)snprintf(cookie, sizeof(cookie), "%.*s", HFD_SLICE_FMT(doc.cookie));
}

static void created(struct world *w)
{
    put(w, "res", BODY);
}

static void ready(struct world *w)
{
    created(w);
    world_succeed_all(w, "res");
}

static void lost(struct world *w)
{
    ready(w);
    scene_forget(w, "res");
}

static void deleting(struct world *w)
{
    struct hfd_answer_doc doc;

    ready(w);
    assert_int_equal(world_delete(w, "res", NULL, &doc), HFD_OK);
}

static void failed(struct world *w)
{
    created(w);
    (void)world_report(w, scene_cluster(w, "one"),
                       &(struct world_report){.adapter = "dns",
                                              .available = HFD_STATUS_FALSE,
                                              .reason = "InvalidConfiguration"});
    assert_int_equal(world_row(w, "res").state, HFD_STATE_FAILED);
}

static void late(struct world *w)
{
    created(w);
    test_clock_advance(&w->clock, 7200 * HFD_US_PER_S);
}

static hfd_rc answered(struct world *w, hfd_rc rc, const struct hfd_answer_doc *doc,
                       enum hfd_answer wanted)
{
    if (rc == HFD_OK && doc->answer != wanted) {
        print_error("the answer is %d, not %d\n", (int)doc->answer, (int)wanted);
        return HFD_INVALID;
    }
    (void)w;
    return rc;
}

static hfd_rc put_new(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_put(w, "res", BODY, NULL, &doc), &doc, HFD_ANSWER_HINT);
}

static hfd_rc put_change(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_put(w, "res", BODY_LESS, NULL, &doc), &doc, HFD_ANSWER_HINT);
}

static hfd_rc put_conflict(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_put(w, "res", BODY_LESS, cookie, &doc), &doc, HFD_ANSWER_BUSY);
}

static hfd_rc put_taken_name(struct world *w)
{
    struct hfd_answer_doc doc;
    hfd_rc rc = world_put(w, "other", BODY, NULL, &doc);

    return rc == HFD_INVALID ? HFD_OK : rc == HFD_OK ? HFD_INVALID : rc;
}

static hfd_rc put_adopts(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_put(w, "res", BODY, cookie, &doc), &doc, HFD_ANSWER_OUTPUT);
}

static hfd_rc put_pool(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_put(w, "pool", BODY_POOL, NULL, &doc), &doc, HFD_ANSWER_HINT);
}

static hfd_rc delete_adopts(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_delete(w, "res", cookie, &doc), &doc, HFD_ANSWER_HINT);
}

static hfd_rc get_ready(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_get(w, "res", cookie, &doc), &doc, HFD_ANSWER_OUTPUT);
}

static hfd_rc get_failed(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_get(w, "res", NULL, &doc), &doc, HFD_ANSWER_FAILED);
}

static hfd_rc get_deleting(struct world *w)
{
    struct hfd_answer_doc doc;

    return answered(w, world_get(w, "res", NULL, &doc), &doc, HFD_ANSWER_HINT);
}

struct list {
    struct hfd_arena mem;
    struct hfd_fleet_list found;
};

static hfd_rc list_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct list *l = arg;
    struct hfd_fleet_query query = {.kind = HFD_KIND_NODEPOOL, .limit = 10};
    const struct hfd_filter *filter;
    struct hfd_orders orders = {NULL, 0};
    hfd_rc rc = hfd_search_parse(
        HFD_KIND_NODEPOOL,
        HFD_SLICE("(name LIKE 'np-%' AND status.conditions.Ready = 'True') OR name IN ('x', 'y')"
                  " OR spec.v >= 3"),
        &l->mem, &filter, err);

    if (rc == HFD_OK)
        rc = hfd_search_order(&(struct hfd_order_text){HFD_KIND_NODEPOOL,
                                                       HFD_SLICE("name desc, created_time"),
                                                       HFD_SLICE("asc"), false},
                              &l->mem, &orders, err);
    if (rc != HFD_OK)
        return rc;
    query.filter = filter;
    query.order = orders.items;
    query.order_count = orders.count;
    return hfd_fleet_row_search(tx, &query, &l->mem, &l->found, err);
}

static hfd_rc list_pools(struct world *w)
{
    struct list l = {.found = {.rows = NULL}};
    hfd_rc rc;

    hfd_arena_init(&l.mem, (size_t)1 << 20);
    rc = hfd_store_read(w->reader, list_fn, &l, &w->err);
    if (rc == HFD_OK && (l.found.count != 2 || l.found.total != 2))
        rc = HFD_INVALID;
    hfd_arena_fini(&l.mem);
    return rc;
}

/* clang-format off */
static const struct memory_scenario scenarios[] = {
    {"settings",       settings_prepare, settings,       false, false, 10, 1},
    {"key-ring",       key_ring_prepare, key_ring,       false, false, 5, 1},
    {"openapi",        NULL,             openapi,        false, false, 500, 60},
    {"spec-schemas",   spec_prepare,     spec,           false, false, 50, 2},
    {"metrics",        NULL,             metrics,        false, false, 1, 1},
    {"put-new",        NULL,             put_new,        true, false, 100, 6},
    {"put-change",     ready,            put_change,     true, false, 100, 6},
    {"put-retry",      failed,           put_change,     true, false, 100, 6},
    {"put-conflict",   created,          put_conflict,   true, false, 20, 6},
    {"put-taken-name", created,          put_taken_name, true, false, 20, 6},
    {"put-adopts",     lost,             put_adopts,     true, false, 100, 6},
    {"put-pool",       ready,            put_pool,       true, false, 100, 6},
    {"delete-adopts",  lost,             delete_adopts,  true, false, 100, 6},
    {"get-ready",      ready,            get_ready,      true, false, 10, 1},
    {"get-failed",     failed,           get_failed,     true, false, 5, 1},
    {"get-late",       late,             get_failed,     true, false, 20, 1},
    {"get-deleting",   deleting,         get_deleting,   true, false, 5, 1},
    {"list",           ready,            list_pools,     true, false, 50, 1},
};
/* clang-format on */

/*
 * The answer was right, or it was that memory is short; behind it all is sound, and the same again
 * is right.
 */
static const char *judge(const struct memory_scenario *s, struct world *w, bool was_sound,
                         hfd_rc rc, unsigned fired)
{
    if (rc != HFD_OK && fired == 0)
        return "it fails without a fault";
    if (rc != HFD_OK && rc != HFD_NOMEM && !(rc == HFD_IO && s->store && !hfd_store_ok(w->store)))
        return "it does not say that memory is short";
    if (s->store && !hfd_store_ok(w->store))
        world_restart(w);
    if (was_sound && load_unsound(w) != NULL)
        return load_unsound(w);
    if (s->run(w) != HFD_OK)
        return "the same again does not go through";
    return s->store && !s->strange ? load_unsound(w) : NULL;
}

/* @return how many allocations failed */
static unsigned run_out(const struct memory_scenario *s, unsigned nth, bool ever)
{
    struct world *w = calloc(1, sizeof(*w));
    const char *wrong;
    unsigned fired;
    bool was_sound;
    hfd_rc rc;

    assert_non_null(w);
    world_init(w);
    if (s->store)
        assert_int_equal(world_start(w), HFD_OK);
    if (s->prepare != NULL)
        s->prepare(w);
    was_sound = s->store && load_unsound(w) == NULL; /* a lost row is not */
    faultmem_arm(nth, ever);
    rc = s->run(w);
    fired = faultmem_disarm();
    wrong = judge(s, w, was_sound, rc, fired);
    if (wrong != NULL) {
        print_error("%s: %s, allocation %u: %s (answered %s: %s)\n", s->name,
                    ever ? "from then on" : "once", nth, wrong, hfd_rc_name(rc), w->err.msg);
        print_error("again: %s --again %s:%s:%u\n", options.program, s->name,
                    ever ? "ever" : "once", nth);
        exit(1);
    }
    world_close(w);
    free(w);
    return fired;
}

static void run_out_everywhere(const struct memory_scenario *s, bool ever)
{
    struct fault_options wider = options;
    struct fault_walk walk;
    unsigned tried = 0;

    if (!fault_wanted(&options, s->name, ever))
        return;
    if (wider.stride != 1)
        wider.stride *= s->wider;
    fault_walk_init(&walk, &wider, s->name, ever);
    while (fault_walk_next(&walk)) {
        tried++;
        if (run_out(s, walk.nth, ever) == 0)
            break;
    }
    print_message("             %s, %s: %u of %u allocations\n", s->name,
                  ever ? "from then on" : "once", tried, walk.nth);
    if (options.again == NULL && walk.nth <= s->fewest)
        fail_msg("%s: the run has %u allocations only", s->name, walk.nth);
}

/* Code that the domain's work does not touch. */
static void scenarios_run_out_of_memory(void **state)
{
    const struct hfd_schema *input;

    (void)state;
    assert_int_equal(hfd_schema_input(&input, NULL), HFD_OK); /* compiled once a process */
    tmpdir_make(folder);
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        run_out_everywhere(&scenarios[i], false);
        run_out_everywhere(&scenarios[i], true);
    }
    for (size_t i = 0; i < memory_more_count; i++) {
        run_out_everywhere(&memory_more[i], false);
        run_out_everywhere(&memory_more[i], true);
    }
    tmpdir_remove(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domain_runs_out_of_memory),
        cmocka_unit_test(scenarios_run_out_of_memory),
    };

    wrap_memory_install();
    fault_options_parse(&options, argc, argv, STRIDE);
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    if (access("/dev/shm", W_OK) == 0) /* no disk is tested here */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
