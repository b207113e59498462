#include "handlers/http/exchange_fail.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"
#include "driver/core/guresid.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/reply.h"

#define PROBLEM_MAX_BYTES 262144 /* a full list of violations with the longest fields */

/* Returns the GUResID of a request to the Driver API; empty if there is none. */
static hfd_slice resource_of(const struct hfd_exchange *x)
{
    hfd_slice id = HFD_SLICE_NONE;

    if (x->match.dialect == HFD_DIALECT_DRIVER && x->match.route != NULL)
        id = hfd_exchange_param(x, "guresid");
    return hfd_guresid_check(id, NULL) == HFD_OK ? id : HFD_SLICE_NONE;
}

void hfd_exchange_problem(struct hfd_exchange *x, struct hfd_problem *p, const char *allow)
{
    struct hfd_reply reply = {0};
    struct hfd_buf b;

    p->dialect = x->match.dialect;
    p->path = x->view.path;
    p->resource = resource_of(x);
    p->request_id = x->view.request_id;
    p->now_us = x->view.received_us;
    hfd_buf_init(&b, PROBLEM_MAX_BYTES);
    hfd_problem_format(p, &b, &reply);
    if (b.rc == HFD_OK)
        reply.body = hfd_buf_slice(&b);
    else
        reply.content_type = NULL; /* no memory for a body: the status must do */
    hfd_exchange_keep(x, &b);
    reply.allow = allow;
    hfd_exchange_reply(x, &reply);
}

static void fail(struct hfd_exchange *x, struct hfd_problem *p, const struct hfd_err *err)
{
    if (HFD_NEVER(p->rc == HFD_OK))
        p->rc = HFD_CORRUPT;
    if (p->rc == HFD_NOMEM)
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("memory"), 1);
    else if (p->rc == HFD_TIMEOUT)
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("read_timeout"), 1);
    /* The log has what a 5xx hides from the client. */
    if (hfd_problem_status(x->match.dialect, p->rc) >= 500)
        HFD_LOG(p->rc == HFD_CORRUPT || p->rc == HFD_DAMAGED || p->rc == HFD_IO ? HFD_LOG_ERROR
                                                                                : HFD_LOG_WARN,
                "request failed", HFD_LOG_CSTR("rc", hfd_rc_name(p->rc)),
                HFD_LOG_CSTR("detail", err != NULL ? err->msg : ""));
    p->field = err != NULL ? err->field : NULL;
    p->message = err != NULL ? err->msg : NULL;
    hfd_exchange_problem(x, p, NULL);
}

void hfd_exchange_fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err)
{
    fail(x, &(struct hfd_problem){.rc = rc}, err);
}

void hfd_exchange_fail_as(struct hfd_exchange *x, int status, hfd_rc rc, const struct hfd_err *err)
{
    fail(x, &(struct hfd_problem){.rc = rc, .status = status}, err);
}

void hfd_exchange_fail_fields(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                              const struct hfd_violations *fields)
{
    fail(x, &(struct hfd_problem){.rc = rc, .fields = fields}, err);
}

void hfd_exchange_fail_rules(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                             const struct hfd_health_violations *rules)
{
    fail(x, &(struct hfd_problem){.rc = rc, .rules = rules}, err);
}
