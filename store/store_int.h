/* The store itself, shared by its files. */
#ifndef HFD_STORE_STORE_INT_H
#define HFD_STORE_STORE_INT_H

#include "store/unit.h"
#include "store/writer.h"

#include <pthread.h>

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

/** Reads of single rows where others write too. */
struct hfd_point_reads {
    const struct hfd_store_place *place; /* borrowed; set before it is opened, as `away` */
    struct hfd_away *away;
    const struct hfd_clock *clock; /* as well */
    struct hfd_queue *queue;       /* NULL = not open */
    struct hfd_db *db;             /* NULL after a failure, until it is opened again */
    pthread_t thread;
    bool started;
};

struct hfd_store {
    unsigned magic;
#define STORE_MAGIC 0x5704e001u
    struct hfd_store_place place; /* its texts are owned */
    bool stepped;                 /* no threads: hfd_store_step does their work */
    struct hfd_writer writer;
    struct hfd_readers readers;
    struct hfd_point_reads points; /* open where others write to the database */
    atomic_uint readers_open;      /* hfd_store_reader */
    atomic_bool backing_up;        /* there is a hfd_backup */
};

#endif
