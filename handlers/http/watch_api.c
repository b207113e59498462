/* See watch_api.h. */
#include "handlers/http/watch_api.h"

#include "driver/base/bell.h"
#include "driver/base/check.h"
#include "driver/base/container.h"
#include "driver/events/event.h"
#include "driver/events/repeats.h"
#include "driver/fleet/fleet.h"
#include "handlers/http/access.h"
#include "handlers/http/hold.h"
#include "handlers/http/query.h"
#include "handlers/http/reply.h"
#include "store/rows_due.h"

#include <stdlib.h>

#define SIZE_DEFAULT 100
#define SIZE_MAX_ITEMS 500
#define QUIET_US (15 * HFD_US_PER_S) /* of a stream, until it has a comment */
#define RETRY_MS 2000                /* a client of a stream connects again after this */
#define PAGE_ROWS 500                /* of one read */
#define PAGES_MAX 20                 /* of one job, when its filter leaves nothing */
#define BODY_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define READ_MAX_BYTES ((size_t)64 * 1024 * 1024)
/* On a shared store an event may wait for another server's transaction, which rings no bell. */
#define AGAIN_US (HFD_US_PER_S / 20)
#define AGAIN_FOR_US HFD_US_PER_S

/* One request. In the memory of its exchange. */
struct watcher {
    struct hfd_waiter waiter;
    struct hfd_watch_room *room;
    struct hfd_exchange *x;
    struct hfd_event_filter filter;
    size_t size;
    bool stream;
    bool from_now;   /* without a cursor: it begins with the newest event */
    bool begun;      /* stream: its head is sent */
    bool behind;     /* it reads for itself at the next sweep */
    bool tried;      /* its last read was for that, and found nothing */
    bool drained;    /* stream: its last piece is on its way */
    int64_t after;   /* the cursor */
    int64_t said;    /* stream: the cursor that its client knows; -1 = none */
    int64_t said_us; /* mono: stream: when it had its last piece */
    unsigned rings;  /* of the bell, before its last read */
    /* A read sets these. */
    size_t count;
    int64_t next;
    bool forgotten;
};

/* The result of a read of the loop. */
struct news {
    struct hfd_due_page page;
    const hfd_slice *documents; /* of each row */
};

struct hfd_watch_room {
    struct hfd_loop *loop;
    struct hfd_bell *bell;            /* NULL = nothing rings: watchers look each second */
    size_t watching;                  /* watchers with a place */
    int64_t again_us, again_until_us; /* mono: the next read of a shared store without a bell */
    bool shared;
    /* The read. */
    struct hfd_job job;
    struct hfd_sink sink;
    h2o_multithread_receiver_t receiver;
    h2o_multithread_message_t message;
    bool out;          /* the job is */
    unsigned rings;    /* of the bell, before the last read */
    int64_t from, to;  /* cursors: what it reads, and what was read so far */
    uint64_t repeated; /* place on the board of repeats */
    struct news news;
    struct hfd_arena mem; /* of news; the job's while it is out */
};

static unsigned rings_of(const struct hfd_watch_room *room)
{
    return room->bell != NULL ? atomic_load(&room->bell->rings) : 0;
}

/* ---- documents ---- */

static void add_item(const struct watcher *w, struct hfd_buf *b, int64_t seq, hfd_slice document)
{
    if (w->stream) {
        hfd_buf_addf(b, "id: %lld\ndata: ", (long long)seq);
        hfd_buf_add(b, document);
        hfd_buf_lit(b, "\n\n");
        return;
    }
    if (b->len > sizeof("{\"items\":[") - 1)
        hfd_buf_addc(b, ',');
    hfd_buf_add(b, document);
}

static void begin_body(const struct watcher *w, struct hfd_buf *b)
{
    if (!w->stream)
        hfd_buf_lit(b, "{\"items\":[");
    else if (!w->begun)
        hfd_buf_addf(b, "retry: %d\n\n", RETRY_MS);
}

static struct hfd_buf *new_body(struct watcher *w)
{
    struct hfd_buf *b = hfd_exchange_body(w->x, BODY_MAX_BYTES);

    begin_body(w, b);
    return b;
}

/* ---- a read of one watcher ---- */

