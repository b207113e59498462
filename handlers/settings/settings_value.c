/* See settings_value.h. */
#include "handlers/settings/settings_value.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/pgurl.h"
#include "driver/base/utf8.h"
#include "handlers/settings/settings_check.h"

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

hfd_rc hfd_setting_expected(struct hfd_err *err, const char *what, hfd_slice got)
{
    char quoted[HFD_QUOTE_MAX];

    return hfd_fail(err, HFD_INVALID, "expected %s, got %s", what, hfd_setting_quote(got, quoted));
}

/* --- sizes and durations --- */

/* The first three are written; all are read. */
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

static hfd_rc parse_bool(hfd_slice text, bool *out, struct hfd_err *err)
{
    *out = hfd_slice_is(text, "on") || hfd_slice_is(text, "true");
    if (*out || hfd_slice_is(text, "off") || hfd_slice_is(text, "false"))
        return HFD_OK;
    return hfd_setting_expected(err, "on or off", text);
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
        return hfd_setting_expected(err, "a list (a, b or [a, b])", text);
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
        return hfd_fail_nomem(err, "parse a setting");
    for (size_t i = 0; i < count; i++) {
        if (!item_is_plain(items[i]))
            return hfd_setting_expected(err, "items of letters, digits and . _ - / :", items[i]);
        for (size_t k = 0; k < i; k++) {
            if (hfd_slice_eq(items[k], items[i]))
                return hfd_setting_expected(err, "each item once", items[i]);
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

hfd_rc hfd_setting_check_text(hfd_slice s, size_t max_bytes, struct hfd_err *err)
{
    if (s.len > max_bytes)
        return hfd_fail(err, HFD_INVALID, "expected at most %zu bytes, got %zu", max_bytes, s.len);
    for (size_t at = 0; at < s.len;) {
        size_t len = hfd_utf8_len((hfd_slice){s.p + at, s.len - at});

        if (len == 0 || !is_printable(s.p + at, len))
            return hfd_setting_expected(err, "text in UTF-8 without control characters", s);
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
    case HFD_SETTING_TYPE_BOOL:
        return parse_bool(v->text, member, err);
    case HFD_SETTING_TYPE_LEVEL:
        return hfd_log_level_parse(v->text, member, err);
    case HFD_SETTING_TYPE_MAP:
    case HFD_SETTING_TYPE_FILES:
        break; /* has entries, which settings_check.c checks */
    }
    HFD_ASSERT(row->type != HFD_SETTING_TYPE_MAP && row->type != HFD_SETTING_TYPE_FILES);
    return HFD_INVALID;
}

hfd_rc hfd_setting_parse(const struct hfd_setting_row *row, const struct hfd_setting_value *v,
                         struct hfd_arena *mem, void *member, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (v->is_list && row->type != HFD_SETTING_TYPE_LIST)
        return hfd_fail(err, HFD_INVALID, "expected %s, got a list", hfd_setting_form_text(row));
    if (!v->is_list)
        rc = hfd_setting_check_text(v->text, STR_MAX, err);
    if (rc == HFD_OK)
        rc = parse_typed(row, v, mem, member, err);
    return rc == HFD_OK ? hfd_setting_check(row->which, member, err) : rc;
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
        HFD_ASSERT(row->type != HFD_SETTING_TYPE_MAP && row->type != HFD_SETTING_TYPE_FILES);
        break;
    }
}

const char *hfd_setting_form_text(const struct hfd_setting_row *row)
{
    static const char *const forms[] = {
        [HFD_SETTING_TYPE_STR] = "TEXT",    [HFD_SETTING_TYPE_I64] = "NUMBER",
        [HFD_SETTING_TYPE_BYTES] = "SIZE",  [HFD_SETTING_TYPE_DURATION] = "DURATION",
        [HFD_SETTING_TYPE_LIST] = "LIST",   [HFD_SETTING_TYPE_MAP] = "ADAPTER:/POINTER",
        [HFD_SETTING_TYPE_FILES] = "FILE",  [HFD_SETTING_TYPE_DEMO] = "TIME",
        [HFD_SETTING_TYPE_LEVEL] = "LEVEL", [HFD_SETTING_TYPE_BOOL] = "SWITCH",
    };

    return forms[row->type];
}
