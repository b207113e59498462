/* See row_sum.h. */
#include "store/row_sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define STEP UINT64_C(0x9E3779B97F4A7C15) /* odd: multiplying by it loses nothing */

static uint64_t mix(uint64_t h, uint64_t at, uint64_t v)
{
    h = (h ^ (v + at * STEP)) * STEP;
    return h ^ h >> 32;
}

int64_t hfd_row_sum(const struct hfd_row_values *values)
{
    uint64_t h = STEP;

    for (size_t i = 0; i < values->text_count; i++) {
        const hfd_slice *s =
            (const hfd_slice *)(const void *)((const char *)values->row + values->texts[i]);

        if (s->len > 0)
            h = mix(h, 2 * i, XXH3_64bits(s->p, s->len));
    }
    for (size_t i = 0; i < values->number_count; i++)
        if (values->numbers[i] != 0)
            h = mix(h, 2 * i + 1, (uint64_t)values->numbers[i]);
    return (int64_t)(h >> 2);
}

void hfd_row_check(struct hfd_row_in *in, int64_t sum, const struct hfd_row_name *name)
{
    const int at = in->at++;

    if (in->sums != NULL) {
        *in->sums++ = sum;
        return;
    }
    if (hfd_stmt_col_i64(in->st, at) == sum && !in->bad && !hfd_stmt_is_stuck(in->st))
        return;
    in->bad = true;
    in->name = *name;
}
