/* The headers of an answer. Thread: loop. */
#ifndef HFD_HTTP_HEADERS_H
#define HFD_HTTP_HEADERS_H

#include "handlers/http/encoding.h"

/** The part of an answer's headers that the reply does not have. */
struct hfd_headers {
    hfd_slice request_id;
    enum hfd_dialect dialect;
    enum hfd_listener listener;
    struct hfd_encoding encoding;
};

/** The lines of a 401 for an answer that the door writes. */
const char *hfd_headers_challenges(enum hfd_listener listener);

/** Adds the headers of a reply to a request. */
void hfd_headers_add(h2o_req_t *req, const struct hfd_reply *reply, const struct hfd_headers *more);

#endif
