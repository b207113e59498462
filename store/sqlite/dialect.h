/*
 * SQLite's words for what portable SQL cannot say.
 *
 * hfd_like(text, pattern) for a SQLite connection: LIKE with a backslash that takes a wildcard
 * literally. SQLite's own cannot be interrupted, and long texts take seconds. Thread: that of the
 * connection.
 *
 * lower() for a SQLite connection: its own knows the letters of ASCII alone, and `ilike` means all
 * of Unicode, as on HyperFleet's database. Thread: that of the connection.
 */
#ifndef HFD_STORE_SQLITE_DIALECT_H
#define HFD_STORE_SQLITE_DIALECT_H

#include "store/engine.h"

#include <sqlite3.h>

extern const struct hfd_engine_dialect hfd_sqlite_dialect;

/**
 * A copy in which comments for SQLite have become its SQL; free with free. NULL when out of
 * memory.
 */
char *hfd_sqlite_text(const char *sql);

/** Adds the function to the connection. @return a SQLite result code */
int hfd_sqlite_like(struct hfd_db *db);

/**
 * Puts it in the place of SQLite's, which stays where the C library knows no C.UTF-8. @return a
 * SQLite result code
 */
int hfd_sqlite_fold(sqlite3 *handle);

#endif
