/* See peer.h. */
#include "handlers/http/peer.h"

static const char forwarded_for[] = "x-forwarded-for";

static struct hfd_host_address address_of(h2o_socket_t *sock)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(address);

    if (getpeername(h2o_socket_get_fd(sock), (struct sockaddr *)(void *)&address, &len) != 0)
        len = 0;
    return hfd_host_address_of((const struct sockaddr *)(const void *)&address, len);
}

bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a)
{
    for (size_t i = 0; i < networks->count; i++)
        if (hfd_network_has(networks->items[i], a))
            return true;
    return false;
}

bool hfd_peer_is_trusted(const struct hfd_settings *settings, h2o_socket_t *sock)
{
    struct hfd_host_address peer;

    if (settings->http_trusted_proxies.count == 0)
        return false;
    peer = address_of(sock);
    return hfd_peer_is_in(&settings->http_trusted_proxies, &peer);
}

/* Cuts the last item off a comma list. */
static hfd_slice cut_last(hfd_slice *list)
{
    const char *comma = list->len > 0 ? memrchr(list->p, ',', list->len) : NULL;
    const char *from = comma != NULL ? comma + 1 : list->p;
    hfd_slice item = {from, list->len - (size_t)(from - list->p)};

    list->len = comma != NULL ? (size_t)(comma - list->p) : 0;
    return hfd_slice_trim(item);
}

/*
 * Goes back along the proxies of one header line. Returns true if the search goes on in the line in
 * front of it.
 */
static bool walk_line(const struct hfd_list *trusted, hfd_slice line,
                      struct hfd_host_address *client)
{
    while (line.len > 0) {
        struct hfd_host_address hop;

        if (!hfd_host_address_parse(cut_last(&line), &hop))
            return false;
        *client = hop;
        if (!hfd_peer_is_in(trusted, &hop))
            return false;
    }
    return true;
}

struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings, h2o_socket_t *sock,
                                        const h2o_headers_t *headers)
{
    const struct hfd_list *trusted = &settings->http_trusted_proxies;
    struct hfd_host_address client = address_of(sock);

    if (headers == NULL || !hfd_peer_is_in(trusted, &client))
        return client;
    for (size_t i = headers->size; i > 0; i--) {
        const h2o_header_t *h = &headers->entries[i - 1];

        if (h2o_memis(h->name->base, h->name->len, forwarded_for, sizeof(forwarded_for) - 1) &&
            !walk_line(trusted, (hfd_slice){h->value.base, h->value.len}, &client))
            break;
    }
    return client;
}
