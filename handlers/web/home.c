/* See home.h. */
#include "handlers/web/home.h"

#include "driver/base/trouble.h"
#include "driver/fleet/fleet.h"
#include "handlers/web/html.h"

/* ---- counts ---- */

/* Adds a number of resources, and the list of them, if there are any. */
static void count_of(struct hfd_html *h, const char *word, const char *query, int64_t n)
{
    hfd_html_lit(h, "<li>");
    if (n > 0) {
        hfd_html_lit(h, "<a href=\"/?");
        hfd_html_str(h, query);
        hfd_html_lit(h, "\">");
    }
    hfd_html_str(h, word);
    hfd_html_str(h, " ");
    if (n > 0)
        hfd_html_lit(h, "</a><b>");
    hfd_html_count(h, n);
    if (n > 0)
        hfd_html_lit(h, "</b>");
    hfd_html_lit(h, "</li>");
}

static void counts(struct hfd_html *h, const struct hfd_web_page *p)
{
    const int64_t *n = p->list.counts;

    hfd_html_lit(h, "<ul class=\"counts\" aria-label=\"Resources by state\">");
    count_of(h, "ready", "state=ready", n[HFD_STATE_READY]);
    count_of(h, "creating", "state=creating", n[HFD_STATE_CREATING]);
    count_of(h, "updating", "state=updating", n[HFD_STATE_UPDATING]);
    count_of(h, "deleting", "state=deleting", n[HFD_STATE_DELETING]);
    count_of(h, n[HFD_STATE_FAILED] > 0 ? "FAILED" : "failed", "state=failed", n[HFD_STATE_FAILED]);
    count_of(h, "stuck", "stuck=true", p->list.stuck_count);
    count_of(h, "degraded", "degraded=true", p->list.degraded_count);
    hfd_html_lit(h, "</ul>");
}

/* "orders in 24 h 336, an hour 14, until ready, p50 11 m, p95 19 m". */
static void last_day(struct hfd_html *h, const struct hfd_web_page *p)
{
    const struct hfd_trend_bar *l = &p->trends.day.all;
    const int64_t tenths = (l->orders * 10 + 12) / 24;

    hfd_html_lit(h, "<ul class=\"counts\" aria-label=\"The last 24 hours\"><li>orders in 24 h <b>");
    hfd_html_count(h, l->orders);
    hfd_html_str(h, p->trends.whole_since_us > h->now_us - HFD_DAY_US ? " or more" : "");
    hfd_html_lit(h, "</b></li><li>an hour <b>");
    hfd_html_count(h, tenths / 10);
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
                    "<th scope=\"col\">Resource</th><th scope=\"col\">Since</th>"
                    "<th scope=\"col\">Cause</th><th scope=\"col\">What</th>"
                    "<th scope=\"col\">Due</th></tr></thead><tbody>");
}

/* "hypershift QuotaExceeded" */
static void cause_of(struct hfd_html *h, const struct hfd_cause *cause)
{
    hfd_html_text(h, cause->who);
    if (cause->who.len > 0)
        hfd_html_lit(h, " ");
    hfd_html_text(h, cause->reason);
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
    hfd_html_resource(h, i->guresid, i->name);
    hfd_html_lit(h, "</th><td class=\"n\" data-h=\"Since\">");
    hfd_html_time(h, i->since_us);
    hfd_html_lit(h, "</td><td data-h=\"Cause\">");
    cause_of(h, &i->cause);
    hfd_html_lit(h, "</td><td data-h=\"What\">");
    if (i->code.len > 0) {
        hfd_html_text(h, i->code);
        hfd_html_lit(h, " ");
    }
    if (i->stuck) {
        hfd_html_lit(h, "for ");
        hfd_html_span(h, h->now_us - i->started_us);
        hfd_html_lit(h, ", usually ");
        hfd_html_span(h, i->usual_us - i->started_us);
        hfd_html_lit(h, "; ");
    }
    hfd_html_text(h, i->cause.reason.len > 0 ? i->cause.words : i->message);
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
    hfd_html_count(h, (int64_t)n);
    hfd_html_str(h, p->orphans.more ? " or more" : "");
    hfd_html_lit(h, " clusters and nodepools that no resource has: "
                    "<a href=\"/admin/orphans\">list</a></p>");
}

