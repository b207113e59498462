/*
 * Parts of a sign of life beside shards: the check of the schema, totals of lists, and rows of
 * programs that are gone. Thread: that of the transaction.
 */
#ifndef HFD_REPLICA_UPKEEP_H
#define HFD_REPLICA_UPKEEP_H

#include "store/store.h"

/**
 * Refuses a program that is too old for the database: after `migrate --contract` no such program
 * gives a sign of life any more.
 * @param known  version of the schema that the program knows
 * @return HFD_OK, HFD_INVALID, or as hfd_replica_row_schema_min
 */
HFD_MUST_CHECK hfd_rc hfd_replica_check_schema(struct hfd_txn *tx, int64_t known,
                                               struct hfd_err *err);
/**
 * Brings the totals of all replicas together. Once an hour it removes old marks of commits of
 * programs that were killed. For a day the answer to a lost COMMIT may be looked up.
 * @param last_us  the last look at marks; 0 = none yet
 * @param out      the last look from now on
 */
HFD_MUST_CHECK hfd_rc hfd_replica_tidy(struct hfd_txn *tx, int64_t now_us, int64_t last_us,
                                       int64_t *out, struct hfd_err *err);
/** The end of a replica: its leases are free, its row is removed, its totals are those of all. */
HFD_MUST_CHECK hfd_rc hfd_replica_leave(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);

#endif
