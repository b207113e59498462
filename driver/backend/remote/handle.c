/* See handle.h. */
#include "driver/backend/remote/handle.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/base/foreign.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "driver/base/rng.h"
#include "driver/fleet/fleet.h"

#include <stdarg.h>
#include <stdio.h>

/*
 * Sentences that an app developer or an operator reads. A message of a failed operation is whole
 * sentences. A trouble is part of the message of a deadline: it has no full stop. The result has
 * no p if memory is short.
 */

/* It has our label, but not this server's. @param owner  the server that made it; empty = none */
static hfd_slice words_other_server(const struct hfd_take *t, const struct hfd_pass_part *part,
                                    hfd_slice id, hfd_slice owner)
{
    if (owner.len == 0)
        return hfd_arena_printf(
            t->mem,
            "HyperFleet's %s %.*s has the label " HFD_GURESID_LABEL
            " of this resource, but no " HFD_OWNER_LABEL
            ", so this server did not make it. The platform's operator has to "
            "delete it in HyperFleet, or to give it to this server with " HFD_OWNER_LABEL
            " '%.*s'; then deploy again.",
            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(id), HFD_SLICE_FMT(t->policy->owner));
    return hfd_arena_printf(t->mem,
                            "HyperFleet's %s %.*s belongs to another server of this driver "
                            "(" HFD_OWNER_LABEL
                            " is '%.*s'): delete it there, or use another name and resource.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(id),
                            HFD_SLICE_FMT(hfd_arena_show(t->mem, owner, 63)));
}

/* The name belongs to a HyperFleet resource that is not of this driver resource. */
static hfd_slice words_name_taken(const struct hfd_take *t, const struct hfd_pass_part *part,
                                  hfd_slice id)
{
    return hfd_arena_printf(t->mem,
                            "The name '%.*s' is taken by HyperFleet's %s %.*s, which is not of "
                            "this resource. Choose another name and deploy again, or delete the "
                            "resource.",
                            HFD_SLICE_FMT(part->fleet.name), hfd_kind_word(part->row.kind),
                            HFD_SLICE_FMT(id));
}

static hfd_slice words_invalid(const struct hfd_take *t, const struct hfd_pass_part *part)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet refused %s '%.*s' (it answered %d%s%.*s). Correct the "
                            "input and deploy again, or delete the resource.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(part->row.name),
                            t->answer->status, t->problem.words.len > 0 ? ": " : "",
                            HFD_SLICE_FMT(t->problem.words));
}

/* This HyperFleet has no PATCH or DELETE. */
static hfd_slice words_unable(const struct hfd_take *t, const struct hfd_pass_part *part)
{
    const bool deleting = t->request->method == HFD_REMOTE_DELETE;
    const char *kind = hfd_kind_word(part->row.kind);

    return hfd_arena_printf(
        t->mem,
        "This HyperFleet cannot %s %ss (it answered %d to %s): its version is "
        "too old for that. "
        "The platform's operator has to %s %s '%.*s' (%.*s) in HyperFleet, or to "
        "upgrade it; "
        "then %s again.",
        deleting ? "delete" : "change", kind, t->answer->status, deleting ? "DELETE" : "PATCH",
        deleting ? "remove" : "change", kind, HFD_SLICE_FMT(part->row.name),
        HFD_SLICE_FMT(part->row.fleet_id), deleting ? "delete" : "deploy");
}

static hfd_slice words_credentials(const struct hfd_take *t)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet refused the driver's credentials (it answered %d). The "
                            "platform's operator has to renew them; then deploy again.",
                            t->answer->status);
}

static hfd_slice words_no_cluster(const struct hfd_take *t, hfd_slice cluster_id)
{
    return hfd_arena_printf(t->mem,
                            "There is no cluster '%.*s' in HyperFleet, or it is being deleted. "
                            "Correct the input and deploy again, or delete the resource.",
                            HFD_SLICE_FMT(cluster_id));
}

