/* From the settled row of a resource to the answer of a request. Thread: any, in a transaction. */
#ifndef HFD_CORE_ANSWER_H
#define HFD_CORE_ANSWER_H

#include "driver/core/driver.h"

/** The answer of GET and DELETE. */
HFD_MUST_CHECK hfd_rc hfd_answer_row(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     struct hfd_answer_doc *out);
/**
 * The answer of PUT: with the cookie on 200, 202 and 409.
 * @param conflict  409, with the hint of the operation in the way
 */
HFD_MUST_CHECK hfd_rc hfd_answer_put(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     bool conflict, struct hfd_answer_doc *out);

#endif
