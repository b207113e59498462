/* See verdict.h. */
#include "driver/health/verdict.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- line ---- */

/* A line of text with a ceiling. */
struct hfd_health_line {
    char text[HFD_HEALTH_LINE_MAX + 1];
    size_t len;
    bool cut;
};

/* Appends; a full line ignores what follows. */
static void add(struct hfd_health_line *line, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add(struct hfd_health_line *line, const char *fmt, ...)
{
    const size_t room = HFD_HEALTH_LINE_MAX - line->len;
    va_list ap;
    int n;

    if (line->cut)
        return;
    va_start(ap, fmt);
    n = vsnprintf(line->text + line->len, room + 1, fmt, ap);
    va_end(ap);
    line->cut = n < 0 || (size_t)n > room;
    line->len += line->cut ? room : (size_t)n;
}

/* The separator, unless the line is right behind `from`. */
static const char *next(const struct hfd_health_line *line, size_t from)
{
    return line->len > from ? ", " : "";
}

/* A copy in the arena; p is NULL when memory is short. */
static hfd_slice health_line_end(struct hfd_health_line *line, struct hfd_arena *mem)
{
    static const char dots[] = "...";

    if (line->cut) {
        line->len = HFD_HEALTH_LINE_MAX - (sizeof(dots) - 1);
        while (line->len > 0 && ((unsigned char)line->text[line->len] & 0xc0u) == 0x80u)
            line->len--;
        memcpy(line->text + line->len, dots, sizeof(dots) - 1);
        line->len += sizeof(dots) - 1;
        line->cut = false;
    }
    return hfd_arena_dup(mem, (hfd_slice){line->text, line->len});
}

/* ---- facts ---- */

/* The aggregates of a PacemakerCluster document, derived. */

/* Two nodes make a cluster with fencing. */
#define HFD_HEALTH_NODES_EXPECTED 2

static bool all_true(const struct hfd_conditions *cs, const char *const *types)
{
    for (; *types != NULL; types++)
        if (!hfd_health_is_true(cs, *types))
            return false;
    return true;
}

static bool unit_is_healthy(const struct hfd_health_unit *unit)
{
    static const char *const types[] = {"InService", "Managed", "Enabled",     "Operational",
                                        "Active",    "Started", "Schedulable", NULL};

    return all_true(&unit->conditions, types);
}

static void derive_node(const struct hfd_health_node *node, struct hfd_health_node_facts *out)
{
    static const char *const types[] = {"Online", "InService", "Active", "Ready",
                                        "Clean",  "Member",    NULL};
    bool resources_healthy = true;

    *out = (struct hfd_health_node_facts){.fencing_healthy = node->agents.count > 0};
    for (size_t i = 0; i < node->resources.count; i++) {
        out->resources[i] = unit_is_healthy(&node->resources.items[i]);
        resources_healthy = resources_healthy && out->resources[i];
    }
    for (size_t i = 0; i < node->agents.count; i++) {
        const struct hfd_conditions *reported = &node->agents.items[i].conditions;
        bool healthy;

        out->agents[i] = unit_is_healthy(&node->agents.items[i]);
        healthy = out->agents[i] && hfd_health_is_true(reported, "Healthy");
        out->fencing_available = out->fencing_available || healthy;
        out->fencing_healthy = out->fencing_healthy && healthy;
    }
    out->healthy =
        all_true(&node->conditions, types) && out->fencing_available && resources_healthy;
}

/* @param doc  one with a status */
static void health_derive(const struct hfd_health_document *doc, struct hfd_health_facts *out)
{
    *out = (struct hfd_health_facts){
        .in_service = hfd_health_is_true(&doc->conditions, "InService"),
        .count_as_expected = doc->node_count == HFD_HEALTH_NODES_EXPECTED,
    };
    out->healthy = out->count_as_expected;
    for (size_t i = 0; i < doc->node_count; i++) {
        derive_node(&doc->nodes[i], &out->nodes[i]);
        out->healthy = out->healthy && out->nodes[i].healthy;
        out->in_service =
            out->in_service && hfd_health_is_true(&doc->nodes[i].conditions, "InService");
    }
    out->healthy = out->healthy && out->in_service;
}

/* One reported aggregate beside what it should be. */
struct claim {
    const char *of; /* "node", "cluster", ... */
    hfd_slice name; /* which one; may be empty */
    const struct hfd_conditions *conditions;
    const char *type;
    bool derived;
};

static void compare(struct hfd_health_line *line, const struct claim *c)
{
    const bool reported = hfd_health_is_true(c->conditions, c->type);

    if (reported == c->derived)
        return;
    add(line, "%s%s%s%.*s: %s %s", line->len > 0 ? "; " : "", c->of, c->name.len > 0 ? " " : "",
        HFD_SLICE_FMT(c->name), c->type, reported ? "is reported True" : "is not reported True");
}

static void compare_units(struct hfd_health_line *line, const struct hfd_health_units *units,
                          const bool *derived, const char *of)
{
    for (size_t i = 0; i < units->count; i++)
        compare(line, &(struct claim){of, units->items[i].name, &units->items[i].conditions,
                                      "Healthy", derived[i]});
}

static void compare_node(struct hfd_health_line *line, const struct hfd_health_node *node,
                         const struct hfd_health_node_facts *facts)
{
    compare_units(line, &node->resources, facts->resources, "resource");
    compare_units(line, &node->agents, facts->agents, "fencing agent");
    compare(line, &(struct claim){"node", node->name, &node->conditions, "FencingAvailable",
                                  facts->fencing_available});
    compare(line, &(struct claim){"node", node->name, &node->conditions, "FencingHealthy",
                                  facts->fencing_healthy});
    if (facts->healthy && !hfd_health_is_true(&node->conditions, "FencingHealthy"))
        return; /* either value of Healthy is right */
    compare(line,
            &(struct claim){"node", node->name, &node->conditions, "Healthy", facts->healthy});
}

/*
 * Where reported aggregates differ from the derived ones: "node master-0: Healthy is reported
 * True". A node with FencingHealthy=False alone may report either value.
 * @param out  empty when all agree; at most HFD_HEALTH_LINE_MAX bytes
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc mismatches_of(const struct hfd_health_document *doc,
                            const struct hfd_health_facts *facts, struct hfd_arena *mem,
                            hfd_slice *out, struct hfd_err *err)
{
    struct hfd_health_line line = {.len = 0};

    for (size_t i = 0; i < doc->node_count; i++)
        compare_node(&line, &doc->nodes[i], &facts->nodes[i]);
    compare(&line, &(struct claim){"cluster", HFD_SLICE(""), &doc->conditions,
                                   "NodeCountAsExpected", facts->count_as_expected});
    compare(&line,
            &(struct claim){"cluster", HFD_SLICE(""), &doc->conditions, "Healthy", facts->healthy});
    *out = health_line_end(&line, mem);
    if (out->p == NULL)
        return hfd_fail_nomem(err, "compare the aggregates of a document");
    return HFD_OK;
}

/* ---- verdict ---- */

/* The verdict on a PacemakerCluster document. */

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
    const struct hfd_health_said said = {what, health_line_end(line, j->mem)};

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

    add(&line, "%s", text);
    say(j, what, &line);
}

