/*
 * The URL of a PostgreSQL database, as libpq takes it:
 * postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?name=value&... Its form and its safe
 * spelling; libpq knows the names. Pure. Thread: any.
 */
#ifndef HFD_BASE_PGURL_H
#define HFD_BASE_PGURL_H

#include "driver/base/buf.h"

#define HFD_PGURL_HIDDEN "***" /* stands for a password */

/** True for a text that begins with postgres:// or postgresql://. */
bool hfd_pgurl_is(hfd_slice text);

/**
 * Checks the form. Characters that have a meaning in a URL must be escaped as %XX.
 * @return HFD_OK, or HFD_INVALID ("expected ..."; the text is not quoted, as it may hold a
 * password)
 */
HFD_MUST_CHECK hfd_rc hfd_pgurl_check(hfd_slice text, struct hfd_err *err);

/** True if a checked URL holds a password: of the user, or as a parameter. */
bool hfd_pgurl_has_password(hfd_slice url);

/** Adds a checked URL with *** in place of each password. */
void hfd_pgurl_mask(struct hfd_buf *b, hfd_slice url);

#endif
