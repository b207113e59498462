/*
 * The one writer of the status page, the frame of a page, and the parts that several pages have.
 * Text from outside passes hfd_html_text, which escapes it; a piece of HTML is a string literal.
 * There is no other way to add to a page. Pure. Thread: any.
 */
#ifndef HFD_WEB_HTML_H
#define HFD_WEB_HTML_H

#include "driver/base/buf.h"
#include "handlers/web/read.h"

struct hfd_html {
    struct hfd_buf b;
    int64_t now_us; /* relative times are from here */
};

/** Begins a page. */
void hfd_html_init(struct hfd_html *h, int64_t now_us);

/** Adds a piece of HTML: a string literal, and nothing else compiles. */
#define hfd_html_lit(h, lit) hfd_buf_add(&(h)->b, HFD_SLICE("" lit ""))

/**
 * Adds a text, escaped for use between tags and in attributes with double quotes. Bytes that are
 * not UTF-8, and controls, become U+FFFD.
 */
void hfd_html_text(struct hfd_html *h, hfd_slice text);
/** The same for a C string. */
void hfd_html_str(struct hfd_html *h, const char *text);
void hfd_html_int(struct hfd_html *h, int64_t n);
/** Adds a number for people: "900,000". */
void hfd_html_count(struct hfd_html *h, int64_t n);
/** Adds a text for a path or a query: all but unreserved characters are percent-encoded. */
void hfd_html_path(struct hfd_html *h, hfd_slice text);

/** Adds "4 m 10 s". */
void hfd_html_span(struct hfd_html *h, int64_t span_us);
/** Adds "9 m ago" or "in 9 m" as a <time> whose title is the absolute time; "never" for 0. */
void hfd_html_time(struct hfd_html *h, int64_t at_us);
/** Adds the link to a resource: its name, and its GUResID behind it. @param name  empty = none */
void hfd_html_resource(struct hfd_html *h, hfd_slice guresid, hfd_slice name);

/** Begins a page: head, title, and the line with links and the search. Ends it. */
void hfd_web_begin(struct hfd_html *h, const struct hfd_web_page *p, hfd_slice title);
void hfd_web_end(struct hfd_html *h);

/** Adds the word of a state: FAILED, STUCK, DEGRADED, creating. */
void hfd_web_state(struct hfd_html *h, const struct hfd_overview_item *i);
/** Adds a progress bar with its words: "4 m of about 11 m". */
void hfd_web_progress(struct hfd_html *h, const struct hfd_overview_item *i);
/** Adds the adapters of a resource as a list of words: "dns waits". */
void hfd_web_marks(struct hfd_html *h, const struct hfd_detail *d);
/** Adds a picture of durations: one bar each. */
void hfd_web_bars(struct hfd_html *h, const int64_t *times_us, size_t count);
/** Adds an item of a list: when something happened, and what. @param name  of its resource, if that
    is named; else NULL */
void hfd_web_entry(struct hfd_html *h, const struct hfd_history_row *row, const hfd_slice *name);

#endif
