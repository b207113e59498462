/*
 * hyperfleet-driver doctor: checks settings, key ring, data and remote, and lists orphans. It asks
 * a running server through its ops listener. It reads the data of a stopped server itself, under
 * the lock of the server. The database recovers first, as at a start. It changes no rows. With an
 * address it asks that server alone (doctor_server.h). Thread: main.
 */
#include "driver/backend/embedded.h"
#include "driver/backend/mirror.h"
#include "driver/base/base.h"
#include "driver/core/keyring_file.h"
#include "driver/core/orphans.h"
#include "driver/core/ring_check.h"
#include "driver/fleet/names.h"
#include "handlers/cli/ask.h"
#include "handlers/cli/doctor_lines.h"
#include "handlers/cli/doctor_postgres.h"
#include "handlers/cli/doctor_remote.h"
#include "handlers/cli/doctor_server.h"
#include "handlers/cli/look.h"
#include "handlers/cli/serve_hypershift.h"
#include "handlers/client/flags.h"
#include "store/sqlite/folder.h"
#include "store/rows_orphan.h"

#include <curl/curl.h>
#include <jansson.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct doctor {
    struct hfd_settings *settings;
    struct hfd_doctor_lines lines;
    struct hfd_orphans orphans;
    size_t damaged;
    struct hfd_keyring *ring; /* NULL = none that can be used */
};

static void say_good(struct doctor *d, const char *what, hfd_slice text)
{
    hfd_doctor_good(&d->lines, what, text);
}

static void finding(struct doctor *d, const char *what, const char *text)
{
    hfd_doctor_finding(&d->lines, what, text != NULL ? hfd_slice_of(text) : HFD_SLICE_NONE);
}

/* ---- a stopped server ---- */

#define DAMAGED_SHOWN 100u

static void find_damaged(void *ctx, const char *text)
{
    struct doctor *d = ctx;

    d->damaged++;
    if (d->damaged <= DAMAGED_SHOWN)
        finding(d, "data", text);
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
        finding(d, "key ring", err->msg);
    return rc == HFD_INVALID || rc == HFD_CONFLICT ? HFD_OK : rc;
}

static hfd_rc txn_orphans(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct doctor *d = arg;
    hfd_rc rc;

    d->damaged = 0;
    rc = hfd_txn_check_rows(tx, find_damaged, d, err);
    if (d->damaged > DAMAGED_SHOWN)
        finding(d, "data", "more damaged rows are not shown");
    if (rc == HFD_OK)
        rc = hfd_txn_check(tx, err);
    if (rc == HFD_OK)
        rc = look_at_ring(d, tx, err);
    if (rc == HFD_OK && d->damaged > 0)
        return hfd_fail(err, HFD_DAMAGED, "%zu rows are damaged", d->damaged);
    if (rc != HFD_OK)
        return rc;
    return hfd_orphans_list(
        tx, hfd_look_is_remote(d->settings) ? &hfd_backend_remote : &hfd_backend_embedded,
        &d->lines.mem, &d->orphans, err);
}

/* Formats a time in d->mem; empty for none. */
static hfd_slice time_text(struct doctor *d, int64_t at_us)
{
    hfd_slice text = HFD_SLICE("");
    struct hfd_buf b;

    if (at_us == 0)
        return text;
    hfd_buf_init(&b, 64);
    hfd_buf_json_time(&b, at_us);
    if (hfd_buf_finish(&b, &text, NULL) == HFD_OK && text.len > 2)
        text = hfd_arena_dup(&d->lines.mem,
                             (hfd_slice){text.p + 1, text.len - 2}); /* without its quotes */
    hfd_buf_fini(&b);
    return text.p != NULL ? text : HFD_SLICE("");
}

