/* See check_answer.h. */
#include "handlers/client/check_answer.h"

#include <stdio.h>

#define COOKIE_BYTES_LIMIT 10240
#define CLOCK_TOLERANCE_US (INT64_C(300) * HFD_US_PER_S)

static bool is_one_of(int status, const int *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i] == status)
            return true;
    return false;
}

/* A GET may be 405: the driver is polled by PUT and DELETE then. */
static bool is_documented(enum hfd_check_method method, int status)
{
    static const int of_get[] = {200, 202, 400, 404, 405}, of_put[] = {200, 202, 400, 409},
                     of_delete[] = {202, 204, 400};

    switch (method) {
    case HFD_CHECK_GET:
        return is_one_of(status, of_get, 5);
    case HFD_CHECK_PUT:
        return is_one_of(status, of_put, 4);
    case HFD_CHECK_DELETE:
        return is_one_of(status, of_delete, 3);
    }
    return false;
}

/* Judges a rule about a member of the body, and quotes the answer. */
static void judge_member(struct hfd_check *k, enum hfd_check_rule rule, bool met,
                         const struct hfd_check_answer *a)
{
    hfd_check_judge(k, rule, met, a->text);
}

static bool is_absent_or(const json_t *doc, const char *key, json_type type)
{
    const json_t *v = json_object_get(doc, key);

    return v == NULL || json_typeof(v) == type;
}

/* ---- OutputData ---- */

static bool is_manifest(const json_t *m)
{
    static const char *const places[] = {"container", "containers", "volume",
                                         "volumes",   "namespace",  "cluster"};
    const char *location = json_string_value(json_object_get(m, "location"));

    if (location == NULL || !json_is_object(json_object_get(m, "data")))
        return false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(location, places[i]) == 0)
            return true;
    return false;
}

static void judge_manifests(struct hfd_check *k, const json_t *manifests,
                            const struct hfd_check_answer *a)
{
    bool met = true;

    for (size_t i = 0; i < json_array_size(manifests); i++)
        met = met && is_manifest(json_array_get(manifests, i));
    judge_member(k, HFD_RULE_OUT_MANIFEST, met, a);
}

/* The type that the document of a PUT orders; NULL = not known. */
static json_t *ordered_type(const struct hfd_check *k)
{
    json_t *doc = NULL, *type;

    if (hfd_json_parse(k->options->input, &doc, NULL) != HFD_OK)
        return NULL;
    type = json_incref(json_object_get(doc, "type"));
    json_decref(doc);
    return type;
}

static void judge_output(struct hfd_check *k, const struct hfd_check_ask *ask,
                         const struct hfd_check_answer *a)
{
    const json_t *resource = json_object_get(a->doc, "resource");
    const json_t *id = json_object_get(a->doc, "id"), *type = json_object_get(a->doc, "type");
    json_t *ordered = ordered_type(k);

    judge_member(k, HFD_RULE_OUT_TYPES,
                 is_absent_or(a->doc, "id", JSON_STRING) &&
                     is_absent_or(a->doc, "type", JSON_STRING) &&
                     is_absent_or(a->doc, "resource", JSON_OBJECT) &&
                     is_absent_or(a->doc, "manifests", JSON_ARRAY) &&
                     is_absent_or(resource, "values", JSON_OBJECT) &&
                     is_absent_or(resource, "secrets", JSON_OBJECT),
                 a);
    judge_member(k, HFD_RULE_OUT_BOTH, id != NULL && type != NULL, a);
    if (json_is_string(id))
        judge_member(k, HFD_RULE_OUT_ID, strcmp(json_string_value(id), ask->order->id) == 0, a);
    if (json_is_string(type) && json_is_string(ordered))
        judge_member(k, HFD_RULE_OUT_TYPE,
                     strcmp(json_string_value(type), json_string_value(ordered)) == 0, a);
    judge_manifests(k, json_object_get(a->doc, "manifests"), a);
    json_decref(ordered);
}

/* ---- AsyncProgressHint ---- */

