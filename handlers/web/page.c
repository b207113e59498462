/* See page.h. */
#include "handlers/web/page.h"

#include "driver/base/clock.h"
#include "driver/base/trouble.h"
#include "driver/fleet/fleet.h"

/* ---- the frame and common parts ---- */

/* Begins a page: head, title, and the line with links and the search. */
static void begin(struct hfd_html *h, const struct hfd_web_page *p, hfd_slice title)
{
    hfd_html_add(
        h,
        HFD_HTML("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                 "<title>"),
        HFD_TEXT(title),
        HFD_HTML(" - hyperfleet-driver</title>"
                 "<link rel=\"stylesheet\" href=\"/page/style.css\">"
                 "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>"
                 "<script src=\"/page/page.js\" defer></script></head>\n"
                 "<body><header><h1><a href=\"/\">hyperfleet-driver</a></h1><span "
                 "class=\"dim\">" HFD_VERSION " &middot; "),
        HFD_STR(p->app->without_fleet ? "remote HyperFleet" : "embedded HyperFleet"),
        HFD_STR(hfd_store_ok(p->app->store) ? " \xc2\xb7 store ok" : " \xc2\xb7 STORE FAILED"),
        p->app->driver->demo ? HFD_HTML(" &middot; DEMO: no cluster is made") : HFD_HTML(""),
        HFD_HTML("</span><nav aria-label=\"Documents\"><ul><li><a href=\"/docs\">Manual</a></li>"
                 "<li><a href=\"/metrics\">Metrics</a></li>"
                 "<li><a href=\"/healthz\">Health</a></li></ul></nav>"
                 "<form action=\"/\" role=\"search\"><label for=\"search\">Search</label> "
                 "<input id=\"search\" name=\"search\" type=\"search\" value=\""),
        HFD_TEXT(p->asked.search),
        HFD_HTML("\"> <button>Find</button></form>"
                 "<button id=\"pause\" type=\"button\" hidden>Pause</button>"
                 "<span id=\"age\" role=\"status\"></span></header>\n<main>"));
}

static void end(struct hfd_html *h)
{
    hfd_html_add(h, HFD_HTML("</main>\n</body></html>\n"));
}

#define SECTION(id, title)                                                                         \
    HFD_HTML("<section aria-labelledby=\"" id "\"><h2 id=\"" id "\">" title "</h2>")
#define COLUMN(title) "<th scope=\"col\">" title "</th>"
/* A table: its columns, and its end. */
#define TABLE(columns)                                                                             \
    HFD_HTML("<div class=\"wide\"><table><thead><tr>" columns "</tr></thead><tbody>")
#define TABLE_END "</tbody></table></div>"
#define CELL(name) "</td><td data-h=\"" name "\">"
#define NARROW_CELL(name) "</td><td class=\"n\" data-h=\"" name "\">"
#define WORD(class, word) HFD_HTML("<span class=\"w " class "\">" word "</span>")

/* Adds the link to a resource: its name, if it has one, and its GUResID behind it. */
static void resource_link(struct hfd_html *h, hfd_slice guresid, hfd_slice name)
{
    const bool both = name.len > 0 && !hfd_slice_eq(name, guresid);

    hfd_html_add(h, HFD_HTML("<a href=\"/r/"), HFD_PATH(guresid), HFD_HTML("\">"),
                 HFD_TEXT(both ? name : guresid), HFD_HTML("</a>"));
    if (both)
        hfd_html_add(h, HFD_HTML(" <code class=\"dim\">"), HFD_TEXT(guresid), HFD_HTML("</code>"));
}

/* Adds the word of a state: FAILED, STUCK, DEGRADED, creating. */
static void state_word(struct hfd_html *h, const struct hfd_overview_item *i)
{
    if (i->state == HFD_STATE_FAILED)
        hfd_html_add(h, WORD("bad", "FAILED"));
    else if (i->stuck)
        hfd_html_add(h, WORD("warn", "STUCK"));
    else if (hfd_slice_is(i->health, "Degraded"))
        hfd_html_add(h, WORD("warn", "DEGRADED"));
    else if (i->state == HFD_STATE_READY)
        hfd_html_add(h, WORD("good", "ready"));
    else
        hfd_html_add(h, HFD_HTML("<span class=\"w\">"), HFD_STR(hfd_state_name(i->state)),
                     HFD_HTML("</span>"));
}

void hfd_web_progress(struct hfd_html *h, const struct hfd_overview_item *i)
{
    const int64_t spent_us = h->now_us - i->started_us, whole_us = i->usual_us - i->started_us;
    const bool late = spent_us > whole_us;

    hfd_html_add(
        h, late ? HFD_HTML("<progress class=\"late\" max=\"") : HFD_HTML("<progress max=\""),
        HFD_INT(whole_us > 0 ? whole_us : 1), HFD_HTML("\" value=\""),
        HFD_INT(spent_us < whole_us ? (spent_us > 0 ? spent_us : 0) : whole_us),
        HFD_HTML("\" aria-label=\"Time of "), HFD_TEXT(i->guresid), HFD_HTML("\"></progress> "),
        HFD_SPAN(spent_us), HFD_STR(late ? ", usually " : " of about "), HFD_SPAN(whole_us));
}

/* Adds the adapters of a resource as a list of words: "dns waits". */
static void marks(struct hfd_html *h, const struct hfd_detail *d)
{
    hfd_html_add(h, HFD_HTML("<ul class=\"marks\">"));
    for (size_t i = 0; i < d->adapter_count; i++) {
        const struct hfd_detail_adapter *a = &d->adapters[i];

        if (!a->required)
            continue;
        hfd_html_add(h, HFD_HTML("<li>"));
        if (d->parts.count > 1 && a->part->view.kind == HFD_KIND_NODEPOOL)
            hfd_html_add(h, HFD_TEXT(a->part->view.name), HFD_HTML("/"));
        hfd_html_add(h, HFD_TEXT(a->name),
                     HFD_STR(a->done       ? " \xe2\x9c\x93 "
                             : a->reported ? " \xe2\x80\xa6 "
                                           : " - "),
                     HFD_HTML("<span class=\"dim\">"),
                     HFD_STR(a->done       ? "done"
                             : a->reported ? "waits"
                                           : "has not reported"),
                     HFD_HTML("</span></li>"));
    }
    hfd_html_add(h, HFD_HTML("</ul>"));
}

#define BAR_WIDTH 5
#define PICTURE_HEIGHT 20

/* Adds a picture of durations: one bar each. */
static void bars(struct hfd_html *h, const int64_t *times_us, size_t count)
{
    int64_t longest_us = 1;

    for (size_t i = 0; i < count; i++)
        longest_us = times_us[i] > longest_us ? times_us[i] : longest_us;
    hfd_html_add(h, HFD_HTML("<svg role=\"img\" height=\"20\" width=\""),
                 HFD_INT((int64_t)count * BAR_WIDTH), HFD_HTML("\"><title>The last "),
                 HFD_INT((int64_t)count),
                 HFD_HTML(" durations, the newest at the right; the longest took "),
                 HFD_SPAN(longest_us), HFD_HTML("</title>"));
    for (size_t i = 0; i < count; i++) {
        const int64_t height = 1 + times_us[i] * (PICTURE_HEIGHT - 1) / longest_us;

        hfd_html_add(h, HFD_HTML("<rect fill=\"currentColor\" width=\"4\" x=\""),
                     HFD_INT((int64_t)i * BAR_WIDTH), HFD_HTML("\" y=\""),
                     HFD_INT(PICTURE_HEIGHT - height), HFD_HTML("\" height=\""), HFD_INT(height),
                     HFD_HTML("\"/>"));
    }
    hfd_html_add(h, HFD_HTML("</svg>"));
}

/* Returns what happened in one word or two. */
static hfd_slice happened(hfd_slice what)
{
    static const char *const words[][2] = {
        {"create", "ordered"},          {"update", "update ordered"}, {"retarget", "new target"},
        {"retry", "tried again"},       {"ready", "ready"},           {"failed", "FAILED"},
        {"delete", "deletion ordered"}, {"adopted", "adopted"},       {"degraded", "DEGRADED"},
        {"recovered", "recovered"},     {"deleted", "removed"},       {"removed", "removed"},
        {"drifted", "DRIFTED"},         {"mended", "mended"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hfd_slice_is(what, words[i][0]))
            return hfd_slice_of(words[i][1]);
    return what;
}

/* Adds an item of a list: when something happened, and what. @param name  of its resource; or NULL
 */
static void entry(struct hfd_html *h, const struct hfd_history_row *row, const hfd_slice *name)
{
    hfd_html_add(h, HFD_HTML("<li>"), HFD_TIME(row->at_us), HFD_HTML(" "));
    if (name != NULL) {
        resource_link(h, row->id, *name);
        hfd_html_add(h, HFD_HTML(" "));
    }
    hfd_html_add(h, HFD_TEXT(happened(row->what)), HFD_HTML(" <span class=\"dim\">"),
                 HFD_TEXT(row->text), HFD_HTML("</span></li>"));
}

/* ---- counts ---- */

/* Adds a number of resources, and the list of them, if there are any. */
static void count_of(struct hfd_html *h, const char *word, const char *query, int64_t n)
{
    if (n > 0)
        hfd_html_add(h, HFD_HTML("<li><a href=\"/?"), HFD_STR(query), HFD_HTML("\">"),
                     HFD_STR(word), HFD_HTML(" </a><b>"), HFD_COUNT(n), HFD_HTML("</b></li>"));
    else
        hfd_html_add(h, HFD_HTML("<li>"), HFD_STR(word), HFD_HTML(" "), HFD_COUNT(n),
                     HFD_HTML("</li>"));
}

static void counts(struct hfd_html *h, const struct hfd_web_page *p)
{
    const int64_t *n = p->list.counts;

    hfd_html_add(h, HFD_HTML("<ul class=\"counts\" aria-label=\"Resources by state\">"));
    count_of(h, "ready", "state=ready", n[HFD_STATE_READY]);
    count_of(h, "creating", "state=creating", n[HFD_STATE_CREATING]);
    count_of(h, "updating", "state=updating", n[HFD_STATE_UPDATING]);
    count_of(h, "deleting", "state=deleting", n[HFD_STATE_DELETING]);
    count_of(h, n[HFD_STATE_FAILED] > 0 ? "FAILED" : "failed", "state=failed", n[HFD_STATE_FAILED]);
    count_of(h, "stuck", "stuck=true", p->list.stuck_count);
    count_of(h, "degraded", "degraded=true", p->list.degraded_count);
    count_of(h, "drifted", "drift=true", p->drifted);
    hfd_html_add(h, HFD_HTML("</ul>"));
}

/* "orders in 24 h 336, an hour 14, until ready, p50 11 m, p95 19 m". */
static void last_day(struct hfd_html *h, const struct hfd_web_page *p)
{
    const struct hfd_trend_bar *l = &p->trends.day.all;
    const int64_t tenths = (l->orders * 10 + 12) / 24;

    hfd_html_add(
        h, HFD_HTML("<ul class=\"counts\" aria-label=\"The last 24 hours\"><li>orders in 24 h <b>"),
        HFD_COUNT(l->orders),
        HFD_STR(p->trends.whole_since_us > h->now_us - HFD_DAY_US ? " or more" : ""),
        HFD_HTML("</b></li><li>an hour <b>"), HFD_COUNT(tenths / 10));
    if (tenths < 100)
        hfd_html_add(h, HFD_HTML("."), HFD_INT(tenths % 10));
    hfd_html_add(h, HFD_HTML("</b></li>"));
    if (l->finished > 0)
        hfd_html_add(h, HFD_HTML("<li>until ready, p50 <b>"), HFD_SPAN(l->median_us),
                     HFD_HTML("</b></li><li>p95 <b>"), HFD_SPAN(l->p95_us), HFD_HTML("</b></li>"));
    hfd_html_add(h, HFD_HTML("</ul>"));
}

/* ---- lists of resources ---- */

static void list_head(struct hfd_html *h)
{
    hfd_html_add(h, TABLE(COLUMN("State") COLUMN("Resource") COLUMN("Since") COLUMN("Cause")
                              COLUMN("What") COLUMN("Due")));
}

/* "hypershift QuotaExceeded" */
static void cause_of(struct hfd_html *h, const struct hfd_cause *cause)
{
    hfd_html_add(h, HFD_TEXT(cause->who), HFD_STR(cause->who.len > 0 ? " " : ""),
                 HFD_TEXT(cause->reason));
}

static void list_row(struct hfd_html *h, const struct hfd_overview_item *i)
{
    hfd_html_add(h, HFD_HTML("<tr><td class=\"n\">"));
    state_word(h, i);
    if (i->operation != NULL)
        hfd_html_add(h, HFD_HTML(" "), HFD_STR(i->operation));
    hfd_html_add(h, HFD_HTML("</td><th scope=\"row\">"));
    resource_link(h, i->guresid, i->name);
    hfd_html_add(h, HFD_HTML("</th><td class=\"n\" data-h=\"Since\">"), HFD_TIME(i->since_us),
                 HFD_HTML(CELL("Cause")));
    cause_of(h, &i->cause);
    hfd_html_add(h, HFD_HTML(CELL("What")), HFD_TEXT(i->code), HFD_STR(i->code.len > 0 ? " " : ""));
    if (i->stuck)
        hfd_html_add(h, HFD_HTML("for "), HFD_SPAN(h->now_us - i->started_us),
                     HFD_HTML(", usually "), HFD_SPAN(i->usual_us - i->started_us), HFD_HTML("; "));
    hfd_html_add(h, HFD_TEXT(i->cause.reason.len > 0 ? i->cause.words : i->message),
                 HFD_HTML(NARROW_CELL("Due")));
    if (i->deadline_us != 0)
        hfd_html_add(h, HFD_TIME(i->deadline_us));
    hfd_html_add(h, HFD_HTML("</td></tr>"));
}

static void orphans(struct hfd_html *h, const struct hfd_web_page *p)
{
    const size_t n = p->orphans.list.count;

    if (p->wants_orphans && !hfd_web_seeks_orphans(p))
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">Orphans are not looked for among so many "
                                 "resources: <a href=\"/admin/orphans\">list</a></p>"));
    if (n > 0)
        hfd_html_add(h, HFD_HTML("<p><span class=\"w warn\">ORPHANS</span> "),
                     HFD_COUNT((int64_t)n), HFD_STR(p->orphans.more ? " or more" : ""),
                     HFD_HTML(" clusters and nodepools that no resource has: "
                              "<a href=\"/admin/orphans\">list</a></p>"));
}

