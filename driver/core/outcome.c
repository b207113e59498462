/* See outcome.h. */
#include "driver/core/outcome.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/core/past.h"

/* ---- speech ---- */

/*
 * Builds sentences about a resource. Text of adapters is quoted without control characters and cut,
 * so that what to do always stands at the end.
 */

/* Text under construction. The first failure sticks. */
struct speech {
    const struct hfd_outcome_input *in; /* what is spoken of */
    struct hfd_arena *mem;
    bool nomem;
};

/* Notes a lack of memory, for text whose p is NULL. @return the text */
static hfd_slice kept(struct speech *s, hfd_slice text)
{
    s->nomem = s->nomem || text.p == NULL;
    return text;
}

/* Formats text as hfd_arena_printf does. */
#define SAY(s, ...) kept((s), hfd_arena_printf((s)->mem, __VA_ARGS__))

/* Copies text by hfd_arena_show. */
static hfd_slice tidy(struct speech *s, hfd_slice text, size_t max)
{
    return kept(s, hfd_arena_show(s->mem, text, max));
}

/* The text without the full stops and spaces at its end. */
static hfd_slice without_stop(hfd_slice text)
{
    while (text.len > 0 && strchr(" .\t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return text;
}

/* ": " and the text without the full stop at its end, or "" for no text. */
static hfd_slice quote(struct speech *s, hfd_slice text, size_t max)
{
    text = without_stop(text);
    if (text.len == 0)
        return HFD_SLICE("");
    text = tidy(s, text, max);
    return SAY(s, ": %.*s", HFD_SLICE_FMT(text));
}

#define MESSAGE_MAX 500         /* bytes, so at most as many characters */
#define ID_MAX_BYTES 64         /* the longest GUResID or HyperFleet id whole */
#define CLUSTER_ID_MAX_BYTES 36 /* of a nodepool's cluster: a UUID whole */
#define NAME_MAX_BYTES 56       /* the longest HyperFleet name whole */
#define WORD_MAX_BYTES 40       /* adapters and reasons, which have no limit of their own */
#define NOTE_MAX_BYTES 300      /* an adapter's message in a health message */
#define DETAIL_MAX_BYTES 200    /* an adapter's message in the list of what is unfinished */
#define LISTED_MAX 3            /* parts that are named as unfinished */
#define MORE_MAX_BYTES 32       /* "; and 97 more" */

/*
 * Fixed words of say_failed are 107 bytes, its advice 64: what is left is the least that an
 * adapter's message gets.
 */
_Static_assert(MESSAGE_MAX - 107 - 2 * ID_MAX_BYTES - CLUSTER_ID_MAX_BYTES - NAME_MAX_BYTES -
                       2 * WORD_MAX_BYTES - 64 >
                   28,
               "room for the message");

/* The cause where no adapter is. */
static const hfd_slice hyperfleet = HFD_SLICE("hyperfleet");

static const char advice[] = ". Correct the input and deploy again, or delete the resource.";

/* "Nodepool 'np1' (2np1)" */
static hfd_slice part_name(struct speech *s, const struct hfd_part_view *part, bool upper)
{
    const bool cluster = part->kind == HFD_KIND_CLUSTER;
    const char *first = upper ? (cluster ? "C" : "N") : (cluster ? "c" : "n");
    const char *rest = cluster ? "luster" : "odepool";
    const hfd_slice name = tidy(s, part->name, NAME_MAX_BYTES);
    const hfd_slice id =
        part->id.len > 0 ? tidy(s, part->id, ID_MAX_BYTES) : HFD_SLICE("not made yet");

    return SAY(s, "%s%s '%.*s' (%.*s)", first, rest, HFD_SLICE_FMT(name), HFD_SLICE_FMT(id));
}

struct hfd_cause hfd_cause_parse(hfd_slice text)
{
    const char *end = text.p + text.len,
               *blank = text.len > 0 ? memchr(text.p, ' ', text.len) : NULL, *second;
    struct hfd_cause out = {HFD_SLICE(""), HFD_SLICE(""), HFD_SLICE("")};

    if (blank == NULL)
        return out;
    out.who = (hfd_slice){text.p, (size_t)(blank - text.p)};
    second = memchr(blank + 1, ' ', (size_t)(end - blank - 1));
    out.reason = (hfd_slice){blank + 1, (size_t)((second != NULL ? second : end) - blank - 1)};
    if (second != NULL)
        out.words = (hfd_slice){second + 1, (size_t)(end - second - 1)};
    return out;
}

/* ---- rules ---- */

static bool in_progress(const struct hfd_outcome_input *in)
{
    return in->state == HFD_STATE_CREATING || in->state == HFD_STATE_UPDATING;
}

static bool is_late(const struct hfd_outcome_input *in)
{
    return (in_progress(in) || in->state == HFD_STATE_DELETING) && in->now_us >= in->deadline_us;
}

static bool is_gone(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    (void)in;
    return !part->leaving && (!part->exists || part->deleting);
}

static bool is_ready(const struct hfd_part_view *part)
{
    const struct hfd_condition *c = hfd_condition_find(&part->conditions, HFD_SLICE("Ready"));

    if (part->leaving)
        return !part->exists;
    return part->exists && !part->deleting && !part->pending &&
           part->generation >= part->wanted_generation && c != NULL &&
           c->status == HFD_STATUS_TRUE && c->observed_generation >= part->wanted_generation;
}

static bool is_unready(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    (void)in;
    return !is_ready(part);
}

/* True if `entry` is "ADAPTER:REASON" for these two. */
static bool is_of_adapter(hfd_slice entry, hfd_slice adapter, hfd_slice reason)
{
    return entry.len == adapter.len + 1 + reason.len && hfd_slice_starts(entry, adapter) &&
           entry.p[adapter.len] == ':' &&
           memcmp(entry.p + adapter.len + 1, reason.p, reason.len) == 0;
}

static bool is_terminal(const struct hfd_outcome_input *in, hfd_slice adapter, hfd_slice reason)
{
    if (in->judge.len > 0 && hfd_slice_eq(in->judge, adapter))
        return true;
    for (size_t i = 0; reason.len > 0 && i < in->terminal_reason_count; i++)
        if (hfd_slice_eq(in->terminal_reasons[i], reason) ||
            is_of_adapter(in->terminal_reasons[i], adapter, reason))
            return true;
    return false;
}

/* The condition with which an adapter gives up for good, or NULL. */
static const struct hfd_condition *terminal_condition(const struct hfd_outcome_input *in,
                                                      const struct hfd_part_view *part,
                                                      const struct hfd_part_report *report)
{
    static const char *const types[] = {"Applied", "Available"};
    const struct hfd_condition *health =
        hfd_condition_find(&report->conditions, HFD_SLICE("Health"));

    if (report->observed_generation < part->wanted_generation || report->received_us == 0 ||
        health == NULL || health->status != HFD_STATUS_TRUE)
        return NULL;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const struct hfd_condition *c =
            hfd_condition_find(&report->conditions, hfd_slice_of(types[i]));

        if (c != NULL && c->status == HFD_STATUS_FALSE &&
            is_terminal(in, report->adapter, c->reason))
            return c;
    }
    return NULL;
}

/* The adapters that decide for a part. */
static struct hfd_adapter_names required_of(const struct hfd_outcome_input *in,
                                            const struct hfd_part_view *part)
{
    return part->required.count > 0 ? part->required : in->required[part->kind];
}

/* The report of an adapter that gave up. The operation fails only by a required one. */
static const struct hfd_part_report *
terminal_report(const struct hfd_outcome_input *in, const struct hfd_part_view *part, bool required)
{
    for (size_t i = 0; i < part->report_count; i++)
        if (hfd_adapter_names_have(required_of(in, part), part->reports[i].adapter) == required &&
            terminal_condition(in, part, &part->reports[i]) != NULL)
            return &part->reports[i];
    return NULL;
}

static bool is_failed(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    /* While HyperFleet has not taken the change, its adapters speak of what was before. */
    return !part->leaving && !part->pending && terminal_report(in, part, true) != NULL;
}

static bool ends_with(hfd_slice s, hfd_slice end)
{
    return s.len > end.len && memcmp(s.p + s.len - end.len, end.p, end.len) == 0;
}

/* The condition that says that a part does not work as wanted, or NULL. */
static const struct hfd_condition *degraded_condition(const struct hfd_part_view *part)
{
    const struct hfd_condition *c;

    for (size_t i = 0; i < part->conditions.count; i++) {
        c = &part->conditions.items[i];
        if (c->status == HFD_STATUS_FALSE && c->observed_generation >= part->wanted_generation &&
            ends_with(c->type, HFD_SLICE("Successful")))
            return c;
    }
    c = hfd_condition_find(&part->conditions, HFD_SLICE("Available"));
    /* One that was never True speaks of a part that is still being made. */
    if (c != NULL && c->status == HFD_STATUS_FALSE &&
        c->observed_generation >= part->wanted_generation && c->last_transition_us > c->created_us)
        return c;
    return NULL;
}

static bool is_degraded(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    (void)in;
    return !part->leaving && degraded_condition(part) != NULL;
}

/* The first part for which `is` holds, the cluster before its nodepools, or NULL. */
static const struct hfd_part_view *first_part(const struct hfd_outcome_input *in,
                                              bool (*is)(const struct hfd_outcome_input *,
                                                         const struct hfd_part_view *))
{
    static const enum hfd_kind order[] = {HFD_KIND_CLUSTER, HFD_KIND_NODEPOOL};

    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
        for (size_t i = 0; i < in->part_count; i++)
            if (in->parts[i].kind == order[k] && is(in, &in->parts[i]))
                return &in->parts[i];
    return NULL;
}

/* ---- sentences ---- */

/*
 * " of cluster 2abc" behind a nodepool's name; ids that are longer than HyperFleet makes them are
 * left out, for the rest to have room.
 */
static hfd_slice in_cluster(struct speech *s, const struct hfd_part_view *part)
{
    if (part->kind != HFD_KIND_NODEPOOL || s->in->cluster_id.len == 0 ||
        s->in->cluster_id.len > CLUSTER_ID_MAX_BYTES)
        return HFD_SLICE("");
    return SAY(s, " of cluster %.*s",
               HFD_SLICE_FMT(tidy(s, s->in->cluster_id, CLUSTER_ID_MAX_BYTES)));
}

/* Adds a word of a cause: a blank ends it, so it has none. */
static hfd_slice cause_word(struct speech *s, hfd_slice text)
{
    char word[WORD_MAX_BYTES];
    size_t len;

    text = tidy(s, text, WORD_MAX_BYTES);
    for (len = 0; len < text.len && len < sizeof(word); len++)
        word[len] = text.p[len] == ' ' ? '_' : text.p[len];
    return kept(s, hfd_arena_dup(s->mem, (hfd_slice){word, len}));
}

/* "hypershift QuotaExceeded no cores are left". */
static hfd_slice cause_of(struct speech *s, hfd_slice who, hfd_slice reason, hfd_slice words)
{
    const hfd_slice why = reason.len > 0 ? reason : HFD_SLICE("NoReason"),
                    note = quote(s, words, DETAIL_MAX_BYTES);

    return SAY(s, "%.*s %.*s%.*s", HFD_SLICE_FMT(cause_word(s, who)),
               HFD_SLICE_FMT(cause_word(s, why)), note.len > 0 ? (int)note.len - 1 : 0,
               note.len > 0 ? note.p + 1 : "");
}

static hfd_slice say_gone(struct speech *s, const struct hfd_part_view *part)
{
    const hfd_slice name = part_name(s, part, true), id = tidy(s, s->in->guresid, ID_MAX_BYTES);

    return SAY(s,
               "%.*s%.*s of resource %.*s %s in HyperFleet, and not through "
               "this resource. Deploy again to make a new one, "
               "or delete the resource to forget it.",
               HFD_SLICE_FMT(name), HFD_SLICE_FMT(in_cluster(s, part)), HFD_SLICE_FMT(id),
               part->exists ? "is being deleted" : "was removed");
}

hfd_slice hfd_outcome_words_of(const struct hfd_part_report *r, const struct hfd_condition *c)
{
    const struct hfd_condition *available =
        hfd_condition_find(&r->conditions, HFD_SLICE("Available"));

    return c->message.len > 0 || available == NULL ? c->message : available->message;
}

static hfd_slice update_words(const struct hfd_part_report *r)
{
    const struct hfd_condition *c = hfd_condition_find(&r->conditions, HFD_SLICE("Available"));

    return c != NULL && (c->status == HFD_STATUS_FALSE || hfd_slice_is(c->reason, "Updating"))
               ? c->message
               : HFD_SLICE("");
}

static void say_failed(struct speech *s, const struct hfd_part_view *part, struct hfd_outcome *out)
{
    const struct hfd_part_report *report = terminal_report(s->in, part, true);
    const struct hfd_condition *c = terminal_condition(s->in, part, report);
    const hfd_slice name = part_name(s, part, true), id = tidy(s, s->in->guresid, ID_MAX_BYTES);
    const hfd_slice adapter = tidy(s, report->adapter, WORD_MAX_BYTES),
                    reason = tidy(s, c->reason, WORD_MAX_BYTES);
    hfd_slice head, note;

    head =
        SAY(s,
            "%.*s%.*s of resource %.*s could not be provisioned: adapter %.*s reported %.*s=False, "
            "reason %.*s",
            HFD_SLICE_FMT(name), HFD_SLICE_FMT(in_cluster(s, part)), HFD_SLICE_FMT(id),
            HFD_SLICE_FMT(adapter), HFD_SLICE_FMT(c->type), HFD_SLICE_FMT(reason));
    /* The names' limits leave room for a note; 2 for ": ". */
    note = quote(s, hfd_outcome_words_of(report, c),
                 MESSAGE_MAX - 2 - head.len - (sizeof(advice) - 1));
    out->message = SAY(s, "%.*s%.*s%s", HFD_SLICE_FMT(head), HFD_SLICE_FMT(note),
                       ends_with(note, HFD_SLICE("...")) ? advice + 1 : advice);
    out->cause = cause_of(s, report->adapter, c->reason, hfd_outcome_words_of(report, c));
}

/* The adapter that an <Adapter>Successful condition speaks of, or none. */
static hfd_slice adapter_of(struct speech *s, const struct hfd_part_view *part, hfd_slice type)
{
    for (size_t i = 0; i < part->report_count; i++)
        if (hfd_slice_eq(kept(s, hfd_adapter_condition_type(part->reports[i].adapter, s->mem)),
                         type))
            return part->reports[i].adapter;
    return HFD_SLICE_NONE;
}

static void say_degraded(struct speech *s, const struct hfd_part_view *part,
                         struct hfd_outcome *out)
{
    const struct hfd_condition *c = degraded_condition(part);
    const hfd_slice name = part_name(s, part, false), note = quote(s, c->message, NOTE_MAX_BYTES);
    const hfd_slice adapter = tidy(s, adapter_of(s, part, c->type), NAME_MAX_BYTES),
                    type = tidy(s, c->type, NAME_MAX_BYTES);

    if (out->code == NULL)
        out->cause = cause_of(s, adapter.len > 0 ? adapter : hyperfleet,
                              c->reason.len > 0 ? c->reason : c->type, c->message);
    out->health = "Degraded";
    out->health_reason = c->reason.len > 0 ? tidy(s, c->reason, NAME_MAX_BYTES) : type;
    if (adapter.len > 0)
        out->health_message = SAY(s, "%.*s: adapter %.*s reported Available=False%.*s",
                                  HFD_SLICE_FMT(name), HFD_SLICE_FMT(adapter), HFD_SLICE_FMT(note));
    else
        out->health_message = SAY(s, "%.*s: condition %.*s is False%.*s", HFD_SLICE_FMT(name),
                                  HFD_SLICE_FMT(type), HFD_SLICE_FMT(note));
}

static void say_progressing(struct speech *s, const struct hfd_part_view *part,
                            struct hfd_outcome *out)
{
    hfd_slice name;

    out->health = "Progressing";
    if (part == NULL) { /* no parts at all yet */
        out->health_reason = HFD_SLICE("AwaitingAdapters");
        out->health_message = HFD_SLICE("nothing has been made yet");
        return;
    }
    name = part_name(s, part, false);
    out->health_reason = part->generation > part->wanted_generation ? HFD_SLICE("GenerationChanged")
                                                                    : HFD_SLICE("AwaitingAdapters");
    out->health_message = SAY(s, "%.*s is being brought to generation %lld", HFD_SLICE_FMT(name),
                              (long long)part->generation);
}

/* True if an adapter that is required reports success because its work is paused. */
static bool is_paused(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    for (size_t i = 0; i < part->report_count; i++) {
        const struct hfd_condition *c =
            hfd_condition_find(&part->reports[i].conditions, HFD_SLICE("Available"));

        if (c != NULL && c->status == HFD_STATUS_TRUE &&
            hfd_slice_is(c->reason, "ReconciliationPaused") &&
            hfd_adapter_names_have(required_of(in, part), part->reports[i].adapter))
            return true;
    }
    return false;
}

static void judge_health(struct speech *s, const struct hfd_part_view *gone,
                         struct hfd_outcome *out)
{
    const struct hfd_part_view *degraded = first_part(s->in, is_degraded),
                               *unready = first_part(s->in, is_unready);

    if (gone != NULL) {
        out->health = "Degraded";
        out->health_reason = HFD_SLICE("RemovedInHyperFleet");
        out->health_message = say_gone(s, gone);
    } else if (degraded != NULL) {
        say_degraded(s, degraded, out);
    } else if (unready != NULL || s->in->part_count == 0) {
        say_progressing(s, unready, out);
    } else if (first_part(s->in, is_paused) != NULL) {
        out->health = "Paused";
        out->health_reason = HFD_SLICE("ReconciliationPaused");
        out->health_message = HFD_SLICE("reconciliation is paused, as the order says");
    } else {
        out->health = "Healthy";
        out->health_reason = HFD_SLICE("");
        out->health_message = HFD_SLICE("");
    }
}

/* ---- what is waited for ---- */

/*
 * One list of facts, in the order of the parts and of their adapters. The error of a missed
 * deadline and the message of a hint tell it, each in its own words.
 */

static bool is_deleting(const struct hfd_outcome_input *in)
{
    return in->state == HFD_STATE_DELETING;
}

/* True while a part is to go: Finalized counts, and not Available. */
static bool is_leaving(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    return is_deleting(in) || part->leaving;
}

/* True if an operation does not wait for a part any more. */
static bool is_done(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    return is_deleting(in) ? !part->exists : is_ready(part);
}

/* HyperFleet has not taken up what was asked for. That of a part that is to go does not matter. */
static bool is_untaken(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    return part->pending && !is_leaving(in, part);
}

bool hfd_outcome_lacks(const struct hfd_part_view *part, hfd_slice adapter, bool leaving,
                       struct hfd_lack *out)
{
    const struct hfd_condition *c, *health;

    *out = (struct hfd_lack){.adapter = adapter, .type = leaving ? "Finalized" : "Available"};
    for (size_t i = 0; out->report == NULL && i < part->report_count; i++)
        if (hfd_slice_eq(part->reports[i].adapter, adapter))
            out->report = &part->reports[i];
    if (out->report == NULL)
        return true;
    if (out->report->observed_generation < part->generation)
        return true;
    c = hfd_condition_find(&out->report->conditions, hfd_slice_of(out->type));
    health = hfd_condition_find(&out->report->conditions, HFD_SLICE("Health"));
    out->told = health != NULL && health->status != HFD_STATUS_TRUE ? health : c;
    return c == NULL || c->status != HFD_STATUS_TRUE;
}

/* True for a report of an observer with a verdict: a cluster waits for it until its deletion. */
static bool observer_waits(const struct hfd_outcome_input *in, const struct hfd_part_report *r)
{
    const struct hfd_condition *c =
        hfd_condition_find(&r->conditions, HFD_SLICE(HFD_OBSERVER_CONDITION));

    return c != NULL && c->status != HFD_STATUS_UNKNOWN &&
           hfd_adapter_names_have(in->observers, r->adapter) &&
           !hfd_adapter_names_have(in->required[HFD_KIND_CLUSTER], r->adapter);
}

/*
 * Finds the next adapter of a part that lacks something: the required ones, then observers.
 * @param at  0 at first
 */
static bool next_lack(const struct hfd_outcome_input *in, const struct hfd_part_view *part,
                      size_t *at, struct hfd_lack *out)
{
    const struct hfd_adapter_names required = required_of(in, part);
    const bool leaving = is_leaving(in, part);
    const size_t others = part->kind == HFD_KIND_CLUSTER && !leaving ? part->report_count : 0;

    while (*at < required.count + others) {
        const size_t i = (*at)++;
        const struct hfd_part_report *observer =
            i < required.count ? NULL : &part->reports[i - required.count];

        if ((observer == NULL || observer_waits(in, observer)) &&
            hfd_outcome_lacks(part, observer == NULL ? required.items[i] : observer->adapter,
                              leaving, out))
            return true;
    }
    return false;
}

/* True if an adapter has not come to the present generation of a part. */
static bool is_behind(const struct hfd_part_view *part, const struct hfd_lack *l)
{
    return l->report != NULL && l->report->observed_generation < part->generation;
}

/* Where an adapter stands that has not told (lack.told). */
static hfd_slice standing(struct speech *s, const struct hfd_part_view *part,
                          const struct hfd_lack *l)
{
    if (l->report == NULL)
        return HFD_SLICE("has not reported");
    if (is_behind(part, l))
        return SAY(s, "has reported on generation %lld of %lld%.*s",
                   (long long)l->report->observed_generation, (long long)part->generation,
                   HFD_SLICE_FMT(quote(s, update_words(l->report), DETAIL_MAX_BYTES)));
    return SAY(s, "has not reported %s", l->type);
}

/* Why an adapter has not done its part. */
static hfd_slice lacking_cause(struct speech *s, const struct hfd_part_view *part,
                               const struct hfd_lack *l)
{
    const bool behind = is_behind(part, l);
    const hfd_slice own = behind ? update_words(l->report) : HFD_SLICE("");

    if (l->told != NULL)
        return cause_of(s, l->adapter, l->told->reason, hfd_outcome_words_of(l->report, l->told));
    return cause_of(s, l->adapter, behind ? HFD_SLICE("OldGeneration") : HFD_SLICE("NotReported"),
                    own.len > 0 ? own : standing(s, part, l));
}

/* Ready of a part as a remote shows it, or Reconciled; NULL = neither. */
static const struct hfd_condition *aggregate_of(const struct hfd_part_view *part)
{
    const struct hfd_condition *c = hfd_condition_find(&part->conditions, HFD_SLICE("Ready"));

    return c != NULL ? c : hfd_condition_find(&part->conditions, HFD_SLICE("Reconciled"));
}

/* Why a part is not finished that no adapter holds up. */
static hfd_slice aggregate_reason(const struct hfd_outcome_input *in,
                                  const struct hfd_part_view *part)
{
    const struct hfd_condition *c = aggregate_of(part);

    if (is_leaving(in, part))
        return part->kind == HFD_KIND_CLUSTER && in->stranger_count > 0
                   ? HFD_SLICE("NodepoolsRemain")
                   : HFD_SLICE("AwaitingRemoval");
    return required_of(in, part).count == 0 && c != NULL && c->reason.len > 0
               ? c->reason
               : HFD_SLICE("AwaitingAggregation");
}

/* Finds what keeps the operation from being finished, as a cause. It is what the hint tells first.
 */
static hfd_slice waits_on(struct speech *s)
{
    const struct hfd_outcome_input *in = s->in;

    if (in->trouble.len > 0)
        return cause_of(s, hyperfleet, HFD_SLICE("RemoteTrouble"), in->trouble);
    for (size_t i = 0; i < in->part_count; i++) {
        const struct hfd_part_view *part = &in->parts[i];
        struct hfd_lack first;
        size_t at = 0;

        if (is_done(in, part))
            continue;
        if (!part->exists || is_untaken(in, part))
            return cause_of(s, hyperfleet, HFD_SLICE("NotTakenUp"), HFD_SLICE(""));
        return next_lack(in, part, &at, &first)
                   ? lacking_cause(s, part, &first)
                   : cause_of(s, hyperfleet, aggregate_reason(in, part), HFD_SLICE(""));
    }
    return HFD_SLICE("");
}

/* ---- late ---- */

/* " (Available=False, reason NoZone: what it says)": how far an adapter is. */
static hfd_slice stands_at(struct speech *s, const struct hfd_part_view *part,
                           const struct hfd_lack *l)
{
    if (l->told == NULL)
        return SAY(s, " (%.*s)", HFD_SLICE_FMT(standing(s, part, l)));
    return SAY(s, " (%.*s=%s, reason %.*s%.*s)", HFD_SLICE_FMT(l->told->type),
               hfd_status_name(l->told->status),
               HFD_SLICE_FMT(tidy(s, l->told->reason, WORD_MAX_BYTES)),
               HFD_SLICE_FMT(quote(s, hfd_outcome_words_of(l->report, l->told), DETAIL_MAX_BYTES)));
}

/* The one that was waited for until the deadline, and what it said. */
static hfd_slice late_cause(struct speech *s)
{
    const struct hfd_cause wait = hfd_cause_parse(waits_on(s));

    return cause_of(s, wait.who.len > 0 ? wait.who : hyperfleet, HFD_SLICE(HFD_CAUSE_LATE),
                    wait.words);
}

static hfd_slice waits_for(struct speech *s, const struct hfd_part_view *part)
{
    const bool leaving = is_leaving(s->in, part);
    hfd_slice list = HFD_SLICE("");
    struct hfd_lack l;

    if (!part->exists)
        return HFD_SLICE(" was removed in HyperFleet");
    if (is_untaken(s->in, part))
        return HFD_SLICE(" has not been taken up by HyperFleet");
    for (size_t at = 0; next_lack(s->in, part, &at, &l);)
        list = SAY(s, "%.*s%s%.*s%.*s", HFD_SLICE_FMT(list), list.len > 0 ? ", " : "",
                   HFD_SLICE_FMT(tidy(s, l.adapter, WORD_MAX_BYTES)),
                   HFD_SLICE_FMT(stands_at(s, part, &l)));
    if (list.len == 0)
        return leaving ? HFD_SLICE(" waits for its nodepools to be removed")
                       : HFD_SLICE(" is not Ready");
    return SAY(s, " waits for %s %.*s", leaving ? "Finalized from" : "adapters",
               HFD_SLICE_FMT(list));
}

/* "cluster 'c1' (2abc) waits for adapters dns (has not reported); nodepool ..." */
static hfd_slice unfinished(struct speech *s, size_t max)
{
    hfd_slice list = HFD_SLICE("");
    size_t count = 0;

    for (size_t i = 0; i < s->in->part_count && !s->nomem; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];

        if (is_done(s->in, part) || ++count > LISTED_MAX)
            continue;
        list = SAY(s, "%.*s%s%.*s%.*s", HFD_SLICE_FMT(list), count > 1 ? "; " : "",
                   HFD_SLICE_FMT(part_name(s, part, false)), HFD_SLICE_FMT(waits_for(s, part)));
    }
    if (count <= LISTED_MAX)
        return tidy(s, list, max);
    list = tidy(s, list, max - MORE_MAX_BYTES);
    return SAY(s, "%.*s; and %zu more", HFD_SLICE_FMT(list), count - LISTED_MAX);
}

