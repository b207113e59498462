/* See network.h. */
#include "handlers/settings/network.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define V4_PREFIX_BYTES 12

static const unsigned char v4_prefix[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

/* Parses an address without a port; sets the number of its own bits. */
static bool parse_bare(hfd_slice text, struct hfd_host_address *out, int *bits)
{
    struct hfd_ip ip;

    *out = (struct hfd_host_address){.known = hfd_ip_parse(text, &ip)};
    *bits = ip.bits;
    if (ip.bits == 32) {
        memcpy(out->bytes, v4_prefix, sizeof(v4_prefix));
        memcpy(out->bytes + V4_PREFIX_BYTES, ip.bytes, 4);
    } else {
        memcpy(out->bytes, ip.bytes, sizeof(ip.bytes));
    }
    return out->known;
}

static bool is_port(hfd_slice text)
{
    int64_t port;

    return hfd_parse_i64(text, 0, 65535, &port, NULL) == HFD_OK;
}

bool hfd_host_address_parse(hfd_slice text, struct hfd_host_address *out)
{
    const char *end = text.len > 0 ? memchr(text.p, ']', text.len) : NULL;
    const char *colon = text.len > 0 ? memchr(text.p, ':', text.len) : NULL;
    hfd_slice rest = HFD_SLICE("");
    int bits;

    if (end != NULL && text.p[0] == '[') {
        rest = (hfd_slice){end + 1, text.len - (size_t)(end + 1 - text.p)};
        text = (hfd_slice){text.p + 1, (size_t)(end - text.p) - 1};
    } else if (colon != NULL &&
               memchr(colon + 1, ':', text.len - (size_t)(colon + 1 - text.p)) == NULL) {
        rest = (hfd_slice){colon, text.len - (size_t)(colon - text.p)};
        text = (hfd_slice){text.p, (size_t)(colon - text.p)};
    }
    if (rest.len != 0 && (rest.p[0] != ':' || !is_port((hfd_slice){rest.p + 1, rest.len - 1}))) {
        *out = (struct hfd_host_address){.known = false};
        return false;
    }
    return parse_bare(text, out, &bits);
}

struct hfd_host_address hfd_host_address_of(const struct sockaddr *sa, socklen_t len)
{
    struct hfd_host_address a = {.known = true};

    if (len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET) {
        memcpy(a.bytes, v4_prefix, sizeof(v4_prefix));
        memcpy(a.bytes + V4_PREFIX_BYTES, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
               4);
    } else if (len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6) {
        memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
    } else {
        a.known = false;
        a.local = len >= sizeof(sa->sa_family) && sa->sa_family == AF_UNIX;
    }
    return a;
}

void hfd_host_address_format(const struct hfd_host_address *a, char out[HFD_IP_TEXT_MAX])
{
    const bool v4 = memcmp(a->bytes, v4_prefix, sizeof(v4_prefix)) == 0;
    struct hfd_ip ip = {.bits = v4 ? 32 : 128};

    memcpy(ip.bytes, a->bytes + (v4 ? V4_PREFIX_BYTES : 0), v4 ? 4 : 16);
    if (a->known)
        hfd_ip_format(&ip, out);
    else
        (void)snprintf(out, HFD_IP_TEXT_MAX, "%s", a->local ? "unix" : "unknown");
}

/* Parses ADDRESS or ADDRESS/BITS. @param bits  of the 128 */
static bool parse_network(hfd_slice text, struct hfd_host_address *out, int *bits)
{
    const char *slash = text.len > 0 ? memchr(text.p, '/', text.len) : NULL;
    const hfd_slice address = {text.p, slash != NULL ? (size_t)(slash - text.p) : text.len};
    int own;
    int64_t n;

    if (!parse_bare(address, out, &own))
        return false;
    n = own;
    if (slash != NULL && hfd_parse_i64((hfd_slice){slash + 1, text.len - address.len - 1}, 0, own,
                                       &n, NULL) != HFD_OK)
        return false;
    *bits = (int)n + 128 - own;
    return true;
}

bool hfd_network_is_valid(hfd_slice text)
{
    struct hfd_host_address a;
    int bits;

    return hfd_slice_is(text, "unix") || parse_network(text, &a, &bits);
}

bool hfd_network_has(hfd_slice text, const struct hfd_host_address *a)
{
    struct hfd_host_address network;
    int bits;

    if (a->local || hfd_slice_is(text, "unix"))
        return a->local && hfd_slice_is(text, "unix");
    return a->known && parse_network(text, &network, &bits) &&
           hfd_ip_bits_equal(a->bytes, network.bytes, bits);
}