/* Adds the problems of the server and around it. @return how many there are */
static size_t problems(struct hfd_html *h)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];
    const size_t count = hfd_troubles_copy(list);

    if (count > 0)
        hfd_html_add(h, HFD_HTML("<ul class=\"problems\">"));
    for (size_t i = 0; i < count; i++) {
        hfd_html_add(h, HFD_HTML("<li><span class=\"w "),
                     HFD_STR(hfd_troubles_degrade(&list[i], 1) ? "bad" : "warn"), HFD_HTML("\">"),
                     HFD_STR(hfd_trouble_head(list[i].kind)), HFD_HTML("</span> "));
        if (list[i].name[0] != '\0')
            hfd_html_add(h, HFD_HTML("<b>"), HFD_STR(list[i].name), HFD_HTML("</b> "));
        hfd_html_add(h, HFD_STR(list[i].words), HFD_HTML("; since "), HFD_TIME(list[i].since_us));
        if (list[i].waiting > 0)
            hfd_html_add(h, HFD_HTML("; "), HFD_COUNT(list[i].waiting),
                         HFD_STR(list[i].waiting == 1 ? " waits" : " wait"));
        hfd_html_add(h, HFD_HTML(" <a href=\"/docs/runbook.html#"),
                     HFD_STR(hfd_trouble_runbook(list[i].kind)),
                     HFD_HTML("\">what to do</a></li>"));
    }
    if (count > 0)
        hfd_html_add(h, HFD_HTML("</ul>"));
    return count;
}

