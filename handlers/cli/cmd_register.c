/*
 * hyperfleet-driver register: prints what an orchestrator has to know of this driver, or compares
 * it with what an organisation has. It changes nothing. Thread: main.
 */
#include "handlers/cli/cli.h"
#include "handlers/client/http.h"
#include "handlers/register/register.h"

#include "driver/base/base.h"
#include "driver/base/clock.h"

#define USAGE "register --print|--check --org ORG --target URL [FLAGS]"
#define API_URL "https://api.humanitec.io"
#define OWNER "shared.hyperfleet-cluster"
#define STELLWERK_OWNER "hyperfleet-cluster"
#define OUTPUT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)

/* The flags, and what follows from them. */
struct register_command {
    struct hfd_register_config plan;
    const char *format, *config_file, *api_url, *token_file, *ca_file;
    bool print, check;
};

static enum hfd_exit wrong_use(const char *msg)
{
    return hfd_cli_wrong_use("register", USAGE, msg);
}

/* ---- printing ---- */

static enum hfd_exit print_document(const struct register_command *c)
{
    static const char *const forms[] = {[HFD_REGISTER_HUMCTL] = "humctl",
                                        [HFD_REGISTER_TERRAFORM] = "terraform",
                                        [HFD_REGISTER_STELLWERK] = "stellwerk"};
    struct hfd_buf b;

    for (size_t i = 0; c->format != NULL && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(c->format, forms[i]) != 0)
            continue;
        hfd_buf_init(&b, OUTPUT_MAX_BYTES);
        hfd_register_write(&b, (enum hfd_register_form)i, &c->plan);
        return hfd_cli_print("register", &b);
    }
    return wrong_use("--format: expected humctl, terraform or stellwerk");
}

/* ---- comparing ---- */

/* Asks the organisation. @return OK with a document, OK with NULL for 404, or the end */
static enum hfd_exit ask(const struct register_command *c, struct hfd_client_http *http,
                         const char *path, json_t **out)
{
    const struct hfd_client_request request = {.method = "GET", .path = path};
    struct hfd_http_answer a = {.status = 0};
    enum hfd_exit status = HFD_EXIT_OK;

    *out = NULL;
    hfd_client_send(http, &request, &a, 1);
    if (a.status == 200)
        *out = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (a.status == 0)
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, "register", "%s cannot be reached: %s", c->api_url,
                              a.why);
    else if (a.status == 401 || a.status == 403)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "register",
                              "%s answers %d: expected --token-file with a token that may read "
                              "organisation %s",
                              c->api_url, a.status, c->plan.org);
    else if (a.status != 404 && *out == NULL)
        status = hfd_cli_fail(HFD_EXIT_CUT_SHORT, "register", "%s answers %d to /%s", c->api_url,
                              a.status, path);
    hfd_http_answer_fini(&a);
    return status;
}

/* A kind of thing, as the script and the API name it. */
struct thing {
    enum hfd_register_thing thing;
    const char *kind, *path, *word; /* kind: NULL = a document without one */
};

static const struct thing things[] = {
    {HFD_REGISTER_TYPE, "ResourceType", "types", "resource type"},
    {HFD_REGISTER_DEFINITION, "Definition", "defs", "resource definition"},
    {HFD_REGISTER_DRIVER, NULL, "drivers", "driver"},
};

static const struct thing *thing_of(const json_t *doc)
{
    const char *kind = json_string_value(json_object_get(doc, "kind"));
    const struct thing *t = things;

    while (t->kind != NULL && (kind == NULL || strcmp(kind, t->kind) != 0))
        t++;
    return t;
}

/* Types have no request for one: the list has it. */
static json_t *of_list(json_t *list, const char *type)
{
    json_t *found = NULL;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "type"));

        if (name != NULL && strcmp(name, type) == 0)
            found = json_array_get(list, i);
    }
    json_incref(found);
    json_decref(list);
    return found;
}

