/*
 * The estimator: its plans from little, from much and from absurd knowledge. tests/bench/polls.c
 * measures the cost of its plans.
 */
#include "driver/core/hint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/seams.h"

#define S HFD_US_PER_S

/* An operation, and all that came before it. */
struct fixture {
    struct hfd_past past[HFD_PAST_MAX];
    struct hfd_milestones milestones;
    struct hfd_estimate_input in;
    struct hfd_plan plan;
};

/* Prior 600 s, deadline 1 h, nothing known. */
static void start(struct fixture *fx)
{
    *fx = (struct fixture){.in = {.prior_us = 600 * S, .deadline_us = 3600 * S}};
    fx->in.past = fx->past;
    fx->in.milestones = &fx->milestones;
}

/* Adds an operation that is older than all others. step_s 0: it reported no milestone. */
static void add_past(struct fixture *fx, int64_t took_s, int64_t step_s)
{
    struct hfd_past *p = &fx->past[fx->in.past_count++];

    *p = (struct hfd_past){.took_us = took_s * S};
    if (step_s > 0) {
        p->milestones.items[0] = (struct hfd_milestone){HFD_SLICE("cluster/dns"), step_s * S};
        p->milestones.count = 1;
    }
}

static void reach(struct fixture *fx, const char *name, int64_t at_s)
{
    fx->milestones.items[fx->milestones.count++] =
        (struct hfd_milestone){hfd_slice_of(name), at_s * S};
    fx->in.elapsed_us = at_s * S;
}

/* Plans, and checks what holds of every plan. */
static void plan(struct fixture *fx)
{
    const int64_t deadline_s = (fx->in.deadline_us + S - 1) / S;
    int64_t poll_s = -1, done_s = 0;

    hfd_estimate_plan(&fx->in, &fx->plan);
    assert_true(fx->plan.count > 0 && fx->plan.count <= HFD_PLAN_MAX);
    for (size_t i = 0; i < fx->plan.count; i++) {
        const struct hfd_plan_step *step = &fx->plan.steps[i];

        assert_true(step->poll_s * S > fx->in.elapsed_us);
        assert_true(step->poll_s > poll_s && step->poll_s <= deadline_s);
        assert_true(step->done_s >= step->poll_s && step->done_s >= done_s);
        poll_s = step->poll_s;
        done_s = step->done_s;
    }
    if (fx->plan.count < HFD_PLAN_MAX)
        assert_int_equal(poll_s, deadline_s);
}

static int64_t first_done_s(struct fixture *fx)
{
    plan(fx);
    return fx->plan.steps[0].done_s;
}

/*
 * Without a past the end is expected at the configured estimate, until that has passed. The first
 * poll is well before.
 */
static void without_a_past_the_settings_hold(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    plan(&fx);
    assert_in_range(fx.plan.steps[0].poll_s, 150, 300);
    for (size_t i = 0; i < fx.plan.count; i++)
        if (fx.plan.steps[i].poll_s <= 600)
            assert_int_equal(fx.plan.steps[i].done_s, 600);
        else
            assert_true(fx.plan.steps[i].done_s > 600);
}

/*
 * Without a past the polls are the same parts of any estimate, in whole seconds. Polls in the past
 * are left out.
 */
static void first_polls_are_parts_of_the_guess(void **state)
{
    static const int64_t want_s[] = {331,  461,  581,  691,  821,  951,  1092,
                                     1222, 1372, 1552, 1732, 1892, 2033, 2163,
                                     2293, 2433, 2601, 2803, 3045, 3336, 3600};
    static const struct {
        int64_t guess_s, elapsed_s, want_s[4];
    } rows[] = {
        {100, 0, {33, 46, 58, 69}}, {10, 0, {4, 5, 6, 7}},       {1, 0, {1, 2, 3, 4}},
        {0, 0, {1, 2, 3, 4}},       {100, 46, {58, 69, 82, 95}},
    };
    struct fixture fx;

    (void)state;
    start(&fx);
    fx.in.prior_us = 1001 * S;
    plan(&fx);
    assert_int_equal(fx.plan.count, sizeof(want_s) / sizeof(want_s[0]));
    for (size_t i = 0; i < fx.plan.count; i++)
        assert_int_equal(fx.plan.steps[i].poll_s, want_s[i]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fx.in.prior_us = rows[i].guess_s * S;
        fx.in.elapsed_us = rows[i].elapsed_s * S;
        plan(&fx);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(fx.plan.steps[k].poll_s, rows[i].want_s[k]);
    }
}

