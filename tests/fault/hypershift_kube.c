/* See hypershift_kube.h. */
#include "tests/fault/hypershift_kube.h"

#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/base/check.h"

#define FINALIZER "hypershift.openshift.io/finalizer"
#define NAME_BYTES 128

struct hfd_kube {
    int unused;
};

struct hfd_kube_watch {
    struct hfd_kube_watch_config config;
    bool open;
    size_t at; /* of the next event */
};

struct kube_sim kube_sim;
static struct hfd_kube the_client;

static unsigned below(unsigned bound)
{
    return (unsigned)test_rng_below(kube_sim.plan, bound);
}

/* ---- objects ---- */

static json_t *metadata_of(const json_t *doc)
{
    return json_object_get(doc, "metadata");
}

static const char *text_of(const json_t *obj, const char *key)
{
    const char *v = json_string_value(json_object_get(obj, key));

    return v != NULL ? v : "";
}

static const char *name_of(const json_t *entry)
{
    return text_of(metadata_of(json_object_get(entry, "doc")), "name");
}

static bool is_ours(const json_t *doc)
{
    return hfd_slice_is(hfd_hs_label(doc, HFD_HS_LABEL_MANAGER), HFD_HS_ADAPTER);
}

json_t *kube_sim_find(const char *plural, const char *name)
{
    json_t *entry;
    size_t i;

    json_array_foreach (kube_sim.objects, i, entry)
        if (strcmp(text_of(entry, "plural"), plural) == 0 && strcmp(name_of(entry), name) == 0)
            return entry;
    return NULL;
}

size_t kube_sim_ours(const char *plural, const char *guresid)
{
    size_t i, count = 0;
    json_t *entry;

    json_array_foreach (kube_sim.objects, i, entry) {
        const json_t *doc = json_object_get(entry, "doc");

        count +=
            strcmp(text_of(entry, "plural"), plural) == 0 && is_ours(doc) &&
            (guresid == NULL || hfd_slice_is(hfd_hs_label(doc, HFD_HS_LABEL_GURESID), guresid));
    }
    return count;
}

static void note(const json_t *entry, bool gone)
{
    json_t *doc = json_object_get(entry, "doc");
    char version[32];

    (void)snprintf(version, sizeof(version), "%lld", (long long)++kube_sim.version);
    (void)json_object_set_new(metadata_of(doc), "resourceVersion", json_string(version));
    (void)json_array_append_new(kube_sim.events,
                                json_pack("{s:s,s:o,s:b}", "plural", text_of(entry, "plural"),
                                          "doc", json_deep_copy(doc), "gone", gone));
}

static void remove_entry(const json_t *entry)
{
    json_t *other;
    size_t i;

    note(entry, true);
    json_array_foreach (kube_sim.objects, i, other)
        if (other == entry) {
            (void)json_array_remove(kube_sim.objects, i);
            return;
        }
}

static void raise_generation(json_t *doc)
{
    const json_int_t g = json_integer_value(json_object_get(metadata_of(doc), "generation"));

    (void)json_object_set_new(metadata_of(doc), "generation", json_integer(g + 1));
}

static json_t *add(const char *plural, json_t *doc)
{
    json_t *entry;
    char uid[32];

    (void)snprintf(uid, sizeof(uid), "uid-%lld", (long long)++kube_sim.uids);
    (void)json_object_set_new(metadata_of(doc), "uid", json_string(uid));
    (void)json_object_set_new(metadata_of(doc), "generation", json_integer(1));
    entry = json_pack("{s:s,s:o,s:i}", "plural", plural, "doc", doc, "stage", 0);
    (void)json_array_append_new(kube_sim.objects, entry);
    note(entry, false);
    return entry;
}

void kube_sim_stranger(const char *name)
{
    (void)add("hostedclusters", json_pack("{s:{s:s},s:{}}", "metadata", "name", name, "spec"));
}

void kube_sim_delete(json_t *entry)
{
    json_t *doc = json_object_get(entry, "doc"), *meta = metadata_of(doc);

    if (json_array_size(json_object_get(meta, "finalizers")) == 0) {
        remove_entry(entry);
    } else if (json_object_get(meta, "deletionTimestamp") == NULL) {
        (void)json_object_set_new(meta, "deletionTimestamp", json_string("2025-01-01T00:00:00Z"));
        raise_generation(doc);
        note(entry, false);
    }
}

