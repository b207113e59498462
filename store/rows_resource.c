/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_resource.h"

#include "store/row_cache.h"
#include "store/row_io.h"

/* clang-format off */
#define RESOURCE_COLUMNS \
    "guresid, type, kind, state, incarnation, cluster_id, digest, raw_digest, cookie, op_started_us, op_estimate_us, " \
    "op_deadline_us, fail_code, fail_message, output, secrets, created_us, updated_us, degraded, op, op_size, op_milestones, op_plan"

static const char sql_resource_get[] =
    "SELECT " RESOURCE_COLUMNS " FROM resource WHERE guresid = ?1";
static const char sql_resource_put[] =
    "INSERT INTO resource (" RESOURCE_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"
    " ON CONFLICT (guresid) DO UPDATE SET type = excluded.type, kind = excluded.kind, state = excluded.state,"
    " incarnation = excluded.incarnation, cluster_id = excluded.cluster_id, digest = excluded.digest,"
    " raw_digest = excluded.raw_digest, cookie = excluded.cookie, op_started_us = excluded.op_started_us,"
    " op_estimate_us = excluded.op_estimate_us, op_deadline_us = excluded.op_deadline_us,"
    " fail_code = excluded.fail_code, fail_message = excluded.fail_message, output = excluded.output,"
    " secrets = excluded.secrets, created_us = excluded.created_us, updated_us = excluded.updated_us,"
    " degraded = excluded.degraded, op = excluded.op, op_size = excluded.op_size, op_milestones = excluded.op_milestones,"
    " op_plan = excluded.op_plan";
static const char sql_resource_delete[] =
    "DELETE FROM resource WHERE guresid = ?1";
static const char sql_resource_delete_parts[] =
    "DELETE FROM part WHERE guresid = ?1";
static const char sql_resource_delete_history[] =
    "DELETE FROM history WHERE guresid = ?1";
/* clang-format on */

static void read_resource(struct hfd_row_in *in, void *out)
{
    struct hfd_resource_row *row = out;

    row->guresid = hfd_row_text(in);
    row->type = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->state = hfd_row_enum(in);
    row->incarnation = hfd_row_text(in);
    row->cluster_id = hfd_row_text(in);
    row->digest = hfd_row_text(in);
    row->raw_digest = hfd_row_text(in);
    row->cookie = hfd_row_text(in);
    row->op_started_us = hfd_row_i64(in);
    row->op_estimate_us = hfd_row_i64(in);
    row->op_deadline_us = hfd_row_i64(in);
    row->fail_code = hfd_row_text(in);
    row->fail_message = hfd_row_text(in);
    row->output = hfd_row_text(in);
    row->secrets = hfd_row_blob(in);
    row->created_us = hfd_row_i64(in);
    row->updated_us = hfd_row_i64(in);
    row->degraded = hfd_row_i64(in) != 0;
    row->op = hfd_row_enum(in);
    row->op_size = hfd_row_i64(in);
    row->op_milestones = hfd_row_text(in);
    row->op_plan = hfd_row_text(in);
}

static const struct hfd_row_form resource_form = {"driver resource", read_resource,
                                                  sizeof(struct hfd_resource_row)};

hfd_rc hfd_resource_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                            struct hfd_resource_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_resource_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    return hfd_row_one(st, &resource_form, mem, out, err);
}

hfd_rc hfd_resource_row_recent(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                               struct hfd_resource_row *out, struct hfd_err *err)
{
    hfd_rc rc;

    if (tx->cache != NULL && hfd_row_cache_get(tx->cache, guresid, mem, out))
        return HFD_OK;
    rc = hfd_resource_row_get(tx, guresid, mem, out, err);
    if (rc == HFD_OK && tx->cache != NULL)
        hfd_row_cache_put(tx->cache, out, tx->seq);
    return rc;
}

static void note_change(const struct hfd_txn *tx, hfd_slice guresid)
{
    if (tx->stamps != NULL)
        hfd_row_stamps_change(tx->stamps, guresid);
}

hfd_rc hfd_resource_row_put(struct hfd_txn *tx, const struct hfd_resource_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_resource_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    note_change(tx, row->guresid);
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_text(st, 2, hfd_row_some(row->type));
    hfd_stmt_i64(st, 3, row->kind);
    hfd_stmt_i64(st, 4, row->state);
    hfd_stmt_text(st, 5, hfd_row_some(row->incarnation));
    hfd_stmt_text(st, 6, hfd_row_some(row->cluster_id));
    hfd_stmt_blob(st, 7, hfd_row_some(row->digest));
    hfd_stmt_blob(st, 8, hfd_row_some(row->raw_digest));
    hfd_stmt_text(st, 9, hfd_row_some(row->cookie));
    hfd_stmt_i64(st, 10, row->op_started_us);
    hfd_stmt_i64(st, 11, row->op_estimate_us);
    hfd_stmt_i64(st, 12, row->op_deadline_us);
    hfd_stmt_text(st, 13, hfd_row_some(row->fail_code));
    hfd_stmt_text(st, 14, hfd_row_some(row->fail_message));
    hfd_stmt_text(st, 15, hfd_row_some(row->output));
    hfd_stmt_blob(st, 16, row->secrets);
    hfd_stmt_i64(st, 17, row->created_us);
    hfd_stmt_i64(st, 18, row->updated_us);
    hfd_stmt_i64(st, 19, row->degraded);
    hfd_stmt_i64(st, 20, row->op);
    hfd_stmt_i64(st, 21, row->op_size);
    hfd_stmt_text(st, 22, hfd_row_some(row->op_milestones));
    hfd_stmt_text(st, 23, hfd_row_some(row->op_plan));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_resource_row_delete(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    hfd_rc rc = hfd_row_run(tx, sql_resource_delete_parts, guresid, HFD_SLICE_NONE, err);

    note_change(tx, guresid);
    if (rc == HFD_OK)
        rc = hfd_row_run(tx, sql_resource_delete_history, guresid, HFD_SLICE_NONE, err);
    return rc == HFD_OK ? hfd_row_run(tx, sql_resource_delete, guresid, HFD_SLICE_NONE, err) : rc;
}
