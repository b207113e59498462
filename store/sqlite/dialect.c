/* See dialect.h. */
#include "store/sqlite/dialect.h"

#include "driver/base/utf8.h"
#include "store/sqlite/conn.h"

#include <sqlite3.h>

#include <locale.h>
#include <string.h>
#include <wctype.h>

/* ---- dialect ---- */

/* Pure text. Thread: any. */

#define OURS "/*sqlite:"

char *hfd_sqlite_text(const char *sql)
{
    char *dialect_text = strdup(sql);
    char *at = dialect_text;

    while (at != NULL && (at = strstr(at, OURS)) != NULL) {
        char *end = strstr(at, "*/");

        if (end == NULL)
            break;
        memset(at, ' ', strlen(OURS));
        memset(end, ' ', 2);
        at = end;
    }
    return dialect_text;
}

static void sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at)
{
    (void)db;
    /* json_extract gives 1 and 0 for booleans. */
    hfd_buf_addf(sql,
                 "CASE json_type(%s, ?%d) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE "
                 "CAST(json_extract(%s, ?%d) AS TEXT) END",
                 column, path_at, column, path_at);
}

static void sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
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

static void sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
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

static hfd_slice json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, dotted.len * 3 + 8);
    hfd_buf_lit(&b, "$.\"");
    for (size_t i = 0;

         i < dotted.len;

         i++) {
        if (dotted.p[i] == '.')
            hfd_buf_lit(&b, "\".\"");
        else
            hfd_buf_addc(&b, dotted.p[i]);
    }
    hfd_buf_addc(&b, '"');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

static hfd_slice json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    (void)db;
    return hfd_arena_printf(mem, "$.\"%.*s\"", HFD_SLICE_FMT(key));
}

static struct hfd_db_like sql_like(const struct hfd_db *db)
{
    (void)db;
    return (struct hfd_db_like){"hfd_like(", ", ", ")"};
}

static struct hfd_db_like sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    (void)db;
    (void)mem;
    return (struct hfd_db_like){"lower(", "", ")"};
}

const struct hfd_engine_dialect hfd_sqlite_dialect = {
    .sql_json_text = sql_json_text,
    .sql_json_number = sql_json_number,
    .sql_like = sql_like,
    .sql_fold = sql_fold,
    .sql_condition = sql_condition,
    .json_path = json_path,
    .json_key = json_key,
};

/* ---- like ---- */

#define STEPS_MASK 0xffffu /* between two questions if the statement is to end */

enum match {
    MATCH_NO,
    MATCH_YES,
    MATCH_ENDED
};

static size_t char_len(hfd_slice s)
{
    const size_t len = hfd_utf8_len(s);

    return len > 0 ? len : 1;
}

static hfd_slice behind(hfd_slice s, size_t bytes)
{
    return (hfd_slice){s.p + bytes, s.len - bytes};
}

/*
 * Compares the first piece of the pattern, which is no %, with the first character of the text.
 * @return false: they differ; else both are behind it
 */
static bool step(hfd_slice *pattern, hfd_slice *text)
{
    hfd_slice p = *pattern;

    if (p.len == 0)
        return false;
    if (p.p[0] == '_') {
        *pattern = behind(p, 1);
        *text = behind(*text, char_len(*text));
        return true;
    }
    if (p.p[0] == '\\')
        p = behind(p, 1);
    if (p.len == 0 || p.p[0] != text->p[0])
        return false;
    *pattern = behind(p, 1);
    *text = behind(*text, 1);
    return true;
}

/* After a piece that differs, the last % takes one character more. */
static enum match match(const struct hfd_db *db, hfd_slice pattern, hfd_slice text)
{
    hfd_slice rest = HFD_SLICE_NONE, from = HFD_SLICE_NONE; /* behind the last %, and its text */
    unsigned steps = 0;

