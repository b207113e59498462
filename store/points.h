/*
 * Reads of single rows on a database that others write to as well. One thread with one connection
 * takes all reads that wait. It makes them in one snapshot, with few round trips. So no caller
 * waits for the database itself.
 */
#ifndef HFD_STORE_POINTS_H
#define HFD_STORE_POINTS_H

#include "store/away.h"
#include "store/txn.h"

#include <pthread.h>

struct hfd_points {
    const struct hfd_store_place *place; /* borrowed; set before it is opened, as `away` */
    struct hfd_away *away;
    const struct hfd_clock *clock; /* as well */
    struct hfd_queue *queue;       /* NULL = not open */
    struct hfd_db *db;             /* NULL after a failure, until it is opened again */
    pthread_t thread;
    bool started;
};

/**
 * Queues a read.
 * @return HFD_OK, HFD_BUSY (full or closed). Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_points_push(struct hfd_points *p, struct hfd_job *job);
/** Opens the connection. @return HFD_OK, HFD_AWAY, HFD_INVALID, HFD_NOMEM, HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_points_open(struct hfd_points *p, size_t queue_max, struct hfd_err *err);
/** Starts the thread. */
HFD_MUST_CHECK hfd_rc hfd_points_start(struct hfd_points *p, struct hfd_err *err);
/** Finishes what is queued, ends the thread. Accepts one half open, and one that is not. */
void hfd_points_close(struct hfd_points *p);

#endif
