/*
 * A transaction function that runs again. Each kind of them is run, undone and run once more. It
 * answers and stores the same as on a store where it ran once.
 *
 * The linker puts hfd_store_update_wait of this file between the test's world and the store.
 */
#include "store/totals.h"
#include "store/unit.h"
#include "tests/fault/load.h"
#include "tests/lib/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRANSCRIPT_MAX ((size_t)1 << 20)
#define BODY(region, pools)                                                                        \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"one\","      \
    "\"spec\":{\"region\":\"" region "\"}},\"nodepools\":[" pools "]}}}"
#define POOL(name) "{\"name\":\"" name "\",\"spec\":{\"n\":1}}"

static struct world *twice; /* its transaction functions run twice; NULL = none do */
static unsigned reruns;

struct rerun {
    hfd_txn_fn *fn;
    void *arg;
};

/* Runs it and undoes all that it did: in the database, in the unit of work, in what it counted. */
static hfd_rc run_and_undo(struct hfd_txn *tx, const struct rerun *r, struct hfd_err *err)
{
    const uint64_t rng = twice->rng.state;
    const struct hfd_tally tally = *tx->tally;
    const struct hfd_number seqs = tx->unit->seqs, actions = tx->unit->actions,
                            dues = tx->unit->dues;
    const size_t effects_len = tx->effects->len;
    hfd_rc rc;

    assert_int_equal(hfd_db_exec(tx->db, "SAVEPOINT rerun", NULL), HFD_OK);
    rc = r->fn(tx, r->arg, err);
    if (rc == HFD_OK)
        rc = hfd_unit_write(tx, err);
    assert_int_equal(hfd_db_exec(tx->db, "ROLLBACK TO rerun; RELEASE rerun", NULL), HFD_OK);
    hfd_unit_begin(tx->unit);
    hfd_totals_drop(tx->totals);
    tx->effects->len = effects_len;
    tx->unit->seqs = seqs;
    tx->unit->actions = actions;
    tx->unit->dues = dues;
    *tx->tally = tally;
    twice->rng.state = rng;
    return rc;
}

static hfd_rc txn_twice(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct rerun *r = arg;
    struct hfd_err first_err = {.rc = HFD_OK};
    const hfd_rc first = run_and_undo(tx, r, &first_err);
    const hfd_rc again = r->fn(tx, r->arg, err);

    assert_int_equal(again, first);
    if (again != HFD_OK)
        assert_string_equal(err->msg, first_err.msg);
    reruns++;
    return again;
}

hfd_rc __real_hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                    struct hfd_err *err);
hfd_rc __wrap_hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                    struct hfd_err *err);

hfd_rc __wrap_hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                    struct hfd_err *err)
{
    struct rerun r = {fn, arg};

    if (twice == NULL || twice->store != store)
        return __real_hfd_store_update_wait(store, fn, arg, err);
    return __real_hfd_store_update_wait(store, txn_twice, &r, err);
}

/* ---- what happens ---- */

struct play {
    struct world *w;
    struct hfd_buf transcript;
    char cookie[4096];
};

static void note_store(struct play *p, const char *step)
{
    unsigned char digest[LOAD_DIGEST_BYTES];

    assert_int_equal(load_digest(p->w, digest), HFD_OK);
    hfd_buf_addf(&p->transcript, "%s:", step);
    for (size_t i = 0; i < sizeof(digest); i++)
        hfd_buf_addf(&p->transcript, "%02x", digest[i]);
    hfd_buf_addc(&p->transcript, '\n');
}

static void note_answer(struct play *p, const char *step, hfd_rc rc,
                        const struct hfd_answer_doc *doc)
{
    hfd_buf_addf(&p->transcript, "%s: %s", step, hfd_rc_name(rc));
    if (rc == HFD_OK) {
        hfd_buf_addf(&p->transcript, " %d %.*s %.*s", (int)doc->answer, HFD_SLICE_FMT(doc->values),
                     HFD_SLICE_FMT(doc->cookie));
        if (doc->cookie.len > 0)
            (void)snprintf(p->cookie, sizeof(p->cookie), "%.*s", HFD_SLICE_FMT(doc->cookie));
    } else {
        hfd_buf_addf(&p->transcript, " %s", p->w->err.msg);
    }
    hfd_buf_addc(&p->transcript, '\n');
    note_store(p, step);
}

