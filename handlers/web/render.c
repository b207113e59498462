/* See render.h. */
#include "handlers/web/render.h"

void hfd_web_begin(struct hfd_html *h, const struct hfd_web_page *p, hfd_slice title)
{
    hfd_html_lit(h, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                    "<title>");
    hfd_html_text(h, title);
    hfd_html_lit(
        h,
        " - hyperfleet-driver</title>"
        "<link rel=\"stylesheet\" href=\"/page/style.css\">"
        "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>"
        "<script src=\"/page/page.js\" defer></script></head>\n"
        "<body><header><h1><a href=\"/\">hyperfleet-driver</a></h1><span class=\"dim\">" HFD_VERSION
        " &middot; ");
    hfd_html_str(h, p->app->without_fleet ? "remote HyperFleet" : "embedded HyperFleet");
    hfd_html_str(h, hfd_store_ok(p->app->store) ? " \xc2\xb7 store ok" : " \xc2\xb7 STORE FAILED");
    if (p->app->driver->demo)
        hfd_html_lit(h, " &middot; DEMO: no cluster is made");
    hfd_html_lit(h, "</span><nav aria-label=\"Documents\"><ul><li><a href=\"/docs\">Manual</a></li>"
                    "<li><a href=\"/metrics\">Metrics</a></li>"
                    "<li><a href=\"/healthz\">Health</a></li></ul></nav>"
                    "<form action=\"/\" role=\"search\"><label for=\"search\">Search</label> "
                    "<input id=\"search\" name=\"search\" type=\"search\" value=\"");
    hfd_html_text(h, p->asked.search);
    hfd_html_lit(h, "\"> <button>Find</button></form>"
                    "<button id=\"pause\" type=\"button\" hidden>Pause</button>"
                    "<span id=\"age\" role=\"status\"></span></header>\n<main>");
}

void hfd_web_end(struct hfd_html *h)
{
    hfd_html_lit(h, "</main>\n</body></html>\n");
}

void hfd_web_state(struct hfd_html *h, const struct hfd_overview_item *i)
{
    if (i->state == HFD_STATE_FAILED)
        hfd_html_lit(h, "<span class=\"w bad\">FAILED</span>");
    else if (i->stuck)
        hfd_html_lit(h, "<span class=\"w warn\">STUCK</span>");
    else if (hfd_slice_is(i->health, "Degraded"))
        hfd_html_lit(h, "<span class=\"w warn\">DEGRADED</span>");
    else if (i->state == HFD_STATE_READY)
        hfd_html_lit(h, "<span class=\"w good\">ready</span>");
    else {
        hfd_html_lit(h, "<span class=\"w\">");
        hfd_html_str(h, hfd_state_name(i->state));
        hfd_html_lit(h, "</span>");
    }
}

void hfd_web_progress(struct hfd_html *h, const struct hfd_overview_item *i)
{
    const int64_t spent_us = h->now_us - i->started_us, whole_us = i->estimated_us - i->started_us;

    hfd_html_lit(h, "<progress max=\"");
    hfd_html_int(h, whole_us > 0 ? whole_us : 1);
    hfd_html_lit(h, "\" value=\"");
    hfd_html_int(h, spent_us < whole_us ? (spent_us > 0 ? spent_us : 0) : whole_us);
    hfd_html_lit(h, "\" aria-label=\"Time of ");
    hfd_html_text(h, i->guresid);
    hfd_html_lit(h, "\"></progress> ");
    hfd_html_span(h, spent_us);
    hfd_html_lit(h, " of about ");
    hfd_html_span(h, whole_us);
}

/* "done", "waits", "has not reported". */
static const char *word_of(const struct hfd_detail_adapter *a)
{
    if (a->done)
        return "done";
    return a->reported ? "waits" : "has not reported";
}

void hfd_web_marks(struct hfd_html *h, const struct hfd_detail *d)
{
    hfd_html_lit(h, "<ul class=\"marks\">");
    for (size_t i = 0; i < d->adapter_count; i++) {
        const struct hfd_detail_adapter *a = &d->adapters[i];

        if (!a->required)
            continue;
        hfd_html_lit(h, "<li>");
        if (d->parts.count > 1 && a->part->view.kind == HFD_KIND_NODEPOOL) {
            hfd_html_text(h, a->part->view.name);
            hfd_html_lit(h, "/");
        }
        hfd_html_text(h, a->name);
        hfd_html_str(h, a->done ? " \xe2\x9c\x93 " : a->reported ? " \xe2\x80\xa6 " : " - ");
        hfd_html_lit(h, "<span class=\"dim\">");
        hfd_html_str(h, word_of(a));
        hfd_html_lit(h, "</span></li>");
    }
    hfd_html_lit(h, "</ul>");
}

#define BAR_WIDTH 5
#define PICTURE_HEIGHT 20

void hfd_web_bars(struct hfd_html *h, const int64_t *times_us, size_t count)
{
    int64_t longest_us = 1;

    for (size_t i = 0; i < count; i++)
        longest_us = times_us[i] > longest_us ? times_us[i] : longest_us;
    hfd_html_lit(h, "<svg role=\"img\" height=\"20\" width=\"");
    hfd_html_int(h, (int64_t)count * BAR_WIDTH);
    hfd_html_lit(h, "\"><title>The last ");
    hfd_html_int(h, (int64_t)count);
    hfd_html_lit(h, " durations, the newest at the right; the longest took ");
    hfd_html_span(h, longest_us);
    hfd_html_lit(h, "</title>");
    for (size_t i = 0; i < count; i++) {
        const int64_t height = 1 + times_us[i] * (PICTURE_HEIGHT - 1) / longest_us;

        hfd_html_lit(h, "<rect fill=\"currentColor\" width=\"4\" x=\"");
        hfd_html_int(h, (int64_t)i * BAR_WIDTH);
        hfd_html_lit(h, "\" y=\"");
        hfd_html_int(h, PICTURE_HEIGHT - height);
        hfd_html_lit(h, "\" height=\"");
        hfd_html_int(h, height);
        hfd_html_lit(h, "\"/>");
    }
    hfd_html_lit(h, "</svg>");
}

/* Adds what happened in one word or two. */
static void happened(struct hfd_html *h, const struct hfd_history_row *row)
{
    static const char *const words[][2] = {
        {"create", "ordered"},          {"update", "update ordered"}, {"retarget", "new target"},
        {"retry", "tried again"},       {"ready", "ready"},           {"failed", "FAILED"},
        {"delete", "deletion ordered"}, {"adopted", "adopted"},       {"degraded", "DEGRADED"},
        {"recovered", "recovered"},     {"deleted", "removed"},       {"removed", "removed"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hfd_slice_is(row->what, words[i][0])) {
            hfd_html_str(h, words[i][1]);
            return;
        }
    hfd_html_text(h, row->what);
}

void hfd_web_entry(struct hfd_html *h, const struct hfd_history_row *row, bool named)
{
    hfd_html_lit(h, "<li>");
    hfd_html_time(h, row->at_us);
    hfd_html_lit(h, " ");
    if (named) {
        hfd_html_resource(h, row->id);
        hfd_html_lit(h, " ");
    }
    happened(h, row);
    hfd_html_lit(h, " <span class=\"dim\">");
    hfd_html_text(h, row->text);
    hfd_html_lit(h, "</span></li>");
}
