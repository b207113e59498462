/*
 * The address of the client: that of the connection, or, behind a proxy of http.trusted_proxies,
 * the one that the proxy gives in X-Forwarded-For. Thread: loop.
 */
#ifndef HFD_HTTP_PEER_H
#define HFD_HTTP_PEER_H

#include "handlers/settings/network.h"
#include "handlers/http/loop.h"

/** Returns true if the peer of this socket is in http.trusted_proxies. */
bool hfd_peer_is_trusted(const struct hfd_settings *settings, h2o_socket_t *sock);
/**
 * Returns the address of the client: the last of X-Forwarded-For that is no trusted proxy. Text
 * that is no address ends the search: what stands in front of it is not believed.
 * @param headers  of the request; NULL = the address of the connection
 */
struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings, h2o_socket_t *sock,
                                        const h2o_headers_t *headers);
/** Returns true if a network of the list has the address. */
bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a);

#endif