/* ---- HyperShift ---- */

static void add_condition(const json_t *doc, json_t *list, const char *type, bool on)
{
    (void)json_array_append_new(
        list, json_pack("{s:s,s:s,s:s,s:s,s:O}", "type", type, "status", on ? "True" : "False",
                        "reason", on ? "AsExpected" : "Waiting", "message", "",
                        "observedGeneration", json_object_get(metadata_of(doc), "generation")));
}

static void add_secret(const char *cluster, const char *suffix, const char *key)
{
    char name[NAME_BYTES];

    (void)snprintf(name, sizeof(name), "%s-%s", cluster, suffix);
    if (kube_sim_find("secrets", name) == NULL)
        (void)add("secrets", json_pack("{s:{s:s},s:{s:s}}", "metadata", "name", name, "data", key,
                                       "Y29uZmln"));
}

static json_t *cluster_status(const json_t *doc, int stage)
{
    static const char *const types[] = {"ValidConfiguration", "InfrastructureReady",
                                        "KubeAPIServerAvailable", "Available"};
    const json_t *image =
        json_object_get(json_object_get(json_object_get(doc, "spec"), "release"), "image");
    const char *name = text_of(metadata_of(doc), "name");
    json_t *list = json_array(), *status;

    for (int i = 0; i + 1 < KUBE_STAGES; i++)
        add_condition(doc, list, types[i], stage > i + 1 || stage == KUBE_STAGES);
    add_condition(doc, list, "ClusterVersionSucceeding", stage == KUBE_STAGES);
    add_condition(doc, list, "Progressing", stage < KUBE_STAGES);
    status = json_pack("{s:o,s:{s:[{s:s,s:O,s:s}]}}", "conditions", list, "version", "history",
                       "state", stage == KUBE_STAGES ? "Completed" : "Partial", "image", image,
                       "version", "4.20.0");
    if (stage < KUBE_STAGES - 1)
        return status;
    add_secret(name, "admin-kubeconfig", "kubeconfig");
    (void)json_object_set_new(status, "kubeconfig",
                              json_pack("{s:s+}", "name", name, "-admin-kubeconfig"));
    (void)json_object_set_new(status, "controlPlaneEndpoint",
                              json_pack("{s:s,s:i}", "host", "api.example.com", "port", 6443));
    return status;
}

static json_t *pool_status(const json_t *doc, bool on)
{
    json_t *replicas = json_object_get(json_object_get(doc, "spec"), "replicas");
    json_t *list = json_array();

    add_condition(doc, list, "ValidReleaseImage", true);
    add_condition(doc, list, "AllMachinesReady", on);
    add_condition(doc, list, "AllNodesHealthy", on);
    add_condition(doc, list, "Ready", on);
    return json_pack("{s:o,s:O}", "conditions", list, "replicas", replicas);
}

static void write_status(json_t *entry, json_t *status)
{
    json_t *doc = json_object_get(entry, "doc");

    if (!json_equal(json_object_get(doc, "status"), status)) {
        (void)json_object_set(doc, "status", status);
        note(entry, false);
    }
    json_decref(status);
}

/* Has the pools of a cluster deleted. @return how many there are */
static size_t delete_pools(const char *cluster)
{
    size_t count = 0;

    for (size_t i = json_array_size(kube_sim.objects); i-- > 0;) {
        json_t *entry = json_array_get(kube_sim.objects, i);
        const json_t *spec = json_object_get(json_object_get(entry, "doc"), "spec");

        if (strcmp(text_of(entry, "plural"), "nodepools") == 0 &&
            strcmp(text_of(spec, "clusterName"), cluster) == 0) {
            count++;
            kube_sim_delete(entry);
        }
    }
    return count;
}

static void let_go(json_t *entry)
{
    if (strcmp(text_of(entry, "plural"), "hostedclusters") == 0 && delete_pools(name_of(entry)) > 0)
        return;
    (void)json_object_del(metadata_of(json_object_get(entry, "doc")), "finalizers");
    remove_entry(entry);
}

