/* One value of the settings: text in, checked value out, and back. Pure. Thread: start-up. */
#include "handlers/settings/settings_int.h"

#include "driver/base/amqpurl.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/pgurl.h"
#include "driver/base/url.h"
#include "driver/base/utf8.h"
#include "handlers/settings/network.h"

/* ---- checks of single settings ---- */

#define HFD_SETTING_ITEM_MAX 253 /* bytes of an item of a list */
#define FILE_MAX_BYTES 4096
#define RULE_MAX 1024
#define NAME_MAX_BYTES 63
#define SOCKET_PATH_MAX 108 /* of struct sockaddr_un, with its end */

/* Lower-case letters, digits, and - between them. */
static bool is_label(hfd_slice s, size_t min, size_t max)
{
    if (s.len < min || s.len > max || s.p[0] == '-' || s.p[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '-')
            return false;
    return true;
}

static bool is_adapter_name(hfd_slice s)
{
    return is_label(s, 1, NAME_MAX_BYTES);
}

static hfd_rc setting_expected(struct hfd_err *err, const char *what, hfd_slice got);

static hfd_rc address(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    const hfd_slice a = items[i];
    const char *colon = a.len > 0 ? memrchr(a.p, ':', a.len) : NULL;
    hfd_slice host, port;
    int64_t n;

    if (hfd_slice_starts(a, HFD_SLICE("unix:")))
        return a.len > sizeof("unix:/") - 1 && a.p[sizeof("unix:") - 1] == '/' &&
                       a.len - (sizeof("unix:") - 1) < SOCKET_PATH_MAX
                   ? HFD_OK
                   : setting_expected(err, "unix: and an absolute path of at most 107 characters",
                                      a);
    if (colon == NULL)
        return setting_expected(err, "HOST:PORT or [IPv6]:PORT", a);
    host = (hfd_slice){a.p, (size_t)(colon - a.p)};
    port = (hfd_slice){colon + 1, a.len - host.len - 1};
    if (!hfd_host_is_valid(host))
        return setting_expected(err, "HOST:PORT or [IPv6]:PORT", a);
    if (port.len > 5 || hfd_parse_i64(port, 0, 65535, &n, NULL) != HFD_OK)
        return setting_expected(err, "a port from 0 to 65535 behind the last colon", a);
    return HFD_OK;
}

/* True for an octal mode without rights to execute. */
static bool is_mode(hfd_slice s)
{
    bool ok = s.len >= 3 && s.len <= 4 && (s.len == 3 || s.p[0] == '0');

    for (size_t k = 0; ok && k < s.len; k++)
        ok = s.p[k] == '0' || s.p[k] == '2' || s.p[k] == '4' || s.p[k] == '6';
    return ok;
}

static hfd_rc store(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    const hfd_slice s = items[i];

    if (hfd_slice_is(s, "sqlite"))
        return HFD_OK;
    if (hfd_pgurl_is(s))
        return hfd_pgurl_check(s, err);
    return setting_expected(err, "sqlite or postgres://USER@HOST:PORT/DATABASE", s);
}

static hfd_rc url(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    const hfd_slice s = items[i];

    return s.len == 0 ? HFD_OK : hfd_url_check(s, err);
}

static hfd_rc amqp(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    struct hfd_amqp_url parsed;

    return items[i].len == 0 ? HFD_OK : hfd_amqp_url_parse(items[i], &parsed, err);
}

/* A name of AMQP 0-9-1. RabbitMQ keeps those that begin with amq. for itself. */
static bool is_exchange(hfd_slice s)
{
    bool ok = s.len > 0 && s.len <= 127 && !hfd_slice_starts(s, HFD_SLICE("amq."));

    for (size_t k = 0; ok && k < s.len; k++)
        ok = hfd_is_alnum(s.p[k]) || memchr("-_.:", s.p[k], 4) != NULL;
    return ok;
}

static hfd_rc backend(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    const hfd_slice s = items[i];
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

/* The prefix of /{driver}/{GUResID}; "api" belongs to HyperFleet, "t" to secret paths. */
static bool is_path(hfd_slice s)
{
    bool ok = s.len > 0 && s.len <= NAME_MAX_BYTES && hfd_is_alnum(s.p[0]) &&
              hfd_is_alnum(s.p[s.len - 1]) && !hfd_slice_is(s, "api") && !hfd_slice_is(s, "t");

    for (size_t k = 0; ok && k < s.len; k++)
        ok = hfd_is_alnum(s.p[k]) || s.p[k] == '-' || s.p[k] == '_' || s.p[k] == '.';
    return ok;
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

static hfd_rc other_condition(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    for (size_t k = 0; k < i; k++)
        if (same_condition(items[k], items[i]))
            return setting_expected(
                err, "adapter names whose conditions differ; dashes do not count", items[i]);
    return HFD_OK;
}

static bool has_no_slash(hfd_slice s)
{
    return memchr(s.p, '/', s.len) == NULL;
}

/* ^[a-z0-9][a-z0-9-]+[a-z0-9]$, the pattern of `type` in schemas/input.json. */
static bool is_type(hfd_slice s)
{
    return is_label(s, 3, HFD_SETTING_ITEM_MAX);
}

/* True for a path that begins with a member that the driver knows; others would have no effect. */
static bool is_dotted_path(hfd_slice s)
{
    static const char *const members[] = {"cluster", "nodepools", "nodepool", "cluster_id",
                                          "cluster_guresid"};
    const char *dot = memchr(s.p, '.', s.len);
    const hfd_slice first = {s.p, dot != NULL ? (size_t)(dot - s.p) : s.len};
    bool known = false;

    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
        known = known || hfd_slice_is(first, members[k]);
    return known && s.p[s.len - 1] != '.' && memmem(s.p, s.len, "..", 2) == NULL;
}

static bool is_format(hfd_slice s)
{
    return hfd_slice_is(s, "auto") || hfd_slice_is(s, "json") || hfd_slice_is(s, "text");
}

static bool is_drift(hfd_slice s)
{
    return hfd_slice_is(s, "report") || hfd_slice_is(s, "repair") || hfd_slice_is(s, "ignore");
}

/* True for a path to a field of a spec or to a label. */
static bool is_part_path(hfd_slice s)
{
    static const char *const starts[] = {"cluster.spec.", "cluster.labels.", "nodepool.spec.",
                                         "nodepool.labels."};
    bool known = false;

    for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++)
        known =
            known || (s.len > strlen(starts[k]) && hfd_slice_starts(s, hfd_slice_of(starts[k])));
    return known && s.p[s.len - 1] != '.' && memmem(s.p, s.len, "..", 2) == NULL;
}

static bool is_vocabulary(hfd_slice s)
{
    return hfd_slice_is(s, "ready") || hfd_slice_is(s, "reconciled") || hfd_slice_is(s, "both");
}

/* A field name: RFC 9110, 5.6.2. */
static bool is_header(hfd_slice s)
{
    bool ok = s.len <= NAME_MAX_BYTES;

    for (size_t k = 0; ok && k < s.len; k++)
        ok = hfd_is_alnum(s.p[k]) || memchr("!#$%&'*+-.^_`|~", s.p[k], 15) != NULL;
    return ok;
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

static hfd_rc setting_check_text(hfd_slice s, size_t max_bytes, struct hfd_err *err);

/* ADAPTER:/json/pointer */
static hfd_rc check_output_rule(hfd_slice value, struct hfd_err *err)
{
    const char *colon = value.len > 0 ? memchr(value.p, ':', value.len) : NULL;
    hfd_rc rc = setting_check_text(value, RULE_MAX, err);
    size_t n;

    if (rc != HFD_OK)
        return rc;
    if (colon == NULL)
        return setting_expected(err, "ADAPTER:/json/pointer", value);
    n = (size_t)(colon - value.p);
    if (!is_adapter_name((hfd_slice){value.p, n}) ||
        !is_pointer((hfd_slice){colon + 1, value.len - n - 1}))
        return setting_expected(err, "ADAPTER:/json/pointer", value);
    return HFD_OK;
}

static hfd_rc rule(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    return items[i].len == 0 ? HFD_OK : check_output_rule(items[i], err);
}

/* REASON or ADAPTER:REASON; a reason may contain colons. */
static bool is_reason(hfd_slice s)
{
    return hfd_is_alnum(s.p[0]) && hfd_is_alnum(s.p[s.len - 1]);
}

static bool is_label_pair(hfd_slice s)
{
    return s.p[0] != '=' && memchr(s.p, '=', s.len) != NULL;
}

/* False for headers that the program sends itself. */
static bool is_free_header(hfd_slice s)
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

    for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
        if (hfd_slice_ieq(s, hfd_slice_of(taken[k])))
            return false;
    return true;
}

/* True for printable ASCII. */
static bool is_header_value(hfd_slice s)
{
    bool ok =
        s.len <= HFD_SETTING_ITEM_MAX && (s.len == 0 || (s.p[0] != ' ' && s.p[s.len - 1] != ' '));

    for (size_t k = 0; ok && k < s.len; k++)
        ok = s.p[k] >= ' ' && s.p[k] <= '~';
    return ok;
}

static bool is_given(hfd_slice s)
{
    return s.len > 0;
}

/* A URL that may have user info and a query. */
struct hook_url {
    hfd_slice scheme; /* with its :// */
    hfd_slice user, query;
    hfd_slice rest; /* host, port and path */
};

static struct hook_url split_url(hfd_slice s)
{
    const hfd_slice whole = hfd_url_authority(s);
    const char *start = whole.p != NULL ? whole.p : s.p;
    const char *at = whole.p != NULL ? memrchr(whole.p, '@', whole.len) : NULL;
    const char *query = s.len > 0 ? memchr(s.p, '?', s.len) : NULL;
    const char *rest = at != NULL ? at + 1 : start, *end = query != NULL ? query : s.p + s.len;

    return (struct hook_url){.scheme = {s.p, (size_t)(start - s.p)},
                             .user = {start, (size_t)(rest - start)},
                             .query = {end, (size_t)(s.p + s.len - end)},
                             .rest = {rest, (size_t)(end - rest)}};
}

/* It is not quoted, as user and query may be secrets. */
static hfd_rc hook_url(const hfd_slice *items, size_t i, struct hfd_err *err)
{
    const struct hook_url url = split_url(items[i]);
    char plain[FILE_MAX_BYTES + 1];

    for (size_t k = 0; k < items[i].len; k++)
        if (items[i].p[k] <= ' ' || items[i].p[k] > '~' || items[i].p[k] == '#')
            return hfd_fail(err, HFD_INVALID,
                            "expected a URL of printable ASCII without spaces and #");
    (void)snprintf(plain, sizeof(plain), "%.*s%.*s", HFD_SLICE_FMT(url.scheme),
                   HFD_SLICE_FMT(url.rest));
    return hfd_url_check(hfd_slice_of(plain), err);
}

/* "reconcile", "states", or both with a comma. */
static bool is_hook_types(hfd_slice s)
{
    while (s.len > 0) {
        const char *comma = memchr(s.p, ',', s.len);
        const size_t n = comma != NULL ? (size_t)(comma - s.p) : s.len;
        const hfd_slice item = hfd_slice_trim((hfd_slice){s.p, n});

        if (!hfd_slice_is(item, "reconcile") && !hfd_slice_is(item, "states"))
            return false;
        if (comma == NULL)
            return true;
        s = (hfd_slice){comma + 1, s.len - n - 1};
    }
    return false;
}

/* True for a host name or an address, of IPv6 without brackets as well. */
static bool is_node_address(hfd_slice s)
{
    bool v6 = s.len > 0 && memchr(s.p, ':', s.len) != NULL;

    for (size_t k = 0; v6 && k < s.len; k++)
        v6 = hfd_hex_value(s.p[k]) >= 0 || s.p[k] == ':' || s.p[k] == '.';
    return s.len == 0 || v6 || (s.p[0] != '[' && hfd_host_is_valid(s));
}

/* clang-format off */
/* The steps of each check that a row of HFD_SETTING_LIST names. */
#define CHECK_(name, ...) static const struct hfd_setting_check check_##name[] = {__VA_ARGS__, {.is = NULL}}
#define HEADER_ {is_header, "the name of a request header, of at most 63 characters", NULL}
CHECK_(address, {.check = address});
CHECK_(network, {hfd_network_is_valid, "IP addresses, networks as 10.0.0.0/8, or unix", NULL});
CHECK_(mode, {is_mode, "an octal mode like 0660", NULL});
CHECK_(file, {is_given, "a file", NULL});
CHECK_(kubeconfig, {is_given, "a kubeconfig file, or in-cluster", NULL});
CHECK_(hook_url, {.check = hook_url});
CHECK_(hook_types, {is_hook_types, "a list of reconcile and states", NULL});
CHECK_(host, {hfd_host_is_valid, "host names or addresses without a port", NULL});
CHECK_(store, {.check = store});
CHECK_(url, {.check = url});
CHECK_(backend, {.check = backend});
CHECK_(amqp, {.check = amqp});
CHECK_(exchange, {is_exchange, "a name of 1 to 127 letters, digits and - _ . : that does not begin with amq.", NULL});
CHECK_(path, {is_path, "one path segment of letters, digits and - _ . between them, not \"api\" or \"t\"", NULL});
CHECK_(adapter, {is_adapter_name, "adapter names of lower-case letters, digits and - between them", NULL}, {.check = other_condition});
CHECK_(type, {has_no_slash, "types without the part in front of /", NULL},
       {is_type, "types of 3 or more lower-case letters, digits and - between them", NULL});
CHECK_(dotted_path, {is_dotted_path, "dotted paths below cluster, nodepools, nodepool, cluster_id or cluster_guresid: cluster.spec.region", NULL});
CHECK_(drift, {is_drift, "report, repair or ignore", NULL});
CHECK_(part_path, {is_part_path, "fields as nodepool.spec.replicas, below cluster or nodepool and spec or labels", NULL});
CHECK_(format, {is_format, "auto, json or text", NULL});
CHECK_(conditions, {is_vocabulary, "ready, reconciled or both", NULL});
CHECK_(header, HEADER_);
CHECK_(own_header, {is_free_header, "a header that this program does not set itself", NULL}, HEADER_);
CHECK_(header_value, {is_header_value, "at most 253 printable ASCII characters", NULL});
CHECK_(namespace, {is_adapter_name, "a namespace of lower-case letters, digits and - between them", NULL});
CHECK_(node_address, {is_node_address, "a host name or an address without a port", NULL});
CHECK_(reason, {is_reason, "reasons like QuotaExceeded, or dns:QuotaExceeded for those of one adapter", NULL});
CHECK_(label, {is_label_pair, "labels as key=value: environment=production", NULL});
CHECK_(rule, {.check = rule});
#undef HEADER_
#undef CHECK_
/* clang-format on */

/* ---- the table ---- */

/* clang-format off */
#define ROW_(key_, member_, type_, def_, min_, max_, ...)                                                                     \
    [HFD_SETTING_##member_] = {.key = (key_), .which = HFD_SETTING_##member_, .type = HFD_SETTING_TYPE_##type_,               \
                               .offset = offsetof(struct hfd_settings, member_), .def = (def_), .min = (min_), .max = (max_), \
                               .text = __VA_ARGS__},
/* clang-format on */
const struct hfd_setting_row hfd_setting_rows[HFD_SETTING_COUNT] = {HFD_SETTING_LIST(ROW_)};
#undef ROW_

/* Checks a parsed value. @return HFD_OK, HFD_INVALID */
static hfd_rc setting_check(const struct hfd_setting_row *row, const void *member,
                            struct hfd_err *err)
{
    const struct hfd_list *l = member;
    const bool is_list = row->type == HFD_SETTING_TYPE_LIST;
    const hfd_slice *items = is_list ? l->items : member;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; row->checks != NULL && i < (is_list ? l->count : 1); i++)
        for (const struct hfd_setting_check *c = row->checks; c->is != NULL || c->check != NULL;
             c++) {
            if (c->check != NULL)
                rc = c->check(items, i, err);
            else if (!c->is(items[i]))
                rc = setting_expected(err, c->expected, items[i]);
            if (rc != HFD_OK)
                return rc;
        }
    return HFD_OK;
}

hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err)
{
    bool ok = name.len > 0 && name.len <= NAME_MAX_BYTES && (name.p[0] < '0' || name.p[0] > '9') &&
              name.p[0] != '-';

    for (size_t i = 0; ok && i < name.len; i++)
        ok = hfd_is_alnum(name.p[i]) || name.p[i] == '_' || name.p[i] == '-';
    return ok ? HFD_OK
              : setting_expected(
                    err,
                    "a name of at most 63 letters, digits, _ and -, beginning with a letter or _",
                    name);
}

