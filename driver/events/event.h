/*
 * CloudEvents in JSON. Those about clusters and nodepools that are due have the bytes of
 * HyperFleet's sentinel. Those about states of driver resources are ours. Pure. Thread: any.
 */
#ifndef HFD_EVENTS_EVENT_H
#define HFD_EVENTS_EVENT_H

#include "driver/base/buf.h"
#include "driver/core/history.h"
#include "store/rows_due.h"

#define HFD_EVENT_ID_LEN 36

/** The subject of an event: the resource, and the number and time of its change. */
struct hfd_event_key {
    hfd_slice subject;
    int64_t seq, at_us;
};
/**
 * Writes the id of an event, a UUID of version 7. It follows from the change alone: each reader of
 * the same change gets the same id.
 */
void hfd_event_id(const struct hfd_event_key *key, char out[HFD_EVENT_ID_LEN + 1]);

/** Adds the event of a change. */
void hfd_event_format(struct hfd_buf *b, const struct hfd_due_row *row);
/** Adds the event of a driver resource that is in a new state. Its data is the item of the feed. */
void hfd_event_format_state(struct hfd_buf *b, const struct hfd_feed_entry *entry);

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
