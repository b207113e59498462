/* What is due, and passes. See pass.h. */
#include "driver/backend/remote/pass_int.h"

#include <stdlib.h>

#include "driver/base/check.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"
#include "store/rows_orphan.h"
#include "store/rows_remote_orphan.h"

/*
 * What one pass remembers: documents of its parts that are waiting for their reports, or to be
 * compared.
 */
#define PASS_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define REQUEST_MAX_BYTES ((size_t)16 * 1024 * 1024)

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory for work against HyperFleet");
}

/* ---- due ---- */

static void add_work(const struct hfd_remote_list *list, size_t limit, struct hfd_remote_work *out,
                     size_t *count)
{
    for (size_t i = 0; i < list->count && *count < limit; i++)
        out[(*count)++] = (struct hfd_remote_work){.guresid = list->rows[i].guresid};
}

static hfd_rc add_orphans(struct hfd_txn *tx, int64_t now_us, size_t limit, struct hfd_arena *mem,
                          struct hfd_remote_work *out, size_t *count, struct hfd_err *err)
{
    struct hfd_remote_orphan_list list;
    hfd_rc rc = hfd_remote_orphan_row_due(
        tx, &(struct hfd_remote_orphan_query){.now_us = now_us, .limit = (int64_t)limit}, mem,
        &list, err);

    for (size_t i = 0; rc == HFD_OK && i < list.count && *count < limit; i++) {
        const struct hfd_orphan_row *o = &list.rows[i].orphan;

        out[(*count)++] =
            (struct hfd_remote_work){.guresid = o->label, .orphan = o->id, .kind = o->kind};
    }
    return rc;
}

/* When something will be due that is not yet. */
static hfd_rc next_due(struct hfd_txn *tx, int64_t now_us, int64_t *next_us, struct hfd_err *err)
{
    int64_t at_us;
    hfd_rc rc = hfd_remote_orphan_row_next(tx, now_us, next_us, err);

    for (int w = HFD_WATCHED_NOT; rc == HFD_OK && w <= HFD_WATCHED_IDLY; w++) {
        rc = hfd_remote_row_next(tx, (enum hfd_watched)w, now_us, &at_us, err);
        *next_us = rc == HFD_OK && at_us < *next_us ? at_us : *next_us;
    }
    return rc;
}

hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_remote_policy *policy, int64_t now_us,
                      size_t limit, struct hfd_arena *mem, struct hfd_remote_work *out,
                      size_t *count, int64_t *next_us, struct hfd_err *err)
{
    struct hfd_remote_list own, watched, settled;
    hfd_rc rc;

    *count = 0;
    *next_us = INT64_MAX;
    if (limit == 0)
        return HFD_OK;
    rc = hfd_remote_row_due(tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, now_us, (int64_t)limit},
                            mem, &own, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx,
                                &(struct hfd_remote_due){HFD_WATCHED_CLOSELY,
                                                         now_us + HFD_REMOTE_AHEAD_US(policy),
                                                         HFD_REMOTE_MANY},
                                mem, &watched, err);
    if (rc == HFD_OK)
        rc = hfd_remote_row_due(tx,
                                &(struct hfd_remote_due){HFD_WATCHED_IDLY, now_us, (int64_t)limit},
                                mem, &settled, err);
    if (rc == HFD_OK)
        rc = next_due(tx, now_us, next_us, err);
    if (rc != HFD_OK)
        return rc;
    if (watched.count >= HFD_REMOTE_MANY && watched.rows[0].due_us <= now_us) {
        out[(*count)++] =
            (struct hfd_remote_work){.guresid = HFD_SLICE_NONE, .kind = HFD_KIND_CLUSTER};
        watched.count = 0;
    }
    while (watched.count > 0 && watched.rows[watched.count - 1].due_us > now_us)
        watched.count--;
    add_work(&own, limit, out, count);
    add_work(&watched, limit, out, count);
    rc = add_orphans(tx, now_us, limit, mem, out, count, err);
    if (rc == HFD_OK)
        add_work(&settled, limit, out, count);
    return rc;
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
    /*
     * What waits after a failure, for something else, or has an end, is not hurried by being asked
     * for.
     */
    if (rc == HFD_OK && row.due_us > due_us && row.due_us != INT64_MAX &&
        row.checked_us < older_us && row.tries == 0 && row.goal != HFD_GOAL_OBSERVE) {
        row.due_us = due_us;
        rc = hfd_remote_row_put(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* ---- passes ---- */

hfd_rc hfd_pass_new(const struct hfd_remote_policy *policy, const struct hfd_remote_work *work,
                    struct hfd_pass **out, struct hfd_err *err)
{
    struct hfd_pass *pass = calloc(1, sizeof(*pass));

    *out = NULL;
    if (pass == NULL || work->guresid.len >= sizeof(pass->guresid) ||
        work->orphan.len > sizeof(pass->orphan)) {
        free(pass);
        return no_memory(err);
    }
    pass->magic = HFD_PASS_MAGIC;
    pass->policy = policy;
    pass->work = *work;
    memcpy(pass->guresid, work->guresid.len > 0 ? work->guresid.p : "", work->guresid.len);
    memcpy(pass->orphan, work->orphan.len > 0 ? work->orphan.p : "", work->orphan.len);
    pass->work.guresid = (hfd_slice){pass->guresid, work->guresid.len};
    pass->work.orphan = (hfd_slice){pass->orphan, work->orphan.len};
    hfd_arena_init(&pass->mem, PASS_MAX_BYTES);
    hfd_arena_init(&pass->request, REQUEST_MAX_BYTES);
    *out = pass;
    return HFD_OK;
}

void hfd_pass_free(struct hfd_pass *pass)
{
    if (pass == NULL)
        return;
    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    pass->magic = 0;
    hfd_arena_fini(&pass->mem);
    hfd_arena_fini(&pass->request);
    free(pass);
}

const struct hfd_remote_work *hfd_pass_work(const struct hfd_pass *pass)
{
    return &pass->work;
}

/* ---- what a step is chosen from ---- */

static hfd_rc load_parts(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_pass_rows *out, struct hfd_err *err)
{
    struct hfd_part_list rows;
    hfd_rc rc = hfd_part_row_list(tx, guresid, mem, &rows, err);

    if (rc != HFD_OK)
        return rc;
    out->parts = hfd_arena_array(mem, rows.count + 1, sizeof(*out->parts));
    if (out->parts == NULL)
        return no_memory(err);
    out->count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct hfd_pass_part *p = &out->parts[i];

        p->row = rows.rows[i];
        rc = hfd_fleet_row_get(tx, p->row.fleet_id, mem, &p->fleet, err);
        if (rc != HFD_OK && rc != HFD_NOT_FOUND)
            return rc;
        p->exists = rc == HFD_OK;
        if (out->own == NULL && p->row.kind == out->res.kind)
            out->own = p;
    }
    return HFD_OK;
}

hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                          struct hfd_pass_rows *out, bool *found, struct hfd_err *err)
{
    hfd_rc rc;

    *found = false;
    *out = (struct hfd_pass_rows){.count = 0};
    rc = hfd_remote_row_get(tx, guresid, mem, &out->up, err);
    if (rc == HFD_OK && out->up.goal != HFD_GOAL_ABSENT)
        rc = hfd_resource_row_get(tx, guresid, mem, &out->res, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->up.goal == HFD_GOAL_ABSENT))
        return HFD_OK;
    if (rc != HFD_OK)
        return rc;
    *found = true;
    return load_parts(tx, guresid, mem, out, err);
}

struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *s, hfd_slice fleet_id)
{
    for (size_t i = 0; i < s->count; i++)
        if (hfd_slice_eq(s->parts[i].row.fleet_id, fleet_id))
            return &s->parts[i];
    return NULL;
}

const struct hfd_pass_part *hfd_pass_first_held(const struct hfd_pass_rows *s,
                                                const struct hfd_held *list)
{
    for (; list != NULL; list = list->next) {
        const struct hfd_pass_part *p = hfd_pass_part_by_id(s, list->fleet_id);

        if (p != NULL && p->exists)
            return p;
    }
    return NULL;
}

const struct hfd_seen *hfd_pass_seen(const struct hfd_memory *m, hfd_slice fleet_id)
{
    for (const struct hfd_seen *seen = m->seen; seen != NULL; seen = seen->next)
        if (hfd_slice_eq(seen->fleet_id, fleet_id))
            return seen->unseen ? NULL : seen;
    return NULL;
}

const struct hfd_pass_part *hfd_pass_first_unseen(const struct hfd_pass_rows *s,
                                                  const struct hfd_memory *m)
{
    const struct hfd_pass_part *leaving = NULL;

    for (size_t i = 0; i < s->count; i++) {
        const struct hfd_pass_part *p = &s->parts[i];

        if (!p->exists || !hfd_backend_id_is_given(p->row.fleet_id) ||
            hfd_pass_seen(m, p->row.fleet_id) != NULL)
            continue;
        if (!p->row.leaving)
            return p;
        leaving = leaving != NULL ? leaving : p;
    }
    return leaving;
}

bool hfd_pass_noted(const struct hfd_mark *list, hfd_slice id)
{
    for (; list != NULL; list = list->next)
        if (hfd_slice_eq(list->id, id))
            return true;
    return false;
}
