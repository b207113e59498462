/* See intake.h. */
#include "driver/health/intake.h"

#include <stdio.h>

/* ---- the texts of the refusals ---- */

#define HFD_HEALTH_EARLIER_TEXT "lastUpdated may not be set to an earlier timestamp"
#define HFD_HEALTH_AHEAD_TEXT                                                                      \
    "lastUpdated must not be more than 5 minutes ahead of the server's clock"
#define HFD_HEALTH_REMOVED_TEXT "status may not be removed once set"

/* ---- stored ---- */

/*
 * A PacemakerCluster document as it is stored: a member of the data of an adapter's report, with
 * the time of its staleness beside it. Thread: that of the transaction; stored_data and
 * stored_join: any.
 */

struct hfd_health_stored {
    bool reported; /* there is a report, row */
    struct hfd_report_row row;
    bool has_document; /* it has a document; text, document and watch are its */
    hfd_slice text;
    struct hfd_health_document document;
    struct hfd_watch_row watch; /* stale_us is INT64_MAX while the document has no status */
    bool known;                 /* a verdict is known: the report has HFD_HEALTH_DEGRADED */
};

/* The data of a report, and the counts of the objects in it and in its document. */
struct hfd_health_data {
    hfd_slice text;
    struct hfd_object_counts objects;
};

struct hfd_health_join_texts {
    hfd_slice main;
    hfd_slice status; /* none = no status */
};

#define DATA_MAX_BYTES ((size_t)16 * 1024 * 1024) /* of a report with a document */

static hfd_rc dump(const json_t *v, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    struct hfd_buf b;

    hfd_buf_init(&b, DATA_MAX_BYTES);
    hfd_json_dump_for_store(&b, v);
    return hfd_buf_to_arena(&b, mem, out, err);
}

static hfd_rc read_document(const json_t *data, struct hfd_arena *mem,
                            struct hfd_health_stored *out, struct hfd_err *err)
{
    const json_t *doc = json_object_get(data, HFD_HEALTH_MEMBER);
    hfd_rc rc;

    out->has_document = json_is_object(doc);
    if (!out->has_document)
        return HFD_OK;
    rc = dump(doc, mem, &out->text, err);
    if (rc == HFD_OK)
        rc = hfd_health_parse(doc, mem, &out->document, err);
    if (rc != HFD_CORRUPT)
        return rc;
    out->has_document = out->known = false; /* of the time before the adapter was an observer */
    return HFD_OK;
}

/* Only an observer's report has the server's condition, and then the document is the server's. */
static hfd_rc read_report(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_health_stored *out,
                          struct hfd_err *err)
{
    const struct hfd_condition *degraded;
    struct hfd_conditions cs;
    json_t *data;
    hfd_rc rc = hfd_fleet_conditions(tx, out->row.conditions, mem, &cs, err);

    if (rc != HFD_OK)
        return rc;
    degraded = hfd_condition_find(&cs, HFD_SLICE(HFD_HEALTH_DEGRADED));
    out->known = degraded != NULL && degraded->status != HFD_STATUS_UNKNOWN;
    if (degraded == NULL)
        return HFD_OK;
    rc = hfd_json_parse(out->row.data, &data, err);
    if (rc != HFD_OK)
        return rc;
    rc = read_document(data, mem, out, err);
    json_decref(data);
    return rc;
}

/* Reads what is stored. @return HFD_OK, also when there is nothing; HFD_CORRUPT, HFD_NOMEM */
static hfd_rc health_stored_load(struct hfd_txn *tx, const struct hfd_health_key *key,
                                 struct hfd_arena *mem, struct hfd_health_stored *out,
                                 struct hfd_err *err)
{
    const struct hfd_watch_row watch = {
        .fleet_id = key->cluster_id, .adapter = key->adapter, .stale_us = INT64_MAX};
    const struct hfd_report_key report = {key->cluster_id, key->adapter};
    hfd_rc rc;

