/*
 * The schema: migrations 1..N, embedded at build time from store/migrations/NNNN_name.sql. The
 * version in the database counts those applied. They only go forward. A migration that has been
 * released is never changed.
 */
#ifndef HFD_STORE_MIGRATE_H
#define HFD_STORE_MIGRATE_H

#include "store/db.h"

struct hfd_migration {
    const char *name; /* "0001_initial" */
    const char *sql;
    /**
     * Runs after the SQL of all migrations, outside a transaction; may run again after a crash. It
     * needs the columns of later migrations, as it reads rows as the program does. NULL = nothing.
     */
    hfd_rc (*fill)(struct hfd_db *db, struct hfd_err *err);
};

extern const struct hfd_migration hfd_migrations[];
extern const size_t hfd_migrations_count;

/** Added to the version that is stored while a fill is due: no program serves such a database. */
#define HFD_MIGRATE_UNFILLED 1000000

/**
 * Applies what is missing, each migration in one transaction with its version, so that a crash
 * leaves whole versions.
 * @param db  the writer, not in a transaction
 * @return HFD_OK, HFD_INVALID (the database is newer than `count`: nothing is touched), HFD_IO,
 * HFD_CORRUPT, HFD_NOMEM, HFD_BUSY
 */
HFD_MUST_CHECK hfd_rc hfd_migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                                  struct hfd_err *err);

#endif
