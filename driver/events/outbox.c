/* See outbox.h. */
#include "driver/events/outbox.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "driver/core/history.h"
#include "driver/events/event.h"
#include "driver/events/repeats.h"
#include "driver/events/window.h"

#include <stdlib.h>

#define OUTBOX_MAGIC 0x6f757462u
#define LOOK_US HFD_US_PER_S              /* between two looks without a bell */
#define IDLE_US (20 * HFD_US_PER_S)       /* after this the sender may show that it is there */
#define STORE_US HFD_US_PER_S             /* between two writes of the cursors */
#define TELL_US (300 * HFD_US_PER_S)      /* a target that has failed for longer is a problem */
#define LOOK_MAX_BYTES ((size_t)64 << 20) /* memory of one read */
#define EVENT_MAX_BYTES ((size_t)4 << 20)
#define NAME_MAX_BYTES 64

/* A stream of the target. */
struct stream {
    bool on;
    struct hfd_window window;
    struct hfd_outbox_row stored; /* as the database has it */
};

struct hfd_outbox {
    unsigned magic;
    struct hfd_outbox_parts parts;
    char name[NAME_MAX_BYTES + 1];
    struct hfd_sender sender;
    struct hfd_sleeper sleeper;
    struct hfd_bell_listener listener;
    /* Only its thread uses these. */
    struct hfd_store_reader *reader;
    struct hfd_hold hold;
    bool leads;        /* the windows are those of a replica that leads, since `hold` */
    bool blind;        /* the database cannot be read or written, and the log says so */
    bool failing;      /* the target refuses events, and the log says so */
    int64_t stored_us; /* mono: the last write of the cursors */
    int64_t sent_us;   /* mono: the last call of the sender */
    uint64_t repeated; /* place on the board of repeats */
    struct stream streams[HFD_STREAMS];
};

static const char *const stream_names[HFD_STREAMS] = {
    [HFD_STREAM_RECONCILE] = "reconcile",
    [HFD_STREAM_STATES] = "states",
};

/* One transaction. */
struct look {
    struct hfd_outbox *outbox;
    struct stream *stream;
    int64_t now_us;
    struct hfd_arena mem;
    struct hfd_outbox_list rows;
    int64_t present[HFD_STREAMS]; /* the newest numbers */
    struct hfd_due_page due;
    struct hfd_feed feed;
};

/* ---- the database ---- */

static hfd_rc read_store(struct hfd_outbox *o, hfd_txn_fn *fn, struct look *look,
                         struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    look->now_us = hfd_clock_wall_us(o->parts.clock);
    if (o->reader == NULL)
        rc = hfd_store_reader_open(o->parts.store, &o->reader, err);
    if (rc == HFD_OK)
        rc = hfd_store_read(o->reader, fn, look, err);
    if (rc != HFD_OK)
        hfd_store_reader_close(&o->reader); /* the database may be away */
    return rc;
}

/* Writes the cursors that have moved. */
static hfd_rc txn_store(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_outbox *o = arg;
    hfd_rc rc = hfd_keeper_check(o->parts.keeper, tx, &o->hold, err);

    for (int i = 0; rc == HFD_OK && i < HFD_STREAMS; i++)
        if (o->streams[i].on)
            rc = hfd_outbox_row_put(tx, &o->streams[i].stored, err);
    return rc;
}

/* @return whether something has changed since the last write */
static bool note_cursors(struct hfd_outbox *o)
{
    bool changed = false;

    for (int i = 0; i < HFD_STREAMS; i++) {
        struct stream *s = &o->streams[i];
        const int64_t seq = hfd_window_cursor(&s->window),
                      failing_us = hfd_window_failing_us(&s->window);

        if (!s->on || (s->stored.seq == seq && s->stored.failing_us == failing_us))
            continue;
        s->stored.seq = seq;
        s->stored.failing_us = failing_us;
        changed = true;
    }
    return changed;
}

