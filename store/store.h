/*
 * Durable state. Work is given as transaction functions: ordinary synchronous code over typed rows
 * (store/rows_*.h).
 *
 *   hfd_store_read    runs one now, in a snapshot, on the caller's own connection: point reads
 *   hfd_store_point   the same where others write to the database: many together, and calls back
 *   hfd_store_view    runs one on a reader thread, and calls back: lists, search
 *   hfd_store_update  runs one on the writer thread, and calls back after the commit is on disk
 *
 * A transaction function may run again. It touches nothing but `tx` and `arg`, and sets up its
 * results from scratch each time. If it returns anything but HFD_OK, its own writes are undone.
 *
 * The store refuses network file systems, a database of a newer program, synchronous levels below
 * FULL, and a second process on the same folder.
 */
#ifndef HFD_STORE_STORE_H
#define HFD_STORE_STORE_H

#include <stdatomic.h>

#include "driver/base/clock.h"
#include "driver/base/meter.h"
#include "driver/base/queue.h"
#include "driver/base/slice.h"
#include "driver/base/trace.h"
#include "store/place.h"

struct hfd_series;
struct hfd_store;
struct hfd_store_reader;
struct hfd_txn;

typedef hfd_rc hfd_txn_fn(struct hfd_txn *tx, void *arg, struct hfd_err *err);

/**
 * Counts in a metric once the transaction is on disk. One that is undone does not count; one that
 * runs again counts once.
 * @param series  of a counter, lives for ever; NULL counts nothing
 * Thread: writer, inside a transaction function.
 */
void hfd_txn_count(struct hfd_txn *tx, struct hfd_series *series, int64_t delta);

/** Runs after a commit. arg is aligned for any type, and valid during the call. */
typedef void hfd_effect_fn(const void *arg);
/**
 * Has fn called once the transaction is on disk, and only then: for log lines and wake-ups. Calls
 * are made in order, before the job is answered. fn is quick and does not use the store.
 * @param arg  `size` bytes, copied
 * @return HFD_OK, HFD_NOMEM
 * Thread: writer, inside a transaction function; fn as well.
 */
HFD_MUST_CHECK hfd_rc hfd_txn_after_commit(struct hfd_txn *tx, hfd_effect_fn *fn, const void *arg,
                                           size_t size, struct hfd_err *err);

