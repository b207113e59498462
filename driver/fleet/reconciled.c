/* See reconciled.h. */
#include "driver/fleet/reconciled.h"

#include "driver/fleet/aggregate.h"
#include "driver/fleet/condition.h"
#include "store/rows_report.h"

/* ---- reconciled ---- */

/* The letters in the comments name the rows of README.md in this folder. */

static bool is_at(const struct hfd_agg_input *in, const struct hfd_agg_report *r)
{
    return r != NULL && r->observed_generation == in->generation;
}

/* The oldest report at the generation; without one, the resource's last change. */
static int64_t last_updated(const struct hfd_agg_input *in, hfd_agg_stored stored)
{
    int64_t oldest_us = INT64_MAX;

    for (size_t i = 0; i < in->required.count; i++)
        if (is_at(in, stored[i]) && stored[i]->observed_us < oldest_us)
            oldest_us = stored[i]->observed_us;
    return oldest_us != INT64_MAX ? oldest_us : in->updated_us; /* R1, R2 */
}

static bool all_reconciled(const struct hfd_agg_input *in, hfd_agg_stored stored)
{
    if (in->required.count == 0 || (in->deleting && in->has_children))
        return false;
    for (size_t i = 0; i < in->required.count; i++)
        if (!is_at(in, stored[i]) ||
            (in->deleting ? stored[i]->finalized : stored[i]->available) != HFD_STATUS_TRUE)
            return false;
    return true;
}

void hfd_reconciled_move(const struct hfd_agg_input *in, hfd_agg_stored stored,
                         struct hfd_condition *c)
{
    const bool was_true = c->status == HFD_STATUS_TRUE, is_true = all_reconciled(in, stored);
    const bool moved_on = in->generation > c->observed_generation;

    c->status = is_true ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    c->observed_generation = in->generation;
    c->last_updated_us = last_updated(in, stored);
    if (was_true && !is_true && moved_on)
        c->last_transition_us = in->updated_us; /* R3 */
    else if (was_true != is_true)
        c->last_transition_us = c->last_updated_us; /* R4 */
}

void hfd_reconciled_describe(const struct hfd_condition *why, struct hfd_condition *c)
{
    if (c->status == HFD_STATUS_TRUE) {
        c->reason = HFD_SLICE("ReconciledAll");
        c->message = HFD_SLICE("All required adapters reported Available=True or Finalized=True at "
                               "the current generation");
    } else if (hfd_slice_is(why->reason, "WaitingForChildren")) {
        c->reason = HFD_SLICE("ReconciledWaitingForChildren");
        c->message = HFD_SLICE("Deletion in progress. All required adapters reported "
                               "Finalized=True but child resources still exist");
    } else {
        c->reason = HFD_SLICE("ReconciledMissingAdapters");
        c->message = why->message;
    }
}

/* A summary of the reports of required adapters, at any generation. */
struct all {
    bool reported; /* all have */
    bool are_true;
    bool at_one; /* generation */
    bool any_false;
    int64_t newest; /* generation; 0 = none */
    int64_t oldest_us;
};

/* A report with Available Unknown says nothing here. */
static bool speaks(const struct hfd_agg_report *r)
{
    return r != NULL && r->available != HFD_STATUS_UNKNOWN;
}

static struct all survey(const struct hfd_agg_input *in, hfd_agg_stored stored)
{
    struct all a = {.reported = in->required.count > 0,
                    .are_true = true,
                    .at_one = true,
                    .oldest_us = INT64_MAX};

    for (size_t i = 0; i < in->required.count; i++) {
        const struct hfd_agg_report *r = stored[i];

        if (!speaks(r)) {
            a.reported = false;
            continue;
        }
        a.any_false = a.any_false || r->available == HFD_STATUS_FALSE;
        a.at_one = a.at_one && (a.newest == 0 || a.newest == r->observed_generation);
        if (r->observed_generation > a.newest)
            a.newest = r->observed_generation;
        if (r->observed_us < a.oldest_us)
            a.oldest_us = r->observed_us;
    }
    a.are_true = a.reported && !a.any_false;
    return a;
}

/*
 * Looks at the reports of one generation.
 * @param oldest_us  the time of the oldest
 * @return whether one of them is False
 */
static bool false_at(const struct hfd_agg_input *in, hfd_agg_stored stored, int64_t generation,
                     int64_t *oldest_us)
{
    bool any_false = false;

    *oldest_us = INT64_MAX;
    for (size_t i = 0; i < in->required.count; i++) {
        if (!speaks(stored[i]) || stored[i]->observed_generation != generation)
            continue;
        any_false = any_false || stored[i]->available == HFD_STATUS_FALSE;
        if (stored[i]->observed_us < *oldest_us)
            *oldest_us = stored[i]->observed_us;
    }
    return any_false;
}

