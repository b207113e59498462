/* See move.h. */
#include "store/move.h"

#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "store/db.h"
#include "store/migrate.h"
#include "store/row_io.h"
#include "store/rows_replica.h"
#include "store/table.h"
#include "store/txn.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>

/* ---- the list of tables ---- */

/* clang-format off */
#define MOVE(of) {.table = &(of), \
    .first = {.table = &(of), .text = "SELECT @cols FROM @table ORDER BY @primary LIMIT ?1"}, \
    .next = {.table = &(of), .text = "SELECT @cols FROM @table WHERE (@primary) > (@behind) ORDER BY @primary LIMIT ?1"}, \
    .last = {.table = &(of), .text = "SELECT @primary FROM @table ORDER BY @last LIMIT 1"}, \
    .insert = {.table = &(of), .text = "INSERT INTO @table (@cols) @values"}, \
    .copy = {.table = &(of), .text = "COPY @table (@cols) FROM STDIN (FORMAT binary)"}}
/* clang-format on */

struct hfd_move_form hfd_move_tables[] = {
    MOVE(hfd_ring_key_table),        MOVE(hfd_fleet_table),         MOVE(hfd_fleet_label_table),
    MOVE(hfd_fleet_condition_table), MOVE(hfd_fleet_count_table),   MOVE(hfd_report_table),
    MOVE(hfd_resource_table),        MOVE(hfd_part_table),          MOVE(hfd_order_table),
    MOVE(hfd_remote_table),          MOVE(hfd_remote_orphan_table), MOVE(hfd_watch_table),
    MOVE(hfd_event_table),           MOVE(hfd_history_table),       MOVE(hfd_history_floor_table),
    MOVE(hfd_tombstone_table),       MOVE(hfd_ended_table),         MOVE(hfd_past_table),
    MOVE(hfd_forecast_table),        MOVE(hfd_token_table),         MOVE(hfd_due_gone_table),
    MOVE(hfd_due_floor_table),       MOVE(hfd_outbox_table),
};
const size_t hfd_move_tables_count = HFD_COUNT_OF(hfd_move_tables);

const char *const hfd_move_staying[] = {"hfd_meta", "hfd_commit", "replica", "leader",
                                        "settings_epoch"};
const size_t hfd_move_staying_count = HFD_COUNT_OF(hfd_move_staying);

/* ---- rows on their way ---- */

/* The primary key of a row. */
struct hfd_move_key {
    bool found;
    struct hfd_move_value values[HFD_MOVE_COLUMNS_MAX];
};

/* Reads a table in pages. Owned by the caller. */
struct hfd_move_scan {
    struct hfd_db *db; /* in a transaction */
    struct hfd_move_form *form;
    struct hfd_move_row row; /* the present one, in row_mem */
    struct hfd_buf bytes;    /* the same, as hfd_move_row_format writes it */
    struct hfd_move_key key; /* of the last row of the last page, in key_mem */
    struct hfd_arena row_mem, key_mem;
    struct hfd_arena_mark row_mark;
    int64_t page_rows; /* of the next page */
    bool ended;
};

/* Takes a row: scan->row, and scan->bytes. Borrowed during the call. */
typedef hfd_rc hfd_move_row_fn(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err);

#define ROW_MAX_BYTES ((size_t)256 << 20)
#define PAGE_BYTES (INT64_C(4) << 20)
#define PAGE_ROWS_FIRST 64
#define PAGE_ROWS_MIN 8
#define PAGE_ROWS_MAX 10000

/* ---- sums ---- */

/* Returns true if both tables have the same rows. */
static bool sum_eq(const struct hfd_move_sum *a, const struct hfd_move_sum *b)
{
    return a->rows == b->rows && a->high == b->high && a->low == b->low;
}

/* @param bytes  from hfd_move_row_format */
static void sum_add(struct hfd_move_sum *sum, hfd_slice bytes)
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
    add_number(out, form->table->count, 2);
    for (size_t i = 0; i < form->table->count; i++) {
        const struct hfd_move_value *v = &row->values[i];

        if (v->null) {
            add_number(out, UINT32_MAX, 4);
        } else if (!hfd_col_is_text(&form->table->cols[i])) {
            add_number(out, sizeof(v->number), 4);
            add_number(out, (uint64_t)v->number, sizeof(v->number));
        } else {
            add_number(out, v->bytes.len, 4);
            hfd_buf_add(out, v->bytes);
        }
    }
}

