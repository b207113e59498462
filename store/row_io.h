/*
 * Helpers of the row functions: reading columns in order, collecting lists, running writes.
 * Thread: that of the transaction.
 */
#ifndef HFD_STORE_ROW_IO_H
#define HFD_STORE_ROW_IO_H

#include "store/kind.h"
#include "store/txn.h"

/** Room for a row that a row function reads for itself. */
#define HFD_ROW_BYTES_MAX ((size_t)64 << 20)

/** The name of a row in messages. */
struct hfd_row_name {
    const char *table;       /* NULL = none */
    hfd_slice first, second; /* its key; the second may be none */
};

/**
 * A cursor over the columns of the current row. Columns are taken in the order of the statement's
 * list.
 */
struct hfd_row_in {
    struct hfd_stmt *st;
    struct hfd_arena *mem;
    int at;
    int64_t *sums; /* where the next checksum goes, and none is compared; NULL = all are compared */
    bool bad;      /* a value that the program never writes, or a checksum that does not match */
    struct hfd_row_name name; /* of the row whose checksum does not match */
};

/* Each reads the next column. */
hfd_slice hfd_row_text(struct hfd_row_in *in); /* NULL is bad */
hfd_slice hfd_row_blob(struct hfd_row_in *in); /* NULL is none */
int64_t hfd_row_i64(struct hfd_row_in *in);
enum hfd_kind hfd_row_kind(struct hfd_row_in *in);
int hfd_row_enum(struct hfd_row_in *in); /* whose names are the domain's */

typedef void hfd_row_read(struct hfd_row_in *in, void *row);

/** A kind of row, for reading. */
struct hfd_row_form {
    const char *what; /* for messages: "nodepool", "report" */
    hfd_row_read *read;
    size_t size;
};

/** Rows that were read, in the caller's arena. */
struct hfd_row_list {
    void *rows;
    size_t count;
};

/**
 * Reads the one row that st gives, and finishes st.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_CORRUPT, HFD_DAMAGED (its checksum does not match), or as
 * hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_row_one(struct hfd_stmt *st, const struct hfd_row_form *form,
                                  struct hfd_arena *mem, void *row, struct hfd_err *err);

/** As hfd_row_one, with a cursor of the caller's, which has st. */
HFD_MUST_CHECK hfd_rc hfd_row_one_by(struct hfd_row_in *in, const struct hfd_row_form *form,
                                     void *row, struct hfd_err *err);

/** Reads all rows that st gives into an array in mem, and finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_all(struct hfd_stmt *st, const struct hfd_row_form *form,
                                  struct hfd_arena *mem, struct hfd_row_list *out,
                                  struct hfd_err *err);

/** Reads the number that st gives, or gives `none` where there is no row; finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out,
                                     struct hfd_err *err);

/** A value of a column that is never NULL: none becomes empty. */
static inline hfd_slice hfd_row_some(hfd_slice v)
{
    return v.p != NULL ? v : HFD_SLICE("");
}

/** Gets a statement for writing; asserts that the transaction may. */
HFD_MUST_CHECK hfd_rc hfd_row_write(struct hfd_txn *tx, const char *sql, struct hfd_stmt **out,
                                    struct hfd_err *err);

/**
 * Runs a statement for writing with these texts as parameters. `second` may be none: then there is
 * one parameter.
 */
HFD_MUST_CHECK hfd_rc hfd_row_run(struct hfd_txn *tx, const char *sql, hfd_slice first,
                                  hfd_slice second, struct hfd_err *err);

#endif
