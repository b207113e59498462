/*
 * The search keys of a cluster or nodepool, taken from its documents: searchable labels and
 * conditions. Thread: writer.
 *
 * Ids of clusters and nodepools: 27 characters, "2" and then 26 digits of base36 (0-9a-z), most
 * significant first. The digits hold 32 bits of seconds since 2014-05-13T16:53:20Z, 20 bits of
 * microseconds and 82 random bits.
 *
 * An id has the form of HyperFleet's KSUID, but no capitals: adapters name Kubernetes objects after
 * it, and Kubernetes refuses capitals. The time comes first, so that resources made one after
 * another are neighbours in every index by id. Sources: HyperFleet API, "id"; driver/README.md,
 * decision 3.
 *
 * The naming rules of clusters and nodepools, with HyperFleet's texts. Source: HyperFleet API,
 * "Validation". Thread: any.
 */
#ifndef HFD_FLEET_KEYS_H
#define HFD_FLEET_KEYS_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"
#include "driver/fleet/condition.h"
#include "store/kind.h"

struct hfd_fleet_row;
struct hfd_txn;

/** True for a lower-case RFC 1123 subdomain. Labels may be longer than 63, as in Kubernetes. */
bool hfd_is_subdomain(hfd_slice text);

/**
 * True for a qualified name of Kubernetes: letters and digits at both ends, inside also '-', '_'
 * and
 * '.'; perhaps behind a subdomain and a slash.
 */
bool hfd_is_qualified_name(hfd_slice text, size_t prefix_max, size_t name_max);

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

#define HFD_KSUID_LEN 27

/**
 * Writes 27 characters without a NUL. An id that is made a microsecond or more later sorts behind.
 * Thread: any.
 */
void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN]);

#define HFD_KSUID_BYTES 20

/** Formats a number below 36^27, most significant byte first, as 27 digits of base36. */
void hfd_ksuid_digits(const unsigned char number[HFD_KSUID_BYTES], char out[HFD_KSUID_LEN]);

/**
 * Checks a name: ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, 3 to 53 characters for clusters, 3 to 15 for
 * nodepools.
 * @return HFD_OK, or HFD_INVALID with field "name" and HyperFleet's text
 */
HFD_MUST_CHECK hfd_rc hfd_name_check(enum hfd_kind kind, hfd_slice name, struct hfd_err *err);

/** "Cluster", "NodePool". */
const char *hfd_kind_name(enum hfd_kind kind);
/** "cluster", "nodepool", for use in a sentence. */
const char *hfd_kind_word(enum hfd_kind kind);

#endif
