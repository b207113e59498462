/*
 * Parts of a sign of life beside shards: the check of the schema, and the removal of rows of
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
 * Removes the marks of commits of programs that were killed, after a day: until then the answer to
 * a lost COMMIT may be looked up. It looks once an hour.
 * @param last_us  the last look; 0 = none yet
 * @param out      the last look from now on
 */
HFD_MUST_CHECK hfd_rc hfd_replica_forget_commits(struct hfd_txn *tx, int64_t now_us,
                                                 int64_t last_us, int64_t *out,
                                                 struct hfd_err *err);

#endif