/* Compares one thing, and adds its line. */
static enum hfd_exit compare_one(const struct register_command *c, struct hfd_client_http *http,
                                 const json_t *doc, struct hfd_buf *out)
{
    const struct thing *t = thing_of(doc);
    const json_t *want = t->kind != NULL ? json_object_get(doc, "entity") : doc;
    const char *id = json_string_value(
        json_object_get(t->kind != NULL ? json_object_get(doc, "metadata") : doc, "id"));
    const bool is_type = t->thing == HFD_REGISTER_TYPE;
    enum hfd_exit status;
    json_t *have = NULL;
    struct hfd_buf why;
    char path[512];

    (void)snprintf(path, sizeof(path), "orgs/%s/resources/%s%s%s", c->plan.org, t->path,
                   is_type ? "" : "/", is_type ? "" : id);
    status = ask(c, http, path, &have);
    if (status != HFD_EXIT_OK)
        return status;
    if (is_type)
        have = of_list(have, id);
    hfd_buf_init(&why, OUTPUT_MAX_BYTES);
    if (have == NULL || hfd_register_compare(t->thing, have, want, &why) > 0)
        status = HFD_EXIT_FOUND;
    hfd_buf_addf(out, "%-8s %s %s%.*s\n",
                 have == NULL               ? "missing"
                 : status == HFD_EXIT_FOUND ? "differs"
                                            : "ok",
                 t->word, id, HFD_SLICE_FMT(hfd_buf_slice(&why)));
    hfd_buf_fini(&why);
    json_decref(have);
    return status;
}

/* The script for humctl has what is compared, each thing as a document. */
static enum hfd_exit compare_all(const struct register_command *c, struct hfd_client_http *http)
{
    enum hfd_exit all = HFD_EXIT_OK, one = HFD_EXIT_OK;
    struct hfd_buf out, script;
    hfd_slice rest;
    json_t *doc;

    hfd_buf_init(&out, OUTPUT_MAX_BYTES);
    hfd_buf_init(&script, OUTPUT_MAX_BYTES);
    hfd_register_write(&script, HFD_REGISTER_HUMCTL, &c->plan);
    rest = hfd_buf_slice(&script);
    while ((one == HFD_EXIT_OK || one == HFD_EXIT_FOUND) &&
           (doc = hfd_register_next(&rest)) != NULL) {
        one = compare_one(c, http, doc, &out);
        all = one == HFD_EXIT_OK ? all : one;
        json_decref(doc);
    }
    if (script.rc != HFD_OK)
        all = hfd_cli_fail(HFD_EXIT_INTERNAL, "register", "out of memory");
    hfd_buf_fini(&script);
    if (all != HFD_EXIT_OK && all != HFD_EXIT_FOUND) {
        hfd_buf_fini(&out);
        return all;
    }
    one = hfd_cli_print("register", &out);
    return one != HFD_EXIT_OK ? one : all;
}

static enum hfd_exit compare(const struct register_command *c)
{
    const struct hfd_client_config config = {.url = c->api_url,
                                             .token_file = c->token_file,
                                             .ca_file = c->ca_file,
                                             .timeout_us = REQUEST_TIMEOUT_US};
    struct hfd_client_http *http = NULL;
    struct hfd_err err = {0};
    enum hfd_exit status;

    if (c->format != NULL)
        return wrong_use("--check: expected no --format");
    if (c->token_file == NULL)
        return wrong_use("--check: expected --token-file FILE with a token of the orchestrator");
    if (hfd_client_open(&config, &http, &err) != HFD_OK)
        return wrong_use(err.msg);
    status = compare_all(c, http);
    hfd_client_close(&http);
    return status;
}

/* ---- the command ---- */

/* The first type of a list that is ours: k8s-cluster is the orchestrator's. */
static const char *own_type(struct hfd_settings *s, const struct hfd_list *types)
{
    for (size_t i = 0; i < types->count; i++)
        if (!hfd_slice_is(types->items[i], "k8s-cluster"))
            return hfd_arena_dup(&s->mem, types->items[i]).p;
    return NULL;
}

/* Types and paths are those of the server's settings. */
static enum hfd_exit with_settings(struct register_command *c, struct hfd_settings *s)
{
    struct hfd_err err = {0};

