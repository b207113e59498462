/*
 * Ends an operation that cannot be carried out. The next PUT or DELETE begins anew. Thread: writer,
 * inside a transaction function.
 */
#ifndef HFD_REMOTE_REFUSE_H
#define HFD_REMOTE_REFUSE_H

#include "driver/backend/remote/take.h"

/**
 * Fails the operation and ends the pass. Takes back deleted_us of parts that are not going to be
 * deleted.
 * @param message  of words.h; without p: memory was short
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message,
                                 struct hfd_err *err);
/** The name of a part is taken by this HyperFleet resource. @param made_by  its server, or empty */
HFD_MUST_CHECK hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                                       hfd_slice id, hfd_slice made_by, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part,
                                        struct hfd_err *err);
/** The answer is 401 or 403. Tries again later; refuses the operation after some in a row. */
HFD_MUST_CHECK hfd_rc hfd_refuse_credentials(struct hfd_take *t, struct hfd_err *err);

#endif
