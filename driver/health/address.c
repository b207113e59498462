/*
 * The address rule of PacemakerCluster. See address.h. An IPv6 text is read, printed canonically,
 * and compared with what was given.
 */
#include "driver/health/address.h"

#define GROUPS 8

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Four decimal numbers up to 255 without leading zeros. */
static bool parse_v4(hfd_slice text, unsigned char out[4])
{
    size_t at = 0;

    for (int i = 0; i < 4; i++) {
        const size_t from = at;
        unsigned value = 0;

        while (at < text.len && at - from < 3 && is_digit(text.p[at]))
            value = value * 10 + (unsigned)(text.p[at++] - '0');
        if (at == from || value > 255 || (text.p[from] == '0' && at - from > 1))
            return false;
        out[i] = (unsigned char)value;
        if (i < 3 && (at == text.len || text.p[at++] != '.'))
            return false;
    }
    return at == text.len;
}

/* One to four hexadecimal digits at *at, which moves behind them. */
static bool read_group(hfd_slice text, size_t *at, uint16_t *out)
{
    const size_t from = *at;
    unsigned value = 0;

    while (*at < text.len && *at - from < 4 && hfd_hex_value(text.p[*at]) >= 0)
        value = value * 16 + (unsigned)hfd_hex_value(text.p[(*at)++]);
    *out = (uint16_t)value;
    return *at > from;
}

/* Groups and at most one "::". Dotted tails fail: no canonical text has one. */
static bool parse_v6(hfd_slice text, uint16_t out[GROUPS])
{
    uint16_t groups[GROUPS];
    size_t at = 0, n = 0, gap = GROUPS + 1; /* gap: the group in front of which "::" stands */

    if (hfd_slice_starts(text, HFD_SLICE("::"))) {
        gap = 0;
        at = 2;
    }
    while (at < text.len) {
        if (n == GROUPS || !read_group(text, &at, &groups[n++]))
            return false;
        if (at == text.len)
            break;
        if (text.p[at++] != ':' || at == text.len)
            return false;
        if (text.p[at] == ':') {
            if (gap <= GROUPS)
                return false;
            gap = n;
            at++;
        }
    }
    if (gap > GROUPS ? n != GROUPS : n == GROUPS)
        return false;
    memset(out, 0, GROUPS * sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i < gap ? i : GROUPS - n + i] = groups[i];
    return true;
}

/* The first of the longest runs of two or more zero groups; *len is 0 when there is none. */
static size_t longest_run(const uint16_t g[GROUPS], size_t *len)
{
    size_t best = GROUPS;

    *len = 0;
    for (size_t from = 0; from < GROUPS; from++) {
        size_t to = from;

        while (to < GROUPS && g[to] == 0)
            to++;
        if (to - from >= 2 && to - from > *len) {
            best = from;
            *len = to - from;
        }
    }
    return best;
}

static size_t put_group(uint16_t group, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 0;

    for (int shift = 12; shift >= 0; shift -= 4)
        if (len > 0 || shift == 0 || (group >> shift) != 0)
            out[len++] = digits[(group >> shift) & 0xf];
    return len;
}

/* RFC 5952. @return the length */
static size_t print_v6(const uint16_t g[GROUPS], char out[HFD_HEALTH_ADDRESS_MAX + 1])
{
    size_t run, len = 0;
    const size_t best = longest_run(g, &run);

    for (size_t i = 0; i < GROUPS;) {
        if (i == best) {
            out[len++] = ':';
            out[len++] = ':';
            i += run;
            continue;
        }
        if (i > 0 && i != best + run)
            out[len++] = ':';
        len += put_group(g[i++], out + len);
    }
    return len;
}

/* 0.0.0.0, 127/8, 169.254/16, 224/4 and 255.255.255.255 are no address of a node. */
static bool v4_is_unicast(const unsigned char a[4])
{
    const bool unspecified = a[0] == 0 && a[1] == 0 && a[2] == 0 && a[3] == 0;
    const bool broadcast = a[0] == 255 && a[1] == 255 && a[2] == 255 && a[3] == 255;
    const bool link_local = a[0] == 169 && a[1] == 254;
    const bool multicast = a[0] >= 224 && a[0] <= 239;

    return !unspecified && !broadcast && !link_local && !multicast && a[0] != 127;
}

/* ::, ::1, ::ffff:0:0/96, fe80::/10 and ff00::/8 are no address of a node. */
static bool v6_is_unicast(const uint16_t g[GROUPS])
{
    bool low_alone = true; /* all but the last two groups are zero, and perhaps the sixth ffff */

    if ((g[0] & 0xffc0) == 0xfe80 || (g[0] & 0xff00) == 0xff00)
        return false;
    for (int i = 0; i < 5; i++)
        low_alone = low_alone && g[i] == 0;
    if (low_alone && g[5] == 0xffff)
        return false;
    return !(low_alone && g[5] == 0 && g[6] == 0 && g[7] <= 1);
}

bool hfd_health_address_ok(hfd_slice text)
{
    char canonical[HFD_HEALTH_ADDRESS_MAX + 1];
    uint16_t groups[GROUPS];
    unsigned char v4[4];
    size_t len;

    if (text.len == 0 || text.len > HFD_HEALTH_ADDRESS_MAX)
        return false;
    if (parse_v4(text, v4))
        return v4_is_unicast(v4);
    if (!parse_v6(text, groups) || !v6_is_unicast(groups))
        return false;
    len = print_v6(groups, canonical);
    return len == text.len && memcmp(canonical, text.p, len) == 0;
}
