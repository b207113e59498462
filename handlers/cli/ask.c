/* See ask.h. */
#include "handlers/cli/ask.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "handlers/auth/token.h"

#include <sodium.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMEOUT_US (10 * HFD_US_PER_S)
#define URL_MAX 512
#define TARGET_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)

/* Reads the token of the running server; empty if there is none. */
static void login(struct hfd_settings *s, struct hfd_secret *token)
{
    const char *path = hfd_cli_local_token_path(s);
    struct hfd_buf text;

    if (path == NULL)
        return;
    hfd_buf_init(&text, 256);
    if (hfd_file_read_own(path, "local token", &text, NULL) == HFD_OK &&
        text.len == HFD_TOKEN_CHARS + 1 && hfd_token_is((hfd_slice){text.p, HFD_TOKEN_CHARS}) &&
        hfd_secret_init(token, HFD_TOKEN_CHARS, NULL) == HFD_OK)
        memcpy(token->p, text.p, HFD_TOKEN_CHARS);
    if (text.p != NULL)
        sodium_memzero(text.p, text.len);
    hfd_buf_fini(&text);
}

static hfd_slice address_of(const struct hfd_settings *s, enum hfd_listener l)
{
    return l == HFD_LISTENER_MAIN ? s->listen : s->ops_listen;
}

/* Returns the path of a Unix socket; NULL for other addresses. */
static const char *socket_path(hfd_slice address)
{
    return hfd_slice_starts(address, HFD_SLICE("unix:")) ? address.p + sizeof("unix:") - 1 : NULL;
}

/* A listener on all addresses of the machine is asked at that of loopback. */
static void format_url(const struct hfd_settings *s, hfd_slice address, const char *path,
                       char url[URL_MAX])
{
    const char *colon = memrchr(address.p, ':', address.len);
    hfd_slice host = {address.p, colon != NULL ? (size_t)(colon - address.p) : 0};

    if (hfd_slice_starts(address, HFD_SLICE("unix:"))) {
        host = HFD_SLICE("localhost");
        colon = NULL;
    } else if (hfd_slice_is(host, "0.0.0.0"))
        host = HFD_SLICE("127.0.0.1");
    else if (hfd_slice_is(host, "[::]"))
        host = HFD_SLICE("[::1]");
    (void)snprintf(url, URL_MAX, "%s://%.*s%s%s", s->tls_cert_file.len > 0 ? "https" : "http",
                   HFD_SLICE_FMT(host), colon != NULL ? colon : "", path);
}

/*
 * The name in the certificate is that of the network, not of loopback, and its authority may be
 * unknown here. So the key is compared instead.
 * @param token  NULL = any certificate will do
 */
static bool ask(const struct hfd_settings *s, const char *path, const struct hfd_secret *token,
                struct hfd_buf *body, const char **why)
{
    char url[URL_MAX], pin[HFD_TLS_PIN_MAX];
    struct hfd_http_server server = {.connect_timeout_us = TIMEOUT_US,
                                     .timeout_us = TIMEOUT_US,
                                     .answer_max_bytes = body->max_bytes,
                                     .token = token,
                                     .socket_path = socket_path(s->ops_listen),
                                     .any_certificate = token == NULL};
    struct hfd_http_answer answer = {.why = "out of memory"};
    struct hfd_http_call call = {
        .server = &server, .method = "GET", .url = {HFD_SLICE_NONE}, .answer = &answer};
    struct hfd_http_client *client;
    bool answered;

    if (token != NULL && s->tls_cert_file.len > 0) {
        if (hfd_tls_pin(s, pin, NULL) != HFD_OK) {
            *why = "the certificate of tls.cert_file cannot be read";
            return false;
        }
        server.pin = pin;
    }
    format_url(s, s->ops_listen, path, url);
    call.url[0] = hfd_slice_of(url);
    if (hfd_http_client_open(&hfd_clock_system, 0, &client, NULL) == HFD_OK &&
        hfd_http_call_start(client, &call))
        while (hfd_http_call_is_open(&call) && hfd_http_client_run(client, TIMEOUT_US))
            continue;
    hfd_http_call_end(&call);
    hfd_http_client_close(&client);
    hfd_buf_add(body, hfd_buf_slice(&answer.body));
    answered = answer.rc == HFD_OK && answer.status == 200;
    *why = answer.rc == HFD_OK && answer.status != 0 ? "it did not answer 200" : answer.why;
    hfd_http_answer_fini(&answer);
    return answered;
}

/*
 * The server on this data says where its listeners are. A setting holds if it does not, or if a
 * flag gives it.
 */