/* Adds the problems of the server and around it. @return how many there are */
static size_t problems(struct hfd_html *h)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];
    const size_t count = hfd_troubles_copy(list);

    for (size_t i = 0; i < count; i++) {
        if (i == 0)
            hfd_html_lit(h, "<ul class=\"problems\">");
        hfd_html_lit(h, "<li><span class=\"w ");
        hfd_html_str(h, hfd_troubles_degrade(&list[i], 1) ? "bad" : "warn");
        hfd_html_lit(h, "\">");
        hfd_html_str(h, hfd_trouble_head(list[i].kind));
        hfd_html_lit(h, "</span> ");
        if (list[i].name[0] != '\0') {
            hfd_html_lit(h, "<b>");
            hfd_html_str(h, list[i].name);
            hfd_html_lit(h, "</b> ");
        }
        hfd_html_str(h, list[i].words);
        hfd_html_lit(h, "; since ");
        hfd_html_time(h, list[i].since_us);
        if (list[i].waiting > 0) {
            hfd_html_lit(h, "; ");
            hfd_html_count(h, list[i].waiting);
            hfd_html_str(h, list[i].waiting == 1 ? " waits" : " wait");
        }
        hfd_html_lit(h, " <a href=\"/docs/runbook.html#");
        hfd_html_str(h, hfd_trouble_runbook(list[i].kind));
        hfd_html_lit(h, "\">what to do</a></li>");
    }
    if (count > 0)
        hfd_html_lit(h, "</ul>");
    return count;
}

/* Adds the query of a list of one kind of trouble. */
static void trouble_query(struct hfd_html *h, enum hfd_overview_trouble trouble)
{
    static const char *const queries[HFD_OVERVIEW_TROUBLES] = {"state=failed", "stuck=true",
                                                               "degraded=true"};

    hfd_html_str(h, queries[trouble]);
}

static void trouble_word(struct hfd_html *h, enum hfd_overview_trouble trouble)
{
    if (trouble == HFD_OVERVIEW_FAILED)
        hfd_html_lit(h, "<span class=\"w bad\">FAILED</span> ");
    else if (trouble == HFD_OVERVIEW_STUCK)
        hfd_html_lit(h, "<span class=\"w warn\">STUCK</span> ");
    else
        hfd_html_lit(h, "<span class=\"w warn\">DEGRADED</span> ");
}

/* Adds the resources with one cause: a line that opens. */
static void group(struct hfd_html *h, const struct hfd_overview_cause *c, bool open)
{
    hfd_html_lit(h, "<details id=\"cause-");
    hfd_html_str(h, hfd_overview_trouble_name(c->trouble));
    hfd_html_lit(h, "-");
    hfd_html_path(h, c->cause.who);
    hfd_html_lit(h, "-");
    hfd_html_path(h, c->cause.reason);
    if (open)
        hfd_html_lit(h, "\" open><summary>");
    else
        hfd_html_lit(h, "\"><summary>");
    trouble_word(h, c->trouble);
    hfd_html_lit(h, "<b>");
    hfd_html_count(h, c->count);
    hfd_html_lit(h, "</b> ");
    if (c->cause.reason.len > 0)
        cause_of(h, &c->cause);
    else
        hfd_html_lit(h, "by other causes");
    hfd_html_lit(h, " <span class=\"dim\">the oldest ");
    hfd_html_time(h, c->since_us);
    if (c->item_count > 0 && c->items[0].cause.words.len > 0) {
        hfd_html_lit(h, ": ");
        hfd_html_text(h, c->items[0].cause.words);
    }
    hfd_html_lit(h, "</span></summary>");
    list_head(h);
    for (size_t i = 0; i < c->item_count; i++)
        list_row(h, &c->items[i]);
    hfd_html_lit(h, "</tbody></table></div>");
    if (c->count > (int64_t)c->item_count) {
        hfd_html_lit(h, "<p><a href=\"/?");
        trouble_query(h, c->trouble);
        if (c->cause.reason.len > 0) {
            hfd_html_lit(h, "&amp;who=");
            hfd_html_path(h, c->cause.who);
            hfd_html_lit(h, "&amp;reason=");
            hfd_html_path(h, c->cause.reason);
        }
        hfd_html_lit(h, "\">and ");
        hfd_html_count(h, c->count - (int64_t)c->item_count);
        hfd_html_lit(h, " more</a></p>");
    }
    hfd_html_lit(h, "</details>");
}

/* Pacemaker, which is no adapter that makes something, has a place of its own. */
static bool is_observer(const struct hfd_web_page *p, hfd_slice who)
{
    const struct hfd_adapter_names *observers = &p->app->driver->fleet.observers;

    for (size_t i = 0; i < observers->count; i++)
        if (hfd_slice_eq(observers->items[i], who))
            return true;
    return false;
}