static void put(struct play *p, const char *guresid, const char *body)
{
    struct hfd_answer_doc doc = {0};

    note_answer(p, "PUT", world_put(p->w, guresid, body, NULL, &doc), &doc);
}

static void delete (struct play *p, const char *guresid)
{
    struct hfd_answer_doc doc = {0};

    note_answer(p, "DELETE", world_delete(p->w, guresid, NULL, &doc), &doc);
}

static void finalize(struct play *p, hfd_slice id, const char *const adapters[])
{
    for (size_t i = 0; adapters[i] != NULL; i++)
        (void)world_report(p->w, id,
                           &(struct world_report){.adapter = adapters[i],
                                                  .available = HFD_STATUS_FALSE,
                                                  .finalized = true});
    note_store(p, "Finalized");
}

/* A resource from its creation to its end. */
static void play_resource(struct play *p)
{
    static const char *const of_cluster[] = {"validation", "dns", NULL}, *const of_pool[] = {
                                                                             "validation", NULL};
    struct hfd_answer_doc doc = {0};
    hfd_slice cluster, pool, leaving;

    put(p, "res", BODY("a", POOL("np-one")));
    put(p, "other", BODY("a", POOL("np-one"))); /* the name is taken */
    put(p, "other", "{\"type\":\"unknown\"}");
    world_succeed_all(p->w, "res");
    note_store(p, "reports");
    put(p, "res", BODY("b", POOL("np-one") "," POOL("np-two")));
    world_succeed_all(p->w, "res");
    note_store(p, "reports");
    leaving = scene_nodepool(p->w, "np-two");
    put(p, "res", BODY("b", POOL("np-one")));
    finalize(p, leaving, of_pool);
    pool = scene_nodepool(p->w, "np-one");
    cluster = scene_cluster(p->w, "one");
    scene_forget(p->w, "res");
    note_answer(p, "GET", world_get(p->w, "res", p->cookie, &doc), &doc);
    delete (p, "res");
    finalize(p, pool, of_pool);
    finalize(p, cluster, of_cluster);
    delete (p, "res");
}

/* Clusters and nodepools through HyperFleet's own API. */
static void play_fleet(struct play *p)
{
    hfd_slice cluster, pool;

    cluster = scene_create(p->w, HFD_KIND_CLUSTER, HFD_SLICE(""), "two", NULL);
    note_store(p, "create");
    pool = scene_create(p->w, HFD_KIND_NODEPOOL, cluster, "two-np", "stranger");
    note_store(p, "create");
    scene_patch(p->w, HFD_KIND_CLUSTER, cluster, "{\"region\":\"c\"}");
    note_store(p, "patch");
    world_succeed(p->w, cluster);
    note_store(p, "report");
    scene_label(p->w, HFD_KIND_NODEPOOL, pool, "somebody");
    note_store(p, "label");
    scene_delete(p->w, HFD_KIND_CLUSTER, cluster);
    note_store(p, "delete");
    scene_force_delete(p->w, HFD_KIND_CLUSTER, cluster);
    note_store(p, "force-delete");
}

static hfd_slice play(struct play *p, struct world *w, bool again)
{
    hfd_slice transcript;

    *p = (struct play){.w = w};
    hfd_buf_init(&p->transcript, TRANSCRIPT_MAX);
    world_open(w);
    reruns = 0;
    twice = again ? w : NULL;
    play_resource(p);
    play_fleet(p);
    twice = NULL;
    assert_int_equal(hfd_buf_finish(&p->transcript, &transcript, NULL), HFD_OK);
    return transcript;
}

/* All kinds of transaction functions, run once and run twice: the same answers and the same rows.
 */
static void functions_that_run_again_do_the_same(void **state)
{
    struct world once_world, again_world;
    struct play once, again;
    hfd_slice a, b;

    (void)state;
    a = play(&once, &once_world, false);
    b = play(&again, &again_world, true);
    assert_true(reruns >= 26);
    assert_true(a.len > 1000);
    assert_true(hfd_slice_eq(a, b));
    hfd_buf_fini(&once.transcript);
    hfd_buf_fini(&again.transcript);
    world_close(&once_world);
    world_close(&again_world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_that_run_again_do_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
