/*
 * Driver resources that a reader read lately, so that polling does not ask the database. The cache
 * is filled from committed rows only, and never answers what a later commit has changed.
 *
 * Stamps, one set per store: commits are numbered, and a changed row notes before its commit the
 * number that it will have. Cache, one per reader: an entry knows the last commit before its
 * snapshot, and holds until a later one changes the row. Between the note and the end of the commit
 * no entry holds, so all readers ask the database.
 *
 * The cache is bounded in entries and bytes.
 */
#ifndef HFD_STORE_ROW_CACHE_H
#define HFD_STORE_ROW_CACHE_H

#include <stdatomic.h>

#include "store/rows_resource.h"

#define HFD_STAMP_SLOTS 4096u

struct hfd_row_stamps {
    atomic_llong
        committed;       /* number of the last commit; a reader asks before its snapshot begins */
    atomic_llong others; /* rises when other servers may have committed */
    bool touched;        /* the writer's: the next commit changes a row */
    atomic_llong changed[HFD_STAMP_SLOTS]; /* number of the commit that changed a row of this slot
                                              last, or is about to */
};

/** The next commit changes the row. Thread: writer, inside its transaction. */
void hfd_row_stamps_change(struct hfd_row_stamps *stamps, hfd_slice guresid);
/** The commit is on disk. @return whether it changed a row. Thread: writer, before it answers. */
bool hfd_row_stamps_commit(struct hfd_row_stamps *stamps);

/** A moment, for one driver resource: changes behind it can be told. */
struct hfd_row_mark {
    size_t slot;
    int64_t own, others; /* how often this server, and others, had committed */
};
/** Gives the present moment. @param guresid  empty = the feed of all. Thread: any. */
struct hfd_row_mark hfd_row_stamps_mark(const struct hfd_row_stamps *stamps, hfd_slice guresid);
/**
 * Returns true if the rows may have changed since. Cheap, and misses no commit of this server.
 * Others count once `others` rises. Thread: any.
 */
bool hfd_row_stamps_changed(const struct hfd_row_stamps *stamps, const struct hfd_row_mark *mark);

struct hfd_row_cache;

/** NULL when memory is short. `stamps` outlives it. */
struct hfd_row_cache *hfd_row_cache_new(const struct hfd_row_stamps *stamps);
/** Accepts NULL. */
void hfd_row_cache_free(struct hfd_row_cache *cache);
/** Returns true when the row is there and holds; its text is then copied to mem. */
bool hfd_row_cache_get(const struct hfd_row_cache *cache, hfd_slice guresid, struct hfd_arena *mem,
                       struct hfd_resource_row *out);
/**
 * Keeps a copy of a row. seq: `committed` before the snapshot that it was read in. Short of
 * memory, it is not kept.
 */
void hfd_row_cache_put(struct hfd_row_cache *cache, const struct hfd_resource_row *row,
                       int64_t seq);

#endif
