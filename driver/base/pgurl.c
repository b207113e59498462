/* See pgurl.h. Source: PostgreSQL 15, Connection URIs; RFC 3986. */
#include "driver/base/pgurl.h"

#define NAME_MAX_BYTES 63 /* of a database, as PostgreSQL cuts longer ones */

static const char form[] = "postgres://USER@HOST:PORT/DATABASE";

/* The parts of a URL; each is empty if it is absent. */
struct parts {
    hfd_slice scheme;   /* with :// */
    hfd_slice user;     /* without password */
    hfd_slice password; /* p == NULL = none */
    hfd_slice hosts;
    hfd_slice database;
    hfd_slice query; /* behind the ? */
};

static bool has_char(hfd_slice s, char c)
{
    return s.len > 0 && memchr(s.p, c, s.len) != NULL;
}

static size_t scheme_len(hfd_slice text)
{
    if (hfd_slice_starts(text, HFD_SLICE("postgres://")))
        return sizeof("postgres://") - 1;
    return hfd_slice_starts(text, HFD_SLICE("postgresql://")) ? sizeof("postgresql://") - 1 : 0;
}

bool hfd_pgurl_is(hfd_slice text)
{
    return scheme_len(text) > 0;
}

/* The user ends at the first @ in front of the path. */
static struct parts split(hfd_slice url)
{
    const size_t head = scheme_len(url);
    hfd_slice rest = {url.p + head, url.len - head}, authority;
    struct parts p = {.scheme = {url.p, head}};
    hfd_slice before_query = hfd_slice_cut(&rest, '?');

    p.query = rest;
    authority = hfd_slice_cut(&before_query, '/');
    p.database = before_query;
    if (has_char(authority, '@')) {
        hfd_slice login = hfd_slice_cut(&authority, '@');
        const bool secret = has_char(login, ':');

        p.user = hfd_slice_cut(&login, ':');
        p.password = secret ? login : HFD_SLICE_NONE;
    }
    p.hosts = authority;
    return p;
}

/* True for a text of plain characters and %XX that may have those of `more` too. */
static bool is_escaped(hfd_slice s, const char *more)
{
    const hfd_slice also = hfd_slice_of(more);

    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '%' &&
            (i + 2 >= s.len || hfd_hex_value(s.p[i + 1]) < 0 || hfd_hex_value(s.p[i + 2]) < 0))
            return false;
        if (!hfd_is_alnum(s.p[i]) && !has_char(HFD_SLICE("%-._~"), s.p[i]) &&
            !has_char(also, s.p[i]))
            return false;
    }
    return true;
}

/* libpq unescapes names too; without escapes a password is found by its name. */
static bool is_name(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hfd_is_alnum(s.p[i]) && s.p[i] != '_')
            return false;
    return s.len > 0;
}

/* "host", "host:port", "[address]:port"; %2Frun%2Fpostgresql is the folder of a socket. */
static hfd_rc check_host(hfd_slice text, struct hfd_err *err)
{
    hfd_slice rest = text, host;
    bool ok, has_port = false;
    int64_t port;

    if (rest.len > 0 && rest.p[0] == '[') {
        host = hfd_slice_cut(&rest, ']');
        ok = host.len > 1 && host.len < text.len &&
             is_escaped((hfd_slice){host.p + 1, host.len - 1}, ":");
        has_port = rest.len > 0;
        ok = ok && (!has_port || rest.p[0] == ':');
        if (has_port)
            (void)hfd_slice_cut(&rest, ':');
    } else {
        has_port = has_char(rest, ':');
        host = hfd_slice_cut(&rest, ':');
        ok = host.len > 0 && is_escaped(host, "");
    }
    if (!ok)
        return hfd_fail(err, HFD_INVALID, "expected host names or addresses between commas in %s",
                        form);
    if (has_port && (rest.len > 5 || hfd_parse_i64(rest, 1, 65535, &port, NULL) != HFD_OK))
        return hfd_fail(err, HFD_INVALID,
                        "expected a port from 1 to 65535 behind a host, in %s; a password with "
                        "/ ? @ or : has them as %%2F %%3F %%40 %%3A",
                        form);
    return HFD_OK;
}

