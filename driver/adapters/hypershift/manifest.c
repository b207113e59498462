/* See manifest.h. */
#include "driver/adapters/hypershift/manifest.h"

#define MANIFEST_MAX_BYTES ((size_t)3 << 20) /* what an API server takes */

/* A document under construction. The first failure sticks; it can only be memory. */
struct build {
    bool failed;
};

/* Puts a value into an object. Takes the value. */
static void put(struct build *b, json_t *obj, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(obj, key, value) != 0)
        b->failed = true;
}

static json_t *text(hfd_slice s)
{
    return json_stringn(s.p != NULL ? s.p : "", s.len);
}

static void put_text(struct build *b, json_t *obj, const char *key, hfd_slice s)
{
    put(b, obj, key, text(s));
}

static void put_cstr(struct build *b, json_t *obj, const char *key, const char *s)
{
    put(b, obj, key, json_string(s));
}

/* Puts a new, empty object. @return borrowed; NULL if memory is short */
static json_t *put_object(struct build *b, json_t *obj, const char *key)
{
    json_t *v = json_object();

    put(b, obj, key, v);
    return b->failed ? NULL : v;
}

/* Copies a member, if it is there. */
static void copy_as(struct build *b, json_t *to, const char *as, const json_t *from,
                    const char *key)
{
    const json_t *v = json_object_get(from, key);

    if (v != NULL && !json_is_null(v))
        put(b, to, as, hfd_json_deep_copy(v));
}

/* ---- common parts ---- */

hfd_slice hfd_hs_secret_cluster_name(hfd_slice secret_name)
{
    static const hfd_slice suffixes[] = {HFD_SLICE(HFD_HS_PULL_SECRET_SUFFIX),
                                         HFD_SLICE(HFD_HS_SSH_KEY_SUFFIX)};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const size_t len = suffixes[i].len;

        if (secret_name.len > len &&
            memcmp(secret_name.p + secret_name.len - len, suffixes[i].p, len) == 0)
            return (hfd_slice){secret_name.p, secret_name.len - len};
    }
    return HFD_SLICE("");
}

static void put_labels(struct build *b, json_t *metadata, const struct hfd_hs_source *s)
{
    json_t *labels = put_object(b, metadata, "labels");
    const bool pool = s->nodepool_id.len > 0;

    put_cstr(b, labels, HFD_HS_LABEL_MANAGER, HFD_HS_ADAPTER);
    put_text(b, labels, HFD_HS_LABEL_CLUSTER, s->cluster_id);
    put_cstr(b, labels, HFD_HS_LABEL_TYPE, pool ? "nodepool" : "cluster");
    if (pool)
        put_text(b, labels, HFD_HS_LABEL_NODEPOOL, s->nodepool_id);
    if (s->guresid.len > 0)
        put_text(b, labels, HFD_HS_LABEL_GURESID, s->guresid);
}

/* The head of an object: its type, name, labels and generation. */
static json_t *begin(struct build *b, const struct hfd_kube_type *type, hfd_slice name,
                     const struct hfd_hs_source *s)
{
    json_t *doc = json_object();
    json_t *metadata;
    char generation[24];

    if (doc == NULL) {
        b->failed = true;
        return NULL;
    }
    put_cstr(b, doc, "apiVersion", type->group_version);
    put_cstr(b, doc, "kind", type->kind);
    metadata = put_object(b, doc, "metadata");
    put_text(b, metadata, "name", name);
    put_text(b, metadata, "namespace", hfd_hs_namespace_of(s->cluster_spec, s->defaults));
    put_labels(b, metadata, s);
    (void)snprintf(generation, sizeof(generation), "%lld", (long long)s->generation);
    put_cstr(b, put_object(b, metadata, "annotations"), HFD_HS_GENERATION, generation);
    return doc;
}

