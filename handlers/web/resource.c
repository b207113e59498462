/* See resource.h. */
#include "handlers/web/resource.h"

#include "driver/fleet/fleet.h"
#include "handlers/web/html.h"

static void term(struct hfd_html *h, const char *name)
{
    hfd_html_lit(h, "<dt>");
    hfd_html_str(h, name);
    hfd_html_lit(h, "</dt><dd>");
}

static void text_row(struct hfd_html *h, const char *name, hfd_slice value)
{
    if (value.len == 0)
        return;
    term(h, name);
    hfd_html_text(h, value);
    hfd_html_lit(h, "</dd>");
}

static void time_row(struct hfd_html *h, const char *name, int64_t at_us)
{
    if (at_us == 0)
        return;
    term(h, name);
    hfd_html_time(h, at_us);
    hfd_html_lit(h, "</dd>");
}

static void summary(struct hfd_html *h, const struct hfd_detail *d)
{
    const struct hfd_overview_item *i = &d->item;

    hfd_html_lit(h, "<dl>");
    term(h, "State");
    if (d->is_there)
        hfd_web_state(h, i);
    else
        hfd_html_lit(h, "<span class=\"w\">removed</span>");
    if (i->operation != NULL) {
        hfd_html_lit(h, " (");
        hfd_html_str(h, i->operation);
        hfd_html_lit(h, ")");
    }
    hfd_html_lit(h, "</dd>");
    if (i->started_us != 0) {
        term(h, "Progress");
        hfd_web_progress(h, i);
        hfd_html_lit(h, "</dd>");
    }
    text_row(h, "Error", i->code);
    text_row(h, "Message", i->message);
    time_row(h, "Since", i->since_us);
    time_row(h, "Due", i->deadline_us);
    text_row(h, "Type", i->type);
    text_row(h, "Health", i->health);
    text_row(h, "Labels", i->labels);
    text_row(h, "Ordered by", d->created_by);
    text_row(h, "Changed by", d->updated_by);
    time_row(h, "Ordered", i->created_us);
    text_row(h, "Cluster id", i->cluster_id);
    hfd_html_lit(h, "</dl>");
}

/* ---- adapters and conditions ---- */

static void adapter_row(struct hfd_html *h, const struct hfd_detail_adapter *a)
{
    hfd_html_lit(h, "<tr><th scope=\"row\">");
    hfd_html_text(h, a->name);
    hfd_html_str(h, a->required ? "" : " (not required)");
    hfd_html_lit(h, "</th><td data-h=\"On\">");
    hfd_html_str(h, hfd_kind_word(a->part->view.kind));
    hfd_html_lit(h, " ");
    hfd_html_text(h, a->part->view.name);
    hfd_html_lit(h, "</td><td class=\"n\">");
    hfd_html_str(h, a->done       ? "\xe2\x9c\x93 done"
                    : a->reported ? "\xe2\x80\xa6 waits"
                                  : "- has not reported");
    hfd_html_lit(h, "</td><td data-h=\"What\">");
    hfd_html_text(h, a->reason);
    if (a->reason.len > 0 && a->message.len > 0)
        hfd_html_lit(h, ": ");
    hfd_html_text(h, a->message);
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Took\">");
    if (a->took_us != 0)
        hfd_html_span(h, a->took_us);
    if (a->usual_us != 0) {
        hfd_html_lit(h, " <span class=\"dim\">usually ");
        hfd_html_span(h, a->usual_us);
        hfd_html_lit(h, "</span>");
    }
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Last report\">");
    if (a->reported)
        hfd_html_time(h, a->reported_us);
    hfd_html_lit(h, "</td></tr>");
}

static void adapters(struct hfd_html *h, const struct hfd_detail *d)
{
    if (d->adapter_count == 0)
        return;
    hfd_html_lit(h, "<section aria-labelledby=\"adapters\"><h2 id=\"adapters\">Adapters</h2>"
                    "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Adapter</th>"
                    "<th scope=\"col\">On</th><th scope=\"col\">State</th>"
                    "<th scope=\"col\">What</th><th scope=\"col\">Took</th>"
                    "<th scope=\"col\">Last report</th></tr></thead><tbody>");
    for (size_t i = 0; i < d->adapter_count; i++)
        adapter_row(h, &d->adapters[i]);
    hfd_html_lit(h, "</tbody></table></div></section>");
}

