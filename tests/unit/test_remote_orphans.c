/*
 * Orphans in a played remote HyperFleet: found, listed, and deleted when a command asks for it.
 * Each fault, and everything else that may happen, comes at every request.
 */
#include "driver/backend/backend.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/pass.h"
#include "driver/core/overview.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/backend/remote/http.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "tests/lib/remote_world.h"

#define G "res-1"
#define ROUNDS_MAX 400
#define OURS(guresid)                                                                              \
    "{\"" HFD_GURESID_LABEL "\":\"" guresid "\",\"" HFD_OWNER_LABEL "\":\"" REMOTE_OWNER "\"}"
#define THEIRS "{\"" HFD_GURESID_LABEL "\":\"" G "\",\"" HFD_OWNER_LABEL "\":\"another-server\"}"

static const char body_a[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
                             "{\"name\":\"c-one\",\"spec\":{}},"
                             "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{}}]}}}";
static const char body_bare[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                                "\"cluster\":{\"name\":\"c-one\",\"spec\":{}}}}}";

/* ---- asking ---- */

struct step {
    struct remote_world *rw;
    hfd_slice id;
    struct hfd_orphans found;
    struct hfd_fleet_deletion removed;
};

static hfd_rc txn_search(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct step *s = arg;
    const int64_t now_us = s->rw->w.clock.wall_us;

    return hfd_remote_hurry(tx, HFD_REMOTE_ORPHANS, now_us - 2 * HFD_US_PER_S, now_us, err);
}

/* A client asks for a list; the search runs as soon as it is due. */
static void search(struct remote_world *rw)
{
    struct step s = {.rw = rw};

    test_clock_advance(&rw->w.clock, 3 * HFD_US_PER_S);
    assert_int_equal(hfd_store_update_wait(rw->w.store, txn_search, &s, &rw->w.err), HFD_OK);
    test_clock_advance(&rw->w.clock, HFD_US_PER_S);
    (void)remote_world_run(rw);
}

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    return hfd_orphans_list(tx, &hfd_backend_remote,
                            &(struct hfd_orphan_owner){.of = HFD_SLICE("")}, &s->rw->w.mem,
                            &s->found, err);
}

static struct hfd_orphans orphans(struct remote_world *rw)
{
    struct step s = {.rw = rw};

    assert_int_equal(hfd_store_read(rw->w.reader, txn_list, &s, &rw->w.err), HFD_OK);
    assert_true(s.found.as.remote);
    return s.found;
}

/* "cluster c-one res-1; nodepool np-a res-1 deleting wanted (why not); " */
static const char *listed(struct remote_world *rw)
{
    const struct hfd_orphans found = orphans(rw);
    const char *out = "";

    for (size_t i = 0; i < found.list.count; i++) {
        const struct hfd_orphan_row *o = &found.list.rows[i];

        out = hfd_arena_printf(&rw->w.mem, "%s%s %.*s %.*s%s%s%s%.*s; ", out,
                               o->kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool",
                               HFD_SLICE_FMT(o->name), HFD_SLICE_FMT(o->label),
                               o->deleted_us != 0 ? " deleting" : "",
                               o->wanted_us != 0 ? " wanted" : "", o->error.len > 0 ? ": " : "",
                               HFD_SLICE_FMT(o->error))
                  .p;
    }
    return out;
}

static hfd_rc txn_remove(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    const struct hfd_ctx c = {.tx = tx,
                              .driver = &s->rw->w.driver,
                              .now_us = s->rw->w.clock.wall_us,
                              .mem = &s->rw->w.mem,
                              .err = err};

    return hfd_orphan_remove(&c, HFD_SLICE("admin@example.com"),
                             &(struct hfd_orphan_choice){.id = s->id}, &s->removed);
}

static hfd_rc remove_orphan(struct remote_world *rw, const char *id)
{
    struct step s = {.rw = rw, .id = hfd_slice_of(id)};
    const hfd_rc rc = hfd_store_update_wait(rw->w.store, txn_remove, &s, &rw->w.err);

    assert_false(s.removed.removed);
    return rc;
}

static const char *id_of(const json_t *resource)
{
    return json_string_value(json_object_get(resource, "id"));
}

static bool is_deleting(const json_t *resource)
{
    return json_object_get(resource, "deleted_time") != NULL;
}

static struct hfd_answer_doc put(struct remote_world *rw, const char *guresid, const char *body)
{
    struct hfd_answer_doc doc;

    if (world_put(&rw->w, guresid, body, NULL, &doc) != HFD_OK)
        fail_msg("PUT: %s", rw->w.err.msg);
    return doc;
}

/* Time goes by and adapters do their work until the resource is ready. */
static void until_ready(struct remote_world *rw, const char *guresid)
{
    struct hfd_answer_doc doc;

    for (int i = 0; i < ROUNDS_MAX; i++) {
        (void)remote_world_run(rw);
        assert_int_equal(world_get(&rw->w, guresid, NULL, &doc), HFD_OK);
        if (doc.answer == HFD_ANSWER_OUTPUT)
            return;
        if (doc.answer == HFD_ANSWER_FAILED)
            fail_msg("%.*s: %.*s", HFD_SLICE_FMT(doc.error), HFD_SLICE_FMT(doc.message));
        remote_succeed_all(rw);
        remote_world_wait(rw, 60 * HFD_US_PER_S);
    }
    fail_msg("never ready");
}

/* Time goes by until no deletion is requested any more. */
static void until_done(struct remote_world *rw)
{
    for (int i = 0; i < ROUNDS_MAX; i++) {
        (void)remote_world_run(rw);
        if (strstr(listed(rw), " wanted") == NULL)
            return;
        remote_succeed_all(rw);
        remote_world_wait(rw, 60 * HFD_US_PER_S);
    }
    fail_msg("still: %s", listed(rw));
}

/* ---- the list ---- */

/*
 * Ours by both labels, whatever the generation, and with an empty store; a stranger's, another
 * server's and half of ours are not.
 */
static void finds_what_is_ours(void **state)
{
    (void)state;
    for (int g = 0; g < REMOTE_GENERATIONS; g++) {
        struct remote_world rw;
        json_t *plain;

        remote_world_open(&rw, (enum remote_generation)g);
        assert_int_equal(remote_world_run(&rw), 0); /* no search runs before a client asks */
        assert_int_equal(orphans(&rw).as.checked_us, 0);
        (void)remote_add(&rw, NULL, "lost", OURS("res-2"));
        (void)remote_add(&rw, NULL, "another", THEIRS);
        (void)remote_add(&rw, NULL, "half", "{\"" HFD_OWNER_LABEL "\":\"" REMOTE_OWNER "\"}");
        (void)remote_add(&rw, NULL, "other-half", "{\"" HFD_GURESID_LABEL "\":\"res-2\"}");
        plain = remote_add(&rw, NULL, "plain", "{}");
        (void)remote_add(&rw, id_of(plain), "np-lost", OURS("res-1"));
        (void)remote_add(&rw, id_of(plain), "np-plain", "{}");
        search(&rw);
        assert_string_equal(listed(&rw), "cluster lost res-2; nodepool np-lost res-1; ");
        assert_true(orphans(&rw).as.checked_us > 0);
        assert_int_equal(orphans(&rw).as.error.len, 0);
        assert_int_equal(rw.requests, 2);
        remote_world_close(&rw);
    }
}

/*
 * More than a page; and what a later list does not show is looked at, and dropped when it is not
 * there.
 */
static void many_pages(void **state)
{
    enum {
        COUNT = 2 * HFD_REMOTE_PAGE + 3
    };
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    for (int i = 0; i < COUNT; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "lost-%03d", i);
        (void)remote_add(&rw, NULL, name, OURS(G));
    }
    search(&rw);
    assert_int_equal(orphans(&rw).list.count, COUNT);
    assert_false(orphans(&rw).more);
    assert_int_equal(rw.requests, 4);
    for (int i = 0; i < 3; i++)
        remote_remove(&rw, remote_find(&rw, i == 0   ? "lost-000"
                                            : i == 1 ? "lost-050"
                                                     : "lost-102"));
    search(&rw);
    assert_int_equal(orphans(&rw).list.count, COUNT - 3);
    assert_int_equal(rw.requests, 4 + 3 + 3);
    remote_world_close(&rw);
}

