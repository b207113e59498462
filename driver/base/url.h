/* The form of addresses, hosts and base URLs. Pure: it does not connect. Thread: any. */
#ifndef HFD_BASE_URL_H
#define HFD_BASE_URL_H

#include "driver/base/slice.h"

struct hfd_buf;

/** An address of IPv4 or IPv6. */
struct hfd_ip {
    unsigned char bytes[16]; /* of IPv4: the first four; the others are zero */
    int bits;                /* 32 or 128 */
};

#define HFD_IP_TEXT_MAX 46

/** Parses an address, without a port, as inet_pton does. Zeroes *out on failure. */
bool hfd_ip_parse(hfd_slice text, struct hfd_ip *out);
/** Formats an address, as inet_ntop does. */
void hfd_ip_format(const struct hfd_ip *ip, char out[HFD_IP_TEXT_MAX]);
/** True if the first `bits` bits of both are equal: one network has both. */
bool hfd_ip_bits_equal(const unsigned char *a, const unsigned char *b, int bits);

/**
 * Cuts the host out of "host", "host:port" or "[address]:port".
 * @return without brackets; empty if the text has another form
 */
hfd_slice hfd_authority_host(hfd_slice authority);

/** Cuts "host:port" out of a URL or an origin; empty without a scheme. */
hfd_slice hfd_url_authority(hfd_slice url);

/**
 * True for names that can only be this machine's: localhost, ::1, and addresses of
 * 127.0.0.0/8 in their usual form. Any other form counts as another machine's.
 * @param host  without brackets, as hfd_authority_host gives it
 */
bool hfd_host_is_loopback(hfd_slice host);

/** hfd_host_is_loopback of a URL's host. */
bool hfd_url_is_loopback(hfd_slice url);

/** True for a host name, an IPv4 address, or an IPv6 address in brackets. */
bool hfd_host_is_valid(hfd_slice host);

/**
 * Checks a base URL: http or https, a host, perhaps a port and a path. Refuses user, query and
 * fragment: credentials have files of their own, and the other two would be lost.
 * @return HFD_OK, or HFD_INVALID ("expected ..."; the text is not quoted, as it may hold a
 * password)
 */
HFD_MUST_CHECK hfd_rc hfd_url_check(hfd_slice text, struct hfd_err *err);

/** The characters that need no escape in a path or a query, beside letters and digits. */
#define HFD_URL_PLAIN "-._~"
/** Adds a text for a URL: all but letters, digits and those of `kept` are percent-encoded. */
void hfd_url_escape(struct hfd_buf *b, hfd_slice text, const char *kept);

#endif
