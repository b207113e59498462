/*
 * Conditions, in both forms of HyperFleet: those that an adapter reports, and those of a resource's
 * status. They are stored as a JSON array of compact objects. Source: HyperFleet API, "Status".
 * Thread: any.
 *
 * The two vocabularies of HyperFleet's condition names. Versions from 2026-05-08 on show Reconciled
 * and LastKnownReconciled instead of Ready and Available. Rows of the embedded HyperFleet store all
 * four; the setting fleet.conditions chooses what the API shows. Source: driver/README.md, decision
 * 16. Pure. Thread: any.
 */
#ifndef HFD_FLEET_CONDITION_H
#define HFD_FLEET_CONDITION_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"

enum hfd_status {
    HFD_STATUS_FALSE,
    HFD_STATUS_TRUE,
    HFD_STATUS_UNKNOWN
};

/** "True", "False", "Unknown", and back. hfd_status_parse returns false for any other text. */
const char *hfd_status_name(enum hfd_status s);
bool hfd_status_parse(hfd_slice text, enum hfd_status *out);

/**
 * One condition. The generation and the first two times belong to a resource's status; a report
 * leaves them at 0.
 */
struct hfd_condition {
    hfd_slice type;
    enum hfd_status status;
    hfd_slice reason;  /* may be empty; the document leaves it out */
    hfd_slice message; /* likewise */
    int64_t observed_generation;
    int64_t created_us;
    int64_t last_updated_us;
    int64_t last_transition_us;
};

struct hfd_conditions {
    struct hfd_condition *items;
    size_t count;
};

/**
 * Finds the condition of that type.
 * @return borrowed, or NULL
 */
struct hfd_condition *hfd_condition_find(const struct hfd_conditions *cs, hfd_slice type);

/**
 * The most conditions in one text. With this limit hfd_json_parse can read each text that is
 * written.
 */
#define HFD_CONDITIONS_MAX 1000

/**
 * Reads the stored text.
 * @param out lives in mem
 * @return HFD_OK, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem,
                                           struct hfd_conditions *out, struct hfd_err *err);
/**
 * Adds the text to store, which is also the text of the API. More than HFD_CONDITIONS_MAX
 * conditions fail the buffer with HFD_LIMIT.
 * @param of_report leave out the members that only a resource's status has
 */
void hfd_conditions_format(struct hfd_buf *b, const struct hfd_conditions *cs, bool of_report);

/**
 * Converts "gcp-provisioner" to "GcpProvisionerSuccessful".
 * @return p is NULL when memory is short
 */
hfd_slice hfd_adapter_condition_type(hfd_slice adapter, struct hfd_arena *mem);

/** The condition that the server adds to the report of an observer, see hfd_fleet.observers. */
#define HFD_OBSERVER_CONDITION "PacemakerHealthCheckDegraded"

/** The most bytes of an adapter's message that the status of a resource shows. */
#define HFD_MESSAGE_SHOWN_MAX 2048

/**
 * Returns the message of an adapter as the status of a resource shows it. A longer one is cut, and
 * says so.
 * @return borrowed from message, or in mem; p is NULL when memory is short
 */
hfd_slice hfd_message_shown(hfd_slice message, struct hfd_arena *mem);

/** Returns true for a condition type of reports that aggregation and judgements read. */
bool hfd_condition_is_judged(hfd_slice type);

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
