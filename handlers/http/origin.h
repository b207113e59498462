/*
 * Tells web pages from callers, and finds the address of a client. Without authentication, every
 * page that a browser on this machine opens could send requests to a listener. A page reaches it
 * under a foreign host name (DNS rebinding), or says in Origin or Sec-Fetch-Site that it comes from
 * elsewhere. With authentication a browser sends its password along with the requests of such a
 * page.
 *
 * A client has the address of the connection, or, behind a proxy of http.trusted_proxies, the one
 * that the proxy gives in X-Forwarded-For. Pure. Thread: any.
 */
#ifndef HFD_HTTP_ORIGIN_H
#define HFD_HTTP_ORIGIN_H

#include "handlers/http/head.h"
#include "handlers/settings/network.h"
#include "handlers/settings/settings.h"

struct hfd_origin_rule {
    const struct hfd_list *hosts; /* http.hosts: own names beside those of loopback */
    bool authenticated;           /* any host will do, and any origin for GET and HEAD */
    bool admin;                   /* but for these: GET starts backups */
    bool local; /* only this machine reaches the listener; else any host will do */
};

/**
 * Checks where a request was sent to, and from.
 * @param fault  421 for a foreign host, 403 for a foreign origin
 * @return HFD_HEAD_OK, HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_origin_check(const struct hfd_origin_rule *rule,
                                       const struct hfd_head *head, struct hfd_head_fault *fault);

/**
 * Returns the address of the client: the last of X-Forwarded-For that is no trusted proxy, or the
 * first. Text that is no address is an unknown client, which is in no network: it is never replaced
 * by the proxy's own address.
 * @param head  of the request, well-formed
 */
struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings,
                                        const struct hfd_host_address *peer, hfd_slice head);
/** Returns true if a network of the list has the address. */
bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a);

#endif
