/*
 * Statements of a connection. The functions are those of db.h. A text is prepared on the server at
 * its first use in each session; a composed one is sent whole. A result is held whole: lists have a
 * LIMIT.
 */
#ifndef HFD_STORE_POSTGRES_STMT_H
#define HFD_STORE_POSTGRES_STMT_H

#include "store/postgres/conn.h"

#define HFD_PG_NAME_MAX 16
#define HFD_PG_DIGITS_MAX 32

struct hfd_pg_param {
    char digits[HFD_PG_DIGITS_MAX]; /* of a number */
};

struct hfd_stmt {
    const struct hfd_engine *engine; /* the first member */
    unsigned magic;
#define PG_STMT_MAGIC 0x57a79e5u
    struct hfd_db *db;
    const char *sql; /* the key */
    char *text;      /* with $N */
    char name[HFD_PG_NAME_MAX];
    uint64_t session; /* in which it is prepared */
    bool in_use;
    bool once;    /* not in the slots: done frees it */
    hfd_rc stuck; /* first failure of a binding or a column; answered by the next step */
    int params;
    const char **values; /* of the parameters, as libpq takes them */
    int *lengths, *formats;
    Oid *types; /* of a composed text */
    struct hfd_pg_param *numbers;
    PGresult *result; /* NULL before the first step */
    int row, rows;    /* the present row is row - 1 */
};

/** Ends all statements of a connection that is being closed. None is in use. */
void hfd_pg_finalize_all(struct hfd_db *db);

#endif
