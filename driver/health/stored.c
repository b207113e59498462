/* A PacemakerCluster document as it is stored. See stored.h. */
#include "driver/health/stored.h"

#include "driver/health/follow.h"
#include "driver/health/objects.h"

#define DATA_MAX_BYTES ((size_t)16 * 1024 * 1024) /* of a report with a document */

static hfd_rc dump(const json_t *v, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    struct hfd_buf b;

    hfd_buf_init(&b, DATA_MAX_BYTES);
    hfd_json_dump_for_store(&b, v);
    return hfd_buf_to_arena(&b, mem, out, err);
}

static hfd_rc read_document(const json_t *data, struct hfd_arena *mem,
                            struct hfd_health_stored *out, struct hfd_err *err)
{
    const json_t *doc = json_object_get(data, HFD_HEALTH_MEMBER);
    hfd_rc rc;

    out->has_document = json_is_object(doc);
    if (!out->has_document)
        return HFD_OK;
    rc = dump(doc, mem, &out->text, err);
    if (rc == HFD_OK)
        rc = hfd_health_parse(doc, mem, &out->document, err);
    if (rc != HFD_CORRUPT)
        return rc;
    out->has_document = out->known = false; /* of the time before the adapter was an observer */
    return HFD_OK;
}

/* Only an observer's report has the server's condition, and then the document is the server's. */
static hfd_rc read_report(struct hfd_arena *mem, struct hfd_health_stored *out, struct hfd_err *err)
{
    const struct hfd_condition *degraded;
    struct hfd_conditions cs;
    json_t *data;
    hfd_rc rc = hfd_conditions_parse(out->row.conditions, mem, &cs, err);

    if (rc != HFD_OK)
        return rc;
    degraded = hfd_condition_find(&cs, HFD_SLICE(HFD_HEALTH_DEGRADED));
    out->known = degraded != NULL && degraded->status != HFD_STATUS_UNKNOWN;
    if (degraded == NULL)
        return HFD_OK;
    rc = hfd_json_parse(out->row.data, &data, err);
    if (rc != HFD_OK)
        return rc;
    rc = read_document(data, mem, out, err);
    json_decref(data);
    return rc;
}

hfd_rc hfd_health_stored_load(struct hfd_txn *tx, const struct hfd_health_key *key,
                              struct hfd_arena *mem, struct hfd_health_stored *out,
                              struct hfd_err *err)
{
    const struct hfd_watch_row watch = {
        .fleet_id = key->cluster_id, .adapter = key->adapter, .stale_us = INT64_MAX};
    const struct hfd_report_key report = {key->cluster_id, key->adapter};
    hfd_rc rc;

    *out = (struct hfd_health_stored){.watch = watch};
    rc = hfd_report_row_get(tx, &report, mem, &out->row, err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    out->reported = rc == HFD_OK;
    if (rc == HFD_OK)
        rc = read_report(mem, out, err);
    if (rc != HFD_OK || !out->has_document || !out->document.has_status)
        return rc;
    rc = hfd_watch_row_get(tx, &watch, mem, &out->watch, err);
    if (rc != HFD_NOT_FOUND)
        return rc;
    out->watch = watch; /* the setting was not there for a while: its age counts from now on */
    out->watch.stale_us = hfd_health_stale_us(&out->document, INT64_MAX / 2);
    return HFD_OK;
}

hfd_rc hfd_health_stored_data(hfd_slice data, hfd_slice document, struct hfd_arena *mem,
                              struct hfd_health_data *out, struct hfd_err *err)
{
    json_t *all, *doc;
    hfd_rc rc = hfd_json_parse(data, &all, err);

    *out = (struct hfd_health_data){.text = HFD_SLICE_NONE};
    if (rc != HFD_OK)
        return rc;
    rc = hfd_json_parse(document, &doc, err);
    if (rc == HFD_OK && json_object_set_new(all, HFD_HEALTH_MEMBER, doc) != 0)
        rc = hfd_fail_nomem(err, "put a document into a report");
    if (rc == HFD_OK)
        rc = dump(all, mem, &out->text, err);
    if (rc == HFD_OK)
        hfd_health_count_objects(all, &out->objects);
    json_decref(all);
    return rc;
}

hfd_rc hfd_health_stored_join(const struct hfd_health_join_texts *in, struct hfd_arena *mem,
                              hfd_slice *out, struct hfd_err *err)
{
    json_t *main = NULL, *status = NULL, *joined = NULL;
    hfd_rc rc = hfd_json_parse(in->main, &main, err);

    if (rc == HFD_OK && in->status.len > 0)
        rc = hfd_json_parse(in->status, &status, err);
    if (rc == HFD_OK)
        rc = hfd_health_join(main, status, &joined, err);
    if (rc == HFD_OK)
        rc = dump(joined, mem, out, err);
    json_decref(joined);
    json_decref(status);
    json_decref(main);
    return rc;
}
