/* See order.h. */
#include "driver/adapters/hypershift/order.h"

#include "driver/base/url.h"
#include "store/rows_resource.h"

#include <stdio.h>

/* ---- names ---- */

#define HYPERSHIFT "hypershift.openshift.io/v1beta1"

const struct hfd_kube_type hfd_hs_hosted_clusters = {HYPERSHIFT, "HostedCluster", "hostedclusters",
                                                     false},
                           hfd_hs_node_pools = {HYPERSHIFT, "NodePool", "nodepools", false},
                           hfd_hs_secrets = {"v1", "Secret", "secrets", false},
                           hfd_hs_namespaces = {"v1", "Namespace", "namespaces", true};

/* ---- networks: each CIDR is one, and no two overlap ---- */

#define NETWORKS_MAX 75

struct network {
    char field[64];
    struct hfd_ip address;
    int bits; /* of its prefix */
};

/* Four decimal numbers, which may begin with zeros here. */
static bool parse_v4(hfd_slice s, unsigned char *out)
{
    for (int i = 0; i < 4; i++) {
        const char *dot = s.len > 0 && i < 3 ? memchr(s.p, '.', s.len) : NULL;
        const hfd_slice part = {s.p, i < 3 && dot != NULL ? (size_t)(dot - s.p) : s.len};
        int64_t v;

        if ((i < 3 && dot == NULL) || hfd_parse_i64(part, 0, 255, &v, NULL) != HFD_OK)
            return false;
        out[i] = (unsigned char)v;
        if (dot != NULL)
            s = (hfd_slice){dot + 1, s.len - part.len - 1};
    }
    return true;
}

static bool parse_cidr(hfd_slice s, struct network *out)
{
    const char *slash = s.len > 0 ? memchr(s.p, '/', s.len) : NULL;
    hfd_slice address, bits;
    int64_t n;

    if (slash == NULL)
        return false;
    address = (hfd_slice){s.p, (size_t)(slash - s.p)};
    bits = (hfd_slice){slash + 1, s.len - address.len - 1};
    out->address = (struct hfd_ip){.bits = 32};
    if (memchr(address.p, ':', address.len) == NULL) {
        if (!parse_v4(address, out->address.bytes))
            return false;
    } else if (memchr(address.p, '.', address.len) != NULL ||
               !hfd_ip_parse(address, &out->address)) {
        return false;
    }
    out->bits = hfd_parse_i64(bits, 0, out->address.bits, &n, NULL) == HFD_OK ? (int)n : -1;
    return out->bits >= 0;
}

/* Two networks overlap if they are equal in the bits of the shorter prefix. */
static bool overlap(const struct network *a, const struct network *b)
{
    return a->address.bits == b->address.bits &&
           hfd_ip_bits_equal(a->address.bytes, b->address.bytes,
                             a->bits < b->bits ? a->bits : b->bits);
}

struct networks {
    struct network all[NETWORKS_MAX];
    size_t count;
    char *field, *what;
};

static bool fail_network(struct networks *r, const char *field, const char *what)
{
    (void)snprintf(r->field, 64, "networking.%s", field);
    (void)snprintf(r->what, 160, "%s", what);
    return false;
}

static bool add_network(struct networks *r, const char *member, size_t i, const json_t *entry)
{
    struct network *n = &r->all[r->count];
    const json_t *v = json_is_string(entry) ? entry : json_object_get(entry, "cidr");
    char what[160];

    if (!json_is_string(v) || r->count == NETWORKS_MAX)
        return true;
    (void)snprintf(n->field, sizeof(n->field), "%s[%zu]", member, i);
    if (!parse_cidr((hfd_slice){json_string_value(v), json_string_length(v)}, n))
        return fail_network(r, n->field, "expected a network like 10.132.0.0/14");
    for (size_t k = 0; k < r->count; k++) {
        if (!overlap(&r->all[k], n))
            continue;
        (void)snprintf(what, sizeof(what), "expected networks that do not overlap; %s does",
                       r->all[k].field);
        return fail_network(r, n->field, what);
    }
    r->count++;
    return true;
}

