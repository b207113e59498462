/* See polls.h. */
#include "driver/backend/remote/remote_int.h"

#include "driver/backend/remote/jobs.h"
#include "driver/base/metrics.h"

static hfd_rc txn_hurry(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_remote_polls *h = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < h->count; i++)
        rc = h->remote->rules->hurry(tx, (hfd_slice){h->ids[i].text, h->ids[i].len}, h->older_us,
                                     h->now_us, err);
    return rc;
}

static void on_hurried(struct hfd_job *job)
{
    struct hfd_remote_polls *h = job->arg;

    h->out = false;
    h->remote->may_be_due = true;
    if (job->rc == HFD_OK)
        hfd_metric_add(HFD_METRIC_REMOTE_ASKED, NULL, (int64_t)h->count);
}

void hfd_remote_hurry_polled(struct hfd_remote *r)
{
    struct hfd_remote_polls *h = &r->polls;
    struct hfd_err err;

    if (h->out)
        return;
    h->count = hfd_asked_take(r->asked, h->ids, HFD_REMOTE_POLLS_MAX, hfd_remote_mono_us(r));
    if (h->count == 0)
        return;
    h->now_us = hfd_remote_wall_us(r);
    h->older_us = h->now_us - r->config.fresh_us;
    h->out = hfd_remote_submit(r, &h->job, &(struct hfd_remote_txn){txn_hurry, h, on_hurried},
                               &err) == HFD_OK;
}
