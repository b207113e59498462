/* Pure text. Thread: any. */
#include "store/postgres/dialect.h"

#include "store/postgres/conn.h"

/* json and not jsonb: a member that is an object stays as it is written. */
void hfd_pg_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at)
{
    (void)db;
    hfd_buf_addf(sql, "(%s::json #>> ?%d::text[])", column, path_at);
}

void hfd_pg_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at)
{
    (void)db;
    hfd_buf_addf(sql,
                 "CASE json_typeof(%s::json #> ?%d::text[]) WHEN 'number' THEN "
                 "(%s::json #>> ?%d::text[])::numeric END",
                 column, path_at, column, path_at);
}

#define MICROSECONDS(time) "(EXTRACT(EPOCH FROM (" time ")::timestamptz) * 1000000)::bigint"

void hfd_pg_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what)
{
    static const char *const members[] = {
        [HFD_DB_STATUS] = "e.value->>'status'",
        [HFD_DB_LAST_UPDATED_TIME] = MICROSECONDS("e.value->>'last_updated_time'"),
        [HFD_DB_LAST_TRANSITION_TIME] = MICROSECONDS("e.value->>'last_transition_time'"),
        [HFD_DB_OBSERVED_GENERATION] = "(e.value->>'observed_generation')::bigint",
    };

    (void)db;
    hfd_buf_addf(sql,
                 "(SELECT %s FROM json_array_elements(%s::json) WITH ORDINALITY e (value, at) "
                 "WHERE e.value->>'type' = ?%d ORDER BY e.at LIMIT 1)",
                 members[what], column, type_at);
}

/* Adds a key to a path as an element of a literal array. */
static void add_key(struct hfd_buf *b, hfd_slice key)
{
    hfd_buf_addc(b, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (key.p[i] == '"' || key.p[i] == '\\')
            hfd_buf_addc(b, '\\');
        hfd_buf_addc(b, key.p[i]);
    }
    hfd_buf_addc(b, '"');
}

hfd_slice hfd_pg_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, dotted.len * 3 + 8);
    hfd_buf_addc(&b, '{');
    for (;;) {
        const char *dot = dotted.len > 0 ? memchr(dotted.p, '.', dotted.len) : NULL;
        const size_t len = dot != NULL ? (size_t)(dot - dotted.p) : dotted.len;

        add_key(&b, (hfd_slice){dotted.p, len});
        if (dot == NULL)
            break;
        hfd_buf_addc(&b, ',');
        dotted = (hfd_slice){dot + 1, dotted.len - len - 1};
    }
    hfd_buf_addc(&b, '}');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

hfd_slice hfd_pg_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, key.len * 2 + 8);
    hfd_buf_addc(&b, '{');
    add_key(&b, key);
    hfd_buf_addc(&b, '}');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

struct hfd_db_like hfd_pg_sql_like(const struct hfd_db *db)
{
    (void)db;
    return (struct hfd_db_like){"(", " LIKE ", " ESCAPE '\\')"};
}

struct hfd_db_like hfd_pg_sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    const hfd_slice end = db->fold[0] != '\0' ? hfd_arena_printf(mem, ") COLLATE \"%s\")", db->fold)
                                              : HFD_SLICE("))");

    return (struct hfd_db_like){"lower((", "", end.p};
}
