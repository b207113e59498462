/*
 * Answers about orphans (orphans.h): pages of the search, and requests for one orphan. An orphan is
 * deleted only if a client has asked for that. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_TAKE_ORPHANS_H
#define HFD_REMOTE_TAKE_ORPHANS_H

#include "driver/backend/remote/take.h"

/*
 * The search is due again after this number of idle intervals, and when a client asks for the list.
 */
#define HFD_SEARCH_EVERY 12

/** A page of SEARCH_CLUSTERS or SEARCH_POOLS. */
HFD_MUST_CHECK hfd_rc hfd_take_search(struct hfd_take *t, struct hfd_err *err);
/** An answer in ORPHAN_LOOK, ORPHAN_DELETE, ORPHAN_VERIFY, or CHECK_ROUTE of one of these. */
HFD_MUST_CHECK hfd_rc hfd_take_orphan(struct hfd_take *t, struct hfd_err *err);

#endif
