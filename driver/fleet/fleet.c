/* See fleet.h. */
#include "driver/fleet/fleet.h"

#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/base/metrics.h"
#include "driver/base/trace.h"
#include "driver/fleet/keys.h"
#include "driver/fleet/condition.h"
#include "schemas/validate.h"
#include "store/rows_due.h"
#include "store/rows_history.h"
#include "store/unit.h"

/* ---- changes ---- */

#define CHANGES_AT_FIRST 8

static hfd_rc make_room(struct hfd_fleet_changes *c, struct hfd_err *err)
{
    const size_t capacity = c->capacity > 0 ? 2 * c->capacity : CHANGES_AT_FIRST;
    struct hfd_fleet_change *items;

    if (c->count < c->capacity)
        return HFD_OK;
    items = hfd_arena_array(c->mem, capacity, sizeof(*items));
    if (items == NULL)
        return hfd_fail_nomem(err, "list changes in HyperFleet");
    if (c->count > 0)
        memcpy(items, c->items, c->count * sizeof(*items));
    c->items = items;
    c->capacity = capacity;
    return HFD_OK;
}

hfd_rc hfd_fleet_note_change(const struct hfd_fleet_call *call,
                             const struct hfd_fleet_change *change, struct hfd_err *err)
{
    struct hfd_fleet_changes *c = call->changes;
    struct hfd_fleet_change *item;
    hfd_rc rc;

    if (c == NULL)
        return HFD_OK;
    for (size_t i = 0; i < c->count; i++)
        if (hfd_slice_eq(c->items[i].id, change->id)) {
            c->items[i].removed = c->items[i].removed || change->removed;
            c->items[i].reported = c->items[i].reported && change->reported;
            return HFD_OK;
        }
    rc = make_room(c, err);
    if (rc != HFD_OK)
        return rc;
    item = &c->items[c->count];
    *item = *change;
    item->id = hfd_arena_dup(c->mem, change->id);
    item->owner_id = hfd_arena_dup(c->mem, change->owner_id);
    if (item->id.p == NULL || item->owner_id.p == NULL)
        return hfd_fail_nomem(err, "list changes in HyperFleet");
    c->count++;
    return HFD_OK;
}

/* A fingerprint with an epoch: 16 fixed bits, 24 of the epoch, 24 of the fingerprint. */
#define EPOCH_TAG UINT64_C(0x5e7a)
#define EPOCH_MAX INT64_C(0xffffff)

int64_t hfd_fleet_fingerprint_of_epoch(int64_t fingerprint, int64_t epoch)
{
    const uint64_t bits = (uint64_t)fingerprint,
                   at = (uint64_t)(epoch < EPOCH_MAX ? epoch : EPOCH_MAX);

    return (int64_t)(EPOCH_TAG << 48 | at << 24 | (bits & 0xffffff));
}

/* The epoch that a stored fingerprint carries; 0 = none. */
static int64_t epoch_of(int64_t fingerprint)
{
    const uint64_t bits = (uint64_t)fingerprint;

    return bits >> 48 == EPOCH_TAG ? (int64_t)(bits >> 24 & 0xffffff) : 0;
}

hfd_rc hfd_fleet_set_observer_idle(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                   const struct hfd_fleet_change *change, bool idle,
                                   struct hfd_err *err)
{
    const int64_t now = idle ? call->fleet->settings_fingerprint : 0;
    struct hfd_fleet_row row;
    hfd_rc rc;

    if (change->removed || change->observer_idle == now)
        return HFD_OK;
    rc = hfd_fleet_row_get(tx, change->id, call->mem, &row, err);
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    /* A replica with older settings leaves what a newer one has noted. */
    if (now != 0 && epoch_of(row.observer_idle) > epoch_of(now) && epoch_of(now) != 0)
        return HFD_OK;
    row.observer_idle = now;
    return hfd_fleet_row_judged(tx, &row, &row, err);
}

/* ---- actions ---- */

#define HFD_TOMBSTONES_MAX 10000
#define ACTIONS_MAX 100 /* entries of one cluster */

struct hfd_tombstone_limits hfd_fleet_tombstone_limits(const struct hfd_fleet *fleet,
                                                       int64_t now_us)
{
    return (struct hfd_tombstone_limits){.max = HFD_TOMBSTONES_MAX,
                                         .since_us = now_us - fleet->tombstone_us,
                                         .held_us = now_us - HFD_OUTBOX_KEEP_US};
}

static struct hfd_history_row entry_of(const struct hfd_fleet_row *row, hfd_slice what,
                                       int64_t at_us)
{
    return (struct hfd_history_row){
        .about = HFD_ABOUT_CLUSTER,
        .id = row->id,
        .instance = row->generation,
        .at_us = at_us,
        .what = what,
        .generation = row->generation,
    };
}

struct hfd_history_row hfd_fleet_action_create(const struct hfd_fleet_row *row)
{
    struct hfd_history_row entry = entry_of(row, HFD_SLICE(HFD_HISTORY_CREATE), row->created_us);

    entry.instance = entry.generation = 1;
    return entry;
}

