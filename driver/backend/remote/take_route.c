/* See take_route.h. */
#include "driver/backend/remote/take_route.h"

bool hfd_take_is_doubtful(const struct hfd_take *t)
{
    return t->verdict == HFD_ON_MISSING && t->m->phase != HFD_PASS_CHECK_ROUTE &&
           !t->m->check.settled && !hfd_slice_starts(t->problem.code, HFD_SLICE("HYPERFLEET-"));
}

void hfd_take_doubt(struct hfd_take *t)
{
    t->m->check.resume = t->m->phase;
    hfd_pass_move(t->m, HFD_PASS_CHECK_ROUTE);
}

bool hfd_take_route(struct hfd_take *t)
{
    struct hfd_wire_page page;
    struct hfd_err why;

    if (t->verdict == HFD_ON_MISSING)
        t->verdict = HFD_ON_WRONG;
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return false;
    t->m->check.settled = true;
    hfd_pass_move(t->m, t->m->check.resume);
    return true;
}
