/* The upstream thread by the rules of upstream.c. See remote.h. */
#include "driver/backend/remote_int.h"

static const struct hfd_remote_rules rules = {
    .due = hfd_upstream_due,
    .hurry = hfd_upstream_hurry,
    .pass_new = hfd_upstream_pass_new,
    .pass_free = hfd_upstream_pass_free,
    .pass_work = hfd_upstream_pass_work,
    .next = hfd_upstream_next,
    .take = hfd_upstream_take,
    .health_of = hfd_upstream_health_of,
};

hfd_rc hfd_remote_start(const struct hfd_remote_config *config, struct hfd_remote **out,
                        struct hfd_err *err)
{
    return hfd_remote_start_with(config, &rules, out, err);
}