static void bind_value(struct hfd_stmt *st, int place, const struct hfd_col *col,
                       const struct hfd_move_value *value)
{
    if (value->null)
        hfd_stmt_null(st, place);
    else if (!hfd_col_is_text(col))
        hfd_stmt_i64(st, place, value->number);
    else if (col->type == HFD_COL_TEXT)
        hfd_stmt_text(st, place, value->bytes);
    else
        hfd_stmt_blob(st, place, value->bytes);
}

void hfd_move_bind(struct hfd_stmt *st, const struct hfd_move_form *form,
                   const struct hfd_move_row *row)
{
    for (size_t i = 0; i < form->table->count; i++)
        bind_value(st, (int)i + 1, &form->table->cols[i], &row->values[i]);
}

/* A value of another type sticks to the statement. */
static struct hfd_move_value read_value(struct hfd_stmt *st, int at, const struct hfd_col *col,
                                        struct hfd_arena *mem)
{
    struct hfd_move_value value = {.null = hfd_stmt_col_is_null(st, at)};

    if (!value.null && hfd_col_is_text(col))
        value.bytes = hfd_stmt_col_text(st, at, mem);
    else if (!value.null)
        value.number = hfd_stmt_col_i64(st, at);
    return value;
}

/* ---- keys ---- */

/* Compares the key of a row with another one. Returns less than, equal to, or greater than 0. */
static int move_key_cmp(const struct hfd_move_form *form, const struct hfd_move_row *row,
                        const struct hfd_move_key *key)
{
    int order = 0;
    size_t at;

    for (size_t i = 0; order == 0 && hfd_table_primary(form->table, i, &at); i++) {
        const struct hfd_move_value *a = &row->values[at], *b = &key->values[i];

        order = hfd_col_is_text(&form->table->cols[at])
                    ? hfd_slice_cmp(a->bytes, b->bytes)
                    : (a->number > b->number) - (a->number < b->number);
    }
    return order;
}

/*
 * Reads the highest key that a table has.
 * @param out  in mem
 */
static hfd_rc move_last_key(struct hfd_db *db, struct hfd_move_form *form, struct hfd_arena *mem,
                            struct hfd_move_key *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const char *sql;
    bool more;
    size_t at;
    hfd_rc rc = hfd_query_sql(&form->last, &sql, err);

    out->found = false;
    if (rc == HFD_OK)
        rc = hfd_db_prepare(db, sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &out->found, err);
    if (rc == HFD_OK && out->found) {
        for (size_t i = 0; hfd_table_primary(form->table, i, &at); i++)
            out->values[i] = read_value(st, (int)i, &form->table->cols[at], mem);
        rc = hfd_stmt_step(st, &more, err);
    }
    hfd_stmt_done(st);
    return rc;
}

/* ---- pages ---- */

/* Begins at the first row. @param db  in a transaction; borrowed, as form */
static void move_scan_init(struct hfd_move_scan *scan, struct hfd_db *db,
                           struct hfd_move_form *form)
{
    *scan = (struct hfd_move_scan){.db = db, .form = form, .page_rows = PAGE_ROWS_FIRST};
    hfd_arena_init(&scan->row_mem, ROW_MAX_BYTES);
    hfd_arena_init(&scan->key_mem, ROW_MAX_BYTES);
    /* A first chunk, which stays: most rows fit into it. */
    (void)hfd_arena_alloc(&scan->row_mem, 1);
    scan->row_mark = hfd_arena_mark(&scan->row_mem);
    hfd_buf_init(&scan->bytes, ROW_MAX_BYTES);
}

/* Frees the memory. */
static void move_scan_fini(struct hfd_move_scan *scan)
{
    hfd_arena_fini(&scan->row_mem);
    hfd_arena_fini(&scan->key_mem);
    hfd_buf_fini(&scan->bytes);
}

/* Copies the key of the last row. */
static hfd_rc keep_key(struct hfd_move_scan *scan, struct hfd_err *err)
{
    size_t at;

    hfd_arena_fini(&scan->key_mem);
    scan->key.found = true;
    for (size_t i = 0; hfd_table_primary(scan->form->table, i, &at); i++) {
        struct hfd_move_value *value = &scan->key.values[i];

        *value = scan->row.values[at];
        if (value->null || !hfd_col_is_text(&scan->form->table->cols[at]))
            continue;
        value->bytes = hfd_arena_dup(&scan->key_mem, value->bytes);
        if (value->bytes.p == NULL)
            return hfd_fail_nomem(err, "keep the key of a row");
    }
    return HFD_OK;
}