/*
 * A search by itself, long after the last one; and none because of a poll that is content with what
 * there is.
 */
static void searched_again_once_in_a_while(void **state)
{
    struct remote_world rw;
    int64_t before;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    search(&rw);
    (void)remote_add(&rw, NULL, "lost", OURS(G));
    assert_int_equal(rw.requests, 2);
    before = rw.w.clock.wall_us;
    remote_world_wait(&rw, INT64_C(1000000) * HFD_US_PER_S);
    assert_in_range(rw.w.clock.wall_us - before, (HFD_SEARCH_EVERY - 1) * rw.policy.idle_us,
                    HFD_SEARCH_EVERY * rw.policy.idle_us);
    assert_string_equal(listed(&rw), "");
    (void)remote_world_run(&rw);
    assert_string_equal(listed(&rw), "cluster lost res-1; ");
    remote_world_close(&rw);
}

struct meanwhile {
    int in; /* requests until it; 0 = at each one */
    bool done;
    const char *listed; /* at each one: what may be seen */
};

static void look_meanwhile(struct remote_world *rw, const struct hfd_remote_request *request)
{
    struct meanwhile *m = rw->between_ctx;
    struct step s = {.rw = rw};

    assert_string_equal(listed(rw), m->listed);
    if (request->step == HFD_STEP_SEARCH)
        return;
    m->done = true;
    assert_int_equal(hfd_store_update_wait(rw->w.store, txn_search, &s, &rw->w.err), HFD_OK);
    test_clock_advance(&rw->w.clock, 3 * HFD_US_PER_S);
}