/* The deletion itself has raised the generation: what was asked for is the one before. */
struct hfd_history_row hfd_fleet_action_delete(const struct hfd_fleet_row *row)
{
    struct hfd_history_row entry = entry_of(row, HFD_SLICE("delete"), row->deleted_us);

    entry.instance = row->generation - 1;
    return entry;
}

/* A cluster with the label of a GUResID is in the history of that resource, or an orphan. */
static hfd_rc is_own(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row, bool *own)
{
    json_t *labels;
    hfd_rc rc;

    *own = false;
    if (row->kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    rc = hfd_json_parse(row->labels, &labels, w->err);
    if (rc != HFD_OK)
        return rc;
    *own = json_object_get(labels, HFD_LABEL_UNCOUNTED) == NULL;
    json_decref(labels);
    return HFD_OK;
}

static hfd_rc add_action(const struct hfd_fleet_work *w, struct hfd_history_row entry, int64_t *seq)
{
    hfd_rc rc = hfd_history_next_seq(w->tx, &entry.seq, w->err);

    if (seq != NULL)
        *seq = entry.seq;
    return rc == HFD_OK ? hfd_history_row_add(w->tx, &entry, ACTIONS_MAX, w->err) : rc;
}

/* The first entry is the creation, unless newer ones took its place. */
static hfd_rc add_creation(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_CLUSTER, row->id};
    struct hfd_history_list list;
    hfd_rc rc = hfd_history_row_list(w->tx, &subject, w->call->mem, &list, w->err);

    return rc == HFD_OK && list.count == 0 ? add_action(w, hfd_fleet_action_create(row), NULL) : rc;
}

/* Writes that a PATCH raised the generation. Anything but such a cluster: nothing. */
static hfd_rc fleet_action_updated(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    bool own;
    hfd_rc rc = is_own(w, row, &own);

    if (rc != HFD_OK || !own)
        return rc;
    rc = add_creation(w, row);
    return rc == HFD_OK ? add_action(w, entry_of(row, HFD_SLICE("update"), row->updated_us), NULL)
                        : rc;
}

/* spec.platform.type of a cluster; empty without one. */
static hfd_rc provider_of(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row,
                          hfd_slice *out)
{
    json_t *spec;
    const char *type;
    hfd_rc rc = hfd_json_parse(row->spec, &spec, w->err);

    if (rc != HFD_OK)
        return rc;
    type = json_string_value(json_object_get(json_object_get(spec, "platform"), "type"));
    *out = hfd_arena_dup(w->call->mem, hfd_slice_of(type != NULL ? type : ""));
    json_decref(spec);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(w->err, "remove a cluster");
}

/* Writes all that its row told, and its tombstone. Anything but such a cluster: nothing. */
static hfd_rc fleet_action_removed(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(w->call->fleet, w->call->now_us);
    struct hfd_tombstone_row stone = {
        .about = HFD_ABOUT_CLUSTER,
        .id = row->id,
        .removed_us = w->call->now_us,
        .created_us = row->created_us,
        .kind = row->kind,
        .cluster_id = row->id,
        .name = row->name,
    };
    struct hfd_history_row removal = entry_of(row, HFD_SLICE("removed"), w->call->now_us);
    bool own;
    hfd_rc rc = is_own(w, row, &own);

    if (rc != HFD_OK || !own)
        return rc;
    removal.instance = row->generation - 1;
    rc = add_creation(w, row);
    if (rc == HFD_OK)
        rc = add_action(w, hfd_fleet_action_delete(row), NULL);
    if (rc == HFD_OK)
        rc = add_action(w, removal, &stone.seq);
    if (rc == HFD_OK)
        rc = provider_of(w, row, &stone.provider);
    return rc == HFD_OK ? hfd_tombstone_row_add(w->tx, &stone, &limits, w->err) : rc;
}

/* ---- fleet ---- */

/*
 * The embedded HyperFleet engine. See fleet.h; the rules are in aggregate.c.
 */

/* Conditions of one report, and of a resource with every required adapter's longest message. */
#define REPORT_CONDITIONS_MAX_BYTES ((size_t)256 * 1024)
#define CONDITIONS_MAX_BYTES ((size_t)16 * 1024 * 1024)

/* ---- shared steps ---- */

static hfd_rc note_changed(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    return hfd_fleet_note_change(
        w->call, &(struct hfd_fleet_change){.id = row->id, .owner_id = row->owner_id}, w->err);
}

void hfd_fleet_href(struct hfd_buf *b, const struct hfd_fleet_row *row)
{
    hfd_buf_lit(b, "/api/hyperfleet/v1/clusters/");
    if (row->kind == HFD_KIND_NODEPOOL) {
        hfd_buf_add(b, row->owner_id);
        hfd_buf_lit(b, "/nodepools/");
    }
    hfd_buf_add(b, row->id);
}

static void ring(const void *arg)
{
    const struct hfd_fleet_bell *bell = arg;

    bell->ring(bell->ctx);
}

