/* What the row functions share. See rows_int.h. Thread: that of the transaction. */
#include "store/rows_int.h"

#include "driver/base/check.h"

#define ROWS_FIRST 8u /* rows that a list has room for at first */

hfd_slice hfd_row_text(struct hfd_row_in *in)
{
    int at = in->at++;

    if (hfd_stmt_col_is_null(in->st, at)) {
        in->bad = true;
        return HFD_SLICE_NONE;
    }
    return hfd_stmt_col_text(in->st, at, in->mem);
}

hfd_slice hfd_row_blob(struct hfd_row_in *in)
{
    return hfd_stmt_col_text(in->st, in->at++, in->mem);
}

int64_t hfd_row_i64(struct hfd_row_in *in)
{
    return hfd_stmt_col_i64(in->st, in->at++);
}

enum hfd_kind hfd_row_kind(struct hfd_row_in *in)
{
    int64_t v = hfd_row_i64(in);

    if (v != HFD_KIND_CLUSTER && v != HFD_KIND_NODEPOOL) {
        in->bad = true;
        return HFD_KIND_CLUSTER;
    }
    return (enum hfd_kind)v;
}

int hfd_row_enum(struct hfd_row_in *in)
{
    const int64_t v = hfd_row_i64(in);

    in->bad = in->bad || v < 0 || v > INT32_MAX;
    return (int)v;
}

void hfd_row_orphan(struct hfd_row_in *in, struct hfd_orphan_row *row)
{
    *row = (struct hfd_orphan_row){.error = HFD_SLICE("")};
    row->id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->owner_id = hfd_row_text(in);
    row->label = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->ready = hfd_row_i64(in) != 0;
    row->created_us = hfd_row_i64(in);
    row->deleted_us = hfd_row_i64(in);
    row->created_by = hfd_row_text(in);
}

/* Also tells, by stepping on, of what went wrong while the columns of the row before were read. */
static hfd_rc next_row(struct hfd_row_in *in, const char *what, bool *row, struct hfd_err *err)
{
    hfd_rc rc = hfd_stmt_step(in->st, row, err);

    if (rc == HFD_OK && in->bad)
        rc =
            hfd_fail(err, HFD_CORRUPT,
                     "store: a stored %s cannot be read: a value is missing or out of range", what);
    in->at = 0;
    return rc;
}

hfd_rc hfd_rows_check(struct hfd_txn *tx, struct hfd_err *err)
{
    return hfd_db_check(tx->db, err);
}

hfd_rc hfd_row_one(struct hfd_stmt *st, struct hfd_arena *mem, const char *what, hfd_row_read *read,
                   void *row, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .mem = mem};
    bool there;
    bool more = false;
    hfd_rc rc = next_row(&in, what, &there, err);

    if (rc == HFD_OK && !there)
        rc = hfd_fail(err, HFD_NOT_FOUND, "no such %s is stored", what);
    if (rc == HFD_OK) {
        read(&in, row);
        rc = next_row(&in, what, &more, err);
    }
    HFD_ASSERT(!more);
    hfd_stmt_done(st);
    return rc;
}

static void read_number(struct hfd_row_in *in, void *out)
{
    *(int64_t *)out = hfd_row_i64(in);
}

hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out, struct hfd_err *err)
{
    const hfd_rc rc = hfd_row_one(st, NULL, "number", read_number, out, err);

    if (rc != HFD_OK)
        *out = none;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Arena memory is not given back, so doubling costs as much again as the rows. */
static void *grow(struct hfd_arena *mem, void *rows, size_t count, size_t row_size, size_t *cap)
{
    size_t wanted = *cap == 0 ? ROWS_FIRST : *cap * 2;
    void *wider = hfd_arena_array(mem, wanted, row_size);

    if (wider == NULL)
        return NULL;
    if (count != 0)
        memcpy(wider, rows, count * row_size);
    *cap = wanted;
    return wider;
}

hfd_rc hfd_row_all(struct hfd_stmt *st, struct hfd_arena *mem, const char *what, hfd_row_read *read,
                   size_t row_size, void **rows, size_t *count, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .mem = mem};
    char *list = NULL;
    size_t cap = 0;
    size_t n = 0;
    bool row;
    hfd_rc rc;

    while ((rc = next_row(&in, what, &row, err)) == HFD_OK && row) {
        if (n == cap) {
            char *wider = grow(mem, list, n, row_size, &cap);

            if (wider == NULL) {
                rc = hfd_fail(err, HFD_NOMEM, "store: out of memory for a list of %zu", n);
                break;
            }
            list = wider;
        }
        read(&in, list + n * row_size);
        n++;
    }
    hfd_stmt_done(st);
    *rows = rc == HFD_OK ? list : NULL;
    *count = rc == HFD_OK ? n : 0;
    return rc;
}

hfd_rc hfd_row_write(struct hfd_txn *tx, const char *sql, struct hfd_stmt **out,
                     struct hfd_err *err)
{
    *out = NULL;
    HFD_ASSERT(tx->writable);
    return hfd_db_prepare(tx->db, sql, out, err);
}

hfd_rc hfd_row_run(struct hfd_txn *tx, const char *sql, hfd_slice first, hfd_slice second,
                   struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(first));
    if (second.p != NULL)
        hfd_stmt_text(st, 2, second);
    return hfd_stmt_run(st, NULL, err);
}