static hfd_rc check_hosts(hfd_slice hosts, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (hosts.len > 0 && hosts.p[hosts.len - 1] == ',')
        return hfd_fail(err, HFD_INVALID, "expected a host behind each comma in %s", form);
    while (rc == HFD_OK && hosts.len > 0)
        rc = check_host(hfd_slice_cut(&hosts, ','), err);
    return rc;
}

static hfd_rc check_query(hfd_slice query, struct hfd_err *err)
{
    while (query.len > 0) {
        hfd_slice value = hfd_slice_cut(&query, '&'), name;
        const bool has_value = has_char(value, '=');

        name = hfd_slice_cut(&value, '=');
        if (!has_value || !is_name(name) || !is_escaped(value, "/:@,+!$'()*;"))
            return hfd_fail(err, HFD_INVALID,
                            "expected name=value with & between them behind the ? of a PostgreSQL "
                            "URL");
    }
    return HFD_OK;
}

hfd_rc hfd_pgurl_check(hfd_slice text, struct hfd_err *err)
{
    struct parts p;
    hfd_rc rc;

    if (!hfd_pgurl_is(text))
        return hfd_fail(err, HFD_INVALID, "expected a PostgreSQL URL: %s", form);
    p = split(text);
    if (!is_escaped(p.user, "!$&'()*+;=,") || !is_escaped(p.password, "!$&'()*+;=,:"))
        return hfd_fail(err, HFD_INVALID,
                        "expected other characters than letters and digits as %%XX in user and "
                        "password of %s",
                        form);
    if (hfd_slice_is(p.password, HFD_PGURL_HIDDEN))
        return hfd_fail(err, HFD_INVALID,
                        "expected a password in place of *** in the PostgreSQL URL, or none and "
                        "store.password_file");
    rc = check_hosts(p.hosts, err);
    if (rc != HFD_OK)
        return rc;
    if (!is_escaped(p.database, "") || p.database.len > 3 * (size_t)NAME_MAX_BYTES)
        return hfd_fail(err, HFD_INVALID, "expected one name of a database behind / in %s", form);
    return check_query(p.query, err);
}

static bool is_secret(hfd_slice name)
{
    return hfd_slice_is(name, "password") || hfd_slice_is(name, "sslpassword");
}

/* True if a checked URL has the parameter behind its `?`. */
static bool has_parameter(hfd_slice url, const char *name)
{
    hfd_slice query = split(url).query;

    while (query.len > 0) {
        hfd_slice value = hfd_slice_cut(&query, '&');

        if (hfd_slice_is(hfd_slice_cut(&value, '='), name))
            return true;
    }
    return false;
}

bool hfd_pgurl_has_password(hfd_slice url)
{
    return split(url).password.p != NULL || has_parameter(url, "password");
}

static void mask_query(struct hfd_buf *b, hfd_slice query)
{
    char before = '?';

    while (query.len > 0) {
        hfd_slice value = hfd_slice_cut(&query, '&');
        const hfd_slice name = hfd_slice_cut(&value, '=');

        hfd_buf_addf(b, "%c%.*s=", before, HFD_SLICE_FMT(name));
        hfd_buf_add(b, is_secret(name) ? HFD_SLICE(HFD_PGURL_HIDDEN) : value);
        before = '&';
    }
}

void hfd_pgurl_mask(struct hfd_buf *b, hfd_slice url)
{
    const struct parts p = split(url);

    hfd_buf_add(b, p.scheme);
    hfd_buf_add(b, p.user);
    if (p.password.p != NULL)
        hfd_buf_lit(b, ":" HFD_PGURL_HIDDEN);
    if (p.password.p != NULL || p.user.len > 0)
        hfd_buf_addc(b, '@');
    hfd_buf_add(b, p.hosts);
    if (p.database.len > 0 || p.database.p > p.hosts.p + p.hosts.len)
        hfd_buf_addf(b, "/%.*s", HFD_SLICE_FMT(p.database));
    mask_query(b, p.query);
}
