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
/** The whole row, and the SQL that reads it by its id. */
extern const struct hfd_row_form hfd_fleet_form;
extern const char hfd_fleet_get_sql[];

#endif
