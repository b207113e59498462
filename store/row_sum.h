/*
 * The checksum of a row: a 64-bit hash (XXH3) over its columns, stored in the row. It finds bytes
 * that a disk changed. It is no protection against other programs that write the file.
 *
 * A column that is zero or empty adds nothing. So a migration may add a column with such a default,
 * and sums of old rows stay right. A new text goes behind the others of its row's list, a new
 * number behind the other numbers. A migration that changes rows sets their sums to NULL. Its name
 * ends in "_filled": the program then fills the sums (migrate.h).
 * Thread: any.
 */
#ifndef HFD_STORE_ROW_SUM_H
#define HFD_STORE_ROW_SUM_H

#include "store/row_io.h"

/** The values that a checksum covers. */
struct hfd_row_values {
    const void *row;
    const size_t *texts; /* offsets of its hfd_slice members */
    size_t text_count;
    const int64_t *numbers;
    size_t number_count;
};

/** Returns the sum. Its two highest bits are 0, so that SQL can add a time to it. */
int64_t hfd_row_sum(const struct hfd_row_values *values);

/**
 * Reads the next column, a checksum, and compares. A row with another one, or none, is damaged.
 * @param sum  of what was read
 */
void hfd_row_check(struct hfd_row_in *in, int64_t sum, const struct hfd_row_name *name);

#endif
