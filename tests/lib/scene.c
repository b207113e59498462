/* See scene.h. */
#include "tests/lib/scene.h"
#include "driver/core/transition.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/rows_history.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct step {
    struct world *w;
    struct hfd_fleet_call call;
    enum hfd_kind kind;
    hfd_slice owner, id, spec;
    const char *name, *guresid;
    struct hfd_fleet_report report;
    struct hfd_fleet_reported reported;
    struct hfd_fleet_row row;
    struct hfd_history_list history;
};

static struct step step_of(struct world *w, enum hfd_kind kind, hfd_slice id)
{
    return (struct step){
        .w = w,
        .call = {.fleet = &w->driver.fleet,
                 .now_us = world_now(w),
                 .caller = HFD_SLICE("somebody@example.com"),
                 .mem = &w->mem},
        .kind = kind,
        .id = id,
    };
}

static void run(struct step *s, hfd_txn_fn *fn, const char *what)
{
    if (hfd_store_update_wait(s->w->store, fn, s, &s->w->err) != HFD_OK)
        fail_msg("%s: %s", what, s->w->err.msg);
}

static hfd_rc txn_get(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    return hfd_fleet_row_get(tx, s->id, &s->w->mem, &s->row, err);
}

static hfd_rc txn_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    struct hfd_fleet_changes changes = {.mem = s->call.mem};
    hfd_rc rc;

    s->call.changes = &changes;
    rc = hfd_fleet_report(tx, &s->call, &s->report, &s->reported, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, &s->w->driver, &s->call, err) : rc;
}

enum hfd_verdict scene_report(struct world *w, hfd_slice fleet_id, const struct scene_report *r)
{
    const hfd_slice reason = hfd_slice_of(r->reason != NULL ? r->reason : "Test"),
                    message = hfd_slice_of(r->message);
    struct hfd_condition conditions[] = {
        {.type = HFD_SLICE("Available"),
         .status = r->available,
         .reason = reason,
         .message = message},
        {.type = HFD_SLICE("Applied"),
         .status = r->applied,
         .reason = r->applied_reason != NULL ? hfd_slice_of(r->applied_reason) : reason,
         .message = message},
        {.type = HFD_SLICE("Health"),
         .status = r->health_false ? HFD_STATUS_FALSE : HFD_STATUS_TRUE,
         .reason = reason,
         .message = message},
        {.type = HFD_SLICE("Finalized"), .status = HFD_STATUS_TRUE},
    };
    struct step s = step_of(w, HFD_KIND_CLUSTER, fleet_id);

    run(&s, txn_get, "find for a report");
    s.report = (struct hfd_fleet_report){
        .target = {.kind = s.row.kind, .id = fleet_id},
        .adapter = hfd_slice_of(r->adapter),
        .observed_generation = r->generation != 0 ? r->generation : s.row.generation,
        .observed_us = r->observed_us != 0 ? r->observed_us : world_now(w),
        .conditions = {conditions, r->finalized ? 4 : 3},
        .data = HFD_SLICE("{}"),
        .metadata = HFD_SLICE(""),
    };
    run(&s, txn_report, "report");
    return s.reported.verdict;
}

static hfd_slice find(struct world *w, enum hfd_kind kind, const char *name)
{
    const struct hfd_fleet_row *row = world_find(w, kind, name);

    if (row == NULL)
        fail_msg("there is no '%s'", name);
    return row->id;
}

hfd_slice scene_cluster(struct world *w, const char *name)
{
    return find(w, HFD_KIND_CLUSTER, name);
}

hfd_slice scene_nodepool(struct world *w, const char *name)
{
    return find(w, HFD_KIND_NODEPOOL, name);
}

static hfd_slice labels_of(const struct step *s)
{
    if (s->guresid == NULL)
        return HFD_SLICE("{}");
    return hfd_arena_printf(&s->w->mem, "{\"" HFD_GURESID_LABEL "\":\"%s\"}", s->guresid);
}

static hfd_rc txn_create(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    const struct hfd_fleet_create in = {
        .kind = s->kind,
        .owner_id = s->owner,
        .name = hfd_slice_of(s->name),
        .spec = HFD_SLICE("{}"),
        .labels = labels_of(s),
    };

    return hfd_fleet_create(tx, &s->call, &in, &s->row, err);
}

hfd_slice scene_create(struct world *w, enum hfd_kind kind, hfd_slice owner, const char *name,
                       const char *guresid_label)
{
    struct step s = step_of(w, kind, HFD_SLICE_NONE);

    s.owner = owner;
    s.name = name;
    s.guresid = guresid_label;
    run(&s, txn_create, "create");
    return s.row.id;
}