/* The kinds of trouble: the query of their list, and their word. */
static const struct {
    const char *query, *colour, *word;
} troubles[HFD_OVERVIEW_TROUBLES] = {
    [HFD_OVERVIEW_FAILED] = {"state=failed", "bad", "FAILED"},
    [HFD_OVERVIEW_STUCK] = {"stuck=true", "warn", "STUCK"},
    [HFD_OVERVIEW_DEGRADED] = {"degraded=true", "warn", "DEGRADED"},
};

static void trouble_word(struct hfd_html *h, enum hfd_overview_trouble trouble)
{
    hfd_html_add(h, HFD_HTML("<span class=\"w "), HFD_STR(troubles[trouble].colour),
                 HFD_HTML("\">"), HFD_STR(troubles[trouble].word), HFD_HTML("</span> "));
}

/* Adds the resources with one cause: a line that opens. */
static void group(struct hfd_html *h, const struct hfd_overview_cause *c, bool open)
{
    const bool known = c->cause.reason.len > 0;

    hfd_html_add(h, HFD_HTML("<details id=\"cause-"),
                 HFD_STR(hfd_overview_trouble_name(c->trouble)), HFD_HTML("-"),
                 HFD_PATH(c->cause.who), HFD_HTML("-"), HFD_PATH(c->cause.reason),
                 open ? HFD_HTML("\" open><summary>") : HFD_HTML("\"><summary>"));
    trouble_word(h, c->trouble);
    hfd_html_add(h, HFD_HTML("<b>"), HFD_COUNT(c->count), HFD_HTML("</b> "));
    if (known)
        cause_of(h, &c->cause);
    else
        hfd_html_add(h, HFD_HTML("by other causes"));
    hfd_html_add(h, HFD_HTML(" <span class=\"dim\">the oldest "), HFD_TIME(c->since_us));
    if (c->item_count > 0 && c->items[0].cause.words.len > 0)
        hfd_html_add(h, HFD_HTML(": "), HFD_TEXT(c->items[0].cause.words));
    hfd_html_add(h, HFD_HTML("</span></summary>"));
    list_head(h);
    for (size_t i = 0; i < c->item_count; i++)
        list_row(h, &c->items[i]);
    hfd_html_add(h, HFD_HTML(TABLE_END));
    if (c->count > (int64_t)c->item_count) {
        hfd_html_add(h, HFD_HTML("<p><a href=\"/?"), HFD_STR(troubles[c->trouble].query));
        if (known)
            hfd_html_add(h, HFD_HTML("&amp;who="), HFD_PATH(c->cause.who), HFD_HTML("&amp;reason="),
                         HFD_PATH(c->cause.reason));
        hfd_html_add(h, HFD_HTML("\">and "), HFD_COUNT(c->count - (int64_t)c->item_count),
                     HFD_HTML(" more</a></p>"));
    }
    hfd_html_add(h, HFD_HTML("</details>"));
}