    *out = (struct hfd_health_stored){.watch = watch};
    rc = hfd_report_row_get(tx, &report, mem, &out->row, err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    out->reported = rc == HFD_OK;
    if (rc == HFD_OK)
        rc = read_report(tx, mem, out, err);
    if (rc != HFD_OK || !out->has_document)
        return rc;
    rc = hfd_watch_row_get(tx, &watch, mem, &out->watch, err);
    if (rc != HFD_NOT_FOUND)
        return rc;
    out->watch = watch;
    if (!out->document.has_status)
        return HFD_OK;
    /* the setting was not there for a while: its age counts from now on */
    out->watch.stale_us = hfd_health_stale_us(&out->document, INT64_MAX / 2);
    return HFD_OK;
}

/* Puts a document into the data of a report, in place of the one that it has. */
static hfd_rc health_stored_data(hfd_slice data, hfd_slice document, struct hfd_arena *mem,
                                 struct hfd_health_data *out, struct hfd_err *err)
{
    json_t *all, *doc;
    hfd_rc rc = hfd_json_parse(data, &all, err);

    *out = (struct hfd_health_data){.text = HFD_SLICE_NONE};
    if (rc != HFD_OK)
        return rc;
    rc = hfd_json_parse(document, &doc, err);
    if (rc == HFD_OK && json_object_set_new(all, HFD_HEALTH_MEMBER, doc) != 0)
        rc = hfd_fail_nomem(err, "put a document into a report");
    if (rc == HFD_OK)
        rc = dump(all, mem, &out->text, err);
    if (rc == HFD_OK)
        hfd_health_count_objects(all, &out->objects);
    json_decref(all);
    return rc;
}

/* hfd_health_join of texts. */
static hfd_rc health_stored_join(const struct hfd_health_join_texts *in, struct hfd_arena *mem,
                                 hfd_slice *out, struct hfd_err *err)
{
    json_t *main = NULL, *status = NULL, *joined = NULL;
    hfd_rc rc = hfd_json_parse(in->main, &main, err);

    if (rc == HFD_OK && in->status.len > 0)
        rc = hfd_json_parse(in->status, &status, err);
    if (rc == HFD_OK)
        rc = hfd_health_join(main, status, &joined, err);
    if (rc == HFD_OK)
        rc = dump(joined, mem, out, err);
    json_decref(joined);
    json_decref(status);
    json_decref(main);
    return rc;
}

/* ---- intake ---- */

/* PacemakerCluster documents in the store. */

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* for one document and its cluster */

/* One document on its way into the store. */
struct intake {
    struct hfd_txn *tx;
    const struct hfd_fleet_call *call;
    struct hfd_err *err;
    struct hfd_health_stored stored;
    hfd_slice text; /* of the document that is to be stored; none = there is no document */
    struct hfd_health_document document;
    struct hfd_watch_row watch;
    bool is_new; /* it is not the stored one */
    struct hfd_health_verdict verdict;
    struct hfd_condition judged[2]; /* hfd_health_conditions */
};

static hfd_rc short_of_memory(const struct intake *n)
{
    return hfd_fail_nomem(n->err, "store a PacemakerCluster document");
}

/* The stored document stays, with its age. */
static void take_stored(struct intake *n)
{
    n->text = n->stored.text;
    n->document = n->stored.document;
    n->watch = n->stored.watch;
}

/* Chooses between the stored document and the one that came in. */
static hfd_rc choose(struct intake *n, const struct hfd_health_reading *given, const char *root)
{
    const struct hfd_health_document *stored = n->stored.has_document ? &n->stored.document : NULL;
    const enum hfd_health_follows follows = hfd_health_follows(stored, &given->document);
    char field[64];

    (void)snprintf(field, sizeof(field), "%sstatus.lastUpdated", root);
    if (given->document.has_status &&
        given->document.updated_us > n->call->now_us + HFD_FLEET_AHEAD_MAX_US)
        return hfd_fail_field(n->err, HFD_INVALID, field, HFD_HEALTH_AHEAD_TEXT);
    switch (follows) {
    case HFD_HEALTH_SAME:
        if (hfd_slice_eq(given->text, n->stored.text)) {
            take_stored(n);
            return HFD_OK;
        }
        /* fall through */
    case HFD_HEALTH_NEWER:
        n->is_new = true;
        n->text = given->text;
        n->document = given->document;
        n->watch.stale_us = hfd_health_stale_us(&n->document, n->call->now_us);
        return HFD_OK;
    case HFD_HEALTH_EARLIER:
        return hfd_fail_field(n->err, HFD_CONFLICT, field, HFD_HEALTH_EARLIER_TEXT);
    case HFD_HEALTH_REMOVED:
        break;
    }
    (void)snprintf(field, sizeof(field), "%sstatus", root);
    return hfd_fail_field(n->err, HFD_INVALID, field, HFD_HEALTH_REMOVED_TEXT);
}

/* Judges the document that was chosen. */
static hfd_rc judge(struct intake *n)
{
    const bool late = n->call->now_us > n->watch.stale_us;
    hfd_rc rc = hfd_health_judge(&n->document, late, n->call->mem, &n->verdict, n->err);

    n->watch.told = late;
    return rc == HFD_OK ? hfd_health_conditions(&n->verdict, n->stored.known, n->call->mem,
                                                n->judged, n->err)
                        : rc;
}

/* The conditions of a report with the server's own in their places. */
static hfd_rc merge_conditions(const struct intake *n, const struct hfd_conditions *given,
                               struct hfd_conditions *out)
{
    *out = (struct hfd_conditions){
        hfd_arena_array(n->call->mem, given->count + 1, sizeof(*out->items)), 0};
    if (out->items == NULL)
        return short_of_memory(n);
    for (size_t i = 0; i < given->count; i++) {
        const struct hfd_condition *c = &given->items[i];

        if (hfd_slice_is(c->type, HFD_HEALTH_DEGRADED))
            continue;
        out->items[out->count] = *c;
        if (n->text.len > 0 && hfd_slice_eq(c->type, n->judged[0].type)) {
            out->items[out->count].status = n->judged[0].status;
            out->items[out->count].reason = n->judged[0].reason;
            out->items[out->count].message = n->judged[0].message;
        }
        out->count++;
    }
    if (n->text.len > 0)
        out->items[out->count++] = n->judged[1];
    return HFD_OK;
}

/* ---- events ---- */

static hfd_rc keep_event(const struct intake *n, const struct hfd_health_event *event)
{
    const struct hfd_event_row row = {
        .fleet_id = n->watch.fleet_id,
        .first_us = n->call->now_us,
        .last_us = n->call->now_us,
        .count = 1,
        .warning = event->warning,
        .reason = hfd_slice_of(event->reason),
        .message = event->message,
    };
    struct hfd_event_row kept;
    hfd_rc rc = hfd_event_row_find(n->tx, &row, n->call->mem, &kept, n->err);

    if (rc == HFD_OK && hfd_health_event_repeats(event, kept.reason, kept.message,
                                                 n->call->now_us - kept.first_us)) {
        kept.last_us = n->call->now_us;
        kept.count++;
        return hfd_event_row_repeat(n->tx, &kept, n->err);
    }
    return rc == HFD_OK || rc == HFD_NOT_FOUND
               ? hfd_event_row_add(n->tx, &row, HFD_HEALTH_EVENTS_KEPT, n->err)
               : rc;
}

/* Tells what is new: a document that is not the stored one, or that it is stale now. */
static hfd_rc keep_events(const struct intake *n)
{
    struct hfd_health_verdict before;
    struct hfd_health_events events;
    hfd_rc rc = HFD_OK;

    if (!n->is_new && n->watch.told == n->stored.watch.told)
        return HFD_OK;
    if (n->stored.has_document)
        rc = hfd_health_judge(&n->stored.document, n->stored.watch.told, n->call->mem, &before,
                              n->err);
    if (rc == HFD_OK)
        rc = hfd_health_events(n->stored.has_document ? &before : NULL, &n->verdict, n->call->mem,
                               &events, n->err);
    for (size_t i = 0; rc == HFD_OK && i < events.count; i++)
        rc = keep_event(n, &events.items[i]);
    return rc;
}

/* Writes what stands beside the report. */
static hfd_rc keep_watch(const struct intake *n)
{
    hfd_rc rc;

    if (n->text.len == 0)
        return HFD_OK;
    rc = hfd_watch_row_put(n->tx, &n->watch, n->err);
    return rc == HFD_OK ? keep_events(n) : rc;
}

static hfd_rc start(struct intake *n, const struct hfd_health_key *key)
{
    n->watch = (struct hfd_watch_row){.fleet_id = key->cluster_id, .adapter = key->adapter};
    return health_stored_load(n->tx, key, n->call->mem, &n->stored, n->err);
}

/* ---- reports ---- */

hfd_rc hfd_health_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         const struct hfd_health_report *in, struct hfd_fleet_reported *out,
                         struct hfd_err *err)
{
    const struct hfd_health_key key = {in->report->target.id, in->report->adapter};
    struct intake n = {.tx = tx, .call = call, .err = err};
    struct hfd_fleet_report report = *in->report;
    struct hfd_health_data data;
    hfd_rc rc = start(&n, &key);

