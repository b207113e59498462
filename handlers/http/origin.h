/*
 * Tells a local caller from a web page. There is no authentication, so every page that a browser on
 * this machine opens could send requests to a listener. A page reaches it under a foreign host name
 * (DNS rebinding), or says in Origin or Sec-Fetch-Site that it comes from elsewhere. Pure.
 * Thread: any.
 */
#ifndef HFD_HTTP_ORIGIN_H
#define HFD_HTTP_ORIGIN_H

#include "handlers/http/head.h"
#include "handlers/settings/settings.h"

/**
 * Checks where a request was sent to, and from.
 * @param hosts  http.hosts: names that count as the server's own, beside those of loopback
 * @param fault  421 for a foreign host, 403 for a foreign origin
 * @return HFD_HEAD_OK, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_origin_check(const struct hfd_list *hosts, const struct hfd_head *head,
                                       struct hfd_head_fault *fault);

#endif
