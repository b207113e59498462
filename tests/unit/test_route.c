/* handlers/http/route.c: from a raw path to the one row that serves it. */
#include "handlers/http/route.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FLEET "/api/hyperfleet/v1"

static void nobody(struct hfd_exchange *x)
{
    (void)x;
}

/* clang-format off */
static const struct hfd_route table[] = {
    {HFD_LISTENER_MAIN, HFD_METHOD_PUT,    "/{guresid}",             "driver",   HFD_DIALECT_DRIVER, nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/{guresid}",             "driver",   HFD_DIALECT_DRIVER, nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_DELETE, "/{driver}/{guresid}",    "typed",    HFD_DIALECT_DRIVER, nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_POST,   "/validate",              "validate", HFD_DIALECT_DRIVER, nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/{guresid}/status",      "status",   HFD_DIALECT_DRIVER, nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    FLEET "/clusters",        "list",     HFD_DIALECT_FLEET,  nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_POST,   FLEET "/clusters",        "create",   HFD_DIALECT_FLEET,  nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_POST,   FLEET "/clusters/{id}/x", "x",        HFD_DIALECT_FLEET,  nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    FLEET "/{a}/{b}/{c}",     "any",      HFD_DIALECT_FLEET,  nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_OPS,  HFD_METHOD_GET,    "/livez",                 "livez",    HFD_DIALECT_OPS,    nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/both",                  "both",     HFD_DIALECT_OPS,    nobody, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_OPS,  HFD_METHOD_GET,    "/both",                  "both",     HFD_DIALECT_OPS,    nobody, NULL, 0, HFD_NEED_OPEN},
};
/* clang-format on */

static const hfd_slice drivers[] = {HFD_SLICE("clusters"), HFD_SLICE("nodepools")};

struct fixture {
    struct hfd_router *router;
    struct hfd_arena mem;
};

static int setup(void **state)
{
    static struct fixture fx;
    struct hfd_err err;

    hfd_arena_init(&fx.mem, 1 << 20);
    assert_int_equal(
        hfd_router_new(
            &(struct hfd_route_table){table, sizeof(table) / sizeof(table[0]), drivers, 2},
            &fx.router, &err),
        HFD_OK);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_router_free(fx->router);
    hfd_arena_fini(&fx->mem);
    return 0;
}

/*
 * Segments are cut at slashes and decoded; one doubled slash and one slash at the end do not count.
 */
static void paths_are_split(void **state)
{
    static const struct {
        const char *raw;
        hfd_rc rc;
        size_t count;
        const char *segments[3];
    } cases[] = {
        {"/", HFD_OK, 0, {0}},
        {"//", HFD_OK, 0, {0}},
        {"/a", HFD_OK, 1, {"a"}},
        {"//a", HFD_OK, 1, {"a"}},
        {"/a/", HFD_OK, 1, {"a"}},
        {"//a/b/", HFD_OK, 2, {"a", "b"}},
        {"/a//", HFD_OK, 2, {"a", ""}},
        {"///a", HFD_OK, 2, {"", "a"}},
        {"/a//b", HFD_OK, 2, {"a", "b"}},
        {"//a//b", HFD_OK, 3, {"a", "", "b"}},
        {"/a///b", HFD_OK, 3, {"a", "", "b"}},
        {"/a%2eb%2Dc/%7E", HFD_OK, 2, {"a.b-c", "~"}},
        {"/a+b", HFD_OK, 1, {"a+b"}},
        {"/..", HFD_OK, 1, {".."}},
        {"/1/2/3/4/5/6/7/8", HFD_OK, 8, {"1"}},
        {"/1/2/3/4/5/6/7/8/9", HFD_OK, 9, {"1"}},
        {"/1/2/3/4/5/6/7/8/9/10//", HFD_OK, 9, {"1"}},
        {"", HFD_BAD_REQUEST, 0, {0}},
        {"a", HFD_BAD_REQUEST, 0, {0}},
        {"/a%2Fb", HFD_BAD_REQUEST, 0, {0}},
        {"/a%00", HFD_BAD_REQUEST, 0, {0}},
        {"/a%", HFD_BAD_REQUEST, 0, {0}},
        {"/a%4", HFD_BAD_REQUEST, 0, {0}},
        {"/a%4/b", HFD_BAD_REQUEST, 0, {0}},
        {"/a%4g", HFD_BAD_REQUEST, 0, {0}},
        {"/a%%41", HFD_BAD_REQUEST, 0, {0}},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_path path;

        if (hfd_path_split(hfd_slice_of(cases[i].raw), &fx->mem, &path, NULL) != cases[i].rc ||
            path.count != cases[i].count)
            fail_msg("\"%s\": %zu segments", cases[i].raw, path.count);
        for (size_t k = 0; k < 3 && cases[i].segments[k] != NULL; k++)
            if (!hfd_slice_is(path.segments[k], cases[i].segments[k]))
                fail_msg("\"%s\": segment %zu is \"%.*s\"", cases[i].raw, k,
                         HFD_SLICE_FMT(path.segments[k]));
    }
}

/* An arena that is full is an error, and not overrun. */
static void decoding_needs_memory(void **state)
{
    struct hfd_arena small;
    struct hfd_path path;

    (void)state;
    hfd_arena_init(&small, 0);
    assert_int_equal(hfd_path_split(HFD_SLICE("/%41"), &small, &path, NULL), HFD_NOMEM);
    assert_int_equal(path.count, 0);
    assert_int_equal(hfd_path_split(HFD_SLICE("/A"), &small, &path, NULL), HFD_OK);
    hfd_arena_fini(&small);
}

/* Paths, and the row, the parameters or the refusal of each. */
static const struct {
    enum hfd_listener listener;
    const char *method, *path;
    enum hfd_route_outcome outcome;
    const char *name, *first, *allow;
    enum hfd_dialect dialect;
} matches[] = {
    {HFD_LISTENER_MAIN, "PUT", "/abc", HFD_ROUTE_FOUND, "driver", "abc", "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "PUT", "//a%62c/", HFD_ROUTE_FOUND, "driver", "abc", "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "HEAD", "/abc", HFD_ROUTE_FOUND, "driver", "abc", "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "put", "/abc", HFD_ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/abc", HFD_ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/clusters/abc", HFD_ROUTE_FOUND, "typed", "clusters", "DELETE",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/nodepools/abc", HFD_ROUTE_FOUND, "typed", "nodepools", "DELETE",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "HEAD", "/clusters/abc", HFD_ROUTE_NO_METHOD, NULL, NULL, "DELETE",
     HFD_DIALECT_DRIVER},
    /* a driver without a GUResID */
    {HFD_LISTENER_MAIN, "PUT", "/clusters", HFD_ROUTE_NO_PATH, NULL, NULL, "", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "PUT", "/nodepools/", HFD_ROUTE_NO_PATH, NULL, NULL, "",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "PUT", "/clusters2", HFD_ROUTE_FOUND, "driver", "clusters2",
     "GET, HEAD, PUT", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/other/abc", HFD_ROUTE_NO_PATH, NULL, NULL, "",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/Clusters/abc", HFD_ROUTE_NO_PATH, NULL, NULL, "",
     HFD_DIALECT_DRIVER},
    /*
     * {driver} wins over a parameter on the left, so this is the resource "status" and not the
     *            status of "clusters"
     */
    {HFD_LISTENER_MAIN, "GET", "/clusters/status", HFD_ROUTE_NO_METHOD, NULL, NULL, "DELETE",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "GET", "/abc/status", HFD_ROUTE_FOUND, "status", "abc", "GET, HEAD",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "GET", "/abc//status", HFD_ROUTE_FOUND, "status", "abc", "GET, HEAD",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "GET", "/abc///status", HFD_ROUTE_NO_PATH, NULL, NULL, "",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "GET", "/", HFD_ROUTE_NO_PATH, NULL, NULL, "", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "GET", FLEET "/clusters", HFD_ROUTE_FOUND, "list", NULL, "GET, HEAD, POST",
     HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "POST", FLEET "/clusters/", HFD_ROUTE_FOUND, "create", NULL,
     "GET, HEAD, POST", HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "PUT", FLEET "/clusters", HFD_ROUTE_NO_METHOD, NULL, NULL,
     "GET, HEAD, POST", HFD_DIALECT_FLEET},
    /* the literal row wins as a path, and only its methods count */
    {HFD_LISTENER_MAIN, "GET", FLEET "/clusters/7/x", HFD_ROUTE_NO_METHOD, NULL, NULL, "POST",
     HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "POST", FLEET "/clusters/7/x", HFD_ROUTE_FOUND, "x", "7", "POST",
     HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "GET", FLEET "/clusters/7/y", HFD_ROUTE_FOUND, "any", "clusters",
     "GET, HEAD", HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "GET", FLEET "/nope", HFD_ROUTE_NO_PATH, NULL, NULL, "", HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "GET", "/api/hyperfleet", HFD_ROUTE_NO_PATH, NULL, NULL, "",
     HFD_DIALECT_FLEET},
    {HFD_LISTENER_MAIN, "GET", "/api/other", HFD_ROUTE_NO_PATH, NULL, NULL, "", HFD_DIALECT_DRIVER},
    /* probes are not served beside the driver contract: these are GUResIDs there */
    {HFD_LISTENER_MAIN, "GET", "/livez", HFD_ROUTE_FOUND, "driver", "livez", "GET, HEAD, PUT",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_OPS, "GET", "/livez", HFD_ROUTE_FOUND, "livez", NULL, "GET, HEAD",
     HFD_DIALECT_OPS},
    {HFD_LISTENER_OPS, "POST", "/livez", HFD_ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD",
     HFD_DIALECT_OPS},
    {HFD_LISTENER_OPS, "GET", "/abc", HFD_ROUTE_NO_PATH, NULL, NULL, "", HFD_DIALECT_OPS},
    {HFD_LISTENER_MAIN, "GET", "/both", HFD_ROUTE_FOUND, "both", NULL, "GET, HEAD",
     HFD_DIALECT_OPS},
    /* another dialect: its methods are not those of the path */
    {HFD_LISTENER_MAIN, "PUT", "/both", HFD_ROUTE_NO_METHOD, NULL, NULL, "GET, HEAD",
     HFD_DIALECT_OPS},
    /* a literal at the end leaves other methods to the parameter in its place */
    {HFD_LISTENER_MAIN, "POST", "/validate", HFD_ROUTE_FOUND, "validate", NULL, "POST",
     HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "PUT", "/validate", HFD_ROUTE_FOUND, "driver", "validate",
     "GET, HEAD, PUT, POST", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "HEAD", "/validate/", HFD_ROUTE_FOUND, "driver", "validate",
     "GET, HEAD, PUT, POST", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "DELETE", "/validate", HFD_ROUTE_NO_METHOD, NULL, NULL,
     "GET, HEAD, PUT, POST", HFD_DIALECT_DRIVER},
    {HFD_LISTENER_MAIN, "POST", "/clusters/validate", HFD_ROUTE_NO_METHOD, NULL, NULL, "DELETE",
     HFD_DIALECT_DRIVER},
};

/* Each path finds its row, its parameters, or the right way to say no. */
static void routes_are_matched(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
        char allow[HFD_ALLOW_TEXT_MAX];
        struct hfd_match match;
        struct hfd_path path;
        enum hfd_route_outcome outcome;

        assert_int_equal(hfd_path_split(hfd_slice_of(matches[i].path), &fx->mem, &path, NULL),
                         HFD_OK);
        outcome = hfd_route_match(fx->router, matches[i].listener,
                                  hfd_method_parse(hfd_slice_of(matches[i].method)), &path, &match);
        hfd_allow_format(match.methods, allow);
        if (outcome != matches[i].outcome || strcmp(allow, matches[i].allow) != 0 ||
            match.dialect != matches[i].dialect)
            fail_msg("%s %s: outcome %d, allow \"%s\", dialect %d", matches[i].method,
                     matches[i].path, outcome, allow, match.dialect);
        if (matches[i].name != NULL)
            assert_string_equal(match.route->name, matches[i].name);
        if (matches[i].first != NULL)
            assert_true(hfd_slice_is(match.params[0], matches[i].first));
    }
}

