/* Counting answers. Source: handlers/http/route.h; HyperFleet API, metrics. */
#include "handlers/http/route.h"
#include "handlers/http/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/base/metrics.h"

#define API "/api/hyperfleet/v1"
#define OF(method, path, code)                                                                     \
    "{component=\"api\",version=\"" HFD_VERSION "\",method=\"" method "\",path=\"" path            \
    "\",code=\"" code "\"} "

static void nothing(struct hfd_exchange *x)
{
    (void)x;
}

static const struct hfd_route table[] = {
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, API "/clusters/{cluster_id}", "cluster", HFD_DIALECT_FLEET,
     nothing, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_PATCH, API "/clusters/{cluster_id}", "cluster",
     HFD_DIALECT_FLEET, nothing, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/{guresid}", "resource", HFD_DIALECT_DRIVER, nothing, NULL,
     0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/api/hyperfleet", "fleet_metadata", HFD_DIALECT_FLEET,
     nothing, NULL, 0, HFD_NEED_OPEN},
};

static bool rendered(const char *line)
{
    struct hfd_buf b;
    bool found;

    hfd_buf_init(&b, 1 << 20);
    hfd_metrics_render(&b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    found = strstr(b.p, line) != NULL;
    hfd_buf_fini(&b);
    return found;
}

/* Each {var} is one "-"; every path of the table fits into a label. */
static void paths_are_templates(void **state)
{
    char path[HFD_COUNT_PATH_MAX + 1];

    (void)state;
    hfd_count_path(API "/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses", path);
    assert_string_equal(path, API "/clusters/-/nodepools/-/statuses");
    hfd_count_path(API "/clusters", path);
    assert_string_equal(path, API "/clusters");
    for (size_t i = 0; i < hfd_route_count; i++) {
        hfd_count_path(hfd_routes[i].pattern, path);
        assert_true(strlen(path) < HFD_COUNT_PATH_MAX);
    }
}

/*
 * Routes of the API are counted in both vocabularies, by method, path and code; repeats go to the
 * same series.
 */
static void api_routes_are_counted_twice(void **state)
{
    struct hfd_counter *c = hfd_counter_new(table, 4);

    (void)state;
    assert_non_null(c);
    for (int i = 0; i < 3; i++)
        hfd_counter_add(c, &table[0], HFD_METHOD_GET, 200, 4000);
    hfd_counter_add(c, &table[0], HFD_METHOD_GET, 404, 4000);
    hfd_counter_add(c, &table[1], HFD_METHOD_PATCH, 200, 4000);
    hfd_counter_add(c, &table[0], HFD_METHOD_HEAD, 200, 4000);
    hfd_counter_add(c, &table[0], HFD_METHOD_GET, 418, 4000);
    hfd_counter_add(c, &table[0], HFD_METHOD_GET, 418, 4000);
    assert_true(
        rendered("\nhyperfleet_api_requests_total" OF("GET", API "/clusters/-", "200") "3\n"));
    assert_true(
        rendered("\nhyperfleet_api_requests_total" OF("GET", API "/clusters/-", "404") "1\n"));
    assert_true(
        rendered("\nhyperfleet_api_requests_total" OF("PATCH", API "/clusters/-", "200") "1\n"));
    assert_true(
        rendered("\nhyperfleet_api_requests_total" OF("HEAD", API "/clusters/-", "200") "1\n"));
    assert_true(
        rendered("\nhyperfleet_api_requests_total" OF("GET", API "/clusters/-", "418") "2\n"));
    assert_true(rendered("\nhyperfleet_api_request_duration_seconds_count" OF(
        "GET", API "/clusters/-", "200") "3\n"));
    assert_true(
        rendered("\nhfd_http_requests_total{method=\"GET\",route=\"cluster\",code=\"200\"} 3\n"));
    assert_true(
        rendered("\nhfd_http_requests_total{method=\"HEAD\",route=\"cluster\",code=\"200\"} 1\n"));
    hfd_counter_free(c);
}

/* Other routes, and what matched none, are counted in our own alone. */
static void others_are_counted_once(void **state)
{
    struct hfd_counter *c = hfd_counter_new(table, 4);

    (void)state;
    hfd_counter_add(c, &table[2], HFD_METHOD_GET, 202, 1);
    hfd_counter_add(c, &table[3], HFD_METHOD_GET, 200, 1);
    hfd_counter_add(c, NULL, HFD_METHOD_GET, 404, 1);
    assert_true(
        rendered("\nhfd_http_requests_total{method=\"GET\",route=\"resource\",code=\"202\"} 1\n"));
    assert_true(
        rendered("\nhfd_http_requests_total{method=\"GET\",route=\"none\",code=\"404\"} 1\n"));
    assert_true(rendered(
        "\nhfd_http_requests_total{method=\"GET\",route=\"fleet_metadata\",code=\"200\"} 1\n"));
    assert_false(rendered("path=\"/-\""));
    assert_false(rendered("path=\"/api/hyperfleet\""));
    hfd_counter_free(c);
    hfd_counter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_templates),
        cmocka_unit_test(api_routes_are_counted_twice),
        cmocka_unit_test(others_are_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
