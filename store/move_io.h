/*
 * Rows on their way from one database to another: reading them in the order of keys, summing them
 * up, writing them. Thread: that of the connection.
 */
#ifndef HFD_STORE_MOVE_IO_H
#define HFD_STORE_MOVE_IO_H

#include "driver/base/buf.h"
#include "store/db.h"
#include "store/move_table.h"

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

/** Returns true if both tables have the same rows. */
bool hfd_move_sum_eq(const struct hfd_move_sum *a, const struct hfd_move_sum *b);

/**
 * Writes a row as PostgreSQL's COPY takes it (binary format): the number of columns, then length
 * and bytes of each, with the highest byte first.
 */
void hfd_move_row_format(const struct hfd_move_form *form, const struct hfd_move_row *row,
                         struct hfd_buf *out);
/** @param bytes  from hfd_move_row_format */
void hfd_move_sum_add(struct hfd_move_sum *sum, hfd_slice bytes);

/** The key of a row: the first values of the row. */
struct hfd_move_key {
    bool found;
    struct hfd_move_value values[HFD_MOVE_COLUMNS_MAX];
};

/** Reads a table in pages. Owned by the caller. */
struct hfd_move_scan {
    struct hfd_db *db; /* in a transaction */
    const struct hfd_move_form *form;
    struct hfd_move_row row; /* the present one, in row_mem */
    struct hfd_buf bytes;    /* the same, as hfd_move_row_format writes it */
    struct hfd_move_key key; /* of the last row of the last page, in key_mem */
    struct hfd_arena row_mem, key_mem;
    struct hfd_arena_mark row_mark;
    int64_t page_rows; /* of the next page */
    bool ended;
};

/** Begins at the first row. @param db  in a transaction; borrowed, as form */
void hfd_move_scan_init(struct hfd_move_scan *scan, struct hfd_db *db,
                        const struct hfd_move_form *form);
/** Frees the memory. */
void hfd_move_scan_fini(struct hfd_move_scan *scan);

/** Takes a row: scan->row, and scan->bytes. Borrowed during the call. */
typedef hfd_rc hfd_move_row_fn(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err);
/**
 * Reads the next page of rows, and gives each to fn. A page has about 4 MiB.
 * @return HFD_OK (scan->ended: it was the last page), as fn, or as hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_move_scan_page(struct hfd_move_scan *scan, hfd_move_row_fn *fn, void *ctx,
                                         struct hfd_err *err);

/**
 * Reads the highest key that a table has.
 * @param out  in mem
 */
HFD_MUST_CHECK hfd_rc hfd_move_last_key(struct hfd_db *db, const struct hfd_move_form *form,
                                        struct hfd_arena *mem, struct hfd_move_key *out,
                                        struct hfd_err *err);
/** Compares keys in their order. Returns less than, equal to, or greater than 0. */
int hfd_move_key_cmp(const struct hfd_move_form *form, const struct hfd_move_value *a,
                     const struct hfd_move_value *b);

/** Binds a row, or its first `count` values, from parameter `at` on. */
void hfd_move_bind(struct hfd_stmt *st, int at, const struct hfd_move_form *form,
                   const struct hfd_move_value *values, size_t count);

#endif
