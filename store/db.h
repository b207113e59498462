/*
 * The seam to a database engine: one connection, prepared statements, transactions. Each function
 * calls that of the connection's engine (store/engine.h). SQL is the portable subset: one text for
 * every engine, with placeholders ?1 ?2. A text lives as long as the program. It is prepared once
 * per connection and found again by its address.
 *
 * A connection belongs to one thread at a time. An engine failure (I/O, full, corrupt) turns it
 * broken: every later call gives the same error until it is opened again.
 */
#ifndef HFD_STORE_DB_H
#define HFD_STORE_DB_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/base/slice.h"
#include "store/place.h"

struct hfd_db;
struct hfd_stmt;

enum hfd_db_mode {
    HFD_DB_WRITER,
    HFD_DB_READER,
    HFD_DB_POINTS /* a reader of single rows for many jobs at once; not on SQLite */
};

/**
 * Opens a connection and verifies what durability rests on. The writer is opened first and closed
 * last: it makes the database if absent, and keeps every other process out until it is closed.
 * @param place  where the database is; borrows
 * @param out    gives; NULL on failure
 * @return HFD_OK, HFD_CONFLICT (another process has it), HFD_INVALID (not a database of this
 * program), HFD_AWAY (it cannot be reached now), HFD_CORRUPT, HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_db_open(const struct hfd_store_place *place, enum hfd_db_mode mode,
                                  struct hfd_db **out, struct hfd_err *err);
/** The writer checkpoints the log on close. Takes; accepts a pointer to NULL. */
void hfd_db_close(struct hfd_db **db);
/** The connection moves to the calling thread (each later call asserts it). */
void hfd_db_adopt(struct hfd_db *db);
bool hfd_db_broken(const struct hfd_db *db);
/** @return HFD_OK, or the failure that turned the connection broken */
HFD_MUST_CHECK hfd_rc hfd_db_cause(const struct hfd_db *db, struct hfd_err *err);

/** Returns true if a statement is to end at once. Thread: that of the connection. */
typedef bool hfd_db_stop_fn(void *ctx);
/**
 * Asks fn again and again while statements run. A statement that is ended gives HFD_TIMEOUT.
 * @param fn  NULL = nothing is asked
 */
void hfd_db_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx);

/* Transactions. A reader's begin fixes its snapshot at the first read. */
HFD_MUST_CHECK hfd_rc hfd_db_begin(struct hfd_db *db, struct hfd_err *err);
/**
 * As begin, for jobs that may run again. An engine may let a read fail with HFD_BUSY until it has
 * read for all jobs: hfd_db_look says so.
 */
HFD_MUST_CHECK hfd_rc hfd_db_begin_group(struct hfd_db *db, struct hfd_err *err);
/**
 * Ends a run of all jobs.
 * @param again  the jobs are to run again: what they have written is forgotten
 */
HFD_MUST_CHECK hfd_rc hfd_db_look(struct hfd_db *db, bool *again, struct hfd_err *err);
/**
 * Returns true for an engine that keeps writes back: one that is refused undoes the whole
 * transaction. So a job reads first if a write may be refused.
 */
bool hfd_db_gathers(const struct hfd_db *db);
struct hfd_db_use;
/** A read whose parameter another read gives: the first column of each of its rows. */
struct hfd_db_follow {
    const char *via;                 /* with one parameter; static */
    const struct hfd_db_use *target; /* with one parameter */
};
/**
 * Notes such a read for hfd_db_look, where the engine gathers; else does nothing.
 * @param key  the parameter of via
 */
HFD_MUST_CHECK hfd_rc hfd_db_follow(struct hfd_db *db, const struct hfd_db_follow *follow,
                                    hfd_slice key, struct hfd_err *err);
/** A root is named by a GUResID, or by the id of a HyperFleet resource: store/rows_resource.h. */
enum hfd_db_root {
    HFD_DB_ROOT_RESOURCE,
    HFD_DB_ROOT_FLEET
};
/** Notes a root of the group, before its first burst. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_db_root(struct hfd_db *db, enum hfd_db_root kind, hfd_slice id,
                                  struct hfd_err *err);
/**
 * Lets the group run alone. @return HFD_OK: it does, or will. HFD_BUSY: it is undone, and shall run
 * again; it is alone then
 */
