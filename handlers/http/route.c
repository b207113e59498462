#include "handlers/http/route.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"

enum segment_kind {
    SEGMENT_LITERAL,
    SEGMENT_DRIVER,
    SEGMENT_PARAM,
};

struct pattern {
    const struct hfd_route *route;
    struct {
        enum segment_kind kind;
        hfd_slice text;
    } segments[HFD_SEGMENTS_MAX];
    size_t count;
};

/* Patterns from the first to before the end. */
struct group {
    size_t first, end;
};

/* The patterns stand in groups: of one listener, with one number of segments. */
struct hfd_router {
    const hfd_slice *drivers;
    size_t driver_count;
    struct group groups[HFD_LISTENER_COUNT][HFD_SEGMENTS_MAX + 1];
    size_t count;
    struct pattern patterns[];
};

static hfd_rc decode_segment(hfd_slice raw, struct hfd_arena *mem, hfd_slice *out,
                             struct hfd_err *err)
{
    char *text;
    size_t n = 0;

    *out = raw;
    if (raw.len == 0 || memchr(raw.p, '%', raw.len) == NULL)
        return HFD_OK;
    text = hfd_arena_alloc(mem, raw.len);
    if (text == NULL)
        return hfd_fail_nomem(err, "decode a path");
    for (size_t i = 0; i < raw.len; i++) {
        int high, low;

        if (raw.p[i] != '%') {
            text[n++] = raw.p[i];
            continue;
        }
        high = i + 2 < raw.len ? hfd_hex_value(raw.p[i + 1]) : -1;
        low = i + 2 < raw.len ? hfd_hex_value(raw.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return hfd_fail(err, HFD_BAD_REQUEST,
                            "the path has a '%%' that is not followed by two hexadecimal digits");
        text[n] = (char)(high * 16 + low);
        if (text[n] == '\0' || text[n] == '/')
            return hfd_fail(err, HFD_BAD_REQUEST, "the path has an escaped NUL or slash");
        n++;
        i += 2;
    }
    *out = (hfd_slice){text, n};
    return HFD_OK;
}

hfd_rc hfd_path_split(hfd_slice raw, struct hfd_arena *mem, struct hfd_path *out,
                      struct hfd_err *err)
{
    bool forgiven = false;
    size_t at = 1;

    *out = (struct hfd_path){0};
    if (raw.len == 0 || raw.p[0] != '/')
        return hfd_fail(err, HFD_BAD_REQUEST, "the path does not begin with '/'");
    if (raw.len > 1 && raw.p[raw.len - 1] == '/')
        raw.len--;
    while (at < raw.len) {
        const char *slash = memchr(raw.p + at, '/', raw.len - at);
        size_t end = slash != NULL ? (size_t)(slash - raw.p) : raw.len;
        hfd_slice decoded;
        hfd_rc rc;

        if (end == at &&
            !forgiven) { /* a prefix registered with its slash, joined with another one */
            forgiven = true;
            at++;
            continue;
        }
        rc = decode_segment((hfd_slice){raw.p + at, end - at}, mem, &decoded, err);

        if (rc != HFD_OK) {
            *out = (struct hfd_path){0};
            return rc;
        }
        if (out->count < HFD_SEGMENTS_MAX)
            out->segments[out->count] = decoded;
        if (out->count <= HFD_SEGMENTS_MAX)
            out->count++;
        /* The path ended with two slashes: the last segment is empty. */
        if (end + 1 == raw.len && out->count <= HFD_SEGMENTS_MAX) {
            if (out->count < HFD_SEGMENTS_MAX)
                out->segments[out->count] = (hfd_slice){raw.p + end, 0};
            out->count++;
        }
        at = end + 1;
    }
    return HFD_OK;
}

#define METHOD_TEXT_(m) [HFD_METHOD_##m] = #m,
static const char *const method_names[HFD_METHOD_COUNT] = {HFD_METHOD_LIST(METHOD_TEXT_)};
#undef METHOD_TEXT_

enum hfd_method hfd_method_parse(hfd_slice text)
{
    for (unsigned m = 0; m < HFD_METHOD_OTHER; m++)
        if (hfd_slice_is(text, method_names[m]))
            return (enum hfd_method)m;
    return HFD_METHOD_OTHER;
}

const char *hfd_method_name(enum hfd_method m)
{
    HFD_ASSERT((unsigned)m < HFD_METHOD_COUNT);
    return method_names[m];
}

static void compile(const struct hfd_route *route, struct pattern *out)
{
    const char *at = route->pattern;

    HFD_ASSERT(at[0] == '/');
    *out = (struct pattern){.route = route};
    for (at++; *at != '\0';) {
        size_t len = strcspn(at, "/");
        hfd_slice text = {at, len};

        HFD_ASSERT(len != 0 && out->count < HFD_SEGMENTS_MAX);
        out->segments[out->count].text = text;
        if (hfd_slice_is(text, "{driver}") && out->count == 0)
            out->segments[out->count].kind = SEGMENT_DRIVER;
        else
            out->segments[out->count].kind = text.p[0] == '{' ? SEGMENT_PARAM : SEGMENT_LITERAL;
        out->count++;
        at += len + (at[len] == '/');
    }
}

static hfd_rc check_drivers(const hfd_slice *drivers, size_t count, struct hfd_err *err)
{
    for (size_t i = 0; i < count; i++) {
        hfd_slice d = drivers[i];

        if (d.len == 0 || hfd_slice_is(d, "api") || hfd_slice_is(d, "t"))
            return hfd_fail_field(
                err, HFD_INVALID, "driver.paths",
                "a path prefix of the driver must not be empty, \"api\" or \"t\"");
        for (size_t k = 0; k < d.len; k++)
            if (!hfd_is_alnum(d.p[k]) && memchr("-_.~", d.p[k], 4) == NULL)
                return hfd_fail_field(err, HFD_INVALID, "driver.paths",
                                      "a path prefix of the driver must be one segment of letters, "
                                      "digits, '-', '_', '.', '~'");
        for (size_t k = 0; k < i; k++)
            if (hfd_slice_eq(d, drivers[k]))
                return hfd_fail_field(err, HFD_INVALID, "driver.paths",
                                      "the path prefixes of clusters and nodepools must differ");
    }
    return HFD_OK;
}

/* Adds the patterns of one listener with so many segments, in the order of the table. */
static void add_group(struct hfd_router *r, const struct hfd_route_table *table,
                      enum hfd_listener listener, size_t segments)
{
    struct group *g = &r->groups[listener][segments];

