/*
 * One value of the settings: text in, checked value out, and back. Knows no sources. Source:
 * settings.h, DESIGN 8. Thread: start-up.
 */
#include "handlers/settings/settings_int.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/url.h"
#include "driver/base/utf8.h"

#define STR_MAX 4096
#define ITEM_MAX 253
#define RULE_MAX 1024
#define NAME_MAX_BYTES 63
#define DEMO_DEFAULT_US (10 * HFD_US_PER_S)

const char *hfd_setting_quote(hfd_slice s, char out[HFD_QUOTE_MAX])
{
    size_t n = s.len < 60 ? s.len : 60;
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

static hfd_rc expected(struct hfd_err *err, const char *what, hfd_slice got)
{
    char quoted[HFD_QUOTE_MAX];

    return hfd_fail(err, HFD_INVALID, "expected %s, got %s", what, hfd_setting_quote(got, quoted));
}

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* --- sizes and durations --- */

/* The first three are what is written, the others are read as well. */
static const struct {
    const char *name;
    int64_t bytes;
} byte_units[] = {
    {"GiB", INT64_C(1) << 30},
    {"MiB", INT64_C(1) << 20},
    {"KiB", INT64_C(1) << 10},
    {"G", INT64_C(1) << 30},
    {"M", INT64_C(1) << 20},
    {"K", INT64_C(1) << 10},
    {"", 1},
};

static const struct {
    const char *name;
    int64_t us;
} time_units[] = {
    {"d", 86400 * HFD_US_PER_S}, {"h", 3600 * HFD_US_PER_S},  {"m", 60 * HFD_US_PER_S},
    {"s", HFD_US_PER_S},         {"ms", HFD_US_PER_S / 1000},
};

static void format_bytes(struct hfd_buf *b, int64_t bytes)
{
    size_t u = 0;

    while (u < 3 && (bytes == 0 || bytes % byte_units[u].bytes != 0))
        u++;
    if (u == 3)
        hfd_buf_i64(b, bytes);
    else
        hfd_buf_addf(b, "%lld%s", (long long)(bytes / byte_units[u].bytes), byte_units[u].name);
}

static void format_duration(struct hfd_buf *b, int64_t us)
{
    size_t u = 0;

    while (u < 4 && us % time_units[u].us != 0)
        u++;
    if (us == 0)
        u = 3;
    hfd_buf_addf(b, "%lld%s", (long long)(us / time_units[u].us), time_units[u].name);
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
            __builtin_mul_overflow(n, byte_units[u].bytes, &bytes) || bytes < row->min ||
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

/* --- lists --- */

/* Takes the brackets of "[a, b]" away. @return false when only one of them is there */
static bool strip_brackets(hfd_slice *s)
{
    bool opens = s->len > 0 && s->p[0] == '[';
    bool closes = s->len > 0 && s->p[s->len - 1] == ']';

    if (opens && closes && s->len >= 2)
        *s = hfd_slice_trim((hfd_slice){s->p + 1, s->len - 2});
    return opens == closes;
}

/* An item may stand in quotes, as in JSON. */
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
        return expected(err, "a list (a, b or [a, b])", text);
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

/* What any item must be, so that it can be written on one line and read again. */
static bool item_is_plain(hfd_slice s)
{
    if (s.len == 0 || s.len > ITEM_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!hfd_is_alnum(s.p[i]) && memchr("._-/:", s.p[i], 5) == NULL)
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
        return hfd_fail(err, HFD_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!item_is_plain(items[i]))
            return expected(err, "items of letters, digits and . _ - / :", items[i]);
        for (size_t k = 0; k < i; k++) {
            if (hfd_slice_eq(items[k], items[i]))
                return expected(err, "each item once", items[i]);
        }
        out->items[i] = hfd_arena_dup(mem, items[i]);
        if (out->items[i].p == NULL)
            return hfd_fail(err, HFD_NOMEM, "out of memory");
    }
    out->count = count;
    return HFD_OK;
}

/* --- what single settings want beyond their type --- */

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

    if (colon == NULL)
        return expected(err, "HOST:PORT or [IPv6]:PORT", a);
    host = (hfd_slice){a.p, (size_t)(colon - a.p)};
    port = (hfd_slice){colon + 1, a.len - host.len - 1};
    if (!hfd_host_is_valid(host))
        return expected(err, "HOST:PORT or [IPv6]:PORT", a);
    if (port.len > 5 || hfd_parse_i64(port, 0, 65535, &n, NULL) != HFD_OK)
        return expected(err, "a port from 0 to 65535 behind the last colon", a);
    return HFD_OK;
}

