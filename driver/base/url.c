/* See url.h. Source: RFC 3986. */
#include "driver/base/url.h"

#include "driver/base/buf.h"

#include <arpa/inet.h>

#define HOST_MAX 253
#define URL_MAX 1024

bool hfd_ip_parse(hfd_slice text, struct hfd_ip *out)
{
    char copy[HFD_IP_TEXT_MAX];

    *out = (struct hfd_ip){.bits = 0};
    if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.p, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, out->bytes) == 1)
        out->bits = 32;
    else if (inet_pton(AF_INET6, copy, out->bytes) == 1)
        out->bits = 128;
    return out->bits != 0;
}

void hfd_ip_format(const struct hfd_ip *ip, char out[HFD_IP_TEXT_MAX])
{
    if (inet_ntop(ip->bits == 32 ? AF_INET : AF_INET6, ip->bytes, out, HFD_IP_TEXT_MAX) == NULL)
        out[0] = '\0';
}

bool hfd_ip_bits_equal(const unsigned char *a, const unsigned char *b, int bits)
{
    const int whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, (size_t)whole) == 0 &&
           (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Four numbers from 0 to 255 with dots between them. */
static bool is_v4(hfd_slice s)
{
    for (int part = 0; part < 4; part++) {
        const char *dot = part < 3 && s.len > 0 ? memchr(s.p, '.', s.len) : NULL;
        size_t n = dot != NULL ? (size_t)(dot - s.p) : s.len;
        int64_t v;

        if ((part < 3 && dot == NULL) || n > 3 ||
            hfd_parse_i64((hfd_slice){s.p, n}, 0, 255, &v, NULL) != HFD_OK)
            return false;
        n += dot != NULL;
        s = (hfd_slice){s.p + n, s.len - n};
    }
    return true;
}

/* Checks the characters and colons only; bind or connect finds other mistakes. */
static bool is_v6(hfd_slice s)
{
    size_t colons = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (hfd_hex_value(s.p[i]) < 0 && s.p[i] != ':' && s.p[i] != '.')
            return false;
        colons += s.p[i] == ':';
    }
    return s.len <= 45 && colons >= 2 && colons <= 7;
}

bool hfd_host_is_valid(hfd_slice s)
{
    bool numeric = true;

    if (s.len >= 2 && s.p[0] == '[' && s.p[s.len - 1] == ']')
        return is_v6((hfd_slice){s.p + 1, s.len - 2});
    if (s.len == 0 || s.len > HOST_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!hfd_is_alnum(s.p[i]) && s.p[i] != '.' && s.p[i] != '-')
            return false;
        numeric = numeric && (s.p[i] == '.' || is_digit(s.p[i]));
    }
    return !numeric || is_v4(s);
}

/* Cuts off and returns the part of s before the first character of `set`. */
static hfd_slice cut_before(hfd_slice *s, const char *set)
{
    hfd_slice head = {s->p, 0};

    while (head.len < s->len && memchr(set, s->p[head.len], strlen(set)) == NULL)
        head.len++;
    *s = (hfd_slice){s->p + head.len, s->len - head.len};
    return head;
}

hfd_slice hfd_authority_host(hfd_slice rest)
{
    const bool v6 = rest.len > 0 && rest.p[0] == '[';
    const char *end;
    hfd_slice host;

    if (rest.len == 0 || memchr(rest.p, '@', rest.len) != NULL)
        return HFD_SLICE_NONE;
    rest = v6 ? (hfd_slice){rest.p + 1, rest.len - 1} : rest;
    end = rest.len > 0 ? memchr(rest.p, v6 ? ']' : ':', rest.len) : NULL;
    if (v6 && end == NULL)
        return HFD_SLICE_NONE;
    host = (hfd_slice){rest.p, end != NULL ? (size_t)(end - rest.p) : rest.len};
    rest = (hfd_slice){rest.p + host.len + v6, rest.len - host.len - v6};
    for (size_t i = 0; i < rest.len; i++)
        if (i == 0 ? rest.p[0] != ':' : !is_digit(rest.p[i]))
            return HFD_SLICE_NONE;
    return host;
}

