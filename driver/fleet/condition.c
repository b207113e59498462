/* See condition.h. */
#include "driver/fleet/condition.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/base/utf8.h"

/* ---- condition ---- */

/*
 * Conditions and their stored text. Only this module writes that text, so any mistake in it is
 * damage.
 */

static const char *const status_names[] = {
    [HFD_STATUS_FALSE] = "False",
    [HFD_STATUS_TRUE] = "True",
    [HFD_STATUS_UNKNOWN] = "Unknown",
};

const char *hfd_status_name(enum hfd_status s)
{
    return status_names[s];
}

bool hfd_status_parse(hfd_slice text, enum hfd_status *out)
{
    static const enum hfd_status all[] = {HFD_STATUS_FALSE, HFD_STATUS_TRUE, HFD_STATUS_UNKNOWN};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (hfd_slice_is(text, status_names[all[i]])) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

struct hfd_condition *hfd_condition_find(const struct hfd_conditions *cs, hfd_slice type)
{
    for (size_t i = 0; i < cs->count; i++)
        if (hfd_slice_eq(cs->items[i].type, type))
            return &cs->items[i];
    return NULL;
}

/* The path of a condition in error messages. */
#define PATH "condition"

static hfd_rc get_text(const struct hfd_json_member *m, struct hfd_arena *mem, hfd_slice *out,
                       struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = hfd_json_get_string(m, &text, err);

    *out = HFD_SLICE_NONE;
    if (rc != HFD_OK || text.p == NULL)
        return rc;
    *out = hfd_arena_dup(mem, text);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a condition");
}

static hfd_rc get_time(const json_t *obj, const char *key, int64_t *at_us, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = hfd_json_get_string(HFD_JSON_OPTIONAL(obj, PATH, key), &text, err);

    *at_us = 0;
    if (rc != HFD_OK || text.p == NULL)
        return rc;
    return hfd_time_parse(text, at_us, err);
}

static hfd_rc parse_status(const json_t *obj, enum hfd_status *out, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = hfd_json_get_string(HFD_JSON_REQUIRED(obj, PATH, "status"), &text, err);

    if (rc == HFD_OK && !hfd_status_parse(text, out))
        rc = hfd_fail(err, HFD_CORRUPT, "condition.status is none of True, False, Unknown");
    return rc;
}

static hfd_rc parse_one(const json_t *obj, struct hfd_arena *mem, struct hfd_condition *c,
                        struct hfd_err *err)
{
    bool present;
    hfd_rc rc;

    if (!json_is_object(obj))
        return hfd_fail(err, HFD_CORRUPT, "a condition is %s", hfd_json_type_name(obj));
    rc = get_text(HFD_JSON_REQUIRED(obj, PATH, "type"), mem, &c->type, err);
    if (rc == HFD_OK)
        rc = parse_status(obj, &c->status, err);
    if (rc == HFD_OK)
        rc = get_text(HFD_JSON_OPTIONAL(obj, PATH, "reason"), mem, &c->reason, err);
    if (rc == HFD_OK)
        rc = get_text(HFD_JSON_OPTIONAL(obj, PATH, "message"), mem, &c->message, err);
    if (rc == HFD_OK)
        rc = hfd_json_get_i64(HFD_JSON_OPTIONAL(obj, PATH, "observed_generation"),
                              (struct hfd_json_range){INT64_MIN, INT64_MAX}, &present,
                              &c->observed_generation, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "created_time", &c->created_us, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "last_updated_time", &c->last_updated_us, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "last_transition_time", &c->last_transition_us, err);
    return rc;
}

static hfd_rc parse_all(const json_t *doc, struct hfd_arena *mem, struct hfd_conditions *out,
                        struct hfd_err *err)
{
    struct hfd_conditions cs = {NULL, 0};

    if (!json_is_array(doc))
        return hfd_fail(err, HFD_CORRUPT, "stored conditions are %s", hfd_json_type_name(doc));
    cs.count = json_array_size(doc);
    if (cs.count == 0)
        return HFD_OK;
    cs.items = hfd_arena_array(mem, cs.count, sizeof(*cs.items));
    if (cs.items == NULL)
        return hfd_fail_nomem(err, "read conditions");
    for (size_t i = 0; i < cs.count; i++) {
        const hfd_rc rc = parse_one(json_array_get(doc, i), mem, &cs.items[i], err);

        if (rc != HFD_OK)
            return rc;
    }
    *out = cs;
    return HFD_OK;
}

/*
 * The fast reader. It reads the text exactly as hfd_conditions_format writes it, in place. A report
 * is judged by reading a dozen of these texts, and JSON trees took most of that time. The slow
 * reader, below, reads every other form and reports mistakes.
 */
struct reader {
    char *p;
    const char *end;
};

/* No condition is written in fewer bytes. */
#define WRITTEN_MIN_BYTES 64

/* Skips this text if it comes next. */
static bool skip_text(struct reader *r, hfd_slice text)
{
    if ((size_t)(r->end - r->p) < text.len || memcmp(r->p, text.p, text.len) != 0)
        return false;
    r->p += text.len;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads an escape as the writer makes them. @return the character; -1: another one, or none */
static int read_escape(struct reader *r)
{
    static const char letters[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t";
    const char *at;
    int high, low;

    if (r->end - r->p < 6) /* a text is never the last thing */
        return -1;
    at = r->p[1] != '\0' ? strchr(letters, r->p[1]) : NULL;
    if (at != NULL) {
        r->p += 2;
        return meant[at - letters];
    }
    high = hex_digit(r->p[4]);
    low = hex_digit(r->p[5]);
    if (memcmp(r->p, "\\u00", 4) != 0 || high < 0 || high > 7 || low < 0 || high + low == 0)
        return -1;
    r->p += 6;
    return high * 16 + low;
}

/* Reads a string; the characters of its escapes take their place. */
static bool read_text(struct reader *r, hfd_slice *out)
{
    char *to;

    if (r->p == r->end || *r->p != '"')
        return false;
    r->p++;
    to = r->p + hfd_json_plain((hfd_slice){r->p, (size_t)(r->end - r->p)});
    *out = (hfd_slice){r->p, 0};
    r->p = to;
    while (r->p < r->end && *r->p != '"') {
        const unsigned char c = (unsigned char)*r->p;
        const int escaped = c == '\\' ? read_escape(r) : 0;
        size_t len = 1;

        if (c < 0x20 || c == 0x7f || escaped < 0)
            return false;
        if (escaped > 0) {
            *to++ = (char)escaped;
            continue;
        }
        if (c >= 0x80)
            len = hfd_utf8_len((hfd_slice){r->p, (size_t)(r->end - r->p)});
        if (len == 0)
            return false;
        if (to != r->p)
            memmove(to, r->p, len);
        to += len;
        r->p += len;
    }
    out->len = (size_t)(to - out->p);
    return skip_text(r, HFD_SLICE("\""));
}

static bool read_time(struct reader *r, int64_t *at_us)
{
    hfd_slice text;

    return read_text(r, &text) && hfd_time_parse(text, at_us, NULL) == HFD_OK;
}

static bool read_generation(struct reader *r, int64_t *out)
{
    const char *from = r->p;
    int64_t v = 0;

    while (r->p < r->end && r->p - from < 18 && *r->p >= '0' && *r->p <= '9')
        v = v * 10 + (*r->p++ - '0');
    *out = v;
    return r->p > from && (*from != '0' || r->p == from + 1);
}

/* Reads the members that a condition of a report does not have. */
static bool read_status_members(struct reader *r, struct hfd_condition *c)
{
    if (!skip_text(r, HFD_SLICE(",\"observed_generation\":")))
        return true;
    return read_generation(r, &c->observed_generation) &&
           skip_text(r, HFD_SLICE(",\"created_time\":")) && read_time(r, &c->created_us) &&
           skip_text(r, HFD_SLICE(",\"last_updated_time\":")) && read_time(r, &c->last_updated_us);
}

static bool read_one(struct reader *r, struct hfd_condition *c)
{
    hfd_slice status;

    *c = (struct hfd_condition){.status = HFD_STATUS_FALSE};
    if (!skip_text(r, HFD_SLICE("{\"type\":")) || !read_text(r, &c->type))
        return false;
    if (!skip_text(r, HFD_SLICE(",\"status\":")) || !read_text(r, &status) ||
        !hfd_status_parse(status, &c->status))
        return false;
    if (skip_text(r, HFD_SLICE(",\"reason\":")) && !read_text(r, &c->reason))
        return false;
    if (skip_text(r, HFD_SLICE(",\"message\":")) && !read_text(r, &c->message))
        return false;
    return read_status_members(r, c) && skip_text(r, HFD_SLICE(",\"last_transition_time\":")) &&
           read_time(r, &c->last_transition_us) && skip_text(r, HFD_SLICE("}"));
}

/* @return whether the text has this form; otherwise, and when memory is short, out is unchanged */
static bool read_written(hfd_slice stored, struct hfd_arena *mem, struct hfd_conditions *out)
{
    const size_t most = stored.len / WRITTEN_MIN_BYTES + 1;
    const size_t max = most < HFD_CONDITIONS_MAX ? most : HFD_CONDITIONS_MAX;
    const hfd_slice copy = hfd_arena_dup(mem, stored);
    struct hfd_condition *items = hfd_arena_array(mem, max, sizeof(*items));
    struct reader r;
    size_t count = 0;

    if (copy.p == NULL || items == NULL)
        return false;
    r = (struct reader){(char *)(uintptr_t)copy.p, copy.p + copy.len};
    do {
        if (count == max || !skip_text(&r, count == 0 ? HFD_SLICE("[") : HFD_SLICE(",")) ||
            !read_one(&r, &items[count++]))
            return false;
    } while (!skip_text(&r, HFD_SLICE("]")));
    if (r.p != r.end)
        return false;
    *out = (struct hfd_conditions){items, count};
    return true;
}

hfd_rc hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem, struct hfd_conditions *out,
                            struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    *out = (struct hfd_conditions){NULL, 0};
    if (read_written(stored, mem, out))
        return HFD_OK;
    rc = hfd_json_parse(stored, &doc, err);
    if (rc == HFD_OK)
        rc = parse_all(doc, mem, out, err);
    json_decref(doc);
    if (rc == HFD_OK || rc == HFD_NOMEM)
        return rc;
    if (err != NULL) /* every mistake of the reader means damage here */
        err->rc = HFD_CORRUPT;
    return HFD_CORRUPT;
}

void hfd_conditions_format(struct hfd_buf *b, const struct hfd_conditions *cs, bool of_report)
{
    if (cs->count > HFD_CONDITIONS_MAX && b->rc == HFD_OK)
        b->rc = HFD_LIMIT;
    hfd_buf_addc(b, '[');
    for (size_t i = 0; i < cs->count; i++) {
        const struct hfd_condition *c = &cs->items[i];

        if (i > 0)
            hfd_buf_addc(b, ',');
        hfd_buf_member_str(b, "{\"type\":", c->type);
        hfd_buf_member_str(b, ",\"status\":", hfd_slice_of(hfd_status_name(c->status)));
        if (c->reason.len > 0)
            hfd_buf_member_str(b, ",\"reason\":", c->reason);
        if (c->message.len > 0)
            hfd_buf_member_str(b, ",\"message\":", c->message);
        if (!of_report) {
            hfd_buf_lit(b, ",\"observed_generation\":");
            hfd_buf_i64(b, c->observed_generation);
            hfd_buf_member_time(b, ",\"created_time\":", c->created_us);
            hfd_buf_member_time(b, ",\"last_updated_time\":", c->last_updated_us);
        }
        hfd_buf_member_time(b, ",\"last_transition_time\":", c->last_transition_us);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

hfd_slice hfd_adapter_condition_type(hfd_slice adapter, struct hfd_arena *mem)
{
    static const char suffix[] = "Successful";
    char *text = hfd_arena_alloc(mem, adapter.len + sizeof(suffix));
    size_t len = 0;
    bool first = true; /* at the start of a part */

    if (text == NULL)
        return HFD_SLICE_NONE;
    for (size_t i = 0; i < adapter.len; i++) {
        const char c = adapter.p[i];

        if (c != '-')
            text[len++] = first && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        first = c == '-';
    }
    memcpy(text + len, suffix, sizeof(suffix) - 1);
    return (hfd_slice){text, len + sizeof(suffix) - 1};
}

hfd_slice hfd_message_shown(hfd_slice message, struct hfd_arena *mem)
{
    const hfd_slice end = HFD_SLICE("... (the adapter's report has the whole message)");
    size_t len = HFD_MESSAGE_SHOWN_MAX - end.len;

    if (message.len <= HFD_MESSAGE_SHOWN_MAX)
        return message;
    while (len > 0 && ((unsigned char)message.p[len] & 0xc0) == 0x80) /* no half characters */
        len--;
    return hfd_arena_printf(mem, "%.*s%.*s", (int)len, message.p, HFD_SLICE_FMT(end));
}

bool hfd_condition_is_judged(hfd_slice type)
{
    static const char *const types[] = {"Applied", "Available", "Finalized", "Health",
                                        HFD_OBSERVER_CONDITION};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i]))
            return true;
    return false;
}

/* ---- vocabulary ---- */

/* The two vocabularies of condition names. */

static const struct {
    const char *first, *later;
} types[] = {{"Ready", "Reconciled"}, {"Available", "LastKnownReconciled"}};

/* The later name of a reason, by the condition that has it. */
static const struct {
    const char *type, *first, *later;
} reasons[] = {
    {"Ready", "ResourceReady", "ReconciledAll"},
    {"Ready", "AwaitingAdapters", "ReconciledMissingAdapters"},
    {"Ready", "MissingRequiredAdapters", "ReconciledMissingAdapters"},
    {"Ready", "WaitingForChildren", "ReconciledWaitingForChildren"},
    {"Available", "ResourceAvailable", "AllAdaptersReconciled"},
    {"Available", "AwaitingAdapters", "AdaptersMissingReports"},
};

bool hfd_vocabulary_parse(hfd_slice text, enum hfd_vocabulary *out)
{
#define NAME(name, text) text,
    static const char *const names[HFD_VOCABULARY_COUNT] = {HFD_VOCABULARY_LIST(NAME)};
#undef NAME

    for (int v = 0; v < HFD_VOCABULARY_COUNT; v++) {
        if (hfd_slice_is(text, names[v])) {
            *out = (enum hfd_vocabulary)v;
            return true;
        }
    }
    return false;
}

static hfd_slice first_type(hfd_slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i].later))
            return hfd_slice_of(types[i].first);
    return type;
}

