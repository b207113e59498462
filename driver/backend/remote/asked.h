/*
 * Who is asked for: GUResIDs from many threads to one, without waiting and without growing. A name
 * that is there already, or was taken less than `again_us` ago, is not taken in again; where too
 * many come at once, some are forgotten: whoever polls, polls again. Thread: push any; the rest,
 * the receiver.
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

/** @param capacity  names that are known at a time; a multiple of 4 */
HFD_MUST_CHECK hfd_rc hfd_asked_new(size_t capacity, int64_t again_us, struct hfd_asked **out,
                                    struct hfd_err *err);
/** Accepts NULL. */
void hfd_asked_free(struct hfd_asked *a);

/**
 * @param now_us  monotonic. @return whether the receiver is to be woken: this is the first one
 * since it took all
 */
bool hfd_asked_push(struct hfd_asked *a, hfd_slice id, int64_t now_us);
/** Takes up to max names, the first asked for first. @return how many */
size_t hfd_asked_take(struct hfd_asked *a, struct hfd_asked_id *out, size_t max, int64_t now_us);

#endif
