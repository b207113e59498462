#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/queue.h"

struct msg {
    struct hfd_qnode node;
    int sender;
    int number;
};

/* Messages come out in the order they went in, as many as requested, and the list ends. */
static void queue_keeps_order(void **state)
{
    struct hfd_queue *q;
    struct hfd_qnode *n;
    struct msg m[5] = {{.number = 0}};
    size_t count;
    int next = 0;

    (void)state;
    assert_int_equal(hfd_queue_new(5, &q, NULL), HFD_OK);
    for (int i = 0; i < 5; i++) {
        m[i].number = i;
        m[i].node.next = &m[0].node; /* must not matter */
        assert_int_equal(hfd_queue_push(q, &m[i].node), HFD_OK);
        assert_int_equal(hfd_queue_length(q), i + 1);
    }
    for (size_t max = 1; max <= 2; max++) {
        n = hfd_queue_take(q, max, &count);
        assert_int_equal(count, max);
        for (; n != NULL; n = n->next)
            assert_int_equal(((struct msg *)(void *)n)->number, next++);
    }
    n = hfd_queue_take(q, 100, &count);
    assert_int_equal(count, 2);
    for (; n != NULL; n = n->next)
        assert_int_equal(((struct msg *)(void *)n)->number, next++);
    assert_int_equal(next, 5);
    assert_int_equal(hfd_queue_length(q), 0);
    hfd_queue_free(q);
    hfd_queue_free(NULL);
}

/*
 * A full queue refuses and has room again after a take; a closed one refuses, gives what it has,
 * then NULL.
 */
static void queue_is_bounded_and_closes(void **state)
{
    struct hfd_queue *q;
    struct msg m[3] = {{.number = 0}};
    size_t count;

    (void)state;
    assert_int_equal(hfd_queue_new(2, &q, NULL), HFD_OK);
    assert_int_equal(hfd_queue_push(q, &m[0].node), HFD_OK);
    assert_int_equal(hfd_queue_push(q, &m[1].node), HFD_OK);
    assert_int_equal(hfd_queue_push(q, &m[2].node), HFD_BUSY);
    assert_ptr_equal(hfd_queue_take(q, 1, &count), &m[0].node);
    assert_int_equal(hfd_queue_push(q, &m[2].node), HFD_OK);
    hfd_queue_close(q);
    assert_int_equal(hfd_queue_push(q, &m[0].node), HFD_BUSY);
    assert_ptr_equal(hfd_queue_take(q, 10, &count), &m[1].node);
    assert_int_equal(count, 2);
    assert_null(hfd_queue_take(q, 10, &count));
    assert_int_equal(count, 0);
    hfd_queue_close(q);
    hfd_queue_free(q);
}

#define SENDERS 3
#define MESSAGES 2000

struct party {
    struct hfd_queue *q;
    struct msg *m;
};

static void *sender(void *arg)
{
    struct party *p = arg;

    for (int i = 0; i < MESSAGES; i++)
        while (hfd_queue_push(p->q, &p->m[i].node) != HFD_OK)
            sched_yield();
    return NULL;
}

/*
 * Several senders into a small queue: the receiver gets each message once, each sender's in order,
 * then the end.
 */
static void queue_many_senders(void **state)
{
    static struct msg m[SENDERS][MESSAGES];
    struct party parties[SENDERS];
    pthread_t threads[SENDERS];
    int next[SENDERS] = {0};
    struct hfd_queue *q;
    int got = 0;
    size_t count;

    (void)state;
    assert_int_equal(hfd_queue_new(16, &q, NULL), HFD_OK);
    for (int s = 0; s < SENDERS; s++) {
        for (int i = 0; i < MESSAGES; i++)
            m[s][i] = (struct msg){.sender = s, .number = i};
        parties[s] = (struct party){.q = q, .m = m[s]};
        assert_int_equal(pthread_create(&threads[s], NULL, sender, &parties[s]), 0);
    }
    while (got < SENDERS * MESSAGES) {
        const struct hfd_qnode *n = hfd_queue_take(q, 7, &count);

        assert_true(count >= 1 && count <= 7);
        for (; n != NULL; n = n->next, got++) {
            const struct msg *one = (const struct msg *)(const void *)n;

            assert_int_equal(one->number, next[one->sender]++);
        }
    }
    for (int s = 0; s < SENDERS; s++)
        pthread_join(threads[s], NULL);
    hfd_queue_close(q);
    assert_null(hfd_queue_take(q, 1, &count));
    hfd_queue_free(q);
}

struct waiter {
    struct hfd_queue *q;
    pthread_barrier_t barrier;
};

static void *receiver(void *arg)
{
    struct waiter *w = arg;
    size_t count;

    pthread_barrier_wait(&w->barrier);
    return hfd_queue_take(w->q, 1, &count);
}

/*
 * Closing wakes a receiver that waits for the first message: sooner or later in its wait, in many
 * rounds.
 */
static void queue_close_wakes(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct waiter w;
        pthread_t thread;
        void *got = &w;

        assert_int_equal(hfd_queue_new(1, &w.q, NULL), HFD_OK);
        assert_int_equal(pthread_barrier_init(&w.barrier, NULL, 2), 0);
        assert_int_equal(pthread_create(&thread, NULL, receiver, &w), 0);
        pthread_barrier_wait(&w.barrier);
        for (int i = 0; i < round; i++)
            sched_yield();
        hfd_queue_close(w.q);
        pthread_join(thread, &got);
        assert_null(got);
        pthread_barrier_destroy(&w.barrier);
        hfd_queue_free(w.q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_keeps_order),
        cmocka_unit_test(queue_is_bounded_and_closes),
        cmocka_unit_test(queue_many_senders),
        cmocka_unit_test(queue_close_wakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
