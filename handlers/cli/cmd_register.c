/*
 * hyperfleet-driver register: prints what an orchestrator has to know of this driver, or compares
 * it with what an organisation has. It changes nothing. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/url.h"
#include "handlers/cli/cli.h"
#include "handlers/client/http.h"
#include "handlers/register/templates.h"
#include "schemas/documents.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>

#define USAGE "register --print|--check --org ORG --target URL [FLAGS]"
#define API_URL "https://api.humanitec.io"
#define OWNER "shared.hyperfleet-cluster"
#define STELLWERK_OWNER "hyperfleet-cluster"
#define OUTPUT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)

/* A kind of resource at the driver. */
struct kind {
    const char *type; /* "hyperfleet-cluster": the resource type, and the id of the driver */
    const char *path; /* "clusters": the path at the driver */
};

/* The choices. Texts are borrowed, and NULL where nothing is chosen. */
struct plan {
    const char *org;    /* the organisation's id */
    const char *target; /* the URL of the server */
    struct kind cluster, nodepool;
    const char *class_name, *env_type, *app; /* what the definitions match; NULL = any */
    const char *owner; /* the id of the cluster resource that a nodepool belongs to */
    bool k8s_cluster;  /* a definition of k8s-cluster as well */
};

enum form {
    FORM_HUMCTL,    /* a script with documents for humctl; it may run again */
    FORM_TERRAFORM, /* resources of the provider humanitec/humanitec */
    FORM_STELLWERK  /* resources of the provider stellwerk-labs/platform-orchestrator */
};

enum thing_kind {
    THING_TYPE,
    THING_DRIVER,
    THING_DEFINITION
};

#define URL_MAX_BYTES 512
#define MEM_MAX_BYTES ((size_t)1024 * 1024)
#define VALUES_MAX 32
#define PATH_MAX_BYTES 512
#define SHOWN_MAX 5

/* ---- the choices ---- */

/* An id of Humanitec: ^[a-z0-9][a-z0-9-]+[a-z0-9]$ */
static bool is_id(const char *text)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= '0' && text[i] <= '9') &&
            !(text[i] == '-' && i > 0 && i + 1 < n))
            return false;
    return n >= 3 && n <= 100;
}

static bool is_resource_id(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if (!hfd_is_alnum(*p) && strchr("-._", *p) == NULL)
            return false;
    return text[0] != '\0' && strlen(text) <= 200;
}

/*
 * Checks the choices.
 * @return HFD_OK, HFD_INVALID (which one, and what was expected)
 */
static hfd_rc check_config(const struct plan *c, struct hfd_err *err)
{
    const struct {
        const char *flag, *value;
    } ids[] = {{"--org", c->org},
               {"--class", c->class_name},
               {"--env-type", c->env_type},
               {"--app", c->app},
               {"driver.types.cluster", c->cluster.type},
               {"driver.types.nodepool", c->nodepool.type}};
    struct hfd_err why;

    if (c->org == NULL)
        return hfd_fail(err, HFD_INVALID, "expected --org ORG");
    if (c->target == NULL)
        return hfd_fail(err, HFD_INVALID, "expected --target URL");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        if (ids[i].value != NULL && !is_id(ids[i].value))
            return hfd_fail(err, HFD_INVALID,
                            "%s: expected 3 or more lower-case letters, digits and hyphens, with a "
                            "letter or digit at each end",
                            ids[i].flag);
    if (!is_resource_id(c->owner))
        return hfd_fail(err, HFD_INVALID,
                        "--cluster-id: expected letters, digits, '-', '.' and '_'");
    if (strlen(c->target) > URL_MAX_BYTES || hfd_url_check(hfd_slice_of(c->target), &why) != HFD_OK)
        return hfd_fail(err, HFD_INVALID,
                        "--target: expected the URL of the server, as "
                        "https://driver.example/");
    return HFD_OK;
}

/* ---- documents ---- */

/* A value, which a template calls ${name}. A line with a value without a text is left out. */
struct value {
    const char *name;
    hfd_slice text; /* p is NULL: it has none */
};

struct values {
    struct value all[VALUES_MAX];
    size_t count;
    struct hfd_arena mem;
    bool failed; /* memory is short */
};

static void give(struct values *v, const char *name, const char *text)
{
    HFD_ASSERT(v->count < VALUES_MAX);
    v->all[v->count++] = (struct value){name, text != NULL ? hfd_slice_of(text) : HFD_SLICE_NONE};
}

/* Gives what is made in the arena. */
static void give_made(struct values *v, const char *name, hfd_slice text)
{
    give(v, name, text.p);
    v->failed = v->failed || text.p == NULL;
}

