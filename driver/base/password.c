/* See password.h. */
#include "driver/base/password.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns why a text is no password; NULL for one. */
static const char *flaw_of(const char *text, size_t len)
{
    if (len == 0)
        return "it holds no password";
    if (len >= HFD_PASSWORD_MAX)
        return "it is too long";
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n' || text[i] == '\r' || text[i] == '\0')
            return "expected one password on one line";
    return NULL;
}

hfd_rc hfd_password_read(const char *key, const char *path, char *out, struct hfd_err *err)
{
    char text[HFD_PASSWORD_MAX + 2]; /* and an end of line, and a byte that is too much */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
    const int why = errno;
    const char *flaw;

    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return hfd_fail(err, HFD_IO, "%s: read %.100s: %s", key, path, strerror(why));
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    flaw = flaw_of(text, (size_t)n);
    if (flaw == NULL) {
        memcpy(out, text, (size_t)n);
        out[n] = '\0';
    }
    explicit_bzero(text, sizeof(text));
    return flaw == NULL ? HFD_OK : hfd_fail(err, HFD_INVALID, "%s: %.100s: %s", key, path, flaw);
}
