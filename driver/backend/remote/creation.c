/* See creation.h. */
#include "driver/backend/remote/creation.h"

void hfd_creation_announce(struct hfd_take *t)
{
    t->m->creation.announced = true;
    t->m->creation.before_us = t->rows.remote.unsure_us;
    t->rows.remote.unsure_us = t->now_us;
}

void hfd_creation_withdraw(struct hfd_take *t)
{
    if (t->m->creation.announced)
        t->rows.remote.unsure_us = t->m->creation.before_us;
    t->m->creation.announced = false;
}

bool hfd_creation_is_left(const struct hfd_take *t, const struct hfd_pass_part *but)
{
    for (size_t i = 0; i < t->rows.count; i++) {
        const struct hfd_pass_part *p = &t->rows.parts[i];

        if (p != but && i != t->rows.own && p->exists && p->row.pending && !p->row.leaving &&
            p->fleet.deleted_us == 0 && !hfd_backend_id_is_given(p->row.fleet_id))
            return true;
    }
    return false;
}

void hfd_creation_conclude(struct hfd_take *t)
{
    const struct hfd_pass_part *part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    const bool answered = t->verdict != HFD_ON_LATER && t->verdict != HFD_ON_WRONG;
    const bool more = part != hfd_pass_own(&t->rows) && hfd_creation_is_left(t, part);

    t->rows.remote.unsure_us = !answered || more ? t->now_us : t->m->creation.before_us;
}

bool hfd_creation_is_unsure(const struct hfd_take *t)
{
    return t->rows.remote.unsure_us != 0 &&
           t->now_us < t->rows.remote.unsure_us + HFD_CREATION_UNSURE_US;
}
