/* The memory of fleet_api.h, which its files share. */
#ifndef HFD_HYPERSHIFT_FLEET_API_INT_H
#define HFD_HYPERSHIFT_FLEET_API_INT_H

#include <stdatomic.h>

#include "driver/adapters/hypershift/fleet_api.h"
#include "driver/base/secret.h"

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
};

#endif
