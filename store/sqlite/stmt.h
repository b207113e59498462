/*
 * Prepared statements of a connection.
 *
 * Settings of a connection, and single values of the database.
 */
#ifndef HFD_STORE_SQLITE_STMT_H
#define HFD_STORE_SQLITE_STMT_H

#include "store/engine.h"

#include <sqlite3.h>

#include <stdbool.h>

struct hfd_stmt {
    const struct hfd_engine *engine; /* the first member */
    unsigned magic;
#define STMT_MAGIC 0x57a7e3e7u
    struct hfd_db *db;
    const char *sql; /* the key */
    sqlite3_stmt *handle;
    bool in_use;
    bool once;    /* not in the slots: done frees it */
    hfd_rc stuck; /* first failure of a binding or a column; answered by the next step */
};

extern const struct hfd_engine_statements hfd_sqlite_statements;

/** Ends all statements of a connection that is being closed. None is in use. */
void hfd_sqlite_finalize_all(struct hfd_db *db);

/** PRAGMA synchronous as it is set and as it is read back; see db_sqlite_int.h. */
struct hfd_pragma_levels {
    const char *synchronous;
    const char *synchronous_read_back;
};

/** Sets what durability and the portable SQL rest on, and reads it back. */
HFD_MUST_CHECK hfd_rc hfd_pragmas_apply(struct hfd_db *db, const struct hfd_pragma_levels *levels,
                                        struct hfd_err *err);
/** Reads the first column of the first row; "" where there is none. */
HFD_MUST_CHECK hfd_rc hfd_pragma_text(struct hfd_db *db, const char *name, char *out, size_t cap,
                                      struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pragma_i64(struct hfd_db *db, const char *name, int64_t *out,
                                     struct hfd_err *err);

#endif