static hfd_slice say_late(struct speech *s)
{
    const bool deleting = is_deleting(s->in);
    const char *what = deleting                             ? "The deletion"
                       : s->in->state == HFD_STATE_CREATING ? "The creation"
                                                            : "The update";
    const char *then = deleting ? ". It goes on; delete again to wait for it."
                                : ". Deploy again to give it more time, or delete the resource.";
    const hfd_slice head = SAY(s, "%s of resource %.*s was not finished at its deadline: ", what,
                               HFD_SLICE_FMT(tidy(s, s->in->guresid, ID_MAX_BYTES)));
    const hfd_slice trouble = quote(s, s->in->trouble, DETAIL_MAX_BYTES);
    const hfd_slice list = unfinished(s, MESSAGE_MAX - head.len - trouble.len - strlen(then));
    const hfd_slice end = trouble.len > 0 ? trouble : list;

    return SAY(s, "%.*s%.*s%.*s%s", HFD_SLICE_FMT(head), HFD_SLICE_FMT(list),
               HFD_SLICE_FMT(trouble), ends_with(end, HFD_SLICE("...")) ? then + 1 : then);
}

/* ---- the answer ---- */

static bool exists(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    (void)in;
    return part->exists;
}

/*
 * Where progress and time lead. A passed deadline comes first: it may have been answered already.
 */
