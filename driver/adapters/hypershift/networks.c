/* See networks.h. */
#include "driver/adapters/hypershift/networks.h"

#include <stdio.h>

#define NETWORKS_MAX 75
#define ADDRESS_BYTES 16

/* A network: its address in the first bytes, and the length of its prefix in bits. */
struct network {
    char field[64];
    unsigned char address[ADDRESS_BYTES];
    int bits, width; /* width: 32 or 128 */
};

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

/* Reads groups up to "::" or the end. Returns their number, or -1. */
static int parse_groups(hfd_slice *s, unsigned char *out)
{
    int n = 0;

    while (s->len > 0 && s->p[0] != ':') {
        unsigned v = 0;
        size_t digits = 0;

        for (; digits < s->len && digits < 5 && hfd_hex_value(s->p[digits]) >= 0; digits++)
            v = v << 4 | (unsigned)hfd_hex_value(s->p[digits]);
        if (digits == 0 || digits > 4 || n == 8)
            return -1;
        out[2 * n] = (unsigned char)(v >> 8);
        out[2 * n + 1] = (unsigned char)(v & 0xff);
        n++;
        *s = (hfd_slice){s->p + digits, s->len - digits};
        if (s->len >= 2 && s->p[0] == ':' && s->p[1] != ':')
            *s = (hfd_slice){s->p + 1, s->len - 1};
    }
    return n;
}

static bool parse_v6(hfd_slice s, unsigned char *out)
{
    unsigned char tail[ADDRESS_BYTES] = {0};
    int head_count, tail_count;

    memset(out, 0, ADDRESS_BYTES);
    head_count = parse_groups(&s, out);
    if (head_count < 0)
        return false;
    if (s.len == 0)
        return head_count == 8;
    if (s.len < 2 || s.p[0] != ':' || s.p[1] != ':')
        return false;
    s = (hfd_slice){s.p + 2, s.len - 2};
    tail_count = parse_groups(&s, tail);
    if (tail_count < 0 || s.len > 0 || head_count + tail_count > 7)
        return false;
    memcpy(out + ADDRESS_BYTES - 2 * tail_count, tail, 2 * (size_t)tail_count);
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
    out->width = memchr(address.p, ':', address.len) != NULL ? 128 : 32;
    if (hfd_parse_i64(bits, 0, out->width, &n, NULL) != HFD_OK)
        return false;
    out->bits = (int)n;
    return out->width == 32 ? parse_v4(address, out->address) : parse_v6(address, out->address);
}

/* Two networks overlap if they are equal in the bits of the shorter prefix. */
static bool overlap(const struct network *a, const struct network *b)
{
    int bits = a->bits < b->bits ? a->bits : b->bits;

    if (a->width != b->width)
        return false;
    for (int i = 0; i < ADDRESS_BYTES && bits > 0; i++, bits -= 8) {
        const unsigned mask = bits >= 8 ? 0xffu : 0xffu << (8 - bits) & 0xffu;

        if (((a->address[i] ^ b->address[i]) & mask) != 0)
            return false;
    }
    return true;
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
