/* The embedded HyperFleet behind the seam of backend.h. Thread: writer, as there. */
#ifndef HFD_BACKEND_EMBEDDED_H
#define HFD_BACKEND_EMBEDDED_H

#include "driver/backend/backend.h"

extern const struct hfd_backend hfd_backend_embedded;

#endif
