/* The form of hosts and base URLs in settings. Pure: it does not connect. Thread: any. */
#ifndef HFD_BASE_URL_H
#define HFD_BASE_URL_H

#include "driver/base/slice.h"

/** True for a host name, an IPv4 address, or an IPv6 address in brackets. */
bool hfd_host_is_valid(hfd_slice host);

/**
 * Checks a base URL: http or https, a host, perhaps a port and a path. Refuses user, query and
 * fragment: credentials have files of their own, and the other two would be lost.
 * @return HFD_OK, or HFD_INVALID ("expected ..."; the text is not quoted, as it may hold a
 * password)
 */
HFD_MUST_CHECK hfd_rc hfd_url_check(hfd_slice text, struct hfd_err *err);

#endif
