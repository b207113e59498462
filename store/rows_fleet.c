/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_fleet.h"

#include "store/row_cache.h"
#include "store/row_io.h"
#include "store/totals.h"

/* clang-format off */
#define FLEET_COLUMNS_GIVEN \
    "id, kind, owner_id, name, generation, spec, labels, conditions, ready, ready_seen_us, told, created_us, updated_us, deleted_us, " \
    "created_by, updated_by, deleted_by"
#define FLEET_COLUMNS "seq, " FLEET_COLUMNS_GIVEN

static const char sql_fleet_get[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE id = ?1";
static const char sql_fleet_at[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE seq = ?1";
static const char sql_fleet_insert[] =
    "INSERT INTO fleet (" FLEET_COLUMNS_GIVEN ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) RETURNING seq";
static const char sql_fleet_update[] =
    "UPDATE fleet SET name = ?2, generation = ?3, spec = ?4, labels = ?5, conditions = ?6, ready = ?7, ready_seen_us = ?8, told = 0,"
    " updated_us = ?9, deleted_us = ?10, updated_by = ?11, deleted_by = ?12 WHERE id = ?1";
static const char sql_fleet_judged[] = /* what is set is written to its indexes, changed or not */
    "UPDATE fleet SET conditions = ?2, told = ?3 WHERE id = ?1";
static const char sql_fleet_judged_moved[] =
    "UPDATE fleet SET conditions = ?2, told = ?3, ready = ?4, ready_seen_us = ?5 WHERE id = ?1";
static const char sql_fleet_delete[] =
    "DELETE FROM fleet WHERE id = ?1 RETURNING kind";
static const char sql_fleet_delete_reports[] =
    "DELETE FROM report WHERE fleet_id = ?1";
static const char sql_fleet_by_name[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE kind = ?1 AND owner_id = ?2 AND name = ?3 AND deleted_us = 0";
static const char sql_fleet_children[] =
    "SELECT seq, id, kind, owner_id, name, generation, '{}', '{}', '[]', ready, ready_seen_us, told, created_us, updated_us,"
    " deleted_us, created_by, updated_by, deleted_by FROM fleet WHERE owner_id = ?1 AND owner_id <> '' ORDER BY created_us, seq";
static const char sql_fleet_pending[] =
    "SELECT " FLEET_COLUMNS " FROM fleet WHERE ready = 0 AND (created_us, seq) > (?1, ?2)"
    " ORDER BY created_us, seq LIMIT ?3";

static const char sql_refer_owner[] =
    "UPDATE fleet SET owner_id = ?2 WHERE owner_id = ?1 AND owner_id <> ''";
static const char sql_refer_part[] =
    "UPDATE part SET fleet_id = ?2 WHERE fleet_id = ?1";
static const char sql_refer_resource[] =
    "UPDATE resource SET cluster_id = ?2 WHERE cluster_id = ?1 RETURNING guresid";
/* clang-format on */

static void read_fleet(struct hfd_row_in *in, void *out)
{
    struct hfd_fleet_row *row = out;

    row->seq = hfd_row_i64(in);
    row->id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->owner_id = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->spec = hfd_row_text(in);
    row->labels = hfd_row_text(in);
    row->conditions = hfd_row_text(in);
    row->ready = hfd_row_i64(in) != 0;
    row->ready_seen_us = hfd_row_i64(in);
    row->told = hfd_row_i64(in);
    row->created_us = hfd_row_i64(in);
    row->updated_us = hfd_row_i64(in);
    row->deleted_us = hfd_row_i64(in);
    row->created_by = hfd_row_text(in);
    row->updated_by = hfd_row_text(in);
    row->deleted_by = hfd_row_text(in);
}

static const struct hfd_row_form fleet_form = {"HyperFleet resource", read_fleet,
                                               sizeof(struct hfd_fleet_row)};

static hfd_rc all_fleet(struct hfd_stmt *st, struct hfd_arena *mem, struct hfd_fleet_list *out,
                        struct hfd_err *err)
{
    struct hfd_row_list list;
    hfd_rc rc;

    rc = hfd_row_all(st, &fleet_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_fleet_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                         struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_fleet_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(id));
    return hfd_row_one(st, &fleet_form, mem, out, err);
}

hfd_rc hfd_fleet_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                        struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_fleet_at, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, seq);
    return hfd_row_one(st, &fleet_form, mem, out, err);
}

