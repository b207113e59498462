/*
 * A row is described once. A table is a list of columns: name, type, and member of the struct. From
 * it come the SQL that reads and writes a row, its bindings, its reading, copies of its texts, and
 * its checksums. README.md, "Row functions", says how a column is added.
 *
 * A checksum is a 64-bit hash (XXH3) over columns, stored in the row. It finds bytes that a disk
 * changed. It is no protection against other programs that write the file. A column that is zero
 * or empty adds nothing. So a migration may add a column with such a default, and sums of old rows
 * stay right. A migration that changes rows sets their sums to NULL. Its name ends in "_filled":
 * the program then fills the sums (migrate.h).
 * Thread: any, but for a cursor: that of the transaction.
 */
#ifndef HFD_STORE_TABLE_H
#define HFD_STORE_TABLE_H

#include "store/db.h"
#include "store/kind.h"

#include <stdatomic.h>
#include <stddef.h>

/* ---- descriptions ---- */

enum hfd_col_type {
    HFD_COL_I64,  /* int64_t */
    HFD_COL_INT,  /* int or an enum, from 0 to `max` */
    HFD_COL_KIND, /* enum hfd_kind */
    HFD_COL_BOOL,
    HFD_COL_TEXT,   /* hfd_slice; none is written as empty */
    HFD_COL_BLOB,   /* the same, as bytes */
    HFD_COL_NONE,   /* hfd_slice: bytes, or none, which is NULL */
    HFD_COL_SUM,    /* the checksum of the columns with a place in it */
    HFD_COL_DOC_SUM /* the same of documents, where rows are also read without them */
};

struct hfd_col {
    const char *name;
    enum hfd_col_type type;
    uint16_t at;      /* offset of the member */
    uint16_t max;     /* of INT; 0 = any */
    uint8_t sum, doc; /* place in the checksum, from 1 on, of texts and numbers apart; 0 = not in
                         it. The place of a column never changes; a new one is behind the others */
    uint8_t marks;    /* HFD_COL_*, and bits of the table's own for updates */
    const char *head; /* SQL instead of the column where rows are read without documents */
};

#define HFD_COL_PRIMARY 1u /* of the primary key, where that is not the table's key */
#define HFD_COL_STAYS 2u   /* put leaves the value of a row that is there */
#define HFD_COL_FILLED 4u  /* a checksum */
#define HFD_COL_OWN 8u     /* the first bit of the table's own */

