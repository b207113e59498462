/* See transfer.h. */
#include "driver/kube/transfer.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"

#define NO_ROUTE "404 page not found"

/* Counts a request by its answer. @param status  0 = no whole answer */
static void count(struct hfd_kube_transfer *t, int status)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *class = status == 0 ? "none" : "other";

    if (status >= 100 && status < 600)
        class = classes[status / 100 - 1];
    if (!t->counted)
        hfd_metric_add(HFD_METRIC_KUBE_REQUESTS, HFD_LABELS(t->method, class), 1);
    t->counted = true;
}

/* A stream is counted when it begins. */
static bool take(void *ctx, hfd_slice piece)
{
    struct hfd_kube_transfer *t = ctx;

    count(t, 200);
    return piece.len == 0 || t->on_bytes(t->ctx, piece);
}

static void finish(void *ctx)
{
    struct hfd_kube_transfer *t = ctx;

    t->done = true;
    count(t, t->answer.rc == HFD_OK ? t->answer.status : 0);
    if (t->answer.status == 401)
        t->kube->refused_token = true;
}

hfd_rc hfd_kube_transfer_start(struct hfd_kube_transfer *t, struct hfd_err *err)
{
    struct hfd_kube *kube = t->kube;

    HFD_CHECK_OBJ(kube, HFD_KUBE_MAGIC);
    HFD_ASSERT(!t->began);
    if (atomic_load(&kube->stopped))
        return hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
    hfd_kube_refresh(kube);
    t->began = true;
    t->server = kube->server;
    t->server.timeout_us = t->timeout_us;
    t->call = (struct hfd_http_call){
        .server = &t->server,
        .method = t->method,
        .url = {kube->config.access->server, t->path},
        .headers = {{"Accept", hfd_slice_of(t->accept != NULL ? t->accept : "application/json")},
                    {"Content-Type",
                     t->body.len > 0 ? hfd_slice_of(t->content_type) : HFD_SLICE_NONE}},
        .body = t->body,
        .take = t->on_bytes != NULL ? take : NULL,
        .done = finish,
        .ctx = t,
        .answer = &t->answer,
    };
    if (hfd_http_call_start(kube->client, &t->call))
        return HFD_OK;
    hfd_kube_transfer_fini(t);
    return hfd_fail_nomem(err, "call a Kubernetes API server");
}

void hfd_kube_transfer_fini(struct hfd_kube_transfer *t)
{
    hfd_http_call_end(&t->call);
    hfd_http_answer_fini(&t->answer);
    t->began = false;
}

hfd_rc hfd_kube_transfer_result(const struct hfd_kube_transfer *t, struct hfd_err *err)
{
    const char *server = t->kube->config.access->server.p;
    const struct hfd_http_answer *a = &t->answer;

    if (a->refused != NULL)
        return hfd_fail(err, a->rc, "the API server %.80s: %s", server, a->refused);
    if (a->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "call a Kubernetes API server");
    if (a->rc == HFD_OK)
        return HFD_OK;
    return hfd_fail(err, HFD_TIMEOUT, "the API server %.80s does not answer: %s (%s)", server,
                    a->meaning != NULL ? a->meaning : "no whole answer", a->detail);
}

hfd_rc hfd_kube_transfer_answer(const struct hfd_kube_transfer *t, struct hfd_kube_answer *out,
                                struct hfd_err *err)
{
    const struct hfd_http_answer *a = &t->answer;
    const hfd_slice body = hfd_buf_slice(&a->body);

    out->status = a->status;
    out->asked = t->asked;
    out->retry_after_us = a->retry_after_us;
    out->empty = body.len == 0;
    out->no_route = hfd_slice_starts(body, HFD_SLICE(NO_ROUTE));
    memcpy(out->type, a->type, sizeof(out->type));
    if (hfd_json_parse(body, &out->doc, NULL) == HFD_NOMEM)
        return hfd_fail_nomem(err, "read an answer");
    return HFD_OK;
}