static void find_server(struct hfd_settings *s)
{
    const char *path = hfd_cli_addresses_path(s);
    struct hfd_buf text;
    hfd_slice found, *const settings[] = {&s->listen, &s->ops_listen};
    const char *const keys[] = {"listen", "ops_listen"};

    hfd_buf_init(&text, (size_t)2 * URL_MAX);
    if (path != NULL && hfd_file_read_own(path, "addresses of the server", &text, NULL) == HFD_OK) {
        const char *p = text.p, *end = text.p + text.len, *line;

        for (size_t i = 0; i < 2 && p < end; i++, p = line + 1) {
            line = memchr(p, '\n', (size_t)(end - p));
            if (line == NULL)
                break;
            found = hfd_arena_dup(&s->mem, (hfd_slice){p, (size_t)(line - p)});
            if (found.len > 0 &&
                !hfd_slice_starts(hfd_settings_origin(s, keys[i]), HFD_SLICE("--")))
                *settings[i] = found;
        }
    }
    hfd_buf_fini(&text);
}

bool hfd_cli_ask(struct hfd_settings *s, const char *path, bool openly, struct hfd_buf *body,
                 const char **why)
{
    struct hfd_secret token = {0};
    bool answered;

    if (openly)
        return ask(s, path, NULL, body, why);
    login(s, &token);
    find_server(s);
    answered = ask(s, path, &token, body, why);
    hfd_secret_fini(&token);
    return answered;
}

hfd_rc hfd_cli_find(struct hfd_settings *s, enum hfd_listener l, struct hfd_cli_server *out,
                    struct hfd_err *err)
{
    const char *token = hfd_cli_local_token_path(s);
    hfd_rc rc = HFD_OK;
    int fd = -1;

    if (token == NULL || hfd_file_open_own(token, "local token", O_RDONLY, &fd, NULL) != HFD_OK)
        token = NULL;
    if (fd >= 0)
        (void)close(fd);
    find_server(s);
    format_url(s, address_of(s, l), "/", out->url);
    out->config = (struct hfd_client_config){
        .url = out->url, .socket_path = socket_path(address_of(s, l)), .token_file = token};
    if (s->tls_cert_file.len > 0) {
        rc = hfd_tls_pin(s, out->pin, err);
        out->config.pin = out->pin;
    }
    return rc;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool hfd_cli_address_complete(struct hfd_cli_address *a, const struct hfd_flags *flags,
                              struct hfd_err *err)
{
    if (flags->rest_count > 0) {
        if (a->url == NULL && a->ops_url == NULL)
            return true;
        (void)hfd_fail(err, HFD_INVALID, "%s: not with %s", flags->rest[0],
                       a->ops_url != NULL ? "--ops-url" : "--url");
        return false;
    }
    if (a->url == NULL)
        a->url = variable("HFD_URL");
    if (a->ops_url == NULL)
        a->ops_url = variable("HFD_OPS_URL");
    return true;
}

/* ---- the main listener, for commands of the client ---- */

/* Finds the server of the settings. Flags name a token and authorities first. */
static bool find_here(struct hfd_cli_target *t, const char *command, enum hfd_exit *status)
{
    const char *const names[] = {"--config", "--data"}, *const values[] = {t->config_file, t->data};
    const char *argv[4];
    struct hfd_flags flags = {.command = command, .rest = argv};
    struct hfd_err err = {0};
    size_t len = 0;

    for (size_t i = 0; i < 2; i++) {
        if (values[i] == NULL)
            continue;
        argv[flags.rest_count++] = names[i];
        argv[flags.rest_count++] = values[i];
        len +=
            (size_t)snprintf(t->again + len, sizeof(t->again) - len, " %s %s", names[i], values[i]);
        len = len < sizeof(t->again) ? len : sizeof(t->again) - 1;
    }
    *status = hfd_cli_settings(&flags, &t->settings);
    if (*status != HFD_EXIT_OK)
        return false;
    if (hfd_cli_find(t->settings, HFD_LISTENER_MAIN, &t->server, &err) != HFD_OK) {
        *status = hfd_cli_fail(HFD_EXIT_USAGE, command, "%s", err.msg);
        return false;
    }
    if (t->token_file != NULL)
        t->server.config.token_file = t->token_file;
    if (t->ca_file != NULL)
        t->server.config.ca_file = t->ca_file;
    return true;
}

bool hfd_cli_target_open(struct hfd_cli_target *t, const char *command,
                         struct hfd_client_http **out, enum hfd_exit *status)
{
    struct hfd_err err = {0};
    hfd_rc rc;

    *out = NULL;
    if (t->url == NULL) {
        if (!find_here(t, command, status))
            return false;
        t->url = t->server.config.url;
    } else {
        if (t->config_file != NULL || t->data != NULL) {
            *status = hfd_cli_fail(HFD_EXIT_USAGE, command, "%s: not with --url",
                                   t->config_file != NULL ? "--config" : "--data");
            return false;
        }
        t->server.config = (struct hfd_client_config){
            .url = t->url, .token_file = t->token_file, .ca_file = t->ca_file};
        (void)snprintf(t->again, sizeof(t->again), " --url %s", t->url);
    }
    t->server.config.timeout_us = TARGET_TIMEOUT_US;
    rc = hfd_client_open(&t->server.config, out, &err);
    if (rc == HFD_OK)
        return true;
    *status =
        hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_USAGE, command, "%s", err.msg);
    return false;
}

/* ---- commands that show something ---- */