static void drop_windows(struct hfd_outbox *o)
{
    for (int i = 0; i < HFD_STREAMS; i++)
        hfd_window_end(&o->streams[i].window);
    o->leads = false;
    o->failing = false;
    (void)hfd_trouble_end(HFD_TROUBLE_TARGET, hfd_slice_of(o->name));
    hfd_metric_set(HFD_METRIC_EVENTS_OLDEST, HFD_LABELS(o->name), 0);
}

/* The database failed. */
static void say_blind(struct hfd_outbox *o, hfd_rc rc, const struct hfd_err *err)
{
    if (rc == HFD_CONFLICT) { /* another replica leads */
        drop_windows(o);
        return;
    }
    if (rc != HFD_OK && !o->blind)
        HFD_LOG(HFD_LOG_WARN, "cannot read or write what targets of events have; will try again",
                HFD_LOG_CSTR("target", o->name), HFD_LOG_CSTR("code", hfd_rc_name(rc)),
                HFD_LOG_CSTR("reason", err->msg));
    o->blind = rc != HFD_OK;
}

/* Writes the cursors when it is time. A write that failed is repeated with the next change. */
static void store_cursors(struct hfd_outbox *o, bool now)
{
    const int64_t mono_us = hfd_clock_mono_us(&hfd_clock_system);
    struct hfd_err err;
    hfd_rc rc;

    if (!o->leads || (!now && mono_us < o->stored_us + STORE_US) || !note_cursors(o))
        return;
    o->stored_us = mono_us;
    rc = hfd_store_update_wait(o->parts.store, txn_store, o, &err);
    if (rc != HFD_OK)
        for (int i = 0; i < HFD_STREAMS; i++)
            o->streams[i].stored.seq = -1; /* unknown */
    say_blind(o, rc, &err);
}

/* ---- the beginning ---- */

static hfd_rc txn_begin(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    struct hfd_history_ends ends;
    hfd_rc rc;

    hfd_arena_fini(&look->mem);
    rc = hfd_outbox_row_list(tx, &look->mem, &look->rows, err);
    if (rc == HFD_OK)
        rc = hfd_due_last(tx, &look->present[HFD_STREAM_RECONCILE], err);
    if (rc == HFD_OK)
        rc = hfd_history_row_ends(tx, &ends, err);
    if (rc == HFD_OK)
        look->present[HFD_STREAM_STATES] = ends.last;
    return rc;
}

/* Begins a stream at its cursor; a new one at the present. @return whether it is new */
static bool begin_stream(struct look *look, int which)
{
    struct hfd_outbox *o = look->outbox;
    struct stream *s = &o->streams[which];
    bool is_new = true;

    s->stored = (struct hfd_outbox_row){
        .name = hfd_slice_of(o->name), .stream = which, .seq = look->present[which]};
    for (size_t i = 0; i < look->rows.count; i++) {
        const struct hfd_outbox_row *row = &look->rows.rows[i];

        if (row->stream == which && hfd_slice_eq(row->name, s->stored.name)) {
            s->stored.seq = row->seq;
            s->stored.failing_us = row->failing_us;
            is_new = false;
        }
    }
    hfd_window_begin(&s->window, which == HFD_STREAM_RECONCILE, s->stored.seq, s->stored.failing_us,
                     look->now_us);
    return is_new;
}

/* Reads the cursors, and writes those of a new target before its first event. */
static hfd_rc begin(struct hfd_outbox *o, struct hfd_err *err)
{
    struct look look = {.outbox = o};
    bool is_new = false;
    hfd_rc rc;

    hfd_arena_init(&look.mem, LOOK_MAX_BYTES);
    rc = read_store(o, txn_begin, &look, err);
    for (int i = 0; rc == HFD_OK && i < HFD_STREAMS; i++)
        if (o->streams[i].on)
            is_new = begin_stream(&look, i) || is_new;
    hfd_arena_fini(&look.mem);
    if (rc == HFD_OK && is_new)
        rc = hfd_store_update_wait(o->parts.store, txn_store, o, err);
    return rc;
}