    if (rc == HFD_OK && in->given->present)
        rc = choose(&n, in->given, "data." HFD_HEALTH_MEMBER ".");
    else if (rc == HFD_OK && n.stored.has_document)
        take_stored(&n);
    if (rc == HFD_OK && n.text.len > 0)
        rc = judge(&n);
    if (rc == HFD_OK)
        rc = merge_conditions(&n, &in->report->conditions, &report.conditions);
    if (rc == HFD_OK && n.text.len > 0)
        rc = health_stored_data(report.data, n.text, call->mem, &data, err);
    if (rc != HFD_OK)
        return rc;
    if (n.text.len > 0) {
        report.data = data.text;
        report.objects = data.objects;
    }
    report.keeps_unknown = n.text.len > 0;
    rc = hfd_fleet_report(tx, call, &report, out, err);
    return rc == HFD_OK && out->verdict == HFD_VERDICT_STORE ? keep_watch(&n) : rc;
}

/* ---- the sub-resource ---- */

/* Finds a cluster, and what is stored of it. @param there  its document must be there */
static hfd_rc find(struct intake *n, const struct hfd_health_key *key, bool there,
                   struct hfd_fleet_row *cluster)
{
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = key->cluster_id};
    hfd_rc rc = hfd_fleet_get(n->tx, &target, n->call->mem, cluster, n->err);

    if (rc == HFD_OK)
        rc = start(n, key);
    if (rc == HFD_OK && there && !n->stored.has_document)
        rc = hfd_fail(n->err, HFD_NOT_FOUND,
                      "PacemakerCluster 'cluster' not found for cluster '%.*s'",
                      HFD_SLICE_FMT(key->cluster_id));
    return rc;
}

