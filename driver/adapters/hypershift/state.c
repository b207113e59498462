/* See state.h. */
#include "driver/adapters/hypershift/state.h"

#include <stdio.h>

#include "driver/adapters/hypershift/order.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"

/* ---- reading ---- */

struct hfd_hs_condition hfd_hs_condition_of(const json_t *object, const char *type)
{
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        const json_t *observed = json_object_get(c, "observedGeneration");

        if (!hfd_slice_is(hfd_json_text(c, "type"), type))
            continue;
        return (struct hfd_hs_condition){
            .found = true,
            .current = observed == NULL ||
                       json_integer_value(observed) >= hfd_hs_object_generation(object),
            .is_true = hfd_slice_is(hfd_json_text(c, "status"), "True"),
            .is_false = hfd_slice_is(hfd_json_text(c, "status"), "False"),
            .reason = hfd_json_text(c, "reason"),
            .message = hfd_json_text(c, "message"),
        };
    }
    return (struct hfd_hs_condition){.found = false};
}

int64_t hfd_hs_applied_generation(const json_t *object)
{
    const json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
    int64_t generation;

    return hfd_parse_i64(hfd_json_text(notes, HFD_HS_GENERATION), 1, INT64_MAX, &generation,
                         NULL) == HFD_OK
               ? generation
               : 0;
}

static void say(char *out, size_t size, hfd_slice text)
{
    (void)snprintf(out, size, "%.*s", (int)hfd_foreign_cut(text, size - 1),
                   text.p != NULL ? text.p : "");
}

/* Adds "BEFORE TEXT". */
static void add(char *out, size_t size, const char *before, hfd_slice text)
{
    const size_t used = strlen(out);

    (void)snprintf(out + used, size - used, "%s", before);
    say(out + strlen(out), size - strlen(out), text);
}

void hfd_hs_held_text(const json_t *object, char *out, size_t size)
{
    static const char *const types[] = {"HostedClusterDestroyed", "CloudResourcesDestroyed"};
    const json_t *left = json_object_get(json_object_get(object, "metadata"), "finalizers");

    out[0] = '\0';
    if (!hfd_hs_is_deleting(object))
        return;
    add(out, size, " since ", hfd_hs_metadata(object, "deletionTimestamp"));
    for (size_t i = 0; i < json_array_size(left); i++) {
        const json_t *one = json_array_get(left, i);

        add(out, size, i > 0 ? ", " : ": finalizers ",
            (hfd_slice){json_string_value(one), json_string_length(one)});
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const struct hfd_hs_condition c = hfd_hs_condition_of(object, types[i]);

        if (c.message.len == 0)
            continue;
        add(out, size, "; ", hfd_slice_of(types[i]));
        add(out, size, ": ", c.message);
    }
}

/* ---- gates ---- */

static bool is_open(const struct hfd_hs_condition *c)
{
    return c->found && c->current && c->is_true;
}

static void close_gate(struct hfd_hs_judgement *out, const char *gate,
                       const struct hfd_hs_condition *c)
{
    out->stage = HFD_HS_WAITS;
    out->gate = gate;
    say(out->reason, sizeof(out->reason), c->reason);
    say(out->message, sizeof(out->message),
        c->found && !c->current ? HFD_SLICE("HyperShift has not seen the last change yet")
                                : c->message);
}

/* A gate that is a condition. */
struct gate {
    const char *type;
    int weight;
    bool if_present; /* closed only by a condition that is there and not True */
};

/* Passes gates until one is closed. @return whether all were open */
static bool pass(const json_t *object, const struct gate *gates, size_t count,
                 struct hfd_hs_judgement *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct hfd_hs_condition c = hfd_hs_condition_of(object, gates[i].type);

        if (gates[i].if_present && !c.found)
            continue;
        if (!is_open(&c)) {
            close_gate(out, gates[i].type, &c);
            return false;
        }
        out->progress = gates[i].weight;
    }
    return true;
}

