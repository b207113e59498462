/* The aggregates of a PacemakerCluster document, derived. See facts.h. */
#include "driver/health/facts.h"

#include "driver/health/line.h"

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
        out->agents[i] = unit_is_healthy(&node->agents.items[i]);
        out->fencing_available = out->fencing_available || out->agents[i];
        out->fencing_healthy = out->fencing_healthy && out->agents[i];
    }
    out->healthy =
        all_true(&node->conditions, types) && out->fencing_available && resources_healthy;
}

void hfd_health_derive(const struct hfd_health_document *doc, struct hfd_health_facts *out)
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
    hfd_health_line_next(line, 0, "; ");
    hfd_health_line_word(line, c->of);
    if (c->name.len > 0)
        hfd_health_line_word(line, " ");
    hfd_health_line_add(line, c->name);
    hfd_health_line_word(line, ": ");
    hfd_health_line_word(line, c->type);
    hfd_health_line_word(line, reported ? " is reported True" : " is not reported True");
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

hfd_rc hfd_health_mismatches(const struct hfd_health_document *doc,
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
    *out = hfd_health_line_end(&line, mem);
    if (out->p == NULL)
        return hfd_fail_nomem(err, "compare the aggregates of a document");
    return HFD_OK;
}
