#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/rng.h"
#include "tests/lib/seams.h"

/* The system's source fills every byte, and never gives the same bytes twice. */
static void rng_system_fills(void **state)
{
    unsigned char a[64] = {0};
    unsigned char seen[64] = {0};
    unsigned char b[64];

    (void)state;
    for (int i = 0; i < 20; i++) { /* a byte stays 0 in all rounds once in 2^160 */
        hfd_rng_bytes(&hfd_rng_system, a, sizeof(a));
        for (size_t k = 0; k < sizeof(a); k++)
            seen[k] |= a[k];
    }
    for (size_t k = 0; k < sizeof(seen); k++)
        assert_int_not_equal(seen[k], 0);
    hfd_rng_bytes(&hfd_rng_system, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    hfd_rng_bytes(&hfd_rng_system, b, 0);
}

enum {
    IDS = 400,
    ID_BYTES = 11
};

static void *draw_ids(void *arg)
{
    unsigned char(*ids)[ID_BYTES] = arg;

    for (int i = 0; i < IDS; i++)
        hfd_rng_bytes(&hfd_rng_system, ids[i], ID_BYTES);
    return NULL;
}

/* Short draws differ, within a thread, where a stock ends, and between threads. */
static void rng_system_ids_differ(void **state)
{
    static unsigned char ids[2 * IDS][ID_BYTES];
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, draw_ids, ids), 0);
    (void)draw_ids(ids + IDS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 2 * IDS; i++)
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(ids[i], ids[k], ID_BYTES);
}

/* A seeded stream repeats itself; another seed gives another stream. */
static void rng_seam_repeats(void **state)
{
    struct test_rng r1;
    struct test_rng r2;
    struct test_rng r3;
    unsigned char a[32];
    unsigned char b[32];

    (void)state;
    test_rng_init(&r1, 7);
    test_rng_init(&r2, 7);
    test_rng_init(&r3, 8);
    hfd_rng_bytes(&r1.rng, a, sizeof(a));
    hfd_rng_bytes(&r2.rng, b, sizeof(b));
    assert_memory_equal(a, b, sizeof(a));
    hfd_rng_bytes(&r3.rng, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

static int setup(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_system_fills),
        cmocka_unit_test(rng_system_ids_differ),
        cmocka_unit_test(rng_seam_repeats),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