/* Gives a row that is about to be written the number of its change. */
static hfd_rc become_due(const struct hfd_fleet_work *w, struct hfd_fleet_row *row)
{
    const struct hfd_fleet_bell *bell = &w->call->fleet->bell;
    const hfd_rc rc = hfd_due_next(w->tx, &row->due_seq, w->err);

    row->trace = hfd_slice_of(hfd_trace_now()->text);
    return rc == HFD_OK && bell->ring != NULL
               ? hfd_txn_after_commit(w->tx, ring, bell, sizeof(*bell), w->err)
               : rc;
}

static bool is_false(const struct hfd_condition *c)
{
    return c != NULL && c->status == HFD_STATUS_FALSE;
}

void hfd_fleet_note_ready(const struct hfd_conditions *cs, struct hfd_fleet_row *row)
{
    const struct hfd_condition *c = hfd_condition_find(cs, HFD_SLICE("Ready"));

    row->ready = c != NULL && c->status == HFD_STATUS_TRUE;
    row->ready_seen_us = c != NULL ? c->last_updated_us : INT64_MAX;
    c = hfd_condition_find(cs, HFD_SLICE("Reconciled"));
    row->pending_us = is_false(c) ? c->last_transition_us : 0;
}

hfd_rc hfd_fleet_store_conditions(const struct hfd_fleet_work *w, const struct hfd_conditions *cs,
                                  bool of_report, hfd_slice *out)
{
    const size_t max_bytes = of_report ? REPORT_CONDITIONS_MAX_BYTES : CONDITIONS_MAX_BYTES;
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, max_bytes);
    hfd_conditions_format(&b, cs, of_report);
    rc = hfd_buf_to_arena(&b, w->call->mem, out, w->err);
    if (rc == HFD_LIMIT)
        rc = hfd_fail_field(w->err, HFD_LIMIT, "conditions",
                            "the conditions %s would take more than %zu bytes",
                            of_report ? "of the report" : "of the resource", max_bytes);
    return rc;
}

/* Counts a Reconciled that becomes False, and that of a new resource. */
static void count_started(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row,
                          const struct hfd_conditions *were, const struct hfd_conditions *are)
{
    const hfd_slice reconciled = HFD_SLICE("Reconciled");

    if (are != NULL && is_false(hfd_condition_find(are, reconciled)) &&
        (were == NULL || !is_false(hfd_condition_find(were, reconciled))))
        hfd_txn_count(w->tx,
                      hfd_metric_series(HFD_METRIC_API_STARTED,
                                        HFD_LABELS(hfd_kind_word(row->kind),
                                                   row->deleted_us != 0 ? "true" : "false")),
                      1);
}

hfd_rc hfd_fleet_update_keys(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row,
                             hfd_slice labels_were, const struct hfd_conditions *were,
                             const struct hfd_conditions *are)
{
    const struct hfd_fleet_reindex change = {
        .was = {were != NULL ? labels_were : HFD_SLICE_NONE, were},
        .is = {are != NULL ? row->labels : HFD_SLICE_NONE, are}};

    count_started(w, row, were, are);
    return hfd_fleet_reindex(w->tx, row, &change, w->call->mem, w->err);
}

static hfd_rc fail_deleting(const struct hfd_fleet_row *row, struct hfd_err *err)
{
    return hfd_fail(err, HFD_DELETING, "%s '%.*s' is marked for deletion", hfd_kind_name(row->kind),
                    HFD_SLICE_FMT(row->id));
}

/* ---- reports as aggregation sees them ---- */

/* ---- conditions ---- */

static size_t bytes_of(const struct hfd_conditions *cs)
{
    size_t sum = cs->count * sizeof(*cs->items);

    for (size_t i = 0; i < cs->count; i++)
        sum += cs->items[i].type.len + cs->items[i].reason.len + cs->items[i].message.len;
    return sum;
}

static char *copy_text(char *to, hfd_slice *text)
{
    if (text->len > 0)
        text->p = memcpy(to, text->p, text->len);
    return to + text->len;
}

/* Copies conditions and their texts. @param to  has bytes_of */
static struct hfd_conditions copy_conditions(const struct hfd_conditions *from, void *to)
{
    const struct hfd_conditions out = {to, from->count};
    char *texts = (char *)(out.items + out.count);

    if (out.count > 0)
        memcpy(out.items, from->items, out.count * sizeof(*out.items));
    for (size_t i = 0; i < out.count; i++) {
        texts = copy_text(texts, &out.items[i].type);
        texts = copy_text(texts, &out.items[i].reason);
        texts = copy_text(texts, &out.items[i].message);
    }
    return out;
}

hfd_rc hfd_fleet_conditions(struct hfd_txn *tx, hfd_slice stored, struct hfd_arena *mem,
                            struct hfd_conditions *out, struct hfd_err *err)
{
    const struct hfd_conditions *known = hfd_unit_parsed_find(tx, stored);
    struct hfd_conditions *keep;
    void *to;
    hfd_rc rc;

