/* Names the rows that the commands of the Driver API will read: hfd_job.wants. Thread: writer. */
#ifndef HFD_CORE_WANTS_H
#define HFD_CORE_WANTS_H

#include "driver/core/driver.h"

/** Names the rows that hfd_resource_put will read. Its outcome means nothing. */
HFD_MUST_CHECK hfd_rc hfd_resource_put_wants(struct hfd_txn *tx, const struct hfd_call *call,
                                             struct hfd_err *err);
/** Names the rows that hfd_resource_delete will read. */
HFD_MUST_CHECK hfd_rc hfd_resource_delete_wants(struct hfd_txn *tx, const struct hfd_call *call,
                                                struct hfd_err *err);

#endif
