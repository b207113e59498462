/* See row_walk.h. Rows are found by their keys, a page at a time, so that none holds up the others.
 */
#include "store/row_walk.h"

#include "driver/base/log.h"

#define PAGES_A_COMMIT 20

static const struct hfd_sum_table *const tables[] = {&hfd_fleet_sums, &hfd_report_sums,
                                                     &hfd_resource_sums, &hfd_part_sums};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* A walk through one table. */
struct walk {
    const struct hfd_sum_table *table;
    struct hfd_unit_key last; /* its texts are in `at` */
    struct hfd_arena at, page;
    size_t rows;
};

static void walk_init(struct walk *w, const struct hfd_sum_table *table)
{
    *w = (struct walk){.table = table, .last = {HFD_SLICE(""), HFD_SLICE("")}};
    hfd_arena_init(&w->at, HFD_ROW_BYTES_MAX);
    hfd_arena_init(&w->page, HFD_ROW_BYTES_MAX);
}

static void walk_fini(struct walk *w)
{
    hfd_arena_fini(&w->at);
    hfd_arena_fini(&w->page);
}

static void read_key(struct hfd_row_in *in, void *out)
{
    struct hfd_unit_key *key = out;

    key->first = hfd_row_text(in);
    key->second = hfd_row_text(in);
}

static hfd_rc read_page(struct walk *w, struct hfd_txn *tx, const char *sql,
                        struct hfd_row_list *out, struct hfd_err *err)
{
    static const struct hfd_row_form form = {
        .what = "key", .read = read_key, .size = sizeof(struct hfd_unit_key)};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, w->last.first);
    hfd_stmt_text(st, 2, w->last.second);
    hfd_arena_fini(&w->page);
    return hfd_row_all(st, &form, &w->page, out, err);
}

/* Goes on behind this key. */
static hfd_rc set_last(struct walk *w, const struct hfd_unit_key *key, struct hfd_err *err)
{
    hfd_arena_fini(&w->at);
    w->last.first = hfd_arena_dup(&w->at, key->first);
    w->last.second = hfd_arena_dup(&w->at, key->second);
    return w->last.first.p != NULL && w->last.second.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(err, "walk through the rows of a table");
}

static void bind_key(const struct walk *w, struct hfd_stmt *st, const struct hfd_unit_key *key)
{
    hfd_stmt_text(st, 1, key->first);
    if (w->table->key_texts > 1)
        hfd_stmt_text(st, 2, key->second);
}

/* Reads a row. @param in  says what becomes of its checksums */
static hfd_rc read_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                       struct hfd_row_in *in, struct hfd_err *err)
{
    void *row = hfd_arena_alloc(&w->page, w->table->form->size);
    hfd_rc rc = row != NULL ? hfd_db_prepare(tx->db, w->table->get, &in->st, err)
                            : hfd_fail_nomem(err, "read a row");

    if (rc != HFD_OK)
        return rc;
    bind_key(w, in->st, key);
    in->mem = &w->page;
    return hfd_row_one_by(in, w->table->form, row, err);
}

/* ---- checking ---- */

static hfd_rc check_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                        struct hfd_row_findings *findings, struct hfd_err *err)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(&w->page);
    const hfd_rc rc = read_row(w, tx, key, &(struct hfd_row_in){.sums = NULL}, err);
    const bool damaged = rc == HFD_DAMAGED || rc == HFD_NOT_FOUND || rc == HFD_CORRUPT;

    hfd_arena_rewind(&w->page, mark);
    findings->rows++;
    if (damaged)
        findings->found(findings->ctx, err->msg);
    return damaged && !hfd_db_broken(tx->db) ? HFD_OK : rc;
}

static hfd_rc check_table(struct walk *w, struct hfd_txn *tx, struct hfd_row_findings *findings,
                          struct hfd_err *err)
{
    struct hfd_row_list page = {NULL, 1};
    hfd_rc rc = HFD_OK;

    while (rc == HFD_OK && page.count > 0) {
        const struct hfd_unit_key *keys;

        rc = read_page(w, tx, w->table->keys, &page, err);
        keys = page.rows;
        if (rc == HFD_OK && page.count > 0)
            rc = set_last(w, &keys[page.count - 1], err);
        for (size_t i = 0; rc == HFD_OK && i < page.count; i++)
            rc = check_row(w, tx, &keys[i], findings, err);
    }
    return rc;
}

hfd_rc hfd_rows_check(struct hfd_txn *tx, struct hfd_row_findings *findings, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < TABLES; i++) {
        struct walk w;

        walk_init(&w, tables[i]);
        rc = check_table(&w, tx, findings, err);
        walk_fini(&w);
    }
    return rc;
}

/* ---- filling ---- */

static hfd_rc fill_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                       struct hfd_err *err)
{
    int64_t sums[HFD_SUMS_MAX];
    struct hfd_row_in in = {.sums = sums};
    struct hfd_stmt *st;
    hfd_rc rc = read_row(w, tx, key, &in, err);

    if (rc == HFD_OK)
        rc = hfd_row_write(tx, w->table->fill, &st, err);
    if (rc != HFD_OK)
        return rc;
    bind_key(w, st, key);
    for (int i = 0; sums + i < in.sums; i++)
        hfd_stmt_i64(st, w->table->key_texts + 1 + i, sums[i]);
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc fill_page(struct walk *w, struct hfd_txn *tx, size_t *count, struct hfd_err *err)
{
    const struct hfd_unit_key *keys;
    struct hfd_row_list page = {.count = 0};
    hfd_rc rc = read_page(w, tx, w->table->open, &page, err);

    *count = page.count;
    keys = page.rows;
    if (rc == HFD_OK && page.count > 0)
        rc = set_last(w, &keys[page.count - 1], err);
    for (size_t i = 0; rc == HFD_OK && i < page.count; i++) {
        const struct hfd_arena_mark mark = hfd_arena_mark(&w->page);

        rc = fill_row(w, tx, &keys[i], err);
        hfd_arena_rewind(&w->page, mark);
        w->rows++;
    }
    return rc;
}

/* One commit. */
static hfd_rc fill_some(struct walk *w, struct hfd_db *db, bool *done, struct hfd_err *err)
{
    struct hfd_txn tx = {.db = db, .writable = true};
    size_t count = 1;
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    for (int i = 0; rc == HFD_OK && count > 0 && i < PAGES_A_COMMIT; i++)
        rc = fill_page(w, &tx, &count, err);
    *done = count == 0;
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc == HFD_OK ? hfd_db_tidy(db, err) : rc;
}

hfd_rc hfd_rows_fill(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < TABLES; i++) {
        bool done = false;
        struct walk w;

        walk_init(&w, tables[i]);
        while (rc == HFD_OK && !done)
            rc = fill_some(&w, db, &done, err);
        if (w.rows > 0)
            HFD_LOG(HFD_LOG_INFO, "checksums of stored rows computed",
                    HFD_LOG_CSTR("table", w.table->name), HFD_LOG_INT("rows", (int64_t)w.rows));
        walk_fini(&w);
    }
    return rc;
}