hfd_rc hfd_setting_entry_check(const struct hfd_setting_row *row, const struct hfd_pair *entry,
                               struct hfd_err *err)
{
    hfd_rc rc;

    if (row->type == HFD_SETTING_TYPE_MAP)
        return check_output_rule(entry->value, err);
    if (row->which == HFD_SETTING_hypershift_management && hfd_slice_is(entry->name, "default"))
        return hfd_fail(err, HFD_INVALID,
                        "expected another name, as default is that of hypershift.kubeconfig");
    rc = setting_check_text(entry->value, FILE_MAX_BYTES, err);
    return rc == HFD_OK ? setting_check(row, &entry->value, err) : rc;
}

/* ---- parsing ---- */

#define STR_MAX 4096
#define DEMO_DEFAULT_US (10 * HFD_US_PER_S)

/* The length of s in front of what may be a password: of a URL with a user, or password=. */
static size_t open_len(hfd_slice s)
{
    const char *login = s.len > 0 ? memmem(s.p, s.len, "://", 3) : NULL;
    const char *secret = s.len > 0 ? memmem(s.p, s.len, "password=", 9) : NULL;
    size_t n = s.len;

    if (login != NULL && memchr(login, '@', s.len - (size_t)(login - s.p)) != NULL)
        n = (size_t)(login - s.p) + 3;
    if (secret != NULL && (size_t)(secret - s.p) + 9 < n)
        n = (size_t)(secret - s.p) + 9;
    return n;
}

