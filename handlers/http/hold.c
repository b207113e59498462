/* See hold.h. */
#include "handlers/http/hold.h"

#include "driver/base/container.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/driver.h"
#include "handlers/http/access.h"

#define CHECK_US (HFD_US_PER_S / 2) /* between two checks of the callers */

/* ---- places ---- */

static atomic_uint *places_of(const struct hfd_exchange *x)
{
    const hfd_slice name = hfd_exchange_caller(x);
    const uint64_t hash = hfd_slice_hash(HFD_HASH_START, name);

    return name.len > 0 ? &x->loop->server->watchers_by[hash % HFD_WATCHERS_BY] : NULL;
}

static bool take_place(struct hfd_exchange *x)
{
    struct hfd_server *server = x->loop->server;
    const unsigned max = (unsigned)server->app->settings->events_watchers_max;
    const unsigned own_max = max > 4 ? max / 4 : 1;
    atomic_uint *own = places_of(x);

    if (atomic_fetch_add(&server->watchers, 1) >= max) {
        atomic_fetch_sub(&server->watchers, 1);
        return false;
    }
    if (own != NULL && atomic_fetch_add(own, 1) >= own_max) {
        atomic_fetch_sub(own, 1);
        atomic_fetch_sub(&server->watchers, 1);
        return false;
    }
    atomic_fetch_add(&x->loop->watchers, 1);
    hfd_metric_add(HFD_METRIC_WATCHERS, NULL, 1);
    return true;
}

/* The exchange ends. */
static void on_end(void *arg)
{
    struct hfd_waiter *w = arg;
    atomic_uint *own = places_of(w->x);

    if (h2o_linklist_is_linked(&w->link))
        h2o_linklist_unlink(&w->link);
    w->kind->end(w);
    atomic_fetch_sub(&w->x->loop->server->watchers, 1);
    if (own != NULL)
        atomic_fetch_sub(own, 1);
    atomic_fetch_sub(&w->x->loop->watchers, 1);
    hfd_metric_add(HFD_METRIC_WATCHERS, NULL, -1);
}

/* ---- one request ---- */

bool hfd_waiter_begin(struct hfd_waiter *w)
{
    if (w->x->loop->draining || !take_place(w->x))
        return false;
    hfd_exchange_at_end(w->x, on_end, w);
    return true;
}

void hfd_waiter_hold(struct hfd_waiter *w)
{
    struct hfd_waiters *all = &w->x->loop->waiters;

    hfd_exchange_hold(w->x);
    h2o_linklist_insert(&all->list, &w->link);
    if (w->until_us < all->due_us)
        all->due_us = w->until_us;
}

