/*
 * Walks through all rows that have a checksum: doctor checks them, a migration fills them in.
 * Thread: that of the transaction, or start-up.
 */
#ifndef HFD_STORE_ROW_WALK_H
#define HFD_STORE_ROW_WALK_H

#include "store/row_io.h"
#include "store/unit.h"

#define HFD_SUMS_MAX 2

/** A table whose rows have checksums. A key of one text has an empty second one. */
struct hfd_sum_table {
    const char *name;
    const struct hfd_row_form *form;
    const char *keys; /* SQL: a page of keys behind (?1, ?2), in their order */
    const char *open; /* SQL: as keys, of rows without a checksum */
    const char *get;  /* SQL: the row of a key, (?1, ?2) or ?1 */
    const char *fill; /* SQL: sets the checksums of a key to the parameters behind it */
    int key_texts;
};

extern const struct hfd_sum_table hfd_fleet_sums, hfd_report_sums, hfd_resource_sums, hfd_part_sums;

/** Where findings of hfd_rows_check go. */
struct hfd_row_findings {
    void (*found)(void *ctx, const char *text);
    void *ctx;
    size_t rows; /* given: how many rows were read */
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
