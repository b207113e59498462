/*
 * The parts of a request: credentials, path, query, forwarded addresses, host and origin, and the
 * documents of the HyperFleet API. The first byte chooses the parser.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/base/pgurl.h"
#include "driver/fleet/fleet.h"
#include "driver/status/status.h"
#include "handlers/auth/decide.h"
#include "handlers/http/fleet_json.h"
#include "handlers/http/head.h"
#include "handlers/http/overview_api.h"
#include "handlers/http/query.h"
#include "handlers/http/route.h"
#include "handlers/http/routes.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NOW_US (INT64_C(1735689600) * HFD_US_PER_S)

static bool lies_in(hfd_slice part, hfd_slice whole)
{
    return part.len == 0 || (part.p >= whole.p && part.p + part.len <= whole.p + whole.len);
}

/* A token is a part of the header, or of its decoded text; what is left of a path is a path. */
static void credentials(hfd_slice in, struct hfd_arena *mem)
{
    char basic[HFD_BASIC_MAX_BYTES];
    hfd_slice token, path = in;

    (void)mem;
    if (hfd_credential_read(in, basic, &token) == HFD_AUTH_NONE)
        HFD_ASSERT(token.len > 0 &&
                   (lies_in(token, in) || lies_in(token, (hfd_slice){basic, sizeof(basic)})));
    else
        HFD_ASSERT(token.len == 0);
    hfd_credential_cut(&path, &token);
    HFD_ASSERT(token.p == NULL ? path.p == in.p && path.len == in.len
                               : lies_in(token, in) && path.len > 0 && path.p[0] == '/');
}

static const struct hfd_router *the_router(void)
{
    static const hfd_slice drivers[] = {HFD_SLICE("clusters"), HFD_SLICE("nodepools")};
    static struct hfd_route_table table = {hfd_routes, 0, drivers, COUNT(drivers)};
    static struct hfd_router *router;
    struct hfd_err err;

    table.count = hfd_route_count;
    if (router == NULL)
        HFD_ASSERT(hfd_router_new(&table, &router, &err) == HFD_OK);
    return router;
}

/* A path has one route for a method, on each listener; HEAD goes wherever GET does. */
static void paths(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_path path;
    struct hfd_match match;
    hfd_rc rc;

    if (in.len == 0 || in.p[0] != '/')
        return;
    rc = hfd_path_split(in, mem, &path, NULL);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_BAD_REQUEST);
    for (int l = 0; l < HFD_LISTENER_COUNT; l++) {
        (void)hfd_dialect_of((enum hfd_listener)l, in);
        for (int m = 0; rc == HFD_OK && m < HFD_METHOD_COUNT; m++) {
            const enum hfd_route_outcome found = hfd_route_match(the_router(), (enum hfd_listener)l,
                                                                 (enum hfd_method)m, &path, &match);
            char allow[HFD_ALLOW_TEXT_MAX];

            HFD_ASSERT((found == HFD_ROUTE_NO_PATH) == (match.methods == 0));
            HFD_ASSERT(found != HFD_ROUTE_FOUND ||
                       (match.route != NULL && (match.methods >> m & 1u) != 0));
            hfd_allow_format(match.methods, allow);
            HFD_ASSERT(strlen(allow) < sizeof(allow));
        }
    }
}

static void select_fields(hfd_slice text, struct hfd_arena *mem)
{
    static const char document[] =
        "{\"id\":\"a\",\"kind\":\"Cluster\",\"labels\":{\"a.b\":\"c\"},\"spec\":{\"a\":[{\"b\":1}]}"
        ","
        "\"status\":{\"conditions\":[{\"type\":\"Ready\"},{\"type\":\"x\"}]}}";
    const struct hfd_fields *fields;
    struct hfd_buf b;
    hfd_slice selected;
    json_t *doc;

    if (hfd_fields_parse(HFD_KIND_CLUSTER, text, mem, &fields, NULL) != HFD_OK || fields == NULL)
        return;
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    hfd_fields_add(&b, fields, HFD_SLICE(document));
    HFD_ASSERT(hfd_buf_finish(&b, &selected, NULL) == HFD_OK);
    HFD_ASSERT(hfd_json_parse(selected, &doc, NULL) == HFD_OK);
    HFD_ASSERT(json_object_get(doc, "id") != NULL);
    json_decref(doc);
    hfd_buf_fini(&b);
}

