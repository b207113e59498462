/*
 * The two generations of HyperFleet's condition names. Rows keep Ready and Available; what is shown
 * follows the setting fleet.conditions. Source: spec/hyperfleet-versions.md section 1 (2026-04-22
 * to 2026-05-08). Pure. Thread: any.
 */
#ifndef HFD_FLEET_VOCABULARY_H
#define HFD_FLEET_VOCABULARY_H

#include "driver/fleet/condition.h"

/* clang-format off */
#define HFD_VOCABULARY_LIST(X) \
    X(READY, "ready")           /* Ready, Available */                                                                      \
    X(RECONCILED, "reconciled") /* Reconciled, LastKnownReconciled, with the reasons of that generation */                  \
    X(BOTH, "both")             /* all four: the later ones behind the others */
/* clang-format on */
#define HFD_VOCABULARY_ENUM_(name, text) HFD_VOCABULARY_##name,
enum hfd_vocabulary {
    HFD_VOCABULARY_LIST(HFD_VOCABULARY_ENUM_) HFD_VOCABULARY_COUNT
};
#undef HFD_VOCABULARY_ENUM_

/** Reads a value of the setting; false for what is none. */
bool hfd_vocabulary_parse(hfd_slice text, enum hfd_vocabulary *out);

/**
 * The stored conditions as they are shown; in the vocabulary READY that is the stored text itself.
 * @return HFD_OK, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_vocabulary_show(enum hfd_vocabulary v, hfd_slice stored,
                                          struct hfd_arena *mem, hfd_slice *out,
                                          struct hfd_err *err);

/**
 * The stored name behind a condition type of either generation: Reconciled -> Ready. Others are
 * given back.
 */
hfd_slice hfd_vocabulary_stored(hfd_slice type);
/**
 * The same of a whole condition, with its reason. @return whether it was of the later generation
 */
bool hfd_vocabulary_restore(struct hfd_condition *c);

#endif
