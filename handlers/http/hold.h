/*
 * Answers that are held until what they tell of has changed: a driver resource, or the feed of all.
 * Their callers, and those of the watch, have places of their own among `events.watchers_max`.
 * Thread: loop, unless said.
 */
#ifndef HFD_HTTP_HOLD_H
#define HFD_HTTP_HOLD_H

#include "handlers/http/exchange_int.h"

/** An answer that is held. In the memory of its exchange. */
struct hfd_hold {
    struct hfd_exchange *x;
    hfd_slice guresid; /* stays valid; empty = the feed */
    int64_t wait_us;
    int prefer_s; /* what Preference-Applied says; 0 = no such header */
    /** Reads anew, with `mem`. Then calls hfd_hold_wait, or answers. */
    void (*again)(struct hfd_exchange *x, void *arg);
    void *arg;
    /* The module's own, but for the address of mem: */
    struct hfd_arena mem; /* emptied before each read */
    h2o_linklist_t link;
    struct hfd_store_mark mark; /* of the last read */
    int64_t until_us;           /* mono */
    bool over;                  /* it is not held any more */
};

/**
 * Takes a place and calls `again`. So nothing is missed that changed since the caller's first read.
 * The exchange has no other function for its end.
 * @return false: there is no place, or the server stops. Nothing has happened
 */
HFD_MUST_CHECK bool hfd_hold_begin(struct hfd_hold *h);
/** Holds the answer until there may be news. @return false: it must be given now */
HFD_MUST_CHECK bool hfd_hold_wait(struct hfd_hold *h);

/** Takes a place for a request that may wait; of all places a quarter at most for one caller. */
HFD_MUST_CHECK bool hfd_place_take(struct hfd_exchange *x);
void hfd_place_give(struct hfd_exchange *x);

/* The loop calls these, between two runs of it only. */

/** Goes on with answers that may have news, or whose time is over. */
void hfd_holds_run(struct hfd_loop *loop, int64_t now_us);
/** The same once a second: for callers that have gone, and news that ring no bell. */
void hfd_holds_sweep(struct hfd_loop *loop);
/** The loop begins to drain: gives all answers. */
void hfd_holds_drain(struct hfd_loop *loop);
/** Returns how long the loop may sleep, at most max_us. */
int64_t hfd_holds_wait_us(struct hfd_loop *loop, int64_t now_us, int64_t max_us);

#endif
