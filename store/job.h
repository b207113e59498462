/* Finished jobs on their way back to their sinks. Thread: any. */
#ifndef HFD_STORE_JOB_H
#define HFD_STORE_JOB_H

#include "driver/base/container.h"
#include "store/store.h"

/** @param node  of a job; NULL gives NULL */
static inline struct hfd_job *hfd_job_of(struct hfd_qnode *node)
{
    return node != NULL ? HFD_CONTAINER_OF(node, struct hfd_job, node) : NULL;
}

/** The next job of a list. */
static inline struct hfd_job *hfd_job_next(const struct hfd_job *job)
{
    return hfd_job_of(job->node.next);
}

/** Sets the outcome of a job. @param err  used when rc is not HFD_OK */
void hfd_job_finish(struct hfd_job *job, hfd_rc rc, const struct hfd_err *err);
/**
 * Gives finished jobs back: one call per sink, in the order of submission. After the call for its
 * sink a job is its submitter's again.
 */
void hfd_jobs_post(struct hfd_job *list);

#endif