/* Gives a document as JSON or, for HCL, with a blank in front of each colon, and drops it. */
static void give_json(struct values *v, const char *name, json_t *doc, bool hcl)
{
    char *json = doc != NULL ? json_dumps(doc, JSON_INDENT(2)) : NULL;
    hfd_slice text = HFD_SLICE_NONE;
    bool quoted = false;
    struct hfd_buf b;

    hfd_buf_init(&b, MEM_MAX_BYTES);
    for (const char *p = json; p != NULL && *p != '\0'; p++) {
        quoted = quoted != (*p == '"' && (p == json || p[-1] != '\\'));
        if (hcl && *p == ':' && !quoted)
            hfd_buf_addc(&b, ' ');
        hfd_buf_addc(&b, *p);
    }
    if (json != NULL && hfd_buf_to_arena(&b, &v->mem, &text, NULL) != HFD_OK)
        text = HFD_SLICE_NONE;
    give_made(v, name, text);
    hfd_buf_fini(&b);
    free(json);
    json_decref(doc);
}

/* A member of a member of a document that the program carries; gives. */
static json_t *carried(hfd_slice text, const char *first, const char *second)
{
    json_t *doc = NULL, *found;

    if (hfd_json_parse(text, &doc, NULL) != HFD_OK)
        return NULL;
    found = json_object_get(doc, first);
    found = json_incref(second != NULL ? json_object_get(found, second) : found);
    json_decref(doc);
    return found;
}

static const struct value *find(const struct values *v, hfd_slice name)
{
    for (size_t i = 0; i < v->count; i++) {
        HFD_ASSERT(v->all[i].name != NULL);
        if (hfd_slice_is(name, v->all[i].name))
            return &v->all[i];
    }
    return NULL;
}

/* Returns the value of a "${name}" that the text begins with; NULL: it is the orchestrator's. */
static const struct value *value_at(const struct values *v, hfd_slice text)
{
    const char *end =
        hfd_slice_starts(text, HFD_SLICE("${")) ? memchr(text.p, '}', text.len) : NULL;

    return end != NULL ? find(v, (hfd_slice){text.p + 2, (size_t)(end - text.p) - 2}) : NULL;
}

/* Adds a text. Its further lines are indented as the line in which it stands. */
static void add_indented(struct hfd_buf *b, hfd_slice text, size_t indent)
{
    for (size_t i = 0; i < text.len; i++) {
        hfd_buf_addc(b, text.p[i]);
        for (size_t k = 0; text.p[i] == '\n' && k < indent; k++)
            hfd_buf_addc(b, ' ');
    }
}

/* Adds a line of a template, unless a value in it has no text. */
static void add_line(struct hfd_buf *b, const struct values *v, hfd_slice line)
{
    size_t indent = 0;

    for (size_t i = 0; i < line.len; i++) {
        const struct value *value = value_at(v, (hfd_slice){line.p + i, line.len - i});

        if (value != NULL && value->text.p == NULL)
            return;
    }
    while (indent < line.len && line.p[indent] == ' ')
        indent++;
    for (size_t i = 0; i < line.len; i++) {
        const struct value *value = value_at(v, (hfd_slice){line.p + i, line.len - i});

        if (value == NULL) {
            hfd_buf_addc(b, line.p[i]);
            continue;
        }
        add_indented(b, value->text, indent);
        i += strlen(value->name) + 2;
    }
}

/* Fills a template. A line "${?name}" begins a part that is left out if `name` has no text. */
static void fill(struct hfd_buf *b, const struct values *v, hfd_slice rest)
{
    bool left_out = false;

    while (rest.len > 0) {
        const char *end = memchr(rest.p, '\n', rest.len);
        const hfd_slice line = {rest.p, end != NULL ? (size_t)(end - rest.p) + 1 : rest.len};

        rest = (hfd_slice){rest.p + line.len, rest.len - line.len};
        if (hfd_slice_starts(line, HFD_SLICE("${?"))) {
            const struct value *value = find(v, (hfd_slice){line.p + 3, line.len - 5});

            left_out = value == NULL || value->text.p == NULL;
        } else if (!left_out)
            add_line(b, v, line);
    }
}

