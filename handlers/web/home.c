/* See home.h. */
#include "handlers/web/home.h"

#include "driver/fleet/names.h"
#include "handlers/web/render.h"
#include "store/shard.h"

/* ---- counts ---- */

static void count_of(struct hfd_html *h, const struct hfd_web_page *p, enum hfd_state state)
{
    hfd_html_lit(h, "<li><a href=\"/?state=");
    hfd_html_str(h, hfd_state_name(state));
    hfd_html_lit(h, "\">");
    hfd_html_str(h, state == HFD_STATE_FAILED ? "FAILED" : hfd_state_name(state));
    hfd_html_lit(h, "</a> <b>");
    hfd_html_int(h, p->list.counts[state]);
    hfd_html_lit(h, "</b></li>");
}

static void counts(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<ul class=\"counts\" aria-label=\"Resources by state\">");
    count_of(h, p, HFD_STATE_READY);
    count_of(h, p, HFD_STATE_CREATING);
    count_of(h, p, HFD_STATE_UPDATING);
    count_of(h, p, HFD_STATE_DELETING);
    count_of(h, p, HFD_STATE_FAILED);
    hfd_html_lit(h, "<li>stuck <b>");
    hfd_html_int(h, p->list.stuck_count);
    hfd_html_lit(h, "</b></li><li>degraded <b>");
    hfd_html_int(h, p->list.degraded_count);
    hfd_html_lit(h, "</b></li></ul>");
}

/* "orders in 24 h 336, an hour 14, until ready, p50 11 m, p95 19 m". */
static void lately(struct hfd_html *h, const struct hfd_lately *l)
{
    const int64_t tenths = (l->orders * 10 + 12) / 24;

    hfd_html_lit(h, "<ul class=\"counts\" aria-label=\"The last 24 hours\"><li>orders in 24 h <b>");
    hfd_html_int(h, l->orders);
    hfd_html_str(h, l->more ? " or more" : "");
    hfd_html_lit(h, "</b></li><li>an hour <b>");
    hfd_html_int(h, tenths / 10);
    if (tenths < 100) {
        hfd_html_lit(h, ".");
        hfd_html_int(h, tenths % 10);
    }
    hfd_html_lit(h, "</b></li>");
    if (l->finished > 0) {
        hfd_html_lit(h, "<li>until ready, p50 <b>");
        hfd_html_span(h, l->median_us);
        hfd_html_lit(h, "</b></li><li>p95 <b>");
        hfd_html_span(h, l->p95_us);
        hfd_html_lit(h, "</b></li>");
    }
    hfd_html_lit(h, "</ul>");
}

/* ---- lists of resources ---- */

static void list_head(struct hfd_html *h)
{
    hfd_html_lit(h, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">State</th>"
                    "<th scope=\"col\">Resource</th><th scope=\"col\">Name</th>"
                    "<th scope=\"col\">Since</th><th scope=\"col\">What</th>"
                    "<th scope=\"col\">Due</th></tr></thead><tbody>");
}

static void list_row(struct hfd_html *h, const struct hfd_overview_item *i)
{
    hfd_html_lit(h, "<tr><td class=\"n\">");
    hfd_web_state(h, i);
    if (i->operation != NULL) {
        hfd_html_lit(h, " ");
        hfd_html_str(h, i->operation);
    }
    hfd_html_lit(h, "</td><th scope=\"row\">");
    hfd_html_resource(h, i->guresid);
    hfd_html_lit(h, "</th><td data-h=\"Name\">");
    hfd_html_text(h, i->name);
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Since\">");
    hfd_html_time(h, i->since_us);
    hfd_html_lit(h, "</td><td data-h=\"What\">");
    if (i->code.len > 0) {
        hfd_html_text(h, i->code);
        hfd_html_lit(h, " ");
    }
    if (i->stuck) {
        hfd_html_lit(h, "for ");
        hfd_html_span(h, h->now_us - i->started_us);
        hfd_html_lit(h, " (usually ");
        hfd_html_span(h, i->estimated_us - i->started_us);
        hfd_html_lit(h, "); ");
    }
    hfd_html_text(h, i->message);
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Due\">");
    if (i->deadline_us != 0)
        hfd_html_time(h, i->deadline_us);
    hfd_html_lit(h, "</td></tr>");
}

static void orphans(struct hfd_html *h, const struct hfd_web_page *p)
{
    const size_t n = p->orphans.list.count;

    if (p->wants_orphans && !hfd_web_seeks_orphans(p))
        hfd_html_lit(h, "<p class=\"dim\">Orphans are not looked for among so many resources: "
                        "<a href=\"/admin/orphans\">list</a></p>");
    if (n == 0)
        return;
    hfd_html_lit(h, "<p><span class=\"w warn\">ORPHANS</span> ");
    hfd_html_int(h, (int64_t)n);
    hfd_html_str(h, p->orphans.more ? " or more" : "");
    hfd_html_lit(h, " clusters and nodepools that no resource has: "
                    "<a href=\"/admin/orphans\">list</a></p>");
}

