/* See html.h. */
#include "handlers/web/html.h"

#include "driver/base/buf.h"
#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/utf8.h"
#include "handlers/web/read.h"

/* ---- text ---- */

#define PAGE_MAX_BYTES ((size_t)4 * 1024 * 1024)

void hfd_html_init(struct hfd_html *h, int64_t now_us)
{
    hfd_buf_init(&h->b, PAGE_MAX_BYTES);
    h->now_us = now_us;
}

static void add_char(struct hfd_buf *b, const char *p, size_t n)
{
    const unsigned char c = (unsigned char)*p;

    if (n == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
        hfd_buf_lit(b, "\xef\xbf\xbd");
    else if (c == '&')
        hfd_buf_lit(b, "&amp;");
    else if (c == '<')
        hfd_buf_lit(b, "&lt;");
    else if (c == '>')
        hfd_buf_lit(b, "&gt;");
    else if (c == '"')
        hfd_buf_lit(b, "&quot;");
    else if (c == '\'')
        hfd_buf_lit(b, "&#39;");
    else
        hfd_buf_add(b, (hfd_slice){p, n});
}

void hfd_html_text(struct hfd_html *h, hfd_slice text)
{
    hfd_slice secret = hfd_foreign_secret(text);

    while (text.len > 0) {
        const size_t n = hfd_utf8_len(text);

        if (text.p == secret.p) {
            hfd_buf_lit(&h->b, HFD_FOREIGN_REDACTED);
            text = (hfd_slice){text.p + secret.len, text.len - secret.len};
            secret = hfd_foreign_secret(text);
            continue;
        }
        add_char(&h->b, text.p, n);
        text.p += n == 0 ? 1 : n;
        text.len -= n == 0 ? 1 : n;
    }
}

void hfd_html_str(struct hfd_html *h, const char *text)
{
    hfd_html_text(h, hfd_slice_of(text));
}

void hfd_html_int(struct hfd_html *h, int64_t n)
{
    hfd_buf_i64(&h->b, n);
}

void hfd_html_count(struct hfd_html *h, int64_t n)
{
    hfd_buf_count(&h->b, n);
}

void hfd_html_path(struct hfd_html *h, hfd_slice text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] != '\0' && strchr(plain, text.p[i]) != NULL)
            hfd_buf_addc(&h->b, text.p[i]);
        else
            hfd_buf_addf(&h->b, "%%%02X", (unsigned)(unsigned char)text.p[i]);
    }
}

void hfd_html_span(struct hfd_html *h, int64_t span_us)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    int64_t s = span_us > 0 ? span_us / HFD_US_PER_S : 0;
    size_t i = 0;

    while (i < 3 && s < units[i].seconds)
        i++;
    hfd_buf_addf(&h->b, "%lld %s", (long long)(s / units[i].seconds), units[i].unit);
    s %= units[i].seconds;
    if (i < 3 && s / units[i + 1].seconds > 0)
        hfd_buf_addf(&h->b, " %lld %s", (long long)(s / units[i + 1].seconds), units[i + 1].unit);
}

void hfd_html_time(struct hfd_html *h, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];
    const bool ahead = at_us > h->now_us;

    if (at_us <= 0 || at_us == INT64_MAX) {
        hfd_html_lit(h, "never");
        return;
    }
    (void)hfd_time_format_s(at_us, text);
    hfd_html_lit(h, "<time datetime=\"");
    hfd_html_str(h, text);
    hfd_html_lit(h, "\" title=\"");
    hfd_html_str(h, text);
    hfd_html_lit(h, "\">");
    if (ahead)
        hfd_html_lit(h, "in ");
    hfd_html_span(h, ahead ? at_us - h->now_us : h->now_us - at_us);
    if (!ahead)
        hfd_html_lit(h, " ago");
    hfd_html_lit(h, "</time>");
}

void hfd_html_resource(struct hfd_html *h, hfd_slice guresid, hfd_slice name)
{
    const bool both = name.len > 0 && !hfd_slice_eq(name, guresid);

    hfd_html_lit(h, "<a href=\"/r/");
    hfd_html_path(h, guresid);
    hfd_html_lit(h, "\">");
    hfd_html_text(h, both ? name : guresid);
    hfd_html_lit(h, "</a>");
    if (!both)
        return;
    hfd_html_lit(h, " <code class=\"dim\">");
    hfd_html_text(h, guresid);
    hfd_html_lit(h, "</code>");
}

/* ---- the frame and common parts ---- */

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
    const int64_t spent_us = h->now_us - i->started_us, whole_us = i->usual_us - i->started_us;

    if (spent_us > whole_us)
        hfd_html_lit(h, "<progress class=\"late\" max=\"");
    else
        hfd_html_lit(h, "<progress max=\"");
    hfd_html_int(h, whole_us > 0 ? whole_us : 1);
    hfd_html_lit(h, "\" value=\"");
    hfd_html_int(h, spent_us < whole_us ? (spent_us > 0 ? spent_us : 0) : whole_us);
    hfd_html_lit(h, "\" aria-label=\"Time of ");
    hfd_html_text(h, i->guresid);
    hfd_html_lit(h, "\"></progress> ");
    hfd_html_span(h, spent_us);
    hfd_html_str(h, spent_us > whole_us ? ", usually " : " of about ");
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

void hfd_web_entry(struct hfd_html *h, const struct hfd_history_row *row, const hfd_slice *name)
{
    hfd_html_lit(h, "<li>");
    hfd_html_time(h, row->at_us);
    hfd_html_lit(h, " ");
    if (name != NULL) {
        hfd_html_resource(h, row->id, *name);
        hfd_html_lit(h, " ");
    }
    happened(h, row);
    hfd_html_lit(h, " <span class=\"dim\">");
    hfd_html_text(h, row->text);
    hfd_html_lit(h, "</span></li>");
}
