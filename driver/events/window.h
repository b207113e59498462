/*
 * The events of one stream that a target does not have yet: a bounded window on what is behind its
 * cursor. An event that the target refuses is tried again later, and holds up no other resource
 * until the window is full. Events of one resource go in their order. Pure: time and chance come
 * in. Thread: one at a time.
 */
#ifndef HFD_EVENTS_WINDOW_H
#define HFD_EVENTS_WINDOW_H

#include "driver/base/rng.h"
#include "driver/events/sender.h"

#define HFD_WINDOW_MAX 64
#define HFD_WINDOW_RETRY_MIN_US HFD_US_PER_S /* the first pause after a failure; it doubles */
#define HFD_WINDOW_RETRY_MAX_US (300 * HFD_US_PER_S)

struct hfd_pending {
    struct hfd_outgoing event; /* its texts are in mem */
    char *mem;
    int64_t seq, at_us; /* its number, and when it happened */
    int64_t due_us;     /* of the next attempt */
    int64_t failing_us; /* when its first attempt failed; 0 = none has */
    unsigned tries;     /* that failed */
};

struct hfd_window {
    bool newest_only;   /* a newer event of a resource replaces one that is pending */
    int64_t read;       /* number up to which events were added */
    int64_t since_us;   /* an older event counts as if it had happened then */
    int64_t failing_us; /* until the first attempt: since when an event was refused; 0 = none was */
    bool refuses;       /* nothing of the last attempt was sent */
    size_t count;
    struct hfd_pending items[HFD_WINDOW_MAX]; /* by number */
};

/**
 * Begins behind a cursor. The window is zeroed, or was ended.
 * @param failing_us  hfd_window_failing_us of the window before, which had the same cursor
 */
void hfd_window_begin(struct hfd_window *w, bool newest_only, int64_t cursor, int64_t failing_us,
                      int64_t now_us);
/** Drops all events. */
void hfd_window_end(struct hfd_window *w);
/** How many events may be added. */
static inline size_t hfd_window_room(const struct hfd_window *w)
{
    return HFD_WINDOW_MAX - w->count;
}
/**
 * Adds an event, the next one by its number. Copies it.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_window_add(struct hfd_window *w, const struct hfd_outgoing *event,
                                     int64_t seq, int64_t at_us, struct hfd_err *err);

/**
 * Chooses events to send now, at most one of a resource.
 * @param out  their places in the window, valid until it changes
 * @return how many there are, at most `max`
 */
size_t hfd_window_next(const struct hfd_window *w, int64_t now_us, size_t *out, size_t max);
/** When there is something to send; INT64_MAX = never. */
int64_t hfd_window_due_us(const struct hfd_window *w);

struct hfd_window_result {
    int64_t sent, failed;
    int64_t dropped; /* of those that failed: they are older than HFD_OUTBOX_KEEP_US */
};
/** Takes the result of an attempt, which is in the `sent` of each event that was chosen. */
struct hfd_window_result hfd_window_settle(struct hfd_window *w, const size_t *chosen, size_t count,
                                           int64_t now_us, const struct hfd_rng *rng);

/** The number up to which the target has all events. */
int64_t hfd_window_cursor(const struct hfd_window *w);
/** Since when an event has been refused; 0 = none is. */
int64_t hfd_window_failing_us(const struct hfd_window *w);
/** When the oldest pending event happened; 0 = none is pending. */
int64_t hfd_window_oldest_us(const struct hfd_window *w);

#endif