bool hfd_vocabulary_restore(struct hfd_condition *c)
{
    const hfd_slice first = first_type(c->type);

    if (hfd_slice_eq(first, c->type))
        return false;
    c->type = first;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (hfd_slice_is(first, reasons[i].type) && hfd_slice_is(c->reason, reasons[i].later)) {
            c->reason = hfd_slice_of(reasons[i].first);
            break; /* two reasons share a later name; the first is the common one */
        }
    }
    return true;
}

/* @return whether the vocabulary shows conditions of that type */
static bool is_shown(enum hfd_vocabulary v, hfd_slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, v == HFD_VOCABULARY_READY ? types[i].later : types[i].first))
            return false;
    return true;
}

hfd_rc hfd_vocabulary_show(enum hfd_vocabulary v, hfd_slice stored, struct hfd_arena *mem,
                           hfd_slice *out, struct hfd_err *err)
{
    struct hfd_conditions cs;
    struct hfd_buf b;
    size_t n = 0;
    hfd_rc rc;

    *out = stored;
    if (v == HFD_VOCABULARY_BOTH)
        return HFD_OK;
    rc = hfd_conditions_parse(stored, mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < cs.count; i++)
        if (is_shown(v, cs.items[i].type))
            cs.items[n++] = cs.items[i];
    cs.count = n;
    hfd_buf_init(&b, stored.len);
    hfd_conditions_format(&b, &cs, false);
    return hfd_buf_to_arena(&b, mem, out, err);
}
