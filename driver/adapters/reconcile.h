/*
 * The reconciler of adapters that act: one walk over a table of steps, from the first to the one
 * that is not done. It keeps nothing between walks. So a walk may end at any point, also with the
 * process, and the next one finds what is left to do. Each step looks first, and then does what is
 * missing. Source: HyperShift, "Architecture": Reconcile, Deleted?, Sync or Teardown, complete?
 * Thread: the adapter's.
 */
#ifndef HFD_ADAPTERS_RECONCILE_H
#define HFD_ADAPTERS_RECONCILE_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hfd_step_end {
    HFD_STEP_DONE,
    HFD_STEP_WAITS,   /* for the world: look again soon */
    HFD_STEP_AGAIN,   /* the order changed meanwhile, or another writer was first: at once */
    HFD_STEP_FAULT,   /* the adapter cannot do its work now: later, with growing pauses */
    HFD_STEP_REFUSED, /* only another order can go on from here */
    HFD_STEP_STOPPED, /* the program ends */
};

struct hfd_step {
    const char *name;
    enum hfd_step_end (*run)(void *work);
};

struct hfd_steps {
    const struct hfd_step *items;
    size_t count;
};

/** One kind of resource. Written once for clusters and for nodepools, as tables. */
struct hfd_reconciler {
    struct hfd_steps sync, teardown;
    /* True while the work is what is wanted. It is asked before each step. */
    bool (*is_current)(void *work);
};

struct hfd_reconciled {
    enum hfd_step_end end;
    const struct hfd_step *at; /* the step that is not done; NULL = complete */
};

/** Walks over the steps. A deletion that comes in between ends the walk with HFD_STEP_AGAIN. */
struct hfd_reconciled hfd_reconcile(const struct hfd_reconciler *r, bool deleted, void *work);

#endif
