/* See file.h. */
#include "driver/base/file.h"

#include <errno.h>
#include <fcntl.h>
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
    return b->rc == HFD_OK ? HFD_OK : hfd_fail(err, b->rc, "out of memory");
}
