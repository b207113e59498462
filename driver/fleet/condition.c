/* Conditions and their stored text. It is ours alone, so whatever does not fit on reading is damage. */
#include "driver/fleet/condition.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"

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

static hfd_rc get_text(const json_t *obj, const char *key, bool required, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = jsonx_get_string(obj, "condition", key, required, &text, err);

    *out = HFD_SLICE_NONE;
    if (rc != HFD_OK || text.p == NULL)
        return rc;
    *out = hfd_arena_dup(mem, text);
    return out->p != NULL ? HFD_OK : hfd_fail(err, HFD_NOMEM, "read condition %s", key);
}

static hfd_rc get_time(const json_t *obj, const char *key, int64_t *at_us, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = jsonx_get_string(obj, "condition", key, false, &text, err);

    *at_us = 0;
    if (rc != HFD_OK || text.p == NULL)
        return rc;
    return hfd_time_parse(text, at_us, err);
}

static hfd_rc parse_status(const json_t *obj, enum hfd_status *out, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc = jsonx_get_string(obj, "condition", "status", true, &text, err);

    if (rc == HFD_OK && !hfd_status_parse(text, out))
        rc = hfd_fail(err, HFD_CORRUPT, "condition.status is none of True, False, Unknown");
    return rc;
}

static hfd_rc parse_one(const json_t *obj, struct hfd_arena *mem, struct hfd_condition *c, struct hfd_err *err)
{
    bool present;
    hfd_rc rc;

    if (!json_is_object(obj))
        return hfd_fail(err, HFD_CORRUPT, "a condition is %s", jsonx_type_name(obj));
    rc = get_text(obj, "type", true, mem, &c->type, err);
    if (rc == HFD_OK)
        rc = parse_status(obj, &c->status, err);
    if (rc == HFD_OK)
        rc = get_text(obj, "reason", false, mem, &c->reason, err);
    if (rc == HFD_OK)
        rc = get_text(obj, "message", false, mem, &c->message, err);
    if (rc == HFD_OK)
        rc = jsonx_get_i64(obj, "condition", "observed_generation", INT64_MIN, INT64_MAX, false, &present, &c->observed_generation, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "created_time", &c->created_us, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "last_updated_time", &c->last_updated_us, err);
    if (rc == HFD_OK)
        rc = get_time(obj, "last_transition_time", &c->last_transition_us, err);
    return rc;
}

static hfd_rc parse_all(const json_t *doc, struct hfd_arena *mem, struct hfd_conditions *out, struct hfd_err *err)
{
    struct hfd_conditions cs = {NULL, 0};

    if (!json_is_array(doc))
        return hfd_fail(err, HFD_CORRUPT, "stored conditions are %s", jsonx_type_name(doc));
    cs.count = json_array_size(doc);
    if (cs.count == 0)
        return HFD_OK;
    cs.items = hfd_arena_array(mem, cs.count, sizeof(*cs.items));
    if (cs.items == NULL)
        return hfd_fail(err, HFD_NOMEM, "read %zu conditions", cs.count);
    for (size_t i = 0; i < cs.count; i++) {
        const hfd_rc rc = parse_one(json_array_get(doc, i), mem, &cs.items[i], err);

        if (rc != HFD_OK)
            return rc;
    }
    *out = cs;
    return HFD_OK;
}

hfd_rc hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem, struct hfd_conditions *out, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    *out = (struct hfd_conditions){NULL, 0};
    rc = hfd_json_parse(stored, &doc, err);
    if (rc == HFD_OK)
        rc = parse_all(doc, mem, out, err);
    json_decref(doc);
    if (rc == HFD_OK || rc == HFD_NOMEM)
        return rc;
    if (err != NULL) /* the reader's own words, but to us every one of them is damage */
        err->rc = HFD_CORRUPT;
    return HFD_CORRUPT;
}

static void add_text(struct hfd_buf *b, const char *key, hfd_slice text)
{
    hfd_buf_addf(b, ",\"%s\":", key);
    hfd_buf_json_str(b, text);
}

static void add_time(struct hfd_buf *b, const char *key, int64_t at_us)
{
    hfd_buf_addf(b, ",\"%s\":", key);
    hfd_buf_json_time(b, at_us);
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
        hfd_buf_lit(b, "{\"type\":");
        hfd_buf_json_str(b, c->type);
        add_text(b, "status", hfd_slice_of(hfd_status_name(c->status)));
        if (c->reason.len > 0)
            add_text(b, "reason", c->reason);
        if (c->message.len > 0)
            add_text(b, "message", c->message);
        if (!of_report) {
            hfd_buf_lit(b, ",\"observed_generation\":");
            hfd_buf_i64(b, c->observed_generation);
            add_time(b, "created_time", c->created_us);
            add_time(b, "last_updated_time", c->last_updated_us);
        }
        add_time(b, "last_transition_time", c->last_transition_us);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}
