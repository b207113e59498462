/*
 * driver/core/ring_check.c: which key ring a database takes, with one server and with replicas; and
 * the keys of replicas.
 */
#include "driver/base/base.h"
#include "driver/core/ring_check.h"
#include "store/postgres/facts.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    char dir[TMPDIR_MAX];
    struct hfd_store *store;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    struct hfd_store_config config = {.stepped = true};

    assert_non_null(fx);
    tmpdir_make(fx->dir);
    config.place = test_place(fx->dir);
    assert_int_equal(hfd_store_open(&config, &fx->store, NULL), HFD_OK);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_store_close(&fx->store);
    tmpdir_remove(fx->dir);
    free(fx);
    return 0;
}

/* Compares the ring of one key, which is made of a byte. */
static hfd_rc check(struct fixture *fx, unsigned char fill, bool shared, struct hfd_err *err)
{
    struct hfd_ring_call call = {.path = "ring", .shared = shared};
    struct hfd_keyring *ring;
    hfd_rc rc;

    assert_int_equal(hfd_keyring_fixed(fill, &ring, NULL), HFD_OK);
    call.ring = ring;
    rc = hfd_store_update_wait(fx->store, hfd_ring_check, &call, err);
    hfd_keyring_free(ring);
    return rc;
}

/* A ring without a key in common is another's. One server forgets keys that nothing needs. */
static void another_ring_is_refused_beside_replicas(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err = {0};

    assert_int_equal(check(fx, 1, true, &err), HFD_OK);
    assert_int_equal(check(fx, 1, true, &err), HFD_OK);
    assert_int_equal(check(fx, 2, true, &err), HFD_CONFLICT);
    assert_non_null(strstr(err.msg, "key ring ring is not that of the database"));
    assert_non_null(strstr(err.msg, "00000001"));
    assert_int_equal(check(fx, 2, false, &err), HFD_OK);
    assert_int_equal(check(fx, 1, true, &err), HFD_CONFLICT);
    assert_int_equal(check(fx, 2, true, &err), HFD_OK);
}

static void a_replica_has_whole_keys(void **state)
{
    static const struct {
        const char *ids, *id;
        bool has;
    } cases[] = {
        {"", "00000001", false},
        {"00000001", "00000001", true},
        {"00000002,00000001", "00000001", true},
        {"00000001,00000002", "00000001", true},
        {"000000010,00000002", "00000001", false},
        {",,00000001,", "00000001", true},
        {"0000000", "00000001", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_pg_replica replica = {.key_ids = hfd_slice_of(cases[i].ids)};

        if (hfd_pg_replica_has_key(&replica, hfd_slice_of(cases[i].id)) != cases[i].has)
            fail_msg("%s in \"%s\"", cases[i].id, cases[i].ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_ring_is_refused_beside_replicas, setup, teardown),
        cmocka_unit_test(a_replica_has_whole_keys),
    };

    if (hfd_base_init(NULL) != HFD_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
