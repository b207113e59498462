/* The hint: single answers, its document, and how it behaves while time goes on. */
#include "driver/core/hint.h"

#include "driver/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S HFD_US_PER_S
#define MS INT64_C(1000)
#define PLAN "300/900 400/900 1000/1100 3600/3600"
#define T0 (INT64_C(1735725600) * S) /* 2025-01-01T10:00:00Z */

/* Times relative to the start, in milliseconds; the start is T0 + start_ms. */
static const struct {
    const char *name;
    int64_t start_ms, estimate_ms, deadline_ms, now_ms;
    int64_t want_ms; /* the estimate, relative to T0 */
    int retry_s;
} cases[] = {
    {"at the start", 0, 900000, 3600000, 0, 900000, 60},
    {"later it stands still, and a quarter of what is left is waited", 0, 900000, 3600000, 840000,
     900000, 15},
    {"rounded up, the wait too", 0, 900000, 3600000, 877900, 900000, 6},
    {"in its last second", 0, 900000, 3600000, 899999, 900000, 1},
    {"at the estimate: twice as long", 0, 900000, 3600000, 900000, 1800000, 60},
    {"shortly before the second guess", 0, 900000, 3600000, 1798999, 1800000, 1},
    {"a second before the second guess: four times as long", 0, 900000, 86400000, 1799000, 3600000,
     60},
    {"eight times", 0, 900000, 86400000, 3600000, 7200000, 60},
    {"capped by the deadline", 0, 900000, 3000000, 1800000, 3000000, 60},
    {"capped in the last moment", 0, 900000, 3000000, 2999999, 3000000, 1},
    {"at the deadline it goes on without the cap", 0, 900000, 3000000, 3000000, 3600000, 60},
    {"an estimate behind the deadline", 0, 900000, 600000, 0, 600000, 60},
    {"an estimate behind a deadline that has passed", 0, 900000, 600000, 600000, 900000, 60},
    {"a start within a second: rounded up", 250, 900000, 3600000, 0, 901000, 60},
    {"twice as long from the exact start", 250, 900000, 3600000, 900000, 1801000, 60},
    {"no guess at all counts as one second", 0, 0, 3600000, 0, 2000, 1},
    {"no guess, later", 0, 0, 3600000, 2999, 4000, 1},
    {"a guess below one second counts as one", 0, 400, 3600000, 500, 2000, 1},
    {"a guess before the start counts as one second", 0, -5000, 3600000, 0, 2000, 1},
    {"the clock was set back", 0, 900000, 3600000, -7200000, 900000, 60},
    {"the clock was set back, without a guess", 0, 0, 3600000, -2000, 0, 1},
};

/* One answer each. */
static void answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t start_us = T0 + cases[i].start_ms * MS;
        const struct hfd_hint h = hfd_hint_make(&(struct hfd_hint_input){
            .status = "creating",
            .started_us = start_us,
            .estimate_us = start_us + cases[i].estimate_ms * MS,
            .deadline_us = start_us + cases[i].deadline_ms * MS,
            .now_us = start_us + cases[i].now_ms * MS,
        });

        if (h.estimated_us != T0 + cases[i].want_ms * MS || h.retry_after_s != cases[i].retry_s)
            print_error("%s: %lld ms, retry %d\n", cases[i].name,
                        (long long)((h.estimated_us - T0) / MS), h.retry_after_s);
        assert_int_equal(h.estimated_us, T0 + cases[i].want_ms * MS);
        assert_int_equal(h.retry_after_s, cases[i].retry_s);
        assert_string_equal(h.status, "creating");
        assert_int_equal(h.now_us, start_us + cases[i].now_ms * MS);
        assert_in_range(start_us + cases[i].deadline_ms * MS - h.deadline_us, 0, S - 1);
        assert_int_equal(h.deadline_us % S, 0);
    }
}

