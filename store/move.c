/* See move.h. */
#include "store/move.h"

#include "driver/base/check.h"
#include "store/alone.h"
#include "store/migrate.h"
#include "store/txn.h"

#include <stdio.h>

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
    struct hfd_move_form *forms;
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
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc;
}

/* @param out  a table that has rows; HFD_MOVE_TABLES_MAX: none has */
static hfd_rc find_rows(struct move *m, size_t *out, struct hfd_err *err)
{
    struct hfd_move_key key;
    hfd_rc rc = HFD_OK;

    *out = HFD_MOVE_TABLES_MAX;
    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++) {
        rc = hfd_move_last_key(m->to.writer, &m->forms[i], &m->mem, &key, err);
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
                                   hfd_move_tables[at].name);
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

        (void)snprintf(sql, sizeof(sql), "/*postgres: ANALYZE %s*/", hfd_move_tables[i].name);
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

static hfd_rc make_forms(struct move *m, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(hfd_move_tables_count <= HFD_MOVE_TABLES_MAX);
    m->forms = hfd_arena_array(&m->mem, hfd_move_tables_count, sizeof(*m->forms));
    if (m->forms == NULL)
        return hfd_fail_nomem(err, "prepare the tables of a move");
    for (size_t i = 0; rc == HFD_OK && i < hfd_move_tables_count; i++)
        rc = hfd_move_form_make(&hfd_move_tables[i], &m->mem, &m->forms[i], err);
    return rc;
}

/* Marks a database that has no table yet, so that no server takes it while they are made. */
static hfd_rc mark_empty(struct hfd_db *db, hfd_slice name, struct hfd_err *err)
{
    static const char sql_meta[] = "CREATE TABLE IF NOT EXISTS hfd_meta ("
                                   "key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)";
    int64_t version;
    hfd_rc rc = hfd_db_schema_version(db, &version, err);

    if (rc != HFD_OK || version != 0)
        return rc;
    rc = hfd_db_begin(db, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_exec(db, sql_meta, err);
    if (rc == HFD_OK)
        rc = hfd_db_set_schema_version(db, 0, err);
    if (rc == HFD_OK)
        rc = run(db, sql_mark_first, name, err);
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc;
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

static hfd_rc begin_batch(struct move *m, const struct hfd_move_form *form, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(m->to.writer, err);

    if (rc != HFD_OK)
        return rc;
    m->writing = true;
    m->rows = 0;
    m->bytes = 0;
    return hfd_db_load_begin(m->to.writer, form->copy_sql, err);
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
    return hfd_db_tidy(m->to.writer, err);
}

static hfd_rc write_row(struct move *m, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    const hfd_slice bytes = hfd_buf_slice(&scan->bytes);
    struct hfd_stmt *st;
    hfd_rc rc = m->writing ? HFD_OK : begin_batch(m, scan->form, err);

    if (rc != HFD_OK)
        return rc;
    m->rows++;
    m->bytes += (int64_t)bytes.len;
    if (hfd_db_loads(m->to.writer))
        return hfd_db_load(m->to.writer, bytes, err);
    rc = hfd_db_prepare(m->to.writer, scan->form->insert_sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_move_bind(st, 1, scan->form, scan->row.values, scan->form->count);
    return hfd_stmt_run(st, NULL, err);
}

/* ---- the tables ---- */

static hfd_rc sum_row(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    struct move *m = ctx;

    (void)err;
    hfd_move_sum_add(&m->sum, hfd_buf_slice(&scan->bytes));
    return HFD_OK;
}

static hfd_rc copy_row(void *ctx, const struct hfd_move_scan *scan, struct hfd_err *err)
{
    struct move *m = ctx;

    hfd_move_sum_add(&m->sum, hfd_buf_slice(&scan->bytes));
    if (m->moved ||
        (m->last.found && hfd_move_key_cmp(scan->form, scan->row.values, m->last.values) <= 0)) {
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
    m->now.table = hfd_move_tables[at].name;
    m->now.table_at = at + 1;
    hfd_move_scan_init(&scan, db, &m->forms[at]);
    while (rc == HFD_OK && !scan.ended) {
        rc = hfd_move_scan_page(&scan, m->now.comparing ? sum_row : copy_row, m, err);
        m->now.table_rows = m->sum.rows;
        m->now.rows = before + m->sum.rows;
        if (rc == HFD_OK && (m->rows >= m->batch_rows || m->bytes >= BATCH_BYTES))
            rc = end_batch(m, err);
        if (m->config->progress != NULL)
            m->config->progress(m->config->progress_ctx, &m->now);
    }
    hfd_move_scan_fini(&scan);
    return rc;
}

static hfd_rc copy_table(struct move *m, size_t at, struct hfd_err *err)
{
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, KEY_MEM_MAX);
    rc = hfd_move_last_key(m->to.writer, &m->forms[at], &mem, &m->last, err);
    if (rc == HFD_OK)
        rc = scan_table(m, m->from.reader, at, err);
    if (rc == HFD_OK)
        rc = end_batch(m, err);
    hfd_arena_fini(&mem);
    m->result->tables[at].name = hfd_move_tables[at].name;
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
    const char *name = hfd_move_tables[at].name;

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
        if (rc == HFD_OK && !hfd_move_sum_eq(&m->sum, &m->result->tables[i].sum))
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
    rc = make_forms(&m, err);
    if (rc == HFD_OK)
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
