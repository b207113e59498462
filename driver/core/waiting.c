/* See waiting.h. */
#include "driver/core/waiting.h"

#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/core/outcome.h"
#include "driver/core/past.h"

#include <string.h>

/* ---- words ---- */

/* The longest piece of text that words_add takes. */
#define HFD_WORDS_ADD_MAX_BYTES 200

hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem,
                            "Resource %.*s is ready, but %s: let driver.outputs take less, or the "
                            "adapters report less. Then deploy again, or delete the resource.",
                            HFD_SLICE_FMT(guresid), why);
}

/* Adds text as hfd_foreign_sentence makes it. max: at most HFD_WORDS_ADD_MAX_BYTES. */
static void words_add(struct hfd_buf *b, hfd_slice text, size_t max)
{
    char line[HFD_WORDS_ADD_MAX_BYTES];

    if (HFD_NEVER(max > sizeof(line)))
        max = sizeof(line);
    hfd_buf_add(b, (hfd_slice){line, hfd_foreign_sentence(text, max, line)});
}

hfd_slice hfd_words_without_stop(hfd_slice text)
{
    while (text.len > 0 && strchr(" .\t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return text;
}

/* Adds ": " and the text without the full stop at its end; nothing for no text. */
static void words_add_quote(struct hfd_buf *b, hfd_slice text, size_t max)
{
    text = hfd_words_without_stop(text);
    if (text.len == 0)
        return;
    hfd_buf_lit(b, ": ");
    words_add(b, text, max);
}

void hfd_words_add_duration(struct hfd_buf *b, int64_t us)
{
    static const struct {
        int64_t from_s, unit_s;
        const char *unit;
    } units[] = {{100 * 60, 3600, "h"}, {100, 60, "min"}, {1, 1, "s"}};
    const int64_t s =
        us < HFD_US_PER_S ? 1 : us / HFD_US_PER_S + (us % HFD_US_PER_S >= HFD_US_PER_S / 2);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (s >= units[i].from_s) {
            hfd_buf_i64(b, (s + units[i].unit_s / 2) / units[i].unit_s);
            hfd_buf_addf(b, " %s", units[i].unit);
            return;
        }
}

/* ---- waiting ---- */

#define NAME_MAX_BYTES 56
#define WORD_MAX_BYTES 40
#define DETAIL_MAX_BYTES 200 /* an adapter's message */
#define TROUBLE_MAX_BYTES 160
#define LISTED_MAX 3 /* parts that are named */
/* A message before it is cut. More is not added. */
#define TEXT_MAX_BYTES ((size_t)4 * HFD_WAITING_MAX_BYTES)

/* A message under construction. */
struct said {
    const struct hfd_outcome_input *in;
    int64_t started_us;
    struct hfd_arena *mem;
    struct hfd_milestones usual;
    struct hfd_buf text;
};

/* Counts the required adapters of all parts, and those that are done. */
struct tally {
    size_t done, all;
};

/* The adapters of one part that are not done. One is held back: the last is joined by "and". */
struct list {
    const struct hfd_part_view *part;
    bool deleting;
    size_t written;
    hfd_slice held;    /* p is NULL when there is none */
    const char *begin; /* before the first: "waits for " */
};

/* " since 09:03Z": the time since when an adapter's condition on a part stands as it is. */
static void add_since(struct said *s, const struct list *l, hfd_slice adapter)
{
    const hfd_slice type = hfd_adapter_condition_type(adapter, s->mem);
    const struct hfd_condition *c;
    char text[HFD_TIME_TEXT_MAX];

    if (type.p == NULL) {
        s->text.rc = HFD_NOMEM;
        return;
    }
    c = l->deleting ? NULL : hfd_condition_find(&l->part->conditions, type);
    if (c == NULL || c->last_transition_us == 0)
        return;
    (void)hfd_time_format_s(
        c->last_transition_us > s->started_us ? c->last_transition_us : s->started_us, text);
    hfd_buf_lit(&s->text, " since ");
    /* "2025-01-01T09:03:00Z" */
    hfd_buf_add(&s->text, (hfd_slice){text + 11, 5});
    hfd_buf_addc(&s->text, 'Z');
}

/* ", usually 40 s": the time from the beginning until an adapter is done. */
static void add_usual(struct said *s, const struct list *l, hfd_slice adapter)
{
    const struct hfd_milestone *m;
    hfd_slice name;

    if (s->usual.count == 0)
        return;
    name = hfd_milestone_name(l->part->kind, adapter, s->mem);
    if (name.p == NULL) {
        s->text.rc = HFD_NOMEM;
        return;
    }
    m = hfd_milestone_find(&s->usual, name);
    if (m == NULL)
        return;
    hfd_buf_lit(&s->text, ", usually ");
    hfd_words_add_duration(&s->text, m->at_us);
}

/* "WaitingForDelegation: zone x is not delegated" */
static void add_condition(struct said *s, const struct hfd_part_report *r,
                          const struct hfd_condition *c)
{
    words_add(&s->text, c->reason.len > 0 ? c->reason : HFD_SLICE("no reason"), WORD_MAX_BYTES);
    words_add_quote(&s->text, hfd_outcome_words_of(r, c), DETAIL_MAX_BYTES);
}

/* Adds the lack of an adapter, from its report. */
static void add_lack(struct said *s, const struct hfd_part_view *part,
                     const struct hfd_part_report *r, const char *lacking)
{
    const struct hfd_condition *health = hfd_condition_find(&r->conditions, HFD_SLICE("Health"));
    const struct hfd_condition *c = hfd_condition_find(&r->conditions, hfd_slice_of(lacking));

    if (r->observed_generation < part->generation) {
        hfd_buf_addf(&s->text, "has reported on generation %lld of %lld",
                     (long long)r->observed_generation, (long long)part->generation);
        words_add_quote(&s->text, hfd_outcome_update_words(r), DETAIL_MAX_BYTES);
    } else if (health != NULL && health->status != HFD_STATUS_TRUE) {
        /* An adapter that does not work itself has nothing else to say. */
        hfd_buf_lit(&s->text, "does not work itself, ");
        add_condition(s, r, health);
    } else if (c != NULL) {
        add_condition(s, r, c);
    } else {
        hfd_buf_lit(&s->text, "has not reported ");
        hfd_buf_add(&s->text, hfd_slice_of(lacking));
    }
}

/* "dns since 09:03Z (...)" */
static void add_adapter(struct said *s, const struct list *l, hfd_slice adapter)
{
    const struct hfd_part_report *r = hfd_outcome_report_by(l->part, adapter);

    words_add(&s->text, adapter, WORD_MAX_BYTES);
    if (r != NULL)
        add_since(s, l, adapter);
    add_usual(s, l, adapter);
    hfd_buf_lit(&s->text, " (");
    if (r != NULL)
        add_lack(s, l->part, r, hfd_outcome_lacks(l->part, r, l->deleting));
    else
        hfd_buf_lit(&s->text, "has not reported");
    hfd_buf_addc(&s->text, ')');
}

/* Writes the adapter that was held back, behind the word or comma that joins it. */
static void write_held(struct said *s, struct list *l, const char *joint)
{
    hfd_buf_add(&s->text, hfd_slice_of(l->written == 0 ? l->begin : joint));
    add_adapter(s, l, l->held);
    l->written++;
}

/* Takes an adapter into a list, unless it is done. */
static void take(struct said *s, struct list *l, hfd_slice adapter)
{
    if (hfd_outcome_lacks(l->part, hfd_outcome_report_by(l->part, adapter), l->deleting) == NULL)
        return;
    if (l->held.p != NULL)
        write_held(s, l, ", ");
    l->held = adapter;
}

/* "waits for nodepool 'gpu' of resource r-np: dns (has not reported)": pools of other resources. */
static void add_strangers(struct said *s)
{
    for (size_t i = 0; i < s->in->stranger_count && i < LISTED_MAX; i++) {
        const struct hfd_stranger *stranger = &s->in->strangers[i];
        const struct hfd_adapter_names required = hfd_outcome_required(s->in, stranger->view);
        struct list l = {stranger->view, true, 0, HFD_SLICE_NONE, ": "};

        hfd_buf_add(&s->text,
                    i > 0 ? HFD_SLICE("; nodepool '") : HFD_SLICE("waits for nodepool '"));
        words_add(&s->text, stranger->view->name, NAME_MAX_BYTES);
        hfd_buf_addc(&s->text, '\'');
        if (stranger->guresid.len > 0) {
            hfd_buf_lit(&s->text, " of resource ");
            words_add(&s->text, stranger->guresid, NAME_MAX_BYTES);
        }
        for (size_t k = 0; k < required.count; k++)
            take(s, &l, required.items[k]);
        if (l.held.p != NULL)
            write_held(s, &l, ", and ");
    }
    if (s->in->stranger_count > LISTED_MAX)
        hfd_buf_addf(&s->text, "; and %zu more", s->in->stranger_count - LISTED_MAX);
}

/* "waits for HyperFleet (AwaitingAdapters: ...)": a remote that has named no adapter yet. */
static void add_aggregate(struct said *s, const struct hfd_part_view *part)
{
    const struct hfd_condition *c = hfd_condition_find(&part->conditions, HFD_SLICE("Ready"));

    if (c == NULL)
        c = hfd_condition_find(&part->conditions, HFD_SLICE("Reconciled"));
    hfd_buf_lit(&s->text, "waits for HyperFleet");
    if (c == NULL)
        return;
    hfd_buf_lit(&s->text, " (");
    words_add(&s->text, c->reason, WORD_MAX_BYTES);
    words_add_quote(&s->text, c->message, DETAIL_MAX_BYTES);
    hfd_buf_addc(&s->text, ')');
}

/* "waits for dns since 09:03Z (...), and hypershift (...)": the adapters of a part. */
static void add_adapters(struct said *s, const struct hfd_part_view *part, bool deleting)
{
    const struct hfd_adapter_names required = hfd_outcome_required(s->in, part);
    struct list l = {part, deleting, 0, HFD_SLICE_NONE, "waits for "};

    for (size_t i = 0; i < required.count; i++)
        take(s, &l, required.items[i]);
    for (size_t i = 0; part->kind == HFD_KIND_CLUSTER && !deleting && i < part->report_count; i++)
        if (hfd_outcome_observer_waits(s->in, &part->reports[i]))
            take(s, &l, part->reports[i].adapter);
    if (l.held.p != NULL)
        write_held(s, &l, ", and ");
    else if (deleting && part->kind == HFD_KIND_CLUSTER && s->in->stranger_count > 0)
        add_strangers(s);
    else if (deleting)
        hfd_buf_lit(&s->text, "waits for its removal in HyperFleet");
    else if (required.count > 0)
        hfd_buf_lit(&s->text, "waits for HyperFleet to aggregate the reports");
    else
        add_aggregate(s, part);
}

/* "nodepool 'workers' waits for ...": one part that is not done. */
static void add_part(struct said *s, const struct hfd_part_view *part, bool deleting)
{
    if (s->in->part_count > 1 && part->kind == HFD_KIND_CLUSTER) {
        hfd_buf_lit(&s->text, "cluster ");
    } else if (s->in->part_count > 1) {
        hfd_buf_lit(&s->text, "nodepool '");
        words_add(&s->text, part->name, NAME_MAX_BYTES);
        hfd_buf_lit(&s->text, "' ");
    }
    if (!part->exists)
        hfd_buf_lit(&s->text, "waits for HyperFleet");
    else if (part->pending && !deleting && !part->leaving)
        hfd_buf_lit(&s->text, "waits for HyperFleet to take it up");
    else
        add_adapters(s, part, deleting || part->leaving);
}

/* The parts that are not done, each with what it waits for. */
static void add_parts(struct said *s, bool deleting)
{
    size_t count = 0;

    for (size_t i = 0; i < s->in->part_count; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];

        if ((deleting ? !part->exists : hfd_outcome_part_ready(part)) || ++count > LISTED_MAX)
            continue;
        if (count > 1)
            hfd_buf_lit(&s->text, "; ");
        add_part(s, part, deleting);
    }
    if (count > LISTED_MAX)
        hfd_buf_addf(&s->text, "; and %zu more", count - LISTED_MAX);
}

static struct tally count_adapters(const struct hfd_outcome_input *in, bool deleting)
{
    struct tally t = {0, 0};

    for (size_t i = 0; i < in->part_count; i++) {
        const struct hfd_part_view *part = &in->parts[i];
        const struct hfd_adapter_names required = hfd_outcome_required(in, part);

        t.all += required.count;
        for (size_t k = 0; k < required.count; k++)
            t.done +=
                !part->exists
                    ? deleting || part->leaving
                    : !part->pending &&
                          hfd_outcome_lacks(part, hfd_outcome_report_by(part, required.items[k]),
                                            deleting || part->leaving) == NULL;
    }
    return t;
}

/* "; adapter dsn, which is not required, gave up (Reason: words)": the first such one. */
static void add_others(struct said *s)
{
    for (size_t i = 0; i < s->in->part_count; i++) {
        const struct hfd_part_view *part = &s->in->parts[i];
        const struct hfd_part_report *r =
            part->exists ? hfd_outcome_terminal_report(s->in, part, false) : NULL;

        if (r == NULL)
            continue;
        hfd_buf_lit(&s->text, "; adapter ");
        words_add(&s->text, r->adapter, WORD_MAX_BYTES);
        hfd_buf_lit(&s->text, ", which is not required, gave up (");
        add_condition(s, r, hfd_outcome_terminal_condition(s->in, part, r));
        hfd_buf_addc(&s->text, ')');
        return;
    }
}

/* "; 2 of 4 adapters are done" */
static void add_tally(struct said *s, bool deleting)
{
    const struct tally t = count_adapters(s->in, deleting);

    if (t.all > 0)
        hfd_buf_addf(&s->text, "; %zu of %zu adapters %s done", t.done, t.all,
                     t.done == 1 ? "is" : "are");
}

/* The message: what is waited for, cut so that the end fits. */
static hfd_slice join(struct said *s, size_t end_at)
{
    const size_t end_len = s->text.len - end_at, max = HFD_WAITING_MAX_BYTES - end_len;
    char *p = hfd_arena_alloc(s->mem, HFD_WAITING_MAX_BYTES);
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
    const bool deleting = in->state == HFD_STATE_DELETING;
    struct said s = {.in = in, .started_us = started_us, .mem = mem};
    size_t end_at;

    hfd_milestones_parse(in->usual, &s.usual);
    hfd_buf_init(&s.text, TEXT_MAX_BYTES);
    if (in->trouble.len > 0) {
        words_add(&s.text, in->trouble, TROUBLE_MAX_BYTES);
        hfd_buf_lit(&s.text, "; ");
    }
    add_parts(&s, deleting);
    /* A message that is cut anyway may be full. */
    if (s.text.rc == HFD_LIMIT)
        s.text.rc = HFD_OK;
    end_at = s.text.len;
    s.text.max_bytes += HFD_WAITING_MAX_BYTES;
    add_others(&s);
    add_tally(&s, deleting);
    *out = s.text.rc == HFD_OK ? join(&s, end_at) : HFD_SLICE_NONE;
    hfd_buf_fini(&s.text);
    *cause = hfd_outcome_waits_on(in, mem);
    return out->p != NULL && cause->p != NULL ? HFD_OK : HFD_NOMEM;
}
