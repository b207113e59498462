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
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.p[i]) * 16777619u;
    return name.len > 0 ? &x->loop->server->watchers_by[hash % HFD_WATCHERS_BY] : NULL;
}

bool hfd_place_take(struct hfd_exchange *x)
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

void hfd_place_give(struct hfd_exchange *x)
{
    atomic_uint *own = places_of(x);

    atomic_fetch_sub(&x->loop->server->watchers, 1);
    if (own != NULL)
        atomic_fetch_sub(own, 1);
    atomic_fetch_sub(&x->loop->watchers, 1);
    hfd_metric_add(HFD_METRIC_WATCHERS, NULL, -1);
}

/* ---- one answer ---- */

static const struct hfd_store *store_of(const struct hfd_hold *h)
{
    return hfd_exchange_app(h->x)->store;
}

/* The exchange ends. */
static void on_end(void *arg)
{
    struct hfd_hold *h = arg;

    if (h2o_linklist_is_linked(&h->link))
        h2o_linklist_unlink(&h->link);
    hfd_arena_fini(&h->mem);
    hfd_place_give(h->x);
}

/* The mark is older than what is read, so a change between the two counts. */
static void read_again(struct hfd_hold *h)
{
    hfd_arena_fini(&h->mem);
    h->mark = hfd_store_mark(store_of(h), h->guresid);
    h->again(h->x, h->arg);
}

bool hfd_hold_begin(struct hfd_hold *h)
{
    struct hfd_exchange *x = h->x;

    if (x->loop->draining || !hfd_place_take(x))
        return false;
    hfd_exchange_at_end(x, on_end, h);
    hfd_arena_init(&h->mem, x->mem.max_bytes);
    h->mem.budget = x->mem.budget;
    h->until_us = hfd_loop_mono_us(x->loop) + h->wait_us;
    x->prefer_s = h->prefer_s;
    read_again(h);
    return true;
}

bool hfd_hold_wait(struct hfd_hold *h)
{
    struct hfd_loop *loop = h->x->loop;

    if (h->over || loop->draining || hfd_loop_mono_us(loop) >= h->until_us)
        return false;
    hfd_exchange_hold(h->x);
    h2o_linklist_insert(&loop->holds.waiting, &h->link);
    if (h->until_us < loop->holds.due_us)
        loop->holds.due_us = h->until_us;
    loop->holds.added = loop->again = true; /* a change since the mark may have woken nothing */
    return true;
}

/* Takes an answer off the list, and goes on with fn. May free it. */
static void go_on(struct hfd_hold *h, void (*fn)(struct hfd_hold *h))
{
    struct hfd_exchange *x = h->x;

    h2o_linklist_unlink(&h->link);
    x->refs++;
    hfd_exchange_enter(x);
    hfd_exchange_go_on(x);
    x->loop->again = true;
    fn(h);
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

static void finish(struct hfd_hold *h)
{
    h->over = true;
    read_again(h);
}

static void refuse(struct hfd_hold *h)
{
    struct hfd_err err;

    hfd_exchange_fail(h->x, hfd_fail(&err, HFD_UNAUTHORIZED, "the token is not valid any more"),
                      &err);
}

/* ---- those of a loop ---- */

typedef bool pick_fn(const struct hfd_hold *h);

static bool is_any(const struct hfd_hold *h)
{
    (void)h;
    return true;
}

static bool is_changed(const struct hfd_hold *h)
{
    return hfd_store_changed(store_of(h), &h->mark);
}

static bool is_late(const struct hfd_hold *h)
{
    return hfd_loop_mono_us(h->x->loop) >= h->until_us;
}

static bool is_revoked(const struct hfd_hold *h)
{
    return !hfd_access_lasts(h->x);
}

static bool is_unwanted(const struct hfd_hold *h)
{
    return !hfd_exchange_is_wanted(h->x);
}

static void for_each(struct hfd_loop *loop, pick_fn *pick, void (*fn)(struct hfd_hold *h))
{
    h2o_linklist_t *const all = &loop->holds.waiting, *at, *next, *last = all->prev;

    for (at = all->next; at != all; at = at == last ? all : next) {
        struct hfd_hold *h = HFD_CONTAINER_OF(at, struct hfd_hold, link);

        next = at->next;
        if (pick(h))
            go_on(h, fn);
    }
}

static void end_late(struct hfd_loop *loop)
{
    h2o_linklist_t *const all = &loop->holds.waiting;

    for_each(loop, is_late, finish);
    loop->holds.due_us = INT64_MAX;
    for (h2o_linklist_t *at = all->next; at != all; at = at->next) {
        const struct hfd_hold *h = HFD_CONTAINER_OF(at, struct hfd_hold, link);

        if (h->until_us < loop->holds.due_us)
            loop->holds.due_us = h->until_us;
    }
}

void hfd_holds_run(struct hfd_loop *loop, int64_t now_us)
{
    struct hfd_holds *s = &loop->holds;
    struct hfd_store_mark now;

    if (h2o_linklist_is_empty(&s->waiting))
        return;
    if (now_us - s->checked_us >= CHECK_US) {
        s->checked_us = now_us;
        for_each(loop, is_revoked, refuse);
    }
    now = hfd_store_mark(loop->server->app->store, HFD_SLICE(""));
    if (s->added || now.own != s->seen.own || now.others != s->seen.others) {
        s->added = false;
        s->seen = now;
        for_each(loop, is_changed, read_again);
    }
    if (now_us >= s->due_us)
        end_late(loop);
}

/*
 * Servers of one database may lose a wake-up. A remote HyperFleet is asked for what is read here,
 * and for nothing else. So these read each second.
 */
void hfd_holds_sweep(struct hfd_loop *loop)
{
    const struct hfd_app *app = loop->server->app;

    for_each(loop, is_unwanted, finish);
    if (app->keeper != NULL || hfd_driver_is_remote(app->driver))
        for_each(loop, is_any, read_again);
}

void hfd_holds_drain(struct hfd_loop *loop)
{
    for_each(loop, is_any, finish);
}

int64_t hfd_holds_wait_us(struct hfd_loop *loop, int64_t now_us, int64_t max_us)
{
    struct hfd_holds *s = &loop->holds;
    const int64_t check_us = s->checked_us + CHECK_US;
    const int64_t left_us = (s->due_us < check_us ? s->due_us : check_us) + 999 - now_us;

    if (h2o_linklist_is_empty(&s->waiting))
        return max_us;
    return left_us < 0 ? 0 : left_us < max_us ? left_us : max_us;
}
