/* See conn.h. */
#include "store/sqlite/conn.h"

#include "driver/base/check.h"
#include "store/sqlite/stmt.h"

#include <sqlite3.h>

#include <pthread.h>

/* ---- conn ---- */

#define WHAT_SHOWN 48 /* bytes of a statement's text in a message */

/* clang-format off */
static const struct code {
    int sqlite;
    const char *name;
    hfd_rc rc;
    bool fatal; /* the connection can no longer vouch for what it holds */
} codes[] = {
    {SQLITE_IOERR,      "SQLITE_IOERR",      HFD_IO,       true},
    {SQLITE_FULL,       "SQLITE_FULL",       HFD_IO,       true},
    {SQLITE_CANTOPEN,   "SQLITE_CANTOPEN",   HFD_IO,       true},
    {SQLITE_READONLY,   "SQLITE_READONLY",   HFD_IO,       true},
    {SQLITE_PERM,       "SQLITE_PERM",       HFD_IO,       true},
    {SQLITE_NOLFS,      "SQLITE_NOLFS",      HFD_IO,       true},
    {SQLITE_CORRUPT,    "SQLITE_CORRUPT",    HFD_CORRUPT,  true},
    {SQLITE_NOTADB,     "SQLITE_NOTADB",     HFD_CORRUPT,  true},
    {SQLITE_NOMEM,      "SQLITE_NOMEM",      HFD_NOMEM,    false},
    {SQLITE_BUSY,       "SQLITE_BUSY",       HFD_BUSY,     false},
    {SQLITE_LOCKED,     "SQLITE_LOCKED",     HFD_BUSY,     false},
    {SQLITE_PROTOCOL,   "SQLITE_PROTOCOL",   HFD_BUSY,     false},
    {SQLITE_INTERRUPT,  "SQLITE_INTERRUPT",  HFD_TIMEOUT,  false},
    {SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", HFD_CONFLICT, false},
    {SQLITE_ERROR,      "SQLITE_ERROR",      HFD_CORRUPT,  false},
};
/* clang-format on */

static const struct code *find_code(int sqlite)
{
    static const struct code other = {0, "SQLITE_OTHER", HFD_CORRUPT, false};
    static const struct code not_null = {0, "SQLITE_CONSTRAINT", HFD_CORRUPT, false};

    if (sqlite == SQLITE_IOERR_NOMEM)
        sqlite = SQLITE_NOMEM;
    if (sqlite ==
        SQLITE_CONSTRAINT_NOTNULL) /* store/rows never binds NULL there: a different schema */
        return &not_null;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].sqlite == (sqlite & 0xff))
            return &codes[i];
    return &other;
}

hfd_rc hfd_sqlite_fail_broken(const struct hfd_db *db, struct hfd_err *err)
{
    if (err != NULL)
        *err = db->cause;
    return db->cause.rc;
}

hfd_rc hfd_sqlite_fail(struct hfd_db *db, int sqlite, const char *what, struct hfd_err *err)
{
    const struct code *c = find_code(sqlite);
    bool undone = db->in_txn && sqlite3_get_autocommit(db->handle) != 0;
    bool lost = undone && !c->fatal &&
                db->mode == HFD_DB_WRITER; /* a reader has nothing to lose but its snapshot */
    hfd_rc rc = lost ? HFD_IO : c->rc;
    size_t shown = strcspn(what, "(\n");
    struct hfd_err e;

    if (shown > WHAT_SHOWN)
        shown = WHAT_SHOWN;
    while (shown > 0 && what[shown - 1] == ' ')
        shown--;
    (void)hfd_fail(&e, rc, "store: %.*s: %s (%d, %s)%s", (int)shown, what, c->name, sqlite,
                   sqlite3_errstr(sqlite), lost ? "; the transaction was undone" : "");
    if (c->fatal || undone) {
        db->broken = true;
        db->cause = e;
    }
    if (err != NULL)
        *err = e;
    return rc;
}

bool hfd_sqlite_is_fatal(int sqlite)
{
    return find_code(sqlite)->fatal;
}

void hfd_sqlite_check_owner(const struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, DB_MAGIC);
    HFD_ASSERT(pthread_equal(db->owner, pthread_self()));
}
