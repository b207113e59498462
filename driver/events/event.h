/*
 * Events about clusters and nodepools that are due, as adapters of HyperFleet know them:
 * CloudEvents in JSON, with the bytes of HyperFleet's sentinel. Pure. Thread: any.
 */
#ifndef HFD_EVENTS_EVENT_H
#define HFD_EVENTS_EVENT_H

#include "driver/base/buf.h"
#include "store/rows_due.h"

/**
 * Adds the event of a change. Its id is a UUID of version 7 that follows from the change alone:
 * each reader of the same change gets the same id.
 */
void hfd_event_format(struct hfd_buf *b, const struct hfd_due_row *row);

#define HFD_EVENT_LABELS_MAX 10

/** Which events a reader wants. Texts are borrowed. */
struct hfd_event_filter {
    enum hfd_kind kind; /* 0 = both */
    struct {
        hfd_slice key, value;
    } labels[HFD_EVENT_LABELS_MAX]; /* all of them */
    size_t label_count;
};

/** Returns true if the resource of a change passes. Labels that cannot be read have none. */
bool hfd_event_passes(const struct hfd_event_filter *filter, const struct hfd_due_row *row);

#endif