static void trouble(struct hfd_html *h, const struct hfd_web_page *p)
{
    const int64_t all =
        p->list.counts[HFD_STATE_FAILED] + p->list.stuck_count + p->list.degraded_count;
    int64_t shown = 0;

    hfd_html_lit(h, "<section aria-labelledby=\"needs\"><h2 id=\"needs\">Needs you</h2>");
    for (size_t i = 0; i < p->list.count && shown < HFD_WEB_TROUBLE_MAX; i++) {
        if (!hfd_web_needs_you(&p->list.items[i]))
            continue;
        if (shown++ == 0)
            list_head(h);
        list_row(h, &p->list.items[i]);
    }
    if (shown > 0)
        hfd_html_lit(h, "</tbody></table></div>");
    else if (p->orphans.list.count == 0)
        hfd_html_lit(h, "<p class=\"dim\">Nothing.</p>");
    if (all > shown) {
        hfd_html_lit(h, "<p><a href=\"/?list=all\">");
        hfd_html_int(h, all - shown);
        hfd_html_lit(h, " more</a></p>");
    }
    orphans(h, p);
    hfd_html_lit(h, "</section>");
}

static void working(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"way\"><h2 id=\"way\">Under way</h2>");
    if (p->working_count == 0)
        hfd_html_lit(h, "<p class=\"dim\">Nothing.</p>");
    else
        hfd_html_lit(h, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">State</th>"
                        "<th scope=\"col\">Resource</th><th scope=\"col\">Name</th>"
                        "<th scope=\"col\">Progress</th><th scope=\"col\">Adapters</th></tr>"
                        "</thead><tbody>");
    for (size_t i = 0; i < p->working_count; i++) {
        const struct hfd_overview_item *item = &p->working[i];

        hfd_html_lit(h, "<tr><td class=\"n\">");
        hfd_web_state(h, item);
        hfd_html_lit(h, "</td><th scope=\"row\">");
        hfd_html_resource(h, item->guresid);
        hfd_html_lit(h, "</th><td data-h=\"Name\">");
        hfd_html_text(h, item->name);
        hfd_html_lit(h, "</td><td class=\"n\">");
        hfd_web_progress(h, item);
        hfd_html_lit(h, "</td><td>");
        hfd_web_marks(h, &p->details[i]);
        if (item->message.len > 0) {
            hfd_html_lit(h, "<p class=\"dim\">");
            hfd_html_text(h, item->message);
            hfd_html_lit(h, "</p>");
        }
        hfd_html_lit(h, "</td></tr>");
    }
    if (p->working_count > 0)
        hfd_html_lit(h, "</tbody></table></div>");
    if (p->working_count == HFD_WEB_UNDER_WAY_MAX)
        hfd_html_lit(h, "<p><a href=\"/?state=creating&amp;state=updating&amp;state=deleting\">"
                        "All that is under way</a></p>");
    hfd_html_lit(h, "</section>");
}

/* ---- adapters ---- */

static void adapter_row(struct hfd_html *h, const struct hfd_adapter_seen *a)
{
    hfd_html_lit(h, "<tr><th scope=\"row\">");
    hfd_html_text(h, a->name);
    hfd_html_lit(h, " <span class=\"dim\">");
    hfd_html_str(h, hfd_kind_word(a->kind));
    hfd_html_lit(h, "s</span></th><td class=\"n\" data-h=\"Last report\">");
    if (a->last_us != 0)
        hfd_html_time(h, a->last_us);
    else
        hfd_html_lit(h, "<span class=\"dim\">none since the start</span>");
    hfd_html_lit(h, "</td><td data-h=\"Resources\">");
    hfd_html_int(h, a->good);
    hfd_html_lit(h, " ok");
    if (a->bad > 0) {
        hfd_html_lit(h, ", <span class=\"w warn\">");
        hfd_html_int(h, a->bad);
        hfd_html_lit(h, " not</span>");
    }
    if (a->open > 0) {
        hfd_html_lit(h, ", ");
        hfd_html_int(h, a->open);
        hfd_html_lit(h, " unknown");
    }
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Usual time\">");
    if (a->time_count > 0) {
        hfd_html_span(h, a->median_us);
        hfd_html_lit(h, " ");
        hfd_web_bars(h, a->times_us, a->time_count);
    } else {
        hfd_html_lit(h, "<span class=\"dim\">not known yet</span>");
    }
    hfd_html_lit(h, "</td></tr>");
}

static void adapters(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"adapters\"><h2 id=\"adapters\">Adapters</h2>"
                    "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Adapter</th>"
                    "<th scope=\"col\">Last report</th><th scope=\"col\">Resources</th>"
                    "<th scope=\"col\">Usual time until done</th></tr></thead><tbody>");
    for (size_t i = 0; i < p->adapters.count; i++)
        adapter_row(h, &p->adapters.items[i]);
    hfd_html_lit(h, "</tbody></table></div></section>");
}

