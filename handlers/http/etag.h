/*
 * Entity tags of answers: equal bytes have equal tags. Pure. Source: RFC 9110, 8.8.3 and 13.1.2.
 * Thread: any.
 */
#ifndef HFD_HTTP_ETAG_H
#define HFD_HTTP_ETAG_H

#include "driver/base/arena.h"

/**
 * Makes the strong tag of an answer, with its quotes.
 * @param out  in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_etag_make(hfd_slice body, struct hfd_arena *mem, hfd_slice *out,
                                    struct hfd_err *err);

/** Tells if a value of If-None-Match has the tag: the answer is 304. */
bool hfd_etag_matches(hfd_slice if_none_match, hfd_slice etag);

#endif
