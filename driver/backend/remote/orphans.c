/* See orphans.h. */
#include "driver/backend/remote/orphans.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/log.h"
#include "driver/fleet/fleet.h"
#include "store/rows_fleet.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

enum orphan_claim_kind {
    ORPHAN_FREE,      /* no resource has a part in it */
    ORPHAN_POSSIBLE,  /* a part of its GUResID has no id yet, and may get this
                             one */
    ORPHAN_OWNED,     /* it is a part of a resource */
    ORPHAN_INHABITED, /* a cluster with a nodepool of a resource in it */
};

/* Returns whether a resource has, or may get, what is listed as an orphan. */
struct orphan_claim {
    enum orphan_claim_kind is;
    hfd_slice whose; /* GUResID of that resource; empty if FREE */
};

/* The resource with a nodepool in the cluster. Only nodepools of resources have rows. */
static hfd_rc inhabitant(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                         hfd_slice *whose, struct hfd_err *err)
{
    struct hfd_fleet_list pools;
    struct hfd_part_row part = {.guresid = HFD_SLICE("")};
    hfd_rc rc = hfd_fleet_row_children(tx, cluster_id, mem, &pools, err);

    for (size_t i = 0; rc == HFD_OK && part.guresid.len == 0 && i < pools.count; i++) {
        rc = hfd_part_row_by_fleet(tx, pools.rows[i].id, mem, &part, err);
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    *whose = rc == HFD_OK ? part.guresid : HFD_SLICE("");
    return rc;
}

/* Returns whether a part of the GUResID has no id yet. */
static hfd_rc is_possible(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem, bool *yes,
                          struct hfd_err *err)
{
    struct hfd_part_list parts;
    const hfd_rc rc = hfd_part_row_list(tx, guresid, mem, &parts, err);

    *yes = false;
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++)
        *yes = *yes || !hfd_backend_id_is_given(parts.rows[i].fleet_id);
    return rc;
}

/* Reads the claim from the rows. @param out  texts are in mem. Thread: any. */
static hfd_rc remote_orphan_claim(struct hfd_txn *tx, const struct hfd_orphan_row *o,
                                  struct hfd_arena *mem, struct orphan_claim *out,
                                  struct hfd_err *err)
{
    struct hfd_part_row part;
    bool possible;
    hfd_rc rc = hfd_part_row_by_fleet(tx, o->id, mem, &part, err);

    *out = (struct orphan_claim){ORPHAN_OWNED, rc == HFD_OK ? part.guresid : HFD_SLICE("")};
    if (rc != HFD_NOT_FOUND)
        return rc;
    rc = is_possible(tx, o->label, mem, &possible, err);
    *out = (struct orphan_claim){ORPHAN_POSSIBLE, o->label};
    if (rc != HFD_OK || possible)
        return rc;
    *out = (struct orphan_claim){ORPHAN_FREE, HFD_SLICE("")};
    if (o->kind == HFD_KIND_CLUSTER)
        rc = inhabitant(tx, o->id, mem, &out->whose, err);
    out->is = out->whose.len > 0 ? ORPHAN_INHABITED : ORPHAN_FREE;
    return rc;
}