    c->plan.cluster = (struct hfd_register_kind){own_type(s, &s->types_cluster), s->path_cluster.p};
    c->plan.nodepool =
        (struct hfd_register_kind){own_type(s, &s->types_nodepool), s->path_nodepool.p};
    if (c->plan.cluster.type == NULL || c->plan.nodepool.type == NULL)
        return wrong_use("driver.types.cluster and driver.types.nodepool: expected a type of "
                         "your own in each");
    if (hfd_register_config_check(&c->plan, &err) != HFD_OK)
        return wrong_use(err.msg);
    if (strncmp(c->plan.target, "https://", 8) != 0)
        (void)fprintf(stderr, "hyperfleet-driver register: the target has no TLS: only an "
                              "orchestrator in the same network should call it\n");
    return c->check ? compare(c) : print_document(c);
}

static enum hfd_exit run(struct register_command *c)
{
    const char *argv[] = {"--config", c->config_file};
    const struct hfd_flags flags = {
        .command = "register", .rest = argv, .rest_count = c->config_file != NULL ? 2 : 0};
    struct hfd_settings *s = NULL;
    enum hfd_exit status;

    if (c->print == c->check)
        return wrong_use("expected --print or --check");
    if (c->plan.owner == NULL)
        c->plan.owner =
            c->format != NULL && strcmp(c->format, "stellwerk") == 0 ? STELLWERK_OWNER : OWNER;
    status = hfd_cli_settings(&flags, &s);
    if (status == HFD_EXIT_OK)
        status = with_settings(c, s);
    hfd_settings_free(s);
    return status;
}

enum hfd_exit hfd_cmd_register(int argc, const char **argv)
{
    struct register_command c = {.api_url = API_URL};
    const struct hfd_flag table[] = {
        {"--print", NULL, HFD_FLAG_SWITCH, &c.print, NULL, "print what is to be registered"},
        {"--check", NULL, HFD_FLAG_SWITCH, &c.check, NULL,
         "compare it with what the organisation has (reads only)"},
        {"--org", NULL, HFD_FLAG_TEXT, &c.plan.org, "ORG", "the organisation's id"},
        {"--target", NULL, HFD_FLAG_TEXT, &c.plan.target, "URL",
         "of this server, as the orchestrator reaches it"},
        {"--format", NULL, HFD_FLAG_TEXT, &c.format, "FORMAT",
         "print: humctl, terraform or stellwerk"},
        {"--class", NULL, HFD_FLAG_TEXT, &c.plan.class_name, "CLASS",
         "match resources of this class: default if none is given"},
        {"--env-type", NULL, HFD_FLAG_TEXT, &c.plan.env_type, "TYPE",
         "match environments of this type only"},
        {"--app", NULL, HFD_FLAG_TEXT, &c.plan.app, "APP",
         "match this application (Stellwerk: project) only"},
        {"--cluster-id", NULL, HFD_FLAG_TEXT, &c.plan.owner, "ID",
         "the resource id of the cluster to which nodepools belong: " OWNER
         ", for stellwerk " STELLWERK_OWNER ", if none is given"},
        {"--k8s-cluster", NULL, HFD_FLAG_SWITCH, &c.plan.k8s_cluster, NULL,
         "a definition of k8s-cluster as well; it matches only what a flag chooses"},
        {"--config", NULL, HFD_FLAG_TEXT, &c.config_file, "FILE",
         "settings of the server: its resource types and paths"},
        {"--api-url", NULL, HFD_FLAG_TEXT, &c.api_url, "URL",
         "check: the orchestrator's API, " API_URL " if none is given"},
        {"--token-file", NULL, HFD_FLAG_TEXT, &c.token_file, "FILE",
         "check: a token of the orchestrator"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &c.ca_file, "FILE", "check: certificates to trust"},
        {"--help", NULL, HFD_FLAG_SWITCH, NULL, NULL, "print this text"},
    };
    struct hfd_flags flags = {
        .command = "register",
        .usage = USAGE,
        .tail = "Examples:\n"
                "  hyperfleet-driver register --print --format humctl --org acme --target "
                "https://driver.example/ >register.sh\n"
                "  hyperfleet-driver register --print --format terraform --org acme --target "
                "https://driver.example/ >humanitec.tf\n"
                "  hyperfleet-driver register --check --org acme --target "
                "https://driver.example/ --token-file humanitec-token\n",
        HFD_FLAG_TABLE(table),
        .place_max = HFD_FLAG_PLACES_MAX};
    struct hfd_err err = {0};
    enum hfd_exit status;

    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "register", "%s", err.msg);
    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    if (flags.place_count > 0)
        return wrong_use("expected flags only");
    return run(&c);
}