/* Skips so many digits. */
static bool skip_digits(hfd_slice *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (i >= s->len || s->p[i] < '0' || s->p[i] > '9')
            return false;
    s->p += count;
    s->len -= count;
    return true;
}

static bool skip_char(hfd_slice *s, char c)
{
    if (s->len == 0 || s->p[0] != c)
        return false;
    s->p++;
    s->len--;
    return true;
}

/* Nothing, "Z", "+hh", "+hhmm" or "+hh:mm". */
static bool is_zone(hfd_slice s)
{
    if (s.len == 0 || hfd_slice_is(s, "Z"))
        return true;
    if ((!skip_char(&s, '+') && !skip_char(&s, '-')) || !skip_digits(&s, 2))
        return false;
    if (s.len == 0)
        return true;
    (void)skip_char(&s, ':');
    return s.len == 0 || (skip_digits(&s, 2) && s.len == 0);
}

/* The pattern that the API gives for times. */
static bool is_time(hfd_slice s)
{
    if (!skip_digits(&s, 4) || !skip_char(&s, '-') || !skip_digits(&s, 2) || !skip_char(&s, '-') ||
        !skip_digits(&s, 2) || !skip_char(&s, 'T') || !skip_digits(&s, 2) || !skip_char(&s, ':') ||
        !skip_digits(&s, 2) || !skip_char(&s, ':') || !skip_digits(&s, 2))
        return false;
    if (skip_char(&s, '.')) {
        if (!skip_digits(&s, 1))
            return false;
        while (skip_digits(&s, 1))
            continue;
    }
    return is_zone(s);
}

/* Reads a time of a hint. @return false when it is absent or has another form than RFC 3339 */
static bool read_time(const json_t *doc, const char *key, int64_t *at_us)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL && hfd_time_parse(hfd_slice_of(text), at_us, NULL) == HFD_OK;
}

static const char *const hint_times[] = {"estimated_completion_time", "timeout", "timeout_deadline",
                                         "current_time"};

static void judge_times(struct hfd_check *k, const struct hfd_check_answer *a)
{
    int64_t now_us, estimate_us, timeout_us;
    bool met = true;

    for (size_t i = 0; i < sizeof(hint_times) / sizeof(hint_times[0]); i++) {
        const json_t *v = json_object_get(a->doc, hint_times[i]);

        met = met &&
              (v == NULL || (json_is_string(v) && is_time(hfd_slice_of(json_string_value(v)))));
    }
    judge_member(k, HFD_RULE_HINT_TIMES, met, a);
    judge_member(k, HFD_RULE_HINT_NOW, json_object_get(a->doc, "current_time") != NULL, a);
    if (read_time(a->doc, "current_time", &now_us)) {
        const int64_t ours_us = hfd_clock_wall_us(&hfd_clock_system);

        judge_member(k, HFD_RULE_HINT_CLOCK,
                     now_us - ours_us < CLOCK_TOLERANCE_US && ours_us - now_us < CLOCK_TOLERANCE_US,
                     a);
        if (read_time(a->doc, "estimated_completion_time", &estimate_us))
            judge_member(k, HFD_RULE_HINT_FUTURE, estimate_us >= now_us, a);
    }
    if (read_time(a->doc, "estimated_completion_time", &estimate_us) &&
        read_time(a->doc, "timeout", &timeout_us))
        judge_member(k, HFD_RULE_HINT_WITHIN, estimate_us <= timeout_us, a);
}

/* The timeout of an operation is compared with that of its first hint. */
static void judge_timeout(struct hfd_check *k, struct hfd_check_order *order,
                          const struct hfd_check_answer *a)
{
    const char *timeout = json_string_value(json_object_get(a->doc, "timeout"));

    if (timeout == NULL || order->operation == NULL)
        return;
    if (order->timeout[0] != '\0')
        judge_member(k, HFD_RULE_HINT_FIXED, strcmp(order->timeout, timeout) == 0, a);
    (void)snprintf(order->timeout, sizeof(order->timeout), "%s", timeout);
}

