/* See order.h. */
#include "driver/adapters/hypershift/order.h"

#include <stdio.h>

#include "driver/adapters/hypershift/networks.h"
#include "driver/core/mistakes.h"

#define PATH_MAX_BYTES 128
#define VALUES "driver.values"
#define HCP_NAMESPACE_MAX 63
#define MINIMAL_SERVICES 4

/* ---- what a spec says ---- */

static const struct {
    const char *type, *block;
    bool block_needed;      /* of the cluster */
    bool pool_block_needed; /* of a nodepool */
} platforms[] = {
    {"None", NULL, false, false},         {"Agent", "agent", true, true},
    {"KubeVirt", "kubevirt", true, true}, {"AWS", "aws", true, true},
    {"Azure", "azure", true, true},       {"IBMCloud", "ibmcloud", false, false},
    {"PowerVS", "powervs", true, true},   {"OpenStack", "openstack", true, true},
    {"GCP", "gcp", true, true},
};
#define PLATFORM_COUNT (sizeof(platforms) / sizeof(platforms[0]))

static const char *text_of(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

const char *hfd_hs_platform_type(const json_t *spec)
{
    const char *type = text_of(json_object_get(spec, "platform"), "type");

    return type != NULL ? type : "None";
}

const char *hfd_hs_platform_block(const char *type)
{
    for (size_t i = 0; i < PLATFORM_COUNT; i++)
        if (strcmp(platforms[i].type, type) == 0)
            return platforms[i].block;
    return NULL;
}

hfd_slice hfd_hs_namespace_of(const json_t *cluster_spec, const struct hfd_hs_defaults *defaults)
{
    const char *given = text_of(cluster_spec, "namespace");

    return given != NULL ? hfd_slice_of(given) : defaults->namespace;
}

hfd_slice hfd_hs_management_of(const json_t *cluster_spec)
{
    const char *given = text_of(cluster_spec, "management");

    return given != NULL ? hfd_slice_of(given) : HFD_SLICE(HFD_HS_MANAGEMENT);
}

bool hfd_hs_has_management(const struct hfd_hs_defaults *defaults, hfd_slice name)
{
    if (defaults->management_count == 0)
        return hfd_slice_is(name, HFD_HS_MANAGEMENT);
    for (size_t i = 0; i < defaults->management_count; i++)
        if (hfd_slice_eq(defaults->managements[i], name))
            return true;
    return false;
}

void hfd_hs_managements_text(const struct hfd_hs_defaults *defaults, char *out, size_t size)
{
    size_t at = 0;

    if (defaults->management_count == 0)
        (void)snprintf(out, size, "%s", HFD_HS_MANAGEMENT);
    for (size_t i = 0; i < defaults->management_count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%.*s", i > 0 ? ", " : "",
                               HFD_SLICE_FMT(defaults->managements[i]));
}

bool hfd_hs_is_passthrough(const json_t *cluster_spec)
{
    const json_t *block = json_object_get(json_object_get(cluster_spec, "platform"), "kubevirt");

    return json_is_true(json_object_get(block, "baseDomainPassthrough"));
}

const char *hfd_hs_order_field(hfd_slice field)
{
    static const struct {
        const char *of_object, *of_order;
    } known[] = {
        {"spec.dns.baseDomainPrefix", "dns.base_domain_prefix"},
        {"spec.dns.baseDomain", "dns.base_domain"},
        {"spec.dns.publicZoneID", "dns.public_zone_id"},
        {"spec.dns.privateZoneID", "dns.private_zone_id"},
        {"spec.networking.clusterNetwork", "networking.cluster_network"},
        {"spec.networking.serviceNetwork", "networking.service_network"},
        {"spec.networking.machineNetwork", "networking.machine_network"},
        {"spec.networking.networkType", "networking.network_type"},
        {"spec.etcd", "etcd"},
        {"spec.controllerAvailabilityPolicy", "availability"},
        {"spec.infrastructureAvailabilityPolicy", "infrastructure_availability"},
        {"spec.infraID", "infra_id"},
        {"spec.issuerURL", "issuer_url"},
        {"spec.pausedUntil", "paused_until"},
        {"spec.release", "release.image"},
        {"spec.platform.type", "platform.type"},
        {"spec.platform", "platform"},
        {"spec.services", "services"},
        {"spec.fips", "fips"},
        {"spec.autoScaling", "auto_scaling"},
        {"spec.replicas", "replicas"},
        {"spec.management.upgradeType", "management.upgrade_type"},
        {"spec.management.autoRepair", "auto_repair"},
        {"spec.nodeLabels", "labels"},
        {"spec.taints", "taints"},
        {"spec.arch", "arch"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const size_t len = strlen(known[i].of_object);

        if (field.len >= len && memcmp(field.p, known[i].of_object, len) == 0 &&
            (field.len == len || strchr(".[", field.p[len]) != NULL))
            return known[i].of_order;
    }
    return NULL;
}

/* ---- checking ---- */

/* An order at work. */
struct check {
    const struct hfd_hs_checker *checker;
    const struct hfd_ordered *order;
    struct hfd_mistakes *mistakes;
    struct hfd_err *err;
    hfd_rc rc; /* the first failure; mistakes are none */
};

/* A spec in the order. */
struct place {
    const char *path; /* "driver.values.cluster.spec" */
    const json_t *spec;
    const char *cluster_type; /* of a nodepool: its cluster's platform; NULL = not known here */
};

static void mistake(struct check *c, const char *path, const char *field, const char *what)
{
    char whole[PATH_MAX_BYTES];

    (void)snprintf(whole, sizeof(whole), "%s%s%s", path, field[0] != '\0' ? "." : "", field);
    if (c->rc == HFD_OK)
        c->rc = hfd_mistakes_add(c->mistakes, HFD_INVALID, whole, "%s", what);
}

static void check_schema(struct check *c, const struct hfd_schema *schema, const char *path,
                         json_t *spec)
{
    const struct hfd_schema_use use = {.schema = schema, .root = path, .unknown = "no such input"};
    struct hfd_violations found;
    hfd_rc rc;

    if (c->rc != HFD_OK || !json_is_object(spec))
        return;
    rc = hfd_schema_validate_numbers(&use, spec, c->mistakes->mem, &found, c->err);
    c->rc = hfd_mistakes_add_all(c->mistakes, rc, &found);
}

/* ---- platforms ---- */

/* A block of another type than the given one would have no effect. */
static void check_blocks(struct check *c, const struct place *at, const char *type, bool of_pool)
{
    const json_t *platform = json_object_get(at->spec, "platform");
    /* An agent block may be empty: a nodepool without a platform gets one. */
    const bool implied = of_pool && platform == NULL && strcmp(type, "Agent") == 0;
    char field[64], what[160];

    for (size_t i = 0; i < PLATFORM_COUNT; i++) {
        const bool is_it = strcmp(platforms[i].type, type) == 0;
        const bool needed =
            !implied && (of_pool ? platforms[i].pool_block_needed : platforms[i].block_needed);
        const char *block = platforms[i].block;

        if (block == NULL || (json_object_get(platform, block) != NULL) == (is_it && needed))
            continue;
        if (is_it && !needed)
            continue;
        (void)snprintf(field, sizeof(field), "platform.%s", block);
        (void)snprintf(what, sizeof(what),
                       is_it ? "expected the block of a platform of type %s"
                             : "no such input of a platform of type %s",
                       type);
        mistake(c, at->path, field, what);
    }
}

/* ---- services ---- */

static bool has_service(const json_t *services, const char *name, size_t before)
{
    for (size_t i = 0; i < json_array_size(services) && i < before; i++) {
        const char *given = text_of(json_array_get(services, i), "service");

        if (given != NULL && strcmp(given, name) == 0)
            return true;
    }
    return false;
}

/* nodePort, route and loadBalancer belong to the type of their name. */
static void check_strategy(struct check *c, const char *path, size_t i, const json_t *strategy)
{
    static const struct {
        const char *type, *member;
        bool needed;
    } unions[] = {{"NodePort", "nodePort", true},
                  {"Route", "route", false},
                  {"LoadBalancer", "loadBalancer", false}};
    const char *type = text_of(strategy, "type");
    char field[96], what[96];

    for (size_t k = 0; type != NULL && k < sizeof(unions) / sizeof(unions[0]); k++) {
        const bool is_it = strcmp(unions[k].type, type) == 0;
        const bool given = json_object_get(strategy, unions[k].member) != NULL;

        if (is_it ? (given || !unions[k].needed) : !given)
            continue;
        (void)snprintf(field, sizeof(field), "services[%zu].servicePublishingStrategy.%s", i,
                       unions[k].member);
        (void)snprintf(what, sizeof(what),
                       is_it ? "expected an address for a service of type %s"
                             : "no such input of a service of type %s",
                       type);
        mistake(c, path, field, what);
    }
}

static const char *hostname_of(const json_t *service)
{
    const json_t *strategy = json_object_get(service, "servicePublishingStrategy");
    const char *route = text_of(json_object_get(strategy, "route"), "hostname");

    return route != NULL ? route : text_of(json_object_get(strategy, "loadBalancer"), "hostname");
}

static void check_hostname(struct check *c, const char *path, const json_t *services, size_t i)
{
    const char *name = hostname_of(json_array_get(services, i));
    char field[96];

    for (size_t k = 0; name != NULL && k < i; k++) {
        const char *other = hostname_of(json_array_get(services, k));

        if (other == NULL || strcmp(other, name) != 0)
            continue;
        (void)snprintf(field, sizeof(field), "services[%zu].servicePublishingStrategy", i);
        mistake(c, path, field, "expected distinct host names; an earlier service has this one");
        return;
    }
}

static void check_services(struct check *c, const struct place *at, const char *type)
{
    static const char *const minimal[] = {"APIServer", "OAuthServer", "Konnectivity", "Ignition"};
    const json_t *services = json_object_get(at->spec, "services");
    const bool by_node = strcmp(type, "None") == 0 || strcmp(type, "Agent") == 0;
    char field[64], what[128];

    if (services == NULL && by_node && c->checker->defaults.nodeport_address.len == 0)
        mistake(c, at->path, "services",
                "expected the addresses of the services: platforms None and Agent have no load "
                "balancers, and the setting hypershift.nodeport_address is not set");
    for (size_t i = 0; i < json_array_size(services); i++) {
        const json_t *service = json_array_get(services, i);
        const char *name = text_of(service, "service");

        (void)snprintf(field, sizeof(field), "services[%zu].service", i);
        if (name != NULL && has_service(services, name, i))
            mistake(c, at->path, field, "expected each service once");
        check_strategy(c, at->path, i, json_object_get(service, "servicePublishingStrategy"));
        check_hostname(c, at->path, services, i);
    }
    for (size_t i = 0; services != NULL && i < MINIMAL_SERVICES; i++) {
        if (has_service(services, minimal[i], SIZE_MAX) || strcmp(type, "IBMCloud") == 0)
            continue;
        (void)snprintf(what, sizeof(what),
                       "expected APIServer, OAuthServer, Konnectivity and Ignition; %s is missing",
                       minimal[i]);
        mistake(c, at->path, "services", what);
    }
}

/* ---- clusters ---- */

static void check_domain(struct check *c, const struct place *at)
{
    const char *domain = text_of(json_object_get(at->spec, "dns"), "base_domain");

    if (hfd_hs_is_passthrough(at->spec)) {
        if (domain != NULL && domain[0] != '\0')
            mistake(c, at->path, "dns.base_domain",
                    "expected no domain beside platform.kubevirt.baseDomainPassthrough");
        return;
    }
    if ((domain == NULL || domain[0] == '\0') && c->checker->defaults.base_domain.len == 0)
        mistake(c, at->path, "dns.base_domain",
                "expected a domain: the setting hypershift.base_domain is not set");
}

static void check_release(struct check *c, const struct place *at)
{
    if (text_of(json_object_get(at->spec, "release"), "image") == NULL &&
        c->checker->defaults.release_image.len == 0)
        mistake(c, at->path, "release.image",
                "expected an image: the setting hypershift.release_image is not set");
}

static void check_networking(struct check *c, const struct place *at)
{
    char field[64];
    char what[160];

    if (!hfd_hs_networks_check(json_object_get(at->spec, "networking"), field, what))
        mistake(c, at->path, field, what);
}

static void check_name(struct check *c, const struct place *at)
{
    const hfd_slice namespace = hfd_hs_namespace_of(at->spec, &c->checker->defaults);
    const size_t len = namespace.len + 1 + c->order->cluster_name.len;
    char what[200];

    if (len <= HCP_NAMESPACE_MAX)
        return;
    (void)snprintf(what, sizeof(what),
                   "expected a shorter name: HyperShift makes the namespace %.*s-NAME, of at most "
                   "%d characters, and it would have %zu",
                   HFD_SLICE_FMT(namespace), HCP_NAMESPACE_MAX, len);
    mistake(c, VALUES ".cluster", "name", what);
}

static void check_management(struct check *c, const struct place *at)
{
    const struct hfd_hs_defaults *defaults = &c->checker->defaults;
    char known[192], what[256];

    if (hfd_hs_has_management(defaults, hfd_hs_management_of(at->spec)))
        return;
    hfd_hs_managements_text(defaults, known, sizeof(known));
    (void)snprintf(what, sizeof(what), "expected the name of a management cluster, one of: %s",
                   known);
    mistake(c, at->path, "management", what);
}

static void check_cluster(struct check *c, json_t *spec)
{
    const struct place at = {VALUES ".cluster.spec", spec, NULL};
    const char *type = hfd_hs_platform_type(spec);

    if (spec != NULL && !json_is_object(spec))
        return;
    check_schema(c, c->checker->schemas.cluster, at.path, spec);
    check_management(c, &at);
    check_blocks(c, &at, type, false);
    check_release(c, &at);
    check_domain(c, &at);
    check_services(c, &at, type);
    check_networking(c, &at);
    check_name(c, &at);
}

/* ---- nodepools ---- */

static void check_size(struct check *c, const struct place *at, const char *type)
{
    const json_t *replicas = json_object_get(at->spec, "replicas");
    const json_t *scaling = json_object_get(at->spec, "auto_scaling");
    const json_int_t min = json_integer_value(json_object_get(scaling, "min"));
    const json_int_t max = json_integer_value(json_object_get(scaling, "max"));

    if (replicas == NULL && scaling == NULL)
        mistake(c, at->path, "", "expected replicas or auto_scaling, got neither");
    if (replicas != NULL && scaling != NULL)
        mistake(c, at->path, "", "expected replicas or auto_scaling, got both");
    if (!json_is_object(scaling))
        return;
    if (max < min)
        mistake(c, at->path, "auto_scaling.max", "expected a number that is not below min");
    if (min == 0 && json_is_integer(json_object_get(scaling, "min")) && strcmp(type, "AWS") != 0 &&
        strcmp(type, "Azure") != 0)
        mistake(c, at->path, "auto_scaling.min",
                "expected at least 1: only AWS and Azure scale from zero");
}

static void check_arch(struct check *c, const struct place *at, const char *type)
{
    static const struct {
        const char *arch, *types; /* in blanks; NULL = all */
    } known[] = {
        {"amd64", NULL},
        {"arm64", " AWS Azure Agent GCP None "},
        {"s390x", " KubeVirt "},
        {"ppc64le", " PowerVS None Agent "},
    };
    const char *arch = text_of(at->spec, "arch");
    char word[32], what[96];

    (void)snprintf(word, sizeof(word), " %s ", type);
    for (size_t i = 0; arch != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].arch, arch) != 0 || known[i].types == NULL ||
            strstr(known[i].types, word) != NULL)
            continue;
        (void)snprintf(what, sizeof(what), "expected one of%sfor %s nodes", known[i].types, arch);
        mistake(c, at->path, "arch", what);
    }
}

