/* See fold.h. Characters are folded one by one, whatever stands beside them. */
#include "store/sqlite/fold.h"

#include "driver/base/utf8.h"

#include <locale.h>
#include <string.h>
#include <wctype.h>

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

static void free_locale(void *unicode)
{
    freelocale(unicode);
}

int hfd_sqlite_fold(sqlite3 *handle)
{
    const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

    if (unicode == (locale_t)0)
        return SQLITE_OK;
    return sqlite3_create_function_v2(handle, "lower", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                      unicode, lower, NULL, NULL, free_locale);
}