    if (known != NULL) {
        to = hfd_arena_alloc(mem, bytes_of(known));
        *out = to != NULL ? copy_conditions(known, to) : (struct hfd_conditions){NULL, 0};
        return to != NULL ? HFD_OK : hfd_fail_nomem(err, "read conditions");
    }
    rc = hfd_conditions_parse(stored, mem, out, err);
    keep = rc == HFD_OK ? hfd_unit_parsed_keep(tx, stored, sizeof(*keep) + bytes_of(out)) : NULL;
    if (keep != NULL)
        *keep = copy_conditions(out, keep + 1);
    return rc;
}

static hfd_rc agg_report_of_row(struct hfd_txn *tx, const struct hfd_report_row *r,
                                struct hfd_arena *mem, struct hfd_agg_report *out,
                                struct hfd_err *err)
{
    const struct hfd_condition *available, *finalized, *degraded;
    hfd_slice shown = HFD_SLICE_NONE;
    struct hfd_conditions cs;
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_arena_init(&scratch, HFD_FLEET_SCRATCH_MAX_BYTES);
    rc = hfd_fleet_conditions(tx, r->conditions, &scratch, &cs, err);
    if (rc == HFD_OK) {
        available = hfd_condition_find(&cs, HFD_SLICE("Available"));
        finalized = hfd_condition_find(&cs, HFD_SLICE("Finalized"));
        degraded = hfd_condition_find(&cs, HFD_SLICE(HFD_OBSERVER_CONDITION));
        if (available != NULL)
            shown = hfd_message_shown(available->message, &scratch);
        *out = (struct hfd_agg_report){
            .adapter = hfd_arena_dup(mem, r->adapter),
            .observed_generation = r->observed_generation,
            .observed_us = r->observed_us,
            .available = available != NULL ? available->status : HFD_STATUS_UNKNOWN,
            .finalized = finalized != NULL ? finalized->status : HFD_STATUS_FALSE,
            .reason = hfd_arena_dup(mem, available != NULL ? available->reason : HFD_SLICE_NONE),
            .message = hfd_arena_dup(mem, available != NULL ? shown : HFD_SLICE_NONE),
            .has_verdict = degraded != NULL && degraded->status != HFD_STATUS_UNKNOWN,
        };
        if (out->adapter.p == NULL || out->reason.p == NULL || out->message.p == NULL ||
            (available != NULL && available->message.len > 0 && shown.p == NULL))
            rc = hfd_fail_nomem(err, "read an adapter's report");
    }
    hfd_arena_fini(&scratch);
    return rc;
}

/* The reports of these rows; `replacing` takes the place of its adapter's row. */
static hfd_rc agg_reports_of_rows(const struct hfd_fleet_work *w,
                                  const struct hfd_report_list *rows,
                                  const struct hfd_report_row *replacing, struct hfd_arena *mem,
                                  struct hfd_agg_reports *out)
{
    struct hfd_agg_report *items = hfd_arena_array(mem, rows->count + 1, sizeof(*items));
    size_t n = 0;
    hfd_rc rc = HFD_OK;

    if (items == NULL)
        return hfd_fail_nomem(w->err, "read the reports of a resource");
    for (size_t i = 0; rc == HFD_OK && i < rows->count; i++)
        if (replacing == NULL || !hfd_slice_eq(rows->rows[i].adapter, replacing->adapter))
            rc = agg_report_of_row(w->tx, &rows->rows[i], mem, &items[n++], w->err);
    if (rc == HFD_OK && replacing != NULL)
        rc = agg_report_of_row(w->tx, replacing, mem, &items[n++], w->err);
    if (rc == HFD_OK)
        *out = (struct hfd_agg_reports){items, n};
    return rc;
}

static hfd_rc load_agg_reports(const struct hfd_fleet_work *w, hfd_slice id,
                               const struct hfd_report_row *replacing, struct hfd_arena *mem,
                               struct hfd_agg_reports *out)
{
    struct hfd_report_list rows;
    struct hfd_arena scratch;
    hfd_rc rc;

