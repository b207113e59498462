/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_remote_orphan.h"

#include "store/orphan_io.h"

/* clang-format off */
#define ORPHAN_COLUMNS \
    HFD_ORPHAN_COLUMNS("", "guresid") ", seen_us, wanted_us, due_us, tries, error, shard"

static const char sql_orphan_get[] =
    "SELECT " ORPHAN_COLUMNS " FROM stray WHERE id = ?1";
static const char sql_orphan_put[] =
    "INSERT INTO stray (" ORPHAN_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, owner_id = excluded.owner_id, guresid = excluded.guresid,"
    " name = excluded.name, generation = excluded.generation, ready = excluded.ready, created_us = excluded.created_us,"
    " deleted_us = excluded.deleted_us, created_by = excluded.created_by, seen_us = excluded.seen_us,"
    " wanted_us = excluded.wanted_us, due_us = excluded.due_us, tries = excluded.tries, error = excluded.error";
static const char sql_orphan_delete[] =
    "DELETE FROM stray WHERE id = ?1";
static const char sql_orphan_delete_of[] =
    "DELETE FROM stray WHERE owner_id = ?1 AND owner_id <> ''";
static const char sql_orphan_list[] =
    "SELECT " ORPHAN_COLUMNS " FROM stray WHERE kind = ?1 ORDER BY guresid, created_us, id LIMIT ?2";
static const char sql_orphan_due[] =
    "SELECT " ORPHAN_COLUMNS " FROM stray WHERE due_us <= ?1 AND (shard & ?3) <> 0 ORDER BY due_us LIMIT ?2";
static const char sql_orphan_next[] =
    "SELECT due_us FROM stray WHERE due_us > ?1 AND (shard & ?2) <> 0 ORDER BY due_us LIMIT 1";
static const char sql_orphan_unseen[] =
    "UPDATE stray SET due_us = ?3 WHERE kind = ?1 AND seen_us < ?2 AND due_us > ?3";
/* clang-format on */

static void read_orphan(struct hfd_row_in *in, void *out)
{
    struct hfd_remote_orphan_row *row = out;
    struct hfd_orphan_row *o = &row->orphan;

    hfd_row_orphan(in, o);
    row->seen_us = hfd_row_i64(in);
    o->wanted_us = hfd_row_i64(in);
    row->due_us = hfd_row_i64(in);
    row->tries = hfd_row_i64(in);
    o->error = hfd_row_text(in);
    row->shard = hfd_row_i64(in);
}

static const struct hfd_row_form orphan_form = {"orphan", read_orphan,
                                                sizeof(struct hfd_remote_orphan_row)};

hfd_rc hfd_remote_orphan_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                 struct hfd_remote_orphan_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_orphan_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(id));
    return hfd_row_one(st, &orphan_form, mem, out, err);
}

hfd_rc hfd_remote_orphan_row_put(struct hfd_txn *tx, const struct hfd_remote_orphan_row *row,
                                 struct hfd_err *err)
{
    const struct hfd_orphan_row *o = &row->orphan;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_orphan_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(o->id));
    hfd_stmt_i64(st, 2, o->kind);
    hfd_stmt_text(st, 3, hfd_row_some(o->owner_id));
    hfd_stmt_text(st, 4, hfd_row_some(o->label));
    hfd_stmt_text(st, 5, hfd_row_some(o->name));
    hfd_stmt_i64(st, 6, o->generation);
    hfd_stmt_i64(st, 7, o->ready);
    hfd_stmt_i64(st, 8, o->created_us);
    hfd_stmt_i64(st, 9, o->deleted_us);
    hfd_stmt_text(st, 10, hfd_row_some(o->created_by));
    hfd_stmt_i64(st, 11, row->seen_us);
    hfd_stmt_i64(st, 12, o->wanted_us);
    hfd_stmt_i64(st, 13, row->due_us);
    hfd_stmt_i64(st, 14, row->tries);
    hfd_stmt_text(st, 15, hfd_row_some(o->error));
    hfd_stmt_i64(st, 16, hfd_shard_bit(o->label));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_remote_orphan_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_orphan_delete, id, HFD_SLICE_NONE, err);
}

hfd_rc hfd_remote_orphan_row_delete_of(struct hfd_txn *tx, hfd_slice owner_id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_orphan_delete_of, owner_id, HFD_SLICE_NONE, err);
}

/* Reads the list of a statement whose parameters are bound, and finishes it. */
static hfd_rc read_list(struct hfd_stmt *st, struct hfd_arena *mem,
                        struct hfd_remote_orphan_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc = hfd_row_all(st, &orphan_form, mem, &list, err);

    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_remote_orphan_row_list(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                  struct hfd_arena *mem, struct hfd_remote_orphan_list *out,
                                  struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_orphan_list, &st, err);

    *out = (struct hfd_remote_orphan_list){.count = 0};
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->kind);
    hfd_stmt_i64(st, 2, query->limit);
    return read_list(st, mem, out, err);
}

hfd_rc hfd_remote_orphan_row_due(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                 struct hfd_arena *mem, struct hfd_remote_orphan_list *out,
                                 struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_orphan_due, &st, err);

    *out = (struct hfd_remote_orphan_list){.count = 0};
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->now_us);
    hfd_stmt_i64(st, 2, query->limit);
    hfd_stmt_i64(st, 3, query->shards);
    return read_list(st, mem, out, err);
}

hfd_rc hfd_remote_orphan_row_next(struct hfd_txn *tx, const struct hfd_remote_orphan_query *query,
                                  int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_orphan_next, &st, err);

    *out = INT64_MAX;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->now_us);
    hfd_stmt_i64(st, 2, query->shards);
    return hfd_row_number(st, INT64_MAX, out, err);
}

hfd_rc hfd_remote_orphan_row_unseen(struct hfd_txn *tx, enum hfd_kind kind, int64_t since_us,
                                    int64_t due_us, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_orphan_unseen, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, kind);
    hfd_stmt_i64(st, 2, since_us);
    hfd_stmt_i64(st, 3, due_us);
    return hfd_stmt_run(st, NULL, err);
}
