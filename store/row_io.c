#include "store/row_io.h"

#include "driver/base/check.h"

#define KEY_SHOWN 64  /* characters of a key in a message */
#define ROWS_FIRST 8u /* rows that a list has room for at first */

hfd_slice hfd_row_text(struct hfd_row_in *in)
{
    const hfd_slice text = hfd_stmt_col_text(in->st, in->at++, in->mem);

    in->bad = in->bad || (text.p == NULL && !hfd_stmt_is_stuck(in->st));
    return text;
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

/* Gives a damaged key as a line of ASCII. */
static const char *shown_key(hfd_slice key, char out[KEY_SHOWN + 1])
{
    size_t n = 0;

    for (; n < key.len && n < KEY_SHOWN; n++)
        out[n] = key.p[n] >= ' ' && key.p[n] <= '~' && key.p[n] != '\'' ? key.p[n] : '?';
    out[n] = '\0';
    return out;
}

static hfd_rc fail_damaged(const struct hfd_row_name *name, struct hfd_err *err)
{
    char first[KEY_SHOWN + 1], second[KEY_SHOWN + 1];

    return hfd_fail(err, HFD_DAMAGED,
                    "the stored row '%s%s%s' of table '%s' is damaged: its checksum does not "
                    "match. `doctor` lists all damaged rows; restore a backup",
                    shown_key(name->first, first), name->second.len > 0 ? "/" : "",
                    shown_key(name->second, second), name->table);
}

/* Stepping on also gives the errors that reading the columns of the row before has met. */
static hfd_rc next_row(struct hfd_row_in *in, const char *what, bool *row, struct hfd_err *err)
{
    hfd_rc rc = hfd_stmt_step(in->st, row, err);

    if (in->bad && in->name.table != NULL && (rc == HFD_OK || rc == HFD_CORRUPT))
        rc = fail_damaged(&in->name, err);
    else if (rc == HFD_OK && in->bad)
        rc =
            hfd_fail(err, HFD_CORRUPT,
                     "store: a stored %s cannot be read: a value is missing or out of range", what);
    in->at = 0;
    return rc;
}

hfd_rc hfd_row_one_by(struct hfd_row_in *in, const struct hfd_row_form *form, void *row,
                      struct hfd_err *err)
{
    bool there;
    bool more = false;
    hfd_rc rc = next_row(in, form->what, &there, err);

    if (rc == HFD_OK && !there)
        rc = hfd_fail(err, HFD_NOT_FOUND, "no such %s is stored", form->what);
    if (rc == HFD_OK) {
        form->read(in, row);
        rc = next_row(in, form->what, &more, err);
    }
    HFD_ASSERT(!more);
    hfd_stmt_done(in->st);
    return rc;
}

hfd_rc hfd_row_one(struct hfd_stmt *st, const struct hfd_row_form *form, struct hfd_arena *mem,
                   void *row, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .mem = mem};

    return hfd_row_one_by(&in, form, row, err);
}

static void read_number(struct hfd_row_in *in, void *out)
{
    *(int64_t *)out = hfd_row_i64(in);
}

hfd_rc hfd_row_number(struct hfd_stmt *st, int64_t none, int64_t *out, struct hfd_err *err)
{
    static const struct hfd_row_form form = {"number", read_number, sizeof(int64_t)};
    const hfd_rc rc = hfd_row_one(st, &form, NULL, out, err);

    if (rc != HFD_OK)
        *out = none;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* A list while it is read. */
struct growing {
    const struct hfd_row_form *form;
    struct hfd_arena *mem;
    char *rows;
    size_t count, cap;
};

/* Arena memory is not given back, so doubling costs as much again as the rows. */
static void *next_place(struct growing *g)
{
    if (g->count == g->cap) {
        const size_t wanted = g->cap == 0 ? ROWS_FIRST : g->cap * 2;
        char *wider = hfd_arena_array(g->mem, wanted, g->form->size);

        if (wider == NULL)
            return NULL;
        if (g->count != 0)
            memcpy(wider, g->rows, g->count * g->form->size);
        g->rows = wider;
        g->cap = wanted;
    }
    return g->rows + g->count * g->form->size;
}

hfd_rc hfd_row_all(struct hfd_stmt *st, const struct hfd_row_form *form, struct hfd_arena *mem,
                   struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_row_in in = {.st = st, .mem = mem};
    struct growing g = {.form = form, .mem = mem};
    bool row;
    hfd_rc rc;

    while ((rc = next_row(&in, form->what, &row, err)) == HFD_OK && row) {
        void *place = next_place(&g);

        if (place == NULL) {
            rc = hfd_fail(err, HFD_NOMEM, "store: out of memory for a list of %zu", g.count);
            break;
        }
        form->read(&in, place);
        g.count++;
    }
    hfd_stmt_done(st);
    *out = rc == HFD_OK ? (struct hfd_row_list){g.rows, g.count} : (struct hfd_row_list){NULL, 0};
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
