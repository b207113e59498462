/* hyperfleet-driver apply: orders a resource from a driver. Thread: main. */
#include "handlers/cli/client.h"

#include "driver/base/file.h"
#include "driver/base/jsonx.h"

#include <errno.h>
#include <sodium.h>

#define DOCUMENT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define ID_BYTES 10

static hfd_rc read_stdin(struct hfd_buf *out, struct hfd_err *err)
{
    char piece[65536];
    size_t n;

    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        hfd_buf_add(out, (hfd_slice){piece, n});
    if (ferror(stdin) != 0)
        return hfd_fail(err, HFD_IO, "read stdin: %s", strerror(errno));
    return out->rc == HFD_OK ? HFD_OK : hfd_fail(err, HFD_INVALID, "stdin: expected at most 4 MiB");
}

static hfd_rc read_order(const char *path, struct hfd_buf *out, json_t **doc, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc =
        strcmp(path, "-") == 0 ? read_stdin(out, err) : hfd_file_read(path, "order", out, err);

    *doc = NULL;
    if (rc != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "%s", err->msg);
    rc = hfd_json_parse(hfd_buf_slice(out), doc, &why);
    if (rc != HFD_OK)
        return hfd_fail(err, rc == HFD_NOMEM ? rc : HFD_INVALID, "%s: %s", path, why.msg);
    return json_is_object(*doc) ? HFD_OK
                                : hfd_fail(err, HFD_INVALID, "%s: expected an object", path);
}

/*
 * The GUResID of an order without --id: a hash of its type and name. So the same order is the same
 * resource, from every machine.
 */
static bool derive_id(const json_t *doc, char out[2 * ID_BYTES + 1])
{
    const json_t *values = json_object_get(json_object_get(doc, "driver"), "values");
    const char *type = json_string_value(json_object_get(doc, "type"));
    const json_t *part = json_object_get(values, "cluster");
    unsigned char hash[crypto_generichash_BYTES];
    crypto_generichash_state h;
    const char *name, *owner;

    part = part != NULL ? part : json_object_get(values, "nodepool");
    name = json_string_value(json_object_get(part, "name"));
    owner = json_string_value(json_object_get(values, "cluster_guresid"));
    owner = owner != NULL ? owner : json_string_value(json_object_get(values, "cluster_id"));
    if (type == NULL || name == NULL)
        return false;
    (void)crypto_generichash_init(&h, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&h, (const unsigned char *)type, strlen(type) + 1);
    (void)crypto_generichash_update(&h, (const unsigned char *)name, strlen(name) + 1);
    if (owner != NULL)
        (void)crypto_generichash_update(&h, (const unsigned char *)owner, strlen(owner) + 1);
    (void)crypto_generichash_final(&h, hash, sizeof(hash));
    (void)sodium_bin2hex(out, 2 * ID_BYTES + 1, hash, ID_BYTES);
    return true;
}

/* Asks what a PUT would do. */
static enum hfd_exit dry_run(const struct hfd_client_command *c, const char *id, hfd_slice body)
{
    char path[256];
    const struct hfd_client_request request = {.method = "POST", .path = path, .body = body};
    struct hfd_order_answer a = {.doc = NULL};
    const struct hfd_client_batch batch = {&request, &a.http, 1};
    struct hfd_client_step step = {.request.id = id};
    struct hfd_err err;
    enum hfd_exit status;

    (void)snprintf(path, sizeof(path), "validate?id=%s", id);
    hfd_client_send(c->http, &batch);
    if (a.http.status == 0) {
        status =
            hfd_cli_fail(HFD_EXIT_ADDRESS, c->name, "%s cannot be reached: %s", c->url, a.http.why);
    } else if (hfd_json_parse(hfd_buf_slice(&a.http.body), &a.doc, &err) != HFD_OK ||
               (a.http.status != 200 && a.http.status != 400)) {
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, c->name, "%s answers %d to /validate", c->url,
                              a.http.status);
    } else {
        status = hfd_client_command_finish(c, &a, &step);
    }
    hfd_order_answer_fini(&a);
    return status;
}

static enum hfd_exit apply(struct hfd_client_command *c, const char *id, hfd_slice body)
{
    struct hfd_client_step step = {.request = {.method = "PUT", .id = id, .body = body}};
    enum hfd_exit status;

    if (c->dry_run)
        return dry_run(c, id, body);
    (void)fprintf(stderr, "%s\n", id);
    if (!c->wait)
        return hfd_client_command_run(c, &step);
    step.quiet = true;
    status = hfd_client_command_run(c, &step);
    if (status != HFD_EXIT_UNDER_WAY)
        return status;
    step = (struct hfd_client_step){
        .request = {.method = "GET", .id = id}, .follow = true, .no_get = true};
    status = hfd_client_command_run(c, &step);
    if (step.no_get)
        return status;
    /* A driver without GET is polled by the same PUT. */
    step = (struct hfd_client_step){.request = {.method = "PUT", .id = id, .body = body},
                                    .follow = true};
    return hfd_client_command_run(c, &step);
}

enum hfd_exit hfd_cmd_apply(int argc, const char *const *argv)
{
    struct hfd_client_command c = {.name = "apply",
                                   .usage = "apply FILE|- [--id GURESID] [FLAGS]",
                                   .example = "apply order.json --wait"};
    char derived[2 * ID_BYTES + 1];
    enum hfd_exit status;
    struct hfd_err err = {0};
    struct hfd_buf body;
    json_t *doc = NULL;
    hfd_rc rc;

    if (!hfd_client_command_read(&c, argc, argv, &status))
        return status;
    hfd_buf_init(&body, DOCUMENT_MAX_BYTES);
    rc = read_order(c.place, &body, &doc, &err);
    if (rc == HFD_OK && c.id == NULL) {
        if (derive_id(doc, derived))
            c.id = derived;
        else
            rc = hfd_fail(&err, HFD_INVALID,
                          "%s has no name to make a GUResID from: expected --id GURESID", c.place);
    }
    if (rc != HFD_OK)
        status = hfd_client_command_fail(&c, rc, &err);
    else if (hfd_client_command_open(&c, &status))
        status = apply(&c, c.id, hfd_buf_slice(&body));
    hfd_client_command_close(&c);
    json_decref(doc);
    hfd_buf_fini(&body);
    return status;
}
