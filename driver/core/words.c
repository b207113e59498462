/* See words.h. */
#include "driver/core/words.h"

#include <string.h>

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

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const size_t len = ranges[i].len;

        if (left >= len && memcmp(p, ranges[i].first, len) >= 0 &&
            memcmp(p, ranges[i].last, len) <= 0)
            return len;
    }
    return 0;
}

hfd_slice hfd_words_line(hfd_slice text, size_t max, struct hfd_arena *mem)
{
    const size_t cap = text.len < max ? text.len : max;
    char *p = hfd_arena_alloc(mem, cap + 1);
    size_t n = 0, i = 0;

    if (p == NULL)
        return HFD_SLICE_NONE;
    while (i < text.len && n < cap) {
        const size_t unfit = unfit_len(text.p + i, text.len - i);

        p[n++] = unfit > 0 ? ' ' : text.p[i];
        i += unfit > 0 ? unfit : 1;
    }
    if (i == text.len)
        return (hfd_slice){p, n};
    n = max - 3;
    while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80)
        n--;
    memcpy(p + n, "...", 3);
    return (hfd_slice){p, n + 3};
}
