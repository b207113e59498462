/* A PacemakerCluster document and its verdict as the API shows them. See show.h. */
#include "driver/health/show.h"

static void add_bool(struct hfd_buf *b, const char *name, bool value)
{
    hfd_buf_addf(b, "\"%s\":%s", name, value ? "true" : "false");
}

static void add_lines(struct hfd_buf *b, const char *name, const struct hfd_health_said *said,
                      size_t count)
{
    hfd_buf_addf(b, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
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
        hfd_buf_addc(b, ',');
        add_bool(b, "Healthy", healthy[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void add_node(struct hfd_buf *b, const struct hfd_health_node *node,
                     const struct hfd_health_node_facts *facts)
{
    hfd_buf_member_str(b, "{\"nodeName\":", node->name);
    hfd_buf_addc(b, ',');
    add_bool(b, "Healthy", facts->healthy);
    hfd_buf_addc(b, ',');
    add_bool(b, "FencingAvailable", facts->fencing_available);
    hfd_buf_addc(b, ',');
    add_bool(b, "FencingHealthy", facts->fencing_healthy);
    add_units(b, "resources", &node->resources, facts->resources);
    add_units(b, "fencingAgents", &node->agents, facts->agents);
    hfd_buf_addc(b, '}');
}

static void add_derived(struct hfd_buf *b, const struct hfd_health_view *view)
{
    const struct hfd_health_facts *facts = &view->verdict.facts;

    hfd_buf_lit(b, ",\"derived\":{");
    add_bool(b, "Healthy", facts->healthy);
    hfd_buf_addc(b, ',');
    add_bool(b, "InService", facts->in_service);
    hfd_buf_addc(b, ',');
    add_bool(b, "NodeCountAsExpected", facts->count_as_expected);
    hfd_buf_lit(b, ",\"nodes\":[");
    for (size_t i = 0; i < view->document.node_count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_node(b, &view->document.nodes[i], &facts->nodes[i]);
    }
    hfd_buf_lit(b, "]}");
}

void hfd_health_format(struct hfd_buf *b, const struct hfd_health_view *view)
{
    const struct hfd_health_verdict *v = &view->verdict;

    hfd_buf_add(b, (hfd_slice){view->text.p, view->text.len - 1}); /* without the last brace */
    hfd_buf_addf(b, ",\"health\":{\"overall\":\"%s\",", hfd_health_overall_name(v->overall));
    add_bool(b, "stale", v->stale);
    if (view->document.has_status)
        hfd_buf_member_time(b, ",\"last_updated\":", view->document.updated_us);
    add_lines(b, "errors", v->errors, v->error_count);
    add_lines(b, "warnings", v->warnings, v->warning_count);
    if (view->document.has_status)
        add_derived(b, view);
    hfd_buf_lit(b, "}}");
}
