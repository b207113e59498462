/*
 * hyperfleet-driver doctor: checks settings, key ring, data and remote, and lists orphans. It asks
 * a running server through its ops listener. It reads the data of a stopped server itself, under
 * the lock of the server. The database recovers first, as at a start. It changes no rows. With an
 * address it asks that server alone.
 *
 * hyperfleet-driver health: asks the running server whether it lives, or is ready, as a probe in an
 * image without curl. Thread: main.
 */
#include "driver/backend/backend.h"
#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/base/rng.h"
#include "driver/base/url.h"
#include "driver/core/keyring.h"
#include "driver/core/overview.h"
#include "driver/core/ring_check.h"
#include "driver/fleet/fleet.h"
#include "handlers/cli/ask.h"
#include "handlers/cli/doctor_lines.h"
#include "handlers/cli/look.h"
#include "handlers/cli/serve_hypershift.h"
#include "schemas/documents.h"
#include "store/row_walk.h"
#include "store/rows_fleet.h"
#include "store/sqlite/folder.h"

#include <jansson.h>

#include <sys/stat.h>
#include <unistd.h>

/* ---- the lines ---- */

/* Begins an empty result. */
static void begin_lines(struct hfd_doctor_lines *l, bool json)
{
    *l = (struct hfd_doctor_lines){.json = json};
    hfd_buf_init(&l->out, HFD_DOCTOR_OUTPUT_MAX);
    hfd_buf_init(&l->orphan_list, HFD_DOCTOR_OUTPUT_MAX);
    hfd_meter_start(&l->meter);
}

/* Frees it. */
static void end_lines(struct hfd_doctor_lines *l)
{
    hfd_buf_fini(&l->out);
    hfd_buf_fini(&l->orphan_list);
    hfd_meter_stop(&l->meter);
}

/* ---- orphans ---- */

/* A list of orphans without its items. */
struct orphan_list {
    size_t count;
    bool more;
    bool remote;       /* it was read from a remote, at the time `checked` */
    hfd_slice checked; /* empty = the list was never read completely */
    hfd_slice message; /* why it could not be read the last time; empty = it could */
};

/* An orphan, from the store or from a running server. */
struct orphan {
    const char *kind;
    hfd_slice name, id, guresid;
    bool deleting, wanted;
    hfd_slice message;
};

static void add_orphan(struct hfd_buf *b, const struct orphan *o)
{
    const struct {
        const char *before;
        hfd_slice text;
    } members[] = {{",\"id\":", o->id},
                   {",\"name\":", o->name},
                   {",\"guresid\":", o->guresid},
                   {",\"message\":", o->message}};

    hfd_buf_add(b, b->len > 0 ? HFD_SLICE(",") : HFD_SLICE(""));
    hfd_buf_member_str(b, "{\"kind\":", hfd_slice_of(o->kind));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        hfd_buf_add(b, hfd_slice_of(members[i].before));
        hfd_buf_json_str(b, members[i].text);
    }
    hfd_buf_addf(b, ",\"deleting\":%s,\"delete_asked\":%s}", o->deleting ? "true" : "false",
                 o->wanted ? "true" : "false");
}

/* Adds one orphan, and counts it. */
static void add_one_orphan(struct hfd_doctor_lines *l, const struct orphan *o)
{
    struct hfd_buf line;

    l->findings++;
    if (l->json) {
        add_orphan(&l->orphan_list, o);
        return;
    }
    hfd_buf_init(&line, HFD_DOCTOR_OUTPUT_MAX);
    hfd_buf_addf(&line, "  %-8s  %.*s  %.*s  of resource %.*s%s%s%.*s", o->kind,
                 HFD_SLICE_FMT(o->id), HFD_SLICE_FMT(o->name), HFD_SLICE_FMT(o->guresid),
                 o->deleting ? ", being deleted"
                 : o->wanted ? ", to be deleted"
                             : "",
                 o->message.len > 0 ? ": " : "", HFD_SLICE_FMT(o->message));
    hfd_buf_show(&l->out, hfd_buf_slice(&line));
    hfd_buf_addc(&l->out, '\n');
    hfd_doctor_print_now(l);
    hfd_buf_fini(&line);
}

