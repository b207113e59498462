/* The next request of a pass, from its memory and the rows. */
#ifndef HFD_BACKEND_REMOTE_PLAN_H
#define HFD_BACKEND_REMOTE_PLAN_H

#include "driver/base/err.h"

struct hfd_pass;
struct hfd_remote_request;
struct hfd_txn;

/**
 * Moves the pass to the phase that has something to do, and makes its request.
 * @param out  valid until the next call for this pass; out->path.p is NULL if the pass is over
 * @return HFD_OK, HFD_NOMEM, HFD_LIMIT, HFD_IO, HFD_CORRUPT
 * Thread: any, in a read transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_pass_next(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                                    struct hfd_remote_request *out, struct hfd_err *err);

#endif
