/* See outcome.h. */
#include "driver/core/outcome.h"

#include "driver/base/arena.h"
#include "driver/core/life.h"
#include "driver/core/waiting.h"
#include "driver/fleet/aggregate.h"
#include "store/kind.h"

/* ---- speech ---- */

/*
 * Builds sentences about a resource. Text of adapters is quoted in one line,
 * as foreign.h shows it. Thread: any.
 */

/* Text under construction. The first failure sticks. */
struct hfd_speech {
    const struct hfd_outcome_input *in; /* what is spoken of; not read here */
    struct hfd_arena *mem;
    bool nomem;
};

/* Notes a lack of memory, for text whose p is NULL. @return the text */
static hfd_slice speech_kept(struct hfd_speech *s, hfd_slice text)
{
    s->nomem = s->nomem || text.p == NULL;
    return text;
}

/* Copies text by hfd_arena_show. */
static hfd_slice speech_tidy(struct hfd_speech *s, hfd_slice text, size_t max)
{
    return speech_kept(s, hfd_arena_show(s->mem, text, max));
}

/* ": " and the text without the full stop at its end, or "" for no text. */
static hfd_slice speech_quote(struct hfd_speech *s, hfd_slice text, size_t max)
{
    text = hfd_words_without_stop(text);
    if (text.len == 0)
        return HFD_SLICE("");
    text = speech_tidy(s, text, max);
    return speech_kept(s, hfd_arena_printf(s->mem, ": %.*s", HFD_SLICE_FMT(text)));
}

/* ---- outcome ---- */

