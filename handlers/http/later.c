/* See later.h. */
#include "handlers/http/later.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "handlers/http/exchange_int.h"

bool hfd_later_add(struct hfd_loop *loop, struct hfd_later *later)
{
    if ((loop->later_count >= HFD_LATER_MAX && later->do_without == NULL) || loop->draining)
        return false;
    if (loop->later_count++ == 0 || later->until_us < loop->later_us)
        loop->later_us = later->until_us;
    later->link = (h2o_linklist_t){.next = NULL};
    h2o_linklist_insert(&loop->later, &later->link);
    return true;
}

void hfd_later_cancel(struct hfd_loop *loop, struct hfd_later *later)
{
    HFD_ASSERT(loop->later_count > 0 && h2o_linklist_is_linked(&later->link));
    loop->later_count--;
    h2o_linklist_unlink(&later->link);
}

/* It is no request in progress any more: what waits takes no place from others. */
void hfd_exchange_refuse_later(struct hfd_exchange *x, const struct hfd_err *err, int64_t delay_us)
{
    struct hfd_later *later = hfd_arena_alloc(&x->mem, sizeof(*later));

    if (later != NULL)
        *later = (struct hfd_later){
            .x = x, .until_us = hfd_loop_mono_us(x->loop) + delay_us, .err = *err};
    if (later == NULL || !hfd_later_add(x->loop, later)) {
        hfd_exchange_fail(x, HFD_UNAUTHORIZED, err);
        return;
    }
    x->later = later;
    hfd_exchange_leave_flight(x);
}

void hfd_exchange_limit(struct hfd_exchange *x, int64_t limit_us, hfd_handler_fn *do_without)
{
    struct hfd_later *later = hfd_arena_alloc(&x->mem, sizeof(*later));

    HFD_ASSERT(x->later == NULL && !x->job_out);
    if (later == NULL)
        return;
    *later = (struct hfd_later){
        .x = x, .until_us = hfd_loop_mono_us(x->loop) + limit_us, .do_without = do_without};
    if (hfd_later_add(x->loop, later))
        x->later = later;
}

static void answer(struct hfd_exchange *x)
{
    const struct hfd_later *later = x->later;

    x->refs++;
    x->later = NULL;
    hfd_log_request_id(x->view.request_id);
    if (later->do_without != NULL) {
        x->job_left = x->job_out;
        x->viewing = false; /* the job goes on, though the client leaves */
        later->do_without(x);
    } else {
        hfd_exchange_fail(x, HFD_UNAUTHORIZED, &later->err);
    }
    hfd_log_request_id(HFD_SLICE_NONE);
    hfd_exchange_unref(x);
}

/* Takes an answer that is due off the list; notes when the next one is. */
static struct hfd_later *take_due(struct hfd_loop *loop, int64_t now_us)
{
    int64_t next_us = INT64_MAX;

    for (h2o_linklist_t *at = loop->later.next; at != &loop->later; at = at->next) {
        struct hfd_later *later = H2O_STRUCT_FROM_MEMBER(struct hfd_later, link, at);

        if (later->until_us <= now_us || loop->draining)
            return later;
        if (later->until_us < next_us)
            next_us = later->until_us;
    }
    loop->later_us = next_us;
    return NULL;
}

void hfd_later_run(struct hfd_loop *loop, int64_t now_us)
{
    struct hfd_later *later;

    if (loop->later_count == 0 || (now_us < loop->later_us && !loop->draining))
        return;
    while ((later = take_due(loop, now_us)) != NULL) {
        hfd_later_cancel(loop, later);
        answer(later->x);
        loop->again = true;
    }
}

int64_t hfd_later_wait_us(const struct hfd_loop *loop, int64_t max_us)
{
    int64_t left_us;

    if (loop->later_count == 0)
        return max_us;
    left_us = loop->later_us - hfd_loop_mono_us(loop) + 999; /* to whole milliseconds */
    return left_us < 0 ? 0 : left_us < max_us ? left_us : max_us;
}
