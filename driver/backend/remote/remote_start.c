/* the remote thread by the rules of pass.c. See remote.h. */
#include "driver/backend/remote/next.h"
#include "driver/backend/remote/remote_int.h"
#include "driver/backend/remote/take.h"

static const struct hfd_remote_rules rules = {
    .due = hfd_remote_due,
    .hurry = hfd_remote_hurry,
    .pass_new = hfd_pass_new,
    .pass_free = hfd_pass_free,
    .pass_work = hfd_pass_work,
    .next = hfd_pass_next,
    .take = hfd_pass_take,
    .health_of = hfd_remote_health_of,
};

hfd_rc hfd_remote_start(const struct hfd_remote_config *config, struct hfd_remote **out,
                        struct hfd_err *err)
{
    return hfd_remote_start_with(config, &rules, out, err);
}
