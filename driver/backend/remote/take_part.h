/* Answers to requests for one part. Thread: writer, inside a transaction function. */
#ifndef HFD_REMOTE_TAKE_PART_H
#define HFD_REMOTE_TAKE_PART_H

#include "driver/backend/remote/take.h"

/** The answer to GET, POST, PATCH, DELETE or a page of reports, by the request's step. */
HFD_MUST_CHECK hfd_rc hfd_take_part(struct hfd_take *t, struct hfd_pass_part *part,
                                    struct hfd_err *err);

#endif
