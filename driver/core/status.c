/* See status.h. */
#include "driver/core/status.h"

#include "driver/core/history.h"
#include "driver/core/lookup.h"
#include "driver/core/status_items.h"
#include "driver/core/transition.h"
#include "store/rows_part.h"

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* for one cluster or nodepool */

/* One query. */
struct asked {
    const struct hfd_ctx *c;
    const struct hfd_status_query *q;
    struct hfd_status_view *view;
    struct hfd_history_subject subject; /* of the history */
    int64_t instance;                   /* the chosen one */
    struct hfd_status_life life;
    struct hfd_place place; /* of the cluster, while it exists */
    struct hfd_sources sources;
    bool late;  /* the deadline of the deletion has passed */
    bool waits; /* a remote whose adapters are not known is not ready */
};

/* ---- state and instance ---- */

static bool deed_of(hfd_slice what, enum hfd_status_deed *out)
{
    if (hfd_slice_is(what, "create") || hfd_slice_is(what, "adopted"))
        *out = HFD_DEED_CREATE;
    else if (hfd_history_begins_instance(what))
        *out = HFD_DEED_CHANGE;
    else if (hfd_slice_is(what, "delete"))
        *out = HFD_DEED_DELETE;
    else
        return false;
    return true;
}

static hfd_rc read_state(struct asked *a, enum hfd_status_subject subject,
                         const struct hfd_history *history)
{
    struct hfd_status_entry *entries =
        hfd_arena_array(a->c->mem, history->count + 1, sizeof(*entries));
    struct hfd_status_entries list = {entries, 0};

    if (entries == NULL)
        return hfd_fail_nomem(a->c->err, "read a state history");
    for (size_t i = 0; i < history->count; i++) {
        const struct hfd_history_row *row = &history->entries[i];

        if (deed_of(row->what, &entries[list.count].deed)) {
            entries[list.count].at_us = row->at_us;
            entries[list.count++].context = row->instance;
        }
    }
    return hfd_status_state_make(subject, &list, a->c->mem, &a->view->state, a->c->err);
}

/* Chooses the instance that the query names, or the last one. */
static hfd_rc choose_instance(struct asked *a)
{
    const hfd_slice wanted = a->q->instance;
    const struct hfd_status_state *state = &a->view->state;

    a->instance = hfd_status_state_latest(state);
    if (a->q->has_instance && (hfd_parse_i64(wanted, 1, INT64_MAX, &a->instance, NULL) != HFD_OK ||
                               !hfd_status_state_has(state, a->instance, &a->life.terminating)))
        return hfd_fail(
            a->c->err, HFD_NOT_FOUND, "There is no instance '%.*s' in the state history of '%.*s'",
            (int)(wanted.len < 40 ? wanted.len : 40), wanted.p, HFD_SLICE_FMT(a->view->name));
    (void)hfd_status_state_has(state, a->instance, &a->life.terminating);
    a->view->has_phase = a->instance != 0;
    return HFD_OK;
}

/* ---- sources ---- */

static hfd_rc add_ended(struct asked *a)
{
    const struct hfd_ended_query query = {a->subject, a->instance};

    return hfd_sources_add_ended(a->c, &query, &a->sources);
}

/* An ended instance of which nothing is kept any more. */
static hfd_rc check_kept(const struct asked *a)
{
    int64_t oldest;
    hfd_rc rc = hfd_ended_row_oldest(a->c->tx, &a->subject, &oldest, a->c->err);

    if (rc == HFD_OK && oldest > a->instance)
        return hfd_fail(a->c->err, HFD_NOT_FOUND,
                        "The objects of instance '%lld' are not kept any more",
                        (long long)a->instance);
    return rc;
}

static hfd_rc add_past(struct asked *a)
{
    hfd_rc rc = check_kept(a);

    a->life.gone = a->life.terminating;
    return rc == HFD_OK ? add_ended(a) : rc;
}

/* Notes what only detail shows. */
static hfd_rc note_conditions(struct asked *a, const struct hfd_fleet_row *row)
{
    if (a->q->output != HFD_STATUS_OUTPUT_DETAIL)
        return HFD_OK;
    a->view->conditions = hfd_arena_dup(a->c->mem, row->conditions);
    return a->view->conditions.p != NULL ? HFD_OK : hfd_fail_nomem(a->c->err, "read a cluster");
}

