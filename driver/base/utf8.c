/* UTF-8 as in RFC 3629, escapes as in RFC 8259. */
#include "driver/base/utf8.h"

#include <endian.h>

/*
 * The forms of a character by its first byte, with the range of its second byte (RFC 3629, section
 * 4).
 */
static const struct form {
    unsigned char first_min, first_max;
    unsigned char len;
    unsigned char second_min, second_max;
} forms[] = {
    {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf}, /* nothing overlong */
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, /* no surrogate */
    {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f}, /* up to U+10FFFF */
};

static bool in_range(unsigned char c, unsigned char min, unsigned char max)
{
    return c >= min && c <= max;
}

static bool begins_with_form(const struct form *f, hfd_slice s)
{
    if (s.len < f->len || !in_range((unsigned char)s.p[1], f->second_min, f->second_max))
        return false;
    for (size_t i = 2; i < f->len; i++)
        if (!in_range((unsigned char)s.p[i], 0x80, 0xbf))
            return false;
    return true;
}

size_t hfd_utf8_len(hfd_slice s)
{
    unsigned char first = s.len > 0 ? (unsigned char)s.p[0] : 0;

    if (first < 0x80)
        return s.len > 0 ? 1 : 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (in_range(first, forms[i].first_min, forms[i].first_max))
            return begins_with_form(&forms[i], s) ? forms[i].len : 0;
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

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

/* Marks the first byte that is zero by its highest bit; behind it any bits may be set. */
static uint64_t mark_zero(uint64_t v)
{
    return (v - EACH_BYTE(1)) & ~v & EACH_BYTE(0x80);
}

/* The same for the first byte that is not plain. Returns 0 if all eight are. */
static uint64_t mark_not_plain(uint64_t v)
{
    const uint64_t control = (v - EACH_BYTE(0x20)) & ~v, high = v;

    return ((control | high) & EACH_BYTE(0x80)) | mark_zero(v ^ EACH_BYTE('"')) |
           mark_zero(v ^ EACH_BYTE('\\')) | mark_zero(v ^ EACH_BYTE(0x7f));
}

size_t hfd_json_plain(hfd_slice s)
{
    size_t n = 0;

    for (uint64_t v; s.len - n >= sizeof(v); n += sizeof(v)) {
        uint64_t mark;

        memcpy(&v, s.p + n, sizeof(v));
        mark = mark_not_plain(le64toh(v));
        if (mark != 0)
            return n + (size_t)__builtin_ctzll(mark) / 8;
    }
    while (n < s.len && is_plain(s.p[n]))
        n++;
    return n;
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
