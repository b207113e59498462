/*
 * Another HyperFleet over its API, for the adapter as a program of its own. It lists clusters and
 * nodepools, reads one with its reports, and posts reports. It waits for events; where there are
 * none, it lists what is not ready now and then. After a failure it makes no request for a while.
 * Thread: the adapter's, unless said; before its start, that of hfd_hs_fleet_api_open.
 */
#ifndef HFD_HYPERSHIFT_FLEET_API_H
#define HFD_HYPERSHIFT_FLEET_API_H

#include "driver/adapters/hypershift/fleet.h"
#include "driver/backend/remote/http.h"
#include "driver/base/rng.h"
#include "driver/base/secret.h"
#include "driver/kube/refusal.h"

#include <stdatomic.h>

struct hfd_hs_fleet_api;

struct hfd_hs_fleet_api_config {
    struct hfd_remote_http_config http; /* its texts are borrowed until close */
    const struct hfd_rng *rng;
    struct hfd_kube_pauses pauses; /* after failures */
    int64_t interval_us;           /* how often it lists what is not ready, if it has no events */
    /* data.secrets are sent. Set it only for an API that keeps them: hfd_hs_fleet_api_is_ours */
    bool send_secrets;
};

/**
 * Reads the files, and connects nowhere yet.
 * @param out  gives
 * @return HFD_OK, HFD_INVALID or HFD_IO (which file, and why), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_fleet_api_open(const struct hfd_hs_fleet_api_config *config,
                                            struct hfd_hs_fleet_api **out, struct hfd_err *err);
/** The adapter must have stopped. Accepts a pointer to NULL. */
void hfd_hs_fleet_api_close(struct hfd_hs_fleet_api **api);

/**
 * Asks the API for its own description, which names the program.
 * @param ours  true: it is this program's, and shows no secret to readers
 * @return HFD_OK, HFD_IO (it cannot be asked, and why), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_fleet_api_is_ours(struct hfd_hs_fleet_api *api, bool *ours,
                                               struct hfd_err *err);
/** Reads token and certificates again before the next request. Thread: any. */
void hfd_hs_fleet_api_reload(struct hfd_hs_fleet_api *api);

/** The seam, with `impl` a struct hfd_hs_fleet_api. */
extern const struct hfd_hs_fleet_ops hfd_hs_fleet_api_ops;

#define HFD_HS_CURSOR_MAX 65

/** The secrets of a cluster as they were last sent: the API does not give them back. */
struct hfd_hs_sent {
    struct hfd_hs_sent *next;
    char id[HFD_HS_ID_MAX + 1];
    struct hfd_secret text;
};

struct hfd_hs_fleet_api {
    unsigned magic;
#define HFD_HS_FLEET_API_MAGIC 0x68736170u
    struct hfd_hs_fleet_api_config config;
    struct hfd_remote_http *http;
    atomic_bool stopped;
    int64_t closed_until_us; /* mono: no request before */
    int failures;            /* in a row */
    char why[HFD_HS_WORDS_MAX];
    bool knows_names, later_names; /* it says Reconciled for Ready */
    int64_t read_us;               /* mono: when the present row was read */
    struct hfd_hs_sent *sent;
    /* The watch. */
    char cursor[HFD_HS_CURSOR_MAX]; /* of the events that are known; empty = there are none */
    bool lost;                      /* events were missed: all has to be listed */
    enum {
        HFD_HS_WATCH_NEW,
        HFD_HS_WATCH_ON,
        HFD_HS_WATCH_OFF
    } watch;
    int64_t list_due_us; /* mono: without events */
    struct hfd_remote_call poll;
    char poll_path[HFD_HS_CURSOR_MAX + 40];
    bool polling, polled; /* it was sent; there is its answer */
    int64_t poll_us;      /* mono: when it was sent, or may be sent again */
    int poll_failures;    /* in a row */
};

#endif