bool hfd_hs_networks_check(const json_t *networking, char field[64], char what[160])
{
    static const char *const members[] = {"cluster_network", "clusterNetwork",  "service_network",
                                          "serviceNetwork",  "machine_network", "machineNetwork"};
    struct networks r = {.field = field, .what = what};

    for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++) {
        const json_t *list = json_object_get(networking, members[m]);

        for (size_t i = 0; i < json_array_size(list); i++)
            if (!add_network(&r, members[m], i, json_array_get(list, i)))
                return false;
    }
    return true;
}

/* ---- order ---- */

#define PATH_MAX_BYTES 128
#define VALUES "driver.values"
#define HCP_NAMESPACE_MAX 63
#define MINIMAL_SERVICES 4
#define NAME_SHOWN 63 /* bytes of a name that is not known */

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

const char *hfd_hs_platform_block(const char *type)
{
    for (size_t i = 0; i < PLATFORM_COUNT; i++)
        if (strcmp(platforms[i].type, type) == 0)
            return platforms[i].block;
    return NULL;
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

/* The next name of a path, without the index of a list: "etcd" of "etcd.managed[0].x". */
static hfd_slice take_name(hfd_slice *path)
{
    size_t len = 0, end;
    hfd_slice name;

    while (len < path->len && path->p[len] != '.' && path->p[len] != '[')
        len++;
    for (end = len; end < path->len && path->p[end] != '.';)
        end++;
    name = (hfd_slice){path->p, len};
    if (end < path->len)
        end++;
    *path = (hfd_slice){path->p + end, path->len - end};
    return name;
}

/* True if a document has a value at a path, or a value that is no object on the way to it. */
static bool has_path(const json_t *doc, hfd_slice path)
{
    while (path.len > 0 && json_is_object(doc)) {
        const hfd_slice name = take_name(&path);

        doc = json_object_getn(doc, name.p, name.len);
    }
    return doc != NULL;
}

hfd_slice hfd_hs_order_field(const json_t *spec, bool of_pool, hfd_slice field,
                             struct hfd_arena *mem)
{
    static const struct {
        const char *of_object, *of_order; /* '*': what is below is named the same */
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
        {"spec.platform", "platform*"},
        {"spec.services", "services*"},
        {"spec.fips", "fips"},
        {"spec.autoScaling", "auto_scaling*"},
        {"spec.replicas", "replicas"},
        {"spec.management.upgradeType", "management.upgrade_type"},
        {"spec.management.autoRepair", "auto_repair"},
        {"spec.nodeLabels", "labels*"},
        {"spec.taints", "taints*"},
        {"spec.arch", "arch"},
    };
    const char *member = of_pool ? "node_pool" : "hosted_cluster";
    const json_t *raw = json_object_get(json_object_get(spec, "raw"), member);
    const hfd_slice head = HFD_SLICE("spec.");

    if (field.len > 0 && has_path(raw, field))
        return hfd_arena_printf(mem, "raw.%s.%.*s", member, HFD_SLICE_FMT(field));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const size_t len = strlen(known[i].of_object);
        const int named = (int)strcspn(known[i].of_order, "*");
        const int rest = known[i].of_order[named] != '\0' ? (int)(field.len - len) : 0;

        if (!hfd_slice_starts(field, hfd_slice_of(known[i].of_object)) ||
            (field.len > len && strchr(".[", field.p[len]) == NULL))
            continue;
        /* HyperShift's own spelling does as well in places. */
        if (has_path(spec, (hfd_slice){field.p + head.len, field.len - head.len}))
            return hfd_arena_dup(mem, (hfd_slice){field.p + head.len, field.len - head.len});
        return hfd_arena_printf(mem, "%.*s%.*s", named, known[i].of_order, rest, field.p + len);
    }
    return HFD_SLICE("");
}

/* ---- checking ---- */

