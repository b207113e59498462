/*
 * Finds the row of the route table for a raw path. Pure. Thread: any; the router is const after
 * start-up. The table is in routes.c.
 */
#ifndef HFD_HTTP_ROUTE_H
#define HFD_HTTP_ROUTE_H

#include "driver/base/arena.h"
#include "handlers/http/http.h"

/** A path split at its slashes and percent-decoded. */
struct hfd_path {
    hfd_slice segments[HFD_SEGMENTS_MAX];
    size_t count; /* HFD_SEGMENTS_MAX + 1 = more; matches nothing */
};

/**
 * Splits a path. Ignores one doubled slash and one slash at the end.
 * @param raw  begins with '/', without query
 * @param out  its slices point into raw, or into mem if decoded
 * @return HFD_OK, HFD_BAD_REQUEST (a bad escape, or an escaped NUL or '/'), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_path_split(hfd_slice raw, struct hfd_arena *mem, struct hfd_path *out,
                                     struct hfd_err *err);

/** Parses a method, case-sensitive; HFD_METHOD_OTHER if it is not in the list. */
enum hfd_method hfd_method_parse(hfd_slice text);
const char *hfd_method_name(enum hfd_method m);

struct hfd_router;

struct hfd_route_table {
    const struct hfd_route *routes;
    size_t count;
    const hfd_slice *drivers; /* the first segments that "{driver}" matches */
    size_t driver_count;
};

/**
 * Splits the patterns of a table.
 * @param table  its arrays are borrowed for the life of the router
 * @param out    gives; free with hfd_router_free
 * @return HFD_OK, HFD_INVALID (a prefix that is empty, doubled, "api", "t", or not one plain
 * segment), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_router_new(const struct hfd_route_table *table, struct hfd_router **out,
                                     struct hfd_err *err);
/** Frees a router; accepts NULL. */
void hfd_router_free(struct hfd_router *r);

enum hfd_route_outcome {
    HFD_ROUTE_FOUND,
    HFD_ROUTE_NO_METHOD,
    HFD_ROUTE_NO_PATH,
};

struct hfd_match {
    const struct hfd_route *route; /* FOUND */
    hfd_slice params[HFD_PARAMS_MAX];
    enum hfd_dialect dialect; /* always set: the form of errors */
    unsigned methods;         /* bits by enum hfd_method of the path: FOUND, NO_METHOD */
};

/**
 * Finds the route of a path. Literal segments win over {driver}, which wins over parameters, from
 * left to right. HEAD is served wherever GET is. A literal at the end leaves the methods that it
 * lacks to the pattern with a parameter there, if both speak one dialect.
 */
enum hfd_route_outcome hfd_route_match(const struct hfd_router *r, enum hfd_listener listener,
                                       enum hfd_method method, const struct hfd_path *path,
                                       struct hfd_match *out);

/** Returns the dialect of a path that could not be split, by its beginning. */
enum hfd_dialect hfd_dialect_of(enum hfd_listener listener, hfd_slice raw_path);

#define HFD_ALLOW_TEXT_MAX 64
/** Writes "GET, HEAD, PUT". */
void hfd_allow_format(unsigned methods, char out[HFD_ALLOW_TEXT_MAX]);

/*
 * Counts answers: in the metrics of the program, and for routes of the HyperFleet API also in its
 * own. Each loop has one counter, which looks up a series once per route and status. Thread: loop.
 */

struct hfd_counter;

/**
 * @param routes  borrowed for the life of the counter
 * @return NULL if memory is short
 */
struct hfd_counter *hfd_counter_new(const struct hfd_route *routes, size_t route_count);
/** Frees a counter; accepts NULL. */
void hfd_counter_free(struct hfd_counter *c);

/**
 * Counts an answer.
 * @param route  a row of the table; NULL if none matched
 */
void hfd_counter_add(struct hfd_counter *c, const struct hfd_route *route, enum hfd_method method,
                     int status, int64_t duration_us);

#define HFD_COUNT_PATH_MAX 64
/**
 * Writes a pattern as HyperFleet shows it: each {var} becomes "-". Cuts it at the length of a
 * label.
 */
void hfd_count_path(const char *pattern, char out[HFD_COUNT_PATH_MAX + 1]);

#endif