const char *hfd_setting_quote(hfd_slice s, char out[HFD_QUOTE_MAX])
{
    const size_t open = open_len(s);
    size_t n = open < 60 ? open : 60;
    size_t at = 0;

    out[at++] = '"';
    for (size_t i = 0; i < n; i++)
        out[at++] = s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?';
    for (int dots = 0; n < s.len && dots < 3; dots++)
        out[at++] = '.';
    out[at++] = '"';
    out[at] = '\0';
    return out;
}

/* Fails with "expected WHAT, got the input". @return HFD_INVALID */
static hfd_rc setting_expected(struct hfd_err *err, const char *what, hfd_slice got)
{
    char quoted[HFD_QUOTE_MAX];

    return hfd_fail(err, HFD_INVALID, "expected %s, got %s", what, hfd_setting_quote(got, quoted));
}

/* --- sizes and durations --- */

struct unit {
    const char *name;
    int64_t size; /* in bytes or microseconds */
};

/* The first three and that of one byte are written; all are read. */
static const struct unit byte_units[] = {
    {"GiB", INT64_C(1) << 30}, {"MiB", INT64_C(1) << 20}, {"KiB", INT64_C(1) << 10}, {"", 1},
    {"G", INT64_C(1) << 30},   {"M", INT64_C(1) << 20},   {"K", INT64_C(1) << 10},
};

