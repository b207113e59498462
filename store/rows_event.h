/* Rows of events on HyperFleet resources. */
#ifndef HFD_STORE_ROWS_EVENT_H
#define HFD_STORE_ROWS_EVENT_H

#include "driver/base/arena.h"
#include "store/store.h"

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

#endif
