/*
 * Counting answers: the program's own metrics for all of them, and HyperFleet's for routes of its
 * API. One counter per loop, which looks a series up once per route and status. Thread: its loop's.
 */
#ifndef HFD_HTTP_COUNT_H
#define HFD_HTTP_COUNT_H

#include "handlers/http/http.h"

struct hfd_counter;

/** @param routes  borrows for the counter's life  @return NULL when memory is short */
struct hfd_counter *hfd_counter_new(const struct hfd_route *routes, size_t route_count);
/** Accepts NULL. */
void hfd_counter_free(struct hfd_counter *c);

/** @param route  one of the table's rows; NULL where none matched */
void hfd_counter_add(struct hfd_counter *c, const struct hfd_route *route, enum hfd_method method,
                     int status, int64_t duration_us);

#define HFD_COUNT_PATH_MAX 64
/** A pattern in HyperFleet's words: each {var} becomes "-". Cut at what a label holds. */
void hfd_count_path(const char *pattern, char out[HFD_COUNT_PATH_MAX + 1]);

#endif