static void decide(struct speech *s, const struct hfd_part_view *gone,
                   const struct hfd_part_view *failed, struct hfd_outcome *out)
{
    const struct hfd_outcome_input *in = s->in;

    out->state = in->state;
    if (in->state == HFD_STATE_DELETING && first_part(in, exists) == NULL) {
        out->state = HFD_STATE_ABSENT;
    } else if (is_late(in)) {
        out->state = in_progress(in) ? HFD_STATE_FAILED : in->state;
        out->code = "RES-105";
        out->message = say_late(s);
        out->cause = late_cause(s);
    } else if (gone != NULL && (in_progress(in) || in->state == HFD_STATE_READY)) {
        out->state = HFD_STATE_FAILED;
        out->code = "RES-104";
        out->message = say_gone(s, gone);
        out->cause =
            cause_of(s, hyperfleet, HFD_SLICE("RemovedInHyperFleet"),
                     gone->exists ? HFD_SLICE("is being deleted") : HFD_SLICE("was removed"));
    } else if (failed != NULL && in_progress(in)) {
        out->state = HFD_STATE_FAILED;
        out->code = "RES-104";
        say_failed(s, failed, out);
    } else if (out->progress == HFD_PROGRESS_READY && in_progress(in)) {
        out->state = HFD_STATE_READY;
    }
}

