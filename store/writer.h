/*
 * The writer: one thread, one connection, one commit for all jobs that are queued. Jobs are
 * answered after the commit is on disk, never before. A failed write, sync or checkpoint turns the
 * writer broken: it refuses all work until the store is opened again. A database that cannot be
 * reached is no such failure: the writer goes on once it can be (away.h).
 */
#ifndef HFD_STORE_WRITER_H
#define HFD_STORE_WRITER_H

#include "store/away.h"
#include "store/totals.h"
#include "store/txn.h"
#include "store/unit.h"

#include <pthread.h>

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

#endif
