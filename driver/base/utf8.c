/* UTF-8 as in RFC 3629, escapes as in RFC 8259. */
#include "driver/base/utf8.h"

static bool is_tail(char c)
{
    return ((unsigned char)c & 0xc0u) == 0x80u;
}

size_t hfd_utf8_len(hfd_slice s)
{
    unsigned char c0 = s.len > 0 ? (unsigned char)s.p[0] : 0;
    unsigned char c1 = s.len > 1 ? (unsigned char)s.p[1] : 0;

    if (s.len == 0)
        return 0;
    if (c0 < 0x80)
        return 1;
    if (s.len < 2 || !is_tail(s.p[1]))
        return 0;
    if (c0 >= 0xc2 && c0 <= 0xdf)
        return 2;
    if (s.len < 3 || !is_tail(s.p[2]))
        return 0;
    if (c0 >= 0xe0 && c0 <= 0xef) /* neither overlong nor a surrogate */
        return (c0 == 0xe0 && c1 < 0xa0) || (c0 == 0xed && c1 > 0x9f) ? 0 : 3;
    if (s.len < 4 || !is_tail(s.p[3]))
        return 0;
    if (c0 >= 0xf0 && c0 <= 0xf4) /* U+10000 to U+10FFFF */
        return (c0 == 0xf0 && c1 < 0x90) || (c0 == 0xf4 && c1 > 0x8f) ? 0 : 4;
    return 0;
}

static size_t escape_ascii(char c, char *out)
{
    static const char hex[] = "0123456789abcdef";
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    const char *at = c != '\0' ? strchr(plain, c) : NULL;
    unsigned char u = (unsigned char)c;

    if (at != NULL) {
        out[0] = '\\';
        out[1] = letter[at - plain];
        return 2;
    }
    if (u >= 0x20 && u != 0x7f) {
        out[0] = c;
        return 1;
    }
    memcpy(out, "\\u00", 4);
    out[4] = hex[u >> 4];
    out[5] = hex[u & 0xfu];
    return 6;
}

size_t hfd_json_escape(hfd_slice s, char out[HFD_JSON_ESCAPE_MAX], size_t *used)
{
    size_t n = hfd_utf8_len(s);

    if (n == 0) {
        *used = 1;
        memcpy(out, "\xef\xbf\xbd", 3);
        return 3;
    }
    *used = n;
    if (n == 1)
        return escape_ascii(s.p[0], out);
    memcpy(out, s.p, n);
    return n;
}