hfd_slice hfd_words_answer(const struct hfd_take *t)
{
    const struct hfd_remote_answer *a = t->answer;

    if (!a->arrived)
        return hfd_arena_printf(t->mem, "HyperFleet gave no answer: %s",
                                a->failure != NULL ? a->failure : "unknown");
    if (t->verdict == HFD_ON_FOREIGN) {
        char what[160];

        hfd_peer_describe(
            &(struct hfd_peer_foreign){"HyperFleet's", a->status, a->type, a->body.len == 0}, what,
            sizeof(what));
        return hfd_arena_dup(t->mem, hfd_slice_of(what));
    }
    if (t->verdict == HFD_ON_WRONG)
        return hfd_arena_printf(
            t->mem, "there is no HyperFleet at the configured address (it answered %d)", a->status);
    if (t->verdict == HFD_ON_REFUSED)
        return hfd_arena_printf(
            t->mem, "HyperFleet refused the driver's credentials (it answered %d)", a->status);
    if (a->status >= 200 && a->status <= 299)
        return hfd_arena_printf(
            t->mem, "HyperFleet answered %d with a document that cannot be read", a->status);
    if (t->problem.words.len > 0)
        return hfd_arena_printf(t->mem, "HyperFleet answered %d: %.*s", a->status,
                                HFD_SLICE_FMT(t->problem.words));
    return hfd_arena_printf(t->mem, "HyperFleet answered %d", a->status);
}

/* ---- when work is due again ---- */

#define TROUBLE_MAX_BYTES 240
/* After its deadline, a resource is looked at after each twentieth of its operation's age. */
#define LATE_SHARE 20

/* 0 or more, less than the bound. */
static int64_t random_below(const struct hfd_remote_policy *policy, int64_t bound)
{
    uint64_t v;

    hfd_rng_bytes(policy->rng, &v, sizeof(v));
    return bound > 0 ? (int64_t)(v % (uint64_t)bound) : 0;
}

int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us)
{
    return interval_us - random_below(policy, interval_us / 10);
}

int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer)
{
    int64_t delay_us = policy->retry_min_us;

    for (int64_t i = 1; i < tries && delay_us < policy->retry_max_us; i++)
        delay_us *= 2;
    delay_us = delay_us < policy->retry_max_us ? delay_us : policy->retry_max_us;
    delay_us -= random_below(policy, delay_us / 2);
    return delay_us > answer->retry_after_us ? delay_us : answer->retry_after_us;
}

/* Returns whether no operation is in progress: the resource is only observed. */
static bool due_is_settled(const struct hfd_pass_rows *rows)
{
    if (rows->remote.goal == HFD_GOAL_OBSERVE)
        return true;
    if (rows->remote.goal != HFD_GOAL_MAKE)
        return false;
    for (size_t i = 0; i < rows->count; i++) {
        const struct hfd_pass_part *p = &rows->parts[i];

        if (p->row.leaving ? p->exists
                           : !p->exists || p->row.pending || !p->fleet.ready ||
                                 p->fleet.generation < p->row.generation)
            return false;
    }
    return true;
}

/* How the resource is observed: as settled, with others by lists, or by a pass of its own. */
static enum hfd_watched due_watched(const struct hfd_pass_rows *rows)
{
    if (due_is_settled(rows))
        return HFD_WATCHED_IDLY;
    if (rows->remote.goal != HFD_GOAL_MAKE && rows->remote.goal != HFD_GOAL_DELETE)
        return HFD_WATCHED_NOT;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].exists &&
            (rows->parts[i].row.pending || !hfd_backend_id_is_given(rows->parts[i].row.fleet_id)))
            return HFD_WATCHED_NOT;
    return HFD_WATCHED_CLOSELY;
}

int64_t hfd_due_late_us(const struct hfd_take *t, int64_t since_us)
{
    int64_t late_us = (t->now_us - since_us) / LATE_SHARE;

    late_us = late_us > t->policy->watch_us ? late_us : t->policy->watch_us;
    return hfd_due_jitter_us(t->policy,
                             late_us < t->policy->idle_us ? late_us : t->policy->idle_us);
}

