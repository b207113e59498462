/* See observe.h. */
#include "driver/backend/remote/observe.h"

#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/http.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/pace.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "driver/fleet/report.h"
#include "store/rows_fleet.h"

/* While a remote may only lag behind, an earlier generation is not believed. */
#define BEHIND_US (15 * HFD_US_PER_S)

/* Has the driver core observe a part that was just written. */
static hfd_rc run_observer(struct hfd_take *t, const struct hfd_fleet_row *row, bool removed,
                           struct hfd_err *err)
{
    struct hfd_fleet_change change = {.id = row->id, .removed = removed};
    struct hfd_fleet_changes changes = {.mem = t->mem, .items = &change, .count = 1, .capacity = 1};
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem, .changes = &changes};

    return t->policy->on_changes != NULL
               ? t->policy->on_changes(t->policy->observer, t->tx, &call, err)
               : HFD_OK;
}

/* ---- what is remembered of a document ---- */

/* A copy that lives as long as the pass. */
static hfd_slice keep(struct hfd_take *t, hfd_slice text, bool *ok)
{
    const hfd_slice copy = hfd_arena_dup(&t->pass->mem, text);

    *ok = *ok && copy.p != NULL;
    return copy;
}

/* @param in  borrowed */
static hfd_rc note_seen(struct hfd_take *t, const struct hfd_seen_part *in, struct hfd_err *err)
{
    struct hfd_seen_part *seen = hfd_arena_alloc(&t->pass->mem, sizeof(*seen));
    bool ok = seen != NULL;

    if (!ok)
        return hfd_fail_nomem(err, "observe HyperFleet");
    *seen = (struct hfd_seen_part){
        .fleet_id = keep(t, in->fleet_id, &ok),
        .deleting = in->deleting,
        .spec = keep(t, in->spec, &ok),
        .labels = keep(t, in->labels, &ok),
        .next = t->m->seen,
    };
    t->m->seen = seen;
    return ok ? HFD_OK : hfd_fail_nomem(err, "observe HyperFleet");
}

/* Keeps a document until the reports of its part are read. */
static hfd_rc hold(struct hfd_take *t, const struct hfd_pass_part *part,
                   const struct hfd_wire_resource *doc, bool changed, struct hfd_err *err)
{
    const struct hfd_held_part **list =
        part->fleet.ready && !doc->ready ? &t->m->worse : &t->m->held;
    struct hfd_held_part *held = hfd_arena_alloc(&t->pass->mem, sizeof(*held));
    bool ok = held != NULL;

    if (!ok)
        return hfd_fail_nomem(err, "observe HyperFleet");
    *held = (struct hfd_held_part){.fleet_id = keep(t, part->row.fleet_id, &ok),
                                   .doc = *doc,
                                   .changed = changed,
                                   .next = *list};
    held->doc.conditions = keep(t, doc->conditions, &ok);
    held->doc.updated_by = keep(t, doc->updated_by, &ok);
    held->doc.deleted_by = keep(t, doc->deleted_by, &ok);
    /* The rest is not written later. */
    held->doc.id = held->doc.name = held->doc.owner_id = held->doc.spec = held->doc.labels =
        HFD_SLICE_NONE;
    held->doc.guresid = held->doc.made_by = held->doc.created_by = HFD_SLICE_NONE;
    *list = held;
    return ok ? HFD_OK : hfd_fail_nomem(err, "observe HyperFleet");
}

/* ---- rows ---- */

static hfd_rc put_part(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_part_row_put(t->tx, &part->row, err);
}

bool hfd_observe_equal(const struct hfd_pass_part *part, hfd_slice spec, hfd_slice labels)
{
    return hfd_slice_eq(part->fleet.spec, spec) && hfd_slice_eq(part->fleet.labels, labels);
}

