/*
 * The remote thread's use of the store: jobs for the writer, which come back to this thread, and
 * reads on a reader of its own. Thread: remote.
 */
#ifndef HFD_REMOTE_JOBS_H
#define HFD_REMOTE_JOBS_H

#include "driver/backend/remote/remote_int.h"

/** A transaction function with its argument, and what runs after the commit. */
struct hfd_remote_txn {
    hfd_txn_fn *fn;
    void *arg;
    void (*done)(struct hfd_job *job);
};

/** Queues fn(arg) for the writer. `done` runs in hfd_remote_collect. @return as hfd_store_update */
HFD_MUST_CHECK hfd_rc hfd_remote_submit(struct hfd_remote *r, struct hfd_job *job,
                                        const struct hfd_remote_txn *txn, struct hfd_err *err);
/** Runs `done` of the jobs that came back. */
void hfd_remote_collect(struct hfd_remote *r);
/** Runs fn(arg) in a read transaction. */
HFD_MUST_CHECK hfd_rc hfd_remote_read(struct hfd_remote *r, hfd_txn_fn *fn, void *arg,
                                      struct hfd_err *err);
/** The sink of all jobs. Thread: writer. */
void hfd_remote_on_posted(struct hfd_sink *sink, struct hfd_job *list);

#endif