hfd_rc hfd_outcome_judge(const struct hfd_outcome_input *in, struct hfd_arena *mem,
                         struct hfd_outcome *out)
{
    const struct hfd_part_view *gone = first_part(in, is_gone), *failed = first_part(in, is_failed);
    struct speech s = {.in = in, .mem = mem};

    *out = (struct hfd_outcome){.message = HFD_SLICE(""), .cause = HFD_SLICE("")};
    if (gone != NULL)
        out->progress = HFD_PROGRESS_GONE;
    else if (failed != NULL)
        out->progress = HFD_PROGRESS_FAILED;
    else if (in->part_count > 0 && first_part(in, is_unready) == NULL)
        out->progress = HFD_PROGRESS_READY;
    else
        out->progress = HFD_PROGRESS_WORKING;
    decide(&s, gone, failed, out);
    judge_health(&s, gone, out);
    return s.nomem ? HFD_NOMEM : HFD_OK;
}

/* ---- the message of a hint ---- */

#define TROUBLE_MAX_BYTES 160
/* A message before it is cut. More is not added. */
#define TEXT_MAX_BYTES ((size_t)4 * HFD_WAITING_MAX_BYTES)

/* A message under construction. */
struct said {
    struct speech speech;
    const struct hfd_outcome_input *in;
    int64_t started_us;
    struct hfd_milestones usual;
    struct hfd_buf text;
};

