/*
 * AsyncProgressHint. The document shows whole seconds: the current time is rounded down, the others up, so that what lies ahead here also
 * lies ahead there.
 */
#include "driver/core/hint.h"

#include "driver/base/clock.h"

#define TIME_MAX_US (INT64_C(253402300799) * HFD_US_PER_S) /* 9999-12-31T23:59:59Z */
#define POLLS_PER_WAIT 4
#define RETRY_MAX_S 60

/* A stored time may be damaged; within these bounds no sum overflows and every time can be written. */
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

/*
 * The estimate; once it has passed, the operation takes two, four, eight times as long as guessed. The steps do not depend on when one
 * asks, so the answer stands still between them and never goes back.
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

static int retry_after_s(int64_t left_us)
{
    const int64_t unit_us = POLLS_PER_WAIT * HFD_US_PER_S;
    const int64_t wait_s = (left_us + unit_us - 1) / unit_us;

    if (wait_s < 1)
        return 1;
    return wait_s < RETRY_MAX_S ? (int)wait_s : RETRY_MAX_S;
}

struct hfd_hint hfd_hint_make(const struct hfd_hint_input *in)
{
    const int64_t now_us = sane(in->now_us), deadline_us = sane(in->deadline_us);
    int64_t estimated_us = guess(sane(in->started_us), sane(in->estimate_us), now_us);

    if (now_us < deadline_us && estimated_us > deadline_us)
        estimated_us = deadline_us;
    estimated_us = round_up(estimated_us);
    return (struct hfd_hint){
        .status = in->status,
        .estimated_us = estimated_us,
        .deadline_us = round_up(deadline_us),
        .now_us = now_us,
        .retry_after_s = retry_after_s(estimated_us - now_us),
    };
}

static void add_time(struct hfd_buf *b, const char *key, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];

    hfd_buf_addf(b, ",\"%s\":\"%.*s\"", key, (int)hfd_time_format_s(at_us, text), text);
}

void hfd_hint_format(struct hfd_buf *b, const struct hfd_hint *h)
{
    hfd_buf_lit(b, "{\"status\":");
    hfd_buf_json_str(b, hfd_slice_of(h->status));
    add_time(b, "estimated_completion_time", h->estimated_us);
    add_time(b, "timeout", h->deadline_us);
    add_time(b, "timeout_deadline", h->deadline_us);
    add_time(b, "current_time", h->now_us);
    hfd_buf_addc(b, '}');
}