/* Adds the line in front of orphans. */
static void begin_orphans(struct hfd_doctor_lines *l, const struct orphan_list *o)
{
    const hfd_slice message = o->message;

    if (o->remote && o->checked.len == 0) {
        hfd_doctor_say(
            l, "orphans", false, "unknown: %.*s",
            HFD_SLICE_FMT(
                message.len > 0
                    ? message
                    : HFD_SLICE("the first search of the remote HyperFleet is not complete")));
        return;
    }
    hfd_doctor_say(l, "orphans", true, "%zu%s%s%.*s", o->count, o->more ? " and more" : "",
                   o->checked.len > 0 ? ", as of " : "", HFD_SLICE_FMT(o->checked));
    if (message.len > 0)
        hfd_doctor_say(l, "orphans", false, "the list cannot be renewed: %.*s",
                       HFD_SLICE_FMT(message));
}

/* Adds what can be done with them. */
static void end_orphans(struct hfd_doctor_lines *l, size_t count)
{
    if (count == 0 || l->json)
        return;
    hfd_buf_lit(
        &l->out,
        "Orphans have the label " HFD_GURESID_LABEL " but no resource. A PUT adopts them;\n"
        "DELETE /admin/orphans/ID on the ops listener of the running server deletes one.\n");
    hfd_doctor_print_now(l);
}

static hfd_slice member_or(const json_t *object, const char *key, const char *other)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : hfd_slice_of(other);
}

static hfd_slice member(const json_t *object, const char *key)
{
    return member_or(object, key, "?");
}

/*
 * Adds the orphans of an answer to GET /admin/orphans.
 * @param remote  the server works for a remote HyperFleet
 * @return false if it is no such answer
 */
static bool add_orphans_of(struct hfd_doctor_lines *l, hfd_slice body, bool remote)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL), *items = json_object_get(doc, "items"),
           *item;
    size_t i;

    if (!json_is_array(items)) {
        json_decref(doc);
        return false;
    }
    begin_orphans(l, &(struct orphan_list){
                         .count = json_array_size(items),
                         .more = json_is_true(json_object_get(doc, "more")),
                         .remote = remote,
                         .checked = member_or(doc, "checked_time", ""),
                         .message = member_or(doc, "message", ""),
                     });
    json_array_foreach (items, i, item) {
        const char *kind = json_string_value(json_object_get(item, "kind"));

        add_one_orphan(
            l, &(struct orphan){.kind = kind != NULL ? kind : "?",
                                .name = member(item, "name"),
                                .id = member(item, "id"),
                                .guresid = member(item, "guresid"),
                                .deleting = json_object_get(item, "deleted_time") != NULL,
                                .wanted = json_object_get(item, "delete_asked_time") != NULL,
                                .message = member_or(item, "message", "")});
    }
    end_orphans(l, json_array_size(items));
    json_decref(doc);
    return true;
}

/* ---- the result ---- */

/* Makes the lines and the orphans one document. */
static void wrap_json(struct hfd_doctor_lines *l)
{
    struct hfd_buf whole;

    hfd_buf_init(&whole, 2 * HFD_DOCTOR_OUTPUT_MAX + 256);
    hfd_buf_addf(&whole, "{\"findings\":%zu,\"lines\":[", l->findings);
    hfd_buf_add(&whole, hfd_buf_slice(&l->out));
    hfd_buf_lit(&whole, "],\"orphans\":[");
    hfd_buf_add(&whole, hfd_buf_slice(&l->orphan_list));
    hfd_buf_lit(&whole, "]}\n");
    hfd_buf_fini(&l->out);
    l->out = whole;
}

/*
 * Adds what the server knows to be wrong. While no order waits for one, they are no findings.
 * @param doc  its answer to /healthz; NULL adds nothing
 */
