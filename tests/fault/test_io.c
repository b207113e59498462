/*
 * Each call of the disk fails in turn, once and from then on, while the program starts, works and
 * stops. The rules are in domain.h.
 *
 *   test_io                        a share of the calls, another one with each --seed
 *   test_io --stride N             one call in N, on average; 1 = every one
 *   test_io --again NAME:WHICH:N   the N-th call of the fault NAME, once or ever: what a failure
 * prints
 */
#include "tests/fault/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/core/keyring.h"
#include "driver/base/log.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/sqlite/folder.h"
#include "tests/fault/wrap_files.h"
#include "tests/lib/faultvfs.h"

#define STRIDE 6
#define BATCHES 10
#define TOGETHER 3
#define CHECKPOINT_FRAMES 20

static void arm_disk(const struct fault *f, unsigned nth, bool ever)
{
    faultvfs_arm(f->kinds, nth, ever, f->code);
}

static void arm_ours(const struct fault *f, unsigned nth, bool ever)
{
    wrap_files_arm(nth, ever, f->code);
}

/* clang-format off */
static const struct fault faults[] = {
    {"read",            arm_disk, faultvfs_disarm, FAULTVFS_READS,     SQLITE_IOERR_READ,        20, true},
    {"read-damaged",    arm_disk, faultvfs_disarm, FAULTVFS_READS,     SQLITE_CORRUPT,           20, true},
    {"write",           arm_disk, faultvfs_disarm, FAULTVFS_WRITES,    SQLITE_IOERR_WRITE,      150, true},
    {"full",            arm_disk, faultvfs_disarm, FAULTVFS_WRITES,    SQLITE_FULL,             150, true},
    {"sync",            arm_disk, faultvfs_disarm, FAULTVFS_SYNCS,     SQLITE_IOERR_FSYNC,       15, true},
    {"truncate",        arm_disk, faultvfs_disarm, FAULTVFS_TRUNCATES, SQLITE_IOERR_TRUNCATE,     1, true},
    {"delete",          arm_disk, faultvfs_disarm, FAULTVFS_DELETES,   SQLITE_IOERR_DELETE,       1, true},
    {"open",            arm_disk, faultvfs_disarm, FAULTVFS_OPENS,     SQLITE_CANTOPEN,           4, true},
    {"open-read-only",  arm_disk, faultvfs_disarm, FAULTVFS_OPENS,     SQLITE_READONLY,           4, true},
    {"size",            arm_disk, faultvfs_disarm, FAULTVFS_SIZES,     SQLITE_IOERR_FSTAT,       10, true},
    {"access",          arm_disk, faultvfs_disarm, FAULTVFS_ACCESSES,  SQLITE_IOERR_ACCESS,       3, true},
    {"lock",            arm_disk, faultvfs_disarm, FAULTVFS_LOCKS,     SQLITE_IOERR_LOCK,        10, true},
    {"lock-busy",       arm_disk, faultvfs_disarm, FAULTVFS_LOCKS,     SQLITE_BUSY,              10, true},
    {"index-memory",    arm_disk, faultvfs_disarm, FAULTVFS_MAPS,      SQLITE_IOERR_SHMMAP,       1, true},
    {"index-lock",      arm_disk, faultvfs_disarm, FAULTVFS_SHM_LOCKS, SQLITE_IOERR_SHMLOCK,     50, true},
    {"index-busy",      arm_disk, faultvfs_disarm, FAULTVFS_SHM_LOCKS, SQLITE_BUSY,              50, false},
    {"our-calls",       arm_ours, wrap_files_disarm, 0,                  EIO,                       8, true},
    {"our-calls-full",  arm_ours, wrap_files_disarm, 0,                  ENOSPC,                    8, true},
};
/* clang-format on */

static struct fault_options options;

/* Every call of every kind fails in turn. */
static void failing_disk_tells_no_lie(void **state)
{
    (void)state;
    fault_domain_begin(BATCHES, TOGETHER);
    hfd_db_set_vfs(FAULTVFS_NAME);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        fault_domain_walk(&faults[i], &options);
    hfd_db_set_vfs(NULL);
    fault_domain_end();
}

#define MADE_AT 1   /* the first of our calls in a start makes the folder, */
#define SYNCED_AT 3 /* the next two bring its name to the disk */

/*
 * A new data folder whose name may not be on disk is not left behind: the next start would take it
 * for one that is.
 */
