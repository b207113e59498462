/*
 * Readers: threads that run views, and connections of callers for point reads. Each has a
 * connection of its own, and each call sees one snapshot.
 */
#ifndef HFD_STORE_READER_H
#define HFD_STORE_READER_H

#include "store/away.h"
#include "store/txn.h"

#include <pthread.h>

/** Views that wait, and the threads that take them: those of the lane alone. */
struct hfd_lane {
    struct hfd_queue *queue;
    pthread_mutex_t take_lock; /* one thread waits on the queue: it has one receiver */
};

struct hfd_reader_thread {
    struct hfd_readers *all;
    struct hfd_lane *lane;
    struct hfd_db *db; /* NULL after a failure, until it is opened again */
    pthread_t thread;
    bool started;
};

/** The threads that run views, and their queues. */
struct hfd_readers {
    const struct hfd_store_place *place; /* borrowed; set before they are opened, as `away` */
    struct hfd_away *away;
    const struct hfd_clock *clock;
    int64_t read_timeout_us;    /* 0 = none */
    struct hfd_lane lane;       /* of any views */
    struct hfd_lane short_lane; /* of hfd_job.is_short: dear views never wait or run here */
    struct hfd_reader_thread *threads;
    unsigned count; /* the last one is that of the short lane */
};

/** Queues a view. @return HFD_OK, HFD_BUSY (full or closed). Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_readers_push(struct hfd_readers *r, struct hfd_job *job);
/** Returns how many views wait. Accepts one half open. Thread: any. */
size_t hfd_readers_waiting(const struct hfd_readers *r);
/** @param config  borrows; the place is that of `r` */
HFD_MUST_CHECK hfd_rc hfd_readers_open(struct hfd_readers *r, const struct hfd_store_config *config,
                                       struct hfd_err *err);
/** Starts the threads. A stepped store does not. */
HFD_MUST_CHECK hfd_rc hfd_readers_start(struct hfd_readers *r, struct hfd_err *err);
/** Runs all views that are queued. Thread: of a stepped store. */
void hfd_readers_step(struct hfd_readers *r);
/** Finishes what is queued, ends the threads. Accepts one half open. */
void hfd_readers_close(struct hfd_readers *r);

#endif
