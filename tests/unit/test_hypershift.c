/* The pure parts of the HyperShift adapter: judgements, networks, ownership of names, manifests. */
#include <stdlib.h>

#include "driver/adapters/hypershift/manifest.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/report.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/adapters/hypershift/work.h"
#include "tests/lib/contains.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static json_t *json_of(const char *text)
{
    json_t *doc;

    assert_int_equal(hfd_json_parse(hfd_slice_of(text), &doc, NULL), HFD_OK);
    return doc;
}

/* ---- judgements ---- */

#define OBJECT(generation, spec, status, conditions)                                               \
    "{\"metadata\":{\"generation\":2,\"annotations\":{\"hyperfleet.io/generation\":\"" generation  \
    "\"}},\"spec\":{" spec "},\"status\":{" status "\"conditions\":[" conditions "]}}"
#define IS(type, status)                                                                           \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"observedGeneration\":2}"
#define OLD(type) "{\"type\":\"" type "\",\"status\":\"True\",\"observedGeneration\":1}"
#define WHY(type, reason)                                                                          \
    "{\"type\":\"" type "\",\"status\":\"False\",\"reason\":\"" reason "\",\"message\":\"words\"}"
#define KUBECONFIG "\"kubeconfig\":{\"name\":\"k\"},"
#define PLANE                                                                                      \
    IS("ValidConfiguration", "True")                                                               \
    "," IS("InfrastructureReady", "True") "," IS("KubeAPIServerAvailable",                         \
                                                 "True") "," IS("Available", "True")

#define PLANE_AND_NODES PLANE "," IS("ClusterVersionSucceeding", "True")
#define IMAGE_B "\"release\":{\"image\":\"b\"}"
#define VERSION(of, state, image)                                                                  \
    "\"" of "\":{\"history\":[{\"state\":\"" state "\",\"image\":\"" image "\"}]},"

struct row {
    const char *object; /* NULL = absent */
    bool serves, wants_nodes;
    int64_t grace_us;
    enum hfd_hs_stage stage;
    const char *gate;
    int progress;
    bool up;
};

static const struct row clusters[] = {
    {NULL, false, false, 0, HFD_HS_WAITS, "Applied", 0, false},
    {OBJECT("6", "", "", PLANE), false, false, 0, HFD_HS_WAITS, "Applied", 0, true},
    {OBJECT("7", "", "", ""), false, false, 0, HFD_HS_WAITS, "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", OLD("ValidConfiguration")), false, false, 0, HFD_HS_WAITS,
     "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", IS("ValidConfiguration", "True")), false, false, 0, HFD_HS_WAITS,
     "InfrastructureReady", 10, true},
    {OBJECT("7", "", "",
            IS("ValidConfiguration", "True") "," IS("InfrastructureReady",
                                                    "True") "," IS("EtcdAvailable", "False")),
     false, false, 0, HFD_HS_WAITS, "EtcdAvailable", 30, true},
    {OBJECT("7", "", "", PLANE), false, false, 0, HFD_HS_WAITS, "Kubeconfig", 85, true},
    {OBJECT("7", "", KUBECONFIG, PLANE), false, false, 0, HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", "", KUBECONFIG, PLANE), false, true, 0, HFD_HS_WAITS, "ClusterVersionSucceeding",
     85, true},
    {OBJECT("7", "", KUBECONFIG, PLANE "," IS("ClusterVersionSucceeding", "True")), false, true, 0,
     HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", "", KUBECONFIG, PLANE "," IS("Progressing", "True")), false, false, 0,
     HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", "", KUBECONFIG, PLANE "," IS("Progressing", "True")), true, false, 0, HFD_HS_WAITS,
     "Progressing", 85, true},
    {OBJECT("7", "\"release\":{\"image\":\"b\"}",
            KUBECONFIG "\"version\":{\"history\":[{\"state\":\"Completed\",\"image\":\"a\"}]},",
            PLANE),
     true, false, 0, HFD_HS_WAITS, "ClusterVersion", 85, true},
    {OBJECT("7", IMAGE_B, KUBECONFIG VERSION("version", "Partial", "b"), PLANE_AND_NODES), true,
     true, 0, HFD_HS_WAITS, "ClusterVersion", 95, true},
    {OBJECT("7", IMAGE_B, KUBECONFIG VERSION("version", "Partial", "b"), PLANE), true, false, 0,
     HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", IMAGE_B, KUBECONFIG VERSION("version", "Partial", "a"), PLANE), true, false, 0,
     HFD_HS_WAITS, "ClusterVersion", 85, true},
    {OBJECT("7", IMAGE_B, KUBECONFIG VERSION("version", "Partial", "b"),
            PLANE "," IS("Progressing", "True")),
     true, false, 0, HFD_HS_WAITS, "Progressing", 85, true},
    {OBJECT("7", IMAGE_B,
            KUBECONFIG VERSION("version", "Partial", "b")
                VERSION("controlPlaneVersion", "Partial", "b"),
            PLANE),
     true, false, 0, HFD_HS_WAITS, "ClusterVersion", 85, true},
    {OBJECT("7", IMAGE_B,
            KUBECONFIG VERSION("version", "Partial", "a")
                VERSION("controlPlaneVersion", "Completed", "b"),
            PLANE),
     true, false, 0, HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", "", KUBECONFIG, IS("Available", "False")), true, false, 0, HFD_HS_WAITS,
     "ValidConfiguration", 0, false},
    {OBJECT("7", "", "", WHY("ValidConfiguration", "PKI")), false, false, 60000000, HFD_HS_WAITS,
     "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ValidConfiguration", "InvalidConfiguration")), false, false, 0,
     HFD_HS_REFUSED, "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ValidReleaseImage", "InvalidImage")), false, false, 0, HFD_HS_REFUSED,
     "ValidReleaseImage", 0, true},
    {OBJECT("7", "", "", WHY("ValidReleaseImage", "SecretNotFound")), false, false, 1, HFD_HS_WAITS,
     "ValidReleaseImage", 0, true},
    {OBJECT("7", "", "", WHY("ReconciliationActive", "ReconciliationPaused")), true, false, 0,
     HFD_HS_PAUSED, NULL, 0, true},
};

