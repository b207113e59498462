/* Shared by the files of this engine: its locks, the words of transactions, its statements. */
#ifndef HFD_STORE_POSTGRES_ENGINE_H
#define HFD_STORE_POSTGRES_ENGINE_H

#include "store/engine.h"
#include "store/postgres/conn.h"

/*
 * Advisory locks: the first number is ours, the second one the schema's, so that two programs in
 * one database do not meet.
 */
#define HFD_PG_LOCK_WRITE "1212564529, hashtext(current_schema())"
#define HFD_PG_LOCK_SCHEMA "1212564530, hashtext(current_schema())"
/** @param slot  SQL: the number of hfd_db_slot */
#define HFD_PG_LOCK_SLOT(slot) "1212564531, hashtext(current_schema() || " slot ")"

/** True of a row of pg_locks: the session holds the lock of all writing groups, or waits for it. */
#define HFD_PG_IS_LOCK_WRITE(row)                                                                  \
    row ".locktype = 'advisory' AND " row ".objsubid = 2 AND " row ".database ="                   \
        " (SELECT oid FROM pg_database WHERE datname = current_database())"                        \
        " AND (" row ".classid, " row                                                              \
        ".objid) = (SELECT k.a::oid, (k.b::bigint & 4294967295)::oid"                              \
        " FROM (VALUES (" HFD_PG_LOCK_WRITE ")) AS k (a, b))"

/** Waits for the lock of all writing groups, to the end of the transaction. */
#define HFD_PG_SQL_LOCK "SELECT pg_advisory_xact_lock(" HFD_PG_LOCK_WRITE ")"
/** The same beside other groups that have roots. */
#define HFD_PG_SQL_SHARE "SELECT pg_advisory_xact_lock_shared(" HFD_PG_LOCK_WRITE ")"
/**
 * Takes the locks of the roots, in the order of their numbers. $1: their names, as an array. It is
 * sent twice: what a resource has may change until its own lock is taken, and then no more.
 */
extern const char hfd_roots_sql[];
/** Notes that a transaction begins. */
void hfd_pg_note_begin(struct hfd_db *db);
/** Begins a snapshot. */
#define HFD_PG_SQL_BEGIN_READ "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
/** Marks a commit. @param replica, n  texts: placeholders or values */
#define HFD_PG_SQL_MARK(replica, n)                                                                \
    "INSERT INTO hfd_commit (replica, n) VALUES (" replica ", " n ")"                              \
    " ON CONFLICT (replica) DO UPDATE SET n = excluded.n"

/**
 * Raises the base if the database has numbers that a group may give again: it was restored into
 * another PostgreSQL, or came from SQLite. A writer does so each time that it has connected.
 * @return HFD_OK, or as hfd_pg_run; the connection is of no use then
 */
HFD_MUST_CHECK hfd_rc hfd_pg_number_base(struct hfd_db *db, struct hfd_err *err);

extern const struct hfd_engine_statements hfd_pg_statements;

#endif
