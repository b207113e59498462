/*
 * The process_* metrics that Prometheus clients agree on, read from /proc/self. What cannot be read
 * is left out.
 */
#ifndef HFD_BASE_PROCSTAT_H
#define HFD_BASE_PROCSTAT_H

#include "driver/base/buf.h"

/** Adds them with HELP and TYPE. Thread: any. */
void hfd_procstat_render(struct hfd_buf *b);

#endif
