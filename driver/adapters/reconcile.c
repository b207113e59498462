/* See reconcile.h. */
#include "driver/adapters/reconcile.h"

struct hfd_reconciled hfd_reconcile(const struct hfd_reconciler *r, bool deleted, void *work)
{
    const struct hfd_steps *steps = deleted ? &r->teardown : &r->sync;

    for (size_t i = 0; i < steps->count; i++) {
        const struct hfd_step *step = &steps->items[i];
        enum hfd_step_end end;

        if (!r->is_current(work))
            return (struct hfd_reconciled){HFD_STEP_AGAIN, step};
        end = step->run(work);
        if (end != HFD_STEP_DONE)
            return (struct hfd_reconciled){end, step};
    }
    return (struct hfd_reconciled){HFD_STEP_DONE, NULL};
}