void hfd_waiter_go_on(struct hfd_waiter *w, hfd_waiter_fn *fn)
{
    struct hfd_exchange *x = w->x;

    h2o_linklist_unlink(&w->link);
    x->refs++;
    x->loop->again = true;
    hfd_exchange_enter(x);
    hfd_exchange_go_on(x);
    fn(w);
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

static void refuse(struct hfd_waiter *w)
{
    struct hfd_err err;

    if (w->x->replied) /* a stream */
        w->kind->finish(w);
    else
        hfd_exchange_fail(w->x, hfd_fail(&err, HFD_UNAUTHORIZED, "the token is not valid any more"),
                          &err);
}

static void finish(struct hfd_waiter *w)
{
    w->kind->finish(w);
}

/* ---- answers that are held ---- */

static struct hfd_hold *hold_of(struct hfd_waiter *w)
{
    return HFD_CONTAINER_OF(w, struct hfd_hold, waiter);
}

static const struct hfd_row_stamps *stamps_of(const struct hfd_loop *loop)
{
    return hfd_store_stamps(loop->server->app->store);
}

/* The mark is older than what is read, so a change between the two counts. */
static void read_again(struct hfd_waiter *w)
{
    struct hfd_hold *h = hold_of(w);

    hfd_arena_fini(&h->mem);
    h->mark = hfd_row_stamps_mark(stamps_of(w->x->loop), h->guresid);
    h->again(w->x, h->arg);
}

static void read_last(struct hfd_waiter *w)
{
    hold_of(w)->over = true;
    read_again(w);
}

static void end_hold(struct hfd_waiter *w)
{
    hfd_arena_fini(&hold_of(w)->mem);
}

static const struct hfd_waiter_kind hold_kind = {read_last, end_hold};

bool hfd_hold_begin(struct hfd_hold *h, struct hfd_exchange *x)
{
    h->waiter = (struct hfd_waiter){
        .kind = &hold_kind, .x = x, .until_us = hfd_loop_mono_us(x->loop) + h->wait_us};
    if (!hfd_waiter_begin(&h->waiter))
        return false;
    hfd_arena_init(&h->mem, x->mem.max_bytes);
    h->mem.budget = x->mem.budget;
    x->prefer_s = h->prefer_s;
    read_again(&h->waiter);
    return true;
}

bool hfd_hold_on(struct hfd_hold *h)
{
    struct hfd_loop *loop = h->waiter.x->loop;

    if (h->over || loop->draining || hfd_loop_mono_us(loop) >= h->waiter.until_us)
        return false;
    hfd_waiter_hold(&h->waiter);
    loop->waiters.added = loop->again = true; /* a change since the mark may have woken nothing */
    return true;
}

/* ---- those of a loop ---- */

static bool is_any(struct hfd_waiter *w, int64_t now_us)
{
    (void)w;
    (void)now_us;
    return true;
}

static bool is_hold(struct hfd_waiter *w, int64_t now_us)
{
    (void)now_us;
    return w->kind == &hold_kind;
}

static bool is_changed(struct hfd_waiter *w, int64_t now_us)
{
    return is_hold(w, now_us) && hfd_row_stamps_changed(stamps_of(w->x->loop), &hold_of(w)->mark);
}

static bool is_late(struct hfd_waiter *w, int64_t now_us)
{
    return now_us >= w->until_us;
}

static bool is_revoked(struct hfd_waiter *w, int64_t now_us)
{
    (void)now_us;
    return !hfd_access_lasts(w->x);
}

/* A caller that has gone finds the end of its answer; h2o finds that it has gone. */
static bool is_unwanted(struct hfd_waiter *w, int64_t now_us)
{
    (void)now_us;
    return !hfd_exchange_is_wanted(w->x);
}

/* Those that hold on stand behind the last one. */
void hfd_waiters_go_on(struct hfd_loop *loop, int64_t now_us, hfd_waiter_pick_fn *pick,
                       hfd_waiter_fn *fn)
{
    h2o_linklist_t *const all = &loop->waiters.list, *const last = all->prev, *at, *next;

    for (at = all->next; at != all; at = at == last ? all : next) {
        struct hfd_waiter *w = HFD_CONTAINER_OF(at, struct hfd_waiter, link);

        next = at->next;
        if (pick(w, now_us))
            hfd_waiter_go_on(w, fn);
    }
}

static void end_late(struct hfd_loop *loop, int64_t now_us)
{
    struct hfd_waiters *all = &loop->waiters;

    hfd_waiters_go_on(loop, now_us, is_late, finish);
    all->due_us = INT64_MAX;
    for (h2o_linklist_t *at = all->list.next; at != &all->list; at = at->next) {
        const struct hfd_waiter *w = HFD_CONTAINER_OF(at, struct hfd_waiter, link);

        if (w->until_us < all->due_us)
            all->due_us = w->until_us;
    }
}

void hfd_waiters_run(struct hfd_loop *loop, int64_t now_us)
{
    struct hfd_waiters *all = &loop->waiters;
    struct hfd_row_mark now;

    if (h2o_linklist_is_empty(&all->list))
        return;
    if (now_us - all->checked_us >= CHECK_US) {
        all->checked_us = now_us;
        hfd_waiters_go_on(loop, now_us, is_revoked, refuse);
    }
    now = hfd_row_stamps_mark(stamps_of(loop), HFD_SLICE(""));
    if (all->added || now.own != all->seen.own || now.others != all->seen.others) {
        all->added = false;
        all->seen = now;
        hfd_waiters_go_on(loop, now_us, is_changed, read_again);
    }
    if (now_us >= all->due_us)
        end_late(loop, now_us);
}

/*
 * Servers of one database may lose a wake-up. A remote HyperFleet is asked for what is read here,
 * and for nothing else. So held answers are read each second there.
 */
void hfd_waiters_sweep(struct hfd_loop *loop, int64_t now_us)
{
    const struct hfd_app *app = loop->server->app;

    hfd_waiters_go_on(loop, now_us, is_unwanted, finish);
    if (app->keeper != NULL || (app->driver != NULL && hfd_driver_is_remote(app->driver)))
        hfd_waiters_go_on(loop, now_us, is_hold, read_again);
}

void hfd_waiters_drain(struct hfd_loop *loop)
{
    hfd_waiters_go_on(loop, 0, is_any, finish);
}

int64_t hfd_waiters_wait_us(const struct hfd_loop *loop, int64_t now_us, int64_t max_us)
{
    const struct hfd_waiters *all = &loop->waiters;
    const int64_t check_us = all->checked_us + CHECK_US;
    const int64_t left_us = (all->due_us < check_us ? all->due_us : check_us) - now_us + 999;

    return left_us < 0 ? 0 : left_us < max_us ? left_us : max_us; /* to whole milliseconds */
}
