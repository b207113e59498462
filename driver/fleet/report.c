/* See report.h. The tables are in aggregate.c. */
#include "driver/fleet/report.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/metrics.h"
#include "driver/fleet/aggregate.h"
#include "driver/fleet/fleet.h"

#include <stdio.h>

/* Adapters that are not required: how many may report on one resource, and how much in all. */
#define OTHERS_MAX 256
#define OTHERS_MAX_BYTES ((size_t)1024 * 1024)

/*
 * Compares a report with the adapter's last one, without the times that the store keeps. A report
 * with secrets never equals another: each is sealed with a new nonce.
 */
static hfd_rc compare_content(const struct hfd_fleet_work *w, const struct hfd_fleet_report *in,
                              const struct hfd_report_row *prev, bool *same)
{
    struct hfd_conditions old;
    hfd_rc rc;

    *same = false;
    if (in->secrets.len > 0 || prev->secrets.len > 0 || !hfd_slice_eq(in->data, prev->data) ||
        !hfd_slice_eq(in->metadata, prev->metadata))
        return HFD_OK;
    rc = hfd_fleet_conditions(w->tx, prev->conditions, w->call->mem, &old, w->err);
    if (rc != HFD_OK || old.count != in->conditions.count)
        return rc;
    for (size_t i = 0; i < old.count; i++) {
        const struct hfd_condition *a = &in->conditions.items[i], *b = &old.items[i];

        if (!hfd_slice_eq(a->type, b->type) || a->status != b->status ||
            !hfd_slice_eq(a->reason, b->reason) || !hfd_slice_eq(a->message, b->message))
            return HFD_OK;
    }
    *same = true;
    return HFD_OK;
}

static struct hfd_verdict_input verdict_input(const struct hfd_fleet_report *in,
                                              const struct hfd_fleet_row *row)
{
    const struct hfd_condition *available =
        hfd_condition_find(&in->conditions, HFD_SLICE("Available"));
    const struct hfd_condition *finalized =
        hfd_condition_find(&in->conditions, HFD_SLICE("Finalized"));

    return (struct hfd_verdict_input){
        .generation = row->generation,
        .observed_generation = in->observed_generation,
        .observed_us = in->observed_us,
        .has_available = available != NULL,
        .has_applied = hfd_condition_find(&in->conditions, HFD_SLICE("Applied")) != NULL,
        .has_health = hfd_condition_find(&in->conditions, HFD_SLICE("Health")) != NULL,
        .available = available != NULL ? available->status : HFD_STATUS_UNKNOWN,
        .finalized_true = finalized != NULL && finalized->status == HFD_STATUS_TRUE,
        .deleting = row->deleted_us != 0,
        .keeps_unknown = in->keeps_unknown,
    };
}

/* One report on its way into the store. */
struct job {
    struct hfd_fleet_work w;
    const struct hfd_fleet_report *in;
    const struct hfd_report_row *prev; /* the adapter's last report, or NULL */
    bool news; /* it differs from the last one in content, generation or attempt, or moved a
                  condition */
};

/* Says why a report is discarded, in the words of a header. */
static void say_discarded(const struct hfd_verdict_input *v, struct hfd_fleet_reported *out)
{
    char times[2][HFD_TIME_TEXT_MAX];

    if (strcmp(out->cause, "unknown") == 0) {
        (void)snprintf(out->why, sizeof(out->why), "Available is Unknown");
    } else if (strcmp(out->cause, "older") == 0) {
        hfd_time_format(v->observed_us, times[0]);
        hfd_time_format(v->prev_observed_us, times[1]);
        (void)snprintf(out->why, sizeof(out->why),
                       "observed_time %s is before %s of the last report", times[0], times[1]);
    } else {
        const bool ahead = strcmp(out->cause, "ahead") == 0;

        (void)snprintf(out->why, sizeof(out->why), "observed_generation %lld is %s %lld%s",
                       (long long)v->observed_generation, ahead ? "above" : "below",
                       (long long)(ahead ? v->generation : v->prev_generation),
                       ahead ? "" : " of the last report");
    }
}

