/* See file.h. */
#include "driver/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

hfd_rc hfd_file_read(const char *path, const char *what, struct hfd_buf *b, struct hfd_err *err)
{
    char chunk[16384];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

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
