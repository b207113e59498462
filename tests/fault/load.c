/* See load.h. */
#include "tests/fault/load.h"

#include <semaphore.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/core/transition.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/txn.h"

#define RESOURCES 6
#define POOLS 3
#define STEP_MAX_US (40 * HFD_US_PER_S)

/* ---- running ---- */

struct step {
    struct hfd_job job; /* first member */
    const struct load_call *planned;
    struct test_rng *rng;
    uint64_t seed; /* of its random bytes: the same when it runs again */
    struct hfd_arena mem;
    struct hfd_call call;
    struct hfd_input input;
    struct hfd_answer_doc doc;
    struct hfd_condition conditions[4];
    struct hfd_fleet_report report;
    struct hfd_fleet_reported reported;
};

/* Holds the writer until the whole batch is queued. */
struct gate {
    struct hfd_sink sink; /* first member */
    struct hfd_job job;
    bool entered;
    sem_t ready, open, answered;
};

struct batch {
    struct hfd_sink sink; /* first member */
    struct load *load;
    size_t number;
    struct step steps[LOAD_CALLS_MAX];
    size_t left; /* answers to come */
    hfd_rc rc;
    sem_t done;
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static hfd_rc gate_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct gate *g = arg;

    (void)tx;
    (void)err;
    g->entered = true;
    (void)sem_post(&g->ready);
    wait_for(&g->open);
    return HFD_OK;
}

static void on_gate(struct hfd_sink *sink, struct hfd_job *list)
{
    struct gate *g = (struct gate *)sink;

    (void)list; /* its one job */
    if (!g->entered)
        (void)sem_post(&g->ready);
    (void)sem_post(&g->answered);
}

/* On the writer thread. An answer counted here may already have reached its caller. */
static void on_answers(struct hfd_sink *sink, struct hfd_job *list)
{
    struct batch *b = (struct batch *)sink;

    for (struct hfd_job *job = list; job != NULL; job = (struct hfd_job *)job->node.next) {
        const struct step *step = (struct step *)job;

        if (job->rc != step->planned->rc && b->rc == HFD_OK) {
            b->rc = job->rc != HFD_OK ? job->rc : HFD_INVALID;
            b->load->world.err = job->err;
        }
        b->left--;
    }
    if (b->left != 0)
        return;
    if (b->rc == HFD_OK)
        atomic_store(&b->load->answered, b->number + 1);
    (void)sem_post(&b->done);
}

static hfd_rc step_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    struct hfd_fleet_changes changes = {.mem = &s->mem};
    const struct hfd_fleet_call by_adapter = {.fleet = &s->call.driver->fleet,
                                              .now_us = s->call.now_us,
                                              .caller = HFD_SLICE("adapter@example.com"),
                                              .mem = &s->mem,
                                              .changes = &changes};
    hfd_rc rc;

    test_rng_init(s->rng, s->seed);
    switch (s->planned->what) {
    case LOAD_PUT:
        return hfd_resource_put(tx, &s->call, &s->doc, err);
    case LOAD_DELETE:
        return hfd_resource_delete(tx, &s->call, &s->doc, err);
    case LOAD_REPORT:
        break;
    }
    rc = hfd_fleet_report(tx, &by_adapter, &s->report, &s->reported, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, s->call.driver, &by_adapter, err) : rc;
}

static void make_report(struct step *s)
{
    const struct load_call *c = s->planned;

    s->conditions[0] = (struct hfd_condition){
        .type = HFD_SLICE("Available"),
        .status = c->terminal || c->finalized ? HFD_STATUS_FALSE : HFD_STATUS_TRUE,
        .reason = c->terminal ? HFD_SLICE("InvalidConfiguration") : HFD_SLICE("Test"),
        .message = HFD_SLICE("told by the test")};
    s->conditions[1] =
        (struct hfd_condition){.type = HFD_SLICE("Applied"), .status = HFD_STATUS_TRUE};
    s->conditions[2] =
        (struct hfd_condition){.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE};
    s->conditions[3] =
        (struct hfd_condition){.type = HFD_SLICE("Finalized"), .status = HFD_STATUS_TRUE};
    s->report = (struct hfd_fleet_report){
        .target = {.kind = c->kind, .id = hfd_slice_of(c->fleet_id)},
        .adapter = hfd_slice_of(c->adapter),
        .observed_generation = c->generation,
        .observed_us = s->call.now_us,
        .conditions = {s->conditions, c->finalized ? 4 : 3},
        .data = HFD_SLICE("{\"endpoint\":\"https://cluster.example.com\"}"),
        .secrets = HFD_SLICE("{\"token\":\"t0p\"}"),
        .metadata = HFD_SLICE("")};
}

