/* What the row functions share: reading columns in order, collecting lists, running writes. */
#ifndef HFD_STORE_ROWS_INT_H
#define HFD_STORE_ROWS_INT_H

#include "store/rows.h"
#include "store/txn.h"

/**
 * A cursor over the columns of the current row. Columns are taken in the order of the statement's
 * list.
 */
struct hfd_row_in {
    struct hfd_stmt *st;
    struct hfd_arena *mem;
    int at;
    bool bad; /* a value that the program never writes */
};

hfd_slice hfd_row_text(struct hfd_row_in *in); /* NULL is bad */
hfd_slice hfd_row_blob(struct hfd_row_in *in); /* NULL is none */
int64_t hfd_row_i64(struct hfd_row_in *in);
enum hfd_kind hfd_row_kind(struct hfd_row_in *in);
int hfd_row_enum(struct hfd_row_in *in); /* whose names are the domain's */

typedef void hfd_row_read(struct hfd_row_in *in, void *row);

/**
 * Reads the one row that st gives, and finishes st.
 * @param what  for messages: "nodepool", "report"
 * @return HFD_OK, HFD_NOT_FOUND, HFD_CORRUPT, or as hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_row_one(struct hfd_stmt *st, struct hfd_arena *mem, const char *what,
                                  hfd_row_read *read, void *row, struct hfd_err *err);

/** Reads all rows that st gives into an array in mem, and finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_all(struct hfd_stmt *st, struct hfd_arena *mem, const char *what,
                                  hfd_row_read *read, size_t row_size, void **rows, size_t *count,
                                  struct hfd_err *err);

/** The number that st gives, or `none` where it gives no row; finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out,
                                     struct hfd_err *err);

/**
 * What stands first in the columns of orphans, of both kinds; and its reading. `label` is the
 * column of the label's value.
 */
#define HFD_ORPHAN_COLUMNS(t, label)                                                               \
    t "id, " t "kind, " t "owner_id, " label ", " t "name, " t "generation, " t "ready, " t        \
      "created_us, " t "deleted_us, " t "created_by"
void hfd_row_orphan(struct hfd_row_in *in, struct hfd_orphan_row *row);

/** A value of a column that is never NULL: none becomes empty. */
static inline hfd_slice hfd_row_some(hfd_slice v)
{
    return v.p != NULL ? v : HFD_SLICE("");
}

/** The lists whose totals are kept: what fleet_count's columns say. */
enum hfd_count_field {
    HFD_COUNT_ALL = 0, /* name and value are empty */
    HFD_COUNT_CONDITION = 1,
    HFD_COUNT_LABEL = 2
};

struct hfd_count_key {
    enum hfd_kind kind;
    enum hfd_count_field field;
    hfd_slice name, value;
};

/**
 * Whether totals by this label are kept. Those of HFD_FLEET_LABEL_UNIQUE are not: each value is of
 * one cluster and its nodepools, quickly counted, and would cost every resource a row of its own.
 */
static inline bool hfd_label_is_counted(hfd_slice key)
{
    return !hfd_slice_is(key, HFD_FLEET_LABEL_UNIQUE);
}

/** Gets a statement for writing; asserts that the transaction may. */
HFD_MUST_CHECK hfd_rc hfd_row_write(struct hfd_txn *tx, const char *sql, struct hfd_stmt **out,
                                    struct hfd_err *err);

/**
 * Runs a statement for writing whose parameters are these texts; `second` may be none, where there
 * is one parameter.
 */
HFD_MUST_CHECK hfd_rc hfd_row_run(struct hfd_txn *tx, const char *sql, hfd_slice first,
                                  hfd_slice second, struct hfd_err *err);

#endif
