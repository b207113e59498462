/* See migrate.h. Thread: start-up. */
#include "store/migrate.h"

#include "driver/base/log.h"

/* @param version  as it is stored */
static hfd_rc apply(struct hfd_db *db, const struct hfd_migration *m, int64_t version,
                    struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_exec(db, m->sql, err);
    if (rc == HFD_OK)
        rc = hfd_db_set_schema_version(db, version, err);
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK) {
        hfd_db_rollback(db);
        return rc;
    }
    HFD_LOG(HFD_LOG_INFO, "store schema migrated", HFD_LOG_CSTR("migration", m->name),
            HFD_LOG_INT("version", version % HFD_MIGRATE_UNFILLED));
    return HFD_OK;
}

/*
 * Commits once at start, when no migration does. A disk that takes no writes is found before the
 * first request. (SQLite's readers also ask for the file's size in each transaction while the log
 * is empty.)
 */
static hfd_rc prove(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_set_schema_version(db, version, err);
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc;
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

static hfd_rc migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                      struct hfd_err *err)
{
    int64_t version, due;
    hfd_rc rc = hfd_db_schema_version(db, &version, err);

    if (rc != HFD_OK)
        return rc;
    if (version < 0)
        return hfd_fail(err, HFD_CORRUPT, "store: the schema version is %lld", (long long)version);
    due = version >= HFD_MIGRATE_UNFILLED ? HFD_MIGRATE_UNFILLED : 0;
    version -= due;
    if ((uint64_t)version > count)
        return hfd_fail(err, HFD_INVALID,
                        "store: the database has schema version %lld, and this program knows "
                        "versions up to %zu. Start the newer hyperfleet-driver that wrote it, or "
                        "restore an older backup",
                        (long long)version, count);
    if ((uint64_t)version == count && due == 0)
        return prove(db, version, err);
    for (; rc == HFD_OK && (uint64_t)version < count; version++) {
        due = list[version].fill != NULL ? HFD_MIGRATE_UNFILLED : due;
        rc = apply(db, &list[version], due + version + 1, err);
    }
    if (rc == HFD_OK && due != 0)
        rc = fill(db, list, count, err);
    return rc == HFD_OK && due != 0 ? prove(db, version, err) : rc;
}

hfd_rc hfd_migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                   struct hfd_err *err)
{
    hfd_rc rc = hfd_db_schema_lock(db, err);

    if (rc != HFD_OK)
        return rc;
    rc = migrate(db, list, count, err);
    hfd_db_schema_unlock(db);
    return rc;
}
