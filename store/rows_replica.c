/* See rows_replica.h. The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_replica.h"

#include "driver/base/arena.h"
#include "store/db.h"
#include "store/row_io.h"
#include "store/txn.h"

/* ---- replicas ---- */

#define MIN_MEM_BYTES ((size_t)4096)
#define REPLICA_COL(type, member) HFD_COL(struct hfd_replica_row, type, #member, member)

/* The rows of tables that have one. */
struct lease {
    int64_t one;
    struct hfd_lease_row row;
};
struct settings {
    int64_t one;
    struct hfd_settings_row row;
};
#define LEASE(type, member) HFD_COL(struct lease, type, #member, row.member)
#define SETTINGS(type, member) HFD_COL(struct settings, type, #member, row.member)

/* clang-format off */
static const struct hfd_col replica_cols[] = {
    {REPLICA_COL(TEXT, id)}, {REPLICA_COL(TEXT, name)}, {REPLICA_COL(TEXT, version)}, {REPLICA_COL(I64, schema)}, {REPLICA_COL(I64, started_us)}, {REPLICA_COL(I64, beat_us)},
    {REPLICA_COL(TEXT, key_ids)}, {REPLICA_COL(I64, settings_epoch)}, {REPLICA_COL(TEXT, settings_mark)},
};
const struct hfd_table hfd_replica_table = {
    HFD_TABLE("replica", struct hfd_replica_row, "replica", replica_cols), .keys = 1,
    HFD_TABLE_PUT(hfd_replica_table), HFD_TABLE_REMOVE(hfd_replica_table)};
static const struct hfd_col lease_cols[] = {
    {HFD_COL(struct lease, I64, "one", one)}, {LEASE(TEXT, holder)}, {LEASE(I64, epoch)}, {LEASE(I64, until_us)},
};
const struct hfd_table hfd_lease_table = {
    HFD_TABLE("leader", struct lease, "lease", lease_cols), .keys = 1,
    HFD_TABLE_GET(hfd_lease_table), HFD_TABLE_PUT(hfd_lease_table)};
static const struct hfd_col settings_cols[] = {
    {HFD_COL(struct settings, I64, "one", one)}, {SETTINGS(I64, epoch)}, {SETTINGS(I64, mark)}, {SETTINGS(I64, rules)},
};
const struct hfd_table hfd_settings_table = {
    HFD_TABLE("settings_epoch", struct settings, "epoch of the settings", settings_cols), .keys = 1};
/* Without the key. */
static const struct hfd_table settings_only = {
    HFD_TABLE_OF("settings_epoch", struct settings, "epoch of the settings", settings_cols + 1, HFD_COUNT_OF(settings_cols) - 1)};
static struct hfd_query sql_settings_get = {.table = &settings_only, .text = "SELECT @cols FROM settings_epoch WHERE one = 1"};
static struct hfd_query sql_settings_put = {.table = &settings_only, .text =
    "INSERT INTO settings_epoch (one, @cols) VALUES (1, @places) ON CONFLICT (one) DO UPDATE SET @excluded"};

static struct hfd_query sql_replica_list = {.table = &hfd_replica_table, .text = "SELECT @cols FROM replica ORDER BY id"};
static struct hfd_query sql_replica_drop = {.table = &hfd_replica_table, .text =
    "DELETE FROM replica WHERE beat_us < ?1"};
static const char sql_schema_min[] =
    "SELECT value FROM hfd_meta WHERE key = 'schema_min'";
static struct hfd_query sql_commit_drop = {.table = &hfd_replica_table, .text =
    "DELETE FROM hfd_commit WHERE seen_n = n AND seen_us < ?1", .mixed = true};
static struct hfd_query sql_commit_note = {.table = &hfd_replica_table, .text =
    "UPDATE hfd_commit SET seen_n = n, seen_us = ?1 WHERE seen_n <> n", .mixed = true};
static struct hfd_query sql_lease_release = {.table = &hfd_lease_table, .text =
    "UPDATE leader SET holder = '', until_us = 0 WHERE holder = ?1"};
/* clang-format on */

hfd_rc hfd_replica_row_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_replica_list *out,
                            struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_replica_list, HFD_ARGS_NONE, mem, out, err);
}

hfd_rc hfd_replica_row_put(struct hfd_txn *tx, const struct hfd_replica_row *row,
                           struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_replica_table.put, row, NULL, err);
}

hfd_rc hfd_replica_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_replica_table.remove, HFD_ARGS(hfd_arg_text(id)), err);
}

