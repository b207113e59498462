/*
 * hyperfleet-driver purge: removes a cluster or nodepool of HyperFleet whose deletion never ends,
 * without waiting for its adapters. It shows what it would remove, and removes with --yes. Thread:
 * main.
 */
#include "handlers/cli/ask.h"

#include "driver/base/url.h"

#define FLEET "api/hyperfleet/v1/"

struct purge {
    struct hfd_view v;
    const char *reason;
    bool yes;
};

/* Sends a request. A server that is away, or refuses, is said; 404 is not. @return the status */
static int ask(const struct purge *p, const struct hfd_client_request *request, json_t **doc,
               enum hfd_exit *status)
{
    struct hfd_http_answer a = {.status = 0};
    int answered;

    hfd_client_send(p->v.http, request, &a, 1);
    answered = a.status;
    *doc = a.body.len > 0 ? json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (answered == 0)
        *status = hfd_cli_fail(HFD_EXIT_ADDRESS, p->v.name, "%s cannot be reached: %s",
                               p->v.target.url, a.why);
    else if (answered != 200 && answered != 204 && answered != 404)
        *status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, p->v.name, "%s answers %d: %s", p->v.target.url,
                               answered, hfd_json_cstr(*doc, "detail"));
    hfd_http_answer_fini(&a);
    return answered;
}

/* Reads what is below a path and an id. @return a new reference; NULL if it is not there */
static json_t *look(const struct purge *p, const char *path, enum hfd_exit *status)
{
    struct hfd_client_request request = {.method = "GET"};
    struct hfd_buf b;
    json_t *doc = NULL;
    int answered = 0;

    hfd_buf_init(&b, 4096);
    hfd_buf_add(&b, hfd_slice_of(path));
    hfd_url_escape(&b, hfd_slice_of(p->v.place), HFD_URL_PLAIN);
    hfd_buf_addc(&b, '\0');
    request.path = b.p;
    if (*status == HFD_EXIT_OK && b.rc == HFD_OK)
        answered = ask(p, &request, &doc, status);
    hfd_buf_fini(&b);
    if (answered == 200)
        return doc;
    json_decref(doc);
    return NULL;
}

/* Adds what is being deleted. A cluster takes its nodepools with it. @return false: memory */
static bool add_target(json_t *targets, const char *kind, const json_t *part)
{
    return json_array_append_new(targets, json_pack("{s:s, s:s, s:s}", "kind", kind, "id",
                                                    hfd_json_cstr(part, "id"), "name",
                                                    hfd_json_cstr(part, "name"))) == 0;
}

static bool add_parts(json_t *targets, const json_t *resource)
{
    const json_t *parts = json_object_get(resource, "parts");
    bool whole = false;

    for (size_t i = 0; !whole && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *kind = hfd_json_cstr(part, "kind");

        if (!json_is_true(json_object_get(part, "exists")) ||
            !json_is_true(json_object_get(part, "deleting")))
            continue;
        whole = strcmp(kind, "cluster") == 0;
        if (!add_target(targets, kind, part))
            return false;
    }
    return true;
}

/* Finds what is to be removed, by a GUResID or by an id of HyperFleet. */
static enum hfd_exit find(const struct purge *p, json_t *targets)
{
    static const char *const kinds[] = {"cluster", "nodepool"};
    enum hfd_exit status = HFD_EXIT_OK;
    json_t *doc = look(p, "api/driver/v1/resources/", &status);
    /* A resource that is gone has its history only. */
    bool found = json_array_size(json_object_get(doc, "parts")) > 0;
    bool kept = !found || add_parts(targets, doc);
    char path[64];

    for (size_t i = 0; !found && status == HFD_EXIT_OK && i < 2; i++) {
        (void)snprintf(path, sizeof(path), FLEET "%ss/", kinds[i]);
        json_decref(doc);
        doc = look(p, path, &status);
        found = doc != NULL;
        if (found && json_is_string(json_object_get(doc, "deleted_time")))
            kept = add_target(targets, kinds[i], doc);
    }
    json_decref(doc);
    if (status != HFD_EXIT_OK)
        return status;
    if (!kept)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, p->v.name, "out of memory");
    if (!found)
        return hfd_cli_fail(HFD_EXIT_ABSENT, p->v.name,
                            "%s: there is no such resource, cluster or nodepool", p->v.place);
    if (json_array_size(targets) == 0)
        return hfd_cli_fail(
            HFD_EXIT_CUT_SHORT, p->v.name,
            "%s: nothing of it is being deleted; first: hyperfleet-driver delete %s", p->v.place,
            p->v.place);
    return HFD_EXIT_OK;
}

static enum hfd_exit remove_target(const struct purge *p, const json_t *target)
{
    struct hfd_client_request request = {.method = "POST"};
    enum hfd_exit status = HFD_EXIT_OK;
    struct hfd_buf path, body;
    json_t *doc = NULL;
    int answered = 0;