/* The reported condition counts as well as the count. NULL: as expected. */
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
    return reported ? "Unexpected number of" : NULL;
}

/* "Cluster is unhealthy: Insufficient nodes in cluster (expected 2, found 1), Cluster is in ..." */
static void judge_cluster(struct judging *j)
{
    const bool in_maintenance = !hfd_health_is_true(&j->doc->conditions, "InService");
    const char *count = count_trouble(j->doc);
    struct hfd_health_line line = {.len = 0};
    size_t from;

    if (count == NULL && !in_maintenance)
        return;
    add(&line, "Cluster is unhealthy: ");
    from = line.len;
    if (count != NULL)
        add(&line, "%s nodes in cluster (expected %d, found %zu)", count, HFD_HEALTH_NODES_EXPECTED,
            j->doc->node_count);
    if (in_maintenance)
        add(&line, "%sCluster is in maintenance mode", next(&line, from));
    say(j, in_maintenance ? HFD_HEALTH_MAINTENANCE : HFD_HEALTH_NODE_COUNT, &line);
}

/*
 * The reported Healthy of the cluster counts when nothing explains it: there is no error, and the
 * nodes are reported Healthy.
 */
static void judge_reported(struct judging *j)
{
    const struct hfd_condition *healthy =
        hfd_condition_find(&j->doc->conditions, HFD_SLICE("Healthy"));
    struct hfd_health_line line = {.len = 0};

    if (healthy == NULL || healthy->status == HFD_STATUS_TRUE || j->out->error_count > 0)
        return;
    for (size_t i = 0; i < j->doc->node_count; i++)
        if (!hfd_health_is_true(&j->doc->nodes[i].conditions, "Healthy"))
            return;
    add(&line, "Cluster is unhealthy: %.*s",
        HFD_SLICE_FMT(healthy->message.len > 0 ? healthy->message : healthy->reason));
    say(j, HFD_HEALTH_CLUSTER_UNHEALTHY, &line);
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
        add(line, "%s%.*s %s", next(line, from), HFD_SLICE_FMT(unit->name), trouble_of(unit));
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

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (!hfd_health_is_true(&node->conditions, checks[i].type))
            add(line, "%s%s", next(line, from), checks[i].text);
    if (!fencing_available)
        add(line, "%sfencing unavailable (no agents running)", next(line, from));
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
    add(&line, "%.*s: fencing at risk (agent running but not managed for recovery)",
        HFD_SLICE_FMT(node->name));
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
        add(&line, "Node %.*s is offline", HFD_SLICE_FMT(node->name));
        say(j, HFD_HEALTH_NODE_OFFLINE, &line);
        return;
    }
    warned = warn_of_fencing(j, node, facts, available);
    add(&line, "%.*s node is unhealthy: ", HFD_SLICE_FMT(node->name));
    from = line.len;
    add_conditions(node, available, from, &line);
    add_resources(node, facts, from, &line);
    if (line.len == from && !warned && healthy != NULL && healthy->status != HFD_STATUS_TRUE)
        add(&line, "%.*s",
            HFD_SLICE_FMT(healthy->message.len > 0 ? healthy->message : healthy->reason));
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
    judge_reported(j);
    if (j->out->error_count > 0)
        j->out->overall = HFD_HEALTH_ERROR;
    else
        j->out->overall = j->out->warning_count > 0 ? HFD_HEALTH_WARNING : HFD_HEALTH_HEALTHY;
}

