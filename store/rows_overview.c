/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_overview.h"

#include "store/row_io.h"

#define ROW_MEM_BYTES ((size_t)64 * 1024 * 1024) /* of one row */

#define OVERVIEW_COL(type, member) HFD_COL(struct hfd_overview_row, type, "r." #member, member)

/* clang-format off */
static const struct hfd_col overview_cols[] = {
    {OVERVIEW_COL(I64, seq)}, {OVERVIEW_COL(TEXT, guresid)}, {OVERVIEW_COL(TEXT, type)}, {OVERVIEW_COL(KIND, kind)}, {OVERVIEW_COL(INT, state)}, {OVERVIEW_COL(BOOL, degraded)},
    {OVERVIEW_COL(I64, op_started_us)}, {OVERVIEW_COL(I64, op_expected_us)}, {OVERVIEW_COL(I64, op_estimate_us)}, {OVERVIEW_COL(I64, op_deadline_us)}, {OVERVIEW_COL(I64, updated_us)},
    {OVERVIEW_COL(TEXT, cause)}, {OVERVIEW_COL(I64, drift_count)}, {OVERVIEW_COL(TEXT, name)}, {OVERVIEW_COL(TEXT, labels)},
};
static const struct hfd_table overview = {
    HFD_TABLE(NULL, struct hfd_overview_row, "driver resource", overview_cols)};
/* The columns of the resource itself. */
static const struct hfd_table overview_listed = {
    HFD_TABLE_OF(NULL, struct hfd_overview_row, "driver resource", overview_cols, HFD_COUNT_OF(overview_cols) - 2)};
static const struct hfd_col due_cols[] = {
    {HFD_COL(struct hfd_deadline_row, TEXT, "guresid", guresid)}, {HFD_COL(struct hfd_deadline_row, I64, "op_deadline_us", deadline_us)},
};
static const struct hfd_table due = {HFD_TABLE("resource", struct hfd_deadline_row, "deadline", due_cols)};
static const struct hfd_col repair_cols[] = {
    {HFD_COL(struct hfd_deadline_row, TEXT, "guresid", guresid)}, {HFD_COL(struct hfd_deadline_row, I64, "repair_us", deadline_us)},
};
static const struct hfd_table repairs = {HFD_TABLE("resource", struct hfd_deadline_row, "repair", repair_cols)};
#define OVERVIEW_AFTER HFD_UNIT_BIT(HFD_UNIT_RESOURCE)

#define MAIN_PART(column) \
    "COALESCE((SELECT p." column " FROM part p WHERE p.guresid = r.guresid AND p.kind = r.kind ORDER BY p.guresid, p.fleet_id LIMIT 1), '')"
#define NO_NAME "'', ''"
#define NAME    MAIN_PART("name") ", ''"
#define BOTH    MAIN_PART("name") ", COALESCE((SELECT f.labels FROM fleet f WHERE f.id = " MAIN_PART("fleet_id") "), '')"
#define SELECT(what) "SELECT @cols, " what " FROM resource r"