static hfd_rc judge(struct job *j, const struct hfd_fleet_row *row, struct hfd_fleet_reported *out)
{
    const struct hfd_report_row *prev = j->prev;
    struct hfd_verdict_input v = verdict_input(j->in, row);
    const char *why;
    hfd_rc rc;

    j->news = true;
    if (prev != NULL) {
        v.has_prev = true;
        v.prev_generation = prev->observed_generation;
        v.prev_observed_us = prev->observed_us;
        rc = compare_content(&j->w, j->in, prev, &v.same_content);
        if (rc != HFD_OK)
            return rc;
        j->news = !v.same_content || j->in->observed_generation != prev->observed_generation ||
                  prev->received_us == 0;
    }
    out->verdict = hfd_report_verdict(&v, &why);
    if (out->verdict == HFD_VERDICT_DISCARD) {
        out->cause = why;
        say_discarded(&v, out);
    }
    if (out->verdict == HFD_VERDICT_REJECT)
        return hfd_fail_field(j->w.err, HFD_INVALID, "conditions",
                              "missing mandatory condition '%s': all adapters must report "
                              "Available, Applied, and Health",
                              why);
    return HFD_OK;
}

/* The report's conditions. The transition time of a condition stays while its status does. */
static hfd_rc date_conditions(const struct job *j, struct hfd_conditions *out)
{
    const struct hfd_conditions *given = &j->in->conditions;
    struct hfd_conditions old = {NULL, 0};
    hfd_rc rc;

    *out = (struct hfd_conditions){
        hfd_arena_array(j->w.call->mem, given->count, sizeof(*out->items)), given->count};
    if (out->items == NULL)
        return hfd_fail_nomem(j->w.err, "store an adapter's report");
    if (j->prev != NULL) {
        rc = hfd_fleet_conditions(j->w.tx, j->prev->conditions, j->w.call->mem, &old, j->w.err);
        if (rc != HFD_OK)
            return rc;
    }
    for (size_t i = 0; i < given->count; i++) {
        const struct hfd_condition *was = hfd_condition_find(&old, given->items[i].type);

        out->items[i] = given->items[i];
        out->items[i].last_transition_us = was != NULL && was->status == given->items[i].status
                                               ? was->last_transition_us
                                               : j->in->observed_us;
    }
    return HFD_OK;
}

static hfd_rc seal_secrets(const struct job *j, hfd_slice *out)
{
    const struct hfd_fleet *fleet = j->w.call->fleet;
    const struct hfd_fleet_secret secret = {j->in->target.id, j->in->adapter, j->in->secrets};

    if (j->in->secrets.len == 0)
        return HFD_OK;
    HFD_ASSERT(fleet->seal != NULL);
    *out = fleet->seal(fleet, &secret, j->w.call->mem);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(j->w.err, "seal the secrets of a report");
}

/* ---- brief ---- */

/* Conditions of this length are read whole. Those of most adapters are below 1 KiB. */
#define LONG_FROM_BYTES 4096
/* The judged types with the longest reasons, each byte escaped, need less. */
#define BRIEF_MAX_BYTES ((size_t)256 * 1024)

/* Leaves the judged conditions in cs, with short messages. */
static bool shorten(struct hfd_conditions *cs, struct hfd_arena *mem)
{
    size_t count = 0;

    for (size_t i = 0; i < cs->count; i++) {
        struct hfd_condition c = cs->items[i];

        if (!hfd_condition_is_judged(c.type))
            continue;
        if (c.message.len > 0)
            c.message = hfd_message_shown(c.message, mem);
        if (c.message.len > 0 && c.message.p == NULL)
            return false;
        cs->items[count++] = c;
    }
    cs->count = count;
    return true;
}

