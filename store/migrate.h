/*
 * The schema: migrations 1..N, embedded at build time from store/migrations/NNNN_name.sql. The
 * version in the database counts those applied. They only go forward. A migration that has been
 * released is never changed.
 */
#ifndef HFD_STORE_MIGRATE_H
#define HFD_STORE_MIGRATE_H

#include "store/db.h"

#include <stdbool.h>

struct hfd_migration {
    const char *name; /* "0001_initial" */
    const char *sql;
    /**
     * Runs after the SQL of all migrations, outside a transaction; may run again after a crash. It
     * needs the columns of later migrations, as it reads rows as the program does. NULL = nothing.
     */
    hfd_rc (*fill)(struct hfd_db *db, struct hfd_err *err);
    /**
     * It takes away what programs of the version before use. On a database that several programs
     * share, hfd_migrate leaves it to hfd_migrate_contract. All others only add: older programs go
     * on beside them.
     */
    bool contracts;
};

extern const struct hfd_migration hfd_migrations[];
extern const size_t hfd_migrations_count;

/** Added to the version that is stored while a fill is due: no program serves such a database. */
#define HFD_MIGRATE_UNFILLED 1000000

/** The first version whose database says which programs may use it. */
#define HFD_MIGRATE_META 19

/**
 * Applies what is missing, each migration in one transaction with its version, so that a crash
 * leaves whole versions. A database that is newer than `count` is used as it is when its newer
 * migrations only added something.
 * @param db  the writer, not in a transaction
 * @return HFD_OK, HFD_INVALID (a newer database, which refuses this program and stays as it is),
 * HFD_CONFLICT (one that contracts is due before), HFD_IO, HFD_CORRUPT, HFD_NOMEM, HFD_BUSY
 */
HFD_MUST_CHECK hfd_rc hfd_migrate(struct hfd_db *db, const struct hfd_migration *list, size_t count,
                                  struct hfd_err *err);

/**
 * Applies all that is missing, also what contracts. Then no program may use the database that
 * does not know all of it. Refuses while such a program lives, and names it.
 * @return as hfd_migrate; HFD_CONFLICT (an older program lives)
 */
HFD_MUST_CHECK hfd_rc hfd_migrate_contract(struct hfd_db *db, const struct hfd_migration *list,
                                           size_t count, struct hfd_err *err);

/**
 * Compares the schema of a database with that of its version. hfd_migrate does so first.
 * @param check  found NULL = what does not refuse the database is logged
 * @return as hfd_db_check_schema, and as hfd_migrate for a newer database
 */
HFD_MUST_CHECK hfd_rc hfd_migrate_check(struct hfd_db *db, const struct hfd_schema_check *check,
                                        struct hfd_err *err);

/** The schema of a database, as it says itself. */
struct hfd_schema_version {
    int64_t now; /* migrations that were applied */
    int64_t min; /* programs that know fewer may not use it */
};

/** Reads it. @param db  a writer, or a reader in a transaction */
HFD_MUST_CHECK hfd_rc hfd_migrate_schema(struct hfd_db *db, struct hfd_schema_version *out,
                                         struct hfd_err *err);

#endif