static const struct unit time_units[] = {
    {"d", 86400 * HFD_US_PER_S}, {"h", 3600 * HFD_US_PER_S},  {"m", 60 * HFD_US_PER_S},
    {"s", HFD_US_PER_S},         {"ms", HFD_US_PER_S / 1000},
};

/* Writes a size in the largest unit that divides it. @param last  the unit of those that none does;
 * zero has the fourth */
static void format_size(struct hfd_buf *b, const struct unit *units, size_t last, int64_t size)
{
    size_t u = size == 0 ? 3 : 0;

    while (u < last && size % units[u].size != 0)
        u++;
    hfd_buf_addf(b, "%lld%s", (long long)(size / units[u].size), units[u].name);
}

static void format_bytes(struct hfd_buf *b, int64_t bytes)
{
    format_size(b, byte_units, 3, bytes);
}

static void format_duration(struct hfd_buf *b, int64_t us)
{
    format_size(b, time_units, 4, us);
}

void hfd_setting_range(struct hfd_buf *b, const struct hfd_setting_row *row)
{
    if (row->type == HFD_SETTING_TYPE_I64) {
        hfd_buf_addf(b, "%lld to %lld", (long long)row->min, (long long)row->max);
    } else if (row->type == HFD_SETTING_TYPE_BYTES) {
        format_bytes(b, row->min);
        hfd_buf_lit(b, " to ");
        format_bytes(b, row->max);
    } else if (row->type == HFD_SETTING_TYPE_DURATION || row->type == HFD_SETTING_TYPE_DEMO) {
        format_duration(b, row->min * HFD_US_PER_S);
        hfd_buf_lit(b, " to ");
        format_duration(b, row->max * HFD_US_PER_S);
    }
}