/* The status query takes one parameter after the other. */
static void status_query(hfd_slice rest, struct hfd_arena *mem)
{
    struct hfd_status_query q = {.type = HFD_STATUS_TYPE_RSYNC};
    struct hfd_query_param param;
    hfd_rc rc;

    do {
        const size_t left = rest.len;

        rc = hfd_query_next(&rest, mem, &param, NULL);
        HFD_ASSERT(rc != HFD_OK || rest.len < left);
        if (rc == HFD_OK)
            rc = hfd_status_query_take(&q, param.name, param.value, mem, NULL);
    } while (rc == HFD_OK);
    HFD_ASSERT(q.apps.count <= HFD_STATUS_VALUES_MAX && q.clusters.count <= HFD_STATUS_VALUES_MAX &&
               q.resources.count <= HFD_STATUS_VALUES_MAX);
}

/* The lists, the feed and the status query; what is accepted is within its bounds. */
static void queries(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_overview_query overview;
    struct hfd_feed_query feed;
    struct hfd_query_page page;
    hfd_slice fields;
    int wait_s;

    if (hfd_query_page(in, mem, &page, NULL) == HFD_OK)
        HFD_ASSERT(page.page >= 1 && page.size >= 1 && page.page <= INT64_MAX / page.size);
    if (hfd_overview_query_read(in, mem, &overview, NULL) == HFD_OK)
        HFD_ASSERT(overview.size >= 1 && overview.size <= HFD_OVERVIEW_SIZE_MAX &&
                   overview.label_count <= HFD_OVERVIEW_LABELS_MAX);
    if (hfd_feed_query_read(in, mem, &feed, NULL) == HFD_OK)
        HFD_ASSERT(feed.size >= 1 && feed.wait_us >= 0 &&
                   feed.wait_us <= HFD_WAIT_MAX_S * HFD_US_PER_S);
    (void)hfd_prefer_wait(in, &wait_s);
    HFD_ASSERT(wait_s >= 0 && wait_s <= HFD_WAIT_MAX_S);
    status_query(in, mem);
    if (hfd_query_get(in, "fields", mem, &fields, NULL) == HFD_OK && fields.p != NULL)
        select_fields(fields, mem);
}

/* An address is read as it is written. A client behind a proxy is no proxy, unless all hops are. */
static void addresses(hfd_slice in, struct hfd_arena *mem)
{
    static hfd_slice proxies[] = {HFD_SLICE("unix"), HFD_SLICE("10.0.0.0/8"),
                                  HFD_SLICE("fd00::/8")};
    struct hfd_settings settings = {.http_trusted_proxies = {proxies, COUNT(proxies)}};
    const struct hfd_host_address proxy = {.local = true};
    const size_t half = in.len / 2;
    struct hfd_host_address a, again;
    char text[HFD_IP_TEXT_MAX];
    struct hfd_buf b;
    hfd_slice head;

    (void)mem;
    if (hfd_host_address_parse(in, &a)) {
        hfd_host_address_format(&a, text);
        HFD_ASSERT(hfd_host_address_parse(hfd_slice_of(text), &again));
        HFD_ASSERT(memcmp(&a.bytes, &again.bytes, sizeof(a.bytes)) == 0);
        HFD_ASSERT(hfd_network_is_valid(hfd_slice_of(text)) &&
                   hfd_network_has(hfd_slice_of(text), &a));
    }
    if (hfd_network_is_valid(in))
        (void)hfd_network_has(in, &(struct hfd_host_address){.known = true});
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    hfd_buf_add(&b, HFD_SLICE("GET / HTTP/1.1\r\nX-Forwarded-For:"));
    hfd_buf_add(&b, (hfd_slice){in.p, half});
    hfd_buf_add(&b, HFD_SLICE("\r\nx-forwarded-for:"));
    hfd_buf_add(&b, (hfd_slice){in.p + half, in.len - half});
    hfd_buf_add(&b, HFD_SLICE("\r\n\r\n"));
    HFD_ASSERT(hfd_buf_finish(&b, &head, NULL) == HFD_OK);
    a = hfd_peer_client(&settings, &proxy, head);
    HFD_ASSERT(!a.local); /* the hops decide, not the proxy's own address */
    hfd_host_address_format(&a, text);
    HFD_ASSERT(strlen(text) > 0 && strlen(text) < sizeof(text));
    hfd_buf_fini(&b);
}