hfd_rc hfd_remote_orphan_adopted(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                 struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    const hfd_rc rc = hfd_remote_orphan_row_get(tx, id, mem, &row, err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (row.orphan.wanted_us != 0)
        HFD_LOG(HFD_LOG_WARN, "orphan not deleted: a resource has adopted it",
                HFD_LOG_STR("id", row.orphan.id), HFD_LOG_STR("name", row.orphan.name),
                HFD_LOG_STR("guresid", row.orphan.label));
    return hfd_remote_orphan_row_delete(tx, id, err);
}

hfd_rc hfd_remote_orphans_list(struct hfd_txn *tx, const struct hfd_backend_orphan_query *query,
                               struct hfd_backend_orphans *out, struct hfd_err *err)
{
    const struct hfd_remote_orphan_query rows = {.kind = query->kind,
                                                 .limit = (int64_t)query->limit + 1};
    struct hfd_orphan_list *list = &out->list;
    struct hfd_remote_orphan_list found;
    hfd_rc rc = hfd_remote_orphan_row_list(tx, &rows, query->mem, &found, err);

    *out = (struct hfd_backend_orphans){.more = false};
    if (rc != HFD_OK)
        return rc;
    out->more = found.count > query->limit;
    list->rows = hfd_arena_array(query->mem, found.count + 1, sizeof(*list->rows));
    if (list->rows == NULL)
        return hfd_fail_nomem(err, "list orphans");
    for (size_t i = 0; i < found.count && list->count < query->limit; i++) {
        struct orphan_claim claim;

        rc = remote_orphan_claim(tx, &found.rows[i].orphan, query->mem, &claim, err);
        if (rc != HFD_OK)
            return rc;
        if (claim.is == ORPHAN_FREE || claim.is == ORPHAN_INHABITED)
            list->rows[list->count++] = found.rows[i].orphan;
    }
    return HFD_OK;
}

hfd_rc hfd_remote_orphans_state(struct hfd_txn *tx, struct hfd_arena *mem,
                                struct hfd_backend_orphans_state *out, struct hfd_err *err)
{
    struct hfd_remote_row row;
    hfd_rc rc = hfd_remote_row_get(tx, HFD_REMOTE_ORPHANS, mem, &row, err);

    *out = (struct hfd_backend_orphans_state){.remote = true, .error = HFD_SLICE("")};
    if (rc == HFD_OK)
        *out = (struct hfd_backend_orphans_state){true, row.checked_us, row.error};
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Fails if a resource has the orphan, or may get it. */
static hfd_rc refuse(hfd_slice id, const struct orphan_claim *claim, struct hfd_err *err)
{
    switch (claim->is) {
    case ORPHAN_FREE:
        break;
    case ORPHAN_POSSIBLE:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' may become a part of resource %.*s: try again "
                        "later",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    case ORPHAN_OWNED:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' is no orphan: it belongs to resource %.*s, which "
                        "can be deleted",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    case ORPHAN_INHABITED:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' contains a nodepool of resource %.*s: delete that "
                        "resource first",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    }
    return HFD_OK;
}

hfd_rc hfd_remote_orphan_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice id,
                                struct hfd_orphan_row *out, struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    struct orphan_claim claim;
    hfd_rc rc = hfd_remote_orphan_row_get(tx, id, call->mem, &row, err);
    const bool known = rc == HFD_OK;

    if (rc == HFD_NOT_FOUND) {
        row = (struct hfd_remote_orphan_row){
            .orphan = {.id = id, .kind = HFD_KIND_NODEPOOL, .label = HFD_SLICE("")}};
        rc = HFD_OK;
    }
    if (rc == HFD_OK)
        rc = remote_orphan_claim(tx, &row.orphan, call->mem, &claim, err);
    if (rc == HFD_OK)
        rc = refuse(id, &claim, err);
    if (rc != HFD_OK)
        return rc;
    if (!known)
        return hfd_fail(err, HFD_NOT_FOUND,
                        "no orphan '%.*s' is known: GET /admin/orphans asks "
                        "HyperFleet for orphans",
                        HFD_SLICE_FMT(id));
    row.orphan.wanted_us = row.orphan.wanted_us != 0 ? row.orphan.wanted_us : call->now_us;
    row.orphan.error = HFD_SLICE("");
    row.due_us = call->now_us;
    row.tries = 0;
    *out = row.orphan;
    return hfd_remote_orphan_row_put(tx, &row, err);
}

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
    struct orphan_claim claim;
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
    rc = remote_orphan_claim(t->tx, &row.orphan, t->mem, &claim, err);
    if (rc != HFD_OK || (claim.is == ORPHAN_POSSIBLE && !known))
        return rc;
    if (claim.is == ORPHAN_OWNED)
        return hfd_remote_orphan_adopted(t->tx, doc->id, t->mem, err);
    row.due_us = row.orphan.wanted_us != 0 ? row.due_us : INT64_MAX;
    return hfd_remote_orphan_row_put(t->tx, &row, err);
}