    while (text.len > 0) {
        if ((++steps & STEPS_MASK) == 0 && db->stop != NULL && db->stop(db->stop_ctx))
            return MATCH_ENDED;
        if (pattern.len > 0 && pattern.p[0] == '%') {
            rest = pattern = behind(pattern, 1);
            from = text;
            if (rest.len == 0)
                return MATCH_YES;
        } else if (!step(&pattern, &text)) {
            if (rest.p == NULL)
                return MATCH_NO;
            from = behind(from, char_len(from));
            pattern = rest;
            text = from;
        }
    }
    while (pattern.len > 0 && pattern.p[0] == '%')
        pattern = behind(pattern, 1);
    return pattern.len == 0 ? MATCH_YES : MATCH_NO;
}

static void like(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    const char *pattern = (const char *)sqlite3_value_text(argv[1]);
    enum match m;

    (void)argc;
    if (text == NULL || pattern == NULL)
        return; /* NULL, or no memory, which SQLite has seen */
    m = match(sqlite3_user_data(ctx), hfd_slice_of(pattern), hfd_slice_of(text));
    if (m == MATCH_ENDED)
        sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
    else
        sqlite3_result_int(ctx, m == MATCH_YES);
}

int hfd_sqlite_like(struct hfd_db *db)
{
    return sqlite3_create_function_v2(db->handle, "hfd_like", 2, SQLITE_UTF8, db, like, NULL, NULL,
                                      NULL);
}

/* ---- fold ---- */

/* Characters are folded one by one, whatever stands beside them. */

#define GROWTH 2 /* no letter of n bytes has a small one of more than 2 n */

static unsigned code_point(const char *p, size_t len)
{
    unsigned c = (unsigned char)p[0] & (0xffu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3fu);
    return c;
}

/* @return bytes written, up to 4 */
static size_t put(unsigned c, char *out)
{
    static const unsigned firsts[] = {0, 0x80, 0x800, 0x10000}; /* of one byte more */
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = 1;

    while (len < 4 && c >= firsts[len])
        len++;
    for (size_t i = len; i-- > 1; c >>= 6)
        out[i] = (char)(0x80u | (c & 0x3fu));
    out[0] = (char)(leads[len] | c);
    return len;
}

/* Bytes that are no UTF-8 stay as they are. */
static size_t fold(hfd_slice text, locale_t unicode, char *out)
{
    size_t n = 0;

    while (text.len > 0) {
        const size_t len = hfd_utf8_len(text);
        const char c = *text.p;

        if (len <= 1)
            out[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        else
            n += put(towlower_l(code_point(text.p, len), unicode), out + n);
        text.p += len > 0 ? len : 1;
        text.len -= len > 0 ? len : 1;
    }
    return n;
}

static void lower(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    const size_t len = (size_t)sqlite3_value_bytes(argv[0]);
    char *out;

    (void)argc;
    if (text == NULL)
        return; /* NULL, or no memory, which SQLite has seen */
    out = sqlite3_malloc64(GROWTH * (sqlite3_uint64)len + 1);
    if (out == NULL) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    sqlite3_result_text64(ctx, out, fold((hfd_slice){text, len}, sqlite3_user_data(ctx), out),
                          sqlite3_free, SQLITE_UTF8);
}

/* SQLite has it since 3.43. */
static void count_bytes(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_text(argv[0]) != NULL)
        sqlite3_result_int(ctx, sqlite3_value_bytes(argv[0]));
}

static void free_locale(void *unicode)
{
    freelocale(unicode);
}

int hfd_sqlite_fold(sqlite3 *handle)
{
    const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const int sqlite =
        sqlite3_create_function_v2(handle, "octet_length", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                   NULL, count_bytes, NULL, NULL, NULL);

    if (sqlite != SQLITE_OK) {
        if (unicode != (locale_t)0)
            freelocale(unicode);
        return sqlite;
    }
    if (unicode == (locale_t)0)
        return SQLITE_OK;
    return sqlite3_create_function_v2(handle, "lower", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                      unicode, lower, NULL, NULL, free_locale);
}
