#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/arena.h"
#include "tests/lib/seams.h"

/* Pieces of random size are zeroed, aligned, and never share a byte. */
static void arena_pieces_are_separate(void **state)
{
    struct {
        unsigned char *p;
        size_t n;
    } pieces[400];
    struct hfd_arena a;
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 1);
    hfd_arena_init(&a, SIZE_MAX);
    for (size_t i = 0; i < 400; i++) {
        pieces[i].n = (size_t)test_rng_below(&rng, i % 20 == 0 ? 100000 : 200);
        pieces[i].p = hfd_arena_alloc(&a, pieces[i].n);
        assert_non_null(pieces[i].p);
        assert_int_equal((uintptr_t)pieces[i].p % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < pieces[i].n; k++)
            assert_int_equal(pieces[i].p[k], 0);
        if (pieces[i].n > 0)
            memset(pieces[i].p, (int)(i & 0xff), pieces[i].n);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t k = 0; k < pieces[i].n; k++)
            assert_int_equal(pieces[i].p[k], i & 0xff);
    hfd_arena_fini(&a);
}

/*
 * A rewind takes back exactly what came after the mark, over several chunks, too. Memory that is
 * handed out again is zeroed.
 */
static void arena_rewinds_to_a_mark(void **state)
{
    struct hfd_arena a;
    struct hfd_arena_mark mark;
    unsigned char *kept, *again, *place = NULL;

    (void)state;
    hfd_arena_init(&a, (size_t)1 << 20);
    mark = hfd_arena_mark(&a);
    assert_non_null(hfd_arena_alloc(&a, 100000));
    hfd_arena_rewind(&a, mark);
    assert_null(a.chunks);
    assert_int_equal(a.used_bytes, 0);
    kept = hfd_arena_alloc(&a, 100);
    memset(kept, 1, 100);
    mark = hfd_arena_mark(&a);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            unsigned char *p = hfd_arena_alloc(&a, 5000);

            assert_non_null(p);
            memset(p, 2, 5000);
        }
        hfd_arena_rewind(&a, mark);
        again = hfd_arena_alloc(&a, 500);
        place = place != NULL ? place : again;
        assert_ptr_equal(again, place);
        for (int i = 0; i < 500; i++)
            assert_int_equal(again[i], 0);
        memset(again, 3, 500);
        hfd_arena_rewind(&a, mark);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(kept[i], 1);
    hfd_arena_fini(&a);
}

/* The ceiling holds to the byte (in units of alignment), and a refusal leaves the arena usable. */
static void arena_has_a_ceiling(void **state)
{
    struct hfd_arena a;

    (void)state;
    hfd_arena_init(&a, 4096);
    assert_null(hfd_arena_alloc(&a, 4097));
    assert_non_null(hfd_arena_alloc(&a, 4000));
    assert_null(hfd_arena_alloc(&a, 200));
    assert_non_null(hfd_arena_alloc(&a, 96));
    assert_null(hfd_arena_alloc(&a, 0));
    assert_int_equal(a.used_bytes, 4096);
    hfd_arena_fini(&a);
    assert_non_null(hfd_arena_alloc(&a, 4096));
    hfd_arena_fini(&a);
    hfd_arena_init(&a, 0);
    assert_null(hfd_arena_alloc(&a, 1));
    hfd_arena_fini(&a);
}

/* Sizes that overflow are refused, not wrapped. */
static void arena_refuses_overflow(void **state)
{
    struct hfd_arena a;

    (void)state;
    hfd_arena_init(&a, SIZE_MAX);
    assert_null(hfd_arena_alloc(&a, SIZE_MAX));
    assert_null(hfd_arena_alloc(&a, SIZE_MAX - 4));
    assert_null(hfd_arena_array(&a, SIZE_MAX / 2, 3));
    assert_null(hfd_arena_dup(&a, (hfd_slice){"", SIZE_MAX}).p);
    assert_non_null(hfd_arena_array(&a, 3, 5));
    assert_non_null(hfd_arena_array(&a, 0, 5));
    hfd_arena_fini(&a);
}

/* Copies are NUL-terminated, keep NUL bytes, and an empty one is not a failure. */
static void arena_copies_text(void **state)
{
    struct hfd_arena a;
    hfd_slice s;

    (void)state;
    hfd_arena_init(&a, 256);
    s = hfd_arena_dup(&a, HFD_SLICE("a\0b"));
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    s = hfd_arena_dup(&a, HFD_SLICE_NONE);
    assert_non_null(s.p);
    assert_int_equal(s.len, 0);
    s = hfd_arena_printf(&a, "%s-%d", "x", 42);
    assert_int_equal(s.len, 4);
    assert_string_equal(s.p, "x-42");
    s = hfd_arena_printf(&a, "%300d", 1);
    assert_null(s.p);
    assert_int_equal(s.len, 0);
    assert_null(hfd_arena_dup(&a, (hfd_slice){"0123456789", 10000}).p);
    hfd_arena_fini(&a);
}

/* The ceiling says that it refused; memory that is out does not look like it. */
static void arena_tells_the_ceiling(void **state)
{
    struct hfd_arena a;

    (void)state;
    hfd_arena_init(&a, SIZE_MAX);
    assert_null(hfd_arena_alloc(&a, SIZE_MAX / 4)); /* more than malloc has */
    assert_false(a.full);
    hfd_arena_fini(&a);
    hfd_arena_init(&a, 1000);
    assert_non_null(hfd_arena_alloc(&a, 900));
    assert_false(a.full);
    assert_null(hfd_arena_alloc(&a, 200));
    assert_true(a.full);
    hfd_arena_fini(&a);
    assert_false(a.full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_tells_the_ceiling), cmocka_unit_test(arena_pieces_are_separate),
        cmocka_unit_test(arena_rewinds_to_a_mark), cmocka_unit_test(arena_has_a_ceiling),
        cmocka_unit_test(arena_refuses_overflow),  cmocka_unit_test(arena_copies_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
