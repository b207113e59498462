/*
 * TSL, the search language of HyperFleet's lists: text -> checked tree. Bounded in length and
 * depth; every mistake is an HFD_BAD_REQUEST that quotes the query's place. Sources:
 * 000_b453de1dc0312d98.txt "search"; spec/hyperfleet-api.md section 9; DESIGN 10.6. Pure. Thread:
 * any.
 *
 *   expr       := term { OR term }            term := factor { AND factor }
 *   factor     := NOT factor | '(' expr ')' | comparison
 *   comparison := field ( = != <> < <= > >= ) literal
 *              |  field [NOT] (LIKE | ILIKE) string   |  field [NOT] BETWEEN literal AND literal
 *              |  field [NOT] IN list                 |  field IS [NOT] (NULL | literal)
 *   list       := '(' [ literal {',' literal} ] ')'   |  '[' ... ']'
 *   field      := name { '.' name }                   name := letter or '_' {letter digit '_'} |
 * "..." | `...` (behind a dot it may begin with a digit) literal    := 'text' (with '' or \' for a
 * quote, \\ for a backslash) | [+-]number
 */
#ifndef HFD_FLEET_SEARCH_H
#define HFD_FLEET_SEARCH_H

#include "driver/base/arena.h"
#include "store/filter.h"
#include "store/kind.h"

#define HFD_SEARCH_MAX 4096
#define HFD_SEARCH_DEPTH_MAX 64

/**
 * @param query  decoded text; blank = no filter. Borrowed as long as the tree is used. Both names
 * of a condition (Ready and Reconciled, Available and LastKnownReconciled) give the first
 * @param out    NULL when there is no filter
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_search_parse(enum hfd_kind kind, hfd_slice query, struct hfd_arena *mem,
                                       const struct hfd_filter **out, struct hfd_err *err);

/**
 * "name desc, created_time" -> order, borrowing the text; blank = created_time desc. `direction`
 * ("asc", "desc" or "") holds where an item names none.
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_search_order(enum hfd_kind kind, hfd_slice text, hfd_slice direction,
                                       struct hfd_arena *mem, const struct hfd_order **out,
                                       size_t *count, struct hfd_err *err);

#endif
