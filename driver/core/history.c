/* What happened to a driver resource. See history.h. */
#include "driver/core/history.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"
#include "store/rows_resource.h"
#include "store/rows_history.h"

static const char *what_of(enum hfd_state from, enum hfd_state to)
{
    switch (to) {
    case HFD_STATE_READY:
        return "ready";
    case HFD_STATE_FAILED:
        return "failed";
    case HFD_STATE_DELETING:
        return "delete";
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
        return from == HFD_STATE_FAILED     ? "retry"
               : from == HFD_STATE_UPDATING ? "retarget"
                                            : "update";
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return "";
}

static hfd_rc add(struct hfd_txn *tx, enum hfd_state from, const struct hfd_resource_row *row,
                  const char *what, int64_t generation, struct hfd_err *err)
{
    const struct hfd_history_row entry = {
        .guresid = row->guresid,
        .incarnation = row->incarnation,
        .at_us = row->updated_us,
        .from = (int)from,
        .to = row->state,
        .what = hfd_slice_of(what),
        .generation = generation,
        .text = row->state == HFD_STATE_FAILED ? row->fail_message : HFD_SLICE_NONE,
    };

    return hfd_history_row_add(tx, &entry, HFD_HISTORY_MAX, err);
}

static void count(struct hfd_txn *tx, enum hfd_state from, enum hfd_state to)
{
    hfd_txn_count(tx,
                  hfd_metric_series(HFD_METRIC_TRANSITIONS,
                                    HFD_LABELS(hfd_state_name(from), hfd_state_name(to))),
                  1);
}

hfd_rc hfd_history_moved(struct hfd_txn *tx, enum hfd_state from,
                         const struct hfd_resource_row *row, int64_t generation,
                         struct hfd_err *err)
{
    const enum hfd_state to = (enum hfd_state)row->state;

    if (from != to) {
        HFD_ASSERT(hfd_state_may(from, to));
        count(tx, from, to);
    }
    /* What has just been made says so itself; of what is gone nothing is kept. */
    if (from == HFD_STATE_ABSENT || to == HFD_STATE_ABSENT)
        return HFD_OK;
    return add(tx, from, row, what_of(from, to), generation, err);
}

hfd_rc hfd_history_adopted(struct hfd_txn *tx, const struct hfd_resource_row *row,
                           int64_t generation, struct hfd_err *err)
{
    count(tx, HFD_STATE_ABSENT, (enum hfd_state)row->state);
    return add(tx, HFD_STATE_ABSENT, row, "adopted", generation, err);
}

hfd_rc hfd_history_health(struct hfd_txn *tx, const struct hfd_outcome *outcome, int64_t generation,
                          int64_t now_us, struct hfd_arena *mem, struct hfd_resource_row *row,
                          struct hfd_err *err)
{
    const bool degraded = strcmp(outcome->health, "Degraded") == 0,
               healthy = strcmp(outcome->health, "Healthy") == 0;
    struct hfd_history_row entry = {
        .guresid = row->guresid,
        .incarnation = row->incarnation,
        .at_us = now_us,
        .from = row->state,
        .to = row->state,
        .generation = generation,
    };

    /* In between, while adapters work on it, it is neither. */
    if (row->degraded ? !healthy : !degraded)
        return HFD_OK;
    row->degraded = degraded;
    entry.what = degraded ? HFD_SLICE("degraded") : HFD_SLICE("recovered");
    entry.text = HFD_SLICE("");
    if (degraded)
        entry.text = hfd_arena_printf(mem, "%.*s: %.*s", HFD_SLICE_FMT(outcome->health_reason),
                                      HFD_SLICE_FMT(outcome->health_message));
    if (entry.text.p == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory in the history");
    hfd_txn_count(tx,
                  hfd_metric_series(HFD_METRIC_HEALTH_CHANGES,
                                    HFD_LABELS(degraded ? "degraded" : "recovered")),
                  1);
    return hfd_history_row_add(tx, &entry, HFD_HISTORY_MAX, err);
}