/* With a plan, in milliseconds since the start. */
static const struct {
    const char *name;
    int64_t deadline_ms, now_ms, want_ms;
    int retry_s;
} planned[] = {
    {"the first step", 3600000, 0, 900000, 300},
    {"rounded up", 3600000, 200, 900000, 300},
    {"shortly before it", 3600000, 299999, 900000, 1},
    {"on it, the second", 3600000, 300000, 900000, 100},
    {"behind the second, the third", 3600000, 400000, 1100000, 600},
    {"a step that is far is not waited for at once", 3600000, 1000000, 3600000, 600},
    {"near the deadline", 3600000, 3590000, 3600000, 10},
    {"an estimate behind the deadline", 1050000, 400000, 1050000, 600},
    {"the plan ends: as without one", 3600000, 3600000, 7200000, 60},
    {"the clock was set back", 3600000, -5000, 900000, 300},
};

/* The plan's next step counts, and stands still until it has passed. */
static void answers_with_a_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
        const struct hfd_hint h = hfd_hint_make(&(struct hfd_hint_input){
            .status = "creating",
            .started_us = T0,
            .estimate_us = T0 + 900 * S,
            .deadline_us = T0 + planned[i].deadline_ms * MS,
            .now_us = T0 + planned[i].now_ms * MS,
            .plan = HFD_SLICE(PLAN),
        });

        if (h.estimated_us != T0 + planned[i].want_ms * MS || h.retry_after_s != planned[i].retry_s)
            fail_msg("%s: %lld ms, retry %d", planned[i].name,
                     (long long)((h.estimated_us - T0) / MS), h.retry_after_s);
    }
}

static void format_is(const struct hfd_hint_input *in, const char *want)
{
    const struct hfd_hint h = hfd_hint_make(in);
    struct hfd_buf b;
    hfd_slice text;

    hfd_buf_init(&b, 1024);
    hfd_hint_format(&b, &h);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_OK);
    assert_int_equal(text.len, strlen(want));
    assert_memory_equal(text.p, want, text.len);
    hfd_buf_fini(&b);
}

/* The document: whole seconds in UTC, the present and the deadline rounded down, the estimate up.
 */
static void document(void **state)
{
    (void)state;
    format_is(
        &(struct hfd_hint_input){
            "creating", T0, T0 + 900 * S, T0 + 3600 * S, T0 + 5 * S, {NULL, 0}, {NULL, 0}},
        "{\"status\":\"creating\",\"estimated_completion_time\":\"2025-01-01T10:15:00Z\","
        "\"timeout\":\"2025-01-01T11:00:00Z\","
        "\"timeout_deadline\":\"2025-01-01T11:00:00Z\",\"current_time\":\"2025-01-01T10:00:05Z\"}");
    format_is(
        &(struct hfd_hint_input){"deleting",
                                 T0 + 1,
                                 T0 + 600 * S + 1,
                                 T0 + 3600 * S + 1,
                                 T0 + 6 * S - 1,
                                 {NULL, 0},
                                 {NULL, 0}},
        "{\"status\":\"deleting\",\"estimated_completion_time\":\"2025-01-01T10:10:01Z\","
        "\"timeout\":\"2025-01-01T11:00:00Z\","
        "\"timeout_deadline\":\"2025-01-01T11:00:00Z\",\"current_time\":\"2025-01-01T10:00:05Z\"}");
    format_is(
        &(struct hfd_hint_input){"creating",
                                 T0,
                                 T0 + 900 * S,
                                 T0 + 3600 * S,
                                 T0,
                                 {NULL, 0},
                                 HFD_SLICE("waits for \"dns\"")},
        "{\"status\":\"creating\",\"estimated_completion_time\":\"2025-01-01T10:15:00Z\","
        "\"timeout\":\"2025-01-01T11:00:00Z\","
        "\"timeout_deadline\":\"2025-01-01T11:00:00Z\",\"current_time\":\"2025-01-01T10:00:00Z\","
        "\"message\":\"waits for \\\"dns\\\"\"}");
}

/*
 * One operation polled every step_us for three deadlines. @return the number of different estimates
 */
