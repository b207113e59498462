/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_event.h"

#include "store/row_io.h"

/* clang-format off */
#define EVENT_COLUMNS "fleet_id, seq, first_us, last_us, count, warning, reason, message"

static const char sql_event_find[] =
    "SELECT " EVENT_COLUMNS " FROM event WHERE fleet_id = ?1 AND reason = ?2 AND message = ?3 ORDER BY seq DESC LIMIT 1";
static const char sql_event_add[] =
    "INSERT INTO event (" EVENT_COLUMNS ")"
    " SELECT ?1, COALESCE(MAX(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7 FROM event WHERE fleet_id = ?1";
static const char sql_event_trim[] =
    "DELETE FROM event WHERE fleet_id = ?1 AND seq <= (SELECT MAX(seq) FROM event WHERE fleet_id = ?1) - ?2";
static const char sql_event_repeat[] =
    "UPDATE event SET last_us = ?3, count = ?4 WHERE fleet_id = ?1 AND seq = ?2";
static const char sql_event_count[] =
    "SELECT COUNT(*) FROM event WHERE fleet_id = ?1";
static const char sql_event_list[] =
    "SELECT " EVENT_COLUMNS " FROM event WHERE fleet_id = ?1 ORDER BY seq LIMIT ?2 OFFSET ?3";
static const char sql_event_delete_all[] =
    "DELETE FROM event WHERE fleet_id = ?1";
/* clang-format on */

static void read_event(struct hfd_row_in *in, void *out)
{
    struct hfd_event_row *row = out;

    row->fleet_id = hfd_row_text(in);
    row->seq = hfd_row_i64(in);
    row->first_us = hfd_row_i64(in);
    row->last_us = hfd_row_i64(in);
    row->count = hfd_row_i64(in);
    row->warning = hfd_row_i64(in) != 0;
    row->reason = hfd_row_text(in);
    row->message = hfd_row_text(in);
}

static const struct hfd_row_form event_form = {"event", read_event, sizeof(struct hfd_event_row)};

hfd_rc hfd_event_row_find(struct hfd_txn *tx, const struct hfd_event_row *like,
                          struct hfd_arena *mem, struct hfd_event_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_event_find, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(like->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(like->reason));
    hfd_stmt_text(st, 3, hfd_row_some(like->message));
    return hfd_row_one(st, &event_form, mem, out, err);
}

hfd_rc hfd_event_row_add(struct hfd_txn *tx, const struct hfd_event_row *row, int64_t keep,
                         struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_event_add, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_i64(st, 2, row->first_us);
    hfd_stmt_i64(st, 3, row->last_us);
    hfd_stmt_i64(st, 4, row->count);
    hfd_stmt_i64(st, 5, row->warning);
    hfd_stmt_text(st, 6, hfd_row_some(row->reason));
    hfd_stmt_text(st, 7, hfd_row_some(row->message));
    rc = hfd_stmt_run(st, NULL, err);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_event_trim, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_i64(st, 2, keep);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_event_row_repeat(struct hfd_txn *tx, const struct hfd_event_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_event_repeat, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_i64(st, 2, row->seq);
    hfd_stmt_i64(st, 3, row->last_us);
    hfd_stmt_i64(st, 4, row->count);
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc count_events(struct hfd_txn *tx, hfd_slice fleet_id, int64_t *out,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_event_count, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_event_row_list(struct hfd_txn *tx, const struct hfd_event_query *query,
                          struct hfd_arena *mem, struct hfd_event_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_event_list){.count = 0};
    rc = count_events(tx, query->fleet_id, &out->total, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_event_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(query->fleet_id));
    hfd_stmt_i64(st, 2, query->limit);
    hfd_stmt_i64(st, 3, query->offset);
    rc = hfd_row_all(st, &event_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_event_row_delete_all(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_event_delete_all, fleet_id, HFD_SLICE_NONE, err);
}
