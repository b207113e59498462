/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_ring_key.h"

#include "store/row_io.h"
#include "store/unit.h"

/* clang-format off */
static const char sql_key_list[] =
    "SELECT id, mark FROM ring_key ORDER BY id";
static const char sql_key_put[] =
    "INSERT INTO ring_key (id, mark) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET mark = excluded.mark";
static const char sql_key_delete[] =
    "DELETE FROM ring_key WHERE id = ?1";
static const char sql_key_uses[] =
    "SELECT (SELECT count(*) FROM resource WHERE substr(raw_digest, 1, 4) = ?1 OR substr(digest, 1, 4) = ?1"
    " OR substr(secrets, 1, 4) = ?1 OR substr(cookie, 1, length(?2)) = ?2)"
    " + (SELECT count(*) FROM report WHERE substr(secrets, 1, 4) = ?1)"
    " + (SELECT count(*) FROM order_secrets WHERE substr(secrets, 1, 4) = ?1)";
static const char sql_sealed_resources[] =
    "SELECT guresid, '' FROM resource WHERE guresid > ?1 AND ?2 = '' AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
    " ORDER BY guresid LIMIT 50";
static const char sql_sealed_reports[] =
    "SELECT fleet_id, adapter FROM report WHERE (fleet_id, adapter) > (?1, ?2) AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
    " ORDER BY fleet_id, adapter LIMIT 50";
static const char sql_sealed_orders[] =
    "SELECT guresid, '' FROM order_secrets WHERE guresid > ?1 AND ?2 = '' AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
    " ORDER BY guresid LIMIT 50";
/* clang-format on */

static void read_key(struct hfd_row_in *in, void *out)
{
    struct hfd_ring_key_row *row = out;

    row->id = hfd_row_text(in);
    row->mark = hfd_row_text(in);
}

static const struct hfd_row_form key_form = {"key of the key ring", read_key,
                                             sizeof(struct hfd_ring_key_row)};

hfd_rc hfd_ring_key_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                             struct hfd_ring_key_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_key_list, &st, err);

    if (rc == HFD_OK)
        rc = hfd_row_all(st, &key_form, mem, &list, err);
    *out = (struct hfd_ring_key_list){list.rows, list.count};
    return rc;
}

hfd_rc hfd_ring_key_row_put(struct hfd_txn *tx, const struct hfd_ring_key_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_key_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_blob(st, 2, hfd_row_some(row->mark));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_ring_key_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_key_delete, id, HFD_SLICE_NONE, err);
}

hfd_rc hfd_ring_key_uses(struct hfd_txn *tx, const struct hfd_ring_key_marks *key, int64_t *out,
                         struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write(tx, err);

    *out = 0;
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_key_uses, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_blob(st, 1, hfd_row_some(key->id));
    hfd_stmt_text(st, 2, hfd_row_some(key->cookie));
    return hfd_row_number(st, 0, out, err);
}

static void read_sealed(struct hfd_row_in *in, void *out)
{
    struct hfd_sealed_key *key = out;

    key->first = hfd_row_text(in);
    key->second = hfd_row_text(in);
}

static const struct hfd_row_form sealed_form = {"key of a sealed row", read_sealed,
                                                sizeof(struct hfd_sealed_key)};

static const char *const sql_sealed[HFD_SEALED_COUNT] = {
    [HFD_SEALED_RESOURCES] = sql_sealed_resources,
    [HFD_SEALED_REPORTS] = sql_sealed_reports,
    [HFD_SEALED_ORDERS] = sql_sealed_orders,
};

hfd_rc hfd_sealed_row_list(struct hfd_txn *tx, const struct hfd_sealed_query *query,
                           struct hfd_arena *mem, struct hfd_sealed_list *out, struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write(tx, err);

    *out = (struct hfd_sealed_list){NULL, 0};
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_sealed[query->table], &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(query->after.first));
    hfd_stmt_text(st, 2, hfd_row_some(query->after.second));
    hfd_stmt_blob(st, 3, hfd_row_some(query->active));
    rc = hfd_row_all(st, &sealed_form, mem, &list, err);
    *out = (struct hfd_sealed_list){list.rows, list.count};
    return rc;
}
