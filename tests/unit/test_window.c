/*
 * The window of an outbox: its rules as scenes, and a simulation of changes, refusals and kills.
 * Each change is followed by its event, in order per resource, and no cursor passes an unsent one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/events/window.h"
#include "store/rows_history.h"
#include "tests/lib/seams.h"

#define S(text) HFD_SLICE(text)

static struct hfd_window w;

static void add_at(const char *subject, int64_t seq, int64_t at_us)
{
    const struct hfd_outgoing event = {
        .id = S("id"), .subject = hfd_slice_of(subject), .body = hfd_slice_of(subject)};

    assert_int_equal(hfd_window_add(&w, &event, seq, at_us, NULL), HFD_OK);
}

static void add(const char *subject, int64_t seq)
{
    add_at(subject, seq, TEST_TIME_US);
}

/* Sends what is due; events of the subjects in `refused` fail. @return the subjects, in order */
static const char *send_all(int64_t now_us, const char *refused, const struct hfd_rng *rng,
                            struct hfd_window_result *result)
{
    static char seen[HFD_WINDOW_MAX + 1];
    size_t chosen[HFD_WINDOW_MAX];
    const size_t count = hfd_window_next(&w, now_us, chosen, HFD_WINDOW_MAX);
    struct hfd_window_result unused;

    for (size_t i = 0; i < count; i++) {
        struct hfd_outgoing *event = &w.items[chosen[i]].event;

        assert_true(hfd_slice_eq(event->subject, event->body));
        seen[i] = event->subject.p[0];
        event->sent = strchr(refused, seen[i]) == NULL;
    }
    seen[count] = '\0';
    unused = hfd_window_settle(&w, chosen, count, now_us, rng);
    if (result != NULL)
        *result = unused;
    return seen;
}

static void begin(bool newest_only, int64_t cursor)
{
    hfd_window_begin(&w, newest_only, cursor, 0, TEST_TIME_US);
}

static int end(void **state)
{
    (void)state;
    hfd_window_end(&w);
    return 0;
}

/* ---- scenes ---- */

static void a_refused_event_holds_up_its_resource_alone(void **state)
{
    const int64_t now_us = TEST_TIME_US, later_us = now_us + 2 * HFD_US_PER_S;
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    begin(false, 5);
    assert_int_equal(hfd_window_cursor(&w), 5);
    assert_int_equal(hfd_window_due_us(&w), INT64_MAX);
    assert_int_equal(hfd_window_oldest_us(&w), 0);
    add("a", 10);
    add("b", 20);
    add("a", 30);
    assert_int_equal(hfd_window_cursor(&w), 9);
    assert_string_equal(send_all(now_us, "a", &rng.rng, NULL), "ab");
    assert_int_equal(hfd_window_cursor(&w), 9); /* 20 is sent, and 10 is not */
    assert_int_equal(hfd_window_failing_us(&w), now_us);
    assert_int_equal(hfd_window_oldest_us(&w), TEST_TIME_US);
    add("b", 40);
    assert_string_equal(send_all(now_us, "", &rng.rng, NULL), "b");
    assert_string_equal(send_all(now_us, "", &rng.rng, NULL), "");
    assert_true(hfd_window_due_us(&w) > now_us && hfd_window_due_us(&w) <= later_us);
    assert_string_equal(send_all(later_us, "", &rng.rng, NULL), "a");
    assert_int_equal(hfd_window_cursor(&w), 29);
    assert_int_equal(hfd_window_failing_us(&w), 0);
    assert_string_equal(send_all(later_us, "", &rng.rng, NULL), "a");
    assert_int_equal(hfd_window_cursor(&w), 40);
}

