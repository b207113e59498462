/*
 * The HyperShift adapter of `serve`: its settings and their files, what it adds to the driver, and
 * its threads, one for each management cluster. Nothing of it exists without hypershift.kubeconfig.
 * Thread: main.
 */
#ifndef HFD_CLI_SERVE_HYPERSHIFT_H
#define HFD_CLI_SERVE_HYPERSHIFT_H

#include <pthread.h>

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/base/bell.h"
#include "driver/core/driver.h"
#include "handlers/cli/cli.h"

/** A management cluster. */
struct hfd_serve_management {
    struct hfd_kube_access access;
    struct hfd_hs_fleet_store rows;
    struct hfd_hs_fleet fleet;
    struct hfd_hypershift *thread;
};

struct hfd_serve_hypershift {
    bool on;
    pthread_mutex_t lock;         /* of the `thread` of each management cluster */
    const char *pull_secret_file; /* NULL = none */
    int64_t resync_us, grace_us, timeout_us;
    struct hfd_kube_pauses pauses;
    struct hfd_arena mem;
    struct hfd_serve_management *managements; /* as in checker.defaults; the first is the default */
    size_t management_count;
    struct hfd_hs_checker checker;
    struct hfd_adapter_hooks hooks;
    struct hfd_bell *bell; /* that it listens to; NULL = none */
    struct hfd_bell_listener listener;
    hfd_slice names[2]; /* of the adapters that it is */
};

/**
 * Reads the files of the settings hypershift.*. Without hypershift.kubeconfig, nothing.
 * @param elsewhere  the program works for another HyperFleet: `backend` may be a remote
 * @return HFD_OK, HFD_INVALID or HFD_IO (with place, key and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_hypershift_open(struct hfd_serve_hypershift *h,
                                                const struct hfd_settings *s, bool elsewhere,
                                                struct hfd_err *err);
void hfd_serve_hypershift_close(struct hfd_serve_hypershift *h);

/**
 * Adds to the driver what the adapter needs: its checks of orders, its outputs, and itself as the
 * required adapters where the settings name none. Call it before hfd_driver_complete.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_hypershift_add(struct hfd_serve_hypershift *h,
                                               struct hfd_settings *s, struct hfd_driver *d,
                                               struct hfd_err *err);

struct hfd_serve_hypershift_parts {
    struct hfd_store *store; /* NULL = each management cluster has its `fleet` already */
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    struct hfd_keeper *keeper; /* NULL = the only server */
    struct hfd_bell *bell;     /* rings when a cluster or nodepool has become due */
};
/** Starts a thread for each management cluster, if the adapter is on. @return HFD_OK, HFD_INVALID,
 * HFD_IO, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_serve_hypershift_start(struct hfd_serve_hypershift *h,
                                                 const struct hfd_serve_hypershift_parts *parts,
                                                 struct hfd_err *err);
/** Has kubeconfigs, their files and the pull secret read again: SIGHUP. Thread: main. */
void hfd_serve_hypershift_reload(struct hfd_serve_hypershift *h);

/**
 * Says why a thread cannot do its work now, in words; NULL = all of them can. Thread: any, until
 * hfd_serve_hypershift_close.
 */
const char *hfd_serve_hypershift_trouble(struct hfd_serve_hypershift *h);
void hfd_serve_hypershift_stop(struct hfd_serve_hypershift *h);

#endif
