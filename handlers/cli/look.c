/* See look.h. */
#include "handlers/cli/look.h"

#include "driver/base/clock.h"
#include "driver/base/password.h"
#include "handlers/cli/cli.h"
#include "handlers/http/server.h"
#include "handlers/http/tls.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct hfd_remote_http_config hfd_look_http(const struct hfd_settings *s)
{
    return (struct hfd_remote_http_config){
        .clock = &hfd_clock_system,
        .url = s->backend.p, /* strings of settings end with a NUL */
        .token_file = s->remote_token_file.p,
        .ca_file = s->remote_ca_file.p,
        .cert_file = s->remote_cert_file.p,
        .key_file = s->remote_key_file.p,
        .identity_header = s->remote_identity_header.p,
        .identity = s->remote_identity.p,
        .connect_timeout_us = s->remote_connect_timeout_us,
        .timeout_us = s->remote_timeout_us,
        .connections_max = 1,
        .answer_max_bytes = s->remote_answer_max_bytes,
    };
}

/* Puts the place of the setting in front of a message that begins with its key. */
static hfd_rc placed(const struct hfd_settings *s, const char *key, const struct hfd_err *why,
                     struct hfd_err *err)
{
    const hfd_slice origin = hfd_settings_origin(s, key);

    return hfd_fail_field(err, why->rc, key, "%.*s%s%s", HFD_SLICE_FMT(origin),
                          origin.len > 0 ? ": " : "", why->msg);
}

hfd_rc hfd_look_files(const struct hfd_settings *s, hfd_remote_open_file_fn *on_open, void *ctx,
                      struct hfd_err *err)
{
    const struct hfd_remote_http_config config = hfd_look_http(s);
    struct hfd_err why = {0};
    hfd_rc rc;

    for (size_t i = 0; i < hfd_setting_file_count; i++) {
        const enum hfd_setting which = hfd_setting_files[i].which;

        /* The server opens no file without an effect, and that of a broker when it connects. A
         * wrong name is an error all the same. */
        if ((hfd_settings_lacks(s, which) != NULL || which == HFD_SETTING_events_amqp_ca_file) &&
            hfd_setting_path(s, which).len > 0 && access(hfd_setting_path(s, which).p, R_OK) != 0)
            return hfd_settings_refuse(s, which, err, "%.160s: %s", hfd_setting_path(s, which).p,
                                       strerror(errno));
    }
    if (!hfd_look_is_remote(s))
        return HFD_OK;
    rc = hfd_remote_files_check(&config, on_open, ctx, &why);
    return rc == HFD_OK ? rc : placed(s, why.field, &why, err);
}

/* Tells of a secret file that every user may read. */
static void tell_open(const char *key, const char *path, hfd_remote_open_file_fn *on_open,
                      void *ctx)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0)
        on_open(ctx, key, path, st.st_mode & 07777);
}

static hfd_rc look_at_tls(const struct hfd_settings *s, hfd_remote_open_file_fn *on_open, void *ctx,
                          struct hfd_err *err)
{
    struct hfd_tls *tls;
    const hfd_rc rc = hfd_tls_open(s, &tls, err);

    hfd_tls_free(tls);
    if (rc == HFD_OK && s->tls_key_file.len > 0)
        tell_open("tls.key_file", s->tls_key_file.p, on_open, ctx);
    return rc;
}

static hfd_rc look_at_password(const struct hfd_settings *s, enum hfd_setting which,
                               hfd_remote_open_file_fn *on_open, void *ctx, struct hfd_err *err)
{
    const char *key = hfd_setting_key(which);
    const hfd_slice path = hfd_setting_path(s, which);
    char password[HFD_PASSWORD_MAX];
    struct hfd_err why = {0};
    hfd_rc rc;

    if (path.len == 0)
        return HFD_OK;
    rc = hfd_password_read(key, path.p, password, &why);
    explicit_bzero(password, sizeof(password));
    if (rc != HFD_OK)
        return placed(s, key, &why, err);
    tell_open(key, path.p, on_open, ctx);
    return HFD_OK;
}