static void add_tidy(struct said *s, hfd_slice text, size_t max)
{
    hfd_buf_add(&s->text, tidy(&s->speech, text, max));
}

static void add_quote(struct said *s, hfd_slice text)
{
    hfd_buf_add(&s->text, quote(&s->speech, text, DETAIL_MAX_BYTES));
}

/* " since 09:03Z": the time since when an adapter's condition on a part stands as it is. */
static void add_since(struct said *s, const struct hfd_part_view *part, hfd_slice adapter)
{
    const hfd_slice type = kept(&s->speech, hfd_adapter_condition_type(adapter, s->speech.mem));
    const struct hfd_condition *c =
        is_leaving(s->in, part) ? NULL : hfd_condition_find(&part->conditions, type);
    char text[HFD_TIME_TEXT_MAX];

    if (c == NULL || c->last_transition_us == 0)
        return;
    (void)hfd_time_format_s(
        c->last_transition_us > s->started_us ? c->last_transition_us : s->started_us, text);
    hfd_buf_addf(&s->text, " since %.5sZ", text + 11); /* of "2025-01-01T09:03:00Z" */
}

/* ", usually 40 s": the time from the beginning until an adapter is done. */
static void add_usual(struct said *s, const struct hfd_part_view *part, hfd_slice adapter)
{
    const struct hfd_milestone *m;

    if (s->usual.count == 0)
        return;
    m = hfd_milestone_find(
        &s->usual, kept(&s->speech, hfd_milestone_name(part->kind, adapter, s->speech.mem)));
    if (m == NULL)
        return;
    hfd_buf_lit(&s->text, ", usually ");
    hfd_buf_about(&s->text, m->at_us);
}

