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

/* ---- checking ---- */

static hfd_rc check_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                        struct hfd_row_findings *findings, struct hfd_err *err)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(&w->page);
    const hfd_rc rc = w->table->check(tx, key, &w->page, err);
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

        rc = w->table->fill(tx, &keys[i], &w->page, err);
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
