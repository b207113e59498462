/* See rows_due.h. */
#include "store/rows_due.h"

#include "store/unit.h"
#include "store/row_io.h"
#include "store/rows_history.h"

#define DUE_COL(type, member) HFD_COL(struct hfd_due_row, type, #member, member)

/* clang-format off */
static const struct hfd_col due_gone_cols[] = {
    {DUE_COL(I64, seq)}, {DUE_COL(TEXT, id)}, {DUE_COL(KIND, kind)}, {DUE_COL(TEXT, owner_id)}, {DUE_COL(I64, generation)},
    {DUE_COL(TEXT, labels)}, {DUE_COL(I64, at_us)}, {DUE_COL(I64, gone_us)}, {DUE_COL(TEXT, trace)},
};
const struct hfd_table hfd_due_gone_table = {
    HFD_TABLE("due_gone", struct hfd_due_row, "removed resource that is due", due_gone_cols), .keys = 1};

struct floor {
    int64_t one, seq;
};
static const struct hfd_col due_floor_cols[] = {
    {HFD_COL(struct floor, I64, "one", one)}, {HFD_COL(struct floor, I64, "seq", seq)},
};
const struct hfd_table hfd_due_floor_table = {
    HFD_TABLE("due_floor", struct floor, "floor of what is due", due_floor_cols), .keys = 1};

#define FLEET HFD_UNIT_BIT(HFD_UNIT_FLEET) /* their numbers are written before they are read */
/* Each side is in order, so that the first rows of each are enough. */
static struct hfd_query sql_due_list = {.table = &hfd_due_gone_table, .mixed = true, .after = FLEET, .text =
    "SELECT * FROM (SELECT * FROM (SELECT due_seq, id, kind, owner_id, generation, labels, updated_us, 0, trace FROM fleet"
    " WHERE due_seq > 0 AND due_seq > ?1 AND due_seq < ?2 ORDER BY due_seq LIMIT ?3) AS there"
    " UNION ALL SELECT * FROM (SELECT @cols FROM due_gone WHERE seq > ?1 AND seq < ?2 ORDER BY seq LIMIT ?3) AS gone)"
    " AS both_of_them ORDER BY 1 LIMIT ?3"};
static const char sql_due_newest[] =
    "SELECT MAX(n) FROM (SELECT MAX(due_seq) AS n FROM fleet WHERE due_seq > 0 UNION ALL SELECT MAX(seq) FROM due_gone"
    " UNION ALL SELECT seq FROM due_floor WHERE one = 1 UNION ALL SELECT 0) AS ends";
static struct hfd_query sql_due_last = {.table = &hfd_due_gone_table, .mixed = true, .after = FLEET, .text = sql_due_newest};
static struct hfd_query sql_due_floor = {.table = &hfd_due_floor_table, .text = "SELECT seq FROM due_floor WHERE one = 1"};
static struct hfd_query sql_due_raise_floor = {.table = &hfd_due_floor_table, .text =
    "INSERT INTO due_floor (one, seq) VALUES (1, ?1)"
    " ON CONFLICT (one) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > due_floor.seq"};
static struct hfd_query sql_due_keep = {.table = &hfd_due_gone_table, .text = "INSERT INTO @table (@cols) @values"};
#define OLD "gone_us < ?1 AND (gone_us < ?2 OR seq <=" \
    " (SELECT COALESCE(MIN(o.seq), 9223372036854775807) FROM outbox_target AS o WHERE o.stream = 0))"
static struct hfd_query sql_due_old = {.table = &hfd_due_gone_table, .mixed = true, .text =
    "SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM due_gone WHERE " OLD " ORDER BY gone_us LIMIT ?3) AS oldest"};
static struct hfd_query sql_due_forget = {.table = &hfd_due_gone_table, .mixed = true, .text =
    "DELETE FROM due_gone WHERE " OLD " AND seq <= ?3"};