/* Pacemaker, which is no adapter that makes something, has a place of its own. */
static bool is_observer(const struct hfd_web_page *p, hfd_slice who)
{
    return hfd_adapter_names_have(p->app->driver->fleet.observers, who);
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
    hfd_html_add(h, HFD_HTML("<p>"));
    trouble_word(h, trouble);
    hfd_html_add(h, HFD_HTML("<a href=\"/?"), HFD_STR(troubles[trouble].query), HFD_HTML("\">"),
                 HFD_COUNT(left), HFD_HTML(" more by "),
                 HFD_COUNT((int64_t)shown - HFD_WEB_CAUSES_MAX), HFD_HTML(" other causes</a></p>"));
    return shown;
}

static void trouble(struct hfd_html *h, const struct hfd_web_page *p)
{
    size_t shown;

    hfd_html_add(h, SECTION("needs", "Needs attention"));
    shown = problems(h);
    for (int t = 0; t < HFD_OVERVIEW_TROUBLES; t++) {
        shown += kind(h, p, (enum hfd_overview_trouble)t, false);
        shown += kind(h, p, (enum hfd_overview_trouble)t, true);
    }
    if (shown == 0 && p->orphans.list.count == 0)
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">Nothing.</p>"));
    orphans(h, p);
    hfd_html_add(h, HFD_HTML("</section>"));
}

static void working(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_add(h, SECTION("way", "Under way"));
    if (p->list.count == 0)
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">Nothing.</p>"));
    else
        hfd_html_add(
            h, TABLE(COLUMN("State") COLUMN("Resource") COLUMN("Progress") COLUMN("Adapters")));
    for (size_t i = 0; i < p->list.count; i++) {
        const struct hfd_overview_item *item = &p->list.items[i];

        hfd_html_add(h, HFD_HTML("<tr><td class=\"n\">"));
        state_word(h, item);
        hfd_html_add(h, HFD_HTML("</td><th scope=\"row\">"));
        resource_link(h, item->guresid, item->name);
        hfd_html_add(h, HFD_HTML("</th><td class=\"n\">"));
        hfd_web_progress(h, item);
        hfd_html_add(h, HFD_HTML("</td><td>"));
        marks(h, &p->details[i]);
        if (item->message.len > 0)
            hfd_html_add(h, HFD_HTML("<p class=\"dim\">"), HFD_TEXT(item->message),
                         HFD_HTML("</p>"));
        hfd_html_add(h, HFD_HTML("</td></tr>"));
    }
    if (p->list.count > 0)
        hfd_html_add(h, HFD_HTML(TABLE_END));
    if (p->list.more)
        hfd_html_add(h,
                     HFD_HTML("<p><a href=\"/?state=creating&amp;state=updating&amp;state=deleting"
                              "\">All that is under way</a></p>"));
    hfd_html_add(h, HFD_HTML("</section>"));
}

/* ---- adapters ---- */