/*
 * A part of a resource, or what may become one, is never listed, whatever answers are lost,
 * with a search after every request.
 */
static void not_what_is_being_made(void **state)
{
    static const enum remote_fault faults[] = {REMOTE_FAULT_NONE, REMOTE_FAULT_UNANSWERED,
                                               REMOTE_FAULT_CRASH_LATE};

    (void)state;
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
        struct meanwhile m = {.listed = ""};
        struct remote_world rw;
        bool fired;
        int nth = 0;

        do {
            remote_world_open(&rw, REMOTE_G3);
            rw.between = look_meanwhile;
            rw.between_ctx = &m;
            rw.fault = faults[f];
            rw.fault_in = ++nth;
            (void)put(&rw, G, body_a);
            for (int i = 0; i < 6; i++) {
                (void)remote_world_run(&rw);
                remote_succeed_all(&rw);
                remote_world_wait(&rw, 5 * HFD_US_PER_S);
            }
            assert_string_equal(listed(&rw), "");
            assert_true(orphans(&rw).as.checked_us > 0);
            assert_int_equal(rw.posts, 2);
            fired = rw.fired && faults[f] != REMOTE_FAULT_NONE;
            remote_world_close(&rw);
        } while (fired && nth < 12);
        assert_true(m.done);
    }
}

/*
 * A PUT that may adopt an orphan hides it at once. A copy is listed again when the PUT has adopted
 * another one.
 */
static void taken_over(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "c-one", OURS(G));
    (void)remote_add(&rw, NULL, "c-copy", OURS(G));
    search(&rw);
    assert_string_equal(listed(&rw), "cluster c-one res-1; cluster c-copy res-1; ");
    (void)put(&rw, G, body_bare);
    assert_string_equal(listed(&rw), "");
    assert_int_equal(remove_orphan(&rw, id_of(remote_find(&rw, "c-one"))), HFD_CONFLICT);
    assert_non_null(strstr(rw.w.err.msg, "may become a part of resource res-1"));
    until_ready(&rw, G);
    assert_string_equal(listed(&rw), "cluster c-copy res-1; ");
    assert_int_equal(remove_orphan(&rw, id_of(remote_find(&rw, "c-one"))), HFD_CONFLICT);
    assert_non_null(strstr(rw.w.err.msg, "belongs to resource res-1"));
    assert_int_equal(rw.posts, 0);
    assert_int_equal(remove_orphan(&rw, id_of(remote_find(&rw, "c-copy"))), HFD_OK);
    until_done(&rw);
    assert_string_equal(listed(&rw), "");
    assert_false(is_deleting(remote_find(&rw, "c-one")));
    assert_int_equal(remote_count(&rw, "Cluster"), 1);
    remote_world_close(&rw);
}

static hfd_rc txn_end(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct step *s = arg;
    const hfd_rc rc = hfd_resource_row_delete(tx, HFD_SLICE(G), err);

    return rc == HFD_OK ? hfd_backend_remote.forget(
                              tx,
                              &(struct hfd_backend_subject){.guresid = HFD_SLICE(G),
                                                            .now_us = s->rw->w.clock.wall_us},
                              err)
                        : rc;
}

