/* Prepared statements of a connection. */
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

#endif