    *out = (struct hfd_agg_reports){NULL, 0};
    hfd_arena_init(&scratch, HFD_FLEET_SCRATCH_MAX_BYTES);
    rc = hfd_report_row_heads(w->tx, id, &scratch, &rows, w->err);
    if (rc == HFD_OK)
        rc = agg_reports_of_rows(w, &rows, replacing, mem, out);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_fleet_reports(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                         struct hfd_agg_reports *out, struct hfd_err *err)
{
    const struct hfd_fleet_work w = {.tx = tx, .err = err};

    return load_agg_reports(&w, id, NULL, mem, out);
}

/* Adds the observers with a verdict to the adapters that are required. */
static hfd_rc require_observers(const struct hfd_fleet_work *w, struct hfd_agg_input *in)
{
    const struct hfd_adapter_names *observers = &in->observers;
    hfd_slice *names;
    size_t count = in->required.count;

    if (observers->count == 0 || in->deleting)
        return HFD_OK;
    names = hfd_arena_array(w->call->mem, count + observers->count, sizeof(*names));
    if (names == NULL)
        return hfd_fail_nomem(w->err, "read the observers of a cluster");
    for (size_t i = 0; i < count; i++)
        names[i] = in->required.items[i];
    for (size_t i = 0; i < in->reports.count; i++) {
        const struct hfd_agg_report *r = &in->reports.items[i];

        if (r->has_verdict && hfd_adapter_names_have(*observers, r->adapter) &&
            !hfd_adapter_names_have(in->required, r->adapter))
            names[count++] = r->adapter;
    }
    in->required = (struct hfd_adapter_names){names, count};
    return HFD_OK;
}

hfd_rc hfd_fleet_agg_load(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row,
                          const struct hfd_report_row *replacing, struct hfd_fleet_agg *out)
{
    struct hfd_agg_input *in = &out->in;
    struct hfd_fleet_list children;
    hfd_rc rc;

    *in = (struct hfd_agg_input){
        .required = w->call->fleet->required[row->kind],
        .observers = hfd_fleet_observers_of(w->call->fleet, row->kind),
        .kind_name = hfd_kind_name(row->kind),
        .generation = row->generation,
        .now_us = w->call->now_us,
        .updated_us = row->updated_us,
        .prev = &out->prev,
        .deleting = row->deleted_us != 0,
    };
    rc = load_agg_reports(w, row->id, replacing, w->call->mem, &in->reports);
    if (rc == HFD_OK)
        rc = require_observers(w, in);
    if (rc == HFD_OK)
        rc = hfd_fleet_conditions(w->tx, row->conditions, w->call->mem, &out->prev, w->err);
    if (rc == HFD_OK && in->deleting && row->kind == HFD_KIND_CLUSTER) {
        rc = hfd_fleet_row_children(w->tx, row->id, w->call->mem, &children, w->err);
        in->has_children = rc == HFD_OK && children.count > 0;
    }
    return rc;
}

/* ---- labels of the driver ---- */

hfd_rc hfd_fleet_claim_read(const struct hfd_fleet *fleet, hfd_slice labels, struct hfd_arena *mem,
                            struct hfd_fleet_claim *out, struct hfd_err *err)
{
    const char *guresid, *owner;
    json_t *doc;
    hfd_rc rc = hfd_json_parse(labels, &doc, err);

    *out = (struct hfd_fleet_claim){.ours = false};
    if (rc != HFD_OK)
        return rc;
    guresid = json_string_value(json_object_get(doc, HFD_LABEL_UNCOUNTED));
    owner = json_string_value(json_object_get(doc, HFD_LABEL_OWNER));
    out->guresid = hfd_arena_dup(mem, hfd_slice_of(guresid != NULL ? guresid : ""));
    out->owner = hfd_arena_dup(mem, hfd_slice_of(owner != NULL ? owner : ""));
    out->ours = guresid != NULL && (out->owner.len == 0 || hfd_slice_is(out->owner, fleet->owner));
    json_decref(doc);
    return out->guresid.p != NULL && out->owner.p != NULL ? HFD_OK
                                                          : hfd_fail_nomem(err, "read labels");
}

/*
 * Refuses to make a cluster or nodepool the driver's, to take it away, or to give it to another
 * resource or server. Those of another server that has this one for its HyperFleet are that one's.
 */
static hfd_rc check_claim(const struct hfd_fleet_work *w, hfd_slice was, hfd_slice is)
{
    const struct hfd_fleet_call *call = w->call;
    struct hfd_fleet_claim old, new;
    const char *label;
    char field[64];
    hfd_slice had;
    bool same;
    hfd_rc rc;

    if (!call->by_others)
        return HFD_OK;
    rc = hfd_fleet_claim_read(call->fleet, was, call->mem, &old, w->err);
    if (rc == HFD_OK)
        rc = hfd_fleet_claim_read(call->fleet, is, call->mem, &new, w->err);
    if (rc != HFD_OK || (!old.ours && !new.ours))
        return rc;
    same = hfd_slice_eq(old.guresid, new.guresid);
    if (same && old.ours == new.ours &&hfd_slice_eq(old.owner, new.owner))
        return HFD_OK;
    label = same && new.guresid.len > 0 ? HFD_LABEL_OWNER : HFD_LABEL_UNCOUNTED;
    had = same && new.guresid.len > 0 ? old.owner : old.guresid;
    (void)snprintf(field, sizeof(field), "labels.%s", label);
    return hfd_fail_field(w->err, HFD_INVALID, field,
                          "the label %s is the driver's alone: expected %s%.*s%s, as it is", label,
                          had.len > 0 ? "'" : "no such label", HFD_SLICE_FMT(had),
                          had.len > 0 ? "'" : "");
}

/* ---- get and create ---- */

hfd_rc hfd_fleet_get(struct hfd_txn *tx, const struct hfd_fleet_target *target,
                     struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    hfd_rc rc;

    if (target->owner_id.len > 0) {
        const struct hfd_fleet_target owner = {.kind = HFD_KIND_CLUSTER, .id = target->owner_id};

        rc = hfd_fleet_get(tx, &owner, mem, out, err);
        if (rc != HFD_OK)
            return rc;
    }
    rc = hfd_fleet_row_get(tx, target->id, mem, out, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->kind != target->kind))
        return hfd_fail(err, HFD_NOT_FOUND, "%s with id='%.*s' not found",
                        hfd_kind_name(target->kind), HFD_SLICE_FMT(target->id));
    if (rc == HFD_OK && target->owner_id.len > 0 && !hfd_slice_eq(out->owner_id, target->owner_id))
        return hfd_fail(err, HFD_NOT_FOUND, "%s '%.*s' not found for cluster '%.*s'",
                        hfd_kind_name(target->kind), HFD_SLICE_FMT(target->id),
                        HFD_SLICE_FMT(target->owner_id));
    return rc;
}

