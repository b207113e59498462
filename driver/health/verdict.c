/* The verdict on a PacemakerCluster document. See verdict.h. */
#include "driver/health/verdict.h"

#include <stdio.h>

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/health/line.h"

#define JUDGE "judge a PacemakerCluster document"

const char *hfd_health_overall_name(enum hfd_health_overall overall)
{
    static const char *const names[] = {
        [HFD_HEALTH_HEALTHY] = "Healthy",
        [HFD_HEALTH_WARNING] = "Warning",
        [HFD_HEALTH_ERROR] = "Error",
        [HFD_HEALTH_UNKNOWN] = "Unknown",
    };

    return names[overall];
}

/* The judging of one document. text.p == NULL anywhere: memory is short. */
struct judging {
    const struct hfd_health_document *doc;
    struct hfd_arena *mem;
    struct hfd_health_verdict *out;
    bool short_of_memory;
};

static void say(struct judging *j, enum hfd_health_finding what, struct hfd_health_line *line)
{
    const bool warns = what == HFD_HEALTH_FENCING_AT_RISK;
    const struct hfd_health_said said = {what, hfd_health_line_end(line, j->mem)};

    j->short_of_memory = j->short_of_memory || said.text.p == NULL;
    if (warns) {
        HFD_ASSERT(j->out->warning_count < HFD_HEALTH_SAID_MAX);
        j->out->warnings[j->out->warning_count++] = said;
    } else {
        HFD_ASSERT(j->out->error_count < HFD_HEALTH_SAID_MAX);
        j->out->errors[j->out->error_count++] = said;
    }
}

static void say_text(struct judging *j, enum hfd_health_finding what, const char *text)
{
    struct hfd_health_line line = {.len = 0};

    hfd_health_line_word(&line, text);
    say(j, what, &line);
}

/* The reported reason counts as well as the count. NULL: as expected. */
static const char *count_trouble(const struct hfd_health_document *doc)
{
    const struct hfd_condition *c =
        hfd_condition_find(&doc->conditions, HFD_SLICE("NodeCountAsExpected"));
    const bool reported = c != NULL && c->status != HFD_STATUS_TRUE;

    if (doc->node_count < HFD_HEALTH_NODES_EXPECTED ||
        (reported && hfd_slice_is(c->reason, "InsufficientNodes")))
        return "Insufficient";
    if (doc->node_count > HFD_HEALTH_NODES_EXPECTED ||
        (reported && hfd_slice_is(c->reason, "ExcessiveNodes")))
        return "Excessive";
    return NULL;
}

/* "Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 1), Cluster is in ..." */
static void judge_cluster(struct judging *j)
{
    const bool in_maintenance = !hfd_health_is_true(&j->doc->conditions, "InService");
    const char *count = count_trouble(j->doc);
    struct hfd_health_line line = {.len = 0};
    char found[80];
    size_t from;

    if (count == NULL && !in_maintenance)
        return;
    hfd_health_line_word(&line, "Cluster is unhealthy: ");
    from = line.len;
    if (count != NULL) {
        (void)snprintf(found, sizeof(found), "%s nodes in cluster (expected %d, found %zu)", count,
                       HFD_HEALTH_NODES_EXPECTED, j->doc->node_count);
        hfd_health_line_word(&line, found);
    }
    if (in_maintenance) {
        hfd_health_line_next(&line, from, ", ");
        hfd_health_line_word(&line, "Cluster is in maintenance mode");
    }
    say(j, in_maintenance ? HFD_HEALTH_MAINTENANCE : HFD_HEALTH_NODE_COUNT, &line);
}

