/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_resource.h"

#include "driver/base/check.h"
#include "store/rows_order.h"
#include "store/row_cache.h"
#include "store/row_io.h"
#include "store/row_sum.h"
#include "store/row_walk.h"
#include "store/rows_history.h"
#include "store/rows_part.h"
#include "store/totals.h"
#include "store/unit.h"

/* clang-format off */
#define RESOURCE_COLUMNS \
    "guresid, type, kind, state, incarnation, cluster_id, digest, raw_digest, cookie, op_started_us, op_estimate_us, " \
    "op_deadline_us, fail_code, fail_message, output, secrets, created_us, updated_us, degraded, op, op_size, op_milestones, op_plan, op_waits, op_usual, seq, instance, op_expected_us, sum"

static const char sql_resource_get[] =
    "SELECT " RESOURCE_COLUMNS " FROM resource WHERE guresid = ?1";
static const char sql_resource_at[] =
    "SELECT " RESOURCE_COLUMNS " FROM resource WHERE seq = ?1";
static const char sql_resource_put[] =
    "INSERT INTO resource (" RESOURCE_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)"
    " ON CONFLICT (guresid) DO UPDATE SET type = excluded.type, kind = excluded.kind, state = excluded.state,"
    " incarnation = excluded.incarnation, cluster_id = excluded.cluster_id, digest = excluded.digest,"
    " raw_digest = excluded.raw_digest, cookie = excluded.cookie, op_started_us = excluded.op_started_us,"
    " op_estimate_us = excluded.op_estimate_us, op_deadline_us = excluded.op_deadline_us,"
    " fail_code = excluded.fail_code, fail_message = excluded.fail_message, output = excluded.output,"
    " secrets = excluded.secrets, created_us = excluded.created_us, updated_us = excluded.updated_us,"
    " degraded = excluded.degraded, op = excluded.op, op_size = excluded.op_size, op_milestones = excluded.op_milestones,"
    " op_plan = excluded.op_plan, op_waits = excluded.op_waits, op_usual = excluded.op_usual, instance = excluded.instance, op_expected_us = excluded.op_expected_us, sum = excluded.sum";
static const char sql_resource_of_cluster[] =
    "SELECT " RESOURCE_COLUMNS " FROM resource WHERE cluster_id = ?1";
static const char sql_resource_oldest[] = /* the list of states is that of the index */
    "SELECT COALESCE(MIN(op_started_us), 0) FROM resource WHERE state = ?1 AND state IN (1, 2, 5)";
static const char sql_resource_stuck[] =
    "SELECT COUNT(*) FROM resource WHERE state = ?1 AND state IN (1, 2, 5) AND (state = 5 OR ?2 < op_deadline_us)"
    " AND ?2 - op_started_us > ?3 AND ?2 - op_started_us > 2 * (CASE op_expected_us WHEN 0 THEN op_estimate_us ELSE op_expected_us END - op_started_us)";
static const char sql_resource_delete[] =
    "DELETE FROM resource WHERE guresid = ?1";
static const char sql_resource_keys[] =
    "SELECT guresid, '' FROM resource WHERE guresid > ?1 AND ?2 = '' ORDER BY guresid LIMIT 100";
static const char sql_resource_open[] =
    "SELECT guresid, '' FROM resource WHERE guresid > ?1 AND ?2 = '' AND sum IS NULL ORDER BY guresid LIMIT 100";
static const char sql_resource_fill[] =
    "UPDATE resource SET sum = ?2 WHERE guresid = ?1";
/* clang-format on */

/* The one that may be none, and then the others. A new one goes last: row_sum.h. */
static const size_t resource_texts[] = {
    offsetof(struct hfd_resource_row, secrets),    offsetof(struct hfd_resource_row, guresid),
    offsetof(struct hfd_resource_row, type),       offsetof(struct hfd_resource_row, incarnation),
    offsetof(struct hfd_resource_row, cluster_id), offsetof(struct hfd_resource_row, digest),
    offsetof(struct hfd_resource_row, raw_digest), offsetof(struct hfd_resource_row, cookie),
    offsetof(struct hfd_resource_row, fail_code),  offsetof(struct hfd_resource_row, fail_message),
    offsetof(struct hfd_resource_row, output),     offsetof(struct hfd_resource_row, op_milestones),
    offsetof(struct hfd_resource_row, op_plan),    offsetof(struct hfd_resource_row, op_waits),
    offsetof(struct hfd_resource_row, op_usual),
};
#define RESOURCE_TEXTS (sizeof(resource_texts) / sizeof(resource_texts[0]))

static int64_t sum_of(const struct hfd_resource_row *row)
{
    const int64_t numbers[] = {row->kind,
                               row->state,
                               row->op_started_us,
                               row->op_estimate_us,
                               row->op_deadline_us,
                               row->created_us,
                               row->updated_us,
                               row->degraded,
                               row->op,
                               row->op_size,
                               row->seq,
                               row->instance,
                               row->op_expected_us};

    return hfd_row_sum(&(struct hfd_row_values){row, resource_texts, RESOURCE_TEXTS, numbers,
                                                sizeof(numbers) / sizeof(numbers[0])});
}

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
    row->op_waits = hfd_row_text(in);
    row->op_usual = hfd_row_text(in);
    row->seq = hfd_row_i64(in);
    row->instance = hfd_row_i64(in);
    row->op_expected_us = hfd_row_i64(in);
    hfd_row_check(in, sum_of(row),
                  &(struct hfd_row_name){"resource", row->guresid, HFD_SLICE_NONE});
}

static const struct hfd_row_form resource_form = {"driver resource", read_resource,
                                                  sizeof(struct hfd_resource_row)};

/* ---- how rows are kept ---- */

