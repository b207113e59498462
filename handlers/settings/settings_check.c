/* See settings_check.h. */
#include "handlers/settings/settings_check.h"

#include "handlers/settings/network.h"
#include "driver/base/pgurl.h"
#include "driver/base/url.h"
#include "handlers/settings/settings_value.h"

#define FILE_MAX_BYTES 4096
#define RULE_MAX 1024
#define NAME_MAX_BYTES 63
#define SOCKET_PATH_MAX 108 /* of struct sockaddr_un, with its end */

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

typedef hfd_rc check_fn(const void *member, struct hfd_err *err);

/* ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ */
static bool is_adapter_name(hfd_slice s)
{
    if (s.len == 0 || s.len > NAME_MAX_BYTES || s.p[0] == '-' || s.p[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

static hfd_rc check_address(const void *member, struct hfd_err *err)
{
    hfd_slice a = *(const hfd_slice *)member;
    const char *colon = a.len > 0 ? memrchr(a.p, ':', a.len) : NULL;
    hfd_slice host, port;
    int64_t n;

    if (hfd_slice_starts(a, HFD_SLICE("unix:")))
        return a.len > sizeof("unix:/") - 1 && a.p[sizeof("unix:") - 1] == '/' &&
                       a.len - (sizeof("unix:") - 1) < SOCKET_PATH_MAX
                   ? HFD_OK
                   : hfd_setting_expected(
                         err, "unix: and an absolute path of at most 107 characters", a);
    if (colon == NULL)
        return hfd_setting_expected(err, "HOST:PORT or [IPv6]:PORT", a);
    host = (hfd_slice){a.p, (size_t)(colon - a.p)};
    port = (hfd_slice){colon + 1, a.len - host.len - 1};
    if (!hfd_host_is_valid(host))
        return hfd_setting_expected(err, "HOST:PORT or [IPv6]:PORT", a);
    if (port.len > 5 || hfd_parse_i64(port, 0, 65535, &n, NULL) != HFD_OK)
        return hfd_setting_expected(err, "a port from 0 to 65535 behind the last colon", a);
    return HFD_OK;
}

static hfd_rc check_networks(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++)
        if (!hfd_network_is_valid(l->items[i]))
            return hfd_setting_expected(err, "IP addresses, networks as 10.0.0.0/8, or unix",
                                        l->items[i]);
    return HFD_OK;
}

/* Checks an octal mode without rights to execute. */
static hfd_rc check_mode(const void *member, struct hfd_err *err)
{
    const hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len >= 3 && s.len <= 4 && (s.len == 3 || s.p[0] == '0');

    for (size_t i = 0; ok && i < s.len; i++)
        ok = s.p[i] == '0' || s.p[i] == '2' || s.p[i] == '4' || s.p[i] == '6';
    return ok ? HFD_OK : hfd_setting_expected(err, "an octal mode like 0660", s);
}

static hfd_rc check_hosts(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++)
        if (!hfd_host_is_valid(l->items[i]))
            return hfd_setting_expected(err, "host names or addresses without a port", l->items[i]);
    return HFD_OK;
}

static hfd_rc check_store(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    if (hfd_slice_is(s, "sqlite"))
        return HFD_OK;
    if (hfd_pgurl_is(s))
        return hfd_pgurl_check(s, err);
    return hfd_setting_expected(err, "sqlite or postgres://USER@HOST:PORT/DATABASE", s);
}

static hfd_rc check_url(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return s.len == 0 ? HFD_OK : hfd_url_check(s, err);
}

static hfd_rc check_backend(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    char quoted[HFD_QUOTE_MAX];
    struct hfd_err why;

    if (hfd_slice_is(s, "embedded") || hfd_url_check(s, &why) == HFD_OK)
        return HFD_OK;
    /* A value with @ may contain a password, and is not quoted. */
    if (s.len > 0 && memchr(s.p, '@', s.len) != NULL)
        return hfd_fail(err, HFD_INVALID, "expected embedded or the URL of a HyperFleet; %s",
                        why.msg);
    return hfd_fail(err, HFD_INVALID, "expected embedded or the URL of a HyperFleet; %s, got %s",
                    why.msg, hfd_setting_quote(s, quoted));
}

/* Checks the prefix of /{driver}/{GUResID}; "api" belongs to HyperFleet, "t" to secret paths. */
static hfd_rc check_path(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len > 0 && s.len <= NAME_MAX_BYTES && hfd_is_alnum(s.p[0]) &&
              hfd_is_alnum(s.p[s.len - 1]) && !hfd_slice_is(s, "api") && !hfd_slice_is(s, "t");

    for (size_t i = 0; ok && i < s.len; i++)
        ok = hfd_is_alnum(s.p[i]) || s.p[i] == '-' || s.p[i] == '_' || s.p[i] == '.';
    return ok ? HFD_OK
              : hfd_setting_expected(
                    err,
                    "one path segment of letters, digits and - _ . between them, not \"api\" or "
                    "\"t\"",
                    s);
}

/* Returns the next character of an adapter's condition (gcp-vm: GcpVmSuccessful), or NUL. */
static char condition_char(hfd_slice name, size_t *at)
{
    bool first = *at == 0; /* of a word */
    char c;

    for (; *at < name.len && name.p[*at] == '-'; (*at)++)
        first = true;
    if (*at == name.len)
        return '\0';
    c = name.p[(*at)++];
    return first && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same_condition(hfd_slice a, hfd_slice b)
{
    size_t at_a = 0, at_b = 0;
    char c;

    do {
        c = condition_char(a, &at_a);
        if (c != condition_char(b, &at_b))
            return false;
    } while (c != '\0');
    return true;
}

static hfd_rc check_adapters(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++) {
        if (!is_adapter_name(l->items[i]))
            return hfd_setting_expected(
                err, "adapter names of lower-case letters, digits and - between them", l->items[i]);
        for (size_t k = 0; k < i; k++) {
            if (same_condition(l->items[k], l->items[i]))
                return hfd_setting_expected(
                    err, "adapter names whose conditions differ; dashes do not count", l->items[i]);
        }
    }
    return HFD_OK;
}

/* ^[a-z0-9][a-z0-9-]+[a-z0-9]$, the pattern of `type` in schemas/input.json */
static bool is_type_name(hfd_slice s)
{
    if (s.len < 3 || s.p[0] == '-' || s.p[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_lower_alnum(s.p[i]) && s.p[i] != '-')
            return false;
    }
    return true;
}

static hfd_rc check_types(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++) {
        if (memchr(l->items[i].p, '/', l->items[i].len) != NULL)
            return hfd_setting_expected(err, "types without the part in front of /", l->items[i]);
        if (!is_type_name(l->items[i]))
            return hfd_setting_expected(
                err, "types of 3 or more lower-case letters, digits and - between them",
                l->items[i]);
    }
    return HFD_OK;
}

