/*
 * Moves all rows from one database to another, of the same engine or of another one. Rows are
 * copied table by table, in the order of keys. The target's own rows say how far a move came: after
 * a kill the same move goes on behind the highest key of each table. At the end both databases are
 * compared, by the number of rows of each table and by a hash over them.
 *
 * From its begin to its end the target is marked (hfd_meta, key "move"): no server opens it.
 * At the end the mark becomes the key "moved". The same move then only compares both.
 *
 * Numbers (seq) stay as they are. Nothing is changed in the source, except that its schema is
 * brought up to date.
 *
 * The tables that a move carries from one database to another. A migration that adds a table adds
 * it to this list, too: tests/unit/test_move.c compares the list with the schema. Thread: any.
 *
 * Rows on their way from one database to another: reading them in the order of keys, summing them
 * up, writing them. Thread: that of the connection.
 */
#ifndef HFD_STORE_MOVE_H
#define HFD_STORE_MOVE_H

#include "driver/base/buf.h"
#include "store/store.h"
#include "store/table.h"

#define HFD_MOVE_COLUMNS_MAX 48

/** A table, and its statements. */
struct hfd_move_form {
    const struct hfd_table *table;
    struct hfd_query first;  /* the first ?1 rows in the order of the primary key */
    struct hfd_query next;   /* the ?1 rows behind the key ?2, ... */
    struct hfd_query last;   /* the highest key */
    struct hfd_query insert; /* one row */
    struct hfd_query copy;   /* COPY of PostgreSQL, binary */
};

extern struct hfd_move_form hfd_move_tables[];
extern const size_t hfd_move_tables_count;

/** Tables that stay: they say something of a database and its servers, not of resources. */
extern const char *const hfd_move_staying[];
extern const size_t hfd_move_staying_count;

struct hfd_move_value {
    bool null;
    int64_t number;
    hfd_slice bytes; /* of a text or blob */
};

struct hfd_move_row {
    struct hfd_move_value values[HFD_MOVE_COLUMNS_MAX];
};

/**
 * The measure of a table, to compare two: the number of rows, and a 128-bit hash (XXH3) of each
 * row, added up. The order of the rows does not matter.
 */
struct hfd_move_sum {
    int64_t rows;
    uint64_t high, low;
};

/**
 * Writes a row as PostgreSQL's COPY takes it (binary format): the number of columns, then length
 * and bytes of each, with the highest byte first.
 */
void hfd_move_row_format(const struct hfd_move_form *form, const struct hfd_move_row *row,
                         struct hfd_buf *out);

/** Binds a row. */
void hfd_move_bind(struct hfd_stmt *st, const struct hfd_move_form *form,
                   const struct hfd_move_row *row);

#define HFD_MOVE_TABLES_MAX 32

struct hfd_move_progress {
    bool comparing; /* false: copying */
    const char *table;
    size_t table_at, table_count; /* from 1 on */
    int64_t table_rows, rows;     /* so far: of this table, of all */
    int64_t table_total;          /* rows that this table has */
};

struct hfd_move_config {
    const struct hfd_store_place *from, *to;
    /**
     * The source in words without secrets: "sqlite:/var/lib/hyperfleet". A move goes on only
     * under the same name.
     */
    const char *name;
    /** Servers may use the source meanwhile: one snapshot is copied, and nothing is locked. */
    bool online;
    hfd_txn_fn *look; /* runs in the snapshot of the source before the copy; may be NULL */
    void *look_arg;
    void (*progress)(void *ctx, const struct hfd_move_progress *now); /* often; may be NULL */
    void *progress_ctx;
    int64_t batch_rows; /* of a transaction of the target; 0 = 200,000 */
};

struct hfd_move_result {
    struct {
        const char *name;
        struct hfd_move_sum sum;
    } tables[HFD_MOVE_TABLES_MAX];
    size_t count;
    int64_t rows;
    int64_t found_rows; /* of them, those that an earlier run had copied */
    bool moved_before;  /* an earlier run had come to its end: nothing was done but comparing */
};

/**
 * Moves. The source exists; the target is made if absent.
 * HFD_CONFLICT has four reasons. A server uses one of them. The target has other rows. Another move
 * is not finished in the target. The source itself is the target of such a move.
 * @return HFD_OK; HFD_CONFLICT; HFD_CORRUPT (both differ at the end: the target stays marked); or
 * as hfd_db_open and hfd_stmt_step Thread: the command line.
 */
HFD_MUST_CHECK hfd_rc hfd_move(const struct hfd_move_config *config, struct hfd_move_result *out,
                               struct hfd_err *err);

/**
 * Refuses a database into which a move is not finished.
 * @return HFD_OK, HFD_CONFLICT, or as hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_move_check(struct hfd_db *db, struct hfd_err *err);

#endif
