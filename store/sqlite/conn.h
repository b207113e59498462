/*
 * A connection to SQLite, its failures, and its statements. Exactly one connection, the writer's,
 * writes and checkpoints: SQLite before 3.51.3 can damage a database on which two connections do so
 * at once. Thread: each connection belongs to one thread, asserted.
 */
#ifndef HFD_STORE_SQLITE_CONN_H
#define HFD_STORE_SQLITE_CONN_H

#include "store/engine.h"
#include "store/sqlite/folder.h"
#include "store/stmt_slots.h"

#include <sqlite3.h>

#include <pthread.h>

struct hfd_folder;

struct hfd_db {
    const struct hfd_engine *engine; /* the first member */
    unsigned magic;
#define DB_MAGIC 0xdb5011feu
    enum hfd_db_mode mode;
    pthread_t owner;
    sqlite3 *handle;
    struct hfd_folder folder; /* the writer's: held while it is open */
    bool in_txn;
    bool broken;
    struct hfd_err cause;        /* once broken: the first failure, answered from then on */
    int log_frames;              /* pages in the log after the last commit */
    struct hfd_stmt_slots stmts; /* those that are kept */
    size_t stmts_in_use;
    hfd_db_stop_fn *stop; /* asked while statements run; may be NULL */
    void *stop_ctx;
};

/** Asserts that the connection is open and belongs to this thread. */
void hfd_sqlite_check_owner(const struct hfd_db *db);
/** Returns true for codes after which the connection must not be used. */
bool hfd_sqlite_is_fatal(int sqlite);
/**
 * Turns a code of SQLite into ours, and the connection broken where the code demands it.
 * @param what  SQL or a few words of ours; never data
 */
hfd_rc hfd_sqlite_fail(struct hfd_db *db, int sqlite, const char *what, struct hfd_err *err);
/** The failure that turned the connection broken. */
hfd_rc hfd_sqlite_fail_broken(const struct hfd_db *db, struct hfd_err *err);

/* ---- prepared statements ---- */

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