static void judge_stale(struct judging *j)
{
    struct hfd_health_line line = {.len = 0};
    char at[HFD_TIME_TEXT_MAX];

    j->out->stale = true;
    (void)hfd_time_format_s(j->doc->updated_us, at);
    add(&line, "Pacemaker status is stale (last updated: %s)", at);
    say(j, HFD_HEALTH_STALE, &line);
}

hfd_rc hfd_health_judge(const struct hfd_health_document *doc, bool late, struct hfd_arena *mem,
                        struct hfd_health_verdict *out, struct hfd_err *err)
{
    struct judging j = {.doc = doc, .mem = mem, .out = out};
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_health_verdict){
        .overall = HFD_HEALTH_UNKNOWN, .late = late, .mismatch = HFD_SLICE("")};
    if (!doc->has_status) {
        say_text(&j, HFD_HEALTH_NO_STATUS, "PacemakerCluster CR has no status populated");
        return j.short_of_memory ? hfd_fail_nomem(err, JUDGE) : HFD_OK;
    }
    health_derive(doc, &out->facts);
    if (late) {
        judge_stale(&j);
    } else {
        judge_status(&j);
        rc = mismatches_of(doc, &out->facts, mem, &out->mismatch, err);
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
        degraded.reason = available.reason;
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

/* ---- event ---- */

/* Events of PacemakerCluster verdicts. */

/* clang-format off */
static const struct {
    const char *reason;
    bool warning;
    const char *prefix;
} kinds[] = {
    [HFD_HEALTH_NODE_OFFLINE]     = {"PacemakerNodeOffline", true, "Pacemaker error: "},
    [HFD_HEALTH_NODE_UNHEALTHY]   = {"PacemakerNodeUnhealthy", true, "Pacemaker error: "},
    [HFD_HEALTH_NODE_COUNT]       = {"PacemakerInsufficientNodes", true, "Pacemaker error: "},
    [HFD_HEALTH_MAINTENANCE]      = {"PacemakerClusterInMaintenance", true, "Pacemaker error: "},
    [HFD_HEALTH_NO_NODES]         = {"PacemakerError", true, "Pacemaker error: "},
    [HFD_HEALTH_STALE]            = {"PacemakerStatusStale", true, "Pacemaker error: "},
    [HFD_HEALTH_CLUSTER_UNHEALTHY] = {"PacemakerClusterUnhealthy", true, "Pacemaker error: "},
    [HFD_HEALTH_NO_STATUS]        = {"PacemakerStatusMissing", true, "Pacemaker error: "},
    [HFD_HEALTH_NOT_FOUND]        = {"PacemakerCRNotFound", true, "Pacemaker error: "},
    [HFD_HEALTH_FENCING_AT_RISK]  = {"PacemakerWarning", true, "Pacemaker warning: "},
    [HFD_HEALTH_MISMATCH]         = {"AggregateMismatch", true, "Reported aggregates differ from their parts: "},
    [HFD_HEALTH_RECOVERED]        = {"PacemakerHealthy", false, ""},
    [HFD_HEALTH_WARNINGS_CLEARED] = {"PacemakerWarningsCleared", false, ""},
};
/* clang-format on */
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == HFD_HEALTH_FINDINGS, "one row a finding");