/* ---- reading events ---- */

static hfd_rc txn_due(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    const struct hfd_window *w = &look->stream->window;

    hfd_arena_fini(&look->mem);
    return hfd_due_list(tx, w->read, (int64_t)hfd_window_room(w), &look->mem, &look->due, err);
}

static hfd_rc txn_feed(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    const struct hfd_window *w = &look->stream->window;
    const struct hfd_feed_query query = {
        .after = w->read, .before = INT64_MAX, .size = hfd_window_room(w)};
    const struct hfd_ctx c = {.tx = tx,
                              .driver = look->outbox->parts.driver,
                              .now_us = look->now_us,
                              .mem = &look->mem,
                              .err = err};

    hfd_arena_fini(&look->mem);
    return hfd_feed_read(&c, &query, &look->feed);
}

/* Adds an event to the window. Empties b. */
static hfd_rc add(struct stream *s, const struct hfd_event_key *key, enum hfd_kind kind,
                  struct hfd_buf *b, struct hfd_err *err)
{
    struct hfd_outgoing event = {.subject = key->subject, .kind = kind};
    char id[HFD_EVENT_ID_LEN + 1];
    hfd_rc rc = hfd_buf_finish(b, &event.body, err);

    hfd_event_id(key, id);
    event.id = hfd_slice_of(id);
    if (rc == HFD_OK)
        rc = hfd_window_add(&s->window, &event, key->seq, key->at_us, err);
    hfd_buf_reset(b);
    return rc;
}

/* Adds what is behind the window, as far as there is room. */
static hfd_rc fill(struct hfd_outbox *o, int which, struct hfd_err *err)
{
    struct look look = {.outbox = o, .stream = &o->streams[which]};
    struct hfd_buf b;
    hfd_rc rc;

    if (hfd_window_room(&look.stream->window) == 0)
        return HFD_OK;
    hfd_arena_init(&look.mem, LOOK_MAX_BYTES);
    hfd_buf_init(&b, EVENT_MAX_BYTES);
    rc = read_store(o, which == HFD_STREAM_RECONCILE ? txn_due : txn_feed, &look, err);
    for (size_t i = 0; rc == HFD_OK && i < look.due.count; i++) {
        const struct hfd_due_row *row = &look.due.rows[i];

        hfd_event_format(&b, row);
        rc = add(look.stream, &(struct hfd_event_key){row->id, row->seq, row->at_us}, row->kind, &b,
                 err);
    }
    for (size_t i = 0; rc == HFD_OK && i < look.feed.count; i++) {
        const struct hfd_history_row *row = &look.feed.items[i].row;

        hfd_event_format_state(&b, &look.feed.items[i]);
        rc = add(look.stream, &(struct hfd_event_key){row->id, row->seq, row->at_us}, 0, &b, err);
    }
    hfd_buf_fini(&b);
    hfd_arena_fini(&look.mem);
    return rc;
}

/* ---- sending ---- */

static void count_result(const struct hfd_outbox *o, int which, const struct hfd_window_result *r)
{
    const char *const *labels = HFD_LABELS(o->name, stream_names[which]);

    hfd_metric_add(HFD_METRIC_EVENTS_SENT, labels, r->sent);
    hfd_metric_add(HFD_METRIC_EVENTS_FAILED, labels, r->failed);
    hfd_metric_add(HFD_METRIC_EVENTS_DROPPED, labels, r->dropped);
    if (r->dropped > 0)
        HFD_LOG(HFD_LOG_WARN, "events are dropped: their target has refused them for 72 hours",
                HFD_LOG_CSTR("target", o->name), HFD_LOG_CSTR("stream", stream_names[which]),
                HFD_LOG_INT("events", r->dropped));
}

