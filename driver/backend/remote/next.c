/* Which phase a pass goes to next. See next.h and the diagram in pass.h. */
#include "driver/backend/remote/next.h"

#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/request.h"
#include "driver/base/check.h"
#include "store/rows_remote_orphan.h"

/* ---- a resource without an id ---- */

/* Returns whether the phase belongs to the search for an id, or its creation. */
static bool is_before_id(enum hfd_pass_phase phase)
{
    return phase == HFD_PASS_START || phase == HFD_PASS_FIND || phase == HFD_PASS_FIND_NAME ||
           phase == HFD_PASS_ASK_OWNER || phase == HFD_PASS_CREATE;
}

static enum hfd_pass_phase phase_without_id(struct hfd_request_maker *k,
                                            const struct hfd_pass_part *own)
{
    struct hfd_pass_memory *m = k->m;

    if (own->fleet.owner_id.len > 0 && !hfd_backend_id_is_given(own->fleet.owner_id))
        return HFD_PASS_DONE; /* its cluster comes first, and makes this work due
                                 again */
    if (!is_before_id(m->phase))
        hfd_pass_move(m, HFD_PASS_START);
    if (m->phase == HFD_PASS_START)
        return HFD_PASS_FIND;
    if (m->phase != HFD_PASS_CREATE || k->rows.remote.goal == HFD_GOAL_MAKE)
        return m->phase;
    return m->creation.announced ? HFD_PASS_FIND : HFD_PASS_DONE; /* the goal changed meanwhile */
}

/* ---- a resource with an id ---- */

static bool has_pools(const struct hfd_pass_rows *rows)
{
    if (rows->res.kind != HFD_KIND_CLUSTER)
        return false;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].row.kind == HFD_KIND_NODEPOOL)
            return true;
    return rows->remote.goal == HFD_GOAL_ADOPT;
}

/* The first request of WRITE. */
struct write {
    enum hfd_pass_step step;
    const struct hfd_pass_part *part; /* NULL = nothing to write */
    const struct hfd_seen_part *seen;
};

static struct write write_of(const struct hfd_pass_memory *m, const struct hfd_pass_part *p)
{
    const struct hfd_seen_part *seen = hfd_pass_seen(m, p->row.fleet_id);

    if (!p->row.pending || p->row.leaving || p->fleet.deleted_us != 0)
        return (struct write){.part = NULL};
    if (!hfd_backend_id_is_given(p->row.fleet_id))
        return (struct write){hfd_pass_noted(m, p->row.fleet_id, HFD_PART_NAME_TAKEN)
                                  ? HFD_STEP_FIND_NAME
                                  : HFD_STEP_POST,
                              p, NULL};
    /* A later PUT may want what the remote has already: then its document is enough. */
    if (seen == NULL || (!seen->deleting && hfd_observe_equal(p, seen->spec, seen->labels)))
        return (struct write){HFD_STEP_GET, p, NULL};
    return (struct write){HFD_STEP_PATCH, seen->deleting ? NULL : p, seen};
}

static bool must_delete(const struct hfd_pass_memory *m, const struct hfd_pass_part *p)
{
    const struct hfd_seen_part *seen = hfd_pass_seen(m, p->row.fleet_id);

    return p->row.leaving && seen != NULL && !seen->deleting &&
           !hfd_pass_noted(m, p->row.fleet_id, HFD_PART_DELETE_SENT);
}

/* Deletions first. Nothing is written to a cluster that is being deleted. */
static struct write first_write(const struct hfd_request_maker *k, const struct hfd_seen_part *own)
{
    const struct hfd_pass_rows *rows = &k->rows;
    struct write w = {.part = NULL};

    if (rows->remote.goal != HFD_GOAL_MAKE || own->deleting)
        return w;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].exists && must_delete(k->m, &rows->parts[i]))
            return (struct write){HFD_STEP_DELETE, &rows->parts[i], NULL};
    for (size_t i = 0; w.part == NULL && i < rows->count; i++)
        if (rows->parts[i].exists)
            w = write_of(k->m, &rows->parts[i]);
    return w;
}