#define SHARED_FLAGS (HFD_CLI_TARGET_FLAG_COUNT + 4)
#define FLAGS_MAX 21

/* ---- the arguments ---- */

static hfd_rc read_form(struct hfd_view *v, struct hfd_err *err)
{
    enum hfd_form form;

    v->form = HFD_VIEW_TEXT;
    if (v->form_name == NULL)
        return HFD_OK;
    if (v->has_wide && strcmp(v->form_name, "wide") == 0) {
        v->form = HFD_VIEW_WIDE;
        return HFD_OK;
    }
    if (hfd_form_read(v->form_name, &form, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "-o: expected json, yaml%s",
                        v->has_wide ? ", name or wide" : " or name");
    v->form = form == HFD_FORM_JSON   ? HFD_VIEW_JSON
              : form == HFD_FORM_YAML ? HFD_VIEW_YAML
                                      : HFD_VIEW_NAME;
    return HFD_OK;
}

static bool read_arguments(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    struct hfd_flag table[FLAGS_MAX] = {
        HFD_CLI_TARGET_FLAGS(&v->target, "a bearer token with the scope view"),
        {"-o", NULL, HFD_FLAG_TEXT, &v->form_name, "FORM",
         v->has_wide ? "json, yaml, name or wide" : "json, yaml or name"},
        {"--watch", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "show it again until Ctrl-C"},
        {"-w", NULL, HFD_FLAG_SWITCH, &v->watch, NULL, "the same"},
        {"--help", NULL, HFD_FLAG_SWITCH, NULL, NULL, "print this text"},
    };
    struct hfd_flags flags = {.command = v->name,
                              .usage = v->usage,
                              .tail = v->examples,
                              .table = table,
                              .count = SHARED_FLAGS + v->own_count,
                              .place_max = HFD_FLAG_PLACES_MAX};
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT(flags.count <= FLAGS_MAX);
    for (size_t i = 0; i < v->own_count; i++)
        table[SHARED_FLAGS + i] = v->own[i];
    if (!hfd_cli_read(&flags, argc, argv, status))
        return false;
    rc = read_form(v, &err);
    if (rc == HFD_OK && flags.place_count > (v->takes_place ? 1U : 0U))
        rc = hfd_fail(&err, HFD_INVALID, "unexpected argument %.60s",
                      flags.places[v->takes_place ? 1 : 0]);
    v->place = flags.places[0];
    if (rc != HFD_OK)
        *status = hfd_view_wrong_use(v, err.msg);
    return rc == HFD_OK;
}

bool hfd_view_open(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status)
{
    return read_arguments(v, argc, argv, status) &&
           hfd_cli_target_open(&v->target, v->name, &v->http, status);
}

/* ---- one document ---- */

static enum hfd_exit refuse(const struct hfd_view *v, const struct hfd_http_answer *a,
                            const json_t *doc)
{
    const char *why = hfd_json_cstr(doc, "detail");

    why = why[0] != '\0' ? why : hfd_json_cstr(doc, "message");
    if (a->status == 401 && v->target.server.config.token_file == NULL)
        why = HFD_CLI_LOGIN_TEXT("view");
    if (a->status == 404 && hfd_json_cstr(doc, "code")[0] == '\0')
        return hfd_cli_fail(HFD_EXIT_CUT_SHORT, v->name,
                            "%s is no hyperfleet-driver: expected the URL of the server, without "
                            "the path of a driver",
                            v->target.url);
    return hfd_cli_fail(a->status == 404   ? HFD_EXIT_ABSENT
                        : a->status == 400 ? HFD_EXIT_USAGE
                                           : HFD_EXIT_CUT_SHORT,
                        v->name, "%s answers %d%s%s", v->target.url, a->status,
                        why[0] != '\0' ? ": " : "", why);
}

enum hfd_exit hfd_view_get(struct hfd_view *v, const char *path, json_t **out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};
    struct hfd_http_answer a = {.status = 0};
    enum hfd_exit status = HFD_EXIT_OK;

    *out = NULL;
    hfd_client_send(v->http, &request, &a, 1);
    v->answer_bytes = a.body.len;
    v->now_us = hfd_http_date_s(&a) * HFD_US_PER_S;
    if (v->now_us <= 0)
        v->now_us = hfd_clock_wall_us(&hfd_clock_system);
    if (a.status != 0 && a.body.len > 0)
        *out = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (a.status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, v->name, "%s cannot be reached: %s", v->target.url,
                              a.why);
    else if (a.status != 200 || !json_is_object(*out))
        status = refuse(v, &a, *out);
    if (status != HFD_EXIT_OK) {
        json_decref(*out);
        *out = NULL;
    }
    hfd_http_answer_fini(&a);
    return status;
}

/* ---- texts ---- */

bool hfd_view_write(const struct hfd_view *v, const json_t *doc, struct hfd_buf *out)
{
    if (v->form != HFD_VIEW_JSON && v->form != HFD_VIEW_YAML)
        return false;
    hfd_form_write(out, v->form == HFD_VIEW_JSON ? HFD_FORM_JSON : HFD_FORM_YAML, doc, "");
    return true;
}