/* Does what a handler does before it submits. */
static hfd_rc step_init(struct step *s, struct batch *b, const struct load_call *planned,
                        int64_t now_us)
{
    struct world *w = &b->load->world;

    s->planned = planned;
    s->rng = &w->rng;
    s->seed = (uint64_t)now_us * LOAD_CALLS_MAX + (uint64_t)(s - b->steps);
    s->job = (struct hfd_job){.fn = step_fn, .arg = s, .sink = &b->sink};
    hfd_arena_init(&s->mem, (size_t)16 * 1024 * 1024);
    s->call = (struct hfd_call){.driver = &w->driver,
                                .now_us = now_us,
                                .caller = HFD_SLICE("tester@example.com"),
                                .guresid = hfd_slice_of(planned->guresid),
                                .mem = &s->mem};
    if (planned->what == LOAD_REPORT)
        make_report(s);
    if (planned->what != LOAD_PUT)
        return HFD_OK;
    s->call.body = hfd_slice_of(planned->body);
    s->call.input = &s->input;
    return hfd_input_parse(
        &(struct hfd_input_source){&w->driver.rules, s->call.guresid, 0, s->call.body}, &s->mem,
        &s->input, &w->err);
}

static hfd_rc submit_all(struct batch *b, size_t count)
{
    hfd_rc rc = HFD_OK;

    b->left = count; /* before the writer sees any */
    for (size_t i = 0; i < count; i++) {
        rc = hfd_store_update(b->load->world.store, &b->steps[i].job, &b->load->world.err);
        if (rc != HFD_OK) {
            assert_int_equal(i, 0); /* the writer is held, or there is one alone */
            break;
        }
    }
    return rc;
}

/* Several calls, one commit: they are queued while the writer is busy with the gate. */
static hfd_rc submit_together(struct batch *b, size_t count)
{
    struct gate g = {.sink = {on_gate}};
    hfd_rc rc;

    g.job = (struct hfd_job){.fn = gate_fn, .arg = &g, .sink = &g.sink};
    (void)sem_init(&g.ready, 0, 0);
    (void)sem_init(&g.open, 0, 0);
    (void)sem_init(&g.answered, 0, 0);
    rc = hfd_store_update(b->load->world.store, &g.job, &b->load->world.err);
    if (rc == HFD_OK) {
        wait_for(&g.ready);
        if (g.entered)
            rc = submit_all(b, count);
        (void)sem_post(&g.open);
        wait_for(&g.answered);
        if (!g.entered)
            rc = g.job.rc;
    }
    (void)sem_destroy(&g.ready);
    (void)sem_destroy(&g.open);
    (void)sem_destroy(&g.answered);
    return rc;
}

/* Allocates nothing itself: memory may be what fails. */
static hfd_rc run_batch(struct load *l, const struct load_batch *planned, size_t number)
{
    struct batch *b = l->batch;
    hfd_rc rc = HFD_OK;

    memset(b, 0, sizeof(*b));
    b->sink.post = on_answers;
    b->load = l;
    b->number = number;
    (void)sem_init(&b->done, 0, 0);
    for (size_t i = 0; rc == HFD_OK && i < planned->count; i++)
        rc = step_init(&b->steps[i], b, &planned->calls[i], planned->now_us);
    if (rc == HFD_OK)
        rc = planned->count == 1 ? submit_all(b, 1) : submit_together(b, planned->count);
    if (rc == HFD_OK) {
        wait_for(&b->done);
        rc = b->rc;
    }
    for (size_t i = 0; i < planned->count; i++)
        hfd_arena_fini(&b->steps[i].mem);
    (void)sem_destroy(&b->done);
    return rc;
}

