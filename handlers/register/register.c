/* See register.h. */
#include "handlers/register/register.h"

#include "driver/base/check.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/base/url.h"
#include "handlers/register/templates.h"
#include "schemas/documents.h"

#include <stdio.h>
#include <stdlib.h>

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

hfd_rc hfd_register_config_check(const struct hfd_register_config *c, struct hfd_err *err)
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
    for (size_t i = 0; i < v->count; i++)
        if (hfd_slice_is(name, v->all[i].name))
            return &v->all[i];
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
static void give_criteria(struct values *v, const struct hfd_register_config *c)
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
static void give_blanks(struct values *v, const struct hfd_register_config *c)
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

void hfd_register_write(struct hfd_buf *b, enum hfd_register_form form,
                        const struct hfd_register_config *c)
{
    const hfd_slice templates[] = {[HFD_REGISTER_HUMCTL] = hfd_register_humctl_template,
                                   [HFD_REGISTER_TERRAFORM] = hfd_register_terraform_template,
                                   [HFD_REGISTER_STELLWERK] = hfd_register_stellwerk_template};
    const bool hcl = form != HFD_REGISTER_HUMCTL;
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

json_t *hfd_register_next(hfd_slice *rest)
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

/* ---- comparing ---- */

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

size_t hfd_register_compare(enum hfd_register_thing thing, const json_t *have, const json_t *want,
                            struct hfd_buf *b)
{
    static const char *const type_names[] = {"use", "inputs_schema", "outputs_schema", NULL};
    static const char *const driver_names[] = {"type", "account_types", "inputs_schema", "target",
                                               NULL};
    static const char *const definition_names[] = {"type", "driver_type", "driver_inputs", NULL};
    struct differ d = {.out = b, .exact = thing != HFD_REGISTER_DEFINITION};
    const json_t *criteria = json_object_get(want, "criteria");

    compare_named(&d, have, want,
                  thing == HFD_REGISTER_TYPE     ? type_names
                  : thing == HFD_REGISTER_DRIVER ? driver_names
                                                 : definition_names);
    for (size_t i = 0; i < json_array_size(criteria); i++)
        if (!has_member(json_object_get(have, "criteria"), json_array_get(criteria, i)))
            note(&d, "criteria");
    return d.count;
}
