/*
 * The circuit breaker of a remote: may new work begin? Pure; times are
 * monotonic. Thread: its owner.
 *
 *             HFD_BREAKER_ILL_MAX ill answers in a row
 *     CLOSED ------------------------------------------> OPEN
 *       ^  ^                                            |   ^
 *       |  '------------- a good answer ----------------'   |
 *       |                                the pause is over: |   | an ill
 * answer, |                                one probe          v   | or nothing
 * to ask
 *       '------------- a good answer ------------------ HALF_OPEN
 *
 * Answers that come while it is open belong to earlier requests. A good one
 * closes it; an ill one changes nothing.
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

/** Begins closed. Pauses are between these two. */
void hfd_breaker_init(struct hfd_breaker *b, int64_t pause_min_us, int64_t pause_max_us);
/**
 * Returns whether new work may begin now. After the pause it returns true once, for the probe,
 * until the probe is answered.
 */
bool hfd_breaker_begin(struct hfd_breaker *b, int64_t now_us);
/** When begin may return true: 0 = now, INT64_MAX = after the probe. */
int64_t hfd_breaker_next_us(const struct hfd_breaker *b);
/**
 * Takes note of an answer. Pauses double from pause_min_us to pause_max_us, less a random share of
 * up to a half.
 * @param good  false: the answer is ill, or there is none
 * @return whether the state went to CLOSED, or left it
 */
bool hfd_breaker_answer(struct hfd_breaker *b, bool good, int64_t now_us,
                        const struct hfd_rng *rng);
/** Work began and had nothing to ask. If it was the probe, another one may begin. */
void hfd_breaker_unused(struct hfd_breaker *b, int64_t now_us);
/** "closed", "open", "half-open" */
const char *hfd_breaker_name(enum hfd_breaker_state state);

#endif
