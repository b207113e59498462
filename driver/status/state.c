/* See state.h. */
#include "driver/status/state.h"

#include "driver/base/clock.h"

#define US_PER_MS 1000
#define ACTIONS_OF_CREATION 3

static void add(struct hfd_status_state *s, const char *state, int64_t context, int64_t at_us)
{
    const int64_t before_us = s->count > 0 ? s->actions[s->count - 1].at_us : at_us;

    /* Times never go back, even when a clock was set back. */
    s->actions[s->count++] =
        (struct hfd_status_action){state, context, at_us > before_us ? at_us : before_us};
}

static void add_entry(struct hfd_status_state *s, enum hfd_status_subject subject,
                      const struct hfd_status_entry *e)
{
    const bool cluster = subject == HFD_SUBJECT_CLUSTER;
    const struct hfd_status_action *last = s->count > 0 ? &s->actions[s->count - 1] : NULL;

    switch (e->deed) {
    case HFD_DEED_CREATE:
        if (last == NULL)
            add(s, "Created", 0, e->at_us);
        if (!cluster)
            add(s, "Approved", 0, e->at_us);
        add(s, cluster ? "Applied" : "Instantiated", e->context, e->at_us);
        return;
    case HFD_DEED_CHANGE:
        add(s, cluster ? "Applied" : "Instantiated", e->context, e->at_us);
        return;
    case HFD_DEED_DELETE:
        if (last == NULL || strcmp(last->state, "Terminated") != 0)
            add(s, "Terminated", e->context, e->at_us);
        return;
    }
}

hfd_rc hfd_status_state_make(enum hfd_status_subject subject,
                             const struct hfd_status_entries *entries, struct hfd_arena *mem,
                             struct hfd_status_state *out, struct hfd_err *err)
{
    *out = (struct hfd_status_state){
        hfd_arena_array(mem, entries->count + 1, ACTIONS_OF_CREATION * sizeof(*out->actions)), 0};
    if (out->actions == NULL)
        return hfd_fail_nomem(err, "read a state history");
    for (size_t i = 0; i < entries->count; i++)
        add_entry(out, subject, &entries->items[i]);
    return HFD_OK;
}

int64_t hfd_status_state_latest(const struct hfd_status_state *state)
{
    for (size_t i = state->count; i > 0; i--)
        if (state->actions[i - 1].context != 0)
            return state->actions[i - 1].context;
    return 0;
}

bool hfd_status_state_has(const struct hfd_status_state *state, int64_t context, bool *terminating)
{
    bool found = false;

    *terminating = false;
    for (size_t i = 0; i < state->count; i++) {
        const struct hfd_status_action *a = &state->actions[i];

        if (a->context != context || context == 0)
            continue;
        found = true;
        *terminating = strcmp(a->state, "Terminated") == 0;
    }
    return found;
}

static void add_action(struct hfd_buf *b, const struct hfd_status_action *a)
{
    hfd_buf_addf(b, "{\"State\":\"%s\",\"ContextId\":\"", a->state);
    if (a->context != 0)
        hfd_buf_i64(b, a->context);
    hfd_buf_member_time(b, "\",\"TimeStamp\":", a->at_us - a->at_us % US_PER_MS);
    hfd_buf_addc(b, '}');
}

void hfd_status_state_format(struct hfd_buf *b, const struct hfd_status_state *state)
{
    hfd_buf_lit(b, "{\"Actions\":[");
    for (size_t i = 0; i < state->count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_action(b, &state->actions[i]);
    }
    hfd_buf_lit(b, "]}");
}
