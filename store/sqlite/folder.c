/* See folder.h. */
#include "store/sqlite/folder.h"

#include "driver/base/err.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- folder ---- */

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

int64_t hfd_folder_holder(const char *dir)
{
    char path[PATH_MAX];
    int64_t pid = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/" HFD_FOLDER_LOCK_NAME, dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        pid = read_holder(fd);
        (void)close(fd);
    }
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

/*
 * Refuses what another user has put under the names that this process writes: a link, a pipe, a
 * file of their own.
 */
static hfd_rc check_owners(const struct hfd_folder *f, const char *dir, struct hfd_err *err)
{
    static const char *const names[] = {HFD_FOLDER_LOCK_NAME, HFD_FOLDER_DB_NAME,
                                        HFD_FOLDER_DB_NAME "-wal", HFD_FOLDER_DB_NAME "-shm",
                                        HFD_FOLDER_DB_NAME "-journal"};
    char path[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (fstatat(f->dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        if (!S_ISREG(st.st_mode) || !hfd_file_is_trusted(path, &st))
            return hfd_fail(err, HFD_IO,
                            "store folder %.*s: %s is no regular file of user %u or root: another "
                            "user may have put it there. Move it away",
                            PATH_SHOWN, dir, names[i], (unsigned)geteuid());
    }
    return HFD_OK;
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
        rc = check_owners(f, dir, err);
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

/* ---- wal ---- */

#define MAGIC 0x377f0682u /* the lowest bit: words of checksums are big-endian */
#define VERSION 3007000u
#define SUMMED_BYTES 24u /* of the header */
#define PAGE_MIN 512u
#define PAGE_MAX 65536u
#define DB_PAGE_SIZE_AT 16 /* in the database's header: two bytes, 1 means 65536 */

static uint32_t word_at(const unsigned char *p, bool big_endian)
{
    return big_endian ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
                      : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Goes on with a checksum. len is a multiple of 8. */
static void add_sums(const struct hfd_wal_scan *s, uint32_t sums[2], const unsigned char *p,
                     size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        sums[0] += word_at(p + i, s->big_endian) + sums[1];
        sums[1] += word_at(p + i + 4, s->big_endian) + sums[0];
    }
}

static bool are_sums(const uint32_t sums[2], const unsigned char *stored)
{
    return sums[0] == word_at(stored, true) && sums[1] == word_at(stored + 4, true);
}

static bool is_page_size(size_t n)
{
    return n >= PAGE_MIN && n <= PAGE_MAX && (n & (n - 1)) == 0;
}

void hfd_wal_scan_begin(struct hfd_wal_scan *s, const unsigned char header[HFD_WAL_HEADER_BYTES],
                        size_t page_bytes)
{
    const uint32_t magic = word_at(header, true);

    *s = (struct hfd_wal_scan){.page_bytes = page_bytes, .big_endian = (magic & 1) != 0};
    memcpy(s->header, header, HFD_WAL_HEADER_BYTES);
    add_sums(s, s->sums, header, SUMMED_BYTES);
    s->header_whole = (magic & ~1u) == MAGIC && are_sums(s->sums, header + SUMMED_BYTES) &&
                      is_page_size(word_at(header + 8, true));
    s->broken = !s->header_whole;
    if (!s->header_whole)
        return;
    s->page_bytes = word_at(header + 8, true);
    s->salts[0] = word_at(header + 16, true);
    s->salts[1] = word_at(header + 20, true);
}

/* Goes on with the checksums of a frame, and compares. */
static bool is_whole_frame(struct hfd_wal_scan *s, const unsigned char *frame)
{
    add_sums(s, s->sums, frame, 8);
    add_sums(s, s->sums, frame + HFD_WAL_FRAME_HEADER_BYTES, s->page_bytes);
    return word_at(frame, true) != 0 && are_sums(s->sums, frame + 16);
}

static void put_word(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* Returns true if the first frame follows a header with this number. */
static bool follows(struct hfd_wal_scan *s, const unsigned char *frame, uint32_t number)
{
    unsigned char header[SUMMED_BYTES];

    put_word(header, MAGIC | (s->big_endian ? 1u : 0u));
    put_word(header + 4, VERSION);
    put_word(header + 8, (uint32_t)s->page_bytes);
    put_word(header + 12, number);
    memcpy(header + 16, frame + 8, 8);
    s->sums[0] = s->sums[1] = 0;
    add_sums(s, s->sums, header, sizeof(header));
    return is_whole_frame(s, frame);
}

/*
 * Returns true if the header was that of the frames before it was damaged. All of it is known but
 * the number of the log, of which one bit may be wrong. SQLite begins a log anew by a header with
 * the next number. One that was written in part means that the frames are not needed.
 */
static bool mend_header(struct hfd_wal_scan *s, const unsigned char *frame)
{
    const uint32_t number = word_at(s->header + 12, true);

    for (int order = 0; order < 2; order++) {
        s->big_endian = order == 1;
        if (follows(s, frame, number))
            return true;
        for (int bit = 0; bit < 32; bit++)
            if ((number ^ 1u << bit) + 1 != number && follows(s, frame, number ^ 1u << bit))
                return true;
    }
    return false;
}

void hfd_wal_scan_frame(struct hfd_wal_scan *s, const unsigned char *frame)
{
    const uint32_t salts[2] = {word_at(frame + 8, true), word_at(frame + 12, true)};
    const bool commits = word_at(frame + 4, true) != 0;

    if (!s->header_whole && s->frames == 0 && mend_header(s, frame)) {
        memcpy(s->salts, salts, sizeof(salts));
        s->header_whole = true;
    } else if (!s->broken) {
        s->broken = memcmp(salts, s->salts, sizeof(salts)) != 0 || !is_whole_frame(s, frame);
        s->broken_at = s->frames;
    }
    s->frames++;
    /* Salts change when SQLite begins the log anew: older frames behind the end have others. */
    if (s->broken && s->header_whole && commits && memcmp(salts, s->salts, sizeof(salts)) == 0)
        s->commits_behind++;
}

/*
 * Each commit is synced before the next one is written. So a power cut can tear only the last one,
 * and may leave its commit frame behind a frame that is lost.
 */
enum hfd_wal_verdict hfd_wal_scan_verdict(const struct hfd_wal_scan *s)
{
    if (!s->header_whole)
        return HFD_WAL_VOID;
    if (s->commits_behind == 0)
        return HFD_WAL_WHOLE;
    return s->commits_behind == 1 ? HFD_WAL_TORN : HFD_WAL_DAMAGED;
}

/* ---- the file ---- */

static hfd_rc fail_read(struct hfd_err *err)
{
    return hfd_fail(err, HFD_IO, "store: cannot read the write-ahead log (errno %d)", errno);
}

/* Reads `len` bytes, or fewer at the end of the file. @return bytes, -1 = failed */
static ssize_t read_at(int fd, unsigned char *to, size_t len, off_t at)
{
    size_t have = 0;

    while (have < len) {
        const ssize_t n = pread(fd, to + have, len - have, at + (off_t)have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

/* The page size of the database; 4096 when it cannot be read. */
static size_t db_page_bytes(int dir_fd)
{
    const int fd = openat(dir_fd, HFD_FOLDER_DB_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char size[2] = {0, 0};
    size_t n = 0;

    if (fd >= 0) {
        if (read_at(fd, size, sizeof(size), DB_PAGE_SIZE_AT) == (ssize_t)sizeof(size))
            n = (size_t)size[0] << 8 | size[1];
        (void)close(fd);
    }
    if (n == 1)
        n = PAGE_MAX;
    return is_page_size(n) ? n : 4096;
}

static hfd_rc scan_frames(int fd, struct hfd_wal_scan *s, struct hfd_err *err)
{
    const size_t frame_bytes = HFD_WAL_FRAME_HEADER_BYTES + s->page_bytes;
    unsigned char *frame = malloc(frame_bytes);
    off_t at = HFD_WAL_HEADER_BYTES;
    ssize_t n = -1;

    if (frame == NULL)
        return hfd_fail_nomem(err, "look through the write-ahead log");
    while ((n = read_at(fd, frame, frame_bytes, at)) == (ssize_t)frame_bytes) {
        hfd_wal_scan_frame(s, frame);
        at += (off_t)frame_bytes;
    }
    free(frame);
    return n < 0 ? fail_read(err) : HFD_OK;
}

hfd_rc hfd_wal_check(int dir_fd, struct hfd_wal_scan *out, enum hfd_wal_verdict *verdict,
                     struct hfd_err *err)
{
    const int fd = openat(dir_fd, HFD_FOLDER_DB_NAME "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char header[HFD_WAL_HEADER_BYTES];
    ssize_t n;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_wal_scan){.header_whole = true};
    *verdict = HFD_WAL_WHOLE;
    if (fd < 0)
        return errno == ENOENT ? HFD_OK : fail_read(err);
    n = read_at(fd, header, sizeof(header), 0);
    if (n < 0)
        rc = fail_read(err);
    if (n == (ssize_t)sizeof(header)) {
        hfd_wal_scan_begin(out, header, db_page_bytes(dir_fd));
        rc = scan_frames(fd, out, err);
    }
    if (rc == HFD_OK)
        *verdict = hfd_wal_scan_verdict(out);
    (void)close(fd);
    return rc;
}
