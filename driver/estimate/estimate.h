/*
 * Estimates when an operation will end, from past operations. Pure: no clock, no I/O, no memory
 * from outside. README.md in this folder explains the method. Thread: any.
 *
 * When to poll an operation, and when to expect its end. Pure. README.md in this folder explains
 * the method. Thread: any.
 */
#ifndef HFD_ESTIMATE_H
#define HFD_ESTIMATE_H

#include "driver/base/slice.h"

/* Operations that are remembered of each kind. */
#define HFD_PAST_MAX 32
/* Milestones that are remembered of an operation; further ones are dropped. */
#define HFD_MILESTONES_MAX 16

/** A milestone: an adapter finished its part of an operation. */
struct hfd_milestone {
    hfd_slice name;
    int64_t at_us; /* since the start of the operation */
};

struct hfd_milestones {
    struct hfd_milestone items[HFD_MILESTONES_MAX];
    size_t count;
};

/**
 * Finds the milestone of that name.
 * @return borrowed, or NULL
 */
const struct hfd_milestone *hfd_milestone_find(const struct hfd_milestones *all, hfd_slice name);

enum hfd_ending {
    HFD_ENDING_DONE,
    HFD_ENDING_FAILED,
    HFD_ENDING_LATE, /* not done at its deadline */
    HFD_ENDING_COUNT
};

/** An operation that has ended. */
struct hfd_past {
    int64_t took_us;
    enum hfd_ending ending;
    int64_t size; /* the size class of its spec; operations of another size count less */
    struct hfd_milestones milestones;
};

/** The present operation. All times are since its start. */
struct hfd_estimate_input {
    const struct hfd_past *past; /* the latest first */
    size_t past_count;           /* at most HFD_PAST_MAX */
    int64_t prior_us;            /* the configured estimate */
    int64_t deadline_us;
    int64_t elapsed_us;
    int64_t size;
    const struct hfd_milestones *milestones; /* the milestones that are done */
};

/**
 * True if the milestones from index `from` on change the guesses: the milestone that says most is
 * among them.
 */
bool hfd_estimate_is_news(const struct hfd_estimate_input *in, size_t from);

/* Polls that are planned ahead. */
#define HFD_PLAN_MAX 32

/** One poll. Seconds since the start of the operation. */
struct hfd_plan_step {
    int64_t poll_s; /* an earlier poll pays less */
    int64_t done_s; /* the expected end, if it was not before this step; never before poll_s */
};

/** The polls in their order. poll_s rises from step to step, done_s never falls. */
struct hfd_plan {
    struct hfd_plan_step steps[HFD_PLAN_MAX];
    size_t count;
};

/**
 * Plans the polls from in->elapsed_us to the deadline. The last step is the deadline, unless there
 * are more than HFD_PLAN_MAX. The plan is empty when the deadline has passed.
 */
void hfd_estimate_plan(const struct hfd_estimate_input *in, struct hfd_plan *out);

#endif