hfd_rc hfd_fleet_row_insert(struct hfd_txn *tx, struct hfd_fleet_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_fleet_insert, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_i64(st, 2, row->kind);
    hfd_stmt_text(st, 3, hfd_row_some(row->owner_id));
    hfd_stmt_text(st, 4, hfd_row_some(row->name));
    hfd_stmt_i64(st, 5, row->generation);
    hfd_stmt_text(st, 6, hfd_row_some(row->spec));
    hfd_stmt_text(st, 7, hfd_row_some(row->labels));
    hfd_stmt_text(st, 8, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 9, row->ready);
    hfd_stmt_i64(st, 10, row->ready_seen_us);
    hfd_stmt_i64(st, 11, row->told);
    hfd_stmt_i64(st, 12, row->created_us);
    hfd_stmt_i64(st, 13, row->updated_us);
    hfd_stmt_i64(st, 14, row->deleted_us);
    hfd_stmt_text(st, 15, hfd_row_some(row->created_by));
    hfd_stmt_text(st, 16, hfd_row_some(row->updated_by));
    hfd_stmt_text(st, 17, hfd_row_some(row->deleted_by));
    rc = hfd_row_number(st, 0, &row->seq, err);
    return rc == HFD_OK ? hfd_totals_add(tx, &(struct hfd_count_key){.kind = row->kind}, 1, err)
                        : rc;
}

static hfd_rc run_update(struct hfd_stmt *st, struct hfd_err *err)
{
    int64_t changed;
    hfd_rc rc = hfd_stmt_run(st, &changed, err);

    if (rc == HFD_OK && changed == 0)
        rc = hfd_fail(err, HFD_NOT_FOUND, "no such HyperFleet resource is stored");
    return rc;
}

hfd_rc hfd_fleet_row_update(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_fleet_update, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(row->name));
    hfd_stmt_i64(st, 3, row->generation);
    hfd_stmt_text(st, 4, hfd_row_some(row->spec));
    hfd_stmt_text(st, 5, hfd_row_some(row->labels));
    hfd_stmt_text(st, 6, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 7, row->ready);
    hfd_stmt_i64(st, 8, row->ready_seen_us);
    hfd_stmt_i64(st, 9, row->updated_us);
    hfd_stmt_i64(st, 10, row->deleted_us);
    hfd_stmt_text(st, 11, hfd_row_some(row->updated_by));
    hfd_stmt_text(st, 12, hfd_row_some(row->deleted_by));
    return run_update(st, err);
}

hfd_rc hfd_fleet_row_judged(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            const struct hfd_fleet_row *was, struct hfd_err *err)
{
    const bool moved = row->ready != was->ready || row->ready_seen_us != was->ready_seen_us;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, moved ? sql_fleet_judged_moved : sql_fleet_judged, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(row->conditions));
    hfd_stmt_i64(st, 3, row->told);
    if (moved) {
        hfd_stmt_i64(st, 4, row->ready);
        hfd_stmt_i64(st, 5, row->ready_seen_us);
    }
    return run_update(st, err);
}

hfd_rc hfd_fleet_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t kind = 0;
    hfd_rc rc = hfd_row_run(tx, sql_fleet_delete_reports, id, HFD_SLICE_NONE, err);

    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_fleet_delete, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(id));
    rc = hfd_row_number(st, 0, &kind, err);
    return rc == HFD_OK && kind != 0
               ? hfd_totals_add(tx, &(struct hfd_count_key){.kind = (enum hfd_kind)kind}, -1, err)
               : rc;
}

hfd_rc hfd_fleet_row_by_name(struct hfd_txn *tx, const struct hfd_fleet_name *name,
                             struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_fleet_by_name, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, name->kind);
    hfd_stmt_text(st, 2, hfd_row_some(name->owner_id));
    hfd_stmt_text(st, 3, hfd_row_some(name->name));
    return hfd_row_one(st, &fleet_form, mem, out, err);
}

hfd_rc hfd_fleet_row_children(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                              struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_fleet_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_fleet_children, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(cluster_id));
    rc = all_fleet(st, mem, out, err);
    out->total = (int64_t)out->count;
    return rc;
}

hfd_rc hfd_fleet_row_pending(struct hfd_txn *tx, const struct hfd_pending_query *query,
                             struct hfd_arena *mem, struct hfd_fleet_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_fleet_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_fleet_pending, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->after_us);
    hfd_stmt_i64(st, 2, query->after_seq);
    hfd_stmt_i64(st, 3, query->limit);
    rc = all_fleet(st, mem, out, err);
    out->total = (int64_t)out->count;
    return rc;
}

static void read_guresid(struct hfd_row_in *in, void *out)
{
    *(hfd_slice *)out = hfd_row_text(in);
}

static const struct hfd_row_form guresid_form = {"driver resource", read_guresid,
                                                 sizeof(hfd_slice)};

static hfd_rc refer_resources(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                              struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_row_list changed;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_refer_resource, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(from));
    hfd_stmt_text(st, 2, hfd_row_some(to));
    rc = hfd_row_all(st, &guresid_form, mem, &changed, err);
    for (size_t i = 0; rc == HFD_OK && tx->stamps != NULL && i < changed.count; i++)
        hfd_row_stamps_change(tx->stamps, ((hfd_slice *)changed.rows)[i]);
    return rc;
}

hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to, struct hfd_arena *mem,
                           struct hfd_err *err)
{
    hfd_rc rc = hfd_row_run(tx, sql_refer_owner, from, to, err);

    if (rc == HFD_OK)
        rc = hfd_row_run(tx, sql_refer_part, from, to, err);
    return rc == HFD_OK ? refer_resources(tx, from, to, mem, err) : rc;
}
