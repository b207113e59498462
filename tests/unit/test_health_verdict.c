/*
 * Everything that follows from a PacemakerCluster document: derived aggregates, verdict,
 * conditions, staleness and events. The numbers of rows are those of the researched list, 12 to 15,
 * 22 to 25 and 75 to 84.
 */
#include "driver/health/verdict.h"

#include "driver/base/clock.h"
#include "driver/health/intake.h"
#include "tests/lib/health_doc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MEM_MAX ((size_t)4 << 20)
#define T0 INT64_C(1735689600000000) /* HEALTH_DOC_UPDATED */
#define MINUTE (60 * HFD_US_PER_S)

/* Documents and verdicts of one test. */
struct bench {
    struct hfd_arena mem;
    json_t *json;
};

static void bench_open(struct bench *b, size_t nodes)
{
    hfd_arena_init(&b->mem, MEM_MAX);
    b->json = health_doc(nodes);
}

static void bench_close(struct bench *b)
{
    json_decref(b->json);
    hfd_arena_fini(&b->mem);
}

/* The document as it is now, which the rules accept. */
static struct hfd_health_document parse(struct bench *b)
{
    struct hfd_health_reading reading;
    struct hfd_err err = {.rc = HFD_OK};

    if (hfd_health_read(b->json, "", &b->mem, &reading, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    return reading.document;
}

static struct hfd_health_verdict judge_at(struct bench *b, int64_t now_us)
{
    const struct hfd_health_document doc = parse(b);
    struct hfd_health_verdict v;

    assert_int_equal(
        hfd_health_judge(&doc, now_us > hfd_health_stale_us(&doc, T0), &b->mem, &v, NULL), HFD_OK);
    return v;
}

static struct hfd_health_verdict judge(struct bench *b)
{
    return judge_at(b, T0);
}

static void says(const struct hfd_health_said *said, size_t count, const char *const *want)
{
    size_t n = 0;

    for (; want[n] != NULL; n++) {
        assert_true(n < count);
        if (!hfd_slice_is(said[n].text, want[n]))
            fail_msg("said %.*s, want %s", HFD_SLICE_FMT(said[n].text), want[n]);
    }
    assert_int_equal(count, n);
}

#define AT_RISK ": fencing at risk (agent running but not managed for recovery)"
#define NO_FENCING "fencing unavailable (no agents running)"
#define SAID_MAX 4

struct edit {
    const char *path, *json;
};

/* D with edits, and the verdict on it. */
struct row {
    const char *name;
    size_t nodes;
    const char *fill; /* to two items, before the edits */
    struct edit edits[8];
    enum hfd_health_overall overall;
    const char *errors[SAID_MAX], *warnings[SAID_MAX];
};

/* clang-format off */
#define CLUSTER "status/conditions/"
#define NODE0 "status/nodes/0/conditions/"
#define AGENT0 "status/nodes/0/fencingAgents/0/conditions/"
#define ETCD0 "status/nodes/0/resources/Etcd/conditions/"
#define KUBELET0 "status/nodes/0/resources/Kubelet/conditions/"
#define NO "\"False\""
static const struct row rows[] = {
    {"0 D", 2, NULL, {{0}}, HFD_HEALTH_HEALTHY, {0}, {0}},
    {"26 no nodes", 0, NULL, {{0}}, HFD_HEALTH_ERROR,
     {"Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 0)", "No nodes found in cluster"}, {0}},
    {"75 the only agent", 2, NULL, {{AGENT0 "Operational/status", NO}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: " NO_FENCING}, {0}},
    {"75 as it is reported", 2, NULL, {{NODE0 "FencingAvailable/status", NO}, {NODE0 "FencingHealthy/status", NO}, {NODE0 "Healthy/status", NO}},
     HFD_HEALTH_ERROR, {"master-0 node is unhealthy: " NO_FENCING}, {0}},
    {"75 unknown is not true", 2, NULL, {{AGENT0 "Operational/status", "\"Unknown\""}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: " NO_FENCING}, {0}},
    {"76", 2, "status/nodes/0/fencingAgents", {{AGENT0 "Started/status", NO}, {NODE0 "FencingHealthy/status", NO}, {NODE0 "Healthy/status", NO}},
     HFD_HEALTH_WARNING, {0}, {"master-0" AT_RISK}},
    {"76 derived", 2, "status/nodes/0/fencingAgents", {{AGENT0 "Started/status", NO}}, HFD_HEALTH_WARNING, {0}, {"master-0" AT_RISK}},
    {"77", 2, "status/nodes/0/fencingAgents", {{AGENT0 "Started/status", NO}, {NODE0 "FencingHealthy/status", NO}},
     HFD_HEALTH_WARNING, {0}, {"master-0" AT_RISK}},
    {"78", 2, "status/nodes/0/fencingAgents", {{AGENT0 "Started/status", NO}, {NODE0 "FencingHealthy/status", NO}, {NODE0 "InService/status", NO}},
     HFD_HEALTH_ERROR, {"master-0 node is unhealthy: in maintenance mode"}, {"master-0" AT_RISK}},
    {"79", 2, NULL, {{"status/nodes/1/conditions/Online/status", NO}, {"status/nodes/1/resources/Etcd/conditions/Operational/status", NO},
                     {"status/nodes/1/conditions/FencingHealthy/status", NO}},
     HFD_HEALTH_ERROR, {"Node master-1 is offline"}, {0}},
    {"80", 2, NULL, {{ETCD0 "Operational/status", NO}, {ETCD0 "Started/status", NO}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: Etcd has failed"}, {0}},
    {"80 and Kubelet", 2, NULL, {{ETCD0 "Operational/status", NO}, {KUBELET0 "Operational/status", NO}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: Kubelet has failed, Etcd has failed"}, {0}},
    {"80 stopped", 2, NULL, {{ETCD0 "Started/status", NO}, {ETCD0 "Active/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: Etcd is stopped"}, {0}},
    {"80 not active", 2, NULL, {{ETCD0 "Active/status", NO}, {ETCD0 "Managed/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: Etcd is not active"}, {0}},
    {"80 unmanaged", 2, NULL, {{ETCD0 "Managed/status", NO}, {ETCD0 "Enabled/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: Etcd is unmanaged"}, {0}},
    {"80 unhealthy", 2, NULL, {{ETCD0 "Healthy/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: Etcd is unhealthy"}, {0}},
    {"80 disabled", 2, NULL, {{ETCD0 "Enabled/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: Etcd is unhealthy"}, {0}},
    {"81", 2, NULL, {{NODE0 "Ready/status", NO}, {NODE0 "Healthy/status", NO}, {NODE0 "Healthy/message", "\"Node is pending\""}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: Node is pending"}, {0}},
    {"81 Ready alone", 2, NULL, {{NODE0 "Ready/status", NO}}, HFD_HEALTH_HEALTHY, {0}, {0}},
    {"81 no message", 2, NULL, {{NODE0 "Healthy/status", NO}, {NODE0 "Healthy/message", "\"\""}, {NODE0 "Healthy/reason", "\"NodeUnhealthy\""}},
     HFD_HEALTH_ERROR, {"master-0 node is unhealthy: NodeUnhealthy"}, {0}},
    {"82 one node", 1, NULL, {{0}}, HFD_HEALTH_ERROR, {"Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 1)"}, {0}},
    {"82 three nodes", 3, NULL, {{0}}, HFD_HEALTH_ERROR, {"Cluster is unhealthy: Excessive nodes in cluster (expected 2, found 3)"}, {0}},
    {"82 maintenance", 2, NULL, {{"status/conditions/InService/status", NO}}, HFD_HEALTH_ERROR, {"Cluster is unhealthy: Cluster is in maintenance mode"}, {0}},
    {"82 both", 1, NULL, {{"status/conditions/InService/status", NO}}, HFD_HEALTH_ERROR,
     {"Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 1), Cluster is in maintenance mode"}, {0}},
    {"82 as it is reported", 2, NULL, {{"status/conditions/NodeCountAsExpected/status", NO}, {"status/conditions/NodeCountAsExpected/reason", "\"ExcessiveNodes\""}},
     HFD_HEALTH_ERROR, {"Cluster is unhealthy: Excessive nodes in cluster (expected 2, found 2)"}, {0}},
    {"82 as it is reported, too few", 2, NULL, {{"status/conditions/NodeCountAsExpected/status", NO}, {"status/conditions/NodeCountAsExpected/reason", "\"InsufficientNodes\""}},
     HFD_HEALTH_ERROR, {"Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 2)"}, {0}},
    {"82 another reason", 2, NULL, {{"status/conditions/NodeCountAsExpected/status", NO}}, HFD_HEALTH_ERROR,
     {"Cluster is unhealthy: Unexpected number of nodes in cluster (expected 2, found 2)"}, {0}},
    {"cluster", 2, NULL, {{CLUSTER "Healthy/status", NO}, {CLUSTER "Healthy/message", "\"quorum is at risk\""}}, HFD_HEALTH_ERROR,
     {"Cluster is unhealthy: quorum is at risk"}, {0}},
    {"cluster, no message", 2, NULL, {{CLUSTER "Healthy/status", "\"Unknown\""}, {CLUSTER "Healthy/message", "\"\""}, {CLUSTER "Healthy/reason", "\"ClusterUnhealthy\""}},
     HFD_HEALTH_ERROR, {"Cluster is unhealthy: ClusterUnhealthy"}, {0}},
    {"cluster beside another error", 2, NULL, {{CLUSTER "Healthy/status", NO}, {ETCD0 "Healthy/status", NO}}, HFD_HEALTH_ERROR,
     {"master-0 node is unhealthy: Etcd is unhealthy"}, {0}},
    {"cluster beside a warning that explains it", 2, "status/nodes/0/fencingAgents",
     {{AGENT0 "Started/status", NO}, {NODE0 "Healthy/status", NO}, {CLUSTER "Healthy/status", NO}}, HFD_HEALTH_WARNING, {0}, {"master-0" AT_RISK}},
    {"cluster beside a warning that does not", 2, "status/nodes/0/fencingAgents",
     {{AGENT0 "Started/status", NO}, {CLUSTER "Healthy/status", NO}, {CLUSTER "Healthy/message", "\"why\""}}, HFD_HEALTH_ERROR,
     {"Cluster is unhealthy: why"}, {"master-0" AT_RISK}},
    {"the only agent as it is reported", 2, NULL, {{AGENT0 "Healthy/status", NO}}, HFD_HEALTH_ERROR, {"master-0 node is unhealthy: " NO_FENCING}, {0}},
    {"one of two agents as it is reported", 2, "status/nodes/0/fencingAgents", {{AGENT0 "Healthy/status", "\"Unknown\""}}, HFD_HEALTH_WARNING, {0}, {"master-0" AT_RISK}},
    {"82 a reason that is not meant", 2, NULL, {{"status/conditions/NodeCountAsExpected/reason", "\"ExcessiveNodes\""}}, HFD_HEALTH_HEALTHY, {0}, {0}},
    {"all of a node", 2, NULL, {{NODE0 "InService/status", NO}, {NODE0 "Active/status", NO}, {NODE0 "Clean/status", NO}, {NODE0 "Member/status", NO},
                                {AGENT0 "Active/status", NO}, {ETCD0 "Started/status", NO}},
     HFD_HEALTH_ERROR, {"master-0 node is unhealthy: in maintenance mode, in standby mode, unclean state (fencing/communication issue), "
                        "not a cluster member, " NO_FENCING ", Etcd is stopped"}, {0}},
    {"a line a node", 2, NULL, {{"status/nodes/1/conditions/Clean/status", NO}, {NODE0 "Online/status", "\"Unknown\""}},
     HFD_HEALTH_ERROR, {"Node master-0 is offline", "master-1 node is unhealthy: unclean state (fencing/communication issue)"}, {0}},
};
/* clang-format on */

static void apply(struct bench *b, const struct row *row)
{
    if (row->fill != NULL)
        health_doc_fill(b->json, row->fill, 2, "name");
    for (size_t i = 0; i < 8 && row->edits[i].path != NULL; i++)
        health_doc_set(b->json, row->edits[i].path, row->edits[i].json);
}

/* Rows 26 and 75 to 82. */
static void verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_health_verdict v;
        struct bench b;

        print_message("row %s\n", rows[i].name);
        bench_open(&b, rows[i].nodes);
        apply(&b, &rows[i]);
        v = judge(&b);
        assert_int_equal(v.overall, rows[i].overall);
        assert_false(v.stale);
        says(v.errors, v.error_count, rows[i].errors);
        says(v.warnings, v.warning_count, rows[i].warnings);
        bench_close(&b);
    }
}

/* Every condition that is not True takes away what is built on it, and nothing else. */
static void aggregates_are_derived(void **state)
{
    static const char *const of_units[] = {"InService", "Managed", "Enabled",    "Operational",
                                           "Active",    "Started", "Schedulable"};
    static const char *const of_nodes[] = {"Online", "InService", "Active",
                                           "Ready",  "Clean",     "Member"};
    struct bench b;
    char path[96];

    (void)state;
    for (size_t i = 0; i < 7; i++) {
        bench_open(&b, 2);
        (void)snprintf(path, sizeof(path), ETCD0 "%s/status", of_units[i]);
        health_doc_set(b.json, path, NO);
        (void)snprintf(path, sizeof(path), "status/nodes/1/fencingAgents/0/conditions/%s/status",
                       of_units[i]);
        health_doc_set(b.json, path, NO);
        {
            const struct hfd_health_verdict v = judge(&b);

            assert_true(v.facts.nodes[0].resources[0] && !v.facts.nodes[0].resources[1]);
            assert_true(v.facts.nodes[0].agents[0] && !v.facts.nodes[1].agents[0]);
            assert_true(v.facts.nodes[0].fencing_available && v.facts.nodes[0].fencing_healthy);
            assert_false(v.facts.nodes[1].fencing_available || v.facts.nodes[1].fencing_healthy);
            assert_false(v.facts.nodes[0].healthy || v.facts.nodes[1].healthy || v.facts.healthy);
            assert_true(v.facts.in_service && v.facts.count_as_expected);
        }
        bench_close(&b);
    }
    for (size_t i = 0; i < 6; i++) {
        bench_open(&b, 2);
        (void)snprintf(path, sizeof(path), NODE0 "%s/status", of_nodes[i]);
        health_doc_set(b.json, path, "\"Unknown\"");
        {
            const struct hfd_health_verdict v = judge(&b);

            assert_false(v.facts.nodes[0].healthy || v.facts.healthy);
            assert_true(v.facts.nodes[1].healthy && v.facts.nodes[0].fencing_available);
            assert_int_equal(v.facts.in_service, strcmp(of_nodes[i], "InService") != 0);
        }
        bench_close(&b);
    }
}

/* FencingHealthy=False alone does not make a node unhealthy, and may be reported either way. */
static void mismatches_are_told(void **state)
{
    struct hfd_health_verdict v;
    struct bench b;

    (void)state;
    bench_open(&b, 2);
    assert_int_equal(judge(&b).mismatch.len, 0);
    health_doc_set(b.json, AGENT0 "Healthy/status", NO);
    v = judge(&b);
    assert_true(hfd_slice_is(v.mismatch,
                             "fencing agent master-0_redfish: Healthy is not reported True; node "
                             "master-0: FencingAvailable is reported True; node master-0: "
                             "FencingHealthy is reported True; node master-0: Healthy is reported "
                             "True; cluster: Healthy is reported True"));
    health_doc_set(b.json, AGENT0 "Healthy/status", "\"True\"");
    health_doc_set(b.json, AGENT0 "Started/status", NO);
    v = judge(&b);
    assert_true(hfd_slice_is(v.mismatch,
                             "fencing agent master-0_redfish: Healthy is reported True; node "
                             "master-0: FencingAvailable is reported True; node master-0: "
                             "FencingHealthy is reported True; node master-0: Healthy is reported "
                             "True; cluster: Healthy is reported True"));
    bench_close(&b);
    bench_open(&b, 2);
    health_doc_fill(b.json, "status/nodes/0/fencingAgents", 2, "name");
    health_doc_set(b.json, AGENT0 "Started/status", NO);
    health_doc_set(b.json, AGENT0 "Healthy/status", NO);
    health_doc_set(b.json, NODE0 "FencingHealthy/status", NO);
    assert_int_equal(judge(&b).mismatch.len, 0);
    health_doc_set(b.json, NODE0 "Healthy/status", NO);
    assert_int_equal(judge(&b).mismatch.len, 0);
    health_doc_set(b.json, "status/conditions/NodeCountAsExpected/status", "\"Unknown\"");
    assert_true(
        hfd_slice_is(judge(&b).mismatch, "cluster: NodeCountAsExpected is not reported True"));
    bench_close(&b);
}

/* Row 83: stale after 5 minutes, by lastUpdated, and by the time of arrival when that is earlier.
 */
static void staleness(void **state)
{
    static const char *const text[] = {
        "Pacemaker status is stale (last updated: 2025-01-01T00:00:00Z)", NULL};
    struct hfd_health_document doc;
    struct hfd_health_verdict v;
    struct bench b;

    (void)state;
    bench_open(&b, 2);
    assert_int_equal(judge_at(&b, T0 + 5 * MINUTE).overall, HFD_HEALTH_HEALTHY);
    v = judge_at(&b, T0 + 5 * MINUTE + 1);
    assert_int_equal(v.overall, HFD_HEALTH_UNKNOWN);
    assert_true(v.stale);
    says(v.errors, v.error_count, text);
    doc = parse(&b);
    assert_int_equal(hfd_health_stale_us(&doc, T0 + MINUTE), T0 + 5 * MINUTE);
    assert_int_equal(hfd_health_stale_us(&doc, T0 - MINUTE), T0 + 4 * MINUTE);
    bench_close(&b);
}

static void conditions_are(const struct hfd_health_verdict *v, bool known_before,
                           const char *const want[4])
{
    struct hfd_condition got[2];
    struct hfd_arena mem;

    hfd_arena_init(&mem, MEM_MAX);
    assert_int_equal(hfd_health_conditions(v, known_before, &mem, got, NULL), HFD_OK);
    assert_true(hfd_slice_is(got[0].type, "Available"));
    assert_true(hfd_slice_is(got[1].type, "PacemakerHealthCheckDegraded"));
    assert_string_equal(hfd_status_name(got[0].status), want[0]);
    assert_true(hfd_slice_is(got[0].reason, want[1]));
    assert_string_equal(hfd_status_name(got[1].status), want[2]);
    assert_true(hfd_slice_is(got[1].reason, want[3]));
    assert_int_equal(got[0].message.len > 0, 1);
    assert_true(hfd_slice_eq(got[0].message, got[1].message));
    hfd_arena_fini(&mem);
}

/* The values of Available and PacemakerHealthCheckDegraded. */
static void conditions_follow(void **state)
{
    static const char *const healthy[] = {"True", "PacemakerHealthy", "False", "PacemakerHealthy"};
    static const char *const warning[] = {"True", "PacemakerWarning", "False", "PacemakerWarning"};
    static const char *const error[] = {"False", "PacemakerUnhealthy", "True",
                                        "PacemakerUnhealthy"};
    static const char *const stale[] = {"False", "PacemakerStatusStale", "True",
                                        "PacemakerStatusStale"};
    static const char *const never[] = {"Unknown", "PacemakerStatusStale", "Unknown",
                                        "PacemakerStatusStale"};
    static const char *const none[] = {"Unknown", "PacemakerStatusMissing", "Unknown",
                                       "PacemakerStatusMissing"};
    struct hfd_health_verdict v;
    struct hfd_condition got[2];
    struct bench b;

    (void)state;
    bench_open(&b, 2);
    v = judge(&b);
    conditions_are(&v, false, healthy);
    conditions_are(&v, true, healthy);
    v = judge_at(&b, T0 + 6 * MINUTE);
    conditions_are(&v, true, stale);
    conditions_are(&v, false, never);
    health_doc_fill(b.json, "status/nodes/0/fencingAgents", 2, "name");
    health_doc_set(b.json, AGENT0 "Started/status", NO);
    v = judge(&b);
    conditions_are(&v, false, warning);
    health_doc_set(b.json, NODE0 "Clean/status", NO);
    health_doc_set(b.json, "status/nodes/1/conditions/Online/status", NO);
    v = judge(&b);
    conditions_are(&v, false, error);
    assert_int_equal(hfd_health_conditions(&v, true, &b.mem, got, NULL), HFD_OK);
    assert_true(hfd_slice_is(got[0].message,
                             "master-0 node is unhealthy: unclean state (fencing/communication "
                             "issue); Node master-1 is offline"));
    health_doc_set(b.json, "status", NULL);
    v = judge(&b);
    assert_int_equal(v.overall, HFD_HEALTH_UNKNOWN);
    assert_false(v.stale);
    conditions_are(&v, false, none);
    bench_close(&b);
}

/* "W PacemakerNodeOffline: Pacemaker error: ..." of each event. */
static void events_are(struct bench *b, const struct hfd_health_verdict *before,
                       const struct hfd_health_verdict *now, const char *const *want)
{
    struct hfd_health_events events;
    size_t n = 0;

    assert_int_equal(hfd_health_events(before, now, &b->mem, &events, NULL), HFD_OK);
    for (; want[n] != NULL; n++) {
        const struct hfd_health_event *e = &events.items[n];
        hfd_slice got;

        assert_true(n < events.count);
        got = hfd_arena_printf(&b->mem, "%s %s: %.*s", e->warning ? "W" : "N", e->reason,
                               HFD_SLICE_FMT(e->message));
        if (!hfd_slice_is(got, want[n]))
            fail_msg("event %.*s, want %s", HFD_SLICE_FMT(got), want[n]);
    }
    assert_int_equal(events.count, n);
}

#define IS_HEALTHY                                                                                 \
    "N PacemakerHealthy: Pacemaker cluster is healthy - all nodes have healthy critical resources"
#define IS_AT_RISK "W PacemakerWarning: Pacemaker warning: master-0" AT_RISK
#define IS_CLEARED "N PacemakerWarningsCleared: Pacemaker cluster warnings cleared"
#define IS_OFFLINE "W PacemakerNodeOffline: Pacemaker error: Node master-1 is offline"

/* Rows 75, 76, 83 and 84: the events of one verdict that follows another. */
static void events_of_transitions(void **state)
{
    static const char *const nothing[] = {NULL};
    static const char *const healthy[] = {IS_HEALTHY, NULL};
    static const char *const at_risk[] = {IS_AT_RISK, NULL};
    static const char *const healthy_at_risk[] = {IS_AT_RISK, IS_HEALTHY, NULL};
    static const char *const cleared[] = {IS_CLEARED, NULL};
    static const char *const offline[] = {IS_OFFLINE, NULL};
    static const char *const both[] = {IS_AT_RISK, IS_OFFLINE, NULL};
    static const char *const both_end[] = {IS_HEALTHY, IS_CLEARED, NULL};
    static const char *const offline_cleared[] = {IS_OFFLINE, IS_CLEARED, NULL};
    static const char *const stale[] = {"W PacemakerStatusStale: Pacemaker error: Pacemaker status "
                                        "is stale (last updated: 2025-01-01T00:00:00Z)",
                                        NULL};
    struct hfd_health_verdict good, risky, off, worst, old;
    struct bench b;

    (void)state;
    bench_open(&b, 2);
    good = judge(&b);
    old = judge_at(&b, T0 + 6 * MINUTE);
    health_doc_set(b.json, "status/nodes/1/conditions/Online/status", NO);
    off = judge(&b);
    off.mismatch = HFD_SLICE("");
    health_doc_fill(b.json, "status/nodes/0/fencingAgents", 2, "name");
    health_doc_set(b.json, AGENT0 "Started/status", NO);
    worst = judge(&b);
    worst.mismatch = HFD_SLICE("");
    health_doc_set(b.json, "status/nodes/1/conditions/Online/status", "\"True\"");
    risky = judge(&b);
    risky.mismatch = HFD_SLICE("");
    events_are(&b, NULL, &good, healthy);
    events_are(&b, &good, &good, nothing);
    events_are(&b, &good, &risky, at_risk);
    events_are(&b, &risky, &risky, at_risk);
    events_are(&b, NULL, &risky, healthy_at_risk);
    events_are(&b, &risky, &good, cleared);
    events_are(&b, &good, &off, offline);
    events_are(&b, &off, &good, healthy);
    events_are(&b, &off, &risky, healthy_at_risk);
    events_are(&b, &good, &worst, both);
    events_are(&b, &worst, &good, both_end);
    events_are(&b, &worst, &off, offline_cleared);
    events_are(&b, &risky, &old, stale);
    events_are(&b, &old, &good, healthy);
    bench_close(&b);
}

/* Every kind of finding has its reason. */
static void reasons(void **state)
{
    static const struct {
        const char *row, *reason;
    } cases[] = {
        {"26 no nodes", "PacemakerInsufficientNodes"},
        {"75 the only agent", "PacemakerNodeUnhealthy"},
        {"79", "PacemakerNodeOffline"},
        {"80", "PacemakerNodeUnhealthy"},
        {"82 three nodes", "PacemakerInsufficientNodes"},
        {"82 maintenance", "PacemakerClusterInMaintenance"},
        {"82 both", "PacemakerClusterInMaintenance"},
        {"cluster", "PacemakerClusterUnhealthy"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            struct hfd_health_events events;
            struct hfd_health_verdict v;
            struct bench b;

            if (strcmp(rows[k].name, cases[i].row) != 0)
                continue;
            bench_open(&b, rows[k].nodes);
            apply(&b, &rows[k]);
            v = judge(&b);
            assert_int_equal(hfd_health_events(NULL, &v, &b.mem, &events, NULL), HFD_OK);
            assert_string_equal(events.items[0].reason, cases[i].reason);
            assert_true(events.items[0].warning);
            assert_string_equal(hfd_health_reason(v.errors[0].what), cases[i].reason);
            bench_close(&b);
        }
    }
    assert_string_equal(hfd_health_reason(HFD_HEALTH_NO_NODES), "PacemakerError");
    assert_string_equal(hfd_health_reason(HFD_HEALTH_NOT_FOUND), "PacemakerCRNotFound");
    assert_string_equal(hfd_health_reason(HFD_HEALTH_MISMATCH), "AggregateMismatch");
}

/*
 * Events of an empty cluster, of a difference and of a document that has no status for too long are
 * warnings too.
 */
static void rare_events(void **state)
{
    static const char *const none[] = {
        "W PacemakerStatusMissing: Pacemaker error: PacemakerCluster CR has no status populated",
        NULL};
    static const char *const empty[] = {
        "W PacemakerInsufficientNodes: Pacemaker error: Cluster is unhealthy: Insufficient nodes "
        "in cluster (expected 2, found 0)",
        "W PacemakerError: Pacemaker error: No nodes found in cluster",
        "W AggregateMismatch: Reported aggregates differ from their parts: cluster: "
        "NodeCountAsExpected is reported True; cluster: Healthy is reported True",
        NULL};
    struct hfd_health_verdict v;
    struct bench b;

    (void)state;
    bench_open(&b, 0);
    v = judge(&b);
    events_are(&b, NULL, &v, empty);
    health_doc_set(b.json, "status", NULL);
    v = judge(&b);
    events_are(&b, NULL, &v, none + 1);
    v = judge_at(&b, T0 + 5 * MINUTE + 1);
    assert_false(v.stale);
    events_are(&b, NULL, &v, none);
    bench_close(&b);
}

/* Short memory is an error wherever it runs out, and nothing is half said. */
static void memory_may_be_short(void **state)
{
    struct hfd_health_document doc;
    size_t failed[3] = {0};
    hfd_rc rc = HFD_NOMEM;
    struct bench b;

    (void)state;
    bench_open(&b, 3);
    health_doc_set(b.json, NODE0 "Clean/status", NO);
    health_doc_set(b.json, "status/nodes/1/conditions/FencingHealthy/status", NO);
    doc = parse(&b);
    for (size_t max = 1; rc == HFD_NOMEM && max < MEM_MAX; max += 16) {
        struct hfd_health_events events;
        struct hfd_health_verdict v;
        struct hfd_condition got[2];
        struct hfd_arena mem;

        hfd_arena_init(&mem, max);
        rc = hfd_health_judge(&doc, false, &mem, &v, NULL);
        failed[0] += rc != HFD_OK;
        if (rc == HFD_OK) {
            rc = hfd_health_conditions(&v, false, &mem, got, NULL);
            failed[1] += rc != HFD_OK;
        }
        if (rc == HFD_OK) {
            rc = hfd_health_events(NULL, &v, &mem, &events, NULL);
            failed[2] += rc != HFD_OK;
        }
        hfd_arena_fini(&mem);
    }
    assert_int_equal(rc, HFD_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(failed[i] > 1);
    bench_close(&b);
}

/* Row 84: the same text within 5 minutes of a new event is counted. */
static void repeats_are_counted(void **state)
{
    const struct hfd_health_event e = {true, "PacemakerNodeOffline", HFD_SLICE("text")};

    (void)state;
    assert_true(hfd_health_event_repeats(&e, HFD_SLICE("PacemakerNodeOffline"), HFD_SLICE("text"),
                                         5 * MINUTE - 1));
    assert_false(hfd_health_event_repeats(&e, HFD_SLICE("PacemakerNodeOffline"), HFD_SLICE("text"),
                                          5 * MINUTE));
    assert_false(hfd_health_event_repeats(&e, HFD_SLICE("PacemakerError"), HFD_SLICE("text"), 0));
    assert_false(
        hfd_health_event_repeats(&e, HFD_SLICE("PacemakerNodeOffline"), HFD_SLICE("texts"), 0));
}

/* Rows 15 and 22 to 25: instants are compared, not texts. */
static void documents_follow(void **state)
{
    static const struct {
        const char *updated;
        enum hfd_health_follows want;
    } cases[] = {
        {"\"2024-12-31T23:59:59Z\"", HFD_HEALTH_EARLIER},
        {"\"2025-01-01T00:00:00Z\"", HFD_HEALTH_SAME},
        {"\"2025-01-01T02:00:00+02:00\"", HFD_HEALTH_SAME},
        {"\"2025-01-01T00:00:00.000001Z\"", HFD_HEALTH_NEWER},
        {"\"2025-01-01T00:00:01Z\"", HFD_HEALTH_NEWER},
        {"\"2025-01-01T01:30:00+02:00\"", HFD_HEALTH_EARLIER},
        {"\"2024-12-31T23:00:00-02:00\"", HFD_HEALTH_NEWER},
    };
    struct hfd_health_document stored, bare;
    struct bench b;

    (void)state;
    bench_open(&b, 2);
    stored = parse(&b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_health_document next;

        health_doc_set(b.json, "status/lastUpdated", cases[i].updated);
        next = parse(&b);
        assert_int_equal(hfd_health_follows(&stored, &next), cases[i].want);
        assert_int_equal(hfd_health_follows(NULL, &next), HFD_HEALTH_NEWER);
    }
    health_doc_set(b.json, "status", NULL);
    bare = parse(&b);
    assert_int_equal(hfd_health_follows(&stored, &bare), HFD_HEALTH_REMOVED);
    assert_int_equal(hfd_health_follows(&bare, &stored), HFD_HEALTH_NEWER);
    assert_int_equal(hfd_health_follows(&bare, &bare), HFD_HEALTH_NEWER);
    bench_close(&b);
}

/* Rows 12 to 14: whose status and whose everything else. */
static void documents_are_joined(void **state)
{
    json_t *a = health_doc(2), *b = health_doc(1), *got;

    (void)state;
    health_doc_set(a, "metadata/labels", "{\"of\":\"a\"}");
    health_doc_set(b, "metadata/labels", "{\"of\":\"b\"}");
    assert_int_equal(hfd_health_join(a, NULL, &got, NULL), HFD_OK);
    assert_null(json_object_get(got, "status"));
    assert_string_equal(json_string_value(hfd_json_pointer(got, HFD_SLICE("/metadata/labels/of"))),
                        "a");
    json_decref(got);
    assert_int_equal(hfd_health_join(a, b, &got, NULL), HFD_OK);
    assert_true(json_equal(json_object_get(got, "status"), json_object_get(b, "status")));
    assert_true(json_equal(json_object_get(got, "metadata"), json_object_get(a, "metadata")));
    assert_int_equal(json_array_size(hfd_json_pointer(a, HFD_SLICE("/status/nodes"))), 2);
    json_decref(got);
    health_doc_set(b, "status", "null");
    assert_int_equal(hfd_health_join(a, b, &got, NULL), HFD_OK);
    assert_null(json_object_get(got, "status"));
    json_decref(got);
    json_decref(a);
    json_decref(b);
}

/* A line ends in "..." when it is cut, never inside a character; a verdict stays small. */
static void lines_are_bounded(void **state)
{
    static char long_text[32768 + 1];
    struct hfd_health_verdict v;
    struct bench b;

    (void)state;
    bench_open(&b, 5);
    for (size_t i = 0; i + 1 < sizeof(long_text); i += 2)
        memcpy(long_text + i, "\xc3\xa9", 2);
    for (size_t i = 0; i < 5; i++) {
        char path[64];
        json_t *c;

        (void)snprintf(path, sizeof(path), "/status/nodes/%zu/conditions/0", i);
        c = hfd_json_pointer(b.json, hfd_slice_of(path));
        assert_int_equal(json_object_set_new(c, "status", json_string("False")), 0);
        assert_int_equal(json_object_set_new(c, "message", json_string(long_text)), 0);
    }
    v = judge(&b);
    assert_int_equal(v.error_count, 6);
    for (size_t i = 1; i < 6; i++) {
        const hfd_slice text = v.errors[i].text;

        assert_true(text.len <= HFD_HEALTH_LINE_MAX && text.len > HFD_HEALTH_LINE_MAX - 3);
        assert_memory_equal(text.p + text.len - 5, "\xc3\xa9...", 5);
    }
    bench_close(&b);
}

/* A stored document that the rules would not accept is damage, and short memory an error. */
static void parsing_fails_cleanly(void **state)
{
    static const char *const damaged[] = {
        "status/lastUpdated",
        "status/nodes",
        "status/conditions",
        "status/nodes/0/nodeName",
        "status/nodes/1/addresses",
        "status/nodes/0/resources/0/name",
        "status/nodes/0/fencingAgents/0/method",
        "status/nodes/0/conditions/0/status",
    };
    struct hfd_health_document doc;
    hfd_rc rc = HFD_NOMEM;
    struct bench b;

    (void)state;
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        bench_open(&b, 2);
        health_doc_set(b.json, damaged[i], NULL);
        assert_int_equal(hfd_health_parse(b.json, &b.mem, &doc, NULL), HFD_CORRUPT);
        assert_false(doc.has_status);
        bench_close(&b);
    }
    bench_open(&b, 2);
    for (size_t max = 1; rc == HFD_NOMEM && max < MEM_MAX; max += 997) {
        struct hfd_arena mem;

        hfd_arena_init(&mem, max);
        rc = hfd_health_parse(b.json, &mem, &doc, NULL);
        assert_true(rc == HFD_OK || !doc.has_status);
        hfd_arena_fini(&mem);
    }
    assert_int_equal(rc, HFD_OK);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(aggregates_are_derived),
        cmocka_unit_test(mismatches_are_told),
        cmocka_unit_test(staleness),
        cmocka_unit_test(conditions_follow),
        cmocka_unit_test(events_of_transitions),
        cmocka_unit_test(reasons),
        cmocka_unit_test(rare_events),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(repeats_are_counted),
        cmocka_unit_test(documents_follow),
        cmocka_unit_test(documents_are_joined),
        cmocka_unit_test(lines_are_bounded),
        cmocka_unit_test(parsing_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
