/*
 * Numbers that rise: of HyperFleet resources, and of entries of the history.
 *
 * With one writer a number is the highest one, plus one. Groups of several servers write at the
 * same time, so there each group has numbers of its own: base + (its transaction's number << 16) +
 * n. PostgreSQL gives the transaction its number after it has its locks. So numbers of one root
 * rise in the order of commits. Readers of a feed stop before the first group that is not finished.
 *
 * A number stays below 2^53, as JSON needs it, for 2^37 transactions: 43 years of 100 a second.
 */
#ifndef HFD_STORE_NUMBER_H
#define HFD_STORE_NUMBER_H

#include "store/txn.h"

/** Numbers that one group may give. */
#define HFD_NUMBERS_MAX 65535

/** Numbers that a group has given. Zeroed = none yet. */
struct hfd_number {
    int64_t first, last; /* before the first one; the last one. 0 = not read yet */
};

/**
 * Gives the next number.
 * @param n         of the unit of work; NULL = there is none, and the table is read
 * @param sql_last  gives the highest number of one writer
 * @return HFD_OK, HFD_LIMIT (the group has given HFD_NUMBERS_MAX), or as hfd_stmt_step
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_number_next(struct hfd_txn *tx, struct hfd_number *n,
                                      const char *sql_last, int64_t *out, struct hfd_err *err);
/**
 * Gives the lowest number that a group which is not finished may have; INT64_MAX = there is none.
 * @param tx  of a reader: asked before the numbers are read. A writer's is never limited
 */
HFD_MUST_CHECK hfd_rc hfd_number_end(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/**
 * Gives a number above all that were given so far; INT64_MAX where hfd_number_end does. It never
 * goes back, as hfd_number_end may.
 */
HFD_MUST_CHECK hfd_rc hfd_number_bound(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

#endif
