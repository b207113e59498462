/* Opening and closing, and the table of the engine. */
#include "store/postgres/engine.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/rng.h"
#include "store/postgres/burst.h"
#include "store/postgres/burst_text.h"
#include "store/postgres/fail.h"
#include "store/postgres/load.h"
#include "store/postgres/number.h"
#include "store/postgres/signal.h"
#include "store/postgres/stmt.h"

/* The connections of groups gather what the jobs read and write. */
static hfd_rc open_place(const struct hfd_store_place *place, enum hfd_db_mode mode,
                         struct hfd_db **out, struct hfd_err *err)
{
    struct hfd_db *db;
    const hfd_rc rc = hfd_pg_open(place, mode, &db, err);

    *out = db;
    if (rc != HFD_OK || mode == HFD_DB_READER)
        return rc;
    return hfd_gather_open(db, hfd_pg_burst, mode, out, err);
}

const struct hfd_engine hfd_engine_postgres = {
    .open = open_place,
    .close = hfd_pg_close,
    .adopt = hfd_pg_adopt,
    .broken = hfd_pg_broken,
    .cause = hfd_pg_cause,
    .watch = hfd_pg_watch,
    .begin = hfd_pg_begin,
    .commit = hfd_pg_commit,
    .rollback = hfd_pg_rollback,
    .changes = hfd_pg_changes,
    .shared = hfd_pg_shared,
    .slot = hfd_pg_slot,
    .fate = hfd_pg_fate,
    .undone_by = hfd_pg_undone_by,
    .reopen = hfd_pg_reopen,
    .was_committed = hfd_pg_was_committed,
    .tidy = hfd_pg_tidy,
    .exec = hfd_pg_exec,
    .load_begin = hfd_pg_load_begin,
    .load = hfd_pg_load,
    .load_end = hfd_pg_load_end,
    .check = hfd_pg_check,
    .bytes = hfd_pg_bytes,
    .copy_open = hfd_pg_copy_open,
    .schema_lock = hfd_pg_schema_lock,
    .schema_unlock = hfd_pg_schema_unlock,
    .schema_version = hfd_pg_schema_version,
    .set_schema_version = hfd_pg_set_schema_version,
    .check_schema = hfd_pg_check_schema,
    .prepare = hfd_pg_prepare,
    .prepare_once = hfd_pg_prepare_once,
    .sql_json_text = hfd_pg_sql_json_text,
    .sql_json_number = hfd_pg_sql_json_number,
    .sql_like = hfd_pg_sql_like,
    .sql_fold = hfd_pg_sql_fold,
    .sql_condition = hfd_pg_sql_condition,
    .json_path = hfd_pg_json_path,
    .json_key = hfd_pg_json_key,
    .stmt_text = hfd_pg_stmt_text,
    .stmt_blob = hfd_pg_stmt_blob,
    .stmt_i64 = hfd_pg_stmt_i64,
    .stmt_f64 = hfd_pg_stmt_f64,
    .stmt_null = hfd_pg_stmt_null,
    .stmt_step = hfd_pg_stmt_step,
    .stmt_run = hfd_pg_stmt_run,
    .stmt_done = hfd_pg_stmt_done,
    .stmt_col_i64 = hfd_pg_stmt_col_i64,
    .stmt_is_stuck = hfd_pg_stmt_is_stuck,
    .stmt_col_is_null = hfd_pg_stmt_col_is_null,
    .stmt_col_text = hfd_pg_stmt_col_text,
    .signal = hfd_pg_signal,
    .sql_number = hfd_pg_sql_number,
    .sql_number_end = hfd_pg_sql_number_end,
    .sql_now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
};

/* Returns false when there is no memory. */
static bool copy_text(const char *text, const char **out)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

static void free_text(const char *text)
{
    if (text != NULL)
        explicit_bzero((void *)(uintptr_t)text, strlen(text));
    free((void *)(uintptr_t)text);
}

/* A name that no other connection has, for its row in hfd_commit. */
static void name_replica(char out[HFD_PG_REPLICA_LEN + 1])
{
    unsigned char bytes[HFD_PG_REPLICA_LEN / 2];

    hfd_rng_bytes(&hfd_rng_system, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

hfd_rc hfd_pg_open(const struct hfd_store_place *place, enum hfd_db_mode mode, struct hfd_db **out,
                   struct hfd_err *err)
{
    struct hfd_db *db = calloc(1, sizeof(*db));
    bool whole;
    hfd_rc rc;

    *out = NULL;
    if (db == NULL)
        return hfd_fail_nomem(err, "open the store");
    db->engine = &hfd_engine_postgres;
    db->magic = PG_DB_MAGIC;
    db->mode = mode;
    db->owner = pthread_self();
    db->place = *place;
    db->place.dir = NULL;
    name_replica(db->replica);
    whole = copy_text(place->url, &db->place.url);
    whole = copy_text(place->password_file, &db->place.password_file) && whole;
    rc = whole ? hfd_pg_connect(db, err) : hfd_fail_nomem(err, "open the store");
    if (rc == HFD_OK)
        *out = db;
    else
        hfd_pg_close(&db);
    return rc;
}

/* A row that stays does no harm. */
static void forget_mark(struct hfd_db *db)
{
    struct hfd_err err;
    char sql[96];

    (void)snprintf(sql, sizeof(sql), "DELETE FROM hfd_commit WHERE replica = '%s'", db->replica);
    if (hfd_pg_run(db, sql, NULL, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_INFO, "the store was closed without its last statement",
                HFD_LOG_CSTR("reason", err.msg));
}

void hfd_pg_close(struct hfd_db **dbp)
{
    struct hfd_db *db = *dbp;

    *dbp = NULL;
    hfd_pg_check_owner(db);
    if (db->conn != NULL && !db->broken && db->commits > 0)
        forget_mark(db);
    hfd_pg_finalize_all(db);
    hfd_pg_texts_free(db);
    hfd_pg_disconnect(db);
    free_text(db->place.url);
    free_text(db->place.password_file);
    db->magic = 0;
    free(db);
}

void hfd_pg_adopt(struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, PG_DB_MAGIC);
    db->owner = pthread_self();
}

bool hfd_pg_broken(const struct hfd_db *db)
{
    return db->broken;
}

hfd_rc hfd_pg_cause(const struct hfd_db *db, struct hfd_err *err)
{
    return db->broken ? hfd_pg_fail_before(db, err) : HFD_OK;
}

void hfd_pg_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx)
{
    hfd_pg_check_owner(db);
    db->stop = fn;
    db->stop_ctx = ctx;
}
