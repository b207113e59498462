/* See facts.h. */
#include "store/postgres/facts.h"

#include "store/db.h"

#define LIST_MAX 1000 /* rows that are read of a list */

/* clang-format off */
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
    "SELECT application_name, COALESCE(sync_state, '') FROM pg_stat_replication ORDER BY application_name";
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

/* A look under way. */
struct look {
    struct hfd_db *db;
    struct hfd_arena *mem;
};

/* Runs a statement of one row with one number; 0 without a row. */
static hfd_rc read_number(const struct look *l, const char *sql, const char *arg, int64_t *out,
                          struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row = false;
    hfd_rc rc = hfd_db_prepare(l->db, sql, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    if (arg != NULL)
        hfd_stmt_text(st, 1, hfd_slice_of(arg));
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && row)
        *out = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc has_table(const struct look *l, const char *name, bool *out, struct hfd_err *err)
{
    int64_t count;
    hfd_rc rc = read_number(l, sql_has_table, name, &count, err);

    *out = count > 0;
    return rc;
}

static hfd_rc read_settings(const struct look *l, struct hfd_pg_facts *f, struct hfd_err *err)
{
    hfd_slice *const texts[] = {
        &f->version, &f->collation,        &f->encoding,     &f->synchronous_commit,
        &f->fsync,   &f->full_page_writes, &f->standby_names};
    struct hfd_stmt *st;
    bool row = false;
    int at = 0;
    hfd_rc rc = hfd_db_prepare(l->db, sql_facts, &st, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && row) {
        for (; at < (int)(sizeof(texts) / sizeof(texts[0])); at++)
            *texts[at] = hfd_stmt_col_text(st, at, l->mem);
        f->standby = hfd_stmt_col_i64(st, at++) != 0;
        f->patroni = hfd_stmt_col_i64(st, at++) != 0;
        f->may_create = hfd_stmt_col_i64(st, at++) != 0;
        f->connections = hfd_stmt_col_i64(st, at++);
        f->in_use = hfd_stmt_col_i64(st, at++);
        rc = hfd_stmt_step(st, &row, err); /* tells of a column that could not be read */
    }
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc read_standbys(const struct look *l, struct hfd_pg_facts *f, struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row = true;
    hfd_rc rc = HFD_OK;

    f->standbys = hfd_arena_array(l->mem, LIST_MAX, sizeof(*f->standbys));
    if (f->standbys == NULL)
        return hfd_fail_nomem(err, "list the standbys");
    rc = hfd_db_prepare(l->db, sql_standbys, &st, err);
    if (rc != HFD_OK)
        return rc;
    while (rc == HFD_OK && row && f->standby_count < LIST_MAX) {
        rc = hfd_stmt_step(st, &row, err);
        if (rc == HFD_OK && row)
            f->standbys[f->standby_count++] = (struct hfd_pg_standby){
                hfd_stmt_col_text(st, 0, l->mem), hfd_stmt_col_text(st, 1, l->mem)};
    }
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc read_schema(const struct look *l, void *out, struct hfd_err *err)
{
    int64_t *version = out;
    bool there = false;
    hfd_rc rc = has_table(l, "hfd_meta", &there, err);

    *version = 0;
    return rc == HFD_OK && there ? read_number(l, sql_schema, NULL, version, err) : rc;
}

static hfd_rc read_facts(const struct look *l, void *out, struct hfd_err *err)
{
    struct hfd_pg_facts *f = out;
    hfd_rc rc = read_settings(l, f, err);

    if (rc == HFD_OK)
        rc = read_standbys(l, f, err);
    return rc == HFD_OK ? read_schema(l, &f->schema, err) : rc;
}

static hfd_rc read_replica_rows(const struct look *l, struct hfd_pg_replicas *list,
                                struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row = true;
    hfd_rc rc = hfd_db_prepare(l->db, sql_replicas, &st, err);

    if (rc != HFD_OK)
        return rc;
    while (rc == HFD_OK && row && list->count < LIST_MAX) {
        rc = hfd_stmt_step(st, &row, err);
        if (rc != HFD_OK || !row)
            break;
        list->items[list->count++] = (struct hfd_pg_replica){
            .id = hfd_stmt_col_text(st, 0, l->mem),
            .name = hfd_stmt_col_text(st, 1, l->mem),
            .version = hfd_stmt_col_text(st, 2, l->mem),
            .key_ids = hfd_stmt_col_text(st, 3, l->mem),
            .schema = hfd_stmt_col_i64(st, 4),
            .epoch = hfd_stmt_col_i64(st, 5),
            .age_us = hfd_stmt_col_i64(st, 6),
            .leads = hfd_stmt_col_i64(st, 7) != 0,
        };
    }
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc read_replicas(const struct look *l, void *out, struct hfd_err *err)
{
    struct hfd_pg_replicas *list = out;
    bool there = false;
    hfd_rc rc = has_table(l, "leader", &there, err);

    if (rc != HFD_OK || !there)
        return rc;
    list->items = hfd_arena_array(l->mem, LIST_MAX, sizeof(*list->items));
    return list->items != NULL ? read_replica_rows(l, list, err)
                               : hfd_fail_nomem(err, "list the replicas");
}

/* Runs a look in a transaction of its own connection. */
static hfd_rc run(const struct hfd_store_place *place, struct hfd_arena *mem,
                  hfd_rc (*fn)(const struct look *l, void *out, struct hfd_err *err), void *out,
                  struct hfd_err *err)
{
    struct look l = {.mem = mem};
    hfd_rc rc = hfd_db_open(place, HFD_DB_READER, &l.db, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_begin(l.db, err);
    if (rc == HFD_OK) {
        rc = fn(&l, out, err);
        hfd_db_rollback(l.db);
    }
    hfd_db_close(&l.db);
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
