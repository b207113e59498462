/*
 * Orders of the last 24 hours, and how long they took, for the status page. Thread: any reader,
 * inside a transaction function.
 */
#ifndef HFD_CORE_LATELY_H
#define HFD_CORE_LATELY_H

#include "driver/core/driver.h"

#define HFD_LATELY_US (24 * 3600 * INT64_C(1000000))

struct hfd_lately {
    int64_t orders;            /* creations and changes that were asked for */
    bool more;                 /* there were others: the newest HFD_DAY_MAX are looked at */
    int64_t finished;          /* orders whose resource became ready */
    int64_t median_us, p95_us; /* how long these took; 0 = there is none */
};

/** Reads it as of c->now_us. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_lately_read(const struct hfd_ctx *c, struct hfd_lately *out);

#endif
