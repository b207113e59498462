/*
 * AsyncProgressHint. The document shows whole seconds. The estimate is rounded up, so that what
 * lies ahead here also lies ahead there. The current time and the deadline are rounded down: an
 * operation fails at its stated timeout or after it.
 */
#include "driver/core/hint.h"

#include "driver/base/clock.h"

#define TIME_MAX_US (INT64_C(253402300799) * HFD_US_PER_S) /* 9999-12-31T23:59:59Z */
#define POLLS_PER_WAIT 4
#define UNPLANNED_MAX_S 60
#define PLAN_TIME_MAX_S INT64_C(1000000000) /* no deadline is that long */

/*
 * A stored time may be damaged; within these bounds no sum overflows and every time can be written.
 */
static int64_t sane(int64_t at_us)
{
    if (at_us < 0)
        return 0;
    return at_us < TIME_MAX_US ? at_us : TIME_MAX_US;
}

static int64_t round_up(int64_t at_us)
{
    return (at_us + HFD_US_PER_S - 1) / HFD_US_PER_S * HFD_US_PER_S;
}

static int64_t round_down(int64_t at_us)
{
    return at_us / HFD_US_PER_S * HFD_US_PER_S;
}

/*
 * The estimate; once it has passed, the operation takes two, four, eight times as long as guessed.
 * The steps do not depend on when one asks, so the answer stands still between them and never goes
 * back.
 */
static int64_t guess(int64_t started_us, int64_t estimate_us, int64_t now_us)
{
    int64_t prior_us = estimate_us - started_us;

    if (now_us < estimate_us)
        return estimate_us;
    if (prior_us < HFD_US_PER_S)
        prior_us = HFD_US_PER_S;
    while (started_us + prior_us <= now_us + HFD_US_PER_S)
        prior_us *= 2;
    return sane(started_us + prior_us);
}

static int unplanned_wait_s(int64_t left_us)
{
    const int64_t unit_us = POLLS_PER_WAIT * HFD_US_PER_S;
    const int64_t wait_s = (left_us + unit_us - 1) / unit_us;

    if (wait_s < 1)
        return 1;
    return wait_s < UNPLANNED_MAX_S ? (int)wait_s : UNPLANNED_MAX_S;
}

static int planned_wait_s(int64_t left_us)
{
    const int64_t wait_s = (left_us + HFD_US_PER_S - 1) / HFD_US_PER_S;

    if (wait_s < 1)
        return 1;
    return wait_s < HFD_RETRY_MAX_S ? (int)wait_s : HFD_RETRY_MAX_S;
}

struct hfd_hint hfd_hint_make(const struct hfd_hint_input *in)
{
    const int64_t now_us = sane(in->now_us), deadline_us = sane(in->deadline_us),
                  started_us = sane(in->started_us), stated_us = round_down(deadline_us);
    const int64_t elapsed_us = now_us > started_us ? now_us - started_us : 0;
    struct hfd_plan_step step;
    const bool planned = hfd_plan_next(in->plan, elapsed_us, &step);
    int64_t estimated_us = planned ? sane(started_us + step.done_s * HFD_US_PER_S)
                                   : guess(started_us, sane(in->estimate_us), now_us);

    estimated_us = round_up(estimated_us);
    if (now_us < deadline_us && estimated_us > stated_us)
        estimated_us = stated_us;
    return (struct hfd_hint){
        .status = in->status,
        .estimated_us = estimated_us,
        .deadline_us = stated_us,
        .now_us = now_us,
        .message = in->message,
        .retry_after_s = planned ? planned_wait_s(step.poll_s * HFD_US_PER_S - elapsed_us)
                                 : unplanned_wait_s(estimated_us - now_us),
    };
}

/* ---- the stored form of a plan ---- */

void hfd_plan_format(struct hfd_buf *b, const struct hfd_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ' ');
        hfd_buf_i64(b, plan->steps[i].poll_s);
        hfd_buf_addc(b, '/');
        hfd_buf_i64(b, plan->steps[i].done_s);
    }
}

/* Digits, and the byte that ends them, or the end of the text. */
static bool take_number(hfd_slice *text, char end, int64_t *out)
{
    size_t n = 0;

    *out = 0;
    for (; n < text->len && text->p[n] >= '0' && text->p[n] <= '9'; n++) {
        *out = *out * 10 + (text->p[n] - '0');
        if (*out > PLAN_TIME_MAX_S)
            return false;
    }
    if (n == 0 || (n < text->len ? text->p[n] != end : end == '/'))
        return false;
    n += n < text->len;
    text->p += n;
    text->len -= n;
    return true;
}

bool hfd_plan_next(hfd_slice plan, int64_t elapsed_us, struct hfd_plan_step *out)
{
    while (take_number(&plan, '/', &out->poll_s) && take_number(&plan, ' ', &out->done_s))
        if (out->poll_s * HFD_US_PER_S > elapsed_us)
            return out->done_s >= out->poll_s;
    return false;
}

/* ---- the document ---- */

static void add_time(struct hfd_buf *b, const char *key, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];

    hfd_buf_addf(b, ",\"%s\":\"%.*s\"", key, (int)hfd_time_format_s(at_us, text), text);
}

void hfd_hint_shift(struct hfd_hint *h, int64_t skew_us)
{
    const int64_t by_us = skew_us / HFD_US_PER_S * HFD_US_PER_S;

    h->estimated_us += by_us;
    h->deadline_us += by_us;
    h->now_us += by_us;
}

void hfd_hint_format(struct hfd_buf *b, const struct hfd_hint *h)
{
    hfd_buf_member_str(b, "{\"status\":", hfd_slice_of(h->status));
    add_time(b, "estimated_completion_time", h->estimated_us);
    add_time(b, "timeout", h->deadline_us);
    add_time(b, "timeout_deadline", h->deadline_us);
    add_time(b, "current_time", h->now_us);
    if (h->message.len > 0)
        hfd_buf_member_str(b, ",\"message\":", h->message);
    hfd_buf_addc(b, '}');
}
