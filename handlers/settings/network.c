/* See network.h. */
#include "handlers/settings/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define V4_PREFIX_BYTES 12

static const unsigned char v4_prefix[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

/* Parses an address without a port; sets the number of its own bits. */
static bool parse_bare(hfd_slice text, struct hfd_host_address *out, int *bits)
{
    char copy[INET6_ADDRSTRLEN];

    *out = (struct hfd_host_address){.known = false};
    if (text.len == 0 || text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    if (strlen(copy) != text.len)
        return false;
    memcpy(out->bytes, v4_prefix, sizeof(v4_prefix));
    if (inet_pton(AF_INET, copy, out->bytes + V4_PREFIX_BYTES) == 1) {
        *bits = 32;
    } else if (inet_pton(AF_INET6, copy, out->bytes) == 1) {
        *bits = 128;
    } else {
        return false;
    }
    out->known = true;
    return true;
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

void hfd_host_address_format(const struct hfd_host_address *a, char out[HFD_ADDRESS_TEXT_MAX])
{
    const bool v4 = memcmp(a->bytes, v4_prefix, sizeof(v4_prefix)) == 0;

    if (!a->known || inet_ntop(v4 ? AF_INET : AF_INET6, a->bytes + (v4 ? V4_PREFIX_BYTES : 0), out,
                               HFD_ADDRESS_TEXT_MAX) == NULL)
        (void)snprintf(out, HFD_ADDRESS_TEXT_MAX, "%s", a->local ? "unix" : "unknown");
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
    int bits, whole, rest;

    if (a->local || hfd_slice_is(text, "unix"))
        return a->local && hfd_slice_is(text, "unix");
    if (!a->known || !parse_network(text, &network, &bits))
        return false;
    whole = bits / 8;
    rest = bits % 8;
    return memcmp(a->bytes, network.bytes, (size_t)whole) == 0 &&
           (rest == 0 || (a->bytes[whole] ^ network.bytes[whole]) >> (8 - rest) == 0);
}
