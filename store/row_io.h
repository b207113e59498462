/*
 * Helpers of the row functions: running statements, reading rows, collecting lists.
 * Thread: that of the transaction.
 */
#ifndef HFD_STORE_ROW_IO_H
#define HFD_STORE_ROW_IO_H

#include "store/table.h"
#include "store/txn.h"
#include "store/unit.h"

/** Room for a row that a row function reads for itself. */
#define HFD_ROW_BYTES_MAX ((size_t)64 << 20)

/* ---- statements ---- */

/* The texts, or numbers, of a JSON array: a parameter of many keys. For PostgreSQL alone: SQLite
 * reads rows one by one, where that costs no round trip. */
#define HFD_SQL_TEXTS_OF(n) "SELECT jsonb_array_elements_text(CAST(CAST(" n " AS TEXT) AS JSONB))"
#define HFD_SQL_NUMBERS_OF(n)                                                                      \
    "SELECT CAST(jsonb_array_elements_text(CAST(CAST(" n " AS TEXT) AS JSONB)) AS BIGINT)"

/** A parameter of a statement. */
struct hfd_arg {
    char type; /* 'n', 't', 'b' */
    int64_t number;
    hfd_slice text; /* of a text, or of bytes */
};

struct hfd_args {
    const struct hfd_arg *all;
    size_t count;
};

/** A number. */
static inline struct hfd_arg hfd_arg_i64(int64_t v)
{
    return (struct hfd_arg){.type = 'n', .number = v};
}

/** A text; none becomes empty. */
static inline struct hfd_arg hfd_arg_text(hfd_slice v)
{
    return (struct hfd_arg){.type = 't', .text = v.p != NULL ? v : HFD_SLICE("")};
}

/** The same as bytes. */
static inline struct hfd_arg hfd_arg_blob(hfd_slice v)
{
    return (struct hfd_arg){.type = 'b', .text = v.p != NULL ? v : HFD_SLICE("")};
}

/* The parameters of a statement, in order. */
#define HFD_ARGS(...)                                                                              \
    ((struct hfd_args){(const struct hfd_arg[]){__VA_ARGS__},                                      \
                       sizeof((const struct hfd_arg[]){__VA_ARGS__}) / sizeof(struct hfd_arg)})
#define HFD_ARGS_NONE ((struct hfd_args){NULL, 0})

/** Gets a statement with its parameters, for reading. */
HFD_MUST_CHECK hfd_rc hfd_query_open(struct hfd_txn *tx, struct hfd_query *query,
                                     struct hfd_args args, struct hfd_stmt **out,
                                     struct hfd_err *err);
/** Reads the one row. Returns as hfd_row_one. */
HFD_MUST_CHECK hfd_rc hfd_query_one(struct hfd_txn *tx, struct hfd_query *query,
                                    struct hfd_args args, struct hfd_arena *mem, void *row,
                                    struct hfd_err *err);
/** Reads all rows. @param out  has none after a failure */
HFD_MUST_CHECK hfd_rc hfd_query_all(struct hfd_txn *tx, struct hfd_query *query,
                                    struct hfd_args args, struct hfd_arena *mem,
                                    struct hfd_row_list *out, struct hfd_err *err);
/* The same into a struct with rows and count. */
#define HFD_QUERY_LIST(tx, query, args, mem, out, err)                                             \
    ({                                                                                             \
        struct hfd_row_list all_;                                                                  \
        const hfd_rc rc_ = hfd_query_all((tx), (query), args, (mem), &all_, (err));                \
                                                                                                   \
        (out)->rows = all_.rows;                                                                   \
        (out)->count = all_.count;                                                                 \
        rc_;                                                                                       \
    })
/** Reads a number, or gives `none` where there is no row. */
HFD_MUST_CHECK hfd_rc hfd_query_number(struct hfd_txn *tx, struct hfd_query *query,
                                       struct hfd_args args, int64_t none, int64_t *out,
                                       struct hfd_err *err);
/** Runs a statement that writes. */
HFD_MUST_CHECK hfd_rc hfd_query_run(struct hfd_txn *tx, struct hfd_query *query,
                                    struct hfd_args args, struct hfd_err *err);
/** Writes a row: its columns are the parameters. @param changed  rows; may be NULL */
HFD_MUST_CHECK hfd_rc hfd_query_write(struct hfd_txn *tx, struct hfd_query *query, const void *row,
                                      int64_t *changed, struct hfd_err *err);
/** Notes that the query will be asked with each key that `via` gives: hfd_db_follow. */
HFD_MUST_CHECK hfd_rc hfd_query_follow(struct hfd_txn *tx, struct hfd_query *query, const char *via,
                                       hfd_slice key, struct hfd_err *err);

/* ---- rows ---- */

/**
 * Reads the one row that st gives, and finishes st.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_CORRUPT, HFD_DAMAGED (its checksum does not match), or as
 * hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_row_one(struct hfd_stmt *st, const struct hfd_row_form *form,
                                  struct hfd_arena *mem, void *row, struct hfd_err *err);

/** As hfd_row_one, with a cursor of the caller's, which has st, form and mem. */
HFD_MUST_CHECK hfd_rc hfd_row_one_by(struct hfd_row_in *in, void *row, struct hfd_err *err);

/** Reads all rows that st gives into an array in mem, and finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_all(struct hfd_stmt *st, const struct hfd_row_form *form,
                                  struct hfd_arena *mem, struct hfd_row_list *out,
                                  struct hfd_err *err);

/** Reads the number that st gives, or gives `none` where there is no row; finishes st. */
HFD_MUST_CHECK hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out,
                                     struct hfd_err *err);

/** Counts the rows of a table: it reads all of them, or an index. @param table  one of ours */
HFD_MUST_CHECK hfd_rc hfd_row_count(struct hfd_db *db, const char *table, int64_t *out,
                                    struct hfd_err *err);

/* ---- rows that are kept ---- */

/** Reads a row by its key: as the job sees it now, or from the database. */
HFD_MUST_CHECK hfd_rc hfd_kept_get(struct hfd_txn *tx, const struct hfd_unit_form *form,
                                   const struct hfd_unit_key *key, struct hfd_arena *mem, void *out,
                                   struct hfd_err *err);
/** Keeps the new form of a row, to be written later; without room for it, it is written at once. */
HFD_MUST_CHECK hfd_rc hfd_kept_put(struct hfd_txn *tx, const struct hfd_unit_form *form,
                                   const void *row, unsigned change, struct hfd_err *err);
/** Writes a row by the put of its table, or removes it. */
HFD_MUST_CHECK hfd_rc hfd_kept_write(struct hfd_txn *tx, const struct hfd_kept *kept,
                                     struct hfd_err *err);

#endif
