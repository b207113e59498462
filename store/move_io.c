/* See move_io.h. */
#include "store/move_io.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROW_MAX_BYTES ((size_t)256 << 20)
#define PAGE_BYTES (INT64_C(4) << 20)
#define PAGE_ROWS_FIRST 64
#define PAGE_ROWS_MIN 8
#define PAGE_ROWS_MAX 10000

/* ---- sums ---- */

bool hfd_move_sum_eq(const struct hfd_move_sum *a, const struct hfd_move_sum *b)
{
    return a->rows == b->rows && a->high == b->high && a->low == b->low;
}

void hfd_move_sum_add(struct hfd_move_sum *sum, hfd_slice bytes)
{
    const XXH128_hash_t h = XXH3_128bits(bytes.p, bytes.len);

    sum->rows++;
    sum->high += h.high64;
    sum->low += h.low64;
}

/* ---- one row ---- */

static void add_number(struct hfd_buf *out, uint64_t v, size_t bytes)
{
    char text[8];

    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)(v >> (8 * (bytes - 1 - i)));
    hfd_buf_add(out, (hfd_slice){text, bytes});
}

void hfd_move_row_format(const struct hfd_move_form *form, const struct hfd_move_row *row,
                         struct hfd_buf *out)
{
    add_number(out, form->count, 2);
    for (size_t i = 0; i < form->count; i++) {
        const struct hfd_move_value *v = &row->values[i];

        if (v->null) {
            add_number(out, UINT32_MAX, 4);
        } else if (form->columns[i].type == 'n') {
            add_number(out, sizeof(v->number), 4);
            add_number(out, (uint64_t)v->number, sizeof(v->number));
        } else {
            add_number(out, v->bytes.len, 4);
            hfd_buf_add(out, v->bytes);
        }
    }
}

void hfd_move_bind(struct hfd_stmt *st, int at, const struct hfd_move_form *form,
                   const struct hfd_move_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int place = at + (int)i;

        if (values[i].null)
            hfd_stmt_null(st, place);
        else if (form->columns[i].type == 'n')
            hfd_stmt_i64(st, place, values[i].number);
        else if (form->columns[i].type == 't')
            hfd_stmt_text(st, place, values[i].bytes);
        else
            hfd_stmt_blob(st, place, values[i].bytes);
    }
}

/* A value of another type sticks to the statement. @param count  columns, from the first on */
static void read_values(struct hfd_stmt *st, const struct hfd_move_form *form, size_t count,
                        struct hfd_arena *mem, struct hfd_move_value *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct hfd_move_value){.null = hfd_stmt_col_is_null(st, (int)i)};
        if (out[i].null)
            continue;
        if (form->columns[i].type == 'n')
            out[i].number = hfd_stmt_col_i64(st, (int)i);
        else
            out[i].bytes = hfd_stmt_col_text(st, (int)i, mem);
    }
}

/* ---- keys ---- */

int hfd_move_key_cmp(const struct hfd_move_form *form, const struct hfd_move_value *a,
                     const struct hfd_move_value *b)
{
    int order = 0;

    for (size_t i = 0; order == 0 && i < form->table->keys; i++)
        order = form->columns[i].type == 'n'
                    ? (a[i].number > b[i].number) - (a[i].number < b[i].number)
                    : hfd_slice_cmp(a[i].bytes, b[i].bytes);
    return order;
}

hfd_rc hfd_move_last_key(struct hfd_db *db, const struct hfd_move_form *form, struct hfd_arena *mem,
                         struct hfd_move_key *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool more;
    hfd_rc rc = hfd_db_prepare(db, form->last_sql, &st, err);

    out->found = false;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &out->found, err);
    if (rc == HFD_OK && out->found) {
        read_values(st, form, form->table->keys, mem, out->values);
        rc = hfd_stmt_step(st, &more, err);
    }
    hfd_stmt_done(st);
    return rc;
}

/* ---- pages ---- */

