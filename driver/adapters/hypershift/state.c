/* See state.h. */
#include "driver/adapters/hypershift/state.h"

#include <stdio.h>

#include "driver/adapters/hypershift/names.h"

#define INVALID_MAX_US INT64_C(60000000) /* missing PKI secrets at the begin heal by themselves */

/* ---- reading ---- */

static hfd_slice text_in(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return (hfd_slice){json_string_value(v), json_string_length(v)};
}

static int64_t generation_of(const json_t *object)
{
    return json_integer_value(json_object_get(json_object_get(object, "metadata"), "generation"));
}

struct hfd_hs_condition hfd_hs_condition_of(const json_t *object, const char *type)
{
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        const json_t *observed = json_object_get(c, "observedGeneration");

        if (!hfd_slice_is(text_in(c, "type"), type))
            continue;
        return (struct hfd_hs_condition){
            .found = true,
            .current = observed == NULL || json_integer_value(observed) >= generation_of(object),
            .is_true = hfd_slice_is(text_in(c, "status"), "True"),
            .is_false = hfd_slice_is(text_in(c, "status"), "False"),
            .reason = text_in(c, "reason"),
            .message = text_in(c, "message"),
        };
    }
    return (struct hfd_hs_condition){.found = false};
}

hfd_slice hfd_hs_metadata(const json_t *object, const char *key)
{
    return text_in(json_object_get(object, "metadata"), key);
}

hfd_slice hfd_hs_label(const json_t *object, const char *key)
{
    return text_in(json_object_get(json_object_get(object, "metadata"), "labels"), key);
}

int64_t hfd_hs_applied_generation(const json_t *object)
{
    const json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
    int64_t generation;

    return hfd_parse_i64(text_in(notes, HFD_HS_GENERATION), 1, INT64_MAX, &generation, NULL) ==
                   HFD_OK
               ? generation
               : 0;
}

bool hfd_hs_is_deleting(const json_t *object)
{
    return hfd_hs_metadata(object, "deletionTimestamp").len > 0;
}

/* ---- gates ---- */

static void say(char *out, size_t size, hfd_slice text)
{
    (void)snprintf(out, size, "%.*s", (int)(text.len < size ? text.len : size - 1),
                   text.p != NULL ? text.p : "");
}

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

static bool refuse(struct hfd_hs_judgement *out, const char *type, const struct hfd_hs_condition *c)
{
    out->stage = HFD_HS_REFUSED;
    out->gate = type;
    say(out->reason, sizeof(out->reason), c->reason.len > 0 ? c->reason : hfd_slice_of(type));
    say(out->message, sizeof(out->message), c->message);
    return true;
}

/* Finds a condition that only another order can mend. */
static bool find_refusal(const json_t *object, const char *const *types, size_t count,
                         struct hfd_hs_judgement *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct hfd_hs_condition c = hfd_hs_condition_of(object, types[i]);

        if (c.found && c.current && c.is_false && !hfd_slice_is(c.reason, "SecretNotFound"))
            return refuse(out, types[i], &c);
    }
    return false;
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

/* ---- clusters ---- */

bool hfd_hs_is_invalid(const json_t *cluster)
{
    const struct hfd_hs_condition c = hfd_hs_condition_of(cluster, "ValidConfiguration");

    return c.found && c.current && c.is_false;
}

static bool cluster_is_refused(const struct hfd_hs_facts *facts, struct hfd_hs_judgement *out)
{
    static const char *const types[] = {"SupportedHostedCluster", "ValidReleaseImage",
                                        "ValidHostedControlPlaneConfiguration",
                                        "PlatformCredentialsFound"};
    const struct hfd_hs_condition c = hfd_hs_condition_of(facts->object, "ValidConfiguration");

    if (find_refusal(facts->object, types, sizeof(types) / sizeof(types[0]), out))
        return true;
    return hfd_hs_is_invalid(facts->object) &&
           (facts->invalid_for_us > INVALID_MAX_US ||
            hfd_slice_is(c.reason, "InvalidConfiguration")) &&
           refuse(out, "ValidConfiguration", &c);
}