/* Checks that paths begin with a member that the driver knows; others would have no effect. */
static hfd_rc check_dotted_paths(const void *member, struct hfd_err *err)
{
    static const char *const members[] = {"cluster", "nodepools", "nodepool", "cluster_id",
                                          "cluster_guresid"};
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++) {
        hfd_slice s = l->items[i];
        const char *dot = memchr(s.p, '.', s.len);
        const hfd_slice first = {s.p, dot != NULL ? (size_t)(dot - s.p) : s.len};
        bool known = false;

        for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
            known = known || hfd_slice_is(first, members[k]);
        if (!known || s.p[s.len - 1] == '.' || memmem(s.p, s.len, "..", 2) != NULL)
            return hfd_setting_expected(
                err,
                "dotted paths below cluster, nodepools, nodepool, cluster_id or "
                "cluster_guresid: cluster.spec.region",
                s);
    }
    return HFD_OK;
}

static hfd_rc check_format(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return hfd_slice_is(s, "auto") || hfd_slice_is(s, "json") || hfd_slice_is(s, "text")
               ? HFD_OK
               : hfd_setting_expected(err, "auto, json or text", s);
}

static hfd_rc check_conditions(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return hfd_slice_is(s, "ready") || hfd_slice_is(s, "reconciled") || hfd_slice_is(s, "both")
               ? HFD_OK
               : hfd_setting_expected(err, "ready, reconciled or both", s);
}

