/* See aggregate.h. */
#include "driver/fleet/aggregate.h"

#include "driver/base/buf.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/nearest.h"
#include "driver/base/trouble.h"
#include "store/store.h"

#include <stdlib.h>

bool hfd_adapter_names_have(struct hfd_adapter_names names, hfd_slice name)
{
    for (size_t i = 0; i < names.count; i++)
        if (hfd_slice_eq(names.items[i], name))
            return true;
    return false;
}

/* ---- aggregate ---- */

/*
 * The aggregation tables of the HyperFleet API. The letters in the comments name the rows of
 * README.md in this folder. Status, generation and times change only as a row says. Reason and
 * message are written again after every report.
 */

/* The first conditions of every resource, in this order; those of its adapters follow. */
enum first {
    AVAILABLE,
    READY,
    LAST_KNOWN,
    RECONCILED,
    FIRST_COUNT
};
static const hfd_slice first_types[FIRST_COUNT] = {
    [AVAILABLE] = {"Available", 9},
    [READY] = {"Ready", 5},
    [LAST_KNOWN] = {"LastKnownReconciled", 19},
    [RECONCILED] = {"Reconciled", 10},
};

#define NOTE_MAX 300 /* bytes of a message that quotes adapters */

/* One aggregation in progress. */
struct work {
    const struct hfd_agg_input *in;
    const struct hfd_agg_report **stored; /* by required adapter; NULL = it has not reported */
    struct hfd_arena *mem;
    struct hfd_conditions *out;
};

/* A summary of what the required adapters report at one generation. */
struct survey {
    bool all_stored; /* all have reported, at any generation */
    bool all_at;
    bool all_true;  /* all_at, and all are True */
    bool any_false; /* one at that generation is False */
    int64_t min_us; /* the earliest report time at that generation; INT64_MAX when there is none */
};

static const struct hfd_agg_report *report_of(const struct hfd_agg_input *in, hfd_slice adapter)
{
    for (size_t i = 0; i < in->reports.count; i++)
        if (hfd_slice_eq(in->reports.items[i].adapter, adapter))
            return &in->reports.items[i];
    return NULL;
}

/* The status that the rows of Ready read: Finalized while deleting, else Available. */
static enum hfd_status ready_word(const struct hfd_agg_input *in, const struct hfd_agg_report *r)
{
    return in->deleting ? r->finalized : r->available;
}

static bool ready_at_generation(const struct hfd_agg_input *in, const struct hfd_agg_report *r)
{
    return r != NULL && r->observed_generation == in->generation &&
           ready_word(in, r) == HFD_STATUS_TRUE;
}

static struct survey survey_at(const struct work *w, int64_t generation, bool of_ready)
{
    struct survey s = {true, true, true, false, INT64_MAX};

    for (size_t i = 0; i < w->in->required.count; i++) {
        const struct hfd_agg_report *r = w->stored[i];
        const bool at = r != NULL && r->observed_generation == generation;
        enum hfd_status word;

        s.all_stored = s.all_stored && r != NULL;
        s.all_at = s.all_at && at;
        if (!at)
            continue;
        word = of_ready ? ready_word(w->in, r) : r->available;
        s.all_true = s.all_true && word == HFD_STATUS_TRUE;
        s.any_false = s.any_false || word == HFD_STATUS_FALSE;
        if (r->observed_us < s.min_us)
            s.min_us = r->observed_us;
    }
    s.all_true = s.all_true && s.all_at;
    return s;
}

