/*
 * The search keys of a cluster or nodepool, taken from its documents: searchable labels and
 * conditions. Thread: writer.
 */
#ifndef HFD_FLEET_KEYS_H
#define HFD_FLEET_KEYS_H

#include "driver/fleet/condition.h"
#include "store/rows_fleet.h"
#include "store/rows_keys.h"

/**
 * True if a search can name this label key: the key of a Kubernetes label, or lower-case letters,
 * digits and underscores. Labels with other keys are stored, but no search finds them.
 */
bool hfd_label_searchable(hfd_slice key);

/**
 * True if the status of conditions of that type is a search key. Reconciled and
 * LastKnownReconciled have none, so a search reads their documents. Their keys would add a tenth to
 * the work of a creation, and sentinels do not search by them.
 */
bool hfd_condition_has_key(hfd_slice type);

/** The searchable documents of a resource; NULL members for none. */
struct hfd_fleet_found_by {
    hfd_slice labels; /* JSON object of strings */
    const struct hfd_conditions *conditions;
};

/** A change of searchable documents. */
struct hfd_fleet_reindex {
    struct hfd_fleet_found_by was, is;
};

/**
 * Writes the search keys that differ.
 * @return HFD_OK, HFD_NOMEM, or as hfd_fleet_keys_put
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_reindex(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                        const struct hfd_fleet_reindex *change,
                                        struct hfd_arena *mem, struct hfd_err *err);

#endif