/* Adds the rows of a page that pass. @return false: the answer is full */
static bool add_rows(struct watcher *w, const struct hfd_due_page *page, struct hfd_buf *document)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct hfd_due_row *row = &page->rows[i];

        w->next = row->seq;
        if (!hfd_event_passes(&w->filter, row))
            continue;
        hfd_buf_reset(document);
        hfd_event_format(document, row);
        add_item(w, &w->x->body, row->seq, hfd_buf_slice(document));
        if (++w->count == w->size)
            return false;
    }
    return true;
}

static hfd_rc read_pages(struct hfd_txn *tx, struct watcher *w, struct hfd_err *err)
{
    struct hfd_buf document;
    struct hfd_due_page page;
    struct hfd_arena mem;
    bool more = true;
    hfd_rc rc = HFD_OK;

    hfd_buf_init(&document, BODY_MAX_BYTES);
    hfd_arena_init(&mem, READ_MAX_BYTES);
    for (int i = 0; rc == HFD_OK && more && i < PAGES_MAX; i++) {
        hfd_arena_fini(&mem);
        rc = hfd_due_list(tx, w->next, PAGE_ROWS, &mem, &page, err);
        if (rc != HFD_OK)
            break;
        w->forgotten = page.floor > w->next;
        more = !w->forgotten && add_rows(w, &page, &document) && page.count == PAGE_ROWS;
    }
    if (rc == HFD_OK && (document.rc != HFD_OK || w->x->body.rc != HFD_OK))
        rc = hfd_fail_nomem(err, "format events");
    hfd_arena_fini(&mem);
    hfd_buf_fini(&document);
    return rc;
}

/* Thread: reader. */
static hfd_rc txn_read(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct watcher *w = arg;

    hfd_buf_reset(&w->x->body);
    begin_body(w, &w->x->body);
    w->count = 0;
    w->next = w->after;
    w->forgotten = false;
    return w->from_now ? hfd_due_last(tx, &w->next, err) : read_pages(tx, w, err);
}

static void on_read(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err);

static void read_own(struct watcher *w)
{
    w->behind = false;
    w->rings = rings_of(w->room);
    (void)new_body(w);
    hfd_exchange_view_short(w->x, txn_read, w, on_read);
}

/* ---- answers ---- */

static struct watcher *watcher_of(struct hfd_waiter *w)
{
    return HFD_CONTAINER_OF(w, struct watcher, waiter);
}

/* Ends a long poll with the items of its body. */
static void answer(struct hfd_waiter *waiter)
{
    struct watcher *w = watcher_of(waiter);
    struct hfd_buf *b = &w->x->body;
    struct hfd_err err;

    hfd_buf_addf(b, "],\"next\":\"%lld\"}", (long long)w->after);
    if (b->rc != HFD_OK)
        hfd_exchange_fail(w->x, hfd_fail_nomem(&err, "answer a request"), &err);
    else
        hfd_exchange_reply(w->x, &(struct hfd_reply){.status = 200,
                                                     .content_type = "application/json",
                                                     .body = hfd_buf_slice(b)});
}

/* Sends the body of a stream. */
static void send_piece(struct hfd_waiter *waiter)
{
    struct watcher *w = watcher_of(waiter);
    struct hfd_buf *b = &w->x->body;

    if (w->after != w->said && w->count == 0)
        hfd_buf_addf(b, "id: %lld\n\n", (long long)w->after);
    w->said = w->after;
    w->said_us = hfd_loop_mono_us(w->room->loop);
    if (b->rc != HFD_OK) /* no memory: the client comes again */
        w->drained = true;
    hfd_exchange_flow_send(w->x, hfd_buf_slice(b), w->drained);
}

static void end_stream(struct watcher *w)
{
    w->drained = true;
    w->count = 0;
    hfd_buf_lit(new_body(w), "event: end\ndata: {}\n\n");
    send_piece(&w->waiter);
}

static void finish(struct hfd_waiter *waiter)
{
    struct watcher *w = watcher_of(waiter);

    if (w->stream) {
        end_stream(w);
    } else {
        (void)new_body(w);
        answer(&w->waiter);
    }
}

static void on_flow(void *arg);

