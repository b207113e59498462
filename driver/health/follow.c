/* How a PacemakerCluster document may follow the stored one. See follow.h. */
#include "driver/health/follow.h"

enum hfd_health_follows hfd_health_follows(const struct hfd_health_document *stored,
                                           const struct hfd_health_document *next)
{
    if (stored == NULL || !stored->has_status)
        return HFD_HEALTH_NEWER;
    if (!next->has_status)
        return HFD_HEALTH_REMOVED;
    if (next->updated_us < stored->updated_us)
        return HFD_HEALTH_EARLIER;
    return next->updated_us == stored->updated_us ? HFD_HEALTH_SAME : HFD_HEALTH_NEWER;
}

hfd_rc hfd_health_join(const json_t *main, const json_t *status, json_t **out, struct hfd_err *err)
{
    json_t *of = json_object_get(status, "status"), *doc = hfd_json_copy(main);
    bool ok = doc != NULL;

    (void)json_object_del(doc, "status");
    if (ok && of != NULL && !json_is_null(of))
        ok = json_object_set(doc, "status", of) == 0;
    *out = ok ? doc : NULL;
    if (ok)
        return HFD_OK;
    json_decref(doc);
    return hfd_fail_nomem(err, "put a PacemakerCluster document together");
}
