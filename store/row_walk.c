/* See row_walk.h. Rows are found by their keys, a page at a time, so that none holds up the others.
 */
#include "store/row_walk.h"

#include "driver/base/log.h"

#define PAGES_A_COMMIT 20

#define SUMS_MAX 2

/* clang-format off */
/* A page of keys behind (?1, ?2), in their order; a key of one text has an empty second one. */
#define KEYS_1(more) "SELECT @keys, '' FROM @table WHERE @keys > ?1 AND ?2 = ''" more " ORDER BY @keys LIMIT 100"
#define KEYS_2(more) "SELECT @keys FROM @table WHERE (@keys) > (?1, ?2)" more " ORDER BY @keys LIMIT 100"
#define OPEN " AND sum IS NULL"
#define FILLED HFD_SQL_UPDATE, .marks = HFD_COL_FILLED

/* A table whose rows have checksums. */
static struct summed {
    struct hfd_query keys, open, fill; /* open: of rows without a checksum */
} tables[] = {
    {{.table = &hfd_fleet_table, .text = KEYS_1("")}, {.table = &hfd_fleet_table, .text = KEYS_1(OPEN)}, {.table = &hfd_fleet_table, .text = FILLED}},
    {{.table = &hfd_report_table, .text = KEYS_2("")}, {.table = &hfd_report_table, .text = KEYS_2(OPEN)}, {.table = &hfd_report_table, .text = FILLED}},
    {{.table = &hfd_resource_table, .text = KEYS_1("")}, {.table = &hfd_resource_table, .text = KEYS_1(OPEN)}, {.table = &hfd_resource_table, .text = FILLED}},
    {{.table = &hfd_part_table, .text = KEYS_2("")}, {.table = &hfd_part_table, .text = KEYS_2(OPEN)}, {.table = &hfd_part_table, .text = FILLED}},
};
/* clang-format on */
#define TABLES HFD_COUNT_OF(tables)

/* A walk through one table. */
struct walk {
    struct summed *summed;
    const struct hfd_table *table;
    struct hfd_unit_key last; /* its texts are in `at` */
    struct hfd_arena at, page;
    size_t rows;
};

static void walk_init(struct walk *w, struct summed *summed)
{
    *w = (struct walk){
        .summed = summed, .table = summed->keys.table, .last = {HFD_SLICE(""), HFD_SLICE("")}};
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

static hfd_rc read_page(struct walk *w, struct hfd_txn *tx, struct hfd_query *query,
                        struct hfd_row_list *out, struct hfd_err *err)
{
    static const struct hfd_row_form form = {
        .what = "key", .read = read_key, .size = sizeof(struct hfd_unit_key)};
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_query_open(
        tx, query, HFD_ARGS(hfd_arg_text(w->last.first), hfd_arg_text(w->last.second)), &st, err);

    hfd_arena_fini(&w->page);
    return rc == HFD_OK ? hfd_row_all(st, &form, &w->page, out, err) : rc;
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

/* Reads a row. @param in  says what becomes of its checksums */
static hfd_rc read_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                       struct hfd_row_in *in, struct hfd_err *err)
{
    const struct hfd_arg args[] = {hfd_arg_text(key->first), hfd_arg_text(key->second)};
    void *row = hfd_arena_alloc(&w->page, w->table->form.size);
    hfd_rc rc = row != NULL ? hfd_query_open(tx, w->table->get,
                                             (struct hfd_args){args, w->table->keys}, &in->st, err)
                            : hfd_fail_nomem(err, "read a row");

    if (rc != HFD_OK)
        return rc;
    in->form = &w->table->form;
    in->mem = &w->page;
    return hfd_row_one_by(in, row, err);
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
    char what[64];
    struct hfd_meter_at at = {.what = what};
    struct hfd_row_list page = {NULL, 1};
    hfd_rc rc = HFD_OK;

    (void)snprintf(what, sizeof(what), "checking table %s", w->table->name);
    if (findings->meter != NULL)
        rc = hfd_row_count(tx->db, w->table->name, &at.total, err);
    while (rc == HFD_OK && page.count > 0) {
        const struct hfd_unit_key *keys;

        hfd_meter_set(findings->meter, &at);

        rc = read_page(w, tx, &w->summed->keys, &page, err);
        keys = page.rows;
        if (rc == HFD_OK && page.count > 0)
            rc = set_last(w, &keys[page.count - 1], err);
        for (size_t i = 0; rc == HFD_OK && i < page.count; i++)
            rc = check_row(w, tx, &keys[i], findings, err);
        at.done += (int64_t)page.count;
    }
    return rc;
}

hfd_rc hfd_rows_check(struct hfd_txn *tx, struct hfd_row_findings *findings, struct hfd_err *err)
{
    hfd_rc rc = hfd_unit_write(tx, err);

    for (size_t i = 0; rc == HFD_OK && i < TABLES; i++) {
        struct walk w;

        walk_init(&w, &tables[i]);
        rc = check_table(&w, tx, findings, err);
        walk_fini(&w);
    }
    return rc;
}

/* ---- filling ---- */

static hfd_rc fill_row(struct walk *w, struct hfd_txn *tx, const struct hfd_unit_key *key,
                       struct hfd_err *err)
{
    struct hfd_arg args[2 + SUMS_MAX] = {hfd_arg_text(key->first), hfd_arg_text(key->second)};
    int64_t sums[SUMS_MAX];
    struct hfd_row_in in = {.sums = sums};
    size_t count = w->table->keys;
    const hfd_rc rc = read_row(w, tx, key, &in, err);

    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; sums + i < in.sums; i++)
        args[count++] = hfd_arg_i64(sums[i]);
    return hfd_query_run(tx, &w->summed->fill, (struct hfd_args){args, count}, err);
}

static hfd_rc fill_page(struct walk *w, struct hfd_txn *tx, size_t *count, struct hfd_err *err)
{
    const struct hfd_unit_key *keys;
    struct hfd_row_list page = {.count = 0};
    hfd_rc rc = read_page(w, tx, &w->summed->open, &page, err);

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
    rc = hfd_db_end(db, rc, err);
    return rc == HFD_OK ? hfd_db_cleanup(db, err) : rc;
}

hfd_rc hfd_rows_fill(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < TABLES; i++) {
        bool done = false;
        struct walk w;

        walk_init(&w, &tables[i]);
        while (rc == HFD_OK && !done)
            rc = fill_some(&w, db, &done, err);
        if (w.rows > 0)
            HFD_LOG(HFD_LOG_INFO, "checksums of stored rows computed",
                    HFD_LOG_CSTR("table", w.table->name), HFD_LOG_INT("rows", (int64_t)w.rows));
        walk_fini(&w);
    }
    return rc;
}
