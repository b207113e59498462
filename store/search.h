/*
 * Lists of HyperFleet resources. A checked filter, an order and a page become SQL. The plan is
 * chosen here, so that a query on indexed fields never scans the whole fleet. Text is composed of
 * fixed fragments; every value is bound. Thread: that of the transaction.
 */
#ifndef HFD_STORE_SEARCH_H
#define HFD_STORE_SEARCH_H

#include "store/filter.h"
#include "store/rows_fleet.h"
#include "store/txn.h"

struct hfd_fleet_query {
    enum hfd_kind kind;
    hfd_slice owner_id;              /* empty = of every cluster */
    const struct hfd_filter *filter; /* NULL = all */
    const struct hfd_order *order;   /* then newest first */
    size_t order_count;
    int64_t offset, limit;
};

/** A page and the number of all matches. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_search(struct hfd_txn *tx, const struct hfd_fleet_query *query,
                                           struct hfd_arena *mem, struct hfd_fleet_list *out,
                                           struct hfd_err *err);

#define HFD_SQL_MAX_BYTES ((size_t)1 << 20)

/** A statement being composed. Failures stick to `text`. */
struct hfd_sql {
    struct hfd_buf text;
    const struct hfd_db *db;
    struct hfd_arena *mem;
    const char *seq, *at; /* columns of the number and of the time of creation: the fleet's own, or
                             those of a set */
    struct hfd_filter_value *params;
    int count, cap;
};

/* clang-format off */
void hfd_sql_init(struct hfd_sql *q, const struct hfd_db *db, struct hfd_arena *mem);
void hfd_sql_fini(struct hfd_sql *q);
/** Adds "?N" for a value. */
void hfd_sql_value(struct hfd_sql *q, const struct hfd_filter_value *v);
void hfd_sql_text(struct hfd_sql *q, hfd_slice v);
void hfd_sql_i64(struct hfd_sql *q, int64_t v);
/* clang-format on */

/** Adds a field of `fleet f` as an expression to order or compare by. Labels and columns. */
void hfd_sql_field(struct hfd_sql *q, enum hfd_field field, hfd_slice name);
/** Adds a filter over resources of a kind as a condition. */
void hfd_sql_filter(struct hfd_sql *q, enum hfd_kind kind, const struct hfd_filter *f);
/** Returns true when `f` only compares the last update of Ready: `fleet` has a column of it. */
bool hfd_sql_is_age(const struct hfd_filter *f);
/** Returns true when a filter needs `fleet f`, beyond the number and the time of creation. */
bool hfd_sql_needs_row(const struct hfd_filter *f, bool negate);

/** Prepares what was composed and binds its values. */
HFD_MUST_CHECK hfd_rc hfd_sql_prepare(struct hfd_sql *q, struct hfd_db *db, struct hfd_stmt **out,
                                      struct hfd_err *err);

/** The two statements of a list. */
struct hfd_search_sql {
    struct hfd_sql page; /* ids in order */
    struct hfd_sql total;
};

/** Chooses a plan and composes both statements; hfd_sql_fini ends each, on failure too. */
HFD_MUST_CHECK hfd_rc hfd_search_compose(struct hfd_txn *tx, const struct hfd_fleet_query *query,
                                         struct hfd_arena *mem, struct hfd_search_sql *out,
                                         struct hfd_err *err);

#endif