/* The first phase that has something to do. */
static enum hfd_pass_phase phase_with_id(const struct hfd_request_maker *k,
                                         const struct hfd_pass_part *own)
{
    const struct hfd_pass_memory *m = k->m;
    const struct hfd_seen_part *seen = hfd_pass_seen(m, own->row.fleet_id);

    if (seen == NULL)
        return HFD_PASS_LOOK;
    if (k->rows.remote.goal == HFD_GOAL_DELETE && !seen->deleting &&
        !hfd_pass_noted(m, own->row.fleet_id, HFD_PART_DELETE_SENT))
        return HFD_PASS_DELETE;
    if (has_pools(&k->rows) && !m->pools.complete)
        return HFD_PASS_LIST_POOLS;
    if (hfd_pass_first_held(m->worse, &k->rows) != NULL)
        return HFD_PASS_REPORTS_FIRST;
    if (hfd_pass_first_unseen(m, &k->rows) != NULL)
        return HFD_PASS_LOOK_REST;
    if (first_write(k, seen).part != NULL)
        return HFD_PASS_WRITE;
    return hfd_pass_first_held(m->held, &k->rows) != NULL ? HFD_PASS_REPORTS : HFD_PASS_DONE;
}

/* A part whose reports are half read goes on; else the first of the list. */
static const struct hfd_pass_part *reports_part(const struct hfd_request_maker *k,
                                                const struct hfd_held_part *list)
{
    const struct hfd_pass_list *reports = &k->m->reports.list;

    for (const struct hfd_held_part *h = list; reports->page > 0 && h != NULL; h = h->next) {
        const struct hfd_pass_part *p = hfd_pass_part_by_id(&k->rows, h->fleet_id);

        if (p != NULL && p->exists && hfd_slice_eq(h->fleet_id, reports->of))
            return p;
    }
    return hfd_pass_first_held(list, &k->rows);
}

/* ---- requests ---- */

static void request_write(struct hfd_request_maker *k, const struct hfd_pass_part *own)
{
    const struct write w = first_write(k, hfd_pass_seen(k->m, own->row.fleet_id));

    switch ((int)w.step) {
    case HFD_STEP_DELETE:
        hfd_request_delete(k, w.part);
        break;
    case HFD_STEP_FIND_NAME:
        hfd_request_find_name(k, w.part);
        break;
    case HFD_STEP_POST:
        hfd_request_post(k, w.part);
        break;
    case HFD_STEP_PATCH:
        hfd_request_patch(k, w.part, w.seen);
        break;
    default:
        hfd_request_get(k, w.part);
        break;
    }
}

static void request_for_phase(struct hfd_request_maker *k, const struct hfd_pass_part *own)
{
    switch ((int)k->m->phase) {
    case HFD_PASS_FIND:
        hfd_request_find(k, own);
        break;
    case HFD_PASS_FIND_NAME:
        hfd_request_find_name(k, own);
        break;
    case HFD_PASS_ASK_OWNER:
        hfd_request_owner(k, own);
        break;
    case HFD_PASS_CREATE:
        hfd_request_post(k, own);
        break;
    case HFD_PASS_LOOK:
        hfd_request_get(k, own);
        break;
    case HFD_PASS_DELETE:
        hfd_request_delete(k, own);
        break;
    case HFD_PASS_LIST_POOLS:
        hfd_request_pools(k, own);
        break;
    case HFD_PASS_REPORTS_FIRST:
        hfd_request_reports(k, reports_part(k, k->m->worse));
        break;
    case HFD_PASS_LOOK_REST:
        hfd_request_get(k, hfd_pass_first_unseen(k->m, &k->rows));
        break;
    case HFD_PASS_WRITE:
        request_write(k, own);
        break;
    case HFD_PASS_REPORTS:
        hfd_request_reports(k, reports_part(k, k->m->held));
        break;
    default: /* DONE */
        break;
    }
}

static void move_to(struct hfd_pass_memory *m, enum hfd_pass_phase to)
{
    if (to != m->phase)
        hfd_pass_move(m, to);
}

/* ---- by kind of work ---- */

static hfd_rc next_of_resource(struct hfd_txn *tx, struct hfd_request_maker *k,
                               struct hfd_arena *mem)
{
    const struct hfd_pass_part *own;
    hfd_rc rc = hfd_pass_rows_load(tx, k->pass->work.guresid, mem, &k->rows, k->err);