/* Adds one kind of trouble. None takes the place of another. @return how many groups it has */
static size_t kind(struct hfd_html *h, const struct hfd_web_page *p,
                   enum hfd_overview_trouble trouble, bool observed)
{
    size_t shown = 0;
    int64_t left = 0;

    for (size_t i = 0; i < p->list.cause_count; i++) {
        const struct hfd_overview_cause *c = &p->list.causes[i];

        if (c->trouble != trouble || is_observer(p, c->cause.who) != observed)
            continue;
        if (shown < HFD_WEB_CAUSES_MAX)
            group(h, c, i == 0);
        else
            left += c->count;
        shown++;
    }
    if (left == 0)
        return shown;
    hfd_html_lit(h, "<p>");
    trouble_word(h, trouble);
    hfd_html_lit(h, "<a href=\"/?");
    trouble_query(h, trouble);
    hfd_html_lit(h, "\">");
    hfd_html_count(h, left);
    hfd_html_lit(h, " more by ");
    hfd_html_count(h, (int64_t)shown - HFD_WEB_CAUSES_MAX);
    hfd_html_lit(h, " other causes</a></p>");
    return shown;
}

static void trouble(struct hfd_html *h, const struct hfd_web_page *p)
{
    size_t shown;

    hfd_html_lit(h, "<section aria-labelledby=\"needs\"><h2 id=\"needs\">Needs attention</h2>");
    shown = problems(h);
    for (int t = 0; t < HFD_OVERVIEW_TROUBLES; t++) {
        shown += kind(h, p, (enum hfd_overview_trouble)t, false);
        shown += kind(h, p, (enum hfd_overview_trouble)t, true);
    }
    if (shown == 0 && p->orphans.list.count == 0)
        hfd_html_lit(h, "<p class=\"dim\">Nothing.</p>");
    orphans(h, p);
    hfd_html_lit(h, "</section>");
}

