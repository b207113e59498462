/*
 * The event feed: the history of all driver resources in one order, for readers that go on from
 * where they were. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_CORE_FEED_H
#define HFD_CORE_FEED_H

#include "driver/core/history.h"

#define HFD_FEED_SIZE_MAX 500

/** An entry, and the resource as it is or was. */
struct hfd_feed_entry {
    struct hfd_history_row row;
    hfd_slice type, name, cluster_id; /* empty = not known */
};

struct hfd_feed_query {
    int64_t after;  /* seq of the last entry that the reader has; 0 = from the oldest one */
    int64_t before; /* with `newest`: only smaller numbers; INT64_MAX = all */
    bool newest;    /* the newest come first, for the page; else the oldest, for readers */
    size_t size;    /* 1 to HFD_FEED_SIZE_MAX */
};

struct hfd_feed {
    struct hfd_feed_entry *items;
    size_t count;
    int64_t next;  /* what the reader goes on with */
    bool complete; /* no entry between `after` and the first item was removed */
};

/** Reads a page of the feed. */
HFD_MUST_CHECK hfd_rc hfd_feed_read(const struct hfd_ctx *c, const struct hfd_feed_query *q,
                                    struct hfd_feed *out);

#endif