/* Tells of a target that refuses events, and of its end. @param why  NULL = nothing failed now */
static void tell(struct hfd_outbox *o, const char *why)
{
    const hfd_slice name = hfd_slice_of(o->name);
    const int64_t now_us = hfd_clock_wall_us(o->parts.clock);
    int64_t since_us = 0;

    for (int i = 0; i < HFD_STREAMS; i++) {
        const int64_t us = hfd_window_failing_us(&o->streams[i].window);

        if (us != 0 && (since_us == 0 || us < since_us))
            since_us = us;
    }
    if (why != NULL && !o->failing)
        HFD_LOG(HFD_LOG_WARN, "a target refuses events; will try again",
                HFD_LOG_CSTR("target", o->name), HFD_LOG_CSTR("reason", why));
    else if (why == NULL && since_us == 0 && o->failing)
        HFD_LOG(HFD_LOG_INFO, "a target takes events again", HFD_LOG_CSTR("target", o->name));
    o->failing = why != NULL || since_us != 0;
    if (!o->failing) {
        (void)hfd_trouble_end(HFD_TROUBLE_TARGET, name);
    } else if (why != NULL && since_us != 0 && now_us - since_us > TELL_US) {
        char words[248];

        (void)snprintf(words, sizeof(words), "has refused events for over 5 minutes: %s", why);
        (void)hfd_trouble_note(HFD_TROUBLE_TARGET, name, now_us, hfd_slice_of(words));
    }
}

static hfd_rc send_now(struct hfd_outbox *o, struct hfd_outgoing *events, size_t count,
                       struct hfd_err *err)
{
    o->sent_us = hfd_clock_mono_us(&hfd_clock_system);
    return o->sender.send(o->sender.ctx, events, count, err);
}

/* Sends what is due of a stream. @return whether there was something */
static bool send_due(struct hfd_outbox *o, int which)
{
    struct hfd_window *w = &o->streams[which].window;
    struct hfd_outgoing events[HFD_SEND_EVENTS_MAX];
    size_t chosen[HFD_SEND_EVENTS_MAX];
    const int64_t now_us = hfd_clock_wall_us(o->parts.clock);
    const size_t count = hfd_window_next(w, now_us, chosen, HFD_SEND_EVENTS_MAX);
    struct hfd_window_result result;
    struct hfd_err err = {0};
    hfd_rc rc;

    if (count == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        events[i] = w->items[chosen[i]].event;
        events[i].sent = false;
    }
    rc = send_now(o, events, count, &err);
    for (size_t i = 0; i < count; i++)
        w->items[chosen[i]].event.sent = events[i].sent;
    result = hfd_window_settle(w, chosen, count, hfd_clock_wall_us(o->parts.clock), o->parts.rng);
    count_result(o, which, &result);
    tell(o, rc == HFD_OK ? NULL : err.msg);
    return true;
}

/*
 * Sends events that are repeated, once the target has all others. None of them is kept: one that it
 * refuses comes again.
 */
static void send_repeats(struct hfd_outbox *o)
{
    struct hfd_outgoing events[HFD_SEND_EVENTS_MAX];
    char ids[HFD_SEND_EVENTS_MAX][HFD_EVENT_ID_LEN + 1];
    struct hfd_window_result result = {0};
    struct hfd_due_page page;
    struct hfd_arena mem;
    struct hfd_err err;
    hfd_rc rc;

    hfd_repeats_want(o->parts.repeats);
    hfd_arena_init(&mem, LOOK_MAX_BYTES);
    rc = hfd_repeats_read(o->parts.repeats, &o->repeated, &mem, &page, &err);
    for (size_t at = 0; rc == HFD_OK && at < page.count; at += HFD_SEND_EVENTS_MAX) {
        size_t count = 0;

        for (; rc == HFD_OK && count < HFD_SEND_EVENTS_MAX && at + count < page.count; count++) {
            const struct hfd_due_row *row = &page.rows[at + count];
            struct hfd_buf b;

            events[count] = (struct hfd_outgoing){
                .id = {ids[count], HFD_EVENT_ID_LEN}, .subject = row->id, .kind = row->kind};
            hfd_event_id(&(struct hfd_event_key){row->id, row->seq, row->at_us}, ids[count]);
            hfd_buf_init(&b, EVENT_MAX_BYTES);
            hfd_event_format(&b, row);
            rc = hfd_buf_to_arena(&b, &mem, &events[count].body, &err);
        }
        if (rc == HFD_OK)
            rc = send_now(o, events, count, &err);
        for (size_t i = 0; i < count; i++)
            *(events[i].sent ? &result.sent : &result.failed) += 1;
    }
    hfd_arena_fini(&mem);
    count_result(o, HFD_STREAM_RECONCILE, &result);
}