static struct hfd_unit_key key_of(const void *row)
{
    return (struct hfd_unit_key){((const struct hfd_resource_row *)row)->guresid, HFD_SLICE_NONE};
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err);

static const struct hfd_unit_form kept_form = {
    .table = HFD_UNIT_RESOURCE,
    .what = "driver resource",
    .size = sizeof(struct hfd_resource_row),
    .texts = resource_texts,
    .text_count = RESOURCE_TEXTS,
    .none_count = 1, /* secrets */
    .key_of = key_of,
    .write = write_kept,
};

#define CHANGE_PUT 1u

/* ---- rows ---- */

hfd_rc hfd_resource_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                            struct hfd_resource_row *out, struct hfd_err *err)
{
    const struct hfd_unit_key key = {guresid, HFD_SLICE_NONE};
    const struct hfd_kept *kept = hfd_unit_find(tx, &kept_form, &key);
    struct hfd_stmt *st;
    hfd_rc rc;

    if (kept != NULL)
        return hfd_unit_give(kept, mem, out, err);
    rc = hfd_db_prepare(tx->db, sql_resource_get, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    rc = hfd_row_one(st, &resource_form, mem, out, err);
    if (rc == HFD_OK)
        (void)hfd_unit_keep(tx, &kept_form, out);
    else if (rc == HFD_NOT_FOUND)
        (void)hfd_unit_keep_absent(tx, &kept_form, &key);
    return rc;
}

hfd_rc hfd_resource_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                           struct hfd_resource_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = tx->writable ? hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err) : HFD_OK;

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_resource_at, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, seq);
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

static hfd_rc write_row(struct hfd_txn *tx, const struct hfd_resource_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_resource_put, &st, err);

    if (rc != HFD_OK)
        return rc;
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
    hfd_stmt_text(st, 24, hfd_row_some(row->op_waits));
    hfd_stmt_text(st, 25, hfd_row_some(row->op_usual));
    hfd_stmt_i64(st, 26, row->seq);
    hfd_stmt_i64(st, 27, row->instance);
    hfd_stmt_i64(st, 28, row->op_expected_us);
    hfd_stmt_i64(st, 29, sum_of(row));
    return hfd_stmt_run(st, NULL, err);
}

static hfd_rc write_kept(struct hfd_txn *tx, const struct hfd_kept *kept, struct hfd_err *err)
{
    return write_row(tx, kept->row, err);
}

hfd_rc hfd_resource_row_put(struct hfd_txn *tx, const struct hfd_resource_row *row,
                            struct hfd_err *err)
{
    struct hfd_resource_row own;
    struct hfd_kept *kept;
    hfd_rc rc;

    if (row->seq == 0) {
        own = *row;
        rc = hfd_history_next_seq(tx, &own.seq, err);
        if (rc != HFD_OK)
            return rc;
        row = &own;
    }
    kept = hfd_unit_keep(tx, &kept_form, row);
    note_change(tx, row->guresid);
    if (kept == NULL)
        return write_row(tx, row, err);
    hfd_unit_change(tx, kept, CHANGE_PUT);
    return HFD_OK;
}

hfd_rc hfd_resource_row_count(struct hfd_txn *tx, const struct hfd_resource_row *row, int state,
                              int64_t by, struct hfd_err *err)
{
    const char *slash = row->type.len > 0 ? memchr(row->type.p, '/', row->type.len) : NULL;
    const size_t org = slash != NULL ? (size_t)(slash + 1 - row->type.p) : 0;
    const char digit = (char)('0' + state);

    HFD_ASSERT(state >= 0 && state <= 9);
    return hfd_totals_add(
        tx,
        &(struct hfd_count_key){
            row->kind, HFD_COUNT_RESOURCE, {row->type.p + org, row->type.len - org}, {&digit, 1}},
        by, err);
}

hfd_rc hfd_resource_row_oldest(struct hfd_txn *tx, int state, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_resource_oldest, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, state);
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_resource_row_stuck(struct hfd_txn *tx, const struct hfd_resource_stuck *query,
                              int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_resource_stuck, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->state);
    hfd_stmt_i64(st, 2, query->now_us);
    hfd_stmt_i64(st, 3, query->after_us);
    return hfd_row_number(st, 0, out, err);
}

/* Written at once: a row that is added later is another one. */
hfd_rc hfd_resource_row_delete(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    const struct hfd_unit_key key = {guresid, HFD_SLICE_NONE};
    hfd_rc rc = hfd_part_row_delete_all(tx, guresid, err);

    note_change(tx, guresid);
    (void)hfd_unit_keep_absent(tx, &kept_form, &key);
    if (rc == HFD_OK)
        rc = hfd_order_row_delete(tx, guresid, err);
    return rc == HFD_OK ? hfd_row_run(tx, sql_resource_delete, guresid, HFD_SLICE_NONE, err) : rc;
}

hfd_rc hfd_resource_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                              struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_resource_row *rows;
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_RESOURCE, err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_resource_of_cluster, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(from));
    rc = hfd_row_all(st, &resource_form, mem, &list, err);
    rows = list.rows;
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        rows[i].cluster_id = to;
        rc = hfd_resource_row_put(tx, &rows[i], err);
    }
    return rc;
}

hfd_rc hfd_resource_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key,
                               struct hfd_err *err)
{
    return hfd_db_follow(tx->db, &(struct hfd_db_follow){via, sql_resource_get}, key, err);
}

/* ---- checksums ---- */

const struct hfd_sum_table hfd_resource_sums = {"resource",
                                                &resource_form,
                                                sql_resource_keys,
                                                sql_resource_open,
                                                sql_resource_get,
                                                sql_resource_fill,
                                                1};
