/*
 * hyperfleet-driver doctor: checks settings, key ring, data and remote, and lists orphans. It asks
 * a running server through its ops listener. It reads the data of a stopped server itself, under
 * the lock of the server. The database recovers first, as at a start. It changes no rows. Thread:
 * main.
 */
#include "driver/backend/embedded.h"
#include "driver/backend/mirror.h"
#include "driver/base/base.h"
#include "driver/core/keyring_file.h"
#include "driver/core/orphans.h"
#include "driver/core/ring_check.h"
#include "driver/fleet/names.h"
#include "handlers/cli/ask.h"
#include "handlers/cli/doctor_remote.h"
#include "handlers/cli/look.h"
#include "handlers/cli/serve_hypershift.h"
#include "store/sqlite/folder.h"
#include "store/rows_orphan.h"

#include <curl/curl.h>
#include <jansson.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)8 * 1024 * 1024)

struct doctor {
    struct hfd_settings *settings;
    struct hfd_buf out;
    struct hfd_arena mem;
    struct hfd_orphans orphans;
    size_t findings, damaged;
    bool json;                  /* the result is one JSON document */
    struct hfd_buf orphan_list; /* of that document: its orphans */
    struct hfd_keyring *ring;   /* NULL = none that can be used */
};

/* One line of the result. */
static void say(struct doctor *d, const char *what, bool good, hfd_slice text)
{
    if (!d->json) {
        hfd_buf_addf(&d->out, "%-9s %.*s\n", what, HFD_SLICE_FMT(text));
        return;
    }
    hfd_buf_addf(&d->out, "%s{\"about\":\"%s\",\"ok\":%s,\"text\":", d->out.len > 0 ? "," : "",
                 what, good ? "true" : "false");
    hfd_buf_json_str(&d->out, text);
    hfd_buf_addc(&d->out, '}');
}

static void say_good(struct doctor *d, const char *what, hfd_slice text)
{
    say(d, what, true, text.p != NULL ? text : HFD_SLICE("good"));
}

static void finding(struct doctor *d, const char *what, const char *text)
{
    say(d, what, false, hfd_slice_of(text));
    d->findings++;
}

/* ---- orphans ---- */

/* An orphan, from the store or from a running server. */
struct told {
    const char *kind;
    hfd_slice name, id, guresid;
    bool deleting, wanted;
    hfd_slice message;
};

static void add_orphan(struct hfd_buf *b, const struct told *o)
{
    const struct {
        const char *before;
        hfd_slice text;
    } members[] = {{",\"id\":", o->id},
                   {",\"name\":", o->name},
                   {",\"guresid\":", o->guresid},
                   {",\"message\":", o->message}};

    hfd_buf_addf(b, "%s{\"kind\":\"%s\"", b->len > 0 ? "," : "", o->kind);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        hfd_buf_add(b, hfd_slice_of(members[i].before));
        hfd_buf_json_str(b, members[i].text);
    }
    hfd_buf_addf(b, ",\"deleting\":%s,\"delete_asked\":%s}", o->deleting ? "true" : "false",
                 o->wanted ? "true" : "false");
}

static void say_orphan(struct doctor *d, const struct told *o)
{
    if (d->json) {
        add_orphan(&d->orphan_list, o);
        d->findings++;
        return;
    }
    hfd_buf_addf(&d->out, "  %-8s  %.*s  %.*s  of resource %.*s%s%s%.*s\n", o->kind,
                 HFD_SLICE_FMT(o->id), HFD_SLICE_FMT(o->name), HFD_SLICE_FMT(o->guresid),
                 o->deleting ? ", being deleted"
                 : o->wanted ? ", to be deleted"
                             : "",
                 o->message.len > 0 ? ": " : "", HFD_SLICE_FMT(o->message));
    d->findings++;
}

/* A list of orphans without its items. */
struct orphan_list {
    size_t count;
    bool more;
    bool remote;       /* it is what a remote had at some time */
    hfd_slice checked; /* that time; empty = the list was never read completely */
    hfd_slice message; /* why it could not be read the last time; empty = it could */
};