hfd_rc hfd_report_brief(struct hfd_report_row *row, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_conditions cs;
    struct hfd_buf b;
    hfd_rc rc;

    row->brief = HFD_SLICE("");
    row->long_bytes = 0;
    if (row->conditions.len < LONG_FROM_BYTES)
        return HFD_OK;
    rc = hfd_conditions_parse(row->conditions, mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    if (!shorten(&cs, mem))
        return hfd_fail_nomem(err, "shorten the conditions of a report");
    hfd_buf_init(&b, BRIEF_MAX_BYTES);
    hfd_conditions_format(&b, &cs, true);
    rc = hfd_buf_to_arena(&b, mem, &row->brief, err);
    if (rc == HFD_OK)
        row->long_bytes = (int64_t)row->conditions.len;
    return rc;
}

/* ---- storing ---- */

/* The report as it is stored. */
static hfd_rc make_row(const struct job *j, struct hfd_report_row *out)
{
    const struct hfd_fleet_report *in = j->in;
    struct hfd_conditions conditions;
    hfd_rc rc = date_conditions(j, &conditions);

    if (rc != HFD_OK)
        return rc;
    *out = (struct hfd_report_row){
        .fleet_id = in->target.id,
        .adapter = in->adapter,
        .observed_generation = in->observed_generation,
        .observed_us = in->observed_us,
        .received_us = j->w.call->now_us,
        .created_us = j->prev != NULL ? j->prev->created_us : in->observed_us,
        .data = in->data,
        .metadata = in->metadata,
    };
    if (hfd_object_counts_format(&in->objects, j->w.call->mem, &out->objects) != HFD_OK)
        return hfd_fail_nomem(j->w.err, "store an adapter's report");
    rc = seal_secrets(j, &out->secrets);
    if (rc == HFD_OK)
        rc = hfd_fleet_store_conditions(&j->w, &conditions, true, &out->conditions);
    return rc == HFD_OK ? hfd_report_brief(out, j->w.call->mem, j->w.err) : rc;
}

/* Compares aggregated conditions, but for their last_updated_time. */
static bool conditions_equal(const struct hfd_conditions *was, const struct hfd_conditions *is)
{
    if (was->count != is->count)
        return false;
    for (size_t i = 0; i < was->count; i++) {
        const struct hfd_condition *a = &was->items[i], *b = &is->items[i];

        if (!hfd_slice_eq(a->type, b->type) || a->status != b->status ||
            !hfd_slice_eq(a->reason, b->reason) || !hfd_slice_eq(a->message, b->message) ||
            a->observed_generation != b->observed_generation || a->created_us != b->created_us ||
            a->last_transition_us != b->last_transition_us)
            return false;
    }
    return true;
}

/* Writes what the event makes of the resource's conditions. @param news  turns true if it is new */
static hfd_rc write_judged(const struct hfd_fleet_work *w, const struct hfd_fleet_agg *agg,
                           struct hfd_fleet_row *row, bool *news)
{
    const struct hfd_fleet_row was = *row;
    struct hfd_conditions next;
    hfd_rc rc;

    if (hfd_agg_reported(&agg->in, w->call->mem, &next) != HFD_OK)
        return hfd_fail_nomem(w->err, "aggregate reports");
    *news = *news || !conditions_equal(&agg->prev, &next);
    hfd_fleet_note_ready(&next, row);
    rc = hfd_fleet_store_conditions(w, &next, false, &row->conditions);
    if (rc != HFD_OK || hfd_slice_eq(was.conditions, row->conditions))
        return rc;
    rc = hfd_fleet_row_judged(w->tx, row, &was, w->err);
    return rc == HFD_OK ? hfd_fleet_update_keys(w, row, row->labels, &agg->prev, &next) : rc;
}

/* Aggregates with a report that is about to be written, and writes the resource's conditions. */
static hfd_rc aggregate(struct job *j, const struct hfd_report_row *report,
                        struct hfd_fleet_row *row)
{
    struct hfd_fleet_agg agg;
    hfd_rc rc;

    rc = hfd_fleet_agg_load(&j->w, row, report, &agg);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < agg.in.reports.count; i++)
        if (hfd_slice_eq(agg.in.reports.items[i].adapter, report->adapter))
            agg.in.event = &agg.in.reports.items[i];
    HFD_ASSERT(agg.in.event != NULL);
    return write_judged(&j->w, &agg, row, &j->news);
}

/* The settings name it, as required or as an observer. */
static bool is_configured(const struct job *j, hfd_slice adapter)
{
    const struct hfd_fleet *fleet = j->w.call->fleet;
    const enum hfd_kind kind = j->in->target.kind;

    return hfd_adapter_names_have(fleet->required[kind], adapter) ||
           hfd_adapter_names_have(hfd_fleet_observers_of(fleet, kind), adapter);
}

