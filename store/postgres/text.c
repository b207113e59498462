#include "store/postgres/text.h"

#include <stdlib.h>
#include <string.h>

#define OURS "/*postgres:"
#define OTHERS "/*sqlite:"

/* Returns where a quoted text or a comment that begins here ends; else `at`. */
static size_t end_of_piece(hfd_slice sql, size_t at)
{
    const char c = sql.p[at];
    const char *end;

    if (c == '\'' || c == '"') {
        end = memchr(sql.p + at + 1, c, sql.len - at - 1);
        return end != NULL ? (size_t)(end - sql.p) + 1 : sql.len;
    }
    if (c == '-' && at + 1 < sql.len && sql.p[at + 1] == '-') {
        end = memchr(sql.p + at, '\n', sql.len - at);
        return end != NULL ? (size_t)(end - sql.p) : sql.len;
    }
    return at;
}

char *hfd_pg_placeholders(hfd_slice sql, int *params)
{
    char *out = malloc(sql.len + 1);
    size_t at = 0;

    *params = 0;
    if (out == NULL)
        return NULL;
    while (at < sql.len) {
        const size_t end = end_of_piece(sql, at);
        int n = 0;

        if (end > at) {
            memcpy(out + at, sql.p + at, end - at);
            at = end;
            continue;
        }
        out[at] = sql.p[at];
        if (sql.p[at++] != '?')
            continue;
        out[at - 1] = '$';
        for (; at < sql.len && sql.p[at] >= '0' && sql.p[at] <= '9'; at++) {
            out[at] = sql.p[at];
            n = n > HFD_PG_PARAMS_MAX ? n : n * 10 + (sql.p[at] - '0');
        }
        *params = n > *params ? n : *params;
    }
    out[sql.len] = '\0';
    return out;
}

/* Blanks the marks of each comment that begins so; its text too unless `keep`. */
static void open_comments(char *text, const char *mark, bool keep)
{
    char *at = text;

    while ((at = strstr(at, mark)) != NULL) {
        char *end = strstr(at, "*/");

        if (end == NULL)
            break;
        memset(at, ' ', keep ? strlen(mark) : (size_t)(end - at));
        memset(end, ' ', 2);
        at = end;
    }
}

char *hfd_pg_comments(const char *sql)
{
    char *text = strdup(sql);

    if (text == NULL)
        return NULL;
    open_comments(text, OTHERS, false);
    open_comments(text, OURS, true);
    return text;
}