static void add_problems(struct hfd_doctor_lines *l, const json_t *doc)
{
    const json_t *problems = json_object_get(doc, "problems");
    const char *status = json_string_value(json_object_get(doc, "status"));
    const bool harmless = status != NULL && strcmp(status, "ok") == 0;

    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *p = json_array_get(problems, i);
        const char *kind = json_string_value(json_object_get(p, "kind"));
        const char *name = json_string_value(json_object_get(p, "name"));
        const char *message = json_string_value(json_object_get(p, "message"));
        const char *since = json_string_value(json_object_get(p, "since"));
        const char *runbook = json_string_value(json_object_get(p, "runbook"));

        if (kind == NULL || name == NULL || message == NULL || since == NULL || runbook == NULL ||
            strcmp(kind, "remote") == 0)
            continue;
        l->harmless += harmless;
        hfd_doctor_say(l, "problem", harmless, "%s%s%s: %s; since %s, %lld wait; see %s", kind,
                       name[0] != '\0' ? " " : "", name, message, since,
                       (long long)json_integer_value(json_object_get(p, "waiting")), runbook);
    }
}

/*
 * Prints the result.
 * @return OK, FOUND (there are findings), CUT_SHORT, INTERNAL
 */
static enum hfd_exit print_lines(struct hfd_doctor_lines *l)
{
    if (l->json)
        wrap_json(l);
    else if (l->findings == 0 && l->harmless > 0)
        hfd_buf_addf(&l->out, "%zu problem%s, and no order waits\n", l->harmless,
                     l->harmless == 1 ? "" : "s");
    else if (l->findings == 0)
        hfd_buf_lit(&l->out, "no problems found\n");
    else
        hfd_buf_addf(&l->out, "%zu problem%s\n", l->findings, l->findings == 1 ? "" : "s");
    hfd_doctor_print_now(l);
    return l->printed == HFD_EXIT_OK && l->findings > 0 ? HFD_EXIT_FOUND : l->printed;
}

/* ---- a server elsewhere ---- */

/* The part of `doctor` that asks a server over the network. Thread: main. */

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

static hfd_slice text_of(const struct hfd_http_answer *a)
{
    return hfd_buf_slice(&a->body);
}

static void get(struct hfd_client_http *http, const char *path, struct hfd_http_answer *out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};

    hfd_client_send(http, &request, out, 1);
}

/* ---- the way there ---- */

static void say_tls(struct visit *v, const struct hfd_http_answer *a)
{
    const int64_t left_us = a->expiry_us - hfd_clock_wall_us(&hfd_clock_system);
    char until[HFD_TIME_TEXT_MAX];

    if (strncmp(v->url, "https://", 8) != 0) {
        if (hfd_url_is_loopback(hfd_slice_of(v->url)) || v->address->token_file == NULL)
            hfd_doctor_say(v->lines, "tls", true, "none at %s", v->url);
        else
            hfd_doctor_say(v->lines, "tls", false,
                           "none at %s: everyone on the way can read the token; use an https URL",
                           v->url);
        return;
    }
    if (a->expiry_us == 0) {
        hfd_doctor_say(v->lines, "tls", true, "the certificate at %s is valid", v->url);
        return;
    }
    (void)hfd_time_format_s(a->expiry_us, until);
    hfd_doctor_say(v->lines, "tls", left_us >= CERTIFICATE_MIN_US,
                   "the certificate at %s is valid until %s, for %lld days", v->url, until,
                   (long long)(left_us / (86400 * HFD_US_PER_S)));
}

