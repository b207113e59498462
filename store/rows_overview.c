/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_overview.h"

#include "store/row_io.h"
#include "store/unit.h"

#define ROW_MEM_BYTES ((size_t)64 * 1024 * 1024) /* of one row */

/* clang-format off */
#define COLUMNS \
    "r.seq, r.guresid, r.type, r.kind, r.state, r.degraded, r.op_started_us, r.op_expected_us, r.op_estimate_us, " \
    "r.op_deadline_us, r.updated_us, "
#define MAIN_PART(column) \
    "COALESCE((SELECT p." column " FROM part p WHERE p.guresid = r.guresid AND p.kind = r.kind ORDER BY p.guresid, p.fleet_id LIMIT 1), '')"
#define NO_NAME "'', ''"
#define NAME    MAIN_PART("name") ", ''"
#define BOTH    MAIN_PART("name") ", COALESCE((SELECT f.labels FROM fleet f WHERE f.id = " MAIN_PART("fleet_id") "), '')"
#define SELECT(what) "SELECT " COLUMNS what " FROM resource r"

/* A walk binds the texts and numbers that its statement has. */
static const struct {
    const char *sql;
    bool from, label;
} ways[] = {
    [HFD_OVERVIEW_BARE]    = {SELECT(NO_NAME), false, false},
    [HFD_OVERVIEW_NAMED]   = {SELECT(NAME), false, false},
    [HFD_OVERVIEW_ALL]     = {SELECT(BOTH), false, false},
    [HFD_OVERVIEW_LABEL]   = {"SELECT " COLUMNS "p.name, f.labels FROM fleet_label l CROSS JOIN fleet f CROSS JOIN part p"
                              " CROSS JOIN resource r WHERE l.kind IN (1, 2) AND l.key = ?1 AND l.value = ?2 AND f.seq = l.fleet_seq"
                              " AND p.fleet_id = f.id AND p.kind = f.kind AND r.guresid = p.guresid AND r.kind = p.kind", false, true},
    [HFD_OVERVIEW_TROUBLE] = {SELECT(NO_NAME) " WHERE r.state IN (1, 2, 5) UNION ALL " SELECT(NO_NAME) " WHERE r.state = 4 UNION ALL "
                              SELECT(NO_NAME) " WHERE r.state = 3 AND r.degraded = 1", false, false},
    [HFD_OVERVIEW_QUIET]   = {SELECT(NO_NAME) " WHERE r.seq > ?1 AND r.state = 3 AND r.degraded = 0 ORDER BY r.seq", true, false},
    [HFD_OVERVIEW_NEWEST]  = {SELECT(NO_NAME) " WHERE r.seq < ?1 ORDER BY r.seq DESC", true, false},
};
static const char sql_overview_count[] =
    "SELECT COUNT(*) FROM resource";
static const char sql_due_list[] =
    "SELECT guresid, op_deadline_us FROM resource WHERE state IN (1, 2, 5) AND op_deadline_us > ?1 AND state <> 5"
    " ORDER BY op_deadline_us LIMIT ?2";
/* clang-format on */

static void read_overview(struct hfd_row_in *in, struct hfd_overview_row *row)
{
    row->seq = hfd_row_i64(in);
    row->guresid = hfd_row_text(in);
    row->type = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->state = hfd_row_enum(in);
    row->degraded = hfd_row_i64(in) != 0;
    row->op_started_us = hfd_row_i64(in);
    row->op_expected_us = hfd_row_i64(in);
    row->op_estimate_us = hfd_row_i64(in);
    row->op_deadline_us = hfd_row_i64(in);
    row->updated_us = hfd_row_i64(in);
    row->name = hfd_row_text(in);
    row->labels = hfd_row_text(in);
}

/* Steps through the rows, each in memory of its own. */
static hfd_rc see_all(struct hfd_stmt *st, const struct hfd_overview_walk *walk,
                      struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(mem);
    bool more;
    hfd_rc rc = hfd_stmt_step(st, &more, err);

    while (rc == HFD_OK && more) {
        struct hfd_row_in in = {.st = st, .mem = mem};
        struct hfd_overview_row row;

        read_overview(&in, &row);
        if (in.bad)
            return hfd_fail(err, HFD_CORRUPT,
                            "store: a driver resource has a value of a wrong type");
        if (!hfd_stmt_is_stuck(st) && !walk->see(walk->ctx, &row))
            return HFD_OK;
        hfd_arena_rewind(mem, mark);
        rc = hfd_stmt_step(st, &more, err);
    }
    return rc;
}

hfd_rc hfd_overview_row_walk(struct hfd_txn *tx, const struct hfd_overview_walk *walk,
                             struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_stmt *st;
    hfd_rc rc = tx->writable ? hfd_unit_write(tx, err) : HFD_OK;

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, ways[walk->way].sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    if (ways[walk->way].from)
        hfd_stmt_i64(st, 1, walk->from);
    if (ways[walk->way].label) {
        hfd_stmt_text(st, 1, hfd_row_some(walk->key));
        hfd_stmt_text(st, 2, hfd_row_some(walk->value));
    }
    hfd_arena_init(&mem, ROW_MEM_BYTES);
    rc = see_all(st, walk, &mem, err);
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return rc;
}

hfd_rc hfd_overview_row_count(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = tx->writable ? hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err) : HFD_OK;

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_overview_count, &st, err);
    return rc == HFD_OK ? hfd_row_number(st, 0, out, err) : rc;
}

/* ---- deadlines ---- */

static void read_due(struct hfd_row_in *in, void *out)
{
    struct hfd_due_row *row = out;

    row->guresid = hfd_row_text(in);
    row->deadline_us = hfd_row_i64(in);
}

static const struct hfd_row_form due_form = {"deadline", read_due, sizeof(struct hfd_due_row)};

hfd_rc hfd_due_row_list(struct hfd_txn *tx, const struct hfd_due_query *query,
                        struct hfd_arena *mem, struct hfd_due_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = tx->writable ? hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err) : HFD_OK;

    *out = (struct hfd_due_list){.count = 0};
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_due_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->after_us);
    hfd_stmt_i64(st, 2, query->limit);
    rc = hfd_row_all(st, &due_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}