/* "WaitingForDelegation: zone x is not delegated" */
static void add_condition(struct said *s, const struct hfd_part_report *r,
                          const struct hfd_condition *c)
{
    add_tidy(s, c->reason.len > 0 ? c->reason : HFD_SLICE("no reason"), WORD_MAX_BYTES);
    add_quote(s, hfd_outcome_words_of(r, c));
}

/* "dns since 09:03Z (...)" */
static void add_adapter(struct said *s, const struct hfd_part_view *part, const struct hfd_lack *l)
{
    add_tidy(s, l->adapter, WORD_MAX_BYTES);
    if (l->report != NULL)
        add_since(s, part, l->adapter);
    add_usual(s, part, l->adapter);
    hfd_buf_lit(&s->text, " (");
    if (l->told == NULL) {
        hfd_buf_add(&s->text, standing(&s->speech, part, l));
    } else {
        if (hfd_slice_is(l->told->type, "Health"))
            hfd_buf_lit(&s->text, "does not work itself, ");
        add_condition(s, l->report, l->told);
    }
    hfd_buf_addc(&s->text, ')');
}

/*
 * Adds the adapters of a part that lack something: "waits for dns (...), and hypershift (...)".
 * @return false if there are none
 */
static bool add_lacks(struct said *s, const struct hfd_part_view *part, const char *begin)
{
    struct hfd_lack next;
    size_t at = 0;
    bool more = next_lack(s->in, part, &at, &next), first = true;

    for (; more; first = false) {
        const struct hfd_lack present = next;

        more = next_lack(s->in, part, &at, &next);
        hfd_buf_add(&s->text, hfd_slice_of(first ? begin : more ? ", " : ", and "));
        add_adapter(s, part, &present);
    }
    return !first;
}