/* Applies the rows of Ready, for a report with True (TR) and with False (FR). */
static void move_ready(const struct work *w, struct hfd_condition *c)
{
    const struct hfd_agg_input *in = w->in;
    const struct hfd_agg_report *e = in->event;
    const struct survey s = survey_at(w, in->generation, true);
    const enum hfd_status word = ready_word(in, e);
    const bool at_g = e->observed_generation == in->generation;
    const bool was_true = c->status == HFD_STATUS_TRUE;

    if (word == HFD_STATUS_TRUE && at_g && s.all_true &&
        !(in->deleting && in->has_children)) { /* TR1, TR2 */
        c->status = HFD_STATUS_TRUE;
        c->last_updated_us = s.min_us;
        if (!was_true)
            c->last_transition_us = e->observed_us;
    } else if (word == HFD_STATUS_TRUE && !was_true && !s.all_stored) { /* TR3 */
        c->last_updated_us = in->now_us;
    } else if (word == HFD_STATUS_FALSE && at_g && !was_true) { /* FR1 */
        c->last_updated_us = s.min_us;
    } else if (word == HFD_STATUS_FALSE && at_g) { /* FR2 */
        c->status = HFD_STATUS_FALSE;
        c->last_updated_us = e->observed_us;
        c->last_transition_us = e->observed_us;
    } /* TR4, FR3: no change */
}

/*
 * Applies the rows of Available. They read the stored reports and not the last one alone, so that
 * the order of two reports of one generation does not matter.
 */
static void move_available(const struct work *w, struct hfd_condition *c)
{
    const struct hfd_agg_report *e = w->in->event;
    const struct survey s = survey_at(w, e->observed_generation, false);
    const bool was_true = c->status == HFD_STATUS_TRUE;

    if (!s.all_at || (!s.all_true && !s.any_false)) /* TA3, FA3: no change */
        return;
    c->last_updated_us = s.min_us; /* TA1, TA2, FA1 */
    if (was_true != s.all_true)
        c->last_transition_us = e->observed_us; /* TA1, FA2 */
    if (was_true && s.any_false)
        c->last_updated_us = e->observed_us; /* FA2 */
    c->status = s.all_true ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    c->observed_generation = e->observed_generation;
}

/* ---- Reconciled and LastKnownReconciled ---- */

/* The stored reports by required adapter; NULL = it has not reported. */
typedef const struct hfd_agg_report *const *agg_stored;

static bool is_at(const struct hfd_agg_input *in, const struct hfd_agg_report *r)
{
    return r != NULL && r->observed_generation == in->generation;
}

/* The oldest report at the generation; without one, the resource's last change. */
static int64_t last_updated(const struct hfd_agg_input *in, agg_stored stored)
{
    int64_t oldest_us = INT64_MAX;

    for (size_t i = 0; i < in->required.count; i++)
        if (is_at(in, stored[i]) && stored[i]->observed_us < oldest_us)
            oldest_us = stored[i]->observed_us;
    return oldest_us != INT64_MAX ? oldest_us : in->updated_us; /* R1, R2 */
}

static bool all_reconciled(const struct hfd_agg_input *in, agg_stored stored)
{
    if (in->required.count == 0 || (in->deleting && in->has_children))
        return false;
    for (size_t i = 0; i < in->required.count; i++)
        if (!is_at(in, stored[i]) ||
            (in->deleting ? stored[i]->finalized : stored[i]->available) != HFD_STATUS_TRUE)
            return false;
    return true;
}

