/*
 * Work that is left alone for a while: its pass failed on our side, or had nothing to ask. It would
 * take the place of other work. Thread: its owner.
 */
#ifndef HFD_REMOTE_SET_ASIDE_H
#define HFD_REMOTE_SET_ASIDE_H

#include "driver/backend/remote/asked.h"

#define HFD_SET_ASIDE_MAX 64

struct hfd_set_aside {
    struct {
        struct hfd_asked_id id; /* len 0 = the lists of all in progress */
        int64_t until_us;       /* monotonic */
    } items[HFD_SET_ASIDE_MAX];
    size_t count;
};

/** Sets work aside until then. @return false: there is no room */
bool hfd_set_aside_add(struct hfd_set_aside *a, hfd_slice guresid, int64_t until_us);
/** Returns whether the work is set aside. */
bool hfd_set_aside_has(const struct hfd_set_aside *a, hfd_slice guresid);
/** Ends what is over. @return whether anything ended */
bool hfd_set_aside_expire(struct hfd_set_aside *a, int64_t now_us);
/** The time at which the first one ends; INT64_MAX = nothing is set aside. */
int64_t hfd_set_aside_next_us(const struct hfd_set_aside *a);

#endif
