/* See set_aside.h. */
#include "driver/backend/remote/set_aside.h"

bool hfd_set_aside_add(struct hfd_set_aside *a, hfd_slice guresid, int64_t until_us)
{
    struct hfd_asked_id *id;

    if (a->count == HFD_SET_ASIDE_MAX || guresid.len > HFD_ASKED_ID_MAX)
        return false;
    id = &a->items[a->count].id;
    id->len = guresid.len;
    if (guresid.len > 0)
        memcpy(id->text, guresid.p, guresid.len);
    a->items[a->count++].until_us = until_us;
    return true;
}

bool hfd_set_aside_has(const struct hfd_set_aside *a, hfd_slice guresid)
{
    for (size_t i = 0; i < a->count; i++)
        if (hfd_slice_eq((hfd_slice){a->items[i].id.text, a->items[i].id.len}, guresid))
            return true;
    return false;
}

bool hfd_set_aside_expire(struct hfd_set_aside *a, int64_t now_us)
{
    const size_t before = a->count;

    a->count = 0;
    for (size_t i = 0; i < before; i++)
        if (a->items[i].until_us > now_us)
            a->items[a->count++] = a->items[i];
    return a->count != before;
}

int64_t hfd_set_aside_next_us(const struct hfd_set_aside *a)
{
    int64_t next_us = INT64_MAX;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].until_us < next_us)
            next_us = a->items[i].until_us;
    return next_us;
}