#define MACHINES                                                                                   \
    IS("ValidReleaseImage", "True")                                                                \
    "," IS("AllMachinesReady", "True") "," IS("AllNodesHealthy", "True") "," IS("Ready", "True")
#define KV "\"platform\":{\"type\":\"KubeVirt\"},\"replicas\":2"
#define KV_ZERO "\"platform\":{\"type\":\"KubeVirt\"},\"replicas\":0"
#define AWS_ZERO "\"platform\":{\"type\":\"AWS\"},\"autoScaling\":{\"min\":0,\"max\":3}"
#define NONE "\"platform\":{\"type\":\"None\"},\"replicas\":2"

static const struct row pools[] = {
    {NULL, false, false, 0, HFD_HS_WAITS, "Applied", 0, false},
    {OBJECT("7", KV, "", ""), false, false, 0, HFD_HS_WAITS, "ValidReleaseImage", 0, true},
    {OBJECT("7", KV, "", IS("ValidReleaseImage", "True")), false, false, 0, HFD_HS_WAITS,
     "AllMachinesReady", 10, true},
    {OBJECT("7", KV, "", IS("ValidReleaseImage", "True") "," IS("ValidGeneratedPayload", "")),
     false, false, 0, HFD_HS_WAITS, "ValidGeneratedPayload", 10, true},
    {OBJECT("7", KV, "\"replicas\":1,", MACHINES), false, false, 0, HFD_HS_WAITS, "Replicas", 95,
     true},
    {OBJECT("7", KV, "\"replicas\":2,", MACHINES), false, false, 0, HFD_HS_REACHED, NULL, 100,
     true},
    {OBJECT("7", KV, "\"replicas\":2,", MACHINES "," IS("UpdatingConfig", "True")), false, false, 0,
     HFD_HS_WAITS, "UpdatingConfig", 95, true},
    {OBJECT("7", KV_ZERO, "",
            IS("ValidReleaseImage", "True") "," WHY("AllMachinesReady",
                                                    "AsExpected") "," IS("Ready", "True")),
     false, false, 0, HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", AWS_ZERO, "",
            IS("ValidReleaseImage", "True") "," WHY("AllMachinesReady", "NotFound") "," IS("Ready",
                                                                                           "True")),
     false, false, 0, HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", NONE, "", IS("ValidReleaseImage", "True")), false, false, 0, HFD_HS_WAITS,
     "Version", 10, true},
    {OBJECT("7", NONE, "\"version\":\"4\",",
            IS("ValidReleaseImage", "True") "," WHY("AllMachinesReady", "NotFound")),
     false, false, 0, HFD_HS_REACHED, NULL, 100, true},
    {OBJECT("7", KV, "", WHY("ValidMachineConfig", "Bad")), false, false, 0, HFD_HS_REFUSED,
     "ValidMachineConfig", 0, true},
};