/* The time to the next pass after one that came to its end. */
static int64_t due_interval_us(const struct hfd_take *t)
{
    const struct hfd_resource_row *res = &t->rows.res;

    if (due_is_settled(&t->rows))
        return hfd_due_jitter_us(t->policy, t->policy->idle_us);
    if (t->now_us < res->op_deadline_us)
        return hfd_due_jitter_us(t->policy, t->policy->watch_us);
    return hfd_due_late_us(t, res->op_started_us);
}

bool hfd_due_cannot_list(const struct hfd_take *t)
{
    const int status = t->answer->status;

    return t->verdict == HFD_ON_MISSING || (t->answer->arrived && t->verdict != HFD_ON_FOREIGN &&
                                            (status == 400 || status == 405 || status == 501));
}

/* Retry-After never puts off the last try behind the deadline of an operation. */
static int64_t before_deadline_us(const struct hfd_take *t, int64_t due_us)
{
    const int64_t last_us = t->rows.res.op_deadline_us - t->policy->retry_min_us;

    return t->answer->retry_after_us > 0 && last_us > t->now_us && due_us > last_us ? last_us
                                                                                    : due_us;
}

hfd_rc hfd_due_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...)
{
    char words[TROUBLE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    hfd_foreign_drop_halves(words);
    t->rows.remote.error = hfd_arena_show(t->mem, hfd_slice_of(words), sizeof(words));
    if (t->rows.remote.error.p == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    t->failed = true;
    hfd_pass_end(t->m);
    t->rows.remote.tries++;
    t->rows.remote.watched = due_is_settled(&t->rows) ? HFD_WATCHED_IDLY : HFD_WATCHED_NOT;
    t->rows.remote.due_us = before_deadline_us(
        t, t->now_us + hfd_due_backoff_us(t->policy, t->rows.remote.tries, t->answer));
    /* The thread logs answers that are not HyperFleet's. This one is, and cannot be used. */
    if (t->rows.remote.tries == 1 && hfd_remote_health_of(t->answer) == HFD_REMOTE_WELL)
        HFD_LOG(HFD_LOG_WARN, "unusable answer of the remote HyperFleet; will ask again",
                HFD_LOG_STR("guresid", t->rows.remote.guresid),
                HFD_LOG_STR("failure", t->rows.remote.error));
    return HFD_OK;
}

hfd_rc hfd_due_later_by_answer(struct hfd_take *t, struct hfd_err *err)
{
    const hfd_slice words = hfd_words_answer(t);

    return words.p != NULL ? hfd_due_later(t, err, "%.*s", HFD_SLICE_FMT(words))
                           : hfd_fail_nomem(err, "take HyperFleet's answer");
}

/* ---- notes about parts, made while an answer is taken ---- */

/* Notes a fact about a part. @return HFD_OK, HFD_NOMEM */
static hfd_rc take_note(struct hfd_take *t, hfd_slice fleet_id, enum hfd_part_fact fact,
                        struct hfd_err *err)
{
    struct hfd_part_note *note = hfd_arena_alloc(&t->pass->mem, sizeof(*note));

    if (note == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *note = (struct hfd_part_note){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .fact = fact, .next = t->m->notes};
    t->m->notes = note;
    return note->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

/* The pass looks at the part again: its document is out of date. @return HFD_OK, HFD_NOMEM */
static hfd_rc take_forget(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    struct hfd_seen_part *entry = hfd_arena_alloc(&t->pass->mem, sizeof(*entry));

    if (entry == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *entry = (struct hfd_seen_part){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .forgotten = true, .next = t->m->seen};
    t->m->seen = entry;
    return entry->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

hfd_rc hfd_take_look_again(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    if (++t->m->looks_again <= HFD_PASS_LOOKS_AGAIN_MAX)
        return take_forget(t, fleet_id, err);
    return hfd_due_later(t, err, "HyperFleet contradicts itself about %.*s (it answered %d)",
                         HFD_SLICE_FMT(fleet_id), t->answer->status);
}

/* ---- operations that cannot be carried out ---- */

#define REFUSALS_MAX 3

/* Takes back deleted_us of parts that are not going to be deleted. */
static hfd_rc restore(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];
        const struct hfd_seen_part *seen = hfd_pass_seen(t->m, p->row.fleet_id);
        struct hfd_fleet_row other;

        if (!p->exists || p->fleet.deleted_us == 0 || (seen != NULL && seen->deleting))
            continue;
        rc = hfd_fleet_row_by_name(
            t->tx, &(struct hfd_fleet_name){p->fleet.kind, p->fleet.owner_id, p->fleet.name},
            t->mem, &other, err);
        if (rc == HFD_OK)
            continue; /* another resource has its name now */
        if (rc != HFD_NOT_FOUND)
            return rc;
        p->fleet.deleted_us = 0;
        p->fleet.deleted_by = HFD_SLICE_NONE;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message, struct hfd_err *err)
{
    const hfd_slice guresid = t->rows.res.guresid;
    hfd_rc rc;

    if (message.p != NULL)
        message = hfd_arena_printf(t->mem, "%.*s (resource %.*s)", HFD_SLICE_FMT(message),
                                   HFD_SLICE_FMT(guresid));
    if (message.p == NULL)
        return hfd_fail_nomem(err, "refuse an operation");
    hfd_pass_end(t->m);
    if (t->rows.remote.goal == HFD_GOAL_OBSERVE)
        return HFD_OK;
    t->rows.remote.goal = HFD_GOAL_OBSERVE;
    rc = restore(t, err);
    if (rc == HFD_OK)
        rc = t->policy->on_refused(
            t->policy->observer, t->tx,
            &(struct hfd_fleet_call){.fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem},
            &(struct hfd_refusal){guresid, code, message}, err);
    return rc;
}

hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part, hfd_slice id,
                        hfd_slice made_by, struct hfd_err *err)
{
    const bool other_server = made_by.p != NULL && !hfd_slice_eq(made_by, t->policy->owner);

    return hfd_refuse(t, "RES-101",
                      other_server ? words_other_server(t, part, id, made_by)
                                   : words_name_taken(t, part, id),
                      err);
}

static hfd_rc refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part,
                             struct hfd_err *err)
{
    return hfd_refuse(t, "RES-101", words_invalid(t, part), err);
}

static hfd_rc refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part,
                            struct hfd_err *err)
{
    return hfd_refuse(t, "RES-104", words_unable(t, part), err);
}

/* The answer is 401 or 403. Tries again later; refuses the operation after some in a row. */
static hfd_rc refuse_credentials(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc;

    t->rows.remote.refusals++;
    rc = hfd_due_later_by_answer(t, err);
    if (rc != HFD_OK || t->rows.remote.refusals < REFUSALS_MAX ||
        (t->rows.remote.goal != HFD_GOAL_MAKE && t->rows.remote.goal != HFD_GOAL_ADOPT))
        return rc;
    /* A ready resource stays ready: it needs nothing until there is a new token. */
    if (due_is_settled(&t->rows))
        return HFD_OK;
    return hfd_refuse(t, "RES-103", words_credentials(t), err);
}

/* ---- long lists ---- */

enum hfd_kind hfd_take_kind(const struct hfd_take *t)
{
    return t->m->phase == HFD_PASS_MANY_POOLS || t->m->phase == HFD_PASS_SEARCH_POOLS
               ? HFD_KIND_NODEPOOL
               : HFD_KIND_CLUSTER;
}

hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page, hfd_take_item_fn *fn,
                      struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        struct hfd_arena mem, *outer = t->mem;
        struct hfd_wire_resource doc;
        struct hfd_err why;

        hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
        t->mem = &mem;
        rc = hfd_wire_resource_read(json_array_get(page->items, i), hfd_take_kind(t), &mem, &doc,
                                    &why);
        if (rc == HFD_OK)
            rc = fn(t, &doc, err);
        else
            rc = rc == HFD_NOMEM ? hfd_fail_nomem(err, "take HyperFleet's list") : HFD_OK;
        t->mem = outer;
        hfd_arena_fini(&mem);
    }
    return rc;
}