HFD_MUST_CHECK hfd_rc hfd_db_exclusive(struct hfd_db *db, struct hfd_err *err);
/** Returns true when hfd_db_look will have the jobs run again: their outcomes mean nothing. */
bool hfd_db_is_looking(const struct hfd_db *db);
/** @return also HFD_BUSY: it is rolled back, and shall run again */
HFD_MUST_CHECK hfd_rc hfd_db_commit(struct hfd_db *db, struct hfd_err *err);
/** Never fails visibly: a connection that cannot roll back is broken. */
void hfd_db_rollback(struct hfd_db *db);
/** Commits if rc is HFD_OK, else rolls back. @return rc, or what the commit returned */
HFD_MUST_CHECK hfd_rc hfd_db_end(struct hfd_db *db, hfd_rc rc, struct hfd_err *err);
/**
 * Gives a number that changes when a statement writes rows. An engine that does not know gives
 * another one each time.
 */
int64_t hfd_db_changes(const struct hfd_db *db);
/** Returns true when other programs write to the database, too. */
bool hfd_db_shared(const struct hfd_db *db);
/**
 * Returns the writer's slot for rows that all writers change: 0 to HFD_DB_SLOTS - 1. No other
 * program has the same one, but for 0, which all have that find none left.
 */
int hfd_db_slot(const struct hfd_db *db);
#define HFD_DB_SLOTS 8
/** The fate of a transaction after a failure. */
enum hfd_db_fate {
    HFD_DB_GOES_ON,
    HFD_DB_UNDONE, /* the statement that failed ended it: it can only be rolled back */
    HFD_DB_AGAIN,  /* the same, for no fault of its own: it is to be run again */
    HFD_DB_LOST    /* with its connection */
};
enum hfd_db_fate hfd_db_fate(const struct hfd_db *db);
/** Returns a word of hfd_store_reruns_total for what undid the last transaction. */
const char *hfd_db_undone_by(const struct hfd_db *db);
/**
 * Connects anew after HFD_AWAY. Statements stay.
 * @return HFD_OK, HFD_AWAY (still), or the failure that turned the connection broken
 */
HFD_MUST_CHECK hfd_rc hfd_db_reopen(struct hfd_db *db, struct hfd_err *err);
/**
 * Finds out whether the last commit is in the database, although its answer was lost.
 * @return HFD_OK, HFD_AWAY, HFD_BUSY
 * Thread: writer, after hfd_db_reopen.
 */
HFD_MUST_CHECK hfd_rc hfd_db_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err);
/** Copies a long log into the database. Thread: writer, between transactions, after the answers. */
HFD_MUST_CHECK hfd_rc hfd_db_cleanup(struct hfd_db *db, struct hfd_err *err);

/**
 * Runs statements without parameters and results: migrations. An engine reads comments that begin
 * with its own name and a colon as SQL: "sqlite: WITHOUT ROWID".
 */
HFD_MUST_CHECK hfd_rc hfd_db_exec(struct hfd_db *db, const char *sql, struct hfd_err *err);
/**
 * Returns true if rows can be loaded in bulk: PostgreSQL's COPY. Where not, load_begin and load_end
 * do nothing, and rows are inserted.
 */
bool hfd_db_loads(const struct hfd_db *db);
/**
 * Begins to load rows into a table. No other statement runs before hfd_db_load_end.
 * @param db   a writer in a transaction
 * @param sql  "COPY ... FROM STDIN (FORMAT binary)"
 */
HFD_MUST_CHECK hfd_rc hfd_db_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err);
/** Loads a row. @param bytes  in the binary format of COPY: number of columns, lengths, values */
HFD_MUST_CHECK hfd_rc hfd_db_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err);
/** Waits until the rows are in the table. */
HFD_MUST_CHECK hfd_rc hfd_db_load_end(struct hfd_db *db, struct hfd_err *err);
/**
 * Reads all that is stored, and compares tables with their indexes.
 * @return HFD_OK, HFD_CORRUPT (the first finding), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_db_check(struct hfd_db *db, struct hfd_err *err);
/**
 * Gives a query for the number before the first one of this transaction: store/unit.h. Each
 * transaction has HFD_NUMBERS_MAX of its own. NULL = there is one writer, which counts on.
 */
const char *hfd_db_sql_number(const struct hfd_db *db);
/**
 * Gives a query for the first number that a transaction may have which the snapshot does not show.
 * NULL = the snapshot shows all numbers below its highest one.
 */
