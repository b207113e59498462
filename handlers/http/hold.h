/*
 * Requests that wait: those of the watch, and answers that are held. Such an answer tells of a
 * driver resource or of the feed, and is held until that has changed. All have places of their own,
 * `events.watchers_max`. Thread: loop, between two runs of it or in a handler.
 */
#ifndef HFD_HTTP_HOLD_H
#define HFD_HTTP_HOLD_H

#include "handlers/http/exchange_int.h"

struct hfd_waiter;
typedef void hfd_waiter_fn(struct hfd_waiter *w);

/** How requests of a kind go on. Each answers, or holds on. */
struct hfd_waiter_kind {
    hfd_waiter_fn *finish; /* nothing is waited for any more */
    hfd_waiter_fn *end;    /* the exchange ends */
};

/** A request that waits. In the memory of its exchange. */
struct hfd_waiter {
    const struct hfd_waiter_kind *kind;
    struct hfd_exchange *x;
    int64_t until_us;    /* mono; INT64_MAX = it has no end */
    h2o_linklist_t link; /* the module's own */
};

/**
 * Takes a place; of all places a quarter at most for one caller. It is given back at the end of the
 * exchange, which has no other function for that.
 * @return false: there is no place, or the server stops
 */
HFD_MUST_CHECK bool hfd_waiter_begin(struct hfd_waiter *w);
/** Lets the request wait. */
void hfd_waiter_hold(struct hfd_waiter *w);
/** Takes a request off the list, and goes on with fn. May free it. */
void hfd_waiter_go_on(struct hfd_waiter *w, hfd_waiter_fn *fn);

typedef bool hfd_waiter_pick_fn(struct hfd_waiter *w, int64_t now_us);
/** Goes on with those that wait and are picked. */
void hfd_waiters_go_on(struct hfd_loop *loop, int64_t now_us, hfd_waiter_pick_fn *pick,
                       hfd_waiter_fn *fn);

/** Goes on with those that may have news, are late or refused. */
void hfd_waiters_run(struct hfd_loop *loop, int64_t now_us);
/** The same once a second: for callers that have gone, and news that ring no bell. */
void hfd_waiters_sweep(struct hfd_loop *loop, int64_t now_us);
/** The loop drains: finishes all. */
void hfd_waiters_drain(struct hfd_loop *loop);
/** Returns how long the loop may sleep while requests wait, at most max_us. */
int64_t hfd_waiters_wait_us(const struct hfd_loop *loop, int64_t now_us, int64_t max_us);

/** An answer that is held. */
struct hfd_hold {
    struct hfd_waiter waiter; /* begin sets it */
    hfd_slice guresid;        /* stays valid; empty = the feed */
    int64_t wait_us;
    int prefer_s; /* what Preference-Applied says; 0 = no such header */
    /** Reads anew, with mem. Then calls hfd_hold_on, or answers. */
    void (*again)(struct hfd_exchange *x, void *arg);
    void *arg;
    struct hfd_arena mem;     /* emptied before each read */
    struct hfd_row_mark mark; /* of the last read */
    bool over;                /* it is not held any more */
};

/**
 * Takes a place and calls `again`. So nothing is missed that changed since the caller's first read.
 * @return false: as hfd_waiter_begin. Nothing has happened
 */
HFD_MUST_CHECK bool hfd_hold_begin(struct hfd_hold *h, struct hfd_exchange *x);
/** Holds the answer until there may be news. @return false: it must be given now */
HFD_MUST_CHECK bool hfd_hold_on(struct hfd_hold *h);

#endif
