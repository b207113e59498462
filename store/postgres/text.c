#include "store/postgres/text.h"

#include "driver/base/buf.h"

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

char *hfd_pg_placeholders(hfd_slice sql, const char *from, int *params)
{
    size_t at = 0, count = 0;
    struct hfd_buf b;
    char *out;

    *params = 0;
    for (size_t i = 0; i < sql.len; i++)
        count += sql.p[i] == '?';
    hfd_buf_init(&b, sql.len + count * strlen(from) + 1);
    while (at < sql.len) {
        const size_t end = end_of_piece(sql, at);
        int n = 0;

        if (end > at || sql.p[at] != '?') {
            const size_t to = end > at ? end : at + 1;

            hfd_buf_add(&b, (hfd_slice){sql.p + at, to - at});
            at = to;
            continue;
        }
        hfd_buf_add(&b, hfd_slice_of(from));
        for (at++; at < sql.len && sql.p[at] >= '0' && sql.p[at] <= '9'; at++) {
            hfd_buf_addc(&b, sql.p[at]);
            n = n > HFD_PG_PARAMS_MAX ? n : n * 10 + (sql.p[at] - '0');
        }
        *params = n > *params ? n : *params;
    }
    hfd_buf_addc(&b, '\0');
    out = b.rc == HFD_OK ? strdup(b.p) : NULL;
    hfd_buf_fini(&b);
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