/* Reads a cluster or nodepool without its documents, which may be large. */
static hfd_rc read_bare(struct asked *a, hfd_slice fleet_id, bool is_main,
                        struct hfd_fleet_row *out)
{
    struct hfd_arena scratch;
    struct hfd_fleet_row row;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_fleet_row_get(a->c->tx, fleet_id, &scratch, &row, a->c->err);
    if (rc == HFD_OK) {
        *out = (struct hfd_fleet_row){.id = fleet_id,
                                      .kind = row.kind,
                                      .name = hfd_arena_dup(a->c->mem, row.name),
                                      .generation = row.generation,
                                      .ready = row.ready,
                                      .deleted_us = row.deleted_us};
        if (out->name.p == NULL)
            rc = hfd_fail_nomem(a->c->err, "read a cluster");
    }
    if (rc == HFD_OK && is_main)
        rc = note_conditions(a, &row);
    hfd_arena_fini(&scratch);
    return rc;
}

/* A part as it stands. One that is gone is in what was kept. */
static hfd_rc add_part(struct asked *a, hfd_slice fleet_id, struct hfd_source_part part,
                       bool is_main)
{
    struct hfd_fleet_row row;
    hfd_rc rc = read_bare(a, fleet_id, is_main, &row);

    if (rc == HFD_NOT_FOUND) {
        a->life.gone = a->life.gone || is_main;
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    part.row = &row;
    part.place = &a->place;
    if (part.generation == 0)
        part.generation = row.generation;
    if (is_main)
        a->waits = hfd_sources_unknown(a->c, row.kind) && !row.ready;
    return hfd_sources_add_part(a->c, &part, &a->sources);
}

/* ---- the answer ---- */

static hfd_rc finish(struct asked *a)
{
    struct hfd_status_counts deciding;
    hfd_rc rc;

    hfd_sources_count(&a->sources, &deciding);
    a->view->phase = hfd_status_phase_of(a->life, deciding.rsync);
    if (a->waits && a->view->phase == HFD_PHASE_INSTANTIATED && a->sources.count == 0)
        a->view->phase = HFD_PHASE_INSTANTIATING;
    if (a->late && a->view->phase == HFD_PHASE_TERMINATING)
        a->view->phase = HFD_PHASE_TERMINATE_FAILED;
    a->view->progress = hfd_status_progress(deciding.rsync, a->life.terminating);
    rc = hfd_status_items(a->c, a->q, &a->sources, a->view);
    return rc == HFD_OK ? hfd_status_view_sort(a->view, a->c->mem, a->c->err) : rc;
}

/* ---- driver resources ---- */

static hfd_rc fail_unknown(const struct hfd_ctx *c, const struct hfd_call *call)
{
    return hfd_fail(c->err, HFD_NOT_FOUND,
                    "There is no resource '%.*s'. It has not been ordered here, or it has been "
                    "deleted. Deploy again to make it.",
                    HFD_SLICE_FMT(call->guresid));
}

static hfd_rc add_present(struct asked *a, const struct hfd_resource_row *row)
{
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(a->c->tx, row->guresid, a->c->mem, &parts, a->c->err);

    if (rc == HFD_OK)
        rc = hfd_place_read(a->c, row->cluster_id, &a->place);
    a->view->project = rc == HFD_OK ? a->place.project : HFD_SLICE_NONE;
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++) {
        const struct hfd_part_row *p = &parts.rows[i];
        const struct hfd_source_part part = {
            .generation = p->generation, .started_us = row->op_started_us, .pending = p->pending};

        if (!p->leaving)
            rc = add_part(a, p->fleet_id, part, i == 0);
    }
    return rc == HFD_OK ? add_ended(a) : rc;
}

static hfd_rc answer_resource(struct asked *a, const struct hfd_call *call,
                              const struct hfd_resource_row *row)
{
    struct hfd_history history;
    hfd_rc rc = hfd_history_read(a->c, call->guresid, &history);

    if (rc == HFD_NOT_FOUND ||
        (rc == HFD_OK && row == NULL && call->only != 0 && (int)history.removed.kind != call->only))
        return fail_unknown(a->c, call);
    if (rc != HFD_OK)
        return rc;
    a->view->type = row != NULL ? row->type : history.removed.type;
    rc = read_state(a, HFD_SUBJECT_RESOURCE, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc != HFD_OK || a->instance == 0)
        return rc;
    if (row != NULL && a->instance == row->instance) {
        a->view->message = row->op_waits;
        a->late = row->state == HFD_STATE_DELETING && hfd_resource_overdue(row, a->c->now_us);
        rc = add_present(a, row);
    } else {
        rc = add_past(a);
    }
    return rc == HFD_OK ? finish(a) : rc;
}

hfd_rc hfd_status_of_resource(struct hfd_txn *tx, const struct hfd_call *call,
                              const struct hfd_status_query *query, struct hfd_status_view *out,
                              struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct asked a = {
        .c = &c, .q = query, .view = out, .subject = {HFD_ABOUT_RESOURCE, call->guresid}};
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_get(tx, call->guresid, c.mem, &row, err);

    *out = (struct hfd_status_view){.name = call->guresid, .id = call->guresid};
    if (rc == HFD_NOT_FOUND)
        return answer_resource(&a, call, NULL);
    if (rc == HFD_OK && hfd_lookup_other_kind(call, &row))
        return fail_unknown(&c, call);
    return rc == HFD_OK ? answer_resource(&a, call, &row) : rc;
}

