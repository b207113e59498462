/* The functions of store/db.h that txn.c and stmt.c have. */
#ifndef HFD_STORE_POSTGRES_ENGINE_H
#define HFD_STORE_POSTGRES_ENGINE_H

#include "store/engine.h"
#include "store/postgres/schema.h"

/* Connections and transactions. */
HFD_MUST_CHECK hfd_rc hfd_pg_begin(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_commit(struct hfd_db *db, struct hfd_err *err);
void hfd_pg_rollback(struct hfd_db *db);
int64_t hfd_pg_changes(const struct hfd_db *db);
bool hfd_pg_shared(const struct hfd_db *db);
int hfd_pg_slot(const struct hfd_db *db);
enum hfd_db_fate hfd_pg_fate(const struct hfd_db *db);
const char *hfd_pg_undone_by(const struct hfd_db *db);
HFD_MUST_CHECK hfd_rc hfd_pg_reopen(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err);

extern const struct hfd_engine_statements hfd_pg_statements;

#endif