static void operate_cluster(json_t *entry, bool back)
{
    json_t *doc = json_object_get(entry, "doc"), *spec = json_object_get(doc, "spec");
    int stage = (int)json_integer_value(json_object_get(entry, "stage"));

    if (stage == 2 && json_object_get(spec, "clusterID") == NULL) {
        (void)json_object_set_new(spec, "clusterID", json_string("an-id"));
        raise_generation(doc); /* without us */
        note(entry, false);
        return;
    }
    stage += back ? -1 : 1;
    if (stage < 1 || stage > KUBE_STAGES)
        stage = stage < 1 ? 1 : KUBE_STAGES;
    (void)json_object_set_new(entry, "stage", json_integer(stage));
    write_status(entry, cluster_status(doc, stage));
}

void kube_sim_operate(json_t *entry, bool back)
{
    json_t *doc = json_object_get(entry, "doc"), *meta = metadata_of(doc);
    const bool cluster = strcmp(text_of(entry, "plural"), "hostedclusters") == 0;
    const json_t *owner;

    if (!is_ours(doc) || (!cluster && strcmp(text_of(entry, "plural"), "nodepools") != 0))
        return;
    if (json_object_get(meta, "deletionTimestamp") != NULL) {
        let_go(entry);
        return;
    }
    if (json_object_get(meta, "finalizers") == NULL) {
        (void)json_object_set_new(meta, "finalizers", json_pack("[s]", FINALIZER));
        note(entry, false);
        return;
    }
    if (cluster) {
        operate_cluster(entry, back);
        return;
    }
    owner = kube_sim_find("hostedclusters", text_of(json_object_get(doc, "spec"), "clusterName"));
    if (owner != NULL)
        write_status(entry, pool_status(doc, !back && json_integer_value(json_object_get(
                                                          owner, "stage")) == KUBE_STAGES));
}

/* ---- watches ---- */

static struct hfd_kube_watch *watches[4];

static void deliver(void)
{
    for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++) {
        struct hfd_kube_watch *w = watches[i];

        while (w != NULL && w->open && w->at < json_array_size(kube_sim.events)) {
            const json_t *event = json_array_get(kube_sim.events, w->at++);

            if (strcmp(text_of(event, "plural"), w->config.objects.type->plural) == 0 &&
                is_ours(json_object_get(event, "doc")))
                w->config.on_changed(w->config.ctx, json_object_get(event, "doc"),
                                     json_is_true(json_object_get(event, "gone")));
        }
    }
}

hfd_rc hfd_kube_watch_new(struct hfd_kube *kube, const struct hfd_kube_watch_config *config,
                          struct hfd_kube_watch **out, struct hfd_err *err)
{
    struct hfd_kube_watch *w = calloc(1, sizeof(*w));
    size_t at = 0;

    (void)kube;
    (void)err;
    HFD_ASSERT(w != NULL);
    while (watches[at] != NULL)
        at++;
    w->config = *config;
    watches[at] = *out = w;
    return HFD_OK;
}

void hfd_kube_watch_free(struct hfd_kube_watch *watch)
{
    for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++)
        if (watches[i] == watch)
            watches[i] = NULL;
    free(watch);
}

hfd_rc hfd_kube_watch_step(struct hfd_kube_watch *w, struct hfd_kube_answer *answer,
                           struct hfd_err *err)
{
    json_t *entry;
    size_t i;

    *answer = (struct hfd_kube_answer){0};
    if (kube_sim.dead)
        return hfd_fail(err, HFD_BUSY, "stopped");
    if (w->open)
        return HFD_OK;
    if (below(512) < kube_sim.faults)
        return hfd_fail(err, HFD_TIMEOUT, "no stream");
    w->open = true;
    w->at = json_array_size(kube_sim.events);
    json_array_foreach (kube_sim.objects, i, entry)
        if (strcmp(text_of(entry, "plural"), w->config.objects.type->plural) == 0 &&
            is_ours(json_object_get(entry, "doc")))
            w->config.on_changed(w->config.ctx, json_object_get(entry, "doc"), false);
    return HFD_OK;
}

bool hfd_kube_watch_is_open(const struct hfd_kube_watch *watch)
{
    return watch->open;
}

bool hfd_kube_watch_is_sound(const struct hfd_kube_watch *watch)
{
    return watch->open;
}

void hfd_kube_run(struct hfd_kube *kube, int64_t wait_us)
{
    (void)kube;
    (void)wait_us;
    if (kube_sim.dead)
        return;
    deliver();
    for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++)
        if (watches[i] != NULL && below(2048) < kube_sim.faults)
            watches[i]->open = false;
}