static hfd_rc finish(struct build *b, json_t *doc, struct hfd_arena *mem, hfd_slice *out,
                     struct hfd_err *err)
{
    struct hfd_buf text_out;
    hfd_rc rc = HFD_NOMEM;

    *out = HFD_SLICE_NONE;
    hfd_buf_init(&text_out, MANIFEST_MAX_BYTES);
    if (!b->failed) {
        hfd_json_dump_for_store(&text_out, doc);
        rc = hfd_buf_to_arena(&text_out, mem, out, err);
    }
    hfd_buf_fini(&text_out);
    json_decref(doc);
    return rc == HFD_OK ? rc : hfd_fail_nomem(err, "build a manifest");
}

/* RFC 7386. Changes target. */
static void merge(struct build *b, json_t *target, const json_t *patch)
{
    const char *key;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)patch, key, value) {
        json_t *have = json_object_get(target, key);

        if (json_is_null(value)) {
            (void)json_object_del(target, key);
        } else if (json_is_object(value) && json_is_object(have)) {
            merge(b, have, value);
        } else if (json_is_object(value)) {
            json_t *fresh = put_object(b, target, key);

            if (fresh != NULL)
                merge(b, fresh, value);
        } else {
            put(b, target, key, hfd_json_deep_copy(value));
        }
    }
}

static void put_release(struct build *b, json_t *spec, const struct hfd_hs_source *s)
{
    const json_t *own = json_object_get(json_object_get(s->nodepool_spec, "release"), "image");
    const json_t *of_cluster =
        json_object_get(json_object_get(s->cluster_spec, "release"), "image");
    json_t *release = put_object(b, spec, "release");
    const json_t *image = own != NULL ? own : of_cluster;

    if (image != NULL)
        put(b, release, "image", hfd_json_deep_copy(image));
    else
        put_text(b, release, "image", s->defaults->release_image);
}

/* ---- the hosted cluster ---- */

/* "cluster_network" -> "clusterNetwork"; `out` has room for the key. */
static void to_camel(const char *key, char out[64])
{
    size_t n = 0;

    for (; *key != '\0' && n < 63; key++) {
        if (*key == '_' && key[1] >= 'a' && key[1] <= 'z')
            out[n++] = (char)(*++key - 'a' + 'A');
        else
            out[n++] = *key;
    }
    out[n] = '\0';
}

/* A network: {cidr, hostPrefix}, or its CIDR alone. */
static json_t *network_of(struct build *b, const json_t *v)
{
    json_t *out = json_object();

    if (out == NULL) {
        b->failed = true;
        return NULL;
    }
    if (json_is_string(v)) {
        put(b, out, "cidr", hfd_json_copy(v));
        return out;
    }
    copy_as(b, out, "cidr", v, "cidr");
    copy_as(b, out, "hostPrefix", v, "hostPrefix");
    copy_as(b, out, "hostPrefix", v, "host_prefix");
    return out;
}

static void put_networking(struct build *b, json_t *spec, const json_t *given)
{
    static const struct {
        const char *key, *cidr;
    } defaults[] = {{"clusterNetwork", "10.132.0.0/14"}, {"serviceNetwork", "172.31.0.0/16"}};
    json_t *networking = put_object(b, spec, "networking");
    const char *key;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)given, key, value) {
        char camel[64];
        json_t *list;

        to_camel(key, camel);
        if (!json_is_array(value)) {
            put(b, networking, camel, hfd_json_deep_copy(value));
            continue;
        }
        list = json_array();
        put(b, networking, camel, list);
        for (size_t i = 0; !b->failed && i < json_array_size(value); i++)
            if (json_array_append_new(list, network_of(b, json_array_get(value, i))) != 0)
                b->failed = true;
    }
    if (json_object_get(networking, "networkType") == NULL)
        put_cstr(b, networking, "networkType", "OVNKubernetes");
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (json_object_get(networking, defaults[i].key) == NULL)
            put(b, networking, defaults[i].key, json_pack("[{ss}]", "cidr", defaults[i].cidr));
}

