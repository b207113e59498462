/*
 * Finds the credentials of a request, asks the guard, and answers a refused caller
 * with 401, 403 or 503. Thread: loop.
 */
#ifndef HFD_HTTP_ACCESS_H
#define HFD_HTTP_ACCESS_H

#include "handlers/http/exchange_int.h"

/**
 * Checks the caller of a request that is not answered yet. Costs nothing without authentication.
 * @return true if the request may go on; otherwise it is answered
 */
bool hfd_access_check(struct hfd_exchange *x, enum hfd_need need);

/** Copies the token of a request that goes on without h2o's. @return false: memory is short */
HFD_MUST_CHECK bool hfd_access_keep(struct hfd_exchange *x);
/** Returns true while the caller of a request that waits may still make it. */
bool hfd_access_lasts(struct hfd_exchange *x);

/**
 * Checks that the caller of a request may report as an adapter.
 * @return true if the request may go on; otherwise it is answered
 */
bool hfd_access_may_report(struct hfd_exchange *x, hfd_slice adapter);
/** The same for a deletion of what is protected: force=true. */
bool hfd_access_may_force(struct hfd_exchange *x);
/**
 * Checks what an identity header says about the caller: it must not be a name of this server's own.
 * @return HFD_OK, HFD_FORBIDDEN (counted and logged)
 */
HFD_MUST_CHECK hfd_rc hfd_access_check_name(const struct hfd_exchange *x, hfd_slice name,
                                            struct hfd_err *err);

#endif
