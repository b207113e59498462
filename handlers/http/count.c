/* See count.h. */
#include "handlers/http/count.h"

#include "driver/base/metrics.h"
#include "handlers/http/route.h"

/* Statuses that are sent often; others are looked up each time. */
static const int statuses[] = {200, 201, 202, 204, 400, 404, 409, 413, 500, 503};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static const char api[] = "/api/hyperfleet/v1/";

/* The series of one route and status; NULL if not looked up yet, or if there is none. */
struct tally {
    struct hfd_series *requests, *seconds;
    struct hfd_series *api_requests, *api_seconds;
};

struct hfd_counter {
    const struct hfd_route *routes;
    size_t route_count;
    struct tally tallies[]; /* STATUSES of each route */
};

struct hfd_counter *hfd_counter_new(const struct hfd_route *routes, size_t route_count)
{
    struct hfd_counter *c = calloc(1, sizeof(*c) + route_count * STATUSES * sizeof(c->tallies[0]));

    if (c != NULL) {
        c->routes = routes;
        c->route_count = route_count;
    }
    return c;
}

void hfd_counter_free(struct hfd_counter *c)
{
    free(c);
}

void hfd_count_path(const char *pattern, char out[HFD_COUNT_PATH_MAX + 1])
{
    size_t n = 0;

    while (*pattern != '\0' && n < HFD_COUNT_PATH_MAX) {
        const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;

        out[n++] = end != NULL ? '-' : *pattern;
        pattern = end != NULL ? end + 1 : pattern + 1;
    }
    out[n] = '\0';
}

static void look_up(const struct hfd_route *route, enum hfd_method method, int status,
                    struct tally *t)
{
    const char *name = hfd_method_name(method), *of = route != NULL ? route->name : "none";
    char code[12], path[HFD_COUNT_PATH_MAX + 1];

    (void)snprintf(code, sizeof(code), "%d", status);
    t->requests = hfd_metric_series(HFD_METRIC_HTTP_REQUESTS, HFD_LABELS(name, of, code));
    t->seconds = hfd_metric_series(HFD_METRIC_HTTP_SECONDS, HFD_LABELS(name, of));
    if (route == NULL || strncmp(route->pattern, api, sizeof(api) - 1) != 0)
        return;
    hfd_count_path(route->pattern, path);
    t->api_requests = hfd_metric_series(HFD_METRIC_API_REQUESTS, HFD_LABELS(name, path, code));
    t->api_seconds = hfd_metric_series(HFD_METRIC_API_SECONDS, HFD_LABELS(name, path, code));
}

/* Returns the place of the series of an answer. NULL if not kept: HEAD shares the row of GET. */
static struct tally *kept(struct hfd_counter *c, const struct hfd_route *route,
                          enum hfd_method method, int status)
{
    if (route == NULL || method != route->method)
        return NULL;
    for (size_t i = 0; i < STATUSES; i++)
        if (statuses[i] == status)
            return &c->tallies[(size_t)(route - c->routes) * STATUSES + i];
    return NULL;
}

void hfd_counter_add(struct hfd_counter *c, const struct hfd_route *route, enum hfd_method method,
                     int status, int64_t duration_us)
{
    struct tally passing = {NULL, NULL, NULL, NULL}, *t = kept(c, route, method, status);

    if (t == NULL)
        t = &passing;
    if (t->requests == NULL)
        look_up(route, method, status, t);
    hfd_series_add(t->requests, 1);
    hfd_series_observe_us(t->seconds, duration_us);
    hfd_series_add(t->api_requests, 1);
    hfd_series_observe_us(t->api_seconds, duration_us);
}
