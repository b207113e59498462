/* See wrap_files.h. fsync does nothing else here: the real disk is not what is tested. */
#include "tests/fault/wrap_files.h"

#include "tests/lib/trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct trigger trigger = TRIGGER_INIT;
static int error_code;

static bool fails(void)
{
    if (!trigger_fires(&trigger))
        return false;
    errno = error_code;
    return true;
}

void wrap_files_arm(unsigned nth, bool for_ever, int error)
{
    error_code = error; /* a call that is to fail takes the trigger's lock first */
    trigger_arm(&trigger, nth, for_ever);
}

unsigned wrap_files_disarm(void)
{
    return trigger_disarm(&trigger);
}

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return fails() ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return fails() ? -1 : __real_openat(dir, path, flags, mode);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return fails() ? -1 : __real_mkdir(path, mode);
}

int __real_flock(int fd, int op);
int __wrap_flock(int fd, int op);
int __wrap_flock(int fd, int op)
{
    return fails() ? -1 : __real_flock(fd, op);
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return fails() ? -1 : 0;
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return fails() ? -1 : __real_ftruncate(fd, size);
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
    return fails() ? -1 : __real_fstat(fd, st);
}

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    return fails() ? -1 : __real_fstatfs(fd, fs);
}

ssize_t __real_pread(int fd, void *out, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t len, off_t at)
{
    return fails() ? -1 : __real_pread(fd, out, len, at);
}

/* A failing write leaves its first half behind. */
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return fails() ? __real_pwrite(fd, bytes, len / 2, at) : __real_pwrite(fd, bytes, len, at);
}

ssize_t __real_read(int fd, void *out, size_t len);
ssize_t __wrap_read(int fd, void *out, size_t len);
ssize_t __wrap_read(int fd, void *out, size_t len)
{
    return fails() ? -1 : __real_read(fd, out, len);
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    ssize_t half;

    if (!fails())
        return __real_write(fd, bytes, len);
    half = __real_write(fd, bytes, len / 2);
    (void)half;
    errno = error_code;
    return -1;
}

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    return fails() ? -1 : __real_link(from, to);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return fails() ? -1 : __real_rename(from, to);
}