/* The order of the rows does not decide. */
static void order_does_not_matter(void **state)
{
    enum {
        COUNT = sizeof(table) / sizeof(table[0])
    };
    struct hfd_route reversed[COUNT];
    struct fixture *fx = *state;
    struct hfd_router *router;

    for (size_t i = 0; i < COUNT; i++)
        reversed[i] = table[COUNT - 1 - i];
    assert_int_equal(
        hfd_router_new(&(struct hfd_route_table){reversed, COUNT, drivers, 2}, &router, NULL),
        HFD_OK);
    for (size_t i = 0; i < COUNT; i++) {
        for (unsigned m = 0; m < HFD_METHOD_COUNT; m++) {
            struct hfd_match a, b;
            struct hfd_path path;

            assert_int_equal(hfd_path_split(hfd_slice_of(table[i].pattern), &fx->mem, &path, NULL),
                             HFD_OK);
            assert_int_equal(
                hfd_route_match(fx->router, HFD_LISTENER_MAIN, (enum hfd_method)m, &path, &a),
                hfd_route_match(router, HFD_LISTENER_MAIN, (enum hfd_method)m, &path, &b));
            assert_int_equal(a.methods, b.methods);
            assert_true((a.route == NULL) == (b.route == NULL));
            if (a.route != NULL)
                assert_string_equal(a.route->pattern, b.route->pattern);
        }
    }
    hfd_router_free(router);
}

