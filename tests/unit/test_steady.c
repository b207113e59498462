/* The steady clock, and the effect of jumps on resources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "driver/base/steady.h"
#include "tests/lib/scene.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/rows_history.h"

#define S HFD_US_PER_S
#define HOUR_US (3600 * S)
#define ID "res-1"
static const char body[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{"
                           "\"name\":\"c-one\",\"spec\":{\"region\":\"a\"}}}}}";
static const char body_b[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
                             "{\"name\":\"c-one\",\"spec\":{\"region\":\"b\"}}}}}";

struct fixture {
    struct test_clock clock;
    struct hfd_steady steady;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    test_clock_init(&fx->clock);
    hfd_steady_init(&fx->steady, &fx->clock.clock);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static int64_t now(struct fixture *fx)
{
    return hfd_clock_wall_us(&fx->steady.clock);
}

/* Without jumps it is equal to the wall clock, to the microsecond. */
static void steady_is_the_wall_clock(void **state)
{
    struct fixture *fx = *state;

    for (int i = 0; i < 1000; i++) {
        test_clock_advance(&fx->clock, 1 + i * 997);
        assert_true(now(fx) == fx->clock.wall_us);
        assert_true(hfd_clock_skew_us(&fx->steady.clock) == 0);
        assert_true(hfd_clock_mono_us(&fx->steady.clock) == fx->clock.mono_us);
    }
}

/*
 * A jump by an hour, either way, is not seen at once. The clock makes up for it with a
 * thirty-second part of the time, and then it is right again.
 */
static void steady_fades_a_jump(void **state)
{
    static const int64_t jumps_us[] = {HOUR_US, -HOUR_US, 500000, -500000};

    for (size_t i = 0; i < sizeof(jumps_us) / sizeof(jumps_us[0]); i++) {
        struct fixture *fx = *state;
        int64_t before_us, at_us, started_us = fx->clock.mono_us;

        before_us = now(fx);
        fx->clock.wall_us += jumps_us[i];
        assert_true(now(fx) == before_us);
        assert_true(hfd_clock_skew_us(&fx->steady.clock) == jumps_us[i]);
        for (int64_t t = 0; t < 600; t++) {
            test_clock_advance(&fx->clock, S);
            at_us = now(fx);
            assert_true(at_us >= before_us + S - S / HFD_STEADY_FADE &&
                        at_us <= before_us + S + S / HFD_STEADY_FADE);
            before_us = at_us;
        }
        while (now(fx) != fx->clock.wall_us) {
            test_clock_advance(&fx->clock, 30 * S);
            assert_true(fx->clock.mono_us - started_us < 33 * HOUR_US);
        }
        assert_true(hfd_clock_skew_us(&fx->steady.clock) == 0);
        if (i < 2)
            assert_true(fx->clock.mono_us - started_us >= 31 * HOUR_US);
    }
}

/*
 * The clock never goes back on any jump, however long it is not read. It is never ahead of the time
 * since by more than its part.
 */
static void steady_never_goes_back(void **state)
{
    struct fixture *fx = *state;
    struct test_rng rng;
    int64_t before_us = now(fx), mono_us = fx->clock.mono_us;

    test_rng_init(&rng, 4);
    for (int i = 0; i < 20000; i++) {
        int64_t at_us;

        test_clock_advance(&fx->clock, (int64_t)test_rng_below(
                                           &rng, i % 100 == 0 ? 90000 * (uint64_t)S : (uint64_t)S));
        if (test_rng_below(&rng, 10) == 0)
            fx->clock.wall_us +=
                (int64_t)test_rng_below(&rng, (uint64_t)(4 * HOUR_US)) - 2 * HOUR_US;
        at_us = now(fx);
        assert_true(at_us >= before_us);
        assert_true(at_us - before_us <= fx->clock.mono_us - mono_us + 60 * S / HFD_STEADY_FADE);
        before_us = at_us;
        mono_us = fx->clock.mono_us;
    }
}

/*
 * The clock is not read for a day, and then the wall clock jumps: that day makes up for no more
 * than a minute does.
 */
static void steady_makes_up_little_after_a_pause(void **state)
{
    struct fixture *fx = *state;

    (void)now(fx);
    test_clock_advance(&fx->clock, 24 * HOUR_US);
    fx->clock.wall_us += HOUR_US;
    assert_true(now(fx) == fx->clock.wall_us - HOUR_US + 60 * S / HFD_STEADY_FADE);
}

/* ---- across a restart ---- */

/*
 * The next process of the same boot goes on as if there had been no jump. A file of another boot is
 * not used.
 */
