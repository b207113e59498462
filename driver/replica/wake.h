/*
 * Wake-ups between replicas. A replica that has committed work for others sends a signal, at most
 * one in 100 ms. The connection is its own, as in the writing transaction a signal costs more than
 * the rest. Others look at once. A signal may be lost, as all loops also look each second.
 */
#ifndef HFD_REPLICA_WAKE_H
#define HFD_REPLICA_WAKE_H

#include "store/store.h"

struct hfd_wake;

struct hfd_wake_config {
    struct hfd_store *store;
    void (*heard)(void *ctx); /* a signal of another replica came; thread: its own */
    void *ctx;
};

/** Starts the thread. @param out  gives. @return HFD_OK, HFD_NOMEM, HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_wake_start(const struct hfd_wake_config *config, struct hfd_wake **out,
                                     struct hfd_err *err);
/** Ends the thread. Accepts a pointer to NULL. */
void hfd_wake_stop(struct hfd_wake **wake);
/** Has a signal sent soon. Cheap, never waits. Thread: any. */
void hfd_wake_note(struct hfd_wake *wake);

#endif