static void begin_stream(struct watcher *w)
{
    struct hfd_err err;

    if (!hfd_access_keep(w->x)) {
        hfd_exchange_fail(w->x, hfd_fail_nomem(&err, "answer a request"), &err);
        return;
    }
    w->begun = true;
    hfd_exchange_flow(
        w->x,
        &(struct hfd_reply){.status = 200, .content_type = "text/event-stream", .uncached = true},
        on_flow, w);
    send_piece(&w->waiter);
}

/* ---- waiting ---- */

static void look(struct hfd_watch_room *room);

/* Lets a watcher wait for events behind its cursor, or for its time. */
static void wait_more(struct watcher *w)
{
    struct hfd_watch_room *room = w->room;

    if (room->loop->draining || hfd_loop_mono_us(room->loop) >= w->waiter.until_us) {
        finish(&w->waiter);
        return;
    }
    if (room->watching == 1 && !room->out && w->after > room->to)
        room->to = w->after; /* it is alone: what is before its cursor is of no use */
    w->behind = w->after < room->to;
    if (w->behind && !w->tried) {
        w->tried = true;
        read_own(w);
        return;
    }
    hfd_waiter_hold(&w->waiter);
    if (w->rings != rings_of(room))
        room->loop->again = true;
}

/* The answer to a cursor of which nothing is known any more. */
static void fail_forgotten(struct watcher *w)
{
    struct hfd_err err;

    (void)hfd_fail_field(&err, HFD_NOT_FOUND, "after",
                         "after: events behind %lld are not kept any more. List clusters and "
                         "nodepools, and go on from the header Events-Cursor of that answer",
                         (long long)w->after);
    hfd_exchange_fail_as(w->x, 410, HFD_NOT_FOUND, &err);
}

static void on_read(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct watcher *w = arg;

    if (w->begun && (rc != HFD_OK || w->forgotten || w->drained)) {
        end_stream(w); /* the client connects again, and that answer says why */
        return;
    }
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    if (w->forgotten) {
        fail_forgotten(w);
        return;
    }
    w->tried = w->tried && w->after == w->next;
    w->from_now = false;
    w->after = w->next;
    if (w->stream && !w->begun) {
        begin_stream(w);
    } else if (w->count > 0 && w->stream) {
        send_piece(&w->waiter);
    } else if (w->count > 0) {
        answer(&w->waiter);
    } else {
        wait_more(w);
    }
}

/* A piece of a stream is written. One that was full may have left more. */
static void on_flow(void *arg)
{
    struct watcher *w = arg;

    hfd_buf_fini(&w->x->body);
    if (w->drained)
        return;
    if (w->count == w->size)
        read_own(w);
    else
        wait_more(w);
}

/* ---- the read of a loop ---- */

/* Makes the documents of a page. */
static hfd_rc format_page(struct news *news, struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_due_page *page = &news->page;
    hfd_slice *documents = hfd_arena_array(mem, page->count + 1, sizeof(*documents));
    hfd_rc rc = HFD_OK;

    if (documents == NULL)
        return hfd_fail_nomem(err, "read events");
    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        struct hfd_buf b;

        hfd_buf_init(&b, BODY_MAX_BYTES);
        hfd_event_format(&b, &page->rows[i]);
        rc = hfd_buf_to_arena(&b, mem, &documents[i], err);
    }
    news->documents = documents;
    return rc;
}

/* Thread: reader. */
static hfd_rc txn_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_watch_room *room = arg;
    hfd_rc rc;

    hfd_arena_fini(&room->mem);
    rc = hfd_due_list(tx, room->from, PAGE_ROWS, &room->mem, &room->news.page, err);
    return rc == HFD_OK ? format_page(&room->news, &room->mem, err) : rc;
}

