/* See plan.h. */
#include "handlers/register/plan.h"

#include "driver/base/jsonx.h"
#include "driver/base/url.h"
#include "schemas/documents.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX_BYTES 1024

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
    if (strlen(c->target) > TEXT_MAX_BYTES / 2 ||
        hfd_url_check(hfd_slice_of(c->target), &why) != HFD_OK)
        return hfd_fail(err, HFD_INVALID,
                        "--target: expected the URL of the server, as "
                        "https://driver.example/");
    return HFD_OK;
}

/* ---- pieces ---- */

static json_t *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static json_t *text(const char *fmt, ...)
{
    char out[TEXT_MAX_BYTES];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(out, sizeof(out), fmt, ap);
    va_end(ap);
    return n >= 0 && (size_t)n < sizeof(out) ? json_string(out) : NULL;
}

/* The URL of a kind: the orchestrator puts a GUResID behind it. */
static json_t *target_of(const struct hfd_register_config *c, const struct hfd_register_kind *kind)
{
    hfd_slice base = hfd_slice_of(c->target);

    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    return text("%.*s/%s/", HFD_SLICE_FMT(base), kind->path);
}

/* The part of schemas/input.json that is about driver inputs. */
static json_t *inputs_schema(void)
{
    json_t *doc = NULL, *driver;

    if (hfd_json_parse(hfd_schema_input_text(), &doc, NULL) != HFD_OK)
        return NULL;
    driver = json_object_get(json_object_get(doc, "properties"), "driver");
    json_incref(driver);
    json_decref(doc);
    return driver;
}