    g->first = r->count;
    for (size_t i = 0; i < table->count; i++) {
        struct pattern *p = &r->patterns[r->count];

        if (table->routes[i].listener != listener)
            continue;
        compile(&table->routes[i], p);
        r->count += p->count == segments;
    }
    g->end = r->count;
}

hfd_rc hfd_router_new(const struct hfd_route_table *table, struct hfd_router **out,
                      struct hfd_err *err)
{
    struct hfd_router *r;
    hfd_rc rc;

    *out = NULL;
    rc = check_drivers(table->drivers, table->driver_count, err);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < table->count; i++)
        HFD_ASSERT(table->routes[i].need != HFD_NEED_UNSET);
    /* One more: a pattern is compiled before its group is known. */
    r = calloc(1, sizeof(*r) + (table->count + 1) * sizeof(r->patterns[0]));
    if (r == NULL)
        return hfd_fail_nomem(err, "set up the routes");
    r->drivers = table->drivers;
    r->driver_count = table->driver_count;
    for (int listener = 0; listener < HFD_LISTENER_COUNT; listener++)
        for (size_t segments = 0; segments <= HFD_SEGMENTS_MAX; segments++)
            add_group(r, table, (enum hfd_listener)listener, segments);
    HFD_ASSERT(r->count == table->count);
    *out = r;
    return HFD_OK;
}

void hfd_router_free(struct hfd_router *r)
{
    free(r);
}

static bool is_driver(const struct hfd_router *r, hfd_slice text)
{
    for (size_t i = 0; i < r->driver_count; i++)
        if (hfd_slice_eq(r->drivers[i], text))
            return true;
    return false;
}

static bool fits(const struct hfd_router *r, const struct pattern *p, const struct hfd_path *path)
{
    for (size_t i = 0; i < p->count; i++) {
        hfd_slice text = path->segments[i];
        enum segment_kind kind = p->segments[i].kind;

        if (text.len == 0 ||
            (kind == SEGMENT_LITERAL && !hfd_slice_eq(p->segments[i].text, text)) ||
            (kind == SEGMENT_DRIVER && !is_driver(r, text)))
            return false;
        /* A prefix of the driver alone lacks the GUResID and is not one. */
        if (kind == SEGMENT_PARAM && p->count == 1 && is_driver(r, text))
            return false;
    }
    return true;
}

/* Returns < 0 if a is more specific, 0 for the same path. */
static int compare(const struct pattern *a, const struct pattern *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->segments[i].kind != b->segments[i].kind)
            return (int)a->segments[i].kind - (int)b->segments[i].kind;
    return 0;
}

/* True if b is a, but with a parameter in place of the literal at its end, in the same dialect. */
static bool is_beside(const struct pattern *a, const struct pattern *b)
{
    const size_t last = a->count - 1;

    if (a->count == 0 || a->segments[last].kind != SEGMENT_LITERAL ||
        b->segments[last].kind != SEGMENT_PARAM || a->route->dialect != b->route->dialect)
        return false;
    for (size_t i = 0; i < last; i++)
        if (a->segments[i].kind != b->segments[i].kind)
            return false;
    return true;
}

