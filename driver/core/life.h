/*
 * The life cycle of a driver resource: its states, its arrows, and the decision tables of PUT, GET
 * and DELETE. Pure. Thread: any.
 *
 *            PUT                    all parts ready
 *   absent ------> creating ------------------------> ready <------+
 *                     |   deadline or terminal report   | PUT,     | all parts
 *                     v                                 v different| ready
 *                   failed <----------------------- updating ------+
 *                     | PUT: a new attempt, creating or updating
 *   ready ----- a part was removed in HyperFleet ----> failed
 *   any state --- DELETE ---> deleting --- removed in HyperFleet ---> absent
 *   deleting ---- the remote HyperFleet cannot delete -----> failed
 *   absent ------ adopted: its row is made again ------> creating, updating or deleting
 *
 * A value that is no state counts as failed.
 */
#ifndef HFD_CORE_LIFE_H
#define HFD_CORE_LIFE_H

#include <stdbool.h>

/* clang-format off */
#define HFD_STATE_LIST(X) X(ABSENT, "absent") X(CREATING, "creating") X(UPDATING, "updating") \
    X(READY, "ready") X(FAILED, "failed") X(DELETING, "deleting")
/* clang-format on */
#define HFD_STATE_ENUM_(name, text) HFD_STATE_##name,
enum hfd_state {
    HFD_STATE_LIST(HFD_STATE_ENUM_) HFD_STATE_COUNT
};
#undef HFD_STATE_ENUM_

/** "absent", "creating", ... */
const char *hfd_state_name(enum hfd_state s);
/** A stored value as a state: what is none is damage, and counts as FAILED, so a PUT mends it. */
enum hfd_state hfd_state_known(int stored);
/** True if the arrow exists. No state has one to itself. */
bool hfd_state_may(enum hfd_state from, enum hfd_state to);

enum hfd_put_action {
    HFD_PUT_CREATE,   /* make cluster and nodepools */
    HFD_PUT_ANSWER,   /* 200 or 202 from the state, change nothing */
    HFD_PUT_CONFLICT, /* 409 with the hint of what is under way */
    HFD_PUT_UPDATE,   /* ready, updating: change, new operation; RES-106 for a field that cannot
                         change */
    HFD_PUT_RETRY,    /* failed: new attempt */
};
/** The PUT table. */
enum hfd_put_action hfd_life_put(enum hfd_state state, bool same);

enum hfd_answer {
    HFD_ANSWER_OUTPUT, /* 200 OutputData */
    HFD_ANSWER_HINT,   /* 202 AsyncProgressHint */
    HFD_ANSWER_BUSY,   /* 409 AsyncProgressHint */
    HFD_ANSWER_FAILED, /* 400 Error */
    HFD_ANSWER_ABSENT, /* GET 404, DELETE 204 */
};
/** The GET row of the table. An operation past its deadline is FAILED. */
enum hfd_answer hfd_life_get(enum hfd_state state, bool deadline_passed);

#endif