static void adapter_row(struct hfd_html *h, const struct hfd_adapter_seen *a)
{
    hfd_html_add(h, HFD_HTML("<tr><th scope=\"row\"><a href=\"/?who="), HFD_PATH(a->name),
                 HFD_HTML("\">"), HFD_TEXT(a->name), HFD_HTML("</a> <span class=\"dim\">"),
                 HFD_STR(hfd_kind_word(a->kind)),
                 HFD_HTML("s</span></th><td class=\"n\" data-h=\"Last report\">"),
                 a->last_us != 0 ? HFD_TIME(a->last_us)
                                 : HFD_HTML("<span class=\"dim\">none since the start</span>"),
                 HFD_HTML(CELL("Resources")), HFD_COUNT(a->good), HFD_HTML(" ok"));
    if (a->bad > 0)
        hfd_html_add(h, HFD_HTML(", <span class=\"w warn\">"), HFD_COUNT(a->bad),
                     HFD_HTML(" not</span>"));
    if (a->open > 0)
        hfd_html_add(h, HFD_HTML(", "), HFD_COUNT(a->open), HFD_HTML(" unknown"));
    hfd_html_add(h, HFD_HTML(NARROW_CELL("Usual time")));
    if (a->time_count > 0) {
        hfd_html_add(h, HFD_SPAN(a->median_us), HFD_HTML(" "));
        bars(h, a->times_us, a->time_count);
    } else {
        hfd_html_add(h, HFD_HTML("<span class=\"dim\">not known yet</span>"));
    }
    hfd_html_add(h, HFD_HTML("</td></tr>"));
}

static void adapters(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_add(h, SECTION("adapters", "Adapters"),
                 TABLE(COLUMN("Adapter") COLUMN("Last report") COLUMN("Resources")
                           COLUMN("Usual time until done")));
    for (size_t i = 0; i < p->adapters.count; i++)
        adapter_row(h, &p->adapters.items[i]);
    hfd_html_add(h, HFD_HTML(TABLE_END "</section>"));
}

/* ---- replicas ---- */

static void replica_row(struct hfd_html *h, const struct hfd_replica_seen *r)
{
    hfd_html_add(h, HFD_HTML("<tr><th scope=\"row\">"), HFD_TEXT(r->name.len > 0 ? r->name : r->id),
                 HFD_HTML("</th><td class=\"n\" data-h=\"Last seen\">"),
                 r->live ? WORD("good", "live") : WORD("warn", "GONE"), HFD_HTML(" "),
                 HFD_TIME(r->beat_us), HFD_HTML(NARROW_CELL("Since")), HFD_TIME(r->started_us),
                 HFD_HTML(CELL("Version")), HFD_TEXT(r->version),
                 HFD_HTML(" <span class=\"dim\">schema "), HFD_INT(r->schema),
                 HFD_HTML("</span>" NARROW_CELL("Leads")), HFD_STR(r->leads ? "yes" : "no"),
                 HFD_HTML(NARROW_CELL("Settings") "epoch "), HFD_INT(r->settings_epoch));
    if (r->outdated)
        hfd_html_add(h, HFD_HTML(" <span class=\"w warn\">OLDER</span>"));
    hfd_html_add(h, HFD_HTML("</td></tr>"));
}

/* Only a shared store has replicas. */
static void replicas(struct hfd_html *h, const struct hfd_web_page *p)
{
    if (p->replicas.count == 0)
        return;
    hfd_html_add(h, SECTION("replicas", "Replicas"),
                 TABLE(COLUMN("Replica") COLUMN("Last seen") COLUMN("Since") COLUMN("Version")
                           COLUMN("Leads") COLUMN("Settings")));
    for (size_t i = 0; i < p->replicas.count; i++)
        replica_row(h, &p->replicas.items[i]);
    hfd_html_add(h, HFD_HTML(TABLE_END "</section>"));
}

/* ---- the last day ---- */

static void history(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_add(h, SECTION("day", "Last 24 hours"));
    if (p->history.count == 0)
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">Nothing happened.</p>"));
    else
        hfd_html_add(h, HFD_HTML("<ol class=\"life\">"));
    for (size_t i = 0; i < p->history.count; i++)
        entry(h, &p->history.items[i].row, &p->history.items[i].name);
    if (p->history.count > 0)
        hfd_html_add(h, HFD_HTML("</ol>"));
    hfd_html_add(h, HFD_HTML("</section>"));
}

/* ---- the list that was asked for ---- */

static void next_link(struct hfd_html *h, const struct hfd_web_page *p)
{
    const hfd_slice token = hfd_overview_token(&p->asked, &p->list, p->mem);
    hfd_slice rest = p->query;

    if (!p->list.more || token.p == NULL)
        return;
    hfd_html_add(h, HFD_HTML("<p><a href=\"/?after="), HFD_PATH(token));
    while (rest.len > 0) {
        const hfd_slice one = hfd_slice_cut(&rest, '&');

        if (!hfd_slice_starts(one, HFD_SLICE("after=")))
            hfd_html_add(h, HFD_HTML("&amp;"), HFD_TEXT(one));
    }
    hfd_html_add(h, HFD_HTML("\">Next page</a></p>"));
}

