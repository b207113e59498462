/* See take.h. */
#include "driver/backend/remote/take.h"

#include "driver/backend/remote/creation.h"
#include "driver/backend/remote/due.h"
#include "driver/backend/remote/refuse.h"
#include "driver/backend/remote/take_find.h"
#include "driver/backend/remote/take_many.h"
#include "driver/backend/remote/take_orphans.h"
#include "driver/backend/remote/take_part.h"
#include "driver/backend/remote/take_route.h"
#include "driver/base/check.h"

/* A pass reads all reports if that was last done this number of watch intervals ago. */
#define ALL_REPORTS_EVERY 3

/* ---- one resource ---- */

static hfd_rc take_step(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *part;

    if (t->request->step == HFD_STEP_FIND)
        return hfd_take_find(t, err);
    if (t->request->step == HFD_STEP_FIND_NAME)
        return hfd_take_find_name(t, err);
    if (t->request->step == HFD_STEP_POOLS)
        return hfd_take_pools(t, err);
    part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    if (part != NULL && part->exists)
        return hfd_take_part(t, part, err);
    /* The part was removed after the request: the next pass finds out what to do. */
    hfd_pass_end(t->m);
    t->wait_until_us = t->now_us;
    return HFD_OK;
}

static hfd_rc take_route(struct hfd_take *t, struct hfd_err *err)
{
    if (hfd_take_route(t))
        return HFD_OK;
    return t->verdict == HFD_ON_REFUSED ? hfd_refuse_credentials(t, err)
                                        : hfd_due_later_by_answer(t, err);
}

/* Returns whether the answer to a list by label or name is 404. */
static bool is_list_missing(const struct hfd_take *t)
{
    return t->verdict == HFD_ON_MISSING &&
           (t->request->step == HFD_STEP_FIND || t->request->step == HFD_STEP_FIND_NAME);
}

/* Takes what is the same for all steps, and leaves the rest to the step. */
static hfd_rc take_answer(struct hfd_take *t, struct hfd_err *err)
{
    if (t->request->step == HFD_STEP_CHECK_ROUTE)
        return take_route(t, err);
    if (t->request->step == HFD_STEP_POST)
        hfd_creation_conclude(t);
    if (is_list_missing(t))
        return hfd_take_find_missing(t, err);
    switch (t->verdict) {
    case HFD_ON_WELL:
    case HFD_ON_MISSING:
        break;
    case HFD_ON_REFUSED:
        return hfd_refuse_credentials(t, err);
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_INVALID:
    case HFD_ON_UNABLE:
        if (t->request->method == HFD_REMOTE_GET)
            return hfd_due_later_by_answer(t, err);
        break;
    case HFD_ON_LATER:
    case HFD_ON_WRONG:
        return hfd_due_later_by_answer(t, err);
    }
    return take_step(t, err);
}

/* The row of the work after an answer that was not a failure. */
static void set_due(struct hfd_take *t)
{
    const struct hfd_pass_part *own = hfd_pass_own(&t->rows);
    struct hfd_remote_row *row = &t->rows.remote;

    row->tries = row->refusals = row->behind_us = 0;
    row->error = HFD_SLICE_NONE;
    row->checked_us = t->now_us;
    row->watched = hfd_due_watched(&t->rows);
    row->due_us = t->wait_until_us != 0 ? t->wait_until_us : t->now_us + hfd_due_interval_us(t);
    if (own != NULL && own->exists)
        return;
    hfd_pass_end(t->m);
    row->due_us = INT64_MAX; /* nothing is left to look at, until a PUT or DELETE */
}

/* Has the driver core say anew what the resource waits for. */
static hfd_rc tell_trouble(struct hfd_take *t, struct hfd_err *err)
{
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem};

    return t->policy->on_trouble != NULL ? t->policy->on_trouble(t->policy->observer, t->tx, &call,
                                                                 t->rows.remote.guresid, err)
                                         : HFD_OK;
}