/* An order at work. */
struct check {
    const struct hfd_hs_checker *checker;
    const struct hfd_ordered *order;
    struct hfd_input_errors *errors;
    struct hfd_err *err;
    hfd_rc rc; /* the first failure; errors of the input are none */
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
        c->rc = hfd_input_errors_add(c->errors, HFD_INVALID, whole, "%s", what);
}

static void check_schema(struct check *c, const struct hfd_schema *schema, const char *path,
                         json_t *spec)
{
    const struct hfd_schema_use use = {.schema = schema, .root = path, .unknown = "no such input"};
    struct hfd_violations found;
    hfd_rc rc;

    if (c->rc != HFD_OK || !json_is_object(spec))
        return;
    rc = hfd_schema_validate_numbers(&use, spec, c->errors->mem, &found, c->err);
    c->rc = hfd_input_errors_add_all(c->errors, rc, &found);
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
    const hfd_slice name = hfd_hs_management_of(at->spec);
    char known[192], what[320];

    if (hfd_hs_has_management(defaults, name))
        return;
    hfd_hs_managements_text(defaults, known, sizeof(known));
    (void)snprintf(what, sizeof(what),
                   "expected the name of a management cluster, one of: %s; got '%.*s'", known,
                   (int)(name.len < NAME_SHOWN ? name.len : NAME_SHOWN), name.p);
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

/* @param type  NULL = not known here */
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
    if (min == 0 && json_is_integer(json_object_get(scaling, "min")) && type != NULL &&
        strcmp(type, "AWS") != 0 && strcmp(type, "Azure") != 0)
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
    check_size(c, at, type);
    if (own != NULL && at->cluster_type != NULL && strcmp(own, at->cluster_type) != 0) {
        (void)snprintf(what, sizeof(what), "expected %s, the type of the cluster",
                       at->cluster_type);
        mistake(c, at->path, "platform.type", what);
    }
    if (type == NULL)
        return; /* the cluster is of another order: order.h knows it */
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
                          struct hfd_input_errors *errors, struct hfd_err *err)
{
    struct check c = {.checker = ctx, .order = order, .errors = errors, .err = err};
    const char *type =
        order->cluster_spec != NULL ? hfd_hs_platform_type(order->cluster_spec) : NULL;
    json_t *spec;

    if (order->kind == HFD_KIND_NODEPOOL) {
        spec = json_object_get(json_object_get(order->values, "nodepool"), "spec");
        if (spec == NULL || json_is_object(spec))
            check_pool(&c, &(struct place){VALUES ".nodepool.spec", spec, type}, spec);
        return c.rc;
    }
    spec = json_object_get(json_object_get(order->values, "cluster"), "spec");
    check_cluster(&c, spec);
    check_pools(&c, json_object_get(order->values, "nodepools"), spec);
    check_secrets(&c);
    return c.rc;
}

/* ---- admit ---- */

#define SPEC "driver.values.cluster.spec"
#define SCRATCH_BYTES ((size_t)16 << 20)

/* ---- a cluster that is there ---- */

static hfd_rc fail_fixed(const struct hfd_ctx *c, const char *field, const char *is,
                         const char *want)
{
    return hfd_fail_field(c->err, HFD_IMMUTABLE, field,
                          "it cannot change from '%.80s' to '%.80s': expected the same value, or a "
                          "resource of another id",
                          is, want);
}

static hfd_rc compare(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                      const json_t *is, const json_t *want)
{
    const char *type = hfd_hs_platform_type(is), *other = hfd_hs_platform_type(want);
    const hfd_slice namespace = hfd_hs_namespace_of(is, defaults),
                    wanted = hfd_hs_namespace_of(want, defaults);
    const hfd_slice manager = hfd_hs_management_of(is), other_manager = hfd_hs_management_of(want);

    if (strcmp(type, other) != 0)
        return fail_fixed(c, SPEC ".platform.type", type, other);
    if (!hfd_slice_eq(namespace, wanted))
        return fail_fixed(c, SPEC ".namespace", namespace.p, wanted.p);
    return hfd_slice_eq(manager, other_manager)
               ? HFD_OK
               : fail_fixed(c, SPEC ".management", manager.p, other_manager.p);
}

