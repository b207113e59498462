/* See like.h. */
#include "store/sqlite/like.h"

#include "driver/base/utf8.h"

#include <string.h>

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