/* The server's clock is in each answer, in whole seconds. */
static void say_clock(struct visit *v, const struct hfd_http_answer *a, int64_t asked_us)
{
    const int64_t at_s = hfd_http_date_s(a), now_us = hfd_clock_wall_us(&hfd_clock_system);
    int64_t off_s = 0;

    if (at_s < 0) {
        hfd_doctor_say(v->lines, "clock", false, "unknown: the answer has no date");
        return;
    }
    if ((at_s + 1) * HFD_US_PER_S < asked_us)
        off_s = at_s + 1 - asked_us / HFD_US_PER_S;
    else if (at_s * HFD_US_PER_S > now_us)
        off_s = at_s - now_us / HFD_US_PER_S;
    if (off_s > CLOCK_MAX_S || off_s < -CLOCK_MAX_S)
        hfd_doctor_say(v->lines, "clock", false,
                       "the server's is %lld s %s that of this machine: correct the wrong one",
                       (long long)(off_s < 0 ? -off_s : off_s), off_s < 0 ? "behind" : "ahead of");
    else
        hfd_doctor_say(v->lines, "clock", true, "differs by %lld s",
                       (long long)(off_s < 0 ? -off_s : off_s));
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
    struct hfd_http_answer a;
    json_t *doc = NULL;
    bool ours;

    get(v->open, path, &a);
    if (a.status == 0) {
        hfd_doctor_say(v->lines, "server", false, "%s cannot be reached: %s", v->url, a.why);
        hfd_http_answer_fini(&a);
        return false;
    }
    if (a.status == 200 && hfd_json_parse(text_of(&a), &doc, NULL) == HFD_OK)
        version = json_string_value(json_object_get(json_object_get(doc, "info"), "version"));
    ours = version != NULL;
    if (!ours) {
        hfd_doctor_say(v->lines, "server", false, "%s answers %d: " NOT_OURS, v->url, a.status,
                       listener);
    } else {
        hfd_doctor_say(v->lines, "server", true, "%s has version %s", v->url, version);
        if (hfd_slice_eq(text_of(&a), hfd_openapi_text()))
            hfd_doctor_say(v->lines, "schemas", true, "the same as this program's");
        else
            hfd_doctor_say(
                v->lines, "schemas", true,
                "others than this program's, of version " HFD_VERSION "; compare them at %s", path);
        say_tls(v, &a);
        say_clock(v, &a, asked_us);
    }
    json_decref(doc);
    hfd_http_answer_fini(&a);
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
static void say_scopes(struct visit *v, const struct hfd_http_answer *answers)
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
        hfd_doctor_say(v->lines, "token", false, "%s",
                       v->address->token_file == NULL
                           ? "none is given, and the server needs one: --token-file"
                           : "the server does not accept it: it is unknown, expired or revoked");
    else if (can.len == 0)
        hfd_doctor_say(v->lines, "token", false, "%s",
                       silent > 0 ? "its scopes are unknown: the server did not answer, or failed"
                                  : "it is valid but has no scope here");
    else
        hfd_doctor_say(v->lines, "token", true, "it may do what these scopes allow: %.*s",
                       HFD_SLICE_FMT(hfd_buf_slice(&can)));
    hfd_buf_fini(&can);
}

/* Without a token the server answers only if authentication is off. */
static bool is_open(struct visit *v)
{
    struct hfd_http_answer a;
    bool open;

    get(v->open, "api/driver/v1/resources?size=1", &a);
    open = a.status == 200;
    hfd_http_answer_fini(&a);
    return open;
}

static void look_at_token(struct visit *v)
{
    struct hfd_client_request requests[PROBE_COUNT];
    struct hfd_http_answer answers[PROBE_COUNT];
    char paths[PROBE_COUNT][PATH_MAX_BYTES];

    if (is_open(v)) {
        if (hfd_url_is_loopback(hfd_slice_of(v->url)))
            hfd_doctor_say(v->lines, "token", true,
                           "authentication is off: everyone on that machine may do everything");
        else
            hfd_doctor_say(
                v->lines, "token", false,
                "authentication is off: everyone who reaches the server may do everything");
        return;
    }
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s%s%s", probes[i].before, v->id,
                       probes[i].after);
        requests[i] = (struct hfd_client_request){.method = probes[i].method, .path = paths[i]};
        if (strcmp(probes[i].method, "GET") != 0)
            requests[i].body = HFD_SLICE("{}");
    }
    hfd_client_send(v->http, requests, answers, PROBE_COUNT);
    say_scopes(v, answers);
    for (size_t i = 0; i < PROBE_COUNT; i++)
        hfd_http_answer_fini(&answers[i]);
}

static void visit_main(struct visit *v)
{
    if (look_at_schemas(v, "api/hyperfleet/v1/openapi", "the main"))
        look_at_token(v);
}

/* ---- the ops listener ---- */

/* Adds a finding with the reason of an answer, or its status where there is none. */
static void say_reason(struct visit *v, const char *about, const char *what,
                       const struct hfd_http_answer *a)
{
    const char *reason = NULL;
    json_t *doc = NULL;

    if (a->status != 0 && hfd_json_parse(text_of(a), &doc, NULL) == HFD_OK) {
        reason = json_string_value(json_object_get(doc, "reason"));
        reason = reason != NULL ? reason : json_string_value(json_object_get(doc, "message"));
    }
    if (a->status == 0)
        hfd_doctor_say(v->lines, about, false, "%s: %s", what, a->why);
    else
        hfd_doctor_say(v->lines, about, false, "%s: %d%s%s", what, a->status,
                       reason != NULL ? ": " : "", reason != NULL ? reason : "");
    json_decref(doc);
}