static void judge_all(const struct row *rows, size_t count,
                      void (*judge)(const struct hfd_hs_facts *, struct hfd_hs_judgement *))
{
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        json_t *object = r->object != NULL ? json_of(r->object) : NULL;
        const struct hfd_hs_facts facts = {.object = object,
                                           .generation = 7,
                                           .serves = r->serves,
                                           .wants_nodes = r->wants_nodes,
                                           .now_us = 1,
                                           .grace_us = r->grace_us};
        struct hfd_hs_judgement out;

        judge(&facts, &out);
        if (out.stage != r->stage || out.progress != r->progress || out.up != r->up)
            fail_msg("row %zu: stage %d, gate %s, progress %d, up %d", i, (int)out.stage,
                     out.gate != NULL ? out.gate : "none", out.progress, out.up);
        if (r->gate == NULL)
            assert_null(out.gate);
        else
            assert_string_equal(out.gate, r->gate);
        json_decref(object);
    }
}

/* The gates of a cluster, one after the other; what refuses; what is paused. */
static void test_clusters(void **state)
{
    (void)state;
    judge_all(clusters, sizeof(clusters) / sizeof(clusters[0]), hfd_hs_judge_cluster);
}

/* The gates of a nodepool, with machines and without. */
static void test_pools(void **state)
{
    (void)state;
    judge_all(pools, sizeof(pools) / sizeof(pools[0]), hfd_hs_judge_pool);
}

/* ---- refusals ---- */

#define BAD(type, reason)                                                                          \
    "{\"type\":\"" type "\",\"status\":\"False\",\"reason\":\"" reason                             \
    "\",\"observedGeneration\":2}"
#define BAD_OLD(type) "{\"type\":\"" type "\",\"status\":\"False\",\"observedGeneration\":1}"
#define IMAGE_IS(status) IS("ValidReleaseImage", status)
#define IMAGE_BAD BAD("ValidReleaseImage", "ValidationFailed")
#define CREDENTIALS_BAD BAD("PlatformCredentialsFound", "PlatformCredentialsNotFound")

/* A look at a cluster, and what comes of it. `gate` is NULL where no condition refuses. */
struct look {
    int at_s;
    const char *conditions;
    int64_t generation;
    enum hfd_hs_stage stage;
    const char *gate;
    int until_s;
};
#define LOOKS_MAX 7

static const struct {
    const char *rule;
    struct look looks[LOOKS_MAX];
} refusals[] = {
    {"it has its time",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {159, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {160, IMAGE_BAD, 7, HFD_HS_REFUSED, "ValidReleaseImage", 0},
      {161, IMAGE_IS("True"), 7, HFD_HS_WAITS, NULL, 0}}},
    {"another reason goes on",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {130, BAD("ValidReleaseImage", "SecretNotFound"), 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {160, IMAGE_BAD, 7, HFD_HS_REFUSED, "ValidReleaseImage", 0}}},
    {"True ends it",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {150, IMAGE_IS("True"), 7, HFD_HS_WAITS, NULL, 0},
      {151, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 211},
      {210, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 211},
      {211, IMAGE_BAD, 7, HFD_HS_REFUSED, "ValidReleaseImage", 0}}},
    {"Unknown ends it",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {150, IMAGE_IS("Unknown"), 7, HFD_HS_WAITS, NULL, 0},
      {170, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 230}}},
    {"another generation begins anew",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {150, IMAGE_BAD, 8, HFD_HS_WAITS, "ValidReleaseImage", 210},
      {209, IMAGE_BAD, 8, HFD_HS_WAITS, "ValidReleaseImage", 210},
      {210, IMAGE_BAD, 8, HFD_HS_REFUSED, "ValidReleaseImage", 0}}},
    {"each has its own",
     {{100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {140, IMAGE_BAD "," CREDENTIALS_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {150, CREDENTIALS_BAD, 7, HFD_HS_WAITS, "PlatformCredentialsFound", 200},
      {190, IMAGE_BAD "," CREDENTIALS_BAD, 7, HFD_HS_WAITS, "PlatformCredentialsFound", 200},
      {200, IMAGE_BAD "," CREDENTIALS_BAD, 7, HFD_HS_REFUSED, "PlatformCredentialsFound", 0},
      {201, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 250}}},
    {"a condition of before decides nothing",
     {{100, BAD_OLD("ValidReleaseImage"), 7, HFD_HS_WAITS, NULL, 0},
      {120, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 180},
      {150, BAD_OLD("ValidReleaseImage"), 7, HFD_HS_WAITS, NULL, 0},
      {190, BAD_OLD("ValidReleaseImage"), 7, HFD_HS_WAITS, NULL, 0},
      {191, IMAGE_BAD, 7, HFD_HS_REFUSED, "ValidReleaseImage", 0}}},
    {"a time to come is now",
     {{1000, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 1060},
      {100, IMAGE_BAD, 7, HFD_HS_WAITS, "ValidReleaseImage", 160},
      {160, IMAGE_BAD, 7, HFD_HS_REFUSED, "ValidReleaseImage", 0}}},
};

/* Judges as a process does that begins at each look: what was kept is a text. */
static void judge_look(const struct look *l, hfd_slice *kept, struct hfd_arena *mem,
                       struct hfd_hs_judgement *out)
{
    json_t *object = json_of(
        hfd_arena_printf(mem, OBJECT("%d", "", "", "%s"), (int)l->generation, l->conditions).p);
    json_t *refused = kept->len > 0 ? json_of(kept->p) : NULL;
    const struct hfd_hs_facts facts = {.object = object,
                                       .generation = l->generation,
                                       .now_us = l->at_s * HFD_US_PER_S,
                                       .grace_us = 60 * HFD_US_PER_S,
                                       .refused = refused};

    hfd_hs_judge_cluster(&facts, out);
    json_decref(refused);
    refused = hfd_hs_refusals_json(out, l->generation);
    *kept = hfd_json_dump_arena(mem, refused);
    json_decref(refused);
    json_decref(object);
}

/* A condition that refuses is given time from when it was first seen, also over restarts. */
static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        hfd_slice kept = HFD_SLICE("");
        struct hfd_arena mem;

        hfd_arena_init(&mem, 1 << 20);
        for (size_t k = 0; k < LOOKS_MAX && refusals[i].looks[k].conditions != NULL; k++) {
            const struct look *l = &refusals[i].looks[k];
            const char *gate = l->gate != NULL ? l->gate : "ValidConfiguration"; /* the next one */
            struct hfd_hs_judgement out;

            judge_look(l, &kept, &mem, &out);
            if (out.stage != l->stage || strcmp(out.gate, gate) != 0 ||
                out.until_us != l->until_s * HFD_US_PER_S)
                fail_msg("%s, at %d: stage %d, gate %s, until %lld", refusals[i].rule, l->at_s,
                         (int)out.stage, out.gate, (long long)out.until_us);
        }
        hfd_arena_fini(&mem);
    }
}

