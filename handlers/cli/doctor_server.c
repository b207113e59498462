/* See doctor_server.h. */
#include "handlers/cli/doctor_server.h"

#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/base/rng.h"
#include "schemas/openapi.h"

#include <curl/curl.h>

#define REQUEST_TIMEOUT_US (INT64_C(20) * HFD_US_PER_S)
#define CERTIFICATE_MIN_US (INT64_C(14) * 86400 * HFD_US_PER_S) /* as the alert */
#define CLOCK_MAX_S INT64_C(60)                                 /* beyond it tokens are refused */
#define PATH_MAX_BYTES 128
#define NOT_OURS "is this the URL of %s listener of a hyperfleet-driver?"

struct visit {
    struct hfd_doctor_lines *lines;
    const struct hfd_cli_address *address;
    const char *url;              /* of this listener */
    struct hfd_client_http *http; /* with the token, if there is one */
    struct hfd_client_http *open; /* without it */
    char id[33];                  /* of no resource and no cluster */
};

static hfd_slice text_of(const struct hfd_client_answer *a)
{
    return hfd_buf_slice(&a->body);
}

static void get(struct hfd_client_http *http, const char *path, struct hfd_client_answer *out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};

    hfd_client_send(http, &(struct hfd_client_batch){&request, out, 1});
}

/* ---- the way there ---- */

/* True for the names of this machine itself. */
static bool is_loopback(const char *url)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "://");

    host = host != NULL ? host + 3 : url;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t len = strlen(names[i]);

        if (strncmp(host, names[i], len) == 0 && strchr(":/", host[len]) != NULL)
            return true;
    }
    return false;
}

static void say_tls(struct visit *v, const struct hfd_client_answer *a)
{
    struct hfd_arena *mem = &v->lines->mem;
    const int64_t left_us = a->expiry_us - hfd_clock_wall_us(&hfd_clock_system);
    char until[HFD_TIME_TEXT_MAX];

    if (strncmp(v->url, "https://", 8) != 0) {
        if (is_loopback(v->url) || v->address->token_file == NULL)
            hfd_doctor_good(v->lines, "tls", hfd_arena_printf(mem, "none at %s", v->url));
        else
            hfd_doctor_finding(v->lines, "tls",
                               hfd_arena_printf(mem,
                                                "none at %s: everyone on the way can read the "
                                                "token; use an https URL",
                                                v->url));
        return;
    }
    if (a->expiry_us == 0) {
        hfd_doctor_good(v->lines, "tls",
                        hfd_arena_printf(mem, "the certificate at %s is valid", v->url));
        return;
    }
    (void)hfd_time_format_s(a->expiry_us, until);
    (left_us < CERTIFICATE_MIN_US ? hfd_doctor_finding : hfd_doctor_good)(
        v->lines, "tls",
        hfd_arena_printf(mem, "the certificate at %s is valid until %s, for %lld days", v->url,
                         until, (long long)(left_us / (86400 * HFD_US_PER_S))));
}

/* The server's clock is in each answer, in whole seconds. */
static void say_clock(struct visit *v, const struct hfd_client_answer *a, int64_t asked_us)
{
    const hfd_slice date = hfd_client_header(a, "Date");
    const hfd_slice text = hfd_arena_dup(&v->lines->mem, date);
    const int64_t now_us = hfd_clock_wall_us(&hfd_clock_system);
    const int64_t at_s = text.p != NULL && text.len > 0 ? (int64_t)curl_getdate(text.p, NULL) : -1;
    int64_t off_s = 0;

    if (at_s < 0) {
        hfd_doctor_finding(v->lines, "clock", HFD_SLICE("unknown: the answer has no date"));
        return;
    }
    if ((at_s + 1) * HFD_US_PER_S < asked_us)
        off_s = at_s + 1 - asked_us / HFD_US_PER_S;
    else if (at_s * HFD_US_PER_S > now_us)
        off_s = at_s - now_us / HFD_US_PER_S;
    if (off_s > CLOCK_MAX_S || off_s < -CLOCK_MAX_S)
        hfd_doctor_finding(v->lines, "clock",
                           hfd_arena_printf(&v->lines->mem,
                                            "the server's is %lld s %s that of this machine: "
                                            "correct the wrong one",
                                            (long long)(off_s < 0 ? -off_s : off_s),
                                            off_s < 0 ? "behind" : "ahead of"));
    else
        hfd_doctor_good(v->lines, "clock",
                        hfd_arena_printf(&v->lines->mem, "differs by %lld s",
                                         (long long)(off_s < 0 ? -off_s : off_s)));
}