/* The stored conditions of the adapter, or those of one that has not reported. */
static hfd_rc own_conditions(const struct intake *n, struct hfd_conditions *out)
{
    static const char *const types[] = {"Available", "Applied", "Health"};
    const size_t count = sizeof(types) / sizeof(types[0]);

    if (n->stored.reported)
        return hfd_fleet_conditions(n->tx, n->stored.row.conditions, n->call->mem, out, n->err);
    out->items = hfd_arena_array(n->call->mem, count, sizeof(*out->items));
    if (out->items == NULL)
        return short_of_memory(n);
    for (out->count = 0; out->count < count; out->count++)
        out->items[out->count] = (struct hfd_condition){
            .type = hfd_slice_of(types[out->count]),
            .status = HFD_STATUS_TRUE,
            .reason = HFD_SLICE("PacemakerDocumentStored"),
            .last_transition_us = n->call->now_us,
        };
    return HFD_OK;
}

/* The times of conditions: a transition is now, or the former one while the status stays. */
static void date_conditions(const struct intake *n, const struct hfd_conditions *were,
                            struct hfd_conditions *are)
{
    for (size_t i = 0; i < are->count; i++) {
        const struct hfd_condition *was = hfd_condition_find(were, are->items[i].type);

        are->items[i].last_transition_us = was != NULL && was->status == are->items[i].status
                                               ? was->last_transition_us
                                               : n->call->now_us;
    }
}

