/* Checks the networks of a cluster's spec: each CIDR, and that no two overlap. Pure. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_NETWORKS_H
#define HFD_HYPERSHIFT_NETWORKS_H

#include <jansson.h>

#include "driver/base/slice.h"

/**
 * Checks spec.networking. Members of a wrong type count as absent.
 * @param networking  NULL = none; then the defaults of HyperShift hold, which fit
 * @param field  where the first mistake is: "networking.cluster_network[0]"
 * @param what   what was expected
 * @return true if there is no mistake
 */
bool hfd_hs_networks_check(const json_t *networking, char field[64], char what[160]);

#endif