static void listing(struct hfd_html *h, const struct hfd_web_page *p)
{
    hfd_html_add(h, SECTION("list", "Resources"));
    if (p->list.count == 0) {
        hfd_html_add(h, HFD_HTML("<p>No resource matches.</p></section>"));
        return;
    }
    list_head(h);
    for (size_t i = 0; i < p->list.count; i++)
        list_row(h, &p->list.items[i]);
    hfd_html_add(h, HFD_HTML(TABLE_END));
    next_link(h, p);
    hfd_html_add(h, HFD_HTML("</section>"));
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

static int64_t highest(const struct plot *p)
{
    int64_t top = 0;

    for (size_t i = 0; i < p->r->count; i++) {
        const int64_t value = value_at(&p->r->bars[i], p->mark != 0 ? p->mark : p->value);

        top = value > top ? value : top;
    }
    return top;
}

/* A box as wide as a bar. @param y  of its upper edge */
static void add_rect(struct hfd_html *h, const char *colour, const struct plot *p,
                     const int64_t place[3])
{
    hfd_html_add(h, HFD_HTML("<rect class=\""), HFD_STR(colour), HFD_HTML("\" x=\""),
                 HFD_INT(place[0]), HFD_HTML("\" y=\""), HFD_INT(place[1]), HFD_HTML("\" width=\""),
                 HFD_INT(BARS / (int64_t)p->r->count - 2), HFD_HTML("\" height=\""),
                 HFD_INT(place[2]), HFD_HTML("\"/>"));
}

static void add_bars(struct hfd_html *h, const struct plot *p, int64_t top)
{
    const int64_t step = BARS / (int64_t)p->r->count;

    for (size_t i = 0; i < p->r->count; i++) {
        const struct hfd_trend_bar *bar = &p->r->bars[i];
        const int64_t value = value_at(bar, p->value), x = LEFT + 2 + (int64_t)i * step;
        const int64_t mark = p->mark != 0 ? value_at(bar, p->mark) : 0;
        const int64_t height = value * (BOTTOM - TOP) / top;
        const int64_t seen = height > 1 ? height : 1; /* the least value can be seen */

        if (value > 0)
            add_rect(h, p->colour, p, (int64_t[]){x, BOTTOM - seen, seen});
        if (mark > 0)
            add_rect(h, "mark", p, (int64_t[]){x, BOTTOM - mark * (BOTTOM - TOP) / top, 2});
    }
}

/* "Orders, last 24 hours: 336" */
static void add_plot(struct hfd_html *h, const struct plot *p)
{
    const int64_t highest_value = highest(p), top = highest_value > 0 ? highest_value : 1;
    const struct hfd_trend_bar *all = &p->r->all;
#define VALUE(value) (p->is_time ? HFD_SPAN(value) : HFD_INT(value))

    if (p->is_time ? all->finished == 0 : highest_value == 0) {
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">"), HFD_STR(p->what), HFD_HTML(", last "),
                     HFD_STR(p->range), HFD_HTML(": none.</p>"));
        return;
    }
    hfd_html_add(h, HFD_HTML("<figure><figcaption>"), HFD_STR(p->what), HFD_HTML(", last "),
                 HFD_STR(p->range), HFD_STR(p->mark != 0 ? ": p50 " : ": "),
                 VALUE(value_at(all, p->value)));
    if (p->mark != 0)
        hfd_html_add(h, HFD_HTML(" (bar), p95 "), VALUE(value_at(all, p->mark)),
                     HFD_HTML(" (line)"));
    hfd_html_add(h,
                 HFD_HTML("</figcaption>"
                          "<svg class=\"plot\" role=\"img\" width=\"356\" height=\"128\"><title>"),
                 HFD_STR(p->what), HFD_HTML(", last "), HFD_STR(p->range),
                 HFD_HTML("</title><desc>One bar for each "), HFD_STR(p->bar),
                 HFD_HTML(", the newest at the right. The highest value is "), VALUE(top),
                 HFD_HTML(".</desc><path d=\"M16 18V106H354\"/><text x=\"18\" y=\"12\">"),
                 VALUE(top),
                 HFD_HTML("</text><text x=\"4\" y=\"106\">0</text><text x=\"16\" y=\"122\">"),
                 HFD_STR(p->range),
                 HFD_HTML(" ago</text><text x=\"354\" y=\"122\" text-anchor=\"end\">now</text>"));
    add_bars(h, p, top);
    hfd_html_add(h, HFD_HTML("</svg></figure>"));
#undef VALUE
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

    hfd_html_add(h, SECTION("plots", "Over time"));
    if (l->first_us == 0) {
        hfd_html_add(h, HFD_HTML("<p class=\"dim\">Nothing was ordered in the last 7 days.</p>"
                                 "</section>"));
        return;
    }
    hfd_html_add(h, HFD_HTML("<div class=\"plots\">"));
    for (size_t i = 0; i < sizeof(plots) / sizeof(plots[0]); i++)
        add_plot(h, &plots[i]);
    hfd_html_add(h, HFD_HTML("</div><p class=\"dim\">"),
                 HFD_STR(l->whole_since_us != 0
                             ? "Only the newest actions are counted. All are there since "
                             : "The data begins "),
                 HFD_TIME(l->whole_since_us != 0 ? l->whole_since_us : l->first_us),
                 HFD_HTML(".</p></section>"));
}

/* ---- the home page ---- */

void hfd_web_home(struct hfd_html *h, const struct hfd_web_page *p)
{
    begin(h, p, p->listing ? HFD_SLICE("Resources") : HFD_SLICE("Status"));
    if (p->listing) {
        counts(h, p);
        listing(h, p);
    } else {
        hfd_html_add(h, HFD_HTML("<div class=\"top\"><div>"));
        counts(h, p);
        last_day(h, p);
        hfd_html_add(h, HFD_HTML("</div>"));
        adapters(h, p);
        hfd_html_add(h, HFD_HTML("</div>"));
        trouble(h, p);
        working(h, p);
        replicas(h, p);
        over_time(h, &p->trends);
        history(h, p);
        hfd_html_add(h, HFD_HTML("<p><a href=\"/?order=trouble\">All resources</a></p>"));
    }
    end(h);
}

/* ---- a resource ---- */

#define TERM(name) HFD_HTML("<dt>" name "</dt><dd>")

static void text_row(struct hfd_html *h, const char *name, hfd_slice value)
{
    if (value.len > 0)
        hfd_html_add(h, HFD_HTML("<dt>"), HFD_STR(name), HFD_HTML("</dt><dd>"), HFD_TEXT(value),
                     HFD_HTML("</dd>"));
}

static void time_row(struct hfd_html *h, const char *name, int64_t at_us)
{
    if (at_us != 0)
        hfd_html_add(h, HFD_HTML("<dt>"), HFD_STR(name), HFD_HTML("</dt><dd>"), HFD_TIME(at_us),
                     HFD_HTML("</dd>"));
}

