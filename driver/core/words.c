/* See words.h. */
#include "driver/core/words.h"

#include <string.h>

#include "driver/base/check.h"
#include "driver/base/clock.h"

hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem,
                            "Resource %.*s is ready, but %s: let driver.outputs take less, or the "
                            "adapters report less. Then deploy again, or delete the resource.",
                            HFD_SLICE_FMT(guresid), why);
}

/*
 * Returns the length of the character at p if a line must not have it, else zero. Controls, line
 * ends and changes of the direction of writing are such characters.
 */
static size_t unfit_len(const char *p, size_t left)
{
    static const struct {
        const char *first, *last;
        size_t len;
    } ranges[] = {
        {"\x00", "\x1f", 1},
        {"\x7f", "\x7f", 1},
        {"\xc2\x80", "\xc2\x9f", 2},         /* U+0080 to U+009F */
        {"\xe2\x80\xa8", "\xe2\x80\xae", 3}, /* U+2028 to U+202E */
        {"\xe2\x81\xa6", "\xe2\x81\xa9", 3}, /* U+2066 to U+2069 */
    };

    if (*p >= ' ' && *p < '\x7f')
        return 0;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const size_t len = ranges[i].len;

        if (left >= len && memcmp(p, ranges[i].first, len) >= 0 &&
            memcmp(p, ranges[i].last, len) <= 0)
            return len;
    }
    return 0;
}

size_t hfd_words_line_into(hfd_slice text, size_t max, char *p)
{
    const size_t cap = text.len < max ? text.len : max;
    size_t n = 0, i = 0;

    while (i < text.len && n < cap) {
        const size_t unfit = unfit_len(text.p + i, text.len - i);

        p[n++] = unfit > 0 ? ' ' : text.p[i];
        i += unfit > 0 ? unfit : 1;
    }
    if (i == text.len)
        return n;
    /* Only a full line is cut. */
    if (n < 3 || n < max)
        return n;
    n = max - 3;
    while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80)
        n--;
    memcpy(p + n, "...", 3);
    return n + 3;
}

hfd_slice hfd_words_line(hfd_slice text, size_t max, struct hfd_arena *mem)
{
    char *p = hfd_arena_alloc(mem, (text.len < max ? text.len : max) + 1);

    return p != NULL ? (hfd_slice){p, hfd_words_line_into(text, max, p)} : HFD_SLICE_NONE;
}

void hfd_words_add(struct hfd_buf *b, hfd_slice text, size_t max)
{
    char line[HFD_WORDS_ADD_MAX_BYTES];

    if (HFD_NEVER(max > sizeof(line)))
        max = sizeof(line);
    hfd_buf_add(b, (hfd_slice){line, hfd_words_line_into(text, max, line)});
}

hfd_slice hfd_words_without_stop(hfd_slice text)
{
    while (text.len > 0 && strchr(" .\t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return text;
}

void hfd_words_add_quote(struct hfd_buf *b, hfd_slice text, size_t max)
{
    text = hfd_words_without_stop(text);
    if (text.len == 0)
        return;
    hfd_buf_lit(b, ": ");
    hfd_words_add(b, text, max);
}

void hfd_words_add_duration(struct hfd_buf *b, int64_t us)
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