/* Adapters choose their names, so their number needs a bound. Required ones always fit. */
static hfd_rc check_room(const struct job *j, size_t bytes)
{
    struct hfd_report_list rows;
    struct hfd_arena scratch;
    size_t count = 1;
    hfd_rc rc;

    hfd_arena_init(&scratch, HFD_FLEET_SCRATCH_MAX_BYTES);
    rc = hfd_report_row_heads(j->w.tx, j->in->target.id, &scratch, &rows, j->w.err);
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++) {
        if (hfd_slice_eq(rows.rows[i].adapter, j->in->adapter) ||
            is_configured(j, rows.rows[i].adapter))
            continue;
        count++;
        bytes += rows.rows[i].long_bytes > 0 ? (size_t)rows.rows[i].long_bytes
                                             : rows.rows[i].conditions.len;
    }
    hfd_arena_fini(&scratch);
    if (rc == HFD_OK && count > OTHERS_MAX)
        return hfd_fail_field(
            j->w.err, HFD_LIMIT, "adapter",
            "at most %d adapters that are not required can report on one resource", OTHERS_MAX);
    if (rc == HFD_OK && bytes > OTHERS_MAX_BYTES)
        return hfd_fail_field(j->w.err, HFD_LIMIT, "conditions",
                              "the conditions of adapters that are not required would take more "
                              "than %zu bytes on one resource",
                              OTHERS_MAX_BYTES);
    return rc;
}

/*
 * Appends the change, unless the observer needs no reports without news. Most reports of a large
 * fleet confirm what is known, and observing one reads all rows of its driver resource.
 */
static hfd_rc note_report(const struct job *j, const struct hfd_fleet_row *row)
{
    const int64_t fingerprint = j->w.call->fleet->settings_fingerprint;
    const struct hfd_fleet_change change = {
        .id = row->id, .reported = true, .observer_idle = row->observer_idle};

    if (!j->news && fingerprint != 0 && row->observer_idle == fingerprint)
        return HFD_OK;
    return hfd_fleet_note_change(j->w.call, &change, j->w.err);
}

/* Stores a report that counts, with all that follows from it. */
static hfd_rc store_report(struct job *j, struct hfd_fleet_row *row, struct hfd_report_row *out)
{
    bool removed;
    hfd_rc rc = make_row(j, out);

    if (rc == HFD_OK && !is_configured(j, j->in->adapter) &&
        (j->prev == NULL || out->conditions.len > j->prev->conditions.len))
        rc = check_room(j, out->conditions.len);
    if (rc == HFD_OK)
        rc = aggregate(j, out, row);
    if (rc == HFD_OK)
        rc = hfd_report_row_put(j->w.tx, out, j->w.err);
    if (rc == HFD_OK)
        rc = note_report(j, row);
    return rc == HFD_OK ? hfd_fleet_remove_if_finalized(&j->w, row, &removed) : rc;
}

/* An adapter and the time of its report, until the commit. */
struct heard {
    char adapter[65]; /* a label has no more */
    int64_t at_s;
};

static void set_last_report(const void *arg)
{
    const struct heard *h = arg;

    hfd_metric_set(HFD_METRIC_LAST_REPORT, HFD_LABELS(h->adapter), h->at_s);
}

static hfd_rc note_time(const struct job *j)
{
    struct heard h = {.at_s = j->w.call->now_us / HFD_US_PER_S};

    (void)snprintf(h.adapter, sizeof(h.adapter), "%.*s", HFD_SLICE_FMT(j->in->adapter));
    return hfd_txn_after_commit(j->w.tx, set_last_report, &h, sizeof(h), j->w.err);
}

hfd_rc hfd_fleet_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_report *in, struct hfd_fleet_reported *out,
                        struct hfd_err *err)
{
    struct job j = {.w = {tx, call, err}, .in = in};
    struct hfd_report_row prev;
    struct hfd_fleet_row row;
    hfd_rc rc;

