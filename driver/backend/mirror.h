/* Shared by mirror.c and remote/. Thread: writer, inside a transaction function. */
#ifndef HFD_BACKEND_MIRROR_H
#define HFD_BACKEND_MIRROR_H

#include "driver/backend/backend.h"
#include "driver/base/clock.h"

/* One resource with its parts, while it is worked on. */
#define HFD_MIRROR_SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

/**
 * A row with a place-holder for its id, not written yet; borrows from `in`. @return HFD_OK,
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_mirror_row_new(const struct hfd_fleet_call *call,
                                         const struct hfd_fleet_create *in,
                                         struct hfd_fleet_row *out, struct hfd_err *err);

#endif
