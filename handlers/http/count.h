/*
 * Counts answers: in the metrics of the program, and for routes of the HyperFleet API also in its
 * own. Each loop has one counter, which looks up a series once per route and status. Thread: loop.
 */
#ifndef HFD_HTTP_COUNT_H
#define HFD_HTTP_COUNT_H

#include "handlers/http/http.h"

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