static void working(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_lit(h, "<section aria-labelledby=\"way\"><h2 id=\"way\">Under way</h2>");
    if (p->list.count == 0)
        hfd_html_lit(h, "<p class=\"dim\">Nothing.</p>");
    else
        hfd_html_lit(h, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">State</th>"
                        "<th scope=\"col\">Resource</th><th scope=\"col\">Progress</th>"
                        "<th scope=\"col\">Adapters</th></tr></thead><tbody>");
    for (size_t i = 0; i < p->list.count; i++) {
        const struct hfd_overview_item *item = &p->list.items[i];

        hfd_html_lit(h, "<tr><td class=\"n\">");
        hfd_web_state(h, item);
        hfd_html_lit(h, "</td><th scope=\"row\">");
        hfd_html_resource(h, item->guresid, item->name);
        hfd_html_lit(h, "</th><td class=\"n\">");
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
    if (p->list.count > 0)
        hfd_html_lit(h, "</tbody></table></div>");
    if (p->list.more)
        hfd_html_lit(h, "<p><a href=\"/?state=creating&amp;state=updating&amp;state=deleting\">"
                        "All that is under way</a></p>");
    hfd_html_lit(h, "</section>");
}

/* ---- adapters ---- */

static void adapter_row(struct hfd_html *h, const struct hfd_adapter_seen *a)
{
    hfd_html_lit(h, "<tr><th scope=\"row\"><a href=\"/?who=");
    hfd_html_path(h, a->name);
    hfd_html_lit(h, "\">");
    hfd_html_text(h, a->name);
    hfd_html_lit(h, "</a> <span class=\"dim\">");
    hfd_html_str(h, hfd_kind_word(a->kind));
    hfd_html_lit(h, "s</span></th><td class=\"n\" data-h=\"Last report\">");
    if (a->last_us != 0)
        hfd_html_time(h, a->last_us);
    else
        hfd_html_lit(h, "<span class=\"dim\">none since the start</span>");
    hfd_html_lit(h, "</td><td data-h=\"Resources\">");
    hfd_html_count(h, a->good);
    hfd_html_lit(h, " ok");
    if (a->bad > 0) {
        hfd_html_lit(h, ", <span class=\"w warn\">");
        hfd_html_count(h, a->bad);
        hfd_html_lit(h, " not</span>");
    }
    if (a->open > 0) {
        hfd_html_lit(h, ", ");
        hfd_html_count(h, a->open);
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
    hfd_html_lit(h, "</span></td><td class=\"n\" data-h=\"Leads\">");
    hfd_html_text(h, r->leads ? HFD_SLICE("yes") : HFD_SLICE("no"));
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
                    "<th scope=\"col\">Version</th><th scope=\"col\">Leads</th>"
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
        hfd_web_entry(h, &p->history.items[i].row, &p->history.items[i].name);
    if (p->history.count > 0)
        hfd_html_lit(h, "</ol>");
    hfd_html_lit(h, "</section>");
}

/* ---- the list that was asked for ---- */

static void next_link(struct hfd_html *h, const struct hfd_web_page *p)
{
    const hfd_slice token = hfd_overview_token(&p->asked, &p->list, p->mem);
    hfd_slice rest = p->query;

    if (!p->list.more || token.p == NULL)
        return;
    hfd_html_lit(h, "<p><a href=\"/?after=");
    hfd_html_path(h, token);
    while (rest.len > 0) {
        const char *end = memchr(rest.p, '&', rest.len);
        const hfd_slice one = {rest.p, end != NULL ? (size_t)(end - rest.p) : rest.len};

        if (!hfd_slice_starts(one, HFD_SLICE("after="))) {
            hfd_html_lit(h, "&amp;");
            hfd_html_text(h, one);
        }
        rest = end != NULL ? (hfd_slice){end + 1, rest.len - one.len - 1} : HFD_SLICE("");
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

/* ---- plots; sizes are pixels ---- */

#define BARS 336 /* width of all bars: 24 or 28 of them */
#define LEFT 16  /* of the vertical axis; a zero stands before it */
#define TOP 18   /* of the highest bar; its value stands above */
#define BOTTOM 106

/* One plot: a bar for each piece of time, and a mark over it where it has a second value. */
struct plot {
    const char *what, *range, *bar; /* "Orders", "24 hours", "hour" */
    const char *colour;             /* class of the bars */
    const struct hfd_trend_range *r;
    size_t value, mark; /* offsets in struct hfd_trend_bar; mark 0 = none */
    bool is_time;
};

static int64_t value_at(const struct hfd_trend_bar *bar, size_t offset)
{
    int64_t value;

    memcpy(&value, (const char *)bar + offset, sizeof(value));
    return value;
}

static void add_value(struct hfd_html *h, const struct plot *p, int64_t value)
{
    if (p->is_time)
        hfd_html_span(h, value);
    else
        hfd_html_int(h, value);
}

static int64_t highest(const struct plot *p)
{
    int64_t top = 0;

    for (size_t i = 0; i < p->r->count; i++) {
        const int64_t value = value_at(&p->r->bars[i], p->mark != 0 ? p->mark : p->value);

        top = value > top ? value : top;
    }
    return top;
}

static void add_rect(struct hfd_html *h, const char *colour, const int64_t place[4])
{
    static const char *const names[] = {"x", "y", "width", "height"};

    hfd_html_lit(h, "<rect class=\"");
    hfd_html_str(h, colour);
    for (size_t i = 0; i < 4; i++) {
        hfd_html_lit(h, "\" ");
        hfd_html_str(h, names[i]);
        hfd_html_lit(h, "=\"");
        hfd_html_int(h, place[i]);
    }
    hfd_html_lit(h, "\"/>");
}

static void add_bars(struct hfd_html *h, const struct plot *p, int64_t top)
{
    const int64_t step = BARS / (int64_t)p->r->count;

    for (size_t i = 0; i < p->r->count; i++) {
        const struct hfd_trend_bar *bar = &p->r->bars[i];
        const int64_t value = value_at(bar, p->value), x = LEFT + 2 + (int64_t)i * step;
        const int64_t mark = p->mark != 0 ? value_at(bar, p->mark) : 0;
        const int64_t height = value * (BOTTOM - TOP) / top;

        if (value > 0) /* the least value can be seen */
            add_rect(h, p->colour,
                     (int64_t[]){x, BOTTOM - (height > 1 ? height : 1), step - 2,
                                 height > 1 ? height : 1});
        if (mark > 0)
            add_rect(h, "mark", (int64_t[]){x, BOTTOM - mark * (BOTTOM - TOP) / top, step - 2, 2});
    }
}

static void add_picture(struct hfd_html *h, const struct plot *p, int64_t top)
{
    hfd_html_lit(h, "<svg class=\"plot\" role=\"img\" width=\"356\" height=\"128\"><title>");
    hfd_html_str(h, p->what);
    hfd_html_lit(h, ", last ");
    hfd_html_str(h, p->range);
    hfd_html_lit(h, "</title><desc>One bar for each ");
    hfd_html_str(h, p->bar);
    hfd_html_lit(h, ", the newest at the right. The highest value is ");
    add_value(h, p, top);
    hfd_html_lit(h, ".</desc><path d=\"M16 18V106H354\"/><text x=\"18\" y=\"12\">");
    add_value(h, p, top);
    hfd_html_lit(h, "</text><text x=\"4\" y=\"106\">0</text><text x=\"16\" y=\"122\">");
    hfd_html_str(h, p->range);
    hfd_html_lit(h, " ago</text><text x=\"354\" y=\"122\" text-anchor=\"end\">now</text>");
    add_bars(h, p, top);
    hfd_html_lit(h, "</svg>");
}

/* "Orders, last 24 hours: 336" */
static void add_plot(struct hfd_html *h, const struct plot *p)
{
    const int64_t top = highest(p);

    if (p->is_time ? p->r->all.finished == 0 : top == 0) {
        hfd_html_lit(h, "<p class=\"dim\">");
        hfd_html_str(h, p->what);
        hfd_html_lit(h, ", last ");
        hfd_html_str(h, p->range);
        hfd_html_lit(h, ": none.</p>");
        return;
    }
    hfd_html_lit(h, "<figure><figcaption>");
    hfd_html_str(h, p->what);
    hfd_html_lit(h, ", last ");
    hfd_html_str(h, p->range);
    hfd_html_str(h, p->mark != 0 ? ": p50 " : ": ");
    add_value(h, p, value_at(&p->r->all, p->value));
    if (p->mark != 0) {
        hfd_html_lit(h, " (bar), p95 ");
        add_value(h, p, value_at(&p->r->all, p->mark));
        hfd_html_lit(h, " (line)");
    }
    hfd_html_lit(h, "</figcaption>");
    add_picture(h, p, top > 0 ? top : 1);
    hfd_html_lit(h, "</figure>");
}

/*
 * Adds the plots of orders, failures and times until ready, each over 24 hours and 7 days. A
 * sentence stands in the place of a plot without data.
 */
static void over_time(struct hfd_html *h, const struct hfd_trends *l)
{
/* clang-format off */
#define AT(member) offsetof(struct hfd_trend_bar, member)
#define RANGE(range, bar, r) \
    {"Orders", range, bar, "bar", r, AT(orders), 0, false}, \
    {"Failures", range, bar, "bar fault", r, AT(failed), 0, false}, \
    {"Until ready", range, bar, "bar", r, AT(median_us), AT(p95_us), true}
    const struct plot plots[] = {
        RANGE("24 hours", "hour", &l->day),
        RANGE("7 days", "6 hours", &l->week),
    };
#undef RANGE
#undef AT
    /* clang-format on */

    hfd_html_lit(h, "<section aria-labelledby=\"plots\"><h2 id=\"plots\">Over time</h2>");
    if (l->first_us == 0) {
        hfd_html_lit(h, "<p class=\"dim\">Nothing was ordered in the last 7 days.</p></section>");
        return;
    }
    hfd_html_lit(h, "<div class=\"plots\">");
    for (size_t i = 0; i < sizeof(plots) / sizeof(plots[0]); i++)
        add_plot(h, &plots[i]);
    hfd_html_lit(h, "</div><p class=\"dim\">");
    if (l->whole_since_us != 0) {
        hfd_html_lit(h, "Only the newest actions are counted. All are there since ");
        hfd_html_time(h, l->whole_since_us);
    } else {
        hfd_html_lit(h, "The data begins ");
        hfd_html_time(h, l->first_us);
    }
    hfd_html_lit(h, ".</p></section>");
}

/* ---- the whole ---- */

void hfd_web_home(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_web_begin(h, p, p->listing ? HFD_SLICE("Resources") : HFD_SLICE("Status"));
    if (p->listing) {
        counts(h, p);
        listing(h, p);
    } else {
        hfd_html_lit(h, "<div class=\"top\"><div>");
        counts(h, p);
        last_day(h, p);
        hfd_html_lit(h, "</div>");
        adapters(h, p);
        hfd_html_lit(h, "</div>");
        trouble(h, p);
        working(h, p);
        replicas(h, p);
        over_time(h, &p->trends);
        history(h, p);
        hfd_html_lit(h, "<p><a href=\"/?order=trouble\">All resources</a></p>");
    }
    hfd_web_end(h);
}