/* Checks a field name: RFC 9110, 5.6.2. */
static hfd_rc check_header(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len <= NAME_MAX_BYTES;

    for (size_t i = 0; ok && i < s.len; i++)
        ok = hfd_is_alnum(s.p[i]) || memchr("!#$%&'*+-.^_`|~", s.p[i], 15) != NULL;
    return ok ? HFD_OK
              : hfd_setting_expected(err, "the name of a request header, of at most 63 characters",
                                     s);
}

/* RFC 6901: empty, or beginning with /, with ~ only as ~0 and ~1. */
static bool is_pointer(hfd_slice s)
{
    if (s.len > 0 && s.p[0] != '/')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '~' && (i + 1 == s.len || (s.p[i + 1] != '0' && s.p[i + 1] != '1')))
            return false;
    }
    return true;
}

/* ADAPTER:/json/pointer */
static hfd_rc check_output_rule(hfd_slice value, struct hfd_err *err)
{
    const char *colon = value.len > 0 ? memchr(value.p, ':', value.len) : NULL;
    hfd_rc rc = hfd_setting_check_text(value, RULE_MAX, err);
    size_t n;

    if (rc != HFD_OK)
        return rc;
    if (colon == NULL)
        return hfd_setting_expected(err, "ADAPTER:/json/pointer", value);
    n = (size_t)(colon - value.p);
    if (!is_adapter_name((hfd_slice){value.p, n}) ||
        !is_pointer((hfd_slice){colon + 1, value.len - n - 1}))
        return hfd_setting_expected(err, "ADAPTER:/json/pointer", value);
    return HFD_OK;
}

/* Checks REASON or ADAPTER:REASON; a reason may contain colons. */
static hfd_rc check_rule(const void *member, struct hfd_err *err)
{
    const hfd_slice *rule = member;

    return rule->len == 0 ? HFD_OK : check_output_rule(*rule, err);
}

static hfd_rc check_reasons(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++) {
        const hfd_slice s = l->items[i];

        if (!hfd_is_alnum(s.p[0]) || !hfd_is_alnum(s.p[s.len - 1]))
            return hfd_setting_expected(
                err, "reasons like QuotaExceeded, or dns:QuotaExceeded for those of one adapter",
                s);
    }
    return HFD_OK;
}

/* Refuses headers that the program sends itself. */
static hfd_rc check_own_header(const void *member, struct hfd_err *err)
{
    static const char *const taken[] = {"accept",
                                        "authorization",
                                        "connection",
                                        "content-length",
                                        "content-type",
                                        "cookie",
                                        "expect",
                                        "host",
                                        "te",
                                        "trailer",
                                        "transfer-encoding",
                                        "upgrade",
                                        "user-agent"};
    hfd_slice s = *(const hfd_slice *)member;

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (hfd_slice_ieq(s, hfd_slice_of(taken[i])))
            return hfd_setting_expected(err, "a header that this program does not set itself", s);
    return check_header(member, err);
}

/* Checks for printable ASCII. */
static hfd_rc check_header_value(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok =
        s.len <= HFD_SETTING_ITEM_MAX && (s.len == 0 || (s.p[0] != ' ' && s.p[s.len - 1] != ' '));

    for (size_t i = 0; ok && i < s.len; i++)
        ok = s.p[i] >= ' ' && s.p[i] <= '~';
    return ok ? HFD_OK : hfd_setting_expected(err, "at most 253 printable ASCII characters", s);
}