/* This HyperFleet cannot list by label. @param answer  of hfd_words_answer */
static hfd_slice words_cannot_search(const struct hfd_take *t, enum hfd_kind kind, hfd_slice answer)
{
    return hfd_arena_printf(t->mem,
                            "this HyperFleet cannot list %ss by label: look for orphans there, by "
                            "their label %s (%.*s)",
                            hfd_kind_word(kind), HFD_GURESID_LABEL, HFD_SLICE_FMT(answer));
}

/* Tries again soon. If this HyperFleet can never list so, tries again with the next search. */
static hfd_rc list_fails(struct hfd_take *t, struct hfd_err *err)
{
    const bool unable = hfd_due_cannot_list(t);
    hfd_slice words = hfd_words_answer(t);
    hfd_rc rc;

    if (unable && words.p != NULL)
        words = words_cannot_search(t, hfd_take_kind(t), words);
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
                       const struct orphan_claim *claim, struct hfd_err *err)
{
    const hfd_slice label = row->orphan.label;
    struct hfd_wire_resource doc;
    struct hfd_err why;
    hfd_rc rc = hfd_wire_resource_read(t->doc, row->orphan.kind, t->mem, &doc, &why);

    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer about an orphan");
    if (rc != HFD_OK || !hfd_slice_eq(doc.id, row->orphan.id))
        return later(t, row, HFD_SLICE("HyperFleet answered with a document that cannot be read"),
                     err);
    if (!is_ours(t, &doc) || !hfd_slice_eq(doc.guresid, label))
        return drop(t, row, HFD_LOG_WARN, "orphan not deleted: its labels changed", err);
    update_row(t, &doc, row);
    row->tries = 0;
    if (row->orphan.wanted_us == 0)
        return wait_until(t, row, INT64_MAX, HFD_SLICE(""), err);
    if (doc.deleting || t->m->phase == HFD_PASS_ORPHAN_VERIFY)
        return wait_until(t, row, t->now_us + hfd_due_late_us(t, row->orphan.wanted_us),
                          HFD_SLICE(""), err);
    if (claim->is == ORPHAN_INHABITED) {
        row->orphan.wanted_us = 0;
        return wait_until(
            t, row, INT64_MAX,
            HFD_SLICE("it was not deleted: a nodepool of a resource was made in it meanwhile"),
            err);
    }
    hfd_pass_move(t->m, HFD_PASS_ORPHAN_DELETE);
    return hfd_remote_orphan_row_put(t->tx, row, err);
}

/* This HyperFleet cannot delete an orphan. */
static hfd_slice words_cannot_delete(const struct hfd_take *t, enum hfd_kind kind)
{
    const char *word = hfd_kind_word(kind);

    return hfd_arena_printf(t->mem,
                            "this HyperFleet cannot delete %ss (it answered %d to DELETE): its "
                            "version is too old for that. Remove the %s in HyperFleet, or upgrade "
                            "it and delete again",
                            word, t->answer->status, word);
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_remote_orphan_row *row,
                          struct hfd_err *err)
{
    if (t->verdict == HFD_ON_UNABLE) {
        row->orphan.wanted_us = 0;
        return wait_until(t, row, INT64_MAX, words_cannot_delete(t, row->orphan.kind), err);
    }
    hfd_pass_move(t->m, HFD_PASS_ORPHAN_VERIFY);
    return hfd_remote_orphan_row_put(t->tx, row, err);
}

hfd_rc hfd_take_orphan(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    struct orphan_claim claim;
    hfd_rc rc = hfd_remote_orphan_row_get(t->tx, t->pass->work.orphan, t->mem, &row, err);

    if (rc == HFD_NOT_FOUND) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (rc == HFD_OK)
        rc = remote_orphan_claim(t->tx, &row.orphan, t->mem, &claim, err);
    if (rc != HFD_OK)
        return rc;
    if (claim.is == ORPHAN_OWNED) {
        hfd_pass_end(t->m);
        return hfd_remote_orphan_adopted(t->tx, row.orphan.id, t->mem, err);
    }
    if (t->verdict == HFD_ON_MISSING)
        return gone(t, &row, err);
    if (claim.is == ORPHAN_POSSIBLE)
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
