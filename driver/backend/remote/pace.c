/* See pace.h. */
#include "driver/backend/remote/pace.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/rng.h"

#include <stdbool.h>
#include <stdint.h>

#define TO(s) (1u << HFD_BREAKER_##s)
static const struct {
    const char *name;
    unsigned next;
} states[HFD_BREAKER_STATE_COUNT] = {
    [HFD_BREAKER_CLOSED] = {"closed", TO(OPEN)},
    [HFD_BREAKER_OPEN] = {"open", TO(HALF_OPEN) | TO(CLOSED)},
    [HFD_BREAKER_HALF_OPEN] = {"half-open", TO(OPEN) | TO(CLOSED)},
};

const char *hfd_breaker_name(enum hfd_breaker_state state)
{
    return states[state].name;
}

static void move(struct hfd_breaker *b, enum hfd_breaker_state to)
{
    HFD_ASSERT((states[b->state].next & (1u << to)) != 0);
    b->state = to;
    b->ill = 0;
}

void hfd_breaker_init(struct hfd_breaker *b, int64_t pause_min_us, int64_t pause_max_us)
{
    HFD_ASSERT(pause_min_us > 0 && pause_min_us <= pause_max_us);
    *b = (struct hfd_breaker){.pause_min_us = pause_min_us, .pause_max_us = pause_max_us};
}

bool hfd_breaker_begin(struct hfd_breaker *b, int64_t now_us)
{
    if (b->state == HFD_BREAKER_OPEN && now_us >= b->until_us) {
        move(b, HFD_BREAKER_HALF_OPEN);
        return true;
    }
    return b->state == HFD_BREAKER_CLOSED;
}

int64_t hfd_breaker_next_us(const struct hfd_breaker *b)
{
    if (b->state == HFD_BREAKER_CLOSED)
        return 0;
    return b->state == HFD_BREAKER_OPEN ? b->until_us : INT64_MAX;
}

static void open_for(struct hfd_breaker *b, int64_t pause_us, int64_t now_us,
                     const struct hfd_rng *rng)
{
    uint64_t random;

    hfd_rng_bytes(rng, &random, sizeof(random));
    b->pause_us = pause_us < b->pause_max_us ? pause_us : b->pause_max_us;
    b->until_us = now_us + b->pause_us - (int64_t)(random % (uint64_t)(b->pause_us / 2 + 1));
    move(b, HFD_BREAKER_OPEN);
}

bool hfd_breaker_answer(struct hfd_breaker *b, bool good, int64_t now_us, const struct hfd_rng *rng)
{
    if (good) {
        b->ill = 0;
        if (b->state == HFD_BREAKER_CLOSED)
            return false;
        move(b, HFD_BREAKER_CLOSED);
        return true;
    }
    if (b->state == HFD_BREAKER_HALF_OPEN) {
        open_for(b, b->pause_us <= b->pause_max_us / 2 ? b->pause_us * 2 : b->pause_max_us, now_us,
                 rng);
    } else if (b->state == HFD_BREAKER_CLOSED && ++b->ill >= HFD_BREAKER_ILL_MAX) {
        open_for(b, b->pause_min_us, now_us, rng);
        return true;
    }
    return false;
}

void hfd_breaker_unused(struct hfd_breaker *b, int64_t now_us)
{
    if (b->state != HFD_BREAKER_HALF_OPEN)
        return;
    b->until_us = now_us;
    move(b, HFD_BREAKER_OPEN);
}

static int64_t cost_us(const struct hfd_rate *r)
{
    return HFD_US_PER_S / r->per_second;
}

/* The level at now_us. A clock that ran backwards adds nothing. */
static int64_t level_at(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t most_us = r->burst * cost_us(r);
    const int64_t passed_us = now_us > r->at_us ? now_us - r->at_us : 0;

    return passed_us >= most_us - r->level_us ? most_us : r->level_us + passed_us;
}

void hfd_rate_init(struct hfd_rate *r, int64_t per_second, int64_t now_us)
{
    HFD_ASSERT(per_second >= 1 && per_second <= HFD_US_PER_S);
    *r = (struct hfd_rate){
        .per_second = per_second, .burst = per_second >= 5 ? per_second / 5 : 1, .at_us = now_us};
    r->level_us = r->burst * cost_us(r);
}

bool hfd_rate_take(struct hfd_rate *r, int64_t now_us)
{
    const int64_t level_us = level_at(r, now_us);

    if (level_us < cost_us(r))
        return false;
    r->level_us = level_us - cost_us(r);
    r->at_us = now_us;
    return true;
}

int64_t hfd_rate_next_us(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t missing_us = cost_us(r) - level_at(r, now_us);

    return missing_us > 0 ? now_us + missing_us : now_us;
}

bool hfd_skip_list_add(struct hfd_skip_list *a, hfd_slice guresid, int64_t until_us)
{
    struct hfd_asked_id *id;

    if (a->count == HFD_SKIP_LIST_MAX || guresid.len > HFD_ASKED_ID_MAX)
        return false;
    id = &a->items[a->count].id;
    id->len = guresid.len;
    if (guresid.len > 0)
        memcpy(id->text, guresid.p, guresid.len);
    a->items[a->count++].until_us = until_us;
    return true;
}

bool hfd_skip_list_has(const struct hfd_skip_list *a, hfd_slice guresid)
{
    for (size_t i = 0; i < a->count; i++)
        if (hfd_slice_eq((hfd_slice){a->items[i].id.text, a->items[i].id.len}, guresid))
            return true;
    return false;
}

bool hfd_skip_list_expire(struct hfd_skip_list *a, int64_t now_us)
{
    const size_t before = a->count;

    a->count = 0;
    for (size_t i = 0; i < before; i++)
        if (a->items[i].until_us > now_us)
            a->items[a->count++] = a->items[i];
    return a->count != before;
}

int64_t hfd_skip_list_next_us(const struct hfd_skip_list *a)
{
    int64_t next_us = INT64_MAX;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].until_us < next_us)
            next_us = a->items[i].until_us;
    return next_us;
}