/* Moves Reconciled: status, generation and times. */
static void move_reconciled(const struct hfd_agg_input *in, agg_stored stored,
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

/*
 * Writes reason and message of Reconciled.
 * @param why  those of a Ready that is False for the same reports
 */
static void describe_reconciled(const struct hfd_condition *why, struct hfd_condition *c)
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

static struct all survey(const struct hfd_agg_input *in, agg_stored stored)
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
static bool false_at(const struct hfd_agg_input *in, agg_stored stored, int64_t generation,
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

/* Writes reason and message of a new LastKnownReconciled. */
static void begin_last_known(struct hfd_condition *c)
{
    describe_last(&(struct all){.reported = false}, c);
}

/* Moves LastKnownReconciled, and writes its reason and message. */
static void move_last_known(const struct hfd_agg_input *in, agg_stored stored,
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

/* ---- reasons and messages ---- */

static int by_name(const void *a, const void *b)
{
    return hfd_slice_cmp(*(const hfd_slice *)a, *(const hfd_slice *)b);
}

/*
 * Sorts the names in place and joins them: "a, b, c".
 * @return p is NULL when memory is short
 */
static hfd_slice join_sorted(hfd_slice *names, size_t count, struct hfd_arena *mem)
{
    size_t len = 0;
    char *text;

    if (count == 0)
        return HFD_SLICE("");
    qsort(names, count, sizeof(*names), by_name);
    for (size_t i = 0; i < count; i++)
        len += names[i].len + 2;
    text = hfd_arena_alloc(mem, len);
    if (text == NULL)
        return HFD_SLICE_NONE;
    len = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            memcpy(text + len, ", ", 2);
            len += 2;
        }
        memcpy(text + len, names[i].p, names[i].len);
        len += names[i].len;
    }
    return (hfd_slice){text, len};
}

/* Writes why Ready is False. missing[i] and reporting[i] belong to required adapter i. */
static hfd_rc describe_missing(const struct hfd_agg_input *in, const bool *missing,
                               const bool *reporting, struct hfd_arena *mem,
                               struct hfd_condition *c)
{
    hfd_slice *names = hfd_arena_array(mem, in->required.count + 1, sizeof(*names));
    size_t missing_count = 0, reporting_count = 0;
    hfd_slice missing_text, reporting_text;

    if (names == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < in->required.count; i++)
        if (missing[i])
            names[missing_count++] = in->required.items[i];
    missing_text = join_sorted(names, missing_count, mem);
    for (size_t i = 0; i < in->required.count; i++)
        if (reporting[i])
            names[reporting_count++] = in->required.items[i];
    reporting_text = join_sorted(names, reporting_count, mem);
    if (missing_text.p == NULL || reporting_text.p == NULL)
        return HFD_NOMEM;
    if (in->deleting && missing_count == 0) {
        c->reason = HFD_SLICE("WaitingForChildren");
        c->message = HFD_SLICE("Waiting for nodepools to be removed");
        return HFD_OK;
    }
    c->reason = HFD_SLICE("MissingRequiredAdapters");
    c->message = hfd_arena_printf(
        mem, "Required adapters not reporting %s=True: [%.*s]. Currently reporting: [%.*s]",
        in->deleting ? "Finalized" : "Available", HFD_SLICE_FMT(missing_text),
        HFD_SLICE_FMT(reporting_text));
    return c->message.p != NULL ? HFD_OK : HFD_NOMEM;
}

static hfd_rc describe_ready(const struct work *w, struct hfd_condition *c)
{
    const size_t count = w->in->required.count;
    bool *missing, *reporting;

    if (c->status == HFD_STATUS_TRUE) {
        c->reason = HFD_SLICE("ResourceReady");
        c->message = w->in->deleting
                         ? HFD_SLICE("All adapters report Finalized at current generation")
                         : HFD_SLICE("All adapters report ready at current generation");
        return HFD_OK;
    }
    missing = hfd_arena_array(w->mem, count + 1, sizeof(*missing));
    reporting = hfd_arena_array(w->mem, count + 1, sizeof(*reporting));
    if (missing == NULL || reporting == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < count; i++) {
        missing[i] = !ready_at_generation(w->in, w->stored[i]);
        reporting[i] = w->stored[i] != NULL;
    }
    return describe_missing(w->in, missing, reporting, w->mem, c);
}

/*
 * A text of at most NOTE_MAX bytes. When it is too long, it ends in "...", and no character is cut
 * in two.
 */
struct note {
    char *text;
    size_t len;
    bool cut;
};

static void note_add(struct note *n, hfd_slice s)
{
    const size_t room = NOTE_MAX - n->len;
    const size_t len = s.len < room ? s.len : room;

    if (n->cut || s.len == 0)
        return;
    memcpy(n->text + n->len, s.p, len);
    n->len += len;
    n->cut = len < s.len;
}

static hfd_slice note_end(struct note *n)
{
    if (n->cut) {
        n->len = NOTE_MAX - 3;
        while (n->len > 0 && ((unsigned char)n->text[n->len] & 0xc0) == 0x80)
            n->len--;
        memcpy(n->text + n->len, "...", 3);
        n->len += 3;
    }
    return (hfd_slice){n->text, n->len};
}

/* Writes "Adapters reporting Available=False: dns (NoZone), hypershift". */
static hfd_rc describe_not_available(const struct work *w, struct hfd_condition *c)
{
    struct note n = {.text = hfd_arena_alloc(w->mem, NOTE_MAX)};
    const char *before = "Adapters reporting Available=False: ";

    if (n.text == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < w->in->required.count; i++) {
        const struct hfd_agg_report *r = w->stored[i];

        if (r == NULL || r->available != HFD_STATUS_FALSE)
            continue;
        note_add(&n, hfd_slice_of(before));
        note_add(&n, r->adapter);
        if (r->reason.len > 0) {
            note_add(&n, HFD_SLICE(" ("));
            note_add(&n, r->reason);
            note_add(&n, HFD_SLICE(")"));
        }
        before = ", ";
    }
    c->reason = HFD_SLICE("AdapterReportedNotAvailable");
    c->message = note_end(&n);
    return HFD_OK;
}

static hfd_rc describe_available(const struct work *w, struct hfd_condition *c)
{
    const struct survey s = survey_at(w, w->in->event->observed_generation, false);

    if (c->status == HFD_STATUS_TRUE) {
        c->reason = HFD_SLICE("ResourceAvailable");
        c->message = hfd_arena_printf(w->mem, "%s is accessible", w->in->kind_name);
        return c->message.p != NULL ? HFD_OK : HFD_NOMEM;
    }
    if (s.all_at && s.any_false)
        return describe_not_available(w, c);
    c->reason = HFD_SLICE("AdaptersNotAtSameGeneration");
    c->message = HFD_SLICE("Required adapters do not report a consistent Available state");
    return HFD_OK;
}

/* Writes <Adapter>Successful for each required adapter that has reported True or False. */
static hfd_rc describe_adapters(const struct work *w)
{
    for (size_t i = 0; i < w->in->required.count; i++) {
        const hfd_slice type = hfd_adapter_condition_type(w->in->required.items[i], w->mem);
        const struct hfd_condition *prev;
        const struct hfd_agg_report *r = w->stored[i];

        if (type.p == NULL)
            return HFD_NOMEM;
        prev = hfd_condition_find(w->in->prev, type);
        if (r != NULL && r->available != HFD_STATUS_UNKNOWN) {
            w->out->items[w->out->count++] = (struct hfd_condition){
                .type = type,
                .status = r->available,
                .reason = r->reason,
                .message = r->message,
                .observed_generation = r->observed_generation,
                .created_us = prev != NULL ? prev->created_us : w->in->now_us,
                .last_updated_us = r->observed_us,
                .last_transition_us = prev != NULL && prev->status == r->available
                                          ? prev->last_transition_us
                                          : r->observed_us,
            };
        } else if (prev != NULL) {
            w->out->items[w->out->count++] = *prev;
        }
    }
    return HFD_OK;
}

static bool is_degraded(const struct hfd_agg_report *observer)
{
    return observer->available != HFD_STATUS_TRUE;
}

/* The observer whose verdict the resource shows: the first that is degraded, else the first. */
static const struct hfd_agg_report *shown_observer(const struct hfd_agg_input *in)
{
    const struct hfd_agg_report *shown = NULL;

    for (size_t i = 0; i < in->observers.count; i++) {
        const struct hfd_agg_report *r = report_of(in, in->observers.items[i]);

        if (r != NULL && r->has_verdict &&
            (shown == NULL || (!is_degraded(shown) && is_degraded(r))))
            shown = r;
    }
    return shown;
}

static void describe_observer(const struct work *w)
{
    const hfd_slice type = HFD_SLICE(HFD_OBSERVER_CONDITION);
    const struct hfd_condition *prev = hfd_condition_find(w->in->prev, type);
    const struct hfd_agg_report *r = shown_observer(w->in);
    enum hfd_status status;

    if (r == NULL)
        return;
    status = is_degraded(r) ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    w->out->items[w->out->count++] = (struct hfd_condition){
        .type = type,
        .status = status,
        .reason = r->reason,
        .message = r->message,
        .observed_generation = r->observed_generation,
        .created_us = prev != NULL ? prev->created_us : w->in->now_us,
        .last_updated_us = r->observed_us,
        .last_transition_us =
            prev != NULL && prev->status == status ? prev->last_transition_us : r->observed_us,
    };
}

static struct hfd_condition new_condition(hfd_slice type, int64_t now_us)
{
    return (struct hfd_condition){
        .type = type,
        .status = HFD_STATUS_FALSE,
        .reason = HFD_SLICE("AwaitingAdapters"),
        .message = HFD_SLICE("Waiting for adapters to report status"),
        .observed_generation = 1,
        .created_us = now_us,
        .last_updated_us = now_us,
        .last_transition_us = now_us,
    };
}

/*
 * Makes room for the first conditions and `more` others. The first are copied from prev; they are
 * new where prev has none.
 */
static hfd_rc begin_conditions(const struct hfd_conditions *prev, size_t more, int64_t now_us,
                               struct hfd_arena *mem, struct hfd_conditions *out)
{
    *out = (struct hfd_conditions){hfd_arena_array(mem, FIRST_COUNT + more, sizeof(*out->items)),
                                   FIRST_COUNT};
    if (out->items == NULL) {
        out->count = 0;
        return HFD_NOMEM;
    }
    for (size_t i = 0; i < FIRST_COUNT; i++) {
        const struct hfd_condition *was = hfd_condition_find(prev, first_types[i]);

        out->items[i] = was != NULL ? *was : new_condition(first_types[i], now_us);
    }
    return HFD_OK;
}

static bool is_first(hfd_slice type)
{
    for (size_t i = 0; i < FIRST_COUNT; i++)
        if (hfd_slice_eq(type, first_types[i]))
            return true;
    return false;
}

/* Copies the other conditions. */
static void keep_others(const struct hfd_conditions *prev, struct hfd_conditions *out)
{
    for (size_t i = 0; i < prev->count; i++)
        if (!is_first(prev->items[i].type))
            out->items[out->count++] = prev->items[i];
}

/*
 * Writes the message after a change. No report is at the new generation, so every required adapter
 * is missing; the conditions show which have reported.
 */
static hfd_rc describe_changed(const struct hfd_agg_input *in, struct hfd_arena *mem,
                               struct hfd_condition *c)
{
    bool *missing = hfd_arena_array(mem, in->required.count + 1, sizeof(*missing));
    bool *reporting = hfd_arena_array(mem, in->required.count + 1, sizeof(*reporting));

    if (missing == NULL || reporting == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < in->required.count; i++) {
        const hfd_slice type = hfd_adapter_condition_type(in->required.items[i], mem);

        if (type.p == NULL)
            return HFD_NOMEM;
        missing[i] = true;
        reporting[i] = hfd_condition_find(in->prev, type) != NULL;
    }
    return describe_missing(in, missing, reporting, mem, c);
}

/* Moves Reconciled and LastKnownReconciled while no required adapter has reported. */
static hfd_rc move_unreported(const struct hfd_agg_input *in, struct hfd_arena *mem,
                              const struct hfd_condition *why, struct hfd_conditions *out)
{
    const struct hfd_agg_report **none =
        hfd_arena_array(mem, in->required.count + 1, sizeof(*none));

    if (none == NULL)
        return HFD_NOMEM;
    move_reconciled(in, none, &out->items[RECONCILED]);
    describe_reconciled(why, &out->items[RECONCILED]);
    return HFD_OK;
}

hfd_rc hfd_agg_created(const struct hfd_agg_input *in, struct hfd_arena *mem,
                       struct hfd_conditions *out)
{
    const struct hfd_conditions none = {NULL, 0};
    struct hfd_agg_input made = *in;
    struct hfd_condition why;
    hfd_rc rc = begin_conditions(&none, 0, in->now_us, mem, out);

    if (rc != HFD_OK)
        return rc;
    made.generation = 1;
    made.updated_us = in->now_us;
    made.prev = &none;
    why = out->items[READY];
    begin_last_known(&out->items[LAST_KNOWN]);
    rc = describe_changed(&made, mem, &why);
    if (rc == HFD_OK)
        rc = move_unreported(&made, mem, &why, out);
    if (rc != HFD_OK)
        *out = none;
    return rc;
}

hfd_rc hfd_agg_changed(const struct hfd_agg_input *in, struct hfd_arena *mem,
                       struct hfd_conditions *out)
{
    struct hfd_condition *ready;
    hfd_rc rc = begin_conditions(in->prev, in->prev->count, in->now_us, mem, out);

    if (rc != HFD_OK)
        return rc;
    keep_others(in->prev, out);
    ready = &out->items[READY];
    if (ready->status == HFD_STATUS_TRUE) /* L3; otherwise L4 */
        ready->last_transition_us = in->now_us;
    ready->status = HFD_STATUS_FALSE;
    ready->observed_generation = in->generation;
    ready->last_updated_us = in->now_us;
    rc = describe_changed(in, mem, ready);
    if (rc == HFD_OK)
        rc = move_unreported(in, mem, ready, out);
    if (rc != HFD_OK)
        *out = (struct hfd_conditions){NULL, 0};
    return rc;
}

/* Moves and describes Reconciled and LastKnownReconciled, when Ready has been described. */
static hfd_rc move_later(const struct work *w, const struct hfd_condition *ready)
{
    struct hfd_condition *reconciled = &w->out->items[RECONCILED], why = *ready;
    hfd_rc rc = HFD_OK;

    move_last_known(w->in, w->stored, &w->out->items[LAST_KNOWN]);
    move_reconciled(w->in, w->stored, reconciled);
    if (reconciled->status == HFD_STATUS_FALSE && ready->status == HFD_STATUS_TRUE) {
        why.status = HFD_STATUS_FALSE; /* an adapter became required since */
        rc = describe_ready(w, &why);
    }
    describe_reconciled(&why, reconciled);
    return rc;
}

static hfd_rc aggregate(struct work *w)
{
    struct hfd_condition *available = &w->out->items[AVAILABLE], *ready = &w->out->items[READY];
    hfd_rc rc;

    w->stored = hfd_arena_array(w->mem, w->in->required.count, sizeof(*w->stored));
    if (w->stored == NULL)
        return HFD_NOMEM;
    for (size_t i = 0; i < w->in->required.count; i++)
        w->stored[i] = report_of(w->in, w->in->required.items[i]);
    move_ready(w, ready);
    move_available(w, available);
    rc = describe_ready(w, ready);
    if (rc == HFD_OK)
        rc = describe_available(w, available);
    if (rc == HFD_OK)
        rc = move_later(w, ready);
    if (rc == HFD_OK)
        rc = describe_adapters(w);
    if (rc == HFD_OK)
        describe_observer(w);
    return rc;
}

hfd_rc hfd_agg_reported(const struct hfd_agg_input *in, struct hfd_arena *mem,
                        struct hfd_conditions *out)
{
    const bool required = hfd_adapter_names_have(in->required, in->event->adapter);
    struct work w = {.in = in, .mem = mem, .out = out};
    hfd_rc rc = begin_conditions(in->prev, required ? in->required.count + 1 : in->prev->count,
                                 in->now_us, mem, out);

    if (rc != HFD_OK)
        return rc;
    if (!required) {
        keep_others(in->prev, out);
        return HFD_OK;
    }
    rc = aggregate(&w);
    if (rc != HFD_OK)
        *out = (struct hfd_conditions){NULL, 0};
    return rc;
}

bool hfd_agg_finalized(const struct hfd_agg_input *in)
{
    for (size_t i = 0; i < in->required.count; i++) {
        const struct hfd_agg_report *r = report_of(in, in->required.items[i]);

        if (r == NULL || r->observed_generation != in->generation ||
            r->finalized != HFD_STATUS_TRUE)
            return false;
    }
    return !in->has_children;
}

/* ---- verdict ---- */

/* Why the report is older than the stored one, or of a future generation; NULL if it is not. */
static const char *why_stale(const struct hfd_verdict_input *in)
{
    if (in->observed_generation > in->generation)
        return "ahead"; /* D1 */
    if (!in->has_prev || in->observed_generation > in->prev_generation)
        return NULL;
    if (in->observed_generation < in->prev_generation)
        return "behind";                                            /* D2 */
    return in->observed_us < in->prev_observed_us ? "older" : NULL; /* D5 */
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

enum hfd_verdict hfd_report_verdict(const struct hfd_verdict_input *in, const char **why)
{
    *why = why_stale(in);
    if (*why != NULL)
        return HFD_VERDICT_DISCARD;
    *why = first_missing(in);
    if (*why != NULL) /* D3 */
        return HFD_VERDICT_REJECT;
    if (in->available == HFD_STATUS_UNKNOWN && !in->keeps_unknown &&
        !(in->deleting && in->finalized_true)) { /* D4, D7 */
        *why = "unknown";
        return HFD_VERDICT_DISCARD;
    }
    return is_repeat(in) ? HFD_VERDICT_REPEAT : HFD_VERDICT_STORE; /* D6 */
}

/* ---- not required ---- */

#define ADAPTER_MAX_BYTES 64 /* a label has no more */
#define LINE_MAX_BYTES 1024

/* A report that waits for the commit. */
struct not_required_note {
    const struct hfd_adapter_names *required;
    char adapter[ADAPTER_MAX_BYTES + 1];
};

/*
 * Finds the required adapter whose name a given one misspells.
 * @return its name, which lives as long as the list; empty when none is near
 */
static hfd_slice fleet_required_near(hfd_slice adapter, const struct hfd_adapter_names *required)
{
    struct hfd_nearest n = hfd_nearest_to(adapter);
    hfd_slice near = HFD_SLICE("");

    for (size_t i = 0; i < required->count; i++)
        if (hfd_nearest_consider(&n, required->items[i]))
            near = required->items[i];
    return near;
}

static void note_problem(const struct not_required_note *n)
{
    const hfd_slice near = fleet_required_near(hfd_slice_of(n->adapter), n->required);
    char words[128] = "reports, and is not required";

    if (near.len > 0)
        (void)snprintf(words, sizeof(words), "reports, and is not required; did you mean %.*s?",
                       HFD_SLICE_FMT(near));
    (void)hfd_trouble_note(HFD_TROUBLE_STRANGER, hfd_slice_of(n->adapter),
                           hfd_clock_wall_us(&hfd_clock_system), hfd_slice_of(words));
}

static void log_first(const struct not_required_note *n)
{
    struct hfd_buf b;
    hfd_slice near;

    hfd_buf_init(&b, LINE_MAX_BYTES);
    hfd_buf_addf(&b, "adapter %s reports and is not required; required: ", n->adapter);
    for (size_t i = 0; i < n->required->count; i++)
        hfd_buf_addf(&b, "%s%.*s", i > 0 ? ", " : "", HFD_SLICE_FMT(n->required->items[i]));
    if (n->required->count == 0)
        hfd_buf_lit(&b, "none");
    near = fleet_required_near(hfd_slice_of(n->adapter), n->required);
    if (near.len > 0)
        hfd_buf_addf(&b, "; did you mean %.*s?", HFD_SLICE_FMT(near));
    hfd_buf_addc(&b, '\0');
    if (b.rc == HFD_OK)
        HFD_LOG(HFD_LOG_WARN, b.p, HFD_LOG_CSTR("adapter", n->adapter));
    hfd_buf_fini(&b);
}

/* Only the writer counts, so the value does not change in between. */
static void count_note(const void *arg)
{
    const struct not_required_note *n = arg;
    struct hfd_series *s = hfd_metric_series(HFD_METRIC_NOT_REQUIRED, HFD_LABELS(n->adapter));

    if (s != NULL && hfd_series_value(s) == 0)
        log_first(n);
    hfd_series_add(s, 1);
    note_problem(n);
}

hfd_rc hfd_fleet_count_not_required(struct hfd_txn *tx, hfd_slice adapter,
                                    const struct hfd_adapter_names *required, struct hfd_err *err)
{
    struct not_required_note n = {.required = required};
    const size_t len = hfd_foreign_cut(adapter, ADAPTER_MAX_BYTES);

    if (len > 0)
        memcpy(n.adapter, adapter.p, len);
    return hfd_txn_after_commit(tx, count_note, &n, sizeof(n), err);
}