/* A path that cannot be split still has a dialect. */
static void dialect_follows_the_prefix(void **state)
{
    (void)state;
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE("/api/hyperfleet")),
                     HFD_DIALECT_FLEET);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE("/api/hyperfleet/v1/%zz")),
                     HFD_DIALECT_FLEET);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE("//api/hyperfleet/")),
                     HFD_DIALECT_FLEET);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE("/api/hyperfleets")),
                     HFD_DIALECT_DRIVER);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE("/")), HFD_DIALECT_DRIVER);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_MAIN, HFD_SLICE_NONE), HFD_DIALECT_DRIVER);
    assert_int_equal(hfd_dialect_of(HFD_LISTENER_OPS, HFD_SLICE("/api/hyperfleet")),
                     HFD_DIALECT_OPS);
}

/* Prefixes of the driver that could not be told apart are refused at start. */
static void drivers_are_checked(void **state)
{
    static const char *const bad[][2] = {{"", "b"},    {"a", ""},    {"a", "a"},   {"api", "b"},
                                         {"a/b", "c"}, {"a b", "c"}, {"a%41", "c"}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        hfd_slice pair[2] = {hfd_slice_of(bad[i][0]), hfd_slice_of(bad[i][1])};
        struct hfd_router *router;
        struct hfd_err err;

        assert_int_equal(
            hfd_router_new(&(struct hfd_route_table){table, 1, pair, 2}, &router, &err),
            HFD_INVALID);
        assert_null(router);
        assert_string_equal(err.field, "driver.paths");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_split),
        cmocka_unit_test(decoding_needs_memory),
        cmocka_unit_test(routes_are_matched),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(dialect_follows_the_prefix),
        cmocka_unit_test(drivers_are_checked),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