/*
 * Once the configured estimate has passed, the end is expected half as late again, and never after
 * the deadline.
 */
static void behind_the_configured_guess(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    plan(&fx);
    for (size_t i = 0; i < fx.plan.count; i++) {
        const int64_t poll_s = fx.plan.steps[i].poll_s;

        assert_int_equal(fx.plan.steps[i].done_s, poll_s <= 600    ? 600
                                                  : poll_s <= 900  ? 900
                                                  : poll_s <= 1350 ? 1350
                                                  : poll_s <= 2025 ? 2025
                                                  : poll_s <= 3037 ? 3038
                                                                   : 3600);
    }
}

/*
 * Operations that all took about as long: the estimate is that, and the first poll shortly before
 * or behind it.
 */
static void regular_operations(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 300 + i % 5, 0);
    assert_in_range(first_done_s(&fx), 298, 325);
    assert_in_range(fx.plan.steps[0].poll_s, 285, 325);
}

/* One operation already counts for more than the configured estimate. */
static void first_lesson(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    add_past(&fx, 120, 0);
    assert_in_range(first_done_s(&fx), 115, 150);
}

/* Operations of ten times the usual length, now and then, do not move the estimate. */
static void outliers_do_not_count(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, i % 10 == 0 ? 3000 : 300 + 3 * (i % 7), 0);
    assert_in_range(first_done_s(&fx), 295, 330);
}

/* After one operation that failed early, the next ones are polled in time. */
static void one_early_failure(void **state)
{
    struct fixture fx;

    (void)state;
    for (int since = 0; since < 8; since++) {
        start(&fx);
        for (int i = 0; i < since; i++)
            add_past(&fx, 600 + i, 0);
        add_past(&fx, 10, 0);
        fx.past[since].ending = HFD_ENDING_FAILED;
        plan(&fx);
        assert_in_range(fx.plan.steps[0].poll_s, 5, 15);
    }
}

/* When operations suddenly take twice as long, eight of them are enough to change the estimate. */
static void change_of_regime(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 8; i++)
        add_past(&fx, 600 + 5 * i, 0);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 300 + 5 * (i % 6), 0);
    assert_in_range(first_done_s(&fx), 590, 660);
}

/* The longer it takes, the later it is expected. */
static void time_spent_counts(void **state)
{
    struct fixture fx;
    int64_t last_s = 0;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 300 + 10 * (i % 7), 0);
    for (int64_t s = 0; s < 3600; s += 97) {
        fx.in.elapsed_us = s * S;
        assert_true(first_done_s(&fx) >=
                    last_s - last_s / 50); /* the grid of times is another one each time */
        last_s = fx.plan.steps[0].done_s;
    }
}

/*
 * A milestone that always comes at the same part of the whole gives the end of a slow operation,
 * and of a fast one.
 */
static void milestone_by_ratio(void **state)
{
    static const int64_t steps_s[] = {60, 120, 240, 480};

    (void)state;
    for (size_t k = 0; k < sizeof(steps_s) / sizeof(steps_s[0]); k++) {
        struct fixture fx;

        start(&fx);
        for (int i = 0; i < 20; i++)
            add_past(&fx, 200 + 100 * (i % 9), (200 + 100 * (i % 9)) * 2 / 5);
        reach(&fx, "cluster/dns", steps_s[k]);
        assert_in_range(first_done_s(&fx), steps_s[k] * 5 / 2 * 95 / 100,
                        steps_s[k] * 5 / 2 * 110 / 100);
    }
}