static unsigned poll(int64_t start_us, int64_t prior_us, int64_t limit_us, int64_t step_us)
{
    struct hfd_hint_input in = {
        "updating", start_us, start_us + prior_us, start_us + limit_us, start_us,
        {NULL, 0},  {NULL, 0}};
    int64_t last_us = 0;
    unsigned kinds = 0;

    for (; in.now_us < start_us + 3 * limit_us; in.now_us += step_us) {
        const struct hfd_hint h = hfd_hint_make(&in);

        assert_int_equal(h.estimated_us % S, 0);
        /* In the second of the deadline the estimate is the stated timeout. */
        assert_true(h.estimated_us >= in.now_us ||
                    (in.now_us < in.deadline_us && h.estimated_us == h.deadline_us &&
                     in.now_us - h.estimated_us < S));
        assert_true(h.deadline_us <= in.deadline_us);
        assert_true(h.estimated_us >= last_us);
        if (in.now_us < in.deadline_us)
            assert_true(h.estimated_us <= h.deadline_us);
        assert_in_range(h.retry_after_s, 1, 60);
        if (h.estimated_us - in.now_us >= S)
            assert_true(in.now_us + h.retry_after_s * S <= h.estimated_us);
        kinds += h.estimated_us != last_us;
        last_us = h.estimated_us;
    }
    return kinds;
}

/*
 * Whole seconds, never in the past, never back, within the deadline while it lies ahead, and only a
 * few different values.
 */
static void polled_while_time_goes_on(void **state)
{
    static const int64_t priors_us[] = {-S,    0,      1,       S / 2,       S,
                                        S + 1, 10 * S, 600 * S, 900 * S + 7, 7200 * S};
    static const int64_t starts_us[] = {T0, T0 + 1, T0 + 499999, T0 + 999999};

    (void)state;
    for (size_t i = 0; i < sizeof(priors_us) / sizeof(priors_us[0]); i++)
        for (size_t k = 0; k < sizeof(starts_us) / sizeof(starts_us[0]); k++) {
            assert_in_range(poll(starts_us[k], priors_us[i], 3600 * S, 617 * MS + 1), 2, 16);
            assert_in_range(poll(starts_us[k], priors_us[i], 1, 1), 1, 2);
            assert_in_range(poll(starts_us[k], priors_us[i], 5 * S + 3, 11 * MS), 2, 7);
        }
}

/* Damaged or absurd times give an answer within the years that can be written. */
static void absurd_times(void **state)
{
    static const int64_t absurd[] = {INT64_MIN, -1, 0, 1, T0, INT64_C(253402300799999999),
                                     INT64_MAX};
    enum {
        N = sizeof(absurd) / sizeof(absurd[0])
    };

    (void)state;
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        const struct hfd_hint h = hfd_hint_make(&(struct hfd_hint_input){
            "creating", absurd[i % N], absurd[i / N % N], absurd[i / N / N % N],
            absurd[i / N / N / N], HFD_SLICE(PLAN), HFD_SLICE_NONE});
        struct hfd_buf b;

        assert_in_range(h.estimated_us, 0, INT64_C(253402300799) * S);
        assert_in_range(h.retry_after_s, 1, HFD_RETRY_MAX_S);
        hfd_buf_init(&b, 1024);
        hfd_hint_format(&b, &h);
        assert_int_equal(b.rc, HFD_OK);
        assert_int_equal(b.len, strlen("{\"status\":\"creating\",\"estimated_completion_time\":"
                                       "\"2025-01-01T10:15:00Z\",\"timeout\":\"\","
                                       "\"timeout_deadline\":\"\",\"current_time\":\"\"}") +
                                    3 * strlen("2025-01-01T10:15:00Z"));
        hfd_buf_fini(&b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),      cmocka_unit_test(answers_with_a_plan),
        cmocka_unit_test(document),     cmocka_unit_test(polled_while_time_goes_on),
        cmocka_unit_test(absurd_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
