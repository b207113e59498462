/*
 * Calls that wait for a commit: what transaction functions want done once their changes are on
 * disk, in order. A job that fails takes its calls back. Thread: writer.
 */
#ifndef HFD_STORE_EFFECTS_H
#define HFD_STORE_EFFECTS_H

#include "store/store.h"

#include <stddef.h>

/* Zero = empty. */
struct hfd_effects {
    char *bytes; /* owned */
    size_t len, capacity;
};

/** Makes the calls and empties the list, whose memory is kept. */
void hfd_effects_run(struct hfd_effects *e);
/** Forgets what was appended after the list had `len` bytes. */
void hfd_effects_cut(struct hfd_effects *e, size_t len);
void hfd_effects_fini(struct hfd_effects *e);

#endif