/* The first that applies says what is wrong with a resource. */
static const char *trouble_of(const struct hfd_health_unit *unit)
{
    static const struct {
        const char *type, *text;
    } checks[] = {
        {"Operational", "has failed"},
        {"Started", "is stopped"},
        {"Active", "is not active"},
        {"Managed", "is unmanaged"},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (!hfd_health_is_true(&unit->conditions, checks[i].type))
            return checks[i].text;
    return "is unhealthy";
}

static void add_resources(const struct hfd_health_node *node,
                          const struct hfd_health_node_facts *facts, size_t from,
                          struct hfd_health_line *line)
{
    for (size_t i = 0; i < node->resources.count; i++) {
        const struct hfd_health_unit *unit = &node->resources.items[i];

        if (facts->resources[i] && hfd_health_is_true(&unit->conditions, "Healthy"))
            continue;
        hfd_health_line_next(line, from, ", ");
        hfd_health_line_add(line, unit->name);
        hfd_health_line_word(line, " ");
        hfd_health_line_word(line, trouble_of(unit));
    }
}

/* Ready is not among them: a pending node is on its way. */
static void add_conditions(const struct hfd_health_node *node, bool fencing_available, size_t from,
                           struct hfd_health_line *line)
{
    static const struct {
        const char *type, *text;
    } checks[] = {
        {"InService", "in maintenance mode"},
        {"Active", "in standby mode"},
        {"Clean", "unclean state (fencing/communication issue)"},
        {"Member", "not a cluster member"},
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (hfd_health_is_true(&node->conditions, checks[i].type))
            continue;
        hfd_health_line_next(line, from, ", ");
        hfd_health_line_word(line, checks[i].text);
    }
    if (!fencing_available) {
        hfd_health_line_next(line, from, ", ");
        hfd_health_line_word(line, "fencing unavailable (no agents running)");
    }
}

/* @return whether fencing has lost its redundancy; it is then a warning */
static bool warn_of_fencing(struct judging *j, const struct hfd_health_node *node,
                            const struct hfd_health_node_facts *facts, bool available)
{
    const bool healthy =
        facts->fencing_healthy && hfd_health_is_true(&node->conditions, "FencingHealthy");
    struct hfd_health_line line = {.len = 0};

    if (healthy || !available)
        return false;
    hfd_health_line_add(&line, node->name);
    hfd_health_line_word(&line, ": fencing at risk (agent running but not managed for recovery)");
    say(j, HFD_HEALTH_FENCING_AT_RISK, &line);
    return true;
}

/* Nothing else is said about a node that is offline. */
static void judge_node(struct judging *j, const struct hfd_health_node *node,
                       const struct hfd_health_node_facts *facts)
{
    const bool available =
        facts->fencing_available && hfd_health_is_true(&node->conditions, "FencingAvailable");
    const struct hfd_condition *healthy =
        hfd_condition_find(&node->conditions, HFD_SLICE("Healthy"));
    struct hfd_health_line line = {.len = 0};
    bool warned;
    size_t from;

    if (!hfd_health_is_true(&node->conditions, "Online")) {
        hfd_health_line_word(&line, "Node ");
        hfd_health_line_add(&line, node->name);
        hfd_health_line_word(&line, " is offline");
        say(j, HFD_HEALTH_NODE_OFFLINE, &line);
        return;
    }
    warned = warn_of_fencing(j, node, facts, available);
    hfd_health_line_add(&line, node->name);
    hfd_health_line_word(&line, " node is unhealthy: ");
    from = line.len;
    add_conditions(node, available, from, &line);
    add_resources(node, facts, from, &line);
    if (line.len == from && !warned && healthy != NULL && healthy->status != HFD_STATUS_TRUE)
        hfd_health_line_add(&line, healthy->message.len > 0 ? healthy->message : healthy->reason);
    if (line.len > from)
        say(j, HFD_HEALTH_NODE_UNHEALTHY, &line);
}

static void judge_status(struct judging *j)
{
    const struct hfd_health_document *doc = j->doc;

    judge_cluster(j);
    if (doc->node_count == 0)
        say_text(j, HFD_HEALTH_NO_NODES, "No nodes found in cluster");
    for (size_t i = 0; i < doc->node_count; i++)
        judge_node(j, &doc->nodes[i], &j->out->facts.nodes[i]);
    if (j->out->error_count > 0)
        j->out->overall = HFD_HEALTH_ERROR;
    else
        j->out->overall = j->out->warning_count > 0 ? HFD_HEALTH_WARNING : HFD_HEALTH_HEALTHY;
}

static void judge_stale(struct judging *j)
{
    static const char before[] = "Pacemaker status is stale (last updated: ";
    struct hfd_health_line line = {.len = 0};
    char at[HFD_TIME_TEXT_MAX];

    j->out->stale = true;
    (void)hfd_time_format_s(j->doc->updated_us, at);
    hfd_health_line_word(&line, before);
    hfd_health_line_word(&line, at);
    hfd_health_line_word(&line, ")");
    say(j, HFD_HEALTH_STALE, &line);
}

int64_t hfd_health_stale_us(const struct hfd_health_document *doc, int64_t received_us)
{
    return (doc->updated_us < received_us ? doc->updated_us : received_us) +
           HFD_HEALTH_STALE_AFTER_US;
}

hfd_rc hfd_health_judge(const struct hfd_health_document *doc, bool stale, struct hfd_arena *mem,
                        struct hfd_health_verdict *out, struct hfd_err *err)
{
    struct judging j = {.doc = doc, .mem = mem, .out = out};
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_health_verdict){.overall = HFD_HEALTH_UNKNOWN, .mismatch = HFD_SLICE("")};
    if (!doc->has_status) {
        say_text(&j, HFD_HEALTH_NO_STATUS, "PacemakerCluster CR has no status populated");
        return j.short_of_memory ? hfd_fail_nomem(err, JUDGE) : HFD_OK;
    }
    hfd_health_derive(doc, &out->facts);
    if (stale) {
        judge_stale(&j);
    } else {
        judge_status(&j);
        rc = hfd_health_mismatches(doc, &out->facts, mem, &out->mismatch, err);
    }
    return rc == HFD_OK && j.short_of_memory ? hfd_fail_nomem(err, JUDGE) : rc;
}

