/* Search keys of HyperFleet resources: copies of labels and of conditions' status, for lists. */
#ifndef HFD_STORE_ROWS_KEYS_H
#define HFD_STORE_ROWS_KEYS_H

#include "store/rows_fleet.h"

/*
 * The label that has another value for each cluster. Lists by it are short, so the store keeps no
 * totals of it: they would cost a row for each resource.
 */
#define HFD_LABEL_UNCOUNTED "humanitec_guresid"

/* Texts are borrowed. */
struct hfd_fleet_label {
    hfd_slice key, value;
};

struct hfd_fleet_condition {
    hfd_slice type, status;
};

struct hfd_fleet_keys {
    const struct hfd_fleet_label *labels; /* keys unique and ascending */
    size_t label_count;
    const struct hfd_fleet_condition *conditions; /* types unique */
    size_t condition_count;
};

/**
 * Makes a resource findable by `is` instead of `was`. Writes only what differs.
 * @param row  seq, kind and created_us are used
 * @param was  the keys of the last call for this resource; empty for a new one
 * @param is   empty for a resource that is removed
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                         const struct hfd_fleet_keys *was,
                                         const struct hfd_fleet_keys *is, struct hfd_err *err);

#endif
