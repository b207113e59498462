/* See read.h. */
#include "handlers/web/read.h"

#include "store/rows_history.h"

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

bool hfd_web_needs_you(const struct hfd_overview_item *i)
{
    return i->state == HFD_STATE_FAILED || i->stuck || hfd_slice_is(i->health, "Degraded");
}

static bool is_working(const struct hfd_overview_item *i)
{
    return i->started_us != 0 && !hfd_web_needs_you(i);
}

/*
 * The operations under way that are not in trouble. The list of trouble goes on with them, so a
 * second walk is needed only where trouble fills it.
 */
static hfd_rc read_working(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_overview_query q = {
        .states = 1u << HFD_STATE_CREATING | 1u << HFD_STATE_UPDATING | 1u << HFD_STATE_DELETING,
        .order = HFD_ORDER_TROUBLE,
        .size = HFD_OVERVIEW_SIZE_MAX};
    struct hfd_overview all = p->list;
    hfd_rc rc = HFD_OK;

    if (all.more && all.count > 0 && hfd_web_needs_you(&all.items[all.count - 1]))
        rc = hfd_overview_read(c, &q, &all);
    p->working = hfd_arena_array(p->mem, HFD_WEB_UNDER_WAY_MAX, sizeof(*p->working));
    p->details = hfd_arena_array(p->mem, HFD_WEB_UNDER_WAY_MAX, sizeof(*p->details));
    if (rc == HFD_OK && (p->working == NULL || p->details == NULL))
        return hfd_fail_nomem(c->err, "make the status page");
    for (size_t i = 0; rc == HFD_OK && i < all.count; i++) {
        if (!is_working(&all.items[i]) || p->working_count == HFD_WEB_UNDER_WAY_MAX)
            continue;
        p->working[p->working_count] = all.items[i];
        rc = hfd_detail_read(c, all.items[i].guresid, &p->details[p->working_count++]);
    }
    return rc;
}

static hfd_rc read_history(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_history_query q = {
        .before = INT64_MAX, .newest = true, .limit = HFD_WEB_HISTORY_MAX};
    size_t n = 0;
    hfd_rc rc = hfd_history_row_page(c->tx, &q, p->mem, &p->history, c->err);

    while (rc == HFD_OK && n < p->history.count &&
           p->history.rows[n].at_us >= p->now_us - HFD_LATELY_US)
        n++;
    p->history.count = n;
    return rc;
}

hfd_rc hfd_web_read_home(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_web_page *p = arg;
    const struct hfd_ctx c = ctx_of(p, tx, err);
    const struct hfd_overview_query trouble = {.order = HFD_ORDER_TROUBLE,
                                               .size = HFD_WEB_TROUBLE_MAX + HFD_WEB_UNDER_WAY_MAX};
    hfd_rc rc;

    p->working_count = 0; /* it may run again */
    rc = hfd_overview_read(&c, p->listing ? &p->asked : &trouble, &p->list);

    if (rc != HFD_OK || p->listing)
        return rc;
    rc = read_working(&c, p);
    if (rc == HFD_OK && hfd_web_seeks_orphans(p))
        rc = hfd_orphans_list(tx, c.driver->backend_ops, p->mem, &p->orphans, err);
    if (rc == HFD_OK && p->wants_orphans)
        rc = hfd_orphans_add_objects(&c, &p->orphans);
    if (rc == HFD_OK)
        rc = hfd_adapters_read(&c, &p->adapters);
    if (rc == HFD_OK)
        rc = hfd_lately_read(&c, &p->lately);
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
