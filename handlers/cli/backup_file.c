/* See backup_file.h. */
#include "handlers/cli/backup_file.h"

#include "driver/base/err.h"
#include "driver/base/meter.h"
#include "driver/core/backup_note.h"
#include "store/sqlite/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

#define PIECE_BYTES ((size_t)65536)
#define MIB INT64_C(1048576)

/* Reads exactly len bytes. */
static hfd_rc read_at(int fd, char *out, size_t len, int64_t at, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = pread(fd, out + done, len - done, at + (int64_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "it cannot be read: %s",
                            n < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)n;
    }
    return HFD_OK;
}

static hfd_rc write_all(int fd, const char *bytes, size_t len, struct hfd_err *err)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = write(fd, bytes + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return hfd_fail(err, HFD_IO, "its copy cannot be written: %s", strerror(errno));
        done += (size_t)n;
    }
    return HFD_OK;
}

hfd_rc hfd_backup_file_note(int fd, struct hfd_arena *mem, struct hfd_backup_note *out,
                            struct hfd_err *err)
{
    char text[HFD_BACKUP_NOTE_BYTES];
    struct stat st;
    hfd_rc rc;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size <= (int64_t)sizeof(text))
        return hfd_fail(err, HFD_INVALID, "it is no backup of hyperfleet-driver");
    rc = read_at(fd, text, sizeof(text), st.st_size - (int64_t)sizeof(text), err);
    if (rc == HFD_OK)
        rc = hfd_backup_note_parse(text, mem, out, err);
    if (rc == HFD_OK && out->bytes != st.st_size - (int64_t)sizeof(text))
        rc = hfd_fail(err, HFD_INVALID, "it is not whole: %lld bytes instead of %lld",
                      (long long)st.st_size, (long long)out->bytes + (long long)sizeof(text));
    return rc;
}

hfd_rc hfd_backup_file_copy(int fd, const struct hfd_backup_note *note, int to,
                            struct hfd_meter *meter, struct hfd_err *err)
{
    char piece[PIECE_BYTES], text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    hfd_rc rc = HFD_OK;
    int64_t at = 0;

    hfd_backup_sum_init(&sum);
    while (rc == HFD_OK && at < note->bytes) {
        const int64_t left = note->bytes - at;
        const size_t len = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);

        hfd_meter_set(
            meter, &(struct hfd_meter_at){to >= 0 ? "copying the backup" : "comparing the checksum",
                                          "MiB", at / MIB, note->bytes / MIB});
        rc = read_at(fd, piece, len, at, err);
        if (rc == HFD_OK && to >= 0)
            rc = write_all(to, piece, len, err);
        hfd_backup_sum_add(&sum, piece, len);
        at += (int64_t)len;
    }
    if (rc == HFD_OK)
        rc = read_at(fd, text, sizeof(text), note->bytes, err);
    if (rc == HFD_OK && !hfd_backup_note_matches(text, &sum))
        rc = hfd_fail(err, HFD_CORRUPT,
                      "it is damaged: its checksum does not match. Use another backup");
    return rc;
}

hfd_rc hfd_backup_file_seal(int fd, struct hfd_backup_note *note, struct hfd_err *err)
{
    char piece[PIECE_BYTES], text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;
    struct stat st;
    hfd_rc rc = HFD_OK;
    int64_t at = 0;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "it cannot be read: %s", strerror(errno));
    note->bytes = st.st_size;
    hfd_backup_sum_init(&sum);
    while (rc == HFD_OK && at < note->bytes) {
        const int64_t left = note->bytes - at;
        const size_t len = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);

        rc = read_at(fd, piece, len, at, err);
        hfd_backup_sum_add(&sum, piece, len);
        at += (int64_t)len;
    }
    if (rc == HFD_OK)
        rc = hfd_backup_note_format(note, &sum, text, err);
    if (rc == HFD_OK && lseek(fd, 0, SEEK_END) < 0)
        rc = hfd_fail(err, HFD_IO, "it cannot be written: %s", strerror(errno));
    return rc == HFD_OK ? write_all(fd, text, sizeof(text), err) : rc;
}

/* ---- a folder for a database ---- */

#define MAKE_TRIES 10

void hfd_draft_remove(const char *path)
{
    static const char *const names[] = {HFD_FOLDER_DB_NAME, HFD_FOLDER_DB_NAME "-wal",
                                        HFD_FOLDER_DB_NAME "-shm", HFD_FOLDER_LOCK_NAME};
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    for (size_t i = 0; dir >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlinkat(dir, names[i], 0);
    if (dir >= 0)
        (void)close(dir);
    (void)rmdir(path);
}

hfd_rc hfd_draft_make(const char *path, struct hfd_err *err)
{
    hfd_draft_remove(path);
    return mkdir(path, 0700) == 0 ? HFD_OK
                                  : hfd_fail(err, HFD_IO, "make %.120s: %s", path, strerror(errno));
}

/* Returns whether the path still names the open folder. */
static bool is_at(int dir, const char *path)
{
    struct stat open_one, named;

    return fstat(dir, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

hfd_rc hfd_draft_make_held(const char *path, int *hold, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    /* A sweep may take the folder before it is held. */
    for (int i = 0; rc == HFD_OK && i < MAKE_TRIES; i++) {
        rc = hfd_draft_make(path, err);
        *hold = rc == HFD_OK ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (*hold >= 0 && flock(*hold, LOCK_EX) == 0 && is_at(*hold, path))
            return HFD_OK;
        if (*hold >= 0)
            (void)close(*hold);
        *hold = -1;
    }
    return rc != HFD_OK ? rc : hfd_fail(err, HFD_IO, "make %.120s: it goes away again", path);
}

/* Removes a draft that no process holds. */
static void sweep_one(const char *path, hfd_draft_swept_fn *swept)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (dir < 0)
        return;
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && flock(dir, LOCK_EX | LOCK_NB) == 0) {
        hfd_draft_remove(path);
        if (!is_at(dir, path))
            swept(path);
    }
    (void)close(dir);
}

void hfd_draft_sweep(const char *path, const char *prefix, hfd_draft_swept_fn *swept)
{
    const size_t head = (size_t)(strrchr(path, '/') - path), len = strlen(prefix);
    char other[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(other, sizeof(other), "%.*s", (int)head, path);
    dir = opendir(other);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *number = entry->d_name + len;

        if (strncmp(entry->d_name, prefix, len) != 0 || number[0] == '\0' ||
            number[strspn(number, "0123456789")] != '\0')
            continue;
        if (snprintf(other, sizeof(other), "%.*s/%s", (int)head, path, entry->d_name) <
            (int)sizeof(other))
            sweep_one(other, swept);
    }
    if (dir != NULL)
        (void)closedir(dir);
}
