/* See migrate.h. Thread: start-up. */
#include "store/migrate.h"

#include "driver/base/log.h"
#include "store/rows_replica.h"

#define NO_MIN INT64_MAX

static const char sql_min[] = "SELECT value FROM hfd_meta WHERE key = 'schema_min'";
static const char sql_min_set[] = "INSERT INTO hfd_meta (key, value) VALUES ('schema_min', ?1) "
                                  "ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/* ---- which programs may use it ---- */

/* @param out  NO_MIN: it says nothing, so programs need all of it */
static hfd_rc read_min(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(db, sql_min, &st, err);

    *out = NO_MIN;
    if (rc != HFD_OK)
        return rc;
    hfd_arena_init(&mem, 4096);
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && row) {
        if (hfd_parse_i64(hfd_stmt_col_text(st, 0, &mem), 1, INT64_MAX - 1, out, NULL) != HFD_OK)
            rc = hfd_fail(err, HFD_CORRUPT, "store: hfd_meta has no number as schema_min");
        else
            rc = hfd_stmt_step(st, &row, err);
    }
    hfd_stmt_done(st);
    hfd_arena_fini(&mem);
    return rc;
}

/* Inside a transaction. */
static hfd_rc write_min(struct hfd_db *db, int64_t min, struct hfd_err *err)
{
    char text[24];
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(db, sql_min_set, &st, err);

    if (rc != HFD_OK)
        return rc;
    (void)snprintf(text, sizeof(text), "%lld", (long long)min);
    hfd_stmt_text(st, 1, hfd_slice_of(text));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_migrate_schema(struct hfd_db *db, struct hfd_schema_version *out, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_schema_version(db, &out->now, err);

    out->now %= HFD_MIGRATE_UNFILLED;
    out->min = NO_MIN;
    if (rc == HFD_OK && out->now >= HFD_MIGRATE_META)
        rc = read_min(db, &out->min, err);
    if (out->min == NO_MIN)
        out->min = out->now;
    return rc;
}

/* ---- steps ---- */

/*
 * Applies a migration, or none: the start commits once, also when no migration does. A disk that
 * takes no writes is found before the first request. (SQLite's readers also ask for the file's size
 * in each transaction while the log is empty.)
 * @param m        NULL = none
 * @param version  as it is stored
 */
static hfd_rc apply(struct hfd_db *db, const struct hfd_migration *m, int64_t version,
                    struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    if (m != NULL)
        rc = hfd_db_exec(db, m->sql, err);
    if (rc == HFD_OK)
        rc = hfd_db_set_schema_version(db, version, err);
    return hfd_db_end(db, rc, err);
}

/* Runs the fill of the last migration that has one: all fill the same rows. */
static hfd_rc fill(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                   struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    while (count > 0 && list[count - 1].fill == NULL)
        count--;
    if (count > 0)
        rc = list[count - 1].fill(db, err);
    return rc;
}

/* A database that a newer program has brought further. */
static hfd_rc check_newer(struct hfd_db *db, int64_t version, size_t count, struct hfd_err *err)
{
    int64_t min = NO_MIN;
    hfd_rc rc = hfd_db_shared(db) && version >= HFD_MIGRATE_META ? read_min(db, &min, err) : HFD_OK;

    if (rc != HFD_OK)
        return rc;
    if (min > (int64_t)count)
        return hfd_fail(err, HFD_INVALID,
                        "store: the database has schema version %lld, and this program knows "
                        "versions up to %zu. Start the newer hyperfleet-driver that wrote it, or "
                        "restore an older backup",
                        (long long)version, count);
    HFD_LOG(HFD_LOG_INFO, "the database has a newer schema, which this program may use",
            HFD_LOG_INT("version", version), HFD_LOG_INT("known", (int64_t)count));
    return HFD_OK;
}

static void log_odd(void *ctx, const char *text)
{
    (void)ctx;
    HFD_LOG(HFD_LOG_WARN, "the database has an object of others", HFD_LOG_CSTR("object", text));
}

hfd_rc hfd_migrate_check(struct hfd_db *db, const struct hfd_schema_check *known,
                         struct hfd_err *err)
{
    struct hfd_schema_check check = *known;
    int64_t version;
    hfd_rc rc = hfd_db_schema_version(db, &version, err);

    if (rc == HFD_OK && version < 0)
        rc = hfd_fail(err, HFD_CORRUPT, "store: the schema version is %lld", (long long)version);
    if (rc != HFD_OK)
        return rc;
    version %= HFD_MIGRATE_UNFILLED;
    check.newer = (uint64_t)version > check.count;
    if (check.newer)
        rc = check_newer(db, version, check.count, err);
    else
        check.count = (size_t)version;
    if (check.found == NULL)
        check.found = log_odd;
    return rc == HFD_OK ? hfd_db_check_schema(db, &check, err) : rc;
}

/*
 * A shared database that has rows waits for hfd_migrate_contract before a migration that contracts.
 * @param count  in: all; out: how many are applied now
 */
static hfd_rc find_end(const struct hfd_migration *list, int64_t version, size_t *count,
                       struct hfd_err *err)
{
    size_t end = (size_t)version;

    while (end < *count && !list[end].contracts)
        end++;
    for (size_t i = end; i < *count; i++)
        if (!list[i].contracts)
            return hfd_fail(err, HFD_CONFLICT,
                            "store: schema version %zu takes something away, and must be there "
                            "before version %zu. End all servers of earlier versions, and run "
                            "`hyperfleet-driver migrate --contract`",
                            end + 1, i + 1);
    *count = end;
    return HFD_OK;
}

/*
 * Says from which version on programs may use the database: from this one on with `contract`, or
 * when nothing was said.
 */
static hfd_rc settle_min(struct hfd_db *db, int64_t version, bool contract, struct hfd_err *err)
{
    int64_t min = NO_MIN;
    hfd_rc rc = version >= HFD_MIGRATE_META ? read_min(db, &min, err) : HFD_OK;

    if (rc != HFD_OK || version < HFD_MIGRATE_META || min == version ||
        (min != NO_MIN && !contract))
        return rc;
    rc = hfd_db_begin(db, err);
    if (rc != HFD_OK)
        return rc;
    rc = write_min(db, version, err);
    return hfd_db_end(db, rc, err);
}

/* @param stored  the version, as it is stored */
static hfd_rc apply_from(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                         int64_t stored, struct hfd_err *err)
{
    int64_t due = stored >= HFD_MIGRATE_UNFILLED ? HFD_MIGRATE_UNFILLED : 0;
    int64_t version = stored - due;
    const bool is_new = version == 0;
    hfd_rc rc = HFD_OK;

    if ((uint64_t)version == count && due == 0)
        return apply(db, NULL, version, err);
    for (; rc == HFD_OK && (uint64_t)version < count; version++) {
        due = list[version].fill != NULL ? HFD_MIGRATE_UNFILLED : due;
        rc = apply(db, &list[version], due + version + 1, err);
        if (rc == HFD_OK && !is_new)
            HFD_LOG(HFD_LOG_INFO, "store schema migrated",
                    HFD_LOG_CSTR("migration", list[version].name),
                    HFD_LOG_INT("version", version + 1));
    }
    if (rc == HFD_OK && is_new)
        HFD_LOG(HFD_LOG_INFO, "store made", HFD_LOG_INT("schema", version));
    if (rc == HFD_OK && due != 0)
        rc = fill(db, list, count, err);
    return rc == HFD_OK && due != 0 ? apply(db, NULL, version, err) : rc;
}

static hfd_rc advance(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                      bool contract, struct hfd_err *err)
{
    int64_t stored, version;
    hfd_rc rc = hfd_db_schema_version(db, &stored, err);

    if (rc != HFD_OK)
        return rc;
    version = stored % HFD_MIGRATE_UNFILLED;
    if ((uint64_t)version > count)
        return apply(db, NULL, stored, err);
    contract = contract || version == 0 || !hfd_db_shared(db);
    if (!contract)
        rc = find_end(list, version, &count, err);
    if (rc == HFD_OK)
        rc = apply_from(db, list, count, stored, err);
    return rc == HFD_OK ? settle_min(db, (int64_t)count, contract, err) : rc;
}

/*
 * Refuses while an older program lives, and says in the same transaction that none may use the
 * database any more. So one that starts or wakes up meanwhile is refused at its next sign of life
 * (driver/replica/keeper.h). A database that is newer than `count` is left as it is.
 */
static hfd_rc claim(struct hfd_db *db, size_t count, struct hfd_err *err)
{
    int64_t version;
    hfd_rc rc = hfd_db_schema_version(db, &version, err);

    version %= HFD_MIGRATE_UNFILLED;
    if (rc != HFD_OK || version < HFD_MIGRATE_META || version > (int64_t)count)
        return rc;
    rc = hfd_db_begin(db, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_alone_check(db, (int64_t)count, err);
    if (rc == HFD_OK)
        rc = write_min(db, (int64_t)count, err);
    return hfd_db_end(db, rc, err);
}

static hfd_rc migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                      bool contract, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc unlocked, rc = hfd_db_schema_lock(db, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_migrate_check(db, &(struct hfd_schema_check){.list = list, .count = count}, err);
    if (rc == HFD_OK && contract)
        rc = claim(db, count, err);
    if (rc == HFD_OK)
        rc = advance(db, list, count, contract, err);
    unlocked = hfd_db_schema_unlock(db, rc == HFD_OK && count >= hfd_migrations_count, &why);
    if (rc == HFD_OK && unlocked != HFD_OK)
        rc = hfd_fail(err, unlocked, "%s", why.msg);
    return rc;
}

hfd_rc hfd_migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                   struct hfd_err *err)
{
    return migrate(db, list, count, false, err);
}

hfd_rc hfd_migrate_contract(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                            struct hfd_err *err)
{
    return migrate(db, list, count, true, err);
}