    *out = (struct hfd_fleet_reported){0};
    rc = hfd_fleet_get(tx, &in->target, call->mem, &row, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_report_row_get(tx, &(struct hfd_report_key){in->target.id, in->adapter}, call->mem,
                            &prev, err);
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    j.prev = rc == HFD_OK ? &prev : NULL;
    rc = judge(&j, &row, out);
    if (rc == HFD_OK && !is_configured(&j, in->adapter))
        rc = hfd_fleet_count_not_required(tx, in->adapter, &call->fleet->required[in->target.kind],
                                          err);
    if (rc != HFD_OK || out->verdict == HFD_VERDICT_DISCARD)
        return rc;
    rc = note_time(&j);
    if (rc != HFD_OK)
        return rc;
    if (out->verdict == HFD_VERDICT_REPEAT) {
        HFD_ASSERT(j.prev != NULL); /* only a stored report can be repeated */
        out->row = prev;
        return HFD_OK;
    }
    return store_report(&j, &row, &out->row);
}

hfd_rc hfd_fleet_check_reporter(const struct hfd_fleet *fleet, hfd_slice adapter,
                                struct hfd_err *err)
{
    if (!hfd_adapter_names_have(fleet->builtin, adapter))
        return HFD_OK;
    return hfd_fail_field(err, HFD_CONFLICT, "adapter",
                          "adapter %.*s is built into this server, and reports itself",
                          HFD_SLICE_FMT(adapter));
}

/* ---- reports that the server makes, or takes back ---- */

hfd_rc hfd_fleet_report_restate(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                const struct hfd_fleet_target *target,
                                const struct hfd_report_row *row, struct hfd_err *err)
{
    const struct hfd_fleet_report in = {.target = *target, .adapter = row->adapter};
    struct job j = {.w = {tx, call, err}, .in = &in, .news = true};
    struct hfd_report_row judged = *row, stored = *row;
    struct hfd_fleet_row fleet_row;
    bool removed;
    hfd_rc rc = hfd_fleet_get(tx, target, call->mem, &fleet_row, err);

    if (rc == HFD_OK)
        rc = hfd_report_brief(&stored, call->mem, err);
    if (rc != HFD_OK)
        return rc;
    judged.observed_us = call->now_us;
    rc = aggregate(&j, &judged, &fleet_row);
    if (rc == HFD_OK)
        rc = hfd_report_row_put(tx, &stored, err);
    if (rc == HFD_OK)
        rc = note_report(&j, &fleet_row);
    return rc == HFD_OK ? hfd_fleet_remove_if_finalized(&j.w, &fleet_row, &removed) : rc;
}

/*
 * Stands for the report that is gone: a required adapter says again what it said, now. Reports at
 * the resource's generation come first. NULL: none has reported, or memory is short.
 */
static const struct hfd_agg_report *make_event(const struct hfd_fleet_work *w,
                                               const struct hfd_agg_input *in)
{
    const struct hfd_agg_report *found = NULL;
    struct hfd_agg_report *event;

    for (size_t i = 0; i < in->required.count; i++)
        for (size_t k = 0; k < in->reports.count; k++) {
            const struct hfd_agg_report *r = &in->reports.items[k];

            if (hfd_slice_eq(r->adapter, in->required.items[i]) &&
                (found == NULL || (found->observed_generation != in->generation &&
                                   r->observed_generation == in->generation)))
                found = r;
        }
    event = found != NULL ? hfd_arena_alloc(w->call->mem, sizeof(*event)) : NULL;
    if (event == NULL)
        return NULL;
    *event = *found;
    event->observed_us = w->call->now_us;
    return event;
}

/* Nothing is left to aggregate: drops what the report said, and nothing else. */
static hfd_rc drop_conditions(const struct hfd_fleet_work *w, struct hfd_fleet_agg *agg,
                              hfd_slice adapter, struct hfd_fleet_row *row)
{
    const hfd_slice type = hfd_adapter_condition_type(adapter, w->call->mem);
    const struct hfd_fleet_row was = *row;
    struct hfd_conditions next = {NULL, 0};
    hfd_rc rc;

    next.items = hfd_arena_array(w->call->mem, agg->prev.count + 1, sizeof(*next.items));
    if (type.p == NULL || next.items == NULL)
        return hfd_fail_nomem(w->err, "drop the conditions of a report");
    for (size_t i = 0; i < agg->prev.count; i++)
        if (!hfd_slice_eq(agg->prev.items[i].type, type) &&
            !hfd_slice_is(agg->prev.items[i].type, HFD_OBSERVER_CONDITION))
            next.items[next.count++] = agg->prev.items[i];
    rc = hfd_fleet_store_conditions(w, &next, false, &row->conditions);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_judged(w->tx, row, &was, w->err);
    return rc == HFD_OK ? hfd_fleet_update_keys(w, row, row->labels, &agg->prev, &next) : rc;
}

hfd_rc hfd_fleet_report_withdraw(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                 const struct hfd_fleet_target *target, hfd_slice adapter,
                                 struct hfd_err *err)
{
    const struct hfd_report_key key = {target->id, adapter};
    struct job j = {.w = {tx, call, err}, .news = true};
    struct hfd_fleet_agg agg;
    struct hfd_fleet_row row;
    bool removed;
    hfd_rc rc = hfd_fleet_get(tx, target, call->mem, &row, err);