/* "waits for nodepool 'gpu' of resource r-np: dns (has not reported)": pools of other resources. */
static void add_strangers(struct said *s)
{
    for (size_t i = 0; i < s->in->stranger_count && i < LISTED_MAX; i++) {
        const struct hfd_stranger *stranger = &s->in->strangers[i];

        hfd_buf_addf(&s->text, "%s nodepool '", i > 0 ? ";" : "waits for");
        add_tidy(s, stranger->view->name, NAME_MAX_BYTES);
        hfd_buf_addc(&s->text, '\'');
        if (stranger->guresid.len > 0) {
            hfd_buf_lit(&s->text, " of resource ");
            add_tidy(s, stranger->guresid, NAME_MAX_BYTES);
        }
        (void)add_lacks(s, stranger->view, ": ");
    }
    if (s->in->stranger_count > LISTED_MAX)
        hfd_buf_addf(&s->text, "; and %zu more", s->in->stranger_count - LISTED_MAX);
}

/* "waits for HyperFleet (AwaitingAdapters: ...)": a remote that has named no adapter yet. */
static void add_aggregate(struct said *s, const struct hfd_part_view *part)
{
    const struct hfd_condition *c = aggregate_of(part);

    hfd_buf_lit(&s->text, "waits for HyperFleet");
    if (c == NULL)
        return;
    hfd_buf_lit(&s->text, " (");
    add_tidy(s, c->reason, WORD_MAX_BYTES);
    add_quote(s, c->message);
    hfd_buf_addc(&s->text, ')');
}

