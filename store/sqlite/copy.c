/* The copy of a database: SQLite's backup, in steps, from a reader's snapshot. See db.h. */
#include "store/sqlite/copy.h"

#include "driver/base/check.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/sqlite/engine.h"
#include "store/sqlite/pragma.h"

#define PAGES_A_STEP 512 /* 2 MiB: a reader thread is not held for longer */

/* A failure of the new file does not break the connection that is read. */
static hfd_rc fail(const struct hfd_db_copy *c, int sqlite, struct hfd_err *err)
{
    const int of_disk = c->to != NULL ? sqlite3_system_errno(c->to) : 0;

    if (sqlite == SQLITE_FULL)
        return hfd_fail(err, HFD_LIMIT, "the disk became full while the database was copied");
    if (sqlite == SQLITE_NOMEM)
        return hfd_fail_nomem(err, "copy the database");
    return hfd_fail(err, HFD_IO, "store: copy the database: %s (%d, errno %d)",
                    sqlite3_errstr(sqlite), sqlite, of_disk);
}

hfd_rc hfd_sqlite_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                            struct hfd_err *err)
{
    struct hfd_db_copy *c = calloc(1, sizeof(*c));
    int sqlite;
    hfd_rc rc;

    hfd_sqlite_check_owner(from);
    HFD_ASSERT(from->in_txn);
    *out = NULL;
    if (c == NULL)
        return hfd_fail_nomem(err, "copy the database");
    c->engine = from->engine;
    c->from = from;
    sqlite =
        sqlite3_open_v2(path, &c->to, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE, hfd_db_vfs());
    /* It is a draft: it needs no journal, and is worth nothing after a power cut. */
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_exec(c->to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL,
                              NULL);
    if (sqlite == SQLITE_OK) {
        c->pages = sqlite3_backup_init(c->to, "main", from->handle, "main");
        sqlite = c->pages != NULL ? SQLITE_OK : sqlite3_errcode(c->to);
    }
    if (sqlite == SQLITE_OK) {
        *out = c;
        return HFD_OK;
    }
    rc = fail(c, sqlite, err);
    hfd_sqlite_copy_close(&c);
    return rc;
}

hfd_rc hfd_sqlite_copy_step(struct hfd_db_copy *c, bool *done, struct hfd_err *err)
{
    int sqlite;

    hfd_sqlite_check_owner(c->from);
    sqlite = sqlite3_backup_step(c->pages, PAGES_A_STEP);
    *done = sqlite == SQLITE_DONE;
    if (sqlite == SQLITE_OK)
        return HFD_OK;
    if (*done) {
        sqlite = sqlite3_backup_finish(c->pages);
        c->pages = NULL;
    }
    return sqlite == SQLITE_OK ? HFD_OK : fail(c, sqlite, err);
}

void hfd_sqlite_copy_close(struct hfd_db_copy **cp)
{
    struct hfd_db_copy *c = *cp;
    int sqlite;

    *cp = NULL;
    if (c->pages != NULL)
        (void)sqlite3_backup_finish(c->pages); /* its failure was answered by the step */
    sqlite = sqlite3_close(c->to);
    HFD_ASSERT(sqlite == SQLITE_OK);
    free(c);
}

hfd_rc hfd_sqlite_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    int64_t pages = 0, page_bytes = 0;
    hfd_rc rc = hfd_pragma_i64(db, "page_count", &pages, err);

    if (rc == HFD_OK)
        rc = hfd_pragma_i64(db, "page_size", &page_bytes, err);
    *out = pages * page_bytes;
    return rc;
}
