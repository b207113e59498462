/*
 * Conditions, in both shapes of HyperFleet: those that an adapter reports, and those of a
 * resource's status. Stored as a JSON array of compact objects; only this module knows that text.
 * Source: 000_b453de1dc0312d98.txt "Status". Thread: any.
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

/** "True", "False", "Unknown". */
const char *hfd_status_name(enum hfd_status s);
bool hfd_status_parse(hfd_slice text, enum hfd_status *out);

/**
 * One condition. The generation and the first two times are those of a resource's status; reports
 * leave them at 0.
 */
struct hfd_condition {
    hfd_slice type;
    enum hfd_status status;
    hfd_slice reason;  /* may be empty: left out of the document */
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

/** The condition of that type, or NULL. Borrowed. */
struct hfd_condition *hfd_condition_find(const struct hfd_conditions *cs, hfd_slice type);

/** Conditions in one text. It keeps what is written within what hfd_json_parse reads. */
#define HFD_CONDITIONS_MAX 1000

/** Reads the stored text. @return HFD_OK, HFD_CORRUPT, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem,
                                           struct hfd_conditions *out, struct hfd_err *err);
/**
 * Writes the text to store. It is at the same time what the API answers: names and times as in the
 * document. More than HFD_CONDITIONS_MAX leave the buffer failed with HFD_LIMIT.
 */
void hfd_conditions_format(struct hfd_buf *b, const struct hfd_conditions *cs, bool of_report);

#endif