static hfd_rc check_not_empty(const void *member, struct hfd_err *err)
{
    return ((const hfd_slice *)member)->len > 0
               ? HFD_OK
               : hfd_fail(err, HFD_INVALID, "expected a path, got \"\"");
}

static hfd_rc check_store(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return hfd_slice_is(s, "sqlite") ? HFD_OK
                                     : expected(err, "sqlite, the only store of this version", s);
}

static hfd_rc check_backend(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    char quoted[HFD_QUOTE_MAX];
    struct hfd_err why;

    if (hfd_slice_is(s, "embedded") || hfd_url_check(s, &why) == HFD_OK)
        return HFD_OK;
    /* What has an @ may be a URL with a password, and is not quoted. */
    if (s.len > 0 && memchr(s.p, '@', s.len) != NULL)
        return hfd_fail(err, HFD_INVALID, "expected embedded or the URL of a HyperFleet; %s",
                        why.msg);
    return hfd_fail(err, HFD_INVALID, "expected embedded or the URL of a HyperFleet; %s, got %s",
                    why.msg, hfd_setting_quote(s, quoted));
}

/* The prefix of /{driver}/{GUResID}; "api" is HyperFleet's. */
static hfd_rc check_path(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len > 0 && s.len <= NAME_MAX_BYTES && hfd_is_alnum(s.p[0]) &&
              hfd_is_alnum(s.p[s.len - 1]) && !hfd_slice_is(s, "api");

    for (size_t i = 0; ok && i < s.len; i++)
        ok = hfd_is_alnum(s.p[i]) || s.p[i] == '-' || s.p[i] == '_' || s.p[i] == '.';
    return ok ? HFD_OK
              : expected(err,
                         "one path segment of letters, digits and - _ . between them, not \"api\"",
                         s);
}

/*
 * The next character of the condition that is named after an adapter (gcp-vm: GcpVmSuccessful); NUL
 * at the end of the name.
 */
static char condition_char(hfd_slice name, size_t *at)
{
    bool first = *at == 0; /* of a part */
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
            return expected(err, "adapter names of lower-case letters, digits and - between them",
                            l->items[i]);
        for (size_t k = 0; k < i; k++) {
            if (same_condition(l->items[k], l->items[i]))
                return expected(
                    err, "adapter names whose conditions differ, which are named without dashes",
                    l->items[i]);
        }
    }
    return HFD_OK;
}

/* ^[a-z0-9][a-z0-9-]+[a-z0-9]$: an order of any other is refused, whatever is served. */
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
            return expected(err, "types without the part in front of /", l->items[i]);
        if (!is_type_name(l->items[i]))
            return expected(err, "types of 3 or more lower-case letters, digits and - between them",
                            l->items[i]);
    }
    return HFD_OK;
}

/*
 * Below a member that the driver knows: under any other a path would be without effect, and its
 * error never be found.
 */
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
            return expected(err,
                            "dotted paths below cluster, nodepools, nodepool, cluster_id or "
                            "cluster_guresid: cluster.spec.region",
                            s);
    }
    return HFD_OK;
}

static hfd_rc check_conditions(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;

    return hfd_slice_is(s, "ready") || hfd_slice_is(s, "reconciled") || hfd_slice_is(s, "both")
               ? HFD_OK
               : expected(err, "ready, reconciled or both", s);
}

