/*
 * The one writer of the status page. Text from outside is a value of HFD_TEXT, which is escaped; a
 * piece of HTML is a string literal. There is no other way to add to a page. Pure. Thread: any.
 */
#ifndef HFD_WEB_HTML_H
#define HFD_WEB_HTML_H

#include "driver/base/buf.h"

struct hfd_html {
    struct hfd_buf b;
    int64_t now_us; /* relative times are from here */
};

#define HFD_HTML_MAX_BYTES ((size_t)4 * 1024 * 1024)
/** Begins a page. */
static inline void hfd_html_init(struct hfd_html *h, int64_t now_us)
{
    hfd_buf_init(&h->b, HFD_HTML_MAX_BYTES);
    h->now_us = now_us;
}

/** A piece of a page; the macros below make it. */
struct hfd_html_piece {
    enum {
        HFD_HTML_LITERAL,
        HFD_HTML_TEXT,
        HFD_HTML_PATH,
        HFD_HTML_INT,
        HFD_HTML_COUNT,
        HFD_HTML_SPAN,
        HFD_HTML_TIME
    } kind;
    hfd_slice text;
    int64_t number;
};

#define HFD_HTML_PIECE_(kind, text, number) ((struct hfd_html_piece){kind, text, number})
#define HFD_HTML_NUMBER_(kind, n) HFD_HTML_PIECE_(kind, HFD_SLICE_NONE, n)
/** HTML: a string literal, and nothing else compiles. */
#define HFD_HTML(lit) HFD_HTML_PIECE_(HFD_HTML_LITERAL, HFD_SLICE("" lit ""), 0)
/**
 * A text, escaped for use between tags and in attributes with double quotes. Bytes that are not
 * UTF-8, and controls, become U+FFFD. HFD_STR is the same for a C string.
 */
#define HFD_TEXT(slice) HFD_HTML_PIECE_(HFD_HTML_TEXT, slice, 0)
#define HFD_STR(str) HFD_TEXT(hfd_slice_of(str))
/** A text for a path or a query: all but unreserved characters are percent-encoded. */
#define HFD_PATH(slice) HFD_HTML_PIECE_(HFD_HTML_PATH, slice, 0)
#define HFD_INT(n) HFD_HTML_NUMBER_(HFD_HTML_INT, n)
/** A number for people: "900,000". */
#define HFD_COUNT(n) HFD_HTML_NUMBER_(HFD_HTML_COUNT, n)
/** "4 m 10 s". */
#define HFD_SPAN(span_us) HFD_HTML_NUMBER_(HFD_HTML_SPAN, span_us)
/** "9 m ago" or "in 9 m" as a <time> whose title is the absolute time; "never" for 0. */
#define HFD_TIME(at_us) HFD_HTML_NUMBER_(HFD_HTML_TIME, at_us)

/** Adds pieces, one after the other. */
#define hfd_html_add(h, ...)                                                                       \
    hfd_html_add_pieces(h, (const struct hfd_html_piece[]){__VA_ARGS__},                           \
                        sizeof((const struct hfd_html_piece[]){__VA_ARGS__}) /                     \
                            sizeof(struct hfd_html_piece))
/** The function of hfd_html_add. */
void hfd_html_add_pieces(struct hfd_html *h, const struct hfd_html_piece *pieces, size_t count);

#endif
