/* See labels.h. */
#include "driver/core/labels.h"

#include "driver/backend/backend.h"
#include "driver/base/jsonx.h"

hfd_rc hfd_labels_given(hfd_slice stored, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    json_t *labels;
    hfd_rc rc = hfd_json_parse(stored, &labels, err);

    if (rc != HFD_OK)
        return rc;
    (void)json_object_del(labels, HFD_GURESID_LABEL);
    *out = hfd_json_dump_arena(mem, labels);
    json_decref(labels);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read labels");
}

hfd_rc hfd_label_value(hfd_slice labels, const char *key, struct hfd_arena *mem, hfd_slice *out,
                       struct hfd_err *err)
{
    const char *value;
    json_t *all;
    hfd_rc rc = hfd_json_parse(labels, &all, err);

    if (rc != HFD_OK)
        return rc;
    value = json_string_value(json_object_get(all, key));
    *out = hfd_arena_dup(mem, hfd_slice_of(value != NULL ? value : ""));
    json_decref(all);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read labels");
}
