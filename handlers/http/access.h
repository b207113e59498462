/*
 * Finds the credentials of a request, asks the guard, and answers a refused caller
 * with 401 or 403. Thread: loop.
 */
#ifndef HFD_HTTP_ACCESS_H
#define HFD_HTTP_ACCESS_H

#include "handlers/http/exchange_int.h"

/**
 * Checks the caller of a request that is not answered yet. Costs nothing without authentication.
 * @return true if the request may go on; otherwise it is answered
 */
bool hfd_access_check(struct hfd_exchange *x, enum hfd_need need);

/** Writes the line of a refused caller, if the log has room for it. */
void hfd_access_log_refusal(const struct hfd_failure_note *note, const char *reason,
                            const char *from);

/** Returns true if a browser may log in to a listener with a password (HTTP Basic). */
bool hfd_access_takes_basic(enum hfd_listener listener);

#endif