void hfd_move_scan_init(struct hfd_move_scan *scan, struct hfd_db *db,
                        const struct hfd_move_form *form)
{
    *scan = (struct hfd_move_scan){.db = db, .form = form, .page_rows = PAGE_ROWS_FIRST};
    hfd_arena_init(&scan->row_mem, ROW_MAX_BYTES);
    hfd_arena_init(&scan->key_mem, ROW_MAX_BYTES);
    /* A first chunk, which stays: most rows fit into it. */
    (void)hfd_arena_alloc(&scan->row_mem, 1);
    scan->row_mark = hfd_arena_mark(&scan->row_mem);
    hfd_buf_init(&scan->bytes, ROW_MAX_BYTES);
}

void hfd_move_scan_fini(struct hfd_move_scan *scan)
{
    hfd_arena_fini(&scan->row_mem);
    hfd_arena_fini(&scan->key_mem);
    hfd_buf_fini(&scan->bytes);
}

/* Copies the key of the last row. */
static hfd_rc keep_key(struct hfd_move_scan *scan, struct hfd_err *err)
{
    hfd_arena_fini(&scan->key_mem);
    scan->key.found = true;
    for (size_t i = 0; i < scan->form->table->keys; i++) {
        scan->key.values[i] = scan->row.values[i];
        if (scan->form->columns[i].type == 'n' || scan->row.values[i].null)
            continue;
        scan->key.values[i].bytes = hfd_arena_dup(&scan->key_mem, scan->row.values[i].bytes);
        if (scan->key.values[i].bytes.p == NULL)
            return hfd_fail_nomem(err, "keep the key of a row");
    }
    return HFD_OK;
}

static hfd_rc open_page(struct hfd_move_scan *scan, struct hfd_stmt **st, struct hfd_err *err)
{
    const char *sql = scan->key.found ? scan->form->next_sql : scan->form->first_sql;
    hfd_rc rc = hfd_db_prepare(scan->db, sql, st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(*st, 1, scan->page_rows);
    if (scan->key.found)
        hfd_move_bind(*st, 2, scan->form, scan->key.values, scan->form->table->keys);
    return HFD_OK;
}

static hfd_rc take_row(struct hfd_move_scan *scan, struct hfd_stmt *st, struct hfd_err *err)
{
    hfd_slice bytes;

    hfd_arena_rewind(&scan->row_mem, scan->row_mark);
    read_values(st, scan->form, scan->form->count, &scan->row_mem, scan->row.values);
    if (hfd_stmt_is_stuck(st)) /* the step says why */
        return HFD_OK;
    hfd_buf_reset(&scan->bytes);
    hfd_move_row_format(scan->form, &scan->row, &scan->bytes);
    return hfd_buf_finish(&scan->bytes, &bytes, err);
}

/* The next page has about PAGE_BYTES, by the rows of this one. */
static void size_page(struct hfd_move_scan *scan, int64_t rows, int64_t bytes)
{
    const int64_t fits = PAGE_BYTES * rows / (bytes + 1) + 1;
    const int64_t grown = scan->page_rows * 4;

    scan->page_rows = fits < grown ? fits : grown;
    if (scan->page_rows > PAGE_ROWS_MAX)
        scan->page_rows = PAGE_ROWS_MAX;
    if (scan->page_rows < PAGE_ROWS_MIN)
        scan->page_rows = PAGE_ROWS_MIN;
}

hfd_rc hfd_move_scan_page(struct hfd_move_scan *scan, hfd_move_row_fn *fn, void *ctx,
                          struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    int64_t rows = 0, bytes = 0;
    bool row = false;
    hfd_rc rc = open_page(scan, &st, err);

    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    while (rc == HFD_OK && row) {
        rc = take_row(scan, st, err);
        if (rc == HFD_OK && !hfd_stmt_is_stuck(st))
            rc = fn(ctx, scan, err);
        rows++;
        bytes += (int64_t)scan->bytes.len;
        if (rc == HFD_OK)
            rc = hfd_stmt_step(st, &row, err);
    }
    hfd_stmt_done(st);
    scan->ended = rows < scan->page_rows;
    if (rc == HFD_OK && rows > 0)
        rc = keep_key(scan, err);
    size_page(scan, rows, bytes);
    return rc;
}
