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

/** Appends a call of fn with a copy of `size` bytes at arg. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_effects_add(struct hfd_effects *e, hfd_effect_fn *fn, const void *arg,
                                      size_t size, struct hfd_err *err);
/** Makes the calls and empties the list, whose memory is kept. */
void hfd_effects_run(struct hfd_effects *e);
/** Forgets what was appended after the list had `len` bytes. */
void hfd_effects_cut(struct hfd_effects *e, size_t len);
void hfd_effects_fini(struct hfd_effects *e);

#endif
