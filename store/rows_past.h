/* Rows of past operations, and of the forecasts that are made of them. */
#ifndef HFD_STORE_ROWS_PAST_H
#define HFD_STORE_ROWS_PAST_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/store.h"

/** Operations with the same key are comparable. */
struct hfd_past_key {
    enum hfd_kind kind;
    int op;       /* enum hfd_op */
    int64_t size; /* the number of parts, in binary digits */
};

/** An operation that ended. */
struct hfd_past_row {
    int64_t size; /* add does not use it */
    int64_t took_us;
    int64_t ended_us;     /* add raises it above the last one of its key; lists do not read it */
    int ending;           /* enum hfd_ending */
    hfd_slice milestones; /* "c/dns=61000 n/validation=65000": milliseconds since the start */
};

struct hfd_past_list {
    struct hfd_past_row *rows;
    size_t count;
};

struct hfd_past_query {
    struct hfd_past_key key;
    int64_t limit;
};

/** A forecast for an operation that starts, made with these settings. */
struct hfd_forecast_row {
    int64_t prior_us, deadline_us;
    hfd_slice plan;
    hfd_slice usual; /* when adapters usually are done, as milestones */
};

/**
 * Adds an operation. Removes all but the newest `keep` of its key, and the forecasts that do not
 * know it yet.
 */
HFD_MUST_CHECK hfd_rc hfd_past_row_add(struct hfd_txn *tx, const struct hfd_past_key *key,
                                       const struct hfd_past_row *row, int64_t keep,
                                       struct hfd_err *err);
/** Lists operations of the key, then of its other sizes, each newest first. */
HFD_MUST_CHECK hfd_rc hfd_past_row_list(struct hfd_txn *tx, const struct hfd_past_query *query,
                                        struct hfd_arena *mem, struct hfd_past_list *out,
                                        struct hfd_err *err);
/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_forecast_row_get(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           struct hfd_arena *mem, struct hfd_forecast_row *out,
                                           struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_forecast_row_put(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           const struct hfd_forecast_row *row, struct hfd_err *err);

#endif
