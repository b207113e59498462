/*
 * The objects of ours on a management cluster, as they were at the last look: for the list of
 * orphans. One thread fills it, any thread reads it.
 */
#ifndef HFD_HYPERSHIFT_SEEN_H
#define HFD_HYPERSHIFT_SEEN_H

#include <pthread.h>

#include "driver/core/driver.h"
#include "driver/kube/client.h"

#define HFD_HS_SEEN_MAX                                                                            \
    2000 /* HostedClusters and NodePools of a management cluster; more are left out */

struct hfd_hs_seen {
    pthread_mutex_t lock;
    struct hfd_hs_seen_object *items;
    size_t count;
    bool warned; /* Secrets cannot be listed */
};

/** Set up an empty list, and free it. */
void hfd_hs_seen_init(struct hfd_hs_seen *seen);
void hfd_hs_seen_fini(struct hfd_hs_seen *seen);

/**
 * Lists the objects with our label, in all namespaces. A list that is not whole changes nothing.
 * @param secrets  list Secrets whose HostedCluster is gone as well; if that is refused, a warning
 * @return true if it was whole
 */
bool hfd_hs_seen_look(struct hfd_hs_seen *seen, struct hfd_kube *kube, bool secrets);

/** Hands over the objects. Texts are borrowed during the call. Thread: any. */
void hfd_hs_seen_each(struct hfd_hs_seen *seen, hfd_slice place, hfd_actor_object_fn *take,
                      void *ctx);

#endif
