/* PacemakerCluster documents as they come in. See read.h. */
#include "driver/health/read.h"

static hfd_rc keep_text(const json_t *doc, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_HEALTH_DOCUMENT_MAX_BYTES);
    hfd_json_dump_for_store(&b, doc);
    rc = hfd_buf_to_arena(&b, mem, out, err);
    return rc == HFD_LIMIT ? hfd_fail(err, HFD_TOO_LARGE,
                                      "the PacemakerCluster document is larger than %zu bytes",
                                      HFD_HEALTH_DOCUMENT_MAX_BYTES)
                           : rc;
}

hfd_rc hfd_health_read(json_t *doc, const char *root, struct hfd_arena *mem,
                       struct hfd_health_reading *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_health_reading){.present = true};
    rc = hfd_health_check(doc, root, mem, &out->violations, err);
    if (rc != HFD_OK)
        return rc;
    hfd_health_prune(doc);
    rc = keep_text(doc, mem, &out->text, err);
    return rc == HFD_OK ? hfd_health_parse(doc, mem, &out->document, err) : rc;
}

hfd_rc hfd_health_read_report(hfd_slice data, struct hfd_arena *mem, struct hfd_health_reading *out,
                              struct hfd_err *err)
{
    json_t *all, *doc;
    hfd_rc rc = hfd_json_parse(data, &all, err);

    *out = (struct hfd_health_reading){.present = false};
    if (rc != HFD_OK)
        return rc;
    doc = json_object_get(all, HFD_HEALTH_MEMBER);
    if (doc != NULL && !json_is_null(doc))
        rc = hfd_health_read(doc, "data." HFD_HEALTH_MEMBER, mem, out, err);
    json_decref(all);
    return rc;
}
