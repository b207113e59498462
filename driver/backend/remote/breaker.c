/* See breaker.h. */
#include "driver/backend/remote/breaker.h"

#include "driver/base/check.h"
#include "driver/base/rng.h"

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
