/*
 * The one history: every action on a driver resource with its time and instance. Event feed, page,
 * resource views and EMCO status query read it; nothing else stores actions. Entries of all
 * resources have one order. The newest HFD_HISTORY_MAX entries of a GUResID are kept, over all its
 * lives, and for driver.tombstone after its removal.
 *
 * | what | means | instance |
 * |---|---|---|
 * | create | a PUT of a GUResID that was absent, also after a removal | its own seq |
 * | update, retarget, retry | a PUT that began another operation | its own seq |
 * | adopted | the row was made again from a cookie | its own seq |
 * | delete | a DELETE began | the running one |
 * | ready, failed, degraded, recovered, drifted, mended, removed | what followed | the running one
 * |
 *
 * An instance is EMCO's ContextId: its decimal number is unique and rises.
 *
 * Clusters that HyperFleet's API made, and no driver resource has, have a history of their own
 * (HFD_ABOUT_CLUSTER): create, update, delete, removed. Their instance is the generation that was
 * asked for. The event feed does not have them.
 *
 * The event feed: the history of all driver resources in one order, for readers that go on from
 * where they were. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_CORE_HISTORY_H
#define HFD_CORE_HISTORY_H

#include "driver/core/driver.h"
#include "store/rows_history.h"

#define HFD_HISTORY_MAX 100

/** One entry, but for what the row says. */
struct hfd_history_entry {
    enum hfd_state from;
    int64_t at_us;
    hfd_slice what;
    int64_t generation; /* of its cluster or nodepool in HyperFleet; 0 = unknown */
    hfd_slice text;
};

/**
 * Begins a life of a resource: sets row->seq and row->instance, and removes the tombstone of the
 * last life. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_history_begin(const struct hfd_ctx *c, struct hfd_resource_row *row);

/** Writes the creation as an entry, before the row changes what it says of it. Thread: writer. */
HFD_MUST_CHECK hfd_rc hfd_history_keep_creation(const struct hfd_ctx *c,
                                                const struct hfd_resource_row *row);

/**
 * Ends the life of a resource that moved to ABSENT: writes its creation and its removal as entries,
 * and its tombstone. Takes away the tombstones that are too old or too many. Call it before its
 * parts are removed. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_history_end(const struct hfd_ctx *c, const struct hfd_resource_row *row);

/** Returns true for what begins an instance: create, update, retarget, retry, adopted. */
bool hfd_history_begins_instance(hfd_slice what);

/** The history of one GUResID, or of a cluster that no driver resource has. */
struct hfd_history {
    bool is_there; /* else it was removed, and `removed` says when and what it was */
    struct hfd_tombstone_row removed;
    struct hfd_history_row *entries; /* oldest first */
    size_t count;
};

/**
 * Reads the history of a resource that is there, or was removed within driver.tombstone.
 * @return HFD_OK, HFD_NOT_FOUND
 * Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_history_read(const struct hfd_ctx *c, hfd_slice guresid,
                                       struct hfd_history *out);
/**
 * Reads the history of a cluster that HyperFleet's API made.
 * @param row  the cluster; NULL = it is not there
 * @return HFD_OK, HFD_NOT_FOUND
 * Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_history_read_cluster(const struct hfd_ctx *c, hfd_slice id,
                                               const struct hfd_fleet_row *row,
                                               struct hfd_history *out);

/** An entry, and the resource as it is or was. */
struct hfd_feed_entry {
    struct hfd_history_row row;
    hfd_slice type, name, cluster_id; /* empty = not known */
};

struct hfd_feed_query {
    int64_t after;   /* seq of the last entry that the reader has; 0 = from the oldest one */
    int64_t before;  /* with `newest`: only smaller numbers; INT64_MAX = all */
    bool newest;     /* the newest come first, for the page; else the oldest, for readers */
    size_t size;     /* 1 to HFD_FEED_SIZE_MAX */
    int64_t wait_us; /* how long an empty answer is held */
};

struct hfd_feed {
    struct hfd_feed_entry *items;
    size_t count;
    int64_t next;  /* what the reader goes on with */
    bool complete; /* no entry between `after` and the first item was removed */
};

/** Adds the members of an entry behind its id, as API documents have them. */
void hfd_history_format(struct hfd_buf *b, const struct hfd_history_row *row);
/** Adds an item of the feed, as a JSON object. */
void hfd_feed_entry_format(struct hfd_buf *b, const struct hfd_feed_entry *entry);

/** Reads a page of the feed. */
HFD_MUST_CHECK hfd_rc hfd_feed_read(const struct hfd_ctx *c, const struct hfd_feed_query *q,
                                    struct hfd_feed *out);

#endif
