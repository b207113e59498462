#include "store/sqlite/folder.h"

#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_SHOWN 120 /* bytes of a path in a message */

/* Not in linux/magic.h of every kernel that we build on. */
#define FS_CIFS 0xFF534D42ul
#define FS_SMB2 0xFE534D42ul
#define FS_FUSE 0x65735546ul

enum hfd_folder_fs hfd_folder_fs_kind(unsigned long magic)
{
    switch (magic & 0xFFFFFFFFul) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case FS_CIFS:
    case FS_SMB2:
        return HFD_FOLDER_FS_NETWORK;
    case FS_FUSE:
        return HFD_FOLDER_FS_UNSURE;
    default:
        return HFD_FOLDER_FS_LOCAL;
    }
}

static hfd_rc fail_errno(struct hfd_err *err, const char *what, const char *dir)
{
    char text[80];

    return hfd_fail(err, errno == ENOMEM ? HFD_NOMEM : HFD_IO, "store folder %.*s: %s: %s",
                    PATH_SHOWN, dir, what, strerror_r(errno, text, sizeof(text)));
}

static hfd_rc check_fs(int dir_fd, const char *dir, struct hfd_err *err)
{
    struct statfs fs;

    if (fstatfs(dir_fd, &fs) != 0)
        return fail_errno(err, "cannot determine its file system", dir);
    switch (hfd_folder_fs_kind((unsigned long)fs.f_type)) {
    case HFD_FOLDER_FS_NETWORK:
        return hfd_fail(err, HFD_IO,
                        "store folder %.*s: is on a network file system, whose locks do not "
                        "protect the database; "
                        "use a local disk",
                        PATH_SHOWN, dir);
    case HFD_FOLDER_FS_UNSURE:
        HFD_LOG(HFD_LOG_WARN,
                "the store is on a FUSE file system; make sure that it honours locks and fsync",
                HFD_LOG_CSTR("dir", dir));
        return HFD_OK;
    case HFD_FOLDER_FS_LOCAL:
        break;
    }
    return HFD_OK;
}

/*
 * The pid that the holder wrote, for the message only: what counts is the lock. 0 = cannot be read.
 */
static int64_t read_holder(int lock_fd)
{
    char text[24];
    ssize_t n = pread(lock_fd, text, sizeof(text), 0);
    int64_t pid = 0;

    while (n > 0 && text[n - 1] == '\n')
        n--;
    if (n <= 0 || hfd_parse_i64((hfd_slice){text, (size_t)n}, 1, INT32_MAX, &pid, NULL) != HFD_OK)
        return 0;
    return pid;
}

static hfd_rc write_holder(int lock_fd, const char *dir, struct hfd_err *err)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(lock_fd, 0) != 0 || pwrite(lock_fd, text, (size_t)n, 0) != n)
        return fail_errno(err, "cannot write the lock file", dir);
    return HFD_OK;
}

static hfd_rc take_lock(struct hfd_folder *f, const char *dir, struct hfd_err *err)
{
    f->lock_fd =
        openat(f->dir_fd, HFD_FOLDER_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->lock_fd < 0)
        return fail_errno(err, "cannot open the lock file", dir);
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return write_holder(f->lock_fd, dir, err);
    if (errno != EWOULDBLOCK)
        return fail_errno(err, "cannot lock it", dir);
    return hfd_fail(
        err, HFD_CONFLICT,
        "store folder %.*s: is in use by process %lld; one process at a time may use it",
        PATH_SHOWN, dir, (long long)read_holder(f->lock_fd));
}

static hfd_rc make_db_file(struct hfd_folder *f, const char *dir, struct hfd_err *err)
{
    int fd = openat(f->dir_fd, HFD_FOLDER_DB_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return fail_errno(err, "cannot open the database file", dir);
    (void)close(fd);
    return HFD_OK;
}

/* Warns when others may read or write the folder or the database: keys are refused then. */
static void warn_of_others(const struct hfd_folder *f, const char *dir)
{
    static const char *const names[] = {".", HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stat st;

        if (fstatat(f->dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 077) != 0)
            HFD_LOG(HFD_LOG_WARN,
                    "others may read or write the data: remove their access (chmod go=)",
                    HFD_LOG_CSTR("dir", dir), HFD_LOG_CSTR("file", names[i]));
    }
}

hfd_rc hfd_folder_open(const char *dir, struct hfd_folder *f, struct hfd_err *err)
{
    bool made;
    hfd_rc rc;

    *f = (struct hfd_folder){.dir_fd = -1, .lock_fd = -1};
    made = mkdir(dir, 0700) == 0;
    if (!made && errno != EEXIST)
        return fail_errno(err, "cannot make it", dir);
    if (made && hfd_file_sync_parent(dir) != 0) {
        rc = fail_errno(err, "cannot sync its parent", dir);
        (void)rmdir(dir); /* the next start would take it for one that is on disk */
        return rc;
    }
    f->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir_fd < 0)
        return fail_errno(err, "cannot open it", dir);
    rc = check_fs(f->dir_fd, dir, err);
    if (rc == HFD_OK)
        rc = take_lock(f, dir, err);
    if (rc == HFD_OK)
        rc = make_db_file(f, dir, err);
    if (rc == HFD_OK) {
        (void)unlinkat(f->dir_fd, HFD_FOLDER_BACKUP_NAME, 0);
        warn_of_others(f, dir);
    }
    if (rc != HFD_OK)
        hfd_folder_close(f);
    return rc;
}

hfd_rc hfd_folder_sync(struct hfd_folder *f, struct hfd_err *err)
{
    if (fsync(f->dir_fd) != 0)
        return hfd_fail(err, HFD_IO, "store folder: cannot sync it (errno %d)", errno);
    return HFD_OK;
}

void hfd_folder_close(struct hfd_folder *f)
{
    if (f->lock_fd >= 0)
        (void)close(f->lock_fd);
    if (f->dir_fd >= 0)
        (void)close(f->dir_fd);
    *f = (struct hfd_folder){.dir_fd = -1, .lock_fd = -1};
}
