/* See refuse.h. */
#include "driver/backend/remote/refuse.h"

#include "driver/backend/remote/due.h"
#include "driver/backend/remote/words.h"

#define REFUSALS_MAX 3

/* Takes back deleted_us of parts that are not going to be deleted. */
static hfd_rc restore(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];
        const struct hfd_seen_part *seen = hfd_pass_seen(t->m, p->row.fleet_id);
        struct hfd_fleet_row other;

        if (!p->exists || p->fleet.deleted_us == 0 || (seen != NULL && seen->deleting))
            continue;
        rc = hfd_fleet_row_by_name(
            t->tx, &(struct hfd_fleet_name){p->fleet.kind, p->fleet.owner_id, p->fleet.name},
            t->mem, &other, err);
        if (rc == HFD_OK)
            continue; /* another resource has its name now */
        if (rc != HFD_NOT_FOUND)
            return rc;
        p->fleet.deleted_us = 0;
        p->fleet.deleted_by = HFD_SLICE_NONE;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message, struct hfd_err *err)
{
    const hfd_slice guresid = t->rows.res.guresid;
    hfd_rc rc;

    if (message.p != NULL)
        message = hfd_arena_printf(t->mem, "%.*s (resource %.*s)", HFD_SLICE_FMT(message),
                                   HFD_SLICE_FMT(guresid));
    if (message.p == NULL)
        return hfd_fail_nomem(err, "refuse an operation");
    hfd_pass_end(t->m);
    if (t->rows.remote.goal == HFD_GOAL_OBSERVE)
        return HFD_OK;
    t->rows.remote.goal = HFD_GOAL_OBSERVE;
    rc = restore(t, err);
    if (rc == HFD_OK)
        rc = t->policy->on_refused(
            t->policy->observer, t->tx,
            &(struct hfd_fleet_call){.fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem},
            &(struct hfd_refusal){guresid, code, message}, err);
    return rc;
}

hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part, hfd_slice id,
                        hfd_slice made_by, struct hfd_err *err)
{
    const bool other_server = made_by.len > 0 && !hfd_slice_eq(made_by, t->policy->owner);

    return hfd_refuse(t, "RES-101",
                      other_server ? hfd_words_other_server(t, part, id, made_by)
                                   : hfd_words_name_taken(t, part, id),
                      err);
}

hfd_rc hfd_refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_refuse(t, "RES-101", hfd_words_invalid(t, part), err);
}

hfd_rc hfd_refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_refuse(t, "RES-104", hfd_words_unable(t, part), err);
}

hfd_rc hfd_refuse_credentials(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc;

    t->rows.remote.refusals++;
    rc = hfd_due_later_by_answer(t, err);
    if (rc != HFD_OK || t->rows.remote.refusals < REFUSALS_MAX ||
        (t->rows.remote.goal != HFD_GOAL_MAKE && t->rows.remote.goal != HFD_GOAL_ADOPT))
        return rc;
    /* A ready resource stays ready: it needs nothing until there is a new token. */
    if (hfd_due_is_settled(&t->rows))
        return HFD_OK;
    return hfd_refuse(t, "RES-103", hfd_words_credentials(t), err);
}
