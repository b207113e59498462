/* See answer.h. */
#include "driver/core/answer.h"

#include "driver/base/check.h"
#include "driver/core/judge.h"
#include "driver/core/output.h"

static struct hfd_hint hint_of(const struct hfd_resource_row *row, int64_t now_us)
{
    const char *status = row->state == HFD_STATE_DELETING   ? "deleting"
                         : row->state == HFD_STATE_UPDATING ? "updating"
                                                            : "creating";

    return hfd_hint_make(&(struct hfd_hint_input){
        .status = status,
        .started_us = row->op_started_us,
        .estimate_us = row->op_estimate_us,
        .deadline_us = row->op_deadline_us,
        .now_us = now_us,
        .plan = row->op_plan,
        .message = row->op_waits,
    });
}

/* A late deletion goes on: its error is answered, and not stored. */
static hfd_rc answer_late(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                          struct hfd_answer_doc *out)
{
    struct hfd_outcome o;
    hfd_rc rc = hfd_judge_outcome(c, row, NULL, &o);

    if (rc != HFD_OK || HFD_NEVER(o.code == NULL))
        return rc;
    out->error = hfd_slice_of(o.code);
    out->message = o.message;
    return HFD_OK;
}

hfd_rc hfd_answer_row(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                      struct hfd_answer_doc *out)
{
    const bool late = row->state == HFD_STATE_DELETING && hfd_resource_overdue(row, c->now_us);

    out->decided = true;
    out->answer = hfd_life_get((enum hfd_state)row->state, late);
    switch (out->answer) {
    case HFD_ANSWER_OUTPUT:
        out->type = row->type;
        out->values = hfd_output_values(row);
        out->manifests = hfd_output_manifests(row);
        return hfd_output_secrets(c, row, &out->secrets);
    case HFD_ANSWER_FAILED:
        out->error = row->fail_code;
        out->message = row->fail_message;
        return late ? answer_late(c, row, out) : HFD_OK;
    case HFD_ANSWER_HINT:
    case HFD_ANSWER_BUSY:
        out->hint = hint_of(row, c->now_us);
        return HFD_OK;
    case HFD_ANSWER_ABSENT:
        return HFD_OK;
    }
    return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

hfd_rc hfd_answer_put(const struct hfd_ctx *c, const struct hfd_resource_row *row, bool conflict,
                      struct hfd_answer_doc *out)
{
    hfd_rc rc = HFD_OK;

    if (conflict) {
        /* A late deletion is still in the way: 409 with a hint, not 400 with its error. */
        out->hint = hint_of(row, c->now_us);
        out->answer = HFD_ANSWER_BUSY;
        out->decided = true;
    } else {
        rc = hfd_answer_row(c, row, out);
    }
    out->has_cookie = rc == HFD_OK && out->answer != HFD_ANSWER_FAILED;
    out->cookie = row->cookie;
    return rc;
}