    if (rc == HFD_OK)
        rc = hfd_report_row_delete(tx, &key, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_agg_load(&j.w, &row, NULL, &agg);
    if (rc != HFD_OK)
        return rc;
    agg.in.event = make_event(&j.w, &agg.in);
    rc = agg.in.event != NULL ? write_judged(&j.w, &agg, &row, &j.news)
                              : drop_conditions(&j.w, &agg, adapter, &row);
    if (rc == HFD_OK)
        rc = note_report(&j, &row);
    return rc == HFD_OK ? hfd_fleet_remove_if_finalized(&j.w, &row, &removed) : rc;
}

/* ---- objects ---- */

static const char *const rsync_names[HFD_RSYNC_COUNT] = {
    [HFD_RSYNC_PENDING] = "Pending",       [HFD_RSYNC_APPLIED] = "Applied",
    [HFD_RSYNC_FAILED] = "Failed",         [HFD_RSYNC_RETRYING] = "Retrying",
    [HFD_RSYNC_TERMINATED] = "Terminated",
};

static const char *const presence_names[HFD_PRESENCE_COUNT] = {
    [HFD_PRESENCE_UNKNOWN] = "Unknown",
    [HFD_PRESENCE_NOT_PRESENT] = "NotPresent",
    [HFD_PRESENCE_PRESENT] = "Present",
};

const char *hfd_rsync_name(enum hfd_rsync s)
{
    return rsync_names[s];
}

static bool rsync_parse(hfd_slice text, enum hfd_rsync *out)
{
    if (hfd_slice_is(text, "Instantiated")) /* the words of EMCO's table and example */
        text = hfd_slice_of(rsync_names[HFD_RSYNC_APPLIED]);
    else if (hfd_slice_is(text, "Deleted"))
        text = hfd_slice_of(rsync_names[HFD_RSYNC_TERMINATED]);
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        if (hfd_slice_is(text, rsync_names[i])) {
            *out = (enum hfd_rsync)i;
            return true;
        }
    return false;
}

const char *hfd_presence_name(enum hfd_presence p)
{
    return presence_names[p];
}

/* Splits "apps/v1"; the group of "v1" is empty. */
static void split_version(hfd_slice text, struct hfd_object *out)
{
    const char *slash = text.len > 0 ? memchr(text.p, '/', text.len) : NULL;
    const size_t at = slash != NULL ? (size_t)(slash - text.p) : 0;

    out->group = (hfd_slice){text.p, at};
    out->version = slash != NULL ? (hfd_slice){slash + 1, text.len - at - 1} : text;
}

/* The kind is in GVK, or in apiVersion and kind of the entry or of its detail. */
static void read_kind(const json_t *entry, struct hfd_object *out)
{
    const json_t *gvk = json_object_get(entry, "GVK"), *from = entry;

    if (json_is_object(gvk)) {
        out->group = hfd_json_text(gvk, "Group");
        out->version = hfd_json_text(gvk, "Version");
        out->kind = hfd_json_text(gvk, "Kind");
        return;
    }
    if (hfd_json_text(entry, "kind").len == 0)
        from = json_object_get(entry, "detail");
    out->kind = hfd_json_text(from, "kind");
    split_version(hfd_json_text(from, "apiVersion"), out);
}

bool hfd_object_read(const json_t *entry, struct hfd_object *out)
{
    const json_t *present;

    *out = (struct hfd_object){.name = hfd_json_text(entry, "name")};
    if (out->name.len == 0)
        return false;
    read_kind(entry, out);
    out->provider = hfd_json_text(entry, "cluster-provider");
    out->cluster = hfd_json_text(entry, "cluster");
    out->has_rsync = rsync_parse(hfd_json_text(entry, "rsync-status"), &out->rsync);
    out->observed_only = json_is_true(json_object_get(entry, "observed-only"));
    present = json_object_get(entry, "present");
    if (json_is_boolean(present))
        out->presence = json_is_true(present) ? HFD_PRESENCE_PRESENT : HFD_PRESENCE_NOT_PRESENT;
    return true;
}

void hfd_object_count(const struct hfd_object *object, struct hfd_object_counts *counts)
{
    counts->presence[object->presence]++;
    if (object->observed_only)
        return;
    if (object->has_rsync)
        counts->own[object->rsync]++;
    else
        counts->other++;
}

void hfd_objects_count(const json_t *data, struct hfd_object_counts *counts)
{
    const json_t *list = json_object_get(data, "objects"), *entry;
    struct hfd_object object;
    size_t i;

    json_array_foreach (list, i, entry)
        if (hfd_object_read(entry, &object))
            hfd_object_count(&object, counts);
}

hfd_rc hfd_objects_check(const json_t *data, struct hfd_err *err)
{
    const json_t *list = json_object_get(data, "objects"), *entry;
    enum hfd_rsync read;
    char field[64];
    size_t i;

    json_array_foreach (list, i, entry) {
        const json_t *word = json_object_get(entry, "rsync-status");

        if (word == NULL || json_is_null(word) ||
            rsync_parse(hfd_json_text(entry, "rsync-status"), &read))
            continue;
        (void)snprintf(field, sizeof(field), "data.objects[%zu].rsync-status", i);
        return hfd_fail_field(err, HFD_INVALID, field,
                              "rsync-status must be one of Pending, Applied (or Instantiated), "
                              "Failed, Retrying, Terminated (or Deleted)");
    }
    return HFD_OK;
}

bool hfd_object_counts_none(const struct hfd_object_counts *counts)
{
    int64_t all = 0;

    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        all += counts->presence[i];
    return all == 0;
}

#define NUMBERS (HFD_RSYNC_COUNT + 1 + HFD_PRESENCE_COUNT)

static int64_t *number_at(struct hfd_object_counts *counts, unsigned i)
{
    if (i < HFD_RSYNC_COUNT)
        return &counts->own[i];
    return i == HFD_RSYNC_COUNT ? &counts->other : &counts->presence[i - HFD_RSYNC_COUNT - 1];
}

hfd_rc hfd_object_counts_format(const struct hfd_object_counts *counts, struct hfd_arena *mem,
                                hfd_slice *out)
{
    struct hfd_object_counts copy = *counts;
    struct hfd_buf b;

    *out = HFD_SLICE("");
    if (hfd_object_counts_none(counts))
        return HFD_OK;
    hfd_buf_init(&b, NUMBERS * 24);
    for (unsigned i = 0; i < NUMBERS; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ' ');
        hfd_buf_i64(&b, *number_at(&copy, i));
    }
    return hfd_buf_to_arena(&b, mem, out, NULL);
}

void hfd_object_counts_parse(hfd_slice stored, struct hfd_object_counts *out)
{
    struct hfd_object_counts read = {.other = 0};

    *out = read;
    for (unsigned i = 0; i < NUMBERS; i++) {
        const char *space = stored.len > 0 ? memchr(stored.p, ' ', stored.len) : NULL;
        const size_t len = space != NULL ? (size_t)(space - stored.p) : stored.len;

        if ((space == NULL) != (i == NUMBERS - 1) ||
            hfd_parse_i64((hfd_slice){stored.p, len}, 0, INT32_MAX, number_at(&read, i), NULL) !=
                HFD_OK)
            return;
        stored = (hfd_slice){stored.p + len + 1, space != NULL ? stored.len - len - 1 : 0};
    }
    *out = read;
}