/* Gives a watcher its share of the news. Its cursor stays with those that are repeated. */
static void tell(struct watcher *w, const struct news *news, bool repeated)
{
    const struct hfd_due_page *page = &news->page;
    int64_t after = repeated ? w->after : page->last;
    struct hfd_buf *b = NULL;

    w->count = 0;
    for (size_t i = 0; i < page->count && w->count < w->size; i++) {
        const struct hfd_due_row *row = &page->rows[i];

        if ((!repeated && row->seq <= w->after) || !hfd_event_passes(&w->filter, row))
            continue;
        if (b == NULL)
            b = new_body(w);
        add_item(w, b, repeated ? w->after : row->seq, news->documents[i]);
        if (++w->count == w->size && !repeated)
            after = row->seq;
    }
    if (after > w->after)
        w->after = after;
    if (w->count > 0)
        hfd_waiter_go_on(&w->waiter, w->stream ? send_piece : answer);
}

static bool is_watcher(struct hfd_waiter *waiter);

static void tell_all(struct hfd_watch_room *room, const struct news *news, bool repeated)
{
    h2o_linklist_t *const all = &room->loop->waiters.list, *at, *next;

    for (at = all->next; at != all; at = next) {
        struct hfd_waiter *waiter = HFD_CONTAINER_OF(at, struct hfd_waiter, link);
        struct watcher *w = watcher_of(waiter);

        next = at->next;
        if (is_watcher(waiter) && !w->behind && (repeated || w->after >= room->from))
            tell(w, news, repeated);
    }
}

/* Gives watchers what is repeated since the last sweep. */
static void repeat_all(struct hfd_watch_room *room)
{
    struct hfd_repeats *repeats = room->loop->server->app->repeats;
    struct news news = {.documents = NULL};
    struct hfd_arena mem;
    struct hfd_err err;

    hfd_repeats_want(repeats);
    hfd_arena_init(&mem, READ_MAX_BYTES);
    if (hfd_repeats_read(repeats, &room->repeated, &mem, &news.page, &err) == HFD_OK &&
        news.page.count > 0 && format_page(&news, &mem, &err) == HFD_OK)
        tell_all(room, &news, true);
    hfd_arena_fini(&mem);
}

static void on_looked(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    struct hfd_watch_room *room = HFD_CONTAINER_OF(receiver, struct hfd_watch_room, receiver);

    if (h2o_linklist_is_empty(messages))
        return;
    h2o_linklist_unlink(messages->next);
    room->out = false;
    if (room->job.rc != HFD_OK) { /* the next sweep tries again */
        HFD_LOG(HFD_LOG_WARN, "cannot read events; will try again",
                HFD_LOG_CSTR("reason", room->job.err.msg));
        return;
    }
    tell_all(room, &room->news, false);
    if (room->news.page.last > room->to)
        room->to = room->news.page.last;
    if (room->news.page.count == PAGE_ROWS)
        look(room);
}

static void post_looked(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_watch_room *room = HFD_CONTAINER_OF(sink, struct hfd_watch_room, sink);

    (void)list;
    room->message = (h2o_multithread_message_t){.link = {.next = NULL}};
    hfd_loop_send(room->loop, &room->receiver, &room->message);
}

static void no_end(struct hfd_job *job)
{
    (void)job; /* on_looked does it */
}

/* Reads what is new, for all that wait. */
static void look(struct hfd_watch_room *room)
{
    struct hfd_err err;

    if (room->out)
        return;
    room->rings = rings_of(room);
    room->from = room->to;
    room->job = (struct hfd_job){
        .fn = txn_look, .arg = room, .sink = &room->sink, .done = no_end, .is_short = true};
    room->out = hfd_store_view(room->loop->server->app->store, &room->job, &err) == HFD_OK;
}

/* ---- the room ---- */

hfd_rc hfd_watch_room_open(struct hfd_loop *loop, struct hfd_watch_room **out, struct hfd_err *err)
{
    struct hfd_watch_room *room = calloc(1, sizeof(*room));

    *out = room;
    if (room == NULL)
        return hfd_fail_nomem(err, "set up the server");
    room->loop = loop;
    room->bell = loop->server->app->bell;
    room->shared = loop->server->app->keeper != NULL;
    room->repeated = UINT64_MAX;
    room->sink.post = post_looked;
    hfd_arena_init(&room->mem, READ_MAX_BYTES);
    h2o_multithread_register_receiver(loop->ctx.queue, &room->receiver, on_looked);
    return HFD_OK;
}