/* The adapter's report with the document and its verdict. */
static hfd_rc make_row(const struct intake *n, int64_t generation, struct hfd_report_row *out)
{
    struct hfd_conditions were, are;
    struct hfd_health_data data;
    struct hfd_buf b;
    hfd_rc rc;

    *out = n->stored.row;
    if (!n->stored.reported)
        *out = (struct hfd_report_row){.fleet_id = n->watch.fleet_id,
                                       .adapter = n->watch.adapter,
                                       .created_us = n->call->now_us,
                                       .data = HFD_SLICE("{}")};
    out->observed_generation = generation;
    out->received_us = n->call->now_us;
    if (out->observed_us < n->call->now_us)
        out->observed_us = n->call->now_us;
    rc = own_conditions(n, &were);
    if (rc == HFD_OK)
        rc = merge_conditions(n, &were, &are);
    if (rc != HFD_OK)
        return rc;
    date_conditions(n, &were, &are);
    hfd_buf_init(&b, HFD_HEALTH_DOCUMENT_MAX_BYTES);
    hfd_conditions_format(&b, &are, true);
    rc = hfd_buf_to_arena(&b, n->call->mem, &out->conditions, n->err);
    if (rc == HFD_OK)
        rc = health_stored_data(out->data, n->text, n->call->mem, &data, n->err);
    if (rc != HFD_OK)
        return rc;
    out->data = data.text;
    return hfd_object_counts_format(&data.objects, n->call->mem, &out->objects) == HFD_OK
               ? HFD_OK
               : short_of_memory(n);
}

/* A create and a PUT of the main resource leave the status alone. */
static hfd_rc choose_main(struct intake *n, const struct hfd_health_put *in)
{
    struct hfd_health_join_texts join = {.main = in->given->text};

    if (in->what == HFD_HEALTH_CREATE && n->stored.has_document)
        return hfd_fail(n->err, HFD_CONFLICT,
                        "PacemakerCluster 'cluster' already exists for cluster '%.*s'",
                        HFD_SLICE_FMT(in->cluster_id));
    if (n->stored.has_document) {
        take_stored(n);
        join.status = n->stored.text;
    }
    n->is_new = in->what == HFD_HEALTH_CREATE;
    if (n->is_new)
        n->watch.stale_us = hfd_health_stale_us(&n->document, n->call->now_us);
    return health_stored_join(&join, n->call->mem, &n->text, n->err);
}

static hfd_rc choose_status(struct intake *n, const struct hfd_health_put *in)
{
    const struct hfd_health_join_texts join = {n->stored.text, in->given->text};
    struct hfd_health_reading given = *in->given;
    hfd_rc rc = health_stored_join(&join, n->call->mem, &given.text, n->err);

    return rc == HFD_OK ? choose(n, &given, "") : rc;
}

/* Stores what was chosen. A document that is the stored one is written for a new generation only.
 */
static hfd_rc store(struct intake *n, const struct hfd_fleet_row *cluster)
{
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = cluster->id};
    struct hfd_report_row row;
    hfd_rc rc;

    if (n->stored.reported && n->stored.row.observed_generation == cluster->generation &&
        hfd_slice_eq(n->text, n->stored.text) && n->call->now_us <= n->watch.stale_us)
        return HFD_OK;
    rc = judge(n);
    if (rc == HFD_OK)
        rc = make_row(n, cluster->generation, &row);
    if (rc == HFD_OK)
        rc = hfd_fleet_report_restate(n->tx, n->call, &target, &row, n->err);
    return rc == HFD_OK ? keep_watch(n) : rc;
}