/* A milestone after which the rest always takes as long gives the end by that. */
static void milestone_by_rest(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 30 * (i % 9 + 1) + 200, 30 * (i % 9 + 1));
    reach(&fx, "cluster/dns", 500);
    assert_in_range(first_done_s(&fx), 690, 730);
}

/*
 * A milestone that comes early on the fast path and late on the slow one identifies the path,
 * though neither by ratio nor by rest.
 */
static void milestone_by_path(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, i % 2 == 0 ? 300 + i : 900 + 2 * i, i % 2 == 0 ? 100 - i : 190 - i);
    reach(&fx, "cluster/dns", 170);
    assert_in_range(first_done_s(&fx), 850, 960);
    fx.milestones.count = 0;
    reach(&fx, "cluster/dns", 90);
    assert_in_range(first_done_s(&fx), 290, 340);
}

/* A milestone that was done before the operation began changes nothing. */
static void milestone_before_the_start(void **state)
{
    struct fixture fx;
    int64_t without_s;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 200 + 100 * (i % 9), (200 + 100 * (i % 9)) * 2 / 5);
    without_s = first_done_s(&fx);
    reach(&fx, "cluster/dns", 0);
    assert_false(hfd_estimate_is_news(&fx.in, 0));
    assert_int_equal(first_done_s(&fx), without_s);
}

/* News is the milestone that says most, when it comes, and not again with the next one. */
static void news(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 200 + 100 * (i % 9), (200 + 100 * (i % 9)) * 2 / 5);
    reach(&fx, "cluster/dns", 120);
    assert_true(hfd_estimate_is_news(&fx.in, 0));
    reach(&fx, "cluster/new", 130);
    assert_false(hfd_estimate_is_news(&fx.in, 1));
}

/* A milestone without information changes nothing; nor does one that no past operation has. */
static void idle_milestones(void **state)
{
    struct fixture fx;
    int64_t without_s;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++)
        add_past(&fx, 300 + 3 * (i % 5), 5 + i % 7);
    fx.in.elapsed_us = 12 * S;
    without_s = first_done_s(&fx);
    reach(&fx, "cluster/dns", 12);
    assert_in_range(first_done_s(&fx), without_s - 15, without_s + 15);
    fx.milestones.count = 0;
    reach(&fx, "cluster/new", 12);
    assert_int_equal(first_done_s(&fx), without_s);
}

/* Operations on specs of another size count less than those of the same. */
static void size_counts(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++) {
        add_past(&fx, i % 2 == 0 ? 300 : 900, 0);
        fx.past[i].size = i % 2;
    }
    assert_in_range(first_done_s(&fx), 295, 330);
    fx.in.size = 1;
    assert_in_range(first_done_s(&fx), 880, 990);
}

/* Where operations fail early, a poll comes in time; the others are not expected sooner. */
static void early_failures(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++) {
        add_past(&fx, i % 3 != 0 ? 20 : 600 + i, 0);
        fx.past[i].ending = i % 3 != 0 ? HFD_ENDING_FAILED : HFD_ENDING_DONE;
    }
    assert_in_range(first_done_s(&fx), 590, 640);
    assert_in_range(fx.plan.steps[0].poll_s, 18, 30);
}

/*
 * Where all slow operations last until their deadline, this is expected once the usual time has
 * passed.
 */
static void late_operations(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    for (int i = 0; i < 20; i++) {
        add_past(&fx, i % 4 == 0 ? 3600 : 300 + i, 0);
        fx.past[i].ending = i % 4 == 0 ? HFD_ENDING_LATE : HFD_ENDING_DONE;
    }
    assert_in_range(first_done_s(&fx), 295, 350);
    fx.in.elapsed_us = 900 * S;
    assert_int_equal(first_done_s(&fx), 3600);
}