/* A nodepool needs a cluster that exists and is not being deleted. */
static hfd_rc check_owner(const struct hfd_fleet_work *w, hfd_slice owner_id)
{
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = owner_id};
    struct hfd_fleet_row owner;
    hfd_rc rc = hfd_fleet_get(w->tx, &target, w->call->mem, &owner, w->err);

    return rc == HFD_OK && owner.deleted_us != 0 ? fail_deleting(&owner, w->err) : rc;
}

/* The row of a new cluster or nodepool, with its first conditions. */
static hfd_rc new_row(const struct hfd_fleet_work *w, const struct hfd_fleet_create *in,
                      struct hfd_fleet_row *out, struct hfd_conditions *conditions)
{
    const struct hfd_fleet_call *call = w->call;
    const struct hfd_agg_input agg = {.required = call->fleet->required[in->kind],
                                      .now_us = call->now_us};
    char id[HFD_KSUID_LEN];

    hfd_ksuid_make(call->now_us, call->fleet->rng, id);
    *out = (struct hfd_fleet_row){
        .id = hfd_arena_dup(call->mem, (hfd_slice){id, sizeof(id)}),
        .kind = in->kind,
        .owner_id = in->owner_id,
        .name = in->name,
        .generation = 1,
        .spec = in->spec,
        .labels = in->labels,
        .created_us = call->now_us,
        .updated_us = call->now_us,
        .created_by = call->caller,
        .updated_by = call->caller,
    };
    if (out->id.p == NULL || hfd_agg_created(&agg, call->mem, conditions) != HFD_OK)
        return hfd_fail_nomem(w->err, "create a HyperFleet resource");
    hfd_fleet_note_ready(conditions, out);
    return hfd_fleet_store_conditions(w, conditions, false, &out->conditions);
}

hfd_rc hfd_fleet_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                        struct hfd_err *err)
{
    const struct hfd_fleet_work w = {tx, call, err};
    struct hfd_conditions conditions;
    hfd_rc rc = HFD_OK;

    HFD_ASSERT((in->kind == HFD_KIND_NODEPOOL) == (in->owner_id.len > 0));
    if (in->owner_id.len > 0)
        rc = check_owner(&w, in->owner_id);
    if (rc == HFD_OK)
        rc = check_claim(&w, HFD_SLICE("{}"), in->labels);
    if (rc == HFD_OK)
        rc = new_row(&w, in, out, &conditions);
    if (rc != HFD_OK)
        return rc;
    rc = become_due(&w, out);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_insert(tx, out, err);
    if (rc == HFD_CONFLICT)
        return hfd_fail_field(err, HFD_CONFLICT, "name", "This %s already exists",
                              hfd_kind_name(in->kind));
    if (rc == HFD_OK)
        rc = hfd_fleet_update_keys(&w, out, HFD_SLICE_NONE, NULL, &conditions);
    return rc == HFD_OK && call->by_others && in->kind == HFD_KIND_NODEPOOL ? note_changed(&w, out)
                                                                            : rc;
}

hfd_rc hfd_fleet_end(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_fleet_row *row, bool removed, struct hfd_err *err)
{
    return call->fleet->ending != NULL ? call->fleet->ending(tx, call, row, removed, err) : HFD_OK;
}

/* ---- patch ---- */

/*
 * Raises the generation, with what follows for the conditions, and writes the row. `labels_were`
 * are the labels before the change.
 */
static hfd_rc raise_generation(const struct hfd_fleet_work *w, hfd_slice labels_were,
                               struct hfd_fleet_row *row)
{
    const struct hfd_fleet_call *call = w->call;
    struct hfd_conditions prev, next;
    struct hfd_agg_input in = {
        .required = call->fleet->required[row->kind],
        .observers = hfd_fleet_observers_of(call->fleet, row->kind),
        .generation = row->generation + 1,
        .now_us = call->now_us,
        .updated_us = call->now_us,
        .prev = &prev,
        .deleting = row->deleted_us != 0,
    };
    hfd_rc rc;