/* Type, namespace and management cluster of a HostedCluster cannot change. One that is gone is made
 * anew. */
static hfd_rc check_change(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                           const struct hfd_call *call, const struct hfd_resource_row *was)
{
    json_t *is = NULL, *want = NULL;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(c->tx, was->cluster_id, c->mem, &row, c->err);

    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && row.deleted_us != 0))
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_json_parse(row.spec, &is, c->err);
    if (rc == HFD_OK)
        rc = hfd_json_parse(call->input->cluster.spec, &want, c->err);
    if (rc == HFD_OK)
        rc = compare(defaults, c, is, want);
    json_decref(is);
    json_decref(want);
    return rc;
}

/* A paused cluster would never be made. */
static hfd_rc check_pause(const struct hfd_ctx *c, const struct hfd_call *call)
{
    const json_t *until;
    json_t *spec;
    bool pauses;
    hfd_rc rc = hfd_json_parse(call->input->cluster.spec, &spec, c->err);

    if (rc != HFD_OK)
        return rc;
    until = json_object_get(spec, "paused_until");
    pauses = until != NULL && !json_is_null(until) && !json_is_false(until) &&
             !(json_is_string(until) && strcasecmp(json_string_value(until), "false") == 0);
    json_decref(spec);
    return pauses ? hfd_fail_field(c->err, HFD_INVALID, SPEC ".paused_until",
                                   "expected no pause in the order that makes the cluster: "
                                   "HyperShift would not make it")
                  : HFD_OK;
}

/* ---- names ---- */

/* A NodePool's name, and the cluster and nodepool that it is for. */
struct claim {
    hfd_slice whole, cluster, pool;
    const char *field;
};

static hfd_rc fail_claimed(const struct hfd_ctx *c, const struct claim *claim,
                           const struct hfd_fleet_row *pool)
{
    struct hfd_part_row part = {.guresid = HFD_SLICE("")};
    const hfd_rc rc = hfd_part_row_by_fleet(c->tx, pool->id, c->mem, &part, c->err);

    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    return hfd_fail_field(c->err, HFD_INVALID, claim->field,
                          "the NodePool '%.*s' is that of nodepool '%.*s', which is %s%.*s: choose "
                          "another name",
                          HFD_SLICE_FMT(claim->whole), HFD_SLICE_FMT(pool->name),
                          rc == HFD_OK ? "of resource " : "of no resource",
                          HFD_SLICE_FMT(part.guresid));
}

/* Looks for another cluster and nodepool whose names make the same NodePool, split at `at`. */
static hfd_rc check_split(const struct hfd_ctx *c, const struct claim *claim, size_t at)
{
    const struct hfd_fleet_name cluster = {HFD_KIND_CLUSTER, HFD_SLICE(""), {claim->whole.p, at}};
    struct hfd_fleet_name pool = {.kind = HFD_KIND_NODEPOOL,
                                  .name = {claim->whole.p + at + 1, claim->whole.len - at - 1}};
    struct hfd_fleet_row row;
    hfd_rc rc;

    if (at == claim->cluster.len)
        return HFD_OK; /* this one */
    rc = hfd_fleet_row_by_name(c->tx, &cluster, c->mem, &row, c->err);
    if (rc == HFD_OK) {
        pool.owner_id = row.id;
        rc = hfd_fleet_row_by_name(c->tx, &pool, c->mem, &row, c->err);
    }
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    return rc == HFD_OK ? fail_claimed(c, claim, &row) : rc;
}

/* "a-b" and "c", "a" and "b-c": both make the NodePool "a-b-c". */
static hfd_rc admit_check_name(const struct hfd_ctx *c, struct claim *claim)
{
    hfd_rc rc = HFD_OK;

    claim->whole = hfd_arena_printf(c->mem, "%.*s-%.*s", HFD_SLICE_FMT(claim->cluster),
                                    HFD_SLICE_FMT(claim->pool));
    if (claim->whole.p == NULL)
        return hfd_fail_nomem(c->err, "check names");
    for (size_t i = 1; rc == HFD_OK && i + 1 < claim->whole.len; i++)
        if (claim->whole.p[i] == '-')
            rc = check_split(c, claim, i);
    return rc;
}