static void read_orphans(struct doctor *d, struct hfd_store *store)
{
    const struct hfd_orphan_list *list = &d->orphans.list;
    struct hfd_store_reader *reader = NULL;
    struct hfd_err err = {0};
    hfd_rc rc = hfd_store_reader_open(store, &reader, &err);

    if (rc == HFD_OK)
        rc = hfd_store_read(reader, txn_orphans, d, &err);
    hfd_store_reader_close(&reader);
    if (rc != HFD_OK) {
        finding(d, "data", err.msg);
        return;
    }
    say_good(
        d, "data",
        hfd_arena_printf(&d->lines.mem, "%s can be used%s", hfd_cli_place_text(d->settings),
                         hfd_settings_has_postgres(d->settings) ? "" : "; no server runs on it"));
    hfd_doctor_orphans_begin(
        &d->lines,
        &(struct hfd_doctor_orphans){list->count, d->orphans.more, d->orphans.as.remote,
                                     time_text(d, d->orphans.as.checked_us), d->orphans.as.error});
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_orphan_row *o = &list->rows[i];

        hfd_doctor_orphan(&d->lines, &(struct hfd_doctor_orphan){.kind = hfd_kind_name(o->kind),
                                                                 .name = o->name,
                                                                 .id = o->id,
                                                                 .guresid = o->label,
                                                                 .deleting = o->deleted_us != 0,
                                                                 .wanted = o->wanted_us != 0,
                                                                 .message = o->error});
    }
    hfd_doctor_orphans_end(&d->lines, list->count);
}

/* ---- a running server ---- */

static void ask_server(struct doctor *d)
{
    const char *why = "out of memory";
    struct hfd_buf body;

    hfd_buf_init(&body, HFD_CLI_ANSWER_MAX_BYTES);
    if (hfd_cli_ask(d->settings, "/readyz", &body, &why))
        say_good(d, "server",
                 hfd_arena_printf(&d->lines.mem, "ready at %.*s",
                                  HFD_SLICE_FMT(d->settings->ops_listen)));
    else
        finding(d, "server",
                hfd_arena_printf(&d->lines.mem, "not ready at %.*s: %s",
                                 HFD_SLICE_FMT(d->settings->ops_listen), why)
                    .p);
    hfd_buf_reset(&body);
    if (!hfd_cli_ask(d->settings, "/admin/orphans", &body, &why) ||
        !hfd_doctor_orphans_answer(&d->lines, hfd_buf_slice(&body),
                                   hfd_look_is_remote(d->settings)))
        finding(d, "orphans",
                hfd_arena_printf(&d->lines.mem, "cannot be asked for at %.*s: %s",
                                 HFD_SLICE_FMT(d->settings->ops_listen), why)
                    .p);
    hfd_buf_fini(&body);
}

/* ---- the whole ---- */

static void find_odd(void *ctx, const char *key, const char *text)
{
    struct doctor *d = ctx;
    const hfd_slice line = hfd_arena_printf(&d->lines.mem, "%s: %s", key, text);

    finding(d, "settings", line.p != NULL ? line.p : key);
}

static void find_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    struct doctor *d = ctx;
    char text[HFD_LOOK_OPEN_TEXT_MAX];
    hfd_slice line;

    hfd_look_open_text(mode, text);
    line = hfd_arena_printf(&d->lines.mem, "%s: %s: %s", key, path, text);
    finding(d, "settings", line.p != NULL ? line.p : key);
}

static void look_at_settings(struct doctor *d)
{
    struct hfd_serve_hypershift hypershift;
    struct hfd_spec_schemas schemas;
    struct hfd_err err;

    hfd_look_settings(d->settings, find_odd, d);
    if (hfd_cli_need(d->settings, HFD_SETTING_keys, &err) != HFD_OK)
        finding(d, "settings", err.msg);
    if (hfd_look_files(d->settings, find_open, d, &err) != HFD_OK)
        finding(d, "settings", err.msg);
    if (hfd_look_secrets(d->settings, find_open, d, &err) != HFD_OK)
        finding(d, "settings", err.msg);
    if (hfd_serve_hypershift_open(&hypershift, d->settings, &err) != HFD_OK)
        finding(d, "settings", err.msg);
    else
        hfd_serve_hypershift_close(&hypershift);
    if (hfd_look_spec_schemas(d->settings, &schemas, &err) != HFD_OK)
        finding(d, "settings", err.msg);
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
        finding(d, "key ring", path == NULL ? "out of memory" : err.msg);
    else
        say_good(d, "key ring", hfd_arena_printf(&d->lines.mem, "%s can be used", path));
    d->ring = ring;
}