static hfd_rc out_of_range(const struct hfd_setting_row *row, const char *what, hfd_slice got,
                           struct hfd_err *err)
{
    char quoted[HFD_QUOTE_MAX];
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, 128);
    hfd_setting_range(&b, row);
    rc = hfd_fail(err, HFD_INVALID, "expected %s from %.*s, got %s", what,
                  HFD_SLICE_FMT(hfd_buf_slice(&b)), hfd_setting_quote(got, quoted));
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc parse_bytes(const struct hfd_setting_row *row, hfd_slice text, int64_t *out,
                          struct hfd_err *err)
{
    hfd_slice digits = {text.p, 0};
    hfd_slice unit;
    int64_t n, bytes;

    while (digits.len < text.len && text.p[digits.len] >= '0' && text.p[digits.len] <= '9')
        digits.len++;
    unit = (hfd_slice){text.p + digits.len, text.len - digits.len};
    for (size_t u = 0; u < sizeof(byte_units) / sizeof(byte_units[0]); u++) {
        if (!hfd_slice_is(unit, byte_units[u].name))
            continue;
        if (hfd_parse_i64(digits, 0, INT64_MAX, &n, NULL) != HFD_OK ||
            __builtin_mul_overflow(n, byte_units[u].size, &bytes) || bytes < row->min ||
            bytes > row->max)
            break;
        *out = bytes;
        return HFD_OK;
    }
    return out_of_range(row, "a size (1048576, 512KiB, 1MiB)", text, err);
}

