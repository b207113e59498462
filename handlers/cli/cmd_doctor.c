/*
 * hyperfleet-driver doctor: says what is wrong with the key ring, the data and a remote HyperFleet, and which clusters and nodepools are
 * nobody's. The data of a stopped server it reads itself, under the server's lock, which brings the database in order as a start would; a
 * running server it asks through its ops listener. Changes nothing that is stored. Source: DESIGN 8. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/core/orphans.h"
#include "driver/fleet/names.h"
#include "handlers/cli/doctor.h"
#include "handlers/cli/serve.h"
#include "store/sqlite/folder.h"

#include <curl/curl.h>
#include <jansson.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)8 * 1024 * 1024)
#define ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define ASK_TIMEOUT_S 10L

struct doctor {
    struct hfd_settings *settings;
    struct hfd_buf out;
    struct hfd_arena mem;
    struct hfd_orphan_list orphans;
    bool more;
    size_t findings;
};

static void finding(struct doctor *d, const char *what, const char *text)
{
    hfd_buf_addf(&d->out, "%-9s %s\n", what, text);
    d->findings++;
}

/* ---- what is nobody's ---- */

static void say_orphan(struct doctor *d, const char *kind, hfd_slice name, hfd_slice id, hfd_slice guresid, bool deleting)
{
    hfd_buf_addf(&d->out, "  %-8s  %.*s  %.*s  of resource %.*s%s\n", kind, HFD_SLICE_FMT(id), HFD_SLICE_FMT(name), HFD_SLICE_FMT(guresid),
                 deleting ? ", being deleted" : "");
    d->findings++;
}

static void say_orphans_begin(struct doctor *d, size_t count, bool more)
{
    hfd_buf_addf(&d->out, "orphans   %zu%s\n", count, more ? " and more" : "");
}

static void say_orphans_end(struct doctor *d, size_t count)
{
    if (count > 0)
        hfd_buf_lit(&d->out, "They carry the label " HFD_GURESID_LABEL ", and no resource has them. A PUT of it takes them over;\n"
                             "DELETE /admin/orphans/ID on the ops listener of the running server deletes one.\n");
}

/* ---- a stopped server ---- */

static hfd_rc txn_orphans(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct doctor *d = arg;

    return hfd_orphans_list(tx, &d->mem, &d->orphans, &d->more, err);
}

static void read_orphans(struct doctor *d, struct hfd_store *store)
{
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
    hfd_buf_addf(&d->out, "data      %s can be used; no server runs on it\n", d->settings->data.p);
    say_orphans_begin(d, d->orphans.count, d->more);
    for (size_t i = 0; i < d->orphans.count; i++) {
        const struct hfd_orphan_row *o = &d->orphans.rows[i];

        say_orphan(d, hfd_kind_name(o->kind), o->name, o->id, o->label, o->deleted_us != 0);
    }
    say_orphans_end(d, d->orphans.count);
}

/* ---- a running server ---- */

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct hfd_buf *b = ctx;

    hfd_buf_add(b, (hfd_slice){data, size * count});
    return b->rc == HFD_OK ? size * count : 0;
}

/* @param body  initialised by the caller, who frees it */
static bool ask(const struct doctor *d, const char *path, struct hfd_buf *body, const char **why)
{
    CURL *curl = curl_easy_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;
    char url[512];
    long status = 0;

    (void)snprintf(url, sizeof(url), "http://%.*s%s", HFD_SLICE_FMT(d->settings->ops_listen), path);
    if (curl != NULL && curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK && curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK && curl_easy_setopt(curl, CURLOPT_TIMEOUT, ASK_TIMEOUT_S) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK && curl_easy_setopt(curl, CURLOPT_WRITEDATA, body) == CURLE_OK)
        code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    *why = code != CURLE_OK ? curl_easy_strerror(code) : "it did not answer 200";
    return code == CURLE_OK && status == 200;
}

static hfd_slice member(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)} : HFD_SLICE("?");
}

