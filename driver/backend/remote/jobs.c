/* See jobs.h. */
#include "driver/backend/remote/jobs.h"

#include "driver/base/check.h"

/* Wakes under the lock: after the last job the thread may free all of this. */
void hfd_remote_on_posted(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_remote *r =
        (struct hfd_remote *)(void *)((char *)sink - offsetof(struct hfd_remote, sink));
    struct hfd_job *last = list;

    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    while (last->node.next != NULL)
        last = (struct hfd_job *)(void *)last->node.next;
    (void)pthread_mutex_lock(&r->lock);
    last->node.next = r->finished != NULL ? &r->finished->node : NULL;
    r->finished = list;
    hfd_remote_http_wake(r->http);
    (void)pthread_mutex_unlock(&r->lock);
}

void hfd_remote_collect(struct hfd_remote *r)
{
    struct hfd_job *list;

    (void)pthread_mutex_lock(&r->lock);
    list = r->finished;
    r->finished = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    while (list != NULL) {
        struct hfd_job *job = list;

        list = (struct hfd_job *)(void *)job->node.next;
        HFD_ASSERT(r->jobs_out > 0);
        r->jobs_out--;
        job->done(job);
    }
}

hfd_rc hfd_remote_read(struct hfd_remote *r, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (r->reader == NULL)
        rc = hfd_store_reader_open(r->config.store, &r->reader, err);
    return rc == HFD_OK ? hfd_store_read(r->reader, fn, arg, err) : rc;
}

hfd_rc hfd_remote_submit(struct hfd_remote *r, struct hfd_job *job,
                         const struct hfd_remote_txn *txn, struct hfd_err *err)
{
    hfd_rc rc;

    *job = (struct hfd_job){.fn = txn->fn, .arg = txn->arg, .sink = &r->sink, .done = txn->done};
    rc = hfd_store_update(r->config.store, job, err);
    if (rc == HFD_OK)
        r->jobs_out++;
    return rc;
}
