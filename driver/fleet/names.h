/*
 * The naming rules of HyperFleet resources, with its own detail texts. Source:
 * 000_b453de1dc0312d98.txt tables; spec section 3.
 */
#ifndef HFD_FLEET_NAMES_H
#define HFD_FLEET_NAMES_H

#include "driver/base/slice.h"
#include "store/kind.h"

/**
 * ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, 3..53 for clusters and 3..15 for nodepools.
 * @return HFD_OK, or HFD_INVALID with field "name" and HyperFleet's text
 */
HFD_MUST_CHECK hfd_rc hfd_name_check(enum hfd_kind kind, hfd_slice name, struct hfd_err *err);

/** "Cluster", "NodePool". */
const char *hfd_kind_name(enum hfd_kind kind);
/** "cluster", "nodepool": within a sentence. */
const char *hfd_kind_word(enum hfd_kind kind);

#endif