static void put_etcd(struct build *b, json_t *spec, const json_t *given)
{
    json_t *etcd = put_object(b, spec, "etcd"), *storage, *volume;

    put_cstr(b, etcd, "managementType", "Managed");
    storage = put_object(b, put_object(b, etcd, "managed"), "storage");
    put_cstr(b, storage, "type", "PersistentVolume");
    volume = put_object(b, storage, "persistentVolume");
    put_cstr(b, volume, "size", "8Gi");
    copy_as(b, volume, "size", given, "size");
    copy_as(b, volume, "storageClassName", given, "storage_class");
}

static void put_dns(struct build *b, json_t *spec, const struct hfd_hs_source *s)
{
    const json_t *given = json_object_get(s->cluster_spec, "dns");
    json_t *dns = put_object(b, spec, "dns");

    if (hfd_hs_is_passthrough(s->cluster_spec))
        put_cstr(b, dns, "baseDomain", "");
    else
        put_text(b, dns, "baseDomain", s->defaults->base_domain);
    if (json_string_length(json_object_get(given, "base_domain")) > 0)
        copy_as(b, dns, "baseDomain", given, "base_domain");
    copy_as(b, dns, "baseDomainPrefix", given, "base_domain_prefix");
    copy_as(b, dns, "publicZoneID", given, "public_zone_id");
    copy_as(b, dns, "privateZoneID", given, "private_zone_id");
}

/* The services of a platform, where the order does not say them. */
static json_t *default_services(struct build *b, const char *type, hfd_slice address)
{
    static const char *const names[] = {"APIServer", "Ignition", "Konnectivity", "OAuthServer"};
    const bool by_node = strcmp(type, "None") == 0 || strcmp(type, "Agent") == 0;
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *one;

        if (by_node)
            one = json_pack("{s:s,s:{s:s,s:{s:s%}}}", "service", names[i],
                            "servicePublishingStrategy", "type", "NodePort", "nodePort", "address",
                            address.p, address.len);
        else if (i == 0)
            one = json_pack("{s:s,s:{s:s}}", "service", names[i], "servicePublishingStrategy",
                            "type", "LoadBalancer");
        else
            one = json_pack("{s:s,s:{s:s,s:{}}}", "service", names[i], "servicePublishingStrategy",
                            "type", "Route", "route");
        if (one == NULL || json_array_append_new(list, one) != 0)
            b->failed = true;
    }
    return list;
}

static void put_services(struct build *b, json_t *spec, const struct hfd_hs_source *s)
{
    const json_t *given = json_object_get(s->cluster_spec, "services");

    put(b, spec, "services",
        given != NULL ? hfd_json_deep_copy(given)
                      : default_services(b, hfd_hs_platform_type(s->cluster_spec),
                                         s->defaults->nodeport_address));
}

/* The type, and the block of that type as it is given. */
static void put_platform(struct build *b, json_t *spec, const char *type, const json_t *given)
{
    json_t *platform = put_object(b, spec, "platform");
    const char *block = hfd_hs_platform_block(type);

    put_cstr(b, platform, "type", type);
    if (block != NULL)
        copy_as(b, platform, block, given, block);
}

static void put_paused(struct build *b, json_t *spec, const json_t *given)
{
    const json_t *v = json_object_get(given, "paused_until");

    if (json_is_boolean(v))
        put_cstr(b, spec, "pausedUntil", json_is_true(v) ? "true" : "false");
    else
        copy_as(b, spec, "pausedUntil", given, "paused_until");
}

static void put_policies(struct build *b, json_t *spec, const json_t *given)
{
    /* Left out of a later apply, the first would fall back to a default, which is refused. */
    put_cstr(b, spec, "controllerAvailabilityPolicy", "HighlyAvailable");
    copy_as(b, spec, "controllerAvailabilityPolicy", given, "availability");
    put_cstr(b, spec, "infrastructureAvailabilityPolicy", "SingleReplica");
    copy_as(b, spec, "infrastructureAvailabilityPolicy", given, "infrastructure_availability");
    copy_as(b, spec, "fips", given, "fips");
    copy_as(b, spec, "infraID", given, "infra_id");
    copy_as(b, spec, "issuerURL", given, "issuer_url");
    put_paused(b, spec, given);
}

