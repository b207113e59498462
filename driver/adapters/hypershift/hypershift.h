/*
 * The HyperShift adapter. It makes clusters and nodepools of a HyperFleet, as
 * HostedClusters and NodePools on a management cluster, and reports on them. Each management
 * cluster has its own adapter with its own thread: one that is down holds up no other. It keeps
 * nothing that the store or the API server does not have. README.md says how. Source: HyperShift,
 * "Architecture"; driver/README.md, decision 20.
 */
#ifndef HFD_HYPERSHIFT_HYPERSHIFT_H
#define HFD_HYPERSHIFT_HYPERSHIFT_H

#include "driver/adapters/hypershift/fleet.h"
#include "driver/core/driver.h"
#include "driver/kube/access.h"
#include "driver/kube/refusal.h"

struct hfd_hypershift;

struct hfd_hypershift_config {
    const struct hfd_hs_fleet *fleet;
    const struct hfd_clock *clock;
    const struct hfd_rng *rng;
    hfd_slice management; /* name of the management cluster; it takes the clusters of that name */
    const struct hfd_kube_access *access;
    const struct hfd_hs_checker *checker;
    const char *pull_secret_file;  /* NULL = none; read again when it changes */
    int64_t timeout_us;            /* of one call to the API server */
    struct hfd_kube_pauses pauses; /* after failures; the shortest also between looks */
    int64_t grace_us;              /* how long a condition that refuses has to hold */
    int64_t resync_us;             /* every object is looked at this often, whatever happens */
};

/**
 * Starts the thread.
 * @param config its pointers are borrowed until hfd_hypershift_stop, which must come before
 * what they point at goes
 * @param out gives; free with hfd_hypershift_stop
 * @return HFD_OK, HFD_INVALID or HFD_IO (a credential cannot be used), HFD_NOMEM
 * Thread: start-up.
 */
HFD_MUST_CHECK hfd_rc hfd_hypershift_start(const struct hfd_hypershift_config *config,
                                           struct hfd_hypershift **out, struct hfd_err *err);
/** Stops and joins the thread, and frees the adapter. Accepts a pointer to NULL. */
void hfd_hypershift_stop(struct hfd_hypershift **hypershift);

/**
 * Reads the default's pull secret.
 * @param out  the file's bytes are added
 * @return HFD_OK, HFD_IO, HFD_INVALID (not a pull secret), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hypershift_read_pull_secret(const char *path, struct hfd_buf *out,
                                                      struct hfd_err *err);

/** Has the kubeconfig, its files and the pull secret read again, changed or not. Thread: any. */
void hfd_hypershift_reload(struct hfd_hypershift *hypershift);

/** Has it look at once for what has changed in HyperFleet. Never waits. Thread: any. */
void hfd_hypershift_wake(struct hfd_hypershift *hypershift);

/** Says why it cannot do its work now, in words; NULL = it can. Thread: any. */
const char *hfd_hypershift_trouble(struct hfd_hypershift *hypershift);

/**
 * Hands over the objects of ours on the management cluster, as they were at the last look, and has
 * it look again soon. Thread: any.
 */
void hfd_hypershift_objects(struct hfd_hypershift *hypershift, hfd_adapter_object_fn *take,
                            void *arg);

/** As hfd_hypershift_start, but starts no thread. @param out  gives */
HFD_MUST_CHECK hfd_rc hfd_hypershift_new(const struct hfd_hypershift_config *config,
                                         struct hfd_hypershift **out, struct hfd_err *err);
void hfd_hypershift_free(struct hfd_hypershift *hypershift);

/** Looks at HyperFleet where that is due, visits what is due, and waits for the next. */
void hfd_hypershift_round(struct hfd_hypershift *hypershift);

#endif
