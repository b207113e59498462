/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_replica.h"

#include "store/row_io.h"

#define MIN_MEM_BYTES ((size_t)4096)

/* clang-format off */
#define REPLICA_COLUMNS \
    "id, name, version, schema, started_us, beat_us, key_ids, settings_epoch, settings_mark"

static const char sql_replica_list[] =
    "SELECT " REPLICA_COLUMNS " FROM replica ORDER BY id";
static const char sql_replica_put[] =
    "INSERT INTO replica (" REPLICA_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    " ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, schema = excluded.schema,"
    " started_us = excluded.started_us, beat_us = excluded.beat_us, key_ids = excluded.key_ids,"
    " settings_epoch = excluded.settings_epoch, settings_mark = excluded.settings_mark";
static const char sql_replica_delete[] =
    "DELETE FROM replica WHERE id = ?1";
static const char sql_replica_drop[] =
    "DELETE FROM replica WHERE beat_us < ?1";
static const char sql_schema_min[] =
    "SELECT value FROM hfd_meta WHERE key = 'schema_min'";
static const char sql_commit_drop[] =
    "DELETE FROM hfd_commit WHERE seen_n = n AND seen_us < ?1";
static const char sql_commit_note[] =
    "UPDATE hfd_commit SET seen_n = n, seen_us = ?1 WHERE seen_n <> n";
static const char sql_lease_all[] =
    "SELECT shard, holder, epoch, until_us FROM lease ORDER BY shard";
static const char sql_lease_put[] =
    "INSERT INTO lease (shard, holder, epoch, until_us) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, until_us = excluded.until_us";
static const char sql_lease_release[] =
    "UPDATE lease SET holder = '', until_us = 0 WHERE holder = ?1";
static const char sql_settings_get[] =
    "SELECT epoch, mark, rules FROM settings_epoch WHERE one = 1";
static const char sql_settings_put[] =
    "INSERT INTO settings_epoch (one, epoch, mark, rules) VALUES (1, ?1, ?2, ?3)"
    " ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch, mark = excluded.mark, rules = excluded.rules";
/* clang-format on */

static void read_replica(struct hfd_row_in *in, void *out)
{
    struct hfd_replica_row *row = out;

    row->id = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->version = hfd_row_text(in);
    row->schema = hfd_row_i64(in);
    row->started_us = hfd_row_i64(in);
    row->beat_us = hfd_row_i64(in);
    row->key_ids = hfd_row_text(in);
    row->settings_epoch = hfd_row_i64(in);
    row->settings_mark = hfd_row_text(in);
}

static const struct hfd_row_form replica_form = {"replica", read_replica,
                                                 sizeof(struct hfd_replica_row)};

hfd_rc hfd_replica_row_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_replica_list *out,
                            struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_replica_list, &st, err);

    if (rc == HFD_OK)
        rc = hfd_row_all(st, &replica_form, mem, &list, err);
    *out = (struct hfd_replica_list){list.rows, list.count};
    return rc;
}

hfd_rc hfd_replica_row_put(struct hfd_txn *tx, const struct hfd_replica_row *row,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_replica_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->id));
    hfd_stmt_text(st, 2, hfd_row_some(row->name));
    hfd_stmt_text(st, 3, hfd_row_some(row->version));
    hfd_stmt_i64(st, 4, row->schema);
    hfd_stmt_i64(st, 5, row->started_us);
    hfd_stmt_i64(st, 6, row->beat_us);
    hfd_stmt_text(st, 7, hfd_row_some(row->key_ids));
    hfd_stmt_i64(st, 8, row->settings_epoch);
    hfd_stmt_text(st, 9, hfd_row_some(row->settings_mark));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_replica_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_replica_delete, id, HFD_SLICE_NONE, err);
}

static hfd_rc run_at(struct hfd_txn *tx, const char *sql, int64_t us, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, us);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_replica_row_drop(struct hfd_txn *tx, int64_t before_us, struct hfd_err *err)
{
    return run_at(tx, sql_replica_drop, before_us, err);
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
    const hfd_rc rc = run_at(tx, sql_commit_drop, before_us, err);

    return rc == HFD_OK ? run_at(tx, sql_commit_note, now_us, err) : rc;
}

static void read_lease(struct hfd_row_in *in, void *out)
{
    struct hfd_lease_row *row = out;

    row->shard = hfd_row_i64(in);
    in->bad = in->bad || row->shard < 0 || row->shard >= HFD_SHARDS;
    row->holder = hfd_row_text(in);
    row->epoch = hfd_row_i64(in);
    row->until_us = hfd_row_i64(in);
}

static const struct hfd_row_form lease_form = {"lease", read_lease, sizeof(struct hfd_lease_row)};

hfd_rc hfd_lease_row_all(struct hfd_txn *tx, struct hfd_arena *mem,
                         struct hfd_lease_row out[HFD_SHARDS], struct hfd_err *err)
{
    struct hfd_row_list list = {NULL, 0};
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_lease_all, &st, err);

    if (rc == HFD_OK)
        rc = hfd_row_all(st, &lease_form, mem, &list, err);
    for (int i = 0; i < HFD_SHARDS; i++)
        out[i] = (struct hfd_lease_row){.shard = i, .holder = HFD_SLICE("")};
    for (size_t i = 0; i < list.count; i++) {
        const struct hfd_lease_row *row = &((const struct hfd_lease_row *)list.rows)[i];

        out[row->shard] = *row;
    }
    return rc;
}

hfd_rc hfd_lease_row_put(struct hfd_txn *tx, const struct hfd_lease_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_lease_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->shard);
    hfd_stmt_text(st, 2, hfd_row_some(row->holder));
    hfd_stmt_i64(st, 3, row->epoch);
    hfd_stmt_i64(st, 4, row->until_us);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_lease_row_release(struct hfd_txn *tx, hfd_slice holder, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_lease_release, holder, HFD_SLICE_NONE, err);
}

static void read_settings(struct hfd_row_in *in, void *out)
{
    struct hfd_settings_row *row = out;

    row->epoch = hfd_row_i64(in);
    row->mark = hfd_row_i64(in);
    row->rules = hfd_row_i64(in);
}

static const struct hfd_row_form settings_form = {"epoch of the settings", read_settings,
                                                  sizeof(struct hfd_settings_row)};

hfd_rc hfd_settings_row_get(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_settings_row *out,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(tx->db, sql_settings_get, &st, err);

    return rc == HFD_OK ? hfd_row_one(st, &settings_form, mem, out, err) : rc;
}

hfd_rc hfd_settings_row_put(struct hfd_txn *tx, const struct hfd_settings_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_settings_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, row->epoch);
    hfd_stmt_i64(st, 2, row->mark);
    hfd_stmt_i64(st, 3, row->rules);
    return hfd_stmt_run(st, NULL, err);
}