/* The cluster that a nodepool resource asks for. An empty name = it is not known. */
static hfd_rc cluster_of_pool(const struct hfd_ctx *c, const struct hfd_input *in,
                              struct hfd_fleet_row *row)
{
    struct hfd_resource_row owner;
    hfd_slice id = in->cluster_id;
    hfd_rc rc = HFD_OK;

    row->name = HFD_SLICE("");
    if (in->cluster_guresid.len > 0) {
        rc = hfd_resource_row_get(c->tx, in->cluster_guresid, c->mem, &owner, c->err);
        if (rc == HFD_OK)
            id = owner.cluster_id;
    }
    if (rc == HFD_OK)
        rc = hfd_fleet_row_get(c->tx, id, c->mem, row, c->err);
    if (rc != HFD_OK)
        row->name = HFD_SLICE("");
    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* the order is refused for that elsewhere */
}

/* Checks a nodepool resource once more: now the platform of its cluster is known. */
static hfd_rc admit_check_pool(const struct hfd_hs_checker *checker, const struct hfd_ctx *c,
                               const struct hfd_input *in, const struct hfd_fleet_row *cluster)
{
    struct hfd_violations found = {.count = 0};
    struct hfd_input_errors errors = {.found = &found, .mem = c->mem};
    struct hfd_ordered order = {.kind = HFD_KIND_NODEPOOL, .cluster_name = cluster->name};
    json_t *spec = NULL, *of_cluster = NULL;
    hfd_rc rc = hfd_json_parse(in->nodepools[0].spec, &spec, c->err);

    if (rc == HFD_OK)
        rc = hfd_json_parse(cluster->spec, &of_cluster, c->err);
    if (rc == HFD_OK) {
        order.cluster_spec = of_cluster;
        order.values = json_pack("{s:{s:O}}", "nodepool", "spec", spec);
        rc = order.values != NULL ? hfd_hs_order_check(checker, &order, &errors, c->err)
                                  : hfd_fail_nomem(c->err, "check a nodepool");
    }
    if (rc == HFD_OK)
        rc = hfd_input_errors_result(&errors, c->err);
    json_decref(order.values);
    json_decref(spec);
    json_decref(of_cluster);
    return rc;
}

static hfd_rc check_names(const struct hfd_ctx *c, const struct hfd_input *in, hfd_slice cluster)
{
    const bool alone = in->kind == HFD_KIND_NODEPOOL;
    hfd_rc rc = HFD_OK;
    char field[64];

    for (size_t i = 0; rc == HFD_OK && cluster.len > 0 && i < in->nodepool_count; i++) {
        struct claim claim = {.cluster = cluster, .pool = in->nodepools[i].name, .field = field};

        if (alone)
            (void)snprintf(field, sizeof(field), "driver.values.nodepool.name");
        else
            (void)snprintf(field, sizeof(field), "driver.values.nodepools[%zu].name", i);
        rc = admit_check_name(c, &claim);
    }
    return rc;
}

hfd_rc hfd_hs_admit(const struct hfd_hs_checker *checker, const struct hfd_ctx *c,
                    const struct hfd_call *call, const struct hfd_resource_row *was)
{
    const struct hfd_input *in = call->input;
    struct hfd_fleet_row cluster = {.name = in->cluster.name};
    hfd_rc rc;

    if (in->kind == HFD_KIND_NODEPOOL) {
        rc = cluster_of_pool(c, in, &cluster);
        if (rc == HFD_OK && cluster.name.len > 0)
            rc = admit_check_pool(checker, c, in, &cluster);
    } else {
        rc = was != NULL ? check_change(&checker->defaults, c, call, was) : check_pause(c, call);
    }
    return rc == HFD_OK ? check_names(c, in, cluster.name) : rc;
}
