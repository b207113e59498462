/*
 * Parameters behind the '?': percent-decoded, '+' for a space, the last one of a name counts. Pure.
 * Thread: any.
 */
#ifndef HFD_HTTP_QUERY_H
#define HFD_HTTP_QUERY_H

#include "driver/base/arena.h"

/**
 * @param query  as received, without '?'
 * @param out    in mem; p is NULL when there is no such parameter
 * @return HFD_OK, HFD_BAD_REQUEST (its value is not percent-encoded as it should be), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_query_get(hfd_slice query, const char *name, struct hfd_arena *mem,
                                    hfd_slice *out, struct hfd_err *err);

/**
 * A whole number from 1 to max; *out stays when the parameter is absent or blank. @return as get,
 * and HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_query_i64(hfd_slice query, const char *name, int64_t max,
                                    struct hfd_arena *mem, int64_t *out, struct hfd_err *err);

#endif
