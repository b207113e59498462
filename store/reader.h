/*
 * Readers: threads that run views, and connections of callers for point reads. Each has a
 * connection of its own, and each call sees one snapshot.
 *
 * Reads of single rows on a database that others write to as well. One thread with one connection
 * takes all reads that wait. It makes them in one snapshot, with few round trips. So no caller
 * waits for the database itself.
 */
#ifndef HFD_STORE_READER_H
#define HFD_STORE_READER_H

#include "store/unit.h"

#include <pthread.h>

struct hfd_away;
struct hfd_readers;

/** Views that wait, and the threads that take them: those of the lane alone. */
struct hfd_lane {
    struct hfd_queue *queue;
    pthread_mutex_t take_lock; /* one thread waits on the queue: it has one receiver */
};

struct hfd_reader_thread {
    struct hfd_readers *all;
    struct hfd_lane *lane;
    struct hfd_db *db;    /* NULL after a failure, until it is opened again */
    struct hfd_unit unit; /* rows of its snapshot, where a read is a round trip */
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

struct hfd_point_reads {
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
HFD_MUST_CHECK hfd_rc hfd_point_reads_push(struct hfd_point_reads *p, struct hfd_job *job);
/** Opens the connection. @return HFD_OK, HFD_AWAY, HFD_INVALID, HFD_NOMEM, HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_point_reads_open(struct hfd_point_reads *p, size_t queue_max,
                                           struct hfd_err *err);
/** Starts the thread. */
HFD_MUST_CHECK hfd_rc hfd_point_reads_start(struct hfd_point_reads *p, struct hfd_err *err);
/** Finishes what is queued, ends the thread. Accepts one half open, and one that is not. */
void hfd_point_reads_close(struct hfd_point_reads *p);

#endif
