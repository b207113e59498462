/*
 * A connection to PostgreSQL. All calls of libpq are asynchronous: each wait is poll(2) with a
 * deadline of ours, as a server that is paused never answers.
 * Thread: each connection belongs to one thread, asserted.
 */
#ifndef HFD_STORE_POSTGRES_CONN_H
#define HFD_STORE_POSTGRES_CONN_H

#include "store/engine.h"
#include "store/stmt_slots.h"

#include <libpq-fe.h>
#include <pthread.h>

#define HFD_PG_REPLICA_LEN 32

struct hfd_pg_texts;

struct hfd_db {
    const struct hfd_engine *engine; /* the first member */
    unsigned magic;
#define PG_DB_MAGIC 0xdb9057e5u
    enum hfd_db_mode mode;
    pthread_t owner;
    struct hfd_store_place place; /* its texts are owned */
    PGconn *conn;                 /* NULL while there is none */
    unsigned host;                /* of the URL: where the next attempt begins */
    size_t loaded_bytes;          /* by COPY, since libpq was last flushed */
    bool in_txn;
    bool broken;
    struct hfd_err cause;        /* once broken: the first failure, answered from then on */
    enum hfd_db_fate fate;       /* of the transaction */
    struct hfd_err undone;       /* what made the transaction useless */
    const char *undone_by;       /* a word for it, for metrics; NULL = none */
    int64_t changes;             /* rows written so far, and failures */
    int64_t changes_before;      /* the same when the transaction began */
    struct hfd_pg_texts *texts;  /* of bursts; NULL = none yet */
    struct hfd_stmt_slots stmts; /* those that are kept */
    size_t stmts_in_use;
    uint64_t session;     /* counts connections: statements are prepared anew in each */
    uint64_t listens;     /* the session that listens to signals; 0 = none */
    hfd_db_stop_fn *stop; /* asked while statements run; may be NULL */
    void *stop_ctx;
    char replica[HFD_PG_REPLICA_LEN + 1]; /* the writer's key in hfd_commit */
    int64_t commits;                      /* the last number written there */
    bool unsure;                          /* a COMMIT had no answer */
    bool lock_timed_out;                  /* the transaction waited too long for a lock */
    bool marks;                           /* the schema has hfd_commit */
    bool checked;                         /* the schema is ours, and whole: hfd_db_schema_unlock */
    int slot;                             /* hfd_db_slot */
    char fold[64]; /* a collation that knows the cases of all scripts; "" = none */
};

/** Asserts that the connection is open and belongs to this thread. */
void hfd_pg_check_owner(const struct hfd_db *db);
/** The longest wait for an answer. */
int64_t hfd_pg_answer_us(const struct hfd_db *db);

/** Connects, and sets up the session. @return HFD_OK, HFD_AWAY, HFD_INVALID, HFD_NOMEM, HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_pg_connect(struct hfd_db *db, struct hfd_err *err);
/** Drops the connection; never waits. */
void hfd_pg_disconnect(struct hfd_db *db);

/**
 * Sends what libpq holds, and waits for the first result.
 * @param sent  what the PQsend function returned
 * @param out   gives; the caller clears it. NULL on failure
 * @return HFD_OK also when the result is an error of the server; HFD_AWAY, HFD_TIMEOUT
 */
HFD_MUST_CHECK hfd_rc hfd_pg_wait(struct hfd_db *db, int sent, PGresult **out, struct hfd_err *err);
/** As hfd_pg_wait, and leaves further results: the first one says that a COPY goes on. */
HFD_MUST_CHECK hfd_rc hfd_pg_wait_one(struct hfd_db *db, int sent, PGresult **out,
                                      struct hfd_err *err);
/** Sends what libpq holds. @return HFD_OK, HFD_AWAY, HFD_TIMEOUT */
HFD_MUST_CHECK hfd_rc hfd_pg_flush(struct hfd_db *db, struct hfd_err *err);
/**
 * Waits for the next result in pipeline mode.
 * @param out  gives; NULL ends the answer of a statement
 * @return as hfd_pg_wait
 */
HFD_MUST_CHECK hfd_rc hfd_pg_next(struct hfd_db *db, PGresult **out, struct hfd_err *err);
/**
 * Runs SQL of one or more statements without parameters.
 * @param out  gives the last result; may be NULL
 */
HFD_MUST_CHECK hfd_rc hfd_pg_run(struct hfd_db *db, const char *sql, PGresult **out,
                                 struct hfd_err *err);

/* ---- failures of PostgreSQL in our codes ---- */

/** The meaning of a SQLSTATE. */
struct hfd_pg_code {
    const char *state; /* its first characters */
    hfd_rc rc;
    enum hfd_db_fate fate;
    const char *word; /* for metrics; NULL = none of its own */
};

/** Gives the meaning of a SQLSTATE; NULL or "" is a lost connection. Thread: any. */
const struct hfd_pg_code *hfd_pg_code(const char *state);

/**
 * Turns a result into ours.
 * @param what  SQL or a few words of ours; never data
 * @return HFD_OK for a result that is no error
 */
HFD_MUST_CHECK hfd_rc hfd_pg_judge(struct hfd_db *db, const PGresult *result, const char *what,
                                   struct hfd_err *err);
/** The connection is lost. @return HFD_AWAY; HFD_NOMEM if a reader had no memory */
hfd_rc hfd_pg_lost(struct hfd_db *db, const char *why, struct hfd_err *err);
/** The connection is of no use, for another reason. @return rc */
hfd_rc hfd_pg_turn_broken(struct hfd_db *db, const struct hfd_err *cause, struct hfd_err *err);
/** The failure that turned the connection broken, or the transaction useless. */
hfd_rc hfd_pg_fail_before(const struct hfd_db *db, struct hfd_err *err);
/** Writes a message of libpq or of a server as one line. */
void hfd_pg_line(const char *text, char *out, size_t cap);

#endif