/* ---- answers ---- */

void hfd_kube_answer_fini(struct hfd_kube_answer *answer)
{
    json_decref(answer->doc);
    *answer = (struct hfd_kube_answer){0};
}

static void answer_status(struct hfd_kube_answer *out, int status, const char *reason,
                          json_t *details)
{
    out->status = status;
    out->doc =
        json_pack("{s:s,s:s,s:s,s:s,s:o}", "kind", "Status", "status", "Failure", "reason", reason,
                  "message", "simulated", "details", details != NULL ? details : json_object());
}

static void answer_missing(struct hfd_kube_answer *out, const char *plural)
{
    answer_status(out, 404, "NotFound", json_pack("{s:s}", "kind", plural));
}

/* The end of a request. */
enum way {
    WAY_GOOD,
    WAY_NOT_SENT,
    WAY_ANSWER_LOST,
    WAY_REFUSED,
    WAY_DIES_BEFORE,
    WAY_DIES_AFTER
};

static enum way choose(void)
{
    static const enum way bad[] = {WAY_NOT_SENT, WAY_ANSWER_LOST, WAY_REFUSED, WAY_REFUSED};

    if (kube_sim.die_in > 0 && --kube_sim.die_in == 0)
        return below(2) != 0 ? WAY_DIES_BEFORE : WAY_DIES_AFTER;
    return below(1024) < kube_sim.faults ? bad[below(4)] : WAY_GOOD;
}

static void refuse(struct hfd_kube_answer *out)
{
    static const struct {
        int status;
        const char *reason;
    } of[] = {{429, "TooManyRequests"}, {503, "Unavailable"}, {401, "Unauthorized"},
              {403, "Forbidden"},       {409, "Conflict"},    {500, "InternalError"}};
    const unsigned i = below(sizeof(of) / sizeof(of[0]));

    kube_sim.refused++;
    answer_status(out, of[i].status, of[i].reason, NULL);
}

struct request {
    void (*run)(const struct request *r, struct hfd_kube_answer *out);
    const char *method;
    const struct hfd_kube_object *object;
    const struct hfd_kube_apply *apply;
    const struct hfd_kube_list *list;
    hfd_slice uid;
    char name[NAME_BYTES];
};

static hfd_rc send(struct request *r, struct hfd_kube_answer *out, struct hfd_err *err)
{
    const enum way way = kube_sim.dead ? WAY_DIES_BEFORE : choose();
    char line[2 * NAME_BYTES];
    int n;

    *out = (struct hfd_kube_answer){0};
    (void)snprintf(r->name, sizeof(r->name), "%.*s", HFD_SLICE_FMT(r->object->name));
    n = snprintf(line, sizeof(line), "%s %s/%s %d", r->method, r->object->type->plural, r->name,
                 (int)way);
    for (int i = 0; i < n; i++)
        kube_sim.trace = (kube_sim.trace ^ (unsigned char)line[i]) * UINT64_C(1099511628211);
    kube_sim.requests++;
    if (below(4) == 0)
        deliver(); /* events come beside calls */
    if (way == WAY_DIES_BEFORE || way == WAY_DIES_AFTER) {
        if (way == WAY_DIES_AFTER)
            r->run(r, out);
        kube_sim.deaths += !kube_sim.dead;
        kube_sim.dead = true;
        hfd_kube_answer_fini(out);
        return hfd_fail(err, HFD_BUSY, "the program dies");
    }
    if (way == WAY_REFUSED)
        refuse(out);
    if (way == WAY_GOOD || way == WAY_ANSWER_LOST)
        r->run(r, out);
    kube_sim.beside(kube_sim.ctx);
    if (way != WAY_NOT_SENT && way != WAY_ANSWER_LOST)
        return HFD_OK;
    kube_sim.lost++;
    hfd_kube_answer_fini(out);
    return hfd_fail(err, HFD_TIMEOUT, "no answer");
}

/* ---- requests ---- */

static void run_get(const struct request *r, struct hfd_kube_answer *out)
{
    const json_t *entry = kube_sim_find(r->object->type->plural, r->name);

    if (entry == NULL) {
        answer_missing(out, r->object->type->plural);
        return;
    }
    out->status = 200;
    out->doc = json_deep_copy(json_object_get(entry, "doc"));
}