/* A field name of HTTP: RFC 9110 5.6.2. */
static hfd_rc check_header(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len <= NAME_MAX_BYTES;

    for (size_t i = 0; ok && i < s.len; i++)
        ok = hfd_is_alnum(s.p[i]) || memchr("!#$%&'*+-.^_`|~", s.p[i], 15) != NULL;
    return ok ? HFD_OK : expected(err, "the name of a request header, of at most 63 characters", s);
}

/* REASON or ADAPTER:REASON; a reason may have colons of its own, but neither first nor last. */
static hfd_rc check_reasons(const void *member, struct hfd_err *err)
{
    const struct hfd_list *l = member;

    for (size_t i = 0; i < l->count; i++) {
        const hfd_slice s = l->items[i];

        if (!hfd_is_alnum(s.p[0]) || !hfd_is_alnum(s.p[s.len - 1]))
            return expected(
                err, "reasons like QuotaExceeded, or dns:QuotaExceeded for those of one adapter",
                s);
    }
    return HFD_OK;
}

/* What a client must not send twice, or what frames the message. */
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
            return expected(err, "a header that this program does not set itself", s);
    return check_header(member, err);
}

/* Printable ASCII; all of the setting's text is without control characters already. */
static hfd_rc check_header_value(const void *member, struct hfd_err *err)
{
    hfd_slice s = *(const hfd_slice *)member;
    bool ok = s.len <= ITEM_MAX && (s.len == 0 || (s.p[0] != ' ' && s.p[s.len - 1] != ' '));

    for (size_t i = 0; ok && i < s.len; i++)
        ok = s.p[i] >= ' ' && s.p[i] <= '~';
    return ok ? HFD_OK : expected(err, "at most 253 printable ASCII characters", s);
}

static check_fn *const checks[HFD_SETTING_COUNT] = {
    [HFD_SETTING_listen] = check_address,
    [HFD_SETTING_ops_listen] = check_address,
    [HFD_SETTING_data] = check_not_empty,
    [HFD_SETTING_store] = check_store,
    [HFD_SETTING_backend] = check_backend,
    [HFD_SETTING_path_cluster] = check_path,
    [HFD_SETTING_path_nodepool] = check_path,
    [HFD_SETTING_required_cluster] = check_adapters,
    [HFD_SETTING_required_nodepool] = check_adapters,
    [HFD_SETTING_fleet_conditions] = check_conditions,
    [HFD_SETTING_fleet_identity_header] = check_header,
    [HFD_SETTING_remote_identity_header] = check_own_header,
    [HFD_SETTING_remote_identity] = check_header_value,
    [HFD_SETTING_types_cluster] = check_types,
    [HFD_SETTING_types_nodepool] = check_types,
    [HFD_SETTING_resource_overrides] = check_dotted_paths,
    [HFD_SETTING_terminal_reasons] = check_reasons,
};

/* --- the door --- */

/*
 * One character of UTF-8 that YAML writes and reads as it stands: no control, no line break, no
 * mark of byte order.
 */
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

static hfd_rc check_text(hfd_slice s, size_t max_bytes, struct hfd_err *err)
{
    if (s.len > max_bytes)
        return hfd_fail(err, HFD_INVALID, "expected at most %zu bytes, got %zu", max_bytes, s.len);
    for (size_t at = 0; at < s.len;) {
        size_t len = hfd_utf8_len((hfd_slice){s.p + at, s.len - at});

        if (len == 0 || !is_printable(s.p + at, len))
            return expected(err, "text in UTF-8 without control characters", s);
        at += len;
    }
    return HFD_OK;
}

static hfd_rc parse_str(hfd_slice text, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    *out = hfd_arena_dup(mem, text);
    return out->p != NULL ? HFD_OK : hfd_fail(err, HFD_NOMEM, "out of memory");
}

static hfd_rc parse_i64(const struct hfd_setting_row *row, hfd_slice text, int64_t *out,
                        struct hfd_err *err)
{
    if (hfd_parse_i64(text, row->min, row->max, out, NULL) != HFD_OK)
        return out_of_range(row, "a number", text, err);
    return HFD_OK;
}