static void look_at_data(struct doctor *d)
{
    const struct hfd_store_config config = {.place = hfd_cli_place(d->settings), .readers = 1};
    struct hfd_store *store = NULL;
    struct hfd_err err = {0};
    const hfd_rc rc = hfd_store_open(&config, &store, &err);

    if (rc == HFD_OK) {
        read_orphans(d, store);
        hfd_store_close(&store);
    } else if (rc == HFD_CONFLICT) {
        say_good(d, "data", hfd_slice_of(err.msg));
        ask_server(d);
    } else {
        finding(d, "data", err.msg);
    }
}

static bool has_data(const struct doctor *d)
{
    char path[4200];

    (void)snprintf(path, sizeof(path), "%s/" HFD_FOLDER_DB_NAME, d->settings->data.p);
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static void look_at_remote(struct doctor *d)
{
    struct hfd_buf line;

    hfd_buf_init(&line, HFD_DOCTOR_OUTPUT_MAX);
    if (hfd_doctor_remote(d->settings, &line))
        say_good(d, "remote", hfd_buf_slice(&line));
    else
        hfd_doctor_finding(&d->lines, "remote", hfd_buf_slice(&line));
    hfd_buf_fini(&line);
}

/* On this machine: what the settings name. */
static enum hfd_exit look_here(struct doctor *d, struct hfd_cli_args *args)
{
    enum hfd_exit status = hfd_cli_settings("doctor", args, &d->settings);

    if (status != HFD_EXIT_OK)
        return status;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "cannot speak HTTP");
    look_at_settings(d);
    if (hfd_settings_has_postgres(d->settings)) {
        look_at_keys(d);
        if (hfd_doctor_postgres(d->settings, &d->lines))
            look_at_data(d);
    } else if (!has_data(d)) {
        say_good(
            d, "data",
            hfd_arena_printf(&d->lines.mem, "%s: there is no database yet", d->settings->data.p));
    } else {
        look_at_keys(d);
        look_at_data(d);
    }
    if (hfd_look_is_remote(d->settings))
        look_at_remote(d);
    return HFD_EXIT_OK;
}

/* Looks from outside if the flags name a server; otherwise at this machine. */
static enum hfd_exit look(struct doctor *d, struct hfd_cli_args *args,
                          struct hfd_cli_address *address)
{
    struct hfd_err err = {0};

    if (!hfd_cli_address_complete(address, args, &err))
        return hfd_cli_fail(HFD_EXIT_USAGE, "doctor", "%s", err.msg);
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077); /* suffixes of the files beside the database */
    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "%s", err.msg);
    return address->url != NULL || address->ops_url != NULL ? hfd_doctor_server(&d->lines, address)
                                                            : look_here(d, args);
}

enum hfd_exit hfd_cmd_doctor(int argc, const char *const *argv)
{
    struct hfd_cli_address address = {.url = NULL};
    bool json = false;
    const struct hfd_flag table[] = {
        {"--json", NULL, HFD_FLAG_SWITCH, &json, NULL, NULL},
        {"--url", NULL, HFD_FLAG_TEXT, &address.url, "URL", NULL},
        {"--ops-url", NULL, HFD_FLAG_TEXT, &address.ops_url, "URL", NULL},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &address.token_file, "FILE", NULL},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &address.ca_file, "FILE", NULL},
    };
    struct hfd_flags flags = {.table = table,
                              .count = sizeof(table) / sizeof(table[0]),
                              .rest = calloc((size_t)argc + 1, sizeof(char *))};
    struct doctor d = {.settings = NULL};
    struct hfd_err err = {0};
    enum hfd_exit status;

    if (flags.rest == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "out of memory");
    if (hfd_flags_read(&flags, argc, argv, &err) == HFD_OK && flags.place_count > 0)
        (void)hfd_fail(&err, HFD_INVALID, "unexpected argument %.60s", flags.places[0]);
    hfd_doctor_lines_init(&d.lines, json);
    status = err.rc != HFD_OK
                 ? hfd_cli_fail(HFD_EXIT_USAGE, "doctor", "%s", err.msg)
                 : look(&d, &(struct hfd_cli_args){.argc = flags.rest_count, .argv = flags.rest},
                        &address);
    if (status == HFD_EXIT_OK)
        status = hfd_doctor_lines_print(&d.lines);
    hfd_keyring_free(d.ring);
    hfd_settings_free(d.settings);
    hfd_doctor_lines_fini(&d.lines);
    free(flags.rest);
    return status;
}
