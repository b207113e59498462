#include "tests/lib/sqlite_burst.h"

#include "store/sqlite/conn.h"

#include <sqlite3.h>

#define COLUMNS_MAX 64

static hfd_rc write_one(struct hfd_db *inner, const struct hfd_write_set *set,
                        const struct hfd_write *w, struct hfd_err *err)
{
    int64_t changed = 0;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(inner, set->shape->of->sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_gather_bind(st, w->values, set->shape->params);
    rc = hfd_stmt_run(st, &changed, err);
    if (rc == HFD_OK && set->expects_one && changed != 1)
        rc = hfd_fail(err, HFD_CONFLICT, "not one row");
    return rc;
}

static struct hfd_value value_of(sqlite3_stmt *st, int at)
{
    const int type = sqlite3_column_type(st, at);
    struct hfd_value v = {.kind = HFD_VALUE_NONE, .null = true};

    if (type == SQLITE_INTEGER)
        return (struct hfd_value){HFD_VALUE_I64, false, {.i64 = sqlite3_column_int64(st, at)}};
    if (type == SQLITE_FLOAT)
        return (struct hfd_value){HFD_VALUE_F64, false, {.f64 = sqlite3_column_double(st, at)}};
    if (type == SQLITE_NULL)
        return v;
    v.kind = type == SQLITE_TEXT ? HFD_VALUE_TEXT : HFD_VALUE_BLOB;
    v.null = false;
    v.as.bytes.p = sqlite3_column_blob(st, at);
    v.as.bytes.len = (size_t)sqlite3_column_bytes(st, at);
    return v;
}

static hfd_rc read_one(struct hfd_db *inner, struct hfd_knowns *knowns, struct hfd_known *known,
                       struct hfd_err *err)
{
    struct hfd_value cells[COLUMNS_MAX];
    struct hfd_stmt *st;
    bool row = true;
    hfd_rc rc = hfd_db_prepare(inner, known->sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_gather_bind(st, known->values, known->shape->params);
    while (rc == HFD_OK && row) {
        const int columns = sqlite3_column_count(st->handle);

        rc = hfd_stmt_step(st, &row, err);
        for (int i = 0; rc == HFD_OK && row && i < columns; i++)
            cells[i] = value_of(st->handle, i);
        if (rc == HFD_OK && row)
            rc = hfd_known_add_row(knowns, known, cells, columns, err);
    }
    hfd_stmt_done(st);
    return rc;
}

hfd_rc sqlite_burst(struct hfd_db *inner, struct hfd_burst *burst, struct hfd_err *err)
{
    hfd_rc rc = burst->begins ? hfd_db_begin(inner, err) : HFD_OK;

    for (const struct hfd_write_table *t = burst->writes; t != NULL; t = t->next)
        for (const struct hfd_write_set *s = t->first; rc == HFD_OK && s != NULL; s = s->next)
            for (const struct hfd_write *w = s->first; rc == HFD_OK && w != NULL; w = w->next)
                rc = write_one(inner, s, w, err);
    for (struct hfd_known *k = burst->reads; rc == HFD_OK && k != NULL; k = k->in_wanted)
        rc = read_one(inner, burst->knowns, k, err);
    return rc == HFD_OK && burst->commits ? hfd_db_commit(inner, err) : rc;
}