static void say_orphans_begin(struct doctor *d, const struct orphan_list *l)
{
    const hfd_slice message = l->message;

    if (l->remote && l->checked.len == 0) {
        finding(d, "orphans",
                hfd_arena_printf(&d->mem, "unknown: %.*s",
                                 HFD_SLICE_FMT(message.len > 0
                                                   ? message
                                                   : HFD_SLICE("the first search of the remote "
                                                               "HyperFleet is not complete")))
                    .p);
        return;
    }
    say_good(d, "orphans",
             hfd_arena_printf(&d->mem, "%zu%s%s%.*s", l->count, l->more ? " and more" : "",
                              l->checked.len > 0 ? ", as of " : "", HFD_SLICE_FMT(l->checked)));
    if (message.len > 0)
        finding(
            d, "orphans",
            hfd_arena_printf(&d->mem, "the list cannot be renewed: %.*s", HFD_SLICE_FMT(message))
                .p);
}

static void say_orphans_end(struct doctor *d, size_t count)
{
    if (count > 0 && !d->json)
        hfd_buf_lit(
            &d->out,
            "Orphans have the label " HFD_GURESID_LABEL " but no resource. A PUT adopts them;\n"
            "DELETE /admin/orphans/ID on the ops listener of the running server deletes one.\n");
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
    struct hfd_ring_call call = {
        .ring = d->ring, .path = hfd_cli_keys_path(d->settings), .look = true};
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
        tx, hfd_look_is_remote(d->settings) ? &hfd_backend_remote : &hfd_backend_embedded, &d->mem,
        &d->orphans, err);
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
        text =
            hfd_arena_dup(&d->mem, (hfd_slice){text.p + 1, text.len - 2}); /* without its quotes */
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
        hfd_arena_printf(&d->mem, "%s can be used; no server runs on it", d->settings->data.p));
    say_orphans_begin(d, &(struct orphan_list){list->count, d->orphans.more, d->orphans.as.remote,
                                               time_text(d, d->orphans.as.checked_us),
                                               d->orphans.as.error});
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_orphan_row *o = &list->rows[i];

        say_orphan(d, &(struct told){.kind = hfd_kind_name(o->kind),
                                     .name = o->name,
                                     .id = o->id,
                                     .guresid = o->label,
                                     .deleting = o->deleted_us != 0,
                                     .wanted = o->wanted_us != 0,
                                     .message = o->error});
    }
    say_orphans_end(d, list->count);
}

/* ---- a running server ---- */

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

static bool say_answer(struct doctor *d, hfd_slice body)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL), *items = json_object_get(doc, "items"),
           *item;
    size_t i;

    if (!json_is_array(items)) {
        json_decref(doc);
        return false;
    }
    say_orphans_begin(d, &(struct orphan_list){
                             .count = json_array_size(items),
                             .more = json_is_true(json_object_get(doc, "more")),
                             .remote = hfd_look_is_remote(d->settings),
                             .checked = member_or(doc, "checked_time", ""),
                             .message = member_or(doc, "message", ""),
                         });
    json_array_foreach (items, i, item) {
        const char *kind = json_string_value(json_object_get(item, "kind"));

        say_orphan(d, &(struct told){.kind = kind != NULL ? kind : "?",
                                     .name = member(item, "name"),
                                     .id = member(item, "id"),
                                     .guresid = member(item, "guresid"),
                                     .deleting = json_object_get(item, "deleted_time") != NULL,
                                     .wanted = json_object_get(item, "delete_asked_time") != NULL,
                                     .message = member_or(item, "message", "")});
    }
    say_orphans_end(d, json_array_size(items));
    json_decref(doc);
    return true;
}

static void ask_server(struct doctor *d)
{
    const char *why = "out of memory";
    struct hfd_buf body;

    hfd_buf_init(&body, HFD_CLI_ANSWER_MAX_BYTES);
    if (hfd_cli_ask(d->settings, "/readyz", &body, &why))
        say_good(
            d, "server",
            hfd_arena_printf(&d->mem, "ready at %.*s", HFD_SLICE_FMT(d->settings->ops_listen)));
    else
        finding(d, "server",
                hfd_arena_printf(&d->mem, "not ready at %.*s: %s",
                                 HFD_SLICE_FMT(d->settings->ops_listen), why)
                    .p);
    hfd_buf_reset(&body);
    if (!hfd_cli_ask(d->settings, "/admin/orphans", &body, &why) ||
        !say_answer(d, hfd_buf_slice(&body)))
        finding(d, "orphans",
                hfd_arena_printf(&d->mem, "cannot be asked for at %.*s: %s",
                                 HFD_SLICE_FMT(d->settings->ops_listen), why)
                    .p);
    hfd_buf_fini(&body);
}

