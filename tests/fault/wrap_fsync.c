/* fsync as our own code calls it (-Wl,--wrap=fsync): the disk that remembers is told of folders. SQLite's own go through its VFS. */
#include "tests/lib/crashdisk.h"

#include <limits.h>
#include <unistd.h>

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    char link[64], path[PATH_MAX];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n > 0) {
        path[n] = '\0';
        crashdisk_folder_synced(path);
    }
    return 0; /* the real disk is not what is tested */
}