/* "nodepool 'workers' waits for ...": one part that is not done. */
static void add_part(struct said *s, const struct hfd_part_view *part)
{
    const hfd_slice name = tidy(&s->speech, part->name, NAME_MAX_BYTES);

    if (s->in->part_count > 1 && part->kind == HFD_KIND_CLUSTER)
        hfd_buf_lit(&s->text, "cluster ");
    else if (s->in->part_count > 1)
        hfd_buf_addf(&s->text, "nodepool '%.*s' ", HFD_SLICE_FMT(name));
    if (!part->exists)
        hfd_buf_lit(&s->text, "waits for HyperFleet");
    else if (is_untaken(s->in, part))
        hfd_buf_lit(&s->text, "waits for HyperFleet to take it up");
    else if (add_lacks(s, part, "waits for "))
        return;
    else if (is_leaving(s->in, part) && part->kind == HFD_KIND_CLUSTER && s->in->stranger_count > 0)
        add_strangers(s);
    else if (is_leaving(s->in, part))
        hfd_buf_lit(&s->text, "waits for its removal in HyperFleet");
    else if (required_of(s->in, part).count > 0)
        hfd_buf_lit(&s->text, "waits for HyperFleet to aggregate the reports");
    else
        add_aggregate(s, part);
}

/* The parts that are not done, each with what it waits for. */
static void add_parts(struct said *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->in->part_count; i++) {
        if (is_done(s->in, &s->in->parts[i]) || ++count > LISTED_MAX)
            continue;
        if (count > 1)
            hfd_buf_lit(&s->text, "; ");
        add_part(s, &s->in->parts[i]);
    }
    if (count > LISTED_MAX)
        hfd_buf_addf(&s->text, "; and %zu more", count - LISTED_MAX);
}

/* "; adapter dsn, which is not required, gave up (Reason: words)": the first such one. */
static void add_others(struct said *s)
{
    for (size_t i = 0; i < s->in->part_count; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];
        const struct hfd_part_report *r = part->exists ? terminal_report(s->in, part, false) : NULL;

        if (r == NULL)
            continue;
        hfd_buf_addf(&s->text, "; adapter %.*s, which is not required, gave up (",
                     HFD_SLICE_FMT(tidy(&s->speech, r->adapter, WORD_MAX_BYTES)));
        add_condition(s, r, terminal_condition(s->in, part, r));
        hfd_buf_addc(&s->text, ')');
        return;
    }
}

/* "; 2 of 4 adapters are done": the required ones of all parts. */
static void add_tally(struct said *s)
{
    size_t done = 0, all = 0;
    struct hfd_lack l;

    for (size_t i = 0; i < s->in->part_count; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];
        const struct hfd_adapter_names required = required_of(s->in, part);
        const bool leaving = is_leaving(s->in, part);

        all += required.count;
        for (size_t k = 0; k < required.count; k++)
            done += !part->exists ? leaving
                                  : !part->pending &&
                                        !hfd_outcome_lacks(part, required.items[k], leaving, &l);
    }
    if (all > 0)
        hfd_buf_addf(&s->text, "; %zu of %zu adapters %s done", done, all,
                     done == 1 ? "is" : "are");
}

/* The message: what is waited for, cut so that the end fits. */
static hfd_slice join(struct said *s, size_t end_at)
{
    const size_t end_len = s->text.len - end_at, max = HFD_WAITING_MAX_BYTES - end_len;
    char *p = hfd_arena_alloc(s->speech.mem, HFD_WAITING_MAX_BYTES);
    size_t len;

    if (p == NULL)
        return HFD_SLICE_NONE;
    len = hfd_foreign_sentence((hfd_slice){s->text.p, end_at}, max, p);
    memcpy(p + len, s->text.p + end_at, end_len);
    return (hfd_slice){p, len + end_len};
}

hfd_rc hfd_waiting_say(const struct hfd_outcome_input *in, int64_t started_us,
                       struct hfd_arena *mem, hfd_slice *out, hfd_slice *cause)
{
    struct said s = {.speech = {.in = in, .mem = mem}, .in = in, .started_us = started_us};
    size_t end_at;

    hfd_milestones_parse(in->usual, &s.usual);
    hfd_buf_init(&s.text, TEXT_MAX_BYTES);
    if (in->trouble.len > 0) {
        add_tidy(&s, in->trouble, TROUBLE_MAX_BYTES);
        hfd_buf_lit(&s.text, "; ");
    }
    add_parts(&s);
    /* A message that is cut anyway may be full. */
    if (s.text.rc == HFD_LIMIT)
        s.text.rc = HFD_OK;
    end_at = s.text.len;
    s.text.max_bytes += HFD_WAITING_MAX_BYTES;
    add_others(&s);
    add_tally(&s);
    *cause = waits_on(&s.speech);
    *out = s.text.rc == HFD_OK && !s.speech.nomem ? join(&s, end_at) : HFD_SLICE_NONE;
    hfd_buf_fini(&s.text);
    return out->p != NULL ? HFD_OK : HFD_NOMEM;
}