/* ---- clusters ---- */

/* "PROVIDER+CLUSTER": EMCO's name of a cluster. */
static hfd_rc name_cluster(struct asked *a, hfd_slice provider, hfd_slice cluster)
{
    a->view->name =
        hfd_arena_printf(a->c->mem, "%.*s+%.*s", HFD_SLICE_FMT(provider), HFD_SLICE_FMT(cluster));
    return a->view->name.p != NULL ? HFD_OK : hfd_fail_nomem(a->c->err, "name a cluster");
}

static hfd_rc add_cluster(struct asked *a, hfd_slice id, int64_t started_us)
{
    const struct hfd_source_part part = {.started_us = started_us};
    struct hfd_fleet_list nodepools;
    hfd_rc rc = add_part(a, id, part, true);

    if (rc == HFD_OK)
        rc = hfd_fleet_row_children(a->c->tx, id, a->c->mem, &nodepools, a->c->err);
    for (size_t i = 0; rc == HFD_OK && i < nodepools.count; i++)
        rc = add_part(a, nodepools.rows[i].id, part, false);
    return rc == HFD_OK ? add_ended(a) : rc;
}

/* The history of the driver resource that has the cluster, or the cluster's own. */
static hfd_rc read_cluster_history(struct asked *a, const struct hfd_fleet_row *row,
                                   int64_t *started_us, struct hfd_history *history)
{
    struct hfd_part_row part;
    struct hfd_resource_row resource;
    hfd_rc rc = hfd_part_row_by_fleet(a->c->tx, row->id, a->c->mem, &part, a->c->err);

    *started_us = row->updated_us;
    if (rc == HFD_NOT_FOUND)
        return hfd_history_read_cluster(a->c, row->id, row, history);
    if (rc == HFD_OK)
        rc = hfd_resource_row_get(a->c->tx, part.guresid, a->c->mem, &resource, a->c->err);
    if (rc != HFD_OK)
        return rc;
    *started_us = resource.op_started_us;
    a->subject = (struct hfd_history_subject){HFD_ABOUT_RESOURCE, part.guresid};
    return hfd_history_read(a->c, part.guresid, history);
}

static hfd_rc answer_cluster(struct asked *a, const struct hfd_fleet_row *row)
{
    struct hfd_history history;
    int64_t started_us;
    hfd_rc rc = read_cluster_history(a, row, &started_us, &history);

    if (rc == HFD_OK)
        rc = hfd_place_read(a->c, row->id, &a->place);
    if (rc == HFD_OK)
        rc = name_cluster(a, a->place.provider, a->place.cluster);
    if (rc == HFD_OK)
        rc = read_state(a, HFD_SUBJECT_CLUSTER, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc != HFD_OK || a->instance == 0)
        return rc;
    rc = a->instance == hfd_status_state_latest(&a->view->state)
             ? add_cluster(a, row->id, started_us)
             : add_past(a);
    return rc == HFD_OK ? finish(a) : rc;
}

static hfd_rc answer_removed_cluster(struct asked *a, hfd_slice id)
{
    struct hfd_history history;
    hfd_slice provider;
    hfd_rc rc = hfd_history_read_cluster(a->c, id, NULL, &history);

    if (rc == HFD_NOT_FOUND)
        return hfd_fail(a->c->err, HFD_NOT_FOUND, "Cluster with id='%.*s' not found",
                        HFD_SLICE_FMT(id));
    if (rc == HFD_OK)
        rc = hfd_place_provider(a->c, history.removed.provider, &provider);
    if (rc == HFD_OK)
        rc = name_cluster(a, provider, history.removed.name);
    if (rc == HFD_OK)
        rc = read_state(a, HFD_SUBJECT_CLUSTER, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc == HFD_OK && a->instance != 0)
        rc = add_past(a);
    return rc == HFD_OK && a->instance != 0 ? finish(a) : rc;
}

hfd_rc hfd_status_of_cluster(struct hfd_txn *tx, const struct hfd_call *call,
                             const struct hfd_status_query *query, struct hfd_status_view *out,
                             struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct asked a = {
        .c = &c, .q = query, .view = out, .subject = {HFD_ABOUT_CLUSTER, call->guresid}};
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(tx, call->guresid, c.mem, &row, err);

    *out = (struct hfd_status_view){.id = call->guresid};
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && row.kind != HFD_KIND_CLUSTER))
        return answer_removed_cluster(&a, call->guresid);
    return rc == HFD_OK ? answer_cluster(&a, &row) : rc;
}