/* Five lines: method, target's authority, Host, Origin, Sec-Fetch-Site; an empty one is absent. */
static void origins(hfd_slice in, struct hfd_arena *mem)
{
    static hfd_slice own[] = {HFD_SLICE("driver.example"), HFD_SLICE("[2001:db8::1]:80")};
    const struct hfd_list hosts = {own, COUNT(own)};
    hfd_slice lines[5] = {HFD_SLICE_NONE}, rest = in;
    struct hfd_head head = {.minor = 1};

    (void)mem;
    for (size_t i = 0; i < COUNT(lines) && rest.len > 0; i++) {
        const char *end = memchr(rest.p, '\n', rest.len);
        const size_t len = end != NULL ? (size_t)(end - rest.p) : rest.len;

        lines[i] = len > 0 ? (hfd_slice){rest.p, len} : HFD_SLICE_NONE;
        rest = end != NULL ? (hfd_slice){end + 1, rest.len - len - 1} : HFD_SLICE_NONE;
    }
    head.method = lines[0].p != NULL ? lines[0] : HFD_SLICE("GET");
    head.authority = lines[1];
    head.host = lines[2];
    head.origin = lines[3];
    head.fetch_site = lines[4];
    for (int i = 0; i < 8; i++) {
        const struct hfd_origin_rule rule = {.hosts = &hosts,
                                             .authenticated = (i & 1) != 0,
                                             .admin = (i & 4) != 0,
                                             .local = (i & 2) != 0};
        struct hfd_head_fault fault = {.status = 0};

        if (hfd_origin_check(&rule, &head, &fault) == HFD_HEAD_OK)
            HFD_ASSERT(fault.status == 0);
        else
            HFD_ASSERT((fault.status == 421 || fault.status == 403) && fault.text != NULL);
    }
}

/* A URL with a password is shown with a mask. */
static void database_urls(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice masked;

    (void)mem;
    if (hfd_pgurl_check(in, NULL) != HFD_OK)
        return;
    HFD_ASSERT(hfd_pgurl_is(in));
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    hfd_pgurl_mask(&b, in);
    HFD_ASSERT(hfd_buf_finish(&b, &masked, NULL) == HFD_OK);
    HFD_ASSERT(!hfd_pgurl_has_password(in) ||
               memmem(masked.p, masked.len, HFD_PGURL_HIDDEN, strlen(HFD_PGURL_HIDDEN)) != NULL);
    hfd_buf_fini(&b);
}

static void is_object(hfd_slice text)
{
    json_t *doc;

    HFD_ASSERT(hfd_json_parse(text, &doc, NULL) == HFD_OK && json_is_object(doc));
    json_decref(doc);
}

/* The bodies that HyperFleet's API takes. */
static void bodies(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_fleet_reading r = {.mem = mem, .now_us = NOW_US};
    struct hfd_fleet_create create = {.kind = HFD_KIND_NODEPOOL};
    struct hfd_fleet_patch patch = {.target = {.kind = HFD_KIND_CLUSTER}};
    struct hfd_fleet_report report = {.target = {.kind = HFD_KIND_CLUSTER}};
    struct hfd_err err;
    hfd_slice reason;

    if (hfd_fleet_json_create(in, &r, &create, &err) == HFD_OK) {
        HFD_ASSERT(hfd_name_check(HFD_KIND_NODEPOOL, create.name, NULL) == HFD_OK);
        is_object(create.spec);
        is_object(create.labels);
    } else {
        HFD_ASSERT(err.msg[0] != '\0');
    }
    if (hfd_fleet_json_patch(in, &r, &patch, &err) == HFD_OK)
        HFD_ASSERT(patch.spec.p != NULL || patch.labels.p != NULL);
    if (hfd_fleet_json_status(in, &r, &report, &err) == HFD_OK) {
        HFD_ASSERT(report.adapter.len > 0);
        is_object(report.data);
    }
    if (hfd_fleet_json_reason(in, &r, &reason, &err) == HFD_OK)
        HFD_ASSERT(reason.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char chosen_by;
        void (*parse)(hfd_slice in, struct hfd_arena *mem);
    } parsers[] = {{'c', credentials}, {'p', paths},         {'q', queries}, {'a', addresses},
                   {'o', origins},     {'u', database_urls}, {'b', bodies}};
    struct hfd_arena mem;

    for (size_t i = 0; size > 0 && i < COUNT(parsers); i++) {
        if (data[0] != (uint8_t)parsers[i].chosen_by)
            continue;
        hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
        parsers[i].parse((hfd_slice){(const char *)data + 1, size - 1}, &mem);
        hfd_arena_fini(&mem);
    }
    return 0;
}
