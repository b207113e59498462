/* Reads what is due, and begins passes as far as slots and breaker allow. Thread: remote. */
#ifndef HFD_REMOTE_BEGIN_H
#define HFD_REMOTE_BEGIN_H

#include "driver/backend/remote/remote_int.h"

/** Begins what is due, if something may be due and work may begin. */
void hfd_remote_begin_due(struct hfd_remote *r);
/** Counts what is due for the metrics, once in a while. */
void hfd_remote_count_due(struct hfd_remote *r);

#endif
