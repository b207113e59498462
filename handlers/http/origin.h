/*
 * Tells a caller from a web page. Without authentication, every page that a browser on this machine
 * opens could send requests to a listener. A page reaches it under a foreign host name (DNS
 * rebinding), or says in Origin or Sec-Fetch-Site that it comes from elsewhere. With authentication
 * a browser sends its password along with the requests of such a page. Pure. Thread: any.
 */
#ifndef HFD_HTTP_ORIGIN_H
#define HFD_HTTP_ORIGIN_H

#include "handlers/http/head.h"
#include "handlers/settings/settings.h"

struct hfd_origin_rule {
    const struct hfd_list *hosts; /* http.hosts: own names beside those of loopback */
    bool authenticated;           /* any host will do, and any origin for GET and HEAD */
    bool local; /* only this machine reaches the listener; else any host will do */
};

/**
 * Checks where a request was sent to, and from.
 * @param fault  421 for a foreign host, 403 for a foreign origin
 * @return HFD_HEAD_OK, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_origin_check(const struct hfd_origin_rule *rule,
                                       const struct hfd_head *head, struct hfd_head_fault *fault);

#endif