hfd_slice hfd_url_authority(hfd_slice url)
{
    const char *mark = url.len > 0 ? memmem(url.p, url.len, "://", 3) : NULL;
    hfd_slice rest;

    if (mark == NULL)
        return HFD_SLICE_NONE;
    rest = (hfd_slice){mark + 3, url.len - (size_t)(mark + 3 - url.p)};
    return cut_before(&rest, "/?#");
}

/* ::1, with as many of its zeros as it is written with. */
static bool is_v6_loopback(hfd_slice s)
{
    if (s.p == NULL || !is_v6(s) || s.p[s.len - 1] != '1')
        return false;
    for (size_t i = 0; i + 1 < s.len; i++)
        if (s.p[i] != '0' && s.p[i] != ':')
            return false;
    return true;
}

bool hfd_host_is_loopback(hfd_slice host)
{
    return hfd_slice_ieq(host, HFD_SLICE("localhost")) ||
           (is_v4(host) && hfd_slice_starts(host, HFD_SLICE("127."))) || is_v6_loopback(host);
}

bool hfd_url_is_loopback(hfd_slice url)
{
    return hfd_host_is_loopback(hfd_authority_host(hfd_url_authority(url)));
}

static bool is_path(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '%' &&
            (i + 2 >= s.len || hfd_hex_value(s.p[i + 1]) < 0 || hfd_hex_value(s.p[i + 2]) < 0))
            return false;
        if (!hfd_is_alnum(s.p[i]) && memchr("/%-._~!$&'()*+,;=:@", s.p[i], 19) == NULL)
            return false;
    }
    return true;
}

static const char form[] = "http:// or https://, a host, perhaps a port and a path";

/* "host", "host:port", "[address]:port" */
static hfd_rc check_authority(hfd_slice rest, struct hfd_err *err)
{
    hfd_slice host;
    int64_t port;

    if (rest.len > 0 && memchr(rest.p, '@', rest.len) != NULL)
        return hfd_fail(err, HFD_INVALID, "expected a URL without user and password: %s", form);
    host = cut_before(&rest, rest.len > 0 && rest.p[0] == '[' ? "]" : ":");
    if (rest.len > 0 && rest.p[0] == ']') {
        host.len++;
        rest = (hfd_slice){rest.p + 1, rest.len - 1};
    }
    if (!hfd_host_is_valid(host))
        return hfd_fail(err, HFD_INVALID, "expected a URL with a host name or address: %s", form);
    if (rest.len == 0)
        return HFD_OK;
    if (rest.p[0] != ':' || rest.len > 6 ||
        hfd_parse_i64((hfd_slice){rest.p + 1, rest.len - 1}, 1, 65535, &port, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "expected a URL with a port from 1 to 65535");
    return HFD_OK;
}

hfd_rc hfd_url_check(hfd_slice text, struct hfd_err *err)
{
    hfd_slice rest = text;
    hfd_rc rc;

    if (text.len > URL_MAX)
        return hfd_fail(err, HFD_INVALID, "expected a URL of at most %d bytes, got %zu", URL_MAX,
                        text.len);
    if (!hfd_slice_starts(rest, HFD_SLICE("http://")) &&
        !hfd_slice_starts(rest, HFD_SLICE("https://")))
        return hfd_fail(err, HFD_INVALID, "expected a URL: %s", form);
    (void)cut_before(&rest, "/");
    rest = (hfd_slice){rest.p + 2, rest.len - 2};
    rc = check_authority(cut_before(&rest, "/?#"), err);
    if (rc != HFD_OK)
        return rc;
    if (rest.len > 0 &&
        (memchr(rest.p, '?', rest.len) != NULL || memchr(rest.p, '#', rest.len) != NULL))
        return hfd_fail(err, HFD_INVALID, "expected a URL without query and fragment: %s", form);
    if (!is_path(rest))
        return hfd_fail(err, HFD_INVALID, "expected a URL whose path needs no escaping: %s", form);
    return HFD_OK;
}

void hfd_url_escape(struct hfd_buf *b, hfd_slice text, const char *kept)
{
    for (size_t i = 0; i < text.len; i++) {
        if (hfd_is_alnum(text.p[i]) || (text.p[i] != '\0' && strchr(kept, text.p[i]) != NULL))
            hfd_buf_addc(b, text.p[i]);
        else
            hfd_buf_addf(b, "%%%02X", (unsigned char)text.p[i]);
    }
}
