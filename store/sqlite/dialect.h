/* SQLite's words for what portable SQL cannot say; the other functions are those of db.h. */
#ifndef HFD_STORE_SQLITE_DIALECT_H
#define HFD_STORE_SQLITE_DIALECT_H

/**
 * A copy in which comments for SQLite have become its SQL; free with free. NULL when out of
 * memory.
 */
char *hfd_sqlite_text(const char *sql);

#endif
