/*
 * The address rule of PacemakerCluster: an IP address of a node, in its one canonical form. It
 * agrees with Kubernetes' ip.isCanonical() and isGlobalUnicast(), which are Go's net/netip. It is
 * written by hand because inet_ntop of glibc prints "::1.2.3.4" where netip prints "::102:304".
 * Pure. Thread: any.
 */
#ifndef HFD_HEALTH_ADDRESS_H
#define HFD_HEALTH_ADDRESS_H

#include "driver/base/slice.h"

/** The longest canonical address: eight groups of four digits. */
#define HFD_HEALTH_ADDRESS_MAX 39

/**
 * Tells if the text is a global unicast IPv4 or IPv6 address in canonical form. Private and
 * documentation addresses are; unspecified, loopback, link-local, multicast and broadcast ones are
 * not, and neither are zones, prefixes and IPv4 addresses mapped into IPv6.
 */
bool hfd_health_address_ok(hfd_slice text);

#endif
