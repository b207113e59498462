/*
 * When to poll an operation, and when to expect its end. Pure. README.md in this folder explains
 * the method. Thread: any.
 */
#ifndef HFD_ESTIMATE_PLAN_H
#define HFD_ESTIMATE_PLAN_H

#include "driver/estimate/estimate.h"

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
