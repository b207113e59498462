/* The steps of clusters and nodepools, as tables of reconcile.h. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_STEPS_H
#define HFD_HYPERSHIFT_STEPS_H

#include "driver/adapters/hypershift/work.h"

/* ---- what steps are made of ---- */

/** Ends a step with a reason and words. */
enum hfd_step_end hfd_hs_end(struct hfd_hs_work *work, enum hfd_step_end end, const char *reason,
                             const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** True while the API server is not called, after a failure. */
bool hfd_hs_is_closed(const struct hfd_hs_server *server);

/** True if the labels say that an object is ours, and of this resource. */
bool hfd_hs_is_ours(const struct hfd_hs_work *work, const json_t *object);

/**
 * Reads an object.
 * @param doc  replaced; NULL = it is not there
 * @return DONE, or how the step ends
 */
enum hfd_step_end hfd_hs_read(struct hfd_hs_work *work, const struct hfd_kube_object *name,
                              json_t **doc);

/** Applies a manifest. @param doc  replaced by what the server answers; NULL = not needed */
enum hfd_step_end hfd_hs_apply(struct hfd_hs_work *work, const struct hfd_kube_apply *apply,
                               json_t **doc);

/** Lists objects. @return DONE, or how the step ends, if the list is not whole */
enum hfd_step_end hfd_hs_list(struct hfd_hs_work *work, const struct hfd_kube_list *list);

/** Deletes an object of ours once. @return DONE, or how the step ends */
enum hfd_step_end hfd_hs_delete(struct hfd_hs_work *work, const struct hfd_kube_object *name,
                                const json_t *doc);

/** Ends a step of a teardown whose object is not gone yet. */
enum hfd_step_end hfd_hs_wait_gone(struct hfd_hs_work *work, const struct hfd_kube_object *name);

/** The facts that clusters and nodepools have in common. */
struct hfd_hs_facts hfd_hs_facts_of(const struct hfd_hs_work *work);

/** True if the manifests have to be applied: they are new, or it is time to look for changes. */
bool hfd_hs_must_apply(const struct hfd_hs_work *work);

/** Refuses an object that is not of this resource. */
enum hfd_step_end hfd_hs_refuse_strange(struct hfd_hs_work *work,
                                        const struct hfd_kube_object *name);

/**
 * A step: finds the management cluster. One that the settings no longer have is a fault: the work
 * waits until they have it again.
 */
enum hfd_step_end hfd_hs_find_management(void *work);

/** A step: reads the object. One of its name that is not ours is refused, and never touched. */
enum hfd_step_end hfd_hs_find(void *work);

/** A step: waits for an object that goes away. It is not changed; a new one takes its place. */
enum hfd_step_end hfd_hs_wait_for_old(void *work);

/** A step: has the API server check the manifest of the object, unless it was checked before. */
enum hfd_step_end hfd_hs_validate(void *work);

/** A step: applies the HostedCluster or NodePool. */
enum hfd_step_end hfd_hs_apply_object(void *work);

/** A step of a teardown: deletes the HostedCluster or NodePool, and waits until it is gone. */
enum hfd_step_end hfd_hs_delete_object(void *work);

/** Ends the walk where the judgement stands. */
enum hfd_step_end hfd_hs_end_by_judgement(struct hfd_hs_work *work);

/** Ends a step without memory. */
static inline enum hfd_step_end hfd_hs_out_of_memory(struct hfd_hs_work *work)
{
    return hfd_hs_end(work, HFD_STEP_FAULT, "OutOfMemory", "out of memory");
}

/** The namespace of the objects. */
static inline hfd_slice hfd_hs_work_namespace(const struct hfd_hs_work *work)
{
    return work->object.name.namespace;
}

/** A table of steps. */
#define HFD_HS_STEPS(table)                                                                        \
    {                                                                                              \
        (table), sizeof(table) / sizeof((table)[0])                                                \
    }

/** True while row, generation and deletion are as they were read. */
bool hfd_hs_is_current(void *work);

#endif
