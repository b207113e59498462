/* See alone.h. */
#include "store/alone.h"

#include "store/rows_replica.h"
#include "store/txn.h"

#define MEM_MAX ((size_t)1 << 20)

hfd_rc hfd_alone_check(struct hfd_db *db, int64_t schema, struct hfd_err *err)
{
    struct hfd_txn tx = {.db = db};
    struct hfd_replica_list list = {0};
    struct hfd_arena mem;
    int64_t now_us = 0;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX);
    rc = hfd_replica_row_list(&tx, &mem, &list, err);
    if (rc == HFD_OK && list.count > 0)
        rc = hfd_db_now(db, &now_us, err);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct hfd_replica_row *row = &list.rows[i];

        if (row->beat_us <= now_us - HFD_ALONE_LIVE_US || row->schema >= schema)
            continue;
        rc = hfd_fail(err, HFD_CONFLICT,
                      "the server %.60s of version %.30s (schema version %lld) uses the database: "
                      "end it first",
                      row->name.p, row->version.p, (long long)row->schema);
    }
    hfd_arena_fini(&mem);
    return rc;
}
