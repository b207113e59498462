/* Pure text. Thread: any. */
#include "store/sqlite/dialect.h"

#include "store/sqlite/engine.h"

#include <stdlib.h>

#define OURS "/*sqlite:"

char *hfd_sqlite_text(const char *sql)
{
    char *text = strdup(sql);
    char *at = text;

    while (at != NULL && (at = strstr(at, OURS)) != NULL) {
        char *end = strstr(at, "*/");

        if (end == NULL)
            break;
        memset(at, ' ', strlen(OURS));
        memset(end, ' ', 2);
        at = end;
    }
    return text;
}

void hfd_sqlite_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                              int path_at)
{
    (void)db;
    /* json_extract gives 1 and 0 for booleans. */
    hfd_buf_addf(sql,
                 "CASE json_type(%s, ?%d) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE "
                 "CAST(json_extract(%s, ?%d) AS TEXT) END",
                 column, path_at, column, path_at);
}

void hfd_sqlite_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                                int path_at)
{
    (void)db;
    hfd_buf_addf(
        sql, "CASE WHEN json_type(%s, ?%d) IN ('integer', 'real') THEN json_extract(%s, ?%d) END",
        column, path_at, column, path_at);
}

/*
 * A time is written "2026-01-31T12:00:00Z", with up to six digits behind a point where they are not
 * all 0.
 */
#define MICROSECONDS(time)                                                                         \
    "unixepoch(substr(" time ", 1, 19)) * 1000000 + CAST(substr(rtrim(substr(" time                \
    ", 21), 'Z') || '000000', 1, 6) AS INTEGER)"

void hfd_sqlite_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                              int type_at, enum hfd_db_condition what)
{
    static const char *const members[] = {
        [HFD_DB_STATUS] = "json_extract(e.value, '$.status')",
        [HFD_DB_LAST_UPDATED_TIME] = MICROSECONDS("json_extract(e.value, '$.last_updated_time')"),
        [HFD_DB_LAST_TRANSITION_TIME] =
            MICROSECONDS("json_extract(e.value, '$.last_transition_time')"),
        [HFD_DB_OBSERVED_GENERATION] = "json_extract(e.value, '$.observed_generation')",
    };

    (void)db;
    hfd_buf_addf(sql,
                 "(SELECT %s FROM json_each(%s) e WHERE json_extract(e.value, '$.type') = ?%d "
                 "ORDER BY e.key LIMIT 1)",
                 members[what], column, type_at);
}

hfd_slice hfd_sqlite_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, dotted.len * 3 + 8);
    hfd_buf_lit(&b, "$.\"");
    for (size_t i = 0; i < dotted.len; i++) {
        if (dotted.p[i] == '.')
            hfd_buf_lit(&b, "\".\"");
        else
            hfd_buf_addc(&b, dotted.p[i]);
    }
    hfd_buf_addc(&b, '"');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

hfd_slice hfd_sqlite_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    (void)db;
    return hfd_arena_printf(mem, "$.\"%.*s\"", HFD_SLICE_FMT(key));
}

struct hfd_db_like hfd_sqlite_sql_like(const struct hfd_db *db)
{
    (void)db;
    return (struct hfd_db_like){"hfd_like(", ", ", ")"};
}

struct hfd_db_like hfd_sqlite_sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    (void)db;
    (void)mem;
    return (struct hfd_db_like){"lower(", "", ")"};
}
