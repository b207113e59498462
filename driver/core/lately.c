/* See lately.h. */
#include "driver/core/lately.h"

#include <stdlib.h>

#include "store/rows_day.h"

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The smallest of sorted values that `percent` of them do not exceed. */
static int64_t percentile(const int64_t *sorted, size_t count, size_t percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

hfd_rc hfd_lately_read(const struct hfd_ctx *c, struct hfd_lately *out)
{
    struct hfd_day day;
    hfd_rc rc = hfd_day_read(c->tx, c->now_us - HFD_LATELY_US, c->mem, &day, c->err);

    *out = (struct hfd_lately){0};
    if (rc != HFD_OK)
        return rc;
    out->orders = day.orders;
    out->more = day.more;
    out->finished = (int64_t)day.took_count;
    if (day.took_count == 0)
        return HFD_OK;
    qsort(day.took_us, day.took_count, sizeof(day.took_us[0]), by_size);
    out->median_us = percentile(day.took_us, day.took_count, 50);
    out->p95_us = percentile(day.took_us, day.took_count, 95);
    return HFD_OK;
}
