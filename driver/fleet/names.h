/*
 * The naming rules of clusters and nodepools, with HyperFleet's texts. Source: HyperFleet API,
 * "Validation". Thread: any.
 */
#ifndef HFD_FLEET_NAMES_H
#define HFD_FLEET_NAMES_H

#include "driver/base/slice.h"
#include "store/kind.h"

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
