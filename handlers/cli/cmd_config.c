/*
 * hyperfleet-driver config: check tells if serve would accept the settings, show prints the
 * effective ones as a file, docs prints the tables of the manual. Reads the settings file; check
 * also reads the files that it names. Writes nothing. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/core/keyring.h"
#include "handlers/cli/look.h"
#include "handlers/cli/serve_events.h"
#include "handlers/cli/serve_hypershift.h"
#include "handlers/settings/settings_show.h"

#define OUTPUT_MAX (8 * 1024 * 1024)

/* A warning goes to stderr; the status stays 0. */
static void warn(const struct hfd_settings *s, const char *key, const char *path, const char *text)
{
    const hfd_slice origin = hfd_settings_origin(s, key);

    hfd_cli_say("hyperfleet-driver config check: warning: %.*s%s%s: %s%s%s", HFD_SLICE_FMT(origin),
                origin.len > 0 ? ": " : "", key, path, path[0] != '\0' ? ": " : "", text);
}

static void warn_of_odd(void *ctx, const char *key, const char *text)
{
    warn(ctx, key, "", text);
}

static void warn_of_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    char text[HFD_LOOK_OPEN_TEXT_MAX];

    hfd_look_open_text(mode, text);
    warn(ctx, key, path, text);
}

/* A ring that is not there is no fault where the first start makes it. */
static hfd_rc look_at_ring(struct hfd_settings *s, struct hfd_err *err)
{
    const char *path = hfd_cli_keys_path(s);
    struct hfd_keyring *ring = NULL;
    hfd_rc rc;

    if (s->keys.len == 0)
        return HFD_OK;
    if (path == NULL)
        return hfd_fail_nomem(err, "find the key ring");
    rc = hfd_keyring_load(path, &ring, err);
    hfd_keyring_free(ring);
    return rc == HFD_NOT_FOUND && !hfd_settings_has_postgres(s) ? HFD_OK : rc;
}

static hfd_rc look(struct hfd_settings *s, struct hfd_err *err)
{
    struct hfd_serve_hypershift hypershift;
    struct hfd_serve_events hooks;
    struct hfd_spec_schemas schemas;
    struct hfd_guard *guard;
    hfd_rc rc;

    hfd_look_settings(s, warn_of_odd, s);
    rc = hfd_cli_need(s, HFD_SETTING_keys, err);
    if (rc == HFD_OK)
        rc = hfd_look_files(s, warn_of_open, s, err);
    if (rc == HFD_OK)
        rc = hfd_look_guard(s, &guard, err);
    if (rc == HFD_OK)
        hfd_guard_free(guard);
    if (rc == HFD_OK)
        rc = hfd_look_secrets(s, warn_of_open, s, err);
    if (rc == HFD_OK)
        rc = look_at_ring(s, err);
    if (rc == HFD_OK)
        rc = hfd_look_spec_schemas(s, &schemas, err);
    if (rc == HFD_OK)
        hfd_spec_schemas_free(&schemas);
    if (rc == HFD_OK)
        rc = hfd_serve_hypershift_open(&hypershift, s, false, err);
    if (rc == HFD_OK)
        hfd_serve_hypershift_close(&hypershift);
    if (rc == HFD_OK)
        rc = hfd_serve_events_open(&hooks, s, &hfd_clock_system, err);
    if (rc == HFD_OK)
        hfd_serve_events_close(&hooks);
    return rc;
}

static enum hfd_exit check(struct hfd_settings *s)
{
    struct hfd_err err = {0};
    hfd_rc rc = hfd_base_init(&err);
    struct hfd_buf b;

    if (rc == HFD_OK)
        rc = look(s, &err);
    if (rc != HFD_OK)
        return hfd_cli_fail_rc(rc, "config check", &err);
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_buf_lit(&b, "ok\n");
    return hfd_cli_print("config check", &b);
}

static enum hfd_exit show(const struct hfd_settings *s, const struct hfd_settings_form *form)
{
    struct hfd_buf b;

    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_settings_show(s, form, &b);
    return hfd_cli_print("config show", &b);
}

static enum hfd_exit docs(int argc, const char **argv)
{
    struct hfd_buf b;

    if (argc > 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "config docs", "unexpected argument %.60s", argv[0]);
    hfd_buf_init(&b, OUTPUT_MAX);
    hfd_settings_help(&b, true);
    return hfd_cli_print("config docs", &b);
}

enum hfd_exit hfd_cmd_config(int argc, const char **argv)
{
    struct hfd_settings_form form = {.origins = false};
    const struct hfd_flag table[] = {
        {"--origin", NULL, HFD_FLAG_SWITCH, &form.origins, NULL,
         "show: where each value comes from"},
        {"--changed", NULL, HFD_FLAG_SWITCH, &form.changed, NULL,
         "show: only what is set, and is not the default"},
    };
    struct hfd_flags flags = {
        .command = "config", HFD_FLAG_TABLE(table), .others = HFD_FLAG_SETTINGS};
    const char *sub = argc > 0 ? argv[0] : "nothing";
    const bool checks = strcmp(sub, "check") == 0, shows = strcmp(sub, "show") == 0;
    struct hfd_settings *s;
    enum hfd_exit status;

    if (strcmp(sub, "docs") == 0)
        return docs(argc - 1, argv + 1);
    if (!checks && !shows && strcmp(sub, "--help") != 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "config", "expected check, show or docs, got %.60s",
                            sub);
    if (checks || shows)
        flags.command = checks ? "config check" : "config show";
    if (checks) { /* its flags are those of settings */
        flags.count = 0;
        flags.others = HFD_FLAG_ALL;
    }
    if (!hfd_cli_read(&flags, argc - (checks || shows), argv + (checks || shows), &status))
        return status;
    flags.count = sizeof(table) / sizeof(table[0]);
    status = hfd_cli_settings(&flags, &s);
    if (status != HFD_EXIT_OK)
        return status;
    status = checks ? check(s) : show(s, &form);
    hfd_settings_free(s);
    return status;
}