void hfd_watch_room_close(struct hfd_watch_room *room)
{
    if (room == NULL)
        return;
    HFD_ASSERT(!room->out && room->watching == 0);
    h2o_multithread_unregister_receiver(room->loop->ctx.queue, &room->receiver);
    hfd_arena_fini(&room->mem);
    free(room);
}

bool hfd_watch_room_is_busy(const struct hfd_watch_room *room)
{
    return room->out;
}

static void end_watch(struct hfd_waiter *waiter)
{
    watcher_of(waiter)->room->watching--;
}

static const struct hfd_waiter_kind watch_kind = {finish, end_watch};

static bool is_watcher(struct hfd_waiter *waiter)
{
    return waiter->kind == &watch_kind;
}

void hfd_watch_room_run(struct hfd_watch_room *room, int64_t now_us)
{
    if (room->watching == 0)
        return;
    if (room->rings != rings_of(room)) {
        room->again_us = now_us + AGAIN_US;
        room->again_until_us = now_us + AGAIN_FOR_US;
        look(room);
    } else if (room->shared && now_us >= room->again_us && now_us < room->again_until_us) {
        room->again_us = now_us + AGAIN_US;
        look(room);
    }
}

static bool is_behind(struct hfd_waiter *waiter, int64_t now_us)
{
    (void)now_us;
    return is_watcher(waiter) && watcher_of(waiter)->behind;
}

static bool is_quiet(struct hfd_waiter *waiter, int64_t now_us)
{
    const struct watcher *w = watcher_of(waiter);

    return is_watcher(waiter) && w->stream && now_us - w->said_us >= QUIET_US;
}

static void catch_up(struct hfd_waiter *waiter)
{
    read_own(watcher_of(waiter));
}

static void comment(struct hfd_waiter *waiter)
{
    struct watcher *w = watcher_of(waiter);

    w->count = 0;
    hfd_buf_lit(new_body(w), ":\n\n");
    send_piece(waiter);
}

void hfd_watch_room_sweep(struct hfd_watch_room *room, int64_t now_us)
{
    if (room->watching == 0)
        return;
    hfd_waiters_go_on(room->loop, now_us, is_behind, catch_up);
    repeat_all(room);
    hfd_waiters_go_on(room->loop, now_us, is_quiet, comment);
    if (room->shared || room->bell == NULL) /* a signal may be lost */
        look(room);
}

int64_t hfd_watch_room_wait_us(struct hfd_watch_room *room, int64_t now_us, int64_t max_us)
{
    const int64_t left_us = room->again_us + 999 - now_us; /* to whole milliseconds */

    if (room->watching == 0 || !room->shared || now_us >= room->again_until_us)
        return max_us;
    return left_us < 0 ? 0 : left_us < max_us ? left_us : max_us;
}

/* ---- the request ---- */

static hfd_rc take_wait(struct watcher *w, hfd_slice value, struct hfd_err *err)
{
    int64_t wait_us = 0;
    const hfd_rc rc = hfd_query_wait(value, &wait_us, err);

    w->waiter.until_us = hfd_loop_mono_us(w->room->loop) + wait_us;
    return rc;
}

static hfd_rc take_after(struct watcher *w, const char *field, hfd_slice value, struct hfd_err *err)
{
    w->from_now = false;
    if (hfd_parse_i64(value, 0, INT64_MAX, &w->after, NULL) == HFD_OK)
        return HFD_OK;
    return hfd_fail_field(
        err, HFD_INVALID, field,
        "%s must be `next` of an earlier answer, or the header Events-Cursor of a "
        "list; leave it out to begin now",
        field);
}

static hfd_rc take_kind(struct watcher *w, hfd_slice value, struct hfd_err *err)
{
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++)
        if (hfd_slice_is(value, hfd_kind_name((enum hfd_kind)kind))) {
            w->filter.kind = (enum hfd_kind)kind;
            return HFD_OK;
        }
    return hfd_fail_field(err, HFD_INVALID, "kind", "kind must be Cluster or NodePool");
}

