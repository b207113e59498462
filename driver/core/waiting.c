/* See waiting.h. */
#include "driver/core/waiting.h"

#include "driver/base/clock.h"
#include "driver/core/outcome_int.h"

#define NAME_MAX_BYTES 56
#define WORD_MAX_BYTES 40
#define DETAIL_MAX_BYTES 120 /* an adapter's message */
#define TROUBLE_MAX_BYTES 160
#define LISTED_MAX 3 /* parts that are named */

/* Counts the required adapters of all parts, and those that are done. */
struct tally {
    size_t done, all;
};

/* The time since when an adapter's condition on a part stands as it is, or 0. */
static int64_t stands_since(struct hfd_speech *s, const struct hfd_part_view *part,
                            hfd_slice adapter, bool deleting)
{
    const hfd_slice type = hfd_speech_kept(s, hfd_adapter_condition_type(adapter, s->mem));
    const struct hfd_condition *c =
        type.p != NULL && !deleting ? hfd_condition_find(&part->conditions, type) : NULL;

    return c != NULL ? c->last_transition_us : 0;
}

/* " since 09:03Z", or nothing for an adapter that has not reported. */
static hfd_slice since(struct hfd_speech *s, int64_t at_us, int64_t started_us)
{
    char text[HFD_TIME_TEXT_MAX];

    if (at_us == 0)
        return HFD_SLICE("");
    (void)hfd_time_format_s(at_us > started_us ? at_us : started_us, text);
    /* "2025-01-01T09:03:00Z" */
    return hfd_speech_kept(s, hfd_arena_printf(s->mem, " since %.5sZ", text + 11));
}

/* " (WaitingForDelegation: zone x is not delegated)" */
static hfd_slice because(struct hfd_speech *s, const struct hfd_part_view *part,
                         const struct hfd_part_report *r, const char *lacking)
{
    const struct hfd_condition *c;
    bool well;

    if (r == NULL)
        return HFD_SLICE(" (has not reported)");
    if (r->observed_generation < part->generation)
        return hfd_speech_kept(
            s, hfd_arena_printf(s->mem, " (has reported on generation %lld of %lld)",
                                (long long)r->observed_generation, (long long)part->generation));
    /* An adapter that does not work itself has nothing else to say. */
    c = hfd_condition_find(&r->conditions, HFD_SLICE("Health"));
    well = c == NULL || c->status == HFD_STATUS_TRUE;
    if (well)
        c = hfd_condition_find(&r->conditions, hfd_slice_of(lacking));
    if (c == NULL)
        return hfd_speech_kept(s, hfd_arena_printf(s->mem, " (has not reported %s)", lacking));
    return hfd_speech_kept(
        s, hfd_arena_printf(
               s->mem, " (%s%.*s%.*s)", well ? "" : "does not work itself, ",
               HFD_SLICE_FMT(hfd_speech_tidy(
                   s, c->reason.len > 0 ? c->reason : HFD_SLICE("no reason"), WORD_MAX_BYTES)),
               HFD_SLICE_FMT(hfd_speech_quote(s, hfd_outcome_words_of(r, c), DETAIL_MAX_BYTES))));
}

/* Adapters that are not done, all but the last joined. */
struct list {
    const struct hfd_part_view *part;
    bool deleting;
    int64_t started_us;
    hfd_slice joined, last;
};

/* Adds "dns since 09:03Z (...)" to a list, unless the adapter is done. */
static void add_adapter(struct hfd_speech *s, hfd_slice adapter, struct list *l)
{
    const struct hfd_part_report *r = hfd_outcome_report_by(l->part, adapter);
    const char *lacking = hfd_outcome_lacks(l->part, r, l->deleting);
    const int64_t at_us = r != NULL ? stands_since(s, l->part, adapter, l->deleting) : 0;

    if (lacking == NULL)
        return;
    if (l->last.len > 0)
        l->joined = hfd_speech_kept(
            s, hfd_arena_printf(s->mem, "%.*s%s%.*s", HFD_SLICE_FMT(l->joined),
                                l->joined.len > 0 ? ", " : "", HFD_SLICE_FMT(l->last)));
    l->last = hfd_speech_kept(
        s, hfd_arena_printf(s->mem, "%.*s%.*s%.*s",
                            HFD_SLICE_FMT(hfd_speech_tidy(s, adapter, WORD_MAX_BYTES)),
                            HFD_SLICE_FMT(since(s, at_us, l->started_us)),
                            HFD_SLICE_FMT(because(s, l->part, r, lacking))));
}

/* "dns since 09:03Z (...), and hypershift (...)": the adapters of a part that are not done. */
static hfd_slice adapters(struct hfd_speech *s, const struct hfd_part_view *part, bool deleting,
                          int64_t started_us)
{
    const struct hfd_adapter_names *required = &s->in->required[part->kind];
    struct list l = {part, deleting, started_us, HFD_SLICE(""), HFD_SLICE("")};

    for (size_t i = 0; i < required->count; i++)
        add_adapter(s, required->items[i], &l);
    for (size_t i = 0; part->kind == HFD_KIND_CLUSTER && !deleting && i < part->report_count; i++)
        if (hfd_outcome_observer_waits(s->in, &part->reports[i]))
            add_adapter(s, part->reports[i].adapter, &l);
    return l.joined.len == 0 ? l.last
                             : hfd_speech_kept(s, hfd_arena_printf(s->mem, "%.*s, and %.*s",
                                                                   HFD_SLICE_FMT(l.joined),
                                                                   HFD_SLICE_FMT(l.last)));
}