static void steady_resumes_across_a_jump(void **state)
{
    static const char *const others[] = {
        "",     "x",  "not-this-start 5\n",
        " 5\n", "\n", "00000000-0000-0000-0000-000000000000 1000000000\n"};
    struct fixture *fx = *state;
    struct hfd_steady next;
    char base[TMPDIR_MAX], path[TMPDIR_MAX + 8];
    struct stat st;

    tmpdir_make(base);
    (void)snprintf(path, sizeof(path), "%s/clock", base);
    assert_int_equal(hfd_steady_resume(&fx->steady, path, NULL), HFD_OK); /* the first of all */
    assert_true(now(fx) == fx->clock.wall_us);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (int i = 0; i < 2; i++) {
        const int64_t jump_us = i == 0 ? HOUR_US : -3 * HOUR_US;
        const int64_t wanted_us = now(fx) + 100 * S;

        fx->clock.wall_us += jump_us;
        test_clock_advance(&fx->clock, 100 * S);
        hfd_steady_init(&next, &fx->clock.clock);
        assert_int_equal(hfd_steady_resume(&next, path, NULL), HFD_OK);
        assert_true(hfd_clock_wall_us(&next.clock) == wanted_us);
        fx->clock.wall_us -= jump_us;
    }
    test_clock_advance(&fx->clock, S);
    fx->clock.wall_us += HOUR_US;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        (void)fputs(others[i], f);
        (void)fclose(f);
        hfd_steady_init(&next, &fx->clock.clock);
        assert_int_equal(hfd_steady_resume(&next, path, NULL), HFD_OK);
        assert_true(hfd_clock_wall_us(&next.clock) == fx->clock.wall_us);
    }
    tmpdir_remove(base);
}

/* Returns what a clock file that was written by hand makes of the time, an hour after a jump. */
static int64_t resumed_us(struct fixture *fx, const char *path, const char *text)
{
    struct hfd_steady next;
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    hfd_steady_init(&next, &fx->clock.clock);
    assert_int_equal(hfd_steady_resume(&next, path, NULL), HFD_OK);
    return hfd_clock_wall_us(&next.clock);
}

/* One wrong character anywhere in the file, and the clock starts from the wall clock. */
static void steady_notices_damage(void **state)
{
    struct fixture *fx = *state;
    char base[TMPDIR_MAX], path[TMPDIR_MAX + 8], good[256] = "", bad[256];
    FILE *f;

    tmpdir_make(base);
    (void)snprintf(path, sizeof(path), "%s/clock", base);
    assert_int_equal(hfd_steady_save(&fx->steady, path, NULL), HFD_OK);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(good, sizeof(good), f));
    (void)fclose(f);
    fx->clock.wall_us += HOUR_US;
    assert_true(resumed_us(fx, path, good) == fx->clock.wall_us - HOUR_US);
    for (size_t i = 0; good[i] != '\0'; i++) {
        memcpy(bad, good, sizeof(bad));
        bad[i] = (char)(good[i] ^ 1);
        assert_true(resumed_us(fx, path, bad) == fx->clock.wall_us);
        bad[i] = '\0';
        assert_true(resumed_us(fx, path, bad) == fx->clock.wall_us);
    }
    tmpdir_remove(base);
}

/* A saved time more than ten years from the wall clock, either way, is not taken up. */
static void steady_stays_near_the_wall_clock(void **state)
{
    static const int64_t ten_years_us = 3652 * 24 * HOUR_US;
    static const struct {
        int64_t off_us;
        bool taken;
    } cases[] = {
        {3600 * S, true},         {-3600 * S, true},         {ten_years_us - S, true},
        {S - ten_years_us, true}, {ten_years_us + S, false}, {-ten_years_us - S, false},
        {INT64_MAX / 2, false},   {-INT64_MAX / 2, false},
    };
    struct fixture *fx = *state;
    char base[TMPDIR_MAX], path[TMPDIR_MAX + 8];

    tmpdir_make(base);
    (void)snprintf(path, sizeof(path), "%s/clock", base);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_steady saved, next;
        int64_t start_us;

        hfd_steady_init(&saved, &fx->clock.clock);
        atomic_store(&saved.offset_us, atomic_load(&saved.offset_us) + cases[i].off_us);
        assert_int_equal(hfd_steady_save(&saved, path, NULL), HFD_OK);
        hfd_steady_init(&next, &fx->clock.clock);
        assert_int_equal(hfd_steady_resume(&next, path, NULL), HFD_OK);
        start_us = hfd_clock_wall_us(&next.clock);
        assert_true(start_us == fx->clock.wall_us + (cases[i].taken ? cases[i].off_us : 0));
    }
    for (int i = 0; i < 2; i++) { /* the largest numbers that the file can hold */
        struct hfd_steady saved, next;

        hfd_steady_init(&saved, &fx->clock.clock);
        atomic_store(&saved.offset_us, i == 0 ? INT64_MAX : -INT64_MAX);
        assert_int_equal(hfd_steady_save(&saved, path, NULL), HFD_OK);
        hfd_steady_init(&next, &fx->clock.clock);
        assert_int_equal(hfd_steady_resume(&next, path, NULL), HFD_OK);
        assert_true(hfd_clock_wall_us(&next.clock) == fx->clock.wall_us);
    }
    tmpdir_remove(base);
}

