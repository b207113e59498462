/* See manifests.h. */
#include "driver/core/manifests.h"

#include "driver/base/jsonx.h"
#include "driver/base/log.h"
#include "driver/core/guresid.h"
#include "store/rows_report.h"

#define LOGGED_MAX 10 /* of one resource at a time */
#define ADAPTER_SHOWN_MAX 64

/* A log line about a manifest that is left out. It is copied until the commit. */
struct line {
    char guresid[HFD_GURESID_MAX + 1];
    char adapter[ADAPTER_SHOWN_MAX + 1];
    int64_t index; /* in the array; -1 = the array itself */
    const char *reason;
};

/* The faults of the manifests of a resource. */
struct faults {
    struct line lines[LOGGED_MAX];
    size_t count;
};

static void write_line(const void *arg)
{
    const struct line *l = arg;

    HFD_LOG(HFD_LOG_WARN, "manifest left out", HFD_LOG_CSTR("guresid", l->guresid),
            HFD_LOG_CSTR("adapter", l->adapter), HFD_LOG_INT("index", l->index),
            HFD_LOG_CSTR("reason", l->reason));
}

static void note(struct faults *faults, int64_t index, const char *reason)
{
    if (faults->count < LOGGED_MAX)
        faults->lines[faults->count++] = (struct line){.index = index, .reason = reason};
}

static bool is_text(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_string(v) && json_string_length(v) > 0;
}

/* The places of the Driver API, each in the singular and the plural. */
static bool is_location(const json_t *v)
{
    static const char *const places[] = {"container", "volume", "namespace", "cluster"};
    const hfd_slice text = {json_string_value(v), json_string_length(v)};

    for (size_t i = 0; text.p != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        const size_t len = strlen(places[i]);

        if (hfd_slice_starts(text, hfd_slice_of(places[i])) &&
            (text.len == len || (text.len == len + 1 && text.p[len] == 's')))
            return true;
    }
    return false;
}

/* Says what is wrong with a manifest; NULL = nothing. */
static const char *fault_of(const json_t *item)
{
    const json_t *data = json_object_get(item, "data");

    if (!json_is_object(item))
        return "expected an object with location and data";
    if (!is_location(json_object_get(item, "location")))
        return "location: expected container, volume, namespace or cluster, or their plurals";
    if (!json_is_object(data))
        return "data: expected a Kubernetes object";
    if (!is_text(data, "apiVersion"))
        return "data.apiVersion: expected a text";
    if (!is_text(data, "kind"))
        return "data.kind: expected a text";
    return is_text(json_object_get(data, "metadata"), "name")
               ? NULL
               : "data.metadata.name: expected a text";
}

static void add_manifests(struct hfd_buf *b, const json_t *list, struct faults *faults)
{
    const char *sep = "{\"data\":";

    if (list != NULL && !json_is_array(list))
        note(faults, -1, "expected an array of manifests");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *fault = fault_of(item);

        if (fault != NULL) {
            note(faults, (int64_t)i, fault);
            continue;
        }
        hfd_buf_add(b, hfd_slice_of(sep));
        sep = ",{\"data\":";
        hfd_json_dump_for_store(b, json_object_get(item, "data"));
        hfd_buf_lit(b, ",\"location\":");
        hfd_json_dump_for_store(b, json_object_get(item, "location"));
        hfd_buf_addc(b, '}');
    }
}

/* Reads the array that the setting names. The document holds it; both are NULL without a report. */
static hfd_rc read_list(const struct hfd_ctx *c, const struct hfd_part *main, json_t **document,
                        const json_t **list)
{
    const struct hfd_output_rule *rule = &c->driver->output_manifests;
    struct hfd_report_row r;
    hfd_rc rc = hfd_report_row_get(
        c->tx, &(struct hfd_report_key){main->row.fleet_id, rule->adapter}, c->mem, &r, c->err);

    *document = NULL;
    *list = NULL;
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_json_parse(r.data, document, c->err);
    if (rc == HFD_OK)
        *list = hfd_json_pointer(*document, rule->pointer);
    return rc;
}

static hfd_rc log_faults(const struct hfd_ctx *c, hfd_slice guresid, struct faults *faults)
{
    const hfd_slice adapter = c->driver->output_manifests.adapter;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < faults->count; i++) {
        struct line *l = &faults->lines[i];

        (void)snprintf(l->guresid, sizeof(l->guresid), "%.*s", HFD_SLICE_FMT(guresid));
        (void)snprintf(l->adapter, sizeof(l->adapter), "%.*s", HFD_SLICE_FMT(adapter));
        rc = hfd_txn_after_commit(c->tx, write_line, l, sizeof(*l), c->err);
    }
    return rc;
}

hfd_rc hfd_manifests_add(const struct hfd_ctx *c, const struct hfd_part *main, hfd_slice was,
                         struct hfd_buf *b)
{
    const size_t start = b->len;
    struct faults faults = {.count = 0};
    const json_t *list;
    json_t *document;
    hfd_rc rc;

    if (c->driver->output_manifests.adapter.len == 0)
        return HFD_OK;
    rc = read_list(c, main, &document, &list);
    if (rc != HFD_OK)
        return rc;
    hfd_buf_addc(b, '[');
    add_manifests(b, list, &faults);
    hfd_buf_addc(b, ']');
    json_decref(document);
    if (b->rc != HFD_OK || hfd_slice_eq(was, (hfd_slice){b->p + start, b->len - start}))
        return HFD_OK;
    return log_faults(c, main->row.guresid, &faults);
}
