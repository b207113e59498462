#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/metrics.h"

/* Renders the exposition as a C string; the caller's fini frees it. */
static const char *render(struct hfd_buf *b)
{
    hfd_buf_init(b, 4u << 20);
    hfd_metrics_render(b);
    hfd_buf_addc(b, '\0');
    assert_int_equal(b->rc, HFD_OK);
    return b->p;
}

static void assert_has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("missing: %s", line);
}

/* Counters add, gauges are set and go down, metrics without labels are there from the start. */
static void metrics_count(void **state)
{
    struct hfd_buf b;
    const char *text;

    (void)state;
    hfd_metric_add(HFD_METRIC_REPORTS, HFD_LABELS("cluster", "written", ""), 2);
    hfd_metric_add(HFD_METRIC_REPORTS, HFD_LABELS("cluster", "written", ""), 1);
    hfd_metric_add(HFD_METRIC_REPORTS, HFD_LABELS("written", "cluster", ""), 1);
    hfd_metric_set(HFD_METRIC_STORE_QUEUE, NULL, 7);
    hfd_metric_add(HFD_METRIC_STORE_QUEUE, NULL, -9);
    text = render(&b);
    assert_has(text, "\n# TYPE hfd_fleet_reports_total counter\n");
    assert_has(text, "\n# HELP hfd_fleet_reports_total Adapter reports, by outcome. The "
                     "cause is that of a discarded one: ahead or behind (its generation), older "
                     "(its time), unknown (Available is Unknown).\n");
    assert_has(text,
               "\nhfd_fleet_reports_total{kind=\"cluster\",outcome=\"written\",cause=\"\"} 3\n");
    assert_has(text,
               "\nhfd_fleet_reports_total{kind=\"written\",outcome=\"cluster\",cause=\"\"} 1\n");
    assert_has(text, "\n# TYPE hfd_store_queue_length gauge\nhfd_store_queue_length -2\n");
    assert_has(text, "\nhfd_store_commits_total 0\n");
    assert_has(text, "\nhfd_store_commit_duration_seconds_count 0\n");
    assert_has(text, "hfd_build_info{version=\"" HFD_VERSION "\"} 1\n");
    hfd_buf_fini(&b);
}

/*
 * Without a remote HyperFleet no metric reports it as down: its gauges have no sample until they
 * are set.
 */
static void metrics_of_what_is_not_there(void **state)
{
    struct hfd_buf b;
    const char *text;

    (void)state;
    text = render(&b);
    assert_has(text, "\n# TYPE hfd_remote_up gauge\n# HELP ");
    hfd_buf_fini(&b);
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, 0);
    text = render(&b);
    assert_has(text, "\n# TYPE hfd_remote_up gauge\nhfd_remote_up 0\n");
    hfd_buf_fini(&b);
}

/*
 * A duration counts in its bucket and in all above. A bound belongs to its bucket. The sum is in
 * seconds.
 */
static void metrics_histogram_is_cumulative(void **state)
{
    static const int64_t observed[] = {-5, 0, 1000, 1001, 9999999, 10000000, 10000001, 60000000};
    struct hfd_buf b;
    const char *text;

    (void)state;
    for (size_t i = 0; i < sizeof(observed) / sizeof(observed[0]); i++)
        hfd_metric_observe_us(HFD_METRIC_HTTP_SECONDS, HFD_LABELS("GET", "/{id}"), observed[i]);
    text = render(&b);
    assert_has(
        text,
        "\n# TYPE hfd_http_request_duration_seconds histogram\n"
        "hfd_http_request_duration_seconds_bucket{method=\"GET\",route=\"/{id}\",le=\"0.001\"} 3\n"
        "hfd_http_request_duration_seconds_bucket{method=\"GET\",route=\"/{id}\",le=\"0.0025\"} "
        "4\n");
    assert_has(text, ",le=\"5\"} 4\n");
    assert_has(
        text,
        ",le=\"10\"} 6\n"
        "hfd_http_request_duration_seconds_bucket{method=\"GET\",route=\"/{id}\",le=\"+Inf\"} 8\n"
        "hfd_http_request_duration_seconds_sum{method=\"GET\",route=\"/{id}\"} 90.002001\n"
        "hfd_http_request_duration_seconds_count{method=\"GET\",route=\"/{id}\"} 8\n");
    hfd_buf_fini(&b);
}