static hfd_rc parse_duration(const struct hfd_setting_row *row, hfd_slice text, int64_t *out,
                             struct hfd_err *err)
{
    int64_t us;

    if (hfd_parse_duration_us(text, &us, NULL) != HFD_OK || us < row->min * HFD_US_PER_S ||
        us > row->max * HFD_US_PER_S)
        return out_of_range(row, "a duration (90s, 45m, 2h)", text, err);
    *out = us;
    return HFD_OK;
}

static hfd_rc parse_demo(const struct hfd_setting_row *row, hfd_slice text, int64_t *out,
                         struct hfd_err *err)
{
    int64_t seconds;

    if (hfd_slice_is(text, "off") || hfd_slice_is(text, "false")) {
        *out = -1;
        return HFD_OK;
    }
    if (hfd_slice_is(text, "on") || hfd_slice_is(text, "true")) {
        *out = DEMO_DEFAULT_US;
        return HFD_OK;
    }
    if (hfd_parse_i64(text, row->min, row->max, &seconds, NULL) == HFD_OK) {
        *out = seconds * HFD_US_PER_S;
        return HFD_OK;
    }
    if (parse_duration(row, text, out, NULL) == HFD_OK)
        return HFD_OK;
    return out_of_range(row, "off, on, or seconds or a duration", text, err);
}

static hfd_rc parse_bool(hfd_slice text, bool *out, struct hfd_err *err)
{
    *out = hfd_slice_is(text, "on") || hfd_slice_is(text, "true");
    if (*out || hfd_slice_is(text, "off") || hfd_slice_is(text, "false"))
        return HFD_OK;
    return setting_expected(err, "on or off", text);
}

/* --- lists --- */

/* Removes the brackets of "[a, b]". Returns false if there is only one. */
static bool strip_brackets(hfd_slice *s)
{
    bool opens = s->len > 0 && s->p[0] == '[';
    bool closes = s->len > 0 && s->p[s->len - 1] == ']';

    if (opens && closes && s->len >= 2)
        *s = hfd_slice_trim((hfd_slice){s->p + 1, s->len - 2});
    return opens == closes;
}

/* Removes the quotes of an item. */
static hfd_slice unquote(hfd_slice s)
{
    bool quoted = s.len >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.len - 1] == s.p[0];

    return quoted ? (hfd_slice){s.p + 1, s.len - 2} : s;
}

/* "a, b" or "[a, b]" */
static hfd_rc split_list(hfd_slice text, hfd_slice items[HFD_SETTING_ITEMS_MAX], size_t *count,
                         struct hfd_err *err)
{
    hfd_slice rest = hfd_slice_trim(text);

    *count = 0;
    if (!strip_brackets(&rest))
        return setting_expected(err, "a list (a, b or [a, b])", text);
    while (rest.len > 0) {
        const char *comma = memchr(rest.p, ',', rest.len);
        size_t n = comma != NULL ? (size_t)(comma - rest.p) : rest.len;
        hfd_slice item = unquote(hfd_slice_trim((hfd_slice){rest.p, n}));

        if (*count == HFD_SETTING_ITEMS_MAX)
            return hfd_fail(err, HFD_INVALID, "expected at most %d items", HFD_SETTING_ITEMS_MAX);
        if (item.len == 0 || (comma != NULL && n + 1 == rest.len))
            return hfd_fail(err, HFD_INVALID,
                            "expected a list (a, b or [a, b]), got one with an empty item");
        items[(*count)++] = item;
        n += comma != NULL;
        rest = (hfd_slice){rest.p + n, rest.len - n};
    }
    return HFD_OK;
}

/* Returns true if an item can be written on one line and read again. */
static bool item_is_plain(hfd_slice s)
{
    if (s.len == 0 || s.len > HFD_SETTING_ITEM_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!hfd_is_alnum(s.p[i]) && memchr("._-/:=", s.p[i], 6) == NULL)
            return false;
    }
    return true;
}

static hfd_rc parse_list(const struct hfd_setting_value *v, struct hfd_arena *mem,
                         struct hfd_list *out, struct hfd_err *err)
{
    hfd_slice split[HFD_SETTING_ITEMS_MAX];
    const hfd_slice *items = v->items;
    size_t count = v->count;
    hfd_rc rc;