/* ---- the whole ---- */

static void find_odd(void *ctx, const char *key, const char *text)
{
    struct doctor *d = ctx;
    const hfd_slice line = hfd_arena_printf(&d->mem, "%s: %s", key, text);

    finding(d, "settings", line.p != NULL ? line.p : key);
}

static void find_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    struct doctor *d = ctx;
    char text[HFD_LOOK_OPEN_TEXT_MAX];
    hfd_slice line;

    hfd_look_open_text(mode, text);
    line = hfd_arena_printf(&d->mem, "%s: %s: %s", key, path, text);
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
    if (hfd_look_tls(d->settings, find_open, d, &err) != HFD_OK)
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
        say_good(d, "key ring", hfd_arena_printf(&d->mem, "%s can be used", path));
    d->ring = ring;
}

static void look_at_data(struct doctor *d)
{
    const struct hfd_store_config config = {.place.dir = d->settings->data.p, .readers = 1};
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

/* The remote's line has the form of the others. */
static void look_at_remote(struct doctor *d)
{
    struct hfd_buf line;
    hfd_slice text;
    bool good;

    hfd_buf_init(&line, OUTPUT_MAX);
    good = hfd_doctor_remote(d->settings, &line);
    d->findings += !good;
    text = hfd_buf_slice(&line);
    if (!d->json) {
        hfd_buf_add(&d->out, text);
    } else {
        while (text.len > 0 && text.p[text.len - 1] == '\n')
            text.len--;
        say(d, "remote", good, text);
    }
    hfd_buf_fini(&line);
}

/* Makes the lines and the orphans one document. */
static void wrap_json(struct doctor *d)
{
    struct hfd_buf whole;

    hfd_buf_init(&whole, 2 * OUTPUT_MAX + 256);
    hfd_buf_addf(&whole, "{\"findings\":%zu,\"lines\":[", d->findings);
    hfd_buf_add(&whole, hfd_buf_slice(&d->out));
    hfd_buf_lit(&whole, "],\"orphans\":[");
    hfd_buf_add(&whole, hfd_buf_slice(&d->orphan_list));
    hfd_buf_lit(&whole, "]}\n");
    hfd_buf_fini(&d->out);
    d->out = whole;
}

enum hfd_exit hfd_cmd_doctor(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv, .own_flag = "--json"};
    struct doctor d = {.settings = NULL};
    struct hfd_err err = {0};
    enum hfd_exit status = hfd_cli_settings("doctor", &args, &d.settings);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077); /* suffixes of the files beside the database */
    d.json = args.own_given;
    hfd_buf_init(&d.out, OUTPUT_MAX);
    hfd_buf_init(&d.orphan_list, OUTPUT_MAX);
    hfd_arena_init(&d.mem, OUTPUT_MAX);
    if (hfd_base_init(&err) != HFD_OK || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "%s",
                              err.msg[0] != '\0' ? err.msg : "cannot speak HTTP");
    } else {
        look_at_settings(&d);
        if (hfd_settings_has_postgres(d.settings)) {
            look_at_keys(&d);
            ask_server(&d);
        } else if (!has_data(&d)) {
            say_good(&d, "data",
                     hfd_arena_printf(&d.mem, "%s: there is no database yet", d.settings->data.p));
        } else {
            look_at_keys(&d);
            look_at_data(&d);
        }
    }
    if (status == HFD_EXIT_OK && hfd_look_is_remote(d.settings))
        look_at_remote(&d);
    if (d.json)
        wrap_json(&d);
    hfd_buf_fini(&d.orphan_list);
    hfd_keyring_free(d.ring);
    hfd_settings_free(d.settings);
    hfd_arena_fini(&d.mem);
    if (status != HFD_EXIT_OK) {
        hfd_buf_fini(&d.out);
        return status;
    }
    status = hfd_cli_print("doctor", &d.out);
    return status == HFD_EXIT_OK && d.findings > 0 ? HFD_EXIT_FOUND : status;
}
