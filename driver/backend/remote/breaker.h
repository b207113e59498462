/*
 * The circuit breaker of a remote: whether new work is begun. Pure; times are monotonic. Thread:
 * its owner.
 *
 *              ill, HFD_BREAKER_ILL_MAX in a row             the pause is over: one probe
 *     CLOSED ------------------------------------> OPEN <-------------------------------->
 * HALF_OPEN ^                                          |  ill, or the probe asked nothing         |
 *        +------------------------------------------+------------------------------------------+
 *                                          a good answer
 *
 * Answers that come in while it is open were asked for before: a good one closes it all the same,
 * an ill one changes nothing.
 */
#ifndef HFD_REMOTE_BREAKER_H
#define HFD_REMOTE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct hfd_rng;

#define HFD_BREAKER_ILL_MAX 3

enum hfd_breaker_state {
    HFD_BREAKER_CLOSED,
    HFD_BREAKER_OPEN,
    HFD_BREAKER_HALF_OPEN,
    HFD_BREAKER_STATE_COUNT
};

struct hfd_breaker {
    enum hfd_breaker_state state;
    int ill;          /* in a row, while closed */
    int64_t pause_us; /* of the present opening, before jitter */
    int64_t until_us; /* OPEN: when a probe may go */
    int64_t pause_min_us, pause_max_us;
};

/** Closed. Pauses are between these two. */
void hfd_breaker_init(struct hfd_breaker *b, int64_t pause_min_us, int64_t pause_max_us);
/**
 * Returns whether a new piece of work may begin now. The first yes after the pause is the probe's,
 * and the only one until it has told.
 */
bool hfd_breaker_begin(struct hfd_breaker *b, int64_t now_us);
/** When begin may say yes: 0 = now, INT64_MAX = not before the probe has told. */
int64_t hfd_breaker_next_us(const struct hfd_breaker *b);
/**
 * An answer came, or its absence. Pauses double from pause_min_us to pause_max_us, each then
 * between a half and the whole of that.
 * @return whether it went to CLOSED, or left it
 */
bool hfd_breaker_tell(struct hfd_breaker *b, bool good, int64_t now_us, const struct hfd_rng *rng);
/** A piece of work that began ended and had nothing to ask: if it was the probe, another may go. */
void hfd_breaker_unused(struct hfd_breaker *b, int64_t now_us);
/** "closed", "open", "half-open" */
const char *hfd_breaker_name(enum hfd_breaker_state state);

#endif