    *out = (struct hfd_list){NULL, 0};
    if (!v->is_list) {
        rc = split_list(v->text, split, &count, err);
        if (rc != HFD_OK)
            return rc;
        items = split;
    }
    if (count == 0)
        return HFD_OK;
    out->items = hfd_arena_array(mem, count, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(err, "parse a setting");
    for (size_t i = 0; i < count; i++) {
        if (!item_is_plain(items[i]))
            return setting_expected(err, "items of letters, digits and . _ - / : =", items[i]);
        for (size_t k = 0; k < i; k++) {
            if (hfd_slice_eq(items[k], items[i]))
                return setting_expected(err, "each item once", items[i]);
        }
        out->items[i] = hfd_arena_dup(mem, items[i]);
        if (out->items[i].p == NULL)
            return hfd_fail_nomem(err, "parse a setting");
    }
    out->count = count;
    return HFD_OK;
}

/* --- text --- */

/* Returns true for a character that YAML keeps as it is: no control, line break or BOM. */
static bool is_printable(const char *p, size_t len)
{
    static const char refused[][4] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf",
                                      "\xef\xbf\xbe", "\xef\xbf\xbf"};

    if (len == 1)
        return (unsigned char)p[0] >= ' ' && p[0] != 0x7f;
    if (len == 2)
        return (unsigned char)p[0] != 0xc2 || (unsigned char)p[1] >= 0xa0;
    for (size_t i = 0; len == 3 && i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (memcmp(p, refused[i], 3) == 0)
            return false;
    }
    return true;
}

/* Checks for UTF-8 without control characters. @return HFD_OK, HFD_INVALID */
static hfd_rc setting_check_text(hfd_slice s, size_t max_bytes, struct hfd_err *err)
{
    if (s.len > max_bytes)
        return hfd_fail(err, HFD_INVALID, "expected at most %zu bytes, got %zu", max_bytes, s.len);
    for (size_t at = 0; at < s.len;) {
        size_t len = hfd_utf8_len((hfd_slice){s.p + at, s.len - at});

        if (len == 0 || !is_printable(s.p + at, len))
            return setting_expected(err, "text in UTF-8 without control characters", s);
        at += len;
    }
    return HFD_OK;
}

static hfd_rc parse_str(hfd_slice text, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    *out = hfd_arena_dup(mem, text);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "parse a setting");
}

static hfd_rc parse_i64(const struct hfd_setting_row *row, hfd_slice text, int64_t *out,
                        struct hfd_err *err)
{
    if (hfd_parse_i64(text, row->min, row->max, out, NULL) != HFD_OK)
        return out_of_range(row, "a number", text, err);
    return HFD_OK;
}

static hfd_rc parse_typed(const struct hfd_setting_value *v, struct hfd_arena *mem, void *member,
                          struct hfd_err *err)
{
    const struct hfd_setting_row *row = v->row;

    switch (row->type) {
    case HFD_SETTING_TYPE_STR:
        return parse_str(v->text, mem, member, err);
    case HFD_SETTING_TYPE_I64:
        return parse_i64(row, v->text, member, err);
    case HFD_SETTING_TYPE_BYTES:
        return parse_bytes(row, v->text, member, err);
    case HFD_SETTING_TYPE_DURATION:
        return parse_duration(row, v->text, member, err);
    case HFD_SETTING_TYPE_LIST:
        return parse_list(v, mem, member, err);
    case HFD_SETTING_TYPE_DEMO:
        return parse_demo(row, v->text, member, err);
    case HFD_SETTING_TYPE_BOOL:
        return parse_bool(v->text, member, err);
    case HFD_SETTING_TYPE_LEVEL:
        return hfd_log_level_parse(v->text, member, err);
    case HFD_SETTING_TYPE_MAP:
    case HFD_SETTING_TYPE_FILES:
    case HFD_SETTING_TYPE_TEXTS:
    case HFD_SETTING_TYPE_LISTS:
        break; /* has entries, which settings_value.c checks */
    }
    HFD_ASSERT(!hfd_setting_is_map(row));
    return HFD_INVALID;
}

hfd_rc hfd_setting_parse(const struct hfd_setting_value *v, struct hfd_arena *mem, void *member,
                         struct hfd_err *err)
{
    const struct hfd_setting_row *row = v->row;
    hfd_rc rc = HFD_OK;