hfd_rc hfd_kube_get(struct hfd_kube *kube, const struct hfd_kube_object *object,
                    struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct request r = {.run = run_get, .method = "GET", .object = object};

    (void)kube;
    return send(&r, out, err);
}

/* The object as it is after an apply: members of others stay. */
static json_t *merged(const json_t *was, const json_t *body)
{
    static const char *const kept[] = {"uid", "generation", "resourceVersion", "finalizers",
                                       "deletionTimestamp"};
    json_t *doc = json_deep_copy(body), *id;

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        json_t *v = json_object_get(metadata_of(was), kept[i]);

        if (v != NULL)
            (void)json_object_set(metadata_of(doc), kept[i], v);
    }
    id = json_object_get(json_object_get(was, "spec"), "clusterID");
    if (id != NULL)
        (void)json_object_set(json_object_get(doc, "spec"), "clusterID", id);
    if (json_object_get(was, "status") != NULL)
        (void)json_object_set(doc, "status", json_object_get(was, "status"));
    return doc;
}

static void check_apply(const struct request *r, const json_t *was, const json_t *body)
{
    const json_t *labels = json_object_get(metadata_of(body), "labels");
    const char *guresid = text_of(labels, HFD_HS_LABEL_GURESID);

    if (was != NULL && !r->object->type->cluster_scoped && !is_ours(was))
        kube_sim.fail(kube_sim.ctx, "K2", "applied to a stranger's object", r->name);
    if (strcmp(r->object->type->plural, "hostedclusters") == 0 && was == NULL &&
        kube_sim_ours("hostedclusters", guresid) > 0)
        kube_sim.fail(kube_sim.ctx, "K1", "a second HostedCluster for one GUResID", r->name);
    if (!r->object->type->cluster_scoped && !kube_sim.wants(kube_sim.ctx, labels, body))
        kube_sim.fail(kube_sim.ctx, "K3", "applied what is not wanted", r->name);
}

static void put_applied(const struct request *r, json_t *entry, const json_t *body)
{
    json_t *was = json_object_get(entry, "doc"), *doc;

    if (entry == NULL) {
        (void)add(r->object->type->plural, json_deep_copy(body));
        return;
    }
    doc = merged(was, body);
    if (!json_equal(json_object_get(doc, "spec"), json_object_get(was, "spec")))
        raise_generation(doc);
    if (json_equal(doc, was)) {
        json_decref(doc);
        return;
    }
    (void)json_object_set_new(entry, "doc", doc);
    note(entry, false);
}

static void run_apply(const struct request *r, struct hfd_kube_answer *out)
{
    json_t *entry = kube_sim_find(r->object->type->plural, r->name);
    json_t *body = json_loadb(r->apply->body.p, r->apply->body.len, 0, NULL);
    const json_t *image =
        json_object_get(json_object_get(json_object_get(body, "spec"), "release"), "image");

    HFD_ASSERT(body != NULL);
    if (!r->object->type->cluster_scoped && kube_sim_find("namespaces", "clusters") == NULL) {
        answer_missing(out, "namespaces");
    } else if (image != NULL && strcmp(json_string_value(image), "bad") == 0) {
        answer_status(out, 422, "Invalid", NULL);
    } else if (r->apply->dry_run) {
        out->status = 200;
        out->doc = json_incref(body);
    } else {
        check_apply(r, json_object_get(entry, "doc"), body);
        put_applied(r, entry, body);
        run_get(r, out);
        out->status = entry == NULL ? 201 : 200;
    }
    json_decref(body);
}

hfd_rc hfd_kube_apply(struct hfd_kube *kube, const struct hfd_kube_apply *apply,
                      struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct request r = {.run = run_apply,
                        .method = apply->dry_run ? "TRY" : "PATCH",
                        .object = &apply->object,
                        .apply = apply};

    (void)kube;
    return send(&r, out, err);
}

static bool has_pools(const char *cluster)
{
    json_t *entry;
    size_t i;

    json_array_foreach (kube_sim.objects, i, entry) {
        const json_t *doc = json_object_get(entry, "doc");

        if (strcmp(text_of(entry, "plural"), "nodepools") == 0 && is_ours(doc) &&
            strcmp(text_of(json_object_get(doc, "spec"), "clusterName"), cluster) == 0)
            return true;
    }
    return false;
}