hfd_rc hfd_replica_row_drop(struct hfd_txn *tx, int64_t before_us, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_replica_drop, HFD_ARGS(hfd_arg_i64(before_us)), err);
}

static void read_min(struct hfd_row_in *in, void *out)
{
    const hfd_slice text = hfd_row_text(in);

    in->bad = in->bad || hfd_parse_i64(text, 1, INT64_MAX, out, NULL) != HFD_OK;
}

static const struct hfd_row_form min_form = {"least version of the schema", read_min,
                                             sizeof(int64_t)};

hfd_rc hfd_replica_row_schema_min(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_schema_min, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    hfd_arena_init(&mem, MIN_MEM_BYTES);
    rc = hfd_row_one(st, &min_form, &mem, out, err);
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_replica_row_forget_commits(struct hfd_txn *tx, int64_t now_us, int64_t before_us,
                                      struct hfd_err *err)
{
    const hfd_rc rc = hfd_query_run(tx, &sql_commit_drop, HFD_ARGS(hfd_arg_i64(before_us)), err);

    return rc == HFD_OK ? hfd_query_run(tx, &sql_commit_note, HFD_ARGS(hfd_arg_i64(now_us)), err)
                        : rc;
}

hfd_rc hfd_lease_row_get(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_lease_row *out,
                         struct hfd_err *err)
{
    struct lease row;
    const hfd_rc rc =
        hfd_query_one(tx, hfd_lease_table.get, HFD_ARGS(hfd_arg_i64(1)), mem, &row, err);

    if (rc == HFD_OK)
        *out = row.row;
    else
        *out = (struct hfd_lease_row){.holder = HFD_SLICE("")};
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_lease_row_put(struct hfd_txn *tx, const struct hfd_lease_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_lease_table.put, &(struct lease){1, *row}, NULL, err);
}

hfd_rc hfd_lease_row_release(struct hfd_txn *tx, hfd_slice holder, struct hfd_err *err)
{
    return hfd_query_run(tx, &sql_lease_release, HFD_ARGS(hfd_arg_text(holder)), err);
}

hfd_rc hfd_settings_row_get(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_settings_row *out,
                            struct hfd_err *err)
{
    struct settings row;
    const hfd_rc rc = hfd_query_one(tx, &sql_settings_get, HFD_ARGS_NONE, mem, &row, err);

    if (rc == HFD_OK)
        *out = row.row;
    return rc;
}

hfd_rc hfd_settings_row_put(struct hfd_txn *tx, const struct hfd_settings_row *row,
                            struct hfd_err *err)
{
    return hfd_query_write(tx, &sql_settings_put, &(struct settings){1, *row}, NULL, err);
}

/* ---- keys of the key ring ---- */

#define KEY_COL(type, member) HFD_COL(struct hfd_ring_key_row, type, #member, member)
#define SEALED(type, member) HFD_COL(struct hfd_sealed_key, type, #member, member)

/* clang-format off */
static const struct hfd_col key_cols[] = {{KEY_COL(TEXT, id)}, {KEY_COL(BLOB, mark)}};
const struct hfd_table hfd_ring_key_table = {
    HFD_TABLE("ring_key", struct hfd_ring_key_row, "key of the key ring", key_cols), .keys = 1,
    HFD_TABLE_PUT(hfd_ring_key_table), HFD_TABLE_REMOVE(hfd_ring_key_table)};
static const struct hfd_col sealed_cols[] = {{SEALED(TEXT, first)}, {SEALED(TEXT, second)}};
static const struct hfd_table sealed = {HFD_TABLE(NULL, struct hfd_sealed_key, "key of a sealed row", sealed_cols)};

static struct hfd_query sql_key_list = {.table = &hfd_ring_key_table, .text = "SELECT @cols FROM ring_key ORDER BY id"};
static struct hfd_query sql_key_uses = {.table = &hfd_ring_key_table, .mixed = true, .text =
    "SELECT (SELECT count(*) FROM resource WHERE substr(raw_digest, 1, 4) = ?1 OR substr(digest, 1, 4) = ?1"
    " OR substr(secrets, 1, 4) = ?1 OR substr(cookie, 1, length(?2)) = ?2)"
    " + (SELECT count(*) FROM report WHERE substr(secrets, 1, 4) = ?1)"
    " + (SELECT count(*) FROM order_secrets WHERE substr(secrets, 1, 4) = ?1)", .after = HFD_UNIT_ALL};
static struct hfd_query sql_sealed[HFD_SEALED_COUNT] = {
    [HFD_SEALED_RESOURCES] = {.table = &sealed, .text =
        "SELECT guresid, '' FROM resource WHERE guresid > ?1 AND ?2 = '' AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
        " ORDER BY guresid LIMIT 50", .after = HFD_UNIT_ALL},
    [HFD_SEALED_REPORTS] = {.table = &sealed, .text =
        "SELECT fleet_id, adapter FROM report WHERE (fleet_id, adapter) > (?1, ?2) AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
        " ORDER BY fleet_id, adapter LIMIT 50", .after = HFD_UNIT_ALL},
    [HFD_SEALED_ORDERS] = {.table = &sealed, .text =
        "SELECT guresid, '' FROM order_secrets WHERE guresid > ?1 AND ?2 = '' AND length(secrets) > 0 AND substr(secrets, 1, 4) <> ?3"
        " ORDER BY guresid LIMIT 50", .after = HFD_UNIT_ALL},
};
/* clang-format on */

hfd_rc hfd_ring_key_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                             struct hfd_ring_key_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_key_list, HFD_ARGS_NONE, mem, out, err);
}