/* All conditions that refuse are given time, whatever their reason; none has it without grace. */
static void test_refusal_types(void **state)
{
    static const struct {
        bool of_pool;
        const char *type;
    } rows[] = {
        {false, "SupportedHostedCluster"},
        {false, "ValidReleaseImage"},
        {false, "ValidHostedControlPlaneConfiguration"},
        {false, "PlatformCredentialsFound"},
        {false, "ValidConfiguration"},
        {true, "ValidReleaseImage"},
        {true, "ValidPlatformImage"},
        {true, "ValidMachineConfig"},
        {true, "ValidTuningConfig"},
        {true, "ValidMachineTemplate"},
        {true, "UpdateManagementEnabled"},
    };
    static const char *const reasons[] = {"ValidationFailed", "InvalidConfiguration",
                                          "SecretNotFound", ""};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++) {
            json_t *object =
                json_pack("{s:{s:i,s:{s:s}},s:{s:[{s:s,s:s,s:s}]}}", "metadata", "generation", 2,
                          "annotations", "hyperfleet.io/generation", "7", "status", "conditions",
                          "type", rows[i / 2].type, "status", "False", "reason", reasons[k]);
            const struct hfd_hs_facts facts = {
                .object = object, .generation = 7, .now_us = 5, .grace_us = (int64_t)(i % 2)};
            struct hfd_hs_judgement out;

            if (rows[i / 2].of_pool)
                hfd_hs_judge_pool(&facts, &out);
            else
                hfd_hs_judge_cluster(&facts, &out);
            assert_string_equal(out.gate, rows[i / 2].type);
            assert_int_equal(out.stage, i % 2 != 0 ? HFD_HS_WAITS : HFD_HS_REFUSED);
            assert_int_equal(out.until_us, i % 2 != 0 ? 6 : 0);
            assert_int_equal(out.refusals[0].since_us, 5);
            json_decref(object);
        }
    }
}

