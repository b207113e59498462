/* The schema, and the database as a whole; store/db.h says what each function does. */
#ifndef HFD_STORE_POSTGRES_SCHEMA_H
#define HFD_STORE_POSTGRES_SCHEMA_H

#include "store/db.h"

/* The version, migrations, care, and copies. */
HFD_MUST_CHECK hfd_rc hfd_pg_cleanup(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_exec(struct hfd_db *db, const char *sql, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_check(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_copy_open(struct hfd_db *from, const char *path,
                                       struct hfd_db_copy **out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_schema_lock(struct hfd_db *db, struct hfd_err *err);
hfd_rc hfd_pg_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_set_schema_version(struct hfd_db *db, int64_t version,
                                                struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                                          struct hfd_err *err);

#endif
