/* See take_orphans.h. */
#include "driver/backend/remote/take_orphans.h"

#include "driver/backend/remote/due.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/take_list.h"
#include "driver/backend/remote/take_route.h"
#include "driver/backend/remote/words.h"
#include "driver/base/log.h"
#include "driver/fleet/names.h"
#include "store/rows_remote_orphan.h"

#define SEARCH_PAGES_MAX 2000
#define GURESID_MAX 63 /* the longest value of a label */

/* ---- the search ---- */

static bool is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return doc->guresid.len > 0 && doc->guresid.len <= GURESID_MAX &&
           !hfd_slice_eq(doc->guresid, HFD_REMOTE_ORPHANS) &&
           hfd_slice_eq(doc->made_by, t->policy->owner);
}

/* Returns whether its resource ended after the search began: the page may be older than that. */
static hfd_rc ended_meanwhile(const struct hfd_take *t, hfd_slice guresid, bool *yes,
                              struct hfd_err *err)
{
    struct hfd_remote_row up;
    hfd_rc rc = hfd_remote_row_get(t->tx, guresid, t->mem, &up, err);

    *yes = rc == HFD_OK && up.goal == HFD_GOAL_ABSENT && up.checked_us >= t->m->began_us;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Updates the row from the document. */
static void update_row(const struct hfd_take *t, const struct hfd_wire_resource *doc,
                       struct hfd_remote_orphan_row *row)
{
    const struct hfd_orphan_row was = row->orphan;

    row->orphan = (struct hfd_orphan_row){
        .label = doc->guresid,
        .id = doc->id,
        .kind = was.kind,
        .owner_id = doc->owner_id.len > 0 ? doc->owner_id : was.owner_id,
        .name = doc->name,
        .generation = doc->generation,
        .ready = doc->ready,
        .created_us = doc->created_us,
        .deleted_us = doc->deleted_us,
        .created_by = doc->created_by,
        .wanted_us = was.wanted_us,
        .error = was.error,
    };
    row->seen_us = t->now_us;
}

static hfd_rc take_item(struct hfd_take *t, const struct hfd_wire_resource *doc,
                        struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    struct hfd_orphan_claim claim;
    bool known, ended = false;
    hfd_rc rc;

    if (!is_ours(t, doc))
        return HFD_OK;
    rc = hfd_remote_orphan_row_get(t->tx, doc->id, t->mem, &row, err);
    known = rc == HFD_OK;
    if (rc == HFD_NOT_FOUND) {
        row = (struct hfd_remote_orphan_row){
            .orphan = {.kind = hfd_take_kind(t), .owner_id = HFD_SLICE("")}, .due_us = INT64_MAX};
        rc = ended_meanwhile(t, doc->guresid, &ended, err);
    }
    if (rc != HFD_OK || ended)
        return rc;
    update_row(t, doc, &row);
    rc = hfd_remote_orphan_claim(t->tx, &row.orphan, t->mem, &claim, err);
    if (rc != HFD_OK || (claim.is == HFD_ORPHAN_POSSIBLE && !known))
        return rc;
    if (claim.is == HFD_ORPHAN_OWNED)
        return hfd_remote_orphan_adopted(t->tx, doc->id, t->mem, err);
    row.due_us = row.orphan.wanted_us != 0 ? row.due_us : INT64_MAX;
    return hfd_remote_orphan_row_put(t->tx, &row, err);
}

/* Tries again soon. If this HyperFleet can never list so, tries again with the next search. */
static hfd_rc list_fails(struct hfd_take *t, struct hfd_err *err)
{
    const bool unable = hfd_due_cannot_list(t);
    hfd_slice words = hfd_words_answer(t);
    hfd_rc rc;

    if (unable && words.p != NULL)
        words = hfd_words_cannot_search(t, hfd_take_kind(t), words);
    rc = words.p != NULL ? hfd_due_later(t, err, "%.*s", HFD_SLICE_FMT(words))
                         : hfd_fail_nomem(err, "take HyperFleet's answer about an orphan");
    t->rows.remote.watched = HFD_WATCHED_IDLY;
    if (unable) {
        t->rows.remote.tries = 0;
        t->rows.remote.due_us = t->now_us + HFD_SEARCH_EVERY * t->policy->idle_us;
    }
    return rc;
}

/* Known orphans that the list did not show become due: only a GET shows whether they are gone. */
static hfd_rc list_ends(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc =
        hfd_remote_orphan_row_unseen(t->tx, hfd_take_kind(t), t->m->began_us, t->now_us, err);

    if (t->m->phase == HFD_PASS_SEARCH_CLUSTERS) {
        hfd_pass_move(t->m, HFD_PASS_SEARCH_POOLS);
        return rc;
    }
    hfd_pass_end(t->m);
    t->rows.remote.checked_us = t->m->began_us;
    t->rows.remote.tries = t->rows.remote.refusals = 0;
    t->rows.remote.error = HFD_SLICE("");
    return rc;
}

hfd_rc hfd_take_search(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc = hfd_remote_row_get(t->tx, HFD_REMOTE_ORPHANS, t->mem, &t->rows.remote, err);

    if (rc == HFD_NOT_FOUND) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK) {
        rc = list_fails(t, err);
        return rc == HFD_OK ? hfd_remote_row_put(t->tx, &t->rows.remote, err) : rc;
    }
    t->rows.remote.due_us = t->now_us + HFD_SEARCH_EVERY * t->policy->idle_us;
    rc = hfd_take_items(t, &page, take_item, err);
    if (rc == HFD_OK && hfd_take_page(t, &page, SEARCH_PAGES_MAX))
        rc = list_ends(t, err);
    return rc == HFD_OK ? hfd_remote_row_put(t->tx, &t->rows.remote, err) : rc;
}