/* ---- what both listeners show ---- */

/*
 * Asks for the OpenAPI document, which needs no token.
 * @return false if the listener is not reached, or is not that of a server
 */
static bool look_at_schemas(struct visit *v, const char *path, const char *listener)
{
    const int64_t asked_us = hfd_clock_wall_us(&hfd_clock_system);
    const char *version = NULL;
    struct hfd_client_answer a;
    json_t *doc = NULL;
    bool ours;

    get(v->open, path, &a);
    if (a.status == 0) {
        hfd_doctor_finding(
            v->lines, "server",
            hfd_arena_printf(&v->lines->mem, "%s cannot be reached: %s", v->url, a.why));
        hfd_client_answer_fini(&a);
        return false;
    }
    if (a.status == 200 && hfd_json_parse(text_of(&a), &doc, NULL) == HFD_OK)
        version = json_string_value(json_object_get(json_object_get(doc, "info"), "version"));
    ours = version != NULL;
    if (!ours) {
        hfd_doctor_finding(v->lines, "server",
                           hfd_arena_printf(&v->lines->mem, "%s answers %d: " NOT_OURS, v->url,
                                            a.status, listener));
    } else {
        hfd_doctor_good(v->lines, "server",
                        hfd_arena_printf(&v->lines->mem, "%s has version %s", v->url, version));
        hfd_doctor_good(v->lines, "schemas",
                        hfd_slice_eq(text_of(&a), hfd_openapi_text())
                            ? HFD_SLICE("the same as this program's")
                            : hfd_arena_printf(&v->lines->mem,
                                               "others than this program's, of version " HFD_VERSION
                                               "; compare them at %s",
                                               path));
        say_tls(v, &a);
        say_clock(v, &a, asked_us);
    }
    json_decref(doc);
    hfd_client_answer_fini(&a);
    return ours;
}

/* ---- what the token may do ---- */

#define PROBE_COUNT 6
/* A request that shows a scope: it is 401 or 403 without it. Nothing has the id that it names. */
static const struct probe {
    const char *scope, *method, *before, *after;
} probes[PROBE_COUNT] = {
    {"driver", "GET", "", ""},
    {"fleet-read", "GET", "api/hyperfleet/v1/clusters/", ""},
    {"adapter", "POST", "api/hyperfleet/v1/clusters/", "/statuses"},
    {"fleet-write", "PATCH", "api/hyperfleet/v1/clusters/", ""},
    {"view", "GET", "api/driver/v1/resources/", ""},
    {"admin", "POST", "api/hyperfleet/v1/clusters/", "/force-delete"},
};

/* Says which answers show that the token is good for something. */
static void say_scopes(struct visit *v, const struct hfd_client_answer *answers)
{
    size_t refused = 0, unknown = 0, silent = 0;
    struct hfd_buf can;

    hfd_buf_init(&can, 256);
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        if (answers[i].status == 401)
            unknown++;
        else if (answers[i].status == 403)
            refused++;
        else if (answers[i].status == 0 || answers[i].status >= 500)
            silent++;
        else
            hfd_buf_addf(&can, "%s%s", can.len > 0 ? ", " : "", probes[i].scope);
    }
    if (unknown == PROBE_COUNT)
        hfd_doctor_finding(v->lines, "token",
                           v->address->token_file == NULL
                               ? HFD_SLICE("none is given, and the server needs one: --token-file")
                               : HFD_SLICE("the server does not accept it: it is unknown, expired "
                                           "or revoked"));
    else if (can.len == 0)
        hfd_doctor_finding(v->lines, "token",
                           silent > 0 ? HFD_SLICE("its scopes are unknown: the server did not "
                                                  "answer, or failed")
                                      : HFD_SLICE("it is valid but has no scope here"));
    else
        hfd_doctor_good(v->lines, "token",
                        hfd_arena_printf(&v->lines->mem, "it may do what these scopes allow: %.*s",
                                         HFD_SLICE_FMT(hfd_buf_slice(&can))));
    hfd_buf_fini(&can);
}