/* Writes the row of the work, if it still exists. */
static hfd_rc finish(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_remote_row now;
    hfd_rc rc = hfd_remote_row_get(t->tx, t->rows.remote.guresid, t->mem, &now, err);

    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && now.goal == HFD_GOAL_ABSENT)) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    if (!t->failed)
        set_due(t);
    rc = hfd_remote_row_put(t->tx, &t->rows.remote, err);
    return rc == HFD_OK && !hfd_slice_eq(now.error, t->rows.remote.error) ? tell_trouble(t, err)
                                                                          : rc;
}

/*
 * Keeps the row's counters of before the first answer. Each answer starts from them: failures in a
 * row are counted per pass.
 */
static void begin(struct hfd_take *t)
{
    struct hfd_remote_row *row = &t->rows.remote;

    if (t->m->before.answers++ == 0) {
        t->m->reports.all = hfd_due_is_settled(&t->rows) ||
                            t->now_us - row->full_us >= ALL_REPORTS_EVERY * t->policy->watch_us;
        row->full_us = t->m->reports.all ? t->now_us : row->full_us;
        t->m->before.tries = row->tries;
        t->m->before.refusals = row->refusals;
        t->m->before.behind_us = row->behind_us;
    }
    row->tries = t->m->before.tries;
    row->refusals = t->m->before.refusals;
    row->behind_us = t->m->before.behind_us;
}

static hfd_rc take_resource(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = hfd_pass_rows_load(t->tx, t->pass->work.guresid, t->mem, &t->rows, err);

    if (rc != HFD_OK)
        return rc;
    if (!t->rows.found) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    begin(t);
    rc = take_answer(t, err);
    if (rc == HFD_OK)
        rc = hfd_take_drop_uncreated(t, err);
    return rc == HFD_OK ? finish(t, err) : rc;
}

/* ---- all work ---- */

/* Reads the document, and finds the verdict. A good answer without a document is not good. */
static hfd_rc read_answer(struct hfd_take *t, struct hfd_err *err)
{
    const struct hfd_remote_answer *a = t->answer;
    struct hfd_err why;
    hfd_rc rc = HFD_OK;

    if (a->arrived && a->is_json && (a->status < 200 || a->status > 299))
        rc = hfd_wire_problem_read(a->body, t->mem, &t->problem, err);
    if (rc != HFD_OK)
        return rc;
    t->verdict = hfd_remote_verdict_of(t->request->method, a, &t->problem);
    if (t->verdict != HFD_ON_WELL || a->body.len == 0)
        return HFD_OK;
    rc = hfd_json_parse(a->body, &t->doc, &why);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    if (rc != HFD_OK && t->request->method != HFD_REMOTE_DELETE)
        t->verdict = HFD_ON_LATER;
    return HFD_OK;
}

static hfd_rc take_work(struct hfd_take *t, struct hfd_err *err)
{
    const enum hfd_remote_work_kind kind = hfd_remote_work_kind(&t->pass->work);

    if (kind == HFD_REMOTE_WORK_MANY)
        return hfd_take_many(t, err);
    if (kind == HFD_REMOTE_WORK_SEARCH)
        return hfd_take_search(t, err);
    if (hfd_take_is_doubtful(t)) {
        hfd_take_doubt(t);
        return HFD_OK;
    }
    return kind == HFD_REMOTE_WORK_ORPHAN ? hfd_take_orphan(t, err) : take_resource(t, err);
}

hfd_rc hfd_pass_take(struct hfd_txn *tx, struct hfd_pass *pass,
                     const struct hfd_remote_exchange *exchange, struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_take t = {.tx = tx,
                         .pass = pass,
                         .policy = pass->policy,
                         .m = &pass->then,
                         .mem = &mem,
                         .now_us = exchange->now_us,
                         .request = exchange->request,
                         .answer = exchange->answer};
    hfd_rc rc;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    pass->then = pass->now;
    rc = read_answer(&t, err);
    if (rc == HFD_OK)
        rc = take_work(&t, err);
    if (rc != HFD_OK)
        pass->then = pass->now;
    hfd_pass_invariant(pass);
    json_decref(t.doc);
    hfd_arena_fini(&mem);
    return rc;
}
