/*
 * GUResIDs that clients poll, from many threads to one. Bounded, and never waits. Ignores a name
 * that waits already, or was taken less than `again_us` ago. Forgets names if too many come at
 * once: clients poll again. Thread: push any; the rest, the receiver.
 */
#ifndef HFD_REMOTE_ASKED_H
#define HFD_REMOTE_ASKED_H

#include "driver/base/slice.h"

#define HFD_ASKED_ID_MAX 63

struct hfd_asked;

struct hfd_asked_id {
    size_t len;
    char text[HFD_ASKED_ID_MAX];
};

/** @param capacity  the number of names; a multiple of 4 */
HFD_MUST_CHECK hfd_rc hfd_asked_new(size_t capacity, int64_t again_us, struct hfd_asked **out,
                                    struct hfd_err *err);
/** Accepts NULL. */
void hfd_asked_free(struct hfd_asked *a);

/**
 * Adds a name. @param now_us  monotonic
 * @return whether to wake the receiver: the name is the first since it took all
 */
bool hfd_asked_push(struct hfd_asked *a, hfd_slice id, int64_t now_us);
/** Takes up to max names, the oldest first. @return their number */
size_t hfd_asked_take(struct hfd_asked *a, struct hfd_asked_id *out, size_t max, int64_t now_us);

#endif
