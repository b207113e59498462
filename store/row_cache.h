/*
 * Rows of driver resources that were read lately, so that polling does not ask the database. Filled
 * from what was committed only, and never answers what a commit has made old:
 *
 *   stamps  one per store. Commits are numbered; each changed row notes, before its commit, the
 * number that it is going to have. cache   one per reader, of its thread alone. An entry knows the
 * last commit before its snapshot, and holds as long as no later one has changed the row. From the
 * note to the end of the commit no entry holds, so all ask the database, which shows to all the
 * same.
 *
 * Bounded in entries and bytes; what does not fit is not kept.
 */
#ifndef HFD_STORE_ROW_CACHE_H
#define HFD_STORE_ROW_CACHE_H

#include <stdatomic.h>

#include "store/rows_resource.h"

#define HFD_STAMP_SLOTS 4096u

struct hfd_row_stamps {
    atomic_llong committed;                /* number of the last commit */
    atomic_llong changed[HFD_STAMP_SLOTS]; /* number of the commit that changed a row of this slot
                                              last, or is about to */
};

/** The row is changed by the commit that comes. Thread: writer, inside its transaction. */
void hfd_row_stamps_change(struct hfd_row_stamps *stamps, hfd_slice guresid);
/** The commit is on disk. Thread: writer, before anybody is answered. */
void hfd_row_stamps_commit(struct hfd_row_stamps *stamps);
/** The last commit: to be asked before a snapshot begins. Thread: any. */
int64_t hfd_row_stamps_now(const struct hfd_row_stamps *stamps);

struct hfd_row_cache;

/** NULL when memory is short. `stamps` outlives it. */
struct hfd_row_cache *hfd_row_cache_new(const struct hfd_row_stamps *stamps);
/** Accepts NULL. */
void hfd_row_cache_free(struct hfd_row_cache *cache);
/** @return whether the row is there and holds; its text is copied to mem then */
bool hfd_row_cache_get(const struct hfd_row_cache *cache, hfd_slice guresid, struct hfd_arena *mem,
                       struct hfd_resource_row *out);
/**
 * Keeps a copy of a row. seq: hfd_row_stamps_now before the snapshot that it was read in. Short of
 * memory, it is not kept.
 */
void hfd_row_cache_put(struct hfd_row_cache *cache, const struct hfd_resource_row *row,
                       int64_t seq);

#endif
