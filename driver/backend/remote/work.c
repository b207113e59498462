/* Which work is due. See work.h. */
#include "driver/backend/remote/work.h"

#include "driver/backend/mirror.h"
#include "store/rows_remote.h"
#include "store/rows_remote_orphan.h"

/* With this number of observations due together, lists are fewer requests than single ones. */
#define MANY 5

/*
 * A list also observes resources that are due within this time. Otherwise each would soon be due
 * alone.
 */
static int64_t ahead_us(const struct hfd_remote_policy *policy)
{
    return policy->watch_us / 4;
}

enum hfd_remote_work_kind hfd_remote_work_kind(const struct hfd_remote_work *work)
{
    if (work->guresid.len == 0)
        return HFD_REMOTE_WORK_MANY;
    if (work->orphan.len > 0)
        return HFD_REMOTE_WORK_ORPHAN;
    return hfd_slice_eq(work->guresid, HFD_REMOTE_ORPHANS) ? HFD_REMOTE_WORK_SEARCH
                                                           : HFD_REMOTE_WORK_RESOURCE;
}

static void add_rows(const struct hfd_remote_list *list, size_t limit, struct hfd_due *out)
{
    for (size_t i = 0; i < list->count && out->count < limit; i++)
        out->works[out->count++] = (struct hfd_remote_work){.guresid = list->rows[i].guresid,
                                                            .shards = list->rows[i].shard};
}

static hfd_rc add_orphans(struct hfd_txn *tx, const struct hfd_due_query *q, struct hfd_arena *mem,
                          struct hfd_due *out, struct hfd_err *err)
{
    struct hfd_remote_orphan_list list;
    hfd_rc rc = hfd_remote_orphan_row_due(
        tx,
        &(struct hfd_remote_orphan_query){
            .now_us = q->now_us, .limit = (int64_t)q->limit, .shards = q->shards},
        mem, &list, err);

    for (size_t i = 0; rc == HFD_OK && i < list.count && out->count < q->limit; i++) {
        const struct hfd_orphan_row *o = &list.rows[i].orphan;

        out->works[out->count++] =
            (struct hfd_remote_work){o->label, o->id, o->kind, list.rows[i].shard};
    }
    return rc;
}

/* The earliest time after now_us at which something is due. */
static hfd_rc next_due(struct hfd_txn *tx, const struct hfd_due_query *q, int64_t *next_us,
                       struct hfd_err *err)
{
    int64_t at_us;
    hfd_rc rc = hfd_remote_orphan_row_next(
        tx, &(struct hfd_remote_orphan_query){.now_us = q->now_us, .shards = q->shards}, next_us,
        err);

    for (int w = HFD_WATCHED_NOT; rc == HFD_OK && w <= HFD_WATCHED_IDLY; w++) {
        const struct hfd_remote_due due = {
            .watched = (enum hfd_watched)w, .now_us = q->now_us, .shards = q->shards};

        rc = hfd_remote_row_next(tx, &due, &at_us, err);
        *next_us = rc == HFD_OK && at_us < *next_us ? at_us : *next_us;
    }
    return rc;
}

/* Replaces resources in progress by one MANY, if there are enough of them. */
static void prefer_lists(const struct hfd_due_query *q, struct hfd_remote_list *watched,
                         struct hfd_due *out)
{
    if (watched->count >= MANY && watched->rows[0].due_us <= q->now_us) {
        out->works[out->count++] =
            (struct hfd_remote_work){.kind = HFD_KIND_CLUSTER, .shards = q->shards};
        watched->count = 0;
    }
    while (watched->count > 0 && watched->rows[watched->count - 1].due_us > q->now_us)
        watched->count--;
}

hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_due_query *q, struct hfd_arena *mem,
                      struct hfd_due *out, struct hfd_err *err)
{
    const struct hfd_remote_due not_watched = {HFD_WATCHED_NOT, q->now_us, (int64_t)q->limit,
                                               q->shards};
    const struct hfd_remote_due closely = {HFD_WATCHED_CLOSELY, q->now_us + ahead_us(q->policy),
                                           MANY, q->shards};
    const struct hfd_remote_due idly = {HFD_WATCHED_IDLY, q->now_us, (int64_t)q->limit, q->shards};
    struct hfd_remote_list own, watched, settled;
    hfd_rc rc;

    out->count = 0;
    out->next_us = INT64_MAX;
    if (q->limit == 0)
        return HFD_OK;
    rc = hfd_remote_row_due(tx, &not_watched, mem, &own, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx, &closely, mem, &watched, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx, &idly, mem, &settled, err);
    if (rc == HFD_OK)
        rc = next_due(tx, q, &out->next_us, err);
    if (rc != HFD_OK)
        return rc;
    prefer_lists(q, &watched, out);
    add_rows(&own, q->limit, out);
    add_rows(&watched, q->limit, out);
    rc = add_orphans(tx, q, mem, out, err);
    if (rc == HFD_OK)
        add_rows(&settled, q->limit, out);
    return rc;
}

/*
 * Returns whether a poll makes a row due earlier. It does not after a failure or a refusal, or
 * while the row waits for another resource.
 */
static bool can_hurry(const struct hfd_remote_row *row, int64_t due_us, int64_t older_us)
{
    return row->due_us > due_us && row->due_us != INT64_MAX && row->checked_us < older_us &&
           row->tries == 0 && row->goal != HFD_GOAL_OBSERVE;
}

hfd_rc hfd_remote_hurry(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us, int64_t now_us,
                        struct hfd_err *err)
{
    const int64_t quarter_us = (now_us - older_us) / 4;
    const int64_t due_us = quarter_us > 0 ? (now_us / quarter_us + 1) * quarter_us : now_us;
    struct hfd_remote_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, guresid, &mem, &row, err);
    if (rc == HFD_NOT_FOUND && hfd_slice_eq(guresid, HFD_REMOTE_ORPHANS)) {
        row = (struct hfd_remote_row){.guresid = HFD_REMOTE_ORPHANS,
                                      .goal = HFD_GOAL_ORPHANS,
                                      .watched = HFD_WATCHED_IDLY,
                                      .due_us = INT64_MAX - 1};
        rc = HFD_OK;
    }
    if (rc == HFD_OK && can_hurry(&row, due_us, older_us)) {
        row.due_us = due_us;
        rc = hfd_remote_row_put(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}