/* A nodepool wants nodes by the smallest number that it may have, as `raw` leaves it. */
static void test_wants_nodes(void **state)
{
    static const struct {
        const char *spec;
        bool wants;
    } rows[] = {
        {"{\"replicas\":0}", false},
        {"{\"replicas\":1}", true},
        {"{\"auto_scaling\":{\"min\":0,\"max\":3}}", false},
        {"{\"auto_scaling\":{\"min\":1,\"max\":3}}", true},
        {"{\"replicas\":2,\"raw\":{\"node_pool\":{\"spec\":{\"replicas\":0}}}}", false},
        {"{\"replicas\":0,\"raw\":{\"node_pool\":{\"spec\":{\"replicas\":null,"
         "\"autoScaling\":{\"min\":2,\"max\":3}}}}}",
         true},
        {"{\"replicas\":0,\"raw\":{\"node_pool\":{\"spec\":{\"arch\":\"arm64\"}}}}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *spec = json_of(rows[i].spec);

        assert_int_equal(hfd_hs_pool_wants_nodes(spec), rows[i].wants);
        json_decref(spec);
    }
}

/* The words about a deletion: since when, whose finalizers, and those of HyperShift. */
static void test_held(void **state)
{
    static const struct {
        const char *metadata, *conditions, *text;
    } rows[] = {
        {"\"finalizers\":[\"a/b\"]", "", ""},
        {"\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "", " since 2026-01-01T00:00:00Z"},
        {"\"deletionTimestamp\":\"T\",\"finalizers\":[\"a/b\",\"c\"]", "",
         " since T: finalizers a/b, c"},
        {"\"deletionTimestamp\":\"T\",\"finalizers\":[\"a/b\"]",
         WHY("CloudResourcesDestroyed", "x") "," WHY("HostedClusterDestroyed",
                                                     "x") "," WHY("Available", "x"),
         " since T: finalizers a/b; HostedClusterDestroyed: words; CloudResourcesDestroyed: words"},
        {"\"deletionTimestamp\":\"T\"", IS("HostedClusterDestroyed", "False"), " since T"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_arena mem;
        json_t *object;
        char text[200], little[8];

        hfd_arena_init(&mem, 1 << 16);
        object =
            json_of(hfd_arena_printf(&mem, "{\"metadata\":{%s},\"status\":{\"conditions\":[%s]}}",
                                     rows[i].metadata, rows[i].conditions)
                        .p);
        hfd_hs_held_text(object, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
        hfd_hs_held_text(object, little, sizeof(little));
        assert_int_equal(strlen(little), strlen(text) < 7 ? strlen(text) : 7);
        json_decref(object);
        hfd_arena_fini(&mem);
    }
}

/* ---- fields ---- */

/* A field of an object as the order has it: by its own name, or in `raw`. */
static void test_order_fields(void **state)
{
    static const struct {
        const char *spec;
        bool of_pool;
        const char *field, *as_ordered;
    } rows[] = {
        {"{}", false, "spec.controllerAvailabilityPolicy", "availability"},
        {"{}", false, "spec.etcd.managed.storage", "etcd"},
        {"{}", false, "spec.etcdx", ""},
        {"{}", false, "", ""},
        {"{}", false, "spec.nosuch", ""},
        {"{}", false, "spec.platform.aws.region", "platform.aws.region"},
        {"{}", false, "spec.services[0].service", "services[0].service"},
        {"{}", false, "spec.release.image", "release.image"},
        {"{}", false, "spec.networking.clusterNetwork[0].cidr", "networking.cluster_network"},
        {"{\"networking\":{\"clusterNetwork\":[]}}", false,
         "spec.networking.clusterNetwork[0].cidr", "networking.clusterNetwork[0].cidr"},
        {"{\"raw\":{\"hosted_cluster\":{\"spec\":{\"nosuch\":1}}}}", false, "spec.nosuch",
         "raw.hosted_cluster.spec.nosuch"},
        {"{\"raw\":{\"hosted_cluster\":{\"spec\":{\"nosuch\":1}}}}", false, "spec.etcd", "etcd"},
        {"{\"raw\":{\"hosted_cluster\":{\"spec\":{\"networking\":{\"clusterNetwork\":[]}}}}}",
         false, "spec.networking.clusterNetwork[0].cidr",
         "raw.hosted_cluster.spec.networking.clusterNetwork[0].cidr"},
        {"{\"raw\":{\"hosted_cluster\":{\"spec\":{\"networking\":{\"clusterNetwork\":[]}}}}}",
         false, "spec.networking.networkType", "networking.network_type"},
        {"{\"raw\":{\"hosted_cluster\":{\"spec\":{\"release\":null}}}}", false, "spec.release",
         "raw.hosted_cluster.spec.release"},
        {"{\"raw\":{\"node_pool\":{\"spec\":{\"replicas\":-1}}}}", true, "spec.replicas",
         "raw.node_pool.spec.replicas"},
        {"{\"raw\":{\"node_pool\":{\"spec\":{\"replicas\":-1}}}}", true, "spec.autoScaling.min",
         "auto_scaling.min"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *spec = json_of(rows[i].spec);
        struct hfd_arena mem;
        hfd_slice got;

        hfd_arena_init(&mem, 1 << 16);
        got = hfd_hs_order_field(spec, rows[i].of_pool, hfd_slice_of(rows[i].field), &mem);
        if (!hfd_slice_is(got, rows[i].as_ordered))
            fail_msg("row %zu: '%.*s'", i, HFD_SLICE_FMT(got));
        hfd_arena_fini(&mem);
        json_decref(spec);
    }
}

/* ---- networks ---- */

/* Each CIDR, and that no two overlap, of both families. */
static void test_networks(void **state)
{
    static const struct {
        const char *networking, *field;
    } rows[] = {
        {"{}", NULL},
        {"{\"clusterNetwork\":[{\"cidr\":\"10.132.0.0/14\"}],\"serviceNetwork\":[\"172.31.0.0/"
         "16\"]}",
         NULL},
        {"{\"clusterNetwork\":[{\"cidr\":\"fd01::/48\"},{\"cidr\":\"fd02::1:0/112\"}]}", NULL},
        {"{\"clusterNetwork\":[{\"cidr\":\"10.0.0.0/33\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"10.0.0/8\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"10.0.0.256/8\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"10.0.0.0\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"fd01::1::/48\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"fd01:/48\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[{\"cidr\":\"fd01::/129\"}]}", "networking.clusterNetwork[0]"},
        {"{\"clusterNetwork\":[\"10.0.0.0/8\"],\"machine_network\":[\"10.9.0.0/16\"]}",
         "networking.machine_network[0]"},
        {"{\"clusterNetwork\":[\"0.0.0.0/0\"],\"serviceNetwork\":[\"192.168.0.0/16\"]}",
         "networking.serviceNetwork[0]"},
        {"{\"clusterNetwork\":[\"fd01::/32\"],\"serviceNetwork\":[\"fd01:0:1::/48\"]}",
         "networking.serviceNetwork[0]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *networking = json_of(rows[i].networking);
        char field[64] = "", what[160] = "";

        assert_int_equal(hfd_hs_networks_check(networking, field, what), rows[i].field == NULL);
        assert_string_equal(field, rows[i].field != NULL ? rows[i].field : "");
        json_decref(networking);
    }
}

/* ---- manifests ---- */

/* A merge patch is applied last; what a later apply must repeat is always there. */
static void test_hosted_cluster(void **state)
{
    const struct hfd_hs_defaults defaults = {.namespace = HFD_SLICE("clusters"),
                                             .release_image = HFD_SLICE("img"),
                                             .base_domain = HFD_SLICE("example.com"),
                                             .nodeport_address = HFD_SLICE("203.0.113.9")};
    json_t *spec = json_of("{\"networking\":{\"cluster_network\":[{\"cidr\":\"10.0.0.0/8\","
                           "\"host_prefix\":23}]},\"raw\":{\"hosted_cluster\":{\"spec\":{\"etcd\":"
                           "null,\"fips\":true}}}}");
    const struct hfd_hs_source source = {.defaults = &defaults,
                                         .cluster_id = HFD_SLICE("2abc"),
                                         .cluster_name = HFD_SLICE("one"),
                                         .cluster_spec = spec,
                                         .generation = 3};
    struct hfd_arena mem;
    struct hfd_err err;
    hfd_slice text;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    assert_int_equal(hfd_hs_hosted_cluster_manifest(&source, &mem, &text, &err), HFD_OK);
    assert_contains(text, "\"controllerAvailabilityPolicy\":\"HighlyAvailable\"");
    assert_contains(text, "\"clusterNetwork\":[{\"cidr\":\"10.0.0.0/8\",\"hostPrefix\":23}]");
    assert_contains(text, "\"serviceNetwork\":[{\"cidr\":\"172.31.0.0/16\"}]");
    assert_contains(text, "\"hyperfleet.io/generation\":\"3\"");
    assert_contains(text, "\"fips\":true");
    assert_lacks(text, "etcd");
    assert_lacks(text, "status");
    assert_lacks(text, "sshKey");
    hfd_arena_fini(&mem);
    json_decref(spec);
}

/* Cluster and user of the current context; nothing of a text that is no kubeconfig. */
static void test_kubeconfig_split(void **state)
{
    json_t *data, *credentials;

    (void)state;
    hfd_hs_kubeconfig_split(HFD_SLICE("current-context: x\n"
                                      "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                      "clusters: [{name: c, cluster: {server: s}}]\n"
                                      "users: [{name: u, user: {token: t}}]\n"),
                            &data, &credentials);
    assert_string_equal(json_string_value(json_object_get(data, "server")), "s");
    assert_string_equal(json_string_value(json_object_get(credentials, "token")), "t");
    json_decref(data);
    json_decref(credentials);
    hfd_hs_kubeconfig_split(HFD_SLICE("]"), &data, &credentials);
    assert_null(data);
    assert_null(credentials);
}

/* ---- reports ---- */

/* A visit of a cluster at generation 2, as it is after its walk. */
struct visit {
    const char *prev_data; /* of the last report, which is on generation 1 */
    enum hfd_step_end end;
    enum hfd_hs_stage stage;
    int progress;
    bool judged, up;
    int64_t down_for_us;
    bool deleting, validated;
};

static const struct hfd_hs_report *report_by(const struct hfd_hs_reports *all, const char *adapter)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i].adapter, adapter) == 0)
            return &all->items[i];
    return NULL;
}

static struct hfd_hs_record record; /* of the last report_on */

static void report_on(const struct visit *v, struct hfd_arena *mem, struct hfd_hs_reports *out)
{
    static const struct hfd_step step = {"Gates", NULL};
    const struct hfd_reconciled ended = {v->end, v->end == HFD_STEP_DONE ? NULL : &step};
    static struct hfd_hs_work w; /* the reports borrow from it */

    record = (struct hfd_hs_record){.id = "2abc"};
    w = (struct hfd_hs_work){
        .record = &record,
        .mono_us = 1000000000,
        .mem = mem,
        .row = {.kind = HFD_KIND_CLUSTER,
                .id = HFD_SLICE("2abc"),
                .generation = 2,
                .deleted_us = v->deleting ? 1 : 0},
        .prev = {.adapter = HFD_SLICE("hypershift"), .observed_generation = 1},
        .prev_secrets = HFD_SLICE(""),
        .object = {.name = {&hfd_hs_hosted_clusters, HFD_SLICE("n"), HFD_SLICE("c")}},
        .judged = v->judged,
        .validated = v->validated,
        .judgement = {.stage = v->stage,
                      .gate = v->stage == HFD_HS_WAITS ? "Available" : NULL,
                      .progress = v->progress,
                      .up = v->up,
                      .down_reason = "Down",
                      .down_message = "why it is down"},
        .reason = "Reason",
        .words = "words",
    };
    record.down_since_us = v->down_for_us > 0 ? w.mono_us - v->down_for_us : 0;
    w.prev_data = json_of(v->prev_data);
    w.object.doc = v->deleting && v->end == HFD_STEP_DONE ? NULL : json_of(OBJECT("2", "", "", ""));
    assert_int_equal(hfd_hs_reports_make(&w, &ended, out, NULL), HFD_OK);
    json_decref(w.prev_data);
    json_decref(w.object.doc);
}

static const struct {
    struct visit visit;
    int64_t generation;
    bool available, healthy, finalized;
    const char *reason, *data;
    int validation;      /* -1 = none, 0 = refuses, 1 = passed */
    const char *message; /* NULL = any */
} report_rows[] = {
    {{"{}", HFD_STEP_WAITS, HFD_HS_WAITS, 30, true, true, 0, false, true},
     2,
     false,
     true,
     false,
     "Progressing",
     "\"step\":\"GATE Available\"",
     1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_WAITS, HFD_HS_WAITS, 30, true, true, 0, false, true},
     1,
     true,
     true,
     false,
     "Updating",
     "\"update\":{\"generation\":2",
     1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_DONE, HFD_HS_REACHED, 100, true, true, 0, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "\"serves\":2",
     1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_DONE, HFD_HS_PAUSED, 0, true, true, 0, false, true},
     2,
     true,
     true,
     false,
     "ReconciliationPaused",
     "\"serves\":2",
     1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_REFUSED, HFD_HS_WAITS, 0, false, true, 0, false, false},
     1,
     true,
     true,
     false,
     "Updating",
     "\"serves\":1",
     0,
     NULL},
    {{"{}", HFD_STEP_REFUSED, HFD_HS_WAITS, 0, false, true, 0, false, false},
     2,
     false,
     true,
     false,
     "Progressing",
     "\"objects\"",
     0,
     NULL},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, false, 30000000, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "",
     1,
     NULL},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, false, 30000001, false, true},
     2,
     false,
     true,
     false,
     "Down",
     "\"serves\":2",
     1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, false, 30000001, false, true},
     1,
     false,
     true,
     false,
     "Down",
     "\"update\":{\"generation\":2",
     1,
     "words; why it is down"},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, true, 90000000, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "",
     1,
     NULL},
    {{"{}", HFD_STEP_FAULT, HFD_HS_WAITS, 0, false, true, 0, false, false},
     2,
     false,
     false,
     false,
     "Progressing",
     "\"rsync-status\":\"Retrying\"",
     -1,
     NULL},
    {{"{\"serves\":1}", HFD_STEP_FAULT, HFD_HS_WAITS, 0, false, true, 0, false, false},
     1,
     true,
     false,
     false,
     "Updating",
     "",
     -1,
     NULL},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 0, false, true, 0, true, true},
     2,
     false,
     true,
     false,
     "Deleting",
     "\"step\":\"TEARDOWN Gates\"",
     -1,
     NULL},
    {{"{\"serves\":2}", HFD_STEP_DONE, HFD_HS_WAITS, 0, false, true, 0, true, true},
     2,
     false,
     true,
     true,
     "Finalized",
     "\"rsync-status\":\"Terminated\"",
     1,
     NULL},
    {{"{\"update\":{\"generation\":2,\"progress\":55},\"serves\":1}", HFD_STEP_WAITS, HFD_HS_WAITS,
      30, true, true, 0, false, true},
     1,
     true,
     true,
     false,
     "Updating",
     "\"progress\":55",
     1,
     NULL},
};

