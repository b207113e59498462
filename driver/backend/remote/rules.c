/* See rules.h. */
#include "driver/backend/remote/rules.h"

#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/plan.h"

const struct hfd_remote_rules hfd_remote_rules = {
    .due = hfd_remote_due,
    .hurry = hfd_remote_hurry,
    .pass_new = hfd_pass_new,
    .pass_free = hfd_pass_free,
    .pass_work = hfd_pass_work,
    .next = hfd_pass_next,
    .take = hfd_pass_take,
    .health_of = hfd_remote_health_of,
};