static void look_at_probe(struct visit *v, const char *path, const char *good, const char *bad)
{
    struct hfd_http_answer a;

    get(v->open, path, &a);
    if (a.status == 200)
        hfd_doctor_say(v->lines, "server", true, "%s", good);
    else
        say_reason(v, "server", bad, &a);
    hfd_http_answer_fini(&a);
}

/* Says how the server finds its remote, and what else is wrong. @return true if it has a remote */
static bool look_at_health(struct visit *v)
{
    const json_t *remote = NULL;
    const char *health, *failure;
    struct hfd_http_answer a;
    json_t *doc = NULL;

    get(v->open, "healthz", &a);
    if (a.status == 200 && hfd_json_parse(text_of(&a), &doc, NULL) == HFD_OK)
        remote = json_object_get(doc, "remote");
    health = json_string_value(json_object_get(remote, "health"));
    failure = json_string_value(json_object_get(remote, "last_failure"));
    if (health != NULL)
        hfd_doctor_say(v->lines, "remote", strcmp(health, "well") == 0,
                       "the server finds its remote HyperFleet %s%s%s", health,
                       failure != NULL ? ": " : "", failure != NULL ? failure : "");
    add_problems(v->lines, doc);
    json_decref(doc);
    hfd_http_answer_fini(&a);
    return health != NULL;
}

static void look_at_orphans(struct visit *v, bool remote)
{
    struct hfd_http_answer a;

    get(v->http, "admin/orphans", &a);
    if (a.status == 403)
        hfd_doctor_say(v->lines, "unseen", true, "orphans: they need the scope admin");
    else if (a.status != 200 || !add_orphans_of(v->lines, text_of(&a), remote))
        say_reason(v, "orphans", "cannot be asked for", &a);
    hfd_http_answer_fini(&a);
}

static void visit_ops(struct visit *v)
{
    if (!look_at_schemas(v, "docs/spec.json", "the ops"))
        return;
    look_at_probe(v, "livez", "it lives", "it does not live");
    look_at_probe(v, "readyz", "it is ready", "it is not ready");
    look_at_orphans(v, look_at_health(v));
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

/*
 * Checks what a client can see of a server, and says what only its machine can check. It changes
 * nothing. Requests that show a scope name a cluster that does not exist.
 * @return OK; USAGE (a URL or the token file cannot be used), INTERNAL: said on stderr
 */
static enum hfd_exit doctor_server(struct hfd_doctor_lines *l, const struct hfd_cli_address *a)
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
        return hfd_cli_fail_rc(rc, "doctor", &err);
    if (a->ops_url == NULL)
        hfd_doctor_say(l, "unseen", true, "readiness, remote and orphans: give --ops-url as well");
    if (a->url == NULL)
        hfd_doctor_say(l, "unseen", true, "the scopes of the token: give --url as well");
    hfd_doctor_say(l, "unseen", true,
                   "settings, files, key ring and each row: only on the machine of the server, by "
                   "`hyperfleet-driver doctor` with its settings");
    return HFD_EXIT_OK;
}

/* ---- this machine ---- */

struct doctor {
    struct hfd_settings *settings;
    struct hfd_doctor_lines lines;
    struct hfd_orphans orphans;
    struct hfd_arena mem; /* of the orphans */
    size_t damaged;
    struct hfd_keyring *ring; /* NULL = none that can be used */
    bool is_new;              /* the server has not started yet */
};

/* ---- a stopped server ---- */

#define DAMAGED_SHOWN 100u

static void find_damaged(void *ctx, const char *text)
{
    struct doctor *d = ctx;

    d->damaged++;
    if (d->damaged <= DAMAGED_SHOWN)
        hfd_doctor_say(&d->lines, "data", false, "%s", text);
}