hfd_rc hfd_ring_key_row_put(struct hfd_txn *tx, const struct hfd_ring_key_row *row,
                            struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_ring_key_table.put, row, NULL, err);
}

hfd_rc hfd_ring_key_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_ring_key_table.remove, HFD_ARGS(hfd_arg_text(id)), err);
}

hfd_rc hfd_ring_key_uses(struct hfd_txn *tx, const struct hfd_ring_key_marks *key, int64_t *out,
                         struct hfd_err *err)
{
    return hfd_query_number(
        tx, &sql_key_uses, HFD_ARGS(hfd_arg_blob(key->id), hfd_arg_text(key->cookie)), 0, out, err);
}

hfd_rc hfd_sealed_row_list(struct hfd_txn *tx, const struct hfd_sealed_query *query,
                           struct hfd_arena *mem, struct hfd_sealed_list *out, struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_sealed[query->table],
                          HFD_ARGS(hfd_arg_text(query->after.first),
                                   hfd_arg_text(query->after.second), hfd_arg_blob(query->active)),
                          mem, out, err);
}

/* ---- tokens ---- */

#define TOKEN_COL(type, member) HFD_COL(struct hfd_token_use_row, type, #member, member)

static const struct hfd_col token_cols[] = {
    {TOKEN_COL(TEXT, name)},
    {TOKEN_COL(I64, created_us)},
    {TOKEN_COL(I64, used_us)},
    {HFD_COL(struct hfd_token_use_row, TEXT, "used_from", from)},
};
const struct hfd_table hfd_token_table = {
    HFD_TABLE("token_use", struct hfd_token_use_row, "last use of a token", token_cols), .keys = 1,
    HFD_TABLE_PUT(hfd_token_table), HFD_TABLE_REMOVE(hfd_token_table)};

static struct hfd_query sql_token_list = {.table = &hfd_token_table,
                                          .text = "SELECT @cols FROM token_use ORDER BY name"};

hfd_rc hfd_token_use_put(struct hfd_txn *tx, const struct hfd_token_use_row *row,
                         struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_token_table.put, row, NULL, err);
}

hfd_rc hfd_token_use_delete(struct hfd_txn *tx, hfd_slice name, struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_token_table.remove, HFD_ARGS(hfd_arg_text(name)), err);
}

hfd_rc hfd_token_use_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_token_uses *out,
                          struct hfd_err *err)
{
    return HFD_QUERY_LIST(tx, &sql_token_list, HFD_ARGS_NONE, mem, out, err);
}

/* ---- servers that use the database ---- */

/* A server lives that gave a sign of life so lately. */
#define HFD_ALONE_LIVE_US INT64_C(9000000)
#define MEM_MAX ((size_t)1 << 20)

hfd_rc hfd_alone_check(struct hfd_db *db, int64_t schema, struct hfd_err *err)
{
    struct hfd_txn tx = {.db = db};
    struct hfd_replica_list list = {0};
    struct hfd_arena mem;
    int64_t now_us = 0;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX);
    rc = hfd_replica_row_list(&tx, &mem, &list, err);
    if (rc == HFD_OK && list.count > 0)
        rc = hfd_txn_now(&tx, &now_us, err);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct hfd_replica_row *row = &list.rows[i];

        if (row->beat_us <= now_us - HFD_ALONE_LIVE_US || row->schema >= schema)
            continue;
        rc = hfd_fail(err, HFD_CONFLICT,
                      "the server %.60s of version %.30s (schema version %lld) uses the database: "
                      "end it first",
                      row->name.p, row->version.p, (long long)row->schema);
    }
    hfd_arena_fini(&mem);
    return rc;
}