/* After the deadline the plan is empty. */
static void nothing_behind_the_deadline(void **state)
{
    struct fixture fx;

    (void)state;
    start(&fx);
    fx.in.elapsed_us = 3600 * S;
    hfd_estimate_plan(&fx.in, &fx.plan);
    assert_int_equal(fx.plan.count, 0);
    fx.in.elapsed_us--;
    plan(&fx);
    assert_int_equal(fx.plan.count, 1);
}

/* For all times there is a plan with the properties of one. */
static void absurd_times(void **state)
{
    static const int64_t odd_us[] = {-S, 0, 1, S / 2, S, 17 * S, 3600 * S, 30 * INT64_C(86400) * S};
    enum {
        N = sizeof(odd_us) / sizeof(odd_us[0])
    };

    (void)state;
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        struct fixture fx;

        start(&fx);
        fx.in.prior_us = odd_us[i % N];
        fx.in.deadline_us = odd_us[i / N % N];
        for (size_t k = 0; k < (i % 3 == 0 ? HFD_PAST_MAX : 1u); k++) {
            add_past(&fx, 1, 1);
            fx.past[k].took_us = odd_us[(i / N / N + k) % N];
        }
        fx.in.elapsed_us = odd_us[i / N / N / N];
        if (i % 2 == 0)
            reach(&fx, "cluster/dns", fx.in.elapsed_us / S);
        if (fx.in.elapsed_us < 0)
            fx.in.elapsed_us = 0;
        if (fx.in.deadline_us > 0 && fx.in.elapsed_us < fx.in.deadline_us)
            plan(&fx);
        else
            hfd_estimate_plan(&fx.in, &fx.plan);
    }
}

/* The stored form gives back each step that lies ahead; any other text gives nothing. */
static void stored_form(void **state)
{
    static const char *const damaged[] = {"",     "x",    "5",  "5/", "/5", "5/6x", "99999999999/1",
                                          "10/9", "-5/6", "5 6"};
    struct fixture fx;
    struct hfd_plan_step step;
    struct hfd_buf b;

    (void)state;
    start(&fx);
    plan(&fx);
    hfd_buf_init(&b, 4096);
    hfd_plan_format(&b, &fx.plan);
    for (size_t i = 0; i < fx.plan.count; i++) {
        assert_true(hfd_plan_next(hfd_buf_slice(&b), fx.plan.steps[i].poll_s * S - 1, &step));
        assert_int_equal(step.poll_s, fx.plan.steps[i].poll_s);
        assert_int_equal(step.done_s, fx.plan.steps[i].done_s);
    }
    assert_false(
        hfd_plan_next(hfd_buf_slice(&b), fx.plan.steps[fx.plan.count - 1].poll_s * S, &step));
    hfd_buf_fini(&b);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        if (hfd_plan_next(hfd_slice_of(damaged[i]), 0, &step))
            fail_msg("\"%s\" was taken", damaged[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_past_the_settings_hold),
        cmocka_unit_test(first_polls_are_parts_of_the_guess),
        cmocka_unit_test(behind_the_configured_guess),
        cmocka_unit_test(regular_operations),
        cmocka_unit_test(first_lesson),
        cmocka_unit_test(outliers_do_not_count),
        cmocka_unit_test(one_early_failure),
        cmocka_unit_test(change_of_regime),
        cmocka_unit_test(time_spent_counts),
        cmocka_unit_test(milestone_by_ratio),
        cmocka_unit_test(milestone_by_rest),
        cmocka_unit_test(milestone_by_path),
        cmocka_unit_test(milestone_before_the_start),
        cmocka_unit_test(news),
        cmocka_unit_test(idle_milestones),
        cmocka_unit_test(size_counts),
        cmocka_unit_test(early_failures),
        cmocka_unit_test(late_operations),
        cmocka_unit_test(nothing_behind_the_deadline),
        cmocka_unit_test(absurd_times),
        cmocka_unit_test(stored_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