static hfd_rc nothing(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return HFD_OK;
}

hfd_rc load_run(struct load *l, size_t batch)
{
    hfd_rc rc = run_batch(l, &l->plan->batches[batch], batch);

    /* Answered behind the housekeeping of the batch: the next one finds the writer at rest. */
    if (rc == HFD_OK)
        rc = hfd_store_update_wait(l->world.store, nothing, NULL, &l->world.err);
    return rc;
}

void load_init(struct load *l, const struct load_plan *plan)
{
    world_init(&l->world);
    l->plan = plan;
    l->batch = calloc(1, sizeof(*l->batch));
    assert_non_null(l->batch);
    atomic_init(&l->answered, 0);
}

void load_fini(struct load *l)
{
    world_close(&l->world);
    free(l->batch);
}

/* ---- looking ---- */

static const char sql_tables[] = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
                                 "LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name";

struct look {
    struct hfd_arena mem;
    crypto_generichash_state hash;
    const char *unsound;
};

/* A statement that gives all of a table as text, one row each. */
static hfd_rc select_all(struct hfd_txn *tx, struct look *l, hfd_slice table, hfd_slice *out,
                         struct hfd_err *err)
{
    hfd_slice sql = hfd_arena_printf(&l->mem, "PRAGMA table_info(%.*s)", HFD_SLICE_FMT(table));
    hfd_slice all = HFD_SLICE("''");
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = sql.p != NULL ? hfd_db_prepare_once(tx->db, sql, &st, err) : HFD_NOMEM;

    if (rc != HFD_OK)
        return rc;
    while ((rc = hfd_stmt_step(st, &row, err)) == HFD_OK && row) {
        hfd_slice column = hfd_stmt_col_text(st, 1, &l->mem);

        all = hfd_arena_printf(&l->mem, "%.*s || ',' || quote(%.*s)", HFD_SLICE_FMT(all),
                               HFD_SLICE_FMT(column));
    }
    hfd_stmt_done(st);
    *out = hfd_arena_printf(&l->mem, "SELECT %.*s AS row FROM %.*s ORDER BY row",
                            HFD_SLICE_FMT(all), HFD_SLICE_FMT(table));
    if (rc == HFD_OK && (all.p == NULL || out->p == NULL))
        rc = HFD_NOMEM;
    return rc;
}

