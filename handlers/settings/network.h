/*
 * Addresses of clients, and networks in the form ADDRESS/BITS. IPv4 and IPv6 are one kind: IPv4 is
 * mapped into IPv6. Pure. Thread: any.
 */
#ifndef HFD_SETTINGS_NETWORK_H
#define HFD_SETTINGS_NETWORK_H

#include <sys/socket.h>

#include "driver/base/url.h"

struct hfd_host_address {
    unsigned char bytes[16];
    bool known; /* bytes has an address */
    bool local; /* the peer of a Unix socket: it has none */
};

/**
 * Parses an address, also with a port: "192.0.2.1", "192.0.2.1:80", "2001:db8::1",
 * "[2001:db8::1]:80".
 */
bool hfd_host_address_parse(hfd_slice text, struct hfd_host_address *out);
/** Returns the address of a socket. */
struct hfd_host_address hfd_host_address_of(const struct sockaddr *sa, socklen_t len);
/** Formats an address: "192.0.2.1", "2001:db8::1", "unix" or "unknown". */
void hfd_host_address_format(const struct hfd_host_address *a, char out[HFD_IP_TEXT_MAX]);

/** Returns true if text is ADDRESS, ADDRESS/BITS, or "unix" (the peers of Unix sockets). */
bool hfd_network_is_valid(hfd_slice text);
/** Returns true if the address lies in the network; text is valid. */
bool hfd_network_has(hfd_slice text, const struct hfd_host_address *a);

#endif
