#include "store/sqlite/pragma.h"

#include "store/sqlite/engine.h"

static const char sql_like_cases[] = "SELECT 'a' LIKE 'A'";

hfd_rc hfd_pragma_text(struct hfd_db *db, const char *name, char *out, size_t cap,
                       struct hfd_err *err)
{
    char sql[64];
    sqlite3_stmt *st = NULL;
    int sqlite;

    out[0] = '\0';
    (void)snprintf(sql, sizeof(sql), "PRAGMA %s", name);
    sqlite = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_step(st);
    if (sqlite == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(st, 0);

        if (text == NULL)
            sqlite = SQLITE_NOMEM;
        else
            (void)snprintf(out, cap, "%s", (const char *)text);
    }
    (void)sqlite3_finalize(st);
    return sqlite == SQLITE_ROW || sqlite == SQLITE_DONE ? HFD_OK
                                                         : hfd_sqlite_fail(db, sqlite, sql, err);
}

static hfd_rc pragma_set(struct hfd_db *db, const char *name, const char *value,
                         struct hfd_err *err)
{
    char sql[64];

    (void)snprintf(sql, sizeof(sql), "PRAGMA %s=%s", name, value);
    return hfd_sqlite_exec(db, sql, err);
}

hfd_rc hfd_pragma_i64(struct hfd_db *db, const char *name, int64_t *out, struct hfd_err *err)
{
    char text[32];
    hfd_rc rc = hfd_pragma_text(db, name, text, sizeof(text), err);

    *out = 0;
    return rc == HFD_OK ? hfd_parse_i64(hfd_slice_of(text), INT64_MIN, INT64_MAX, out, err) : rc;
}

#define FOR_WRITER 1u
#define FOR_READER 2u
#define FOR_ALL (FOR_WRITER | FOR_READER)

/* clang-format off */
static const struct pragma {
    const char *name, *value, *read_back;
    unsigned modes;
} pragmas[] = { /* in this order: the change to WAL is itself synced */
    {"synchronous",        NULL,       NULL,       FOR_ALL}, /* from the seam: FULL */
    {"journal_mode",       "WAL",      "wal",      FOR_ALL},
    {"wal_autocheckpoint", "0",        "0",        FOR_ALL}, /* the writer's tidy does it, after the answers, and sees its failures */
    {"journal_size_limit", "67108864", "67108864", FOR_WRITER}, /* a log that a long reader let grow is cut back to this */
    {"foreign_keys",       "OFF",      "0",        FOR_ALL},
    {"temp_store",         "MEMORY",   "2",        FOR_ALL},
    {"trusted_schema",     "OFF",      "0",        FOR_ALL},
    {"cell_size_check",    "ON",       "1",        FOR_ALL},
    {"cache_size",         "-12288",   "-12288",   FOR_WRITER}, /* KiB */
    {"cache_size",         "-8192",    "-8192",    FOR_READER},
    {"query_only",         "ON",       "1",        FOR_READER},
};
/* clang-format on */

static hfd_rc apply_pragma(struct hfd_db *db, const struct pragma *p,
                           const struct hfd_pragma_levels *levels, struct hfd_err *err)
{
    const char *value = p->value != NULL ? p->value : levels->synchronous;
    const char *expected = p->read_back != NULL ? p->read_back : levels->synchronous_read_back;
    char got[32];
    hfd_rc rc;

    rc = pragma_set(db, p->name, value, err);
    if (rc == HFD_OK)
        rc = hfd_pragma_text(db, p->name, got, sizeof(got), err);
    if (rc == HFD_OK && strcmp(got, expected) != 0)
        rc = hfd_fail(err, HFD_IO, "store: PRAGMA %s=%s does not hold here: it is %s", p->name,
                      value, got);
    return rc;
}

/*
 * LIKE tells upper from lower case, as on other engines. The pragma cannot be read back, so its
 * effect is.
 */
static hfd_rc set_like(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    bool row = false;
    hfd_rc rc = pragma_set(db, "case_sensitive_like", "ON", err);

    if (rc == HFD_OK)
        rc = hfd_sqlite_prepare(db, sql_like_cases, &st, err);
    if (rc == HFD_OK)
        rc = hfd_sqlite_stmt_step(st, &row, err);
    if (rc == HFD_OK && (!row || hfd_sqlite_stmt_col_i64(st, 0) != 0))
        rc = hfd_fail(err, HFD_IO, "store: PRAGMA case_sensitive_like=ON does not hold here");
    hfd_sqlite_stmt_done(st);
    return rc;
}

hfd_rc hfd_pragmas_apply(struct hfd_db *db, const struct hfd_pragma_levels *levels,
                         struct hfd_err *err)
{
    const unsigned mode = db->mode == HFD_DB_WRITER ? FOR_WRITER : FOR_READER;

    for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++) {
        hfd_rc rc =
            (pragmas[i].modes & mode) != 0 ? apply_pragma(db, &pragmas[i], levels, err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
    }
    return set_like(db, err);
}
