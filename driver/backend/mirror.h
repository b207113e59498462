/*
 * The remote HyperFleet behind the seam of backend.h, and what remote/ shares with it. Thread:
 * writer, inside a transaction function.
 */
#ifndef HFD_BACKEND_MIRROR_H
#define HFD_BACKEND_MIRROR_H

#include "driver/backend/backend.h"
#include "driver/base/clock.h"

extern const struct hfd_backend hfd_backend_remote;

/* Memory for one resource with its parts, while a pass works on it. */
#define HFD_MIRROR_SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

#endif
