/* See html.h. */
#include "handlers/web/html.h"

#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/url.h"
#include "driver/base/utf8.h"

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

static void add_text(struct hfd_buf *b, hfd_slice text)
{
    hfd_slice secret = hfd_foreign_secret(text);

    while (text.len > 0) {
        const size_t n = hfd_utf8_len(text);

        if (text.p == secret.p) {
            hfd_buf_lit(b, HFD_FOREIGN_REDACTED);
            text = (hfd_slice){text.p + secret.len, text.len - secret.len};
            secret = hfd_foreign_secret(text);
            continue;
        }
        add_char(b, text.p, n);
        text.p += n == 0 ? 1 : n;
        text.len -= n == 0 ? 1 : n;
    }
}

static void add_span(struct hfd_buf *b, int64_t span_us)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    int64_t s = span_us > 0 ? span_us / HFD_US_PER_S : 0;
    size_t i = 0;

    while (i < 3 && s < units[i].seconds)
        i++;
    hfd_buf_addf(b, "%lld %s", (long long)(s / units[i].seconds), units[i].unit);
    s %= units[i].seconds;
    if (i < 3 && s / units[i + 1].seconds > 0)
        hfd_buf_addf(b, " %lld %s", (long long)(s / units[i + 1].seconds), units[i + 1].unit);
}

static void add_time(struct hfd_html *h, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];
    const bool ahead = at_us > h->now_us;

    if (at_us <= 0 || at_us == INT64_MAX) {
        hfd_buf_lit(&h->b, "never");
        return;
    }
    (void)hfd_time_format_s(at_us, text);
    hfd_buf_addf(&h->b, "<time datetime=\"%s\" title=\"%s\">%s", text, text, ahead ? "in " : "");
    add_span(&h->b, ahead ? at_us - h->now_us : h->now_us - at_us);
    hfd_buf_add(&h->b, ahead ? HFD_SLICE("</time>") : HFD_SLICE(" ago</time>"));
}

void hfd_html_add_pieces(struct hfd_html *h, const struct hfd_html_piece *pieces, size_t count)
{
    for (const struct hfd_html_piece *p = pieces; p < pieces + count; p++)
        switch (p->kind) {
        case HFD_HTML_LITERAL:
            hfd_buf_add(&h->b, p->text);
            break;
        case HFD_HTML_TEXT:
            add_text(&h->b, p->text);
            break;
        case HFD_HTML_PATH:
            hfd_url_escape(&h->b, p->text, HFD_URL_PLAIN);
            break;
        case HFD_HTML_INT:
            hfd_buf_i64(&h->b, p->number);
            break;
        case HFD_HTML_COUNT:
            hfd_buf_count(&h->b, p->number);
            break;
        case HFD_HTML_SPAN:
            add_span(&h->b, p->number);
            break;
        case HFD_HTML_TIME:
            add_time(h, p->number);
            break;
        }
}
