/*
 * What a resource is found by in searches, taken from its documents: searchable labels and
 * aggregated conditions. Thread: writer.
 */
#ifndef HFD_FLEET_KEYS_H
#define HFD_FLEET_KEYS_H

#include "driver/fleet/condition.h"
#include "store/rows_fleet.h"
#include "store/rows_keys.h"

/**
 * Whether a search can name this key: lower-case letters, digits, underscores. Others are kept,
 * but found by nothing.
 */
bool hfd_label_searchable(hfd_slice key);

/** A resource's documents as far as searches see them; NULL members for none. */
struct hfd_fleet_found_by {
    hfd_slice labels; /* JSON object of strings */
    const struct hfd_conditions *conditions;
};

/** Writes what differs between the two. @return HFD_OK, HFD_NOMEM, or as hfd_fleet_keys_put */
HFD_MUST_CHECK hfd_rc hfd_fleet_reindex(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                        const struct hfd_fleet_found_by *was,
                                        const struct hfd_fleet_found_by *is, struct hfd_arena *mem,
                                        struct hfd_err *err);

#endif