static hfd_rc hash_table(struct hfd_txn *tx, struct look *l, hfd_slice table, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_slice sql;
    bool row;
    hfd_rc rc = select_all(tx, l, table, &sql, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare_once(tx->db, sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    (void)crypto_generichash_update(&l->hash, (const unsigned char *)table.p, table.len);
    while ((rc = hfd_stmt_step(st, &row, err)) == HFD_OK && row) {
        struct hfd_arena mem;
        hfd_slice text;

        hfd_arena_init(&mem, (size_t)1 << 22);
        text = hfd_stmt_col_text(st, 0, &mem);
        if (text.p != NULL) /* else the next step says why */
            (void)crypto_generichash_update(&l->hash, (const unsigned char *)text.p,
                                            text.len + 1); /* with its NUL, as an end */
        hfd_arena_fini(&mem);
    }
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc digest_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *l = arg;
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_tables, &st, err);

    if (rc != HFD_OK)
        return rc;
    (void)crypto_generichash_init(&l->hash, NULL, 0, LOAD_DIGEST_BYTES);
    while ((rc = hfd_stmt_step(st, &row, err)) == HFD_OK && row) {
        hfd_slice table = hfd_stmt_col_text(st, 0, &l->mem);

        rc = table.p != NULL ? hash_table(tx, l, table, err) : HFD_NOMEM;
        if (rc != HFD_OK)
            break;
    }
    hfd_stmt_done(st);
    return rc;
}

hfd_rc load_digest(struct world *w, unsigned char out[LOAD_DIGEST_BYTES])
{
    struct look l = {.unsound = NULL};
    hfd_rc rc;

    hfd_arena_init(&l.mem, (size_t)1 << 22);
    rc = hfd_store_read(w->reader, digest_fn, &l, &w->err);
    if (rc == HFD_OK)
        (void)crypto_generichash_final(&l.hash, out, LOAD_DIGEST_BYTES);
    hfd_arena_fini(&l.mem);
    return rc;
}

static const unsigned char *content_after(const struct load_plan *plan, size_t batches)
{
    return batches > 0 ? plan->batches[batches - 1].after : plan->before;
}

/* Equal contents are told apart in favour of the nearest: some batches change nothing. */
int load_missing(const struct load_plan *plan, size_t answered,
                 const unsigned char digest[LOAD_DIGEST_BYTES])
{
    if (memcmp(content_after(plan, answered), digest, LOAD_DIGEST_BYTES) == 0)
        return 0;
    if (answered < plan->count &&
        memcmp(content_after(plan, answered + 1), digest, LOAD_DIGEST_BYTES) == 0)
        return -1;
    for (size_t n = answered; n > 0; n--)
        if (memcmp(content_after(plan, n - 1), digest, LOAD_DIGEST_BYTES) == 0)
            return (int)(answered - (n - 1));
    return LOAD_UNKNOWN;
}

/* The kept totals as counting gives them. */
#define COUNTED                                                                                    \
    "SELECT * FROM (SELECT kind, 0, '', '', count(*) FROM fleet GROUP BY kind "                    \
    "UNION ALL SELECT kind, 1, type, status, count(*) FROM fleet_condition GROUP BY kind, type, "  \
    "status "                                                                                      \
    "UNION ALL SELECT kind, 2, key, value, count(*) FROM fleet_label WHERE key <> "                \
    "'" HFD_LABEL_UNCOUNTED "' "                                                                   \
    "GROUP BY kind, key, value "                                                                   \
    "UNION ALL SELECT kind, 3, substr(type, instr(type, '/') + 1), CAST(state AS TEXT), count(*) " \
    "FROM resource GROUP BY 1, 3, 4)"
#define KEPT "SELECT kind, field, name, value, n FROM fleet_count"
#define COUNT "SELECT CAST(count(*) AS TEXT) FROM "

/* Each counts what must not be there, and says what that is. */
static const char *const unsound[][2] = {
    {"SELECT CASE (SELECT group_concat(integrity_check) FROM pragma_integrity_check) WHEN 'ok' "
     "THEN '0' ELSE '1' END",
     "the file is damaged (integrity_check)"},
    {COUNT "fleet WHERE owner_id <> '' AND owner_id NOT IN (SELECT id FROM fleet)",
     "a nodepool without its cluster"},
    {COUNT "report WHERE fleet_id NOT IN (SELECT id FROM fleet)", "a report without its resource"},
    {COUNT "fleet_label WHERE fleet_seq NOT IN (SELECT seq FROM fleet)",
     "a label without its resource"},
    {COUNT "fleet_condition WHERE fleet_seq NOT IN (SELECT seq FROM fleet)",
     "a condition without its resource"},
    {COUNT "part WHERE guresid NOT IN (SELECT guresid FROM resource)",
     "a part without its driver resource"},
    {COUNT "part p JOIN resource r USING (guresid) WHERE r.state NOT IN (4, 5) AND p.fleet_id NOT "
           "IN (SELECT id FROM fleet)",
     "a driver resource without what it made"},
    {COUNT "resource WHERE guresid NOT IN (SELECT guresid FROM part)",
     "a driver resource without parts"},
    {COUNT "fleet WHERE id NOT IN (SELECT fleet_id FROM part)",
     "a cluster or nodepool that nobody ordered"},
    {COUNT
     "history WHERE about = 0 AND id NOT IN (SELECT guresid FROM resource UNION SELECT id FROM "
     "tombstone)",
     "a history without its driver resource or tombstone"},
    {COUNT "(" KEPT " EXCEPT " COUNTED ")", "a wrong total"},
    {COUNT "(" COUNTED " EXCEPT " KEPT ")", "a missing total"},
};

static hfd_rc unsound_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *l = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0;
         rc == HFD_OK && l->unsound == NULL && i < sizeof(unsound) / sizeof(unsound[0]); i++) {
        struct hfd_stmt *st;
        bool row = false;

        rc = hfd_db_prepare(tx->db, unsound[i][0], &st, err);
        if (rc != HFD_OK)
            break;
        rc = hfd_stmt_step(st, &row, err);
        if (rc == HFD_OK && (!row || !hfd_slice_is(hfd_stmt_col_text(st, 0, &l->mem), "0")))
            l->unsound = unsound[i][1];
        hfd_stmt_done(st);
    }
    return rc;
}

