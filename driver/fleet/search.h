/*
 * Searches of lists: TSL, HyperFleet's search language. Parses a text into a tree that the store
 * can turn into SQL. Length and depth are bounded. Every mistake is an HFD_BAD_REQUEST that quotes
 * the place. Sources: HyperFleet API, "search"; driver/README.md, decision 6. Pure. Thread: any.
 *
 *   expr       := term { OR term }
 *   term       := factor { AND factor }
 *   factor     := NOT factor | '(' expr ')' | comparison
 *   comparison := field ( = != <> < <= > >= ) literal
 *              |  field [NOT] (LIKE | ILIKE) string
 *              |  field [NOT] BETWEEN literal AND literal
 *              |  field [NOT] IN list
 *              |  field IS [NOT] (NULL | literal)
 *   list       := '(' [ literal {',' literal} ] ')'  |  '[' ... ']'
 *   field      := name { '.' name }
 *   name       := letter or '_' {letter digit '_'} | "..." | `...`; behind a dot also a digit
 * first; behind "labels." also the key of a Kubernetes label literal    := 'text' (with '' or \'
 * for a quote, \\ for a backslash) | "..." | `...` |  [+-]number | true | false | a date or time of
 * RFC 3339
 *
 * The order of lists: the parameters orderBy and order. Source: HyperFleet API, "orderBy";
 * driver/README.md, decision 2. Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_H
#define HFD_FLEET_SEARCH_H

#include "driver/base/arena.h"
#include "store/filter.h"
#include "store/kind.h"

#define HFD_SEARCH_MAX 4096
#define HFD_SEARCH_DEPTH_MAX 64

/**
 * Parses a search.
 * @param query  decoded text; the tree borrows it; blank = no filter
 * @param out    lives in mem; NULL when there is no filter
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_search_parse(enum hfd_kind kind, hfd_slice query, struct hfd_arena *mem,
                                       const struct hfd_filter **out, struct hfd_err *err);

/** The same over the reports on one cluster or nodepool: the lists `statuses`. */
HFD_MUST_CHECK hfd_rc hfd_search_parse_reports(hfd_slice query, struct hfd_arena *mem,
                                               const struct hfd_filter **out, struct hfd_err *err);

/** The order that a request asks for. */
struct hfd_order_text {
    enum hfd_kind kind;
    hfd_slice by;        /* "name desc, created_time"; blank = created_time desc */
    hfd_slice direction; /* "asc", "desc" or "": for items of `by` that name none */
    bool of_reports;     /* the fields are those of reports; kind is not used */
};

struct hfd_orders {
    const struct hfd_order *items;
    size_t count;
};

/**
 * Parses an order.
 * @param out  lives in mem, and borrows the text
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_search_order(const struct hfd_order_text *in, struct hfd_arena *mem,
                                       struct hfd_orders *out, struct hfd_err *err);

#endif