/* When a condition was first seen False at this generation; 0 = it was not. */
static int64_t refused_since(const struct hfd_hs_facts *facts, const char *type)
{
    int64_t since_us;

    if (json_integer_value(json_object_get(facts->refused, "generation")) != facts->generation ||
        hfd_time_parse(hfd_json_text(json_object_get(facts->refused, "since"), type), &since_us,
                       NULL) != HFD_OK)
        return 0;
    return since_us < facts->now_us ? since_us : facts->now_us;
}

/*
 * Finds conditions that only another order can mend. HyperShift says the same of faults that pass:
 * what it waits for is not there yet, a registry does not answer. So each is given time. The one
 * that was seen first decides.
 */
static bool find_refusal(const struct hfd_hs_facts *facts, const char *const *types, size_t count,
                         struct hfd_hs_judgement *out)
{
    struct hfd_hs_condition first = {.found = false};
    int64_t first_us = INT64_MAX;

    for (size_t i = 0; i < count && out->refusal_count < HFD_HS_REFUSALS_MAX; i++) {
        const struct hfd_hs_condition c = hfd_hs_condition_of(facts->object, types[i]);
        int64_t since_us = refused_since(facts, types[i]);

        /* One that has not seen the last change decides nothing, and ends nothing. */
        if (!c.found || !c.is_false || (!c.current && since_us == 0))
            continue;
        if (since_us == 0)
            since_us = facts->now_us;
        out->refusals[out->refusal_count++] = (struct hfd_hs_refusal){types[i], since_us};
        if (!c.current || since_us >= first_us)
            continue;
        first = c;
        first_us = since_us;
        out->gate = types[i];
    }
    if (!first.found)
        return false;
    out->stage = HFD_HS_REFUSED;
    if (facts->now_us - first_us < facts->grace_us) {
        out->stage = HFD_HS_WAITS;
        out->until_us = first_us + facts->grace_us;
    }
    say(out->reason, sizeof(out->reason),
        first.reason.len > 0 ? first.reason : hfd_slice_of(out->gate));
    say(out->message, sizeof(out->message), first.message);
    return true;
}

json_t *hfd_hs_refusals_json(const struct hfd_hs_judgement *j, int64_t generation)
{
    json_t *since = json_object();

    for (size_t i = 0; since != NULL && i < j->refusal_count; i++) {
        char text[HFD_TIME_TEXT_MAX];

        (void)hfd_time_format(j->refusals[i].since_us, text);
        if (json_object_set_new(since, j->refusals[i].type, json_string(text)) != 0) {
            json_decref(since);
            return NULL;
        }
    }
    return since != NULL
               ? json_pack("{s:I,s:o}", "generation", (json_int_t)generation, "since", since)
               : NULL;
}

/* Judges if the reached state is available now. A missing condition says nothing. */
static void judge_up(const json_t *object, const char *type, struct hfd_hs_judgement *out)
{
    const struct hfd_hs_condition c = hfd_hs_condition_of(object, type);

    out->up = object != NULL && !(c.found && c.is_false);
    say(out->down_reason, sizeof(out->down_reason),
        object == NULL     ? HFD_SLICE("NotFound")
        : c.reason.len > 0 ? c.reason
                           : hfd_slice_of(type));
    say(out->down_message, sizeof(out->down_message),
        object == NULL ? HFD_SLICE("the object is not there") : c.message);
}

static bool begin(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out)
{
    *out = (struct hfd_hs_judgement){.stage = HFD_HS_WAITS, .gate = "Applied"};
    return facts->object != NULL && !hfd_hs_is_deleting(facts->object) &&
           hfd_hs_applied_generation(facts->object) == facts->generation;
}

/* Waits for what no condition tells. @return false */
static bool wait_for(struct hfd_hs_judgement *out, const char *gate, const char *reason,
                     const char *message)
{
    out->stage = HFD_HS_WAITS;
    out->gate = gate;
    say(out->reason, sizeof(out->reason), hfd_slice_of(reason));
    say(out->message, sizeof(out->message), hfd_slice_of(message));
    return false;
}

/* ---- clusters ---- */

/* The newest entry of a version history: `version`, or `controlPlaneVersion`. */
static const json_t *version_of(const json_t *cluster, const char *of)
{
    const json_t *version = json_object_get(json_object_get(cluster, "status"), of);

    return json_array_get(json_object_get(version, "history"), 0);
}

