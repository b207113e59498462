/*
 * lower() for a SQLite connection: its own knows the letters of ASCII alone, and `ilike` means all
 * of Unicode, as on HyperFleet's database. Thread: that of the connection.
 */
#ifndef HFD_STORE_SQLITE_FOLD_H
#define HFD_STORE_SQLITE_FOLD_H

#include <sqlite3.h>

/**
 * Puts it in the place of SQLite's, which stays where the C library knows no C.UTF-8. @return a
 * SQLite result code
 */
int hfd_sqlite_fold(sqlite3 *handle);

#endif
