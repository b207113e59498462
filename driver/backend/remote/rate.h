/* Bounds requests per second: a token bucket. Pure; times are monotonic. Thread: its owner. */
#ifndef HFD_REMOTE_RATE_H
#define HFD_REMOTE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct hfd_rate {
    int64_t per_second;
    int64_t burst;    /* that may go at once after a pause */
    int64_t level_us; /* what is saved up, in time; a request costs a second /
                         per_second */
    int64_t at_us;    /* when level_us held */
};

/**
 * Begins with a full bucket: a fifth of per_second, at least 1. No second has more than 1.2 times
 * per_second requests, plus one.
 * @param per_second  1 to 1,000,000
 */
void hfd_rate_init(struct hfd_rate *r, int64_t per_second, int64_t now_us);
/** Changes the rate, and keeps as much of the level as the new rate allows. As init. */
void hfd_rate_change(struct hfd_rate *r, int64_t per_second, int64_t now_us);
/** Takes the right to one request. @return false: not before hfd_rate_next_us */
bool hfd_rate_take(struct hfd_rate *r, int64_t now_us);
/** When take will succeed: now_us or later. */
int64_t hfd_rate_next_us(const struct hfd_rate *r, int64_t now_us);

#endif