/*
 * An update of a serving cluster is done when its release is rolled out and nothing progresses.
 * Without nodes the rollout stays Partial for ever, as some operators need nodes: the control plane
 * has to have the release then. Newer HyperShifts say that by itself.
 */
static bool update_is_done(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out)
{
    const json_t *cluster = facts->object, *spec = json_object_get(cluster, "spec");
    const json_t *whole = version_of(cluster, "version"),
                 *plane = version_of(cluster, "controlPlaneVersion");
    const json_t *newest = facts->wants_nodes || plane == NULL ? whole : plane;
    const bool may_be_partial = !facts->wants_nodes && plane == NULL;
    const struct hfd_hs_condition c = hfd_hs_condition_of(cluster, "Progressing");
    const hfd_slice image = hfd_json_text(newest, "image"), state = hfd_json_text(newest, "state"),
                    wanted = hfd_json_text(json_object_get(spec, "release"), "image");

    if (c.found && (!c.current || c.is_true)) {
        close_gate(out, "Progressing", &c);
        return false;
    }
    if ((image.len == 0 || hfd_slice_eq(image, wanted)) &&
        (may_be_partial || !hfd_slice_is(state, "Partial")))
        return true;
    return wait_for(out, "ClusterVersion", "Progressing", "the release is being rolled out");
}

static bool has_kubeconfig(const json_t *cluster, struct hfd_hs_judgement *out)
{
    const json_t *status = json_object_get(cluster, "status");

    if (hfd_json_text(json_object_get(status, "kubeconfig"), "name").len > 0)
        return true;
    return wait_for(out, "Kubeconfig", "KubeconfigWaitingForCreate",
                    "the kubeconfig is not published yet");
}

void hfd_hs_judge_cluster(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out)
{
    static const struct gate control_plane[] = {
        {"ValidConfiguration", 10, false},
        {"InfrastructureReady", 30, false},
        {"EtcdAvailable", 40, true},
        {"KubeAPIServerAvailable", 55, false},
        {"IgnitionEndpointAvailable", 60, true},
        {"Available", 85, false},
    };
    static const struct gate nodes[] = {{"ClusterVersionSucceeding", 95, false}};
    static const char *const fatal[] = {"SupportedHostedCluster", "ValidReleaseImage",
                                        "ValidHostedControlPlaneConfiguration",
                                        "PlatformCredentialsFound", "ValidConfiguration"};
    const json_t *object = facts->object;
    const struct hfd_hs_condition active = hfd_hs_condition_of(object, "ReconciliationActive");

    if (!begin(facts, out)) {
        judge_up(object, "Available", out);
        return;
    }
    judge_up(object, "Available", out);
    if (active.found && active.current && active.is_false) {
        out->stage = HFD_HS_PAUSED;
        out->gate = NULL;
        say(out->reason, sizeof(out->reason), active.reason);
        say(out->message, sizeof(out->message), active.message);
        return;
    }
    if (find_refusal(facts, fatal, sizeof(fatal) / sizeof(fatal[0]), out) ||
        !pass(object, control_plane, sizeof(control_plane) / sizeof(control_plane[0]), out) ||
        !has_kubeconfig(object, out) || (facts->wants_nodes && !pass(object, nodes, 1, out)) ||
        (facts->serves && !update_is_done(facts, out)))
        return;
    out->stage = HFD_HS_REACHED;
    out->gate = NULL;
    out->progress = 100;
}

/* ---- nodepools ---- */

/* HyperShift makes no machines for these platforms: it never says Ready. */
static bool has_machines(const json_t *pool)
{
    const json_t *platform = json_object_get(json_object_get(pool, "spec"), "platform");

    return !hfd_slice_is(hfd_json_text(platform, "type"), "None");
}

static bool is_updating(const json_t *pool, struct hfd_hs_judgement *out)
{
    static const char *const types[] = {"UpdatingVersion", "UpdatingConfig",
                                        "UpdatingPlatformMachineTemplate"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const struct hfd_hs_condition c = hfd_hs_condition_of(pool, types[i]);

        if (c.found && c.is_true) {
            close_gate(out, types[i], &c);
            return true;
        }
    }
    return false;
}

