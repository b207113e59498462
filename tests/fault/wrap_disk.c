/*
 * Passes the file calls of our own code to the disk that remembers (-Wl,--wrap of each name).
 * SQLite's calls go through its VFS. fsync does nothing else: the real disk is not under test.
 */
#include "tests/lib/crashdisk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    return path;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    char path[PATH_MAX];
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        crashdisk_folder_synced(path_of(fd, path));
    else
        crashdisk_file_synced(path_of(fd, path));
    return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    char made[PATH_MAX];
    mode_t mode = 0;
    va_list ap;
    int fd;

    va_start(ap, flags);
    if ((flags & O_CREAT) != 0 || unnamed)
        mode = va_arg(ap, mode_t);
    va_end(ap);
    if ((flags & O_CREAT) != 0)
        crashdisk_file_made(path);
    fd = __real_open(path, flags, mode);
    /* A file without a name has one in /proc. */
    if (fd >= 0 && unnamed)
        crashdisk_file_made(path_of(fd, made));
    return fd;
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    char path[PATH_MAX];
    off_t at = lseek(fd, 0, SEEK_CUR);

    if (at >= 0)
        crashdisk_file_written(path_of(fd, path), bytes, (size_t)at, len);
    return __real_write(fd, bytes, len);
}

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    crashdisk_file_linked(from, to, false);
    return __real_link(from, to);
}

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    char path[PATH_MAX];
    const ssize_t n = readlink(from, path, PATH_MAX - 1);

    path[n > 0 ? n : 0] = '\0';
    crashdisk_file_linked(path, to, true);
    return __real_linkat(from_dir, from, to_dir, to, flags);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    crashdisk_file_linked(from, to, true);
    return __real_rename(from, to);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    crashdisk_file_removed(path);
    return __real_unlink(path);
}