/*
 * HyperFleet's metrics have its labels, the constant ones first, and its buckets. Its first bucket
 * counts all smaller durations.
 */
static void metrics_have_hyperfleets_form(void **state)
{
#define ALL "component=\"api\",version=\"" HFD_VERSION "\""
#define OF ALL ",method=\"GET\",path=\"/a/-/b\",code=\"200\""
    static const int64_t observed[] = {0, 2000, 5000, 5001, 20000000};
    struct hfd_series *s =
        hfd_metric_series(HFD_METRIC_API_SECONDS, HFD_LABELS("GET", "/a/-/b", "200"));
    struct hfd_buf b;
    const char *text;

    (void)state;
    for (size_t i = 0; i < sizeof(observed) / sizeof(observed[0]); i++)
        hfd_series_observe_us(s, observed[i]);
    hfd_metric_add(HFD_METRIC_API_REQUESTS, HFD_LABELS("GET", "/a/-/b", "200"), 1);
    hfd_series_add(hfd_metric_series(HFD_METRIC_API_REQUESTS, HFD_LABELS("GET", "/a/-/b", "200")),
                   2);
    hfd_series_add(NULL, 1);
    hfd_series_observe_us(NULL, 1);
    text = render(&b);
    assert_has(text, "\nhyperfleet_api_build_info{" ALL "} 1\n");
    assert_has(text, "\nhyperfleet_api_requests_total{" OF "} 3\n");
    assert_has(text, "\n# TYPE hyperfleet_api_request_duration_seconds histogram\n"
                     "hyperfleet_api_request_duration_seconds_bucket{" OF ",le=\"0.005\"} 3\n"
                     "hyperfleet_api_request_duration_seconds_bucket{" OF ",le=\"0.01\"} 4\n");
    assert_has(text, OF ",le=\"+Inf\"} 5\n"
                        "hyperfleet_api_request_duration_seconds_sum{" OF "} 20.012001\n"
                        "hyperfleet_api_request_duration_seconds_count{" OF "} 5\n");
    hfd_buf_fini(&b);
#undef OF
#undef ALL
}

/* Label values cannot break the text; long ones are cut and still found again. */
static void metrics_label_values_are_escaped(void **state)
{
    char longer[200];
    struct hfd_buf b;
    const char *text;

    (void)state;
    memset(longer, 'q', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("a\"b\\c\nx\xff\xc3\xa9"), 1);
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS(longer), 1);
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS(longer), 1);
    text = render(&b);
    assert_has(text,
               "\nhfd_http_refused_total{reason=\"a\\\"b\\\\c\\nx\xef\xbf\xbd\xc3\xa9\"} 1\n");
    longer[64] = '\0';
    text = strstr(text, longer);
    assert_non_null(text);
    assert_memory_equal(text + 64, "\"} 2\n", 5);
    assert_null(strstr(text + 64, longer));
    hfd_buf_fini(&b);
}

/* Beyond the bound, new label values are counted as "other", known ones as before. */
static void metrics_series_are_bounded(void **state)
{
    struct hfd_buf b;
    const char *text;
    size_t lines = 0;

    (void)state;
    for (int i = 0; i < 700; i++) {
        char result[20];

        snprintf(result, sizeof(result), "r%d", i);
        hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS(result), 1);
    }
    hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS("r0"), 4);
    text = render(&b);
    assert_has(text, "\nhfd_store_jobs_total{result=\"r0\"} 5\n");
    assert_has(text, "\nhfd_store_jobs_total{result=\"other\"} 189\n");
    for (const char *p = strstr(text, "\nhfd_store_jobs_total{"); p != NULL;
         p = strstr(p + 1, "\nhfd_store_jobs_total{"))
        lines++;
    assert_int_equal(lines, HFD_METRIC_SERIES_MAX);
    hfd_buf_fini(&b);
}

static void assert_metric_name(const char *p, size_t n)
{
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_true((p[i] >= 'a' && p[i] <= 'z') || p[i] == '_' ||
                    (i > 0 && p[i] >= '0' && p[i] <= '9'));
}

/*
 * Every line is a HELP, a TYPE or a sample of the metric last named. Each metric is named once, and
 * the text ends in a line feed.
 */
