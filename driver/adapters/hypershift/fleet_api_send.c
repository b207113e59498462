/* See fleet_api_send.h. */
#include "driver/adapters/hypershift/fleet_api_send.h"

#include "driver/adapters/hypershift/fleet_api_http.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/base/log.h"

#include <stdlib.h>

#define BODY_MAX_BYTES ((size_t)8 << 20)
/*
 * A report on a resource that is not ready is repeated after this time. A remote driver may count
 * only reports that came after its operation began.
 */
#define REPEAT_US (60 * HFD_US_PER_S)

/* ---- secrets that were sent ---- */

static struct hfd_hs_sent **place_of(struct hfd_hs_fleet_api *api, hfd_slice id)
{
    struct hfd_hs_sent **at = &api->sent;

    while (*at != NULL && !hfd_slice_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

hfd_slice hfd_hs_api_sent(const struct hfd_hs_fleet_api *api, hfd_slice id)
{
    for (const struct hfd_hs_sent *s = api->sent; s != NULL; s = s->next)
        if (hfd_slice_is(id, s->id))
            return (hfd_slice){(const char *)s->text.p, s->text.len};
    return HFD_SLICE("");
}

void hfd_hs_api_forget(struct hfd_hs_fleet_api *api, hfd_slice id)
{
    struct hfd_hs_sent **at = place_of(api, id), *gone = *at;

    if (gone == NULL)
        return;
    *at = gone->next;
    hfd_secret_fini(&gone->text);
    free(gone);
}

/* Without memory they are sent again after the next visit that reads them. */
static void keep(struct hfd_hs_fleet_api *api, hfd_slice id, hfd_slice text)
{
    struct hfd_hs_sent *s;

    if (text.len == 0 || id.len > HFD_HS_ID_MAX || hfd_slice_eq(hfd_hs_api_sent(api, id), text))
        return;
    s = calloc(1, sizeof(*s));
    if (s == NULL || hfd_secret_init(&s->text, text.len, NULL) != HFD_OK) {
        free(s);
        return;
    }
    memcpy(s->text.p, text.p, text.len);
    memcpy(s->id, id.p, id.len);
    hfd_hs_api_forget(api, id);
    s->next = api->sent;
    api->sent = s;
}

/* ---- one report ---- */

/* A report under way. */
struct sending {
    struct hfd_hs_fleet_api *api;
    struct hfd_hs_work *w;
    const struct hfd_hs_report *report;
    struct hfd_condition items[HFD_HS_CONDITIONS_MAX];
    struct hfd_conditions conditions; /* of items */
    hfd_slice secrets;                /* plain; empty = none are sent */
    json_t *data;                     /* without secrets */
};

static bool same_condition(const struct hfd_condition *a, const struct hfd_condition *b)
{
    return b != NULL && a->status == b->status && hfd_slice_eq(a->reason, b->reason) &&
           hfd_slice_eq(a->message, b->message);
}

static bool same_conditions(const struct sending *s, const struct hfd_report_row *prev)
{
    struct hfd_conditions is;

    if (hfd_conditions_parse(prev->conditions, s->w->mem, &is, NULL) != HFD_OK ||
        is.count != s->conditions.count)
        return false;
    for (size_t i = 0; i < is.count; i++)
        if (!same_condition(&s->conditions.items[i],
                            hfd_condition_find(&is, s->conditions.items[i].type)))
            return false;
    return true;
}

static bool same_data(const struct sending *s, const struct hfd_report_row *prev)
{
    json_t *is = NULL;
    bool same;

    if (hfd_json_parse(prev->data.len > 0 ? prev->data : HFD_SLICE("{}"), &is, NULL) != HFD_OK)
        return false;
    same = (json_object_get(is, "secrets") != NULL) == (s->secrets.len > 0);
    (void)json_object_del(is, "secrets");
    same = same && json_equal(is, s->data) != 0;
    json_decref(is);
    return same;
}

/* True if the API has a report that says the same, and may be content with it. */
static bool is_known(const struct sending *s)
{
    const struct hfd_report_row *prev = hfd_hs_report_previous(s->w, s->report);

    return prev->adapter.len > 0 && prev->observed_generation == s->report->generation &&
           (s->w->row.ready || s->w->now_us - prev->observed_us < REPEAT_US) &&
           hfd_slice_eq(s->secrets, strcmp(s->report->adapter, HFD_HS_ADAPTER) == 0
                                        ? s->w->prev_secrets
                                        : HFD_SLICE("")) &&
           same_conditions(s, prev) && same_data(s, prev);
}

/*
 * True if the API has secrets that this process has not read yet. A report without them would take
 * them away.
 */
static bool must_wait_for_secrets(const struct sending *s)
{
    return s->api->config.send_secrets && s->w->row.deleted_us == 0 && s->secrets.len == 0 &&
           strcmp(s->report->adapter, HFD_HS_ADAPTER) == 0 &&
           json_object_get(s->w->prev_data, "secrets") != NULL;
}

/* The data as it is sent. @return gives; NULL = out of memory */
static json_t *whole_data(const struct sending *s)
{
    json_t *data = hfd_json_deep_copy(s->data), *secrets = NULL;

    if (data == NULL || s->secrets.len == 0)
        return data;
    if (hfd_json_parse(s->secrets, &secrets, NULL) == HFD_OK &&
        json_object_set_new(data, "secrets", secrets) == 0)
        return data;
    json_decref(data);
    return NULL;
}

static hfd_rc make_body(const struct sending *s, struct hfd_buf *b, struct hfd_err *err)
{
    const struct hfd_report_row *prev = hfd_hs_report_previous(s->w, s->report);
    const int64_t floor_us = prev->adapter.len > 0 ? prev->observed_us : 0;
    json_t *data = whole_data(s);
    hfd_slice text;

    if (data == NULL)
        return hfd_fail_nomem(err, "make a report");
    hfd_buf_addf(b, "{\"adapter\":\"%s\",\"observed_generation\":%lld,\"observed_time\":",
                 s->report->adapter, (long long)s->report->generation);
    hfd_buf_json_time(b, s->w->now_us > floor_us ? s->w->now_us : floor_us);
    hfd_buf_lit(b, ",\"conditions\":");
    hfd_conditions_format(b, &s->conditions, true);
    hfd_buf_lit(b, ",\"data\":");
    hfd_json_dump(b, data);
    hfd_buf_addc(b, '}');
    json_decref(data);
    return hfd_buf_finish(b, &text, err);
}

static hfd_rc post(const struct sending *s, struct hfd_err *err)
{
    struct hfd_remote_request request = {
        .method = HFD_REMOTE_POST, .path = hfd_hs_api_path(&s->w->row, "/statuses", s->w->mem)};
    struct hfd_hs_answer answer = {.status = 0};
    struct hfd_buf body;
    hfd_rc rc;

    hfd_buf_init(&body, BODY_MAX_BYTES);
    rc = make_body(s, &body, err);
    request.body = hfd_buf_slice(&body);
    if (rc == HFD_OK)
        rc = hfd_hs_api_exchange(s->api, &request, s->w->mem, &answer, err);
    if (body.p != NULL)
        explicit_bzero(body.p, body.cap);
    hfd_buf_fini(&body);
    if (rc == HFD_OK && answer.status == 204)
        HFD_LOG(HFD_LOG_DEBUG, "HyperShift adapter: HyperFleet discarded a report",
                HFD_LOG_STR("id", s->w->row.id), HFD_LOG_CSTR("adapter", s->report->adapter));
    if (rc == HFD_OK && answer.status != 204)
        keep(s->api, s->w->row.id, s->secrets);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* removed meanwhile */
}

static hfd_rc send_one(struct sending *s, struct hfd_err *err)
{
    const struct hfd_hs_report *r = s->report;
    hfd_rc rc = hfd_json_parse(r->data.text, &s->data, err);

    if (rc != HFD_OK)
        return rc;
    (void)json_object_del(s->data, "secrets");
    s->conditions = (struct hfd_conditions){s->items, hfd_hs_report_conditions(s->w, r, s->items)};
    s->secrets = s->api->config.send_secrets ? r->data.secrets : HFD_SLICE("");
    if (!is_known(s) && !must_wait_for_secrets(s))
        rc = post(s, err);
    json_decref(s->data);
    return rc;
}

hfd_rc hfd_hs_api_send(void *arg, struct hfd_hs_work *w, const struct hfd_hs_reports *reports,
                       struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < reports->count; i++) {
        struct sending s = {.api = arg, .w = w, .report = &reports->items[i]};

        rc = send_one(&s, err);
    }
    return rc;
}