static void check_pool(struct check *c, const struct place *at, json_t *spec)
{
    const char *own = text_of(json_object_get(spec, "platform"), "type");
    const char *type = own != NULL ? own : at->cluster_type;
    char what[128];

    check_schema(c, c->checker->schemas.nodepool, at->path, spec);
    check_size(c, at, type != NULL ? type : "");
    if (own != NULL && at->cluster_type != NULL && strcmp(own, at->cluster_type) != 0) {
        (void)snprintf(what, sizeof(what), "expected %s, the type of the cluster",
                       at->cluster_type);
        mistake(c, at->path, "platform.type", what);
    }
    if (type == NULL)
        return; /* the cluster is of another order */
    check_blocks(c, at, type, true);
    check_arch(c, at, type);
}

static void check_pools(struct check *c, const json_t *pools, const json_t *cluster_spec)
{
    const char *type = hfd_hs_platform_type(cluster_spec);
    char path[PATH_MAX_BYTES];

    for (size_t i = 0; i < json_array_size(pools); i++) {
        json_t *spec = json_object_get(json_array_get(pools, i), "spec");

        (void)snprintf(path, sizeof(path), VALUES ".nodepools[%zu].spec", i);
        if (spec == NULL || json_is_object(spec))
            check_pool(c, &(struct place){path, spec, type}, spec);
    }
}