    rc = hfd_fleet_conditions(w->tx, row->conditions, call->mem, &prev, w->err);
    if (rc == HFD_OK && in.observers.count > 0)
        rc = load_agg_reports(w, row->id, NULL, call->mem, &in.reports);
    if (rc == HFD_OK)
        rc = require_observers(w, &in);
    if (rc != HFD_OK)
        return rc;
    row->generation++;
    row->updated_us = call->now_us;
    row->updated_by = call->caller;
    if (hfd_agg_changed(&in, call->mem, &next) != HFD_OK)
        return hfd_fail_nomem(w->err, "change a HyperFleet resource");
    hfd_fleet_note_ready(&next, row);
    rc = hfd_fleet_store_conditions(w, &next, false, &row->conditions);
    if (rc == HFD_OK)
        rc = become_due(w, row);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_update(w->tx, row, w->err);
    if (rc == HFD_OK)
        rc = hfd_fleet_update_keys(w, row, labels_were, &prev, &next);
    return rc == HFD_OK ? note_changed(w, row) : rc;
}

/*
 * Compares two specs. Texts that differ may still mean the same: 1.0 equals 1. A stored spec that
 * cannot be parsed counts as different, so that a PATCH replaces it.
 */
static hfd_rc spec_differs(hfd_slice stored, hfd_slice given, bool *out, struct hfd_err *err)
{
    int64_t work = INT64_MAX;
    json_t *a = NULL, *b = NULL;
    hfd_rc rc;

    *out = given.p != NULL && !hfd_slice_eq(stored, given);
    if (!*out)
        return HFD_OK;
    rc = hfd_json_parse(stored, &a, err);
    if (rc == HFD_OK)
        rc = hfd_json_parse(given, &b, err);
    if (rc == HFD_OK)
        *out = !hfd_json_same(a, b, &work);
    json_decref(a);
    json_decref(b);
    return rc == HFD_NOMEM ? rc : HFD_OK;
}

/* A new attempt at what is there already: adapters look at it again. */
static hfd_rc due_again(const struct hfd_fleet_work *w, struct hfd_fleet_row *row)
{
    const hfd_rc rc = become_due(w, row);

    return rc == HFD_OK ? hfd_fleet_row_update(w->tx, row, w->err) : rc;
}

hfd_rc hfd_fleet_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                       const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                       struct hfd_err *err)
{
    const struct hfd_fleet_work w = {tx, call, err};
    bool other_spec, other_labels;
    hfd_slice labels_were;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, &in->target, call->mem, out, err);
    if (rc != HFD_OK)
        return rc;
    if (out->deleted_us != 0)
        return fail_deleting(out, err);
    rc = spec_differs(out->spec, in->spec, &other_spec, err);
    if (rc != HFD_OK)
        return rc;
    labels_were = out->labels;
    other_labels = in->labels.p != NULL && !hfd_slice_eq(in->labels, labels_were);
    if (!other_spec && !other_labels)
        return call->again ? due_again(&w, out) : HFD_OK;
    if (other_labels)
        rc = check_claim(&w, labels_were, in->labels);
    if (rc == HFD_OK)
        rc = hfd_fleet_end(tx, call, out, false, err);
    if (rc != HFD_OK)
        return rc;
    if (other_spec)
        out->spec = in->spec;
    if (other_labels)
        out->labels = in->labels;
    rc = raise_generation(&w, labels_were, out);
    return rc == HFD_OK ? fleet_action_updated(&w, out) : rc;
}

/* ---- delete ---- */

static hfd_rc remove_observations(const struct hfd_fleet_work *w, hfd_slice id)
{
    const struct hfd_watch_row all = {.fleet_id = id};
    hfd_rc rc = hfd_event_row_delete_all(w->tx, id, w->err);

    return rc == HFD_OK ? hfd_watch_row_delete(w->tx, &all, w->err) : rc;
}

static hfd_rc remove_row(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    struct hfd_conditions cs;
    hfd_rc rc = hfd_fleet_end(w->tx, w->call, row, true, w->err);

    if (rc == HFD_OK)
        rc = hfd_fleet_conditions(w->tx, row->conditions, w->call->mem, &cs, w->err);
    if (rc == HFD_OK)
        rc = hfd_fleet_update_keys(w, row, row->labels, &cs, NULL);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(w->tx, row->id, w->err);
    if (rc == HFD_OK)
        rc = hfd_due_keep(w->tx, row, w->call->now_us, w->err);
    if (rc == HFD_OK && hfd_fleet_observers_of(w->call->fleet, row->kind).count > 0)
        rc = remove_observations(w, row->id);
    if (rc == HFD_OK)
        rc = fleet_action_removed(w, row);
    return rc == HFD_OK
               ? hfd_fleet_note_change(w->call,
                                       &(struct hfd_fleet_change){.id = row->id,
                                                                  .owner_id = row->owner_id,
                                                                  .removed = true},
                                       w->err)
               : rc;
}

static hfd_rc remove_one_if_finalized(const struct hfd_fleet_work *w,
                                      const struct hfd_fleet_row *row, bool *removed)
{
    struct hfd_fleet_agg agg;
    hfd_rc rc;

    *removed = false;
    if (row->deleted_us == 0)
        return HFD_OK;
    rc = hfd_fleet_agg_load(w, row, NULL, &agg);
    if (rc != HFD_OK || !hfd_agg_finalized(&agg.in))
        return rc;
    rc = remove_row(w, row);
    *removed = rc == HFD_OK;
    return rc;
}