/* Joined with "; ". HFD_HEALTH_SAID_MAX lines stay far below what a condition's message may have.
 */
static hfd_slice join(const struct hfd_health_said *said, size_t count, struct hfd_arena *mem)
{
    size_t len = 0;
    char *text;

    for (size_t i = 0; i < count; i++)
        len += said[i].text.len + 2;
    text = hfd_arena_alloc(mem, len + 1);
    if (text == NULL)
        return HFD_SLICE_NONE;
    len = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            memcpy(text + len, "; ", 2);
            len += 2;
        }
        memcpy(text + len, said[i].text.p, said[i].text.len);
        len += said[i].text.len;
    }
    return (hfd_slice){text, len};
}

hfd_rc hfd_health_conditions(const struct hfd_health_verdict *v, bool known_before,
                             struct hfd_arena *mem, struct hfd_condition out[2],
                             struct hfd_err *err)
{
    struct hfd_condition available = {.type = HFD_SLICE("Available")};
    struct hfd_condition degraded = {.type = HFD_SLICE(HFD_HEALTH_DEGRADED)};

    available.message = v->overall == HFD_HEALTH_WARNING ? join(v->warnings, v->warning_count, mem)
                                                         : join(v->errors, v->error_count, mem);
    if (available.message.p == NULL)
        return hfd_fail_nomem(err, JUDGE);
    if (v->overall == HFD_HEALTH_HEALTHY || v->overall == HFD_HEALTH_WARNING) {
        available.status = HFD_STATUS_TRUE;
        available.reason = v->overall == HFD_HEALTH_HEALTHY ? HFD_SLICE("PacemakerHealthy")
                                                            : HFD_SLICE("PacemakerWarning");
        if (v->overall == HFD_HEALTH_HEALTHY)
            available.message = HFD_SLICE("Pacemaker cluster is healthy - all nodes have healthy "
                                          "critical resources");
        degraded.status = HFD_STATUS_FALSE;
        degraded.reason = available.reason;
    } else if (v->overall == HFD_HEALTH_ERROR || known_before) {
        available.status = HFD_STATUS_FALSE;
        available.reason = v->overall == HFD_HEALTH_ERROR ? HFD_SLICE("PacemakerUnhealthy")
                                                          : HFD_SLICE("PacemakerStatusStale");
        degraded.status = HFD_STATUS_TRUE;
        degraded.reason = HFD_SLICE("PacemakerUnhealthy");
    } else {
        available.status = HFD_STATUS_UNKNOWN;
        available.reason =
            v->stale ? HFD_SLICE("PacemakerStatusStale") : HFD_SLICE("PacemakerStatusMissing");
        degraded.status = HFD_STATUS_UNKNOWN;
        degraded.reason = available.reason;
    }
    degraded.message = available.message;
    out[0] = available;
    out[1] = degraded;
    return HFD_OK;
}
