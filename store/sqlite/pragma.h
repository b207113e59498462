/* Settings of a connection, and single values of the database. */
#ifndef HFD_STORE_SQLITE_PRAGMA_H
#define HFD_STORE_SQLITE_PRAGMA_H

#include "store/sqlite/conn.h"

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
