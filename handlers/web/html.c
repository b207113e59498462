/* See html.h. */
#include "handlers/web/html.h"

#include "driver/base/clock.h"
#include "driver/base/utf8.h"

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
    while (text.len > 0) {
        const size_t n = hfd_utf8_len(text);

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

void hfd_html_resource(struct hfd_html *h, hfd_slice guresid)
{
    hfd_html_lit(h, "<a href=\"/r/");
    hfd_html_path(h, guresid);
    hfd_html_lit(h, "\"><code>");
    hfd_html_text(h, guresid);
    hfd_html_lit(h, "</code></a>");
}