/* The table of reports in the adapter's README.md. */
static void test_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(report_rows) / sizeof(report_rows[0]); i++) {
        const struct hfd_hs_report *r, *checked;
        struct hfd_hs_reports all;
        struct hfd_arena mem;

        hfd_arena_init(&mem, 1 << 20);
        report_on(&report_rows[i].visit, &mem, &all);
        r = report_by(&all, "hypershift");
        checked = report_by(&all, "validation");
        assert_non_null(r);
        if (r->generation != report_rows[i].generation ||
            r->available != report_rows[i].available || r->healthy != report_rows[i].healthy ||
            r->finalized != report_rows[i].finalized ||
            strcmp(r->reason, report_rows[i].reason) != 0)
            fail_msg("row %zu: generation %lld, available %d, reason %s", i,
                     (long long)r->generation, r->available, r->reason);
        assert_contains(r->data.text, report_rows[i].data);
        if (report_rows[i].message != NULL)
            assert_string_equal(r->message, report_rows[i].message);
        assert_int_equal(checked == NULL ? -1 : checked->available || checked->finalized,
                         report_rows[i].validation);
        hfd_arena_fini(&mem);
    }
}

/* A clock runs while what serves is not available, and not before anything serves. */
static void test_down_clock(void **state)
{
    static const struct {
        const char *prev_data;
        bool up, runs;
    } rows[] = {
        {"{}", false, false}, {"{\"serves\":1}", false, true}, {"{\"serves\":1}", true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct visit v = {
            rows[i].prev_data, HFD_STEP_WAITS, HFD_HS_WAITS, 30, true, rows[i].up, 0, false, true};
        struct hfd_hs_reports all;
        struct hfd_arena mem;

        hfd_arena_init(&mem, 1 << 20);
        report_on(&v, &mem, &all);
        assert_int_equal(record.down_since_us != 0, rows[i].runs);
        hfd_arena_fini(&mem);
    }
}

/* ---- the walk ---- */

static int walked;

static enum hfd_step_end walk_done(void *work)
{
    (void)work;
    walked++;
    return HFD_STEP_DONE;
}

static enum hfd_step_end walk_waits(void *work)
{
    (void)work;
    walked++;
    return HFD_STEP_WAITS;
}

static bool while_few(void *work)
{
    return walked < *(int *)work;
}

/* A walk ends at the first step that is not done, and before a step that is no longer wanted. */
static void test_reconcile(void **state)
{
    static const struct hfd_step sync[] = {{"a", walk_done}, {"b", walk_waits}, {"c", walk_done}};
    static const struct hfd_step teardown[] = {{"d", walk_done}};
    const struct hfd_reconciler r = {{sync, 3}, {teardown, 1}, while_few};
    struct hfd_reconciled ended;
    int limit = 10;

    (void)state;
    walked = 0;
    ended = hfd_reconcile(&r, false, &limit);
    assert_int_equal(ended.end, HFD_STEP_WAITS);
    assert_string_equal(ended.at->name, "b");
    assert_int_equal(walked, 2);
    walked = 0;
    ended = hfd_reconcile(&r, true, &limit);
    assert_int_equal(ended.end, HFD_STEP_DONE);
    assert_null(ended.at);
    walked = 0;
    limit = 1;
    ended = hfd_reconcile(&r, false, &limit);
    assert_int_equal(ended.end, HFD_STEP_AGAIN);
    assert_int_equal(walked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clusters),         cmocka_unit_test(test_pools),
        cmocka_unit_test(test_networks),         cmocka_unit_test(test_hosted_cluster),
        cmocka_unit_test(test_kubeconfig_split), cmocka_unit_test(test_reports),
        cmocka_unit_test(test_down_clock),       cmocka_unit_test(test_reconcile),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_refusal_types),
        cmocka_unit_test(test_wants_nodes),      cmocka_unit_test(test_held),
        cmocka_unit_test(test_order_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
