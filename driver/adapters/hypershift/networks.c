/* See networks.h. */
#include "driver/adapters/hypershift/networks.h"

#include "driver/base/url.h"

#include <stdio.h>

#define NETWORKS_MAX 75

struct network {
    char field[64];
    struct hfd_ip address;
    int bits; /* of its prefix */
};

/* Four decimal numbers, which may begin with zeros here. */
static bool parse_v4(hfd_slice s, unsigned char *out)
{
    for (int i = 0; i < 4; i++) {
        const char *dot = s.len > 0 && i < 3 ? memchr(s.p, '.', s.len) : NULL;
        const hfd_slice part = {s.p, i < 3 && dot != NULL ? (size_t)(dot - s.p) : s.len};
        int64_t v;

        if ((i < 3 && dot == NULL) || hfd_parse_i64(part, 0, 255, &v, NULL) != HFD_OK)
            return false;
        out[i] = (unsigned char)v;
        if (dot != NULL)
            s = (hfd_slice){dot + 1, s.len - part.len - 1};
    }
    return true;
}

static bool parse_cidr(hfd_slice s, struct network *out)
{
    const char *slash = s.len > 0 ? memchr(s.p, '/', s.len) : NULL;
    hfd_slice address, bits;
    int64_t n;

    if (slash == NULL)
        return false;
    address = (hfd_slice){s.p, (size_t)(slash - s.p)};
    bits = (hfd_slice){slash + 1, s.len - address.len - 1};
    out->address = (struct hfd_ip){.bits = 32};
    if (memchr(address.p, ':', address.len) == NULL) {
        if (!parse_v4(address, out->address.bytes))
            return false;
    } else if (memchr(address.p, '.', address.len) != NULL ||
               !hfd_ip_parse(address, &out->address)) {
        return false;
    }
    out->bits = hfd_parse_i64(bits, 0, out->address.bits, &n, NULL) == HFD_OK ? (int)n : -1;
    return out->bits >= 0;
}

/* Two networks overlap if they are equal in the bits of the shorter prefix. */
static bool overlap(const struct network *a, const struct network *b)
{
    return a->address.bits == b->address.bits &&
           hfd_ip_bits_equal(a->address.bytes, b->address.bytes,
                             a->bits < b->bits ? a->bits : b->bits);
}

struct reading {
    struct network all[NETWORKS_MAX];
    size_t count;
    char *field, *what;
};

static bool fail(struct reading *r, const char *field, const char *what)
{
    (void)snprintf(r->field, 64, "networking.%s", field);
    (void)snprintf(r->what, 160, "%s", what);
    return false;
}

static bool add(struct reading *r, const char *member, size_t i, const json_t *entry)
{
    struct network *n = &r->all[r->count];
    const json_t *v = json_is_string(entry) ? entry : json_object_get(entry, "cidr");
    char what[160];

    if (!json_is_string(v) || r->count == NETWORKS_MAX)
        return true;
    (void)snprintf(n->field, sizeof(n->field), "%s[%zu]", member, i);
    if (!parse_cidr((hfd_slice){json_string_value(v), json_string_length(v)}, n))
        return fail(r, n->field, "expected a network like 10.132.0.0/14");
    for (size_t k = 0; k < r->count; k++) {
        if (!overlap(&r->all[k], n))
            continue;
        (void)snprintf(what, sizeof(what), "expected networks that do not overlap; %s does",
                       r->all[k].field);
        return fail(r, n->field, what);
    }
    r->count++;
    return true;
}

bool hfd_hs_networks_check(const json_t *networking, char field[64], char what[160])
{
    static const char *const members[] = {"cluster_network", "clusterNetwork",  "service_network",
                                          "serviceNetwork",  "machine_network", "machineNetwork"};
    struct reading r = {.field = field, .what = what};

    for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
        const json_t *list = json_object_get(networking, members[m]);

        for (size_t i = 0; i < json_array_size(list); i++)
            if (!add(&r, members[m], i, json_array_get(list, i)))
                return false;
    }
    return true;
}
