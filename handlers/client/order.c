/* See order.h. */
#include "handlers/client/order.h"

#include "driver/base/jsonx.h"

#define COOKIE_MAX_BYTES ((size_t)64 * 1024)
#define WAIT_FIRST_US HFD_US_PER_S
#define WAIT_MAX_US (INT64_C(30) * HFD_US_PER_S)
#define AWAY_TRIES 10 /* polls without an answer in a row */
#define ID_MAX_BYTES 1024

/* Adds a GUResID as a segment of a path. @return false when it is too long */
static bool encode(const char *id, char out[ID_MAX_BYTES])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (const char *p = id; *p != '\0'; p++) {
        if (n + 4 > ID_MAX_BYTES)
            return false;
        if (hfd_is_alnum(*p) || strchr("-._~", *p) != NULL) {
            out[n++] = *p;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[(unsigned char)*p >> 4];
        out[n++] = digits[(unsigned char)*p & 15];
    }
    out[n] = '\0';
    return true;
}

static hfd_rc keep_cookie(const struct hfd_order_driver *driver,
                          const struct hfd_order_request *request, const struct hfd_order_answer *a,
                          hfd_slice before, struct hfd_err *err)
{
    const struct hfd_client_resource resource = {driver->url, request->id};
    const bool gone = strcmp(request->method, "DELETE") == 0 && a->http.status == 204;
    hfd_slice cookie = hfd_client_header(&a->http, "Set-Humanitec-Driver-Cookie");

    if (gone)
        cookie = HFD_SLICE("");
    if (cookie.p == NULL || hfd_slice_eq(cookie, before))
        return HFD_OK;
    return hfd_client_state_write(driver->state, &resource, cookie, err);
}

hfd_rc hfd_order_send(const struct hfd_order_driver *driver,
                      const struct hfd_order_request *request, struct hfd_order_answer *out,
                      struct hfd_err *err)
{
    const struct hfd_client_resource resource = {driver->url, request->id};
    struct hfd_client_request r = {.method = request->method, .body = request->body};
    const struct hfd_client_batch batch = {&r, &out->http, 1};
    char path[ID_MAX_BYTES];
    struct hfd_buf cookie;
    hfd_rc rc;

    *out = (struct hfd_order_answer){.doc = NULL};
    if (!encode(request->id, path))
        return hfd_fail(err, HFD_INVALID, "the GUResID is too long");
    r.path = path;
    hfd_buf_init(&cookie, COOKIE_MAX_BYTES);
    rc = hfd_client_state_read(driver->state, &resource, &cookie, err);
    if (rc == HFD_OK && cookie.len > 0) {
        r.headers[0] =
            (struct hfd_client_header){"Humanitec-Driver-Cookie", hfd_buf_slice(&cookie)};
        r.header_count = 1;
    }
    if (rc == HFD_OK)
        hfd_client_send(driver->http, &batch);
    if (rc == HFD_OK && out->http.status == 0)
        rc = hfd_fail(err, HFD_IO, "%s cannot be reached: %s", driver->url, out->http.why);
    if (rc == HFD_OK)
        rc = keep_cookie(driver, request, out, hfd_buf_slice(&cookie), err);
    if (rc == HFD_OK && out->http.body.len > 0 &&
        hfd_json_parse(hfd_buf_slice(&out->http.body), &out->doc, NULL) != HFD_OK)
        out->doc = NULL;
    hfd_buf_fini(&cookie);
    return rc;
}

void hfd_order_answer_fini(struct hfd_order_answer *a)
{
    json_decref(a->doc);
    a->doc = NULL;
    hfd_client_answer_fini(&a->http);
}

/* Retry-After, or a second that grows to thirty. */
static int64_t next_wait_us(const struct hfd_order_answer *a, int64_t last_us)
{
    int64_t s;

    if (hfd_parse_i64(hfd_client_header(&a->http, "Retry-After"), 1, WAIT_MAX_US / HFD_US_PER_S, &s,
                      NULL) == HFD_OK)
        return s * HFD_US_PER_S;
    return last_us * 2 < WAIT_MAX_US ? last_us * 2 : WAIT_MAX_US;
}

/* 202: under way. 429 and 5xx pass. */
static bool goes_on(const struct hfd_order_answer *a)
{
    return a->http.status == 202 || a->http.status == 429 || a->http.status >= 500;
}

hfd_rc hfd_order_wait(const struct hfd_order_driver *driver,
                      const struct hfd_order_request *request,
                      const struct hfd_order_follow *follow, struct hfd_order_answer *out,
                      struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);
    int64_t wait_us = WAIT_FIRST_US / 2;
    int away = 0;

    for (;;) {
        const hfd_rc rc = hfd_order_send(driver, request, out, err);
        const int64_t spent_us = hfd_clock_mono_us(&hfd_clock_system) - began_us;

        away = rc == HFD_IO && out->http.status == 0 ? away + 1 : 0;
        if ((rc != HFD_OK && away == 0) || away == AWAY_TRIES)
            return rc;
        if (rc == HFD_OK && follow->progress != NULL)
            follow->progress(follow->ctx, out);
        wait_us = next_wait_us(out, wait_us);
        if (*follow->stop != 0 || (rc == HFD_OK && !goes_on(out)) ||
            (follow->timeout_us > 0 && spent_us + wait_us > follow->timeout_us))
            return rc;
        hfd_order_answer_fini(out);
        hfd_client_wait(driver->http, wait_us, follow->stop);
        if (*follow->stop != 0) {
            *out = (struct hfd_order_answer){.http = {.status = 202}};
            return HFD_OK;
        }
    }
}
