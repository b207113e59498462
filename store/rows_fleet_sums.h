/* Checksums of HyperFleet resources: hfd_fleet_sums walks them. Thread: that of the transaction. */
#ifndef HFD_STORE_ROWS_FLEET_SUMS_H
#define HFD_STORE_ROWS_FLEET_SUMS_H

#include "store/row_io.h"
#include "store/rows_fleet.h"

#define HFD_FLEET_TEXTS 9u
/** The offsets of the texts of a row: those of the head, and then the documents. */
extern const size_t hfd_fleet_texts[HFD_FLEET_TEXTS];

/** The checksum of the head of a row, and that of its documents. */
int64_t hfd_fleet_sum(const struct hfd_fleet_row *row);
int64_t hfd_fleet_doc_sum(const struct hfd_fleet_row *row);
/** Reads a row and compares its checksums: hfd_row_read. */
void hfd_fleet_read(struct hfd_row_in *in, void *out);
/** Gets the statement that reads a row by its id, bound. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_prepare(struct hfd_txn *tx, hfd_slice id, struct hfd_stmt **out,
                                            struct hfd_err *err);

#endif
