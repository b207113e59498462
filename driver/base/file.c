/* See file.h. */
#include "driver/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Appends what is left of a file, and closes it. @param fd  -1 = it could not be opened */
static hfd_rc read_all(int fd, const char *path, const char *what, struct hfd_buf *b,
                       struct hfd_err *err)
{
    char chunk[16384];
    ssize_t n = -1;

    if (fd >= 0) {
        do {
            n = read(fd, chunk, sizeof(chunk));
            if (n > 0)
                hfd_buf_add(b, (hfd_slice){chunk, (size_t)n});
        } while ((n > 0 && b->rc == HFD_OK) || (n < 0 && errno == EINTR));
    }
    if (n < 0)
        (void)hfd_fail(err, HFD_IO, "read %s %s: %s", what, path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return HFD_IO;
    if (b->rc == HFD_LIMIT)
        return hfd_fail(err, HFD_INVALID, "%s: larger than %zu bytes", path, b->max_bytes);
    return b->rc == HFD_OK ? HFD_OK : hfd_fail_nomem(err, "read a file");
}

hfd_rc hfd_file_read(const char *path, const char *what, struct hfd_buf *b, struct hfd_err *err)
{
    return read_all(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), path, what, b, err);
}

/* Finds the folder that holds a path. */
static bool stat_folder(const char *path, struct stat *out)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];

    return snprintf(folder, sizeof(folder), "%.*s", (int)(slash != NULL ? slash - path + 1 : 1),
                    slash != NULL ? path : ".") < (int)sizeof(folder) &&
           stat(folder, out) == 0;
}

bool hfd_file_is_trusted(const char *path, const struct stat *st)
{
    struct stat folder;

    if (st->st_uid == geteuid() || st->st_uid == 0)
        return true;
    return geteuid() == 0 && stat_folder(path, &folder) && folder.st_uid == st->st_uid;
}

hfd_rc hfd_file_open_own(const char *path, const char *what, int flags, int *fd,
                         struct hfd_err *err)
{
    struct stat st;
    hfd_rc rc = HFD_OK;

    /* O_NONBLOCK: opening a pipe must not hang. */
    *fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (*fd < 0 && errno == ELOOP)
        return hfd_fail(err, HFD_INVALID, "%s %s: it is a symbolic link, expected the file itself",
                        what, path);
    if (*fd < 0 || fstat(*fd, &st) != 0)
        rc = hfd_fail(err,
                      errno == ENOENT   ? HFD_NOT_FOUND
                      : errno == ENOMEM ? HFD_NOMEM
                                        : HFD_IO,
                      "%s %s: open: %s", what, path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = hfd_fail(err, HFD_INVALID, "%s %s: not a regular file", what, path);
    else if (!hfd_file_is_trusted(path, &st))
        rc = hfd_fail(err, HFD_INVALID, "%s %s: owned by user %u, expected user %u or root", what,
                      path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (rc != HFD_OK && *fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
    return rc;
}

hfd_rc hfd_file_read_own(const char *path, const char *what, struct hfd_buf *b, struct hfd_err *err)
{
    int fd;
    const hfd_rc rc = hfd_file_open_own(path, what, O_RDONLY, &fd, err);

    return rc == HFD_OK ? read_all(fd, path, what, b, err) : rc;
}

int hfd_file_make(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int hfd_file_write(int fd, hfd_slice text)
{
    while (text.len > 0) {
        const ssize_t n = write(fd, text.p, text.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        text = (hfd_slice){text.p + n, text.len - (size_t)n};
    }
    return fsync(fd);
}

bool hfd_file_keep_owner(int fd, const char *path)
{
    struct stat folder, before;

    if (geteuid() != 0)
        return true;
    if (!stat_folder(path, &folder))
        return false;
    if (folder.st_uid == 0 && lstat(path, &before) == 0 && S_ISREG(before.st_mode))
        folder = before;
    return fchown(fd, folder.st_uid, folder.st_gid) == 0;
}

hfd_rc hfd_file_replace(const char *path, const char *what, hfd_slice text, struct hfd_err *err)
{
    char temp[PATH_MAX];
    bool done = false;
    int cause, fd;

    if (snprintf(temp, sizeof(temp), "%s.new", path) >= (int)sizeof(temp))
        return hfd_fail(err, HFD_INVALID, "%s: the path is too long", what);
    fd = hfd_file_make(temp);
    if (fd >= 0) {
        done = hfd_file_keep_owner(fd, path) && hfd_file_write(fd, text) == 0 &&
               rename(temp, path) == 0 && hfd_file_sync_parent(path) == 0;
        cause = errno;
        (void)close(fd);
        if (!done)
            (void)unlink(temp);
        errno = cause;
    }
    return done ? HFD_OK
                : hfd_fail(err, HFD_IO, "write %s %.150s: %s", what, path, strerror(errno));
}

bool hfd_file_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int hfd_file_sync_parent(const char *path)
{
    size_t len = strlen(path);
    char *parent;
    int fd, rc;

    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    parent = len == 0 ? strdup(".") : strndup(path, len);
    if (parent == NULL)
        return -1;
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(parent);
    if (fd < 0)
        return -1;
    rc = fsync(fd);
    (void)close(fd);
    return rc;
}