/* "waits for ...": one part that is not done. */
static hfd_slice part_waits(struct hfd_speech *s, const struct hfd_part_view *part, bool deleting,
                            int64_t started_us)
{
    hfd_slice list;

    if (!part->exists)
        return HFD_SLICE("waits for HyperFleet");
    if (part->pending && !deleting && !part->leaving)
        return HFD_SLICE("waits for HyperFleet to take it up");
    deleting = deleting || part->leaving;
    list = adapters(s, part, deleting, started_us);
    if (list.len == 0)
        return deleting ? HFD_SLICE("waits for its removal in HyperFleet")
                        : HFD_SLICE("waits for HyperFleet to aggregate the reports");
    return hfd_speech_kept(s, hfd_arena_printf(s->mem, "waits for %.*s", HFD_SLICE_FMT(list)));
}

/* "cluster ", "nodepool 'workers' "; nothing where there is one part only. */
static hfd_slice subject(struct hfd_speech *s, const struct hfd_part_view *part)
{
    if (s->in->part_count == 1)
        return HFD_SLICE("");
    if (part->kind == HFD_KIND_CLUSTER)
        return HFD_SLICE("cluster ");
    return hfd_speech_kept(
        s, hfd_arena_printf(s->mem, "nodepool '%.*s' ",
                            HFD_SLICE_FMT(hfd_speech_tidy(s, part->name, NAME_MAX_BYTES))));
}

static struct tally count_adapters(const struct hfd_outcome_input *in, bool deleting)
{
    struct tally t = {0, 0};

    for (size_t i = 0; i < in->part_count; i++) {
        const struct hfd_part_view *part = &in->parts[i];
        const struct hfd_adapter_names *required = &in->required[part->kind];

        t.all += required->count;
        for (size_t k = 0; k < required->count; k++)
            t.done +=
                !part->exists
                    ? deleting || part->leaving
                    : !part->pending &&
                          hfd_outcome_lacks(part, hfd_outcome_report_by(part, required->items[k]),
                                            deleting || part->leaving) == NULL;
    }
    return t;
}

/* "; adapter dsn, which is not required, gave up (Reason: words)": the first such one, or nothing.
 */
static hfd_slice others(struct hfd_speech *s)
{
    for (size_t i = 0; i < s->in->part_count; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];
        const struct hfd_part_report *r =
            part->exists ? hfd_outcome_terminal_report(s->in, part, false) : NULL;
        const struct hfd_condition *c;

        if (r == NULL)
            continue;
        c = hfd_outcome_terminal_condition(s->in, part, r);
        return hfd_speech_kept(
            s, hfd_arena_printf(s->mem, "; adapter %.*s, which is not required, gave up (%.*s%.*s)",
                                HFD_SLICE_FMT(hfd_speech_tidy(s, r->adapter, WORD_MAX_BYTES)),
                                HFD_SLICE_FMT(hfd_speech_tidy(s, c->reason, WORD_MAX_BYTES)),
                                HFD_SLICE_FMT(hfd_speech_quote(s, hfd_outcome_words_of(r, c),
                                                               DETAIL_MAX_BYTES))));
    }
    return HFD_SLICE("");
}

/* The parts that are not done, each with what it waits for. */
static hfd_slice parts(struct hfd_speech *s, bool deleting, int64_t started_us)
{
    hfd_slice list = HFD_SLICE("");
    size_t count = 0;

    for (size_t i = 0; i < s->in->part_count && !s->nomem; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];

        if ((deleting ? !part->exists : hfd_outcome_part_ready(part)) || ++count > LISTED_MAX)
            continue;
        list = hfd_speech_kept(
            s, hfd_arena_printf(s->mem, "%.*s%s%.*s%.*s", HFD_SLICE_FMT(list),
                                count > 1 ? "; " : "", HFD_SLICE_FMT(subject(s, part)),
                                HFD_SLICE_FMT(part_waits(s, part, deleting, started_us))));
    }
    if (count <= LISTED_MAX)
        return list;
    return hfd_speech_kept(
        s, hfd_arena_printf(s->mem, "%.*s; and %zu more", HFD_SLICE_FMT(list), count - LISTED_MAX));
}

hfd_rc hfd_waiting_say(const struct hfd_outcome_input *in, int64_t started_us,
                       struct hfd_arena *mem, hfd_slice *out)
{
    const bool deleting = in->state == HFD_STATE_DELETING;
    const struct tally t = count_adapters(in, deleting);
    struct hfd_speech s = {.in = in, .mem = mem};
    hfd_slice trouble = hfd_speech_tidy(&s, in->trouble, TROUBLE_MAX_BYTES), list, end;

    list = parts(&s, deleting, started_us);
    end = others(&s);
    if (t.all > 0)
        end = hfd_speech_kept(&s, hfd_arena_printf(mem, "%.*s; %zu of %zu adapters %s done",
                                                   HFD_SLICE_FMT(end), t.done, t.all,
                                                   t.done == 1 ? "is" : "are"));
    if (trouble.len > 0)
        list = hfd_speech_kept(
            &s, hfd_arena_printf(mem, "%.*s; %.*s", HFD_SLICE_FMT(trouble), HFD_SLICE_FMT(list)));
    list = hfd_speech_tidy(&s, list, HFD_WAITING_MAX_BYTES - end.len);
    *out = hfd_speech_kept(
        &s, hfd_arena_printf(mem, "%.*s%.*s", HFD_SLICE_FMT(list), HFD_SLICE_FMT(end)));
    return s.nomem ? HFD_NOMEM : HFD_OK;
}
