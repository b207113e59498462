/* Which servers use a database now, by their rows in `replica`. Thread: that of the connection. */
#ifndef HFD_STORE_ALONE_H
#define HFD_STORE_ALONE_H

#include "store/db.h"

/** A server lives that gave a sign of life so lately. */
#define HFD_ALONE_LIVE_US INT64_C(9000000)

/**
 * Refuses while a server lives that knows fewer migrations than `schema`. The message names it.
 * @param schema  INT64_MAX: any server
 * @return HFD_OK, HFD_CONFLICT, or as hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_alone_check(struct hfd_db *db, int64_t schema, struct hfd_err *err);

#endif
