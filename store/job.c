#include "store/job.h"

void hfd_job_finish(struct hfd_job *job, hfd_rc rc, const struct hfd_err *err)
{
    job->rc = rc;
    if (rc != HFD_OK)
        job->err = *err;
    job->err.rc = rc;
}

/* There are few sinks, one per loop, so the list is walked once for each. */
void hfd_jobs_post(struct hfd_job *list)
{
    while (list != NULL) {
        struct hfd_sink *sink = list->sink;
        struct hfd_qnode *mine = NULL, **mine_end = &mine;
        struct hfd_qnode *rest = NULL, **rest_end = &rest;

        for (struct hfd_qnode *n = &list->node; n != NULL; n = n->next) {
            struct hfd_qnode ***end = hfd_job_of(n)->sink == sink ? &mine_end : &rest_end;

            **end = n;
            *end = &n->next;
        }
        *mine_end = NULL;
        *rest_end = NULL;
        sink->post(sink, hfd_job_of(mine));
        list = hfd_job_of(rest);
    }
}
