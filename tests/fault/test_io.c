/*
 * Each call of the disk fails in turn, once and from then on, while the program starts, works and stops. What must hold: domain.h.
 *
 *   test_io                        a share of the calls, another one with each --seed
 *   test_io --stride N             one call in N, on average; 1 = every one
 *   test_io --again NAME:WHICH:N   the N-th call of the fault NAME, once or ever: what a failure prints
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

#include "driver/base/log.h"
#include "store/sqlite/db_sqlite_int.h"
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_disk_tells_no_lie),
    };

    fault_options_parse(&options, argc, argv, STRIDE);
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC)); /* each failure is logged, and there are thousands */
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    faultvfs_register();
    if (access("/dev/shm", W_OK) == 0) /* the disk that is tested is another one */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