hfd_rc hfd_health_write(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_health_put *in, hfd_slice *text, struct hfd_err *err)
{
    const struct hfd_health_key key = {in->cluster_id, in->adapter};
    struct intake n = {.tx = tx, .call = call, .err = err};
    struct hfd_fleet_row cluster;
    hfd_rc rc = find(&n, &key, in->what != HFD_HEALTH_CREATE, &cluster);

    *text = HFD_SLICE_NONE;
    if (rc == HFD_OK)
        rc = in->what == HFD_HEALTH_STATUS ? choose_status(&n, in) : choose_main(&n, in);
    if (rc == HFD_OK)
        rc = store(&n, &cluster);
    if (rc == HFD_OK)
        *text = n.text;
    return rc;
}

hfd_rc hfd_health_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         const struct hfd_health_key *key, struct hfd_err *err)
{
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = key->cluster_id};
    const struct hfd_health_event event = {
        true, hfd_health_reason(HFD_HEALTH_NOT_FOUND),
        HFD_SLICE("Pacemaker error: PacemakerCluster CR not found")};
    struct intake n = {.tx = tx, .call = call, .err = err};
    struct hfd_fleet_row cluster;
    hfd_rc rc = find(&n, key, true, &cluster);

    if (rc == HFD_OK)
        rc = hfd_watch_row_delete(tx, &n.watch, err);
    if (rc == HFD_OK)
        rc = keep_event(&n, &event);
    return rc == HFD_OK ? hfd_fleet_report_withdraw(tx, call, &target, key->adapter, err) : rc;
}

hfd_rc hfd_health_get(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                      const struct hfd_health_key *key, struct hfd_health_view *out,
                      struct hfd_err *err)
{
    struct intake n = {.tx = tx, .call = call, .err = err};
    struct hfd_fleet_row cluster;
    hfd_rc rc = find(&n, key, true, &cluster);

    if (rc != HFD_OK)
        return rc;
    take_stored(&n);
    rc = judge(&n);
    *out = (struct hfd_health_view){n.text, n.document, n.verdict};
    return rc;
}

/* ---- time ---- */

/* One document that has become stale, or has had no status for too long. A row that stands for no
 * document is removed. */
static hfd_rc settle(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_watch_row *watch, struct hfd_err *err)
{
    const struct hfd_health_key key = {watch->fleet_id, watch->adapter};
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = key.cluster_id};
    struct intake n = {.tx = tx, .call = call, .err = err};
    struct hfd_report_row row;
    hfd_rc rc = start(&n, &key);

    if (rc == HFD_OK &&
        (!n.stored.has_document || !hfd_adapter_names_have(call->fleet->observers, watch->adapter)))
        return hfd_watch_row_delete(tx, watch, err);
    if (rc != HFD_OK)
        return rc;
    take_stored(&n);
    rc = judge(&n);
    if (rc == HFD_OK)
        rc = make_row(&n, n.stored.row.observed_generation, &row);
    if (rc != HFD_OK)
        return rc;
    row.observed_us = n.stored.row.observed_us; /* the adapter has not reported */
    row.received_us = n.stored.row.received_us;
    rc = hfd_fleet_report_restate(tx, call, &target, &row, err);
    return rc == HFD_OK ? keep_watch(&n) : rc;
}

/* Each has an arena of its own: all together may be larger than any request. */
static hfd_rc settle_apart(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           const struct hfd_watch_row *watch, struct hfd_err *err)
{
    struct hfd_fleet_call own = *call;
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    own.mem = &scratch;
    rc = settle(tx, &own, watch, err);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_health_settle(struct hfd_txn *tx, const struct hfd_fleet_call *call, size_t *count,
                         struct hfd_err *err)
{
    const struct hfd_watch_query query = {call->now_us, HFD_HEALTH_SETTLE_MAX};
    struct hfd_watch_list list;
    hfd_rc rc = hfd_watch_row_stale(tx, &query, call->mem, &list, err);

    *count = 0;
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++, (*count)++)
        rc = settle_apart(tx, call, &list.rows[i], err);
    return rc;
}