const char *hfd_db_sql_number_end(const struct hfd_db *db);
/** The query for a number above all that were given so far; NULL as well. */
const char *hfd_db_sql_number_bound(const struct hfd_db *db);
/** A signal to the other servers of a database, and the wait for one. */
struct hfd_db_signal {
    bool send;       /* first sends one */
    int fd;          /* ends the wait when it can be read; -1 = none */
    int64_t wait_us; /* the longest wait */
};
/**
 * Sends a signal, or waits for one. The connection is used for nothing else.
 * @param heard  another server sent one since the last call
 * @return HFD_OK, HFD_INVALID (this engine has none), HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_db_signal(struct hfd_db *db, const struct hfd_db_signal *signal,
                                    bool *heard, struct hfd_err *err);
/** Gives the size of the database as the connection sees it. */
HFD_MUST_CHECK hfd_rc hfd_db_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err);

struct hfd_db_copy;
/**
 * Begins a copy of what a reader's transaction sees. Changes meanwhile do not disturb it.
 * @param from  a reader in a transaction, which stays open until the copy is closed
 * @param path  of an empty file
 * @param out   gives; NULL on failure
 * @return HFD_OK, HFD_LIMIT (the disk is full), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_db_copy_open(struct hfd_db *from, const char *path,
                                       struct hfd_db_copy **out, struct hfd_err *err);
/** Copies some pages. @param done  the file is whole. Returns as hfd_db_copy_open. */
HFD_MUST_CHECK hfd_rc hfd_db_copy_step(struct hfd_db_copy *copy, bool *done, struct hfd_err *err);
/** Takes; accepts a pointer to NULL. */
void hfd_db_copy_close(struct hfd_db_copy **copy);

/**
 * Keeps other programs from migrating the schema until it is unlocked or the connection ends.
 * @return HFD_OK, HFD_BUSY (another one has it for too long), HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_db_schema_lock(struct hfd_db *db, struct hfd_err *err);
/**
 * Ends hfd_db_schema_lock, whatever it returns.
 * @param whole  the schema is ours, and has all that this program expects. Numbers of changes are
 * above those that are stored from now on, after a reconnect too.
 * @return HFD_OK, HFD_IO, HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_db_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err);
/** The schema version in the file; 0 = empty. */
HFD_MUST_CHECK hfd_rc hfd_db_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_db_set_schema_version(struct hfd_db *db, int64_t version,
                                                struct hfd_err *err);
struct hfd_migration;
/** The schema that hfd_db_check_schema expects. */
struct hfd_schema_check {
    const struct hfd_migration *list;
    size_t count; /* those that the database says it has */
    bool newer;   /* it has more: a newer program may have added tables, columns and indexes */
    /** Is told of what does not refuse the database; text is borrowed. */
    void (*found)(void *ctx, const char *text);
    void *ctx;
};
/**
 * Compares the schema with the one that the migrations make now, in a place of their own. It reads
 * the catalogue alone, so no trigger, rule or view of others runs.
 * @param db  the writer, not in a transaction
 * @return HFD_OK, HFD_INVALID (the message names the first object that is of others, changed or
 * missing), HFD_NOMEM, HFD_IO, HFD_CORRUPT, HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_db_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                                          struct hfd_err *err);

/**
 * Gets the statement for a text, prepared on first use, with no bindings. Use it to the end
 * before getting the same one again.
 * @param sql  lives as long as the program: its address is the key
 */
HFD_MUST_CHECK hfd_rc hfd_db_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                                     struct hfd_err *err);

#define HFD_DB_EQUALS_MAX 32u

/** A column that has the value of a parameter in each row that a statement reads or writes. */
struct hfd_db_equal {
    const char *column;
    int param; /* from 1 on */
};

