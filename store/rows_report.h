/*
 * Rows of adapters' reports: the last one of each adapter, in the order of their first arrival.
 *
 * Rows of events on HyperFleet resources.
 *
 * Rows of documents that age: when each becomes stale, beside the report that brought it.
 */
#ifndef HFD_STORE_ROWS_REPORT_H
#define HFD_STORE_ROWS_REPORT_H

#include "driver/base/arena.h"

struct hfd_filter;
struct hfd_order;
struct hfd_txn;

struct hfd_report_row {
    hfd_slice fleet_id;
    hfd_slice adapter;
    int64_t observed_generation;
    int64_t observed_us, created_us;
    int64_t received_us;  /* 0: received before the present operation; see hfd_report_row_spend */
    hfd_slice conditions; /* JSON array */
    hfd_slice data;       /* JSON object, secrets redacted */
    hfd_slice metadata;   /* JSON object, or empty */
    hfd_slice objects;    /* counts of its objects: hfd_object_counts_format, or empty */
    hfd_slice secrets;    /* sealed, or none */
    hfd_slice brief;      /* what judgements read of long conditions, or empty: hfd_fleet_brief */
    int64_t long_bytes;   /* the length of such conditions, else 0 */
};

struct hfd_report_list {
    struct hfd_report_row *rows;
    size_t count;
    int64_t total; /* all reports, of which the list is one page */
};

struct hfd_report_key {
    hfd_slice fleet_id, adapter;
};

struct hfd_report_query {
    hfd_slice fleet_id;
    int64_t limit, offset;
    const struct hfd_filter *filter; /* over the fields of reports; NULL = all */
    const struct hfd_order *order;
    size_t order_count; /* 0 = the order of their first arrival */
};

/**
 * Lists all reports, without data, metadata and secrets, which may be large. The conditions of a
 * report with a brief form are that form.
 */
HFD_MUST_CHECK hfd_rc hfd_report_row_heads(struct hfd_txn *tx, hfd_slice fleet_id,
                                           struct hfd_arena *mem, struct hfd_report_list *out,
                                           struct hfd_err *err);
/** Reads the heads of many lists together, for the hfd_report_row_heads that follow. */
HFD_MUST_CHECK hfd_rc hfd_report_row_prefetch(struct hfd_txn *tx, const hfd_slice *fleet_ids,
                                              size_t count, struct hfd_err *err);
/** Reads the whole report of one adapter. @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_report_row_get(struct hfd_txn *tx, const struct hfd_report_key *key,
                                         struct hfd_arena *mem, struct hfd_report_row *out,
                                         struct hfd_err *err);
/** Lists a page of whole reports, and counts all that the filter takes. */
HFD_MUST_CHECK hfd_rc hfd_report_row_list(struct hfd_txn *tx, const struct hfd_report_query *query,
                                          struct hfd_arena *mem, struct hfd_report_list *out,
                                          struct hfd_err *err);
/**
 * Sets received_us of all reports on a HyperFleet resource to 0. An operation begins, and the
 * reports so far say nothing about it, whatever the clock says.
 */
HFD_MUST_CHECK hfd_rc hfd_report_row_spend(struct hfd_txn *tx, hfd_slice fleet_id,
                                           struct hfd_err *err);
/** Inserts or replaces; created_us stays that of the first report. */
HFD_MUST_CHECK hfd_rc hfd_report_row_put(struct hfd_txn *tx, const struct hfd_report_row *row,
                                         struct hfd_err *err);
/** Removes all reports on a HyperFleet resource. */
HFD_MUST_CHECK hfd_rc hfd_report_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id,
                                                struct hfd_err *err);

/** Removes the report of one adapter, if it is there. */
HFD_MUST_CHECK hfd_rc hfd_report_row_delete(struct hfd_txn *tx, const struct hfd_report_key *key,
                                            struct hfd_err *err);

struct hfd_event_row {
    hfd_slice fleet_id;
    int64_t seq; /* from 1 on, without gaps but at the old end */
    int64_t first_us, last_us;
    int64_t count; /* how often it happened between the two */
    bool warning;  /* its type: Warning or Normal */
    hfd_slice reason;
    hfd_slice message;
};

struct hfd_event_list {
    struct hfd_event_row *rows;
    size_t count;
    int64_t total; /* all events, of which the list is one page */
};

struct hfd_event_query {
    hfd_slice fleet_id;
    int64_t limit, offset;
};

/**
 * Finds the newest event with the reason and message of `like`.
 * @return HFD_OK, HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_event_row_find(struct hfd_txn *tx, const struct hfd_event_row *like,
                                         struct hfd_arena *mem, struct hfd_event_row *out,
                                         struct hfd_err *err);
/** Adds an event behind the last one, and removes all but the newest `keep`. seq is not used. */
HFD_MUST_CHECK hfd_rc hfd_event_row_add(struct hfd_txn *tx, const struct hfd_event_row *row,
                                        int64_t keep, struct hfd_err *err);
/** Writes last_us and count of the event with this seq. */
HFD_MUST_CHECK hfd_rc hfd_event_row_repeat(struct hfd_txn *tx, const struct hfd_event_row *row,
                                           struct hfd_err *err);
/** Lists a page of events, oldest first. */
HFD_MUST_CHECK hfd_rc hfd_event_row_list(struct hfd_txn *tx, const struct hfd_event_query *query,
                                         struct hfd_arena *mem, struct hfd_event_list *out,
                                         struct hfd_err *err);
/** Removes all events of a HyperFleet resource. */
HFD_MUST_CHECK hfd_rc hfd_event_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id,
                                               struct hfd_err *err);

struct hfd_watch_row {
    hfd_slice fleet_id, adapter;
    int64_t stale_us; /* the last microsecond at which the document is not stale */
    bool told;        /* the staleness stands in the report */
};

struct hfd_watch_list {
    struct hfd_watch_row *rows;
    size_t count;
};

/** Reads the row of fleet_id and adapter in `key`. @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_watch_row_get(struct hfd_txn *tx, const struct hfd_watch_row *key,
                                        struct hfd_arena *mem, struct hfd_watch_row *out,
                                        struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_put(struct hfd_txn *tx, const struct hfd_watch_row *row,
                                        struct hfd_err *err);
/** Removes the row of fleet_id and adapter in `key`; without adapter all of fleet_id. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_delete(struct hfd_txn *tx, const struct hfd_watch_row *key,
                                           struct hfd_err *err);

struct hfd_watch_query {
    int64_t before_us; /* stale_us is below it */
    int64_t limit;
};

/** Gives the earliest stale_us of rows that are not told; INT64_MAX = there is none. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/** Lists rows that are stale and not told, the longest stale first. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_stale(struct hfd_txn *tx, const struct hfd_watch_query *query,
                                          struct hfd_arena *mem, struct hfd_watch_list *out,
                                          struct hfd_err *err);

#endif
