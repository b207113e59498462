/* See history.h. */
#include "driver/core/history.h"

#include "store/rows_history.h"

hfd_slice hfd_history_word(enum hfd_state from, enum hfd_state to)
{
    switch (to) {
    case HFD_STATE_READY:
        return HFD_SLICE("ready");
    case HFD_STATE_FAILED:
        return HFD_SLICE("failed");
    case HFD_STATE_DELETING:
        return HFD_SLICE("delete");
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
        return from == HFD_STATE_FAILED     ? HFD_SLICE("retry")
               : from == HFD_STATE_UPDATING ? HFD_SLICE("retarget")
                                            : HFD_SLICE("update");
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return HFD_SLICE("");
}

hfd_rc hfd_history_add(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                       const struct hfd_happening *h)
{
    const struct hfd_history_row entry = {
        .guresid = row->guresid,
        .incarnation = row->incarnation,
        .at_us = h->at_us,
        .from = (int)h->from,
        .to = row->state,
        .what = h->what,
        .generation = h->generation,
        .text = h->text,
    };

    return hfd_history_row_add(c->tx, &entry, HFD_HISTORY_MAX, c->err);
}