/* A nodepool was removed: removes its cluster if that waited for nothing else. */
static hfd_rc remove_owner_if_finalized(const struct hfd_fleet_work *w,
                                        const struct hfd_fleet_row *nodepool)
{
    struct hfd_fleet_row owner;
    bool removed;
    hfd_rc rc;

    if (nodepool->kind != HFD_KIND_NODEPOOL)
        return HFD_OK;
    rc = hfd_fleet_row_get(w->tx, nodepool->owner_id, w->call->mem, &owner, w->err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    return rc == HFD_OK ? remove_one_if_finalized(w, &owner, &removed) : rc;
}

hfd_rc hfd_fleet_remove_if_finalized(const struct hfd_fleet_work *w,
                                     const struct hfd_fleet_row *row, bool *removed)
{
    hfd_rc rc = remove_one_if_finalized(w, row, removed);

    return rc == HFD_OK && *removed ? remove_owner_if_finalized(w, row) : rc;
}

static hfd_rc mark_deleted(const struct hfd_fleet_work *w, struct hfd_fleet_row *row)
{
    row->deleted_us = w->call->now_us;
    row->deleted_by = w->call->caller;
    return raise_generation(w, row->labels, row);
}

typedef hfd_rc child_fn(const struct hfd_fleet_work *w, struct hfd_fleet_row *child);

/*
 * Calls fn for each nodepool of a cluster. Each has an arena of its own: all together may be larger
 * than any request.
 */
static hfd_rc for_each_child(const struct hfd_fleet_work *w, hfd_slice cluster_id, child_fn *fn)
{
    struct hfd_fleet_list children;
    hfd_rc rc = hfd_fleet_row_children(w->tx, cluster_id, w->call->mem, &children, w->err);

    for (size_t i = 0; rc == HFD_OK && i < children.count; i++) {
        struct hfd_fleet_call call = *w->call;
        struct hfd_fleet_row child;
        struct hfd_arena scratch;

        hfd_arena_init(&scratch, HFD_FLEET_SCRATCH_MAX_BYTES);
        call.mem = &scratch;
        rc = hfd_fleet_row_get(w->tx, children.rows[i].id, &scratch, &child, w->err);
        if (rc == HFD_OK)
            rc = fn(&(struct hfd_fleet_work){w->tx, &call, w->err}, &child);
        hfd_arena_fini(&scratch);
    }
    return rc;
}

/* A cluster takes its nodepools with it, all at the same instant. */
static hfd_rc delete_child(const struct hfd_fleet_work *w, struct hfd_fleet_row *child)
{
    bool removed;
    hfd_rc rc = child->deleted_us == 0 ? mark_deleted(w, child) : HFD_OK;

    return rc == HFD_OK ? hfd_fleet_remove_if_finalized(w, child, &removed) : rc;
}

/* A removal that no adapter waited for is a change of its own. */
static hfd_rc remove_by_force(const struct hfd_fleet_work *w, struct hfd_fleet_row *row)
{
    const hfd_rc rc = become_due(w, row);

    return rc == HFD_OK ? remove_row(w, row) : rc;
}

hfd_rc hfd_fleet_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_target *target, struct hfd_fleet_deletion *out,
                        struct hfd_err *err)
{
    const struct hfd_fleet_work w = {tx, call, err};
    struct hfd_fleet_row again;
    hfd_rc rc;

    out->removed = false;
    rc = hfd_fleet_get(tx, target, call->mem, &out->row, err);
    if (rc == HFD_OK && out->row.deleted_us == 0)
        rc = mark_deleted(&w, &out->row);
    else if (rc == HFD_OK && call->again)
        rc = due_again(&w, &out->row);
    if (rc == HFD_OK && target->kind == HFD_KIND_CLUSTER)
        rc = for_each_child(&w, target->id, delete_child);
    if (rc != HFD_OK)
        return rc;
    /* The removal of the last nodepool may have removed the cluster. */
    rc = hfd_fleet_row_get(tx, target->id, call->mem, &again, err);
    if (rc == HFD_NOT_FOUND) {
        out->removed = true;
        return HFD_OK;
    }
    return rc == HFD_OK ? hfd_fleet_remove_if_finalized(&w, &out->row, &out->removed) : rc;
}

hfd_rc hfd_fleet_force_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                              const struct hfd_fleet_target *target, struct hfd_err *err)
{
    const struct hfd_fleet_work w = {tx, call, err};
    struct hfd_fleet_row row;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, target, call->mem, &row, err);
    if (rc == HFD_OK && row.deleted_us == 0)
        return hfd_fail(err, HFD_DELETING, "%s '%.*s' is not in Finalizing state",
                        hfd_kind_name(target->kind), HFD_SLICE_FMT(target->id));
    if (rc == HFD_OK && target->kind == HFD_KIND_CLUSTER)
        rc = for_each_child(&w, target->id, remove_by_force);
    if (rc == HFD_OK)
        rc = remove_by_force(&w, &row);
    return rc == HFD_OK ? remove_owner_if_finalized(&w, &row) : rc;
}
