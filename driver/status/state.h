/*
 * The state history of EMCO's status query: what was asked for, and when. It is made from entries
 * of the one history. Pure. Source: EMCO status query, "Sample StateInfo list". Thread: any.
 */
#ifndef HFD_STATUS_STATE_H
#define HFD_STATUS_STATE_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"

/** The request behind an entry of the history. */
enum hfd_status_deed {
    HFD_DEED_CREATE,
    HFD_DEED_CHANGE, /* an update, a new target, a new attempt */
    HFD_DEED_DELETE
};

/** The two kinds of EMCO resources that have a state. */
enum hfd_status_subject {
    HFD_SUBJECT_RESOURCE, /* a Deployment Intent Group: here a driver resource */
    HFD_SUBJECT_CLUSTER   /* a cluster with its network intents: here a HyperFleet cluster */
};

struct hfd_status_entry {
    enum hfd_status_deed deed;
    int64_t at_us;
    int64_t context; /* the instance that it began, or that it ends */
};

struct hfd_status_action {
    const char *state; /* "Instantiated" */
    int64_t context;   /* 0 = "" */
    int64_t at_us;
};

struct hfd_status_state {
    struct hfd_status_action *actions; /* oldest first */
    size_t count;
};

struct hfd_status_entries {
    const struct hfd_status_entry *items; /* oldest first */
    size_t count;
};

/**
 * Makes the actions of a history. A creation is Created, Approved and Instantiated; Created only
 * once. A change is Instantiated, a deletion Terminated. A deletion of what is being terminated is
 * no action. A cluster is Created, Applied and Terminated.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_status_state_make(enum hfd_status_subject subject,
                                            const struct hfd_status_entries *entries,
                                            struct hfd_arena *mem, struct hfd_status_state *out,
                                            struct hfd_err *err);

/** The last instance, 0 = there is none. */
int64_t hfd_status_state_latest(const struct hfd_status_state *state);
/** Tells if an instance is in the history, and if its termination was asked for. */
bool hfd_status_state_has(const struct hfd_status_state *state, int64_t context, bool *terminating);

/** Adds {"Actions":[...]}. Times have milliseconds at most, without zeros at the end. */
void hfd_status_state_format(struct hfd_buf *b, const struct hfd_status_state *state);

#endif