/** Gives the time of the database's clock: for several servers the same. */
HFD_MUST_CHECK hfd_rc hfd_txn_now(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/** Checks the database that the transaction sees: hfd_db_check. @param meter  may be NULL */
HFD_MUST_CHECK hfd_rc hfd_txn_check(struct hfd_txn *tx, struct hfd_meter *meter,
                                    struct hfd_err *err);
struct hfd_job;

/**
 * The receiver of finished jobs. `post` is called once per sink and commit, with a list linked by
 * job->node.next. The receiver wakes its loop, and the loop calls job->done(job) for each.
 * A sink outlives its jobs.
 * Thread: writer, or a reader.
 */
struct hfd_sink {
    void (*post)(struct hfd_sink *sink, struct hfd_job *list);
};

/**
 * One piece of work on its way. The submitter owns it until it is submitted, and again from `done`
 * on. In between the store owns it.
 */
struct hfd_job {
    struct hfd_qnode node; /* the store's: a place on a queue, or in a list of answers */
    bool isolated;         /* the writer's: it failed after it had written */
    bool is_short;         /* the submitter's: a view that takes the lane of short ones */
    hfd_txn_fn *fn;
    hfd_txn_fn *prefetch; /* names the roots of fn (store/rows_resource.h), reads what fn will read,
                          and drops it; may be NULL. Its outcome is not used, and it is not called
                          by an engine that does not gather */
    void *arg; /* owned with the job; the submitting loop must not free what it points to */
    struct hfd_sink *sink;
    void (*done)(struct hfd_job *job); /* called by the sink's loop */
    hfd_rc rc;                         /* the outcome: fn's, or HFD_IO when the commit failed */
    struct hfd_err err;
    /*
     * Set by the submitter while the job is out: its client has gone. A view is not run, or is
     * interrupted, with HFD_TIMEOUT. Updates run all the same.
     */
    atomic_bool cancelled;
    struct hfd_trace trace; /* the store's: of what the submitting thread worked for */
};

struct hfd_store_config {
    struct hfd_store_place place;  /* borrowed; a folder is made with mode 0700 */
    size_t queue_max;              /* jobs waiting for the writer; beyond it HFD_BUSY. 0 = 4096 */
    size_t batch_max;              /* jobs per commit. 0 = 1024 */
    unsigned readers;              /* reader threads, beside that of short views. 0 = 2 */
    int64_t read_timeout_us;       /* a view that runs longer is interrupted. 0 = never */
    const struct hfd_clock *clock; /* NULL = the system's */
    bool stepped;                  /* no threads: jobs wait for hfd_store_step. For simulations */
};

/**
 * Opens the store at config->place. Makes it or migrates it where needed, takes the lock file,
 * reads WAL and synchronous=FULL back, and starts the writer and reader threads.
 * @param out  gives; NULL on failure
 * @return HFD_OK, HFD_CONFLICT (another process holds the folder), HFD_CORRUPT, HFD_IO,
 * HFD_INVALID (a database of a newer program), HFD_NOMEM
 * Thread: start-up.
 */
HFD_MUST_CHECK hfd_rc hfd_store_open(const struct hfd_store_config *config, struct hfd_store **out,
                                     struct hfd_err *err);

/**
 * Stops taking work, finishes the queued jobs, ends the threads, checkpoints, releases the lock.
 * All readers must be closed before. Takes *store.
 * Thread: shut-down.
 */
void hfd_store_close(struct hfd_store **store);

/**
 * Returns true while the store accepts work. After HFD_IO or HFD_CORRUPT on the writer it accepts
 * none until it is opened again.
 * Thread: any.
 */
bool hfd_store_ok(const struct hfd_store *store);

/**
 * Returns true while the database cannot be reached. The store goes on by itself once it can be;
 * work is refused with HFD_AWAY meanwhile.
 * Thread: any.
 */
bool hfd_store_is_away(struct hfd_store *store);

/**
 * Turns the store broken: it accepts no more work, and gives `why` as the reason. Thread: any.
 */
void hfd_store_break(struct hfd_store *store, const struct hfd_err *why);

/**
 * Sets a function that is called once when the store turns broken. Thread of fn: writer, or that of
 * hfd_store_break.
 */
void hfd_store_on_broken(struct hfd_store *store, void (*fn)(void *ctx), void *ctx);

struct hfd_row_stamps;
/** Gives what tells of changes of driver resources (row_cache.h). It lives as long as the store. */
struct hfd_row_stamps *hfd_store_stamps(struct hfd_store *store);
/**
 * Sets a function that is called after each commit that changed driver resources. It is quick, and
 * does not use the store. Call this before work is queued. Thread of fn: writer.
 */
void hfd_store_on_change(struct hfd_store *store, void (*fn)(void *ctx), void *ctx);

/**
 * Queues a job for the writer thread. job->done runs on the sink's loop, after the commit is on
 * disk.
 * @return HFD_OK (taken), HFD_BUSY (the queue is full or closed), HFD_IO (broken), HFD_AWAY. On
 * failure the job stays the caller's.
 * Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_store_update(struct hfd_store *store, struct hfd_job *job,
                                       struct hfd_err *err);
/**
 * Queues a job for a reader thread, where it sees one snapshot. Its outcome is HFD_TIMEOUT when it
 * was cancelled or took longer than read_timeout_us. Returns as hfd_store_update.
 */
HFD_MUST_CHECK hfd_rc hfd_store_view(struct hfd_store *store, struct hfd_job *job,
                                     struct hfd_err *err);
/** Returns true when hfd_store_point takes reads: others write to the database. Thread: any. */
bool hfd_store_has_point_reads(const struct hfd_store *store);
/**
 * Queues a read of few rows: on a shared store with threads alone. Jobs that wait are read
 * together, in one snapshot. Returns as hfd_store_update.
 */
HFD_MUST_CHECK hfd_rc hfd_store_point(struct hfd_store *store, struct hfd_job *job,
                                      struct hfd_err *err);

/**
 * Queues fn(arg) for the writer and waits for its end.
 * @return the outcome of fn, or as hfd_store_update
 * Thread: any but a loop: the command line, start-up, the demo adapters.
 */
HFD_MUST_CHECK hfd_rc hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                            struct hfd_err *err);

/** The same for a job with fn, arg and prefetch. Its sink is set. */
HFD_MUST_CHECK hfd_rc hfd_store_job_wait(struct hfd_store *store, struct hfd_job *job,
                                         struct hfd_err *err);

/**
 * Runs what is queued in a stepped store: one batch of updates, then all views. Posts the answers
 * before it returns. hfd_store_update_wait steps by itself.
 * Thread: the one that opened the store.
 */
void hfd_store_step(struct hfd_store *store);

/** Opens a connection for the calling thread; it cannot write. @param out  gives */
HFD_MUST_CHECK hfd_rc hfd_store_reader_open(struct hfd_store *store, struct hfd_store_reader **out,
                                            struct hfd_err *err);
void hfd_store_reader_close(struct hfd_store_reader **reader);
/** Runs fn in one read snapshot, now. Thread: the one that opened the reader (asserted). */
HFD_MUST_CHECK hfd_rc hfd_store_read(struct hfd_store_reader *reader, hfd_txn_fn *fn, void *arg,
                                     struct hfd_err *err);

struct hfd_db_signal;
/**
 * hfd_db_signal on the connection of a reader, which is used for nothing else. After a failure it
 * connects again. Thread: the one that opened the reader.
 */
HFD_MUST_CHECK hfd_rc hfd_store_signal(struct hfd_store_reader *reader,
                                       const struct hfd_db_signal *signal, bool *heard,
                                       struct hfd_err *err);

#endif