/* Without a token the server answers only if authentication is off. */
static bool is_open(struct visit *v)
{
    struct hfd_client_answer a;
    bool open;

    get(v->open, "api/driver/v1/resources?size=1", &a);
    open = a.status == 200;
    hfd_client_answer_fini(&a);
    return open;
}

static void look_at_token(struct visit *v)
{
    struct hfd_client_request requests[PROBE_COUNT];
    struct hfd_client_answer answers[PROBE_COUNT];
    char paths[PROBE_COUNT][PATH_MAX_BYTES];

    if (is_open(v)) {
        if (is_loopback(v->url))
            hfd_doctor_good(v->lines, "token",
                            HFD_SLICE("authentication is off: everyone on that machine may do "
                                      "everything"));
        else
            hfd_doctor_finding(v->lines, "token",
                               HFD_SLICE("authentication is off: everyone who reaches the server "
                                         "may do everything"));
        return;
    }
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s%s%s", probes[i].before, v->id,
                       probes[i].after);
        requests[i] = (struct hfd_client_request){.method = probes[i].method, .path = paths[i]};
        if (strcmp(probes[i].method, "GET") != 0)
            requests[i].body = HFD_SLICE("{}");
    }
    hfd_client_send(v->http, &(struct hfd_client_batch){requests, answers, PROBE_COUNT});
    say_scopes(v, answers);
    for (size_t i = 0; i < PROBE_COUNT; i++)
        hfd_client_answer_fini(&answers[i]);
}

static void visit_main(struct visit *v)
{
    if (look_at_schemas(v, "api/hyperfleet/v1/openapi", "the main"))
        look_at_token(v);
}

/* ---- the ops listener ---- */

/* Adds "reason" of a probe's answer; its status where there is none. */
static hfd_slice reason_of(struct visit *v, const struct hfd_client_answer *a)
{
    const char *reason = NULL;
    json_t *doc = NULL;
    hfd_slice text;

    if (a->status == 0)
        return hfd_slice_of(a->why);
    if (hfd_json_parse(text_of(a), &doc, NULL) == HFD_OK) {
        reason = json_string_value(json_object_get(doc, "reason"));
        reason = reason != NULL ? reason : json_string_value(json_object_get(doc, "message"));
    }
    text = reason != NULL ? hfd_arena_printf(&v->lines->mem, "%d: %s", a->status, reason)
                          : hfd_arena_printf(&v->lines->mem, "%d", a->status);
    json_decref(doc);
    return text;
}

static void look_at_probe(struct visit *v, const char *path, const char *good, const char *bad)
{
    struct hfd_client_answer a;

    get(v->open, path, &a);
    if (a.status == 200)
        hfd_doctor_good(v->lines, "server", hfd_slice_of(good));
    else
        hfd_doctor_finding(
            v->lines, "server",
            hfd_arena_printf(&v->lines->mem, "%s: %.*s", bad, HFD_SLICE_FMT(reason_of(v, &a))));
    hfd_client_answer_fini(&a);
}

