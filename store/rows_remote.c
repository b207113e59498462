/* See rows_remote.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_remote.h"

#include "driver/base/arena.h"
#include "store/row_io.h"
#include "store/unit.h"

/* ---- work ---- */

#define REMOTE_COL(type, member) HFD_COL(struct hfd_remote_row, type, #member, member)

/* clang-format off */
static const struct hfd_col remote_cols[] = {
    {REMOTE_COL(TEXT, guresid)}, {REMOTE_COL(INT, goal)}, {REMOTE_COL(INT, watched), .max = HFD_WATCHED_IDLY}, {REMOTE_COL(I64, due_us)}, {REMOTE_COL(I64, checked_us)},
    {REMOTE_COL(I64, full_us)}, {REMOTE_COL(I64, unsure_us)}, {REMOTE_COL(I64, behind_us)}, {REMOTE_COL(I64, tries)}, {REMOTE_COL(I64, refusals)},
    {REMOTE_COL(BOOL, later_names)}, {REMOTE_COL(TEXT, error)},
};
const struct hfd_table hfd_remote_table = {
    HFD_TABLE("upstream", struct hfd_remote_row, "remote work", remote_cols), .keys = 1,
    HFD_TABLE_GET(hfd_remote_table), HFD_TABLE_PUT(hfd_remote_table)};

static struct hfd_query sql_remote_drop = {.table = &hfd_remote_table, .text =
    "DELETE FROM upstream WHERE goal = 4 AND checked_us < ?1"};
static struct hfd_query sql_remote_due = {.table = &hfd_remote_table, .text =
    "SELECT @cols FROM upstream WHERE watched = ?1 AND due_us <= ?2 ORDER BY due_us LIMIT ?3"};
static struct hfd_query sql_remote_next = {.table = &hfd_remote_table, .text =
    "SELECT due_us FROM upstream WHERE watched = ?1 AND due_us > ?2 ORDER BY due_us LIMIT 1"};
static struct hfd_query sql_remote_count = {.table = &hfd_remote_table, .text =
    "SELECT count(*) FROM upstream WHERE watched IN (0, 1) AND due_us <= ?1"};
static struct hfd_query sql_remote_postpone = {.table = &hfd_remote_table, .text =
    "UPDATE upstream SET due_us = ?2 WHERE watched = 1 AND due_us <= ?1"};
static struct hfd_query sql_remote_part = {.table = &hfd_remote_table, .text =
    "UPDATE upstream SET due_us = ?2, tries = tries + 1, watched = CASE WHEN tries > 0 THEN 0 ELSE 1 END"
    " WHERE watched = 1 AND due_us <= ?1"};
static struct hfd_query sql_remote_unwatch = {.table = &hfd_remote_table, .text =
    "UPDATE upstream SET watched = 0 WHERE watched = 1 AND due_us <= ?1"};
static struct hfd_query sql_remote_wake = {.table = &hfd_remote_table, .text =
    "UPDATE upstream SET due_us = ?2 WHERE due_us > ?2 AND guresid IN"
    " (SELECT part.guresid FROM part JOIN fleet ON fleet.id = part.fleet_id WHERE fleet.owner_id = ?1)", .after = HFD_UNIT_ALL, .mixed = true};
/* clang-format on */

hfd_rc hfd_remote_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                          struct hfd_remote_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, hfd_remote_table.get, HFD_ARGS(hfd_arg_text(guresid)), mem, out, err);
}

hfd_rc hfd_remote_row_put(struct hfd_txn *tx, const struct hfd_remote_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_remote_table.put, row, NULL, err);
}

hfd_rc hfd_remote_row_drop_absent(struct hfd_txn *tx, int64_t before_us, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_remote_drop, HFD_ARGS(hfd_arg_i64(before_us)), err);
}

hfd_rc hfd_remote_row_postpone(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                               struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_remote_postpone,
                         HFD_ARGS(hfd_arg_i64(until_us), hfd_arg_i64(due_us)), err);
}

hfd_rc hfd_remote_row_part(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                           struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_remote_part, HFD_ARGS(hfd_arg_i64(until_us), hfd_arg_i64(due_us)),
                         err);
}

hfd_rc hfd_remote_row_unwatch(struct hfd_txn *tx, int64_t until_us, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_remote_unwatch, HFD_ARGS(hfd_arg_i64(until_us)), err);
}

hfd_rc hfd_remote_row_due(struct hfd_txn *tx, const struct hfd_remote_due *query,
                          struct hfd_arena *mem, struct hfd_remote_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_remote_due,
                          HFD_ARGS(hfd_arg_i64(query->watched), hfd_arg_i64(query->now_us),
                                   hfd_arg_i64(query->limit)),
                          mem, out, err);
}

hfd_rc hfd_remote_row_next(struct hfd_txn *tx, const struct hfd_remote_due *query, int64_t *out,
                           struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_remote_next,
                            HFD_ARGS(hfd_arg_i64(query->watched), hfd_arg_i64(query->now_us)),
                            INT64_MAX, out, err);
}