/* clang-format off */
/* The member must have the C type of the column. */
#define HFD_COL_IS_I64(x) int64_t : (x)
#define HFD_COL_IS_INT(x) int : (x), unsigned : (x)
#define HFD_COL_IS_KIND(x) enum hfd_kind : (x)
#define HFD_COL_IS_BOOL(x) bool : (x)
#define HFD_COL_IS_TEXT(x) hfd_slice : (x)
#define HFD_COL_IS_BLOB(x) hfd_slice : (x)
#define HFD_COL_IS_NONE(x) hfd_slice : (x)
/* clang-format on */
/** The column `as` of a row's member. */
#define HFD_COL(row, kind_of, as, member)                                                          \
    .name = (as), .type = HFD_COL_##kind_of,                                                       \
    .at = _Generic(((row *)NULL)->member, HFD_COL_IS_##kind_of(offsetof(row, member)))

struct hfd_row_in;
typedef void hfd_row_read(struct hfd_row_in *in, void *row);

/** A kind of row, for reading. */
struct hfd_row_form {
    const char *what; /* for messages: "nodepool", "report" */
    hfd_row_read *read;
    size_t size;
};

struct hfd_query;

/** A table, or the result of a query. Its key is columns that stand beside each other. */
struct hfd_table {
    struct hfd_row_form form; /* the first member: hfd_table_read finds the table by it */
    const char *name;         /* NULL = the result of a query */
    const struct hfd_col *cols;
    size_t count;
    size_t key, keys; /* its first column; how many columns */
    /** The checksum; NULL = hfd_table_sum. @param doc  that of the documents */
    int64_t (*sum)(const void *row, bool doc);
    struct hfd_query *get, *put, *remove; /* by the key; NULL = not used */
    struct hfd_query *list; /* heads of rows: by the first text of the key, of fleet by its owner,
                              of resource by its cluster */
};

#define HFD_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
/* The members of a table; of one with the first columns of an array. */
#define HFD_TABLE(table, row, say, columns)                                                        \
    HFD_TABLE_OF(table, row, say, columns, HFD_COUNT_OF(columns))
#define HFD_TABLE_OF(table, row, say, columns, n)                                                  \
    .form = {(say), hfd_table_read, sizeof(row)}, .name = (table), .cols = (columns), .count = (n)

#define HFD_BY_MAX 4

/** hfd_db_use.empty. */
struct hfd_query_empty {
    const char *table, *column;
    int param;
    const char *other;
};

/** A statement. Its texts are made once, at the first use, and live as long as the program. */
struct hfd_query {
    const struct hfd_table *table;
    /**
     * SQL with words that begin with an at sign. These are made of the table: its name (table), and
     * all its columns (cols, heads, places). Those of its key are keys and key. The primary key is
     * in primary, behind and last. Columns with a mark are in sets, those beside the key in
     * excluded. The words values, from and using let a write be one of many: hfd_db_use.set. An
     * insert says with skips that it adds no row where its unique indexes have one.
     * table.c has what each looks like.
     */
    const char *text;
    unsigned marks;             /* of columns that @sets sets */
    unsigned after;             /* HFD_UNIT_BIT of tables whose changes are written before */
    bool mixed;                 /* it reads or writes another table than its own */
    const char *by[HFD_BY_MAX]; /* columns that are parameter 1, 2 and so on in each row that it
                                   touches; none = those of @key, or of @values */
    const struct hfd_query_empty *empty;
    _Atomic(const char *) made;             /* NULL = not yet */
    _Atomic(const struct hfd_db_use *) use; /* as well */
};

#define HFD_SQL_GET "SELECT @cols FROM @table WHERE @key"
#define HFD_SQL_PUT "INSERT INTO @table (@cols) @values ON CONFLICT (@keys) DO UPDATE SET @excluded"
#define HFD_SQL_UPDATE "UPDATE @table SET @sets@from WHERE @key"
#define HFD_SQL_REMOVE "DELETE FROM @table@using WHERE @key"
/* clang-format off */
/* Statements by the key of a table, as members of it. */
#define HFD_TABLE_GET(of) .get = &(struct hfd_query){.table = &(of), .text = HFD_SQL_GET}
#define HFD_TABLE_PUT(of) .put = &(struct hfd_query){.table = &(of), .text = HFD_SQL_PUT}
#define HFD_TABLE_REMOVE(of) .remove = &(struct hfd_query){.table = &(of), .text = HFD_SQL_REMOVE}
/* clang-format on */

extern const struct hfd_table hfd_ring_key_table, hfd_fleet_table, hfd_fleet_label_table,
    hfd_fleet_condition_table, hfd_fleet_count_table, hfd_report_table, hfd_resource_table,
    hfd_part_table, hfd_order_table, hfd_remote_table, hfd_remote_orphan_table, hfd_watch_table,
    hfd_event_table, hfd_history_table, hfd_history_floor_table, hfd_tombstone_table,
    hfd_due_gone_table, hfd_due_floor_table, hfd_outbox_table, hfd_ended_table, hfd_past_table,
    hfd_forecast_table, hfd_token_table, hfd_replica_table, hfd_lease_table, hfd_settings_table;

/** Gives the text of a query. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_query_sql(struct hfd_query *query, const char **out, struct hfd_err *err);
/** Gives the tables and columns that a query touches. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_query_use(struct hfd_query *query, const struct hfd_db_use **out,
                                    struct hfd_err *err);
/** Binds the columns of a row as the parameters of its query. */
void hfd_query_bind(const struct hfd_query *query, struct hfd_stmt *st, const void *row);

/* ---- rows ---- */

/** A row has one key, of one text or two. */
struct hfd_unit_key {
    hfd_slice first;
    hfd_slice second; /* or none */
};

/** Gives the index of a column of the primary key. @return false: it has not so many columns */
bool hfd_table_primary(const struct hfd_table *table, size_t nth, size_t *at);
/** The key of a row, in a table whose key is of texts. */
struct hfd_unit_key hfd_table_key(const struct hfd_table *table, const void *row);
/** The length of all texts of a row. */
size_t hfd_table_bytes(const struct hfd_table *table, const void *row);
/**
 * Copies the texts of a row one behind the other, and lets the row point to the copies. An empty
 * text does not become none.
 */
void hfd_table_take(const struct hfd_table *table, void *row, char *to);
/** Hashes the columns of a checksum. The two highest bits are 0, so that SQL can add a time. */
int64_t hfd_table_sum(const struct hfd_table *table, const void *row, bool doc);

/** Returns true for a column of bytes or text. */
static inline bool hfd_col_is_text(const struct hfd_col *col)
{
    return col->type >= HFD_COL_TEXT && col->type <= HFD_COL_NONE;
}

/** Returns true for a column that may be NULL. */
static inline bool hfd_col_is_null(const struct hfd_col *col)
{
    return col->type == HFD_COL_NONE || col->type == HFD_COL_SUM || col->type == HFD_COL_DOC_SUM;
}

/* ---- reading ---- */

/** Rows that were read, in the caller's arena. */
struct hfd_row_list {
    void *rows;
    size_t count;
};

/** The name of a row in messages. */
struct hfd_row_name {
    const char *table; /* NULL = none */
    struct hfd_unit_key key;
};

/**
 * A cursor over the columns of the current row. Columns are taken in the order of the statement's
 * list.
 */
struct hfd_row_in {
    struct hfd_stmt *st;
    const struct hfd_row_form *form;
    struct hfd_arena *mem;
    int at;
    int64_t *sums; /* where the next checksum goes, and none is compared; NULL = all are compared */
    bool bad;      /* a value that the program never writes, or a checksum that does not match */
    struct hfd_row_name name; /* of the row whose checksum does not match */
};

/** Reads the row of a table, whose form the cursor has. */
hfd_row_read hfd_table_read;
/* Each reads the next column. */
hfd_slice hfd_row_text(struct hfd_row_in *in); /* NULL is bad */
int64_t hfd_row_i64(struct hfd_row_in *in);

#endif
