/* driver/backend/remote/work.c: names from many threads to one, bounded, each once. */
#include "driver/backend/remote/work.h"

#include "driver/base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define AGAIN_US (2 * HFD_US_PER_S)

static struct hfd_asked *make(size_t capacity)
{
    struct hfd_asked *a;
    struct hfd_err err;

    assert_int_equal(hfd_asked_new(capacity, AGAIN_US, &a, &err), HFD_OK);
    return a;
}

/*
 * Names come out once, in the order in which they were first asked for; the first asks for a wake.
 */
static void names_come_out_once_and_in_order(void **state)
{
    struct hfd_asked *a = make(64);
    struct hfd_asked_id out[8];

    (void)state;
    assert_true(hfd_asked_push(a, HFD_SLICE("one"), 0));
    assert_false(hfd_asked_push(a, HFD_SLICE("two"), 0));
    assert_false(hfd_asked_push(a, HFD_SLICE("one"), 1));
    assert_false(hfd_asked_push(a, HFD_SLICE("three"), 2));
    assert_int_equal(hfd_asked_take(a, out, 2, 3), 2);
    assert_memory_equal(out[0].text, "one", out[0].len);
    assert_memory_equal(out[1].text, "two", out[1].len);
    assert_int_equal(hfd_asked_take(a, out, 8, 3), 1);
    assert_memory_equal(out[0].text, "three", out[0].len);
    assert_int_equal(hfd_asked_take(a, out, 8, 3), 0);
    hfd_asked_free(a);
}

/* A name that was taken a moment ago is not taken in again, and is a while later. */
static void what_was_just_taken_is_not_taken_in_again(void **state)
{
    struct hfd_asked *a = make(64);
    struct hfd_asked_id out[8];

    (void)state;
    assert_true(hfd_asked_push(a, HFD_SLICE("x"), 100));
    assert_int_equal(hfd_asked_take(a, out, 8, 100), 1);
    assert_false(hfd_asked_push(a, HFD_SLICE("x"), 100 + AGAIN_US - 1));
    assert_int_equal(hfd_asked_take(a, out, 8, 100 + AGAIN_US - 1), 0);
    assert_true(hfd_asked_push(a, HFD_SLICE("x"), 100 + AGAIN_US));
    assert_int_equal(hfd_asked_take(a, out, 8, 100 + AGAIN_US), 1);
    hfd_asked_free(a);
}

/* More names than there is room for: as many as fit wait, none twice, and room comes back. */
static void too_many_names_are_forgotten(void **state)
{
    enum {
        CAPACITY = 32
    };
    struct hfd_asked *a = make(CAPACITY);
    struct hfd_asked_id out[CAPACITY + 1];
    size_t first = 0, again;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            char name[32];
            int n = snprintf(name, sizeof(name), "name-%d-%d", round, i);

            (void)hfd_asked_push(a, (hfd_slice){name, (size_t)n}, round);
        }
        again = hfd_asked_take(a, out, CAPACITY + 1, round);
        assert_int_equal(again, CAPACITY);
        for (size_t i = 0; i < again; i++)
            for (size_t k = 0; k < i; k++)
                assert_false(out[i].len == out[k].len &&
                             memcmp(out[i].text, out[k].text, out[i].len) == 0);
        first += again;
    }
    assert_int_equal(first, 3 * CAPACITY);
    hfd_asked_free(a);
}

/* Names that cannot be GUResIDs are left out. */
static void odd_names_are_left_out(void **state)
{
    static char text[65];
    struct hfd_asked *a = make(4);
    struct hfd_asked_id out[4];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_false(hfd_asked_push(a, HFD_SLICE_NONE, 0));
    assert_false(hfd_asked_push(a, (hfd_slice){text, 64}, 0));
    assert_true(hfd_asked_push(a, (hfd_slice){text, 63}, 0));
    assert_int_equal(hfd_asked_take(a, out, 4, 0), 1);
    assert_int_equal(out[0].len, 63);
    hfd_asked_free(a);
}

struct crowd {
    struct hfd_asked *a;
    atomic_int done;
};

static void *push_many(void *arg)
{
    struct crowd *c = arg;

    for (int i = 0; i < 20000; i++) {
        char name[32];
        int n = snprintf(name, sizeof(name), "n%d", i % 100);

        (void)hfd_asked_push(c->a, (hfd_slice){name, (size_t)n}, 5);
    }
    atomic_fetch_add(&c->done, 1);
    return NULL;
}

/* Many threads that ask for the same hundred over and over: each comes out exactly once. */
static void a_crowd_is_one(void **state)
{
    struct crowd c = {.a = make(4096)};
    struct hfd_asked_id out[64];
    pthread_t threads[4];
    size_t count = 0;
    int seen[100] = {0};
    bool last;

    (void)state;
    atomic_init(&c.done, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_many, &c), 0);
    do {
        size_t n;

        last = atomic_load(&c.done) == 4;
        n = hfd_asked_take(c.a, out, 64, 5);
        for (size_t i = 0; i < n; i++) {
            int64_t number;

            assert_int_equal(
                hfd_parse_i64((hfd_slice){out[i].text + 1, out[i].len - 1}, 0, 99, &number, NULL),
                HFD_OK);
            seen[number]++;
        }
        count += n;
        last = last && n == 0;
    } while (!last);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(count, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    hfd_asked_free(c.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_out_once_and_in_order),
        cmocka_unit_test(what_was_just_taken_is_not_taken_in_again),
        cmocka_unit_test(too_many_names_are_forgotten),
        cmocka_unit_test(odd_names_are_left_out),
        cmocka_unit_test(a_crowd_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