/* ---- replicas ---- */

static void replica_row(struct hfd_html *h, const struct hfd_replica_seen *r)
{
    hfd_html_lit(h, "<tr><th scope=\"row\">");
    hfd_html_text(h, r->name.len > 0 ? r->name : r->id);
    hfd_html_lit(h, "</th><td class=\"n\" data-h=\"Last seen\">");
    if (r->live)
        hfd_html_lit(h, "<span class=\"w good\">live</span> ");
    else
        hfd_html_lit(h, "<span class=\"w warn\">GONE</span> ");
    hfd_html_time(h, r->beat_us);
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Since\">");
    hfd_html_time(h, r->started_us);
    hfd_html_lit(h, "</td><td data-h=\"Version\">");
    hfd_html_text(h, r->version);
    hfd_html_lit(h, " <span class=\"dim\">schema ");
    hfd_html_int(h, r->schema);
    hfd_html_lit(h, "</span></td><td class=\"n\" data-h=\"Shards\">");
    hfd_html_int(h, r->shards);
    hfd_html_lit(h, " of ");
    hfd_html_int(h, HFD_SHARDS);
    hfd_html_lit(h, "</td><td class=\"n\" data-h=\"Settings\">epoch ");
    hfd_html_int(h, r->settings_epoch);
    if (r->outdated)
        hfd_html_lit(h, " <span class=\"w warn\">OLDER</span>");
    hfd_html_lit(h, "</td></tr>");
}

/* Only a shared store has replicas. */
static void replicas(struct hfd_html *h, const struct hfd_web_page *p)
{
    if (p->replicas.count == 0)
        return;
    hfd_html_lit(h, "<section aria-labelledby=\"replicas\"><h2 id=\"replicas\">Replicas</h2>"
                    "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Replica</th>"
                    "<th scope=\"col\">Last seen</th><th scope=\"col\">Since</th>"
                    "<th scope=\"col\">Version</th><th scope=\"col\">Shards</th>"
                    "<th scope=\"col\">Settings</th></tr></thead><tbody>");
    for (size_t i = 0; i < p->replicas.count; i++)
        replica_row(h, &p->replicas.items[i]);
    hfd_html_lit(h, "</tbody></table></div></section>");
}

/* ---- the last day ---- */

static void history(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"day\"><h2 id=\"day\">Last 24 hours</h2>");
    if (p->history.count == 0)
        hfd_html_lit(h, "<p class=\"dim\">Nothing happened.</p>");
    else
        hfd_html_lit(h, "<ol class=\"life\">");
    for (size_t i = 0; i < p->history.count; i++)
        hfd_web_entry(h, &p->history.rows[i], true);
    if (p->history.count > 0)
        hfd_html_lit(h, "</ol>");
    hfd_html_lit(h, "</section>");
}

/* ---- the list that was asked for ---- */

static void next_link(struct hfd_html *h, const struct hfd_web_page *p)
{
    const hfd_slice token = hfd_overview_token(&p->asked, &p->list, p->mem);

    if (!p->list.more || token.p == NULL)
        return;
    hfd_html_lit(h, "<p><a href=\"/?list=all&amp;after=");
    hfd_html_path(h, token);
    if (p->asked.search.len > 0) {
        hfd_html_lit(h, "&amp;search=");
        hfd_html_path(h, p->asked.search);
    }
    for (int s = HFD_STATE_ABSENT + 1; s < HFD_STATE_COUNT; s++)
        if ((p->asked.states & 1u << s) != 0) {
            hfd_html_lit(h, "&amp;state=");
            hfd_html_str(h, hfd_state_name((enum hfd_state)s));
        }
    hfd_html_lit(h, "\">Next page</a></p>");
}

static void listing(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"list\"><h2 id=\"list\">Resources</h2>");
    if (p->list.count == 0) {
        hfd_html_lit(h, "<p>No resource matches.</p></section>");
        return;
    }
    list_head(h);
    for (size_t i = 0; i < p->list.count; i++)
        list_row(h, &p->list.items[i]);
    hfd_html_lit(h, "</tbody></table></div>");
    next_link(h, p);
    hfd_html_lit(h, "</section>");
}

void hfd_web_home(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_web_begin(h, p, p->listing ? HFD_SLICE("Resources") : HFD_SLICE("Status"));
    counts(h, p);
    if (p->listing) {
        listing(h, p);
    } else {
        lately(h, &p->lately);
        trouble(h, p);
        working(h, p);
        adapters(h, p);
        replicas(h, p);
        history(h, p);
        hfd_html_lit(h, "<p><a href=\"/?list=all\">All resources</a></p>");
    }
    hfd_web_end(h);
}