const char *load_unsound(struct world *w)
{
    struct look l = {.unsound = NULL};

    hfd_arena_init(&l.mem, (size_t)1 << 20);
    if (hfd_store_read(w->reader, unsound_fn, &l, &w->err) != HFD_OK)
        l.unsound = w->err.msg;
    hfd_arena_fini(&l.mem);
    return l.unsound;
}

const char *load_works(struct world *w)
{
    static const char body[] =
        "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"spec\":{}}}}}";
    struct hfd_answer_doc doc;
    hfd_rc rc = world_put(w, "one-more", body, NULL, &doc);

    return rc == HFD_OK && doc.answer == HFD_ANSWER_HINT ? NULL : "it takes no order";
}

/* ---- planning ---- */

/* A resource as the planner finds it. */
struct found {
    hfd_slice guresid;
    struct hfd_arena mem;
    struct hfd_resource_row row; /* state ABSENT: there is none */
    struct hfd_part_list parts;
    struct hfd_fleet_row *fleet; /* of each part; id.len == 0: removed */
};

static hfd_rc find_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct found *f = arg;
    hfd_rc rc = hfd_resource_row_get(tx, f->guresid, &f->mem, &f->row, err);

    if (rc == HFD_NOT_FOUND) {
        f->row = (struct hfd_resource_row){.state = HFD_STATE_ABSENT};
        return HFD_OK;
    }
    if (rc == HFD_OK)
        rc = hfd_part_row_list(tx, f->guresid, &f->mem, &f->parts, err);
    if (rc != HFD_OK)
        return rc;
    f->fleet = hfd_arena_array(&f->mem, f->parts.count + 1, sizeof(*f->fleet));
    for (size_t i = 0; f->fleet != NULL && i < f->parts.count; i++) {
        rc = hfd_fleet_row_get(tx, f->parts.rows[i].fleet_id, &f->mem, &f->fleet[i], err);
        if (rc == HFD_NOT_FOUND)
            f->fleet[i] = (struct hfd_fleet_row){.generation = 0};
        else if (rc != HFD_OK)
            return rc;
    }
    return f->fleet != NULL ? HFD_OK : HFD_NOMEM;
}

/* A body of 0.2 to 6 kB. Two of the resources may ask for the same name: the second is refused. */
static char *make_body(struct test_rng *rng, unsigned resource)
{
    static const char filler[6000] = {[0 ... 5998] = 'x'};
    char pools[400] = "";
    char name[40] = "";
    int fill = test_rng_below(rng, 4) == 0 ? 6000 : (int)test_rng_below(rng, 300);
    char *body;

    for (unsigned p = 0; p < POOLS; p++)
        if (test_rng_below(rng, 3) != 0)
            (void)snprintf(pools + strlen(pools), sizeof(pools) - strlen(pools),
                           "%s{\"name\":\"np-%u\",\"spec\":{\"n\":%u}}",
                           pools[0] != '\0' ? "," : "", p, (unsigned)test_rng_below(rng, 3));
    if (resource < 2)
        (void)snprintf(name, sizeof(name), "\"name\":\"wanted-by-two\",");
    assert_true(asprintf(&body,
                         "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                         "\"cluster\":{%s\"labels\":{\"team\":\"t%u\"},\"spec\":{\"v\":%u,\"f\":\"%"
                         ".*s\"}},\"nodepools\":[%s]}}}",
                         name, (unsigned)test_rng_below(rng, 2),
                         (unsigned)test_rng_below(rng, 1000), fill, filler, pools) > 0);
    return body;
}

static void plan_put(struct load_call *c, struct test_rng *rng, unsigned resource)
{
    c->what = LOAD_PUT;
    c->body = make_body(rng, resource);
}