/* Answers to MANY_CLUSTERS and MANY_POOLS. Thread: writer, inside a transaction function. */

/* Returns whether the document has nothing new for the row. */
static bool is_unchanged(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
{
    return row->generation == doc->generation && hfd_slice_eq(row->conditions, doc->conditions) &&
           (!doc->deleting || row->deleted_us != 0);
}

static hfd_rc take_item(struct hfd_take *t, const struct hfd_wire_resource *doc,
                        struct hfd_err *err)
{
    struct hfd_remote_row up;
    struct hfd_part_row part;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, doc->id, t->mem, &part, err);

    if (rc == HFD_OK)
        rc = hfd_remote_row_get(t->tx, part.guresid, t->mem, &up, err);
    if (rc == HFD_OK && up.watched == HFD_WATCHED_CLOSELY)
        rc = hfd_fleet_row_get(t->tx, doc->id, t->mem, &row, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && up.watched != HFD_WATCHED_CLOSELY))
        return HFD_OK;
    if (rc != HFD_OK)
        return rc;
    if (is_unchanged(&row, doc)) {
        /* Even if it was not due yet: then all stay due together, and one list serves them. */
        up.due_us = t->now_us + hfd_due_jitter_us(t->policy, t->policy->watch_us);
        up.checked_us = t->now_us;
        up.tries = 0;
        /* All reports are read once in each idle_us. */
        up.watched =
            t->now_us - up.full_us < t->policy->idle_us ? HFD_WATCHED_CLOSELY : HFD_WATCHED_NOT;
    } else {
        up.due_us = t->now_us;
        up.watched = HFD_WATCHED_NOT;
    }
    return hfd_remote_row_put(t->tx, &up, err);
}

