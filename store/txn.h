/*
 * The transaction that a transaction function works with. Opaque to the domain, which passes it on
 * to store/rows_*.h.
 */
#ifndef HFD_STORE_TXN_H
#define HFD_STORE_TXN_H

#include "store/db.h"
#include "store/row_cache.h"
#include "store/store.h"

#define HFD_TALLY_MAX 48

/* Counts of the jobs of a commit, for metrics. They count when the commit is on disk. */
struct hfd_tally {
    struct {
        struct hfd_series *series;
        int64_t delta;
    } items[HFD_TALLY_MAX];
    size_t count;
};

/* Calls that wait for a commit, in order. Zero = empty. */
struct hfd_effects {
    char *bytes; /* owned */
    size_t len, capacity;
};

struct hfd_totals;
struct hfd_unit;

struct hfd_txn {
    struct hfd_db *db;
    bool writable;                 /* asserted by every row function that writes */
    struct hfd_row_stamps *stamps; /* the writer's: where changed rows are noted; may be NULL */
    struct hfd_tally *tally;       /* the writer's */
    struct hfd_effects *effects;   /* the writer's */
    struct hfd_totals *totals;     /* the writer's: changes of kept totals that are not written yet;
                                      NULL writes them at once */
    struct hfd_unit *unit;         /* the writer's: rows kept and changes collected; NULL writes
                                      changes at once */
    struct hfd_row_cache *cache;   /* a reader's own, or NULL */
    bool rooted;                   /* the job has named its roots: store/rows_resource.h */
    int64_t seq;                   /* with a cache: the last commit before the snapshot began */
};

#endif