static void a_newer_event_replaces_the_pending_one(void **state)
{
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    begin(true, 0);
    add("a", 10);
    add("b", 20);
    assert_string_equal(send_all(TEST_TIME_US, "a", &rng.rng, NULL), "ab");
    add("a", 30);
    assert_int_equal(w.count, 1);
    assert_int_equal(hfd_window_cursor(&w), 29);
    assert_int_equal(hfd_window_failing_us(&w), TEST_TIME_US);
    assert_string_equal(send_all(TEST_TIME_US, "", &rng.rng, NULL),
                        ""); /* it is refused as before */
    assert_string_equal(send_all(TEST_TIME_US + HFD_US_PER_S, "", &rng.rng, NULL), "a");
    assert_int_equal(hfd_window_cursor(&w), 30);
}

/* A pause is between half and all of 1 s, 2 s, 4 s, ... 300 s. */
static void pauses_double(void **state)
{
    int64_t now_us = TEST_TIME_US, whole_us = HFD_US_PER_S;
    struct test_rng rng;
    bool differ = false;

    (void)state;
    test_rng_init(&rng, 7);
    begin(false, 0);
    add("a", 1);
    for (int i = 0; i < 40; i++) {
        int64_t pause_us;

        assert_string_equal(send_all(now_us, "a", &rng.rng, NULL), "a");
        pause_us = hfd_window_due_us(&w) - now_us;
        assert_in_range(pause_us, whole_us / 2, whole_us);
        differ = differ || (pause_us != whole_us && pause_us != whole_us / 2);
        now_us += pause_us;
        whole_us = 2 * whole_us < 300 * HFD_US_PER_S ? 2 * whole_us : 300 * HFD_US_PER_S;
    }
    assert_int_equal(hfd_window_failing_us(&w), TEST_TIME_US);
    assert_true(differ);
}

/* An event does not wait for a time that was far ahead. */
static void a_clock_that_is_set_back(void **state)
{
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    begin(true, 0);
    add("a", 1);
    assert_string_equal(send_all(TEST_TIME_US, "a", &rng.rng, NULL), "a");
    assert_string_equal(send_all(TEST_TIME_US, "", &rng.rng, NULL), "");
    assert_string_equal(send_all(TEST_TIME_US - 3600 * HFD_US_PER_S, "", &rng.rng, NULL), "a");
}

/* After a failure of all, the first event that is taken ends the pauses of the others. */
static void a_target_that_is_back_gets_all(void **state)
{
    int64_t now_us = TEST_TIME_US;
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    begin(false, 0);
    add("a", 1);
    add("b", 2);
    for (int i = 0; i < 20; i++) {
        assert_string_equal(send_all(now_us, "ab", &rng.rng, NULL), "ab");
        now_us += 300 * HFD_US_PER_S;
    }
    assert_string_equal(send_all(now_us, "ab", &rng.rng, NULL), "ab");
    add("c", 3);
    assert_string_equal(send_all(now_us, "", &rng.rng, NULL), "c");
    assert_string_equal(send_all(now_us, "", &rng.rng, NULL), "ab");
}

/* The time since which a target refuses its oldest event goes on over a restart. */
static void a_failure_goes_on(void **state)
{
    const int64_t since_us = TEST_TIME_US - 600 * HFD_US_PER_S;
    struct hfd_window_result r;
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    hfd_window_begin(&w, false, 0, since_us, TEST_TIME_US);
    add("a", 1);
    assert_int_equal(hfd_window_failing_us(&w), 0);
    (void)send_all(TEST_TIME_US, "a", &rng.rng, NULL);
    assert_int_equal(hfd_window_failing_us(&w), since_us);
    (void)send_all(TEST_TIME_US + HFD_US_PER_S, "", &rng.rng, NULL);
    assert_int_equal(hfd_window_failing_us(&w), 0);
    add("b", 2);
    (void)send_all(TEST_TIME_US + HFD_US_PER_S, "b", &rng.rng, NULL);
    assert_int_equal(hfd_window_failing_us(&w), TEST_TIME_US + HFD_US_PER_S);
    hfd_window_end(&w);
    hfd_window_begin(&w, false, 0, since_us, since_us + HFD_OUTBOX_KEEP_US);
    add_at("a", 1, since_us - HFD_US_PER_S); /* it was tried for 72 hours */
    (void)send_all(since_us + HFD_OUTBOX_KEEP_US, "a", &rng.rng, &r);
    assert_int_equal(r.dropped, 1);
}