static void show_oldest(const struct hfd_outbox *o)
{
    const int64_t now_us = hfd_clock_wall_us(o->parts.clock);
    int64_t oldest_us = now_us;

    for (int i = 0; i < HFD_STREAMS; i++) {
        const int64_t us = hfd_window_oldest_us(&o->streams[i].window);

        oldest_us = us != 0 && us < oldest_us ? us : oldest_us;
    }
    hfd_metric_set(HFD_METRIC_EVENTS_OLDEST, HFD_LABELS(o->name),
                   (now_us - oldest_us) / HFD_US_PER_S);
}

/* A sender may have a connection that a silent peer closes. */
static void keep_alive(struct hfd_outbox *o)
{
    const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);
    struct hfd_err err;

    if (!o->leads || now_us - o->sent_us < IDLE_US)
        return;
    (void)!send_now(o, NULL, 0, &err); /* the next event finds out */
}

/* ---- the thread ---- */

/* Leads, or ceases to. @return whether it leads, and has its windows */
static bool take_lead(struct hfd_outbox *o)
{
    struct hfd_err err;
    hfd_rc rc;

    if (o->leads && hfd_keeper_holds(o->parts.keeper, &o->hold))
        return true;
    if (o->leads)
        drop_windows(o);
    hfd_keeper_hold(o->parts.keeper, &o->hold);
    if (!o->hold.leads)
        return false;
    rc = begin(o, &err);
    o->leads = rc == HFD_OK;
    say_blind(o, rc, &err);
    return o->leads;
}

/* One round. @return how long to wait for the next */
static int64_t round_once(struct hfd_outbox *o)
{
    int64_t wait_us = LOOK_US;
    bool busy = false;

    for (int i = 0; i < HFD_STREAMS && take_lead(o) && !hfd_sleeper_is_stopped(&o->sleeper); i++) {
        struct hfd_err err;
        int64_t left_us;

        if (!o->streams[i].on)
            continue;
        say_blind(o, fill(o, i, &err), &err);
        busy = send_due(o, i) || busy;
        left_us = hfd_window_due_us(&o->streams[i].window) - hfd_clock_wall_us(o->parts.clock);
        wait_us = left_us < wait_us ? left_us : wait_us;
    }
    store_cursors(o, false);
    if (o->leads && o->streams[HFD_STREAM_RECONCILE].on && !hfd_sleeper_is_stopped(&o->sleeper) &&
        o->streams[HFD_STREAM_RECONCILE].window.count == 0)
        send_repeats(o);
    else
        o->repeated = UINT64_MAX; /* what is repeated meanwhile comes again */
    if (o->leads)
        show_oldest(o);
    keep_alive(o);
    return busy || wait_us < 0 ? 0 : wait_us;
}

static void *run(void *arg)
{
    struct hfd_outbox *o = arg;

    HFD_CHECK_OBJ(o, OUTBOX_MAGIC);
    while (!hfd_sleeper_wait(&o->sleeper, round_once(o), NULL))
        continue;
    store_cursors(o, true);
    drop_windows(o);
    hfd_store_reader_close(&o->reader);
    return NULL;
}

