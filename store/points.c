#include "store/points.h"

#include "driver/base/check.h"
#include "driver/base/thread.h"
#include "store/job.h"

#define GROUP_MAX 256 /* reads of one snapshot */
#define AGAIN_WITHIN_US HFD_US_PER_S

static hfd_rc reopen_if_broken(struct hfd_points *p, struct hfd_err *err)
{
    if (p->db != NULL && !hfd_db_broken(p->db))
        return HFD_OK;
    hfd_db_close(&p->db);
    return hfd_db_open(p->place, HFD_DB_POINTS, &p->db, err);
}

static void run_each(struct hfd_points *p, struct hfd_job *list)
{
    struct hfd_txn tx = {.db = p->db};

    for (struct hfd_job *job = list; job != NULL; job = hfd_job_next(job)) {
        job->err = (struct hfd_err){.rc = HFD_OK};
        job->rc = job->fn(&tx, job->arg, &job->err);
        job->err.rc = job->rc;
    }
}

/* Runs all jobs in one snapshot. They run again while the engine reads for them. */
static hfd_rc run_group(struct hfd_points *p, struct hfd_job *list, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin_group(p->db, err);
    bool again = true;

    if (rc != HFD_OK)
        return rc;
    while (rc == HFD_OK && again) {
        run_each(p, list);
        rc = hfd_db_cause(p->db, err);
        if (rc == HFD_OK)
            rc = hfd_db_look(p->db, &again, err);
    }
    hfd_db_rollback(p->db); /* costs a round trip only if the first read was not enough */
    return rc;
}

static hfd_rc run_once(struct hfd_points *p, struct hfd_job *list, struct hfd_err *err)
{
    const hfd_rc rc = reopen_if_broken(p, err);

    return rc == HFD_OK ? run_group(p, list, err) : rc;
}

static hfd_rc run_reachable(struct hfd_points *p, struct hfd_job *list, struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(p->clock);
    hfd_rc rc = hfd_away_check(p->away, err);

    if (rc != HFD_OK) /* it went away while they waited */
        return rc;
    rc = run_once(p, list, err);
    /* The connection was lost since its last use; a server that is silent is not asked again. */
    if (rc == HFD_AWAY && hfd_clock_mono_us(p->clock) - began_us < AGAIN_WITHIN_US)
        rc = run_once(p, list, err);
    if (rc == HFD_AWAY)
        hfd_away_note(p->away, err);
    return rc;
}

static void run_list(struct hfd_points *p, struct hfd_job *list)
{
    struct hfd_err err = {.rc = HFD_OK};
    const hfd_rc rc = run_reachable(p, list, &err);

    for (struct hfd_job *job = list; rc != HFD_OK && job != NULL; job = hfd_job_next(job))
        hfd_job_finish(job, rc, &err);
    hfd_jobs_post(list);
}

static void *points_main(void *arg)
{
    struct hfd_points *p = arg;
    struct hfd_qnode *list;
    size_t count;

    hfd_db_adopt(p->db);
    while ((list = hfd_queue_take(p->queue, GROUP_MAX, &count)) != NULL)
        run_list(p, hfd_job_of(list));
    hfd_db_close(&p->db);
    return NULL;
}

hfd_rc hfd_points_push(struct hfd_points *p, struct hfd_job *job)
{
    HFD_ASSERT(p->queue != NULL);
    return hfd_queue_push(p->queue, &job->node);
}

hfd_rc hfd_points_open(struct hfd_points *p, size_t queue_max, struct hfd_err *err)
{
    const hfd_rc rc = hfd_queue_new(queue_max, &p->queue, err);

    return rc == HFD_OK ? hfd_db_open(p->place, HFD_DB_POINTS, &p->db, err) : rc;
}

hfd_rc hfd_points_start(struct hfd_points *p, struct hfd_err *err)
{
    const hfd_rc rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-points", "open the store: thread", points_main, p}, &p->thread,
        err);

    p->started = rc == HFD_OK;
    return rc;
}

void hfd_points_close(struct hfd_points *p)
{
    if (p->queue == NULL)
        return;
    hfd_queue_close(p->queue);
    if (p->started)
        (void)pthread_join(p->thread, NULL);
    if (p->db != NULL)
        hfd_db_adopt(p->db);
    hfd_db_close(&p->db);
    hfd_queue_free(p->queue);
}