/*
 * Finds the row of a method beside a literal pattern that lacks it. A resource may be called as a
 * literal is: POST /validate leaves the other methods of /validate to /{GUResID}.
 */
static const struct pattern *find_beside(const struct hfd_router *r, const struct pattern *literal,
                                         const struct hfd_path *path, enum hfd_method method,
                                         unsigned *methods)
{
    const struct group *g = &r->groups[literal->route->listener][path->count];
    const struct pattern *found = NULL;

    for (size_t i = g->first; i < g->end; i++) {
        const struct pattern *p = &r->patterns[i];

        if (!fits(r, p, path) || !is_beside(literal, p))
            continue;
        *methods |= 1u << p->route->method;
        if (p->route->method == method ||
            (p->route->method == HFD_METHOD_GET && method == HFD_METHOD_HEAD && found == NULL))
            found = p;
    }
    return found;
}

static enum hfd_dialect dialect_of_unknown(enum hfd_listener listener, const struct hfd_path *path)
{
    if (listener == HFD_LISTENER_OPS)
        return HFD_DIALECT_OPS;
    if (path->count >= 2 && hfd_slice_is(path->segments[0], "api") &&
        (hfd_slice_is(path->segments[1], "hyperfleet") ||
         hfd_slice_is(path->segments[1], "driver")))
        return HFD_DIALECT_FLEET;
    return HFD_DIALECT_DRIVER;
}

enum hfd_dialect hfd_dialect_of(enum hfd_listener listener, hfd_slice raw_path)
{
    static const char base[] = "/api/hyperfleet";
    hfd_slice rest;

    if (listener == HFD_LISTENER_OPS)
        return HFD_DIALECT_OPS;
    if (raw_path.len > 1 && raw_path.p[0] == '/' && raw_path.p[1] == '/')
        raw_path = (hfd_slice){raw_path.p + 1, raw_path.len - 1};
    if (!hfd_slice_starts(raw_path, HFD_SLICE(base)))
        return HFD_DIALECT_DRIVER;
    rest = (hfd_slice){raw_path.p + sizeof(base) - 1, raw_path.len - (sizeof(base) - 1)};
    return rest.len == 0 || rest.p[0] == '/' ? HFD_DIALECT_FLEET : HFD_DIALECT_DRIVER;
}

static void take_params(const struct pattern *p, const struct hfd_path *path, struct hfd_match *out)
{
    size_t n = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (p->segments[i].kind == SEGMENT_LITERAL)
            continue;
        HFD_ASSERT(n < HFD_PARAMS_MAX);
        out->params[n++] = path->segments[i];
    }
}

enum hfd_route_outcome hfd_route_match(const struct hfd_router *r, enum hfd_listener listener,
                                       enum hfd_method method, const struct hfd_path *path,
                                       struct hfd_match *out)
{
    static const struct group none = {0, 0};
    const struct group *g =
        path->count <= HFD_SEGMENTS_MAX ? &r->groups[listener][path->count] : &none;
    const struct pattern *best = NULL, *exact = NULL, *get = NULL;

    *out = (struct hfd_match){.dialect = dialect_of_unknown(listener, path)};
    for (size_t i = g->first; i < g->end; i++) {
        const struct pattern *p = &r->patterns[i];
        int order;

        if (!fits(r, p, path))
            continue;
        order = best != NULL ? compare(p, best) : -1;
        if (order > 0)
            continue;
        if (order < 0) {
            best = p;
            exact = get = NULL;
            out->methods = 0;
        }
        out->methods |= 1u << p->route->method;
        if (p->route->method == method)
            exact = p;
        if (p->route->method == HFD_METHOD_GET)
            get = p;
    }
    if (best == NULL)
        return HFD_ROUTE_NO_PATH;
    if (exact == NULL && method == HFD_METHOD_HEAD)
        exact = get;
    if (exact == NULL)
        exact = find_beside(r, best, path, method, &out->methods);
    if ((out->methods & (1u << HFD_METHOD_GET)) != 0)
        out->methods |= 1u << HFD_METHOD_HEAD;
    out->dialect = best->route->dialect;
    if (exact == NULL)
        return HFD_ROUTE_NO_METHOD;
    out->route = exact->route;
    take_params(exact, path, out);
    return HFD_ROUTE_FOUND;
}

void hfd_allow_format(unsigned methods, char out[HFD_ALLOW_TEXT_MAX])
{
    size_t n = 0;

    out[0] = '\0';
    for (unsigned m = 0; m < HFD_METHOD_OTHER; m++) {
        if ((methods & (1u << m)) != 0)
            n += (size_t)snprintf(out + n, HFD_ALLOW_TEXT_MAX - n, "%s%s", n != 0 ? ", " : "",
                                  method_names[m]);
    }
}

/* ---- counting answers ---- */

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
