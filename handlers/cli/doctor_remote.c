/* See doctor_remote.h. */
#include "handlers/cli/doctor_remote.h"

#include "driver/backend/remote/verdict.h"
#include "handlers/cli/look.h"

#include <jansson.h>

static const char *condition_of(const json_t *resource)
{
    const json_t *conditions = json_object_get(json_object_get(resource, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const char *type =
            json_string_value(json_object_get(json_array_get(conditions, i), "type"));

        if (type != NULL && (strcmp(type, "Reconciled") == 0 || strcmp(type, "Ready") == 0))
            return type;
    }
    return NULL;
}

/* The names of conditions show the version; without a cluster it is unknown. */
static const char *conditions_of(const json_t *list)
{
    const json_t *items = json_object_get(list, "items");
    const char *type = NULL;

    for (size_t i = 0; type == NULL && i < json_array_size(items); i++)
        type = condition_of(json_array_get(items, i));
    return type;
}

static bool say_list(const struct hfd_remote_answer *a, int64_t took_us, struct hfd_buf *out)
{
    json_t *list = a->is_json ? json_loadb(a->body.p, a->body.len, 0, NULL) : NULL;
    const char *type = conditions_of(list);
    const bool ok = a->status == 200 && json_is_array(json_object_get(list, "items"));

    if (ok && type != NULL)
        hfd_buf_addf(out, "answers as a HyperFleet with condition %s, in %lld ms", type,
                     (long long)(took_us / 1000));
    else if (ok)
        hfd_buf_addf(out, "answers as a HyperFleet without clusters, in %lld ms",
                     (long long)(took_us / 1000));
    else
        hfd_buf_addf(out, "answers with status %d but without a list of clusters", a->status);
    json_decref(list);
    return ok;
}

static bool say(const struct hfd_remote_call *call, struct hfd_buf *out)
{
    const struct hfd_remote_answer *a = &call->answer;

    if (!a->arrived) {
        hfd_buf_add(out, hfd_slice_of(a->failure));
        return false;
    }
    switch (hfd_remote_health_of(a)) {
    case HFD_REMOTE_WELL:
        return say_list(a, call->duration_us, out);
    case HFD_REMOTE_REFUSES:
        hfd_buf_addf(out,
                     "refuses our credentials with status %d; check remote.token_file and "
                     "remote.cert_file",
                     a->status);
        return false;
    case HFD_REMOTE_WRONG:
        hfd_buf_addf(out,
                     "is not a HyperFleet API: it answers with status %d; check the URL in backend",
                     a->status);
        return false;
    case HFD_REMOTE_ILL:
        break;
    }
    hfd_buf_addf(out, "answers with an error: status %d%s", a->status,
                 a->is_json ? "" : ", and no JSON");
    return false;
}

static void on_done(struct hfd_remote_call *call)
{
    *(bool *)call->arg = true;
}

bool hfd_doctor_remote(const struct hfd_settings *s, struct hfd_buf *out)
{
    const struct hfd_remote_http_config config = hfd_look_http(s);
    bool ended = false, well = false;
    struct hfd_remote_call call = {.done = on_done, .arg = &ended};
    struct hfd_remote_http *http = NULL;
    struct hfd_err err = {0};
    hfd_rc rc;

    call.request = (struct hfd_remote_request){
        .method = HFD_REMOTE_GET, .path = HFD_SLICE("/clusters?page=1&size=10&pageSize=10")};
    hfd_buf_addf(out, "%.*s ", HFD_SLICE_FMT(s->backend));
    rc = hfd_remote_http_open(&config, &http, &err);
    if (rc == HFD_OK)
        rc = hfd_remote_http_send(http, &call, &err);
    while (rc == HFD_OK && !ended)
        hfd_remote_http_run(http, s->remote_timeout_us);
    if (rc == HFD_OK)
        well = say(&call, out);
    else
        hfd_buf_addf(out, "cannot be asked: %s", err.msg);
    hfd_remote_call_fini(&call);
    hfd_remote_http_close(&http);
    return well;
}
