/* Slices, and numbers from outside. See slice.h. */
#include "driver/base/slice.h"

#include <inttypes.h>

#include "driver/base/clock.h"

/* The most bytes of a wrong input that an error repeats. */
#define ECHO_MAX 40

static unsigned char to_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static hfd_slice shortened(hfd_slice s)
{
    return (hfd_slice){s.p, s.len < ECHO_MAX ? s.len : ECHO_MAX};
}

int hfd_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

hfd_slice hfd_slice_cut(hfd_slice *rest, char separator)
{
    const char *at = rest->len > 0 ? memchr(rest->p, separator, rest->len) : NULL;
    const hfd_slice head = {rest->p, at != NULL ? (size_t)(at - rest->p) : rest->len};
    const size_t used = head.len + (at != NULL);

    if (used > 0)
        *rest = (hfd_slice){rest->p + used, rest->len - used};
    return head;
}

hfd_slice hfd_slice_trim(hfd_slice s)
{
    while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (hfd_slice){s.p + 1, s.len - 1};
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

uint64_t hfd_slice_hash(uint64_t from, hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        from = (from ^ (unsigned char)s.p[i]) * UINT64_C(1099511628211);
    return from;
}

uint64_t hfd_slice_hash_end(uint64_t from, hfd_slice s)
{
    uint64_t end = 0;
    const size_t n = s.len < sizeof(end) ? s.len : sizeof(end);

    if (n > 0)
        memcpy(&end, s.p + s.len - n, n);
    return (from ^ end ^ s.len) * UINT64_C(0x9E3779B97F4A7C15);
}

bool hfd_slice_ieq(hfd_slice a, hfd_slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (to_lower(a.p[i]) != to_lower(b.p[i]))
            return false;
    return true;
}

bool hfd_slice_starts(hfd_slice s, hfd_slice prefix)
{
    return s.len >= prefix.len && hfd_slice_eq((hfd_slice){s.p, prefix.len}, prefix);
}

int hfd_slice_cmp(hfd_slice a, hfd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n > 0 ? memcmp(a.p, b.p, n) : 0;

    return c != 0 ? c : (a.len > b.len) - (a.len < b.len);
}

/*
 * Reads digits from *pos on as a number with the given sign.
 * @return false: no digit, or the number does not fit
 */
static bool read_digits(hfd_slice s, size_t *pos, bool negative, int64_t *out)
{
    size_t i = *pos;
    int64_t v = 0;

    for (; i < s.len && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
        int64_t d = s.p[i] - '0';

        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, negative ? -d : d, &v))
            return false;
    }
    if (i == *pos)
        return false;
    *pos = i;
    *out = v;
    return true;
}

hfd_rc hfd_parse_i64(hfd_slice text, int64_t min, int64_t max, int64_t *out, struct hfd_err *err)
{
    bool negative = text.len > 0 && text.p[0] == '-';
    size_t pos = negative ? 1 : 0;
    int64_t v = 0;

    *out = 0;
    if (!read_digits(text, &pos, negative, &v) || pos != text.len || v < min || v > max)
        return hfd_fail(err, HFD_INVALID,
                        "expected an integer from %" PRId64 " to %" PRId64 ", got \"%.*s\"", min,
                        max, HFD_SLICE_FMT(shortened(text)));
    *out = v;
    return HFD_OK;
}

#define DURATION_MAX_US                                                                            \
    (INT64_C(3653) * 24 * 3600 * HFD_US_PER_S) /* ten years, with their leap days */

/* Largest first; a text uses each unit at most once and in this order. */
static const struct unit {
    const char *name;
    int64_t us;
} units[] = {
    {"d", INT64_C(24) * 3600 * HFD_US_PER_S},
    {"h", INT64_C(3600) * HFD_US_PER_S},
    {"m", 60 * HFD_US_PER_S},
    {"s", HFD_US_PER_S},
    {"ms", 1000},
};
#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

/*
 * Reads the unit at text[*pos].
 * @return UNIT_COUNT when there is none
 */
static size_t unit_at(hfd_slice text, size_t *pos)
{
    size_t end = *pos;
    hfd_slice word;

    while (end < text.len && text.p[end] >= 'a' && text.p[end] <= 'z')
        end++;
    word = (hfd_slice){text.p + *pos, end - *pos};
    for (size_t u = 0; u < UNIT_COUNT; u++) {
        if (hfd_slice_is(word, units[u].name)) {
            *pos = end;
            return u;
        }
    }
    return UNIT_COUNT;
}

hfd_rc hfd_parse_duration_us(hfd_slice text, int64_t *out, struct hfd_err *err)
{
    size_t pos = 0;
    size_t next_unit = 0;
    int64_t total = 0;

    *out = 0;
    do {
        int64_t v = 0;
        size_t u;

        if (!read_digits(text, &pos, false, &v))
            goto out;
        u = unit_at(text, &pos);
        if (u < next_unit || u >= UNIT_COUNT)
            goto out;
        next_unit = u + 1;
        if (__builtin_mul_overflow(v, units[u].us, &v) ||
            __builtin_add_overflow(total, v, &total) || total > DURATION_MAX_US)
            return hfd_fail(err, HFD_INVALID,
                            "expected a duration of at most ten years, got \"%.*s\"",
                            HFD_SLICE_FMT(shortened(text)));
    } while (pos < text.len);
    *out = total;
    return HFD_OK;
out:
    return hfd_fail(err, HFD_INVALID, "expected a duration like 90s, 45m or 1h30m, got \"%.*s\"",
                    HFD_SLICE_FMT(shortened(text)));
}