hfd_rc hfd_hs_hosted_cluster_manifest(const struct hfd_hs_source *s, struct hfd_arena *mem,
                                      hfd_slice *out, struct hfd_err *err)
{
    const json_t *given = s->cluster_spec;
    const json_t *patch = json_object_get(json_object_get(given, "raw"), "hosted_cluster");
    struct build b = {false};
    json_t *doc = begin(&b, &hfd_hs_hosted_clusters, s->cluster_name, s);
    json_t *spec = put_object(&b, doc, "spec");
    const hfd_slice pull = hfd_hs_pull_secret_name(s->cluster_name, mem),
                    ssh = hfd_hs_ssh_key_name(s->cluster_name, mem);

    b.failed = b.failed || pull.p == NULL || ssh.p == NULL;
    put_release(&b, spec, s);
    put_text(&b, put_object(&b, spec, "pullSecret"), "name", pull);
    if (json_string_length(json_object_get(s->secrets, "ssh_key")) > 0)
        put_text(&b, put_object(&b, spec, "sshKey"), "name", ssh);
    put_dns(&b, spec, s);
    put_networking(&b, spec, json_object_get(given, "networking"));
    put_etcd(&b, spec, json_object_get(given, "etcd"));
    put_policies(&b, spec, given);
    put_platform(&b, spec, hfd_hs_platform_type(given), json_object_get(given, "platform"));
    put_services(&b, spec, s);
    if (patch != NULL && !b.failed)
        merge(&b, doc, patch);
    return finish(&b, doc, mem, out, err);
}

/* ---- nodepools ---- */

static void put_size(struct build *b, json_t *spec, const json_t *given)
{
    const json_t *scaling = json_object_get(given, "auto_scaling");
    json_t *out;

    if (scaling == NULL) {
        copy_as(b, spec, "replicas", given, "replicas");
        return;
    }
    out = put_object(b, spec, "autoScaling");
    copy_as(b, out, "min", scaling, "min");
    copy_as(b, out, "max", scaling, "max");
}

static void put_management(struct build *b, json_t *spec, const json_t *given, const char *type)
{
    const bool in_place = strcmp(type, "None") == 0 || strcmp(type, "Agent") == 0;
    json_t *management = put_object(b, spec, "management");

    put_cstr(b, management, "upgradeType", in_place ? "InPlace" : "Replace");
    copy_as(b, management, "upgradeType", json_object_get(given, "management"), "upgrade_type");
    put(b, management, "autoRepair",
        json_boolean(json_is_true(json_object_get(given, "auto_repair"))));
}

hfd_rc hfd_hs_node_pool_manifest(const struct hfd_hs_source *s, struct hfd_arena *mem,
                                 hfd_slice *out, struct hfd_err *err)
{
    const json_t *given = s->nodepool_spec;
    const json_t *patch = json_object_get(json_object_get(given, "raw"), "node_pool");
    const json_t *platform = json_object_get(given, "platform");
    const char *own = json_string_value(json_object_get(platform, "type"));
    const char *type = own != NULL ? own : hfd_hs_platform_type(s->cluster_spec);
    const hfd_slice name = hfd_hs_node_pool_name(s->cluster_name, s->nodepool_name, mem);
    struct build b = {name.p == NULL};
    json_t *doc = begin(&b, &hfd_hs_node_pools, name, s);
    json_t *spec = put_object(&b, doc, "spec");

    put_text(&b, spec, "clusterName", s->cluster_name);
    put_size(&b, spec, given);
    put_release(&b, spec, s);
    put_management(&b, spec, given, type);
    put_platform(&b, spec, type, platform);
    if (platform == NULL && strcmp(type, "Agent") == 0)
        put(&b, json_object_get(spec, "platform"), "agent", json_object());
    copy_as(&b, spec, "arch", given, "arch");
    copy_as(&b, spec, "nodeLabels", given, "labels");
    copy_as(&b, spec, "taints", given, "taints");
    if (patch != NULL && !b.failed)
        merge(&b, doc, patch);
    return finish(&b, doc, mem, out, err);
}