static void metrics_text_is_well_formed(void **state)
{
    struct hfd_buf b;
    const char *line = render(&b);
    char family[80] = "";

    (void)state;
    assert_int_equal(b.p[b.len - 2], '\n');
    while (*line != '\0') {
        const char *end = strchr(line, '\n');
        const char *value = end;

        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t n = strcspn(line + 7, " ");
            char again[100];

            assert_metric_name(line + 7, n);
            snprintf(family, sizeof(family), "%.*s", (int)n, line + 7);
            snprintf(again, sizeof(again), "\n# HELP %s ", family);
            assert_null(strstr(end, again));
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_memory_equal(line + 7, family, strlen(family));
        } else {
            size_t n = strcspn(line, "{ ");

            assert_metric_name(line, n);
            assert_memory_equal(line, family, strlen(family));
            while (value[-1] != ' ')
                value--;
            assert_int_equal(strspn(value, "-0123456789."), end - value);
            assert_true(end > value);
        }
        line = end + 1;
    }
    hfd_buf_fini(&b);
}

/* The metrics of the process have plausible values. */
static void metrics_process(void **state)
{
    static const char *const names[] = {
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    };
    struct hfd_buf b;
    const char *text = render(&b);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char head[80];
        const char *p;

        snprintf(head, sizeof(head), "\n%s ", names[i]);
        p = strstr(text, head);
        assert_non_null(p);
        assert_true(p[strlen(head)] >= '0' && p[strlen(head)] <= '9');
    }
    assert_has(text, "\nprocess_start_time_seconds 1"); /* until the year 2033 */
    hfd_buf_fini(&b);
}

#define THREADS 4
#define ROUNDS 2000

static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        char from[8];

        snprintf(from, sizeof(from), "f%d", i % 50);
        hfd_metric_add(HFD_METRIC_TRANSITIONS, HFD_LABELS(from, "to"), 1);
        hfd_metric_observe_us(HFD_METRIC_STORE_COMMIT_SECONDS, NULL, i);
        if (i % 500 == 0) {
            struct hfd_buf b;

            (void)render(&b);
            hfd_buf_fini(&b);
        }
    }
    return NULL;
}

/* Threads that race for the same new series lose nothing, while others render. */
static void metrics_threads(void **state)
{
    pthread_t threads[THREADS];
    struct hfd_buf b;
    const char *text;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    text = render(&b);
    for (int i = 0; i < 50; i++) {
        char line[100];

        snprintf(line, sizeof(line),
                 "\nhfd_resource_transitions_total{from=\"f%d\",to=\"to\"} %d\n", i,
                 THREADS * ROUNDS / 50);
        assert_has(text, line);
    }
    assert_has(text, "\nhfd_store_commit_duration_seconds_count 8000\n");
    hfd_buf_fini(&b);
}

/* The manual's table has a row for each metric, with all its labels. */
static void metrics_table_for_the_manual(void **state)
{
    struct hfd_buf b;
    const char *text;
    size_t rows = 0;

    (void)state;
    hfd_buf_init(&b, 64u << 10);
    hfd_metrics_table(&b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    text = b.p;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        rows++;
    assert_int_equal(rows, 2 + HFD_METRIC_COUNT + 6);
    assert_has(text, "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    assert_has(text, "\n| `hfd_store_commits_total` | counter | | Commits to the database. |\n");
    assert_has(text, "\n| `hfd_fleet_reports_total` | counter | `kind`, `outcome`, `cause` | "
                     "Adapter reports, by outcome. ");
    assert_has(text, "\n| `hyperfleet_api_build_info` | gauge | `component`, `version` | ");
    assert_has(text, "\n| `hyperfleet_api_request_duration_seconds` | histogram | `component`, "
                     "`version`, `method`, `path`, `code` | ");
    assert_has(text, "\n| `process_open_fds` | gauge | | Number of open file descriptors. |\n");
    hfd_buf_fini(&b);
}

static int setup(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_count),
        cmocka_unit_test(metrics_of_what_is_not_there),
        cmocka_unit_test(metrics_histogram_is_cumulative),
        cmocka_unit_test(metrics_have_hyperfleets_form),
        cmocka_unit_test(metrics_label_values_are_escaped),
        cmocka_unit_test(metrics_series_are_bounded),
        cmocka_unit_test(metrics_process),
        cmocka_unit_test(metrics_threads),
        cmocka_unit_test(metrics_table_for_the_manual),
        cmocka_unit_test(metrics_text_is_well_formed),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
