/* Bounded buffers, and the few formats that every document needs. See buf.h. */
#include "driver/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/utf8.h"

#define CAP_MIN 256

void hfd_buf_init(struct hfd_buf *b, size_t max_bytes)
{
    *b = (struct hfd_buf){.max_bytes = max_bytes};
}

void hfd_buf_fini(struct hfd_buf *b)
{
    if (b->budget != NULL)
        hfd_budget_give(b->budget, (int64_t)b->cap);
    free(b->p);
    hfd_buf_init(b, b->max_bytes);
}

void hfd_buf_reset(struct hfd_buf *b)
{
    b->len = 0;
    b->rc = HFD_OK;
}

/*
 * Makes room for n more bytes.
 * @return false when the buffer has failed
 */
static bool make_room(struct hfd_buf *b, size_t n)
{
    size_t cap;
    char *p;

    if (b->rc != HFD_OK)
        return false;
    if (n > b->max_bytes || b->len > b->max_bytes - n) {
        b->rc = HFD_LIMIT;
        return false;
    }
    if (n <= b->cap - b->len)
        return true;
    cap = b->cap < CAP_MIN ? CAP_MIN : b->cap;
    while (cap - b->len < n)
        cap = cap > b->max_bytes / 2 ? b->max_bytes : cap * 2;
    if (b->budget != NULL && !hfd_budget_take(b->budget, (int64_t)(cap - b->cap))) {
        b->rc = HFD_NOMEM;
        return false;
    }
    p = realloc(b->p, cap);
    if (p == NULL) {
        if (b->budget != NULL)
            hfd_budget_give(b->budget, (int64_t)(cap - b->cap));
        b->rc = HFD_NOMEM;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void hfd_buf_add(struct hfd_buf *b, hfd_slice s)
{
    if (s.len == 0 || !make_room(b, s.len))
        return;
    memcpy(b->p + b->len, s.p, s.len);
    b->len += s.len;
}

void hfd_buf_addc(struct hfd_buf *b, char c)
{
    if (make_room(b, 1))
        b->p[b->len++] = c;
}

void hfd_buf_addf(struct hfd_buf *b, const char *fmt, ...)
{
    char small[256];
    char *big;
    va_list ap;
    int n;

    if (b->rc != HFD_OK)
        return;
    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->rc = HFD_NOMEM; /* no other failure is possible for our own formats */
        return;
    }
    if ((size_t)n < sizeof(small)) {
        hfd_buf_add(b, (hfd_slice){small, (size_t)n});
        return;
    }
    if (!make_room(b, (size_t)n))
        return;
    /* vsnprintf needs a byte for its NUL, but the ceiling may leave none. */
    big = malloc((size_t)n + 1);
    if (big == NULL) {
        b->rc = HFD_NOMEM;
        return;
    }
    va_start(ap, fmt);
    n = vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    hfd_buf_add(b, (hfd_slice){big, (size_t)n});
    free(big);
}

void hfd_buf_show(struct hfd_buf *b, hfd_slice text)
{
    while (text.len > 0 && b->rc == HFD_OK) {
        char shown[HFD_FOREIGN_CHAR_MAX];
        size_t used = hfd_json_plain(text);

        if (used > 0)
            hfd_buf_add(b, (hfd_slice){text.p, used});
        else
            hfd_buf_add(b, (hfd_slice){shown, hfd_foreign_char(text, shown, &used)});
        text = (hfd_slice){text.p + used, text.len - used};
    }
}

void hfd_buf_mask(struct hfd_buf *b, size_t from)
{
    if (b->len > from)
        b->len = from + hfd_foreign_mask(b->p + from, b->len - from);
}

void hfd_buf_json_str(struct hfd_buf *b, hfd_slice s)
{
    size_t i = 0;

    hfd_buf_addc(b, '"');
    while (i < s.len && b->rc == HFD_OK) {
        char esc[HFD_JSON_ESCAPE_MAX];
        const size_t run = hfd_json_plain((hfd_slice){s.p + i, s.len - i});
        size_t used;
        size_t n;

        hfd_buf_add(b, (hfd_slice){s.p + i, run});
        i += run;
        if (i == s.len)
            break;
        n = hfd_json_escape((hfd_slice){s.p + i, s.len - i}, esc, &used);
        hfd_buf_add(b, (hfd_slice){esc, n});
        i += used;
    }
    hfd_buf_addc(b, '"');
}

void hfd_buf_i64(struct hfd_buf *b, int64_t v)
{
    char text[sizeof("-9223372036854775808") - 1];
    size_t at = sizeof(text);
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do {
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (v < 0)
        text[--at] = '-';
    hfd_buf_add(b, (hfd_slice){text + at, sizeof(text) - at});
}

void hfd_buf_count(struct hfd_buf *b, int64_t v)
{
    if (v >= 1000) {
        hfd_buf_count(b, v / 1000);
        hfd_buf_addf(b, ",%03d", (int)(v % 1000));
    } else {
        hfd_buf_i64(b, v);
    }
}

void hfd_buf_clock(struct hfd_buf *b, int64_t us)
{
    const long long s = us / 1000000;

    if (s >= 3600)
        hfd_buf_addf(b, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        hfd_buf_addf(b, "%lld:%02lld", s / 60, s % 60);
}

void hfd_buf_about(struct hfd_buf *b, int64_t us)
{
    static const struct {
        int64_t from_s, unit_s;
        const char *unit;
    } units[] = {{100 * 60, 3600, "h"}, {100, 60, "min"}, {1, 1, "s"}};
    const int64_t s =
        us < HFD_US_PER_S ? 1 : us / HFD_US_PER_S + (us % HFD_US_PER_S >= HFD_US_PER_S / 2);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (s >= units[i].from_s) {
            hfd_buf_i64(b, (s + units[i].unit_s / 2) / units[i].unit_s);
            hfd_buf_addf(b, " %s", units[i].unit);
            return;
        }
}

void hfd_buf_json_time(struct hfd_buf *b, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];
    size_t n = hfd_time_format(at_us, text);

    hfd_buf_addc(b, '"');
    hfd_buf_add(b, (hfd_slice){text, n});
    hfd_buf_addc(b, '"');
}

/* The value of a character; `last` holds those of 62 and 63. */
static int sextet(char c, const char last[2])
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

/*
 * Cuts correct padding off. Wrong padding stays, and fails later as a character outside the
 * alphabet.
 */
static hfd_slice unpad(hfd_slice text)
{
    if (text.len == 0 || text.len % 4 != 0)
        return text;
    for (int i = 0; i < 2 && text.p[text.len - 1] == '='; i++)
        text.len--;
    return text;
}

static hfd_rc decode(hfd_slice text, const char last[2], hfd_slice room, size_t *len_out)
{
    unsigned char *out = (unsigned char *)(uintptr_t)room.p;
    unsigned bits = 0;
    unsigned have = 0;
    size_t len = 0;

    *len_out = 0;
    text = unpad(text);
    if (text.len % 4 == 1)
        return HFD_INVALID;
    for (size_t i = 0; i < text.len; i++) {
        int v = sextet(text.p[i], last);

        if (v < 0)
            return HFD_INVALID;
        bits = (bits << 6 | (unsigned)v) & 0xffffu;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (len == room.len)
            return HFD_INVALID;
        out[len++] = (unsigned char)(bits >> have & 0xffu);
    }
    /* The bits left over must be zero: each byte string has exactly one text. */
    if ((bits & ((1u << have) - 1)) != 0)
        return HFD_INVALID;
    *len_out = len;
    return HFD_OK;
}

hfd_rc hfd_base64url_decode(hfd_slice text, unsigned char *out, size_t cap, size_t *len_out)
{
    return decode(text, "-_", (hfd_slice){(const char *)out, cap}, len_out);
}

hfd_rc hfd_base64_decode(hfd_slice text, unsigned char *out, size_t cap, size_t *len_out)
{
    return decode(text, "+/", (hfd_slice){(const char *)out, cap}, len_out);
}

hfd_rc hfd_buf_finish(struct hfd_buf *b, hfd_slice *out, struct hfd_err *err)
{
    *out = b->rc == HFD_OK ? hfd_buf_slice(b) : HFD_SLICE_NONE;
    if (b->rc == HFD_LIMIT)
        return hfd_fail(err, HFD_LIMIT, "a document would be larger than %zu bytes", b->max_bytes);
    return b->rc == HFD_OK ? HFD_OK : hfd_fail_nomem(err, "build a document");
}

hfd_rc hfd_buf_to_arena(struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = hfd_buf_finish(b, &text, err);

    *out = rc == HFD_OK ? hfd_arena_dup(mem, text) : HFD_SLICE_NONE;
    if (rc == HFD_OK && out->p == NULL)
        rc = hfd_fail_nomem(err, "build a document");
    hfd_buf_fini(b);
    return rc;
}