static bool say_answer(struct doctor *d, hfd_slice body)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL), *items = json_object_get(doc, "items"), *item;
    size_t i;

    if (!json_is_array(items)) {
        json_decref(doc);
        return false;
    }
    say_orphans_begin(d, json_array_size(items), json_is_true(json_object_get(doc, "more")));
    json_array_foreach (items, i, item) {
        const char *kind = json_string_value(json_object_get(item, "kind"));

        say_orphan(d, kind != NULL ? kind : "?", member(item, "name"), member(item, "id"), member(item, "guresid"),
                   json_object_get(item, "deleted_time") != NULL);
    }
    say_orphans_end(d, json_array_size(items));
    json_decref(doc);
    return true;
}

static void ask_server(struct doctor *d)
{
    const char *why = "out of memory";
    struct hfd_buf body;

    hfd_buf_init(&body, ANSWER_MAX);
    if (ask(d, "/readyz", &body, &why))
        hfd_buf_lit(&d->out, "server    ready\n");
    else
        finding(d, "server", hfd_arena_printf(&d->mem, "not ready at %.*s: %s", HFD_SLICE_FMT(d->settings->ops_listen), why).p);
    hfd_buf_reset(&body);
    if (!ask(d, "/admin/orphans", &body, &why) || !say_answer(d, hfd_buf_slice(&body)))
        finding(d, "orphans", hfd_arena_printf(&d->mem, "cannot be asked for at %.*s: %s", HFD_SLICE_FMT(d->settings->ops_listen), why).p);
    hfd_buf_fini(&body);
}

/* ---- the whole ---- */

static void look_at_keys(struct doctor *d)
{
    const char *path = hfd_cli_keys_path(d->settings);
    struct hfd_keyring *ring = NULL;
    struct hfd_err err = {0};

    if (path == NULL || hfd_keyring_load(path, &ring, &err) != HFD_OK)
        finding(d, "key ring", path == NULL ? "out of memory" : err.msg);
    else
        hfd_buf_addf(&d->out, "key ring  %s can be used\n", path);
    hfd_keyring_free(ring);
}

static void look_at_data(struct doctor *d)
{
    const struct hfd_store_config config = {.dir = d->settings->data.p, .readers = 1};
    struct hfd_store *store = NULL;
    struct hfd_err err = {0};
    const hfd_rc rc = hfd_store_open(&config, &store, &err);

    if (rc == HFD_OK) {
        read_orphans(d, store);
        hfd_store_close(&store);
    } else if (rc == HFD_CONFLICT) {
        hfd_buf_addf(&d->out, "data      %s\n", err.msg);
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

enum hfd_exit hfd_cmd_doctor(int argc, const char *const *argv)
{
    struct hfd_cli_args args = {.argc = argc, .argv = argv};
    struct doctor d = {.settings = NULL};
    struct hfd_err err = {0};
    enum hfd_exit status = hfd_cli_settings("doctor", &args, &d.settings);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077); /* of what SQLite makes beside the database */
    hfd_buf_init(&d.out, OUTPUT_MAX);
    hfd_arena_init(&d.mem, OUTPUT_MAX);
    if (hfd_base_init(&err) != HFD_OK || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, "doctor", "%s", err.msg[0] != '\0' ? err.msg : "cannot speak HTTP");
    } else if (!has_data(&d)) {
        hfd_buf_addf(&d.out, "data      %s has none yet\n", d.settings->data.p);
    } else {
        look_at_keys(&d);
        look_at_data(&d);
    }
    if (status == HFD_EXIT_OK && hfd_serve_is_remote(d.settings) && !hfd_doctor_remote(d.settings, &d.out))
        d.findings++;
    hfd_settings_free(d.settings);
    hfd_arena_fini(&d.mem);
    if (status != HFD_EXIT_OK) {
        hfd_buf_fini(&d.out);
        return status;
    }
    status = hfd_cli_print("doctor", &d.out);
    return status == HFD_EXIT_OK && d.findings > 0 ? HFD_EXIT_FOUND : status;
}