static hfd_rc open_page(struct hfd_move_scan *scan, struct hfd_stmt **st, struct hfd_err *err)
{
    struct hfd_move_form *form = scan->form;
    const char *sql;
    size_t at;
    hfd_rc rc = hfd_query_sql(scan->key.found ? &form->next : &form->first, &sql, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(scan->db, sql, st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(*st, 1, scan->page_rows);
    for (size_t i = 0; scan->key.found && hfd_table_primary(form->table, i, &at); i++)
        bind_value(*st, (int)i + 2, &form->table->cols[at], &scan->key.values[i]);
    return HFD_OK;
}

static hfd_rc take_row(struct hfd_move_scan *scan, struct hfd_stmt *st, struct hfd_err *err)
{
    hfd_slice bytes;

    hfd_arena_rewind(&scan->row_mem, scan->row_mark);
    for (size_t i = 0; i < scan->form->table->count; i++)
        scan->row.values[i] = read_value(st, (int)i, &scan->form->table->cols[i], &scan->row_mem);
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

/*
 * Reads the next page of rows, and gives each to fn. A page has about 4 MiB.
 * @return HFD_OK (scan->ended: it was the last page), as fn, or as hfd_stmt_step
 */
static hfd_rc move_scan_page(struct hfd_move_scan *scan, hfd_move_row_fn *fn, void *ctx,
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

#define MEM_MAX ((size_t)1 << 20)
#define KEY_MEM_MAX ((size_t)64 << 20)
#define NAME_MAX_BYTES ((size_t)4096)
/* A transaction of the target: long enough that its sync costs little. */
#define BATCH_BYTES (INT64_C(32) << 20)
#define BATCH_ROWS 200000
/* The keys of the marker, as literals of SQL: while it goes on, and when it has ended. */
#define MARK "'move'"
#define MOVED "'moved'"
#define ANALYZE_MAX 96

static const char sql_mark[] = "SELECT value FROM hfd_meta WHERE key = " MARK;
static const char sql_mark_set[] = "INSERT INTO hfd_meta (key, value) VALUES (" MARK ", ?1)";
static const char sql_mark_end[] = "UPDATE hfd_meta SET key = " MOVED " WHERE key = " MARK;
static const char sql_mark_first[] =
    "INSERT INTO hfd_meta (key, value) VALUES (" MARK ", ?1) ON CONFLICT (key) DO NOTHING";
static const char sql_moved[] = "SELECT value FROM hfd_meta WHERE key = " MOVED;
static const char sql_moved_drop[] = "DELETE FROM hfd_meta WHERE key = " MOVED;

struct side {
    const struct hfd_store_place *place;
    struct hfd_db *writer, *reader;
};

struct move {
    const struct hfd_move_config *config;
    struct hfd_move_result *result;
    struct hfd_arena mem;
    struct side from, to;
    /* The table that is copied, or compared. */
    struct hfd_move_progress now;
    struct hfd_move_sum sum;
    struct hfd_move_key last; /* the target has all rows up to this one */
    struct hfd_stmt *insert;
    bool writing;        /* the target is in a transaction */
    bool moved;          /* an earlier run came to its end: both are only compared */
    int64_t rows, bytes; /* of that transaction */
    int64_t batch_rows;
};

/* ---- the marker ---- */

/* @param sql  sql_mark or sql_moved. @param out  in mem; p is NULL when there is none */
static hfd_rc read_mark(struct hfd_db *db, const char *sql, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    *out = HFD_SLICE_NONE;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && row) {
        *out = hfd_stmt_col_text(st, 0, mem);
        rc = hfd_stmt_step(st, &row, err);
    }
    hfd_stmt_done(st);
    return rc;
}

hfd_rc hfd_move_check(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_arena mem;
    hfd_slice mark;
    hfd_rc rc;

    hfd_arena_init(&mem, NAME_MAX_BYTES * 2);
    rc = read_mark(db, sql_mark, &mem, &mark, err);
    if (rc == HFD_OK && mark.p != NULL)
        rc = hfd_fail(err, HFD_CONFLICT,
                      "store: the data of %.*s was not moved into this database to the end. Run "
                      "the same command again, which goes on",
                      (int)(mark.len < 100 ? mark.len : 100), mark.p);
    hfd_arena_fini(&mem);
    return rc;
}

/* Runs a statement. @param text  ?1; p NULL = there is none */
static hfd_rc run(struct hfd_db *db, const char *sql, hfd_slice text, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    if (text.p != NULL)
        hfd_stmt_text(st, 1, text);
    return hfd_stmt_run(st, NULL, err);
}

/* As run, in a transaction of its own. */
static hfd_rc run_alone(struct hfd_db *db, const char *sql, hfd_slice text, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    rc = run(db, sql, text, err);
    return hfd_db_end(db, rc, err);
}

/* @param out  a table that has rows; HFD_MOVE_TABLES_MAX: none has */
static hfd_rc find_rows(struct move *m, size_t *out, struct hfd_err *err)
{
    struct hfd_move_key key;
    hfd_rc rc = HFD_OK;

    *out = HFD_MOVE_TABLES_MAX;
    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++) {
        rc = move_last_key(m->to.writer, &hfd_move_tables[i], &m->mem, &key, err);
        if (rc == HFD_OK && key.found) {
            *out = i;
            break;
        }
    }
    return rc;
}

/* A target with rows is compared if a move of this source has ended in it. Another is refused. */
static hfd_rc begin_mark(struct move *m, struct hfd_err *err)
{
    const hfd_slice name = hfd_slice_of(m->config->name);
    hfd_slice moved;
    size_t at;
    hfd_rc rc = read_mark(m->to.writer, sql_moved, &m->mem, &moved, err);

    if (rc == HFD_OK)
        rc = find_rows(m, &at, err);
    if (rc != HFD_OK)
        return rc;
    if (at < HFD_MOVE_TABLES_MAX) {
        m->moved = hfd_slice_eq(moved, name);
        return m->moved ? HFD_OK
                        : hfd_fail(err, HFD_CONFLICT,
                                   "the target has data already: table %s is not empty. Give an "
                                   "empty database or folder",
                                   hfd_move_tables[at].table->name);
    }
    if (moved.p != NULL)
        rc = run_alone(m->to.writer, sql_moved_drop, HFD_SLICE_NONE, err);
    return rc == HFD_OK ? run_alone(m->to.writer, sql_mark_set, name, err) : rc;
}

static hfd_rc mark_target(struct move *m, struct hfd_err *err)
{
    const hfd_slice name = hfd_slice_of(m->config->name);
    hfd_slice mark;
    hfd_rc rc = read_mark(m->to.writer, sql_mark, &m->mem, &mark, err);

    if (rc != HFD_OK || hfd_slice_eq(mark, name))
        return rc;
    if (mark.p != NULL)
        return hfd_fail(err, HFD_CONFLICT,
                        "the target holds a part of the data of %.*s. Finish that move, or give an "
                        "empty database or folder",
                        (int)(mark.len < 100 ? mark.len : 100), mark.p);
    return begin_mark(m, err);
}

/*
 * PostgreSQL plans by statistics, and autovacuum comes after a minute or later. The comment is no
 * statement for SQLite.
 */
static hfd_rc analyze(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++) {
        char sql[ANALYZE_MAX];

        (void)snprintf(sql, sizeof(sql), "/*postgres: ANALYZE %s*/",
                       hfd_move_tables[i].table->name);
        rc = hfd_db_exec(m->to.writer, sql, err);
    }
    return rc;
}

static hfd_rc end_mark(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    m->result->moved_before = m->moved;
    if (m->moved)
        return rc;
    rc = analyze(m, err);
    return rc == HFD_OK ? run_alone(m->to.writer, sql_mark_end, HFD_SLICE_NONE, err) : rc;
}

/* ---- opening ---- */

/* Marks a database that has no table yet, so that no server takes it while they are made. */
static hfd_rc mark_empty(struct hfd_db *db, hfd_slice name, struct hfd_err *err)
{
    static const char sql_meta[] = "CREATE TABLE IF NOT EXISTS hfd_meta ("
                                   "key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)";
    int64_t version;
    hfd_rc rc = hfd_db_schema_version(db, &version, err);

    if (rc != HFD_OK || version != 0)
        return rc;
    rc = hfd_migrate_check(db, &(struct hfd_schema_check){.list = hfd_migrations}, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_begin(db, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_exec(db, sql_meta, err);
    if (rc == HFD_OK)
        rc = hfd_db_set_schema_version(db, 0, err);
    if (rc == HFD_OK)
        rc = run(db, sql_mark_first, name, err);
    return hfd_db_end(db, rc, err);
}

/*
 * The writer holds the database, and brings its schema up to date. No server uses it.
 * @param mark  of a target; else none
 */
static hfd_rc open_writer(struct side *side, hfd_slice mark, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_open(side->place, HFD_DB_WRITER, &side->writer, err);

    if (rc == HFD_OK && mark.p != NULL)
        rc = mark_empty(side->writer, mark, err);
    if (rc == HFD_OK)
        rc = hfd_migrate(side->writer, hfd_migrations, hfd_migrations_count, err);
    return rc == HFD_OK ? hfd_alone_check(side->writer, INT64_MAX, err) : rc;
}

/* Fixes what is read from now on. */
static hfd_rc open_reader(struct side *side, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_open(side->place, HFD_DB_READER, &side->reader, err);

    return rc == HFD_OK ? hfd_db_begin(side->reader, err) : rc;
}

static hfd_rc look(struct move *m, struct hfd_err *err)
{
    struct hfd_txn tx = {.db = m->from.reader};

    return m->config->look != NULL ? m->config->look(&tx, m->config->look_arg, err) : HFD_OK;
}

static hfd_rc open_from(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = m->config->online ? HFD_OK : open_writer(&m->from, HFD_SLICE_NONE, err);

    if (rc == HFD_OK)
        rc = open_reader(&m->from, err);
    if (rc == HFD_OK)
        rc = hfd_move_check(m->from.reader, err);
    return rc == HFD_OK ? look(m, err) : rc;
}

static hfd_rc open_to(struct move *m, struct hfd_err *err)
{
    const hfd_rc rc = open_writer(&m->to, hfd_slice_of(m->config->name), err);

    return rc == HFD_OK ? mark_target(m, err) : rc;
}

static void close_side(struct side *side)
{
    if (side->reader != NULL)
        hfd_db_rollback(side->reader);
    hfd_db_close(&side->reader);
    hfd_db_close(&side->writer);
}

/* ---- writing ---- */

static hfd_rc begin_batch(struct move *m, struct hfd_move_form *form, struct hfd_err *err)
{
    const char *sql;
    hfd_rc rc = hfd_query_sql(&form->copy, &sql, err);

    if (rc == HFD_OK)
        rc = hfd_db_begin(m->to.writer, err);
    if (rc != HFD_OK)
        return rc;
    m->writing = true;
    m->rows = 0;
    m->bytes = 0;
    return hfd_db_load_begin(m->to.writer, sql, err);
}

static hfd_rc end_batch(struct move *m, struct hfd_err *err)
{
    hfd_rc rc;

    if (!m->writing)
        return HFD_OK;
    rc = hfd_db_load_end(m->to.writer, err);
    if (rc == HFD_OK)
        rc = hfd_db_commit(m->to.writer, err);
    if (rc != HFD_OK)
        return rc;
    m->writing = false;
    return hfd_db_cleanup(m->to.writer, err);
}

static hfd_rc write_row(struct move *m, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    const hfd_slice bytes = hfd_buf_slice(&scan->bytes);
    struct hfd_stmt *st;
    const char *sql;
    hfd_rc rc = m->writing ? HFD_OK : begin_batch(m, scan->form, err);

    if (rc != HFD_OK)
        return rc;
    m->rows++;
    m->bytes += (int64_t)bytes.len;
    if (hfd_db_loads(m->to.writer))
        return hfd_db_load(m->to.writer, bytes, err);
    rc = hfd_query_sql(&scan->form->insert, &sql, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare(m->to.writer, sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_move_bind(st, scan->form, &scan->row);
    return hfd_stmt_run(st, NULL, err);
}

/* ---- the tables ---- */

static hfd_rc sum_row(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    struct move *m = ctx;

    (void)err;
    sum_add(&m->sum, hfd_buf_slice(&scan->bytes));
    return HFD_OK;
}

static hfd_rc copy_row(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    struct move *m = ctx;

    sum_add(&m->sum, hfd_buf_slice(&scan->bytes));
    if (m->moved || (m->last.found && move_key_cmp(scan->form, &scan->row, &m->last) <= 0)) {
        m->result->found_rows++;
        return HFD_OK;
    }
    return write_row(m, scan, err);
}

/* Reads a table to its end. @param db  of the side that is read */
static hfd_rc scan_table(struct move *m, struct hfd_db *db, size_t at, struct hfd_err *err)
{
    const int64_t before = m->now.rows;
    struct hfd_move_scan scan;
    hfd_rc rc = HFD_OK;

    m->sum = (struct hfd_move_sum){0};
    m->now.table = hfd_move_tables[at].table->name;
    m->now.table_at = at + 1;
    if (m->config->progress != NULL)
        rc = hfd_row_count(db, m->now.table, &m->now.table_total, err);
    move_scan_init(&scan, db, &hfd_move_tables[at]);
    while (rc == HFD_OK && !scan.ended) {
        rc = move_scan_page(&scan, m->now.comparing ? sum_row : copy_row, m, err);
        m->now.table_rows = m->sum.rows;
        m->now.rows = before + m->sum.rows;
        if (rc == HFD_OK && (m->rows >= m->batch_rows || m->bytes >= BATCH_BYTES))
            rc = end_batch(m, err);
        if (m->config->progress != NULL)
            m->config->progress(m->config->progress_ctx, &m->now);
    }
    move_scan_fini(&scan);
    return rc;
}

static hfd_rc copy_table(struct move *m, size_t at, struct hfd_err *err)
{
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, KEY_MEM_MAX);
    rc = move_last_key(m->to.writer, &hfd_move_tables[at], &mem, &m->last, err);
    if (rc == HFD_OK)
        rc = scan_table(m, m->from.reader, at, err);
    if (rc == HFD_OK)
        rc = end_batch(m, err);
    hfd_arena_fini(&mem);
    m->result->tables[at].name = hfd_move_tables[at].table->name;
    m->result->tables[at].sum = m->sum;
    return rc;
}

static hfd_rc copy_all(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++)
        rc = copy_table(m, i, err);
    m->result->count = hfd_move_tables_count;
    m->result->rows = m->now.rows;
    return rc;
}

static hfd_rc differ(const struct move *m, size_t at, struct hfd_err *err)
{
    const struct hfd_move_sum *wanted = &m->result->tables[at].sum, *found = &m->sum;
    const char *name = hfd_move_tables[at].table->name;

    if (m->moved)
        return hfd_fail(
            err, HFD_CONFLICT,
            "the target has data already: this source was moved into it, and then table %s "
            "changed (rows %lld and %lld, hash %016llx and %016llx). A target in use "
            "needs nothing more. Empty it to move again",
            name, (long long)wanted->rows, (long long)found->rows, (unsigned long long)wanted->high,
            (unsigned long long)found->high);
    if (wanted->rows != found->rows)
        return hfd_fail(err, HFD_CORRUPT,
                        "table %s has %lld rows in the source and %lld in the target. Empty the "
                        "target, and move again",
                        name, (long long)wanted->rows, (long long)found->rows);
    return hfd_fail(err, HFD_CORRUPT,
                    "the rows of table %s are not the same in the source and in the target: each "
                    "has %lld, with the hashes %016llx%016llx and %016llx%016llx. Empty the "
                    "target, and move again",
                    name, (long long)found->rows, (unsigned long long)wanted->high,
                    (unsigned long long)wanted->low, (unsigned long long)found->high,
                    (unsigned long long)found->low);
}

static hfd_rc compare_all(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = open_reader(&m->to, err);

    m->now = (struct hfd_move_progress){.comparing = true, .table_count = m->now.table_count};
    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++) {
        rc = scan_table(m, m->to.reader, i, err);
        if (rc == HFD_OK && !sum_eq(&m->sum, &m->result->tables[i].sum))
            rc = differ(m, i, err);
    }
    return rc;
}

/* ---- a move ---- */

hfd_rc hfd_move(const struct hfd_move_config *config, struct hfd_move_result *out,
                struct hfd_err *err)
{
    struct move m = {.config = config,
                     .result = out,
                     .from = {.place = config->from},
                     .to = {.place = config->to},
                     .batch_rows = config->batch_rows > 0 ? config->batch_rows : BATCH_ROWS,
                     .now = {.table_count = hfd_move_tables_count}};
    hfd_rc rc;

    HFD_ASSERT(config->name != NULL && config->name[0] != '\0');
    *out = (struct hfd_move_result){0};
    hfd_arena_init(&m.mem, MEM_MAX);
    rc = open_from(&m, err);
    if (rc == HFD_OK)
        rc = open_to(&m, err);
    if (rc == HFD_OK)
        rc = copy_all(&m, err);
    if (m.writing)
        hfd_db_rollback(m.to.writer);
    if (rc == HFD_OK)
        rc = compare_all(&m, err);
    if (rc == HFD_OK && m.from.writer != NULL) /* none came meanwhile */
        rc = hfd_alone_check(m.from.writer, INT64_MAX, err);
    if (rc == HFD_OK)
        rc = end_mark(&m, err);
    close_side(&m.to);
    close_side(&m.from);
    hfd_arena_fini(&m.mem);
    return rc;
}
