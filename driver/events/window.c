/* See window.h. */
#include "driver/events/window.h"

#include "driver/base/check.h"
#include "store/rows_history.h"

#include <stdlib.h>

void hfd_window_begin(struct hfd_window *w, bool newest_only, int64_t cursor, int64_t failing_us,
                      int64_t now_us)
{
    *w = (struct hfd_window){.newest_only = newest_only,
                             .read = cursor,
                             .failing_us = failing_us,
                             .since_us = failing_us != 0 ? failing_us : now_us};
}

void hfd_window_end(struct hfd_window *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->items[i].mem);
    w->count = 0;
}

static void take_away(struct hfd_window *w, size_t at)
{
    free(w->items[at].mem);
    w->count--;
    memmove(&w->items[at], &w->items[at + 1], (w->count - at) * sizeof(w->items[0]));
}

static hfd_rc copy_event(const struct hfd_outgoing *event, struct hfd_pending *out,
                         struct hfd_err *err)
{
    char *at = malloc(event->id.len + event->subject.len + event->body.len + 1);

    if (at == NULL)
        return hfd_fail_nomem(err, "keep an event");
    out->mem = at;
    out->event = *event;
    out->event.id = hfd_slice_put(&at, event->id);
    out->event.subject = hfd_slice_put(&at, event->subject);
    out->event.body = hfd_slice_put(&at, event->body);
    return HFD_OK;
}

/* The first event of a resource. @return `count` when there is none */
static size_t first_of(const struct hfd_window *w, hfd_slice subject)
{
    size_t at = 0;

    while (at < w->count && !hfd_slice_eq(w->items[at].event.subject, subject))
        at++;
    return at;
}

hfd_rc hfd_window_add(struct hfd_window *w, const struct hfd_outgoing *event, int64_t seq,
                      int64_t at_us, struct hfd_err *err)
{
    const size_t old = w->newest_only ? first_of(w, event->subject) : w->count;
    struct hfd_pending item = {.seq = seq, .at_us = at_us};
    hfd_rc rc;

    HFD_ASSERT(hfd_window_room(w) > 0);
    if (HFD_NEVER(seq <= w->read))
        return HFD_OK;
    rc = copy_event(event, &item, err);
    if (rc != HFD_OK)
        return rc;
    if (old < w->count) { /* the target refuses the resource as before */
        item.due_us = w->items[old].due_us;
        item.failing_us = w->items[old].failing_us;
        item.tries = w->items[old].tries;
        take_away(w, old);
    }
    w->items[w->count++] = item;
    w->read = seq;
    return HFD_OK;
}

/* No pause is longer than the longest: the clock may have been set back since. */
static bool is_due(const struct hfd_pending *item, int64_t now_us)
{
    return item->due_us <= now_us || item->due_us - now_us > HFD_WINDOW_RETRY_MAX_US;
}

size_t hfd_window_next(const struct hfd_window *w, int64_t now_us, size_t *out, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < w->count && count < max; i++)
        if (is_due(&w->items[i], now_us) && first_of(w, w->items[i].event.subject) == i)
            out[count++] = i;
    return count;
}

int64_t hfd_window_due_us(const struct hfd_window *w)
{
    int64_t due_us = INT64_MAX;

    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].due_us < due_us && first_of(w, w->items[i].event.subject) == i)
            due_us = w->items[i].due_us;
    return due_us;
}

/* The pause after so many failures: from half of it to all of it. */
static int64_t pause_us(unsigned tries, const struct hfd_rng *rng)
{
    const unsigned doublings = tries - 1 < 20 ? tries - 1 : 20;
    const int64_t us = HFD_WINDOW_RETRY_MIN_US << doublings;
    const int64_t whole = us < HFD_WINDOW_RETRY_MAX_US ? us : HFD_WINDOW_RETRY_MAX_US;
    uint64_t random;

    hfd_rng_bytes(rng, &random, sizeof(random));
    return whole - (int64_t)(random % (uint64_t)(whole / 2 + 1));
}

/* @return whether the event is dropped */
static bool fail_one(const struct hfd_window *w, struct hfd_pending *item, int64_t now_us,
                     const struct hfd_rng *rng)
{
    const int64_t since_us = item->at_us > w->since_us ? item->at_us : w->since_us;

    if (item->failing_us == 0)
        item->failing_us = w->failing_us != 0 ? w->failing_us : now_us;
    item->due_us = now_us + pause_us(++item->tries, rng);
    return now_us - since_us >= HFD_OUTBOX_KEEP_US;
}

struct hfd_window_result hfd_window_settle(struct hfd_window *w, const size_t *chosen, size_t count,
                                           int64_t now_us, const struct hfd_rng *rng)
{
    struct hfd_window_result s = {.sent = 0};

    while (count-- > 0) { /* backwards: the places before one that goes stay */
        struct hfd_pending *item = &w->items[chosen[count]];
        const bool sent = item->event.sent, dropped = !sent && fail_one(w, item, now_us, rng);

        s.sent += sent;
        s.failed += !sent;
        s.dropped += dropped;
        if (sent || dropped)
            take_away(w, chosen[count]);
    }
    for (size_t i = 0; w->refuses && s.sent > 0 && i < w->count; i++)
        w->items[i].due_us = now_us; /* the target is back */
    w->refuses = s.sent == 0;
    w->failing_us = 0;
    return s;
}

int64_t hfd_window_cursor(const struct hfd_window *w)
{
    return w->count > 0 ? w->items[0].seq - 1 : w->read;
}

int64_t hfd_window_failing_us(const struct hfd_window *w)
{
    int64_t since_us = 0;

    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].failing_us != 0 && (since_us == 0 || w->items[i].failing_us < since_us))
            since_us = w->items[i].failing_us;
    return since_us;
}

int64_t hfd_window_oldest_us(const struct hfd_window *w)
{
    int64_t at_us = 0;

    for (size_t i = 0; i < w->count; i++)
        if (at_us == 0 || w->items[i].at_us < at_us)
            at_us = w->items[i].at_us;
    return at_us;
}