static void failing_disk_leaves_no_unsynced_folder(void **state)
{
    (void)state;
    for (unsigned nth = MADE_AT + 1; nth <= SYNCED_AT; nth++) {
        struct hfd_folder f;
        char base[TMPDIR_MAX];
        char dir[TMPDIR_MAX + 8];

        tmpdir_make(base);
        (void)snprintf(dir, sizeof(dir), "%s/data", base);
        wrap_files_arm(nth, false, EIO);
        assert_int_equal(hfd_folder_open(dir, &f, NULL), HFD_IO);
        assert_int_equal(wrap_files_disarm(), 1);
        assert_int_equal(access(dir, F_OK), -1);
        assert_int_equal(hfd_folder_open(dir, &f, NULL), HFD_OK);
        hfd_folder_close(&f);
        tmpdir_remove(base);
    }
}

/* ---- the key ring ---- */

static char keys[TMPDIR_MAX + 8];

/* A text sealed with a ring before something went wrong. */
static hfd_slice sealed_by(const struct hfd_keyring *ring, struct hfd_arena *mem)
{
    hfd_slice sealed = hfd_keyring_seal(&(struct hfd_seal){ring, HFD_KEY_COOKIE, HFD_SLICE("x")},
                                        &hfd_rng_system, HFD_SLICE("what was sealed"), mem);

    assert_non_null(sealed.p);
    return sealed;
}

static void assert_opens(hfd_slice sealed, struct hfd_arena *mem)
{
    struct hfd_keyring *ring;
    hfd_slice plain;

    assert_int_equal(hfd_keyring_load(keys, &ring, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_open(&(struct hfd_seal){ring, HFD_KEY_COOKIE, HFD_SLICE("x")},
                                      sealed, mem, &plain, NULL),
                     HFD_OK);
    hfd_keyring_free(ring);
}

/* @return how many calls failed; none is left when that is 0 */
static unsigned fail_create(unsigned nth, bool ever, int error)
{
    struct hfd_keyring *ring;
    unsigned fired;
    hfd_rc rc;

    wrap_files_arm(nth, ever, error);
    rc = hfd_keyring_create(keys, &hfd_rng_system, NULL);
    fired = wrap_files_disarm();
    assert_true(rc == HFD_OK || fired != 0);
    if (rc != HFD_OK) {
        rc = hfd_keyring_create(keys, &hfd_rng_system, NULL);
        assert_true(rc == HFD_OK ||
                    rc == HFD_CONFLICT); /* it was made, and not known to be on disk */
    }
    assert_int_equal(hfd_keyring_load(keys, &ring, NULL), HFD_OK);
    hfd_keyring_free(ring);
    return fired;
}

static unsigned fail_rotate(unsigned nth, bool ever, int error)
{
    struct hfd_keyring *ring;
    struct hfd_arena mem;
    hfd_slice sealed;
    unsigned fired;
    char id[9];
    hfd_rc rc;

    hfd_arena_init(&mem, 4096);
    assert_int_equal(hfd_keyring_create(keys, &hfd_rng_system, NULL), HFD_OK);
    assert_int_equal(hfd_keyring_load(keys, &ring, NULL), HFD_OK);
    sealed = sealed_by(ring, &mem);
    hfd_keyring_free(ring);
    wrap_files_arm(nth, ever, error);
    rc = hfd_keyring_change(keys, HFD_KEY_ROTATE, &hfd_rng_system, id, NULL);
    fired = wrap_files_disarm();
    assert_true(rc == HFD_OK || fired != 0);
    assert_opens(sealed, &mem);
    hfd_arena_fini(&mem);
    return fired;
}

/*
 * Each file call of making and rotating a key ring fails in turn: what was sealed before opens
 * afterwards, and the same again works.
 */
static void failing_disk_loses_no_key(void **state)
{
    static unsigned (*const tries[])(unsigned nth, bool ever, int error) = {fail_create,
                                                                            fail_rotate};

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        unsigned fired;
        unsigned nth = 0;

        do {
            char base[TMPDIR_MAX];

            tmpdir_make(base);
            (void)snprintf(keys, sizeof(keys), "%s/keys", base);
            fired = tries[i % 2](++nth, i % 4 >= 2, i < 4 ? EIO : ENOSPC);
            tmpdir_remove(base);
        } while (fired != 0);
        assert_true(nth > 4);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_disk_leaves_no_unsynced_folder),
        cmocka_unit_test(failing_disk_loses_no_key),
        cmocka_unit_test(failing_disk_tells_no_lie),
    };

    fault_options_parse(&options, argc, argv, STRIDE);
    hfd_log_set_fd(open(
        "/dev/null", O_WRONLY | O_CLOEXEC)); /* each failure is logged, and there are thousands */
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    faultvfs_register();
    if (hfd_base_init(NULL) != HFD_OK)
        return 1;
    if (access("/dev/shm", W_OK) == 0) /* the disk that is tested is another one */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
