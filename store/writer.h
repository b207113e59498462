/* The store itself, shared by its files: the writer, the readers, and what both need. */
#ifndef HFD_STORE_WRITER_H
#define HFD_STORE_WRITER_H

#include "driver/base/clock.h"
#include "driver/base/container.h"
#include "store/store.h"
#include "store/totals.h"
#include "store/txn.h"
#include "store/unit.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * The writer: one thread, one connection, one commit for all jobs that are queued. Jobs are
 * answered after the commit is on disk, never before. A failed write, sync or checkpoint turns the
 * writer broken: it refuses all work until the store is opened again. A database that cannot be
 * reached is no such failure: the writer goes on once it can be.
 *
 * Finished jobs on their way back to their sinks. Thread: any.
 *
 * The state of a database that cannot be reached. From the first failure until a connection works
 * again, the store is away: it refuses work at once, and a thread tries to connect. SQLite is never
 * away.
 */
struct hfd_away {
    const struct hfd_store_place *place; /* borrowed */
    atomic_bool now;
    pthread_mutex_t lock; /* of the rest; no other lock is taken under it */
    pthread_cond_t changed;
    bool stop;
    struct hfd_err cause; /* the last failure */
    pthread_t thread;
    bool started;
};

/** The database could not be reached. Thread: any. */
void hfd_away_note(struct hfd_away *a, const struct hfd_err *why);
/** @return HFD_OK, or HFD_AWAY with the last failure. Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_away_check(struct hfd_away *a, struct hfd_err *err);

struct hfd_writer {
    struct hfd_queue *queue;
    size_t batch_max;
    const struct hfd_clock *clock;
    const struct hfd_store_place *place; /* borrowed; set before it is opened */
    struct hfd_db *db;
    pthread_t thread;
    bool started;
    struct hfd_row_stamps stamps;
    struct hfd_tally tally;
    struct hfd_effects effects;
    struct hfd_totals totals;
    struct hfd_unit unit;
    bool rooted;          /* all jobs of the group have named their roots */
    bool keeps_rows;      /* the next job of the transaction has the rows of the last one */
    atomic_bool breaking; /* one thread sets `cause` */
    atomic_bool broken;   /* set after `cause` */
    struct hfd_err cause;
    bool shared;          /* other programs write to the database, too */
    struct hfd_away away; /* with `shared` alone */
    void (*on_broken)(void *ctx);
    void *on_broken_ctx;
    void (*on_change)(void *ctx); /* NULL = nothing listens */
    void *on_change_ctx;
};

/**
 * Opens the database and brings its schema up to date.
 * @param config  borrows; defaults are filled in
 */
HFD_MUST_CHECK hfd_rc hfd_writer_open(struct hfd_writer *w, const struct hfd_store_config *config,
                                      struct hfd_err *err);
/** Starts the thread. A stepped store does not. */
HFD_MUST_CHECK hfd_rc hfd_writer_start(struct hfd_writer *w, struct hfd_err *err);
/** Runs one batch of what is queued. Thread: of a stepped store. */
void hfd_writer_step(struct hfd_writer *w);
/** Finishes what is queued, ends the thread, closes the database. Accepts one half open. */
void hfd_writer_close(struct hfd_writer *w);

/** @return HFD_OK, HFD_IO with the first failure, or HFD_AWAY. Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_writer_check(struct hfd_writer *w, struct hfd_err *err);
bool hfd_writer_ok(const struct hfd_writer *w);
/** Takes no more work, because of the cause. Thread: any. */
void hfd_writer_break(struct hfd_writer *w, const struct hfd_err *cause);

/** @param node  of a job; NULL gives NULL */
static inline struct hfd_job *hfd_job_of(struct hfd_qnode *node)
{
    return node != NULL ? HFD_CONTAINER_OF(node, struct hfd_job, node) : NULL;
}

/** The next job of a list. */
static inline struct hfd_job *hfd_job_next(const struct hfd_job *job)
{
    return hfd_job_of(job->node.next);
}

/** Sets the outcome of a job. @param err  used when rc is not HFD_OK */
void hfd_job_finish(struct hfd_job *job, hfd_rc rc, const struct hfd_err *err);
/**
 * Gives finished jobs back: one call per sink, in the order of submission. After the call for its
 * sink a job is its submitter's again.
 */
void hfd_jobs_post(struct hfd_job *list);

/* ---- readers ---- */

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