static bool differs(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
{
    /* A row may have deleted_us before the remote has it. */
    return row->generation != doc->generation || !hfd_slice_eq(row->conditions, doc->conditions) ||
           (doc->deleting && row->deleted_us == 0);
}

/* The nodepools of a cluster that is being deleted are deleted too. */
static hfd_rc delete_pools(struct hfd_take *t, const struct hfd_fleet_row *cluster,
                           struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];

        if (!p->exists || p->fleet.deleted_us != 0 || !hfd_slice_eq(p->fleet.owner_id, cluster->id))
            continue;
        p->fleet.deleted_us = cluster->deleted_us;
        p->fleet.deleted_by = cluster->deleted_by;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

/* Writes a document into the row. */
static hfd_rc write_doc(struct hfd_take *t, struct hfd_pass_part *part,
                        const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_fleet_row *row = &part->fleet;
    hfd_rc rc = HFD_OK;

    row->generation = doc->generation;
    row->conditions = doc->conditions;
    row->ready = doc->ready;
    if (doc->updated_us != 0)
        row->updated_us = doc->updated_us;
    row->updated_by = doc->updated_by;
    if (doc->deleting && row->deleted_us == 0) {
        row->deleted_us = doc->deleted_us;
        row->deleted_by = doc->deleted_by;
        if (row->kind == HFD_KIND_CLUSTER)
            rc = delete_pools(t, row, err);
    }
    return rc == HFD_OK ? hfd_fleet_row_update(t->tx, row, err) : rc;
}

static bool is_stale(const struct hfd_pass_part *part, const struct hfd_wire_resource *doc)
{
    return doc->generation < part->fleet.generation;
}

/*
 * A remote that was restored from a backup has lost our last changes: the part becomes pending
 * again. A part that is to be deleted does not need them.
 */
static hfd_rc accept_backup(struct hfd_take *t, struct hfd_pass_part *part,
                            const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_LOG(HFD_LOG_WARN,
            "the remote HyperFleet has an earlier generation than before, as "
            "after a restored "
            "backup; will send the lost changes again",
            HFD_LOG_STR("guresid", t->rows.remote.guresid), HFD_LOG_STR("id", doc->id),
            HFD_LOG_INT("generation", doc->generation),
            HFD_LOG_INT("before", part->fleet.generation));
    part->fleet.generation = doc->generation;
    rc = hfd_fleet_row_update(t->tx, &part->fleet, err);
    if (rc != HFD_OK || t->rows.remote.goal == HFD_GOAL_DELETE || part->row.leaving)
        return rc;
    part->row.pending = true;
    return put_part(t, part, err);
}

/* Returns whether an earlier generation is believed: not while a copy may only lag behind. */
static bool is_behind_for_good(struct hfd_take *t)
{
    int64_t *since_us = &t->rows.remote.behind_us;

    if (t->rows.remote.goal == HFD_GOAL_DELETE)
        return true;
    if (*since_us == 0 || *since_us > t->now_us)
        *since_us = t->now_us;
    return t->now_us - *since_us >= BEHIND_US;
}

hfd_rc hfd_observe_document(struct hfd_take *t, struct hfd_pass_part *part,
                            const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const struct hfd_seen_part seen = {.fleet_id = part->row.fleet_id,
                                       .deleting = doc->deleting,
                                       .spec = doc->spec,
                                       .labels = doc->labels};
    bool cleared = false;
    hfd_rc rc = HFD_OK;

    if (is_stale(part, doc)) {
        if (!is_behind_for_good(t))
            return hfd_due_later(t, err, HFD_WORDS_BEHIND);
        rc = accept_backup(t, part, doc, err);
    }
    t->rows.remote.later_names = doc->later_names;
    if (rc == HFD_OK)
        rc = note_seen(t, &seen, err);
    if (rc == HFD_OK && t->rows.remote.goal == HFD_GOAL_MAKE && part->row.pending &&
        !doc->deleting && hfd_observe_equal(part, doc->spec, doc->labels)) {
        cleared = true;
        part->row.pending = false;
        part->row.generation = doc->generation;
        rc = put_part(t, part, err);
    }
    if (rc == HFD_OK && (cleared || t->m->reports.all || differs(&part->fleet, doc)))
        rc = hold(t, part, doc, cleared, err);
    return rc;
}

hfd_rc hfd_observe_written(struct hfd_take *t, struct hfd_pass_part *part,
                           const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const struct hfd_pass *pass = t->pass;
    const struct hfd_seen_part seen = {.fleet_id = part->row.fleet_id,
                                       .deleting = doc->deleting,
                                       .spec = pass->sent_spec,
                                       .labels = pass->sent_labels};
    struct hfd_wire_resource shown = *doc;
    hfd_rc rc;

    t->rows.remote.later_names = doc->later_names;
    rc = note_seen(t, &seen, err);
    part->row.generation = doc->generation;
    /* A PUT may have changed the row meanwhile. */
    if (hfd_observe_equal(part, pass->sent_spec, pass->sent_labels))
        part->row.pending = false;
    if (rc == HFD_OK)
        rc = put_part(t, part, err);
    if (rc == HFD_OK && doc->ready)
        rc = hold(t, part, doc, true, err);
    if (rc != HFD_OK)
        return rc;
    if (doc->ready) {
        shown.conditions = part->fleet.conditions;
        shown.ready = false;
    }
    rc = write_doc(t, part, &shown, err);
    return rc == HFD_OK ? run_observer(t, &part->fleet, false, err) : rc;
}

/* ---- ids ---- */

/* Returns whether no other part has this HyperFleet resource, and no other row its name. */
static hfd_rc is_free(struct hfd_take *t, const struct hfd_pass_part *part,
                      const struct hfd_fleet_row *wanted, bool *yes, struct hfd_err *err)
{
    struct hfd_part_row other;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, wanted->id, t->mem, &other, err);

    *yes = rc == HFD_NOT_FOUND;
    if (!*yes || wanted->deleted_us != 0)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    rc = hfd_fleet_row_by_name(
        t->tx, &(struct hfd_fleet_name){wanted->kind, wanted->owner_id, wanted->name}, t->mem, &row,
        err);
    *yes = rc == HFD_NOT_FOUND || (rc == HFD_OK && hfd_slice_eq(row.id, part->row.fleet_id));
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Moves the row to its new id, with everything that refers to it. */
static hfd_rc move_row(struct hfd_take *t, hfd_slice from, struct hfd_fleet_row *to,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_fleet_row_delete(t->tx, to->id, err); /* a row without a part */

    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(t->tx, from, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_insert(t->tx, to, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_refer(t->tx, from, to->id, t->mem, err);
    return rc == HFD_OK ? hfd_remote_row_wake(t->tx, to->id, t->now_us, err) : rc;
}

/* Sets the cluster of an adopted nodepool resource. */
static hfd_rc set_cluster(struct hfd_take *t, hfd_slice cluster_id, struct hfd_err *err)
{
    if (t->rows.res.kind != HFD_KIND_NODEPOOL || cluster_id.len == 0 ||
        hfd_slice_eq(t->rows.res.cluster_id, cluster_id))
        return HFD_OK;
    t->rows.res.cluster_id = cluster_id;
    return hfd_resource_row_put(t->tx, &t->rows.res, err);
}

hfd_rc hfd_observe_id(struct hfd_take *t, struct hfd_pass_part *part,
                      const struct hfd_wire_resource *doc, bool *available, struct hfd_err *err)
{
    const hfd_slice from = part->row.fleet_id;
    struct hfd_fleet_row row = part->fleet;
    hfd_rc rc;

    HFD_ASSERT(!hfd_backend_id_is_given(from));
    row.id = doc->id;
    if (t->rows.remote.goal == HFD_GOAL_ADOPT) {
        row.name = doc->name;
        row.spec = doc->spec;
        row.labels = doc->labels;
    }
    if (row.kind == HFD_KIND_NODEPOOL && doc->owner_id.len > 0)
        row.owner_id = doc->owner_id;
    if (doc->created_us != 0)
        row.created_us = doc->created_us;
    row.created_by = doc->created_by;
    rc = is_free(t, part, &row, available, err);
    if (rc != HFD_OK || !*available)
        return rc;
    rc = move_row(t, from, &row, err);
    if (rc == HFD_OK)
        rc = set_cluster(t, row.kind == HFD_KIND_NODEPOOL ? row.owner_id : HFD_SLICE_NONE, err);
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_adopted(t->tx, row.id, t->mem, err);
    if (rc != HFD_OK)
        return rc;
    part->fleet = row;
    part->row.fleet_id = row.id;
    part->row.name = row.name;
    for (size_t i = 0; row.kind == HFD_KIND_CLUSTER && i < t->rows.count; i++)
        if (hfd_slice_eq(t->rows.parts[i].fleet.owner_id, from))
            t->rows.parts[i].fleet.owner_id = row.id;
    return put_part(t, part, err);
}

/* ---- reports ---- */

static bool same_report(const struct hfd_report_row *a, const struct hfd_report_row *b)
{
    return a->observed_generation == b->observed_generation && a->observed_us == b->observed_us &&
           hfd_slice_eq(a->conditions, b->conditions) && hfd_slice_eq(a->data, b->data) &&
           hfd_slice_eq(a->metadata, b->metadata);
}

hfd_rc hfd_observe_report(struct hfd_take *t, hfd_slice fleet_id, json_t *doc, struct hfd_err *err)
{
    const struct hfd_fleet *fleet = t->policy->fleet;
    struct hfd_report_row row, stored;
    struct hfd_err why;
    hfd_slice secrets;
    hfd_rc rc;

    rc = hfd_wire_report_read(doc, t->mem, &row, &secrets, &why);
    if (rc == HFD_MALFORMED)
        return HFD_OK;
    if (rc != HFD_OK)
        return hfd_fail_nomem(err, "observe HyperFleet");
    row.fleet_id = fleet_id;
    row.received_us = t->now_us;
    rc = hfd_report_row_get(t->tx, &(struct hfd_report_key){fleet_id, row.adapter}, t->mem, &stored,
                            err);
    if (rc == HFD_OK && same_report(&row, &stored))
        return HFD_OK;
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    if (secrets.len > 0 && fleet->seal != NULL) {
        row.secrets =
            fleet->seal(fleet, &(struct hfd_fleet_secret){fleet_id, row.adapter, secrets}, t->mem);
        if (row.secrets.p == NULL)
            return hfd_fail_nomem(err, "observe HyperFleet");
    }
    rc = hfd_report_brief(&row, t->mem, err);
    if (rc != HFD_OK)
        return rc;
    t->m->reports.changed = true;
    return hfd_report_row_put(t->tx, &row, err);
}

/* Removes a part from a list, with all before it, which are gone. @return NULL = not in the list */
static const struct hfd_held_part *remove_held(const struct hfd_held_part **list,
                                               hfd_slice fleet_id)
{
    const struct hfd_held_part *held = *list;

    while (held != NULL && !hfd_slice_eq(held->fleet_id, fleet_id))
        held = held->next;
    if (held != NULL)
        *list = held->next;
    return held;
}

hfd_rc hfd_observe_release(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const struct hfd_held_part *held = remove_held(&t->m->worse, part->row.fleet_id);
    bool changed;
    hfd_rc rc = HFD_OK;

    if (held == NULL)
        held = remove_held(&t->m->held, part->row.fleet_id);
    if (held == NULL || !part->exists)
        return HFD_OK;
    changed = held->changed || t->m->reports.changed;
    t->m->reports.changed = false;
    /* A later PATCH may have been answered meanwhile. */
    if (!is_stale(part, &held->doc) && differs(&part->fleet, &held->doc)) {
        changed = true;
        rc = write_doc(t, part, &held->doc, err);
    }
    return rc == HFD_OK && changed ? run_observer(t, &part->fleet, false, err) : rc;
}

/* ---- the end ---- */

static hfd_rc remove_part(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem};
    hfd_rc rc = hfd_fleet_end(t->tx, &call, &part->fleet, true, err);

    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(t->tx, part->row.fleet_id, err);
    part->exists = false;
    return rc == HFD_OK ? run_observer(t, &part->fleet, true, err) : rc;
}

hfd_rc hfd_observe_gone(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const hfd_slice id = part->row.fleet_id;
    hfd_rc rc = remove_part(t, part, err);

    for (size_t i = 0; rc == HFD_OK && part->row.kind == HFD_KIND_CLUSTER && i < t->rows.count; i++)
        if (t->rows.parts[i].exists && hfd_slice_eq(t->rows.parts[i].fleet.owner_id, id))
            rc = remove_part(t, &t->rows.parts[i], err);
    return rc;
}

/* Returns whether the body may be a whole document. Cheap: checks its last byte. */
static bool looks_whole(const struct hfd_remote_answer *a)
{
    hfd_slice b = a->body;

    while (b.len > 0 && strchr(" \t\r\n", b.p[b.len - 1]) != NULL)
        b.len--;
    return a->is_json && b.len > 1 && b.p[b.len - 1] == '}';
}

/* clang-format off */
static const struct {
    int from, to;                  /* of the status */
    const char *code;              /* the last characters of the problem's code; NULL = any */
    unsigned methods;              /* bits of enum hfd_remote_method; 0 = any */
    enum hfd_remote_verdict verdict;
} table[] = {
    {401, 401, NULL,      0,                                                      HFD_ON_REFUSED},
    {403, 403, NULL,      0,                                                      HFD_ON_REFUSED},
    {404, 404, NULL,      0,                                                      HFD_ON_MISSING},
    {410, 410, NULL,      0,                                                      HFD_ON_MISSING},
    {405, 405, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {501, 501, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {409, 409, "CNF-003", 0,                                                      HFD_ON_LEAVING},
    {409, 409, NULL,      1u << HFD_REMOTE_POST,                                HFD_ON_TAKEN},
    {409, 409, NULL,      0,                                                      HFD_ON_LATER}, /* other resources refer to it, and may be deleted soon */
    {400, 499, NULL,      1u << HFD_REMOTE_POST | 1u << HFD_REMOTE_PATCH,     HFD_ON_INVALID},
};
/* clang-format on */

static bool ends_with(hfd_slice s, const char *end)
{
    const size_t n = strlen(end);

    return s.len >= n && memcmp(s.p + s.len - n, end, n) == 0;
}

static bool fits(size_t row, enum hfd_remote_method method, int status, hfd_slice code)
{
    return status >= table[row].from && status <= table[row].to &&
           (table[row].methods == 0 || (table[row].methods & 1u << method) != 0) &&
           (table[row].code == NULL || ends_with(code, table[row].code));
}

static bool is_good(int status)
{
    return status >= 200 && status <= 299;
}

/* HyperFleet's problems have a code of their own, and the status of the answer. */
static bool is_problem(const struct hfd_remote_answer *a, const struct hfd_wire_problem *problem)
{
    return a->is_json && hfd_slice_starts(problem->code, HFD_SLICE("HYPERFLEET-")) &&
           (problem->status == 0 || problem->status == a->status);
}

static enum hfd_peer_body body_of(enum hfd_remote_method method, const struct hfd_remote_answer *a,
                                  const struct hfd_wire_problem *problem)
{
    const bool changes = method == HFD_REMOTE_PATCH || method == HFD_REMOTE_DELETE;

    if (is_good(a->status) && a->body.len > 0)
        return looks_whole(a) ? HFD_PEER_RESULT : HFD_PEER_STRANGE;
    /* The router of an old HyperFleet has no words for a method that it does not know. */
    if (a->body.len == 0)
        return a->status == 405 && changes ? HFD_PEER_ERROR : HFD_PEER_EMPTY;
    return is_problem(a, problem) ? HFD_PEER_ERROR : HFD_PEER_STRANGE;
}

enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem)
{
    enum hfd_peer_word word;

    if (!a->arrived)
        return HFD_ON_LATER;
    word = hfd_peer_word_of(a->status, body_of(method, a, problem), method == HFD_REMOTE_DELETE);
    if (word == HFD_PEER_DONE)
        return HFD_ON_WELL;
    if (a->status >= 300 && a->status <= 399)
        return HFD_ON_WRONG;
    if (word == HFD_PEER_FOREIGN)
        return HFD_ON_FOREIGN;
    if (a->status == 404 && problem->no_route)
        return HFD_ON_WRONG;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if ((word == HFD_PEER_DECIDES || a->status == 501) &&
            fits(i, method, a->status, problem->code))
            return table[i].verdict;
    return HFD_ON_LATER;
}

static bool contains(const struct hfd_remote_answer *a, hfd_slice words)
{
    return a->body.len > 0 && memmem(a->body.p, a->body.len, words.p, words.len) != NULL;
}

static bool is_wrong(const struct hfd_remote_answer *a)
{
    if (a->status != 404)
        return a->status >= 300 && a->status <= 399;
    return !a->is_json || !contains(a, HFD_SLICE("HYPERFLEET-")) ||
           contains(a, HFD_SLICE("HYPERFLEET-NTF-000"));
}

static bool is_ill(int status)
{
    return status < 200 || (status != 501 && hfd_peer_is_busy(status));
}

enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a)
{
    if (!a->arrived || is_ill(a->status))
        return HFD_REMOTE_ILL;
    if (is_good(a->status))
        return looks_whole(a) || a->body.len == 0 ? HFD_REMOTE_WELL : HFD_REMOTE_ILL;
    if (is_wrong(a))
        return HFD_REMOTE_WRONG;
    return a->status == 401 || a->status == 403 ? HFD_REMOTE_REFUSES : HFD_REMOTE_WELL;
}