static void summary(struct hfd_html *h, const struct hfd_detail *d)
{
    const struct hfd_overview_item *i = &d->item;

    hfd_html_add(h, HFD_HTML("<dl>"), TERM("State"));
    if (d->is_there)
        state_word(h, i);
    else
        hfd_html_add(h, HFD_HTML("<span class=\"w\">removed</span>"));
    if (i->operation != NULL)
        hfd_html_add(h, HFD_HTML(" ("), HFD_STR(i->operation), HFD_HTML(")"));
    hfd_html_add(h, HFD_HTML("</dd>"));
    if (i->started_us != 0) {
        hfd_html_add(h, TERM("Progress"));
        hfd_web_progress(h, i);
        hfd_html_add(h, HFD_HTML("</dd>"));
    }
    text_row(h, "Error", i->code);
    text_row(h, "Message", i->message);
    time_row(h, "Since", i->since_us);
    time_row(h, "Due", i->deadline_us);
    text_row(h, "Type", i->type);
    text_row(h, "Health", i->health);
    text_row(h, "Drift", i->drift);
    text_row(h, "Labels", i->labels);
    text_row(h, "Protected by", d->protected_by);
    text_row(h, "Ordered by", d->created_by);
    text_row(h, "Changed by", d->updated_by);
    time_row(h, "Ordered", i->created_us);
    text_row(h, "Cluster id", i->cluster_id);
    hfd_html_add(h, HFD_HTML("</dl>"));
}

/* ---- its adapters and conditions ---- */

static void detail_adapter_row(struct hfd_html *h, const struct hfd_detail_adapter *a)
{
    hfd_html_add(h, HFD_HTML("<tr><th scope=\"row\">"), HFD_TEXT(a->name),
                 HFD_STR(a->required ? "" : " (not required)"), HFD_HTML("</th><td data-h=\"On\">"),
                 HFD_STR(hfd_kind_word(a->part->view.kind)), HFD_HTML(" "),
                 HFD_TEXT(a->part->view.name), HFD_HTML("</td><td class=\"n\">"),
                 HFD_STR(a->done       ? "\xe2\x9c\x93 done"
                         : a->reported ? "\xe2\x80\xa6 waits"
                                       : "- has not reported"),
                 HFD_HTML(CELL("What")), HFD_TEXT(a->reason),
                 HFD_STR(a->reason.len > 0 && a->message.len > 0 ? ": " : ""), HFD_TEXT(a->message),
                 HFD_HTML(NARROW_CELL("Took")));
    if (a->took_us != 0)
        hfd_html_add(h, HFD_SPAN(a->took_us));
    if (a->usual_us != 0)
        hfd_html_add(h, HFD_HTML(" <span class=\"dim\">usually "), HFD_SPAN(a->usual_us),
                     HFD_HTML("</span>"));
    hfd_html_add(h, HFD_HTML(NARROW_CELL("Last report")));
    if (a->reported)
        hfd_html_add(h, HFD_TIME(a->reported_us));
    hfd_html_add(h, HFD_HTML("</td></tr>"));
}

static void detail_adapters(struct hfd_html *h, const struct hfd_detail *d)
{
    if (d->adapter_count == 0)
        return;
    hfd_html_add(h, SECTION("adapters", "Adapters"),
                 TABLE(COLUMN("Adapter") COLUMN("On") COLUMN("State") COLUMN("What") COLUMN("Took")
                           COLUMN("Last report")));
    for (size_t i = 0; i < d->adapter_count; i++)
        detail_adapter_row(h, &d->adapters[i]);
    hfd_html_add(h, HFD_HTML(TABLE_END "</section>"));
}

static void conditions(struct hfd_html *h, const struct hfd_conditions *cs)
{
    hfd_html_add(h, TABLE(COLUMN("Condition") COLUMN("Status") COLUMN("Why") COLUMN("Since")));
    for (size_t i = 0; i < cs->count; i++) {
        const struct hfd_condition *c = &cs->items[i];

        hfd_html_add(h, HFD_HTML("<tr><th scope=\"row\">"), HFD_TEXT(c->type),
                     HFD_HTML("</th><td class=\"w\">"), HFD_STR(hfd_status_name(c->status)),
                     HFD_HTML(CELL("Why")), HFD_TEXT(c->reason),
                     HFD_STR(c->message.len > 0 ? ": " : ""), HFD_TEXT(c->message),
                     HFD_HTML(NARROW_CELL("Since")), HFD_TIME(c->last_transition_us),
                     HFD_HTML("</td></tr>"));
    }
    hfd_html_add(h, HFD_HTML(TABLE_END));
}

static void parts(struct hfd_html *h, const struct hfd_detail *d)
{
    if (d->parts.count == 0)
        return;
    hfd_html_add(h, SECTION("parts", "Cluster and nodepools"));
    for (size_t i = 0; i < d->parts.count; i++) {
        const struct hfd_part_view *v = &d->parts.items[i].view;

        hfd_html_add(h, HFD_HTML("<h3>"), HFD_STR(hfd_kind_word(v->kind)), HFD_HTML(" "),
                     HFD_TEXT(v->name), HFD_HTML("</h3><p class=\"dim\">"));
        if (v->exists)
            hfd_html_add(h, HFD_HTML("id <code>"), HFD_TEXT(v->id),
                         HFD_HTML("</code>, generation "), HFD_INT(v->generation),
                         HFD_STR(v->deleting ? ", is being deleted" : ""));
        else
            hfd_html_add(h, HFD_HTML("not in HyperFleet"));
        hfd_html_add(h, HFD_HTML("</p>"));
        if (v->exists && v->conditions.count > 0)
            conditions(h, &v->conditions);
    }
    hfd_html_add(h, HFD_HTML("</section>"));
}