/* When the file cannot be written, this is an error, and the clock works. */
static void steady_without_a_file(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;

    assert_int_equal(hfd_steady_resume(&fx->steady, "/nonexistent-folder/clock", &err), HFD_IO);
    assert_non_null(strstr(err.msg, "/nonexistent-folder/clock"));
    assert_true(now(fx) == fx->clock.wall_us);
}

/* ---- the effect of jumps on resources ---- */

struct jumps {
    struct world w;
    struct hfd_steady steady;
};

static int open_jumps(void **state)
{
    struct jumps *j = calloc(1, sizeof(*j));

    assert_non_null(j);
    world_open(&j->w);
    hfd_steady_init(&j->steady, &j->w.clock.clock);
    j->w.now = &j->steady.clock;
    *state = j;
    return 0;
}

static int close_jumps(void **state)
{
    struct jumps *j = *state;

    world_close(&j->w);
    free(j);
    return 0;
}

static void wait_s(struct jumps *j, int64_t seconds)
{
    test_clock_advance(&j->w.clock, seconds * S);
}

static struct hfd_answer_doc call(struct jumps *j, const char *put)
{
    struct hfd_answer_doc doc;

    if (put != NULL)
        assert_int_equal(world_put(&j->w, ID, put, NULL, &doc), HFD_OK);
    else
        assert_int_equal(world_get(&j->w, ID, NULL, &doc), HFD_OK);
    return doc;
}

/* A hint in the time of the caller's clock, as it is sent. */
static struct hfd_hint shown(struct jumps *j, const struct hfd_answer_doc *doc)
{
    struct hfd_hint hint = doc->hint;

    hfd_hint_shift(&hint, hfd_clock_skew_us(&j->steady.clock));
    return hint;
}

/*
 * Whole seconds alone are shifted, so that a shown deadline stands still; the wait and the status
 * stay.
 */
static void a_hint_in_anothers_words(void **state)
{
    static const struct {
        int64_t skew_us, by_us;
    } rows[] = {{0, 0},
                {999999, 0},
                {-999999, 0},
                {S, S},
                {-S, -S},
                {HOUR_US + 5, HOUR_US},
                {-HOUR_US - 5, -HOUR_US}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_hint h = {.status = "creating",
                             .estimated_us = 20 * HOUR_US,
                             .deadline_us = 30 * HOUR_US,
                             .now_us = 10 * HOUR_US,
                             .retry_after_s = 7};

        hfd_hint_shift(&h, rows[i].skew_us);
        assert_true(h.estimated_us == 20 * HOUR_US + rows[i].by_us &&
                    h.deadline_us == 30 * HOUR_US + rows[i].by_us);
        assert_true(h.now_us == 10 * HOUR_US + rows[i].by_us && h.retry_after_s == 7);
    }
}

/*
 * A jump by an hour, forward or back, in the middle of an operation whose deadline is one hour. The
 * operation goes on, and ends when its time is over.
 */
static void a_jump_fails_no_operation(void **state)
{
    static const int64_t jumps_us[] = {HOUR_US, -HOUR_US};

    for (size_t i = 0; i < 2; i++) {
        struct jumps *j = *state;
        struct hfd_answer_doc doc;
        int64_t left_s = 0;

        (void)call(j, body);
        wait_s(j, 600);
        assert_int_equal(call(j, NULL).answer, HFD_ANSWER_HINT);
        j->w.clock.wall_us += jumps_us[i];
        for (; left_s < 4000; left_s += 10) {
            struct hfd_hint hint;

            doc = call(j, NULL);
            if (doc.answer != HFD_ANSWER_HINT)
                break;
            hint = shown(j, &doc);
            assert_true(hint.estimated_us >= hint.now_us && hint.deadline_us >= hint.now_us);
            assert_in_range(hint.now_us + HFD_US_PER_S - j->w.clock.wall_us, 0,
                            2 * HFD_US_PER_S); /* the caller's own time */
            assert_true(hint.estimated_us + HFD_US_PER_S >= j->w.clock.wall_us);
            assert_in_range(doc.hint.retry_after_s, 1, HFD_RETRY_MAX_S);
            wait_s(j, 10);
        }
        assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
        assert_true(hfd_slice_is(doc.error, "RES-105"));
        assert_in_range(left_s, 3000 - 3000 / HFD_STEADY_FADE - 10,
                        3000 + 3000 / HFD_STEADY_FADE + 10);
        close_jumps(state);
        open_jumps(state);
    }
}