    if (rc != HFD_OK)
        return rc;
    own = hfd_pass_own(&k->rows);
    if (!k->rows.found || own == NULL || !own->exists) {
        hfd_pass_end(k->m);
        return HFD_OK;
    }
    if (!hfd_backend_id_is_given(own->row.fleet_id))
        move_to(k->m, phase_without_id(k, own));
    else
        move_to(k->m, is_before_id(k->m->phase) ? HFD_PASS_LOOK : k->m->phase);
    if (hfd_backend_id_is_given(own->row.fleet_id))
        move_to(k->m, phase_with_id(k, own));
    request_for_phase(k, own);
    return HFD_OK;
}

static hfd_rc next_of_many(struct hfd_txn *tx, struct hfd_request_maker *k, struct hfd_arena *mem)
{
    const struct hfd_remote_due any = {HFD_WATCHED_CLOSELY, INT64_MAX, 1, k->pass->work.shards};
    struct hfd_remote_list first;
    hfd_rc rc = hfd_remote_row_due(tx, &any, mem, &first, k->err);

    if (rc != HFD_OK || first.count == 0)
        return rc;
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_MANY_CLUSTERS);
    hfd_request_many(k, k->m->phase == HFD_PASS_MANY_POOLS ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
                     first.rows[0].later_names);
    return HFD_OK;
}

static void next_of_search(struct hfd_request_maker *k)
{
    if (k->pass->policy->owner.len == 0)
        return; /* without the label of this server nothing is known to be ours */
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_SEARCH_CLUSTERS);
    hfd_request_search(k,
                       k->m->phase == HFD_PASS_SEARCH_POOLS ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER);
}

static hfd_rc next_of_orphan(struct hfd_txn *tx, struct hfd_request_maker *k, struct hfd_arena *mem)
{
    struct hfd_remote_orphan_row row;
    hfd_rc rc = hfd_remote_orphan_row_get(tx, k->pass->work.orphan, mem, &row, k->err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (k->m->phase == HFD_PASS_START)
        hfd_pass_move(k->m, HFD_PASS_ORPHAN_LOOK);
    hfd_request_orphan(
        k, k->m->phase == HFD_PASS_ORPHAN_DELETE ? HFD_REMOTE_DELETE : HFD_REMOTE_GET, &row.orphan);
    return HFD_OK;
}

static hfd_rc next_of_work(struct hfd_txn *tx, struct hfd_request_maker *k, struct hfd_arena *mem)
{
    if (k->m->phase == HFD_PASS_CHECK_ROUTE) {
        hfd_request_check_route(k);
        return HFD_OK;
    }
    switch (hfd_remote_work_kind(&k->pass->work)) {
    case HFD_REMOTE_WORK_MANY:
        return next_of_many(tx, k, mem);
    case HFD_REMOTE_WORK_SEARCH:
        next_of_search(k);
        return HFD_OK;
    case HFD_REMOTE_WORK_ORPHAN:
        return next_of_orphan(tx, k, mem);
    case HFD_REMOTE_WORK_RESOURCE:
        break;
    }
    return next_of_resource(tx, k, mem);
}

hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                     struct hfd_remote_request *out, struct hfd_err *err)
{
    struct hfd_request_maker k = {
        .pass = pass, .m = &pass->now, .out = out, .err = err, .rc = HFD_OK};
    struct hfd_arena mem;
    hfd_rc rc;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    *out = (struct hfd_remote_request){.path = HFD_SLICE_NONE};
    pass->now = pass->then;
    if (pass->now.began_us == 0)
        pass->now.began_us = pass->then.began_us = now_us;
    if (pass->now.phase == HFD_PASS_DONE)
        return HFD_OK;
    hfd_arena_fini(&pass->request);
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = next_of_work(tx, &k, &mem);
    hfd_arena_fini(&mem);
    rc = rc == HFD_OK ? k.rc : rc;
    if (rc != HFD_OK)
        *out = (struct hfd_remote_request){.path = HFD_SLICE_NONE};
    else if (out->path.p == NULL)
        hfd_pass_end(&pass->now);
    else if (out->step == HFD_STEP_POST)
        pass->now.creation.announced = false;
    hfd_pass_invariant(pass);
    return rc;
}
