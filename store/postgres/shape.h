/*
 * The rows that a statement reads or writes, found in its text once. The engine defers writes,
 * keeps results that it has read, and asks here whether a write can change a result.
 *
 * The rules only ever err on the safe side: a text that is not understood depends on every row of
 * each table that it names. Thread: any.
 */
#ifndef HFD_STORE_POSTGRES_SHAPE_H
#define HFD_STORE_POSTGRES_SHAPE_H

#include "driver/base/buf.h"
#include "driver/base/slice.h"

#define HFD_SHAPE_TABLES_MAX 8u
#define HFD_SHAPE_EQUALS_MAX 32u
#define HFD_SHAPE_PARAMS_MAX 40

enum hfd_shape_kind {
    HFD_SHAPE_OTHER, /* nothing is known of it */
    HFD_SHAPE_SELECT,
    HFD_SHAPE_INSERT,
    HFD_SHAPE_UPSERT, /* ON CONFLICT DO UPDATE */
    HFD_SHAPE_UPDATE,
    HFD_SHAPE_DELETE
};

/** A column that has the value of a parameter in each row that a statement reads or writes. */
struct hfd_shape_equal {
    hfd_slice column;
    int param; /* from 1 on */
};

/**
 * Says when an empty result of a query over several tables stays empty. The text says it in a
 * comment: "empty: TABLE.COLUMN = ?N, OTHER". It stays until a row of TABLE with this value is
 * written, or a row of OTHER is changed or deleted.
 */
struct hfd_shape_empty {
    hfd_slice table; /* len 0 = the text says nothing */
    struct hfd_shape_equal equal;
    hfd_slice other;
};

struct hfd_shape {
    enum hfd_shape_kind kind;
    hfd_slice tables[HFD_SHAPE_TABLES_MAX]; /* a write: the first is written to */
    size_t table_count;
    struct hfd_shape_equal equals[HFD_SHAPE_EQUALS_MAX];
    size_t equal_count;
    struct hfd_shape_empty empty;
    int params; /* the highest number of a parameter */
};

/**
 * Reads a text with parameters ?1 ?2. Its slices point into the text.
 * @param sql  lives as long as the shape
 */
void hfd_shape_read(const char *sql, struct hfd_shape *out);

enum hfd_value_kind {
    HFD_VALUE_NONE, /* not bound */
    HFD_VALUE_I64,
    HFD_VALUE_F64,
    HFD_VALUE_TEXT,
    HFD_VALUE_BLOB
};

/** A bound parameter. */
struct hfd_value {
    enum hfd_value_kind kind;
    bool null;
    union {
        int64_t i64;
        double f64;
        hfd_slice bytes; /* of a text or a blob */
    } as;
};

/** Statements with their parameters; values[0] is ?1. */
struct hfd_shape_use {
    const struct hfd_shape *shape;
    const struct hfd_value *values;
};

/**
 * Adds the text of many reads. Parameters are arrays: `$1` has all values of ?1. Each row begins
 * with the number of its element, from 1 on. The rows of an element stand in their order.
 * @param text  of the shape
 */
void hfd_shape_set_read(const struct hfd_shape *shape, const char *text, struct hfd_buf *sql);
/**
 * A set of reads whose parameter is the first column of another read. Each row has the number of
 * the element, this column, and the row itself, which is all NULL where there is none.
 * @param via   has one parameter, and gives one column
 * @param text  has one parameter
 */
void hfd_shape_set_follow(const char *via, const char *text, struct hfd_buf *sql);

#endif
