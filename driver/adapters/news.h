/*
 * How the adapters of this program find their work: a list of clusters and nodepools once, then the
 * changes behind it (store/rows_due.h). Thread: that of the adapter.
 */
#ifndef HFD_ADAPTERS_NEWS_H
#define HFD_ADAPTERS_NEWS_H

#include "store/rows_fleet.h"
#include "store/store.h"

/**
 * Takes a cluster or nodepool; borrows.
 * @param due  it has changed, or there is a new attempt at it, and it may be gone: the row has
 *             kind, ids and generation alone. Else it is a row of a list
 * @return false: no more is wanted
 */
typedef bool hfd_news_row_fn(void *ctx, const struct hfd_fleet_row *row, bool due);

/** One look: its extent, and the function that takes what it finds. */
struct hfd_news_look {
    bool all; /* lists; the next look goes on from there. Else what changed since the last */
    hfd_news_row_fn *on_row;
    void *ctx;
};

/** `store` and `pending` are set before the first look; the rest belongs to the module. */
struct hfd_news {
    struct hfd_store *store;         /* borrowed */
    bool pending;                    /* a list has those alone that are not ready */
    struct hfd_store_reader *reader; /* opened by the first look */
    int64_t after;                   /* the number of the last change that was handed over */
};

/**
 * Looks. If too much happened since the last look it lists, whatever was wanted. After a failure
 * the same look has to be made again: it may have handed over a part.
 * @return HFD_OK, or as hfd_store_read
 */
HFD_MUST_CHECK hfd_rc hfd_news_read(struct hfd_news *news, const struct hfd_news_look *look,
                                    struct hfd_err *err);

#endif