static hfd_rc parse_typed(const struct hfd_setting_row *row, const struct hfd_setting_value *v,
                          struct hfd_arena *mem, void *member, struct hfd_err *err)
{
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
    case HFD_SETTING_TYPE_LEVEL:
        return hfd_log_level_parse(v->text, member, err);
    case HFD_SETTING_TYPE_MAP:
        break; /* has entries: hfd_setting_name_check, hfd_setting_entry_check */
    }
    HFD_ASSERT(row->type != HFD_SETTING_TYPE_MAP);
    return HFD_INVALID;
}

hfd_rc hfd_setting_parse(const struct hfd_setting_row *row, const struct hfd_setting_value *v,
                         struct hfd_arena *mem, void *member, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (v->is_list && row->type != HFD_SETTING_TYPE_LIST)
        return hfd_fail(err, HFD_INVALID, "expected %s, got a list", hfd_setting_form(row));
    if (!v->is_list)
        rc = check_text(v->text, STR_MAX, err);
    if (rc == HFD_OK)
        rc = parse_typed(row, v, mem, member, err);
    if (rc == HFD_OK && checks[row->which] != NULL)
        rc = checks[row->which](member, err);
    return rc;
}

/* RFC 6901: empty, or /-led with ~ only as ~0 and ~1. */
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

hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err)
{
    bool ok = name.len > 0 && name.len <= NAME_MAX_BYTES && (name.p[0] < '0' || name.p[0] > '9') &&
              name.p[0] != '-';

    for (size_t i = 0; ok && i < name.len; i++)
        ok = hfd_is_alnum(name.p[i]) || name.p[i] == '_' || name.p[i] == '-';
    return ok ? HFD_OK
              : expected(
                    err,
                    "a name of at most 63 letters, digits, _ and -, beginning with a letter or _",
                    name);
}

hfd_rc hfd_setting_entry_check(hfd_slice value, struct hfd_err *err)
{
    const char *colon = value.len > 0 ? memchr(value.p, ':', value.len) : NULL;
    hfd_rc rc = check_text(value, RULE_MAX, err);
    size_t n;

    if (rc != HFD_OK)
        return rc;
    if (colon == NULL)
        return expected(err, "ADAPTER:/json/pointer", value);
    n = (size_t)(colon - value.p);
    if (!is_adapter_name((hfd_slice){value.p, n}) ||
        !is_pointer((hfd_slice){colon + 1, value.len - n - 1}))
        return expected(err, "ADAPTER:/json/pointer", value);
    return HFD_OK;
}

/* --- and back --- */

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

void hfd_setting_format(struct hfd_buf *b, const struct hfd_setting_row *row, const void *member)
{
    HFD_ASSERT(row->type != HFD_SETTING_TYPE_MAP);
    switch (row->type) {
    case HFD_SETTING_TYPE_STR:
        hfd_buf_json_str(b, *(const hfd_slice *)member);
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
    case HFD_SETTING_TYPE_LIST:
        format_list(b, member);
        break;
    case HFD_SETTING_TYPE_LEVEL:
        hfd_buf_add(b, hfd_slice_of(hfd_log_level_name(*(const enum hfd_log_level *)member)));
        break;
    case HFD_SETTING_TYPE_MAP:
        break;
    }
}

const char *hfd_setting_form(const struct hfd_setting_row *row)
{
    static const char *const forms[] = {
        [HFD_SETTING_TYPE_STR] = "TEXT",   [HFD_SETTING_TYPE_I64] = "NUMBER",
        [HFD_SETTING_TYPE_BYTES] = "SIZE", [HFD_SETTING_TYPE_DURATION] = "DURATION",
        [HFD_SETTING_TYPE_LIST] = "LIST",  [HFD_SETTING_TYPE_MAP] = "ADAPTER:/POINTER",
        [HFD_SETTING_TYPE_DEMO] = "TIME",  [HFD_SETTING_TYPE_LEVEL] = "LEVEL",
    };

    return forms[row->type];
}
