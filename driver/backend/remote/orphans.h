/*
 * Orphans: clusters and nodepools in a remote HyperFleet with the labels of this server that are no
 * part of a driver resource. The remote thread searches for them, when a client asks and once in a
 * while (orphans.c), and writes rows. A list reads these rows. A deletion is written into
 * them, and the thread carries it out. README.md in this folder explains the rules.
 */
#ifndef HFD_REMOTE_ORPHANS_H
#define HFD_REMOTE_ORPHANS_H

#include "driver/base/err.h"
#include "driver/base/slice.h"

struct hfd_arena;
struct hfd_backend_orphan_query;
struct hfd_backend_orphans;
struct hfd_backend_orphans_state;
struct hfd_fleet_call;
struct hfd_orphan_row;
struct hfd_take;
struct hfd_txn;

/**
 * It is a part of a resource now: removes its row. Logs it if a deletion was requested. Thread:
 * writer.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_adopted(struct hfd_txn *tx, hfd_slice id,
                                                struct hfd_arena *mem, struct hfd_err *err);

/**
 * Lists orphans of a kind by GUResID and age. Leaves out those that a resource has or may get.
 * @return HFD_OK, HFD_NOMEM, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_list(struct hfd_txn *tx,
                                              const struct hfd_backend_orphan_query *query,
                                              struct hfd_backend_orphans *out, struct hfd_err *err);

/** The age of the list. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_state(struct hfd_txn *tx, struct hfd_arena *mem,
                                               struct hfd_backend_orphans_state *out,
                                               struct hfd_err *err);

/**
 * Requests the deletion of an orphan. The thread looks at it once more, and deletes it if it is
 * still an orphan then. A repeat makes it due at once.
 * @param out  as it was seen last
 * @return HFD_OK, HFD_NOT_FOUND (no such orphan is known), HFD_CONFLICT (a resource has it)
 * Thread: writer; wake the remote thread after the commit.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_remove(struct hfd_txn *tx,
                                               const struct hfd_fleet_call *call, hfd_slice id,
                                               struct hfd_orphan_row *out, struct hfd_err *err);

/*
 * Answers about orphans (orphans.h): pages of the search, and requests for one orphan. An orphan is
 * deleted only if a client has asked for that. Thread: writer, inside a transaction function.
 */

/*
 * The search is due again after this number of idle intervals, and when a client asks for the list.
 */
#define HFD_SEARCH_EVERY 12

/** A page of SEARCH_CLUSTERS or SEARCH_POOLS. */
HFD_MUST_CHECK hfd_rc hfd_take_search(struct hfd_take *t, struct hfd_err *err);
/** An answer in ORPHAN_LOOK, ORPHAN_DELETE or ORPHAN_VERIFY. */
HFD_MUST_CHECK hfd_rc hfd_take_orphan(struct hfd_take *t, struct hfd_err *err);

#endif
