/*
 * The events of the scenarios beside the driver contract (world.h). People change HyperFleet,
 * adapters report in their own words, and the history is kept. Every call is one transaction.
 */
#ifndef HFD_TESTS_SCENE_H
#define HFD_TESTS_SCENE_H

#include "tests/lib/world.h"
#include "store/rows_history.h"

/** A report in full. Observed now, unless `observed_us` is given. */
struct scene_report {
    const char *adapter;
    enum hfd_status available,
        applied;                  /* the default, 0, is HFD_STATUS_FALSE: say HFD_STATUS_TRUE */
    const char *reason, *message; /* of Available; NULL = "Test", "" */
    const char *applied_reason;   /* NULL = reason */
    bool health_false;
    bool finalized;
    int64_t generation; /* 0 = the resource's own */
    int64_t observed_us;
};
enum hfd_verdict scene_report(struct world *w, hfd_slice fleet_id, const struct scene_report *r);

/** By name, of those that are not being deleted; fails the test when there is none. */
hfd_slice scene_cluster(struct world *w, const char *name);
hfd_slice scene_nodepool(struct world *w, const char *name);

/**
 * Make, change, delete or remove a HyperFleet resource, as a user of its API does. owner: the
 * cluster of a nodepool, else "".
 */
hfd_slice scene_create(struct world *w, enum hfd_kind kind, hfd_slice owner, const char *name,
                       const char *guresid_label);
void scene_patch(struct world *w, enum hfd_kind kind, hfd_slice id, const char *spec);
/** Gives it the label of a GUResID, as the only one. */
void scene_label(struct world *w, enum hfd_kind kind, hfd_slice id, const char *guresid);
void scene_delete(struct world *w, enum hfd_kind kind, hfd_slice id);
void scene_force_delete(struct world *w, enum hfd_kind kind, hfd_slice id);

/**
 * Takes a driver resource's row, parts and history out of the store, and leaves HyperFleet as it
 * is: the store was lost.
 */
void scene_forget(struct world *w, const char *guresid);

/**
 * The history of a resource as text: "creating>ready ready 1; ready>ready degraded 1; ". Lives
 * until world_close.
 */
const char *scene_history(struct world *w, const char *guresid);
/** Its rows. */
struct hfd_history_list scene_history_rows(struct world *w, const char *guresid);

#endif