/* The newest entry of the version history. */
static const json_t *version_of(const json_t *cluster)
{
    const json_t *version = json_object_get(json_object_get(cluster, "status"), "version");

    return json_array_get(json_object_get(version, "history"), 0);
}

/* An update of a serving cluster is done when its release is rolled out and nothing progresses. */
static bool update_is_done(const json_t *cluster, struct hfd_hs_judgement *out)
{
    const json_t *spec = json_object_get(cluster, "spec"), *newest = version_of(cluster);
    const struct hfd_hs_condition c = hfd_hs_condition_of(cluster, "Progressing");
    const hfd_slice image = text_in(newest, "image"), state = text_in(newest, "state"),
                    wanted = text_in(json_object_get(spec, "release"), "image");

    if (c.found && (!c.current || c.is_true)) {
        close_gate(out, "Progressing", &c);
        return false;
    }
    if ((image.len == 0 || hfd_slice_eq(image, wanted)) && !hfd_slice_is(state, "Partial"))
        return true;
    out->stage = HFD_HS_WAITS;
    out->gate = "ClusterVersion";
    say(out->reason, sizeof(out->reason), HFD_SLICE("Progressing"));
    say(out->message, sizeof(out->message), HFD_SLICE("the release is being rolled out"));
    return false;
}

static bool has_kubeconfig(const json_t *cluster, struct hfd_hs_judgement *out)
{
    const json_t *status = json_object_get(cluster, "status");

    if (text_in(json_object_get(status, "kubeconfig"), "name").len > 0)
        return true;
    out->stage = HFD_HS_WAITS;
    out->gate = "Kubeconfig";
    say(out->reason, sizeof(out->reason), HFD_SLICE("KubeconfigWaitingForCreate"));
    say(out->message, sizeof(out->message), HFD_SLICE("the kubeconfig is not published yet"));
    return false;
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
    if (cluster_is_refused(facts, out) ||
        !pass(object, control_plane, sizeof(control_plane) / sizeof(control_plane[0]), out) ||
        !has_kubeconfig(object, out) || (facts->wants_nodes && !pass(object, nodes, 1, out)) ||
        (facts->serves && !update_is_done(object, out)))
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

    return !hfd_slice_is(text_in(platform, "type"), "None");
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

/* With `replicas: 0` machines are False for good: AsExpected, "NodePool set to no replicas". */
static bool pass_machines(const json_t *pool, json_int_t wanted, struct hfd_hs_judgement *out)
{
    static const struct gate gates[] = {{"AllMachinesReady", 60, false},
                                        {"ReachedIgnitionEndpoint", 70, true},
                                        {"AllNodesHealthy", 85, false}};

    return wanted == 0 || pass(pool, gates, sizeof(gates) / sizeof(gates[0]), out);
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

    if (wanted < 0 || have == wanted)
        return true;
    out->stage = HFD_HS_WAITS;
    out->gate = "Replicas";
    say(out->reason, sizeof(out->reason), HFD_SLICE("Scaling"));
    (void)snprintf(out->message, sizeof(out->message), "%lld of %lld nodes are available",
                   (long long)have, (long long)wanted);
    return false;
}

/* Without machines the pool is done when HyperShift has accepted its version. */
static bool pass_without_machines(const json_t *pool, struct hfd_hs_judgement *out)
{
    if (text_in(json_object_get(pool, "status"), "version").len > 0)
        return true;
    out->stage = HFD_HS_WAITS;
    out->gate = "Version";
    say(out->reason, sizeof(out->reason), HFD_SLICE("WaitingForVersion"));
    say(out->message, sizeof(out->message),
        HFD_SLICE("HyperShift has not set the version of the nodepool yet"));
    return false;
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
    if (!applied || find_refusal(pool, fatal, sizeof(fatal) / sizeof(fatal[0]), out) ||
        !pass(pool, begin_gates, 1, out))
        return;
    if (machines ? !pass(pool, payload, 1, out) || !pass_machines(pool, wanted, out) ||
                       !pass(pool, ready, 1, out) || !has_replicas(pool, wanted, out)
                 : !pass_without_machines(pool, out))
        return;
    if (is_updating(pool, out))
        return;
    out->stage = HFD_HS_REACHED;
    out->gate = NULL;
    out->progress = 100;
}
