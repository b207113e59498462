/*
 * The tables that a move carries from one database to another, as data. A migration that adds a
 * table or a column changes this list, too: tests/unit/test_move.c compares it with the schema.
 * Thread: any.
 */
#ifndef HFD_STORE_MOVE_TABLE_H
#define HFD_STORE_MOVE_TABLE_H

#include "driver/base/arena.h"

#define HFD_MOVE_COLUMNS_MAX 48

/**
 * A table. Its first `keys` columns are the primary key, in this order.
 * @param columns  "name:type" with spaces between. The types are n (BIGINT), t (TEXT), b (BLOB);
 *                 "?" behind the type allows NULL
 */
struct hfd_move_table {
    const char *name;
    size_t keys;
    const char *columns;
};

extern const struct hfd_move_table hfd_move_tables[];
extern const size_t hfd_move_tables_count;

/** Tables that stay: they say something of a database and its servers, not of resources. */
extern const char *const hfd_move_staying[];
extern const size_t hfd_move_staying_count;

struct hfd_move_column {
    hfd_slice name;
    char type; /* 'n', 't', 'b' */
    bool null; /* allowed */
};

/** A table ready for use: its columns, and SQL texts for them. */
struct hfd_move_form {
    const struct hfd_move_table *table;
    struct hfd_move_column columns[HFD_MOVE_COLUMNS_MAX];
    size_t count;
    const char *first_sql;  /* the first ?1 rows in the order of keys */
    const char *next_sql;   /* the ?1 rows behind the key ?2, ... */
    const char *last_sql;   /* the highest key */
    const char *insert_sql; /* one row */
    const char *copy_sql;   /* COPY of PostgreSQL, binary */
};

/**
 * Makes a form.
 * @param mem  keeps its texts: they live longer than the connections that use them
 * @return HFD_OK, HFD_INVALID (the table's text is wrong), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_move_form_make(const struct hfd_move_table *table, struct hfd_arena *mem,
                                         struct hfd_move_form *out, struct hfd_err *err);

#endif