/* A walk binds the texts and numbers that its statement has. */
static struct {
    struct hfd_query sql;
    bool from, label;
} ways[] = {
    [HFD_OVERVIEW_BARE]    = {{.table = &overview_listed, .text = SELECT(NO_NAME), .after = HFD_UNIT_ALL}, false, false},
    [HFD_OVERVIEW_NAMED]   = {{.table = &overview_listed, .text = SELECT(NAME), .after = HFD_UNIT_ALL}, false, false},
    [HFD_OVERVIEW_ALL]     = {{.table = &overview_listed, .text = SELECT(BOTH), .after = HFD_UNIT_ALL}, false, false},
    [HFD_OVERVIEW_LABEL]   = {{.table = &overview_listed, .text = "SELECT @cols, p.name, f.labels FROM fleet_label l CROSS JOIN fleet f CROSS JOIN part p"
                              " CROSS JOIN resource r WHERE l.kind IN (1, 2) AND l.key = ?1 AND l.value = ?2 AND f.seq = l.fleet_seq"
                              " AND p.fleet_id = f.id AND p.kind = f.kind AND r.guresid = p.guresid AND r.kind = p.kind", .after = HFD_UNIT_ALL}, false, true},
    [HFD_OVERVIEW_TROUBLE] = {{.table = &overview_listed, .text = SELECT(NO_NAME) " WHERE r.state IN (1, 2, 5) UNION ALL " SELECT(NO_NAME) " WHERE r.state = 4 UNION ALL "
                              SELECT(NO_NAME) " WHERE r.state = 3 AND r.degraded = 1", .after = HFD_UNIT_ALL}, false, false},
    [HFD_OVERVIEW_QUIET]   = {{.table = &overview_listed, .text = SELECT(NO_NAME) " WHERE r.seq > ?1 AND r.state = 3 AND r.degraded = 0 ORDER BY r.seq", .after = HFD_UNIT_ALL}, true, false},
    [HFD_OVERVIEW_DRIFTED] = {{.table = &overview_listed, .text = SELECT(NO_NAME) " WHERE r.drift_count > 0", .after = HFD_UNIT_ALL}, false, false},
    [HFD_OVERVIEW_NEWEST]  = {{.table = &overview_listed, .text = SELECT(NO_NAME) " WHERE r.seq < ?1 ORDER BY r.seq DESC", .after = HFD_UNIT_ALL}, true, false},
};
static struct hfd_query sql_overview_count = {.table = &overview, .text = "SELECT COUNT(*) FROM resource", .after = OVERVIEW_AFTER};
static struct hfd_query sql_drifted_count = {.table = &overview, .text =
    "SELECT COUNT(*) FROM resource WHERE drift_count > 0 AND state = 3", .after = OVERVIEW_AFTER};
static struct hfd_query sql_due_list = {.table = &due, .text =
    "SELECT @cols FROM resource WHERE state IN (1, 2, 5) AND op_deadline_us > ?1 AND state <> 5 ORDER BY op_deadline_us LIMIT ?2",
    .after = OVERVIEW_AFTER};
static struct hfd_query sql_repair_list = {.table = &repairs, .text =
    "SELECT @cols FROM resource WHERE repair_us > 0 ORDER BY repair_us LIMIT ?1", .after = OVERVIEW_AFTER};
/* clang-format on */

/* Steps through the rows, each in memory of its own. */
static hfd_rc see_all(struct hfd_stmt *st, const struct hfd_overview_walk *walk,
                      struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(mem);
    bool more;
    hfd_rc rc = hfd_stmt_step(st, &more, err);

    while (rc == HFD_OK && more) {
        struct hfd_row_in in = {.st = st, .form = &overview.form, .mem = mem};
        struct hfd_overview_row row;

        hfd_table_read(&in, &row);
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
    hfd_rc rc = hfd_query_open(tx, &ways[walk->way].sql, HFD_ARGS_NONE, &st, err);

    if (rc != HFD_OK)
        return rc;
    if (ways[walk->way].from)
        hfd_stmt_i64(st, 1, walk->from);
    if (ways[walk->way].label) {
        hfd_stmt_text(st, 1, walk->key);
        hfd_stmt_text(st, 2, walk->value);
    }
    hfd_arena_init(&mem, ROW_MEM_BYTES);
    rc = see_all(st, walk, &mem, err);
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return rc;
}

hfd_rc hfd_overview_row_count(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_overview_count, HFD_ARGS_NONE, 0, out, err);
}

hfd_rc hfd_drifted_row_count(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_drifted_count, HFD_ARGS_NONE, 0, out, err);
}

hfd_rc hfd_deadline_row_list(struct hfd_txn *tx, const struct hfd_deadline_query *query,
                             struct hfd_arena *mem, struct hfd_deadline_list *out,
                             struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_due_list,
                          HFD_ARGS(hfd_arg_i64(query->after_us), hfd_arg_i64(query->limit)), mem,
                          out, err);
}

hfd_rc hfd_repair_row_list(struct hfd_txn *tx, int64_t limit, struct hfd_arena *mem,
                           struct hfd_deadline_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc =
        hfd_query_all(tx, &sql_repair_list, HFD_ARGS(hfd_arg_i64(limit)), mem, &list, err);

    *out = (struct hfd_deadline_list){list.rows, list.count};
    return rc;
}