const char *hfd_health_reason(enum hfd_health_finding what)
{
    return kinds[what].reason;
}

/* The making of a list. After short memory it stays failed. */
struct telling {
    struct hfd_health_events *out;
    struct hfd_arena *mem;
    bool failed;
};

static void tell(struct telling *t, enum hfd_health_finding what, hfd_slice text)
{
    const hfd_slice message =
        hfd_arena_printf(t->mem, "%s%.*s", kinds[what].prefix, HFD_SLICE_FMT(text));

    HFD_ASSERT(t->out->count < HFD_HEALTH_EVENTS_MAX);
    t->out->items[t->out->count++] =
        (struct hfd_health_event){kinds[what].warning, kinds[what].reason, message};
    t->failed = t->failed || message.p == NULL;
}

static bool is_operational(const struct hfd_health_verdict *v)
{
    return v->overall == HFD_HEALTH_HEALTHY || v->overall == HFD_HEALTH_WARNING;
}

static bool warnings_ended(const struct hfd_health_verdict *before,
                           const struct hfd_health_verdict *now)
{
    return before != NULL && before->warning_count > 0 && now->warning_count == 0 &&
           now->overall != HFD_HEALTH_UNKNOWN;
}

hfd_rc hfd_health_events(const struct hfd_health_verdict *before,
                         const struct hfd_health_verdict *now, struct hfd_arena *mem,
                         struct hfd_health_events *out, struct hfd_err *err)
{
    struct telling t = {out, mem, false};