static hfd_rc txn_patch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    const struct hfd_fleet_patch in = {.target = {.kind = s->kind, .id = s->id},
                                       .spec = s->spec,
                                       .labels =
                                           s->guresid != NULL ? labels_of(s) : HFD_SLICE_NONE};

    struct hfd_fleet_changes changes = {.mem = s->call.mem};
    hfd_rc rc;

    s->call.changes = &changes;
    rc = hfd_fleet_patch(tx, &s->call, &in, &s->row, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, &s->w->driver, &s->call, err) : rc;
}

void scene_label(struct world *w, enum hfd_kind kind, hfd_slice id, const char *guresid)
{
    struct step s = step_of(w, kind, id);

    s.guresid = guresid;
    run(&s, txn_patch, "label");
}

void scene_patch(struct world *w, enum hfd_kind kind, hfd_slice id, const char *spec)
{
    struct step s = step_of(w, kind, id);

    s.spec = hfd_slice_of(spec);
    run(&s, txn_patch, "patch");
}

static hfd_rc txn_delete(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    const struct hfd_fleet_target target = {.kind = s->kind, .id = s->id};
    struct hfd_fleet_deletion deletion;
    struct hfd_fleet_changes changes = {.mem = s->call.mem};
    hfd_rc rc;

    s->call.changes = &changes;
    rc = hfd_fleet_delete(tx, &s->call, &target, &deletion, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, &s->w->driver, &s->call, err) : rc;
}

void scene_delete(struct world *w, enum hfd_kind kind, hfd_slice id)
{
    struct step s = step_of(w, kind, id);

    run(&s, txn_delete, "delete");
}

static hfd_rc txn_force_delete(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    const struct hfd_fleet_target target = {.kind = s->kind, .id = s->id};
    struct hfd_fleet_changes changes = {.mem = s->call.mem};
    hfd_rc rc;

    s->call.changes = &changes;
    rc = hfd_fleet_force_delete(tx, &s->call, &target, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, &s->w->driver, &s->call, err) : rc;
}

void scene_force_delete(struct world *w, enum hfd_kind kind, hfd_slice id)
{
    struct step s = step_of(w, kind, id);

    run(&s, txn_delete, "delete");
    run(&s, txn_force_delete, "force-delete");
}

static hfd_rc txn_forget(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const struct hfd_tombstone_limits none = {0, INT64_MAX, INT64_MAX};
    struct step *s = arg;
    struct hfd_tombstone_row row = {.id = hfd_slice_of(s->guresid), .kind = s->kind};
    struct hfd_resource_row lost;
    hfd_rc rc = hfd_resource_row_get(tx, row.id, &s->w->mem, &lost, err);

    if (rc == HFD_OK)
        rc = hfd_resource_row_count(tx, &lost, lost.state, -1, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(tx, row.id, err);
    if (rc == HFD_OK)
        rc = hfd_history_next_seq(tx, &row.seq, err);
    return rc == HFD_OK ? hfd_tombstone_row_add(tx, &row, &none, err) : rc;
}

void scene_forget(struct world *w, const char *guresid)
{
    struct step s = step_of(w, HFD_KIND_CLUSTER, HFD_SLICE_NONE);

    s.guresid = guresid;
    run(&s, txn_forget, "forget");
}

static hfd_rc txn_history(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;

    return hfd_history_row_list(
        tx, &(struct hfd_history_subject){HFD_ABOUT_RESOURCE, hfd_slice_of(s->guresid)}, &s->w->mem,
        &s->history, err);
}

struct hfd_history_list scene_history_rows(struct world *w, const char *guresid)
{
    struct step s = step_of(w, HFD_KIND_CLUSTER, HFD_SLICE_NONE);

    s.guresid = guresid;
    run(&s, txn_history, "history");
    return s.history;
}

const char *scene_history(struct world *w, const char *guresid)
{
    const struct hfd_history_list list = scene_history_rows(w, guresid);
    hfd_slice text = HFD_SLICE("");

    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_history_row *r = &list.rows[i];

        text = hfd_arena_printf(&w->mem, "%.*s%s>%s %.*s %lld; ", HFD_SLICE_FMT(text),
                                hfd_state_name((enum hfd_state)r->from),
                                hfd_state_name((enum hfd_state)r->to), HFD_SLICE_FMT(r->what),
                                (long long)r->generation);
        assert_non_null(text.p);
    }
    return text.p;
}