/* The name of a resource in a file: hyphens become underscores. */
static hfd_slice name_of(struct values *v, const char *id)
{
    char *name = hfd_arena_array(&v->mem, strlen(id) + 1, 1);

    for (size_t i = 0; name != NULL && id[i] != '\0'; i++)
        name[i] = id[i];
    for (char *p = name; p != NULL && *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    return name != NULL ? hfd_slice_of(name) : HFD_SLICE_NONE;
}

/* Gives the criteria of definitions. Without a choice k8s-cluster matches nothing. */
static void give_criteria(struct values *v, const struct plan *c)
{
    const bool chosen = c->class_name != NULL || c->env_type != NULL || c->app != NULL;
    const char *class_name = c->class_name != NULL ? c->class_name : "default";
    json_t *criteria =
        json_pack("[{ss ss* ss*}]", "class", class_name, "env_type", c->env_type, "app_id", c->app);

    give(v, "class", class_name);
    give(v, "own_class", c->class_name);
    give(v, "env_type", c->env_type);
    give(v, "app", c->app);
    give(v, "k8s_cluster", c->k8s_cluster ? "" : NULL);
    give(v, "k8s_chosen", c->k8s_cluster && chosen ? "" : NULL);
    give_json(v, "k8s_criteria", chosen ? json_incref(criteria) : json_array(), false);
    give_json(v, "criteria", criteria, false);
}

/* The blanks that bring "=" into one column, where lines may be left out. */
static void give_blanks(struct values *v, const struct plan *c)
{
    static const char blanks[] = "     ";
    const size_t width = c->class_name != NULL ? strlen("resource_class")
                         : c->env_type != NULL ? strlen("env_type_id")
                         : c->app != NULL      ? strlen("project_id")
                                               : strlen("module_id");
    const struct {
        const char *name;
        size_t count;
    } all[] = {{"class_blanks", c->class_name != NULL ? 1 : 0},
               {"module_blanks", width - strlen("module_id")},
               {"env_blanks", c->env_type != NULL ? width - strlen("env_type_id") : 0},
               {"app_blanks", c->app != NULL ? width - strlen("project_id") : 0}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        give(v, all[i].name, blanks + sizeof(blanks) - 1 - all[i].count);
}

/* Adds the document of a form. @param c  checked */
static void write_document(struct hfd_buf *b, enum form form, const struct plan *c)
{
    const hfd_slice templates[] = {[FORM_HUMCTL] = hfd_register_humctl_template,
                                   [FORM_TERRAFORM] = hfd_register_terraform_template,
                                   [FORM_STELLWERK] = hfd_register_stellwerk_template};
    const bool hcl = form != FORM_HUMCTL;
    hfd_slice base = hfd_slice_of(c->target);
    struct values v = {.count = 0};

    hfd_arena_init(&v.mem, MEM_MAX_BYTES);
    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    give(&v, "org", c->org);
    give(&v, "owner", c->owner);
    give(&v, "version", HFD_VERSION);
    give_made(&v, "target", hfd_arena_dup(&v.mem, base));
    give(&v, "cluster", c->cluster.type);
    give(&v, "cluster_path", c->cluster.path);
    give_made(&v, "cluster_name", name_of(&v, c->cluster.type));
    give(&v, "nodepool", c->nodepool.type);
    give(&v, "nodepool_path", c->nodepool.path);
    give_made(&v, "nodepool_name", name_of(&v, c->nodepool.type));
    give_json(&v, "inputs", carried(hfd_schema_input_text(), "properties", "driver"), hcl);
    give_json(&v, "cluster_outputs", carried(hfd_register_outputs_json, "cluster", NULL), hcl);
    give_json(&v, "nodepool_outputs", carried(hfd_register_outputs_json, "nodepool", NULL), hcl);
    give_criteria(&v, c);
    give_blanks(&v, c);
    fill(b, &v, templates[form]);
    if (v.failed && b->rc == HFD_OK)
        b->rc = HFD_NOMEM;
    hfd_arena_fini(&v.mem);
}

/*
 * Takes the next document out of the form for humctl: {"kind", "metadata": {"id"}, "entity"}, or a
 * driver.
 * @return gives; NULL at the end, or if memory is short
 */
static json_t *next_document(hfd_slice *rest)
{
    static const char before[] = "<<'END'\n", behind[] = "\nEND\n";
    const char *from = rest->len > 0 ? memmem(rest->p, rest->len, before, strlen(before)) : NULL;
    const char *end;
    json_t *doc;

    if (from == NULL)
        return NULL;
    from += strlen(before);
    end = memmem(from, rest->len - (size_t)(from - rest->p), behind, strlen(behind));
    HFD_ASSERT(end != NULL);
    doc = json_loadb(from, (size_t)(end - from), JSON_REJECT_DUPLICATES, NULL);
    *rest = (hfd_slice){end, rest->len - (size_t)(end - rest->p)};
    return doc;
}

/* ---- what differs ---- */

/* A comparison under way. */
struct differ {
    struct hfd_buf *out;
    size_t count;
    bool exact; /* a member that only `have` has is a difference */
};

static void note(struct differ *d, const char *path)
{
    if (d->count < SHOWN_MAX) {
        hfd_buf_add(d->out, d->count == 0 ? HFD_SLICE(": ") : HFD_SLICE(", "));
        hfd_buf_show(d->out, hfd_slice_of(path));
    } else if (d->count == SHOWN_MAX)
        hfd_buf_lit(d->out, " and more");
    d->count++;
}

static void differ_at(struct differ *d, const json_t *have, const json_t *want, const char *path);

static void members(struct differ *d, const json_t *have, const json_t *want, const char *path)
{
    char below[PATH_MAX_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)want, key, value) {
        (void)snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        hfd_foreign_drop_halves(below);
        differ_at(d, json_object_get(have, key), value, below);
    }
    if (!d->exact)
        return;
    json_object_foreach ((json_t *)(uintptr_t)have, key, value) {
        (void)snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        hfd_foreign_drop_halves(below);
        if (json_object_get(want, key) == NULL)
            note(d, below);
    }
}

static void differ_at(struct differ *d, const json_t *have, const json_t *want, const char *path)
{
    if (json_is_object(want) && json_is_object(have) && strlen(path) < PATH_MAX_BYTES / 2)
        members(d, have, want, path);
    else if (!d->exact && json_is_array(want) && json_array_size(want) == 0 && json_is_array(have))
        return; /* the organisation's own */
    else if (!json_equal(have, want))
        note(d, path);
}

/* Compares the members that are named. */
static void compare_named(struct differ *d, const json_t *have, const json_t *want,
                          const char *const *names)
{
    for (; *names != NULL; names++)
        differ_at(d, json_object_get(have, *names), json_object_get(want, *names), *names);
}

static bool has_member(const json_t *have, const json_t *one)
{
    struct hfd_buf none;
    bool found = false;

    hfd_buf_init(&none, 4096);
    for (size_t i = 0; !found && i < json_array_size(have); i++) {
        struct differ d = {.out = &none};

        members(&d, json_array_get(have, i), one, "");
        found = d.count == 0;
    }
    hfd_buf_fini(&none);
    return found;
}

/*
 * Adds the paths in which a thing differs, as ": target, inputs_schema.properties.values". A
 * definition may have more than what is registered, as organisations fill in its spec.
 * @param have  the organisation's; @param want  what is registered
 * @return how many differences there are
 */
static size_t compare_thing(enum thing_kind thing, const json_t *have, const json_t *want,
                            struct hfd_buf *b)
{
    static const char *const type_names[] = {"use", "inputs_schema", "outputs_schema", NULL};
    static const char *const driver_names[] = {"type", "account_types", "inputs_schema", "target",
                                               NULL};
    static const char *const definition_names[] = {"type", "driver_type", "driver_inputs", NULL};
    struct differ d = {.out = b, .exact = thing != THING_DEFINITION};
    const json_t *criteria = json_object_get(want, "criteria");

    compare_named(&d, have, want,
                  thing == THING_TYPE     ? type_names
                  : thing == THING_DRIVER ? driver_names
                                          : definition_names);
    for (size_t i = 0; i < json_array_size(criteria); i++)
        if (!has_member(json_object_get(have, "criteria"), json_array_get(criteria, i)))
            note(&d, "criteria");
    return d.count;
}

/* The flags, and what follows from them. */
struct register_command {
    struct plan plan;
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
    static const char *const forms[] = {
        [FORM_HUMCTL] = "humctl", [FORM_TERRAFORM] = "terraform", [FORM_STELLWERK] = "stellwerk"};
    struct hfd_buf b;

    for (size_t i = 0; c->format != NULL && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(c->format, forms[i]) != 0)
            continue;
        hfd_buf_init(&b, OUTPUT_MAX_BYTES);
        write_document(&b, (enum form)i, &c->plan);
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
    enum thing_kind thing;
    const char *kind, *path, *word; /* kind: NULL = a document without one */
};

static const struct thing things[] = {
    {THING_TYPE, "ResourceType", "types", "resource type"},
    {THING_DEFINITION, "Definition", "defs", "resource definition"},
    {THING_DRIVER, NULL, "drivers", "driver"},
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
    const bool is_type = t->thing == THING_TYPE;
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
    if (have == NULL || compare_thing(t->thing, have, want, &why) > 0)
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
    write_document(&script, FORM_HUMCTL, &c->plan);
    rest = hfd_buf_slice(&script);
    while ((one == HFD_EXIT_OK || one == HFD_EXIT_FOUND) && (doc = next_document(&rest)) != NULL) {
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

    c->plan.cluster = (struct kind){own_type(s, &s->types_cluster), s->path_cluster.p};
    c->plan.nodepool = (struct kind){own_type(s, &s->types_nodepool), s->path_nodepool.p};
    if (c->plan.cluster.type == NULL || c->plan.nodepool.type == NULL)
        return wrong_use("driver.types.cluster and driver.types.nodepool: expected a type of "
                         "your own in each");
    if (check_config(&c->plan, &err) != HFD_OK)
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
