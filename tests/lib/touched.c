/* See touched.h. */
#include "tests/lib/touched.h"

#include "driver/base/check.h"
#include "store/migrate.h"
#include "store/sqlite/dialect.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3 *db; /* the schema, without rows */

/* The questions about a statement, answered while SQLite prepares it. */
struct asked {
    const char *only;      /* the table that it says it touches; NULL = any */
    const char *wanted[2]; /* tables that it is to read; NULL = none */
    bool read[2];          /* it does */
    char other[64];        /* a table that it touches beside `only` */
};

static int on_access(void *ctx, int what, const char *table, const char *column, const char *base,
                     const char *by)
{
    struct asked *a = ctx;

    (void)column, (void)base, (void)by;
    if ((what != SQLITE_READ && what != SQLITE_INSERT && what != SQLITE_UPDATE &&
         what != SQLITE_DELETE) ||
        strcmp(table, "json_each") == 0)
        return SQLITE_OK;
    for (int i = 0; i < 2; i++)
        a->read[i] = a->read[i] || (a->wanted[i] != NULL && strcmp(table, a->wanted[i]) == 0);
    if (a->only != NULL && strcmp(table, a->only) != 0)
        (void)snprintf(a->other, sizeof(a->other), "%s", table);
    return SQLITE_OK;
}

static void open_schema(void)
{
    HFD_ASSERT(sqlite3_open(":memory:", &db) == SQLITE_OK);
    HFD_ASSERT(hfd_sqlite_fold(db) == SQLITE_OK);
    for (size_t i = 0; i < hfd_migrations_count; i++) {
        char *sql = hfd_sqlite_text(hfd_migrations[i].sql);

        HFD_ASSERT(sql != NULL && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
        free(sql);
    }
}

static bool has_column(const char *table, const char *column)
{
    return sqlite3_table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) ==
           SQLITE_OK;
}

static hfd_rc judge(const struct hfd_query *q, const char *sql, struct hfd_err *err)
{
    struct asked a = {.only = q->mixed ? NULL : q->table->name};
    sqlite3_stmt *st;
    int sqlite;

    if (q->table->name != NULL && !has_column(q->table->name, NULL))
        return HFD_OK;
    for (size_t i = 0; a.only != NULL && i < HFD_BY_MAX && q->by[i] != NULL; i++)
        if (!has_column(a.only, q->by[i]))
            return hfd_fail(err, HFD_INVALID, "%s has no column %s", a.only, q->by[i]);
    if (q->empty != NULL) {
        a.wanted[0] = q->empty->table;
        a.wanted[1] = q->empty->other;
        if (!has_column(q->empty->table, q->empty->column))
            return hfd_fail(err, HFD_INVALID, "%s has no such column", q->empty->table);
    }
    HFD_ASSERT(sqlite3_set_authorizer(db, on_access, &a) == SQLITE_OK);
    sqlite = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    (void)sqlite3_finalize(st);
    (void)sqlite3_set_authorizer(db, NULL, NULL);
    if (sqlite != SQLITE_OK)
        return HFD_OK;
    for (int i = 0; i < 2; i++)
        if (a.wanted[i] != NULL && !a.read[i])
            return hfd_fail(err, HFD_INVALID, "it does not read %s", a.wanted[i]);
    return a.other[0] == '\0'
               ? HFD_OK
               : hfd_fail(err, HFD_INVALID, "it says that it touches %s, not %s", a.only, a.other);
}

hfd_rc test_touched(const struct hfd_query *query, const char *sql, struct hfd_err *err)
{
    hfd_rc rc;

    (void)pthread_mutex_lock(&lock);
    if (db == NULL)
        open_schema();
    rc = judge(query, sql, err);
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

hfd_rc __real_hfd_query_sql(struct hfd_query *query, const char **out, struct hfd_err *err);
hfd_rc __wrap_hfd_query_sql(struct hfd_query *query, const char **out, struct hfd_err *err);

/* A statement is judged when its text is made. */
hfd_rc __wrap_hfd_query_sql(struct hfd_query *query, const char **out, struct hfd_err *err)
{
    const bool made = atomic_load(&query->made) != NULL;
    const hfd_rc rc = __real_hfd_query_sql(query, out, err);
    struct hfd_err wrong;

    if (rc != HFD_OK || made || test_touched(query, *out, &wrong) == HFD_OK)
        return rc;
    (void)fprintf(stderr, "%s: %s\n", *out, wrong.msg);
    abort();
}