static void describe_last(const struct all *a, struct hfd_condition *c)
{
    if (c->status == HFD_STATUS_TRUE) {
        c->reason = HFD_SLICE("AllAdaptersReconciled");
        c->message =
            HFD_SLICE("All required adapters report Available=True for the tracked generation");
    } else if (!a->reported) {
        c->reason = HFD_SLICE("AdaptersMissingReports");
        c->message = HFD_SLICE("Required adapters have not yet reported status");
    } else if (a->any_false) {
        c->reason = HFD_SLICE("AdapterReportedNotAvailable");
        c->message = HFD_SLICE("One or more required adapters report Available=False");
    } else {
        c->reason = HFD_SLICE("AdaptersNotAtSameGeneration");
        c->message = HFD_SLICE("Required adapters do not report a consistent Available state");
    }
}

void hfd_last_reconciled_begin(struct hfd_condition *c)
{
    describe_last(&(struct all){.reported = false}, c);
}

void hfd_last_reconciled_move(const struct hfd_agg_input *in, hfd_agg_stored stored,
                              struct hfd_condition *c)
{
    const struct all a = survey(in, stored);
    const bool was_true = c->status == HFD_STATUS_TRUE;
    int64_t oldest_us;
    bool is_true;

    if (a.are_true)
        is_true = a.at_one || was_true; /* K1, K2 */
    else                                /* K3: only a False of the tracked generation ends True */
        is_true =
            a.reported && was_true && !false_at(in, stored, c->observed_generation, &oldest_us);
    c->status = is_true ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    if (a.are_true && a.at_one) { /* K1 */
        c->observed_generation = a.newest;
        c->last_updated_us = a.oldest_us;
    } else if (!is_true && a.newest > 0) { /* K4 */
        c->observed_generation = a.newest;
        if (false_at(in, stored, a.newest, &oldest_us))
            c->last_updated_us = oldest_us;
    }
    if (was_true != is_true)
        c->last_transition_us = c->last_updated_us;
    describe_last(&a, c);
}

/* ---- brief ---- */

/* Conditions of this length are read whole. Those of most adapters are below 1 KiB. */
#define LONG_FROM_BYTES 4096
/* The judged types with the longest reasons, each byte escaped, need less. */
#define BRIEF_MAX_BYTES ((size_t)256 * 1024)

hfd_slice hfd_message_shown(hfd_slice message, struct hfd_arena *mem)
{
    const hfd_slice end = HFD_SLICE("... (the adapter's report has the whole message)");
    size_t len = HFD_MESSAGE_SHOWN_MAX - end.len;

    if (message.len <= HFD_MESSAGE_SHOWN_MAX)
        return message;
    while (len > 0 && ((unsigned char)message.p[len] & 0xc0) == 0x80) /* no half characters */
        len--;
    return hfd_arena_printf(mem, "%.*s%.*s", (int)len, message.p, HFD_SLICE_FMT(end));
}

bool hfd_condition_is_judged(hfd_slice type)
{
    static const char *const types[] = {"Applied", "Available", "Finalized", "Health",
                                        HFD_OBSERVER_CONDITION};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i]))
            return true;
    return false;
}

/* Leaves the judged conditions in cs, with short messages. */
static bool shorten(struct hfd_conditions *cs, struct hfd_arena *mem)
{
    size_t count = 0;

    for (size_t i = 0; i < cs->count; i++) {
        struct hfd_condition c = cs->items[i];

        if (!hfd_condition_is_judged(c.type))
            continue;
        if (c.message.len > 0)
            c.message = hfd_message_shown(c.message, mem);
        if (c.message.len > 0 && c.message.p == NULL)
            return false;
        cs->items[count++] = c;
    }
    cs->count = count;
    return true;
}

hfd_rc hfd_report_brief(struct hfd_report_row *row, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_conditions cs;
    struct hfd_buf b;
    hfd_rc rc;

    row->brief = HFD_SLICE("");
    row->long_bytes = 0;
    if (row->conditions.len < LONG_FROM_BYTES)
        return HFD_OK;
    rc = hfd_conditions_parse(row->conditions, mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    if (!shorten(&cs, mem))
        return hfd_fail_nomem(err, "shorten the conditions of a report");
    hfd_buf_init(&b, BRIEF_MAX_BYTES);
    hfd_conditions_format(&b, &cs, true);
    rc = hfd_buf_to_arena(&b, mem, &row->brief, err);
    if (rc == HFD_OK)
        row->long_bytes = (int64_t)row->conditions.len;
    return rc;
}