/* ---- secrets and the namespace ---- */

hfd_rc hfd_hs_namespace_manifest(hfd_slice name, struct hfd_arena *mem, hfd_slice *out,
                                 struct hfd_err *err)
{
    struct build b = {false};
    json_t *doc =
        json_pack("{s:s,s:s,s:{s:s%,s:{s:s}}}", "apiVersion", "v1", "kind", "Namespace", "metadata",
                  "name", name.p, name.len, "labels", HFD_HS_LABEL_MANAGER, HFD_HS_ADAPTER);

    b.failed = doc == NULL;
    return finish(&b, doc, mem, out, err);
}

/* HyperShift's own label: it may be removed with its cluster. */
static json_t *begin_secret(struct build *b, hfd_slice name, const struct hfd_hs_source *s)
{
    json_t *doc = begin(b, &hfd_hs_secrets, name, s);
    json_t *labels = json_object_get(json_object_get(doc, "metadata"), "labels");

    if (labels != NULL)
        put_cstr(b, labels, "hypershift.openshift.io/safe-to-delete-with-cluster", "true");
    return doc;
}

/* The text of the order's pull secret, or that of the settings. Empty = none. */
static hfd_rc pull_secret_text(const struct hfd_hs_source *s, struct hfd_arena *mem, hfd_slice *out)
{
    const json_t *v = json_object_get(s->secrets, "pull_secret");

    *out = s->defaults->pull_secret;
    if (json_is_string(v))
        *out = (hfd_slice){json_string_value(v), json_string_length(v)};
    else if (json_is_object(v))
        *out = hfd_json_dump_arena(mem, v);
    return out->p != NULL || !json_is_object(v) ? HFD_OK : HFD_NOMEM;
}

hfd_rc hfd_hs_pull_secret_manifest(const struct hfd_hs_source *s, struct hfd_arena *mem,
                                   hfd_slice *out, struct hfd_err *err)
{
    const hfd_slice name = hfd_hs_pull_secret_name(s->cluster_name, mem);
    struct build b = {name.p == NULL};
    hfd_slice secret;
    json_t *doc;

    *out = HFD_SLICE("");
    if (pull_secret_text(s, mem, &secret) != HFD_OK)
        return hfd_fail_nomem(err, "build a manifest");
    if (secret.len == 0)
        return HFD_OK;
    doc = begin_secret(&b, name, s);
    put_cstr(&b, doc, "type", "kubernetes.io/dockerconfigjson");
    put_text(&b, put_object(&b, doc, "stringData"), ".dockerconfigjson", secret);
    return finish(&b, doc, mem, out, err);
}

hfd_rc hfd_hs_ssh_key_manifest(const struct hfd_hs_source *s, struct hfd_arena *mem, hfd_slice *out,
                               struct hfd_err *err)
{
    const json_t *key = json_object_get(s->secrets, "ssh_key");
    const hfd_slice name = hfd_hs_ssh_key_name(s->cluster_name, mem);
    struct build b = {name.p == NULL};
    json_t *doc;

    *out = HFD_SLICE("");
    if (json_string_length(key) == 0)
        return HFD_OK;
    doc = begin_secret(&b, name, s);
    put_cstr(&b, doc, "type", "Opaque");
    copy_as(&b, put_object(&b, doc, "stringData"), "id_rsa.pub", s->secrets, "ssh_key");
    return finish(&b, doc, mem, out, err);
}
