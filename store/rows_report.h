/* Rows of adapters' reports: the last one of each adapter, in the order of their first arrival. */
#ifndef HFD_STORE_ROWS_REPORT_H
#define HFD_STORE_ROWS_REPORT_H

#include "driver/base/arena.h"
#include "store/store.h"

struct hfd_filter;
struct hfd_order;

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

/** Notes that these rows will be read: as hfd_fleet_row_follow. */
HFD_MUST_CHECK hfd_rc hfd_report_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key,
                                            struct hfd_err *err);

#endif