/* Compares the key ring with the data. */
static hfd_rc look_at_ring(struct doctor *d, struct hfd_txn *tx, struct hfd_err *err)
{
    struct hfd_ring_call call = {.ring = d->ring,
                                 .path = hfd_cli_keys_path(d->settings),
                                 .look = true,
                                 .shared = hfd_settings_has_postgres(d->settings)};
    hfd_rc rc = HFD_OK;

    if (d->ring != NULL && call.path != NULL)
        rc = hfd_ring_check(tx, &call, err);
    if (rc == HFD_INVALID || rc == HFD_CONFLICT)
        hfd_doctor_say(&d->lines, "key ring", false, "%s", err->msg);
    return rc == HFD_INVALID || rc == HFD_CONFLICT ? HFD_OK : rc;
}

static hfd_rc txn_orphans(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct doctor *d = arg;
    struct hfd_row_findings findings = {.found = find_damaged, .ctx = d, .meter = &d->lines.meter};
    char owner[HFD_FINGERPRINT_CHARS + 1] = "";
    hfd_rc rc;

    d->damaged = 0;
    rc = hfd_rows_check(tx, &findings, err);
    if (d->damaged > DAMAGED_SHOWN)
        hfd_doctor_say(&d->lines, "data", false, "more damaged rows are not shown");
    if (rc == HFD_OK)
        rc = hfd_txn_check(tx, &d->lines.meter, err);
    if (rc == HFD_OK)
        rc = look_at_ring(d, tx, err);
    if (rc == HFD_OK && d->damaged > 0)
        return hfd_fail(err, HFD_DAMAGED, "%zu rows are damaged", d->damaged);
    if (rc != HFD_OK)
        return rc;
    if (d->ring != NULL)
        hfd_keyring_fingerprint(d->ring, owner);
    return hfd_orphans_list(
        tx, hfd_look_is_remote(d->settings) ? &hfd_backend_remote : &hfd_backend_embedded,
        &(struct hfd_orphan_owner){.own = hfd_slice_of(owner)}, &d->mem, &d->orphans, err);
}

static void read_orphans(struct doctor *d, struct hfd_store *store)
{
    const struct hfd_orphan_list *list = &d->orphans.list;
    struct hfd_store_reader *reader = NULL;
    char checked[HFD_TIME_TEXT_MAX] = "";
    struct hfd_err err = {0};
    hfd_rc rc = hfd_store_reader_open(store, &reader, &err);

    if (rc == HFD_OK)
        rc = hfd_store_read(reader, txn_orphans, d, &err);
    hfd_store_reader_close(&reader);
    if (rc != HFD_OK) {
        hfd_doctor_say(&d->lines, "data", false, "%s", err.msg);
        return;
    }
    hfd_doctor_say(&d->lines, "data", true, "%s can be used%s", hfd_cli_place_text(d->settings),
                   hfd_settings_has_postgres(d->settings) ? "" : "; no server runs on it");
    if (d->orphans.as.checked_us != 0)
        (void)hfd_time_format(d->orphans.as.checked_us, checked);
    begin_orphans(&d->lines,
                  &(struct orphan_list){list->count, d->orphans.more, d->orphans.as.remote,
                                        hfd_slice_of(checked), d->orphans.as.error});
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_orphan_row *o = &list->rows[i];

        add_one_orphan(&d->lines, &(struct orphan){.kind = hfd_kind_name(o->kind),
                                                   .name = o->name,
                                                   .id = o->id,
                                                   .guresid = o->label,
                                                   .deleting = o->deleted_us != 0,
                                                   .wanted = o->wanted_us != 0,
                                                   .message = o->error});
    }
    end_orphans(&d->lines, list->count);
}

/* ---- a running server ---- */

static void ask_server(struct doctor *d)
{
    const char *why = "out of memory";
    struct hfd_buf body;
    json_t *health = NULL;

    hfd_buf_init(&body, HFD_CLI_ANSWER_MAX_BYTES);
    if (hfd_cli_ask(d->settings, "/readyz", false, &body, &why))
        hfd_doctor_say(&d->lines, "server", true, "ready at %.*s",
                       HFD_SLICE_FMT(d->settings->ops_listen));
    else
        hfd_doctor_say(&d->lines, "server", false, "not ready at %.*s: %s",
                       HFD_SLICE_FMT(d->settings->ops_listen), why);
    hfd_buf_reset(&body);
    if (hfd_cli_ask(d->settings, "/healthz", false, &body, &why) &&
        hfd_json_parse(hfd_buf_slice(&body), &health, NULL) == HFD_OK)
        add_problems(&d->lines, health);
    json_decref(health);
    hfd_buf_reset(&body);
    if (!hfd_cli_ask(d->settings, "/admin/orphans", false, &body, &why) ||
        !add_orphans_of(&d->lines, hfd_buf_slice(&body), hfd_look_is_remote(d->settings)))
        hfd_doctor_say(&d->lines, "orphans", false, "cannot be asked for at %.*s: %s",
                       HFD_SLICE_FMT(d->settings->ops_listen), why);
    hfd_buf_fini(&body);
}

