/* The decision tables of PUT, GET and DELETE. See life.h. */
#include "driver/core/life.h"

#define TO(state) (1u << HFD_STATE_##state)

/* clang-format off */
#define NAME_(name, text) [HFD_STATE_##name] = text,
static const char *const state_names[HFD_STATE_COUNT] = {HFD_STATE_LIST(NAME_)};
#undef NAME_

static const unsigned state_next[HFD_STATE_COUNT] = {
    [HFD_STATE_ABSENT]   = TO(CREATING),
    [HFD_STATE_CREATING] = TO(READY) | TO(FAILED) | TO(DELETING),
    [HFD_STATE_UPDATING] = TO(READY) | TO(FAILED) | TO(DELETING),
    [HFD_STATE_READY]    = TO(UPDATING) | TO(FAILED) | TO(DELETING),
    [HFD_STATE_FAILED]   = TO(CREATING) | TO(UPDATING) | TO(DELETING),
    [HFD_STATE_DELETING] = TO(ABSENT) | TO(FAILED),
};

static const struct {
    enum hfd_put_action same, different;
    enum hfd_answer get, late; /* before and behind the deadline of the operation */
} decisions[HFD_STATE_COUNT] = {
    /*                      PUT, same        PUT, different    GET                behind the deadline */
    [HFD_STATE_ABSENT]   = {HFD_PUT_CREATE,   HFD_PUT_CREATE,   HFD_ANSWER_ABSENT, HFD_ANSWER_ABSENT},
    [HFD_STATE_CREATING] = {HFD_PUT_ANSWER,   HFD_PUT_CONFLICT, HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
    [HFD_STATE_UPDATING] = {HFD_PUT_ANSWER,   HFD_PUT_UPDATE,   HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
    [HFD_STATE_READY]    = {HFD_PUT_ANSWER,   HFD_PUT_UPDATE,   HFD_ANSWER_OUTPUT, HFD_ANSWER_OUTPUT},
    [HFD_STATE_FAILED]   = {HFD_PUT_RETRY,    HFD_PUT_RETRY,    HFD_ANSWER_FAILED, HFD_ANSWER_FAILED},
    [HFD_STATE_DELETING] = {HFD_PUT_CONFLICT, HFD_PUT_CONFLICT, HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
};
/* clang-format on */

enum hfd_state hfd_state_known(int stored)
{
    return (unsigned)stored < HFD_STATE_COUNT ? (enum hfd_state)stored : HFD_STATE_FAILED;
}

const char *hfd_state_name(enum hfd_state s)
{
    return state_names[hfd_state_known((int)s)];
}

bool hfd_state_may(enum hfd_state from, enum hfd_state to)
{
    return (state_next[hfd_state_known((int)from)] & 1u << hfd_state_known((int)to)) != 0;
}

enum hfd_put_action hfd_life_put(enum hfd_state state, bool same)
{
    return same ? decisions[hfd_state_known((int)state)].same
                : decisions[hfd_state_known((int)state)].different;
}

enum hfd_answer hfd_life_get(enum hfd_state state, bool deadline_passed)
{
    return deadline_passed ? decisions[hfd_state_known((int)state)].late
                           : decisions[hfd_state_known((int)state)].get;
}