static void end_meanwhile(struct remote_world *rw, const struct hfd_remote_request *request)
{
    struct step s = {.rw = rw};

    if (request->step != HFD_STEP_SEARCH || remote_find(rw, "c-one") == NULL)
        return;
    remote_remove(rw, remote_find(rw, "c-one"));
    assert_int_equal(hfd_store_update_wait(rw->w.store, txn_end, &s, &rw->w.err), HFD_OK);
}

/*
 * A resource that ends is not listed: not by a page that is older, and not because it once was an
 * orphan.
 */
static void not_what_has_ended(void **state)
{
    struct remote_world rw;

    (void)state;
    for (int orphan = 0; orphan < 2; orphan++) {
        remote_world_open(&rw, REMOTE_G3);
        if (orphan)
            (void)remote_add(&rw, id_of(remote_add(&rw, NULL, "c-one", OURS(G))), "np-a", OURS(G));
        search(&rw);
        (void)put(&rw, G, body_a);
        until_ready(&rw, G);
        assert_int_equal(rw.posts, orphan ? 0 : 2);
        if (!orphan)
            rw.between = end_meanwhile;
        else
            end_meanwhile(&rw, &(struct hfd_remote_request){.step = HFD_STEP_SEARCH});
        assert_string_equal(listed(&rw), "");
        if (!orphan)
            search(&rw);
        assert_string_equal(listed(&rw), "");
        assert_int_equal(remote_count(&rw, "Cluster"), 0);
        remote_world_close(&rw);
    }
}

/* ---- deleting ---- */

/*
 * A cluster that is to be deleted takes its nodepools along; each fault at each request comes to
 * the same, and nothing else goes.
 */
static void deleted_with_each_fault(void **state)
{
    (void)state;
    for (int fault = REMOTE_FAULT_NONE; fault < REMOTE_FAULTS; fault++) {
        struct remote_world rw;
        bool fired;
        int nth = 0;

        do {
            json_t *lost;

            remote_world_open(&rw, fault % 2 == 0 ? REMOTE_G3 : REMOTE_G31);
            lost = remote_add(&rw, NULL, "lost", OURS(G));
            (void)remote_add(&rw, NULL, "lost-too", OURS(G));
            (void)remote_add(&rw, id_of(lost), "np-lost", OURS(G));
            search(&rw);
            rw.fault = (enum remote_fault)fault;
            rw.fault_in = ++nth;
            assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_OK);
            assert_int_equal(remove_orphan(&rw, id_of(lost)),
                             HFD_OK); /* a repeat changes nothing */
            assert_string_equal(
                listed(&rw),
                "cluster lost res-1 wanted; cluster lost-too res-1; nodepool np-lost res-1; ");
            until_done(&rw);
            search(&rw);
            assert_string_equal(listed(&rw), "cluster lost-too res-1; ");
            assert_false(is_deleting(remote_find(&rw, "lost-too")));
            assert_int_equal(json_array_size(rw.resources), 1);
            fired = rw.fired && fault != REMOTE_FAULT_NONE;
            remote_world_close(&rw);
        } while (fired && nth < 20);
        assert_true(fault == REMOTE_FAULT_NONE || nth > 4);
    }
}

/* While it goes on, it is listed, as HyperFleet has it, and looked at less and less. */
static void deleting_is_listed(void **state)
{
    struct remote_world rw;
    json_t *lost;
    int before;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    lost = remote_add(&rw, NULL, "lost", OURS(G));
    search(&rw);
    before = rw.requests;
    assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_OK);
    (void)remote_world_run(&rw);
    assert_int_equal(rw.requests - before, 3);
    assert_string_equal(listed(&rw), "cluster lost res-1 deleting wanted; ");
    for (int64_t end_us = rw.w.clock.wall_us + 3600 * HFD_US_PER_S; rw.w.clock.wall_us < end_us;) {
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
    }
    assert_in_range(rw.requests - before, 10, 120);
    assert_string_equal(listed(&rw), "cluster lost res-1 deleting wanted; ");
    remote_remove(&rw, lost);
    until_done(&rw);
    assert_string_equal(listed(&rw), "");
    remote_world_close(&rw);
}

static void put_meanwhile(struct remote_world *rw, const struct hfd_remote_request *request)
{
    struct meanwhile *m = rw->between_ctx;

    if (request->step != HFD_STEP_ORPHAN_GET && request->step != HFD_STEP_ORPHAN_DELETE)
        return;
    if (m->in <= 0 || --m->in > 0)
        return;
    m->done = true;
    (void)put(rw, G, body_a);
}