hfd_rc hfd_look_secrets(const struct hfd_settings *s, hfd_remote_open_file_fn *on_open, void *ctx,
                        struct hfd_err *err)
{
    hfd_rc rc = look_at_tls(s, on_open, ctx, err);

    for (size_t i = 0; i < s->webhook_secret_files.count; i++)
        tell_open("events.webhooks", s->webhook_secret_files.items[i].value.p, on_open, ctx);
    if (rc == HFD_OK)
        rc = look_at_password(s, HFD_SETTING_store_password_file, on_open, ctx, err);
    if (rc == HFD_OK)
        rc = look_at_password(s, HFD_SETTING_events_amqp_password_file, on_open, ctx, err);
    return rc;
}

hfd_rc hfd_look_spec_schemas(const struct hfd_settings *s, struct hfd_spec_schemas *out,
                             struct hfd_err *err)
{
    const char *path = s->fleet_spec_schema.p;
    struct hfd_err why = {0}, named;
    hfd_rc rc;

    *out = (struct hfd_spec_schemas){.cluster = NULL};
    if (s->fleet_spec_schema.len == 0)
        return HFD_OK;
    rc = hfd_spec_schemas_load(path, out, &why);
    if (rc == HFD_OK)
        return rc;
    (void)hfd_fail(&named, rc, "fleet.spec_schema: %s", why.msg);
    return placed(s, "fleet.spec_schema", &named, err);
}

hfd_rc hfd_look_guard(struct hfd_settings *s, struct hfd_guard **out, struct hfd_err *err)
{
    const size_t count = s->auth_operator_keys.count;
    const char **keys = hfd_arena_array(&s->mem, count + 1, sizeof(*keys));
    const struct hfd_guard_config config = {
        .tokens_file = hfd_cli_tokens_path(s),
        .signers = {.operator_keys = keys,
                    .operator_key_count = count,
                    .issuers_file = s->auth_issuers.len > 0 ? s->auth_issuers.p : NULL},
        .clock = &hfd_clock_system};
    struct hfd_err why = {0};
    hfd_rc rc;

    *out = NULL;
    if (config.tokens_file == NULL || keys == NULL)
        return hfd_fail_nomem(err, "find the tokens file");
    for (size_t i = 0; i < count; i++)
        keys[i] = s->auth_operator_keys.items[i].p; /* strings of settings end with a NUL */
    rc = hfd_guard_open(&config, out, &why);
    if (rc != HFD_OK)
        return rc == HFD_INVALID ? placed(s, why.field, &why, err)
                                 : hfd_fail(err, rc, "%s", why.msg);
    if (rc == HFD_OK)
        rc = hfd_server_check_open(s, hfd_guard_is_on(*out) && hfd_guard_is_usable(*out), err);
    if (rc == HFD_OK)
        return rc;
    hfd_guard_free(*out);
    *out = NULL;
    return rc;
}

void hfd_look_settings(const struct hfd_settings *s, hfd_look_fn *on_odd, void *ctx)
{
    char text[512];

    if (s->links.len > 0) {
        (void)snprintf(text, sizeof(text),
                       "%.*s: ignored, as Kubernetes makes such variables for a Service; set "
                       "enableServiceLinks: false",
                       (int)(s->links.len < 400 ? s->links.len : 400), s->links.p);
        on_odd(ctx, "environment", text);
    }
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const char *lacks = hfd_settings_lacks(s, (enum hfd_setting)i);

        if (lacks == NULL)
            continue;
        (void)snprintf(text, sizeof(text), "has no effect without %s", lacks);
        on_odd(ctx, hfd_setting_key((enum hfd_setting)i), text);
    }
    if (hfd_look_is_remote(s))
        return; /* the remote has its own required adapters */
    if (s->required_cluster.count == 0)
        on_odd(ctx, "adapters.required.cluster", "no adapters: no cluster becomes ready");
    if (s->required_nodepool.count == 0)
        on_odd(ctx, "adapters.required.nodepool", "no adapters: no nodepool becomes ready");
}