/* Checks a DNS label, which may be the name of a namespace. */
static hfd_rc check_namespace(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return is_adapter_name(s)
               ? HFD_OK
               : hfd_setting_expected(
                     err, "a namespace of lower-case letters, digits and - between them", s);
}

/* Checks a host name or an address, of IPv6 without brackets as well. */
static hfd_rc check_node_address(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool v6 = s.len > 0 && memchr(s.p, ':', s.len) != NULL;

    for (size_t i = 0; v6 && i < s.len; i++)
        v6 = hfd_hex_value(s.p[i]) >= 0 || s.p[i] == ':' || s.p[i] == '.';
    return s.len == 0 || v6 || (s.p[0] != '[' && hfd_host_is_valid(s))
               ? HFD_OK
               : hfd_setting_expected(err, "a host name or an address without a port", s);
}

static check_fn *const checks[HFD_SETTING_COUNT] = {
    [HFD_SETTING_listen] = check_address,
    [HFD_SETTING_ops_listen] = check_address,
    [HFD_SETTING_http_hosts] = check_hosts,
    [HFD_SETTING_http_trusted_proxies] = check_networks,
    [HFD_SETTING_http_socket_mode] = check_mode,
    [HFD_SETTING_auth_networks] = check_networks,
    [HFD_SETTING_store] = check_store,
    [HFD_SETTING_store_patroni] = check_url,
    [HFD_SETTING_backend] = check_backend,
    [HFD_SETTING_path_cluster] = check_path,
    [HFD_SETTING_path_nodepool] = check_path,
    [HFD_SETTING_required_cluster] = check_adapters,
    [HFD_SETTING_required_nodepool] = check_adapters,
    [HFD_SETTING_pacemaker] = check_adapters,
    [HFD_SETTING_log_format] = check_format,
    [HFD_SETTING_fleet_conditions] = check_conditions,
    [HFD_SETTING_fleet_identity_header] = check_header,
    [HFD_SETTING_remote_identity_header] = check_own_header,
    [HFD_SETTING_remote_identity] = check_header_value,
    [HFD_SETTING_hypershift_namespace] = check_namespace,
    [HFD_SETTING_hypershift_nodeport_address] = check_node_address,
    [HFD_SETTING_types_cluster] = check_types,
    [HFD_SETTING_types_nodepool] = check_types,
    [HFD_SETTING_resource_overrides] = check_dotted_paths,
    [HFD_SETTING_terminal_reasons] = check_reasons,
    [HFD_SETTING_output_manifests] = check_rule,
};

hfd_rc hfd_setting_check(enum hfd_setting which, const void *member, struct hfd_err *err)
{
    return checks[which] != NULL ? checks[which](member, err) : HFD_OK;
}

hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err)
{
    bool ok = name.len > 0 && name.len <= NAME_MAX_BYTES && (name.p[0] < '0' || name.p[0] > '9') &&
              name.p[0] != '-';

    for (size_t i = 0; ok && i < name.len; i++)
        ok = hfd_is_alnum(name.p[i]) || name.p[i] == '_' || name.p[i] == '-';
    return ok ? HFD_OK
              : hfd_setting_expected(
                    err,
                    "a name of at most 63 letters, digits, _ and -, beginning with a letter or _",
                    name);
}

hfd_rc hfd_setting_entry_check(const struct hfd_setting_row *row, hfd_slice value,
                               struct hfd_err *err)
{
    if (row->type == HFD_SETTING_TYPE_MAP)
        return check_output_rule(value, err);
    return value.len > 0 ? hfd_setting_check_text(value, FILE_MAX_BYTES, err)
                         : hfd_setting_expected(err, "a kubeconfig file, or in-cluster", value);
}