/*
 * Only this list may fail: then, the second time, each resource gets a pass of its own. Refused
 * credentials and 429 are not the fault of the list.
 */
static hfd_rc list_fails(struct hfd_take *t, struct hfd_err *err)
{
    const int64_t due_us = t->now_us + hfd_due_backoff_us(t->policy, 1, t->answer);

    hfd_pass_end(t->m);
    if (t->verdict == HFD_ON_REFUSED || (t->answer->arrived && t->answer->status == 429))
        return hfd_remote_row_postpone(t->tx, t->now_us, due_us, err);
    return hfd_remote_row_part(t->tx, t->now_us, due_us, err);
}

/*
 * A page of what is in progress. A resource that has not changed is due again later; one that has
 * changed, or is in no list, gets a pass of its own.
 */
static hfd_rc take_many(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc;

    if (t->verdict != HFD_ON_WELL && !hfd_due_cannot_list(t))
        return list_fails(t, err);
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        page = (struct hfd_wire_page){.total = 0}; /* as a list that shows none */
    rc = hfd_take_items(t, &page, take_item, err);
    if (rc != HFD_OK || !hfd_take_page(t, &page, HFD_TAKE_PAGES_MAX))
        return rc;
    if (t->m->phase == HFD_PASS_MANY_CLUSTERS) {
        hfd_pass_move(t->m, HFD_PASS_MANY_POOLS);
        return HFD_OK;
    }
    hfd_pass_end(t->m);
    return hfd_remote_row_unwatch(t->tx, t->m->began_us, err);
}

/*
 * Removes nodepools that left before they were created. Does nothing while their creation may still
 * be carried out, or before all other parts are known: the resource may become ready by it.
 */
static hfd_rc take_drop_uncreated(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (t->m->phase == HFD_PASS_DONE || !hfd_pass_is_all_known(t->m, &t->rows))
        return HFD_OK;
    for (size_t i = 0; rc == HFD_OK && !hfd_creation_is_unsure(t) && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];

        if (p->exists && p->row.kind == HFD_KIND_NODEPOOL && p->row.leaving &&
            !hfd_backend_id_is_given(p->row.fleet_id))
            rc = hfd_observe_gone(t, p, err);
    }
    return rc;
}

/* Answers to requests for one part. Thread: writer, inside a transaction function. */