static void outbox_free(struct hfd_outbox *o)
{
    o->sender.close(o->sender.ctx);
    o->magic = 0;
    free(o);
}

hfd_rc hfd_outbox_start(const struct hfd_outbox_parts *parts,
                        const struct hfd_outbox_target *target, struct hfd_sender sender,
                        struct hfd_outbox **out, struct hfd_err *err)
{
    struct hfd_outbox *o = calloc(1, sizeof(*o));
    hfd_rc rc;

    *out = NULL;
    if (o == NULL) {
        sender.close(sender.ctx);
        return hfd_fail_nomem(err, "start a target of events");
    }
    o->magic = OUTBOX_MAGIC;
    o->repeated = UINT64_MAX;
    o->parts = *parts;
    o->sender = sender;
    HFD_ASSERT(target->name.len <= NAME_MAX_BYTES);
    memcpy(o->name, target->name.p, target->name.len);
    for (int i = 0; i < HFD_STREAMS; i++)
        o->streams[i].on = target->streams[i];
    o->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    o->listener = (struct hfd_bell_listener){.hear = hfd_sleeper_ring, .ctx = &o->sleeper};
    (void)take_lead(o); /* the present of a new target is before the first request */
    hfd_store_reader_close(&o->reader);
    rc = hfd_sleeper_start(
        &o->sleeper, &(struct hfd_thread){"hfd-outbox", "target of events: thread", run, o}, err);
    if (rc != HFD_OK) {
        outbox_free(o);
        return rc;
    }
    hfd_bell_listen(o->parts.bell, &o->listener);
    *out = o;
    return HFD_OK;
}

void hfd_outbox_stop(struct hfd_outbox **outbox)
{
    struct hfd_outbox *o = *outbox;

    *outbox = NULL;
    if (o == NULL)
        return;
    HFD_CHECK_OBJ(o, OUTBOX_MAGIC);
    hfd_bell_unlisten(o->parts.bell, &o->listener);
    hfd_sleeper_stop(&o->sleeper);
    outbox_free(o);
}

/* ---- targets that are gone ---- */

struct forget {
    const struct hfd_outbox_parts *parts;
    const struct hfd_outbox_target *targets;
    size_t count;
    struct hfd_hold hold;
    struct hfd_arena mem;
};

static bool is_known(const struct forget *f, const struct hfd_outbox_row *row)
{
    for (size_t i = 0; i < f->count; i++)
        if (hfd_slice_eq(f->targets[i].name, row->name))
            return row->stream >= 0 && row->stream < HFD_STREAMS &&
                   f->targets[i].streams[row->stream];
    return false;
}

static hfd_rc txn_forget(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct forget *f = arg;
    struct hfd_outbox_list list;
    hfd_rc rc;

    hfd_arena_fini(&f->mem);
    rc = hfd_outbox_row_list(tx, &f->mem, &list, err);
    if (rc == HFD_OK)
        rc = hfd_keeper_check(f->parts->keeper, tx, &f->hold, err);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        if (!is_known(f, &list.rows[i]))
            rc = hfd_outbox_row_delete(tx, &list.rows[i], err);
    return rc;
}

hfd_rc hfd_outbox_forget_others(const struct hfd_outbox_parts *parts,
                                const struct hfd_outbox_target *targets, size_t count,
                                struct hfd_err *err)
{
    struct forget f = {.parts = parts, .targets = targets, .count = count};
    hfd_rc rc;

    hfd_keeper_hold(parts->keeper, &f.hold);
    if (!f.hold.leads)
        return HFD_OK;
    hfd_arena_init(&f.mem, LOOK_MAX_BYTES);
    rc = hfd_store_update_wait(parts->store, txn_forget, &f, err);
    hfd_arena_fini(&f.mem);
    /* Another replica leads, or the store has too much to do: the next start forgets them. */
    return rc == HFD_CONFLICT || rc == HFD_BUSY ? HFD_OK : rc;
}
