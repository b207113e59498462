/* A password in a file of its own. Thread: any that may wait for the disk. */
#ifndef HFD_BASE_PASSWORD_H
#define HFD_BASE_PASSWORD_H

#include "driver/base/err.h"

#define HFD_PASSWORD_MAX 1024 /* bytes, with the NUL */

/**
 * Reads the password from the one line of a file.
 * @param key  the setting that names the file, for messages
 * @param out  gets it with a NUL, HFD_PASSWORD_MAX bytes; the caller wipes it
 * @return HFD_OK, HFD_IO, HFD_INVALID (no password, several lines, too long)
 */
HFD_MUST_CHECK hfd_rc hfd_password_read(const char *key, const char *path, char *out,
                                        struct hfd_err *err);

#endif
