/*
 * Seals stored secrets again after a rotation of keys: output secrets of driver resources, secrets
 * of reports, and secrets of orders. It goes in small steps. Each row names the key that sealed it,
 * so a step can be repeated, and a start goes on where the last one ended. Cookies and digests are
 * not touched: the next PUT renews them, as the orchestrator keeps the old cookie until then.
 * Thread: any but a loop; one at a time.
 */
#ifndef HFD_CORE_RESEAL_H
#define HFD_CORE_RESEAL_H

#include "driver/core/driver.h"

/**
 * Seals again what other keys than the active one sealed.
 * @param reader  of the calling thread, for finding rows; borrowed
 * @param stop    ends it between two steps when it becomes true
 * @param count   rows that were sealed again; those that cannot be opened are logged and left
 */
struct hfd_reseal {
    const struct hfd_driver *driver;
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    const atomic_bool *stop;
    int64_t count;
};
HFD_MUST_CHECK hfd_rc hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err);

#endif
