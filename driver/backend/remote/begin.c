/* See begin.h. */
#include "driver/backend/remote/begin.h"

#include "driver/backend/remote/jobs.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "store/rows_remote.h"

#define COUNT_EVERY_US (10 * HFD_US_PER_S)
#define PAUSE_US HFD_US_PER_S
#define DUE_MEM_BYTES ((size_t)16 << 20)

struct due {
    struct hfd_remote *remote;
    struct hfd_arena *mem;
    struct hfd_due_query query;
    struct hfd_due found;
};

static hfd_rc txn_due(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct due *d = arg;

    return d->remote->rules->due(tx, &d->query, d->mem, &d->found, err);
}

/* When work may begin, monotonic; INT64_MAX = not before something else happens. */
static int64_t begin_us(const struct hfd_remote *r)
{
    const int64_t breaker_us = hfd_breaker_next_us(&r->breaker);

    if (r->busy_slots == r->slot_count)
        return INT64_MAX;
    return breaker_us > r->pause_until_us ? breaker_us : r->pause_until_us;
}

static void begin(struct hfd_remote *r, struct due *d)
{
    bool more = d->found.count == d->query.limit;

    for (size_t i = 0; i < d->found.count; i++) {
        if (hfd_set_aside_has(&r->aside, d->found.works[i].guresid) ||
            hfd_slots_run(r, &d->found.works[i]))
            continue;
        if (r->busy_slots == r->slot_count ||
            !hfd_breaker_begin(&r->breaker, hfd_remote_mono_us(r))) {
            more = true;
            break;
        }
        hfd_slots_begin(r, &d->found.works[i]);
    }
    r->may_be_due = more;
    r->due_us = d->found.next_us > d->query.now_us ? d->found.next_us : d->query.now_us + PAUSE_US;
}

static hfd_rc txn_count(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_remote *r = arg;
    const int64_t now_us = hfd_remote_wall_us(r);
    int64_t due, overdue;
    hfd_rc rc = hfd_remote_row_count(tx, now_us, &due, err);

    if (rc == HFD_OK)
        rc = hfd_remote_row_count(tx, now_us - r->config.policy->watch_us, &overdue, err);
    if (rc != HFD_OK)
        return rc;
    hfd_metric_set(HFD_METRIC_REMOTE_DUE, NULL, due);
    hfd_metric_set(HFD_METRIC_REMOTE_OVERDUE, NULL, overdue);
    return HFD_OK;
}

/* Ignores a failure: hfd_remote_begin_due logs it. */
void hfd_remote_count_due(struct hfd_remote *r)
{
    struct hfd_err err;

    if (r->counted && hfd_remote_mono_us(r) - r->counted_us < COUNT_EVERY_US)
        return;
    r->counted = true;
    r->counted_us = hfd_remote_mono_us(r);
    (void)!hfd_remote_read(r, txn_count, r, &err);
}

void hfd_remote_begin_due(struct hfd_remote *r)
{
    struct due d = {.remote = r,
                    .query = {.policy = r->config.policy,
                              .now_us = hfd_remote_wall_us(r),
                              .limit = r->slot_count + r->aside.count,
                              .shards = r->hold.shards},
                    .found = {.next_us = INT64_MAX}};
    struct hfd_err err;
    struct hfd_arena mem;
    hfd_rc rc = HFD_NOMEM;

    if (d.query.shards == 0)
        return;
    if (hfd_remote_mono_us(r) - r->read_us >= hfd_remote_read_every_us(r) ||
        d.query.now_us >= r->due_us)
        r->may_be_due = true;
    if (!r->may_be_due || begin_us(r) > hfd_remote_mono_us(r))
        return;
    r->read_us = hfd_remote_mono_us(r);
    hfd_arena_init(&mem, DUE_MEM_BYTES);
    d.mem = &mem;
    d.found.works = hfd_arena_array(&mem, d.query.limit, sizeof(*d.found.works));
    if (d.found.works != NULL)
        rc = hfd_remote_read(r, txn_due, &d, &err);
    else
        (void)hfd_fail_nomem(&err, "read what is due");
    if (rc == HFD_OK) {
        begin(r, &d);
        r->cannot_read = false;
    } else {
        if (!r->cannot_read)
            HFD_LOG(HFD_LOG_ERROR, "remote HyperFleet: cannot read what is due; will try again",
                    HFD_LOG_CSTR("reason", err.msg));
        r->cannot_read = true;
        r->may_be_due = false; /* until HFD_REMOTE_READ_EVERY_US has passed, or
                                  something happens */
        r->due_us = INT64_MAX;
    }
    hfd_arena_fini(&mem);
}
