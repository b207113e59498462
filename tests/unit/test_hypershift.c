/* The pure parts of the HyperShift adapter: judgements, networks, ownership of names, manifests. */
#include <stdlib.h>

#include "driver/adapters/hypershift/manifest.h"
#include "driver/adapters/hypershift/networks.h"
#include "driver/adapters/hypershift/outputs.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/report.h"
#include "driver/adapters/hypershift/state.h"
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

struct row {
    const char *object; /* NULL = absent */
    bool serves, wants_nodes;
    int64_t invalid_for_us;
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
    {OBJECT("7", "", KUBECONFIG, IS("Available", "False")), true, false, 0, HFD_HS_WAITS,
     "ValidConfiguration", 0, false},
    {OBJECT("7", "", "", WHY("ValidConfiguration", "PKI")), false, false, 60000000, HFD_HS_WAITS,
     "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ValidConfiguration", "PKI")), false, false, 60000001, HFD_HS_REFUSED,
     "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ValidConfiguration", "InvalidConfiguration")), false, false, 0,
     HFD_HS_REFUSED, "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ValidReleaseImage", "InvalidImage")), false, false, 0, HFD_HS_REFUSED,
     "ValidReleaseImage", 0, true},
    {OBJECT("7", "", "", WHY("ValidReleaseImage", "SecretNotFound")), false, false, 0, HFD_HS_WAITS,
     "ValidConfiguration", 0, true},
    {OBJECT("7", "", "", WHY("ReconciliationActive", "ReconciliationPaused")), true, false, 0,
     HFD_HS_PAUSED, NULL, 0, true},
};

#define MACHINES                                                                                   \
    IS("ValidReleaseImage", "True")                                                                \
    "," IS("AllMachinesReady", "True") "," IS("AllNodesHealthy", "True") "," IS("Ready", "True")
#define KV "\"platform\":{\"type\":\"KubeVirt\"},\"replicas\":2"
#define KV_ZERO "\"platform\":{\"type\":\"KubeVirt\"},\"replicas\":0"
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
                                           .invalid_for_us = r->invalid_for_us};
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
    int validation; /* -1 = none, 0 = refuses, 1 = passed */
} report_rows[] = {
    {{"{}", HFD_STEP_WAITS, HFD_HS_WAITS, 30, true, true, 0, false, true},
     2,
     false,
     true,
     false,
     "Progressing",
     "\"step\":\"GATE Available\"",
     1},
    {{"{\"serves\":1}", HFD_STEP_WAITS, HFD_HS_WAITS, 30, true, true, 0, false, true},
     1,
     true,
     true,
     false,
     "Updating",
     "\"update\":{\"generation\":2",
     1},
    {{"{\"serves\":1}", HFD_STEP_DONE, HFD_HS_REACHED, 100, true, true, 0, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "\"serves\":2",
     1},
    {{"{\"serves\":1}", HFD_STEP_DONE, HFD_HS_PAUSED, 0, true, true, 0, false, true},
     2,
     true,
     true,
     false,
     "ReconciliationPaused",
     "\"serves\":2",
     1},
    {{"{\"serves\":1}", HFD_STEP_REFUSED, HFD_HS_WAITS, 0, false, true, 0, false, false},
     1,
     true,
     true,
     false,
     "Updating",
     "\"serves\":1",
     0},
    {{"{}", HFD_STEP_REFUSED, HFD_HS_WAITS, 0, false, true, 0, false, false},
     2,
     false,
     true,
     false,
     "Progressing",
     "\"objects\"",
     0},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, false, 30000000, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "",
     1},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, false, 30000001, false, true},
     2,
     false,
     true,
     false,
     "Down",
     "\"serves\":2",
     1},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 55, true, true, 90000000, false, true},
     2,
     true,
     true,
     false,
     "ResourceAvailable",
     "",
     1},
    {{"{}", HFD_STEP_FAULT, HFD_HS_WAITS, 0, false, true, 0, false, false},
     2,
     false,
     false,
     false,
     "Progressing",
     "\"rsync-status\":\"Retrying\"",
     -1},
    {{"{\"serves\":1}", HFD_STEP_FAULT, HFD_HS_WAITS, 0, false, true, 0, false, false},
     1,
     true,
     false,
     false,
     "Updating",
     "",
     -1},
    {{"{\"serves\":2}", HFD_STEP_WAITS, HFD_HS_WAITS, 0, false, true, 0, true, true},
     2,
     false,
     true,
     false,
     "Deleting",
     "\"step\":\"TEARDOWN Gates\"",
     -1},
    {{"{\"serves\":2}", HFD_STEP_DONE, HFD_HS_WAITS, 0, false, true, 0, true, true},
     2,
     false,
     true,
     true,
     "Finalized",
     "\"rsync-status\":\"Terminated\"",
     1},
    {{"{\"update\":{\"generation\":2,\"progress\":55},\"serves\":1}", HFD_STEP_WAITS, HFD_HS_WAITS,
      30, true, true, 0, false, true},
     1,
     true,
     true,
     false,
     "Updating",
     "\"progress\":55",
     1},
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
