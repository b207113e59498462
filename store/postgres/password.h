/* The password of the PostgreSQL user, in a file of its own. Thread: any that may wait for the
 * disk. */
#ifndef HFD_STORE_POSTGRES_PASSWORD_H
#define HFD_STORE_POSTGRES_PASSWORD_H

#include "driver/base/err.h"

#define HFD_PG_PASSWORD_MAX 1024 /* bytes, with the NUL */

/**
 * Reads the password from the one line of a file.
 * @param out  gets it with a NUL, HFD_PG_PASSWORD_MAX bytes; the caller wipes it
 * @return HFD_OK, HFD_IO, HFD_INVALID (no password, several lines, too long)
 */
HFD_MUST_CHECK hfd_rc hfd_pg_password_read(const char *path, char *out, struct hfd_err *err);

#endif
