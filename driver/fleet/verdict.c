/* See verdict.h. */
#include "driver/fleet/verdict.h"

/* True if the report is older than the stored one, or of a future generation: D1, D2, D5. */
static bool is_stale(const struct hfd_verdict_input *in)
{
    if (in->observed_generation > in->generation)
        return true;
    if (!in->has_prev)
        return false;
    if (in->observed_generation != in->prev_generation)
        return in->observed_generation < in->prev_generation;
    return in->observed_us < in->prev_observed_us;
}

static const char *first_missing(const struct hfd_verdict_input *in)
{
    if (!in->has_available)
        return "Available";
    if (!in->has_applied)
        return "Applied";
    return in->has_health ? NULL : "Health";
}

static bool is_repeat(const struct hfd_verdict_input *in)
{
    return in->has_prev && in->observed_generation == in->prev_generation &&
           in->observed_us == in->prev_observed_us && in->same_content;
}

enum hfd_verdict hfd_report_verdict(const struct hfd_verdict_input *in, const char **missing)
{
    *missing = NULL;
    if (is_stale(in)) /* D1, D2, D5 */
        return HFD_VERDICT_DISCARD;
    *missing = first_missing(in);
    if (*missing != NULL) /* D3 */
        return HFD_VERDICT_REJECT;
    if (in->available == HFD_STATUS_UNKNOWN && !in->keeps_unknown &&
        !(in->deleting && in->finalized_true)) /* D4, D7 */
        return HFD_VERDICT_DISCARD;
    return is_repeat(in) ? HFD_VERDICT_REPEAT : HFD_VERDICT_STORE; /* D6 */
}