_Static_assert(HFD_STREAM_RECONCILE == 0, "OLD names it");
/* clang-format on */

hfd_rc hfd_due_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_number_next(tx, tx->unit != NULL ? &tx->unit->dues : NULL, sql_due_newest, out, err);
}

hfd_rc hfd_due_keep(struct hfd_txn *tx, const struct hfd_fleet_row *row, int64_t gone_us,
                    struct hfd_err *err)
{
    const struct hfd_due_row gone = {
        .seq = row->due_seq,
        .id = row->id,
        .kind = row->kind,
        .owner_id = row->owner_id,
        .generation = row->generation,
        .labels = row->labels,
        .at_us = row->updated_us,
        .gone_us = gone_us,
        .trace = row->trace,
    };

    return row->due_seq > 0 ? hfd_query_write(tx, &sql_due_keep, &gone, NULL, err) : HFD_OK;
}

hfd_rc hfd_due_forget(struct hfd_txn *tx, const struct hfd_due_old *old, bool *more,
                      struct hfd_err *err)
{
    const struct hfd_arg before = hfd_arg_i64(old->before_us), held = hfd_arg_i64(old->held_us);
    int64_t seq;
    hfd_rc rc = hfd_query_number(tx, &sql_due_old, HFD_ARGS(before, held, hfd_arg_i64(old->limit)),
                                 0, &seq, err);

    *more = rc == HFD_OK && seq > 0;
    if (!*more)
        return rc;
    rc = hfd_query_run(tx, &sql_due_raise_floor, HFD_ARGS(hfd_arg_i64(seq)), err);
    return rc == HFD_OK
               ? hfd_query_run(tx, &sql_due_forget, HFD_ARGS(before, held, hfd_arg_i64(seq)), err)
               : rc;
}

/* @param end  of hfd_number_end */
static hfd_rc last_before(struct hfd_txn *tx, int64_t end, int64_t *out, struct hfd_err *err)
{
    *out = end - 1;
    return end == INT64_MAX ? hfd_query_number(tx, &sql_due_last, HFD_ARGS_NONE, 0, out, err)
                            : HFD_OK;
}

hfd_rc hfd_due_last(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    int64_t end;
    const hfd_rc rc = hfd_number_end(tx, &end, err);

    return rc == HFD_OK ? last_before(tx, end, out, err) : rc;
}

/* Gives a number that no change has reached. It is never lower than one given before. */
static hfd_rc read_bound(struct hfd_txn *tx, int64_t after, int64_t end, int64_t *out,
                         struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    *out = end;
    if (end == INT64_MAX) {
        rc = last_before(tx, end, out, err);
        (*out)++;
    } else if (after >= end) {
        rc = hfd_number_bound(tx, out, err);
    }
    return rc;
}

hfd_rc hfd_due_list(struct hfd_txn *tx, int64_t after, int64_t limit, struct hfd_arena *mem,
                    struct hfd_due_page *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    int64_t end, bound;
    hfd_rc rc = hfd_number_end(tx, &end, err);

    *out = (struct hfd_due_page){.last = after};
    if (rc == HFD_OK)
        rc = hfd_query_number(tx, &sql_due_floor, HFD_ARGS_NONE, 0, &out->floor, err);
    if (rc == HFD_OK)
        rc = read_bound(tx, after, end, &bound, err);
    if (rc != HFD_OK)
        return rc;
    if (after >= bound)
        out->floor = INT64_MAX; /* of a store that was lost */
    rc = hfd_query_all(tx, &sql_due_list,
                       HFD_ARGS(hfd_arg_i64(after), hfd_arg_i64(end), hfd_arg_i64(limit)), mem,
                       &list, err);
    if (rc != HFD_OK)
        return rc;
    out->rows = list.rows;
    out->count = list.count;
    if (list.count > 0)
        out->last = out->rows[list.count - 1].seq;
    return HFD_OK;
}
