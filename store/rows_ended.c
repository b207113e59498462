/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_ended.h"

#include "store/row_io.h"

/* clang-format off */
#define ENDED_COLUMNS \
    "about, id, instance, fleet_id, adapter, kind, name, provider, cluster, counted, verdict, counts, objects"

static const char sql_ended_put[] =
    "INSERT INTO ended (" ENDED_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
    " ON CONFLICT (about, id, instance, fleet_id, adapter) DO UPDATE SET kind = excluded.kind, name = excluded.name,"
    " provider = excluded.provider, cluster = excluded.cluster, counted = excluded.counted,"
    " verdict = excluded.verdict, counts = excluded.counts, objects = excluded.objects";
static const char sql_ended_trim[] =
    "DELETE FROM ended WHERE about = ?1 AND id = ?2 AND instance <"
    " COALESCE((SELECT instance FROM (SELECT DISTINCT instance FROM ended WHERE about = ?1 AND id = ?2) AS kept"
    " ORDER BY instance DESC LIMIT 1 OFFSET ?3), 0)";
static const char sql_ended_list[] =
    "SELECT " ENDED_COLUMNS " FROM ended WHERE about = ?1 AND id = ?2 AND instance = ?3 ORDER BY fleet_id, adapter";
static const char sql_ended_oldest[] =
    "SELECT COALESCE(MIN(instance), 0) FROM ended WHERE about = ?1 AND id = ?2";
static const char sql_ended_delete_all[] =
    "DELETE FROM ended WHERE about = ?1 AND id = ?2";
/* clang-format on */

static void read_ended(struct hfd_row_in *in, void *out)
{
    struct hfd_ended_row *row = out;

    row->about = (enum hfd_history_about)hfd_row_enum(in);
    row->id = hfd_row_text(in);
    row->instance = hfd_row_i64(in);
    row->fleet_id = hfd_row_text(in);
    row->adapter = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->name = hfd_row_text(in);
    row->provider = hfd_row_text(in);
    row->cluster = hfd_row_text(in);
    row->counted = hfd_row_i64(in) != 0;
    row->verdict = hfd_row_i64(in);
    row->counts = hfd_row_text(in);
    row->objects = hfd_row_text(in);
}

static const struct hfd_row_form ended_form = {"report of an ended instance", read_ended,
                                               sizeof(struct hfd_ended_row)};

static hfd_rc put(struct hfd_txn *tx, const struct hfd_ended_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_ended_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->about);
    hfd_stmt_text(st, 2, hfd_row_some(row->id));
    hfd_stmt_i64(st, 3, row->instance);
    hfd_stmt_text(st, 4, hfd_row_some(row->fleet_id));
    hfd_stmt_text(st, 5, hfd_row_some(row->adapter));
    hfd_stmt_i64(st, 6, row->kind);
    hfd_stmt_text(st, 7, hfd_row_some(row->name));
    hfd_stmt_text(st, 8, hfd_row_some(row->provider));
    hfd_stmt_text(st, 9, hfd_row_some(row->cluster));
    hfd_stmt_i64(st, 10, row->counted);
    hfd_stmt_i64(st, 11, row->verdict);
    hfd_stmt_text(st, 12, hfd_row_some(row->counts));
    hfd_stmt_text(st, 13, hfd_row_some(row->objects));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_ended_row_put(struct hfd_txn *tx, const struct hfd_ended_row *row, int64_t keep,
                         struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = put(tx, row, err);

    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_ended_trim, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->about);
    hfd_stmt_text(st, 2, hfd_row_some(row->id));
    hfd_stmt_i64(st, 3, keep - 1);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_ended_row_list(struct hfd_txn *tx, const struct hfd_ended_query *query,
                          struct hfd_arena *mem, struct hfd_ended_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_ended_list, &st, err);

    *out = (struct hfd_ended_list){.count = 0};
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->subject.about);
    hfd_stmt_text(st, 2, hfd_row_some(query->subject.id));
    hfd_stmt_i64(st, 3, query->instance);
    rc = hfd_row_all(st, &ended_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_ended_row_oldest(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                            int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_ended_oldest, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, subject->about);
    hfd_stmt_text(st, 2, hfd_row_some(subject->id));
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_ended_row_delete_all(struct hfd_txn *tx, const struct hfd_history_subject *subject,
                                struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_ended_delete_all, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, subject->about);
    hfd_stmt_text(st, 2, hfd_row_some(subject->id));
    return hfd_stmt_run(st, NULL, err);
}