/* ---- secrets ---- */

/* The text of a pull secret is a JSON object with `auths`; the order may also give the object. */
static bool is_pull_secret(const json_t *v)
{
    json_t *doc = NULL;
    bool ok;

    if (json_is_object(v))
        return json_is_object(json_object_get(v, "auths"));
    if (!json_is_string(v) ||
        hfd_json_parse((hfd_slice){json_string_value(v), json_string_length(v)}, &doc, NULL) !=
            HFD_OK)
        return false;
    ok = json_is_object(json_object_get(doc, "auths"));
    json_decref(doc);
    return ok;
}

static void check_secrets(struct check *c)
{
    const json_t *pull = json_object_get(c->order->secrets, "pull_secret");
    const json_t *ssh = json_object_get(c->order->secrets, "ssh_key");

    if (pull == NULL || json_is_null(pull)) {
        if (c->checker->defaults.pull_secret.len == 0)
            mistake(c, "driver.secrets", "pull_secret",
                    "expected a pull secret: the setting hypershift.pull_secret_file is not set");
    } else if (!is_pull_secret(pull)) {
        mistake(c, "driver.secrets", "pull_secret",
                "expected a JSON object with the member auths, or its text");
    }
    if (ssh != NULL && !json_is_null(ssh) && !json_is_string(ssh))
        mistake(c, "driver.secrets", "ssh_key", "expected a public key as text");
}

hfd_rc hfd_hs_order_check(const void *ctx, const struct hfd_ordered *order,
                          struct hfd_mistakes *mistakes, struct hfd_err *err)
{
    struct check c = {.checker = ctx, .order = order, .mistakes = mistakes, .err = err};
    json_t *spec;

    if (order->kind == HFD_KIND_NODEPOOL) {
        spec = json_object_get(json_object_get(order->values, "nodepool"), "spec");
        if (spec == NULL || json_is_object(spec))
            check_pool(&c, &(struct place){VALUES ".nodepool.spec", spec, NULL}, spec);
        return c.rc;
    }
    spec = json_object_get(json_object_get(order->values, "cluster"), "spec");
    check_cluster(&c, spec);
    check_pools(&c, json_object_get(order->values, "nodepools"), spec);
    check_secrets(&c);
    return c.rc;
}
