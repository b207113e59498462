/* See read.h. */
#include "handlers/web/read.h"

#include "store/rows_resource.h"

static struct hfd_ctx ctx_of(const struct hfd_web_page *p, struct hfd_txn *tx, struct hfd_err *err)
{
    return (struct hfd_ctx){
        .tx = tx, .driver = p->app->driver, .now_us = p->now_us, .mem = p->mem, .err = err};
}

bool hfd_web_seeks_orphans(const struct hfd_web_page *p)
{
    int64_t all = 0;

    for (int s = 0; s < HFD_STATE_COUNT; s++)
        all += p->list.counts[s];
    return p->wants_orphans && all <= HFD_WEB_ORPHANS_AMONG;
}

/*
 * The operations under way that are not in trouble: the places behind all trouble. The walk over
 * the trouble counts its causes meanwhile.
 */
static hfd_rc read_working(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_overview_query q = {
        .states = 1u << HFD_STATE_CREATING | 1u << HFD_STATE_UPDATING | 1u << HFD_STATE_DELETING,
        .order = HFD_ORDER_TROUBLE,
        .size = HFD_WEB_UNDER_WAY_MAX,
        .cause_size = HFD_WEB_OF_CAUSE_MAX,
        .goes_on = true,
        .after = {.rank = HFD_OVERVIEW_TROUBLES, .at = INT64_MIN},
        .time_us = c->now_us};
    hfd_slice guresids[HFD_WEB_UNDER_WAY_MAX];
    struct hfd_resource_prefetch want = {.guresids = guresids, .reports = true};
    hfd_rc rc = hfd_overview_read(c, &q, &p->list);

    p->details = hfd_arena_array(p->mem, HFD_WEB_UNDER_WAY_MAX, sizeof(*p->details));
    if (rc == HFD_OK && p->details == NULL)
        return hfd_fail_nomem(c->err, "make the status page");
    for (; rc == HFD_OK && want.count < p->list.count; want.count++)
        guresids[want.count] = p->list.items[want.count].guresid;
    if (rc == HFD_OK)
        rc = hfd_resource_row_prefetch(c->tx, &want, p->mem, c->err);
    for (size_t i = 0; rc == HFD_OK && i < p->list.count; i++)
        rc = hfd_detail_read(c, p->list.items[i].guresid, &p->details[i]);
    return rc;
}

static hfd_rc read_history(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_feed_query q = {
        .before = INT64_MAX, .newest = true, .size = HFD_WEB_HISTORY_MAX};
    size_t n = 0;
    hfd_rc rc = hfd_feed_read(c, &q, &p->history);

    while (rc == HFD_OK && n < p->history.count &&
           p->history.items[n].row.at_us >= p->now_us - HFD_DAY_US)
        n++;
    p->history.count = n;
    return rc;
}

hfd_rc hfd_web_read_home(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_web_page *p = arg;
    const struct hfd_ctx c = ctx_of(p, tx, err);
    hfd_rc rc;

    if (p->listing)
        return hfd_overview_read(&c, &p->asked, &p->list);
    rc = read_working(&c, p);
    if (rc == HFD_OK && hfd_web_seeks_orphans(p))
        rc =
            hfd_orphans_list(tx, c.driver->backend_ops,
                             &(struct hfd_orphan_owner){.own = hfd_slice_of(c.driver->fleet.owner)},
                             p->mem, &p->orphans, err);
    if (rc == HFD_OK && p->wants_orphans)
        rc = hfd_orphans_add_objects(&c, &p->orphans);
    if (rc == HFD_OK)
        rc = hfd_adapters_read(&c, true, &p->adapters);
    if (rc == HFD_OK)
        rc = hfd_trends_read(&c, &p->trends);
    if (rc == HFD_OK && p->app->keeper != NULL)
        rc = hfd_replicas_read(tx, p->now_us, p->mem, &p->replicas, err);
    return rc == HFD_OK ? read_history(&c, p) : rc;
}

hfd_rc hfd_web_read_resource(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_web_page *p = arg;
    const struct hfd_ctx c = ctx_of(p, tx, err);

    return hfd_detail_read(&c, p->guresid, &p->detail);
}
