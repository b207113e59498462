/* See fleet_api_http.h. */
#include "driver/adapters/hypershift/fleet_api_http.h"

#include "driver/backend/remote/verdict.h"
#include "driver/base/check.h"

#define WAIT_US HFD_US_PER_S

static int64_t mono_us(const struct hfd_hs_fleet_api *api)
{
    return hfd_clock_mono_us(api->config.http.clock);
}

/* No request until the pause is over: all would fail alike. */
static hfd_rc close_api(struct hfd_hs_fleet_api *api, int64_t retry_after_us, struct hfd_err *err)
{
    int64_t pause_us;
    uint32_t random;

    hfd_rng_bytes(api->config.rng, &random, sizeof(random));
    pause_us = hfd_kube_backoff_us(&api->config.pauses, ++api->failures, random);
    api->closed_until_us = mono_us(api) + (retry_after_us > pause_us ? retry_after_us : pause_us);
    return hfd_fail(err, HFD_IO, "%s", api->why);
}

static void on_done(struct hfd_remote_call *call)
{
    *(bool *)call->arg = true;
}

/* ---- what an answer means ---- */

/* Says what is wrong with an answer that is not good. */
static void say(struct hfd_hs_fleet_api *api, const struct hfd_remote_answer *a,
                enum hfd_remote_verdict verdict, const struct hfd_wire_problem *problem)
{
    const char *between = problem->words.len > 0 ? ": " : "";
    const char *hint = "";

    if (!a->arrived) {
        (void)snprintf(api->why, sizeof(api->why), "HyperFleet gave no answer: %s",
                       a->failure != NULL ? a->failure : "unknown");
        return;
    }
    if (a->status == 401)
        hint = " (the token is missing or not valid: check remote.token_file)";
    else if (a->status == 403)
        hint = " (the token may not read clusters and report on them: it needs the scope adapter)";
    else if (verdict == HFD_ON_WRONG)
        hint = " (there is no HyperFleet API at this URL)";
    else if (a->status >= 200 && a->status <= 299)
        hint = " with a document that cannot be read";
    (void)snprintf(api->why, sizeof(api->why), "HyperFleet answered %d%s%s%.*s", a->status, hint,
                   between, HFD_SLICE_FMT(problem->words));
}

static bool is_good(int status)
{
    return status >= 200 && status <= 299;
}

/* Takes a good answer. A report's answer is not read: 204 has none. */
static hfd_rc take_good(const struct hfd_remote_request *r, const struct hfd_remote_answer *a,
                        struct hfd_hs_answer *out, struct hfd_err *err)
{
    if (r->method != HFD_REMOTE_GET)
        return HFD_OK;
    return a->is_json ? hfd_json_parse(a->body, &out->doc, err) : HFD_MALFORMED;
}

/* Ends an exchange whose answer is not good. */
static hfd_rc refuse(struct hfd_hs_fleet_api *api, const struct hfd_remote_call *call,
                     const struct hfd_wire_problem *problem, struct hfd_err *err)
{
    const enum hfd_remote_verdict verdict =
        hfd_remote_verdict_of(call->request.method, &call->answer, problem);

    say(api, &call->answer, verdict, problem);
    switch (verdict) {
    case HFD_ON_MISSING:
        return hfd_fail(err, HFD_NOT_FOUND, "%s", api->why);
    case HFD_ON_INVALID:
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_UNABLE:
        return hfd_fail(err, HFD_INVALID, "%s", api->why);
    case HFD_ON_WELL:
    case HFD_ON_LATER:
    case HFD_ON_WRONG:
    case HFD_ON_REFUSED:
        break;
    }
    return close_api(api, call->answer.retry_after_us, err);
}

static hfd_rc take_answer(struct hfd_hs_fleet_api *api, const struct hfd_remote_call *call,
                          struct hfd_arena *mem, struct hfd_hs_answer *out, struct hfd_err *err)
{
    const struct hfd_remote_answer *a = &call->answer;
    struct hfd_wire_problem problem = {.no_route = false};
    hfd_rc rc = HFD_OK;

    out->status = a->status;
    if (a->arrived && is_good(a->status)) {
        rc = take_good(&call->request, a, out, err);
        if (rc == HFD_OK || rc == HFD_NOMEM)
            return rc;
    } else if (a->arrived && a->is_json) {
        rc = hfd_wire_problem_read(a->body, mem, &problem, err);
        if (rc != HFD_OK)
            return rc;
    }
    return refuse(api, call, &problem, err);
}

hfd_rc hfd_hs_api_exchange(struct hfd_hs_fleet_api *api, const struct hfd_remote_request *request,
                           struct hfd_arena *mem, struct hfd_hs_answer *out, struct hfd_err *err)
{
    bool done = false;
    struct hfd_remote_call call = {.request = *request, .done = on_done, .arg = &done};
    hfd_rc rc;

    HFD_CHECK_OBJ(api, HFD_HS_FLEET_API_MAGIC);
    *out = (struct hfd_hs_answer){.status = 0};
    if (request->path.p == NULL)
        return hfd_fail_nomem(err, "make a request to HyperFleet");
    if (mono_us(api) < api->closed_until_us)
        return hfd_fail(err, HFD_IO, "%s", api->why);
    rc = hfd_remote_http_send(api->http, &call, err);
    while (rc == HFD_OK && !done && !atomic_load(&api->stopped))
        hfd_remote_http_run(api->http, WAIT_US);
    if (rc == HFD_OK && !done)
        rc = hfd_fail(err, HFD_BUSY, "the adapter is stopping");
    if (rc == HFD_OK)
        rc = take_answer(api, &call, mem, out, err);
    if (rc == HFD_OK)
        api->failures = 0;
    hfd_remote_call_fini(&call);
    return rc;
}

hfd_slice hfd_hs_api_path(const struct hfd_fleet_row *row, const char *rest, struct hfd_arena *mem)
{
    if (row->kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters/%.*s%s", HFD_SLICE_FMT(row->id), rest);
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools/%.*s%s", HFD_SLICE_FMT(row->owner_id),
                            HFD_SLICE_FMT(row->id), rest);
}