    hfd_buf_init(&path, 4096);
    hfd_buf_init(&body, 65536);
    hfd_buf_addf(&path, FLEET "%ss/",
                 strcmp(hfd_json_cstr(target, "kind"), "cluster") == 0 ? "cluster" : "nodepool");
    hfd_url_escape(&path, hfd_slice_of(hfd_json_cstr(target, "id")), HFD_URL_PLAIN);
    hfd_buf_add(&path, HFD_SLICE("/force-delete"));
    hfd_buf_addc(&path, '\0');
    hfd_buf_member_str(&body, "{\"reason\":", hfd_slice_of(p->reason));
    hfd_buf_addc(&body, '}');
    request.path = path.p;
    request.body = hfd_buf_slice(&body);
    if (path.rc != HFD_OK || body.rc != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_USAGE, p->v.name, "--reason is too long");
    else
        answered = ask(p, &request, &doc, &status);
    if (answered == 404)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, p->v.name,
                              "%s is gone meanwhile, or its HyperFleet is elsewhere: ask its API",
                              hfd_json_cstr(target, "id"));
    json_decref(doc);
    hfd_buf_fini(&path);
    hfd_buf_fini(&body);
    return status;
}

static enum hfd_exit print(struct purge *p, const json_t *targets)
{
    struct hfd_buf b;
    json_t *doc;

    hfd_buf_init(&b, HFD_VIEW_OUTPUT_MAX_BYTES);
    if (p->v.form == HFD_VIEW_JSON || p->v.form == HFD_VIEW_YAML) {
        doc = json_pack("{s:s, s:b, s:O}", "id", p->v.place, "removed", p->yes, "parts", targets);
        (void)hfd_view_write(&p->v, doc, &b);
        json_decref(doc);
        return hfd_cli_print(p->v.name, &b);
    }
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *target = json_array_get(targets, i);

        if (p->v.form == HFD_VIEW_TEXT) {
            hfd_buf_addf(&b, "%s ", p->yes ? "removed" : "would remove");
            hfd_view_add(&b, target, "kind");
            hfd_buf_addc(&b, ' ');
            hfd_view_add(&b, target, "name");
            hfd_buf_addc(&b, ' ');
        }
        hfd_view_add(&b, target, "id");
        hfd_buf_addc(&b, '\n');
    }
    return hfd_cli_print(p->v.name, &b);
}

static enum hfd_exit purge(struct purge *p)
{
    json_t *targets = json_array();
    enum hfd_exit printed, status = find(p, targets);

    for (size_t i = 0; p->yes && status == HFD_EXIT_OK && i < json_array_size(targets); i++)
        status = remove_target(p, json_array_get(targets, i));
    if (status == HFD_EXIT_OK) {
        printed = print(p, targets);
        status = printed != HFD_EXIT_OK || p->yes
                     ? printed
                     : hfd_cli_fail(HFD_EXIT_USAGE, p->v.name,
                                    "nothing is removed yet; what its adapters made stays behind. "
                                    "To remove: hyperfleet-driver purge %s --yes --reason TEXT",
                                    p->v.place);
    }
    json_decref(targets);
    return status;
}

enum hfd_exit hfd_cmd_purge(int argc, const char **argv)
{
    struct purge p = {.yes = false};
    const struct hfd_flag own[] = {
        {"--yes", NULL, HFD_FLAG_SWITCH, &p.yes, NULL, "remove it; without it: say what would be"},
        {"--reason", NULL, HFD_FLAG_TEXT, &p.reason, "TEXT", "with --yes: the reason, for the log"},
    };
    enum hfd_exit status;

    p.v = (struct hfd_view){
        .name = "purge",
        .usage = "purge GURESID|ID [--yes --reason TEXT] [FLAGS]",
        .examples = "Examples:\n  hyperfleet-driver purge 3c0a194814284345\n"
                    "  hyperfleet-driver purge 3c0a194814284345 --yes --reason 'dns is gone'\n",
        .own = own,
        .own_count = sizeof(own) / sizeof(own[0]),
        .takes_place = true};
    if (hfd_view_open(&p.v, argc, argv, &status)) {
        if (p.v.place == NULL || p.v.place[0] == '\0')
            status =
                hfd_view_wrong_use(&p.v, "expected a GUResID, or the id of a cluster or nodepool");
        else if (p.yes && (p.reason == NULL || p.reason[0] == '\0'))
            status = hfd_view_wrong_use(&p.v, "--reason: expected with --yes; it is logged");
        else if (p.v.watch)
            status = hfd_view_wrong_use(&p.v, "--watch: expected with list or status only");
        else
            status = purge(&p);
    }
    hfd_view_close(&p.v);
    return status;
}