/* ---- one orphan ---- */

static hfd_rc wait_until(struct hfd_take *t, struct hfd_remote_orphan_row *row, int64_t due_us,
                         hfd_slice error, struct hfd_err *err)
{
    hfd_pass_end(t->m);
    row->due_us = due_us;
    row->orphan.error = error;
    return error.p != NULL ? hfd_remote_orphan_row_put(t->tx, row, err)
                           : hfd_fail_nomem(err, "take HyperFleet's answer about an orphan");
}

static hfd_rc later(struct hfd_take *t, struct hfd_remote_orphan_row *row, hfd_slice words,
                    struct hfd_err *err)
{
    row->tries++;
    return wait_until(t, row, t->now_us + hfd_due_backoff_us(t->policy, row->tries, t->answer),
                      words, err);
}

/* Removes the row; logs it if a deletion was requested. */
static hfd_rc drop(struct hfd_take *t, const struct hfd_remote_orphan_row *row,
                   enum hfd_log_level level, const char *what, struct hfd_err *err)
{
    hfd_pass_end(t->m);
    if (row->orphan.wanted_us != 0)
        HFD_LOG(level, what, HFD_LOG_CSTR("kind", hfd_kind_name(row->orphan.kind)),
                HFD_LOG_STR("id", row->orphan.id), HFD_LOG_STR("name", row->orphan.name),
                HFD_LOG_STR("guresid", row->orphan.label));
    return hfd_remote_orphan_row_delete(t->tx, row->orphan.id, err);
}

static hfd_rc gone(struct hfd_take *t, const struct hfd_remote_orphan_row *row, struct hfd_err *err)
{
    hfd_rc rc = drop(t, row, HFD_LOG_INFO, "deleted orphan is gone", err);

    return rc == HFD_OK && row->orphan.kind == HFD_KIND_CLUSTER
               ? hfd_remote_orphan_row_delete_of(t->tx, row->orphan.id, err)
               : rc;
}

static hfd_rc take_get(struct hfd_take *t, struct hfd_remote_orphan_row *row,
                       const struct hfd_orphan_claim *claim, struct hfd_err *err)
{
    const hfd_slice label = row->orphan.label;
    struct hfd_wire_resource doc;
    struct hfd_err why;
    hfd_rc rc = hfd_wire_resource_read(t->doc, row->orphan.kind, t->mem, &doc, &why);

    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer about an orphan");
    if (rc != HFD_OK || !hfd_slice_eq(doc.id, row->orphan.id))
        return later(t, row, HFD_SLICE(HFD_WORDS_ORPHAN_UNREADABLE), err);
    if (!is_ours(t, &doc) || !hfd_slice_eq(doc.guresid, label))
        return drop(t, row, HFD_LOG_WARN, "orphan not deleted: its labels changed", err);
    update_row(t, &doc, row);
    row->tries = 0;
    if (row->orphan.wanted_us == 0)
        return wait_until(t, row, INT64_MAX, HFD_SLICE(""), err);
    if (doc.deleting || t->m->phase == HFD_PASS_ORPHAN_VERIFY)
        return wait_until(t, row, t->now_us + hfd_due_late_us(t, row->orphan.wanted_us),
                          HFD_SLICE(""), err);
    if (claim->is == HFD_ORPHAN_INHABITED) {
        row->orphan.wanted_us = 0;
        return wait_until(t, row, INT64_MAX, HFD_SLICE(HFD_WORDS_INHABITED), err);
    }
    hfd_pass_move(t->m, HFD_PASS_ORPHAN_DELETE);
    return hfd_remote_orphan_row_put(t->tx, row, err);
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_remote_orphan_row *row,
                          struct hfd_err *err)
{
    if (t->verdict == HFD_ON_UNABLE) {
        row->orphan.wanted_us = 0;
        return wait_until(t, row, INT64_MAX, hfd_words_cannot_delete(t, row->orphan.kind), err);
    }
    hfd_pass_move(t->m, HFD_PASS_ORPHAN_VERIFY);
    return hfd_remote_orphan_row_put(t->tx, row, err);
}

hfd_rc hfd_take_orphan(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    struct hfd_orphan_claim claim;
    hfd_rc rc = hfd_remote_orphan_row_get(t->tx, t->pass->work.orphan, t->mem, &row, err);

    if (rc == HFD_NOT_FOUND) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_claim(t->tx, &row.orphan, t->mem, &claim, err);
    if (rc != HFD_OK)
        return rc;
    if (claim.is == HFD_ORPHAN_OWNED) {
        hfd_pass_end(t->m);
        return hfd_remote_orphan_adopted(t->tx, row.orphan.id, t->mem, err);
    }
    if (t->m->phase == HFD_PASS_CHECK_ROUTE)
        return hfd_take_route(t) ? HFD_OK : later(t, &row, hfd_words_answer(t), err);
    if (t->verdict == HFD_ON_MISSING)
        return gone(t, &row, err);
    if (claim.is == HFD_ORPHAN_POSSIBLE)
        return wait_until(t, &row, t->now_us + hfd_due_jitter_us(t->policy, t->policy->idle_us),
                          row.orphan.error, err);
    if (t->request->step == HFD_STEP_ORPHAN_DELETE &&
        (t->verdict == HFD_ON_UNABLE || t->verdict == HFD_ON_LEAVING))
        return take_delete(t, &row, err);
    if (t->verdict != HFD_ON_WELL)
        return later(t, &row, hfd_words_answer(t), err);
    return t->request->step == HFD_STEP_ORPHAN_DELETE ? take_delete(t, &row, err)
                                                      : take_get(t, &row, &claim, err);
}
