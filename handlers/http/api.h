/* Functions that several handlers use. Thread: loop. */
#ifndef HFD_HTTP_API_H
#define HFD_HTTP_API_H

#include "driver/base/buf.h"
#include "handlers/http/exchange.h"

/**
 * Finds the caller of a request: created_by, updated_by and deleted_by of its changes.
 * @param out  static, or in the exchange's memory
 * @return HFD_OK, HFD_BAD_REQUEST (two callers), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_api_caller(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err);

/**
 * Replies with the body built in b; without a body if b is empty. If the body could not be built,
 * replies with an error. Takes the memory of b.
 */
void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type,
                  struct hfd_buf *b);

#endif