/*
 * Jumps again and again: terminal reports of the present attempt count, those of the last do not,
 * and the resource becomes ready.
 */
static void jumps_lose_no_report(void **state)
{
    struct jumps *j = *state;
    struct world *w = &j->w;
    hfd_slice c;

    (void)call(j, body);
    c = scene_cluster(w, "c-one");
    w->clock.wall_us -= HOUR_US;
    wait_s(j, 1);
    (void)scene_report(w, c,
                       &(struct scene_report){.adapter = "dns",
                                              .available = HFD_STATUS_FALSE,
                                              .reason = "InvalidConfiguration"});
    assert_int_equal(call(j, NULL).answer, HFD_ANSWER_FAILED);
    w->clock.wall_us += 2 * HOUR_US;
    wait_s(j, 1);
    assert_int_equal(call(j, body).answer, HFD_ANSWER_HINT);
    w->clock.wall_us -= HOUR_US;
    wait_s(j, 1);
    world_succeed(w, c);
    assert_int_equal(call(j, NULL).answer, HFD_ANSWER_OUTPUT);
}

/*
 * Recorded times never run backwards: an update is not before the creation, and history is in
 * order.
 */
static void recorded_times_never_run_backwards(void **state)
{
    struct jumps *j = *state;
    struct world *w = &j->w;
    struct hfd_history_list history;
    struct hfd_resource_row row;
    const struct hfd_fleet_row *c;
    int64_t created_us;

    (void)call(j, body);
    created_us = world_find(w, HFD_KIND_CLUSTER, "c-one")->created_us;
    for (int i = 0; i < 6; i++) {
        w->clock.wall_us += i % 3 == 0 ? HOUR_US : -HOUR_US;
        wait_s(j, 1);
        world_succeed_all(w, ID);
        w->clock.wall_us -= HOUR_US;
        wait_s(j, 1);
        (void)call(j, i % 2 == 0 ? body_b : body);
    }
    c = world_find(w, HFD_KIND_CLUSTER, "c-one");
    row = world_row(w, ID);
    history = scene_history_rows(w, ID);
    assert_true(c->created_us == created_us && c->updated_us > created_us);
    assert_true(row.updated_us > row.created_us);
    assert_true(history.count > 6);
    for (size_t i = 1; i < history.count; i++)
        assert_true(history.rows[i].at_us >= history.rows[i - 1].at_us);
    assert_true(history.rows[0].at_us == row.created_us);
}

/*
 * The server is restarted with the clock an hour off: the operation goes on, and its deadline is
 * unchanged.
 */
static void a_restart_across_a_jump(void **state)
{
    struct jumps *j = *state;
    struct hfd_answer_doc doc;
    char path[TMPDIR_MAX + 8];
    int64_t deadline_us;

    (void)snprintf(path, sizeof(path), "%s/clock", j->w.base);
    assert_int_equal(hfd_steady_resume(&j->steady, path, NULL), HFD_OK);
    deadline_us = call(j, body).hint.deadline_us;
    wait_s(j, 60);
    j->w.clock.wall_us += HOUR_US;
    hfd_steady_init(&j->steady, &j->w.clock.clock);
    assert_int_equal(hfd_steady_resume(&j->steady, path, NULL), HFD_OK);
    world_restart(&j->w);
    wait_s(j, 60);
    doc = call(j, NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_int_equal(doc.hint.deadline_us, deadline_us);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define JUMP(f) cmocka_unit_test_setup_teardown(f, open_jumps, close_jumps)
    const struct CMUnitTest tests[] = {
        TEST(steady_is_the_wall_clock),
        TEST(steady_fades_a_jump),
        TEST(steady_never_goes_back),
        TEST(steady_makes_up_little_after_a_pause),
        TEST(steady_resumes_across_a_jump),
        TEST(steady_notices_damage),
        TEST(steady_stays_near_the_wall_clock),
        TEST(steady_without_a_file),
        cmocka_unit_test(a_hint_in_anothers_words),
        JUMP(a_jump_fails_no_operation),
        JUMP(jumps_lose_no_report),
        JUMP(recorded_times_never_run_backwards),
        JUMP(a_restart_across_a_jump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