    out->count = 0;
    for (size_t i = 0; i < now->warning_count; i++)
        tell(&t, now->warnings[i].what, now->warnings[i].text);
    for (size_t i = 0; i < now->error_count; i++)
        if (now->errors[i].what != HFD_HEALTH_NO_STATUS || now->late)
            tell(&t, now->errors[i].what, now->errors[i].text);
    if (now->mismatch.len > 0)
        tell(&t, HFD_HEALTH_MISMATCH, now->mismatch);
    if (is_operational(now) && (before == NULL || !is_operational(before)))
        tell(&t, HFD_HEALTH_RECOVERED,
             HFD_SLICE("Pacemaker cluster is healthy - all nodes have healthy critical "
                       "resources"));
    if (warnings_ended(before, now))
        tell(&t, HFD_HEALTH_WARNINGS_CLEARED, HFD_SLICE("Pacemaker cluster warnings cleared"));
    return t.failed ? hfd_fail_nomem(err, "write the events of a verdict") : HFD_OK;
}

/* ---- show ---- */

/* A PacemakerCluster document and its verdict as the API shows them. */

/* @param lead  what comes before the value: "{\"stale\":" */
static void add_bool(struct hfd_buf *b, const char *lead, bool value)
{
    hfd_buf_addf(b, "%s%s", lead, value ? "true" : "false");
}

static void add_lines(struct hfd_buf *b, const char *name, const struct hfd_health_said *said,
                      size_t count)
{
    hfd_buf_addf(b, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        hfd_buf_comma(b, i);
        hfd_buf_json_str(b, said[i].text);
    }
    hfd_buf_addc(b, ']');
}

static void add_units(struct hfd_buf *b, const char *name, const struct hfd_health_units *units,
                      const bool *healthy)
{
    hfd_buf_addf(b, ",\"%s\":[", name);
    for (size_t i = 0; i < units->count; i++) {
        hfd_buf_addf(b, "%s{\"name\":", i > 0 ? "," : "");
        hfd_buf_json_str(b, units->items[i].name);
        add_bool(b, ",\"Healthy\":", healthy[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void add_node(struct hfd_buf *b, const struct hfd_health_node *node,
                     const struct hfd_health_node_facts *facts)
{
    hfd_buf_member_str(b, "{\"nodeName\":", node->name);
    add_bool(b, ",\"Healthy\":", facts->healthy);
    add_bool(b, ",\"FencingAvailable\":", facts->fencing_available);
    add_bool(b, ",\"FencingHealthy\":", facts->fencing_healthy);
    add_units(b, "resources", &node->resources, facts->resources);
    add_units(b, "fencingAgents", &node->agents, facts->agents);
    hfd_buf_addc(b, '}');
}

static void add_derived(struct hfd_buf *b, const struct hfd_health_view *view)
{
    const struct hfd_health_facts *facts = &view->verdict.facts;

    add_bool(b, ",\"derived\":{\"Healthy\":", facts->healthy);
    add_bool(b, ",\"InService\":", facts->in_service);
    add_bool(b, ",\"NodeCountAsExpected\":", facts->count_as_expected);
    hfd_buf_lit(b, ",\"nodes\":[");
    for (size_t i = 0; i < view->document.node_count; i++) {
        hfd_buf_comma(b, i);
        add_node(b, &view->document.nodes[i], &facts->nodes[i]);
    }
    hfd_buf_lit(b, "]}");
}

void hfd_health_format(struct hfd_buf *b, const struct hfd_health_view *view)
{
    const struct hfd_health_verdict *v = &view->verdict;

    hfd_buf_add(b, (hfd_slice){view->text.p, view->text.len - 1}); /* without the last brace */
    hfd_buf_addf(b, ",\"health\":{\"overall\":\"%s\"", hfd_health_overall_name(v->overall));
    add_bool(b, ",\"stale\":", v->stale);
    if (view->document.has_status)
        hfd_buf_member_time(b, ",\"last_updated\":", view->document.updated_us);
    add_lines(b, "errors", v->errors, v->error_count);
    add_lines(b, "warnings", v->warnings, v->warning_count);
    if (view->document.has_status)
        add_derived(b, view);
    hfd_buf_lit(b, "}}");
}