static void condition_rows(struct hfd_html *h, const struct hfd_conditions *cs)
{
    for (size_t i = 0; i < cs->count; i++) {
        const struct hfd_condition *c = &cs->items[i];

        hfd_html_lit(h, "<tr><th scope=\"row\">");
        hfd_html_text(h, c->type);
        hfd_html_lit(h, "</th><td class=\"w\">");
        hfd_html_str(h, hfd_status_name(c->status));
        hfd_html_lit(h, "</td><td data-h=\"Why\">");
        hfd_html_text(h, c->reason);
        if (c->message.len > 0) {
            hfd_html_lit(h, ": ");
            hfd_html_text(h, c->message);
        }
        hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Since\">");
        hfd_html_time(h, c->last_transition_us);
        hfd_html_lit(h, "</td></tr>");
    }
}

static void condition_table(struct hfd_html *h, const struct hfd_conditions *cs)
{
    hfd_html_lit(h, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Condition</th>"
                    "<th scope=\"col\">Status</th><th scope=\"col\">Why</th>"
                    "<th scope=\"col\">Since</th></tr></thead><tbody>");
    condition_rows(h, cs);
    hfd_html_lit(h, "</tbody></table></div>");
}

static void parts(struct hfd_html *h, const struct hfd_detail *d)
{
    if (d->parts.count == 0)
        return;
    hfd_html_lit(h,
                 "<section aria-labelledby=\"parts\"><h2 id=\"parts\">Cluster and nodepools</h2>");
    for (size_t i = 0; i < d->parts.count; i++) {
        const struct hfd_part_view *v = &d->parts.items[i].view;

        hfd_html_lit(h, "<h3>");
        hfd_html_str(h, hfd_kind_word(v->kind));
        hfd_html_lit(h, " ");
        hfd_html_text(h, v->name);
        hfd_html_lit(h, "</h3><p class=\"dim\">");
        if (v->exists) {
            hfd_html_lit(h, "id <code>");
            hfd_html_text(h, v->id);
            hfd_html_lit(h, "</code>, generation ");
            hfd_html_int(h, v->generation);
            hfd_html_str(h, v->deleting ? ", is being deleted" : "");
        } else {
            hfd_html_lit(h, "not in HyperFleet");
        }
        hfd_html_lit(h, "</p>");
        if (v->exists && v->conditions.count > 0)
            condition_table(h, &v->conditions);
    }
    hfd_html_lit(h, "</section>");
}

/* ---- pacemaker ---- */

static void unit_row(struct hfd_html *h, const struct hfd_health_node *node,
                     const struct hfd_health_unit *unit, const char *kind)
{
    const bool healthy = hfd_health_is_true(&unit->conditions, "Healthy");

    hfd_html_lit(h, "<tr><th scope=\"row\">");
    hfd_html_text(h, unit->name);
    hfd_html_lit(h, "</th><td>");
    hfd_html_str(h, kind);
    hfd_html_lit(h, " ");
    hfd_html_text(h, unit->method);
    hfd_html_lit(h, "</td><td data-h=\"Node\">");
    hfd_html_text(h, node->name);
    hfd_html_lit(h, "</td><td>");
    if (healthy)
        hfd_html_lit(h, "<span class=\"good\">healthy</span>");
    else
        hfd_html_lit(h, "<span class=\"w bad\">NOT HEALTHY</span>");
    hfd_html_lit(h, "</td></tr>");
}

static void node_rows(struct hfd_html *h, const struct hfd_health_node *node)
{
    hfd_html_lit(h, "<tr><th scope=\"row\">");
    hfd_html_text(h, node->name);
    hfd_html_lit(h, "</th><td>node <code>");
    hfd_html_text(h, node->address);
    hfd_html_lit(h, "</code></td><td></td><td>");
    if (hfd_health_is_true(&node->conditions, "Healthy"))
        hfd_html_lit(h, "<span class=\"good\">healthy</span>");
    else
        hfd_html_lit(h, "<span class=\"w bad\">NOT HEALTHY</span>");
    hfd_html_str(h, hfd_health_is_true(&node->conditions, "Online") ? ", online" : ", OFFLINE");
    hfd_html_lit(h, "</td></tr>");
    for (size_t i = 0; i < node->agents.count; i++)
        unit_row(h, node, &node->agents.items[i], "fencing agent");
    for (size_t i = 0; i < node->resources.count; i++)
        unit_row(h, node, &node->resources.items[i], "resource");
}

