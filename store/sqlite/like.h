/*
 * hfd_like(text, pattern) for a SQLite connection: LIKE with a backslash that takes a wildcard
 * literally. SQLite's own cannot be interrupted, and long texts take seconds. Thread: that of the
 * connection.
 */
#ifndef HFD_STORE_SQLITE_LIKE_H
#define HFD_STORE_SQLITE_LIKE_H

#include "store/sqlite/conn.h"

/** Adds the function to the connection. @return a SQLite result code */
int hfd_sqlite_like(struct hfd_db *db);

#endif
