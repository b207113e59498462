/*
 * Polls of clients, on their way into the store: what is polled becomes due soon (work.h). Thread:
 * remote.
 */
#ifndef HFD_REMOTE_POLLS_H
#define HFD_REMOTE_POLLS_H

#include "driver/backend/remote/asked.h"
#include "store/store.h"

#define HFD_REMOTE_POLLS_MAX 256 /* in one transaction */

struct hfd_remote;

/** One transaction at a time. */
struct hfd_remote_polls {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    bool out; /* with the store */
    struct hfd_asked_id ids[HFD_REMOTE_POLLS_MAX];
    size_t count;
    int64_t older_us, now_us; /* wall clock */
};

/** Gives polls to the writer. If the store is busy, forgets them: clients poll again. */
void hfd_remote_hurry_polled(struct hfd_remote *r);

#endif
