/* See facts.h. */
#include "store/postgres/facts.h"

#include "store/row_io.h"

/* Columns of results. */
#define FACT(type, member) HFD_COL(struct hfd_pg_facts, type, #member, member)
#define STANDBY(member) HFD_COL(struct hfd_pg_standby, NONE, #member, member)
#define REPLICA(type, member) HFD_COL(struct hfd_pg_replica, type, #member, member)
/* clang-format off */
static const struct hfd_col fact_cols[] = {
    {FACT(NONE, version)}, {FACT(NONE, collation)}, {FACT(NONE, encoding)}, {FACT(NONE, synchronous_commit)}, {FACT(NONE, fsync)},
    {FACT(NONE, full_page_writes)}, {FACT(NONE, standby_names)}, {FACT(BOOL, standby)}, {FACT(BOOL, patroni)}, {FACT(BOOL, may_create)},
    {FACT(I64, connections)}, {FACT(I64, in_use)},
};
static const struct hfd_col standby_cols[] = {{STANDBY(name)}, {STANDBY(sync)}};
static const struct hfd_col replica_cols[] = {
    {REPLICA(NONE, id)}, {REPLICA(NONE, name)}, {REPLICA(NONE, version)}, {REPLICA(NONE, key_ids)}, {REPLICA(I64, schema)},
    {REPLICA(I64, epoch)}, {REPLICA(I64, age_us)}, {REPLICA(BOOL, leads)},
};
static const struct hfd_table facts_of = {HFD_TABLE(NULL, struct hfd_pg_facts, "look at PostgreSQL", fact_cols)},
    standby_of = {HFD_TABLE(NULL, struct hfd_pg_standby, "standby", standby_cols)},
    replica_of = {HFD_TABLE(NULL, struct hfd_pg_replica, "replica", replica_cols)};
static const char sql_facts[] =
    "SELECT current_setting('server_version'), d.datcollate::text, pg_encoding_to_char(d.encoding)::text,"
    " current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),"
    " current_setting('synchronous_standby_names'),"
    " pg_is_in_recovery()::int::bigint,"
    " (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'Patroni%'),"
    " COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)::int::bigint,"
    " LEAST(current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,"
    "  NULLIF(d.datconnlimit, -1)::bigint, (SELECT NULLIF(rolconnlimit, -1)::bigint FROM pg_roles WHERE rolname = current_user)),"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
    " FROM pg_database d WHERE d.datname = current_database()";
static const char sql_standbys[] =
    "SELECT application_name, COALESCE(sync_state, '') FROM pg_stat_replication ORDER BY application_name LIMIT 1000";
static const char sql_has_table[] =
    "SELECT count(*) FROM pg_class WHERE oid = to_regclass(?1)";
static const char sql_schema[] =
    "SELECT value::bigint FROM hfd_meta WHERE key = 'schema_now'";
static const char sql_replicas[] =
    "SELECT r.id, r.name, r.version, r.key_ids, r.schema, r.settings_epoch, t.now_us - r.beat_us,"
    " (SELECT count(*) FROM leader l WHERE l.holder = r.id AND l.until_us > t.now_us)"
    " FROM replica r, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) t"
    " WHERE t.now_us - r.beat_us < 9000000 ORDER BY r.name, r.id LIMIT 1000";
/* clang-format on */

/* Runs a statement of one row with one number; 0 without a row. */
static hfd_rc read_number(struct hfd_db *db, const char *sql, const char *arg, int64_t *out,
                          struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    if (arg != NULL)
        hfd_stmt_text(st, 1, hfd_slice_of(arg));
    return hfd_row_number(st, 0, out, err);
}

static hfd_rc read_all(struct hfd_db *db, const char *sql, const struct hfd_table *of,
                       struct hfd_arena *mem, struct hfd_row_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    const hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    *out = (struct hfd_row_list){NULL, 0};
    return rc == HFD_OK ? hfd_row_all(st, &of->form, mem, out, err) : rc;
}

static hfd_rc read_schema(struct hfd_db *db, struct hfd_arena *mem, void *out, struct hfd_err *err)
{
    int64_t *version = out, there;
    const hfd_rc rc = read_number(db, sql_has_table, "hfd_meta", &there, err);

    (void)mem;
    *version = 0;
    return rc == HFD_OK && there > 0 ? read_number(db, sql_schema, NULL, version, err) : rc;
}

static hfd_rc read_facts(struct hfd_db *db, struct hfd_arena *mem, void *out, struct hfd_err *err)
{
    struct hfd_pg_facts *f = out;
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(db, sql_facts, &st, err);

    if (rc == HFD_OK)
        rc = hfd_row_one(st, &facts_of.form, mem, f, err);
    if (rc != HFD_OK)
        return rc;
    rc = read_all(db, sql_standbys, &standby_of, mem, &list, err);
    f->standbys = list.rows;
    f->standby_count = list.count;
    return rc == HFD_OK ? read_schema(db, mem, &f->schema, err) : rc;
}

static hfd_rc read_replicas(struct hfd_db *db, struct hfd_arena *mem, void *out,
                            struct hfd_err *err)
{
    struct hfd_pg_replicas *replicas = out;
    struct hfd_row_list list = {NULL, 0};
    int64_t there;
    hfd_rc rc = read_number(db, sql_has_table, "leader", &there, err);

    if (rc == HFD_OK && there > 0)
        rc = read_all(db, sql_replicas, &replica_of, mem, &list, err);
    *replicas = (struct hfd_pg_replicas){list.rows, list.count};
    return rc;
}

/* Runs a look in a transaction of its own connection. */
static hfd_rc run(const struct hfd_store_place *place, struct hfd_arena *mem,
                  hfd_rc (*fn)(struct hfd_db *db, struct hfd_arena *mem, void *out,
                               struct hfd_err *err),
                  void *out, struct hfd_err *err)
{
    struct hfd_db *db;
    hfd_rc rc = hfd_db_open(place, HFD_DB_READER, &db, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_begin(db, err);
    if (rc == HFD_OK) {
        rc = fn(db, mem, out, err);
        hfd_db_rollback(db);
    }
    hfd_db_close(&db);
    return rc;
}

hfd_rc hfd_pg_facts_read(const struct hfd_store_place *place, struct hfd_arena *mem,
                         struct hfd_pg_facts *out, struct hfd_err *err)
{
    *out = (struct hfd_pg_facts){.standbys = NULL};
    return run(place, mem, read_facts, out, err);
}

hfd_rc hfd_pg_schema_read(const struct hfd_store_place *place, int64_t *out, struct hfd_err *err)
{
    return run(place, NULL, read_schema, out, err);
}

hfd_rc hfd_pg_replicas_read(const struct hfd_store_place *place, struct hfd_arena *mem,
                            struct hfd_pg_replicas *out, struct hfd_err *err)
{
    *out = (struct hfd_pg_replicas){NULL, 0};
    return run(place, mem, read_replicas, out, err);
}

bool hfd_pg_replica_has_key(const struct hfd_pg_replica *replica, hfd_slice id)
{
    hfd_slice rest = replica->key_ids;

    while (rest.len > 0) {
        const char *comma = memchr(rest.p, ',', rest.len);
        const size_t len = comma != NULL ? (size_t)(comma - rest.p) : rest.len;

        if (hfd_slice_eq((hfd_slice){rest.p, len}, id))
            return true;
        rest = (hfd_slice){rest.p + len, rest.len - len};
        if (rest.len > 0)
            rest = (hfd_slice){rest.p + 1, rest.len - 1};
    }
    return false;
}