/* 72 hours from the event, or from the beginning when it is older. */
static void an_event_is_dropped_after_72_hours(void **state)
{
    static const struct {
        int64_t at_us, now_us;
        bool refused, dropped;
    } rows[] = {
        {0, HFD_OUTBOX_KEEP_US - 1, true, false},
        {0, HFD_OUTBOX_KEEP_US, true, true},
        {0, HFD_OUTBOX_KEEP_US, false, false},
        {-HFD_OUTBOX_KEEP_US, 0, true, false},
        {-HFD_OUTBOX_KEEP_US, HFD_OUTBOX_KEEP_US, true, true},
        {HFD_US_PER_S, HFD_OUTBOX_KEEP_US, true, false},
    };
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_window_result r;

        begin(false, 0);
        add_at("a", 1, TEST_TIME_US + rows[i].at_us);
        (void)send_all(TEST_TIME_US + rows[i].now_us, rows[i].refused ? "a" : "", &rng.rng, &r);
        assert_int_equal(r.dropped, rows[i].dropped);
        assert_int_equal(r.failed, rows[i].refused);
        assert_int_equal(r.sent, !rows[i].refused);
        assert_int_equal(hfd_window_cursor(&w), rows[i].refused && !rows[i].dropped ? 0 : 1);
        hfd_window_end(&w);
    }
}

static void a_window_is_full(void **state)
{
    size_t chosen[HFD_SEND_EVENTS_MAX];

    (void)state;
    begin(false, 0);
    for (int i = 1; i <= HFD_WINDOW_MAX; i++) {
        const char subject[] = {(char)(' ' + i), '\0'};

        assert_int_equal(hfd_window_room(&w), HFD_WINDOW_MAX + 1 - i);
        add(subject, i);
    }
    assert_int_equal(hfd_window_room(&w), 0);
    assert_int_equal(hfd_window_next(&w, TEST_TIME_US, chosen, HFD_SEND_EVENTS_MAX),
                     HFD_SEND_EVENTS_MAX);
}

/* ---- the simulation ---- */

#define SEEDS 10000
#define STEPS 150
#define CHANGES_MAX (STEPS + 1)
#define SUBJECTS 8

/* The outbox, and what its target has. */
struct world {
    bool newest_only;
    struct test_rng rng;
    int64_t now_us, seq, stored;
    struct {
        int64_t seq;
        int subject;
        bool sent;
    } changes[CHANGES_MAX];
    size_t count;
    int64_t last_sent[SUBJECTS]; /* the highest number, since the last kill */
    unsigned refused;            /* subjects, as bits */
    bool away;
};

static const char *const subjects[SUBJECTS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

/* True for a row of the database: with newest_only a resource has its newest change alone. */
static bool is_row(const struct world *x, size_t at)
{
    for (size_t i = at + 1; x->newest_only && i < x->count; i++)
        if (x->changes[i].subject == x->changes[at].subject)
            return false;
    return true;
}

static void change(struct world *x)
{
    x->seq += 1 + (int64_t)test_rng_below(&x->rng, 3);
    x->changes[x->count].seq = x->seq;
    x->changes[x->count].sent = false;
    x->changes[x->count++].subject = (int)test_rng_below(&x->rng, SUBJECTS);
}

static void fill(struct world *x)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->changes[i].seq > w.read && is_row(x, i) && hfd_window_room(&w) > 0)
            add_at(subjects[x->changes[i].subject], x->changes[i].seq, x->now_us);
}