hfd_rc hfd_remote_row_count(struct hfd_txn *tx, int64_t now_us, int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_remote_count, HFD_ARGS(hfd_arg_i64(now_us)), 0, out, err);
}

hfd_rc hfd_remote_row_wake(struct hfd_txn *tx, hfd_slice cluster_id, int64_t now_us,
                           struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_remote_wake,
                         HFD_ARGS(hfd_arg_text(cluster_id), hfd_arg_i64(now_us)), err);
}

/* ---- orphans ---- */

#define STRAY_COL(type, member) HFD_COL(struct hfd_remote_orphan_row, type, #member, member)
#define ORPHAN(type, member) HFD_COL(struct hfd_remote_orphan_row, type, #member, orphan.member)

/* clang-format off */
static const struct hfd_col orphan_cols[] = {
    {ORPHAN(TEXT, id)}, {ORPHAN(KIND, kind)}, {ORPHAN(TEXT, owner_id)}, {HFD_COL(struct hfd_remote_orphan_row, TEXT, "guresid", orphan.label)},
    {ORPHAN(TEXT, name)}, {ORPHAN(I64, generation)}, {ORPHAN(BOOL, ready)}, {ORPHAN(I64, created_us)}, {ORPHAN(I64, deleted_us)},
    {ORPHAN(TEXT, created_by)}, {STRAY_COL(I64, seen_us)}, {ORPHAN(I64, wanted_us)}, {STRAY_COL(I64, due_us)}, {STRAY_COL(I64, tries)},
    {ORPHAN(TEXT, error)},
};
const struct hfd_table hfd_remote_orphan_table = {
    HFD_TABLE("stray", struct hfd_remote_orphan_row, "orphan", orphan_cols), .keys = 1,
    HFD_TABLE_GET(hfd_remote_orphan_table), HFD_TABLE_PUT(hfd_remote_orphan_table), HFD_TABLE_REMOVE(hfd_remote_orphan_table)};

static struct hfd_query sql_stray_delete_of = {.table = &hfd_remote_orphan_table, .text =
    "DELETE FROM stray WHERE owner_id = ?1 AND owner_id <> ''"};
static struct hfd_query sql_stray_list = {.table = &hfd_remote_orphan_table, .text =
    "SELECT @cols FROM stray WHERE kind = ?1 ORDER BY guresid, created_us, id LIMIT ?2"};
static struct hfd_query sql_stray_due = {.table = &hfd_remote_orphan_table, .text =
    "SELECT @cols FROM stray WHERE due_us <= ?1 ORDER BY due_us LIMIT ?2"};
static struct hfd_query sql_stray_next = {.table = &hfd_remote_orphan_table, .text =
    "SELECT due_us FROM stray WHERE due_us > ?1 ORDER BY due_us LIMIT 1"};
static struct hfd_query sql_stray_unseen = {.table = &hfd_remote_orphan_table, .text =
    "UPDATE stray SET due_us = ?3 WHERE kind = ?1 AND seen_us < ?2 AND due_us > ?3"};
/* clang-format on */

hfd_rc hfd_remote_orphan_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                 struct hfd_remote_orphan_row *out, struct hfd_err *err)
{
    return hfd_query_one(tx, hfd_remote_orphan_table.get, HFD_ARGS(hfd_arg_text(id)), mem, out,
                         err);
}

hfd_rc hfd_remote_orphan_row_put(struct hfd_txn *tx, const struct hfd_remote_orphan_row *row,
                                 struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_remote_orphan_table.put, row, NULL, err);
}

hfd_rc hfd_remote_orphan_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_remote_orphan_table.remove, HFD_ARGS(hfd_arg_text(id)), err);
}

hfd_rc hfd_remote_orphan_row_delete_of(struct hfd_txn *tx, hfd_slice owner_id, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_stray_delete_of, HFD_ARGS(hfd_arg_text(owner_id)), err);
}

hfd_rc hfd_remote_orphan_row_list(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                  struct hfd_arena *mem, struct hfd_remote_orphan_list *out,
                                  struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_stray_list,
                          HFD_ARGS(hfd_arg_i64(query->kind), hfd_arg_i64(query->limit)), mem, out,
                          err);
}

hfd_rc hfd_remote_orphan_row_due(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                 struct hfd_arena *mem, struct hfd_remote_orphan_list *out,
                                 struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_stray_due,
                          HFD_ARGS(hfd_arg_i64(query->now_us), hfd_arg_i64(query->limit)), mem, out,
                          err);
}

hfd_rc hfd_remote_orphan_row_next(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                  int64_t *out, struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_stray_next, HFD_ARGS(hfd_arg_i64(query->now_us)), INT64_MAX,
                            out, err);
}

hfd_rc hfd_remote_orphan_row_unseen(struct hfd_txn *tx, enum hfd_kind kind, int64_t since_us,
                                    int64_t due_us, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_stray_unseen,
                         HFD_ARGS(hfd_arg_i64(kind), hfd_arg_i64(since_us), hfd_arg_i64(due_us)),
                         err);
}