/* Reads the answer's document. Fails the pass if it is no such resource, or has another id. */
static hfd_rc read_document(struct hfd_take *t, enum hfd_kind kind, hfd_slice id,
                            struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_err why;
    const hfd_rc rc = hfd_wire_resource_read(t->doc, kind, t->mem, doc, &why);

    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    if (rc != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a %s that cannot be read: %s",
                             hfd_kind_name(kind), why.msg);
    if (id.len == 0 || hfd_slice_eq(doc->id, id))
        return HFD_OK;
    return hfd_due_later(t, err, "HyperFleet answered with another %s than was asked for",
                         hfd_kind_name(kind));
}

static hfd_rc take_get(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_document(t, part, &doc, err) : rc;
}

/* The cluster that a nodepool resource names by its id. */
static hfd_rc take_owner(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const hfd_slice cluster_id = part->fleet.owner_id;
    struct hfd_wire_resource doc = {.deleting = true};
    hfd_rc rc = HFD_OK;

    if (t->verdict != HFD_ON_MISSING)
        rc = read_document(t, HFD_KIND_CLUSTER, cluster_id, &doc, err);
    if (rc != HFD_OK || t->failed)
        return rc;
    if (!doc.deleting)
        return hfd_due_later(t, err, "HyperFleet contradicts itself about cluster %.*s",
                             HFD_SLICE_FMT(cluster_id));
    return hfd_refuse(t, "RES-101", words_no_cluster(t, cluster_id), err);
}

/* The name is taken. For a nodepool, WRITE looks for the name before it goes on. */
static hfd_rc name_is_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                            struct hfd_err *err)
{
    if (part == hfd_pass_own(&t->rows)) {
        hfd_pass_move(t->m, HFD_PASS_FIND_NAME);
        return HFD_OK;
    }
    return take_note(t, part->row.fleet_id, HFD_PART_NAME_TAKEN, err);
}

/* POST of a nodepool found no cluster, or one that is being deleted. */
static hfd_rc has_no_cluster(struct hfd_take *t, const struct hfd_pass_part *part,
                             struct hfd_err *err)
{
    if (part->row.kind == HFD_KIND_CLUSTER)
        return hfd_due_later_by_answer(t, err);
    if (part != hfd_pass_own(&t->rows))
        return hfd_take_look_again(t, part->fleet.owner_id, err);
    hfd_pass_move(t->m, HFD_PASS_ASK_OWNER);
    return HFD_OK;
}

static hfd_rc take_post(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool available;
    hfd_rc rc;

    if (t->verdict == HFD_ON_TAKEN)
        return name_is_taken(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL)
        return has_no_cluster(t, part, err);
    rc = read_document(t, part->row.kind, HFD_SLICE_NONE, &doc, err);
    if (rc != HFD_OK || t->failed) {
        t->rows.remote.unsure_us = t->now_us;
        return rc;
    }
    if (part == hfd_pass_own(&t->rows))
        t->rows.remote.unsure_us = 0; /* an earlier POST would have taken the name */
    rc = hfd_observe_id(t, part, &doc, &available, err);
    if (rc == HFD_OK && !available)
        return hfd_refuse_taken(t, part, doc.id, HFD_SLICE_NONE, err);
    if (rc != HFD_OK)
        return rc;
    if (part == hfd_pass_own(&t->rows))
        hfd_pass_move(t->m, HFD_PASS_LOOK);
    return hfd_observe_written(t, part, &doc, err);
}

static hfd_rc take_patch(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    /*
     * Old generations have no such route, and answer as if the resource did not exist: look at it,
     * and believe the second 404.
     */
    if (t->verdict == HFD_ON_UNABLE ||
        (t->verdict == HFD_ON_MISSING &&
         hfd_pass_noted(t->m, part->row.fleet_id, HFD_PART_PATCH_DENIED)))
        return refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL) {
        rc = take_note(t, part->row.fleet_id, HFD_PART_PATCH_DENIED, err);
        return rc == HFD_OK ? hfd_take_look_again(t, part->row.fleet_id, err) : rc;
    }
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_written(t, part, &doc, err) : rc;
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    if (t->verdict == HFD_ON_UNABLE)
        return refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_LEAVING)
        return hfd_due_later_by_answer(t, err);
    /* Some generations remove it at once, with the same answer: look at it. */
    rc = take_note(t, part->row.fleet_id, HFD_PART_DELETE_SENT, err);
    return rc == HFD_OK ? take_forget(t, part->row.fleet_id, err) : rc;
}

