/*
 * Walks through all rows that have a checksum: doctor checks them, a migration fills them in.
 * Thread: that of the transaction, or start-up.
 */
#ifndef HFD_STORE_ROW_WALK_H
#define HFD_STORE_ROW_WALK_H

#include "driver/base/meter.h"
#include "store/row_io.h"
#include "store/unit.h"

/** Where findings of hfd_rows_check go. */
struct hfd_row_findings {
    void (*found)(void *ctx, const char *text); /* the text is borrowed */
    void *ctx;
    size_t rows;             /* given: how many rows were read */
    struct hfd_meter *meter; /* learns how far it is; may be NULL */
};

/**
 * Reads all rows that have a checksum. Each damaged one is a finding.
 * @return HFD_OK also with findings; HFD_IO, HFD_CORRUPT, HFD_NOMEM when it cannot go on
 */
HFD_MUST_CHECK hfd_rc hfd_rows_check(struct hfd_txn *tx, struct hfd_row_findings *findings,
                                     struct hfd_err *err);

/**
 * Gives all rows without checksums their checksums. Commits by itself in small steps, and can run
 * again. Takes the database outside a transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_rows_fill(struct hfd_db *db, struct hfd_err *err);

#endif