/* Says how the server finds its remote. @return true if it has one */
static bool look_at_remote(struct visit *v)
{
    const json_t *remote = NULL;
    const char *health, *failure;
    struct hfd_client_answer a;
    json_t *doc = NULL;

    get(v->open, "healthz", &a);
    if (a.status == 200 && hfd_json_parse(text_of(&a), &doc, NULL) == HFD_OK)
        remote = json_object_get(doc, "remote");
    health = json_string_value(json_object_get(remote, "health"));
    failure = json_string_value(json_object_get(remote, "last_failure"));
    if (health != NULL)
        (strcmp(health, "well") == 0 ? hfd_doctor_good : hfd_doctor_finding)(
            v->lines, "remote",
            hfd_arena_printf(&v->lines->mem, "the server finds its remote HyperFleet %s%s%s",
                             health, failure != NULL ? ": " : "", failure != NULL ? failure : ""));
    json_decref(doc);
    hfd_client_answer_fini(&a);
    return health != NULL;
}

static void look_at_orphans(struct visit *v, bool remote)
{
    struct hfd_client_answer a;

    get(v->http, "admin/orphans", &a);
    if (a.status == 403)
        hfd_doctor_good(v->lines, "unseen", HFD_SLICE("orphans: they need the scope admin"));
    else if (a.status != 200 || !hfd_doctor_orphans_answer(v->lines, text_of(&a), remote))
        hfd_doctor_finding(v->lines, "orphans",
                           hfd_arena_printf(&v->lines->mem, "cannot be asked for: %.*s",
                                            HFD_SLICE_FMT(reason_of(v, &a))));
    hfd_client_answer_fini(&a);
}

static void visit_ops(struct visit *v)
{
    if (!look_at_schemas(v, "docs/spec.json", "the ops"))
        return;
    look_at_probe(v, "livez", "it lives", "it does not live");
    look_at_probe(v, "readyz", "it is ready", "it is not ready");
    look_at_orphans(v, look_at_remote(v));
}

/* ---- the whole ---- */

/* Opens the way to one listener with the token and without it, and looks. */
static hfd_rc visit(struct visit *v, void (*look)(struct visit *v), struct hfd_err *err)
{
    struct hfd_client_config config = {.url = v->url,
                                       .ca_file = v->address->ca_file,
                                       .timeout_us = REQUEST_TIMEOUT_US,
                                       .wants_expiry = true};
    hfd_rc rc = hfd_client_open(&config, &v->open, err);

    config.token_file = v->address->token_file;
    if (rc == HFD_OK)
        rc = hfd_client_open(&config, &v->http, err);
    if (rc == HFD_OK)
        look(v);
    hfd_client_close(&v->http);
    hfd_client_close(&v->open);
    return rc;
}

enum hfd_exit hfd_doctor_server(struct hfd_doctor_lines *l, const struct hfd_cli_address *a)
{
    static const char digits[] = "0123456789abcdef";
    struct visit v = {.lines = l, .address = a};
    struct hfd_err err = {0};
    hfd_rc rc = HFD_OK;

    hfd_rng_bytes(&hfd_rng_system, v.id, sizeof(v.id) - 1);
    for (size_t i = 0; i < sizeof(v.id) - 1; i++)
        v.id[i] = digits[(unsigned char)v.id[i] & 15];
    if (a->url != NULL) {
        v.url = a->url;
        rc = visit(&v, visit_main, &err);
    }
    if (rc == HFD_OK && a->ops_url != NULL) {
        v.url = a->ops_url;
        rc = visit(&v, visit_ops, &err);
    }
    if (rc != HFD_OK)
        return hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_USAGE, "doctor", "%s",
                            err.msg);
    if (a->ops_url == NULL)
        hfd_doctor_good(l, "unseen",
                        HFD_SLICE("readiness, remote and orphans: give --ops-url as well"));
    if (a->url == NULL)
        hfd_doctor_good(l, "unseen", HFD_SLICE("the scopes of the token: give --url as well"));
    hfd_doctor_good(l, "unseen",
                    HFD_SLICE("settings, files, key ring and each row: only on the machine of the "
                              "server, by `hyperfleet-driver doctor` with its settings"));
    return HFD_EXIT_OK;
}
