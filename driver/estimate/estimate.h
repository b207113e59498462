/*
 * When an operation will end, learned from those that ended before it, and when it pays to ask.
 * Pure: no clock, no I/O, no memory from outside; README.md in this folder says how it is done.
 * Thread: any. Source: DESIGN 4 "Hint".
 */
#ifndef HFD_ESTIMATE_H
#define HFD_ESTIMATE_H

#include "driver/base/slice.h"

#define HFD_PAST_MAX 32 /* operations that are remembered of each kind */
#define HFD_MILESTONES_MAX                                                                         \
    16 /* milestones that are remembered of an operation; further ones are not learned from */
#define HFD_PLAN_MAX 32 /* polls that are planned ahead */

/** An adapter's part of an operation was done. */
struct hfd_milestone {
    hfd_slice name;
    int64_t at_us; /* since the start of the operation */
};

struct hfd_milestones {
    struct hfd_milestone items[HFD_MILESTONES_MAX];
    size_t count;
};

/** The milestone of that name, or NULL. */
const struct hfd_milestone *hfd_milestone_find(const struct hfd_milestones *all, hfd_slice name);

enum hfd_ending {
    HFD_ENDING_DONE,
    HFD_ENDING_FAILED,
    HFD_ENDING_LATE, /* not done at its deadline */
    HFD_ENDING_COUNT
};

/** An operation that ended. */
struct hfd_past {
    int64_t took_us;
    enum hfd_ending ending;
    int64_t size; /* what kind of spec it had: operations of another size count less */
    struct hfd_milestones milestones;
};

/** An operation that goes on. All times are since its start. */
struct hfd_estimate_input {
    const struct hfd_past *past; /* the latest first */
    size_t past_count;           /* at most HFD_PAST_MAX */
    int64_t prior_us;            /* the configured guess */
    int64_t deadline_us;
    int64_t elapsed_us;
    int64_t size;
    const struct hfd_milestones *milestones; /* what is done */
};

struct hfd_plan_step {
    int64_t poll_s; /* asking before pays less */
    int64_t done_s; /* when it is expected to end, unless it did by the step before; never before
                       poll_s */
};

/** Both rise, done_s perhaps not at every step. Seconds since the start of the operation. */
struct hfd_plan {
    struct hfd_plan_step steps[HFD_PLAN_MAX];
    size_t count;
};

/**
 * Whether the milestones from `from` on change what is known: the one that tells most is among
 * them.
 */
bool hfd_estimate_is_news(const struct hfd_estimate_input *in, size_t from);

/**
 * Plans the polls from elapsed_us to the deadline; the last step is the deadline unless there are
 * too many. Empty when the deadline has passed.
 */
void hfd_estimate_plan(const struct hfd_estimate_input *in, struct hfd_plan *out);

#endif