/*
 * A PUT of its GUResID before any step of the deletion, and between any request of it and its
 * answer: the resource is never without.
 */
static void put_between_any_two_steps(void **state)
{
    struct meanwhile m = {0};
    int nth = 0;

    (void)state;
    do {
        struct remote_world rw;
        json_t *lost;
        bool survived;

        remote_world_open(&rw, REMOTE_G3);
        lost = remote_add(&rw, NULL, "c-one", OURS(G));
        search(&rw);
        m = (struct meanwhile){.in = nth};
        rw.between = put_meanwhile;
        rw.between_ctx = &m;
        assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_OK);
        if (nth == 0)
            (void)put(&rw, G, body_a);
        (void)remote_world_run(&rw);
        survived = !is_deleting(lost);
        assert_int_equal(survived, nth < 2); /* before DELETE is sent it is the PUT that counts */
        if (nth == 0 || m.done) {
            until_ready(&rw, G);
            assert_int_equal(rw.posts, survived ? 1 : 2);
            assert_false(is_deleting(remote_find(&rw, "c-one")));
            search(&rw);
            assert_string_equal(listed(&rw), "");
        }
        remote_world_close(&rw);
    } while (nth++ == 0 || m.done);
    assert_int_equal(nth, 5);
}

/*
 * Its labels are others when it is looked at before the deletion: it is left alone, and not listed
 * any more.
 */
static void others_by_now(void **state)
{
    static const char *const labels[] = {THEIRS, OURS("res-2"), "{}",
                                         "{\"" HFD_OWNER_LABEL "\":\"" REMOTE_OWNER "\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        struct remote_world rw;
        json_t *lost;

        remote_world_open(&rw, REMOTE_G31);
        lost = remote_add(&rw, NULL, "lost", OURS(G));
        search(&rw);
        (void)json_object_set_new(lost, "labels", json_loads(labels[i], 0, NULL));
        assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_OK);
        (void)remote_world_run(&rw);
        assert_string_equal(listed(&rw), "");
        assert_false(is_deleting(lost));
        remote_world_close(&rw);
    }
}

/*
 * A cluster with a resource's nodepool in it is not deleted, asked for before or after that was
 * made.
 */
static void inhabited(void **state)
{
    static const char pool[] = "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{"
                               "\"cluster_id\":\"%s\",\"nodepool\":{\"name\":"
                               "\"np-x\",\"spec\":{}}}}}";

    (void)state;
    for (int after = 0; after < 2; after++) {
        struct remote_world rw;
        json_t *lost;
        char body[256];

        remote_world_open(&rw, REMOTE_G3);
        lost = remote_add(&rw, NULL, "lost", OURS(G));
        search(&rw);
        (void)snprintf(body, sizeof(body), pool, id_of(lost));
        if (after)
            assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_OK);
        (void)put(&rw, "pool-1", body);
        until_ready(&rw, "pool-1");
        if (!after) {
            assert_int_equal(remove_orphan(&rw, id_of(lost)), HFD_CONFLICT);
            assert_non_null(strstr(rw.w.err.msg, "contains a nodepool of resource pool-1"));
        }
        assert_string_equal(listed(&rw), after ? "cluster lost res-1: it was not deleted: a "
                                                 "nodepool of a resource was made in it meanwhile; "
                                               : "cluster lost res-1; ");
        assert_false(is_deleting(lost));
        remote_world_close(&rw);
    }
}

/* An unknown id is not deleted. */
static void only_what_is_known(void **state)
{
    struct remote_world rw;
    json_t *plain, *others;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    plain = remote_add(&rw, NULL, "plain", "{}");
    others = remote_add(&rw, NULL, "others", THEIRS);
    search(&rw);
    assert_int_equal(remove_orphan(&rw, id_of(plain)), HFD_NOT_FOUND);
    assert_int_equal(remove_orphan(&rw, id_of(others)), HFD_NOT_FOUND);
    assert_int_equal(remove_orphan(&rw, "2nothing"), HFD_NOT_FOUND);
    assert_non_null(strstr(rw.w.err.msg, "no orphan '2nothing' is known"));
    remote_world_close(&rw);
}

/* ---- remotes that do not do it ---- */

/*
 * An old generation cannot delete. The list says so and what to do. The driver does not try again
 * by itself, and a client can.
 */