static void run_delete(const struct request *r, struct hfd_kube_answer *out)
{
    json_t *entry = kube_sim_find(r->object->type->plural, r->name);
    const json_t *doc = json_object_get(entry, "doc");

    if (entry == NULL) {
        answer_missing(out, r->object->type->plural);
        return;
    }
    if (!hfd_slice_is(r->uid, text_of(metadata_of(doc), "uid"))) {
        answer_status(out, 409, "Conflict", NULL);
        return;
    }
    if (!is_ours(doc))
        kube_sim.fail(kube_sim.ctx, "K2", "deleted a stranger's object", r->name);
    if (strcmp(text_of(entry, "plural"), "hostedclusters") == 0 && has_pools(r->name))
        kube_sim.fail(kube_sim.ctx, "K4", "deleted before its NodePools", r->name);
    if (!kube_sim.wants(kube_sim.ctx, json_object_get(metadata_of(doc), "labels"), NULL))
        kube_sim.fail(kube_sim.ctx, "K3", "deleted what is wanted", r->name);
    kube_sim_delete(entry);
    out->status = 200;
    out->doc = json_pack("{s:s,s:s}", "kind", "Status", "status", "Success");
    out->asked = HFD_KUBE_REMOVAL;
}

hfd_rc hfd_kube_delete(struct hfd_kube *kube, const struct hfd_kube_object *object, hfd_slice uid,
                       struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct request r = {.run = run_delete, .method = "DELETE", .object = object, .uid = uid};

    (void)kube;
    return send(&r, out, err);
}

/* "a=b,c=d" */
static bool selects(const char *selector, const json_t *doc)
{
    const json_t *labels = json_object_get(metadata_of(doc), "labels");

    while (selector != NULL && *selector != '\0') {
        const size_t len = strcspn(selector, ",");
        const char *equals = memchr(selector, '=', len);
        char key[NAME_BYTES];

        HFD_ASSERT(equals != NULL);
        (void)snprintf(key, sizeof(key), "%.*s", (int)(equals - selector), selector);
        if (!hfd_slice_is((hfd_slice){equals + 1, len - (size_t)(equals + 1 - selector)},
                          text_of(labels, key)))
            return false;
        selector += len + (selector[len] == ',');
    }
    return true;
}

/* The items are those of the beginning: on_item may delete some. */
static void run_list(const struct request *r, struct hfd_kube_answer *out)
{
    json_t *items = json_array(), *entry;
    size_t i;

    out->status = 200;
    out->doc = json_pack("{s:o}", "items", items);
    out->asked = HFD_KUBE_OBJECTS;
    json_array_foreach (kube_sim.objects, i, entry)
        if (strcmp(text_of(entry, "plural"), r->object->type->plural) == 0 &&
            selects(r->list->selector, json_object_get(entry, "doc")))
            (void)json_array_append_new(items, json_deep_copy(json_object_get(entry, "doc")));
    for (i = 0; i < json_array_size(items); i++)
        if (!r->list->on_item(r->list->ctx, json_array_get(items, i)))
            return;
}

hfd_rc hfd_kube_list(struct hfd_kube *kube, const struct hfd_kube_list *list, char version[64],
                     struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct request r = {.run = run_list, .method = "LIST", .object = &list->objects, .list = list};

    (void)kube;
    HFD_ASSERT(version == NULL);
    return send(&r, out, err);
}

/* ---- the client ---- */

hfd_rc hfd_kube_open(const struct hfd_kube_config *config, struct hfd_kube **out,
                     struct hfd_err *err)
{
    (void)config;
    (void)err;
    *out = &the_client;
    return HFD_OK;
}

void hfd_kube_close(struct hfd_kube **kube)
{
    *kube = NULL;
}

void hfd_kube_wake(struct hfd_kube *kube, enum hfd_kube_wake why)
{
    (void)kube;
    (void)why;
}

void kube_sim_reconnect(void)
{
    kube_sim.dead = false;
    kube_sim.die_in = 0;
}

void kube_sim_clear(void)
{
    json_decref(kube_sim.objects);
    json_decref(kube_sim.events);
    kube_sim.objects = NULL;
    kube_sim.events = NULL;
}
