/* See origin.h. */
#include "handlers/http/origin.h"

#include <arpa/inet.h>

/* Returns the host of "host[:port]", without the brackets of an IPv6 address. */
static hfd_slice host_of(hfd_slice authority)
{
    const char *end;

    if (authority.len != 0 && authority.p[0] == '[') {
        end = memchr(authority.p, ']', authority.len);
        return end != NULL ? (hfd_slice){authority.p + 1, (size_t)(end - authority.p) - 1}
                           : HFD_SLICE("");
    }
    end = authority.len != 0 ? memchr(authority.p, ':', authority.len) : NULL;
    return end != NULL ? (hfd_slice){authority.p, (size_t)(end - authority.p)} : authority;
}

static bool is_loopback(hfd_slice host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;

    if (hfd_slice_ieq(host, HFD_SLICE("localhost")))
        return true;
    if (host.len == 0 || host.len >= sizeof(text))
        return false;
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_listed(const struct hfd_list *hosts, hfd_slice host)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (hfd_slice_ieq(host_of(hosts->items[i]), host))
            return true;
    return false;
}

static bool is_own(const struct hfd_list *hosts, hfd_slice authority)
{
    const hfd_slice host = host_of(authority);

    return is_loopback(host) || is_listed(hosts, host);
}

/* Returns what is behind "://" in an origin; empty if there is no scheme ("null"). */
static hfd_slice authority_of(hfd_slice origin)
{
    const char *mark = origin.len != 0 ? memmem(origin.p, origin.len, "://", 3) : NULL;

    return mark != NULL ? (hfd_slice){mark + 3, origin.len - (size_t)(mark + 3 - origin.p)}
                        : HFD_SLICE("");
}

/* An origin is local if it is this listener itself, or a name of http.hosts. */
static bool is_local(const struct hfd_list *hosts, const struct hfd_head *head)
{
    const hfd_slice authority = authority_of(head->origin);

    return (authority.len != 0 && hfd_slice_ieq(authority, head->host)) ||
           is_listed(hosts, host_of(authority));
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
    if (!(rule->authenticated && is_reading(head->method)) && !is_own_origin(rule->hosts, head)) {
        *fault = (struct hfd_head_fault){.status = 403,
                                         .reason = "foreign_origin",
                                         .text = "a browser sent this request from another origin"};
        return HFD_HEAD_BAD;
    }
    return HFD_HEAD_OK;
}