/*
 * Judges the conditions of a resource's parts, and makes the sentences about them. Text of adapters
 * is quoted without control characters and cut, so that what to do always stands at the end.
 * Thread: any.
 */

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
static hfd_slice part_name(struct hfd_speech *s, const struct hfd_part_view *part, bool upper)
{
    const bool cluster = part->kind == HFD_KIND_CLUSTER;
    const char *first = upper ? (cluster ? "C" : "N") : (cluster ? "c" : "n");
    const char *rest = cluster ? "luster" : "odepool";
    const hfd_slice name = speech_tidy(s, part->name, NAME_MAX_BYTES);
    const hfd_slice id =
        part->id.len > 0 ? speech_tidy(s, part->id, ID_MAX_BYTES) : HFD_SLICE("not made yet");

    return speech_kept(s, hfd_arena_printf(s->mem, "%s%s '%.*s' (%.*s)", first, rest,
                                           HFD_SLICE_FMT(name), HFD_SLICE_FMT(id)));
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

bool hfd_outcome_part_ready(const struct hfd_part_view *part)
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
    return !hfd_outcome_part_ready(part);
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
const struct hfd_condition *hfd_outcome_terminal_condition(const struct hfd_outcome_input *in,
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

struct hfd_adapter_names hfd_outcome_required(const struct hfd_outcome_input *in,
                                              const struct hfd_part_view *part)
{
    return part->required.count > 0 ? part->required : in->required[part->kind];
}

static bool has_name(struct hfd_adapter_names names, hfd_slice name)
{
    for (size_t i = 0; i < names.count; i++)
        if (hfd_slice_eq(names.items[i], name))
            return true;
    return false;
}

/* The report of an adapter that gave up. The operation fails only by a required one. */
const struct hfd_part_report *hfd_outcome_terminal_report(const struct hfd_outcome_input *in,
                                                          const struct hfd_part_view *part,
                                                          bool required)
{
    for (size_t i = 0; i < part->report_count; i++)
        if (has_name(hfd_outcome_required(in, part), part->reports[i].adapter) == required &&
            hfd_outcome_terminal_condition(in, part, &part->reports[i]) != NULL)
            return &part->reports[i];
    return NULL;
}

static bool is_failed(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    /* While HyperFleet has not taken the change, its adapters speak of what was before. */
    return !part->leaving && !part->pending && hfd_outcome_terminal_report(in, part, true) != NULL;
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
static hfd_slice in_cluster(struct hfd_speech *s, const struct hfd_part_view *part)
{
    if (part->kind != HFD_KIND_NODEPOOL || s->in->cluster_id.len == 0 ||
        s->in->cluster_id.len > CLUSTER_ID_MAX_BYTES)
        return HFD_SLICE("");
    return speech_kept(s, hfd_arena_printf(s->mem, " of cluster %.*s",
                                           HFD_SLICE_FMT(speech_tidy(s, s->in->cluster_id,
                                                                     CLUSTER_ID_MAX_BYTES))));
}

/* Adds a word of a cause: a blank ends it, so it has none. */
static hfd_slice cause_word(struct hfd_speech *s, hfd_slice text)
{
    char word[WORD_MAX_BYTES];
    size_t len;

    text = speech_tidy(s, text, WORD_MAX_BYTES);
    for (len = 0; len < text.len && len < sizeof(word); len++)
        word[len] = text.p[len] == ' ' ? '_' : text.p[len];
    return speech_kept(s, hfd_arena_dup(s->mem, (hfd_slice){word, len}));
}

/* "hypershift QuotaExceeded no cores are left". */
static hfd_slice cause_of(struct hfd_speech *s, hfd_slice who, hfd_slice reason, hfd_slice words)
{
    const hfd_slice why = reason.len > 0 ? reason : HFD_SLICE("NoReason"),
                    quote = speech_quote(s, words, DETAIL_MAX_BYTES);

    return speech_kept(s,
                       hfd_arena_printf(s->mem, "%.*s %.*s%.*s", HFD_SLICE_FMT(cause_word(s, who)),
                                        HFD_SLICE_FMT(cause_word(s, why)),
                                        quote.len > 0 ? (int)quote.len - 1 : 0,
                                        quote.len > 0 ? quote.p + 1 : ""));
}

static hfd_slice say_gone(struct hfd_speech *s, const struct hfd_part_view *part)
{
    const hfd_slice name = part_name(s, part, true),
                    id = speech_tidy(s, s->in->guresid, ID_MAX_BYTES);

    return speech_kept(
        s, hfd_arena_printf(s->mem,
                            "%.*s%.*s of resource %.*s %s in HyperFleet, and not through "
                            "this resource. Deploy again to make a new one, "
                            "or delete the resource to forget it.",
                            HFD_SLICE_FMT(name), HFD_SLICE_FMT(in_cluster(s, part)),
                            HFD_SLICE_FMT(id), part->exists ? "is being deleted" : "was removed"));
}

/*
 * An adapter's message: that of the condition in question, else what it says of Available, where
 * most say it all.
 */
hfd_slice hfd_outcome_words_of(const struct hfd_part_report *r, const struct hfd_condition *c)
{
    const struct hfd_condition *available =
        hfd_condition_find(&r->conditions, HFD_SLICE("Available"));

    return c->message.len > 0 || available == NULL ? c->message : available->message;
}

hfd_slice hfd_outcome_update_words(const struct hfd_part_report *r)
{
    const struct hfd_condition *c = hfd_condition_find(&r->conditions, HFD_SLICE("Available"));

    return c != NULL && (c->status == HFD_STATUS_FALSE || hfd_slice_is(c->reason, "Updating"))
               ? c->message
               : HFD_SLICE("");
}

static hfd_slice say_failed(struct hfd_speech *s, const struct hfd_part_view *part)
{
    const struct hfd_part_report *report = hfd_outcome_terminal_report(s->in, part, true);
    const struct hfd_condition *c = hfd_outcome_terminal_condition(s->in, part, report);
    const hfd_slice name = part_name(s, part, true),
                    id = speech_tidy(s, s->in->guresid, ID_MAX_BYTES);
    const hfd_slice adapter = speech_tidy(s, report->adapter, WORD_MAX_BYTES),
                    reason = speech_tidy(s, c->reason, WORD_MAX_BYTES);
    hfd_slice head, note;

    head = speech_kept(
        s,
        hfd_arena_printf(
            s->mem,
            "%.*s%.*s of resource %.*s could not be provisioned: adapter %.*s reported %.*s=False, "
            "reason %.*s",
            HFD_SLICE_FMT(name), HFD_SLICE_FMT(in_cluster(s, part)), HFD_SLICE_FMT(id),
            HFD_SLICE_FMT(adapter), HFD_SLICE_FMT(c->type), HFD_SLICE_FMT(reason)));
    /* The names' limits leave room for a note; 2 for ": ". */
    note = speech_quote(s, hfd_outcome_words_of(report, c),
                        MESSAGE_MAX - 2 - head.len - (sizeof(advice) - 1));
    return speech_kept(
        s, hfd_arena_printf(s->mem, "%.*s%.*s%s", HFD_SLICE_FMT(head), HFD_SLICE_FMT(note),
                            ends_with(note, HFD_SLICE("...")) ? advice + 1 : advice));
}

/* The adapter that an <Adapter>Successful condition speaks of, or none. */
static hfd_slice adapter_of(struct hfd_speech *s, const struct hfd_part_view *part, hfd_slice type)
{
    for (size_t i = 0; i < part->report_count; i++)
        if (hfd_slice_eq(
                speech_kept(s, hfd_adapter_condition_type(part->reports[i].adapter, s->mem)), type))
            return part->reports[i].adapter;
    return HFD_SLICE_NONE;
}

static void say_degraded(struct hfd_speech *s, const struct hfd_part_view *part,
                         struct hfd_outcome *out)
{
    const struct hfd_condition *c = degraded_condition(part);
    const hfd_slice name = part_name(s, part, false),
                    note = speech_quote(s, c->message, NOTE_MAX_BYTES);
    const hfd_slice adapter = speech_tidy(s, adapter_of(s, part, c->type), NAME_MAX_BYTES),
                    type = speech_tidy(s, c->type, NAME_MAX_BYTES);

    if (out->code == NULL)
        out->cause = cause_of(s, adapter.len > 0 ? adapter : hyperfleet,
                              c->reason.len > 0 ? c->reason : c->type, c->message);
    out->health = "Degraded";
    out->health_reason = c->reason.len > 0 ? speech_tidy(s, c->reason, NAME_MAX_BYTES) : type;
    if (adapter.len > 0)
        out->health_message = speech_kept(
            s, hfd_arena_printf(s->mem, "%.*s: adapter %.*s reported Available=False%.*s",
                                HFD_SLICE_FMT(name), HFD_SLICE_FMT(adapter), HFD_SLICE_FMT(note)));
    else
        out->health_message = speech_kept(
            s, hfd_arena_printf(s->mem, "%.*s: condition %.*s is False%.*s", HFD_SLICE_FMT(name),
                                HFD_SLICE_FMT(type), HFD_SLICE_FMT(note)));
}

static void say_progressing(struct hfd_speech *s, const struct hfd_part_view *part,
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
    out->health_message =
        speech_kept(s, hfd_arena_printf(s->mem, "%.*s is being brought to generation %lld",
                                        HFD_SLICE_FMT(name), (long long)part->generation));
}

/* True if an adapter that is required reports success because its work is paused. */
static bool is_paused(const struct hfd_outcome_input *in, const struct hfd_part_view *part)
{
    for (size_t i = 0; i < part->report_count; i++) {
        const struct hfd_condition *c =
            hfd_condition_find(&part->reports[i].conditions, HFD_SLICE("Available"));

        if (c != NULL && c->status == HFD_STATUS_TRUE &&
            hfd_slice_is(c->reason, "ReconciliationPaused") &&
            has_name(hfd_outcome_required(in, part), part->reports[i].adapter))
            return true;
    }
    return false;
}

static void judge_health(struct hfd_speech *s, const struct hfd_part_view *gone,
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

/* ---- late ---- */

const struct hfd_part_report *hfd_outcome_report_by(const struct hfd_part_view *part,
                                                    hfd_slice adapter)
{
    for (size_t i = 0; i < part->report_count; i++)
        if (hfd_slice_eq(part->reports[i].adapter, adapter))
            return &part->reports[i];
    return NULL;
}

/*
 * The condition that an adapter still has to report True at the wanted generation: Available, or
 * Finalized during a deletion. NULL when it has.
 */
const char *hfd_outcome_lacks(const struct hfd_part_view *part, const struct hfd_part_report *r,
                              bool deleting)
{
    const char *type = deleting ? "Finalized" : "Available";
    const struct hfd_condition *c =
        r != NULL ? hfd_condition_find(&r->conditions, hfd_slice_of(type)) : NULL;

    return c != NULL && c->status == HFD_STATUS_TRUE && r->observed_generation >= part->generation
               ? NULL
               : type;
}

/*
 * " (Available=False, reason NoZone: what it says)": how far an adapter is that has not done its
 * part.
 */
static hfd_slice stands_at(struct hfd_speech *s, const struct hfd_part_view *part,
                           const struct hfd_part_report *r, const char *lacking)
{
    const struct hfd_condition *c;
    hfd_slice reason, words;

    if (r == NULL)
        return HFD_SLICE(" (has not reported)");
    if (r->observed_generation < part->generation)
        return speech_kept(
            s, hfd_arena_printf(
                   s->mem, " (has reported on generation %lld of %lld%.*s)",
                   (long long)r->observed_generation, (long long)part->generation,
                   HFD_SLICE_FMT(speech_quote(s, hfd_outcome_update_words(r), DETAIL_MAX_BYTES))));
    /* An adapter that does not work itself has nothing else to say. */
    c = hfd_condition_find(&r->conditions, HFD_SLICE("Health"));
    if (c == NULL || c->status == HFD_STATUS_TRUE)
        c = hfd_condition_find(&r->conditions, hfd_slice_of(lacking));
    if (c == NULL)
        return speech_kept(s, hfd_arena_printf(s->mem, " (has not reported %s)", lacking));
    reason = speech_tidy(s, c->reason, WORD_MAX_BYTES);
    words = speech_quote(s, hfd_outcome_words_of(r, c), DETAIL_MAX_BYTES);
    return speech_kept(s, hfd_arena_printf(s->mem, " (%.*s=%s, reason %.*s%.*s)",
                                           HFD_SLICE_FMT(c->type), hfd_status_name(c->status),
                                           HFD_SLICE_FMT(reason), HFD_SLICE_FMT(words)));
}

/* Adds an adapter and what it lacks to a list; nothing when it lacks nothing. */
static hfd_slice add_lacking(struct hfd_speech *s, const struct hfd_part_view *part,
                             hfd_slice adapter, bool deleting, hfd_slice list)
{
    const struct hfd_part_report *r = hfd_outcome_report_by(part, adapter);
    const char *lacking = hfd_outcome_lacks(part, r, deleting);

    if (lacking == NULL)
        return list;
    return speech_kept(s, hfd_arena_printf(s->mem, "%.*s%s%.*s%.*s", HFD_SLICE_FMT(list),
                                           list.len > 0 ? ", " : "",
                                           HFD_SLICE_FMT(speech_tidy(s, adapter, WORD_MAX_BYTES)),
                                           HFD_SLICE_FMT(stands_at(s, part, r, lacking))));
}

/* An observer with a verdict, which a cluster waits for while it is not being deleted. */
bool hfd_outcome_observer_waits(const struct hfd_outcome_input *in, const struct hfd_part_report *r)
{
    const struct hfd_condition *c =
        hfd_condition_find(&r->conditions, HFD_SLICE(HFD_OBSERVER_CONDITION));

    return c != NULL && c->status != HFD_STATUS_UNKNOWN && has_name(in->observers, r->adapter) &&
           !has_name(in->required[HFD_KIND_CLUSTER], r->adapter);
}

/* The adapter of a part that lacks something and is named first; p is NULL when none does. */
static hfd_slice first_lacking(const struct hfd_outcome_input *in, const struct hfd_part_view *part,
                               bool deleting)
{
    const struct hfd_adapter_names required = hfd_outcome_required(in, part);

    for (size_t i = 0; i < required.count; i++)
        if (hfd_outcome_lacks(part, hfd_outcome_report_by(part, required.items[i]), deleting) !=
            NULL)
            return required.items[i];
    for (size_t i = 0; part->kind == HFD_KIND_CLUSTER && !deleting && i < part->report_count; i++)
        if (hfd_outcome_observer_waits(in, &part->reports[i]) &&
            hfd_outcome_lacks(part, &part->reports[i], deleting) != NULL)
            return part->reports[i].adapter;
    return HFD_SLICE_NONE;
}

/* The words about an adapter that has not come to the present generation. */
static hfd_slice old_words(struct hfd_speech *s, const struct hfd_part_view *part,
                           const struct hfd_part_report *r)
{
    const hfd_slice own = hfd_outcome_update_words(r);

    return own.len > 0
               ? own
               : speech_kept(s, hfd_arena_printf(s->mem, "has reported on generation %lld of %lld",
                                                 (long long)r->observed_generation,
                                                 (long long)part->generation));
}

/* Why an adapter has not done its part: the condition that stands_at tells. */
static hfd_slice lacking_cause(struct hfd_speech *s, const struct hfd_part_view *part,
                               hfd_slice adapter, bool deleting)
{
    const struct hfd_part_report *r = hfd_outcome_report_by(part, adapter);
    const struct hfd_condition *c;

    if (r == NULL)
        return cause_of(s, adapter, HFD_SLICE("NotReported"), HFD_SLICE("has not reported"));
    if (r->observed_generation < part->generation)
        return cause_of(s, adapter, HFD_SLICE("OldGeneration"), old_words(s, part, r));
    c = hfd_condition_find(&r->conditions, HFD_SLICE("Health"));
    if (c == NULL || c->status == HFD_STATUS_TRUE)
        c = hfd_condition_find(&r->conditions, hfd_slice_of(hfd_outcome_lacks(part, r, deleting)));
    if (c == NULL)
        return cause_of(s, adapter, HFD_SLICE("NotReported"),
                        deleting ? HFD_SLICE("has not reported Finalized")
                                 : HFD_SLICE("has not reported Available"));
    return cause_of(s, adapter, c->reason, hfd_outcome_words_of(r, c));
}

/* Why a part is not finished that no adapter holds up. */
static hfd_slice aggregate_reason(const struct hfd_outcome_input *in,
                                  const struct hfd_part_view *part, bool deleting)
{
    const struct hfd_condition *c;

    if (deleting)
        return part->kind == HFD_KIND_CLUSTER && in->stranger_count > 0
                   ? HFD_SLICE("NodepoolsRemain")
                   : HFD_SLICE("AwaitingRemoval");
    c = hfd_condition_find(&part->conditions, HFD_SLICE("Ready"));
    if (c == NULL)
        c = hfd_condition_find(&part->conditions, HFD_SLICE("Reconciled"));
    return hfd_outcome_required(in, part).count == 0 && c != NULL && c->reason.len > 0
               ? c->reason
               : HFD_SLICE("AwaitingAggregation");
}

static hfd_slice waits_on(struct hfd_speech *s)
{
    const struct hfd_outcome_input *in = s->in;
    const bool deleting = in->state == HFD_STATE_DELETING;

    if (in->trouble.len > 0)
        return cause_of(s, hyperfleet, HFD_SLICE("RemoteTrouble"), in->trouble);
    for (size_t i = 0; i < in->part_count; i++) {
        const struct hfd_part_view *part = &in->parts[i];
        const bool removing = deleting || part->leaving;
        hfd_slice adapter;

        if (deleting ? !part->exists : hfd_outcome_part_ready(part))
            continue;
        if (!part->exists || (part->pending && !removing))
            return cause_of(s, hyperfleet, HFD_SLICE("NotTakenUp"), HFD_SLICE(""));
        adapter = first_lacking(in, part, removing);
        return adapter.p != NULL
                   ? lacking_cause(s, part, adapter, removing)
                   : cause_of(s, hyperfleet, aggregate_reason(in, part, removing), HFD_SLICE(""));
    }
    return HFD_SLICE("");
}

hfd_slice hfd_outcome_waits_on(const struct hfd_outcome_input *in, struct hfd_arena *mem)
{
    struct hfd_speech s = {.in = in, .mem = mem};
    const hfd_slice cause = waits_on(&s);

    return s.nomem ? HFD_SLICE_NONE : cause;
}

/* The one that was waited for until the deadline, and what it said. */
static hfd_slice late_cause(struct hfd_speech *s)
{
    const struct hfd_cause wait = hfd_cause_parse(waits_on(s));

    return cause_of(s, wait.who.len > 0 ? wait.who : hyperfleet, HFD_SLICE(HFD_CAUSE_LATE),
                    wait.words);
}

static hfd_slice waits_for(struct hfd_speech *s, const struct hfd_part_view *part, bool deleting)
{
    const struct hfd_adapter_names required = hfd_outcome_required(s->in, part);
    hfd_slice list = HFD_SLICE("");

    if (!part->exists)
        return HFD_SLICE(" was removed in HyperFleet");
    if (part->pending && !deleting && !part->leaving)
        return HFD_SLICE(" has not been taken up by HyperFleet");
    deleting = deleting || part->leaving;
    for (size_t i = 0; i < required.count; i++)
        list = add_lacking(s, part, required.items[i], deleting, list);
    for (size_t i = 0; part->kind == HFD_KIND_CLUSTER && !deleting && i < part->report_count; i++)
        if (hfd_outcome_observer_waits(s->in, &part->reports[i]))
            list = add_lacking(s, part, part->reports[i].adapter, deleting, list);
    if (list.len == 0)
        return deleting ? HFD_SLICE(" waits for its nodepools to be removed")
                        : HFD_SLICE(" is not Ready");
    return speech_kept(s, hfd_arena_printf(s->mem, " waits for %s %.*s",
                                           deleting ? "Finalized from" : "adapters",
                                           HFD_SLICE_FMT(list)));
}

/* "cluster 'c1' (2abc) waits for adapters dns (has not reported); nodepool ..." */
static hfd_slice unfinished(struct hfd_speech *s, bool deleting, size_t max)
{
    hfd_slice list = HFD_SLICE("");
    size_t count = 0;

    for (size_t i = 0; i < s->in->part_count && !s->nomem; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];

        if ((deleting ? !part->exists : hfd_outcome_part_ready(part)) || ++count > LISTED_MAX)
            continue;
        list = speech_kept(s, hfd_arena_printf(s->mem, "%.*s%s%.*s%.*s", HFD_SLICE_FMT(list),
                                               count > 1 ? "; " : "",
                                               HFD_SLICE_FMT(part_name(s, part, false)),
                                               HFD_SLICE_FMT(waits_for(s, part, deleting))));
    }
    if (count <= LISTED_MAX)
        return speech_tidy(s, list, max);
    list = speech_tidy(s, list, max - MORE_MAX_BYTES);
    return speech_kept(
        s, hfd_arena_printf(s->mem, "%.*s; and %zu more", HFD_SLICE_FMT(list), count - LISTED_MAX));
}

static hfd_slice say_late(struct hfd_speech *s)
{
    const bool deleting = s->in->state == HFD_STATE_DELETING;
    const char *what = deleting                             ? "The deletion"
                       : s->in->state == HFD_STATE_CREATING ? "The creation"
                                                            : "The update";
    const char *then = deleting ? ". It goes on; delete again to wait for it."
                                : ". Deploy again to give it more time, or delete the resource.";
    const hfd_slice head = speech_kept(
        s, hfd_arena_printf(s->mem, "%s of resource %.*s was not finished at its deadline: ", what,
                            HFD_SLICE_FMT(speech_tidy(s, s->in->guresid, ID_MAX_BYTES))));
    const hfd_slice trouble = speech_quote(s, s->in->trouble, DETAIL_MAX_BYTES);
    const hfd_slice list =
        unfinished(s, deleting, MESSAGE_MAX - head.len - trouble.len - strlen(then));
    const hfd_slice end = trouble.len > 0 ? trouble : list;

    return speech_kept(s, hfd_arena_printf(s->mem, "%.*s%.*s%.*s%s", HFD_SLICE_FMT(head),
                                           HFD_SLICE_FMT(list), HFD_SLICE_FMT(trouble),
                                           ends_with(end, HFD_SLICE("...")) ? then + 1 : then));
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
static void decide(struct hfd_speech *s, const struct hfd_part_view *gone,
                   const struct hfd_part_view *failed, struct hfd_outcome *out)
{
    const struct hfd_outcome_input *in = s->in;
    const struct hfd_part_report *report;
    const struct hfd_condition *given_up;

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
        out->message = say_failed(s, failed);
        report = hfd_outcome_terminal_report(in, failed, true);
        given_up = hfd_outcome_terminal_condition(in, failed, report);
        out->cause =
            cause_of(s, report->adapter, given_up->reason, hfd_outcome_words_of(report, given_up));
    } else if (out->progress == HFD_PROGRESS_READY && in_progress(in)) {
        out->state = HFD_STATE_READY;
    }
}

hfd_rc hfd_outcome_judge(const struct hfd_outcome_input *in, struct hfd_arena *mem,
                         struct hfd_outcome *out)
{
    const struct hfd_part_view *gone = first_part(in, is_gone), *failed = first_part(in, is_failed);
    struct hfd_speech s = {.in = in, .mem = mem};

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