static void old_ones_cannot_delete(void **state)
{
    struct remote_world rw;
    int before;

    (void)state;
    remote_world_open(&rw, REMOTE_G2);
    (void)remote_add(&rw, NULL, "lost", OURS(G));
    search(&rw);
    for (int i = 0; i < 2; i++) {
        before = rw.requests;
        assert_int_equal(remove_orphan(&rw, id_of(remote_find(&rw, "lost"))), HFD_OK);
        (void)remote_world_run(&rw);
        assert_int_equal(rw.requests - before, 2);
        assert_string_equal(
            listed(&rw),
            "cluster lost res-1: this HyperFleet cannot delete clusters (it answered 501 to "
            "DELETE): its version is too "
            "old for that. Remove the cluster in HyperFleet, or upgrade it and delete again; ");
    }
    remote_world_close(&rw);
}

/*
 * The answers of a remote to a list, the error that each gives, and how soon the next search comes.
 */
static void lists_that_fail(void **state)
{
    static const struct {
        int status;
        const char *body, *words;
        bool soon;
    } rows[] = {
        {503, "{\"code\":\"HYPERFLEET-SVC-001\",\"detail\":\"busy\"}",
         "HyperFleet answered 503: busy", true},
        {401, "{\"code\":\"HYPERFLEET-AUT-001\"}",
         "HyperFleet refused the driver's credentials (it answered 401)", true},
        {302, NULL, "there is no HyperFleet at the configured address (it answered 302)", true},
        {404, "{\"code\":\"HYPERFLEET-NTF-000\"}",
         "there is no HyperFleet at the configured address (it answered 404)", true},
        {200, "{\"items\":\"none\"}", "HyperFleet answered 200 with a document that cannot be read",
         true},
        {400, "{\"code\":\"HYPERFLEET-VAL-005\",\"detail\":\"no search\"}",
         "this HyperFleet cannot list clusters by label: look for orphans there, by their label "
         "humanitec_guresid "
         "(HyperFleet answered 400: no search)",
         false},
        {413, "{}", "an answer that is not HyperFleet's: 413, no content type", true},
        {501, "{\"code\":\"HYPERFLEET-INT-003\"}",
         "this HyperFleet cannot list clusters by label: look for orphans there, by their label "
         "humanitec_guresid "
         "(HyperFleet answered 501)",
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct remote_world rw;
        int64_t before;

        remote_world_open(&rw, REMOTE_G3);
        (void)remote_add(&rw, NULL, "lost", OURS(G));
        search(&rw);
        rw.refuse_status = rows[i].status;
        rw.refuse_body = rows[i].body;
        search(&rw);
        assert_string_equal(listed(&rw), "cluster lost res-1; "); /* what was known is */
        if (!hfd_slice_is(orphans(&rw).as.error, rows[i].words))
            fail_msg("row %zu: %.*s", i, HFD_SLICE_FMT(orphans(&rw).as.error));
        rw.refuse_status = 0;
        before = rw.w.clock.wall_us;
        remote_world_wait(&rw, INT64_C(1000000) * HFD_US_PER_S);
        assert_int_equal(rw.w.clock.wall_us - before < 60 * HFD_US_PER_S, rows[i].soon);
        (void)remote_world_run(&rw);
        assert_int_equal(orphans(&rw).as.error.len, 0);
        remote_world_close(&rw);
    }
}

/* Hostile documents: labels that are no GUResID are passed over. */
static void labels_that_are_no_guresid(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)remote_add(&rw, NULL, "empty", OURS(""));
    (void)remote_add(
        &rw, NULL, "long",
        OURS("0123456789012345678901234567890123456789012345678901234567890123456789"));
    (void)remote_add(&rw, NULL, "star", OURS("*"));
    search(&rw);
    assert_string_equal(listed(&rw), "");
    remote_world_close(&rw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_ours),
        cmocka_unit_test(many_pages),
        cmocka_unit_test(searched_again_once_in_a_while),
        cmocka_unit_test(not_what_is_being_made),
        cmocka_unit_test(taken_over),
        cmocka_unit_test(not_what_has_ended),
        cmocka_unit_test(deleted_with_each_fault),
        cmocka_unit_test(deleting_is_listed),
        cmocka_unit_test(put_between_any_two_steps),
        cmocka_unit_test(others_by_now),
        cmocka_unit_test(inhabited),
        cmocka_unit_test(only_what_is_known),
        cmocka_unit_test(old_ones_cannot_delete),
        cmocka_unit_test(lists_that_fail),
        cmocka_unit_test(labels_that_are_no_guresid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
