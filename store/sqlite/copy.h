/* A copy of the database in progress. db.h has its functions. */
#ifndef HFD_STORE_SQLITE_COPY_H
#define HFD_STORE_SQLITE_COPY_H

#include "store/sqlite/conn.h"

struct hfd_db_copy {
    const struct hfd_engine *engine; /* the first member */
    struct hfd_db *from;             /* in its transaction */
    sqlite3 *to;
    sqlite3_backup *pages; /* NULL once all are copied */
};

#endif
