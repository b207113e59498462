/*
 * The process_* metrics that Prometheus clients agree on, read from /proc/self. A value that cannot
 * be read is left out. Thread: any.
 */
#ifndef HFD_BASE_PROCSTAT_H
#define HFD_BASE_PROCSTAT_H

#include "driver/base/buf.h"

/** Adds the metrics with HELP and TYPE. */
void hfd_procstat_render(struct hfd_buf *b);
/** Adds the rows of the table of hfd_metrics_table. */
void hfd_procstat_table(struct hfd_buf *b);

#endif