static void said(struct hfd_html *h, const struct hfd_health_said *said, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hfd_html_lit(h, "<li>");
        hfd_html_text(h, said[i].text);
        hfd_html_lit(h, "</li>");
    }
}

static void health(struct hfd_html *h, const struct hfd_detail *d)
{
    for (size_t i = 0; i < d->health_count; i++) {
        const struct hfd_health_view *v = &d->health[i].view;

        hfd_html_lit(h, "<section><h2>Pacemaker, from ");
        hfd_html_text(h, d->health[i].adapter);
        hfd_html_lit(h, "</h2><p class=\"w\">");
        hfd_html_str(h, hfd_health_overall_name(v->verdict.overall));
        hfd_html_lit(h, "</p><p>Last update ");
        hfd_html_time(h, v->document.updated_us);
        hfd_html_str(h, v->verdict.stale ? ": stale" : "");
        hfd_html_lit(h, "</p><ul>");
        said(h, v->verdict.errors, v->verdict.error_count);
        said(h, v->verdict.warnings, v->verdict.warning_count);
        hfd_html_lit(h, "</ul><div class=\"wide\"><table><thead><tr><th scope=\"col\">Name</th>"
                        "<th scope=\"col\">Kind</th><th scope=\"col\">Node</th>"
                        "<th scope=\"col\">State</th></tr></thead><tbody>");
        for (size_t n = 0; n < v->document.node_count; n++)
            node_rows(h, &v->document.nodes[n]);
        hfd_html_lit(h, "</tbody></table></div></section>");
    }
}

/* ---- life, order, curl ---- */

static void life(struct hfd_html *h, const struct hfd_detail *d)
{
    hfd_html_lit(h,
                 "<section aria-labelledby=\"life\"><h2 id=\"life\">Life</h2><ol class=\"life\">");
    for (size_t i = 0; i < d->history.count; i++)
        hfd_web_entry(h, &d->history.entries[i], NULL);
    hfd_html_lit(h, "</ol></section>");
}

static void curl(struct hfd_html *h, const struct hfd_web_page *p, const char *options,
                 const char *path)
{
    hfd_html_lit(h, "<pre tabindex=\"0\">curl ");
    hfd_html_str(h, options);
    hfd_html_str(h, p->app->settings->tls_cert_file.len > 0 ? "https://" : "http://");
    hfd_html_text(h, p->app->settings->listen);
    hfd_html_str(h, path);
    hfd_html_path(h, p->guresid);
    hfd_html_lit(h, "</pre>");
}

static void commands(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"curl\"><h2 id=\"curl\">Commands</h2>"
                    "<p>What the orchestrator gets:</p>");
    curl(h, p, "-s ", "/");
    hfd_html_lit(h, "<p>All that this page has, as JSON:</p>");
    curl(h, p, "-s ", "/api/driver/v1/resources/");
    hfd_html_lit(h, "<p>Delete it:</p>");
    curl(h, p, "-s -X DELETE ", "/");
    hfd_html_lit(h, "</section>");
}

void hfd_web_resource(struct hfd_html *h, const struct hfd_web_page *p)
{
    const struct hfd_detail *d = &p->detail;
    const hfd_slice name = d->item.name.len > 0 ? d->item.name : p->guresid;

    hfd_web_begin(h, p, name);
    hfd_html_lit(h, "<h2>");
    hfd_html_text(h, name);
    hfd_html_lit(h, " <code class=\"dim\">");
    hfd_html_text(h, p->guresid);
    hfd_html_lit(h, "</code></h2>");
    summary(h, d);
    adapters(h, d);
    health(h, d);
    life(h, d);
    parts(h, d);
    if (d->input.len > 0) {
        hfd_html_lit(h, "<section aria-labelledby=\"order\"><h2 id=\"order\">Order</h2>"
                        "<pre tabindex=\"0\">");
        hfd_html_text(h, d->input);
        hfd_html_lit(h, "</pre></section>");
    }
    commands(h, p);
    hfd_web_end(h);
}

void hfd_web_missing(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_web_begin(h, p, HFD_SLICE("No such resource"));
    hfd_html_lit(h, "<h2>There is no such resource</h2><p>None with this id was removed lately. "
                    "<a href=\"/?order=trouble\">All resources</a></p>");
    hfd_web_end(h);
}
