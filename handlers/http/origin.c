/* See origin.h. */
#include "handlers/http/origin.h"

#include "driver/base/url.h"
#include "handlers/http/head.h"
#include "handlers/settings/network.h"
#include "handlers/settings/settings.h"

/* ---- web pages ---- */

static bool is_listed(const struct hfd_list *hosts, hfd_slice host)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (host.len > 0 && hfd_slice_ieq(hfd_authority_host(hosts->items[i]), host))
            return true;
    return false;
}

static bool is_own(const struct hfd_list *hosts, hfd_slice authority)
{
    const hfd_slice host = hfd_authority_host(authority);

    return hfd_host_is_loopback(host) || is_listed(hosts, host);
}

/* An origin is local if it is this listener itself, or a name of http.hosts. */
static bool is_local(const struct hfd_list *hosts, const struct hfd_head *head)
{
    const hfd_slice authority = hfd_url_authority(head->origin);

    return (authority.len != 0 && hfd_slice_ieq(authority, head->host)) ||
           is_listed(hosts, hfd_authority_host(authority));
}

static bool is_own_host(const struct hfd_list *hosts, const struct hfd_head *head)
{
    return (head->host.p == NULL || is_own(hosts, head->host)) &&
           (head->authority.p == NULL || is_own(hosts, head->authority));
}

static bool is_own_origin(const struct hfd_list *hosts, const struct hfd_head *head)
{
    return (head->origin.p == NULL || is_local(hosts, head)) &&
           (head->fetch_site.p == NULL || hfd_slice_ieq(head->fetch_site, HFD_SLICE("none")) ||
            hfd_slice_ieq(head->fetch_site, HFD_SLICE("same-origin")));
}

static bool is_reading(hfd_slice method)
{
    return hfd_slice_is(method, "GET") || hfd_slice_is(method, "HEAD");
}

enum hfd_head_verdict hfd_origin_check(const struct hfd_origin_rule *rule,
                                       const struct hfd_head *head, struct hfd_head_fault *fault)
{
    if (rule->local && !rule->authenticated && !is_own_host(rule->hosts, head)) {
        *fault = (struct hfd_head_fault){
            .status = 421,
            .reason = "foreign_host",
            .text = "the Host is neither a loopback name or address nor one of http.hosts"};
        return HFD_HEAD_BAD;
    }
    if (!(rule->authenticated && !rule->admin && is_reading(head->method)) &&
        !is_own_origin(rule->hosts, head)) {
        *fault = (struct hfd_head_fault){.status = 403,
                                         .reason = "foreign_origin",
                                         .text = "a browser sent this request from another origin"};
        return HFD_HEAD_BAD;
    }
    return HFD_HEAD_OK;
}

/* ---- clients behind proxies ---- */

#define FORWARDED_FOR HFD_SLICE("x-forwarded-for")

bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a)
{
    for (size_t i = 0; i < networks->count; i++)
        if (hfd_network_has(networks->items[i], a))
            return true;
    return false;
}

/* Cuts the text before the separator off the rest, whose p is NULL behind the last one. */
static hfd_slice cut(hfd_slice *rest, char separator)
{
    const char *end = rest->len > 0 ? memchr(rest->p, separator, rest->len) : NULL;
    hfd_slice item = *rest;

    *rest = HFD_SLICE_NONE;
    if (end != NULL) {
        *rest = (hfd_slice){end + 1, item.len - (size_t)(end + 1 - item.p)};
        item.len = (size_t)(end - item.p);
    }
    return item;
}

/*
 * Goes along the hops of one line, from the client to the proxy. The client is the last hop that is
 * no trusted proxy, or the first one.
 * @param client  of the lines before it; found tells if there were hops
 */
static void take_hops(const struct hfd_list *trusted, hfd_slice line,
                      struct hfd_host_address *client, bool *found)
{
    while (line.p != NULL) {
        struct hfd_host_address hop;

        if (!hfd_host_address_parse(hfd_slice_trim(cut(&line, ',')), &hop))
            hop = (struct hfd_host_address){.known = false};
        if (!*found || !hfd_peer_is_in(trusted, &hop))
            *client = hop;
        *found = true;
    }
}

struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings,
                                        const struct hfd_host_address *peer, hfd_slice head)
{
    const struct hfd_list *trusted = &settings->http_trusted_proxies;
    struct hfd_host_address client = *peer;
    bool found = false;

    if (!hfd_peer_is_in(trusted, peer))
        return client;
    while (head.p != NULL) {
        hfd_slice line = cut(&head, '\n'), value = cut(&line, '\r');

        if (hfd_slice_ieq(cut(&value, ':'), FORWARDED_FOR))
            take_hops(trusted, value, &client, &found);
    }
    return client;
}
