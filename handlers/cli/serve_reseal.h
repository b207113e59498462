/*
 * The thread of `serve` that seals stored secrets again after a rotation of keys (ring_check.h). It
 * counts what still needs each key. It works at the start, when it is woken, when this replica
 * begins to lead, every ten minutes, and 30 s after a failure. With a single key it does nothing.
 * Thread: main.
 */
#ifndef HFD_CLI_SERVE_RESEAL_H
#define HFD_CLI_SERVE_RESEAL_H

#include "driver/core/driver.h"

struct hfd_keeper;
struct hfd_serve_reseal;

/** All are borrowed until stop. The ring of the driver may be replaced meanwhile. */
struct hfd_serve_reseal_parts {
    const struct hfd_driver *driver;
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* it works while this leads; NULL = always */
};

/** Starts the thread. @param out  gives. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_serve_reseal_start(const struct hfd_serve_reseal_parts *parts,
                                             struct hfd_serve_reseal **out, struct hfd_err *err);
/** There may be a new ring: the thread works at once. */
void hfd_serve_reseal_wake(struct hfd_serve_reseal *r);
/** Ends the thread behind its present step. Takes; accepts a pointer to NULL. */
void hfd_serve_reseal_stop(struct hfd_serve_reseal **r);

#endif