/* The schema of what a resource puts out. */
static json_t *outputs_schema(bool nodepool)
{
    static const char common[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"values\":{\"type\":\"object\",\"required\":[\"name\",\"cluster_id\"],\"properties\":{"
        "\"name\":{\"type\":\"string\",\"title\":\"Name\"},"
        "\"cluster_id\":{\"type\":\"string\",\"title\":\"HyperFleet's id of the cluster\"},"
        "\"href\":{\"type\":\"string\",\"title\":\"Path in the HyperFleet API\"},"
        "\"generation\":{\"type\":\"integer\",\"title\":\"Generation\"},"
        "\"health\":{\"type\":\"string\",\"title\":\"Health\"},"
        "\"health_reason\":{\"type\":\"string\",\"title\":\"Reason, unless healthy\"},"
        "\"health_message\":{\"type\":\"string\",\"title\":\"Message, unless healthy\"},"
        "\"nodepools\":{\"type\":\"array\",\"title\":\"Nodepools\"},%s},"
        "\"secrets\":{\"type\":\"object\",\"properties\":{%s}}}}";
    static const char cluster_values[] =
        "\"endpoint\":{\"type\":\"string\",\"title\":\"URL of the API server\"},"
        "\"version\":{\"type\":\"string\",\"title\":\"Version\"},"
        "\"cluster_type\":{\"type\":\"string\",\"title\":\"Kind, for k8s-cluster\"},"
        "\"cluster_data\":{\"type\":\"object\",\"title\":\"Place, for k8s-cluster\"}}";
    static const char cluster_secrets[] =
        "\"kubeconfig\":{\"type\":\"string\",\"title\":\"Kubeconfig\"},"
        "\"kubeadmin_password\":{\"type\":\"string\",\"title\":\"Password of kubeadmin\"},"
        "\"credentials\":{\"type\":\"object\",\"title\":\"Credentials, for k8s-cluster\"}";
    static const char nodepool_values[] =
        "\"nodepool_id\":{\"type\":\"string\",\"title\":\"HyperFleet's id of the nodepool\"}}";
    struct hfd_buf b;
    json_t *doc;

    hfd_buf_init(&b, 8192);
    hfd_buf_addf(&b, common, nodepool ? nodepool_values : cluster_values,
                 nodepool ? "" : cluster_secrets);
    doc = b.rc == HFD_OK ? json_loadb(b.p, b.len, 0, NULL) : NULL;
    hfd_buf_fini(&b);
    return doc;
}

/* "${resources['acme/hyperfleet-cluster.default#ID'].outputs.NAME}" */
static json_t *from_cluster(const struct hfd_register_config *c, const char *name)
{
    return text("${resources['%s/%s.%s#%s'].outputs.%s}", c->org, c->cluster.type,
                c->class_name != NULL ? c->class_name : "default", c->owner, name);
}

static json_t *labels(void)
{
    return json_pack("{ss ss ss}", "app", "${context.app.id}", "env", "${context.env.id}",
                     "resource", "${context.res.id}");
}

static json_t *criteria(const struct hfd_register_config *c)
{
    return json_pack("[{ss ss* ss*}]", "class", c->class_name != NULL ? c->class_name : "default",
                     "env_type", c->env_type, "app_id", c->app);
}

/* ---- the entries ---- */

static json_t *resource_type(const struct hfd_register_config *c, bool nodepool)
{
    const struct hfd_register_kind *kind = nodepool ? &c->nodepool : &c->cluster;

    return json_pack("{so ss ss ss s{ss sb} so}", "type", text("%s/%s", c->org, kind->type), "name",
                     nodepool ? "HyperFleet nodepool" : "HyperFleet cluster", "category",
                     "hyperfleet", "use", "direct", "inputs_schema", "type", "object",
                     "additionalProperties", 1, "outputs_schema", outputs_schema(nodepool));
}

static json_t *driver(const struct hfd_register_config *c, const struct hfd_register_kind *kind)
{
    return json_pack("{ss so s[] so so}", "id", kind->type, "type",
                     text("%s/%s", c->org, kind->type), "account_types", "inputs_schema",
                     inputs_schema(), "target", target_of(c, kind));
}

static json_t *definition(const struct hfd_register_config *c, const struct hfd_register_kind *kind,
                          json_t *values)
{
    return json_pack("{ss ss so so s{so} so}", "id", kind->type, "name", kind->type, "type",
                     text("%s/%s", c->org, kind->type), "driver_type",
                     text("%s/%s", c->org, kind->type), "driver_inputs", "values", values,
                     "criteria", criteria(c));
}

/*
 * The built-in k8s-cluster, made of what a cluster puts out. Each deployment of what it matches
 * waits for the cluster: without a choice it matches nothing.
 */
static json_t *k8s_definition(const struct hfd_register_config *c)
{
    const bool chosen = c->class_name != NULL || c->env_type != NULL || c->app != NULL;

    return json_pack("{ss ss ss ss s{s{so so} s{s{so}}} so}", "id", "hyperfleet-k8s-cluster",
                     "name", "hyperfleet-k8s-cluster", "type", "k8s-cluster", "driver_type",
                     "humanitec/k8s-cluster", "driver_inputs", "values", "name",
                     from_cluster(c, "name"), "cluster_data", from_cluster(c, "cluster_data"),
                     "secret_refs", "credentials", "value", from_cluster(c, "credentials"),
                     "criteria", chosen ? criteria(c) : json_array());
}

hfd_rc hfd_register_plan(const struct hfd_register_config *c, json_t **out, struct hfd_err *err)
{
    json_t *cluster =
        json_pack("{s{s{} so} s[]}", "cluster", "spec", "labels", labels(), "nodepools");
    json_t *nodepool = json_pack("{so s{s{} so}}", "cluster_id", from_cluster(c, "cluster_id"),
                                 "nodepool", "spec", "labels", labels());

    *out = json_pack("{ss s[oo] s[oo] s[oo]}", "organization", c->org, "resource_types",
                     resource_type(c, false), resource_type(c, true), "drivers",
                     driver(c, &c->cluster), driver(c, &c->nodepool), "resource_definitions",
                     definition(c, &c->cluster, cluster), definition(c, &c->nodepool, nodepool));
    if (*out != NULL && c->k8s_cluster &&
        json_array_append_new(json_object_get(*out, "resource_definitions"), k8s_definition(c)) !=
            0) {
        json_decref(*out);
        *out = NULL;
    }
    return *out != NULL ? HFD_OK : hfd_fail_nomem(err, "make what is registered");
}