/* ---- the whole ---- */

static void find_odd(void *ctx, const char *key, const char *text)
{
    struct doctor *d = ctx;

    hfd_doctor_say(&d->lines, "settings", false, "%s: %s", key, text);
}

static void find_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    struct doctor *d = ctx;
    char text[HFD_LOOK_OPEN_TEXT_MAX];

    hfd_look_open_text(mode, text);
    hfd_doctor_say(&d->lines, "settings", false, "%s: %s: %s", key, path, text);
}

static void look_at_settings(struct doctor *d)
{
    struct hfd_serve_hypershift hypershift;
    struct hfd_spec_schemas schemas;
    struct hfd_err err;

    hfd_look_settings(d->settings, find_odd, d);
    if (hfd_cli_need(d->settings, HFD_SETTING_keys, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "settings", false, "%s", err.msg);
    if (hfd_look_files(d->settings, find_open, d, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "settings", false, "%s", err.msg);
    if (hfd_look_secrets(d->settings, find_open, d, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "settings", false, "%s", err.msg);
    if (hfd_serve_hypershift_open(&hypershift, d->settings, false, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "settings", false, "%s", err.msg);
    else
        hfd_serve_hypershift_close(&hypershift);
    if (hfd_look_spec_schemas(d->settings, &schemas, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "settings", false, "%s", err.msg);
    else
        hfd_spec_schemas_free(&schemas);
}

static void look_at_keys(struct doctor *d)
{
    const char *path = hfd_cli_keys_path(d->settings);
    struct hfd_keyring *ring = NULL;
    struct hfd_err err = {0};

    if (path != NULL && path[0] == '\0')
        return; /* a finding of the settings */
    if (path == NULL || hfd_keyring_load(path, &ring, &err) != HFD_OK)
        hfd_doctor_say(&d->lines, "key ring", false, "%s",
                       path == NULL ? "out of memory" : err.msg);
    else
        hfd_doctor_say(&d->lines, "key ring", true, "%s can be used", path);
    d->ring = ring;
}

static void look_at_data(struct doctor *d)
{
    const struct hfd_store_config config = {.place = hfd_cli_place(d->settings), .readers = 1};
    struct hfd_store *store = NULL;
    struct hfd_err err = {0};
    hfd_rc rc;

    hfd_meter_set(&d->lines.meter, &(struct hfd_meter_at){.what = "opening the database"});
    rc = hfd_store_open(&config, &store, &err);
    if (rc == HFD_OK) {
        read_orphans(d, store);
        hfd_store_close(&store);
    } else if (rc == HFD_CONFLICT) {
        if (hfd_settings_has_postgres(d->settings))
            hfd_doctor_say(&d->lines, "data", true, "%s", err.msg);
        else
            hfd_doctor_say(&d->lines, "data", true, "%s is in use by the server (process %lld)",
                           d->settings->data.p, (long long)hfd_folder_holder(d->settings->data.p));
        ask_server(d);
    } else {
        hfd_doctor_say(&d->lines, "data", false, "%s", err.msg);
    }
}

/* On this machine: what the settings name. */
static enum hfd_exit look_here(struct doctor *d, const struct hfd_flags *flags)
{
    enum hfd_exit status = hfd_cli_settings(flags, &d->settings);
    struct hfd_err err;
    bool has_store;

    if (status != HFD_EXIT_OK)
        return status;
    has_store = hfd_cli_need_store(d->settings, true, &err) == HFD_OK;
    if (!has_store && !d->is_new)
        return hfd_cli_fail(HFD_EXIT_USAGE, "doctor", "%s", err.msg);
    look_at_settings(d);
    if (hfd_settings_has_postgres(d->settings)) {
        look_at_keys(d);
        if (hfd_doctor_postgres(d->settings, &d->lines))
            look_at_data(d);
    } else if (has_store) {
        look_at_keys(d);
        look_at_data(d);
    } else {
        hfd_doctor_say(&d->lines, "data", true, "no server has used the data folder yet");
    }
    if (hfd_look_is_remote(d->settings))
        hfd_doctor_remote(d->settings, &d->lines);
    return HFD_EXIT_OK;
}

/* Looks from outside if the flags name a server; otherwise at this machine. */
static enum hfd_exit look_where(struct doctor *d, const struct hfd_flags *flags,
                                struct hfd_cli_address *address)
{
    struct hfd_err err = {0};

    if (!hfd_cli_address_complete(address, flags, &err))
        return hfd_cli_fail(HFD_EXIT_USAGE, "doctor", "%s", err.msg);
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077); /* suffixes of the files beside the database */
    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "%s", err.msg);
    return address->url != NULL || address->ops_url != NULL ? doctor_server(&d->lines, address)
                                                            : look_here(d, flags);
}

enum hfd_exit hfd_cmd_doctor(int argc, const char **argv)
{
    struct hfd_cli_address address = {.url = NULL};
    struct doctor d = {.settings = NULL};
    bool json = false;
    const struct hfd_flag table[] = {
        {"--json", NULL, HFD_FLAG_SWITCH, &json, NULL, "print one JSON document"},
        {"--new", NULL, HFD_FLAG_SWITCH, &d.is_new, NULL,
         "the server has not started yet: check settings and remote"},
        {"--url", NULL, HFD_FLAG_TEXT, &address.url, "URL",
         "check the server with this main listener (HFD_URL), from here"},
        {"--ops-url", NULL, HFD_FLAG_TEXT, &address.ops_url, "URL",
         "check the server with this ops listener (HFD_OPS_URL), from here"},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &address.token_file, "FILE",
         "a bearer token, for both"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &address.ca_file, "FILE",
         "certificates to trust, for both"},
    };
    struct hfd_flags flags = {
        .command = "doctor", HFD_FLAG_TABLE(table), .others = HFD_FLAG_SETTINGS};
    enum hfd_exit status;

    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    begin_lines(&d.lines, json);
    hfd_arena_init(&d.mem, HFD_DOCTOR_OUTPUT_MAX);
    status = look_where(&d, &flags, &address);
    if (status == HFD_EXIT_OK)
        status = print_lines(&d.lines);
    hfd_keyring_free(d.ring);
    hfd_settings_free(d.settings);
    end_lines(&d.lines);
    hfd_arena_fini(&d.mem);
    return status;
}

/* ---- health ---- */

#define ANSWER_MAX 65536

enum hfd_exit hfd_cmd_health(int argc, const char **argv)
{
    bool ready = false;
    const struct hfd_flag table[] = {{"--ready", NULL, HFD_FLAG_SWITCH, &ready, NULL,
                                      "ask whether it is ready, not whether it lives"}};
    struct hfd_flags flags = {.command = "health", HFD_FLAG_TABLE(table), .others = HFD_FLAG_ALL};
    struct hfd_settings *settings;
    enum hfd_exit status;
    struct hfd_err err = {0};
    const char *why = "out of memory";
    struct hfd_buf body;
    hfd_slice rest, line;

    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    status = hfd_cli_settings(&flags, &settings);
    if (status != HFD_EXIT_OK)
        return status;
    hfd_buf_init(&body, ANSWER_MAX);
    if (hfd_base_init(&err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%s", err.msg);
    else if (!hfd_cli_ask(settings, ready ? "/readyz" : "/livez", true, &body, &why)) {
        rest = hfd_buf_slice(&body);
        line = hfd_slice_cut(&rest, '\n');
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "health", "%.*s: %s%s%.*s",
                              HFD_SLICE_FMT(settings->ops_listen), why, line.len > 0 ? ": " : "",
                              HFD_SLICE_FMT(line));
    }
    hfd_buf_fini(&body);
    hfd_settings_free(settings);
    return status;
}