/* The receiver takes an event: all earlier rows of its resource were taken before. */
static void receive(struct world *x, const struct hfd_pending *item)
{
    const int subject = item->event.subject.p[0] - 'a';

    assert_true(item->seq > x->last_sent[subject]);
    x->last_sent[subject] = item->seq;
    for (size_t i = 0; i < x->count && x->changes[i].seq <= item->seq; i++) {
        if (x->changes[i].subject != subject)
            continue;
        assert_true(x->newest_only || x->changes[i].seq == item->seq || x->changes[i].sent);
        x->changes[i].sent = true;
    }
}

static void send_some(struct world *x)
{
    size_t chosen[HFD_SEND_EVENTS_MAX];
    const size_t count = hfd_window_next(&w, x->now_us, chosen, HFD_SEND_EVENTS_MAX);
    unsigned seen = 0;

    for (size_t i = 0; i < count; i++) {
        struct hfd_pending *item = &w.items[chosen[i]];
        const unsigned bit = 1u << (item->event.subject.p[0] - 'a');

        assert_int_equal(seen & bit, 0); /* one of a resource at a time */
        seen |= bit;
        item->event.sent = !x->away && (x->refused & bit) == 0 && test_rng_below(&x->rng, 8) > 0;
        if (item->event.sent)
            receive(x, item);
    }
    assert_int_equal(hfd_window_settle(&w, chosen, count, x->now_us, &x->rng.rng).dropped, 0);
}

static void check_cursor(const struct world *x)
{
    const int64_t cursor = hfd_window_cursor(&w);

    assert_true(cursor >= x->stored);
    for (size_t i = 0; i < x->count && x->changes[i].seq <= cursor; i++)
        assert_true(x->changes[i].sent || !is_row(x, i));
}

static void kill_it(struct world *x)
{
    hfd_window_end(&w);
    hfd_window_begin(&w, x->newest_only, x->stored, 0, x->now_us);
    memset(x->last_sent, 0, sizeof(x->last_sent));
}

static void step(struct world *x)
{
    switch (test_rng_below(&x->rng, 12)) {
    case 0:
        kill_it(x);
        break;
    case 1:
        x->refused = (unsigned)test_rng_below(&x->rng, 1u << SUBJECTS);
        break;
    case 2:
        x->away = !x->away;
        break;
    case 3:
        x->stored = hfd_window_cursor(&w);
        break;
    case 4:
        x->now_us += (int64_t)test_rng_below(&x->rng, 400) * HFD_US_PER_S;
        break;
    case 5:
    case 6:
        fill(x);
        break;
    case 7:
    case 8:
    case 9:
        send_some(x);
        break;
    default:
        change(x);
    }
    check_cursor(x);
}

static void each_change_is_followed_by_its_event(void **state)
{
    static struct world x;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        memset(&x, 0, sizeof(x));
        x.newest_only = seed % 2 == 0;
        x.now_us = TEST_TIME_US;
        test_rng_init(&x.rng, seed);
        begin(x.newest_only, 0);
        for (int i = 0; i < STEPS; i++)
            step(&x);
        x.refused = 0;
        x.away = false;
        for (int i = 0; w.count > 0 || w.read < x.seq; i++) {
            assert_true(i < 10000);
            fill(&x);
            send_some(&x);
            x.now_us += 100 * HFD_US_PER_S;
        }
        assert_int_equal(hfd_window_cursor(&w), x.count > 0 ? x.seq : w.read);
        for (size_t i = 0; i < x.count; i++)
            assert_true(x.changes[i].sent);
        hfd_window_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_refused_event_holds_up_its_resource_alone, end),
        cmocka_unit_test_teardown(a_newer_event_replaces_the_pending_one, end),
        cmocka_unit_test_teardown(pauses_double, end),
        cmocka_unit_test_teardown(a_clock_that_is_set_back, end),
        cmocka_unit_test_teardown(a_target_that_is_back_gets_all, end),
        cmocka_unit_test_teardown(a_failure_goes_on, end),
        cmocka_unit_test_teardown(an_event_is_dropped_after_72_hours, end),
        cmocka_unit_test_teardown(a_window_is_full, end),
        cmocka_unit_test_teardown(each_change_is_followed_by_its_event, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
