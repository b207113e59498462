/*
 * The one writer of the status page. Text from outside passes hfd_html_text, which escapes it; a
 * piece of HTML is a string literal. There is no other way to add to a page. Thread: any.
 */
#ifndef HFD_WEB_HTML_H
#define HFD_WEB_HTML_H

#include "driver/base/buf.h"

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
/** Adds a text for a path or a query: all but unreserved characters are percent-encoded. */
void hfd_html_path(struct hfd_html *h, hfd_slice text);

/** Adds "4 m 10 s". */
void hfd_html_span(struct hfd_html *h, int64_t span_us);
/** Adds "9 m ago" or "in 9 m" as a <time> whose title is the absolute time; "never" for 0. */
void hfd_html_time(struct hfd_html *h, int64_t at_us);
/** Adds the link to a resource, with its GUResID as the text. */
void hfd_html_resource(struct hfd_html *h, hfd_slice guresid);

#endif