static hfd_rc take_label(struct watcher *w, hfd_slice value, struct hfd_err *err)
{
    const char *eq = value.len > 0 ? memchr(value.p, '=', value.len) : NULL;
    const size_t len = eq != NULL ? (size_t)(eq - value.p) : 0;
    struct hfd_event_filter *f = &w->filter;

    if (len == 0)
        return hfd_fail_field(err, HFD_INVALID, "label",
                              "label must be KEY=VALUE, as label=team=red");
    if (f->label_count == HFD_EVENT_LABELS_MAX)
        return hfd_fail_field(err, HFD_INVALID, "label", "label can be given %d times at most",
                              HFD_EVENT_LABELS_MAX);
    f->labels[f->label_count].key = (hfd_slice){value.p, len};
    f->labels[f->label_count++].value = (hfd_slice){eq + 1, value.len - len - 1};
    return HFD_OK;
}

static hfd_rc take_size(struct watcher *w, hfd_slice value, struct hfd_err *err)
{
    int64_t size;

    if (hfd_parse_i64(value, 1, SIZE_MAX_ITEMS, &size, NULL) != HFD_OK)
        return hfd_fail_field(err, HFD_INVALID, "size", "size must be an integer between 1 and %d",
                              SIZE_MAX_ITEMS);
    w->size = (size_t)size;
    return HFD_OK;
}

static hfd_rc take(struct watcher *w, const struct hfd_query_param *p, struct hfd_err *err)
{
    char field[64];

    if (hfd_slice_is(p->name, "after"))
        return take_after(w, "after", p->value, err);
    if (hfd_slice_is(p->name, "wait"))
        return take_wait(w, p->value, err);
    if (hfd_slice_is(p->name, "kind"))
        return take_kind(w, p->value, err);
    if (hfd_slice_is(p->name, "label"))
        return take_label(w, p->value, err);
    if (hfd_slice_is(p->name, "size"))
        return take_size(w, p->value, err);
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(p->name));
    return hfd_fail_field(err, HFD_INVALID, field,
                          "%s is no parameter here; it takes after, wait, kind, label and size",
                          field);
}

static bool wants_stream(hfd_slice accept)
{
    const hfd_slice type = HFD_SLICE("text/event-stream");

    for (size_t i = 0; i + type.len <= accept.len; i++)
        if (hfd_slice_ieq((hfd_slice){accept.p + i, type.len}, type))
            return true;
    return false;
}

static hfd_rc read_request(struct watcher *w, struct hfd_err *err)
{
    hfd_slice rest = hfd_exchange_request(w->x)->query, accept, last;
    struct hfd_query_param p;
    hfd_rc rc;

    do {
        rc = hfd_query_next(&rest, hfd_exchange_mem(w->x), &p, err);
        if (rc == HFD_OK)
            rc = take(w, &p, err);
    } while (rc == HFD_OK);
    if (rc != HFD_NOT_FOUND)
        return rc;
    rc = hfd_exchange_header(w->x, "accept", &accept, err);
    w->stream = rc == HFD_OK && wants_stream(accept);
    if (hfd_exchange_request(w->x)->method == HFD_METHOD_HEAD) {
        w->stream = false;
        w->waiter.until_us = 0;
    }
    /* A stream that connects again asks with its first URL, and says how far it came. */
    if (rc == HFD_OK && w->stream)
        rc = hfd_exchange_header(w->x, "last-event-id", &last, err);
    return rc == HFD_OK && w->stream && last.len > 0 ? take_after(w, "Last-Event-ID", last, err)
                                                     : rc;
}

void hfd_watch_api(struct hfd_exchange *x)
{
    struct watcher *w = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*w));
    struct hfd_err err;
    hfd_rc rc;

    if (w == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "answer a request"), &err);
        return;
    }
    *w = (struct watcher){.waiter = {.kind = &watch_kind, .x = x},
                          .room = x->loop->watch,
                          .x = x,
                          .size = SIZE_DEFAULT,
                          .from_now = true,
                          .said = -1};
    rc = read_request(w, &err);
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    if (w->stream)
        w->waiter.until_us = INT64_MAX;
    if (w->waiter.until_us > 0) {
        if (!hfd_waiter_begin(&w->waiter)) {
            hfd_exchange_fail(x, hfd_fail(&err, HFD_BUSY, "events.watchers_max callers watch"),
                              &err);
            return;
        }
        w->room->watching++;
    }
    read_own(w);
}
