/*
 * The two vocabularies of HyperFleet's condition names. Versions from 2026-05-08 on show Reconciled
 * and LastKnownReconciled instead of Ready and Available. Rows of the embedded HyperFleet store all
 * four; the setting fleet.conditions chooses what the API shows. Source: driver/README.md, decision
 * 16. Pure. Thread: any.
 */
#ifndef HFD_FLEET_VOCABULARY_H
#define HFD_FLEET_VOCABULARY_H

#include "driver/fleet/condition.h"

/* READY: Ready and Available. RECONCILED: Reconciled and LastKnownReconciled. BOTH: all four. */
/* clang-format off */
#define HFD_VOCABULARY_LIST(X)                                                                     \
    X(READY, "ready")                                                                              \
    X(RECONCILED, "reconciled")                                                                    \
    X(BOTH, "both")
/* clang-format on */
#define HFD_VOCABULARY_ENUM_(name, text) HFD_VOCABULARY_##name,
enum hfd_vocabulary {
    HFD_VOCABULARY_LIST(HFD_VOCABULARY_ENUM_) HFD_VOCABULARY_COUNT
};
#undef HFD_VOCABULARY_ENUM_

/**
 * Parses a value of the setting.
 * @return false for any other text
 */
bool hfd_vocabulary_parse(hfd_slice text, enum hfd_vocabulary *out);

/**
 * Leaves out the conditions that the vocabulary does not have; with BOTH the result is the stored
 * text itself.
 * @return HFD_OK, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_vocabulary_show(enum hfd_vocabulary v, hfd_slice stored,
                                          struct hfd_arena *mem, hfd_slice *out,
                                          struct hfd_err *err);

/**
 * Converts a condition of a remote, with its reason, to the first names: Reconciled -> Ready.
 * @return whether it had the later names
 */
bool hfd_vocabulary_restore(struct hfd_condition *c);

#endif