/* The fewest nodes that a spec asks for. @param scaling  "autoScaling", "auto_scaling" */
static json_int_t fewest_of(const json_t *spec, const char *scaling)
{
    const json_t *replicas = json_object_get(spec, "replicas");
    const json_t *min = json_object_get(json_object_get(spec, scaling), "min");

    return json_is_integer(replicas) ? json_integer_value(replicas)
           : json_is_integer(min)    ? json_integer_value(min)
                                     : 1;
}

bool hfd_hs_pool_wants_nodes(const json_t *spec)
{
    const json_t *raw = json_object_get(json_object_get(spec, "raw"), "node_pool");
    const json_t *patch = json_object_get(raw, "spec");
    const bool patched = json_is_integer(json_object_get(patch, "replicas")) ||
                         json_is_object(json_object_get(patch, "autoScaling"));

    return (patched ? fewest_of(patch, "autoScaling") : fewest_of(spec, "auto_scaling")) > 0;
}

/*
 * Where no node is wanted, machines are False for good: AsExpected, "NodePool set to no replicas";
 * NotFound, "No Machines are created".
 */
static bool pass_machines(const json_t *pool, struct hfd_hs_judgement *out)
{
    static const struct gate gates[] = {{"AllMachinesReady", 60, false},
                                        {"ReachedIgnitionEndpoint", 70, true},
                                        {"AllNodesHealthy", 85, false}};

    return fewest_of(json_object_get(pool, "spec"), "autoScaling") == 0 ||
           pass(pool, gates, sizeof(gates) / sizeof(gates[0]), out);
}

/* The number of nodes that the spec asks for; -1 = a range. */
static json_int_t wanted_of(const json_t *pool)
{
    const json_t *v = json_object_get(json_object_get(pool, "spec"), "replicas");

    return v != NULL ? json_integer_value(v) : -1;
}

static bool has_replicas(const json_t *pool, json_int_t wanted, struct hfd_hs_judgement *out)
{
    const json_t *v = json_object_get(json_object_get(pool, "status"), "replicas");
    const json_int_t have = json_integer_value(v);
    char words[80];

    if (wanted < 0 || have == wanted)
        return true;
    (void)snprintf(words, sizeof(words), "%lld of %lld nodes are available", (long long)have,
                   (long long)wanted);
    return wait_for(out, "Replicas", "Scaling", words);
}

/* Without machines the pool is done when HyperShift has accepted its version. */
static bool pass_without_machines(const json_t *pool, struct hfd_hs_judgement *out)
{
    if (hfd_json_text(json_object_get(pool, "status"), "version").len > 0)
        return true;
    return wait_for(out, "Version", "WaitingForVersion",
                    "HyperShift has not set the version of the nodepool yet");
}

void hfd_hs_judge_pool(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out)
{
    static const char *const fatal[] = {"ValidReleaseImage",    "ValidPlatformImage",
                                        "ValidMachineConfig",   "ValidTuningConfig",
                                        "ValidMachineTemplate", "UpdateManagementEnabled"};
    static const struct gate begin_gates[] = {{"ValidReleaseImage", 10, false}};
    static const struct gate payload[] = {{"ValidGeneratedPayload", 30, true}};
    static const struct gate ready[] = {{"Ready", 95, false}};
    const json_t *pool = facts->object;
    const json_int_t wanted = wanted_of(pool);
    const bool machines = has_machines(pool);
    const bool applied = begin(facts, out);

    judge_up(pool, "Ready", out);
    if (!machines)
        out->up = pool != NULL;
    if (!applied || find_refusal(facts, fatal, sizeof(fatal) / sizeof(fatal[0]), out) ||
        !pass(pool, begin_gates, 1, out))
        return;
    if (machines ? !pass(pool, payload, 1, out) || !pass_machines(pool, out) ||
                       !pass(pool, ready, 1, out) || !has_replicas(pool, wanted, out)
                 : !pass_without_machines(pool, out))
        return;
    if (is_updating(pool, out))
        return;
    out->stage = HFD_HS_REACHED;
    out->gate = NULL;
    out->progress = 100;
}