static void judge_hint(struct hfd_check *k, const struct hfd_check_ask *ask,
                       const struct hfd_check_answer *a)
{
    static const char *const words[] = {"creating", "updating", "deleting"};
    const json_t *status = json_object_get(a->doc, "status");
    const char *word = json_string_value(status);
    bool known = status == NULL;

    for (size_t i = 0; word != NULL && i < sizeof(words) / sizeof(words[0]); i++)
        known = known || strcmp(word, words[i]) == 0;
    judge_member(k, HFD_RULE_HINT_STATUS, known, a);
    if (word != NULL && ask->order->operation != NULL)
        judge_member(k, HFD_RULE_HINT_OP, strcmp(word, ask->order->operation) == 0, a);
    judge_times(k, a);
    judge_timeout(k, ask->order, a);
}

/* ---- Error ---- */

static void judge_error(struct hfd_check *k, const struct hfd_check_answer *a)
{
    const char *code = json_string_value(json_object_get(a->doc, "error"));
    const char *message = json_string_value(json_object_get(a->doc, "message"));
    hfd_slice s = hfd_slice_of(code);
    const bool starts = s.len == 7 && memcmp(s.p, "RES-1", 5) == 0;

    s = starts ? (hfd_slice){s.p + 5, 2} : HFD_SLICE_NONE;
    judge_member(k, HFD_RULE_ERR_CODE, starts && skip_digits(&s, 2), a);
    judge_member(k, HFD_RULE_ERR_MESSAGE, message != NULL && message[0] != '\0', a);
}

/* ---- cookies ---- */

static void judge_cookie(struct hfd_check *k, const struct hfd_check_ask *ask,
                         const struct hfd_check_answer *a)
{
    const hfd_slice cookie = hfd_client_header(&a->http, "Set-Humanitec-Driver-Cookie");
    bool plain = true;

    if (cookie.p == NULL)
        return;
    for (size_t i = 0; i < cookie.len; i++)
        plain = plain && (hfd_is_alnum(cookie.p[i]) || strchr("+/=-_.", cookie.p[i]) != NULL);
    judge_member(k, HFD_RULE_COOKIE_SIZE, cookie.len < COOKIE_BYTES_LIMIT, a);
    judge_member(k, HFD_RULE_COOKIE_TEXT, plain, a);
    if (ask->method == HFD_CHECK_DELETE && a->http.status == 204)
        judge_member(k, HFD_RULE_DEL_COOKIE, cookie.len == 0, a);
}

/* ---- all ---- */

static void judge_body(struct hfd_check *k, const struct hfd_check_ask *ask,
                       const struct hfd_check_answer *a)
{
    const int status = a->http.status;
    const bool has_document = status == 200 || status == 202 || status == 400 || status == 409;
    const hfd_slice type = hfd_client_header(&a->http, "Content-Type"),
                    length = hfd_client_header(&a->http, "Content-Length");

    if (status == 204)
        judge_member(k, HFD_RULE_DEL_EMPTY,
                     a->http.body.len == 0 && (length.p == NULL || hfd_slice_is(length, "0")), a);
    if (a->http.body.len > 0 && has_document)
        judge_member(k, HFD_RULE_TYPE_JSON, hfd_slice_starts(type, HFD_SLICE("application/json")),
                     a);
    if (!has_document)
        return;
    judge_member(k, HFD_RULE_BODY_OBJECT, json_is_object(a->doc), a);
    if (!json_is_object(a->doc))
        return;
    if (status == 200)
        judge_output(k, ask, a);
    else if (status == 400)
        judge_error(k, a);
    else
        judge_hint(k, ask, a);
}

void hfd_check_answer(struct hfd_check *k, const struct hfd_check_ask *ask,
                      const struct hfd_check_answer *a)
{
    const int status = a->http.status;

    judge_member(k, HFD_RULE_NO_5XX, status < 500, a);
    if (status < 500)
        judge_member(k, HFD_RULE_STATUS, is_documented(ask->method, status), a);
    judge_body(k, ask, a);
    judge_cookie(k, ask, a);
}