static hfd_rc take_reports(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_pass_list *list = &t->m->reports.list;
    struct hfd_wire_page page;
    struct hfd_err why;
    bool last = t->verdict == HFD_ON_MISSING; /* the next GET of the part shows it */
    hfd_rc rc = HFD_OK;

    if (!last && hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_TAKE_NO_LIST);
    for (size_t i = 0;
         !last && rc == HFD_OK && i < page.count && list->count < HFD_WIRE_REPORTS_MAX;
         i++, list->count++)
        rc = hfd_observe_report(t, part->row.fleet_id, json_array_get(page.items, i), err);
    if (rc != HFD_OK)
        return rc;
    last = last || page.count == 0 || (page.total >= 0 && list->count >= page.total) ||
           list->count >= HFD_WIRE_REPORTS_MAX;
    list->page = last ? 0 : list->page + 1;
    list->count = last ? 0 : list->count;
    return last ? hfd_observe_release(t, part, err) : HFD_OK;
}

/* The answer to GET, POST, PATCH, DELETE or a page of reports, by the request's step. */
static hfd_rc take_part(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    static hfd_rc (*const by_step[])(struct hfd_take *, struct hfd_pass_part *,
                                     struct hfd_err *) = {
        [HFD_STEP_GET] = take_get,       [HFD_STEP_OWNER] = take_owner,
        [HFD_STEP_POST] = take_post,     [HFD_STEP_PATCH] = take_patch,
        [HFD_STEP_DELETE] = take_delete, [HFD_STEP_REPORTS] = take_reports,
    };
    const size_t step = (size_t)t->request->step;

    HFD_ASSERT(step < sizeof(by_step) / sizeof(by_step[0]));
    HFD_ASSERT(by_step[step] != NULL);
    return by_step[step](t, part, err);
}

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
        return take_part(t, part, err);
    /* The part was removed after the request: the next pass finds out what to do. */
    hfd_pass_end(t->m);
    t->wait_until_us = t->now_us;
    return HFD_OK;
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
    if (t->request->step == HFD_STEP_POST)
        hfd_creation_conclude(t);
    if (is_list_missing(t))
        return hfd_take_find_missing(t, err);
    switch (t->verdict) {
    case HFD_ON_WELL:
    case HFD_ON_MISSING:
        break;
    case HFD_ON_REFUSED:
        return refuse_credentials(t, err);
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_INVALID:
    case HFD_ON_UNABLE:
        if (t->request->method == HFD_REMOTE_GET)
            return hfd_due_later_by_answer(t, err);
        break;
    case HFD_ON_LATER:
    case HFD_ON_FOREIGN:
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
    row->watched = due_watched(&t->rows);
    row->due_us = t->wait_until_us != 0 ? t->wait_until_us : t->now_us + due_interval_us(t);
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
 * Keeps the failure counters as they were before this pass. Each answer starts from them: a pass
 * counts once.
 */
static void begin(struct hfd_take *t)
{
    struct hfd_remote_row *row = &t->rows.remote;

    if (t->m->before.answers++ == 0) {
        t->m->reports.all = due_is_settled(&t->rows) ||
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
        rc = take_drop_uncreated(t, err);
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
    if (rc != HFD_OK)
        t->verdict = HFD_ON_FOREIGN;
    return HFD_OK;
}

static hfd_rc take_work(struct hfd_take *t, struct hfd_err *err)
{
    const enum hfd_remote_work_kind kind = hfd_remote_work_kind(&t->pass->work);

    if (kind == HFD_REMOTE_WORK_MANY)
        return take_many(t, err);
    if (kind == HFD_REMOTE_WORK_SEARCH)
        return hfd_take_search(t, err);
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