/* ---- pacemaker ---- */

static struct hfd_html_piece healthy(const struct hfd_conditions *cs)
{
    return hfd_health_is_true(cs, "Healthy") ? HFD_HTML("<span class=\"good\">healthy</span>")
                                             : WORD("bad", "NOT HEALTHY");
}

static void unit_row(struct hfd_html *h, const struct hfd_health_node *node,
                     const struct hfd_health_unit *unit, const char *kind_word)
{
    hfd_html_add(h, HFD_HTML("<tr><th scope=\"row\">"), HFD_TEXT(unit->name), HFD_HTML("</th><td>"),
                 HFD_STR(kind_word), HFD_HTML(" "), HFD_TEXT(unit->method), HFD_HTML(CELL("Node")),
                 HFD_TEXT(node->name), HFD_HTML("</td><td>"), healthy(&unit->conditions),
                 HFD_HTML("</td></tr>"));
}

static void node_rows(struct hfd_html *h, const struct hfd_health_node *node)
{
    hfd_html_add(
        h, HFD_HTML("<tr><th scope=\"row\">"), HFD_TEXT(node->name),
        HFD_HTML("</th><td>node <code>"), HFD_TEXT(node->address),
        HFD_HTML("</code></td><td></td><td>"), healthy(&node->conditions),
        HFD_STR(hfd_health_is_true(&node->conditions, "Online") ? ", online" : ", OFFLINE"),
        HFD_HTML("</td></tr>"));
    for (size_t i = 0; i < node->agents.count; i++)
        unit_row(h, node, &node->agents.items[i], "fencing agent");
    for (size_t i = 0; i < node->resources.count; i++)
        unit_row(h, node, &node->resources.items[i], "resource");
}

static void said(struct hfd_html *h, const struct hfd_health_said *said, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hfd_html_add(h, HFD_HTML("<li>"), HFD_TEXT(said[i].text), HFD_HTML("</li>"));
}

static void health(struct hfd_html *h, const struct hfd_detail *d)
{
    for (size_t i = 0; i < d->health_count; i++) {
        const struct hfd_health_view *v = &d->health[i].view;

        hfd_html_add(h, HFD_HTML("<section><h2>Pacemaker, from "), HFD_TEXT(d->health[i].adapter),
                     HFD_HTML("</h2><p class=\"w\">"),
                     HFD_STR(hfd_health_overall_name(v->verdict.overall)),
                     HFD_HTML("</p><p>Last update "), HFD_TIME(v->document.updated_us),
                     HFD_STR(v->verdict.stale ? ": stale" : ""), HFD_HTML("</p><ul>"));
        said(h, v->verdict.errors, v->verdict.error_count);
        said(h, v->verdict.warnings, v->verdict.warning_count);
        hfd_html_add(h, HFD_HTML("</ul>"),
                     TABLE(COLUMN("Name") COLUMN("Kind") COLUMN("Node") COLUMN("State")));
        for (size_t n = 0; n < v->document.node_count; n++)
            node_rows(h, &v->document.nodes[n]);
        hfd_html_add(h, HFD_HTML(TABLE_END "</section>"));
    }
}

/* ---- life, order, curl ---- */

static void life(struct hfd_html *h, const struct hfd_detail *d)
{
    hfd_html_add(h, SECTION("life", "Life"), HFD_HTML("<ol class=\"life\">"));
    for (size_t i = 0; i < d->history.count; i++)
        entry(h, &d->history.entries[i], NULL);
    hfd_html_add(h, HFD_HTML("</ol></section>"));
}

static void commands(struct hfd_html *h, const struct hfd_web_page *p)
{
    const struct hfd_settings *s = p->app->settings;
    const char *scheme = s->tls_cert_file.len > 0 ? "https://" : "http://";
#define CURL(options, path)                                                                        \
    HFD_HTML("<pre tabindex=\"0\">curl " options), HFD_STR(scheme), HFD_TEXT(s->listen),           \
        HFD_HTML(path), HFD_PATH(p->guresid), HFD_HTML("</pre>")

    hfd_html_add(h, SECTION("curl", "Commands"), HFD_HTML("<p>What the orchestrator gets:</p>"),
                 CURL("-s ", "/"), HFD_HTML("<p>All that this page has, as JSON:</p>"),
                 CURL("-s ", "/api/driver/v1/resources/"), HFD_HTML("<p>Delete it:</p>"),
                 CURL("-s -X DELETE ", "/"), HFD_HTML("</section>"));
#undef CURL
}

void hfd_web_resource(struct hfd_html *h, const struct hfd_web_page *p)
{
    const struct hfd_detail *d = &p->detail;
    const hfd_slice name = d->item.name.len > 0 ? d->item.name : p->guresid;

    begin(h, p, name);
    hfd_html_add(h, HFD_HTML("<h2>"), HFD_TEXT(name), HFD_HTML(" <code class=\"dim\">"),
                 HFD_TEXT(p->guresid), HFD_HTML("</code></h2>"));
    summary(h, d);
    detail_adapters(h, d);
    health(h, d);
    life(h, d);
    parts(h, d);
    if (d->input.len > 0)
        hfd_html_add(h, SECTION("order", "Order"), HFD_HTML("<pre tabindex=\"0\">"),
                     HFD_TEXT(d->input), HFD_HTML("</pre></section>"));
    commands(h, p);
    end(h);
}

void hfd_web_missing(struct hfd_html *h, const struct hfd_web_page *p)
{
    begin(h, p, HFD_SLICE("No such resource"));
    hfd_html_add(h, HFD_HTML("<h2>There is no such resource</h2><p>None with this id was removed "
                             "lately. <a href=\"/?order=trouble\">All resources</a></p>"));
    end(h);
}