    if (v->is_list && row->type != HFD_SETTING_TYPE_LIST)
        return hfd_fail(err, HFD_INVALID, "expected %s, got a list", hfd_setting_form_text(row));
    if (!v->is_list)
        rc = setting_check_text(v->text, STR_MAX, err);
    if (rc == HFD_OK)
        rc = parse_typed(v, mem, member, err);
    return rc == HFD_OK ? setting_check(row, member, err) : rc;
}

/* --- value to text --- */

static void format_list(struct hfd_buf *b, const struct hfd_list *l)
{
    hfd_buf_addc(b, '[');
    for (size_t i = 0; i < l->count; i++) {
        if (i > 0)
            hfd_buf_lit(b, ", ");
        hfd_buf_json_str(b, l->items[i]);
    }
    hfd_buf_addc(b, ']');
}

/* A PostgreSQL URL is shown without its password. */
static void format_str(struct hfd_buf *b, hfd_slice s)
{
    struct hfd_buf masked;

    if (!hfd_pgurl_is(s)) {
        hfd_buf_json_str(b, s);
        return;
    }
    hfd_buf_init(&masked, 2 * STR_MAX);
    hfd_pgurl_mask(&masked, s);
    hfd_buf_json_str(b, hfd_buf_slice(&masked));
    hfd_buf_fini(&masked);
}

void hfd_setting_format(struct hfd_buf *b, const struct hfd_setting_row *row, const void *member)
{
    switch (row->type) {
    case HFD_SETTING_TYPE_STR:
        format_str(b, *(const hfd_slice *)member);
        break;
    case HFD_SETTING_TYPE_I64:
        hfd_buf_i64(b, *(const int64_t *)member);
        break;
    case HFD_SETTING_TYPE_BYTES:
        format_bytes(b, *(const int64_t *)member);
        break;
    case HFD_SETTING_TYPE_DURATION:
        format_duration(b, *(const int64_t *)member);
        break;
    case HFD_SETTING_TYPE_DEMO:
        if (*(const int64_t *)member < 0)
            hfd_buf_lit(b, "off");
        else
            format_duration(b, *(const int64_t *)member);
        break;
    case HFD_SETTING_TYPE_BOOL:
        hfd_buf_add(b, hfd_slice_of(*(const bool *)member ? "on" : "off"));
        break;
    case HFD_SETTING_TYPE_LIST:
        format_list(b, member);
        break;
    case HFD_SETTING_TYPE_LEVEL:
        hfd_buf_add(b, hfd_slice_of(hfd_log_level_name(*(const enum hfd_log_level *)member)));
        break;
    case HFD_SETTING_TYPE_MAP:
    case HFD_SETTING_TYPE_FILES:
    case HFD_SETTING_TYPE_TEXTS:
    case HFD_SETTING_TYPE_LISTS:
        HFD_ASSERT(!hfd_setting_is_map(row));
        break;
    }
}

void hfd_setting_entry_format(struct hfd_buf *b, const struct hfd_setting_row *row, hfd_slice value)
{
    const struct hook_url url = split_url(value);
    struct hfd_buf masked;

    if (row->which != HFD_SETTING_webhook_urls || url.user.len + url.query.len == 0) {
        hfd_buf_json_str(b, value);
        return;
    }
    hfd_buf_init(&masked, 2 * STR_MAX);
    hfd_buf_add(&masked, url.scheme);
    if (url.user.len > 0)
        hfd_buf_lit(&masked, "***@");
    hfd_buf_add(&masked, url.rest);
    if (url.query.len > 0)
        hfd_buf_lit(&masked, "?***");
    hfd_buf_json_str(b, hfd_buf_slice(&masked));
    hfd_buf_fini(&masked);
}

const char *hfd_setting_form_text(const struct hfd_setting_row *row)
{
    static const char *const forms[] = {
        [HFD_SETTING_TYPE_STR] = "TEXT",    [HFD_SETTING_TYPE_I64] = "NUMBER",
        [HFD_SETTING_TYPE_BYTES] = "SIZE",  [HFD_SETTING_TYPE_DURATION] = "DURATION",
        [HFD_SETTING_TYPE_LIST] = "LIST",   [HFD_SETTING_TYPE_MAP] = "ADAPTER:/POINTER",
        [HFD_SETTING_TYPE_FILES] = "FILE",  [HFD_SETTING_TYPE_DEMO] = "TIME",
        [HFD_SETTING_TYPE_LEVEL] = "LEVEL", [HFD_SETTING_TYPE_BOOL] = "SWITCH",
        [HFD_SETTING_TYPE_TEXTS] = "TEXT",  [HFD_SETTING_TYPE_LISTS] = "LIST",
    };

    return forms[row->type];
}