/** The tables and columns that a statement touches. An engine that gathers rests on them. */
struct hfd_db_use {
    const char *sql; /* as that of hfd_db_prepare */
    /* The same for many writes: each parameter is an array. It fails where one of them would add
       no row for want of a free key. NULL = each is sent alone. */
    const char *set;
    /* The only table that it touches. NULL = it may touch all: a write has its place among all
       writes, and each write hides what it read. */
    const char *table;
    struct hfd_db_equal equals[HFD_DB_EQUALS_MAX];
    size_t equal_count;
    bool adds;    /* it adds a row, or changes the one with the same equals */
    bool differs; /* the equals of writes in a set are not all the same */
    /*
     * A read that finds nothing goes on to find nothing until one of two things happens. A row of
     * this table with this column is added or changed. Or a row of `other` is changed or removed.
     * table NULL = nothing of this is known.
     */
    struct {
        const char *table;
        struct hfd_db_equal equal;
        const char *other;
    } empty;
};
/** As hfd_db_prepare. @param use  lives as long as the program */
HFD_MUST_CHECK hfd_rc hfd_db_prepare_use(struct hfd_db *db, const struct hfd_db_use *use,
                                         struct hfd_stmt **out, struct hfd_err *err);

/**
 * Prepares a text that was composed, for one use: hfd_stmt_done ends it. Composed of fixed
 * fragments only, values are bound.
 * @param sql  borrowed during the call
 */
HFD_MUST_CHECK hfd_rc hfd_db_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                                          struct hfd_err *err);

/*
 * Dialect: expressions that are no portable SQL, added to a text that is being composed. A JSON
 * member is named by a bound path, written by hfd_db_json_path from plain names with dots between
 * them (letters, digits, underscores).
 */
/**
 * The member as text: strings as they are, other values as JSON, NULL where there is none or null.
 */
void hfd_db_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at);
/** The member as a number; NULL where it is none. */
void hfd_db_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at);
/** LIKE for long texts: what stands in front of the text, between it and the pattern, and behind.
 */
struct hfd_db_like {
    const char *begin, *between, *end;
};
/**
 * Gives LIKE with a backslash that takes a wildcard literally, and that hfd_db_watch can end.
 */
struct hfd_db_like hfd_db_sql_like(const struct hfd_db *db);
/**
 * Gives what turns a text into lower case, in every script: what stands in front and behind. An end
 * that is NULL means that memory ran out.
 */
struct hfd_db_like hfd_db_sql_fold(const struct hfd_db *db, struct hfd_arena *mem);
enum hfd_db_condition {
    HFD_DB_STATUS,
    HFD_DB_LAST_UPDATED_TIME, /* microseconds */
    HFD_DB_LAST_TRANSITION_TIME,
    HFD_DB_OBSERVED_GENERATION
};
/**
 * A number of the first condition of a bound type in a JSON array of conditions; NULL where there
 * is none.
 */
void hfd_db_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what);
/** p is NULL when out of memory. */
hfd_slice hfd_db_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem);
/** The path of one member, whose key may have dots, hyphens and slashes. */
hfd_slice hfd_db_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem);

/*
 * Bindings count from 1; text and blobs are borrowed until hfd_stmt_done. A failure sticks and is
 * answered by the next step.
 */
void hfd_stmt_text(struct hfd_stmt *st, int at, hfd_slice v); /* p == NULL binds NULL */
void hfd_stmt_blob(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_stmt_i64(struct hfd_stmt *st, int at, int64_t v);
void hfd_stmt_f64(struct hfd_stmt *st, int at, double v);
void hfd_stmt_null(struct hfd_stmt *st, int at);

/**
 * @param row  whether there is a row to read
 * @return HFD_OK, HFD_CONFLICT (a unique or check constraint), HFD_LIMIT (a value too long),
 * HFD_INVALID (text that the engine does not store), HFD_TIMEOUT (by hfd_db_watch). Also HFD_IO,
 * HFD_CORRUPT, HFD_NOMEM, HFD_BUSY, HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err);
/**
 * Runs a statement that gives no rows, and finishes it. @param changed  rows changed; may be NULL
 */
HFD_MUST_CHECK hfd_rc hfd_stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err);
/**
 * Ends the use of a statement: bindings and cursor are dropped. Always called, on every path;
 * accepts NULL.
 */
void hfd_stmt_done(struct hfd_stmt *st);

/*
 * Columns count from 0. Text and blobs are copied into the arena; a NULL column gives p == NULL.
 * A failure sticks as for bindings, and the next step gives it: HFD_NOMEM, or HFD_CORRUPT for a
 * value of another type. NULL is no integer.
 */
int64_t hfd_stmt_col_i64(struct hfd_stmt *st, int at);
/** Returns true when the next step gives such a failure. */
bool hfd_stmt_is_stuck(const struct hfd_stmt *st);
bool hfd_stmt_col_is_null(struct hfd_stmt *st, int at);
hfd_slice hfd_stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem);

#endif