/* The next report that the parts of a resource wait for. @return false when there is none */
static bool plan_report(struct load_call *c, struct test_rng *rng, const struct found *f)
{
    static const char *const adapters[] = {"validation", "dns"};
    size_t first = f->parts.count > 0 ? (size_t)test_rng_below(rng, f->parts.count) : 0;

    for (size_t n = 0; n < f->parts.count; n++) {
        const struct hfd_fleet_row *row = &f->fleet[(first + n) % f->parts.count];

        if (row->id.len == 0 || (row->ready && row->deleted_us == 0))
            continue;
        c->what = LOAD_REPORT;
        (void)snprintf(c->fleet_id, sizeof(c->fleet_id), "%.*s", HFD_SLICE_FMT(row->id));
        c->kind = row->kind;
        c->adapter = adapters[row->kind == HFD_KIND_CLUSTER ? test_rng_below(rng, 2) : 0];
        c->generation = row->generation - (test_rng_below(rng, 16) == 0 ? 1 : 0);
        c->finalized = row->deleted_us != 0;
        c->terminal = !c->finalized && test_rng_below(rng, 24) == 0;
        return true;
    }
    return false;
}

static void plan_call(struct load_call *c, struct world *w, struct test_rng *rng, unsigned resource)
{
    struct found f = {.parts = {NULL, 0}};
    uint64_t dice = test_rng_below(rng, 16);

    (void)snprintf(c->guresid, sizeof(c->guresid), "res-%u", resource);
    f.guresid = hfd_slice_of(c->guresid);
    hfd_arena_init(&f.mem, (size_t)1 << 24);
    assert_int_equal(hfd_store_read(w->reader, find_fn, &f, &w->err), HFD_OK);
    if (f.row.state == HFD_STATE_ABSENT || dice == 0) {
        plan_put(c, rng, resource);
    } else if (f.row.state == HFD_STATE_READY || f.row.state == HFD_STATE_FAILED || dice == 1) {
        if (dice < 7)
            c->what = LOAD_DELETE;
        else
            plan_put(c, rng, resource);
    } else if (!plan_report(c, rng, &f)) {
        c->what = LOAD_DELETE;
    }
    hfd_arena_fini(&f.mem);
}

/*
 * Calls of one batch are planned from what was before it: some find another state than that, as in
 * life.
 */
static void plan_batch(struct load *l, struct load_batch *b, struct test_rng *rng, size_t together)
{
    b->now_us = l->world.clock.wall_us;
    b->count = 1 + (size_t)test_rng_below(rng, together);
    for (size_t i = 0; i < b->count; i++)
        plan_call(&b->calls[i], &l->world, rng, (unsigned)test_rng_below(rng, RESOURCES));
}

/* Runs a batch to learn what its calls answer: as planned, since that is nothing yet. */
static void learn(struct load *l, struct load_batch *b)
{
    (void)run_batch(l, b, 0);
    for (size_t i = 0; i < b->count; i++)
        b->calls[i].rc = l->batch->steps[i].job.rc;
    if (load_digest(&l->world, b->after) != HFD_OK || load_unsound(&l->world) != NULL)
        fail_msg("without any fault: %s", load_unsound(&l->world));
}

void load_plan_make(struct load_plan *plan, uint64_t seed, size_t batches, size_t together)
{
    struct load *l = calloc(1, sizeof(*l));
    struct test_rng rng;

    assert_non_null(l);
    *plan = (struct load_plan){
        .seed = seed, .count = batches, .batches = calloc(batches, sizeof(*plan->batches))};
    assert_non_null(plan->batches);
    test_rng_init(&rng, seed);
    load_init(l, plan);
    assert_int_equal(world_start(&l->world), HFD_OK);
    assert_int_equal(load_digest(&l->world, plan->before), HFD_OK);
    for (size_t i = 0; i < batches; i++) {
        plan_batch(l, &plan->batches[i], &rng, together);
        learn(l, &plan->batches[i]);
        test_clock_advance(&l->world.clock, 1 + (int64_t)test_rng_below(&rng, STEP_MAX_US));
    }
    load_fini(l);
    free(l);
}

void load_plan_free(struct load_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        for (size_t c = 0; c < plan->batches[i].count; c++)
            free(plan->batches[i].calls[c].body);
    free(plan->batches);
    *plan = (struct load_plan){.seed = 0};
}
